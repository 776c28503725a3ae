"""Finds the best turn by trying all plays, as an oracle for the solver under every ruleset; shares no code with it.

It tries every choice of rack tiles, every partition of these and the table's tiles into melds, and every order and
declaration of each meld, and compares the legal plays. It handles small positions, up to about twelve tiles.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, groupby, product
from typing import TypeAlias

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.melds import Meld, MeldKind, ProposedMeld, read_meld
from engine.melding.notation import format_table
from engine.melding.play import Play
from engine.melding.rules import judge
from engine.melding.ruleset import OPTIONS, JokerKinds, Ruleset, TurnDraw
from engine.melding.run_shape import run_shape
from engine.melding.solver import (
    BestTurn,
    Existence,
    LegalTurn,
    Objective,
    arrange,
    best_turn,
    count_best_turns,
    has_turn,
)
from engine.notation import format_rack
from engine.tiles import DOUBLE_JOKER, JOKER, JOKERS, Tile

Tiles: TypeAlias = tuple[Tile, ...]
Table: TypeAlias = tuple[ProposedMeld, ...]

MOST_PLAYS = 30_000
"""The most plays that are judged for one situation."""


MOST_MELDS = 250
"""The most melds that are tried for one situation with double jokers."""


class TooManyPlaysError(Exception):
    """A situation has too many plays to try all."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best turns.

    Attributes:
        worth: The worth of the tiles that leave the rack by the objective, minus those that come from the River.
        kept: The most melds of the table that such a turn leaves unchanged.
        choices: The tiles that leave the rack, ascending, for each best turn that plays different tiles.
        play: One of the turns that keep the most melds.
    """

    worth: int
    kept: int
    choices: frozenset[Tiles]
    play: Play


def best_by_force(situation: Situation, objective: Objective = Objective.MOST_TILES) -> Best | None:
    """Returns the best turns, None if there is no legal one. Raises TooManyPlaysError."""
    search = _Search(situation)
    by_worth = [(search.worth(attempt.left, attempt.river_index, objective), attempt) for attempt in search.attempts()]
    for worth, equal in groupby(sorted(by_worth, key=lambda pair: -pair[0]), key=lambda pair: pair[0]):
        legal = [(attempt, play) for _, attempt in equal for play in search.legal_plays(attempt)]
        if legal:
            best = max((play for _, play in legal), key=kept)
            return Best(worth, kept(best), frozenset(attempt.left for attempt, _ in legal), best)
    return None


def exists_by_force(situation: Situation) -> bool:
    """Returns whether any turn is legal. Raises TooManyPlaysError."""
    search = _Search(situation)
    return any(True for attempt in search.attempts() for _ in search.legal_plays(attempt))


def arranged_by_force(tiles: Tiles, ruleset: Ruleset) -> bool:
    """Returns whether all tiles can be partitioned into melds."""
    search = _Search(Situation((), tiles, has_melded=True, ruleset=ruleset))
    partitions = search.partitions(Counter(tiles)) if tiles else [()]
    return any(
        all(any(isinstance(read_meld(reading, ruleset), Meld) for reading in readings) for readings in melds)
        for melds in partitions
    )


def kept(play: Play) -> int:
    """Returns the number of melds of the table that a play leaves unchanged."""
    return len(play.kept_and_new[0])


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A set of tiles that might be played.

    Attributes:
        left: The tiles that leave the rack.
        river_index: The place of the pulled tile in the River, if any.
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

    def worth(self, tiles: Tiles, river_index: int | None, objective: Objective) -> int:
        """Returns the worth of the tiles that leave the rack, minus those that come to it from the River."""
        plunder = () if river_index is None else self.situation.river[river_index + 1 :]
        return self._worth(tiles, objective) - self._worth(plunder, objective)

    def _worth(self, tiles: Tiles, objective: Objective) -> int:
        if objective is Objective.MOST_TILES:
            return len(tiles)
        penalty = self.situation.ruleset.score_joker_penalty
        return sum(penalty if t in JOKERS else _value(t) for t in tiles)

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
        for melds in self.partitions(self.lying + Counter(attempt.left + pulled)):
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

    def partitions(self, tiles: Counter[Tile], least: int = 0) -> Iterator[tuple[tuple[ProposedMeld, ...], ...]]:
        """Yields every partition of tiles into melds, with all readings of each."""
        if not tiles.total():
            yield ()
            return
        first = min(tiles, key=lambda t: (t in JOKERS, t))
        for place, piece in enumerate(self.pieces_by_first[first]):
            if place >= least and piece <= tiles:
                rest = tiles - piece
                again = place if rest[first] else 0
                for others in self.partitions(rest, again):
                    yield (self.readings[_key(piece)], *others)

    @cached_property
    def readings(self) -> dict[Tiles, tuple[ProposedMeld, ...]]:
        """Returns every reading of tiles as a meld, by tiles."""
        everything = self.lying + Counter(self.situation.rack) + Counter(self.situation.river)
        found = defaultdict(list)
        ruleset = self.situation.ruleset
        plain = (*_runs(everything, ruleset), *_groups(everything, ruleset))
        for meld in (*plain, *_with_double_jokers(everything, ruleset)):
            found[_key(Counter(meld.tiles))].append(meld)
        if everything[DOUBLE_JOKER] and len(found) > MOST_MELDS:
            raise TooManyPlaysError
        return {tiles: tuple(melds) for tiles, melds in found.items()}

    @cached_property
    def pieces_by_first(self) -> dict[Tile, list[Counter[Tile]]]:
        """Returns the possible melds by their lowest numbered tile."""
        found = defaultdict(list)
        for tiles in self.readings:
            found[min(t for t in tiles if t not in JOKERS)].append(Counter(tiles))
        return defaultdict(list, found)


def _key(tiles: Counter[Tile]) -> Tiles:
    return tuple(sorted(tiles.elements()))


def _value(t: Tile) -> int:
    return (t - 1 - (t > JOKER)) % 13 + 1


def _face(color: int, value: int) -> Tile:
    number = color * 13 + value
    return Tile(number + (number >= JOKER))


def _runs(tiles: Counter[Tile], ruleset: Ruleset) -> Iterator[ProposedMeld]:
    last = run_shape(ruleset).last
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


def _with_double_jokers(tiles: Counter[Tile], ruleset: Ruleset) -> Iterator[ProposedMeld]:
    """Yields the melds with double jokers, each of which covers two places."""
    if not tiles[DOUBLE_JOKER]:
        return
    colors = range(ruleset.geometry_colors)
    for color, first in product(colors, range(1, 14)):
        for last in range(first + 2, 14):
            faces = [_face(color, value) for value in range(first, last + 1)]
            yield from (ProposedMeld(order, MeldKind.RUN) for order in _covers(faces, tiles) if DOUBLE_JOKER in order)
    for value, doubles, jokers in product(range(1, 14), range(1, tiles[DOUBLE_JOKER] + 1), range(tiles[JOKER] + 1)):
        faces = [face for color in colors if tiles[face := _face(color, value)]]
        room = len(colors) - 2 * doubles - jokers
        for count in range(max(1, 3 - doubles - jokers), min(len(faces), room) + 1):
            for naturals in combinations(faces, count):
                order = (*naturals, *(JOKER,) * jokers, *(DOUBLE_JOKER,) * doubles)
                yield ProposedMeld(order, MeldKind.GROUP)


def _covers(faces: Sequence[Tile], tiles: Counter[Tile], laid: Tiles = ()) -> Iterator[Tiles]:
    """Yields the melds that cover faces one after the other."""
    if not faces:
        if len(laid) > 2 and not JOKERS.issuperset(laid):
            yield laid
        return
    for t, places in ((faces[0], 1), (JOKER, 1), (DOUBLE_JOKER, 2)):
        if places <= len(faces) and laid.count(t) < tiles[t]:
            yield from _covers(faces[places:], tiles, (*laid, t))


# Comparison of the solver with the rules


def faults(situation: Situation, turn: LegalTurn) -> Iterator[str]:
    """Yields the faults of a suggested turn, by the rules and in its own description."""
    search = _Search(situation)
    table = tuple(as_sent(meld) for meld in turn.table)
    play = search.play(table, turn.river_index)
    judgement = judge(play)
    yield from (f"illegal: {violation}" for violation in judgement.violations)
    left = tuple(sorted((Counter(judgement.tiles_played) - Counter(play.pulled[:1])).elements()))
    if left != turn.tiles:
        yield f"says that {turn.tiles} leave the rack, and {left} do"
    untouched = tuple(situation.table[place] for place in turn.untouched)
    if list(turn.untouched) != sorted(set(turn.untouched)) or turn.table[: len(untouched)] != untouched:
        yield f"the untouched melds {turn.untouched} do not lie first, in their order"
    if not judgement.violations and kept(play) != len(untouched):
        yield f"says that {len(untouched)} melds are untouched, and {kept(play)} are"


def as_sent(meld: Meld) -> ProposedMeld:
    """Returns a meld as a player sends it: with its kind, and with joker faces if each joker has exactly one."""
    declared = meld.joker_faces and all(len(faces) == 1 for faces in meld.joker_faces)
    return ProposedMeld(meld.tiles, meld.kind, tuple(faces[0] for faces in meld.joker_faces) if declared else ())


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of the solver with an oracle.

    Attributes:
        fault: Both answers if they disagree; else empty.
        best: The solver's answer.
        existence: The solver's answer whether any turn exists.
    """

    fault: str
    best: BestTurn
    existence: Existence


