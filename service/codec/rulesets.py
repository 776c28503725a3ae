"""Rulesets and settings of rooms: the rows of options say where each is in the contract.

A family of games has a member of the contract's Ruleset, and a row in _FAMILIES.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache, reduce
from typing import Any, Final, TypeVar, cast

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from engine.discard.ruleset import Preset as DiscardPreset
from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.family import Presets, presets_of, presets_with
from engine.melding.ruleset import Preset, Ruleset
from engine.options import Option, OptionProblem
from engine.room_settings import SETTINGS, RoomSettings
from engine.unions import Preset as AnyPreset
from engine.unions import Ruleset as AnyRuleset
from engine.violations import Reason
from rummikub.v1 import room_settings_pb2, ruleset_pb2
from service.codec.fields import invalid
from service.codec.named_hands import encode_named_hands, named_hands
from service.errors import FieldFault, InvalidRequest

_PUBLIC: Final = room_settings_pb2.RoomSettings(fair_deal=room_settings_pb2.FAIR_DEAL_COMMITTED)
"""The defaults of a public game: strangers need not trust the server."""
_STRANGERS: Final = room_settings_pb2.RoomSettings(
    start_by=room_settings_pb2.START_BY_FULL_OR_READY,
    abort_by=room_settings_pb2.ABORT_BY_ALL,
    fair_deal=room_settings_pb2.FAIR_DEAL_COMMITTED,
)
"""The defaults of a game of strangers: no host decides alone."""


@dataclass(frozen=True, slots=True)
class _Family:
    """How the contract has the rulesets of a family.

    Attributes:
        member: The member of the contract's Ruleset.
        message: Its message.
        preset: The preset of a ruleset that names none.
    """

    member: str
    message: type[ruleset_pb2.MeldingRuleset | ruleset_pb2.DiscardRuleset]
    preset: AnyPreset

    @property
    def presets(self) -> Presets:
        """The presets of the family."""
        presets = presets_with(self.preset.name)
        assert presets is not None, "a family has its presets"  # noqa: S101 - for the type
        return presets


_FAMILIES: Final[dict[type[AnyRuleset], _Family]] = {
    Ruleset: _Family("melding", ruleset_pb2.MeldingRuleset, Preset.SABRA),
    DiscardRuleset: _Family("discard", ruleset_pb2.DiscardRuleset, DiscardPreset.OKEY),
}
_MEMBERS: Final = {family.member: kind for kind, family in _FAMILIES.items()}
_SECOND_NANOS: Final = 1_000_000_000
_HANDS: Final = "hands"
"""The part of a ruleset of a game of discards that is no option with a row."""
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
    return cast("Ruleset", _chosen(Ruleset, message, room_settings_pb2.RoomSettings(), "ruleset", prefix)[0])


def discard_ruleset(message: ruleset_pb2.DiscardRuleset) -> DiscardRuleset:
    """Returns the ruleset of a request about a game of discards, like `ruleset`."""
    chosen = _chosen(DiscardRuleset, message, room_settings_pb2.RoomSettings(), "ruleset", "")
    return cast("DiscardRuleset", chosen[0])


def game_options(
    message: ruleset_pb2.Ruleset, settings: room_settings_pb2.RoomSettings, prefix: str = ""
) -> tuple[AnyRuleset, RoomSettings]:
    """Returns the ruleset of a game and the settings of its room. Unset ones have the values of its preset."""
    _check_known(message, f"{prefix}ruleset")
    member = message.WhichOneof("game") or "melding"
    return _chosen(_MEMBERS[member], getattr(message, member), settings, f"ruleset.{member}", prefix)


def quick_play_options(
    message: ruleset_pb2.Ruleset, settings: room_settings_pb2.RoomSettings
) -> tuple[AnyRuleset, RoomSettings]:
    """Returns ruleset and settings of a game of strangers: unless it says otherwise, no host decides alone."""
    return game_options(message, _with_defaults(settings, _STRANGERS))


def public_options(
    message: ruleset_pb2.Ruleset, settings: room_settings_pb2.RoomSettings
) -> tuple[AnyRuleset, RoomSettings]:
    """Returns ruleset and settings of a public game."""
    return game_options(message, _with_defaults(settings, _PUBLIC))


def _with_defaults(
    settings: room_settings_pb2.RoomSettings, defaults: room_settings_pb2.RoomSettings
) -> room_settings_pb2.RoomSettings:
    """Returns settings, with other defaults of some."""
    filled = room_settings_pb2.RoomSettings()
    filled.MergeFrom(defaults)
    filled.MergeFrom(settings)
    return filled


def _chosen(
    kind: type[AnyRuleset], message: Message, settings: room_settings_pb2.RoomSettings, field: str, prefix: str
) -> tuple[AnyRuleset, RoomSettings]:
    data, room = (sent.SerializeToString(deterministic=True) for sent in (message, settings))
    try:
        return _options(_FAMILIES[kind].member, data, room, field)
    except InvalidRequest as error:
        raise InvalidRequest(*(replace(fault, field=prefix + fault.field) for fault in error.fields)) from None


@lru_cache(maxsize=256)
def _options(member: str, data: bytes, room: bytes, field: str) -> tuple[AnyRuleset, RoomSettings]:
    family = _FAMILIES[_MEMBERS[member]]
    message, settings = family.message.FromString(data), room_settings_pb2.RoomSettings.FromString(room)
    _check_known(message, field)
    hands = message.hands if isinstance(message, ruleset_pb2.DiscardRuleset) else ()
    for stage, options in message.ListFields():
        if stage.message_type and stage.name != _HANDS:
            _check_known(options, f"{field}.{stage.name}")
    for place, hand in enumerate(hands):
        _check_known(hand, f"{field}.{_HANDS}[{place}]")
    _check_known(settings, "settings")
    preset, rows = family.preset, family.presets.GAME_OPTIONS
    if message.preset != ruleset_pb2.PRESET_UNSPECIFIED:
        preset = _option_value(type(preset), f"{field}.preset", message.preset)
    sent = ((row, _value(row, message if row.stage else settings, _place(row, field))) for row in rows.values())
    options = {row.name: value for row, value in sent if value is not None}
    if hands:
        options[_HANDS] = named_hands(hands, f"{field}.{_HANDS}")
    chosen = family.presets.chosen(preset, options)
    _check_problems(family.presets.problems_of(*chosen), rows, field)
    return chosen


def _check_known(sent: Message, field: str) -> None:
    """Raises InvalidRequest if a message has fields that this server does not know."""
    unknown = UnknownFieldSet(sent)
    if len(unknown):
        numbers = ", ".join(str(unknown[place].field_number) for place in range(len(unknown)))
        raise invalid(field, f"this server has no option with field number {numbers}", "OPTION_UNKNOWN")


def _place_of(option: str, rows: Mapping[str, Option], field: str) -> str:
    return f"{field}.{_HANDS}" if option == _HANDS else _place(rows[option], field)


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
    if row.per_second is None:
        return getattr(sent, name)
    duration, unit = getattr(sent, name), _SECOND_NANOS // row.per_second
    if duration.nanos % unit:
        units = "seconds" if row.per_second == 1 else "milliseconds"
        raise invalid(place, f"expected whole {units}", "OPTION_VALUE_INVALID")
    return duration.seconds * row.per_second + duration.nanos // unit


_E = TypeVar("_E", bound=Enum)


def _option_value(enum: type[_E], field: str, number: int) -> _E:
    """Returns the engine's enum member of the same name."""
    value = _CHOICES[enum.__name__].values_by_number.get(number)
    name = value.name.removeprefix(_prefix(enum)) if value else ""
    if name not in enum.__members__:
        raise invalid(field, f"there is no value {number} of {enum.__name__} here", "OPTION_UNKNOWN")
    return enum[name]


