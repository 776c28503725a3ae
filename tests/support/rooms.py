"""Rules with the settings of a room, for tests of games whose settings are not the defaults."""

from dataclasses import dataclass, replace
from typing import Any

from engine.melding.presets import PRESET_SETTINGS, PRESETS
from engine.melding.ruleset import OPTIONS, SABRA, Preset, Ruleset
from engine.room_settings import DEFAULT_SETTINGS, RoomSettings


@dataclass(frozen=True)
class Room:
    """Rules and settings."""

    ruleset: Ruleset
    settings: RoomSettings


Rules = Ruleset | Room
"""The rules and settings of a new game. Without a Room the settings are the defaults."""


def room(rules: Rules = SABRA, **options: Any) -> Room:  # noqa: ANN401 - each option has a type of its own
    """Returns rules with some options and settings replaced."""
    ruleset, settings = parts(rules)
    chosen = {name: value for name, value in options.items() if name in OPTIONS}
    rest = {name: value for name, value in options.items() if name not in OPTIONS}
    return Room(replace(ruleset, **chosen), replace(settings, **rest))


def room_of(preset: Preset) -> Room:
    """Returns the rules of a preset with its settings."""
    return Room(PRESETS[preset], PRESET_SETTINGS[preset])


def parts(rules: Rules) -> tuple[Ruleset, RoomSettings]:
    """Returns rules and settings."""
    return (rules.ruleset, rules.settings) if isinstance(rules, Room) else (rules, DEFAULT_SETTINGS)