def compare(situation: Situation, objective: Objective, budget: Budget) -> Comparison:
    """Compares the solver with brute force on a situation. Raises TooManyPlaysError."""
    best, answer = best_by_force(situation, objective), best_turn(situation, objective, budget)
    existence = has_turn(situation, budget)
    count = count_best_turns(situation, objective, budget=budget)
    turn = answer.turn
    worth = _Search(situation).worth(turn.tiles, turn.river_index, objective) if turn else None
    found = disagreements(situation, answer, worth, (best.worth, best.kept) if best else None)
    found += existence_disagreements(existence, exists=best is not None)
    choices = min(len(best.choices), 100) if best else 0
    if (count.is_exact and count.number != choices) or count.number > choices:
        found.append(f"best turns: {count.number}, but there are {choices}")
    example = f"for instance {format_table(best.play.table_after)}" if best else "no turn"
    return Comparison(report(situation, objective, found, example), answer, existence)


def disagreements(situation: Situation, answer: BestTurn, worth: int | None, best: tuple[int, int] | None) -> list[str]:
    """Yields the faults of the solver's answer, given its worth and the worth and kept melds of the best turn."""
    found = list(faults(situation, answer.turn)) if answer.turn else []
    least = best[0] if best else None
    if worth is not None and (least is None or worth > least):
        found.append(f"worth {worth}, but the best is {least}")
    if worth is None and best is None:
        return found
    if answer.is_proven and worth != least:
        found.append(f"proven {worth}, but the best is {least}")
    if answer.turn and best and worth == least:
        untouched = len(answer.turn.untouched)
        if untouched > best[1] or (answer.is_least_change and untouched < best[1]):
            found.append(f"untouched {untouched}, but {best[1]} can be")
    return found


