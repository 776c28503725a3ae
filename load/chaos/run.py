"""One run: a deployment with faults, players behind proxies, the operator's feed, and the history that comes of it."""

import asyncio
import contextlib
import random
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import grpc
import grpc.aio

from load.bench.figures import run_facts
from load.calls import OWN_CONNECTION
from load.chaos.deployments import ADMIN_TOKEN, DEPLOYMENTS, LOBBY_SECONDS, Deployment, FaultMethod
from load.chaos.history import Archived, Entry, Fault, Fed, History, Mischief, Run, StoredGame
from load.chaos.players import Game, Players
from load.chaos.proxy import Proxy
from rummikub.admin.v1 import admin_service_pb2 as admin
from rummikub.admin.v1.admin_service_pb2_grpc import AdminServiceStub
from tools.games import Client, bearer
from tools.server_process import ServerProcess
from tools.servers import ROOT
from tools.store_faults import compiled_library

RESULTS: Final = Path("build") / "chaos"
OF_COPIES: Final = RESULTS / "copies"
"""The histories of servers of another checkout."""
SETTLE_SECONDS: Final = 45.0
"""How long after the last fault feed and archive may take: claims of a dead server's entries last ten seconds."""
AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run.

    Attributes:
        store: The kind of store, a name in DEPLOYMENTS.
        seed: Chooses faults, games and mischief.
        seconds: How long there are faults.
        checkout: The code that the servers run.
        faults: The names of the faults to make; none for all.
        games: How many games are played at once.
        gap_seconds: The longest pause between two faults.
        stunts: The share of turns with mischief.
        kinds: The kinds of games (players.KINDS); none for all.
        settle_seconds: How long after the last fault feed and archive may take.
    """

    store: str
    seed: int
    seconds: float
    checkout: Path = ROOT
    faults: Collection[str] = ()
    games: int = 10
    gap_seconds: float = 3.0
    stunts: float = 0.2
    settle_seconds: float = SETTLE_SECONDS
    kinds: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of a run: its history, and why games were given up."""

    entries: list[Entry]
    given_up: Counter[str]


async def run(plan: Plan) -> Done:
    """Runs a plan; returns what it has left."""
    history = History((RESULTS if plan.checkout == ROOT else OF_COPIES) / f"{plan.store}-{plan.seed}.jsonl")
    kind = DEPLOYMENTS[plan.store]
    history.add(Run(plan.store, plan.seed, run_facts()["revision"], LOBBY_SECONDS, is_lossy=plan.store == "everysec"))
    with (
        tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as folder,
        contextlib.closing(history),
    ):
        library = compiled_library(Path(folder))
        async with kind(Path(folder), library, plan.checkout).running() as deployment:
            return await _played(plan, deployment, history)


async def _played(plan: Plan, deployment: Deployment, history: History) -> Done:
    proxies = [
        Proxy(partial(_port_of, server), random.Random(f"{plan.seed} {number}"))
        for number, server in enumerate(deployment.servers)
    ]
    async with contextlib.AsyncExitStack() as stack:
        for proxy in proxies:
            await stack.enter_async_context(proxy.listening())
        feed = _Feed(deployment, history)
        following = asyncio.create_task(feed.follow())
        targets = [f"127.0.0.1:{proxy.port}" for proxy in proxies]
        try:
            async with Players(targets, history, plan.seed, plan.games, plan.stunts, plan.kinds) as players:
                await _make_faults(plan, deployment, history)
                await deployment.revive()
                async with asyncio.timeout(3 * SETTLE_SECONDS):
                    await players.stop()
            stored = await _stored(deployment, players.finished)
            history.extend(stored)
            await feed.has(stored, plan.settle_seconds)
        finally:
            following.cancel()
            await asyncio.wait([following])
        history.extend(await _archived(deployment, stored, plan.settle_seconds))
        mischief = sum((proxy.done for proxy in proxies), Counter[str]())
        history.extend(Mischief(name, count) for name, count in mischief.items())
        return Done(history.entries, players.given_up)


