"""The named rulesets and their texts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from engine.discard.ruleset import OKEY, OPTIONS, PAIRS_PLAYERS, Preset, Ruleset, Teams, problems, with_options
from engine.options import Option, OptionProblem, PresetText, option_problems
from engine.room_settings import DEFAULT_SETTINGS, SETTINGS, RoomSettings

PRESETS: Final = {
    Preset.OKEY: OKEY,
    Preset.OKEY_PARTNERS: replace(
        OKEY,
        preset=Preset.OKEY_PARTNERS,
        players_min=PAIRS_PLAYERS,
        players_max=PAIRS_PLAYERS,
        teams=Teams.PAIRS,
    ),
}


GAME_OPTIONS: Final[Mapping[str, Option]] = {**OPTIONS, **SETTINGS}
"""The options of a game's rules and the settings of its room, by name."""


PRESET_TEXTS: Final = {
    Preset.OKEY: PresetText(
        "Okey",
        "Take a tile, discard one: the first with a hand of melds or of seven pairs wins the round.",
        "Okey as most descriptions of the game agree on it; where all are silent, our own decisions",
    ),
    Preset.OKEY_PARTNERS: PresetText(
        "Okey with partners",
        "Okey in which opposite seats share a score.",
        "Okey with partners, which some descriptions mention",
    ),
}


def chosen(preset: Preset, options: Mapping[str, Any]) -> tuple[Ruleset, RoomSettings]:
    """Returns the ruleset and the settings of a preset with some options and settings replaced."""
    rules = {name: value for name, value in options.items() if name in OPTIONS}
    settings = {name: value for name, value in options.items() if name in SETTINGS}
    return with_options(PRESETS[preset], rules), replace(DEFAULT_SETTINGS, **settings)


def stated(ruleset: Ruleset, settings: RoomSettings) -> Mapping[str, object]:
    """Returns the options and settings that `chosen` needs beside the preset, with their values."""
    usual = ((OPTIONS, ruleset, PRESETS[ruleset.preset]), (SETTINGS, settings, DEFAULT_SETTINGS))
    return {
        name: getattr(given, name)
        for names, given, default in usual
        for name in names
        if getattr(given, name) != getattr(default, name)
    }


def problems_of(ruleset: Ruleset, settings: RoomSettings) -> tuple[OptionProblem, ...]:
    """Returns the problems of a ruleset, then those of settings."""
    return (*problems(ruleset), *option_problems(settings))


def preset_named(name: str) -> Preset | None:
    """Returns the preset of a name; None if there is none."""
    return Preset.__members__.get(name)
