"""A real Redis Cluster for tests and drills, on the loopback address: primaries, and replicas of each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import redis
from redis.crc import REDIS_CLUSTER_HASH_SLOTS

from tools.redis_servers import HOST, RedisServer, wait_until
from tools.servers import ServerError, free_port

NODE_TIMEOUT_MS: Final = 1_500
"""How long a node may be silent before the others count it as failed."""
KEYS_AT_ONCE: Final = 1_000
"""How many keys of a moving slot are listed at once. Each is moved by itself."""
MOVE_MS: Final = 5_000
"""How long moving one key may take."""


class ClusterNode(RedisServer):
    """A node of a cluster."""

    def __init__(self, *options: str, node_timeout_ms: int = NODE_TIMEOUT_MS, program: str = "") -> None:
        self.bus_port = free_port()
        clustered = ["--cluster-enabled", "yes", "--cluster-port", str(self.bus_port)]
        clustered += ["--cluster-node-timeout", str(node_timeout_ms), "--repl-diskless-sync-delay", "0"]
        super().__init__(*clustered, *options, port=free_port(), program=program)
        self.node_id = ""

    def execute(self, *command: str | int | bytes) -> Any:  # noqa: ANN401 - any reply
        """Returns the reply to a command, unparsed."""
        with closing(self.client()) as client:
            client.response_callbacks.clear()
            return client.execute_command(*command)  # type: ignore[no-untyped-call]

    def info(self) -> dict[str, str]:
        """Returns the fields of CLUSTER INFO."""
        lines = self.execute("CLUSTER", "INFO").decode().split()
        return dict(line.split(":", 1) for line in lines)

    def lines(self) -> list[list[str]]:
        """Returns the words of each line of CLUSTER NODES."""
        return [line.split() for line in self.execute("CLUSTER", "NODES").decode().splitlines()]

    @property
    def is_primary(self) -> bool:
        """Whether it sees itself as a primary."""
        return bool(self.execute("ROLE")[0] == b"master")

    @property
    def is_connected(self) -> bool:
        """Whether it is a replica that follows its primary."""
        role = self.execute("ROLE")
        return bool(role[0] == b"slave" and role[3] == b"connected")


@dataclass(frozen=True)
class RedisCluster:
    """A cluster whose slots are shared equally among the first nodes; the others are their replicas, in turn."""

    nodes: Sequence[ClusterNode]
    size: int
    """The number of primaries."""

    @property
    def url(self) -> str:
        """The URL for RUMMIKUB_REDIS_URL."""
        return f"redis+cluster://{','.join(f'{HOST}:{node.port}' for node in self.nodes)}"

    @property
    def primaries(self) -> list[ClusterNode]:
        """The running nodes that see themselves as primaries."""
        return [node for node in self.nodes if node.is_running and node.is_primary]

    def primary_of(self, shard: int) -> ClusterNode:
        """Returns the primary of a shard, by number. Its replicas are those that `form` gave it."""
        return next(node for node in self.nodes[shard :: self.size] if node.is_running and node.is_primary)

    def form(self) -> None:
        """Makes a cluster of nodes that have just been started."""
        for place, node in enumerate(self.nodes):
            node.node_id = node.execute("CLUSTER", "MYID").decode()
            node.execute("CLUSTER", "SET-CONFIG-EPOCH", place + 1)
        for place, primary in enumerate(self.nodes[: self.size]):
            first, end = (REDIS_CLUSTER_HASH_SLOTS * edge // self.size for edge in (place, place + 1))
            primary.execute("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
        self.meet()
        for place, replica in enumerate(self.nodes[self.size :]):
            replica.execute("CLUSTER", "REPLICATE", self.nodes[place % self.size].node_id)
        self.wait_until_whole()

    def meet(self) -> None:
        """Waits until all nodes know one another."""
        wait_until(self._have_met, "all nodes have met")

    def _have_met(self) -> bool:
        """Returns whether all nodes know one another; introduces again those that do not: they soon give up."""
        first, *others = self.nodes
        for node in others:
            if len(node.lines()) < len(self.nodes):
                node.execute("CLUSTER", "MEET", HOST, first.port, first.bus_port)
        ids = {node.node_id for node in self.nodes}  # a node in a handshake has another id for a moment
        return all({node_id for node_id, *_ in node.lines()} == ids for node in self.nodes)

    def wait_until_whole(self) -> None:
        """Waits until all nodes see a working cluster, and every replica follows its primary."""
        wait_until(self._is_whole, "the cluster works, and every replica follows its primary", 60)

    def _is_whole(self) -> bool:
        try:
            return self._seems_whole()
        except redis.BusyLoadingError:  # a replica copies its primary
            return False

    def _seems_whole(self) -> bool:
        running = [node for node in self.nodes if node.is_running]
        if any(node.info()["cluster_state"] != "ok" for node in running):
            return False
        if any("fail" in flags or "handshake" in flags for node in running for _, _, flags, *_ in node.lines()):
            return len(running) < len(self.nodes)
        roles = [node.execute("ROLE") for node in running]
        return sum(role[0] == b"master" for role in roles) == self.size and all(
            role[3] == b"connected" for role in roles if role[0] == b"slave"
        )

    def owner(self, slot: int) -> ClusterNode:
        """Returns the primary of a slot, as the first running node sees it."""
        seen_by = next(node for node in self.nodes if node.is_running)
        for first, last, (_, _, node_id, *_), *_ in seen_by.execute("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.node_id == node_id.decode())
        raise LookupError(f"no node has slot {slot}")

    def replicas_of(self, primary: ClusterNode) -> list[ClusterNode]:
        """Returns the running replicas of a primary, as each sees itself."""
        running = [node for node in self.nodes if node.is_running and node is not primary]
        return [node for node in running if (role := node.execute("ROLE"))[0] == b"slave" and role[2] == primary.port]

    def open_slot(self, slot: int, target: ClusterNode) -> ClusterNode:
        """Begins to move a slot; returns its owner."""
        source = self.owner(slot)
        target.execute("CLUSTER", "SETSLOT", slot, "IMPORTING", source.node_id)
        source.execute("CLUSTER", "SETSLOT", slot, "MIGRATING", target.node_id)
        return source

    def move_key(self, key: bytes, source: ClusterNode, target: ClusterNode) -> None:
        """Moves one key of a moving slot."""
        source.execute("MIGRATE", HOST, target.port, key, 0, MOVE_MS)

    def keys_in(self, slot: int, source: ClusterNode) -> list[bytes]:
        """Returns the keys of a slot."""
        keys: list[bytes] = source.execute("CLUSTER", "GETKEYSINSLOT", slot, KEYS_AT_ONCE)
        return keys

    def close_slot(self, slot: int, target: ClusterNode) -> None:
        """Ends a move: the target has the slot. The target must learn of it first, then the source."""
        primaries = self.primaries
        for node in (target, *(node for node in primaries if node is not target)):
            node.execute("CLUSTER", "SETSLOT", slot, "NODE", target.node_id)

    def abandon_move(self, slot: int) -> None:
        """Ends a move: the owner keeps the slot, and the keys that it still has."""
        for node in self.primaries:
            node.execute("CLUSTER", "SETSLOT", slot, "STABLE")

    def move_slot(self, slot: int, target: ClusterNode) -> None:
        """Moves a slot, one key at a time."""
        source = self.open_slot(slot, target)
        while keys := self.keys_in(slot, source):
            for key in keys:
                self.move_key(key, source, target)
        self.close_slot(slot, target)

    def empty(self) -> None:
        """Deletes all data, and the scripts."""
        for node in self.primaries:
            node.execute("FLUSHALL")


@contextmanager
def redis_cluster(
    *options: str,
    primaries: int = 3,
    replicas: int = 0,
    node_timeout_ms: int = NODE_TIMEOUT_MS,
    program: str = "",
    environment: Callable[[ClusterNode], Mapping[str, str]] = lambda _: {},
) -> Iterator[RedisCluster]:
    """Runs a cluster with this many replicas of each primary; yields it when it works.

    `environment` returns more environment variables of a node.
    """
    with ExitStack() as stack:
        nodes = [
            ClusterNode(*options, node_timeout_ms=node_timeout_ms, program=program)
            for _ in range(primaries * (1 + replicas))
        ]
        for node in nodes:
            node.environment.update(environment(node))
            stack.enter_context(closing(node)).start()
        cluster = RedisCluster(nodes, primaries)
        try:
            cluster.form()
            yield cluster
        except ServerError as error:
            error.add_note("\n\n".join(f"{HOST}:{node.port}\n{node.log()}" for node in nodes))
            raise
