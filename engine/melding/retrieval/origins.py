"""Step 3: whether the numbered tiles can have come from where the conditions demand."""

from collections.abc import Mapping

from engine.melding.retrieval.tables import Assignment, AtLeast, Conditions, Tables
from engine.tiles import Tile


def are_satisfiable(tables: Tables, conditions: Conditions) -> bool:
    """Returns whether some assignment of the copies of every face meets all conditions."""
    if conditions not in tables.known_satisfiable:
        tables.known_satisfiable[conditions] = _has_assignment(tables, conditions)
    return tables.known_satisfiable[conditions]


def _has_assignment(tables: Tables, conditions: Conditions) -> bool:
    """Returns the same without the cache.

    Between faces, only the tiles that each `AtLeast` condition still lacks are remembered.
    """
    tables.effort.take(8 + 4 * len(conditions))
    allowed: dict[tuple[Tile, int], frozenset[int]] = {}
    goals = []
    for condition in conditions:
        if isinstance(condition, AtLeast):
            goals.append(condition)
        else:
            face, new, sources = condition
            allowed[face, new] = allowed.get((face, new), sources) & sources
    if not all(allowed.values()) or any(goal.minimum > len(goal.origins) for goal in goals):
        return False
    lacking = tuple([goal.minimum for goal in goals])
    goals_of: dict[tuple[Tile, int, int], list[int]] = {}
    for number, goal in enumerate(goals):
        for origin in goal.origins:
            goals_of.setdefault(origin, []).append(number)
    reached = {lacking}
    for face in {face for face, _ in allowed} | {face for face, _, _ in goals_of}:
        assignments = tables.assignments(face)
        tables.effort.take(8 + len(assignments) * len(assignments[0]))
        steps = _steps(assignments, allowed, goals_of, face)
        tables.effort.take(len(reached) * len(steps))
        reached = {_reduced(lacking, step) for lacking in reached for step in steps}
    return any(not any(lacking) for lacking in reached)


def _reduced(lacking: tuple[int, ...], step: frozenset[int]) -> tuple[int, ...]:
    if not step:
        return lacking
    return tuple([max(0, count - (goal in step)) for goal, count in enumerate(lacking)])


def _steps(
    assignments: tuple[Assignment, ...],
    allowed: Mapping[tuple[Tile, int], frozenset[int]],
    goals_of: Mapping[tuple[Tile, int, int], list[int]],
    face: Tile,
) -> list[frozenset[int]]:
    """Returns the goals that each allowed assignment of a face serves; those that serve fewer are dropped."""
    steps = {
        frozenset(goal for target, source in assignment for goal in goals_of.get((face, target, source), ()))
        for assignment in assignments
        if all(source in allowed.get((face, target), (source,)) for target, source in assignment)
    }
    return [step for step in steps if not any(step < other for other in steps)]
