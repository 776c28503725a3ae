"""The solver's answers to positions with known answers, and its bounds; one subject."""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations, count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from conformance.engine_answers import play_of, ruleset_of
from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.melds import Meld, MeldKind, declared_faces, read_meld
from engine.melding.melds import ProposedMeld as Proposed
from engine.melding.notation import format_table, parse_melds
from engine.melding.rules import judge
from engine.melding.ruleset import (
    SABRA,
    Contract,
    InitialMeldComparison,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSameTurnTablePlay,
    JokerKinds,
    JokerRetrievalMode,
    JokersAdjacent,
    JokersDeclaration,
    JokersMaxPerMeld,
    Manipulation,
    MeldOrder,
    Ruleset,
    RunWrap,
    TurnDraw,
    problems,
    with_options,
)
from engine.melding.solver import (
    Arrangement,
    BestTurn,
    Count,
    Existence,
    LegalTurn,
    Objective,
    arrange,
    best_turn,
    count_best_turns,
    has_turn,
    restricted_search,
)
from engine.melding.solver.solution import read_stated
from engine.notation import format_tiles, parse_tiles
from engine.tiles import COLORS, JOKER, Tile, color_of, in_order, tile, value_of
from load.corpus.hostile import ENDLESS, QUESTIONS, SORTS, forget, recorded
from load.corpus.hostile import read as read_hostile
from load.corpus.hostile import ruleset_of as ruleset_of_sort
from load.corpus.positions import read
from oracles.brute_force import exists_by_force, faults
from support.cases import each_of
from support.conformance_cases import TurnQuestion, load
from support.positions import is_a
from support.soak import few_of
from support.work import calls_in

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

MOST, HIGHEST = Objective.MOST_TILES, Objective.HIGHEST_VALUE
YES, NO, UNKNOWN = Existence.YES, Existence.NO, Existence.UNKNOWN


def at(
    table: str, rack: str, options: Mapping[str, Any] | None = None, river: str = "", *, melded: bool = True
) -> Situation:
    """Returns a situation from text, under the default rules with some options changed."""
    ruleset = with_options(SABRA, options or {})
    melds = tuple(read_meld(proposed, ruleset) for proposed in parse_melds(table))
    known = tuple(meld for meld in melds if isinstance(meld, Meld))
    assert len(known) == len(melds), "the table is not valid"
    return Situation(known, in_order(parse_tiles(rack)), melded, ruleset, parse_tiles(river))


def played(answer: BestTurn) -> str | None:
    """Returns the tiles that leave the rack; None if there is no turn."""
    return format_tiles(answer.turn.tiles) if answer.turn else None


def worth(situation: Situation, answer: BestTurn, objective: Objective) -> int | None:
    """Returns the worth of the turn, minus the tiles from the River."""
    if answer.turn is None:
        return None
    index = answer.turn.river_index
    brought = () if index is None else situation.river[index + 1 :]
    if objective is MOST:
        return len(answer.turn.tiles) - len(brought)
    penalty = situation.ruleset.score_joker_penalty
    values = [sum(penalty if t == JOKER else value_of(t) for t in tiles) for tiles in (answer.turn.tiles, brought)]
    return values[0] - values[1]


# Positions with one best turn

THREE_AT_ONCE = [
    ("[R1 R2 J]", "B2 K2 O1"),
    ("[B10 K10 J]", "B12 K8 K9"),
    ("[B3 B4 J]", "R4 K3 O3"),
    ("[B2 K2 O2] | [R1 R2 R3] | [R1 B1 K1 O1]", "B1 B3 O3"),
]


@pytest.mark.parametrize(("table", "rack"), THREE_AT_ONCE)
def test_three_tiles_are_played_that_can_only_be_played_together(table: str, rack: str) -> None:
    situation = at(table, rack)
    assert best_turn(situation).turn is not None
    assert played(best_turn(situation)) == rack
    assert has_turn(situation) is YES
    for pair in combinations(situation.rack, 2):
        assert has_turn(replace(situation, rack=pair)) is NO


@pytest.mark.parametrize(
    ("table", "rack", "tiles", "untouched"),
    [
        pytest.param("[R3 R4 R5]", "R6 B1", "R6", 0, id="a tile at the end of a run"),
        pytest.param("[R3 B3 K3]", "O3", "O3", 0, id="the fourth color of a group"),
        pytest.param("[R3 R4 R5] | [B9 K9 O9]", "K1 K2 K3", "K1 K2 K3", 2, id="a meld of the rack"),
        pytest.param(
            "[O2 O3 O4] | [R5 B5 O5] | [B1 B2 B3 B4] | [R2 R3 R4]", "K2", "K2", 0, id="four melds dissolved for a tile"
        ),
        pytest.param(
            "[B2 K2 O2] | [B3 K3 O3] | [R1 R2 R3 R4] | [B1 K1 O1] | [K4 K5 K6 K7 K8 K9]", "O1", "O1", 0, id="five melds"
        ),
        pytest.param(
            "[J R10 R11] | [R5 B5 O5] | [R7 B7 K7] | [O2 O3 O4] | [R6 B6 K6] | [K1 K2 K3]",
            "R9 K9",
            "R9 K9",
            1,
            id="five melds with a joker, one left alone",
        ),
        pytest.param(
            "[O2 O3 O4] | [R5 B5 O5] | [B1 B2 B3 B4] | [R2 R3 R4] | [K11 K12 K13] | [R13 B13 O13]",
            "K2 O9",
            "K2",
            2,
            id="four melds dissolved beside others",
        ),
        pytest.param("[R5 O5 J] | [K5 K6 K7 K8]", "B9 B10", "B9 B10", 0, id="a joker moved from a group to a run"),
        pytest.param("[R3 J R5] | [R4 B4 K4 O4]", "B9 K9", "B9 K9", 0, id="a joker moved from a run to a group"),
        pytest.param("[R3 R4 R5 R6 R7]", "R5", "R5", 0, id="a run of five split by its middle tile"),
        pytest.param("[R2 R3 R4 R5 R6 R7]", "R4", "R4", 0, id="a run of six split"),
        pytest.param("[R3 R4 R5 R6 R7 R8 R9]", "B6 K6", "B6 K6", 0, id="a run of seven split around a tile"),
        pytest.param(
            "[R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13]",
            "B4 K4 B10 O10 R7",
            "R7 B4 B10 K4 O10",
            0,
            id="a run of thirteen split in four",
        ),
    ],
)
def test_the_one_best_turn_is_found(table: str, rack: str, tiles: str, untouched: int) -> None:
    situation = at(table, rack)
    for objective in Objective:
        answer = best_turn(situation, objective)
        assert played(answer) == tiles
        assert answer.is_proven
        assert answer.is_least_change
        assert answer.turn is not None
        assert len(answer.turn.untouched) == untouched
        assert not list(faults(situation, answer.turn))
        assert count_best_turns(situation, objective) == Count(1, is_exact=True)
    assert has_turn(situation) is YES


