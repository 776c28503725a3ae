"""Turns where it matters which meld a tile or a joker came from: every arrangement in question is shown to the rules.

Retrieval other than FREE, limits to manipulation, contracts and jokers for tiles that cannot be had are not a question
of faces. The rules themselves (engine.rules.judge) decide here: arrangements are built meld by meld, the lowest tile
first, and given up as soon as what is left could not be laid more cheaply than in the best turn known, whatever the
rules. It is exact, and may need a long time where many arrangements are as good and none is allowed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from engine.melds import Meld
from engine.ruleset import (
    Contract,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameSet,
    Manipulation,
    Ruleset,
)
from engine.solver.arrangement import costs_less
from engine.solver.openings import helpful_readings, own_melds
from engine.solver.problem import Problem
from engine.solver.search import Meter
from engine.tiles import JOKER, Tile
from engine.variants import CONTRACTS

Melds = tuple[Meld, ...]
Allows = Callable[[Melds, frozenset[int]], bool]
"""Whether the rules allow the table of some new melds beside those of the old ones that did not change."""

FEW = 2
"""Melds that are changed in the turns tried first."""

NODES_A_JUDGEMENT = 16
"""States that could be looked at while the rules judge a turn."""


def is_guarded(table: Melds, ruleset: Ruleset) -> bool:
    """Whether the rules can forbid a turn although its melds are melds of the right tiles."""
    free_retrieval = (
        ruleset.joker_retrieval_mode is JokerRetrievalMode.FREE
        and ruleset.joker_retrieval_reuse is JokerRetrievalReuse.ANY_SET
        and ruleset.joker_retrieval_same_set is JokerRetrievalSameSet.ALLOWED
    )
    return (
        (not free_retrieval and any(JOKER in meld.tiles for meld in table))
        or not ruleset.jokers_beyond_physical
        or ruleset.manipulation is not Manipulation.FREE
        or ruleset.contract is not Contract.NONE
    )


@dataclass(frozen=True)
class Guarded:
    """What may be rearranged.

    Attributes:
        table: The melds in play.
        problem: The player's own tiles, the ruleset and the objective.
        allows: What the rules say.
        meter: The budget.
    """

    table: Melds
    problem: Problem
    allows: Allows
    meter: Meter


@dataclass(frozen=True, slots=True)
class Rearranged:
    """A turn: what it costs, which melds changed, and what there is instead of them."""

    cost: int
    changed: frozenset[int]
    melds: Melds


def rearrangements(guarded: Guarded, below: int) -> Iterator[Rearranged]:
    """Allowed turns, each cheaper than the one before; the last one is the best.

    The problem's tiles are the player's own; those of the melds that change are added to what must be laid.
    """
    everything = frozenset(range(len(guarded.table)))
    few = [frozenset(chosen) for size in range(FEW + 1) for chosen in combinations(sorted(everything), size)]
    for changed in dict.fromkeys([*few, everything]):
        for found in _of_changed(guarded, changed, below):
            below = found.cost
            yield found


def _of_changed(guarded: Guarded, changed: frozenset[int], below: int) -> Iterator[Rearranged]:
    laid = [t for place in sorted(changed) for t in guarded.table[place].tiles]
    problem = replace(guarded.problem, must=Counter(guarded.problem.must) + Counter(laid))
    if not costs_less(problem, guarded.meter, below):
        return
    kept = frozenset(range(len(guarded.table))) - changed
    builder = _Builder(guarded, problem, kept, _by_lowest(guarded, problem))
    builder.below = below
    for melds, cost in builder.complete(Counter(problem.must), Counter(problem.may), (), 0):
        guarded.meter.count(NODES_A_JUDGEMENT)
        if guarded.allows(melds, kept):
            builder.below = cost
            yield Rearranged(cost, changed, melds)


def _by_lowest(guarded: Guarded, problem: Problem) -> Mapping[Tile, Melds]:
    """The melds that can be laid, by their lowest numbered tile."""
    table = Counter(t for meld in guarded.table for t in meld.tiles)
    keeps = CONTRACTS.get(problem.ruleset.contract)
    found: defaultdict[Tile, list[Meld]] = defaultdict(list)
    for meld in own_melds(Counter(problem.must) + Counter(problem.may), problem.ruleset):
        guarded.meter.count()
        if keeps is None or keeps(meld) or Counter(meld.tiles) <= table:
            found[_lowest(meld)] += [meld, *helpful_readings(meld, guarded.table, problem.ruleset)]
    return {t: tuple(melds) for t, melds in found.items()}


def _lowest(meld: Meld) -> Tile:
    return min(t for t in meld.tiles if t != JOKER)


@dataclass
class _Builder:
    """Builds arrangements meld by meld."""

    guarded: Guarded
    problem: Problem
    kept: frozenset[int]
    melds: Mapping[Tile, Melds]
    below: int = 0

    def complete(self, must: Counter[Tile], may: Counter[Tile], laid: Melds, cost: int) -> Iterator[tuple[Melds, int]]:
        """The ways to go on from some melds, with what they cost."""
        left = [t for t in (*must, *may) if t != JOKER and must[t] + may[t]]
        if not left:
            cost += self.problem.cost((JOKER,)) * may[JOKER]
            if not must[JOKER] and cost < self.below:
                yield laid, cost
            return
        self.guarded.meter.count()
        rest = replace(self.problem, must=must, may=may)
        if not costs_less(rest, self.guarded.meter, self.below - cost):
            return
        lowest = min(left)
        there = must + may
        for meld in self.melds.get(lowest, ()):
            tiles = Counter(meld.tiles)
            if tiles <= there:
                of_may = tiles - must
                yield from self.complete(must - tiles, may - of_may, (*laid, meld), cost)
        if not must[lowest]:
            without = Counter({t: count for t, count in may.items() if t != lowest})
            yield from self.complete(must, without, laid, cost + self.problem.cost((lowest,)) * may[lowest])
