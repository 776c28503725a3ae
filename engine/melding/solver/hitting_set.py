"""Finds the fewest melds of the table that must change, as a minimum hitting set.

If changing some melds is sufficient, changing more is too. So each set of melds that cannot all stay (a core) contains
a meld that changes. The smallest set that hits every core found so far is tried next: it is sufficient, or it yields
another core.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from math import comb

from engine.melding.solver.search import COMBINATIONS_PER_NODE, Meter

Places = frozenset[int]


def smallest_sufficient(count: int, is_sufficient: Callable[[Places], bool], meter: Meter) -> Places:
    """Returns the smallest sufficient set of places below `count`; of equal ones the first in order.

    Args:
        count: The number of places. All of them together are sufficient.
        is_sufficient: Returns whether it is sufficient that the given melds may change.
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
    """Returns the first smallest set that contains a member of each core."""
    return next(filter(partial(_hits_all, cores), _subsets(cores, meter)))


def _hits_all(cores: Sequence[Places], chosen: Places) -> bool:
    return all(map(chosen.intersection, cores))


def _subsets(cores: Sequence[Places], meter: Meter) -> Iterator[Places]:
    """Yields subsets of the members of cores, the smallest first."""
    members, size = sorted(frozenset().union(*cores)), 0
    while True:  # all members together hit every core
        meter.count(comb(len(members), size) // COMBINATIONS_PER_NODE)
        yield from map(frozenset, combinations(members, size))
        size += 1


def _minimal_core(kept: Places, everything: Places, is_sufficient: Callable[[Places], bool]) -> Places:
    """Returns a minimal subset of `kept` that cannot stay together."""
    core: Places = frozenset()
    candidates = sorted(kept)
    while candidates:
        low, high = 0, len(candidates)  # keeping core and candidates[:high] is not possible
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


def small_sufficient(changing: Places, is_sufficient: Callable[[Places], bool]) -> Places:
    """Returns a sufficient part of some places that cannot be reduced further, as far as `is_sufficient` can decide."""
    size = len(changing)
    while size:
        places = sorted(changing)
        for first in range(0, len(places), size):
            smaller = changing - frozenset(places[first : first + size])
            if smaller != changing and is_sufficient(smaller):
                changing = smaller
        size //= 2
    return changing
