"""Ends a turn: returns the end of the round or the game, or the next turn, and penalties."""

from dataclasses import replace

from engine.clocks import start_turn
from engine.decisions import Context, TurnOver
from engine.events import Event, PlayerAbsent, PlayerResigned, RoundEnded, TurnStarted
from engine.game import Game, Playing, RoundEnd, next_seat, with_result
from engine.melding.analysis import Existence, situation_of
from engine.melding.events import LastChanceStarted, PlayerKnocked, RiverTileLaid, TurnPenalised
from engine.melding.game import round_of, rules_of
from engine.melding.round import Choosing, MeldingRound
from engine.melding.ruleset import (
    PoolEmptyLastChanceStart,
    PoolEmptyMode,
    PoolEmptyStuckTest,
    Ruleset,
)
from engine.melding.scoring import Standing, are_one_side, game_winners, is_last_round, score_round
from engine.results import game_ended, paused, with_racks
from engine.seats import from_seat
from engine.tiles import Tile


def settle(game: Game, event: Event, context: Context) -> tuple[Event, ...] | TurnOver:
    """Returns what follows the last event of a turn, or a resignation between two rounds.

    A resignation may lead to the penalty of another player, whose turn is then over too.
    """
    if isinstance(game.phase, Playing):
        return _consequences(game, round_of(game), event, context)
    if are_one_side(game.active_seats, rules_of(game)):
        return (game_ended(game, game.active_seats),)
    if game.is_abandoned or game.is_left_to_bots:
        return (game_ended(game, _winners(game), abandoned=game.is_abandoned),)
    return ()


def can_play(
    context: Context, round_: MeldingRound, seat: int, ruleset: Ruleset, tiles: tuple[Tile, ...] | None = None
) -> Existence:
    """Returns whether a player has a legal play with some tiles, in ascending order; None: with the whole rack."""
    rack = round_.rack(seat)
    playable = rack.tiles if tiles is None else tiles
    return context.analysis.can_play(situation_of(round_.table, playable, rack.has_melded, ruleset, round_.river))


def penalty(round_: MeldingRound, ruleset: Ruleset) -> tuple[Event, ...]:
    """Returns the penalty of the player whose turn it is, which ends that turn (R56, penalty_tiles).

    A pending River choice is made for the player, after the penalty: only while the choice is pending does the round
    show that the player has drawn, so that a penalty from an empty pool does not count as a pass.
    """
    penalised = TurnPenalised(round_.turn.seat, round_.pool[: ruleset.penalty_tiles])
    return (penalised, *default_river_choice(round_))


def default_river_choice(round_: MeldingRound) -> tuple[Event, ...]:
    """Returns the pending River choice, if any: the first tile is kept, the second goes to the River."""
    return (RiverTileLaid(round_.turn.seat, round_.step.tiles[1]),) if isinstance(round_.step, Choosing) else ()


def have_all_claimed(game: Game, round_: MeldingRound, *claiming: int) -> bool:
    """Returns whether all other players who have not resigned claim the error, some of them only now."""
    shown = round_.shown_play
    others = {seat for seat in game.active_seats if seat != round_.turn.seat}
    return shown is not None and shown.against is None and others <= {*shown.claimed, *claiming}


def _consequences(game: Game, round_: MeldingRound, event: Event, context: Context) -> tuple[Event, ...] | TurnOver:
    if any(not rack.tiles for rack in round_.racks):
        return _end_round(game, round_, RoundEnd.WENT_OUT, context)
    if isinstance(event, PlayerKnocked):
        return _end_round(game, round_, RoundEnd.KNOCKED, context)
    if are_one_side(game.active_seats, rules_of(game)):
        return _end_round(game, round_, RoundEnd.RESIGNED, context)
    if isinstance(event, PlayerAbsent | PlayerResigned) and game.is_abandoned:
        return (game_ended(game, _winners(game), abandoned=True),)
    if isinstance(event, PlayerResigned) and event.seat != round_.turn.seat:
        return TurnOver(penalty(round_, rules_of(game))) if have_all_claimed(game, round_) else ()
    if _is_blocked(game, round_, context):
        return _end_round(game, round_, RoundEnd.BLOCKED, context)
    return _next_turn(game, round_, context)


