"""Test harness, long because it is one toolbox: Redis-compatible servers, services here and in processes, games."""

import asyncio
import hashlib
import os
import random
import shutil
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import grpc
import grpc.aio
import redis
from google.protobuf.descriptor import MethodDescriptor
from google.rpc import error_details_pb2, status_pb2

from engine.events import GameCreated
from engine.game import (
    HOST,
    Game,
)
from engine.tiles import Tile
from load.servers import free_port
from rummikub.v1 import (
    analysis_service_pb2,
    game_pb2,
    meld_pb2,
    ruleset_pb2,
    tile_pb2,
    validation_service_pb2,
    violation_pb2,
)
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1.analysis_service_pb2_grpc import AnalysisServiceStub
from rummikub.v1.game_service_pb2_grpc import GameServiceStub
from rummikub.v1.turn_service_pb2_grpc import TurnServiceStub
from rummikub.v1.validation_service_pb2_grpc import ValidationServiceStub
from service.analysis.pool import COMMAND
from service.app.identity import digest
from service.archive.sink import Sink
from service.runtime.keys import HEADER
from service.runtime.tracing import Tracing
from service.server import Server
from service.settings import Settings
from service.storage.base import NO_ETAG, Commit, Committed, GameStore, Lifetimes, Record, SeatToken, lineage
from service.storage.memory import MemoryStore
from service.storage.redis.store import RedisStore, connect
from service.storage.stored_events import encode_change
from tools.redis_servers import RedisServer, wait_until

if TYPE_CHECKING:
    from rummikub.v1.analysis_service_pb2_grpc import AnalysisServiceAsyncStub
    from rummikub.v1.game_service_pb2_grpc import GameServiceAsyncStub
    from rummikub.v1.turn_service_pb2_grpc import TurnServiceAsyncStub
    from rummikub.v1.validation_service_pb2_grpc import ValidationServiceAsyncStub

ROOT = Path(__file__).parents[2]
CONTRACT = (
    gs.DESCRIPTOR.services_by_name["GameService"],
    ts.DESCRIPTOR.services_by_name["TurnService"],
    validation_service_pb2.DESCRIPTOR.services_by_name["ValidationService"],
    analysis_service_pb2.DESCRIPTOR.services_by_name["AnalysisService"],
)
"""Every service of the contract."""
REDEAL = ruleset_pb2.DEAL_THREE_PAIRS_RESHUFFLE_ON_REQUEST
START_MS = 1_800_000_000_000
LIFETIMES = Lifetimes(lobby=1_800, started=3_600, finished=7_200)
HISTORY = 10_000
PROCESS_SECONDS = 90
"""How long a server in another process may take to start or to end; a busy machine needs some of it."""


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
def running_redis(*options: str, port: int = 0, environment: Mapping[str, str] | None = None) -> Iterator[RedisServer]:
    """Runs a Redis server."""
    with closing(RedisServer(*options, port=port, environment=environment)) as server:
        server.start()
        yield server


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


def redis_store(url: str, clock: FakeClock | None = None, history: int = HISTORY, log_ms: int = 0) -> RedisStore:
    """Returns a store on a Redis server."""
    return RedisStore(connect(url), LIFETIMES, history, clock, log_ms)


def memory_store(clock: FakeClock | None = None, history: int = HISTORY, log_ms: int = 0) -> MemoryStore:
    """Returns a store in memory."""
    return MemoryStore(history, clock, log_ms) if clock else MemoryStore(history, log_ms=log_ms)


async def due(store: GameStore, limit: int = 10) -> list[tuple[str, int]]:
    """Returns the games that are due, each with its deadline. Releases their claims."""
    claims = await store.claim(limit)
    for claim in claims:
        await store.rearm(claim, claim.at_ms)
    return [(claim.game_id, claim.at_ms) for claim in claims]


def without_presence(game: game_pb2.Game) -> game_pb2.Game:
    """Returns a game after it is cleared of the presence of its players."""
    for player in game.players:
        player.ClearField("is_connected")
        player.ClearField("last_seen_time")
    return game


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


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    """Returns the metadata of a seat's owner; of a spectator for an empty token."""
    return (("authorization", f"Bearer {token}"),) if token else ()


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
    for lasting in ("ruleset", "visibility", "labels"):
        copy.ClearField(lasting)
    return copy


def as_tiles(numbers: Iterable[int]) -> list[tile_pb2.Tile.ValueType]:
    """Casts numbers to tiles without a check."""
    return [tile_pb2.Tile.ValueType(number) for number in numbers]


