"""The two shapes of melds, runs and groups, of tiles in order, and why tiles form neither (R11 to R20)."""

from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

from engine.melding.ruleset import JokersAdjacent, Ruleset
from engine.melding.run_shape import RunShape, run_shape
from engine.tiles import COLORS, JOKER, MAX_VALUE, Tile, color_of, tile, value_of
from engine.violations import Reason


class MeldKind(Enum):
    """The kind of a meld."""

    GROUP = auto()
    RUN = auto()


@dataclass(frozen=True, slots=True)
class ProposedMeld:
    """Tiles that a player proposes as a meld, in order, with the stated kind and the declared joker faces, if any."""

    tiles: tuple[Tile, ...]
    kind: MeldKind | None = None
    declared: tuple[Tile, ...] = ()

    def __hash__(self) -> int:
        """Hashes the tiles only: they rarely collide, and melds are looked up very often."""
        return hash(self.tiles)


@dataclass(frozen=True, slots=True)
class Meld:
    """Tiles that form a meld.

    Attributes:
        tiles: The tiles in the proposed order, or in canonical order (meld_order CANONICALISE).
        kind: Group or run.
        points: The sum of the values. A joker counts as the face it stands for (R20).
        joker_faces: For each joker, from left to right, the faces it may stand for, ascending: one in a run, each
            missing color in a group (R47, R48), or the declared one. A double joker has two entries, one for each of
            its places; a color change has one, with its value in every color; a mirror has none (W-3, W-5, W-8).
    """

    tiles: tuple[Tile, ...]
    kind: MeldKind
    points: int
    joker_faces: tuple[tuple[Tile, ...], ...] = ()

    def __hash__(self) -> int:
        """Hashes the tiles only, like ProposedMeld."""
        return hash(self.tiles)


@dataclass(frozen=True, slots=True)
class NotAMeld:
    """Tiles that form no meld, with every reason, and an order in which they would form one, if there is one."""

    tiles: tuple[Tile, ...]
    reasons: tuple[Reason, ...]
    suggested_order: tuple[Tile, ...] = ()


def naturals_of(tiles: tuple[Tile, ...]) -> tuple[Tile, ...]:
    """Returns the tiles that are no jokers."""
    return tuple(t for t in tiles if t != JOKER)


# Runs.


def as_run(tiles: tuple[Tile, ...], naturals: tuple[Tile, ...], ruleset: Ruleset) -> Meld | Reason:
    """Returns the run that tiles form in this order, or why there is none (R14, R15, jokers_adjacent)."""
    run = run_of(tiles, naturals, run_shape(ruleset))
    apart = ruleset.jokers_adjacent is JokersAdjacent.FORBIDDEN
    return Reason.JOKERS_ADJACENT if apart and isinstance(run, Meld) and (JOKER, JOKER) in pairwise(tiles) else run


def run_of(tiles: tuple[Tile, ...], naturals: tuple[Tile, ...], shape: RunShape) -> Meld | Reason:
    """Returns the run that tiles form in this order, whatever the rules on jokers, or why there is none."""
    values = _run_values(tiles, naturals[0], shape)
    color = color_of(naturals[0])
    if not values or any(color_of(t) is not color for t in naturals):
        return run_reason(tiles, naturals, shape)
    faces = tuple((tile(color, value),) for t, value in zip(tiles, values, strict=True) if t == JOKER)
    return Meld(tiles, MeldKind.RUN, sum(values), faces)


def _run_values(tiles: tuple[Tile, ...], natural: Tile, shape: RunShape) -> tuple[int, ...]:
    """Returns the values of a run's positions by its first numbered tile, or () if another tile disagrees."""
    first = (value_of(natural) - tiles.index(natural) - 1) % MAX_VALUE + 1
    values = shape.runs.get((first, len(tiles)), ())
    return values if all(t == JOKER or value_of(t) == value for t, value in zip(tiles, values, strict=False)) else ()


