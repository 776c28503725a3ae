"""A two-sample test: whether times of two kinds of calls come from one distribution."""

from collections.abc import Sequence
from math import exp, sqrt
from typing import Final

TERMS: Final = 100
"""More terms of the series than ever matter."""


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    """Returns the distance of two samples by Kolmogorov and Smirnov: the largest difference of their shares below."""
    ordered, others = sorted(one), sorted(other)
    here = there = 0
    farthest = 0.0
    while here < len(ordered) and there < len(others):
        value = min(ordered[here], others[there])
        while here < len(ordered) and ordered[here] == value:
            here += 1
        while there < len(others) and others[there] == value:
            there += 1
        farthest = max(farthest, abs(here / len(ordered) - there / len(others)))
    return farthest


def probability(one: Sequence[float], other: Sequence[float]) -> float:
    """Returns how probable a distance like that of two samples is, if both are of one distribution.

    It is Kolmogorov's asymptotic formula with Stephens's correction, within 0.01 for samples of 10 or more.
    """
    size = sqrt(len(one) * len(other) / (len(one) + len(other)))
    scaled = (size + 0.12 + 0.11 / size) * distance(one, other)
    if scaled < MOST_ALIKE:
        return 1.0
    series = (2.0 * (-1.0) ** (term - 1) * exp(-2 * (term * scaled) ** 2) for term in range(1, TERMS))
    return min(1.0, max(0.0, float(sum(series))))


MOST_ALIKE: Final = 0.2
"""Below this scaled distance the series converges slowly, to a probability of 1."""
