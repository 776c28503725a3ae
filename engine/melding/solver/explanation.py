"""Finds short steps from the table before a turn to the table after it.

The rules depend on these two tables only, and copies of a face are interchangeable (docs/rules.md, Retrieval). So a
turn can be played in many ways; this is a short one. Melds may be unfinished between two steps.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import groupby
from typing import Final, TypeAlias

from engine.melding.melds import Meld, MeldKind, ProposedMeld
from engine.melding.ruleset import SABRA, Ruleset
from engine.melding.solver.steps import (
    Arrange,
    Extend,
    FromMeld,
    FromRack,
    Join,
    Label,
    LayJokers,
    NewMeld,
    Part,
    Place,
    Pull,
    Split,
    Step,
    Substitute,
    TableMeld,
    Take,
)
from engine.melding.solver.tile_assignment import Assignment, Route, assign_tiles
from engine.tiles import JOKER, Tile


def explain(
    before: tuple[Meld, ...],
    after: tuple[Meld, ...],
    ruleset: Ruleset = SABRA,
    pulled: tuple[Tile, ...] = (),
    untouched: tuple[int, ...] = (),
) -> tuple[Step, ...]:
    """Returns steps from one table to another; additional tiles come from the rack. Deterministic.

    Melds that both tables have are not touched. Every other old meld continues as the meld with which it shares most
    tiles. If a face moves to several melds, its copies go where fewest steps are needed; this is a greedy choice.

    Args:
        before: The table before the turn.
        after: The table after the turn.
        ruleset: The rules, which determine the joker declarations.
        pulled: The tiles pulled from the River, oldest first (turn_draw TWO_RIVER).
        untouched: The places (from 0) of the melds that stay (LegalTurn.untouched); they decide among equal melds.

    Raises:
        ValueError: A tile of the table before is missing from the table after.
    """
    turn = assign_tiles(before, after, ruleset, untouched)
    steps: list[Step] = [Pull(pulled)] if pulled else []
    bench = _initial_bench(turn)
    for phase in _PHASES:
        for operation in tuple(phase(turn, bench)):
            is_visible = _is_visible(turn, bench, operation)
            bench, step = _applied(turn, bench, operation)
            steps += [step] * is_visible
    return tuple(steps)


class _Pile(Enum):
    """A location of tiles outside melds."""

    RACK = auto()
    FREE = auto()
    """Jokers that another tile has replaced."""


_Location: TypeAlias = Label | _Pile

_Bench: TypeAlias = Mapping[_Location, tuple[Route, ...]]
"""The tiles, as routes, at each location at some moment of the turn."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """Splits a meld into parts."""

    meld: TableMeld
    parts: tuple[tuple[Label, tuple[Route, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Swap:
    """Puts a tile in the place of a joker."""

    meld: Label
    joker: Route
    route: Route
    origin: _Location


@dataclass(frozen=True, slots=True)
class _Carry:
    """Moves tiles to their meld; if they are in it already, to their places there."""

    meld: Label
    routes: tuple[Route, ...]
    origin: _Location


_Operation: TypeAlias = _Cut | _Swap | _Carry


def _initial_bench(turn: Assignment) -> _Bench:
    bench: dict[_Location, tuple[Route, ...]] = {}
    for route in sorted(turn.routes, key=lambda route: (route.source.meld, route.source.place)):
        location = TableMeld(route.source.meld + 1) if route.is_in_place else _Pile.RACK
        bench[location] = (*bench.get(location, ()), route)
    return bench


def _melds_on(turn: Assignment, bench: _Bench) -> Iterator[tuple[Label, int]]:
    """Yields the melds on the bench that the table after the turn has."""
    return ((label, target) for target, label in turn.labels.items() if label in bench)


# Applying operations


def _applied(turn: Assignment, bench: _Bench, operation: _Operation) -> tuple[_Bench, Step]:
    """Returns the bench after an operation, and the operation as a step."""
    match operation:
        case _Cut(meld, parts):
            bench = {**bench, **dict(parts)}
            return bench, Split(meld, tuple(Part(label, _laid(turn, bench, label)) for label, _ in parts))
        case _Swap(meld, joker, route, origin):
            source = replace(joker.source, tile=route.source.tile)
            bench = _moved(_without(bench, origin, (route,)), meld, (joker,), _Pile.FREE)
            bench = _with(bench, meld, (replace(route, source=source, is_in_place=joker.is_in_place),))
            tile_source = FromRack() if isinstance(origin, _Pile) else FromMeld(origin, _laid(turn, bench, origin))
            return bench, Substitute(meld, route.source.tile, tile_source, _laid(turn, bench, meld))
        case _Carry(meld, routes, origin):
            return _moved(bench, origin, routes, meld), _carry_step(turn, bench, operation)


def _without(bench: _Bench, origin: _Location, routes: tuple[Route, ...]) -> _Bench:
    left = {**bench, origin: tuple(route for route in bench[origin] if route not in routes)}
    return {location: present for location, present in left.items() if present}


def _with(bench: _Bench, location: _Location, routes: tuple[Route, ...]) -> _Bench:
    return {**bench, location: (*bench.get(location, ()), *routes)}


def _moved(bench: _Bench, origin: _Location, routes: tuple[Route, ...], location: _Location) -> _Bench:
    """Returns the bench after some tiles have moved; they are no longer in place."""
    return _with(
        _without(bench, origin, routes), location, tuple(replace(route, is_in_place=False) for route in routes)
    )


def _carry_step(turn: Assignment, bench: _Bench, carry: _Carry) -> Step:
    meld, origin = carry.meld, carry.origin
    moved = _moved(bench, origin, carry.routes, meld)
    tiles = tuple(route.source.tile for route in carry.routes)
    laid = _laid(turn, moved, meld)
    if origin == meld:
        return Arrange(meld, laid)
    if origin is _Pile.FREE:
        return LayJokers(len(tiles), meld, laid)
    if isinstance(origin, _Pile):
        is_first = isinstance(meld, NewMeld) and meld not in bench
        return Place(tiles, meld, laid) if isinstance(meld, NewMeld) and is_first else Extend(tiles, meld, laid)
    left = _laid(turn, moved, origin)
    return Take(FromMeld(origin, left), tiles, meld, laid) if left.tiles else Join(origin, tiles, meld, laid)


def _is_visible(turn: Assignment, bench: _Bench, operation: _Operation) -> bool:
    """Returns whether an operation is a step of its own.

    A joker that only changes its role without moving is not, if other steps of its meld show the new role.
    """
    if not isinstance(operation, _Carry) or operation.origin != operation.meld:
        return True
    moved = _moved(bench, operation.meld, operation.routes, operation.meld)
    return _is_untouched(turn, bench, operation.meld) or _laid(turn, moved, operation.meld) != _laid(
        turn, bench, operation.meld
    )


def _is_untouched(turn: Assignment, bench: _Bench, label: Label) -> bool:
    """Returns whether no tile has left a meld of the table and none joins it."""
    target = turn.target(label)
    is_full = target is not None and len(turn.after[target].tiles) == len(bench[label])
    return is_full and bench[label] == _initial_bench(turn).get(label)


# The tiles of a meld in the middle of a turn


def _laid(turn: Assignment, bench: _Bench, label: Label) -> ProposedMeld:
    """Returns a meld: in its final form if all its tiles have come, else the tiles that are there."""
    routes, target = bench.get(label, ()), turn.target(label)
    tiles = tuple(route.source.tile for route in _in_order(turn, routes, target))
    if target is None or any(route.target.meld != target for route in routes):
        return ProposedMeld(tiles)
    after = turn.after[target]
    is_complete = len(tiles) == len(after.tiles) and (after.kind is MeldKind.GROUP or tiles == after.tiles)
    return turn.finished(target) if is_complete else ProposedMeld(tiles)


def _target_place(route: Route) -> int:
    return route.target.place


def _source_place(route: Route) -> int:
    return route.source.place


def _in_place(routes: tuple[Route, ...]) -> list[Route]:
    return sorted((route for route in routes if route.is_in_place), key=_source_place)


def _added(routes: tuple[Route, ...]) -> list[Route]:
    return sorted((route for route in routes if not route.is_in_place), key=_target_place)


def _in_order(turn: Assignment, routes: tuple[Route, ...], target: int | None) -> list[Route]:
    """Returns the tiles of a meld from left to right: old ones in their old order, new ones at their final places."""
    ordered, added = _in_place(routes), _added(routes)
    if target is not None and turn.after[target].kind is MeldKind.GROUP:
        return ordered + added
    for route in added:
        places = {_target_place(other): at for at, other in enumerate(ordered) if turn.fits(other, target)}
        ordered.insert(_insertion_index(route, places), route)
    return ordered


def _insertion_index(route: Route, places: Mapping[int, int]) -> int:
    """Returns where a tile is inserted: after its left neighbor, else before its right neighbor, else first.

    Args:
        route: The tile.
        places: The index of each tile that is where it belongs, by its place in the final meld.
    """
    left = max((place for place in places if place < _target_place(route)), default=None)
    right = min((place for place in places if place > _target_place(route)), default=None)
    if left is not None:
        return places[left] + 1
    return 0 if right is None else places[right]


# The operations in the order of the phases: first those that make room


def _cuts(turn: Assignment, bench: _Bench) -> Iterator[_Operation]:
    """Yields the melds that are split to start new melds."""
    for label, routes in bench.items():
        target = turn.target(label) if isinstance(label, TableMeld) else None
        if isinstance(label, TableMeld) and target is not None:
            owners = _owners(turn, routes, target)
            if len(owners) > 1:
                yield _Cut(label, _parts(turn, routes, owners))


def _owners(turn: Assignment, routes: tuple[Route, ...], target: int) -> tuple[int, ...]:
    """Returns the melds that get a part of a meld: its continuation, and new melds that start with a part.

    A new meld starts with its largest part from the table, if that has two tiles or more and a run can be cut so.
    """
    sizes = Counter(route.target.meld for route in routes if route.keeps_role)
    owners: tuple[int, ...] = (target,)
    for new in sorted(sizes, key=lambda new: (-sizes[new], new)):
        if _starts_here(turn, routes, new, sizes[new]) and _can_be_cut(turn, routes, (*owners, new)):
            owners = (*owners, new)
    return owners


def _starts_here(turn: Assignment, routes: tuple[Route, ...], new: int, size: int) -> bool:
    is_new = isinstance(turn.labels[new], NewMeld)
    return is_new and size > 1 and turn.main_source(new) == routes[0].source.meld


def _can_be_cut(turn: Assignment, routes: tuple[Route, ...], owners: tuple[int, ...]) -> bool:
    """Returns whether all parts have the meld's kind, and the tiles of each part of a run are contiguous."""
    kind = turn.before[routes[0].source.meld].kind
    parts = [owner for owner, _ in groupby(route.target.meld for route in routes if route.target.meld in owners)]
    is_contiguous = kind is MeldKind.GROUP or len(parts) == len(owners)
    return is_contiguous and all(turn.after[owner].kind is kind for owner in owners)


