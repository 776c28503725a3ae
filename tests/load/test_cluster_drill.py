"""The drill of a Redis Cluster: what it finds out about turns that a cut-off primary loses."""

from load.drills.cluster import Plan, Result, drill, table, told
from load.drills.players import Report


async def test_each_turn_that_a_cut_off_primary_loses_is_told_to_its_player() -> None:
    [result] = await drill(Plan(turns=50, repetitions=1, slots=0, games=16), ["cut off"])
    assert result.replicas == 0
    assert result.report.lost > 0
    assert sum(result.report.lost_told.values()) == result.report.lost
    assert result.report.lost_told["STALE_STATE"] > 0
    assert result.has_passed


def test_a_loss_that_is_not_told_fails_the_drill() -> None:
    report = Report(lost=3, lost_told={"STALE_STATE": 2}, lost_unnoticed=1)
    result = Result("cut off", replicas=0, may_lose=True, report=report)
    assert not result.has_passed
    assert table([result]).splitlines()[-1] == "cut off: each told as STALE_STATE: 2 of 3"


def test_lost_games_are_counted_apart() -> None:
    report = Report(lost=3, lost_told={"STALE_STATE": 2, "GAME_NOT_FOUND": 1})
    assert told(report) == "each told as STALE_STATE: 2 of 3, as GAME_NOT_FOUND: 1"
