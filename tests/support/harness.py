"""Test harness, long because it is one toolbox: Redis-compatible servers, services here and in processes, games."""

import asyncio
import hashlib
import os
import random
import shutil
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio
import redis
from google.protobuf.descriptor import MethodDescriptor
from google.rpc import error_details_pb2, status_pb2
from redis.asyncio.connection import ConnectionPool

from engine.events import GameCreated
from engine.game import Game
from engine.seats import HOST
from engine.tiles import Tile
from rummikub.v1 import (
    analysis_service_pb2,
    challenge_service_pb2,
    game_pb2,
    puzzle_service_pb2,
    record_service_pb2,
    validation_service_pb2,
    violation_pb2,
)
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.analysis.pool import COMMAND
from service.app.identity import Chance, digest
from service.codec.fields import encode_etag
from service.composition import Tuning, build_server
from service.model.change import NO_ETAG, Commit, Committed, lineage
from service.model.record import Lifetimes, Listing, Record, SeatToken
from service.operator.archive.sink import Sink
from service.runtime.keys import HEADER
from service.runtime.tracing import Tracing
from service.server import Server
from service.settings import Settings
from service.storage.memory import MemoryStore
from service.storage.redis.connection import CommandConnection, Connect, PooledConnection, shared_connection
from service.storage.redis.store import RedisStore, connect
from service.storage.store import Store
from service.storage.stored_events import encode_change
from tools.games import REDEAL, Client, GameAtHand, as_tiles, bearer, new_id, without_presence
from tools.redis_servers import RedisServer, running_redis, wait_until
from tools.server_process import ServerProcess, from_another_address, server_process
from tools.servers import free_port

ROOT = Path(__file__).parents[2]
CONTRACT = (
    gs.DESCRIPTOR.services_by_name["GameService"],
    ts.DESCRIPTOR.services_by_name["TurnService"],
    validation_service_pb2.DESCRIPTOR.services_by_name["ValidationService"],
    analysis_service_pb2.DESCRIPTOR.services_by_name["AnalysisService"],
    puzzle_service_pb2.DESCRIPTOR.services_by_name["PuzzleService"],
    record_service_pb2.DESCRIPTOR.services_by_name["RecordService"],
    challenge_service_pb2.DESCRIPTOR.services_by_name["ChallengeService"],
)
"""Every service of the contract."""
START_MS = 1_800_000_000_000
LIFETIMES = Lifetimes(lobby=1_800, started=3_600, finished=7_200)
HISTORY = 10_000


class FakeClock:
    """A clock of the store that tests advance."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, seconds: float) -> None:
        self.now_ms += round(seconds * 1000)


class SeededChance:
    """A seeded source of randomness."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def token_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def shuffle(self, tiles: Sequence[Tile]) -> tuple[Tile, ...]:
        return tuple(self._random.sample(tiles, len(tiles)))


def until(condition: Callable[[], bool]) -> None:
    """Polls a condition of another process, which sends no notification."""
    wait_until(condition, "the condition becomes true")


@contextmanager
def primary_and_replica(*options: str) -> Iterator[tuple[RedisServer, RedisServer]]:
    """Runs a primary and a replica with the same options."""
    at_once = ("--repl-diskless-sync-delay", "0", *options)
    with running_redis(*at_once, port=free_port()) as primary, running_redis(*at_once, port=free_port()) as replica:
        replica.become_replica_of(primary)
        yield primary, replica


@contextmanager
def redis_server() -> Iterator[str]:
    """Yields the URL of a real store: TEST_REDIS_URL, which tests may empty, else that of a new server."""
    given = os.environ.get("TEST_REDIS_URL")
    if given:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
        yield f"{given.rstrip('/')}/{worker}"  # a database per worker
        return
    server = RedisServer()
    server.start()
    try:
        yield server.url
    finally:
        server.close()


def pooled(pool: ConnectionPool, _reply_seconds: float) -> CommandConnection:
    """Returns a connection that is taken from a pool for each command, as if redis-py could not share one."""
    return PooledConnection(pool)


def redis_store(
    url: str,
    clock: FakeClock | None = None,
    history: int = HISTORY,
    log_ms: int = 0,
    share: Connect = shared_connection,
) -> RedisStore:
    """Returns a store on a Redis server."""
    return RedisStore(connect(url, share=share), LIFETIMES, history, clock, log_ms)


def memory_store(clock: FakeClock | None = None, history: int = HISTORY, log_ms: int = 0) -> MemoryStore:
    """Returns a store in memory."""
    return MemoryStore(history, clock, log_ms) if clock else MemoryStore(history, log_ms=log_ms)


