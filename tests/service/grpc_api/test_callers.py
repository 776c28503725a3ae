"""Who may do what: the answer of every RPC to every kind of caller is in callers.toml, and no secret shows."""

from pathlib import Path

import pytest

from load.callers import CALLERS, GRANTED, answer_to, run, staged

pytestmark = pytest.mark.slow


async def test_every_rpc_answers_every_caller_as_stated_and_shows_no_secret(tmp_path: Path) -> None:
    _, report, _ = await run(tmp_path)
    assert {one["measured"] for one in report["requirements"] if not one["met"]} == set()


async def test_a_secret_in_the_log_in_metrics_or_in_spans_is_found(tmp_path: Path) -> None:
    async with staged(tmp_path) as scene:
        assert await answer_to(scene, "PlayTurn", CALLERS["the seat to move, the host"]) == GRANTED
        assert scene.leaks() == []
        scene.note(["rummikub.v1.TurnService/PlayTurn"])
        assert scene.leaks() == ["the log", "metrics", "spans"]
