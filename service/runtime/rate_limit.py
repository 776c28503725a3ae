"""Token buckets: one for each address, one for each key that has a quota, and for holders that a caller names."""

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from service.errors import Fault, StoreUnavailable
from service.runtime.origins import Origin

HOLDERS_MAX: Final = 65_536
SECOND: Final = 1.0
MINUTE: Final = 60.0


class TokenBuckets:
    """A bucket of tokens for each holder. An idle holder may take one period's tokens at once.

    Args:
        period: The time in which a bucket is filled, in seconds.
        holders_max: Most holders with a bucket. The one that was idle longest is evicted and starts with a full bucket.
    """

    def __init__(self, period: float, holders_max: int = HOLDERS_MAX) -> None:
        self._period = period
        self._holders_max = holders_max
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By holder: the tokens left, and the time of the last update."""

    def take(self, limits: Iterable[tuple[str, int]], now: float) -> list[str]:
        """Takes a token of each holder, or of none; returns the holders that have none left.

        Args:
            limits: The holders, each with the size of its bucket.
            now: Seconds, by one clock for all calls.
        """
        taken = [(holder, self._left(holder, most, now)) for holder, most in limits]
        empty = [holder for holder, left in taken if left < 1]
        for holder, left in taken:
            self._buckets[holder] = (left - (not empty), now)
            self._buckets.move_to_end(holder)
        while len(self._buckets) > self._holders_max:
            self._buckets.popitem(last=False)
        return empty

    def _left(self, holder: str, most: int, now: float) -> float:
        left, since = self._buckets.get(holder, (float(most), now))
        return min(most, left + max(0.0, now - since) * most / self._period)

    def give_back(self, limits: Iterable[tuple[str, int]]) -> None:
        """Gives each holder the last token back."""
        for holder, most in limits:
            if holder in self._buckets:
                left, since = self._buckets[holder]
                self._buckets[holder] = (min(most, left + 1), since)


class RateLimit:
    """A limit on an action of each address, and of each key with a quota.

    An idle holder may use one period's actions at once.

    Args:
        actions: Actions of one address in a period; 0: no limit.
        refusal: The exception for more.
        quota: The name of a key's limit for this action (origins.QUOTAS).
        period: The period, in seconds.
        key_refusal: The exception if only the key's limit is exceeded; None: the same.
        holders_max: Most holders with a bucket.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a limit is
        self,
        actions: int,
        refusal: Callable[[], Fault],
        quota: str,
        period: float = MINUTE,
        key_refusal: Callable[[], Fault] | None = None,
        holders_max: int = HOLDERS_MAX,
    ) -> None:
        self._actions = actions
        self._refusal = refusal
        self._key_refusal = key_refusal or refusal
        self._quota = quota
        self._buckets = TokenBuckets(period, holders_max)

    def take(self, origin: Origin, now: float) -> None:
        """Counts an action. Raises the refusal, without effect.

        Args:
            origin: Who acts.
            now: Seconds, by a monotonic clock.
        """
        exceeded = self._buckets.take(self._limits(origin), now)
        if exceeded:
            raise self._refusal() if origin.address in exceeded else self._key_refusal()

    def _limits(self, origin: Origin) -> Iterator[tuple[str, int]]:
        """Yields each holder with its limit."""
        address, key = origin
        if self._actions and not (key and key.is_proxy):
            yield address, self._actions
        if key and self._quota in key.quotas:
            yield key.holder, key.quotas[self._quota]

    def give_back(self, origin: Origin) -> None:
        """Takes back the last action of an origin."""
        self._buckets.give_back(self._limits(origin))


class Attempts:
    """Counts an action once that several callers attempt at the same time, and not at all if none of them succeeds.

    Args:
        limit: Counts the actions.
    """

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._under_way: dict[Hashable, _Attempt] = {}

    @contextlib.contextmanager
    def attempt(self, action: Hashable, origin: Origin, now: float) -> Iterator[None]:
        """Counts an action for its first caller.

        An exception means that this caller's attempt has failed, except StoreUnavailable and a cancellation: then the
        store may have applied it.

        Args:
            action: What is attempted, the same for all callers.
            origin: Who attempts it.
            now: Seconds, by a monotonic clock.

        Raises:
            Fault: The limit's refusal.
        """
        attempt = self._under_way.get(action)
        if attempt is None:
            self._limit.take(origin, now)
            attempt = self._under_way[action] = _Attempt(origin)
        attempt.callers += 1
        may_have_happened = True
        try:
            yield
        except Exception as error:
            may_have_happened = isinstance(error, StoreUnavailable)
            raise
        finally:
            attempt.has_happened |= may_have_happened
            attempt.callers -= 1
            if not attempt.callers:
                del self._under_way[action]
                if not attempt.has_happened:
                    self._limit.give_back(attempt.origin)


@dataclass(slots=True)
class _Attempt:
    """An action under way: who counts for it, and how many callers attempt it."""

    origin: Origin
    callers: int = 0
    has_happened: bool = False
