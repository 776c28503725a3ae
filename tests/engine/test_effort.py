"""The steps that the rules may take: enough for every turn of a game, and never more than they say."""

import sys
from dataclasses import replace
from types import FrameType

import pytest

import engine.melding.play
from engine.effort import Effort, TooComplexError
from engine.melding.events import TurnPenalised
from engine.melding.play import STEPS, Play
from engine.melding.retrieval import may_be_retrieved
from engine.melding.rules import judge
from engine.melding.ruleset import (
    SABRA,
    Contract,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameMeld,
    Manipulation,
    TurnInvalidSubmission,
    WinCall,
)
from engine.violations import Reason
from load.corpus.hostile_turns import SORTS, HostileTurn, read, recorded
from support.plays import judged, play_of
from support.positions import do, game_at, play, refusal

pytestmark = pytest.mark.slow

TOO_COMPLEX = Reason.TURN_TOO_COMPLEX
HOSTILE = read()
CALLS_MAX = 400_000
"""Calls of functions, Python's own among them, that a turn takes at most: some 50 ms."""


def test_a_step_too_many_is_refused() -> None:
    effort = Effort(3)
    effort.take()
    effort.take(2)
    with pytest.raises(TooComplexError):
        effort.take()


@pytest.mark.parametrize("turn", HOSTILE[:20])
def test_the_rules_take_no_more_than_the_given_steps(turn: HostileTurn) -> None:
    judgement = judge(turn.to_judge, steps=0)
    assert TOO_COMPLEX in {violation.reason for violation in judgement.violations}
    assert judge(replace(turn.to_judge)) == judge(replace(turn.to_judge), steps=STEPS)


def calls(turn: HostileTurn) -> int:
    """How many functions are called to judge a turn."""
    to_judge, count = turn.to_judge, 0

    def note(_frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        judge(to_judge)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.unmeasured
@pytest.mark.parametrize("turn", [pytest.param(one, id=f"{number}-{one.sort}") for number, one in enumerate(HOSTILE)])
def test_a_hostile_turn_takes_a_bounded_amount_of_work(turn: HostileTurn) -> None:
    assert calls(turn) <= CALLS_MAX


@pytest.mark.unmeasured
def test_turns_of_every_sort_are_as_they_are_recorded() -> None:
    assert {turn.sort for turn in HOSTILE} == set(SORTS)
    assert all(recorded(turn.sort, turn.to_judge) == turn for turn in HOSTILE)
    assert 0 < sum(too_complex(turn.to_judge) for turn in HOSTILE) < len(HOSTILE)


def too_complex(turn: Play) -> int:
    """How often the rules say that a turn is too complex. Some of these have too many tiles for a referee's tally."""
    return [violation.reason for violation in judge(turn).violations].count(TOO_COMPLEX)


def reasons(turn: Play) -> list[Reason]:
    return [violation.reason for violation in judged(turn).violations]


# Turns that are too complex

SIX_JOKERS = replace(
    SABRA,
    geometry_colors=6,
    geometry_copies=3,
    geometry_jokers=0,
    geometry_jokers_per_player=1,
    players_max=6,
    joker_retrieval_mode=JokerRetrievalMode.LOCKED,
    joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD_TWO_RACK_TILES,
    joker_retrieval_same_meld=JokerRetrievalSameMeld.FORBIDDEN,
)
BEFORE = "group[J P7 J] | group[J G7 J J] | [O7 P7 J] | [B5 B6 B7]"
RACK = "R7 R7 B7 K7 K7 K7 O7 G7 G7 P7"
AFTER = "[K7 J P7] | [J K7 O7] | [P7 G7 J] | [J O7 R7] | [G7 B7 P7 K7 J] | [R7 G7 J] | [B5 B6 B7]"
TANGLED = play_of(f"{BEFORE} + *{{{RACK}}} -> {AFTER} ; {{}}", SIX_JOKERS)


@pytest.mark.unmeasured
def test_a_turn_that_moves_jokers_in_too_many_ways_is_too_complex() -> None:
    assert reasons(TANGLED) == [TOO_COMPLEX]
    assert reasons(replace(TANGLED, ruleset=replace(SIX_JOKERS, win_call=WinCall.REQUIRED))) == [
        TOO_COMPLEX,
        Reason.RUMMIKUB_NOT_CALLED,
    ]


@pytest.mark.unmeasured
def test_a_turn_that_replaces_all_six_jokers_of_a_run_is_not_too_complex() -> None:
    rules = replace(SABRA, geometry_jokers=6, joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD_IF_REPLACED)
    new = "[B1 K1 J] | [B2 K2 J] | [B3 K3 J] | [B4 K4 J] | [B5 K5 J] | [B6 K6 J]"
    rack = "R1 R2 R3 R4 R5 R6 B1 B2 B3 B4 B5 B6 K1 K2 K3 K4 K5 K6"
    turn = play_of(f"run[J J J J J J R7] + *{{{rack}}} -> [R1 R2 R3 R4 R5 R6 R7] | {new} ; {{}}", rules)
    assert reasons(turn) == []


def test_a_turn_judged_again_has_all_steps_again() -> None:
    turn = play_of("[R4 J R6] + *{R5 B1 B2} -> [R4 R5 R6] | [B1 B2 J] ; {}", SIX_JOKERS)
    assert judge(turn) == judge(turn)
    left = turn.effort.left
    judge(turn)
    assert left == turn.effort.left < STEPS


def test_what_is_too_complex_may_be_retrieved_for_all_that_the_solver_knows() -> None:
    assert may_be_retrieved(TANGLED.table_before, TANGLED.melds, TANGLED.tiles_played, SIX_JOKERS)


def test_an_initial_meld_that_is_too_complex_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.melding.play, "INITIAL_STEPS", 1000)
    turn = next(turn.to_judge for turn in HOSTILE if turn.sort == "an initial meld")
    rules = replace(turn.ruleset, manipulation=Manipulation.OFF, contract=Contract.SINGLE_COLOR)
    assert too_complex(turn) == 1
    assert too_complex(replace(turn, ruleset=rules)) == 1


def test_nobody_pays_for_a_turn_that_is_only_too_complex() -> None:
    rules = replace(SIX_JOKERS, turn_invalid_submission=TurnInvalidSubmission.PENALISE)
    position = f"{BEFORE} / 1*{{{RACK}}} 2{{K1}} / {{R1 R2 R3 R4}} / 1"
    refused = refusal(game_at(position, rules), play(1, AFTER))
    assert [violation.reason for violation in refused.violations] == [TOO_COMPLEX]
    must_call = replace(rules, win_call=WinCall.REQUIRED)
    penalised = do(game_at(position, must_call), play(1, AFTER))
    assert [violation.reason for violation in penalised.violations] == [TOO_COMPLEX, Reason.RUMMIKUB_NOT_CALLED]
    assert isinstance(penalised.events[0], TurnPenalised)
