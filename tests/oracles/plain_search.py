"""Searches legal plays under every option, for tests; one subject. It shares no rule with the engine.

Its melds are `ProposedMeld`s with their kind, in a legal order, with the declarations of the meld on the table. Where
an option depends on the origin of tiles, it only makes plays that are certainly legal: a joker stays, or it is replaced
in the simplest way.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations, pairwise
from typing import TypeAlias

from engine.melding.analysis import Situation
from engine.melding.melds import Meld, MeldKind, ProposedMeld
from engine.melding.ruleset import (
    Contract,
    InitialMeldComparison,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSameTurnTablePlay,
    JokerRetrievalGroupOfThree,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameMeld,
    JokersAdjacent,
    JokersDeclaration,
    JokersMaxPerMeld,
    Manipulation,
    MeldOrder,
    Ruleset,
)
from engine.melding.run_shape import RunShape, run_shape
from engine.tiles import JOKER, Tile

Tiles: TypeAlias = tuple[Tile, ...]
Table: TypeAlias = tuple[ProposedMeld, ...]

NODES = 25
"""The most melds that one random search tries."""

ALL_FACES = tuple(Tile(color * 13 + value + (color > 3)) for color in range(6) for value in range(1, 14))
COLOR = {t: place // 13 for place, t in enumerate(ALL_FACES)}
VALUE = {t: place % 13 + 1 for place, t in enumerate(ALL_FACES)}


def face(color: int, value: int) -> Tile:
    """Returns the tile of a color (from 0) and a value; values continue after 13 with 1."""
    return ALL_FACES[color * 13 + (value - 1) % 13]


def _is_near(played: Tile, other: Tile) -> bool:
    if JOKER in (played, other):
        return True
    distance = (VALUE[played] - VALUE[other]) % 13
    return distance == 0 or (COLOR[played] == COLOR[other] and min(distance, 13 - distance) <= 2)


NEAR = {t: frozenset(other for other in (*ALL_FACES, JOKER) if _is_near(t, other)) for t in (*ALL_FACES, JOKER)}
"""The tiles that may share a meld with a tile after a small rearrangement."""


@dataclass(frozen=True)
class Found:
    """A legal play: the proposed table, the tiles left on the rack, and the place of the pulled tile in the River."""

    table: Table
    left: Tiles
    river_index: int | None = None


def search_by_chance(situation: Situation, rng: random.Random, drawn: Tile | None = None) -> Found | None:
    """Returns a legal play found by random search, if any; never one of a tile just drawn that may not be played."""
    river_index = rng.randrange(len(situation.river)) if situation.river and rng.random() < 0.4 else None
    return _Player(situation, rng, drawn, river_index).play()


# Melds


@dataclass(frozen=True)
class Layable:
    """The melds that may be laid in a turn: the ruleset, and the faces of which all copies are on the table."""

    ruleset: Ruleset
    exhausted: frozenset[Tile] = frozenset()

    def run_faces(self, tiles: Tiles) -> Tiles:
        """Returns the faces of a run's places, by its first numbered tile; empty if the order is not that of a run."""
        place, natural = next((place, t) for place, t in enumerate(tiles) if t != JOKER)
        first = VALUE[natural] - place
        shape = run_shape(self.ruleset)
        if shape.beyond and first < 1:
            first += 13
        if first < 1 or first + len(tiles) - 1 > shape.last or len(tiles) > 13:
            return ()
        faces = tuple(face(COLOR[natural], first + place) for place in range(len(tiles)))
        return faces if all(t in (JOKER, there) for t, there in zip(tiles, faces, strict=True)) else ()

    def missing(self, tiles: Tiles) -> Tiles:
        """Returns the faces of the colors that a group lacks."""
        return other_colors(frozenset(tiles) - {JOKER}, self.ruleset.geometry_colors)

    def roles(self, meld: ProposedMeld) -> tuple[Tiles, ...]:
        """Returns the possible faces of each joker of a meld."""
        jokers = meld.tiles.count(JOKER)
        if not jokers:
            return ()
        if meld.kind is MeldKind.RUN:
            faces = self.run_faces(meld.tiles)
            return tuple((there,) for t, there in zip(meld.tiles, faces, strict=True) if t == JOKER)
        if meld.declared:
            return tuple((declared,) for declared in meld.declared)
        return (self.missing(meld.tiles),) * jokers

    def values(self, meld: ProposedMeld) -> list[int]:
        """Returns the value of each tile of a meld; a joker counts what it stands for."""
        if meld.kind is MeldKind.RUN:
            return [VALUE[there] for there in self.run_faces(meld.tiles)]
        return [next(VALUE[t] for t in meld.tiles if t != JOKER)] * len(meld.tiles)

    def is_legal(self, meld: ProposedMeld) -> bool:
        """Returns whether tiles in the shape of a meld are legal on the table; applies to changed melds."""
        return self._keeps_contract(meld) and (JOKER not in meld.tiles or self._jokers_may_lie(meld))

    def is_legal_new(self, meld: ProposedMeld) -> bool:
        """Returns whether tiles in the shape of a meld are legal as a new meld."""
        return self.is_legal(meld) and not (self.exhausted and self._needs_exhausted(meld))

    def _jokers_may_lie(self, meld: ProposedMeld) -> bool:
        jokers, is_run = meld.tiles.count(JOKER), meld.kind is MeldKind.RUN
        if (
            is_run
            and self.ruleset.jokers_adjacent is JokersAdjacent.FORBIDDEN
            and (JOKER, JOKER) in pairwise(meld.tiles)
        ):
            return False
        if not self.ruleset.jokers_may_lead and meld.tiles[0] == JOKER:
            return False
        most = {
            JokersMaxPerMeld.UNLIMITED_WITH_ONE_NATURAL: len(meld.tiles) - 1,
            JokersMaxPerMeld.ONE: 1,
            JokersMaxPerMeld.TWO: 2,
            JokersMaxPerMeld.NOT_MORE_THAN_NATURALS: len(meld.tiles) // 2,
        }
        return jokers <= most[self.ruleset.jokers_max_per_meld]

    def _needs_exhausted(self, meld: ProposedMeld) -> bool:
        roles = self.roles(meld)
        if meld.kind is MeldKind.RUN or meld.declared:
            return any(role[0] in self.exhausted for role in roles)
        return bool(roles) and len(set(roles[0]) - self.exhausted) < len(roles)

    def _keeps_contract(self, meld: ProposedMeld) -> bool:
        match self.ruleset.contract:
            case Contract.OFF:
                return True
            case Contract.VALUES_BELOW_10:
                return max(self.values(meld)) < 10
            case Contract.SINGLE_COLOR:
                return meld.kind is MeldKind.RUN
            case Contract.SUM_AT_MOST_41:
                return sum(self.values(meld)) <= 41

    def melds_with(self, t: Tile, available: Callable[[Tile], bool], jokers: int) -> Iterator[ProposedMeld]:
        """Yields legal melds with a numbered tile, from available tiles and a number of jokers."""
        for tiles in self._runs_with(t, available, jokers):
            meld = ProposedMeld(tiles, MeldKind.RUN)
            if self.is_legal_new(meld):
                yield meld
        for tiles in self._groups_with(t, available, jokers):
            meld = ProposedMeld(tiles, MeldKind.GROUP)
            if self.is_legal_new(meld):
                yield meld

    def _runs_with(self, t: Tile, available: Callable[[Tile], bool], jokers: int) -> Iterator[Tiles]:
        for faces_below, faces_above in run_neighbors(t, run_shape(self.ruleset)):
            below = _prefixes(_neighbors(faces_below, available, jokers))
            above = _prefixes(_neighbors(faces_above, available, jokers))
            if len(below) + len(above) < 4:
                continue
            for low, low_jokers in below:
                for high, high_jokers in above:
                    if 2 <= len(low) + len(high) <= 12 and low_jokers + high_jokers <= jokers:
                        yield (*reversed(low), t, *high)

    def _groups_with(self, t: Tile, available: Callable[[Tile], bool], jokers: int) -> Iterator[Tiles]:
        others = [other for other in self.missing((t,)) if available(other)]
        if len(others) + jokers < 2:
            return
        most = self.ruleset.geometry_colors
        for count in range(min(len(others), most - 1) + 1):
            for chosen in combinations(others, count):
                for added in range(max(0, 2 - count), min(jokers, most - 1 - count) + 1):
                    yield (t, *chosen, *(JOKER,) * added)

    def grown(self, meld: ProposedMeld, t: Tile) -> Iterator[ProposedMeld]:
        """Returns a meld with one more tile; its jokers keep their roles."""
        for larger in self._grown_run(meld, t) if meld.kind is MeldKind.RUN else self._grown_group(meld, t):
            if self.is_legal(larger) and not (t == JOKER and self.exhausted and self._needs_exhausted(larger)):
                yield larger

    def _grown_run(self, meld: ProposedMeld, t: Tile) -> Iterator[ProposedMeld]:
        faces = self.run_faces(meld.tiles)
        for tiles, place in (((*meld.tiles, t), 0), ((t, *meld.tiles), 1)):
            if self.run_faces(tiles)[place : place + len(faces)] == faces:
                yield ProposedMeld(tiles, MeldKind.RUN)

    def _grown_group(self, meld: ProposedMeld, t: Tile) -> Iterator[ProposedMeld]:
        free = [missing for missing in self.missing(meld.tiles) if missing not in meld.declared]
        if len(meld.tiles) == self.ruleset.geometry_colors or not free:
            return
        if t == JOKER:
            declared = next((missing for missing in free if missing not in self.exhausted), free[0])
            yield replace(meld, tiles=(*meld.tiles, t), declared=meld.declared and (*meld.declared, declared))
        elif t in free:
            yield replace(meld, tiles=(t, *meld.tiles))

    def canonical(self, tiles: Tiles) -> Tiles:
        """Returns the order with the most points in which tiles form a run; None if several have the most."""
        naturals = [t for t in tiles if t != JOKER]
        orders = {}
        for first in range(1, 14):
            faces = [face(COLOR[naturals[0]], first + place) for place in range(len(tiles))]
            order = tuple(there if there in naturals else JOKER for there in faces)
            if sorted(order) == sorted(tiles) and self.run_faces(order) == tuple(faces):
                meld = ProposedMeld(order, MeldKind.RUN)
                if self.ruleset.jokers_adjacent is JokersAdjacent.ALLOWED or (JOKER, JOKER) not in pairwise(order):
                    orders[order] = sum(self.values(meld))
        best = [order for order, points in orders.items() if points == max(orders.values())]
        return best[0] if len(best) == 1 else ()


