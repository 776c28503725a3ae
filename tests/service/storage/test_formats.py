"""Stored formats: which one is written, which are read, and what servers of two formats on one store do to games.

This version has released no format before its newest, so the tests add one: as if the next version had a new format.
"""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import grpc.aio
import pytest

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from service import program
from service.errors import StoredFormatUnknown
from service.model.change import NO_ETAG, lineage
from service.storage.formats import FORMATS, FormatNotWritten, Formats, Older
from service.storage.snapshot import decode_record
from service.storage.store import Store
from support.formats import process_with
from support.harness import (
    HISTORY,
    Client,
    FakeClock,
    GameAtHand,
    error_info,
    memory_store,
    redis_store,
    running_server,
    server_settings,
)

LAST = FORMATS.newest
"""The format of the version before the next one."""
NEXT = LAST + 1
NO_SWEEPS = server_settings(sweep_seconds=3600)


def up(stored: dict[str, Any]) -> dict[str, Any]:
    """Removes what only the last format has."""
    return {key: value for key, value in stored.items() if key != "mark"}


def down(stored: dict[str, Any]) -> dict[str, Any] | None:
    """Adds what only the last format has; it has no place for a game with the label `new`."""
    return None if '"new"' in json.dumps(stored.get("listing", {})) else {**stored, "mark": "of the last format"}


STEP = {LAST: Older(up, down)}
BEFORE = Formats(newest=LAST, written=LAST, older={})
"""The version before the next one."""
AFTER = Formats(newest=NEXT, written=LAST, older=STEP)
"""The next version before an operator has chosen its format."""
SWITCHED = Formats(newest=NEXT, written=NEXT, older=STEP)
"""The next version, after an operator has chosen its format."""


def number(stored: bytes) -> int:
    """Returns the number of the format of stored bytes."""
    found: int = json.loads(stored)["format"]
    return found


# Which format is written and read


def test_a_version_begins_with_a_format_that_the_one_before_reads() -> None:
    stored = AFTER.write({"a": 1})
    assert BEFORE.read(stored) == {"a": 1, "mark": "of the last format"}
    assert AFTER.read(stored) == SWITCHED.read(stored) == {"a": 1}


def test_the_newest_format_is_written_when_it_is_chosen_and_read_at_once() -> None:
    formats = Formats(NEXT, LAST, STEP)
    formats.choose(NEXT)
    stored = formats.write({"a": 1})
    assert number(stored) == NEXT
    assert AFTER.read(stored) == {"a": 1}
    formats.choose(LAST)
    assert number(formats.write({"a": 1})) == LAST


def via(number: int) -> Older:
    """Returns a format whose objects remember that they were of it."""
    return Older(lambda stored: {**stored, "via": [*stored.get("via", ()), number]}, dict)


def test_all_older_formats_are_read_but_only_the_last_one_is_written() -> None:
    formats = Formats(4, 4, {number: via(number) for number in (1, 2, 3)})
    assert formats.read(b'{"format":1,"a":1}') == {"a": 1, "via": [1, 2, 3]}
    assert formats.writable == (3, 4)
    with pytest.raises(
        FormatNotWritten, match=r"this version writes 3 or 4: unset it, or run a version that writes 2 "
    ):
        formats.choose(2)


@pytest.mark.parametrize("found", [NEXT, LAST - 1, 0, -1, None, str(LAST), [LAST]])
def test_another_format_is_refused(found: object) -> None:
    with pytest.raises(StoredFormatUnknown):
        decode_record(json.dumps({"format": found, "game": {}}).encode())


def test_what_the_format_before_cannot_hold_is_stored_in_the_newest() -> None:
    assert number(AFTER.write({"listing": {"labels": ["new"]}})) == NEXT


# Settings


