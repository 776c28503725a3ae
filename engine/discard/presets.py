"""The named rulesets and their texts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from engine.discard.hand_text import format_hands, parse_hands
from engine.discard.ruleset import (
    HAND_SIZE_MOST,
    OKEY,
    OPTIONS,
    PAIRS_PLAYERS,
    PoolEmpty,
    Preset,
    Ruleset,
    ScoreSystem,
    TakenDiscard,
    Teams,
    WildRetrieval,
    WildTiles,
    problems,
    with_options,
)
from engine.options import Option, OptionProblem, PresetText, TextForm, option_problems
from engine.room_settings import DEFAULT_SETTINGS, SETTINGS, RoomSettings

OKEY_101: Final = replace(
    OKEY,
    preset=Preset.OKEY_101,
    hand_size=HAND_SIZE_MOST,
    run_one_high=False,
    melds_on_table=True,
    show_indicator=False,
    score_system=ScoreSystem.OKEY_101,
    match_rounds=5,
)

AMERICAN: Final = replace(
    OKEY,
    preset=Preset.AMERICAN,
    wild_tiles=WildTiles.JOKERS,
    trump=True,
    run_one_high=False,
    melds_on_table=True,
    opening_points=30,
    opening_pairs=0,
    show_indicator=False,
    wild_retrieval=WildRetrieval.LAID_AT_ONCE,
    pool_empty=PoolEmpty.DISCARD_TAKEN_OR_ENDS,
    score_system=ScoreSystem.AMERICAN,
    match_rounds=4,
)
INTERNATIONAL: Final = replace(
    AMERICAN,
    preset=Preset.INTERNATIONAL,
    trump=False,
    opening_points=50,
    taken_discard=TakenDiscard.KEPT_BEFORE_OPENING,
    concealed_wins=True,
    score_system=ScoreSystem.INTERNATIONAL,
)


def _with_partners(ruleset: Ruleset, preset: Preset) -> Ruleset:
    return replace(ruleset, preset=preset, players_min=PAIRS_PLAYERS, players_max=PAIRS_PLAYERS, teams=Teams.PAIRS)


PRESETS: Final = {
    Preset.OKEY: OKEY,
    Preset.OKEY_PARTNERS: _with_partners(OKEY, Preset.OKEY_PARTNERS),
    Preset.OKEY_101: OKEY_101,
    Preset.OKEY_101_PARTNERS: _with_partners(OKEY_101, Preset.OKEY_101_PARTNERS),
    Preset.AMERICAN: AMERICAN,
    Preset.INTERNATIONAL: INTERNATIONAL,
}


GAME_OPTIONS: Final[Mapping[str, Option]] = {**OPTIONS, **SETTINGS}
"""The options of a game's rules and the settings of its room, by name."""


OTHER_OPTIONS: Final = {"hands": TextForm(format_hands, parse_hands)}
"""The parts of a ruleset that are no options with a row, by name."""


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
    Preset.OKEY_101: PresetText(
        "101 Okey",
        "Open with melds of 101 points or with five pairs, and lay off on all melds. The fewest points win.",
        "101 Okey as most descriptions of the game agree on it; where they differ, our own decisions",
    ),
    Preset.OKEY_101_PARTNERS: PresetText(
        "101 Okey with partners",
        "101 Okey in which opposite seats play together: who finishes saves the partner too.",
        "101 Okey with partners as one description has it",
    ),
    Preset.AMERICAN: PresetText(
        "American Rummikub",
        "Open with melds of 30 points, and lay off on all melds. The winner gets what the others pay.",
        "American Rummikub as fragments of descriptions and a game that it came from have it; our own decisions beside",
    ),
    Preset.INTERNATIONAL: PresetText(
        "International Rummikub",
        "Open with melds of 50 points, or win concealed, with all tiles at once. The fewest points win.",
        "International Rummikub as two descriptions have it, with two of its 40 named hands; our own decisions beside",
    ),
}


def chosen(preset: Preset, options: Mapping[str, Any]) -> tuple[Ruleset, RoomSettings]:
    """Returns the ruleset and the settings of a preset with some options and settings replaced."""
    rules = {name: value for name, value in options.items() if name in OPTIONS or name in OTHER_OPTIONS}
    settings = {name: value for name, value in options.items() if name in SETTINGS}
    return with_options(PRESETS[preset], rules), replace(DEFAULT_SETTINGS, **settings)


def stated(ruleset: Ruleset, settings: RoomSettings) -> Mapping[str, object]:
    """Returns the options and settings that `chosen` needs beside the preset, with their values."""
    usual = (((*OPTIONS, *OTHER_OPTIONS), ruleset, PRESETS[ruleset.preset]), (SETTINGS, settings, DEFAULT_SETTINGS))
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
