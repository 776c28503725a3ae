"""How the jokers of the table may be moved (R46 to R50, R53; docs/rules.md, Retrieval).

The rules ask where a tile came from, and tiles have no identity. So a play is legal if *some* way of telling the tiles
apart makes it so: which joker of the old table lies where now, and from which old meld, or the rack, each numbered tile
came. The search has three steps:

1. For each old meld, the ways in which its jokers may have gone (`_outcomes_of`): each was *kept* at a place of a new
   meld or was *retrieved* and lies in some new meld, wherever in it. What that demands is a set of conditions: that
   certain tiles came from certain melds, or goals such as "two tiles of this meld came from the rack".
2. The old melds are gone through one after the other, and the ways of one are joined with those of the next
   (`_outcomes`). Ways that come to the same are one, and what cannot become legal any more is given up.
3. Whether the numbered tiles can have come so is decided face by face (`_can_have_come`): a face has three copies at
   most, so few ways, and all that is remembered from one face to the next is how far each goal has been reached.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Final, NamedTuple

from engine.effort import Effort, TooComplexError
from engine.lazy import lazy_property
from engine.matching import unpaired
from engine.melds import MIN_TILES, Meld, MeldKind
from engine.play import STEPS, BasePlay
from engine.ruleset import (
    JokerRetrievalGroupOfThree,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameSet,
    JokerRetrievalSource,
    Ruleset,
)
from engine.table import identity
from engine.tiles import JOKER, Tile
from engine.violations import Reason

RACK: Final = -1
"""Where a tile came from that was played; old melds are named by their place on the table."""

MOST_COPIES: Final = 256
"""More than there are copies of a face."""

LONG_RUN: Final = 4
"""Fewest tiles of a run from whose end a joker may be taken (joker_retrieval_end_of_run_free)."""


def retrieval_reasons(play: BasePlay) -> tuple[Reason, ...]:
    """Why no way of telling the tiles apart makes a play legal as to the jokers of the table; empty if one does.

    All melds of the play are melds, no tile is missing, and what is new is the player's own. Raises TooComplexError.
    """
    demands = _demands(play.ruleset)
    moved = any(JOKER in meld.tiles for meld in play.changed_melds)
    if not moved or demands == _NO_DEMANDS:
        return ()
    tables = _Tables(play.table_before, play.melds, play.tiles_played, play.effort)
    if _is_possible(tables, demands):
        return ()
    return _replacement_reasons(tables, demands) + _use_reasons(tables, demands) or _joint_reasons(tables, demands)


def may_be_retrieved(
    before: tuple[Meld, ...], after: tuple[Meld, ...], played: Counter[Tile], ruleset: Ruleset
) -> bool:
    """Whether some way of telling the tiles apart makes a new table of melds legal as to the jokers of the old one.

    True, too, where that takes more steps than judging a turn may.
    """
    try:
        return _is_possible(_Tables(before, after, played, Effort(STEPS)), _demands(ruleset))
    except TooComplexError:
        return True


def limits_retrieval(ruleset: Ruleset) -> bool:
    """Whether a ruleset limits how the jokers of the table may be moved."""
    return _demands(ruleset) != _NO_DEMANDS


class _Demands(NamedTuple):
    """The options of retrieval, so that one can be dropped to see whether it is what is broken.

    Attributes:
        widens: Whether a joker may be kept where it stands for more than before, as in a group that has lost a color.
    """

    mode: JokerRetrievalMode
    must_replace: bool = False
    rack_only: bool = False
    both_colors: bool = False
    end_is_free: bool = False
    other_set: bool = False
    reuse: JokerRetrievalReuse = JokerRetrievalReuse.ANY_SET
    widens: bool = False


_NO_DEMANDS: Final = _Demands(JokerRetrievalMode.FREE)


def _demands(ruleset: Ruleset) -> _Demands:
    mode = ruleset.joker_retrieval_mode
    replaces = mode is not JokerRetrievalMode.FREE
    both_colors = ruleset.joker_retrieval_group_of_three is JokerRetrievalGroupOfThree.BOTH_COLORS
    same_set_forbidden = ruleset.joker_retrieval_same_set is JokerRetrievalSameSet.FORBIDDEN
    return _Demands(
        mode,
        must_replace=replaces,
        rack_only=replaces and ruleset.joker_retrieval_source is JokerRetrievalSource.RACK_ONLY,
        both_colors=replaces and both_colors,
        end_is_free=replaces and ruleset.joker_retrieval_end_of_run_free,
        other_set=same_set_forbidden and mode is not JokerRetrievalMode.NONE,
        reuse=ruleset.joker_retrieval_reuse,
    )


def _replacement_reasons(tables: "_Tables", demands: _Demands) -> tuple[Reason, ...]:
    """What is wrong with how jokers left their melds, whatever they were used for."""
    alone = demands._replace(other_set=False, reuse=JokerRetrievalReuse.ANY_SET)
    if _is_possible(tables, alone):
        return ()
    milder = {
        (Reason.JOKER_REPLACEMENT_NOT_FROM_RACK,): alone._replace(rack_only=False),
        (Reason.JOKER_GROUP_NEEDS_BOTH_COLORS,): alone._replace(both_colors=False),
        (Reason.JOKER_REPLACEMENT_NOT_FROM_RACK, Reason.JOKER_GROUP_NEEDS_BOTH_COLORS): alone._replace(
            rack_only=False, both_colors=False
        ),
    }
    for reasons, others in milder.items():
        if _is_possible(tables, others):
            return reasons
    return (_NOT_REPLACED[demands.mode],)


_NOT_REPLACED: Final = {
    JokerRetrievalMode.NONE: Reason.JOKER_RETRIEVAL_FORBIDDEN,
    JokerRetrievalMode.REPLACE: Reason.JOKER_NOT_REPLACED,
    JokerRetrievalMode.LOCKED: Reason.JOKER_SET_LOCKED,
}

_USES: Final[dict[JokerRetrievalReuse, Reason]] = {
    JokerRetrievalReuse.NEW_SET: Reason.JOKER_NOT_IN_NEW_SET,
    JokerRetrievalReuse.NEW_SET_IF_REPLACED: Reason.JOKER_NOT_IN_NEW_SET,
    JokerRetrievalReuse.NEW_SET_TWO_RACK_TILES: Reason.JOKER_REUSE_NEEDS_TWO_RACK_TILES,
    JokerRetrievalReuse.NEW_SET_ALL_RACK: Reason.JOKER_REUSE_NEEDS_RACK_ONLY,
}


def _use_reasons(tables: "_Tables", demands: _Demands) -> tuple[Reason, ...]:
    """What is wrong with the use of retrieved jokers, however they left their melds.

    Where taking a tile from beside a joker is a breach of its own, the joker itself was used for nothing.
    """
    free = _NO_DEMANDS._replace(widens=demands.must_replace)
    found = []
    if demands.other_set and not _is_possible(tables, free._replace(other_set=True)):
        found.append(Reason.JOKER_RETURNED_TO_SAME_SET)
    for reuse in _stricter_and_stricter(demands.reuse):
        if not _is_possible(tables, free._replace(reuse=reuse)):
            found.append(_USES[reuse])
            break
    return tuple(found)


def _joint_reasons(tables: "_Tables", demands: _Demands) -> tuple[Reason, ...]:
    """The first option that cannot be kept beside those before it, where each could be kept alone."""
    kept = demands._replace(reuse=JokerRetrievalReuse.ANY_SET)
    if not _is_possible(tables, kept):
        return (Reason.JOKER_RETURNED_TO_SAME_SET,)
    return next(
        (_USES[reuse],)
        for reuse in _stricter_and_stricter(demands.reuse)
        if not _is_possible(tables, kept._replace(reuse=reuse))
    )


def _stricter_and_stricter(reuse: JokerRetrievalReuse) -> tuple[JokerRetrievalReuse, ...]:
    match reuse:
        case JokerRetrievalReuse.ANY_SET:
            return ()
        case JokerRetrievalReuse.NEW_SET_IF_REPLACED:
            return (reuse,)
        case _:
            return tuple(dict.fromkeys((JokerRetrievalReuse.NEW_SET, reuse)))


@dataclass(frozen=True, slots=True, eq=False)
class _Joker:
    """A joker of a table.

    Attributes:
        meld: In which meld it lies.
        place: Where in it.
        faces: What it stands for.
        sort: The number, among the table's jokers, of the first of its meld that stands for the same.
    """

    meld: int
    place: int
    faces: frozenset[Tile]
    sort: int


class _Only(NamedTuple):
    """A condition: a tile of a new meld came from one of certain melds, or the rack."""

    face: Tile
    new: int
    sources: frozenset[int]


class _Goal(NamedTuple):
    """A condition: at least so many of certain tiles came as wanted: (face, new meld, where it came from)."""

    least: int
    ways: frozenset[tuple[Tile, int, int]]


Wanted = frozenset[_Only | _Goal]
"""Conditions that hold together; tuples, as they are compared very often."""

NOTHING: Final[Wanted] = frozenset()


class _Left(NamedTuple):
    """What jokers left an old meld: the sorts of those retrieved, and in which new meld the others stay, if LOCKED."""

    old: int
    retrieved: tuple[int, ...]
    rest: int | None


class _Outcome(NamedTuple):
    """What became of the jokers of some old melds: all that matters of it.

    Attributes:
        melds: The new meld of each; in ascending order, as it does not matter which is whose.
        places: The sorts of the places that had to be theirs, likewise; all others lie anywhere in their melds.
        left: What left each old meld.
        wanted: What that demands of the numbered tiles.
        uses: The new melds in which retrieved jokers lie, where a rule asks for them.
        whole: Which old melds can lie whole in which new ones, by their faces and jokers, where a rule asks for it.
        taken: The tiles, by new meld and face, that must have taken the place of a replaced joker.
        replaced: The replaced jokers whose places they may have taken: for each the new meld that has the rest of its
            old one, and its faces.
    """

    melds: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    left: tuple[_Left, ...] = ()
    wanted: Wanted = NOTHING
    uses: frozenset[int] = frozenset()
    whole: frozenset[tuple[int, int]] = frozenset()
    taken: frozenset[tuple[int, Tile]] = frozenset()
    replaced: tuple[tuple[int, frozenset[Tile]], ...] = ()

    def and_of(self, other: "_Outcome") -> "_Outcome":
        """What became of the jokers of more old melds."""
        return _Outcome(
            tuple(sorted(self.melds + other.melds)),
            tuple(sorted(self.places + other.places)),
            self.left + other.left,
            self.wanted | other.wanted,
            self.uses | other.uses,
            self.whole | other.whole,
            self.taken | other.taken,
            self.replaced + other.replaced,
        )


@dataclass(frozen=True)
class _Tables:
    """The melds before and after, what was played, and the steps that the search may take."""

    before: tuple[Meld, ...]
    after: tuple[Meld, ...]
    played: Counter[Tile]
    effort: Effort

    @lazy_property
    def jokers(self) -> tuple[_Joker, ...]:
        """The jokers of the old table."""
        return _jokers(self.before)

    @lazy_property
    def places(self) -> tuple[_Joker, ...]:
        """The jokers of the new table: where the old ones and those of the rack may lie."""
        return _jokers(self.after)

    @lazy_property
    def jokers_of(self) -> dict[int, tuple[_Joker, ...]]:
        """The jokers of each old meld that has any."""
        return {joker.meld: tuple(j for j in self.jokers if j.meld == joker.meld) for joker in self.jokers}

    @lazy_property
    def places_in(self) -> Counter[int]:
        """How many jokers each new meld has."""
        return Counter(place.meld for place in self.places)

    @lazy_property
    def places_of(self) -> Counter[int]:
        """How many places there are of each sort."""
        return Counter(place.sort for place in self.places)

    @lazy_property
    def like(self) -> dict[int, int]:
        """The new melds with jokers that are like one before them, with the last of these."""
        last: dict[Hashable, int] = {}
        found = {}
        for new in self.places_in:
            lies_as = identity(self.after[new])
            if lies_as in last:
                found[new] = last[lies_as]
            last[lies_as] = new
        return found

    @lazy_property
    def old_naturals(self) -> tuple[frozenset[Tile], ...]:
        """The numbered tiles of each old meld; a meld has each once."""
        return tuple(map(_naturals, self.before))

    @lazy_property
    def new_naturals(self) -> tuple[frozenset[Tile], ...]:
        """The numbered tiles of each new meld."""
        return tuple(map(_naturals, self.after))

    @lazy_property
    def within(self) -> tuple[frozenset[int], ...]:
        """The old melds whose numbered tiles each new meld has too."""
        return tuple(
            frozenset(old for old, faces in enumerate(self.old_naturals) if faces <= new) for new in self.new_naturals
        )

    @lazy_property
    def sources(self) -> dict[Tile, tuple[int, ...]]:
        """Where the copies of each face came from: old melds, and the rack."""
        found: dict[Tile, list[int]] = {}
        for meld, faces in enumerate(self.old_naturals):
            for face in faces:
                found.setdefault(face, []).append(meld)
        for face, copies in self.played.items():
            found.setdefault(face, []).extend([RACK] * copies)
        return {face: tuple(melds) for face, melds in found.items()}

    @lazy_property
    def targets(self) -> dict[Tile, tuple[int, ...]]:
        """The new melds in which the copies of each face lie."""
        found: dict[Tile, list[int]] = {}
        for meld, faces in enumerate(self.new_naturals):
            for face in faces:
                found.setdefault(face, []).append(meld)
        return {face: tuple(melds) for face, melds in found.items()}

    def ways_of(self, face: Tile) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The ways in which the copies of a face can have come: for each new meld that has one, from where."""
        if face not in self.known_ways:
            orders = set(permutations(self.sources[face]))
            self.known_ways[face] = tuple(tuple(zip(self.targets[face], order, strict=True)) for order in orders)
        return self.known_ways[face]

    @lazy_property
    def known_ways(self) -> dict[Tile, tuple[tuple[tuple[int, int], ...], ...]]:
        """What is known already of them."""
        return {}

    @lazy_property
    def possible(self) -> dict[_Demands, bool]:
        """What is known already of which demands can be met."""
        return {}

    @lazy_property
    def elsewhere(self) -> dict[tuple[int, int], _Goal]:
        """What is known already of how tiles of an old meld can have come to others than a certain new one."""
        return {}

    @lazy_property
    def can_have_come(self) -> dict[Wanted, bool]:
        """What is known already of how numbered tiles can have come."""
        return {}

    @lazy_property
    def everywhere(self) -> frozenset[int]:
        """Where a tile may have come from: the rack, and the old melds."""
        return frozenset({RACK, *range(len(self.before))})

    @lazy_property
    def unlockable(self) -> dict[bool, Set[int]]:
        """What is known already of where replacements may come from in mode LOCKED."""
        return {}

    @lazy_property
    def replaceable(self) -> dict[Hashable, bool]:
        """What is known already of which jokers can be replaced together."""
        return {}

    @lazy_property
    def unlocked(self) -> dict[Hashable, set[Wanted]]:
        """What is known already of how melds can be unlocked together."""
        return {}


