"""The solver compared with an integer program and with brute force, and these with each other."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.melds import Meld, read_meld
from engine.melding.notation import parse_melds
from engine.melding.ruleset import (
    SABRA,
    InitialMeldJoker,
    InitialMeldSameTurnTablePlay,
    JokerRetrievalMode,
    JokersAdjacent,
    MeldOrder,
    RunWrap,
    TurnDraw,
    with_options,
)
from engine.melding.solver import (
    BestTurn,
    Existence,
    LegalTurn,
    Objective,
    best_turn,
    has_turn,
)
from engine.melding.solver.restricted_search import is_restricted
from engine.notation import parse_tiles
from engine.tiles import JOKER, in_order
from load.corpus.positions import positions, read
from oracles import brute_force, integer_program
from oracles.brute_force import TooManyPlaysError, arrangement_fault, best_by_force, small_situation, text_of
from oracles.integer_program import (
    IntegerProgram,
    PublishedProgram,
    meld_rules,
    random_rules,
    random_situation,
    short_kinds,
)
from support.few_tiles import search_few_tiles
from support.random_play import random_ruleset
from support.soak import few_of

pytestmark = [pytest.mark.unmeasured, pytest.mark.slow]

OBJECTIVES = tuple(Objective)
BUDGET = Budget(nodes=200_000, change_nodes=10_000)
BRIEF = Budget(nodes=10_000, change_nodes=1_000)


@pytest.fixture(scope="module")
def program() -> IntegerProgram:
    return IntegerProgram()


# The oracles


@pytest.mark.parametrize(("jokers", "count"), [(0, 185), (1, 679), (2, 1173), (4, 1445)])
def test_there_are_as_many_kinds_of_melds_as_published(jokers: int, count: int) -> None:
    assert len(short_kinds(meld_rules(SABRA, jokers))) == count


def test_the_published_program_agrees(program: IntegerProgram) -> None:
    published = PublishedProgram()
    melded = [recorded.situation for recorded in read()[:60] if recorded.situation.has_melded]
    for situation in melded:
        best, same = program.best(situation), published.best(situation)
        assert (best and best.worth) == (same and same.worth)
    with pytest.raises(ValueError, match="who have melded"):
        published.best(replace(melded[0], has_melded=False))


@pytest.mark.parametrize("seed", few_of(range(3), 1))
def test_the_oracles_agree(program: IntegerProgram, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        situation, objective = small_situation(rng, random_rules(rng)), rng.choice(OBJECTIVES)
        if integer_program.supports(situation):
            best, forced = program.best(situation, objective, keep=True), best_by_force(situation, objective)
            one = (best.worth, best.kept) if best else None
            assert one == ((forced.worth, forced.kept) if forced else None), text_of(situation, objective)


def test_the_positions_are_of_all_sorts() -> None:
    rng, sorts = random.Random(0), Counter[tuple[str, bool, bool]]()
    for _ in range(250):
        situation = small_situation(rng, random_ruleset(rng, with_analysis=True))
        best = best_by_force(situation)
        sorts["melded" if situation.has_melded else "not", best is not None, bool(best and best.kept)] += 1
        sorts["River", best is not None, False] += bool(situation.river)
    assert min(sorts[melded, True, kept] for melded in ("melded", "not") for kept in (False, True)) > 1
    assert min(sorts[melded, False, False] for melded in ("melded", "not")) > 15


# The solver


@pytest.mark.parametrize("seed", few_of(range(30), 1))
def test_the_solver_agrees_with_the_program_on_random_positions(program: IntegerProgram, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        situation, objective = random_situation(rng, random_rules(rng)), rng.choice(OBJECTIVES)
        compared = integer_program.compare(program, situation, objective, BRIEF)
        assert not compared.fault, compared.fault


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_solver_agrees_with_the_program_on_positions_of_games(
    program: IntegerProgram, objective: Objective
) -> None:
    for recorded in random.Random(0).sample(read(), 40):
        compared = integer_program.compare(program, recorded.situation, objective, BUDGET)
        assert not compared.fault, compared.fault
        assert compared.best.is_proven, text_of(recorded.situation, objective)


ONE_HIGH, CYCLIC = ({"run_wrap": wrap} for wrap in (RunWrap.ONE_HIGH, RunWrap.CYCLIC))
APART = {"jokers_adjacent": JokersAdjacent.FORBIDDEN}


@pytest.mark.parametrize(
    ("number", "options"),
    [(2705, ONE_HIGH), (2795, ONE_HIGH), (2275, CYCLIC), (2490, CYCLIC), (2708, APART), (2845, APART), (2638, APART)],
)
def test_the_fewest_changes_are_proven_on_large_tables_under_other_rules(
    program: IntegerProgram, number: int, options: Mapping[str, object]
) -> None:
    recorded = read()[number]
    situation = replace(recorded.situation, ruleset=with_options(recorded.ruleset, options))
    compared = integer_program.compare(program, situation, Objective.MOST_TILES, Budget())
    assert not compared.fault, compared.fault
    assert compared.best.is_least_change


LARGE = (
    "[R13 K13 O13] | [B12 K12 O12] | [R11 B11 K11] | [R10 B10 O10] | [R3 B3 O3] | [R7 B7 O7] | [R2 J R4] | [R5 B5 K5]"
    " | [B2 B3 B4] | [R6 B6 K6] | [R9 K9 O9] | [R8 R9 J] | [B7 B8 B9] | [R1 K1 O1] | [B1 K1 O1] | [O4 O5 O6 O7 O8 O9]"
    " | [O11 J O13] | [R8 K8 J] | [R2 R3 R4] | [K2 K3 K4 K5 K6] | [O2 O3 O4]"
)


def test_the_search_for_the_fewest_changes_goes_on_as_long_as_it_may(program: IntegerProgram) -> None:
    rack = parse_tiles("R5 R7 R10 R12 B1 B4 B8 B10 B13 K4 K7 K11 K13 O2 O5")
    ruleset = with_options(SABRA, {"geometry_jokers": 4})
    melds = tuple(meld for sent in parse_melds(LARGE) if isinstance(meld := read_meld(sent, ruleset), Meld))
    situation = Situation(melds, rack, has_melded=True, ruleset=ruleset)
    few = best_turn(situation)
    assert few.turn is not None
    assert len(few.turn.untouched) >= 13
    assert not few.is_least_change
    compared = integer_program.compare(program, situation, Objective.MOST_TILES, Budget(change_nodes=20_000))
    assert not compared.fault, compared.fault
    assert compared.best.is_least_change


@pytest.mark.parametrize("seed", few_of(range(10), 1))
def test_the_solver_agrees_with_brute_force_under_every_ruleset(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        situation = small_situation(rng, random_ruleset(rng, with_analysis=True))
        _assert_agreement(situation, rng.choice(OBJECTIVES))


@pytest.mark.parametrize("seed", few_of(range(4), 1))
def test_the_search_by_claims_agrees_with_brute_force(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    search_few_tiles(monkeypatch, 0)
    rng, compared = random.Random(seed), 0
    while compared < 20:
        situation = small_situation(rng, random_ruleset(rng, with_analysis=True))
        if is_restricted(situation.table, situation.ruleset):
            _assert_agreement(situation, rng.choice(OBJECTIVES))
            compared += 1


@pytest.mark.parametrize("seed", few_of(range(4), 1))
def test_the_solver_agrees_with_brute_force_on_pulls_from_the_river(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        ruleset = with_options(random_rules(rng), {"turn_draw": TurnDraw.TWO_RIVER})
        _assert_agreement(small_situation(rng, ruleset), rng.choice(OBJECTIVES))


@pytest.mark.parametrize("seed", few_of(range(4), 1))
def test_the_solver_agrees_with_brute_force_where_the_order_of_a_run_has_no_meaning(seed: int) -> None:
    rng, compared = random.Random(seed), 0
    while compared < 20:
        ruleset = replace(random_ruleset(rng, with_analysis=True), meld_order=MeldOrder.CANONICALISE)
        situation = small_situation(rng, ruleset)
        if JOKER in (*situation.rack, *(t for meld in situation.table for t in meld.tiles)):
            _assert_agreement(situation, rng.choice(OBJECTIVES))
            compared += 1


REPLACE = {"joker_retrieval_mode": JokerRetrievalMode.REPLACE}
OPENS_AT_27 = {
    "initial_meld_threshold": 27,
    "initial_meld_same_turn_table_play": InitialMeldSameTurnTablePlay.ALLOWED,
}
SIX_COLORS_NO_LEAD = {
    "geometry_colors": 6,
    "jokers_may_lead": False,
    "initial_meld_threshold": 0,
    "initial_meld_same_turn_table_play": InitialMeldSameTurnTablePlay.ALLOWED,
}
NO_JOKER_AT_0 = {
    "initial_meld_threshold": 0,
    "initial_meld_joker": InitialMeldJoker.FORBIDDEN,
    "initial_meld_same_turn_table_play": InitialMeldSameTurnTablePlay.ALLOWED,
}


@pytest.mark.parametrize(
    ("options", "table", "rack", "melded", "exists"),
    [
        (REPLACE, "[R9 O9 J J]", "R10 R11 B11", True, Existence.YES),
        (REPLACE, "[R9 O9 J J]", "R10 R12 B11", True, Existence.NO),
        (REPLACE | {"geometry_jokers": 4}, "[R9 O9 J] | [R9 O9 J]", "R10 R11 J", True, Existence.YES),
        (
            REPLACE | OPENS_AT_27,
            "group[R9 O9 J=B9] | [R10 R11 R12] | [O10 O11 O12]",
            "R9 K9 J O8",
            False,
            Existence.YES,
        ),
        (SIX_COLORS_NO_LEAD, ".", "G6 P6 J", False, Existence.YES),
        (NO_JOKER_AT_0, ".", "R3 O3 J", False, Existence.NO),
        (NO_JOKER_AT_0, "[R4 R5 R6]", "R7 O3 B3 J", False, Existence.NO),
        (NO_JOKER_AT_0, "[R4 R5 R6]", "R3 O3 J B5 B6 B7", False, Existence.YES),
    ],
)
def test_the_solver_agrees_with_brute_force_on_positions_that_it_once_did_not(
    options: Mapping[str, Any], table: str, rack: str, melded: bool, exists: Existence
) -> None:
    ruleset = with_options(SABRA, options)
    melds = tuple(meld for sent in parse_melds(table) if isinstance(meld := read_meld(sent, ruleset), Meld))
    situation = Situation(melds, in_order(parse_tiles(rack)), melded, ruleset)
    assert has_turn(situation) is exists
    for objective in OBJECTIVES:
        _assert_agreement(situation, objective)


def _assert_agreement(situation: Situation, objective: Objective) -> None:
    try:
        compared = brute_force.compare(situation, objective, BUDGET)
    except TooManyPlaysError:
        return
    assert not compared.fault, compared.fault
    assert compared.best.is_proven, text_of(situation, objective)
    assert compared.existence is not Existence.UNKNOWN, text_of(situation, objective)


@pytest.mark.parametrize("seed", few_of(range(4), 1))
def test_the_solver_arranges_tiles_whenever_they_can_be_arranged(seed: int) -> None:
    rng, arranged = random.Random(seed), 0
    for _ in range(60):
        ruleset = random_rules(rng)
        situation = small_situation(rng, ruleset)
        tiles = tuple(sorted(t for meld in situation.table for t in meld.tiles))
        for choice in (tiles, tuple(sorted((*tiles, *situation.rack[:1]))), situation.rack):
            fault = arrangement_fault(choice, ruleset, BUDGET)
            assert not fault, fault
        arranged += bool(tiles)
    assert arranged > 20


# Detection of wrong answers


def _lays_one_meld_less(situation: Situation, objective: Objective, budget: Budget) -> BestTurn:
    answer = best_turn(situation, objective, budget)
    if answer.turn is None:
        return answer
    *table, _ = answer.turn.table
    return BestTurn(
        LegalTurn(tuple(table), answer.turn.tiles, answer.turn.untouched), is_proven=True, is_least_change=True
    )


def _finds_nothing(situation: Situation, objective: Objective, budget: Budget) -> BestTurn:  # noqa: ARG001 - same signature
    return BestTurn(None, is_proven=True, is_least_change=True)


@pytest.mark.parametrize("wrong", [_lays_one_meld_less, _finds_nothing])
def test_a_wrong_answer_is_noticed(program: IntegerProgram, monkeypatch: pytest.MonkeyPatch, wrong: object) -> None:
    situation = next(
        recorded.situation for recorded in positions(range(1)) if best_turn(recorded.situation).turn is not None
    )
    for oracle in (integer_program, brute_force):
        monkeypatch.setattr(oracle, "best_turn", wrong)
    assert integer_program.compare(program, situation, Objective.MOST_TILES, BUDGET).fault
    small = next(
        small for small in (small_situation(random.Random(seed), SABRA) for seed in range(100)) if best_by_force(small)
    )
    assert brute_force.compare(small, Objective.MOST_TILES, BUDGET).fault


def test_the_same_seed_gives_the_same_positions() -> None:
    assert list(islice(positions(range(2)), 30)) == list(islice(positions(range(2)), 30))
