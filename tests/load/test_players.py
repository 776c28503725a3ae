"""Players of drills: they record what is acknowledged, and find turns that were lost or doubled."""

import asyncio
import json

import pytest

from load.drills.players import Players, Report, compare, game_servers, reasons_told
from support.harness import running_redis

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


async def test_undisturbed_players_on_two_servers_report_no_fault() -> None:
    with running_redis() as redis:
        async with game_servers(redis.url, 2) as servers, Players([server.target for server in servers], 4) as players:
            await players.has_taken(400)  # several games each
            report = await players.stop()
    assert report.is_clean
    assert report.acknowledged >= 400
    assert report.watchers > 4
    assert (report.told, report.watch_restarts, report.failed_calls) == (0, 0, {})
    assert 0 < report.slowest_turn <= report.seconds
    assert json.loads(json.dumps(report.as_json())) == report.as_json()


async def test_players_report_turns_that_a_store_has_lost() -> None:
    with running_redis() as redis:
        async with game_servers(redis.url) as servers, Players([servers[0].target], 2) as players:
            await players.has_taken(10)
            kept = {key: redis.execute("DUMP", key) for key in redis.execute("KEYS", "rummikub:*")}
            await players.has_taken(10)
            for key, value in kept.items():
                if value:
                    redis.execute("RESTORE", key, 0, value, "REPLACE")
            await players.has_taken(10)
            report = await players.stop()
    assert report.lost > 0
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
    assert 0 < report.longest_outage <= report.slowest_turn


def test_a_report_without_faults_is_clean() -> None:
    assert Report(acknowledged=5, told=1).is_clean
    assert not any(fault.is_clean for fault in (Report(lost=1), Report(doubled=1), Report(watch_gaps=1)))
    assert not Report(watchers_behind=1).is_clean