def _jokers(table: tuple[Meld, ...]) -> tuple[_Joker, ...]:
    found: list[_Joker] = []
    for meld, laid in enumerate(table):
        sorts: dict[frozenset[Tile], int] = {}
        places = (place for place, t in enumerate(laid.tiles) if t == JOKER)
        for place, faces in zip(places, map(frozenset, laid.joker_faces), strict=True):
            found.append(_Joker(meld, place, faces, sorts.setdefault(faces, len(found))))
    return tuple(found)


def _naturals(meld: Meld) -> frozenset[Tile]:
    return frozenset(t for t in meld.tiles if t != JOKER)


def _is_possible(tables: _Tables, demands: _Demands) -> bool:
    if demands not in tables.possible:
        outcomes = _outcomes(tables, demands)
        tables.possible[demands] = any(
            _are_unlocked(tables, demands, outcome) and (not outcome.taken or _have_places(outcome))
            for outcome in outcomes
        )
    return tables.possible[demands]


def _outcomes(tables: _Tables, demands: _Demands) -> Iterator[_Outcome]:
    """What may have become of the jokers of all old melds: of like outcomes one; melds with fewest are asked first."""
    each = []
    for old in tables.jokers_of:
        outcomes = []
        for outcome in _outcomes_of(tables, demands, old):
            tables.effort.take(16)
            outcomes.append(outcome)
        if not outcomes:
            return
        each.append(outcomes)
    each.sort(key=len)
    waiting = [(0, _Outcome())]
    seen = set()
    while waiting:
        known, so_far = waiting.pop()
        if known == len(each):
            yield so_far
            continue
        tables.effort.take(2 * len(each[known]))
        for outcome in each[known]:
            if _find_room(tables, so_far, outcome) and (more := so_far.and_of(outcome)) not in seen:
                tables.effort.take(16)
                seen.add(more)
                if _may_be(tables, demands, more):
                    waiting.append((known + 1, more))


