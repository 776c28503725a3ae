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

from engine.matching import unmatched
from engine.melds import Meld, MeldKind
from engine.retrieval import limits_retrieval
from engine.ruleset import Contract, Manipulation, Ruleset
from engine.solver.arrangement import best_lay, costs_less
from engine.solver.claims import Answer, Asked, Claim, LifeClaim, claims_of, may_be_retrieved_in
from engine.solver.few_tiles import are_few, best_of_few
from engine.solver.openings import helpful_readings, own_melds, without
from engine.solver.problem import Problem
from engine.solver.rearrangement import NODES_A_JUDGEMENT, Guarded, Melds, Rearranged, tiles_of
from engine.solver.search import OutOfBudget
from engine.tiles import JOKER, Tile, value_of
from engine.variants import CONTRACTS

FEW = 2
"""Melds that are changed in the turns tried first."""


def is_guarded(table: Melds, ruleset: Ruleset) -> bool:
    """Whether the rules can forbid a turn although its melds are melds of the right tiles."""
    return (
        (limits_retrieval(ruleset) and any(JOKER in meld.tiles for meld in table))
        or not ruleset.jokers_beyond_physical
        or ruleset.manipulation is not Manipulation.FREE
        or ruleset.contract is not Contract.NONE
    )


def rearrangements(guarded: Guarded, below: int) -> Iterator[Rearranged]:
    """Allowed turns, each cheaper than the one before; the last one is the best."""
    problem, left = _within_contract(guarded.problem)
    guarded = replace(guarded, problem=problem)
    search = _of_few if are_few(guarded) else _of_claims
    for turn in search(guarded, below - left):
        yield replace(turn, cost=turn.cost + left)


def _of_few(guarded: Guarded, below: int) -> Iterator[Rearranged]:
    """The best turn of few tiles; where that takes too many nodes, the turns of the search by claims."""
    with suppress(OutOfBudget):
        best = best_of_few(guarded, below)
        if best:
            yield best
        return
    guarded.meter.count(0)
    yield from _of_claims(guarded, below)


def _of_claims(guarded: Guarded, below: int) -> Iterator[Rearranged]:
    """Turns that change few melds first, each cheaper than the one before."""
    few = [frozenset(chosen) for size in range(FEW + 1) for chosen in combinations(sorted(guarded.places), size)]
    for changed in dict.fromkeys([*few, guarded.places]):
        for melds, cost in _Rearranging(guarded, changed, below).turns():
            below = cost
            yield Rearranged(cost, changed, melds)


def _within_contract(problem: Problem) -> tuple[Problem, int]:
    """The problem without tiles of the rack that no contract allows to be played, and what it costs to leave them.

    A contract is kept by each part of a meld that keeps it, down to a tile. A tile played lies in such a meld: those
    of the table can be no more than all that lie in others.
    """
    keeps = CONTRACTS.get(problem.ruleset.contract)
    if keeps is None:
        return problem, 0
    may = {t: n for t, n in problem.may.items() if t == JOKER or keeps(Meld((t,), MeldKind.RUN, value_of(t)))}
    left = sum(problem.cost((t,)) * count for t, count in problem.may.items() if t not in may)
    return replace(problem, may=may), left


@dataclass(frozen=True, slots=True)
class _Branch:
    """Turns that have some melds in common.

    Attributes:
        rest: What is still to be laid.
        laid: The melds.
        places: Melds that may answer claims yet: each once for every claim.
        claims: The claims that are still to be answered.
    """

    rest: Problem
    laid: Melds
    places: Melds
    claims: tuple[Claim, ...]


