"""Admission control: bounds on what all callers together, and each peer address, may hold at once."""

import ipaddress
import math
import threading
from collections import Counter
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from service.errors import Overloaded

SERVER_METHODS: Final = ("/grpc.health.v1.Health/", "/grpc.reflection.")
"""Path prefixes of health and reflection, which are served even while the server stops."""

IPV6_PREFIX: Final = 64
"""Bits of an IPv6 address that identify a peer: one host usually has the whole /64 network."""


def peer_address(peer: str) -> str:
    """Returns the address of a gRPC peer (`ipv4:192.0.2.1:50000`) without its port; for IPv6 the network."""
    return _address(peer.rpartition(":")[0])


@lru_cache(maxsize=4_096)
def _address(host: str) -> str:
    scheme, _, text = host.partition(":")
    if scheme != "ipv6":
        return host
    try:
        address = ipaddress.IPv6Address(unquote(text).strip("[]"))
    except ValueError:  # gRPC does not write other forms today; the text still distinguishes hosts
        return host
    if address.ipv4_mapped:
        return f"ipv4:{address.ipv4_mapped}"
    return f"ipv6:{ipaddress.IPv6Network((int(address) >> IPV6_PREFIX << IPV6_PREFIX, IPV6_PREFIX))}"


class Admission:
    """A bounded resource, with an equal bound for each peer. Thread-safe.

    Args:
        capacity: The bound, in any unit: calls, streams, bytes.
        peer_share: The share of it that one peer may hold, above 0, at most 1.
    """

    def __init__(self, capacity: int, peer_share: float) -> None:
        self._capacity = capacity
        self._peer_capacity = min(capacity, max(1, math.ceil(capacity * peer_share)))
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.total = 0
        """The amount held by all peers."""

    def enter(self, peer: str, size: int = 1) -> None:
        """Acquires an amount for a peer. Raises Overloaded, without effect, if a bound would be exceeded."""
        with self._lock:
            held = self._held[peer] + size
            if self.total + size > self._capacity or held > self._peer_capacity:
                if held == size:
                    del self._held[peer]
                raise Overloaded
            self._held[peer] = held
            self.total += size

    def leave(self, peer: str, size: int = 1) -> None:
        """Releases an amount that `enter` acquired."""
        with self._lock:
            self.total -= size
            self._held[peer] -= size
            if not self._held[peer]:
                del self._held[peer]


class CallAdmission:
    """Bounds the calls in progress. Health and reflection have a separate bound, so health answers under load.

    Args:
        max_calls: Most calls at a time.
        peer_share: The share of them that one peer may have.
    """

    def __init__(self, max_calls: int, peer_share: float) -> None:
        self.calls = Admission(max_calls, peer_share)
        self._server_calls = Admission(max_calls, peer_share)

    def enter(self, path: str, peer: str) -> None:
        """Admits a call. Raises Overloaded."""
        (self._server_calls if path.startswith(SERVER_METHODS) else self.calls).enter(peer)

    def leave(self, path: str, peer: str) -> None:
        """Releases an admitted call."""
        (self._server_calls if path.startswith(SERVER_METHODS) else self.calls).leave(peer)
