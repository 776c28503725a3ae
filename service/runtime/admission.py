"""Admission control: bounds on what all callers together, each address, and each key may hold at once."""

import contextlib
import math
import threading
from collections.abc import Iterator
from typing import Final

from service.errors import Limit, Overloaded
from service.runtime.origins import Key, Origin

SERVER_METHODS: Final = ("/grpc.health.v1.Health/", "/grpc.reflection.")
"""Path prefixes of health and reflection, which need no key, and are served even while the server stops."""

RESERVED_FRACTION: Final = 0.1
"""The fraction of a resource that is reserved for small holders."""
SMALL_HOLDER_FRACTION: Final = 0.002
"""An address is a small holder while it holds at most this fraction of a resource, or one unit."""


class Admission:
    """A bounded resource that addresses share fairly. Thread-safe.

    One address may hold `peer_share` of the resource while no other holds any. In general, what it holds may be at most
    a fixed ratio of what is free, so its bound shrinks as the resource fills up and some of it stays free. The last
    part is reserved for small holders. A key may have a quota besides.

    Args:
        capacity: The bound, in any unit: calls, streams, bytes.
        peer_share: The share of it that one address may hold alone, above 0. With 1, addresses have no bound.
        limit: The name of this limit in refusals.
        quota: The name of a key's bound for this resource (origins.QUOTAS).
    """

    def __init__(self, capacity: int, peer_share: float, limit: Limit, quota: str = "") -> None:
        self._capacity = capacity
        self._is_shared = peer_share < 1
        self._ratio = peer_share / (1 - peer_share) if self._is_shared else math.inf
        self._unreserved = capacity - int(capacity * RESERVED_FRACTION)
        self._small = max(1, int(capacity * SMALL_HOLDER_FRACTION))
        self._limit = limit
        self._quota = quota
        self._held: dict[str, int] = {}
        self._lock = threading.Lock()
        self.total = 0
        """The amount held by all callers."""

    def enter(self, origin: Origin, size: int = 1) -> None:
        """Acquires an amount for a caller. Raises Overloaded, without effect, if a bound would be exceeded."""
        address, key = origin
        held = self._held
        with self._lock:
            if not self._has_room(origin, size):
                raise Overloaded(self._limit)
            if key is not None and not self._is_within_quota(key, size):
                raise Overloaded(self._limit, is_of_key=True)
            self.total += size
            held[address] = held.get(address, 0) + size
            if key is not None:
                held[key.holder] = held.get(key.holder, 0) + size

    def _has_room(self, origin: Origin, size: int) -> bool:
        total = self.total + size
        if total > self._capacity:
            return False
        if not self._is_shared or (origin.key is not None and origin.key.is_proxy):  # not bounded
            return True
        held = self._held.get(origin.address, 0) + size
        return held <= self._small or (total <= self._unreserved and held <= self._ratio * (self._capacity - total))

    def is_bounded(self, origin: Origin) -> bool:
        """Returns whether the address of a caller has a bound: a proxy's has none."""
        return self._is_shared and not (origin.key is not None and origin.key.is_proxy)

    def _is_within_quota(self, key: Key, size: int) -> bool:
        return self._held.get(key.holder, 0) + size <= key.quotas.get(self._quota, self._capacity)

    def leave(self, origin: Origin, size: int = 1) -> None:
        """Releases an amount that `enter` acquired for the same origin."""
        with self._lock:
            self.total -= size
            for holder in (origin.address,) if origin.key is None else (origin.address, origin.key.holder):
                self._held[holder] -= size
                if not self._held[holder]:
                    del self._held[holder]

    def try_enter(self, origin: Origin, size: int = 1) -> bool:
        """Acquires an amount for a caller unless a bound would be exceeded; returns whether it did."""
        try:
            self.enter(origin, size)
        except Overloaded:
            return False
        return True

    @contextlib.contextmanager
    def holding(self, origin: Origin) -> Iterator[None]:
        """Holds one unit within the context. Raises Overloaded."""
        self.enter(origin)
        try:
            yield
        finally:
            self.leave(origin)