def run_reason(tiles: tuple[Tile, ...], naturals: tuple[Tile, ...], shape: RunShape) -> Reason:
    """Returns why tiles form no run. The reasons are tried in the order of docs/rules.md."""
    values = tuple(map(value_of, naturals))
    if len(set(map(color_of, naturals))) > 1:
        return Reason.RUN_COLOR_MIX
    if _wraps(tiles, shape):
        return Reason.RUN_WRAP
    if len(set(values)) < len(values):
        return Reason.RUN_DUPLICATE_VALUE
    if not _is_consecutive(tiles, shape):
        return Reason.RUN_NOT_ASCENDING if _descends(values, shape) else Reason.RUN_GAP
    return Reason.RUN_TOO_LONG if shape.beyond and len(tiles) > MAX_VALUE else Reason.RUN_JOKER_OUT_OF_RANGE


def _wraps(tiles: tuple[Tile, ...], shape: RunShape) -> bool:
    """Returns whether numbered tiles go on after 13 and 1 for longer than a run may."""
    if shape.is_cyclic:
        return False
    ones = [place for place, two in enumerate(pairwise(tiles), 1) if JOKER not in two and _is_wrap(*two)]
    return any(t != JOKER for place in ones for t in tiles[place + shape.beyond :])


def _is_wrap(left: Tile, right: Tile) -> bool:
    return value_of(left) == MAX_VALUE and value_of(right) == 1


def _is_consecutive(tiles: tuple[Tile, ...], shape: RunShape) -> bool:
    """Returns whether all numbered tiles imply the same value for the first position of a run."""
    places = tuple(place for place, t in enumerate(tiles) if t != JOKER)
    values = [value_of(tiles[place]) for place in places]
    if values[-1] <= shape.beyond:
        values[-1] += MAX_VALUE
    firsts = {value - place for value, place in zip(values, places, strict=True)}
    return len({first % MAX_VALUE for first in firsts} if shape.is_cyclic else firsts) == 1


def _descends(values: tuple[int, ...], shape: RunShape) -> bool:
    """Returns whether a value is below its predecessor, except where the shorter way up leads past 13 legally."""
    return any(
        left > right and not (right <= shape.beyond and left - right > MAX_VALUE // 2)
        for left, right in pairwise(values)
    )


# Groups.


def as_group(tiles: tuple[Tile, ...], naturals: tuple[Tile, ...], ruleset: Ruleset) -> Meld | Reason:
    """Returns the group that tiles form, or why there is none (R12, R13, geometry_colors)."""
    value = value_of(naturals[0])
    if any(value_of(t) != value for t in naturals):
        return Reason.GROUP_VALUE_MISMATCH
    colors = set(map(color_of, naturals))
    if len(colors) < len(naturals):
        return Reason.GROUP_COLOR_REPEAT
    if len(tiles) > ruleset.geometry_colors:
        return Reason.GROUP_TOO_LARGE
    jokers = len(tiles) - len(naturals)
    missing = tuple(tile(color, value) for color in COLORS[: ruleset.geometry_colors] if color not in colors)
    return Meld(tiles, MeldKind.GROUP, value * len(tiles), (missing,) * jokers)


def neither_reason(
    tiles: tuple[Tile, ...], naturals: tuple[Tile, ...], run: Reason, group: Reason, shape: RunShape
) -> Reason:
    """Returns the most helpful reason why tiles form neither a run nor a group."""
    if len(naturals) > 1 and group is not Reason.GROUP_VALUE_MISMATCH:
        return group
    if run is not Reason.RUN_COLOR_MIX:
        return run
    if _is_consecutive(tiles, shape):
        return Reason.RUN_COLOR_MIX
    return Reason.GROUP_VALUE_MISMATCH if is_more_of_a_group(naturals) else Reason.MELD_NOT_GROUP_NOR_RUN


def is_more_of_a_group(naturals: tuple[Tile, ...]) -> bool:
    """Returns whether more tiles share a value than a color."""
    return max(Counter(map(value_of, naturals)).values()) > max(Counter(map(color_of, naturals)).values())
