"""Views of a game and of its events for one viewer (R4): a seat, HOST for the host without one, None for a spectator.

A view has no field for a hidden tile, so encoding a view cannot leak one. The host without a seat sees what a spectator
sees, and the rematch, which is for those who had a part in the game. The results of rounds have racks and pool only
once they are open to everyone (racks_shown).
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from engine.events import (
    AbortRequested,
    ClockStopped,
    Event,
    GameAborted,
    GameEnded,
    LobbyEvent,
    PlayerAbsent,
    PlayerKicked,
    PlayerResigned,
    PlayerReturned,
    RematchCreated,
    RoundEnded,
    SeatTokenRenewed,
    TurnStarted,
    TurnTimedOut,
)
from engine.game import Finished, Game, Phase, Playing, Round, RoundResult
from engine.melding.drafts import Draft
from engine.melding.events import MeldingEvent
from engine.melding.ruleset import Ruleset
from engine.melding.table import Table
from engine.melding.views import MeldingEventView, OpenMeldingEvent, TurnView, see_melding_event, see_turn
from engine.room_settings import DraftVisibility, Spectators
from engine.seats import BotLevel, Player, Rack, ReservedSeat
from engine.tiles import Tile
from engine.timers import due_ms


@dataclass(frozen=True, slots=True)
class PlayerView:
    """A player as every viewer sees them. `bot` is the level of the bot that plays the seat now."""

    seat: int
    name: str
    tile_count: int
    has_melded: bool
    total_points: int
    resigned: bool
    bot: BotLevel | None = None
    timeouts_in_a_row: int = 0
    is_absent: bool = False
    time_left_ms: int | None = None
    is_ready: bool = False
    is_host: bool = False
    wants_abort: bool = False


@dataclass(frozen=True, slots=True)
class GameView:
    """A game.

    Attributes:
        revision: The number of changes of the game.
        phase: The type of its phase.
        ruleset: The rules.
        players: The players, by seat.
        round_number: The number of the round in progress or the last one, from 1; 0 in the lobby.
        table: The melds in play.
        river: The River, oldest tile first.
        pool_count: The number of tiles in the pool.
        turn: The turn in progress, if any.
        seat: The viewer's seat; None without one.
        rack: The viewer's tiles, ascending; empty without a seat.
        order: The seats dealt into the round in progress or the last one, in turn order, the starter first.
        passed: The seats that have passed in a row.
        last_chance: The seats with a last turn left.
        results: The results of the finished rounds.
        winners: The winners of a finished game.
        next_round_ms: When the first or next round starts by itself, if it does.
        abandoned: Whether the game ended because all people were absent.
        rematch_game_id: The id of the rematch; empty if there is none, and for spectators.
        reserved: The reserved seats of the lobby.
    """

    revision: int
    phase: type[Phase]
    ruleset: Ruleset
    players: tuple[PlayerView, ...]
    round_number: int
    table: Table
    river: tuple[Tile, ...]
    pool_count: int
    turn: TurnView | None
    seat: int | None
    rack: tuple[Tile, ...]
    order: tuple[int, ...]
    passed: tuple[int, ...]
    last_chance: tuple[int, ...]
    results: tuple[RoundResult, ...]
    winners: tuple[int, ...]
    next_round_ms: int | None
    abandoned: bool
    rematch_game_id: str = ""
    reserved: tuple[ReservedSeat, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnTimedOutView:
    """A time-out. Only the seat that drew sees the tiles; all see their number."""

    seat: int
    tile_count: int
    tiles: tuple[Tile, ...]


OpenEvent = (
    LobbyEvent
    | TurnStarted
    | PlayerResigned
    | PlayerAbsent
    | PlayerReturned
    | ClockStopped
    | RoundEnded
    | GameEnded
    | AbortRequested
    | GameAborted
    | SeatTokenRenewed
    | RematchCreated
    | OpenMeldingEvent
)
"""Events without hidden parts, which are their own views."""

EventView = OpenEvent | TurnTimedOutView | MeldingEventView


def sees_drafts(game: Game, seat: int | None) -> bool:
    """Returns whether a seat or a spectator may see a draft of the turn in progress (draft_visibility)."""
    if not isinstance(game.phase, Playing):
        return False
    return game.ruleset.draft_visibility is DraftVisibility.EVERYONE or game.phase.round.turn.seat == seat


def is_open_to_spectators(game: Game) -> bool:
    """Returns whether a game shows anything to spectators (spectators). Everyone sees the lobby."""
    return game.ruleset.spectators is Spectators.ALLOWED or game.round is None


def see(game: Game, seat: int | None, draft: Draft | None = None) -> GameView:
    """Returns the view of a game.

    Args:
        game: The game.
        seat: The viewer.
        draft: The last draft of the game, if known.
    """
    round_ = game.round
    viewer_rack = round_ and next((rack for rack in round_.racks if rack.seat == seat), None)
    visible_draft = draft if sees_drafts(game, seat) else None
    return GameView(
        revision=game.revision,
        phase=type(game.phase),
        ruleset=game.ruleset,
        players=_players(game, round_),
        round_number=round_.number if round_ else 0,
        table=round_.table if round_ else (),
        river=round_.river if round_ else (),
        pool_count=len(round_.pool) if round_ else 0,
        turn=see_turn(game.phase.round, seat, visible_draft) if isinstance(game.phase, Playing) else None,
        seat=seat or None,
        rack=viewer_rack.tiles if viewer_rack else (),
        order=round_.order if round_ else (),
        passed=round_.passed if round_ else (),
        last_chance=_last_chance(game),
        results=tuple([_open_result(result) for result in game.results]),
        winners=game.phase.winners if isinstance(game.phase, Finished) else (),
        next_round_ms=None if isinstance(game.phase, Playing) else due_ms(game),
        abandoned=isinstance(game.phase, Finished) and game.phase.abandoned,
        rematch_game_id="" if seat is None else game.rematch_game_id,
        reserved=game.reserved,
    )


def _open_result(result: RoundResult) -> RoundResult:
    """Returns a result, without racks and pool unless they are open."""
    return result if result.is_open or not result.racks else _without_racks(result)


@lru_cache(maxsize=256)
def _without_racks(result: RoundResult) -> RoundResult:
    """Returns a result without racks and pool. Cached, so that caches by identity know the result."""
    return replace(result, racks=(), pool=())


def _players(game: Game, round_: Round | None) -> tuple[PlayerView, ...]:
    racks = {rack.seat: rack for rack in round_.racks} if round_ else {}
    return tuple([_player(player, racks.get(player.seat)) for player in game.players])


def _player(player: Player, rack: Rack | None) -> PlayerView:
    count, has_melded = (len(rack.tiles), rack.has_melded) if rack else (0, False)
    return PlayerView(
        player.seat,
        player.name,
        count,
        has_melded,
        player.total_points,
        player.resigned,
        player.bot or player.stand_in,
        player.timeouts_in_a_row,
        player.stand_in is not None,
        player.time_left_ms,
        player.is_ready,
        player.is_host,
        player.wants_abort,
    )


def _last_chance(game: Game) -> tuple[int, ...]:
    """Returns the seats with a last turn left; empty after the end of a round."""
    if not isinstance(game.phase, Playing) or not game.phase.round.last_chance:
        return ()
    return tuple(seat for seat in game.phase.round.last_chance if seat in game.active_seats)


def see_event(event: Event, seat: int | None) -> EventView:
    """Returns the view of an event."""
    if isinstance(event, MeldingEvent):
        return see_melding_event(event, seat)
    match event:
        case TurnTimedOut(drawer, tiles):
            return TurnTimedOutView(drawer, len(tiles), tiles if drawer == seat else ())
        case RoundEnded(result, next_round_ms):
            return RoundEnded(_open_result(result), next_round_ms)
        case PlayerKicked() | RematchCreated():
            return _see_address(event, seat)
        case _:
            return event


def _see_address(event: PlayerKicked | RematchCreated, seat: int | None) -> PlayerKicked | RematchCreated:
    """Returns an event that says where a game is found, without that for those who have no part in the game."""
    match event:
        case PlayerKicked(kicked, new_host):
            return PlayerKicked(kicked, new_host) if seat in {None, kicked} else event
        case RematchCreated():
            return RematchCreated("") if seat is None else event
