"""How the jokers of the table may be moved (R46 to R50, R53; docs/rules.md, Retrieval).

The rules ask where a tile came from, and tiles have no identity. So a play is legal if *some* way of telling the tiles
apart makes it so: which joker of the old table lies where now, and from which old meld, or the rack, each numbered tile
came. The search has three steps:

1. Every joker of the old table is given a place in a new meld, and is either *kept* there or *retrieved* (`_fates`).
   Six jokers can be given places in thousands of ways. So they are given them one after the other, and two of the ways
   that some of them can have gone are one where nothing that is asked later tells them apart; what cannot become legal
   any more is given up, which the next two steps and a pairing with places and replacements tell.
2. What that demands is written down (`_demanded`): tiles that must have come from a certain meld or may not, and goals
   such as "two tiles of this meld came from the rack".
3. Whether the numbered tiles can have come so is decided face by face (`_can_have_come`): a face has three copies at
   most, so few ways, and all that is remembered from one face to the next is how far each goal has been reached.
"""

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, permutations
from typing import Final

from engine.melds import Meld, MeldKind
from engine.pairing import unpaired
from engine.play import Identity, Play, identity
from engine.ruleset import (
    JokerRetrievalGroupOfThree,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameSet,
    JokerRetrievalSource,
    Ruleset,
)
from engine.tiles import JOKER, Tile
from engine.violations import Reason

RACK: Final = -1
"""Where a tile came from that was played; old melds are named by their place on the table."""

MOST_COPIES: Final = 256
"""More than there are copies of a face."""

FEW_JOKERS: Final = 2
"""So many jokers are tried at once; of more, each is asked first what it may do alone."""

LONG_RUN: Final = 4
"""Fewest tiles of a run from whose end a joker may be taken (joker_retrieval_end_of_run_free)."""


def retrieval_reasons(play: Play) -> tuple[Reason, ...]:
    """Why no way of telling the tiles apart makes a play legal as to the jokers of the table; empty if one does.

    All melds of the play are melds, no tile is missing, and what is new is the player's own.
    """
    demands = _demands(play.ruleset)
    moved = any(JOKER in meld.tiles for meld in play.changed_melds)
    if not moved or demands == _NO_DEMANDS:
        return ()
    tables = _Tables(play.table_before, play.melds, play.tiles_played)
    if _is_possible(tables, demands):
        return ()
    return _replacement_reasons(tables, demands) + _use_reasons(tables, demands) or _joint_reasons(tables, demands)


def limits_retrieval(ruleset: Ruleset) -> bool:
    """Whether a ruleset limits how the jokers of the table may be moved."""
    return _demands(ruleset) != _NO_DEMANDS


@dataclass(frozen=True, slots=True)
class _Demands:
    """The options of retrieval, so that one can be dropped to see whether it is what is broken."""

    mode: JokerRetrievalMode
    must_replace: bool = False
    rack_only: bool = False
    both_colors: bool = False
    end_is_free: bool = False
    other_set: bool = False
    reuse: JokerRetrievalReuse = JokerRetrievalReuse.ANY_SET


_NO_DEMANDS: Final = _Demands(JokerRetrievalMode.FREE)


def _demands(ruleset: Ruleset) -> _Demands:
    mode = ruleset.joker_retrieval_mode
    return _Demands(
        mode,
        must_replace=mode is not JokerRetrievalMode.FREE,
        rack_only=ruleset.joker_retrieval_source is JokerRetrievalSource.RACK_ONLY,
        both_colors=ruleset.joker_retrieval_group_of_three is JokerRetrievalGroupOfThree.BOTH_COLORS,
        end_is_free=ruleset.joker_retrieval_end_of_run_free,
        other_set=ruleset.joker_retrieval_same_set is JokerRetrievalSameSet.FORBIDDEN
        and mode is not JokerRetrievalMode.NONE,
        reuse=ruleset.joker_retrieval_reuse,
    )


def _replacement_reasons(tables: "_Tables", demands: _Demands) -> tuple[Reason, ...]:
    """What is wrong with how jokers left their melds, whatever they were used for."""
    alone = replace(demands, other_set=False, reuse=JokerRetrievalReuse.ANY_SET)
    if _is_possible(tables, alone):
        return ()
    milder = {
        (Reason.JOKER_REPLACEMENT_NOT_FROM_RACK,): replace(alone, rack_only=False),
        (Reason.JOKER_GROUP_NEEDS_BOTH_COLORS,): replace(alone, both_colors=False),
        (Reason.JOKER_REPLACEMENT_NOT_FROM_RACK, Reason.JOKER_GROUP_NEEDS_BOTH_COLORS): replace(
            alone, rack_only=False, both_colors=False
        ),
    }
    for reasons, others in milder.items():
        if others != alone and _is_possible(tables, others):
            return reasons
    return (_NOT_REPLACED[demands.mode],)


