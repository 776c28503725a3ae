"""Observation of a store, for metrics: timed operations, and events of its nodes."""

import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
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


def _unobserved(_operation: str, _result: str, _seconds: float) -> None:
    """Discards an observation."""


def _unreported(_event: str, _count: int) -> None:
    """Discards an event."""


@dataclass(slots=True)
class Reports:
    """Receives what happens in a store.

    Attributes:
        operation: Receives each operation.
        event: Receives failovers and moved slots.
    """

    operation: Observer = _unobserved
    event: Reporter = _unreported


class Reporting(Protocol):
    """An object that reports its operations."""

    reports: Reports


_P = ParamSpec("_P")
_T = TypeVar("_T")
_S = TypeVar("_S", bound=Reporting)
_Method: TypeAlias = Callable[Concatenate[_S, _P], Coroutine[Any, Any, _T]]


def timed(operation: str) -> Callable[[_Method[_S, _P, _T]], _Method[_S, _P, _T]]:
    """Returns a decorator of coroutine methods that reports each call to its object's `reports`.

    Args:
        operation: The operation's name in metrics and traces.
    """

    def decorate(method: _Method[_S, _P, _T]) -> _Method[_S, _P, _T]:
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
                self.reports.operation(operation, result, time.perf_counter() - started)

        vars(measure)["operation_name"] = operation
        return measure

    return decorate