def _find_room(tables: _Tables, so_far: _Outcome, outcome: _Outcome) -> bool:
    """Whether there is room for more jokers; of new melds alike the first must be reached first."""
    melds = so_far.melds + outcome.melds
    for new in outcome.melds:
        if melds.count(new) > tables.places_in[new] or tables.like.get(new, new) not in melds:
            return False
    places = so_far.places + outcome.places
    return all(places.count(sort) <= tables.places_of[sort] for sort in outcome.places)


def _may_be(tables: _Tables, demands: _Demands, outcome: _Outcome) -> bool:
    """Whether an outcome for some old melds is possible, whatever became of the jokers of others."""
    retrieved = tuple([sort for left in outcome.left for sort in left.retrieved])
    if not _may_be_retrieved(tables, demands, retrieved):
        return False
    used = _of_use(tables, demands, outcome)
    return used is not None and _can_have_come(tables, outcome.wanted | used)


# What became of the jokers of one old meld


def _outcomes_of(tables: _Tables, demands: _Demands, old: int) -> Iterator[_Outcome]:
    """What may have become of the jokers of an old meld; the likelier comes last, to be tried first."""
    jokers = tables.jokers_of[old]
    for places in product(*[(None, *_where_kept(tables, demands, joker)) for joker in jokers]):
        tables.effort.take(8)
        kept = [place for place in places if place]
        retrieved = tuple([joker.sort for joker, place in zip(jokers, places, strict=True) if not place])
        if _may_be_kept(tables, demands, kept) and _may_be_retrieved(tables, demands, retrieved):
            rest = kept[0].meld if kept and demands.mode is JokerRetrievalMode.LOCKED else None
            left = _Left(old, retrieved, rest)
            stays = _Outcome(tuple([place.meld for place in kept]), tuple([place.sort for place in kept]), (left,))
            room = [place.meld for place in tables.places]
            for new in stays.melds:
                room.remove(new)
            for led in set(combinations(room, len(retrieved))):
                yield from _led(tables, demands, stays, led)


