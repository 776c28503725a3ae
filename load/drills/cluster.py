"""A Redis Cluster under load: a killed primary, slots that move, and a primary that lost its replica.

Six real redis-servers are three primaries with a replica each; two servers of the service play on them. Each scene has
its own players. At the end every acknowledged turn is looked for in the stored history, with its revision and etag, and
watchers report gaps. The results are printed and written to build/drills/cluster.json.

The scenes:

    killed      kill -9 of a primary; its replica takes over; the node comes back as a replica
    moved       slots with games move to other primaries, one key at a time
    cut off     a primary loses its replica, acknowledges turns, and is killed: without WAIT they are lost, and the next
                call of each player who lost some is refused with STALE_STATE
    cut off, 1  the same with RUMMIKUB_REDIS_REPLICAS=1: nothing acknowledged is lost
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from load.drills.players import TELLING, Players, Report, game_servers
from load.servers import ROOT
from service.storage.redis.keys import slot_of
from tools.redis_cluster import ClusterNode, RedisCluster, redis_cluster
from tools.redis_servers import wait_until

RESULTS: Final = ROOT / "build" / "drills" / "cluster.json"
SERVERS: Final = 2
CUT_OFF_SECONDS: Final = 3.0
"""How long a primary acknowledges turns without its replica; less than a replica may lag behind to take over."""

Scene: TypeAlias = Callable[[RedisCluster, Players, "Plan"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a drill: turns between faults, repetitions of a fault, moved slots, games at once."""

    turns: int
    repetitions: int
    slots: int
    games: int


WHOLE: Final = Plan(turns=1_000, repetitions=3, slots=60, games=20)
QUICK: Final = Plan(turns=150, repetitions=1, slots=10, games=8)


@dataclass(frozen=True, slots=True)
class Result:
    """What a scene showed."""

    name: str
    replicas: int
    may_lose: bool
    report: Report

    @property
    def has_passed(self) -> bool:
        """Whether nothing was lost or doubled; in a scene that shows losses, whether each was told to its player."""
        report = self.report
        faults = report.doubled or report.watchers_behind or report.lost_unnoticed
        return not faults if self.may_lose else report.is_clean

    def as_json(self) -> dict[str, Any]:
        """Returns the values for a file."""
        return {"scene": self.name, "replicas": self.replicas, "passed": self.has_passed, **self.report.as_json()}


async def killed(cluster: RedisCluster, players: Players, plan: Plan) -> None:
    """Kills primaries, one after the other, and starts each again when its replica has taken over."""
    for number in range(plan.repetitions):
        primary = cluster.primaries[number % cluster.size]
        [replica, *_] = cluster.replicas_of(primary)
        primary.kill()
        await asyncio.to_thread(wait_until, lambda replica=replica: replica.is_primary, "the replica takes over")  # type: ignore[misc]
        await players.has_taken(plan.turns)
        primary.start()
        await asyncio.to_thread(cluster.wait_until_whole)
        await players.has_taken(plan.turns)


