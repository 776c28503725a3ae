"""Reads an ordered list of tiles as a group or a run, or gives the reasons why it is neither (R11 to R20).

One subject, hence one long module. The order of tiles determines what a joker in a run stands for. One numbered tile
with jokers can form both kinds: it is a run unless the kind is stated or the declared faces fit only a group
(jokers_declaration). Under meld_order CANONICALISE, tiles are put into canonical order before they are read.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import pairwise
from typing import Final

from engine.melding.ruleset import JokersAdjacent, JokersDeclaration, JokersMaxPerMeld, MeldOrder, Ruleset
from engine.melding.run_shape import MIN_TILES, RunShape, run_shape
from engine.tiles import COLORS, JOKER, MAX_VALUE, Tile, color_of, in_order, tile, value_of
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
            missing color in a group (R47, R48), or the declared one.
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


def joker_points(meld: Meld) -> tuple[int, ...]:
    """Returns the points of each joker of a meld, from left to right (R20)."""
    return tuple(value_of(faces[0]) for faces in meld.joker_faces)


def declared_faces(meld: Meld, ruleset: Ruleset) -> tuple[Tile, ...]:
    """Returns the faces that must be declared for a meld to be read as the same meld: one a joker, or none."""
    if meld.joker_faces and _needs_faces(meld, ruleset):
        return tuple([faces[0] for faces in meld.joker_faces])
    return ()


def _needs_faces(meld: Meld, ruleset: Ruleset) -> bool:
    """Returns whether tiles and kind do not determine the faces of the jokers."""
    if must_declare(len(meld.joker_faces), ruleset):
        return True
    if meld.kind is MeldKind.RUN:
        return ruleset.meld_order is MeldOrder.CANONICALISE
    is_open = ruleset.geometry_colors - len(_naturals(meld.tiles)) > 1
    return is_open and len(meld.joker_faces[0]) == 1


def as_proposed(meld: Meld, ruleset: Ruleset) -> ProposedMeld:
    """Returns a proposal that the same ruleset reads as the same meld."""
    return ProposedMeld(meld.tiles, meld.kind, declared_faces(meld, ruleset))


def read_meld(proposed: ProposedMeld, ruleset: Ruleset) -> Meld | NotAMeld:
    """Returns tiles read as a meld (R11 to R20; options geometry, meld_order, runs and jokers)."""
    tiles = proposed.tiles
    if any(t >= JOKER and not ruleset.copies_of(t) for t in tiles):  # smaller numbers are tiles of every game
        return NotAMeld(tiles, (Reason.TILE_UNKNOWN,))
    if len(tiles) < MIN_TILES:
        return NotAMeld(tiles, (Reason.MELD_TOO_SHORT if tiles else Reason.MELD_EMPTY,))
    if tiles.count(JOKER) == len(tiles):
        return NotAMeld(tiles, (Reason.MELD_ALL_JOKERS,))
    if ruleset.meld_order is MeldOrder.CANONICALISE:
        proposed = canonical_order(proposed, ruleset)
    shape = _shape(proposed, ruleset)
    reasons = _reasons(proposed, shape, ruleset)
    if isinstance(shape, Reason) or reasons:
        return NotAMeld(proposed.tiles, reasons, _suggested_order(proposed, reasons, ruleset))
    return replace(shape, joker_faces=tuple((t,) for t in proposed.declared)) if proposed.declared else shape


def _naturals(tiles: tuple[Tile, ...]) -> tuple[Tile, ...]:
    return tuple(t for t in tiles if t != JOKER)


def _shape(proposed: ProposedMeld, ruleset: Ruleset) -> Meld | Reason:
    """Returns the meld of the stated or the fitting kind, regardless of the rules on jokers, or why there is none."""
    tiles, naturals = proposed.tiles, _naturals(proposed.tiles)
    if proposed.kind is not None:
        as_stated, as_other = (_as_run, _as_group) if proposed.kind is MeldKind.RUN else (_as_group, _as_run)
        shape = as_stated(tiles, naturals, ruleset)
        if isinstance(shape, Meld) or shape is Reason.JOKERS_ADJACENT:
            return shape
        return Reason.MELD_KIND_MISMATCH if isinstance(as_other(tiles, naturals, ruleset), Meld) else shape
    group = _as_group(tiles, naturals, ruleset)
    if isinstance(group, Meld) and len(naturals) > 1:
        return group
    run = _as_run(tiles, naturals, ruleset)
    if isinstance(group, Meld):
        return group if isinstance(run, Reason) else _run_or_group(proposed.declared, run, group, ruleset)
    return run if isinstance(run, Meld) else _neither_reason(tiles, naturals, run, group, run_shape(ruleset))


def _run_or_group(declared: tuple[Tile, ...], run: Meld, group: Meld, ruleset: Ruleset) -> Meld | Reason:
    """Returns the intended meld where both kinds fit and none is stated (jokers_declaration)."""
    if _is_possible(declared, group):
        return group
    explicit = ruleset.jokers_declaration is JokersDeclaration.EXPLICIT_WHEN_AMBIGUOUS
    return Reason.MELD_KIND_AMBIGUOUS if explicit and not _is_possible(declared, run) else run


def _reasons(proposed: ProposedMeld, shape: Meld | Reason, ruleset: Ruleset) -> tuple[Reason, ...]:
    """Returns every reason why tiles form no meld: jokers, shape, and declared faces."""
    if isinstance(shape, Reason):
        return (*_joker_reasons(proposed.tiles, ruleset), shape)
    if not shape.joker_faces and not proposed.declared:
        return ()
    return (*_joker_reasons(proposed.tiles, ruleset), *_declaration_reasons(proposed, shape, ruleset))


# Jokers: their number, position, and declared faces.


def _joker_reasons(tiles: tuple[Tile, ...], ruleset: Ruleset) -> Iterator[Reason]:
    """Yields the reasons that concern jokers in both kinds (jokers_max_per_meld, jokers_may_lead)."""
    jokers = tiles.count(JOKER)
    if _too_many_jokers(jokers, len(tiles) - jokers, ruleset):
        yield Reason.JOKERS_TOO_MANY
    if tiles[0] == JOKER and not ruleset.jokers_may_lead:
        yield Reason.JOKER_LEADS_MELD


def _too_many_jokers(jokers: int, naturals: int, ruleset: Ruleset) -> bool:
    match ruleset.jokers_max_per_meld:
        case JokersMaxPerMeld.UNLIMITED_WITH_ONE_NATURAL:
            return False
        case JokersMaxPerMeld.ONE:
            return jokers > 1
        case JokersMaxPerMeld.TWO:
            return jokers > 2
        case JokersMaxPerMeld.NOT_MORE_THAN_NATURALS:
            return jokers > naturals


def _declaration_reasons(proposed: ProposedMeld, meld: Meld, ruleset: Ruleset) -> Iterator[Reason]:
    """Yields why the declared faces of a meld are missing or impossible (jokers_declaration)."""
    needs_faces = meld.kind is MeldKind.GROUP and not proposed.declared
    if must_declare(len(meld.joker_faces), ruleset) and (proposed.kind is None or needs_faces):
        yield Reason.JOKER_DECLARATION_REQUIRED
    if proposed.declared and not _is_possible(proposed.declared, meld):
        yield Reason.JOKER_DECLARATION_MISMATCH


def must_declare(jokers: int, ruleset: Ruleset) -> bool:
    """Returns whether the faces of a meld's jokers must be declared, given their number (jokers_declaration)."""
    match ruleset.jokers_declaration:
        case JokersDeclaration.POSITIONAL | JokersDeclaration.EXPLICIT_WHEN_AMBIGUOUS:
            return False
        case JokersDeclaration.EXPLICIT_WHEN_TWO:
            return jokers >= 2
        case JokersDeclaration.ALWAYS_EXPLICIT:
            return jokers >= 1


