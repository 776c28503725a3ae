"""Mutated calls at all listeners of a server, beside honest callers whose answers are checked.

Each call is a valid request after some mutations (load/fuzz/mutations.py), of a random RPC of a random listener, with
the token of a random seat of a game of a random preset. No call may end with INTERNAL or UNKNOWN or without an answer.
"""

import asyncio
import contextlib
import hashlib
import itertools
import random
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import grpc.aio
from google.protobuf.message import Message

from engine.family import named_rulesets
from load.calls import OWN_CONNECTION
from load.corpus.turns import read as read_turns
from load.floods.http2 import STATUSES, Calls, Header, call_headers, message
from load.fuzz.mutations import Mutator
from load.fuzz.seeds import Served, served_rpcs
from load.messages import reasons_of, to_send
from rummikub.v1 import game_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from support.join_tickets import EDDSA_KEY
from tools.games import Client, GameAtHand, bearer, creation, new_id, options
from tools.redis_servers import running_redis
from tools.server_process import ServerProcess, server_process

ATTACKER: Final = "attacker" * 4
HONEST: Final = "honestly" * 4
ADMIN_TOKEN: Final = "operator" * 6  # of a temporary server
CONNECTIONS: Final = 4
IN_FLIGHT: Final = 12
"""Calls at once on each connection of each listener."""
GAMES: Final = 8
STARTED: Final = 0.85
"""The share of games that are started."""
CALLS_OF_A_GAME: Final = 400
"""The calls after which a game is replaced."""
CALLS_OF_AN_ETAG: Final = 12
"""The calls after which a game is read again."""
ATTEMPTS: Final = 30
"""How often a new game is tried, a second apart."""
SHARES: Final[Mapping[str, float]] = {"main": 0.6, "validation": 0.25, "admin": 0.15}
"""The share of each listener in all calls."""
DEAR: Final = ("AnalysisService", "ReviewGame", "ListGames", "CreateGame", "ForgetPlayer", "ExportPlayer")
"""RPCs that search or go through all games, which are called a sixth as often: they would take most of the time."""
HURRIED: Final = 0.03
"""The share of calls with a deadline of a millisecond."""
NEVER: Final = frozenset({"UNKNOWN", "INTERNAL", "NO ANSWER", "DATA_LOSS", "HTTP 500"})
MOST_MORE_DESCRIPTORS: Final = 4
"""How many more descriptors the server may have at the end: connections to the store, which are kept for later."""
SETTLE_SECONDS: Final = 30.0
"""How long memory and descriptors may take to get back."""
CLOSE_SECONDS: Final = 2.0
"""How long the connections of the first calls may take to close."""
WARM_UP: Final = 0.1
"""The share of the calls before memory is measured first: caches and the interpreter's arenas fill up."""
MOST_GROWTH_MB: Final = 48.0
"""How much memory the server may have taken more at the end: less than one full cache of melds (50 MB), of which the
calls fill a small part. When refused calls stayed in memory, it grew by as much in 30,000 calls."""


@dataclass
class Bad:
    """A call that ended as none may."""

    path: str
    outcome: str
    request: bytes
    headers: Sequence[Header]

    def __str__(self) -> str:
        """Returns the call as text from which it can be sent again."""
        return f"{self.outcome} {self.path} {self.request[:400].hex()} {[name for name, _ in self.headers]}"


@dataclass
class Findings:
    """The result of a run.

    Attributes:
        seed: The seed of its mutations.
        seconds: How long the calls took.
        ends: The calls by listener and outcome.
        rpcs: The calls by path.
        bad: Calls that ended as none may.
        honest: Honest calls.
        wrong: Honest calls that were answered wrongly, as text.
        descriptors: The server's before and after.
        megabytes: The server's memory before and after.
        errors: Lines of the server's log at level error.
    """

    seed: int
    seconds: float = 0.0
    ends: Counter[str] = field(default_factory=Counter)
    rpcs: Counter[str] = field(default_factory=Counter)
    bad: list[Bad] = field(default_factory=list)
    honest: int = 0
    wrong: list[str] = field(default_factory=list)
    descriptors: tuple[int, int] = (0, 0)
    megabytes: tuple[float, float] = (0.0, 0.0)
    errors: list[str] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """The number of mutated calls."""
        return self.ends.total()

    def as_json(self) -> dict[str, Any]:
        """Returns the values for a file."""
        bad = [str(one) for one in self.bad]
        return {**vars(self), "ends": dict(self.ends), "rpcs": dict(self.rpcs), "bad": bad}


