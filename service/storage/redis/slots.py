"""The slot map of a Redis Cluster: which primary has each slot, and which replicas it has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis import exceptions
from redis.crc import REDIS_CLUSTER_HASH_SLOTS

from service.runtime.redis_url import Address


@dataclass(frozen=True, slots=True)
class SlotMap:
    """A view of a cluster.

    Attributes:
        owners: The primary of each slot; None for a slot without one.
        replicas: The replicas of each primary that has slots.
    """

    owners: tuple[Address | None, ...]
    replicas: Mapping[Address, frozenset[Address]]

    @property
    def primaries(self) -> tuple[Address, ...]:
        """The primaries that have slots."""
        return tuple(self.replicas)

    @property
    def nodes(self) -> tuple[Address, ...]:
        """The primaries, then the replicas."""
        return (*self.replicas, *(replica for replicas in self.replicas.values() for replica in sorted(replicas)))


def read_slots(reply: Sequence[Any], asked: Address) -> SlotMap:
    """Returns the map in a reply to CLUSTER SLOTS.

    Args:
        reply: The reply: for each range its first and last slot, its primary, its replicas.
        asked: The node that replied. A node without a host in the reply has the same one.
    """
    owners: list[Address | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
    replicas: dict[Address, frozenset[Address]] = {}
    for first, last, primary, *others in reply:
        address = _address(primary, asked)
        owners[first : last + 1] = [address] * (last + 1 - first)
        replicas[address] = frozenset(_address(other, asked) for other in others)
    return SlotMap(tuple(owners), replicas)


def _address(node: Sequence[Any], asked: Address) -> Address:
    host = (node[0] or b"").decode()
    return Address(asked.host if host in {"", "?"} else host, int(node[1]))


def target_of(error: exceptions.AskError, asked: Address) -> Address:
    """Returns the node that a MOVED or ASK names. One without a host is at the host of the node that replied."""
    host = error.host.strip("[]")
    return Address(asked.host if host in {"", "?"} else host, error.port)


def changes(before: SlotMap, after: SlotMap) -> tuple[int, int]:
    """Returns how many primaries were replaced by a replica, and how many slots moved otherwise."""
    failed_over: set[Address] = set()
    moved = 0
    for old, new in zip(before.owners, after.owners, strict=True):
        if old is None or new is None or old == new:
            continue
        if new in before.replicas[old]:
            failed_over.add(old)
        else:
            moved += 1
    return len(failed_over), moved
