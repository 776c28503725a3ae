"""Views of a melding round and of its events for one viewer: a seat, or none. They have no field for a hidden tile."""

from dataclasses import dataclass

from engine.melding.drafts import Draft
from engine.melding.events import (
    MeldingEvent,
    OpenMeldingEvent,
    RoundStarted,
    StartDraw,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TurnEnded,
    TurnPassed,
    TurnPenalised,
)
from engine.melding.round import Choosing, Drawing, Drawn, MeldingRound, Open, ShownPlay, Step
from engine.melding.table import Table
from engine.tiles import Tile


@dataclass(frozen=True, slots=True)
class MeldingView:
    """A round, beyond what all rounds have.

    Attributes:
        table: The melds in play.
        river: The River, oldest tile first.
        passed: The seats that have passed in a row.
        last_chance: The seats with a last turn left.
        step: The type of the step of the turn in progress.
        tiles_drawn: The tiles to choose from, or those drawn one by one; empty for other seats.
        draft: The last draft of the turn; None if there is none or the viewer may not see it (draft_visibility).
        shown_play: The last illegal play shown in the turn.
    """

    table: Table
    river: tuple[Tile, ...]
    passed: tuple[int, ...]
    last_chance: tuple[int, ...] = ()
    step: type[Step] = Open
    tiles_drawn: tuple[Tile, ...] = ()
    draft: Draft | None = None
    shown_play: ShownPlay | None = None


@dataclass(frozen=True, slots=True)
class RoundStartedView:
    """A deal or a position. The rack is the viewer's own; of the pool only the number of tiles is visible.

    Attributes:
        number: The number of the round.
        draws: The start draw, in order.
        order: The turn order.
        rack: The viewer's rack.
        pool_count: The number of tiles in the pool.
        table: The table of a position; None of a deal.
        held: The seats of a position, each with its number of tiles and whether it has melded; none of a deal.
    """

    number: int
    draws: tuple[StartDraw, ...]
    order: tuple[int, ...]
    rack: tuple[Tile, ...]
    pool_count: int
    table: Table | None = None
    held: tuple[tuple[int, int, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class TilesDrawnView:
    """A draw, or an offer of two tiles. Only the seat that drew sees the tiles; all see their number."""

    seat: int
    tile_count: int
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class TurnPenalisedView:
    """A penalty. Only the seat that drew sees the tiles; all see their number."""

    seat: int
    tile_count: int
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class TurnPassedView:
    """A pass, without whether the player declined the initial meld."""

    seat: int


@dataclass(frozen=True, slots=True)
class TurnEndedView:
    """The end of a turn after a draw, without whether the player declined the initial meld."""

    seat: int


MeldingEventView = (
    OpenMeldingEvent | RoundStartedView | TilesDrawnView | TurnEndedView | TurnPassedView | TurnPenalisedView
)


def see(round_: MeldingRound, active: tuple[int, ...], seat: int | None, draft: Draft | None) -> MeldingView:
    """Returns the view of a round; no seat is active once it is over."""
    if not active:
        return MeldingView(round_.table, round_.river, round_.passed)
    return MeldingView(
        round_.table,
        round_.river,
        round_.passed,
        tuple(one for one in round_.last_chance if one in active) if round_.last_chance else (),
        step=type(round_.step),
        tiles_drawn=_tiles_drawn(round_.step) if round_.turn.seat == seat else (),
        draft=draft if draft and draft.turn_revision == round_.turn.revision else None,
        shown_play=round_.shown_play,
    )


def _tiles_drawn(step: Step) -> tuple[Tile, ...]:
    match step:
        case Open():
            return ()
        case Choosing(tiles) | Drawing(tiles):
            return tiles
        case Drawn(tile):
            return (tile,)


def see_event(event: MeldingEvent, seat: int | None) -> MeldingEventView:
    """Returns the view of an event."""
    match event:
        case RoundStarted(number, draws, order, racks, pool, table):
            viewer_rack = next((rack.tiles for rack in racks if rack.seat == seat), ())
            is_dealt = table is None
            held = () if is_dealt else tuple((rack.seat, len(rack.tiles), rack.has_melded) for rack in racks)
            return RoundStartedView(number, draws, order, viewer_rack, len(pool), table, held)
        case TileDrawn(drawer, tile):
            return TilesDrawnView(drawer, 1, (tile,) if drawer == seat else ())
        case TilesDrawn(drawer, tiles) | TilesOffered(drawer, tiles):
            return TilesDrawnView(drawer, len(tiles), tiles if drawer == seat else ())
        case TurnEnded(ender):
            return TurnEndedView(ender)
        case TurnPassed(passer):
            return TurnPassedView(passer)
        case TurnPenalised(drawer, tiles):
            return TurnPenalisedView(drawer, len(tiles), tiles if drawer == seat else ())
        case _:
            return event
