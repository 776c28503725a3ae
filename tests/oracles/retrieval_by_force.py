"""Decides joker retrieval by brute force over all assignments of old tiles to new ones.

This is the literal definition of the retrieval rules, for comparison with the engine, without regard to speed. Tiles
have an identity here: a position on the old table, or the rack. An *assignment* gives the tile at each position of the
new table. All assignments that respect the faces are tried, of jokers too, and a play is legal if one of them is. Rack
tiles with the same face are interchangeable.

For a joker j of the old table: A is its old meld, r0 the faces that it may stand for there; B and r1 are the same on
the new table. P are the tiles that came from the rack, including jokers.

Interpretations, where the rules leave something open:

* OFF: a joker that does not *remain* is retrieved, hence illegal. Other tiles of its meld may move.
* FREE with ANY_MELD and same_meld FORBIDDEN forbids the same meld. "Allowed with FREE" is only a default.
* A replacement is a numbered tile. Each tile replaces at most one joker. Two jokers of one group need two tiles, which
  may have the same face, unless a joker of the meld remains: then the tiles are in one meld with it.
* A tile may replace a joker without taking its position in the end, or without moving at all: it only has to exist.
  Under REPLACE it may be any tile of the old table. Under LOCKED, a tile of the old table must be of a meld without
  jokers, or of one whose jokers are all retrieved, and replaced independently of the tiles that this unlocks.
* LOCKED: a joker that *stays* (A within B, r1 within r0) is not retrieved. If some joker of A does not stay, at least
  one such joker counts as retrieved. All others that do not stay are in one new meld with the rest of A, without the
  retrieved jokers, and with the replacements; and their r1 is within r0. The player chooses which of the jokers that do
  not stay count as retrieved, so the best choice decides.
* end_of_run_free depends on the joker's position on the old table: first or last of a run of four or more. A joker
  freed in this way counts as replaced for unlocking. It may also be replaced.
* BOTH_COLORS applies to a group of three with exactly one joker. Both tiles come from an allowed source, and under
  LOCKED both are free to move.
* NEW_MELD: a second joker of A in B is a tile of A, so two jokers of a meld cannot go to one new meld. "A complete meld
  of the old table" means its tiles, not its faces: an equal meld that can have come from the rack is a new one.
* NEW_MELD_TWO_RACK_TILES counts jokers from the rack too. NEW_MELD_ALL_RACK allows no second joker of the table in B.
* NEW_MELD_IF_REPLACED: if one new meld C has all numbered tiles of A, one tile of C with a face in r0 is in j's place.
  Each tile is in the place of one joker. j was not replaced if A's numbered tiles are in valid melds (three tiles or
  more) without that tile: j may have left before it came. The player chooses which jokers were replaced by which tiles,
  and for each other joker which of the tiles left is in its place; if none is left, it was not replaced.
* same_meld FORBIDDEN looks for A without j, but with the other jokers of A, in B.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations, product

from engine.melding.melds import Meld, MeldKind
from engine.melding.ruleset import (
    JokerRetrievalGroupOfThree,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameMeld,
    JokerRetrievalSource,
    Ruleset,
)
from engine.tiles import JOKER, Tile

RACK = -1
"""The `meld` of a tile that came from the rack."""


@dataclass(frozen=True, slots=True, order=True)
class Physical:
    """A physical tile: its face, and its old meld with its position there, or RACK with a number."""

    face: Tile
    meld: int
    place: int


@dataclass(frozen=True)
class Assignment:
    """An assignment: the same physical tiles on both tables.

    Attributes:
        before: The old melds.
        after: The new melds.
        old: The tiles of each old meld, in order.
        new: The tiles of each new meld, in order.
    """

    before: tuple[Meld, ...]
    after: tuple[Meld, ...]
    old: tuple[tuple[Physical, ...], ...]
    new: tuple[tuple[Physical, ...], ...]

    @cached_property
    def old_sets(self) -> tuple[frozenset[Physical], ...]:
        return tuple(map(frozenset, self.old))

    @cached_property
    def new_sets(self) -> tuple[frozenset[Physical], ...]:
        return tuple(map(frozenset, self.new))

    @cached_property
    def played(self) -> frozenset[Physical]:
        """Returns P: the tiles that came from the rack."""
        return frozenset(t for tiles in self.new for t in tiles if t.meld == RACK)

    @cached_property
    def table(self) -> frozenset[Physical]:
        """Returns the tiles of the old table."""
        return frozenset(t for tiles in self.old for t in tiles)

    @cached_property
    def jokers(self) -> tuple[Physical, ...]:
        """Returns the jokers of the old table."""
        return tuple(t for tiles in self.old for t in tiles if t.face == JOKER)

    @cached_property
    def new_meld_of(self) -> dict[Physical, int]:
        return {t: number for number, tiles in enumerate(self.new) for t in tiles}

    @cached_property
    def old_roles(self) -> dict[Physical, frozenset[Tile]]:
        return _roles(self.before, self.old)

    @cached_property
    def new_roles(self) -> dict[Physical, frozenset[Tile]]:
        return _roles(self.after, self.new)

    def a(self, joker: Physical) -> frozenset[Physical]:
        """Returns A: the joker's old meld."""
        return self.old_sets[joker.meld]

    def b(self, joker: Physical) -> frozenset[Physical]:
        """Returns B: the joker's new meld."""
        return self.new_sets[self.new_meld_of[joker]]

    def keeps_role(self, joker: Physical) -> bool:
        """Returns whether r1 is a subset of r0."""
        return self.new_roles[joker] <= self.old_roles[joker]

    def stays(self, joker: Physical) -> bool:
        """Returns whether A is contained in B, and r1 in r0."""
        return self.a(joker) <= self.b(joker) and self.keeps_role(joker)

    def remains(self, joker: Physical) -> bool:
        """Returns whether A and B share two tiles and a kind, and r1 is contained in r0."""
        same_kind = self.before[joker.meld].kind is self.after[self.new_meld_of[joker]].kind
        return same_kind and len(self.a(joker) & self.b(joker)) >= 2 and self.keeps_role(joker)