def _is_possible(declared: tuple[Tile, ...], meld: Meld) -> bool:
    """Returns whether the jokers can stand for the declared faces: one for each, all different, each possible."""
    return len(declared) == len(meld.joker_faces) == len(set(declared)) and all(
        face in faces for face, faces in zip(declared, meld.joker_faces, strict=True)
    )


# Runs.


def _as_run(tiles: tuple[Tile, ...], naturals: tuple[Tile, ...], ruleset: Ruleset) -> Meld | Reason:
    """Returns the run that tiles form in this order, or why there is none (R14, R15, jokers_adjacent)."""
    run = _run(tiles, naturals, run_shape(ruleset))
    apart = ruleset.jokers_adjacent is JokersAdjacent.FORBIDDEN
    return Reason.JOKERS_ADJACENT if apart and isinstance(run, Meld) and (JOKER, JOKER) in pairwise(tiles) else run


def _run(tiles: tuple[Tile, ...], naturals: tuple[Tile, ...], shape: RunShape) -> Meld | Reason:
    values = _run_values(tiles, naturals[0], shape)
    color = color_of(naturals[0])
    if not values or any(color_of(t) is not color for t in naturals):
        return _run_reason(tiles, naturals, shape)
    faces = tuple((tile(color, value),) for t, value in zip(tiles, values, strict=True) if t == JOKER)
    return Meld(tiles, MeldKind.RUN, sum(values), faces)