_NOT_REPLACED: Final = {
    JokerRetrievalMode.NONE: Reason.JOKER_RETRIEVAL_FORBIDDEN,
    JokerRetrievalMode.REPLACE: Reason.JOKER_NOT_REPLACED,
    JokerRetrievalMode.LOCKED: Reason.JOKER_SET_LOCKED,
}

_USES: Final[dict[JokerRetrievalReuse, Reason]] = {
    JokerRetrievalReuse.NEW_SET: Reason.JOKER_NOT_IN_NEW_SET,
    JokerRetrievalReuse.NEW_SET_TWO_RACK_TILES: Reason.JOKER_REUSE_NEEDS_TWO_RACK_TILES,
    JokerRetrievalReuse.NEW_SET_ALL_RACK: Reason.JOKER_REUSE_NEEDS_RACK_ONLY,
}


def _use_reasons(tables: "_Tables", demands: _Demands) -> tuple[Reason, ...]:
    """What is wrong with where retrieved jokers lie, however they left their melds."""
    free = replace(demands, must_replace=False, other_set=False, reuse=JokerRetrievalReuse.ANY_SET)
    found = []
    if demands.other_set and not _is_possible(tables, replace(free, other_set=True)):
        found.append(Reason.JOKER_RETURNED_TO_SAME_SET)
    for reuse in _stricter_and_stricter(demands.reuse):
        if not _is_possible(tables, replace(free, reuse=reuse)):
            found.append(_USES[reuse])
            break
    return tuple(found)


def _joint_reasons(tables: "_Tables", demands: _Demands) -> tuple[Reason, ...]:
    """The first option that cannot be kept beside those before it, where each could be kept alone."""
    kept = replace(demands, reuse=JokerRetrievalReuse.ANY_SET)
    if not _is_possible(tables, kept):
        return (Reason.JOKER_RETURNED_TO_SAME_SET,)
    return next(
        (_USES[reuse],)
        for reuse in _stricter_and_stricter(demands.reuse)
        if not _is_possible(tables, replace(kept, reuse=reuse))
    )


def _stricter_and_stricter(reuse: JokerRetrievalReuse) -> tuple[JokerRetrievalReuse, ...]:
    if reuse is JokerRetrievalReuse.ANY_SET:
        return ()
    return tuple(dict.fromkeys((JokerRetrievalReuse.NEW_SET, reuse)))


@dataclass(frozen=True, slots=True, eq=False)
class _Joker:
    """A joker of a table; each is one of its own, so that it is quickly found in sets.

    Attributes:
        meld: In which meld it lies.
        place: Where in it.
        faces: What it stands for.
        number: Which of the table's jokers it is.
        sort: A number that it shares with the jokers that stand for the same in melds alike.
    """

    meld: int
    place: int
    faces: frozenset[Tile]
    number: int
    sort: int


