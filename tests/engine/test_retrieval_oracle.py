"""Compares the engine's joker retrieval with the brute-force definition on random plays.

`python tests/engine/test_retrieval_oracle.py 100000` compares more plays.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, combinations, product
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import pytest  # noqa: E402 - a script makes its path first
from rich.console import Console  # noqa: E402 - as above

from engine.melding.initial_meld import suffices  # noqa: E402 - as above
from engine.melding.melds import Meld, MeldKind, ProposedMeld, read_meld  # noqa: E402 - as above
from engine.melding.notation import PlayText, format_play, parse_play  # noqa: E402 - as above
from engine.melding.play import STEPS, Play  # noqa: E402 - as above
from engine.melding.retrieval import retrieval_reasons  # noqa: E402 - as above
from engine.melding.ruleset import (  # noqa: E402 - as above
    SABRA,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSameTurnTablePlay,
    JokerRetrievalGroupOfThree,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameMeld,
    JokerRetrievalSource,
    Ruleset,
    problems,
    with_options,
)
from engine.melding.table import melds_of  # noqa: E402 - as above
from engine.tiles import COLORS, JOKER, MAX_VALUE, Color, Tile, color_of, in_order, tile, value_of  # noqa: E402 - as above
from engine.violations import Reason  # noqa: E402 - as above
from oracles.retrieval_by_force import legal_under_some_assignment  # noqa: E402 - as above
from support.plays import play_of  # noqa: E402 - as above
from support.soak import few_of  # noqa: E402 - as above

pytestmark = [pytest.mark.unmeasured, pytest.mark.slow]

FREE, REPLACE, LOCKED, OFF = JokerRetrievalMode
ANY_MELD, NEW_MELD, TWO_RACK_TILES, ALL_RACK, IF_REPLACED = JokerRetrievalReuse
RACK_ONLY = JokerRetrievalSource.RACK_ONLY
FORBIDDEN = JokerRetrievalSameMeld.FORBIDDEN
BOTH_COLORS = JokerRetrievalGroupOfThree.BOTH_COLORS

RETRIEVAL: Final = (
    "joker_retrieval_mode",
    "joker_retrieval_source",
    "joker_retrieval_reuse",
    "joker_retrieval_same_meld",
    "joker_retrieval_group_of_three",
    "joker_retrieval_end_of_run_free",
)
SEEDS: Final = 20
MOST_WAYS: Final = 768
PLAYS_A_SEED: Final = 130
RULESETS_A_PLAY: Final = 4

MODE, SOURCE, REUSE, SAME_MELD, GROUP_OF_THREE, END_OF_RUN_FREE = RETRIEVAL
SPLIT_OFF: Final = "[R5 J R7 R8] + {B8 K8} -> [R5 J R7] | [R8 B8 K8] ; {}"
TO_TWO_RACK_TILES: Final = "[B3 B4 J] + {B5 O7 R7} -> [B3 B4 B5] | [J O7 R7] ; {}"
ALONG_ITS_RUN: Final = "[B3 B4 J] + {B5} -> [B3 B4 B5 J] ; {}"
DISSOLVED: Final = "[K1 K2 J] | [R1 B1 O1] | [R2 B2 O2] + {R7 R8} -> [R1 B1 O1 K1] | [R2 B2 O2 K2] | [R7 R8 J] ; {}"
FROM_THE_TABLE: Final = "[B3 B4 J] | [R5 B5 K5 O5] + {R1 R2} -> [B3 B4 B5] | [R5 K5 O5] | [R1 R2 J] ; {}"
FROM_EITHER: Final = "[B3 B4 J] | [B5 K5 O5] + {B5 R1 R2} -> [B3 B4 B5] | [B5 K5 O5] | [R1 R2 J] ; {}"
CIRCLE: Final = "[J B4 B5] | [B3 J B5] + {R5} -> [B3 B4 B5] | [J J B5 R5] ; {}"
CHAIN: Final = "[B3 B4 J] | [B5 J B7] + {B6 R1} -> [B3 B4 B5 B6 B7] | [J J R1] ; {}"
REPLACED_ELSEWHERE: Final = "[J R4 R5 J] + {R6 R7 R8 K1 K2} -> [J R4 R5] | [R6 R7 R8] | [K1 K2 J] ; {}"
ONE_COLOR: Final = "[B12 K12 J] + {O12 R2 R3} -> [B12 K12 O12] | [R2 R3 J] ; {}"
TWO_COLORS: Final = "[B12 K12 J] + {R12 O12 R2 R3} -> [B12 K12 O12 R12] | [R2 R3 J] ; {}"
END_OF_RUN: Final = "[R3 R4 R5 J] + {B1 B2} -> [R3 R4 R5] | [B1 B2 J] ; {}"
TO_THE_TABLE: Final = "[B3 B4 J] | [R1 R2 R3] + {B5} -> [B3 B4 B5] | [R1 R2 R3 J] ; {}"
TO_THE_COPY: Final = "[B3 B4 J] | [R1 R2 R3] + {B5 R1 R2 R3} -> [B3 B4 B5] | [R1 R2 R3] | [R1 R2 R3 J] ; {}"
PAST_ITS_START: Final = "[R6 R7 J] | [R5 B5 K5 O5] + {B1 B2 B3} -> [J R5 R6 R7] | [B5 K5 O5] | [B1 B2 B3] ; {}"
TO_ONE_RACK_TILE: Final = "[B3 B4 J] | [R1 R2 R3 R4] + {B5 R5} -> [B3 B4 B5] | [R1 R2 R3] | [R4 R5 J] ; {}"


# Rulesets


@cache
def rulesets(mode: JokerRetrievalMode) -> tuple[Ruleset, ...]:
    """Returns all rulesets of a mode that differ in retrieval options."""
    options = (
        JokerRetrievalSource,
        JokerRetrievalReuse,
        JokerRetrievalSameMeld,
        JokerRetrievalGroupOfThree,
        (False, True),
    )
    combined = (
        replace(SABRA, geometry_jokers=4, **dict(zip(RETRIEVAL, (mode, *values), strict=True)))  # type: ignore[arg-type]
        for values in product(*options)
    )
    return tuple(ruleset for ruleset in combined if not problems(ruleset))


def draw_rulesets(rng: random.Random) -> list[Ruleset]:
    """Returns random rulesets, preferring those with many decisions that do not reject most plays anyway."""
    modes = rng.choices((FREE, REPLACE, LOCKED, OFF), (2, 4, 5, 1), k=RULESETS_A_PLAY)
    return [rng.choices(rulesets(mode), [_weight(ruleset) for ruleset in rulesets(mode)])[0] for mode in modes]


def _weight(ruleset: Ruleset) -> int:
    return {ANY_MELD: 3, IF_REPLACED: 4}.get(ruleset.joker_retrieval_reuse, 1)


def format_ruleset(ruleset: Ruleset) -> str:
    values = (getattr(ruleset, option) for option in RETRIEVAL)
    return " ".join(str(getattr(value, "name", value)) for value in values)


# Random plays


@dataclass(frozen=True, slots=True)
class Case:
    """A play by a player who has melded, with valid melds only."""

    before: tuple[Meld, ...]
    after: tuple[Meld, ...]
    rack: tuple[Tile, ...]

    @property
    def played(self) -> Counter[Tile]:
        return _tiles(self.after) - _tiles(self.before)

    def play(self, ruleset: Ruleset) -> Play:
        after = tuple(ProposedMeld(meld.tiles, meld.kind) for meld in self.after)
        return Play(self.before, after, self.rack, has_melded=True, ruleset=ruleset)

    def __str__(self) -> str:
        before, after = (
            tuple(ProposedMeld(meld.tiles, meld.kind) for meld in table) for table in (self.before, self.after)
        )
        left = in_order((Counter(self.rack) - self.played).elements())
        return format_play(PlayText(before, self.rack, after, left))


def reasons_of(play: Play) -> tuple[Reason, ...]:
    """Returns the engine's reasons for a play. None of these plays is nearly too complex."""
    reasons = retrieval_reasons(play)
    assert play.effort.left > STEPS // 2
    return reasons


