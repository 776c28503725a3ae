"""The search for plays on a grid: what it finds is legal, none is better, and none exists where it finds none."""

import random
from dataclasses import replace
from itertools import islice

import pytest

from engine.effort import Budget
from engine.melding.analysis import Existence, GridSituation
from engine.melding.grid.bots import GridPosition, play_on_grid
from engine.melding.grid.cells import Cell, Grid, without_faces
from engine.melding.grid.play import GridPlay
from engine.melding.grid.rules import judge_grid
from engine.melding.notation import format_table
from engine.melding.presets import PRESETS
from engine.melding.ruleset import InitialMeldJoker, JokersMaxPerMeld, Manipulation, Preset
from engine.melding.solver import Objective, best_turn, has_turn
from engine.melding.solver.grid_search import BestGridTurn, GridTurn, with_islands
from engine.notation import format_tiles, parse_tile
from engine.sight import see
from engine.skill import Skill
from oracles import cross_plays, cross_search
from support.grids import CROSS, play_of, situation
from support.positions import lobby
from support.soak import few_of

pytestmark = pytest.mark.slow

FREE = replace(CROSS, manipulation=Manipulation.FREE)
AMPLE = Budget(nodes=2_000_000)
COMPARED = 8
"""How many turns are compared with the best."""


def legal(position: GridSituation, found: BestGridTurn) -> GridTurn:
    """Returns a turn that was found, which the rules must allow with the tiles that it states."""
    assert found.turn is not None
    after = without_faces(found.turn.table)
    judged = judge_grid(
        GridPlay(position.table, after, position.rack, position.has_melded, position.ruleset, calls_rummikub=True)
    )
    assert not judged.violations
    assert judged.tiles_played == found.turn.tiles
    assert judged.table == found.turn.table
    return found.turn


def best(before: str, rack: str, *, has_melded: bool = True, objective: Objective = Objective.MOST_TILES) -> str:
    """Returns the tiles of the best turn, which must be proven; `none` if there is none."""
    position = situation(before, rack, has_melded=has_melded)
    found = best_turn(position, objective, AMPLE)
    assert found.is_proven
    assert found.is_least_change
    exists = has_turn(position, AMPLE)
    assert exists is (Existence.YES if found.turn else Existence.NO)
    return format_tiles(legal(position, found).tiles) if found.turn else "none"


@pytest.mark.parametrize(
    ("before", "rack", "expected"),
    [
        (".", "R3 R4", "none"),
        (".", "R3 R4 R5", "R3 R4 R5"),
        ("0,0[R3 R4 R5]", "R2 B4 K4 O9", "R2 B4 K4"),
        ("0,0[R3 R4 R5]", "B4", "none"),
        ("0,0[R3 R4 R5]", "B4 J", "B4 J"),
        ("0,0[R3 J R5]", "R4", "R4"),
        ("0,0[R3 J R5]", "R4 B6 K6", "R4 B6 K6"),
        ("0,0[R3 R4 R5] | 0,3[R3 R4 R5]", "B4 K4", "B4 K4"),
        ("0,0[R3 R4 R5]", "B3 K3 B5 K5", "B3 B5 K3 K5"),
        ("0,0[R3 R4 R5] | 0,2[K7 K8 K9]", "B4 O4", "B4 O4"),
        ("0,0[R3 R4 R5]", "K8 K9 K10 B9 R9", "R9 B9 K8 K9 K10"),
    ],
)
def test_the_best_turn_plays_the_most_tiles(before: str, rack: str, expected: str) -> None:
    assert best(before, rack) == expected


@pytest.mark.parametrize(
    ("rack", "expected"),
    [
        ("K9 K10 K11", "K9 K10 K11"),
        ("K9 K10", "none"),
        ("R1 R2 R3 B1 B2 B3", "none"),
        ("K8 K9 K10 B9 R9", "R9 B9 K8 K9 K10"),
        ("K9 K10 J", "K9 K10 J"),
        ("R1 R2 R3 K9 K10 K11", "R1 R2 R3 K9 K10 K11"),
    ],
)
def test_the_initial_meld_stands_alone_and_reaches_the_threshold(rack: str, expected: str) -> None:
    assert best("0,0[R3 R4 R5]", rack, has_melded=False) == expected


def test_the_highest_value_may_be_fewer_tiles() -> None:
    table = "0,0[R10 R11 R12] | 0,4[R1 R2 R3]"
    assert best(table, "R13 B13", objective=Objective.HIGHEST_VALUE) == "R13"
    assert best(table, "R13 R4", objective=Objective.HIGHEST_VALUE) == "R4 R13"


