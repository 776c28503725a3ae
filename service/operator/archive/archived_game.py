"""A finished game as the archive has it: its record as text, and all that the store had of it.

The record (engine/record_text.py) is for other programs, and readable by every later version. The history has the
stored bytes of the game and its changes, in the private stored format, so that the service answers from it as before.
"""

import asyncio
import base64
import gzip
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from engine.record import record_of
from engine.record_text import format_record
from service.errors import StoredFormatUnknown
from service.model.change import NO_ETAG, Entry, StoredChange, lineage
from service.model.record import Record
from service.storage.snapshot import decode_record, encode_record
from service.storage.store import Store, read_in_pages
from service.storage.stored_events import decode_entry
from service.storage.stored_values import LATEST_MS, dump, read_number, read_text, reading

LINE_FORMAT: Final = 1
"""The version of the lines that `to_line` returns."""


class LineageBroken(Exception):  # noqa: N818 - a defect of the stored data
    """The stored changes do not lead to the stored game: changes are missing, or other ones are stored."""


@dataclass(frozen=True, slots=True)
class Head:
    """The values of an entry of the archive that decide whether another one may replace it. See ArchivedGame."""

    created_ms: int
    revision: int
    players: frozenset[str]


@dataclass(frozen=True, slots=True)
class ArchivedGame:
    """A finished game.

    Attributes:
        record: The game as it was stored last, hidden tiles and digests of tokens included.
        changes: The stored bytes of its changes, up to the last one; of a very long game the first ones are missing.
        etags: The etag after each change.
        text: The record of the game as text; empty if changes are missing.
    """

    record: Record
    changes: tuple[bytes, ...]
    etags: tuple[str, ...]
    text: str

    @property
    def players(self) -> tuple[str, ...]:
        """The digests of the references to its people (player_digest), in ascending order."""
        return tuple(sorted({player_digest(ref.text) for ref in self.record.operator_data.player_refs}))

    @property
    def head(self) -> Head:
        """The head of its entry."""
        return Head(self.record.created_ms, self.record.game.revision, frozenset(self.players))

    @property
    def first_revision(self) -> int:
        """The revision after the first of the changes."""
        return self.record.game.revision - len(self.changes) + 1

    @property
    def by_revision(self) -> Mapping[int, StoredChange]:
        """The changes by revision."""
        numbered = enumerate(zip(self.changes, self.etags, strict=True), self.first_revision)
        return {revision: StoredChange(revision, etag, change) for revision, (change, etag) in numbered}

    async def stored_changes(self, _game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
        """Returns at most `limit` changes of the game's history from a revision on, as Streams do."""
        start = max(0, first_revision - self.first_revision)
        part = zip(self.changes[start : start + limit], self.etags[start : start + limit], strict=True)
        numbered = enumerate(part, self.first_revision + start)
        return tuple(StoredChange(revision, etag, change) for revision, (change, etag) in numbered)

    async def entries(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        """Returns the same as entries."""
        changes = await self.stored_changes(game_id, first_revision, limit)
        return tuple(decode_entry(change.change, change.etag) for change in changes)

    async def bounds(self, _game_id: str) -> tuple[int, int]:
        """Returns the first and the last revision of the history."""
        return self.first_revision, self.record.game.revision

    def history(self) -> bytes:
        """Returns all but the text, compressed: one line each for the game, its first etag, and each change."""
        lines = (encode_record(self.record), self.etags[0].encode(), *self.changes)
        return gzip.compress(b"\n".join(lines), mtime=0)


async def collect(store: Store, record: Record) -> ArchivedGame:
    """Returns a game of a store for the archive. Raises LineageBroken."""
    changes = await read_in_pages(store.streams.stored_changes, record.game_id, record.game.revision)
    return await asyncio.to_thread(archived, record, changes)


def archived(record: Record, changes: Sequence[StoredChange]) -> ArchivedGame:
    """Returns a game with all its changes that are stored. Raises LineageBroken."""
    if not changes:
        raise LineageBroken
    stored = tuple(change.change for change in changes)
    etags = _checked_etags(record, stored, changes[0].etag)
    if [(change.revision, change.etag) for change in changes] != list(enumerate(etags, changes[0].revision)):
        raise LineageBroken
    text = _text(stored, etags) if changes[0].revision == 1 else ""
    return ArchivedGame(record, stored, etags, text)


def _checked_etags(record: Record, changes: Sequence[bytes], first_etag: str) -> tuple[str, ...]:
    """Returns the etag after each change, computed from the changes; the first one only for the game's creation.

    Raises LineageBroken if the last one is not the game's.
    """
    is_complete = len(changes) == record.game.revision
    etags = [lineage(NO_ETAG, changes[0]) if is_complete else first_etag]
    for change in changes[1:]:
        etags.append(lineage(etags[-1], change))
    if etags[-1] != record.etag:
        raise LineageBroken
    return tuple(etags)


def _text(changes: Sequence[bytes], etags: Sequence[str]) -> str:
    entries = map(decode_entry, changes, etags)
    return format_record(record_of((entry.revision, entry.time_ms, entry.events) for entry in entries))


@reading()
def from_history(history: bytes, text: str) -> ArchivedGame:
    """Returns a game from its history and its text. Raises StoredFormatUnknown if they are damaged."""
    try:
        snapshot, first_etag, *changes = _gunzip(history).split(b"\n")
        record = decode_record(snapshot)
        etags = _checked_etags(record, changes, first_etag.decode())
    except LineageBroken:
        raise StoredFormatUnknown from None
    return ArchivedGame(record, tuple(changes), etags, text)


def _gunzip(data: bytes) -> bytes:
    """Returns what gzip.compress got. Raises StoredFormatUnknown."""
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error):
        raise StoredFormatUnknown from None


def player_digest(player_ref: str) -> str:
    """Returns what stands for a reference to a person where archived games are searched by it.

    It has no key, because the archive outlives the store: anyone who guesses a reference can find its games.
    """
    return hashlib.sha256(player_ref.encode()).hexdigest()


def to_line(game: ArchivedGame) -> bytes:
    """Returns a game as one line of JSON with a line break. `record` and `history` are base64 of gzip."""
    values = {
        "format": LINE_FORMAT,
        "game_id": game.record.game_id,
        "created_ms": game.record.created_ms,
        "updated_ms": game.record.updated_ms,
        "revision": game.record.game.revision,
        "etag": game.record.etag,
        "players": game.players,
        "record": _base64(gzip.compress(game.text.encode(), mtime=0)) if game.text else None,
        "history": _base64(game.history()),
    }
    return dump(values) + b"\n"


def deletion_line(game_id: str) -> bytes:
    """Returns the line of a deleted game, with a line break. It counts wherever the game has other lines."""
    return dump({"format": LINE_FORMAT, "game_id": game_id, "deleted": True}) + b"\n"


@reading()
def head_of_line(line: bytes) -> Head | None:
    """Returns the head of a game's line; None if the game is deleted. Raises StoredFormatUnknown."""
    values = _values(line)
    if "deleted" in values:
        return None
    players = frozenset(map(read_text, values["players"]))
    return Head(read_number(values["created_ms"], 0, LATEST_MS), read_number(values["revision"]), players)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@reading()
def from_line(line: bytes) -> ArchivedGame:
    """Returns the game of a line. Raises StoredFormatUnknown if it is deleted, damaged or of another version."""
    values = _values(line)
    text = "" if values["record"] is None else _gunzip(base64.b64decode(values["record"])).decode()
    return from_history(base64.b64decode(read_text(values["history"])), text)


def _values(line: bytes) -> dict[str, Any]:
    """Returns the values of a line. Raises StoredFormatUnknown if it is of another version."""
    values: dict[str, Any] = orjson.loads(line)
    if values["format"] != LINE_FORMAT:
        raise StoredFormatUnknown
    return values
