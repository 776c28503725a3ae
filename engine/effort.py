"""The work that a search of the rules may do: a fixed number of steps, so that every machine gives the same answer."""


class TooComplexError(Exception):
    """A search has used up its steps without an answer."""


class Effort:
    """The steps that a search has left.

    Args:
        steps: How many it may take.
    """

    def __init__(self, steps: int) -> None:
        self.left = steps

    def take(self, steps: int = 1) -> None:
        """Uses up steps. Raises TooComplexError if too few are left."""
        self.left -= steps
        if self.left < 0:
            raise TooComplexError