async def due(store: Store, limit: int = 10) -> list[tuple[str, int]]:
    """Returns the games that are due, each with its deadline. Releases their claims."""
    claims = await store.deadlines.claim(limit)
    for claim in claims:
        await store.deadlines.rearm(claim, claim.at_ms)
    return [(claim.game_id, claim.at_ms) for claim in claims]


def kept_in_redis(keys: redis.Redis) -> Mapping[object, object]:
    """Returns every key with its value, except for presence, which changes by itself.

    A value is no dump, because Redis may reorder a hash without a change.
    """
    kept: dict[object, object] = {}
    for key in keys.scan_iter():
        if key.endswith(b":presence"):
            continue
        match keys.type(key):
            case b"string":
                kept[key] = keys.get(key)
            case b"hash":
                kept[key] = keys.hgetall(key)
            case b"zset":
                kept[key] = keys.zrange(key, 0, -1, withscores=True)
            case b"stream":
                kept[key] = keys.xrange(key)
            case other:
                raise AssertionError(f"a key of type {other!r}")
    return kept


async def first_answer(
    channel: grpc.aio.Channel, rpc: MethodDescriptor, data: bytes, metadata: Sequence[tuple[str, str]] = ()
) -> bytes:
    """Sends a request to any RPC and returns the first response."""
    path = f"/{rpc.containing_service.full_name}/{rpc.name}"
    if not rpc.server_streaming:
        unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
        return await unary(data, metadata=tuple(metadata))
    answers: grpc.aio.UnaryStreamCall[bytes, bytes] | grpc.aio.StreamStreamCall[bytes, bytes]
    if rpc.client_streaming:
        streams: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(path)
        answers = streams(iter([data]), metadata=tuple(metadata))
    else:
        stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(path)
        answers = stream(data, metadata=tuple(metadata))
    answer = await answers.read()
    answers.cancel()
    return cast("bytes", answer)


def without_lasting(game: game_pb2.Game) -> game_pb2.Game:
    """Returns a game as answers to changes have it."""
    copy = game_pb2.Game()
    copy.CopyFrom(game)
    for lasting in ("ruleset", "settings", "visibility", "labels"):
        copy.ClearField(lasting)
    return copy


async def put_game(  # noqa: PLR0917 - of a stored game
    client: Client, store: Store, game: Game, now_ms: int = START_MS, revision: int = 1, key: str = ""
) -> GameAtHand:
    """Stores a given game in the store of a client's server; only one in memory takes another revision than 1."""
    at_hand = GameAtHand(client, uuid.uuid4().hex)
    at_hand.tokens |= {player.seat: f"{player.seat}" * 43 for player in game.players}
    at_hand.host_token = "h" * 43
    tokens = tuple(SeatToken(player.seat, digest(at_hand.tokens[player.seat])) for player in game.players)
    tokens += (SeatToken(HOST, digest(at_hand.host_token)),)
    game = replace(game, revision=revision)
    change = encode_change(revision, now_ms, bytes(16), (GameCreated(game.ruleset),))
    record = Record(at_hand.game_id, game, lineage(NO_ETAG, change), tokens, now_ms, now_ms, Listing(key=key))
    assert await store.games.commit(Commit(NO_ETAG, record, change)) == Committed()
    at_hand.etags[revision] = encode_etag(revision, record.etag)
    return at_hand


def server_settings(**changes: object) -> Settings:
    """Returns the settings of a server under test: free ports and a short heartbeat interval."""
    values: dict[str, object] = {
        "listen": "127.0.0.1:0",
        "metrics_listen": "127.0.0.1:0",
        "drain_seconds": 2.0,
        "max_streams": 1_000,
        "peer_share": 1.0,  # all clients of a test share one address
        "drafts_per_second": 0,
        "changes_per_second": 0,
    }
    return Settings.model_validate({**values, **changes})


@asynccontextmanager
async def running_server(  # noqa: PLR0917 - the parts of a server
    store: Store,
    settings: Settings | None = None,
    seed: int = 1,
    analysis_command: Sequence[str] = COMMAND,
    tracing: Tracing | None = None,
    sink: Sink | None = None,
    tuning: Tuning = Tuning(),
    chance: Chance | None = None,
) -> AsyncIterator[tuple[Server, Client]]:
    """Runs a server in this process; yields it with a client."""
    server = build_server(
        settings or server_settings(),
        store,
        chance=chance or SeededChance(seed),
        analysis_command=analysis_command,
        tracing=tracing,
        sink=sink,
        tuning=replace(
            tuning, intervals=replace(tuning.intervals, last_answers=0.02)
        ),  # half of the time of most tests
    )
    await server.start()
    async with grpc.aio.insecure_channel(
        f"127.0.0.1:{server.port}", options=[("grpc.use_local_subchannel_pool", 1)]
    ) as channel:
        try:
            yield server, Client(channel)
        finally:
            await server.stop()


