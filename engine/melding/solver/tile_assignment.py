"""Decides which tile of the table or rack goes where in a turn, and which old meld continues as which new one."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, TypeAlias

from engine.melding.melds import Meld, ProposedMeld, as_proposed
from engine.melding.ruleset import Ruleset
from engine.melding.solver.steps import Label, NewMeld, TableMeld
from engine.melding.table import identity
from engine.notation import format_tile
from engine.tiles import JOKER, Tile

RACK: Final = -1
"""The source of a tile of the rack; melds are numbered by their places from 0."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A tile's location: the meld, the place in it, and the faces that the tile stands for there."""

    meld: int
    place: int
    tile: Tile
    faces: frozenset[Tile]


@dataclass(frozen=True, slots=True)
class Route:
    """Where one tile comes from and where it goes.

    Attributes:
        source: Its spot before the turn, or the rack.
        target: Its spot after the turn.
        is_in_place: Whether it is still in the meld of its source, beside the same tiles.
    """

    source: Spot
    target: Spot
    is_in_place: bool

    @property
    def keeps_role(self) -> bool:
        """Returns whether the tile stands for nothing new after the turn."""
        return self.target.faces <= self.source.faces

    @property
    def stays(self) -> bool:
        """Returns whether the tile is in place and keeps its role."""
        return self.is_in_place and self.keeps_role


@dataclass(frozen=True, slots=True)
class Assignment:
    """A turn with a route for each tile of the melds that change.

    Attributes:
        before: The table before the turn.
        after: The table after the turn.
        routes: The routes of all tiles in changed and new melds.
        labels: The labels of changed and new melds, by their places on the table after the turn.
        ruleset: The rules.
    """

    before: tuple[Meld, ...]
    after: tuple[Meld, ...]
    routes: tuple[Route, ...]
    labels: Mapping[int, Label]
    ruleset: Ruleset

    def target(self, label: Label) -> int | None:
        """Returns the place of a labeled meld on the table after the turn; None if the meld is dissolved."""
        return next((target for target, other in self.labels.items() if other == label), None)

    def fits(self, route: Route, target: int | None) -> bool:
        """Returns whether a tile in a meld is where it belongs; a joker of a run may have to change its place there."""
        return route.target.meld == target and (not route.is_in_place or route.keeps_role)

    def finished(self, target: int) -> ProposedMeld:
        """Returns a meld of the table after the turn."""
        return as_proposed(self.after[target], self.ruleset)

    def main_source(self, target: int) -> int:
        """Returns the old meld that gives the most tiles to a new one."""
        given = Counter(route.source.meld for route in self.routes if route.target.meld == target and route.stays)
        return min(given, key=lambda source: (-given[source], source))


PairCounts: TypeAlias = Counter[tuple[int, int]]
"""How many tiles go from an old meld, or the rack, to a new meld."""


def assign_tiles(
    before: tuple[Meld, ...], after: tuple[Meld, ...], ruleset: Ruleset, untouched: tuple[int, ...]
) -> Assignment:
    """Returns the routes of the tiles and the labels of the melds. Raises ValueError if a tile has left the table."""
    sources = tuple(_spots(before, _changed(before, after, untouched)))
    targets = tuple(_spots(after, _changed(after, before)))
    routes = _routes(sources, targets, _continuations(before, after, _common_tiles(sources, targets)))
    staying = Counter((route.source.meld, route.target.meld) for route in routes if route.stays)
    continued = {target: source for source, target in _continuations(before, after, staying).items()}

    def label(target: int) -> Label:
        if target in continued:
            return TableMeld(continued[target] + 1)
        return NewMeld(target + 1, as_proposed(after[target], ruleset))

    labels = {target: label(target) for target in dict.fromkeys(spot.meld for spot in targets)}
    return Assignment(before, after, routes, labels, ruleset)


def _changed(table: tuple[Meld, ...], other: tuple[Meld, ...], untouched: tuple[int, ...] = ()) -> Iterator[int]:
    """Yields the places of the melds of a table that the other table lacks.

    Of equal melds, untouched ones are kept first, then the first ones. Groups in the same order go before groups that
    merely have the same tiles.
    """
    same, alike = Counter(other), Counter(map(identity, (Counter(other) - Counter(table)).elements()))
    for place in dict.fromkeys((*untouched, *range(len(table)))):
        meld = table[place]
        if same[meld]:
            same[meld] -= 1
        elif alike[identity(meld)]:
            alike[identity(meld)] -= 1
        else:
            yield place


def _spots(table: tuple[Meld, ...], places: Iterator[int]) -> Iterator[Spot]:
    for meld in places:
        jokers = iter(table[meld].joker_faces)
        for place, tile in enumerate(table[meld].tiles):
            yield Spot(meld, place, tile, frozenset(next(jokers) if tile == JOKER else (tile,)))


