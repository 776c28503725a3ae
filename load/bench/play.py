"""Measures a PlayTurn: the server's CPU relative to a no-op call, and round trips to the store.

A server in another process, on a Redis behind a unix socket, gets turns of rounds that were played in advance
(recorded_turns.py). A no-op server (noop_server.py) gets the same bytes alternately, so that other load on the machine
affects both alike. CPU is the user and system time of the server's process; Redis counts the round trips.
"""

import asyncio
import contextlib
import statistics
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import count, islice
from typing import Any, Final

import grpc.aio
import redis.asyncio as aredis
from rich.console import Console
from rich.progress import Progress

from engine.melding.ruleset import SABRA, MatchEnd, with_options
from load.bench.figures import Size, goal, quantiles, requirement
from load.bench.measured_servers import cpu_seconds_of, ready, serving
from load.bench.noop_server import AIO
from load.calls import OWN_CONNECTION
from load.corpus.recorded_turns import RecordedRound, ReplayTurn, rounds
from rummikub.v1.turn_service_pb2 import PlayTurnRequest, PlayTurnResponse
from service.app.identity import digest
from service.codec.fields import encode_etag
from service.model.change import NO_ETAG, Commit, Committed, Memo, lineage
from service.model.record import Lifetimes, Record, SeatToken
from service.storage.redis.keys import keys_of
from service.storage.redis.store import RedisStore, connect
from service.storage.snapshot import encode_record
from service.storage.stored_events import encode_change
from tools.games import bearer
from tools.redis_servers import running_redis
from tools.server_process import server_process

LIFETIMES: Final = Lifetimes(lobby=1_800, started=3_600, finished=7_200)
HISTORY: Final = 10_000
"""Stored changes of a game."""
PLAY_TURN: Final = "/rummikub.v1.TurnService/PlayTurn"
CLIENTS: Final = 16
"""Games that are played concurrently."""
CALLS: Final = 1_500
"""Calls in a phase."""
SLICE_CALLS: Final = 150
"""Consecutive calls to one server before the other server gets the same calls."""
GAMES: Final = 28
"""Recorded games: a round of each has about as many turns as a phase has calls."""
LATE_ROUND: Final = 10
"""The round that counts as late in a game: hundreds of turns precede it."""
ROUNDS: Final = 5
QUICK_ROUNDS: Final = 2
MOST_RATIO: Final = 2.2
"""A goal: a run does not fail because of it."""
MOST_ROUND_TRIPS: Final = 2.0
MOST_GROWTH: Final = 1.15
RULESET: Final = with_options(SABRA, {"match_end": MatchEnd.FIXED_ROUNDS, "match_rounds": LATE_ROUND})
ANSWER: Final = bytes(1_200)
"""As long as the stored answer to a turn."""

WHOLE, PLAYS, DRAWS, FIRST = "whole rounds", "playing tiles", "drawing", "first call on a game"
EARLY, LATE = "first round", f"round {LATE_ROUND}"


@dataclass(slots=True)
class Seen:
    """The etag of a game that its players saw last."""

    etag: str


@dataclass(frozen=True, slots=True)
class Call:
    """A request to send: its bytes, its metadata, and for a PlayTurn the game as its player sees it then."""

    data: bytes
    metadata: tuple[tuple[str, str], ...] = ()
    seen: Seen | None = None

    def request(self) -> bytes:
        """Returns the request's bytes; of a turn with the etag."""
        return self.data + PlayTurnRequest(etag=self.seen.etag).SerializeToString() if self.seen else self.data


def measure(size: Size, console: Console) -> dict[str, Any]:
    """Returns the report."""
    return asyncio.run(_measured(size.choose(QUICK_ROUNDS, ROUNDS, 2 * ROUNDS), console))


# Calls


@dataclass(frozen=True, slots=True)
class Template:
    """A stored game that is copied, and the turns to send, in order."""

    game_id: str
    record: Record
    turns: tuple[ReplayTurn, ...]


def _tokens(record_seats: Iterable[int]) -> tuple[SeatToken, ...]:
    return tuple(SeatToken(seat, digest(_token(seat))) for seat in record_seats)


def _token(seat: int) -> str:
    return str(seat) * 43


