"""Memoization keyed by object identity, for immutable arguments."""

from collections.abc import Callable, Collection
from typing import Generic, TypeVar, cast

T = TypeVar("T")
V = TypeVar("V")


class IdentityCache(Generic[T, V]):
    """A memoized function of one immutable argument. Thread-safe.

    Arguments are looked up by `id`, so they are never hashed or compared; an equal argument that is another object is
    computed again. A full cache is emptied.

    Args:
        function: The function. It never returns None.
        maxsize: Most results to cache.
    """

    def __init__(self, function: Callable[[T], V], maxsize: int) -> None:
        self._function = function
        self._maxsize = maxsize
        self._cached: tuple[dict[int, V], dict[int, T]] = {}, {}
        """The results and their arguments by id. Holding the arguments keeps their ids from being reused."""

    def __call__(self, argument: T) -> V:
        """Returns the result for an argument."""
        result = self._cached[0].get(id(argument))
        return self._compute(argument) if result is None else result

    def map(self, arguments: Collection[T]) -> list[V]:
        """Returns the result for each argument."""
        results = list(map(self._cached[0].get, map(id, arguments)))
        if None in results:
            for place, argument in enumerate(arguments):
                if results[place] is None:
                    results[place] = self._compute(argument)
        return cast("list[V]", results)

    def _compute(self, argument: T) -> V:
        result = self._function(argument)
        if len(self._cached[0]) >= self._maxsize:
            self._cached = {}, {}
        results, arguments = self._cached  # one read: another thread may replace the pair
        arguments[id(argument)] = argument
        results[id(argument)] = result
        return result


def identity_cache(maxsize: int) -> Callable[[Callable[[T], V]], IdentityCache[T, V]]:
    """Returns a decorator that memoizes a function by the identity of its argument."""
    return lambda function: IdentityCache(function, maxsize)