def _common_tiles(sources: tuple[Spot, ...], targets: tuple[Spot, ...]) -> PairCounts:
    """Returns upper bounds on the tiles that pairs of an old and a new meld share."""
    return Counter(
        (source.meld, target.meld)
        for source in sources
        for target in targets
        if source.tile == target.tile and target.faces <= source.faces
    )


def _continuations(before: tuple[Meld, ...], after: tuple[Meld, ...], common: PairCounts) -> dict[int, int]:
    """Returns which old meld continues as which new one, so that most tiles stay; ties go to the same kind."""
    old, new = (sorted({pair[side] for pair in common}) for side in (0, 1))
    weights = [[_weight(before[one], after[other], common[one, other]) for other in new] for one in old]
    return {old[row]: new[column] for row, column in _best_matching(weights).items()}


def _weight(old: Meld, new: Meld, common: int) -> int:
    return 2 * common + (old.kind is new.kind) if common else 0


def _routes(
    sources: tuple[Spot, ...], targets: tuple[Spot, ...], continuations: Mapping[int, int]
) -> tuple[Route, ...]:
    """Returns a route for each tile, face by face: first faces with one way only, then the others along with them."""
    old, new = _by_tile(sources), _by_tile(targets)
    for tile in old.keys() | new.keys():
        old[tile] += _rack_spots(tile, len(new[tile]) - len(old[tile]))
    order = sorted(new, key=lambda tile: (_meld_count(old[tile]) * _meld_count(new[tile]), tile))
    assigned: dict[Tile, tuple[Route, ...]] = {}
    for _ in range(2):  # in the first pass the first faces do not know the routes of the others yet
        for tile in order:
            others = {_ends(route) for other, routes in assigned.items() if other != tile for route in routes}
            assigned[tile] = _matched_copies(old[tile], new[tile], continuations, others)
    return tuple(route for routes in assigned.values() for route in routes)


def _by_tile(spots: tuple[Spot, ...]) -> defaultdict[Tile, list[Spot]]:
    found: defaultdict[Tile, list[Spot]] = defaultdict(list)
    for spot in spots:
        found[spot.tile].append(spot)
    return found


def _rack_spots(tile: Tile, count: int) -> list[Spot]:
    if count < 0:
        raise ValueError(f"{format_tile(tile)} has left the table")
    return [Spot(RACK, place, tile, frozenset((tile,))) for place in range(count)]


def _meld_count(spots: list[Spot]) -> int:
    return len({spot.meld for spot in spots})


def _ends(route: Route) -> tuple[int, int]:
    return route.source.meld, route.target.meld


def _matched_copies(
    sources: list[Spot], targets: list[Spot], continuations: Mapping[int, int], others: set[tuple[int, int]]
) -> tuple[Route, ...]:
    """Returns the routes of the copies of one face: they stay if they can, else they go along with other tiles."""

    def preference(source: Spot, target: Spot) -> int:
        if continuations.get(source.meld) == target.meld:
            return 5 if target.faces <= source.faces else 3
        return 2 if (source.meld, target.meld) in others else 1

    pairs = _best_matching([[preference(source, target) for target in targets] for source in sources])
    return tuple(Route(sources[one], targets[other], sources[one].meld != RACK) for one, other in sorted(pairs.items()))


def _best_matching(weights: Sequence[Sequence[int]]) -> dict[int, int]:
    """Returns a bipartite matching of rows to columns with the greatest total weight; a weight of 0 is no edge."""
    holders: dict[int, int] = {}
    while path := _best_augmenting_path(weights, holders):
        holders |= {column: row for row, column in path}
    return {row: column for column, row in sorted(holders.items())}


_Path: TypeAlias = tuple[tuple[int, int], ...]


def _best_augmenting_path(weights: Sequence[Sequence[int]], holders: Mapping[int, int]) -> _Path:
    """Returns the augmenting path that adds the most weight; empty if none adds any."""
    free = [row for row in range(len(weights)) if row not in holders.values()]
    paths: dict[int, tuple[int, _Path]] = dict.fromkeys(free, (0, ()))
    best: tuple[int, _Path] = (0, ())
    for row in free:  # grows while rows are found that could give up their column
        for column in (column for column, weight in enumerate(weights[row]) if weight):
            total, path = paths[row][0] + weights[row][column], (*paths[row][1], (row, column))
            holder = holders.get(column)
            if holder is None:
                best = max(best, (total, path), key=itemgetter(0))
            elif holder not in paths or total - weights[holder][column] > paths[holder][0]:
                paths[holder] = total - weights[holder][column], path
                free.append(holder)
    return best[1]
