"""A budget of steps for searches: a fixed number, so that every machine returns the same answer."""


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
