"""Finds the best turn of a small position if the rules depend on where a tile or joker came from.

It tries the partitions of the tiles into melds, the cheapest first, until the rules allow one. Before it calls the
rules, it discards illegal melds, and partitions in which a joker or meld of the table has no place.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from engine.matching import unmatched
from engine.melding.melds import Meld
from engine.melding.solver.constraints import (
    Constraint,
    ConstraintContext,
    GrowthConstraint,
    can_be_retrieved_in,
    joker_constraints,
    meld_constraints,
)
from engine.melding.solver.meld_enumeration import possible_melds, useful_declarations
from engine.melding.solver.partitions import Partition, Partitions
from engine.melding.solver.restricted_problem import (
    NODES_PER_JUDGEMENT,
    Melds,
    RestrictedProblem,
    RestrictedTurn,
    keeps_contract,
    tiles_of,
)
from engine.melding.table import identity
from engine.tiles import JOKER

MOST_TILES = 30
"""The most tiles of table and rack together. With more tiles, branching (restricted_search.py) is often faster."""

MOST_NODES = 10_000
"""The most nodes of this search. With two jokers and 18 tiles it takes at most 3,000."""


def is_small(restricted: RestrictedProblem) -> bool:
    """Returns whether the position is small enough to try all partitions."""
    return restricted.tiles.total() <= MOST_TILES


def best_small_turn(restricted: RestrictedProblem, below: int) -> RestrictedTurn | None:
    """Returns the best turn below a cost limit, with the fewest changed melds; None if there is none.

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
    """Decides which melds a turn may contain, and which partitions are turns."""

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
        """Returns the melds that a turn may lay, in a fixed order."""
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
        """Returns whether a meld keeps the contract or consists of tiles of the table."""
        return keeps_contract(meld, self.ruleset) or Counter(meld.tiles) <= self.table_tiles

    def _has_jokers_for(self, meld: Meld) -> bool:
        """Returns whether each joker of a meld may come from the rack, or from the table."""
        of_table = len(meld.joker_faces) - self.playable[JOKER]
        if of_table <= 0 or not self.joker_constraints:
            return True
        return of_table <= sum(constraint.is_satisfied_by(meld) for constraint in self.joker_constraints)

    def _has_grown(self, meld: Meld) -> bool:
        """Returns whether a meld may be a grown one or consists of played faces, if melds may only grow."""
        grown = [constraint for constraint in self.meld_constraints if isinstance(constraint, GrowthConstraint)]
        return (
            not grown
            or any(constraint.is_satisfied_by(meld) for constraint in grown)
            or Counter(meld.tiles) <= self.playable
        )

    def turn(self, partition: Partition, cost: int) -> RestrictedTurn | None:
        """Returns a partition as a turn; None if the rules forbid it."""
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
        """Returns whether the jokers of the table may have come to the places of jokers."""
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
        """Returns whether each meld of the table may have become a meld of its own, if it must."""
        return not self.meld_constraints or _can_all_be_satisfied(
            self.meld_constraints, self.restricted.initial_meld + _melds_of(partition)
        )


def _melds_of(pieces: Partition) -> Melds:
    return tuple([piece.meld for piece in pieces])


def _can_all_be_satisfied(constraints: Sequence[Constraint], places: Sequence[Meld]) -> bool:
    """Returns whether each constraint can be satisfied by a place of its own."""
    choices = [
        [number for number, meld in enumerate(places) if constraint.is_satisfied_by(meld)] for constraint in constraints
    ]
    return not unmatched(choices)


def _kept_places(partition: Partition, table: Melds) -> frozenset[int]:
    """Returns the places of the table's melds that a partition keeps."""
    kept = Counter(identity(piece.meld) for piece in partition if piece.is_kept)
    places = set()
    for place, meld in enumerate(table):
        lies_as = identity(meld)
        if kept[lies_as]:
            kept[lies_as] -= 1
            places.add(place)
    return frozenset(places)
