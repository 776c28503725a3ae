"""Restarts two servers behind the web edge, one after the other, and counts what their callers notice.

Two servers share one Redis. Players and a validator with the client library, which repeats calls by itself, and others
with a plain client, which does not, call them through an Envoy with deploy/envoy.yaml. Each server is stopped with
SIGTERM and started again, the next one when the edge sees both healthy; once without a lame duck, and once with one.
`make drill ARGS=rolling`, or ARGS="rolling --quick" with one restart of each. Needs `make envoy`.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc.aio

from load.bench.figures import Tables, requirement
from load.drills.other_client import other_players
from load.drills.players import CALL_SECONDS, SETTINGS, Connect, Players, Report, plain_client, retrying_client
from load.drills.reports import finish
from load.parts import run_parts
from rummikub.v1 import validation_service_pb2 as vs
from tools.edge_config import Address, LocalEdge, local
from tools.redis_cluster import RedisCluster
from tools.redis_servers import RedisServer, running_redis
from tools.server_process import ServerProcess, server_process
from tools.servers import ROOT, free_port
from tools.web import WebError, check_envoy, collect_page, running_envoy, wait_until_ready

RESTARTS: Final = 10
LAME_DUCKS: Final = (0.0, 5.0)
GAMES: Final = 16
"""Games of each kind of client that are played at once, over one connection; each has a watcher."""
PAUSE_SECONDS: Final = 0.04
"""The longest pause of a caller between two calls."""
SETTLE_SECONDS: Final = 1.0
"""How long all callers run before the first restart and after the last one."""
HEALTHY_SECONDS: Final = 60.0
"""How long the edge may take to see both servers healthy."""
SERVERS: Final = 2
HOST: Final = "127.0.0.1"
TITLE: Final = f"{SERVERS} servers behind the web edge, restarted under load"
RETRYING: Final = "retries, request ids"
PLAIN: Final = "plain: no retries"
OTHER: Final = "retries, the other version's client"


KINDS: Final[dict[str, Connect]] = {RETRYING: retrying_client, PLAIN: plain_client}


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the servers: the folder to run them in, and settings that only it has."""

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)


PRESENT: Final = Version(ROOT)


@dataclass(frozen=True, slots=True)
class Run:
    """The result of some restarts: the report of each kind of callers, and the exit codes of the stopped servers."""

    lame_duck_seconds: float
    exits: Sequence[int]
    reports: dict[str, Report] = field(default_factory=dict)
    named: str = ""

    @property
    def name(self) -> str:
        """The name of the run in the report."""
        return self.named or f"lame duck {self.lame_duck_seconds:g} s"

    def as_json(self) -> dict[str, Any]:
        """Returns the values for a file."""
        kinds = {kind: report.as_json() for kind, report in self.reports.items()}
        return {"name": self.name, "lame_duck_seconds": self.lame_duck_seconds, "exits": self.exits, "kinds": kinds}

    def requirements(self, restarts: int) -> list[dict[str, Any]]:
        """Returns what has to hold: nothing fails for a client that retries, and nothing is lost for anyone."""
        wrong = [f"{fault} ({kind})" for kind, report in self.reports.items() for fault in report.faults()]
        failed = sum(code != 0 for code in self.exits)
        found = [
            requirement(
                f"each server restarts {restarts} times and ends in order, {self.name}",
                met=not failed and len(self.exits) == SERVERS * restarts > 0,
                measured=f"{len(self.exits)} restarts, {failed} with an exit code other than 0",
            ),
            *(self._no_failure(kind) for kind in self.reports if kind != PLAIN),
            requirement(
                f"no turn lost or doubled, no gap in a watch, {self.name}",
                met=not wrong,
                measured=", ".join(wrong) or f"{sum(report.acknowledged for report in self.reports.values()):,} turns",
            ),
        ]
        return [*found, self._no_failure(PLAIN)] if self.lame_duck_seconds else found

    def _no_failure(self, kind: str) -> dict[str, Any]:
        report = self.reports[kind]
        return requirement(
            f"no failed call of a client ({kind}), {self.name}",
            met=report.calls > 0 and not report.failed,
            measured=f"{report.failed:,} of {report.calls:,}",
        )


