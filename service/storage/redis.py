"""The store on Redis 7, Valkey, or what speaks like them.

All keys of a game share a hash tag, so that a game lives in one slot of a cluster; the scripts touch one game's keys
only. What concerns many games (the lists by state, the deadlines) stands apart and is never needed for a turn: it may
lag and is mended. Client retries are off, as a resent script could be applied twice; who retries is games.py, with the
request id.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from importlib.resources import files
from typing import Any, Final, cast

import redis.asyncio as redis
from redis import exceptions
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from service.faults import StoreUnavailable
from service.storage.base import (
    STATES,
    Commit,
    Committed,
    Conflict,
    Entry,
    Loaded,
    Outcome,
    Record,
    State,
    Subscription,
)
from service.storage.snapshot import decode_entry, decode_memo, decode_record, encode_memo, encode_record

CONNECT_SECONDS: Final = 1.0
"""How long a connection may take."""
ANSWER_SECONDS: Final = 1.0
"""How long an answer may take."""
CONNECTIONS: Final = 64
"""Most connections a server process holds."""
ORPHAN_MS: Final = 3_600_000
"""How long a list may name a game that is not stored: a creation names it first, and may be retried."""

KEEP_ALIVE: Final = "rummikub:feed"
"""A channel that nobody writes to: a subscriber's connection needs one."""
DEADLINES: Final = "rummikub:deadlines"


_Stream = list[tuple[bytes, dict[bytes, bytes]]]
"""What redis-py answers to XRANGE."""


def _keys(game_id: str) -> list[str]:
    """A game's keys: snapshot, requests, event stream."""
    return [f"rummikub:{{{game_id}}}:{part}" for part in ("game", "requests", "events")]


def _channel(game_id: str) -> str:
    return f"rummikub:{{{game_id}}}:changed"


def _list_key(state: State) -> str:
    return f"rummikub:games:{state.value}"


def _list_member(record: Record) -> str:
    """A game in a list: by time of creation, then by id."""
    return f"{record.created_ms:015d}:{record.game_id}"


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    """Turns every failure of the store into StoreUnavailable."""
    try:
        yield
    except (exceptions.RedisError, OSError, TimeoutError) as error:
        raise StoreUnavailable(type(error).__name__) from error


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


