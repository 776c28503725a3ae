"""The connections of a client: one for all calls, and further ones for many streams."""

import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

C = TypeVar("C")

STREAMS_EACH: Final = 50
"""Most streams of a connection. A server accepts 100 calls on it; one more waits in the client, without an error."""


class Connections(Generic[C]):
    """The channels of a client, each with a connection of its own. Thread-safe.

    Args:
        first: The channel of all calls that are no streams, and of the first streams.
        connect: Opens another channel; None if there is no other one.
    """

    def __init__(self, first: C, connect: Callable[[], C] | None) -> None:
        self.first = first
        self._connect = connect
        self._lock = threading.Lock()
        self._streams = {first: 0}

    @property
    def channels(self) -> tuple[C, ...]:
        """All channels."""
        with self._lock:
            return tuple(self._streams)

    def open_stream(self, open_on: Callable[[C], Any]) -> tuple[Any, Callable[..., None]]:
        """Opens a stream on a channel that has room for it, a new one if need be.

        Args:
            open_on: Opens the stream on a channel.

        Returns:
            The stream, and the function to call when it has ended.
        """
        channel = self._enter()
        try:
            return open_on(channel), lambda *_: self._leave(channel)
        except BaseException:
            self._leave(channel)
            raise

    def _enter(self) -> C:
        with self._lock:
            channel = next((one for one, streams in self._streams.items() if streams < STREAMS_EACH), None)
            if channel is None:
                channel = self._connect() if self._connect else self.first
            self._streams[channel] = self._streams.get(channel, 0) + 1
            return channel

    def _leave(self, channel: C) -> None:
        with self._lock:
            self._streams[channel] -= 1
