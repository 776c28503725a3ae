"""A failover of a primary that Sentinels watch, under load: which settings lose no acknowledged turn.

Each row has its own primary, two replicas, three Sentinels and two servers. Their players record every acknowledged
turn, and look for it in the history at the end. `make drill ARGS=sentinel` runs all rows, `ARGS="sentinel --quick"` two
of those that must be clean. It fails if one of these lost a turn or let a game wait too long, if any row doubled a turn
or lost one without a refusal of the next call, or if the failover of a row did not happen.
"""

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from load.bench.figures import Tables, requirement
from load.drills.players import Players, Report, game_servers
from load.drills.reports import finish
from load.parts import run_parts
from tools.redis_servers import (
    HOST,
    RedisServer,
    WatchedServers,
    redis_program,
    redis_version,
    wait_until,
    watched_servers,
)
from tools.servers import ROOT

SERVERS: Final = 2
GAMES: Final = 16
TURNS: Final = 300
"""Turns before the failover, after it, and when all servers are in step again."""
CUT_SECONDS: Final = 1.5
"""How long replicas are cut off before the primary is killed."""
MOST_WAIT_SECONDS: Final = 15.0
"""How long a game of a row that must be clean may wait for a turn."""
MOST_ORDERED_WAIT_SECONDS: Final = 2.5
"""The same if the failover is ordered by rummikub-admin and the servers listen: nothing has to be missed first."""

Event: TypeAlias = Callable[[WatchedServers, RedisServer], Awaitable[bool]]
"""Makes a replica the primary. It gets the old primary, which is running at the end; returns whether it happened."""


async def _crash(group: WatchedServers, old: RedisServer) -> bool:
    """Kills the primary, and starts it when another one is the primary."""
    old.kill()
    await asyncio.to_thread(group.wait_until_switched, old)
    await asyncio.to_thread(old.start)
    return group.primary is not old


async def _crash_and_return(_group: WatchedServers, old: RedisServer) -> bool:
    """Kills the primary, and starts it at once: it comes back before the Sentinels miss it."""
    before = old.execute("INFO", "server")["run_id"]
    old.kill()
    await asyncio.to_thread(old.start)
    return bool(old.execute("INFO", "server")["run_id"] != before)


async def cut_and_crash(group: WatchedServers, old: RedisServer) -> bool:
    """Cuts the replicas off without closing their connections, and kills the primary later."""
    async with _relay(old.port) as (port, cut):
        for replica in group.replicas:
            replica.execute("REPLICAOF", HOST, port)
        await asyncio.to_thread(
            wait_until,
            lambda: all(replica.replication()["master_link_status"] == "up" for replica in group.replicas),
            "the replicas follow the relay",
        )
        cut.set()
        await asyncio.sleep(CUT_SECONDS)
        copied = max(replica.replication()["slave_repl_offset"] for replica in group.replicas)
        is_cut = bool(old.replication()["master_repl_offset"] > copied)
        return await _crash(group, old) and is_cut


async def order(group: WatchedServers, old: RedisServer) -> bool:
    """Orders SENTINEL FAILOVER."""
    group.fail_over()
    await asyncio.to_thread(group.wait_until_switched, old)
    return group.primary is not old


async def order_by_admin(group: WatchedServers, old: RedisServer) -> bool:
    """Runs rummikub-admin failover."""
    command = (sys.executable, "-c", "from service.admin_program.program import main; main()", "failover", group.url)
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL)
    if await process.wait():
        raise RuntimeError("rummikub-admin failover failed; see its message above")
    return group.primary is not old


@dataclass(frozen=True, slots=True)
class Row:
    """A failover with settings.

    Attributes:
        name: What happens.
        event: Makes it happen.
        least: min-replicas-to-write.
        confirmed: RUMMIKUB_REDIS_REPLICAS.
        is_deaf: Whether the servers do not listen to the Sentinels.
        is_safe: Whether the row must be clean.
        must_lose: Whether turns must be lost: it shows that the failover can lose turns.
        most_wait: How long a game may wait for a turn, in seconds, if the row must be clean.
    """

    name: str
    event: Event
    least: int = 1
    confirmed: int = 0
    is_deaf: bool = False
    is_safe: bool = False
    must_lose: bool = False
    most_wait: float = MOST_WAIT_SECONDS

    @property
    def title(self) -> str:
        """Its name with its settings."""
        listening = "deaf servers" if self.is_deaf else "servers listen"
        return f"{self.name}, min-replicas {self.least}, REPLICAS {self.confirmed}, {listening}"


