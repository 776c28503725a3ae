"""The client for asyncio: the same surface as that for threads, over grpc.aio.

```python
async with aio.Rummikub("127.0.0.1:50051") as lobby:
    created = await lobby.games.CreateGame(CreateGameRequest())
    async for game in lobby.watch_games(created.game.game_id):
        print(game)
```
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import grpc
import grpc.aio

from rummikub.calls import channel_options, check_target, credentials_of, with_request_id
from rummikub.connections import Connections
from rummikub.v1.analysis_service_pb2_grpc import AnalysisServiceStub
from rummikub.v1.challenge_service_pb2_grpc import ChallengeServiceStub
from rummikub.v1.game_pb2 import Game
from rummikub.v1.game_service_pb2 import (
    WATCH_CONTENT_GAMES,
    WATCH_CONTENT_UNSPECIFIED,
    WatchContent,
    WatchGameRequest,
    WatchGameResponse,
)
from rummikub.v1.game_service_pb2_grpc import GameServiceStub
from rummikub.v1.puzzle_service_pb2_grpc import PuzzleServiceStub
from rummikub.v1.record_service_pb2_grpc import RecordServiceStub
from rummikub.v1.turn_service_pb2_grpc import TurnServiceStub
from rummikub.v1.validation_service_pb2_grpc import ValidationServiceStub
from rummikub.watching import PATIENCE_SECONDS, SILENCE_SECONDS, SilenceError, WatchPosition, game_of

if TYPE_CHECKING:
    from rummikub.v1.game_service_pb2_grpc import GameServiceAsyncStub


class Rummikub:
    """The service at an address, as a spectator or, with a token, as a seat or the host of a game.

    A request with an empty `request_id` is sent with a fresh one, so that calls can be retried. There is a connection
    for every 50 streams, such as watches, because a server accepts 100 calls on one. A client may be made outside of an
    event loop, and used in several loops: its first call in a loop connects there.

    Args:
        target: `host:port`.
        credentials: TLS credentials; None for a plain connection.
        token: A seat's token or the host token, which is sent with every call.
        api_key: The front end's key, for a server that requires keys; it is sent with every call.
        options: Channel options in addition to, or in place of, those of the client.
        channel: A channel to use instead of a new one to the target; it carries all streams, and belongs to one loop.
    """

    def __init__(  # noqa: PLR0913 - the parts of a connection
        self,
        target: str = "127.0.0.1:50051",
        credentials: grpc.ChannelCredentials | None = None,
        *,
        token: str | None = None,
        api_key: str | None = None,
        options: Mapping[str, Any] | None = None,
        channel: grpc.aio.Channel | None = None,
    ) -> None:
        if channel is None:
            check_target(target)
        self.target = target
        self._api_key = api_key
        self._loops = _Loops(partial(_channel, target, credentials, channel_options(options)), channel)
        self._bind(token)

    def _bind(self, token: str | None) -> None:
        """Makes the stubs."""
        prepared = cast("grpc.aio.Channel", _Preparation(self._loops, token, self._api_key))
        self.games = GameServiceStub(prepared)
        self.turns = TurnServiceStub(prepared)
        self.validation = ValidationServiceStub(prepared)
        self.analysis = AnalysisServiceStub(prepared)
        self.records = RecordServiceStub(prepared)
        self.challenges = ChallengeServiceStub(prepared)
        self.puzzles = PuzzleServiceStub(prepared)

    @property
    def channel(self) -> grpc.aio.Channel:
        """The channel of the running event loop. Raises RuntimeError outside of one."""
        return self._loops.connections().first

    def seated(self, token: str) -> "Rummikub":
        """Returns the same connection with a seat's token, or the host token, on every call."""
        seat = copy.copy(self)
        seat._bind(token)  # noqa: SLF001 - of this class
        return seat

    def watch(
        self,
        game_id: str,
        *,
        content: WatchContent.ValueType = WATCH_CONTENT_UNSPECIFIED,
        until_rematch: bool = False,
        etag: str = "",
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> "Watch":
        """Returns the updates of a game, beginning with a snapshot, as an iterator that reconnects and resumes.

        Args:
            game_id: The id of the game.
            content: Whether the updates are changes, whole games, or both.
            until_rematch: Whether the watch continues after the game until its rematch is announced.
            etag: The etag of the last update that the caller has seen; without one, the watch begins with a snapshot.
            patience_seconds: How long the watch tries to connect again before it raises the last error.
        """
        request = WatchGameRequest(game_id=game_id, etag=etag, content=content, until_rematch=until_rematch)
        return Watch(self.games, request, patience_seconds)

    async def watch_games(
        self, game_id: str, *, until_rematch: bool = False, patience_seconds: float = PATIENCE_SECONDS
    ) -> AsyncIterator[Game]:
        """Returns a game as it is now and after every change, as an iterator that reconnects and resumes.

        Args:
            game_id: The id of the game.
            until_rematch: Whether the watch continues after the game until its rematch is announced.
            patience_seconds: How long the watch tries to connect again before it raises the last error.
        """
        request = WatchGameRequest(game_id=game_id, content=WATCH_CONTENT_GAMES, until_rematch=until_rematch)
        async with Watch(self.games, request, patience_seconds) as watch:
            async for update in watch:
                if game := game_of(update):
                    yield game

    async def close(self) -> None:
        """Closes the connection, also for all seats. Connections of other event loops have ended with their loops."""
        await self._loops.close()

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


def _channel(
    target: str, credentials: grpc.ChannelCredentials | None, settings: Sequence[tuple[str, Any]]
) -> grpc.aio.Channel:
    if credentials:
        return grpc.aio.secure_channel(target, credentials, settings)
    return grpc.aio.insecure_channel(target, settings)


class _Loops:
    """The connections of a client in each event loop: a channel of grpc.aio works only in the loop that made it.

    Args:
        connect: Opens a channel in the running loop.
        channel: A channel to use instead.
    """

    def __init__(self, connect: Callable[[], grpc.aio.Channel], channel: grpc.aio.Channel | None) -> None:
        self._connect = connect
        self._given = None if channel is None else Connections(channel, None)
        self._by_loop: dict[asyncio.AbstractEventLoop, Connections[grpc.aio.Channel]] = {}
        self._is_closed = False

    async def close(self) -> None:
        """Closes the connections of the running loop. Later calls are refused."""
        channels = () if self._is_closed else self.connections().channels
        self._is_closed = True
        for channel in channels:
            await channel.close()

    def connections(self) -> Connections[grpc.aio.Channel]:
        """Returns the connections of the running loop.

        Raises RuntimeError outside of a loop, grpc.aio.UsageError after `close`: grpcio 1.85 crashes if a closed
        channel is asked for a method.
        """
        if self._is_closed:
            raise grpc.aio.UsageError("the client is closed")
        if self._given:
            return self._given
        loop = asyncio.get_running_loop()
        found = self._by_loop.get(loop)
        if found is None:
            found = Connections(self._connect(), self._connect)
            open_loops = {one: connections for one, connections in self._by_loop.items() if not one.is_closed()}
            self._by_loop = {**open_loops, loop: found}
        return found


class _Preparation:
    """A channel whose calls fill in empty request ids, send token and key, and go to a connection with room for them.

    Interceptors cannot do this: grpc.aio takes them only with a new channel, and all seats share one.
    """

    def __init__(self, loops: _Loops, token: str | None, api_key: str | None) -> None:
        self._loops = loops
        self._credentials = credentials_of(token, api_key)

    def unary_unary(self, *arguments: Any, **named: Any) -> Callable[..., Any]:  # noqa: ANN401 - as grpc.aio.Channel
        def call(*request: Any, **details: Any) -> Any:  # noqa: ANN401 - as the calls of grpc.aio
            return self._loops.connections().first.unary_unary(*arguments, **named)(*request, **details)

        return self._prepared(call)

    def unary_stream(self, *arguments: Any, **named: Any) -> Callable[..., Any]:  # noqa: ANN401
        return self._prepared(self._spread(lambda channel: channel.unary_stream(*arguments, **named)))

    def stream_stream(self, *arguments: Any, **named: Any) -> Callable[..., Any]:  # noqa: ANN401
        opened = self._spread(lambda channel: channel.stream_stream(*arguments, **named))

        def signed(*requests: Any, metadata: Any = None, **details: Any) -> Any:  # noqa: ANN401
            return opened(*requests, metadata=(*(metadata or ()), *self._credentials), **details)

        return signed

    def _spread(self, method_of: Callable[[grpc.aio.Channel], Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            connections = self._loops.connections()
            opened, leave = connections.open_stream(lambda channel: method_of(channel)(*arguments, **named))
            opened.add_done_callback(leave)
            return opened

        return call

    def _prepared(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def prepared(request: Any, *, metadata: Any = None, **named: Any) -> Any:  # noqa: ANN401 - as the calls of grpc.aio
            return call(with_request_id(request), metadata=(*(metadata or ()), *self._credentials), **named)

        return prepared
