"""Random games keep every invariant in every state (support/okey_invariants.py)."""

from collections import Counter
from typing import get_args

import pytest

from engine.actions import StandIn
from engine.discard.events import DiscardEvent
from engine.discard.presets import PRESETS
from engine.discard.ruleset import Preset
from engine.events import PlayerAbsent, PlayerReturned, RoundEnded, TurnTimedOut
from engine.game import RoundEnd
from support.okey_games import random_changes
from support.okey_invariants import play_checked_game

GAMES = 200
CHUNKS = 8


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_games_keep_every_invariant_to_their_end(chunk: int) -> None:
    for seed in range(chunk, GAMES, CHUNKS):
        play_checked_game(seed)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("preset", Preset)
def test_a_whole_game_of_a_preset_keeps_every_invariant(preset: Preset) -> None:
    play_checked_game(1, PRESETS[preset])


def test_random_games_have_every_kind_of_event() -> None:
    met = Counter[object]()
    for seed in range(40):
        for change in random_changes(seed):
            met.update(type(event) for event in change.applied.events)
            met.update(event.result.end for event in change.applied.events if isinstance(event, RoundEnded))
            met["a stand-in"] += isinstance(change.action, StandIn)
    kinds = {*get_args(DiscardEvent), *RoundEnd, TurnTimedOut, PlayerAbsent, PlayerReturned, "a stand-in"}
    assert [kind for kind in kinds if not met[kind]] == []
