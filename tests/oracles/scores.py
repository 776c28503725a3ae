"""Computes the results of rounds and games from the racks, by docs/rules.md (R60 to R64).

Nothing here uses the engine's scoring, which it checks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.game import (
    Game,
    RoundEnd,
    RoundResult,
    SeatResult,
)
from engine.melding.game import round_of, rules_of
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import (
    Contract,
    MatchEnd,
    MatchWinner,
    Ruleset,
    ScoreBlockedPoints,
    ScoreBlockedTie,
    ScoreBlockedWinner,
    ScoreNeverMelded,
    ScoreTileValues,
    ScoreWinner,
    Teams,
)
from engine.seats import Player
from engine.tiles import JOKER, JOKERS, Tile

COMPARED = frozenset({RoundEnd.BLOCKED, RoundEnd.KNOCKED})
"""The ends of rounds that the lowest rack wins."""


@dataclass(frozen=True)
class Hand:
    """A player at the end of a round."""

    seat: int
    value: int
    count: int
    has_melded: bool
    declined: bool
    resigned: bool


def number_of(tile: Tile) -> int:
    """Returns the value of a numbered tile. 53 is the joker; the fifth color follows it."""
    return (tile - 1 - (tile > JOKER)) % 13 + 1


def worth(tile: Tile, ruleset: Ruleset) -> int:
    """Returns what a tile costs on a rack."""
    if tile in JOKERS:
        return ruleset.score_joker_penalty
    number = number_of(tile)
    match ruleset.score_tile_values:
        case ScoreTileValues.NUMBERS:
            return number
        case ScoreTileValues.COURT_10:
            return 10 if number in {11, 12, 13} else number
        case ScoreTileValues.COURT_10_ACE_11:
            return {1: 11, 11: 10, 12: 10, 13: 10}.get(number, number)
        case ScoreTileValues.FIVE_OR_TEN:
            return 10 if number >= 10 else 5


def expected_result(game: Game, number: int, end: RoundEnd) -> RoundResult:
    """Returns the expected result of a round that has just ended."""
    round_, ruleset = round_of(game), rules_of(game)
    hands = _hands(game, round_)
    able = [hand for hand in hands if not hand.resigned]
    best = _best(end, able, ruleset)
    if ruleset.teams is Teams.PAIRS:
        winners = {hand.seat for hand in able if hand.seat % 2 in {seat % 2 for seat in best}}
        points = _points_in_pairs(end, hands, best, ruleset)
    else:
        winners = set(best)
        points = _points(end, hands, best, ruleset)
    sign = -1 if ruleset.match_winner is MatchWinner.LOWEST_TOTAL else 1
    seats = []
    for hand in sorted(hands, key=lambda hand: hand.seat):
        contract = ruleset.contract is not Contract.OFF and hand.has_melded and hand.seat in winners
        won = points[hand.seat] + (ruleset.contract_points if contract else 0)
        seats.append(SeatResult(hand.seat, hand.value, hand.count, sign * won))
    return RoundResult(number, end, tuple(hand.seat for hand in hands if hand.seat in winners), tuple(seats))


def _hands(game: Game, round_: Round) -> list[Hand]:
    """Returns the hands, in turn order from the starter."""
    hands = []
    for seat in round_.order:
        rack = round_.rack(seat)
        value = sum(worth(tile, rules_of(game)) for tile in rack.tiles)
        declined, resigned = seat in round_.declined, game.player(seat).resigned
        hands.append(Hand(seat, value, len(rack.tiles), rack.has_melded, declined, resigned))
    return hands


def _best(end: RoundEnd, able: Sequence[Hand], ruleset: Ruleset) -> list[int]:
    """Returns the players who win by their own rack, in turn order."""
    by_value = end in COMPARED and ruleset.score_blocked_winner is ScoreBlockedWinner.LOWEST_VALUE
    ways = ["value", "count"] if by_value else ["count", "value"]
    if end in COMPARED and ruleset.score_blocked_tie is not ScoreBlockedTie.OTHER_METRIC_THEN_SHARE:
        ways = ways[:1]
    best = list(able)
    for way in ways:
        least = min(getattr(hand, way) for hand in best)
        best = [hand for hand in best if getattr(hand, way) == least]
    alone = end not in COMPARED or ruleset.score_blocked_tie is ScoreBlockedTie.TURN_ORDER
    return [hand.seat for hand in best[:1] if alone] or [hand.seat for hand in best]


def _points(end: RoundEnd, hands: Sequence[Hand], best: Sequence[int], ruleset: Ruleset) -> Mapping[int, int]:
    """Returns each player's points in a game without teams, before contracts."""
    if ruleset.score_winner is ScoreWinner.ONE_WIN:
        return {hand.seat: int(hand.seat in best) for hand in hands}
    lowest = min(hand.value for hand in hands if hand.seat in best)
    points = dict.fromkeys((hand.seat for hand in hands), 0)
    to_share = 0
    for hand in hands:
        if hand.seat in best:
            continue
        lost, won = _lost_and_won(end, hand, lowest, ruleset)
        if ruleset.score_winner is ScoreWinner.SUM_OF_LOSERS:
            points[hand.seat] -= lost
        if not hand.has_melded and ruleset.score_never_melded is ScoreNeverMelded.CREDIT_EVERY_OTHER_PLAYER:
            for seat in points:
                points[seat] += lost if seat != hand.seat else 0
        else:
            to_share += won
    for place, seat in enumerate(best):
        points[seat] += to_share // len(best) + (place < to_share % len(best))
    return points


