"""Which melds of the table must change: the fewest that are enough.

What is enough stays enough when more may change. So every set of melds that cannot all stay (a core) must have one that
changes, and the fewest that hit every core found so far are the next to try: they are enough, or yield another core.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from math import comb

from engine.solver.search import STEPS_A_NODE, Meter

Melds = frozenset[int]


def fewest(count: int, is_enough: Callable[[Melds], bool], meter: Meter) -> Melds:
    """The smallest set of places below `count` that is enough; of equals the one that is first in order.

    Args:
        count: How many there are. All of them are enough.
        is_enough: Whether it is enough that these may change.
        meter: The budget.
    """
    everything = frozenset(range(count))
    cores: list[Melds] = []
    while True:
        changing = _hitting(cores, meter)
        if is_enough(changing):
            return changing
        cores.append(_core(everything - changing, everything, is_enough))


def _hitting(cores: Sequence[Melds], meter: Meter) -> Melds:
    """The first smallest set that has a member of each core."""
    return next(filter(partial(_hits, cores), _sets(cores, meter)))


def _hits(cores: Sequence[Melds], chosen: Melds) -> bool:
    return all(map(chosen.intersection, cores))


def _sets(cores: Sequence[Melds], meter: Meter) -> Iterator[Melds]:
    """Sets of members of cores, the smallest first."""
    members, size = sorted(frozenset().union(*cores)), 0
    while True:  # all members together hit every core
        meter.count(comb(len(members), size) // STEPS_A_NODE)
        yield from map(frozenset, combinations(members, size))
        size += 1


def _core(kept: Melds, everything: Melds, is_enough: Callable[[Melds], bool]) -> Melds:
    """Some of the kept of which none can be left out without it being enough that all others change."""
    needed: Melds = frozenset()
    candidates = sorted(kept)
    while candidates:
        low, high = 0, len(candidates)  # keeping needed and candidates[:high] is too much
        if needed and not is_enough(everything - needed):
            return needed
        while high - low > 1:
            middle = (low + high) // 2
            if is_enough(everything - needed - frozenset(candidates[:middle])):
                low = middle
            else:
                high = middle
        needed |= {candidates[high - 1]}
        candidates = candidates[: high - 1]
    return needed


def few(count: int, is_enough: Callable[[Melds], bool]) -> Melds:
    """A set of places that is enough, of which none can be left out as far as `is_enough` tells."""
    changing = frozenset(range(count))
    size = count
    while size:
        for first in range(0, count, size):
            smaller = changing - frozenset(range(first, first + size))
            if smaller != changing and is_enough(smaller):
                changing = smaller
        size //= 2
    return changing
