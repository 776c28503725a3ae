"""GameStore on Redis 7, Valkey, or a compatible server: on one, or on a Redis Cluster.

All keys of a game share a hash tag, so a game is in one slot of a cluster, and each script touches the keys of one
game. Keys that span games (the lists by state, the deadlines) are separate and no turn needs them: they may lag, and
are repaired.

Commands go through Nodes (nodes.py), over held connections (connection.py): taking one from redis-py's pool
costs more than the round trip. Games are cached (game_cache.py), so their bytes are decoded once, and a turn can be
decided without a load.
"""

import math
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, ParamSpec, TypeVar

import redis.asyncio as redis
import structlog
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from engine.game import round_of
from engine.melding.drafts import Draft
from engine.melding.ruleset import DraftVisibility
from service.errors import StoredFormatUnknown, StoreFull, TooManyDrafts
from service.model.change import MEMOS_A_SENDER, Commit, Committed, Conflict, Entry, Loaded, Outcome, StoredChange
from service.model.change_log import LogKind, LogPage
from service.model.deadlines import Due
from service.model.outbox import OutboxEntry
from service.model.presence import PRESENCE_MS, Seen, Sighting
from service.model.record import GameState, Lifetimes, Record, code_name
from service.storage.base import (
    BRIEF_MS,
    DRAFT_MS,
    DRAFTS_AT_ONCE,
    GAME_GROWTH,
    NAME_MARGIN_MS,
    SECRET_BYTES,
    Subscription,
    WholePage,
)
from service.storage.game_cache import GameCache
from service.storage.lists import open_list
from service.storage.redis.change_log import RedisChangeLog
from service.storage.redis.cluster import ClusterNodes
from service.storage.redis.deadlines import RedisDeadlines
from service.storage.redis.deployment import find_move, find_obstacle
from service.storage.redis.keys import (
    PROBE,
    SECRET,
    changes_channel,
    deadlines_key,
    draft_key,
    drafts_channel,
    keys_of,
    list_key,
    outbox_key,
    pointer_key,
    presence_channel,
    presence_key,
)
from service.storage.redis.lists import LISTS_BY_STATE, RedisLists
from service.storage.redis.nodes import CONNECT_SECONDS, FAILURES, REPLY_SECONDS, Nodes, OneRedis, Script, Word
from service.storage.redis.outbox import RedisOutbox
from service.storage.redis.sentinel import sentinel_client
from service.storage.redis.time import StoreTime
from service.storage.redis.url import Cluster, One, Sentinel, parse_redis_url
from service.storage.snapshot import decode_draft, decode_memo, encode_draft, encode_memo, encode_record
from service.storage.stored_events import compress, decode_entry, decompress
from service.storage.stored_presence import read_presence
from service.storage.timing import Observer, Reporter, timed, unobserved

_log = structlog.get_logger()
_P = ParamSpec("_P")
_T = TypeVar("_T")

CONNECTIONS: Final = 16
"""Most connections in a process's pool. Opening one takes longer than a command: with 64, the first 200 calls at once
took twice as long, and on a busy machine one of them timed out."""
RESERVE: Final = 0.1
"""The share of Redis's maxmemory that is reserved beside the growth of games: for lists, names and buffers."""
MEMOS_OF_FINISHED_MS: Final = 3_600_000
"""How long the memos of a game that is over are kept."""

_CONNECTION: Final[Mapping[str, Any]] = {
    "max_connections": CONNECTIONS,
    "timeout": REPLY_SECONDS,
    "socket_timeout": REPLY_SECONDS,
    "socket_connect_timeout": CONNECT_SECONDS,
    "retry": Retry(NoBackoff(), 0),
    "retry_on_error": [],
    "health_check_interval": 0,
}
"""Options of redis-py's pools: short time-outs and no retries."""

_Stream = Sequence[tuple[bytes, Sequence[bytes]]]
"""The reply to XRANGE: ids, each with its fields and values."""


def connect(url: str, replicas: int = 0) -> Nodes:
    """Returns the Redis servers of a URL. Raises RedisUrlError.

    Args:
        url: The URL, in a form of url.py.
        replicas: How many replicas must have a change before it is acknowledged.
    """
    match parse_redis_url(url):
        case Cluster(nodes=nodes, options=options):
            return ClusterNodes(nodes, {**_CONNECTION, **options}, replicas)
        case one:
            return OneRedis(client_of(one), replicas)


