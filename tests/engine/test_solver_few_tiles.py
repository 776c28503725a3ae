"""The search of few tiles: its partitions, its answers, and its fallback."""

from dataclasses import replace

import pytest

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.melds import Meld, read_meld
from engine.melding.notation import parse_melds
from engine.melding.presets import PRESETS
from engine.melding.ruleset import SABRA, JokersDeclaration, Preset, Ruleset
from engine.melding.solver import (
    Existence,
    Objective,
    best_turn,
    few_tiles,
    has_turn,
)
from engine.melding.solver.partitions import Partitions, Total
from engine.melding.solver.problem import problem_from
from engine.melding.solver.search import Meter
from engine.notation import format_rack, parse_tiles
from engine.tiles import in_order
from load.corpus.joker_positions import RESTRICTED, joker_positions
from oracles.brute_force import faults, text_of
from support.soak import few_of

OBJECTIVES = tuple(Objective)
FEW_NODES = Budget(nodes=4_000)

# Partitions


def test_a_meld_like_one_of_the_table_is_kept_only_once() -> None:
    (meld,) = [read_meld(sent, SABRA) for sent in parse_melds("[R3 R4 R5]")]
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
    melds = tuple(meld for sent in parse_melds(table) if isinstance(meld := read_meld(sent, silent), Meld))
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


@pytest.mark.unmeasured
@pytest.mark.parametrize("preset", few_of(RESTRICTED, 2))
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


def test_where_partitions_are_too_many_the_search_by_claims_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    situation = at("[R4 R5 R6 J] | [R8 K8 B8]", "O8 O9 B1", PRESETS[Preset.WIKI_FR])
    answer = best_turn(situation)
    monkeypatch.setattr(few_tiles, "MOST_NODES", 5)
    other = best_turn(situation)
    assert answer.turn is not None
    assert other.turn is not None
    assert format_rack(answer.turn.tiles) == format_rack(other.turn.tiles) == "{O8}"
    assert (answer.is_proven, answer.is_least_change) == (True, True)
    assert (other.is_proven, other.is_least_change) == (True, True)
