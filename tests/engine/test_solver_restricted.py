"""The solver under rules that depend on the origin of tiles: retrieval, manipulation, contracts."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.melds import Meld, read_meld
from engine.melding.notation import parse_melds
from engine.melding.ruleset import (
    SABRA,
    Contract,
    InitialMeldSameTurnTablePlay,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSource,
    Manipulation,
    with_options,
)
from engine.melding.solver import (
    Existence,
    best_turn,
    few_tiles,
    has_turn,
)
from engine.notation import format_rack, parse_tiles
from engine.tiles import in_order
from support.few_tiles import search_few_tiles

BUDGET = Budget(nodes=20_000)


@pytest.fixture(params=[few_tiles.MOST_TILES, 0], ids=["few tiles", "by claims"], autouse=True)
def search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a test with the search of few tiles, then with branching alone."""
    search_few_tiles(monkeypatch, request.param)


def at(table: str, rack: str, options: Mapping[str, Any], *, melded: bool = True) -> Situation:
    ruleset = with_options(SABRA, options)
    melds = tuple(meld for sent in parse_melds(table) if isinstance(meld := read_meld(sent, ruleset), Meld))
    return Situation(melds, in_order(parse_tiles(rack)), melded, ruleset)


def played(situation: Situation) -> str | None:
    """Returns the tiles of the best turn, which must be proven."""
    answer = best_turn(situation, budget=BUDGET)
    assert answer.is_proven
    assert has_turn(situation, BUDGET) is (Existence.YES if answer.turn else Existence.NO)
    return format_rack(answer.turn.tiles) if answer.turn else None


ONLY_GROW = {"manipulation": Manipulation.OFF}
LIVE_ON = {"manipulation": Manipulation.PRIMITIVES_ONLY}
STAY = {"joker_retrieval_mode": JokerRetrievalMode.OFF}
LOCKED = {"joker_retrieval_mode": JokerRetrievalMode.LOCKED}
REPLACED = {"joker_retrieval_mode": JokerRetrievalMode.REPLACE}
OF_THE_RACK = REPLACED | {"joker_retrieval_source": JokerRetrievalSource.RACK_ONLY}
AT_THE_END = {"joker_retrieval_end_of_run_free": True}
WITH_TWO = {"joker_retrieval_reuse": JokerRetrievalReuse.NEW_MELD_TWO_RACK_TILES}
IF_REPLACED = {"joker_retrieval_reuse": JokerRetrievalReuse.NEW_MELD_IF_REPLACED}
ALL_OF_THE_RACK = {"joker_retrieval_reuse": JokerRetrievalReuse.NEW_MELD_ALL_RACK}
FOUR_JOKERS = {"geometry_jokers": 4}
SMALL_SUMS = {"contract": Contract.SUM_AT_MOST_41}