def _where_kept(tables: _Tables, demands: _Demands, joker: _Joker) -> Iterator[_Joker]:
    """The places, one of each sort, where a joker may be kept as far as the kinds and faces of two melds tell."""
    for number, place in enumerate(tables.places):
        same_kind = tables.before[joker.meld].kind is tables.after[place.meld].kind
        may_stay = demands.mode is not JokerRetrievalMode.LOCKED or joker.meld in tables.within[place.meld]
        keeps_role = _is_in_its_role(joker, place) or (demands.widens and joker.faces <= place.faces)
        if number == place.sort and same_kind and may_stay and keeps_role:
            yield place


def _is_in_its_role(joker: _Joker, now: _Joker) -> bool:
    """Whether a joker stands for nothing that it did not stand for before."""
    return now.faces <= joker.faces


def _may_be_kept(tables: _Tables, demands: _Demands, kept: list[_Joker]) -> bool:
    """Whether jokers of an old meld may be kept in some places together; in mode LOCKED these are of one new meld."""
    if demands.mode is JokerRetrievalMode.LOCKED and any(place.meld != kept[0].meld for place in kept):
        return False
    return all(kept.count(place) <= tables.places_of[place.sort] for place in kept)


def _led(tables: _Tables, demands: _Demands, stays: _Outcome, led: tuple[int, ...]) -> Iterator[_Outcome]:
    """Some jokers of an old meld were kept, the others retrieved for certain new melds: what is demanded then."""
    old = stays.left[0].old
    melds = stays.melds + led
    wanted = _of_kept(tables, stays, melds)
    is_whole = old in tables.within[melds[0]] and melds.count(melds[0]) == len(melds)
    if demands.reuse is JokerRetrievalReuse.NEW_SET_IF_REPLACED:
        if is_whole and led and demands.other_set:
            wanted |= {_elsewhere(tables, old, melds[0])}
        whole = frozenset([(old, melds[0])] if is_whole else ())
        yield from _replaced_or_not(tables, stays._replace(melds=melds, wanted=wanted, whole=whole), led)
    elif demands.reuse is not JokerRetrievalReuse.ANY_SET:
        if all(melds.count(new) == 1 for new in led):
            wanted = wanted.union(*[_of_new_set(tables, old, new) for new in led])
            if demands.reuse is JokerRetrievalReuse.NEW_SET_ALL_RACK:
                wanted = wanted.union(*[_of_rack(tables, new) for new in led])
            whole = frozenset([(old, melds[0])] if is_whole else ())
            yield stays._replace(melds=melds, wanted=wanted, uses=frozenset(led), whole=whole)
    elif is_whole and led and (demands.other_set or demands.mode is JokerRetrievalMode.LOCKED):
        yield stays._replace(melds=melds, wanted=wanted | {_elsewhere(tables, old, melds[0])})
        if not demands.other_set:
            yield from _out_of_their_roles(tables, stays._replace(melds=melds, wanted=wanted))
    else:
        yield stays._replace(melds=melds, wanted=wanted)