def _roles(melds: tuple[Meld, ...], tiles: tuple[tuple[Physical, ...], ...]) -> dict[Physical, frozenset[Tile]]:
    return {
        joker: frozenset(faces)
        for meld, physical in zip(melds, tiles, strict=True)
        for joker, faces in zip((t for t in physical if t.face == JOKER), meld.joker_faces, strict=True)
    }


def assignments(
    table_before: tuple[Meld, ...], table_after: tuple[Meld, ...], played: Counter[Tile]
) -> Iterator[Assignment]:
    """Yields every assignment of old and played tiles to the new table."""
    old = tuple(
        tuple(Physical(face, number, place) for place, face in enumerate(meld.tiles))
        for number, meld in enumerate(table_before)
    )
    things = defaultdict(list)
    for physical in (t for tiles in old for t in tiles):
        things[physical.face].append(physical)
    for face, count in played.items():
        things[face] += [Physical(face, RACK, number) for number in range(count)]
    places = defaultdict(list)
    for number, meld in enumerate(table_after):
        for place, face in enumerate(meld.tiles):
            places[face].append((number, place))
    if {face: len(found) for face, found in things.items()} != {face: len(found) for face, found in places.items()}:
        raise ValueError("the tables and the tiles played do not add up")
    faces = sorted(things)
    for orders in product(*(_orders(things[face]) for face in faces)):
        lies = {
            place: physical
            for face, order in zip(faces, orders, strict=True)
            for place, physical in zip(places[face], order, strict=True)
        }
        new = tuple(
            tuple(lies[number, place] for place in range(len(meld.tiles))) for number, meld in enumerate(table_after)
        )
        yield Assignment(table_before, table_after, old, new)


def _orders(things: list[Physical]) -> list[tuple[Physical, ...]]:
    """Returns the orders of the tiles of a face. Rack tiles, which are interchangeable, keep their order."""
    return [
        order
        for order in permutations(things)
        if [t for t in order if t.meld == RACK] == [t for t in things if t.meld == RACK]
    ]


def legal_under_some_assignment(
    table_before: tuple[Meld, ...], table_after: tuple[Meld, ...], played: Counter[Tile], ruleset: Ruleset
) -> bool:
    """Returns whether joker retrieval is legal under some assignment."""
    return any(legal(assignment, ruleset) for assignment in assignments(table_before, table_after, played))


