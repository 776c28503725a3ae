"""Applies events to a game. Nothing here refuses an event; a history that cannot have happened raises ValueError."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from engine.events import (
    AbortRequested,
    ClockStopped,
    ErrorClaimed,
    Event,
    GameAborted,
    GameCreated,
    GameEnded,
    IllegalPlayShown,
    LastChanceStarted,
    LobbyEvent,
    PlayerAbsent,
    PlayerJoined,
    PlayerKicked,
    PlayerLeft,
    PlayerReadied,
    PlayerResigned,
    PlayerReturned,
    RedealDemanded,
    RematchCreated,
    RiverTileLaid,
    RoundEnded,
    RoundStarted,
    SeatTokenRenewed,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TilesPlayed,
    TurnEnded,
    TurnEvent,
    TurnPassed,
    TurnPenalised,
    TurnStarted,
    TurnTimedOut,
)
from engine.game import (
    Aborted,
    Choosing,
    Drawn,
    Finished,
    Game,
    Lobby,
    Open,
    Player,
    Playing,
    Rack,
    ReservedSeat,
    Round,
    RoundOver,
    ShownPlay,
    Turn,
    round_of,
)
from engine.melding.melds import Meld
from engine.melding.ruleset import Ruleset, TurnPlayAfterDraw
from engine.tiles import Tile, in_order, without


def advance(game: Game | None, events: Iterable[Event]) -> Game:
    """Returns the game after one change: all its events applied, the revision one higher.

    `game` is None for the change that creates it.
    """
    for event in events:
        game = _UNCREATED if game is None else game
        game = evolve(game, event)
    if game is None:
        raise ValueError("a change must have at least one event")
    return Game(game.ruleset, game.revision + 1, game.players, game.phase, game.results, game.reserved)


def replay(changes: Iterable[Iterable[Event]]) -> Game:
    """Returns the game after a history of changes, which starts with its creation."""
    game = None
    for events in changes:
        game = advance(game, events)
    if game is None:
        raise ValueError("a history must start with the game's creation")
    return game


_UNCREATED: Final = Game(Ruleset())
"""The game to which GameCreated is applied."""


def evolve(game: Game, event: Event) -> Game:  # noqa: C901 - one case an event, each a line
    """Returns the game after one event. The revision is unchanged."""
    match event:
        case GameCreated() | PlayerJoined() | PlayerLeft() | PlayerKicked() | PlayerReadied():
            return _in_lobby(game, event)
        case RoundStarted():
            return _round_started(game, event)
        case PlayerResigned(seat):
            return _resigned(game, seat)
        case PlayerAbsent(seat, stand_in):
            return _with_player(game, replace(game.player(seat), stand_in=stand_in))
        case PlayerReturned(seat):
            return _with_player(game, replace(game.player(seat), stand_in=None, timeouts_in_a_row=0))
        case ClockStopped(seat, time_left_ms):
            return _with_player(game, replace(game.player(seat), time_left_ms=time_left_ms))
        case RoundEnded():
            return _round_ended(game, event)
        case GameEnded(winners, opened, abandoned):
            finished = Finished(round_of(game), winners, abandoned)
            return replace(game, phase=finished, results=opened or game.results)
        case AbortRequested(seat):
            return _with_player(game, replace(game.player(seat), wants_abort=True))
        case GameAborted():
            return replace(game, phase=Aborted(game.round), reserved=())
        case RematchCreated(game_id):
            return _with_rematch(game, game_id)
        case RedealDemanded() | SeatTokenRenewed():
            return game
        case _:
            round_ = _in_turn(game, _declined(round_of(game), event), event)
            return _in_round(_with_timeouts(game, event), round_)


def _with_player(game: Game, player: Player) -> Game:
    """Returns the game with one player replaced."""
    players = tuple([player if old.seat == player.seat else old for old in game.players])
    return Game(game.ruleset, game.revision, players, game.phase, game.results, game.reserved)


def _with_timeouts(game: Game, event: TurnEvent) -> Game:
    """Returns the game with the player's time-outs in a row: a time-out adds one, an action in a turn ends them.

    A turn that began with an empty bank is not counted: the player had no time to act.
    """
    match event:
        case TurnStarted():
            return game
        case TurnTimedOut(seat):
            player = game.player(seat)
            count = player.timeouts_in_a_row + (player.time_left_ms != 0)
        case (
            TilesPlayed(seat=seat)
            | TileDrawn(seat=seat)
            | TilesDrawn(seat=seat)
            | TilesOffered(seat=seat)
            | TurnEnded(seat=seat)
            | TurnPassed(seat=seat)
            | TurnPenalised(seat=seat)
            | IllegalPlayShown(seat=seat)
        ):
            player, count = game.player(seat), 0
        case _:
            return game
    return game if count == player.timeouts_in_a_row else _with_player(game, replace(player, timeouts_in_a_row=count))


def _in_lobby(game: Game, event: LobbyEvent) -> Game:
    match event:
        case GameCreated(ruleset, reserved):
            return replace(game, ruleset=ruleset, reserved=reserved)
        case PlayerJoined():
            return _joined(game, event)
        case PlayerLeft(seat, new_host) | PlayerKicked(seat, new_host):
            return _left(game, seat, new_host)
        case PlayerReadied(seat, is_ready):
            return _with_player(game, replace(game.player(seat), is_ready=is_ready))


def _joined(game: Game, event: PlayerJoined) -> Game:
    """Returns the lobby after a player has taken a seat."""
    joined = Player(event.seat, event.name, bot=event.bot, is_ready=event.bot is not None, is_host=event.is_host)
    return replace(
        game,
        players=tuple(sorted((*game.players, joined), key=lambda p: p.seat)),
        phase=game.phase if event.starts_ms is None else Lobby(event.starts_ms),
        reserved=_without_seat(game.reserved, event.seat),
    )


def _left(game: Game, seat: int, new_host: int | None) -> Game:
    """Returns the lobby after a player has left it, or a reserved seat was given up."""
    players = (player for player in game.players if player.seat != seat)
    return replace(
        game,
        players=tuple(replace(p, is_host=True) if p.seat == new_host else p for p in players),
        phase=Lobby(),
        reserved=_without_seat(game.reserved, seat),
    )


def _without_seat(reserved: tuple[ReservedSeat, ...], seat: int) -> tuple[ReservedSeat, ...]:
    return tuple(one for one in reserved if one.seat != seat)


def _with_rematch(game: Game, game_id: str) -> Game:
    if not isinstance(game.phase, Finished | Aborted):
        raise ValueError("only a game that is over has a rematch")  # noqa: TRY004 - an impossible history
    return replace(game, phase=replace(game.phase, rematch_game_id=game_id))


def _declined(round_: Round, event: TurnEvent) -> Round:
    """Returns the round with the seat added that has just declined the initial meld."""
    match event:
        case (
            TileDrawn(seat, declined=True)
            | TilesDrawn(seat, declined=True)
            | TilesOffered(seat, declined=True)
            | TurnEnded(seat, declined=True)
            | TurnPassed(seat, declined=True)
        ):
            return replace(round_, declined=_with_seat(round_.declined, seat))
        case _:
            return round_


def _in_turn(game: Game, round_: Round, event: TurnEvent) -> Round:  # noqa: C901 - one case an event, each a line
    """Returns the round after an event of a turn."""
    match event:
        case TurnStarted(turn):
            return _turn_started(round_, turn)
        case TilesPlayed():
            return _tiles_played(round_, event)
        case TileDrawn(seat, tile):
            return _drawn_in_turn(game, round_, seat, (tile,))
        case TilesDrawn(seat, tiles):
            return _drawn_in_turn(game, round_, seat, tiles)
        case TilesOffered(_, tiles):
            return replace(round_, step=Choosing(tiles), pool=round_.pool[2:], passed=())
        case RiverTileLaid(seat, tile):
            return _river_tile_laid(round_, seat, tile)
        case TurnEnded():
            return replace(round_, step=Open())
        case TurnPassed(seat):
            return _passed(round_, seat)
        case TurnTimedOut(seat, ()) | TurnPenalised(seat, ()):
            return round_ if round_.pool or not isinstance(round_.step, Open) else _passed(round_, seat)
        case TurnTimedOut(seat, tiles) | TurnPenalised(seat, tiles):
            return _tiles_drawn(round_, seat, tiles)
        case IllegalPlayShown(_, table, reasons):
            return replace(round_, shown_play=ShownPlay(game.revision + 1, table, reasons))
        case ErrorClaimed(seat, agrees):
            return _claimed(round_, seat, agrees)
        case LastChanceStarted(seats):
            return replace(round_, last_chance=seats)


# Values that every turn creates are built by their constructors: `replace` takes three times as long.


def _in_round(game: Game, round_: Round) -> Game:
    return Game(game.ruleset, game.revision, game.players, Playing(round_), game.results)


def _round_started(game: Game, event: RoundStarted) -> Game:
    turn = Turn(event.order[0], None)
    if game.ruleset.clock_total_seconds:
        total_ms = game.ruleset.clock_total_seconds * 1000
        game = replace(game, players=tuple(replace(player, time_left_ms=total_ms) for player in game.players))
    return _in_round(game, Round(event.number, event.order, (), event.racks, event.pool, turn))


def _turn_started(round_: Round, turn: Turn) -> Round:
    """Returns the round with a new turn. If last turns are in progress, those before it are dropped."""
    if isinstance(round_.step, Choosing):
        raise ValueError("a turn starts only after the River choice of the turn before it")  # noqa: TRY004 - an impossible history
    left = round_.last_chance
    if left is not None:
        left = left[left.index(turn.seat) :]
    return Round(
        round_.number,
        round_.order,
        round_.table,
        round_.racks,
        round_.pool,
        turn,
        round_.passed,
        round_.river,
        last_chance=left,
        declined=round_.declined,
    )


def _with_rack(round_: Round, rack: Rack) -> tuple[Rack, ...]:
    return tuple([rack if old.seat == rack.seat else old for old in round_.racks])


def _moved(
    round_: Round, rack: Rack, table: tuple[Meld, ...], pool: tuple[Tile, ...], river: tuple[Tile, ...]
) -> Round:
    """Returns the round after a player has moved tiles, which clears the passes."""
    return Round(
        round_.number,
        round_.order,
        table,
        _with_rack(round_, rack),
        pool,
        round_.turn,
        (),
        river,
        round_.step,
        round_.shown_play,
        round_.last_chance,
        round_.declined,
    )


def _tiles_played(round_: Round, event: TilesPlayed) -> Round:
    held = round_.rack(event.seat).tiles + event.pulled
    rack = Rack(event.seat, without(held, event.tiles), has_melded=True)
    river = round_.river[: len(round_.river) - len(event.pulled)]
    return _moved(round_, rack, event.table, round_.pool, river)


def _drawn_in_turn(game: Game, round_: Round, seat: int, tiles: tuple[Tile, ...]) -> Round:
    drawn = _tiles_drawn(round_, seat, tiles)
    if game.ruleset.turn_play_after_draw is TurnPlayAfterDraw.FORBIDDEN:
        return drawn
    return replace(drawn, step=Drawn(tiles[-1]))


def _river_tile_laid(round_: Round, seat: int, tile: Tile) -> Round:
    if not isinstance(round_.step, Choosing):
        raise ValueError("a tile is laid on the River only while a choice is pending")  # noqa: TRY004 - as above
    other = without(round_.step.tiles, (tile,))
    racks = _with_rack(round_, _with_tiles(round_.rack(seat), other))
    return replace(round_, racks=racks, river=(*round_.river, tile), step=Open())


def _tiles_drawn(round_: Round, seat: int, tiles: tuple[Tile, ...]) -> Round:
    """Returns the round with the first tiles of the pool on a rack."""
    rack = _with_tiles(round_.rack(seat), tiles)
    return _moved(round_, rack, round_.table, round_.pool[len(tiles) :], round_.river)


def _with_tiles(rack: Rack, tiles: tuple[Tile, ...]) -> Rack:
    return Rack(rack.seat, in_order(rack.tiles + tiles), rack.has_melded)


def _claimed(round_: Round, seat: int, agrees: bool) -> Round:
    shown = round_.shown_play
    if shown is None:
        raise ValueError("a claim needs a shown play")
    voted = replace(shown, claimed=_with_seat(shown.claimed, seat)) if agrees else replace(shown, against=seat)
    return replace(round_, shown_play=voted)


def _resigned(game: Game, seat: int) -> Game:
    """Returns the game with a player resigned. Tiles of a pending River choice go to their rack, out of play."""
    game = _with_player(game, replace(game.player(seat), resigned=True, stand_in=None))
    round_ = game.phase.round if isinstance(game.phase, Playing) else None
    if round_ is None or round_.turn.seat != seat or not isinstance(round_.step, Choosing):
        return game
    racks = _with_rack(round_, _with_tiles(round_.rack(seat), round_.step.tiles))
    return _in_round(game, replace(round_, racks=racks, step=Open()))


def _passed(round_: Round, seat: int) -> Round:
    return replace(round_, passed=_with_seat(round_.passed, seat))


def _with_seat(seats: tuple[int, ...], seat: int) -> tuple[int, ...]:
    """Returns seats with one added, in ascending order."""
    return tuple(sorted({*seats, seat}))


def _round_ended(game: Game, event: RoundEnded) -> Game:
    result = event.result
    points = {seat.seat: seat.points for seat in result.seats}
    players = tuple(
        replace(p, total_points=p.total_points + points.get(p.seat, 0), wants_abort=False) for p in game.players
    )
    phase = RoundOver(round_of(game), event.next_round_ms)
    return replace(game, players=players, results=(*game.results, result), phase=phase)
