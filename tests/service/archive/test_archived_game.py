"""Archived games: their record, their history with its checksum, and what of them is damaged."""

import base64
import gzip
import itertools
import json
from dataclasses import replace

import pytest

from engine.game import Finished
from engine.melding.presets import PRESETS
from engine.melding.ruleset import Preset, Ruleset
from engine.record import replayed
from engine.record_text import parse_record
from service.errors import StoredFormatUnknown
from service.model.change import StoredChange
from service.operator.archive.archived_game import (
    ArchivedGame,
    LineageBroken,
    collect,
    from_history,
    from_line,
    to_line,
)
from service.storage.formats import FORMATS
from service.storage.memory import MemoryStore
from service.storage.store import Store
from support.archives import store_game
from support.delegating_store import DelegatingStore
from support.harness import HISTORY, FakeClock
from support.random_play import ANALYSIS, random_changes
from support.records import comparable

pytestmark = pytest.mark.slow


@pytest.fixture
async def whole() -> ArchivedGame:
    store = MemoryStore(HISTORY, FakeClock())
    return await collect(store, (await store_game(store)).record)


async def test_a_game_of_every_store_is_archived_with_all_its_changes(store: Store) -> None:
    stored = await store_game(store)
    game = await collect(store, stored.record)
    assert (game.record, game.changes) == (stored.record, stored.changes)
    assert game.etags == tuple(record.etag for record in stored.records)
    assert len(stored.changes) > 100, "the changes are read in pages"
    assert await store.streams.entries(stored.game_id, 1, 10_000) == await game.entries(stored.game_id, 1, 10_000)


def finished_seed(ruleset: Ruleset) -> int:
    """Returns the seed of a random game that is finished, not aborted."""
    phases = ((seed, list(random_changes(seed, 3, ruleset))[-1].applied.game.phase) for seed in itertools.count())
    return next(seed for seed, phase in phases if isinstance(phase, Finished))


@pytest.mark.parametrize("preset", [Preset.SABRA, Preset.INTL_OFFICIAL, Preset.JUMBO_DE])
async def test_a_line_has_the_game_and_its_record_leads_to_it(preset: Preset) -> None:
    ruleset = PRESETS[preset]
    seed = finished_seed(ruleset)
    store = MemoryStore(HISTORY, FakeClock())
    stored = await store_game(store, seed, ruleset)
    game = await collect(store, stored.record)
    line = to_line(game)
    assert line.count(b"\n") == 1
    assert from_line(line) == game
    *_, last = replayed(parse_record(game.text), ANALYSIS)
    final = comparable(stored.record.game)
    assert comparable(last.after) == replace(final, revision=last.after.revision)


async def test_an_archived_game_returns_its_history_as_a_store_does(whole: ArchivedGame) -> None:
    store = MemoryStore(HISTORY, FakeClock())
    stored = await store_game(store)
    last = stored.record.game.revision
    for first, limit in ((1, 5), (3, 1), (last - 1, 9), (last, 1), (last + 1, 5), (last + 9, 5)):
        assert await whole.entries("", first, limit) == await store.streams.entries(stored.game_id, first, limit)
    assert await whole.bounds("") == await store.streams.bounds(stored.game_id) == (1, last)


async def test_a_game_whose_first_changes_are_gone_has_no_record(whole: ArchivedGame) -> None:
    store = MemoryStore(40, FakeClock())
    stored = await store_game(store)
    last = stored.record.game.revision
    game = await collect(store, stored.record)
    assert (game.text, len(game.changes)) == ("", 40)
    assert await game.bounds("") == (last - 39, last)
    assert await game.entries("", 1, 3) == await store.streams.entries(stored.game_id, 1, 3)
    assert from_line(to_line(game)) == game
    assert json.loads(to_line(game))["record"] is None
    assert json.loads(to_line(whole))["record"] is not None


async def test_later_changes_do_not_disturb() -> None:
    store = MemoryStore(HISTORY, FakeClock())
    stored = await store_game(store)
    game = await collect(store, stored.records[-2])
    assert (game.record, game.changes) == (stored.records[-2], stored.changes[:-1])


class Damaged(DelegatingStore):
    """A store that has other changes than were stored."""

    def __init__(self, store: Store, revision: int, kind: str) -> None:
        super().__init__(store)
        self._revision = revision
        self._kind = kind

    async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
        page = await self._store.streams.stored_changes(game_id, first_revision, limit)
        return tuple(
            changed for change in page if (changed := change if change.revision != self._revision else self._of(change))
        )

    def _of(self, change: StoredChange) -> StoredChange | None:
        match self._kind:
            case "change":
                return replace(change, change=change.change.replace(b'"nonce":"', b'"nonce":"00'))
            case "etag":
                return replace(change, etag="0" * 32)
            case _:
                return None


@pytest.mark.parametrize("kind", ["change", "etag", "missing"])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
async def test_changes_that_do_not_lead_to_the_game_are_not_archived(kind: str, place: str) -> None:
    store = MemoryStore(HISTORY, FakeClock())
    record = (await store_game(store)).record
    revision = {"first": 1, "middle": 60, "last": record.game.revision}[place]
    if (kind, place) == ("missing", "first"):
        return  # as in a game whose first changes are gone
    with pytest.raises(LineageBroken):
        await collect(Damaged(store, revision, kind), record)


async def test_a_game_without_changes_is_not_archived() -> None:
    store = MemoryStore(HISTORY, FakeClock())
    record = (await store_game(store)).record
    with pytest.raises(LineageBroken):
        await collect(store, replace(record, game_id="0" * 32))


async def test_a_damaged_history_is_detected(whole: ArchivedGame) -> None:
    history = gzip.decompress(whole.history())
    lines = history.split(b"\n")
    damaged = [
        b"",
        b"no gzip",
        whole.history()[:-9],
        gzip.compress(b""),
        gzip.compress(b"\n".join(lines[:-1])),
        gzip.compress(b"\n".join([*lines[:2], *lines[3:]])),
        gzip.compress(b"\n".join([*lines[:5], lines[5].replace(b'"nonce":"', b'"nonce":"00'), *lines[6:]])),
        gzip.compress(history.replace(b'"format":%d' % FORMATS.newest, b'"format":%d' % (FORMATS.newest + 1), 1)),
    ]
    for bad in damaged:
        with pytest.raises(StoredFormatUnknown):
            from_history(bad, whole.text)
    assert from_history(gzip.compress(history), whole.text) == whole


async def test_a_flipped_byte_is_detected_wherever_it_is(whole: ArchivedGame) -> None:
    values = json.loads(to_line(whole))
    for name in ("history", "record"):
        data = base64.b64decode(values[name])
        for place in range(10, len(data), 97):  # behind the header
            bad = bytes([*data[:place], data[place] ^ 0xFF, *data[place + 1 :]])
            with pytest.raises(StoredFormatUnknown):
                from_line(json.dumps({**values, name: base64.b64encode(bad).decode()}).encode())


async def test_a_damaged_line_is_detected(whole: ArchivedGame) -> None:
    values = json.loads(to_line(whole))
    damaged = (
        {"format": 2},
        {"history": 1},
        {"history": None},
        {"history": "="},
        {"record": base64.b64encode(b"no gzip").decode()},
        {"record": 7},
    )
    for change in damaged:
        with pytest.raises(StoredFormatUnknown):
            from_line(json.dumps({**values, **change}).encode())
    for line in (b"", b"[]", b"7", to_line(whole)[:-50]):
        with pytest.raises(StoredFormatUnknown):
            from_line(line)
