"""Rulesets and settings of rooms: the rows of options say where each is in the contract."""

import re
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from functools import lru_cache, reduce
from typing import Any, Final, TypeVar

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from engine.melding.presets import GAME_OPTIONS, chosen, chosen_options, chosen_settings, problems_of
from engine.melding.ruleset import OPTIONS, Preset, Ruleset
from engine.options import Option, OptionProblem
from engine.room_settings import SETTINGS, RoomSettings
from engine.unions import Ruleset as AnyRuleset
from engine.violations import Reason
from rummikub.v1 import room_settings_pb2, ruleset_pb2
from service.codec.fields import invalid
from service.errors import FieldFault, InvalidRequest

_STRANGERS: Final = room_settings_pb2.RoomSettings(
    start_by=room_settings_pb2.START_BY_FULL_OR_READY, abort_by=room_settings_pb2.ABORT_BY_ALL
)
"""The defaults of a game of strangers: no host decides alone."""
_CHOICES: Final = {
    enum.name: enum for file in (ruleset_pb2, room_settings_pb2) for enum in file.DESCRIPTOR.enum_types_by_name.values()
}
"""The contract's enums of options, by name."""


def ruleset(message: ruleset_pb2.MeldingRuleset, prefix: str = "") -> Ruleset:
    """Returns the ruleset of a request. Unset options have the values of its preset.

    Args:
        message: The ruleset.
        prefix: The path of the message that has the field `ruleset`, with a dot at the end, or "".
    """
    return _chosen(message, room_settings_pb2.RoomSettings(), "ruleset", prefix)[0]


def game_options(
    message: ruleset_pb2.Ruleset, settings: room_settings_pb2.RoomSettings, prefix: str = ""
) -> tuple[Ruleset, RoomSettings]:
    """Returns the ruleset of a game and the settings of its room. Unset ones have the values of its preset."""
    _check_known(message, f"{prefix}ruleset")
    return _chosen(message.melding, settings, "ruleset.melding", prefix)


def quick_play_options(
    message: ruleset_pb2.Ruleset, settings: room_settings_pb2.RoomSettings
) -> tuple[Ruleset, RoomSettings]:
    """Returns ruleset and settings of a game of strangers: unless it says otherwise, no host decides alone."""
    among_strangers = room_settings_pb2.RoomSettings()
    among_strangers.MergeFrom(_STRANGERS)
    among_strangers.MergeFrom(settings)
    return game_options(message, among_strangers)


def _chosen(
    message: ruleset_pb2.MeldingRuleset, settings: room_settings_pb2.RoomSettings, field: str, prefix: str
) -> tuple[Ruleset, RoomSettings]:
    data, room = (sent.SerializeToString(deterministic=True) for sent in (message, settings))
    try:
        return _options(data, room, field)
    except InvalidRequest as error:
        raise InvalidRequest(*(replace(fault, field=prefix + fault.field) for fault in error.fields)) from None


@lru_cache(maxsize=256)
def _options(data: bytes, room: bytes, field: str) -> tuple[Ruleset, RoomSettings]:
    message, settings = ruleset_pb2.MeldingRuleset.FromString(data), room_settings_pb2.RoomSettings.FromString(room)
    _check_known(message, field)
    for stage, options in message.ListFields():
        if stage.message_type:
            _check_known(options, f"{field}.{stage.name}")
    _check_known(settings, "settings")
    preset = Preset.SABRA
    if message.preset != ruleset_pb2.PRESET_UNSPECIFIED:
        preset = _option_value(Preset, f"{field}.preset", message.preset)
    sent = ((row, _value(row, message if row.stage else settings, _place(row, field))) for row in GAME_OPTIONS.values())
    rules, room_settings = chosen(preset, {row.name: value for row, value in sent if value is not None})
    _check_problems(problems_of(rules, room_settings), field)
    return rules, room_settings


def _check_known(sent: Message, field: str) -> None:
    """Raises InvalidRequest if a message has fields that this server does not know."""
    unknown = UnknownFieldSet(sent)
    if len(unknown):
        numbers = ", ".join(str(unknown[place].field_number) for place in range(len(unknown)))
        raise invalid(field, f"this server has no option with field number {numbers}", "OPTION_UNKNOWN")


def _place(row: Option, field: str) -> str:
    """Returns the path of an option in a request, where `field` is that of the ruleset."""
    return ".".join((field if row.stage else "settings", *row.path))


def _part(row: Option, message: Message) -> Any:  # noqa: ANN401 - each stage of a ruleset has a type of its own
    """Returns the message that has an option: a stage of a ruleset, or the settings of a room."""
    return reduce(getattr, row.path[:-1], message)