def new_id() -> str:
    """Returns a request id."""
    return str(uuid.uuid4())


@dataclass(frozen=True)
class Client:
    """Stubs of all services on a channel."""

    channel: grpc.aio.Channel

    @property
    def games(self) -> "GameServiceAsyncStub":
        return GameServiceStub(self.channel)

    @property
    def turns(self) -> "TurnServiceAsyncStub":
        return TurnServiceStub(self.channel)

    @property
    def validation(self) -> "ValidationServiceAsyncStub":
        return ValidationServiceStub(self.channel)

    @property
    def analysis(self) -> "AnalysisServiceAsyncStub":
        return AnalysisServiceStub(self.channel)

    async def new_game(
        self, players: int = 2, *, start: bool = True, ruleset: ruleset_pb2.Ruleset | None = None
    ) -> "GameAtHand":
        """Creates a public game with players, the first of whom is the host; starts it unless told otherwise."""
        request = gs.CreateGameRequest(ruleset=ruleset, request_id=new_id(), visibility=game_pb2.VISIBILITY_PUBLIC)
        created = await self.games.CreateGame(request)
        game = GameAtHand(self, created.game.game_id, host_token=created.host_token)
        for number in range(players):
            await game.join(f"player {number + 1}")
        if start:
            await game.start()
        return game

    async def new_game_to_redeal(self, ruleset: ruleset_pb2.Ruleset | None = None) -> tuple["GameAtHand", int]:
        """Returns a started game of three, and a seat that may demand a new deal."""
        rules = ruleset_pb2.Ruleset(deal_hand_size=21, deal_three_pairs_reshuffle=REDEAL)
        rules.MergeFrom(ruleset or ruleset_pb2.Ruleset())
        while True:  # in most deals some player has three pairs
            game = await self.new_game(players=3, ruleset=rules)
            for seat in (1, 2, 3):
                rack = list((await game.see(seat)).rack)
                if sum(rack.count(tile) // 2 for tile in set(rack)) >= 3:
                    return game, seat


@dataclass
class GameAtHand:
    """A game with the tokens of its seats; seat 0 is a spectator. The first player who joins is the host."""

    client: Client
    game_id: str
    tokens: dict[int, str] = field(default_factory=lambda: {0: ""})
    host_token: str = ""

    async def join(self, name: str, seat: int = 0) -> int:
        request = gs.JoinGameRequest(game_id=self.game_id, name=name, seat=seat, request_id=new_id())
        metadata = self.as_host() if len(self.tokens) == 1 else ()
        answer = await self.client.games.JoinGame(request, metadata=metadata)
        self.tokens[answer.seat] = answer.seat_token
        return answer.seat

    async def start(self) -> game_pb2.Game:
        request = gs.StartGameRequest(game_id=self.game_id, request_id=new_id())
        return (await self.client.games.StartGame(request, metadata=self.as_seat(1))).game

    def as_seat(self, seat: int) -> tuple[tuple[str, str], ...]:
        """Returns the metadata of a seat's owner."""
        return bearer(self.tokens[seat])

    def as_host(self) -> tuple[tuple[str, str], ...]:
        """Returns the metadata of the owner of the host token."""
        return bearer(self.host_token)

    async def see(self, seat: int = 0) -> game_pb2.Game:
        """Returns the game as a seat sees it, without presence, which changes by itself."""
        request = gs.GetGameRequest(game_id=self.game_id)
        return without_presence((await self.client.games.GetGame(request, metadata=self.as_seat(seat))).game)

    async def take(self, turn: ts.PlayTurnRequest, seat: int = 0) -> ts.PlayTurnResponse:
        """Takes a turn at the current revision, for a seat or for the seat to move."""
        game = await self.see()
        request = ts.PlayTurnRequest(
            game_id=self.game_id, expected_revision=game.revision, etag=game.etag, request_id=new_id()
        )
        request.MergeFrom(turn)
        return await self.client.turns.PlayTurn(request, metadata=self.as_seat(seat or game.turn.seat))

    async def draw(self, seat: int = 0) -> ts.PlayTurnResponse:
        """Draws a tile for a seat, or for the seat to move."""
        return await self.take(ts.PlayTurnRequest(draw=ts.DrawTile()), seat)

    async def pass_on(self, seat: int = 0) -> ts.PlayTurnResponse:
        """Passes for a seat, or for the seat to move."""
        turn = ts.PlayTurnRequest()
        turn.pass_turn.SetInParent()
        return await self.take(turn, seat)

    async def lay_on_river(self, tile: int, seat: int = 0) -> ts.PlayTurnResponse:
        """Lays one of two tiles drawn from the River for a seat, or for the seat to move."""
        laid = ts.LayOnRiver(tile=as_tiles([tile])[0])
        return await self.take(ts.PlayTurnRequest(lay_on_river=laid), seat)

    async def play_illegally(self, seat: int = 0) -> ts.PlayTurnResponse:
        """Submits an illegal table: one with an unfinished meld from the rack."""
        player = seat or (await self.see()).turn.seat
        own = await self.see(player)
        unfinished = meld_pb2.Meld(tiles=own.rack[:2])
        table = [*(meld_pb2.Meld(tiles=meld.tiles, kind=meld.kind) for meld in own.table), unfinished]
        return await self.take(ts.PlayTurnRequest(play=ts.PlayTiles(table=table)), player)

    async def save_draft(self, draft: game_pb2.Draft | None = None, seat: int = 0) -> ts.SaveDraftResponse:
        """Saves a draft at the current revision, for a seat or for the seat to move."""
        game = await self.see()
        request = ts.SaveDraftRequest(
            game_id=self.game_id, expected_revision=game.revision, etag=game.etag, draft=draft
        )
        return await self.client.turns.SaveDraft(request, metadata=self.as_seat(seat or game.turn.seat))

    async def claim(self, seat: int, *, agrees: bool = True, play_revision: int = 0) -> game_pb2.Game:
        """Votes on the displayed illegal play."""
        revision = play_revision or (await self.see()).turn.shown_play.revision
        request = ts.ClaimErrorRequest(game_id=self.game_id, play_revision=revision, agrees=agrees, request_id=new_id())
        return (await self.client.turns.ClaimError(request, metadata=self.as_seat(seat))).game

    async def redeal(self, seat: int) -> game_pb2.Game:
        """Demands a new deal."""
        request = gs.RequestRedealRequest(game_id=self.game_id, request_id=new_id())
        return (await self.client.games.RequestRedeal(request, metadata=self.as_seat(seat))).game


async def put_game(client: Client, store: GameStore, game: Game, now_ms: int = START_MS) -> GameAtHand:
    """Stores a given game in the store of a client's server."""
    at_hand = GameAtHand(client, uuid.uuid4().hex)
    at_hand.tokens |= {player.seat: f"{player.seat}" * 43 for player in game.players}
    at_hand.host_token = "h" * 43
    tokens = tuple(SeatToken(player.seat, digest(at_hand.tokens[player.seat])) for player in game.players)
    tokens += (SeatToken(HOST, digest(at_hand.host_token)),)
    game = replace(game, revision=1)
    change = encode_change(1, now_ms, bytes(16), (GameCreated(game.ruleset),))
    record = Record(at_hand.game_id, game, lineage(NO_ETAG, change), tokens, now_ms, now_ms)
    assert await store.commit(Commit(NO_ETAG, record, change)) == Committed()
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
    }
    return Settings.model_validate({**values, **changes})