def legal(assignment: Assignment, ruleset: Ruleset) -> bool:
    """Returns whether joker retrieval is legal under an assignment."""
    match ruleset.joker_retrieval_mode:
        case JokerRetrievalMode.OFF:
            return all(map(assignment.remains, assignment.jokers))
        case JokerRetrievalMode.FREE:
            return _used_well(assignment, _not_remaining(assignment), ruleset)
        case JokerRetrievalMode.REPLACE:
            retrieved = _not_remaining(assignment)
            replaceable = any(True for _ in _replacements(assignment, retrieved, ruleset))
            return replaceable and _used_well(assignment, retrieved, ruleset)
        case JokerRetrievalMode.LOCKED:
            return any(
                _used_well(assignment, retrieved, ruleset)
                and any(
                    _unlocks(assignment, retrieved, replacements, ruleset)
                    for replacements in _replacements(assignment, retrieved, ruleset)
                )
                for retrieved in _choices_of_retrieved(assignment)
            )


def _not_remaining(assignment: Assignment) -> tuple[Physical, ...]:
    return tuple(joker for joker in assignment.jokers if not assignment.remains(joker))


# The use of retrieved jokers


def _used_well(assignment: Assignment, retrieved: tuple[Physical, ...], ruleset: Ruleset) -> bool:
    """Returns whether the options reuse and same_meld allow the use of retrieved jokers."""
    if ruleset.joker_retrieval_reuse is JokerRetrievalReuse.NEW_MELD_IF_REPLACED and not _replaced_reused(
        assignment, retrieved
    ):
        return False
    return all(
        _reused(assignment, joker, ruleset.joker_retrieval_reuse)
        and (
            ruleset.joker_retrieval_same_meld is JokerRetrievalSameMeld.ALLOWED
            or not assignment.a(joker) - {joker} <= assignment.b(joker)
        )
        for joker in retrieved
    )


def _reused(assignment: Assignment, joker: Physical, reuse: JokerRetrievalReuse) -> bool:
    match reuse:
        case JokerRetrievalReuse.ANY_MELD | JokerRetrievalReuse.NEW_MELD_IF_REPLACED:
            return True
        case JokerRetrievalReuse.NEW_MELD:
            return _in_new_set(assignment, joker)
        case JokerRetrievalReuse.NEW_MELD_TWO_RACK_TILES:
            return _in_new_set(assignment, joker) and len(assignment.b(joker) & assignment.played) >= 2
        case JokerRetrievalReuse.NEW_MELD_ALL_RACK:
            return assignment.b(joker) - {joker} <= assignment.played


def _in_new_set(assignment: Assignment, joker: Physical) -> bool:
    """Returns whether B contains no tile of A except the joker, and no complete old meld."""
    new = assignment.b(joker)
    return assignment.a(joker) & new == {joker} and not any(old <= new for old in assignment.old_sets)


def _replaced_reused(assignment: Assignment, retrieved: tuple[Physical, ...]) -> bool:
    """Returns whether jokers that are in no new set can have left unreplaced (NEW_MELD_IF_REPLACED)."""
    in_new = [joker for joker in retrieved if _in_new_set(assignment, joker)]
    others = [joker for joker in retrieved if joker not in in_new]
    for places in product(*([None, *_tiles_in_place(assignment, joker)] for joker in in_new)):
        taken = [t for t in places if t]
        if len(set(taken)) == len(taken) and all(_may_have_left(assignment, j, set(taken)) for j in others):
            return True
    return False


def _continued(assignment: Assignment, joker: Physical) -> int | None:
    """Returns C: the number of the new meld with all numbered tiles of a joker's old meld, if any."""
    numbered = {t for t in assignment.a(joker) if t.face != JOKER}
    return next((number for number, new in enumerate(assignment.new_sets) if numbered <= new), None)


def _tiles_in_place(assignment: Assignment, joker: Physical) -> list[Physical]:
    """Returns the tiles that may have taken a joker's place."""
    number = _continued(assignment, joker)
    return [] if number is None else [t for t in assignment.new[number] if t.face in assignment.old_roles[joker]]


def _may_have_left(assignment: Assignment, joker: Physical, taken: set[Physical]) -> bool:
    """Returns whether a joker can have left before a tile came to its place, given the tiles in others' places."""
    in_place = [t for t in _tiles_in_place(assignment, joker) if t not in taken]
    return not in_place or any(_is_spared(assignment, joker, t) for t in in_place)


def _is_spared(assignment: Assignment, joker: Physical, tile: Physical) -> bool:
    """Returns whether A's numbered tiles are in valid melds without a tile of C."""
    number = assignment.new_meld_of[tile]
    parts: list[list[Physical]] = [[]]
    for t in assignment.new[number]:
        if t != tile:
            parts[-1].append(t)
        elif assignment.after[number].kind is MeldKind.RUN:
            parts.append([])
    numbered = {t for t in assignment.a(joker) if t.face != JOKER}
    return all(len(part) >= 3 for part in parts if numbered & set(part))