async def moved(cluster: RedisCluster, players: Players, plan: Plan) -> None:
    """Moves slots of games to the next primary, one key at a time."""
    primaries = cluster.primaries
    for number in range(plan.slots):
        source, target = (primaries[(number + step) % len(primaries)] for step in (0, 1))
        slot = await asyncio.to_thread(_slot_of_a_game, source)
        if slot is not None:
            await asyncio.to_thread(cluster.move_slot, slot, target)
        await players.has_taken(max(1, plan.turns // plan.slots))


def _slot_of_a_game(node: ClusterNode) -> int | None:
    """Returns the slot of some game of a node that is still played."""
    keys: list[bytes] = node.execute("KEYS", "rummikub:{*}:game")
    return slot_of(max(keys, key=lambda key: node.execute("PTTL", key)).decode()) if keys else None


async def cut_off(cluster: RedisCluster, players: Players, plan: Plan) -> None:
    """Takes its replica from a primary, lets it acknowledge turns, kills it, and starts it again."""
    for number in range(plan.repetitions):
        primary = cluster.primaries[number % cluster.size]
        [replica, *_] = cluster.replicas_of(primary)
        primary.execute("ACL", "SETUSER", "default", "-psync", "-sync")
        primary.execute("CLIENT", "KILL", "TYPE", "replica")
        await asyncio.sleep(CUT_OFF_SECONDS)
        primary.kill()
        await asyncio.to_thread(wait_until, lambda replica=replica: replica.is_primary, "the replica takes over")  # type: ignore[misc]
        primary.start()
        await asyncio.to_thread(cluster.wait_until_whole)
        await players.has_taken(plan.turns)


async def _play(name: str, scene: Scene, cluster: RedisCluster, plan: Plan, replicas: int = 0) -> Result:
    """Runs a scene under load."""
    print(f"{name} ...", flush=True)
    async with game_servers(cluster.url, SERVERS, RUMMIKUB_REDIS_REPLICAS=str(replicas)) as servers:
        targets = [server.target for server in servers]
        async with Players(targets, plan.games, pause=0.05) as players:
            await players.has_taken(plan.turns)
            await scene(cluster, players, plan)
            await players.has_taken(plan.turns)
            return Result(name, replicas, may_lose=scene is cut_off and not replicas, report=await players.stop())


async def drill(plan: Plan, scenes: Sequence[str]) -> list[Result]:
    """Runs scenes, each on a cluster of its own; returns what they showed."""
    results: list[Result] = []
    for name, scene, replicas in (
        ("killed", killed, 0),
        ("moved", moved, 0),
        ("cut off", cut_off, 0),
        ("cut off, 1", cut_off, 1),
    ):
        if name in scenes:
            with redis_cluster("--cluster-require-full-coverage", "no", replicas=1) as cluster:
                results.append(await _play(name, scene, cluster, plan, replicas))
    return results


COLUMNS: Final = (
    ("acknowledged", "acknowledged"),
    ("lost", "lost"),
    ("doubled", "doubled"),
    ("told stale", "told"),
    ("watch gaps", "watch_gaps"),
    ("longest outage, s", "longest_outage"),
    ("slowest turn, s", "slowest_turn"),
)


def table(results: Sequence[Result]) -> str:
    """Returns the results as text."""
    lines = ["scene        " + "  ".join(title for title, _ in COLUMNS) + "  result"]
    for result in results:
        values = result.report.as_json()
        cells = [f"{values[name]:.1f}" if title.endswith(", s") else str(values[name]) for title, name in COLUMNS]
        row = "  ".join(cell.rjust(len(title)) for cell, (title, _) in zip(cells, COLUMNS, strict=True))
        lines.append(f"{result.name:<12} {row}  {'passed' if result.has_passed else 'FAILED'}")
    lines += [f"{result.name}: {told(result.report)}" for result in results if result.report.lost]
    return "\n".join(lines)


def told(report: Report) -> str:
    """Returns how players were told of lost turns."""
    stale, *others = (report.lost_told.get(reason, 0) for reason in TELLING)
    rest = "".join(f", as {reason}: {count}" for reason, count in zip(TELLING[1:], others, strict=True) if count)
    return f"each told as STALE_STATE: {stale} of {report.lost}{rest}"


def main(arguments: Sequence[str]) -> int:
    """Runs the drill; returns 1 if an acknowledged turn was lost or doubled, or its loss was not told."""
    names = ("killed", "moved", "cut off", "cut off, 1")
    parser = argparse.ArgumentParser(
        prog="cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="one fault of each kind but no WAIT, about a minute; for CI"
    )
    parser.add_argument("--scene", action="append", choices=names, help="only this scene; may be repeated")
    chosen = parser.parse_args(arguments)
    plan = QUICK if chosen.quick else WHOLE
    began = time.monotonic()
    results = asyncio.run(drill(plan, chosen.scene or (names[:3] if chosen.quick else names)))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps([result.as_json() for result in results], indent=2) + "\n")
    print(table(results))
    print(f"{time.monotonic() - began:.0f} s; {RESULTS.relative_to(ROOT)}")
    return 0 if all(result.has_passed for result in results) else 1
