"""The drill of a Redis Cluster finds out about turns that a cut-off primary loses."""

from dataclasses import replace

import pytest

from load.drills.cluster import SCENES, Plan, play

pytestmark = pytest.mark.slow

PLAN = Plan(turns=50, repetitions=1, slots=0, games=16)


async def test_each_turn_that_a_cut_off_primary_loses_is_told_to_its_player() -> None:
    scene = next(scene for scene in SCENES if scene.must_lose)
    result = await play(replace(scene, most_wait=60.0), PLAN)
    assert result.happened == 1
    assert result.report.lost > 0
    assert sum(result.report.lost_told.values()) == result.report.lost
    assert result.report.lost_told["STALE_STATE"] > 0
    assert result.faults(PLAN) == []
