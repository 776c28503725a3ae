"""The client for asyncio: the same surface as that for threads, over grpc.aio.

```python
async with aio.Rummikub("127.0.0.1:50051") as lobby:
    created = await lobby.games.CreateGame(CreateGameRequest())
    async for update in lobby.watch(created.game.game_id):
        print(update)
```
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import grpc
import grpc.aio

from rummikub.calls import authorization, channel_options, check_target, with_request_id
from rummikub.v1.analysis_service_pb2_grpc import AnalysisServiceStub
from rummikub.v1.game_service_pb2 import WATCH_CONTENT_UNSPECIFIED, WatchContent, WatchGameRequest, WatchGameResponse
from rummikub.v1.game_service_pb2_grpc import GameServiceStub
from rummikub.v1.turn_service_pb2_grpc import TurnServiceStub
from rummikub.v1.validation_service_pb2_grpc import ValidationServiceStub
from rummikub.watching import PATIENCE_SECONDS, SILENCE_SECONDS, SilenceError, WatchPosition

if TYPE_CHECKING:
    from rummikub.v1.game_service_pb2_grpc import GameServiceAsyncStub


class Rummikub:
    """The service at an address, as a spectator or, with a token, as a seat or the host of a game.

    A request with an empty `request_id` is sent with a fresh one, so that calls can be retried.

    Args:
        target: `host:port`.
        credentials: TLS credentials; None for a plain connection.
        token: A seat's token or the host token, which is sent with every call.
        options: Channel options in addition to, or in place of, those of the client.
        channel: A channel to use instead of a new one to the target.
    """

    def __init__(
        self,
        target: str = "127.0.0.1:50051",
        credentials: grpc.ChannelCredentials | None = None,
        *,
        token: str | None = None,
        options: Mapping[str, Any] | None = None,
        channel: grpc.aio.Channel | None = None,
    ) -> None:
        if channel is None:
            check_target(target)
            settings = channel_options(options)
            channel = (
                grpc.aio.secure_channel(target, credentials, settings)
                if credentials
                else grpc.aio.insecure_channel(target, settings)
            )
        self.target = target
        self.channel = channel
        prepared = cast("grpc.aio.Channel", _Preparation(channel, token))
        self.games = GameServiceStub(prepared)
        self.turns = TurnServiceStub(prepared)
        self.validation = ValidationServiceStub(prepared)
        self.analysis = AnalysisServiceStub(prepared)

    def seated(self, token: str) -> "Rummikub":
        """Returns the same connection with a seat's token, or the host token, on every call."""
        return Rummikub(self.target, token=token, channel=self.channel)

    def watch(  # noqa: PLR0913 - the fields of WatchGameRequest
        self,
        game_id: str,
        *,
        content: WatchContent.ValueType = WATCH_CONTENT_UNSPECIFIED,
        until_rematch: bool = False,
        after_revision: int = 0,
        etag: str = "",
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> "Watch":
        """Returns the updates of a game, beginning with a snapshot, as an iterator that reconnects and resumes.

        Args:
            game_id: The id of the game.
            content: Whether the updates are changes, whole games, or both.
            until_rematch: Whether the watch continues after the game until its rematch is announced.
            after_revision: The last revision that the caller has seen; 0 begins with a snapshot.
            etag: The etag of after_revision.
            patience_seconds: How long the watch tries to connect again before it raises the last error.
        """
        request = WatchGameRequest(
            game_id=game_id, after_revision=after_revision, etag=etag, content=content, until_rematch=until_rematch
        )
        return Watch(self.games, request, patience_seconds)

    async def close(self) -> None:
        """Closes the connection, also for all seats."""
        await self.channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        await self.close()


class Watch(AsyncIterator[WatchGameResponse]):
    """The updates of a game, without heartbeats, over as many streams as it takes.

    After a lost connection the watch resumes after the last update that the caller got; if the server no longer has
    the changes since, the next update is a snapshot. The iterator ends with the game, or after close(). A cancelled
    `anext` loses no update: the next one resumes.
    """

    def __init__(self, games: "GameServiceAsyncStub", request: WatchGameRequest, patience_seconds: float) -> None:
        self._closed = asyncio.Event()
        self._games = games
        self._position = WatchPosition(request, patience_seconds)
        self._connect()

    async def __anext__(self) -> WatchGameResponse:
        while not self._closed.is_set():
            received = await self._read()
            if not isinstance(received, WatchGameResponse):
                await self._reconnect(received)
            elif self._position.receive(received):
                return received
        raise StopAsyncIteration

    async def close(self) -> None:
        """Ends the watch. Another task that waits for an update gets the end."""
        self._closed.set()
        self._call.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _read(self) -> WatchGameResponse | grpc.RpcError | None:
        """Returns the next message of the stream, the error that ended it, or None if it ended well."""
        if self._call.cancelled() and not self._closed.is_set():
            self._connect()  # the caller has cancelled the last read, which cancels the call
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                received = await self._call.read()
        except TimeoutError:
            return SilenceError()
        except grpc.RpcError as error:
            return error
        except asyncio.CancelledError:
            if not self._closed.is_set():
                raise
            return None
        return received if isinstance(received, WatchGameResponse) else None

    async def _reconnect(self, ended: grpc.RpcError | None) -> None:
        """Connects again after a stream has ended, with an error or well; closes the watch if that was the end."""
        self._call.cancel()
        delay = self._position.delay_after_end() if ended is None else self._position.delay_after(ended)
        if delay is None:
            self._closed.set()
            if ended is not None:
                raise ended
            return
        try:
            async with asyncio.timeout(delay):
                await self._closed.wait()
        except TimeoutError:
            self._connect()

    def _connect(self) -> None:
        # Waiting for a connection would hide that there is none, and patience could not end.
        self._call = self._games.WatchGame(self._position.next_request(), wait_for_ready=False)


class _Preparation:
    """A channel whose calls fill in empty request ids and send a token.

    Interceptors cannot do this: grpc.aio takes them only with a new channel, and all seats share one.
    """

    def __init__(self, channel: grpc.aio.Channel, token: str | None) -> None:
        self._channel = channel
        self._authorization = authorization(token)

    def unary_unary(self, *arguments: Any, **named: Any) -> Callable[..., Any]:  # noqa: ANN401 - as grpc.aio.Channel
        return self._prepared(self._channel.unary_unary(*arguments, **named))

    def unary_stream(self, *arguments: Any, **named: Any) -> Callable[..., Any]:  # noqa: ANN401
        return self._prepared(self._channel.unary_stream(*arguments, **named))

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        return self._channel.stream_stream(*arguments, **named)  # the only one, StreamValidateTurns, needs no token

    def _prepared(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def prepared(request: Any, *, metadata: Any = None, **named: Any) -> Any:  # noqa: ANN401 - as the calls of grpc.aio
            return call(with_request_id(request), metadata=(*(metadata or ()), *self._authorization), **named)

        return prepared
