"""Options: what is known of each field of a ruleset or of a room's settings, beside its type.

A field made by `option` is a row: default, values, stage in the contract, what it needs of other options. Checks,
codec, storage, pages, random games and tests read the rows. Meaning and evidence are in the contract's comments.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cache
from typing import Any, Final, TypeVar, cast

from engine.violations import Reason

_T = TypeVar("_T")
_ROW: Final = "row"
_PER_SECOND: Final = {"seconds": 1, "ms": 1_000}
"""The last words of the names of lengths of time, with how many of the unit a second has."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the contract's ruleset.

    Attributes:
        name: The field of the ruleset that has the part.
        prefix: How the names of its options begin, which the fields of the part omit.
    """

    name: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Needs:
    """Options that contradict each other, or of which the first would mean nothing beside the second.

    Attributes:
        option: The second option.
        allowed: Its values beside the first option; a function computes them from the ruleset.
        of: The values of the first option that are meant; empty for all but its default.
    """

    option: str
    allowed: Sequence[object] | Callable[[Any], Sequence[object]]
    of: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """The row of an option: its range, stage and conflicts.

    Attributes:
        name: Its key in pages, records and stored games (`initial_meld_threshold`).
        default: Its default.
        values: Its values: the members of its enum, or the allowed numbers.
        stage: Its part of the contract's ruleset; None in the settings of a room, which have no parts.
        usual: The values from which random games draw.
        asks: The values under which the rules ask whether a play exists.
        needs: What its values need of other options.
    """

    name: str
    default: Any
    values: Sequence[Any]
    stage: Stage | None
    usual: Sequence[Any]
    asks: tuple[object, ...]
    needs: tuple[Needs, ...]

    @property
    def per_second(self) -> int | None:
        """How many of its unit a second has. In the contract it is a Duration. None if it is no length of time."""
        return _PER_SECOND.get(self.name.rpartition("_")[2])

    @property
    def path(self) -> tuple[str, ...]:
        """The names of its fields in the contract: `("initial_meld", "threshold")`, or `("turn_time_limit",)`."""
        name = self.name.rpartition("_")[0] if self.per_second else self.name
        return (self.stage.name, name.removeprefix(self.stage.prefix)) if self.stage else (name,)

    def parsed(self, text: str) -> object:
        """Returns the value that `text_of` shows as a text. Raises ValueError."""
        match self.default:
            case Enum() if text in type(self.default).__members__:
                return type(self.default)[text]
            case bool() if text in {"false", "true"}:
                return text == "true"
            case int() if not isinstance(self.default, bool) and re.fullmatch("[0-9]{1,9}", text):
                return int(text)
            case _:
                raise ValueError(f"{text!r} is not a value of {self.name}")


def option(  # noqa: PLR0913 - a row has so many columns
    default: _T,
    values: Sequence[_T] = (),
    *,
    stage: Stage | None = None,
    usual: Sequence[_T] = (),
    asks: tuple[_T, ...] = (),
    needs: tuple[Needs, ...] = (),
) -> _T:
    """Returns a dataclass field that is an option. Enums and booleans have all their values."""
    if isinstance(default, Enum | bool):
        values = cast("Sequence[_T]", tuple(type(default)) if isinstance(default, Enum) else (False, True))
    row = {"values": values, "stage": stage, "usual": usual or values, "asks": asks, "needs": needs}
    return field(default=default, metadata={_ROW: row})


@cache
def options_of(kind: type[Any]) -> Mapping[str, Option]:
    """Returns the options of a dataclass by name, in the order of its fields."""
    rows = {one.name: one.metadata[_ROW] for one in fields(kind) if _ROW in one.metadata}
    defaults = {one.name: one.default for one in fields(kind)}
    return {name: Option(name, defaults[name], **row) for name, row in rows.items()}


@dataclass(frozen=True, slots=True)
class TextForm:
    """How the text of a record has a part of a ruleset that is no option with a row.

    Attributes:
        formatted: Returns a value as one word.
        parsed: Returns the value of a word. Raises ValueError.
    """

    formatted: Callable[[Any], str]
    parsed: Callable[[str], object]


@dataclass(frozen=True, slots=True)
class PresetText:
    """The texts of a preset: a title and one line for menus, and the source of its rules."""

    title: str
    summary: str
    source: str


@dataclass(frozen=True, slots=True)
class OptionProblem:
    """A reason why a game cannot be played with its options.

    Attributes:
        reason: OPTION_VALUE_INVALID, OPTIONS_CONFLICT or INSUFFICIENT_TILES.
        options: The options concerned: one, or the two that conflict.
        value: The value of the first option, as text.
    """

    reason: Reason
    options: tuple[str, ...]
    value: str


def option_problems(chosen: object) -> Iterator[OptionProblem]:
    """Yields the values out of range, then the conflicts, both in the order of the options."""
    rows = options_of(type(chosen)).values()  # type: ignore[arg-type]
    for row in rows:
        value = getattr(chosen, row.name)
        if value not in row.values:
            yield OptionProblem(Reason.OPTION_VALUE_INVALID, (row.name,), text_of(value))
    for row in rows:
        value = getattr(chosen, row.name)
        for need in unmet_needs(row, chosen):
            yield OptionProblem(Reason.OPTIONS_CONFLICT, (row.name, need.option), text_of(value))


def unmet_needs(row: Option, chosen: object) -> Iterator[Needs]:
    """Yields what an option needs and does not have."""
    value = getattr(chosen, row.name)
    for need in row.needs:
        allowed = need.allowed(chosen) if callable(need.allowed) else need.allowed
        is_meant = value in need.of if need.of else value != row.default
        if is_meant and getattr(chosen, need.option) not in allowed:
            yield need


def text_of(value: object) -> str:
    """Returns a value as pages and records show it: `REDRAW`, `30`, `true`."""
    return value.name if isinstance(value, Enum) else str(value).lower()
