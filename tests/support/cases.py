"""Many cases in one test. A case of its own costs a test more than most calls do."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

AsyncTest = Callable[..., Awaitable[None]]


def each_of(name: str, values: Iterable[Any], ids: Iterable[object] | None = None) -> Callable[[AsyncTest], AsyncTest]:
    """Runs a test for each value of an argument, and reports all that fail.

    It takes the place of `pytest.mark.parametrize` where cases need no new fixtures.
    """
    values = list(values)
    cases = list(zip(ids or map(repr, values), values, strict=True))

    def decorate(test: AsyncTest) -> AsyncTest:
        signature = inspect.signature(test)
        assert cases
        assert name in signature.parameters

        @functools.wraps(test)
        async def every_case(**fixtures: Any) -> None:  # noqa: ANN401 - of any test
            failures = []
            for case, value in cases:
                try:
                    await test(**fixtures, **{name: value})
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - whatever fails a test
                    failure.add_note(f"{name} = {case}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(cases)} cases failed", failures)

        others = [parameter for parameter in signature.parameters.values() if parameter.name != name]
        every_case.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined] # pytest reads it
        return every_case

    return decorate
