"""PuzzleService: puzzles, and answers to them."""

from collections.abc import Generator
from datetime import UTC, datetime
from typing import Final

from engine.melding.grid.cells import Grid
from engine.melding.ruleset import TableLayout
from rummikub.v1 import puzzle_service_pb2 as pb
from service.analysis.queries import CheckAnswer
from service.app.identity import Caller
from service.codec import fields, puzzles
from service.codec.tiles import bounds_of_tables, table
from service.grpc_api.call_origin import current_origin
from service.grpc_api.deadlines import until_deadline
from service.grpc_api.handlers import Context
from service.grpc_api.rpc import Backend, Read, Rpc, Token
from service.puzzles import puzzle

JUDGING_SECONDS: Final = 1.0
"""How long a process may take to judge an answer. It takes a tenth of it."""


async def get_puzzle(_backend: Backend, request: pb.GetPuzzleRequest, _sender: Caller, _context: Context) -> bytes:
    """GetPuzzle."""
    preset, number, day = puzzles.chosen(request, datetime.now(UTC).date())
    found = puzzle(preset, number)
    return pb.GetPuzzleResponse(
        puzzle=puzzles.encode_puzzle(preset, number, found),
        date=day.isoformat() if day else "",
        solution=puzzles.encode_solution(found) if request.reveal_solution else None,
    ).SerializeToString()


async def check_puzzle(backend: Backend, read: Read, _sender: Caller, context: Context) -> bytes:
    """CheckPuzzle."""
    with backend.pool.admit(current_origin()) as admitted:
        checked = await admitted.ask(read.value, JUDGING_SECONDS, until_deadline(context))
    return puzzles.encode_checked(checked).SerializeToString()


def _read_check(data: bytes) -> Generator[None, None, Read]:
    request = fields.decode(pb.CheckPuzzleRequest, data, *bounds_of_tables("table_after"))
    preset = puzzles.preset_of(request.preset)
    found = puzzle(preset, puzzles.puzzle_number(request.number, preset))
    yield
    answer = table(request.table_after, "table_after")
    is_grid = found.situation.ruleset.table_layout is TableLayout.GRID
    if answer and isinstance(answer, Grid) is not is_grid:
        expected = "placements" if is_grid else "melds"
        raise fields.invalid("table_after", f"expected {expected}, as in the puzzle", "MALFORMED_TABLE")
    return Read(request, CheckAnswer(found, answer), len(data))


RPCS: Final[tuple[Rpc, ...]] = (
    Rpc(pb.GetPuzzleRequest, pb.GetPuzzleResponse, get_puzzle, token=Token.IGNORED),
    Rpc(pb.CheckPuzzleRequest, pb.CheckPuzzleResponse, check_puzzle, token=Token.IGNORED, read=_read_check),
)