# Replacements

Replacements = dict[Physical, frozenset[Physical]]
"""The tiles that replace each retrieved joker: one, none (end_of_run_free) or two (BOTH_COLORS)."""


def _replacements(assignment: Assignment, retrieved: tuple[Physical, ...], ruleset: Ruleset) -> Iterator[Replacements]:
    """Yields every choice of distinct replacements. Of the demands on their origin, only the source is checked."""
    rack_only = ruleset.joker_retrieval_source is JokerRetrievalSource.RACK_ONLY
    candidates = assignment.played if rack_only else assignment.played | assignment.table
    options = [_options(assignment, joker, candidates, ruleset) for joker in retrieved]
    for choice in product(*options):
        if len(frozenset[Physical]().union(*choice)) == sum(map(len, choice)):
            yield dict(zip(retrieved, choice, strict=True))


def _options(
    assignment: Assignment, joker: Physical, candidates: frozenset[Physical], ruleset: Ruleset
) -> list[frozenset[Physical]]:
    """Returns the alternatives that replace one joker."""
    role = assignment.old_roles[joker]
    fitting = sorted(t for t in candidates if t.face in role)
    if _needs_both_colors(assignment, joker, ruleset):
        return [frozenset(tiles) for tiles in combinations(fitting, len(role)) if {t.face for t in tiles} == role]
    free = [frozenset[Physical]()] if _free_at_the_end(assignment, joker, ruleset) else []
    return [*free, *(frozenset({t}) for t in fitting)]


def _needs_both_colors(assignment: Assignment, joker: Physical, ruleset: Ruleset) -> bool:
    meld = assignment.before[joker.meld]
    return (
        ruleset.joker_retrieval_group_of_three is JokerRetrievalGroupOfThree.BOTH_COLORS
        and meld.kind is MeldKind.GROUP
        and len(meld.tiles) == 3
        and meld.tiles.count(JOKER) == 1
    )


def _free_at_the_end(assignment: Assignment, joker: Physical, ruleset: Ruleset) -> bool:
    meld = assignment.before[joker.meld]
    size = len(meld.tiles)
    at_an_end = joker.place in {0, size - 1}
    return ruleset.joker_retrieval_end_of_run_free and meld.kind is MeldKind.RUN and size >= 4 and at_an_end


# LOCKED


def _choices_of_retrieved(assignment: Assignment) -> Iterator[tuple[Physical, ...]]:
    """Yields every choice of retrieved jokers: in each meld, one or more of those that do not stay, if any."""
    choices = []
    for number in range(len(assignment.old)):
        moved = [j for j in assignment.jokers if j.meld == number and not assignment.stays(j)]
        choices.append([some for size in range(1, len(moved) + 1) for some in combinations(moved, size)] or [()])
    for choice in product(*choices):
        yield tuple(joker for some in choice for joker in some)


def _unlocks(
    assignment: Assignment, retrieved: tuple[Physical, ...], replacements: Replacements, ruleset: Ruleset
) -> bool:
    """Returns whether the melds can be unlocked in some order, so that each replacement is free when it is needed."""
    waiting = set(range(len(assignment.old)))
    free = set(assignment.played)
    if ruleset.joker_retrieval_source is JokerRetrievalSource.RACK_OR_TABLE:
        free |= {t for tiles in assignment.old if not any(t.face == JOKER for t in tiles) for t in tiles}
    while waiting:
        opened = {number for number in waiting if all(replacements[j] <= free for j in retrieved if j.meld == number)}
        if not opened:
            return False
        for number in opened:
            if _jokers_of(assignment, number) <= set(retrieved):
                free |= assignment.old_sets[number]
        waiting -= opened
    return all(_rest_stays(assignment, number, replacements) for number in range(len(assignment.old)))


def _jokers_of(assignment: Assignment, number: int) -> set[Physical]:
    return {t for t in assignment.old[number] if t.face == JOKER}


def _rest_stays(assignment: Assignment, number: int, replacements: Replacements) -> bool:
    """Returns whether the rest of an old meld stays together, with its replacements, if it keeps a joker."""
    jokers = _jokers_of(assignment, number)
    retrieved = jokers & replacements.keys()
    remaining = jokers - retrieved
    if not remaining:
        return True
    together = (assignment.old_sets[number] - retrieved).union(*(replacements[j] for j in retrieved))
    return any(together <= new for new in assignment.new_sets) and all(map(assignment.keeps_role, remaining))
