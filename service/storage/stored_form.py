"""The stored form of values, derived from their types: games, events and drafts need no code of their own here.

A dataclass is stored as the list of its fields. In a union it is an object with `type` and its fields by name, as
the few of NAMED are. All fields are always there, so a missing one is detected. An enum is stored by its name. What
is large, or the same in many games, has a form of its own (stored_values.py).

The functions of a dataclass are compiled from text, as the standard library does for __init__: a call for each field
would take twice as long.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import orjson

from engine.game import Game, RoundResult
from engine.identity_cache import IdentityCache
from engine.melding.grid.cells import Grid
from engine.melding.melds import Meld
from engine.melding.round import ShownPlay
from engine.room_settings import RoomSettings
from engine.tiles import Tile
from engine.unions import Draft, Round, Ruleset
from service.errors import StoredFormatUnknown
from service.model.record import Listing, Record, SeatToken
from service.storage.stored_values import (
    LARGEST,
    LATEST_MS,
    dump,
    read_flag,
    read_grid,
    read_ruleset,
    read_settings,
    read_table,
    read_text,
    read_tile,
    read_tiles,
    write_grid,
    write_options,
    write_table,
    write_tiles,
)

NAMED: Final = frozenset({Record, Game, ShownPlay, RoundResult, Draft})
"""Dataclasses that are stored with the names of their fields."""
ROUNDS: Final[tuple[Any, ...]] = get_args(Round) or (Round,)
"""The rounds of each family, which are stored with their type even while there is only one."""
SHARED: Final[frozenset[Any]] = frozenset({RoundResult, Listing, tuple[SeatToken, ...]})
"""Types whose values stay the same objects over many changes. Their stored forms are cached."""
CACHED: Final = 4_096
"""Most stored forms of a type of SHARED that are cached."""


@dataclass(frozen=True, slots=True)
class Form:
    """How values of a type are stored. `read` raises any error that `reading` knows.

    Attributes:
        write: Returns what orjson serializes.
        read: Returns a value from decoded JSON.
        expression: What `write` returns for a `{value}`, as text that may use `{inner}`.
        inner: What that stands for; None: `write`.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    expression: str = "{inner}({value})"
    inner: object = None


_ITSELF: Final = "{value}"
"""The expression of what orjson serializes as it is."""


def _plain(read: Callable[[Any], Any]) -> Form:
    return Form(lambda value: value, read, _ITSELF)


def _read_bytes(stored: str) -> bytes:
    return bytes.fromhex(stored)


def _between(least: int, most: int) -> Form:
    def read(stored: object) -> int:
        if type(stored) is not int or not least <= stored <= most:
            raise StoredFormatUnknown
        return stored

    return _plain(read)


_FORMS: Final[dict[Any, Form]] = {
    bool: _plain(read_flag),
    str: _plain(read_text),
    bytes: Form(bytes.hex, _read_bytes),
    Tile: _plain(read_tile),
    tuple[Tile, ...]: Form(write_tiles, read_tiles, "bytes({value}).hex()"),
    tuple[Meld, ...]: Form(write_table, read_table),
    Grid: Form(write_grid, read_grid),
    Ruleset: Form(write_options, read_ruleset),
    RoomSettings: Form(write_options, read_settings),
}
"""Forms that do not follow from a type's structure."""


@cache
def form_of(kind: Any, name: str = "") -> Form:  # noqa: ANN401 - any type
    """Returns the stored form of a type; `name` is that of a field, which tells times and points from other numbers."""
    form = _FORMS.get(kind) or (_tagged(ROUNDS) if kind is Round else _structural_form(kind, name))
    return _shared(form) if kind in SHARED else form


def _structural_form(kind: Any, name: str) -> Form:  # noqa: ANN401 - any type
    if kind is int:
        return _number(name)
    if get_origin(kind) in {Union, UnionType}:
        return _union(get_args(kind), name)
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind), name)
    if issubclass(kind, Enum):
        return Form(attrgetter("name"), kind.__getitem__)
    if isinstance(kind, type) and is_dataclass(kind):
        return _named(kind) if kind in NAMED else _listed(kind)
    raise TypeError(f"{kind} has no stored form")


def _number(name: str) -> Form:
    if name.endswith("_ms"):
        return _between(0, LATEST_MS)
    return _between(-LARGEST if name.endswith("points") else 0, LARGEST)


def _shared(form: Form) -> Form:
    """Returns a form whose stored values are cached by identity."""
    return Form(IdentityCache(lambda value: orjson.Fragment(dump(form.write(value))), CACHED), form.read)


