"""GameStore on Redis 7, Valkey, or a compatible server. One subject, so the module is long.

All keys of a game share a hash tag, so a game lives in one slot of a cluster, and each script touches the keys of one
game. Keys that span games (the lists by state, the deadlines) are separate and no turn needs them: they may lag, and
are repaired. Client retries are off because a script could be applied twice; changes.py retries with the request id.

Loads, commits and list updates use one shared connection (redis_connection.py): taking one from redis-py's pool costs
more than the round trip. Games are cached (game_cache.py), so their bytes are decoded once, and a turn can be decided
without a load.
"""

import asyncio
import contextlib
import re
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1
from importlib.resources import files
from typing import Any, Final, ParamSpec, TypeVar

import redis.asyncio as redis
import structlog
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from engine.drafts import Draft
from engine.game import round_of
from engine.ruleset import DraftVisibility
from service.errors import StoredFormatUnknown, StoreFull, StoreUnavailable, TooManyDrafts
from service.storage.base import (
    BRIEF_MS,
    CLAIM_MS,
    DRAFT_MS,
    DRAFTS_AT_ONCE,
    MEMOS_A_SENDER,
    NAME_MARGIN_MS,
    PRESENCE_MS,
    SECRET_BYTES,
    Commit,
    Committed,
    Conflict,
    Due,
    Entry,
    GameState,
    Lifetimes,
    Loaded,
    Outcome,
    Record,
    Seen,
    Sighting,
    Subscription,
)
from service.storage.game_cache import GameCache
from service.storage.lists import game_of_member, list_member, list_name, lists_of, open_list, possible_lists
from service.storage.redis_connection import shared_connection
from service.storage.redis_deployment import find_obstacle, find_risk
from service.storage.redis_feed import RedisFeed
from service.storage.snapshot import (
    decode_draft,
    decode_memo,
    encode_draft,
    encode_memo,
    encode_record,
    readable_record,
)
from service.storage.stored_events import compress, decode_entry, decompress
from service.storage.stored_presence import read_presence
from service.storage.timing import Observer, timed, unobserved

_log = structlog.get_logger()
_P = ParamSpec("_P")
_T = TypeVar("_T")

CONNECT_SECONDS: Final = 1.0
"""Timeout of connecting."""
REPLY_SECONDS: Final = 1.0
"""Timeout of a reply."""
CONNECTIONS: Final = 64
"""Most connections in a process's pool."""
PROBE_MS: Final = 60_000
"""How long the key of a health check is kept."""
LISTED_AT_ONCE: Final = 20
"""How many listed games are decoded before other tasks may run: 1 to 2 ms."""
RESERVE: Final = 0.1
"""The share of Redis's maxmemory that is reserved for existing games."""
MEMOS_OF_FINISHED_MS: Final = 3_600_000
"""How long the memos of a game that is over are kept."""
ORPHAN_MS: Final = 3_600_000
"""How long a list may name a game that is not stored. A creation lists the game first, and may be retried."""

SECRET: Final = "rummikub:secret"  # noqa: S105 - a key
PROBE: Final = "rummikub:probe"
DEADLINES: Final = "rummikub:deadlines"

_LISTS_BY_STATE: Final = [list_name(state, is_public=is_public) for state in GameState for is_public in (False, True)]
"""The lists that exist for ever."""

_MEMBER: Final = re.compile(rb"\d{15}:[0-9a-f]{32}")
"""A game in a list. Members of another form were not written by this service."""

FAILURES: Final = (exceptions.RedisError, OSError, TimeoutError)
"""Exceptions of a store that does not reply, or replies with an error."""

_Stream = Sequence[tuple[bytes, Sequence[bytes]]]
"""The reply to XRANGE: ids, each with its fields and values."""


def keys_of(game_id: str) -> list[str]:
    """Returns a game's keys: snapshot, requests, event stream, draft, presence."""
    return [f"rummikub:{{{game_id}}}:{part}" for part in ("game", "requests", "events", "draft", "presence")]


def _draft_key(game_id: str) -> str:
    return keys_of(game_id)[3]


def _channel(game_id: str) -> str:
    return f"rummikub:{{{game_id}}}:changed"


def _presence_key(game_id: str) -> str:
    return keys_of(game_id)[4]


def _presence_channel(game_id: str) -> str:
    return f"rummikub:{{{game_id}}}:seen"


def _list_key(name: str) -> str:
    return f"rummikub:{name}"


def _draft_channel(game_id: str) -> str:
    return f"rummikub:{{{game_id}}}:drafted"


