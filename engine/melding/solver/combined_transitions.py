"""Combines the transitions of all colors, half of the colors at a time (meet in the middle).

A state of the search is one number. Its lowest bits are the open runs of each color (color_transitions.py). Above them
are a bit that is set until a tile of the rack is laid, the jokers spent, and a lower bound on the jokers that the open
runs make necessary. Each half of the colors contributes such a number with zeros for the other half, and their sum is a
state.

Tiles and open runs vary widely, but the transition sets do not: all games together have a few hundred. So sets are
compared by identity, and combinations are cached across positions.
"""

from collections import defaultdict
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

from engine.melding.solver.color_transitions import FIELD, MAX_COLORS, WIDTH, Transition, TransitionSet

MOST_COMBINATIONS = 1 << 13
"""Larger products are not computed: they would take over 50 ms, and cannot be interrupted."""


class TooManyCombinations(Exception):  # noqa: N818 - control flow: callers handle it
    """There are far more combinations than in any game with four colors."""


class StateBits(NamedTuple):
    """The layout of a state's bits.

    Attributes:
        middle: The first bit of the second half of the colors.
        needs_rack_tile: The bit that is set until a tile of the rack is laid.
        jokers: The first bit of the number of jokers spent.
        jokers_bound: The first bit of the lower bound on all jokers spent; these bits are the highest.
        one_joker: The number of one spent joker: one in each of the two counts.
    """

    middle: int
    needs_rack_tile: int
    jokers: int
    jokers_bound: int
    one_joker: int


@lru_cache(maxsize=MAX_COLORS)
def state_bits(colors: int) -> StateBits:
    """Returns the layout for a number of colors."""
    jokers, jokers_bound = colors * WIDTH + FIELD, colors * WIDTH + 2 * FIELD
    return StateBits(
        (colors + 1) // 2 * WIDTH, 1 << colors * WIDTH, jokers, jokers_bound, (1 << jokers) + (1 << jokers_bound)
    )


Share = tuple[int, int]
"""The tiles that some colors give to groups: the total, and the most of one color."""


class HalfTransitions(NamedTuple):
    """The transitions of half of the colors that leave a given number of tiles, by the tiles given to groups.

    Attributes:
        shares: The tiles given to groups.
        transitions: For each share, in ascending order, the contributions to a state and the transitions behind them.
    """

    shares: frozenset[Share]
    transitions: tuple[dict[int, tuple[Transition, ...]], ...]


@lru_cache(maxsize=1 << 13)
def half_transitions(choices: tuple[TransitionSet, ...], first: int, colors: int) -> tuple[HalfTransitions, ...]:
    """Returns the transitions of some colors, by the number of tiles left. Together they may spend too many jokers.

    Args:
        choices: The transitions of each color.
        first: The first bit of these colors in a state.
        colors: The number of all colors.

    Raises:
        TooManyCombinations: The combinations would take too long.
    """
    if prod(len(transition_set.transitions) for transition_set in choices) > MOST_COMBINATIONS:
        raise TooManyCombinations
    bits = state_bits(colors)
    found: defaultdict[int, defaultdict[Share, dict[int, tuple[Transition, ...]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for chosen in product(*(transition_set.transitions for transition_set in choices)):
        lefts, grouped, jokers, runs, missing = zip(*chosen, strict=True)
        number = (_packed(runs) << first) + (sum(missing) << bits.jokers_bound) + sum(jokers) * bits.one_joker
        found[sum(lefts)][sum(grouped), max(grouped)][number] = chosen
    return tuple(_in_order(found[left]) for left in range(max(found, default=-1) + 1))


def _packed(runs: tuple[int, ...]) -> int:
    number = 0
    for of_color in reversed(runs):
        number = number << WIDTH | of_color
    return number


def _in_order(found: dict[Share, dict[int, tuple[Transition, ...]]]) -> HalfTransitions:
    return HalfTransitions(frozenset(found), tuple(found[share] for share in sorted(found)))


@lru_cache(maxsize=1 << 12)
def join_shares(low: frozenset[Share], high: frozenset[Share]) -> tuple[tuple[int, int, int], ...]:
    """Returns pairs of indexes of shares of both halves, with the jokers needed to form groups of both."""
    return tuple(
        (place, other, jokers_for_groups(total + more, max(most, others)))
        for place, (total, most) in enumerate(sorted(low))
        for other, (more, others) in enumerate(sorted(high))
    )


def jokers_for_groups(total: int, most: int) -> int:
    """Returns the jokers needed to group tiles, in as many groups as the color with the most tiles has tiles."""
    return max(0, 3 * most - total)
