from dataclasses import fields, replace
from enum import Enum

import pytest

from engine.ruleset import (
    CONFLICTS,
    IMPLEMENTED,
    PRESET_SOURCES,
    PRESETS,
    RANGES,
    SABRA,
    MatchEnd,
    OptionProblem,
    Preset,
    Ruleset,
    problems,
)
from engine.violations import Reason

OPTIONS = {field.name: getattr(SABRA, field.name) for field in fields(Ruleset)}
NUMBERS = {name for name, value in OPTIONS.items() if not isinstance(value, Enum)}
NOT_IMPLEMENTED = [
    (option, value)
    for option, implemented in IMPLEMENTED.items()
    for value in type(implemented[0])
    if value not in implemented
]
ENDS = {"match_rounds": MatchEnd.FIXED_ROUNDS, "match_target_score": MatchEnd.TARGET_SCORE}
"""What the game's end must be for a number to play a part."""


def with_number(option: str, value: int) -> Ruleset:
    """A ruleset in which nothing but the number may be wrong."""
    players = {"players_min": 2, "players_max": 4} | ({option: value} if option.startswith("players") else {})
    return replace(SABRA, **({"match_end": ENDS.get(option, SABRA.match_end), option: value} | players))  # type: ignore[arg-type] # by name


def test_every_option_has_a_table_of_its_values() -> None:
    assert set(RANGES) == NUMBERS
    assert set(IMPLEMENTED) == set(OPTIONS) - NUMBERS
    for option, values in IMPLEMENTED.items():
        assert {type(value) for value in values} == {type(OPTIONS[option])}


def test_every_preset_can_be_played_and_says_where_it_comes_from() -> None:
    assert set(PRESETS) == set(PRESET_SOURCES) == set(Preset)
    for preset, ruleset in PRESETS.items():
        assert ruleset.preset is preset
        assert problems(ruleset) == ()
        assert PRESET_SOURCES[preset]


@pytest.mark.parametrize(("option", "value"), NOT_IMPLEMENTED, ids=[f"{o}-{v.name}" for o, v in NOT_IMPLEMENTED])
def test_a_value_that_is_not_implemented_is_named_not_ignored(option: str, value: Enum) -> None:
    ruleset = replace(SABRA, **{option: value})  # type: ignore[arg-type] # by name
    assert problems(ruleset) == (OptionProblem(Reason.VARIANT_NOT_SUPPORTED, (option,), value.name),)


@pytest.mark.parametrize("option", IMPLEMENTED)
def test_every_implemented_value_can_be_played(option: str) -> None:
    for value in IMPLEMENTED[option]:
        assert problems(replace(SABRA, **{option: value})) == ()  # type: ignore[arg-type] # by name


EDGES = [
    # option, values that can be played, values that cannot
    ("geometry_jokers", (0, 2, 4), (-1, 1, 3, 5, 8)),
    ("initial_meld_threshold", (0, 1, 30, 200), (-1, 201)),
    ("turn_time_limit_seconds", (0, 1, 86_400), (-1, 86_401)),
    ("score_joker_penalty", (0, 30, 100), (-1, 101)),
    ("match_rounds", (1, 2, 100), (0, 101)),
    ("match_target_score", (1, 200, 10_000), (0, 10_001)),
    ("players_min", (2, 3, 4), (0, 1)),
    ("players_max", (2, 3, 4), (5, 6)),
]


@pytest.mark.parametrize(("option", "good", "bad"), EDGES)
def test_a_number_has_a_range(option: str, good: tuple[int, ...], bad: tuple[int, ...]) -> None:
    for value in good:
        assert problems(with_number(option, value)) == ()
    for value in bad:
        expected = OptionProblem(Reason.OPTION_VALUE_INVALID, (option,), str(value))
        assert problems(with_number(option, value)) == (expected,)


def test_every_range_has_its_edges_tested() -> None:
    assert {option for option, _, _ in EDGES} == set(RANGES)


CONTRADICTIONS = [
    (replace(SABRA, players_min=4, players_max=3), ("players_min", "players_max"), "4"),
    (replace(SABRA, match_rounds=2), ("match_rounds", "match_end"), "2"),
    (
        replace(SABRA, match_rounds=2, match_end=MatchEnd.ROUNDS_PER_PLAYER),
        ("match_rounds", "match_end"),
        "2",
    ),
    (replace(SABRA, match_target_score=100), ("match_target_score", "match_end"), "100"),
    (
        replace(SABRA, match_target_score=100, match_end=MatchEnd.ROUNDS_PER_PLAYER),
        ("match_target_score", "match_end"),
        "100",
    ),
]


@pytest.mark.parametrize(("ruleset", "options", "value"), CONTRADICTIONS)
def test_options_that_contradict_each_other_are_both_named(
    ruleset: Ruleset, options: tuple[str, str], value: str
) -> None:
    assert problems(ruleset) == (OptionProblem(Reason.OPTIONS_CONFLICT, options, value),)


def test_every_conflict_is_tested() -> None:
    assert {options for _, options, _ in CONTRADICTIONS} == {(first, second) for first, second, _ in CONFLICTS}


def test_all_problems_are_found_in_the_order_of_the_options_and_conflicts_last() -> None:
    ruleset = replace(
        SABRA, match_rounds=0, players_min=5, joker_retrieval_mode=type(SABRA.joker_retrieval_mode).LOCKED
    )
    assert [(problem.reason, problem.options) for problem in problems(ruleset)] == [
        (Reason.OPTION_VALUE_INVALID, ("players_min",)),
        (Reason.VARIANT_NOT_SUPPORTED, ("joker_retrieval_mode",)),
        (Reason.OPTION_VALUE_INVALID, ("match_rounds",)),
        (Reason.OPTIONS_CONFLICT, ("players_min", "players_max")),
        (Reason.OPTIONS_CONFLICT, ("match_rounds", "match_end")),
    ]
