"""Points: of tiles left on a rack, of rounds, of games (R60 to R64)."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.game import Player, RoundEnd, RoundResult, SeatResult
from engine.ruleset import MatchEnd, Ruleset, ScoreBlockedPoints, ScoreBlockedWinner
from engine.tiles import JOKER, Tile, value_of


@dataclass(frozen=True, slots=True)
class Standing:
    """What a player holds when a round ends.

    Attributes:
        seat: The seat.
        tiles: The tiles left on the rack.
        resigned: Whether the player has resigned, who cannot win the round then.
        has_melded: Whether the player made the initial meld (score_never_melded, contract_points).
        declined: Whether the player could have made it and did not (score_never_melded FLAT_100_OR_200).
    """

    seat: int
    tiles: tuple[Tile, ...]
    resigned: bool = False
    has_melded: bool = True
    declined: bool = False


def rack_value(tiles: tuple[Tile, ...], ruleset: Ruleset) -> int:
    """What tiles cost on a rack: a numbered tile its value, a joker score_joker_penalty (R61)."""
    return sum(ruleset.score_joker_penalty if t == JOKER else value_of(t) for t in tiles)


def score_round(number: int, end: RoundEnd, standings: tuple[Standing, ...], ruleset: Ruleset) -> RoundResult:
    """Scores a round (R60, R62, R63).

    Args:
        number: The round's, from 1.
        end: How it ended.
        standings: One for each player, in turn order from the starter: a shared win's remainder goes to the earliest.
        ruleset: score_joker_penalty, score_blocked_winner, score_blocked_points.

    Returns:
        The result, players in the order of the standings.
    """
    values = {standing.seat: rack_value(standing.tiles, ruleset) for standing in standings}
    winners = _winners(end, standings, ruleset)
    difference = end is RoundEnd.BLOCKED and ruleset.score_blocked_points is ScoreBlockedPoints.DIFFERENCE
    deducted = values[winners[0]] if difference else 0
    lost = {seat: max(0, value - deducted) for seat, value in values.items() if seat not in winners}
    share, remainder = divmod(sum(lost.values()), len(winners))
    won = {seat: share + (place < remainder) for place, seat in enumerate(winners)}
    seats = tuple(
        SeatResult(
            seat=standing.seat,
            rack_value=values[standing.seat],
            tile_count=len(standing.tiles),
            points=won[standing.seat] if standing.seat in won else -lost[standing.seat],
        )
        for standing in standings
    )
    return RoundResult(number, end, winners, seats)


def _winners(end: RoundEnd, standings: tuple[Standing, ...], ruleset: Ruleset) -> tuple[int, ...]:
    able = tuple(standing for standing in standings if not standing.resigned)
    measure = _measure(end, ruleset)
    best = min(map(measure, able))
    return tuple(standing.seat for standing in able if measure(standing) == best)


def _measure(end: RoundEnd, ruleset: Ruleset) -> Callable[[Standing], tuple[int, ...]]:
    """What the winner has least of; the other metric settles a tie (R62, score_blocked_winner)."""
    if end is not RoundEnd.BLOCKED:
        return lambda standing: (len(standing.tiles),)
    if ruleset.score_blocked_winner is ScoreBlockedWinner.LOWEST_VALUE:
        return lambda standing: (rack_value(standing.tiles, ruleset), len(standing.tiles))
    return lambda standing: (len(standing.tiles), rack_value(standing.tiles, ruleset))


def is_last_round(rounds: int, players: tuple[Player, ...], ruleset: Ruleset) -> bool:
    """Whether a game ends after so many rounds with these totals (match_end)."""
    match ruleset.match_end:
        case MatchEnd.SINGLE_ROUND:
            return True
        case MatchEnd.FIXED_ROUNDS:
            return rounds >= ruleset.match_rounds
        case MatchEnd.TARGET_SCORE:
            return any(player.total_points >= ruleset.match_target_score for player in players)
        case MatchEnd.ROUNDS_PER_PLAYER:
            return rounds >= len(players)


def game_winners(players: tuple[Player, ...]) -> tuple[int, ...]:
    """The seats with the highest total among the players who have not resigned."""
    able = tuple(player for player in players if not player.resigned)
    best = max(player.total_points for player in able)
    return tuple(player.seat for player in able if player.total_points == best)
