"""Judges a finish: a discard, and a hand as the player lays it or as the search finds it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from engine.discard.hands import FinishedHand, Standing, finished_hand, standing
from engine.discard.melds import Arrangement, is_pair, meld_kind, okey_of
from engine.discard.ruleset import HAND_SIZE
from engine.discard.scoring import cost_of
from engine.tiles import Tile, in_order, without
from engine.violations import Reason, Violation


def judge_finish(
    tiles: tuple[Tile, ...], hand: Arrangement, okey: Tile, *, one_high: bool
) -> FinishedHand | tuple[Violation, ...]:
    """Returns the finished hand, or what is wrong with it.

    Args:
        tiles: The 14 tiles.
        hand: The melds or pairs as the player lays them; empty: as the search finds them.
        okey: The okey.
        one_high: Whether a 1 may follow a 13.
    """
    if hand:
        violations = tuple(_violations(tiles, hand, okey, one_high=one_high))
        return violations or FinishedHand(hand, is_pairs=_is_meant_as_pairs(hand))
    found = finished_hand(tiles, okey, one_high=one_high)
    if found is None:
        lacks = standing(tiles, okey, one_high=one_high)
        return (Violation(Reason.FINISH_INVALID, "hand", lacks.spare),)
    return found


def _is_meant_as_pairs(hand: Arrangement) -> bool:
    return all(len(part) == 2 for part in hand)


def _violations(tiles: tuple[Tile, ...], hand: Arrangement, okey: Tile, *, one_high: bool) -> Iterator[Violation]:
    """Yields what is wrong with a hand as a player lays it: other tiles, tiles left over, parts that are no melds."""
    laid, held = Counter(chain.from_iterable(hand)), Counter(tiles)
    foreign, left = in_order((laid - held).elements()), in_order((held - laid).elements())
    if foreign:
        yield Violation(Reason.TILE_NOT_IN_RACK, "hand", foreign)
    if left:
        yield Violation(Reason.FINISH_INVALID, "hand", left)
    as_pairs = _is_meant_as_pairs(hand)
    for place, part in enumerate(hand):
        if not (is_pair(part, okey) if as_pairs else meld_kind(part, okey, one_high=one_high)):
            yield Violation(Reason.FINISH_INVALID, f"hand[{place}]", part)


def best_finish(tiles: tuple[Tile, ...], okey: Tile, *, one_high: bool) -> tuple[Tile, FinishedHand] | None:
    """Returns the discard and the hand of a finish of 15 tiles that cost the others the most; None if there is none."""
    if standing(tiles, okey, one_high=one_high).missing:
        return None  # one search instead of one for each discard
    discards = dict.fromkeys(tiles)
    hands = ((t, finished_hand(without(tiles, (t,)), okey, one_high=one_high)) for t in discards)
    finishes = [(t, hand) for t, hand in hands if hand]
    return max(finishes, key=lambda finish: cost_of(finish[0], finish[1], okey))


@dataclass(frozen=True, slots=True)
class HandToJudge:
    """A hand outside of a game.

    Attributes:
        tiles: The 14 tiles of a hand, or 15 before the discard.
        indicator: The tile turned face up.
        discard: The tile to discard of 15; None of 14, or for the best one.
        hand: The melds or pairs as the player lays them; empty: as the search finds them.
        one_high: Whether a 1 may follow a 13 (run_one_high).
    """

    tiles: tuple[Tile, ...]
    indicator: Tile
    discard: Tile | None
    hand: Arrangement
    one_high: bool


@dataclass(frozen=True, slots=True)
class JudgedHand:
    """The judgement of a hand.

    Attributes:
        violations: What is wrong with it; none if it is finished.
        finish: The finished hand.
        discard: The discard of the finish, if there is one.
        cost: The points that each other player loses to it; 0 if it is not finished.
        lacks: What it lacks, however it is laid.
    """

    violations: tuple[Violation, ...]
    finish: FinishedHand | None
    discard: Tile | None
    cost: int
    lacks: Standing


def judge_hand(given: HandToJudge) -> JudgedHand:
    """Returns the judgement of a hand outside of a game."""
    okey, discard, one_high = okey_of(given.indicator), given.discard, given.one_high
    tiles = given.tiles if discard is None else without(given.tiles, (discard,))
    if len(tiles) > HAND_SIZE:
        best = best_finish(tiles, okey, one_high=one_high)
        if best:
            return judge_hand(replace(given, discard=best[0]))
    lacks = standing(tiles, okey, one_high=one_high)
    if len(tiles) > HAND_SIZE:
        return JudgedHand((Violation(Reason.FINISH_INVALID, "hand", lacks.spare),), None, None, 0, lacks)
    finish = judge_finish(tiles, given.hand, okey, one_high=one_high)
    if isinstance(finish, FinishedHand):
        return JudgedHand((), finish, discard, cost_of(discard, finish, okey), lacks)
    return JudgedHand(finish, None, discard, 0, lacks)