def _replaced_or_not(tables: _Tables, outcome: _Outcome, led: tuple[int, ...]) -> Iterator[_Outcome]:
    """NEW_SET_IF_REPLACED: each retrieved joker was replaced, and lies in a new set, or may have left before."""
    old, retrieved, _ = outcome.left[0]
    wholes = [new for new, within in enumerate(tables.within) if old in within]
    least = {new: _least_taken(tables, old, new, retrieved) for new in wholes}
    if all(_is_of_one(tables, new) and least[new] == [()] for new in wholes):
        yield outcome  # none need have been replaced, and none can help another one
        return
    for size in range(len(retrieved) + 1):
        for replaced in set(combinations(retrieved, size)):
            others = list(retrieved)
            for sort in replaced:
                others.remove(sort)
            least = {new: _least_taken(tables, old, new, others) for new in wholes}
            for new_sets in set(permutations(led, size)):
                tables.effort.take(4)
                if all(outcome.melds.count(new) == 1 for new in new_sets):
                    yield from _so_replaced(tables, outcome, replaced, new_sets, least)


def _is_of_one(tables: _Tables, new: int) -> bool:
    """Whether a new meld can have taken in the rest of one old meld with jokers at most."""
    return len(tables.within[new] & tables.jokers_of.keys()) <= 1


def _so_replaced(
    tables: _Tables,
    outcome: _Outcome,
    replaced: tuple[int, ...],
    new_sets: tuple[int, ...],
    least: Mapping[int, list[tuple[Tile, ...]]],
) -> Iterator[_Outcome]:
    """NEW_SET_IF_REPLACED: some jokers, by their sorts, were replaced and lie in new sets; the others left before.

    What that demands can be told only where one new meld has all numbered tiles of the old one. For each that can,
    `least` has the tiles there that must have taken the places of replaced jokers.
    """
    old = outcome.left[0].old
    wanted = outcome.wanted.union(*[_of_new_set(tables, old, new) for new in new_sets])
    outcome = outcome._replace(wanted=wanted, uses=frozenset(new_sets))
    apart = []
    for new, ways in least.items():
        if ways != [()]:
            apart.append(_elsewhere(tables, old, new))
        if ways != [()] or (replaced and not _is_of_one(tables, new)):
            there = [_Only(face, new, frozenset({old})) for face in tables.old_naturals[old]]
            places = tuple([(new, tables.jokers[sort].faces) for sort in replaced])
            for way in ways:
                taken = frozenset([(new, face) for face in way])
                yield outcome._replace(wanted=wanted.union(there), taken=taken, replaced=places)
    yield outcome._replace(wanted=wanted.union(apart))


