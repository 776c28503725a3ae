"""Where keys live: the interface of the store to one Redis or to the primaries of a cluster.

Client retries are off because a script could be applied twice; changes.py retries with the request id.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha1
from importlib.resources import files
from typing import Any, Final, Protocol, TypeAlias

import redis.asyncio as redis
import structlog
from redis import exceptions

from service.errors import StoreUnavailable
from service.storage.redis.connection import Connect, NoReplicasError, exception_of, shared_connection
from service.storage.redis.deployment import find_move, find_obstacle, find_risk
from service.storage.redis.feed import PLAIN, Listener, RedisFeed
from service.storage.redis.keys import ONE_PART, PROBE
from service.storage.redis.replicas import PROBE_MS, ReplicaWaiter, TooFewReplicasError
from service.storage.redis.sentinel import on_switch
from service.storage.store import Subscription
from service.storage.timing import FAILOVERS, Reports

_log = structlog.get_logger()

CONNECT_SECONDS: Final = 1.0
"""Timeout of connecting."""
REPLY_SECONDS: Final = 1.0
"""Timeout of a reply."""

FAILURES: Final = (exceptions.RedisError, OSError, TimeoutError)
"""Exceptions of a store that does not reply, or replies with an error."""
AWAY: Final = (exceptions.ConnectionError, exceptions.TimeoutError, OSError, TimeoutError)
"""Exceptions of a Redis that does not reply."""

_REPORTED: Final = (*AWAY, NoReplicasError, TooFewReplicasError)
"""Failures that the health check reports."""

NEVER: Final = object()
"""In place of a connection: nothing was inspected yet, or not since a failure."""

Word: TypeAlias = str | int | bytes
"""A part of a command."""
Confirm: TypeAlias = Callable[[], Awaitable[None]]
"""Returns when enough replicas have a write. Raises redis-py's exceptions."""


_EACH: Final = """\
local function run(KEYS, ARGV)
{}
end
local replies, place = {{}}, 1
while place < #ARGV do
  local last = place + 1 + ARGV[place + 1]
  local is_done, reply = pcall(run, {{ ARGV[place] }}, {{ unpack(ARGV, place + 2, last) }})
  table.insert(replies, is_done and {{ '', reply }} or {{ type(reply) == 'table' and reply.err or reply }})
  place = last + 1
end
return replies
"""
"""Runs a script of one key for several keys. ARGV: for each its name, the number of its arguments, and these.

The keys may be in several slots, because none is declared. Returns for each an error, or '' and a reply.
"""
_NOT_HERE: Final = "access a non local key"
"""A part of the error for a key whose slot is elsewhere, wholly or in part. Nothing was done with it."""


@dataclass(frozen=True)
class Script:
    """A Lua script."""

    text: str

    @classmethod
    def read(cls, name: str, publish: str) -> "Script":
        """Returns a script of this package, which publishes hints with the command `publish`."""
        return cls((files("service.storage.redis") / "scripts" / name).read_text().replace("'PUBLISH'", f"'{publish}'"))

    @cached_property
    def sha(self) -> str:
        """The digest for EVALSHA."""
        return sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    @cached_property
    def each(self) -> "Script":
        """The script that runs this one for several keys."""
        return Script(_EACH.format(self.text))


COMMAND: Final = Script("return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))")
"""A command with a key, by its name and the arguments after the key."""


class Nodes(Protocol):
    """The Redis servers of a store. Every method may raise StoreUnavailable.

    Attributes:
        publish: The command that publishes hints.
        parts: The prefixes of keys that span games.
        reports: Who is told of failovers, moved slots, and the operations of the store.
    """

    publish: str
    parts: Sequence[str]
    reports: Reports

    async def execute(self, key: str, *command: Word, needs_replicas: bool = False) -> Any:  # noqa: ANN401 - any reply
        """Returns the reply to a command, from the Redis that has a key or channel.

        If `needs_replicas`, it returns only after RUMMIKUB_REDIS_REPLICAS replicas have the write.
        """

    async def run(
        self,
        script: Script,
        keys: Sequence[str],
        arguments: Sequence[Word],
        needs_replicas: Callable[[Any], bool] | None = None,
    ) -> Any:  # noqa: ANN401 - any reply
        """Returns a script's reply.

        If `needs_replicas` is true of the reply, it returns only after RUMMIKUB_REDIS_REPLICAS replicas have the write.
        """

    async def run_each(self, script: Script, calls: Mapping[str, Sequence[Word]]) -> Sequence[Any]:
        """Returns the reply of a script of one key for each of several keys, or StoreUnavailable in its place.

        Sends one command to each Redis that has some of the keys.

        Args:
            script: The script.
            calls: The arguments for each key.
        """

    def servers_of(self, keys: Collection[str]) -> int:
        """Returns how many Redis servers have some keys, as far as known: as many commands `run_each` sends."""

    def needs_replicas(self, key: str, game_id: str) -> bool:
        """Returns whether a write of a key of a game that precedes a commit must wait for replicas itself.

        On the primary of the game it need not: what the commit waits for includes it.
        """

    def subscribe(self, channel: str) -> AbstractAsyncContextManager[Subscription]:
        """Subscribes to a channel."""

    async def memory(self) -> Sequence[Mapping[str, int]]:
        """Returns the numbers of INFO memory of each primary."""

    async def ping(self, touches: Sequence[tuple[str, Sequence[Word]]]) -> None:
        """Returns if the store accepts writes, on enough replicas. A cluster's primaries are asked in turn.

        On a new connection and after a failure it also checks the deployment, and executes commands, each with its key.
        """

    async def close(self) -> None:
        """Closes all connections."""


