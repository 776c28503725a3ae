"""Cases of which `make test` runs a few, and `make soak` all."""

import random
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def few_of(cases: Iterable[T], few: int) -> list[Any]:
    """Returns the cases as parameters. All but a few, which are always the same, are left to `make soak`."""
    every = list(cases)
    chosen = set(random.Random(0).sample(range(len(every)), few))
    return [case if place in chosen else pytest.param(case, marks=pytest.mark.soak) for place, case in enumerate(every)]
