"""Scores rounds and games. Points are lost from those that each player has at the start."""

from collections.abc import Iterable
from typing import Final

from engine.discard.events import HandFinished
from engine.discard.hands import FinishedHand
from engine.discard.round import DiscardRound
from engine.discard.ruleset import Ruleset, Teams
from engine.seats import Player
from engine.tiles import Tile

MELDS_COST: Final = 2
"""The points that each loser loses to a hand of melds."""
PAIRS_COST: Final = 4
OKEY_FACTOR: Final = 2
"""A finish with an okey as the discard costs so many times as much."""
INDICATOR_COST: Final = 1


def points_of(round_: DiscardRound, ruleset: Ruleset) -> dict[int, int]:
    """Returns the points of a round by seat: what a finish costs the others, and a shown indicator."""
    costs = [] if round_.shown_by is None else [(round_.shown_by, INDICATOR_COST)]
    if round_.finish:
        costs.append((round_.finish.seat, cost_of(round_.finish.tile, round_.finish, round_.okey)))
    return {
        seat: -sum(cost for winner, cost in costs if not are_one_side((seat, winner), ruleset))
        for seat in sorted(round_.order)
    }


def cost_of(discard: Tile | None, hand: FinishedHand | HandFinished, okey: Tile) -> int:
    """Returns what a finish with a discard costs each loser."""
    cost = PAIRS_COST if hand.is_pairs else MELDS_COST
    return cost * OKEY_FACTOR if discard == okey else cost


def round_winners(round_: DiscardRound, seats: Iterable[int], ruleset: Ruleset) -> tuple[int, ...]:
    """Returns the seats, of some, that have won a round; none if no player finished it."""
    finish = round_.finish
    return tuple(seat for seat in seats if finish and are_one_side((seat, finish.seat), ruleset))


def are_one_side(seats: tuple[int, ...], ruleset: Ruleset) -> bool:
    """Returns whether players win together: one player, or one pair (teams)."""
    return len({seat % 2 if ruleset.teams is Teams.PAIRS else seat for seat in seats}) == 1


def is_last_round(number: int, players: tuple[Player, ...], ruleset: Ruleset) -> bool:
    """Returns whether a game ends after a number of rounds with these totals (score_start, match_rounds)."""
    return number == ruleset.match_rounds or any(player.total_points <= 0 for player in players)


def game_winners(players: tuple[Player, ...]) -> tuple[int, ...]:
    """Returns the players with the most points among those who have not resigned."""
    able = [player for player in players if not player.resigned]
    most = max(player.total_points for player in able)
    return tuple(player.seat for player in able if player.total_points == most)