def _run_values(tiles: tuple[Tile, ...], natural: Tile, shape: RunShape) -> tuple[int, ...]:
    """Returns the values of a run's positions by its first numbered tile, or () if another tile disagrees."""
    first = (value_of(natural) - tiles.index(natural) - 1) % MAX_VALUE + 1
    values = shape.runs.get((first, len(tiles)), ())
    return values if all(t == JOKER or value_of(t) == value for t, value in zip(tiles, values, strict=False)) else ()


def _run_reason(tiles: tuple[Tile, ...], naturals: tuple[Tile, ...], shape: RunShape) -> Reason:
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


def _as_group(tiles: tuple[Tile, ...], naturals: tuple[Tile, ...], ruleset: Ruleset) -> Meld | Reason:
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


def _neither_reason(
    tiles: tuple[Tile, ...], naturals: tuple[Tile, ...], run: Reason, group: Reason, shape: RunShape
) -> Reason:
    """Returns the most helpful reason why tiles form neither a run nor a group."""
    if len(naturals) > 1 and group is not Reason.GROUP_VALUE_MISMATCH:
        return group
    if run is not Reason.RUN_COLOR_MIX:
        return run
    if _is_consecutive(tiles, shape):
        return Reason.RUN_COLOR_MIX
    return Reason.GROUP_VALUE_MISMATCH if _is_more_of_a_group(naturals) else Reason.MELD_NOT_GROUP_NOR_RUN


def _is_more_of_a_group(naturals: tuple[Tile, ...]) -> bool:
    """Returns whether more tiles share a value than a color."""
    return max(Counter(map(value_of, naturals)).values()) > max(Counter(map(color_of, naturals)).values())


# Orders in which tiles form a meld.

_ORDER_REASONS: Final = frozenset(
    {
        Reason.JOKER_LEADS_MELD,
        Reason.JOKERS_ADJACENT,
        Reason.MELD_KIND_MISMATCH,
        Reason.RUN_WRAP,
        Reason.RUN_NOT_ASCENDING,
        Reason.RUN_GAP,
        Reason.RUN_JOKER_OUT_OF_RANGE,
    }
)
"""Reasons that another order of the same tiles can remove."""


def _suggested_order(proposed: ProposedMeld, reasons: tuple[Reason, ...], ruleset: Ruleset) -> tuple[Tile, ...]:
    """Returns an order in which tiles form a meld of the stated kind, or () if there is none."""
    if ruleset.meld_order is MeldOrder.CANONICALISE or _ORDER_REASONS.isdisjoint(reasons):
        return ()  # canonical_order has already tried every order
    orders = _run_orders(proposed, run_shape(ruleset))
    if Reason.JOKER_LEADS_MELD in reasons:
        orders += (_group_order(proposed),)
    for order in orders:
        if proposed.kind in {None, order.kind} and not _faults(order, ruleset):
            return order.tiles
    return ()


