"""One connection to Redis that all calls of a process share.

Commands are written as they come and Redis answers in order, so no call waits for another's round trip or takes a
connection from a pool. If a caller gives up, its reply is read in its place and dropped. redis-py opens the connection
(URL, TLS, AUTH, SELECT); then this module reads and writes its socket, with hiredis as packer and parser. What that
saves: docs/decisions/003-held-redis-connection.md.

No command is sent twice. If the connection breaks or a reply is late, every waiting call fails, because it is unknown
which of them Redis executed. The next call opens a new connection, also after Redis has become a replica.

Private attributes of redis-py, used by `_OpenConnection` alone: `AbstractConnection._writer`, to take over the socket,
and `AbstractConnection._close`, to close it outside of tasks. pyproject.toml pins redis below 9 for them. If a redis-py
lacks them, `shared_connection` logs a warning and returns a PooledConnection, which is slower but uses public methods.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

import redis
import structlog
from hiredis import ProtocolError, PushNotification, Reader, ReplyError, pack_command
from redis import exceptions
from redis.asyncio.connection import AbstractConnection, Connection, ConnectionPool

PRIVATE_ATTRIBUTES: Final = ("_writer", "_close")
"""The attributes of redis-py's connections that _OpenConnection needs."""
CAN_SHARE: Final = all(hasattr(Connection(), name) for name in PRIVATE_ATTRIBUTES)
"""Whether this redis-py has them."""
ASKING: Final = pack_command(("ASKING",))
"""Makes a cluster's node execute the next command on a slot that it is importing."""
INCOMPLETE: Final = object()
"""hiredis returns this if it has no whole reply yet."""

_log = structlog.get_logger()
_T = TypeVar("_T")


class CommandConnection(Protocol):
    """Executes commands on one Redis."""

    async def execute(self, *command: str | int | bytes, is_asking: bool = False) -> Any:  # noqa: ANN401 - any reply
        """Returns the reply to a command, before which ASKING is sent if `is_asking`. Raises redis-py's exceptions."""

    @property
    def current(self) -> "_OpenConnection | None":
        """The connection that was opened last, if one is shared."""

    @property
    def is_open(self) -> bool:
        """Whether a connection is shared and open."""

    def drop(self, current: "_OpenConnection | None") -> None:
        """Closes an open connection, so that the next call opens another one."""

    async def close(self) -> None:
        """Closes the connection."""


Connect: TypeAlias = Callable[[ConnectionPool, float], CommandConnection]
"""Returns a connection to the Redis of a pool, given the seconds until a reply."""


def shared_connection(pool: ConnectionPool, reply_seconds: float) -> CommandConnection:
    """Returns a connection to the Redis of a pool: a shared one if this redis-py allows it, else the pool's."""
    if CAN_SHARE:
        return SharedConnection(pool.make_connection, reply_seconds)
    _log.warning("store", error="redis-py has changed: commands are slower", redis_py=redis.__version__)
    return PooledConnection(pool)


class PooledConnection:
    """Takes a connection from redis-py's pool for each command. Its time-outs are the pool's."""

    current: "_OpenConnection | None" = None
    is_open = False

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._dropping: asyncio.Task[None] | None = None

    async def execute(self, *command: str | int | bytes, is_asking: bool = False) -> Any:  # noqa: ANN401 - any reply
        """See CommandConnection. A connection that fails is closed before it goes back to the pool."""
        connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        try:
            if is_asking:
                await connection.send_command("ASKING")
                await connection.read_response()
            await connection.send_command(*command)
            return await connection.read_response()
        except exceptions.ResponseError as error:
            if isinstance(error, exceptions.ReadOnlyError):  # the other connections lead to the same replica
                await self._drop()
            raise own_exception(error) from None
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            await self._pool.release(connection)

    def drop(self, current: "_OpenConnection | None") -> None:  # noqa: ARG002 - all connections of the pool are dropped
        self._dropping = asyncio.create_task(self._drop(), name="redis-pool-dropping")

    async def _drop(self) -> None:
        """Closes the pool's idle connections now and the others when they come back."""
        await self._pool.update_active_connections_for_reconnect()  # type: ignore[no-untyped-call]
        await self._pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        await self._pool.disconnect()