@cache
def run_neighbors(t: Tile, shape: RunShape) -> tuple[tuple[Tiles, Tiles], ...]:
    """Returns the faces below a tile in a run, nearest first, and those above it; twice for a 1 that may be high."""
    color, value = COLOR[t], VALUE[t]
    places = [value, value + 13] if value <= shape.beyond else [value]
    room = [(12, 12)] if shape.is_cyclic else [(min(12, place - 1), min(12, shape.last - place)) for place in places]
    return tuple(
        (
            tuple(face(color, value - step) for step in range(1, below + 1)),
            tuple(face(color, value + step) for step in range(1, above + 1)),
        )
        for below, above in room
    )


@cache
def other_colors(tiles: frozenset[Tile], colors: int) -> Tiles:
    """Returns the faces of the same value in the colors that some tiles lack."""
    value, have = VALUE[min(tiles)], {COLOR[t] for t in tiles}
    return tuple(face(color, value) for color in range(colors) if color not in have)


def _neighbors(faces: Tiles, available: Callable[[Tile], bool], jokers: int) -> Tiles:
    """Returns available tiles for faces in order, with jokers for missing ones as far as they last."""
    found: list[Tile] = []
    for there in faces:
        if available(there):
            found.append(there)
        elif jokers:
            found.append(JOKER)
            jokers -= 1
        else:
            break
    return tuple(found)


