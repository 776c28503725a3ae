"""Games of all families are stored, and read as the same."""

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import orjson
import pytest

from engine.discard.named_hands import NamedHand
from engine.discard.presets import PRESETS as DISCARD_PRESETS
from engine.discard.ruleset import Preset
from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.events import Event
from engine.game import Game
from engine.melding.presets import PRESETS as MELDING_PRESETS
from engine.unions import Round, Ruleset
from service.errors import StoredFormatUnknown
from service.storage.stored_form import form_of
from service.storage.stored_values import read_ruleset, reading, write_options
from support.okey_games import random_101_ruleset, random_changes, random_joker_ruleset, random_ruleset


@pytest.mark.parametrize("choose", [random_ruleset, random_101_ruleset, random_joker_ruleset])
@pytest.mark.parametrize("seed", range(8))
def test_games_of_discards_and_their_events_are_read_as_they_were_stored(
    seed: int, choose: Callable[[random.Random], DiscardRuleset]
) -> None:
    games, events = form_of(Game), form_of(tuple[Event, ...])
    for change in random_changes(seed, choose):
        game, happened = change.applied.game, change.applied.events
        assert games.read(json.loads(orjson.dumps(games.write(game)))) == game
        assert events.read(json.loads(orjson.dumps(events.write(happened)))) == happened


def test_types_of_different_families_are_stored_under_different_names() -> None:
    for union in (Event, Round):
        names = Counter(kind.__name__ for kind in get_args(union))
        assert max(names.values()) == 1, names


@pytest.mark.parametrize("ruleset", [*MELDING_PRESETS.values(), *DISCARD_PRESETS.values()])
def test_rulesets_are_read_as_they_were_stored(ruleset: Ruleset) -> None:
    assert read_ruleset(write_options(ruleset)) == ruleset


def test_named_hands_are_read_as_they_were_stored() -> None:
    hands = (NamedHand("A_1", (1000, 0, 5), highest=13, all_odd=True), NamedHand("B", (3, 2, 1)))
    ruleset = replace(DISCARD_PRESETS[Preset.INTERNATIONAL], hands=hands)
    assert read_ruleset(write_options(ruleset)) == ruleset


@pytest.mark.parametrize("text", ["", "A", "A:1/2:", "A:1/2/3:runs=1", "A:1/2/3:one_high=", "a b:1/2/3:"])
def test_what_is_no_named_hand_is_not_read(text: str) -> None:
    stored = json.dumps({"preset": "INTERNATIONAL", "hands": text})
    with pytest.raises(StoredFormatUnknown), reading():
        read_ruleset(stored)


def test_only_the_first_family_leaves_out_its_default_preset() -> None:
    assert write_options(MELDING_PRESETS[next(iter(MELDING_PRESETS))]) == "{}"
    assert write_options(DISCARD_PRESETS[next(iter(DISCARD_PRESETS))]) == '{"preset": "OKEY"}'
