"""The slot map of a Redis Cluster: replies of nodes, and what has changed between two maps."""

import pytest
from redis import exceptions

from service.runtime.redis_url import Address
from service.storage.redis.slots import SlotMap, changes, read_slots, target_of

ASKED = Address("10.0.0.9", 7000)
ONE, TWO, THREE = (Address(f"10.0.0.{number}", 6379) for number in (1, 2, 3))


def node(address: Address) -> list[object]:
    return [address.host.encode(), address.port, b"id", []]


def slot_map(*ranges: tuple[int, int, Address, Address]) -> SlotMap:
    """Returns a map of ranges: first and last slot, primary, replica."""
    return read_slots([[first, last, node(primary), node(replica)] for first, last, primary, replica in ranges], ASKED)


def test_a_map_has_the_primary_of_each_slot_and_its_replicas() -> None:
    found = slot_map((0, 99, ONE, TWO), (200, 16_383, THREE, TWO))
    assert found.owners[:100] == (ONE,) * 100
    assert found.owners[100:200] == (None,) * 100
    assert found.owners[200:] == (THREE,) * (16_384 - 200)
    assert found.primaries == (ONE, THREE)
    assert set(found.nodes) == {ONE, TWO, THREE}


@pytest.mark.parametrize("host", [b"", b"?", None])
def test_a_node_without_a_host_is_at_the_host_that_was_asked(host: bytes | None) -> None:
    found = read_slots([[0, 16_383, [host, 6379, b"id"]]], ASKED)
    assert found.owners[0] == Address("10.0.0.9", 6379)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("3999 10.0.0.1:6379", ONE),
        ("3999 :6381", Address("10.0.0.9", 6381)),
        ("3999 ?:6381", Address("10.0.0.9", 6381)),
        ("3999 ::1:6381", Address("::1", 6381)),
        ("3999 redis-1.example:6381", Address("redis-1.example", 6381)),
    ],
)
def test_the_target_of_a_redirection(text: str, target: Address) -> None:
    assert target_of(exceptions.MovedError(text), ASKED) == target


def test_a_replica_in_the_place_of_its_primary_is_a_failover_and_other_changes_are_moved_slots() -> None:
    before = slot_map((0, 8_191, ONE, TWO), (8_192, 16_383, THREE, THREE))
    assert changes(before, before) == (0, 0)
    assert changes(before, slot_map((0, 8_191, TWO, ONE), (8_192, 16_383, THREE, THREE))) == (1, 0)
    assert changes(before, slot_map((0, 8_189, ONE, TWO), (8_190, 16_383, THREE, THREE))) == (0, 2)
    assert changes(before, slot_map((0, 8_189, TWO, ONE), (8_190, 16_383, THREE, THREE))) == (1, 2)
    assert changes(before, slot_map((0, 8_191, ONE, TWO))) == (0, 0), "slots that nobody has have moved nowhere"
