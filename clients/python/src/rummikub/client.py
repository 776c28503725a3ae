"""The client for threads: a channel with the services' stubs, a token on every call, and watches that resume.

```python
with Rummikub("127.0.0.1:50051") as lobby:
    created = lobby.games.CreateGame(CreateGameRequest())
    game_id, host = created.game.game_id, lobby.seated(created.host_token)
    ann = lobby.seated(host.games.JoinGame(JoinGameRequest(game_id=game_id, name="Ann")).seat_token)
    ann.games.AddBot(AddBotRequest(game_id=game_id, level=BOT_LEVEL_HARD))
    ann.games.StartGame(StartGameRequest(game_id=game_id))
    for game in ann.watch_games(game_id):
        print(game)
```
"""

import copy
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, cast

import grpc

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


class Rummikub:
    """The service at an address, as a spectator or, with a token, as a seat or the host of a game.

    A request with an empty `request_id` is sent with a fresh one, so that calls can be retried. There is a connection
    for every 50 streams, such as watches, because a server accepts 100 calls on one.

    Args:
        target: `host:port`.
        credentials: TLS credentials; None for a plain connection.
        token: A seat's token or the host token, which is sent with every call.
        api_key: The front end's key, for a server that requires keys; it is sent with every call.
        options: Channel options in addition to, or in place of, those of the client.
        channel: A channel to use instead of a new one to the target; it carries all streams.
    """

    def __init__(  # noqa: PLR0913 - the parts of a connection
        self,
        target: str = "127.0.0.1:50051",
        credentials: grpc.ChannelCredentials | None = None,
        *,
        token: str | None = None,
        api_key: str | None = None,
        options: Mapping[str, Any] | None = None,
        channel: grpc.Channel | None = None,
    ) -> None:
        connect = None
        if channel is None:
            check_target(target)
            connect = partial(_channel, target, credentials, channel_options(options))
            channel = connect()
        self.target = target
        self._api_key = api_key
        self.channel = channel
        self._connections = Connections(channel, connect)
        self._bind(token)

    def _bind(self, token: str | None) -> None:
        """Makes the stubs."""
        prepared = grpc.intercept_channel(
            cast("grpc.Channel", _Spread(self._connections)), _Preparation(token, self._api_key)
        )
        self.games = GameServiceStub(prepared)
        self.turns = TurnServiceStub(prepared)
        self.validation = ValidationServiceStub(prepared)
        self.analysis = AnalysisServiceStub(prepared)
        self.records = RecordServiceStub(prepared)
        self.challenges = ChallengeServiceStub(prepared)
        self.puzzles = PuzzleServiceStub(prepared)

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

    def watch_games(
        self, game_id: str, *, until_rematch: bool = False, patience_seconds: float = PATIENCE_SECONDS
    ) -> Iterator[Game]:
        """Returns a game as it is now and after every change, as an iterator that reconnects and resumes.

        Args:
            game_id: The id of the game.
            until_rematch: Whether the watch continues after the game until its rematch is announced.
            patience_seconds: How long the watch tries to connect again before it raises the last error.
        """
        request = WatchGameRequest(game_id=game_id, content=WATCH_CONTENT_GAMES, until_rematch=until_rematch)
        with Watch(self.games, request, patience_seconds) as watch:
            yield from filter(None, map(game_of, watch))

    def close(self) -> None:
        """Closes the connection, also for all seats."""
        for channel in self._connections.channels:
            channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()


