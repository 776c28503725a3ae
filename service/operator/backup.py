"""Backups: all of a store in one stream of lines, whatever program holds it, and back into an empty store.

The first line names the form, the last one how many games and keys came before it: a stream without it was cut off.
Each line between has a key with its content, or members of a list. A game is as it was at one moment; games follow each
other while they are played. The deadlines are read first, so none is later than its game is due, and games without one
get a deadline at once: a server that checks a game too early finds nothing to do. Lists are read last; a list repairs
itself when it is read (service/app/sweeper.py).

A backup that was interrupted goes on after its last whole game, a restore after the last lines that it knows to have
written.

Not in a backup: drafts and presence, which live for moments, and the change log, whose readers begin anew.
"""

import base64
import hashlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from redis import exceptions

from service.operator.content import BATCH, SCANNED, Content, Keyspace, is_key_of_game
from service.runtime.redis_url import RedisUrlError
from service.storage.lists import game_of_member
from service.storage.redis.keys import (
    MARK,
    SECRET,
    UNFINISHED,
    change_log_key,
    draft_key,
    outbox_key,
    part_of,
    presence_key,
)

FORM: Final = 1
DEADLINES: Final = "deadlines"
PROGRESS_SECONDS: Final = 5.0
_FAILURES: Final = (exceptions.RedisError, exceptions.RedisClusterException, OSError, TimeoutError, RedisUrlError)

Progress = Callable[[str], None]
"""Receives a line about what is being done."""
Line = dict[str, Any]


class BackupError(Exception):
    """A backup or a restore has failed; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What a backup has, or a restore has written, and how long it took in seconds."""

    games: int
    keys: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Kept:
    """The whole games of an interrupted backup.

    Attributes:
        size: How many bytes it has up to the end of these games.
        games: The ids of the games.
        keys: How many keys they have.
        store: The store's name in it (_name_of).
    """

    size: int = 0
    games: frozenset[str] = frozenset()
    keys: int = 0
    store: str = ""


NOTHING: Final = Kept()


def kept_of(lines: Iterable[bytes]) -> Kept:
    """Returns what can be kept of an interrupted backup: all games but the last one, which may lack keys.

    Raises BackupError if it is none.
    """
    raw, copied = itertools.tee(lines)
    left = _parsed(copied)
    head = next(left, {})
    _check_head(head)
    size, games, keys, game, kept = len(next(raw)), set[str](), 0, "", NOTHING
    for line, written in zip(left, raw, strict=False):
        another = _game_of(line["key"]) if "key" in line else ""
        if game not in {"", another}:
            games.add(game)
            kept = Kept(size, frozenset(games), keys, head.get("store", ""))
        if games and not another:
            break
        size, keys, game = size + len(written), keys + bool(another), another
    return kept


def _game_of(key: str) -> str:
    """Returns the id of the game that a key is of; "" for others."""
    return key.partition("{")[2].partition("}")[0] if is_key_of_game(key) else ""


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Keyspace]:
    """Yields the store at a URL. Turns failures of Redis into BackupError."""
    try:
        store = await Keyspace.open(url)
        try:
            yield store
        finally:
            await store.close()
    except _FAILURES as error:
        raise BackupError(f"the store does not reply: {type(error).__name__}: {error}") from error


async def backup(url: str, write: Callable[[bytes], object], progress: Progress, kept: Kept = NOTHING) -> Saved:
    """Writes all of a store to a stream, while servers use it; returns what it has then. Raises BackupError.

    Args:
        url: The store, in any form of RUMMIKUB_REDIS_URL.
        write: Receives the bytes, in lines.
        progress: Receives what is being done.
        kept: What the stream has already.
    """
    async with _opened(url) as store:
        await _check_source(store)
        began = time.monotonic()
        pace = _Pace(progress)
        games, keys, name = len(kept.games), kept.keys, await _name_of(store)
        if kept is not NOTHING and kept.store != name:
            raise BackupError(f"the interrupted backup is of another store than {store.shown}: begin anew")
        if kept is NOTHING:
            write(_line({"rummikub_backup": FORM, "made_ms": int(time.time() * 1000), "store": name}))
            async for line in _list_of(store, DEADLINES):
                write(_line(line))
        async for content in _single_keys(store, kept.games):
            write(_line(_of_content(content)))
            keys += 1
            games += content.key.endswith("}:game")
            pace.report(f"{games} games")
        async for line in _shared(store, (await store.keys()).shared):
            write(_line(line))
        write(_line({"end": True, "games": games, "keys": keys}))
        return Saved(games, keys, time.monotonic() - began)


async def _check_source(store: Keyspace) -> None:
    """Raises BackupError if servers use another store, or none."""
    for key, sign in ((MARK, "was moved away from"), (UNFINISHED, "lacks games: what fills it has not finished")):
        if await store.client.get(key) is not None:
            raise BackupError(f"{store.shown} {sign}: make the backup of the store that servers use")


