import asyncio
from typing import Any

import pytest

from support.cases import GROUP, each_of


def test_every_case_runs_and_each_that_fails_is_reported() -> None:
    tried = []

    @each_of("number, text", [(1, "a"), (2, "b"), (3, "c")], by=lambda case: "odd" if case[0] % 2 else "even")
    def test(number: int, text: str, fixture: list[str]) -> None:
        tried.append(text)
        fixture.append(text)
        assert number != 3
        if number == 1:
            pytest.fail("the first")

    async def async_test(number: int) -> None:
        await asyncio.sleep(0)
        assert number < 2

    texts: list[str] = []
    with pytest.raises(BaseExceptionGroup) as odd:
        test(group="odd", fixture=texts)
    test(group="even", fixture=texts)
    assert tried == texts == ["a", "c", "b"]
    assert [getattr(failure, "__notes__", None) for failure in odd.value.exceptions] == [
        ["number, text = (1, 'a')"],
        ["number, text = (3, 'c')"],
    ]
    with pytest.raises(ExceptionGroup, match="2 of 4 cases failed"):
        asyncio.run(each_of("number", range(4))(async_test)())


def test_a_group_is_a_test_and_each_has_cases() -> None:
    def test(case: str, fixture: object) -> None:
        assert case
        assert fixture

    grouped: Any = each_of("case", ["ab", "ac", "b"], by=lambda case: case[0])(test)
    [mark] = grouped.pytestmark
    assert (mark.args[0], [*mark.args[1]]) == (GROUP, ["a", "b"])
    with pytest.raises(AssertionError):
        grouped(group="c", fixture=1)
    with pytest.raises(AssertionError):
        each_of("case", [])
