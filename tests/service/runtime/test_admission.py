"""Admission: bounds on what all callers, each address and each key may hold."""

from collections import Counter

import pytest

from service.errors import Overloaded
from service.grpc_api.call_origin import Origins
from service.grpc_api.call_policy import CallPolicy, MethodPolicy
from service.metrics.metrics import Metrics
from service.runtime.admission import Admission
from service.runtime.origins import STREAMS, Key, Origin, TrustedProxies, peer_address
from service.settings import Settings

A, B, C, D = (Origin(name) for name in "abcd")


def most(room: Admission, origin: Origin) -> int:
    """Enters until it is refused; returns how often it was admitted."""
    admitted = 0
    while True:
        try:
            room.enter(origin)
        except Overloaded:
            return admitted
        admitted += 1


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:192.0.2.1:50000", "ipv4:192.0.2.1"),
        ("ipv6:%5B2001:db8:1:2:3::4%5D:50000", "ipv6:2001:db8:1:2::/64"),
        ("ipv6:[2001:db8:1:2:ffff::1]:1", "ipv6:2001:db8:1:2::/64"),
        ("ipv6:%5B::ffff:192.0.2.1%5D:50000", "ipv4:192.0.2.1"),
        ("ipv6:%5B::1%5D:1", "ipv6:::/64"),
        ("ipv6:what:1", "ipv6:what"),
        ("unix:/run/socket", "unix"),
        ("unix:", "unix"),
        ("", ""),
    ],
)
def test_peer_address(peer: str, address: str) -> None:
    assert peer_address(peer) == address


def test_one_address_alone_gets_its_share() -> None:
    assert most(Admission(1_000, 0.5, "streams"), A) == 500
    assert most(Admission(1_000, 0.2, "streams"), A) == 200
    assert most(Admission(1_000, 1, "streams"), A) == 1_000
    assert most(Admission(3, 0.01, "streams"), A) == 1, "a share is at least one"


def test_addresses_share_what_is_free() -> None:
    room = Admission(1_000, 0.5, "streams")
    assert [most(room, origin) for origin in (A, B, C)] == [500, 250, 125]
    assert most(room, A) == 0
    for _ in range(300):
        room.leave(A)
    assert room.total == 575
    assert most(room, D) == 212, "what one gives up, others get"


def test_addresses_that_enter_in_turns_hold_the_same_and_leave_as_much_free() -> None:
    room = Admission(1_000, 0.5, "streams")
    held = Counter[str]()
    for _ in range(1_000):
        for origin in (A, B, C):
            try:
                room.enter(origin)
            except Overloaded:
                continue
            held[origin.address] += 1
    assert set(held.values()) == {250}


def test_a_server_that_is_full_for_large_holders_admits_small_ones() -> None:
    room = Admission(10_000, 0.5, "streams")
    for number in range(1_000):
        for _ in range(5_000):
            try:
                room.enter(Origin(f"attacker {number}"), 100)
            except Overloaded:
                break
    assert room.total == 9_000, "a tenth is reserved"
    newcomers = [most(room, Origin(f"honest {number}")) for number in range(50)]
    assert set(newcomers) == {20}
    assert most(room, Origin("one more")) == 0
    assert room.total == 10_000


def test_a_refused_caller_holds_nothing() -> None:
    room = Admission(10, 0.5, "streams")
    with pytest.raises(Overloaded):
        room.enter(A, 6)
    room.enter(A, 5)
    assert room.total == 5
    room.leave(A, 5)
    assert room.total == 0
    assert most(room, A) == 5


def test_a_key_has_its_quota_at_all_addresses_together() -> None:
    room = Admission(1_000, 0.5, "streams", STREAMS)
    key, other = Key("web", quotas={STREAMS: 10}), Key("partner")
    assert most(room, Origin("a", key)) == 10
    assert most(room, Origin("b", key)) == 0
    assert most(room, Origin("a", other)) == 490, "the address has its share for all keys, and that key no quota"
    room.leave(Origin("a", key))
    assert most(room, Origin("c", key)) == 1


def test_an_address_of_a_proxy_has_no_bound_but_the_key_has() -> None:
    room = Admission(1_000, 0.1, "streams", STREAMS)
    assert most(room, Origin("a", Key("proxy", is_proxy=True))) == 1_000
    room = Admission(1_000, 0.1, "streams", STREAMS)
    assert most(room, Origin("a", Key("proxy", is_proxy=True, quotas={STREAMS: 700}))) == 700


def test_a_quota_counts_under_the_key_s_name_after_a_reload() -> None:
    room = Admission(100, 1, "streams", STREAMS)
    before, after = Key("web", quotas={STREAMS: 5}), Key("web", quotas={STREAMS: 8})
    assert most(room, Origin("a", before)) == 5
    assert most(room, Origin("a", after)) == 3
    for _ in range(5):
        room.leave(Origin("a", before))
    assert most(room, Origin("a", after)) == 5


def test_health_and_reflection_have_a_separate_bound() -> None:
    policy = CallPolicy(Metrics(), Origins(None, TrustedProxies(())), Settings(max_calls=1), bool, 1.0)
    game, check, watch = (
        MethodPolicy(policy, path)
        for path in ("/rummikub.v1.GameService/GetGame", "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch")
    )
    game.enter(A)
    check.enter(A)
    for method in (game, watch):
        with pytest.raises(Overloaded):
            method.enter(B)
    check.leave(A)
    watch.enter(B)
    assert policy.calls.total == 1


def test_a_context_releases_what_it_held() -> None:
    room = Admission(1, 1, "streams")
    with pytest.raises(RuntimeError), room.holding(A):  # noqa: PT012 - the error must come from within
        with pytest.raises(Overloaded):
            room.enter(B)
        raise RuntimeError
    room.enter(B)