def log_failure(error: Exception) -> StoreUnavailable:
    """Logs a failure and returns the exception for callers.

    The health check logs that the store does not reply, once; calls log that at debug level only.
    """
    text = f"{type(error).__name__}: {str(error)[:200]}"
    is_reported = isinstance(error, _REPORTED)
    (_log.debug if is_reported else _log.warning)("store", error=text)
    return StoreUnavailable(text)


def read_numbers(info: bytes) -> dict[str, int]:
    """Returns the whole numbers in a reply to INFO."""
    pairs = (line.partition(":") for line in info.decode(errors="replace").splitlines())
    return {name: int(value) for name, _, value in pairs if value.isdecimal()}


class BaseNodes(ABC):
    """The commands and scripts of Nodes; a subclass sends one to the Redis that has its key."""

    async def execute(self, key: str, *command: Word, needs_replicas: bool = False) -> Any:  # noqa: ANN401 - any reply
        try:
            reply, confirm = await self._send(key, command, needs_replicas=needs_replicas)
            if confirm:
                await confirm()
        except FAILURES as error:
            raise self._unavailable(error) from error
        return reply

    async def run(
        self,
        script: Script,
        keys: Sequence[str],
        arguments: Sequence[Word],
        needs_replicas: Callable[[Any], bool] | None = None,
    ) -> Any:  # noqa: ANN401 - any reply
        words, may_need = (len(keys), *keys, *arguments), needs_replicas is not None
        try:
            reply, confirm = await self._evaluate(script, keys[0], words, needs_replicas=may_need)
            if confirm and needs_replicas and needs_replicas(reply):
                await confirm()
        except FAILURES as error:
            raise self._unavailable(error) from error
        return reply

    async def _evaluate(
        self, script: Script, key: str, words: Sequence[Word], *, needs_replicas: bool = False
    ) -> tuple[Any, Confirm | None]:
        """See `_send`. On NOSCRIPT, which has no effect, it falls back to EVAL with the full script."""
        try:
            return await self._send(key, ("EVALSHA", script.sha, *words), needs_replicas=needs_replicas)
        except exceptions.NoScriptError:
            return await self._send(key, ("EVAL", script.text, *words), needs_replicas=needs_replicas)

    async def run_each(self, script: Script, calls: Mapping[str, Sequence[Word]]) -> Sequence[Any]:
        """See Nodes. A key whose slot is elsewhere, or moves, gets a command of its own."""
        try:
            groups = await self._by_server(calls)
        except FAILURES as error:
            return [self._unavailable(error)] * len(calls)
        found = await asyncio.gather(*(self._run_at_one(script, {key: calls[key] for key in keys}) for keys in groups))
        outcomes = {key: outcome for some in found for key, outcome in some.items()}
        return [outcomes[key] for key in calls]

    async def _run_at_one(self, script: Script, calls: Mapping[str, Sequence[Word]]) -> Mapping[str, Any]:
        """Returns the outcomes for keys of one server."""
        words = [word for key, arguments in calls.items() for word in (key, len(arguments), *arguments)]
        try:
            replies, _ = await self._evaluate(script.each, next(iter(calls)), (0, *words))
        except FAILURES as error:
            return dict.fromkeys(calls, self._unavailable(error))
        outcomes: dict[str, Any] = {}
        elsewhere: list[str] = []
        for key, (problem, *reply) in zip(calls, replies, strict=True):
            text = problem.decode(errors="replace")
            if _NOT_HERE in text:
                elsewhere.append(key)
            else:
                outcomes[key] = self._unavailable(exception_of(text)) if text else reply[0] if reply else None
        alone = (self.run(script, [key], calls[key]) for key in elsewhere)
        return outcomes | dict(zip(elsewhere, await asyncio.gather(*alone, return_exceptions=True), strict=True))

    @abstractmethod
    async def _by_server(self, keys: Collection[str]) -> Collection[Collection[str]]:
        """Returns keys, those of one server together."""

    @abstractmethod
    async def _send(self, key: str, command: Sequence[Word], *, needs_replicas: bool) -> tuple[Any, Confirm | None]:
        """Returns the reply to a command, and what waits for replicas; None if there are none to wait for."""

    @abstractmethod
    def _unavailable(self, error: Exception) -> StoreUnavailable:
        """Returns the exception for callers after a failure."""