class Shelf:
    """The measured store: templates of games, and copies of them to play."""

    def __init__(self, url: str) -> None:
        self.client = aredis.Redis.from_url(url)
        self._store = RedisStore(connect(url), LIFETIMES, HISTORY)
        self._ids = (f"{number:032x}" for number in count(1))
        self._request_ids = (f"request-{number:020d}" for number in count(1))
        self.now_ms = 0

    async def open(self) -> None:
        """Reads the time of the store."""
        self.now_ms = await self._store.now_ms()

    async def template(self, recorded: RecordedRound, place: int = 0, turns: int | None = None) -> Template:
        """Stores a game with its whole history up to a round, in the state before one of the round's turns."""
        game_id, record = next(self._ids), None
        for game, events in recorded.before:
            change = encode_change(game.revision, self.now_ms, bytes(16), events)
            previous = record.etag if record else NO_ETAG
            seats = (player.seat for player in game.players)
            record = Record(game_id, game, lineage(previous, change), _tokens(seats), self.now_ms, self.now_ms)
            memo = Memo(bytes(32), ANSWER)
            request_key = f"{game.revision:064x}"
            outcome = await self._store.games.commit(Commit(previous, record, change, request_key, memo))
            if outcome != Committed():
                raise AssertionError(f"a recorded change is refused: {outcome}")
        if record is None:
            raise AssertionError("a recorded game has no history")
        record = replace(record, game=replace(recorded.games[place], revision=record.game.revision))
        following = recorded.turns[place : None if turns is None else place + turns]
        return Template(game_id, record, following)

    async def copies(self, templates: Iterable[Template], games: int) -> list[list[Call]]:
        """Copies templates; returns the turns to send, by game."""
        sent = []
        pipeline = self.client.pipeline(transaction=False)
        for template in islice(_again_and_again(tuple(templates)), games):
            game_id = next(self._ids)
            record = replace(template.record, game_id=game_id)
            snapshot, *others = keys_of(game_id)
            fields = {"snapshot": encode_record(record), "etag": record.etag, "revision": record.game.revision}
            pipeline.hset(snapshot, mapping=fields)  # type: ignore[arg-type]  # bytes are values too
            for source, target in zip(keys_of(template.game_id)[1:], others, strict=True):
                pipeline.copy(source, target)
            seen = Seen(encode_etag(record.game.revision, record.etag))
            sent.append([self._call(turn, record, seen) for turn in template.turns])
        await pipeline.execute()
        return sent

    def _call(self, turn: ReplayTurn, record: Record, seen: Seen) -> Call:
        request = turn.request(record.game.ruleset, record.game_id, next(self._request_ids))
        return Call(request.SerializeToString(), bearer(_token(turn.seat)), seen)

    async def close(self) -> None:
        """Closes the connections."""
        await self.client.aclose()
        await self._store.close()


def _again_and_again(templates: Sequence[Template]) -> Iterable[Template]:
    while True:
        yield from templates


# Measurement


@dataclass(frozen=True, slots=True)
class Server:
    """A server under load: its process, and the callable that sends calls to it."""

    pid: int
    channel: grpc.aio.Channel

    @property
    def cpu_seconds(self) -> float:
        """Returns the user and system time of all its threads."""
        return cpu_seconds_of(self.pid)

    async def send(self, path: str, games: Sequence[Sequence[Call]]) -> list[float]:
        """Sends the calls of games concurrently, those of one game in order; returns the milliseconds of each call."""
        send: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(path)
        milliseconds: list[float] = []
        ahead = iter(games)

        async def play() -> None:
            for calls in ahead:
                for call in calls:
                    request = call.request()
                    started = time.perf_counter()
                    answer = await send(request, metadata=call.metadata)
                    milliseconds.append((time.perf_counter() - started) * 1e3)
                    if call.seen:
                        call.seen.etag = PlayTurnResponse.FromString(answer).game.etag or call.seen.etag

        await asyncio.gather(*(play() for _ in range(CLIENTS)))
        return milliseconds


