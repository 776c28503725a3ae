"""Floods a server and measures honest clients meanwhile: `python -m load.drills flood drafts half-open --seconds 10`.

Each flood gets its own server. The attacker has one address, the honest clients have others. The honest clients call
alone, while another server is flooded, while theirs is flooded, and once more alone. The flood of another server shows
what the attacker's use of this machine's processors costs, which has nothing to do with the server. The first seconds
of a flood, in which the attacker opens its calls, are measured for themselves.

The report has the p99 of each kind of honest call, refusals, how the flood's calls ended, and the server's CPU and
memory. The drill fails if an honest call was refused, or if the p99 of all honest calls is more than twice that
without the flood: alone or while another server is flooded, whichever is longer.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from load.bench.figures import printer, quantiles
from load.bench.measured_servers import MeasuredServer, ready, serving
from load.floods.attacks import FAIRNESS, FLOODS, Flood
from tools.redis_servers import RedisServer
from tools.servers import ROOT

RESULTS: Final = Path("build") / "drills" / "flood.json"
MOST_RATIO: Final = 2.0
HONEST_CLIENTS: Final = 20
WARM_UP_SECONDS: Final = 3.0
BEGIN_SECONDS: Final = 12.0
"""The attacker takes so long to open 50,000 calls."""
ALL: Final = "all honest calls"


def main(arguments: Sequence[str]) -> int:
    """Runs the named floods; returns 1 if honest clients were refused or waited too long."""
    parser = argparse.ArgumentParser(
        prog="flood", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "floods", nargs="*", metavar="flood", help=f"some of {', '.join(FLOODS)}; default {', '.join(FAIRNESS)}"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds of each phase (10)")
    parser.add_argument(
        "--checkout", type=Path, default=ROOT, help="use the server of another checkout, with its .venv"
    )
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.floods) - set(FLOODS))
    if unknown:
        parser.error(f"no such flood: {', '.join(unknown)}")
    console = printer()
    report = {
        name: _flooded(name, FLOODS[name], chosen.seconds, chosen.checkout, console)
        for name in chosen.floods or FAIRNESS
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    return 0 if all(one["met"] for one in report.values()) else 1


def _flooded(name: str, flood: Flood, seconds: float, checkout: Path, console: Console) -> dict[str, Any]:
    with _store() as url, _server(url, checkout) as server, _honest(server) as honest:
        _phase(honest, WARM_UP_SECONDS)
        alone = _phase(honest, seconds)
        with _store() as other_url, _server(other_url, checkout) as other, _attacker(name, flood, other):
            _phase(honest, BEGIN_SECONDS)
            elsewhere = _phase(honest, seconds)
        cpu, started, memory = _cpu(server), time.perf_counter(), _rss(server)
        with _attacker(name, flood, server) as attacker:
            begin = _phase(honest, BEGIN_SECONDS)
            beside = _phase(honest, seconds)
            peak = _rss(server)
            used, lasted = _cpu(server) - cpu, time.perf_counter() - started
            ends = json.loads(attacker.communicate()[0] or "{}")
        after = _phase(honest, seconds)
        report = _report({"alone": [alone, after], "elsewhere": [elsewhere], "begin": [begin], "beside": [beside]})
        report |= {
            "ends": ends,
            "cpu_share": used / lasted,
            "memory_mb": {"before": memory, "during": peak, "after": _rss(server)},
        }
    _print(name, flood, report, console)
    return report


@contextlib.contextmanager
def _store() -> Iterator[str]:
    redis = RedisServer()
    redis.start()
    try:
        yield redis.url
    finally:
        redis.close()


@contextlib.contextmanager
def _server(url: str, checkout: Path) -> Iterator[MeasuredServer]:
    settings = {
        "RUMMIKUB_LISTEN": "127.0.0.1:0",
        "RUMMIKUB_VALIDATION_LISTEN": "127.0.0.1:0",
        "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
        "RUMMIKUB_LOG_LEVEL": "warning",
        "RUMMIKUB_REDIS_URL": url,
    }
    with serving("service", settings=settings, checkout=checkout) as process:
        yield ready(process)


@contextlib.contextmanager
def _honest(server: MeasuredServer) -> Iterator["subprocess.Popen[str]"]:
    ports = [address.rpartition(":")[2] for address in (server.main, server.validation)]
    with _running("load.floods.honest", *ports, "--clients", str(HONEST_CLIENTS)) as process:
        yield process


@contextlib.contextmanager
def _attacker(name: str, flood: Flood, server: MeasuredServer) -> Iterator["subprocess.Popen[str]"]:
    target = server.validation if flood.at_own_listener else server.main
    with _running("load.floods.attacker", name, target) as process:
        assert process.stdout is not None  # noqa: S101 - for the types
        process.stdout.readline()
        yield process


@contextlib.contextmanager
def _running(module: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _phase(honest: "subprocess.Popen[str]", seconds: float) -> dict[str, Any]:
    assert honest.stdin is not None  # noqa: S101 - for the types
    assert honest.stdout is not None  # noqa: S101 - for the types
    honest.stdin.write(f"phase {seconds}\n")
    honest.stdin.flush()
    found: dict[str, Any] = json.loads(honest.stdout.readline())
    return found


def _report(phases: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Returns quantiles of each kind of honest call by phase, refusals, and whether the flood was withstood."""
    names = phases["beside"][0]["milliseconds"]
    kinds = {
        kind: {
            phase: quantiles(list(chain.from_iterable(part["milliseconds"][kind] for part in parts)))
            for phase, parts in phases.items()
        }
        for kind in names
    }
    kinds[ALL] = {
        phase: quantiles(list(chain.from_iterable(chain(*(part["milliseconds"].values() for part in parts)))))
        for phase, parts in phases.items()
    }
    refusals = {phase: part["refusals"] for phase in ("begin", "beside") for part in phases[phase] if part["refusals"]}
    return {"kinds": kinds, "refusals": refusals, "met": not refusals and _ratio(kinds[ALL]) <= MOST_RATIO}


