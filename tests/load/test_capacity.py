"""`make capacity`: a quick run of its parts, and the machines that follow from measured costs."""

import asyncio
import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from load.capacity import __main__ as command
from load.capacity.games import RULESETS
from load.capacity.lists import compared_sizes, growth
from load.capacity.machines import ASSUMPTION_TEXTS, GIB, Assumptions, fleet_of, fleets_of, unit_of
from load.capacity.measuring import running_servers
from load.capacity.report import requirements_of, tables_of, told_of
from load.corpus.recorded_turns import rounds
from load.pages import DOCS, page_with, text_of
from service.settings import Settings
from support.soak import few_of

pytestmark = pytest.mark.slow

ASSUMED = Assumptions(
    turn_seconds=10.0,
    watchers=2,
    validations=1.0,
    heartbeat_seconds=10.0,
    utilization=0.5,
    cores=4,
    node_gib=1.0,
    memory_share=0.5,
    peak=2.0,
    finished_seconds=7_200.0,
)
PARTS: dict[str, Any] = {
    "games": {
        "SABRA": {
            "turns": 60,
            "turn_us": 900.0,
            "phases": {
                "start": {"sum": 1_000.0, "by_key": {"requests": 500.0}},
                "half": {"sum": 4_096.0, "by_key": {"requests": 2_000.0}},
                "end": {"sum": 5_000.0, "by_key": {"requests": 3_000.0}},
            },
        }
    },
    "commits": {"always": {"a_second": 100.0, "redis_us": 50.0, "log_bytes": 3_000.0}},
    "watchers": {
        "crowds": {"0": {"turn_us": 400.0, "redis_turn_us": 40.0, "told_ms": None, "watcher_bytes": None}},
        "tables": {
            "turn_us": 700.0,
            "redis_turn_us": 50.0,
            "heartbeat_us": 100.0,
            "redis_heartbeat_us": 10.0,
            "watcher_bytes": GIB / 1_000,
        },
        "own_games": {
            "turn_us": 800.0,
            "redis_turn_us": 60.0,
            "heartbeat_us": 200.0,
            "redis_heartbeat_us": 20.0,
            "watcher_bytes": 3_072.0,
        },
        "connection_bytes": 1_024.0,
        "warm_turn_us": 400.0,
        "redis_warm_turn_us": 40.0,
        "cold_turn_us": 600.0,
        "redis_cold_turn_us": 60.0,
        "validation_us": 200.0,
        "process_bytes": GIB / 8,
    },
}


def test_the_costs_of_a_game_follow_from_the_measured_ones() -> None:
    unit = unit_of(PARTS, ASSUMED)
    # a turn of 600 and a validation of 200, two watchers at 300 each, every ten seconds; two heartbeats of 100
    assert unit.core_us == pytest.approx((600 + 200 + 2 * 300) / 10 + 2 * 100 / 10)
    assert unit.redis_us == pytest.approx((60 + 2 * 10) / 10 + 2 * 10 / 10)
    assert unit.games_a_core == pytest.approx(0.5e6 / 160)
    assert unit.games_by_cpu == pytest.approx(0.5e6 / 10)
    assert unit.games_by_commits == pytest.approx(0.5 * 100 * 10)
    assert unit.games_by_memory == pytest.approx(0.5 * GIB / 4_096)
    assert (unit.live_bytes, unit.finished_bytes, unit.answers_bytes) == (4_096.0, 2_000.0, 3_000.0)
    assert unit.game_seconds == 600


def test_games_of_okey_do_not_change_what_a_live_game_costs() -> None:
    okey = {
        "turns": 1,
        "turn_us": 9.0,
        "phases": {name: {"sum": 9.0, "by_key": {}} for name in ("start", "half", "end")},
    }
    assert unit_of({**PARTS, "games": {**PARTS["games"], "OKEY": okey}}, ASSUMED) == unit_of(PARTS, ASSUMED)


@pytest.mark.parametrize("name", few_of(["WIKI_EN", "OKEY", "CROSS"], 1))
def test_a_round_is_recorded_to_its_end(name: str) -> None:
    recorded = next(rounds(1, RULESETS[name], 0))
    assert len(recorded.turns) > 40
    requests = [turn.request(RULESETS[name], "game", "request").WhichOneof("action") for turn in recorded.turns]
    assert len({*requests}) > 1
    assert None not in requests


