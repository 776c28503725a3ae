"""Reads of all parts of a key, some of which may be on servers that do not reply."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Final, TypeAlias, TypeVar

LEFT_OUT_SECONDS: Final = 2.0
"""How long a part that failed is not asked. One whose server does not reply would hold up each call for a second."""

_T = TypeVar("_T")

Ask: TypeAlias = Callable[[Mapping[str, int]], Awaitable[Sequence[_T | BaseException]]]
"""Asks parts, each for so many entries, and returns the replies, or an error in place of one."""


class Parts:
    """The parts of a key, and which of them failed lately.

    Args:
        prefixes: Their prefixes.
    """

    def __init__(self, prefixes: Sequence[str]) -> None:
        self._prefixes = prefixes
        self._first = count()
        self._left_out_until: dict[str, float] = {}

    async def claim(self, limit: int, claim_in: Ask[Sequence[_T]]) -> list[_T]:
        """Returns at most `limit` entries from all parts but those that fail. Raises the error of one if all fail.

        Each round claims an equal share of what is left of the limit from every part that may have more, all at once.
        Each call begins with another part, so that no part is last each time.

        Args:
            limit: Most entries.
            claim_in: Claims at most so many entries of each part.
        """
        waiting = self._to_ask()
        found: list[_T] = []
        errors: list[BaseException] = []
        has_reply = False
        while waiting and len(found) < limit:
            share, more = divmod(limit - len(found), len(waiting))
            shares = {part: share + (place < more) for place, part in enumerate(waiting)}
            claims = await self._ask({part: some for part, some in shares.items() if some}, claim_in, errors)
            found += (entry for claimed in claims.values() for entry in claimed)
            has_reply = has_reply or bool(claims)
            waiting = [part for part in waiting if len(claims.get(part, ())) == shares[part]]
        if errors and not has_reply:
            raise errors[0]
        return found

    async def total(self, count_in: Ask[int]) -> int:
        """Returns the sum of the numbers of all parts but those that fail. Raises the error of one if all fail."""
        errors: list[BaseException] = []
        numbers = await self._ask(dict.fromkeys(self._to_ask(), 0), count_in, errors)
        if errors and not numbers:
            raise errors[0]
        return sum(numbers.values())

    def _to_ask(self) -> Sequence[str]:
        """Returns the parts that did not fail lately; all if all did."""
        now, first = asyncio.get_running_loop().time(), next(self._first) % len(self._prefixes)
        parts = (*self._prefixes[first:], *self._prefixes[:first])
        return [part for part in parts if self._left_out_until.get(part, 0.0) <= now] or parts

    async def _ask(self, asked: Mapping[str, int], ask: Ask[_T], errors: list[BaseException]) -> dict[str, _T]:
        """Returns the replies of parts. Adds the errors of the others, and leaves these parts out from now on."""
        replies: dict[str, _T] = {}
        for part, outcome in zip(asked, await ask(asked), strict=True):
            if isinstance(outcome, BaseException):
                errors.append(outcome)
                self._left_out_until[part] = asyncio.get_running_loop().time() + LEFT_OUT_SECONDS
            else:
                replies[part] = outcome
        return replies
