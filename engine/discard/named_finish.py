"""Judges a named hand outside of a game: as the player lays it with its discard, or as the search finds it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from engine.discard.hand_matching import STEPS, MatchedHand, best_named_hand, judge_named_hand
from engine.discard.melds import Arrangement
from engine.discard.named_hands import NamedHand
from engine.discard.ruleset import HAND_SIZE
from engine.effort import Effort
from engine.tiles import JOKER, Tile, without
from engine.violations import Reason, Violation

_FACTOR: Final = 2
"""The factor of the points if the discard is a joker."""


@dataclass(frozen=True, slots=True)
class JudgedNamedHand:
    """The judgement of a named hand.

    Attributes:
        violations: What is wrong with it; none if it is finished.
        hand: The hand.
        discard: The discard, if there is one.
        points: What it scores; 0 if it is not finished.
    """

    violations: tuple[Violation, ...]
    hand: MatchedHand | None
    discard: Tile | None
    points: int


def judge_named_finish(
    tiles: tuple[Tile, ...], discard: Tile | None, laid: Arrangement, hands: tuple[NamedHand, ...]
) -> JudgedNamedHand:
    """Returns the judgement of a named hand.

    Args:
        tiles: The 14 tiles of a hand, or 15 before the discard.
        discard: The tile to discard of 15; None of 14, or for the one that scores the most.
        laid: The melds as the player lays them; empty: as the search finds them.
        hands: The named hands.
    """
    if discard is None and len(tiles) > HAND_SIZE:
        best = max(_finishes(tiles, hands), key=lambda one: one.points, default=None)
        return best or JudgedNamedHand((Violation(Reason.HAND_NOT_MATCHED, "hand"),), None, None, 0)
    held = tiles if discard is None else without(tiles, (discard,))
    judged = judge_named_hand(held, laid, hands)
    return _judged(discard, judged) if isinstance(judged, MatchedHand) else JudgedNamedHand(judged, None, discard, 0)


def _finishes(tiles: tuple[Tile, ...], hands: tuple[NamedHand, ...]) -> Iterator[JudgedNamedHand]:
    """Yields the best hand beside each discard."""
    effort = Effort(STEPS)
    for discard in dict.fromkeys(tiles):
        hand = best_named_hand(without(tiles, (discard,)), hands, effort=effort)
        if hand:
            yield _judged(discard, hand)


def _judged(discard: Tile | None, hand: MatchedHand) -> JudgedNamedHand:
    return JudgedNamedHand((), hand, discard, hand.points * (_FACTOR if discard == JOKER else 1))
