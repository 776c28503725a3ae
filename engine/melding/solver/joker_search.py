"""The search for rules and requirements that depend on where jokers are: it tracks every joker of a run.

It handles limits on jokers (jokers_max_per_meld, jokers_adjacent, jokers_may_lead), the points of an initial meld, and
tables without room for an unneeded joker. It has many more states than search.py, so it is used for these cases only.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import combinations_with_replacement, product
from typing import NamedTuple

from engine.melding.run_shape import run_shape
from engine.melding.solver.joker_rules import JokerRules, joker_rules
from engine.melding.solver.joker_transitions import (
    JokerTransition,
    OpenRun,
    Runs,
    extended_run,
    groups_for,
    is_complete,
    joker_transitions,
    new_run,
)
from engine.melding.solver.levels import Level, levels_of
from engine.melding.solver.problem import Problem, weight
from engine.melding.solver.search import COMBINATIONS_PER_NODE, Meter, crossings
from engine.tiles import JOKER, MAX_VALUE


@dataclass(frozen=True, slots=True)
class Requirement:
    """Requirements on all melds together.

    Attributes:
        points: The least points.
        joker_counts: Whether a joker counts the value it stands for, or nothing.
        single_meld: Whether there may be only one meld.
        needs_run: Whether one of the melds must be a run.
    """

    points: int = 0
    joker_counts: bool = True
    single_meld: bool = False
    needs_run: bool = False

    def is_met(self, points: int, *, has_run: bool) -> bool:
        """Returns whether points and kinds meet it; the search itself enforces single_meld."""
        return points >= self.points and (has_run or not self.needs_run)


NO_REQUIREMENT = Requirement()


class JokerState(NamedTuple):
    """A search state: open runs and ones set aside by color; has_run and melds are tracked only if required."""

    runs: tuple[Runs, ...]
    held: tuple[int, ...]
    has_run: bool
    melds: int


class PathStep(NamedTuple):
    """The transitions of all colors at a level, the jokers and number of its groups, and the previous step."""

    transitions: tuple[JokerTransition, ...]
    group_jokers: int
    groups: int
    previous: "PathStep | None"


@dataclass(frozen=True, slots=True)
class JokerPath:
    """A path through all levels, its cost including jokers, and its state at the seam."""

    cost: int
    start: JokerState
    steps: tuple[PathStep, ...]


@dataclass(frozen=True, slots=True)
class JokerProblem:
    """The input of the search: tiles by level, limits on jokers, and requirements."""

    problem: Problem
    levels: Sequence[Level]
    rules: JokerRules
    requirement: Requirement


def cheapest_with_jokers(
    problem: Problem, meter: Meter, requirement: Requirement = NO_REQUIREMENT, below: int | None = None
) -> JokerPath | None:
    """Returns the cheapest path that meets the requirement; None if none costs less than the limit."""
    search = JokerProblem(problem, levels_of(problem), joker_rules(problem.ruleset), requirement)
    best = None
    for start in _start_states(search, meter):
        if below is not None and below <= 0:
            return best
        found = _search_from(search, start, meter, below)
        if found:
            best, below = found, found.cost
    return best


def _start_states(search: JokerProblem, meter: Meter) -> Iterator[JokerState]:
    """Yields the open runs that may cross the seam; the fewest first."""
    problem, colors = search.problem, search.problem.ruleset.geometry_colors
    nothing = JokerState(((),) * colors, (0,) * colors, has_run=False, melds=0)
    if not run_shape(problem.ruleset).is_cyclic:
        yield nothing
        return
    kinds = _run_kinds(search.rules, problem.jokers)
    for crossing, _ in crossings(problem, search.levels, meter):
        choices = [combinations_with_replacement(kinds, count) for count in crossing]
        for runs in product(*choices):
            meter.count()
            yield nothing._replace(runs=runs)


def _run_kinds(rules: JokerRules, jokers: int) -> list[OpenRun]:
    """Returns every possible open run."""
    found: set[OpenRun] = set()
    runs = _within(jokers, (new_run(joker=joker, rules=rules) for joker in (False, True)))
    while runs - found:
        found |= runs
        runs = _within(jokers, (extended_run(run, joker=joker, rules=rules) for run in runs for joker in (False, True)))
    return sorted(found)


def _within(jokers: int, runs: Iterable[OpenRun | None]) -> set[OpenRun]:
    """Returns the runs that a number of jokers and one round of values allow."""
    return {run for run in runs if run and run.jokers <= jokers and run.naturals <= MAX_VALUE}


class _Node(NamedTuple):
    """A search node, ordered by cost, then by depth."""

    cost: int
    above: int
    order: int
    state: JokerState
    spent: int
    points: int
    step: PathStep | None

    @property
    def place(self) -> int:
        """Returns the index of the next level."""
        return -self.above


def _search_from(search: JokerProblem, start: JokerState, meter: Meter, below: int | None) -> JokerPath | None:
    queue = [_Node(0, 0, 0, start, 0, 0, None)]
    order = 0
    seen: dict[tuple[int, JokerState, int], int] = {}
    while queue:
        node = heappop(queue)
        if below is not None and node.cost >= below:
            return None
        if node.place > len(search.levels):
            return JokerPath(node.cost, start, _path_to(node.step))
        if node.place == len(search.levels):
            ended = _final_node(search, node, start)
            if ended:
                heappush(queue, ended)
            continue
        key = (node.place, node.state, node.spent)
        if seen.get(key, -1) >= node.points:
            continue
        seen[key] = node.points
        meter.count()
        for after in _successors(search, node, meter):
            order -= 1
            heappush(queue, after._replace(order=order))
    return None


def _final_node(search: JokerProblem, node: _Node, start: JokerState) -> _Node | None:
    """Returns a node behind the last level with the cost of unused jokers; None if it violates the requirement."""
    problem, left = search.problem, search.problem.jokers - node.spent
    ends = zip(node.state.runs, start.runs, strict=True)
    if (
        left > problem.may.get(JOKER, 0)
        or not search.requirement.is_met(node.points, has_run=node.state.has_run)
        or not all(_matches_start(end, begun, search.rules) for end, begun in ends)
    ):
        return None
    dearer = node.cost + left * weight(JOKER, problem.objective, problem.ruleset)
    return node._replace(cost=dearer, above=node.above - 1)


def _matches_start(end: Runs, begun: Runs, rules: JokerRules) -> bool:
    """Returns whether the open runs at the end are those that crossed the seam at the start, and complete ones."""
    over = Counter(end)
    over.subtract(begun)
    return all(count >= 0 and (not count or is_complete(run, rules)) for run, count in over.items())


def _path_to(step: PathStep | None) -> tuple[PathStep, ...]:
    found = []
    while step:
        found.append(step)
        step = step.previous
    return tuple(reversed(found))


def _successors(search: JokerProblem, node: _Node, meter: Meter) -> Iterator[_Node]:
    level, state, jokers = search.levels[node.place], node.state, search.problem.jokers - node.spent
    choices = [
        joker_transitions(open_runs, tiles, level.traits, jokers, search.rules)
        for open_runs, tiles in zip(zip(state.runs, state.held, strict=True), level.tiles, strict=True)
    ]
    seen = set()
    for number_of_steps, transitions in enumerate(product(*choices)):
        if number_of_steps % COMBINATIONS_PER_NODE == COMBINATIONS_PER_NODE - 1:
            meter.count()
        for step in _steps(transitions, jokers, search.rules, node.step):
            after = _after(search, node, step)
            if after and after[:-1] not in seen:
                seen.add(after[:-1])
                yield after


def _steps(
    transitions: tuple[JokerTransition, ...], jokers: int, rules: JokerRules, previous: PathStep | None
) -> Iterator[PathStep]:
    """Yields the steps that combine transitions of all colors with jokers in groups."""
    in_runs = sum([transition.jokers for transition in transitions])
    grouped = tuple([transition.grouped for transition in transitions])
    for in_groups in range(jokers - in_runs + 1 if any(grouped) else int(in_runs <= jokers)):
        number = groups_for(grouped, in_groups, rules)
        if number is not None:
            yield PathStep(transitions, in_groups, number, previous)


def _after(search: JokerProblem, node: _Node, step: PathStep) -> _Node | None:
    """Returns the node that a step leads to; None if it starts more melds than allowed."""
    level, requirement, transitions = search.levels[node.place], search.requirement, step.transitions
    left, grouped, naturals, jokers, begun, runs, held = zip(*transitions, strict=True)
    melds = node.state.melds + sum(begun) + step.groups if requirement.single_meld else 0
    if melds > 1:
        return None
    spent = step.group_jokers + sum(jokers)
    counting = sum(naturals) + sum(grouped) + (spent if requirement.joker_counts else 0)
    points = node.points + ((level.value - 1) % MAX_VALUE + 1) * counting
    has_run = requirement.needs_run and (node.state.has_run or any(begun))
    state = JokerState(runs, held, has_run=has_run, melds=melds)
    cost = node.cost + sum(left) * level.weight
    return _Node(cost, node.above - 1, 0, state, node.spent + spent, min(points, requirement.points), step)
