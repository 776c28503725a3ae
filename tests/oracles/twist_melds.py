"""Reads melds and judges turns of Rummikub Twist by brute force, without a rule of the engine.

A shape is a sequence of slots: a color and a value, or a value without a color where colors change. Tiles form a meld
if they cover a shape slot by slot. The halves of a mirror must cover the same shape, the second one backwards.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, pairwise, permutations, product
from typing import Final, TypeAlias

from engine.tiles import Tile

Slot: TypeAlias = tuple[int | None, int]
Shape: TypeAlias = tuple[Slot, ...]
Tiles: TypeAlias = tuple[Tile, ...]

REGULAR, DOUBLE, MIRROR, CHANGE = JOKERS = (Tile(53), Tile(81), Tile(82), Tile(83))
SLOTS: Final = {REGULAR: 1, DOUBLE: 2, MIRROR: 0, CHANGE: 1}
"""How many slots a joker covers."""


@dataclass(frozen=True)
class Options:
    """The options of Twist, and the number of colors."""

    change_at_end: bool = False
    half_min: int = 2
    colors: int = 4


PLAIN: Final = Options()


@dataclass(frozen=True)
class Reading:
    """A meld: its points, and the faces that each slot of a joker may stand for, from left to right."""

    points: int
    faces: tuple[Tiles, ...]


@dataclass(frozen=True)
class Turn:
    """A turn: the melds of both tables, in any order, and the player's part."""

    before: tuple[Tiles, ...]
    after: tuple[Tiles, ...]
    rack: Tiles
    has_melded: bool


def slot_of(t: Tile) -> Slot:
    """Returns the color, from 0, and the value of a numbered tile."""
    color, value = divmod(t - (t > REGULAR) - 1, 13)
    return color, value + 1


def face_of(color: int, value: int) -> Tile:
    """Returns the numbered tile of a color, from 0, and a value."""
    number = color * 13 + value
    return Tile(number + (number >= REGULAR))


# Melds


@lru_cache(maxsize=200_000)
def readings(tiles: Tiles, options: Options = PLAIN) -> dict[str, Reading]:
    """Returns the readings of tiles by their kind, RUN before GROUP; none if they form no meld."""
    halves = _halves(tiles)
    if len(tiles) < 3 or all(t in JOKERS for t in tiles) or len(halves) > 2:
        return {}
    if len(halves) == 2 and min(map(len, halves)) < options.half_min:
        return {}
    sizes = {sum(SLOTS.get(t, 1) for t in half) for half in halves}
    if len(sizes) > 1:
        return {}
    size = sizes.pop()
    changes = tuple(place for place, t in enumerate(_by_slot(halves[0])) if t == CHANGE)
    value = next(slot_of(t)[1] for t in tiles if t not in JOKERS)
    found = {}
    for kind, shapes in (("RUN", runs(size, changes, options)), ("GROUP", groups(size, value, options.colors))):
        fitting = [shape for shape in shapes if all(_covers(half, shape) for half in halves)]
        if fitting:
            found[kind] = _reading(halves, fitting, options.colors)
    return found


def _halves(tiles: Tiles) -> list[Tiles]:
    """Returns the parts between mirrors, the second one backwards."""
    ends = [place for place, t in enumerate(tiles) if t == MIRROR]
    parts = [tiles[start:end] for start, end in zip([0, *(end + 1 for end in ends)], [*ends, len(tiles)], strict=True)]
    return [part[::-1] if place == 1 else part for place, part in enumerate(parts)]


def _by_slot(tiles: Tiles) -> Tiles:
    return tuple(t for t in tiles for _ in range(SLOTS.get(t, 1)))


@cache
def runs(size: int, changes: tuple[int, ...], options: Options) -> list[Shape]:
    """Returns the runs of a size whose color changes at some slots."""
    lengths = [end - start - 1 for start, end in pairwise((-1, *changes, size))]
    if 0 in lengths and not options.change_at_end:
        return []
    shapes = []
    for first, colors in product(range(1, 15 - size), product(range(options.colors), repeat=len(lengths))):
        if all(one != other for one, other in pairwise(colors)):
            sides = ((*[color] * length, None) for color, length in zip(colors, lengths, strict=True))
            of_slots = [*chain.from_iterable(sides)][:-1]
            shapes.append(tuple((color, first + place) for place, color in enumerate(of_slots)))
    return shapes


@cache
def groups(size: int, value: int, colors: int) -> list[Shape]:
    """Returns the groups of a size and a value in every order."""
    return [tuple((color, value) for color in order) for order in permutations(range(colors), size)]