def _parts(
    turn: Assignment, routes: tuple[Route, ...], owners: tuple[int, ...]
) -> tuple[tuple[Label, tuple[Route, ...]], ...]:
    """Returns the parts from left to right. Other tiles stay with a neighbor for now, if possible in the old meld."""
    parts: dict[Label, tuple[Route, ...]] = {}
    for place, route in enumerate(routes):
        label = turn.labels[_owner_at(routes, owners, place)]
        parts[label] = (*parts.get(label, ()), route)
    return tuple(parts.items())


def _owner_at(routes: tuple[Route, ...], owners: tuple[int, ...], place: int) -> int:
    if routes[place].target.meld in owners:
        return routes[place].target.meld
    left = [route.target.meld for route in routes[:place] if route.target.meld in owners][-1:]
    right = [route.target.meld for route in routes[place:] if route.target.meld in owners][:1]
    return min(left + right, key=owners.index)


def _swaps(turn: Assignment, bench: _Bench) -> Iterator[_Operation]:
    """Yields the jokers that leave their places to tiles that join the meld."""
    for label, target in _melds_on(turn, bench):
        joining = list(_joining_tiles(bench, label, target))
        for joker in bench[label]:
            found = next((one for one in joining if _replaces(one[1], joker, target)), None)
            if found:
                joining.remove(found)
                yield _Swap(label, joker, found[1], found[0])


