"""What every turn must do about melds and jokers of the table, where the rules limit that.

A claim is a question with few answers: where does this joker lie now, what did this meld grow to? Each turn that the
rules allow answers every claim in one of the ways given here. The ways are told by faces alone, so some of them may be
forbidden for all that: the rules are asked in the end.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from engine.melds import Meld, MeldKind
from engine.retrieval import limits_retrieval, may_be_retrieved
from engine.ruleset import (
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSource,
    Manipulation,
    Ruleset,
    RunWrap,
)
from engine.solver.meld_enumeration import Shape, possible_melds, useful_declarations
from engine.solver.restricted_problem import Melds, tiles_of
from engine.solver.search import Meter
from engine.tiles import JOKER, Tile

LONGEST_UNCUT_RUN: Final = 5
"""Most tiles of a run that cannot be cut in two."""

REUSES_WITH_RACK_TILES: Final = {JokerRetrievalReuse.NEW_SET_TWO_RACK_TILES, JokerRetrievalReuse.NEW_SET_ALL_RACK}
"""What lets a retrieved joker be used only with two tiles of the rack, or more: a meld has three."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A way to answer a claim.

    Attributes:
        meld: A meld that lies on the new table, if it takes one in particular.
        played: A face of which a tile is played, if it takes one.
    """

    meld: Meld | None = None
    played: Tile | None = None


class Constraint(Protocol):
    """What every turn must do about something."""

    @property
    def alternatives(self) -> Sequence[Alternative]:
        """The ways to do it, but for those that a meld has which is laid already."""

    def is_satisfied_by(self, meld: Meld) -> bool:
        """Whether a meld that is laid already may have done it."""

    def capacity(self, meld: Meld) -> int:
        """How many claims of its sort a meld may answer."""


@dataclass(frozen=True)
class ConstraintContext:
    """What claims are made of.

    Attributes:
        table: All melds in play.
        changed: Those of them that may change.
        opening: The initial meld, if it is laid in the same turn.
        own: The other tiles that the player can lay.
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
        """The tiles of which new melds are made."""
        return self.available + tiles_of(self.changed)

    @cached_property
    def playable(self) -> Counter[Tile]:
        """All tiles that may have been played."""
        return self.available + tiles_of(self.initial_meld)

    def melds(self, tiles: Counter[Tile], is_allowed: Callable[[Shape], bool]) -> Iterator[Meld]:
        """The melds of some shapes that can be made of some tiles, read in every way that may help."""
        for meld in possible_melds(tiles, self.ruleset, is_allowed):
            self.meter.count()
            yield meld
            yield from useful_declarations(meld, self.table, self.ruleset)


def branching_constraints(context: ConstraintContext) -> tuple[Constraint, ...]:
    """The claims of one sort: of melds that may only grow, of jokers, or of melds that must live on.

    Those with fewest answers come first, but for melds that live on: of these it is soon told which is not answered.
    """
    for_jokers, for_melds = joker_constraints(context), meld_constraints(context)
    if context.ruleset.manipulation is Manipulation.PRIMITIVES_ONLY and not for_jokers:
        return for_melds
    few = for_melds if context.ruleset.manipulation is Manipulation.NONE else for_jokers
    return tuple(sorted(few, key=lambda constraint: len(constraint.alternatives)))


def joker_constraints(context: ConstraintContext) -> "tuple[JokerConstraint, ...]":
    """A claim for each joker of the table, where retrieval is limited and some of them may move."""
    if not (limits_retrieval(context.ruleset) and any(JOKER in meld.tiles for meld in context.changed)):
        return ()
    return tuple(
        [JokerConstraint(context, old, frozenset(faces)) for old in context.table for faces in old.joker_faces]
    )


def meld_constraints(context: ConstraintContext) -> "tuple[GrowthConstraint | SurvivalConstraint, ...]":
    """A claim for each meld that may change, where that is limited."""
    match context.ruleset.manipulation:
        case Manipulation.FREE:
            return ()
        case Manipulation.NONE:
            return tuple([GrowthConstraint(context, old) for old in context.changed])
        case Manipulation.PRIMITIVES_ONLY:
            return tuple([SurvivalConstraint(context, old) for old in context.changed])


@dataclass(frozen=True)
class GrowthConstraint:
    """What a meld of the table grew to, where melds may only grow.

    Each of them lies in a meld of its own. So what that has more, and all other new melds, is as many tiles as were
    played, and of the same faces.
    """

    context: ConstraintContext
    old: Meld

    @cached_property
    def alternatives(self) -> Sequence[Alternative]:
        """The melds of its tiles and own ones."""
        naturals = {t for t in self.old.tiles if t != JOKER}
        melds = self.context.melds(
            self.context.available + Counter(self.old.tiles),
            lambda shape: shape[0] is self.old.kind and naturals.issubset(shape[1]),
        )
        return [Alternative(meld) for meld in melds if self.is_satisfied_by(meld)]

    def is_satisfied_by(self, meld: Meld) -> bool:
        """Whether it may have grown to a meld."""
        old, new = Counter(self.old.tiles), Counter(meld.tiles)
        return meld.kind is self.old.kind and old <= new and new - old <= self.context.playable

    def capacity(self, _: Meld) -> int:
        """Each has a meld of its own."""
        return 1


