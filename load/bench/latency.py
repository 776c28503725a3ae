"""Measures the latency of validation calls, alone and during searches on the same server.

A server in another process gets validation calls over gRPC at a steady rate, at each of its addresses. In every other
phase it also gets more requests for suggested turns than it has workers, in positions that are slow to search
(hostile.py). Phases alternate, so that other load on the machine affects both alike.
"""

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import grpc.aio
from google.protobuf.duration_pb2 import Duration
from rich.console import Console
from rich.progress import track
from rich.table import Table

from engine.melding.analysis import Situation
from engine.melding.melds import Meld, as_proposed
from engine.melding.solver import Budget, best_turn
from load.bench.figures import QUANTILES, are_met, print_requirements, printer, quantiles, requirement
from load.corpus.hostile import Hostile
from load.corpus.hostile import read as read_hostile
from load.corpus.positions import read as read_midgame
from load.messages import melds_to_send
from rummikub.v1 import analysis_service_pb2, meld_pb2, ruleset_pb2, validation_service_pb2
from support.conformance_messages import ruleset_of
from tools.games import Client, as_tiles
from tools.server_process import server_process

ALONE: Final = "alone"
BESIDE: Final = "beside searches"
MAIN: Final = "RUMMIKUB_LISTEN"
OWN: Final = "RUMMIKUB_VALIDATION_LISTEN"
CALLS_A_SECOND: Final = 100
PHASE_SECONDS: Final = 5.0
ROUNDS: Final = 6
QUICK_ROUNDS: Final = 2
SEARCHES: Final = 6
"""Concurrent requests for suggested turns: by default three times the workers of a server."""
SEARCH_TIME: Final = Duration(seconds=1)
PLAYS: Final = 60
MOST_RATIO: Final = 2.0
OWN_CONNECTION: Final = (("grpc.use_local_subchannel_pool", 1),)
ENVIRONMENT: Final = {"RUMMIKUB_REDIS_URL": "memory://", OWN: "127.0.0.1:0"}

Milliseconds = dict[str, dict[str, list[float]]]
"""The latencies of validation calls by address and by phase."""


