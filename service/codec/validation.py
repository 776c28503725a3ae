"""Requests and responses of ValidationService."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.game import RoundEnd, RoundResult
from engine.melding.grid.cells import Grid
from engine.melding.grid.play import GridPlay
from engine.melding.grid.rules import GridJudgement, read_grid
from engine.melding.melds import NotAMeld, read_meld
from engine.melding.play import Play
from engine.melding.rules import Judgement
from engine.melding.ruleset import PAIRS_PLAYERS, Ruleset, TableLayout, Teams, TurnDraw
from engine.melding.scoring import Standing
from engine.melding.table import Melds, Table, as_grid, tiles_on
from engine.tiles import Tile
from rummikub.v1 import analysis_service_pb2, meld_pb2, tile_pb2, validation_service_pb2
from service.codec.fields import Most, invalid, river_index
from service.codec.games import encode_result
from service.codec.tiles import (
    RACK_TILES_MAX,
    encode_table,
    encode_violation,
    only_melds,
    rack,
    table,
    tile_number,
    tile_numbers,
    tile_of,
    tiles_of,
)

RACKS_MIN: Final = 2
"""Fewest racks of a round to score."""
RACKS_MAX: Final = 6
"""Most racks of a round to score."""
BATCH_MAX: Final = 100
"""Most turns of a batch. As many turns of the largest game fit in the largest request."""


def play(message: validation_service_pb2.ValidateTurnRequest, rules: Ruleset, field: str = "") -> Play:
    """Returns a turn to judge.

    Args:
        message: The turn.
        rules: The ruleset.
        field: The path of the turn in a larger message, with a dot at the end, or "".
    """
    if rules.table_layout is not TableLayout.MELDS:
        raise invalid(f"{field}ruleset", "expected table_layout MELDS: ValidatePlacement judges the others")
    table = melds_before(message.table_before, rules, f"{field}table_before")
    tiles = rack(message.rack, f"{field}rack")
    river = river_of(message.river, rules, f"{field}river")
    check_possible((*tiles, *tiles_on(table), *river), rules, f"{field}rack")
    return Play(
        table_before=table,
        table_after=only_melds(message.table_after, f"{field}table_after"),
        rack=tiles,
        has_melded=has_melded(message, field),
        ruleset=rules,
        river=river,
        river_index=river_index(message, f"{field}river_index"),
        drawn=_drawn(message.tile_drawn, tiles, f"{field}tile_drawn"),
        calls_rummikub=message.calls_rummikub,
    )


def has_melded(
    message: validation_service_pb2.ValidateTurnRequest
    | validation_service_pb2.ValidatePlacementRequest
    | analysis_service_pb2.Position,
    field: str,
) -> bool:
    """Returns whether the player has made the initial meld, which a caller must not leave open."""
    if not message.HasField("has_melded"):
        raise invalid(
            f"{field}has_melded", "expected true or false: whether the player made the initial meld in an earlier turn"
        )
    return message.has_melded


def placement(message: validation_service_pb2.ValidatePlacementRequest, rules: Ruleset) -> GridPlay:
    """Returns a turn of the cross layout to judge."""
    if rules.table_layout is not TableLayout.GRID:
        raise invalid("ruleset", "expected table_layout GRID: ValidateTurn judges the others")
    before = grid_before(message.table_before, rules, "table_before")
    after = as_grid(table(message.table_after, "table_after"))
    if after is None:
        raise invalid("table_after", "expected placements", "MALFORMED_TABLE")
    tiles = rack(message.rack, "rack")
    check_possible((*tiles, *tiles_on(before)), rules, "rack")
    return GridPlay(
        table_before=before,
        table_after=after,
        rack=tiles,
        has_melded=has_melded(message, ""),
        ruleset=rules,
        drawn=_drawn(message.tile_drawn, tiles, "tile_drawn"),
        calls_rummikub=message.calls_rummikub,
    )


def table_before(message: meld_pb2.Table, rules: Ruleset, field: str) -> Table:
    """Returns the table when a turn began, which must be legal."""
    is_grid = rules.table_layout is TableLayout.GRID
    return grid_before(message, rules, field) if is_grid else melds_before(message, rules, field)


def grid_before(message: meld_pb2.Table, rules: Ruleset, field: str) -> Grid:
    """Returns the placements when a turn began, which must be a legal table."""
    sent = as_grid(table(message, field))
    if sent is None:
        raise invalid(field, "expected placements: the ruleset has table_layout GRID", "MALFORMED_TABLE")
    read = read_grid(sent, rules)
    if read is None:
        raise invalid(field, "the rows and columns of the placements are not all melds", "MALFORMED_TABLE")
    return read


def melds_before(message: meld_pb2.Table, rules: Ruleset, field: str) -> Melds:
    """Returns the melds when a turn began. Every one must be valid."""
    table = []
    for place, meld in enumerate(only_melds(message, field)):
        reading = read_meld(meld, rules)
        if isinstance(reading, NotAMeld):
            text = f"the tiles form no meld: {reading.reasons[0].name}"
            raise invalid(f"{field}[{place}]", text, "MALFORMED_TABLE")
        table.append(reading)
    return tuple(table)


def river_of(numbers: Sequence[int], rules: Ruleset, field: str) -> tuple[Tile, ...]:
    """Returns the River, oldest tile first."""
    if numbers and rules.turn_draw is not TurnDraw.TWO_RIVER:
        raise invalid(field, "there is no River without turn_draw TWO_RIVER", "POSITION_IMPOSSIBLE")
    return tiles_of(numbers, field, RACK_TILES_MAX, "FIELD_INVALID")


def _drawn(number: int, tiles: tuple[Tile, ...], field: str) -> Tile | None:
    """Returns the tile drawn in the turn, which must be on the rack; None for 0."""
    if not number:
        return None
    drawn = tile_of(number, field)
    if drawn not in tiles:
        raise invalid(field, "the tile drawn is not on the rack", "POSITION_IMPOSSIBLE")
    return drawn


def check_possible(tiles: Sequence[Tile], rules: Ruleset, field: str) -> None:
    """Raises InvalidRequest if a position has a face more often than the tile set (R1)."""
    for face, count in Counter(tiles).items():
        copies = rules.copies_of(face)
        if count > copies:
            name = tile_pb2.Tile.Name(tile_number(face))
            raise invalid(field, f"the tile set has {copies} of {name}", "POSITION_IMPOSSIBLE")


def encode_judgement(judgement: Judgement) -> validation_service_pb2.ValidateTurnResponse:
    """Returns a ValidateTurnResponse."""
    return validation_service_pb2.ValidateTurnResponse(
        violations=map(encode_violation, judgement.violations),
        tiles_played=tile_numbers(judgement.tiles_played),
        points=judgement.points,
        rack_left=tile_numbers(judgement.rack_left),
        goes_out=not judgement.violations and not judgement.rack_left,
    )


def encode_grid_judgement(judgement: GridJudgement) -> validation_service_pb2.ValidatePlacementResponse:
    """Returns a ValidatePlacementResponse."""
    is_legal = not judgement.violations
    return validation_service_pb2.ValidatePlacementResponse(
        violations=map(encode_violation, judgement.violations),
        tiles_played=tile_numbers(judgement.tiles_played),
        points=judgement.points,
        rack_left=tile_numbers(judgement.rack_left),
        goes_out=is_legal and not judgement.rack_left,
        table=encode_table(judgement.table) if is_legal else None,
    )


MOST_TURNS: Final = Most("turns", BATCH_MAX)
"""The bound of a batch. Long requests are checked before they are parsed, short ones by `check_batch`."""


def check_batch(turns: int) -> None:
    """Raises InvalidRequest if a batch has too many turns."""
    if turns > BATCH_MAX:
        raise MOST_TURNS.refusal


@dataclass(frozen=True, slots=True)
class RoundToScore:
    """A finished round: how it ended, and the players' standings in turn order from the starter."""

    end: RoundEnd
    standings: tuple[Standing, ...]


