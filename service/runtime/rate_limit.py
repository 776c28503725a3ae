"""A limit of how often each peer may do something: a token bucket for each address."""

from collections import OrderedDict
from typing import Final

from service.errors import TooManyGames

PEERS_MAX: Final = 65_536
"""Most addresses that are remembered. The one that was idle for longest is forgotten first, and starts afresh."""
MINUTE: Final = 60.0


class RateLimit:
    """A limit of new games. A peer that was idle for a minute may create a minute's worth at once.

    Args:
        per_minute: New games of one peer in a minute; 0: no limit.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By address: what was left, and when."""

    def take(self, peer: str, now: float) -> None:
        """Counts a new game of a peer. Raises TooManyGames, without effect.

        Args:
            peer: The peer's address.
            now: Seconds, by any clock that does not go back.
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