@dataclass
class _Rearranging:
    """Looks for the best turn that changes none but some melds.

    Attributes:
        guarded: What may be rearranged.
        changed: The places of the melds that may change.
        below: What a turn must cost less than: as much as the last one found.
    """

    guarded: Guarded
    changed: frozenset[int]
    below: int

    def turns(self) -> Iterator[tuple[Melds, int]]:
        """Allowed turns with what they cost, each cheaper than the one before."""
        yield from self._of(_Branch(self._problem, self.guarded.opening, (), ()), is_root=True)

    @cached_property
    def _problem(self) -> Problem:
        problem = self.guarded.problem_of(self.changed)
        return replace(problem, groups_of_must=self._are_groups_of_the_table)

    @property
    def _are_groups_of_the_table(self) -> bool:
        """Whether groups can have no more of a face than lie on the table, all of which may be used (SINGLE_COLOR)."""
        return self.guarded.problem.ruleset.contract is Contract.SINGLE_COLOR and not self._kept

    @cached_property
    def _kept(self) -> frozenset[int]:
        return self.guarded.everything - self.changed

    def _of(self, branch: _Branch, *, is_root: bool = False) -> Iterator[tuple[Melds, int]]:
        """The turns of a branch."""
        found = best_lay(branch.rest, self.guarded.meter, self.below)
        if found is None:
            return
        melds = (*branch.laid, *found.melds)
        if self._allows(melds):
            self.below = found.cost
            yield melds, found.cost
        elif self._can_be_retrieved(branch):
            yield from self._of_refused(self._with_claims(branch) if is_root else branch, found.melds)

    def _allows(self, melds: Melds) -> bool:
        self.guarded.meter.count(NODES_A_JUDGEMENT)
        return self.guarded.allows(melds, self._kept)

    def _of_refused(self, branch: _Branch, melds: Melds) -> Iterator[tuple[Melds, int]]:
        """The turns of a branch whose cheapest way is not allowed."""
        settled = self._settled(_unanswered_first(branch, melds))
        if settled.rest is not branch.rest:
            yield from self._of(settled)
        elif settled.claims:
            for way in self._ways(settled):
                yield from self._of_refused(way, melds) if way.rest is settled.rest else self._of(way)
        else:
            yield from self._built(settled)

    # Claims

    def _with_claims(self, branch: _Branch) -> _Branch:
        guarded, ruleset = self.guarded, self.guarded.problem.ruleset
        changed = guarded.melds_at(self.changed)
        claims = claims_of(Asked(guarded.table, changed, guarded.opening, guarded.own, ruleset, guarded.meter))
        lying = guarded.opening + guarded.melds_at(self._kept)
        places = tuple(meld for meld in lying for _ in range(claims[0].room_in(meld))) if claims else ()
        return replace(branch, places=places, claims=claims)

    def _settled(self, branch: _Branch) -> _Branch:
        """A branch with those claims answered that have one answer alone."""
        while branch.claims:
            self.guarded.meter.count()
            ways = list(self._ways(branch))
            if len(ways) != 1:
                break
            (branch,) = ways
        return branch

    def _ways(self, branch: _Branch) -> Iterator[_Branch]:
        """The ways to answer the next claim: by a meld that lies already, or by another."""
        claim, *others = branch.claims
        rest = replace(branch, claims=tuple(others))
        there = Counter(branch.rest.must) + Counter(branch.rest.may)
        for place in dict.fromkeys(branch.places):
            if claim.is_answered_by(place):
                places = list(branch.places)
                places.remove(place)
                yield replace(rest, places=tuple(places))
        for answer in claim.answers:
            if answer.meld is None:
                yield self._with_played(rest, answer)
            elif Counter(answer.meld.tiles) <= there:
                room = (answer.meld,) * (claim.room_in(answer.meld) - 1)
                yield self._with_played(_with_meld(rest, answer.meld, room), answer)

    def _with_played(self, branch: _Branch, answer: Answer) -> _Branch:
        """The branch with a tile of the rack that must be laid, unless one of its face is laid anyway."""
        t, rest, own = answer.played, branch.rest, self.guarded.problem
        opening = tiles_of(self.guarded.opening)
        if t is None or own.must.get(t) or opening[t] or rest.may.get(t, 0) < own.may.get(t, 0):
            return branch
        one = Counter((t,))
        return replace(branch, rest=replace(rest, must=Counter(rest.must) + one, may=Counter(rest.may) - one))

    def _can_be_retrieved(self, branch: _Branch) -> bool:
        """Whether the jokers may have come to their places, when all of them have one and all own tiles are played.

        Retrieval is a question of the melds with jokers and of what was played, whatever melds the other tiles form.
        The more was played, the less it forbids. So what it forbids here it forbids of the whole branch. But a joker is
        replaced in melds without jokers too, so NEW_SET_IF_REPLACED is not asked here.
        """
        guarded, ruleset = self.guarded, self.guarded.problem.ruleset
        melds = guarded.melds_at(self._kept) + branch.laid
        has_jokers = any(meld.joker_faces for meld in melds)
        if branch.rest.jokers or not (has_jokers and limits_retrieval(ruleset)):
            return True
        guarded.meter.count(NODES_A_JUDGEMENT)
        return may_be_retrieved_in(melds, guarded.table, guarded.own + tiles_of(guarded.opening), ruleset)

    # Meld by meld

    def _built(self, branch: _Branch) -> Iterator[tuple[Melds, int]]:
        """All turns of a branch, meld by meld."""
        rest = replace(branch.rest, groups_of_must=False)
        builder = _Builder(self.guarded, rest, self._by_lowest, self.below)
        room = builder.room_beside(self.guarded.melds_at(self._kept) + branch.laid)
        start = _Partial(Counter(branch.rest.must), Counter(branch.rest.may), branch.laid, room, 0)
        for melds, cost in builder.complete(start):
            if self._allows(melds):
                self.below = builder.below = cost
                yield melds, cost

    @cached_property
    def _by_lowest(self) -> Mapping[Tile, Melds]:
        """The melds that can be laid, by their lowest numbered tile."""
        found: defaultdict[Tile, list[Meld]] = defaultdict(list)
        ruleset = self._problem.ruleset
        for meld in own_melds(Counter(self._problem.must) + Counter(self._problem.may), ruleset):
            self.guarded.meter.count()
            found[_lowest(meld)] += [meld, *helpful_readings(meld, self.guarded.table, ruleset)]
        return {t: tuple(melds) for t, melds in found.items()}