def _lost_and_won(end: RoundEnd, loser: Hand, lowest: int, ruleset: Ruleset) -> tuple[int, int]:
    """Returns the points that a loser loses, and the points won from them."""
    beyond = max(0, loser.value - lowest)
    how = ruleset.score_blocked_points if end in COMPARED else ScoreBlockedPoints.NORMAL
    lost, won = {
        ScoreBlockedPoints.DIFFERENCE: (beyond, beyond),
        ScoreBlockedPoints.NORMAL: (loser.value, loser.value),
        ScoreBlockedPoints.OWN_PLUS_DIFFERENCE: (loser.value, beyond),
    }[how]
    if loser.has_melded:
        return lost, won
    flat = 200 if loser.declined else 100
    return {
        ScoreNeverMelded.OFF: (lost, won),
        ScoreNeverMelded.CREDIT_EVERY_OTHER_PLAYER: (loser.value, loser.value),
        ScoreNeverMelded.FLAT_100: (100, 100),
        ScoreNeverMelded.FLAT_100_OR_200: (flat, flat),
        ScoreNeverMelded.DOUBLE: (2 * lost, 2 * won),
    }[ruleset.score_never_melded]


def _points_in_pairs(end: RoundEnd, hands: Sequence[Hand], best: Sequence[int], ruleset: Ruleset) -> Mapping[int, int]:
    """Returns points in pairs: for both winners, the other side's tiles minus those on the winning side's racks."""
    counts_own = end in COMPARED and ruleset.score_blocked_points is ScoreBlockedPoints.DIFFERENCE
    winning, held = {seat % 2 for seat in best}, [0, 0]
    for hand in hands:
        held[hand.seat % 2] += hand.value if counts_own or hand.seat not in best else 0
    sides = {hand.seat: hand.seat % 2 for hand in hands}
    return {seat: max(0, held[1 - side] - held[side]) if side in winning else 0 for seat, side in sides.items()}


def expected_winners(game: Game) -> tuple[int, ...] | None:
    """Returns the winners of the game after the round that has just ended; None if it continues."""
    ruleset, result = rules_of(game), game.results[-1]
    over = {
        MatchEnd.SINGLE_ROUND: True,
        MatchEnd.FIXED_ROUNDS: len(game.results) >= ruleset.match_rounds,
        MatchEnd.TARGET_SCORE: any(player.total_points >= ruleset.match_target_score for player in game.players),
        MatchEnd.ROUNDS_PER_PLAYER: len(game.results) >= len(game.players),
    }[ruleset.match_end]
    only_bots = all(player.bot or player.resigned for player in game.players)
    if not (over or only_bots or result.end is RoundEnd.RESIGNED):
        return None
    able = [player for player in game.players if not player.resigned]
    merits = {player.seat: _merit(player, game.results, ruleset) for player in able}
    best = {seat for seat, merit in merits.items() if merit == max(merits.values())}
    if ruleset.teams is Teams.PAIRS:
        best = {seat for seat in merits if seat % 2 in {other % 2 for other in best}}
    return tuple(sorted(best))


def _merit(player: Player, results: Iterable[RoundResult], ruleset: Ruleset) -> tuple[int, int]:
    """Returns the sort key that the winner of a game maximizes."""
    match ruleset.match_winner:
        case MatchWinner.HIGHEST_TOTAL:
            return player.total_points, 0
        case MatchWinner.LOWEST_TOTAL:
            return -player.total_points, 0
        case MatchWinner.MOST_ROUND_WINS_THEN_TOTAL:
            return sum(player.seat in result.winners for result in results), player.total_points
