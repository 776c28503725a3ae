"""Compares the solver with the compiled solver (compile_solver.py), if there is one.

Two processes answer the same positions alternately, so that other load on the machine affects both alike. Times are
milliseconds of CPU per call. Both must give the same answers.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

from engine.melding.solver import Budget, best_turn
from load.bench.compile_solver import COMPILED, ROOT, environment, is_current
from load.bench.figures import QUANTILES, quantiles
from load.corpus.positions import Recorded

PURE: Final = "pure"
BUILT: Final = "compiled"
QUESTIONS: Final = {"best turn": Budget(change_nodes=0), "least change too": Budget()}


class Answerer:
    """A process that answers queries about positions."""

    def __init__(self, sent: IO[str], answered: IO[str]) -> None:
        self._sent, self._answered = sent, answered

    def answer(self, recorded: Recorded) -> tuple[float, str]:
        """Returns the milliseconds of an answer, and the answer."""
        print(json.dumps(asdict(recorded)), file=self._sent, flush=True)
        milliseconds, answer = json.loads(self._answered.readline())
        return milliseconds, answer


@contextmanager
def answerer(first: Path, question: str) -> Iterator[Answerer]:
    """Starts a process that answers one kind of query with the engine of a folder."""
    command = (sys.executable, "-m", "load.bench.compiled", question)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment(first), stdin=pipe, stdout=pipe, text=True) as process:
        if process.stdin and process.stdout:  # both are pipes
            yield Answerer(process.stdin, process.stdout)


def compared(corpus: Sequence[Recorded], console: Console, compiled: Path = COMPILED) -> dict[str, Any]:
    """Returns, by kind of query, the times, the speedup of the compiled solver, and the number of equal answers."""
    found = {question: _asked(corpus, question, compiled, console) for question in QUESTIONS}
    return {"positions": len(corpus), "agree": min(one["agree"] for one in found.values()), "questions": found}


def report_if_built(corpus: Sequence[Recorded], console: Console) -> dict[str, Any] | None:
    """Prints and returns the result of `compared`; returns None if there is no current compiled solver."""
    if not is_current():
        old = "is older than the engine" if COMPILED.exists() else "is not there"
        console.print(f"The compiled solver {old}; run `make compiled`.", highlight=False)
        return None
    found = compared(corpus, console)
    _print(found, console)
    return found


def _asked(corpus: Sequence[Recorded], question: str, compiled: Path, console: Console) -> dict[str, Any]:
    milliseconds: dict[str, list[float]] = {PURE: [], BUILT: []}
    agree = 0
    with answerer(ROOT, question) as pure, answerer(compiled, question) as built:
        pure.answer(corpus[0])  # warms up the caches of the process
        built.answer(corpus[0])
        for recorded in track(corpus, f"Compiled or not: {question}", console=console):
            (plain, said), (quick, also_said) = pure.answer(recorded), built.answer(recorded)
            milliseconds[PURE].append(plain)
            milliseconds[BUILT].append(quick)
            agree += said == also_said
    times = {name: quantiles(values) for name, values in milliseconds.items()}
    ratios = {key: times[PURE][key] / times[BUILT][key] for key in QUANTILES}
    return {"milliseconds": times, "ratios": ratios, "agree": agree}


def _print(found: Mapping[str, Any], console: Console) -> None:
    table = Table(title=f"Milliseconds of the solver, {found['positions']} positions")
    for name in ("question", "", *QUANTILES, *(f"times {name}" for name in QUANTILES)):
        is_text = name in {"question", ""}
        table.add_column(name, justify="left" if is_text else "right", no_wrap=is_text)
    for question, figures in found["questions"].items():
        for name, times in figures["milliseconds"].items():
            ratios = figures["ratios"].values() if name == BUILT else ()
            row = [f"{value:.2f}" for value in (*times.values(), *ratios)]
            table.add_row(question if name == PURE else "", name, *row)
        table.add_section()
    console.print(table)


def main() -> None:
    """Answers positions from standard input, one per line."""
    budget = QUESTIONS[sys.argv[1]]
    for line in sys.stdin:
        situation = Recorded(**json.loads(line)).situation
        started = time.process_time_ns()
        answer = best_turn(situation, budget=budget)
        milliseconds = (time.process_time_ns() - started) / 1e6
        print(json.dumps((milliseconds, repr(answer))), flush=True)


if __name__ == "__main__":
    main()
