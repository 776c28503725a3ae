"""Finds the best turn by an integer program: an oracle for the solver. It shares no code with the solver.

This is the program of den Hertog and Hulshof ("Solving Rummikub Problems by Integer Linear Programming", 2006). It has
an integer variable for each kind of meld that tiles can form, and a constraint for each face: the melds contain it at
least as often as the table has it, and at most as often more as the rack has it. HiGHS solves it on one thread and
without a gap.

A kind of meld is a multiset of tiles that has some legal order. Melds that can be cut into two melds are omitted:
with unrestricted jokers, runs of three to five tiles suffice (and some of one numbered tile with more jokers). In an
initial meld points count, and one meld may have to meet conditions alone, so there runs of all lengths are kinds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import combinations, pairwise
from typing import Final, TypeAlias

import highspy
import numpy as np
import numpy.typing as npt

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.melds import Meld, MeldKind, ProposedMeld, read_meld
from engine.melding.ruleset import (
    SABRA,
    Contract,
    InitialMeldComparison,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSameTurnTablePlay,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameMeld,
    JokersAdjacent,
    JokersDeclaration,
    JokersMaxPerMeld,
    Manipulation,
    MeldOrder,
    Ruleset,
    RunWrap,
    with_options,
)
from engine.melding.run_shape import run_shape
from engine.melding.solver import Objective, best_turn, has_turn
from engine.notation import format_tiles
from engine.tiles import JOKER, Tile
from oracles.brute_force import Comparison, disagreements, existence_disagreements, report

Tiles: TypeAlias = tuple[Tile, ...]
Integers: TypeAlias = npt.NDArray[np.int64]

FACES = tuple(Tile(number) for number in range(1, 80))
"""Every face and the joker; the index of a face is its number minus one."""


def supports(situation: Situation) -> bool:
    """Returns whether the program models all rules of a situation: rules of plays, not of the origin of tiles."""
    ruleset = situation.ruleset
    return (
        ruleset.joker_retrieval_mode is JokerRetrievalMode.FREE
        and ruleset.joker_retrieval_reuse is JokerRetrievalReuse.ANY_MELD
        and ruleset.joker_retrieval_same_meld is JokerRetrievalSameMeld.ALLOWED
        and ruleset.manipulation is Manipulation.FREE
        and ruleset.contract is Contract.OFF
        and ruleset.jokers_beyond_physical
        and not situation.river
    )


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best turn.

    Attributes:
        worth: The worth of the tiles that leave the rack, by the objective.
        tiles: The tiles that leave the rack, ascending; another choice may be equally good.
        melds: The tiles of the melds on the table afterwards, each ascending; some may be joined to longer runs.
        kept: The most melds of the table that can stay unchanged; None if not requested.
    """

    worth: int
    tiles: Tiles
    melds: tuple[Tiles, ...]
    kept: int | None


# Kinds of melds


@dataclass(frozen=True, slots=True)
class Kind:
    """Tiles that form a meld in some order.

    Attributes:
        tiles: The tiles, ascending.
        kind: Group or run.
        points: The most points in any order; jokers count what they stand for.
        natural_points: The points of the numbered tiles.
    """

    tiles: Tiles
    kind: MeldKind
    points: int
    natural_points: int


@dataclass(frozen=True, slots=True)
class MeldRules:
    """The rules that define melds, with a limit on all jokers."""

    colors: int
    jokers: int
    last: int
    most: JokersMaxPerMeld
    adjacent: JokersAdjacent
    may_lead: bool

    def allows_order(self, order: Sequence[int | None]) -> bool:
        """Returns whether jokers (None) may have these places among values."""
        jokers = order.count(None)
        most = {
            JokersMaxPerMeld.UNLIMITED_WITH_ONE_NATURAL: len(order) - 1,
            JokersMaxPerMeld.ONE: min(1, len(order) - 1),
            JokersMaxPerMeld.TWO: min(2, len(order) - 1),
            JokersMaxPerMeld.NOT_MORE_THAN_NATURALS: len(order) // 2,
        }
        return jokers <= most[self.most] and (self.may_lead or order[0] is not None)

    def allows_run(self, order: Sequence[int | None]) -> bool:
        """Returns whether values and jokers may have these places in a run."""
        apart = self.adjacent is JokersAdjacent.FORBIDDEN
        return self.allows_order(order) and not (apart and (None, None) in pairwise(order))

    @property
    def is_unrestricted(self) -> bool:
        """Returns whether jokers may be anywhere."""
        return (
            self.most is JokersMaxPerMeld.UNLIMITED_WITH_ONE_NATURAL
            and self.adjacent is JokersAdjacent.ALLOWED
            and self.may_lead
        )


