"""The caller of a request, by its token, and the identity of a mutating request."""

import re
from typing import Final, Protocol

from service.app.commands.command import RequestIdentity
from service.app.identity import Caller, digest
from service.codec import fields
from service.errors import AuthorizationMalformed, NotAPlayer
from service.grpc_api.call_origin import current_origin
from service.grpc_api.handlers import Context

REQUEST_ID_LEAST: Final = 8
"""Minimum length of a seat's request id, which must be unique for the seat only."""
SECRET_REQUEST_ID_LEAST: Final = 22
"""Minimum length of a request id that must be unguessable (128 bits in base64): without a token, or for a new one."""

_BEARER: Final = re.compile(rf"[Bb]earer ({fields.SEAT_TOKEN.pattern})")


class MutatingRequest(Protocol):
    """A request of a mutating RPC."""

    request_id: str

    def SerializeToString(self, *, deterministic: bool = ...) -> bytes:  # noqa: N802 - protobuf's name
        """Returns the message's bytes."""


def caller(context: Context) -> Caller:
    """Returns the caller of `authorization: Bearer <seat token>`, else a spectator. Raises AuthorizationMalformed."""
    api_key = current_origin().key
    name = api_key.name if api_key else ""
    token = ""
    for key, value in context.invocation_metadata() or ():
        if key == "authorization":
            match = _BEARER.fullmatch(value) if isinstance(value, str) and not token else None
            if match is None:
                raise AuthorizationMalformed
            token = match[1]
    return Caller(digest(token) if token else None, key=name)


def player(context: Context) -> Caller:
    """Returns the caller of an RPC that needs a token. Raises AuthorizationMalformed, NotAPlayer."""
    sender = caller(context)
    if sender.digest is None:
        raise NotAPlayer
    return sender


def mutation(request: MutatingRequest, sender: Caller, *, is_secret: bool) -> RequestIdentity:
    """Returns a mutating request's identity, for retries. Raises InvalidRequest.

    Args:
        request: The request.
        sender: Its caller.
        is_secret: Whether its id yields a token, so that it must be unguessable. Without a token it always must.
    """
    least = SECRET_REQUEST_ID_LEAST if is_secret or sender.digest is None else REQUEST_ID_LEAST
    request_id = fields.request_id(request.request_id, least)
    return RequestIdentity(sender, request_id, fields.fingerprint(type(request).__name__, request))