def _port_of(server: ServerProcess) -> int:
    return server.port


async def _make_faults(plan: Plan, deployment: Deployment, history: History) -> None:
    """Makes all faults of each lane in random order, again and again, until the time is over."""
    async with asyncio.TaskGroup() as tasks:
        for number, lane in enumerate(deployment.lanes):
            chosen = {name: fault for name, fault in lane.items() if not plan.faults or name in plan.faults}
            if chosen:
                chance = random.Random(f"{plan.store} {plan.seed} {number}")
                tasks.create_task(_make_faults_of(chosen, plan, history, chance))


async def _make_faults_of(
    faults: Mapping[str, FaultMethod], plan: Plan, history: History, chance: random.Random
) -> None:
    deadline = time.monotonic() + plan.seconds
    while True:
        for name in chance.sample(sorted(faults), len(faults)):
            await asyncio.sleep(chance.uniform(0.3, 1) * plan.gap_seconds)
            if time.monotonic() > deadline:
                return
            began = time.monotonic()
            target = await faults[name](chance)
            history.add(Fault(name, target, began, time.monotonic()))


async def _stored(deployment: Deployment, games: Sequence[Game]) -> list[StoredGame]:
    """Returns the games as they are stored."""
    at_once = asyncio.Semaphore(AT_ONCE)
    async with grpc.aio.insecure_channel(deployment.servers[0].target, OWN_CONNECTION) as channel:

        async def read(game: Game) -> StoredGame:
            async with at_once:
                return await game.stored(Client(channel))

        return await asyncio.gather(*map(read, games))


class _Feed:
    """The operator's feed of all changes, resumed by its cursor whenever its server fails."""

    def __init__(self, deployment: Deployment, history: History) -> None:
        self._deployment = deployment
        self._history = history
        self._seen: set[str] = set()
        self._cursor = ""

    async def follow(self) -> None:
        """Follows the feed for ever."""
        while True:
            for server in self._deployment.servers:
                target = f"127.0.0.1:{server.admin_port}"
                async with grpc.aio.insecure_channel(target, OWN_CONNECTION) as channel:
                    with contextlib.suppress(grpc.aio.AioRpcError):
                        await self._read(channel)
                await asyncio.sleep(0.1)

    async def _read(self, channel: grpc.aio.Channel) -> None:
        request = admin.WatchGamesRequest(cursor=self._cursor, from_oldest=not self._cursor)
        async for update in AdminServiceStub(channel).WatchGames(request, metadata=bearer(ADMIN_TOKEN)):
            if update.WhichOneof("update") == "changed":
                changed = update.changed
                self._seen.add(changed.change.etag)
                self._history.add(Fed(changed.game_id, changed.change.etag))
            self._cursor = update.cursor or self._cursor

    async def has(self, stored: Sequence[StoredGame], seconds: float) -> None:
        """Waits until it has had all changes, at most for some seconds."""
        wanted = {change["etag"] for game in stored for change in game.changes}
        deadline = time.monotonic() + seconds
        while not wanted <= self._seen and time.monotonic() < deadline:  # noqa: ASYNC110 - many updates
            await asyncio.sleep(0.2)


async def _archived(deployment: Deployment, stored: Sequence[StoredGame], seconds: float) -> list[Archived]:
    """Returns the games in the archive, when it has all that are finished, or after some seconds."""
    wanted = {game.game for game in stored if game.state == "GAME_STATE_FINISHED"}
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.closing(sqlite3.connect(deployment.archive)) as database:
            rows = database.execute("SELECT game_id, revision, etag FROM games WHERE history IS NOT NULL").fetchall()
        if wanted <= {game for game, *_ in rows} or time.monotonic() > deadline:
            return [Archived(game, f"{revision}-{etag}") for game, revision, etag in rows]
        await asyncio.sleep(0.5)
