"""Parsing of messages, and fields that several services share: ids, names, pages."""

import base64
import binascii
import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message

from engine.fair_deal import PLAYER_SEED_MAX, SEED_BYTES
from service.app.identity import CODE_ALPHABET, CODE_LENGTH, WatchTicket
from service.app.names import JOINERS, is_visible
from service.codec.submessages import first_excess, numbers_of
from service.errors import FieldFault, InvalidRequest, MalformedRequest, TicketMalformed, TooManyElements
from service.runtime.join_tickets import JoinTicket
from service.runtime.keys import NAME_FORM, NAME_RULE

NAME_MAX: Final = 40
"""Most characters of a player's name."""
UNNORMALIZED_MAX: Final = 4 * NAME_MAX
"""Most characters of a name as sent. NFC makes one character of up to four."""
LABELS_MAX: Final = 8
"""Most labels of a game."""
OPERATOR_LABELS_MAX: Final = 16
"""Most labels of a game that only the operator sees."""
PLAYER_REF_MAX: Final = 64
"""Most bytes of the operator's reference to a player."""
JOIN_TICKET_MAX: Final = 2_000
"""Most characters of a ticket. Longer ones are not verified."""
LABEL_VALUE_MAX: Final = 64
"""Most characters of a label's value."""
REQUEST_ID_MAX: Final = 64
"""Most characters of a request id."""
CORRELATION_MAX: Final = 64
"""Most bytes of a correlation id."""
RIVER_INDEX_MAX: Final = 999
"""The greatest place of a tile in the River in a request. No River is as long."""
_GAME_ID: Final = re.compile(r"[0-9a-f]{32}")
SEATS_MAX: Final = 9
"""The highest seat of a record; the text of a record has room for no higher one."""
SEAT_TOKEN: Final = re.compile("[A-Za-z0-9_-]{43}")
"""The form of seat tokens and host tokens."""
_WATCH_TICKET: Final = re.compile(rf"(\d{{1,15}})-({SEAT_TOKEN.pattern})")
_REQUEST_ID: Final = re.compile(rf"[!-~]{{1,{REQUEST_ID_MAX}}}")
_JOIN_CODE: Final = re.compile(rf"[{CODE_ALPHABET}]{{{CODE_LENGTH}}}")
_LABEL_KEY: Final = re.compile(r"[a-z0-9_.-]{1,32}")
_ETAG: Final = re.compile(r"([1-9][0-9]{0,9})-([0-9a-f]{32})")
LIST_CURSOR: Final = r"\d{15}:[0-9a-f]{32}"
"""The form of a place in lists of games."""
COUNTED_BYTES: Final = 4_096
"""Longer requests have their elements counted before they are decoded. Shorter ones take 200 KB at most."""
_M = TypeVar("_M", bound=Message)


@dataclass(frozen=True, slots=True)
class Most:
    """The bound of a repeated field of a request, which is checked before the request is decoded.

    Attributes:
        path: The field: `record.moves`.
        elements: How many elements there may be.
        reason: The reason of the refusal.
    """

    path: str
    elements: int
    reason: str = "FIELD_INVALID"

    @property
    def refusal(self) -> TooManyElements:
        """The exception for too many elements; for those of a table, it names the table."""
        text = f"expected at most {self.elements} {self.path.rpartition('.')[2]}"
        return TooManyElements(FieldFault(self.path.removesuffix(".melds"), text, self.reason))


def check_counts(message_type: type[Message], data: bytes, bounds: Sequence[Most]) -> None:
    """Raises TooManyElements if an encoded message has more elements than a bound allows."""
    by_path = {numbers_of(message_type, bound.path): bound for bound in bounds}
    path = first_excess(data, {numbers: bound.elements for numbers, bound in by_path.items()})
    if path:
        raise by_path[path].refusal


def decode(message_type: type[_M], data: bytes, *bounds: Most) -> _M:
    """Returns a parsed message, whose repeated fields are within bounds. Raises InvalidRequest, MalformedRequest."""
    if len(data) > COUNTED_BYTES:
        check_counts(message_type, data, bounds)
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