def meld_rules(ruleset: Ruleset, jokers: int) -> MeldRules:
    """Returns the rules of a ruleset that define melds."""
    return MeldRules(
        ruleset.geometry_colors,
        jokers,
        run_shape(ruleset).last,
        ruleset.jokers_max_per_meld,
        ruleset.jokers_adjacent,
        ruleset.jokers_may_lead,
    )


def kinds(rules: MeldRules) -> tuple[Kind, ...]:
    """Returns every kind of meld, each with its most points."""
    best: dict[tuple[MeldKind, Tiles], Kind] = {}
    for kind in (*_groups(rules), *_runs(rules, 13)):
        known = best.get((kind.kind, kind.tiles))
        if known is None or known.points < kind.points:
            best[kind.kind, kind.tiles] = kind
    return tuple(best.values())


def short_kinds(rules: MeldRules) -> tuple[Kind, ...]:
    """Returns kinds of melds from which all others can be composed, each multiset of tiles once."""
    longest = max(5, rules.jokers + 1) if rules.is_unrestricted else 13
    divisible = {kind.tiles for kind in _runs(rules, longest, divisible=True)}
    found = {kind.tiles: kind for kind in (*_groups(rules), *_runs(rules, longest)) if kind.tiles not in divisible}
    return tuple(found.values())


def _face(color: int, value: int) -> Tile:
    number = color * 13 + value
    return Tile(number + (number >= JOKER))


def _groups(rules: MeldRules) -> Iterator[Kind]:
    for value in range(1, 14):
        faces = [_face(color, value) for color in range(rules.colors)]
        for count in range(1, rules.colors + 1):
            for jokers in range(max(0, 3 - count), min(rules.jokers, rules.colors - count) + 1):
                if rules.allows_order([value] * count + [None] * jokers):
                    for naturals in combinations(faces, count):
                        tiles = tuple(sorted((*naturals, *(JOKER,) * jokers)))
                        yield Kind(tiles, MeldKind.GROUP, value * (count + jokers), value * count)


def _runs(rules: MeldRules, longest: int, *, divisible: bool = False) -> Iterator[Kind]:
    """Yields runs in each order of jokers, or only in orders that can be cut into two runs."""
    for values, order in _run_orders(rules.last, rules.jokers, longest):
        if rules.allows_run(order) and (not divisible or _can_be_cut(order, rules)):
            naturals = [value for value in order if value is not None]
            jokers = (JOKER,) * order.count(None)
            for color in range(rules.colors):
                tiles = tuple(sorted((*(_face(color, value) for value in naturals), *jokers)))
                yield Kind(tiles, MeldKind.RUN, sum(values), sum(naturals))


def _run_orders(last: int, jokers: int, longest: int) -> Iterator[tuple[list[int], list[int | None]]]:
    """Yields the values of a run, also with jokers in place of some."""
    for first in range(1, 14):
        for length in range(3, min(longest, last - first + 1) + 1):
            values = [(value - 1) % 13 + 1 for value in range(first, first + length)]
            for count in range(min(jokers, length - 1) + 1):
                for places in combinations(range(length), count):
                    yield values, [None if place in places else value for place, value in enumerate(values)]


def _can_be_cut(order: list[int | None], rules: MeldRules) -> bool:
    parts = ((order[:place], order[place:]) for place in range(3, len(order) - 2))
    return any(rules.allows_run(low) and rules.allows_run(high) for low, high in parts)


