"""Measures what replicas, TLS and the web edge add to a PlayTurn: latency, calls a second, and CPU.

Servers in processes of their own share one Redis with a replica, over TCP and with appendfsync always. Each gets copies
of the same games and the same turns in alternating slices, so that other load on the machine affects all alike. The
edge is an Envoy before the server without anything else.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
from rich.console import Console

from load.bench.figures import Size, requirement, run_facts, told_of_run
from load.bench.measured_servers import SERVICE_SETTINGS, MeasuredServer, cpu_seconds_of, ready, serving
from load.bench.play import CLIENTS, PLAY_TURN, RULESET, Server, Shelf, Template
from load.calls import OWN_CONNECTION
from load.corpus.recorded_turns import rounds
from support.certificates import self_signed
from tools.edge_config import LocalEdge, local
from tools.redis_servers import HOST, redis_version, running_redis
from tools.servers import free_port
from tools.web import check_envoy, collect_page, running_envoy, wait_until_ready

GAMES: Final = 14
ONE_BY_ONE: Final = 2
"""Games whose turns are sent one after the other."""
ROUNDS: Final = 8
QUICK_ROUNDS: Final = 1
PLAIN, WAIT, TLS, EDGE = "nothing", "`RUMMIKUB_REDIS_REPLICAS=1`", "TLS", "the web edge"
COLUMNS: Final = {
    "ms": "ms, one at a time",
    "a_second": f"calls/s, {CLIENTS} at once",
    "us": "server's CPU, us",
    "edge_us": "edge's CPU, us",
}

Costs = dict[str, dict[str, list[float]]]
"""A value for each round, by variant and by column."""


def measure(size: Size, _console: Console) -> dict[str, Any]:
    """Returns the report."""
    check_envoy()
    began = time.monotonic()
    costs = asyncio.run(_measured(size.choose(QUICK_ROUNDS, ROUNDS, ROUNDS)))
    return report_of(costs, time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class _Variant:
    """A server with the channel to it, and the process of the edge between them."""

    server: Server
    edge_pid: int = 0

    async def send(self, games: Sequence[Sequence[Any]]) -> tuple[list[float], dict[str, float]]:
        """Sends turns; returns the milliseconds of each, and its share of the time and of the CPU."""
        pids = {"us": self.server.pid, **({"edge_us": self.edge_pid} if self.edge_pid else {})}
        before = {name: cpu_seconds_of(pid) for name, pid in pids.items()}
        started = time.perf_counter()
        milliseconds = await self.server.send(PLAY_TURN, games)
        seconds, calls = time.perf_counter() - started, len(milliseconds)
        cpu = {name: (cpu_seconds_of(pid) - before[name]) / calls * 1e6 for name, pid in pids.items()}
        return milliseconds, {"a_second": calls / seconds, **cpu}


async def _measured(times: int) -> Costs:
    async with AsyncExitStack() as stack:
        options = ("--appendfsync", "always", "--repl-diskless-sync-delay", "0", "--min-replicas-to-write", "1")
        redis = stack.enter_context(running_redis(*options, port=free_port()))
        stack.enter_context(running_redis(*options, port=free_port())).become_replica_of(redis)
        shelf = Shelf(redis.url)
        stack.push_async_callback(shelf.close)
        await shelf.open()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rummikub-bench-")))
        variants = await stack.enter_async_context(_variants(redis.tcp_url, folder))
        templates = [await shelf.template(next(iter(rounds(seed, RULESET, shelf.now_ms)))) for seed in range(GAMES)]
        return await _costs(times, shelf, templates, variants)


@asynccontextmanager
async def _variants(url: str, folder: Path) -> AsyncIterator[dict[str, _Variant]]:
    self_signed(folder, f"IP:{HOST}")
    certificate = folder / "cert.pem"
    base = {**SERVICE_SETTINGS, "RUMMIKUB_REDIS_URL": url, "RUMMIKUB_LOG_LEVEL": "warning", "RUMMIKUB_PEER_SHARE": "1"}
    settings = {
        PLAIN: base,
        WAIT: {**base, "RUMMIKUB_REDIS_REPLICAS": "1"},
        TLS: {**base, "RUMMIKUB_TLS_CERT": str(certificate), "RUMMIKUB_TLS_KEY": str(folder / "key.pem")},
    }
    async with AsyncExitStack() as stack:
        processes = {name: stack.enter_context(serving("service", settings=one)) for name, one in settings.items()}
        servers = {name: await asyncio.to_thread(ready, process) for name, process in processes.items()}
        port, pid = free_port(), servers[PLAIN].processes[0]
        upstreams = ([_address(servers[PLAIN].main)], [_address(servers[PLAIN].validation)])
        edge = local(LocalEdge((HOST, port), *upstreams, page=collect_page(folder)))
        envoy = stack.enter_context(running_envoy(edge, folder))
        await asyncio.to_thread(wait_until_ready, envoy, HOST, port)
        credentials = grpc.ssl_channel_credentials(certificate.read_bytes())
        channels = {name: grpc.aio.insecure_channel(servers[name].main, OWN_CONNECTION) for name in (PLAIN, WAIT)}
        channels[TLS] = grpc.aio.secure_channel(servers[TLS].main, credentials, OWN_CONNECTION)
        channels[EDGE] = grpc.aio.insecure_channel(f"{HOST}:{port}", OWN_CONNECTION)
        for channel in channels.values():
            await stack.enter_async_context(channel)
        yield {name: _Variant(_server(servers[name], channels[name])) for name in settings} | {
            EDGE: _Variant(Server(pid, channels[EDGE]), envoy.pid)
        }


def _server(server: MeasuredServer, channel: grpc.aio.Channel) -> Server:
    return Server(server.processes[0], channel)


def _address(target: str) -> tuple[str, int]:
    host, _, port = target.rpartition(":")
    return host, int(port)


async def _costs(times: int, shelf: Shelf, templates: Sequence[Template], variants: Mapping[str, _Variant]) -> Costs:
    costs: Costs = {name: {column: [] for column in COLUMNS} for name in variants}
    names = list(variants)
    for number in range(times + 1):  # the first round warms up
        for place in range(len(names)):
            name = names[(place + number) % len(names)]
            alone = []
            for game in await shelf.copies(templates, ONE_BY_ONE):
                alone += (await variants[name].send([game]))[0]
            _, shares = await variants[name].send(await shelf.copies(templates, GAMES))
            if number:
                for column, value in {"ms": statistics.median(alone), **shares}.items():
                    costs[name][column].append(value)
    return costs


def report_of(costs: Costs, seconds: float) -> dict[str, Any]:
    """Returns the report of measured costs."""
    medians = {
        name: {column: statistics.median(values) for column, values in columns.items() if values}
        for name, columns in costs.items()
    }
    return {
        **run_facts("grpcio"),
        "store": redis_version(),
        "seconds": seconds,
        "rounds": len(costs[PLAIN]["ms"]),
        "medians": medians,
        "requirements": [
            requirement(
                "changes share a WAIT: at least half of the calls a second",
                met=medians[WAIT]["a_second"] >= medians[PLAIN]["a_second"] / 2,
                measured=f"{medians[WAIT]['a_second'] / medians[PLAIN]['a_second']:.2f}",
            )
        ],
    }


def tables_of(report: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """Returns the tables of a report."""
    plain = report["medians"][PLAIN]
    rows = []
    for name, medians in report["medians"].items():
        rows.append(
            [
                name,
                f"{medians['ms']:.2f}",
                f"{medians['a_second']:,.0f}",
                f"{medians['us']:.0f}",
                f"{medians['us'] / plain['us']:.2f}",
                f"{medians['edge_us']:.0f}" if "edge_us" in medians else "",
            ]
        )
    *columns, edge = COLUMNS.values()
    return {"A PlayTurn with what a deployment adds (medians)": [["added", *columns, "ratio", edge], *rows]}


def told_of(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns sentences on the conditions of the measurement."""
    return (*told_of_run(report), f"{report['store']}, {report['rounds']} rounds")