@asynccontextmanager
async def running_server(  # noqa: PLR0917 - the parts of a server
    store: GameStore,
    settings: Settings | None = None,
    seed: int = 1,
    analysis_command: Sequence[str] = COMMAND,
    tracing: Tracing | None = None,
    sink: Sink | None = None,
) -> AsyncIterator[tuple[Server, Client]]:
    """Runs a server in this process; yields it with a client."""
    server = Server(
        settings or server_settings(), store, SeededChance(seed), analysis_command, tracing=tracing, sink=sink
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


def keys_file(folder: Path, **entries: str) -> Path:
    """Writes a keys file with an entry for each name, whose key is its name; returns the file."""
    path = folder / "keys.toml"
    tables = (
        f'[keys.{name}]\nsha256 = ["{hashlib.sha256(name.encode()).hexdigest()}"]\n{entry}\n'
        for name, entry in entries.items()
    )
    path.write_text("".join(tables))
    return path


@asynccontextmanager
async def from_another_address(port: int, address: str = "127.0.0.2") -> AsyncIterator[int]:
    """Forwards a port of 127.0.0.1 to a server's port from another source address; yields the port."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        await asyncio.gather(carry(reader, back), carry(there, writer))

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


class ServerProcess:
    """A server in another process, started as by `make run`."""

    def __init__(
        self,
        environment: Mapping[str, str],
        port: int = 0,
        stderr: int | None = None,
        program: Sequence[str] = ("-m", "service"),
    ) -> None:
        self._stderr = stderr
        self._program = program
        clean = {name: value for name, value in os.environ.items() if not name.startswith("RUMMIKUB_")}
        self._environment = {
            **clean,
            "RUMMIKUB_LISTEN": f"127.0.0.1:{port}",
            "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_LOG_LEVEL": "warning",
            **environment,
        }
        self._process: asyncio.subprocess.Process | None = None
        self.port = port
        self.validation_port = 0
        self.metrics_port = 0
        self.admin_port = 0

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def validation_target(self) -> str:
        """The address of ValidationService, which is the main one unless the environment sets another."""
        return f"127.0.0.1:{self.validation_port}"

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    async def start(self) -> None:
        """Starts it and waits until it prints where it serves."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *self._program,
            cwd=ROOT,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._stderr,
        )
        assert self._process.stdout
        ports: list[int] = []
        async with asyncio.timeout(PROCESS_SECONDS):
            async for line in self._process.stdout:
                words = line.decode().split()
                if words[:1] == ["gRPC"]:
                    ports.append(int(words[1].removesuffix(",").rpartition(":")[2]))
                if words[:1] == ["admin"]:
                    self.admin_port = int(words[1].removesuffix(",").rpartition(":")[2])
                if words[:1] == ["metrics"]:
                    self.port, self.validation_port = ports[0], ports[-1]
                    self.metrics_port = int(words[1].removesuffix("/metrics").rpartition(":")[2])
                    return
        raise AssertionError("the server ended before it served")

    async def start_again(self) -> None:
        """Restarts it on the same addresses."""
        self._environment["RUMMIKUB_LISTEN"] = self.target
        await self.start()

    async def kill(self) -> None:
        """Kills it, as in a power failure."""
        assert self._process
        self._process.kill()
        await self._process.wait()

    async def ended(self) -> int:
        """Waits until it ends by itself; returns its exit code."""
        assert self._process
        return await asyncio.wait_for(self._process.wait(), PROCESS_SECONDS)

    async def terminate(self) -> int:
        """Terminates it; returns its exit code."""
        assert self._process
        self._process.terminate()
        return await asyncio.wait_for(self._process.wait(), PROCESS_SECONDS)


