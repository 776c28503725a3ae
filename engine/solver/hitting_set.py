"""Which melds of the table must change: the fewest that are enough.

What is enough stays enough when more may change. So every set of melds that cannot all stay (a core) must have one that
changes, and the fewest that hit every core found so far are the next to try: they are enough, or yield another core.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from math import comb

from engine.solver.search import COMBINATIONS_PER_NODE, Meter

Places = frozenset[int]


def smallest_sufficient(count: int, is_sufficient: Callable[[Places], bool], meter: Meter) -> Places:
    """The smallest set of places below `count` that is enough; of equals the one that is first in order.

    Args:
        count: How many there are. All of them are enough.
        is_enough: Whether it is enough that these may change.
        meter: The budget.
    """
    everything = frozenset(range(count))
    cores: list[Places] = []
    while True:
        changing = _smallest_hitting_set(cores, meter)
        if is_sufficient(changing):
            return changing
        cores.append(_minimal_core(everything - changing, everything, is_sufficient))


def _smallest_hitting_set(cores: Sequence[Places], meter: Meter) -> Places:
    """The first smallest set that has a member of each core."""
    return next(filter(partial(_hits_all, cores), _subsets(cores, meter)))


def _hits_all(cores: Sequence[Places], chosen: Places) -> bool:
    return all(map(chosen.intersection, cores))


def _subsets(cores: Sequence[Places], meter: Meter) -> Iterator[Places]:
    """Sets of members of cores, the smallest first."""
    members, size = sorted(frozenset().union(*cores)), 0
    while True:  # all members together hit every core
        meter.count(comb(len(members), size) // COMBINATIONS_PER_NODE)
        yield from map(frozenset, combinations(members, size))
        size += 1


def _minimal_core(kept: Places, everything: Places, is_sufficient: Callable[[Places], bool]) -> Places:
    """Some of the kept of which none can be left out without it being enough that all others change."""
    core: Places = frozenset()
    candidates = sorted(kept)
    while candidates:
        low, high = 0, len(candidates)  # keeping needed and candidates[:high] is too much
        if core and not is_sufficient(everything - core):
            return core
        while high - low > 1:
            middle = (low + high) // 2
            if is_sufficient(everything - core - frozenset(candidates[:middle])):
                low = middle
            else:
                high = middle
        core |= {candidates[high - 1]}
        candidates = candidates[: high - 1]
    return core


def small_sufficient(count: int, is_sufficient: Callable[[Places], bool]) -> Places:
    """A set of places that is enough, of which none can be left out as far as `is_enough` tells."""
    changing = frozenset(range(count))
    size = count
    while size:
        for first in range(0, count, size):
            smaller = changing - frozenset(range(first, first + size))
            if smaller != changing and is_sufficient(smaller):
                changing = smaller
        size //= 2
    return changing
