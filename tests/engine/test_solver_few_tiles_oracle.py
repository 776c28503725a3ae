"""The search of few tiles, compared with a plain enumeration, with brute force and with the search by claims."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement

import pytest

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.melds import Meld
from engine.melding.solver import Objective, best_turn
from engine.melding.solver.meld_enumeration import possible_melds
from engine.melding.solver.partitions import Partitions, Total
from engine.melding.solver.problem import Problem, problem_from
from engine.melding.solver.search import Meter
from engine.melding.table import identity
from load.corpus.joker_positions import RESTRICTED, joker_positions
from oracles import brute_force
from oracles.brute_force import small_situation, text_of
from oracles.integer_program import random_rules
from support.few_tiles import search_few_tiles
from support.soak import few_of

pytestmark = [pytest.mark.unmeasured, pytest.mark.slow]

OBJECTIVES = tuple(Objective)
FEW_NODES = Budget(nodes=4_000)


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


@pytest.mark.parametrize("seed", few_of(range(6), 1))
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


@pytest.mark.parametrize("preset", few_of(RESTRICTED, 2))
def test_small_positions_with_restricted_jokers_agree_with_brute_force(preset: str) -> None:
    for number, situation in enumerate(joker_positions(RESTRICTED[preset], seed=2, number=8)):
        assert not brute_force.compare(situation, OBJECTIVES[number % 2], FEW_NODES).fault


def worth(situation: Situation, objective: Objective, budget: Budget) -> int:
    """Returns the worth of the best turn, which must be proven."""
    answer = best_turn(situation, objective, budget)
    assert answer.is_proven, text_of(situation, objective)
    return problem_from((), (), situation.ruleset, objective).cost(answer.turn.tiles if answer.turn else ())


@pytest.mark.parametrize("preset", few_of(RESTRICTED, 2))
def test_the_search_by_claims_finds_as_much(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    situations = list(joker_positions(RESTRICTED[preset], seed=1, number=12))
    ample = Budget(nodes=200_000)
    found = [worth(situation, Objective.MOST_TILES, FEW_NODES) for situation in situations]
    search_few_tiles(monkeypatch, 0)
    assert [worth(situation, Objective.MOST_TILES, ample) for situation in situations] == found
