"""The search for rules that depend on where a tile or joker came from; the rules themselves judge every turn.

Retrieval other than FREE, limits to manipulation, contracts and jokers for exhausted tiles do not depend on faces
alone. But the best turn by faces alone is a bound on the best legal turn. So this is branch and bound; each step calls
the rules (melding.rules.judge):

* Find the cheapest way to lay the tiles, ignoring the rules. If it is no cheaper than the best known turn, the branch
  has no better turn. If the rules allow it, it is the best turn of the branch.
* Otherwise branch over one of the constraints (constraints.py), and search each alternative in the same way.
* When all constraints are satisfied, build arrangements of the remaining tiles meld by meld, the lowest tile first.

The search is exact. It may take long if many arrangements are equally good and none is allowed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, islice

from engine.matching import unmatched
from engine.melding.melds import Meld, MeldKind
from engine.melding.retrieval import limits_retrieval
from engine.melding.ruleset import Contract, Manipulation, Ruleset
from engine.melding.solver.constraints import (
    Alternative,
    Constraint,
    ConstraintContext,
    SurvivalConstraint,
    branching_constraints,
    can_be_retrieved_in,
)
from engine.melding.solver.few_tiles import best_small_turn, is_small
from engine.melding.solver.initial_melds import without_meld
from engine.melding.solver.meld_enumeration import possible_melds, useful_declarations
from engine.melding.solver.problem import Problem
from engine.melding.solver.restricted_problem import (
    NODES_PER_JUDGEMENT,
    Melds,
    RestrictedProblem,
    RestrictedTurn,
    keeps_contract,
    tiles_of,
)
from engine.melding.solver.search import OutOfBudget
from engine.melding.solver.solution import is_solvable_below, solve
from engine.melding.table import have_joker
from engine.tiles import JOKER, Tile, value_of

FEW_CHANGES = 2
"""The most melds that change in the turns tried first."""


def is_restricted(table: Melds, ruleset: Ruleset) -> bool:
    """Returns whether the rules can forbid a turn although its melds are valid and consist of the right tiles."""
    return (
        (limits_retrieval(ruleset) and have_joker(table))
        or not ruleset.jokers_beyond_physical
        or ruleset.manipulation is not Manipulation.FREE
        or ruleset.contract is not Contract.OFF
    )


def restricted_turns(restricted: RestrictedProblem, below: int) -> Iterator[RestrictedTurn]:
    """Yields legal turns, each cheaper than the one before; the last one is the best."""
    problem, left = _within_contract(restricted.problem)
    restricted = replace(restricted, problem=problem)
    search = _by_partitions if is_small(restricted) else _by_branching
    for turn in search(restricted, below - left):
        yield replace(turn, cost=turn.cost + left)


def _by_partitions(restricted: RestrictedProblem, below: int) -> Iterator[RestrictedTurn]:
    """Yields the best turn of a small position; if that takes too many nodes, the turns found by branching."""
    with suppress(OutOfBudget):
        best = best_small_turn(restricted, below)
        if best:
            yield best
        return
    restricted.meter.count(0)
    yield from _by_branching(restricted, below)


def _by_branching(restricted: RestrictedProblem, below: int) -> Iterator[RestrictedTurn]:
    """Yields turns that change few melds first, each cheaper than the one before."""
    few = [
        frozenset(chosen)
        for size in range(FEW_CHANGES + 1)
        for chosen in combinations(sorted(restricted.changeable_places), size)
    ]
    for changed in dict.fromkeys([*few, restricted.changeable_places]):
        for melds, cost in _BranchAndBound(restricted, changed, below).turns():
            below = cost
            yield RestrictedTurn(cost, changed, melds, is_least_change=len(changed) <= FEW_CHANGES)


def _within_contract(problem: Problem) -> tuple[Problem, int]:
    """Returns the problem without rack tiles that no contract allows to play, and the cost of leaving them.

    If a meld keeps a contract, so does each part of it, down to a tile. A played tile ends in a meld that keeps the
    contract, because the other melds can only contain tiles of the table.
    """
    ruleset = problem.ruleset
    may = {t: n for t, n in problem.may.items() if t == JOKER or keeps_contract(_single_tile(t), ruleset)}
    if len(may) == len(problem.may):
        return problem, 0
    left = sum(problem.cost((t,)) * count for t, count in problem.may.items() if t not in may)
    return replace(problem, may=may), left


def _single_tile(t: Tile) -> Meld:
    return Meld((t,), MeldKind.RUN, value_of(t))


@dataclass(frozen=True, slots=True)
class _Branch:
    """Turns that have some melds in common.

    Attributes:
        remaining: The tiles still to be laid.
        laid: The common melds.
        places: Melds that may still satisfy constraints, each once per constraint.
        constraints: The constraints still to be satisfied.
    """

    remaining: Problem
    laid: Melds
    places: Melds
    constraints: tuple[Constraint, ...]


@dataclass
class _BranchAndBound:
    """Finds the best turn that changes only some melds.

    Attributes:
        restricted: What may be rearranged.
        changed: The places of the melds that may change.
        below: A turn must cost less than this: the cost of the last one found.
    """

    restricted: RestrictedProblem
    changed: frozenset[int]
    below: int

    def turns(self) -> Iterator[tuple[Melds, int]]:
        """Yields legal turns with their costs, each cheaper than the one before."""
        yield from self._turns_of(_Branch(self._problem, self.restricted.initial_meld, (), ()), is_root=True)

    @cached_property
    def _problem(self) -> Problem:
        problem = self.restricted.problem_with(self.changed)
        return replace(problem, groups_of_must=self._limits_groups)

    @property
    def _limits_groups(self) -> bool:
        """Returns whether groups can contain only faces of the table, all of which may be used (SINGLE_COLOR)."""
        return self.restricted.problem.ruleset.contract is Contract.SINGLE_COLOR and not self._kept

    @cached_property
    def _kept(self) -> frozenset[int]:
        return self.restricted.all_places - self.changed

    def _turns_of(self, branch: _Branch, *, is_root: bool = False) -> Iterator[tuple[Melds, int]]:
        """Yields the turns of a branch."""
        found = solve(branch.remaining, self.restricted.meter, self.below)
        if found is None:
            return
        melds = (*branch.laid, *found.melds)
        if self._is_legal(melds):
            self.below = found.cost
            yield melds, found.cost
        elif self._may_be_retrievable(branch):
            yield from self._turns_of_illegal(self._with_constraints(branch) if is_root else branch, found.melds)

    def _is_legal(self, melds: Melds) -> bool:
        self.restricted.meter.count(NODES_PER_JUDGEMENT)
        return self.restricted.is_legal(melds, self._kept)

    def _turns_of_illegal(self, branch: _Branch, melds: Melds) -> Iterator[tuple[Melds, int]]:
        """Yields the turns of a branch whose cheapest arrangement is illegal."""
        propagated = self._propagated(_unsatisfied_first(branch, melds))
        if propagated.remaining is not branch.remaining:
            yield from self._turns_of(propagated)
        elif propagated.constraints:
            for way in self._children(propagated):
                yield from (
                    self._turns_of_illegal(way, melds) if way.remaining is propagated.remaining else self._turns_of(way)
                )
        else:
            yield from self._built_turns(propagated)

    # Constraints

    def _with_constraints(self, branch: _Branch) -> _Branch:
        restricted, ruleset = self.restricted, self.restricted.problem.ruleset
        changed = restricted.melds_at(self.changed)
        constraints = branching_constraints(
            ConstraintContext(
                restricted.table, changed, restricted.initial_meld, restricted.available, ruleset, restricted.meter
            )
        )
        present = restricted.initial_meld + restricted.melds_at(self._kept)
        places = tuple(meld for meld in present for _ in range(constraints[0].capacity(meld))) if constraints else ()
        return replace(branch, places=places, constraints=constraints)

    def _propagated(self, branch: _Branch) -> _Branch:
        """Returns a branch after all constraints with a single alternative are satisfied."""
        while branch.constraints:
            self.restricted.meter.count()
            ways = list(islice(self._children(branch), 2))
            if len(ways) != 1:
                break
            (branch,) = ways
        return branch

    def _children(self, branch: _Branch) -> Iterator[_Branch]:
        """Yields the ways to satisfy the next constraint: by a meld that is present, or by another one."""
        constraint, *others = branch.constraints
        rest = replace(branch, constraints=tuple(others))
        for place in filter(constraint.is_satisfied_by, dict.fromkeys(branch.places)):
            places = list(branch.places)
            places.remove(place)
            yield replace(rest, places=tuple(places))
        tiles = Counter(branch.remaining.must) + Counter(branch.remaining.may)
        for alternative in constraint.alternatives:
            if alternative.meld is None:
                yield self._with_played(rest, alternative)
            elif Counter(alternative.meld.tiles) <= tiles:
                room = (alternative.meld,) * (constraint.capacity(alternative.meld) - 1)
                yield self._with_played(_with_meld(rest, alternative.meld, room), alternative)

    def _with_played(self, branch: _Branch, alternative: Alternative) -> _Branch:
        """Returns the branch with a rack tile that must be laid, unless one of its face is laid anyway."""
        t, remaining, available = alternative.played, branch.remaining, self.restricted.problem
        initial_meld = tiles_of(self.restricted.initial_meld)
        if t is None or available.must.get(t) or initial_meld[t] or remaining.may.get(t, 0) < available.may.get(t, 0):
            return branch
        one = Counter((t,))
        return replace(
            branch, remaining=replace(remaining, must=Counter(remaining.must) + one, may=Counter(remaining.may) - one)
        )

    def _may_be_retrievable(self, branch: _Branch) -> bool:
        """Returns whether retrieval allows the placed jokers, if all of them are placed and all rack tiles are played.

        Retrieval depends on the melds with jokers and on the played tiles only, and more played tiles never make it
        stricter. So if it fails here, it fails in the whole branch. NEW_MELD_IF_REPLACED is an exception, because
        jokers are also replaced in melds without jokers; it is not checked here.
        """
        restricted, ruleset = self.restricted, self.restricted.problem.ruleset
        melds = restricted.melds_at(self._kept) + branch.laid
        has_jokers = any(meld.joker_faces for meld in melds)
        if branch.remaining.jokers or not (has_jokers and limits_retrieval(ruleset)):
            return True
        restricted.meter.count(NODES_PER_JUDGEMENT)
        return can_be_retrieved_in(
            melds, restricted.table, restricted.available + tiles_of(restricted.initial_meld), ruleset
        )

    # Meld by meld

    def _built_turns(self, branch: _Branch) -> Iterator[tuple[Melds, int]]:
        """Yields all turns of a branch, built meld by meld."""
        remaining = replace(branch.remaining, groups_of_must=False)
        builder = _Builder(self.restricted, remaining, self._melds_by_lowest_tile, self.below)
        room = builder.room_beside(self.restricted.melds_at(self._kept) + branch.laid)
        start = _Partial(Counter(branch.remaining.must), Counter(branch.remaining.may), branch.laid, room, 0)
        for melds, cost in builder.complete(start):
            if self._is_legal(melds):
                self.below = builder.below = cost
                yield melds, cost

    @cached_property
    def _melds_by_lowest_tile(self) -> Mapping[Tile, Melds]:
        """Returns the possible melds by their lowest numbered tile."""
        found: defaultdict[Tile, list[Meld]] = defaultdict(list)
        ruleset = self._problem.ruleset
        for meld in possible_melds(Counter(self._problem.must) + Counter(self._problem.may), ruleset):
            self.restricted.meter.count()
            found[_lowest(meld)] += [meld, *useful_declarations(meld, self.restricted.table, ruleset)]
        return {t: tuple(melds) for t, melds in found.items()}


def _with_meld(branch: _Branch, meld: Meld, places: Melds) -> _Branch:
    """Returns a branch with one more meld and the places where it may satisfy constraints."""
    remaining = replace(
        without_meld(branch.remaining, meld), groups_of_must=False
    )  # the meld may contain tiles reserved for groups
    return replace(branch, remaining=remaining, laid=(*branch.laid, meld), places=branch.places + places)


def _unsatisfied_first(branch: _Branch, melds: Melds) -> _Branch:
    """Returns a branch whose next constraint is one that some melds violate because they dissolve an old meld, if any.

    Jokers are not checked: by faces alone, a joker fits in nearly any meld with a joker.
    """
    if not all(isinstance(constraint, SurvivalConstraint) for constraint in branch.constraints):
        return branch
    present = (*branch.places, *melds)
    choices = [
        [n for n, meld in enumerate(present) if constraint.is_satisfied_by(meld)] for constraint in branch.constraints
    ]
    for first in unmatched(choices)[:1]:
        constraints = branch.constraints
        return replace(branch, constraints=(constraints[first], *constraints[:first], *constraints[first + 1 :]))
    return branch


def _lowest(meld: Meld) -> Tile:
    return min(t for t in meld.tiles if t != JOKER)


@dataclass(frozen=True, slots=True)
class _Partial:
    """A partial arrangement.

    Attributes:
        must: The tiles that must still be laid.
        may: The tiles that may still be laid.
        laid: The melds.
        room: The tiles that melds against the contract may still use.
        cost: The cost of the tiles left.
    """

    must: Counter[Tile]
    may: Counter[Tile]
    laid: Melds
    room: Counter[Tile]
    cost: int


@dataclass
class _Builder:
    """Builds arrangements meld by meld."""

    restricted: RestrictedProblem
    problem: Problem
    melds: Mapping[Tile, Melds]
    below: int

    def room_beside(self, melds: Melds) -> Counter[Tile]:
        """Returns the tiles of the table that melds against the contract may use beside some melds."""
        return tiles_of(self.restricted.table) - tiles_of(
            tuple(meld for meld in melds if not keeps_contract(meld, self.problem.ruleset))
        )

    def complete(self, partial: _Partial) -> Iterator[tuple[Melds, int]]:
        """Yields the complete arrangements that extend a partial one, with their costs."""
        must, may = partial.must, partial.may
        left = {t for t in (*must, *may) if t != JOKER and must[t] + may[t]}
        if not left:
            yield from self._completed(partial)
        elif self._is_promising(partial):
            yield from self._with_next_meld(partial, min(left))
            yield from self._without_tile(partial, min(left))

    def _completed(self, partial: _Partial) -> Iterator[tuple[Melds, int]]:
        cost = partial.cost + self.problem.cost((JOKER,)) * partial.may[JOKER]
        if not partial.must[JOKER] and cost < self.below:
            yield partial.laid, cost

    def _is_promising(self, partial: _Partial) -> bool:
        """Returns whether the remaining tiles can be laid cheaply enough, if only faces count."""
        self.restricted.meter.count()
        remaining = replace(self.problem, must=partial.must, may=partial.may)
        return is_solvable_below(remaining, self.restricted.meter, self.below - partial.cost)

    def _with_next_meld(self, partial: _Partial, lowest: Tile) -> Iterator[tuple[Melds, int]]:
        """Yields the arrangements that lay the lowest tile in a meld."""
        must, may = partial.must, partial.may
        for meld in self.melds.get(lowest, ()):
            tiles = Counter(meld.tiles)
            violating = Counter[Tile]() if keeps_contract(meld, self.problem.ruleset) else tiles
            if tiles <= must + may and violating <= partial.room:
                laid, room = (*partial.laid, meld), partial.room - violating
                yield from self.complete(_Partial(must - tiles, may - (tiles - must), laid, room, partial.cost))

    def _without_tile(self, partial: _Partial, lowest: Tile) -> Iterator[tuple[Melds, int]]:
        """Yields the arrangements that leave the lowest tile on the rack."""
        if not partial.must[lowest]:
            may = Counter({t: count for t, count in partial.may.items() if t != lowest})
            cost = partial.cost + self.problem.cost((lowest,)) * partial.may[lowest]
            yield from self.complete(replace(partial, may=may, cost=cost))
