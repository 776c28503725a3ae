"""The origin of the call that is being handled, and how a listener finds it."""

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Final, TypeAlias

from service.codec import fields
from service.errors import ApiKeyNotAllowed
from service.runtime.admission import SERVER_METHODS
from service.runtime.join_tickets import JoinTicket, Person, TicketPolicy, identified, verified
from service.runtime.keys import Keys
from service.runtime.origins import KEYLESS_RIGHTS, POSITION_SEARCHES, Metadata, Origin, TrustedProxies

AuthContext: TypeAlias = Callable[[], Mapping[str, Iterable[bytes]]]
"""Returns what the transport knows of a peer, by gRPC's names."""

_CERTIFICATE_NAMES: Final = ("x509_subject_alternative_name", "x509_common_name")
"""gRPC's properties with the names in a certificate. The common name counts only without the others (RFC 9525)."""

_SEARCHES: Final = "/rummikub.v1.ValidationService/ValidateHand"
"""The RPC of both transports that searches: it finds the melds of a hand, and the tiles to exchange."""

_current: ContextVar[Origin] = ContextVar("origin")


current_origin: Final = _current.get
"""Returns the origin of the call that the task handles."""
set_current_origin: Final = _current.set
"""Sets the origin of the call that the task handles."""


def check_labels(labels: Iterable[tuple[str, str]]) -> None:
    """Raises ApiKeyNotAllowed for a label that the caller's key may not set or search for."""
    key = current_origin().key
    if key is None or key.labels is None:
        return
    for name, _ in labels:
        if name not in key.labels:
            raise ApiKeyNotAllowed("label", name)


def check_right(right: str) -> None:
    """Raises ApiKeyNotAllowed if the caller's key does not have a right, or a caller without a key."""
    key = current_origin().key
    if right not in (KEYLESS_RIGHTS if key is None else key.rights):
        raise ApiKeyNotAllowed("right", right)


def identified_by(text: str, name: str, player_ref: str) -> Person:
    """Returns who joins with a ticket, a name and a reference, each empty for none.

    Raises the faults of tickets (join_tickets.verified, join_tickets.identified).
    """
    return identified(_policy(), ticket_of(text) if text else None, name, player_ref)


def ticket_of(text: str) -> JoinTicket:
    """Returns a ticket of the caller's key, maybe expired. Raises the faults of join_tickets.verified."""
    return fields.well_formed(verified(_policy(), text))


def _policy() -> TicketPolicy | None:
    key = current_origin().key
    return key.tickets if key else None


class Origins:
    """Finds the origin of each call.

    Args:
        keys: The keys that callers need; None if they need none.
        proxies: Finds the addresses of clients.
    """

    def __init__(self, keys: Keys | None, proxies: TrustedProxies) -> None:
        self._keys = keys
        self.address_of = proxies.address_of
        """Returns the address of a call's client, given gRPC's name of the peer and the metadata."""

    def origin_of(self, path: str, peer: str, metadata: Metadata | None, auth_context: AuthContext) -> Origin:
        """Returns the origin of a call.

        Args:
            path: The method's path. Health and reflection need no key.
            peer: gRPC's name of the peer.
            metadata: The call's metadata.
            auth_context: Returns the names in the client's certificate, among others.

        Raises:
            ApiKeyInvalid: The call has no valid key.
            ApiKeyNotAllowed: The key is not for the service, or lacks the right to search a hand.
        """
        address = self.address_of(peer, metadata)
        if self._keys is None or path.startswith(SERVER_METHODS):
            return Origin(address)
        key = self._keys.identify(path, metadata, lambda: _certificate_names(auth_context()))
        if path == _SEARCHES and POSITION_SEARCHES not in key.rights:
            raise ApiKeyNotAllowed("right", POSITION_SEARCHES)
        return Origin(address, key)


def _certificate_names(auth_context: Mapping[str, Iterable[bytes]]) -> list[str]:
    names: Iterable[bytes] = next((auth_context[kind] for kind in _CERTIFICATE_NAMES if kind in auth_context), ())
    return [name.decode(errors="replace") for name in names]
