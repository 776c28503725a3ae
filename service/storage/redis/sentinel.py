"""The primary that Redis Sentinels name: connections to it, and notice of a switch to another one.

redis-py's Sentinel pool makes the connections. All Sentinels are asked for the primary at once, and the newest answer
(the highest epoch) counts, because a Sentinel that was away still names the old primary.

The store also listens to all Sentinels. On `+switch-master` it leaves the old primary at once: until the old one is
demoted, which takes seconds, it may accept writes that are then lost. It leaves already on `+try-failover`, some 0.3 s
before the Sentinel promotes a replica, so that the replica gets all writes; then no primary is named until the failover
has succeeded or was given up.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import redis.asyncio as redis
import structlog
from redis import exceptions
from redis.asyncio.connection import AbstractConnection, BlockingConnectionPool, SSLConnection
from redis.asyncio.sentinel import (
    MasterNotFoundError,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)

from service.runtime.redis_url import Address, Sentinel

ASK_SECONDS: Final = 0.5
"""How long Sentinels may take to name the primary. Slower ones do not count."""
PING_SECONDS: Final = 1.0
"""How often a silent Sentinel is pinged. If it does not reply in the same time, its connection is opened again."""
RETRY_SECONDS: Final = 0.5
"""The wait before a lost connection to a Sentinel is opened again."""

CANCEL_SECONDS: Final = 0.1
"""The wait before a task that did not end is cancelled again."""
HOLD_SECONDS: Final = 5.0
"""The longest time after the start of a failover in which the old primary is not used."""

SWITCH: Final = "+switch-master"
"""The channel on which a Sentinel publishes that another server is the primary, after a failover or without one."""
TRY: Final = "+try-failover"
"""The channel on which a Sentinel publishes that it begins a failover."""
GIVEN_UP: Final = "-failover-abort-*"
"""The channels on which a Sentinel publishes that it gives up a failover."""

_log = structlog.get_logger()

Leave: TypeAlias = Callable[[], None]
"""Closes all connections to a primary, because a failover has begun or the Sentinels name another one."""
Count: TypeAlias = Callable[[], None]
"""Counts a failover."""


@dataclass(frozen=True, slots=True)
class _Named:
    """A Sentinel's answer: the primary's address. Each failover has a higher epoch than those before."""

    address: Address
    epoch: int


class Primary:
    """The primary as the Sentinels name it. It listens to them from the first question on.

    Args:
        url: The Sentinels and the primary's name.
        defaults: Options of connections to the Sentinels.

    Attributes:
        leave: Called when the primary is left.
        count: Called for each failover.
        hold_seconds: The longest time after the start of a failover in which the old primary is not used.
        ping_seconds: After this silence a Sentinel is pinged; after another one its connection counts as lost.
        retry_seconds: The pause before a Sentinel is listened to again.
    """

    def __init__(self, url: Sentinel, defaults: Mapping[str, Any]) -> None:
        self.leave: Leave = lambda: None
        self.count: Count = lambda: None
        self.hold_seconds = HOLD_SECONDS
        self.ping_seconds = PING_SECONDS
        self.retry_seconds = RETRY_SECONDS
        self._name = url.name
        options = {**defaults, **url.sentinel_options}
        self._sentinels = [
            redis.Redis.from_pool(BlockingConnectionPool(**{**options, "host": address.host, "port": address.port}))
            for address in url.addresses
        ]
        self._named: _Named | None = None
        self._held_until = 0.0
        self._asked: set[asyncio.Task[_Named | Exception]] = set()
        self._listeners: list[asyncio.Task[None]] = []

    async def discover_master(self, _name: str) -> Address:
        """Returns the primary's address; redis-py's Sentinel pool calls this. Raises MasterNotFoundError."""
        if not self._listeners:
            self._listeners = [asyncio.create_task(self._listen(sentinel)) for sentinel in self._sentinels]
        answers = await self._answers()
        newest = max(answers, key=_epoch)
        if self._named and newest.epoch < self._named.epoch and len(answers) < max(2, len(self._sentinels)):
            newest = self._named  # a Sentinel that has not answered has named it, perhaps behind the same address
        self._take(newest)
        if self._is_held:
            raise MasterNotFoundError("a failover is in progress")
        return newest.address

    def is_current(self, address: tuple[str, int]) -> bool:
        """Returns whether an address is still the primary's, and no failover has begun."""
        return self._named is not None and self._named.address == address and not self._is_held

    @property
    def _is_held(self) -> bool:
        """Whether the primary must not be used, because a failover has begun."""
        return asyncio.get_running_loop().time() < self._held_until

    async def _answers(self) -> list[_Named]:
        """Returns answers of most Sentinels, one of them no older than what is known, or else of all in time."""
        pending = {asyncio.create_task(self._ask(sentinel)) for sentinel in self._sentinels}
        self._asked |= pending  # a task that nobody references may vanish
        for task in pending:
            task.add_done_callback(self._asked.discard)
        deadline = asyncio.get_running_loop().time() + ASK_SECONDS
        answers: list[_Named] = []
        failures: list[str] = []
        while pending and not self._is_enough(answers):
            seconds = deadline - asyncio.get_running_loop().time()
            done, pending = await asyncio.wait(pending, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                break
            for answer in (task.result() for task in done):
                if isinstance(answer, _Named):
                    answers.append(answer)
                else:
                    failures.append(str(answer) or type(answer).__name__)
        if not answers:
            raise MasterNotFoundError(f"no Sentinel names a primary: {'; '.join(failures) or 'no reply in time'}")
        return answers

    def _is_enough(self, answers: list[_Named]) -> bool:
        if self._is_held:
            return False  # perhaps only one knows the new primary yet
        known = self._named.epoch if self._named else 0
        return 2 * len(answers) > len(self._sentinels) and max(map(_epoch, answers)) >= known

    async def _ask(self, sentinel: "redis.Redis") -> _Named | Exception:
        """Returns a Sentinel's answer, or why there is none."""
        try:
            state = await self._state(sentinel)
            current = await sentinel.sentinel_get_master_addr_by_name(self._name)  # in a failover, ahead of the state
            host, port = cast("tuple[bytes, int]", current)
            address = Address(host.decode(), port)
            if address != Address(state["ip"], state["port"]):
                return _Named(address, (await self._state(sentinel))["config-epoch"])  # the epoch may have been older
        except (exceptions.RedisError, OSError) as error:
            return error
        if state["is_sdown"] or state["is_odown"]:
            return exceptions.ConnectionError("the primary does not answer the Sentinel")
        return _Named(address, state["config-epoch"])

    async def _state(self, sentinel: "redis.Redis") -> dict[str, Any]:
        return cast("dict[str, Any]", await sentinel.sentinel_master(self._name))

    def _take(self, named: _Named) -> None:
        """Leaves the old primary if another one is named."""
        old, self._named = self._named, named
        if old and old.address != named.address:
            _log.warning("store", result="another primary", was=str(old.address), now=str(named.address))
            self._held_until = 0.0
            self.leave()
            self.count()

    def _hold(self) -> None:
        """Leaves the primary, because a failover has begun."""
        self._held_until = asyncio.get_running_loop().time() + self.hold_seconds
        self.leave()

    async def _listen(self, sentinel: "redis.Redis") -> None:
        """Follows each switch that a Sentinel publishes, or has published while its connection was lost."""
        is_heard = True
        while True:
            connection: AbstractConnection = sentinel.connection_pool.make_connection()  # type: ignore[no-untyped-call]
            try:
                await connection.connect()  # type: ignore[no-untyped-call]
                await connection.send_command("PSUBSCRIBE", SWITCH, TRY, GIVEN_UP)
                is_heard = True
                await self._read(sentinel, connection)
            except Exception as error:  # noqa: BLE001 - without its events, writes to an old primary would be lost
                if is_heard:
                    text = f"{type(error).__name__}: {error}"
                    _log.warning("store", result="Sentinel not heard", sentinel=_address(sentinel), error=text)
                is_heard = False
            finally:
                await connection.disconnect(nowait=True)
            await asyncio.sleep(self.retry_seconds)

    async def _read(self, sentinel: "redis.Redis", connection: AbstractConnection) -> None:
        """Reads a Sentinel's messages. Raises an exception of redis-py if it falls silent."""
        is_pinged = False
        while True:
            message = await connection.read_response(
                timeout=self.ping_seconds, disconnect_on_error=False, push_request=True
            )
            if message is None:
                if is_pinged:
                    raise exceptions.TimeoutError("no reply in time")
                await connection.send_command("PING")
            elif message[0] == b"psubscribe":
                await self._follow(sentinel)
            elif message[0] == b"pmessage":
                await self._handle(sentinel, message[2].decode(), message[3].decode().split())
            is_pinged = message is None

    async def _handle(self, sentinel: "redis.Redis", event: str, words: Sequence[str]) -> None:
        """Handles an event of a Sentinel about our primary."""
        if event == SWITCH and words[0] == self._name:
            await self._follow(sentinel)
        elif event == TRY and words[1] == self._name:
            self._hold()
        elif event not in {SWITCH, TRY} and words[1] == self._name:
            self._held_until = 0.0

    async def _follow(self, sentinel: "redis.Redis") -> None:
        """Leaves the primary if a Sentinel knows a newer one."""
        named = await self._ask(sentinel)
        if isinstance(named, _Named) and (self._named is None or named.epoch > self._named.epoch):
            self._take(named)

    async def close(self) -> None:
        """Stops listening and closes the connections to the Sentinels."""
        tasks: set[asyncio.Task[Any]] = {*self._listeners, *self._asked}
        while tasks:  # again and again, because redis-py may swallow a cancellation
            for task in tasks:
                task.cancel()
            _, tasks = await asyncio.wait(tasks, timeout=CANCEL_SECONDS)
        for sentinel in self._sentinels:
            await sentinel.aclose()


def _epoch(named: _Named) -> int:
    return named.epoch


def _address(sentinel: "redis.Redis") -> str:
    options = sentinel.connection_pool.connection_kwargs
    return str(Address(options["host"], options["port"]))


class _PrimaryConnection(SentinelManagedConnection):
    """A connection to the primary. It is not opened if the primary changes meanwhile."""

    async def connect_to(self, address: tuple[str, int]) -> None:
        """Connects to an address, if it is still the primary's then."""
        await super().connect_to(address)  # type: ignore[no-untyped-call]
        if not self.connection_pool.primary.is_current(address):
            await self.disconnect(nowait=True)
            raise exceptions.ConnectionError("the primary has changed")


class _SecurePrimaryConnection(_PrimaryConnection, SentinelManagedSSLConnection):
    """The same with TLS."""


class PrimaryPool(SentinelConnectionPool, BlockingConnectionPool):
    """redis-py's pool of connections to a primary that Sentinels name. A caller waits for a free one."""

    def __init__(self, primary: Primary, url: Sentinel, options: Mapping[str, Any]) -> None:
        is_tls = options.get("connection_class") is SSLConnection
        managed = _SecurePrimaryConnection if is_tls else _PrimaryConnection
        super().__init__(url.name, primary, **{**options, "connection_class": managed})  # type: ignore[no-untyped-call]
        self.primary = primary

    async def aclose(self) -> None:
        """Closes the connections, to the Sentinels too."""
        await super().aclose()
        await self.primary.close()


def sentinel_client(url: Sentinel, defaults: Mapping[str, Any]) -> "redis.Redis":
    """Returns a client of the primary that Sentinels name."""
    return redis.Redis.from_pool(PrimaryPool(Primary(url, defaults), url, {**defaults, **url.options}))


async def find_primary(url: Sentinel, defaults: Mapping[str, Any]) -> Address:
    """Returns the address of the primary that Sentinels name now. Raises MasterNotFoundError."""
    primary = Primary(url, defaults)
    try:
        return await primary.discover_master(url.name)
    finally:
        await primary.close()


def has_sentinels(client: "redis.Redis") -> bool:
    """Returns whether Sentinels name the primary of a client."""
    return isinstance(client.connection_pool, PrimaryPool)


def on_switch(client: "redis.Redis", leave: Leave, count: Count) -> None:
    """Sets what to do when the Sentinels of a client name another primary. A client without Sentinels ignores it."""
    if isinstance(client.connection_pool, PrimaryPool):
        client.connection_pool.primary.leave = leave
        client.connection_pool.primary.count = count
