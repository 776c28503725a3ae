"""Ends a turn: returns the end of the round or the game, or the next turn."""

from engine.clocks import start_turn
from engine.decisions import Context
from engine.discard.events import TilesLaid
from engine.discard.game import round_of, rules_of
from engine.discard.round import DiscardRound
from engine.discard.ruleset import PoolEmpty
from engine.discard.scoring import are_one_side, game_winners, is_last_round, points_of, rack_value, round_winners
from engine.events import Event, PlayerAbsent, PlayerResigned, RoundEnded
from engine.game import Game, Playing, RoundEnd, RoundResult, SeatResult, next_seat, with_result
from engine.results import game_ended, paused, with_racks


def settle(game: Game, event: Event, context: Context) -> tuple[Event, ...]:
    """Returns what follows the last event of a turn, or a resignation between two rounds."""
    if isinstance(game.phase, Playing):
        return _consequences(game, round_of(game), event, context)
    if are_one_side(game.active_seats, rules_of(game)):
        return (game_ended(game, game.active_seats),)
    if game.is_abandoned or game.is_left_to_bots:
        return (game_ended(game, game_winners(game.players, rules_of(game)), abandoned=game.is_abandoned),)
    return ()


def _consequences(game: Game, round_: DiscardRound, event: Event, context: Context) -> tuple[Event, ...]:
    if isinstance(event, TilesLaid):  # all have opened with pairs
        return _end_round(game, round_, RoundEnd.VOID, context)
    if round_.finish:
        return _end_round(game, round_, RoundEnd.WENT_OUT, context)
    if are_one_side(game.active_seats, rules_of(game)):
        return _end_round(game, round_, RoundEnd.RESIGNED, context)
    if isinstance(event, PlayerAbsent | PlayerResigned) and game.is_abandoned:
        winners = game_winners(game.players, rules_of(game)) if game.results else ()
        return (game_ended(game, winners, abandoned=True),)
    if isinstance(event, PlayerResigned) and event.seat != round_.turn.seat:
        return ()
    if round_.is_passed or (not round_.pool and rules_of(game).pool_empty is PoolEmpty.ROUND_ENDS):
        return _end_round(game, round_, RoundEnd.BLOCKED, context)
    return (start_turn(game, next_seat(game, round_), context.now_ms),)


def _end_round(game: Game, round_: DiscardRound, end: RoundEnd, context: Context) -> tuple[Event, ...]:
    """Returns the score of the round, with the end of the game or the time of the next round (round_pause_seconds)."""
    rules = rules_of(game)
    points = points_of(round_, end, rules)
    racks = {seat: round_.rack(seat).tiles for seat in points}
    seats = tuple(
        SeatResult(seat, rack_value(racks[seat], round_, rules), len(racks[seat]), points[seat]) for seat in points
    )
    winners = round_winners(round_, game.active_seats, rules)
    ended = RoundEnded(with_racks(game, RoundResult(round_.number, end, winners, seats), round_))
    after = with_result(game, ended.result)
    is_last = is_last_round(after, rules)
    if end is RoundEnd.RESIGNED or is_last or after.is_left_to_bots:
        return (ended, game_ended(after, game_winners(after.players, rules)))
    return (paused(game, ended, context.now_ms),)
