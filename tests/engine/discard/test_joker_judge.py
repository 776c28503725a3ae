"""Another judge agrees on random turns of American and International Rummikub."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Final

import pytest

from engine.discard.laying import TurnAtTable, Verdict, judge_foot, judge_turn
from engine.discard.presets import AMERICAN, INTERNATIONAL
from engine.discard.ruleset import Ruleset, WildRetrieval
from engine.discard.table import Opening, Table
from engine.tiles import FALSE_JOKER, JOKER, NATURALS, Tile, in_order
from oracles import joker_turns
from oracles.okey_101 import readings
from oracles.okey_hands import melds as all_melds

Meld = tuple[Tile, ...]
MELDS: Final = tuple(tuple(Tile(13 * color + value) for color, value in meld) for meld in all_melds(one_high=False))
GROUPS: Final = MELDS[: 13 * 5]
RULESETS: Final = (
    AMERICAN,
    INTERNATIONAL,
    INTERNATIONAL,
    replace(AMERICAN, run_one_high=True, opening_rises=True),
    replace(AMERICAN, wild_retrieval=WildRetrieval.TO_RACK),
)
REASONS: Final = {
    "CONCEALED_AFTER_OPENING",
    "FINISH_INVALID",
    "FINISH_NEEDS_DISCARD",
    "FOOT_NEEDS_LAY_OFF",
    "FOOT_NEEDS_OPEN_PLAYER",
    "JOKER_GROUP_NEEDS_BOTH_COLORS",
    "MELD_NOT_GROUP_NOR_RUN",
    "NOT_OPENED",
    "NO_RACK_TILE_PLAYED",
    "OKEY_TAKEN_BEFORE_OPENING",
    "OPENING_BELOW_THRESHOLD",
    "TABLE_MELD_CHANGED",
    "TAKEN_TILE_NOT_USED",
    "TILE_NOT_IN_RACK",
    "WILD_NOT_LAID",
}


class Draft:
    """A random turn in the making. What its step lays comes to the rack first, so that many steps are legal."""

    def __init__(self, rng: random.Random, ruleset: Ruleset) -> None:
        self.rng, self.ruleset = rng, ruleset
        self.left = Counter({**dict.fromkeys(NATURALS, 2), JOKER: 2})
        self.rack: list[Tile] = []
        self.table = [m for _ in range(rng.randrange(4)) if (m := self.meld(0.15)) and self.take(m)]
        if rng.random() < 0.6 and (meld := self.meld(1)) and self.take(meld):
            self.table.append(meld)
        self.after = list(self.table)

    def take(self, tiles: Meld) -> bool:
        """Takes tiles of the set if all are left."""
        if Counter(tiles) - self.left:
            return False
        self.left.subtract(tiles)
        return True

    def draw(self, tiles: Meld) -> bool:
        """Takes tiles of the set to the rack if all are left."""
        if is_there := self.take(tiles):
            self.rack += tiles
        return is_there

    def meld(self, jokers: float, size: int | None = None) -> Meld:
        """Returns a random meld, some of whose tiles are jokers."""
        melds = GROUPS if self.rng.random() < 0.4 else MELDS
        meld = list(self.rng.choice(melds)[: size or self.rng.choice((3, 3, 4, 5))])
        for place in self.rng.sample(range(len(meld)), self.rng.choice((1, 1, 2))):
            if self.rng.random() < jokers:
                meld[place] = JOKER
        return tuple(meld)

    def faces(self, meld: Meld) -> tuple[tuple[bool, dict[int, Tile]], ...]:
        """Returns, for each reading of a meld, whether it is a run, and the tile of each of its faces."""
        found: list[tuple[bool, dict[int, Tile]]] = []
        for (kind, number), places in readings(meld, JOKER, one_high=self.ruleset.run_one_high):
            faces = [13 * number + p % 13 + 1 if kind == "run" else 13 * p + number + 1 for p in places]
            found.append((kind == "run", dict(zip(faces, map(Tile, places.values()), strict=True))))
        return tuple(found)

    # Parts of a step

    def lay_new(self) -> None:
        """Lays a new meld."""
        meld = self.meld(self.rng.choice((0.05, 0.05, 0.05, 0.8)), 3 if self.rng.random() < 0.3 else None)
        if self.draw(meld):
            self.after.append(meld)

    def lay_off(self) -> None:
        """Lays a tile or two at an end of a run, or in a group."""
        for _ in range(self.rng.choice((1, 1, 2))):
            place = self.rng.randrange(len(self.table)) if self.table else None
            if place is None or not self.faces(self.after[place]):
                return
            is_run, faces = self.rng.choice(self.faces(self.after[place]))
            alike = range((min(faces) - 1) % 13 + 1, 53, 13)
            ends = (min(faces) - 1, max(faces) + 1) if is_run else alike
            face = self.rng.choice([Tile(t) for t in ends if 1 <= t <= 52 and t not in faces] or [NATURALS[0]])
            tile = JOKER if self.rng.random() < 0.25 else face
            if self.draw((tile,)):
                meld = self.after[place]
                self.after[place] = (tile, *meld) if is_run and face < min(faces) else (*meld, tile)

    def take_joker(self) -> None:
        """Lays the tile that a joker of the table stands for, and the joker in a new meld."""
        places = [place for place, meld in enumerate(self.after[: len(self.table)]) if JOKER in meld]
        if not places:
            return
        place = self.rng.choice(places)
        meld = self.after[place]
        is_run, faces = self.rng.choice(self.faces(meld) or ((False, {}),))
        stood = [face for face, t in faces.items() if t == JOKER]
        face = Tile(self.rng.choice(stood or [1]))
        if not stood or not self.draw((face,)):
            return
        at = sorted(faces).index(face) if is_run and len(faces) == len(meld) else meld.index(JOKER)
        meld = (*meld[:at], face, *meld[at + 1 :])
        if not is_run and len(meld) == 3 and self.rng.random() < 0.6:
            value = (face - 1) % 13 + 1
            others = [t for t in (Tile(13 * color + value) for color in range(4)) if t not in faces]
            meld = (*meld, *(t for t in others[:1] if self.draw((t,))))
        self.after[place] = meld
        self.lay_joker()

    def lay_joker(self) -> None:
        """Lays a joker, mostly in a new meld with tiles of the rack."""
        meld = self.meld(1, self.rng.choice((3, 3, 3, 4)))
        if self.rng.random() < 0.9 and JOKER in meld:
            at = meld.index(JOKER)
            if self.draw((*meld[:at], *meld[at + 1 :])):
                self.after.append(meld)
        elif self.rng.random() < 0.5:
            place = self.rng.randrange(len(self.after))
            self.after[place] = (*self.after[place], JOKER)

    # What is wrong with a step

    def append(self) -> None:
        """Adds a tile of the rack to a meld."""
        if self.after and self.rack:
            place = self.rng.randrange(len(self.after))
            self.after[place] = (*self.after[place], self.rng.choice(self.rack))

    def shorten(self) -> None:
        """Removes a tile of a meld."""
        if self.after:
            place = self.rng.randrange(len(self.after))
            at = self.rng.randrange(len(self.after[place]) or 1)
            self.after[place] = self.after[place][:at] + self.after[place][at + 1 :]

    def remove(self) -> None:
        """Removes a meld."""
        if self.after:
            self.after.pop(self.rng.randrange(len(self.after)))

    def swap(self) -> None:
        """Exchanges two tiles of melds."""
        places = [(i, j) for i, meld in enumerate(self.after) for j in range(len(meld))]
        if len(places) > 1:
            (i, j), (k, m) = self.rng.sample(places, 2)
            melds = [list(meld) for meld in self.after]
            melds[i][j], melds[k][m] = melds[k][m], melds[i][j]
            self.after = [tuple(meld) for meld in melds]

    def shuffle(self) -> None:
        """Lays the tiles of a meld in another order."""
        if self.after:
            place = self.rng.randrange(len(self.after))
            self.after[place] = tuple(self.rng.sample(self.after[place], len(self.after[place])))

    def replace_jokers(self) -> None:
        """Lays a tile of the rack in the place of all jokers of a meld, or a joker in that of a tile."""
        if self.after and self.rack:
            place, tile = self.rng.randrange(len(self.after)), self.rng.choice(self.rack)
            a, b = (JOKER, tile) if self.rng.random() < 0.5 else (tile, JOKER)
            self.after[place] = tuple(b if t == a else t for t in self.after[place])

    def lose(self) -> None:
        """Takes a tile of the rack away."""
        if len(self.rack) > 1:
            self.left[self.rack.pop(self.rng.randrange(len(self.rack)))] += 1

    def revert(self) -> None:
        """Leaves a meld of the table, or all of it, as it was."""
        if self.table and self.rng.random() < 0.6:
            place = self.rng.randrange(len(self.table))
            self.after[place : place + 1] = [self.table[place]]
        else:
            self.after = list(self.table)

    def forge(self) -> None:
        """Lays a tile of another game."""
        if self.after:
            self.after[-1] = (*self.after[-1][:-1], FALSE_JOKER)


PARTS: Final = (
    Draft.lay_new,
    Draft.lay_new,
    Draft.lay_off,
    Draft.lay_off,
    Draft.take_joker,
    Draft.take_joker,
)
FLAWS: Final = (
    Draft.append,
    Draft.shorten,
    Draft.remove,
    Draft.swap,
    Draft.shuffle,
    Draft.replace_jokers,
    Draft.lose,
    Draft.revert,
    Draft.forge,
)


def random_turn(rng: random.Random, ruleset: Ruleset) -> joker_turns.Turn:
    """Returns a turn that may be legal, or nearly so."""
    draft, is_foot = Draft(rng, ruleset), ruleset.concealed_wins and rng.random() < 0.4
    if rng.random() < 0.1:
        draft.draw((JOKER,))
    parts: list[Callable[[Draft], None]] = list(rng.choices(PARTS, k=rng.choice((1, 1, 2, 3))))
    opened = set(rng.sample((2, 3), rng.randrange(3))) | ({1} if rng.random() < (0.15 if is_foot else 0.6) else set())
    if is_foot:
        parts = [*rng.choices((Draft.lay_new, Draft.lay_off), k=rng.randrange(3)), Draft.lay_off, *parts[:1]]
    elif 1 not in opened and rng.random() < 0.8:
        parts = [*[Draft.lay_new] * rng.choice((1, 2, 2, 3)), *rng.choices(PARTS, k=rng.choice((0, 0, 0, 1)))]
    for part in parts:
        part(draft)
    used = list(draft.rack)
    more = rng.choice((0, 1, 1, 1, 1, 1, 2, 2)) if is_foot else rng.choice((0, 1, 2, 2, 3, 3, 4, 4, 5, 6))
    rest = list(draft.left.elements())
    draft.draw(tuple(rng.sample(rest, more)))
    kept = draft.rack[len(used) :]
    for flaw in rng.choices(FLAWS, k=rng.choice((0, 0, 0, 0, 0, 1, 2))):
        flaw(draft)
    owed = rng.choice(used if used and rng.random() < 0.8 else draft.rack or rest) if rng.random() < 0.2 else None
    owed = JOKER if JOKER in draft.rack and rng.random() < 0.2 else owed
    discard = rng.choice(kept if kept and rng.random() < 0.9 else draft.rack or rest)
    only_discards = not is_foot and rng.random() < 0.05
    openings = [(seat, rng.choice((30, 33, 50, 64))) for seat in rng.sample(sorted(opened), len(opened))]
    return joker_turns.Turn(
        seat=1,
        table=tuple(draft.table),
        openings=tuple(openings),
        rack=in_order(draft.rack or rest[:1]),
        owed=owed,
        after=None if only_discards else tuple(draft.after),
        discard=discard if is_foot or only_discards or rng.random() < 0.5 else None,
        is_foot=is_foot,
    )


def verdict_of(turn: joker_turns.Turn, ruleset: Ruleset) -> Verdict:
    """Returns the engine's verdict."""
    openings = tuple(Opening(seat, is_pairs=False, amount=amount) for seat, amount in turn.openings)
    table = Table(tuple(tuple(map(Tile, meld)) for meld in turn.table), openings)
    owed = None if turn.owed is None else Tile(turn.owed)
    before = TurnAtTable(turn.seat, JOKER, table, tuple(map(Tile, turn.rack)), owed)
    after = None if turn.after is None else tuple(tuple(map(Tile, meld)) for meld in turn.after)
    discard = None if turn.discard is None else Tile(turn.discard)
    if turn.is_foot:
        assert after is not None
        assert discard is not None
        return judge_foot(before, after, discard, ruleset)
    return judge_turn(before, after, discard, ruleset)


