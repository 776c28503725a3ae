"""Restarts two servers behind the web edge, one after the other, and counts what their callers notice.

Two servers share one Redis. Players whose client retries with request ids, players with a plain client (no retries, no
request ids), validators of both kinds and watchers call them through an Envoy with deploy/envoy.yaml. Each server is
stopped with SIGTERM and started again, the next one when the edge sees both healthy; once without a lame duck, and
once with one. `make drill ARGS=rolling`, or ARGS="rolling --restarts 1" for a quick look. Needs `make envoy`.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc
import grpc.aio

from load.bench.figures import are_met, print_report, printer, quantiles, requirement
from load.calls import OWN_CONNECTION, reason_of
from rummikub import aio
from rummikub.v1 import game_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from support.edge import EdgeProcess, envoy_is_installed
from tools.edge_config import Address, LocalEdge, local
from tools.games import Client, bearer, changes_of
from tools.redis_servers import RedisServer
from tools.server_process import ServerProcess
from tools.servers import free_port
from tools.web import collect_page, running_envoy

T = TypeVar("T")

RESULTS: Final = Path("build") / "drills" / "rolling.json"
RESTARTS: Final = 10
LAME_DUCKS: Final = (0.0, 5.0)
TABLES: Final = 8
"""Games of each kind of client that are played at once; each has a watcher."""
PAUSE_SECONDS: Final = 0.02
"""The pause of a caller between two calls."""
SETTLE_SECONDS: Final = 1.0
"""How long all callers run before the first restart and after the last one."""
HEALTHY_SECONDS: Final = 60.0
"""How long the edge may take to see both servers healthy."""
CATCH_UP_SECONDS: Final = 30.0
"""How long a watcher may take to be told of the last change."""
SERVERS: Final = 2
RETRYING: Final = "retries, request ids"
PLAIN: Final = "plain"
NO_TIME_LIMIT: Final = ruleset_pb2.Ruleset(turn_time_limit_seconds=0)
SETTINGS: Final = {
    "RUMMIKUB_PEER_SHARE": "1",
    "RUMMIKUB_GAMES_PER_MINUTE": "0",
    "RUMMIKUB_JOIN_GUESSES_PER_MINUTE": "0",
    "RUMMIKUB_LOG_LEVEL": "error",
}


@dataclass
class Noticed:
    """What the callers of one kind noticed.

    Attributes:
        calls: Answered and failed calls.
        failed: Failed calls by method, status and reason.
        milliseconds: The duration of each call.
        acknowledged: Acknowledged turns.
        lost: Acknowledged turns that the history lacks or has with another etag.
        unexplained: Turns in the history that were neither acknowledged nor left unanswered.
        watches: Watched games.
        watch_gaps: Revisions that a watcher missed or got twice.
        watch_failures: Watches that ended with an error or were not told of the last change.
    """

    calls: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)
    acknowledged: int = 0
    lost: int = 0
    unexplained: int = 0
    watches: int = 0
    watch_gaps: int = 0
    watch_failures: int = 0

    async def call(self, method: str, call: Awaitable[T]) -> T:
        """Returns the answer to a call. Counts it. Raises AioRpcError."""
        started = time.perf_counter()
        self.calls += 1
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            self.failed[f"{method}: {error.code().name} {reason_of(error)}"] += 1
            raise
        finally:
            self.milliseconds.append((time.perf_counter() - started) * 1e3)

    def as_json(self) -> dict[str, Any]:
        """Returns the figures for the report."""
        durations = quantiles(self.milliseconds)
        return {
            "calls": self.calls,
            "failed": sum(self.failed.values()),
            "failures": dict(sorted(self.failed.items())),
            "milliseconds": durations,
            "acknowledged": self.acknowledged,
            "lost": self.lost,
            "unexplained": self.unexplained,
            "watches": self.watches,
            "watch_gaps": self.watch_gaps,
            "watch_failures": self.watch_failures,
        }


@dataclass
class Table:
    """A game with what its players and its watcher know.

    Attributes:
        game_id: The game.
        tokens: The tokens of its seats.
        game: The game as the players saw it last.
        first_revision: The revision at which it started.
        etags: The etag of each acknowledged turn by revision.
        unanswered: The revisions of turns whose call failed.
        watched: The last revision that the watcher got.
    """

    game_id: str
    tokens: dict[int, str]
    game: game_pb2.Game
    first_revision: int
    etags: dict[int, str] = field(default_factory=dict)
    unanswered: set[int] = field(default_factory=set)
    watched: int = 0


class Callers:
    """Players, a validator and watchers of one kind.

    Args:
        edge: The address of the edge.
        kind: RETRYING or PLAIN.
    """

    def __init__(self, edge: str, kind: str) -> None:
        self._edge = edge
        self._kind = kind
        self._is_stopping = False
        self._tables: list[Table] = []
        self.noticed = Noticed()

    def stop(self) -> None:
        """Ends the games after the turns in progress."""
        self._is_stopping = True

    @contextlib.asynccontextmanager
    async def _client(self) -> AsyncIterator[Client | aio.Rummikub]:
        """Yields a client with its own connection."""
        if self._kind == RETRYING:
            async with aio.Rummikub(self._edge, options=dict(OWN_CONNECTION)) as client:
                yield client
        else:
            options = (*OWN_CONNECTION, ("grpc.enable_retries", 0))
            async with grpc.aio.insecure_channel(self._edge, options) as channel:
                yield Client(channel)

    async def run(self) -> None:
        """Calls until `stop`."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(TABLES):
                tasks.create_task(self._play())
            tasks.create_task(self._validate())

    async def _validate(self) -> None:
        async with self._client() as client:
            while not self._is_stopping:
                request = vs.ValidateTurnRequest(has_melded=True)
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await self.noticed.call("ValidateTurn", client.validation.ValidateTurn(request, timeout=10))
                await asyncio.sleep(PAUSE_SECONDS)

    async def _play(self) -> None:
        """Plays one game after the other."""
        async with self._client() as client:
            while not self._is_stopping:
                try:
                    table = await self._new_table(client)
                except grpc.aio.AioRpcError:
                    continue
                self._tables.append(table)
                watching = asyncio.create_task(self._watch(table))
                try:
                    await self._play_table(client, table)
                    await self._catch_up(table, watching)
                finally:
                    watching.cancel()
                    await asyncio.wait([watching])

    async def _new_table(self, client: Client | aio.Rummikub) -> Table:
        """Starts a game of two."""
        noticed, games = self.noticed, client.games
        creation = gs.CreateGameRequest(ruleset=NO_TIME_LIMIT)
        created = await noticed.call("CreateGame", games.CreateGame(creation, timeout=10))
        game_id, tokens = created.game.game_id, {}
        for name in ("Ann", "Bob"):
            joining = gs.JoinGameRequest(game_id=game_id, name=name)
            joined = await noticed.call("JoinGame", games.JoinGame(joining, timeout=10))
            tokens[joined.seat] = joined.seat_token
        starting = games.StartGame(
            gs.StartGameRequest(game_id=game_id), metadata=bearer(created.host_token), timeout=10
        )
        started = await noticed.call("StartGame", starting)
        return Table(game_id, tokens, started.game, started.game.revision)

    async def _play_table(self, client: Client | aio.Rummikub, table: Table) -> None:
        """Draws until the pool is empty or `stop`. After a failed call the player reads the game again."""
        while table.game.pool_count and not self._is_stopping:
            try:
                await self._draw(client, table)
            except grpc.aio.AioRpcError:
                table.unanswered.add(table.game.revision + 1)
                with contextlib.suppress(grpc.aio.AioRpcError):
                    reading = client.games.GetGame(gs.GetGameRequest(game_id=table.game_id), timeout=10)
                    table.game = (await self.noticed.call("GetGame", reading)).game
            await asyncio.sleep(PAUSE_SECONDS)

    async def _draw(self, client: Client | aio.Rummikub, table: Table) -> None:
        game = table.game
        turn = ts.PlayTurnRequest(
            game_id=table.game_id, expected_revision=game.revision, etag=game.etag, draw=ts.DrawTile()
        )
        drawing = client.turns.PlayTurn(turn, metadata=bearer(table.tokens[game.turn.seat]), timeout=10)
        table.game = (await self.noticed.call("PlayTurn", drawing)).game
        table.etags[table.game.revision] = table.game.etag
        self.noticed.acknowledged += 1

    async def _watch(self, table: Table) -> None:
        """Follows a game with a client that resumes, and counts the revisions that it misses."""
        self.noticed.watches += 1
        async with aio.Rummikub(self._edge, options=dict(OWN_CONNECTION)) as client:
            async for update in client.watch(table.game_id):
                match update.WhichOneof("update"):
                    case "snapshot":
                        self.noticed.watch_gaps += bool(table.watched) * abs(update.snapshot.revision - table.watched)
                        table.watched = update.snapshot.revision
                    case "change":
                        self.noticed.watch_gaps += abs(update.change.revision - table.watched - 1)
                        table.watched = update.change.revision
                    case _:
                        pass

    async def _catch_up(self, table: Table, watching: "asyncio.Task[None]") -> None:
        """Waits until the watcher has been told of the last change."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_SECONDS):
                while table.watched < table.game.revision and not watching.done():  # noqa: ASYNC110 - it ends soon
                    await asyncio.sleep(0.01)
        self.noticed.watch_failures += table.watched < table.game.revision

    async def check(self, server: str) -> None:
        """Compares the history of all games with what was acknowledged."""
        async with grpc.aio.insecure_channel(server, OWN_CONNECTION) as channel:
            client = Client(channel)
            for table in self._tables:
                changes = await changes_of(client, table.game_id)
                stored = {change.revision: change.etag for change in changes if change.revision > table.first_revision}
                self.noticed.lost += sum(stored.get(revision) != etag for revision, etag in table.etags.items())
                self.noticed.unexplained += len(stored.keys() - table.etags.keys() - table.unanswered)


class Edge:
    """An Envoy before some servers, with its admin port.

    Args:
        services: The addresses of the servers.
        validations: Their addresses for ValidationService.
    """

    def __init__(self, services: Sequence[Address], validations: Sequence[Address]) -> None:
        self._upstreams = services, validations
        self.port, self._admin = free_port(), free_port()

    @property
    def target(self) -> str:
        """The address of the edge."""
        return f"127.0.0.1:{self.port}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs Envoy within the context."""
        with tempfile.TemporaryDirectory(prefix="rummikub-drill-") as folder:
            listen = ("127.0.0.1", self.port)
            text = local(LocalEdge(listen, *self._upstreams, page=collect_page(Path(folder))))
            text += f"\nadmin: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {self._admin}}}}}}}\n"
            with running_envoy(text, Path(folder)) as process:
                await EdgeProcess(self.port, process).ready()
                yield

    async def sees_all_healthy(self) -> None:
        """Waits until Envoy would send calls to every server, at both of its addresses. Raises TimeoutError."""
        async with asyncio.timeout(HEALTHY_SECONDS):
            while not await asyncio.to_thread(self._all_healthy):  # noqa: ASYNC110 - Envoy sends no notification
                await asyncio.sleep(0.1)

    def _all_healthy(self) -> bool:
        url = f"http://127.0.0.1:{self._admin}/clusters?format=json"
        with urllib.request.urlopen(url, timeout=5) as answer:
            clusters = json.load(answer)["cluster_statuses"]
        statuses = [host["health_status"] for cluster in clusters for host in cluster.get("host_statuses", ())]
        healthy = {"eds_health_status": "HEALTHY"}
        return len(statuses) == 2 * SERVERS and all(status == healthy for status in statuses)


