"""What has happened in a game: the facts that are stored, and the one function that applies them.

Events hold everything, hidden tiles too, so that a game can be replayed from its events alone; what a seat may see of
them is in views.py. Deciding what happens is in turns.py; nothing here refuses anything.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from engine.game import (
    BotLevel,
    Choosing,
    Drawn,
    Finished,
    Game,
    Open,
    Player,
    Playing,
    Rack,
    Round,
    RoundOver,
    RoundResult,
    ShownPlay,
    Turn,
    round_of,
)
from engine.ruleset import Ruleset, TurnPlayAfterDraw
from engine.table import ProposedTable, Table
from engine.tiles import Tile, in_order, without
from engine.violations import Reason


@dataclass(frozen=True, slots=True)
class GameCreated:
    """The game exists, with these rules."""

    ruleset: Ruleset


@dataclass(frozen=True, slots=True)
class PlayerJoined:
    """A player took a seat; a bot with its level."""

    seat: int
    name: str
    bot: BotLevel | None = None


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
    """A round was dealt: the start draw, the turn order, each rack by seat, the pool in the order of drawing."""

    number: int
    draws: tuple[StartDraw, ...]
    order: tuple[int, ...]
    racks: tuple[Rack, ...]
    pool: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn began."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class TilesPlayed:
    """A player played tiles (ascending), worth so many points, and left the table so.

    Tiles pulled from the River, oldest first, came to the rack before; they were the newest of the River.
    """

    seat: int
    tiles: tuple[Tile, ...]
    table: Table
    points: int
    pulled: tuple[Tile, ...] = ()


@dataclass(frozen=True, slots=True)
class TileDrawn:
    """A player drew the pool's next tile (R22).

    Here as in the other events of who plays nothing, `declined` says that they could have made the initial meld
    (score_never_melded FLAT_100_OR_200); nobody sees it.
    """

    seat: int
    tile: Tile
    declined: bool = False


@dataclass(frozen=True, slots=True)
class TilesDrawn:
    """A player drew the pool's next tiles until one could be played (turn_draw UNTIL_PLAYABLE)."""

    seat: int
    tiles: tuple[Tile, ...]
    declined: bool = False


@dataclass(frozen=True, slots=True)
class TilesOffered:
    """A player drew the pool's next two tiles and is to lay one of them on the River (turn_draw TWO_RIVER)."""

    seat: int
    tiles: tuple[Tile, Tile]
    declined: bool = False


@dataclass(frozen=True, slots=True)
class RiverTileLaid:
    """A player laid one of the two tiles offered on the River and kept the other."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A player ended a turn in which they had drawn and not played (turn_play_after_draw)."""

    seat: int
    declined: bool = False


@dataclass(frozen=True, slots=True)
class DraftSaved:
    """A player told how the table lies under their hands."""

    seat: int
    table: ProposedTable


@dataclass(frozen=True, slots=True)
class IllegalPlayShown:
    """A player submitted an illegal play, which the others may claim."""

    seat: int
    table: ProposedTable
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class ErrorClaimed:
    """A player voted on the claim of an error."""

    seat: int
    agrees: bool


@dataclass(frozen=True, slots=True)
class TurnPenalised:
    """A player drew these tiles from the pool for an illegal play (R56)."""

    seat: int
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class RedealDemanded:
    """A player with three pairs demanded a new deal, which follows (deal_three_pairs_reshuffle)."""

    seat: int


@dataclass(frozen=True, slots=True)
class LastChanceStarted:
    """The pool is empty and each of these seats has one more turn, in this order (pool_empty_mode)."""

    seats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TurnPassed:
    """A player passed."""

    seat: int
    declined: bool = False


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


TurnEvent = (
    TurnStarted
    | TilesPlayed
    | TileDrawn
    | TilesDrawn
    | TilesOffered
    | RiverTileLaid
    | TurnEnded
    | TurnPassed
    | TurnTimedOut
    | TurnPenalised
    | DraftSaved
    | IllegalPlayShown
    | ErrorClaimed
    | LastChanceStarted
)

