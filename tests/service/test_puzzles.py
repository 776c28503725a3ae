"""PuzzleService on a real server, and the puzzles that it has: all legal, none with a better answer; one subject."""

import random
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio

from engine.melding.analysis import Situation
from engine.melding.notation import format_table
from engine.melding.presets import PRESETS
from engine.melding.puzzles import Difficulty, check, grade, parse_puzzle
from engine.melding.ruleset import Preset
from engine.melding.solver import Count, best_turn, count_best_turns
from engine.melding.table import as_proposed_table, count_tiles, tiles_on
from oracles.integer_program import IntegerProgram, supports
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import meld_pb2, ruleset_pb2, tile_pb2
from rummikub.v1 import puzzle_service_pb2 as pb
from service.codec.tiles import tile_numbers
from service.puzzles import DIRECTORY, lines_of, number_of_day, numbers_of, puzzle
from support.harness import Client, as_tiles, error_info, field_violations, memory_store, running_server
from tools.puzzles import ALIKE_MAX, OTHERS, SIZES, puzzles_of_game

pytestmark = pytest.mark.slow

each_preset = pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Client]:
    async with running_server(memory_store()) as (_, client):
        yield client


# The stored puzzles


@each_preset
def test_every_puzzle_is_legal_and_solved_by_its_solution(preset: Preset) -> None:
    ruleset = PRESETS[preset]
    assert len(lines_of(preset)) == SIZES.get(preset, OTHERS)
    for line in lines_of(preset):
        one = parse_puzzle(line, ruleset)
        situation = one.situation
        tiles = count_tiles(situation.table)
        tiles.update(situation.rack)
        assert all(count <= ruleset.copies_of(t) for t, count in tiles.items())
        assert situation.has_melded
        assert len(one.tiles) >= 2
        checked = check(one, as_proposed_table(one.table, ruleset))
        assert checked.is_solved
        assert checked.judgement.tiles_played == one.tiles
        assert one.grade == grade(situation.table, one.table, ruleset)


@each_preset
def test_no_turn_is_better_than_the_solution_of_some_puzzles(preset: Preset) -> None:
    """Solver and an integer program agree that no turn lays more tiles, and that all best turns lay the same ones."""
    program = IntegerProgram()
    for number in random.Random(preset.name).sample(numbers_of(preset), 5):
        one = puzzle(preset, number)
        found = best_turn(one.situation)
        assert found.turn is not None
        assert found.turn.tiles == one.tiles
        if isinstance(one.situation, Situation) and preset is not Preset.TWIST and supports(one.situation):
            best = program.best(one.situation)
            assert best is not None
            assert best.worth == len(one.tiles)
            assert count_best_turns(one.situation, limit=2) == Count(1, is_exact=True)


def test_there_are_puzzles_of_each_difficulty() -> None:
    for difficulty in Difficulty:
        assert len(numbers_of(Preset.SABRA, difficulty)) == 250


def test_puzzles_are_unlike_each_other() -> None:
    """Some small tables have melds in common by chance."""
    tables = [set(format_table(puzzle(Preset.SABRA, n).situation.table).split(" | ")) for n in range(1, 301)]
    large = [table for table in tables if len(table) > 5]
    assert all(len(one & other) <= ALIKE_MAX * min(len(one), len(other)) for one, other in combinations(large, 2))


def test_all_puzzles_are_small() -> None:
    files = list(Path(DIRECTORY).glob("*.gz"))
    assert {file.name for file in files} == {f"{preset.name}.txt.gz" for preset in PRESETS}
    assert sum(file.stat().st_size for file in files) < 400_000


def test_the_same_seed_gives_the_same_puzzles() -> None:
    made = puzzles_of_game(Preset.SABRA, 3)
    assert made
    assert made == puzzles_of_game(Preset.SABRA, 3)


def test_each_day_has_another_puzzle() -> None:
    days = [date(2027, 1, 1) + timedelta(days=day) for day in range(1_000)]
    assert len({number_of_day(Preset.SABRA, day) for day in days}) == 1_000


# The service


def preset_number(preset: Preset) -> ruleset_pb2.Preset.ValueType:
    return ruleset_pb2.Preset.Value(f"PRESET_{preset.name}")