def _prefixes(tiles: Tiles) -> list[tuple[Tiles, int]]:
    return [(tiles[:length], tiles[:length].count(JOKER)) for length in range(len(tiles) + 1)]


# Layouts


@dataclass
class _Layout:
    """A layout of tiles as melds: all required ones, and optional ones of the rack."""

    layable: Layable
    rng: random.Random
    nodes: int = NODES
    choices: int = 6
    needed: Counter[Tile] = field(default_factory=Counter)
    spare: Counter[Tile] = field(default_factory=Counter)
    melds: list[ProposedMeld] = field(default_factory=list)

    def left(self) -> Tiles:
        """Returns the tiles left on the rack."""
        return tuple(sorted(self.spare.elements()))

    def solve(self, first: Tile, stay: Table) -> bool:
        """Plays an optional tile and lays out all required ones; adds unused jokers to any meld that takes them."""
        self.spare[first] -= 1
        self.needed[first] += 1
        if not self._cover(first):
            return False
        self.melds = [*stay, *self.melds]
        return all(self._lay_joker() for _ in range(self.needed[JOKER]))

    def _cover(self, first: Tile) -> bool:
        t = first if first != JOKER and self.needed[first] > 0 else self._next_needed()
        if t is None:
            return True
        melds = list(self.layable.melds_with(t, self._available, self._jokers()))
        self.rng.shuffle(melds)
        for meld in melds[: self.choices]:
            self.nodes -= 1
            if self.nodes < 0:
                return False
            taken = self._take(meld.tiles)
            self.melds.append(meld)
            if self._cover(first):
                return True
            self.melds.pop()
            for source, used in taken:
                source[used] += 1
        return False

    def _next_needed(self) -> Tile | None:
        return min((t for t, count in self.needed.items() if count > 0 and t != JOKER), default=None)

    def _available(self, t: Tile) -> bool:
        return self.needed[t] + self.spare[t] > 0

    def _jokers(self) -> int:
        """Returns the jokers that a meld may use; a joker of the rack is not always offered."""
        return self.needed[JOKER] + (self.spare[JOKER] if self.rng.random() < 0.3 else 0)

    def _take(self, tiles: Tiles) -> list[tuple[Counter[Tile], Tile]]:
        taken = []
        for t in tiles:
            source = self.needed if self.needed[t] > 0 else self.spare
            source[t] -= 1
            taken.append((source, t))
        return taken

    def _lay_joker(self) -> bool:
        """Adds a joker to some meld."""
        places = list(range(len(self.melds)))
        self.rng.shuffle(places)
        for place in places:
            larger = next(self.layable.grown(self.melds[place], JOKER), None)
            if larger:
                self.melds[place] = larger
                self.needed[JOKER] -= 1
                return True
        return False


