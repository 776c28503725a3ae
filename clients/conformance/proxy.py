"""A TCP proxy that cuts its connections on demand."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class Proxy:
    """Forwards connections from a free port to `target` (host:port), from its start to close()."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._server = (host, int(port))
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.target = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self.sent = bytearray()
        """All bytes that clients have sent."""
        self.forwards = True
        """Whether bytes are forwarded; if not, they are lost, and the connections stay."""
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Closes all connections; new ones are accepted."""
        sockets, self._sockets = self._sockets, []
        for end in sockets:
            with contextlib.suppress(OSError):  # the other side may have closed it
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        """Stops the proxy."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # close() ends accept()
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                try:
                    server = socket.create_connection(self._server)
                except OSError:
                    client.close()
                    continue
                self._sockets += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=(source, sink, source is client), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, is_sent: bool) -> None:
        with contextlib.suppress(OSError):  # cut() ends recv() and sendall()
            while data := source.recv(65536):
                if is_sent:
                    self.sent += data
                if self.forwards:
                    sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
