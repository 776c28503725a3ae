"""How the jokers of the table may be moved (R46 to R50, R53; docs/rules.md, Retrieval).

The rules ask where a tile came from, and tiles have no identity. So a play is legal if *some* way of telling the tiles
apart makes it so: which joker of the old table lies where now, and from which old meld, or the rack, each numbered tile
came. The search has three steps, each small:

1. Every joker of the old table is given a place in a new meld, and is either *kept* there or *retrieved* (`_fates`).
2. What that demands is written down (`_demanded`): tiles that must have come from a certain meld or may not, and goals
   such as "two tiles of this meld came from the rack".
3. Whether the numbered tiles can have come so is decided face by face (`_can_have_come`): a face has three copies at
   most, so few ways, and all that is remembered from one face to the next is how far each goal has been reached.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Final

from engine.melds import Meld, MeldKind
from engine.play import Play
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


@dataclass(frozen=True, slots=True)
class _Joker:
    """A joker of a table: in which meld it lies, where in it, and the faces it stands for."""

    meld: int
    place: int
    faces: frozenset[Tile]


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
    def unlockable(self) -> dict[tuple[_Demands, frozenset[int]], bool]:
        """What is known already of which melds can be unlocked together."""
        return {}

    @cached_property
    def may_be_new(self) -> dict[int, bool]:
        """What is known already of which new melds may be new ones."""
        return {}

    @cached_property
    def sources(self) -> dict[Tile, tuple[int, ...]]:
        """Where the copies of each face came from: old melds, and the rack."""
        found: dict[Tile, list[int]] = {}
        for meld, faces in enumerate(self.old_naturals):
            for face in faces:
                found.setdefault(face, []).append(meld)
        for face, count in self.played.items():
            found.setdefault(face, []).extend([RACK] * count)
        return {face: tuple(melds) for face, melds in found.items()}

    @cached_property
    def targets(self) -> dict[Tile, tuple[int, ...]]:
        """The new melds in which the copies of each face lie."""
        found: dict[Tile, list[int]] = {}
        for meld, faces in enumerate(self.new_naturals):
            for face in faces:
                found.setdefault(face, []).append(meld)
        return {face: tuple(melds) for face, melds in found.items()}


def _jokers(table: tuple[Meld, ...]) -> Iterator[_Joker]:
    for meld, laid in enumerate(table):
        places = (place for place, t in enumerate(laid.tiles) if t == JOKER)
        for place, faces in zip(places, laid.joker_faces, strict=True):
            yield _Joker(meld, place, frozenset(faces))


def _naturals(meld: Meld) -> frozenset[Tile]:
    return frozenset(t for t in meld.tiles if t != JOKER)


@dataclass(frozen=True, slots=True)
class _Fate:
    """What became of an old joker: the place where it lies now, and whether it was retrieved or kept."""

    joker: _Joker
    now: _Joker
    retrieved: bool


Fates = tuple[_Fate, ...]


def _is_possible(tables: _Tables, demands: _Demands) -> bool:
    return any(
        _can_have_come(tables, wanted)
        for fates in _fates(tables, demands)
        for wanted in _demanded(tables, demands, fates)
    )


def _fates(tables: _Tables, demands: _Demands, chosen: Fates = ()) -> Iterator[Fates]:
    """Every way in which the old jokers may have come to their places, kept or retrieved; of like ways one."""
    if len(chosen) == len(tables.old_jokers):
        yield chosen
        return
    joker = tables.old_jokers[len(chosen)]
    for now in _free_places(tables, chosen):
        for retrieved in (False, True):
            fate = _Fate(joker, now, retrieved)
            if not _is_like_an_earlier_one(fate, chosen) and _may_be(tables, demands, fate):
                yield from _fates(tables, demands, (*chosen, fate))


def _free_places(tables: _Tables, chosen: Fates) -> Iterator[_Joker]:
    """The places left, one of each sort: two jokers of a group lie there alike."""
    taken = {fate.now for fate in chosen}
    sorts = set()
    for place in tables.places:
        sort = (place.meld, place.faces)
        if place not in taken and sort not in sorts:
            sorts.add(sort)
            yield place


def _is_like_an_earlier_one(fate: _Fate, chosen: Fates) -> bool:
    """Whether the joker before it is of the same sort and lies later: the two are told the other way round too."""
    if not chosen:
        return False
    before = chosen[-1]
    alike = (before.joker.meld, before.joker.faces) == (fate.joker.meld, fate.joker.faces)
    return alike and _order(fate) < _order(before)


def _order(fate: _Fate) -> tuple[int, int, bool]:
    return fate.now.meld, min(fate.now.faces), fate.retrieved


def _may_be(tables: _Tables, demands: _Demands, fate: _Fate) -> bool:
    """Whether a fate is possible as far as a joker's two melds tell."""
    joker, now = fate.joker, fate.now
    if fate.retrieved:
        may_leave = not demands.must_replace or _may_leave(tables, demands, joker)
        return may_leave and (demands.reuse is JokerRetrievalReuse.ANY_SET or _may_be_new(tables, now.meld))
    if tables.before[joker.meld].kind is not tables.after[now.meld].kind or not now.faces <= joker.faces:
        return False
    locked = demands.mode is JokerRetrievalMode.LOCKED
    return not locked or tables.old_naturals[joker.meld] <= tables.new_naturals[now.meld]