def test_a_joker_may_be_a_third_copy_of_a_face() -> None:
    table = "[R11 B11 K11] | [R11 O11 K11]"
    found = best_turn(at(table, "R10 R12 J", melded=False))
    assert played(found) == "R10 R12 J"
    assert found.turn is not None
    assert format_table(found.turn.table) == f"{table} | [R10 J R12]"
    assert has_turn(at(table, "R10 R12 J", {"jokers_beyond_physical": False}, melded=False)) is NO


# Positions without a turn


@pytest.mark.parametrize(
    ("table", "rack"),
    [
        (".", ""),
        (".", "R1"),
        (".", "R1 R2 B13 K13"),
        (".", "J J"),
        ("[R3 R4 R5]", ""),
        ("[R3 R4 R5] | [B6 K6 O6]", "R1 B13"),
        ("[R5 R6 R7] | [B5 B6 B7] | [K5 O5 R5] | [B8 K8 O8]", "R1 B13"),
        ("[R4 R5 R6 R7 R8] | [B4 B5 B6 B7 B8] | [K4 K5 K6 K7 K8] | [O4 O5 O6 O7 O8] | [R9 B9 K9 O9]", "R1 B13 K1 O13"),
        ("[R4 R5 R6 R7 R8] | [R5 B5 K5 O5] | [R7 B7 K7 O7] | [B9 B10 B11]", "R1 R2 B1 B2 K13 O13"),
    ],
)
def test_where_nothing_fits_there_is_no_turn(table: str, rack: str) -> None:
    situation = at(table, rack)
    for objective in Objective:
        assert best_turn(situation, objective) == BestTurn(None, is_proven=True, is_least_change=True)
        assert count_best_turns(situation, objective) == Count(0, is_exact=True)
    assert has_turn(situation) is NO


# Objectives


@pytest.mark.parametrize(
    ("table", "rack", "options", "objective", "expected"),
    [
        ("[R7 B7 K7 J]", "R1 R3 R4 B13 K13", {}, MOST, "R1 R3 R4"),
        ("[R7 B7 K7 J]", "R1 R3 R4 B13 K13", {}, HIGHEST, "B13 K13"),
        ("[K7 K8 K9 K10]", "R7 B7 R10 B10", {}, HIGHEST, "R10 B10"),
        ("[K7 K8 J]", "R6 B6 J R9 B9", {}, HIGHEST, "R9 B9 J"),
        ("[R3 R4 R5]", "J", {}, MOST, "J"),
        ("[R3 R4 R5]", "J", {}, HIGHEST, "J"),
        ("[R3 R4 R5]", "J", {"score_joker_penalty": 0}, MOST, "J"),
        ("[R3 R4 R5]", "J", {"score_joker_penalty": 0}, HIGHEST, "J"),
        ("[R3 R4 R5]", "R6 J", {"score_joker_penalty": 0}, MOST, "R6 J"),
        ("[R3 R4 R5]", "B1", {"score_joker_penalty": 0}, HIGHEST, None),
    ],
)
def test_each_objective_has_its_best_turn(
    table: str, rack: str, options: Mapping[str, Any], objective: Objective, expected: str | None
) -> None:
    answer = best_turn(at(table, rack, options), objective)
    assert played(answer) == expected
    assert answer.is_proven


@pytest.mark.parametrize(
    ("wrap", "rack", "is_run"),
    [
        (RunWrap.OFF, "R11 R12 R13", True),
        (RunWrap.OFF, "R1 R12 R13", False),
        (RunWrap.ONE_HIGH, "R1 R12 R13", True),
        (RunWrap.ONE_HIGH, "R1 R12 J", True),
        (RunWrap.ONE_HIGH, "R1 R2 R13", False),
        (RunWrap.CYCLIC, "R1 R12 R13", True),
        (RunWrap.CYCLIC, "R1 R2 R13", True),
    ],
)
def test_a_run_of_the_rack_goes_on_after_the_13_where_it_may(wrap: RunWrap, rack: str, is_run: bool) -> None:
    situation = at("[B5 K5 O5]", rack, {"run_wrap": wrap})
    assert played(best_turn(situation)) == (rack if is_run else None)
    assert has_turn(situation) is (YES if is_run else NO)


def test_no_turn_is_better_by_an_objective_than_the_best_by_it() -> None:
    for situation in _positions(40, seed=6):
        found = {objective: best_turn(situation, objective) for objective in Objective}
        for one, other in ((MOST, HIGHEST), (HIGHEST, MOST)):
            by_one, by_other = worth(situation, found[one], one), worth(situation, found[other], one)
            assert (by_one is None) == (by_other is None)
            assert by_one is None or by_other is None or by_one >= by_other


# Initial melds

SAME_TURN = {"initial_meld_same_turn_table_play": InitialMeldSameTurnTablePlay.ALLOWED}
SINGLE = {"initial_meld_count": InitialMeldCount.SINGLE_MELD}
ONE_REACHES = {"initial_meld_count": InitialMeldCount.ONE_MELD_REACHES_THRESHOLD}
ZERO = {"initial_meld_joker": InitialMeldJoker.ZERO}
NO_JOKER = {"initial_meld_joker": InitialMeldJoker.FORBIDDEN}
A_RUN = {"initial_meld_required_kind": InitialMeldRequiredKind.RUN}
ONE_JOKER = {"jokers_max_per_meld": JokersMaxPerMeld.ONE}
MORE = {"initial_meld_comparison": InitialMeldComparison.GREATER_THAN}