def _joining_tiles(bench: _Bench, label: Label, target: int) -> Iterator[tuple[_Location, Route]]:
    """Yields the numbered tiles that join a meld, with their locations."""
    for origin, routes in bench.items():
        if origin != label:
            yield from (
                (origin, route) for route in routes if route.target.meld == target and route.source.tile != JOKER
            )


def _replaces(route: Route, joker: Route, target: int) -> bool:
    """Returns whether a tile takes the place of a joker, which must be one that leaves its place."""
    if joker.source.tile != JOKER or (joker.target.meld == target and joker.keeps_role):
        return False
    return route.source.tile in joker.source.faces


def _shifts(turn: Assignment, bench: _Bench) -> Iterator[_Operation]:
    """Yields the tiles that change their places within a meld.

    They are jokers that change their roles, or all tiles of a run that goes around and starts elsewhere.
    """
    for label, target in _melds_on(turn, bench):
        staying = [route for route in bench[label] if route.target.meld == target and route.is_in_place]
        is_rotated = turn.after[target].kind is MeldKind.RUN and _is_rotated(staying)
        shifted = tuple(route for route in staying if is_rotated or not route.keeps_role)
        if shifted:
            yield _Carry(label, shifted, label)


def _is_rotated(staying: list[Route]) -> bool:
    ordered = sorted((route for route in staying if route.keeps_role), key=_source_place)
    return ordered != sorted(ordered, key=_target_place)


def _takes(turn: Assignment, bench: _Bench) -> Iterator[_Operation]:
    """Yields the tiles that come from other melds."""
    return (carry for carry in _carries(turn, bench) if not isinstance(carry.origin, _Pile))


def _carries(turn: Assignment, bench: _Bench) -> Iterator[_Carry]:
    """Yields the tiles that join each meld: first from the table, then from the rack, then free jokers."""
    for target, label in turn.labels.items():
        for origin in sorted(bench, key=_origin_order):
            load = tuple(sorted((route for route in bench[origin] if route.target.meld == target), key=_target_place))
            if load and origin != label:
                yield _Carry(label, load, origin)


def _origin_order(origin: _Location) -> tuple[int, int]:
    if isinstance(origin, TableMeld):
        return 0, origin.place
    if isinstance(origin, NewMeld):
        return 1, origin.place
    return (2, 0) if origin is _Pile.RACK else (3, 0)


def _declarations(turn: Assignment, bench: _Bench) -> Iterator[_Operation]:
    """Yields the melds whose tiles all stay, and which only change their order or declarations."""
    return (_Carry(label, (), label) for label, _ in _melds_on(turn, bench) if _is_untouched(turn, bench, label))


_PHASES: Final = (_cuts, _swaps, _takes, _shifts, _carries, _declarations)
