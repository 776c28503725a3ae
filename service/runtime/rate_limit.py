"""Token buckets: one for each address, and one for each key that has a quota."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final

from service.errors import Fault
from service.runtime.origins import Origin

HOLDERS_MAX: Final = 65_536
"""Most addresses and keys with a bucket. The one that was idle longest is evicted and starts with a full bucket."""
SECOND: Final = 1.0
MINUTE: Final = 60.0


class RateLimit:
    """A limit on an action of each address, and of each key with a quota. Whoever was idle may do one period's at once.

    Args:
        actions: Actions of one address in a period; 0: no limit.
        refusal: The exception for more.
        quota: The name of a key's limit for this action (origins.QUOTAS).
        period: The period, in seconds.
    """

    def __init__(self, actions: int, refusal: Callable[[], Fault], quota: str, period: float = MINUTE) -> None:
        self._actions = actions
        self._refusal = refusal
        self._quota = quota
        self._period = period
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By address or key: the tokens left, and the time of the last update."""

    def take(self, origin: Origin, now: float) -> None:
        """Counts an action. Raises the refusal, without effect.

        Args:
            origin: Who acts.
            now: Seconds, by a monotonic clock.
        """
        taken = [(holder, self._left(holder, most, now)) for holder, most in self._limits(origin)]
        is_allowed = all(left >= 1 for _, left in taken)
        for holder, left in taken:
            self._buckets[holder] = (left - is_allowed, now)
            self._buckets.move_to_end(holder)
        while len(self._buckets) > HOLDERS_MAX:
            self._buckets.popitem(last=False)
        if not is_allowed:
            raise self._refusal()

    def _limits(self, origin: Origin) -> Iterator[tuple[str, int]]:
        """Yields who may do how much in a period."""
        address, key = origin
        if self._actions and not (key and key.is_proxy):
            yield address, self._actions
        if key and self._quota in key.quotas:
            yield key.holder, key.quotas[self._quota]

    def _left(self, holder: str, most: int, now: float) -> float:
        left, since = self._buckets.get(holder, (float(most), now))
        return min(most, left + (now - since) * most / self._period)

    def give_back(self, origin: Origin) -> None:
        """Takes back the last action of an origin."""
        for holder, most in self._limits(origin):
            if holder in self._buckets:
                left, since = self._buckets[holder]
                self._buckets[holder] = (min(most, left + 1), since)
