"""Claims from parts, some of which fail. test_cluster.py has those of a primary that does not reply."""

from collections.abc import Iterable, Mapping, Sequence

import pytest

from service.errors import StoreUnavailable
from service.storage.redis.parts import Parts


class Shelves:
    """Parts with entries; those without any fail."""

    def __init__(self, **entries: int) -> None:
        self.left = entries
        self.asked: list[str] = []

    async def claim(self, shares: Mapping[str, int]) -> Sequence[Sequence[str] | BaseException]:
        return [self._claim_in(part, some) for part, some in shares.items()]

    def _claim_in(self, part: str, limit: int) -> Sequence[str] | BaseException:
        left = self._count_in(part)
        if isinstance(left, BaseException):
            return left
        some = min(limit, left)
        self.left[part] -= some
        return [part] * some

    async def count(self, parts: Iterable[str]) -> Sequence[int | BaseException]:
        return list(map(self._count_in, parts))

    def _count_in(self, part: str) -> int | BaseException:
        self.asked.append(part)
        return self.left.get(part, StoreUnavailable(part))


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_a_claim_is_filled_from_the_parts_that_reply(limit: int) -> None:
    shelves, parts = Shelves(c=9), Parts(["a", "b", "c"])
    for _ in range(3 if limit < 3 else 1):
        shelves.left["c"] = 9
        assert await parts.claim(limit, shelves.claim) == ["c"] * limit


async def test_a_part_that_failed_is_left_out_for_a_while_also_of_counts() -> None:
    shelves, parts = Shelves(a=1, c=1), Parts(["a", "b", "c"])
    assert sorted(await parts.claim(5, shelves.claim)) == ["a", "c"]
    assert await parts.total(shelves.count) == 0
    assert shelves.asked.count("b") == 1


async def test_a_claim_fails_if_all_parts_fail_and_asks_all_of_them_again() -> None:
    shelves, parts = Shelves(), Parts(["a", "b"])
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await parts.claim(5, shelves.claim)
        with pytest.raises(StoreUnavailable):
            await parts.total(shelves.count)
    assert shelves.asked.count("a") == shelves.asked.count("b") == 4
    shelves.left = {"a": 1, "b": 1}
    assert await parts.total(shelves.count) == 2