@dataclass(frozen=True)
class SurvivalConstraint:
    """In which meld two tiles of one of the table lie, where none may be dissolved."""

    context: ConstraintContext
    old: Meld

    @cached_property
    def alternatives(self) -> Sequence[Alternative]:
        """The melds in which it can live on, but for long runs that can be cut.

        Where neither run has jokers, what both have is three tiles in a row or more, or it lies at an end. So if a run
        of six or more is cut behind its third tile, two of them stay together.
        """
        naturals = {t for t in self.old.tiles if t != JOKER}
        least = max(0, 2 - self.old.tiles.count(JOKER))
        melds = self.context.melds(
            self.context.tiles,
            lambda shape: shape[0] is self.old.kind and len(naturals.intersection(shape[1])) >= least,
        )
        is_plain = self.context.ruleset.run_wrap is RunWrap.NONE and not self.old.joker_faces
        return [
            Alternative(meld)
            for meld in melds
            if self.is_satisfied_by(meld) and (len(meld.tiles) <= LONGEST_UNCUT_RUN or meld.joker_faces or not is_plain)
        ]

    def is_satisfied_by(self, meld: Meld) -> bool:
        """Whether it may live on in a meld."""
        return meld.kind is self.old.kind and (Counter(self.old.tiles) & Counter(meld.tiles)).total() > 1

    def capacity(self, _: Meld) -> int:
        """Each has a meld of its own."""
        return 1


@dataclass(frozen=True)
class JokerConstraint:
    """Where a joker of the table lies: it was kept in its role, with tiles of its old meld, or it was retrieved."""

    context: ConstraintContext
    old: Meld
    faces: frozenset[Tile]

    @cached_property
    def alternatives(self) -> Sequence[Alternative]:
        """The melds in which it may be kept, and the ways to retrieve it."""
        return [*map(Alternative, self._keeping_melds()), *self._retrieval_alternatives()]

    def is_satisfied_by(self, meld: Meld) -> bool:
        """Whether it may lie in a meld."""
        return self._can_be_kept_in(meld) or (bool(self._release_alternatives) and self._can_be_used_in(meld))

    def capacity(self, meld: Meld) -> int:
        """Each has a place of its own."""
        return len(meld.joker_faces)

    # Kept

    def _keeping_melds(self) -> Iterator[Meld]:
        tiles = self.context.tiles.copy()
        if len(self.faces) == 1:
            del tiles[min(self.faces)]  # the joker lies in its place
        return filter(self._can_be_kept_in, self.context.melds(tiles, self._can_keep))

    def _can_keep(self, shape: Shape) -> bool:
        kind, faces = shape
        all_there = not self._is_locked or self._natural_tiles.issubset(faces)
        return kind is self.old.kind and all_there and not self.faces.isdisjoint(faces)

    def _can_be_kept_in(self, new: Meld) -> bool:
        """Whether it may stand there for what it stood for, with some of its old meld; with all of it if locked."""
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
        """The ways to free it: what was played for it, where that must be a tile of the rack."""
        ruleset, playable = self.context.ruleset, self.context.playable
        if ruleset.joker_retrieval_mode is JokerRetrievalMode.NONE:
            return []
        if ruleset.joker_retrieval_mode is JokerRetrievalMode.FREE or ruleset.joker_retrieval_end_of_run_free:
            return [Alternative()]
        if ruleset.joker_retrieval_source is JokerRetrievalSource.RACK_ONLY:
            return [Alternative(played=face) for face in sorted(self.faces) if playable[face]]
        there = playable + tiles_of(self.context.table)
        return [Alternative()] if any(there[face] for face in self.faces) else []

    def _retrieval_alternatives(self) -> Iterator[Alternative]:
        """The ways to free it, with the melds in which it may be used then if few may be."""
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
        """The tiles of melds in which it may be used."""
        tiles = self.context.tiles
        if self.context.ruleset.joker_retrieval_reuse is JokerRetrievalReuse.NEW_SET_ALL_RACK:
            return self.context.available | Counter({JOKER: tiles[JOKER]})
        return tiles

    @property
    def _min_rack_tiles(self) -> int:
        """How many tiles of the rack it must lie with."""
        return 2 if self.context.ruleset.joker_retrieval_reuse in REUSES_WITH_RACK_TILES else 0

    def _can_be_used_in(self, meld: Meld) -> bool:
        """Whether so many may be there, other jokers among them."""
        jokers = min(self.context.playable[JOKER], len(meld.joker_faces) - 1)
        return self._rack_tiles_in(meld.tiles) + jokers >= self._min_rack_tiles

    def _rack_tiles_in(self, tiles: tuple[Tile, ...]) -> int:
        """How many numbered tiles may be of the rack."""
        return sum(t != JOKER and self.context.playable[t] > 0 for t in tiles)


# All jokers together

JOKER_MELDS_DECIDE: Final = frozenset(
    {
        JokerRetrievalReuse.ANY_SET,
        JokerRetrievalReuse.NEW_SET,
        JokerRetrievalReuse.NEW_SET_TWO_RACK_TILES,
        JokerRetrievalReuse.NEW_SET_ALL_RACK,
    }
)
"""The values under which retrieval depends on the melds with jokers and on the tiles played alone."""


def can_be_retrieved_in(melds: Melds, table: Melds, playable: Counter[Tile], ruleset: Ruleset) -> bool:
    """Whether the jokers of the table may lie in some new melds, whatever melds the other tiles form.

    Retrieval forbids the less, the more tiles are played. So all are taken as played: what is forbidden then is
    forbidden in every turn with these melds.

    Args:
        melds: New melds; those with jokers hold all jokers of the table.
        table: The old melds.
        playable: All tiles that can be played.
        ruleset: The rules.
    """
    after = [meld for meld in melds if meld.joker_faces]
    others = playable + tiles_of(table) - tiles_of(tuple(after))
    del others[JOKER]
    while others:  # heaps in which no face is twice, as in melds
        after.append(Meld(tuple(others), MeldKind.GROUP, 0))
        others -= Counter(dict.fromkeys(others, 1))
    decide = ruleset.joker_retrieval_reuse in JOKER_MELDS_DECIDE
    return not decide or may_be_retrieved(table, tuple(after), playable, ruleset)