class Edge:
    """An Envoy before some servers, with its admin port.

    Args:
        services: The addresses of the servers.
        validations: Their addresses for ValidationService.
    """

    def __init__(self, services: Sequence[Address], validations: Sequence[Address]) -> None:
        self._upstreams = services, validations
        self._port, self._admin = free_port(), free_port()

    @property
    def target(self) -> str:
        """The address of the edge."""
        return f"{HOST}:{self._port}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs Envoy within the context."""
        with tempfile.TemporaryDirectory(prefix="rummikub-drill-") as folder:
            text = local(LocalEdge((HOST, self._port), *self._upstreams, page=collect_page(Path(folder))))
            text += f"\nadmin: {{address: {{socket_address: {{address: {HOST}, port_value: {self._admin}}}}}}}\n"
            with running_envoy(text, Path(folder)) as process:
                await asyncio.to_thread(wait_until_ready, process, HOST, self._port)
                yield

    async def sees_all_healthy(self) -> None:
        """Waits until Envoy would send calls to every server, at both of its addresses. Raises TimeoutError."""
        async with asyncio.timeout(HEALTHY_SECONDS):
            while not await asyncio.to_thread(self._all_healthy):  # noqa: ASYNC110 - Envoy sends no notification
                await asyncio.sleep(0.1)

    def _all_healthy(self) -> bool:
        url = f"http://{HOST}:{self._admin}/clusters?format=json"
        with urllib.request.urlopen(url, timeout=5) as answer:
            clusters = json.load(answer)["cluster_statuses"]
        statuses = [host["health_status"] for cluster in clusters for host in cluster.get("host_statuses", ())]
        healthy = {"eds_health_status": "HEALTHY"}
        return len(statuses) == 2 * SERVERS and all(status == healthy for status in statuses)


async def rolling(
    lame_duck_seconds: float,
    versions: Sequence[Version],
    store: Callable[[], AbstractContextManager[RedisServer | RedisCluster]] = running_redis,
    *,
    begin: Version = PRESENT,
    name: str = "",
) -> Run:
    """Restarts each server some times under load; returns what callers of both kinds noticed.

    Args:
        lame_duck_seconds: The lame duck of the servers.
        versions: The version of the servers after each round of restarts.
        store: Runs their store.
        begin: Their version before. If it is another one, more players use its client.
        name: The name of the run in the report; by default it names the lame duck.
    """
    async with contextlib.AsyncExitStack() as stack:
        redis = stack.enter_context(store())
        servers = []
        for _ in range(SERVERS):
            environment = {
                **SETTINGS,
                "RUMMIKUB_REDIS_URL": redis.url,
                "RUMMIKUB_LISTEN": f"{HOST}:{free_port()}",
                "RUMMIKUB_VALIDATION_LISTEN": f"{HOST}:{free_port()}",
                "RUMMIKUB_LAME_DUCK_SECONDS": str(lame_duck_seconds),
            }
            environment |= begin.settings
            servers.append(await stack.enter_async_context(server_process(environment, checkout=begin.folder)))
        edge = Edge([(HOST, server.port) for server in servers], [(HOST, server.validation_port) for server in servers])
        await stack.enter_async_context(edge.running())
        await edge.sees_all_healthy()
        players = {
            kind: await stack.enter_async_context(Players([edge.target], GAMES, PAUSE_SECONDS, connect))
            for kind, connect in KINDS.items()
        }
        others = {}
        if begin is not PRESENT:
            playing = other_players(edge.target, begin.folder, GAMES, PAUSE_SECONDS)
            others[OTHER] = await stack.enter_async_context(playing)
        validators = [asyncio.create_task(_validate(some)) for some in players.values()]
        await asyncio.sleep(SETTLE_SECONDS)
        exits = [await _restart(server, edge, version) for version in versions for server in servers]
        await asyncio.sleep(SETTLE_SECONDS)
        reports = {kind: await some.stop() for kind, some in players.items()}
        reports |= {kind: await stop() for kind, stop in others.items()}
        await asyncio.gather(*validators)
        return Run(lame_duck_seconds, exits, reports, name)


