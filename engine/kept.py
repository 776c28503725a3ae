"""What was made of things that never change, kept by which thing it is."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
V = TypeVar("V")


class Kept(Generic[T, V]):
    """A function of things that never change, which remembers what it has made.

    It knows a thing again by its identity: nothing is hashed or compared, however large it is. Of an equal thing it
    makes the same once more. When it is full, it starts over.

    Args:
        make: The function.
        most: Of how many things it remembers what it made.
    """

    def __init__(self, make: Callable[[T], V], most: int) -> None:
        self._make = make
        self._most = most
        self._known: dict[int, tuple[T, V]] = {}  # with the things, so that none ends and leaves its id to another

    def __call__(self, thing: T) -> V:
        """What is made of a thing."""
        known = self._known.get(id(thing))
        return self._remembered(thing) if known is None else known[1]

    def _remembered(self, thing: T) -> V:
        made = self._make(thing)
        if len(self._known) >= self._most:
            self._known = {}
        self._known[id(thing)] = thing, made
        return made


def kept(most: int) -> Callable[[Callable[[T], V]], Kept[T, V]]:
    """Makes a function one that remembers what it has made of so many things."""
    return lambda make: Kept(make, most)
