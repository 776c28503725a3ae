"""The keys file (RUMMIKUB_KEYS_FILE): who may call the server, and how much. It is read again when it changes.

The file has the SHA-256 of each key and never a key itself. A key is looked up by its digest, so the time of the lookup
says nothing about other keys.
"""

import hashlib
import re
import secrets
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog

from service.errors import ApiKeyInvalid, ApiKeyNotAllowed
from service.runtime.files import stamp_of
from service.runtime.join_tickets import TicketKey, TicketPolicy, key_problem, read_key
from service.runtime.origins import QUOTAS, RIGHTS, Key, Metadata

HEADER: Final = "x-api-key"
"""The metadata with a caller's key."""
KEY_MAX: Final = 256
"""Most characters of a key. Longer ones are not hashed."""
QUOTA_MAX: Final = 100_000_000
RELOAD_SECONDS: Final = 1.0
"""The interval of checks whether the file has changed."""

NAME_FORM: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
NAME_RULE: Final = "a name has 1 to 32 of a-z, 0-9, - and _, and begins with neither - nor _"

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_SERVICES: Final = frozenset(
    {
        "GameService",
        "TurnService",
        "ChallengeService",
        "ValidationService",
        "AnalysisService",
        "PuzzleService",
        "RecordService",
    }
)
_PACKAGE: Final = "/rummikub.v1."
_TICKETS: Final = ("ticket_keys", "ticket_audience", "require_tickets")
_FIELDS: Final = frozenset({"sha256", "certificate", "services", "labels", "proxy", *_TICKETS, *RIGHTS, *QUOTAS})

_log = structlog.get_logger()


class KeysFileError(Exception):
    """The keys file cannot be used; the message says what is wrong and where."""


class KeysFileUnreadableError(KeysFileError):
    """The keys file cannot be read. That may pass without a change of the file: the process has no descriptor left."""


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The keys of a file: by the digest of the key, and by the name in a client's certificate."""

    by_digest: Mapping[bytes, Key] = field(default_factory=dict)
    by_certificate: Mapping[str, Key] = field(default_factory=dict)

    def all(self) -> tuple[Key, ...]:
        """Returns every key, once for each way to prove it."""
        return *self.by_digest.values(), *self.by_certificate.values()


class Keys:
    """The keys that callers may send. Reads the file, and raises KeysFileError.

    Args:
        path: The keys file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = self._seen = stamp_of(path)
        self._table = read_keys(path)
        self._problem = ""

    def identify(self, path: str, metadata: Metadata | None, certificate: Callable[[], Iterable[str]] = tuple) -> Key:
        """Returns the key of a call: the one it sends, else that of its client certificate.

        Args:
            path: The method's path.
            metadata: The call's metadata.
            certificate: Returns the names in the client's certificate.

        Raises:
            ApiKeyInvalid: The call has no key of the file, or sends several.
            ApiKeyNotAllowed: The key is not for this service.
        """
        sent = [value for name, value in metadata or () if name == HEADER]
        key = self._key_sent(sent) if sent else self._key_of_certificate(certificate())
        if key is None:
            raise ApiKeyInvalid
        if key.services is not None:
            service = path.removeprefix(_PACKAGE).partition("/")[0]
            if service not in key.services:
                raise ApiKeyNotAllowed("service", service)
        return key

    def _key_sent(self, sent: Sequence[str | bytes]) -> Key | None:
        value = sent[0]
        if len(sent) > 1 or not isinstance(value, str) or len(value) > KEY_MAX:
            return None
        return self._table.by_digest.get(digest_of(value))

    def _key_of_certificate(self, names: Iterable[str]) -> Key | None:
        found = (self._table.by_certificate.get(name) for name in names)
        return next((key for key in found if key), None)

    def reload(self) -> None:
        """Reads the file again if it has changed, and not since the call before.

        If it cannot be used, logs why, and the keys stay as they are. A file that cannot be read is read again.
        """
        stamp = stamp_of(self._path)
        if stamp == self._stamp:
            return
        if stamp != self._seen:  # it may be half written
            self._seen, self._problem = stamp, ""
            return
        try:
            self._table = read_keys(self._path)
        except KeysFileUnreadableError as error:
            self._report(str(error))
            return
        except KeysFileError as error:
            self._report(str(error))
        else:
            _log.info("keys file read", keys=len({key.name for key in self._table.all()}))
        self._stamp = stamp

    def _report(self, problem: str) -> None:
        """Logs a problem of the file, once as long as it stays the same."""
        if problem != self._problem:
            _log.error("keys file not used; the keys read before it stay valid", error=problem)
        self._problem = problem


def new_key() -> str:
    """Returns a new random key of 43 characters."""
    return secrets.token_urlsafe(32)


def digest_of(key: str) -> bytes:
    """Returns the digest of a key."""
    return hashlib.sha256(key.encode()).digest()


def read_keys(path: Path) -> KeyTable:
    """Returns the keys of a file. Raises KeysFileError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise KeysFileUnreadableError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # of TOML, UTF-8, numbers that are too long, nested arrays
        raise KeysFileError(f"{path}: {error}") from None
    try:
        return _table(content)
    except KeysFileError as error:
        raise KeysFileError(f"{path}: {error}") from None