class SharedConnection:
    """One connection, opened when first needed and again after it was lost.

    Args:
        make: Makes an unconnected connection of redis-py; its time-outs apply to connecting.
        reply_seconds: How long a reply may take.
    """

    def __init__(self, make: Callable[[], AbstractConnection], reply_seconds: float) -> None:
        self._make = make
        self._reply_seconds = reply_seconds
        self._current: _OpenConnection | None = None
        self._connecting: asyncio.Task[_OpenConnection] | None = None

    async def execute(self, *command: str | int | bytes, is_asking: bool = False) -> Any:  # noqa: ANN401 - any reply
        """See CommandConnection. ASKING and its command are written together, so no other command comes between."""
        current = self._current
        if current is None or current.is_lost:
            current = await self._connect()
        packed: bytes = pack_command(command)  # type: ignore[arg-type]  # of any length
        reply = await (current.execute_asking(packed) if is_asking else current.execute(packed))
        if not isinstance(reply, ReplyError):
            return reply
        error = exception_of(str(reply))
        if isinstance(error, exceptions.ReadOnlyError):
            self.drop(current)
        raise error

    async def _connect(self) -> "_OpenConnection":
        """Returns the connection being opened. A cancelled caller does not cancel it for the others."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._open(), name="redis-connection")
            self._connecting.add_done_callback(self._on_opened)
        return await shared_result(self._connecting, "the connection was closed while it was opened")

    def _on_opened(self, task: "asyncio.Task[_OpenConnection]") -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._current = task.result()

    async def _open(self) -> "_OpenConnection":
        connection = self._make()
        await connection.connect()  # type: ignore[no-untyped-call]
        return _OpenConnection(connection, self._reply_seconds)

    @property
    def current(self) -> "_OpenConnection | None":
        return self._current

    @property
    def is_open(self) -> bool:
        return self._current is not None and not self._current.is_lost

    def drop(self, current: "_OpenConnection | None") -> None:
        """See CommandConnection. Waiting calls fail; a connection opened since stays."""
        if current:
            current.abort(exceptions.ConnectionError("the connection was dropped"))

    async def close(self) -> None:
        """See CommandConnection. Waiting calls fail."""
        if self._connecting:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        if self._current:
            await self._current.close()


async def shared_result(task: "asyncio.Task[_T]", closed: str) -> _T:
    """Returns the result of a task for one of several callers. A cancelled caller does not cancel the task.

    Raises ConnectionError with the text `closed` if the task was cancelled, because `close` did that, not the caller.
    """
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():
            raise exceptions.ConnectionError(closed) from None
        raise


class NoReplicasError(exceptions.ResponseError):
    """The primary refuses writes, because it has fewer replicas than min-replicas-to-write."""


class NotPersistingError(exceptions.ResponseError):
    """The primary refuses writes, because it cannot save them on disk (MISCONF)."""


_EXCEPTIONS: Final[dict[str, type[exceptions.RedisError]]] = {
    "ASK": exceptions.AskError,
    "CLUSTERDOWN": exceptions.ClusterDownError,
    "LOADING": exceptions.BusyLoadingError,
    "MISCONF": NotPersistingError,
    "MOVED": exceptions.MovedError,
    "NOPERM": exceptions.NoPermissionError,
    "NOREPLICAS": NoReplicasError,
    "NOSCRIPT": exceptions.NoScriptError,
    "OOM": exceptions.OutOfMemoryError,
    "READONLY": exceptions.ReadOnlyError,
    "TRYAGAIN": exceptions.TryAgainError,
}


def exception_of(text: str) -> exceptions.RedisError:
    """Returns redis-py's exception for an error reply. BusyLoadingError is a ConnectionError there."""
    code, _, rest = text.partition(" ")
    known = _EXCEPTIONS.get(code)
    if known is None:
        return exceptions.ResponseError(text)
    try:
        return known(rest if issubclass(known, exceptions.AskError) else text)  # redis-py parses the address
    except ValueError:  # MOVED or ASK without one
        return exceptions.ResponseError(text)


def own_exception(error: exceptions.ResponseError) -> exceptions.RedisError:
    """Returns the exception for an error that redis-py has raised. It has no class for some codes of _EXCEPTIONS."""
    return exception_of(str(error)) if type(error) is exceptions.ResponseError else error


class _OpenConnection(asyncio.Protocol):
    """An open connection and the calls that wait for its replies.

    It uses redis-py's private `_writer` and `_close` (see the module's docstring).
    """

    def __init__(self, connection: AbstractConnection, reply_seconds: float) -> None:
        writer = connection._writer  # noqa: SLF001 - redis-py has connected it, and neither reads nor writes any more
        if writer is None:
            raise exceptions.ConnectionError("the connection was closed as soon as it was opened")
        self._connection = connection
        self._reply_seconds = reply_seconds
        self._transport = cast("asyncio.Transport", writer.transport)
        self._streams = self._transport.get_protocol()
        self._transport.set_protocol(self)
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(notEnoughData=INCOMPLETE)
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._error: Exception | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the connection is unusable."""
        return self._error is not None or self._transport.is_closing()

    async def execute(self, command: bytes) -> Any:  # noqa: ANN401 - any reply; error replies are values
        """Sends a packed command and returns the reply."""
        now = self._loop.time()
        reply: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((reply, now))
        if self._timer is None:
            self._timer = self._loop.call_at(now + self._reply_seconds, self._check_timeout)
        self._transport.write(command)
        return await reply

    async def execute_asking(self, command: bytes) -> Any:  # noqa: ANN401 - any reply; error replies are values
        """Sends ASKING and a packed command, and returns the reply to the command."""
        ignored: asyncio.Future[Any] = self._loop.create_future()
        ignored.cancel()
        self._waiting.append((ignored, self._loop.time()))
        return await self.execute(ASKING + command)

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not INCOMPLETE:
                if not isinstance(reply, PushNotification):
                    waiting, _ = self._waiting.popleft()
                    if not waiting.done():
                        waiting.set_result(reply)
        except (ProtocolError, IndexError) as error:
            self.abort(exceptions.InvalidResponse(str(error)))

    def _check_timeout(self) -> None:
        """Aborts the connection if the oldest call has waited too long."""
        self._timer = None
        if not self._waiting:
            return
        due = self._waiting[0][1] + self._reply_seconds
        if due <= self._loop.time():
            self.abort(exceptions.TimeoutError("no reply in time"))
        else:
            self._timer = self._loop.call_at(due, self._check_timeout)

    def abort(self, error: Exception) -> None:
        """Closes the connection at once and fails all waiting calls."""
        self._transport.abort()
        self._fail(error)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol. Also closes redis-py's connection object, which opened the socket."""
        self._fail(error or exceptions.ConnectionError("the connection was closed"))
        self._streams.connection_lost(error)
        self._connection._close()  # type: ignore[no-untyped-call]  # noqa: SLF001 - disconnect() needs a task

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        if self._timer:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            waiting, _ = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(error)

    async def close(self) -> None:
        """Closes the connection."""
        self._fail(exceptions.ConnectionError("the store is closed"))
        await self._connection.disconnect()
