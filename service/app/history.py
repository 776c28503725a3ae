"""The history of a game from its creation on: the game at an earlier revision, and its record.

Reading a history takes as long as it is long, so it runs in steps beside other calls (runtime/slow_calls.py), and one
address reads one history at a time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Protocol

import structlog

from engine.game import Game
from engine.record import GameRecord, record_of
from engine.replay import advance
from service.errors import HistoryUnavailable, StoredFormatUnknown
from service.model.change import Entry, StoredChange
from service.model.record import Record
from service.runtime.slow_calls import Steps, in_one_step
from service.storage.store import CHANGES_AT_ONCE
from service.storage.stored_events import decode_entry

CHANGES_A_STEP: Final = 32
"""How many changes are decoded in one step: about 1 ms."""

_TO_READ: Final = "an earlier revision needs all changes up to it; leave revision unset for the game as it is now"
_TO_EXPORT: Final = "a record needs all of them, so the game has no record any more"

_log = structlog.get_logger()


class History(Protocol):
    """The changes of games: Streams, or a game of the archive."""

    async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
        pass

    async def entries(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        pass

    async def bounds(self, game_id: str) -> tuple[int, int]:
        pass


class ArchivedHistory(History, Protocol):
    """A finished game that the store no longer has."""

    @property
    def record(self) -> Record:
        """The game."""


class Archive(Protocol):
    """Has finished games."""

    async def read(self, game_id: str) -> ArchivedHistory | None:
        """Returns a game; None if the archive does not have it. Raises StoreUnavailable, StoredFormatUnknown."""


class OffLoopRunner(Protocol):
    """Runs steps off the event loop."""

    async def run(self, steps: Steps) -> Any:  # noqa: ANN401 - as the steps return
        """Returns the result of the steps."""


class _ChangesMissing(Exception):  # noqa: N818 - a signal between two functions
    """The history does not have every change."""


async def record_at(history: History, record: Record, revision: int, runner: OffLoopRunner) -> Record:
    """Returns a game as it was at a revision, for views, without its join code. Raises HistoryUnavailable."""
    listing = replace(record.listing, join_code="")
    if revision == record.game.revision:
        return replace(record, listing=listing)
    if revision > record.game.revision:
        raise HistoryUnavailable(*await history.bounds(record.game_id), _TO_READ)
    found = replace(record, listing=listing)
    game: Game | None = None

    def follow(entry: Entry) -> None:
        nonlocal found, game
        game = advance(game, entry.events)
        found = replace(found, game=game, etag=entry.etag, updated_ms=entry.time_ms)

    await _read(history, record, revision, follow, runner, _TO_READ)
    return found


async def exported(history: History, record: Record, runner: OffLoopRunner) -> GameRecord:
    """Returns the record of a game. Raises HistoryUnavailable."""
    entries: list[Entry] = []
    await _read(history, record, record.game.revision, entries.append, runner, _TO_EXPORT)
    changes = ((entry.revision, entry.time_ms, entry.events) for entry in entries)
    made: GameRecord = await runner.run(in_one_step(lambda _: record_of(changes), b""))
    return made


async def _read(  # noqa: PLR0913, PLR0917 - made in one place
    history: History,
    record: Record,
    last_revision: int,
    visit: Callable[[Entry], None],
    runner: OffLoopRunner,
    advice: str,
) -> None:
    """Visits all changes of a game up to a revision, in order. Raises HistoryUnavailable if one is missing."""
    try:
        await runner.run(_in_steps(history, record.game_id, last_revision, visit, asyncio.get_running_loop()))
    except _ChangesMissing:
        raise HistoryUnavailable(*await history.bounds(record.game_id), advice) from None
    except StoredFormatUnknown:
        _log.warning("store", error="cannot be read", game_id=record.game_id)
        raise


def _in_steps(
    history: History,
    game_id: str,
    last_revision: int,
    visit: Callable[[Entry], None],
    loop: asyncio.AbstractEventLoop,
) -> Steps:
    """Visits changes in steps, and yields the reads of pages that it waits for."""
    revision = 0
    while revision < last_revision:
        limit = min(CHANGES_AT_ONCE, last_revision - revision)
        page = asyncio.run_coroutine_threadsafe(history.stored_changes(game_id, revision + 1, limit), loop)
        yield page
        changes = page.result()
        if not changes:
            raise _ChangesMissing
        for change in changes:
            revision += 1
            if change.revision != revision:
                raise _ChangesMissing
            visit(decode_entry(change.change, change.etag))
            if revision % CHANGES_A_STEP == 0:
                yield None