@dataclass(frozen=True)
class _Tables:
    """The melds before and after, and what was played."""

    before: tuple[Meld, ...]
    after: tuple[Meld, ...]
    played: Counter[Tile]

    @cached_property
    def old_jokers(self) -> tuple[_Joker, ...]:
        """The jokers of the old table."""
        return tuple(_jokers(self.before))

    @cached_property
    def places(self) -> tuple[_Joker, ...]:
        """The jokers of the new table: where the old ones and those of the rack may lie."""
        return tuple(_jokers(self.after))

    @cached_property
    def old_naturals(self) -> tuple[frozenset[Tile], ...]:
        """The numbered tiles of each old meld; a meld has each once."""
        return tuple(map(_naturals, self.before))

    @cached_property
    def new_naturals(self) -> tuple[frozenset[Tile], ...]:
        """The numbered tiles of each new meld."""
        return tuple(map(_naturals, self.after))

    @cached_property
    def jokers_of(self) -> Counter[int]:
        """How many jokers each old meld has."""
        return Counter(joker.meld for joker in self.old_jokers)

    @cached_property
    def places_in(self) -> Counter[int]:
        """How many jokers each new meld has."""
        return Counter(place.meld for place in self.places)

    @cached_property
    def from_rack(self) -> tuple[frozenset[tuple[Tile, int, int]], ...]:
        """The ways in which tiles can have come to each new meld from the rack."""
        return tuple(
            frozenset((face, new, RACK) for face in faces if RACK in self.sources[face])
            for new, faces in enumerate(self.new_naturals)
        )

    @cached_property
    def elsewhere(self) -> "dict[tuple[int, int], _Goal]":
        """What is known already of how tiles of an old meld can have come to others than a certain new one."""
        return {}

    @cached_property
    def within(self) -> tuple[tuple[int, ...], ...]:
        """The old melds whose numbered tiles each new meld has too."""
        return tuple(
            tuple(old for old, faces in enumerate(self.old_naturals) if faces <= new) for new in self.new_naturals
        )

    @cached_property
    def can_have_come(self) -> dict[Hashable, bool]:
        """What is known already of how numbered tiles can have come."""
        return {}

    @cached_property
    def replacements(self) -> dict[Hashable, list[list[int]]]:
        """What is known already of the replacements of jokers."""
        return {}

    @cached_property
    def unlockable(self) -> dict[Hashable, bool]:
        """What is known already of which melds can be unlocked together."""
        return {}

    @cached_property
    def sources(self) -> dict[Tile, tuple[int, ...]]:
        """Where the copies of each face came from: old melds, and the rack."""
        found: dict[Tile, list[int]] = {}
        for meld, faces in enumerate(self.old_naturals):
            for face in faces:
                found.setdefault(face, []).append(meld)
        for face, copies in self.played.items():
            found.setdefault(face, []).extend([RACK] * copies)
        return {face: tuple(melds) for face, melds in found.items()}

    def ways_of(self, face: Tile) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The ways in which the copies of a face can have come: for each new meld that has one, from where."""
        if face not in self.known_ways:
            orders = set(permutations(self.sources[face]))
            self.known_ways[face] = tuple(tuple(zip(self.targets[face], order, strict=True)) for order in orders)
        return self.known_ways[face]

    @cached_property
    def known_ways(self) -> dict[Tile, tuple[tuple[tuple[int, int], ...], ...]]:
        """What is known already of them."""
        return {}

    @cached_property
    def targets(self) -> dict[Tile, tuple[int, ...]]:
        """The new melds in which the copies of each face lie."""
        found: dict[Tile, list[int]] = {}
        for meld, faces in enumerate(self.new_naturals):
            for face in faces:
                found.setdefault(face, []).append(meld)
        return {face: tuple(melds) for face, melds in found.items()}


def _jokers(table: tuple[Meld, ...]) -> Iterator[_Joker]:
    numbers = count()
    sorts: dict[tuple[Identity, frozenset[Tile]], int] = {}
    for meld, laid in enumerate(table):
        alike = identity(laid)
        places = (place for place, t in enumerate(laid.tiles) if t == JOKER)
        for place, faces in zip(places, map(frozenset, laid.joker_faces), strict=True):
            yield _Joker(meld, place, faces, next(numbers), sorts.setdefault((alike, faces), len(sorts)))


def _naturals(meld: Meld) -> frozenset[Tile]:
    return frozenset(t for t in meld.tiles if t != JOKER)


@dataclass(frozen=True, slots=True)
class _Fate:
    """What became of an old joker.

    Attributes:
        joker: The joker.
        now: The place where it lies now.
        retrieved: Whether it was retrieved, or else kept.
        left: Which sort of joker was retrieved or kept.
        led: To which new meld it led and how, if a rule may ask for that.
    """

    joker: _Joker
    now: _Joker
    retrieved: bool
    left: tuple[int, bool]
    led: tuple[int, bool, bool] | None


Fates = tuple[_Fate, ...]


def _is_possible(tables: _Tables, demands: _Demands) -> bool:
    return any(_are_unlocked(tables, demands, fates) for fates in _fates(tables, demands))


def _fates(tables: _Tables, demands: _Demands) -> Iterator[Fates]:
    """The ways in which the old jokers may have come to their places, kept or retrieved; of like ways one.

    Jokers are given their fates one after the other, first those that may have fewest. Three things keep the ways few:

    * What the fates of some jokers demand is demanded whatever becomes of the others. So a way is given up as soon as
      the numbered tiles cannot have come so.
    * It is given up as well when the places and replacements that are left cannot be shared out to the other jokers.
    * Two ways for the same jokers to the same places are alike if they differ only in which retrieved joker lies in
      which meld, where no rule asks for that (`_what_matters`). One of them is enough.
    """
    possible = sorted((_fates_of(tables, demands, joker) for joker in tables.old_jokers), key=_fewest_first)
    waiting: list[Fates] = [()] if _are_enough(tables, demands, (), possible) else []
    seen = set()
    while waiting:
        fates = waiting.pop()
        if len(fates) == len(possible):
            yield fates
            continue
        free = _free_places(tables, fates)
        later = possible[len(fates) + 1 :]
        for fate in possible[len(fates)]:
            more = (*fates, fate)
            if fate.now in free and (matters := _what_matters(demands, more)) not in seen:
                seen.add(matters)
                if _are_enough(tables, demands, more, later) and _may_have_come(tables, demands, more):
                    waiting.append(more)


def _fewest_first(possible: Fates) -> tuple[int, int]:
    """The order of jokers: by how many fates they may have, those of one meld one after the other."""
    return len(possible), possible[0].joker.meld if possible else 0


def _free_places(tables: _Tables, fates: Fates) -> set[_Joker]:
    """The places that are left; of new melds alike that no joker came to, those of the first."""
    taken = {fate.now for fate in fates}
    reached = {place.meld for place in taken}
    first: dict[int, int] = {}
    return {
        place
        for place in tables.places
        if place not in taken and (place.meld in reached or first.setdefault(place.sort, place.meld) == place.meld)
    }


def _what_matters(demands: _Demands, fates: Fates) -> Hashable:
    """All that matters of some jokers' fates for what is demanded of them and of the others'.

    These are: the places taken (two jokers of a group lie there alike), what became of each old meld's jokers (of two
    melds alike it does not matter which is which), and the melds that retrieved jokers are used for.
    """
    places = tuple(sorted([(fate.now.meld, fate.now.sort) for fate in fates]))
    became = tuple(sorted(map(_became, _by_old_meld(fates))))
    if demands.reuse is JokerRetrievalReuse.ANY_SET:
        return places, became
    return places, became, frozenset([fate.now.meld for fate in fates if fate.retrieved])


def _by_old_meld(fates: Fates) -> Iterable[Fates]:
    found: dict[int, Fates] = {}
    for fate in fates:
        found[fate.joker.meld] = (*found.get(fate.joker.meld, ()), fate)
    return found.values()


def _became(own: Fates) -> tuple[tuple[tuple[int, bool], ...], tuple[tuple[int, bool, bool], ...]]:
    """What became of the jokers of an old meld: which were retrieved, and where they led, not which of them where."""
    return tuple(sorted([fate.left for fate in own])), tuple(sorted([fate.led for fate in own if fate.led]))


def _fates_of(tables: _Tables, demands: _Demands, joker: _Joker) -> tuple[_Fate, ...]:
    """The fates that a joker may have as far as its own melds tell; the likelier come last, to be tried first."""
    return tuple(
        fate
        for retrieved in (True, False)
        for now in tables.places
        if _may_be(tables, demands, joker, now, retrieved)
        and _is_possible_alone(tables, demands, fate := _fate(tables, demands, joker, now, retrieved))
    )


def _fate(tables: _Tables, demands: _Demands, joker: _Joker, now: _Joker, retrieved: bool) -> _Fate:
    is_asked = not retrieved or _may_be_asked_for(tables, demands, joker.meld, now.meld)
    led = (now.meld, retrieved, _is_in_its_role(joker, now)) if is_asked else None
    return _Fate(joker, now, retrieved, (joker.sort, retrieved), led)


def _may_be_asked_for(tables: _Tables, demands: _Demands, old: int, new: int) -> bool:
    """Whether a rule may ask from which old meld to which new one a retrieved joker came."""
    any_set = demands.reuse is JokerRetrievalReuse.ANY_SET
    if tables.jokers_of[old] > 1 and (not any_set or tables.before[old].kind is tables.after[new].kind):
        return True
    if any_set:
        return old in tables.within[new]
    return not tables.old_naturals[old].isdisjoint(tables.new_naturals[new])


def _is_in_its_role(joker: _Joker, now: _Joker) -> bool:
    """Whether a joker stands for nothing that it did not stand for before."""
    return now.faces <= joker.faces


def _may_be(tables: _Tables, demands: _Demands, joker: _Joker, now: _Joker, retrieved: bool) -> bool:
    """Whether a fate is possible as far as the kinds and faces of two melds tell."""
    if retrieved:
        return demands.mode is not JokerRetrievalMode.NONE or not demands.must_replace
    if tables.before[joker.meld].kind is not tables.after[now.meld].kind or not _is_in_its_role(joker, now):
        return False
    return demands.mode is not JokerRetrievalMode.LOCKED or joker.meld in tables.within[now.meld]


def _is_possible_alone(tables: _Tables, demands: _Demands, fate: _Fate) -> bool:
    """Whether a joker's fate is possible whatever becomes of the others; of few jokers that need not be known."""
    few = len(tables.old_jokers) <= FEW_JOKERS
    return few or (_are_enough(tables, demands, (fate,), ()) and _may_have_come(tables, demands, (fate,)))


