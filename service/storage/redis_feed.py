"""Notifications of changed games: one subscribed connection to Redis for all watchers of a process."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Final

import structlog
from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from service.storage.base import Subscription

RECONNECT_SECONDS: Final = 0.5
"""The wait before the connection is opened again."""

_log = structlog.get_logger()


class RedisFeed:
    """Subscribes to channels on one connection and notifies their watchers.

    A message is only a hint to read the stream. Watchers are also notified whenever their channel is subscribed, first
    or again, so they miss nothing that changed before. Only the feed's own tasks use the connection, so a watcher may
    be cancelled at any time without harm to the others.

    A lost connection is replaced by a new one. redis-py's PubSub, which reconnects by itself, opens two if one task
    writes while another reads, and never closes one of them.

    Args:
        make: Makes an unconnected connection of redis-py.
        reply_seconds: How often the connection is pinged; it is replaced after twice this time without any message.
    """

    def __init__(self, make: Callable[[], AbstractConnection], reply_seconds: float) -> None:
        self._make = make
        self._reply_seconds = reply_seconds
        self._subscriptions: defaultdict[str, set[Subscription]] = defaultdict(set)
        self._wanted = asyncio.Event()
        self._is_closed = False
        self._is_dropped = False
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[Subscription]:
        """Yields a subscription to a channel."""
        subscription = Subscription()
        self._subscriptions[channel].add(subscription)
        self._wanted.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="redis-feed")
        try:
            yield subscription
        finally:
            self._subscriptions[channel].discard(subscription)
            if not self._subscriptions[channel]:
                del self._subscriptions[channel]
                self._wanted.set()

    async def _run(self) -> None:
        """Listens until the feed is closed; reconnects if the connection is lost or dropped."""
        while not self._is_closed:
            self._is_dropped = False
            try:
                async with self._connected() as connection:
                    await self._listen(connection)
            except Exception as error:  # noqa: BLE001 - any failure of a connection needs a new one
                _log.warning("feed", result="connection lost", error=type(error).__name__)
                await asyncio.sleep(RECONNECT_SECONDS)

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[AbstractConnection]:
        connection = self._make()
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            yield connection
        finally:
            await connection.disconnect(nowait=True)

    async def _listen(self, connection: AbstractConnection) -> None:
        """Updates subscriptions and reads messages until the connection is lost or dropped, or the feed is closed."""
        reading = asyncio.create_task(self._read(connection))
        reading.add_done_callback(lambda _: self._wanted.set())
        try:
            await self._update_subscriptions(connection, reading)
        finally:
            reading.cancel()
            await asyncio.wait([reading])
        if not reading.cancelled():
            reading.result()

    async def _update_subscriptions(self, connection: AbstractConnection, reading: asyncio.Task[None]) -> None:
        """Subscribes to watched channels, unsubscribes from the others, and pings.

        The loop checks its flags because cancellation may be lost: redis-py writes under asyncio.wait_for, which can
        swallow it.
        """
        loop = asyncio.get_running_loop()
        next_ping = loop.time() + self._reply_seconds
        subscribed: set[str] = set()
        while not (reading.done() or self._is_dropped or self._is_closed):
            self._wanted.clear()
            wanted = set(self._subscriptions)
            if wanted - subscribed:
                await connection.send_command("SUBSCRIBE", *(wanted - subscribed))
            if subscribed - wanted:
                await connection.send_command("UNSUBSCRIBE", *(subscribed - wanted))
            subscribed = wanted
            if loop.time() >= next_ping:
                await connection.send_command("PING")
                next_ping = loop.time() + self._reply_seconds
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(next_ping):
                    await self._wanted.wait()

    async def _read(self, connection: AbstractConnection) -> None:
        """Notifies watchers of messages. Raises TimeoutError if not even a PONG arrives."""
        while not self._is_closed:
            message = await connection.read_response(
                timeout=2 * self._reply_seconds, disconnect_on_error=False, push_request=True
            )
            if message is None:
                raise exceptions.TimeoutError
            if message[0] in {b"message", b"subscribe"}:  # a PONG starts with another word
                self._notify(message[1].decode())

    def drop(self) -> None:
        """Replaces the connection by a new one."""
        self._is_dropped = True
        self._wanted.set()

    def _notify(self, channel: str) -> None:
        for subscription in self._subscriptions.get(channel, ()):
            subscription.notify()

    async def close(self) -> None:
        """Stops listening."""
        self._is_closed = True
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
