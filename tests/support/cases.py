"""Many cases in one test. A case of its own costs a test more than most calls do."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

Test = Callable[..., Any]
GROUP = "group"
"""The parameter of a test that runs once for each group of cases."""


def each_of(
    name: str,
    values: Iterable[Any],
    ids: Iterable[object] | Callable[[Any], object] = repr,
    by: Callable[[Any], str] | None = None,
) -> Callable[[Test], Test]:
    """Runs a test for each value of an argument, and reports all that fail.

    It takes the place of `pytest.mark.parametrize` where cases need no new fixtures.

    Args:
        name: The argument, or several with commas between; a value is then a tuple.
        values: The values.
        ids: What the report calls them: a function, or as many names.
        by: Returns the group of a value. Each group is a test of its own; None: all values are one test.
    """
    values, names = list(values), name.split(", ")
    keys = [by(value) if by else "" for value in values]
    cases = list(zip(keys, map(ids, values) if callable(ids) else ids, values, strict=True))
    assert cases

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        assert set(names) <= set(signature.parameters)
        others = [parameter for parameter in signature.parameters.values() if parameter.name not in names]
        if by:
            others.append(inspect.Parameter(GROUP, inspect.Parameter.KEYWORD_ONLY))

        def calls(group: str, fixtures: dict[str, Any]) -> Iterator[tuple[object, dict[str, Any]]]:
            for key, case, value in cases:
                if key == group:
                    yield case, fixtures | dict(zip(names, value if len(names) > 1 else [value], strict=True))

        @functools.wraps(test)
        def run(group: str = "", **fixtures: Any) -> None:  # noqa: ANN401 - of any test
            with _reported(name) as tried:
                for case, arguments in calls(group, fixtures):
                    with tried(case):
                        test(**arguments)

        @functools.wraps(test)
        async def run_async(group: str = "", **fixtures: Any) -> None:  # noqa: ANN401 - as above
            with _reported(name) as tried:
                for case, arguments in calls(group, fixtures):
                    with tried(case):
                        await test(**arguments)

        every_case: Any = run_async if inspect.iscoroutinefunction(test) else run
        every_case.__signature__ = signature.replace(parameters=others)  # pytest reads it
        return pytest.mark.parametrize(GROUP, dict.fromkeys(keys))(every_case) if by else every_case  # type: ignore[no-any-return]

    return decorate


@contextmanager
def _reported(name: str) -> Iterator[Callable[[object], Any]]:
    """Yields the context of a case. Raises what failed in all of them, each with a note that names the case."""
    failures: list[BaseException] = []
    count = 0

    @contextmanager
    def tried(case: object) -> Iterator[None]:
        nonlocal count
        count += 1
        try:
            yield
        except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - whatever fails a test
            failure.add_note(f"{name} = {case}")
            failures.append(failure)

    yield tried
    assert count
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {count} cases failed", failures)
