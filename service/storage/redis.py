"""The store on Redis 7, Valkey, or what speaks like them.

All keys of a game share a hash tag, so that a game lives in one slot of a cluster; the scripts touch one game's keys
only. What concerns many games (the lists by state, the deadlines) stands apart and is never needed for a turn: it may
lag and is mended. Client retries are off, as a resent script could be applied twice; who retries is games.py, with the
request id.

Loads and commits, which every call on a game needs, and what puts a game on the lists go over one held connection
(wire.py): taking one from redis-py's pool costs more than the round trip. Games are remembered (recollection.py), so
that bytes are read once, and a turn can be decided without a load.
"""

import asyncio
import contextlib
import re
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha1
from importlib.resources import files
from typing import Any, Final, ParamSpec, TypeVar

import redis.asyncio as redis
import structlog
from redis import exceptions
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from service.errors import StoredFormatUnknown, StoreFull, StoreUnavailable
from service.storage.base import (
    CLAIM_MS,
    MEMOS_A_SENDER,
    SECRET_BYTES,
    STATES,
    Commit,
    Committed,
    Conflict,
    Due,
    Entry,
    Lifetimes,
    Loaded,
    Outcome,
    Record,
    State,
    Subscription,
)
from service.storage.game_cache import Recollection
from service.storage.redis_connection import Wire
from service.storage.redis_deployment import find_obstacle, find_risk
from service.storage.snapshot import (
    compressed,
    decode_entry,
    decode_memo,
    decompressed,
    encode_memo,
    encode_record,
    readable_record,
)

_log = structlog.get_logger()
_P = ParamSpec("_P")
_T = TypeVar("_T")

CONNECT_SECONDS: Final = 1.0
"""How long a connection may take."""
ANSWER_SECONDS: Final = 1.0
"""How long an answer may take."""
CONNECTIONS: Final = 64
"""Most connections a server process holds."""
PROBE_MS: Final = 60_000
"""How long the key of a health check is kept."""
LISTED_AT_ONCE: Final = 20
"""How many games of a list are read in one turn of the event loop: 1 to 2 ms."""
RESERVE: Final = 0.1
"""The part of Redis's maxmemory that is kept for games that exist."""
MEMOS_OF_FINISHED_MS: Final = 3_600_000
"""How long the memos of a game that has ended are kept."""
ORPHAN_MS: Final = 3_600_000
"""How long a list may name a game that is not stored: a creation names it first, and may be retried."""

SECRET: Final = "rummikub:secret"  # noqa: S105 - where it is kept
PROBE: Final = "rummikub:probe"
DEADLINES: Final = "rummikub:deadlines"

_MEMBER: Final = re.compile(rb"\d{15}:[0-9a-f]{32}")
"""The form of a game in a list; what is not of it was written by others."""

FAILURES: Final = (exceptions.RedisError, OSError, TimeoutError)
"""What is raised where the store does not answer, or not what it should."""


_Stream = Sequence[tuple[bytes, Sequence[bytes]]]
"""What Redis answers to XRANGE: ids, and fields with their values."""


def keys_of(game_id: str) -> list[str]:
    """A game's keys: snapshot, requests, event stream."""
    return [f"rummikub:{{{game_id}}}:{part}" for part in ("game", "requests", "events")]


def _channel(game_id: str) -> str:
    return f"rummikub:{{{game_id}}}:changed"


def _list_key(state: State) -> str:
    return f"rummikub:games:{state.value}"


def _list_member(record: Record) -> str:
    """A game in a list: by time of creation, then by id."""
    return f"{record.created_ms:015d}:{record.game_id}"


def connect(url: str) -> "redis.Redis":
    """A client for a URL (redis://, rediss://, unix://) with short time-outs and without retries."""
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=CONNECTIONS,
        timeout=ANSWER_SECONDS,
        socket_timeout=ANSWER_SECONDS,
        socket_connect_timeout=CONNECT_SECONDS,
        retry=Retry(NoBackoff(), 0),
        retry_on_error=[],
        health_check_interval=0,
    )
    return redis.Redis.from_pool(pool)


