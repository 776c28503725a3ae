"""Builds melds from a path of the search with limited jokers."""

from collections.abc import Iterator, Sequence

from engine.melding.ruleset import Ruleset
from engine.melding.solver.joker_rules import JokerRules, joker_rules
from engine.melding.solver.joker_search import JokerPath, PathStep
from engine.melding.solver.joker_transitions import (
    END,
    WILD,
    JokerTransition,
    OpenRun,
    Runs,
    extended_run,
    extensions,
    is_complete,
    new_run,
)
from engine.melding.solver.levels import Level, levels_of
from engine.melding.solver.problem import FACES, Problem
from engine.melding.solver.run_assembly import RawMelds, Run, RunPart, melds_in_order, whole_runs
from engine.tiles import JOKER, MAX_VALUE, Tile


class _JokerRunPart(RunPart):
    """A run under construction with its state in the search."""

    def __init__(self, first: int, state: OpenRun, *tiles: Tile) -> None:
        super().__init__(first, *tiles)
        self.state = state

    def extend(self, kind: str, face: Tile, rules: JokerRules) -> None:
        """Adds a tile or joker to the run, which the rules must allow."""
        extended = extended_run(self.state, joker=kind == WILD, rules=rules)
        assert extended is not None, "extensions() yields allowed extensions only"  # noqa: S101 - for the type
        self.state = extended
        self.tiles.append(JOKER if kind == WILD else face)


def _new_parts(first: int, face: Tile, rules: JokerRules, *, joker: bool) -> list[_JokerRunPart]:
    run = new_run(joker=joker, rules=rules)
    return [_JokerRunPart(first, run, JOKER if joker else face)] if run else []


def melds_of_path(path: JokerPath, problem: Problem) -> RawMelds:
    """Returns kind and tiles of each meld, in a fixed order."""
    levels, rules = levels_of(problem), joker_rules(problem.ruleset)
    colors = range(problem.ruleset.geometry_colors)
    runs = [run.tiles for color in colors for run in _runs_of_color(path, levels, color, problem.ruleset)]
    groups = [group for level, step in zip(levels, path.steps, strict=True) for group in _groups_at(level, step, rules)]
    return melds_in_order(runs, groups)


def _groups_at(level: Level, step: PathStep, rules: JokerRules) -> list[tuple[Tile, ...]]:
    if not step.groups:
        return []
    faces = FACES[(level.value - 1) % MAX_VALUE]
    dealt = [face for face, transition in zip(faces, step.transitions, strict=False) for _ in range(transition.grouped)]
    groups = [dealt[place :: step.groups] for place in range(step.groups)]
    for _ in range(step.group_jokers):
        _smallest_extendable(groups, len(step.transitions), rules).append(JOKER)
    return list(map(tuple, groups))


def _smallest_extendable(groups: list[list[Tile]], colors: int, rules: JokerRules) -> list[Tile]:
    """Returns the smallest group that may take one more joker."""

    def may(group: list[Tile]) -> bool:
        jokers = group.count(JOKER) + 1
        naturals = len(group) - jokers + 1
        return len(group) < colors and jokers <= rules.most and (naturals >= jokers or not rules.balanced)

    return min(filter(may, groups), key=len)


def _runs_of_color(path: JokerPath, levels: Sequence[Level], color: int, ruleset: Ruleset) -> Iterator[Run]:
    rules = joker_rules(ruleset)
    crossing = [_JokerRunPart(levels[0].value, run) for run in path.start.runs[color]]
    parts, done = list(crossing), []
    for level, step in zip(levels, path.steps, strict=True):
        parts, ended = _extended_parts(parts, step.transitions[color], level, color, rules)
        done += ended
    for state, part in zip(path.start.runs[color], crossing, strict=True):  # a part's own state has changed since
        part.previous = next(previous for previous in parts if previous.state == state)
        parts.remove(part.previous)
    return whole_runs([*done, *parts], crossing, ruleset)


def _extended_parts(
    parts: list[_JokerRunPart], transition: JokerTransition, level: Level, color: int, rules: JokerRules
) -> tuple[list[_JokerRunPart], list[_JokerRunPart]]:
    """Returns the run parts after a transition, in the order of the search, and those that end."""
    face = FACES[(level.value - 1) % MAX_VALUE][color]
    options = extensions(tuple(part.state for part in parts), transition.naturals, transition.jokers, rules)
    after, (choice, naturals) = next(
        (runs, step) for runs, step in options.items() if _matches(runs, transition, rules)
    )
    done = [part for part, kind in zip(parts, choice, strict=True) if kind == END]
    extended = [part for part, kind in zip(parts, choice, strict=True) if kind != END]
    for part, kind in zip(parts, choice, strict=True):
        if kind != END:
            part.extend(kind, face, rules)
    new = (False,) * naturals + (True,) * (transition.jokers - choice.count(WILD))
    extended += [part for joker in new for part in _new_parts(level.value, face, rules, joker=joker)]
    extended.sort(key=lambda part: part.state)
    return (extended, done) if transition.runs == after else ([], done + extended)


def _matches(runs: Runs, transition: JokerTransition, rules: JokerRules) -> bool:
    """Returns whether open runs are those after a transition, which may have ended complete ones."""
    return runs == transition.runs or (not transition.runs and all(is_complete(run, rules) for run in runs))