def _may_leave(tables: _Tables, demands: _Demands, joker: _Joker) -> bool:
    """Whether the tiles that would replace a joker are to be had at all."""
    if demands.mode is JokerRetrievalMode.NONE:
        return False
    available = tables.played.keys() if demands.rack_only else tables.sources.keys()
    return any(available >= set(tiles) for tiles in _needs(tables, demands, joker))


def _may_be_new(tables: _Tables, new: int) -> bool:
    """Whether a meld needs not hold a whole old one, as far as old melds without jokers tell."""
    if new not in tables.may_be_new:
        with_jokers = {joker.meld for joker in tables.old_jokers}
        inside = (
            old
            for old, faces in enumerate(tables.old_naturals)
            if old not in with_jokers and faces <= tables.new_naturals[new]
        )
        wanted = _Wanted({}, tuple(_elsewhere(tables, old, new) for old in inside))
        tables.may_be_new[new] = _can_have_come(tables, wanted)
    return tables.may_be_new[new]


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


def _demanded(tables: _Tables, demands: _Demands, fates: Fates) -> Iterator[_Wanted]:
    """The demands that make the fates legal, each one enough; none if nothing does."""
    used = _of_retrieved(tables, demands, fates)
    if used is None or not _can_have_come(tables, used):
        return
    if demands.mode is JokerRetrievalMode.LOCKED:
        for only in _locked(tables, demands, fates):
            merged = _merged(only, used)
            yield _Wanted(merged.only, merged.goals + tuple(_moved_goals(tables, fates)))
    elif not demands.must_replace or _are_replaced(tables, demands, fates):
        yield _Wanted(used.only, used.goals + tuple(_kept_goals(tables, fates)))


Only = dict[tuple[Tile, int], frozenset[int]]


def _merged(only: Only, wanted: _Wanted) -> _Wanted:
    merged = dict(wanted.only)
    _restrict(merged, only.items())
    return _Wanted(merged, wanted.goals)


def _restrict(only: Only, more: Iterable[tuple[tuple[Tile, int], frozenset[int]]]) -> None:
    for tile_there, sources in more:
        only[tile_there] = only.get(tile_there, sources) & sources


def _kept_goals(tables: _Tables, fates: Fates) -> Iterator[_Goal]:
    """A joker is kept (it "remains") if another tile of its old meld is with it."""
    for fate in fates:
        old, new = fate.joker.meld, fate.now.meld
        if not fate.retrieved and not _other_jokers_with(fate, fates):
            shared = tables.old_naturals[old] & tables.new_naturals[new]
            yield _Goal(1, frozenset((face, new, old) for face in shared))


def _moved_goals(tables: _Tables, fates: Fates) -> Iterator[_Goal]:
    """In mode LOCKED a joker was not retrieved if its whole old meld is with it, and its role no wider."""
    for fate in fates:
        old, new = fate.joker.meld, fate.now.meld
        in_its_role = fate.retrieved and fate.now.faces <= fate.joker.faces
        if in_its_role and _lies_whole(tables, old, new, fates, fate):
            yield _elsewhere(tables, old, new)


