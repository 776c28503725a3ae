"""Constraints that limited retrieval and manipulation put on every turn, as decisions for branching.

A constraint concerns one joker or meld of the table: where the joker is now, what the meld grew to. Every legal turn
satisfies it by one of few alternatives. The alternatives consider faces only, so the rules must still judge the turn.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from engine.melding.melds import Meld, MeldKind
from engine.melding.retrieval import limits_retrieval, may_be_retrieved
from engine.melding.ruleset import JokerRetrievalMode, JokerRetrievalReuse, JokerRetrievalSource, Manipulation, Ruleset
from engine.melding.run_shape import run_shape
from engine.melding.solver.meld_enumeration import Shape, possible_melds, useful_declarations
from engine.melding.solver.restricted_problem import Melds, tiles_of
from engine.melding.solver.search import Meter
from engine.tiles import JOKER, Tile

LONGEST_UNCUT_RUN: Final = 5
"""The most tiles of a run that cannot be cut into two runs."""

REUSES_WITH_RACK_TILES: Final = {JokerRetrievalReuse.NEW_MELD_TWO_RACK_TILES, JokerRetrievalReuse.NEW_MELD_ALL_RACK}
"""The values that allow a retrieved joker only with two or more tiles of the rack."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A way to satisfy a constraint.

    Attributes:
        meld: A meld that the new table must contain, if any.
        played: A face of which a tile must be played, if any.
    """

    meld: Meld | None = None
    played: Tile | None = None


class Constraint(Protocol):
    """A condition that every legal turn satisfies in one of few ways."""

    @property
    def alternatives(self) -> Sequence[Alternative]:
        """Returns the ways to satisfy it, except by a meld that is already laid."""

    def is_satisfied_by(self, meld: Meld) -> bool:
        """Returns whether a meld that is already laid may satisfy it."""

    def capacity(self, meld: Meld) -> int:
        """Returns how many constraints of its kind a meld may satisfy."""


@dataclass(frozen=True)
class ConstraintContext:
    """The position that constraints are made of.

    Attributes:
        table: All melds in play.
        changed: The melds that may change.
        initial_meld: The initial meld, if it is laid in the same turn.
        available: The other tiles that the player can lay.
        ruleset: The rules.
        meter: The budget.
    """

    table: Melds
    changed: Melds
    initial_meld: Melds
    available: Counter[Tile]
    ruleset: Ruleset
    meter: Meter

    @cached_property
    def tiles(self) -> Counter[Tile]:
        """Returns the tiles for new melds."""
        return self.available + tiles_of(self.changed)

    @cached_property
    def playable(self) -> Counter[Tile]:
        """Returns all tiles that may have been played."""
        return self.available + tiles_of(self.initial_meld)

    def melds(self, tiles: Counter[Tile], is_allowed: Callable[[Shape], bool]) -> Iterator[Meld]:
        """Yields the melds of some shapes that tiles can form, with every useful declaration."""
        for meld in possible_melds(tiles, self.ruleset, is_allowed):
            self.meter.count()
            yield meld
            yield from useful_declarations(meld, self.table, self.ruleset)


def branching_constraints(context: ConstraintContext) -> tuple[Constraint, ...]:
    """Returns the constraints of one kind: growth, jokers, or survival.

    Those with the fewest alternatives come first, except for survival: there, violated constraints are found quickly.
    """
    for_jokers, for_melds = joker_constraints(context), meld_constraints(context)
    if context.ruleset.manipulation is Manipulation.PRIMITIVES_ONLY and not for_jokers:
        return for_melds
    few = for_melds if context.ruleset.manipulation is Manipulation.OFF else for_jokers
    return tuple(sorted(few, key=lambda constraint: len(constraint.alternatives)))


def joker_constraints(context: ConstraintContext) -> "tuple[JokerConstraint, ...]":
    """Returns a constraint per joker of the table, if retrieval is limited and some jokers may move."""
    if not (limits_retrieval(context.ruleset) and any(JOKER in meld.tiles for meld in context.changed)):
        return ()
    return tuple(
        [JokerConstraint(context, old, frozenset(faces)) for old in context.table for faces in old.joker_faces]
    )


def meld_constraints(context: ConstraintContext) -> "tuple[GrowthConstraint | SurvivalConstraint, ...]":
    """Returns a constraint per meld that may change, if manipulation is limited."""
    match context.ruleset.manipulation:
        case Manipulation.FREE:
            return ()
        case Manipulation.OFF:
            return tuple([GrowthConstraint(context, old) for old in context.changed])
        case Manipulation.PRIMITIVES_ONLY:
            return tuple([SurvivalConstraint(context, old) for old in context.changed])


@dataclass(frozen=True)
class GrowthConstraint:
    """The meld that a meld of the table has grown to, if melds may only grow.

    Each old meld grows to a meld of its own. So the added tiles and all other new melds are exactly the played tiles.
    """

    context: ConstraintContext
    old: Meld

    @cached_property
    def alternatives(self) -> Sequence[Alternative]:
        """Returns the melds of its tiles and available ones."""
        naturals = {t for t in self.old.tiles if t != JOKER}
        melds = self.context.melds(
            self.context.available + Counter(self.old.tiles),
            lambda shape: shape[0] is self.old.kind and naturals.issubset(shape[1]),
        )
        return [Alternative(meld) for meld in melds if self.is_satisfied_by(meld)]

    def is_satisfied_by(self, meld: Meld) -> bool:
        """Returns whether it may have grown to a meld."""
        old, new = Counter(self.old.tiles), Counter(meld.tiles)
        return meld.kind is self.old.kind and old <= new and new - old <= self.context.playable

    def capacity(self, _: Meld) -> int:
        """Returns 1: each old meld has a meld of its own."""
        return 1


@dataclass(frozen=True)
class SurvivalConstraint:
    """The meld that contains two tiles of a meld of the table, if none may be dissolved."""

    context: ConstraintContext
    old: Meld

    @cached_property
    def alternatives(self) -> Sequence[Alternative]:
        """Returns the melds in which it can survive, without long runs that can be cut.

        If neither run has jokers, their common tiles are three or more in a row, or at an end. So if a run of six or
        more is cut behind its third tile, two of them stay together.
        """
        naturals = {t for t in self.old.tiles if t != JOKER}
        least = max(0, 2 - self.old.tiles.count(JOKER))
        melds = self.context.melds(
            self.context.tiles,
            lambda shape: shape[0] is self.old.kind and len(naturals.intersection(shape[1])) >= least,
        )
        return [Alternative(meld) for meld in melds if self.is_satisfied_by(meld) and not self._can_be_cut(meld)]

    def _can_be_cut(self, meld: Meld) -> bool:
        """Returns whether a meld is a long run without jokers, and so was the old one."""
        has_jokers = meld.joker_faces or self.old.joker_faces
        is_long = len(meld.tiles) > LONGEST_UNCUT_RUN
        return is_long and not has_jokers and not run_shape(self.context.ruleset).beyond

    def is_satisfied_by(self, meld: Meld) -> bool:
        """Returns whether it may survive in a meld."""
        return meld.kind is self.old.kind and (Counter(self.old.tiles) & Counter(meld.tiles)).total() > 1

    def capacity(self, _: Meld) -> int:
        """Returns 1: each old meld has a meld of its own."""
        return 1


@dataclass(frozen=True)
class JokerConstraint:
    """The place of a joker of the table: it keeps its role beside tiles of its old meld, or it is retrieved."""

    context: ConstraintContext
    old: Meld
    faces: frozenset[Tile]

    @cached_property
    def alternatives(self) -> Sequence[Alternative]:
        """Returns the melds in which it may be kept, and the ways to retrieve it."""
        return [*map(Alternative, self._keeping_melds()), *self._retrieval_alternatives()]

    def is_satisfied_by(self, meld: Meld) -> bool:
        """Returns whether it may be in a meld."""
        return self._can_be_kept_in(meld) or (bool(self._release_alternatives) and self._can_be_used_in(meld))

    def capacity(self, meld: Meld) -> int:
        """Returns the number of jokers: each has a place of its own."""
        return len(meld.joker_faces)

    # Kept

    def _keeping_melds(self) -> Iterator[Meld]:
        tiles = self.context.tiles.copy()
        if len(self.faces) == 1:
            del tiles[min(self.faces)]  # the joker takes its place
        return filter(self._can_be_kept_in, self.context.melds(tiles, self._can_keep))

    def _can_keep(self, shape: Shape) -> bool:
        kind, faces = shape
        all_there = not self._is_locked or self._natural_tiles.issubset(faces)
        return kind is self.old.kind and all_there and not self.faces.isdisjoint(faces)

    def _can_be_kept_in(self, new: Meld) -> bool:
        """Returns whether the joker may keep its role in a meld with some tiles of its old one; with all if locked."""
        if new.kind is not self.old.kind or not any(self.faces.issuperset(faces) for faces in new.joker_faces):
            return False
        if self._is_locked:
            return self._natural_tiles.issubset(new.tiles)
        return (Counter(self.old.tiles) & Counter(new.tiles)).total() > 1

    @property
    def _is_locked(self) -> bool:
        return self.context.ruleset.joker_retrieval_mode is JokerRetrievalMode.LOCKED

    @cached_property
    def _natural_tiles(self) -> frozenset[Tile]:
        return frozenset(t for t in self.old.tiles if t != JOKER)

    # Retrieved

    @cached_property
    def _release_alternatives(self) -> Sequence[Alternative]:
        """Returns the ways to free the joker: the tile played for it, if it must come from the rack."""
        ruleset, playable = self.context.ruleset, self.context.playable
        if ruleset.joker_retrieval_mode is JokerRetrievalMode.OFF:
            return []
        if ruleset.joker_retrieval_mode is JokerRetrievalMode.FREE or ruleset.joker_retrieval_end_of_run_free:
            return [Alternative()]
        if ruleset.joker_retrieval_source is JokerRetrievalSource.RACK_ONLY:
            return [Alternative(played=face) for face in sorted(self.faces) if playable[face]]
        there = playable + tiles_of(self.context.table)
        return [Alternative()] if any(there[face] for face in self.faces) else []

    def _retrieval_alternatives(self) -> Iterator[Alternative]:
        """Returns the ways to free the joker, with the melds where it may be used then if these are few."""
        if not self._min_rack_tiles:
            yield from self._release_alternatives
        elif self._release_alternatives:
            jokers = self.context.playable[JOKER]
            for meld in self.context.melds(
                self._usable_tiles, lambda shape: self._rack_tiles_in(shape[1]) + jokers >= self._min_rack_tiles
            ):
                if meld.joker_faces and self._can_be_used_in(meld):
                    yield from [Alternative(meld, release.played) for release in self._release_alternatives]

    @cached_property
    def _usable_tiles(self) -> Counter[Tile]:
        """Returns the tiles of melds in which it may be used."""
        tiles = self.context.tiles
        if self.context.ruleset.joker_retrieval_reuse is JokerRetrievalReuse.NEW_MELD_ALL_RACK:
            return self.context.available | Counter({JOKER: tiles[JOKER]})
        return tiles

    @property
    def _min_rack_tiles(self) -> int:
        """Returns the least number of rack tiles in its new meld."""
        return 2 if self.context.ruleset.joker_retrieval_reuse in REUSES_WITH_RACK_TILES else 0

    def _can_be_used_in(self, meld: Meld) -> bool:
        """Returns whether a meld may contain enough rack tiles, other jokers included."""
        jokers = min(self.context.playable[JOKER], len(meld.joker_faces) - 1)
        return self._rack_tiles_in(meld.tiles) + jokers >= self._min_rack_tiles

    def _rack_tiles_in(self, tiles: tuple[Tile, ...]) -> int:
        """Returns how many numbered tiles may come from the rack."""
        return sum(t != JOKER and self.context.playable[t] > 0 for t in tiles)


# All jokers together

JOKER_MELDS_DECIDE: Final = frozenset(
    {
        JokerRetrievalReuse.ANY_MELD,
        JokerRetrievalReuse.NEW_MELD,
        JokerRetrievalReuse.NEW_MELD_TWO_RACK_TILES,
        JokerRetrievalReuse.NEW_MELD_ALL_RACK,
    }
)
"""The values under which retrieval depends only on the melds with jokers and on the tiles played."""


def can_be_retrieved_in(melds: Melds, table: Melds, playable: Counter[Tile], ruleset: Ruleset) -> bool:
    """Returns whether the jokers of the table may be in some new melds, whatever melds the other tiles form.

    More played tiles never make retrieval stricter. So all playable tiles count as played here; if that is illegal,
    every turn with these melds is.

    Args:
        melds: New melds; those with jokers contain all jokers of the table.
        table: The old melds.
        playable: All tiles that can be played.
        ruleset: The rules.
    """
    after = [meld for meld in melds if meld.joker_faces]
    others = playable + tiles_of(table) - tiles_of(tuple(after))
    del others[JOKER]
    while others:  # placeholder melds, each with a face at most once
        after.append(Meld(tuple(others), MeldKind.GROUP, 0))
        others -= Counter(dict.fromkeys(others, 1))
    decide = ruleset.joker_retrieval_reuse in JOKER_MELDS_DECIDE
    return not decide or may_be_retrieved(table, tuple(after), playable, ruleset)
