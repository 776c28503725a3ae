"""The budgets of searches: of steps, a fixed number, so that every machine returns the same answer; or of a caller."""

from collections.abc import Callable
from dataclasses import dataclass


class TooComplexError(Exception):
    """A search used up its steps without an answer."""


class Effort:
    """The steps that a search has left.

    Args:
        steps: The budget.
    """

    def __init__(self, steps: int) -> None:
        self.left = steps

    def take(self, steps: int = 1) -> None:
        """Uses up steps. Raises TooComplexError if too few are left."""
        self.left -= steps
        if self.left < 0:
            raise TooComplexError


@dataclass(frozen=True, slots=True)
class Budget:
    """The most work that an answer may take.

    Attributes:
        nodes: The most search states to visit, about 10 microseconds each.
        change_nodes: How many of them may be spent on changing as few melds as possible, once the best turn is known.
        is_over: Polled during the search; returns whether to stop, for instance at the caller's deadline.
    """

    nodes: int = 1_000_000
    change_nodes: int = 6_000
    is_over: Callable[[], bool] | None = None
