"""Closing connections below gRPC.

A server of gRPC's core ends what it has not taken, and what arrives while it shuts down, as CANCELLED, which clients do
not repeat. A call whose connection is closed is UNAVAILABLE to its client.
"""

import os
import socket
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Final

_DESCRIPTORS: Final = Path("/proc/self/fd")
"""Where Linux lists a process's open files. Without it nothing is closed here."""


def hang_up(ports: Collection[int]) -> int:
    """Stops listening at local TCP ports, and shuts down their connections; returns how many there were.

    What was sent before still arrives.
    """
    sockets = _at(ports)
    try:
        for one in sockets:
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                one.shutdown(socket.SHUT_RDWR)
        return sum(map(_shut_down, sockets))
    finally:
        for one in sockets:
            one.close()


def _at(ports: Collection[int]) -> list[socket.socket]:
    """Returns copies of this process's TCP sockets at local ports."""
    copies = filter(None, map(_copy, _descriptors()))
    found = []
    for copy in copies:
        if copy.family in {socket.AF_INET, socket.AF_INET6} and copy.getsockname()[1] in ports:
            found.append(copy)
        else:
            copy.close()
    return found


def _copy(descriptor: int) -> socket.socket | None:
    """Returns a copy of a socket; None if the descriptor is of something else, or was closed meanwhile."""
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
    except OSError:  # its client has closed it, or it listens
        return False
    return True
