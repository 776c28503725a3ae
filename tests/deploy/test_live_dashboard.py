"""The panels of the dashboard show values of real servers under load.

`make deploy-check ARGS="-n 0 -s -k live"` prints the values of every panel.
"""

import asyncio
import re
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import grpc
import grpc.aio
import pytest
from rich.console import Console
from rich.table import Table

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import validation_service_pb2 as vs
from service.app.identity import CODE_ALPHABET, CODE_LENGTH
from support.deployment import panels
from support.harness import Client, new_id, server_process
from support.prometheus import Prometheus, running_prometheus

pytestmark = pytest.mark.slow

Values: TypeAlias = list[tuple[dict[str, str], float]]

WITHOUT_EVENTS = {
    "Operations that did not succeed": "the store of the test does not fail",
    "Archived games": "the servers of the test have no archive",
    "Burn of the objectives": "promtool tests the rules that record it; this Prometheus has none",
}
"""Panels that may be empty, and why."""

NO_CODE = CODE_ALPHABET[0] * CODE_LENGTH
GUESSES = 2
"""Wrong join codes per minute that the server of the test allows."""
VARIABLES = {"$__rate_interval": "15s", "$namespace": ".*", "$instance": ".*"}


def query(expression: str) -> str:
    """Returns an expression as Grafana sends it."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert not re.search(r"\$\w", expression)
    return expression


async def play(client: Client) -> None:
    """Plays and watches games until cancelled, with a wrong call for each turn."""
    while True:
        game = await client.new_game()
        watch = client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id))
        await watch.read()
        while (seen := await game.see()).state == game_pb2.GAME_STATE_PLAYING and seen.pool_count:
            await game.draw()
            await watch.read()
            await client.validation.ListRulesets(vs.ListRulesetsRequest())
            with suppress(grpc.aio.AioRpcError):
                await client.games.JoinGame(gs.JoinGameRequest(join_code=NO_CODE, name="Eve", request_id=new_id()))
        watch.cancel()


async def shown(prometheus: Prometheus) -> dict[str, list[tuple[str, Values]]]:
    """Returns what each panel shows: its legends and values."""
    return {
        panel["title"]: [
            (target["legendFormat"], await prometheus.value(query(target["expr"]))) for target in panel["targets"]
        ]
        for panel in panels()
    }


def empty(values: dict[str, list[tuple[str, Values]]]) -> set[str]:
    """Returns the panels with a query that has no value, or none that is a number."""
    return {
        title
        for title, targets in values.items()
        if any(not series or all(value != value for _, value in series) for _, series in targets)  # noqa: PLR0124 - NaN
    }


def report(values: dict[str, list[tuple[str, Values]]]) -> None:
    """Prints the panels and their values."""
    table = Table("panel", "series", "value")
    for title, targets in values.items():
        for legend, series in targets or [("", [])]:
            for labels, value in series:
                text = re.sub(r"{{(\w+)}}", lambda found, of=labels: of.get(found[1], ""), legend)  # type: ignore[misc]
                table.add_row(title, text, f"{value:.4g}")
    Console(width=150).print(table)


async def test_every_panel_shows_values_of_servers_under_load(tmp_path: Path) -> None:
    settings = {"RUMMIKUB_REDIS_URL": "memory://", "RUMMIKUB_JOIN_GUESSES_PER_MINUTE": str(GUESSES)}
    async with server_process(settings) as game, server_process(settings) as other:
        channels = [grpc.aio.insecure_channel(server.target) for server in (game, other)]
        players = [asyncio.create_task(play(Client(channel))) for channel in channels]
        async with running_prometheus(tmp_path, [game.metrics_port, other.metrics_port]) as prometheus:
            values = await values_of_all_panels(prometheus, players)
        for player in players:
            player.cancel()
        await asyncio.gather(*players, return_exceptions=True)
        for channel in channels:
            await channel.close()
    report(values)
    assert not empty(values) - set(WITHOUT_EVENTS)


async def values_of_all_panels(
    prometheus: Prometheus, players: list[asyncio.Task[None]]
) -> dict[str, list[tuple[str, Values]]]:
    """Returns the values once every panel has one, or the last ones after a minute."""
    values = await shown(prometheus)
    with suppress(TimeoutError):
        async with asyncio.timeout(60):
            while empty(values) - set(WITHOUT_EVENTS):
                assert not any(player.done() for player in players), [player.exception() for player in players]
                await asyncio.sleep(0.5)
                values = await shown(prometheus)
    return values


def test_the_panels_that_may_be_empty_exist() -> None:
    assert set(WITHOUT_EVENTS) <= {panel["title"] for panel in panels()}


def test_a_query_has_only_variables_of_the_dashboard() -> None:
    assert all(query(target["expr"]) for panel in panels() for target in panel["targets"])
