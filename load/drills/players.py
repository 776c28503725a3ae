"""Players under load, and the check at the end that no acknowledged turn was lost or doubled.

Many games of two who draw are played at once over gRPC, on one server or several that share a store. Every acknowledged
(game, revision, etag) is recorded, every unanswered call is repeated with its request id, and watchers check that no
revision is missing or repeated. At the end the stored history is compared with what was acknowledged.
"""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import grpc
import grpc.aio

from load.calls import reason_of
from rummikub.v1 import game_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from tools.games import Client, bearer, changes_of, new_id
from tools.server_process import ServerProcess, server_process

T = TypeVar("T")

CALL_SECONDS: Final = 10.0
"""The deadline of a call."""
RETRY_SECONDS: Final = 0.05
"""The pause before an unanswered call is repeated."""
ANSWER_SECONDS: Final = 120.0
"""How long a call is repeated; a drill that takes longer fails."""
CATCH_UP_SECONDS: Final = 30.0
"""How long after the last turn watchers may take to be told of it."""
CHECKED_AT_ONCE: Final = 8

UNANSWERED: Final = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
)
"""The status of a call that may or may not have been executed. Its request id makes it safe to repeat."""

TELLING: Final = ("STALE_STATE", "ETAG_MISMATCH", "GAME_NOT_FOUND")
"""The reasons by which a player learns that turns are lost."""

NO_TIME_LIMIT: Final = ruleset_pb2.Ruleset(turn_time_limit_seconds=0)

OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)

SETTINGS: Final = {"RUMMIKUB_PEER_SHARE": "1", "RUMMIKUB_GAMES_PER_MINUTE": "0", "RUMMIKUB_LOG_LEVEL": "error"}
"""Settings of servers that all players call from one address."""


@dataclass
class Report:
    """What players and watchers noticed."""

    acknowledged: int = 0
    """Acknowledged turns."""
    lost: int = 0
    """Acknowledged turns that the history lacks, or has with another etag."""
    lost_told: dict[str, int] = field(default_factory=dict)
    """Those of them by how the next call that was based on them was refused: STALE_STATE, ETAG_MISMATCH, or
    GAME_NOT_FOUND if the whole game is lost."""
    lost_unnoticed: int = 0
    """Those of them after which the next call was accepted."""
    lost_lobbies: int = 0
    """Games of which an acknowledged creation or joining was lost before they were started."""
    doubled: int = 0
    """Changes in the history that no acknowledged or unanswered request explains, and repeated revisions."""
    told: int = 0
    """Turns that were refused, because the stored state was not the one that the player had seen."""
    watchers: int = 0
    """Watched games."""
    watch_gaps: int = 0
    """Revisions that a watcher missed or got again."""
    watch_restarts: int = 0
    """Watches that had to start anew, because the history was another."""
    watchers_behind: int = 0
    """Watchers that were not told of the last change in time."""
    longest_outage: float = 0.0
    """The longest time in seconds without any acknowledged turn."""
    slowest_turn: float = 0.0
    """The longest time in seconds from the first attempt of a turn to its acknowledgement."""
    seconds: float = 0.0
    """The time from the first acknowledged turn to the last."""
    failed_calls: dict[str, int] = field(default_factory=dict)
    """Calls that failed, by method, status and reason: what a client without retries sees."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing acknowledged was lost or doubled, and no watcher missed anything."""
        return not (self.lost or self.lost_lobbies or self.doubled or self.watch_gaps or self.watchers_behind)

    def as_json(self) -> dict[str, Any]:
        """Returns the values for a file."""
        return asdict(self)