def test_jokers_that_may_not_begin_are_not_found() -> None:
    rules = replace(CROSS, initial_meld_joker=InitialMeldJoker.FORBIDDEN)
    position = situation(".", "K9 K10 J", has_melded=False, ruleset=rules)
    assert best_turn(position, Objective.MOST_TILES, AMPLE) == BestGridTurn(None, is_proven=True)


@pytest.mark.parametrize(("rack", "count"), [("K9 K10 J", 0), ("K9 K10 K11 J", 4)])
def test_jokers_that_count_nothing_do_not_help_to_begin(rack: str, count: int) -> None:
    rules = replace(CROSS, initial_meld_joker=InitialMeldJoker.ZERO)
    position = situation(".", rack, has_melded=False, ruleset=rules)
    found = best_turn(position, Objective.MOST_TILES, AMPLE)
    assert found.is_proven
    assert (len(legal(position, found).tiles) if found.turn else 0) == count


def test_a_part_of_a_line_may_have_more_jokers_than_the_line() -> None:
    rules = replace(CROSS, geometry_jokers=4, jokers_max_per_meld=JokersMaxPerMeld.NOT_MORE_THAN_NATURALS)
    position = situation(".", "R3 J J R6", ruleset=rules)
    assert len(legal(position, best_turn(position, Objective.MOST_TILES, AMPLE)).tiles) == 4


def test_a_part_of_a_line_may_begin_with_a_joker_where_the_line_may_not() -> None:
    rules = replace(CROSS, jokers_may_lead=False)
    position = situation("0,0[R5 R6 R7]", "R3 J", ruleset=rules)
    assert format_tiles(legal(position, best_turn(position, Objective.MOST_TILES, AMPLE)).tiles) == "R3 J"


def test_where_tiles_may_move_a_turn_that_moves_none_is_a_turn() -> None:
    position = situation("0,0[R3 R4 R5]", "R2 O9", ruleset=FREE)
    found = best_turn(position, Objective.MOST_TILES, AMPLE)
    assert format_tiles(legal(position, found).tiles) == "R2"
    assert not found.is_proven
    assert has_turn(position, AMPLE) is Existence.YES


def test_where_tiles_may_move_that_none_is_found_proves_nothing() -> None:
    position = situation("0,0[R3 R4 R5 R6] | 8,0[B6] | 8,1[K6] | 8,2[O6]", "O1", ruleset=FREE)
    assert best_turn(position, Objective.MOST_TILES, AMPLE) == BestGridTurn(None, is_proven=False)
    assert has_turn(position, AMPLE) is Existence.UNKNOWN


def test_where_tiles_may_move_the_initial_meld_is_found_all_the_same() -> None:
    position = situation("0,0[R3 R4 R5]", "R2 O9", has_melded=False, ruleset=FREE)
    assert has_turn(position, AMPLE) is Existence.NO


def test_a_search_out_of_budget_says_what_it_has_found() -> None:
    position = situation("0,0[R3 R4 R5]", "R2 B4 K4 O4 K8 K9 K10 B9 R9")
    found = best_turn(position, Objective.MOST_TILES, Budget(nodes=250))
    assert not found.is_proven
    assert 0 < len(legal(position, found).tiles) < 9
    assert has_turn(position, Budget(nodes=1)) is Existence.UNKNOWN
    stopped = best_turn(position, Objective.MOST_TILES, Budget(is_over=lambda: True))
    assert not stopped.is_proven


def test_melds_that_stand_alone_lie_near_the_table() -> None:
    position = situation("0,0[R3 R4 R5]", "K8 K9 K10")
    turn = legal(position, best_turn(position, Objective.MOST_TILES, AMPLE))
    assert format_table(turn.table) == "0,0[R3 R4 R5] | 4,0[K8 K9 K10]"


def test_melds_that_stand_alone_find_room_on_a_table_whose_corners_are_taken() -> None:
    corners = " | ".join(f"{x},{y}[{run}]" for x, run in ((-127, "R1 R2 R3"), (125, "R4 R5 R6")) for y in (-127, 127))
    position = situation(corners, "K8 K9 K10 K11")
    assert len(legal(position, best_turn(position, Objective.MOST_TILES, AMPLE)).tiles) == 4


