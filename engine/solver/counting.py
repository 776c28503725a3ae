"""How many best turns there are, told apart by the tiles that leave the rack."""

from engine.analysis import Situation
from engine.solver.answers import Count, Objective
from engine.solver.search import Meter


def count_best(situation: Situation, objective: Objective, limit: int, meter: Meter) -> Count:
    raise NotImplementedError