def store_of(process: ServerProcess) -> int:
    """Returns the process id of a server's embedded store, its only child."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    assert b"unixsocket" in Path(f"/proc/{children[0]}/cmdline").read_bytes()
    return int(children[0])


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


@asynccontextmanager
async def server_process(
    environment: Mapping[str, str], stderr: int | None = None, module: str = "service"
) -> AsyncIterator[ServerProcess]:
    """Runs a server, or another module that serves, in another process. It logs to the file descriptor `stderr`."""
    process = ServerProcess(environment, stderr=stderr, program=("-m", module))
    await process.start()
    try:
        yield process
    finally:
        if process._process and process._process.returncode is None:  # noqa: SLF001 - our own class
            await process.kill()


def run_service(**environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a server that is expected not to start, to its end."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RUMMIKUB_")}
    free = {"RUMMIKUB_LISTEN": "127.0.0.1:0", "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0"}
    command = [sys.executable, "-m", "service"]
    return subprocess.run(
        command, cwd=ROOT, env={**clean, **free, **environment}, capture_output=True, text=True, timeout=60, check=False
    )


def openssl(folder: Path, *arguments: str) -> None:
    program = shutil.which("openssl")
    assert program, "openssl is not on PATH; these tests need it to create certificates"
    subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True, timeout=30)


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem")


def self_signed(folder: Path, names: str, subject: str = "/CN=rummikub.example") -> None:
    """Creates cert.pem and key.pem for a subject and, unless empty, its alternative names."""
    extensions = ["-addext", f"subjectAltName={names}"] if names else []
    openssl(folder, "req", "-x509", *_NEW_KEY, "-out", "cert.pem", "-days", "2", "-subj", subject, *extensions)


def client_certificate(authority: Path, folder: Path, subject: str, names: str = "") -> None:
    """Creates cert.pem and key.pem of a client, signed by an authority's."""
    extensions = ("-addext", f"subjectAltName={names}") if names else ()
    openssl(folder, "req", *_NEW_KEY, "-out", "request.pem", "-subj", subject, *extensions)
    signed_by = (
        "-CA",
        str(authority / "cert.pem"),
        "-CAkey",
        str(authority / "key.pem"),
        "-copy_extensions",
        "copyall",
    )
    openssl(folder, "x509", "-req", "-in", "request.pem", "-out", "cert.pem", "-days", "2", *signed_by)


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
