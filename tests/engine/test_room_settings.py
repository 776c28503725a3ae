"""The settings of a room: their values, conflicts, and places in the contract."""

from dataclasses import fields, replace

import pytest

from engine.melding.presets import PRESET_SETTINGS
from engine.melding.ruleset import OPTIONS, Preset
from engine.options import OptionProblem, option_problems
from engine.room_settings import DEFAULT_SETTINGS, SETTINGS, ClockFlag, RoomSettings
from engine.violations import Reason

CLOCK = replace(DEFAULT_SETTINGS, clock_total_seconds=1)
NUMBERS = [name for name, row in SETTINGS.items() if type(row.default) is int]


def test_every_setting_has_a_row_and_no_stage() -> None:
    assert {field.name for field in fields(RoomSettings)} == set(SETTINGS)
    assert not SETTINGS.keys() & OPTIONS.keys()
    assert all(row.default in row.values and set(row.usual) <= set(row.values) for row in SETTINGS.values())
    assert all(row.stage is None and len(row.path) == 1 for row in SETTINGS.values())
    limit, pause = SETTINGS["turn_time_limit_seconds"], SETTINGS["bot_pause_ms"]
    assert (limit.path, limit.per_second) == (("turn_time_limit",), 1)
    assert (pause.path, pause.per_second) == (("bot_pause",), 1_000)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_value_of_a_setting_can_be_chosen(name: str) -> None:
    row = SETTINGS[name]
    for value in row.values if len(row.values) < 10 else (row.values[0], row.values[-1]):
        chosen = replace(DEFAULT_SETTINGS if name == "clock_total_seconds" else CLOCK, **{name: value})
        assert tuple(option_problems(chosen)) == ()


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_next_to_its_range_is_named(name: str) -> None:
    for value in (SETTINGS[name].values[0] - 1, SETTINGS[name].values[-1] + 1):
        chosen = replace(DEFAULT_SETTINGS if name == "clock_total_seconds" else CLOCK, **{name: value})
        assert tuple(option_problems(chosen)) == (OptionProblem(Reason.OPTION_VALUE_INVALID, (name,), str(value)),)


@pytest.mark.parametrize(
    ("settings", "first", "value"),
    [
        (RoomSettings(clock_increment_seconds=10), "clock_increment_seconds", "10"),
        (RoomSettings(clock_flag=ClockFlag.TIME_OUT_EACH_TURN), "clock_flag", "TIME_OUT_EACH_TURN"),
    ],
)
def test_a_setting_of_clocks_without_a_clock_is_a_conflict(settings: RoomSettings, first: str, value: str) -> None:
    expected = OptionProblem(Reason.OPTIONS_CONFLICT, (first, "clock_total_seconds"), value)
    assert tuple(option_problems(settings)) == (expected,)


@pytest.mark.parametrize("preset", Preset)
def test_the_settings_of_a_preset_have_no_problems(preset: Preset) -> None:
    assert tuple(option_problems(PRESET_SETTINGS[preset])) == ()
