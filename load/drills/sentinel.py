"""A failover of a primary that Sentinels watch, under load: which settings lose no acknowledged turn.

Each row has its own primary, two replicas, three Sentinels and two servers. Their players record every acknowledged
turn, and look for it in the history at the end. `make drill ARGS=sentinel` runs all rows, `ARGS="sentinel --quick"` two
of those that must be clean. It fails if one of these lost or doubled a turn, or if a watcher missed one.
"""

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from rich.table import Table

from load.bench.figures import printer
from load.drills.players import Players, Report, game_servers
from load.servers import ROOT
from tools.redis_servers import HOST, RedisServer, WatchedServers, redis_program, wait_until, watched_servers

RESULTS: Final = Path("build") / "drills" / "sentinel.json"
SERVERS: Final = 2
GAMES: Final = 16
TURNS: Final = 300
"""Turns before the failover, after it, and when all servers are in step again."""
CUT_SECONDS: Final = 1.5
"""How long replicas are cut off before the primary is killed."""

Event: TypeAlias = Callable[[WatchedServers, RedisServer], Awaitable[None]]
"""Makes a replica the primary. It gets the old primary, which is running at the end."""


async def _crash(group: WatchedServers, old: RedisServer) -> None:
    """Kills the primary, and starts it when another one is the primary."""
    old.kill()
    await asyncio.to_thread(group.wait_until_switched, old)
    await asyncio.to_thread(old.start)


async def _crash_and_return(_group: WatchedServers, old: RedisServer) -> None:
    """Kills the primary, and starts it at once: it comes back before the Sentinels miss it."""
    old.kill()
    await asyncio.to_thread(old.start)


async def _cut_and_crash(group: WatchedServers, old: RedisServer) -> None:
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
        await _crash(group, old)


async def _order(group: WatchedServers, old: RedisServer) -> None:
    """Orders SENTINEL FAILOVER."""
    group.fail_over()
    await asyncio.to_thread(group.wait_until_switched, old)


async def _order_by_admin(group: WatchedServers, _old: RedisServer) -> None:
    """Runs rummikub-admin failover."""
    command = (sys.executable, "-c", "from service.cli.admin.program import main; main()", "failover", group.url)
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL)
    if await process.wait():
        raise RuntimeError("rummikub-admin failover failed; see its message above")


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
    """

    name: str
    event: Event
    least: int = 1
    confirmed: int = 0
    is_deaf: bool = False
    is_safe: bool = False


ROWS: Final = (
    Row("crash, back later", _crash, 0),
    Row("crash, back later", _crash, is_safe=True),
    Row("crash, back at once", _crash_and_return, is_safe=True),
    Row("crash, replicas cut off before", _cut_and_crash),
    Row("crash, replicas cut off before", _cut_and_crash, confirmed=1, is_safe=True),
    Row("SENTINEL FAILOVER", _order, is_deaf=True),
    Row("SENTINEL FAILOVER", _order, 2, is_deaf=True),
    Row("SENTINEL FAILOVER", _order, confirmed=1, is_deaf=True),
    Row("SENTINEL FAILOVER", _order, 0),
    Row("SENTINEL FAILOVER", _order),
    Row("SENTINEL FAILOVER", _order, confirmed=1),
    Row("rummikub-admin failover", _order_by_admin, is_safe=True),
    Row("rummikub-admin failover", _order_by_admin, is_deaf=True, is_safe=True),
)
QUICK: Final = (ROWS[1], ROWS[11])


def main(arguments: Sequence[str]) -> int:
    """Runs the rows; returns 1 if one that must be clean is not."""
    parser = argparse.ArgumentParser(
        prog="sentinel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two rows only, for CI")
    parser.add_argument("--program", default=redis_program(), help="the Redis server to use")
    chosen = parser.parse_args(arguments)
    rows = QUICK if chosen.quick else ROWS
    reports = asyncio.run(_play_all(rows, 2 if chosen.quick else 1, chosen.program))
    results = [_result(row, report) for row, report in zip(rows, reports, strict=True)]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    printer(160).print(_table(rows, reports))
    return int(any(row.is_safe and not report.is_clean for row, report in zip(rows, reports, strict=True)))


async def _play_all(rows: Sequence[Row], at_once: int, program: str) -> list[Report]:
    """Returns the report of each row."""
    places = asyncio.Semaphore(at_once)

    async def play(row: Row) -> Report:
        async with places:
            report = await _play(row, program)
            listening = "deaf servers" if row.is_deaf else "servers listen"
            settings = f"min-replicas {row.least}, REPLICAS {row.confirmed}, {listening}"
            print(f"{row.name}, {settings}: {report.lost} of {report.acknowledged} lost", flush=True)
            return report

    return await asyncio.gather(*map(play, rows))


async def _play(row: Row, program: str) -> Report:
    """Plays during the failover; returns what was noticed."""
    module = "load.drills.deaf_server" if row.is_deaf else "service"
    options = ("--min-replicas-to-write", "1", "--min-replicas-max-lag", "10")
    async with (
        _watched(*options, program=program) as group,
        game_servers(group.url, SERVERS, module, RUMMIKUB_REDIS_REPLICAS=str(row.confirmed)) as servers,
        Players([server.target for server in servers], GAMES) as players,
    ):
        for server in group.servers:  # now: the servers do not start with 0
            server.execute("CONFIG", "SET", "min-replicas-to-write", row.least)
        await players.has_taken(TURNS)
        await row.event(group, group.primary)
        await players.has_taken(TURNS)
        await asyncio.to_thread(group.wait_until_whole)
        await players.has_taken(TURNS)
        return await players.stop()


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


def _result(row: Row, report: Report) -> dict[str, Any]:
    settings = {
        "failover": row.name,
        "min_replicas_to_write": row.least,
        "redis_replicas": row.confirmed,
        "servers_listen": not row.is_deaf,
        "must_be_clean": row.is_safe,
    }
    return {**settings, **report.as_json()}


def _table(rows: Sequence[Row], reports: Sequence[Report]) -> Table:
    """Returns the results as a table."""
    table = Table()
    headings = ("failover", "min-replicas", "REPLICAS", "listens", "turns", "lost", "unnoticed", "doubled", "gaps")
    for heading in (*headings, "outage s", "clean"):
        table.add_column(heading, justify="left" if heading in {"failover", "clean"} else "right")
    for row, report in zip(rows, reports, strict=True):
        counts = (report.acknowledged, report.lost, report.lost_unnoticed, report.doubled, report.watch_gaps)
        must = " (must be)" if row.is_safe else ""
        table.add_row(
            row.name,
            str(row.least),
            str(row.confirmed),
            "no" if row.is_deaf else "yes",
            *(f"{count:,}" for count in counts),
            f"{report.longest_outage:.1f}",
            ("yes" if report.is_clean else "NO") + must,
        )
    return table
