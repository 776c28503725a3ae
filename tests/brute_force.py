"""The best turn by trying all, as an oracle for the solver under every ruleset; it shares no code with it.

Every choice of rack tiles, every way to part them and the table's tiles into melds, every order and declaration of
each meld: what the rules of plays find legal is compared. That is for small positions, up to about twelve tiles.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, groupby, product
from typing import TypeAlias

from engine.analysis import Situation
from engine.melds import MeldKind, ProposedMeld
from engine.play import Play
from engine.rules import judge
from engine.ruleset import Ruleset, RunWrap
from engine.solver import Objective
from engine.tiles import JOKER, Tile

Tiles: TypeAlias = tuple[Tile, ...]
Table: TypeAlias = tuple[ProposedMeld, ...]

MOST_PLAYS = 30_000
"""More plays than are judged of one situation."""


class TooManyPlaysError(Exception):
    """A situation is too large to try all."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best turns.

    Attributes:
        worth: What leaves the rack by the objective.
        kept: The most melds of the table that such a turn leaves as they lie.
        choices: The tiles that leave the rack, ascending, of each best turn that differs in them.
        play: One of the best that keeps most.
    """

    worth: int
    kept: int
    choices: frozenset[Tiles]
    play: Play


def best_by_force(situation: Situation, objective: Objective = Objective.MOST_TILES) -> Best | None:
    """The best turns, None if there is no legal one. Raises TooManyPlaysError."""
    search = _Search(situation)
    by_worth = [(search.worth(attempt.left, objective), attempt) for attempt in search.attempts()]
    for worth, equal in groupby(sorted(by_worth, key=lambda pair: -pair[0]), key=lambda pair: pair[0]):
        legal = [(attempt, play) for _, attempt in equal for play in search.legal_plays(attempt)]
        if legal:
            best = max((play for _, play in legal), key=kept)
            return Best(worth, kept(best), frozenset(attempt.left for attempt, _ in legal), best)
    return None


def exists_by_force(situation: Situation) -> bool:
    """Whether any turn is legal. Raises TooManyPlaysError."""
    search = _Search(situation)
    return any(True for attempt in search.attempts() for _ in search.legal_plays(attempt))


def arranged_by_force(tiles: Tiles, ruleset: Ruleset) -> bool:
    """Whether all of some tiles can be parted into melds."""
    whole = Situation((), tiles, has_melded=True, ruleset=ruleset)
    return any(True for _ in _Search(whole).partings(Counter(tiles)))


def kept(play: Play) -> int:
    """How many melds of the table a play leaves as they lie."""
    return len(play.kept_and_new[0])


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What might be played.

    Attributes:
        left: The tiles that leave the rack.
        river_index: Where the player pulls from the River, if they do.
    """

    left: Tiles
    river_index: int | None