@pytest.mark.parametrize("preset", [Preset.SABRA, Preset.CROSS, Preset.TWIST], ids=lambda preset: preset.name)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_solution_is_returned_on_demand_only_and_solves(client: Client, preset: Preset) -> None:
    """The answer without the solution has no tile of it that is not on the table or the rack as they are."""
    request = pb.GetPuzzleRequest(preset=preset_number(preset), number=7)
    plain = await client.puzzles.GetPuzzle(request)
    assert not plain.HasField("solution")
    assert plain.date == ""
    stored = puzzle(preset, 7)
    assert (plain.puzzle.number, plain.puzzle.count) == (7, len(lines_of(preset)))
    assert plain.puzzle.tiles_to_play == len(stored.tiles)
    assert tuple(plain.puzzle.position.rack) == tile_numbers(stored.situation.rack)
    assert len(tiles_of(plain.puzzle.position.table)) == len(tiles_on(stored.situation.table))
    request.reveal_solution = True
    revealed = await client.puzzles.GetPuzzle(request)
    assert tuple(revealed.solution.tiles_played) == tile_numbers(stored.tiles)
    assert revealed.puzzle == plain.puzzle
    assert revealed.solution.table_after.SerializeToString() not in plain.SerializeToString()
    checked = await client.puzzles.CheckPuzzle(
        pb.CheckPuzzleRequest(preset=request.preset, number=7, table_after=revealed.solution.table_after)
    )
    assert checked.is_solved
    assert tuple(checked.tiles_played) == tile_numbers(stored.tiles)
    assert not checked.violations
    assert not checked.tiles_missing


def tiles_of(table: meld_pb2.Table) -> list[int]:
    placed = [one.tile for one in table.placements]
    return [*placed, *(t for meld in table.melds for t in meld.tiles)]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_puzzle_can_be_sent_to_the_analysis(client: Client) -> None:
    found = (await client.puzzles.GetPuzzle(pb.GetPuzzleRequest(number=3))).puzzle
    suggested = await client.analysis.SuggestTurn(an.SuggestTurnRequest(position=found.position))
    assert len(suggested.suggestion.tiles_played) == found.tiles_to_play


@pytest.mark.asyncio(loop_scope="module")
async def test_the_puzzle_of_the_day_is_that_of_today_in_utc(client: Client) -> None:
    before = datetime.now(UTC).date()
    found = await client.puzzles.GetPuzzle(pb.GetPuzzleRequest())
    assert date.fromisoformat(found.date) in {before, datetime.now(UTC).date()}
    again = await client.puzzles.GetPuzzle(pb.GetPuzzleRequest(date=found.date, preset=ruleset_pb2.PRESET_SABRA))
    assert again == found
    assert found.puzzle.number == number_of_day(Preset.SABRA, date.fromisoformat(found.date))


@pytest.mark.parametrize("difficulty", Difficulty, ids=lambda difficulty: difficulty.name)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_day_has_a_puzzle_of_each_difficulty(client: Client, difficulty: Difficulty) -> None:
    wanted = pb.PuzzleDifficulty.Value(f"PUZZLE_DIFFICULTY_{difficulty.name}")
    found = await client.puzzles.GetPuzzle(pb.GetPuzzleRequest(date="2027-01-31", difficulty=wanted))
    assert found.date == "2027-01-31"
    assert found.puzzle.difficulty == wanted


@pytest.mark.asyncio(loop_scope="module")
async def test_an_answer_that_leaves_tiles_says_which(client: Client) -> None:
    """A melded player's whole rack beside an unchanged table is illegal; what is laid of a solution is not all."""
    number, kept, left = await a_partial_answer(client)
    checked = await client.puzzles.CheckPuzzle(pb.CheckPuzzleRequest(number=number, table_after=kept))
    assert not checked.is_solved
    assert not checked.violations
    assert list(checked.tiles_missing) == left