def test_melds_that_stand_alone_find_room_beyond_what_is_near() -> None:
    fence = {Cell(x, y): parse_tile("R1") for x in range(-127, 128, 2) for y in range(-127, 117, 2)}
    island = {Cell(x, 0): parse_tile("K1") for x in range(3)}
    placed = with_islands(fence, (island,))
    [lowest] = {cell.y for cell, t in placed.items() if t == parse_tile("K1")}
    assert lowest > 116


def test_a_turn_on_a_grid_has_no_river_and_no_melds() -> None:
    position = situation(".", "K8 K9 K10")
    turn = legal(position, best_turn(position, Objective.MOST_TILES, AMPLE))
    assert (turn.river_index, turn.untouched) == (None, ())


# Bots


def bot_plays(position: GridSituation, skill: Skill | None = None, *, must_play: bool = False) -> str:
    """Returns the tiles that a bot plays, which the rules must accept; one without a skill overlooks nothing."""
    view = see(lobby("Ada"), 1)
    action = play_on_grid(GridPosition(1, position, position.rack, must_play), view, skill, Budget(nodes=20_000))
    if action is None:
        return "none"
    after = action.table
    assert isinstance(after, Grid)
    judged = judge_grid(GridPlay(position.table, after, position.rack, position.has_melded, position.ruleset))
    assert not judged.violations
    assert action.calls_rummikub == (not judged.rack_left)
    return format_tiles(judged.tiles_played)


NO_TABLE = Skill(rack=100, table=0)


@pytest.mark.parametrize(
    ("skill", "expected"),
    [
        (None, "R2 K8 K9 K10"),
        (Skill(rack=100, table=100), "R2 K8 K9 K10"),
        (NO_TABLE, "K8 K9 K10"),
        (Skill(rack=0, table=100), "none"),
    ],
)
def test_a_bot_that_overlooks_the_table_lays_melds_that_stand_alone(skill: Skill | None, expected: str) -> None:
    assert bot_plays(situation("0,0[R3 R4 R5]", "R2 K8 K9 K10 O1"), skill) == expected


def test_a_bot_that_must_play_joins_tiles_too() -> None:
    position = situation("0,0[R3 R4 R5]", "R2 O1")
    assert bot_plays(position, NO_TABLE) == "none"
    assert bot_plays(position, NO_TABLE, must_play=True) == "R2"
    assert bot_plays(situation("0,0[R3 R4 R5]", "O1"), NO_TABLE, must_play=True) == "none"


def test_a_bot_that_goes_out_calls() -> None:
    assert bot_plays(situation("0,0[R3 R4 R5]", "R2 K8 K9 K10")) == "R2 K8 K9 K10"


# Oracles


@pytest.mark.parametrize("seed", few_of(range(60), 2))
def test_a_turn_exists_where_trying_all_finds_one(seed: int) -> None:
    answers = set()
    for turn in islice(cross_plays.tiny_positions(random.Random(seed)), 25):
        if turn.options.manipulation == "FREE" and turn.has_melded:
            continue
        play = play_of(turn)
        position = GridSituation(play.table_before, play.rack, play.has_melded, play.ruleset)
        expected = cross_search.legal_play(turn.before, turn.rack, turn.has_melded, turn.options)
        answer = has_turn(position, AMPLE)
        assert answer is (Existence.YES if expected else Existence.NO), turn
        found = best_turn(position, Objective.MOST_TILES, AMPLE)
        assert found.is_proven
        assert bool(found.turn) == bool(expected)
        if found.turn:
            legal(position, found)
        answers.add(answer)
    assert Existence.NO in answers


@pytest.mark.parametrize("seed", few_of(range(60), 2))
def test_no_legal_turn_plays_more_tiles_than_the_best(seed: int) -> None:
    compared = 0
    for turn in islice(cross_plays.turns(random.Random(seed)), 2_000):
        if compared == COMPARED:
            break
        play = play_of(turn)
        small = len(play.rack) < 7 and turn.options.manipulation == "OFF"
        if not small or turn.violations():
            continue
        position = GridSituation(play.table_before, play.rack, play.has_melded, play.ruleset)
        found = best_turn(position, Objective.MOST_TILES, Budget(nodes=20_000))
        if found.is_proven:
            assert len(legal(position, found).tiles) >= len(judge_grid(play).tiles_played), turn
            compared += 1
    assert compared == COMPARED


def test_the_preset_keeps_the_tiles_of_the_table_in_their_cells() -> None:
    assert PRESETS[Preset.CROSS].manipulation is Manipulation.OFF
