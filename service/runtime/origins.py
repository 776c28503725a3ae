"""Where a call comes from: the client's address, and the key that it sends. Limits apply to both.

The address is the peer's, or the one that trusted proxies append to x-forwarded-for (RUMMIKUB_TRUSTED_PROXIES).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from service.runtime.join_tickets import TicketPolicy

IPAddress: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Metadata: TypeAlias = Iterable[tuple[str, str | bytes]]

IPV6_PREFIX: Final = 64
"""Bits of an IPv6 address that identify a peer: one host usually has the whole /64 network."""

FORWARDED_FOR: Final = "x-forwarded-for"
TEXT_MAX: Final = 64
"""Most characters of an address in it, with a port."""

CALLS: Final = "calls"
STREAMS: Final = "streams"
WATCHES: Final = "watches"
SEARCHES: Final = "searches"
GAMES_PER_MINUTE: Final = "games_per_minute"
JOIN_GUESSES_PER_MINUTE: Final = "join_guesses_per_minute"
DRAFTS_PER_SECOND: Final = "drafts_per_second"
CHANGES_PER_SECOND: Final = "changes_per_second"
QUOTAS: Final = (
    CALLS,
    STREAMS,
    WATCHES,
    SEARCHES,
    GAMES_PER_MINUTE,
    JOIN_GUESSES_PER_MINUTE,
    DRAFTS_PER_SECOND,
    CHANGES_PER_SECOND,
)
"""The limits that a key may have."""

POSITION_SEARCHES: Final = "position_searches"
"""The right to send positions, tiles and records to be searched: with it, the option hints can be evaded."""
REISSUE_SEAT_TOKENS: Final = "reissue_seat_tokens"
"""The right to replace the token of any seat in the key's games."""
RIGHTS: Final = (POSITION_SEARCHES, REISSUE_SEAT_TOKENS)
"""The rights that a key may have."""
KEYLESS_RIGHTS: Final = frozenset({POSITION_SEARCHES})
"""The rights of callers where the server has no keys. A key has none that its entry does not name."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key that callers send: who they are, and what they may do.

    Attributes:
        name: Its name, which its games carry.
        services: The services that it may call; None for all.
        labels: The labels of games that it may set and search for; None for all.
        quotas: Its limits, by the names in QUOTAS. It has no limit of its own where it has no entry.
        is_proxy: Whether its callers share few addresses, so limits for each address do not apply to them.
        rights: The rights that it has, by the names in RIGHTS.
        tickets: How its players prove who they are; None: they make claims.
    """

    name: str
    services: frozenset[str] | None = None
    labels: frozenset[str] | None = None
    quotas: Mapping[str, int] = field(default_factory=dict)
    is_proxy: bool = False
    rights: frozenset[str] = frozenset()
    tickets: TicketPolicy | None = None

    @property
    def holder(self) -> str:
        """The name under which limits count what the key holds. No address has this form."""
        return f"key:{self.name}"


class Origin(NamedTuple):
    """Where a call comes from.

    Attributes:
        address: The client's address: the peer's (peer_address), or the one that a trusted proxy appends.
        key: The key that was sent, if the server has keys.
    """

    address: str
    key: Key | None = None

    @property
    def holder(self) -> str:
        """The name under which it takes turns: that of a proxy's key, because its callers share addresses."""
        return self.key.holder if self.key is not None and self.key.is_proxy else self.address


def peer_address(peer: str) -> str:
    """Returns the address of a gRPC peer (`ipv4:192.0.2.1:50000`) without its port; for IPv6 the network."""
    return _address(peer.rpartition(":")[0])


@lru_cache(maxsize=4_096)
def _address(host: str) -> str:
    address = ip_address_of(host)
    return host if address is None else name_of(address)  # all Unix sockets share a name


def ip_address_of(host: str) -> IPAddress | None:
    """Returns the address in gRPC's name of a host (`ipv4:192.0.2.1`); None for others, such as Unix sockets."""
    scheme, _, text = host.partition(":")
    return parse_ip(unquote(text).strip("[]")) if scheme in {"ipv4", "ipv6"} else None


def parse_ip(text: str) -> IPAddress | None:
    """Returns an address from its text; None for other texts. An IPv4 address within IPv6 is the IPv4 address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address


def name_of(address: IPAddress) -> str:
    """Returns the name under which limits count an address: for IPv6 that of its network."""
    if isinstance(address, IPv4Address):
        return f"ipv4:{address}"
    return f"ipv6:{IPv6Network((int(address) >> IPV6_PREFIX << IPV6_PREFIX, IPV6_PREFIX))}"


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
