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
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

import grpc
import grpc.aio

from load.bench.figures import quantiles
from load.calls import OWN_CONNECTION, reason_of
from load.tables import Table, new_table
from rummikub import aio
from rummikub.errors import error_info
from rummikub.v1 import game_service_pb2 as gs
from tools.games import Client, Stubs, changes_of
from tools.server_process import ServerProcess, server_process

T = TypeVar("T")
Turn: TypeAlias = tuple[int, str]
"""The revision and the etag of a turn."""
Connect: TypeAlias = Callable[[str], AbstractAsyncContextManager[Stubs]]
"""Opens a client with a connection of its own to an address."""

CALL_SECONDS: Final = 10.0
"""The deadline of a call."""
RETRY_SECONDS: Final = 0.05
"""The pause before an unanswered call is repeated."""
ANSWER_SECONDS: Final = 120.0
"""How long a call is repeated; a drill that takes longer fails."""
CATCH_UP_SECONDS: Final = 30.0
"""How long after the last turn a watcher may take to receive it."""
CHECKED_AT_ONCE: Final = 8

UNANSWERED: Final = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
}
"""The status of a call that may or may not have been executed. Its request id makes it safe to repeat."""
BROKEN: Final = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}
"""The same, unless the server states a reason: a connection broke during the answer."""

TELLING: Final = ("STALE_STATE", "GAME_NOT_FOUND")
"""The reasons by which a player learns that turns are lost."""

