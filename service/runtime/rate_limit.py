"""A token bucket for each peer address."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from service.errors import Fault

PEERS_MAX: Final = 65_536
"""Most addresses with a bucket. The one that was idle longest is evicted and starts with a full bucket."""
MINUTE: Final = 60.0


class RateLimit:
    """A limit on an action of each peer. A peer that was idle for a minute may do a minute's worth at once.

    Args:
        per_minute: Actions of one peer in a minute; 0: no limit.
        refusal: The exception for more.
    """

    def __init__(self, per_minute: int, refusal: Callable[[], Fault]) -> None:
        self._per_minute = per_minute
        self._refusal = refusal
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By address: the tokens left, and the time of the last update."""

    def take(self, peer: str, now: float) -> None:
        """Counts an action of a peer. Raises the refusal, without effect.

        Args:
            peer: The peer's address.
            now: Seconds, by a monotonic clock.
        """
        if not self._per_minute:
            return
        left, since = self._buckets.pop(peer, (float(self._per_minute), now))
        left = min(self._per_minute, left + (now - since) * self._per_minute / MINUTE)
        is_allowed = left >= 1
        self._buckets[peer] = (left - is_allowed, now)
        if len(self._buckets) > PEERS_MAX:
            self._buckets.popitem(last=False)
        if not is_allowed:
            raise self._refusal()

    def give_back(self, peer: str) -> None:
        """Takes back the last action of a peer."""
        if peer in self._buckets:
            left, since = self._buckets[peer]
            self._buckets[peer] = (min(self._per_minute, left + 1), since)
