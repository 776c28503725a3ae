"""Shuts down TCP connections below gRPC.

During its shutdown gRPC's core answers new and waiting calls with CANCELLED, which clients do not retry. A call whose
connection is closed ends with UNAVAILABLE, which they do.
"""

import os
import socket
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Final

_DESCRIPTORS: Final = Path("/proc/self/fd")
"""Linux lists a process's open files here. On other systems no connection is shut down."""


def shut_down_connections(ports: Collection[int]) -> int:
    """Stops listening at local TCP ports and shuts down their connections; returns the number of connections.

    Data that was sent before still arrives.
    """
    sockets = _sockets_at(ports)
    try:
        for one in sockets:
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                one.shutdown(socket.SHUT_RDWR)
        return sum(map(_shut_down, sockets))
    finally:
        for one in sockets:
            one.close()


def _sockets_at(ports: Collection[int]) -> list[socket.socket]:
    """Returns duplicates of this process's TCP sockets at local ports."""
    duplicates = filter(None, map(_duplicate, _descriptors()))
    found = []
    for duplicate in duplicates:
        if duplicate.family in {socket.AF_INET, socket.AF_INET6} and duplicate.getsockname()[1] in ports:
            found.append(duplicate)
        else:
            duplicate.close()
    return found


def _duplicate(descriptor: int) -> socket.socket | None:
    """Returns a duplicate of a socket; None if the descriptor is not a socket or was closed meanwhile."""
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return None
        return socket.socket(fileno=os.dup(descriptor))
    except OSError:
        return None


def _descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir(_DESCRIPTORS)]  # noqa: PTH208 - numbers, not paths
    except OSError:
        return []


def _shut_down(connection: socket.socket) -> bool:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # its client has closed it, or it is a listening socket
        return False
    return True
