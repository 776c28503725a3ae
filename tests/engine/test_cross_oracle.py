"""The oracle of the cross layout says of examples what the rules say, and its random plays cover every rule."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import pytest

from engine.notation import parse_tile
from engine.tiles import JOKER, Tile
from oracles.cross_judge import Cell, Options, Placed, Violation, judge, points
from oracles.cross_plays import Turn, tiny_positions, turns
from oracles.cross_search import legal_play
from support.cases import each_of

pytestmark = pytest.mark.unmeasured

STANDARD: Final = Options()
T: Final = "0,0 > R3 R4 R5"
WITH_JOKER: Final = "0,0 > R3 J R5"
REASONS: Final = {
    "CELL_ISOLATED",
    "CELL_OCCUPIED",
    "COORDINATE_OUT_OF_RANGE",
    "CROSSING_JOKER_CONFLICT",
    "INITIAL_MELD_BELOW_THRESHOLD",
    "INITIAL_MELD_HAS_JOKER",
    "INITIAL_MELD_TABLE_MODIFIED",
    "INITIAL_MELD_TOUCHES_TABLE",
    "JOKER_RETRIEVAL_BEFORE_INITIAL_MELD",
    "JOKER_TO_RACK",
    "LINE_INVALID",
    "NO_RACK_TILE_PLAYED",
    "TABLE_TILE_MISSING",
    "TABLE_TILE_MOVED",
    "TILE_DUPLICATED",
    "TILE_NOT_IN_RACK",
}


@dataclass(frozen=True)
class Case:
    """A play: `x,y > tiles` are laid from a cell to the right, `x,y v tiles` downward.

    Attributes:
        name: Its number in the specification, or what it shows.
        before: The table.
        placed: The tiles that come to the table, and the places of tiles that move.
        verdict: The reasons, in the order of the alphabet; the points of the tiles played if it is legal.
        melded: Whether the player has melded.
        removed: The cells that become empty first, with spaces between.
        rack: The tiles of the rack, if other than those placed.
        options: The options.
    """

    name: str
    before: str
    placed: str
    verdict: str | int
    melded: bool = True
    removed: str = ""
    rack: str | None = None
    options: Options = STANDARD


FREE: Final = Options(manipulation="FREE")
ZERO: Final = Options(initial_joker="ZERO")
FORBIDDEN: Final = Options(initial_joker="FORBIDDEN")
ONE_HIGH: Final = Options(run_wrap="ONE_HIGH")
CYCLIC: Final = Options(run_wrap="CYCLIC")
SIX_COLORS: Final = Options(colors=6)

CASES: Final = (
    Case("X1", T, "-1,0 > R2; 1,1 v B4 K4", 10),
    Case("X2", T, "1,1 > B4", "LINE_INVALID"),
    Case("X3", T, "5,0 > O9", "CELL_ISOLATED"),
    Case("X4", T, "3,0 v R6 B6 O6", 18),
    Case("X6", f"{T}; 0,2 > K7 K8 K9", "1,1 > B4", "LINE_INVALID"),
    Case("X7", T, "0,3 > K9 K10 K11", 30, melded=False),
    Case("X8", T, "0,1 > K9 K10 K11", "INITIAL_MELD_TOUCHES_TABLE LINE_INVALID", melded=False),
    Case("X10", "", "0,0 > K4 K5 K6; 1,1 v B5 R5", "INITIAL_MELD_BELOW_THRESHOLD", melded=False),
    Case("X11", WITH_JOKER, "1,1 v B4 K4", 8),
    Case("X13", WITH_JOKER, "1,0 > R4; 3,0 > J", 4, rack="R4"),
    Case("X14", WITH_JOKER, "1,0 > R4", "JOKER_TO_RACK"),
    Case("X15", T, "4,0 > R9 R10 R11", 30),
    Case("X16", T, "3,0 > R9 R10 R11", "LINE_INVALID"),
    Case("C1: the last coordinate", "", "125,-127 > B1 B2 B3", 6),
    Case("C1: one too far", "", "126,0 > B1 B2 B3", "COORDINATE_OUT_OF_RANGE"),
    Case("C2: a run of two", "", "0,0 > B1 B2", "LINE_INVALID"),
    Case("C2: a run falls", "", "0,0 > B3 B2 B1", "LINE_INVALID"),
    Case("C2: a run downward", "", "0,0 v B1 B2 B3", "LINE_INVALID"),
    Case("C2: a group to the right", "", "0,0 > B1 R1 K1", "LINE_INVALID"),
    Case("C2: diagonal contact is none", T, "3,1 > K6 K7 K8", 21),
    Case("C2: three runs one below the other", T, "0,1 > B3 B4 B5; 0,2 > K3 K4 K5", 24),
    Case("C4: a play fills a gap between two runs", f"{T}; 4,0 > R7 R8 R9", "3,0 > R6", 6),
    Case("C4: a group between two runs", f"{T}; 1,2 > O4 O5 O6", "1,1 > B4", 4),
    Case("C5: a tile on a tile", T, "1,0 > R4", "CELL_OCCUPIED"),
    Case(
        "C5: a tile moves", f"{T}; 3,0 > R6", "0,5 > R7 R8; -1,5 > R6", "TABLE_TILE_MOVED", removed="3,0", rack="R7 R8"
    ),
    Case(
        "C6: the same with FREE",
        f"{T}; 3,0 > R6",
        "0,5 > R7 R8; -1,5 > R6",
        15,
        removed="3,0",
        rack="R7 R8",
        options=FREE,
    ),
    Case(
        "C6: not before the initial meld",
        T,
        "9,9 > R3 R4 R5; 0,5 > R10 R11 R12",
        "INITIAL_MELD_TABLE_MODIFIED",
        melded=False,
        removed="0,0 1,0 2,0",
        rack="R10 R11 R12",
        options=FREE,
    ),
    Case("C7: the shared tile counts once, 30", "", "0,0 > K5 K6 K7; 1,1 v B6 R6", 30, melded=False),
    Case("C7: touches at a group", T, "1,1 v B4 K4; 4,4 > O9 O10 O11", "INITIAL_MELD_TOUCHES_TABLE", melded=False),
    Case(
        "C7: more than the threshold",
        "",
        "0,0 > K9 K10 K11",
        "INITIAL_MELD_BELOW_THRESHOLD",
        melded=False,
        options=Options(comparison="GREATER_THAN"),
    ),
    Case("C7: a joker counts its face", "", "0,0 > K9 J K11", 30, melded=False),
    Case(
        "C7: a joker counts nothing", "", "0,0 > K9 J K11", "INITIAL_MELD_BELOW_THRESHOLD", melded=False, options=ZERO
    ),
    Case("C7: no joker", "", "0,0 > K9 J K11", "INITIAL_MELD_HAS_JOKER", melded=False, options=FORBIDDEN),
    Case("C9: the run's color is in the group", "0,0 > R4 J R6", "1,1 v K5 R5", "CROSSING_JOKER_CONFLICT"),
    Case("C9: the run's value is not the group's", "0,0 > R4 J R6", "1,1 v K7 B7", "CROSSING_JOKER_CONFLICT"),
    Case(
        "C9: two jokers of a group with one face", "0,0 > R4 J R6; 0,2 > R4 J R6", "1,1 > K5", "CROSSING_JOKER_CONFLICT"
    ),
    Case("C9: two jokers of a group with two faces", "0,0 > R4 J R6; 0,2 > B4 J B6", "1,1 > K5", 5),
    Case("C9: one joker is fixed, one is free", "0,0 > R4 J R6; 1,2 > O5 O6 O7", "1,1 > J", 5),
    Case("C10: not the joker's face", WITH_JOKER, "1,0 > B4; 3,0 > J", "LINE_INVALID TABLE_TILE_MOVED", rack="B4"),
    Case(
        "C10: the joker leaves its cell empty",
        f"{WITH_JOKER}; 3,0 > J",
        "0,5 > B7 B8 J",
        "TABLE_TILE_MOVED",
        removed="3,0",
        rack="B7 B8",
    ),
    Case(
        "C10: before the initial meld",
        WITH_JOKER,
        "1,0 > R4; 0,5 > J K11 K12 K13",
        "JOKER_RETRIEVAL_BEFORE_INITIAL_MELD",
        melded=False,
        rack="R4 K11 K12 K13",
    ),
    Case(
        "C10: before the initial meld, FREE",
        f"{T}; 3,0 > J",
        "0,5 > J K11 K12 K13",
        "JOKER_RETRIEVAL_BEFORE_INITIAL_MELD",
        melded=False,
        removed="3,0",
        rack="K11 K12 K13",
        options=FREE,
    ),
    Case("C10: the new tile is at the crossing", "0,0 > R3 J R5; 1,1 v B4 K4", "1,0 > R4; 3,0 > J", 4, rack="R4"),
    Case(
        "C10: only the group allows the face",
        f"{WITH_JOKER}; 1,1 v B4 K4",
        "1,0 > O4; 3,0 > J",
        "LINE_INVALID TABLE_TILE_MOVED",
        rack="O4",
    ),
    Case("C11: a group of five", "0,0 v R4 B4 K4 O4", "0,4 > J", "LINE_INVALID"),
    Case("C11: below a full group", "0,0 v R4 B4 K4 O4", "0,4 > K7 K8 K9", "LINE_INVALID"),
    Case("six colors", "0,0 v R4 B4 K4 O4", "0,4 v G4 P4", 8, options=SIX_COLORS),
    Case("jokers only", "", "0,0 > J J J", "LINE_INVALID", options=Options(jokers=3)),
    Case("a game without jokers", "", "0,0 > R3 J R5", "LINE_INVALID", options=Options(jokers=0)),
    Case("13 and 1", "", "0,0 > R12 R13 R1", "LINE_INVALID"),
    Case("13 and 1, ONE_HIGH", "", "0,0 > R12 R13 R1", 26, options=ONE_HIGH),
    Case("13, 1 and 2, ONE_HIGH", "", "0,0 > R13 R1 R2", "LINE_INVALID", options=ONE_HIGH),
    Case("13, 1 and 2, CYCLIC", "", "0,0 > R13 R1 J", 16, options=CYCLIC),
    Case("no tile", T, "", "NO_RACK_TILE_PLAYED"),
    Case(
        "a tile of the table only moves",
        f"{T}; 3,0 > R6",
        "-1,0 > R6",
        "LINE_INVALID NO_RACK_TILE_PLAYED TABLE_TILE_MOVED",
        removed="3,0",
        rack="",
    ),
    Case("a tile of another rack", T, "3,0 > R6", "NO_RACK_TILE_PLAYED TILE_NOT_IN_RACK", rack="R7"),
    Case("a tile of another rack, initial meld", "", "0,0 > K4 K5 K6", "TILE_NOT_IN_RACK", melded=False, rack="K4 K5"),
    Case("a tile twice", T, "3,0 > R6; 0,5 > R6 R7 R8", "TILE_DUPLICATED", rack="R6 R7 R8"),
    Case("a tile of the table is missing", f"{T}; 3,0 > R6", "1,1 v B4 K4", "TABLE_TILE_MISSING", removed="3,0"),
)


def tiles_of(text: str) -> list[Tile]:
    return [parse_tile(word) for word in text.split()]


def placed_of(text: str) -> Iterator[Placed]:
    for line in filter(None, text.split("; ")):
        cell, direction, *tiles = line.split()
        x, y = map(int, cell.split(","))
        for step, t in enumerate(map(parse_tile, tiles)):
            yield (t, x + step, y) if direction == ">" else (t, x, y + step)


def turn_of(case: Case) -> Turn:
    before = {(x, y): t for t, x, y in placed_of(case.before)}
    placed = [*placed_of(case.placed)]
    removed = {(int(x), int(y)) for x, y in (cell.split(",") for cell in case.removed.split())}
    replaced: set[Cell] = {(x, y) for _, x, y in placed if before.get((x, y)) == JOKER}
    kept = [(t, x, y) for (x, y), t in before.items() if (x, y) not in removed | replaced]
    rack = tiles_of(case.rack) if case.rack is not None else [t for t, _, _ in placed]
    return Turn(before, (*kept, *placed), tuple(rack), case.melded, case.options)


def reasons(violations: set[Violation]) -> list[str]:
    return sorted({reason for reason, _ in violations})


@each_of("case", CASES, ids=lambda case: case.name)
def test_examples(case: Case) -> None:
    turn = turn_of(case)
    violations = turn.violations()
    if isinstance(case.verdict, int):
        assert not violations
        assert points(turn.before, turn.after, turn.rack, turn.options) == case.verdict
    else:
        assert reasons(violations) == case.verdict.split()


def test_a_violation_names_the_cells() -> None:
    column = frozenset({(1, 0), (1, 1)})
    assert turn_of(Case("X2", T, "1,1 > B4", "")).violations() == {("LINE_INVALID", column)}
    columns = {("LINE_INVALID", frozenset({(x, 0), (x, 1)})) for x in range(3)}
    touching = "INITIAL_MELD_TOUCHES_TABLE", frozenset({(0, 1), (1, 1), (2, 1)})
    assert turn_of(Case("X8", T, "0,1 > K9 K10 K11", "", melded=False)).violations() == {*columns, touching}
    clash = turn_of(Case("C9", "0,0 > R4 J R6; 0,2 > R4 J R6", "1,1 > K5", "")).violations()
    assert clash == {("CROSSING_JOKER_CONFLICT", frozenset({(1, 0), (1, 2)}))}
    missing = turn_of(Case("X14", WITH_JOKER, "1,0 > R4", "")).violations()
    assert missing == {("JOKER_TO_RACK", frozenset({JOKER}))}


@pytest.mark.slow
def test_random_plays_break_every_rule_and_keep_all_in_many_ways() -> None:
    drawn = [*islice(turns(random.Random(0)), 2000)]
    broken = Counter(reason for turn in drawn for reason in reasons(turn.violations()))
    assert broken.keys() == REASONS
    assert min(broken.values()) >= 3
    assert 0.4 < sum(not turn.violations() for turn in drawn) / len(drawn) < 0.8


# The search


@each_of(
    "before, rack, melded, options, exists",
    [
        (T, "R6", True, STANDARD, True),
        (T, "R7", True, STANDARD, False),
        (T, "R7 B9 K9", True, STANDARD, False),
        (T, "R7 R6", True, STANDARD, True),
        (T, "B4 K4", True, STANDARD, True),
        (T, "B4", True, STANDARD, False),
        (T, "R6", False, STANDARD, False),
        (T, "R10 R9 R11", False, STANDARD, True),
        (T, "R9 R8 R10", False, STANDARD, False),
        (T, "R9 J R10", False, STANDARD, True),
        (T, "R9 J R10", False, ZERO, False),
        (WITH_JOKER, "R4", True, STANDARD, True),
        ("0,0 > R11 J R13", "R12", True, STANDARD, True),
        ("0,0 v B1 R1 J", "K1", True, STANDARD, True),
        ("0,0 > R11 J R13", "B12", True, STANDARD, False),
        (f"{T}; 4,0 > R7 R8 R9", "R6", True, STANDARD, True),
        (f"{T}; 0,2 > R7 R8 R9", "B7 K7", True, STANDARD, True),
        ("0,0 > R1 R2 R3; 3,0 > R4", "B4 O4", True, FREE, True),
        ("0,0 > R1 R2 R3 R4 R5", "B3 B1", True, FREE, False),
        ("0,0 > R1 R2 R3 R4", "B1 K1", True, STANDARD, True),
        ("0,0 > R1 R2 R3 R4; 0,1 v B1 K1", "R1", True, STANDARD, False),
    ],
)
def test_search(before: str, rack: str, melded: bool, options: Options, exists: bool) -> None:
    table = {(x, y): t for t, x, y in placed_of(before)}
    found = legal_play(table, tiles_of(rack), melded, options)
    assert (found is not None) == exists
    assert found is None or not judge(table, found, tiles_of(rack), melded, options)


@pytest.mark.slow
def test_search_finds_a_play_where_a_random_one_is_legal() -> None:
    drawn = islice(turns(random.Random(1)), 1500)
    small = [turn for turn in drawn if len(turn.before) <= 6 and len(turn.rack) <= 4 and not turn.violations()]
    assert len(small) > 25
    for turn in small:
        assert legal_play(turn.before, turn.rack, turn.has_melded, turn.options), turn


@pytest.mark.slow
def test_search_finds_a_play_with_free_manipulation_where_there_is_one_without() -> None:
    counts = Counter[bool]()
    for turn in islice(tiny_positions(random.Random(2), STANDARD), 150):
        exists = legal_play(turn.before, turn.rack, turn.has_melded, STANDARD) is not None
        assert not exists or legal_play(turn.before, turn.rack, turn.has_melded, FREE), turn
        counts[exists] += 1
    assert min(counts.values()) > 25
