"""The position of a watch, and when it connects again: no I/O, for threads and asyncio alike."""

import random
import time
from collections.abc import Callable
from typing import Final

import grpc

from rummikub.errors import refusal
from rummikub.v1.error_reason_pb2 import (
    ERROR_REASON_UNSPECIFIED,
    HISTORY_UNAVAILABLE,
    OVERLOADED,
    REQUEST_TIMED_OUT,
)
from rummikub.v1.game_pb2 import Game
from rummikub.v1.game_service_pb2 import WATCH_CONTENT_BOTH, WatchGameRequest, WatchGameResponse

SILENCE_SECONDS: Final = 40.0
"""A stream that is silent for longer is lost: the server sends a heartbeat every 15 seconds."""
PATIENCE_SECONDS: Final = 60.0
"""How long a watch tries to connect again by default."""

_SHORTEST_DELAY_SECONDS: Final = 0.2
_LONGEST_DELAY_SECONDS: Final = 5.0
_BROKEN: Final = {grpc.StatusCode.CANCELLED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}
"""Codes of a broken transport. A server that ends a stream with one of them states a reason."""
_TEMPORARY: Final = {OVERLOADED, REQUEST_TIMED_OUT}
_PASSED_ON: Final = {"snapshot", "change", "game", "draft", "presence"}


class SilenceError(grpc.RpcError):
    """A watched stream sent nothing for SILENCE_SECONDS."""

    def __init__(self) -> None:
        super().__init__(self.details())

    def code(self) -> grpc.StatusCode:
        """Returns UNAVAILABLE."""
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        """Returns what happened."""
        return f"the stream sent nothing for {SILENCE_SECONDS:.0f} seconds"


def game_of(update: WatchGameResponse) -> Game | None:
    """Returns the whole game that an update has; None for other updates."""
    kind = update.WhichOneof("update")
    return getattr(update, kind) if kind in {"snapshot", "game"} else None


class WatchPosition:
    """The position of a watch in a game's history, and how it continues when a stream ends.

    Args:
        request: The first request.
        patience_seconds: How long to try to connect again before giving up.
        now: A monotonic clock in seconds.
    """

    def __init__(
        self, request: WatchGameRequest, patience_seconds: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._request = WatchGameRequest()
        self._request.CopyFrom(request)
        self._patience_seconds = patience_seconds
        self._now = now
        self._changed_to = 0
        self._lost_at: float | None = None
        self._attempts = 0
        self._closing_delay: float | None = None
        self._lasting = Game()
        """What never changes, which only the first game of a stream has."""

    def next_request(self) -> WatchGameRequest:
        """Returns the request that continues after the last update."""
        request = WatchGameRequest()
        request.CopyFrom(self._request)
        return request

    def receive(self, response: WatchGameResponse) -> bool:
        """Moves past an update, completes its game, and returns whether it is for the caller.

        Heartbeats, changes that were received before, and updates of a newer server are not.
        """
        self._lost_at, self._attempts = None, 0
        update = response.WhichOneof("update")
        match update:
            case "snapshot":
                self._changed_to = response.snapshot.revision
                self._receive_game(response.snapshot)
            case "game":
                self._receive_game(response.game)
            case "change":
                return self._receive_change(response.change.revision, response.change.etag)
            case "closing":
                self._closing_delay = response.closing.retry_delay.ToTimedelta().total_seconds()
            case _:
                pass
        return update in _PASSED_ON

    def delay_after_end(self) -> float | None:
        """Returns the seconds to wait before connecting again after a stream ended with OK; None: the end."""
        delay, self._closing_delay = self._closing_delay, None
        return delay

    def delay_after(self, error: grpc.RpcError) -> float | None:
        """Returns the seconds to wait before connecting again after an error; None if the watch cannot continue."""
        self._closing_delay = None
        reason = refusal(error).reason
        if reason == HISTORY_UNAVAILABLE and self._request.etag:
            self._request.etag = ""  # the stream begins with a snapshot
            return 0.0
        now = self._now()
        if self._lost_at is None:
            self._lost_at = now
        if not _is_lost(error) or now - self._lost_at >= self._patience_seconds:
            return None
        longest = min(_SHORTEST_DELAY_SECONDS * 2 ** min(self._attempts, 10), _LONGEST_DELAY_SECONDS)
        self._attempts += 1
        return random.uniform(longest / 2, longest)  # noqa: S311 - spreads the clients of a server that is back

    def _receive_game(self, game: Game) -> None:
        if game.HasField("ruleset"):
            self._lasting = Game(
                ruleset=game.ruleset, settings=game.settings, visibility=game.visibility, labels=game.labels
            )
        else:
            game.MergeFrom(self._lasting)
        self._request.etag = game.etag

    def _receive_change(self, revision: int, etag: str) -> bool:
        is_new = revision > self._changed_to
        self._changed_to = max(revision, self._changed_to)
        if self._request.content != WATCH_CONTENT_BOTH:  # with BOTH, the game that follows is the position
            self._request.etag = etag
        return is_new


def _is_lost(error: grpc.RpcError) -> bool:
    """Returns whether another stream may work after an error."""
    code, reason = error.code(), refusal(error).reason
    return (
        code is grpc.StatusCode.UNAVAILABLE
        or reason in _TEMPORARY
        or (code in _BROKEN and reason == ERROR_REASON_UNSPECIFIED)
    )
