"""Timing of store operations, for the metric rummikub_store_seconds."""

import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

Observer: TypeAlias = Callable[[str, str, float], None]
"""Receives an operation's name, `ok` or the exception's name, and the seconds it took."""


class Observed(Protocol):
    """An object that reports its operations."""

    observe: Observer


_P = ParamSpec("_P")
_T = TypeVar("_T")
_S = TypeVar("_S", bound=Observed)
_Method: TypeAlias = Callable[Concatenate[_S, _P], Coroutine[Any, Any, _T]]


def unobserved(_operation: str, _result: str, _seconds: float) -> None:
    """Discards an observation."""


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