async def _name_of(store: Keyspace) -> str:
    """Returns what distinguishes a store from others: a hash of its secret."""
    return hashlib.sha256(await store.client.get(SECRET) or b"").hexdigest()


async def _single_keys(store: Keyspace, kept: Set[str]) -> AsyncIterator[Content]:
    """Yields the keys of other games, but drafts and presence, then the secret, names and the lists of players."""
    for batch in _batches((await store.keys()).games - kept):
        for content in await store.games(batch):
            if content.kind != "none" and not _is_passing(content.key):
                yield content
    for batch in _batches([SECRET, *(await store.keys()).names]):
        for content in await store.content(batch):
            if content.kind != "none":
                yield content


def _is_passing(key: str) -> bool:
    """Whether a key of a game is its draft or its presence."""
    game = key.partition("{")[2].partition("}")[0]
    return key in (draft_key(game), presence_key(game))


async def _shared(store: Keyspace, keys: Iterable[str]) -> AsyncIterator[Line]:
    """Yields lists and the outbox, without parts."""
    names = set[str]()
    for key in keys:
        part = next((part for part in store.parts if key.startswith(part)), None)
        if part and key not in (change_log_key(part), MARK, UNFINISHED, SECRET) and not key.endswith(":probe"):
            names.add(key.removeprefix(part))
    for name in sorted(names - {DEADLINES, "probe"}):
        if name == outbox_key(""):
            for part in store.parts:
                for _, fields in await store.client.xrange(outbox_key(part)):
                    yield {"outbox": [_text(one) for pair in fields.items() for one in pair]}
        else:
            async for line in _list_of(store, name):
                yield line


async def _list_of(store: Keyspace, name: str) -> AsyncIterator[Line]:
    """Yields the members of all parts of a list, with their scores."""
    for part in store.parts:
        left_ms = await store.client.pttl(f"{part}{name}")
        for start in itertools.count(step=SCANNED):
            members = await store.client.zrange(f"{part}{name}", start, start + SCANNED - 1, withscores=True)
            if not members:
                break
            yield {"list": name, "left_ms": left_ms, "members": [[_text(one), score] for one, score in members]}


async def restore(lines: Iterable[bytes], url: str, progress: Progress) -> Saved:
    """Writes a backup into a store without games; returns what was written.

    Until all of it is there, the store has a mark and no server uses it. An interrupted restore goes on if it is
    repeated with the same backup; one that failed is begun anew. Raises BackupError, which says why: the store has
    games, or the backup is cut off, damaged, of a newer form, or not the one that was interrupted.

    Args:
        lines: The lines of a backup.
        url: The store, in any form of RUMMIKUB_REDIS_URL.
        progress: Receives what is being done.
    """
    async with _opened(url) as store:
        began = time.monotonic()
        read = _Digested(lines)
        left = _parsed(read)
        _check_head(next(left, {}))
        writing = _Restore(store, _Pace(progress), read, await _prepare(store, progress))
        try:
            _check_end(await writing.write(left), writing)
        except BackupError:
            await store.client.set(UNFINISHED, "")  # the next restore begins anew
            raise
        await writing.make_due()
        await store.client.delete(UNFINISHED)
        return Saved(writing.games, writing.keys, time.monotonic() - began)


def _check_end(end: Line | None, writing: "_Restore") -> None:
    """Raises BackupError if a backup has not ended as it should."""
    if end is None:
        raise BackupError(
            f"the backup is cut off after {writing.games} games; the store stays unused: restore a whole one"
        )
    if (end.get("games"), end.get("keys")) != (writing.games, writing.keys):
        raise BackupError(f"the backup lacks lines: it has {writing.games} games, and its end names {end.get('games')}")