# Plays

Move: TypeAlias = tuple[Table, Tiles]
"""The current table, and the tiles left on the rack."""


class _Player:
    """Searches a play in one situation."""

    def __init__(self, situation: Situation, rng: random.Random, drawn: Tile | None, river_index: int | None) -> None:
        ruleset = situation.ruleset
        self.situation, self.ruleset, self.rng, self.river_index = situation, ruleset, rng, river_index
        pulled = () if river_index is None else situation.river[river_index:]
        self.key, self.plunder = (pulled[0] if pulled else None), pulled[1:]
        self.rack = _minus(situation.rack, () if drawn is None else (drawn,)) + pulled[:1]
        self.kept: Tiles = () if drawn is None else (drawn,)
        on_table = Counter(t for meld in situation.table for t in meld.tiles)
        full = (t for t, count in on_table.items() if t != JOKER and count >= ruleset.geometry_copies)
        self.layable = Layable(ruleset, frozenset() if ruleset.jokers_beyond_physical else frozenset(full))
        self.before = tuple(in_hand(meld) for meld in situation.table)
        self.jokers_free = (
            ruleset.joker_retrieval_mode is JokerRetrievalMode.FREE
            and ruleset.joker_retrieval_reuse is JokerRetrievalReuse.ANY_MELD
            and ruleset.joker_retrieval_same_meld is JokerRetrievalSameMeld.ALLOWED
        )

    def play(self) -> Found | None:
        """Returns a play found by random search."""
        own: Table = ()
        after, left = self.before, self.rack
        if not self.situation.has_melded:
            own = next((melds for melds in (self._random_melds() for _ in range(3)) if self._is_initial(melds)), ())
            if not own:
                return None
            left = _minus(left, _tiles(own))
        if self.situation.has_melded or self._may_go_on():
            after, left = self._play_on(after, left)
        return self._found(after + own, left)

    def _found(self, after: Table, left: Tiles) -> Found | None:
        played = Counter(self.rack) - Counter(left)
        if not played or (self.key is not None and not played[self.key]):
            return None
        rack = tuple(sorted(left + self.kept + self.plunder))
        return Found(self._proposed(after), rack, self.river_index)

    def _may_go_on(self) -> bool:
        allowed = self.ruleset.initial_meld_same_turn_table_play is InitialMeldSameTurnTablePlay.ALLOWED
        return allowed and self.rng.random() < 0.6

    # On the table

    def _play_on(self, table: Table, left: Tiles) -> Move:
        while left:
            found = self._one_play(table, left)
            if not found:
                break
            table, left = found
            if self.rng.random() < 0.2:
                break
        return table, left

    def _one_play(self, table: Table, left: Tiles) -> Move | None:
        """Returns a play of one or more rack tiles that rebuilds a few melds, or a simpler one."""
        simple = 0.1 if self.jokers_free and self.ruleset.manipulation is Manipulation.FREE else 0.6
        for played in self._candidates(left):
            found = None
            if self.rng.random() < simple:
                found = self._replaced(table, left, played)
            if not found and self.rng.random() < simple:
                found = self._grown(table, left, played)
            found = found or self._rearranged(table, left, played)
            if found:
                return found
        return None

    def _candidates(self, left: Tiles) -> Iterable[Tile]:
        if self.key is not None and Counter(left)[self.key] == Counter(self.rack)[self.key]:
            return (self.key,)
        return self.rng.sample(left, min(4, len(left)))

    def _rearranged(self, table: Table, left: Tiles, played: Tile) -> Move | None:
        taken = self._taken_up(table, played)
        stay = [meld for place, meld in enumerate(table) if place not in taken]
        layout = self._layout(table, left, taken)
        if self.rng.random() < 0.3:
            self._shorten(stay, layout)
        return (tuple(layout.melds), layout.left()) if layout.solve(played, tuple(stay)) else None

    def _layout(self, table: Table, left: Tiles, taken: set[int]) -> _Layout:
        needed = Counter(t for place in sorted(taken) for t in table[place].tiles)
        return _Layout(self.layable, self.rng, needed=needed, spare=Counter(left))

    def _taken_up(self, table: Table, played: Tile) -> set[int]:
        """Returns the places of up to three melds, mostly ones related to a tile."""
        near = self._near(table, played)
        self.rng.shuffle(near)
        taken = set(near[: self.rng.choice((0, 1, 1, 2, 2, 3))])
        movable = [place for place, meld in enumerate(table) if self._may_take_up(meld)]
        if movable and self.rng.random() < 0.15:
            taken.add(self.rng.choice(movable))
        return taken

    def _near(self, table: Table, played: Tile) -> list[int]:
        return [
            place
            for place, meld in enumerate(table)
            if not NEAR[played].isdisjoint(meld.tiles) and self._may_take_up(meld)
        ]

    def _may_take_up(self, meld: ProposedMeld) -> bool:
        return self.ruleset.manipulation is Manipulation.FREE and (self.jokers_free or JOKER not in meld.tiles)

    def _shorten(self, stay: list[ProposedMeld], layout: _Layout) -> None:
        """Removes a numbered tile from the end of a run with a joker, which stays, if the rules allow it."""
        remaining = {JokerRetrievalMode.REPLACE, JokerRetrievalMode.OFF}
        if self.ruleset.joker_retrieval_mode not in remaining or self.ruleset.manipulation is not Manipulation.FREE:
            return
        for place, meld in enumerate(stay):
            tiles = meld.tiles
            if meld.kind is not MeldKind.RUN or JOKER not in tiles or meld not in self.before:
                continue
            for end, rest in ((tiles[0], tiles[1:]), (tiles[-1], tiles[:-1])):
                shorter = ProposedMeld(rest, MeldKind.RUN)
                is_long = len(rest) >= 3 and end != JOKER and JOKER in rest and rest.count(JOKER) < len(rest)
                if is_long and self.layable.is_legal(shorter):
                    stay[place] = shorter
                    layout.needed[end] += 1
                    return

    def _grown(self, table: Table, left: Tiles, played: Tile) -> Move | None:
        """Returns a play that adds one tile to a meld."""
        places = list(range(len(table)))
        self.rng.shuffle(places)
        for place in places:
            for larger in self.layable.grown(table[place], played):
                return _with(table, place, larger), _minus(left, (played,))
        return None

    def _replaced(self, table: Table, left: Tiles, played: Tile) -> Move | None:
        """Returns a play that replaces a joker with rack tiles, and lays it with other rack tiles as a new meld."""
        forbidden = self.ruleset.joker_retrieval_mode is JokerRetrievalMode.OFF
        if forbidden or self.ruleset.manipulation is Manipulation.OFF:
            return None
        for place, meld in enumerate(table):
            for number, role in enumerate(self.layable.roles(meld) if meld in self.before else ()):
                tiles = self._replacement(meld, role, played)
                if played not in role or Counter(tiles) - Counter(left):
                    continue
                changed, rest = _without_joker(meld, number, tiles), _minus(left, tiles)
                new = self._new_with_joker(rest) if self.layable.is_legal(changed) else None
                if new:
                    return (*_with(table, place, changed), new), _minus(rest, tuple(t for t in new.tiles if t != JOKER))
        return None

    def _replacement(self, meld: ProposedMeld, role: Tiles, played: Tile) -> Tiles:
        of_three = meld.kind is MeldKind.GROUP and len(meld.tiles) == 3 and meld.tiles.count(JOKER) == 1
        both = self.ruleset.joker_retrieval_group_of_three is JokerRetrievalGroupOfThree.BOTH_COLORS
        return role if of_three and both else (played,)

    def _new_with_joker(self, rack: Tiles) -> ProposedMeld | None:
        held = Counter(t for t in rack if t != JOKER)
        for t in self.rng.sample(sorted(held), len(held)):
            melds = [m for m in self.layable.melds_with(t, lambda there: held[there] > 0, 1) if JOKER in m.tiles]
            if melds:
                return self.rng.choice(melds)
        return None

    # The initial meld

    def _random_melds(self) -> Table:
        """Returns melds of rack tiles."""
        spare = Counter(self.rack)
        forbidden = self.ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN
        jokers = 0 if forbidden else spare[JOKER]
        most = 1 if self.ruleset.initial_meld_count is InitialMeldCount.SINGLE_MELD else 5
        melds: list[ProposedMeld] = []
        tiles = [t for t in self.rack if t != JOKER]
        self.rng.shuffle(tiles)
        first = [] if self.key is None or self.key == JOKER else [self.key]
        for t in (*first, *tiles):
            if len(melds) == most or spare[t] <= 0:
                continue
            choices = list(self.layable.melds_with(t, lambda there: spare[there] > 0, jokers))
            if choices:
                meld = self.rng.choice(choices)
                spare.subtract(meld.tiles)
                jokers -= meld.tiles.count(JOKER)
                melds.append(meld)
        return tuple(melds)

    def _is_initial(self, melds: Table) -> bool:
        if not melds:
            return False
        wanted = {MeldKind.RUN, self._any_kind()}
        points = [self._points(meld) for meld in melds]
        each = self.ruleset.initial_meld_count is InitialMeldCount.ONE_MELD_REACHES_THRESHOLD
        more = self.ruleset.initial_meld_comparison is InitialMeldComparison.GREATER_THAN
        enough = (max(points) if each else sum(points)) >= self.ruleset.initial_meld_threshold + more
        return enough and any(meld.kind in wanted for meld in melds)

    def _any_kind(self) -> MeldKind:
        run = self.ruleset.initial_meld_required_kind is InitialMeldRequiredKind.RUN
        return MeldKind.RUN if run else MeldKind.GROUP

    def _points(self, meld: ProposedMeld) -> int:
        values = self.layable.values(meld)
        if self.ruleset.initial_meld_joker is InitialMeldJoker.ZERO:
            return sum(value for t, value in zip(meld.tiles, values, strict=True) if t != JOKER)
        return sum(values)

    # Proposals

    def _proposed(self, table: Table) -> Table:
        """Returns the table with required declarations, sometimes with more, and sometimes in another order."""
        rest = Counter(self.before)
        differ = len({tuple(sorted(meld.tiles)) for meld in rest}) < len(rest)
        in_full = differ or self.rng.random() < 0.2
        melds = []
        for meld in table:
            if rest[meld] > 0:
                rest[meld] -= 1
                melds.append(meld if in_full or self.rng.random() < 0.2 else ProposedMeld(meld.tiles))
            else:
                melds.append(self._shuffled(self._without_kind(self._declared(meld))))
        if self.rng.random() < 0.1:
            self.rng.shuffle(melds)
        return tuple(melds)

    def _without_kind(self, meld: ProposedMeld) -> ProposedMeld:
        """Returns a meld without its kind most of the time, if the kind makes no difference."""
        hangs_on_it = len(meld.tiles) - meld.tiles.count(JOKER) <= 1 or self._must_declare(meld)
        return meld if hangs_on_it or self.rng.random() < 0.2 else replace(meld, kind=None)

    def _must_declare(self, meld: ProposedMeld) -> bool:
        jokers = meld.tiles.count(JOKER)
        match self.ruleset.jokers_declaration:
            case JokersDeclaration.ALWAYS_EXPLICIT:
                return jokers >= 1
            case JokersDeclaration.EXPLICIT_WHEN_TWO:
                return jokers >= 2
            case JokersDeclaration.POSITIONAL | JokersDeclaration.EXPLICIT_WHEN_AMBIGUOUS:
                return False

    def _declared(self, meld: ProposedMeld) -> ProposedMeld:
        """Returns a new meld with joker faces if they are required, and sometimes if not."""
        roles = self.layable.roles(meld)
        if not roles or meld.declared:
            return meld
        if meld.kind is MeldKind.RUN:
            sorts = self.ruleset.meld_order is MeldOrder.CANONICALISE
            astray = sorts and self.layable.canonical(meld.tiles) != meld.tiles
            wanted = astray or self.rng.random() < 0.1
            return replace(meld, declared=tuple(role[0] for role in roles)) if wanted else meld
        free = [there for there in roles[0] if there not in self.layable.exhausted]
        wanted = self._must_declare(meld) or (self.rng.random() < 0.1 and len(free) >= len(roles))
        if not wanted:
            return meld
        chosen = self.rng.sample(free if len(free) >= len(roles) else list(roles[0]), len(roles))
        return replace(meld, declared=tuple(chosen))

    def _shuffled(self, meld: ProposedMeld) -> ProposedMeld:
        """Returns melds sometimes in another order, if the order makes no difference."""
        sorts = self.ruleset.meld_order is MeldOrder.CANONICALISE
        is_group = meld.kind is not MeldKind.RUN and len({VALUE[t] for t in meld.tiles if t != JOKER}) == 1
        if not (sorts or is_group) or self.rng.random() < 0.5:
            return meld
        tiles = self.rng.sample(meld.tiles, len(meld.tiles))
        if not self.ruleset.jokers_may_lead and not sorts:
            tiles.sort(key=lambda t: t == JOKER)
        return replace(meld, tiles=tuple(tiles))