def _tiles(melds: Sequence[Meld]) -> Counter[Tile]:
    return Counter(t for meld in melds for t in meld.tiles)


def _meld(tiles: Sequence[Tile], kind: MeldKind | None) -> Meld | None:
    reading = read_meld(ProposedMeld(tuple(tiles), kind), SABRA)
    return reading if isinstance(reading, Meld) else None


class Dealer:
    """Deals plays on few faces, so that copies and equal melds are frequent."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        copies = self.rng.choice((2, 2, 2, 3))
        self.low = self.rng.randint(1, MAX_VALUE - 4)
        self.high = self.low + self.rng.randint(3, 5)
        self.high = min(self.high, MAX_VALUE)
        self.colors = self.rng.sample(COLORS[:4], 4)
        values = range(self.low, self.high + 1)
        self.stock = Counter({tile(color, value): copies for color, value in product(self.colors, values)})
        self.stock[JOKER] = self.rng.choice((1, 2, 2, 2, 3, 4))

    def deal(self) -> Case | None:
        """Returns a play, or None if this attempt failed."""
        before = self._table()
        if not 1 <= _tiles(before)[JOKER] <= 3 + (self.rng.random() < 0.2):
            return None
        kept, loose = self._disturb(before)
        after = self._arrange(kept, loose)
        if after is None or not all(after):
            return None
        melds = tuple(meld for meld in after if meld)
        case = Case(before, melds, ())
        if not 1 <= case.played.total() <= 8 or _tiles(before) - _tiles(melds):
            return None
        spare = [t for t in self.stock.elements() if t != JOKER]
        rack = [*case.played.elements(), *self.rng.sample(spare, min(len(spare), self.rng.randint(0, 2)))]
        shuffled = self.rng.sample(melds, len(melds))
        return Case(before, tuple(shuffled), in_order(rack))

    # The old table

    def _table(self) -> tuple[Meld, ...]:
        melds: list[Meld] = []
        for _ in range(self.rng.choice((1, 2, 2, 3, 3, 3, 4, 4))):
            if melds and self.rng.random() < 0.25 and Counter(melds[-1].tiles) <= self.stock:
                copy = melds[-1]
                self.stock -= Counter(copy.tiles)
                melds.append(copy)
                continue
            stood_for = [face for meld in melds for faces in meld.joker_faces for face in faces]
            linked = stood_for and self.rng.random() < 0.5
            wanted = self._shape(self.rng.choice(stood_for if linked else self._naturals()))
            jokers = self.rng.choices((0, 1, 2, 3), (4, 8, 4, 1))[0]
            tiles = self._fill(wanted, Counter(), jokers)
            meld = tiles and _meld(tiles, self._kind_of(wanted))
            if meld:
                melds.append(meld)
        return tuple(melds)

    def _naturals(self) -> list[Tile]:
        return [tile(color, value) for color in self.colors for value in range(self.low, self.high + 1)]

    def _shape(self, natural: Tile) -> list[Tile]:
        """Returns the faces of a random meld that contains a tile."""
        value, color = value_of(natural), color_of(natural)
        if self.rng.random() < 0.5:
            others = [other for other in self.colors if other is not color]
            return [natural, *(tile(other, value) for other in self.rng.sample(others, self.rng.choice((2, 2, 3))))]
        size = self.rng.choice((3, 3, 3, 4, 4, 5))
        first = min(max(1, value - self.rng.randrange(size)), MAX_VALUE - size + 1)
        return [tile(color, first + step) for step in range(size)]

    @staticmethod
    def _kind_of(faces: Sequence[Tile]) -> MeldKind:
        return MeldKind.GROUP if value_of(faces[0]) == value_of(faces[1]) else MeldKind.RUN

    def _fill(self, faces: Sequence[Tile], loose: Counter[Tile], jokers: int) -> list[Tile] | None:
        """Returns a meld of the faces from loose tiles first, then from the stock, with jokers at random positions."""
        places = set(self.rng.sample(range(len(faces)), min(jokers, len(faces) - 1)))
        taken: list[Tile] = []
        for place, face in enumerate(faces):
            wanted = JOKER if place in places else face
            found = next((t for t in (wanted, JOKER) if loose[t] or self.stock[t]), None)
            if found is None:
                return None  # the taken tiles are lost; deal checks for lost table tiles
            source = loose if loose[found] else self.stock
            source[found] -= 1
            taken.append(found)
        return taken

    # Moves

    def _disturb(self, before: Sequence[Meld]) -> tuple[list[tuple[list[Tile], MeldKind]], Counter[Tile]]:
        """Returns the melds after some moves, perhaps incomplete, and the tiles taken from them."""
        kept: list[tuple[list[Tile], MeldKind]] = []
        loose: Counter[Tile] = Counter()
        moves = (self._keep, self._extend, self._reduce, self._split, self._swap, self._dissolve, self._wander)
        for meld in self.rng.sample(before, len(before)):
            weights = (4, 3, 2, 2, 7, 3, 2) if JOKER in meld.tiles else (6, 2, 3, 1, 0, 3, 0)
            move = self.rng.choices(moves, weights)[0]
            kept += [(part, meld.kind) for part in move(meld, loose)]
        return kept, loose

    def _keep(self, meld: Meld, _loose: Counter[Tile]) -> list[list[Tile]]:
        return [list(meld.tiles)]

    def _dissolve(self, meld: Meld, loose: Counter[Tile]) -> list[list[Tile]]:
        loose.update(meld.tiles)
        return []

    def _extend(self, meld: Meld, _loose: Counter[Tile]) -> list[list[Tile]]:
        tiles = list(meld.tiles)
        for _ in range(self.rng.choice((1, 1, 2))):
            self._grow(tiles, meld.kind, self.stock)
        return [tiles]

    def _reduce(self, meld: Meld, loose: Counter[Tile]) -> list[list[Tile]]:
        tiles = list(meld.tiles)
        if len(tiles) == 3:
            self._grow(tiles, meld.kind, self.stock)
        while len(tiles) > 3 and self.rng.random() < 0.8:
            place = self.rng.randrange(len(tiles)) if meld.kind is MeldKind.GROUP else self.rng.choice((0, -1))
            loose[tiles.pop(place)] += 1
        return [tiles]

    def _split(self, meld: Meld, loose: Counter[Tile]) -> list[list[Tile]]:
        if meld.kind is MeldKind.GROUP:
            return self._reduce(meld, loose)
        place = self.rng.randrange(1, len(meld.tiles))
        parts = [list(meld.tiles[:place]), list(meld.tiles[place:])]
        for part in parts:
            while len(part) < 3 and self._grow(part, meld.kind, self.stock):
                pass
        return parts

    def _swap(self, meld: Meld, loose: Counter[Tile]) -> list[list[Tile]]:
        """Replaces jokers with tiles from the stock or from elsewhere."""
        tiles = list(meld.tiles)
        jokers = [place for place, t in enumerate(tiles) if t == JOKER]
        for place in self.rng.sample(jokers, self.rng.randint(1, len(jokers))):
            faces = [face for face in self._faces_at(meld, place) if face not in tiles]
            faces = [face for face in faces if loose[face]] or [face for face in faces if self.stock[face]]
            if faces:
                tiles[place] = self.rng.choice(faces)
                source = loose if loose[tiles[place]] else self.stock
                source[tiles[place]] -= 1
                loose[JOKER] += 1
        if self.rng.random() < 0.25:
            self._grow(tiles, meld.kind, self.stock)
        if self.rng.random() < 0.2:
            self._grow(tiles, meld.kind, loose)
        if self.rng.random() < 0.2:
            loose.update(tiles)
            return []
        return [tiles]

    def _wander(self, meld: Meld, loose: Counter[Tile]) -> list[list[Tile]]:
        """Moves jokers to another position of their meld."""
        tiles = [t for t in meld.tiles if t != JOKER]
        jokers = len(meld.tiles) - len(tiles)
        while meld.kind is MeldKind.RUN and jokers and tiles:
            tiles.insert(self.rng.choice((0, len(tiles))), JOKER)
            jokers -= 1
        loose[JOKER] += jokers
        while len(tiles) < 3 and self._grow(tiles, meld.kind, self.stock):
            pass
        return [tiles]

    @staticmethod
    def _faces_at(meld: Meld, place: int) -> tuple[Tile, ...]:
        return meld.joker_faces[meld.tiles[:place].count(JOKER)]

    def _grow(self, tiles: list[Tile], kind: MeldKind, source: Counter[Tile]) -> bool:
        """Adds a tile, perhaps a joker, to a meld. Returns whether there was one to add."""
        options: list[tuple[int, Tile]] = []
        for candidate in [t for t in source if source[t] > 0]:
            for place in (0, len(tiles)):
                grown = [*tiles[:place], candidate, *tiles[place:]]
                fits = _meld(grown, kind) if len(grown) > 2 else any(_near(candidate, t) for t in tiles)
                if fits:
                    options.append((place, candidate))
        if not options:
            return False
        naturals = [option for option in options if option[1] != JOKER]
        place, candidate = self.rng.choice(naturals if naturals and self.rng.random() < 0.8 else options)
        source[candidate] -= 1
        tiles.insert(place, candidate)
        return True

    # The new table

    def _arrange(self, kept: list[tuple[list[Tile], MeldKind]], loose: Counter[Tile]) -> list[Meld | None] | None:
        """Returns the new melds with every loose tile in one, or None if that failed."""
        after: list[Meld | None] = []
        for tiles, kind in kept:
            if self.rng.random() < 0.3:
                self._grow(tiles, kind, loose)
            after.append(_meld(tiles, kind))
        while +loose:
            naturals = [t for t in loose if t != JOKER and loose[t] > 0]
            if not naturals and self.rng.random() < 0.3 and self._absorb(after, loose):
                continue
            start = self.rng.choice(naturals or [t for t in self._naturals() if self.stock[t]] or [JOKER])
            if start == JOKER:
                return None
            faces = self._shape(start)
            jokers = self.rng.randint(0, loose[JOKER]) if naturals else max(1, self.rng.randint(0, loose[JOKER]))
            filled = self._fill(faces, loose, min(jokers, 2))
            if filled is None:
                return None
            after.append(_meld(filled, self._kind_of(faces)))
        return after

    def _absorb(self, after: list[Meld | None], loose: Counter[Tile]) -> bool:
        """Adds a loose tile to an existing meld."""
        for place, meld in enumerate(after):
            if meld is not None:
                tiles = list(meld.tiles)
                if self._grow(tiles, meld.kind, loose):
                    after[place] = _meld(tiles, meld.kind)
                    return True
        return False


def _near(one: Tile, other: Tile) -> bool:
    if JOKER in {one, other}:
        return False
    return color_of(one) is color_of(other) and abs(value_of(one) - value_of(other)) == 1


def cases(seed: int, count: int) -> Iterator[Case]:
    """Yields a number of random plays."""
    rng = random.Random(seed)
    while count:
        case = Dealer(rng.getrandbits(32)).deal()
        if case and _ways(case) <= MOST_WAYS and rng.random() < _interest(case):
            count -= 1
            yield case


def _interest(case: Case) -> float:
    """Returns the probability of keeping a play. Plays with one meld or with unmoved jokers are less interesting."""
    after = Counter((meld.kind, in_order(meld.tiles)) for meld in case.after)
    jokers_kept = all(after[meld.kind, in_order(meld.tiles)] for meld in case.before if JOKER in meld.tiles)
    return (0.3 if len(case.before) == 1 else 1) * (0.2 if jokers_kept else 1)


def _ways(case: Case) -> int:
    """Returns an estimate of the number of assignments."""
    ways = 1
    old, new = _tiles(case.before), _tiles(case.after)
    for face, count in new.items():
        for step in range(old[face]):
            ways *= count - step
    return ways


# Comparison


def disagreement(case: Case, ruleset: Ruleset) -> str:
    """Returns a description of a disagreement between engine and definition, or None."""
    reasons = reasons_of(case.play(ruleset))
    legal = legal_under_some_assignment(case.before, case.after, case.played, ruleset)
    if legal == (not reasons):
        return ""
    said = " ".join(reason.name for reason in reasons) or "legal"
    return f"{case}\n  {format_ruleset(ruleset)}\n  engine: {said}; by force: {'legal' if legal else 'illegal'}"


def compare(seed: int, count: int) -> Iterator[str]:
    """Yields the disagreements on a number of plays, each under a few rulesets."""
    rng = random.Random(seed)
    for case in cases(seed, count):
        yield from filter(None, (disagreement(case, ruleset) for ruleset in draw_rulesets(rng)))


@pytest.mark.parametrize("seed", few_of(range(SEEDS), 2))
def test_the_engine_agrees_with_every_assignment_tried(seed: int) -> None:
    found = next(compare(seed, PLAYS_A_SEED), "")
    assert not found, found


def test_the_plays_are_of_all_sorts() -> None:
    rng = random.Random(0)
    sorts: Counter[tuple[JokerRetrievalMode, JokerRetrievalReuse, bool]] = Counter()
    for case in cases(0, 300):
        for ruleset in draw_rulesets(rng):
            legal = legal_under_some_assignment(case.before, case.after, case.played, ruleset)
            sorts[ruleset.joker_retrieval_mode, ruleset.joker_retrieval_reuse, legal] += 1
    assert all(
        sorts[mode, reuse, legal]
        for mode in (REPLACE, LOCKED)
        for reuse in JokerRetrievalReuse
        if reuse is not IF_REPLACED
        for legal in (False, True)
    )
    assert all(sorts[FREE, reuse, False] for reuse in JokerRetrievalReuse if reuse is not ANY_MELD)
    assert sorts[FREE, IF_REPLACED, True]
    assert sorts[OFF, ANY_MELD, False]
    assert sorts[OFF, ANY_MELD, True]


# The turn of the initial meld, where the table may be used too


def draw_initial_rules(rng: random.Random) -> Ruleset:
    """Returns rules of retrieval, and of an initial meld after which the turn continues."""
    (ruleset, *_) = draw_rulesets(rng)
    return replace(
        ruleset,
        initial_meld_same_turn_table_play=InitialMeldSameTurnTablePlay.ALLOWED,
        initial_meld_threshold=rng.choice((0, 9, 15, 21)),
        initial_meld_count=rng.choice(list(InitialMeldCount)),
        initial_meld_joker=rng.choice(list(InitialMeldJoker)),
        initial_meld_required_kind=rng.choice(list(InitialMeldRequiredKind)),
    )


def with_more_melds(case: Case, rng: random.Random) -> Case:
    """Returns a play with one or two more melds from the rack, preferably of faces that jokers stood for."""
    stood_for = [face for meld in case.before for faces in meld.joker_faces for face in faces]
    more = tuple(meld for _ in range(rng.choice((1, 2, 2))) if (meld := _meld_with(rng.choice(stood_for), rng)))
    return Case(case.before, (*case.after, *more), in_order((*case.rack, *_tiles(more).elements())))


def _meld_with(face: Tile, rng: random.Random) -> Meld | None:
    color, value = color_of(face), value_of(face)
    if rng.random() < 0.3:
        color, value = rng.choice(COLORS[:4]), rng.randint(1, MAX_VALUE)
    if rng.random() < 0.5:
        others = [other for other in COLORS[:4] if other is not color]
        return _meld([tile(one, value) for one in (color, *rng.sample(others, 2))], None)
    first = min(max(1, value - rng.randrange(3)), MAX_VALUE - 2)
    return _meld([tile(color, first + step) for step in range(3)], None)


def initial_melds(case: Case, ruleset: Ruleset) -> Iterator[tuple[Meld, ...]]:
    """Yields every choice of new melds that is an initial meld of played tiles."""
    most = 1 if ruleset.initial_meld_count is InitialMeldCount.SINGLE_MELD else len(case.after)
    for chosen in chain.from_iterable(combinations(case.after, count) for count in range(1, most + 1)):
        tiles = _tiles(chosen)
        has_joker = ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN and tiles[JOKER]
        if tiles <= case.played and not has_joker and suffices(chosen, ruleset):
            yield chosen


def legal_beside_an_initial_meld(case: Case, ruleset: Ruleset) -> bool:
    """Returns whether the retrieval of a play's rest is legal after some initial meld."""
    for chosen in initial_melds(case, ruleset):
        rest = list(case.after)
        for meld in chosen:
            rest.remove(meld)
        if legal_under_some_assignment(case.before, tuple(rest), case.played - _tiles(chosen), ruleset):
            return True
    return False