@pytest.mark.parametrize("table", [".", "[R3 R4 R5] | [B6 K6 O6]"])
@pytest.mark.parametrize(
    ("options", "rack", "expected"),
    [
        ({}, "R9 R10 R11", "R9 R10 R11"),
        ({}, "R8 R9 R10", None),
        ({}, "R1 R2 R3 B4 K4 O4", None),
        ({}, "R4 R5 R6 B7 K7 O7", "R4 R5 R6 B7 K7 O7"),
        ({}, "R10 J R12", "R10 R12 J"),
        ({}, "R1 R2 R3 B1 K1", None),
        ({"initial_meld_threshold": 0}, "R1 R2 R3", "R1 R2 R3"),
        ({"initial_meld_threshold": 0}, "R1 R2 B3", None),
        ({"initial_meld_threshold": 200}, "R9 R10 R11 R12 R13 B9 B10 B11 B12 B13", None),
        (
            {"initial_meld_threshold": 200},
            "R9 R10 R11 R12 R13 B9 B10 B11 B12 B13 K9 K10 K11 K12 K13 O9 O10 O11 O12 O13 K1",
            "R9 R10 R11 R12 R13 B9 B10 B11 B12 B13 K9 K10 K11 K12 K13 O9 O10 O11 O12 O13",
        ),
        (MORE, "R9 R10 R11", None),
        (MORE, "R9 R10 R11 B1 K1 O1", "R9 R10 R11 B1 K1 O1"),
        (SINGLE, "R4 R5 R6 B7 K7 O7", None),
        (SINGLE, "R9 R10 R11 B1 K1 O1", "R9 R10 R11"),
        (SINGLE, "R9 R10 R11 R12 R13 B9 K9 O9", "R9 R10 R11 R12 R13"),
        (SINGLE | MORE, "B10 K10 O10", None),
        (ONE_REACHES, "R4 R5 R6 B7 K7 O7", None),
        (ONE_REACHES, "R9 R10 R11 B1 K1 O1", "R9 R10 R11 B1 K1 O1"),
        (ONE_REACHES | A_RUN, "B10 K10 O10", None),
        (ONE_REACHES | A_RUN, "B10 K10 O10 R1 R2 R3", "R1 R2 R3 B10 K10 O10"),
        (ONE_REACHES | A_RUN, "R9 R10 R11 B1 K1 O1", "R9 R10 R11 B1 K1 O1"),
        (ONE_REACHES | A_RUN, "B10 K10 O10 R1 R2 B3", None),
        (
            ONE_REACHES | A_RUN,
            "R10 R11 R11 B11 K11 O5 O10 O11 O12 J",
            "R10 R11 R11 B11 K11 O10 O11 O12 J",
        ),
        (ZERO, "R10 R12 J", None),
        (ZERO, "R10 R11 R12 J", "R10 R11 R12 J"),
        (ZERO, "R9 R10 R11 J", "R9 R10 R11 J"),
        (ZERO | ONE_REACHES, "R9 R10 R11 B1 K1 J", "R9 R10 R11 B1 K1 J"),
        (NO_JOKER, "R10 R12 J", None),
        (NO_JOKER, "R10 R11 R12 J", "R10 R11 R12"),
        (NO_JOKER | ONE_REACHES, "R10 R11 R12 B1 K1 J", "R10 R11 R12"),
        (A_RUN, "B10 K10 O10", None),
        (A_RUN, "B10 K10 O10 R1 R2 R3", "R1 R2 R3 B10 K10 O10"),
        (A_RUN | SINGLE, "B10 K10 O10 R1 R2 R3", None),
        (A_RUN | SINGLE, "B10 K10 O10 R10 R11 R12", "R10 R11 R12"),
        (ONE_JOKER, "R9 R10 R11 J J", "R9 R10 R11 J"),
    ],
)
def test_an_initial_meld_is_made_of_the_rack_as_the_options_say(
    table: str, options: Mapping[str, Any], rack: str, expected: str | None
) -> None:
    situation = at(table, rack, options, melded=False)
    answer = best_turn(situation)
    assert played(answer) == expected
    assert answer.is_proven
    assert has_turn(situation) is (NO if expected is None else YES)
    if answer.turn:
        assert not list(faults(situation, answer.turn))


@pytest.mark.parametrize(
    ("options", "rack", "expected"),
    [
        ({}, "R6 B10 B11 B12", "B10 B11 B12"),
        (SAME_TURN, "R6 B10 B11 B12", "R6 B10 B11 B12"),
        (SAME_TURN, "R6 B1 B2 B3", None),
        (SAME_TURN, "R6 B9 B10 J", "R6 B9 B10 J"),
        (SAME_TURN | NO_JOKER, "R6 B9 B10 J", None),
        (SAME_TURN | NO_JOKER, "R7 B10 B11 B12 J", "R7 B10 B11 B12 J"),
        (SAME_TURN | ZERO, "R6 B9 B10 J", None),
        (SAME_TURN | SINGLE, "R6 R2 B10 B11 B12", "R2 R6 B10 B11 B12"),
        (SAME_TURN | SINGLE, "R6 B7 K7 O7 R8 R9 R10", None),
        (SAME_TURN | A_RUN, "R6 B10 K10 O10", None),
        (SAME_TURN | MORE, "R6 B10 K10 O10", None),
        (SAME_TURN | ONE_REACHES, "R6 B10 K10 O10", "R6 B10 K10 O10"),
    ],
)
def test_the_table_is_used_beside_the_initial_meld_where_it_may(
    options: Mapping[str, Any], rack: str, expected: str | None
) -> None:
    situation = at("[R3 R4 R5]", rack, options, melded=False)
    assert played(best_turn(situation)) == (expected and format_tiles(in_order(parse_tiles(expected))))
    assert has_turn(situation) is (NO if expected is None else YES)


@pytest.mark.parametrize(
    ("rack", "tiles"),
    [
        ("R9 R10 R11 R12 R13", 3),
        ("R8 R9 R10 R11 R12 R13", 6),
        ("R7 R8 R9 R10 R11 R12 R13", 7),
        ("R13 B13 K13 O13", 3),
        ("R4 R5 R6", 0),
    ],
)
def test_an_initial_meld_keeps_to_the_contract(rack: str, tiles: int) -> None:
    situation = at("[B1 B2 B3]", rack, {"contract": Contract.SUM_AT_MOST_41}, melded=False)
    answer = best_turn(situation)
    assert answer.is_proven
    assert len(answer.turn.tiles if answer.turn else ()) == tiles
    assert has_turn(situation) is (YES if tiles else NO)
    if answer.turn:
        assert not list(faults(situation, answer.turn))