def _table(content: Mapping[str, Any]) -> KeyTable:
    _check_known(content, {"keys"}, "")
    entries = content.get("keys", {})
    _expect(isinstance(entries, dict), "keys", "expected tables [keys.NAME]")
    _expect(entries, "keys", "there is none; expected tables [keys.NAME]")  # a write was cut short
    by_digest: dict[bytes, Key] = {}
    by_certificate: dict[str, Key] = {}
    for name, entry in entries.items():
        place = f"keys.{name}"
        _expect(NAME_FORM.fullmatch(name), place, NAME_RULE)
        _expect(isinstance(entry, dict), place, f"expected a table [{place}]")
        _check_known(entry, _FIELDS, f"{place}.")
        key = _key(name, entry, place)
        digests = _texts(entry, "sha256", place) or frozenset()
        certificate = entry.get("certificate", "")
        _expect(isinstance(certificate, str), f"{place}.certificate", "expected a name in a client certificate")
        _expect(digests or certificate, place, "expected sha256 or certificate")
        for text in digests:
            _expect(_DIGEST.fullmatch(text), f"{place}.sha256", "expected SHA-256 digests of 64 lower-case hex digits")
            _expect(bytes.fromhex(text) not in by_digest, f"{place}.sha256", "the same digest occurs twice")
            by_digest[bytes.fromhex(text)] = key
        if certificate:
            _expect(certificate not in by_certificate, f"{place}.certificate", "the same name occurs twice")
            by_certificate[certificate] = key
    return KeyTable(by_digest, by_certificate)


def _key(name: str, entry: Mapping[str, Any], place: str) -> Key:
    services = _texts(entry, "services", place)
    unknown = ", ".join(sorted((services or frozenset()) - _SERVICES))
    _expect(not unknown, f"{place}.services", f"unknown: {unknown}; expected some of {', '.join(sorted(_SERVICES))}")
    is_proxy = _is_set(entry, "proxy", place)
    rights = frozenset(right for right in RIGHTS if _is_set(entry, right, place))
    quotas = {quota: entry[quota] for quota in QUOTAS if quota in entry}
    for quota, value in quotas.items():
        is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= QUOTA_MAX
        _expect(is_number, f"{place}.{quota}", f"expected a whole number from 0 to {QUOTA_MAX}")
    labels, tickets = _texts(entry, "labels", place), _tickets(name, entry, place)
    return Key(name, services, labels, quotas, is_proxy, rights, tickets)


def _tickets(name: str, entry: Mapping[str, Any], place: str) -> TicketPolicy | None:
    """Returns how players of a key prove who they are; None if it has no ticket keys."""
    keys = [_ticket_key(text, place) for text in sorted(_texts(entry, "ticket_keys", place) or ())]
    audience = entry.get("ticket_audience", name)
    _expect(isinstance(audience, str) and audience, f"{place}.ticket_audience", "expected a text")
    is_required = _is_set(entry, "require_tickets", place)
    needless = [field for field in _TICKETS if field in entry and not keys]
    _expect(not needless, f"{place}.ticket_keys", "expected a key, because of " + ", ".join(needless))
    return TicketPolicy(tuple(keys), audience, is_required) if keys else None


def _ticket_key(text: str, place: str) -> TicketKey:
    """Returns a key of tickets. No error repeats it, because it may be a secret."""
    key = read_key(text)
    if key is None:
        raise KeysFileError(f"{place}.ticket_keys: expected EdDSA: or HS256: and a key in base64url")
    problem = key_problem(key)
    _expect(not problem, f"{place}.ticket_keys", problem)
    return key


def _is_set(entry: Mapping[str, Any], name: str, place: str) -> bool:
    """Returns a field that is true or false, by default false."""
    value = entry.get(name, False)
    _expect(isinstance(value, bool), f"{place}.{name}", "expected true or false")
    return bool(value)


def _texts(entry: Mapping[str, Any], name: str, place: str) -> frozenset[str] | None:
    """Returns a field that is a list of texts; None if it is missing."""
    texts = entry.get(name)
    if texts is None:
        return None
    is_list = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    _expect(is_list, f"{place}.{name}", "expected a list of texts")
    return frozenset(texts)


def _check_known(table: Mapping[str, Any], known: Collection[str], place: str) -> None:
    unknown = ", ".join(f"{place}{name}" for name in table if name not in known)
    _expect(not unknown, unknown, f"unknown; expected {', '.join(sorted(known))}")


def _expect(condition: object, place: str, problem: str) -> None:
    """Raises KeysFileError unless a condition holds."""
    if not condition:
        raise KeysFileError(f"{place}: {problem}")