def client_of(url: One | Sentinel) -> "redis.Redis":
    """Returns redis-py's client for one Redis, or for the primary that Sentinels name."""
    match url:
        case One(options=options):
            return redis.Redis.from_pool(redis.BlockingConnectionPool(**{**_CONNECTION, **options}))
        case Sentinel():
            return sentinel_client(url, _CONNECTION)


class RedisStore:
    """GameStore on Redis.

    Args:
        nodes: From `connect`.
        lifetimes: How long games are kept after their last change.
        history: How many changes of a game are kept for watchers and history.
        clock: Replaces the clock of Redis, in milliseconds since 1970; for tests.
        log_ms: How long the change log has its entries; 0: there is no log.
    """

    def __init__(
        self,
        nodes: Nodes,
        lifetimes: Lifetimes,
        history: int,
        clock: Callable[[], int] | None = None,
        log_ms: int = 0,
    ) -> None:
        self.observe: Observer = unobserved
        self.log_ms, self.log_parts = log_ms, len(nodes.parts)
        self._nodes = nodes
        self._lifetimes = lifetimes
        self._history = history
        self._name_ms = lifetimes.lobby * 1000 + NAME_MARGIN_MS
        self._load, self._commit, self._point, self._save_draft, self._presence, self._shorten, self._rewrite = (
            Script.read(f"{name}.lua", nodes.publish)
            for name in ("load", "commit", "point", "save_draft", "presence", "shorten", "rewrite")
        )
        self._time = StoreTime(nodes, clock)
        self._lists = RedisLists(nodes, self._time, self._name_ms)
        self._deadlines = RedisDeadlines(nodes, self._time)
        self._outbox = RedisOutbox(nodes, self._time)
        self._change_log = RedisChangeLog(nodes, self._time, log_ms)
        self._cache = GameCache(clock)
        self._secret = secrets.token_bytes(SECRET_BYTES)
        self._has_room, self._measured_at = True, -math.inf
        """Whether there was room for another game, and when that was measured (time.monotonic)."""

    @property
    def report(self) -> Reporter:
        """See GameStore."""
        return self._nodes.report

    @report.setter
    def report(self, report: Reporter) -> None:
        self._nodes.report = report

    @timed
    async def now_ms(self) -> int:
        """See GameStore."""
        return await self._time.now_ms(PROBE)

    @timed
    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        """See GameStore."""
        keys = keys_of(game_id)[:2]
        seconds, micros, snapshot, memo = await self._nodes.run(self._load, keys, (request_key,), _has_memo)
        now_ms = self._time.milliseconds(seconds, micros)
        self._cache.set_time(now_ms)
        record = _read(game_id, self._cache.decode, game_id, snapshot)
        return Loaded(now_ms, record, _read(game_id, decode_memo, memo) if memo else None)

    def cached(self, game_id: str) -> Loaded | None:
        """See GameStore."""
        return self._cache.get(game_id)

    @timed
    async def commit(self, commit: Commit) -> Outcome:
        """See GameStore."""
        record, snapshot = commit.record, encode_record(commit.record)
        limits = (commit.until_ms, await self._announce(record, LogKind.CHANGED) if commit.change else None)
        kept_ms = self._lifetimes.milliseconds(record)
        memos_ms = min(kept_ms, MEMOS_OF_FINISHED_MS) if record.state.is_over else kept_ms
        arguments = (
            commit.previous_etag,
            record.game.revision,
            record.etag,
            snapshot,
            commit.change and compress(commit.change),
            commit.request_key,
            encode_memo(commit.memo) if commit.memo else b"",
            commit.sender,
            MEMOS_A_SENDER,
            kept_ms,
            memos_ms,
            self._history,
            changes_channel(record.game_id),
            record.updated_ms,
            min((limit for limit in limits if limit is not None), default=""),
            self._time.argument,
            commit.vacated or "",
        )
        reply = await self._nodes.run(self._commit, keys_of(record.game_id), arguments, _is_no_conflict)
        kind, now_ms, *memo = reply
        self._cache.set_time(now_ms)
        if kind == b"committed":
            self._cache.put(snapshot, record)
            return Committed()
        self._cache.evict(record.game_id)
        return _read(record.game_id, decode_memo, memo[0]) if kind == b"replay" else Conflict()

    @timed
    async def delete(self, game_id: str, record: Record | None = None) -> None:
        """See GameStore. An entry in the change log that is followed by no deletion is dropped by its readers."""
        await self._change_log.announce(game_id, LogKind.DELETED, self._cache.now_ms())
        keys, channel = keys_of(game_id), changes_channel(game_id)
        await self._nodes.execute(keys[0], "UNLINK", *keys, needs_replicas=True)
        await self._nodes.execute(channel, self._nodes.publish, channel, 0)
        await self._deadlines.disarm(game_id)
        if record:
            await self._lists.remove(record)
            await self._release_code(record)
        self._cache.evict(game_id)

    async def _release_code(self, record: Record) -> None:
        """Removes the join code of a game, unless it points at another one."""
        join_code = record.listing.join_code
        code = pointer_key(code_name(join_code))
        if join_code and await self._nodes.execute(code, "GET", code) == record.game_id.encode():
            await self._nodes.execute(code, "UNLINK", code)

    async def _announce(self, record: Record, kind: LogKind) -> int | None:
        return await self._change_log.announce(record.game_id, kind, self._cache.now_ms(), record)

    @timed
    async def rewrite(self, previous_etag: str, record: Record, stream: Sequence[tuple[bytes, str]]) -> Outcome:
        """See GameStore."""
        snapshot, first_revision = encode_record(record), record.game.revision - len(stream) + 1
        changes = (part for change, etag in stream for part in (compress(change), etag))
        channel = changes_channel(record.game_id)
        arguments = (previous_etag, record.etag, snapshot, channel, first_revision, *changes)
        await self._announce(record, LogKind.REWRITTEN)
        is_done = await self._nodes.run(self._rewrite, keys_of(record.game_id)[:3], arguments, bool)
        self._cache.evict(record.game_id)
        return Committed() if is_done else Conflict()

    @timed
    async def read_log(self, part: int, after: str, limit: int) -> LogPage:
        """See GameStore."""
        return await self._change_log.read(part, after, limit)

    @timed
    async def log_length(self) -> int:
        """See GameStore."""
        return await self._change_log.length()

    @timed
    async def save_draft(self, record: Record, draft: Draft) -> int | None:
        """See GameStore. The draft expires with its game."""
        game_id, deadline_ms = record.game_id, round_of(record.game).turn.deadline_ms
        is_public = record.game.ruleset.draft_visibility is DraftVisibility.EVERYONE
        arguments = (
            record.etag,
            encode_draft(draft),
            draft.seat,
            "" if deadline_ms is None else deadline_ms,
            DRAFT_MS,
            DRAFTS_AT_ONCE * DRAFT_MS,
            drafts_channel(game_id) if is_public else "",
            self._time.argument,
        )
        number: int = await self._nodes.run(self._save_draft, (keys_of(game_id)[0], draft_key(game_id)), arguments)
        if number < 0:
            raise TooManyDrafts("seat_drafts")
        if not number:
            self._cache.evict(game_id)
        return number or None

    @timed
    async def draft(self, game_id: str) -> Draft | None:
        """See GameStore."""
        key = draft_key(game_id)
        draft, number = await self._nodes.execute(key, "HMGET", key, "draft", "number")
        if not draft:
            return None
        try:
            return _read(game_id, decode_draft, draft, number or 0)
        except StoredFormatUnknown:
            return None

    @timed
    async def events(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        """See GameStore."""
        stored = await self._stream(game_id, first_revision, limit)
        return tuple(_read(game_id, _entry, fields) for _, fields in stored)

    async def _stream(self, game_id: str, first_revision: int, limit: int) -> "_Stream":
        """Returns at most `limit` changes of a game from a revision on, undecoded."""
        key = keys_of(game_id)[2]
        stored: _Stream = await self._nodes.execute(key, "XRANGE", key, f"{first_revision}-0", "+", "COUNT", limit)
        return stored

    @timed
    async def bounds(self, game_id: str) -> tuple[int, int]:
        """See GameStore."""
        stream = keys_of(game_id)[2]
        oldest: _Stream = await self._nodes.execute(stream, "XRANGE", stream, "-", "+", "COUNT", 1)
        newest: _Stream = await self._nodes.execute(stream, "XREVRANGE", stream, "+", "-", "COUNT", 1)
        return _revision(oldest), _revision(newest)

    def changes(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """See GameStore."""
        return self._nodes.subscribe(changes_channel(game_id))

    def drafts(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """See GameStore."""
        return self._nodes.subscribe(drafts_channel(game_id))

    @timed
    async def secret(self) -> bytes:
        """See GameStore. Reads it on each call: the store may have lost its data and have a new secret."""
        kept = await self._nodes.execute(SECRET, "GET", SECRET)
        if not kept:
            kept = await self._nodes.execute(SECRET, "SET", SECRET, self._secret, "NX", "GET")
        if isinstance(kept, bytes):
            self._secret = kept
        return self._secret

    @timed
    async def check_room(self, most_age: float = 0.0) -> None:
        """See GameStore. Raises StoreFull if any primary is full; never if Redis has no maxmemory."""
        if time.monotonic() - self._measured_at > most_age:
            self._has_room = await self._measure_room()
            self._measured_at = time.monotonic()
        if not self._has_room:
            raise StoreFull

    async def _measure_room(self) -> bool:
        """Returns whether every primary has room for its share of the unfinished games to grow."""
        primaries = [memory for memory in await self._nodes.memory() if memory.get("maxmemory")]
        if not primaries:
            return True
        counts = await self._lists.count()
        unfinished = sum(count for state, count in counts.items() if not state.is_over)
        growth = GAME_GROWTH * unfinished / len(primaries)
        return all(
            memory.get("used_memory", 0) - memory.get("mem_not_counted_for_evict", 0) + growth
            <= memory["maxmemory"] * (1 - RESERVE)
            for memory in primaries
        )

    @timed
    async def index(self, record: Record) -> None:
        """See GameStore."""
        await self._lists.index(record)

    @timed
    async def page(
        self, state: GameState, cursor: str, limit: int, *, is_public: bool = False
    ) -> tuple[tuple[Record, ...], str]:
        """See GameStore."""
        page = await self._lists.page(state, cursor, limit, is_public=is_public)
        return page.games, page.cursor

    @timed
    async def whole_page(self, state: GameState, cursor: str, limit: int) -> WholePage:
        """See GameStore."""
        return await self._lists.page(state, cursor, limit, is_public=False)

    @timed
    async def oldest_open(self, match: str, limit: int) -> tuple[Record, ...]:
        """See GameStore."""
        return await self._lists.oldest_open(match, limit)

    @timed
    async def count(self) -> dict[GameState, int]:
        """See GameStore."""
        return await self._lists.count()

    @timed
    async def point(self, name: str, game_id: str, instead_of: str = "", *, is_brief: bool = False) -> str:
        """See GameStore."""
        key, arguments = pointer_key(name), (game_id, instead_of, BRIEF_MS if is_brief else self._name_ms)
        needs_replicas = bool if self._nodes.needs_replicas(key, game_id) else None
        pointed: bytes = await self._nodes.run(self._point, (key,), arguments, needs_replicas)
        return pointed.decode(errors="replace")

    @timed
    async def pointed(self, name: str) -> str:
        """See GameStore."""
        key = pointer_key(name)
        game_id: bytes | None = await self._nodes.execute(key, "GET", key)
        return (game_id or b"").decode(errors="replace")

    @timed
    async def arm(self, game_id: str, at_ms: int) -> None:
        """See GameStore."""
        await self._deadlines.arm(game_id, at_ms)

    @timed
    async def rearm(self, due: Due, at_ms: int | None) -> None:
        """See GameStore."""
        await self._deadlines.rearm(due, at_ms)

    @timed
    async def claim(self, limit: int, skip: Collection[str] = ()) -> Sequence[Due]:
        """See GameStore."""
        return await self._deadlines.claim(limit, skip)

    @timed
    async def report_presence(self, game_id: str, server: str, sightings: Mapping[int, Sighting]) -> None:
        """See GameStore."""
        pairs = (part for seat, sighting in sightings.items() for part in (seat, sighting.value))
        arguments = (server, PRESENCE_MS, presence_channel(game_id), self._time.argument, *pairs)
        await self._nodes.run(self._presence, (keys_of(game_id)[0], presence_key(game_id)), arguments)

    @timed
    async def presence(self, game_id: str) -> Mapping[int, Seen]:
        """See GameStore."""
        key = presence_key(game_id)
        stored = await self._nodes.execute(key, "HGETALL", key)
        pairs = (
            stored.items() if isinstance(stored, dict) else zip(stored[::2], stored[1::2], strict=True)
        )  # RESP3, RESP2
        return read_presence({name: int(time_ms) for name, time_ms in pairs})

    def presence_changes(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """See GameStore."""
        return self._nodes.subscribe(presence_channel(game_id))

    @timed
    async def append_to_outbox(self, game_id: str) -> int:
        """See GameStore."""
        return await self._outbox.append(game_id)

    @timed
    async def claim_from_outbox(self, limit: int, claim_ms: int) -> Sequence[OutboxEntry]:
        """See GameStore."""
        return await self._outbox.claim(limit, claim_ms)

    @timed
    async def acknowledge(self, entry: OutboxEntry) -> None:
        """See GameStore."""
        await self._outbox.acknowledge(entry)

    @timed
    async def outbox_size(self) -> int:
        """See GameStore."""
        return await self._outbox.size()

    @timed
    async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
        """See GameStore."""
        return tuple(
            StoredChange(_revision([(entry_id, fields)]), *_read(game_id, _etag_and_change, fields))
            for entry_id, fields in await self._stream(game_id, first_revision, limit)
        )

    @timed
    async def shorten(self, record: Record, kept_ms: int) -> bool:
        """See GameStore."""
        return bool(await self._nodes.run(self._shorten, keys_of(record.game_id), (record.etag, kept_ms)))

    @timed
    async def ping(self) -> None:
        """See GameStore. It writes, because a full store or a replica still answers reads."""
        await self._nodes.ping(self._touches())
        await self._change_log.keep()

    def _touches(self) -> list[tuple[str, tuple[Word, ...]]]:
        """Returns commands without effect on every kind of key and channel, and on the deadlines of every part.

        An ACL may deny some. Without the right to a game's channel, a commit would fail after its writes.
        """
        name = pointer_key("")
        lists = [list_key(self._nodes.parts[0], own) for own in (*LISTS_BY_STATE, open_list(""))]
        keys = [*map(deadlines_key, self._nodes.parts), *lists, *keys_of("")]
        channels = [changes_channel(""), drafts_channel(""), presence_channel("")]
        return [
            (SECRET, ("GET", SECRET)),
            (name, ("GET", name)),
            *((key, ("ZREM", key, "")) for key in keys),
            *((key, ("XDEL", key, "0-1")) for key in map(outbox_key, self._nodes.parts)),
            *((channel, (self._nodes.publish, channel, "")) for channel in channels),
            *self._change_log.touches(),
        ]

    async def close(self) -> None:
        """See GameStore."""
        await self._nodes.close()


async def obstacle_at(url: str) -> str:
    """Returns why the service cannot work with the store at a URL, and the remedy; "" if it can, or Redis is down."""
    match parse_redis_url(url):
        case Cluster(nodes=nodes, options=options) as parsed:
            first = One(parsed.shown, {**options, "host": nodes[0].host, "port": nodes[0].port})
            obstacle = await _obstacle_at(first, is_cluster=True)
            return obstacle or await _move_in(ClusterNodes(nodes, {**_CONNECTION, **options}))
        case one:
            return await _obstacle_at(one)


async def _obstacle_at(url: One | Sentinel, *, is_cluster: bool = False) -> str:
    async with client_of(url) as client:
        try:
            move = "" if is_cluster else await find_move(client.get)
            return move or await find_obstacle(client, is_cluster=is_cluster)
        except FAILURES:
            return ""


async def _move_in(nodes: ClusterNodes) -> str:
    try:
        return await nodes.find_move()
    finally:
        await nodes.close()


def _is_no_conflict(reply: Sequence[Any]) -> bool:
    """Returns whether a commit was stored, now or before."""
    return bool(reply[0] != b"conflict")


def _has_memo(reply: Sequence[Any]) -> bool:
    """Returns whether a load found the memo of a request, whose answer may be sent."""
    return bool(reply[3] is not None)


def _revision(entries: "_Stream") -> int:
    return int(entries[0][0].partition(b"-")[0]) if entries else 0


def _read(game_id: str, read: Callable[_P, _T], *stored: _P.args, **options: _P.kwargs) -> _T:
    """Decodes stored bytes of a game. If they cannot be read, it logs the game's id and none of the bytes."""
    try:
        return read(*stored, **options)
    except StoredFormatUnknown:
        _log.warning("store", error="cannot be read", game_id=game_id)
        raise


def _entry(fields: Sequence[bytes]) -> Entry:
    """Returns a stream's entry from alternating names and values. Raises StoredFormatUnknown."""
    etag, change = _etag_and_change(fields)
    return decode_entry(change, etag)


def _etag_and_change(fields: Sequence[bytes]) -> tuple[str, bytes]:
    """Returns an etag and the bytes that it hashes from alternating names and values. Raises StoredFormatUnknown."""
    values = dict(zip(fields[::2], fields[1::2], strict=True))
    return values.get(b"etag", b"").decode(errors="replace"), decompress(values.get(b"change", b""))
