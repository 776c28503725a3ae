"""A Redis Cluster under load: a killed primary, slots that move, and a primary that lost its replicas.

Real redis-servers are three primaries with replicas; two servers of the service play on them. Each scene has its own
cluster and players. At the end every acknowledged turn is looked for in the stored history, with its revision and etag,
and watchers report gaps. A scene also fails if its fault did not happen, or if a game waited too long for a turn.

The scenes:

    killed        kill -9 of a primary; a replica takes over; the node comes back as a replica
    killed, 1     the same with RUMMIKUB_REDIS_REPLICAS=1 and two replicas for each primary
    ordered       CLUSTER FAILOVER of a replica, as before an update of its primary
    moved         slots with games move to other primaries, one key at a time; no call may fail
    cut off       a primary loses its replicas, acknowledges turns, and is killed: without WAIT turns must be lost, and
                  the next call of each player who lost some is refused
    cut off, 1    the same with RUMMIKUB_REDIS_REPLICAS=1: nothing acknowledged is lost
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from load.bench.figures import Tables, requirement
from load.drills.players import Players, Report, game_servers
from load.drills.reports import finish
from load.parts import run_parts
from service.storage.redis.keys import slot_of
from tools.redis_cluster import NODE_TIMEOUT_MS, ClusterNode, RedisCluster, redis_cluster
from tools.redis_servers import redis_program, redis_version, wait_until

SERVERS: Final = 2
PAUSE_SECONDS: Final = 0.05
CUT_OFF_SECONDS: Final = 3.0
"""How long a primary acknowledges turns without its replicas; less than a replica may lag behind to take over."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a drill: turns between faults, repetitions of a fault, moved slots, games at once."""

    turns: int
    repetitions: int
    slots: int
    games: int


WHOLE: Final = Plan(turns=1_000, repetitions=3, slots=60, games=20)
QUICK: Final = Plan(turns=150, repetitions=1, slots=10, games=16)

Fault: TypeAlias = Callable[[RedisCluster, Players, Plan], Awaitable[int]]
"""Disturbs a cluster; returns how often the fault happened."""


async def killed(cluster: RedisCluster, players: Players, plan: Plan) -> int:
    """Kills primaries, one after the other, and starts each again when a replica has taken over."""
    for number in range(plan.repetitions):
        primary = cluster.primary_of(number % cluster.size)
        replicas = cluster.replicas_of(primary)
        primary.kill()
        await _taken_over(replicas)
        await players.has_taken(plan.turns)
        primary.start()
        await asyncio.to_thread(cluster.wait_until_whole)
        await players.has_taken(plan.turns)
    return plan.repetitions


async def ordered(cluster: RedisCluster, players: Players, plan: Plan) -> int:
    """Orders a replica of one primary after the other to take over."""
    count = 0
    for number in range(plan.repetitions):
        primary = cluster.primary_of(number % cluster.size)
        replicas = cluster.replicas_of(primary)
        replicas[0].execute("CLUSTER", "FAILOVER")
        await _taken_over(replicas)
        await asyncio.to_thread(cluster.wait_until_whole)
        count += not primary.is_primary
        await players.has_taken(plan.turns)
    return count