# The River

RIVER = {"turn_draw": TurnDraw.TWO_RIVER}


@pytest.mark.parametrize(
    ("table", "rack", "river", "expected", "index"),
    [
        ("[R3 R4 R5]", "R6", "B1 B2", "R6", None),
        (".", "K4 O4", "R4", "K4 O4", 0),
        (".", "K4 O4", "R4 R9", "K4 O4", 0),
        ("[R4 B4 O4]", "R1", "R9 K4", "", 1),
        (".", "K4 O4 B9 K9", "R4 R9", "B9 K9", 1),
        (".", "K4 O4", "R4 B1 B3 B5 B7 B9", "K4 O4", 0),
        (".", "K4 O4", "R1 R9", None, None),
        ("[R3 R4 R5]", "", "R6", "", 0),
    ],
)
def test_the_river_is_pulled_from_where_that_is_best(
    table: str, rack: str, river: str, expected: str | None, index: int | None
) -> None:
    situation = at(table, rack, RIVER, river)
    answer = best_turn(situation)
    assert played(answer) == expected
    assert answer.is_proven
    assert has_turn(situation) is (NO if expected is None else YES)
    if answer.turn:
        assert answer.turn.river_index == index
        assert not list(faults(situation, answer.turn))


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, "R10 R11"), (SAME_TURN, "R10 R11"), (NO_JOKER, None), (NO_JOKER | SAME_TURN, None), (ZERO, None)],
)
def test_a_joker_may_be_pulled_for_the_initial_meld_where_it_counts(
    options: Mapping[str, Any], expected: str | None
) -> None:
    situation = at("[B1 B2 B3]", "R10 R11", {**RIVER, **options}, "J", melded=False)
    assert played(best_turn(situation)) == expected
    assert has_turn(situation) is (NO if expected is None else YES)


# Arrangements


SOMEHOW = "in some way"
THIRTEEN = "R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13"


@pytest.mark.parametrize(
    ("options", "tiles", "table"),
    [
        ({}, "", "."),
        ({}, "R3 R4 R5", "[R3 R4 R5]"),
        ({}, "R3 R4 R5 R3 R4 R5", "[R3 R4 R5] | [R3 R4 R5]"),
        ({}, "R3 R4 R5 J", "[R3 R4 R5 J]"),
        ({}, "R3 R4", None),
        ({}, "J", None),
        ({}, "R3 R4 B5", None),
        ({}, "R13 R12 R1", None),
        ({"run_wrap": RunWrap.ONE_HIGH}, "R13 R12 R1", "[R12 R13 R1]"),
        ({"run_wrap": RunWrap.ONE_HIGH}, "R13 R2 R1", None),
        ({"run_wrap": RunWrap.CYCLIC}, "R13 R2 R1", "[R13 R1 R2]"),
        ({"run_wrap": RunWrap.ONE_HIGH}, "R12 R13 R1 J", "[J R12 R13 R1]"),
        ({"run_wrap": RunWrap.CYCLIC}, "R12 R13 J", "[R12 R13 J]"),
        ({"run_wrap": RunWrap.CYCLIC, "jokers_adjacent": JokersAdjacent.FORBIDDEN}, "R1 R13 J J", "[J R13 R1 J]"),
        ({"run_wrap": RunWrap.CYCLIC} | ONE_JOKER, "B1 B2 B4 B13 J J", "[B2 J B4] | [J B13 B1]"),
        ({"run_wrap": RunWrap.CYCLIC} | ONE_JOKER, "R1 R13 J J", None),
        ({"run_wrap": RunWrap.CYCLIC}, "R1 R4 R13 J J", SOMEHOW),
        ({"run_wrap": RunWrap.CYCLIC}, "R1 R2 R2 R4 R9 R10 R11 R12 R13 J J", SOMEHOW),
        ({"jokers_max_per_meld": JokersMaxPerMeld.ONE}, "R3 R4 R5 J J", None),
        ({"jokers_max_per_meld": JokersMaxPerMeld.TWO}, "R3 R4 R5 J J", "[R3 R4 R5 J J]"),
        ({}, "R11 R12 R13 J J", "[J J R11 R12 R13]"),
        ({"jokers_max_per_meld": JokersMaxPerMeld.NOT_MORE_THAN_NATURALS}, "R3 J J", None),
        ({"jokers_max_per_meld": JokersMaxPerMeld.NOT_MORE_THAN_NATURALS}, "R5 R5 B5 J J J", None),
        ({}, "R3 J J", "run[R3 J J]"),
        ({"jokers_adjacent": JokersAdjacent.FORBIDDEN}, "R3 R6 J J", None),
        ({"jokers_may_lead": False}, "R12 R13 J", None),
        ({}, "R12 R13 J", "[J R12 R13]"),
        ({}, "R5 B5 K5 O5 R9 B9 K9 J", "[R5 B5 K5 O5] | [R9 B9 K9 J]"),
        ({}, "R5 B5 K5 O5 J", None),
        ({}, f"{THIRTEEN} J", "[R1 R2 R3 J] | [R4 R5 R6 R7 R8 R9 R10 R11 R12 R13]"),
        ({}, f"{THIRTEEN} R5 B5 K5 O5 J", SOMEHOW),
        ({"geometry_jokers": 4}, f"{THIRTEEN} J J J J", SOMEHOW),
        ({"run_wrap": RunWrap.CYCLIC}, f"{THIRTEEN} J", "[R1 R2 R3 J] | [R4 R5 R6 R7 R8 R9 R10 R11 R12 R13]"),
        (
            {"run_wrap": RunWrap.CYCLIC, "geometry_copies": 3, "jokers_may_lead": False},
            f"{THIRTEEN} R1 R1 R2 R2 R3 R3 R4 R4 R7 R8 R9 R10 R11 R12 R13 J J",
            SOMEHOW,
        ),
        (
            {"run_wrap": RunWrap.CYCLIC, "jokers_may_lead": False},
            f"{THIRTEEN} R1 R6 R7 R8 R9 R10 R11 R13",
            SOMEHOW,
        ),
        ({"run_wrap": RunWrap.CYCLIC, "geometry_copies": 3}, f"{THIRTEEN} {THIRTEEN} R12 R13 R1 R2", SOMEHOW),
        (
            {"run_wrap": RunWrap.ONE_HIGH, "jokers_may_lead": False, "jokers_adjacent": JokersAdjacent.FORBIDDEN},
            "R1 R1 R2 R2 R3 R3 R5 R6 R7 R8 R9 R10 R11 R12 R13 J J",
            SOMEHOW,
        ),
        ({}, "R1 R2 R3 R9 B9 K9", "[R9 B9 K9] | [R1 R2 R3]"),
        ({}, "R9 R10 R10 R11 R11 R13 J", "[R9 R10 R11] | [R10 R11 J R13]"),
        ({}, "R1 R2 R3 R11 R12 R13 B1 B2 B3 J", "[R1 R2 R3] | [B1 B2 B3] | [J R11 R12 R13]"),
        ({}, "R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 J", "[R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 J]"),
    ],
)
def test_tiles_are_arranged_as_the_options_allow(options: Mapping[str, Any], tiles: str, table: str | None) -> None:
    ruleset = with_options(SABRA, options)
    found = arrange(in_order(parse_tiles(tiles)), ruleset)
    assert found.exists is (NO if table is None else YES)
    if table is not SOMEHOW:
        assert format_table(found.melds) == (table or ".")
    else:
        assert in_order(t for meld in found.melds for t in meld.tiles) == in_order(parse_tiles(tiles))
        assert all(read_meld(Proposed(meld.tiles, meld.kind), ruleset) == meld for meld in found.melds)


