"""Turns where it matters which meld a tile or a joker came from: the rules have the last word on each.

Retrieval other than FREE, limits to manipulation, contracts and jokers for tiles that cannot be had are not a question
of faces. What the faces allow can only be too good, though. So this is branch and bound, the rules themselves
(engine.rules.judge) being asked at every step:

* The cheapest way to lay the tiles is looked for, whatever the rules. If it is no cheaper than the best turn known,
  there is nothing better; and if the rules allow it, it is that.
* If they do not, one of the claims (claims.py) is answered in each of its ways, and of each is asked the same.
* When all claims are answered, arrangements of what is left are built meld by meld, the lowest tile first.

It is exact, and may need a long time where many arrangements are as good and none is allowed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from engine.matching import unpaired
from engine.melds import Meld, MeldKind
from engine.retrieval import limits_retrieval
from engine.ruleset import Contract, Manipulation, Ruleset
from engine.solver.constraints import (
    Alternative,
    Constraint,
    ConstraintContext,
    SurvivalConstraint,
    branching_constraints,
    can_be_retrieved_in,
)
from engine.solver.few_tiles import best_small_turn, is_small
from engine.solver.initial_melds import without_meld
from engine.solver.meld_enumeration import possible_melds, useful_declarations
from engine.solver.problem import Problem
from engine.solver.restricted_problem import (
    NODES_PER_JUDGEMENT,
    Melds,
    RestrictedProblem,
    RestrictedTurn,
    keeps_contract,
    tiles_of,
)
from engine.solver.search import OutOfBudget
from engine.solver.solution import is_solvable_below, solve
from engine.tiles import JOKER, Tile, value_of

FEW_CHANGES = 2
"""Melds that are changed in the turns tried first."""


def is_restricted(table: Melds, ruleset: Ruleset) -> bool:
    """Whether the rules can forbid a turn although its melds are melds of the right tiles."""
    return (
        (limits_retrieval(ruleset) and any(JOKER in meld.tiles for meld in table))
        or not ruleset.jokers_beyond_physical
        or ruleset.manipulation is not Manipulation.FREE
        or ruleset.contract is not Contract.NONE
    )


def restricted_turns(restricted: RestrictedProblem, below: int) -> Iterator[RestrictedTurn]:
    """Allowed turns, each cheaper than the one before; the last one is the best."""
    problem, left = _within_contract(restricted.problem)
    restricted = replace(restricted, problem=problem)
    search = _by_partitions if is_small(restricted) else _by_branching
    for turn in search(restricted, below - left):
        yield replace(turn, cost=turn.cost + left)


def _by_partitions(restricted: RestrictedProblem, below: int) -> Iterator[RestrictedTurn]:
    """The best turn of few tiles; where that takes too many nodes, the turns of the search by claims."""
    with suppress(OutOfBudget):
        best = best_small_turn(restricted, below)
        if best:
            yield best
        return
    restricted.meter.count(0)
    yield from _by_branching(restricted, below)


def _by_branching(restricted: RestrictedProblem, below: int) -> Iterator[RestrictedTurn]:
    """Turns that change few melds first, each cheaper than the one before."""
    few = [
        frozenset(chosen)
        for size in range(FEW_CHANGES + 1)
        for chosen in combinations(sorted(restricted.changeable_places), size)
    ]
    for changed in dict.fromkeys([*few, restricted.changeable_places]):
        for melds, cost in _BranchAndBound(restricted, changed, below).turns():
            below = cost
            yield RestrictedTurn(cost, changed, melds)


def _within_contract(problem: Problem) -> tuple[Problem, int]:
    """The problem without tiles of the rack that no contract allows to be played, and what it costs to leave them.

    A contract is kept by each part of a meld that keeps it, down to a tile. A tile played lies in such a meld: those
    of the table can be no more than all that lie in others.
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
        rest: What is still to be laid.
        laid: The melds.
        places: Melds that may answer claims yet: each once for every claim.
        claims: The claims that are still to be answered.
    """

    remaining: Problem
    laid: Melds
    places: Melds
    constraints: tuple[Constraint, ...]


@dataclass
class _BranchAndBound:
    """Looks for the best turn that changes none but some melds.

    Attributes:
        guarded: What may be rearranged.
        changed: The places of the melds that may change.
        below: What a turn must cost less than: as much as the last one found.
    """

    restricted: RestrictedProblem
    changed: frozenset[int]
    below: int

    def turns(self) -> Iterator[tuple[Melds, int]]:
        """Allowed turns with what they cost, each cheaper than the one before."""
        yield from self._turns_of(_Branch(self._problem, self.restricted.initial_meld, (), ()), is_root=True)

    @cached_property
    def _problem(self) -> Problem:
        problem = self.restricted.problem_with(self.changed)
        return replace(problem, groups_of_must=self._limits_groups)

    @property
    def _limits_groups(self) -> bool:
        """Whether groups can have no more of a face than lie on the table, all of which may be used (SINGLE_COLOR)."""
        return self.restricted.problem.ruleset.contract is Contract.SINGLE_COLOR and not self._kept

    @cached_property
    def _kept(self) -> frozenset[int]:
        return self.restricted.all_places - self.changed

    def _turns_of(self, branch: _Branch, *, is_root: bool = False) -> Iterator[tuple[Melds, int]]:
        """The turns of a branch."""
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
        """The turns of a branch whose cheapest way is not allowed."""
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

    # Claims

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
        """A branch with those claims answered that have one answer alone."""
        while branch.constraints:
            self.restricted.meter.count()
            ways = list(self._children(branch))
            if len(ways) != 1:
                break
            (branch,) = ways
        return branch

    def _children(self, branch: _Branch) -> Iterator[_Branch]:
        """The ways to answer the next claim: by a meld that lies already, or by another."""
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
        """The branch with a tile of the rack that must be laid, unless one of its face is laid anyway."""
        t, remaining, available = alternative.played, branch.remaining, self.restricted.problem
        initial_meld = tiles_of(self.restricted.initial_meld)
        if t is None or available.must.get(t) or initial_meld[t] or remaining.may.get(t, 0) < available.may.get(t, 0):
            return branch
        one = Counter((t,))
        return replace(
            branch, remaining=replace(remaining, must=Counter(remaining.must) + one, may=Counter(remaining.may) - one)
        )

    def _may_be_retrievable(self, branch: _Branch) -> bool:
        """Whether the jokers may have come to their places, when all of them have one and all own tiles are played.

        Retrieval is a question of the melds with jokers and of what was played, whatever melds the other tiles form.
        The more was played, the less it forbids. So what it forbids here it forbids of the whole branch. But a joker is
        replaced in melds without jokers too, so NEW_SET_IF_REPLACED is not asked here.
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
        """All turns of a branch, meld by meld."""
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
        """The melds that can be laid, by their lowest numbered tile."""
        found: defaultdict[Tile, list[Meld]] = defaultdict(list)
        ruleset = self._problem.ruleset
        for meld in possible_melds(Counter(self._problem.must) + Counter(self._problem.may), ruleset):
            self.restricted.meter.count()
            found[_lowest(meld)] += [meld, *useful_declarations(meld, self.restricted.table, ruleset)]
        return {t: tuple(melds) for t, melds in found.items()}