def existence_disagreements(existence: Existence, *, exists: bool) -> list[str]:
    """Yields the faults of the solver's answer whether a turn exists."""
    is_wrong = existence is (Existence.NO if exists else Existence.YES)
    return [f"says {existence.name} of whether a turn exists"] if is_wrong else []


def report(situation: Situation, objective: Objective, found: Sequence[str], example: str) -> str:
    """Returns disagreements with the situation and the oracle's answer; empty if there are none."""
    return "\n  ".join([text_of(situation, objective), *found, example]) if found else ""


def arrangement_fault(tiles: Tiles, ruleset: Ruleset, budget: Budget) -> str:
    """Returns the fault of the solver's arrangement of tiles; empty if there is none."""
    answer = arrange(tiles, ruleset, budget)
    can_be = arranged_by_force(tiles, ruleset)
    melds = format_table(answer.melds, ruleset=ruleset)
    said = f"{format_rack(tiles)} {_options(ruleset)}: {answer.exists.name} {melds}"
    if answer.exists is (Existence.NO if can_be else Existence.YES):
        return said
    laid = sorted(t for meld in answer.melds for t in meld.tiles)
    are_melds = all(read_meld(as_sent(meld), ruleset) == meld for meld in answer.melds)
    is_right = answer.exists is not Existence.YES or (are_melds and laid == sorted(tiles))
    return "" if is_right else said


