"""The search of few tiles: its partitions compared with a plain enumeration, its answers, and its fallback."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement

import pytest

from engine.analysis import Situation
from engine.melds import Meld, read_meld
from engine.notation import format_rack, parse_table, parse_tiles
from engine.presets import PRESETS
from engine.ruleset import SABRA, JokersDeclaration, Preset, Ruleset
from engine.solver import Budget, Existence, Objective, best_turn, few_tiles, has_turn
from engine.solver.meld_enumeration import possible_melds
from engine.solver.partitions import Partitions, Total
from engine.solver.problem import Problem, problem_from
from engine.solver.search import Meter
from engine.table import identity
from engine.tiles import in_order
from load.corpus.joker_positions import RESTRICTED, joker_positions
from oracles import brute_force
from oracles.brute_force import faults, small_situation, text_of
from oracles.integer_program import random_rules

OBJECTIVES = tuple(Objective)
FEW_NODES = Budget(nodes=4_000)

# Partitions


def naive_partitions(wanted: Problem, melds: list[Meld], table: tuple[Meld, ...]) -> Iterator[tuple[Total, object]]:
    """Yields the partitions by trying every multiset of melds."""
    tiles = Counter(wanted.must) + Counter(wanted.may)
    for count in range(tiles.total() // 3 + 1):
        for chosen in combinations_with_replacement(melds, count):
            laid = Counter(t for meld in chosen for t in meld.tiles)
            if Counter(wanted.must) <= laid <= tiles:
                kept = (Counter(map(identity, chosen)) & Counter(map(identity, table))).total()
                yield Total(wanted.cost((tiles - laid).elements()), kept), in_no_order(chosen)


def in_no_order(melds: tuple[Meld, ...]) -> object:
    return frozenset(Counter(map(identity, melds)).items())


@pytest.mark.parametrize("seed", range(6))
def test_partitions_are_those_of_a_plain_enumeration(seed: int) -> None:
    rng, most = random.Random(seed), 0
    for _ in range(50):
        ruleset = random_rules(rng)
        situation = small_situation(rng, ruleset)
        on_table = tuple(t for meld in situation.table for t in meld.tiles)
        if len(on_table) + len(situation.rack) > 11:
            continue
        wanted = problem_from(on_table, situation.rack, ruleset, rng.choice(OBJECTIVES))
        melds = melds_of(situation)
        partitions = Partitions(wanted, melds, situation.table, Meter(Budget()))
        found = [
            (total, in_no_order(tuple(piece.meld for piece in partition)))
            for total in partitions.totals(1_000)
            for partition in partitions.of_total(total)
        ]
        naive = set(naive_partitions(wanted, melds, situation.table))
        assert naive <= set(found), text_of(situation, wanted.objective)
        assert {(total.cost, parts) for total, parts in found} == {(total.cost, parts) for total, parts in naive}
        assert [total.cost for total, _ in found] == sorted(total.cost for total, _ in found)
        most = max(most, len(naive))
    assert most > 10


def melds_of(situation: Situation) -> list[Meld]:
    tiles = Counter(situation.rack) + Counter(t for meld in situation.table for t in meld.tiles)
    found = {identity(meld): meld for meld in (*possible_melds(tiles, situation.ruleset), *situation.table)}
    return list(found.values())


def test_a_meld_like_one_of_the_table_is_kept_only_once() -> None:
    (meld,) = [read_meld(sent, SABRA) for sent in parse_table("[R3 R4 R5]")]
    assert isinstance(meld, Meld)
    wanted = problem_from(meld.tiles, meld.tiles, SABRA, Objective.MOST_TILES)
    partitions = Partitions(wanted, [meld], (meld,), Meter(Budget()))
    found = {
        total: [tuple(piece.is_kept for piece in partition) for partition in partitions.of_total(total)]
        for total in partitions.totals(2)
    }
    assert found == {Total(0, 2): [], Total(0, 1): [(True, False)], Total(0, 0): [(False, False)]}


# The best turn


def at(table: str, rack: str, ruleset: Ruleset) -> Situation:
    """Returns a situation whose melds need no declaration."""
    silent = replace(ruleset, jokers_declaration=JokersDeclaration.POSITIONAL)
    melds = tuple(meld for sent in parse_table(table) if isinstance(meld := read_meld(sent, silent), Meld))
    return Situation(melds, in_order(parse_tiles(rack)), has_melded=True, ruleset=ruleset)


@pytest.mark.parametrize(
    "table", ["[K2 J J R2] | [K4 O4 B4]", "group[K2 R2 J=B2 J=O2] | [K4 O4 B4]"], ids=["undeclared", "declared"]
)
def test_two_jokers_of_a_group_are_replaced_without_a_long_search(table: str) -> None:
    situation = at(table, "B2 O2 K1 R3 R6 O11", PRESETS[Preset.GUIDE_A])
    answer = best_turn(situation, budget=FEW_NODES)
    assert answer.is_proven
    assert answer.turn is not None
    assert format_rack(answer.turn.tiles) == "{B2 O2}"
    assert has_turn(situation, FEW_NODES) is Existence.YES


@pytest.mark.parametrize("preset", RESTRICTED)
def test_small_positions_with_restricted_jokers_are_proven(preset: str) -> None:
    with_turn = 0
    for number, situation in enumerate(joker_positions(RESTRICTED[preset], seed=0, number=60)):
        objective = OBJECTIVES[number % 2]
        answer = best_turn(situation, objective, FEW_NODES)
        assert answer.is_proven, text_of(situation, objective)
        assert answer.is_least_change, text_of(situation, objective)
        assert has_turn(situation, FEW_NODES) is (Existence.YES if answer.turn else Existence.NO)
        if answer.turn:
            assert not list(faults(situation, answer.turn))
            with_turn += 1
    assert with_turn > 30


@pytest.mark.parametrize("preset", RESTRICTED)
def test_small_positions_with_restricted_jokers_agree_with_brute_force(preset: str) -> None:
    for number, situation in enumerate(joker_positions(RESTRICTED[preset], seed=2, number=8)):
        assert not brute_force.compare(situation, OBJECTIVES[number % 2], FEW_NODES).fault


def without_few_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables the search of few tiles."""
    monkeypatch.setattr(few_tiles, "MOST_TILES", 0)