@dataclass
class _Table:
    """A game with what its players know of it."""

    game_id: str
    tokens: Mapping[int, str]
    game: game_pb2.Game
    first_revision: int
    acknowledged: set[tuple[int, str]] = field(default_factory=set)
    """The revision and the etag of each acknowledged turn."""
    bases: dict[tuple[int, str], tuple[int, str]] = field(default_factory=dict)
    """The revision and the etag that the player of each acknowledged turn had seen."""
    branch: list[tuple[int, str]] = field(default_factory=list)
    """The turns that were acknowledged since the game was read last: the next call is based on all of them."""
    refused: dict[tuple[int, str], str] = field(default_factory=dict)
    """The reason why the next call after turns was refused."""
    unresolved: set[int] = field(default_factory=set)
    """The revisions that requests would have made whose answer never came."""
    told: int = 0
    wrong_answers: int = 0
    """Answers with a revision that is not the next one."""
    seen: tuple[int, str] = (0, "")
    """The last revision that the watcher has seen, with its etag."""


class Players:
    """Plays games until it is stopped.

    Args:
        targets: The addresses of the servers; each call goes to a random one.
        games: How many games are played at once. Each has one watcher.
        pause: The longest pause before a turn, in seconds.
        seed: Chooses servers and pauses.
    """

    def __init__(self, targets: Sequence[str], games: int = 20, pause: float = 0.0, seed: int = 1) -> None:
        self._targets = targets
        self._games = games
        self._pause = pause
        self._random = random.Random(seed)
        self._clients: list[Client] = []
        self._tables: list[_Table] = []
        self._failed: Counter[str] = Counter()
        self._report = Report()
        self._first = self._last = 0.0
        self._progress = asyncio.Condition()
        self._is_stopping = False
        self._tasks: list[asyncio.Task[None]] = []
        self._channels = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "Players":
        """Begins to play."""
        for target in self._targets:
            channel = grpc.aio.insecure_channel(target, OPTIONS)
            self._clients.append(Client(await self._channels.enter_async_context(channel)))
        self._tasks = [asyncio.create_task(self._play(), name=f"player-{number}") for number in range(self._games)]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Ends all games at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._channels.aclose()

    @property
    def turns(self) -> int:
        """The number of acknowledged turns."""
        return self._report.acknowledged

    @property
    def failed(self) -> int:
        """The number of calls that have failed."""
        return self._failed.total()

    async def has_taken(self, turns: int, seconds: float = ANSWER_SECONDS) -> None:
        """Waits until this many more turns are acknowledged. Raises TimeoutError, or the failure of a player."""
        wanted = self.turns + turns
        async with asyncio.timeout(seconds), self._progress:
            await self._progress.wait_for(lambda: self.turns >= wanted or any(task.done() for task in self._tasks))
        for task in self._tasks:
            if task.done():
                task.result()

    async def stop(self) -> Report:
        """Finishes the turns in progress, waits for the watchers, checks the history and returns what was noticed."""
        self._is_stopping = True
        await asyncio.gather(*self._tasks)
        self._report.seconds = self._last - self._first
        at_once = asyncio.Semaphore(CHECKED_AT_ONCE)

        async def check(table: _Table) -> None:
            async with at_once:
                await self._check(table)

        await asyncio.gather(*map(check, self._tables))
        self._report.failed_calls = dict(sorted(self._failed.items()))
        return self._report

    async def _play(self) -> None:
        """Plays one game after the other until players are stopped."""
        try:
            while not self._is_stopping:
                table = await self._new_table()
                if table is None:
                    continue
                self._tables.append(table)
                watching = asyncio.create_task(self._watch(table))
                try:
                    if await self._play_table(table):
                        await self._caught_up(table, watching)
                finally:
                    watching.cancel()
                    await asyncio.wait([watching])
        finally:
            async with self._progress:
                self._progress.notify_all()

    async def _new_table(self) -> _Table | None:
        """Starts a game of two; returns None if the store lost it meanwhile."""
        try:
            return await self._started_table()
        except grpc.aio.AioRpcError as error:
            if error.code() not in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION):
                raise
        self._report.lost_lobbies += 1  # the game, or a seat at it
        return None

    async def _started_table(self) -> _Table:
        creation = gs.CreateGameRequest(ruleset=NO_TIME_LIMIT, request_id=new_id())
        created = await self._call("CreateGame", lambda client: client.games.CreateGame(creation, timeout=CALL_SECONDS))
        game_id, host = created.game.game_id, bearer(created.host_token)
        tokens: dict[int, str] = {}
        for name in ("Ann", "Bob"):
            joining = gs.JoinGameRequest(game_id=game_id, name=name, request_id=new_id())
            joined = await self._call("JoinGame", partial(_join, joining))
            tokens[joined.seat] = joined.seat_token
        start = gs.StartGameRequest(game_id=game_id, request_id=new_id())
        started = await self._call(
            "StartGame", lambda client: client.games.StartGame(start, metadata=host, timeout=CALL_SECONDS)
        )
        return _Table(game_id, tokens, started.game, started.game.revision)

    async def _play_table(self, table: _Table) -> bool:
        """Draws until the pool is empty or players are stopped; returns whether the game still exists."""
        while not self._is_stopping and table.game.pool_count:
            if self._pause:
                await asyncio.sleep(self._random.uniform(0, self._pause))
            try:
                await self._draw(table)
            except grpc.aio.AioRpcError as error:
                table.told += 1
                if error.code() is grpc.StatusCode.NOT_FOUND:
                    return False
                if error.code() is not grpc.StatusCode.ABORTED:
                    raise
        return True

    async def _draw(self, table: _Table) -> None:
        """Draws a tile for the player whose turn it is. A refused player reads the game again and continues."""
        game = table.game
        expected = game.revision + 1
        request = ts.PlayTurnRequest(
            game_id=table.game_id,
            expected_revision=game.revision,
            etag=game.etag,
            request_id=new_id(),
            draw=ts.DrawTile(),
        )
        seat = bearer(table.tokens[game.turn.seat])
        began = time.monotonic()
        table.unresolved.add(expected)
        try:
            answer = await self._call(
                "PlayTurn", lambda client: client.turns.PlayTurn(request, metadata=seat, timeout=CALL_SECONDS)
            )
        except grpc.aio.AioRpcError as error:
            table.refused |= dict.fromkeys(table.branch, reason_of(error))
            table.branch.clear()
            seen = gs.GetGameRequest(game_id=table.game_id)
            read = await self._call("GetGame", lambda client: client.games.GetGame(seen, timeout=CALL_SECONDS))
            table.game = read.game
            raise
        table.unresolved.discard(expected)
        table.wrong_answers += answer.game.revision != expected
        table.game = answer.game
        turn = (answer.game.revision, answer.game.etag)
        table.acknowledged.add(turn)
        table.bases[turn] = (game.revision, game.etag)
        table.branch.append(turn)
        await self._count(began)

    async def _count(self, began: float) -> None:
        now = time.monotonic()
        report = self._report
        self._first = self._first or now
        report.longest_outage = max(report.longest_outage, now - (self._last or now))
        report.slowest_turn = max(report.slowest_turn, now - began)
        report.acknowledged += 1
        self._last = now
        async with self._progress:
            self._progress.notify_all()

    async def _call(self, method: str, rpc: Callable[[Client], Awaitable[T]]) -> T:
        """Returns the answer of some server; repeats a call without an answer. Raises any other refusal."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return await rpc(self._random.choice(self._clients))
            except grpc.aio.AioRpcError as error:
                self._note_failure(method, error)
                if error.code() not in UNANSWERED or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    def _note_failure(self, method: str, error: grpc.aio.AioRpcError) -> None:
        self._failed[f"{method} {error.code().name} {reason_of(error)[:60]}"] += 1

    async def _watch(self, table: _Table) -> None:
        """Watches a game; resumes after a failure. If the history is another one, it begins with a snapshot."""
        while True:
            revision, etag = table.seen
            request = gs.WatchGameRequest(game_id=table.game_id, after_revision=revision, etag=etag)
            try:
                async for update in self._random.choice(self._clients).games.WatchGame(request):
                    self._see(table, update)
            except grpc.aio.AioRpcError as error:
                self._note_failure("WatchGame", error)
                if error.code() not in UNANSWERED:
                    self._report.watch_restarts += 1
                    table.seen = (0, "")
            await asyncio.sleep(RETRY_SECONDS)

    def _see(self, table: _Table, update: gs.WatchGameResponse) -> None:
        match update.WhichOneof("update"):
            case "snapshot":
                table.seen = (update.snapshot.revision, update.snapshot.etag)
            case "change":
                if update.change.revision != table.seen[0] + 1:
                    self._report.watch_gaps += 1
                table.seen = (update.change.revision, update.change.etag)
            case _:
                pass

    async def _caught_up(self, table: _Table, watching: "asyncio.Task[None]") -> None:
        """Waits until the watcher has seen the last change."""
        self._report.watchers += 1
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while table.seen != (table.game.revision, table.game.etag):
            if watching.done():
                watching.result()
            if time.monotonic() > deadline:
                self._report.watchers_behind += 1
                return
            await asyncio.sleep(RETRY_SECONDS)  # rarely: the watcher is as fast as the players

    async def _check(self, table: _Table) -> None:
        """Compares the history of a game with what was acknowledged."""
        report = self._report
        stored = await self._history(table)
        explained = table.unresolved | set(range(table.first_revision + 1))
        lost, doubled = compare(stored, table.acknowledged, explained)
        if not lost <= set(table.refused):  # the game was not played on
            with contextlib.suppress(grpc.aio.AioRpcError):
                await self._draw(table)
        told = reasons_told(lost, table.refused, {table.bases[turn] for turn in stored if turn in table.bases})
        report.lost += len(lost)
        report.told += table.told
        report.lost_told = dict(Counter(report.lost_told) + Counter(told.values()))
        report.lost_unnoticed += len(lost) - len(told)
        report.doubled += doubled + table.wrong_answers

    async def _history(self, table: _Table) -> list[tuple[int, str]]:
        """Returns the revision and the etag of each stored change of a game; nothing if the game is lost."""
        try:
            changes = await self._call("ListChanges", lambda client: changes_of(client, table.game_id))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise
            changes = []
        return [(change.revision, change.etag) for change in changes]


def _join(request: gs.JoinGameRequest, client: Client) -> Awaitable[gs.JoinGameResponse]:
    return client.games.JoinGame(request, timeout=CALL_SECONDS)


def compare(
    stored: Sequence[tuple[int, str]], acknowledged: Collection[tuple[int, str]], explained: Collection[int]
) -> tuple[set[tuple[int, str]], int]:
    """Compares a stored history with what was acknowledged, each as pairs of revision and etag.

    Args:
        stored: The history.
        acknowledged: What players were told.
        explained: Revisions that need no acknowledgement: of the lobby, and of requests that got no answer.

    Returns:
        The acknowledged pairs that the history lacks, and how many changes are repeated or nobody asked for.
    """
    known = set(acknowledged)
    repeated = len(stored) - len({revision for revision, _ in stored})
    unknown = sum(pair not in known and pair[0] not in explained for pair in stored)
    return known - set(stored), repeated + unknown


def reasons_told(
    lost: Collection[tuple[int, str]], refused: Mapping[tuple[int, str], str], followed: Collection[tuple[int, str]]
) -> dict[tuple[int, str], str]:
    """Returns the lost turns that their players were told of, each with the reason of the refusal.

    Args:
        lost: The lost turns.
        refused: The reason why the next call after a turn was refused.
        followed: The states on which turns are based that are in the history: the call after them was accepted.
    """
    return {turn: refused[turn] for turn in lost if refused.get(turn) in TELLING and turn not in followed}


@contextlib.asynccontextmanager
async def game_servers(
    redis_url: str, count: int = 1, module: str = "service", **settings: str
) -> AsyncIterator[list[ServerProcess]]:
    """Runs servers on one store, each in a process with more settings; yields them."""
    async with contextlib.AsyncExitStack() as stack:
        environment = {**SETTINGS, "RUMMIKUB_REDIS_URL": redis_url, **settings}
        yield [await stack.enter_async_context(server_process(environment, module=module)) for _ in range(count)]
