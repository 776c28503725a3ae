"""The service's handlers in this process, on a store in memory, so that a fuzzer sees which of their lines ran.

All ids, tokens, deals and times are the same in each run: an input that names a game of one run names it in the next.
Searches are refused, as if no process were free: their queries are decoded, and the solver has soaks of its own.
"""

import asyncio
import contextlib
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, cast

from engine.family import named_rulesets
from engine.tiles import Tile
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import ruleset_pb2
from service.analysis.pool import AdmittedAnalysis, AnalysisPool
from service.app.changes import BOT_WAIT_MS
from service.app.use_cases import use_cases
from service.app.watch import Watch
from service.errors import AnalysisBusy
from service.grpc_api.call_origin import set_current_origin
from service.grpc_api.handlers import RequestReader
from service.grpc_api.limits import limits_of
from service.grpc_api.rpc import Backend, Rpc
from service.grpc_api.services import SERVICES
from service.metrics.metrics import Metrics
from service.operator.forgetting import forget_seat
from service.runtime.join_tickets import TicketPolicy, read_key
from service.runtime.origins import RIGHTS, Key, Origin
from service.runtime.slow_calls import SlowCalls, Steps
from service.settings import Settings
from service.storage.memory import MemoryStore
from support.join_tickets import EDDSA_KEY
from tools.games import bearer, creation, options

START_MS: Final = 1_800_000_000_000
UNARY: Final[Mapping[str, Rpc]] = {rpc.name: rpc for rpcs in SERVICES.values() for rpc in rpcs if not rpc.is_stream}
"""The RPCs that answer once. Streams are left to mutated calls: their requests have few fields."""
PRESETS: Final = frozenset(
    {"SABRA", "CROSS", "TWIST", "CARDS", "TAHITI", "OKEY", "OKEY_101", "AMERICAN", "INTERNATIONAL"}
)
"""The presets of the games: each family, layout and kind of rules."""
PLAYERS: Final = 2
SECONDS: Final = 2.0
"""The longest that a call may wait: a ListChanges waits for changes that do not come."""


class _Chance:
    """Randomness that is the same in each run."""

    def __init__(self) -> None:
        self._random = random.Random(0)

    def token_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def shuffle(self, tiles: Sequence[Tile]) -> tuple[Tile, ...]:
        return tuple(self._random.sample(tiles, len(tiles)))


class _Reader(RequestReader):
    """Runs slow work at once."""

    async def run_slow(self, rpc: str, size: int, context: Any, steps: Steps) -> Any:  # noqa: ANN401, ARG002 - as the base
        while True:
            try:
                awaited = next(steps)
            except StopIteration as end:
                return end.value
            if awaited is not None:  # this loop resolves it, so that it must not be waited for in place
                await asyncio.wait((asyncio.wrap_future(awaited),))


class _NoAnalysis(AnalysisPool):
    """A pool whose places are all taken."""

    @contextlib.contextmanager
    def admit(self, origin: Origin) -> Iterator[AdmittedAnalysis]:  # noqa: ARG002 - as the base
        self._refuse()
        yield cast("AdmittedAnalysis", None)

    def _refuse(self) -> None:
        raise AnalysisBusy


class Context:
    """What handlers use of a call.

    Args:
        token: The token that it sends; empty for none.
    """

    def __init__(self, token: str) -> None:
        self._metadata = bearer(token)

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """Returns the metadata."""
        return self._metadata

    def time_remaining(self) -> float:
        """Returns the seconds until the deadline."""
        return SECONDS


class Playing(NamedTuple):
    """A game: its id, its etag, and the place of the token of the seat to move in `World.tokens`."""

    game_id: str
    etag: str
    sender: int


class World:
    """A store with a game of each preset, and the handlers on it."""

    def __init__(self) -> None:
        settings = Settings.model_validate(
            dict.fromkeys(("games_per_minute", "join_guesses_per_minute", "drafts_per_second", "changes_per_second"), 0)
        )
        self.store = MemoryStore(10_000, lambda: START_MS)
        metrics, stopping = Metrics(), asyncio.Event()
        app = use_cases(self.store, _Chance(), BOT_WAIT_MS, None)
        backend = Backend(
            app,
            Watch(app.games, self.store, 1.0, stopping),
            _NoAnalysis(0, 0, metrics),
            limits_of(settings),
            _Reader(SlowCalls(1.0)),
            metrics,
            partial(forget_seat, self.store, None),
        )
        self._handlers: dict[str, Any] = {name: rpc.handler(backend).unary_unary for name, rpc in UNARY.items()}
        ticket_key = read_key(EDDSA_KEY)
        assert ticket_key is not None  # noqa: S101 - for the type
        policy = TicketPolicy((ticket_key,), "web")
        self._key = Key(name="web", tickets=policy, rights=frozenset(RIGHTS), is_proxy=True)
        self.tokens: list[str] = [""]
        """The tokens of all seats and hosts, and none."""
        self.games: list[Playing] = []
        """The games."""

    async def prepare(self) -> None:
        """Creates a started game of each preset."""
        for named in named_rulesets():
            ruleset = named.ruleset
            if ruleset.preset.name not in PRESETS:
                continue
            rules = creation(options(preset=ruleset_pb2.Preset.Value(f"PRESET_{ruleset.preset.name}")))["ruleset"]
            created = gs.CreateGameResponse.FromString(await self._prepared("CreateGame", "", ruleset=rules))
            game_id, first = created.game.game_id, len(self.tokens)
            for seat in range(max(PLAYERS, ruleset.players_min)):
                joined = await self._prepared("JoinGame", "", game_id=game_id, name=f"player {seat}")
                self.tokens.append(gs.JoinGameResponse.FromString(joined).seat_token)
            self.tokens.append(created.host_token)
            started = gs.StartGameResponse.FromString(
                await self._prepared("StartGame", created.host_token, game_id=game_id)
            )
            sender = first + started.game.turn.seat - 1
            self.games.append(Playing(game_id, started.game.etag, sender))

    async def _prepared(self, rpc: str, token: str, **fields: object) -> bytes:
        return await self.call(rpc, token, UNARY[rpc].request(**fields).SerializeToString())

    async def call(self, rpc: str, token: str, data: bytes) -> bytes:
        """Returns the answer to a call. Raises Fault, TimeoutError."""
        set_current_origin(Origin("127.0.0.1", self._key))
        async with asyncio.timeout(SECONDS):
            answer: bytes = await self._handlers[rpc](data, Context(token))
        return answer
