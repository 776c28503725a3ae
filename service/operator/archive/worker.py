"""Writes games that have ended to the archive.

Every server runs one, without a leader. An entry in the outbox precedes the commit that ends a game, so it may name a
game whose end was not stored. The worker acknowledges an entry only after the game has been written. An entry that is
not acknowledged is claimed again, so a game is archived at least once, whichever servers die.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

import structlog

from service.errors import StoreUnavailable
from service.metrics.metrics import Metrics
from service.model.outbox import OUTBOX_MARGIN_MS, OutboxEntry
from service.operator.archive.archived_game import LineageBroken, collect
from service.operator.archive.sink import Sink, SinkUnavailable, WriteResult
from service.runtime.cancellation import is_task_cancelled
from service.storage.store import Store

BATCH: Final = 16
"""Entries that are claimed, and written concurrently."""
CLAIM_MS: Final = 10_000
"""How long a claim lasts. Then another worker claims an entry that is not acknowledged."""
WRITE_SECONDS: Final = 5.0
"""Timeout of a write."""
POLL_SECONDS: Final = 1.0
"""The shortest pause after the outbox was empty."""
CLAIMS_A_SECOND: Final = 2.0
"""Most claims a second from an empty outbox, each with a command for its size. A round claims from each server."""
LONGEST_PAUSE_SECONDS: Final = 30.0
"""The longest pause while the sink fails; the first one is POLL_SECONDS, and each next one is twice as long."""
WRITES_A_GAME: Final = 3
"""How often a game is written that changes meanwhile, before it is left for the next claim."""
LONGEST_GAME_PAUSE_SECONDS: Final = 1_800.0
"""The longest pause of a game that cannot be archived; the first one is a claim, and each next one twice as long."""
PAUSES_MAX: Final = 1_000
"""Most games whose pauses are known. Others are tried, and logged, at each claim."""

_log = structlog.get_logger()


class Result(Enum):
    """The result for an entry. The values are labels of rummikub_archived_games_total."""

    ARCHIVED = "archived"
    NOT_ENDED = "not_ended"
    DELETED = "deleted"
    ID_TAKEN = "id_taken"
    DAMAGED = "damaged"
    FAILED = "failed"


_FINAL: Final = frozenset({Result.ARCHIVED, Result.NOT_ENDED, Result.DELETED, Result.ID_TAKEN})
"""The results after which an entry is acknowledged."""


@dataclass(frozen=True, slots=True)
class _Pause:
    """The pause of a game: how long it takes, and when it ends (ArchiveWorker's clock)."""

    seconds: float
    end: float


class ArchiveWorker:
    """Archives the games of a store's outbox.

    Args:
        store: The store.
        sink: Where games are written.
        kept_seconds: How long the store keeps a game that is archived.
        metrics: Counts archived games.
        stopping: Set when the server stops.
        clock: Returns seconds, for the pauses of games that cannot be archived.

    Attributes:
        write_seconds: How long a write may take.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        store: Store,
        sink: Sink,
        kept_seconds: int,
        metrics: Metrics,
        stopping: asyncio.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.write_seconds = WRITE_SECONDS
        self._store = store
        self._sink = sink
        self._kept_ms = kept_seconds * 1000
        self._metrics = metrics
        self._stopping = stopping
        self._clock = clock
        self._pauses: dict[str, _Pause] = {}
        """By game that cannot be archived."""
        self._failures = 0
        """Rounds in a row in which the sink failed."""
        self._has_sink_failed = False
        """Whether the sink has failed in this round."""
        self._has_reported = False
        """Whether the log has a failure since a game was archived."""

    async def run(self) -> None:
        """Archives games until the server stops."""
        while not self._stopping.is_set():
            pause = await self.paced_round()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def paced_round(self) -> float:
        """Archives what waits; returns the pause before the next round, in seconds.

        Only failures of the sink lengthen the pause. If unreadable games did, the pause would outlast their claims, and
        each round would claim the same ones again.
        """
        self._has_sink_failed = False
        try:
            results = await self.archive_batch()
            self._metrics.archive_backlog(await self._store.outbox.size())
        except StoreUnavailable:  # the health check reports it
            return POLL_SECONDS
        except (asyncio.CancelledError, Exception):  # a defect must not end the archive
            if is_task_cancelled():
                raise
            _log.exception("archive")
            return LONGEST_PAUSE_SECONDS
        if self._has_sink_failed and Result.ARCHIVED not in results:
            self._failures += 1
            return min(LONGEST_PAUSE_SECONDS, POLL_SECONDS * 2.0 ** (self._failures - 1))
        if Result.ARCHIVED in results:
            if self._failures:
                _log.warning("archive answers again", failed_rounds=self._failures)
            self._failures, self._has_reported = 0, False
        return 0.0 if len(results) == BATCH else max(POLL_SECONDS, self._store.outbox.servers / CLAIMS_A_SECOND)

    async def archive_batch(self) -> list[Result | None]:
        """Claims entries and archives their games; returns the result for each, None for one that is left for later."""
        entries = await self._store.outbox.claim(BATCH, CLAIM_MS)
        return await asyncio.gather(*map(self._counted, entries))

    async def _counted(self, entry: OutboxEntry) -> Result | None:
        pause = self._pauses.get(entry.game_id)
        if pause and self._clock() < pause.end:
            return None
        result = await self._handled(entry)
        if result:
            self._metrics.archived_game(result.value)
        if result in _FINAL:
            self._pauses.pop(entry.game_id, None)
        return result

    async def _handled(self, entry: OutboxEntry) -> Result | None:
        """Archives the game of an entry. An entry that fails is claimed again later."""
        try:
            result = await self._archived(entry)
            if result in _FINAL:
                await self._store.outbox.acknowledge(entry)
        except StoreUnavailable:
            return None
        except LineageBroken:
            self._pause(entry, _log.error, "its changes do not lead to it")
            return Result.DAMAGED
        except (SinkUnavailable, TimeoutError) as error:
            self._has_sink_failed = True
            self._log_failure(entry, error)
            return Result.FAILED
        except Exception as error:  # noqa: BLE001 - one bad game must not stop the others
            self._pause(entry, _log.warning, type(error).__name__)
            return Result.FAILED
        if result is Result.ID_TAKEN:
            _log.error("game cannot be archived", game_id=entry.game_id, error="the archive has another game of its id")
        return result

    def _pause(self, entry: OutboxEntry, log: Callable[..., None], error: str) -> None:
        """Leaves a game alone for a while: twice as long each time. Logs it the first time."""
        game_id = entry.game_id
        before = self._pauses.pop(game_id, None)
        if before is None:
            log("game cannot be archived", game_id=game_id, error=error)
        seconds = min(LONGEST_GAME_PAUSE_SECONDS, 2 * before.seconds if before else CLAIM_MS / 1000)
        self._pauses[game_id] = _Pause(seconds, self._clock() + seconds)
        if len(self._pauses) > PAUSES_MAX:
            del self._pauses[next(iter(self._pauses))]

    def _log_failure(self, entry: OutboxEntry, error: Exception) -> None:
        """Logs a failure of the sink; at debug level after the first one of an outage."""
        log: Callable[..., None] = _log.debug if self._has_reported else _log.warning
        self._has_reported = True
        reason = str(error) if isinstance(error, SinkUnavailable) else type(error).__name__
        log("archive does not answer", game_id=entry.game_id, error=reason)

    async def _archived(self, entry: OutboxEntry) -> Result | None:
        """Archives the game of an entry; returns None if its commit may follow, or the game changes all the time."""
        broken_etag = ""
        for _ in range(WRITES_A_GAME):
            loaded = await self._store.games.load(entry.game_id)
            record = loaded.record
            if record is None or not record.has_record:
                is_settled = loaded.now_ms - entry.at_ms > OUTBOX_MARGIN_MS
                return Result.NOT_ENDED if is_settled else None
            try:
                game = await collect(self._store, record)
            except LineageBroken:
                if record.etag == broken_etag:
                    raise
                broken_etag = record.etag  # it may have been deleted or rewritten between the two reads
                continue
            async with asyncio.timeout(self.write_seconds):
                written = await self._sink.write(game)
            match written:
                case WriteResult.DELETED:
                    return Result.DELETED
                case WriteResult.ANOTHER:
                    return Result.ID_TAKEN
                case WriteResult.WRITTEN | WriteResult.LATER if await self._store.games.shorten(record, self._kept_ms):
                    return Result.ARCHIVED
                case _:
                    pass  # the game has changed
        return None