def _other_jokers_with(fate: _Fate, fates: Fates) -> int:
    """How many other jokers of a joker's old meld lie in its new one."""
    return sum(
        other is not fate and other.joker.meld == fate.joker.meld and other.now.meld == fate.now.meld for other in fates
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
        if _other_jokers_with(fate, fates):
            return None
        _restrict(only, _nothing_of_the_old_meld(tables, fate))
        goals += _no_whole_old_meld(tables, fate, fates)
        if demands.reuse is JokerRetrievalReuse.NEW_SET_TWO_RACK_TILES:
            goals.append(_two_rack_tiles(tables, fate, fates))
        if demands.reuse is JokerRetrievalReuse.NEW_SET_ALL_RACK:
            if _old_jokers_in(fate.now.meld, fates) > 1:
                return None
            faces = tables.new_naturals[fate.now.meld]
            _restrict(only, (((face, fate.now.meld), frozenset({RACK})) for face in faces))
    return _Wanted(only, tuple(goals))


def _old_jokers_in(new: int, fates: Fates) -> int:
    return sum(fate.now.meld == new for fate in fates)


def _elsewhere(tables: _Tables, old: int, new: int) -> _Goal:
    """That a tile of an old meld is not in a new one."""
    ways = frozenset(
        (face, target, old) for face in tables.old_naturals[old] for target in tables.targets[face] if target != new
    )
    return _Goal(1, ways)


def _lies_whole(tables: _Tables, old: int, new: int, fates: Fates, but: _Fate) -> bool:
    """Whether an old meld, but one joker, could lie whole in a new one, by its faces and its jokers."""
    jokers = all(fate.now.meld == new for fate in fates if fate.joker.meld == old and fate is not but)
    return jokers and tables.old_naturals[old] <= tables.new_naturals[new]


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
    for old in range(len(tables.before)):
        if old != fate.joker.meld and _lies_whole(tables, old, new, fates, fate):
            yield _elsewhere(tables, old, new)


def _two_rack_tiles(tables: _Tables, fate: _Fate, fates: Fates) -> _Goal:
    new = fate.now.meld
    rack_jokers = sum(place.meld == new for place in tables.places) - _old_jokers_in(new, fates)
    ways = frozenset((face, new, RACK) for face in tables.new_naturals[new])
    return _Goal(max(0, 2 - rack_jokers), ways)


# Replacements


def _needs(tables: _Tables, demands: _Demands, joker: _Joker) -> tuple[tuple[Tile, ...], ...]:
    """The replacements that free a joker: of the alternatives, all tiles of one."""
    meld = tables.before[joker.meld]
    at_an_end = joker.place in {0, len(meld.tiles) - 1}
    if demands.end_is_free and meld.kind is MeldKind.RUN and len(meld.tiles) >= LONG_RUN and at_an_end:
        return ((),)
    group_of_three = meld.kind is MeldKind.GROUP and len(meld.tiles) == 3 and meld.tiles.count(JOKER) == 1
    faces = tuple(sorted(joker.faces))
    if demands.both_colors and group_of_three:
        return (faces,)
    return tuple((face,) for face in faces)


def _are_replaced(tables: _Tables, demands: _Demands, fates: Fates) -> bool:
    """joker_retrieval_mode REPLACE: each retrieved joker has replacement tiles of its own."""
    available = Counter(tables.played)
    if not demands.rack_only:
        available.update(face for faces in tables.old_naturals for face in faces)
    needs = [_needs(tables, demands, fate.joker) for fate in fates if fate.retrieved]
    return any(True for _ in _choices(needs, available))


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


def _locked(tables: _Tables, demands: _Demands, fates: Fates) -> Iterator[Only]:
    """joker_retrieval_mode LOCKED: melds whose jokers stay lie whole; the others were unlocked, one after the other."""
    only: Only = {}
    unlocked = []
    for old in sorted({fate.joker.meld for fate in fates}):
        own = tuple(fate for fate in fates if fate.joker.meld == old)
        if not all(fate.retrieved for fate in own) and not _stays(tables, own, only):
            return
        if any(fate.retrieved for fate in own):
            unlocked.append(own)
    if not demands.must_replace:
        yield only
        return
    if any(not fate.retrieved for own in unlocked for fate in own):
        yield from _unlocked(tables, demands, tuple(unlocked), _free_at_first(tables, demands, fates), only)
    elif _can_be_unlocked(tables, demands, fates, tuple(unlocked)):
        yield only


def _can_be_unlocked(tables: _Tables, demands: _Demands, fates: Fates, locked: tuple[Fates, ...]) -> bool:
    """Whether melds whose jokers were all retrieved can be unlocked: where the jokers lie now plays no part in it."""
    key = (demands, frozenset(own[0].joker.meld for own in locked))
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


def _stays(tables: _Tables, own: Fates, only: Only) -> bool:
    """Whether a meld, some of whose jokers stay, can lie whole in one new meld; what that demands is added."""
    melds = {fate.now.meld for fate in own if not fate.retrieved}
    old = own[0].joker.meld
    if len(melds) > 1 or not tables.old_naturals[old] <= tables.new_naturals[min(melds)]:
        return False
    _restrict(only, (((face, min(melds)), frozenset({old})) for face in tables.old_naturals[old]))
    return True


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
    for place, own in enumerate(locked):
        others = locked[:place] + locked[place + 1 :]
        needs = [_needs(tables, demands, fate.joker) for fate in own if fate.retrieved]
        for replacements in _choices(needs, free.tiles):
            placed = _put_in_place(tables, own, replacements, free, only)
            if placed is not None:
                left = free.tiles - Counter(t for tiles in replacements for t in tiles)
                if all(fate.retrieved for fate in own) and not demands.rack_only:
                    left.update(tables.old_naturals[own[0].joker.meld])
                yield others, left, placed


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
    if not all(wanted.only.values()):
        return False
    faces = {face for face, _ in wanted.only} | {face for goal in wanted.goals for face, _, _ in goal.ways}
    reached = {tuple(0 for _ in wanted.goals)}
    for face in sorted(faces):
        steps = set(_steps(tables, wanted, face))
        reached = {
            tuple(min(goal.count, so_far + more) for goal, so_far, more in zip(wanted.goals, state, step, strict=True))
            for state in reached
            for step in steps
        }
    return tuple(goal.count for goal in wanted.goals) in reached


def _steps(tables: _Tables, wanted: _Wanted, face: Tile) -> Iterator[tuple[int, ...]]:
    """For each way in which the copies of a face can have come: how much it adds to each goal."""
    targets = tables.targets[face]
    for sources in permutations(tables.sources[face]):
        came = tuple(zip(targets, sources, strict=True))
        if all(source in wanted.only.get((face, target), (source,)) for target, source in came):
            yield tuple(sum((face, *way) in goal.ways for way in came) for goal in wanted.goals)