def test_a_fleet_has_what_the_scarcest_part_demands() -> None:
    unit = unit_of(PARTS, ASSUMED)
    fleet = fleet_of(unit, ASSUMED, 10_000)
    assert (fleet.cores, fleet.machines) == (4, 1)  # 3,125 games a core
    assert (fleet.redis_nodes, fleet.limit) == (20, "commits")  # 500 games by commits
    assert fleet.turns_a_second == 1_000
    assert fleet.redis_replicas == 2 * fleet.redis_nodes
    assert fleet.process_gib == pytest.approx(4 / 8)
    assert fleet.watcher_gib == pytest.approx(10_000 * 2 / 1_000)
    by_memory = fleet_of(replace(unit, games_by_commits=1e9), ASSUMED, 10_000, finished_a_second=1_000)
    kept = 10_000 * 4_096 + 1_000 * 7_200 * 2_000 + 1_000 * 2 * 3_600 * 3_000
    assert by_memory.limit == "memory"
    assert by_memory.redis_gib == pytest.approx(kept / GIB)
    assert by_memory.redis_nodes == -(-kept // (GIB // 2))


def test_a_worker_of_the_page_accepts_the_watchers_that_it_carries() -> None:
    page = (DOCS / "capacity.md").read_text()
    games, watchers = (
        int(re.search(rf"^\| {text}[^|]*\| ([\d,]+) \|$", page, re.MULTILINE)[1].replace(",", ""))  # type: ignore[index]
        for text in ("live games of a core for servers", "watchers of a game")
    )
    assert games * watchers <= 0.8 * Settings.model_fields["max_watches"].default, "else RummikubManyWatchers fires"
    many = replace(ASSUMED, watches=1_000)
    assert unit_of(PARTS, many).games_a_core == 0.8 * 1_000 / ASSUMED.watchers


def test_the_players_of_a_day_become_live_games_at_the_peak() -> None:
    fleet = fleets_of(PARTS, ASSUMED)["10,000,000 players a day"]
    assert fleet.live_games == pytest.approx(10_000_000 * 3 / 4 * 600 / 86_400 * 2)


def test_growth_is_that_of_stores_in_which_a_page_is_full() -> None:
    found = {str(size): {"page": {"redis_us": cost}} for size, cost in ((1_000, 1.0), (10_000, 20.0), (100_000, 30.0))}
    assert compared_sizes(found) == (10_000, 100_000)
    assert growth(found) == {"page, Redis": 1.5}
    assert growth({"1000": found["1000"]}) == {"page, Redis": 1.0}


async def test_the_store_does_not_rewrite_its_log_during_a_measurement() -> None:
    async with running_servers(0) as (redis, _):
        redis.execute("CONFIG", "SET", "auto-aof-rewrite-min-size", "1mb")
        with redis.client() as client:
            for number in range(3):
                client.set(f"key {number}", bytes(1_000_000))
                await asyncio.sleep(0.2)  # the store checks the size of its log ten times a second
            log = client.info("persistence")
        assert (log["aof_rewrites"], log["aof_rewrite_in_progress"]) == (0, 0)
        assert log["aof_current_size"] > 3_000_000


def test_growth_of_the_server_is_required_too_and_the_sizes_are_named() -> None:
    found = {
        size: {"page": {"redis_us": 20.0, "server_us": cost}} for size, cost in (("10000", 100.0), ("100000", 310.0))
    }
    [required] = requirements_of({"lists": found})
    assert required == {
        "what": "each operation on lists with 100,000 games: at most 3 times the CPU with 10,000",
        "met": False,
        "measured": "3.1 (page, server)",
    }


def test_the_memory_of_few_watchers_is_not_shown() -> None:
    crowd = {"turn_us": 1.0, "redis_turn_us": 1.0, "told_ms": None, "watcher_bytes": 2_048.0}
    watchers = {**PARTS["watchers"], "crowds": {"30": crowd, "300": crowd}}
    rows = tables_of({"watchers": watchers}, ASSUMED)["A turn of a game with many watchers on one server"]
    assert [row[-1] for row in rows] == ["KiB a watcher", "", "2"]


def test_each_assumption_is_explained() -> None:
    assert set(ASSUMPTION_TEXTS) == {field.name for field in fields(Assumptions)}


def test_what_was_not_measured_has_no_tables() -> None:
    assert list(tables_of({"commits": PARTS["commits"]}, ASSUMED)) == ["Commits of one Redis"]
    assert requirements_of({"commits": PARTS["commits"]}) == []


@pytest.mark.parametrize(
    "part",
    ["games", "commits", *(pytest.param(part, marks=pytest.mark.soak) for part in ("watchers", "lists", "restart"))],
)
def test_a_quick_run_of_a_part_has_its_tables(part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "capacity-quick.json"
    command.main([part, "--quick"], results)
    report = json.loads(results.read_text())
    assert list(report["parts"]) == [part]
    tables = tables_of(report["parts"], Assumptions())
    assert all(len({len(row) for row in rows}) == 1 for rows in tables.values())
    text = text_of(report, told_of(report), tables)
    assert "nan" not in text
    printed = capsys.readouterr().out
    assert next(iter(tables)) in printed
    if part == "restart":
        assert report["parts"][part]["ends"] == {"closing": report["parts"][part]["watchers"]}
    if part == "lists":
        assert report["parts"][part]["1000"]["sweeper check"]["games"] > 0


def test_an_unknown_part_is_named() -> None:
    with pytest.raises(SystemExit, match="no such part: nothing; the parts are games, commits"):
        command.main(["games", "nothing"])


def test_more_games_than_the_memory_holds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="use --games"):
        command.run("lists", tmp_path / "results", quick=False, most_games=10**12)


def test_the_page_has_a_place_for_the_figures() -> None:
    page_with((DOCS / command.PAGE).read_text(), command.COMMAND, "")
