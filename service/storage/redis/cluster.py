"""Nodes of a Redis Cluster: a slot map, and one held connection to each primary.

MOVED, ASK and TRYAGAIN are followed, because the node that replied with them has done nothing. After any other failure
a call fails as it does on one Redis, because the node may have executed its command, and the map is learned again.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import redis.asyncio as redis
import structlog
from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from service.errors import StoreUnavailable
from service.runtime.redis_url import Address, Options
from service.storage.redis.connection import (
    CommandConnection,
    Connect,
    NoReplicasError,
    NotPersistingError,
    shared_connection,
    shared_result,
)
from service.storage.redis.deployment import find_move, find_risk
from service.storage.redis.feed import SHARDED, Listener, RedisFeed
from service.storage.redis.keys import CLUSTER_PARTS, probe_key, slot_of
from service.storage.redis.nodes import (
    AWAY,
    FAILURES,
    NEVER,
    REPLY_SECONDS,
    BaseNodes,
    Confirm,
    Word,
    log_failure,
    read_numbers,
)
from service.storage.redis.replicas import PROBE_MS, ReplicaWaiter, TooFewReplicasError
from service.storage.redis.slots import SlotMap, changes, read_slots, target_of
from service.storage.store import Subscription
from service.storage.timing import FAILOVERS, SLOTS_MOVED, Reports

_log = structlog.get_logger()
_T = TypeVar("_T")

REDIRECT_SECONDS: Final = 1.0
"""How long a call follows redirections."""
DIRECT_ATTEMPTS: Final = 3
"""Attempts without a pause: at the remembered owner, at a new one, and at the target of its import."""
PAUSE_SECONDS: Final = (0.005, 0.05)
"""The first and the longest pause between further attempts. The keys of a slot move within some milliseconds."""
LEARN_SECONDS: Final = 0.25
"""The least time between two readings of the map."""
TROUBLE_SECONDS: Final = 5.0
"""How long the map is read repeatedly after a failure, until it has changed. A failover takes some seconds."""
ASKED: Final = 3
"""Nodes that are asked for the map at once. One that is cut off has an old map."""
PROBES: Final = 3
"""Slots in which a primary is probed. One of them may be moving."""
GRACE_SECONDS: Final = 0.1
"""How long others may take after the first node has replied."""

_OUTDATED: Final = (*AWAY, exceptions.AskError, exceptions.ClusterDownError, exceptions.ReadOnlyError)
"""Failures after which the map is read again."""
_NO_WRITES: Final = (
    *AWAY,
    exceptions.ClusterDownError,
    exceptions.OutOfMemoryError,
    NoReplicasError,
    NotPersistingError,
    TooFewReplicasError,
)
"""Failures of a primary that accepts no writes, while others may."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A primary: its connections for commands and for WAIT."""

    address: Address
    connection: CommandConnection
    replicas: ReplicaWaiter | None

    async def close(self) -> None:
        await self.connection.close()
        if self.replicas:
            await self.replicas.close()


_Reply: TypeAlias = tuple[bool, int, SlotMap]
"""Whether a node sees a working cluster, its epoch, and its map."""