def _is_blocked(game: Game, round_: MeldingRound, context: Context) -> bool:
    """Returns whether the round is over although every player has tiles (R59, pool_empty_mode)."""
    if round_.pool:
        return False
    match rules_of(game).pool_empty_mode:
        case PoolEmptyMode.END_IMMEDIATELY:
            return True
        case PoolEmptyMode.ONE_LAST_CHANCE:
            return round_.last_chance is not None and not _without_resigned(game, round_.last_chance[1:])
        case PoolEmptyMode.CONTINUE_UNTIL_STUCK:
            return _is_stuck(game, round_, context)


def _is_stuck(game: Game, round_: MeldingRound, context: Context) -> bool:
    """Returns whether all have passed in a row, or no player has a play (pool_empty_stuck_test).

    If the analysis has no answer for some player, only the passes count.
    """
    test = rules_of(game).pool_empty_stuck_test
    all_passed = set(game.active_seats) <= set(round_.passed)
    if test is PoolEmptyStuckTest.CONSECUTIVE_PASSES or (test is PoolEmptyStuckTest.BOTH and all_passed):
        return all_passed
    answers = set()
    for seat in game.active_seats:
        answers.add(can_play(context, round_, seat, rules_of(game)))
        if Existence.YES in answers:
            return False
    return all_passed or Existence.UNKNOWN not in answers


def _without_resigned(game: Game, seats: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(seat for seat in seats if not game.player(seat).resigned)


def _next_turn(game: Game, round_: MeldingRound, context: Context) -> tuple[Event, ...]:
    """Returns the start of the next turn, or of the last turns when the pool has just run out."""
    one_more = rules_of(game).pool_empty_mode is PoolEmptyMode.ONE_LAST_CHANCE and not round_.pool
    if not one_more:
        return (start_turn(game, next_seat(game, round_), context.now_ms),)
    if round_.last_chance is not None:
        return (start_turn(game, _without_resigned(game, round_.last_chance[1:])[0], context.now_ms),)
    drawer = round_.turn.seat
    order = from_seat(round_.order, drawer)
    if rules_of(game).pool_empty_last_chance_start is PoolEmptyLastChanceStart.NEXT_PLAYER_FIRST:
        order = (*order[1:], drawer)
    seats = _without_resigned(game, order)
    return (LastChanceStarted(seats), start_turn(game, seats[0], context.now_ms))


def _end_round(game: Game, round_: MeldingRound, end: RoundEnd, context: Context) -> tuple[Event, ...]:
    """Returns the score of the round, with the end of the game or the time of the next round (round_pause_seconds)."""
    standings = tuple(
        Standing(seat, rack.tiles, game.player(seat).resigned, rack.has_melded, seat in round_.declined)
        for seat, rack in ((seat, round_.rack(seat)) for seat in round_.order)
    )
    scored = score_round(round_.number, end, standings, rules_of(game))
    by_seat = tuple(sorted(scored.seats, key=lambda seat: seat.seat))
    ended = RoundEnded(with_racks(game, replace(scored, seats=by_seat), round_))
    after = with_result(game, ended.result)
    is_last = is_last_round(round_.number, after.players, rules_of(game))
    if end is RoundEnd.RESIGNED or is_last or after.is_left_to_bots:
        return (ended, game_ended(after, _winners(after)))
    return (paused(game, ended, context.now_ms),)


def _winners(game: Game) -> tuple[int, ...]:
    """Returns the winners of a game between two rounds (match_winner). Without a finished round there are none."""
    return game_winners(game.players, game.results, rules_of(game)) if game.results else ()


def may_have_searched_all_racks(game: Game, events: tuple[Event, ...]) -> bool:
    """Returns whether an analysis may have searched every rack: at the end of a turn with an empty pool."""
    test = rules_of(game).pool_empty_stuck_test
    if test is PoolEmptyStuckTest.CONSECUTIVE_PASSES or game.round is None or game.round.pool:
        return False
    return any(isinstance(event, TurnStarted | RoundEnded) for event in events)
