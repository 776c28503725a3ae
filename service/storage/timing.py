"""Observation of a store, for metrics: timed operations, and events of its nodes."""

import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeAlias, TypeVar

Observer: TypeAlias = Callable[[str, str, float], None]
"""Receives an operation's name, `ok` or the exception's name, and the seconds it took."""


FAILOVERS: Final = "failovers"
"""Failovers of the store to another primary."""
SLOTS_MOVED: Final = "slots_moved"
"""Slots of a Redis Cluster that moved to another primary, other than by a failover."""

Reporter: TypeAlias = Callable[[str, int], None]
"""Receives FAILOVERS or SLOTS_MOVED, and how many; for the metrics rummikub_store_<name>_total."""


class Observed(Protocol):
    """An object that reports its operations."""

    observe: Observer


_P = ParamSpec("_P")
_T = TypeVar("_T")
_S = TypeVar("_S", bound=Observed)
_Method: TypeAlias = Callable[Concatenate[_S, _P], Coroutine[Any, Any, _T]]


def unobserved(_operation: str, _result: str, _seconds: float) -> None:
    """Discards an observation."""


def unreported(_event: str, _count: int) -> None:
    """Discards an event."""


def timed(method: _Method[_S, _P, _T]) -> _Method[_S, _P, _T]:
    """Returns a coroutine method that reports each call to its object's `observe`, under the method's name."""
    operation: str = method.__name__

    @wraps(method)
    async def measure(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        started = time.perf_counter()
        result = "ok"
        try:
            return await method(self, *args, **kwargs)
        except Exception as error:
            result = type(error).__name__
            raise
        finally:
            self.observe(operation, result, time.perf_counter() - started)

    return measure
