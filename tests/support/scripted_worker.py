"""An analysis worker whose behavior the first tile of the rack selects; it replaces the real worker in tests."""

import gc
import os
import sys
from enum import IntEnum
from pathlib import Path

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.solver import BestTurn, Existence, Objective
from service.analysis import queries
from service.analysis.worker import NODES_PER_SECOND, main

MUCH = 100_000
"""The number of objects that a solver caches after a while."""
LOWEST = 19
"""The lowest process priority."""


class Script(IntEnum):
    """The worker's behavior when the rack starts with this tile."""

    ANSWERS = 1
    SEARCHES_TO_THE_END = 2
    DIES = 3
    FAILS = 4
    TELLS_ITS_PROCESS = 5
    GETS_STUCK = 6
    TELLS_WHETHER_IT_HAS_TIME = 7
    REMEMBERS_MUCH = 8
    TELLS_WHETHER_GARBAGE_IS_FOUND_SOON = 9
    TELLS_WHETHER_IT_HAS_TEN_SECONDS = 10


memory: list[list[int]] = []


def act(situation: Situation, budget: Budget) -> Existence:  # noqa: C901 - one case per script
    """Runs a script. Returns UNKNOWN for unfinished searches."""
    match Script(situation.rack[0]):
        case Script.ANSWERS:
            return Existence.NO
        case Script.SEARCHES_TO_THE_END:
            assert budget.is_over
            while not budget.is_over():
                pass
            return Existence.UNKNOWN
        case Script.DIES:
            os._exit(3)
        case Script.FAILS:
            raise ValueError("what nobody outside may read")
        case Script.TELLS_ITS_PROCESS:
            of_the_server = os.getpriority(os.PRIO_PROCESS, os.getppid())
            return Existence.YES if os.nice(0) == min(of_the_server + 10, LOWEST) else Existence.NO
        case Script.GETS_STUCK:
            while True:
                pass
        case Script.TELLS_WHETHER_IT_HAS_TIME:
            return Existence.YES if budget.nodes else Existence.NO
        case Script.TELLS_WHETHER_IT_HAS_TEN_SECONDS:
            return Existence.YES if budget.nodes == 10 * NODES_PER_SECOND else Existence.NO
        case Script.REMEMBERS_MUCH:
            memory.extend([] for _ in range(MUCH))
            return Existence.NO
        case Script.TELLS_WHETHER_GARBAGE_IS_FOUND_SOON:
            assert len(memory) == MUCH
            return Existence.YES if len(gc.get_objects()) < MUCH / 10 else Existence.NO


def best(situation: Situation, _objective: Objective, budget: Budget) -> BestTurn:
    """Runs a script for the best turn, which is never found."""
    existence = act(situation, budget)
    return BestTurn(None, is_proven=existence is Existence.NO, is_least_change=False)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # a pickled Script is found as support.scripted_worker
    for name, stand_in in {"turn_exists": act, "best_turn": best}.items():
        setattr(queries, name, stand_in)
    main()