async def moved(cluster: RedisCluster, players: Players, plan: Plan) -> int:
    """Moves slots of games to the next primary, one key at a time."""
    primaries, count = cluster.primaries, 0
    for number in range(plan.slots):
        source, target = (primaries[(number + step) % len(primaries)] for step in (0, 1))
        slot = await asyncio.to_thread(_slot_of_a_game, source)
        if slot is not None:
            await asyncio.to_thread(cluster.move_slot, slot, target)
            count += cluster.owner(slot) is target
        await players.has_taken(max(1, plan.turns // plan.slots))
    return count


def _slot_of_a_game(node: ClusterNode) -> int | None:
    """Returns the slot of some game of a node that is still played."""
    keys: list[bytes] = node.execute("KEYS", "rummikub:{*}:game")
    return slot_of(max(keys, key=lambda key: node.execute("PTTL", key)).decode()) if keys else None


async def cut_off(cluster: RedisCluster, players: Players, plan: Plan) -> int:
    """Takes its replicas from a primary, lets it acknowledge turns, kills it, and starts it again."""
    count = 0
    for number in range(plan.repetitions):
        primary = cluster.primary_of(number % cluster.size)
        replicas = cluster.replicas_of(primary)
        primary.execute("ACL", "SETUSER", "default", "-psync", "-sync")
        primary.execute("CLIENT", "KILL", "TYPE", "replica")
        await asyncio.sleep(CUT_OFF_SECONDS)
        count += not any(replica.is_connected for replica in replicas)
        primary.kill()
        await _taken_over(replicas)
        primary.start()
        await asyncio.to_thread(cluster.wait_until_whole)
        await players.has_taken(plan.turns)
    return count


async def _taken_over(replicas: Sequence[ClusterNode]) -> None:
    """Waits until one of some replicas is a primary."""
    await asyncio.to_thread(wait_until, lambda: any(replica.is_primary for replica in replicas), "a replica takes over")


@dataclass(frozen=True, slots=True)
class Scene:
    """A fault with its settings, and what it may do to callers.

    Attributes:
        name: Its name.
        fault: Disturbs the cluster.
        title: What happens, for the table.
        least_faults: How often the fault must happen, as an attribute of the plan.
        replicas: The replicas of each primary.
        confirmed: RUMMIKUB_REDIS_REPLICAS.
        least_wait: The seconds that some game must wait for a turn, because its primary is gone.
        most_wait: The seconds that a game may wait for a turn.
        must_lose: Whether turns must be lost: it shows that the fault can lose turns.
        may_fail: Whether calls may fail.
    """

    name: str
    fault: Fault
    title: str
    least_faults: str = "repetitions"
    replicas: int = 1
    confirmed: int = 0
    least_wait: float = NODE_TIMEOUT_MS / 1e3
    most_wait: float = 15.0
    must_lose: bool = False
    may_fail: bool = True


SCENES: Final = (
    Scene("killed", killed, "{} primaries killed, one after the other"),
    Scene("killed, 1", killed, "the same", replicas=2, confirmed=1),
    Scene("ordered", ordered, "{} replicas ordered to take over", least_wait=0.0, most_wait=5.0),
    Scene("moved", moved, "{} slots moved under load", "slots", least_wait=0.0, most_wait=5.0, may_fail=False),
    Scene("cut off", cut_off, "{} primaries cut off from their replicas for 3 s, then killed", must_lose=True),
    Scene("cut off, 1", cut_off, "the same", confirmed=1, most_wait=30.0),
)
QUICK_SCENES: Final = ("killed", "moved", "cut off")


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a scene: how often its fault happened, and the report of its players."""

    scene: Scene
    happened: int
    report: Report

    def faults(self, plan: Plan) -> list[str]:
        """Returns why the scene has failed; nothing if it has passed."""
        scene, report = self.scene, self.report
        found = report.faults(may_lose=scene.must_lose)
        least = getattr(plan, scene.least_faults)
        if self.happened < least or not self.happened:
            found.append(f"the fault happened {self.happened} times, not {least}")
        if scene.must_lose and not report.lost:
            found.append("no turn was lost, so the fault had no effect")
        if report.failed and not scene.may_fail:
            found.append(f"{report.failed} failed calls")
        if report.longest_wait < scene.least_wait:
            found.append("no game had to wait, so the fault had no effect")
        if report.longest_wait > scene.most_wait:
            found.append(f"a game waited {report.longest_wait:.1f} s, more than {scene.most_wait:g} s")
        return found

    def as_json(self) -> dict[str, Any]:
        """Returns the values for a file."""
        scene = self.scene
        settings = {"scene": scene.name, "replicas": scene.replicas, "confirmed": scene.confirmed}
        return {**settings, "happened": self.happened, **self.report.as_json()}

    def requirement(self, plan: Plan) -> dict[str, Any]:
        """Returns what the scene requires."""
        scene, faults = self.scene, self.faults(plan)
        what = "turns lost, and refused to their players" if scene.must_lose else "no turn lost, no gap in a watch"
        calls = "" if scene.may_fail else ", no failed call"
        return requirement(
            f"{scene.name}: {what}, no turn doubled{calls}, no game waits longer than {scene.most_wait:g} s",
            met=not faults,
            measured=", ".join(faults) or f"{self.report.acknowledged:,} turns, {self.happened} faults",
        )


async def play(scene: Scene, plan: Plan, program: str = "") -> Result:
    """Runs a scene under load, on a Redis server's program or the default one."""
    print(f"{scene.name} ...", flush=True)
    settings = {"RUMMIKUB_REDIS_REPLICAS": str(scene.confirmed)}
    options = ("--cluster-require-full-coverage", "no")
    with redis_cluster(*options, replicas=scene.replicas, program=program) as cluster:
        async with (
            game_servers(cluster.url, SERVERS, **settings) as servers,
            Players([server.target for server in servers], plan.games, PAUSE_SECONDS) as players,
        ):
            await players.has_taken(plan.turns)
            happened = await scene.fault(cluster, players, plan)
            await players.has_taken(plan.turns)
            return Result(scene, happened, await players.stop())


def tables_of(results: Sequence[Result]) -> Tables:
    """Returns the tables of a report."""
    rows = [["scene", "replicas", "WAIT", "turns", "lost", "told", "doubled", "longest wait, s"]]
    for result in results:
        scene, report = result.scene, result.report
        counts = (report.acknowledged, report.lost, sum(report.lost_told.values()), report.doubled)
        rows.append(
            [
                scene.title.format(result.happened),
                *(f"{count:,}" for count in (scene.replicas, scene.confirmed, *counts)),
                f"{report.longest_wait:.1f}",
            ]
        )
    return {"Faults of a Redis Cluster under load": rows}


def notes_of(results: Sequence[Result]) -> list[str]:
    """Returns by which refusals players learned that turns were lost."""
    return [
        f"{result.scene.name}: lost turns told as {', '.join(f'{reason} {count}' for reason, count in told.items())}"
        for result in results
        if (told := result.report.lost_told)
    ]


def main(arguments: Sequence[str]) -> int:
    """Runs the drill; returns 1 if a scene has failed."""
    names = [scene.name for scene in SCENES]
    parser = argparse.ArgumentParser(
        prog="cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK_SCENES)}: a minute, for CI")
    parser.add_argument("--scene", action="append", choices=names, help="only this scene; may be repeated")
    parser.add_argument("--replicas", type=int, metavar="N", help="replicas of each primary, in place of the scene's")
    parser.add_argument("--program", default=redis_program(), help="the Redis server to use")
    chosen = parser.parse_args(arguments)
    plan = QUICK if chosen.quick else WHOLE
    wanted = chosen.scene or (QUICK_SCENES if chosen.quick else names)
    began = time.monotonic()
    scenes = [replace(scene, replicas=chosen.replicas or scene.replicas) for scene in SCENES if scene.name in wanted]
    finished, errors = run_parts(
        lambda scene: asyncio.run(play(scene, plan, chosen.program)), {scene.name: scene for scene in scenes}
    )
    results = list(finished.values())
    report = {
        "seconds": time.monotonic() - began,
        "store": redis_version(chosen.program),
        "scenes": [result.as_json() for result in results],
        "requirements": [result.requirement(plan) for result in results],
    }
    is_complete = not (chosen.quick or chosen.scene or chosen.replicas) and chosen.program == redis_program()
    return finish("cluster", report, tables_of(results), notes_of(results), errors=errors, is_complete=is_complete)