@lru_cache(maxsize=64)
def _prefix(enum: type[Enum]) -> str:
    """Returns the prefix of the contract's enum values: `TURN_DRAW_` for TurnDraw."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", enum.__name__).upper() + "_"


def _check_problems(found: Iterable[OptionProblem], rows: Mapping[str, Option], field: str) -> None:
    """Raises InvalidRequest with a field violation for each option of each problem."""
    faults = [
        FieldFault(_place_of(option, rows, field), _problem_text(problem, rows), problem.reason.name)
        for problem in found
        for option in problem.options
    ]
    if faults:
        raise InvalidRequest(*faults)


def _problem_text(problem: OptionProblem, rows: Mapping[str, Option]) -> str:
    match problem.reason:
        case Reason.OPTIONS_CONFLICT:
            return f"{problem.options[0]} {problem.value} contradicts {problem.options[1]}"
        case Reason.INSUFFICIENT_TILES:
            return f"{problem.value} tiles for each player leave none for the pool"
        case _:
            return _range_text(problem, rows[problem.options[0]].values)


def _range_text(problem: OptionProblem, numbers: Sequence[Any]) -> str:
    expected = f"{numbers[0]} to {numbers[-1]}" if isinstance(numbers, range) else " or ".join(map(str, numbers))
    return f"{problem.value} is out of range: expected {expected}"


def preset_filter(number: int) -> AnyPreset | None:
    """Returns the preset of games to list; None if unset."""
    if number == ruleset_pb2.PRESET_UNSPECIFIED:
        return None
    value = ruleset_pb2.DESCRIPTOR.enum_types_by_name["Preset"].values_by_number.get(number)
    if value is None:
        raise invalid("preset", f"{number} is not a preset of this server")
    name = value.name.removeprefix(_prefix(Preset))
    return next(type(family.preset)[name] for family in _FAMILIES.values() if family.presets.preset_named(name))


@lru_cache(maxsize=256)
def encode_ruleset(rules: AnyRuleset) -> ruleset_pb2.Ruleset:
    """Returns a ruleset with every option set."""
    has_hands = isinstance(rules, DiscardRuleset) and rules.concealed_wins
    return _encoded_ruleset(rules, (*presets_of(rules).GAME_OPTIONS, *((_HANDS,) if has_hands else ())))


@lru_cache(maxsize=256)
def encode_settings(settings: RoomSettings) -> room_settings_pb2.RoomSettings:
    """Returns the settings of a room, all of them set."""
    return _encoded_settings(settings, SETTINGS)


@lru_cache(maxsize=256)
def encode_difference(
    rules: AnyRuleset, settings: RoomSettings
) -> tuple[ruleset_pb2.Ruleset, room_settings_pb2.RoomSettings]:
    """Returns ruleset and settings with the preset and the options that differ from those that follow from it."""
    stated = presets_of(rules).stated(rules, settings)
    return _encoded_ruleset(rules, stated), _encoded_settings(settings, stated)


def _encoded_ruleset(rules: AnyRuleset, names: Collection[str]) -> ruleset_pb2.Ruleset:
    """Returns the preset of a ruleset and those of some options that are options of rules."""
    family, rows = _FAMILIES[type(rules)], presets_of(rules).GAME_OPTIONS
    message = family.message(preset=ruleset_pb2.Preset.Value(_prefix(Preset) + rules.preset.name))
    _set_options(message, rules, (rows[name] for name in names if name in rows and rows[name].stage))
    if isinstance(rules, DiscardRuleset) and isinstance(message, ruleset_pb2.DiscardRuleset) and _HANDS in names:
        message.hands.extend(encode_named_hands(rules.hands))
    return ruleset_pb2.Ruleset(**{family.member: message})  # type: ignore[arg-type]


def _encoded_settings(settings: RoomSettings, names: Iterable[str]) -> room_settings_pb2.RoomSettings:
    message = room_settings_pb2.RoomSettings()
    _set_options(message, settings, (SETTINGS[name] for name in names if name in SETTINGS))
    return message


def _set_options(message: Message, options: AnyRuleset | RoomSettings, rows: Iterable[Option]) -> None:
    for row in rows:
        part, name, value = _part(row, message), row.path[-1], getattr(options, row.name)
        if row.per_second:
            getattr(part, name).FromNanoseconds(value * (_SECOND_NANOS // row.per_second))
        elif isinstance(value, Enum):
            choices = _CHOICES[type(value).__name__]
            setattr(part, name, choices.values_by_name[_prefix(type(value)) + value.name].number)
        else:
            setattr(part, name, value)