Event = (
    GameCreated
    | PlayerJoined
    | PlayerLeft
    | RoundStarted
    | RedealDemanded
    | TurnEvent
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
    return Game(game.ruleset, game.revision + 1, game.players, game.phase, game.results)


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


def evolve(game: Game, event: Event) -> Game:
    """The game after one event. The revision stays."""
    match event:
        case GameCreated(ruleset):
            return replace(game, ruleset=ruleset)
        case PlayerJoined(seat, name, bot):
            joined = Player(seat, name, bot=bot)
            return replace(game, players=tuple(sorted((*game.players, joined), key=lambda p: p.seat)))
        case PlayerLeft(seat):
            return replace(game, players=tuple(player for player in game.players if player.seat != seat))
        case RoundStarted():
            return _round_started(game, event)
        case PlayerResigned(seat):
            return _resigned(game, seat)
        case RoundEnded(result):
            return _round_ended(game, result)
        case GameEnded(winners):
            return replace(game, phase=Finished(round_of(game), winners))
        case RedealDemanded():
            return game
        case _:
            return _in_round(game, _in_turn(game, _declined(round_of(game), event), event))


def _declined(round_: Round, event: TurnEvent) -> Round:
    """The round with who has just declined the initial meld."""
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
    """The round after an event of a turn."""
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
        case DraftSaved(_, table):
            return replace(round_, draft=table)
        case IllegalPlayShown(_, table, reasons):
            return replace(round_, shown_play=ShownPlay(game.revision + 1, table, reasons))
        case ErrorClaimed(seat, agrees):
            return _claimed(round_, seat, agrees)
        case LastChanceStarted(seats):
            return replace(round_, last_chance=seats)


# What every turn makes anew is made by its constructor: `replace` takes three times as long.


def _in_round(game: Game, round_: Round) -> Game:
    return Game(game.ruleset, game.revision, game.players, Playing(round_), game.results)


def _round_started(game: Game, event: RoundStarted) -> Game:
    turn = Turn(event.order[0], None)
    return _in_round(game, Round(event.number, event.order, (), event.racks, event.pool, turn))


def _turn_started(round_: Round, turn: Turn) -> Round:
    """A new turn; of the last turns, those up to it are over."""
    if isinstance(round_.step, Choosing):
        raise ValueError("a turn begins when the choice of the turn before has been made")  # noqa: TRY004 - as below
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


def _moved(round_: Round, rack: Rack, table: Table, pool: tuple[Tile, ...], river: tuple[Tile, ...]) -> Round:
    """The round after a player has moved tiles: nobody has passed in a row."""
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
        round_.draft,
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
        raise ValueError("a tile is laid on the River by a player who chooses")  # noqa: TRY004 - a wrong history
    kept = without(round_.step.tiles, (tile,))
    racks = _with_rack(round_, _with_tiles(round_.rack(seat), kept))
    return replace(round_, racks=racks, river=(*round_.river, tile), step=Open())


def _tiles_drawn(round_: Round, seat: int, tiles: tuple[Tile, ...]) -> Round:
    """The pool's first tiles are those drawn."""
    rack = _with_tiles(round_.rack(seat), tiles)
    return _moved(round_, rack, round_.table, round_.pool[len(tiles) :], round_.river)


def _with_tiles(rack: Rack, tiles: tuple[Tile, ...]) -> Rack:
    return Rack(rack.seat, in_order(rack.tiles + tiles), rack.has_melded)


def _claimed(round_: Round, seat: int, agrees: bool) -> Round:
    shown = round_.shown_play
    if shown is None:
        raise ValueError("a claim is about a play that is shown")
    voted = replace(shown, claimed=_with_seat(shown.claimed, seat)) if agrees else replace(shown, against=seat)
    return replace(round_, shown_play=voted)


def _resigned(game: Game, seat: int) -> Game:
    """The tiles of who resigns while choosing from two of them go to their rack, out of play."""
    game = replace(game, players=tuple(replace(p, resigned=True) if p.seat == seat else p for p in game.players))
    round_ = game.phase.round if isinstance(game.phase, Playing) else None
    if round_ is None or round_.turn.seat != seat or not isinstance(round_.step, Choosing):
        return game
    racks = _with_rack(round_, _with_tiles(round_.rack(seat), round_.step.tiles))
    return _in_round(game, replace(round_, racks=racks, step=Open()))


def _passed(round_: Round, seat: int) -> Round:
    return replace(round_, passed=_with_seat(round_.passed, seat))


def _with_seat(seats: tuple[int, ...], seat: int) -> tuple[int, ...]:
    """Seats and one more, in ascending order."""
    return tuple(sorted({*seats, seat}))


def _round_ended(game: Game, result: RoundResult) -> Game:
    points = {seat.seat: seat.points for seat in result.seats}
    players = tuple(replace(p, total_points=p.total_points + points.get(p.seat, 0)) for p in game.players)
    return replace(game, players=players, results=(*game.results, result), phase=RoundOver(round_of(game)))
