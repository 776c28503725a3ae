"""Messages, and fields that are no rules: ids, names, pages.

All that decodes raises InvalidRequest, naming the field at fault, unless it says otherwise.
"""

import base64
import binascii
import hashlib
import re
from typing import Final, Protocol, TypeVar

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
    """A message from its bytes. Raises MalformedRequest."""
    try:
        return message_type.FromString(data)
    except DecodeError:
        raise MalformedRequest from None


class _Serializable(Protocol):
    def SerializeToString(self, *, deterministic: bool = ...) -> bytes: ...  # noqa: N802 - protobuf's name


def fingerprint(rpc: str, request: _Serializable) -> bytes:
    """A digest of an RPC and its request's content."""
    return hashlib.sha256(rpc.encode() + b"\0" + request.SerializeToString(deterministic=True)).digest()


def invalid(field: str, description: str, reason: str = "FIELD_INVALID") -> InvalidRequest:
    """The fault of one field."""
    return InvalidRequest(FieldFault(field, description, reason))


def game_id(text: str) -> str:
    """A game's id. Raises InvalidRequest."""
    if not _GAME_ID.fullmatch(text):
        raise invalid("game_id", "expected 32 hexadecimal digits, as CreateGame returned them")
    return text


def request_id(text: str, least: int) -> str:
    """A request id of so many characters at least, or "" for none. Raises InvalidRequest."""
    if text and not (_REQUEST_ID.fullmatch(text) and len(text) >= least):
        expected = f"{least} to {REQUEST_ID_MAX} printable ASCII characters without spaces, best a random UUID"
        raise invalid("request_id", f"expected {expected}")
    return text


def etag(text: str) -> str:
    """An etag, or "" for none. Raises InvalidRequest."""
    if text and not _ETAG.fullmatch(text):
        raise invalid("etag", "expected 32 hexadecimal digits, as the service returned them")
    return text


def player_name(text: str) -> str:
    """A player's name. Raises InvalidRequest."""
    if not (0 < len(text) <= NAME_MAX and text.isprintable() and text.strip() == text):
        raise invalid("name", f"expected 1 to {NAME_MAX} printable characters without spaces at the ends")
    return text


def bot_name(text: str) -> str:
    """A bot's name, or "" for one that nobody has. Raises InvalidRequest."""
    return player_name(text) if text else ""


def revision(field: str, value: int, least: int) -> int:
    """A revision. Raises InvalidRequest."""
    if value < least:
        raise invalid(field, f"expected at least {least}")
    return value


def correlation_id(text: str) -> str:
    """A stream's correlation id. Raises InvalidRequest."""
    if len(text.encode()) > CORRELATION_MAX:
        raise invalid("correlation_id", f"expected at most {CORRELATION_MAX} bytes")
    return text


def page_size(value: int, default: int, most: int) -> int:
    """A page's size; 0 is the default. Raises InvalidRequest."""
    if value > most:
        raise invalid("page_size", f"expected at most {most}")
    return value or default


def page_token(cursor: str) -> str:
    """An opaque token of a cursor; "" stays ""."""
    return base64.urlsafe_b64encode(cursor.encode()).decode() if cursor else ""


def page_cursor(token: str, form: str) -> str:
    """The cursor of a page token, whose form is a regular expression; "" stays "". Raises InvalidRequest."""
    try:
        cursor = base64.b64decode(token, altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        cursor = "?"
    if token and not re.fullmatch(form, cursor):
        raise invalid("page_token", "expected next_page_token of the answer before")
    return cursor