@pytest.mark.parametrize("declaration", JokersDeclaration)
def test_required_joker_faces_are_declared(declaration: JokersDeclaration) -> None:
    situation = (
        at("[R3 J R5]", "B9 K9 J B4", {"jokers_declaration": declaration})
        if (declaration is not JokersDeclaration.ALWAYS_EXPLICIT)
        else at("run[R3 J=R4 R5]", "B9 K9 J B4", {"jokers_declaration": declaration})
    )
    answer = best_turn(situation)
    assert played(answer) == "B9 K9 J"
    assert answer.turn is not None
    assert not list(faults(situation, answer.turn))


EXPLICIT = {"jokers_declaration": JokersDeclaration.ALWAYS_EXPLICIT}
LOCKED = {"geometry_colors": 6, "jokers_may_lead": False, "joker_retrieval_mode": JokerRetrievalMode.LOCKED}
TO_BE_HAD = {"jokers_beyond_physical": False, "initial_meld_threshold": 20}
SAME_TURN = {"initial_meld_same_turn_table_play": InitialMeldSameTurnTablePlay.ALLOWED}


@pytest.mark.parametrize(
    ("options", "table", "rack", "melded", "tiles"),
    [
        (LOCKED, "[G8 G9 G10] | group[R7 O7 P7 J=K7]", "B8 O9 G7", True, "G7"),
        (TO_BE_HAD, "[B6 B7 B8] | [B6 B7 B8]", "R7 O7 J", True, "R7 O7 J"),
        (TO_BE_HAD, "[B6 B7 B8] | [B6 B7 B8]", "R7 O7 J", False, "R7 O7 J"),
        (TO_BE_HAD | SAME_TURN, "[B6 B7 B8] | [B6 B7 B8]", "R1 R7 B9 O7 J", False, "R7 B9 O7 J"),
    ],
)
def test_jokers_are_declared_as_the_rules_allow(
    options: Mapping[str, Any], table: str, rack: str, melded: bool, tiles: str
) -> None:
    situation = at(table, rack, {**options, **EXPLICIT}, melded=melded)
    answer = best_turn(situation)
    assert played(answer) == tiles
    assert answer.turn is not None
    assert not list(faults(situation, answer.turn))


# Legal plays of the conformance suite


def _legal_plays() -> list[tuple[TurnQuestion, Ruleset]]:
    suite = load()
    cases = [(case, ruleset_of(case.ruleset)) for case in suite.turns if not case.expect.violations]
    plain = [case for case in cases if case[1].joker_kinds is JokerKinds.STANDARD]  # of the others it knows less
    return plain + [
        (contrast.question, ruleset_of(contrast.options(value)))
        for contrast in suite.contrasts
        if isinstance(contrast.question, TurnQuestion)
        for value in contrast.answers
        if contrast.is_legal(value)
    ]


@each_of("question, ruleset", _legal_plays())
def test_where_a_play_is_legal_one_as_good_is_found(question: TurnQuestion, ruleset: Ruleset) -> None:
    play = play_of(question, ruleset)
    situation = Situation(play.table_before, play.rack, play.has_melded, ruleset, play.river)
    answer = best_turn(situation)
    assert answer.is_proven
    assert answer.turn is not None
    assert not list(faults(situation, answer.turn))
    assert (worth(situation, answer, MOST) or 0) >= len(play.rack) - len(judge(play).rack_left)
    assert has_turn(situation) is YES


# Fewest changes


def _first_fewest(situation: Situation, answer: BestTurn) -> tuple[int, ...]:
    """Returns the melds that stay if the fewest change, of equals the first in order.

    It searches an equally good turn on a table of each set of melds in turn.
    """
    assert answer.turn is not None
    places = range(len(situation.table))
    for size in range(len(situation.table) + 1):
        for changed in combinations(places, size):
            among = replace(situation, table=tuple(situation.table[place] for place in changed))
            turn = best_turn(among, budget=Budget(change_nodes=0)).turn
            if turn and len(turn.tiles) == len(answer.turn.tiles):
                return tuple(place for place in places if place not in changed)
    raise AssertionError("not even if all melds change")


@pytest.mark.unmeasured
def test_the_fewest_melds_change_and_of_equals_the_first_in_order() -> None:
    rng, changes = random.Random(6), set()
    rows = [row.situation for row in read() if row.situation.has_melded and 4 <= len(row.situation.table) <= 9]
    for situation in rng.sample(rows, 40):
        shuffled = replace(situation, table=tuple(rng.sample(situation.table, len(situation.table))))
        answer = best_turn(shuffled)
        if answer.turn:
            assert answer.is_least_change
            assert answer.turn.untouched == _first_fewest(shuffled, answer)
            changes.add(len(situation.table) - len(answer.turn.untouched))
    assert changes >= {0, 1, 2, 3}