async def a_partial_answer(client: Client) -> tuple[int, meld_pb2.Table, list[int]]:
    """Returns a puzzle, its solution without one new meld of tiles of the rack only, and these tiles."""
    for number in range(1, 200):
        found = await client.puzzles.GetPuzzle(pb.GetPuzzleRequest(number=number, reveal_solution=True))
        melds = found.solution.table_after.melds
        on_table = tiles_of(found.puzzle.position.table)
        for place, meld in enumerate(melds):
            if not set(meld.tiles) & set(on_table) and len(meld.tiles) < len(found.solution.tiles_played):
                table = meld_pb2.Table(melds=[*melds[:place], *melds[place + 1 :]])
                return number, table, sorted(meld.tiles)
    raise AssertionError("there is none")


@pytest.mark.asyncio(loop_scope="module")
async def test_an_illegal_answer_is_an_answer_with_all_its_violations(client: Client) -> None:
    found = (await client.puzzles.GetPuzzle(pb.GetPuzzleRequest(number=1))).puzzle
    melds = found.position.table.melds
    broken = meld_pb2.Table(melds=[*melds[1:], meld_pb2.Meld(tiles=melds[0].tiles[:2])])
    checked = await client.puzzles.CheckPuzzle(pb.CheckPuzzleRequest(number=1, table_after=broken))
    assert not checked.is_solved
    assert len(checked.violations) >= 2
    assert all(violation.reason and violation.text for violation in checked.violations)
    assert not checked.tiles_missing
    nothing = await client.puzzles.CheckPuzzle(pb.CheckPuzzleRequest(number=1))
    assert nothing.violations, "all tiles of the table are missing"


OKEY = ruleset_pb2.PRESET_OKEY
A_GRID = meld_pb2.Table(placements=[meld_pb2.Placement(tile=tile_pb2.TILE_RED_1, x=0, y=0)])
A_TABLE = meld_pb2.Table(melds=[meld_pb2.Meld(tiles=as_tiles([1, 2, 3]))])


@pytest.mark.parametrize(
    ("request_", "field", "reason"),
    [
        (pb.GetPuzzleRequest(number=0), "number", "FIELD_INVALID"),
        (pb.GetPuzzleRequest(number=1_001), "number", "FIELD_INVALID"),
        (pb.GetPuzzleRequest(number=101, preset=ruleset_pb2.PRESET_CROSS), "number", "FIELD_INVALID"),
        (pb.GetPuzzleRequest(preset=OKEY), "preset", "FIELD_INVALID"),
        (pb.GetPuzzleRequest(preset=99_999), "preset", "FIELD_INVALID"),  # type: ignore[arg-type]
        (pb.GetPuzzleRequest(number=1, date="2027-01-01"), "date", "FIELD_INVALID"),
        (pb.GetPuzzleRequest(number=1, difficulty=pb.PUZZLE_DIFFICULTY_EASY), "difficulty", "FIELD_INVALID"),
        (pb.GetPuzzleRequest(difficulty=99), "difficulty", "FIELD_INVALID"),  # type: ignore[arg-type]
        (pb.GetPuzzleRequest(date="2027-02-30"), "date", "FIELD_INVALID"),
        (pb.GetPuzzleRequest(date="20270101"), "date", "FIELD_INVALID"),
        (pb.GetPuzzleRequest(date="٢٠٢٧-01-01"), "date", "FIELD_INVALID"),
        (pb.CheckPuzzleRequest(), "number", "FIELD_INVALID"),
        (pb.CheckPuzzleRequest(number=1, preset=OKEY), "preset", "FIELD_INVALID"),
        (pb.CheckPuzzleRequest(number=1, table_after=A_GRID), "table_after", "MALFORMED_TABLE"),
        (
            pb.CheckPuzzleRequest(number=1, preset=ruleset_pb2.PRESET_CROSS, table_after=A_TABLE),
            "table_after",
            "MALFORMED_TABLE",
        ),
        (
            pb.CheckPuzzleRequest(number=1, table_after=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=[999])])),  # type: ignore[list-item]
            "table_after[0].tiles[0]",
            "TILE_UNKNOWN",
        ),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_refused_request_names_its_field(
    client: Client, request_: pb.GetPuzzleRequest | pb.CheckPuzzleRequest, field: str, reason: str
) -> None:
    call: Any = client.puzzles.GetPuzzle if isinstance(request_, pb.GetPuzzleRequest) else client.puzzles.CheckPuzzle
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(request_)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert error_info(refused.value).reason == reason
    assert field_violations(refused.value) == [field]
