"""Measures the rules alone, in this process, without gRPC: microseconds of CPU for a turn, a meld and a table.

It judges the turns of the validation benchmark with the fast judge, called with melds as bytes as the service does,
with the plain rules, and from the bytes of a request to the bytes of its answer. Requirements assume a machine where a
stock no-op call costs 150 us: that call is measured in between, and limits scale with it.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import track

from engine.melding.fast.fast_judge import FastJudge
from engine.melding.fast.fast_play import PlayerState
from engine.melding.fast.read_melds import CacheBudget, melds_by_key
from engine.melding.melds import ProposedMeld, read_meld
from engine.melding.rules import judge
from load.bench.figures import are_met, cpu_model, print_report, printer, requirement
from load.bench.measured_servers import ready, serving
from load.bench.noop_server import STOCK
from load.bench.validation import turn_load
from load.bench.validation_loads import generator
from load.bench.validation_report import CLIENTS, spread
from load.bench.validation_turns import RULESET, MeasuredTurn, Turns, batch_request, read
from rummikub.v1 import meld_pb2
from service.codec import fields, raw_messages, tiles
from service.grpc_api.turn_validator import Validator
from service.runtime.slow_calls import completed

ROUNDS: Final = 20
QUICK_ROUNDS: Final = 5
FULL_ROUNDS: Final = 100
STOCK_CALLS: Final = 500
REFERENCE_US: Final = 150.0
"""The CPU time of a stock no-op call on the reference machine."""
LEGAL: Final = "legal turn, fast judge"
MELD: Final = "meld, fast judge"
LIMITS_US: Final = {LEGAL: 10.0, MELD: 0.5}

Work = Callable[[], object]
Question = tuple[Sequence[bytes], Sequence[bytes], PlayerState]


def run(arguments: Sequence[str], results: Path) -> int:
    """Measures, prints and writes the report; returns 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(prog="load.bench engine", description="Measure the CPU time of the rules alone.")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds, not {ROUNDS}")
    parser.add_argument("--full", action="store_true", help=f"{FULL_ROUNDS} rounds")
    chosen = parser.parse_args(arguments)
    rounds = QUICK_ROUNDS if chosen.quick else FULL_ROUNDS if chosen.full else ROUNDS
    console = printer()
    turns = read()
    microseconds, stock = _measured(turns, rounds, console)
    report = report_of(microseconds, stock)
    results.write_text(json.dumps(report, indent=2) + "\n")
    print_report(report, tables_of(report), told_of(report), console)
    console.print(f"All figures: {results}", highlight=False)
    return 0 if are_met(report) else 1


# Measurement


def works(turns: Turns) -> dict[str, tuple[Work, int]]:
    """Returns the measured operations by name, each with the number of turns, melds or tables that it handles.

    Each run of the plain rules gets a fresh copy of a play (`replace`), because a play caches its facts.
    """
    fast_judge, validation = FastJudge(RULESET, melds_by_key(_proposed)(RULESET, CacheBudget())), Validator()
    legal, illegal = _questions(turns.legal), _questions(turns.illegal)
    tables = [after for _, after, _ in legal]
    melds = [meld for table in tables for meld in table]
    proposed = [meld for turn in turns.legal for meld in turn.play.table_after]
    legal_bytes = [turn.request.SerializeToString() for turn in turns.legal]
    illegal_bytes = [turn.request.SerializeToString() for turn in turns.illegal]
    melds_bytes = [turn.melds.SerializeToString() for turn in turns.legal]
    legal_batch, illegal_batch = (batch_request(some).SerializeToString() for some in (turns.legal, turns.illegal))
    return {
        LEGAL: (lambda: [fast_judge.judge(*question) for question in legal], len(legal)),
        "illegal turn, fast judge": (lambda: [fast_judge.judge(*question) for question in illegal], len(illegal)),
        "legal turn, plain rules": (lambda: [judge(replace(turn.play)) for turn in turns.legal], len(legal)),
        "illegal turn, plain rules": (lambda: [judge(replace(turn.play)) for turn in turns.illegal], len(illegal)),
        MELD: (lambda: [fast_judge.read(table) for table in tables], len(melds)),
        "meld, plain rules": (lambda: [read_meld(meld, RULESET) for meld in proposed], len(proposed)),
        "table, fast judge": (lambda: [fast_judge.read(table) for table in tables], len(tables)),
        "legal turn, bytes to bytes": (lambda: list(map(validation.validate_turn, legal_bytes)), len(legal)),
        "illegal turn, bytes to bytes": (lambda: list(map(validation.validate_turn, illegal_bytes)), len(illegal)),
        "legal turn, at once": (lambda: list(map(validation.turn_at_once, legal_bytes)), len(legal)),
        "illegal turn, at once": (lambda: list(map(validation.turn_at_once, illegal_bytes)), len(illegal)),
        "legal turn of a batch": (lambda: completed(validation.batch(legal_batch)), len(legal)),
        "illegal turn of a batch": (lambda: completed(validation.batch(illegal_batch)), len(illegal)),
        "table, bytes to bytes": (lambda: list(map(validation.validate_melds, melds_bytes)), len(tables)),
    }