def text_of(situation: Situation, objective: Objective) -> str:
    """Returns a situation as one line that can be parsed again."""
    seat = f"1{'*' * situation.has_melded}{format_rack(situation.rack)}"
    river = f" river {format_rack(situation.river)}" if situation.river else ""
    table = format_table(situation.table, ruleset=situation.ruleset)
    return f"{table} / {seat}{river} {objective.name} {_options(situation.ruleset)}"


def _options(ruleset: Ruleset) -> str:
    """Returns the options that differ from the default."""
    return " ".join(
        f"{option}={getattr(value, 'name', value)}"
        for option, row in OPTIONS.items()
        if (value := getattr(ruleset, option)) != row.default
    )


# Small positions


def small_situation(rng: random.Random, ruleset: Ruleset) -> Situation:
    """Returns a situation of few related tiles."""
    most_tiles = rng.choice((8, 11, 14))
    deck = _neighborhood(rng, ruleset)
    table: list[Meld] = []
    for _ in range(rng.randrange(4)):
        meld = _some_meld(rng, ruleset, deck)
        if meld and sum(len(other.tiles) for other in table) + len(meld.tiles) < most_tiles - 1:
            table.append(meld)
            deck -= Counter(meld.tiles)
    room = most_tiles - sum(len(meld.tiles) for meld in table)
    has_melded = bool(table) and rng.random() < 0.7
    with_river = ruleset.turn_draw is TurnDraw.TWO_RIVER
    tiles = rng.sample(sorted(deck.elements()), min(deck.total(), rng.randint(1, min(room, 6 if has_melded else 9))))
    pulled = rng.randint(0, min(3, len(tiles) - 1)) if with_river else 0
    rack, river = tuple(sorted(tiles[pulled:])), tuple(tiles[:pulled])
    return Situation(tuple(table), rack, has_melded, ruleset, river)


def _neighborhood(rng: random.Random, ruleset: Ruleset) -> Counter[Tile]:
    """Returns tiles of a few adjacent values, most of them high enough for an initial meld, and the jokers."""
    span, first = rng.randint(3, 6), rng.randint(1, 13)
    values = [(first + step - 1) % 13 + 1 for step in range(span)]
    faces = [_face(color, value) for color in range(ruleset.geometry_colors) for value in values]
    deck = Counter(dict.fromkeys(faces, ruleset.geometry_copies))
    jokers = ruleset.jokers(ruleset.players_max)
    deck[JOKER] = rng.randint(0, min(jokers, 3))
    if ruleset.joker_kinds is JokerKinds.TWIST:
        deck[DOUBLE_JOKER] = rng.randint(1, min(jokers, 3))
    return +deck


def _some_meld(rng: random.Random, ruleset: Ruleset, deck: Counter[Tile]) -> Meld | None:
    """Returns a meld of tiles of a deck, if one is found."""
    everything = [*_runs(deck, ruleset), *_groups(deck, ruleset), *_with_double_jokers(deck, ruleset)]
    rng.shuffle(everything)
    wanted = rng.random() < 0.4
    for proposed in sorted(everything[:40], key=lambda meld: JOKERS.isdisjoint(meld.tiles) is wanted):
        if len(proposed.tiles) <= 5:
            meld = read_meld(proposed, ruleset)
            if isinstance(meld, Meld):
                return meld
    return None