@pytest.mark.parametrize("seed", few_of(range(8), 1))
def test_the_engine_agrees_in_the_turn_of_the_initial_meld(seed: int) -> None:
    rng, compared = random.Random(seed), Counter[bool]()
    for case in cases(200 + seed, 60):
        more, ruleset = with_more_melds(case, rng), draw_initial_rules(rng)
        play = replace(more.play(ruleset), has_melded=False)
        if play.may_use_table and _ways(more) <= MOST_WAYS:
            legal = legal_beside_an_initial_meld(more, ruleset)
            assert legal == (not play.least_wrong(retrieval_reasons)), f"{more}\n{ruleset}\nby force: {legal}"
            compared[legal] += 1
    assert min(compared[True], compared[False]) > 1


# Invariance


def recolored(case: Case, colors: dict[Color, Color]) -> Case:
    def tiles(old: Sequence[Tile]) -> tuple[Tile, ...]:
        return tuple(t if t == JOKER else tile(colors[color_of(t)], value_of(t)) for t in old)

    def melds(old: Sequence[Meld]) -> tuple[Meld, ...]:
        return tuple(_read(tiles(meld.tiles), meld.kind) for meld in old)

    return Case(melds(case.before), melds(case.after), in_order(tiles(case.rack)))


def reordered(case: Case, rng: random.Random) -> Case:
    """Returns melds in another order, and the tiles of groups too."""

    def melds(old: Sequence[Meld]) -> tuple[Meld, ...]:
        shuffled = rng.sample(old, len(old))
        return tuple(
            _read(rng.sample(meld.tiles, len(meld.tiles)), meld.kind) if meld.kind is MeldKind.GROUP else meld
            for meld in shuffled
        )

    return Case(melds(case.before), melds(case.after), case.rack)


