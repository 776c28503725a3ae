"""Corner cases of the solver's melds, which positions of games rarely reach."""

from collections import Counter
from dataclasses import replace

import pytest

from engine.melding.analysis import Situation
from engine.melding.melds import Meld, ProposedMeld, read_meld
from engine.melding.ruleset import (
    SABRA,
    Contract,
    InitialMeldSameTurnTablePlay,
    JokersMaxPerMeld,
    RunWrap,
    TurnDraw,
    with_options,
)
from engine.melding.solver import Existence, arrange, best_turn, has_turn
from engine.melding.solver.meld_enumeration import possible_melds
from engine.melding.solver.run_assembly import RunPart, whole_runs
from engine.notation import parse_tiles
from engine.tiles import in_order


def test_a_joker_finds_the_group_that_lacks_a_color() -> None:
    found = arrange(parse_tiles("R1 B1 K1 O1 R2 B2 K2 J"), SABRA)
    assert found.exists is Existence.YES
    assert sorted(len(meld.tiles) for meld in found.melds) == [4, 4]


def test_a_joker_connects_a_complete_run_with_a_further_tile() -> None:
    found = arrange(parse_tiles("R9 R10 R11 R13 J"), SABRA)
    assert [meld.tiles for meld in found.melds] == [parse_tiles("R9 R10 R11 J R13")]
    found = arrange(in_order(parse_tiles("R9 R10 R11 R13 R9 R10 R11 R12 R13 J")), SABRA)
    assert [meld.tiles for meld in found.melds] == [parse_tiles("R9 R10 R11 R12 R13"), parse_tiles("R9 R10 R11 J R13")]


def test_no_joker_fits_where_all_groups_are_full() -> None:
    assert arrange(parse_tiles("R1 B1 K1 O1 J"), SABRA).exists is Existence.NO


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_run_that_goes_round_is_cut(rounds: int) -> None:
    ruleset = with_options(SABRA, {"run_wrap": RunWrap.CYCLIC})
    line = RunPart(5, *(parse_tiles("R5 R6 R7 R8 R9 R10 R11 R12 R13") + parse_tiles("R1 R2 R3 R4")) * rounds)
    line.previous = line
    runs = list(whole_runs([], [line], ruleset))
    assert Counter(t for run in runs for t in run.tiles) == Counter(line.tiles)
    assert all(isinstance(read_meld(ProposedMeld(run.tiles), ruleset), Meld) for run in runs)


def test_no_meld_of_a_rack_has_more_jokers_than_it_may() -> None:
    ruleset = with_options(SABRA, {"jokers_max_per_meld": JokersMaxPerMeld.ONE})
    melds = list(possible_melds(Counter(parse_tiles("R1 R2 J J")), ruleset))
    assert melds
    assert max(meld.tiles.count(parse_tiles("J")[0]) for meld in melds) == 1


def test_an_initial_meld_keeps_to_the_limit_of_jokers() -> None:
    options = {
        "jokers_max_per_meld": JokersMaxPerMeld.ONE,
        "initial_meld_same_turn_table_play": InitialMeldSameTurnTablePlay.ALLOWED,
    }
    rack = parse_tiles("R13 J J")
    for limited, exists in (
        (options, Existence.NO),
        ({**options, "jokers_max_per_meld": JokersMaxPerMeld.TWO}, Existence.YES),
    ):
        assert has_turn(Situation((), rack, has_melded=False, ruleset=with_options(SABRA, limited))) is exists


def test_a_joker_more_in_the_initial_meld_is_played_though_it_was_not_needed() -> None:
    ruleset = with_options(
        SABRA, {"initial_meld_same_turn_table_play": InitialMeldSameTurnTablePlay.ALLOWED, "run_wrap": RunWrap.ONE_HIGH}
    )
    found = best_turn(Situation((), parse_tiles("R4 R9 B1 B6 B13 O13 J J"), has_melded=False, ruleset=ruleset))
    assert found.turn
    assert len(found.turn.tiles) == 4
    assert found.is_proven


def test_a_tile_of_the_river_is_not_pulled_for_a_meld_without_it() -> None:
    ruleset = with_options(SABRA, {"turn_draw": TurnDraw.TWO_RIVER, "contract": Contract.SINGLE_COLOR})
    situation = Situation((), parse_tiles("R9 B9 K9"), has_melded=True, ruleset=ruleset, river=parse_tiles("O1"))
    assert has_turn(situation) is Existence.NO
    assert has_turn(replace(situation, river=parse_tiles("O1 O9"))) is Existence.NO
