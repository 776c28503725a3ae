"""What has happened in a game: the facts that are stored, and the one function that applies them.

Events hold everything, hidden tiles too, so that a game can be replayed from its events alone; what a seat may see of
them is in views.py. Deciding what happens is in turns.py; nothing here refuses anything.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from engine.game import Finished, Game, Lobby, Player, Playing, Rack, Round, RoundOver, RoundResult, Turn
from engine.melds import Meld
from engine.ruleset import Ruleset
from engine.tiles import Tile, in_order, without


@dataclass(frozen=True, slots=True)
class GameCreated:
    """The game exists, with these rules."""

    ruleset: Ruleset


@dataclass(frozen=True, slots=True)
class PlayerJoined:
    """A player took a seat."""

    seat: int
    name: str


@dataclass(frozen=True, slots=True)
class PlayerLeft:
    """A player left the lobby."""

    seat: int


@dataclass(frozen=True, slots=True)
class StartDraw:
    """One tile drawn to find the starter (R7)."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """A round was dealt: the start draw, who starts, each rack by seat, the pool in the order of drawing."""

    number: int
    draws: tuple[StartDraw, ...]
    starter: int
    racks: tuple[Rack, ...]
    pool: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn began."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class TilesPlayed:
    """A player played tiles (ascending), worth so many points, and left the table so."""

    seat: int
    tiles: tuple[Tile, ...]
    table: tuple[Meld, ...]
    points: int


@dataclass(frozen=True, slots=True)
class TileDrawn:
    """A player drew the pool's next tile (R22)."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class TurnPassed:
    """A player passed."""

    seat: int


@dataclass(frozen=True, slots=True)
class TurnTimedOut:
    """A player's time ran out, and they drew these tiles from the pool (R55)."""

    seat: int
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class PlayerResigned:
    """A player gave up the game."""

    seat: int


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """A round was scored."""

    result: RoundResult


@dataclass(frozen=True, slots=True)
class GameEnded:
    """The game ended."""

    winners: tuple[int, ...]


Event = (
    GameCreated
    | PlayerJoined
    | PlayerLeft
    | RoundStarted
    | TurnStarted
    | TilesPlayed
    | TileDrawn
    | TurnPassed
    | TurnTimedOut
    | PlayerResigned
    | RoundEnded
    | GameEnded
)


def advance(game: Game | None, events: Iterable[Event]) -> Game:
    """The game after one change: all its events applied, the revision one higher. None: before its creation."""
    for event in events:
        game = GAME_TO_BE if game is None else game
        game = evolve(game, event)
    if game is None:
        raise ValueError("a change has at least one event")
    return replace(game, revision=game.revision + 1)


def replay(changes: Iterable[Iterable[Event]]) -> Game:
    """The game that a history of changes leads to, beginning with its creation."""
    game = None
    for events in changes:
        game = advance(game, events)
    if game is None:
        raise ValueError("a history begins with the game's creation")
    return game


GAME_TO_BE = Game(Ruleset())
"""What GameCreated is applied to."""


def evolve(game: Game, event: Event) -> Game:  # noqa: C901 - one case an event, each a line or a call
    """The game after one event. The revision stays."""
    match event:
        case GameCreated(ruleset):
            return replace(game, ruleset=ruleset)
        case PlayerJoined(seat, name):
            return replace(game, players=tuple(sorted((*game.players, Player(seat, name)), key=lambda p: p.seat)))
        case PlayerLeft(seat):
            return replace(game, players=tuple(player for player in game.players if player.seat != seat))
        case RoundStarted():
            return _round_started(game, event)
        case TurnStarted(turn):
            return _in_round(game, replace(_round(game), turn=turn))
        case TilesPlayed():
            return _in_round(game, _tiles_played(_round(game), event))
        case TileDrawn(seat, tile):
            return _in_round(game, _tiles_drawn(_round(game), seat, (tile,)))
        case TurnPassed(seat):
            return _in_round(game, _passed(_round(game), seat))
        case TurnTimedOut(seat, ()):
            return _in_round(game, _passed(_round(game), seat))
        case TurnTimedOut(seat, tiles):
            return _in_round(game, _tiles_drawn(_round(game), seat, tiles))
        case PlayerResigned(seat):
            return replace(
                game, players=tuple(replace(p, resigned=True) if p.seat == seat else p for p in game.players)
            )
        case RoundEnded(result):
            return _round_ended(game, result)
        case GameEnded(winners):
            return replace(game, phase=Finished(_round(game), winners))


def _round(game: Game) -> Round:
    if isinstance(game.phase, Lobby):
        raise ValueError("the event belongs to a round, and the game is in the lobby")  # noqa: TRY004 - a wrong history
    return game.phase.round


def _in_round(game: Game, round_: Round) -> Game:
    return replace(game, phase=Playing(round_))


def _round_started(game: Game, event: RoundStarted) -> Game:
    turn = Turn(event.starter, None)
    return _in_round(game, Round(event.number, event.starter, (), event.racks, event.pool, turn))


def _with_rack(round_: Round, rack: Rack) -> tuple[Rack, ...]:
    return tuple(rack if old.seat == rack.seat else old for old in round_.racks)


def _tiles_played(round_: Round, event: TilesPlayed) -> Round:
    rack = Rack(event.seat, without(round_.rack(event.seat).tiles, event.tiles), has_melded=True)
    return replace(round_, table=event.table, racks=_with_rack(round_, rack), passed=())


def _tiles_drawn(round_: Round, seat: int, tiles: tuple[Tile, ...]) -> Round:
    """The pool's first tiles are those drawn."""
    old = round_.rack(seat)
    rack = replace(old, tiles=in_order(old.tiles + tiles))
    return replace(round_, racks=_with_rack(round_, rack), pool=round_.pool[len(tiles) :], passed=())


def _passed(round_: Round, seat: int) -> Round:
    return replace(round_, passed=tuple(sorted({*round_.passed, seat})))


def _round_ended(game: Game, result: RoundResult) -> Game:
    points = {seat.seat: seat.points for seat in result.seats}
    players = tuple(replace(p, total_points=p.total_points + points.get(p.seat, 0)) for p in game.players)
    return replace(game, players=players, results=(*game.results, result), phase=RoundOver(_round(game)))
