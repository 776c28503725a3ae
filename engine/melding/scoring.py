"""Scores racks, rounds, and games (R60 to R64)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from engine.game import RoundEnd, RoundResult, SeatResult
from engine.melding.ruleset import (
    PAIRS_PLAYERS,
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
from engine.tiles import JOKERS, MAX_VALUE, Tile, value_of


@dataclass(frozen=True, slots=True)
class Standing:
    """A player at the end of a round.

    Attributes:
        seat: The seat.
        tiles: The tiles left on the rack.
        resigned: Whether the player has resigned, and so cannot win the round.
        has_melded: Whether the player made the initial meld (score_never_melded, contract_points).
        declined: Whether the player could have made it and did not (score_never_melded FLAT_100_OR_200).
    """

    seat: int
    tiles: tuple[Tile, ...]
    resigned: bool = False
    has_melded: bool = True
    declined: bool = False


COMPARED: Final = frozenset({RoundEnd.BLOCKED, RoundEnd.KNOCKED})
"""The ends of rounds that the lowest rack wins (score_blocked_winner)."""
_COURT: Final = 10
"""What a court card, 11 to 13, counts in most card games."""
_NUMBERS: Final = range(1, MAX_VALUE + 1)
_VALUES: Final[Mapping[ScoreTileValues, tuple[int, ...]]] = {
    ScoreTileValues.NUMBERS: tuple(_NUMBERS),
    ScoreTileValues.COURT_10: tuple(min(number, _COURT) for number in _NUMBERS),
    ScoreTileValues.COURT_10_ACE_11: tuple(11 if number == 1 else min(number, _COURT) for number in _NUMBERS),
    ScoreTileValues.FIVE_OR_TEN: tuple(5 if number < _COURT else 10 for number in _NUMBERS),
}
"""What numbered tiles on a rack count, from 1 on (score_tile_values)."""


def rack_value(tiles: tuple[Tile, ...], ruleset: Ruleset) -> int:
    """Returns the value of tiles left on a rack (R61, score_tile_values, score_joker_penalty)."""
    values = _VALUES[ruleset.score_tile_values]
    return sum(ruleset.score_joker_penalty if t in JOKERS else values[value_of(t) - 1] for t in tiles)


def may_knock(tiles: tuple[Tile, ...], ruleset: Ruleset) -> bool:
    """Returns whether tiles left on a rack are few enough points to knock with (knock_limit)."""
    return ruleset.knock_limit > 0 and len(tiles) > 0 and rack_value(tiles, ruleset) <= ruleset.knock_limit


def score_round(number: int, end: RoundEnd, standings: tuple[Standing, ...], ruleset: Ruleset) -> RoundResult:
    """Returns the result of a round, players and winners in the order of the standings (R60, R62, R63).

    Args:
        number: The number of the round, from 1.
        end: How it ended.
        standings: The players, in turn order from the starter. The remainder of a shared win goes to the earliest.
        ruleset: The rules.
    """
    best = _best(end, standings, ruleset)
    ended = _Ended(end, standings, best, ruleset)
    winners = best if ruleset.teams is Teams.OFF else _with_partners(best, ended.able)
    points = _points(ended) if ruleset.teams is Teams.OFF else _points_in_pairs(ended)
    sign = -1 if ruleset.match_winner is MatchWinner.LOWEST_TOTAL else 1
    seats = tuple(
        SeatResult(
            seat=standing.seat,
            rack_value=ended.value(standing),
            tile_count=len(standing.tiles),
            points=sign * (points[standing.seat] + _for_contract(standing, winners, ruleset)),
        )
        for standing in standings
    )
    return RoundResult(number, end, winners, seats)


@dataclass(frozen=True, slots=True)
class _Ended:
    """A finished round, and the seats that have won it by their own rack."""

    end: RoundEnd
    standings: tuple[Standing, ...]
    best: tuple[int, ...]
    ruleset: Ruleset

    @property
    def seats(self) -> tuple[int, ...]:
        return tuple(standing.seat for standing in self.standings)

    @property
    def able(self) -> tuple[int, ...]:
        return tuple(standing.seat for standing in self.standings if not standing.resigned)

    @property
    def losers(self) -> tuple[Standing, ...]:
        return tuple(standing for standing in self.standings if standing.seat not in self.best)

    def value(self, standing: Standing) -> int:
        return rack_value(standing.tiles, self.ruleset)

    def is_blocked_under(self, *points: ScoreBlockedPoints) -> bool:
        return self.end in COMPARED and self.ruleset.score_blocked_points in points

    def lost(self, loser: Standing) -> int:
        """Returns the points that a loser loses (R60, R63, score_never_melded)."""
        return self._paid(loser, self.is_blocked_under(ScoreBlockedPoints.DIFFERENCE))

    def won(self, loser: Standing) -> int:
        """Returns the points that the winners together win from a loser (R60, R63, score_never_melded)."""
        differs = self.is_blocked_under(ScoreBlockedPoints.DIFFERENCE, ScoreBlockedPoints.OWN_PLUS_DIFFERENCE)
        return self._paid(loser, differs)

    def _paid(self, loser: Standing, as_difference: bool) -> int:
        points = self._difference(loser) if as_difference else self.value(loser)
        if loser.has_melded:
            return points
        match self.ruleset.score_never_melded:
            case ScoreNeverMelded.OFF:
                return points
            case ScoreNeverMelded.CREDIT_EVERY_OTHER_PLAYER:
                return self.value(loser)
            case ScoreNeverMelded.FLAT_100:
                return 100
            case ScoreNeverMelded.FLAT_100_OR_200:
                return 200 if loser.declined else 100
            case ScoreNeverMelded.DOUBLE:
                return 2 * points

    def _difference(self, loser: Standing) -> int:
        lowest = min(self.value(standing) for standing in self.standings if standing.seat in self.best)
        return max(0, self.value(loser) - lowest)


def _points(ended: _Ended) -> dict[int, int]:
    """Returns each player's points in a game without teams (score_winner)."""
    if ended.ruleset.score_winner is ScoreWinner.ONE_WIN:
        return {seat: int(seat in ended.best) for seat in ended.seats}
    credited = _credited(ended)
    share, remainder = divmod(sum(ended.won(u) for u in ended.losers if u not in credited), len(ended.best))
    points = {seat: share + (place < remainder) for place, seat in enumerate(ended.best)}
    pay = ended.ruleset.score_winner is ScoreWinner.SUM_OF_LOSERS
    points |= {loser.seat: -ended.lost(loser) if pay else 0 for loser in ended.losers}
    return {seat: points[seat] + sum(ended.lost(u) for u in credited if u.seat != seat) for seat in ended.seats}


