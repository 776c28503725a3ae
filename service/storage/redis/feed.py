"""Notifications of changed games: one subscribed connection for all watchers of a process and each Redis."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import structlog
from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from service.storage.store import Subscription

RECONNECT_SECONDS: Final = 0.5
"""The wait before the connection is opened again."""

_log = structlog.get_logger()
_Home = TypeVar("_Home")


@dataclass(frozen=True, slots=True)
class Words:
    """The commands and messages of a kind of channels."""

    subscribe: str
    unsubscribe: str
    message: str


PLAIN: Final = Words("SUBSCRIBE", "UNSUBSCRIBE", "message")
SHARDED: Final = Words("SSUBSCRIBE", "SUNSUBSCRIBE", "smessage")
"""Channels of a cluster, each of which is in one slot; its node ends subscriptions when the slot moves."""


class RedisFeed(Generic[_Home]):
    """The watchers of channels, each of which has a home: the Redis where it is published.

    A message is only a hint to read the stream. Watchers are also notified whenever their channel is subscribed, first
    or again, so they miss nothing that changed before.

    Args:
        home: Returns the home of a channel; None while that is unknown.
        listen: Returns a new listener for a home. It notifies of channels through the function that it is given.
    """

    def __init__(
        self, home: Callable[[str], _Home | None], listen: Callable[[_Home, Callable[[str], None]], "Listener"]
    ) -> None:
        self._home = home
        self._listen = listen
        self._subscriptions: defaultdict[str, set[Subscription]] = defaultdict(set)
        self._homes: dict[str, _Home] = {}
        self._listeners: dict[_Home, Listener] = {}

    @contextlib.asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[Subscription]:
        """Yields a subscription to a channel."""
        subscription = Subscription()
        self._subscriptions[channel].add(subscription)
        if channel not in self._homes:
            self._place(channel)
        try:
            yield subscription
        finally:
            self._subscriptions[channel].discard(subscription)
            if not self._subscriptions[channel]:
                del self._subscriptions[channel]
                self._leave(channel)

    def replace(self) -> None:
        """Moves channels to their homes, which have changed."""
        for channel in self._subscriptions:
            if self._home(channel) != self._homes.get(channel):
                self._leave(channel)
                self._place(channel)

    def _place(self, channel: str) -> None:
        home = self._home(channel)
        if home is None:
            return
        if home not in self._listeners:
            self._listeners[home] = self._listen(home, self._notify)
        self._homes[channel] = home
        self._listeners[home].want(channel)

    def _leave(self, channel: str) -> None:
        if channel in self._homes:
            self._listeners[self._homes.pop(channel)].discard(channel)

    def _notify(self, channel: str) -> None:
        for subscription in self._subscriptions.get(channel, ()):
            subscription.notify()

    def drop(self) -> None:
        """Replaces all connections by new ones."""
        for listener in self._listeners.values():
            listener.drop()

    async def forget(self, home: _Home) -> None:
        """Closes the connection to a home that no channel has any more."""
        if home in self._listeners and home not in self._homes.values():
            await self._listeners.pop(home).close()

    async def close(self) -> None:
        """Stops listening."""
        for listener in self._listeners.values():
            await listener.close()


class Listener:
    """Subscribes to wanted channels on one connection, and notifies of each message and each subscription.

    Only its own tasks use the connection, so a watcher may be cancelled at any time without harm to the others. A lost
    connection is replaced by a new one. redis-py's PubSub, which reconnects by itself, opens two if one task writes
    while another reads, and never closes one of them.

    Args:
        make: Makes an unconnected connection of redis-py.
        reply_seconds: How often the connection is pinged; it is replaced after twice this time without any message.
        words: The kind of channels.
        notify: Is called with the channel.
        on_failure: Is called with the error of a lost connection or a refused subscription, and with None if the Redis
            has ended a subscription.
    """

    def __init__(
        self,
        make: Callable[[], AbstractConnection],
        reply_seconds: float,
        words: Words,
        notify: Callable[[str], None],
        on_failure: Callable[[Exception | None], None] = lambda _: None,
    ) -> None:
        self._make = make
        self._reply_seconds = reply_seconds
        self._words = words
        self._notify = notify
        self._on_failure = on_failure
        self._wanted: set[str] = set()
        self._subscribed: set[str] = set()
        self._to_check: set[str] = set()
        """Channels that may have to be subscribed or unsubscribed. A look at all channels for each watcher who comes or
        goes would block the event loop for milliseconds on a server with thousands of watched games."""
        self._changed = asyncio.Event()
        self._is_closed = False
        self._is_dropped = False
        self._task: asyncio.Task[None] | None = None

    def want(self, channel: str) -> None:
        """Subscribes to a channel."""
        self._wanted.add(channel)
        self._to_check.add(channel)
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="redis-feed")

    def discard(self, channel: str) -> None:
        """Unsubscribes from a channel."""
        self._wanted.discard(channel)
        self._to_check.add(channel)
        self._changed.set()

    async def _run(self) -> None:
        """Listens until the feed is closed; reconnects if the connection is lost or dropped."""
        while not self._is_closed:
            self._is_dropped = False
            try:
                async with self._connected() as connection:
                    await self._listen(connection)
            except Exception as error:  # noqa: BLE001 - any failure of a connection needs a new one
                _log.warning("feed", result="connection lost", error=type(error).__name__)
                self._on_failure(error)
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
        self._subscribed, self._to_check = set(), set(self._wanted)
        reading = asyncio.create_task(self._read(connection))
        reading.add_done_callback(lambda _: self._changed.set())
        try:
            await self._update_subscriptions(connection, reading)
        finally:
            reading.cancel()
            await asyncio.wait([reading])
        if not reading.cancelled():
            reading.result()

    async def _update_subscriptions(self, connection: AbstractConnection, reading: asyncio.Task[None]) -> None:
        """Subscribes to wanted channels, unsubscribes from the others, and pings.

        The loop checks its flags because cancellation may be lost: redis-py writes under asyncio.wait_for, which can
        swallow it.
        """
        loop = asyncio.get_running_loop()
        next_ping = loop.time() + self._reply_seconds
        while not (reading.done() or self._is_dropped or self._is_closed):
            self._changed.clear()
            await self._send_changes(connection)
            if loop.time() >= next_ping:
                await connection.send_command("PING")
                next_ping = loop.time() + self._reply_seconds
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(next_ping):
                    await self._changed.wait()

    async def _send_changes(self, connection: AbstractConnection) -> None:
        """Subscribes and unsubscribes, each channel by its own command: sharded channels are in different slots."""
        checked, self._to_check = self._to_check, set()
        added = (checked & self._wanted) - self._subscribed
        removed = (checked & self._subscribed) - self._wanted
        self._subscribed |= added
        self._subscribed -= removed
        commands = [(self._words.subscribe, channel) for channel in added]
        commands += [(self._words.unsubscribe, channel) for channel in removed]
        if commands:
            await connection.send_packed_command(connection.pack_commands(commands))

    async def _read(self, connection: AbstractConnection) -> None:
        """Notifies of messages. Raises TimeoutError if not even a PONG arrives."""
        words = self._words
        notifying = {words.message.encode(), words.subscribe.lower().encode()}
        unsubscribed = words.unsubscribe.lower().encode()
        while not self._is_closed:
            try:
                message = await connection.read_response(
                    timeout=2 * self._reply_seconds, disconnect_on_error=False, push_request=True
                )
            except exceptions.MovedError as error:
                self._on_failure(error)
                continue
            if message is None:
                raise exceptions.TimeoutError
            if message[0] in notifying:  # a PONG starts with another word
                self._notify(message[1].decode())
            elif message[0] == unsubscribed and message[1] is not None and message[1].decode() in self._wanted:
                self._subscribed.discard(message[1].decode())  # its slot has moved
                self._to_check.add(message[1].decode())
                self._on_failure(None)

    def drop(self) -> None:
        """Replaces the connection by a new one."""
        self._is_dropped = True
        self._changed.set()

    async def close(self) -> None:
        """Stops listening."""
        self._is_closed = True
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