@dataclass(frozen=True, slots=True)
class _Script:
    """A Lua script, and the digest by which Redis knows it."""

    text: str
    sha: str

    @classmethod
    def read(cls, name: str) -> "_Script":
        """A script of this package."""
        text = (files("service.storage") / "scripts" / name).read_text()
        return cls(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


class RedisStore:
    """GameStore on a Redis client.

    Args:
        client: From `connect`.
        lifetimes: How long games are kept after their last change.
        history: How many changes of a game are kept for watchers and history.
        clock: Milliseconds since 1970, in place of the server's clock; for tests.
    """

    def __init__(
        self, client: "redis.Redis", lifetimes: Lifetimes, history: int, clock: Callable[[], int] | None = None
    ) -> None:
        self._client = client
        self._lifetimes = lifetimes
        self._history = history
        self._clock = clock
        self._load, self._commit = _Script.read("load.lua"), _Script.read("commit.lua")
        self._claim = client.register_script(_Script.read("claim.lua").text)
        self._rearm = client.register_script(_Script.read("rearm.lua").text)
        self._wire = Wire(client.connection_pool.make_connection, ANSWER_SECONDS)
        self._recollection = Recollection(clock)
        self._secret = secrets.token_bytes(SECRET_BYTES)
        self._feed = _Feed(client.connection_pool.make_connection)
        self._has_left = False
        self._listing = asyncio.Lock()
        self._is_inspected = False

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        """See GameStore."""
        seconds, micros, snapshot, memo = await self._run(self._load, keys_of(game_id)[:2], (request_key,))
        now_ms = self._now_ms(int(seconds), int(micros))
        self._recollection.saw_time(now_ms)
        record = _read(game_id, self._recollection.read, game_id, snapshot)
        return Loaded(now_ms, record, _read(game_id, decode_memo, memo) if memo else None)

    def recall(self, game_id: str) -> Loaded | None:
        """See GameStore."""
        return self._recollection.recall(game_id)

    async def _run(self, script: "_Script", keys: Sequence[str], arguments: Sequence[str | int | bytes]) -> Any:  # noqa: ANN401 - whatever a script answers
        """What a script answers. A Redis that does not have it says so, and has done nothing: then it gets the text."""
        try:
            return await self._wire.ask("EVALSHA", script.sha, len(keys), *keys, *arguments)
        except FAILURES as error:
            if not str(error).startswith("NOSCRIPT"):
                raise await self._unavailable(error) from error
        async with self._answering():
            return await self._wire.ask("EVAL", script.text, len(keys), *keys, *arguments)

    @contextlib.asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        """Turns every failure of the store into StoreUnavailable."""
        held = self._wire.held
        try:
            yield
        except FAILURES as error:
            if isinstance(error, exceptions.ReadOnlyError):
                self._wire.leave(held)  # and not one that was made since, as an answer may come late
            raise await self._unavailable(error) from error

    async def _unavailable(self, error: Exception) -> StoreUnavailable:
        """What a failure is for callers, who are not told more; the log says which it was.

        That the store does not answer at all is logged by who checks its health, once, not by every call.
        """
        text = f"{type(error).__name__}: {str(error)[:200]}"
        is_away = isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError | OSError)
        (_log.debug if is_away else _log.warning)("store", error=text)
        if isinstance(error, exceptions.ReadOnlyError):
            await self._leave_pool()
        return StoreUnavailable(text)

    async def _leave_pool(self) -> None:
        """Gives up the connections to a Redis that has become a replica: its address may lead to the new primary.

        It would keep them open, and refuse every write for ever. The watchers' stays until there is one that takes
        writes (`ping`): so long, a replica tells of changes too.
        """
        self._has_left = True
        pool = self._client.connection_pool
        await pool.update_active_connections_for_reconnect()  # type: ignore[no-untyped-call]
        with contextlib.suppress(*FAILURES):
            await pool.disconnect(inuse_connections=False)

    def _now_ms(self, seconds: int, micros: int) -> int:
        return self._clock() if self._clock else seconds * 1000 + micros // 1000

    async def commit(self, commit: Commit) -> Outcome:
        """See GameStore."""
        record, snapshot = commit.record, encode_record(commit.record)
        kept_ms = self._lifetimes.milliseconds(record.state)
        memos_ms = min(kept_ms, MEMOS_OF_FINISHED_MS) if record.state is State.FINISHED else kept_ms
        arguments = (
            commit.previous_etag,
            record.game.revision,
            record.etag,
            snapshot,
            compressed(commit.change),
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
        self._recollection.saw_time(now_ms)
        if kind == b"committed":
            self._recollection.keep(snapshot, record)
            return Committed()
        self._recollection.forget(record.game_id)
        return _read(record.game_id, decode_memo, memo[0]) if kind == b"replay" else Conflict()

    async def events(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        """See GameStore."""
        stream = keys_of(game_id)[2]
        async with self._answering():
            stored: _Stream = await self._wire.ask("XRANGE", stream, f"{first_revision}-0", "+", "COUNT", limit)
        return tuple(_read(game_id, _entry, fields) for _, fields in stored)

    async def bounds(self, game_id: str) -> tuple[int, int]:
        """See GameStore."""
        stream = keys_of(game_id)[2]
        async with self._answering():
            oldest: _Stream = await self._wire.ask("XRANGE", stream, "-", "+", "COUNT", 1)
            newest: _Stream = await self._wire.ask("XREVRANGE", stream, "+", "-", "COUNT", 1)
        return _revision(oldest), _revision(newest)

    def changes(self, game_id: str) -> contextlib.AbstractAsyncContextManager[Subscription]:
        """See GameStore."""
        return self._feed.subscribe(_channel(game_id))

    async def secret(self) -> bytes:
        """See GameStore. It is asked each time: the store may have lost it, and have got another one since."""
        async with self._answering():
            kept = await self._client.get(SECRET) or await self._client.set(SECRET, self._secret, nx=True, get=True)
        if isinstance(kept, bytes):
            self._secret = kept
        return self._secret

    async def check_room(self) -> None:
        """See GameStore. Without maxmemory there is no bound that we know of."""
        async with self._answering():
            memory = await self._client.info("memory")
        most = memory.get("maxmemory", 0)
        used = memory.get("used_memory", 0) - memory.get("mem_not_counted_for_evict", 0)
        if most and used > most * (1 - RESERVE):
            raise StoreFull

    async def index(self, record: Record) -> None:
        """See GameStore."""
        member = _list_member(record)
        others = [state for state in State if state is not record.state]
        async with self._answering():
            await self._wire.ask("ZADD", _list_key(record.state), 0, member)  # first: a list never lacks a game
            await asyncio.gather(*(self._wire.ask("ZREM", _list_key(state), member) for state in others))

    async def page(self, state: State, cursor: str, limit: int) -> tuple[tuple[Record, ...], str]:
        """See GameStore."""
        async with self._answering():
            start = f"({cursor}" if cursor else "+"
            found = await self._wire.ask("ZREVRANGEBYLEX", _list_key(state), start, "-", "LIMIT", 0, limit)
            seconds, micros = await self._wire.ask("TIME")
        foreign = [member for member in found if not _MEMBER.fullmatch(member)]
        members = [member.decode() for member in found if member not in foreign]
        now_ms = self._now_ms(int(seconds), int(micros))
        records: list[Record] = []
        moved: list[Record] = []
        gone: list[str | bytes] = [*foreign]
        for some in _in_parts(members, LISTED_AT_ONCE):
            for member, snapshot, record in await self._listed(some):
                own_member = _list_member(record) if record else member
                if member != own_member:
                    gone.append(member)  # of an attempt at the creation that came to nothing
                if record and (record.state is not state or member != own_member):
                    moved.append(record)
                elif record:
                    records.append(record)
                elif not snapshot and now_ms - int(member.partition(":")[0]) > ORPHAN_MS:
                    gone.append(member)
        with contextlib.suppress(StoreUnavailable):  # a store that takes no writes is still read
            await self._mend(state, moved, gone)
        return tuple(records), members[-1] if members and len(found) == limit else ""

    async def _mend(self, state: State, moved: Sequence[Record], gone: Sequence[str | bytes]) -> None:
        """Puts games that have changed state on their lists, and takes what is gone off the list of a state."""
        for record in moved:
            await self.index(record)
        if gone:
            async with self._answering():
                await self._wire.ask("ZREM", _list_key(state), *gone)

    async def _listed(self, members: Sequence[str]) -> list[tuple[str, bytes | None, Record | None]]:
        """Returns some members of a list with what is stored of their games, and the games that can be read.

        Reading a hundred games takes some 10 ms. All lists together read a few in one turn of the event loop.
        """
        async with self._answering():
            snapshots = await asyncio.gather(
                *(self._wire.ask("HGET", keys_of(_game_id(member))[0], "snapshot") for member in members)
            )
        async with self._listing:
            await asyncio.sleep(0)
            return [
                (member, snapshot, readable_record(snapshot))
                for member, snapshot in zip(members, snapshots, strict=True)
            ]

    async def count(self) -> dict[State, int]:
        """See GameStore."""
        async with self._answering():
            pipeline = self._client.pipeline(transaction=False)
            for state in STATES.values():
                pipeline.zcard(_list_key(state))
            return dict(zip(STATES.values(), await pipeline.execute(), strict=True))

    async def arm(self, game_id: str, at_ms: int) -> None:
        """See GameStore."""
        async with self._answering():
            await self._client.zadd(DEADLINES, {game_id: at_ms})

    async def rearm(self, due: Due, at_ms: int | None) -> None:
        """See GameStore."""
        async with self._answering():
            arguments: list[str | int] = [due.game_id, due.claimed_ms, "" if at_ms is None else at_ms]
            await self._rearm(keys=[DEADLINES], args=arguments)

    async def claim(self, limit: int, skip: Collection[str] = ()) -> Sequence[Due]:
        """See GameStore."""
        async with self._answering():
            arguments = [limit, self._clock() if self._clock else "", CLAIM_MS, *skip]
            found = await self._claim(keys=[DEADLINES], args=arguments)
        claims = zip(found[::3], found[1::3], found[2::3], strict=True)
        return [Due(game_id.decode(), int(at_ms), int(claimed_ms)) for game_id, at_ms, claimed_ms in claims]

    async def ping(self) -> None:
        """See GameStore. Writes, because a store that is full, or a replica by now, answers reads."""
        if not self._is_inspected:
            await self._inspect()
        try:
            async with self._answering():
                await self._touch()
        except StoreUnavailable:
            self._is_inspected = False  # another Redis may answer next
            raise
        if self._has_left:
            self._has_left = False
            self._feed.leave()

    async def _touch(self) -> None:
        """Uses every key that is no game's, without an effect: in a cluster, or by an ACL, some may be out of reach."""
        pipeline = self._client.pipeline(transaction=False)
        pipeline.set(PROBE, 1, px=PROBE_MS)
        pipeline.get(SECRET)
        for key in (DEADLINES, *map(_list_key, State)):
            pipeline.zrem(key, "")
        await pipeline.execute()

    async def _inspect(self) -> None:
        """Looks at how the Redis is deployed, and logs a risk. Raises StoreUnavailable if it is of no use."""
        async with self._answering():
            obstacle, risk = await find_obstacle(self._client), await find_risk(self._client)
        if obstacle:
            raise StoreUnavailable(obstacle)
        self._is_inspected = True
        if risk:
            _log.warning("store may lose turns", problem=risk)

    async def close(self) -> None:
        """See GameStore."""
        await self._feed.close()
        await self._wire.close()
        await self._client.aclose()


async def obstacle_at(url: str) -> str:
    """Returns why the service cannot work on the Redis of a URL, and what to do; "" if it can, or if that is away."""
    async with connect(url) as client:
        try:
            return await find_obstacle(client)
        except FAILURES:
            return ""


def _revision(entries: "_Stream") -> int:
    return int(entries[0][0].partition(b"-")[0]) if entries else 0


def _read(game_id: str, read: Callable[_P, _T], *stored: _P.args, **options: _P.kwargs) -> _T:
    """What stored bytes of a game say. The log tells which game cannot be read, and nothing of what is stored of it."""
    try:
        return read(*stored, **options)
    except StoredFormatUnknown:
        _log.warning("store", error="cannot be read", game_id=game_id)
        raise


def _entry(fields: Sequence[bytes]) -> Entry:
    """Returns an entry of a stream from its fields, names and values in turn. Raises StoredFormatUnknown."""
    values = dict(zip(fields[::2], fields[1::2], strict=True))
    return decode_entry(decompressed(values.get(b"change", b"")), values.get(b"etag", b"").decode(errors="replace"))


def _in_parts(items: Sequence[_T], most: int) -> Iterator[Sequence[_T]]:
    """Yields the items in parts of so many at most."""
    for start in range(0, len(items), most):
        yield items[start : start + most]


def _game_id(member: str) -> str:
    return member.partition(":")[2]


class _Feed:
    """One connection that hears of changed games for all watchers of this process.

    A message is only a hint to look. Watchers are also told to look when their channel is subscribed, first or anew, so
    that nothing is missed before that. Only the feed's own tasks use the connection: a watcher says what it wants to
    hear of, and may be cancelled at any time without harm to the others.

    A lost connection is given up whole and another one made. (redis-py's PubSub makes its own anew, and makes two where
    one task writes while another reads: one of them would stay open, with nobody to close it.)
    """

    def __init__(self, make: Callable[[], AbstractConnection]) -> None:
        self._make = make
        self._subscriptions: defaultdict[str, set[Subscription]] = defaultdict(set)
        self._wanted = asyncio.Event()
        self._is_closed = False
        self._is_left = False
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[Subscription]:
        subscription = Subscription()
        self._subscriptions[channel].add(subscription)
        self._wanted.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="redis-feed")
        try:
            yield subscription
        finally:
            self._subscriptions[channel].discard(subscription)
            if not self._subscriptions[channel]:
                del self._subscriptions[channel]
                self._wanted.set()

    async def _run(self) -> None:
        """Listens, and connects anew when the connection is lost or left, as long as the process serves."""
        while not self._is_closed:
            self._is_left = False
            try:
                async with self._connected() as connection:
                    await self._listen(connection)
            except Exception as error:  # noqa: BLE001 - whatever a lost connection leads to, there has to be a new one
                _log.warning("feed", result="connection lost", error=type(error).__name__)
                await asyncio.sleep(CONNECT_SECONDS / 2)

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[AbstractConnection]:
        connection = self._make()
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            yield connection
        finally:
            await connection.disconnect(nowait=True)

    async def _listen(self, connection: AbstractConnection) -> None:
        """Follows what is wanted and hears what arrives, until the connection is lost or the feed is closed."""
        hearing = asyncio.create_task(self._hear(connection))
        hearing.add_done_callback(lambda _: self._wanted.set())
        try:
            await self._follow(connection, hearing)
        finally:
            hearing.cancel()
            await asyncio.wait([hearing])
        if not hearing.cancelled():
            hearing.result()

    async def _follow(self, connection: AbstractConnection, hearing: asyncio.Task[None]) -> None:
        """Subscribes to what comes to be watched, unsubscribes from what is watched no more; asks for a sign of life.

        A cancelled task is not enough to end this: redis-py writes under asyncio.wait_for, which may swallow it.
        """
        loop = asyncio.get_running_loop()
        next_ping = loop.time() + ANSWER_SECONDS
        subscribed: set[str] = set()
        while not (hearing.done() or self._is_left or self._is_closed):
            self._wanted.clear()
            wanted = set(self._subscriptions)
            if wanted - subscribed:
                await connection.send_command("SUBSCRIBE", *(wanted - subscribed))
            if subscribed - wanted:
                await connection.send_command("UNSUBSCRIBE", *(subscribed - wanted))
            subscribed = wanted
            if loop.time() >= next_ping:
                await connection.send_command("PING")
                next_ping = loop.time() + ANSWER_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(next_ping):
                    await self._wanted.wait()

    async def _hear(self, connection: AbstractConnection) -> None:
        """Tells watchers what arrives. A connection without even a sign of life is given up."""
        while not self._is_closed:
            heard = await connection.read_response(
                timeout=2 * ANSWER_SECONDS, disconnect_on_error=False, push_request=True
            )
            if heard is None:
                raise exceptions.TimeoutError
            if heard[0] in {b"message", b"subscribe"}:  # a PONG begins with another
                self._wake(heard[1].decode())

    def leave(self) -> None:
        """Gives the connection up for another one."""
        self._is_left = True
        self._wanted.set()

    def _wake(self, channel: str) -> None:
        for subscription in self._subscriptions.get(channel, ()):
            subscription.notify()

    async def close(self) -> None:
        self._is_closed = True
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