def _credited(ended: _Ended) -> tuple[Standing, ...]:
    """Returns the losers whose points go to every other player, not only to the winner."""
    if ended.ruleset.score_never_melded is not ScoreNeverMelded.CREDIT_EVERY_OTHER_PLAYER:
        return ()
    return tuple(loser for loser in ended.losers if not loser.has_melded)


def _points_in_pairs(ended: _Ended) -> dict[int, int]:
    """Returns each player's points in pairs: the other side's tiles minus the own side's, at least 0."""
    side = _sides(ended.seats)
    counts_own = ended.is_blocked_under(ScoreBlockedPoints.DIFFERENCE)
    held = [0, 0]
    for standing in ended.standings:
        held[side[standing.seat]] += ended.value(standing) if counts_own or standing in ended.losers else 0
    winning = {side[seat] for seat in ended.best}
    return {seat: max(0, held[1 - side[seat]] - held[side[seat]]) * (side[seat] in winning) for seat in ended.seats}


def _sides(seats: Iterable[int]) -> dict[int, int]:
    """Returns the team, 0 or 1, of each seat. Opposite seats of four are partners.

    After a resignation a round has fewer players, at some of the seats 1 to 4.
    """
    ascending = sorted(seats)
    return {seat: (place if len(ascending) == PAIRS_PLAYERS else seat - 1) % 2 for place, seat in enumerate(ascending)}


