"""The floods of calls that cost their sender nothing: each makes its calls, and what it leaves behind is measured."""

import asyncio
from collections.abc import Iterator

import pytest

from load.bench.measured_servers import MeasuredServer
from load.drills import flood
from load.floods import cheap_attacks
from load.floods.aftermath import Aftermath
from load.floods.attack import Attack
from load.floods.attacks import FLOODS
from tools.redis_servers import RedisServer
from tools.servers import ROOT

pytestmark = pytest.mark.slow

CALLS = 60
SECONDS = 120
"""For a busy machine."""


@pytest.fixture
def served(name: str) -> Iterator[tuple[RedisServer, MeasuredServer]]:
    with flood.flooded_server(FLOODS[name], ROOT) as (store, server, _):
        yield store, server


@pytest.mark.parametrize(
    ("name", "ends", "left"),
    [
        ("ready", {"OK"}, {"changes of an attacked game", "its size in the store, KB"}),
        (
            "renewals",
            {"OK"},
            {"memos of the attacked game", "sightings of its players", "CPU of one GetGame of it, ms"},
        ),
        ("store", {"OK"}, set()),
        ("revisions", {"OK"}, set()),
        ("compressed", {"INVALID_ARGUMENT FIELD_INVALID"}, {"the server's most memory, MB"}),
    ],
)
async def test_a_flood_of_calls_that_cost_nothing(
    name: str,
    ends: set[str],
    left: set[str],
    served: tuple[RedisServer, MeasuredServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cheap_attacks, "REVISIONS", 250)
    monkeypatch.setattr(cheap_attacks, "EMPTY", 1_000)
    store, server = served
    attack, chosen = Attack(server.main, server.validation), FLOODS[name]
    attacking = asyncio.ensure_future(chosen.run(attack))
    async with asyncio.timeout(SECONDS):
        while attack.ends.total() < CALLS and not attacking.done():  # noqa: ASYNC110 - a flood notifies nobody
            await asyncio.sleep(0.01)
    assert not attacking.done()
    attacking.cancel()
    await asyncio.gather(attacking, return_exceptions=True)
    assert attack.begun.is_set() == chosen.prepares
    assert ends <= set(attack.ends)
    bounds = chosen.measure(Aftermath(server, store, 150.0, attack.notes))
    assert {bound.what for bound in bounds} == left
    assert not bounds or bounds[0].measured > 0


@pytest.mark.soak
def test_a_flood_beside_honest_callers_of_some_kinds() -> None:
    result = flood.flooded("store", 1.0, 1.0, 1.0, ROOT)
    assert result.error == ""
    assert result.calls_a_second > 0
    assert "PlayTurn" in result.phases["beside"]["milliseconds"]
    assert "CreateGame" not in result.phases["beside"]["milliseconds"]