def _may_have_come(tables: _Tables, demands: _Demands, fates: Fates) -> bool:
    """Whether the numbered tiles can have come as the fates of some jokers demand."""
    wanted = _demanded(tables, demands, fates)
    return wanted is not None and _can_have_come(tables, wanted)


@dataclass(frozen=True, slots=True)
class _Goal:
    """That at least so many of certain tiles came as wanted: (face, new meld, where it came from)."""

    count: int
    ways: frozenset[tuple[Tile, int, int]]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is demanded of where numbered tiles came from: only so (face, new meld -> sources), and goals."""

    only: dict[tuple[Tile, int], frozenset[int]]
    goals: tuple[_Goal, ...]


def _demanded(tables: _Tables, demands: _Demands, fates: Fates) -> _Wanted | None:
    """What some jokers' fates demand of the numbered tiles; None if it cannot be. More fates never demand less."""
    used = _of_retrieved(tables, demands, fates)
    if used is None:
        return None
    if demands.mode is not JokerRetrievalMode.LOCKED:
        return _Wanted(used.only, used.goals + tuple(_kept_goals(tables, fates)))
    stays = _of_locked(tables, fates)
    if stays is None:
        return None
    return _Wanted(_merged(stays, used.only), used.goals + tuple(_moved_goals(tables, fates)))