PLAIN: Final = (
    *OWN_CONNECTION,
    ("grpc.enable_retries", 0),
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
    """Those of them by how the next call that was based on them was refused: STALE_STATE, or
    GAME_NOT_FOUND if the whole game is lost."""
    lost_unnoticed: int = 0
    """Those of them after which the next call was accepted."""
    lost_marked: int = 0
    """Those of them that were acknowledged before Players.mark."""
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
    """Watchers that did not receive the last change in time."""
    longest_wait: float = 0.0
    """The longest time in seconds from an attempted turn to the next acknowledged turn of its game."""
    seconds: float = 0.0
    """The time from the first acknowledged turn to the last."""
    calls: int = 0
    """Calls without those of watchers; a repeated call counts again."""
    milliseconds: dict[str, float] = field(default_factory=dict)
    """Quantiles of the duration of these calls."""
    failed_calls: dict[str, int] = field(default_factory=dict)
    """Those of them without an answer or with a refusal, by method, status and reason: what a client sees that does
    not repeat them."""

    @property
    def failed(self) -> int:
        """The number of failed calls."""
        return sum(self.failed_calls.values())

    def faults(self, *, may_lose: bool = False) -> list[str]:
        """Returns what must not happen: a lost or doubled turn, a gap in a watch, or no measurement.

        With `may_lose` turns may be lost, but each player must have learned of it.
        """
        counts = {
            "lost without a refusal of the next call": self.lost_unnoticed,
            "doubled": self.doubled,
            "watchers behind": self.watchers_behind,
        }
        if not may_lose:
            counts |= {"lost": self.lost, "lost lobbies": self.lost_lobbies, "gaps in watches": self.watch_gaps}
        missing = {"no turn was acknowledged": self.acknowledged, "no game was watched": self.watchers}
        return [f"{count} {name}" for name, count in counts.items() if count] + [
            name for name, count in missing.items() if not count
        ]

    @property
    def is_clean(self) -> bool:
        """Whether turns were acknowledged, none was lost or doubled, and no watcher missed anything."""
        return not self.faults()

    def as_json(self) -> dict[str, Any]:
        """Returns the values for a file."""
        return asdict(self)


@dataclass
class _Record:
    """A game with what its players know of it."""

    table: Table
    first_revision: int
    acknowledged: set[Turn] = field(default_factory=set)
    marked: frozenset[Turn] = frozenset()
    """Those that were acknowledged before Players.mark."""
    bases: dict[Turn, Turn] = field(default_factory=dict)
    """By acknowledged turn: the last turn that its player had seen before."""
    branch: list[Turn] = field(default_factory=list)
    """The turns that were acknowledged since the game was read last: the next call is based on all of them."""
    refused: dict[Turn, str] = field(default_factory=dict)
    """The reason why the next call after turns was refused."""
    unresolved: set[int] = field(default_factory=set)
    """The revisions that requests would have made whose answer never came."""
    told: int = 0
    wrong_answers: int = 0
    """Answers with a revision that is not the next one."""
    seen: Turn = (0, "")
    """The last change that the watcher has seen."""
    waits_since: float = 0.0
    """The time of the first attempt since the last acknowledged turn; 0 without one."""

    @property
    def last(self) -> Turn:
        """The state that the players saw last."""
        return self.table.game.revision, self.table.game.etag


def retrying_client(target: str) -> aio.Rummikub:
    """Returns a client that repeats calls by itself."""
    return aio.Rummikub(target, options=dict(OWN_CONNECTION))


@contextlib.asynccontextmanager
async def plain_client(target: str) -> AsyncIterator[Stubs]:
    """Opens a client without retries of its own."""
    async with grpc.aio.insecure_channel(target, PLAIN) as channel:
        yield Client(channel)


class Players:
    """Plays games until it is stopped.

    Args:
        targets: The address of each client; each call goes to a random client.
        games: How many games are played at once. Each has one watcher.
        pause: The longest pause before a turn, in seconds.
        connect: Opens a client.
        seed: Chooses clients and pauses.
        answer_seconds: How long an unanswered call is repeated.
    """

    def __init__(  # noqa: PLR0913 - how they play
        self,
        targets: Sequence[str],
        games: int = 20,
        pause: float = 0.0,
        connect: Connect = plain_client,
        *,
        seed: int = 1,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._targets = targets
        self._answer_seconds = answer_seconds
        self._games = games
        self._pause = pause
        self._connect = connect
        self._random = random.Random(seed)
        self._clients: list[Stubs] = []
        self._records: list[_Record] = []
        self._failed: Counter[str] = Counter()
        self._milliseconds: list[float] = []
        self._report = Report()
        self._first = self._last = 0.0
        self._progress = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []
        self._connections = contextlib.AsyncExitStack()
        self.is_stopping = False

    async def __aenter__(self) -> "Players":
        """Begins to play."""
        for target in self._targets:
            self._clients.append(await self._connections.enter_async_context(self._connect(target)))
        self._tasks = [asyncio.create_task(self._play(), name=f"player-{number}") for number in range(self._games)]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Ends all games at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._connections.aclose()

    @property
    def turns(self) -> int:
        """The number of acknowledged turns."""
        return self._report.acknowledged

    @property
    def failed(self) -> int:
        """The number of calls that have failed."""
        return self._failed.total()

    def mark(self) -> None:
        """Marks the turns that are acknowledged now: those of them that get lost are counted apart."""
        for record in self._records:
            record.marked = frozenset(record.acknowledged)

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
        self.is_stopping = True
        await asyncio.gather(*self._tasks)
        report = self._report
        report.seconds = self._last - self._first
        report.calls = len(self._milliseconds)
        report.milliseconds = quantiles(self._milliseconds) if self._milliseconds else {}
        report.failed_calls = dict(sorted(self._failed.items()))
        at_once = asyncio.Semaphore(CHECKED_AT_ONCE)

        async def check(record: _Record) -> None:
            async with at_once:
                await self._check(record)

        await asyncio.gather(*map(check, self._records))
        return report

    async def call(self, method: str, rpc: Callable[[Stubs], Awaitable[T]], /) -> T:
        """Returns the answer of some server. Counts the call. Raises AioRpcError."""
        started = time.perf_counter()
        try:
            return await rpc(self._random.choice(self._clients))
        except grpc.aio.AioRpcError as error:
            self._failed[f"{method} {error.code().name} {reason_of(error)[:160]}"] += 1
            raise
        finally:
            self._milliseconds.append((time.perf_counter() - started) * 1e3)

    async def _answered(self, method: str, rpc: Callable[[Stubs], Awaitable[T]], /) -> T:
        """Returns the answer to a call, which is repeated until it has one. Raises any other refusal."""
        deadline = time.monotonic() + self._answer_seconds
        while True:
            try:
                return await self.call(method, rpc)
            except grpc.aio.AioRpcError as error:
                if not is_unanswered(error) or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def _play(self) -> None:
        """Plays one game after the other until players are stopped."""
        try:
            while not self.is_stopping:
                record = await self._new_record()
                if record is None:
                    continue
                self._records.append(record)
                watching = asyncio.create_task(self._watch(record))
                try:
                    if await self._play_game(record):
                        await self._caught_up(record, watching)
                finally:
                    watching.cancel()
                    await asyncio.wait([watching])
        finally:
            async with self._progress:
                self._progress.notify_all()

    async def _new_record(self) -> _Record | None:
        """Starts a game of two; returns None if the store lost it meanwhile."""
        try:
            table = await new_table(self._answered, timeout=CALL_SECONDS)
        except grpc.aio.AioRpcError as error:
            if error.code() not in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION):
                raise
            self._report.lost_lobbies += 1  # the game, or a seat at it
            return None
        return _Record(table, table.game.revision)

    async def _play_game(self, record: _Record) -> bool:
        """Draws until the pool is empty or players are stopped; returns whether the game still exists."""
        while not self.is_stopping and record.table.game.pool_count:
            if self._pause:
                await asyncio.sleep(self._random.uniform(0, self._pause))
            try:
                await self._draw(record)
            except grpc.aio.AioRpcError as error:
                record.told += 1
                if error.code() is grpc.StatusCode.NOT_FOUND:
                    self._end_wait(record)
                    return False
                if error.code() is not grpc.StatusCode.ABORTED:
                    raise
        return True

    async def _draw(self, record: _Record) -> None:
        """Draws a tile for the player whose turn it is. A refused player reads the game again and continues."""
        table, base = record.table, record.last
        request, seat, expected = table.drawing(), table.to_move, base[0] + 1
        record.waits_since = record.waits_since or time.monotonic()
        record.unresolved.add(expected)
        try:
            answer = await self._answered(
                "PlayTurn", lambda stubs: stubs.turns.PlayTurn(request, metadata=seat, timeout=CALL_SECONDS)
            )
        except grpc.aio.AioRpcError as error:
            record.refused |= dict.fromkeys(record.branch, reason_of(error))
            record.branch.clear()
            seen = gs.GetGameRequest(game_id=table.game_id)
            read = await self._answered("GetGame", lambda stubs: stubs.games.GetGame(seen, timeout=CALL_SECONDS))
            table.game = read.game
            raise
        table.game = answer.game
        record.unresolved.discard(expected)
        record.wrong_answers += answer.game.revision != expected
        record.acknowledged.add(record.last)
        record.bases[record.last] = base
        record.branch.append(record.last)
        self._report.acknowledged += 1
        self._last = self._end_wait(record)
        self._first = self._first or self._last
        async with self._progress:
            self._progress.notify_all()

    def _end_wait(self, record: _Record) -> float:
        """Records how long a game has waited for a turn; returns the time."""
        now = time.monotonic()
        self._report.longest_wait = max(self._report.longest_wait, now - record.waits_since)
        record.waits_since = 0.0
        return now

    async def _watch(self, record: _Record) -> None:
        """Watches a game; resumes after a failure. If the history is another one, it begins with a snapshot."""
        while True:
            request = gs.WatchGameRequest(game_id=record.table.game_id, etag=record.seen[1])
            try:
                async for update in self._random.choice(self._clients).games.WatchGame(request):
                    self._see(record, update)
            except grpc.aio.AioRpcError as error:
                if not is_unanswered(error):
                    self._report.watch_restarts += 1
                    record.seen = (0, "")
            await asyncio.sleep(RETRY_SECONDS)

    def _see(self, record: _Record, update: gs.WatchGameResponse) -> None:
        match update.WhichOneof("update"):
            case "snapshot":
                record.seen = (update.snapshot.revision, update.snapshot.etag)
            case "change":
                if update.change.revision != record.seen[0] + 1:
                    self._report.watch_gaps += 1
                record.seen = (update.change.revision, update.change.etag)
            case _:
                pass

    async def _caught_up(self, record: _Record, watching: "asyncio.Task[None]") -> None:
        """Waits until the watcher has seen the last change."""
        self._report.watchers += 1
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while record.seen != record.last:
            if watching.done():
                watching.result()
            if time.monotonic() > deadline:
                self._report.watchers_behind += 1
                return
            await asyncio.sleep(RETRY_SECONDS)  # rarely: the watcher is as fast as the players

    async def _check(self, record: _Record) -> None:
        """Compares the history of a game with what was acknowledged."""
        report = self._report
        stored = await self._history(record.table.game_id)
        explained = record.unresolved | set(range(record.first_revision + 1))
        lost, doubled = compare(stored, record.acknowledged, explained)
        if not lost <= set(record.refused):  # the game was not played on
            record.waits_since = 0.0
            with contextlib.suppress(grpc.aio.AioRpcError):
                await self._draw(record)
        told = reasons_told(lost, record.refused, {record.bases[turn] for turn in stored if turn in record.bases})
        report.lost += len(lost)
        report.lost_marked += len(lost & record.marked)
        report.told += record.told
        report.lost_told = dict(Counter(report.lost_told) + Counter(told.values()))
        report.lost_unnoticed += len(lost) - len(told)
        report.doubled += doubled + record.wrong_answers

    async def _history(self, game_id: str) -> list[Turn]:
        """Returns the revision and the etag of each stored change of a game; nothing if the game is lost."""
        try:
            changes = await self._answered("ListChanges", lambda stubs: changes_of(stubs, game_id))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise
            changes = []
        return [(change.revision, change.etag) for change in changes]


def is_unanswered(error: grpc.aio.AioRpcError) -> bool:
    """Whether a call may have been executed or not."""
    return error.code() in UNANSWERED or (error.code() in BROKEN and not error_info(error).reason)


def compare(
    stored: Sequence[Turn], acknowledged: Collection[Turn], explained: Collection[int]
) -> tuple[set[Turn], int]:
    """Compares a stored history with what was acknowledged.

    Args:
        stored: The history.
        acknowledged: What players were told.
        explained: Revisions that need no acknowledgement: of the lobby, and of requests that got no answer.

    Returns:
        The acknowledged turns that the history lacks, and the number of changes that are repeated or that no request
        explains.
    """
    known = set(acknowledged)
    repeated = len(stored) - len({revision for revision, _ in stored})
    unknown = sum(pair not in known and pair[0] not in explained for pair in stored)
    return known - set(stored), repeated + unknown


def reasons_told(lost: Collection[Turn], refused: Mapping[Turn, str], followed: Collection[Turn]) -> dict[Turn, str]:
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