class ClusterNodes(BaseNodes):
    """Nodes of a Redis Cluster.

    Args:
        seeds: Some of its nodes.
        options: Options of redis-py for connections to its nodes, with time-outs.
        replicas: How many replicas must have a change before it is acknowledged.
        share: Connects for all commands of a node.
    """

    publish = "SPUBLISH"
    parts: Sequence[str] = CLUSTER_PARTS

    def __init__(
        self, seeds: Sequence[Address], options: Options, replicas: int = 0, share: Connect = shared_connection
    ) -> None:
        self.reports = Reports()
        self._share = share
        self._seeds = tuple(seeds)
        self._options = options
        self._needed_replicas = replicas
        self._map: SlotMap | None = None
        self._map_error = ""
        """Why no node has replied with a map."""
        self._owners: list[Address | None] = []
        """The owners in the map, and newer ones that MOVED has named."""
        self._probed: dict[Address, int] = {}
        """A slot of each primary for probes."""
        self._nodes: dict[Address, _Node] = {}
        self._learning: asyncio.Task[None] | None = None
        self._learned_at = -LEARN_SECONDS
        self._trouble_until = 0.0
        self._last_probed: Address | None = None
        """The primary that was last asked in turn whether it accepts writes."""
        self._failed: frozenset[Address] = frozenset()
        """Primaries that accepted no writes when they were last asked."""
        self._suspected: set[Address] = set()
        """Primaries that have failed a call since they were last asked."""
        self._inspected: dict[Address, object] = {}
        """The connections on which primaries were last found good, with all rights."""
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._feed: RedisFeed[Address] = RedisFeed(self._home, self._listen)

    async def _send(self, key: str, command: Sequence[Word], *, needs_replicas: bool) -> tuple[Any, Confirm | None]:
        slot = slot_of(key)
        pauses = _pauses()
        asked: Address | None = None
        redirection: exceptions.ResponseError
        until = asyncio.get_running_loop().time() + REDIRECT_SECONDS
        while True:
            node = self._node(asked or await self._owner(slot))
            try:
                waiter = node.replicas if needs_replicas else None
                opened = await waiter.open() if waiter else 0
                reply = await node.connection.execute(*command, is_asking=asked is not None)
                return reply, partial(self._confirm, node.address, waiter, opened, slot) if waiter else None
            except exceptions.MovedError as error:
                asked, redirection = None, error
                self._follow(error, node.address)
            except exceptions.AskError as error:
                asked, redirection = target_of(error, node.address), error
            except exceptions.TryAgainError as error:
                asked, redirection = None, error
            except _NO_WRITES:
                self._suspected.add(node.address)
                raise
            pause = next(pauses)
            if asyncio.get_running_loop().time() + pause > until:
                raise redirection
            await asyncio.sleep(pause)

    async def _confirm(self, address: Address, waiter: ReplicaWaiter, opened: int, slot: int) -> None:
        try:
            await waiter.confirm(opened, probe_key(slot))
        except _NO_WRITES:
            self._suspected.add(address)
            raise

    async def _by_server(self, keys: Collection[str]) -> Collection[Collection[str]]:
        if self._map is None:
            await self._load_map()
        groups: dict[object, list[str]] = {}
        for key in keys:
            groups.setdefault(self._owners[slot_of(key)] or key, []).append(key)
        return groups.values()

    def servers_of(self, keys: Collection[str]) -> int:
        if not self._owners:
            return min(1, len(keys))
        return len({self._owners[slot_of(key)] or key for key in keys})

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        if isinstance(error, _OUTDATED):
            self._expect_change()
        if isinstance(error, exceptions.NoPermissionError):
            self._inspected.clear()
        return log_failure(error)

    async def _owner(self, slot: int) -> Address:
        """Returns the primary of a slot. Raises ConnectionError if no node can be asked or none has the slot."""
        if self._map is None:
            await self._load_map()
        owner = self._owners[slot]
        if owner is None:
            raise exceptions.ConnectionError(f"no node has slot {slot}")
        return owner

    async def _load_map(self) -> SlotMap:
        """Reads the first map and returns it. Raises ConnectionError if no node replies with one."""
        if not self._is_closed:
            await shared_result(self._learn_soon(), "the store was closed")
        if self._map is None:
            raise exceptions.ConnectionError(f"no node of the cluster replies: {self._map_error}")
        return self._map

    def _node(self, address: Address) -> _Node:
        if address not in self._nodes:
            pool = self._pool(address)
            waiter = None
            if self._needed_replicas:
                waiter = ReplicaWaiter(pool.make_connection, self._needed_replicas, lambda: self._probes(address))
            self._nodes[address] = _Node(address, self._share(pool, REPLY_SECONDS), waiter)
        return self._nodes[address]

    def _probes(self, address: Address) -> Iterator[str]:
        """Yields probe keys in a few slots of a primary: first the one that was yielded last, if it has that slot."""
        slot = self._probed.get(address)
        if slot is not None and self._owners[slot] == address:
            yield probe_key(slot)
        own = [slot for slot, owner in enumerate(self._owners) if owner == address]
        for slot in random.sample(own, min(PROBES, len(own))):
            self._probed[address] = slot
            yield probe_key(slot)

    def _follow(self, error: exceptions.MovedError, asked: Address) -> None:
        """Remembers the owner that MOVED names, and reads the map: other slots may have moved too."""
        if self._owners:
            self._owners[error.slot_id] = target_of(error, asked)
        self._learn_soon()

    def _expect_change(self) -> None:
        """Reads the map until it has changed: a failover may be in progress."""
        if self._is_closed:
            return
        self._trouble_until = asyncio.get_running_loop().time() + TROUBLE_SECONDS
        self._learn_soon()

    def _learn_soon(self) -> "asyncio.Task[None]":
        if self._learning is None:
            self._learning = asyncio.create_task(self._learn(), name="redis-slot-map")
            self._learning.add_done_callback(self._on_learned)
        return self._learning

    def _on_learned(self, _: "asyncio.Task[None]") -> None:
        self._learning = None

    async def _learn(self) -> None:
        """Reads the map at most once in LEARN_SECONDS, repeatedly while a change is expected."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(max(0.0, self._learned_at + LEARN_SECONDS - loop.time()))
            self._learned_at = loop.time()
            learned = await self._newest_map()
            has_changed = learned is not None and self._adopt(learned)
            if has_changed:
                self._trouble_until = 0.0
            if self._map is None or loop.time() >= self._trouble_until:
                return

    def _adopt(self, learned: SlotMap) -> bool:
        """Uses a new map; returns whether it differs from the one before."""
        before, self._map = self._map, learned
        self._owners = list(learned.owners)
        self._feed.replace()
        if before is None or before == learned:
            return before is None
        self._close_nodes(set(before.nodes).difference(learned.nodes))
        failovers, moved = changes(before, learned)
        if failovers:
            self.reports.event(FAILOVERS, failovers)
        if moved:
            self.reports.event(SLOTS_MOVED, moved)
        _log.info("cluster", result="map has changed", failovers=failovers, slots_moved=moved)
        return before.owners != learned.owners

    def _close_nodes(self, left: Collection[Address]) -> None:
        """Closes the connections to nodes that have left the map. Waiting calls fail.

        A node that was in no map yet stays: a primary that imports its first slot has none.
        """
        for address in self._nodes.keys() & left:
            self._inspected.pop(address, None)
            closing = asyncio.create_task(self._forget(self._nodes.pop(address)), name="redis-node-closing")
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _forget(self, node: _Node) -> None:
        await self._feed.forget(node.address)
        await node.close()

    async def _newest_map(self) -> SlotMap | None:
        """Returns the newest map that some nodes have; None if no node replies."""
        known = list(self._map.nodes) if self._map else []
        random.shuffle(known)
        nodes = list(dict.fromkeys([*known, *self._seeds]))
        for start in range(0, len(nodes), ASKED):
            outcomes = await self._outcomes(nodes[start : start + ASKED])
            replies = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
            if replies:
                return max(replies, key=lambda reply: reply[:2])[2]
            self._map_error = f"{type(outcomes[0]).__name__}: {outcomes[0]}"
        return None

    async def _outcomes(self, nodes: Sequence[Address]) -> Sequence[_Reply | BaseException]:
        """Returns what each node replies within GRACE_SECONDS after the first reply, or the exception in its place."""
        asking = [asyncio.create_task(self._ask(node)) for node in nodes]
        try:
            for completed in asyncio.as_completed(asking):
                with contextlib.suppress(Exception):
                    await completed
                    break
            await asyncio.wait(asking, timeout=GRACE_SECONDS)
        finally:
            for task in asking:
                task.cancel()
            outcomes = await asyncio.gather(*asking, return_exceptions=True)
        return outcomes

    async def _ask(self, address: Address) -> _Reply:
        """Returns a node's map, and how much it counts."""
        connection: AbstractConnection = self._pool(address).make_connection()  # type: ignore[no-untyped-call]
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            commands = [("CLUSTER", "INFO"), ("CLUSTER", "SLOTS")]
            await connection.send_packed_command(connection.pack_commands(commands))
            info = await connection.read_response(disable_decoding=True)
            slots = await connection.read_response(disable_decoding=True)
        finally:
            await connection.disconnect(nowait=True)
        epoch = read_numbers(info).get("cluster_current_epoch", 0)
        return b"cluster_state:ok" in info, epoch, read_slots(slots, address)

    def _pool(self, address: Address) -> "redis.ConnectionPool":
        return redis.BlockingConnectionPool(**{**self._options, "host": address.host, "port": address.port})

    def needs_replicas(self, key: str, game_id: str) -> bool:
        if not (self._needed_replicas and self._owners):
            return bool(self._needed_replicas)
        return self._owners[slot_of(key)] != self._owners[slot_of(game_id)]

    def subscribe(self, channel: str) -> AbstractAsyncContextManager[Subscription]:
        if self._map is None:
            self._learn_soon()
        return self._feed.subscribe(channel)

    def _home(self, channel: str) -> Address | None:
        return self._owners[slot_of(channel)] if self._owners else None

    def _listen(self, home: Address, notify: Callable[[str], None]) -> Listener:
        def on_failure(error: Exception | None) -> None:
            if isinstance(error, exceptions.MovedError):
                self._follow(error, home)
                self._feed.replace()
            else:
                self._expect_change()

        return Listener(self._pool(home).make_connection, REPLY_SECONDS, SHARDED, notify, on_failure)

    async def memory(self) -> Sequence[Mapping[str, int]]:
        """See Nodes. A primary that does not reply is left out."""
        outcomes = await _outcomes_at(await self._primaries(), self._memory_at)
        return [read_numbers(reply) for reply in self._check(outcomes.values())]

    async def ping(self, touches: Sequence[tuple[str, Sequence[Word]]]) -> None:
        """See Nodes. Primaries that accept no writes are left out, unless all are: the games of the others go on.

        It asks one primary in turn, and those whose state is in doubt. If one fails that was well before, it asks all.
        """
        primaries = await self._primaries()
        doubted = [address for address in primaries if self._is_in_doubt(address)]
        self._suspected.clear()
        outcomes = await _outcomes_at([*doubted, *self._next_to_probe(primaries, doubted)], self._write_to)
        if any(isinstance(outcomes[address], BaseException) for address in outcomes.keys() - self._failed):
            outcomes |= await _outcomes_at([one for one in primaries if one not in outcomes], self._write_to)
        failed = {address: error for address, error in outcomes.items() if isinstance(error, _NO_WRITES)}
        new = {
            address: current
            for address in outcomes.keys() - failed.keys()
            if (current := self._node(address).connection.current) is not self._inspected.get(address, NEVER)
        }
        if (failed or new) and (move := await self.find_move()):
            raise StoreUnavailable(move)
        for address in failed.keys() - self._failed:
            text = f"{type(failed[address]).__name__}: {failed[address]}"
            _log.warning("cluster", result="a primary accepts no writes", address=str(address), error=text)
        self._failed = frozenset(failed)
        self._check(outcomes.values())
        for address in failed:
            self._inspected.pop(address, None)
        if new:
            inspected = await asyncio.gather(*map(self._inspect, new))
            commands = (self._send(key, command, needs_replicas=False) for key, command in touches)
            self._check(await asyncio.gather(*commands, return_exceptions=True))
            self._inspected |= {address: new[address] for address in filter(None, inspected)}

    def _is_in_doubt(self, address: Address) -> bool:
        """Returns whether a primary has failed, or its connection was not inspected or is lost."""
        current = self._node(address).connection.current
        is_lost = current is not None and current.is_lost
        is_new = current is not self._inspected.get(address, NEVER)
        return is_new or is_lost or address in self._failed or address in self._suspected

    def _next_to_probe(self, primaries: Sequence[Address], others_than: Collection[Address]) -> Sequence[Address]:
        """Returns the primary whose turn it is, of those that are not asked anyway."""
        start = primaries.index(self._last_probed) + 1 if self._last_probed in primaries else 0
        following = (one for one in (*primaries[start:], *primaries[:start]) if one not in others_than)
        self._last_probed = next(following, None)
        return [self._last_probed] if self._last_probed else []

    async def find_move(self) -> str:
        """Returns why the store's games are not to be used; "" if they are, or if that is unknown."""

        async def get(key: str) -> Any:  # noqa: ANN401 - a reply
            reply, _ = await self._send(key, ("GET", key), needs_replicas=False)
            return reply

        try:
            return await find_move(get)
        except FAILURES:
            return ""

    async def _inspect(self, address: Address) -> Address | None:
        """Logs how a primary may lose turns. Returns its address; None if it does not reply."""
        try:
            async with redis.Redis.from_pool(self._pool(address)) as client:
                risk = await find_risk(client, is_cluster=True)
        except FAILURES:
            return None
        if risk:
            _log.warning("store may lose turns", problem=risk, address=str(address))
        return address

    async def _primaries(self) -> Sequence[Address]:
        """Returns the primaries. Raises StoreUnavailable."""
        try:
            return tuple((self._map or await self._load_map()).primaries)
        except FAILURES as error:
            raise self._unavailable(error) from error

    async def _memory_at(self, address: Address) -> Any:  # noqa: ANN401 - a reply
        return await self._node(address).connection.execute("INFO", "memory")

    async def _write_to(self, address: Address) -> None:
        """Writes a probe to a primary, and waits for replicas if changes do.

        The connection for WAIT writes a probe itself. Then the one for commands is only opened, if it is not open.

        Does nothing if the primary has just lost its last slot, which no map shows yet.
        """
        node = self._node(address)
        refusal: exceptions.AskError | None = None
        for probe in self._probes(address):
            try:
                if not (node.replicas and node.connection.is_open):
                    await node.connection.execute("SET", probe, 1, "PX", PROBE_MS)
                if node.replicas:
                    await node.replicas.confirm(await node.replicas.open(), probe)
            except exceptions.MovedError as error:
                self._follow(error, address)
                refusal = error
            except exceptions.AskError as error:
                refusal = error
            else:
                return
        if refusal:
            raise refusal

    def _check(self, outcomes: Collection[Any]) -> list[Any]:
        """Returns the replies among outcomes. Raises StoreUnavailable if there are none, or for a lasting error."""
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        replies = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        for error in errors:
            if isinstance(error, _OUTDATED):
                self._expect_change()
            if not replies or not isinstance(error, (*_NO_WRITES, exceptions.AskError, exceptions.TryAgainError)):
                raise log_failure(error) if isinstance(error, FAILURES) else error
        return replies

    async def close(self) -> None:
        self._is_closed = True
        if self._learning:
            self._learning.cancel()
            await asyncio.wait([self._learning])
        if self._closing:
            await asyncio.wait(self._closing)
        await self._feed.close()
        for node in self._nodes.values():
            await node.close()


async def _outcomes_at(
    primaries: Sequence[Address], work: Callable[[Address], Awaitable[_T]]
) -> "dict[Address, _T | BaseException]":
    """Returns the result of work at each of some primaries, or the exception in its place."""
    outcomes = await asyncio.gather(*map(work, primaries), return_exceptions=True)
    return dict(zip(primaries, outcomes, strict=True))


def _pauses() -> Iterator[float]:
    """Yields the pauses before further attempts of a call."""
    for _ in range(DIRECT_ATTEMPTS - 1):
        yield 0.0
    pause, longest = PAUSE_SECONDS
    while True:
        yield pause
        pause = min(2 * pause, longest)