def worth(situation: Situation, objective: Objective, budget: Budget) -> int:
    """Returns the worth of the best turn, which must be proven."""
    answer = best_turn(situation, objective, budget)
    assert answer.is_proven, text_of(situation, objective)
    return problem_from((), (), situation.ruleset, objective).cost(answer.turn.tiles if answer.turn else ())


@pytest.mark.parametrize("preset", RESTRICTED)
def test_the_search_by_claims_finds_as_much(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    situations = list(joker_positions(RESTRICTED[preset], seed=1, number=12))
    ample = Budget(nodes=200_000)
    found = [worth(situation, Objective.MOST_TILES, FEW_NODES) for situation in situations]
    without_few_tiles(monkeypatch)
    assert [worth(situation, Objective.MOST_TILES, ample) for situation in situations] == found


def test_where_partitions_are_too_many_the_search_by_claims_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    situation = at("[R4 R5 R6 J] | [R8 K8 B8]", "O8 O9 B1", PRESETS[Preset.WIKI_FR])
    answer = best_turn(situation)
    monkeypatch.setattr(few_tiles, "MOST_NODES", 5)
    other = best_turn(situation)
    assert answer.turn is not None
    assert other.turn is not None
    assert format_rack(answer.turn.tiles) == format_rack(other.turn.tiles) == "{O8}"
    assert (answer.is_proven, answer.is_least_change) == (True, True)
    assert (other.is_proven, other.is_least_change) == (True, False)
