"""Scores rounds and games (score_system).

In Okey points are lost from those that each player has at the start, and the most win. In American Rummikub the losers
of a round pay its winner, and the most win. In 101 Okey and International Rummikub points are collected, and the fewest
win.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from engine.discard.events import Finish, HandFinished, RackFinished
from engine.discard.hands import FinishedHand
from engine.discard.melds import value_on_rack
from engine.discard.round import DiscardRound
from engine.discard.ruleset import Ruleset, ScoreSystem, Teams
from engine.game import Game, RoundEnd
from engine.seats import Player
from engine.tiles import JOKER, Tile, value_of

MELDS_COST: Final = 2
"""The points that each loser loses to a hand of melds."""
PAIRS_COST: Final = 4
OKEY_FACTOR: Final = 2
"""A finish with an okey as the discard costs so many times as much."""
INDICATOR_COST: Final = 1
FINISH_POINTS: Final = -101
"""The points of a finish in 101 Okey, before they are doubled."""
UNOPENED_POINTS: Final = 202
OKEY_LEFT_POINTS: Final = 101
FACTOR: Final = 2
"""Each of these multiplies the points of a round: an okey as the last discard, pairs, and opening in the last turn."""

UNMELDED_POINTS: Final = 100
"""The least that a player pays who never opened: in American Rummikub, and in International if no player has won."""
OPEN_POINTS: Final = 100
"""The points of a finish in International Rummikub; doubled if no other player has opened, and for a Foot."""
JOKER_POINTS: Final = 30
_TEN: Final = 10
_COURT_POINTS: Final = dict.fromkeys((1, 11, 12, 13), _TEN)


def points_of(round_: DiscardRound, end: RoundEnd, ruleset: Ruleset) -> dict[int, int]:
    """Returns the points of a round by seat."""
    match ruleset.score_system:
        case ScoreSystem.OKEY:
            return _points_lost(round_, ruleset)
        case ScoreSystem.OKEY_101:
            return _points_collected(round_, end, ruleset)
        case ScoreSystem.AMERICAN | ScoreSystem.INTERNATIONAL if end is RoundEnd.RESIGNED:
            return dict.fromkeys(sorted(round_.order), 0)
        case ScoreSystem.AMERICAN:
            return _points_paid(round_, ruleset)
        case ScoreSystem.INTERNATIONAL:
            return _points_of_modes(round_, ruleset)


def rack_value(tiles: tuple[Tile, ...], round_: DiscardRound, ruleset: Ruleset) -> int:
    """Returns the sum of the tiles on a rack at the end of a round; 0 where they do not count, as in Okey."""
    match ruleset.score_system:
        case ScoreSystem.OKEY:
            return 0
        case ScoreSystem.OKEY_101:
            return sum(value_on_rack(t, round_.okey) for t in tiles)
        case ScoreSystem.AMERICAN:
            return sum(JOKER_POINTS if t == JOKER else value_of(t) for t in tiles)
        case ScoreSystem.INTERNATIONAL:
            return sum(JOKER_POINTS if t == JOKER else _COURT_POINTS.get(value_of(t), value_of(t)) for t in tiles)


# Okey


def _points_lost(round_: DiscardRound, ruleset: Ruleset) -> dict[int, int]:
    """Returns what a finish costs the others, and a shown indicator; and what false finishes cost their players."""
    costs = [] if round_.shown_by is None else [(round_.shown_by, INDICATOR_COST)]
    if isinstance(round_.finish, HandFinished):
        costs.append((round_.finish.seat, cost_of(round_.finish.tile, round_.finish, round_.okey)))
    return {
        seat: -sum(cost for winner, cost in costs if not are_one_side((seat, winner), ruleset))
        - sum(one.points for one in round_.penalties if are_one_side((seat, one.seat), ruleset))
        for seat in sorted(round_.order)
    }


def cost_of(discard: Tile | None, hand: FinishedHand | HandFinished, okey: Tile) -> int:
    """Returns what a finish with a discard costs each loser."""
    cost = PAIRS_COST if hand.is_pairs else MELDS_COST
    return cost * OKEY_FACTOR if discard == okey else cost


# 101 Okey


def _points_collected(round_: DiscardRound, end: RoundEnd, ruleset: Ruleset) -> dict[int, int]:
    """Returns the points of a round of 101 Okey: none of a void one, only penalties of one that resignations ended."""
    points = Counter(dict.fromkeys(sorted(round_.order), 0))
    if end is RoundEnd.VOID:
        return dict(points)
    for penalty in round_.penalties:
        points[penalty.seat] += penalty.points
    finish = round_.finish if isinstance(round_.finish, RackFinished) else None
    factor = factor_of(finish, round_.okey) if finish else 1
    for seat in () if end is RoundEnd.RESIGNED else round_.order:
        if finish and seat == finish.seat:
            points[seat] += FINISH_POINTS * factor
        elif not (finish and are_one_side((seat, finish.seat), ruleset)):
            points[seat] += _cost_of_rack(round_, seat, factor, ruleset)
    return dict(points)


def factor_of(finish: RackFinished, okey: Tile) -> int:
    """Returns by what a finish multiplies the points of its round: 1, 2, 4 or 8."""
    reasons = (finish.tile == okey, finish.is_pairs, finish.is_at_once)
    return int(FACTOR ** sum(reasons))


def _cost_of_rack(round_: DiscardRound, seat: int, factor: int, ruleset: Ruleset) -> int:
    """Returns what a player who has not finished pays. An okey costs the same whatever the factor."""
    tiles = round_.rack(seat).tiles
    opening = round_.table.opening(seat) if round_.table else None
    cost = UNOPENED_POINTS
    if opening:
        cost = rack_value(tiles, round_, ruleset) * (FACTOR if opening.is_pairs else 1)
    return cost * factor + tiles.count(round_.okey) * OKEY_LEFT_POINTS


# American Rummikub


def _points_paid(round_: DiscardRound, ruleset: Ruleset) -> dict[int, int]:
    """Returns what the losers pay, which the winner of the round gets."""
    winner = round_.finish.seat if round_.finish else None
    points = {
        seat: -_price_of_rack(round_, seat, ruleset) * _factor_of_joker(round_)
        for seat in sorted(round_.order)
        if seat != winner
    }
    if winner is not None:
        points[winner] = -sum(points.values())
    return {seat: points[seat] + _for_twin(round_, seat, ruleset) for seat in sorted(points)}


def _price_of_rack(round_: DiscardRound, seat: int, ruleset: Ruleset) -> int:
    """Returns the value of a rack; at least UNMELDED_POINTS if its player never opened."""
    value = rack_value(round_.rack(seat).tiles, round_, ruleset)
    return value if round_.rack(seat).has_melded else max(value, UNMELDED_POINTS)


def _factor_of_joker(round_: DiscardRound) -> int:
    return FACTOR if round_.finish and round_.finish.tile == round_.okey else 1


def _for_twin(round_: DiscardRound, seat: int, ruleset: Ruleset) -> int:
    """Returns what a player gains who holds the trump's twin (score_trump_twin)."""
    return ruleset.score_trump_twin if round_.trump in round_.rack(seat).tiles else 0


