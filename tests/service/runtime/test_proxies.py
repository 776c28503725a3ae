"""Trusted proxies: the address that limits count for a call through them."""

from ipaddress import ip_network

import pytest

from service.runtime.proxies import TrustedProxies

PROXIES = TrustedProxies(ip_network(text) for text in ("10.0.0.0/8", "fd00::/8"))
EDGE = "ipv4:10.0.0.1:50000"


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        (EDGE, ["192.0.2.1"], "ipv4:192.0.2.1"),
        ("ipv6:%5Bfd00::1%5D:1", ["192.0.2.1"], "ipv4:192.0.2.1"),
        ("ipv6:%5B::ffff:10.0.0.1%5D:1", ["192.0.2.1"], "ipv4:192.0.2.1"),
        (EDGE, ["2001:db8:1:2:3::4"], "ipv6:2001:db8:1:2::/64"),
        (EDGE, ["::ffff:192.0.2.1"], "ipv4:192.0.2.1"),
        # of several proxies, each appends the address that it was called from
        (EDGE, ["192.0.2.1, 10.0.0.2,10.9.9.9"], "ipv4:192.0.2.1"),
        (EDGE, ["192.0.2.1", "10.0.0.2"], "ipv4:192.0.2.1"),
        # a client can write anything before the address that the first proxy appends
        (EDGE, ["198.51.100.7, 192.0.2.1"], "ipv4:192.0.2.1"),
        (EDGE, ["10.0.0.3, 192.0.2.1"], "ipv4:192.0.2.1"),
        (EDGE, ["nobody, 192.0.2.1"], "ipv4:192.0.2.1"),
        (EDGE, ["192.0.2.1, nobody, 10.0.0.2"], "ipv4:10.0.0.2"),
        # within the proxies' network
        (EDGE, ["10.0.0.7"], "ipv4:10.0.0.7"),
        (EDGE, ["10.0.0.7, 10.0.0.2"], "ipv4:10.0.0.7"),
        # no proxy, or one that tells nothing
        ("ipv4:192.0.2.9:1", ["192.0.2.1"], "ipv4:192.0.2.9"),
        ("unix:/run/socket", ["192.0.2.1"], "unix"),
        (EDGE, [], "ipv4:10.0.0.1"),
        (EDGE, [""], "ipv4:10.0.0.1"),
        (EDGE, ["nobody"], "ipv4:10.0.0.1"),
    ],
)
def test_the_client_is_the_newest_address_that_is_no_proxy_s(peer: str, forwarded: list[str], address: str) -> None:
    metadata = [("x-request-id", "1"), *(("x-forwarded-for", text) for text in forwarded)]
    assert PROXIES.address_of(peer, metadata) == address


def test_without_proxies_nobody_is_believed() -> None:
    assert TrustedProxies(()).address_of(EDGE, [("x-forwarded-for", "192.0.2.1")]) == "ipv4:10.0.0.1"
    assert PROXIES.address_of(EDGE, None) == "ipv4:10.0.0.1"