Only = dict[tuple[Tile, int], frozenset[int]]


def _merged(one: Only, other: Only) -> Only:
    merged = dict(one)
    _restrict(merged, other.items())
    return merged


def _restrict(only: Only, more: Iterable[tuple[tuple[Tile, int], frozenset[int]]]) -> None:
    for tile_there, sources in more:
        only[tile_there] = only.get(tile_there, sources) & sources


def _kept_goals(tables: _Tables, fates: Fates) -> Iterator[_Goal]:
    """A joker is kept ("remains") if another tile of its old meld is with it. Asked when all its jokers have fates."""
    for own in _by_old_meld(fates):
        for fate in own if len(own) == tables.jokers_of[own[0].joker.meld] else ():
            if not fate.retrieved and not _other_jokers_with(tables, fate, own):
                old, new = fate.joker.meld, fate.now.meld
                shared = tables.old_naturals[old] & tables.new_naturals[new]
                yield _Goal(1, frozenset((face, new, old) for face in shared))


def _moved_goals(tables: _Tables, fates: Fates) -> Iterator[_Goal]:
    """In mode LOCKED a joker was not retrieved if its whole old meld is with it, and its role no wider."""
    for fate in fates:
        old, new = fate.joker.meld, fate.now.meld
        if fate.retrieved and _is_in_its_role(fate.joker, fate.now) and _lies_whole(tables, old, new, fates, fate):
            yield _elsewhere(tables, old, new)


def _other_jokers_with(tables: _Tables, fate: _Fate, fates: Fates) -> bool:
    """Whether other jokers of a joker's old meld lie in its new one."""
    old, new = fate.joker.meld, fate.now.meld
    return tables.jokers_of[old] > 1 and any(
        other.joker.meld == old and other.now.meld == new for other in fates if other is not fate
    )


# What retrieved jokers may be used for


def _of_retrieved(tables: _Tables, demands: _Demands, fates: Fates) -> _Wanted | None:
    """What joker_retrieval_same_set and joker_retrieval_reuse demand; None if they cannot be kept."""
    only: Only = {}
    goals: list[_Goal] = []
    for fate in fates:
        if not fate.retrieved:
            continue
        if demands.other_set:
            goals += _not_back(tables, fate, fates)
        if demands.reuse is JokerRetrievalReuse.ANY_SET:
            continue
        if _other_jokers_with(tables, fate, fates):
            return None
        _restrict(only, _nothing_of_the_old_meld(tables, fate))
        goals += _no_whole_old_meld(tables, fate, fates)
        if demands.reuse is JokerRetrievalReuse.NEW_SET_TWO_RACK_TILES:
            goals.append(_two_rack_tiles(tables, fate, fates))
        if demands.reuse is JokerRetrievalReuse.NEW_SET_ALL_RACK:
            new = fate.now.meld
            if _old_jokers_in(new, fates) > 1 or len(tables.from_rack[new]) < len(tables.new_naturals[new]):
                return None
            _restrict(only, (((face, new), frozenset({RACK})) for face in tables.new_naturals[new]))
    return _Wanted(only, tuple(goals))


def _old_jokers_in(new: int, fates: Fates) -> int:
    return sum(fate.now.meld == new for fate in fates)


def _elsewhere(tables: _Tables, old: int, new: int) -> _Goal:
    """That a tile of an old meld is not in a new one."""
    if (old, new) not in tables.elsewhere:
        ways = ((face, target, old) for face in tables.old_naturals[old] for target in tables.targets[face])
        tables.elsewhere[old, new] = _Goal(1, frozenset(way for way in ways if way[1] != new))
    return tables.elsewhere[old, new]


def _lies_whole(tables: _Tables, old: int, new: int, fates: Fates, but: _Fate) -> bool:
    """Whether an old meld, but one joker, could lie whole in a new one, by its faces and its jokers."""
    if old not in tables.within[new]:
        return False
    others = tables.jokers_of[old] - (but.joker.meld == old)
    return others == sum(fate.joker.meld == old and fate.now.meld == new and fate is not but for fate in fates)