@pytest.mark.parametrize(
    ("options", "table", "rack", "tiles"),
    [
        (ONLY_GROW, "[R3 R4 R5] | [B5 K5 O5]", "R2 R5 R6 B6", "{R2 R5 R6}"),
        (ONLY_GROW, "[R3 R4 R5 R6] | [B3 K3 O3]", "K6 O6", None),
        (ONLY_GROW, "[R3 R4 R5] | [R3 R4 R5 R6]", "R6 R7 B9", "{R6 R7}"),
        (ONLY_GROW, "[R9 O9 J] | [R4 J R6]", "B9 R7 R8 R5", "{R7 R8 B9}"),
        (ONLY_GROW, "[R3 R4 R5] | [B3 B4 B5] | [K3 K4 K5] | [R9 B9 K9 O9]", "R6 B6 K2 R10 R11", "{R6 B6 K2}"),
        (LIVE_ON, "[R5 B5 K5] | [R2 R3 R4]", "R6 R7", None),
        (LIVE_ON, "[R5 B5 K5] | [R1 R2 R3]", "R4 R6", "{R4}"),
        (LIVE_ON, "[R5 B5 K5] | [R2 R3 R4] | [K2 K3 K4] | [B2 B3 B4]", "R6 K6 B6", "{R6 B6 K6}"),
        (LIVE_ON, "[R3 R4 R5 R6 R7 R8] | [B5 K5 O5] | [K1 K2 K3]", "K4 B4 O4", "{B4 K4 O4}"),
        (STAY, "[R4 J R6] | [B5 K5 O5]", "R5 B6 K6 O8", "{R5}"),
        (STAY, "[R4 J R6] | [R9 O9 B9]", "R7 R8 K9 O10", "{R7 R8 K9}"),
        (STAY | FOUR_JOKERS, "[R9 O9 J] | [R9 O9 J]", "R10 R11 B9", "{R10 R11 B9}"),
        (LOCKED, "[R4 J R6] | [B9 K9 O9]", "R5 O1 O2", "{R5 O1 O2}"),
        (LOCKED, "[R3 R4 J R6 R7] | [B9 K9 O9]", "R5 R9 B5 K5", "{R5 R9 B5 K5}"),
        (LOCKED, "[R9 K9 J] | [O5 O6 O7 O8]", "O9 B3 K3", "{B3 K3 O9}"),
        (REPLACED, "[R4 J R6] | [R5 K5 O5 B5]", "O8 O9", "{O8 O9}"),
        (REPLACED, "[R4 J R6] | [B9 K9 O9]", "O4 O5", None),
        (
            REPLACED,
            "[R4 J R6] | [R5 B5 K5 O5] | [R9 B9 K9 O9] | [R12 B12 K12 O12] | [B1 K1 O1 J]",
            "O8 R13",
            "{O8}",
        ),
        (OF_THE_RACK, "[R4 J R6] | [R5 K5 O5 B5]", "O8 O9", None),
        (OF_THE_RACK, "[R4 J R6] | [R7 K7 O7]", "R5 O9 O10 B7", "{R5 B7 O9 O10}"),
        (OF_THE_RACK | AT_THE_END, "[R4 R5 R6 J]", "O9 O10", "{O9 O10}"),
        (WITH_TWO, "[R4 J R6] | [R5 R6 R7 R8]", "O8 B1", None),
        (WITH_TWO, "[R4 R5 R6 J] | [R8 K8 B8]", "O8 O9 B1", "{O8 O9}"),
        (IF_REPLACED, "[R4 J R6] | [B1 B2 B3]", "R5 B4", "{B4}"),
        (ALL_OF_THE_RACK, "[R4 R5 R6 J] | [R8 K8 B8]", "O8 O9 B1 B2", "{B1 B2 O8}"),
        (OF_THE_RACK | ALL_OF_THE_RACK, "[R4 R5 R6 J] | [O10 O11 O12]", "O8 O9 R7 B1", "{R7 O8 O9}"),
        (STAY | FOUR_JOKERS, "[R9 O9 J]", "R10 R11 B2 J", "{R10 R11 J}"),
        (LIVE_ON, "[R3 R4 J] | [B4 K4 O4]", "R4 B3 B3 K3 O2", "{R4}"),
        (LIVE_ON, "[R7 K7 O7] | group[O7 J=R7 J=B7]", "O6", None),
        (LIVE_ON, "[R7 O7 J J]", "R8 K8 O9", "{R8 K8}"),
        (LIVE_ON | FOUR_JOKERS, "[K8 O8 J J] | group[B8 K8 J=O8]", "R9 B7 K10 O7", "{B7 K10 O7}"),
        (WITH_TWO, "[B12 K12 J J]", "R12 B10", None),
        (WITH_TWO, "[R8 B8 O8] | [R8 B8 K8] | group[R7 K7 J=B7 J=O7]", "B7 K7 K9 O8", "{B7 K7 K9 O8}"),
        (WITH_TWO, "[R13 K13 O13] | run[R11 J J]", "R13 B13 K12", "{B13}"),
        (ALL_OF_THE_RACK, "[B8 O8 J] | [R11 K11 O11] | [R9 K9 O9]", "B9 K8 O10", "{B9 K8 O10}"),
        (ALL_OF_THE_RACK, "[J O5 O6 O7] | [K3 K4 K5 K6]", "R6 B5 K2", "{K2}"),
        (OF_THE_RACK, "[R8 B8 O8] | run[J J O10]", "O9", "{O9}"),
        (OF_THE_RACK | WITH_TWO, "[R4 R5 R6 J] | [R8 K8 B8]", "O8 O9 B1", "{O8}"),
        (OF_THE_RACK, "[B3 J B5] | [O3 O4 O5 O6]", "B4", "{B4}"),
        (ALL_OF_THE_RACK | FOUR_JOKERS, "[B9 O9 J] | group[R7 J=B7 J=O7]", "R6 R7 K6 O8", None),
        (SMALL_SUMS, "[R12 B12 O12 J]", "R2 R2 B2 B13 K12 K13", "{R2 B2}"),
        (
            OF_THE_RACK | LOCKED,
            "group[B9 J=R9 J=O9] | [B9 B10 B11] | [R11 B11 K11 O11]",
            "R9 K10 K11 O11",
            "{R9 K10 K11}",
        ),
    ],
)
def test_it_finds_the_best_turn_that_the_rules_allow(
    options: Mapping[str, Any], table: str, rack: str, tiles: str | None
) -> None:
    assert played(at(table, rack, options)) == tiles


def test_a_turn_that_changes_few_melds_is_proven_to_change_the_fewest() -> None:
    answer = best_turn(at("[R4 J R6] | [B1 B2 B3]", "R5 B4", IF_REPLACED))
    assert answer.turn is not None
    assert (answer.turn.untouched, answer.is_least_change) == ((0,), True)


def test_a_contract_leaves_tiles_on_the_rack() -> None:
    situation = at("[R11 R12 R13] | [B4 B5 B6]", "R10 B7 O1 O2 O3", {"contract": Contract.VALUES_BELOW_10})
    assert played(situation) == "{B7 O1 O2 O3}"


def test_a_group_of_faces_that_lie_on_the_table_is_no_tile_played() -> None:
    options = {"contract": Contract.SINGLE_COLOR}
    situation = at("[R5 R6 R7] | [B4 B5 B6] | [O5 O6 O7]", "R5 B5 O5 R9 B9 K9", options)
    assert played(situation) == "{R5 B5 O5}"


def test_an_initial_meld_is_no_group_though_its_faces_lie_on_the_table() -> None:
    options: dict[str, Any] = {"contract": Contract.SINGLE_COLOR, "initial_meld_threshold": 15}
    table = "[R5 R6 R7] | [B4 B5 B6] | [O5 O6 O7]"
    assert played(at(table, "R5 B5 O5 R9 B9 K9", options, melded=False)) is None
    options["initial_meld_same_turn_table_play"] = InitialMeldSameTurnTablePlay.ALLOWED
    assert played(at(table, "R5 B5 O5 R9 B9 K9", options, melded=False)) is None
    assert played(at(table, "R5 B5 O5 K9 K10 K11", options, melded=False)) == "{R5 B5 K9 K10 K11 O5}"


def test_a_joker_of_the_table_may_lie_in_the_initial_meld() -> None:
    options = REPLACED | {
        "initial_meld_threshold": 27,
        "initial_meld_same_turn_table_play": InitialMeldSameTurnTablePlay.ALLOWED,
    }
    table = "group[R9 O9 J=B9] | [R10 R11 R12] | [O10 O11 O12]"
    assert played(at(table, "R9 K9 J O8", options, melded=False)) is not None
