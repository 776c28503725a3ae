"""Listening addresses, shared by the processes of one command and by no other process."""

import contextlib
import errno
import socket
from collections.abc import Iterator
from typing import Final

_NOT_LOCAL: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""Errors for an address that this machine does not have, like localhost's IPv6 address where IPv6 is off."""


class AddressInUseError(Exception):
    """The server cannot listen on an address; the message names the variable."""


def address_error(variable: str, address: str) -> AddressInUseError:
    """Returns the error for an address that could not be bound. Tries once more to learn the system's reason."""
    if address.startswith("unix:"):
        do = "set it to a path in a folder that the server may write to, of at most 100 characters"
        return AddressInUseError(f"{variable}={address}: cannot listen there: {do}")
    try:
        with contextlib.ExitStack() as stack:
            _bind_all(stack, address)
    except (OSError, UnicodeError) as error:
        why = f" ({getattr(error, 'strerror', None) or error})"
    else:
        why = ""  # the address is free again
    do = "set it to a free address of this machine, or stop the server that uses it"
    return AddressInUseError(f"{variable}={address}: cannot listen there{why}: {do}")


@contextlib.contextmanager
def reserve_address(variable: str, address: str) -> Iterator[str]:
    """Reserves an address for listeners of this user with SO_REUSEPORT; yields it with its port.

    Port 0 becomes a free port.

    Raises:
        AddressInUseError: Another process uses the address.
    """
    with contextlib.ExitStack() as stack:
        try:
            port = _bind_all(stack, address)
        except (OSError, UnicodeError):
            raise address_error(variable, address) from None
        yield f"{address.rpartition(':')[0]}:{port}"


def _bind_all(stack: contextlib.ExitStack, address: str) -> int:
    """Binds all addresses of a host's name, with one port, until the stack closes; returns the port.

    Raises:
        OSError: Another process uses an address, or none is local.
        UnicodeError: The name is not a host name.
    """
    host, _, digits = address.rpartition(":")
    port, bound = int(digits), 0
    for family, _, _, _, place in socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        sock = stack.enter_context(socket.socket(family))
        try:
            _bind_exclusively(sock, (place[0], port, *place[2:]))
        except OSError as error:
            if error.errno not in _NOT_LOCAL:
                raise
        else:
            port = bound = sock.getsockname()[1]
    if not bound:
        raise OSError(errno.EADDRNOTAVAIL, "not an address of this machine")
    return bound


def _bind_exclusively(sock: socket.socket, address: tuple[object, ...]) -> None:
    """Binds to an unused address, then sets SO_REUSEPORT.

    With SO_REUSEPORT set first, the bind would succeed beside another process. The socket never listens, so it gets no
    connections.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ignores connections in TIME_WAIT
    sock.bind(address)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