class RedisStore:
    """GameStore on a Redis client.

    Args:
        client: From `connect`.
        ttl_ms: How long a game is kept after its last change.
        history: How many changes of a game are kept for watchers and history.
        clock: Milliseconds since 1970, in place of the server's clock; for tests.
    """

    def __init__(
        self, client: "redis.Redis", ttl_ms: int, history: int, clock: Callable[[], int] | None = None
    ) -> None:
        self._client = client
        self._ttl_ms = ttl_ms
        self._history = history
        self._clock = clock
        scripts = files("service.storage")
        self._load = client.register_script((scripts / "load.lua").read_text())
        self._commit = client.register_script((scripts / "commit.lua").read_text())
        self._due = client.register_script((scripts / "due.lua").read_text())
        self._feed = _Feed(client)

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        """See GameStore."""
        with _answering():
            seconds, micros, snapshot, memo = await self._load(keys=_keys(game_id)[:2], args=[request_key])
        return Loaded(
            now_ms=self._clock() if self._clock else int(seconds) * 1000 + int(micros) // 1000,
            record=decode_record(snapshot) if snapshot else None,
            memo=decode_memo(memo) if memo else None,
        )

    async def commit(self, commit: Commit) -> Outcome:
        """See GameStore."""
        record = commit.record
        arguments: list[str | int | bytes] = [
            commit.previous_etag,
            record.game.revision,
            record.etag,
            encode_record(record),
            commit.change,
            commit.request_key,
            encode_memo(commit.memo) if commit.memo else b"",
            self._ttl_ms,
            self._history,
            _channel(record.game_id),
        ]
        with _answering():
            kind, *rest = await self._commit(keys=_keys(record.game_id), args=arguments)
        if kind == b"replay":
            return decode_memo(rest[0])
        return Committed() if kind == b"committed" else Conflict()

    async def events(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        """See GameStore."""
        with _answering():
            stored = await self._client.xrange(_keys(game_id)[2], min=f"{first_revision}-0", count=limit)
        return tuple(decode_entry(fields[b"change"], fields[b"etag"].decode()) for _, fields in cast("_Stream", stored))

    async def bounds(self, game_id: str) -> tuple[int, int]:
        """See GameStore."""
        stream = _keys(game_id)[2]
        with _answering():
            oldest = await self._client.xrange(stream, count=1)
            newest = await self._client.xrevrange(stream, count=1)
        return _revision(oldest), _revision(newest)

    def changes(self, game_id: str) -> contextlib.AbstractAsyncContextManager[Subscription]:
        """See GameStore."""
        return self._feed.subscribe(_channel(game_id))

    async def reserve(self, request_key: str, game_id: str) -> str:
        """See GameStore."""
        with _answering():
            earlier = await self._client.set(
                f"rummikub:creation:{request_key}", game_id, nx=True, get=True, px=self._ttl_ms
            )
        return earlier.decode() if isinstance(earlier, bytes) else game_id

    async def index(self, record: Record) -> None:
        """See GameStore."""
        member = _list_member(record)
        with _answering():
            pipeline = self._client.pipeline(transaction=False)
            pipeline.zadd(_list_key(record.state), {member: 0})
            for state in State:
                if state is not record.state:
                    pipeline.zrem(_list_key(state), member)
            await pipeline.execute()

    async def page(self, state: State, cursor: str, limit: int) -> tuple[tuple[Record, ...], str]:
        """See GameStore."""
        with _answering():
            found = await self._client.zrevrangebylex(
                _list_key(state), f"({cursor}" if cursor else "+", "-", start=0, num=limit
            )
            members = [member.decode() for member in cast("list[bytes]", found)]
            pipeline = self._client.pipeline(transaction=False)
            for member in members:
                pipeline.hget(_keys(_game_id(member))[0], "snapshot")
            snapshots = await pipeline.execute() if members else []
            seconds, micros = await self._client.time()
        now_ms = seconds * 1000 + micros // 1000
        records = []
        for member, snapshot in zip(members, snapshots, strict=True):
            record = decode_record(snapshot) if snapshot else None
            if record and record.state is state:
                records.append(record)
            else:
                await self._mend(state, member, record, now_ms)
        return tuple(records), members[-1] if len(members) == limit else ""

    async def _mend(self, state: State, member: str, record: Record | None, now_ms: int) -> None:
        """Corrects a list that names an expired game, or one that has left the state."""
        if record:
            await self.index(record)
        elif now_ms - int(member.partition(":")[0]) > ORPHAN_MS:
            with _answering():
                await self._client.zrem(_list_key(state), member)

    async def count(self) -> dict[State, int]:
        """See GameStore."""
        with _answering():
            pipeline = self._client.pipeline(transaction=False)
            for state in STATES.values():
                pipeline.zcard(_list_key(state))
            return dict(zip(STATES.values(), await pipeline.execute(), strict=True))

    async def arm(self, game_id: str, at_ms: int) -> None:
        """See GameStore."""
        with _answering():
            await self._client.zadd(DEADLINES, {game_id: at_ms}, lt=True)

    async def rearm(self, game_id: str, at_ms: int | None) -> None:
        """See GameStore."""
        with _answering():
            if at_ms is None:
                await self._client.zrem(DEADLINES, game_id)
            else:
                await self._client.zadd(DEADLINES, {game_id: at_ms}, xx=True)

    async def due(self, limit: int) -> Sequence[str]:
        """See GameStore."""
        with _answering():
            found = await self._due(keys=[DEADLINES], args=[limit, self._clock() if self._clock else ""])
        return [game_id.decode() for game_id in found]

    async def ping(self) -> None:
        """See GameStore."""
        with _answering():
            await cast("Awaitable[Any]", self._client.ping())

    async def close(self) -> None:
        """See GameStore."""
        await self._feed.close()
        await self._client.aclose()


def _revision(entries: Any) -> int:  # noqa: ANN401 - redis-py's stream replies have no type
    return int(entries[0][0].partition(b"-")[0]) if entries else 0


def _game_id(member: str) -> str:
    return member.partition(":")[2]


class _Feed:
    """One connection that hears of changed games for all watchers of this process.

    A message is only a hint to look. Watchers are also told to look when their channel is subscribed, first or anew, so
    that nothing is missed before that.
    """

    def __init__(self, client: "redis.Redis") -> None:
        self._client = client
        self._subscriptions: defaultdict[str, set[Subscription]] = defaultdict(set)
        self._pubsub: PubSub | None = None
        self._reader: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[Subscription]:
        subscription = Subscription()
        is_first = channel not in self._subscriptions
        self._subscriptions[channel].add(subscription)
        if self._reader is None:
            self._reader = asyncio.create_task(self._read(), name="redis-feed")
        try:
            if is_first and self._pubsub:
                with contextlib.suppress(exceptions.RedisError, OSError):  # the reader connects anew
                    await self._pubsub.subscribe(channel)
            yield subscription
        finally:
            self._subscriptions[channel].discard(subscription)
            if not self._subscriptions[channel]:
                del self._subscriptions[channel]
                if self._pubsub:
                    with contextlib.suppress(exceptions.RedisError, OSError):  # the reader connects anew
                        await self._pubsub.unsubscribe(channel)

    async def _read(self) -> None:
        """Listens, and connects anew when the connection is lost, as long as the process serves."""
        while True:
            try:
                async with self._client.pubsub() as pubsub:
                    await self._subscribe_all(pubsub)
                    self._pubsub = pubsub
                    while True:
                        message = await pubsub.get_message(timeout=ANSWER_SECONDS)
                        if message and message["type"] in {"message", "subscribe"}:
                            self._wake(message["channel"].decode())
            except (exceptions.RedisError, OSError):
                await asyncio.sleep(CONNECT_SECONDS / 2)
            finally:
                self._pubsub = None

    async def _subscribe_all(self, pubsub: PubSub) -> None:
        """Subscribes to what is watched, and to what comes to be watched meanwhile."""
        subscribed: set[str] = set()
        wanted = {KEEP_ALIVE}
        while wanted:
            await pubsub.subscribe(*wanted)
            subscribed |= wanted
            wanted = set(self._subscriptions) - subscribed

    def _wake(self, channel: str) -> None:
        for subscription in self._subscriptions.get(channel, ()):
            subscription.notify()

    async def close(self) -> None:
        if self._reader:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
