"""Reads melds with the special jokers of Twist, or gives the reason why they are none (W-1 to W-10).

Tiles are read as places. A double joker covers two places and is read like two jokers; a color change covers one; a
mirror covers none. If a meld has a mirror, its second half, read backwards, is laid over its first half, and the result
is read as one half of a run or group.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Final, TypeAlias

from engine.melding.meld_shapes import (
    Meld,
    MeldKind,
    NotAMeld,
    ProposedMeld,
    as_group,
    naturals_of,
    neither_reason,
    run_reason,
)
from engine.melding.ruleset import Ruleset, TwistColorChangeAtEnd
from engine.melding.run_shape import run_shape
from engine.tiles import (
    COLOR_CHANGE,
    COLORS,
    DOUBLE_JOKER,
    JOKER,
    MAX_VALUE,
    MIRROR,
    Color,
    Tile,
    color_of,
    tile,
    value_of,
)
from engine.violations import Reason

Roles: TypeAlias = tuple[tuple[Tile, ...], ...]
"""For each place, the faces that it may stand for."""

_WILD: Final = frozenset({JOKER, COLOR_CHANGE})


def read_with_special_jokers(proposed: ProposedMeld, ruleset: Ruleset) -> Meld | NotAMeld:
    """Returns tiles read as a meld: as a run or, if they form none, as a group.

    The tiles are at least three tiles of the game, one of them numbered.
    """
    tiles = proposed.tiles
    line = _line_of(tiles, ruleset)
    meld = line if isinstance(line, Reason) else _shape(tiles, line, proposed.kind, ruleset)
    if isinstance(meld, Meld) and proposed.declared and not _is_possible(proposed.declared, meld):
        meld = Reason.JOKER_DECLARATION_MISMATCH
    return meld if isinstance(meld, Meld) else NotAMeld(tiles, (meld,))


def _is_possible(declared: tuple[Tile, ...], meld: Meld) -> bool:
    """Returns whether declared faces are possible: one for each place of a joker. Those of a mirror may be equal."""
    return len(declared) == len(meld.joker_faces) and all(
        face in faces for face, faces in zip(declared, meld.joker_faces, strict=True)
    )


# Places


def _places(tiles: tuple[Tile, ...]) -> tuple[Tile, ...]:
    """Returns numbered tiles, jokers and color changes by place."""
    return tuple(chain.from_iterable((JOKER, JOKER) if t == DOUBLE_JOKER else (t,) for t in tiles if t != MIRROR))


def _line_of(tiles: tuple[Tile, ...], ruleset: Ruleset) -> tuple[Tile, ...] | Reason:
    """Returns the places of a meld without a mirror, or of one half of a meld with one (W-8, twist_mirror_half_min)."""
    if MIRROR not in tiles:
        return _places(tiles)
    middle = tiles.index(MIRROR)
    first, second = tiles[:middle], tiles[:middle:-1]
    if MIRROR in second:
        return Reason.JOKERS_TOO_MANY
    if min(len(first), len(second)) < ruleset.twist_mirror_half_min:
        return Reason.MIRROR_HALF_TOO_SHORT
    one, other = _places(first), _places(second)
    if len(one) != len(other) or not all(map(_are_alike, one, other)):
        return Reason.MIRROR_NOT_SYMMETRIC
    return tuple(b if a == JOKER else a for a, b in zip(one, other, strict=True))


def _are_alike(one: Tile, other: Tile) -> bool:
    """Returns whether two places can have the same role. That of a color change is no face (W-2)."""
    return one == other or (JOKER in {one, other} and COLOR_CHANGE not in {one, other})


# Shapes


def _shape(tiles: tuple[Tile, ...], line: tuple[Tile, ...], kind: MeldKind | None, ruleset: Ruleset) -> Meld | Reason:
    """Returns the meld of the stated or the first fitting kind, or why there is none."""
    run, group = _run_roles(line, ruleset), _group_roles(line, ruleset)
    if not isinstance(run, Reason) and kind is not MeldKind.GROUP:
        return _meld(tiles, MeldKind.RUN, run)
    if not isinstance(group, Reason) and kind is not MeldKind.RUN:
        return _meld(tiles, MeldKind.GROUP, group)
    if not isinstance(run, Reason) or not isinstance(group, Reason):
        return Reason.MELD_KIND_MISMATCH
    if kind is not None:
        return run if kind is MeldKind.RUN else group
    plain = _plain(line)
    return neither_reason(plain, naturals_of(plain), run, group, run_shape(ruleset))


def _meld(tiles: tuple[Tile, ...], kind: MeldKind, roles: Roles) -> Meld:
    if MIRROR in tiles:
        roles += roles[::-1]
    faces = tuple(faces for place, faces in zip(_places(tiles), roles, strict=True) if place in _WILD)
    return Meld(tiles, kind, sum(value_of(faces[0]) for faces in roles), faces)


def _plain(line: tuple[Tile, ...]) -> tuple[Tile, ...]:
    """Returns places with a joker for each color change: it takes a value like a joker."""
    return tuple(JOKER if t == COLOR_CHANGE else t for t in line)


def _group_roles(line: tuple[Tile, ...], ruleset: Ruleset) -> Roles | Reason:
    """Returns the faces of the places of a group, or why there is none (W-3, W-5, W-10)."""
    plain = _plain(line)
    group = as_group(plain, naturals_of(plain), ruleset)
    if isinstance(group, Reason):
        return group
    if COLOR_CHANGE in line:
        return Reason.COLOR_CHANGE_INVALID
    return tuple(group.joker_faces[0] if t == JOKER else (t,) for t in line)


def _run_roles(line: tuple[Tile, ...], ruleset: Ruleset) -> Roles | Reason:
    """Returns the faces of the places of a run, in which colors may change, or why there is none (W-3, W-5 to W-7)."""
    sides = _sides(line)
    colors = [{color_of(t) for t in naturals_of(side)} for side in sides]
    if max(map(len, colors)) > 1:
        return Reason.RUN_COLOR_MIX
    first = next(value_of(t) - place for place, t in enumerate(line) if t not in _WILD)
    values = range(first, first + len(line))
    is_rising = all(t in _WILD or value_of(t) == value for t, value in zip(line, values, strict=True))
    if not is_rising or first < 1 or values[-1] > MAX_VALUE:
        plain = tuple([t if t == JOKER else tile(Color.RED, value_of(t)) for t in _plain(line)])
        return run_reason(plain, naturals_of(plain), run_shape(ruleset))
    if not all(sides) and ruleset.twist_color_change_at_end is TwistColorChangeAtEnd.FORBIDDEN:
        return Reason.COLOR_CHANGE_INVALID
    if any(not left.isdisjoint(right) for left, right in pairwise(colors)):
        return Reason.COLOR_CHANGE_INVALID
    return tuple(_faces(sides, colors, values, ruleset))


def _sides(line: tuple[Tile, ...]) -> tuple[tuple[Tile, ...], ...]:
    """Returns the places before, between and after color changes."""
    ends = [place for place, t in enumerate(line) if t == COLOR_CHANGE]
    starts = (0, *(end + 1 for end in ends))
    return tuple([line[start:end] for start, end in zip(starts, (*ends, len(line)), strict=True)])


def _faces(
    sides: Sequence[tuple[Tile, ...]], colors: Sequence[set[Color]], values: range, ruleset: Ruleset
) -> Iterator[tuple[Tile, ...]]:
    """Yields the faces of each place of a run. A color change, and jokers without a numbered tile, have several."""
    left = iter(values)
    all_colors = COLORS[: ruleset.geometry_colors]
    for number, side in enumerate(sides):
        if number:
            yield _of_colors(all_colors, next(left))
        near = set().union(*colors[max(0, number - 1) : number + 2])
        own = [*colors[number]] or [color for color in all_colors if color not in near]
        for _ in side:
            yield _of_colors(own, next(left))


def _of_colors(colors: Iterable[Color], value: int) -> tuple[Tile, ...]:
    return tuple([tile(color, value) for color in colors])