# The program


@dataclass(frozen=True, slots=True)
class Columns:
    """The variables: how often melds of given tiles are on the table afterwards.

    Attributes:
        tiles: The tiles of each meld.
        counts: How often each meld contains each face.
        uppers: The upper bound of each variable.
        is_own: Whether these melds belong to the initial meld.
        is_the_one: Whether it is the single meld of the initial meld that options refer to.
        points: The points of each in the initial meld.
        is_run: Whether each is a run.
        identities: For each the index of the group of equal melds of the table it belongs to, or -1.
    """

    tiles: list[Tiles]
    counts: Integers
    uppers: Integers
    is_own: bool
    is_single: bool
    points: Integers
    is_run: npt.NDArray[np.bool_]
    identities: Integers


def counts_of(tiles: Sequence[Tile]) -> Integers:
    """Returns how often tiles contain each face."""
    return np.bincount(np.asarray(tiles, dtype=np.int64), minlength=80)[1:]


@lru_cache(maxsize=24)
def _matrix(rules: MeldRules, *, short: bool) -> tuple[tuple[Kind, ...], npt.NDArray[np.int8]]:
    """Returns kinds, and how often each contains each face. Some rules have 100,000 kinds, so only a few are cached."""
    found = short_kinds(rules) if short else kinds(rules)
    return found, np.stack([counts_of(kind.tiles).astype(np.int8) for kind in found])


EXACTLY: Final = (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0))
"""The options of HiGHS for an exact solution."""


@dataclass
class IntegerProgram:
    """Solves situations one after the other, on one thread with one instance of HiGHS.

    Presolve makes half of all situations slightly faster, and some many times slower.
    """

    has_presolve: bool = False
    highs: highspy.Highs = field(default_factory=highspy.Highs)

    def __post_init__(self) -> None:
        for option, value in (*EXACTLY, ("presolve", "choose" if self.has_presolve else "off")):
            self.highs.setOptionValue(option, value)

    def best(
        self, situation: Situation, objective: Objective = Objective.MOST_TILES, *, keep: bool = False
    ) -> Optimum | None:
        """Returns the best turn, None if there is none. With `keep`, the one with the most untouched melds."""
        if not supports(situation):
            raise ValueError("the program lacks a rule of this situation")
        return _Program(situation, objective, keep).ask(self.highs)


@dataclass
class PublishedProgram:
    """The complete published program, for players who have melded; a benchmark, not an oracle.

    It has a variable for every kind of meld that the tile set can form (1,173 with two jokers), whatever tiles there
    are, and one for each face of the rack. `IntegerProgram` is the same program without irrelevant variables.
    """

    highs: highspy.Highs = field(default_factory=highspy.Highs)

    def __post_init__(self) -> None:
        for option, value in EXACTLY:
            self.highs.setOptionValue(option, value)

    def best(self, situation: Situation) -> Optimum | None:
        """Returns the turn that plays the most tiles, None if there is none."""
        if not (supports(situation) and situation.has_melded):
            raise ValueError("the program was published for players who have melded, by the default rules")
        sets, rows = _published_rows(meld_rules(situation.ruleset, situation.ruleset.geometry_jokers))
        lying, rack = counts_of([t for meld in situation.table for t in meld.tiles]), counts_of(situation.rack)
        played = np.repeat([0, 1], [len(sets), len(FACES)])
        uppers = np.concatenate([np.full(len(sets), situation.ruleset.geometry_copies), rack])
        uses = solved(self.highs, rows, (lying, lying), played, uppers)
        if uses is None or not uses @ played:
            return None
        assert np.all(rows @ uses == lying), "HiGHS broke a constraint"
        tiles = tuple(face for face, number in zip(FACES, uses[len(sets) :], strict=True) for _ in range(int(number)))
        melds = tuple(kind.tiles for kind, number in zip(sets, uses, strict=False) for _ in range(int(number)))
        return Optimum(len(tiles), tiles, melds, None)