Sent: TypeAlias = tuple[Sequence[Header], bytes]
"""The headers and the body of a request."""


def as_grpc(rpc: Served, body: bytes, metadata: Sequence[Header], _rng: random.Random) -> Sent:
    """Returns a call of gRPC."""
    return call_headers(rpc.path, metadata), body


@dataclass(frozen=True, slots=True)
class Way:
    """A way of calls to a server.

    Attributes:
        target: The address.
        rpcs: The RPCs that are called.
        share: Its share of all calls.
        form: Returns a call, given as one of gRPC, in the form in which it is sent.
    """

    target: str
    rpcs: Sequence[Served]
    share: float
    form: Callable[[Served, bytes, Sequence[Header], random.Random], Sent] = as_grpc


def listeners(server: ServerProcess) -> dict[str, Way]:
    """Returns the listeners of a server."""
    targets = {
        "main": server.target,
        "validation": server.validation_target,
        "admin": f"127.0.0.1:{server.admin_port}",
    }
    return {name: Way(targets[name], rpcs, SHARES[name]) for name, rpcs in served_rpcs().items()}


class _World:
    """Games of all presets whose tokens the mutated calls have."""

    def __init__(self, client: Client, rng: random.Random) -> None:
        self._client = client
        self._rng = rng
        named = list(named_rulesets())
        rng.shuffle(named)
        self._named = itertools.cycle(named)
        self._making = asyncio.Lock()
        self._games: list[tuple[GameAtHand, game_pb2.Game]] = []
        self._uses: Counter[str] = Counter()

    async def pick(self) -> tuple[GameAtHand, game_pb2.Game]:
        """Returns a game and how it was seen last."""
        async with self._making:
            while len(self._games) < GAMES:
                self._games.append(await self._new())
        place = self._rng.randrange(len(self._games))
        game, seen = self._games[place]
        self._uses[game.game_id] += 1
        try:
            if self._uses[game.game_id] > CALLS_OF_A_GAME:
                del self._uses[game.game_id]
                self._games[place] = await self._new()
            elif self._uses[game.game_id] % CALLS_OF_AN_ETAG == 0:
                self._games[place] = game, await game.see(seen.turn.seat if seen.turn.seat in game.tokens else 0)
        except grpc.aio.AioRpcError:  # deleted, or kept from its tokens by an attack
            self._games[place] = await self._new()
        return self._games[place]

    async def _new(self) -> tuple[GameAtHand, game_pb2.Game]:
        """Returns a new game. Tries again where the store does not answer in time: a machine may be that busy."""
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._created()
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
            await asyncio.sleep(1)
        return await self._created()

    async def _created(self) -> tuple[GameAtHand, game_pb2.Game]:
        named = next(self._named).ruleset
        rules = creation(options(preset=ruleset_pb2.Preset.Value(f"PRESET_{named.preset.name}")))
        players = self._rng.randint(max(2, named.players_min), min(4, named.players_max))
        game = await self._client.new_game(players, ruleset=rules["ruleset"], start=self._rng.random() < STARTED)
        return game, await game.see()