class Watch(Iterator[WatchGameResponse]):
    """The updates of a game, without heartbeats, over as many streams as it takes.

    A thread collects the updates from the beginning, also while the caller does something else. After a lost
    connection the watch resumes after the last update that the caller got; if the server no longer has the changes
    since, the next update is a snapshot. The iterator ends with the game, or after close().
    """

    def __init__(self, games: GameServiceStub, request: WatchGameRequest, patience_seconds: float) -> None:
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._games = games
        self._position = WatchPosition(request, patience_seconds)
        self._connect()

    def __next__(self) -> WatchGameResponse:
        while not self._closed.is_set():
            try:
                received = self._updates.get(timeout=SILENCE_SECONDS)
            except queue.Empty:
                received = SilenceError()
            if not isinstance(received, WatchGameResponse):
                self._reconnect(received)
            elif self._position.receive(received):
                return received
        raise StopIteration

    def close(self) -> None:
        """Ends the watch. Another thread that waits for an update gets the end."""
        with self._lock:
            self._closed.set()
            self._call.cancel()
            self._updates.put(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_call"):  # else the first call has failed
            self._call.cancel()

    def _connect(self) -> None:
        with self._lock:
            if self._closed.is_set():
                return
            self._updates: queue.SimpleQueue[WatchGameResponse | grpc.RpcError | None] = queue.SimpleQueue()
            # Waiting for a connection would hide that there is none, and patience could not end.
            self._call = self._games.WatchGame(self._position.next_request(), wait_for_ready=False)
            threading.Thread(target=_collect, args=(self._call, self._updates), daemon=True).start()

    def _reconnect(self, ended: grpc.RpcError | None) -> None:
        """Connects again after a stream has ended, with an error or well; closes the watch if that was the end."""
        self._call.cancel()
        delay = self._position.delay_after_end() if ended is None else self._position.delay_after(ended)
        if delay is None:
            self._closed.set()
            if ended is not None:
                raise ended
        elif not self._closed.wait(delay):
            self._connect()


def _collect(call: Iterator[WatchGameResponse], updates: "queue.SimpleQueue[Any]") -> None:
    """Puts the updates of a stream into a queue, then None or the error that ended it.

    A function, not a method, so that its thread holds no reference to the Watch, and an unused Watch is deleted.
    """
    try:
        for update in call:
            updates.put(update)
        updates.put(None)
    except grpc.RpcError as error:
        updates.put(error)


def _channel(
    target: str, credentials: grpc.ChannelCredentials | None, settings: Sequence[tuple[str, Any]]
) -> grpc.Channel:
    if credentials:
        return grpc.secure_channel(target, credentials, settings)
    return grpc.insecure_channel(target, settings)


class _Spread:
    """A channel that spreads its streams over connections."""

    def __init__(self, connections: Connections[grpc.Channel]) -> None:
        self._connections = connections

    def unary_unary(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as grpc.Channel
        return self._connections.first.unary_unary(*arguments, **named)

    def unary_stream(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        return self._spread(lambda channel: channel.unary_stream(*arguments, **named))

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        return self._spread(lambda channel: channel.stream_stream(*arguments, **named))

    def _spread(self, method_of: Callable[[grpc.Channel], Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the calls of grpcio
            opened, leave = self._connections.open_stream(lambda channel: method_of(channel)(*arguments, **named))
            if not opened.add_callback(leave):
                leave()
            return opened

        return call


class _Preparation(
    grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor, grpc.StreamStreamClientInterceptor
):
    """Fills in empty request ids, and sends a token and a key with every call."""

    def __init__(self, token: str | None, api_key: str | None) -> None:
        self._credentials = credentials_of(token, api_key)

    def _signed(self, details: Any) -> grpc.ClientCallDetails:  # noqa: ANN401 - grpcio's call details have no type
        metadata = (*(details.metadata or ()), *self._credentials)
        return _Details(details.method, details.timeout, metadata, details.credentials, details.wait_for_ready)

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:  # noqa: ANN401
        return continuation(self._signed(client_call_details), with_request_id(request))

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:  # noqa: ANN401
        return continuation(self._signed(client_call_details), request)

    def intercept_stream_stream(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:  # noqa: ANN401
        return continuation(self._signed(client_call_details), request_iterator)


class _Details(grpc.ClientCallDetails):
    """The details of a call, as interceptors pass them on."""

    def __init__(
        self,
        method: str,
        timeout: float | None,
        metadata: tuple[tuple[str, str | bytes], ...],
        credentials: grpc.CallCredentials | None,
        wait_for_ready: bool | None,
    ) -> None:
        self.method = method
        self.timeout = timeout
        self.metadata = metadata
        self.credentials = credentials
        self.wait_for_ready = wait_for_ready
        self.compression = None