def _read(tiles: Sequence[Tile], kind: MeldKind | None) -> Meld:
    meld = _meld(tiles, kind)
    assert meld is not None
    return meld


@pytest.mark.parametrize("seed", few_of(range(100, 104), 1))
def test_colors_and_order_make_no_difference(seed: int) -> None:
    rng = random.Random(seed)
    colors = dict(zip(COLORS[:4], rng.sample(COLORS[:4], 4), strict=True))
    for case in cases(seed, 100):
        for ruleset in draw_rulesets(rng):
            legal = not reasons_of(case.play(ruleset))
            for other in (recolored(case, colors), reordered(case, rng)):
                same = legal == (not reasons_of(other.play(ruleset)))
                assert same, f"{case}\n{other}\n{format_ruleset(ruleset)}\nfirst legal: {legal}"


# Plays from docs/rules.md

EXAMPLES: Final[tuple[tuple[str, dict[str, object], Reason | None], ...]] = (
    # A tile leaves a meld whose joker stays.
    (SPLIT_OFF, {MODE: LOCKED}, Reason.JOKER_MELD_LOCKED),
    (SPLIT_OFF, {MODE: FREE}, None),
    (SPLIT_OFF, {MODE: REPLACE}, None),
    (SPLIT_OFF, {MODE: OFF}, None),
    ("[B3 B4 J B6 B7 B8] + {B9} -> [B3 B4 J] | [B6 B7 B8 B9] ; {}", {REUSE: NEW_MELD, SAME_MELD: FORBIDDEN}, None),
    # Two locked melds do not replace each other's jokers
    (
        "run[J R10 J] | run[J R9 J] + {R9 R10 K9 K10} -> [J R9 R10 J] | [R9 K9 J] | [R10 K10 J] ; {}",
        {MODE: LOCKED, SAME_MELD: JokerRetrievalSameMeld.ALLOWED, "geometry_jokers": 4},
        Reason.JOKER_MELD_LOCKED,
    ),
    # A joker that stays was not retrieved, and unlocks nothing
    (
        "[O4 O5 O6 J] | [O7 B7 J] + {R7 R8 R9} -> [O7 B7 J J] | [O4 O5 O6] | [R7 R8 R9] ; {}",
        {MODE: LOCKED, SAME_MELD: JokerRetrievalSameMeld.ALLOWED},
        Reason.JOKER_MELD_LOCKED,
    ),
    # A joker is replaced from the rack and goes to two tiles of the rack.
    (TO_TWO_RACK_TILES, {REUSE: TWO_RACK_TILES}, None),
    (TO_TWO_RACK_TILES, {MODE: REPLACE, SOURCE: RACK_ONLY, REUSE: TWO_RACK_TILES}, None),
    (TO_TWO_RACK_TILES, {MODE: LOCKED, SOURCE: RACK_ONLY, REUSE: ALL_RACK}, None),
    (TO_TWO_RACK_TILES, {MODE: OFF}, Reason.JOKER_RETRIEVAL_FORBIDDEN),
    # A joker moves within its run.
    (ALONG_ITS_RUN, {MODE: FREE}, None),
    (ALONG_ITS_RUN, {MODE: LOCKED}, Reason.JOKER_RETURNED_TO_SAME_MELD),
    (ALONG_ITS_RUN, {MODE: LOCKED, SAME_MELD: JokerRetrievalSameMeld.ALLOWED}, None),
    # Two jokers go to a meld of the other kind, where one keeps its face.
    ("[R7 B7 J J] + {K7 K9} -> [R7 B7 K7] | [J J K9] ; {}", {MODE: OFF}, Reason.JOKER_RETRIEVAL_FORBIDDEN),
    # The run of a joker is dissolved.
    (DISSOLVED, {MODE: FREE}, None),
    (DISSOLVED, {MODE: REPLACE}, Reason.JOKER_NOT_REPLACED),
    (DISSOLVED, {MODE: LOCKED}, Reason.JOKER_MELD_LOCKED),
    # The tile that replaces it was on the table, or its copy was.
    (FROM_THE_TABLE, {MODE: REPLACE}, None),
    (FROM_THE_TABLE, {MODE: LOCKED}, None),
    (FROM_THE_TABLE, {MODE: REPLACE, SOURCE: RACK_ONLY}, Reason.JOKER_REPLACEMENT_NOT_FROM_RACK),
    (FROM_EITHER, {MODE: REPLACE, SOURCE: RACK_ONLY}, None),
    (FROM_EITHER, {MODE: LOCKED, SOURCE: RACK_ONLY}, None),
    # Each of two melds has the tiles that would unlock the other.
    (CIRCLE, {MODE: LOCKED}, Reason.JOKER_MELD_LOCKED),
    (CIRCLE, {MODE: REPLACE}, None),
    (CHAIN, {MODE: LOCKED}, None),
    (CHAIN, {MODE: LOCKED, SOURCE: RACK_ONLY}, Reason.JOKER_REPLACEMENT_NOT_FROM_RACK),
    # One of two jokers of a meld is replaced.
    ("[J R4 R5 J] + {R6 K1 K2} -> [J R4 R5 R6] | [K1 K2 J] ; {}", {MODE: LOCKED}, None),
    (REPLACED_ELSEWHERE, {MODE: LOCKED}, Reason.JOKER_MELD_LOCKED),
    (REPLACED_ELSEWHERE, {MODE: REPLACE}, None),
    # A group of three.
    (ONE_COLOR, {MODE: REPLACE}, None),
    (ONE_COLOR, {MODE: REPLACE, GROUP_OF_THREE: BOTH_COLORS}, Reason.JOKER_GROUP_NEEDS_BOTH_COLORS),
    (TWO_COLORS, {MODE: REPLACE, GROUP_OF_THREE: BOTH_COLORS}, None),
    (TWO_COLORS, {MODE: LOCKED, SOURCE: RACK_ONLY, GROUP_OF_THREE: BOTH_COLORS}, None),
    # The end of a run.
    (END_OF_RUN, {MODE: REPLACE}, Reason.JOKER_NOT_REPLACED),
    (END_OF_RUN, {MODE: REPLACE, END_OF_RUN_FREE: True}, None),
    (END_OF_RUN, {MODE: LOCKED, END_OF_RUN_FREE: True}, None),
    # A meld of the table is no new meld, but its copy from the rack is.
    (TO_THE_TABLE, {REUSE: NEW_MELD}, Reason.JOKER_NOT_IN_NEW_MELD),
    (TO_ONE_RACK_TILE, {REUSE: ALL_RACK}, Reason.JOKER_REUSE_NEEDS_RACK_ONLY),
    (TO_THE_COPY, {REUSE: NEW_MELD}, None),
    (TO_THE_COPY, {REUSE: ALL_RACK}, None),
    (TO_ONE_RACK_TILE, {REUSE: NEW_MELD}, None),
    (TO_ONE_RACK_TILE, {REUSE: TWO_RACK_TILES}, Reason.JOKER_REUSE_NEEDS_TWO_RACK_TILES),
    # A joker that was not replaced goes anywhere
    (PAST_ITS_START, {REUSE: NEW_MELD}, Reason.JOKER_NOT_IN_NEW_MELD),
    (PAST_ITS_START, {REUSE: IF_REPLACED}, None),
    (TO_THE_TABLE, {REUSE: IF_REPLACED}, Reason.JOKER_NOT_IN_NEW_MELD),
    (TO_THE_COPY, {REUSE: IF_REPLACED}, None),
    (ALONG_ITS_RUN, {REUSE: IF_REPLACED}, Reason.JOKER_NOT_IN_NEW_MELD),
    (ALONG_ITS_RUN, {REUSE: IF_REPLACED, SAME_MELD: FORBIDDEN}, Reason.JOKER_RETURNED_TO_SAME_MELD),
    # So does a joker that its meld could spare, although the tile of its face came later
    ("[B3 B4 B5 J] | [R1 R2 R3] + {B6} -> [B3 B4 B5 B6] | [R1 R2 R3 J] ; {}", {REUSE: IF_REPLACED}, None),
    ("[R5 B5 K5 J] | [R1 R2 R3] + {O5} -> [R5 B5 K5 O5] | [R1 R2 R3 J] ; {}", {REUSE: IF_REPLACED}, None),
    ("[B3 B4 J] | [R1 R2 R3] + {B2 B5} -> [B2 B3 B4 B5] | [R1 R2 R3 J] ; {}", {REUSE: IF_REPLACED}, None),
    ("[B3 B4 B5 J] + {B6} -> [B3 B4 B5 B6 J] ; {}", {REUSE: IF_REPLACED}, None),
    (
        "[B3 B4 J B6 B7] | [R1 R2 R3] + {B5} -> [B3 B4 B5 B6 B7] | [R1 R2 R3 J] ; {}",
        {REUSE: IF_REPLACED},
        Reason.JOKER_NOT_IN_NEW_MELD,
    ),
    (
        "[R5 B5 J] | [R1 R2 R3] + {K5} -> [R5 B5 K5] | [R1 R2 R3 J] ; {}",
        {REUSE: IF_REPLACED},
        Reason.JOKER_NOT_IN_NEW_MELD,
    ),
    # One tile is in a joker's place. The others were added beside it, so the meld could spare it
    ("[R5 B5 J] | [R1 R2 R3] + {K5 O5} -> [R5 B5 K5 O5] | [R1 R2 R3 J] ; {}", {REUSE: IF_REPLACED}, None),
    ("[R5 B5 J] | [R1 R2 R3] + {K5 J} -> [R5 B5 K5 J] | [R1 R2 R3 J] ; {}", {REUSE: IF_REPLACED}, None),
    ("[R5 B5 J] | [K5 O5 J] | [R1 R2 R3] + {R4} -> [R5 B5 K5 O5] | [R1 R2 R3 R4 J J] ; {}", {REUSE: IF_REPLACED}, None),
    (
        "group[R5 J J] | [R1 R2 R3] | [K1 K2 K3] + {B5 K5} -> [R5 B5 K5] | [R1 R2 R3 J] | [K1 K2 K3 J] ; {}",
        {REUSE: IF_REPLACED},
        Reason.JOKER_NOT_IN_NEW_MELD,
    ),
    # Jokers leave one after the other: each is asked by itself
    (
        "[R5 B5 J J] | [R1 R2 R3] | [K1 K2 K3] + {K5 O5} -> [R5 B5 K5 O5] | [R1 R2 R3 J] | [K1 K2 K3 J] ; {}",
        {REUSE: IF_REPLACED},
        None,
    ),
    (
        "[R5 B5 J J] | [R1 R2 R3] | [K1 K2 K3] + {K5} -> [R5 B5 K5] | [R1 R2 R3 J] | [K1 K2 K3 J] ; {}",
        {REUSE: IF_REPLACED},
        Reason.JOKER_NOT_IN_NEW_MELD,
    ),
    (
        "[B3 J B5 J] | [R1 R2 R3] | [K1 K2 K3] + {B1 B2 B4 B6 B7}"
        " -> [B1 B2 B3 B4 B5 B6 B7] | [R1 R2 R3 J] | [K1 K2 K3 J] ; {}",
        {REUSE: IF_REPLACED},
        None,
    ),
    (
        "[B3 J B5 J] | [R1 R2 R3] | [K1 K2 K3] + {B2 B4 B6 B7}"
        " -> [B2 B3 B4 B5 B6 B7] | [R1 R2 R3 J] | [K1 K2 K3 J] ; {}",
        {REUSE: IF_REPLACED},
        Reason.JOKER_NOT_IN_NEW_MELD,
    ),
    # A tile takes the place of one joker. If there are two, the player chooses which
    (
        "[B3 B4 J J] | [R1 R2 R3] + {B5 B6 K8 O8} -> [B3 B4 B5 B6] | [R1 R2 R3 J] | [K8 O8 J] ; {}",
        {REUSE: IF_REPLACED},
        None,
    ),
    (
        "[R5 B5 J J] | [R1 R2 R3] + {K5 O5 K8 O8} -> [R5 B5 K5 O5] | [R1 R2 R3 J] | [K8 O8 J] ; {}",
        {REUSE: IF_REPLACED},
        None,
    ),
    (
        "run[R5 J J] | [R1 R2 R3] + {R6 R7 K8 O8} -> [R5 R6 R7] | [R1 R2 R3 J] | [K8 O8 J] ; {}",
        {REUSE: IF_REPLACED},
        Reason.JOKER_NOT_IN_NEW_MELD,
    ),
    (
        "[B3 B4 J] | [J B6 B7] | [R1 R2 R3] + {B5 K8 O8} -> [B3 B4 B5 B6 B7] | [R1 R2 R3 J] | [K8 O8 J] ; {}",
        {REUSE: IF_REPLACED},
        None,
    ),
    (
        "[B3 B4 J] | [J B6 B7] | [R1 R2 R3] | [K1 K2 K3] + {B5} -> [B3 B4 B5 B6 B7] | [R1 R2 R3 J] | [K1 K2 K3 J] ; {}",
        {REUSE: IF_REPLACED},
        Reason.JOKER_NOT_IN_NEW_MELD,
    ),
    # A meld whose tiles are in different melds was taken apart, with its joker
    (
        "[B3 B4 J] | [R1 R2 R3] + {B5 B6 K3 O3} -> [B4 B5 B6] | [B3 K3 O3] | [R1 R2 R3 J] ; {}",
        {REUSE: IF_REPLACED},
        None,
    ),
    # Jokers are interchangeable: two may exchange positions.
    ("[B3 B4 J] | [R7 R8 J] + {R6 B2} -> [R6 R7 R8 J] | [B2 B3 B4 J] ; {}", {MODE: LOCKED}, None),
)