def _not_back(tables: _Tables, fate: _Fate, fates: Fates) -> Iterator[_Goal]:
    """joker_retrieval_same_set FORBIDDEN: the joker is not in a meld with all the rest of its old one."""
    old, new = fate.joker.meld, fate.now.meld
    if _lies_whole(tables, old, new, fates, fate):
        yield _elsewhere(tables, old, new)


def _nothing_of_the_old_meld(tables: _Tables, fate: _Fate) -> Iterator[tuple[tuple[Tile, int], frozenset[int]]]:
    old, new = fate.joker.meld, fate.now.meld
    for face in tables.old_naturals[old] & tables.new_naturals[new]:
        yield (face, new), frozenset(tables.sources[face]) - {old}


def _no_whole_old_meld(tables: _Tables, fate: _Fate, fates: Fates) -> Iterator[_Goal]:
    """A new meld holds no whole meld of the old table: else the joker only extended it."""
    new = fate.now.meld
    for old in tables.within[new]:
        if old != fate.joker.meld and _lies_whole(tables, old, new, fates, fate):
            yield _elsewhere(tables, old, new)


def _two_rack_tiles(tables: _Tables, fate: _Fate, fates: Fates) -> _Goal:
    """NEW_SET_TWO_RACK_TILES: so many numbered tiles of the rack as its jokers leave to be wanted, if all lie there."""
    new = fate.now.meld
    of_rack = len(tables.places) - len(tables.old_jokers)
    rack_jokers = min(of_rack, tables.places_in[new] - _old_jokers_in(new, fates))
    return _Goal(max(0, 2 - rack_jokers), tables.from_rack[new])


# Replacements


def _needs(demands: _Demands, meld: Meld, joker: _Joker) -> tuple[tuple[Tile, ...], ...]:
    """The replacements that free a joker: of the alternatives, all tiles of one."""
    at_an_end = joker.place in {0, len(meld.tiles) - 1}
    if demands.end_is_free and meld.kind is MeldKind.RUN and len(meld.tiles) >= LONG_RUN and at_an_end:
        return ((),)
    group_of_three = meld.kind is MeldKind.GROUP and len(meld.tiles) == 3 and meld.tiles.count(JOKER) == 1
    faces = tuple(sorted(joker.faces))
    if demands.both_colors and group_of_three:
        return (faces,)
    return tuple((face,) for face in faces)


def _are_enough(tables: _Tables, demands: _Demands, fates: Fates, later: Sequence[Fates]) -> bool:
    """Whether the jokers that come later find a place each, and all jokers the tiles that they need.

    Two pairings are asked for, so what is not refused here may yet be impossible.
    """
    if later:
        taken = {fate.now for fate in fates}
        later = [tuple([fate for fate in possible if fate.now not in taken]) for possible in later]
        if unpaired([[fate.now.number for fate in possible] for possible in later]):
            return False
    if not demands.must_replace or not (later or fates[-1].retrieved):
        return True
    return _are_replaced(tables, demands, fates, later)


def _are_replaced(tables: _Tables, demands: _Demands, fates: Fates, later: Sequence[Fates]) -> bool:
    """Whether each joker has replacements of its own if it was retrieved, or may be kept at a place of its own."""
    kept = {fate.joker.meld: fate.now.meld for fate in fates if not fate.retrieved}
    locked = frozenset(kept) if demands.mode is JokerRetrievalMode.LOCKED else frozenset[int]()
    choices = []
    for fate in fates:
        if fate.retrieved:
            into = kept[fate.joker.meld] if fate.joker.meld in locked else None
            choices += _replacements(tables, demands, fate.joker, locked, into)
    for possible in later:
        tiles = _replacements(tables, demands, possible[0].joker, locked, None)
        may_be_retrieved = any(fate.retrieved for fate in possible)
        if tiles or not may_be_retrieved:
            copies = [copy for copies in tiles for copy in copies] if may_be_retrieved else []
            choices.append([*(-1 - fate.now.number for fate in possible if not fate.retrieved), *copies])
    return not unpaired(choices)


def _replacements(
    tables: _Tables, demands: _Demands, joker: _Joker, locked: frozenset[int], into: int | None
) -> list[list[int]]:
    """The tiles of which each of a joker's replacements may be one, wherever they came from that stays not locked.

    If a joker stays in its old meld, the replacements lie where that one lies now: in the new meld `into`.
    """
    key = (demands.rack_only, demands.both_colors, joker, locked, into)
    if key not in tables.replacements:
        needs = _one_by_one(_needs(demands, tables.before[joker.meld], joker))
        sources = _free_sources(tables, demands, locked)
        where = None if into is None else tables.new_naturals[into]
        faces_of = [tuple(face for face in faces if where is None or face in where) for faces in needs]
        tables.replacements[key] = [_copies(tables, faces, sources) for faces in faces_of]
    return tables.replacements[key]


