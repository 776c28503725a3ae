"""Addresses that the processes of one command share, and nobody else."""

import contextlib
import errno
import socket
from collections.abc import Iterator
from typing import Final

_NOT_OURS: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""Where a name has an address that this machine has not, as localhost may without IPv6."""


class AddressInUseError(Exception):
    """An address cannot be listened on; the message names the variable."""


def cannot_listen(variable: str, address: str) -> AddressInUseError:
    """What to say when an address could not be listened on; why, the system is asked once more."""
    try:
        with contextlib.ExitStack() as stack:
            _take(stack, address)
    except (OSError, UnicodeError) as error:
        why = f" ({getattr(error, 'strerror', None) or error})"
    else:
        why = ""  # it was so for a moment only
    do = "set it to a free address of this machine, or stop the server that has it"
    return AddressInUseError(f"{variable}={address}: cannot listen there{why}: {do}")


@contextlib.contextmanager
def reserved(variable: str, address: str) -> Iterator[str]:
    """Keeps an address for listeners with SO_REUSEPORT of this user; it is told with its port if that was left open.

    Raises:
        AddressInUseError: Somebody else uses it.
    """
    with contextlib.ExitStack() as stack:
        try:
            found = _take(stack, address)
        except (OSError, UnicodeError):
            raise cannot_listen(variable, address) from None
        yield f"{address.rpartition(':')[0]}:{found}"


def _take(stack: contextlib.ExitStack, address: str) -> int:
    """Takes all that a host's name stands for, with one port for all, as long as the stack lasts; the port.

    Raises:
        OSError: Somebody else uses it, or it is not of this machine.
        UnicodeError: It is no name of a host.
    """
    host, _, digits = address.rpartition(":")
    port, bound = int(digits), 0
    for family, _, _, _, place in socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        taken = stack.enter_context(socket.socket(family))
        try:
            _bind_alone(taken, (place[0], port, *place[2:]))
        except OSError as error:
            if error.errno not in _NOT_OURS:
                raise
        else:
            port = bound = taken.getsockname()[1]
    if not bound:
        raise OSError(errno.EADDRNOTAVAIL, "not an address of this machine")
    return bound


def _bind_alone(taken: socket.socket, place: tuple[object, ...]) -> None:
    """Binds where nobody is, and only then lets others in: with the option set before, others might be there already.

    The socket never listens, so the system gives it no connection.
    """
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that have ended are in nobody's way
    taken.bind(place)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
