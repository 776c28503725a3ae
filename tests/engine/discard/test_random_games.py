"""Random games keep every invariant in every state (support/okey_invariants.py)."""

from collections import Counter
from collections.abc import Iterable
from typing import get_args

import pytest

from engine.actions import StandIn
from engine.discard.events import (
    DiscardEvent,
    DiscardReturned,
    EmptyPoolPassed,
    HandFinished,
    IndicatorShown,
    PenaltyScored,
    RackFinished,
    ThreeTilesLeft,
    TilesLaid,
    TrumpTaken,
)
from engine.discard.laying import PenaltyCause
from engine.discard.presets import PRESETS
from engine.discard.ruleset import Preset
from engine.events import PlayerAbsent, PlayerReturned, RoundEnded, TurnTimedOut
from engine.game import RoundEnd
from support.okey_games import random_101_ruleset, random_changes, random_joker_ruleset, random_ruleset
from support.okey_invariants import Choose, play_checked_game
from support.soak import few_of

GAMES = 200
SOAK_GAMES = 1_000
CHUNKS = 8


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("choose", [random_ruleset, random_101_ruleset, random_joker_ruleset])
@pytest.mark.parametrize("chunk", few_of(range(CHUNKS), 2))
def test_random_games_keep_every_invariant_to_their_end(chunk: int, choose: Choose) -> None:
    """`make soak` plays more games."""
    for seed in range(chunk, GAMES, CHUNKS):
        play_checked_game(seed, choose)


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_many_random_games_of_101_okey_keep_every_invariant(chunk: int) -> None:
    for seed in range(GAMES + chunk, GAMES + SOAK_GAMES, CHUNKS):
        play_checked_game(seed, random_101_ruleset)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("preset", Preset)
def test_a_whole_game_of_a_preset_keeps_every_invariant(preset: Preset) -> None:
    play_checked_game(1, lambda _: PRESETS[preset])


ANY = {*RoundEnd} - {RoundEnd.KNOCKED, RoundEnd.VOID} | {
    TurnTimedOut,
    PlayerAbsent,
    PlayerReturned,
    "a stand-in",
    *get_args(DiscardEvent),
}
PENALTIES = {RoundEnd.VOID, *PenaltyCause} - {PenaltyCause.FALSE_FINISH}
ON_TABLE = {TilesLaid, DiscardReturned, RackFinished}
AT_THE_END = {HandFinished, IndicatorShown}
WITH_JOKERS = {TrumpTaken, EmptyPoolPassed, ThreeTilesLeft}


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("choose", "kinds", "seeds"),
    [
        (random_ruleset, (ANY | {PenaltyCause.FALSE_FINISH}) - ON_TABLE - WITH_JOKERS, (*range(20), 56)),
        (random_101_ruleset, (ANY | PENALTIES) - AT_THE_END - WITH_JOKERS, (1, 2, 3, 4, 17, 48)),
        (random_joker_ruleset, ANY - AT_THE_END - {PenaltyScored}, (1, 31, 41, 49)),
    ],
)
def test_random_games_have_every_kind_of_event(choose: Choose, kinds: set[object], seeds: Iterable[int]) -> None:
    met = Counter[object]()
    for seed in seeds:
        for change in random_changes(seed, choose):
            met.update(type(event) for event in change.applied.events)
            met.update(event.result.end for event in change.applied.events if isinstance(event, RoundEnded))
            met.update(event.cause for event in change.applied.events if isinstance(event, PenaltyScored))
            met["a stand-in"] += isinstance(change.action, StandIn)
    assert [kind for kind in kinds if not met[kind]] == []
