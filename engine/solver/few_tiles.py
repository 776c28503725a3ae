"""The best turn of few tiles, where it matters which meld a tile or a joker came from.

Every partition of the tiles into melds is tried, the cheapest first, until the rules allow one. The rules are not asked
about melds that may not lie, nor about partitions in which a joker or a meld of the table has no place.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from engine.matching import unmatched
from engine.melds import Meld
from engine.solver.claims import Asked, Claim, MeldClaim, joker_claims, may_be_retrieved_in, meld_claims
from engine.solver.openings import helpful_readings, own_melds
from engine.solver.partitions import Partition, Partitions
from engine.solver.rearrangement import NODES_A_JUDGEMENT, Guarded, Melds, Rearranged, tiles_of
from engine.table import identity
from engine.tiles import JOKER
from engine.variants import CONTRACTS

MOST_TILES = 30
"""The most tiles that are few: table and rack together. With more, the search by claims is often faster."""

MOST_NODES = 10_000
"""The most nodes for a search of few tiles. With two jokers and 18 tiles it takes 3,000 at most."""


def are_few(guarded: Guarded) -> bool:
    """Whether there are so few tiles that all their partitions can be tried."""
    return guarded.tiles.total() <= MOST_TILES


def best_of_few(guarded: Guarded, below: int) -> Rearranged | None:
    """The best turn that costs less than a limit, with the fewest melds changed; None if there is none.

    Raises:
        OutOfBudget: The meter's budget or MOST_NODES are spent.
    """
    guarded = replace(guarded, meter=guarded.meter.of(MOST_NODES))
    tries = _Tries(guarded)
    partitions = Partitions(guarded.problem_of(guarded.places), tries.melds(), guarded.rearranged, guarded.meter)
    for total in partitions.totals(below):
        for partition in partitions.of_total(total):
            turn = tries.turn(partition, total.cost)
            if turn:
                return turn
    return None


class _Tries:
    """Tells which melds a turn may contain, and which partitions are turns."""

    def __init__(self, guarded: Guarded) -> None:
        self.guarded = guarded
        self.ruleset = guarded.problem.ruleset
        asked = Asked(guarded.table, guarded.rearranged, guarded.opening, guarded.own, self.ruleset, guarded.meter)
        self.of_jokers = joker_claims(asked)
        self.of_melds = meld_claims(asked)
        self.playable = asked.playable
        self.on_table = tiles_of(guarded.table)
        self.may_be_used: dict[Partition, bool] = {}

    def melds(self) -> list[Meld]:
        """The melds that a turn may lay, in a fixed order."""
        guarded = self.guarded
        found = {}
        for meld in own_melds(guarded.tiles, self.ruleset):
            guarded.meter.count()
            for reading in (meld, *helpful_readings(meld, guarded.table, self.ruleset)):
                if self._may_lie(reading):
                    found[identity(reading)] = reading
        for meld in sorted(guarded.rearranged, key=lambda old: (old.kind.name, *identity(old)[1:])):
            found.setdefault(identity(meld), meld)
        return list(found.values())

    def _may_lie(self, meld: Meld) -> bool:
        return self._keeps_contract(meld) and self._has_jokers_for(meld) and self._has_grown(meld)

    def _keeps_contract(self, meld: Meld) -> bool:
        """A meld against the contract is made of the table's tiles."""
        keeps = CONTRACTS.get(self.ruleset.contract)
        return keeps is None or keeps(meld) or Counter(meld.tiles) <= self.on_table

    def _has_jokers_for(self, meld: Meld) -> bool:
        """Each joker of a meld is one of the rack, or one of the table that may lie there."""
        of_table = len(meld.joker_faces) - self.playable[JOKER]
        if of_table <= 0 or not self.of_jokers:
            return True
        return of_table <= sum(claim.is_answered_by(meld) for claim in self.of_jokers)

    def _has_grown(self, meld: Meld) -> bool:
        """Where melds may only grow, each meld is one that did, or it is made of faces played."""
        grown = [claim for claim in self.of_melds if isinstance(claim, MeldClaim)]
        return not grown or any(claim.is_answered_by(meld) for claim in grown) or Counter(meld.tiles) <= self.playable

    def turn(self, partition: Partition, cost: int) -> Rearranged | None:
        """A partition as a turn, if the rules allow it."""
        guarded = self.guarded
        if not (self._jokers_have_places(partition) and self._melds_have_places(partition)):
            return None
        kept = _places_of(partition, guarded.table)
        new = (*guarded.opening, *(piece.meld for piece in partition if not piece.is_kept))
        changed = guarded.places - kept
        guarded.meter.count(NODES_A_JUDGEMENT)
        if not guarded.allows(new, guarded.everything - changed):
            return None
        return Rearranged(cost, changed, new, is_least_change=True)

    def _jokers_have_places(self, partition: Partition) -> bool:
        """Whether the jokers of the table may have come to the places of jokers."""
        pieces = tuple([piece for piece in partition if piece.meld.joker_faces])
        if self.of_jokers and pieces not in self.may_be_used:
            self.may_be_used[pieces] = self._may_be_used(pieces)
        return self.may_be_used.get(pieces, True)

    def _may_be_used(self, pieces: Partition) -> bool:
        guarded = self.guarded
        melds = guarded.opening + _melds_of(pieces)
        places = [meld for meld in melds for _ in meld.joker_faces]
        if not _have_places(self.of_jokers, places):
            return False
        guarded.meter.count(NODES_A_JUDGEMENT)
        return may_be_retrieved_in(melds, guarded.table, self.playable, self.ruleset)

    def _melds_have_places(self, partition: Partition) -> bool:
        """Whether each meld of the table may have become one of its own, where it must."""
        return not self.of_melds or _have_places(self.of_melds, self.guarded.opening + _melds_of(partition))


def _melds_of(pieces: Partition) -> Melds:
    return tuple([piece.meld for piece in pieces])


def _have_places(claims: Sequence[Claim], places: Sequence[Meld]) -> bool:
    """Whether each claim is answered by a place of its own."""
    choices = [[number for number, meld in enumerate(places) if claim.is_answered_by(meld)] for claim in claims]
    return not unmatched(choices)


def _places_of(partition: Partition, table: Melds) -> frozenset[int]:
    """The places of the table's melds that a partition keeps."""
    kept = Counter(identity(piece.meld) for piece in partition if piece.is_kept)
    places = set()
    for place, meld in enumerate(table):
        lies_as = identity(meld)
        if kept[lies_as]:
            kept[lies_as] -= 1
            places.add(place)
    return frozenset(places)