def _tuple(items: tuple[Any, ...], name: str) -> Form:
    if items[-1] is not Ellipsis:
        return _fixed_tuple(items)
    item = form_of(items[0], name)
    read = _each(item.read)
    if item.expression == _ITSELF:
        return _plain(read)
    if isinstance(item.write, IdentityCache):
        return Form(item.write.map, read)
    write = item.write
    return Form(lambda values: list(map(write, values)), read, "list(map({inner}, {value}))", write)


def _each(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def read_each(stored: object) -> tuple[Any, ...]:
        if type(stored) is not list:
            raise StoredFormatUnknown
        return tuple([read(item) for item in stored])

    return read_each


def _fixed_tuple(items: tuple[Any, ...]) -> Form:
    """Returns the form of a tuple of a certain length, whose items are of one type."""
    whole = form_of(tuple.__class_getitem__((items[0], ...)))

    def read(stored: object) -> tuple[Any, ...]:
        found: tuple[Any, ...] = whole.read(stored)
        if len(found) != len(items):
            raise StoredFormatUnknown
        return found

    return Form(whole.write, read, whole.expression, whole.inner)


def _union(kinds: tuple[Any, ...], name: str) -> Form:
    """Returns the form of an optional value, or of one of several dataclasses, which is stored with its `type`."""
    present = tuple(kind for kind in kinds if kind is not NoneType)
    if Grid in present:
        form = _table(form_of(present[0], name), form_of(Grid))
    else:
        form = form_of(present[0], name) if len(present) == 1 else _tagged(present)
    if len(present) == len(kinds):
        return form

    def read(stored: object) -> object:
        return None if stored is None else form.read(stored)

    if form.expression == _ITSELF:
        return _plain(read)
    return Form(
        lambda value: None if value is None else form.write(value),
        read,
        f"(None if {{value}} is None else {form.expression})",
        form.inner or form.write,
    )


def _table(melds: Form, grid: Form) -> Form:
    """Returns the form of a table of either layout: a list of melds, or an object with the text of a grid."""
    return Form(
        lambda value: {"grid": grid.write(value)} if isinstance(value, Grid) else melds.write(value),
        lambda stored: grid.read(stored["grid"]) if isinstance(stored, dict) else melds.read(stored),
    )


def _tagged(kinds: tuple[type, ...]) -> Form:
    forms = {kind: _named(kind, f'"type": "{kind.__name__}", ') for kind in kinds}
    writes = {kind: form.write for kind, form in forms.items()}
    reads = {kind.__name__: form.read for kind, form in forms.items()}
    return Form(
        lambda value: writes[type(value)](value),
        lambda stored: reads[stored["type"]](stored),
        "{inner}[type({value})]({value})",
        writes,
    )


def _named(kind: type, tag: str = "") -> Form:
    """Returns the form of a dataclass as an object."""
    texts = _writes(kind)
    parts = ", ".join(f'read_{name}(stored["{name}"])' for name in texts)
    write = ", ".join(f'"{name}": {text}' for name, text in texts.items())
    return _compiled(kind, f"{{{tag}{write}}}", f"return Kind({parts})")


def _listed(kind: type) -> Form:
    """Returns the form of a dataclass as a list."""
    texts = _writes(kind)
    parts = ", ".join(f"read_{name}(at_{name})" for name in texts)
    read = f"""
        if type(stored) is not list:
            raise StoredFormatUnknown
        {", ".join(f"at_{name}" for name in texts)}, = stored
        return Kind({parts})"""
    return _compiled(kind, f"[{', '.join(texts.values())}]", read)


def _compiled(kind: type, write: str, read: str) -> Form:
    """Returns a form from an expression of `value`, and statements that read `stored`."""
    forms = _forms_in(kind)
    names: dict[str, Any] = {"Kind": kind, "StoredFormatUnknown": StoredFormatUnknown}
    names |= {f"write_{name}": form.inner or form.write for name, form in forms.items()}
    names |= {f"read_{name}": form.read for name, form in forms.items()}
    text = f"def write(value):\n    return {write}\n\ndef read(stored):\n        {read.strip()}\n"
    exec(text, names)  # noqa: S102 - the text has names of fields only
    return Form(names["write"], names["read"])


def _writes(kind: type) -> dict[str, str]:
    """Returns an expression for each field of a dataclass that writes it."""
    forms = _forms_in(kind)
    return {name: form.expression.format(value=f"value.{name}", inner=f"write_{name}") for name, form in forms.items()}


def _forms_in(kind: type) -> dict[str, Form]:
    """Returns the forms of a dataclass's fields."""
    kinds = get_type_hints(kind)
    return {part.name: form_of(kinds[part.name], part.name) for part in fields(kind)}
