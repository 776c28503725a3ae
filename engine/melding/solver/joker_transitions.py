"""The transitions of one color at one value if jokers are limited: each run is tracked with the jokers in it."""

from collections.abc import Iterator
from functools import lru_cache
from operator import le
from typing import NamedTuple

from engine.melding.solver.color_transitions import LevelTraits, Supply
from engine.melding.solver.joker_rules import UNLIMITED, JokerRules


class OpenRun(NamedTuple):
    """A run that may continue: its length (3 means 3 or more), relevant tile counts, and whether a joker is last."""

    length: int
    naturals: int
    jokers: int
    ends_in_joker: bool


def new_run(*, joker: bool, rules: JokerRules) -> OpenRun | None:
    """Returns a run that starts with a tile or a joker; None if the rules forbid it."""
    if joker and not (rules.leads and rules.most):
        return None
    return _normalized(OpenRun(1, int(not joker), int(joker), joker), rules)


def extended_run(run: OpenRun, *, joker: bool, rules: JokerRules) -> OpenRun | None:
    """Returns a run with one more tile or joker; None if the rules forbid it."""
    if joker and (run.jokers == rules.most or (rules.apart and run.ends_in_joker)):
        return None
    longer = OpenRun(run.length + 1, run.naturals + (not joker), run.jokers + joker, joker)
    return _normalized(longer, rules)


def _normalized(run: OpenRun, rules: JokerRules) -> OpenRun:
    """Returns a run without differences that do not affect how it can continue."""
    if rules.balanced:
        common = min(run.naturals, run.jokers)
        naturals, jokers = run.naturals - common, run.jokers - common
    else:
        naturals, jokers = min(run.naturals, 1), run.jokers if rules.most < UNLIMITED else 0
    return OpenRun(min(run.length, 3), naturals, jokers, rules.apart and run.ends_in_joker)


def is_complete(run: OpenRun, rules: JokerRules) -> bool:
    """Returns whether a run may end."""
    return run.length == 3 and (run.jokers == 0 if rules.balanced else run.naturals > 0)


Runs = tuple[OpenRun, ...]
"""The open runs of a color, ascending."""


RunChoice = tuple[str, ...]
"""For each open run: a numbered tile, a joker, or its end."""


NATURAL, WILD, END = "natural", "joker", "end"


@lru_cache(maxsize=1 << 14)
def extensions(runs: Runs, naturals: int, jokers: int, rules: JokerRules) -> dict[Runs, tuple[RunChoice, int]]:
    """Returns the open runs that tiles can produce, each with a way to it and the number of new runs."""
    found: dict[Runs, tuple[RunChoice, int]] = {}
    for choice, longer in _run_choices(runs, naturals, jokers, rules):
        new_naturals = naturals - choice.count(NATURAL)
        new_jokers = jokers - choice.count(WILD)
        starts = [new_run(joker=False, rules=rules)] * new_naturals + [new_run(joker=True, rules=rules)] * new_jokers
        if None not in starts:
            after = tuple(sorted((*longer, *(run for run in starts if run))))
            found.setdefault(after, (choice, new_naturals))
    return found


def _run_choices(runs: Runs, naturals: int, jokers: int, rules: JokerRules) -> Iterator[tuple[RunChoice, Runs]]:
    if not runs:
        yield (), ()
        return
    run, rest = runs[0], runs[1:]
    if is_complete(run, rules):
        for choice, longer in _run_choices(rest, naturals, jokers, rules):
            yield (END, *choice), longer
    for kind, left in ((NATURAL, (naturals - 1, jokers)), (WILD, (naturals, jokers - 1))):
        after = extended_run(run, joker=kind == WILD, rules=rules) if min(left) >= 0 else None
        if after:
            for choice, longer in _run_choices(rest, *left, rules):
                yield (kind, *choice), (after, *longer)


class JokerTransition(NamedTuple):
    """The use of the tiles of one color at one value (see color_transitions.Transition); held is for after the 13."""

    left: int
    grouped: int
    naturals: int
    jokers: int
    begun: int
    runs: Runs
    held: int


@lru_cache(maxsize=1 << 15)
def joker_transitions(
    open_runs: tuple[Runs, int], tiles: Supply, traits: LevelTraits, jokers: int, rules: JokerRules
) -> tuple[JokerTransition, ...]:
    """Returns all transitions of a color.

    Args:
        open_runs: The open runs, and the number of ones set aside.
        tiles: The tiles of the color.
        traits: The level.
        jokers: The most jokers that may be spent.
        rules: The limits on jokers.
    """
    runs, held = open_runs
    found: dict[tuple[int, int, int, Runs, int], JokerTransition] = {}
    for left, grouped, naturals, now_held in _distributions(tiles, traits, held):
        for spent in range(jokers + 1):
            for after, (choice, _) in extensions(runs, naturals, spent, rules).items():
                kept = _continuing_runs(after, tiles, traits, jokers - spent, rules)
                if kept is not None:
                    begun = naturals + spent - len(choice) + choice.count(END)
                    transition = JokerTransition(left, grouped, naturals, spent, begun, kept, now_held)
                    found.setdefault((left, grouped, spent, kept, now_held), transition)
    return tuple(found.values())


def _distributions(tiles: Supply, traits: LevelTraits, held: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields how many tiles stay on the rack, go to groups, go to runs, and are set aside afterwards."""
    must, may = (held, 0) if traits.is_held else tiles[:2]
    unchanged = 0 if traits.is_held else held
    for left in range(may + 1):
        used = must + may - left
        for aside in range(min(used, tiles[4]) + 1):
            now_held = aside if traits.holds else unchanged
            for grouped in range(used - aside + 1 if traits.groups else 1):
                yield left, grouped, used - aside - grouped, now_held


def _continuing_runs(runs: Runs, tiles: Supply, traits: LevelTraits, jokers: int, rules: JokerRules) -> Runs | None:
    """Returns the open runs that may continue; None if a run must continue and cannot."""
    owed = [run for run in runs if not is_complete(run, rules)]
    next_tiles = tiles[2] + jokers if traits.after > 0 else 0
    later_tiles = tiles[3] + jokers if traits.after > 1 else 0
    young = [run for run in owed if run.length == 1]
    if len(owed) > next_tiles or len(young) > later_tiles:
        return None
    return runs if next_tiles else ()


@lru_cache(maxsize=1 << 14)
def groups_for(grouped: tuple[int, ...], jokers: int, rules: JokerRules) -> int | None:
    """Returns the fewest groups that use all grouped tiles and jokers; None if there are none.

    Groups of nearly equal size need the fewest jokers and have room for the most, so other sizes are not tried.
    """
    total, colors = sum(grouped), len(grouped)
    if not total:
        return None if jokers else 0
    numbers = range(max(*grouped, -(-(total + jokers) // colors)), (total + jokers) // 3 + 1)
    return next((number for number in numbers if _can_group(total, number, jokers, colors, rules)), None)


def _can_group(total: int, number: int, jokers: int, colors: int, rules: JokerRules) -> bool:
    """Returns whether a number of groups of nearly equal size can take all tiles and jokers."""
    small, larger = divmod(total, number)
    sizes = [small + 1] * larger + [small] * (number - larger)
    least = [max(0, 3 - size) for size in sizes]
    most = [_most_jokers(size, colors, rules) for size in sizes]
    fits = all(map(le, least, most))
    return small > 0 and fits and sum(least) <= jokers <= sum(most)


def _most_jokers(size: int, colors: int, rules: JokerRules) -> int:
    return min(colors - size, rules.most, size if rules.balanced else UNLIMITED)