@dataclass(frozen=True, slots=True)
class Phase:
    """The costs of some calls: microseconds of CPU per call of both servers and of Redis, round trips, latency."""

    calls: int
    noop: float
    server: float
    store: float
    round_trips: float
    milliseconds: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The server's CPU relative to the no-op server's."""
        return self.server / self.noop


class Bench:
    """The servers, the store, and the measurements."""

    def __init__(self, noop: Server, server: Server, metrics_port: int, shelf: Shelf) -> None:
        self._noop = noop
        self._server = server
        self._metrics_port = metrics_port
        self.shelf = shelf
        self.phases: dict[str, list[Phase]] = {}

    async def measure(self, name: str, games: Sequence[Sequence[Call]], before: int = 0) -> None:
        """Sends turns to both servers, alternating after every SLICE_CALLS calls.

        Args:
            name: The name of the phase.
            games: The turns to send, by game.
            before: The number of turns of each game that are sent first and not measured.
        """
        await self._server.send(PLAY_TURN, [game[:before] for game in games])
        games = [game[before:] for game in games]
        store_before = await self._store_figures()
        noop = server = 0.0
        milliseconds: list[float] = []
        for some in _slices(games):
            spent = self._noop.cpu_seconds
            await self._noop.send(PLAY_TURN, some)
            noop += self._noop.cpu_seconds - spent
            spent = self._server.cpu_seconds
            milliseconds += await self._server.send(PLAY_TURN, some)
            server += self._server.cpu_seconds - spent
        store_after = await self._store_figures()
        calls = len(milliseconds)
        phase = Phase(
            calls=calls,
            noop=noop / calls * 1e6,
            server=server / calls * 1e6,
            store=(store_after[0] - store_before[0]) / calls * 1e6,
            round_trips=(store_after[1] - store_before[1]) / calls,
            milliseconds=tuple(milliseconds),
        )
        self.phases.setdefault(name, []).append(phase)

    async def _store_figures(self) -> tuple[float, int]:
        """Returns the CPU seconds of Redis, and the number of scripts that it ran for turns, each in a round trip.

        Reports of presence are scripts too. A task sends them, one for each game in 15 s.
        """
        cpu = await self.shelf.client.info("cpu")
        commands = await self.shelf.client.info("commandstats")
        scripts = sum(commands.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha"))
        reports = await asyncio.to_thread(_presence_reports, self._metrics_port)
        return cpu["used_cpu_user"] + cpu["used_cpu_sys"], scripts - reports


def _presence_reports(metrics_port: int) -> int:
    """Returns how often a server has reported the presence of a game."""
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics") as answer:
        rows = answer.read().decode().splitlines()
    name = 'rummikub_store_seconds_count{operation="report_presence"'
    return sum(int(float(row.rpartition(" ")[2])) for row in rows if row.startswith(name))


def _slices(games: Sequence[Sequence[Call]]) -> Iterator[Sequence[Sequence[Call]]]:
    """Yields some calls of each game, then the next ones; if each game has one call, some games."""
    longest = max(map(len, games))
    if longest == 1:
        yield from (games[start : start + SLICE_CALLS] for start in range(0, len(games), SLICE_CALLS))
        return
    length = max(1, SLICE_CALLS // len(games))
    for start in range(0, longest, length):
        yield [calls[start : start + length] for calls in games if calls[start:]]


@contextlib.asynccontextmanager
async def _bench() -> AsyncIterator[Bench]:
    async with contextlib.AsyncExitStack() as stack:
        redis = stack.enter_context(running_redis())
        shelf = Shelf(redis.url)
        stack.push_async_callback(shelf.close)
        await shelf.open()
        environment = {"RUMMIKUB_REDIS_URL": redis.url, "RUMMIKUB_SWEEP_SECONDS": "3600"}
        process = await stack.enter_async_context(server_process(environment))
        noop = stack.enter_context(serving("load.bench.noop_server", AIO))
        yield Bench(
            Server(noop.pid, await stack.enter_async_context(_channel(ready(noop).main))),
            Server(process.pid, await stack.enter_async_context(_channel(process.target))),
            process.metrics_port,
            shelf,
        )


def _channel(target: str) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(target, OWN_CONNECTION)


async def _measured(times: int, console: Console) -> dict[str, Any]:
    async with _bench() as bench:
        with Progress(console=console) as progress:
            steps = progress.add_task("Measuring", total=times * 6 + 1)

            def done() -> None:
                progress.advance(steps)

            await _measure_all(bench, times, done)
        store = await bench.shelf.client.info("server")
        return _report(bench.phases, store)


async def _measure_all(bench: Bench, times: int, done: Callable[[], None]) -> None:
    shelf = bench.shelf
    recorded = [list(rounds(seed, RULESET, shelf.now_ms)) for seed in range(GAMES)]
    early = [await shelf.template(of_game[0]) for of_game in recorded]
    late = [await shelf.template(of_game[LATE_ROUND - 1]) for of_game in recorded]
    plays, draws = [
        [
            await shelf.template(of_game[0], place - 1, 2)
            for of_game in recorded
            for place in _some(of_game[0], plays=is_play)
        ]
        for is_play in (True, False)
    ]
    await bench.measure("warm-up", await shelf.copies(early, GAMES))
    bench.phases.clear()
    done()
    for _ in range(times):
        await bench.measure(WHOLE, await shelf.copies(early, GAMES))
        done()
        await bench.measure(PLAYS, await shelf.copies(plays, CALLS), before=1)
        done()
        await bench.measure(DRAWS, await shelf.copies(draws, CALLS), before=1)
        done()
        await bench.measure(FIRST, [game[:1] for game in await shelf.copies(plays, CALLS)])
        done()
        await bench.measure(EARLY, await shelf.copies(early, GAMES))
        done()
        await bench.measure(LATE, await shelf.copies(late, GAMES))
        done()


def _some(recorded: RecordedRound, *, plays: bool) -> list[int]:
    """Returns the places of some turns of a kind, spread over a round, without the first turn."""
    places = [place for place, turn in enumerate(recorded.turns) if place and turn.is_play == plays]
    return places[:: max(1, len(places) // 4)]


# The report


def _spread(values: Iterable[float]) -> dict[str, float]:
    in_order = sorted(values)
    return {"median": statistics.median(in_order), "least": in_order[0], "most": in_order[-1]}


def _figures(phases: Sequence[Phase]) -> dict[str, Any]:
    return {
        "calls": sum(phase.calls for phase in phases),
        "noop_us": _spread(phase.noop for phase in phases),
        "server_us": _spread(phase.server for phase in phases),
        "ratio": _spread(phase.ratio for phase in phases),
        "redis_us": _spread(phase.store for phase in phases),
        "round_trips": _spread(phase.round_trips for phase in phases),
        "milliseconds": quantiles([value for phase in phases for value in phase.milliseconds]),
    }


def _report(phases: dict[str, list[Phase]], store: dict[str, Any]) -> dict[str, Any]:
    figures = {name: _figures(some) for name, some in phases.items()}
    ratios = {name: values["ratio"]["median"] for name, values in figures.items()}
    most_round_trips = max(values["round_trips"]["most"] for values in figures.values())
    of_length = ratios[LATE] / ratios[EARLY]
    return {
        "versions": {
            "python": sys.version.split()[0],
            **{name: version(name) for name in ("grpcio", "protobuf", "redis", "hiredis")},
            "store": store["redis_version"],
        },
        "clients": CLIENTS,
        "phases": figures,
        "requirements": [
            goal(
                f"the server's CPU at most {MOST_RATIO} times that of a call that does nothing ({WHOLE})",
                met=ratios[WHOLE] <= MOST_RATIO,
                measured=f"{ratios[WHOLE]:.2f}",
            ),
            requirement(
                f"at most {MOST_ROUND_TRIPS:.0f} round trips to the store a turn",
                met=round(most_round_trips, 2) <= MOST_ROUND_TRIPS,  # one in thousands is a call of the server itself
                measured=f"{most_round_trips:.2f}",
            ),
            requirement(
                f"at most {MOST_GROWTH} times as much in round {LATE_ROUND} of a game as in its first",
                met=of_length <= MOST_GROWTH,
                measured=f"{of_length:.2f}",
            ),
        ],
    }


def tables_of(report: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """Returns the tables of a report."""
    head = ["", "calls", "no-op", "server", "ratio", "(spread)", "Redis", "trips", "p50 ms", "p95 ms"]
    rows = [_row(name, figures) for name, figures in report["phases"].items()]
    return {f"A PlayTurn, {report['clients']} at a time: microseconds of CPU a call (medians)": [head, *rows]}


def _row(name: str, figures: Mapping[str, Any]) -> list[str]:
    ratio = figures["ratio"]
    return [
        name,
        str(figures["calls"]),
        *(f"{figures[part]['median']:.0f}" for part in ("noop_us", "server_us")),
        f"{ratio['median']:.2f}",
        f"{ratio['least']:.1f}-{ratio['most']:.1f}",
        f"{figures['redis_us']['median']:.0f}",
        f"{figures['round_trips']['median']:.2f}",
        *(f"{figures['milliseconds'][quantile]:.1f}" for quantile in ("median", "p95")),
    ]


def told_of(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns sentences on the conditions of the measurement."""
    return (", ".join(f"{name} {value}" for name, value in report["versions"].items()),)