@lru_cache(maxsize=4)
def _published_rows(rules: MeldRules) -> tuple[tuple[Kind, ...], Integers]:
    """Returns the kinds of melds, and for each face how often each has it minus how often it leaves the rack."""
    found, counts = _matrix(rules, short=True)
    return found, np.concatenate([counts.T.astype(np.int64), -np.eye(len(FACES), dtype=np.int64)], axis=1)


@dataclass
class _Program:
    """One situation as a program."""

    situation: Situation
    objective: Objective
    keep: bool

    def __post_init__(self) -> None:
        situation = self.situation
        ruleset = situation.ruleset
        allowed = ruleset.initial_meld_same_turn_table_play is InitialMeldSameTurnTablePlay.ALLOWED
        self.uses_table = situation.has_melded or allowed
        self.is_initial = not situation.has_melded
        lying = [t for meld in situation.table for t in meld.tiles] if self.uses_table else []
        self.lying, self.rack = counts_of(lying), counts_of(situation.rack)
        self.weights = _weights(self.objective, ruleset.score_joker_penalty)

    def ask(self, highs: highspy.Highs) -> Optimum | None:
        groups = [columns for columns in self._columns() if columns.tiles]
        if not groups:
            return None
        counts = np.concatenate([columns.counts for columns in groups])
        cost = counts @ self.weights
        if self.keep:
            kept = np.concatenate([columns.identities >= 0 for columns in groups])
            cost = cost * (len(self.situation.table) + 1) + kept
        rows, lower, upper = self._rows(groups, counts)
        uses = solved(highs, rows, (lower, upper), cost, np.concatenate([columns.uppers for columns in groups]))
        if uses is None:
            return None
        assert np.all(rows @ uses >= lower), "HiGHS broke a constraint"
        assert np.all(rows @ uses <= upper), "HiGHS broke a constraint"
        return self._optimum(groups, counts, uses)

    def _optimum(self, groups: list[Columns], counts: Integers, uses: Integers) -> Optimum | None:
        played = counts.T @ uses - self.lying
        if not played.sum():
            return None
        tiles = [tiles for columns in groups for tiles in columns.tiles]
        melds = tuple(meld for meld, number in zip(tiles, uses, strict=True) for _ in range(int(number)))
        kept = int(sum(uses[np.concatenate([columns.identities >= 0 for columns in groups])]))
        left = tuple(tuple(sorted(meld.tiles)) for meld in self.situation.table)
        return Optimum(
            worth=int(played @ self.weights),
            tiles=tuple(face for face, number in zip(FACES, played, strict=True) for _ in range(int(number))),
            melds=melds if self.uses_table else left + melds,
            kept=None if not self.keep else kept if self.uses_table else len(self.situation.table),
        )

    # Variables

    def _columns(self) -> Iterator[Columns]:
        identities = self._identities() if self.keep and self.uses_table else []
        if self.uses_table:
            yield self._of_kinds(short=True, is_own=False)
            yield self._kept_rows(identities, is_own=False)
        if self.is_initial:
            sets = self.situation.ruleset.initial_meld_count
            if sets is not InitialMeldCount.ONE_OR_MORE:
                yield self._of_kinds(short=False, is_own=True, is_single=True)
                yield self._kept_rows(identities, is_own=True, is_single=True)
            if sets is not InitialMeldCount.SINGLE_MELD:
                yield self._of_kinds(short=False, is_own=True)
                yield self._kept_rows(identities, is_own=True)

    def _of_kinds(self, *, short: bool, is_own: bool, is_single: bool = False) -> Columns:
        available = self.rack if is_own else self.lying + self.rack
        if is_own and self.situation.ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN:
            available = available.copy()
            available[JOKER - 1] = 0
        found, counts = _matrix(meld_rules(self.situation.ruleset, int(available[JOKER - 1])), short=short)
        chosen = np.flatnonzero(np.all(counts <= available.astype(np.int8), axis=1))
        zero = self.situation.ruleset.initial_meld_joker is InitialMeldJoker.ZERO
        points = np.array(
            [found[place].natural_points if zero else found[place].points for place in chosen], dtype=np.int64
        )
        is_run = np.array([found[place].kind is MeldKind.RUN for place in chosen], dtype=np.bool_)
        if is_single:
            may_be = self._may_be_the_one(points, is_run)
            chosen, points, is_run = chosen[may_be], points[may_be], is_run[may_be]
        return Columns(
            [found[place].tiles for place in chosen],
            counts[chosen].astype(np.int64),
            np.full(len(chosen), self.situation.ruleset.geometry_copies),
            is_own,
            is_single,
            points,
            is_run,
            np.full(len(chosen), -1),
        )

    def _kept_rows(self, identities: list[tuple[Meld, int]], *, is_own: bool, is_single: bool = False) -> Columns:
        """Returns the constraints on melds that stay unchanged."""
        joker = self.situation.ruleset.initial_meld_joker
        melds = [
            (number, meld, times)
            for number, (meld, times) in enumerate(identities)
            if not is_own
            or (
                np.all(counts_of(meld.tiles) <= self.rack)
                and not (joker is InitialMeldJoker.FORBIDDEN and JOKER in meld.tiles)
            )
        ]
        points = np.array([_points(meld, joker) for _, meld, _ in melds], dtype=np.int64)
        is_run = np.array([meld.kind is MeldKind.RUN for _, meld, _ in melds], dtype=np.bool_)
        if is_single:
            melds = [meld for meld, may in zip(melds, self._may_be_the_one(points, is_run), strict=True) if may]
            may_be = self._may_be_the_one(points, is_run)
            points, is_run = points[may_be], is_run[may_be]
        return Columns(
            [tuple(sorted(meld.tiles)) for _, meld, _ in melds],
            np.array([counts_of(meld.tiles) for _, meld, _ in melds], dtype=np.int64).reshape(-1, len(FACES)),
            np.array([times for _, _, times in melds], dtype=np.int64),
            is_own,
            is_single,
            points,
            is_run,
            np.array([number for number, _, _ in melds], dtype=np.int64),
        )

    def _identities(self) -> list[tuple[Meld, int]]:
        """Returns the distinct melds of the table with their counts."""
        found = Counter(_identity(meld) for meld in self.situation.table)
        first = {_identity(meld): meld for meld in self.situation.table}
        return [(first[identity], times) for identity, times in found.items()]

    # Constraints

    def _rows(self, groups: list[Columns], counts: Integers) -> tuple[Integers, Integers, Integers]:
        present = np.flatnonzero(self.lying + self.rack)
        own = np.concatenate([np.full(len(columns.tiles), columns.is_own) for columns in groups])
        rows = [counts[:, present].T]
        lower, upper = [self.lying[present]], [(self.lying + self.rack)[present]]
        if self.is_initial and self.uses_table:
            lying = np.flatnonzero(self.lying)
            rows.append(np.where(own, 0, counts[:, lying].T))
            lower.append(self.lying[lying])
            upper.append((self.lying + self.rack)[lying])
        for row, least, most in self._single_rows(groups, counts):
            rows.append(row.reshape(1, -1))
            lower.append(np.array([least]))
            upper.append(np.array([most]))
        return np.concatenate(rows), np.concatenate(lower), np.concatenate(upper)

    def _single_rows(self, groups: list[Columns], counts: Integers) -> Iterator[tuple[Integers, int, int]]:
        if not np.all(self.weights[self.rack > 0]):
            yield counts.sum(axis=1), int(self.lying.sum()) + 1, 10_000
        if self.is_initial:
            yield from self._initial_rows(groups)
        identities = np.concatenate([columns.identities for columns in groups])
        for number, (_, times) in enumerate(self._identities() if self.keep and self.uses_table else ()):
            yield (identities == number).astype(np.int64), 0, times

    def _initial_rows(self, groups: list[Columns]) -> Iterator[tuple[Integers, int, int]]:
        """Returns the constraints on the initial meld."""
        ruleset = self.situation.ruleset
        own = np.concatenate([np.full(len(columns.tiles), int(columns.is_own)) for columns in groups])
        yield own, 1, 10_000
        if ruleset.initial_meld_count is InitialMeldCount.ONE_OR_MORE:
            yield own * np.concatenate([columns.points for columns in groups]), self._least(), 100_000
        else:
            the_one = [np.full(len(columns.tiles), int(columns.is_single)) for columns in groups]
            yield np.concatenate(the_one), 1, 1
        if ruleset.initial_meld_required_kind is InitialMeldRequiredKind.RUN:
            yield own * np.concatenate([columns.is_run for columns in groups]), 1, 10_000

    def _least(self) -> int:
        ruleset = self.situation.ruleset
        more = ruleset.initial_meld_comparison is InitialMeldComparison.GREATER_THAN
        return ruleset.initial_meld_threshold + more

    def _may_be_the_one(self, points: Integers, is_run: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        ruleset = self.situation.ruleset
        single = ruleset.initial_meld_count is InitialMeldCount.SINGLE_MELD
        needs_run = single and ruleset.initial_meld_required_kind is InitialMeldRequiredKind.RUN
        return (points >= self._least()) & (is_run | (not needs_run))


@cache
def _weights(objective: Objective, joker_penalty: int) -> Integers:
    """Returns the worth of each face by an objective."""
    if objective is Objective.MOST_TILES:
        return np.ones(len(FACES), dtype=np.int64)
    return np.array([joker_penalty if t == JOKER else (t - 1 - (t > JOKER)) % 13 + 1 for t in FACES])


def _points(meld: Meld, joker: InitialMeldJoker) -> int:
    if joker is not InitialMeldJoker.ZERO:
        return meld.points
    return sum((t - 1 - (t > JOKER)) % 13 + 1 for t in meld.tiles if t != JOKER)


def _identity(meld: Meld) -> tuple[MeldKind, Tiles, tuple[Tiles, ...]]:
    """Returns the tiles of a run in order; for a group its tiles and the possible faces of its jokers."""
    if meld.kind is MeldKind.RUN:
        return meld.kind, meld.tiles, ()
    return meld.kind, tuple(sorted(meld.tiles)), tuple(sorted(meld.joker_faces))


def solved(
    highs: highspy.Highs, rows: Integers, bounds: tuple[Integers, Integers], cost: Integers, uppers: Integers
) -> Integers | None:
    """Returns the optimal values of the variables within bounds; None if the program is infeasible."""
    height, width = rows.shape
    column, index = np.nonzero(rows.T)
    starts = np.searchsorted(column, np.arange(width))
    highs.clearModel()
    highs.passModel(
        width,
        height,
        len(index),
        int(highspy.MatrixFormat.kColwise),
        int(highspy.ObjSense.kMaximize),
        0.0,
        cost.astype(np.float64),
        np.zeros(width),
        uppers.astype(np.float64),
        bounds[0].astype(np.float64),
        bounds[1].astype(np.float64),
        starts.astype(np.int32),
        index.astype(np.int32),
        rows.T[column, index].astype(np.float64),
        np.ones(width, dtype=np.int32),
    )
    highs.run()
    match highs.getModelStatus():
        case highspy.HighsModelStatus.kOptimal:
            values: Integers = np.rint(np.asarray(highs.getSolution().col_value)).astype(np.int64)
            return values
        case highspy.HighsModelStatus.kInfeasible | highspy.HighsModelStatus.kUnboundedOrInfeasible:
            return None
        case status:
            raise AssertionError(f"HiGHS found no answer: {status}")


# Comparison of the solver with the program


def compare(program: IntegerProgram, situation: Situation, objective: Objective, budget: Budget) -> Comparison:
    """Compares the solver with the program on a situation."""
    best, answer = program.best(situation, objective, keep=True), best_turn(situation, objective, budget)
    existence = has_turn(situation, budget)
    weights = _weights(objective, situation.ruleset.score_joker_penalty)
    worth = int(counts_of(answer.turn.tiles) @ weights) if answer.turn else None
    found = disagreements(situation, answer, worth, (best.worth, best.kept or 0) if best else None)
    found += existence_disagreements(existence, exists=best is not None)
    example = f"for instance {' | '.join(map(format_tiles, best.melds))}" if best else "no turn"
    return Comparison(report(situation, objective, found, example), answer, existence)


# Positions

WRITTEN: Final[dict[str, Sequence[object]]] = {
    "geometry_colors": (4, 4, 6),
    "geometry_copies": (2, 2, 3),
    "geometry_jokers": range(9),
    "geometry_jokers_per_player": (0, 0, 0, 1),
    "players_max": (4, 4, 6),
    "run_wrap": tuple(RunWrap),
    "jokers_max_per_meld": tuple(JokersMaxPerMeld),
    "jokers_adjacent": tuple(JokersAdjacent),
    "jokers_may_lead": (True, False),
    "jokers_declaration": tuple(JokersDeclaration),
    "meld_order": tuple(MeldOrder),
    "score_joker_penalty": (0, 5, 25, 30, 50),
    "initial_meld_threshold": (0, 20, 30, 40, 50),
    "initial_meld_comparison": tuple(InitialMeldComparison),
    "initial_meld_count": tuple(InitialMeldCount),
    "initial_meld_joker": tuple(InitialMeldJoker),
    "initial_meld_required_kind": tuple(InitialMeldRequiredKind),
    "initial_meld_same_turn_table_play": tuple(InitialMeldSameTurnTablePlay),
}
"""The options that the program models, with values for random rulesets."""


def random_rules(rng: random.Random) -> Ruleset:
    """Returns a ruleset that the program models: mostly the default one with some options changed."""
    options = rng.sample(sorted(WRITTEN), rng.choice((0, 1, 2, 4, 8)))
    chosen = {option: rng.choice(WRITTEN[option]) for option in options}
    if chosen.get("geometry_jokers_per_player"):
        chosen["geometry_jokers"] = 0
    return with_options(SABRA, chosen)


def random_situation(rng: random.Random, ruleset: Ruleset) -> Situation:
    """Returns melds and a rack drawn from the tile set; not from a game, but of every kind."""
    players = rng.randint(ruleset.players_min, ruleset.players_max)
    deck = Counter(ruleset.tiles(players))
    table: list[Meld] = []
    for _ in range(rng.choice((0, 3, 6, 10, 15, 20))):
        proposed = _drawn_meld(rng, ruleset, deck)
        meld = read_meld(proposed, ruleset) if proposed else None
        if isinstance(meld, Meld):
            table.append(meld)
            deck -= Counter(meld.tiles)
    left = sorted(deck.elements())
    rack = rng.sample(left, min(len(left), rng.choice((1, 3, 6, 10, 14, 20))))
    if deck[JOKER] and rng.random() < 0.2:
        rack = [*rack, *(JOKER,) * (deck[JOKER] - rack.count(JOKER))]
    return Situation(tuple(table), tuple(sorted(rack)), rng.random() < 0.7, ruleset)


def _drawn_meld(rng: random.Random, ruleset: Ruleset, deck: Counter[Tile]) -> ProposedMeld | None:
    """Returns tiles of a deck that may form a meld, with jokers for missing tiles and sometimes more."""
    color, value, colors = rng.randrange(ruleset.geometry_colors), rng.randint(1, 13), ruleset.geometry_colors
    is_run = rng.random() < 0.6
    if is_run:
        length = rng.choice((3, 3, 3, 4, 4, 5, 6, 7, 8, 13))
        faces = [_face(color, (step - 1) % 13 + 1) for step in range(value, value + length)]
    else:
        faces = [_face(other, value) for other in rng.sample(range(colors), rng.randint(3, colors))]
    tiles = tuple(face if deck[face] and rng.random() < 0.95 else JOKER for face in faces)
    if not Counter(tiles) <= deck:
        return None
    kind = MeldKind.RUN if is_run else MeldKind.GROUP
    declared = tuple(face for face, t in zip(faces, tiles, strict=True) if t == JOKER)
    return ProposedMeld(tiles, kind, declared if is_run or rng.random() < 0.2 else ())