def round_to_score(message: validation_service_pb2.ScoreRoundRequest, rules: Ruleset) -> RoundToScore:
    """Returns a round to score."""
    _check_seats([entry.seat for entry in message.racks], rules)
    standings = tuple(
        Standing(
            seat=entry.seat,
            tiles=rack(entry.rack, f"racks[{place}].rack"),
            has_melded=not entry.never_melded,
            declined=entry.declined_to_meld,
        )
        for place, entry in enumerate(message.racks)
    )
    check_possible([t for standing in standings for t in standing.tiles], rules, "racks")
    empty = [place for place, standing in enumerate(standings) if not standing.tiles]
    if len(empty) > 1:
        raise invalid(f"racks[{empty[1]}].rack", "a round ends with the first empty rack", "POSITION_IMPOSSIBLE")
    return RoundToScore(RoundEnd.WENT_OUT if empty else RoundEnd.BLOCKED, standings)


def _check_seats(seats: Sequence[int], rules: Ruleset) -> None:
    """Raises InvalidRequest if seats are too many, too few, or not distinct positive numbers."""
    if not RACKS_MIN <= len(seats) <= RACKS_MAX:
        raise invalid("racks", f"expected {RACKS_MIN} to {RACKS_MAX} racks")
    if rules.teams is Teams.PAIRS and len(seats) != PAIRS_PLAYERS:
        raise invalid("racks", f"pairs are {PAIRS_PLAYERS} players", "POSITION_IMPOSSIBLE")
    for place, seat in enumerate(seats):
        if seat == 0 or seat in seats[:place]:
            raise invalid(f"racks[{place}].seat", "expected a number from 1 that is not used twice")


def encode_score(result: RoundResult) -> validation_service_pb2.ScoreRoundResponse:
    """Returns a ScoreRoundResponse."""
    message = encode_result(result)
    return validation_service_pb2.ScoreRoundResponse(
        round_end=message.round_end, winner_seats=message.winner_seats, seats=message.seats
    )
