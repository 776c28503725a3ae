"""A token bucket for each peer address."""

from collections import OrderedDict
from typing import Final

from service.errors import TooManyGames

PEERS_MAX: Final = 65_536
"""Most addresses with a bucket. The one that was idle longest is evicted and starts with a full bucket."""
MINUTE: Final = 60.0


class RateLimit:
    """A limit on new games. A peer that was idle for a minute may create a minute's worth at once.

    Args:
        per_minute: New games of one peer in a minute; 0: no limit.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By address: the tokens left, and the time of the last update."""

    def take(self, peer: str, now: float) -> None:
        """Counts a new game of a peer. Raises TooManyGames, without effect.

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
            raise TooManyGames