def _covers(tiles: Tiles, shape: Shape) -> bool:
    place = 0
    for t in tiles:
        slots = shape[place : place + SLOTS.get(t, 1)]
        place += len(slots)
        if t in JOKERS:
            if any((color is None) != (t == CHANGE) for color, _ in slots):
                return False
        elif slots != (slot_of(t),):
            return False
    return place == len(shape)


def _reading(halves: Sequence[Tiles], shapes: list[Shape], colors: int) -> Reading:
    points = {sum(value for _, value in shape) * len(halves) for shape in shapes}
    assert len(points) == 1, halves
    faces = [tuple(sorted(set(_faces(slots, colors)))) for slots in zip(*shapes, strict=True)]
    left = [of for t, of in zip(_by_slot(halves[0]), faces, strict=True) if t in JOKERS]
    right = [of for t, of in zip(_by_slot(halves[-1]), faces, strict=True) if t in JOKERS][::-1]
    return Reading(points.pop(), tuple(left + right * (len(halves) - 1)))


def _faces(slots: Sequence[Slot], colors: int) -> Iterator[Tile]:
    for color, value in slots:
        yield from (face_of(c, value) for c in (range(colors) if color is None else (color,)))


def melds_up_to(most: int) -> Iterator[tuple[Tiles, str, int]]:
    """Yields the melds of at most so many tiles, with kind and points, up to a change of colors.

    A meld, or a half of one, has at most two jokers of each kind, like the tile set. Some are yielded more than once.
    """
    for shape, kind in _shapes(2 * most):
        points = sum(value for _, value in shape)
        covers = list(coverings(shape, most, Counter(dict.fromkeys(JOKERS, 2))))
        if len(shape) > 2:
            yield from ((tiles, kind, points) for tiles in covers if len(tiles) > 2 and not set(tiles) <= set(JOKERS))
        for one, other in product(covers, repeat=2):
            whole = (*one, MIRROR, *other[::-1])
            if len(whole) <= most and min(len(one), len(other)) > 1 and not set(whole) <= set(JOKERS):
                yield whole, kind, 2 * points


def _shapes(most: int) -> Iterator[tuple[Shape, str]]:
    """Yields runs with at most two changes, and groups, whose colors first occur in their order."""
    for size in range(2, min(13, most) + 1):
        inner = range(1, size - 1)
        pairs = ((one, other) for one, other in product(inner, repeat=2) if one + 1 < other)
        for changes in ((), *((place,) for place in inner), *pairs):
            for shape in runs(size, changes, PLAIN):
                if _is_first_of_its_kind(shape):
                    yield shape, "RUN"
        of_size = chain.from_iterable(groups(size, value, PLAIN.colors) for value in range(1, 14))
        yield from ((shape, "GROUP") for shape in of_size if _is_first_of_its_kind(shape))


def _is_first_of_its_kind(shape: Shape) -> bool:
    colors = [*dict.fromkeys(color for color, _ in shape if color is not None)]
    return colors == [*range(len(colors))]


def coverings(shape: Shape, most: int, left: Counter[Tile]) -> Iterator[Tiles]:
    """Yields the tiles that cover a shape, at most so many, with jokers that are left."""
    if not shape:
        yield ()
    if not shape or not most or len(shape) > 2 * most:
        return
    color, value = shape[0]
    choices = [CHANGE] if color is None else [face_of(color, value), REGULAR, DOUBLE]
    for t in choices:
        slots = shape[: SLOTS.get(t, 1)]
        is_whole = len(slots) == SLOTS.get(t, 1) and (t == CHANGE or all(color is not None for color, _ in slots))
        if is_whole and (t not in JOKERS or left[t]):
            rest = left - Counter((t,)) if t in JOKERS else left
            yield from ((t, *tiles) for tiles in coverings(shape[len(slots) :], most - 1, rest))


# Turns


def is_legal(turn: Turn, options: Options = PLAIN) -> bool:
    """Returns whether a turn is legal that states no kinds, where the initial meld needs 30 points."""
    before, after = (Counter(t for tiles in table for t in tiles) for table in (turn.before, turn.after))
    added = after - before
    if before - after or not added or not added <= Counter(turn.rack):
        return False
    if not all(readings(tiles, options) for tiles in turn.after):
        return False
    had, has = (Counter(_identity(tiles, options) for tiles in table) for table in (turn.before, turn.after))
    then, now = (sum(_first(tiles, options)[1].points for tiles in table) for table in (turn.before, turn.after))
    return turn.has_melded or (not had - has and now - then >= 30)


def _first(tiles: Tiles, options: Options) -> tuple[str, Reading]:
    return next(iter(readings(tiles, options).items()))


def _identity(tiles: Tiles, options: Options) -> tuple[str, Tiles]:
    """Returns what two tables share of a meld: the order of a group is free."""
    kind, _ = _first(tiles, options)
    return kind, tiles if kind == "RUN" else tuple(sorted(tiles))
