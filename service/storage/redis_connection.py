"""One held connection to Redis, which all calls of a process share.

Commands are written as they come, and Redis answers in the same order; so no call waits for another's round trip, none
takes a connection from a pool, and one that is given up leaves its answer to nobody: it is read in its place and
dropped. redis-py makes the connection (URL, TLS, AUTH, SELECT), then its bytes are ours, packed and parsed by hiredis.

Nothing is ever sent twice. A connection that breaks, or that does not answer in time, fails every call that waits on
it, as nobody knows which of them were carried out; the next call makes a new one. One to a Redis that has become a
replica is given up too.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

from hiredis import ProtocolError, PushNotification, Reader, ReplyError, pack_command
from redis import exceptions
from redis.asyncio.connection import AbstractConnection

NOT_YET: Final = object()
"""What hiredis tells when no whole answer is there."""


class Wire:
    """A connection that is made when first needed, and anew when it was lost.

    Args:
        make: Makes a connection of redis-py, not connected yet; its time-outs are those of connecting.
        answer_seconds: How long an answer may take.
    """

    def __init__(self, make: Callable[[], AbstractConnection], answer_seconds: float) -> None:
        self._make = make
        self._answer_seconds = answer_seconds
        self._connected: _Connected | None = None
        self._connecting: asyncio.Task[_Connected] | None = None

    async def ask(self, *command: str | int | bytes) -> Any:  # noqa: ANN401 - whatever Redis answers
        """The answer to a command. Raises redis-py's exceptions."""
        connected = self._connected
        if connected is None or connected.is_lost:
            connected = await self._connect()
        answer = await connected.ask(pack_command(command))  # type: ignore[arg-type]  # of any length
        if not isinstance(answer, ReplyError):
            return answer
        refusal = _refusal(str(answer))
        if isinstance(refusal, exceptions.ReadOnlyError):
            self.leave(connected)
        raise refusal

    async def _connect(self) -> "_Connected":
        """The connection that is being made; a caller that gives up takes it from no other."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._make_connection(), name="redis-wire")
            self._connecting.add_done_callback(self._connect_done)
        attempt = self._connecting
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if attempt.cancelled():  # and not the caller, who is told as of any other end of a connection
                raise exceptions.ConnectionError("the connection was given up while it was made") from None
            raise

    def _connect_done(self, task: "asyncio.Task[_Connected]") -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._connected = task.result()

    async def _make_connection(self) -> "_Connected":
        connection = self._make()
        await connection.connect()  # type: ignore[no-untyped-call]
        return _Connected(connection, self._answer_seconds)

    @property
    def held(self) -> "_Connected | None":
        """The connection, if there is one."""
        return self._connected

    def leave(self, held: "_Connected | None") -> None:
        """Gives a connection up, so that the next call makes another one. Who waits for an answer is told.

        Nothing happens to the one that has taken its place already.
        """
        if held:
            held.lose(exceptions.ConnectionError("the connection was given up"))

    async def close(self) -> None:
        """Gives the connection back. Who waits for an answer is told that it was lost."""
        if self._connecting:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        if self._connected:
            await self._connected.close()


_REFUSALS: Final = {"LOADING": exceptions.BusyLoadingError, "READONLY": exceptions.ReadOnlyError}


def _refusal(text: str) -> exceptions.RedisError:
    """What an error that Redis answers is raised as: as by redis-py, for which one that has just started is away."""
    return _REFUSALS.get(text.partition(" ")[0], exceptions.ResponseError)(text)


class _Connected(asyncio.Protocol):
    """A connection, and who waits for its answers."""

    def __init__(self, connection: AbstractConnection, answer_seconds: float) -> None:
        writer = connection._writer  # noqa: SLF001 - redis-py has connected it, and does not read or write any more
        if writer is None:
            raise exceptions.ConnectionError("the connection was closed as soon as it was made")
        self._connection = connection
        self._answer_seconds = answer_seconds
        self._transport = cast("asyncio.Transport", writer.transport)
        self._streams = self._transport.get_protocol()
        self._transport.set_protocol(self)
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(notEnoughData=NOT_YET)
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self._watch: asyncio.TimerHandle | None = None
        self._lost: Exception | None = None

    @property
    def is_lost(self) -> bool:
        """Whether it can be used no more."""
        return self._lost is not None or self._transport.is_closing()

    async def ask(self, command: bytes) -> Any:  # noqa: ANN401 - whatever Redis answers, its errors as values
        """Sends a command; its answer."""
        now = self._loop.time()
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((answer, now))
        if self._watch is None:
            self._watch = self._loop.call_at(now + self._answer_seconds, self._look)
        self._transport.write(command)
        return await answer

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        try:
            self._reader.feed(data)
            while (answer := self._reader.gets()) is not NOT_YET:
                if not isinstance(answer, PushNotification):
                    self._answer(answer)
        except (ProtocolError, IndexError) as error:
            self.lose(exceptions.InvalidResponse(str(error)))

    def _answer(self, answer: object) -> None:
        waiting, _ = self._waiting.popleft()
        if not waiting.done():
            waiting.set_result(answer)

    def _look(self) -> None:
        """Gives the connection up when who has waited longest has waited too long."""
        self._watch = None
        if not self._waiting:
            return
        due = self._waiting[0][1] + self._answer_seconds
        if due <= self._loop.time():
            self.lose(exceptions.TimeoutError("no answer in time"))
        else:
            self._watch = self._loop.call_at(due, self._look)

    def lose(self, error: Exception) -> None:
        """Ends it at once, and fails all who wait."""
        self._transport.abort()
        self._fail(error)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol. redis-py is told too, as it has opened what is to be closed."""
        self._fail(error or exceptions.ConnectionError("the connection was closed"))
        self._streams.connection_lost(error)
        self._connection._close()  # type: ignore[no-untyped-call]  # noqa: SLF001 - as its disconnect does outside of tasks

    def _fail(self, error: Exception) -> None:
        self._lost = self._lost or error
        if self._watch:
            self._watch.cancel()
            self._watch = None
        while self._waiting:
            waiting, _ = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(error)

    async def close(self) -> None:
        """Closes it."""
        self._fail(exceptions.ConnectionError("the store is closed"))
        await self._connection.disconnect()