def in_hand(meld: Meld) -> ProposedMeld:
    """Returns a meld of the table in the search's form: a group with joker faces if they were declared."""
    one_each = meld.kind is MeldKind.GROUP and all(len(faces) == 1 for faces in meld.joker_faces)
    return ProposedMeld(meld.tiles, meld.kind, tuple(faces[0] for faces in meld.joker_faces) if one_each else ())


def _without_joker(meld: ProposedMeld, number: int, tiles: Tiles) -> ProposedMeld:
    """Returns a meld with tiles in the place of one of its jokers."""
    place = [place for place, t in enumerate(meld.tiles) if t == JOKER][number]
    after = (*meld.tiles[:place], *tiles, *meld.tiles[place + 1 :])
    declared = meld.declared[:number] + meld.declared[number + 1 :]
    if meld.kind is MeldKind.GROUP:
        after = tuple(sorted(after, key=lambda t: t == JOKER))
    return replace(meld, tiles=after, declared=declared)


def _with(table: Table, place: int, meld: ProposedMeld) -> Table:
    return (*table[:place], meld, *table[place + 1 :])


def _tiles(melds: Sequence[ProposedMeld]) -> Tiles:
    return tuple(t for meld in melds for t in meld.tiles)


def _minus(tiles: Tiles, taken: Tiles) -> Tiles:
    return tuple(sorted((Counter(tiles) - Counter(taken)).elements()))