def _with_meld(branch: _Branch, meld: Meld, places: Melds) -> _Branch:
    """A branch with one more meld, and where it may answer claims yet."""
    rest = replace(without(branch.rest, meld), groups_of_must=False)  # tiles that groups may have may lie in it
    return replace(branch, rest=rest, laid=(*branch.laid, meld), places=branch.places + places)


def _unanswered_first(branch: _Branch, melds: Melds) -> _Branch:
    """A branch whose next claim is a meld's that was dissolved when some melds were laid, if any was.

    Of jokers that is not asked: as far as faces tell, one can lie in nearly any meld with a joker.
    """
    if not all(isinstance(claim, LifeClaim) for claim in branch.claims):
        return branch
    lying = (*branch.places, *melds)
    choices = [[n for n, meld in enumerate(lying) if claim.is_answered_by(meld)] for claim in branch.claims]
    for first in unmatched(choices)[:1]:
        claims = branch.claims
        return replace(branch, claims=(claims[first], *claims[:first], *claims[first + 1 :]))
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

    guarded: Guarded
    problem: Problem
    melds: Mapping[Tile, Melds]
    below: int

    def room_beside(self, melds: Melds) -> Counter[Tile]:
        """The tiles of which melds against the contract can be beside some melds: all such are of the table's tiles."""
        return tiles_of(self.guarded.table) - tiles_of(tuple(meld for meld in melds if not self._keeps(meld)))

    def _keeps(self, meld: Meld) -> bool:
        keeps = CONTRACTS.get(self.problem.ruleset.contract)
        return keeps is None or keeps(meld)

    def complete(self, partial: _Partial) -> Iterator[tuple[Melds, int]]:
        """The ways to go on, with what they cost."""
        must, may = partial.must, partial.may
        left = [t for t in (*must, *may) if t != JOKER and must[t] + may[t]]
        if not left:
            cost = partial.cost + self.problem.cost((JOKER,)) * may[JOKER]
            if not must[JOKER] and cost < self.below:
                yield partial.laid, cost
            return
        self.guarded.meter.count()
        rest = replace(self.problem, must=must, may=may)
        if not costs_less(rest, self.guarded.meter, self.below - partial.cost):
            return
        lowest = min(left)
        for meld in self.melds.get(lowest, ()):
            tiles = Counter(meld.tiles)
            against = Counter[Tile]() if self._keeps(meld) else tiles
            if tiles <= must + may and against <= partial.room:
                laid, room = (*partial.laid, meld), partial.room - against
                yield from self.complete(_Partial(must - tiles, may - (tiles - must), laid, room, partial.cost))
        if not must[lowest]:
            without_it = Counter({t: count for t, count in may.items() if t != lowest})
            cost = partial.cost + self.problem.cost((lowest,)) * may[lowest]
            yield from self.complete(replace(partial, may=without_it, cost=cost))
