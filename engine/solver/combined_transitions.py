"""The steps of half of the colors at once, so that four colors are combined by looking up two of them twice.

A state of the search is one number: what the open runs of each color need (color_steps.py), those of the first color in
the lowest bits; above them whether a tile of the rack has still to be laid, the jokers spent, and how many these will
be at least when the open runs have what they need. What comes of a half is such a number too, with nothing in the bits
of the other half: the sum of two is a state.

Tiles and open runs are of many kinds, but what can be done with them is not: a few hundred choices a color are all that
games bring. So choices are compared by identity, and combinations of two are kept for all positions.
"""

from collections import defaultdict
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

from engine.solver.color_transitions import FIELD, MAX_COLORS, WIDTH, Transition, TransitionSet

MOST_COMBINATIONS = 1 << 13
"""Steps are not combined where that would take a twentieth of a second: it cannot be interrupted."""


class TooManyCombinations(Exception):  # noqa: N818 - it is no error: the caller has an answer for it
    """There are far more combinations than in any game with four colors."""


class StateBits(NamedTuple):
    """Where in the number of a state is what.

    Attributes:
        middle: The first bit of the second half of the colors.
        idle: The bit that says that no tile of the rack is laid yet.
        jokers: The first bit of the number of jokers spent.
        in_all: The first bit of the number of jokers that will be spent at least, which is the highest of all.
        joker: A joker spent: one in each of the two numbers.
    """

    middle: int
    needs_rack_tile: int
    jokers: int
    jokers_bound: int
    one_joker: int


@lru_cache(maxsize=MAX_COLORS)
def state_bits(colors: int) -> StateBits:
    """Where what is in states of so many colors."""
    jokers, jokers_bound = colors * WIDTH + FIELD, colors * WIDTH + 2 * FIELD
    return StateBits(
        (colors + 1) // 2 * WIDTH, 1 << colors * WIDTH, jokers, jokers_bound, (1 << jokers) + (1 << jokers_bound)
    )


Share = tuple[int, int]
"""Tiles that some colors give to groups: how many in all, and of the color that gives most."""


class HalfTransitions(NamedTuple):
    """The ways to use the tiles of half of the colors so that so many are left, by what they give to groups.

    Attributes:
        shares: What is given to groups.
        steps: For each share, in ascending order, the parts of states that can come of it, with the steps that lead
            there.
    """

    shares: frozenset[Share]
    transitions: tuple[dict[int, tuple[Transition, ...]], ...]


@lru_cache(maxsize=1 << 13)
def half_transitions(choices: tuple[TransitionSet, ...], first: int, colors: int) -> tuple[HalfTransitions, ...]:
    """The ways of some colors, by the number of tiles left. More jokers may be spent together than there are.

    Args:
        choices: The steps of each color.
        first: The bit of a state where these colors begin.
        colors: How many colors there are in all.

    Raises:
        TooManyCombinations: It cannot be told in good time.
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
    """The places of shares of the one half and of the other, and the jokers that it takes to make groups of both."""
    return tuple(
        (place, other, jokers_for_groups(total + more, max(most, others)))
        for place, (total, most) in enumerate(sorted(low))
        for other, (more, others) in enumerate(sorted(high))
    )


def jokers_for_groups(total: int, most: int) -> int:
    """Jokers that it takes to make groups of so many tiles: as many groups as the color has that gives most."""
    return max(0, 3 * most - total)
