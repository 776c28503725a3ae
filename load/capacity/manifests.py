"""Computes the sizes of the Kubernetes manifests: `python -m load.capacity.manifests --games 15000 --primaries 3`.

The costs are those that docs/capacity.md has of its last run, the assumptions those of machines.py.
"""

import argparse
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from load.capacity.games import TYPICAL
from load.capacity.machines import GIB, HOUR, Assumptions
from load.pages import DOCS
from service.storage.redis.store import RESERVE
from service.storage.store import GAME_GROWTH

MIB: Final = 1 << 20
SCALE_OUT: Final = 0.7
"""The share of a worker's planned watchers at which the autoscaler adds a pod; that of its CPU is the same."""
SPARE: Final = 1.5
"""The limit of a pod's memory, as a multiple of what a worker takes with all watchers that it accepts."""
REWRITE: Final = 3
"""The disk of a Redis, as a multiple of its games: the log grows to twice its size before it is rewritten."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of a worker and of a game, from docs/capacity.md.

    Attributes:
        worker: Memory of a worker without watchers, in bytes.
        watcher: Memory of a worker for a watcher and its connection.
        live: Redis's memory for a live game.
        finished: Redis's memory for a finished game.
        answers: Redis's memory for its answers to requests, for an hour.
        seconds: How long a game lasts.
    """

    worker: float
    watcher: float
    live: float
    finished: float
    answers: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a deployment, in the notation of manifests."""

    max_replicas: int
    calls_a_pod: str
    pod_request: str
    pod_limit: str
    maxmemory: str
    redis_request: str
    redis_limit: str
    redis_storage: str


def costs_of(page: str) -> Costs:
    """Returns the costs in the text of docs/capacity.md."""

    def kib(text: str) -> float:
        return _number(page, text) * 1024

    names = "|".join(preset.name for preset in TYPICAL)
    games = re.findall(
        rf"^\| (?:{names}) \| [\d,]+ \| [\d,]+ \| ([\d,]+) \| [\d,]+ \| ([\d,]+) \| ([\d,]+) \|", page, re.MULTILINE
    )
    live, answers, finished = (statistics.mean(map(_plain, column)) for column in zip(*games, strict=True))
    return Costs(
        worker=kib("a server with its processes, without watchers"),
        watcher=kib("a watcher that is alone with its game") + kib("its own connection, besides"),
        live=live,
        finished=finished,
        answers=answers,
        seconds=60 * _number(page, "minutes that a game lasts"),
    )


def _number(page: str, text: str) -> float:
    [found] = re.findall(rf"^\| {text} \| ([\d,]+) \|$", page, re.MULTILINE)
    return _plain(found)


def _plain(figure: str) -> float:
    return float(figure.replace(",", ""))


def sizes_of(costs: Costs, assumed: Assumptions, games: int, primaries: int) -> Sizes:
    """Returns the sizes for a number of live games at the peak, on some Redis primaries."""
    calls = math.floor(SCALE_OUT * assumed.watches_share * assumed.watches / 1000) * 1000
    worker_limit = SPARE * (costs.worker + assumed.watches * costs.watcher)
    ended_a_second = games / assumed.peak / costs.seconds
    finished = ended_a_second * assumed.finished_seconds * costs.finished
    answers = ended_a_second * assumed.peak * min(HOUR, assumed.finished_seconds) * costs.answers
    needed = (games * (costs.live + GAME_GROWTH) + finished + answers) / (1 - RESERVE) / primaries
    maxmemory = _up(needed, 100 * MIB)
    return Sizes(
        max_replicas=max(2, math.ceil(games * assumed.watchers / calls)),
        calls_a_pod=f"{calls}",
        pod_request=f"{_up(costs.worker + calls * costs.watcher, 128 * MIB) // MIB}Mi",
        pod_limit=f"{_up(worker_limit, GIB) // GIB}Gi",
        maxmemory=f"{maxmemory // MIB}mb",
        redis_request=f"{_up(maxmemory, GIB) // GIB}Gi",
        redis_limit=f"{_up(maxmemory / assumed.memory_share, GIB) // GIB}Gi",
        redis_storage=f"{max(10, _up(REWRITE * maxmemory, GIB) // GIB)}Gi",
    )


def _up(size: float, step: int) -> int:
    return math.ceil(size / step) * step


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the sizes, by the file in deploy/kubernetes that has them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, required=True, help="live games at the peak, of four players who watch")
    parser.add_argument("--primaries", type=int, default=1, help="Redis primaries (1; redis-cluster has 3)")
    chosen = parser.parse_args(arguments)
    if min(chosen.games, chosen.primaries) < 1:
        parser.error("--games and --primaries must be at least 1")
    page = Path(DOCS / "capacity.md").read_text()
    sizes = sizes_of(costs_of(page), Assumptions(), chosen.games, chosen.primaries)
    print(f"""\
{chosen.games:,} live games of four players who watch; each primary of {chosen.primaries}:

game.yaml, Deployment               resources: requests: memory: {sizes.pod_request}
                                               limits: memory: {sizes.pod_limit}
game.yaml, HorizontalPodAutoscaler  averageValue: "{sizes.calls_a_pod}"
overlay, autoscaler.yaml            maxReplicas: {sizes.max_replicas}
overlay, redis-additional.conf      maxmemory {sizes.maxmemory}
overlay, redis.yaml                 resources: requests: memory: {sizes.redis_request}
                                               limits: memory: {sizes.redis_limit}
                                    storage: {sizes.redis_storage}""")


if __name__ == "__main__":
    main()
