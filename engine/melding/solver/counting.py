"""Counts the best turns that play different tiles of the rack."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from engine.melding.analysis import Situation
from engine.melding.solver.answers import Count, Objective
from engine.melding.solver.search import Meter, OutOfBudget
from engine.melding.solver.turn_problem import TurnSearch
from engine.melding.solver.turn_search import best_cost, candidates, turn_searches
from engine.tiles import Tile

Tiles = tuple[Tile, ...]
NO_TURN: Final = Count(0, is_exact=True)


def count_best(situation: Situation, objective: Objective, limit: int, meter: Meter) -> Count:
    """Returns the number of best turns, counted up to a limit."""
    found: set[Tiles] = set()
    try:
        cost = best_cost(situation, objective, meter)
        if cost is None:
            return NO_TURN
        for search in turn_searches(situation, objective, meter):
            if search.played:
                continue
            faces = sorted(Counter(situation.rack).items())
            for played in _played_sets(replace(search, minimizes_changes=False), faces, cost):
                if len(found | {played}) > limit:
                    return Count(limit, is_exact=False)
                found.add(played)
    except OutOfBudget:
        return Count(len(found), is_exact=False)
    return Count(len(found), is_exact=True)


def _played_sets(search: TurnSearch, faces: list[tuple[Tile, int]], cost: int) -> Iterator[Tiles]:
    """Yields the sets of tiles that best turns play, given the tiles already fixed as played or left."""
    if not _is_possible(search, cost):
        return
    if not faces:
        if search.played or search.pulled:
            yield search.played
        return
    (face, count), *others = faces
    for played in range(count, -1, -1):
        fixed = replace(
            search,
            played=(*search.played, *(face,) * played),
            left=(*search.left, *(face,) * (count - played)),
        )
        yield from _played_sets(fixed, others, cost)


def _is_possible(search: TurnSearch, cost: int) -> bool:
    """Returns whether a best turn plays and leaves the fixed tiles."""
    limit = cost - search.pull_cost - search.rack_problem.cost(search.left) + 1
    return limit > 0 and next(candidates(search, limit), None) is not None
