"""Proxies that append the addresses of their clients to x-forwarded-for (RUMMIKUB_TRUSTED_PROXIES)."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network
from typing import Final, TypeAlias

from service.runtime.keys import Metadata
from service.runtime.origins import IPAddress, ip_address_of, name_of, parse_ip, peer_address

Network: TypeAlias = IPv4Network | IPv6Network

FORWARDED_FOR: Final = "x-forwarded-for"
TEXT_MAX: Final = 64
"""Most characters of an address in it, with a port."""


class TrustedProxies:
    """Finds the addresses of clients behind proxies.

    Args:
        networks: The networks of the proxies that call the server. The metadata of other peers is ignored.
        hops: How many proxies a call passes. Each appends the address that called it, so the client's is that many
            places from the end; a client can write anything before that.
    """

    def __init__(self, networks: Iterable[Network], hops: int = 1) -> None:
        self._networks = tuple(networks)
        self._hops = hops
        self._is_proxy = lru_cache(maxsize=1_024)(self._is_in_networks)

    def address_of(self, peer: str, metadata: Metadata | None) -> str:
        """Returns the address of a call's client, in the form of peer_address.

        Args:
            peer: gRPC's name of the peer; its own address is returned if it is no proxy or appends none.
            metadata: The call's metadata.
        """
        if self._networks and self._is_proxy(peer.rpartition(":")[0]):
            forwarded = ",".join(text for key, text in metadata or () if key == FORWARDED_FOR and isinstance(text, str))
            client = _client(forwarded.split(",")[-self._hops :][0].strip()[:TEXT_MAX])
            if client:
                return client
        return peer_address(peer)

    def _is_in_networks(self, host: str) -> bool:
        address = ip_address_of(host)
        return address is not None and any(address in network for network in self._networks)


@lru_cache(maxsize=4_096)
def _client(text: str) -> str:
    """Returns the name of an address with or without a port; "" for other texts."""
    address = parse_ip(text) or _without_port(text)
    return "" if address is None else name_of(address)


def _without_port(text: str) -> IPAddress | None:
    """Returns the address in `192.0.2.1:4711`, `[2001:db8::1]` or `[2001:db8::1]:4711`; None for other texts."""
    if text.startswith("["):
        return parse_ip(text[1:].partition("]")[0])
    return parse_ip(text.rpartition(":")[0])