def rules_of(ruleset: Ruleset) -> joker_turns.Rules:
    """Returns the options for the other judge."""
    return joker_turns.Rules(
        one_high=ruleset.run_one_high,
        points=ruleset.opening_points,
        rises=ruleset.opening_rises,
        laid_at_once=ruleset.wild_retrieval is WildRetrieval.LAID_AT_ONCE,
    )


def kind_of(turn: joker_turns.Turn, verdict: Verdict) -> str:
    """Returns what a legal turn is."""
    if turn.is_foot:
        return "a Foot"
    if verdict.laid is None:
        return "a discard"
    if verdict.laid.opening:
        return "an opening"
    freed = joker_turns.jokers_freed(turn, rules_of(AMERICAN))
    return ("no joker taken", "a joker taken", "two jokers taken")[freed]


def check_turns(seed: int, number: int) -> tuple[Counter[str], Counter[str]]:
    """Compares the judges on random turns; returns how often each reason was met, and each kind of legal turns."""
    rng, met, legal = random.Random(seed), Counter[str](), Counter[str]()
    for _ in range(number):
        ruleset = rng.choice(RULESETS)
        turn, rules = random_turn(rng, ruleset), rules_of(ruleset)
        verdict = verdict_of(turn, ruleset)
        told = {one.reason.name for one in verdict.violations}
        assert (not told) == joker_turns.is_legal(turn, rules), (turn, ruleset, told)
        assert told == joker_turns.reasons(turn, rules), (turn, ruleset)
        met.update(told)
        if not told:
            legal[kind_of(turn, verdict)] += 1
        if verdict.laid:
            there, then = (*turn.rack, *chain(*turn.table)), (*verdict.laid.turn.rack, *chain(*(turn.after or ())))
            assert sorted(there) == sorted(then)
            assert verdict.laid.opening is None or verdict.laid.opening.amount == turn.total(rules)
    return met, legal


@pytest.mark.slow
@pytest.mark.unmeasured
def test_another_judge_agrees_on_random_turns_with_jokers() -> None:
    met, legal = check_turns(1, 4_000)
    assert set(met) == REASONS
    assert min(met.values()) >= 20, met
    assert 1_000 < legal.total() < 3_000
    kinds = {"a Foot", "a discard", "an opening", "no joker taken", "a joker taken", "two jokers taken"}
    assert set(legal) == kinds
    assert min(legal.values()) >= 5, legal


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 22))
def test_another_judge_agrees_on_many_random_turns_with_jokers(seed: int) -> None:
    check_turns(seed, 5_000)
