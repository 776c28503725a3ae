"""Trusted proxies: the address that limits count for a call through them."""

from ipaddress import ip_network

import pytest

from service.runtime.origins import TrustedProxies
from service.settings import Settings

NETWORKS = tuple(ip_network(text) for text in ("10.0.0.0/8", "fd00::/8"))
EDGE = "ipv4:10.0.0.1:50000"


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        (EDGE, ["192.0.2.1"], "ipv4:192.0.2.1"),
        ("ipv6:%5Bfd00::1%5D:1", ["192.0.2.1"], "ipv4:192.0.2.1"),
        ("ipv6:%5B::ffff:10.0.0.1%5D:1", ["192.0.2.1"], "ipv4:192.0.2.1"),
        (EDGE, ["2001:db8:1:2:3::4"], "ipv6:2001:db8:1:2::/64"),
        (EDGE, ["::ffff:192.0.2.1"], "ipv4:192.0.2.1"),
        # with a port
        (EDGE, ["192.0.2.1:4711"], "ipv4:192.0.2.1"),
        (EDGE, ["[2001:db8:1:2::4]"], "ipv6:2001:db8:1:2::/64"),
        (EDGE, ["[2001:db8:1:2::4]:4711"], "ipv6:2001:db8:1:2::/64"),
        # a client can write anything before the address that the proxy appends
        (EDGE, ["198.51.100.7, 192.0.2.1"], "ipv4:192.0.2.1"),
        (EDGE, ["198.51.100.7", "192.0.2.1"], "ipv4:192.0.2.1"),
        (EDGE, ["unknown, 192.0.2.1"], "ipv4:192.0.2.1"),
        # also if the proxy was called from its own network
        (EDGE, ["198.51.100.7, 10.0.0.7"], "ipv4:10.0.0.7"),
        # no proxy, or one that appends no address
        ("ipv4:192.0.2.9:1", ["192.0.2.1"], "ipv4:192.0.2.9"),
        ("unix:/run/socket", ["192.0.2.1"], "unix"),
        (EDGE, [], "ipv4:10.0.0.1"),
        (EDGE, [""], "ipv4:10.0.0.1"),
        (EDGE, ["unknown"], "ipv4:10.0.0.1"),
        (EDGE, ["1" * 10_000], "ipv4:10.0.0.1"),
    ],
)
def test_the_client_is_the_address_that_the_proxy_appends(peer: str, forwarded: list[str], address: str) -> None:
    metadata = [("x-request-id", "1"), *(("x-forwarded-for", text) for text in forwarded)]
    assert TrustedProxies(NETWORKS).address_of(peer, metadata) == address


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ("198.51.100.7, 192.0.2.1, 203.0.113.1", "ipv4:192.0.2.1"),
        ("192.0.2.1, 203.0.113.1", "ipv4:192.0.2.1"),
        ("203.0.113.1", "ipv4:203.0.113.1"),  # it came past the first proxy
    ],
)
def test_of_two_proxies_the_first_appends_the_client(forwarded: str, address: str) -> None:
    assert TrustedProxies(NETWORKS, hops=2).address_of(EDGE, [("x-forwarded-for", forwarded)]) == address


def test_without_trusted_proxies_the_metadata_is_ignored() -> None:
    assert TrustedProxies(()).address_of(EDGE, [("x-forwarded-for", "192.0.2.1")]) == "ipv4:10.0.0.1"
    assert TrustedProxies(NETWORKS).address_of(EDGE, None) == "ipv4:10.0.0.1"


def test_a_network_of_ipv4_within_ipv6_is_that_of_ipv4() -> None:
    [network] = Settings.model_validate({"trusted_proxies": "::ffff:10.0.0.0/104"}).trusted_proxies
    assert network == ip_network("10.0.0.0/8")