def _questions(turns: Sequence[MeasuredTurn]) -> list[Question]:
    """Returns turns as the service passes them to the fast judge: both tables, a meld as bytes, and the player."""
    questions: list[Question] = []
    for turn in turns:
        sent = raw_messages.parse_turn(turn.request.SerializeToString())
        player = PlayerState(tuple(sorted(turn.play.rack)), turn.play.has_melded)
        questions.append((list(sent.table_before), list(sent.table_after), player))
    return questions


def _proposed(data: bytes) -> ProposedMeld:
    return tiles.melds([fields.decode(meld_pb2.Meld, data)], "meld")[0]


def _measured(turns: Turns, rounds: int, console: Console) -> tuple[dict[str, list[float]], list[float]]:
    """Returns the microseconds of each round by operation, and those of a stock no-op call."""
    to_do = works(turns)
    microseconds: dict[str, list[float]] = {name: [] for name in to_do}
    stock = []
    load = turn_load(turns.legal[0])
    with generator() as making_calls, serving("load.bench.noop_server", STOCK) as process:
        server = ready(process)
        making_calls.send(server.main, load, STOCK_CALLS, CLIENTS)
        for work, _ in to_do.values():
            work()  # warms up the caches
        for _ in track(range(rounds), "Measuring", console=console):
            for name, (work, count) in to_do.items():
                started = time.thread_time()
                work()
                microseconds[name].append((time.thread_time() - started) / count * 1e6)
            before = server.cpu_seconds()
            making_calls.send(server.main, load, STOCK_CALLS, CLIENTS)
            stock.append((server.cpu_seconds() - before) / STOCK_CALLS * 1e6)
    return microseconds, stock


# The report


def report_of(microseconds: dict[str, list[float]], stock: list[float]) -> dict[str, Any]:
    """Returns figures and requirements. Minima are compared, because the machine's other load disturbs them least."""
    scale = min(stock) / REFERENCE_US
    return {
        "versions": {"python": sys.version.split()[0]},
        "machine": cpu_model(),
        "microseconds": {name: spread(values) for name, values in microseconds.items()},
        "stock_noop_us": spread(stock),
        "requirements": [
            requirement(
                f"a {name}: at most {limit:g} us where a stock no-op costs {REFERENCE_US:.0f} us",
                met=min(microseconds[name]) <= limit * scale,
                measured=f"{min(microseconds[name]):.2f} us where it costs {min(stock):.0f} us, so "
                f"{min(microseconds[name]) / scale:.2f} us",
            )
            for name, limit in LIMITS_US.items()
        ],
    }


def tables_of(report: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """Returns the tables of a report."""
    measured = {**report["microseconds"], "a stock no-op call": report["stock_noop_us"]}
    return {
        "The rules alone: microseconds of CPU": [
            ["", "median", "quartiles", "least"],
            *(
                [name, f"{of['median']:.2f}", f"{of['low']:.2f}-{of['high']:.2f}", f"{of['least']:.2f}"]
                for name, of in measured.items()
            ),
        ]
    }


def told_of(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns sentences on the conditions of the measurement."""
    return (f"python {report['versions']['python']}, {report['machine']}",)