def _with_key(details: Any, key: str) -> Any:  # noqa: ANN401 - grpcio's are untyped
    metadata = grpc.aio.Metadata(*(details.metadata or ()), (HEADER, key))
    return details._replace(metadata=metadata)


class _UnaryKeySender(grpc.aio.UnaryUnaryClientInterceptor):
    """Adds a key to the metadata of unary calls."""

    def __init__(self, key: str) -> None:
        self._key = key

    async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:  # noqa: ANN401 - as above
        return await continuation(_with_key(client_call_details, self._key), request)


class _WatchKeySender(grpc.aio.UnaryStreamClientInterceptor):
    """Adds a key to the metadata of calls with a stream of responses."""

    def __init__(self, key: str) -> None:
        self._key = key

    async def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:  # noqa: ANN401 - as above
        return await continuation(_with_key(client_call_details, self._key), request)


@asynccontextmanager
async def client_with_key(port: int, key: str) -> AsyncIterator[Client]:
    """Yields a client that sends a key with every call that is no stream of requests."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    interceptors = [_UnaryKeySender(key), _WatchKeySender(key)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options, interceptors=interceptors) as channel:
        yield Client(channel)


def keys_file(folder: Path, key_of: Callable[[str], str] = str, /, **entries: str) -> Path:
    """Writes a keys file with an entry for each name, whose key is by default its name; returns the file."""
    path = folder / "keys.toml"
    tables = (
        f'[keys.{name}]\nsha256 = ["{hashlib.sha256(key_of(name).encode()).hexdigest()}"]\n{entry}\n'
        for name, entry in entries.items()
    )
    path.write_text("".join(tables))
    return path


def store_of(process: ServerProcess) -> int:
    """Returns the process id of a server's embedded store, its only child."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    assert b"unixsocket" in Path(f"/proc/{children[0]}/cmdline").read_bytes()
    return int(children[0])


async def next_change(watch: Any) -> game_pb2.GameChange:  # noqa: ANN401 - grpcio's are untyped
    """Returns the next change that a watch reports."""
    while not (update := await watch.read()).HasField("change"):
        pass
    change: game_pb2.GameChange = update.change
    return change


async def ended(pid: int) -> None:
    """Waits until another process, which need not be a child, has ended."""
    async with asyncio.timeout(10):
        while is_running(pid):  # noqa: ASYNC110 - another process sends no notification
            await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    """Whether a process runs; False for a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def run_service(**environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a server that is expected not to start, to its end."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RUMMIKUB_")}
    free = {"RUMMIKUB_LISTEN": "127.0.0.1:0", "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0"}
    command = [sys.executable, "-m", "service"]
    return subprocess.run(
        command, cwd=ROOT, env={**clean, **free, **environment}, capture_output=True, text=True, timeout=60, check=False
    )


def status_details(error: grpc.aio.AioRpcError) -> status_pb2.Status:
    """Returns the google.rpc.Status of an error."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status: status_pb2.Status = status_pb2.Status.FromString(value)
            return status
    raise AssertionError(f"no details in {error}")


def error_info(error: grpc.aio.AioRpcError) -> error_details_pb2.ErrorInfo:
    """Returns the single ErrorInfo of an error."""
    infos = []
    for detail in status_details(error).details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            infos.append(info)
    assert len(infos) == 1
    return infos[0]


def refusal_detail(error: grpc.aio.AioRpcError) -> violation_pb2.Refusal:
    """Returns the Refusal of an error."""
    refusal = violation_pb2.Refusal()
    assert any(detail.Unpack(refusal) for detail in status_details(error).details)
    return refusal


def retry_ms(error: grpc.aio.AioRpcError) -> int | None:
    """Returns the delay before a retry; None without one. Checks that both places of a status agree on it."""
    retry = error_details_pb2.RetryInfo()
    has_retry = any(detail.Unpack(retry) for detail in status_details(error).details)
    milliseconds = retry.retry_delay.ToMilliseconds() if has_retry else None
    pushback = dict(error.trailing_metadata() or ()).get("grpc-retry-pushback-ms")
    assert pushback == (None if milliseconds is None else str(milliseconds))
    return milliseconds


def field_violations(error: grpc.aio.AioRpcError) -> list[str]:
    """Returns the fields in an error's BadRequest."""
    bad_request = error_details_pb2.BadRequest()
    for detail in status_details(error).details:
        if detail.Unpack(bad_request):
            return [violation.field for violation in bad_request.field_violations]
    return []