def game_id(text: str, field: str = "game_id") -> str:
    """Returns a valid game id."""
    if not _GAME_ID.fullmatch(text):
        raise invalid(field, "expected 32 hexadecimal digits, as CreateGame returned them")
    return text


def watch_ticket(text: str) -> WatchTicket:
    """Returns a ticket to watch a game. The error does not repeat it."""
    match = _WATCH_TICKET.fullmatch(text)
    if match is None:
        raise invalid_ticket()
    return WatchTicket(int(match[1]), match[2])


def invalid_ticket() -> InvalidRequest:
    """Returns the exception for a ticket that opens no watch."""
    return invalid("ticket", "expected a ticket that is not void; CreateWatchTicket returns one")


def seat_token(text: str, field: str) -> str:
    """Returns a seat's token or a host token. The error does not repeat it."""
    if not SEAT_TOKEN.fullmatch(text):
        raise invalid(field, "expected a seat token of 43 characters, as JoinGame returned it")
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


def etag(text: str) -> tuple[int, str]:
    """Returns revision and lineage of an etag that the request must contain."""
    found = _ETAG.fullmatch(text)
    if found is None:
        raise invalid("etag", "expected the etag of the game that the caller saw, as the service returned it")
    return int(found[1]), found[2]


def optional_etag(text: str) -> tuple[int, str]:
    """Returns revision and lineage of an etag; 0 and "" for none."""
    return etag(text) if text else (0, "")


def encode_etag(revision: int, lineage: str) -> str:
    """Returns the contract's etag. It has the revision, so that a watch is resumed without a search for the lineage."""
    return f"{revision}-{lineage}"


def join_code(text: str) -> str:
    """Returns a valid join code in capitals."""
    code = text.upper()
    if not _JOIN_CODE.fullmatch(code):
        raise invalid("join_code", f"expected {CODE_LENGTH} characters of {CODE_ALPHABET}")
    return code


def labels(sent: Mapping[str, str], field: str = "labels", most: int = LABELS_MAX) -> tuple[tuple[str, str], ...]:
    """Returns valid labels, by key."""
    if len(sent) > most:
        raise invalid(field, f"expected at most {most}")
    for key, value in sent.items():
        if not _LABEL_KEY.fullmatch(key):
            raise invalid(field, "expected keys of 1 to 32 characters: a to z, 0 to 9, underscore, dot, hyphen")
        if not (len(value) <= LABEL_VALUE_MAX and value.isprintable()):
            raise invalid(field, f"expected values of at most {LABEL_VALUE_MAX} printable characters")
    return tuple(sorted(sent.items()))


def operator_labels(sent: Mapping[str, str], field: str = "operator_labels") -> tuple[tuple[str, str], ...]:
    """Returns valid labels that only the operator sees, by key."""
    return labels(sent, field, OPERATOR_LABELS_MAX)


def player_ref(text: str, field: str = "player_ref") -> str:
    """Returns the operator's reference to a player; "" for none. The error does not repeat it."""
    if len(text.encode()) > PLAYER_REF_MAX:
        raise invalid(field, f"expected at most {PLAYER_REF_MAX} bytes")
    return text


def deal_seed(seed: bytes, field: str = "deal_seed") -> bytes:
    """Returns a player's part in the shuffles; b"" for none."""
    if len(seed) > PLAYER_SEED_MAX:
        raise invalid(field, f"expected at most {PLAYER_SEED_MAX} bytes")
    return seed


def server_seed(seed: bytes, field: str) -> bytes:
    """Returns the server's part in shuffles, or its commitment; b"" for none."""
    if seed and len(seed) != SEED_BYTES:
        raise invalid(field, f"expected {SEED_BYTES} bytes, or none")
    return seed


def join_ticket(text: str) -> str:
    """Returns a ticket to verify; "" for none. The error does not repeat it."""
    if len(text) > JOIN_TICKET_MAX:
        raise invalid("join_ticket", f"expected at most {JOIN_TICKET_MAX} characters")
    return text


