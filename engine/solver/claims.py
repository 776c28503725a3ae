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
from engine.solver.openings import Shape, helpful_readings, own_melds
from engine.solver.rearrangement import Melds, tiles_of
from engine.solver.search import Meter
from engine.tiles import JOKER, Tile

LONGEST: Final = 5
"""Most tiles of a run that cannot be cut in two."""

OF_THE_RACK: Final = {JokerRetrievalReuse.NEW_SET_TWO_RACK_TILES, JokerRetrievalReuse.NEW_SET_ALL_RACK}
"""What lets a retrieved joker be used only with two tiles of the rack, or more: a meld has three."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A way to answer a claim.

    Attributes:
        meld: A meld that lies on the new table, if it takes one in particular.
        played: A face of which a tile is played, if it takes one.
    """

    meld: Meld | None = None
    played: Tile | None = None


class Claim(Protocol):
    """What every turn must do about something."""

    @property
    def answers(self) -> Sequence[Answer]:
        """The ways to do it, but for those that a meld has which is laid already."""

    def is_answered_by(self, meld: Meld) -> bool:
        """Whether a meld that is laid already may have done it."""

    def room_in(self, meld: Meld) -> int:
        """How many claims of its sort a meld may answer."""


@dataclass(frozen=True)
class Asked:
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
    opening: Melds
    own: Counter[Tile]
    ruleset: Ruleset
    meter: Meter

    @cached_property
    def tiles(self) -> Counter[Tile]:
        """The tiles of which new melds are made."""
        return self.own + tiles_of(self.changed)

    @cached_property
    def playable(self) -> Counter[Tile]:
        """All tiles that may have been played."""
        return self.own + tiles_of(self.opening)

    def melds(self, tiles: Counter[Tile], is_wanted: Callable[[Shape], bool]) -> Iterator[Meld]:
        """The melds of some shapes that can be made of some tiles, read in every way that may help."""
        for meld in own_melds(tiles, self.ruleset, is_wanted):
            self.meter.count()
            yield meld
            yield from helpful_readings(meld, self.table, self.ruleset)


def claims_of(asked: Asked) -> tuple[Claim, ...]:
    """The claims of one sort: of melds that may only grow, of jokers, or of melds that must live on.

    Those with fewest answers come first, but for melds that live on: of these it is soon told which is not answered.
    """
    of_jokers, of_melds = joker_claims(asked), meld_claims(asked)
    if asked.ruleset.manipulation is Manipulation.PRIMITIVES_ONLY and not of_jokers:
        return of_melds
    few = of_melds if asked.ruleset.manipulation is Manipulation.NONE else of_jokers
    return tuple(sorted(few, key=lambda claim: len(claim.answers)))


def joker_claims(asked: Asked) -> "tuple[JokerClaim, ...]":
    """A claim for each joker of the table, where retrieval is limited and some of them may move."""
    if not (limits_retrieval(asked.ruleset) and any(JOKER in meld.tiles for meld in asked.changed)):
        return ()
    return tuple([JokerClaim(asked, old, frozenset(faces)) for old in asked.table for faces in old.joker_faces])


def meld_claims(asked: Asked) -> "tuple[MeldClaim | LifeClaim, ...]":
    """A claim for each meld that may change, where that is limited."""
    match asked.ruleset.manipulation:
        case Manipulation.FREE:
            return ()
        case Manipulation.NONE:
            return tuple([MeldClaim(asked, old) for old in asked.changed])
        case Manipulation.PRIMITIVES_ONLY:
            return tuple([LifeClaim(asked, old) for old in asked.changed])


@dataclass(frozen=True)
class MeldClaim:
    """What a meld of the table grew to, where melds may only grow.

    Each of them lies in a meld of its own. So what that has more, and all other new melds, is as many tiles as were
    played, and of the same faces.
    """

    asked: Asked
    old: Meld

    @cached_property
    def answers(self) -> Sequence[Answer]:
        """The melds of its tiles and own ones."""
        naturals = {t for t in self.old.tiles if t != JOKER}
        melds = self.asked.melds(
            self.asked.own + Counter(self.old.tiles),
            lambda shape: shape[0] is self.old.kind and naturals.issubset(shape[1]),
        )
        return [Answer(meld) for meld in melds if self.is_answered_by(meld)]

    def is_answered_by(self, meld: Meld) -> bool:
        """Whether it may have grown to a meld."""
        old, new = Counter(self.old.tiles), Counter(meld.tiles)
        return meld.kind is self.old.kind and old <= new and new - old <= self.asked.playable

    def room_in(self, _: Meld) -> int:
        """Each has a meld of its own."""
        return 1


