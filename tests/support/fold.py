"""A reference reducer: applies a change to a view of a game, both as the contract's messages.

It imports only generated code, so it shows that the contract says everything that a client needs to keep its view up to
date. A field that an event does not mention stays as it was.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from rummikub.v1 import discard_pb2, game_pb2, ruleset_pb2
from rummikub.v1.game_pb2 import Game, GameChange, Player
from rummikub.v1.tile_pb2 import TILE_JOKER, TILE_UNSPECIFIED, Tile


def fold(before: Game, change: GameChange) -> Game:
    """Returns the view after a change, as of the change's time.

    What no event has (game_id, seat, visibility, labels, join_code) must be in the view, as GetGame returns it.
    """
    game = Game()
    game.CopyFrom(before)
    game.revision = change.revision
    game.etag = change.etag
    for time in (game.update_time, game.server_time):
        time.CopyFrom(change.time)
    for event in change.events:
        name = event.WhichOneof("event")
        assert name, f"an event without content in {change}"
        FOLDS[name](game, getattr(event, name), change)
        if name in ACTIONS:
            _player(game, getattr(event, name).seat).timeouts_in_a_row = 0
    return game


LASTING: Final = ("ruleset", "settings", "visibility", "labels")
"""The fields of a game that never change: only the first game of a stream has them."""


def completed(game: Game, first: Game) -> Game:
    """Returns a game of a stream with what only the first one has."""
    whole = Game()
    whole.CopyFrom(game)
    whole.ruleset.CopyFrom(first.ruleset)
    whole.settings.CopyFrom(first.settings)
    whole.visibility = first.visibility
    whole.labels.update(first.labels)
    return whole


def _player(game: Game, seat: int) -> Player:
    return next(player for player in game.players if player.seat == seat)


def _take(game: Game, seat: int, count: int, tiles: Iterable[Tile.ValueType]) -> None:
    """Adds tiles to a rack: their number to everyone's view, the tiles to their owner's."""
    _player(game, seat).tile_count += count
    if seat == game.seat:
        game.rack[:] = sorted([*game.rack, *tiles])


def _draw(game: Game, seat: int, count: int, tiles: Iterable[Tile.ValueType]) -> None:
    """Moves tiles from the pool to a rack."""
    game.pool_count -= count
    _take(game, seat, count, tiles)


def _pass(game: Game, seat: int) -> None:
    game.passed_seats[:] = sorted({*game.passed_seats, seat})


def _game_created(game: Game, event: game_pb2.GameCreated, change: GameChange) -> None:
    game.state = game_pb2.GAME_STATE_LOBBY
    game.ruleset.CopyFrom(event.ruleset)
    game.settings.CopyFrom(event.settings)
    game.reserved_seats.extend(event.reserved_seats)
    game.create_time.CopyFrom(change.time)
    game.deal_commitment = event.deal_commitment


def _player_joined(game: Game, event: game_pb2.PlayerJoined, _: GameChange) -> None:
    is_bot = event.bot_level != game_pb2.BOT_LEVEL_UNSPECIFIED
    joined = Player(
        seat=event.seat,
        name=event.name,
        bot_level=event.bot_level,
        is_ready=is_bot,
        is_host=event.is_host,
        is_program=event.is_program,
        deal_seed=event.deal_seed,
    )
    if game.ruleset.discard.scoring.system == ruleset_pb2.SCORE_SYSTEM_OKEY:
        joined.total_points = game.ruleset.discard.scoring.start
    players = sorted([*game.players, joined], key=lambda player: player.seat)
    del game.players[:]
    game.players.extend(players)
    _unreserve(game, event.seat)
    if event.HasField("start_time"):
        game.next_round_time.CopyFrom(event.start_time)


def _player_left(game: Game, event: game_pb2.PlayerLeft | game_pb2.PlayerKicked, _: GameChange) -> None:
    remaining = [player for player in game.players if player.seat != event.seat]
    del game.players[:]
    game.players.extend(remaining)
    _unreserve(game, event.seat)
    game.ClearField("next_round_time")
    if event.HasField("host_seat"):
        _player(game, event.host_seat).is_host = True
    if event.seat == game.seat:
        game.ClearField("seat")
        game.join_code = ""


def _player_kicked(game: Game, event: game_pb2.PlayerKicked, change: GameChange) -> None:
    _player_left(game, event, change)
    if event.join_code:
        game.join_code = event.join_code


def _unreserve(game: Game, seat: int) -> None:
    remaining = [one for one in game.reserved_seats if one.seat != seat]
    del game.reserved_seats[:]
    game.reserved_seats.extend(remaining)


def _round_started(game: Game, event: game_pb2.RoundStarted, _: GameChange) -> None:
    game.state = game_pb2.GAME_STATE_PLAYING
    game.round = event.round
    game.starter_seat = event.starter_seat
    game.turn_order[:] = event.turn_order
    game.pool_count = event.pool_count
    game.rack[:] = event.rack
    for name in ("river", "passed_seats", "last_chance_seats", "join_code"):
        game.ClearField(name)
    del game.table.melds[:]
    game.ClearField("next_round_time")
    for player in game.players:
        if game.settings.clock_total.seconds:
            player.time_left.CopyFrom(game.settings.clock_total)
        player.tile_count = game.ruleset.melding.deal.hand_size if player.seat in event.turn_order else 0
        player.has_melded = player.seat in event.turn_order and not game.ruleset.melding.initial_meld.needed
    if event.HasField("table"):
        game.table.CopyFrom(event.table)
    for rack in event.start_racks:
        player = next(one for one in game.players if one.seat == rack.seat)
        player.tile_count = rack.tile_count
        player.has_melded |= rack.has_melded


def _turn_started(game: Game, event: game_pb2.TurnStarted, change: GameChange) -> None:
    game.turn.CopyFrom(event.turn)
    if game.HasField("discard_board"):
        game.discard_board.tiles_laid = 0
        game.discard_board.owed_tile = TILE_UNSPECIFIED
    if any(other.hands_dealt.indicator for other in change.events):
        _must_discard(game)
    last = list(game.last_chance_seats)
    if last:
        game.last_chance_seats[:] = last[last.index(event.turn.seat) :]


def _tiles_played(game: Game, event: game_pb2.TilesPlayed, _: GameChange) -> None:
    player = _player(game, event.seat)
    player.has_melded = True
    player.tile_count += len(event.pulled) - len(event.tiles)
    if event.seat == game.seat:
        rack = [*game.rack, *event.pulled]
        for tile in event.tiles:
            rack.remove(tile)
        game.rack[:] = sorted(rack)
    if event.pulled:
        del game.river[-len(event.pulled) :]
    game.table.CopyFrom(event.table)
    del game.passed_seats[:]


def _tiles_drawn(game: Game, event: game_pb2.TilesDrawn, _: GameChange) -> None:
    if game.ruleset.melding.turn.draw == ruleset_pb2.TURN_DRAW_TWO_RIVER and event.tile_count == 2:
        game.pool_count -= 2
        game.turn.step = game_pb2.TURN_STEP_CHOOSING
        game.turn.tiles_drawn[:] = event.tiles
        return
    _draw(game, event.seat, event.tile_count, event.tiles)
    if game.ruleset.melding.turn.play_after_draw != ruleset_pb2.TURN_PLAY_AFTER_DRAW_FORBIDDEN:
        _goes_on(game, event)


def _goes_on(game: Game, event: game_pb2.TilesDrawn) -> None:
    """Lets the turn go on after a draw, with a further one or without. The third draw of a turn ends it."""
    is_second = game.turn.step == game_pb2.TURN_STEP_DRAWING
    again = {ruleset_pb2.TURN_DRAW_ONE_OR_TWO: not is_second, ruleset_pb2.TURN_DRAW_ONE_TO_THREE: True}
    if again.get(game.ruleset.melding.turn.draw, False):
        game.turn.step = game_pb2.TURN_STEP_DRAWING
        game.turn.tiles_drawn.extend(event.tiles)
    else:
        game.turn.step = game_pb2.TURN_STEP_DRAWN
        game.turn.tiles_drawn[:] = event.tiles[-1:]


def _turn_passed(game: Game, event: game_pb2.TurnPassed, _: GameChange) -> None:
    _pass(game, event.seat)


def _turn_timed_out(game: Game, event: game_pb2.TurnTimedOut, change: GameChange) -> None:
    player = _player(game, event.seat)
    had_time = not player.HasField("time_left") or player.time_left.ToMilliseconds() > 0
    player.timeouts_in_a_row += had_time
    _turn_cut_short(game, event, change)


def _turn_cut_short(game: Game, event: game_pb2.TurnTimedOut | game_pb2.TurnPenalised, _: GameChange) -> None:
    if event.tile_count:
        _draw(game, event.seat, event.tile_count, event.tiles)
    elif not game.pool_count and game.turn.step == game_pb2.TURN_STEP_OPEN:
        _pass(game, event.seat)


def _player_resigned(game: Game, event: game_pb2.PlayerResigned, _: GameChange) -> None:
    player = _player(game, event.seat)
    player.resigned = True
    if player.is_absent:
        _leave_to_bot(player, game_pb2.BOT_LEVEL_UNSPECIFIED)
    game.last_chance_seats[:] = [seat for seat in game.last_chance_seats if seat != event.seat]
    if game.turn.seat == event.seat and game.turn.step == game_pb2.TURN_STEP_CHOOSING:
        _take(game, event.seat, 2, game.turn.tiles_drawn)
        _back_to_open(game)


def _player_readied(game: Game, event: game_pb2.PlayerReadied, _: GameChange) -> None:
    player = _player(game, event.seat)
    player.is_ready = event.is_ready
    player.deal_seed = event.deal_seed or player.deal_seed


def _abort_requested(game: Game, event: game_pb2.AbortRequested, _: GameChange) -> None:
    _player(game, event.seat).wants_abort = True


def _game_aborted(game: Game, _: game_pb2.GameAborted, __: GameChange) -> None:
    game.state = game_pb2.GAME_STATE_ABORTED
    for name in ("turn", "last_chance_seats", "next_round_time", "join_code", "reserved_seats"):
        game.ClearField(name)


def _rematch_created(game: Game, event: game_pb2.RematchCreated, _: GameChange) -> None:
    game.rematch_game_id = event.game_id


def _leave_to_bot(player: Player, level: game_pb2.BotLevel.ValueType) -> None:
    """Lets a bot play for a player, or, if the level is unspecified, no longer."""
    player.bot_level = level
    player.is_absent = level != game_pb2.BOT_LEVEL_UNSPECIFIED


def _seat_taken_over(game: Game, event: game_pb2.SeatTakenOver, _: GameChange) -> None:
    player = _player(game, event.seat)
    player.name, player.bot_level, player.is_program = event.name, event.bot_level, event.is_program
    player.resigned = player.wants_abort = False
    player.is_ready = player.is_ready or event.bot_level != game_pb2.BOT_LEVEL_UNSPECIFIED
    player.timeouts_in_a_row = 0
    if game.settings.clock_total.seconds:
        player.time_left.CopyFrom(game.settings.clock_total)
    if event.HasField("host_seat"):
        for one in game.players:
            one.is_host = one.seat == event.host_seat


def _player_absent(game: Game, event: game_pb2.PlayerAbsent, _: GameChange) -> None:
    _leave_to_bot(_player(game, event.seat), event.bot_level)


def _player_returned(game: Game, event: game_pb2.PlayerReturned, _: GameChange) -> None:
    player = _player(game, event.seat)
    _leave_to_bot(player, game_pb2.BOT_LEVEL_UNSPECIFIED)
    player.timeouts_in_a_row = 0


def _clock_stopped(game: Game, event: game_pb2.ClockStopped, _: GameChange) -> None:
    _player(game, event.seat).time_left.CopyFrom(event.time_left)


def _back_to_open(game: Game) -> None:
    game.turn.step = game_pb2.TURN_STEP_OPEN
    del game.turn.tiles_drawn[:]


def _round_ended(game: Game, event: game_pb2.RoundEnded, _: GameChange) -> None:
    game.state = game_pb2.GAME_STATE_ROUND_OVER
    game.rounds.append(event.result)
    for seat in event.result.seats:
        _player(game, seat.seat).total_points += seat.points
    for player in game.players:
        player.wants_abort = False
    if event.HasField("next_round_time"):
        game.next_round_time.CopyFrom(event.next_round_time)
    for name in ("turn", "last_chance_seats"):
        game.ClearField(name)


def _game_ended(game: Game, event: game_pb2.GameEnded, _: GameChange) -> None:
    game.state = game_pb2.GAME_STATE_FINISHED
    game.winner_seats[:] = event.winner_seats
    game.abandoned = event.abandoned
    for name in ("turn", "last_chance_seats", "next_round_time"):
        game.ClearField(name)
    if event.rounds:
        del game.rounds[:]
        game.rounds.extend(event.rounds)


def _river_tile_laid(game: Game, event: game_pb2.RiverTileLaid, _: GameChange) -> None:
    kept = list(game.turn.tiles_drawn)
    if event.seat == game.seat:
        kept.remove(event.tile)
    _take(game, event.seat, 1, kept)
    game.river.append(event.tile)
    _back_to_open(game)


def _turn_ended(game: Game, _: game_pb2.TurnEnded, __: GameChange) -> None:
    _back_to_open(game)


def _illegal_play_shown(game: Game, event: game_pb2.IllegalPlayShown, change: GameChange) -> None:
    shown = game_pb2.ShownPlay(revision=change.revision, table=event.table)
    game.turn.shown_play.CopyFrom(shown)


def _error_claimed(game: Game, event: game_pb2.ErrorClaimed, _: GameChange) -> None:
    shown = game.turn.shown_play
    if event.agrees:
        shown.claim_seats[:] = sorted({*shown.claim_seats, event.seat})
    else:
        shown.against_seat = event.seat


def _last_chance_started(game: Game, event: game_pb2.LastChanceStarted, _: GameChange) -> None:
    game.last_chance_seats[:] = event.seats


# Games of discards


def _hands_dealt(game: Game, event: discard_pb2.HandsDealt, _: GameChange) -> None:
    game.state = game_pb2.GAME_STATE_PLAYING
    game.round = event.round
    game.starter_seat = event.turn_order[0]
    game.turn_order[:] = event.turn_order
    game.pool_count = event.pool_count
    game.rack[:] = event.rack
    piles = [discard_pb2.DiscardPile(seat=seat) for seat in sorted(event.turn_order)]
    board = discard_pb2.DiscardBoard(indicator=event.indicator, okey=event.okey, piles=piles, trump=event.trump)
    game.discard_board.CopyFrom(board)
    for name in ("join_code", "next_round_time"):
        game.ClearField(name)
    for player in game.players:
        if game.settings.clock_total.seconds:
            player.time_left.CopyFrom(game.settings.clock_total)
        player.has_melded = False
        player.tile_count = 0
        if player.seat in event.turn_order:
            has_one_more = bool(event.indicator) and player.seat == game.starter_seat
            player.tile_count = game.ruleset.discard.deal.hand_size + has_one_more


def _pile(game: Game, seat: int) -> discard_pb2.DiscardPile:
    return next(pile for pile in game.discard_board.piles if pile.seat == seat)


def _must_discard(game: Game, *taken: Tile.ValueType) -> None:
    game.turn.step = game_pb2.TURN_STEP_DISCARDING
    game.turn.tiles_drawn[:] = taken


def _pool_tile_taken(game: Game, event: discard_pb2.PoolTileTaken, _: GameChange) -> None:
    seen = [event.tile] if event.tile else []
    _draw(game, event.seat, 1, seen)
    _must_discard(game, *seen)


def _discard_taken(game: Game, event: discard_pb2.DiscardTaken, _: GameChange) -> None:
    pile = _pile(game, event.from_seat)
    pile.tile_count -= 1
    pile.newest = event.uncovered
    _take(game, event.seat, 1, [event.tile])
    _must_discard(game, event.tile)
    rules = game.ruleset.discard
    keeps = rules.turn.taken_discard == ruleset_pb2.TAKEN_DISCARD_KEPT_BEFORE_OPENING and bool(game.pool_count)
    if rules.melds.melds_on_table and not (keeps and not _player(game, event.seat).has_melded):
        game.discard_board.owed_tile = event.tile


def _trump_taken(game: Game, event: discard_pb2.TrumpTaken, _: GameChange) -> None:
    _take(game, event.seat, 1, [event.tile])
    _must_discard(game, event.tile)
    game.discard_board.owed_tile = event.tile
    game.discard_board.trump = TILE_UNSPECIFIED


def _leave_rack(game: Game, seat: int, tile: Tile.ValueType) -> None:
    _player(game, seat).tile_count -= 1
    if seat == game.seat:
        rack = list(game.rack)
        rack.remove(tile)
        game.rack[:] = rack


def _end_turn(game: Game, seat: int, tile: Tile.ValueType) -> None:
    _leave_rack(game, seat, tile)
    board = game.discard_board
    board.discarded_seats[:] = sorted({*board.discarded_seats, seat})
    board.tiles_laid = 0
    board.owed_tile = TILE_UNSPECIFIED


def _tile_discarded(game: Game, event: discard_pb2.TileDiscarded | discard_pb2.DiscardForced, _: GameChange) -> None:
    _end_turn(game, event.seat, event.tile)
    pile = _pile(game, event.seat)
    pile.tile_count += 1
    pile.newest = event.tile


def _indicator_shown(game: Game, event: discard_pb2.IndicatorShown, _: GameChange) -> None:
    game.discard_board.shown_by_seat = event.seat


def _hand_finished(game: Game, event: discard_pb2.HandFinished, _: GameChange) -> None:
    _end_turn(game, event.seat, event.tile)
    game.discard_board.finish.CopyFrom(event)


def _tiles_laid(game: Game, event: discard_pb2.TilesLaid, _: GameChange) -> None:
    player, board = _player(game, event.seat), game.discard_board
    player.has_melded = player.has_melded or event.HasField("opening")
    player.tile_count += event.okeys - len(event.tiles)
    if event.seat == game.seat:
        rack = [*game.rack, *[board.okey or TILE_JOKER] * event.okeys]
        for tile in event.tiles:
            rack.remove(tile)
        game.rack[:] = sorted(rack)
    del board.table[:]
    board.table.extend(event.table)
    if event.HasField("opening"):
        board.openings.append(event.opening)
    board.tiles_laid += event.more
    board.owed_tile = TILE_UNSPECIFIED
    del game.turn.tiles_drawn[:]


def _discard_returned(game: Game, event: discard_pb2.DiscardReturned, _: GameChange) -> None:
    _leave_rack(game, event.seat, event.tile)
    game.discard_board.owed_tile = TILE_UNSPECIFIED
    if not event.to_seat:
        game.discard_board.trump = event.tile
        return
    pile = _pile(game, event.to_seat)
    pile.tile_count += 1
    pile.newest = event.tile


def _penalty_scored(game: Game, event: discard_pb2.PenaltyScored, _: GameChange) -> None:
    game.discard_board.penalties.append(event)


def _rack_finished(game: Game, event: discard_pb2.RackFinished, _: GameChange) -> None:
    _end_turn(game, event.seat, event.tile)
    game.discard_board.rack_finish.CopyFrom(event)


def _nothing(_: Game, __: object, ___: GameChange) -> None:
    """Changes no field: other events of the same change do, or nothing that a view shows."""


FOLDS: Final[Mapping[str, Callable[[Game, Any, GameChange], None]]] = {
    "game_created": _game_created,
    "player_joined": _player_joined,
    "player_left": _player_left,
    "round_started": _round_started,
    "hands_dealt": _hands_dealt,
    "turn_started": _turn_started,
    "tiles_played": _tiles_played,
    "tiles_drawn": _tiles_drawn,
    "turn_passed": _turn_passed,
    "turn_timed_out": _turn_timed_out,
    "player_resigned": _player_resigned,
    "round_ended": _round_ended,
    "game_ended": _game_ended,
    "river_tile_laid": _river_tile_laid,
    "turn_ended": _turn_ended,
    "illegal_play_shown": _illegal_play_shown,
    "error_claimed": _error_claimed,
    "turn_penalised": _turn_cut_short,
    "redeal_demanded": _nothing,
    "player_knocked": _nothing,
    "last_chance_started": _last_chance_started,
    "player_absent": _player_absent,
    "player_returned": _player_returned,
    "seat_taken_over": _seat_taken_over,
    "clock_stopped": _clock_stopped,
    "player_readied": _player_readied,
    "player_kicked": _player_kicked,
    "game_aborted": _game_aborted,
    "abort_requested": _abort_requested,
    "rematch_created": _rematch_created,
    "seat_token_renewed": _nothing,
    "pool_tile_taken": _pool_tile_taken,
    "discard_taken": _discard_taken,
    "tile_discarded": _tile_discarded,
    "discard_forced": _tile_discarded,
    "indicator_shown": _indicator_shown,
    "hand_finished": _hand_finished,
    "tiles_laid": _tiles_laid,
    "discard_returned": _discard_returned,
    "penalty_scored": _penalty_scored,
    "rack_finished": _rack_finished,
    "trump_taken": _trump_taken,
    "three_tiles_left": _nothing,
    "empty_pool_passed": _nothing,
}
"""What each event of the contract changes."""

ACTIONS: Final = frozenset(
    {
        "tiles_played",
        "tiles_drawn",
        "turn_ended",
        "turn_passed",
        "turn_penalised",
        "illegal_play_shown",
        "pool_tile_taken",
        "discard_taken",
        "tile_discarded",
        "indicator_shown",
        "hand_finished",
        "player_knocked",
        "tiles_laid",
        "discard_returned",
        "rack_finished",
        "trump_taken",
        "empty_pool_passed",
    }
)
"""Events that show that a player is there: timeouts_in_a_row begins anew."""
