"""Rulesets: their options by name, the same in contract and engine."""

import re
from collections.abc import Iterable
from dataclasses import fields, replace
from enum import Enum
from functools import lru_cache
from typing import Final, TypeVar

from google.protobuf.unknown_fields import UnknownFieldSet

from engine.melding.presets import PRESETS, chosen_options
from engine.melding.ruleset import OPTIONS, Preset, Ruleset, problems, with_options
from engine.options import OptionProblem
from engine.violations import Reason
from rummikub.v1 import ruleset_pb2
from service.codec.fields import invalid
from service.errors import FieldFault, InvalidRequest

_DEFAULTS: Final = Ruleset()


def ruleset(message: ruleset_pb2.Ruleset, prefix: str = "") -> Ruleset:
    """Returns the ruleset of a request. Unset options have the values of its preset.

    Args:
        message: The ruleset.
        prefix: The path of the message that has the field `ruleset`, with a dot at the end, or "".
    """
    try:
        return _ruleset(message.SerializeToString(deterministic=True))
    except InvalidRequest as error:
        raise InvalidRequest(*(replace(fault, field=prefix + fault.field) for fault in error.fields)) from None


def quick_play_ruleset(message: ruleset_pb2.Ruleset) -> Ruleset:
    """Returns the ruleset of a game of strangers: if start_by and abort_by are unset, no host decides alone."""
    among_strangers = ruleset_pb2.Ruleset(
        start_by=ruleset_pb2.START_BY_FULL_OR_READY, abort_by=ruleset_pb2.ABORT_BY_ALL
    )
    among_strangers.MergeFrom(message)
    return ruleset(among_strangers)


@lru_cache(maxsize=256)
def _ruleset(data: bytes) -> Ruleset:
    message = ruleset_pb2.Ruleset.FromString(data)
    unknown = UnknownFieldSet(message)
    if len(unknown):
        numbers = ", ".join(str(unknown[place].field_number) for place in range(len(unknown)))
        raise invalid("ruleset", f"this server has no option with field number {numbers}", "OPTION_UNKNOWN")
    preset = Preset.SABRA
    if message.preset != ruleset_pb2.PRESET_UNSPECIFIED:
        preset = _option_value(Preset, "preset", message.preset)
    rules = with_options(PRESETS[preset], {"preset": preset, **_chosen(message)})
    _check_problems(rules)
    return rules


def _chosen(message: ruleset_pb2.Ruleset) -> dict[str, object]:
    """Returns the options that are set."""
    chosen: dict[str, object] = {}
    for option in (field.name for field in fields(Ruleset) if field.name != "preset"):
        value, default = getattr(message, option), getattr(_DEFAULTS, option)
        if isinstance(default, Enum):
            if value:
                chosen[option] = _option_value(type(default), option, value)
        elif message.HasField(option):  # type: ignore[arg-type]
            chosen[option] = value
    return chosen


_E = TypeVar("_E", bound=Enum)


def _option_value(enum: type[_E], option: str, number: int) -> _E:
    """Returns the engine's enum member of the same name."""
    descriptor = ruleset_pb2.DESCRIPTOR.enum_types_by_name[enum.__name__]
    value = descriptor.values_by_number.get(number)
    if value is None:
        field = "ruleset." + option
        raise invalid(field, f"this server has no value {number} of {enum.__name__}", "OPTION_UNKNOWN")
    return enum[value.name.removeprefix(_prefix(enum))]


@lru_cache(maxsize=64)
def _prefix(enum: type[Enum]) -> str:
    """Returns the prefix of the contract's enum values: `TURN_DRAW_` for TurnDraw."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", enum.__name__).upper() + "_"


def _check_problems(rules: Ruleset) -> None:
    """Raises InvalidRequest with a field violation for each option of each problem."""
    faults = [
        FieldFault(f"ruleset.{option}", _problem_text(problem), problem.reason.name)
        for problem in problems(rules)
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
    numbers = OPTIONS[problem.options[0]].values
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
def encode_ruleset(rules: Ruleset) -> ruleset_pb2.Ruleset:
    """Returns a ruleset with every option set."""
    return _encode(rules, [field.name for field in fields(rules)])


@lru_cache(maxsize=256)
def encode_difference(rules: Ruleset) -> ruleset_pb2.Ruleset:
    """Returns a ruleset with its preset and the options that differ from those that follow from it."""
    return _encode(rules, ["preset", *chosen_options(rules)])


def _encode(rules: Ruleset, options: Iterable[str]) -> ruleset_pb2.Ruleset:
    message = ruleset_pb2.Ruleset()
    for option in options:
        value = getattr(rules, option)
        if isinstance(value, Enum):
            descriptor = ruleset_pb2.DESCRIPTOR.enum_types_by_name[type(value).__name__]
            value = descriptor.values_by_name[_prefix(type(value)) + value.name].number
        setattr(message, option, value)
    return message
