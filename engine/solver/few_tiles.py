"""The best turn of few tiles, where it matters which meld a tile or a joker came from.

Every partition of the tiles into melds is tried, the cheapest first, until the rules allow one. The rules are not asked
about melds that may not lie, nor about partitions in which a joker or a meld of the table has no place.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from engine.matching import unpaired
from engine.melds import Meld
from engine.play import identity
from engine.solver.constraints import (
    Constraint,
    ConstraintContext,
    GrowthConstraint,
    can_be_retrieved_in,
    joker_constraints,
    meld_constraints,
)
from engine.solver.meld_enumeration import possible_melds, useful_declarations
from engine.solver.partitions import Partition, Partitions
from engine.solver.restricted_problem import (
    NODES_PER_JUDGEMENT,
    Melds,
    RestrictedProblem,
    RestrictedTurn,
    keeps_contract,
    tiles_of,
)
from engine.tiles import JOKER

MOST_TILES = 30
"""The most tiles that are few: table and rack together. With more, the search by claims is often faster."""

MOST_NODES = 10_000
"""The most nodes for a search of few tiles. With two jokers and 18 tiles it takes 3,000 at most."""


def is_small(restricted: RestrictedProblem) -> bool:
    """Whether there are so few tiles that all their partitions can be tried."""
    return restricted.tiles.total() <= MOST_TILES


def best_small_turn(restricted: RestrictedProblem, below: int) -> RestrictedTurn | None:
    """The best turn that costs less than a limit, with the fewest melds changed; None if there is none.

    Raises:
        OutOfBudget: The meter's budget or MOST_NODES are spent.
    """
    restricted = replace(restricted, meter=restricted.meter.part(MOST_NODES))
    finder = _TurnFinder(restricted)
    partitions = Partitions(
        restricted.problem_with(restricted.changeable_places),
        finder.melds(),
        restricted.changeable_melds,
        restricted.meter,
    )
    for total in partitions.totals(below):
        for partition in partitions.of_total(total):
            turn = finder.turn(partition, total.cost)
            if turn:
                return turn
    return None


class _TurnFinder:
    """Tells which melds a turn may contain, and which partitions are turns."""

    def __init__(self, restricted: RestrictedProblem) -> None:
        self.restricted = restricted
        self.ruleset = restricted.problem.ruleset
        context = ConstraintContext(
            restricted.table,
            restricted.changeable_melds,
            restricted.initial_meld,
            restricted.available,
            self.ruleset,
            restricted.meter,
        )
        self.joker_constraints = joker_constraints(context)
        self.meld_constraints = meld_constraints(context)
        self.playable = context.playable
        self.table_tiles = tiles_of(restricted.table)
        self.placement_results: dict[Partition, bool] = {}

    def melds(self) -> list[Meld]:
        """The melds that a turn may lay, in a fixed order."""
        restricted = self.restricted
        found = {}
        for meld in possible_melds(restricted.tiles, self.ruleset):
            restricted.meter.count()
            for reading in (meld, *useful_declarations(meld, restricted.table, self.ruleset)):
                if self._is_possible(reading):
                    found[identity(reading)] = reading
        for meld in sorted(restricted.changeable_melds, key=lambda old: (old.kind.name, *identity(old)[1:])):
            found.setdefault(identity(meld), meld)
        return list(found.values())

    def _is_possible(self, meld: Meld) -> bool:
        return self._keeps_contract(meld) and self._has_jokers_for(meld) and self._has_grown(meld)

    def _keeps_contract(self, meld: Meld) -> bool:
        """A meld against the contract is made of the table's tiles."""
        return keeps_contract(meld, self.ruleset) or Counter(meld.tiles) <= self.table_tiles

    def _has_jokers_for(self, meld: Meld) -> bool:
        """Each joker of a meld is one of the rack, or one of the table that may lie there."""
        of_table = len(meld.joker_faces) - self.playable[JOKER]
        if of_table <= 0 or not self.joker_constraints:
            return True
        return of_table <= sum(constraint.is_satisfied_by(meld) for constraint in self.joker_constraints)

    def _has_grown(self, meld: Meld) -> bool:
        """Where melds may only grow, each meld is one that did, or it is made of faces played."""
        grown = [constraint for constraint in self.meld_constraints if isinstance(constraint, GrowthConstraint)]
        return (
            not grown
            or any(constraint.is_satisfied_by(meld) for constraint in grown)
            or Counter(meld.tiles) <= self.playable
        )

    def turn(self, partition: Partition, cost: int) -> RestrictedTurn | None:
        """A partition as a turn, if the rules allow it."""
        restricted = self.restricted
        if not (self._can_place_jokers(partition) and self._can_place_melds(partition)):
            return None
        kept = _kept_places(partition, restricted.table)
        new = (*restricted.initial_meld, *(piece.meld for piece in partition if not piece.is_kept))
        changed = restricted.changeable_places - kept
        restricted.meter.count(NODES_PER_JUDGEMENT)
        if not restricted.is_legal(new, restricted.all_places - changed):
            return None
        return RestrictedTurn(cost, changed, new, is_least_change=True)

    def _can_place_jokers(self, partition: Partition) -> bool:
        """Whether the jokers of the table may have come to the places of jokers."""
        pieces = tuple([piece for piece in partition if piece.meld.joker_faces])
        if self.joker_constraints and pieces not in self.placement_results:
            self.placement_results[pieces] = self._can_be_placed(pieces)
        return self.placement_results.get(pieces, True)

    def _can_be_placed(self, pieces: Partition) -> bool:
        restricted = self.restricted
        melds = restricted.initial_meld + _melds_of(pieces)
        places = [meld for meld in melds for _ in meld.joker_faces]
        if not _can_all_be_satisfied(self.joker_constraints, places):
            return False
        restricted.meter.count(NODES_PER_JUDGEMENT)
        return can_be_retrieved_in(melds, restricted.table, self.playable, self.ruleset)

    def _can_place_melds(self, partition: Partition) -> bool:
        """Whether each meld of the table may have become one of its own, where it must."""
        return not self.meld_constraints or _can_all_be_satisfied(
            self.meld_constraints, self.restricted.initial_meld + _melds_of(partition)
        )


def _melds_of(pieces: Partition) -> Melds:
    return tuple([piece.meld for piece in pieces])


def _can_all_be_satisfied(constraints: Sequence[Constraint], places: Sequence[Meld]) -> bool:
    """Whether each claim is answered by a place of its own."""
    choices = [
        [number for number, meld in enumerate(places) if constraint.is_satisfied_by(meld)] for constraint in constraints
    ]
    return not unpaired(choices)


def _kept_places(partition: Partition, table: Melds) -> frozenset[int]:
    """The places of the table's melds that a partition keeps."""
    kept = Counter(identity(piece.meld) for piece in partition if piece.is_kept)
    places = set()
    for place, meld in enumerate(table):
        lies_as = identity(meld)
        if kept[lies_as]:
            kept[lies_as] -= 1
            places.add(place)
    return frozenset(places)
