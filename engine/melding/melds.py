"""Reads an ordered list of tiles as a group or a run, or gives the reasons why it is neither (R11 to R20).

The order of tiles determines what a joker in a run stands for. One numbered tile
with jokers can form both kinds: it is a run unless the kind is stated or the declared faces fit only a group
(jokers_declaration). Under meld_order CANONICALISE, tiles are put into canonical order before they are read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

from engine.melding.meld_shapes import (
    Meld,
    MeldKind,
    NotAMeld,
    ProposedMeld,
    as_group,
    as_run,
    is_more_of_a_group,
    naturals_of,
    neither_reason,
    run_of,
)
from engine.melding.ruleset import JokersDeclaration, JokersMaxPerMeld, MeldOrder, Ruleset
from engine.melding.run_shape import MIN_TILES, RunShape, run_shape
from engine.melding.twist.reading import read_with_special_jokers
from engine.tiles import DOUBLE_JOKER, JOKER, JOKERS, SPECIAL_JOKERS, Tile, color_of, in_order, tile, value_of
from engine.violations import Reason

__all__ = [
    "Meld",
    "MeldKind",
    "NotAMeld",
    "ProposedMeld",
    "as_proposed",
    "canonical_order",
    "declared_faces",
    "joker_points",
    "must_declare",
    "read_meld",
]


def joker_points(meld: Meld) -> tuple[int, ...]:
    """Returns the points of each joker of a meld, from left to right: two of a double joker, none of a mirror (R20)."""
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
    is_open = ruleset.geometry_colors - len(naturals_of(meld.tiles)) > 1
    return is_open and len(meld.joker_faces[0]) == 1 and SPECIAL_JOKERS.isdisjoint(meld.tiles)


def as_proposed(meld: Meld, ruleset: Ruleset) -> ProposedMeld:
    """Returns a proposal that the same ruleset reads as the same meld."""
    return ProposedMeld(meld.tiles, meld.kind, declared_faces(meld, ruleset))


def read_meld(proposed: ProposedMeld, ruleset: Ruleset) -> Meld | NotAMeld:
    """Returns tiles read as a meld (R11 to R20, W-1 to W-10; options geometry, meld_order, runs and jokers)."""
    tiles = proposed.tiles
    if not tiles:
        return NotAMeld(tiles, (Reason.MELD_EMPTY,))
    highest = max(tiles)
    if highest >= JOKER and not all(map(ruleset.copies_of, tiles)):  # smaller numbers are tiles of every game
        return NotAMeld(tiles, (Reason.TILE_UNKNOWN,))
    if len(tiles) < MIN_TILES:
        return NotAMeld(tiles, (Reason.MELD_TOO_SHORT,))
    if JOKERS.issuperset(tiles):
        return NotAMeld(tiles, (Reason.MELD_ALL_JOKERS,))
    if highest >= DOUBLE_JOKER:  # the special jokers have the highest numbers
        return read_with_special_jokers(proposed, ruleset)
    if ruleset.meld_order is MeldOrder.CANONICALISE:
        proposed = canonical_order(proposed, ruleset)
    shape = _shape(proposed, ruleset)
    reasons = _reasons(proposed, shape, ruleset)
    if isinstance(shape, Reason) or reasons:
        return NotAMeld(proposed.tiles, reasons, _suggested_order(proposed, reasons, ruleset))
    return replace(shape, joker_faces=tuple((t,) for t in proposed.declared)) if proposed.declared else shape


def _shape(proposed: ProposedMeld, ruleset: Ruleset) -> Meld | Reason:
    """Returns the meld of the stated or the fitting kind, regardless of the rules on jokers, or why there is none."""
    tiles, naturals = proposed.tiles, naturals_of(proposed.tiles)
    if proposed.kind is not None:
        as_stated, as_other = (as_run, as_group) if proposed.kind is MeldKind.RUN else (as_group, as_run)
        shape = as_stated(tiles, naturals, ruleset)
        if isinstance(shape, Meld) or shape is Reason.JOKERS_ADJACENT:
            return shape
        return Reason.MELD_KIND_MISMATCH if isinstance(as_other(tiles, naturals, ruleset), Meld) else shape
    group = as_group(tiles, naturals, ruleset)
    if isinstance(group, Meld) and len(naturals) > 1:
        return group
    run = as_run(tiles, naturals, ruleset)
    if isinstance(group, Meld):
        return group if isinstance(run, Reason) else _run_or_group(proposed.declared, run, group, ruleset)
    return run if isinstance(run, Meld) else neither_reason(tiles, naturals, run, group, run_shape(ruleset))


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
    return is_more_of_a_group(naturals_of(proposed.tiles)) if proposed.kind is None else proposed.kind is MeldKind.GROUP


def _faults(order: ProposedMeld, ruleset: Ruleset) -> tuple[Reason, ...]:
    """Returns every reason why an order is no meld of its kind."""
    as_kind = as_run if order.kind is MeldKind.RUN else as_group
    return _reasons(order, as_kind(order.tiles, naturals_of(order.tiles), ruleset), ruleset)


def _misplaces(order: ProposedMeld, ruleset: Ruleset) -> bool:
    """Returns whether a joker is not where its declared face belongs."""
    if not order.declared:
        return False
    naturals = naturals_of(order.tiles)
    is_run = order.kind is MeldKind.RUN
    meld = run_of(order.tiles, naturals, run_shape(ruleset)) if is_run else as_group(order.tiles, naturals, ruleset)
    return isinstance(meld, Reason) or not _is_possible(order.declared, meld)


def _group_order(proposed: ProposedMeld) -> ProposedMeld:
    """Returns the numbered tiles in the order of colors, then the jokers."""
    naturals = in_order(naturals_of(proposed.tiles))
    jokers = (JOKER,) * (len(proposed.tiles) - len(naturals))
    return ProposedMeld(naturals + jokers, MeldKind.GROUP, in_order(proposed.declared))


def _run_orders(proposed: ProposedMeld, shape: RunShape) -> tuple[ProposedMeld, ...]:
    """Returns the orders with consecutive values, the most points first."""
    naturals = naturals_of(proposed.tiles)
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
    by_value = sorted(naturals_of(proposed.tiles), key=lambda t: (value_of(t), t))
    jokers = len(proposed.tiles) - len(by_value)
    placed = by_value[:1]
    for left, right in pairwise(by_value):
        gap = min(jokers, max(0, value_of(right) - value_of(left) - 1))
        jokers -= gap
        placed += [JOKER] * gap + [right]
    return ProposedMeld(tuple(placed) + (JOKER,) * jokers, MeldKind.RUN, proposed.declared)