class Attacker:
    """Sends mutated calls.

    Args:
        ways: The ways of the calls: of a server its listeners, "main", "validation" and "admin".
        client: A client with the attacker's key.
        findings: Gets the outcomes.

    Attributes:
        ways: The ways of the calls.
    """

    def __init__(self, ways: Mapping[str, Way], client: Client, findings: Findings) -> None:
        self._rng = random.Random(findings.seed)
        self._findings = findings
        self.ways = ways
        everything = [seed for way in ways.values() for rpc in way.rpcs for seed in rpc.seeds]
        self._mutator = Mutator(self._rng, everything)
        self._weights = {name: [_weight(rpc) for rpc in way.rpcs] for name, way in ways.items()}
        self._shares = [way.share for way in ways.values()]
        self._connections = {name: [Calls(way.target) for _ in range(CONNECTIONS)] for name, way in ways.items()}
        self._world = _World(client, self._rng)
        self._left = 0
        self._until = 0.0

    async def run(self, calls: int, until: float) -> None:
        """Sends a number of calls, or as many as it can until a time of the monotonic clock."""
        self._left, self._until = calls, until
        async with asyncio.TaskGroup() as tasks:
            for number in range(CONNECTIONS * IN_FLIGHT):
                tasks.create_task(self._work(number))

    async def _work(self, number: int) -> None:
        while self._left > 0 and time.monotonic() < self._until:
            self._left -= 1
            await self._one(number)

    async def _one(self, number: int) -> None:
        [way] = self._rng.choices(list(self.ways), self._shares)
        [rpc] = self._rng.choices(self.ways[way].rpcs, self._weights[way])
        headers, body = await self.request(way, rpc)
        status = await self.send(way, rpc, headers, body, number % CONNECTIONS)
        self._findings.ends[f"{way}: {status}"] += 1
        self._findings.rpcs[rpc.path] += 1
        if status in NEVER or status.startswith("no status"):
            self._findings.bad.append(Bad(str(dict(headers)[":path"]), f"{way}: {status}", body, headers))

    async def request(
        self, way: str, rpc: Served, most_edits: int = 4, hurried: float = HURRIED, seed: Message | None = None
    ) -> Sent:
        """Returns the headers and the body of a request, which is mutated unless it may have no edits.

        Args:
            way: The way of the call.
            rpc: The RPC.
            most_edits: How many edits it may have.
            hurried: The share of calls with a deadline of a millisecond.
            seed: The request; None: one of the RPC's seeds, at random.
        """
        rng = self._rng
        game, seen = await self._world.pick()
        self._mutator.hints = {"game_id": game.game_id, "etag": seen.etag, "request_id": str(uuid.uuid4())}
        seed = self._with_hints(rpc) if seed is None else seed
        data = self._mutator.mutated(seed, most_edits) if most_edits else seed.SerializeToString()
        metadata = [
            *self._authorization(way, game, seen),
            ("grpc-timeout", "1m" if rng.random() < hurried else "5S"),
        ]
        body = message(data) if rng.random() < 0.97 else message(data) + message(data)
        return self.ways[way].form(rpc, body, metadata, rng)

    async def send(self, way: str, rpc: Served, headers: Sequence[Header], body: bytes, place: int = 0) -> str:
        """Sends a request on one of the connections; returns the name of its status, or what came in place of one."""
        status = await self._connections[way][place].send(headers, body, first_answer=rpc.streams)
        return STATUSES.get(status, status)

    def _with_hints(self, rpc: Served) -> Any:  # noqa: ANN401 - a request of any type
        """Returns a seed, in most cases on a game that there is."""
        seed = self._rng.choice(rpc.seeds)
        copy: Any = type(seed)()
        copy.CopyFrom(seed)
        if self._rng.random() < 0.9:
            for name, value in self._mutator.hints.items():
                if name == "game_id" and not getattr(copy, name, ""):
                    continue  # the request has a position in place of a game
                if name in copy.DESCRIPTOR.fields_by_name:
                    setattr(copy, name, value)
        return copy

    def _authorization(self, way: str, game: GameAtHand, seen: game_pb2.Game) -> tuple[Header, ...]:
        if way == "admin":
            return bearer(ADMIN_TOKEN) if self._rng.random() < 0.95 else ()
        key = (("x-api-key", ATTACKER),) if self._rng.random() < 0.98 else ()
        to_move = game.tokens.get(seen.turn.seat, game.host_token)
        token = self._rng.choice((to_move, to_move, game.host_token, *game.tokens.values()))
        broken = (("authorization", "Bearer"),) if self._rng.random() < 0.03 else bearer(token)
        return (*key, *broken)

    def close(self) -> None:
        """Closes the connections."""
        for connections in self._connections.values():
            for connection in connections:
                connection.close()


