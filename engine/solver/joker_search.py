"""The search where it matters how jokers lie: each run is followed with the jokers in it, and every place is tried.

It answers what search.py cannot: rules that limit the jokers of a meld or where they lie (jokers_max_per_set,
jokers_adjacent, jokers_may_lead), points of an initial meld, and tables that have no place for a joker but one that is
not needed. It is the same search over the values with more states, so it is asked only then.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import combinations_with_replacement, product
from typing import NamedTuple

from engine.ruleset import JokersAdjacent, JokersMaxPerSet, Ruleset, RunWrap
from engine.solver.color_steps import Place, Tiles
from engine.solver.levels import Level, levels_of
from engine.solver.lines import Line, Melds, Run, melds_in_order, whole_runs
from engine.solver.problem import FACES, Problem, weight
from engine.solver.search import STEPS_A_NODE, Meter, crossings
from engine.tiles import JOKER, MAX_VALUE, Tile

MANY = 99
"""More jokers than there are."""


class JokerRules(NamedTuple):
    """How jokers may lie in a meld.

    Attributes:
        most: Jokers of a meld at most.
        balanced: Whether there may be no more jokers than numbered tiles.
        apart: Whether two jokers of a run may not be neighbors.
        leads: Whether a joker may be the first tile.
    """

    most: int
    balanced: bool
    apart: bool
    leads: bool


def joker_rules(ruleset: Ruleset) -> JokerRules:
    """How jokers may lie by a ruleset."""
    most = {JokersMaxPerSet.ONE: 1, JokersMaxPerSet.TWO: 2}.get(ruleset.jokers_max_per_set, MANY)
    return JokerRules(
        most,
        ruleset.jokers_max_per_set is JokersMaxPerSet.NOT_MORE_THAN_NATURALS,
        ruleset.jokers_adjacent is JokersAdjacent.FORBIDDEN,
        ruleset.jokers_may_lead,
    )


def are_free(ruleset: Ruleset) -> bool:
    """Whether jokers may lie in any way, beside a numbered tile at least."""
    return (
        ruleset.jokers_max_per_set is JokersMaxPerSet.UNLIMITED_WITH_ONE_NATURAL
        and ruleset.jokers_adjacent is JokersAdjacent.ALLOWED
        and ruleset.jokers_may_lead
    )


class OpenRun(NamedTuple):
    """A run that may go on: its length (3 for more), naturals and jokers as far as they matter, what lies last."""

    length: int
    naturals: int
    jokers: int
    ends_in_joker: bool


def _start(*, joker: bool, rules: JokerRules) -> OpenRun | None:
    if joker and not (rules.leads and rules.most):
        return None
    return _short(OpenRun(1, int(not joker), int(joker), joker), rules)


def _longer(run: OpenRun, *, joker: bool, rules: JokerRules) -> OpenRun | None:
    if joker and (run.jokers == rules.most or (rules.apart and run.ends_in_joker)):
        return None
    longer = OpenRun(run.length + 1, run.naturals + (not joker), run.jokers + joker, joker)
    return _short(longer, rules)


def _short(run: OpenRun, rules: JokerRules) -> OpenRun:
    """The run without what makes no difference to how it can go on."""
    if rules.balanced:
        common = min(run.naturals, run.jokers)
        naturals, jokers = run.naturals - common, run.jokers - common
    else:
        naturals, jokers = min(run.naturals, 1), run.jokers if rules.most < MANY else 0
    return OpenRun(min(run.length, 3), naturals, jokers, rules.apart and run.ends_in_joker)


def _is_complete(run: OpenRun, rules: JokerRules) -> bool:
    return run.length == 3 and (run.jokers == 0 if rules.balanced else run.naturals > 0)


Runs = tuple[OpenRun, ...]
"""The open runs of a color, ascending."""

Choice = tuple[str, ...]
"""What each open run gets: a numbered tile, a joker, or nothing."""
NATURAL, WILD, END = "natural", "joker", "end"


@lru_cache(maxsize=1 << 14)
def _extended(runs: Runs, naturals: int, jokers: int, rules: JokerRules) -> dict[Runs, tuple[Choice, int]]:
    """The open runs that can come of so many tiles, each with a way to it and the number of runs that begin."""
    found: dict[Runs, tuple[Choice, int]] = {}
    for choice, longer in _choices(runs, naturals, jokers, rules):
        new_naturals = naturals - choice.count(NATURAL)
        new_jokers = jokers - choice.count(WILD)
        starts = [_start(joker=False, rules=rules)] * new_naturals + [_start(joker=True, rules=rules)] * new_jokers
        if None not in starts:
            after = tuple(sorted((*longer, *(run for run in starts if run))))
            found.setdefault(after, (choice, new_naturals))
    return found


def _choices(runs: Runs, naturals: int, jokers: int, rules: JokerRules) -> Iterator[tuple[Choice, Runs]]:
    if not runs:
        yield (), ()
        return
    run, rest = runs[0], runs[1:]
    if _is_complete(run, rules):
        for choice, longer in _choices(rest, naturals, jokers, rules):
            yield (END, *choice), longer
    for kind, more in ((NATURAL, naturals), (WILD, jokers)):
        after = _longer(run, joker=kind == WILD, rules=rules) if more else None
        if after:
            left = (naturals - 1, jokers) if kind == NATURAL else (naturals, jokers - 1)
            for choice, longer in _choices(rest, *left, rules):
                yield (kind, *choice), (after, *longer)


class ColorStep(NamedTuple):
    """What is done with the tiles of a color and a value: see color_steps.Step; held is for after the 13."""

    left: int
    grouped: int
    naturals: int
    jokers: int
    begun: int
    runs: Runs
    held: int


@lru_cache(maxsize=1 << 15)
def _steps(
    open_runs: tuple[Runs, int], tiles: Tiles, place: Place, jokers: int, rules: JokerRules
) -> tuple[ColorStep, ...]:
    """All steps of a color, given its open runs and the ones set aside."""
    runs, held = open_runs
    must, may = (held, 0) if place.is_held else tiles[:2]
    found: dict[tuple[int, int, int, Runs, int], ColorStep] = {}
    for left in range(may + 1):
        used = must + may - left
        for aside in range(min(used, tiles[4]) + 1):
            now_held = aside if place.holds else 0 if place.is_held else held
            for grouped in range(used - aside + 1 if place.groups else 1):
                naturals = used - aside - grouped
                for spent in range(jokers + 1):
                    for after, (choice, _) in _extended(runs, naturals, spent, rules).items():
                        kept = _kept(after, tiles, place, jokers - spent, rules)
                        if kept is None:
                            continue
                        begun = naturals + spent - len(choice) + choice.count(END)
                        step = ColorStep(left, grouped, naturals, spent, begun, kept, now_held)
                        found.setdefault((left, grouped, spent, kept, now_held), step)
    return tuple(found.values())


def _kept(runs: Runs, tiles: Tiles, place: Place, jokers: int, rules: JokerRules) -> Runs | None:
    """The open runs that may go on; None if some must and cannot."""
    owed = [run for run in runs if not _is_complete(run, rules)]
    if place.after == 0:
        return None if owed else ()
    following, later = tiles[2:4]
    young = sum(run.length == 1 for run in owed)
    if (place.after == 1 and young) or len(owed) > following + jokers or young > later + jokers:
        return None
    return runs if following + jokers else ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What melds must be beside being melds.

    Attributes:
        points: What they must count.
        joker_counts: Whether a joker counts what it stands for, or nothing.
        one_meld: Whether it must be a single one.
        a_run: Whether one of them must be a run.
    """

    points: int = 0
    joker_counts: bool = True
    one_meld: bool = False
    a_run: bool = False