ROWS: Final = (
    Row("crash, back later", _crash, 0),
    Row("crash, back later", _crash, is_safe=True),
    Row("crash, back at once", _crash_and_return, is_safe=True),
    Row("crash, replicas cut off before", cut_and_crash, must_lose=True),
    Row("crash, replicas cut off before", cut_and_crash, confirmed=1, is_safe=True),
    Row("SENTINEL FAILOVER", order, is_deaf=True, must_lose=True),
    Row("SENTINEL FAILOVER", order, 2, is_deaf=True),
    Row("SENTINEL FAILOVER", order, confirmed=1, is_deaf=True),
    Row("SENTINEL FAILOVER", order, 0),
    Row("SENTINEL FAILOVER", order),
    Row("SENTINEL FAILOVER", order, confirmed=1),
    Row("rummikub-admin failover", order_by_admin, is_safe=True, most_wait=MOST_ORDERED_WAIT_SECONDS),
    Row("rummikub-admin failover", order_by_admin, is_deaf=True, is_safe=True),
)
QUICK: Final = (ROWS[1], ROWS[11])


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a row: whether its failover happened, and the report of its players."""

    row: Row
    happened: bool
    report: Report

    def faults(self) -> list[str]:
        """Returns why the row has failed; nothing if it has passed."""
        row, report = self.row, self.report
        found = report.faults(may_lose=not row.is_safe)
        if not self.happened:
            found.append("the failover did not happen")
        if row.must_lose and not report.lost:
            found.append("no turn was lost, so the failover had no effect")
        if row.is_safe and report.longest_wait > row.most_wait:
            found.append(f"a game waited {report.longest_wait:.1f} s")
        return found

    def as_json(self) -> dict[str, Any]:
        """Returns the values for a file."""
        row = self.row
        settings = {
            "failover": row.name,
            "min_replicas_to_write": row.least,
            "redis_replicas": row.confirmed,
            "servers_listen": not row.is_deaf,
            "must_be_clean": row.is_safe,
            "happened": self.happened,
        }
        return {**settings, **self.report.as_json()}


def requirements_of(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Returns what has to hold of the rows that must be clean, and of the others."""
    found = []
    kinds = {
        f"rows that must be clean: no turn lost or doubled, no gap in a watch, no game waits longer than {most:g} s": [
            result for result in results if result.row.is_safe and result.row.most_wait == most
        ]
        for most in (MOST_WAIT_SECONDS, MOST_ORDERED_WAIT_SECONDS)
    }
    kinds["other rows: no turn doubled, and the next call after each lost turn is refused"] = [
        result for result in results if not result.row.is_safe
    ]
    for what, some in kinds.items():
        wrong = [f"{result.row.name}: {fault}" for result in some for fault in result.faults()]
        if some:
            found.append(requirement(what, met=not wrong, measured="; ".join(wrong) or f"{len(some)} of {len(some)}"))
    return found


def tables_of(results: Sequence[Result]) -> Tables:
    """Returns the tables of a report."""
    head = [
        "failover",
        "min-replicas",
        "WAIT",
        "listen",
        "turns",
        "lost",
        "told",
        "doubled",
        "longest wait, s",
        "must be clean",
    ]
    rows = [head]
    for result in results:
        row, report = result.row, result.report
        counts = (report.acknowledged, report.lost, sum(report.lost_told.values()), report.doubled)
        rows.append(
            [
                row.name,
                *(f"{number}" for number in (row.least, row.confirmed)),
                "no" if row.is_deaf else "yes",
                *(f"{count:,}" for count in counts),
                f"{report.longest_wait:.1f}",
                "yes" if row.is_safe else "",
            ]
        )
    return {"Failovers of a primary that Sentinels watch": rows}


def main(arguments: Sequence[str]) -> int:
    """Runs the rows; returns 1 if one has failed."""
    parser = argparse.ArgumentParser(
        prog="sentinel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two rows only, for CI")
    parser.add_argument("--program", default=redis_program(), help="the Redis server to use")
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    finished, errors = run_parts(
        lambda row: asyncio.run(_play(row, chosen.program)),
        {row.title: row for row in (QUICK if chosen.quick else ROWS)},
    )
    results = list(finished.values())
    report = {
        "seconds": time.monotonic() - began,
        "store": redis_version(chosen.program),
        "rows": [result.as_json() for result in results],
        "requirements": requirements_of(results),
    }
    is_complete = not chosen.quick and chosen.program == redis_program()
    return finish("sentinel", report, tables_of(results), errors=errors, is_complete=is_complete)


async def _play(row: Row, program: str) -> Result:
    """Plays during the failover; returns what was noticed."""
    module = "load.drills.deaf_server" if row.is_deaf else "service"
    options = ("--min-replicas-to-write", "1", "--min-replicas-max-lag", "10", "--repl-diskless-sync-delay", "5")
    async with (
        _watched(*options, program=program) as group,
        game_servers(group.url, SERVERS, module, RUMMIKUB_REDIS_REPLICAS=str(row.confirmed)) as servers,
        Players([server.target for server in servers], GAMES) as players,
    ):
        for server in group.servers:  # now: the servers do not start with 0
            server.execute("CONFIG", "SET", "min-replicas-to-write", row.least)
        await players.has_taken(TURNS)
        happened = await row.event(group, group.primary)
        await players.has_taken(TURNS)
        await asyncio.to_thread(group.wait_until_whole)
        await players.has_taken(TURNS)
        result = Result(row, happened, await players.stop())
        print(f"{row.title}: {result.report.lost} of {result.report.acknowledged} lost", flush=True)
        return result


@contextlib.asynccontextmanager
async def _watched(*options: str, program: str) -> AsyncIterator[WatchedServers]:
    """Runs servers and Sentinels, and starts them in a thread."""
    running = watched_servers(*options, program=program)
    group = await asyncio.to_thread(running.__enter__)
    try:
        yield group
    finally:
        running.__exit__(None, None, None)


@contextlib.asynccontextmanager
async def _relay(port: int) -> AsyncIterator[tuple[int, asyncio.Event]]:
    """Forwards a port to another one of this machine; yields its number and an event that cuts all connections off."""
    cut = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                if not cut.is_set():
                    writer.write(data)
                    await writer.drain()
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(HOST, port)
        except OSError:
            writer.close()
            return
        for one in (carry(reader, back), carry(there, writer)):
            tasks.add(asyncio.create_task(one))

    async with await asyncio.start_server(connect, HOST, 0) as server:
        yield server.sockets[0].getsockname()[1], cut
        for task in tasks:
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
