"""The position that a game begins with, from a request to create one."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from engine.melding.grid.cells import Grid
from engine.melding.melds import NotAMeld, read_meld
from engine.melding.position import Position, legal_table, position_problems
from engine.melding.ruleset import Ruleset as MeldingRuleset
from engine.melding.table import ProposedTable, tiles_on
from engine.notation import format_tiles
from engine.seats import Rack
from engine.tiles import Tile
from engine.unions import Ruleset
from rummikub.v1 import game_service_pb2
from service.codec.fields import SEATS_MAX, invalid, seat_of
from service.codec.tiles import POOL_MAX, rack, table, tiles_of
from service.errors import FieldFault, InvalidRequest

FIELD = "position"
T = TypeVar("T")
_NO_TABLE: ProposedTable = ()
_NO_TILES: tuple[Tile, ...] = ()


def start_position(message: game_service_pb2.StartPosition, rules: Ruleset) -> Position:
    """Returns the position of a request. Raises InvalidRequest: all malformed fields, or else all problems."""
    if not isinstance(rules, MeldingRuleset):
        raise invalid(FIELD, "expected the rules `melding`: no other game begins with a position")
    if not 0 < len(message.seats) <= SEATS_MAX:
        raise invalid(f"{FIELD}.seats", f"expected at least one and at most {SEATS_MAX} seats")
    faults: list[FieldFault] = []
    proposed = _read(partial(table, message.table, f"{FIELD}.table"), _NO_TABLE, faults)
    racks = tuple(_rack(one, f"{FIELD}.seats[{place}]", faults) for place, one in enumerate(message.seats))
    pool = _read(partial(tiles_of, message.pool, f"{FIELD}.pool", POOL_MAX, "FIELD_INVALID"), _NO_TILES, faults)
    turn_seat = _read(partial(seat_of, message.turn_seat, f"{FIELD}.turn_seat"), 0, faults)
    if faults:
        raise InvalidRequest(*faults)
    read = legal_table(proposed, rules)
    position = Position(() if read is None else read, racks, pool or None, turn_seat)
    empty = [f"{FIELD}.seats[{place}].rack" for place, one in enumerate(racks) if not one.tiles]
    faults += [FieldFault(field, "expected at least one tile: the round would be over") for field in empty]
    faults += _faults_of_table(proposed, rules) if read is None else ()
    for problem in position_problems(position, rules, tiles_on(proposed)):
        field = f"{FIELD}.{problem.part}"
        text = f"{problem.text}: {format_tiles(problem.tiles)}" if problem.tiles else problem.text
        if field not in empty:
            faults.append(FieldFault(field, text, "POSITION_IMPOSSIBLE"))
    if faults:
        raise InvalidRequest(*faults)
    return position


def _read(read: Callable[[], T], otherwise: T, faults: list[FieldFault]) -> T:
    """Returns what a function reads; if a field is malformed, adds its faults and returns another value."""
    try:
        return read()
    except InvalidRequest as error:
        faults += error.fields
        return otherwise


def _rack(message: game_service_pb2.StartSeat, field: str, faults: list[FieldFault]) -> Rack:
    seat = _read(partial(seat_of, message.seat, f"{field}.seat"), 0, faults)
    return Rack(seat, _read(partial(rack, message.rack, f"{field}.rack"), (), faults), message.has_melded)


def _faults_of_table(proposed: ProposedTable, rules: MeldingRuleset) -> Iterator[FieldFault]:
    """Yields what is wrong with a table that is not legal: each meld that is none, or the table as a whole."""
    readings = () if isinstance(proposed, Grid) else tuple(read_meld(meld, rules) for meld in proposed)
    wrong = [(place, reading) for place, reading in enumerate(readings) if isinstance(reading, NotAMeld)]
    for place, reading in wrong:
        text = f"the tiles form no meld: {reading.reasons[0].name}"
        yield FieldFault(f"{FIELD}.table[{place}]", text, "MALFORMED_TABLE")
    if not wrong:
        layout = rules.table_layout.name
        yield FieldFault(f"{FIELD}.table", f"expected a legal table of table_layout {layout}", "MALFORMED_TABLE")
