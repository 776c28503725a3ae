"""Facts that are found when they are asked for, once."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class fact(Generic[T]):  # noqa: N801 - a decorator, like property
    """A property that keeps its value in the object's own dictionary, where it may also be put from the start.

    As functools.cached_property, for less: that of Python 3.11 takes a lock, which costs more than most facts do. Two
    threads may find the same fact twice, to no harm, as it is the same.
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self._find = find
        self._name = find.__name__
        self.__doc__ = find.__doc__

    @overload
    def __get__(self, thing: None, owner: type) -> "fact[T]": ...
    @overload
    def __get__(self, thing: object, owner: type) -> T: ...
    def __get__(self, thing: object | None, owner: type) -> "T | fact[T]":
        """The fact."""
        if thing is None:
            return self
        found = self._find(thing)
        vars(thing)[self._name] = found
        return found