def test_few_melds_change_where_the_fewest_would_take_too_long() -> None:
    situation = read()[270].situation
    fewest, few, any_number = [best_turn(situation, budget=Budget(change_nodes=nodes)) for nodes in (6_000, 1_280, 0)]
    assert [answer.is_least_change for answer in (fewest, few, any_number)] == [True, False, False]
    best, good, any_turn = [is_a(answer.turn, LegalTurn) for answer in (fewest, few, any_number)]
    assert len(best.untouched) >= len(good.untouched) > len(any_turn.untouched)


def test_few_melds_change_where_limited_jokers_do_not_fit_in_the_first_few() -> None:
    table = (
        "[R12 B12 K12] | [R1 R2 R3] | [B3 B4 J] | [B10 B11 J] | [R9 R10 R11] | [R6 B6 O6] | [R8 K8 O8] | [R2 R3 J R5]"
        " | [O1 O2 J]"
    )
    situation = at(table, "B9 O5", {"geometry_jokers": 4, "jokers_adjacent": JokersAdjacent.FORBIDDEN})
    answer = best_turn(situation, budget=Budget(change_nodes=60))
    assert answer.turn is not None
    assert len(answer.turn.tiles) == 2
    assert (len(answer.turn.untouched), answer.is_least_change) == (7, False)


def test_few_melds_change_where_the_search_for_the_fewest_is_cut_off() -> None:
    table = (
        "[J O9 O10] | [K2 B2 R2 O2] | [B10 J B12] | [R1 R2 R3] | [R9 R10 R11 R12] | [O7 O8 O9 O10] | [K4 K5 K6]"
        " | [B13 O13 K13 R13] | [K11 K12 K13] | [R7 R8 R9 R10] | [R11 R12 R13] | [R5 R6 R7 R8] | [K3 R3 B3 O3]"
        " | [R6 K6 B6] | [J K8 K9] | [K3 K4 J] | [B1 O1 K1] | [B1 R1 O1 K1] | [K8 K9 K10] | [B11 O11 K11]"
    )
    situation = at(table, "R5 B4 B4 B9 B12 K2 K7 K7 K10 O2 O6 O7", {"geometry_jokers": 4})
    answer = best_turn(situation, budget=Budget(nodes=10_000, change_nodes=10_000))
    assert answer.turn is not None
    assert len(answer.turn.tiles) == 12
    assert (len(answer.turn.untouched), answer.is_least_change) == (9, False)
    assert not list(faults(situation, answer.turn))


def test_the_fewest_melds_change_where_runs_go_on_after_the_13() -> None:
    table = "[R1 R2 R3] | [B13 K13 O13] | [R1 R2 R3] | [B1 K1 O1] | [R10 R11 R12] | [B12 K12 O12]"
    situation = at(table, "R11 R13 B2", {"run_wrap": RunWrap.CYCLIC})
    answer = best_turn(situation, budget=Budget(change_nodes=200))
    assert played(answer) == "R13 B2"
    assert answer.is_least_change
    assert answer.turn is not None
    assert answer.turn.untouched == _first_fewest(situation, answer)


@pytest.mark.parametrize(
    "table", ["[R1 B1 K1 O1] | [R3 B3 K3] | [R7 R8 R9]", "[R1 B1 K1 O1] | [R7 R8 R9] | [R3 B3 K3]"]
)
def test_a_meld_changes_if_only_it_has_a_place_for_a_joker(table: str) -> None:
    answer = best_turn(at(table, "R5 B5 K5 O5 J"))
    assert answer.turn is not None
    assert len(answer.turn.tiles) == 5
    assert answer.is_least_change
    assert len(answer.turn.untouched) == 2


# Invariance


def _recolored(colors: Mapping[int, int]) -> Callable[[Tile], Tile]:
    order = {color: COLORS[place] for color, place in zip(COLORS, colors.values(), strict=False)}
    return lambda t: t if t == JOKER else tile(order[color_of(t)], value_of(t))


def _mapped(situation: Situation, change: Callable[[Tile], Tile]) -> Situation:
    table = []
    for meld in situation.table:
        faces = declared_faces(meld, situation.ruleset)
        proposed = Proposed(tuple(map(change, meld.tiles)), meld.kind, tuple(map(change, faces)))
        read_again = read_meld(proposed, situation.ruleset)
        assert isinstance(read_again, Meld)
        table.append(read_again)
    return replace(situation, table=tuple(table), rack=in_order(map(change, situation.rack)))


def _positions(size: int, seed: int) -> list[Situation]:
    """Returns positions of games that are answered quickly."""
    rng = random.Random(seed)
    rows = rng.sample(read(), 3 * size)
    quick = [row.situation for row in rows if row.phase != "late" or not row.jokers]
    return quick[:size]


def _told(situation: Situation, answer: BestTurn, objective: Objective) -> tuple[object, ...]:
    kept = len(answer.turn.untouched) if answer.turn and answer.is_least_change else None
    return worth(situation, answer, objective), answer.is_proven, kept


@pytest.mark.unmeasured
@pytest.mark.parametrize("objective", Objective)
def test_colors_and_order_make_no_difference(objective: Objective) -> None:
    rng = random.Random(3)
    for situation in _positions(8, seed=1):
        answer = best_turn(situation, objective)
        told, exists = _told(situation, answer, objective), has_turn(situation)
        number = count_best_turns(situation, objective, limit=20)
        places = dict(enumerate(rng.sample(range(4), 4)))
        table = tuple(rng.sample(situation.table, len(situation.table)))
        rack = tuple(rng.sample(situation.rack, len(situation.rack)))
        recolored = _mapped(situation, _recolored(places))
        others = [recolored, replace(situation, table=table), replace(situation, rack=rack)]
        for other in others:
            again = best_turn(other, objective)
            assert _told(other, again, objective)[:2] == told[:2]
            if answer.is_least_change and again.is_least_change:
                assert _told(other, again, objective) == told
            assert has_turn(other) is exists
            assert count_best_turns(other, objective, limit=20) == number
        assert best_turn(others[-1], objective) == answer


def _upside_down(situation: Situation) -> Situation:
    """Returns the situation with every value mirrored from 1 to 13; runs are reversed."""
    turned = tuple(
        replace(meld, tiles=meld.tiles[::-1]) if meld.kind is MeldKind.RUN else meld for meld in situation.table
    )
    return _mapped(replace(situation, table=turned), lambda t: t if t == JOKER else tile(color_of(t), 14 - value_of(t)))