# International Rummikub


def _points_of_modes(round_: DiscardRound, ruleset: Ruleset) -> dict[int, int]:
    """Returns the points of a round: those of the winner are negative."""
    winner = round_.finish.seat if round_.finish else None
    worth = _worth_of_finish(round_.finish, round_, ruleset) if round_.finish else UNMELDED_POINTS
    points = {}
    for seat in sorted(round_.order):
        cost = worth
        if round_.rack(seat).has_melded:
            value = rack_value(round_.rack(seat).tiles, round_, ruleset)
            cost = -(-value // _TEN) * _TEN if ruleset.score_round_up else value
        points[seat] = (-worth if seat == winner else cost) * _factor_of_joker(round_)
    return {seat: points[seat] - _for_twin(round_, seat, ruleset) for seat in points}


def _worth_of_finish(finish: Finish, round_: DiscardRound, ruleset: Ruleset) -> int:
    """Returns what a finish scores, before it is doubled."""
    if isinstance(finish, HandFinished):
        jokers = sum(part.count(JOKER) for part in finish.hand)
        return next(hand.scores[jokers] for hand in ruleset.hands if hand.name == finish.name)
    others = any(rack.has_melded for rack in round_.racks if rack.seat != finish.seat)
    return OPEN_POINTS if others and not finish.is_foot else OPEN_POINTS * FACTOR


# Winners


def round_winners(round_: DiscardRound, seats: Iterable[int], ruleset: Ruleset) -> tuple[int, ...]:
    """Returns the seats, of some, that have won a round; none if no player finished it."""
    finish = round_.finish
    return tuple(seat for seat in seats if finish and are_one_side((seat, finish.seat), ruleset))


def are_one_side(seats: tuple[int, ...], ruleset: Ruleset) -> bool:
    """Returns whether players win together: one player, or one pair (teams)."""
    return len({seat % 2 if ruleset.teams is Teams.PAIRS else seat for seat in seats}) == 1


def is_last_round(game: Game, ruleset: Ruleset) -> bool:
    """Returns whether a game ends after its finished rounds (score_start, match_rounds)."""
    if sum(result.end is not RoundEnd.VOID for result in game.results) == ruleset.match_rounds > 0:
        return True
    return ruleset.score_system is ScoreSystem.OKEY and any(player.total_points <= 0 for player in game.players)


def game_winners(players: tuple[Player, ...], ruleset: Ruleset) -> tuple[int, ...]:
    """Returns the players with the best total among those who have not resigned.

    In Okey partners have the same points. In 101 Okey the sum of both totals counts. The others have no partners.
    """
    able = [player for player in players if not player.resigned]
    if ruleset.score_system in {ScoreSystem.OKEY, ScoreSystem.AMERICAN}:
        totals = {player.seat: player.total_points for player in able}
    else:
        totals = {player.seat: -_side_total(player, players, ruleset) for player in able}
    return tuple(seat for seat, total in totals.items() if total == max(totals.values()))


def _side_total(player: Player, players: tuple[Player, ...], ruleset: Ruleset) -> int:
    return sum(one.total_points for one in players if are_one_side((player.seat, one.seat), ruleset))
