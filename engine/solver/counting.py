"""How many best turns there are, told apart by the tiles that leave the rack."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from engine.analysis import Situation
from engine.solver.answers import Count, Objective
from engine.solver.search import Meter, OutOfBudget
from engine.solver.turns import Question, best_cost, candidates, questions
from engine.tiles import Tile


def count_best(situation: Situation, objective: Objective, limit: int, meter: Meter) -> Count:
    """How many there are, up to a limit. Pulls of the River from different places are different turns."""
    number = 0
    try:
        cost = best_cost(situation, objective, meter)
        if cost is None:
            return Count(0, is_exact=True)
        for question in questions(situation, objective, meter):
            left = Counter(situation.rack)
            asked = replace(question, asks_least_change=False)
            for _ in islice(_racks(asked, sorted(left.items()), cost), limit + 1 - number):
                number += 1
    except OutOfBudget:
        return Count(number, is_exact=False)
    return Count(min(number, limit), is_exact=number <= limit)


def _racks(question: Question, faces: list[tuple[Tile, int]], cost: int) -> Iterator[None]:
    """One for each way to play some of these faces, what is played of the others being settled."""
    if not _is_possible(question, cost):
        return
    if not faces:
        yield
        return
    (face, count), *others = faces
    for played in range(count, -1, -1):
        settled = replace(
            question,
            played=(*question.played, *(face,) * played),
            left=(*question.left, *(face,) * (count - played)),
        )
        yield from _racks(settled, others, cost)


def _is_possible(question: Question, cost: int) -> bool:
    """Whether there is a best turn that plays and leaves what is settled."""
    left = question.own.cost(question.left)
    limit = cost - question.price - left + 1
    return limit > 0 and next(candidates(question, limit), None) is not None
