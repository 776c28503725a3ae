"""Proxies whose word on their clients' addresses is trusted (RUMMIKUB_TRUSTED_PROXIES)."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network
from typing import Final, TypeAlias

from service.runtime.origins import IPAddress, ip_address_of, name_of, parse_ip, peer_address

FORWARDED_FOR: Final = "x-forwarded-for"
"""The metadata in which each proxy appends the address that it was called from."""

Metadata: TypeAlias = Iterable[tuple[str, str | bytes]]
Network: TypeAlias = IPv4Network | IPv6Network


class TrustedProxies:
    """Finds the addresses of clients behind trusted proxies.

    Args:
        networks: The networks of the proxies.
    """

    def __init__(self, networks: Iterable[Network]) -> None:
        self._networks = tuple(networks)
        self._client = lru_cache(maxsize=4_096)(self._find_client)

    def address_of(self, peer: str, metadata: Metadata | None) -> str:
        """Returns the address of a call's client, in the form of peer_address.

        It is the newest address in x-forwarded-for that is not a proxy's: a client can write anything before that.
        It is the peer's own if the peer is no proxy, or tells no address.

        Args:
            peer: gRPC's name of the peer.
            metadata: The call's metadata.
        """
        if not self._networks:
            return peer_address(peer)
        forwarded = [text for key, text in metadata or () if key == FORWARDED_FOR and isinstance(text, str)]
        return self._client(peer.rpartition(":")[0], ",".join(forwarded)) if forwarded else peer_address(peer)

    def _find_client(self, host: str, forwarded: str) -> str:
        client = ip_address_of(host)
        for text in reversed(forwarded.split(",")):
            if client is None or not self._is_proxy(client):
                break
            told = parse_ip(text.strip())
            if told is None:  # whoever called the last proxy wrote it
                break
            client = told
        return peer_address(f"{host}:0") if client is None else name_of(client)

    def _is_proxy(self, address: IPAddress) -> bool:
        return any(address in network for network in self._networks)