class _Digested:
    """Lines, with the SHA-256 of those that were read."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self._sha256 = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self._sha256.update(line)
            yield line

    @property
    def digest(self) -> str:
        """The SHA-256 of the lines that were read, in hexadecimal digits."""
        return self._sha256.hexdigest()


async def _prepare(store: Keyspace, progress: Progress) -> "_Written":
    """Marks a store as unfinished; returns what an interrupted restore has written.

    Empties what a failed one has left. Raises BackupError if the store has games.
    """
    mark = await store.client.get(UNFINISHED)
    if mark:
        lines, digest = mark.decode().split()
        progress(f"going on after {lines} lines of an interrupted restore")
        for part in store.parts:
            await store.client.delete(outbox_key(part))
        return _Written(int(lines), digest)
    if mark is not None:
        progress("deleting what an unfinished restore has left")
        await store.erase()
    elif (await store.keys()).games or await store.client.get(MARK) is not None:
        raise BackupError(f"{store.shown} has games already, or was moved away from: restore into an empty store")
    await store.client.set(UNFINISHED, "")
    return _Written(0, "")


class _Written(NamedTuple):
    """How many lines after the first a restore has written, and the SHA-256 of all lines so far."""

    lines: int
    digest: str


class _Restore:
    """A restore under way: what was written."""

    def __init__(self, store: Keyspace, pace: "_Pace", read: _Digested, written: _Written) -> None:
        self._store = store
        self._pace = pace
        self._read = read
        self._written = written
        self._ids: list[str] = []
        self.keys = 0

    @property
    def games(self) -> int:
        """The number of games."""
        return len(self._ids)

    async def write(self, lines: Iterator[Line]) -> Line | None:
        """Writes lines until the last one, which is returned; None if there is none."""
        batch: list[Content] = []
        for number, line in enumerate(lines, 1):
            is_written = number <= self._written.lines
            if (number == self._written.lines and self._read.digest != self._written.digest) or (
                is_written and "end" in line
            ):
                raise BackupError("another backup was interrupted here: repeat the restore, and it begins anew")
            if "key" in line:
                self.keys += 1
                if line["key"].endswith("}:game"):
                    self._ids.append(_game_of(line["key"]))
            if is_written:
                continue
            if "key" in line:
                batch.append(_content_of(line))
                if len(batch) == BATCH:
                    await self._store.write(batch)
                    batch = []
                    await self._store.client.set(UNFINISHED, f"{number} {self._read.digest}")
                    self._pace.report(f"{self.games} games")
            elif "list" in line:
                await self._add_members(line)
            elif "outbox" in line:
                await self._add_to_outbox([_bytes(one) for one in line["outbox"]])
            else:
                await self._store.write(batch)
                return line
        return None

    async def _add_members(self, line: Mapping[str, Any]) -> None:
        """Adds members to a list, each to the part of its game."""
        name, by_part = line["list"], dict[str, dict[bytes, float]]()
        for text, score in line["members"]:
            member = _bytes(text)
            game = member.decode() if name == DEADLINES else game_of_member(member.decode())
            by_part.setdefault(part_of(self._store.parts, game), {})[member] = score
        for part, members in by_part.items():
            await self._store.client.zadd(f"{part}{name}", members)
            if line["left_ms"] > 0:
                await self._store.client.pexpire(f"{part}{name}", line["left_ms"])

    async def _add_to_outbox(self, items: Sequence[bytes]) -> None:
        fields = dict(zip(items[::2], items[1::2], strict=True))
        part = part_of(self._store.parts, fields[b"game"].decode())
        await self._store.client.xadd(outbox_key(part), fields)

    async def make_due(self) -> None:
        """Gives each game without a deadline one that is due: it was created while the backup was made."""
        now = int(time.time() * 1000)
        for batch in _batches(self._ids):
            pipeline = self._store.client.pipeline(transaction=False)
            for game in batch:
                pipeline.zadd(f"{part_of(self._store.parts, game)}{DEADLINES}", {game: now}, nx=True)
            await pipeline.execute()


class _Pace:
    """Reports progress, not more often than every few seconds."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._last = time.monotonic()

    def report(self, line: str) -> None:
        """Reports a line if the last one was long ago."""
        if time.monotonic() - self._last > PROGRESS_SECONDS:
            self._last = time.monotonic()
            self._progress(line)


def _check_head(head: Mapping[str, Any]) -> None:
    """Raises BackupError if the first line is not that of a backup that can be read."""
    form = head.get("rummikub_backup")
    if not isinstance(form, int):
        raise BackupError("this is no backup: its first line has no rummikub_backup")
    if form != FORM:
        raise BackupError(
            f"the backup has form {form} and this version reads form {FORM}: use the version that made it"
        )


def _parsed(lines: Iterable[bytes]) -> Iterator[Line]:
    """Yields the lines as values. Raises BackupError; a last line without an end is not one."""
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            return
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise BackupError(f"line {number} is damaged: {error}") from error
        if not isinstance(value, dict):
            raise BackupError(f"line {number} is damaged: it is no object")
        yield value


def _of_content(content: Content) -> Line:
    items = [_text(item) for item in content.items]
    return {"key": content.key, "kind": content.kind, "left_ms": content.left_ms, "items": items}


def _content_of(line: Mapping[str, Any]) -> Content:
    return Content(line["key"], line["kind"], line["left_ms"], [_bytes(item) for item in line["items"]])


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


def _line(value: Line) -> bytes:
    return orjson.dumps(value) + b"\n"


def _batches(items: Iterable[str]) -> Iterator[list[str]]:
    left = iter(items)
    while batch := list(itertools.islice(left, BATCH)):
        yield batch