ANYTHING = Wanted()


class State(NamedTuple):
    """Open runs and ones set aside, a color each; whether there was a run yet; melds begun, if that is asked."""

    runs: tuple[Runs, ...]
    held: tuple[int, ...]
    has_run: bool
    melds: int


class Way(NamedTuple):
    """A step of all colors with the groups' jokers and number, and the way that led to it."""

    steps: tuple[ColorStep, ...]
    group_jokers: int
    groups: int
    before: "Way | None"


@dataclass(frozen=True, slots=True)
class FoundWithJokers:
    """A way through all values, what it costs (jokers too), where it began at the seam."""

    cost: int
    start: State
    ways: tuple[Way, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is searched for: tiles to lay, place by place, how jokers may lie, what is wanted beside."""

    problem: Problem
    levels: Sequence[Level]
    rules: JokerRules
    wanted: Wanted


def cheapest_with_jokers(
    problem: Problem, meter: Meter, wanted: Wanted = ANYTHING, below: int | None = None
) -> FoundWithJokers | None:
    """The cheapest way to lay all that must be laid as it is wanted; None if there is none, or none below a cost."""
    asked = Asked(problem, levels_of(problem), joker_rules(problem.ruleset), wanted)
    best = None
    for start in _starts(asked, meter):
        if below is not None and below <= 0:
            return best
        found = _from_start(asked, start, meter, below)
        if found:
            best, below = found, found.cost
    return best


def _starts(asked: Asked, meter: Meter) -> Iterator[State]:
    """The open runs that may cross the seam; the fewest first."""
    problem, colors = asked.problem, asked.problem.ruleset.geometry_colors
    nothing = State(((),) * colors, (0,) * colors, has_run=False, melds=0)
    if problem.ruleset.run_wrap is not RunWrap.CYCLIC:
        yield nothing
        return
    kinds = _run_kinds(asked.rules, problem.jokers)
    for crossing, _ in crossings(problem, asked.levels, meter):
        choices = [combinations_with_replacement(kinds, count) for count in crossing]
        for runs in product(*choices):
            meter.count()
            yield nothing._replace(runs=runs)


def _run_kinds(rules: JokerRules, jokers: int) -> list[OpenRun]:
    """Every open run that there can be."""
    found: set[OpenRun] = set()
    layer = {run for joker in (False, True) if (run := _start(joker=joker, rules=rules)) and (jokers or not joker)}
    while layer - found:
        found |= layer
        layer = {
            after
            for run in layer
            for joker in (False, True)
            if (after := _longer(run, joker=joker, rules=rules))
            and after.jokers <= jokers
            and after.naturals <= MAX_VALUE
        }
    return sorted(found)


class _Node(NamedTuple):
    """A state of the search, in the order in which states are looked at: the cheapest first, of equals the deepest."""

    cost: int
    above: int
    order: int
    state: State
    spent: int
    points: int
    way: Way | None

    @property
    def place(self) -> int:
        """The place that comes next."""
        return -self.above


def _from_start(asked: Asked, start: State, meter: Meter, below: int | None) -> FoundWithJokers | None:
    queue = [_Node(0, 0, 0, start, 0, 0, None)]
    order = 0
    seen: dict[tuple[int, State, int], int] = {}
    while queue:
        node = heappop(queue)
        if below is not None and node.cost >= below:
            return None
        if node.place > len(asked.levels):
            return FoundWithJokers(node.cost, start, _ways(node.way))
        if node.place == len(asked.levels):
            ended = _ended(asked, node, start)
            if ended:
                heappush(queue, ended)
            continue
        key = (node.place, node.state, node.spent)
        if seen.get(key, -1) >= node.points:
            continue
        seen[key] = node.points
        meter.count()
        for after in _successors(asked, node, meter):
            order -= 1
            heappush(queue, after._replace(order=order))
    return None


def _ended(asked: Asked, node: _Node, start: State) -> _Node | None:
    """A state behind the last place, with what the jokers cost that are left; None if it is not what is wanted."""
    problem, left = asked.problem, asked.problem.jokers - node.spent
    is_wanted = node.points >= asked.wanted.points and (node.state.has_run or not asked.wanted.a_run)
    if left > problem.may.get(JOKER, 0) or not is_wanted:
        return None
    if not all(_goes_on_as(end, begun, asked.rules) for end, begun in zip(node.state.runs, start.runs, strict=True)):
        return None
    dearer = node.cost + left * weight(JOKER, problem.objective, problem.ruleset)
    return node._replace(cost=dearer, above=node.above - 1)


def _goes_on_as(end: Runs, begun: Runs, rules: JokerRules) -> bool:
    """Whether the open runs at the end are those that crossed the seam at the start, and complete ones."""
    over = Counter(end)
    over.subtract(begun)
    return all(count >= 0 and (not count or _is_complete(run, rules)) for run, count in over.items())


def _ways(way: Way | None) -> tuple[Way, ...]:
    found = []
    while way:
        found.append(way)
        way = way.before
    return tuple(reversed(found))


def _successors(asked: Asked, node: _Node, meter: Meter) -> Iterator[_Node]:
    level, state, jokers = asked.levels[node.place], node.state, asked.problem.jokers - node.spent
    choices = [
        _steps(open_runs, tiles, level.place, jokers, asked.rules)
        for open_runs, tiles in zip(zip(state.runs, state.held, strict=True), level.tiles, strict=True)
    ]
    seen = set()
    for number_of_steps, steps in enumerate(product(*choices)):
        if number_of_steps % STEPS_A_NODE == STEPS_A_NODE - 1:
            meter.count()
        in_runs = sum(step.jokers for step in steps)
        grouped = tuple(step.grouped for step in steps)
        for in_groups in range(jokers - in_runs + 1 if any(grouped) else int(in_runs <= jokers)):
            number = groups_for(grouped, in_groups, asked.rules)
            after = None if number is None else _after(asked, node, Way(steps, in_groups, number, node.way))
            if after and after[:-1] not in seen:
                seen.add(after[:-1])
                yield after


def _after(asked: Asked, node: _Node, way: Way) -> _Node | None:
    """The state that a step leads to; None if it begins more melds than are wanted."""
    level, wanted, steps = asked.levels[node.place], asked.wanted, way.steps
    begun = sum(step.begun for step in steps)
    melds = node.state.melds + begun + way.groups if wanted.one_meld else 0
    if melds > 1:
        return None
    spent = way.group_jokers + sum(step.jokers for step in steps)
    naturals = sum(step.naturals + step.grouped for step in steps)
    value = (level.value - 1) % MAX_VALUE + 1
    points = node.points + value * (naturals + (spent if wanted.joker_counts else 0))
    state = State(
        tuple(step.runs for step in steps),
        tuple(step.held for step in steps),
        has_run=wanted.a_run and (node.state.has_run or begun > 0),
        melds=melds,
    )
    cost = node.cost + sum(step.left for step in steps) * level.weight
    return _Node(cost, node.above - 1, 0, state, node.spent + spent, min(points, wanted.points), way)


@lru_cache(maxsize=1 << 14)
def groups_for(grouped: tuple[int, ...], jokers: int, rules: JokerRules) -> int | None:
    """The fewest groups that can be made of so many tiles a color and so many jokers, all of them; None if impossible.

    Groups of like size need fewest jokers and have room for most, so no other sizes are tried.
    """
    total, colors = sum(grouped), len(grouped)
    if not total:
        return None if jokers else 0
    for number in range(max(*grouped, -(-(total + jokers) // colors)), (total + jokers) // 3 + 1):
        small, larger = divmod(total, number)
        sizes = [small + 1] * larger + [small] * (number - larger)
        least = [max(0, 3 - size) for size in sizes]
        most = [min(colors - size, rules.most, size if rules.balanced else MANY) for size in sizes]
        fits = all(low <= high for low, high in zip(least, most, strict=True))
        if small and fits and sum(least) <= jokers <= sum(most):
            return number
    return None


# Melds from a way


class _Line(Line):
    """A run as it grows, with what the search knows of it."""

    def __init__(self, first: int, state: OpenRun, *tiles: Tile) -> None:
        super().__init__(first, *tiles)
        self.state = state


def melds_of(found: FoundWithJokers, problem: Problem) -> Melds:
    """Kind and tiles of each meld, in a fixed order."""
    levels, rules = levels_of(problem), joker_rules(problem.ruleset)
    colors = range(problem.ruleset.geometry_colors)
    runs = [run.tiles for color in colors for run in _lines(found, levels, color, problem.ruleset)]
    groups = [group for level, way in zip(levels, found.ways, strict=True) for group in _groups(level, way, rules)]
    return melds_in_order(runs, groups)


def _groups(level: Level, way: Way, rules: JokerRules) -> list[tuple[Tile, ...]]:
    if not way.groups:
        return []
    faces = FACES[(level.value - 1) % MAX_VALUE]
    dealt = [face for face, step in zip(faces, way.steps, strict=False) for _ in range(step.grouped)]
    groups = [dealt[place :: way.groups] for place in range(way.groups)]
    for _ in range(way.group_jokers):
        _neediest(groups, len(way.steps), rules).append(JOKER)
    return list(map(tuple, groups))


def _neediest(groups: list[list[Tile]], colors: int, rules: JokerRules) -> list[Tile]:
    """The group with fewest tiles that may have one more joker."""

    def may(group: list[Tile]) -> bool:
        jokers = group.count(JOKER) + 1
        naturals = len(group) - jokers + 1
        return len(group) < colors and jokers <= rules.most and (naturals >= jokers or not rules.balanced)

    return min(filter(may, groups), key=len)


def _lines(found: FoundWithJokers, levels: Sequence[Level], color: int, ruleset: Ruleset) -> Iterator[Run]:
    rules = joker_rules(ruleset)
    crossing = [_Line(levels[0].value, run) for run in found.start.runs[color]]
    lines, done = list(crossing), []
    for level, way in zip(levels, found.ways, strict=True):
        lines, ended = _grown(lines, way.steps[color], level, color, rules)
        done += ended
    for state, line in zip(found.start.runs[color], crossing, strict=True):  # a line's own state has changed since
        line.before = next(before for before in lines if before.state == state)
        lines.remove(line.before)
    return whole_runs([*done, *lines], crossing, ruleset)


def _grown(
    lines: list[_Line], step: ColorStep, level: Level, color: int, rules: JokerRules
) -> tuple[list[_Line], list[_Line]]:
    """The lines after a step, as the search knows them, and those that end."""
    face = FACES[(level.value - 1) % MAX_VALUE][color]
    options = _extended(tuple(line.state for line in lines), step.naturals, step.jokers, rules)
    after, (choice, naturals) = next((runs, way) for runs, way in options.items() if _leads_to(runs, step, rules))
    done = [line for line, kind in zip(lines, choice, strict=True) if kind == END]
    longer = []
    for line, kind in zip(lines, choice, strict=True):
        grown = _longer(line.state, joker=kind == WILD, rules=rules) if kind != END else None
        if grown:
            line.state = grown
            line.tiles.append(JOKER if kind == WILD else face)
            longer.append(line)
    new = (False,) * naturals + (True,) * (step.jokers - choice.count(WILD))
    longer += [
        _Line(level.value, run, JOKER if joker else face) for joker in new if (run := _start(joker=joker, rules=rules))
    ]
    longer.sort(key=lambda line: line.state)
    return (longer, done) if step.runs == after else ([], done + longer)


def _leads_to(runs: Runs, step: ColorStep, rules: JokerRules) -> bool:
    """Whether open runs are those after a step; complete ones may have been ended there."""
    return runs == step.runs or (not step.runs and all(_is_complete(run, rules) for run in runs))