def _weight(rpc: Served) -> float:
    return 1 / 6 if any(name in rpc.path for name in DEAR) else 1.0


class Honest:
    """Honest callers: recorded turns whose verdicts are known, and a game whose revisions are counted."""

    def __init__(self, main: Client, validation: Client, findings: Findings) -> None:
        self._main, self._validation, self._findings = main, validation, findings

    async def run(self) -> None:
        """Calls until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._validate(self._main))
            tasks.create_task(self._validate(self._validation))
            tasks.create_task(self._play())

    async def _validate(self, client: Client) -> None:
        for turn in itertools.cycle([to_send(turn) for turn in read_turns()]):
            with self._reported("ValidateTurn"):
                answer = await client.validation.ValidateTurn(turn.turn, timeout=30)
                if reasons_of(answer.violations) != list(turn.reasons):
                    self._findings.wrong.append(f"ValidateTurn: {reasons_of(answer.violations)}, not {turn.reasons}")
            await asyncio.sleep(0.05)

    async def _play(self) -> None:
        while True:
            with self._reported("a game"):
                game = await self._main.new_game(2, ruleset=options(turn_time_limit_seconds=0))
                seen = await game.see()
                while seen.pool_count:
                    turn = ts.PlayTurnRequest(draw=ts.DrawTile(), etag=seen.etag, game_id=game.game_id)
                    turn.request_id = new_id()
                    drawn = await self._main.turns.PlayTurn(turn, metadata=game.as_seat(seen.turn.seat), timeout=30)
                    self._findings.honest += 1
                    if drawn.game.revision != seen.revision + 1 or drawn.game.pool_count != seen.pool_count - 1:
                        self._findings.wrong.append(f"PlayTurn: revision {drawn.game.revision} after {seen.revision}")
                    seen = drawn.game
                    found = await self._main.games.GetGame(gs.GetGameRequest(game_id=game.game_id), timeout=30)
                    if found.game.etag != seen.etag:
                        self._findings.wrong.append(f"GetGame: etag {found.game.etag}, not {seen.etag}")
                    await asyncio.sleep(0.05)

    @contextlib.contextmanager
    def _reported(self, call: str) -> Any:  # noqa: ANN401 - a context manager
        self._findings.honest += 1
        try:
            yield
        except grpc.aio.AioRpcError as error:
            self._findings.wrong.append(f"{call}: {error.code().name} {error.details()}")


def keys_file(folder: Path) -> Path:
    """Writes a keys file with the keys of the attacker and of the honest callers, who have all rights and no quotas."""
    rights = f'ticket_keys = ["{EDDSA_KEY}"]\nticket_audience = "web"\nproxy = true\n'
    rights += "position_searches = true\nreissue_seat_tokens = true\n"
    entries = {"attacker": ATTACKER, "honest": HONEST}
    path = folder / "keys.toml"
    path.write_text(
        "".join(
            f'[keys.{name}]\nsha256 = ["{hashlib.sha256(key.encode()).hexdigest()}"]\n{rights}\n'
            for name, key in entries.items()
        )
    )
    return path


class _KeySender(grpc.aio.UnaryUnaryClientInterceptor):
    """Adds a key to the metadata of unary calls."""

    def __init__(self, key: str) -> None:
        self._key = key

    async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:  # noqa: ANN401 - grpcio's are untyped
        metadata = grpc.aio.Metadata(*(client_call_details.metadata or ()), ("x-api-key", self._key))
        return await continuation(client_call_details._replace(metadata=metadata), request)


@contextlib.asynccontextmanager
async def client_with(target: str, key: str) -> AsyncIterator[Client]:
    """Yields a client that sends a key."""
    async with grpc.aio.insecure_channel(target, OWN_CONNECTION, interceptors=[_KeySender(key)]) as channel:
        yield Client(channel)


@contextlib.asynccontextmanager
async def attacked_server(folder: Path, log: int) -> AsyncIterator[ServerProcess]:
    """Runs a server with all listeners and without limits for the attacker, on a store of its own."""
    token = folder / "admin.token"
    token.write_text(ADMIN_TOKEN)
    token.chmod(0o600)
    with running_redis("--maxmemory", "1gb") as redis:
        environment = {
            "RUMMIKUB_REDIS_URL": redis.url,
            "RUMMIKUB_VALIDATION_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_ADMIN_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_ADMIN_TOKEN_FILE": str(token),
            "RUMMIKUB_KEYS_FILE": str(keys_file(folder)),
            "RUMMIKUB_LOBBY_TTL_SECONDS": "60",
            "RUMMIKUB_GAME_TTL_SECONDS": "600",
            "RUMMIKUB_FINISHED_TTL_SECONDS": "60",
            "RUMMIKUB_CHANGE_LOG_SECONDS": "60",
            "RUMMIKUB_ANALYSIS_WORKERS": "1",
            **dict.fromkeys(("RUMMIKUB_GAMES_PER_MINUTE", "RUMMIKUB_JOIN_GUESSES_PER_MINUTE"), "0"),
            **dict.fromkeys(("RUMMIKUB_DRAFTS_PER_SECOND", "RUMMIKUB_CHANGES_PER_SECOND"), "0"),
        }
        async with server_process(environment, stderr=log) as server:
            yield server


def descriptors(pid: int) -> int:
    """Returns the number of open descriptors of a process."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def megabytes(pid: int) -> float:
    """Returns the memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def attack(seed: int, calls: int, seconds: float) -> Findings:
    """Sends mutated calls to a new server, a number of them or as many as it can in a time; returns what it found."""
    findings = Findings(seed)
    with tempfile.TemporaryDirectory(prefix="rummikub-fuzz-") as name:
        folder = Path(name)
        log_path = folder / "server.log"
        with log_path.open("wb") as log:
            async with (
                attacked_server(folder, log.fileno()) as server,
                client_with(server.target, ATTACKER) as hostile,
                client_with(server.target, HONEST) as main,
                client_with(server.validation_target, HONEST) as validation,
            ):
                attacker = Attacker(listeners(server), hostile, findings)
                honest = asyncio.create_task(Honest(main, validation, findings).run())
                started = time.monotonic()
                await attacker.run(round(calls * WARM_UP), started + seconds * WARM_UP)
                attacker.close()
                await asyncio.sleep(CLOSE_SECONDS)
                before = held(server.pid)
                await attacker.run(calls - findings.calls, started + seconds)
                findings.seconds = time.monotonic() - started
                attacker.close()
                after = await settled(server.pid, before)
                await stopped(honest)
                findings.descriptors, findings.megabytes = (before[0], after[0]), (before[1], after[1])
        findings.errors = errors_in(log_path)
    return findings


def errors_in(log: Path) -> list[str]:
    """Returns the lines of a server's log at level error."""
    return [line[:600] for line in log.read_text(errors="replace").splitlines() if '"level":"error"' in line]


async def stopped(honest: "asyncio.Task[None]") -> None:
    """Stops honest callers. Raises what ended them before."""
    if honest.done():
        honest.result()
    honest.cancel()


def held(pid: int) -> tuple[int, float]:
    """Returns the descriptors and the memory of a process."""
    return descriptors(pid), megabytes(pid)


async def settled(
    pid: int, before: tuple[int, float], growth: float = MOST_GROWTH_MB, descriptors: int = MOST_MORE_DESCRIPTORS
) -> tuple[int, float]:
    """Returns descriptors and memory of a process, once they are as before or after a while.

    Args:
        pid: The process.
        before: What it had.
        growth: The most megabytes more.
        descriptors: The most descriptors more.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        await asyncio.sleep(0.5)
        now = held(pid)
        is_back = now[0] <= before[0] + descriptors and now[1] <= before[1] + growth
        if is_back or time.monotonic() > deadline:
            return now