def _free_sources(tables: _Tables, demands: _Demands, locked: frozenset[int]) -> set[int]:
    """Where replacements may come from, if some melds stay locked; each of the others is unlocked for itself."""
    if demands.rack_only:
        return {RACK}
    every = {RACK, *range(len(tables.before))}
    if demands.mode is not JokerRetrievalMode.LOCKED:
        return every
    free = every - tables.jokers_of.keys()
    waiting = [*(tables.jokers_of.keys() - locked)] * len(tables.jokers_of)
    for meld in waiting:
        needs = (_needs(demands, tables.before[meld], joker) for joker in tables.old_jokers if joker.meld == meld)
        if all(_copies(tables, faces, free) for need in needs for faces in _one_by_one(need)):
            free.add(meld)
    return free


def _one_by_one(need: tuple[tuple[Tile, ...], ...]) -> list[tuple[Tile, ...]]:
    """What frees a joker, as the faces of which each tile may be: alternatives are of one tile each."""
    if len(need) == 1:
        return [(face,) for face in need[0]]
    return [tuple(face for tiles in need for face in tiles)]


def _copies(tables: _Tables, faces: tuple[Tile, ...], sources: Container[int]) -> list[int]:
    """The copies of some faces that came from somewhere, each as a number of its own."""
    return [
        face * MOST_COPIES + copy
        for face in faces
        for copy, source in enumerate(tables.sources.get(face, ()))
        if source in sources
    ]


def _choices(
    needs: list[tuple[tuple[Tile, ...], ...]], available: Counter[Tile]
) -> Iterator[tuple[tuple[Tile, ...], ...]]:
    """Replacements for each of several jokers, no tile used twice."""
    if not needs:
        yield ()
        return
    for tiles in needs[0]:
        used = Counter(tiles)
        if used <= available:
            for others in _choices(needs[1:], available - used):
                yield (tiles, *others)


@dataclass(frozen=True, slots=True)
class _Free:
    """What may replace a joker of a locked meld: tiles that are free to move by now, and where they may come from."""

    tiles: Counter[Tile]
    sources: frozenset[int]


def _of_locked(tables: _Tables, fates: Fates) -> Only | None:
    """joker_retrieval_mode LOCKED: what melds demand some of whose jokers stay; None if they cannot."""
    only: Only = {}
    for old in {fate.joker.meld for fate in fates if not fate.retrieved}:
        melds = {fate.now.meld for fate in fates if fate.joker.meld == old and not fate.retrieved}
        if len(melds) > 1:
            return None
        _restrict(only, (((face, min(melds)), frozenset({old})) for face in tables.old_naturals[old]))
    return only


def _are_unlocked(tables: _Tables, demands: _Demands, fates: Fates) -> bool:
    """joker_retrieval_mode LOCKED: whether the melds that lost jokers can have been unlocked, one after the other."""
    if demands.mode is not JokerRetrievalMode.LOCKED or not demands.must_replace:
        return True
    melds = sorted({fate.joker.meld for fate in fates if fate.retrieved})
    unlocked = tuple(tuple(fate for fate in fates if fate.joker.meld == old) for old in melds)
    wanted = _demanded(tables, demands, fates)
    if wanted is None or all(fate.retrieved for own in unlocked for fate in own):
        return _can_be_unlocked(tables, demands, fates, unlocked)
    ways = _unlocked(tables, demands, unlocked, _free_at_first(tables, demands, fates), wanted.only)
    return any(_can_have_come(tables, _Wanted(only, wanted.goals)) for only in ways)


def _can_be_unlocked(tables: _Tables, demands: _Demands, fates: Fates, locked: tuple[Fates, ...]) -> bool:
    """Whether melds whose jokers were all retrieved can be unlocked: where the jokers lie now plays no part in it."""
    key = (demands.rack_only, demands.both_colors, tuple(sorted(fate.joker.sort for own in locked for fate in own)))
    if key not in tables.unlockable:
        ways = _unlocked(tables, demands, locked, _free_at_first(tables, demands, fates), {})
        tables.unlockable[key] = any(True for _ in ways)
    return tables.unlockable[key]


def _free_at_first(tables: _Tables, demands: _Demands, fates: Fates) -> _Free:
    """What may replace a joker before any meld is unlocked: tiles of the rack, and of melds without jokers."""
    tiles = Counter(tables.played)
    if demands.rack_only:
        return _Free(tiles, frozenset({RACK}))
    with_jokers = {fate.joker.meld for fate in fates}
    for old, faces in enumerate(tables.old_naturals):
        if old not in with_jokers:
            tiles.update(faces)
    stay_locked = {fate.joker.meld for fate in fates if not fate.retrieved}
    return _Free(tiles, frozenset({RACK, *range(len(tables.before))}) - stay_locked)