@dataclass
class _Search:
    situation: Situation
    plays: int = field(default=0)

    @cached_property
    def lying(self) -> Counter[Tile]:
        return Counter(t for meld in self.situation.table for t in meld.tiles)

    def worth(self, tiles: Tiles, objective: Objective) -> int:
        if objective is Objective.MOST_TILES:
            return len(tiles)
        penalty = self.situation.ruleset.score_joker_penalty
        return sum(penalty if t == JOKER else _value(t) for t in tiles)

    def attempts(self) -> Iterator[_Attempt]:
        rack = self.situation.rack
        for count in range(len(rack) + 1):
            for tiles in sorted(set(combinations(sorted(rack), count))):
                if tiles:
                    yield _Attempt(tiles, None)
                for river_index in range(len(self.situation.river)):
                    yield _Attempt(tiles, river_index)

    def legal_plays(self, attempt: _Attempt) -> Iterator[Play]:
        pulled = () if attempt.river_index is None else (self.situation.river[attempt.river_index],)
        for melds in self.partings(self.lying + Counter(attempt.left + pulled)):
            for table in product(*melds):
                self.plays += 1
                if self.plays > MOST_PLAYS:
                    raise TooManyPlaysError
                play = self.play(table, attempt.river_index)
                judgement = judge(play)
                if not judgement.violations and judgement.tiles_played == tuple(sorted(attempt.left + pulled)):
                    yield play

    def play(self, table: Table, river_index: int | None) -> Play:
        situation = self.situation
        return Play(
            situation.table,
            table,
            situation.rack,
            situation.has_melded,
            situation.ruleset,
            river=situation.river,
            river_index=river_index,
            calls_rummikub=True,
        )

    def partings(self, tiles: Counter[Tile], least: int = 0) -> Iterator[tuple[tuple[ProposedMeld, ...], ...]]:
        """Every way to part tiles into melds, each with all its readings."""
        if not tiles.total():
            yield ()
            return
        first = min(tiles, key=lambda t: (t == JOKER, t))
        for place, piece in enumerate(self.pieces_by_first[first]):
            if place >= least and piece <= tiles:
                rest = tiles - piece
                again = place if rest[first] else 0
                for others in self.partings(rest, again):
                    yield (self.readings[_key(piece)], *others)

    @cached_property
    def readings(self) -> dict[Tiles, tuple[ProposedMeld, ...]]:
        """Every reading of tiles as a meld, by the tiles."""
        everything = self.lying + Counter(self.situation.rack) + Counter(self.situation.river)
        found = defaultdict(list)
        for meld in (*_runs(everything, self.situation.ruleset), *_groups(everything, self.situation.ruleset)):
            found[_key(Counter(meld.tiles))].append(meld)
        return {tiles: tuple(melds) for tiles, melds in found.items()}

    @cached_property
    def pieces_by_first(self) -> dict[Tile, list[Counter[Tile]]]:
        """What can be melds, by the least numbered tile."""
        found = defaultdict(list)
        for tiles in self.readings:
            found[min(t for t in tiles if t != JOKER)].append(Counter(tiles))
        return defaultdict(list, found)


def _key(tiles: Counter[Tile]) -> Tiles:
    return tuple(sorted(tiles.elements()))


def _value(t: Tile) -> int:
    return (t - 1 - (t > JOKER)) % 13 + 1


def _face(color: int, value: int) -> Tile:
    number = color * 13 + value
    return Tile(number + (number >= JOKER))


def _runs(tiles: Counter[Tile], ruleset: Ruleset) -> Iterator[ProposedMeld]:
    last = {RunWrap.NONE: 13, RunWrap.ONE_HIGH: 14, RunWrap.CYCLIC: 25}[ruleset.run_wrap]
    for color, first in product(range(ruleset.geometry_colors), range(1, 14)):
        for length in range(3, min(13, last - first + 1) + 1):
            faces = [_face(color, (value - 1) % 13 + 1) for value in range(first, first + length)]
            lacking = sum(not tiles[face] for face in faces)
            if lacking > tiles[JOKER]:
                continue
            for count in range(lacking, min(tiles[JOKER], length - 1) + 1):
                for places in combinations(range(length), count):
                    order = tuple(JOKER if place in places else face for place, face in enumerate(faces))
                    if Counter(order) <= tiles:
                        yield ProposedMeld(order, MeldKind.RUN, tuple(faces[place] for place in places))


def _groups(tiles: Counter[Tile], ruleset: Ruleset) -> Iterator[ProposedMeld]:
    for value in range(1, 14):
        faces = [_face(color, value) for color in range(ruleset.geometry_colors)]
        held = [face for face in faces if tiles[face]]
        for count in range(1, len(held) + 1):
            for naturals in combinations(held, count):
                missing = [face for face in faces if face not in naturals]
                for jokers in range(max(0, 3 - count), min(tiles[JOKER], len(missing)) + 1):
                    order = (*naturals, *(JOKER,) * jokers)
                    yield ProposedMeld(order, MeldKind.GROUP)
                    for declared in combinations(missing, jokers) if jokers else ():
                        yield ProposedMeld(order, MeldKind.GROUP, declared)
