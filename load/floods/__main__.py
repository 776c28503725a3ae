"""Floods a server and measures honest callers meanwhile: `python -m load.floods batches half-open --seconds 10`.

Each flood gets its own server. Honest callers, in another process and from another address (::1), call alone, then
during the flood, and once more alone. The report has the p99 of each kind of honest call, the ratio of flood to alone,
refusals, how the flood's calls ended, and the server's CPU and memory.
"""

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from load.bench.figures import printer, quantiles
from load.bench.measured_servers import MeasuredServer, ready, serving
from load.floods.attacks import FLOODS, Attack, Flood
from load.servers import ROOT, end_in_order

sys.path.append(str(ROOT / "tests"))

from support.harness import RedisServer

RESULTS: Final = Path("build") / "floods.json"
MOST_RATIO: Final = 3.0
WARM_UP_SECONDS: Final = 2.0
PAUSE_SECONDS: Final = 1.0


def main() -> int:
    """Runs the named floods, or all; returns 1 if honest callers were refused or waited too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("floods", nargs="*", metavar="flood", help=f"all, or some of {', '.join(FLOODS)}")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each phase (10)")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="whose server: another checkout with its .venv")
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.floods) - set(FLOODS))
    if unknown:
        parser.error(f"no such flood: {', '.join(unknown)}")
    end_in_order()
    console = printer()
    report = {
        name: asyncio.run(_flooded(name, FLOODS[name], chosen.seconds, chosen.checkout, console))
        for name in chosen.floods or FLOODS
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    return 0 if all(one["met"] for one in report.values()) else 1


async def _flooded(name: str, flood: Flood, seconds: float, checkout: Path, console: Console) -> dict[str, Any]:
    with _store() as url, _server(url, flood, checkout) as server, _honest(server) as honest:
        await _phase(honest, WARM_UP_SECONDS)
        alone = await _phase(honest, seconds)
        attack = Attack(_target(server.validation if flood.at_own_listener else server.main, "127.0.0.1"))
        cpu, started, memory = _cpu(server), time.perf_counter(), _rss(server)
        attacking = asyncio.create_task(_run(flood, attack))
        await asyncio.sleep(PAUSE_SECONDS)
        beside = await _phase(honest, seconds)
        peak = _rss(server)
        attacking.cancel()
        await asyncio.gather(attacking, return_exceptions=True)
        used = _cpu(server) - cpu
        lasted = time.perf_counter() - started
        after = await _phase(honest, seconds)
        report = _report(alone, beside, after)
        report |= {
            "ends": dict(attack.ends.most_common()),
            "cpu_share": used / lasted,
            "memory_mb": {"before": memory, "during": peak, "after": _rss(server)},
        }
    _print(name, flood, report, console)
    return report


async def _run(flood: Flood, attack: Attack) -> None:
    try:
        await flood.run(attack)
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - a server that breaks under a flood is a result
        attack.ends[f"the attack ended: {type(error).__name__} {error}"[:100]] += 1


@contextlib.contextmanager
def _store() -> Iterator[str]:
    redis = RedisServer()
    redis.start()
    try:
        yield redis.url
    finally:
        redis.close()


@contextlib.contextmanager
def _server(url: str, flood: Flood, checkout: Path) -> Iterator[MeasuredServer]:
    settings = {
        "RUMMIKUB_LISTEN": "[::]:0",
        "RUMMIKUB_VALIDATION_LISTEN": "[::]:0",
        "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
        "RUMMIKUB_LOG_LEVEL": "warning",
        "RUMMIKUB_REDIS_URL": url,
        **flood.settings,
    }
    with serving("service", settings=settings, checkout=checkout) as process:
        yield ready(process)


@contextlib.contextmanager
def _honest(server: MeasuredServer) -> Iterator["subprocess.Popen[str]"]:
    command = [
        sys.executable,
        "-m",
        "load.floods.honest",
        _target(server.main, "[::1]"),
        _target(server.validation, "[::1]"),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _target(address: str, host: str) -> str:
    return f"{host}:{address.rpartition(':')[2]}"


async def _phase(honest: "subprocess.Popen[str]", seconds: float) -> dict[str, Any]:
    assert honest.stdin is not None  # noqa: S101 - for the types
    assert honest.stdout is not None  # noqa: S101 - for the types
    honest.stdin.write(f"phase {seconds}\n")
    honest.stdin.flush()
    line = await asyncio.to_thread(honest.stdout.readline)
    found: dict[str, Any] = json.loads(line)
    return found


def _report(alone: dict[str, Any], beside: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    kinds: dict[str, Any] = {}
    for kind, milliseconds in beside["milliseconds"].items():
        base = quantiles(alone["milliseconds"][kind] + after["milliseconds"][kind])
        found = quantiles(milliseconds)
        kinds[kind] = {"alone": base, "beside": found, "ratio": found["p99"] / base["p99"]}
    met = not beside["refusals"] and all(kind["ratio"] <= MOST_RATIO for kind in kinds.values())
    return {"kinds": kinds, "refusals": beside["refusals"], "met": met}


def _print(name: str, flood: Flood, report: dict[str, Any], console: Console) -> None:
    console.print(f"[bold]{name}[/bold]: {(flood.run.__doc__ or '').rstrip('.')}", highlight=False)
    for kind, figures in report["kinds"].items():
        alone, beside = figures["alone"], figures["beside"]
        console.print(
            f"  {kind:28} p99 {alone['p99']:8.2f} ms alone {beside['p99']:8.2f} beside (max {beside['max']:.0f}), "
            f"ratio {figures['ratio']:.2f}",
            style="green" if figures["ratio"] <= MOST_RATIO else "red",
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


if __name__ == "__main__":
    sys.exit(main())
