"""Outcomes: where the jokers of old melds may have gone."""

from typing import NamedTuple

from engine.melding.retrieval.tables import NO_CONDITIONS, Conditions
from engine.tiles import Tile


class Departure(NamedTuple):
    """The jokers that left an old meld.

    Attributes:
        old: The old meld.
        retrieved: The roles of the retrieved jokers.
        rest: In mode LOCKED, the new meld that has the kept jokers; None if none was kept.
    """

    old: int
    retrieved: tuple[int, ...]
    rest: int | None


class Outcome(NamedTuple):
    """An outcome for the jokers of some old melds, reduced to the parts that decide legality.

    Attributes:
        melds: The new meld of each joker, ascending, because it does not matter which joker is which.
        roles: The roles of the new jokers that certain old ones must be, ascending. All others may be any joker of
            their new meld.
        departures: The jokers that left each old meld.
        conditions: The conditions on numbered tiles.
        fresh_melds: The new melds that NEW_MELD applies to, because they contain retrieved jokers.
        may_contain: (old, new) where the new meld may contain the whole old one, judged by faces and jokers. Recorded
            only where a rule depends on it.
        replacing: (new meld, face) of tiles that must have replaced a joker.
        replaced: For each replaced joker: the new meld that has the rest of its old one, and the joker's faces. The
            tiles in `replacing` may have taken these places.
    """

    melds: tuple[int, ...] = ()
    roles: tuple[int, ...] = ()
    departures: tuple[Departure, ...] = ()
    conditions: Conditions = NO_CONDITIONS
    fresh_melds: frozenset[int] = frozenset()
    may_contain: frozenset[tuple[int, int]] = frozenset()
    replacing: frozenset[tuple[int, Tile]] = frozenset()
    replaced: tuple[tuple[int, frozenset[Tile]], ...] = ()

    def combined(self, other: "Outcome") -> "Outcome":
        """Returns the outcome for the old melds of both."""
        return Outcome(
            tuple(sorted(self.melds + other.melds)),
            tuple(sorted(self.roles + other.roles)),
            self.departures + other.departures,
            self.conditions | other.conditions,
            self.fresh_melds | other.fresh_melds,
            self.may_contain | other.may_contain,
            self.replacing | other.replacing,
            self.replaced + other.replaced,
        )
