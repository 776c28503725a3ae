"""Admission control: how much of a server's room all callers, and each peer address, may hold at once."""

import ipaddress
import math
import threading
from collections import Counter
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from service.errors import Overloaded

SERVER_METHODS: Final = ("/grpc.health.v1.Health/", "/grpc.reflection.")
"""How the paths of methods about the server itself begin. They are answered at any time."""

IPV6_PREFIX: Final = 64
"""Bits of an IPv6 address that name a peer: one host usually has all addresses of such a network."""


def peer_address(peer: str) -> str:
    """Returns the address of a gRPC peer (`ipv4:192.0.2.1:50000`) without its port; of IPv6 the network."""
    return _address(peer.rpartition(":")[0])


@lru_cache(maxsize=4_096)
def _address(host: str) -> str:
    scheme, _, text = host.partition(":")
    if scheme != "ipv6":
        return host
    try:
        address = ipaddress.IPv6Address(unquote(text).strip("[]"))
    except ValueError:  # a form that gRPC does not write today; the text still tells hosts apart
        return host
    if address.ipv4_mapped:
        return f"ipv4:{address.ipv4_mapped}"
    return f"ipv6:{ipaddress.IPv6Network((int(address) >> IPV6_PREFIX << IPV6_PREFIX, IPV6_PREFIX))}"


class Admission:
    """A bounded room that callers share, with an equal bound for each peer. Threads may share it.

    Args:
        most: How much fits, in any unit: calls, streams, bytes.
        peer_share: The part of it that one peer may hold, above 0, at most 1.
    """

    def __init__(self, most: int, peer_share: float) -> None:
        self._most = most
        self._most_of_peer = min(most, max(1, math.ceil(most * peer_share)))
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.total = 0
        """How much is held now."""

    def enter(self, peer: str, size: int = 1) -> None:
        """Takes room for a peer. Raises Overloaded, without effect, if there is none."""
        with self._lock:
            held = self._held[peer] + size
            if self.total + size > self._most or held > self._most_of_peer:
                if held == size:
                    del self._held[peer]
                raise Overloaded
            self._held[peer] = held
            self.total += size

    def leave(self, peer: str, size: int = 1) -> None:
        """Gives back what `enter` took."""
        with self._lock:
            self.total -= size
            self._held[peer] -= size
            if not self._held[peer]:
                del self._held[peer]


class CallRoom:
    """Room for calls. Calls about the server itself have as much of their own, so that health answers under load.

    Args:
        most: Most calls at a time.
        peer_share: The part of them that one peer may have.
    """

    def __init__(self, most: int, peer_share: float) -> None:
        self.calls = Admission(most, peer_share)
        self._server_calls = Admission(most, peer_share)

    def enter(self, path: str, peer: str) -> None:
        """Counts a call in. Raises Overloaded."""
        (self._server_calls if path.startswith(SERVER_METHODS) else self.calls).enter(peer)

    def leave(self, path: str, peer: str) -> None:
        """Counts a call out."""
        (self._server_calls if path.startswith(SERVER_METHODS) else self.calls).leave(peer)
