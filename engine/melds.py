"""What an ordered list of tiles forms: a group, a run, or neither and why (R11 to R20).

The order of tiles fixes what a joker in a run stands for; nothing about a joker is stored. A meld that one numbered
tile and jokers could form both ways is a run unless its kind is stated (jokers_declaration).
"""

from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from typing import Final

from engine.ruleset import JokersAdjacent, JokersDeclaration, JokersMaxPerSet, Ruleset
from engine.tiles import COLORS, JOKER, MAX_VALUE, Color, Tile, color_of, tile, value_of
from engine.violations import Reason

MIN_TILES: Final = 3
"""Fewest tiles of a meld (R11)."""


class MeldKind(Enum):
    """What a meld is."""

    GROUP = auto()
    RUN = auto()


@dataclass(frozen=True, slots=True)
class ProposedMeld:
    """Tiles that a player says form a meld, in order; the kind if stated; what each joker stands for, if declared."""

    tiles: tuple[Tile, ...]
    kind: MeldKind | None = None
    declared: tuple[Tile, ...] = ()


@dataclass(frozen=True, slots=True)
class Meld:
    """Tiles that form a meld.

    Attributes:
        tiles: In order.
        kind: Group or run.
        points: The sum of the values, a joker counting as what it stands for (R20).
        joker_faces: For each joker from left to right the faces it may stand for, ascending: one in a run, each
            missing color in a group (R47, R48), or the one declared.
    """

    tiles: tuple[Tile, ...]
    kind: MeldKind
    points: int
    joker_faces: tuple[tuple[Tile, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class NotAMeld:
    """Tiles that form no meld: every reason, and an order in which the same tiles would form a run, if there is one."""

    tiles: tuple[Tile, ...]
    reasons: tuple[Reason, ...]
    suggested_order: tuple[Tile, ...] = ()


def joker_points(meld: Meld) -> tuple[int, ...]:
    """What each joker of a meld counts, from left to right (R20)."""
    return tuple(value_of(faces[0]) for faces in meld.joker_faces)


def read_meld(proposed: ProposedMeld, ruleset: Ruleset) -> Meld | NotAMeld:
    """Reads tiles as a meld (rules of sets R11 to R20, jokers_max_per_set, jokers_adjacent, jokers_declaration)."""
    tiles = proposed.tiles
    naturals = tuple(t for t in tiles if t != JOKER)
    if not ruleset.geometry_jokers and len(naturals) < len(tiles):
        return NotAMeld(tiles, (Reason.TILE_UNKNOWN,))
    if len(tiles) < MIN_TILES:
        return NotAMeld(tiles, (Reason.SET_TOO_SHORT if tiles else Reason.SET_EMPTY,))
    if not naturals:
        return NotAMeld(tiles, (Reason.SET_ALL_JOKERS,))
    run = _run_reason(tiles, ruleset)
    group = _group_reason(tiles, naturals)
    kind = proposed.kind or _kind(run, group)
    shape = _shape_reason(proposed, kind, run, group, ruleset)
    too_many = _too_many_jokers(len(tiles) - len(naturals), len(naturals), ruleset)
    reasons = ((Reason.JOKERS_TOO_MANY,) if too_many else ()) + ((shape,) if shape else ())
    if reasons or kind is None:
        return NotAMeld(tiles, reasons, _suggested_order(proposed, naturals, ruleset) if run and not too_many else ())
    return _run(tiles) if kind is MeldKind.RUN else _group(tiles, naturals)


def _kind(run: Reason | None, group: Reason | None) -> MeldKind | None:
    """The kind that tiles form when none is stated: a run where both fit (jokers_declaration POSITIONAL)."""
    if run is None:
        return MeldKind.RUN
    return MeldKind.GROUP if group is None else None


def _shape_reason(
    proposed: ProposedMeld, kind: MeldKind | None, run: Reason | None, group: Reason | None, ruleset: Ruleset
) -> Reason | None:
    """Why the tiles do not have the shape of the kind, if they do not."""
    if kind is None:
        return _neither_reason(proposed.tiles, run, group)
    if proposed.kind is None:
        ambiguous = run is None and group is None
        explicit = ruleset.jokers_declaration is JokersDeclaration.EXPLICIT_WHEN_AMBIGUOUS
        return Reason.SET_KIND_AMBIGUOUS if ambiguous and explicit else None
    own, other = (run, group) if kind is MeldKind.RUN else (group, run)
    mismatch = own not in {None, Reason.JOKERS_ADJACENT} and other is None
    return Reason.SET_KIND_MISMATCH if mismatch else own


def _too_many_jokers(jokers: int, naturals: int, ruleset: Ruleset) -> bool:
    match ruleset.jokers_max_per_set:
        case JokersMaxPerSet.UNLIMITED_WITH_ONE_NATURAL:
            return False
        case JokersMaxPerSet.ONE:
            return jokers > 1
        case JokersMaxPerSet.TWO:
            return jokers > 2
        case JokersMaxPerSet.NOT_MORE_THAN_NATURALS:
            return jokers > naturals


def _first_values(tiles: tuple[Tile, ...]) -> set[int]:
    """The value that the first place of a run would have, as each numbered tile says; they agree in a run."""
    return {value_of(t) - place for place, t in enumerate(tiles) if t != JOKER}


def _run_reason(tiles: tuple[Tile, ...], ruleset: Ruleset) -> Reason | None:
    """Why the tiles form no run, if they form none; the reasons in the order of docs/rules.md (R14, R15)."""
    naturals = tuple(t for t in tiles if t != JOKER)
    values = tuple(value_of(t) for t in naturals)
    first_values = _first_values(tiles)
    first = min(first_values)
    checks = (
        (Reason.RUN_COLOR_MIX, len({color_of(t) for t in naturals}) > 1),
        (Reason.RUN_WRAP, any(JOKER not in two and _is_wrap(*two) for two in pairwise(tiles))),
        (Reason.RUN_DUPLICATE_VALUE, len(set(values)) < len(values)),
        (Reason.RUN_NOT_ASCENDING, any(left > right for left, right in pairwise(values))),
        (Reason.RUN_GAP, len(first_values) > 1),
        (Reason.RUN_JOKER_OUT_OF_RANGE, first < 1 or first + len(tiles) - 1 > MAX_VALUE),
        (
            Reason.JOKERS_ADJACENT,
            ruleset.jokers_adjacent is JokersAdjacent.FORBIDDEN and (JOKER, JOKER) in pairwise(tiles),
        ),
    )
    return next((reason for reason, broken in checks if broken), None)


def _is_wrap(left: Tile, right: Tile) -> bool:
    return value_of(left) == MAX_VALUE and value_of(right) == 1


def _group_reason(tiles: tuple[Tile, ...], naturals: tuple[Tile, ...]) -> Reason | None:
    """Why the tiles form no group, if they form none (R12, R13)."""
    if len({value_of(t) for t in naturals}) > 1:
        return Reason.GROUP_VALUE_MISMATCH
    if len({color_of(t) for t in naturals}) < len(naturals):
        return Reason.GROUP_COLOR_REPEAT
    if len(tiles) > len(COLORS):
        return Reason.GROUP_TOO_LARGE
    return None


def _neither_reason(tiles: tuple[Tile, ...], run: Reason | None, group: Reason | None) -> Reason | None:
    """The most telling reason why tiles form neither a run nor a group."""
    naturals = tuple(t for t in tiles if t != JOKER)
    if len(naturals) > 1 and group is not Reason.GROUP_VALUE_MISMATCH:
        return group
    if run is not Reason.RUN_COLOR_MIX:
        return run
    if len(_first_values(tiles)) == 1:
        return Reason.RUN_COLOR_MIX
    of_one_value = max(Counter(map(value_of, naturals)).values())
    of_one_color = max(Counter(map(color_of, naturals)).values())
    return Reason.GROUP_VALUE_MISMATCH if of_one_value > of_one_color else Reason.SET_NOT_GROUP_NOR_RUN


def _run(tiles: tuple[Tile, ...]) -> Meld:
    first = min(_first_values(tiles))
    color = _color(tiles)
    faces = tuple((tile(color, first + place),) for place, t in enumerate(tiles) if t == JOKER)
    return Meld(tiles, MeldKind.RUN, sum(range(first, first + len(tiles))), faces)


def _color(tiles: tuple[Tile, ...]) -> Color:
    return color_of(next(t for t in tiles if t != JOKER))


def _group(tiles: tuple[Tile, ...], naturals: tuple[Tile, ...]) -> Meld:
    value = value_of(naturals[0])
    present = {color_of(t) for t in naturals}
    missing = tuple(tile(color, value) for color in COLORS if color not in present)
    return Meld(tiles, MeldKind.GROUP, value * len(tiles), (missing,) * (len(tiles) - len(naturals)))


def _suggested_order(proposed: ProposedMeld, naturals: tuple[Tile, ...], ruleset: Ruleset) -> tuple[Tile, ...]:
    """The order in which the tiles form a run, if there is one; the kind must not be stated otherwise."""
    order = run_order(naturals, len(proposed.tiles) - len(naturals))
    fits = proposed.kind is not MeldKind.GROUP and _run_reason(order, ruleset) is None
    return order if fits else ()


def run_order(naturals: tuple[Tile, ...], jokers: int) -> tuple[Tile, ...]:
    """The canonical order of tiles as a run: by value, jokers in the gaps, spare ones at the high end, then the low."""
    by_value = sorted(naturals, key=value_of)
    placed = [by_value[0]]
    for natural in by_value[1:]:
        gap = min(jokers, max(0, value_of(natural) - value_of(placed[-1]) - 1))
        jokers -= gap
        placed += [JOKER] * gap + [natural]
    high = min(jokers, MAX_VALUE - value_of(by_value[-1]))
    return (JOKER,) * (jokers - high) + tuple(placed) + (JOKER,) * high
