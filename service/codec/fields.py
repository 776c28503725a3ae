"""Parsing of messages, and fields that several services share: ids, names, pages."""

import base64
import binascii
import hashlib
import re
from typing import Final, Protocol, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message

from service.errors import FieldFault, InvalidRequest, MalformedRequest

NAME_MAX: Final = 40
"""Most characters of a player's name."""
REQUEST_ID_MAX: Final = 64
"""Most characters of a request id."""
CORRELATION_MAX: Final = 64
"""Most bytes of a correlation id."""
_GAME_ID: Final = re.compile(r"[0-9a-f]{32}")
_REQUEST_ID: Final = re.compile(rf"[!-~]{{1,{REQUEST_ID_MAX}}}")
_ETAG: Final = re.compile(r"[0-9a-f]{32}")
_M = TypeVar("_M", bound=Message)


def decode(message_type: type[_M], data: bytes) -> _M:
    """Returns a parsed message. Raises MalformedRequest."""
    try:
        return message_type.FromString(data)
    except DecodeError:
        raise MalformedRequest from None


class _Serializable(Protocol):
    def SerializeToString(self, *, deterministic: bool = ...) -> bytes: ...  # noqa: N802 - protobuf's name


def fingerprint(rpc: str, request: _Serializable) -> bytes:
    """Returns a digest of an RPC's name and its request."""
    return hashlib.sha256(rpc.encode() + b"\0" + request.SerializeToString(deterministic=True)).digest()


def invalid(field: str, description: str, reason: str = "FIELD_INVALID") -> InvalidRequest:
    """Returns the exception for one field."""
    return InvalidRequest(FieldFault(field, description, reason))


def game_id(text: str) -> str:
    """Returns a valid game id."""
    if not _GAME_ID.fullmatch(text):
        raise invalid("game_id", "expected 32 hexadecimal digits, as CreateGame returned them")
    return text


def request_id(text: str, least: int) -> str:
    """Returns a valid request id, or "" for none.

    Args:
        text: The id.
        least: Fewest characters.
    """
    if text and not (_REQUEST_ID.fullmatch(text) and len(text) >= least):
        expected = f"{least} to {REQUEST_ID_MAX} printable ASCII characters without spaces, preferably a random UUID"
        raise invalid("request_id", f"expected {expected}")
    return text


def etag(text: str) -> str:
    """Returns a valid etag, or "" for none."""
    if text and not _ETAG.fullmatch(text):
        raise invalid("etag", "expected 32 hexadecimal digits, as the service returned them")
    return text


def player_name(text: str) -> str:
    """Returns a valid player name."""
    if not (0 < len(text) <= NAME_MAX and text.isprintable() and text.strip() == text):
        raise invalid("name", f"expected 1 to {NAME_MAX} printable characters without spaces at the ends")
    return text


def bot_name(text: str) -> str:
    """Returns a valid name for a bot, or "" if the service shall choose one."""
    return player_name(text) if text else ""


def revision(field: str, value: int) -> int:
    """Returns a revision that the request must contain."""
    if value == 0:
        raise invalid(field, "expected at least 1")
    return value


def duration(field: str, value: Duration, most: int) -> float:
    """Returns a length of time in seconds, which is more than 0.

    Args:
        field: The path of the field.
        value: The length of time.
        most: The longest length in seconds.
    """
    seconds = value.seconds + value.nanos / 1e9
    if not (0 <= value.nanos < 1_000_000_000 and 0 < seconds <= most):
        raise invalid(field, f"expected more than 0 and at most {most} seconds")
    return seconds


def correlation_id(text: str) -> str:
    """Returns a valid correlation id."""
    if len(text.encode()) > CORRELATION_MAX:
        raise invalid("correlation_id", f"expected at most {CORRELATION_MAX} bytes")
    return text


def page_size(value: int, default: int, most: int) -> int:
    """Returns the page size; the default for 0, and the largest for a larger one (AIP-158)."""
    return min(value or default, most)


def page_token(cursor: str) -> str:
    """Returns the opaque token of a cursor; "" for ""."""
    return base64.urlsafe_b64encode(cursor.encode()).decode() if cursor else ""


def page_cursor(token: str, form: str) -> str:
    """Returns the cursor of a page token; "" for "".

    Args:
        token: The token.
        form: A regular expression that the cursor must match.
    """
    try:
        cursor = base64.b64decode(token, altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        cursor = "?"
    if token and not re.fullmatch(form, cursor):
        raise invalid("page_token", "expected next_page_token of the previous response")
    return cursor