def _least_taken(tables: _Tables, old: int, new: int, others: Iterable[int]) -> list[tuple[Tile, ...]]:
    """The tiles of a new meld, as few as can be, without which those of an old one there would not be in melds.

    Args:
        tables: The tables.
        old: The old meld.
        new: The new meld, which has all its numbered tiles.
        others: The jokers that left, by their sorts, of whose faces any other tile there came later.
    """
    found: list[tuple[Tile, ...]] = []
    stood_for = frozenset[Tile]().union(*[tables.jokers[sort].faces for sort in others])
    later = sorted(stood_for & tables.new_naturals[new])
    for size in range(len(later) + 1):
        for kept in combinations(later, size):
            tables.effort.take(8)
            if not any(set(least) <= set(kept) for least in found) and _holds(tables, old, new, {*later} - {*kept}):
                found.append(kept)
    return found


def _holds(tables: _Tables, old: int, new: int, gone: Set[Tile]) -> bool:
    """Whether the numbered tiles of an old meld, all in one new meld, would be in melds without some tiles of that."""
    meld = tables.after[new]
    parts: list[list[Tile]] = [[]]
    for t in meld.tiles:
        if t not in gone:
            parts[-1].append(t)
        elif meld.kind is MeldKind.RUN:
            parts.append([])
    return all(len(part) >= MIN_TILES for part in parts if not tables.old_naturals[old].isdisjoint(part))


def _have_places(outcome: _Outcome) -> bool:
    """NEW_SET_IF_REPLACED: whether each tile that must have taken the place of a replaced joker has one of its own."""
    choices = [
        [joker for joker, (there, faces) in enumerate(outcome.replaced) if there == new and face in faces]
        for new, face in outcome.taken
    ]
    return not unpaired(choices)


def _out_of_their_roles(tables: _Tables, outcome: _Outcome) -> Iterator[_Outcome]:
    """In mode LOCKED a joker in a meld with its whole old one was retrieved only if its role is another."""
    places = [place for place in tables.places if place.meld == outcome.melds[0]]
    retrieved = [tables.jokers[sort] for sort in outcome.left[0].retrieved]
    others = [{place.sort for place in places if not _is_in_its_role(joker, place)} for joker in retrieved]
    for sorts in product(*others):
        yield outcome._replace(places=outcome.places + sorts)


def _of_kept(tables: _Tables, stays: _Outcome, melds: tuple[int, ...]) -> Wanted:
    """What jokers that are kept demand: in mode LOCKED all their old meld is with them, else another tile of it."""
    old, _, rest = stays.left[0]
    if rest is not None:
        return frozenset([_Only(face, rest, frozenset({old})) for face in tables.old_naturals[old]])
    alone = [new for new in stays.melds if melds.count(new) == 1]
    shared = [(new, tables.old_naturals[old] & tables.new_naturals[new]) for new in alone]
    return frozenset([_Goal(1, frozenset([(face, new, old) for face in faces])) for new, faces in shared])


def _of_new_set(tables: _Tables, old: int, new: int) -> list[_Only | _Goal]:
    """What NEW_SET and its like demand where a retrieved joker lies: nothing of its old meld, and no whole old meld."""
    shared = tables.old_naturals[old] & tables.new_naturals[new]
    wanted: list[_Only | _Goal] = [_Only(face, new, frozenset(tables.sources[face]) - {old}) for face in shared]
    wanted += [_elsewhere(tables, other, new) for other in tables.within[new] if other not in tables.jokers_of]
    return wanted


def _of_rack(tables: _Tables, new: int) -> list[_Only]:
    """What NEW_SET_ALL_RACK demands beside that: all numbered tiles of a new meld are of the rack."""
    return [_Only(face, new, frozenset({RACK})) for face in tables.new_naturals[new]]


def _elsewhere(tables: _Tables, old: int, new: int) -> _Goal:
    """That a tile of an old meld is not in a new one."""
    if (old, new) not in tables.elsewhere:
        ways = [(face, target, old) for face in tables.old_naturals[old] for target in tables.targets[face]]
        tables.elsewhere[old, new] = _Goal(1, frozenset([way for way in ways if way[1] != new]))
    return tables.elsewhere[old, new]