@pytest.mark.unmeasured
def test_a_position_upside_down_has_as_good_a_turn() -> None:
    for situation in _positions(40, seed=2):
        melded = replace(situation, has_melded=True)
        other = _upside_down(melded)
        told, again = _told(melded, best_turn(melded), MOST), _told(other, best_turn(other), MOST)
        assert again[:2] == told[:2]
        assert has_turn(other) is has_turn(melded)


ASKED = """
import sys
sys.path.insert(0, "tests")
from load.corpus.positions import read
from load.corpus.hostile import read as read_hostile
from engine.melding.solver import Objective, best_turn, has_turn
from engine.effort import Budget
rows = read()[::307]
for situation in [row.situation for row in rows] + [row.situation for row in read_hostile()[::14]]:
    for nodes in (30, 700):
        for objective in Objective:
            print(best_turn(situation, objective, Budget(nodes=nodes)), has_turn(situation, Budget(nodes=nodes)))
"""


@pytest.mark.unmeasured
def test_answers_do_not_depend_on_earlier_questions(capsys: pytest.CaptureFixture[str]) -> None:
    def asked_elsewhere(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = [sys.executable, "-c", ASKED]
        return subprocess.run(run, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout

    for situation in _positions(10, seed=2):
        best_turn(situation, HIGHEST)
    exec(ASKED, {})  # noqa: S102 - the same text as in the other processes
    here = capsys.readouterr().out
    assert here.count("BestTurn") > 40
    assert asked_elsewhere("1") == here  # this process has another seed


# Budgets

NODES = (0, 1, 2, 5, 10, 30, 60, 100, 300, 1_000, 3_000)


@pytest.mark.unmeasured
@pytest.mark.parametrize("nodes", few_of(NODES, 5))
def test_nothing_unproven_is_reported_as_proven(nodes: int) -> None:
    for situation in _positions(12, seed=4):
        full, exists = best_turn(situation), has_turn(situation)
        assert full.is_proven
        _check_bounded(situation, full, exists, Budget(nodes=nodes))
        _check_bounded(situation, full, exists, Budget(nodes=nodes, change_nodes=nodes))


@pytest.mark.parametrize("asks", [0, 1, 2, 5])
def test_a_search_may_be_stopped_at_any_poll(asks: int) -> None:
    for situation in _positions(12, seed=5):
        full, exists = best_turn(situation), has_turn(situation)
        asked = count()
        _check_bounded(situation, full, exists, Budget(is_over=lambda asked=asked: next(asked) >= asks))  # type: ignore[misc]


def test_a_clock_that_is_never_over_changes_no_answer() -> None:
    asked = count()
    timed = Budget(is_over=lambda: next(asked) < 0)
    for situation in (read()[270].situation, *_positions(12, seed=5)):
        assert best_turn(situation, budget=timed) == best_turn(situation)
        assert has_turn(situation, timed) is has_turn(situation)
    assert next(asked) > 0


@pytest.mark.parametrize("nodes", few_of(NODES, 5))
@pytest.mark.parametrize(
    "situation",
    [
        at("[B1 B2 B3]", "R9 R10 R11 R12 B4 J", RIVER | SAME_TURN, "K9 K1 R9", melded=False),
        at("[B1 B2 B3]", "R9 R10 R11 R12 B4 J", RIVER, "K9 K1 R9", melded=False),
        at("[B1 B2 B3] | [R9 B9 J]", "R10 R11 R12 B4 K9", RIVER, "O9 K1 R9"),
        at("[B1 B2 B3] | [R9 B9 J]", "R10 R11 R12 B4 K9", {"joker_retrieval_mode": JokerRetrievalMode.REPLACE}),
        at("[B1 B2 B3] | [R9 B9 K9 J]", "R10 R11 R12 B4 O9", {"manipulation": Manipulation.PRIMITIVES_ONLY}),
        at(
            "[B1 B2 B3]",
            "R9 R10 R11 J J B13",
            {"jokers_max_per_meld": JokersMaxPerMeld.ONE} | ONE_REACHES,
            melded=False,
        ),
    ],
)
def test_under_other_rules_too_nothing_unproven_is_reported_as_proven(situation: Situation, nodes: int) -> None:
    full, exists = best_turn(situation), has_turn(situation)
    assert full.is_proven
    _check_bounded(situation, full, exists, Budget(nodes=nodes))


def test_where_steps_are_too_many_to_combine_nothing_is_denied() -> None:
    ruleset = ruleset_of_sort("six colors, many jokers")
    rack = in_order([tile(color, value) for color in COLORS for value in (1, 2, 3)] * 3 + [JOKER] * 6)
    situation = Situation((), rack, has_melded=True, ruleset=ruleset)
    budget = Budget(nodes=1_000)
    assert not best_turn(situation, MOST, budget).is_proven
    assert has_turn(situation, budget) is not NO
    assert arrange(rack, ruleset, budget).exists is not NO


def test_many_jokers_on_a_table_of_six_colors_are_no_hindrance() -> None:
    table = (
        "group[G2 J J] | [J P3 G3] | [P4 O4 B4] | [B4 B5 B6 B7 J] | [P6 P7 P8 P9 P10 P11 P12] | [R11 G11 B11 O11] | "
        "[R7 B7 O7 K7] | [R10 O10 B10 P10 K10] | [O1 K1 R1 B1] | [K5 K6 K7] | [B10 B11 B12] | "
        "[P3 P4 P5 P6 P7 P8 P9] | [O8 B8 G8 R8 P8 K8]"
    )
    situation = at(table, "G7", SORTS["six colors"])
    assert has_turn(situation) is YES
    answer = best_turn(situation, MOST, Budget(nodes=2_000))
    assert played(answer) == "G7"
    assert answer.turn is not None
    assert not list(faults(situation, answer.turn))


def test_jokers_stay_at_the_low_end_of_a_run_where_order_has_no_meaning() -> None:
    options = {"meld_order": MeldOrder.CANONICALISE, "joker_retrieval_mode": JokerRetrievalMode.OFF}
    situation = at("run[J=O3 J=O4 O5 O6] | [B3 K3 O3] | [B2 B3 B4 B5 B6]", "K6", options)
    assert has_turn(situation) is YES
    answer = best_turn(situation)
    assert played(answer) == "K6"
    assert answer.turn is not None
    assert not list(faults(situation, answer.turn))
    assert "run[J=O3 J=O4 O5]" in format_table(answer.turn.table, ruleset=situation.ruleset)
    assert exists_by_force(situation)


def test_tiles_that_are_no_meld_are_never_laid_as_one() -> None:
    with pytest.raises(ValueError, match="RUN_GAP"):
        read_stated(Proposed(parse_tiles("R3 R5 R6"), MeldKind.RUN), SABRA)


def _check_bounded(situation: Situation, full: BestTurn, exists: Existence, budget: Budget) -> None:
    answer = best_turn(situation, MOST, budget)
    if answer.turn:
        assert not list(faults(situation, answer.turn))
        assert full.turn is not None
        assert (worth(situation, answer, MOST) or 0) <= (worth(situation, full, MOST) or 0)
    if answer.is_proven:
        assert worth(situation, answer, MOST) == worth(situation, full, MOST)
    else:
        assert not answer.is_least_change
    if answer.is_least_change and full.is_least_change and full.turn and answer.turn:
        assert len(answer.turn.untouched) == len(full.turn.untouched)
    assert has_turn(situation, budget) in {exists, UNKNOWN}
    counted, number = count_best_turns(situation, MOST, 30, budget), count_best_turns(situation, MOST, 30)
    assert counted.number <= number.number
    assert not counted.is_exact or counted == number
    tiles = tuple(sorted(t for meld in situation.table for t in meld.tiles))
    assert arrange(tiles, situation.ruleset, budget).exists in {YES, UNKNOWN}


def test_without_a_budget_nothing_is_proven() -> None:
    rack = "R1 R2 R4 R5 R7 R8 R10 R11 R13 B1 B2 B4 B5 B7 B8 B10 B11 B13 K3 K6 K9 K12 J J"
    situation, budget = at(".", rack), Budget(nodes=0)
    assert not best_turn(situation, MOST, budget).is_proven
    assert has_turn(situation, budget) is not NO
    assert arrange(situation.rack, SABRA, budget) == Arrangement(UNKNOWN)
    assert count_best_turns(situation, MOST, 10, budget) == Count(0, is_exact=False)


def test_a_turn_of_the_river_s_tile_alone_is_counted() -> None:
    situation = at("[R3 R4 R5]", "K9", RIVER, "R6")
    assert played(best_turn(situation)) == ""
    assert count_best_turns(situation) == Count(1, is_exact=True)


@pytest.mark.parametrize(("table", "rack", "number"), [("[R3 B3 K3]", "J R6", 1), ("[R3 R4 R5]", "J R6", 2)])
def test_turns_of_jokers_that_are_worth_nothing_are_counted(table: str, rack: str, number: int) -> None:
    situation = at(table, rack, {"score_joker_penalty": 0})
    assert best_turn(situation, HIGHEST).turn is not None
    assert count_best_turns(situation, HIGHEST) == Count(number, is_exact=True)


def test_a_joker_that_is_worth_nothing_is_played_rather_than_the_river_pulled_at_a_loss() -> None:
    situation = at("[R3 R4 R5]", "B1 J", {**RIVER, "score_joker_penalty": 0}, "R6 K13")
    answer = best_turn(situation, HIGHEST)
    assert (played(answer), answer.turn and answer.turn.river_index, answer.is_proven) == ("J", None, True)
    assert count_best_turns(situation, HIGHEST) == Count(1, is_exact=True)


def test_of_turns_that_are_worth_nothing_one_that_changes_fewest_melds_is_best() -> None:
    situation = at("[R3 B3 K3] | [R3 B3 K3]", "J J", {"score_joker_penalty": 0})
    answer = best_turn(situation, HIGHEST)
    assert (played(answer), answer.turn and answer.turn.untouched, answer.is_least_change) == ("J", (1,), True)


def test_best_turns_are_counted_up_to_a_limit() -> None:
    situation = at("[R7 B7 K7 J]", "R1 R2 B5 B6 K9 K10 O12 O13")
    assert [count_best_turns(situation, MOST, limit) for limit in (1, 3, 4, 5)] == [
        Count(1, is_exact=False),
        Count(3, is_exact=False),
        Count(4, is_exact=True),
        Count(4, is_exact=True),
    ]


# Hostile positions

MOST_CALLS = 400_000
"""The most function calls between two polls of the deadline: about 50 milliseconds."""
ASKS = 4


class Work:
    """A deadline that expires at its fourth poll, and counts function calls between two polls.

    The count is the same on every machine. Judging a play counts as one call, because it is not the solver's work.
    """

    def __init__(self) -> None:
        self.calls = self.longest = self.asks = 0
        self.judging: FrameType | None = None

    def __call__(self) -> bool:
        self.asks += 1
        self.longest, self.calls = max(self.longest, self.calls), 0
        return self.asks >= ASKS

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        if self.judging:
            if event == "return" and frame is self.judging:
                self.judging = None
        elif event in {"call", "c_call"}:
            self.calls += 1
            if event == "call" and frame.f_code is judge.__code__:
                self.judging = frame


@pytest.mark.unmeasured
@pytest.mark.parametrize("place", few_of(range(len(read_hostile())), 5))
def test_a_search_polls_its_deadline_often(place: int) -> None:
    hostile, work = read_hostile()[place], Work()
    situation = hostile.situation
    forget()
    sys.setprofile(work.profile)
    try:
        answer = QUESTIONS[hostile.question](situation, Budget(nodes=ENDLESS, is_over=work))
    finally:
        sys.setprofile(None)
    work()
    assert work.longest < MOST_CALLS
    if isinstance(answer, BestTurn) and answer.turn:
        assert not list(faults(situation, answer.turn))


@pytest.mark.unmeasured
def test_a_branch_builds_only_the_ways_that_it_tries() -> None:
    hostile = next(one for one in read_hostile() if one.sort == "no retrieval")
    assert calls_in(restricted_search, lambda: hostile.ask(Budget(nodes=6_000))) < 2_000


def test_positions_are_hostile_under_every_sort_of_rules() -> None:
    sorts = {hostile.sort for hostile in read_hostile()}
    assert sorts == set(SORTS)
    for sort in sorts:
        assert not problems(ruleset_of_sort(sort))
    for hostile in read_hostile():
        assert recorded(hostile.situation, hostile.sort, hostile.question) == hostile
