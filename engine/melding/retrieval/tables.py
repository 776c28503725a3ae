"""Facts that the search derives from the two tables of a play, each computed once."""

from collections import Counter
from collections.abc import Hashable, Set
from dataclasses import dataclass
from itertools import permutations
from typing import Final, NamedTuple

from engine.effort import Effort
from engine.lazy import lazy_property
from engine.melding.melds import Meld
from engine.melding.retrieval.demands import Demands
from engine.melding.table import Melds, identity
from engine.tiles import JOKER, Tile

RACK: Final = -1
"""The source of a played tile. The source of any other tile is the index of its old meld."""


@dataclass(frozen=True, slots=True, eq=False)
class Joker:
    """A joker of a table.

    Attributes:
        meld: The index of its meld.
        index: Its index in the meld.
        faces: The faces that it may stand for.
        role: The number, among the jokers of the table, of the first one in its meld with the same faces. Jokers with
            the same role are interchangeable.
    """

    meld: int
    index: int
    faces: frozenset[Tile]
    role: int


class FromOneOf(NamedTuple):
    """A condition: a tile of a new meld came from one of certain sources."""

    face: Tile
    new: int
    sources: frozenset[int]


class AtLeast(NamedTuple):
    """A condition: at least a minimum of certain tiles, (face, new meld, source), came from their source."""

    minimum: int
    origins: frozenset[tuple[Tile, int, int]]


Conditions = frozenset[FromOneOf | AtLeast]
"""Conditions that must all hold. They are tuples because they are compared very often."""

NO_CONDITIONS: Final[Conditions] = frozenset()

Assignment = tuple[tuple[int, int], ...]
"""Where the copies of a face came from: (new meld, source) of each."""


@dataclass(frozen=True)
class Tables:
    """The melds before and after, the tiles played, and the steps left for the search."""

    before: Melds
    after: Melds
    played: Counter[Tile]
    effort: Effort

    @lazy_property
    def old_jokers(self) -> tuple[Joker, ...]:
        """The jokers of the old table."""
        return _jokers(self.before)

    @lazy_property
    def new_jokers(self) -> tuple[Joker, ...]:
        """The jokers of the new table: the positions of the old jokers and of those from the rack."""
        return _jokers(self.after)

    @lazy_property
    def old_jokers_in(self) -> dict[int, tuple[Joker, ...]]:
        """The jokers of each old meld that has any."""
        return {joker.meld: tuple(j for j in self.old_jokers if j.meld == joker.meld) for joker in self.old_jokers}

    @lazy_property
    def new_joker_count(self) -> Counter[int]:
        """The number of jokers of each new meld."""
        return Counter(joker.meld for joker in self.new_jokers)

    @lazy_property
    def new_role_count(self) -> Counter[int]:
        """The number of new jokers of each role."""
        return Counter(joker.role for joker in self.new_jokers)

    @lazy_property
    def previous_twin(self) -> dict[int, int]:
        """For each new meld with jokers that equals an earlier one: the last earlier one."""
        last: dict[Hashable, int] = {}
        found = {}
        for new in self.new_joker_count:
            key = identity(self.after[new])
            if key in last:
                found[new] = last[key]
            last[key] = new
        return found

    @lazy_property
    def old_naturals(self) -> tuple[frozenset[Tile], ...]:
        """The numbered tiles of each old meld. A meld has each face at most once."""
        return tuple(map(_naturals, self.before))

    @lazy_property
    def new_naturals(self) -> tuple[frozenset[Tile], ...]:
        """The numbered tiles of each new meld."""
        return tuple(map(_naturals, self.after))

    @lazy_property
    def contained_in(self) -> tuple[frozenset[int], ...]:
        """For each new meld: the old melds all of whose numbered faces it has."""
        return tuple(
            frozenset(old for old, faces in enumerate(self.old_naturals) if faces <= new) for new in self.new_naturals
        )

    @lazy_property
    def sources(self) -> dict[Tile, tuple[int, ...]]:
        """The sources of the copies of each face: old melds, and the rack."""
        found: dict[Tile, list[int]] = {}
        for meld, faces in enumerate(self.old_naturals):
            for face in faces:
                found.setdefault(face, []).append(meld)
        for face, copies in self.played.items():
            found.setdefault(face, []).extend([RACK] * copies)
        return {face: tuple(melds) for face, melds in found.items()}

    @lazy_property
    def targets(self) -> dict[Tile, tuple[int, ...]]:
        """The new melds of the copies of each face."""
        found: dict[Tile, list[int]] = {}
        for meld, faces in enumerate(self.new_naturals):
            for face in faces:
                found.setdefault(face, []).append(meld)
        return {face: tuple(melds) for face, melds in found.items()}

    @lazy_property
    def all_sources(self) -> frozenset[int]:
        """Every source: the rack, and the old melds."""
        return frozenset({RACK, *range(len(self.before))})

    def assignments(self, face: Tile) -> tuple[Assignment, ...]:
        """Returns every assignment of sources to the copies of a face."""
        if face not in self.known_assignments:
            orders = set(permutations(self.sources[face]))
            self.known_assignments[face] = tuple(tuple(zip(self.targets[face], order, strict=True)) for order in orders)
        return self.known_assignments[face]

    @lazy_property
    def known_assignments(self) -> dict[Tile, tuple[Assignment, ...]]:
        """Cache of `assignments`."""
        return {}

    @lazy_property
    def known_possible(self) -> dict[Demands, bool]:
        """Cache of `search.is_possible`."""
        return {}

    @lazy_property
    def known_elsewhere(self) -> dict[tuple[int, int], AtLeast]:
        """Cache of `conditions.not_all_in`."""
        return {}

    @lazy_property
    def known_satisfiable(self) -> dict[Conditions, bool]:
        """Cache of `origins.are_satisfiable`."""
        return {}

    @lazy_property
    def known_unlockable(self) -> dict[bool, Set[int]]:
        """Cache of the sources of replacements in mode LOCKED, by `Demands.both_colors`."""
        return {}

    @lazy_property
    def known_replaceable(self) -> dict[Hashable, bool]:
        """Cache of `replacements.may_be_retrieved`."""
        return {}

    @lazy_property
    def known_unlocked(self) -> dict[Hashable, set[Conditions]]:
        """Cache of `replacements.are_unlocked`."""
        return {}


def _jokers(table: Melds) -> tuple[Joker, ...]:
    found: list[Joker] = []
    for number, meld in enumerate(table):
        roles: dict[frozenset[Tile], int] = {}
        indexes = (index for index, t in enumerate(meld.tiles) if t == JOKER)
        for index, faces in zip(indexes, map(frozenset, meld.joker_faces), strict=True):
            found.append(Joker(number, index, faces, roles.setdefault(faces, len(found))))
    return tuple(found)


def _naturals(meld: Meld) -> frozenset[Tile]:
    return frozenset(t for t in meld.tiles if t != JOKER)
