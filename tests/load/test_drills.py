"""A drill fails if its fault did not happen, if nothing was measured, and if callers were hurt."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from load.drills import backup, cluster, flood, reports, rolling, sentinel, upgrade
from load.drills.__main__ import DRILLS
from load.drills.players import Report
from load.floods.aftermath import Bound
from load.floods.honest import OWN_LISTENER
from load.pages import DOCS, page_with
from tools.servers import ROOT

MEASURED = Report(acknowledged=100, watchers=5, calls=200, longest_wait=2.0)
LOST = replace(MEASURED, lost=3, lost_told={"STALE_STATE": 3})


def missed(requirements: list[dict[str, Any]]) -> list[str]:
    """Returns what was measured where a requirement is missed."""
    return [one["measured"] for one in requirements if not one["met"]]


@pytest.mark.parametrize("name", DRILLS)
def test_the_page_has_a_place_for_the_figures_of_each_drill(name: str) -> None:
    page_with((DOCS / reports.page_of(name)).read_text(), reports.command_of(name), "")


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the folder of the results of drills."""
    monkeypatch.setattr(reports, "RESULTS", tmp_path)
    return tmp_path


def test_only_a_complete_run_is_written_into_the_page(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(reports, "write", lambda *parts: written.extend(parts))
    report = {"seconds": 61.0, "requirements": [{"what": "it holds", "met": False, "measured": "no"}]}
    assert reports.finish("cluster", report, {}, errors={}, is_complete=False) == 1
    report["requirements"] = [{"what": "it holds", "met": True, "measured": "yes"}]
    assert reports.finish("cluster", report, {}, errors={"moved": "ServerError: no"}, is_complete=True) == 1
    assert not written
    assert reports.finish("cluster", report, {"Scenes": [["scene"], ["killed"]]}, errors={}, is_complete=True) == 0
    page, command, text = written
    assert (page, command) == ("operation.md", "make drill ARGS=cluster")
    facts = json.loads((results / "cluster.json").read_text())
    assert text.startswith(f"run of {facts['date']}, revision {facts['revision']}, 61 seconds;\n")
    assert "| it holds | yes | met |" in text


# Cluster

KILLED, MOVED, CUT_OFF = (
    next(scene for scene in cluster.SCENES if scene.name == name) for name in cluster.QUICK_SCENES
)


@pytest.mark.parametrize(
    ("scene", "happened", "report", "faults"),
    [
        (KILLED, 1, MEASURED, []),
        (KILLED, 0, MEASURED, ["the fault happened 0 times, not 1"]),
        (KILLED, 1, replace(MEASURED, acknowledged=0, watchers=0), ["no turn was acknowledged", "no game was watched"]),
        (KILLED, 1, replace(MEASURED, longest_wait=0.1), ["no game had to wait, so the fault had no effect"]),
        (KILLED, 1, LOST, ["3 lost"]),
        (KILLED, 1, replace(MEASURED, longest_wait=16.0), ["a game waited 16.0 s, more than 15 s"]),
        (MOVED, 10, replace(MEASURED, longest_wait=0.1), []),
        (MOVED, 9, MEASURED, ["the fault happened 9 times, not 10"]),
        (MOVED, 10, replace(MEASURED, failed_calls={"PlayTurn UNAVAILABLE": 2}), ["2 failed calls"]),
        (CUT_OFF, 1, LOST, []),
        (CUT_OFF, 1, MEASURED, ["no turn was lost, so the fault had no effect"]),
        (CUT_OFF, 1, replace(LOST, lost_unnoticed=1), ["1 lost without a refusal of the next call"]),
    ],
)
def test_a_scene_of_a_cluster(scene: cluster.Scene, happened: int, report: Report, faults: list[str]) -> None:
    result = cluster.Result(scene, happened, report)
    assert result.faults(cluster.QUICK) == faults
    assert result.requirement(cluster.QUICK)["met"] == (not faults)


def test_a_scene_that_cannot_disturb_anything_fails() -> None:
    nothing = replace(cluster.QUICK, repetitions=0)
    assert cluster.Result(KILLED, 0, MEASURED).faults(nothing) == ["the fault happened 0 times, not 0"]


def test_the_table_of_a_cluster_has_what_was_told() -> None:
    [rows] = cluster.tables_of([cluster.Result(CUT_OFF, 3, LOST)]).values()
    assert rows[1] == [
        "3 primaries cut off from their replicas for 3 s, then killed", "1", "0", "100", "3", "3", "0", "2.0",
    ]  # fmt: skip
    assert cluster.notes_of([cluster.Result(CUT_OFF, 3, LOST)]) == ["cut off: lost turns told as STALE_STATE 3"]


# Sentinel

SAFE = next(row for row in sentinel.ROWS if row.is_safe)
CONTROL = next(row for row in sentinel.ROWS if row.must_lose)
OTHER = next(row for row in sentinel.ROWS if not (row.is_safe or row.must_lose))
ORDERED = next(row for row in sentinel.ROWS if row.event is sentinel.order_by_admin and not row.is_deaf)


@pytest.mark.parametrize(
    ("row", "happened", "report", "faults"),
    [
        (SAFE, True, MEASURED, []),
        (SAFE, False, MEASURED, ["the failover did not happen"]),
        (SAFE, True, LOST, ["3 lost"]),
        (SAFE, True, replace(MEASURED, longest_wait=20.0), ["a game waited 20.0 s"]),
        (SAFE, True, replace(MEASURED, longest_wait=2.6), []),
        (ORDERED, True, replace(MEASURED, longest_wait=2.5), []),
        (ORDERED, True, replace(MEASURED, longest_wait=2.6), ["a game waited 2.6 s"]),
        (SAFE, True, Report(watchers=1), ["no turn was acknowledged"]),
        (OTHER, True, LOST, []),
        (OTHER, True, replace(LOST, lost_unnoticed=2), ["2 lost without a refusal of the next call"]),
        (OTHER, True, replace(LOST, doubled=1), ["1 doubled"]),
        (CONTROL, True, LOST, []),
        (CONTROL, True, MEASURED, ["no turn was lost, so the failover had no effect"]),
    ],
)
def test_a_row_of_sentinels(row: sentinel.Row, happened: bool, report: Report, faults: list[str]) -> None:
    result = sentinel.Result(row, happened, report)
    assert result.faults() == faults
    assert missed(sentinel.requirements_of([result])) == [f"{row.name}: {fault}" for fault in faults]


def test_each_way_that_must_lose_turns_has_a_safe_counterpart() -> None:
    safe = {(row.event, row.is_deaf) for row in sentinel.ROWS if row.is_safe}
    controls = {(row.event, row.is_deaf) for row in sentinel.ROWS if row.must_lose}
    assert (sentinel.cut_and_crash, False) in safe & controls
    assert (sentinel.order, True) in controls
    assert (sentinel.order_by_admin, True) in safe


# Backups

BACK = backup.Result("redis", 200, 200, 5_000_000, 1.2, 2.3, 6.5, 4.0, is_forgotten=True, is_refused=True, report=LOST)


@pytest.mark.parametrize(
    ("result", "faults"),
    [
        (BACK, []),
        (replace(BACK, report=MEASURED), ["no turn was lost, so the loss had no effect"]),
        (
            replace(BACK, report=replace(LOST, lost_marked=2)),
            ["2 lost that were acknowledged before the backup began"],
        ),
        (replace(BACK, report=replace(LOST, lost_unnoticed=1)), ["1 lost without a refusal of the next call"]),
        (replace(BACK, report=replace(LOST, acknowledged=0)), ["no turn was acknowledged"]),
        (replace(BACK, unchanged=198), ["2 games did not come back as they were"]),
        (replace(BACK, is_forgotten=False), ["a forgotten player came back"]),
        (replace(BACK, is_refused=False), ["another restore was not refused"]),
    ],
)
def test_a_store_that_was_lost(result: backup.Result, faults: list[str]) -> None:
    assert result.faults() == faults
    assert result.requirement()["met"] == (not faults)
    times, turns = backup.tables_of([result]).values()
    assert times[1] == ["redis", "200", "1.2", "5.0", "2.3", "6.5"]
    report = result.report
    assert turns[1][2:5] == [str(count) for count in (report.acknowledged, report.lost, report.lost_marked)]


# Rolling restarts


def run(exits: tuple[int, ...] = (0, 0), lame_duck: float = 5.0, **reports_of: Report) -> rolling.Run:
    kinds = {rolling.RETRYING: MEASURED, rolling.PLAIN: MEASURED}
    names = {"retrying": rolling.RETRYING, "plain": rolling.PLAIN, "other": rolling.OTHER}
    kinds |= {names[name]: one for name, one in reports_of.items()}
    return rolling.Run(lame_duck, exits, kinds)


FAILED = replace(MEASURED, failed_calls={"PlayTurn UNAVAILABLE": 2})


def test_restarts_without_a_failed_call() -> None:
    assert missed(run().requirements(1)) == []
    assert missed(run(lame_duck=0.0, plain=FAILED).requirements(1)) == []


@pytest.mark.parametrize(
    ("noticed", "measured"),
    [
        (run(exits=()), "0 restarts, 0 with an exit code other than 0"),
        (run(exits=(0, -9)), "2 restarts, 1 with an exit code other than 0"),
        (run(retrying=FAILED), "2 of 200"),
        (run(plain=FAILED), "2 of 200"),
        (run(lame_duck=0.0, retrying=FAILED), "2 of 200"),
        (run(lame_duck=0.0, other=FAILED), "2 of 200"),
        (run(other=LOST), f"3 lost ({rolling.OTHER})"),
        (run(plain=LOST), f"3 lost ({rolling.PLAIN})"),
        (run(plain=replace(MEASURED, watch_gaps=1)), f"1 gaps in watches ({rolling.PLAIN})"),
    ],
)
def test_restarts_that_hurt_callers(noticed: rolling.Run, measured: str) -> None:
    assert missed(noticed.requirements(1)) == [measured]


def test_restarts_that_nobody_notices_because_nobody_calls() -> None:
    wrong = missed(run(retrying=Report(), plain=Report()).requirements(1))
    assert "0 of 0" in wrong
    assert any("no turn was acknowledged" in one for one in wrong)


def test_no_restarts_are_no_drill() -> None:
    assert missed(run(exits=()).requirements(0)) == ["0 restarts, 0 with an exit code other than 0"]


# A part that fails


def broken_later(result: object, *, is_async: bool) -> Callable[..., object]:
    """Returns a function that returns a result at its first call, and fails later."""
    ahead = iter([result])

    def play(*_arguments: object) -> object:
        for one in ahead:
            return one
        raise ValueError("the second part is broken")

    async def play_async(*arguments: object, **_options: object) -> object:
        return play(*arguments)

    return play_async if is_async else play


@pytest.mark.parametrize("name", DRILLS)
def test_the_results_of_finished_parts_are_printed_and_kept(
    name: str, results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rolling, "check_envoy", lambda: None)
    module, part, result, arguments = {
        "backup": (backup, "lose", BACK, ["--quick"]),
        "cluster": (cluster, "play", cluster.Result(KILLED, 1, MEASURED), ["--quick"]),
        "flood": (flood, "flooded", flooded(), ["drafts", "lists"]),
        "rolling": (rolling, "rolling", run(), ["--restarts", "1"]),
        "upgrade": (upgrade, "rolling", run(), ["--installed", str(ROOT), "--from", "HEAD"]),
        "sentinel": (sentinel, "_play", sentinel.Result(SAFE, happened=True, report=MEASURED), ["--quick"]),
    }[name]
    monkeypatch.setattr(module, part, broken_later(result, is_async=name != "flood"))
    assert module.main(arguments) == 1
    kept = json.loads((results / f"{name}.json").read_text())
    assert any("the second part is broken" in measured for measured in missed(kept["requirements"]))
    table, *_ = module.tables_of([result]).values()
    assert table[1][0] in capsys.readouterr().out


# Floods

PHASES = ("alone", "begin elsewhere", "elsewhere", "begin", "beside", "after")


Kinds = Mapping[str, list[float]]


def flooded(
    others: Mapping[str, Kinds] | None = None,
    ends: Mapping[str, int] | None = None,
    error: str = "",
    refusals: Mapping[str, int] | None = None,
) -> flood.Result:
    """Returns the result of a flood of ten seconds: each honest call took 5 ms, unless its phase has other kinds."""
    usual = {"ValidateTurn": [5.0] * 200, "PlayTurn": [5.0] * 200, f"ValidateTurn{OWN_LISTENER}": [5.0] * 200}
    phases: dict[str, dict[str, Any]] = {
        name: {"milliseconds": {**usual, **(others or {}).get(name, {})}, "refusals": {}} for name in PHASES
    }
    phases["beside"]["refusals"] = refusals or {}
    return flood.Result("drafts", 10.0, {"OK": 1_000} if ends is None else ends, error, phases, {"cores": 0.5})


SLOW_IN_ONE_KIND = {"PlayTurn": [5.0] * 180 + [50.0] * 20}
"""A tenth of one kind of call takes ten times as long."""
SLOW_AT_OWN_LISTENER = {f"ValidateTurn{OWN_LISTENER}": [50.0] * 200}


def test_a_flood_that_honest_clients_do_not_notice() -> None:
    assert missed(flood.requirements_of([flooded()])) == []


@pytest.mark.parametrize(
    ("result", "measured"),
    [
        (flooded(ends={}), "drafts: 0 calls a second"),
        (flooded(ends={"UNAVAILABLE": 20}), "drafts: 2 calls a second"),
        (flooded(error="ConnectionError('no server')"), "drafts ended: ConnectionError('no server')"),
        (
            flooded(refusals={"PlayTurn: UNAVAILABLE OVERLOADED": 2}),
            "drafts: 2 x beside: PlayTurn: UNAVAILABLE OVERLOADED",
        ),
        (flooded({"beside": SLOW_IN_ONE_KIND}), "10.00 (drafts, main listener)"),
        (flooded({"beside": SLOW_AT_OWN_LISTENER}), "10.00 (drafts, own listener)"),
        (flooded({"begin": {"PlayTurn": [5.0] * 199 + [1_001.0]}}), "1,001 (drafts, main listener)"),
        (flooded({"beside": SLOW_IN_ONE_KIND, "after": SLOW_IN_ONE_KIND}), "10.00 (drafts, main listener)"),
    ],
)
def test_a_flood_that_is_none_or_hurts_honest_clients(result: flood.Result, measured: str) -> None:
    assert missed(flood.requirements_of([flooded(), result])) == [measured]


@pytest.mark.parametrize("without", ["alone", "elsewhere"])
def test_what_takes_as_long_without_the_flood_is_not_its_effect(without: str) -> None:
    assert missed(flood.requirements_of([flooded({"beside": SLOW_IN_ONE_KIND, without: SLOW_IN_ONE_KIND})])) == []


def test_the_beginning_is_compared_with_the_beginning_of_another_flood() -> None:
    slow = SLOW_AT_OWN_LISTENER
    assert missed(flood.requirements_of([flooded({"begin": slow, "begin elsewhere": slow})], is_quick=True)) == []
    assert missed(flood.requirements_of([flooded({"begin": slow, "elsewhere": slow})], is_quick=True)) != []


def test_a_quick_flood_is_over_before_its_calls_time_out() -> None:
    held = replace(flooded(ends={}), name="half-open")
    assert missed(flood.requirements_of([held], is_quick=True)) == []
    assert missed(flood.requirements_of([held])) == ["half-open: 0 calls a second"]


def test_a_flood_whose_server_ends_has_failed() -> None:
    ended = replace(flooded(), error="its server ended with status -9")
    assert missed(flood.requirements_of([ended]))[0].endswith("ended: its server ended with status -9")


def test_a_flood_that_does_not_fill_the_store_is_none() -> None:
    weak = replace(flooded(), name="store")
    assert missed(flood.requirements_of([weak])) == ["store: no call ended as RESOURCE_EXHAUSTED STORE_FULL"]
    full = replace(weak, ends={"OK": 1_000, "RESOURCE_EXHAUSTED STORE_FULL": 1})
    assert missed(flood.requirements_of([full])) == []


def test_a_flood_that_leaves_too_much_behind_fails() -> None:
    left = replace(flooded(), name="ready", bounds=[Bound("changes of a game", 3_829, 510)])
    assert missed(flood.requirements_of([left])) == ["ready: changes of a game: 3,829 (at most 510)"]
    _, rows = flood.tables_of([left]).values()
    assert rows[1] == ["ready", "1.00", "3", "0", "changes of a game", "3,829", "510"]


def test_the_p99_may_be_three_times_as_long_beside_calls_that_cost_nothing() -> None:
    slower = {"PlayTurn": [5.0] * 180 + [14.0] * 20}
    cheap = replace(flooded({"beside": slower}), name="ready")
    assert missed(flood.requirements_of([flooded(), cheap])) == []
    assert missed(flood.requirements_of([flooded({"beside": slower})])) == ["2.80 (drafts, main listener)"]


def test_too_few_honest_calls_are_no_measurement() -> None:
    few = {f"ValidateTurn{OWN_LISTENER}": [5.0] * 99}
    assert missed(flood.requirements_of([flooded({"alone": few})])) == ["99"]
    none: dict[str, list[float]] = {f"ValidateTurn{OWN_LISTENER}": []}
    assert "0" in missed(flood.requirements_of([flooded({"beside": none})]))


def test_a_quick_flood_is_judged_by_medians() -> None:
    assert missed(flood.requirements_of([flooded({"beside": SLOW_IN_ONE_KIND})], is_quick=True)) == []
    assert missed(flood.requirements_of([flooded({"beside": SLOW_AT_OWN_LISTENER})], is_quick=True)) != []


def test_a_flood_has_a_row_for_each_listener_and_figures_for_each_kind() -> None:
    [rows] = flood.tables_of([flooded({"beside": SLOW_AT_OWN_LISTENER})]).values()
    assert {len(row) for row in rows} == {len(rows[0])}
    assert [row[:7] for row in rows[1:]] == [
        ["drafts", "100", "main", "5.0", "5.0", "5.0", "1.00"],
        ["drafts", "100", "own", "5.0", "5.0", "50.0", "10.00"],
    ]
    assert set(flooded().as_json()["kinds"]["PlayTurn"]) == set(PHASES)
