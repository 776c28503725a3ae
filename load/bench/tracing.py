"""Measures what traces cost: the server's CPU for a PlayTurn and a ValidateTurn with tracing off, on, and sampled.

Three servers in processes of their own share one Redis. Each gets copies of the same games and the same turns in
alternating slices, so that other load on the machine affects all alike. A collector in the benchmark's process receives
the spans.
"""

import asyncio
import statistics
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from itertools import islice
from typing import Any, Final

import grpc.aio
from rich.console import Console

from load.bench.figures import Size, requirement
from load.bench.measured_servers import SERVICE_SETTINGS, MeasuredServer, ready, serving
from load.bench.play import PLAY_TURN, RULESET, Call, Server, Shelf, Template
from load.calls import OWN_CONNECTION
from load.corpus.recorded_turns import rounds
from load.corpus.turns import read as read_turns
from load.messages import to_send
from support.collector import Collector, running_collector
from tools.redis_servers import RedisServer, running_redis

VALIDATE_TURN: Final = "/rummikub.v1.ValidationService/ValidateTurn"
GAMES: Final = 14
VALIDATIONS: Final = 2_000
ROUNDS: Final = 12
QUICK_ROUNDS: Final = 3
MOST_WITH_SAMPLES: Final = 1.25
OFF, ON, SAMPLED = "off", "on", "on, 1 % sampled"
SAMPLING: Final = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"}
CALLS: Final = {"PlayTurn": PLAY_TURN, "ValidateTurn, own listener": VALIDATE_TURN}

Costs = dict[str, dict[str, list[float]]]
"""Microseconds of CPU a call, by call and by kind of tracing, one for each round."""


def measure(size: Size, _console: Console) -> dict[str, Any]:
    """Returns the report."""
    return asyncio.run(_measured(size.choose(QUICK_ROUNDS, ROUNDS, ROUNDS)))


@asynccontextmanager
async def _servers(redis: RedisServer, collector: Collector) -> AsyncIterator[dict[str, MeasuredServer]]:
    base = {**SERVICE_SETTINGS, "RUMMIKUB_REDIS_URL": redis.url, "RUMMIKUB_LOG_LEVEL": "warning"}
    exported = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.environment["OTEL_EXPORTER_OTLP_ENDPOINT"]}
    kinds = {OFF: base, ON: base | exported, SAMPLED: base | exported | SAMPLING}
    async with AsyncExitStack() as stack:
        started = {name: stack.enter_context(serving("service", settings=kind)) for name, kind in kinds.items()}
        yield {name: await asyncio.to_thread(ready, process) for name, process in started.items()}


async def _measured(times: int) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(running_redis())
        shelf = Shelf(redis.url)
        stack.push_async_callback(shelf.close)
        await shelf.open()
        collector = await stack.enter_async_context(running_collector())
        servers = await stack.enter_async_context(_servers(redis, collector))
        senders = {
            name: {
                PLAY_TURN: Server(one.processes[0], await stack.enter_async_context(_channel(one.main))),
                VALIDATE_TURN: Server(one.processes[0], await stack.enter_async_context(_channel(one.validation))),
            }
            for name, one in servers.items()
        }
        templates = [await shelf.template(next(iter(rounds(seed, RULESET, shelf.now_ms)))) for seed in range(GAMES)]
        return await _costs(times, shelf, templates, senders, collector)


def _channel(target: str) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(target, OWN_CONNECTION)


async def _costs(
    times: int,
    shelf: Shelf,
    templates: Sequence[Template],
    senders: Mapping[str, Mapping[str, Server]],
    collector: Collector,
) -> dict[str, Any]:
    turns = [to_send(turn).turn.SerializeToString() for turn in islice(read_turns(), 200)]
    validations: list[list[Call]] = [
        [Call(turns[(start + place) % len(turns)]) for place in range(50)] for start in range(0, VALIDATIONS, 50)
    ]
    costs: Costs = {name: {kind: [] for kind in senders} for name in CALLS}
    spans = 0
    names = list(senders)
    for number in range(times + 1):  # the first round warms up
        for place in range(len(names)):
            kind = names[(place + number) % len(names)]
            for name, path in CALLS.items():
                games = await shelf.copies(templates, GAMES) if path == PLAY_TURN else validations
                server = senders[kind][path]
                before = server.cpu_seconds
                sent = await server.send(path, games)
                if number:
                    costs[name][kind].append((server.cpu_seconds - before) / len(sent) * 1e6)
            spans += len(collector.spans)
            collector.spans.clear()
    return _report(costs, spans)


def _report(costs: Costs, spans: int) -> dict[str, Any]:
    ratios = {
        name: {
            kind: statistics.median(cost / off for cost, off in zip(of_kind, by_kind[OFF], strict=True))
            for kind, of_kind in by_kind.items()
        }
        for name, by_kind in costs.items()
    }
    return {
        "versions": {
            "python": sys.version.split()[0],
            **{name: version(name) for name in ("grpcio", "opentelemetry-sdk")},
        },
        "rounds": len(costs["PlayTurn"][OFF]),
        "spans": spans,
        "microseconds": costs,
        "ratios": ratios,
        "requirements": [
            requirement(
                f"a server that samples 1 % of its traces: at most {MOST_WITH_SAMPLES} times the CPU of one without "
                "tracing (PlayTurn)",
                met=ratios["PlayTurn"][SAMPLED] <= MOST_WITH_SAMPLES,
                measured=f"{ratios['PlayTurn'][SAMPLED]:.2f}",
            ),
            requirement("spans arrive at the collector", met=spans > 0, measured=f"{spans:,}"),
        ],
    }


def tables_of(report: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """Returns the tables of a report."""
    head = ["", *(f"{kind}{column}" for kind in (OFF, ON, SAMPLED) for column in ("", ", ratio"))]
    head.remove(f"{OFF}, ratio")
    rows = []
    for name, by_kind in report["microseconds"].items():
        row = [name]
        for kind, costs in by_kind.items():
            row.append(f"{statistics.median(costs):.0f}")
            if kind != OFF:
                row.append(f"{report['ratios'][name][kind]:.2f}")
        rows.append(row)
    return {"Tracing: microseconds of CPU a call (medians)": [head, *rows]}


def told_of(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns sentences on the conditions of the measurement."""
    versions = ", ".join(f"{name} {value}" for name, value in report["versions"].items())
    return (versions, f"{report['rounds']} rounds; {report['spans']:,} spans received")