def _pointer_key(name: str) -> str:
    return f"rummikub:name:{name}"


def connect(url: str) -> "redis.Redis":
    """Returns a client for a URL (redis://, rediss://, unix://) with short timeouts and no retries."""
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=CONNECTIONS,
        timeout=REPLY_SECONDS,
        socket_timeout=REPLY_SECONDS,
        socket_connect_timeout=CONNECT_SECONDS,
        retry=Retry(NoBackoff(), 0),
        retry_on_error=[],
        health_check_interval=0,
    )
    return redis.Redis.from_pool(pool)


@dataclass(frozen=True, slots=True)
class _Script:
    """A Lua script, and its digest for EVALSHA."""

    text: str
    sha: str

    @classmethod
    def read(cls, name: str) -> "_Script":
        """Returns a script of this package."""
        text = (files("service.storage") / "scripts" / name).read_text()
        return cls(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


class RedisStore:
    """GameStore on a Redis client.

    Args:
        client: From `connect`.
        lifetimes: How long games are kept after their last change.
        history: How many changes of a game are kept for watchers and history.
        clock: Replaces the Redis server's clock, in milliseconds since 1970; for tests.
    """

    def __init__(
        self, client: "redis.Redis", lifetimes: Lifetimes, history: int, clock: Callable[[], int] | None = None
    ) -> None:
        self.observe: Observer = unobserved
        self._client = client
        self._lifetimes = lifetimes
        self._history = history
        self._clock = clock
        self._name_ms = lifetimes.lobby * 1000 + NAME_MARGIN_MS
        self._load, self._commit = _Script.read("load.lua"), _Script.read("commit.lua")
        self._point = _Script.read("point.lua")
        self._save_draft = _Script.read("save_draft.lua")
        self._presence = _Script.read("presence.lua")
        self._claim = client.register_script(_Script.read("claim.lua").text)
        self._rearm = client.register_script(_Script.read("rearm.lua").text)
        self._connection = shared_connection(client.connection_pool, REPLY_SECONDS)
        self._cache = GameCache(clock)
        self._secret = secrets.token_bytes(SECRET_BYTES)
        self._feed = RedisFeed(client.connection_pool.make_connection, REPLY_SECONDS)
        self._has_dropped_pool = False
        self._listing = asyncio.Lock()
        self._is_inspected = False

    @timed
    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        """See GameStore."""
        seconds, micros, snapshot, memo = await self._run(self._load, keys_of(game_id)[:2], (request_key,))
        now_ms = self._now_ms(int(seconds), int(micros))
        self._cache.set_time(now_ms)
        record = _read(game_id, self._cache.decode, game_id, snapshot)
        return Loaded(now_ms, record, _read(game_id, decode_memo, memo) if memo else None)

    def cached(self, game_id: str) -> Loaded | None:
        """See GameStore."""
        return self._cache.get(game_id)

    async def _run(self, script: "_Script", keys: Sequence[str], arguments: Sequence[str | int | bytes]) -> Any:  # noqa: ANN401 - any reply
        """Returns a script's reply. On NOSCRIPT, which has no effect, it falls back to EVAL with the full script."""
        try:
            return await self._connection.execute("EVALSHA", script.sha, len(keys), *keys, *arguments)
        except exceptions.NoScriptError:
            pass
        except FAILURES as error:
            raise await self._unavailable(error) from error
        async with self._converting_failures():
            return await self._connection.execute("EVAL", script.text, len(keys), *keys, *arguments)

    @contextlib.asynccontextmanager
    async def _converting_failures(self) -> AsyncIterator[None]:
        """Raises StoreUnavailable for every failure of the store."""
        current = self._connection.current
        try:
            yield
        except FAILURES as error:
            if isinstance(error, exceptions.ReadOnlyError):
                self._connection.drop(current)  # not one opened since: the reply may be late
            raise await self._unavailable(error) from error

    async def _unavailable(self, error: Exception) -> StoreUnavailable:
        """Logs a failure and returns the exception for callers.

        The health check logs that the store does not reply, once; calls log that at debug level only.
        """
        text = f"{type(error).__name__}: {str(error)[:200]}"
        is_away = isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError | OSError)
        (_log.debug if is_away else _log.warning)("store", error=text)
        if isinstance(error, exceptions.ReadOnlyError):
            await self._drop_pool()
        return StoreUnavailable(text)

    async def _drop_pool(self) -> None:
        """Closes the pool's connections to a Redis that has become a replica, to reach the new primary at its address.

        A replica keeps connections open and refuses every write. The feed keeps its connection until some Redis accepts
        writes (`ping`), because a replica publishes changes too.
        """
        self._has_dropped_pool = True
        pool = self._client.connection_pool
        await pool.update_active_connections_for_reconnect()  # type: ignore[no-untyped-call]
        with contextlib.suppress(*FAILURES):
            await pool.disconnect(inuse_connections=False)

    def _now_ms(self, seconds: int, micros: int) -> int:
        return self._clock() if self._clock else seconds * 1000 + micros // 1000

    @timed
    async def commit(self, commit: Commit) -> Outcome:
        """See GameStore."""
        record, snapshot = commit.record, encode_record(commit.record)
        kept_ms = self._lifetimes.milliseconds(record)
        memos_ms = min(kept_ms, MEMOS_OF_FINISHED_MS) if record.state.is_over else kept_ms
        arguments = (
            commit.previous_etag,
            record.game.revision,
            record.etag,
            snapshot,
            compress(commit.change),
            commit.request_key,
            encode_memo(commit.memo) if commit.memo else b"",
            commit.sender,
            MEMOS_A_SENDER,
            kept_ms,
            memos_ms,
            self._history,
            _channel(record.game_id),
            record.updated_ms,
            "" if commit.until_ms is None else commit.until_ms,
            self._clock() if self._clock else "",
        )
        kind, now_ms, *memo = await self._run(self._commit, keys_of(record.game_id), arguments)
        self._cache.set_time(now_ms)
        if kind == b"committed":
            self._cache.put(snapshot, record)
            return Committed()
        self._cache.evict(record.game_id)
        return _read(record.game_id, decode_memo, memo[0]) if kind == b"replay" else Conflict()

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
            _draft_channel(game_id) if is_public else "",
            self._clock() if self._clock else "",
        )
        number: int = await self._run(self._save_draft, (keys_of(game_id)[0], _draft_key(game_id)), arguments)
        if number < 0:
            raise TooManyDrafts
        if not number:
            self._cache.evict(game_id)
        return number or None

    @timed
    async def draft(self, game_id: str) -> Draft | None:
        """See GameStore."""
        async with self._converting_failures():
            draft, number = await self._connection.execute("HMGET", _draft_key(game_id), "draft", "number")
        if not draft:
            return None
        try:
            return _read(game_id, decode_draft, draft, number or 0)
        except StoredFormatUnknown:
            return None

    @timed
    async def events(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        """See GameStore."""
        stream = keys_of(game_id)[2]
        async with self._converting_failures():
            stored: _Stream = await self._connection.execute(
                "XRANGE", stream, f"{first_revision}-0", "+", "COUNT", limit
            )
        return tuple(_read(game_id, _entry, fields) for _, fields in stored)

    @timed
    async def bounds(self, game_id: str) -> tuple[int, int]:
        """See GameStore."""
        stream = keys_of(game_id)[2]
        async with self._converting_failures():
            oldest: _Stream = await self._connection.execute("XRANGE", stream, "-", "+", "COUNT", 1)
            newest: _Stream = await self._connection.execute("XREVRANGE", stream, "+", "-", "COUNT", 1)
        return _revision(oldest), _revision(newest)

    def changes(self, game_id: str) -> contextlib.AbstractAsyncContextManager[Subscription]:
        """See GameStore."""
        return self._feed.subscribe(_channel(game_id))

    def drafts(self, game_id: str) -> contextlib.AbstractAsyncContextManager[Subscription]:
        """See GameStore."""
        return self._feed.subscribe(_draft_channel(game_id))

    @timed
    async def secret(self) -> bytes:
        """See GameStore. Reads it on each call: the store may have lost its data and have a new secret."""
        async with self._converting_failures():
            kept = await self._client.get(SECRET) or await self._client.set(SECRET, self._secret, nx=True, get=True)
        if isinstance(kept, bytes):
            self._secret = kept
        return self._secret

    @timed
    async def check_room(self) -> None:
        """See GameStore. Never raises if Redis has no maxmemory."""
        async with self._converting_failures():
            memory = await self._client.info("memory")
        most = memory.get("maxmemory", 0)
        used = memory.get("used_memory", 0) - memory.get("mem_not_counted_for_evict", 0)
        if most and used > most * (1 - RESERVE):
            raise StoreFull

    @timed
    async def index(self, record: Record) -> None:
        """See GameStore."""
        member, own = list_member(record), lists_of(record)
        async with self._converting_failures():
            for name in sorted(own):  # first: a game is never unlisted
                await self._connection.execute("ZADD", _list_key(name), 0, member)
                if name not in _LISTS_BY_STATE:
                    await self._connection.execute("PEXPIRE", _list_key(name), self._name_ms)
            others = sorted(possible_lists(record) - own)
            await asyncio.gather(*(self._connection.execute("ZREM", _list_key(name), member) for name in others))

    @timed
    async def page(
        self, state: GameState, cursor: str, limit: int, *, is_public: bool = False
    ) -> tuple[tuple[Record, ...], str]:
        """See GameStore."""
        name = list_name(state, is_public=is_public)
        start = f"({cursor}" if cursor else "+"
        async with self._converting_failures():
            found = await self._connection.execute("ZREVRANGEBYLEX", _list_key(name), start, "-", "LIMIT", 0, limit)
        members = [member for member in found if _MEMBER.fullmatch(member)]
        following = members[-1].decode() if members and len(found) == limit else ""
        return await self._games_in(name, found), following

    @timed
    async def oldest_open(self, match: str, limit: int) -> tuple[Record, ...]:
        """See GameStore."""
        name = open_list(match)
        async with self._converting_failures():
            found = await self._connection.execute("ZRANGEBYLEX", _list_key(name), "-", "+", "LIMIT", 0, limit)
        return await self._games_in(name, found)

    async def _games_in(self, name: str, found: Sequence[bytes]) -> tuple[Record, ...]:
        """Returns the games of members of a list, and repairs the list where it was wrong."""
        async with self._converting_failures():
            seconds, micros = await self._connection.execute("TIME")
        now_ms = self._now_ms(int(seconds), int(micros))
        members = [member.decode() for member in found if _MEMBER.fullmatch(member)]
        records: list[Record] = []
        moved: list[Record] = []
        gone: list[str | bytes] = [member for member in found if not _MEMBER.fullmatch(member)]
        for some in _in_parts(members, LISTED_AT_ONCE):
            for member, snapshot, record in await self._listed(some):
                if record and record.is_emptied:
                    continue  # it expires soon; a repair could remove it from its lists after somebody has joined
                own_member = list_member(record) if record else member
                if member != own_member:
                    gone.append(member)  # from a creation that failed
                if record and (name not in lists_of(record) or member != own_member):
                    moved.append(record)
                elif record:
                    records.append(record)
                elif not snapshot and now_ms - int(member.partition(":")[0]) > ORPHAN_MS:
                    gone.append(member)
        with contextlib.suppress(StoreUnavailable):  # a store that refuses writes is still readable
            await self._repair(name, moved, gone)
        return tuple(records)

    async def _repair(self, name: str, moved: Sequence[Record], gone: Sequence[str | bytes]) -> None:
        """Puts games into their own lists, and removes members that are gone from a list."""
        for record in moved:
            await self.index(record)
        if gone:
            async with self._converting_failures():
                await self._connection.execute("ZREM", _list_key(name), *gone)

    async def _listed(self, members: Sequence[str]) -> list[tuple[str, bytes | None, Record | None]]:
        """Returns members of a list, each with its stored bytes and its game if that can be read.

        Decoding a hundred games takes some 10 ms, so calls decode a few at a time and take turns.
        """
        async with self._converting_failures():
            snapshots = await asyncio.gather(
                *(
                    self._connection.execute("HGET", keys_of(game_of_member(member))[0], "snapshot")
                    for member in members
                )
            )
        async with self._listing:
            await asyncio.sleep(0)
            return [
                (member, snapshot, readable_record(snapshot))
                for member, snapshot in zip(members, snapshots, strict=True)
            ]

    @timed
    async def count(self) -> dict[GameState, int]:
        """See GameStore."""
        async with self._converting_failures():
            pipeline = self._client.pipeline(transaction=False)
            for state in GameState:
                pipeline.zcard(_list_key(list_name(state, is_public=False)))
            return dict(zip(GameState, await pipeline.execute(), strict=True))

    @timed
    async def point(self, name: str, game_id: str, instead_of: str = "", *, is_brief: bool = False) -> str:
        """See GameStore."""
        kept_ms = BRIEF_MS if is_brief else self._name_ms
        pointed: bytes = await self._run(self._point, (_pointer_key(name),), (game_id, instead_of, kept_ms))
        return pointed.decode(errors="replace")

    @timed
    async def pointed(self, name: str) -> str:
        """See GameStore."""
        async with self._converting_failures():
            game_id: bytes | None = await self._connection.execute("GET", _pointer_key(name))
        return (game_id or b"").decode(errors="replace")

    @timed
    async def arm(self, game_id: str, at_ms: int) -> None:
        """See GameStore."""
        async with self._converting_failures():
            await self._client.zadd(DEADLINES, {game_id: at_ms})

    @timed
    async def rearm(self, due: Due, at_ms: int | None) -> None:
        """See GameStore."""
        async with self._converting_failures():
            arguments: list[str | int] = [due.game_id, due.claimed_ms, "" if at_ms is None else at_ms]
            await self._rearm(keys=[DEADLINES], args=arguments)

    @timed
    async def claim(self, limit: int, skip: Collection[str] = ()) -> Sequence[Due]:
        """See GameStore."""
        async with self._converting_failures():
            arguments = [limit, self._clock() if self._clock else "", CLAIM_MS, *skip]
            found = await self._claim(keys=[DEADLINES], args=arguments)
        claims = zip(found[::3], found[1::3], found[2::3], strict=True)
        return [Due(game_id.decode(), int(at_ms), int(claimed_ms)) for game_id, at_ms, claimed_ms in claims]

    @timed
    async def report_presence(self, game_id: str, server: str, sightings: Mapping[str, Sighting]) -> None:
        """See GameStore."""
        pairs = (part for tag, sighting in sightings.items() for part in (tag, sighting.value))
        now = self._clock() if self._clock else ""
        arguments = (server, PRESENCE_MS, _presence_channel(game_id), now, *pairs)
        await self._run(self._presence, (keys_of(game_id)[0], _presence_key(game_id)), arguments)

    @timed
    async def presence(self, game_id: str) -> Mapping[str, Seen]:
        """See GameStore."""
        async with self._converting_failures():
            stored = await self._connection.execute("HGETALL", _presence_key(game_id))
        pairs = (
            stored.items() if isinstance(stored, dict) else zip(stored[::2], stored[1::2], strict=True)
        )  # RESP3, RESP2
        return read_presence({name: int(time_ms) for name, time_ms in pairs})

    def presence_changes(self, game_id: str) -> contextlib.AbstractAsyncContextManager[Subscription]:
        """See GameStore."""
        return self._feed.subscribe(_presence_channel(game_id))

    @timed
    async def ping(self) -> None:
        """See GameStore. It writes, because a full store or a replica still answers reads."""
        if not self._is_inspected:
            await self._inspect()
        try:
            async with self._converting_failures():
                await self._touch()
        except StoreUnavailable:
            self._is_inspected = False  # another Redis may reply next
            raise
        if self._has_dropped_pool:
            self._has_dropped_pool = False
            self._feed.drop()

    async def _touch(self) -> None:
        """Accesses every key that spans games, and names of every other kind, without effect.

        A cluster or an ACL may deny some. Without the right to a game's channel, a commit would fail after its writes.
        """
        pipeline = self._client.pipeline(transaction=False)
        pipeline.set(PROBE, 1, px=PROBE_MS)
        pipeline.get(SECRET)
        pipeline.get(_pointer_key(""))
        lists = map(_list_key, (*_LISTS_BY_STATE, open_list("")))
        for key in (DEADLINES, *lists, *keys_of("")):
            pipeline.zrem(key, "")
        for channel in (_channel(""), _draft_channel(""), _presence_channel("")):
            pipeline.publish(channel, "")
        await pipeline.execute()

    async def _inspect(self) -> None:
        """Checks the deployment and logs a risk. Raises StoreUnavailable if the service cannot work with it."""
        async with self._converting_failures():
            obstacle, risk = await find_obstacle(self._client), await find_risk(self._client)
        if obstacle:
            raise StoreUnavailable(obstacle)
        self._is_inspected = True
        if risk:
            _log.warning("store may lose turns", problem=risk)

    async def close(self) -> None:
        """See GameStore."""
        await self._feed.close()
        await self._connection.close()
        await self._client.aclose()


async def obstacle_at(url: str) -> str:
    """Returns why the service cannot work with the Redis at a URL, and the remedy; "" if it can, or Redis is down."""
    async with connect(url) as client:
        try:
            return await find_obstacle(client)
        except FAILURES:
            return ""


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
    values = dict(zip(fields[::2], fields[1::2], strict=True))
    return decode_entry(decompress(values.get(b"change", b"")), values.get(b"etag", b"").decode(errors="replace"))


def _in_parts(items: Sequence[_T], most: int) -> Iterator[Sequence[_T]]:
    """Yields the items in parts of at most `most`."""
    for start in range(0, len(items), most):
        yield items[start : start + most]