@dataclass(frozen=True)
class LifeClaim:
    """In which meld two tiles of one of the table lie, where none may be dissolved."""

    asked: Asked
    old: Meld

    @cached_property
    def answers(self) -> Sequence[Answer]:
        """The melds in which it can live on, but for long runs that can be cut.

        Where neither run has jokers, what both have is three tiles in a row or more, or it lies at an end. So if a run
        of six or more is cut behind its third tile, two of them stay together.
        """
        naturals = {t for t in self.old.tiles if t != JOKER}
        least = max(0, 2 - self.old.tiles.count(JOKER))
        melds = self.asked.melds(
            self.asked.tiles,
            lambda shape: shape[0] is self.old.kind and len(naturals.intersection(shape[1])) >= least,
        )
        is_plain = self.asked.ruleset.run_wrap is RunWrap.NONE and not self.old.joker_faces
        return [
            Answer(meld)
            for meld in melds
            if self.is_answered_by(meld) and (len(meld.tiles) <= LONGEST or meld.joker_faces or not is_plain)
        ]

    def is_answered_by(self, meld: Meld) -> bool:
        """Whether it may live on in a meld."""
        return meld.kind is self.old.kind and (Counter(self.old.tiles) & Counter(meld.tiles)).total() > 1

    def room_in(self, _: Meld) -> int:
        """Each has a meld of its own."""
        return 1


@dataclass(frozen=True)
class JokerClaim:
    """Where a joker of the table lies: it was kept in its role, with tiles of its old meld, or it was retrieved."""

    asked: Asked
    old: Meld
    faces: frozenset[Tile]

    @cached_property
    def answers(self) -> Sequence[Answer]:
        """The melds in which it may be kept, and the ways to retrieve it."""
        return [*map(Answer, self._kept()), *self._retrieved()]

    def is_answered_by(self, meld: Meld) -> bool:
        """Whether it may lie in a meld."""
        return self._may_be_kept_in(meld) or (bool(self._ways_out) and self._may_be_used_in(meld))

    def room_in(self, meld: Meld) -> int:
        """Each has a place of its own."""
        return len(meld.joker_faces)

    # Kept

    def _kept(self) -> Iterator[Meld]:
        tiles = self.asked.tiles.copy()
        if len(self.faces) == 1:
            del tiles[min(self.faces)]  # the joker lies in its place
        return filter(self._may_be_kept_in, self.asked.melds(tiles, self._may_keep))

    def _may_keep(self, shape: Shape) -> bool:
        kind, faces = shape
        all_there = not self._is_locked or self._beside.issubset(faces)
        return kind is self.old.kind and all_there and not self.faces.isdisjoint(faces)

    def _may_be_kept_in(self, new: Meld) -> bool:
        """Whether it may stand there for what it stood for, with some of its old meld; with all of it if locked."""
        if new.kind is not self.old.kind or not any(self.faces.issuperset(faces) for faces in new.joker_faces):
            return False
        if self._is_locked:
            return self._beside.issubset(new.tiles)
        return (Counter(self.old.tiles) & Counter(new.tiles)).total() > 1

    @property
    def _is_locked(self) -> bool:
        return self.asked.ruleset.joker_retrieval_mode is JokerRetrievalMode.LOCKED

    @cached_property
    def _beside(self) -> frozenset[Tile]:
        return frozenset(t for t in self.old.tiles if t != JOKER)

    # Retrieved

    @cached_property
    def _ways_out(self) -> Sequence[Answer]:
        """The ways to free it: what was played for it, where that must be a tile of the rack."""
        ruleset, playable = self.asked.ruleset, self.asked.playable
        if ruleset.joker_retrieval_mode is JokerRetrievalMode.NONE:
            return []
        if ruleset.joker_retrieval_mode is JokerRetrievalMode.FREE or ruleset.joker_retrieval_end_of_run_free:
            return [Answer()]
        if ruleset.joker_retrieval_source is JokerRetrievalSource.RACK_ONLY:
            return [Answer(played=face) for face in sorted(self.faces) if playable[face]]
        there = playable + tiles_of(self.asked.table)
        return [Answer()] if any(there[face] for face in self.faces) else []

    def _retrieved(self) -> Iterator[Answer]:
        """The ways to free it, with the melds in which it may be used then if few may be."""
        if not self._wanted:
            yield from self._ways_out
        elif self._ways_out:
            jokers = self.asked.playable[JOKER]
            for meld in self.asked.melds(self._usable, lambda shape: self._own(shape[1]) + jokers >= self._wanted):
                if meld.joker_faces and self._may_be_used_in(meld):
                    yield from [Answer(meld, way_out.played) for way_out in self._ways_out]

    @cached_property
    def _usable(self) -> Counter[Tile]:
        """The tiles of melds in which it may be used."""
        tiles = self.asked.tiles
        if self.asked.ruleset.joker_retrieval_reuse is JokerRetrievalReuse.NEW_SET_ALL_RACK:
            return self.asked.own | Counter({JOKER: tiles[JOKER]})
        return tiles

    @property
    def _wanted(self) -> int:
        """How many tiles of the rack it must lie with."""
        return 2 if self.asked.ruleset.joker_retrieval_reuse in OF_THE_RACK else 0

    def _may_be_used_in(self, meld: Meld) -> bool:
        """Whether so many may be there, other jokers among them."""
        jokers = min(self.asked.playable[JOKER], len(meld.joker_faces) - 1)
        return self._own(meld.tiles) + jokers >= self._wanted

    def _own(self, tiles: tuple[Tile, ...]) -> int:
        """How many numbered tiles may be of the rack."""
        return sum(t != JOKER and self.asked.playable[t] > 0 for t in tiles)


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


def may_be_retrieved_in(melds: Melds, table: Melds, playable: Counter[Tile], ruleset: Ruleset) -> bool:
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