async def rolling(lame_duck_seconds: float, restarts: int) -> dict[str, Any]:
    """Restarts each server some times under load; returns what callers of both kinds noticed."""
    store = RedisServer()
    store.start()
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(store.close)
        servers = []
        for _ in range(SERVERS):
            environment = {
                **SETTINGS,
                "RUMMIKUB_REDIS_URL": store.url,
                "RUMMIKUB_VALIDATION_LISTEN": f"127.0.0.1:{free_port()}",
                "RUMMIKUB_LAME_DUCK_SECONDS": str(lame_duck_seconds),
            }
            server = ServerProcess(environment, free_port())
            stack.push_async_callback(server.kill)  # before the start, which may time out
            await server.start()
            servers.append(server)
        services, validations = (
            [("127.0.0.1", port) for port in ports]
            for ports in zip(*((server.port, server.validation_port) for server in servers), strict=True)
        )
        edge = Edge(services, validations)
        await stack.enter_async_context(edge.running())
        await edge.sees_all_healthy()
        callers = {kind: Callers(edge.target, kind) for kind in (RETRYING, PLAIN)}
        running = [asyncio.create_task(one.run()) for one in callers.values()]
        started = time.monotonic()
        await asyncio.sleep(SETTLE_SECONDS)
        for _ in range(restarts):
            for server in servers:
                await server.terminate()
                await server.start_again()
                await edge.sees_all_healthy()
        await asyncio.sleep(SETTLE_SECONDS)
        seconds = time.monotonic() - started
        for one in callers.values():
            one.stop()
        await asyncio.gather(*running)
        for one in callers.values():
            await one.check(servers[0].target)
    kinds = {kind: one.noticed.as_json() for kind, one in callers.items()}
    return {"lame_duck_seconds": lame_duck_seconds, "seconds": seconds, "kinds": kinds}


