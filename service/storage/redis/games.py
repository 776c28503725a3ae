"""Games in Redis: the snapshot, the event stream and the memos of a game, which one script commits.

Games are cached (game_cache.py), so their bytes are decoded once, and a turn can be decided without a load.
"""

from collections.abc import Sequence
from typing import Any, Final

from service.model.change import MEMOS_A_SENDER, Commit, Committed, Conflict, Loaded, Outcome
from service.model.change_log import LogKind
from service.model.record import Lifetimes, Record, code_name
from service.storage.game_cache import GameCache
from service.storage.redis.change_log import RedisChangeLog
from service.storage.redis.deadlines import RedisDeadlines
from service.storage.redis.keys import changes_channel, keys_of, pointer_key
from service.storage.redis.lists import RedisLists
from service.storage.redis.nodes import Nodes, Script, StoreTime
from service.storage.redis.streams import read_stored
from service.storage.snapshot import decode_memo, encode_memo, encode_record
from service.storage.stored_events import compress
from service.storage.timing import timed

MEMOS_OF_FINISHED_MS: Final = 3_600_000
"""How long the memos of a game that is over are kept."""


class RedisGames:
    """StoredGames in Redis.

    Args:
        nodes: The Redis servers.
        time: The clock of the store.
        cache: The games that this process has seen.
        lifetimes: How long games are kept after their last change.
        history: How many changes of a game are kept for watchers and history.
        beside: The parts that have something of each game.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        nodes: Nodes,
        time: StoreTime,
        cache: GameCache,
        lifetimes: Lifetimes,
        history: int,
        beside: tuple[RedisLists, RedisDeadlines, RedisChangeLog],
    ) -> None:
        self.reports = nodes.reports
        self._nodes = nodes
        self._time = time
        self._cache = cache
        self._lifetimes = lifetimes
        self._history = history
        self._lists, self._deadlines, self._log = beside
        self.cached = cache.get
        self._load, self._commit, self._shorten, self._rewrite = (
            Script.read(f"{name}.lua", nodes.publish) for name in ("load", "commit", "shorten", "rewrite")
        )

    @timed("load")
    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        keys = keys_of(game_id)[:2]
        seconds, micros, snapshot, memo = await self._nodes.run(self._load, keys, (request_key,), _has_memo)
        now_ms = self._time.milliseconds(seconds, micros)
        self._cache.set_time(now_ms)
        record = read_stored(game_id, self._cache.decode, game_id, snapshot)
        return Loaded(now_ms, record, read_stored(game_id, decode_memo, memo) if memo else None)

    @timed("commit")
    async def commit(self, commit: Commit) -> Outcome:
        record, snapshot = commit.record, encode_record(commit.record)
        is_logged = commit.change and self._log.kept_ms
        until_ms = await self._announce(record, LogKind.CHANGED) if is_logged else None
        if until_ms is None or (commit.until_ms is not None and commit.until_ms < until_ms):
            until_ms = commit.until_ms
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
            "" if until_ms is None else until_ms,
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
        return read_stored(record.game_id, decode_memo, memo[0]) if kind == b"replay" else Conflict()

    @timed("delete")
    async def delete(self, game_id: str, record: Record | None = None) -> None:
        """An entry in the change log that is followed by no deletion is dropped by its readers."""
        await self._log.announce(game_id, LogKind.DELETED, self._cache.now_ms())
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
        return await self._log.announce(record.game_id, kind, self._cache.now_ms(), record)

    @timed("rewrite")
    async def rewrite(self, previous_etag: str, record: Record, stream: Sequence[tuple[bytes, str]]) -> Outcome:
        snapshot, first_revision = encode_record(record), record.game.revision - len(stream) + 1
        changes = (part for change, etag in stream for part in (compress(change), etag))
        channel = changes_channel(record.game_id)
        arguments = (previous_etag, record.etag, snapshot, channel, first_revision, *changes)
        await self._announce(record, LogKind.REWRITTEN)
        is_done = await self._nodes.run(self._rewrite, keys_of(record.game_id)[:3], arguments, bool)
        self._cache.evict(record.game_id)
        return Committed() if is_done else Conflict()

    @timed("shorten")
    async def shorten(self, record: Record, kept_ms: int) -> bool:
        return bool(await self._nodes.run(self._shorten, keys_of(record.game_id), (record.etag, kept_ms)))


def _is_no_conflict(reply: Sequence[Any]) -> bool:
    """Returns whether a commit was stored, now or before."""
    return bool(reply[0] != b"conflict")


def _has_memo(reply: Sequence[Any]) -> bool:
    """Returns whether a load found the memo of a request, whose answer may be sent."""
    return bool(reply[3] is not None)