def _value(row: Option, message: Message, place: str) -> object:
    """Returns the value of an option; None if it is not set."""
    sent, name = _part(row, message), row.path[-1]
    if isinstance(row.default, Enum):
        number = getattr(sent, name)
        return _option_value(type(row.default), place, number) if number else None
    if not sent.HasField(name):
        return None
    if not row.is_duration:
        return getattr(sent, name)
    duration = getattr(sent, name)
    if duration.nanos:
        raise invalid(place, "expected whole seconds", "OPTION_VALUE_INVALID")
    return duration.seconds


_E = TypeVar("_E", bound=Enum)


def _option_value(enum: type[_E], field: str, number: int) -> _E:
    """Returns the engine's enum member of the same name."""
    value = _CHOICES[enum.__name__].values_by_number.get(number)
    if value is None:
        raise invalid(field, f"this server has no value {number} of {enum.__name__}", "OPTION_UNKNOWN")
    return enum[value.name.removeprefix(_prefix(enum))]


@lru_cache(maxsize=64)
def _prefix(enum: type[Enum]) -> str:
    """Returns the prefix of the contract's enum values: `TURN_DRAW_` for TurnDraw."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", enum.__name__).upper() + "_"


def _check_problems(found: Iterable[OptionProblem], field: str) -> None:
    """Raises InvalidRequest with a field violation for each option of each problem."""
    faults = [
        FieldFault(_place(GAME_OPTIONS[option], field), _problem_text(problem), problem.reason.name)
        for problem in found
        for option in problem.options
    ]
    if faults:
        raise InvalidRequest(*faults)


def _problem_text(problem: OptionProblem) -> str:
    match problem.reason:
        case Reason.OPTIONS_CONFLICT:
            return f"{problem.options[0]} {problem.value} contradicts {problem.options[1]}"
        case Reason.INSUFFICIENT_TILES:
            return f"{problem.value} tiles for each player leave none for the pool"
        case _:
            return _range_text(problem)


def _range_text(problem: OptionProblem) -> str:
    numbers = GAME_OPTIONS[problem.options[0]].values
    expected = f"{numbers[0]} to {numbers[-1]}" if isinstance(numbers, range) else " or ".join(map(str, numbers))
    return f"{problem.value} is out of range: expected {expected}"


def preset_filter(number: int) -> Preset | None:
    """Returns the preset of games to list; None if unset."""
    if number == ruleset_pb2.PRESET_UNSPECIFIED:
        return None
    value = ruleset_pb2.DESCRIPTOR.enum_types_by_name["Preset"].values_by_number.get(number)
    if value is None:
        raise invalid("preset", f"{number} is not a preset of this server")
    return Preset[value.name.removeprefix(_prefix(Preset))]


@lru_cache(maxsize=256)
def encode_ruleset(rules: Ruleset) -> ruleset_pb2.MeldingRuleset:
    """Returns a ruleset with every option set."""
    return _encoded_ruleset(rules, OPTIONS)


def encode_game_ruleset(rules: AnyRuleset) -> ruleset_pb2.Ruleset:
    """Returns the ruleset of a game with every option set. Raises TypeError for a family that the contract lacks."""
    if not isinstance(rules, Ruleset):
        raise TypeError(f"the contract has no ruleset like {type(rules)}")
    return ruleset_pb2.Ruleset(melding=encode_ruleset(rules))


@lru_cache(maxsize=256)
def encode_settings(settings: RoomSettings) -> room_settings_pb2.RoomSettings:
    """Returns the settings of a room, all of them set."""
    return _encoded_settings(settings, SETTINGS)


@lru_cache(maxsize=256)
def encode_difference(
    rules: Ruleset, settings: RoomSettings
) -> tuple[ruleset_pb2.Ruleset, room_settings_pb2.RoomSettings]:
    """Returns ruleset and settings with the preset and the options that differ from those that follow from it."""
    melding = _encoded_ruleset(rules, chosen_options(rules))
    return ruleset_pb2.Ruleset(melding=melding), _encoded_settings(settings, chosen_settings(rules.preset, settings))


def _encoded_ruleset(rules: Ruleset, names: Iterable[str]) -> ruleset_pb2.MeldingRuleset:
    message = ruleset_pb2.MeldingRuleset(preset=ruleset_pb2.Preset.Value(_prefix(Preset) + rules.preset.name))
    _set_options(message, rules, names)
    return message


def _encoded_settings(settings: RoomSettings, names: Iterable[str]) -> room_settings_pb2.RoomSettings:
    message = room_settings_pb2.RoomSettings()
    _set_options(message, settings, names)
    return message


def _set_options(message: Message, options: Ruleset | RoomSettings, names: Iterable[str]) -> None:
    for row in map(GAME_OPTIONS.__getitem__, names):
        part, name, value = _part(row, message), row.path[-1], getattr(options, row.name)
        if row.is_duration:
            getattr(part, name).FromSeconds(value)
        elif isinstance(value, Enum):
            choices = _CHOICES[type(value).__name__]
            setattr(part, name, choices.values_by_name[_prefix(type(value)) + value.name].number)
        else:
            setattr(part, name, value)