@pytest.mark.parametrize(("text", "options", "reason"), EXAMPLES)
def test_examples(text: str, options: dict[str, object], reason: Reason | None) -> None:
    ruleset = with_options(SABRA, options)
    case = case_of(text)
    assert legal_under_some_assignment(case.before, case.after, case.played, ruleset) == (reason is None)
    reasons = reasons_of(case.play(ruleset))
    assert reason in reasons if reason else reasons == ()


def test_of_three_missing_colors_one_is_enough() -> None:
    ruleset = with_options(SABRA, {MODE: REPLACE, GROUP_OF_THREE: BOTH_COLORS, "geometry_colors": 6})
    play = play_of("[R5 B5 K5 J] + *{O5 R1 R2} -> [R5 B5 K5 O5] | [R1 R2 J] ; {}", ruleset)
    assert reasons_of(play) == ()


def case_of(text: str) -> Case:
    play = parse_play(text)
    before, after = (
        tuple(_read(meld.tiles, meld.kind) for meld in melds_of(table))
        for table in (play.table_before, play.table_after)
    )
    return Case(before, after, play.rack_before)


def main() -> int:
    """Compares and reports. Returns 1 if there are disagreements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plays", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--show", type=int, default=1, help="how many disagreements end the comparison")
    arguments = parser.parse_args()
    console = Console()
    found = 0
    for text in compare(arguments.seed, arguments.plays):
        found += 1
        console.print(text, markup=False, highlight=False)
        if found == arguments.show:
            return 1
    console.print(f"{arguments.plays} plays compared, {found} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