@pytest.mark.parametrize("setting", [LAST - 1, NEXT])
def test_a_server_does_not_start_with_a_format_that_it_does_not_write(
    setting: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RUMMIKUB_STORED_FORMAT", f"{setting}")
    monkeypatch.setenv("RUMMIKUB_REDIS_URL", "memory://")
    with pytest.raises(SystemExit) as end:
        program.serve([])
    assert end.value.code == 1
    refusal = f"this version writes {LAST}: unset it, or run a version that writes {setting} (docs/upgrade.md)"
    assert capsys.readouterr().err == f"rummikub-server: RUMMIKUB_STORED_FORMAT={setting}: {refusal}\n"


async def test_the_metrics_have_the_format_that_is_written() -> None:
    with process_with(AFTER):
        async with running_server(memory_store(), NO_SWEEPS) as (server, _):
            assert server.metrics.registry.get_sample_value("rummikub_stored_format") == LAST


# Two versions on one store


class Versions:
    """A server of the version before and one of the next version, with stores of their own on one Redis."""

    def __init__(self, before: Client, after: Client, store: Store) -> None:
        self._clients = {id(BEFORE): before, id(AFTER): after, id(SWITCHED): after}
        self.store = store

    @contextmanager
    def at(self, formats: Formats, game: GameAtHand) -> Iterator[GameAtHand]:
        """Yields a game whose calls the server of a version answers."""
        with process_with(formats):
            game.client = self._clients[id(formats)]
            yield game

    def client(self, formats: Formats) -> Client:
        """Returns a client of the server of a version."""
        return self._clients[id(formats)]


@pytest.fixture
async def versions(limited_redis_url: str, clock: FakeClock) -> AsyncIterator[Versions]:
    """Yields two servers on one store."""
    stores = [redis_store(limited_redis_url, clock, HISTORY, 0) for _ in range(2)]
    async with (
        running_server(stores[0], NO_SWEEPS, seed=1) as (_, before),
        running_server(stores[1], NO_SWEEPS, seed=2) as (_, after),
    ):
        yield Versions(before, after, stores[0])
    for store in stores:
        await store.close()


async def formats_of(store: Store, game: GameAtHand) -> list[int]:
    """Returns the formats in which a game's changes are stored; checks that their etags follow from their bytes."""
    changes = await store.streams.stored_changes(game.game_id, 1, HISTORY)
    etag = NO_ETAG
    for change in changes:
        etag = lineage(etag, change.change)
        assert change.etag == etag
    return [number(change.change) for change in changes]


async def test_two_versions_play_one_game_and_the_newer_one_can_be_rolled_back(versions: Versions) -> None:
    with process_with(BEFORE):
        game = await versions.client(BEFORE).new_game()
    for turn in range(6):
        with versions.at((BEFORE, AFTER)[turn % 2], game):
            await game.draw()
    with versions.at(BEFORE, game):  # the newer one is gone
        seen = await game.draw()
        listed = await game.client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id, page_size=200))
    assert [change.revision for change in listed.changes] == list(range(1, seen.game.revision + 1))
    assert set(await formats_of(versions.store, game)) == {LAST}


async def test_the_version_before_refuses_a_game_of_the_new_format_and_loses_nothing(versions: Versions) -> None:
    with process_with(BEFORE):
        game = await versions.client(BEFORE).new_game()
    with versions.at(SWITCHED, game):
        await game.draw()
        seen = await game.see(1)
    with versions.at(BEFORE, game):
        for call in (game.see(1), game.draw()):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            assert error_info(refused.value).reason == "STORED_FORMAT_UNKNOWN"
        listed = await game.client.games.ListGames(gs.ListGamesRequest(states=[game_pb2.GAME_STATE_PLAYING]))
        assert not listed.games
    with versions.at(AFTER, game):  # the operator has chosen the format before again
        assert (await game.see(1)).etag == seen.etag
        await game.draw()
    with versions.at(BEFORE, game):
        assert (await game.see(1)).revision == seen.revision + 1
    assert set(await formats_of(versions.store, game)) == {LAST, NEXT}
