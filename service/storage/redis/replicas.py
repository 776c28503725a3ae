"""Waits until replicas have what a primary has acknowledged (RUMMIKUB_REDIS_REPLICAS).

WAIT counts replicas that have the last write of its own connection, and holds up every command behind it. So it has a
connection of its own, on which a write of a probe key precedes it. A primary replicates its writes as one stream in
the order of their execution. The probe is sent after the reply to a commit, so a replica that has the probe has the
commit. In a cluster a probe is refused while its slot moves, and then another one is written: any will do.

That holds only if both connections lead to the same process: a primary that lost the commit in a restart would
replicate the probe without it. So `open` is called before the commit is sent, and `confirm` fails if the connection was
lost since: a connection that outlives the commit leads to the process that executed it.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import Final

from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from service.storage.redis.connection import own_exception, shared_result

REPLICAS_SECONDS: Final = 0.5
"""How long replicas may take to acknowledge a write; less than a reply may take."""
PROBE_MS: Final = 60_000
"""How long a probe key is kept."""
OWN_PROBES: Final = 3
"""Most probes in the slots of waiting calls that are tried."""


class TooFewReplicasError(exceptions.ResponseError):
    """A write is stored, but not on enough replicas in time."""


class ReplicaWaiter:
    """Waits for the replicas of one primary. Calls that arrive during a WAIT share the next one.

    Args:
        make: Makes an unconnected connection of redis-py.
        replicas: How many replicas must have a write.
        probes: Yields probe keys in slots of a primary of a cluster; None for one Redis.
    """

    def __init__(
        self,
        make: Callable[[], AbstractConnection],
        replicas: int,
        probes: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        self._make = make
        self._replicas = replicas
        self._probes = probes
        self._connection: AbstractConnection | None = None
        self._opened = 0
        self._opening: asyncio.Task[int] | None = None
        self._waiting: list[tuple[asyncio.Future[None], str]] = []
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def open(self) -> int:
        """Returns the number of the open connection; opens one if there is none. Raises redis-py's exceptions."""
        if self._connection is not None:
            return self._opened
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(), name="redis-replicas-connection")
        return await shared_result(self._opening, "the connection for WAIT was closed while it was opened")

    async def _open(self) -> int:
        try:
            connection = self._make()
            await connection.connect()  # type: ignore[no-untyped-call]
            self._connection = connection
            self._opened += 1
            return self._opened
        finally:
            self._opening = None

    async def confirm(self, opened: int, probe: str) -> None:
        """Returns when enough replicas have what the primary has acknowledged since the connection was opened.

        Raises TooFewReplicasError if they take longer than REPLICAS_SECONDS, else redis-py's exceptions.

        Args:
            opened: The number of the connection.
            probe: A probe key in the slot of the write, for a primary that has no slot yet but imports this one.
        """
        if self._connection is None or opened != self._opened:
            raise exceptions.ConnectionError("the connection for WAIT was lost")
        confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((confirmed, probe))
        if self._task is None:
            self._task = asyncio.create_task(self._confirm_all(), name="redis-replicas")
        await confirmed

    async def _confirm_all(self) -> None:
        """Confirms in batches until no call waits. Fails the batch whose WAIT `close` cancels."""
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                error: Exception | None = exceptions.ConnectionError("the connection for WAIT was closed")
                try:
                    error = await self._wait(dict.fromkeys(probe for _, probe in batch))
                finally:
                    for confirmed, _ in batch:
                        if not confirmed.done():
                            confirmed.set_exception(error) if error else confirmed.set_result(None)
        finally:
            self._task = None

    async def _wait(self, own: Iterable[str]) -> Exception | None:
        """Writes a probe and waits; returns why the replicas do not have it. Drops a connection that fails.

        Args:
            own: Probe keys in the slots of the waiting calls.
        """
        connection, error = self._connection, None
        if connection is None:
            return exceptions.ConnectionError("the connection for WAIT was lost")
        try:
            probes = ((probe, False) for probe in (self._probes() if self._probes else ()))
            imported = ((probe, self._probes is not None) for probe in islice(own, OWN_PROBES))
            for probe, is_asking in chain(probes, imported):
                try:
                    return await self._wait_for(connection, probe, is_asking=is_asking)
                except exceptions.AskError as refused:  # MOVED too
                    error = refused
                except exceptions.ReadOnlyError:  # the connection leads to a replica
                    raise
                except exceptions.ResponseError as refused:
                    return own_exception(refused)
        except (exceptions.RedisError, OSError, TimeoutError) as failure:
            if self._connection is connection:
                self._connection = None
            await connection.disconnect(nowait=True)
            return failure
        return error

    async def _wait_for(self, connection: AbstractConnection, probe: str, *, is_asking: bool) -> Exception | None:
        """Writes a probe and waits; returns why the replicas do not have it.

        Raises ResponseError if the primary refuses the probe, AskError if it does not have the slot; else redis-py's
        exceptions, after which the connection cannot be used. ASKING makes a primary accept a slot that it imports.
        """
        asking: Sequence[tuple[str]] = [("ASKING",)] if is_asking else []
        commands = [
            *asking,
            ("SET", probe, 1, "PX", PROBE_MS),
            ("WAIT", self._replicas, round(REPLICAS_SECONDS * 1000)),
        ]
        await connection.send_packed_command(connection.pack_commands(commands))
        for _ in asking:
            await connection.read_response()
        refused = None
        try:
            await connection.read_response()
        except exceptions.ResponseError as error:
            refused = error
        found = await connection.read_response()
        if refused:
            raise refused
        if found < self._replicas:
            return TooFewReplicasError(f"{found} of {self._replicas} replicas have the change")
        return None

    def drop(self) -> None:
        """Leaves a primary that is none any more. Waiting calls fail."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._closing = asyncio.create_task(connection.disconnect(nowait=True), name="redis-replicas-closing")

    async def close(self) -> None:
        """Closes the connection; waiting calls fail."""
        self.drop()
        for task in (self._opening, self._task):
            if task is not None:
                task.cancel()
        if self._closing:
            await self._closing
        for confirmed, _ in self._waiting:
            if not confirmed.done():
                confirmed.set_exception(exceptions.ConnectionError("the store is closed"))