def _unlocked(tables: _Tables, demands: _Demands, locked: tuple[Fates, ...], free: _Free, only: Only) -> Iterator[Only]:
    """Unlocks melds in every order: the tiles of one whose jokers are all replaced may replace those of the next."""
    seen = set()
    waiting = [(locked, free.tiles, only)]
    while waiting:
        locked, tiles, placed = waiting.pop()
        if not locked:
            yield placed
        for after in _unlock_one(tables, demands, locked, _Free(tiles, free.sources), placed):
            state = (after[0], frozenset(after[1].items()), frozenset(after[2].items()))
            if state not in seen:
                seen.add(state)
                waiting.append(after)


def _unlock_one(
    tables: _Tables, demands: _Demands, locked: tuple[Fates, ...], free: _Free, only: Only
) -> Iterator[tuple[tuple[Fates, ...], Counter[Tile], Only]]:
    """The ways to unlock one more meld: which are locked still, which tiles are free then, what is demanded."""
    for own in _next_to_unlock(demands, locked):
        others = tuple(other for other in locked if other is not own)
        needs = [_needs(demands, tables.before[fate.joker.meld], fate.joker) for fate in own if fate.retrieved]
        for replacements in _choices(needs, free.tiles):
            placed = _put_in_place(tables, own, replacements, free, only)
            if placed is not None:
                left = free.tiles - Counter(t for tiles in replacements for t in tiles)
                if _sets_free(demands, own):
                    left.update(tables.old_naturals[own[0].joker.meld])
                yield others, left, placed


def _next_to_unlock(demands: _Demands, locked: tuple[Fates, ...]) -> tuple[Fates, ...]:
    """The melds of which the next is one: those that set tiles free come first, the order of others is all the same."""
    return tuple(own for own in locked if _sets_free(demands, own)) or locked[:1]


def _sets_free(demands: _Demands, own: Fates) -> bool:
    """Whether the tiles of an unlocked meld may replace jokers of others: all its jokers were retrieved."""
    return not demands.rack_only and all(fate.retrieved for fate in own)


def _put_in_place(
    tables: _Tables, own: Fates, replacements: tuple[tuple[Tile, ...], ...], free: _Free, only: Only
) -> Only | None:
    """In a meld that keeps a joker, replacements lie where the retrieved jokers lay; None if they do not."""
    kept = [fate.now.meld for fate in own if not fate.retrieved]
    if not kept:
        return only
    faces = [t for tiles in replacements for t in tiles]
    if len(set(faces)) < len(faces) or not set(faces) <= tables.new_naturals[kept[0]]:
        return None
    placed = dict(only)
    _restrict(placed, (((face, kept[0]), free.sources) for face in faces))
    return placed


# Where numbered tiles came from


def _can_have_come(tables: _Tables, wanted: _Wanted) -> bool:
    """Whether the copies of every face can have come as wanted."""
    if not wanted.only and not wanted.goals:
        return True
    key = (frozenset(wanted.only.items()), frozenset(wanted.goals))
    if key not in tables.can_have_come:
        tables.can_have_come[key] = _is_there_a_way(tables, wanted.only, tuple(key[1]))
    return tables.can_have_come[key]


def _is_there_a_way(tables: _Tables, only: Only, goals: tuple[_Goal, ...]) -> bool:
    """Goes through the faces, and remembers how much each goal can still lack."""
    lacking = tuple(goal.count for goal in goals)
    if not all(only.values()) or any(goal.count > len(goal.ways) for goal in goals):
        return False
    helped: dict[tuple[Tile, int, int], list[int]] = {}
    for number, goal in enumerate(goals):
        for way in goal.ways:
            helped.setdefault(way, []).append(number)
    reached = {lacking}
    for face in {face for face, _ in only} | {face for face, _, _ in helped}:
        steps = _steps(tables, only, helped, face)
        reached = {_with_less_lacking(lacking, step) for lacking in reached for step in steps}
    return any(not any(lacking) for lacking in reached)


def _with_less_lacking(lacking: tuple[int, ...], step: frozenset[int]) -> tuple[int, ...]:
    if not step:
        return lacking
    return tuple([max(0, count - (goal in step)) for goal, count in enumerate(lacking)])


def _steps(
    tables: _Tables, only: Only, helped: Mapping[tuple[Tile, int, int], list[int]], face: Tile
) -> list[frozenset[int]]:
    """For each way in which the copies of a face can have come: which goals it helps. One that helps less is none."""
    steps = {
        frozenset(goal for target, source in came for goal in helped.get((face, target, source), ()))
        for came in tables.ways_of(face)
        if all(source in only.get((face, target), (source,)) for target, source in came)
    }
    return [step for step in steps if not any(step < other for other in steps)]