def _of_use(tables: _Tables, demands: _Demands, outcome: _Outcome) -> Wanted | None:
    """What joker_retrieval_reuse demands of new melds as the jokers of several old ones lie there; None if illegal."""
    if not outcome.uses:
        return NOTHING
    shared = any(outcome.melds.count(new) > 1 for new in outcome.uses)
    if shared and demands.reuse is JokerRetrievalReuse.NEW_SET_ALL_RACK:
        return None
    wanted: list[_Only | _Goal] = [_elsewhere(tables, old, new) for old, new in outcome.whole if new in outcome.uses]
    if demands.reuse is JokerRetrievalReuse.NEW_SET_TWO_RACK_TILES:
        wanted += [_two_rack_tiles(tables, new, outcome.melds.count(new)) for new in outcome.uses]
    return frozenset(wanted)


def _two_rack_tiles(tables: _Tables, new: int, old_jokers: int) -> _Goal:
    """NEW_SET_TWO_RACK_TILES: so many numbered tiles of the rack as its jokers leave to be wanted, if all lie there."""
    of_rack = len(tables.places) - len(tables.jokers)
    rack_jokers = min(of_rack, tables.places_in[new] - old_jokers)
    from_rack = [(face, new, RACK) for face in tables.new_naturals[new] if RACK in tables.sources[face]]
    return _Goal(max(0, 2 - rack_jokers), frozenset(from_rack))


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


def _may_be_retrieved(tables: _Tables, demands: _Demands, sorts: tuple[int, ...]) -> bool:
    """Whether jokers may be retrieved together: each has replacements of its own, wherever these have to come from."""
    if not demands.must_replace or not sorts:
        return True
    if demands.mode is JokerRetrievalMode.NONE:
        return False
    key = (demands.rack_only, demands.both_colors, sorts)
    if key not in tables.replaceable:
        sources = _sources_of_replacements(tables, demands)
        choices = [copies for sort in sorts for copies in _copies(tables, demands, tables.jokers[sort], sources)]
        tables.replaceable[key] = not unpaired(choices)
    return tables.replaceable[key]


def _sources_of_replacements(tables: _Tables, demands: _Demands) -> Set[int]:
    """Where replacements may come from: in mode LOCKED not from a meld that could not even be unlocked for itself."""
    if demands.rack_only:
        return {RACK}
    if demands.mode is not JokerRetrievalMode.LOCKED:
        return tables.everywhere
    if demands.both_colors not in tables.unlockable:
        sources = {*tables.everywhere} - tables.jokers_of.keys()
        for old, jokers in [*tables.jokers_of.items()] * len(tables.jokers_of):
            if all(all(_copies(tables, demands, joker, sources)) for joker in jokers):
                sources.add(old)
        tables.unlockable[demands.both_colors] = sources
    return tables.unlockable[demands.both_colors]


def _copies(tables: _Tables, demands: _Demands, joker: _Joker, sources: Set[int]) -> list[list[int]]:
    """For each tile that a joker needs, the copies that came from certain sources, each as a number of its own."""
    needs = _needs(tables, demands, joker)
    one_by_one = [[face] for face in needs[0]] if len(needs) == 1 else [[face for (face,) in needs]]
    return [
        [
            face * MOST_COPIES + copy
            for face in faces
            for copy, source in enumerate(tables.sources.get(face, ()))
            if source in sources
        ]
        for faces in one_by_one
    ]


def _are_unlocked(tables: _Tables, demands: _Demands, outcome: _Outcome) -> bool:
    """joker_retrieval_mode LOCKED: whether the melds that lost jokers can have been unlocked, one after the other."""
    if demands.mode is not JokerRetrievalMode.LOCKED or not demands.must_replace:
        return True
    locked = tuple([left for left in outcome.left if left.retrieved])
    stay_locked = frozenset([left.old for left in outcome.left if left.rest is not None])
    key = (demands.rack_only, demands.both_colors, locked, stay_locked)
    if key not in tables.unlocked:
        tables.unlocked[key] = _unlocked(tables, demands, locked, stay_locked)
    ways = tables.unlocked[key]
    if NOTHING in ways:
        return True
    wanted = outcome.wanted | (_of_use(tables, demands, outcome) or NOTHING)
    return any(_can_have_come(tables, wanted | placed) for placed in ways)