def well_formed(ticket: JoinTicket) -> JoinTicket:
    """Returns a ticket whose claims have the forms of the fields that they stand for. Raises TicketMalformed."""
    forms: dict[str, Callable[[], object]] = {
        "sub": lambda: player_ref(ticket.player_ref),
        "name": lambda: optional_name(ticket.name),
        "game_id": lambda: game_id(ticket.game_id) if ticket.game_id else "",
        "labels": lambda: labels(dict(ticket.labels)),
    }
    for claim, check in forms.items():
        try:
            check()
        except InvalidRequest:
            raise TicketMalformed(claim) from None
    return replace(ticket, name=optional_name(ticket.name))


def key_name(text: str, field: str) -> str:
    """Returns the name of a key; "" for none."""
    if text and not NAME_FORM.fullmatch(text):
        raise invalid(field, NAME_RULE)
    return text


def player_name(text: str, field: str = "name") -> str:
    """Returns a valid player name in NFC."""
    name = unicodedata.normalize("NFC", text[: UNNORMALIZED_MAX + 1])
    if not (0 < len(name) <= NAME_MAX and _is_printable(name) and is_visible(name)):
        raise invalid(field, f"expected 1 to {NAME_MAX} printable characters without spaces at the ends")
    return name


def _is_printable(name: str) -> bool:
    """Returns whether a name can be printed. Joiners are allowed inside, spaces too."""
    return name.strip(" " + JOINERS) == name and name.translate(dict.fromkeys(map(ord, JOINERS))).isprintable()


def optional_name(text: str) -> str:
    """Returns a valid name of a player, or "" for none."""
    return player_name(text) if text else ""


def seat_of(number: int, field: str) -> int:
    """Returns a seat of a record."""
    if not 1 <= number <= SEATS_MAX:
        raise invalid(field, f"expected a seat from 1 to {SEATS_MAX}")
    return number


def seats_of(numbers: Sequence[int], field: str) -> tuple[int, ...]:
    """Returns seats of a record."""
    if len(numbers) > SEATS_MAX or not all(1 <= number <= SEATS_MAX for number in numbers):
        raise invalid(field, f"expected seats from 1 to {SEATS_MAX}")
    return tuple(numbers)


def seat(value: int) -> int:
    """Returns a seat that the request must contain."""
    if value == 0:
        raise invalid("seat", "expected at least 1")
    return value


def revision(field: str, value: int) -> int:
    """Returns a revision that the request must contain."""
    if value == 0:
        raise invalid(field, "expected at least 1")
    return value


class WithRiverIndex(Protocol):
    """A message with the place of a tile in the River."""

    @property
    def river_index(self) -> int:
        """The place."""

    def HasField(self, field_name: Literal["river_index"]) -> bool:  # noqa: N802 - protobuf's name
        """Returns whether it is set."""


def river_index(message: WithRiverIndex, field: str) -> int | None:
    """Returns the place of a tile in the River; None if the message has none."""
    if not message.HasField("river_index"):
        return None
    if message.river_index > RIVER_INDEX_MAX:
        raise invalid(field, f"expected at most {RIVER_INDEX_MAX}")
    return message.river_index


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


def filtered_page_token(cursor: str, filters: object) -> str:
    """Returns the opaque token of a cursor in a list with filters; "" for ""."""
    return page_token(f"{cursor}:{_digest(filters)}" if cursor else "")


def filtered_page_cursor(token: str, form: str, filters: object) -> str:
    """Returns the cursor of a page token of a list with the same filters; "" for ""."""
    cursor, _, digest = page_cursor(token, rf"{form}:[0-9a-f]{{16}}").rpartition(":")
    if token and digest != _digest(filters):
        raise invalid("page_token", "expected next_page_token of a request with the same filters")
    return cursor


def _digest(filters: object) -> str:
    return hashlib.sha256(repr(filters).encode()).hexdigest()[:16]


def page_cursor(
    token: str, form: str, field: str = "page_token", expected: str = "next_page_token of the previous response"
) -> str:
    """Returns the cursor of a page token; "" for "".

    Args:
        token: The token.
        form: A regular expression that the cursor must match.
        field: The field with the token.
        expected: What the field must contain.
    """
    try:
        cursor = base64.b64decode(token, altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        cursor = "?"
    if token and not re.fullmatch(form, cursor):
        raise invalid(field, f"expected {expected}")
    return cursor