def _with_meld(branch: _Branch, meld: Meld, places: Melds) -> _Branch:
    """A branch with one more meld, and where it may answer claims yet."""
    remaining = replace(
        without_meld(branch.remaining, meld), groups_of_must=False
    )  # tiles that groups may have may lie in it
    return replace(branch, remaining=remaining, laid=(*branch.laid, meld), places=branch.places + places)


def _unsatisfied_first(branch: _Branch, melds: Melds) -> _Branch:
    """A branch whose next claim is a meld's that was dissolved when some melds were laid, if any was.

    Of jokers that is not asked: as far as faces tell, one can lie in nearly any meld with a joker.
    """
    if not all(isinstance(constraint, SurvivalConstraint) for constraint in branch.constraints):
        return branch
    present = (*branch.places, *melds)
    choices = [
        [n for n, meld in enumerate(present) if constraint.is_satisfied_by(meld)] for constraint in branch.constraints
    ]
    for first in unpaired(choices)[:1]:
        constraints = branch.constraints
        return replace(branch, constraints=(constraints[first], *constraints[:first], *constraints[first + 1 :]))
    return branch


def _lowest(meld: Meld) -> Tile:
    return min(t for t in meld.tiles if t != JOKER)


@dataclass(frozen=True, slots=True)
class _Partial:
    """A part of an arrangement.

    Attributes:
        must: What must still be laid.
        may: What may.
        laid: The melds.
        room: The tiles of which melds against the contract can still be.
        cost: What the tiles cost that are left.
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
        """The tiles of which melds against the contract can be beside some melds: all such are of the table's tiles."""
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
