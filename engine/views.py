"""What one seat, or a spectator, may see of a game and of its events (R4).

A view has no room for a hidden tile: whoever turns views into answers cannot leak one. Seat None is a spectator.
"""

from dataclasses import dataclass

from engine.events import (
    Event,
    GameCreated,
    GameEnded,
    PlayerJoined,
    PlayerLeft,
    PlayerResigned,
    RoundEnded,
    RoundStarted,
    StartDraw,
    TileDrawn,
    TilesPlayed,
    TurnPassed,
    TurnStarted,
    TurnTimedOut,
)
from engine.game import Finished, Game, Phase, Playing, Round, RoundResult, Turn
from engine.melds import Meld
from engine.ruleset import Ruleset
from engine.tiles import Tile


@dataclass(frozen=True, slots=True)
class PlayerView:
    """A player as everyone sees them."""

    seat: int
    name: str
    tile_count: int
    has_melded: bool
    total_points: int
    resigned: bool


@dataclass(frozen=True, slots=True)
class GameView:
    """A game as one seat, or a spectator, sees it.

    Attributes:
        revision: How often the game has changed.
        phase: The kind of its phase.
        ruleset: Its rules.
        players: By seat.
        round_number: The round in progress or the last one, from 1; 0 in the lobby.
        table: The melds in play.
        pool_count: How many tiles are in the pool.
        turn: The turn in progress, if there is one.
        seat: Whose view it is; None for a spectator.
        rack: That seat's tiles, ascending; empty for a spectator.
        starter: Who began the round in progress or the last one; None in the lobby.
        passed: The seats that have passed in a row.
        results: The finished rounds.
        winners: Of a finished game.
    """

    revision: int
    phase: type[Phase]
    ruleset: Ruleset
    players: tuple[PlayerView, ...]
    round_number: int
    table: tuple[Meld, ...]
    pool_count: int
    turn: Turn | None
    seat: int | None
    rack: tuple[Tile, ...]
    starter: int | None
    passed: tuple[int, ...]
    results: tuple[RoundResult, ...]
    winners: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RoundStartedView:
    """A deal: the start draw is open to all, the rack is the viewer's own, the pool a number."""

    number: int
    draws: tuple[StartDraw, ...]
    starter: int
    rack: tuple[Tile, ...]
    pool_count: int


@dataclass(frozen=True, slots=True)
class TileDrawnView:
    """A draw: the tile only for the seat that drew it."""

    seat: int
    tile: Tile | None


@dataclass(frozen=True, slots=True)
class TurnTimedOutView:
    """A time-out: the tiles drawn only for the seat that drew them, their number for all."""

    seat: int
    tile_count: int
    tiles: tuple[Tile, ...]


EventView = (
    GameCreated
    | PlayerJoined
    | PlayerLeft
    | RoundStartedView
    | TurnStarted
    | TilesPlayed
    | TileDrawnView
    | TurnPassed
    | TurnTimedOutView
    | PlayerResigned
    | RoundEnded
    | GameEnded
)


def see(game: Game, seat: int | None) -> GameView:
    """The game as a seat, or a spectator, may see it."""
    round_ = game.round
    own = round_ and next((rack for rack in round_.racks if rack.seat == seat), None)
    return GameView(
        revision=game.revision,
        phase=type(game.phase),
        ruleset=game.ruleset,
        players=_players(game, round_),
        round_number=round_.number if round_ else 0,
        table=round_.table if round_ else (),
        pool_count=len(round_.pool) if round_ else 0,
        turn=game.phase.round.turn if isinstance(game.phase, Playing) else None,
        seat=seat,
        rack=own.tiles if own else (),
        starter=round_.starter if round_ else None,
        passed=round_.passed if round_ else (),
        results=game.results,
        winners=game.phase.winners if isinstance(game.phase, Finished) else (),
    )


def _players(game: Game, round_: Round | None) -> tuple[PlayerView, ...]:
    racks = {rack.seat: rack for rack in round_.racks} if round_ else {}
    return tuple(
        PlayerView(
            seat=player.seat,
            name=player.name,
            tile_count=len(racks[player.seat].tiles) if player.seat in racks else 0,
            has_melded=player.seat in racks and racks[player.seat].has_melded,
            total_points=player.total_points,
            resigned=player.resigned,
        )
        for player in game.players
    )


def see_event(event: Event, seat: int | None) -> EventView:
    """An event as a seat, or a spectator, may see it."""
    match event:
        case RoundStarted(number, draws, starter, racks, pool):
            own = next((rack.tiles for rack in racks if rack.seat == seat), ())
            return RoundStartedView(number, draws, starter, own, len(pool))
        case TileDrawn(drawer, tile):
            return TileDrawnView(drawer, tile if drawer == seat else None)
        case TurnTimedOut(drawer, tiles):
            return TurnTimedOutView(drawer, len(tiles), tiles if drawer == seat else ())
        case _:
            return event