def _requirements(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns what has to hold: nothing fails for a client with request ids, and nothing is lost for anyone."""
    found = []
    for run in runs:
        retrying, plain = run["kinds"][RETRYING], run["kinds"][PLAIN]
        lame_duck = run["lame_duck_seconds"]
        name = f"lame duck {lame_duck:g} s"
        failed = retrying["failed"]
        found.append(
            requirement(f"no failed call with retries and request ids, {name}", met=not failed, measured=str(failed))
        )
        if lame_duck:
            failed = plain["failed"]
            found.append(requirement(f"no failed call of a plain client, {name}", met=not failed, measured=str(failed)))
        wrong = {key: retrying[key] + plain[key] for key in ("lost", "unexplained", "watch_gaps", "watch_failures")}
        measured = ", ".join(f"{key} {count}" for key, count in wrong.items())
        found.append(
            requirement(
                f"no turn lost or doubled, no gap in a watch, {name}", met=not any(wrong.values()), measured=measured
            )
        )
    return found


def _rows(runs: Sequence[dict[str, Any]]) -> list[list[str]]:
    head = ["client", "lame duck", "calls", "failed", "p99 ms", "max ms", "turns", "lost", "watches", "gaps"]
    rows = [head]
    for run in runs:
        for kind, noticed in run["kinds"].items():
            numbers = [noticed["milliseconds"]["p99"], noticed["milliseconds"]["max"], noticed["acknowledged"]]
            rows.append(
                [
                    kind,
                    f"{run['lame_duck_seconds']:g} s",
                    f"{noticed['calls']:,}",
                    f"{noticed['failed']:,}",
                    *(f"{number:,.0f}" for number in numbers),
                    str(noticed["lost"]),
                    str(noticed["watches"]),
                    str(noticed["watch_gaps"]),
                ]
            )
    return rows


def _failures(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Returns a line for each kind of failure."""
    return [
        f"{kind}, lame duck {run['lame_duck_seconds']:g} s: {count} x {failure}"
        for run in runs
        for kind, noticed in run["kinds"].items()
        for failure, count in noticed["failures"].items()
    ]


def main(arguments: Sequence[str]) -> int:
    """Runs the drill and prints a table; returns 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(prog="rolling", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--restarts", type=int, default=RESTARTS, help=f"restarts of each server ({RESTARTS})")
    parser.add_argument(
        "--lame-duck", type=float, nargs="+", default=LAME_DUCKS, metavar="SECONDS", help="lame ducks to try (0 5)"
    )
    chosen = parser.parse_args(arguments)
    if not envoy_is_installed():
        sys.exit("Envoy is not installed; run `make envoy`")
    runs = [asyncio.run(rolling(seconds, chosen.restarts)) for seconds in chosen.lame_duck]
    report = {"restarts": SERVERS * chosen.restarts, "runs": runs, "requirements": _requirements(runs)}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    title = f"{SERVERS} servers behind Envoy, each restarted {chosen.restarts} times under load"
    print_report(report, {title: _rows(runs)}, [*_failures(runs), f"All figures: {RESULTS}"], printer())
    return 0 if are_met(report) else 1