def _ratio(figures: dict[str, dict[str, float]]) -> float:
    """Returns the ratio of a p99 during the flood to that without."""
    return figures["beside"]["p99"] / max(figures["alone"]["p99"], figures["elsewhere"]["p99"])


def _print(name: str, flood: Flood, report: dict[str, Any], console: Console) -> None:
    mark = "met" if report["met"] else "MISSED"
    console.print(f"[bold]{name}[/bold] ({mark}): {(flood.run.__doc__ or '').rstrip('.')}", highlight=False)
    for kind, figures in report["kinds"].items():
        alone, elsewhere, begin, beside = (figures[phase] for phase in ("alone", "elsewhere", "begin", "beside"))
        console.print(
            f"  {kind:34} p99 {alone['p99']:7.1f} ms alone {elsewhere['p99']:7.1f} flood elsewhere "
            f"{begin['p99']:7.1f} as it begins {beside['p99']:7.1f} beside, "
            f"median {alone['median']:.1f} and {beside['median']:.1f}, ratio of p99 {_ratio(figures):.2f}",
            style="green" if _ratio(figures) <= MOST_RATIO else "red",
            highlight=False,
        )
    memory = report["memory_mb"]
    console.print(
        f"  honest refused: {report['refusals'] or 'none'}\n  flood: {report['ends']}\n"
        f"  server: {report['cpu_share']:.2f} cores, {memory['before']:.0f} MB before, {memory['during']:.0f} during, "
        f"{memory['after']:.0f} after",
        highlight=False,
    )


def _cpu(server: MeasuredServer) -> float:
    return sum(_cpu_of(pid) for pid in server.tree())


def _cpu_of(pid: int) -> float:
    with contextlib.suppress(OSError):
        return time.clock_gettime((~pid << 3) | 2)
    return 0.0


def _rss(server: MeasuredServer) -> float:
    total = 0
    for pid in server.tree():
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            total += int(status.partition("VmRSS:")[2].split()[0])
    return total / 1024