async def _restart(server: ServerProcess, edge: Edge, version: Version) -> int:
    """Stops a server and starts it again as a version; returns its exit code."""
    code = await server.terminate()
    server.checkout, server.settings = version.folder, version.settings
    await server.start_again()
    await edge.sees_all_healthy()
    return code


async def _validate(players: Players) -> None:
    """Validates turns until the players are stopped."""
    request = vs.ValidateTurnRequest(has_melded=True)
    while not players.is_stopping:
        with contextlib.suppress(grpc.aio.AioRpcError):
            await players.call(
                "ValidateTurn", lambda stubs: stubs.validation.ValidateTurn(request, timeout=CALL_SECONDS)
            )
        await asyncio.sleep(PAUSE_SECONDS)


def tables_of(runs: Sequence[Run], title: str = TITLE) -> Tables:
    """Returns the tables of a report."""
    head = ["client", "run", "calls", "failed", "p99 ms", "longest ms", "turns", "lost", "doubled", "watch gaps"]
    rows = [head]
    for run in runs:
        for kind, report in run.reports.items():
            counts = (report.acknowledged, report.lost, report.doubled, report.watch_gaps)
            rows.append(
                [
                    kind,
                    run.name,
                    *(f"{count:,}" for count in (report.calls, report.failed)),
                    *(f"{report.milliseconds.get(name, 0):,.0f}" for name in ("p99", "max")),
                    *(f"{count:,}" for count in counts),
                ]
            )
    return {title: rows}


def failures_of(runs: Sequence[Run]) -> list[str]:
    """Returns a line for each kind of failed call."""
    return [
        f"{kind}, {run.name}: {count} x {failure}"
        for run in runs
        for kind, report in run.reports.items()
        for failure, count in report.failed_calls.items()
    ]


def needs_envoy() -> None:
    """Ends the program with what to do if Envoy is missing."""
    try:
        check_envoy()
    except WebError as error:
        sys.exit(str(error))


def main(arguments: Sequence[str]) -> int:
    """Runs the drill and prints a table; returns 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(
        prog="rolling", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--restarts", type=int, default=RESTARTS, help=f"restarts of each server ({RESTARTS})")
    parser.add_argument(
        "--lame-duck", type=float, nargs="+", default=LAME_DUCKS, metavar="SECONDS", help="lame ducks to try (0 5)"
    )
    parser.add_argument("--quick", action="store_true", help="one restart of each server, without a lame duck")
    chosen = parser.parse_args(arguments)
    if chosen.quick:
        chosen.restarts, chosen.lame_duck = 1, LAME_DUCKS[:1]
    needs_envoy()
    began = time.monotonic()
    finished, errors = run_parts(
        lambda seconds: asyncio.run(rolling(seconds, [PRESENT] * chosen.restarts)),
        {f"lame duck {seconds:g} s": seconds for seconds in chosen.lame_duck},
    )
    runs = list(finished.values())
    report = {
        "seconds": time.monotonic() - began,
        "runs": [run.as_json() for run in runs],
        "requirements": [one for run in runs for one in run.requirements(chosen.restarts)],
    }
    is_complete = (chosen.restarts, tuple(chosen.lame_duck)) == (RESTARTS, LAME_DUCKS)
    return finish("rolling", report, tables_of(runs), failures_of(runs), errors=errors, is_complete=is_complete)