def _unlocked(
    tables: _Tables, demands: _Demands, locked: tuple[_Left, ...], stay_locked: frozenset[int]
) -> set[Wanted]:
    """Unlocks melds in every order: the tiles of one whose jokers are all replaced may replace those of the next.

    What is told of each way is where replacements must have come from, if they lie in melds that keep a joker.
    """
    needs = {own: [_needs(tables, demands, tables.jokers[sort]) for sort in own.retrieved] for own in locked}
    faces = {face for need in needs.values() for alternatives in need for tiles in alternatives for face in tiles}
    sources = frozenset({RACK}) if demands.rack_only else tables.everywhere - stay_locked
    found = set()
    seen = set()
    waiting = [(locked, _free_at_first(tables, demands, faces), NOTHING)]
    while waiting and NOTHING not in found:
        locked, free, placed = waiting.pop()
        if not locked:
            found.add(placed)
        tables.effort.take(16)
        for own in _next_to_unlock(demands, locked):
            others = tuple([other for other in locked if other is not own])
            freed = tables.old_naturals[own.old] & faces if _sets_free(demands, own) else ()
            for replacements in _replacements(tables, own, needs[own], free):
                there = () if own.rest is None else [_Only(face, own.rest, sources) for face in replacements]
                after = (others, _without(replacements, (*free, *freed)), placed.union(there))
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
    return found


def _free_at_first(tables: _Tables, demands: _Demands, faces: set[Tile]) -> tuple[Tile, ...]:
    """The tiles of some faces that are free before any meld is unlocked: of the rack, and of melds without jokers."""
    return tuple(
        face
        for face in sorted(faces & tables.sources.keys())
        for source in tables.sources[face]
        if source == RACK or not (demands.rack_only or source in tables.jokers_of)
    )


def _without(some: list[Tile], tiles: tuple[Tile, ...]) -> tuple[Tile, ...]:
    left = sorted(tiles)
    for t in some:
        left.remove(t)
    return tuple(left)


def _next_to_unlock(demands: _Demands, locked: tuple[_Left, ...]) -> tuple[_Left, ...]:
    """The melds of which the next is one: those that set tiles free come first, the order of others is all the same."""
    return tuple([own for own in locked if _sets_free(demands, own)]) or locked[:1]


def _sets_free(demands: _Demands, own: _Left) -> bool:
    """Whether the tiles of an unlocked meld may replace jokers of others: all its jokers were retrieved."""
    return not demands.rack_only and own.rest is None


def _replacements(
    tables: _Tables, own: _Left, needs: list[tuple[tuple[Tile, ...], ...]], free: tuple[Tile, ...]
) -> Iterator[list[Tile]]:
    """The tiles that may replace the jokers of a meld; if it keeps one, they lie with it where the others lay."""
    for alternatives in product(*needs):
        tables.effort.take(4)
        faces = [face for tiles in alternatives for face in tiles]
        if all(faces.count(face) <= free.count(face) for face in faces) and (
            own.rest is None or (len(set(faces)) == len(faces) and tables.new_naturals[own.rest].issuperset(faces))
        ):
            yield faces


# Where numbered tiles came from


def _can_have_come(tables: _Tables, wanted: Wanted) -> bool:
    """Whether the copies of every face can have come as wanted."""
    if wanted not in tables.can_have_come:
        tables.can_have_come[wanted] = _is_there_a_way(tables, wanted)
    return tables.can_have_come[wanted]


def _is_there_a_way(tables: _Tables, wanted: Wanted) -> bool:
    """Goes through the faces, and remembers how much each goal can still lack."""
    tables.effort.take(8 + 4 * len(wanted))
    only: dict[tuple[Tile, int], frozenset[int]] = {}
    goals = []
    for condition in wanted:
        if isinstance(condition, _Goal):
            goals.append(condition)
        else:
            face, new, sources = condition
            only[face, new] = only.get((face, new), sources) & sources
    if not all(only.values()) or any(goal.least > len(goal.ways) for goal in goals):
        return False
    lacking = tuple([goal.least for goal in goals])
    helped: dict[tuple[Tile, int, int], list[int]] = {}
    for number, goal in enumerate(goals):
        for way in goal.ways:
            helped.setdefault(way, []).append(number)
    reached = {lacking}
    for face in {face for face, _ in only} | {face for face, _, _ in helped}:
        ways = tables.ways_of(face)
        tables.effort.take(8 + len(ways) * len(ways[0]))
        steps = _steps(ways, only, helped, face)
        tables.effort.take(len(reached) * len(steps))
        reached = {_with_less_lacking(lacking, step) for lacking in reached for step in steps}
    return any(not any(lacking) for lacking in reached)


def _with_less_lacking(lacking: tuple[int, ...], step: frozenset[int]) -> tuple[int, ...]:
    if not step:
        return lacking
    return tuple([max(0, count - (goal in step)) for goal, count in enumerate(lacking)])


def _steps(
    ways: tuple[tuple[tuple[int, int], ...], ...],
    only: Mapping[tuple[Tile, int], frozenset[int]],
    helped: Mapping[tuple[Tile, int, int], list[int]],
    face: Tile,
) -> list[frozenset[int]]:
    """For each way in which the copies of a face can have come: which goals it helps. One that helps less is none."""
    steps = {
        frozenset(goal for target, source in came for goal in helped.get((face, target, source), ()))
        for came in ways
        if all(source in only.get((face, target), (source,)) for target, source in came)
    }
    return [step for step in steps if not any(step < other for other in steps)]
