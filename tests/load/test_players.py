"""Players of drills: they record what is acknowledged, and find turns that were lost or doubled."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2, status_pb2

from load.drills.other_client import other_players
from load.drills.players import (
    RETRY_SECONDS,
    Connect,
    Players,
    Report,
    compare,
    game_servers,
    is_unanswered,
    reasons_told,
)
from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from support.harness import ROOT, running_redis
from tools.servers import ServerError

pytestmark = pytest.mark.slow

STARTED = {0, 1, 2}
"""The revisions of the lobby."""


@pytest.mark.parametrize(
    ("stored", "acknowledged", "explained", "lost", "doubled"),
    [
        ([(1, "a"), (2, "b"), (3, "c")], {(3, "c")}, STARTED, set(), 0),
        ([(1, "a"), (2, "b")], {(3, "c")}, STARTED, {(3, "c")}, 0),
        ([(1, "a"), (2, "b"), (3, "d")], {(3, "c"), (3, "d")}, STARTED, {(3, "c")}, 0),
        ([(1, "a"), (2, "b"), (3, "c"), (4, "d")], {(3, "c")}, STARTED, set(), 1),
        ([(1, "a"), (2, "b"), (3, "c"), (4, "d")], {(3, "c")}, {*STARTED, 4}, set(), 0),
        ([(1, "a"), (2, "b"), (3, "c"), (3, "c")], {(3, "c")}, STARTED, set(), 1),
        ([], {(3, "c"), (4, "d")}, STARTED, {(3, "c"), (4, "d")}, 0),
    ],
)
def test_a_history_is_compared_with_what_was_acknowledged(
    stored: list[tuple[int, str]],
    acknowledged: set[tuple[int, str]],
    explained: set[int],
    lost: set[tuple[int, str]],
    doubled: int,
) -> None:
    assert compare(stored, acknowledged, explained) == (lost, doubled)


async def test_players_with_another_client_report_what_they_noticed() -> None:
    folder = ROOT / "clients" / "python" / "src"
    async with (
        game_servers("memory://") as [server],
        other_players(server.target, folder, games=2, pause=0.0) as stop,
    ):
        report = await stop()
    assert report.is_clean
    assert report.calls > report.acknowledged > 0


async def test_players_never_use_the_present_client_in_place_of_another(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="did not start"):
        async with other_players("127.0.0.1:1", tmp_path, games=1, pause=0.0):
            pass


async def test_undisturbed_players_on_two_servers_report_no_fault() -> None:
    with running_redis() as redis:
        async with game_servers(redis.url, 2) as servers, Players([server.target for server in servers], 4) as players:
            await players.has_taken(400)  # several games each
            report = await players.stop()
    assert report.is_clean
    assert report.acknowledged >= 400
    assert report.watchers > 4
    assert (report.told, report.watch_restarts, report.failed_calls) == (0, 0, {})
    assert 0 < report.longest_wait <= report.seconds
    assert report.calls > report.acknowledged
    assert json.loads(json.dumps(report.as_json())) == report.as_json()


async def test_players_report_turns_that_a_store_has_lost() -> None:
    with running_redis() as redis:
        async with game_servers(redis.url) as servers, Players([servers[0].target], 2) as players:
            await players.has_taken(10)
            kept = {key: redis.execute("DUMP", key) for key in redis.execute("KEYS", "rummikub:*")}
            await players.has_taken(10)
            players.mark()
            for key, value in kept.items():
                if value:
                    redis.execute("RESTORE", key, 0, value, "REPLACE")
            await players.has_taken(10)
            report = await players.stop()
    assert 0 < report.lost_marked <= report.lost
    assert report.told > 0
    assert sum(report.lost_told.values()) == report.lost
    assert not report.lost_unnoticed
    assert not report.is_clean


def test_a_lost_turn_counts_as_told_if_the_next_call_was_refused_for_it() -> None:
    lost, refused = {(3, "c"), (4, "d")}, {(3, "c"): "STALE_STATE", (4, "d"): "STALE_STATE"}
    assert reasons_told(lost, refused, [(2, "b")]) == refused
    assert reasons_told(lost, refused, [(4, "d")]) == {(3, "c"): "STALE_STATE"}
    assert not reasons_told(lost, {(3, "c"): "NOT_YOUR_TURN"}, [])


async def test_players_repeat_what_a_stopped_store_did_not_answer() -> None:
    with running_redis() as redis:
        async with game_servers(redis.url) as servers, Players([servers[0].target], 2) as players:
            await players.has_taken(10)
            redis.kill()
            async with asyncio.timeout(30):
                while not players.failed:  # noqa: ASYNC110 - a drill has no event for this
                    await asyncio.sleep(0.01)
            redis.start()
            await players.has_taken(10)
            report = await players.stop()
    assert report.is_clean
    assert report.failed_calls
    assert report.longest_wait > RETRY_SECONDS


def error(code: grpc.StatusCode, reason: str = "") -> grpc.aio.AioRpcError:
    status = status_pb2.Status()
    if reason:
        status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason))
    details = grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString()))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), details)


class RefusingService:
    """Stubs of a service with one game, whose turns are refused in a row and then accepted."""

    def __init__(self, refusals: int) -> None:
        self.games = self.turns = self.validation = self
        self._refusals = refusals
        self._game = game_pb2.Game(game_id="game", revision=4, etag="4", pool_count=1)
        self._game.turn.seat = 1

    def __getattr__(self, _method: str) -> Any:  # noqa: ANN401 - any call
        async def answered(*_: object, **__: object) -> SimpleNamespace:
            return SimpleNamespace(
                game=self._game, seat=1, seat_token="", host_token="", changes=(), next_page_token=""
            )

        return answered

    async def PlayTurn(self, *_: object, **__: object) -> SimpleNamespace:  # noqa: N802 - gRPC's name
        await asyncio.sleep(0.05)
        if self._refusals:
            self._refusals -= 1
            raise error(grpc.StatusCode.ABORTED, "STALE_STATE")
        played = game_pb2.Game(game_id="game", revision=self._game.revision + 1, etag="5")
        return SimpleNamespace(game=played)

    async def WatchGame(self, *_: object, **__: object) -> AsyncIterator[gs.WatchGameResponse]:  # noqa: N802 - gRPC's name
        yield gs.WatchGameResponse(change=game_pb2.GameChange(revision=5, etag="5"))
        await asyncio.Event().wait()


async def test_a_wait_lasts_until_the_next_acknowledged_turn_although_attempts_are_refused() -> None:
    service = RefusingService(refusals=5)
    connect = cast("Connect", lambda _target: contextlib.nullcontext(service))
    async with Players(["service"], 1, connect=connect) as players:
        await players.has_taken(1)
        report = await players.stop()
    assert report.told == 5
    assert 0.3 <= report.longest_wait < 10


def test_a_report_without_faults_is_clean() -> None:
    measured = Report(acknowledged=5, told=1, watchers=1)
    assert measured.is_clean
    assert not measured.faults(may_lose=True)
    for fault in ("lost", "lost_lobbies", "lost_unnoticed", "doubled", "watch_gaps", "watchers_behind"):
        assert not replace(measured, **cast("dict[str, Any]", {fault: 1})).is_clean


def test_a_report_that_may_lose_turns_must_tell_them() -> None:
    report = Report(acknowledged=5, watchers=1, lost=2, watch_gaps=1)
    assert not report.faults(may_lose=True)
    assert replace(report, lost_unnoticed=1).faults(may_lose=True) == ["1 lost without a refusal of the next call"]
    assert replace(report, doubled=2).faults(may_lose=True) == ["2 doubled"]


def test_a_report_without_turns_or_watchers_measures_nothing() -> None:
    assert Report(watchers=1).faults(may_lose=True) == ["no turn was acknowledged"]
    assert Report(acknowledged=1).faults() == ["no game was watched"]


def test_a_call_is_unanswered_if_it_may_have_been_executed() -> None:
    assert is_unanswered(error(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN"))
    assert is_unanswered(error(grpc.StatusCode.INTERNAL))
    assert not is_unanswered(error(grpc.StatusCode.INTERNAL, "INTERNAL_ERROR"))
    assert not is_unanswered(error(grpc.StatusCode.ABORTED, "STALE_STATE"))