def run(arguments: Sequence[str], results: Path) -> int:
    """Measures, prints and writes the report; returns 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(
        prog="load.bench latency", description="Measure the latency of validation during searches."
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds of phases, not {ROUNDS}")
    parser.add_argument("--full", action="store_true", help=f"{2 * ROUNDS} rounds")
    chosen = parser.parse_args(arguments)
    rounds = QUICK_ROUNDS if chosen.quick else 2 * ROUNDS if chosen.full else ROUNDS
    console = printer()
    milliseconds, searches = asyncio.run(_measured(rounds, console))
    report = _report(milliseconds, searches)
    results.write_text(json.dumps(report, indent=2) + "\n")
    _print(report, console)
    console.print(f"All figures: {results}", highlight=False)
    return 0 if are_met(report) else 1


# Calls


def _plays() -> list[validation_service_pb2.ValidateTurnRequest]:
    """Returns requests with turns of games."""
    found = []
    for recorded in read_midgame():
        situation = recorded.situation
        turn = best_turn(situation, budget=Budget(nodes=2_000)).turn if situation.has_melded else None
        if turn:
            found.append(
                validation_service_pb2.ValidateTurnRequest(
                    ruleset=ruleset_pb2.Ruleset(geometry_jokers=situation.ruleset.geometry_jokers),
                    table_before=_table(situation.table, situation),
                    table_after=_table(turn.table, situation),
                    rack=as_tiles(situation.rack),
                    has_melded=True,
                )
            )
        if len(found) == PLAYS:
            break
    return found


def _table(melds: Sequence[Meld], situation: Situation) -> list[meld_pb2.Meld]:
    return melds_to_send(as_proposed(meld, situation.ruleset) for meld in melds)


def question(hostile: Hostile) -> analysis_service_pb2.SuggestTurnRequest:
    """Returns the request for the best turn of a hostile position."""
    situation = hostile.situation
    return analysis_service_pb2.SuggestTurnRequest(
        position=analysis_service_pb2.Position(
            ruleset=ruleset_of(hostile.options),
            table=_table(situation.table, situation),
            rack=as_tiles(situation.rack),
            has_melded=situation.has_melded,
            river=as_tiles(situation.river),
        ),
        time_limit=SEARCH_TIME,
    )


# Measurement


async def _measured(rounds: int, console: Console) -> tuple[Milliseconds, int]:
    """Returns the latencies, and the number of answered searches."""
    plays, questions = cycle(_plays()), [question(hostile) for hostile in read_hostile()]
    milliseconds: Milliseconds = {address: {ALONE: [], BESIDE: []} for address in (MAIN, OWN)}
    searches = 0
    async with (
        server_process(ENVIRONMENT) as server,
        grpc.aio.insecure_channel(server.target, OWN_CONNECTION) as channel,
        grpc.aio.insecure_channel(server.validation_target, OWN_CONNECTION) as own_channel,
        grpc.aio.insecure_channel(server.target, OWN_CONNECTION) as other_channel,
    ):
        clients, searcher = {MAIN: Client(channel), OWN: Client(own_channel)}, Client(other_channel)
        async with _searching(searcher, questions):
            for client in clients.values():
                await _phase(client, plays, seconds=2.0)  # warms up the caches
        for _ in track(range(rounds), "Measuring", console=console):
            for address, client in clients.items():
                milliseconds[address][ALONE] += await _phase(client, plays, PHASE_SECONDS)
            async with _searching(searcher, questions) as answered:
                for address, client in clients.items():
                    await _phase(client, plays, seconds=0.5)
                    milliseconds[address][BESIDE] += await _phase(client, plays, PHASE_SECONDS)
            searches += len(answered)
    return milliseconds, searches


async def _phase(
    client: Client, plays: "cycle[validation_service_pb2.ValidateTurnRequest]", seconds: float
) -> list[float]:
    """Returns the milliseconds of calls at a steady rate. A delayed call counts from its due time."""
    calls = [
        asyncio.create_task(_call(client, next(plays), place / CALLS_A_SECOND))
        for place in range(round(seconds * CALLS_A_SECOND))
    ]
    return await asyncio.gather(*calls)


async def _call(client: Client, play: validation_service_pb2.ValidateTurnRequest, wait: float) -> float:
    due = time.perf_counter() + wait
    await asyncio.sleep(wait)
    answer = await client.validation.ValidateTurn(play)
    if answer.violations:
        raise AssertionError(f"a turn of the solver is refused: {answer.violations[0]}")
    return (time.perf_counter() - due) * 1e3


@contextlib.asynccontextmanager
async def _searching(
    client: Client, questions: Sequence[analysis_service_pb2.SuggestTurnRequest]
) -> AsyncIterator[list[None]]:
    """Keeps the server's workers busy; collects the answers."""
    answered: list[None] = []
    ahead = cycle(questions)

    async def ask() -> None:
        while True:
            await client.analysis.SuggestTurn(next(ahead))
            answered.append(None)

    searches = [asyncio.create_task(ask()) for _ in range(SEARCHES)]
    try:
        yield answered
    finally:
        failed = [search.exception() for search in searches if search.done() and not search.cancelled()]
        for search in searches:
            search.cancel()
        await asyncio.gather(*searches, return_exceptions=True)
    if failed:
        raise AssertionError(f"a search failed: {failed[0]}")


# The report


def _report(milliseconds: Milliseconds, searches: int) -> dict[str, Any]:
    addresses = {address: _figures(phases) for address, phases in milliseconds.items()}
    return {
        "calls_a_second": CALLS_A_SECOND,
        "searches": searches,
        "addresses": addresses,
        "requirements": [
            requirement(
                f"{address}: p99 beside searches at most {MOST_RATIO:.0f} times as long as alone",
                met=figures["ratios"]["p99"] <= MOST_RATIO,
                measured=f"{figures['ratios']['p99']:.2f}",
            )
            for address, figures in addresses.items()
        ],
    }


def _figures(milliseconds: dict[str, list[float]]) -> dict[str, Any]:
    phases = {name: quantiles(values) for name, values in milliseconds.items()}
    return {
        "calls": {name: len(values) for name, values in milliseconds.items()},
        "milliseconds": phases,
        "ratios": {name: phases[BESIDE][name] / phases[ALONE][name] for name in QUANTILES},
    }


def _print(report: dict[str, Any], console: Console) -> None:
    table = Table(title=f"Milliseconds a validation call, {report['calls_a_second']} a second")
    for name in ("at", "", "calls", *QUANTILES):
        table.add_column(name, justify="left" if name in {"at", ""} else "right", no_wrap=name in {"at", ""})
    for address, figures in report["addresses"].items():
        for name, times in figures["milliseconds"].items():
            row = (str(figures["calls"][name]), *(f"{value:.2f}" for value in times.values()))
            table.add_row(address if name == ALONE else "", name, *row)
        table.add_row("", "ratio", "", *(f"{value:.2f}" for value in figures["ratios"].values()))
        table.add_section()
    console.print(table)
    console.print(f"{report['searches']} searches were answered meanwhile.", highlight=False)
    print_requirements(report, console)