class OneRedis(BaseNodes):
    """Nodes of one Redis, alone or as a primary with replicas: one connection for all commands, one for the feed.

    Args:
        client: redis-py's client; its pool makes the connections.
        replicas: How many replicas must have a change before it is acknowledged.
        share: Connects for all commands.
    """

    publish = "PUBLISH"
    parts: Sequence[str] = ONE_PART

    def __init__(self, client: "redis.Redis", replicas: int = 0, share: Connect = shared_connection) -> None:
        self.reports = Reports()
        self._client = client
        make = client.connection_pool.make_connection
        self._connection = share(client.connection_pool, REPLY_SECONDS)
        self._replicas = ReplicaWaiter(make, replicas) if replicas else None
        self._feed = RedisFeed(lambda _: "here", lambda _, notify: Listener(make, REPLY_SECONDS, PLAIN, notify))
        self._is_replica = False
        self._inspected: object = NEVER
        """The connection that was open when the deployment and the rights were last found good."""
        self._was_suitable = False
        on_switch(client, self._leave, lambda: self.reports.event(FAILOVERS, 1))

    def _leave(self) -> None:
        """Leaves a primary that is none any more. Waiting calls fail, as it is unknown which of them it executed."""
        self._connection.drop(self._connection.current)
        if self._replicas:
            self._replicas.drop()
        self._feed.drop()

    async def _send(self, _key: str, command: Sequence[Word], *, needs_replicas: bool) -> tuple[Any, Confirm | None]:
        waiter = self._replicas if needs_replicas else None
        opened = await waiter.open() if waiter else 0
        reply = await self._connection.execute(*command)
        return reply, partial(waiter.confirm, opened, PROBE) if waiter else None

    async def _by_server(self, keys: Collection[str]) -> Collection[Collection[str]]:
        return [keys]

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        if isinstance(error, exceptions.ReadOnlyError):
            self._is_replica = True
        if isinstance(error, exceptions.NoPermissionError):
            self._inspected = NEVER
        return log_failure(error)

    def servers_of(self, keys: Collection[str]) -> int:
        return min(1, len(keys))

    def needs_replicas(self, _key: str, _game_id: str) -> bool:
        return False

    def subscribe(self, channel: str) -> AbstractAsyncContextManager[Subscription]:
        return self._feed.subscribe(channel)

    async def memory(self) -> Sequence[Mapping[str, int]]:
        return [read_numbers(await self.execute(PROBE, "INFO", "memory"))]

    async def ping(self, touches: Sequence[tuple[str, Sequence[Word]]]) -> None:
        """See Nodes. Also checks the deployment on each new connection and after a failure: another Redis may reply.

        The feed keeps its connection to a Redis that has become a replica, which publishes changes too, until some
        Redis accepts writes.
        """
        if self._inspected is self._connection.current:
            await self._write()
        if self._inspected is not self._connection.current:  # at first, or the write has opened it
            await self._inspect()
            await self._write(touches)
            self._inspected = self._connection.current
        if self._is_replica:
            self._is_replica = False
            self._feed.drop()

    async def _write(self, touches: Sequence[tuple[str, Sequence[Word]]] = ()) -> None:
        """Writes a probe, on enough replicas, and executes commands."""
        try:
            await asyncio.gather(
                self.execute(PROBE, "SET", PROBE, 1, "PX", PROBE_MS, needs_replicas=True),
                *(self.execute(key, *command) for key, command in touches),
            )
        except StoreUnavailable:
            self._inspected = NEVER
            raise

    async def _inspect(self) -> None:
        """Checks the deployment and logs a risk. Raises StoreUnavailable if the service cannot work with it.

        After a failover it only logs unsuitable settings: a primary with other settings is better than none.
        """
        try:
            move = await find_move(self._client.get)
            obstacle, risk = await find_obstacle(self._client), await find_risk(self._client)
        except FAILURES as error:
            raise self._unavailable(error) from error
        finally:
            with contextlib.suppress(*FAILURES):
                await self._client.connection_pool.disconnect(inuse_connections=False)
        if move or (obstacle and not self._was_suitable):
            raise StoreUnavailable(move or obstacle)
        self._was_suitable = True
        if obstacle or risk:
            _log.warning("store may lose turns", problem=obstacle or risk)

    async def close(self) -> None:
        await self._feed.close()
        await self._connection.close()
        if self._replicas:
            await self._replicas.close()
        await self._client.aclose()


class StoreTime:
    """The clock of Redis, or the clock of a test in its place.

    Args:
        nodes: The Redis servers.
        clock: Returns milliseconds since 1970; None for the clock of Redis.
    """

    def __init__(self, nodes: Nodes, clock: Callable[[], int] | None) -> None:
        self._nodes = nodes
        self._clock = clock

    @property
    def argument(self) -> int | str:
        """The time as an argument of scripts, which read the clock of Redis for ""."""
        return self._clock() if self._clock else ""

    def milliseconds(self, seconds: bytes, micros: bytes) -> int:
        """Returns the time in a reply to TIME."""
        return self._clock() if self._clock else int(seconds) * 1000 + int(micros) // 1000

    async def now_ms(self, key: str) -> int:
        """Returns the time of the Redis that has a key."""
        return self.milliseconds(*await self._nodes.execute(key, "TIME"))