def are_one_side(seats: tuple[int, ...], ruleset: Ruleset) -> bool:
    """Returns whether the remaining players win together: one player, or one pair (teams)."""
    return len(seats) == 1 or (ruleset.teams is Teams.PAIRS and len({seat % 2 for seat in seats}) == 1)


def _with_partners(best: tuple[int, ...], seats: tuple[int, ...]) -> tuple[int, ...]:
    side = _sides(seats)
    winning = {side[seat] for seat in best}
    return tuple(seat for seat in seats if side[seat] in winning)


def _for_contract(standing: Standing, winners: tuple[int, ...], ruleset: Ruleset) -> int:
    """Returns the extra points of a player: contract_points for a winner who has melded."""
    earned = ruleset.contract is not Contract.OFF and standing.has_melded and standing.seat in winners
    return ruleset.contract_points if earned else 0


def _best(end: RoundEnd, standings: tuple[Standing, ...], ruleset: Ruleset) -> tuple[int, ...]:
    """Returns the winners. Only a round whose racks are compared can have several (score_blocked_tie)."""
    able = tuple(standing for standing in standings if not standing.resigned)
    measure = _measure(end, ruleset)
    best = min(map(measure, able))
    tied = tuple(standing.seat for standing in able if measure(standing) == best)
    alone = end not in COMPARED or ruleset.score_blocked_tie is ScoreBlockedTie.TURN_ORDER
    return tied[:1] if alone else tied


def _measure(end: RoundEnd, ruleset: Ruleset) -> Callable[[Standing], tuple[int, ...]]:
    """Returns the function that the winner minimizes. A second metric may break ties (R62, score_blocked_winner)."""
    is_blocked = end in COMPARED
    by_value = is_blocked and ruleset.score_blocked_winner is ScoreBlockedWinner.LOWEST_VALUE
    by_both = not is_blocked or ruleset.score_blocked_tie is ScoreBlockedTie.OTHER_METRIC_THEN_SHARE

    def measure(standing: Standing) -> tuple[int, ...]:
        value, count = rack_value(standing.tiles, ruleset), len(standing.tiles)
        return ((value, count) if by_value else (count, value))[: 1 + by_both]

    return measure


def is_last_round(rounds: int, players: tuple[Player, ...], ruleset: Ruleset) -> bool:
    """Returns whether a game ends after a number of rounds with these totals (match_end)."""
    match ruleset.match_end:
        case MatchEnd.SINGLE_ROUND:
            return True
        case MatchEnd.FIXED_ROUNDS:
            return rounds >= ruleset.match_rounds
        case MatchEnd.TARGET_SCORE:
            return any(player.total_points >= ruleset.match_target_score for player in players)
        case MatchEnd.ROUNDS_PER_PLAYER:
            return rounds >= len(players)


def game_winners(players: tuple[Player, ...], results: tuple[RoundResult, ...], ruleset: Ruleset) -> tuple[int, ...]:
    """Returns the winners of a game, among the players who have not resigned (match_winner). Partners win together.

    Args:
        players: All players, by seat, with their totals.
        results: The rounds of the game.
        ruleset: The rules.
    """
    able = tuple(player for player in players if not player.resigned)
    merit = {player.seat: _merit(player, results, ruleset) for player in able}
    best = tuple(seat for seat in merit if merit[seat] == max(merit.values()))
    if ruleset.teams is Teams.OFF:
        return best
    winners = _with_partners(best, tuple(player.seat for player in players))
    return tuple(seat for seat in merit if seat in winners)


def _merit(player: Player, results: tuple[RoundResult, ...], ruleset: Ruleset) -> tuple[int, int]:
    """Returns the sort key of a player that the winner of a game maximizes."""
    match ruleset.match_winner:
        case MatchWinner.HIGHEST_TOTAL:
            return (0, player.total_points)
        case MatchWinner.MOST_ROUND_WINS_THEN_TOTAL:
            return (sum(player.seat in result.winners for result in results), player.total_points)
        case MatchWinner.LOWEST_TOTAL:
            return (0, -player.total_points)