def canonical_order(proposed: ProposedMeld, ruleset: Ruleset) -> ProposedMeld:
    """Returns tiles, at least one numbered, in the order in which meld_order CANONICALISE reads them.

    A run gets the order with the most points: jokers fill the gaps, spare ones go to the high end, then to the low end.
    A group has its numbered tiles in the order of colors, then its jokers. A joker goes where its declared face
    belongs. The result is the first of these orders that forms a meld, else the one with the fewest faults.
    """
    runs = _run_orders(proposed, run_shape(ruleset)) or (_order_by_value(proposed),)
    group = _group_order(proposed)
    orders = (group, *runs) if _is_likelier_a_group(proposed) else (*runs, group)
    wrong = []
    for order in orders:
        wrong.append((_misplaces(order, ruleset), len(_faults(order, ruleset))))
        if not any(wrong[-1]):
            break
    return replace(orders[wrong.index(min(wrong))], kind=proposed.kind)


def _is_likelier_a_group(proposed: ProposedMeld) -> bool:
    return _is_more_of_a_group(_naturals(proposed.tiles)) if proposed.kind is None else proposed.kind is MeldKind.GROUP


def _faults(order: ProposedMeld, ruleset: Ruleset) -> tuple[Reason, ...]:
    """Returns every reason why an order is no meld of its kind."""
    as_kind = _as_run if order.kind is MeldKind.RUN else _as_group
    return _reasons(order, as_kind(order.tiles, _naturals(order.tiles), ruleset), ruleset)


def _misplaces(order: ProposedMeld, ruleset: Ruleset) -> bool:
    """Returns whether a joker is not where its declared face belongs."""
    if not order.declared:
        return False
    naturals = _naturals(order.tiles)
    is_run = order.kind is MeldKind.RUN
    meld = _run(order.tiles, naturals, run_shape(ruleset)) if is_run else _as_group(order.tiles, naturals, ruleset)
    return isinstance(meld, Reason) or not _is_possible(order.declared, meld)


def _group_order(proposed: ProposedMeld) -> ProposedMeld:
    """Returns the numbered tiles in the order of colors, then the jokers."""
    naturals = in_order(_naturals(proposed.tiles))
    jokers = (JOKER,) * (len(proposed.tiles) - len(naturals))
    return ProposedMeld(naturals + jokers, MeldKind.GROUP, in_order(proposed.declared))


def _run_orders(proposed: ProposedMeld, shape: RunShape) -> tuple[ProposedMeld, ...]:
    """Returns the orders with consecutive values, the most points first."""
    naturals = _naturals(proposed.tiles)
    by_value = {value_of(t): t for t in naturals}
    if len(by_value) < len(naturals):
        return ()
    runs = shape.runs_with.get((value_of(naturals[0]), len(proposed.tiles)), ())
    fitting = (run for run in runs if by_value.keys() <= set(run))
    return tuple(_run_order(run, by_value, in_order(proposed.declared)) for run in fitting)


def _run_order(run: tuple[int, ...], by_value: Mapping[int, Tile], declared: tuple[Tile, ...]) -> ProposedMeld:
    """Returns tiles as a run of given values, with the declared faces in the order of its jokers if they match."""
    color = color_of(next(iter(by_value.values())))
    tiles = tuple([by_value.get(value, JOKER) for value in run])
    faces = tuple([tile(color, value) for value in run if value not in by_value])
    return ProposedMeld(tiles, MeldKind.RUN, faces if in_order(faces) == declared else declared)


def _order_by_value(proposed: ProposedMeld) -> ProposedMeld:
    """Returns tiles that form no run in the order of a run: by value, jokers in the gaps, the rest at the high end."""
    by_value = sorted(_naturals(proposed.tiles), key=lambda t: (value_of(t), t))
    jokers = len(proposed.tiles) - len(by_value)
    placed = by_value[:1]
    for left, right in pairwise(by_value):
        gap = min(jokers, max(0, value_of(right) - value_of(left) - 1))
        jokers -= gap
        placed += [JOKER] * gap + [right]
    return ProposedMeld(tuple(placed) + (JOKER,) * jokers, MeldKind.RUN, proposed.declared)
