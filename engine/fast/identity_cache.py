"""What was made of things that never change, kept by which thing it is."""

from collections.abc import Callable, Collection
from typing import Generic, TypeVar, cast

T = TypeVar("T")
V = TypeVar("V")


class Kept(Generic[T, V]):
    """A function of things that never change, which remembers what it has made.

    It knows a thing again by its identity: nothing is hashed or compared, however large it is. Of an equal thing it
    makes the same once more. When it is full, it starts over. Threads may ask at the same time.

    Args:
        make: The function.
        most: Of how many things it remembers what it made.
    """

    def __init__(self, make: Callable[[T], V], most: int) -> None:
        self._make = make
        self._most = most
        self._memory: tuple[dict[int, V], dict[int, T]] = {}, {}
        """What was made, and of what: no thing ends, and leaves its id to another one, as long as it is here."""

    def __call__(self, thing: T) -> V:
        """What is made of a thing. It is not None."""
        made = self._memory[0].get(id(thing))
        return self._make_anew(thing) if made is None else made

    def each(self, things: Collection[T]) -> list[V]:
        """What is made of each of some things."""
        made = list(map(self._memory[0].get, map(id, things)))
        return [self(thing) for thing in things] if None in made else cast("list[V]", made)

    def _make_anew(self, thing: T) -> V:
        made = self._make(thing)
        if len(self._memory[0]) >= self._most:
            self._memory = {}, {}
        all_made, things = self._memory  # that belong together, if another thread replaces them
        things[id(thing)] = thing
        all_made[id(thing)] = made
        return made


def kept(most: int) -> Callable[[Callable[[T], V]], Kept[T, V]]:
    """Makes a function one that remembers what it has made of so many things."""
    return lambda make: Kept(make, most)
