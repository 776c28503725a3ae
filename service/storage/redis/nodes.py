"""Where keys live: the interface of RedisStore to one Redis or to the primaries of a cluster.

Client retries are off because a script could be applied twice; changes.py retries with the request id.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from hashlib import sha1
from importlib.resources import files
from typing import Any, Final, Protocol, TypeAlias

import redis.asyncio as redis
import structlog
from redis import exceptions

from service.errors import StoreUnavailable
from service.storage.base import Subscription
from service.storage.redis.connection import NoReplicasError, shared_connection
from service.storage.redis.deployment import find_move, find_obstacle, find_risk
from service.storage.redis.feed import PLAIN, Listener, RedisFeed
from service.storage.redis.keys import ONE_PART, PROBE
from service.storage.redis.replicas import PROBE_MS, ReplicaWaiter, TooFewReplicasError
from service.storage.redis.sentinel import on_switch
from service.storage.timing import FAILOVERS, Reporter, unreported

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

Word: TypeAlias = str | int | bytes
"""A part of a command."""
Confirm: TypeAlias = Callable[[], Awaitable[None]]
"""Returns when enough replicas have a write. Raises redis-py's exceptions."""


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script, and its digest for EVALSHA."""

    text: str
    sha: str

    @classmethod
    def read(cls, name: str, publish: str) -> "Script":
        """Returns a script of this package, which publishes hints with the command `publish`."""
        text = (files("service.storage.redis") / "scripts" / name).read_text().replace("'PUBLISH'", f"'{publish}'")
        return cls(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


class Nodes(Protocol):
    """The Redis servers of a store. Every method may raise StoreUnavailable.

    Attributes:
        publish: The command that publishes hints.
        parts: The prefixes of keys that span games.
        report: Receives failovers and moved slots.
    """

    publish: str
    parts: Sequence[str]
    report: Reporter

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

    def needs_replicas(self, key: str, game_id: str) -> bool:
        """Returns whether a write of a key of a game that precedes a commit must wait for replicas itself.

        On the primary of the game it need not: what the commit waits for includes it.
        """

    def subscribe(self, channel: str) -> AbstractAsyncContextManager[Subscription]:
        """Subscribes to a channel."""

    async def memory(self) -> Sequence[Mapping[str, int]]:
        """Returns the numbers of INFO memory of each primary."""

    async def ping(self, touches: Sequence[tuple[str, Sequence[Word]]]) -> None:
        """Returns if the store accepts writes, on enough replicas, and has executed commands, each with its key."""

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
        """See Nodes."""
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
        """See Nodes. On NOSCRIPT, which has no effect, it falls back to EVAL with the full script."""
        rest = (len(keys), *keys, *arguments)
        may_need = needs_replicas is not None
        try:
            try:
                reply, confirm = await self._send(keys[0], ("EVALSHA", script.sha, *rest), needs_replicas=may_need)
            except exceptions.NoScriptError:
                reply, confirm = await self._send(keys[0], ("EVAL", script.text, *rest), needs_replicas=may_need)
            if confirm and needs_replicas and needs_replicas(reply):
                await confirm()
        except FAILURES as error:
            raise self._unavailable(error) from error
        return reply

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
    """

    publish = "PUBLISH"
    parts: Sequence[str] = ONE_PART

    def __init__(self, client: "redis.Redis", replicas: int = 0) -> None:
        self.report: Reporter = unreported
        self._client = client
        make = client.connection_pool.make_connection
        self._connection = shared_connection(client.connection_pool, REPLY_SECONDS)
        self._replicas = ReplicaWaiter(make, replicas) if replicas else None
        self._feed = RedisFeed(lambda _: "here", lambda _, notify: Listener(make, REPLY_SECONDS, PLAIN, notify))
        self._is_replica = False
        self._is_inspected = False
        self._was_suitable = False
        on_switch(client, self._leave, lambda: self.report(FAILOVERS, 1))

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

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        if isinstance(error, exceptions.ReadOnlyError):
            self._is_replica = True
        return log_failure(error)

    def needs_replicas(self, _key: str, _game_id: str) -> bool:
        """See Nodes."""
        return False

    def subscribe(self, channel: str) -> AbstractAsyncContextManager[Subscription]:
        """See Nodes."""
        return self._feed.subscribe(channel)

    async def memory(self) -> Sequence[Mapping[str, int]]:
        """See Nodes."""
        return [read_numbers(await self.execute(PROBE, "INFO", "memory"))]

    async def ping(self, touches: Sequence[tuple[str, Sequence[Word]]]) -> None:
        """See Nodes. Also checks the deployment at first and after each failure: another Redis may reply next.

        The feed keeps its connection to a Redis that has become a replica, which publishes changes too, until some
        Redis accepts writes.
        """
        if not self._is_inspected:
            await self._inspect()
        try:
            await asyncio.gather(
                self.execute(PROBE, "SET", PROBE, 1, "PX", PROBE_MS, needs_replicas=True),
                *(self.execute(key, *command) for key, command in touches),
            )
        except StoreUnavailable:
            self._is_inspected = False
            raise
        if self._is_replica:
            self._is_replica = False
            self._feed.drop()

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
        self._is_inspected = self._was_suitable = True
        if obstacle or risk:
            _log.warning("store may lose turns", problem=obstacle or risk)

    async def close(self) -> None:
        """See Nodes."""
        await self._feed.close()
        await self._connection.close()
        if self._replicas:
            await self._replicas.close()
        await self._client.aclose()
