"""Errors that a client can rely on: each documented one occurs, with the code and the details that the contract states.

What is documented is read from the comments in proto/: the code and the metadata of each ErrorReason, and the reasons
that each RPC names. A case prepares the ground and says what to send; cases are keyed by RPC and reason, and tests
below see to it that every documented pair has one.
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

import grpc
import grpc.aio
import pytest
import pytest_asyncio
import redis
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2

from conformance.grpc_answers import discard_turn_request, hand_request, placement_request
from engine.discard.presets import AMERICAN
from engine.discard.round import DiscardRound, HasLaid, Pile, ToDiscard
from engine.discard.table import Opening
from engine.discard.table import Table as DiscardTable
from engine.game import (
    Aborted,
    Finished,
    Game,
    Lobby,
    Phase,
    Playing,
    RoundEnd,
    RoundOver,
    RoundResult,
)
from engine.melding.exchange import Exchange
from engine.melding.round import Choosing, Drawn, Open, ShownPlay, Step
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import (
    OPTIONS,
    SABRA,
    MatchEnd,
    PoolEmptyPass,
    Ruleset,
    TurnDraw,
    TurnInvalidSubmission,
    TurnPlayAfterDraw,
    TurnVoluntaryDraw,
)
from engine.melding.table import Table, tiles_on
from engine.notation import parse_tile
from engine.room_settings import DEFAULT_SETTINGS, Hints, OpenSeat, RacksShown, Spectators
from engine.seats import Player, Rack, Turn
from engine.tiles import JOKER, Tile, in_order, without
from engine.turns.lobby import LOBBY_CHANGES_MAX
from engine.violations import Reason
from rummikub.v1 import (
    analysis_service_pb2,
    error_reason_pb2,
    game_pb2,
    game_service_pb2,
    meld_pb2,
    puzzle_service_pb2,
    record_pb2,
    room_settings_pb2,
    ruleset_pb2,
    tile_pb2,
    turn_service_pb2,
    validation_service_pb2,
    violation_pb2,
)
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import challenge_service_pb2 as cs
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.app.changes import SMALL_REVISIONS
from service.app.commands.command import RequestIdentity
from service.app.identity import SPECTATOR
from service.codec import rulesets, validation
from service.errors import Fault, StoreFull, StoreUnavailable
from service.grpc_api.rpcs import lobby
from service.model.change import Commit, Conflict, Loaded, Outcome
from service.model.record import Record
from service.runtime.keys import HEADER
from service.settings import Settings
from service.storage.store import Store
from support import join_tickets
from support.cases import each_of
from support.conformance_cases import (
    Breach,
    DiscardTurnCase,
    HandCase,
    MeldCase,
    MeldText,
    PlacementCase,
    TurnCase,
    TurnExpected,
    TurnQuestion,
    load,
)
from support.conformance_messages import (
    any_table_of,
    discard_ruleset_of,
    hand_of,
    ruleset_of,
    table_of,
    tile_of,
    tiles_of,
)
from support.delegating_store import DelegatingStore
from support.harness import (
    ROOT,
    Client,
    FakeClock,
    GameAtHand,
    as_tiles,
    bearer,
    client_with_key,
    error_info,
    field_violations,
    keys_file,
    memory_store,
    new_id,
    put_game,
    redis_store,
    retry_ms,
    running_server,
    server_settings,
    status_details,
)
from support.okey_games import game_at as discards_at
from support.rooms import Rules, parts, room
from support.rpcs import MUTATING, OF_A_SEAT, USUAL, WITH_TICKET, as_usual, new_message, usual_request
from support.scripted_worker import Script
from tools.games import game_rules, melding_rules, options
from tools.redis_servers import RedisServer

pytestmark = [pytest.mark.usefixtures("all_rights"), pytest.mark.slow]

INSIDE = "what nobody outside may read"
FOREVER_SECONDS = 3600.0
UNKNOWN_GAME = "0" * 32
HELD_GAME = "f" * 32
NO_LINEAGE = "0" * 32
"""The second half of the etag of a history that no game has."""
NEWER_LINEAGE = "f" * 32
"""That of a change by a newer server."""
METADATA_LIMIT = 8192
"""The default metadata limit of gRPC clients."""
STRANGER = "s" * 43
ADVICE_OF_ZERO = re.compile(r"\b(or|send|revision|seat) 0\b")
RETRIED_LATER = {"ANALYSIS_BUSY", "TOO_MANY_GAMES", "TOO_MANY_GUESSES", "TOO_MANY_CHALLENGES", "STORE_FULL"}
"""Reasons with another code than UNAVAILABLE whose status has a delay."""
SCRIPTED = (sys.executable, str(ROOT / "tests" / "support" / "scripted_worker.py"))
DYING = (sys.executable, "-c", "")
TWO_ROUNDS = replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)

Metadata = tuple[tuple[str, str], ...]

# The documentation


@dataclass(frozen=True)
class Documented:
    """The documentation of a reason in error_reason.proto."""

    code: str
    violation: bool
    metadata: frozenset[str]
    names_fields: bool


def declarations(file: str) -> Iterator[tuple[str, str]]:
    """Yields each commented declaration of a proto file with its comment as one line."""
    comment: list[str] = []
    for line in (ROOT / "proto" / "rummikub" / "v1" / file).read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("//"):
            comment.append(text.removeprefix("//").strip())
            continue
        if comment and text:
            yield text, " ".join(comment)
        comment = []


@cache
def documented_reasons() -> dict[str, Documented]:
    found = {}
    for declaration, comment in declarations("error_reason.proto"):
        name = re.match(r"([A-Z]\w+) = [1-9]", declaration)
        if not name:
            continue
        code = comment.partition(".")[0].split()[0]
        keys = comment.partition("Metadata: ")[2]
        violation = "violation" in comment.lower().partition(". ")[0]
        found[name[1]] = Documented(
            code="FAILED_PRECONDITION" if code == "Violation" else code,
            violation=violation,
            metadata=frozenset(re.findall(r"`(\w+)`", keys)),
            names_fields="BadRequest names" in comment,
        )
    return found


VIOLATIONS = [name for name, reason in documented_reasons().items() if reason.violation]
SERVICES = {
    "game_service.proto": game_service_pb2.DESCRIPTOR.services_by_name["GameService"],
    "turn_service.proto": turn_service_pb2.DESCRIPTOR.services_by_name["TurnService"],
    "validation_service.proto": validation_service_pb2.DESCRIPTOR.services_by_name["ValidationService"],
    "analysis_service.proto": analysis_service_pb2.DESCRIPTOR.services_by_name["AnalysisService"],
    "challenge_service.proto": cs.DESCRIPTOR.services_by_name["ChallengeService"],
    "puzzle_service.proto": puzzle_service_pb2.DESCRIPTOR.services_by_name["PuzzleService"],
    "record_service.proto": rs.DESCRIPTOR.services_by_name["RecordService"],
}
RPCS: dict[str, MethodDescriptor] = {rpc.name: rpc for service in SERVICES.values() for rpc in service.methods}


def listed(comment: str) -> set[tuple[str, str]]:
    """Returns the codes and reasons of `CODE (REASON, REASON)`; "every violation" means all violations."""
    pairs = set()
    for code, reasons in re.findall(r"([A-Z_]{5,}) \(([^()]*)\)", comment):
        pairs |= {(code, reason) for reason in re.findall(r"[A-Z_]{5,}", reasons)}
        if "every violation" in reasons:
            pairs |= {(code, reason) for reason in VIOLATIONS}
    return pairs


def has_field(message: Descriptor, name: str) -> bool:
    """Returns whether a request, or the turn in it, has a field."""
    return name in message.fields_by_name or any(
        field.name == "turn" and field.message_type and name in field.message_type.fields_by_name
        for field in message.fields
    )


def general(comment: str, rpc: MethodDescriptor) -> set[tuple[str, str]]:
    """Returns the errors that a service documents for every RPC, unary RPCs, or RPCs with a field."""
    pairs = set()
    for kind, field, clause in re.findall(
        r"[Ee]very RPC (with a single request|with an? (\w+)|may return),? (.*?)(?=[;.])", comment
    ):
        if has_field(rpc.input_type, field) if field else not ("single" in kind and rpc.client_streaming):
            pairs |= listed(clause)
    return pairs


@cache
def documented_errors() -> dict[str, set[tuple[str, str]]]:
    """Returns the documented codes and reasons of each RPC."""
    comments = {file: dict(declarations(file)) for file in SERVICES}
    found = {}
    for file, service in SERVICES.items():
        of_all = comments[file][f"service {service.name} {{"]
        if "general errors are as in GameService" in of_all:
            of_all = comments["game_service.proto"]["service GameService {"]
        for rpc in service.methods:
            own = next(text for declared, text in comments[file].items() if declared.startswith(f"rpc {rpc.name}("))
            found[rpc.name] = general(of_all, rpc) | listed(own.partition("Errors:")[2])
    return found


# Servers in the states that the cases need


class FaultyStore(DelegatingStore):
    """A store in memory that raises an unexpected exception on request."""

    is_faulty = False

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        if self.is_faulty:
            raise RuntimeError(INSIDE)
        return await self._store.games.load(game_id, request_key)


@dataclass(frozen=True)
class Stage:
    """A server on a store, with a started game of two and the request that created it."""

    client: Client
    store: Store
    clock: FakeClock
    creation: gs.CreateGameRequest
    game: GameAtHand


async def staged(client: Client, store: Store, clock: FakeClock) -> Stage:
    creation = gs.CreateGameRequest(request_id=new_id())
    created = await client.games.CreateGame(creation)
    game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
    await game.join("Ada")
    await game.join("Ben")
    await game.start()
    return Stage(client, store, clock, creation, game)


def settings(**changes: object) -> Settings:
    """Settings without a second sweep, so that only calls change games."""
    return server_settings(sweep_seconds=FOREVER_SECONDS, **changes)


@asynccontextmanager
async def usual(_redis_url: str) -> AsyncIterator[Stage]:
    clock = FakeClock()
    store = memory_store(clock)
    async with running_server(store, settings()) as (_, client):
        yield await staged(client, store, clock)


@asynccontextmanager
async def forgetful(_redis_url: str) -> AsyncIterator[Stage]:
    """The store keeps the last two changes of a game."""
    clock = FakeClock()
    store = memory_store(clock, history=2)
    async with running_server(store, settings()) as (_, client):
        yield await staged(client, store, clock)


@asynccontextmanager
async def faulty(_redis_url: str) -> AsyncIterator[Stage]:
    """The store raises an unexpected exception."""
    clock = FakeClock()
    store = FaultyStore(memory_store(clock))
    async with running_server(store, settings()) as (_, client):
        stage = await staged(client, store, clock)
        store.is_faulty = True
        yield stage


@asynccontextmanager
async def store_away(_redis_url: str) -> AsyncIterator[Stage]:
    """The store has stopped while the server serves."""
    clock, away = FakeClock(), RedisServer()
    away.start()
    store = redis_store(away.url, clock)
    try:
        async with running_server(store, settings()) as (_, client):
            stage = await staged(client, store, clock)
            away.stop()
            yield stage
    finally:
        await store.close()
        away.close()


@asynccontextmanager
async def newer_format(redis_url: str) -> AsyncIterator[Stage]:
    """A newer server has changed the game: with a new etag, as with every change. Without it, a turn that was decided
    on the cached game would still be stored, if no other call has read the game meanwhile.
    """
    clock = FakeClock()
    store = redis_store(redis_url, clock)
    with redis.Redis.from_url(redis_url) as keys:
        keys.flushdb()
        async with running_server(store, settings()) as (_, client):
            stage = await staged(client, store, clock)
            changed = {"snapshot": b'{"format":999}', "etag": NEWER_LINEAGE}
            keys.hset(f"rummikub:{{{stage.game.game_id}}}:game", mapping=changed)
            yield stage
    await store.close()


@asynccontextmanager
async def with_keys(_redis_url: str) -> AsyncIterator[Stage]:
    """The server requires a key: `all`, or `none`, which may call no service."""
    clock = FakeClock()
    store = memory_store(clock)
    with tempfile.TemporaryDirectory() as folder:
        keys = keys_file(Path(folder), all="", none="services = []")
        async with (
            running_server(store, settings(keys_file=keys)) as (server, client),
            client_with_key(server.port, "all") as keyed,
        ):
            yield replace(await staged(keyed, store, clock), client=client)


class ScarceStore(DelegatingStore):
    """A store in memory that is away, or full, once a fault is set."""

    fault: Fault | None = None

    async def now_ms(self) -> int:
        if isinstance(self.fault, StoreUnavailable):
            raise self.fault
        return await self._store.now_ms()

    async def check_room(self, most_age: float = 0.0) -> None:
        if self.fault:
            raise self.fault
        await self._store.check_room(most_age)


@asynccontextmanager
async def with_tickets(_redis_url: str, fault: Fault | None = None, **options: Any) -> AsyncIterator[Stage]:  # noqa: ANN401 - of any type
    """The server has a key whose players join with tickets only. There is a challenge by `ben` to `ada`."""
    clock = FakeClock()
    store = ScarceStore(memory_store(clock))
    with tempfile.TemporaryDirectory() as folder:
        keys = keys_file(Path(folder), web=f"{join_tickets.ENTRY}\nrequire_tickets = true")
        async with (
            running_server(store, settings(keys_file=keys, **options)) as (server, _),
            client_with_key(server.port, "web") as client,
        ):
            created = await client.games.CreateGame(gs.CreateGameRequest())
            game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
            store.fault = fault
            yield Stage(client, store, clock, gs.CreateGameRequest(), game)


class ContendedStore(DelegatingStore):
    """A store in memory where another writer wins every commit."""

    is_contended = False

    async def commit(self, commit: Commit) -> Outcome:
        return Conflict() if self.is_contended else await self._store.games.commit(commit)

    async def rewrite(self, previous_etag: str, record: Record, stream: Sequence[tuple[bytes, str]]) -> Outcome:
        if self.is_contended:
            return Conflict()
        return await self._store.games.rewrite(previous_etag, record, stream)


@asynccontextmanager
async def contended(_redis_url: str) -> AsyncIterator[Stage]:
    """Other writers change the stage's game all the time; it has an illegal play to claim."""
    clock = FakeClock()
    store = ContendedStore(memory_store(clock))
    async with running_server(store, settings()) as (_, client):
        stage = await staged(client, store, clock)
        game = await put(stage, a_game(Playing(a_shown_play()), CLAIMS))
        store.is_contended = True
        yield replace(stage, game=game)


class HeldStore(DelegatingStore):
    """A store in memory that blocks loads of one game."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(memory_store(clock))
        self.asked, self.released = asyncio.Event(), asyncio.Event()

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        if game_id == HELD_GAME:
            self.asked.set()
            await self.released.wait()
        return await self._store.games.load(game_id, request_key)


@asynccontextmanager
async def stopping(_redis_url: str) -> AsyncIterator[Stage]:
    """The server starts to stop while clients still use their connection."""
    clock = FakeClock()
    store = memory_store(clock)
    async with running_server(store, settings()) as (server, client):
        stage = await staged(client, store, clock)
        server.stopping.set()  # a whole stop closes the connection too, in its own time
        yield stage


@asynccontextmanager
async def overloaded(_redis_url: str) -> AsyncIterator[Stage]:
    """The server has reached its limit of one call."""
    clock = FakeClock()
    store = HeldStore(clock)
    async with running_server(store, settings(max_calls=1)) as (_, client):
        stage = await staged(client, store, clock)
        under_way = client.games.GetGame(gs.GetGameRequest(game_id=HELD_GAME))
        await store.asked.wait()
        yield stage
        store.released.set()
        assert await under_way.code() is grpc.StatusCode.NOT_FOUND


@asynccontextmanager
async def impatient(_redis_url: str) -> AsyncIterator[Stage]:
    """The server has a short request timeout, in which a busy machine does not set up the stage."""
    clock = FakeClock()
    store = memory_store(clock)
    patient, hasty = running_server(store, settings()), running_server(store, settings(request_seconds=0.1), 2)
    async with patient as (_, client), hasty as (_, other):
        stage = await staged(client, store, clock)
        yield replace(stage, client=other, game=replace(stage.game, client=other))


@asynccontextmanager
async def few_games(_redis_url: str) -> AsyncIterator[Stage]:
    """The client has created its one game per minute."""
    clock = FakeClock()
    store = memory_store(clock)
    async with running_server(store, settings(games_per_minute=1)) as (_, client):
        yield await staged(client, store, clock)


@asynccontextmanager
async def few_guesses(_redis_url: str) -> AsyncIterator[Stage]:
    """The client has sent its one unknown join code per minute."""
    clock = FakeClock()
    store = memory_store(clock)
    async with running_server(store, settings(join_guesses_per_minute=1)) as (_, client):
        stage = await staged(client, store, clock)
        guess = client.games.JoinGame(gs.JoinGameRequest(join_code="333333", name="Cleo"))
        assert await guess.code() is grpc.StatusCode.NOT_FOUND
        yield stage


@asynccontextmanager
async def store_nearly_full(_redis_url: str) -> AsyncIterator[Stage]:
    """Less than a tenth of the store's memory is free."""
    clock, full = FakeClock(), RedisServer()
    full.start()
    store = redis_store(full.url, clock)
    try:
        async with running_server(store, settings()) as (_, client):
            stage = await staged(client, store, clock)
            with redis.Redis.from_url(full.url) as keys:
                keys.config_set("maxmemory", round(keys.info("memory")["used_memory"] * 1.1))
            assert (await stage.game.draw()).tiles_drawn, "running games go on"
            yield stage
    finally:
        await store.close()
        full.close()


class FullStore(DelegatingStore):
    """A store in memory without room for another game."""

    is_full = False

    async def check_room(self, most_age: float = 0.0) -> None:
        if self.is_full:
            raise StoreFull
        await self._store.check_room(most_age)


@asynccontextmanager
async def full_with_long_game(_redis_url: str) -> AsyncIterator[Stage]:
    """The store has no room for another game, nor for the stage's game to grow on."""
    clock = FakeClock()
    store = FullStore(memory_store(clock))
    async with running_server(store, settings()) as (_, client):
        stage = await staged(client, store, clock)
        store.is_full = True
        game = await put_game(client, store, a_game(Playing(a_round())), clock(), revision=SMALL_REVISIONS + 1)
        yield replace(stage, game=game)


@asynccontextmanager
async def analysis_busy(_redis_url: str) -> AsyncIterator[Stage]:
    """Analysis has reached its limit of one call, which is followed by the next one however long the test takes."""
    clock = FakeClock()
    store = memory_store(clock)
    bounds = settings(analysis_workers=1, analysis_queue=0)
    async with running_server(store, bounds, analysis_command=SCRIPTED) as (_, client):
        stage = await staged(client, store, clock)
        callers = [asyncio.create_task(_searching(client)) for _ in range(2)]
        with pytest.raises(grpc.aio.AioRpcError, match="RESOURCE_EXHAUSTED"):
            await asyncio.gather(*callers)  # of two calls one is rejected and one searches
        yield stage
        for caller in callers:
            caller.cancel()


async def _searching(client: Client) -> NoReturn:
    while True:
        await client.analysis.HasLegalTurn(scripted(Script.SEARCHES_TO_THE_END))


@asynccontextmanager
async def workers_die(_redis_url: str) -> AsyncIterator[Stage]:
    """The analysis processes crash at each question."""
    clock = FakeClock()
    store = memory_store(clock)
    async with running_server(store, settings(), analysis_command=DYING) as (_, client):
        yield await staged(client, store, clock)


def scripted(script: Script) -> an.HasLegalTurnRequest:
    """Asks a scripted worker."""
    position = an.Position(rack=as_tiles([script]), has_melded=True)
    return an.HasLegalTurnRequest(position=position, time_limit=Duration(seconds=10))


Staging = Callable[[str], AbstractAsyncContextManager[Stage]]


class Stages:
    """The stages, each set up for the first case that needs it."""

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._open = AsyncExitStack()
        self._stages: dict[Staging, Stage] = {}

    async def at(self, staging: Staging) -> Stage:
        if staging not in self._stages:
            self._stages[staging] = await self._open.enter_async_context(staging(self._redis_url))
        return self._stages[staging]

    async def close(self) -> None:
        await self._open.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stages(redis_url: str) -> AsyncIterator[Stages]:
    stages = Stages(redis_url)
    yield stages
    await stages.close()


# Positions


async def put(stage: Stage, game: Game) -> GameAtHand:
    """Stores a given game on a stage."""
    return await put_game(stage.client, stage.store, game, stage.clock())


def a_round(
    table: Table = (),
    rack: tuple[Tile, ...] = (),
    rules: Ruleset = SABRA,
    river: tuple[Tile, ...] = (),
    step: Step | None = None,
    *,
    has_melded: bool = True,
) -> Round:
    """Returns a round of two with seat 1 to move; the hidden tiles are on the other rack and in the pool."""
    offered = step.tiles if isinstance(step, Choosing) else ()
    all_tiles = rules.tiles(2)
    rest = without(all_tiles, [*rack, *tiles_on(table), *river, *offered])
    racks = (Rack(1, in_order(rack), has_melded), Rack(2, rest[:14], has_melded=True))
    return Round(1, (1, 2), table, racks, rest[14:], Turn(1, None), river=river, step=step or Open())


RIVER = replace(SABRA, turn_draw=TurnDraw.TWO_RIVER)
CLAIMS = replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM)


def a_choice() -> Round:
    """Returns a round in which seat 1 must lay the first or the second red tile on the River."""
    return a_round(rules=RIVER, step=Choosing((Tile(1), Tile(2))))


def a_shown_play(claimed: tuple[int, ...] = (), against: int | None = None) -> Round:
    """Returns a round with an illegal play of seat 1 at revision 1."""
    shown = ShownPlay(1, (), (Reason.NO_RACK_TILE_PLAYED,), claimed, against)
    return replace(a_round(), shown_play=shown)


def a_game(phase: Phase, rules: Rules = SABRA, resigned: frozenset[int] = frozenset()) -> Game:
    """Returns a game of two in a phase."""
    players = tuple(Player(seat, name, resigned=seat in resigned) for seat, name in enumerate(("Ada", "Ben"), 1))
    return Game(*parts(rules), 1, players, phase)


# Turns of the conformance cases


def turn_to_validate(case: TurnCase) -> vs.ValidateTurnRequest:
    return vs.ValidateTurnRequest(
        ruleset=ruleset_of(case.ruleset),
        table_before=meld_pb2.Table(melds=table_of(case.table_before)),
        table_after=meld_pb2.Table(melds=table_of(case.table_after)),
        rack=tiles_of(case.rack),
        has_melded=case.has_melded,
        river=tiles_of(case.river),
        river_index=case.river_index,
        tile_drawn=tiles_of((case.tile_drawn,))[0] if case.tile_drawn else tile_pb2.TILE_UNSPECIFIED,
        calls_rummikub=case.calls_rummikub,
    )


def played(case: TurnCase | PlacementCase) -> ts.PlayTiles:
    """Returns the action of a case."""
    return ts.PlayTiles(
        table=any_table_of(case.table_after),
        river_index=None if isinstance(case, PlacementCase) else case.river_index,
        calls_rummikub=case.calls_rummikub,
    )


async def before_turn(stage: Stage, case: TurnCase | PlacementCase) -> GameAtHand:
    """A running game in which seat 1 can take the turn of a case."""
    if isinstance(case, PlacementCase):
        request = placement_request(case, case.ruleset)
        placement = validation.placement(request, rulesets.ruleset(request.ruleset))
        return await put(stage, a_game(Playing(round_of(placement)), placement.ruleset))
    play = validation.play(turn_to_validate(case), rulesets.ruleset(ruleset_of(case.ruleset)))
    return await put(stage, a_game(Playing(round_of(play)), play.ruleset))


async def violations_of(
    stage: Stage, case: TurnCase | PlacementCase | HandCase | DiscardTurnCase
) -> Sequence[violation_pb2.Violation]:
    """Returns what ValidationService answers to a case, which is illegal."""
    if isinstance(case, HandCase):
        return (await stage.client.validation.ValidateHand(hand_request(case, case.ruleset))).violations
    if isinstance(case, DiscardTurnCase):
        turn = discard_turn_request(case, case.ruleset)
        return (await stage.client.validation.ValidateDiscardTurn(turn)).violations
    if isinstance(case, PlacementCase):
        placed = await stage.client.validation.ValidatePlacement(placement_request(case, case.ruleset))
        assert not placed.goes_out
        return placed.violations
    answer = await stage.client.validation.ValidateTurn(turn_to_validate(case))
    assert not answer.goes_out
    return answer.violations


def round_of(play: Exchange) -> Round:
    """Returns a round in which seat 1 can make a play."""
    step = Open() if play.drawn is None else Drawn(play.drawn)
    return a_round(play.table_before, play.rack, play.ruleset, play.river, step, has_melded=play.has_melded)


@cache
def turns_by_reason() -> dict[str, TurnCase | PlacementCase]:
    """Returns a turn with just one violation, for each violation, from the conformance cases."""
    suite = load()
    melds = map(turn_with, suite.melds)
    cases: list[TurnCase | PlacementCase] = [*suite.turns, *suite.placements, *contrasted_turns(), *melds]
    found: dict[str, TurnCase | PlacementCase] = {}
    for case in cases:
        reasons = [one.reason for one in case.expect.violations]
        if len(reasons) == 1:
            found.setdefault(reasons[0], case)
    return found


def contrasted_turns() -> Iterator[TurnCase]:
    """Yields the turns of the contrasts, under each value."""
    for contrast in load().contrasts:
        for value, reasons in contrast.answers.items():
            if isinstance(contrast.question, TurnQuestion) and isinstance(reasons, tuple):
                asked = {field.name: getattr(contrast.question, field.name) for field in fields(contrast.question)}
                breaches = TurnExpected(tuple(Breach(reason, "") for reason in reasons))
                options = contrast.options(value)
                yield TurnCase(id=contrast.id, source_id=None, note="", ruleset=options, expect=breaches, **asked)


def turn_with(case: MeldCase) -> TurnCase:
    """Returns a turn that plays a meld from the rack."""
    return TurnCase(
        id=case.id,
        source_id=None,
        note="",
        ruleset=case.ruleset,
        has_melded=True,
        table_before=(),
        rack=case.meld.tiles,
        table_after=(case.meld,),
        expect=TurnExpected(case.expect.violations),
    )


def turn_breaking(reason: str) -> TurnCase | PlacementCase:
    """Returns a turn with only this violation."""
    return turns_by_reason()[reason]


# Cases


@dataclass(frozen=True)
class Ask:
    """A request, or none, with its metadata and the fields that the error must name."""

    request: Message | bytes | None
    metadata: Metadata = ()
    fields: Sequence[str] = ()


Preparation = Callable[[Stage, str], Awaitable[Ask]]
"""Prepares a stage for an RPC and returns the request to send."""


@dataclass(frozen=True)
class Case:
    """A case: an RPC, its stage, the preparation and the expected error."""

    rpc: str
    code: str
    reason: str
    staging: Staging
    prepare: Preparation
    shows: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.rpc, self.reason, self.shows.replace("_", " "))))


CASES: list[Case] = []


def case(reason: str, *rpcs: str, staging: Staging = usual) -> Callable[[Preparation], Preparation]:
    """Registers a preparation as a case of each of the RPCs."""

    def register(prepare: Preparation) -> Preparation:
        code = documented_reasons()[reason].code
        CASES.extend(Case(rpc, code, reason, staging, prepare, prepare.__name__.strip("_")) for rpc in rpcs)
        return prepare

    return register


ON_GAMES = [
    *(rpc.name for file in ("game_service.proto", "turn_service.proto") for rpc in SERVICES[file].methods),
    "ExportGame",
]
WITH_GAME_ID = [name for name in ON_GAMES if "game_id" in RPCS[name].input_type.fields_by_name]
CREATING = ["CreateGame", "JoinOrCreateGame"]
JUDGING = ["ValidateTurn", "BatchValidateTurns", "StreamValidateTurns"]
WITH_RULESET = ["ValidateMelds", "ScoreRound", "ValidatePlacement", *JUDGING]
ANALYZING = [name for name, rpc in RPCS.items() if "time_limit" in rpc.input_type.fields_by_name]
WITH_POSITION = ["SuggestTurn", "CoachTurn", "HasLegalTurn", "BatchSuggestTurns"]
WITH_RECORD = ["ImportRecord", "ReviewGame"]
IN_A_TURN = ["PlayTurn", "SaveDraft", "ClaimError"]
ON_A_REVISION = ["PlayTurn", "SaveDraft"]
IN_THE_LOBBY = [row.name for row in lobby.RPCS]


def of_the_lobby(reason: str) -> list[str]:
    """Returns the RPCs of the lobby that document a reason."""
    return [rpc for rpc in IN_THE_LOBBY if any(reason == found for _, found in documented_errors()[rpc])]


CREATING_AGAIN = [rpc for rpc in of_the_lobby("TOO_MANY_GAMES") if rpc not in CREATING]
"""RPCs that create a game from one that is over."""


def request_of(rpc: str, stage: Stage) -> Message:
    """Returns a valid request."""
    own: dict[str, dict[str, object]] = {
        "CreateGame": {"request_id": stage.creation.request_id},
        "SetReady": {"is_ready": False},
        "ScoreRound": {"racks": []},
    }
    return usual_request(rpc, stage.game.game_id, stage.game.etag, **own.get(rpc, {}))


def on_game(rpc: str, stage: Stage, game: GameAtHand, etag: str = "") -> Message:
    """Returns a valid request for another game, or with another etag."""
    request = request_of(rpc, stage)
    changes: dict[str, object] = {"game_id": game.game_id}
    if rpc in ON_A_REVISION:
        changes["etag"] = etag or game.etag
    request.MergeFrom(new_message(rpc, **changes))
    return request


@case("MALFORMED_REQUEST", *RPCS)
async def _(_stage: Stage, _rpc: str) -> Ask:
    return Ask(b"\xff")


INVALID_FIELDS: dict[str, tuple[str, object]] = {
    "CreateGame": ("request_id", "short"),
    "JoinOrCreateGame": ("labels", {"Not a key": ""}),
    "ListGames": ("page_token", "?"),
    "ListOwnGames": ("seats", [gs.OwnSeat()] * 50),
    "WatchOwnGames": ("seats", [gs.OwnSeat()] * 50),
    "ExportOwnGames": ("page_token", "?"),
    "ListRulesets": ("page_token", "?"),
    "ListMessages": ("language", "?"),
    "ValidateTurn": ("rack", [1] * 129),
    "ValidatePlacement": ("rack", [1] * 129),
    "BatchValidateTurns": ("turns", [vs.ValidateTurnRequest(has_melded=True)] * 101),
    "StreamValidateTurns": ("correlation_id", "x" * 65),
    "ScoreRound": ("racks", [vs.RackToScore(seat=1)]),
    **dict.fromkeys(ANALYZING, ("time_limit", Duration(seconds=61))),
    "GetPuzzle": ("number", 0),
    "CheckPuzzle": ("number", 1_001),
    "ParsePosition": ("text", "x"),
    "FormatPosition": ("turn_seat", 0),
    **dict.fromkeys(WITH_GAME_ID, ("game_id", "no id")),
}


@case("FIELD_INVALID", *INVALID_FIELDS)
async def _(stage: Stage, rpc: str) -> Ask:
    field, value = INVALID_FIELDS[rpc]
    request = request_of(rpc, stage)
    request.MergeFrom(new_message(rpc, **{field: value}))
    return Ask(request, as_usual(rpc, stage.game), [field])


LABELS = {str(number): "" for number in range(9)}
MORE_INVALID_FIELDS: list[tuple[str, str, object]] = [
    ("CreateGame", "visibility", 3),
    ("CreateGame", "labels", LABELS),
    ("CreateGame", "labels", {"": ""}),
    ("CreateGame", "labels", {"x" * 33: ""}),
    ("CreateGame", "labels", {"key": "x" * 65}),
    ("CreateGame", "labels", {"key": "a\nb"}),
    ("JoinOrCreateGame", "name", " Cleo"),
    ("JoinOrCreateGame", "labels", LABELS),
    ("JoinOrCreateGame", "request_id", "x" * 21),
    ("JoinGame", "seat", 0),
    ("GetGame", "revision", 0),
    ("JoinGame", "join_code", ""),
    ("JoinGame", "join_code", "22222"),
    ("JoinGame", "join_code", "22222O"),
    ("JoinGame", "join_code", "2222222"),
    ("GetGame", "view", 3),
    ("WatchGame", "view", 3),
    ("WatchGame", "content", 4),
    ("ListGames", "preset", 999),
    ("ListGames", "labels", LABELS),
    ("ListGames", "page_token", "MDAwMDAwMDAwMDAwMDAxOjAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw"),
]


def with_field(field: str, value: object) -> Preparation:
    async def prepare(stage: Stage, rpc: str) -> Ask:
        request = request_of(rpc, stage)
        request.MergeFrom(new_message(rpc, **{field: value}))
        return Ask(request, fields=[field])

    prepare.__name__ = field
    return prepare


for _rpc, _field, _value in MORE_INVALID_FIELDS:
    case("FIELD_INVALID", _rpc)(with_field(_field, _value))


@case("AUTHORIZATION_MALFORMED", *ON_GAMES)
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage), (("authorization", "Basic QWRhOnBhc3N3b3Jk"),))


@case("API_KEY_INVALID", *RPCS, staging=with_keys)
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage), as_usual(rpc, stage.game))


@case("API_KEY_NOT_ALLOWED", *RPCS, staging=with_keys)
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage), (*as_usual(rpc, stage.game), (HEADER, "none")))


@case("STORE_UNAVAILABLE", *ON_GAMES, staging=store_away)
@case("STORED_FORMAT_UNKNOWN", "CreateGame", *WITH_GAME_ID, staging=newer_format)
@case("INTERNAL_ERROR", *(rpc for rpc in ON_GAMES if rpc != "ListGames"), staging=faulty)
@case("SHUTTING_DOWN", *RPCS, staging=stopping)
@case("OVERLOADED", *RPCS, staging=overloaded)
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage), as_usual(rpc, stage.game))


@case("REQUEST_TIMED_OUT", *(rpc for rpc in RPCS if rpc != "StreamValidateTurns"), staging=impatient)
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(None, as_usual(rpc, stage.game))


@case("TOO_MANY_GAMES", *CREATING, staging=few_games)
@case("STORE_FULL", *CREATING, staging=store_nearly_full)
async def _(stage: Stage, rpc: str) -> Ask:
    request = request_of(rpc, stage)
    request.ClearField("request_id")
    return Ask(request, as_usual(rpc, stage.game))


@case("STORE_FULL", *(rpc for rpc in MUTATING if rpc not in CREATING), staging=full_with_long_game)
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage), as_usual(rpc, stage.game))


@case("TOO_MANY_GAMES", *CREATING_AGAIN, staging=few_games)
@case("STORE_FULL", *CREATING_AGAIN, staging=store_nearly_full)
async def _(stage: Stage, rpc: str) -> Ask:
    await stage.client.games.AbortGame(gs.AbortGameRequest(game_id=stage.game.game_id), metadata=stage.game.as_host())
    return Ask(request_of(rpc, stage), stage.game.as_seat(1))


async def with_kicked(stage: Stage) -> GameAtHand:
    """Returns an unlisted lobby from which its host has removed Eve."""
    created = await stage.client.games.CreateGame(gs.CreateGameRequest())
    game = GameAtHand(stage.client, created.game.game_id, host_token=created.host_token)
    await game.join("Ada")
    await game.join("Eve")
    await game.kick(2)
    return game


@case("JOIN_CODE_REQUIRED", "JoinGame")
async def _by_the_id_after_a_kick(stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, game_id=(await with_kicked(stage)).game_id, name="Cleo"))


@case("PLAYER_KICKED", "JoinGame")
async def _kicked_before(stage: Stage, rpc: str) -> Ask:
    code = (await (await with_kicked(stage)).see(1)).join_code
    return Ask(new_message(rpc, join_code=code, name="Eve"))


BAD_TICKETS = {
    "TICKET_REQUIRED": "",
    "TICKET_MALFORMED": join_tickets.signed("ada", seat="first"),
    "TICKET_ALGORITHM_NOT_ALLOWED": join_tickets.unsigned("none"),
    "TICKET_SIGNATURE_INVALID": join_tickets.signed("ada", join_tickets.OTHER_KEY),
    "TICKET_AUDIENCE_WRONG": join_tickets.signed("ada", aud="partner"),
    "TICKET_EXPIRED": join_tickets.signed("ada", seconds=-1),
    "TICKET_OUT_OF_SCOPE": join_tickets.signed("ada", game_id=UNKNOWN_GAME),
}


def with_ticket(stage: Stage, rpc: str, ticket: str) -> Message:
    """Returns a request with a ticket."""
    if rpc in WITH_TICKET:
        return usual_request(rpc, "", "", join_ticket=ticket)
    others = {"JoinGame": {"game_id": stage.game.game_id, "name": "Ada"}, "JoinOrCreateGame": {"name": "Ada"}}
    return new_message(rpc, join_ticket=ticket, **others.get(rpc, {}))


def _joins_with(reason: str, ticket: str) -> None:
    lists = {"TICKET_OUT_OF_SCOPE": (), "TICKET_REQUIRED": WITH_TICKET}
    others = lists.get(reason, ("ListOwnGames", "WatchOwnGames", "ExportOwnGames", *WITH_TICKET))

    @case(reason, "JoinGame", "JoinOrCreateGame", *others, staging=with_tickets)
    async def _with_a_bad_ticket(stage: Stage, rpc: str) -> Ask:
        return Ask(with_ticket(stage, rpc, ticket))


for bad_ticket in BAD_TICKETS.items():
    _joins_with(*bad_ticket)


@case("TICKET_USED", "JoinGame", "JoinOrCreateGame", staging=with_tickets)
async def _(stage: Stage, rpc: str) -> Ask:
    ticket, labels = join_tickets.signed("ada", jti=new_id()), {"another": rpc.lower()}
    await stage.client.games.JoinOrCreateGame(gs.JoinOrCreateGameRequest(name="Ada", join_ticket=ticket, labels=labels))
    return Ask(with_ticket(stage, rpc, ticket))


# Challenges


async def challenged(stage: Stage, **fields: Any) -> cs.Challenge:  # noqa: ANN401 - of a request
    """Returns the only open challenge by `ben` to `ada`."""
    ticket = join_tickets.signed("ben", name="Ben")
    for one in (await stage.client.challenges.ListChallenges(cs.ListChallengesRequest(join_ticket=ticket))).challenges:
        canceling = cs.CancelChallengeRequest(challenge_id=one.challenge_id, join_ticket=ticket)
        await stage.client.challenges.CancelChallenge(canceling)
    request = cs.ChallengePlayerRequest(join_ticket=ticket, player_ref="ada", **fields)
    return (await stage.client.challenges.ChallengePlayer(request)).challenge


@case("AUTHORIZATION_MALFORMED", *WITH_TICKET)
async def _(_stage: Stage, rpc: str) -> Ask:
    return Ask(usual_request(rpc, "", ""), (("authorization", "Basic QWRhOnBhc3N3b3Jk"),))


@case("FIELD_INVALID", *WITH_TICKET)
async def _with_a_ticket_that_is_too_long(_stage: Stage, rpc: str) -> Ask:
    return Ask(usual_request(rpc, "", "", join_ticket="." * 2_001), fields=["join_ticket"])


@case("CHALLENGE_NOT_FOUND", "AcceptChallenge", "DeclineChallenge", "CancelChallenge", staging=with_tickets)
@case("STORE_UNAVAILABLE", *WITH_TICKET, staging=partial(with_tickets, fault=StoreUnavailable()))
async def _(_stage: Stage, rpc: str) -> Ask:
    return Ask(usual_request(rpc, "", ""))


@case("TICKET_OUT_OF_SCOPE", "ChallengePlayer", "AcceptChallenge", staging=with_tickets)
async def _(_stage: Stage, rpc: str) -> Ask:
    return Ask(usual_request(rpc, "", "", name="Eve"))


@case("CHALLENGE_OVER", "AcceptChallenge", "DeclineChallenge", "CancelChallenge", staging=with_tickets)
async def _(stage: Stage, rpc: str) -> Ask:
    challenge_id = (await challenged(stage)).challenge_id
    ben, ada = join_tickets.signed("ben", name="Ben"), join_tickets.signed("ada", name="Ada")
    if rpc == "CancelChallenge":
        await stage.client.challenges.DeclineChallenge(
            cs.DeclineChallengeRequest(challenge_id=challenge_id, join_ticket=ada)
        )
        return Ask(usual_request(rpc, "", "", challenge_id=challenge_id, join_ticket=ben))
    await stage.client.challenges.CancelChallenge(cs.CancelChallengeRequest(challenge_id=challenge_id, join_ticket=ben))
    return Ask(usual_request(rpc, "", "", challenge_id=challenge_id, join_ticket=ada))


@case("BOTS_NOT_ALLOWED", "ChallengePlayer", "AcceptChallenge", staging=with_tickets)
async def _(stage: Stage, rpc: str) -> Ask:
    of_people = room_settings_pb2.RoomSettings(bots=room_settings_pb2.BOTS_OFF)
    program = join_tickets.signed("ada", name="Ada", bot=True)
    own: dict[str, object] = {"settings": of_people}
    if rpc == "AcceptChallenge":
        own = {"challenge_id": (await challenged(stage, settings=of_people)).challenge_id}
    return Ask(usual_request(rpc, "", "", join_ticket=program, **own))


@case("TOO_MANY_GAMES", "AcceptChallenge", staging=partial(with_tickets, games_per_minute=1))
@case("STORE_FULL", "AcceptChallenge", staging=partial(with_tickets, fault=StoreFull()))
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(usual_request(rpc, "", "", challenge_id=(await challenged(stage)).challenge_id))


@case("PLAYER_ALREADY_JOINED", "AcceptChallenge", staging=with_tickets)
async def _(stage: Stage, rpc: str) -> Ask:
    ticket = join_tickets.signed("ada", name="ben")
    return Ask(usual_request(rpc, "", "", challenge_id=(await challenged(stage)).challenge_id, join_ticket=ticket))


@case("DUPLICATE_REQUEST", "ChallengePlayer", staging=with_tickets)
async def _(stage: Stage, rpc: str) -> Ask:
    request_id = new_id()
    await challenged(stage, request_id=request_id)
    return Ask(usual_request(rpc, "", "", request_id=request_id))


@case("TOO_MANY_CHALLENGES", "ChallengePlayer", staging=with_tickets)
async def _(stage: Stage, rpc: str) -> Ask:
    busy = join_tickets.signed("busy", name="Busy")
    for number in range(20):
        request = cs.ChallengePlayerRequest(join_ticket=busy, player_ref=f"idle {number}")
        await stage.client.challenges.ChallengePlayer(request)
    return Ask(usual_request(rpc, "", "", join_ticket=busy))


@case("JOIN_CODE_UNKNOWN", "JoinGame")
@case("TOO_MANY_GUESSES", "JoinGame", staging=few_guesses)
async def _(_stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, join_code="222222", name="Cleo"))


@case("STORED_FORMAT_UNKNOWN", "JoinOrCreateGame", staging=newer_format)
async def _(stage: Stage, rpc: str) -> Ask:
    request_id = new_id()
    key = RequestIdentity(SPECTATOR, request_id, b"").key
    await stage.store.names.point(f"request:{key}", stage.game.game_id)  # as if it had joined the game
    return Ask(new_message(rpc, name="Cleo", request_id=request_id))


@case("GAME_NOT_FOUND", *WITH_GAME_ID)
async def _unknown_game(stage: Stage, rpc: str) -> Ask:
    request = request_of(rpc, stage)
    request.MergeFrom(new_message(rpc, game_id=UNKNOWN_GAME))
    return Ask(request, as_usual(rpc, stage.game))


@case("TOKEN_VOID", *WITH_GAME_ID)
async def _unknown_token(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage), bearer(STRANGER))


@case("NOT_A_PLAYER", *OF_A_SEAT)
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage))


RULESETS = {
    "OPTION_UNKNOWN": (game_rules(run_wrap=99), ["melds.run_wrap"]),
    "OPTION_VALUE_INVALID": (game_rules(geometry_jokers=9), ["tiles.jokers"]),
    "OPTIONS_CONFLICT": (
        game_rules(players_min=4, players_max=3),
        ["deal.players_min", "deal.players_max"],
    ),
    "INSUFFICIENT_TILES": (
        game_rules(players_max=6, deal_hand_size=18),
        ["deal.hand_size", "deal.players_max"],
    ),
}


def with_ruleset(reason: str) -> Preparation:
    rules, options = RULESETS[reason]
    fields = [f"ruleset.{option}" for option in options]
    of_game = [f"ruleset.melding.{option}" for option in options]

    async def prepare(_stage: Stage, rpc: str) -> Ask:
        if rpc == "StreamValidateTurns":
            turn = vs.ValidateTurnRequest(ruleset=rules.melding, has_melded=True)
            return Ask(vs.StreamValidateTurnsRequest(turn=turn), fields=[f"turn.{field}" for field in fields])
        if rpc in WITH_RECORD:
            request = new_message(rpc, record=record_pb2.GameRecord(ruleset=rules))
            return Ask(request, fields=[f"record.{field}" for field in of_game])
        if rpc in {"SuggestTurn", "CoachTurn", "HasLegalTurn"}:
            request, prefix = position_message(rpc, an.Position(ruleset=rules.melding, has_melded=True))
            return Ask(request, fields=[prefix + field for field in fields])
        if rpc not in CREATING:
            return Ask(new_message(rpc, ruleset=rules.melding), fields=fields)
        named = {"name": "Cleo"} if rpc == "JoinOrCreateGame" else {}
        return Ask(new_message(rpc, ruleset=rules, **named), fields=of_game)

    prepare.__name__ = "ruleset"
    return prepare


JUDGED_OR_ANALYZED = [*WITH_RULESET, *ANALYZING]
for _reason in RULESETS:
    case(_reason, *CREATING, *JUDGED_OR_ANALYZED)(with_ruleset(_reason))


def with_challenge_ruleset(reason: str) -> Preparation:
    rules, options = RULESETS[reason]

    async def prepare(_stage: Stage, rpc: str) -> Ask:
        request = usual_request(rpc, "", "", ruleset=rules)
        return Ask(request, fields=[f"ruleset.melding.{option}" for option in options])

    return prepare


for _reason in RULESETS:
    case(_reason, "ChallengePlayer", staging=with_tickets)(with_challenge_ruleset(_reason))


SETTINGS = {
    "OPTION_UNKNOWN": (room_settings_pb2.RoomSettings(hints=99), ["hints"]),  # type: ignore[arg-type]  # unknown
    "OPTION_VALUE_INVALID": (room_settings_pb2.RoomSettings(absent_after_timeouts=101), ["absent_after_timeouts"]),
    "OPTIONS_CONFLICT": (
        room_settings_pb2.RoomSettings(clock_flag=room_settings_pb2.CLOCK_FLAG_TIME_OUT_EACH_TURN),
        ["clock_flag", "clock_total"],
    ),
}


def with_settings(reason: str) -> Preparation:
    settings, fields = SETTINGS[reason]

    async def prepare(_stage: Stage, rpc: str) -> Ask:
        named = {"name": "Cleo"} if rpc == "JoinOrCreateGame" else {}
        return Ask(new_message(rpc, settings=settings, **named), fields=[f"settings.{field}" for field in fields])

    prepare.__name__ = "settings"
    return prepare


for _reason in SETTINGS:
    case(_reason, *CREATING)(with_settings(_reason))


@case("OPTION_UNKNOWN", "CreateGame", *(rpc for rpc in WITH_RULESET if rpc != "StreamValidateTurns"))
async def _unknown_option(_stage: Stage, rpc: str) -> Ask:
    rules: Message = ruleset_pb2.MeldingRuleset.FromString(b"\xf8\x3f\x01")  # field 1023
    if rpc == "CreateGame":
        rules = ruleset_pb2.Ruleset.FromString(rules.SerializeToString())
    return Ask(new_message(rpc, ruleset=rules), fields=["ruleset"])


def turn_message(rpc: str, turn: vs.ValidateTurnRequest) -> tuple[Message, str]:
    """Returns a request with a turn, and the path of the turn's fields."""
    match rpc:
        case "ValidateTurn":
            return turn, ""
        case "BatchValidateTurns":
            return vs.BatchValidateTurnsRequest(turns=[vs.ValidateTurnRequest(has_melded=True), turn]), "turns[1]."
        case _:
            return vs.StreamValidateTurnsRequest(turn=turn), "turn."


def position_message(rpc: str, position: an.Position) -> tuple[Message, str]:
    """Returns a request with a position, and the path of the position's fields."""
    if rpc == "BatchSuggestTurns":
        return an.BatchSuggestTurnsRequest(positions=[an.Position(has_melded=True), position]), "positions[1]."
    return new_message(rpc, position=position), "position."


TOO_LONG = meld_pb2.Meld(tiles=[tile_pb2.TILE_RED_1] * 33)
NO_SUCH_TILE = meld_pb2.Meld(tiles=as_tiles([1, 80]))
NO_SUCH_FACE = meld_pb2.Meld(declared_faces=as_tiles([80]))
TOO_MANY_FACES = meld_pb2.Meld(declared_faces=as_tiles([1] * 33))
NO_SUCH_KIND = meld_pb2.Meld(kind=3)  # type: ignore[arg-type]  # not a kind
MALFORMED_TABLES = {
    "MALFORMED_MELD": [
        ("{}[0].tiles", [TOO_LONG]),
        ("{}[1].kind", [meld_pb2.Meld(), NO_SUCH_KIND]),
        ("{}[0].declared_faces", [TOO_MANY_FACES]),
    ],
    "MALFORMED_TABLE": [("{}", [meld_pb2.Meld()] * 129)],
    "TILE_UNKNOWN": [("{}[0].tiles[1]", [NO_SUCH_TILE]), ("{}[0].declared_faces[0]", [NO_SUCH_FACE])],
}


def with_table(place: str, table: list[meld_pb2.Meld]) -> Preparation:
    async def prepare(stage: Stage, rpc: str) -> Ask:
        match rpc:
            case "ValidateMelds":
                return Ask(vs.ValidateMeldsRequest(melds=table), fields=[place.format("melds")])
            case "PlayTurn":
                request = request_of(rpc, stage)
                request.MergeFrom(ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=table))))
                return Ask(request, stage.game.as_seat(1), [place.format("play.table")])
            case "SaveDraft":
                request = request_of(rpc, stage)
                request.MergeFrom(ts.SaveDraftRequest(draft=game_pb2.Draft(table=meld_pb2.Table(melds=table))))
                return Ask(request, stage.game.as_seat(1), [place.format("draft.table")])
            case "ExplainTurn":
                return Ask(
                    an.ExplainTurnRequest(table_after=meld_pb2.Table(melds=table)), fields=[place.format("table_after")]
                )
            case "CheckPuzzle":
                request = request_of(rpc, stage)
                request.MergeFrom(new_message(rpc, table_after=meld_pb2.Table(melds=table)))
                return Ask(request, fields=[place.format("table_after")])
            case "FormatPosition":
                position = an.Position(table=meld_pb2.Table(melds=table), has_melded=True)
                return Ask(rs.FormatPositionRequest(position=position), fields=[place.format("position.table")])
            case _ if rpc in WITH_RECORD:
                move = record_pb2.RecordedMove(kind=record_pb2.MOVE_KIND_PLAY, table=meld_pb2.Table(melds=table))
                request = new_message(rpc, record=record_pb2.GameRecord(moves=[move]))
                return Ask(request, fields=[place.format("record.moves[0].table")])
            case _ if rpc in ANALYZING:
                request, prefix = position_message(rpc, an.Position(table=meld_pb2.Table(melds=table), has_melded=True))
                return Ask(request, fields=[prefix + place.format("table")])
            case _:
                request, prefix = turn_message(
                    rpc, vs.ValidateTurnRequest(table_after=meld_pb2.Table(melds=table), has_melded=True)
                )
                return Ask(request, fields=[prefix + place.format("table_after")])

    prepare.__name__ = place.format("table")
    return prepare


for _reason, _tables in MALFORMED_TABLES.items():
    for _place, _table in _tables:
        case(_reason, "ValidateMelds", "PlayTurn", "SaveDraft", *JUDGING, *WITH_POSITION)(with_table(_place, _table))
        case(_reason, "ExplainTurn", "FormatPosition", "CheckPuzzle", *WITH_RECORD)(with_table(_place, _table))


def with_position(field: str, position: an.Position) -> Preparation:
    async def prepare(_stage: Stage, rpc: str) -> Ask:
        request, prefix = position_message(rpc, position)
        return Ask(request, fields=[prefix + field])

    prepare.__name__ = field
    return prepare


GRID_MESSAGE = melding_rules(preset=ruleset_pb2.PRESET_CROSS)
PLACED = meld_pb2.Placement(tile=tile_pb2.TILE_RED_1)
BAD_TABLES = {
    "both": ("MALFORMED_TABLE", "{}", meld_pb2.Table(melds=[meld_pb2.Meld()], placements=[PLACED])),
    "placements": ("MALFORMED_TABLE", "{}", meld_pb2.Table(placements=[PLACED] * 257)),
    "tile": ("TILE_UNKNOWN", "{}[1]", meld_pb2.Table(placements=[PLACED, meld_pb2.Placement()])),
}
"""Tables of placements that no RPC takes."""


def with_placements(shows: str, table: meld_pb2.Table, place: str) -> Preparation:
    async def prepare(stage: Stage, rpc: str) -> Ask:
        if rpc == "ValidatePlacement":
            request: Message = vs.ValidatePlacementRequest(table_after=table, has_melded=True)
            return Ask(request, fields=[place.format("table_after")])
        field = "play" if rpc == "PlayTurn" else "draft"
        made = ts.PlayTiles(table=table) if rpc == "PlayTurn" else game_pb2.Draft(table=table)
        request = request_of(rpc, stage)
        request.MergeFrom(new_message(rpc, **{field: made}))
        return Ask(request, stage.game.as_seat(1), [place.format(f"{field}.table")])

    prepare.__name__ = shows
    return prepare


for _shows, (_reason, _place, _bad_table) in BAD_TABLES.items():
    case(_reason, "PlayTurn", "SaveDraft", "ValidatePlacement")(with_placements(_shows, _bad_table, _place))


@case("MALFORMED_TABLE", "ValidatePlacement")
async def _melds_on_a_grid(_stage: Stage, _rpc: str) -> Ask:
    table = meld_pb2.Table(melds=[meld_pb2.Meld()])
    return Ask(vs.ValidatePlacementRequest(table_after=table, has_melded=True), fields=["table_after"])


@case("MALFORMED_TABLE", "ValidatePlacement")
async def _no_grid_of_melds(_stage: Stage, _rpc: str) -> Ask:
    table = meld_pb2.Table(placements=[PLACED])
    return Ask(vs.ValidatePlacementRequest(table_before=table, has_melded=True), fields=["table_before"])


@case("MALFORMED_TABLE", *JUDGING)
async def _placements_among_melds(_stage: Stage, rpc: str) -> Ask:
    table = meld_pb2.Table(placements=[PLACED])
    request, prefix = turn_message(rpc, vs.ValidateTurnRequest(table_after=table, has_melded=True))
    return Ask(request, fields=[f"{prefix}table_after"])


@case("FIELD_INVALID", *JUDGING)
async def _rules_of_a_grid(_stage: Stage, rpc: str) -> Ask:
    request, prefix = turn_message(rpc, vs.ValidateTurnRequest(ruleset=GRID_MESSAGE, has_melded=True))
    return Ask(request, fields=[f"{prefix}ruleset"])


@case("FIELD_INVALID", "ValidatePlacement")
async def _rules_of_melds(_stage: Stage, _rpc: str) -> Ask:
    request = vs.ValidatePlacementRequest(ruleset=melding_rules(run_wrap=ruleset_pb2.RUN_WRAP_OFF), has_melded=True)
    return Ask(request, fields=["ruleset"])


@case("FIELD_INVALID", "ValidatePlacement")
async def _not_said_whether_melded(_stage: Stage, _rpc: str) -> Ask:
    return Ask(vs.ValidatePlacementRequest(), fields=["has_melded"])


@case("TILE_UNKNOWN", "ValidatePlacement")
async def _placed_from_no_rack(_stage: Stage, _rpc: str) -> Ask:
    return Ask(vs.ValidatePlacementRequest(rack=as_tiles([80]), has_melded=True), fields=["rack[0]"])


@case("POSITION_IMPOSSIBLE", "ValidatePlacement")
async def _a_rack_too_full(_stage: Stage, _rpc: str) -> Ask:
    return Ask(vs.ValidatePlacementRequest(rack=as_tiles([1, 1, 1]), has_melded=True), fields=["rack"])


@case("TABLE_LAYOUT_MISMATCH", "PlayTurn", "SaveDraft")
async def _a_grid_among_melds(stage: Stage, rpc: str) -> Ask:
    table = meld_pb2.Table(placements=[PLACED])
    game = await put(stage, a_game(Playing(a_round(rack=(Tile(1),)))))
    made = {"play": ts.PlayTiles(table=table)} if rpc == "PlayTurn" else {"draft": game_pb2.Draft(table=table)}
    return Ask(new_message(rpc, game_id=game.game_id, etag=game.etag, **made), game.as_seat(1))


BAD_POSITIONS = [
    ("MALFORMED_TABLE", "table", an.Position(table=meld_pb2.Table(placements=[PLACED]), has_melded=True)),
    (
        "MALFORMED_TABLE",
        "table",
        an.Position(ruleset=GRID_MESSAGE, table=meld_pb2.Table(placements=[PLACED]), has_melded=True),
    ),
    (
        "MALFORMED_TABLE",
        "table[0]",
        an.Position(table=meld_pb2.Table(melds=table_of([MeldText(("R1", "R2", "R4"))])), has_melded=True),
    ),
    ("TILE_UNKNOWN", "rack[1]", an.Position(rack=as_tiles([1, 80]), has_melded=True)),
    ("POSITION_IMPOSSIBLE", "rack", an.Position(rack=as_tiles([1, 1, 1]), has_melded=True)),
    ("POSITION_IMPOSSIBLE", "river", an.Position(river=as_tiles([1]), has_melded=True)),
    ("FIELD_INVALID", "has_melded", an.Position(rack=as_tiles([1]))),
]
for _reason, _field, _position in BAD_POSITIONS:
    case(_reason, *WITH_POSITION)(with_position(_field, _position))


START = gs.StartPosition(
    seats=[gs.StartSeat(seat=1, rack=as_tiles([1])), gs.StartSeat(seat=2, rack=as_tiles([2]))], turn_seat=1
)
TOO_LONG_TABLE = meld_pb2.Table(melds=[TOO_LONG])
BAD_STARTS = [
    ("POSITION_IMPOSSIBLE", ["turn_seat"], gs.StartPosition(turn_seat=3)),
    ("POSITION_IMPOSSIBLE", ["pool"], gs.StartPosition(pool=as_tiles([1]))),
    ("FIELD_INVALID", ["seats[2].rack"], gs.StartPosition(seats=[gs.StartSeat(seat=3)])),
    ("TILE_UNKNOWN", ["pool[0]"], gs.StartPosition(pool=as_tiles([80]))),
    (
        "MALFORMED_TABLE",
        ["table"],
        gs.StartPosition(
            table=meld_pb2.Table(placements=[PLACED]),
            seats=[gs.StartSeat(seat=3, rack=as_tiles([3]), has_melded=True)],
        ),
    ),
    ("MALFORMED_MELD", ["table[0].tiles"], gs.StartPosition(table=TOO_LONG_TABLE)),
]


def with_start(fields: Sequence[str], change: gs.StartPosition) -> Preparation:
    async def prepare(_stage: Stage, _rpc: str) -> Ask:
        request = gs.CreateGameRequest(position=START)
        request.position.MergeFrom(change)
        return Ask(request, fields=[f"position.{field}" for field in fields])

    prepare.__name__ = fields[0]
    return prepare


for _reason, _fields, _start in BAD_STARTS:
    case(_reason, "CreateGame")(with_start(_fields, _start))


@case("TILE_UNKNOWN", "ArrangeTiles")
async def _no_tile(_stage: Stage, _rpc: str) -> Ask:
    return Ask(an.ArrangeTilesRequest(tiles=as_tiles([80])), fields=["tiles[0]"])


@case("POSITION_IMPOSSIBLE", "ArrangeTiles")
async def _too_many_of_a_tile(_stage: Stage, _rpc: str) -> Ask:
    return Ask(an.ArrangeTilesRequest(tiles=as_tiles([1, 1, 1])), fields=["tiles"])


@case("POSITION_IMPOSSIBLE", "ExplainTurn")
async def _lost_tile(_stage: Stage, _rpc: str) -> Ask:
    before = table_of([MeldText(("R1", "R2", "R3"))])
    return Ask(an.ExplainTurnRequest(table_before=meld_pb2.Table(melds=before)), fields=["table_after"])


@case("RECORD_INVALID", *WITH_RECORD)
async def _no_record(_stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, text="e4 e5"), fields=["text"])


@case("RECORD_INVALID", "ReviewGame")
async def _illegal_record(_stage: Stage, _rpc: str) -> Ask:
    return Ask(rs.ReviewGameRequest(record=record_pb2.GameRecord()), fields=["record"])


def game_to_review(rpc: str, game_id: str) -> Message:
    """Returns a request for the record of a game."""
    return new_message(rpc, game_id=game_id)


@case("FIELD_INVALID", "ReviewGame")
async def _no_game_id_to_review(_stage: Stage, rpc: str) -> Ask:
    return Ask(game_to_review(rpc, "no id"), fields=["game_id"])


@case("FIELD_INVALID", "ExportGame")
async def _no_form(stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, game_id=stage.game.game_id, form=9), fields=["form"])


@case("AUTHORIZATION_MALFORMED", "ReviewGame")
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(game_to_review(rpc, stage.game.game_id), (("authorization", "Basic QWRhOnBhc3N3b3Jk"),))


@case("STORE_UNAVAILABLE", "ReviewGame", staging=store_away)
@case("STORED_FORMAT_UNKNOWN", "ReviewGame", staging=newer_format)
@case("INTERNAL_ERROR", "ReviewGame", staging=faulty)
@case("GAME_NOT_OVER", "ReviewGame", "ExportGame")
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(game_to_review(rpc, stage.game.game_id))


@case("GAME_NOT_FOUND", "ReviewGame")
async def _unknown_game_to_review(_stage: Stage, rpc: str) -> Ask:
    return Ask(game_to_review(rpc, UNKNOWN_GAME))


@case("TOKEN_VOID", "ReviewGame")
async def _unknown_token_to_review(stage: Stage, rpc: str) -> Ask:
    return Ask(game_to_review(rpc, stage.game.game_id), bearer(STRANGER))


@case("RECORD_HIDDEN", "ReviewGame", "ExportGame")
async def _(stage: Stage, rpc: str) -> Ask:
    rules = room(SABRA, racks_shown=RacksShown.HIDDEN)
    game = await put(stage, a_game(Finished(a_round(), winners=(1,)), rules))
    return Ask(game_to_review(rpc, game.game_id))


@case("HISTORY_UNAVAILABLE", "ReviewGame", "ExportGame", staging=forgetful)
async def _(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game()
    await stage.client.turns.ResignGame(ts.ResignGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
    return Ask(game_to_review(rpc, game.game_id))


@case("HISTORY_UNAVAILABLE", "GetGame")
async def _no_such_revision(stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, game_id=stage.game.game_id, revision=99))


@case("ANALYSIS_BUSY", "CheckPuzzle", *ANALYZING, staging=analysis_busy)
@case("ANALYSIS_UNAVAILABLE", "CheckPuzzle", *ANALYZING, staging=workers_die)
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage))


def hint(rpc: str, game_id: str) -> Message:
    """Returns a request about a seat's own position."""
    return new_message(rpc, game_id=game_id)


@case("FIELD_INVALID", "SuggestTurn", "CoachTurn")
async def _no_game_id(stage: Stage, rpc: str) -> Ask:
    return Ask(hint(rpc, "no id"), stage.game.as_seat(1), ["game_id"])


@case("AUTHORIZATION_MALFORMED", "SuggestTurn", "CoachTurn")
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(hint(rpc, stage.game.game_id), (("authorization", "Basic QWRhOnBhc3N3b3Jk"),))


@case("STORE_UNAVAILABLE", "SuggestTurn", "CoachTurn", staging=store_away)
@case("STORED_FORMAT_UNKNOWN", "SuggestTurn", "CoachTurn", staging=newer_format)
@case("INTERNAL_ERROR", "SuggestTurn", "CoachTurn", staging=faulty)
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(hint(rpc, stage.game.game_id), stage.game.as_seat(1))


@case("NOT_A_PLAYER", "SuggestTurn", "CoachTurn")
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(hint(rpc, stage.game.game_id))


@case("GAME_NOT_FOUND", "SuggestTurn", "CoachTurn")
async def _unknown_game_to_analyze(stage: Stage, rpc: str) -> Ask:
    return Ask(hint(rpc, UNKNOWN_GAME), stage.game.as_seat(1))


@case("TOKEN_VOID", "SuggestTurn", "CoachTurn")
async def _unknown_token_to_analyze(stage: Stage, rpc: str) -> Ask:
    return Ask(hint(rpc, stage.game.game_id), bearer(STRANGER))


@case("GAME_NOT_STARTED", "SuggestTurn", "CoachTurn")
async def _(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=2, start=False)
    return Ask(hint(rpc, game.game_id), game.as_seat(1))


async def hinting(stage: Stage, rpc: str, game: Game, seat: int = 1) -> Ask:
    at_hand = await put(stage, game)
    return Ask(hint(rpc, at_hand.game_id), at_hand.as_seat(seat))


@case("ROUND_OVER", "SuggestTurn", "CoachTurn")
async def _(stage: Stage, rpc: str) -> Ask:
    return await hinting(stage, rpc, a_game(RoundOver(a_round()), TWO_ROUNDS))


@case("GAME_OVER", "SuggestTurn", "CoachTurn")
async def _(stage: Stage, rpc: str) -> Ask:
    return await hinting(stage, rpc, a_game(Finished(a_round(), winners=(1,))))


@case("PLAYER_RESIGNED", "SuggestTurn", "CoachTurn")
async def _(stage: Stage, rpc: str) -> Ask:
    return await hinting(stage, rpc, a_game(Playing(a_round()), resigned=frozenset({2})), seat=2)


@case("HINT_NOT_ALLOWED", "SuggestTurn", "CoachTurn")
async def _(stage: Stage, rpc: str) -> Ask:
    return await hinting(stage, rpc, a_game(Playing(a_round()), room(SABRA, hints=Hints.PLAY_EXISTS)))


@case("TILE_UNKNOWN", "PlayTurn")
async def _laid(stage: Stage, rpc: str) -> Ask:
    request = request_of(rpc, stage)
    request.MergeFrom(ts.PlayTurnRequest(lay_on_river=ts.LayOnRiver()))
    return Ask(request, stage.game.as_seat(1), ["lay_on_river.tile"])


RIVER_MESSAGE = melding_rules(turn_draw=ruleset_pb2.TURN_DRAW_TWO_RIVER)


@case("TILE_UNKNOWN", *JUDGING)
async def _river(_stage: Stage, rpc: str) -> Ask:
    turn = vs.ValidateTurnRequest(ruleset=RIVER_MESSAGE, river=as_tiles([1, 80]), has_melded=True)
    request, prefix = turn_message(rpc, turn)
    return Ask(request, fields=[f"{prefix}river[1]"])


@case("TILE_UNKNOWN", *JUDGING)
async def _drawn(_stage: Stage, rpc: str) -> Ask:
    request, prefix = turn_message(rpc, vs.ValidateTurnRequest(tile_drawn=as_tiles([80])[0], has_melded=True))
    return Ask(request, fields=[f"{prefix}tile_drawn"])


@case("FIELD_INVALID", *JUDGING)
async def _long_river(_stage: Stage, rpc: str) -> Ask:
    turn = vs.ValidateTurnRequest(ruleset=RIVER_MESSAGE, river=as_tiles([1] * 129), has_melded=True)
    request, prefix = turn_message(rpc, turn)
    return Ask(request, fields=[f"{prefix}river"])


@case("FIELD_INVALID", "ClaimError")
async def _no_revision(stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, game_id=stage.game.game_id), stage.game.as_seat(1), ["play_revision"])


@case("MALFORMED_TABLE", *JUDGING)
async def _table_before(_stage: Stage, rpc: str) -> Ask:
    no_meld = table_of([MeldText(("R1", "R2", "R4"))])
    request, prefix = turn_message(
        rpc, vs.ValidateTurnRequest(table_before=meld_pb2.Table(melds=no_meld), has_melded=True)
    )
    return Ask(request, fields=[f"{prefix}table_before[0]"])


@case("TILE_UNKNOWN", "ScoreRound", *JUDGING)
async def _rack(_stage: Stage, rpc: str) -> Ask:
    unknown = as_tiles([80])
    if rpc == "ScoreRound":
        racks = [vs.RackToScore(seat=1), vs.RackToScore(seat=2, rack=unknown)]
        return Ask(vs.ScoreRoundRequest(racks=racks), fields=["racks[1].rack[0]"])
    turn = vs.ValidateTurnRequest(rack=unknown, has_melded=True)
    request, prefix = turn_message(rpc, turn)
    return Ask(request, fields=[f"{prefix}rack[0]"])


@case("POSITION_IMPOSSIBLE", "ScoreRound", *JUDGING)
async def _a_face_too_often(_stage: Stage, rpc: str) -> Ask:
    if rpc == "ScoreRound":
        racks = [vs.RackToScore(seat=seat, rack=tiles_of(("R1", "R1"))) for seat in (1, 2)]
        return Ask(vs.ScoreRoundRequest(racks=racks), fields=["racks"])
    table = table_of([MeldText(("R1", "B1", "K1"))])
    request, prefix = turn_message(
        rpc,
        vs.ValidateTurnRequest(table_before=meld_pb2.Table(melds=table), rack=tiles_of(("R1", "R1")), has_melded=True),
    )
    return Ask(request, fields=[f"{prefix}rack"])


@case("POSITION_IMPOSSIBLE", *JUDGING)
async def _a_color_of_another_game(_stage: Stage, rpc: str) -> Ask:
    request, prefix = turn_message(rpc, vs.ValidateTurnRequest(rack=[tile_pb2.TILE_GREEN_1], has_melded=True))
    return Ask(request, fields=[f"{prefix}rack"])


@case("POSITION_IMPOSSIBLE", *JUDGING)
async def _too_often_with_the_river(_stage: Stage, rpc: str) -> Ask:
    turn = vs.ValidateTurnRequest(ruleset=RIVER_MESSAGE, river=as_tiles([1, 1]), rack=as_tiles([1]), has_melded=True)
    request, prefix = turn_message(rpc, turn)
    return Ask(request, fields=[f"{prefix}rack"])


@case("POSITION_IMPOSSIBLE", *JUDGING)
async def _no_river(_stage: Stage, rpc: str) -> Ask:
    request, prefix = turn_message(rpc, vs.ValidateTurnRequest(river=as_tiles([1]), has_melded=True))
    return Ask(request, fields=[f"{prefix}river"])


@case("POSITION_IMPOSSIBLE", *JUDGING)
async def _drawn_and_gone(_stage: Stage, rpc: str) -> Ask:
    turn = vs.ValidateTurnRequest(rack=as_tiles([1, 2]), tile_drawn=tile_pb2.TILE_RED_3, has_melded=True)
    request, prefix = turn_message(rpc, turn)
    return Ask(request, fields=[f"{prefix}tile_drawn"])


@case("FIELD_INVALID", *JUDGING)
async def _melded_or_not(_stage: Stage, rpc: str) -> Ask:
    request, prefix = turn_message(rpc, vs.ValidateTurnRequest(rack=as_tiles([1])))
    return Ask(request, fields=[f"{prefix}has_melded"])


@case("POSITION_IMPOSSIBLE", "ScoreRound")
async def _three_in_pairs(_stage: Stage, _rpc: str) -> Ask:
    rules = melding_rules(teams=ruleset_pb2.TEAMS_PAIRS, players_min=4)
    racks = [vs.RackToScore(seat=seat, rack=as_tiles([seat])) for seat in (1, 2, 3)]
    return Ask(vs.ScoreRoundRequest(ruleset=rules, racks=racks), fields=["racks"])


@case("FIELD_INVALID", "ScoreRound")
async def _seven_players(_stage: Stage, _rpc: str) -> Ask:
    racks = [vs.RackToScore(seat=seat, rack=as_tiles([seat])) for seat in range(1, 8)]
    return Ask(vs.ScoreRoundRequest(racks=racks), fields=["racks"])


@case("POSITION_IMPOSSIBLE", "ScoreRound")
async def _two_empty_racks(_stage: Stage, _rpc: str) -> Ask:
    racks = [vs.RackToScore(seat=1), vs.RackToScore(seat=2)]
    return Ask(vs.ScoreRoundRequest(racks=racks), fields=["racks[1].rack"])


@case("DUPLICATE_REQUEST", "CreateGame")
async def _(stage: Stage, _rpc: str) -> Ask:
    changed = game_rules(players_max=3)
    return Ask(gs.CreateGameRequest(ruleset=changed, request_id=stage.creation.request_id))


@case("DUPLICATE_REQUEST", "JoinOrCreateGame")
async def _(stage: Stage, rpc: str) -> Ask:
    request = gs.JoinOrCreateGameRequest(name="Ada", request_id=new_id())
    await stage.client.games.JoinOrCreateGame(request)
    return Ask(new_message(rpc, name="Ben", request_id=request.request_id))


@case("DUPLICATE_REQUEST", "JoinGame")
async def _(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=0, start=False)
    request = gs.JoinGameRequest(game_id=game.game_id, name="Ada", request_id=new_id())
    await stage.client.games.JoinGame(request)
    return Ask(new_message(rpc, game_id=game.game_id, name="Ben", request_id=request.request_id))


@case("DUPLICATE_REQUEST", "ReissueSeatToken")
async def _used_for_another_seat(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game()
    used = gs.ReissueSeatTokenRequest(game_id=game.game_id, seat=1, request_id=new_id())
    await stage.client.games.ReissueSeatToken(used)
    return Ask(new_message(rpc, game_id=game.game_id, seat=2, request_id=used.request_id))


@case("DUPLICATE_REQUEST", *(rpc for rpc in OF_A_SEAT if rpc in MUTATING))
async def _used_for_another_rpc(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=3)
    used = new_id()
    if rpc == "ResignGame":
        seat = (await game.see()).turn.seat
        turn = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag, request_id=used, draw=ts.DrawTile())
        await stage.client.turns.PlayTurn(turn, metadata=game.as_seat(seat))
    else:
        seat = 1
        resigning = ts.ResignGameRequest(game_id=game.game_id, request_id=used)
        await stage.client.turns.ResignGame(resigning, metadata=game.as_seat(seat))
    request = request_of(rpc, stage)
    request.MergeFrom(new_message(rpc, game_id=game.game_id, request_id=used))
    return Ask(request, game.as_seat(seat))


@case("BOTS_NOT_ALLOWED", "JoinGame", "JoinOrCreateGame", "AddBot")
async def _(stage: Stage, rpc: str) -> Ask:
    of_people = room_settings_pb2.RoomSettings(bots=room_settings_pb2.BOTS_OFF)
    if rpc == "JoinOrCreateGame":
        return Ask(new_message(rpc, name="Deep Tile", is_program=True, settings=of_people))
    game = await stage.client.new_game(players=1, start=False, settings=of_people)
    as_program = {"is_program": True} if rpc == "JoinGame" else {}
    return Ask(usual_request(rpc, game.game_id, "", **as_program), as_usual(rpc, game))


@case("PLAYER_ALREADY_JOINED", "JoinGame")
async def _name_taken(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=1, start=False)
    return Ask(new_message(rpc, game_id=game.game_id, name="player 1"))


@case("PLAYER_ALREADY_JOINED", "JoinGame")
async def _name_like_one_that_is_taken(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=1, start=False)
    return Ask(new_message(rpc, game_id=game.game_id, name="Pl\u0430yer l"))  # a Cyrillic a, an l in place of 1


@case("PLAYER_ALREADY_JOINED", "JoinGame")
async def _with_a_seats_token(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=1, start=False)
    return Ask(new_message(rpc, game_id=game.game_id, name="Ben"), game.as_seat(1))


@case("PLAYER_ALREADY_JOINED", "AddBot")
async def _name_taken_by_a_player(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=1, start=False)
    named = new_message(rpc, game_id=game.game_id, level=game_pb2.BOT_LEVEL_HARD, name="player 1")
    return Ask(named, game.as_seat(1))


@case("FIELD_INVALID", *(rpc for rpc in USUAL if "seat" in USUAL[rpc] and rpc in ON_GAMES))
async def _no_seat(stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, game_id=stage.game.game_id), stage.game.as_seat(1), ["seat"])


@case("FIELD_INVALID", "AddBot")
async def _seat_0(stage: Stage, rpc: str) -> Ask:
    request = request_of(rpc, stage)
    request.MergeFrom(new_message(rpc, seat=0))
    return Ask(request, stage.game.as_seat(1), ["seat"])


@case("FIELD_INVALID", "RenewSeatToken", "ReissueSeatToken")
async def _guessable_id(stage: Stage, rpc: str) -> Ask:
    request = request_of(rpc, stage)
    request.MergeFrom(new_message(rpc, request_id="x" * 21))
    return Ask(request, stage.game.as_seat(1), ["request_id"])


@case("NOT_A_PLAYER", "LeaveGame", "SetReady", "ResignGame", "StartNextRound", "RequestRedeal", *IN_A_TURN)
async def _with_the_host_token(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage), stage.game.as_host())


ANYONE = room_settings_pb2.RoomSettings(open_seat=room_settings_pb2.OPEN_SEAT_ANYONE)


async def to_take_over(rpc: str, game: GameAtHand, seat: int) -> Message:
    """Returns a request to take over a seat of a started game, after seat 2 has resigned."""
    await game.client.turns.ResignGame(ts.ResignGameRequest(game_id=game.game_id), metadata=game.as_seat(2))
    return usual_request(rpc, game.game_id, "", seat=seat)


@case("NOT_THE_HOST", *of_the_lobby("NOT_THE_HOST"))
async def _(stage: Stage, rpc: str) -> Ask:
    if rpc == "AddBot":
        started = await stage.client.new_game(players=3)
        return Ask(await to_take_over(rpc, started, 2), started.as_seat(3))
    game = await stage.client.new_game(players=2, start=False)
    return Ask(on_game(rpc, stage, game), game.as_seat(2))


@case("PLAYER_NOT_IN_GAME", *of_the_lobby("PLAYER_NOT_IN_GAME"))
async def _(stage: Stage, rpc: str) -> Ask:
    if rpc in {"AddBot", "JoinGame"}:
        started = await stage.client.new_game(players=3, settings=ANYONE)
        return Ask(await to_take_over(rpc, started, 4), as_usual(rpc, started))
    game = await stage.client.new_game(players=1, start=False)
    return Ask(on_game(rpc, stage, game), game.as_seat(1))


@case("SEAT_TAKEN", "JoinGame", "AddBot")
async def _(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=1, start=False)
    request = on_game(rpc, stage, game)
    request.MergeFrom(new_message(rpc, seat=1))
    return Ask(request, as_usual(rpc, game))


@case("PLAYER_ALREADY_JOINED", "JoinGame")
async def _with_the_token_of_a_seated_host(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=1, start=False)
    return Ask(new_message(rpc, game_id=game.game_id, name="Ben"), game.as_host())


@case("PLAYERS_NOT_READY", "StartGame")
async def _(stage: Stage, rpc: str) -> Ask:
    rules = options(start_by=room_settings_pb2.START_BY_ALL_READY)
    game = await stage.client.new_game(players=2, start=False, ruleset=rules)
    return Ask(on_game(rpc, stage, game), game.as_seat(1))


@case("GAME_NOT_ABORTABLE", "AbortGame")
async def _(stage: Stage, rpc: str) -> Ask:
    result = RoundResult(1, RoundEnd.WENT_OUT, (1,), ())
    game = await put(stage, replace(a_game(RoundOver(a_round()), TWO_ROUNDS), results=(result,)))
    return Ask(on_game(rpc, stage, game), game.as_host())


@case("GAME_NOT_OVER", *of_the_lobby("GAME_NOT_OVER"))
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage), stage.game.as_seat(1))


@case("SPECTATORS_NOT_ALLOWED", "GetGame", "ListChanges", "WatchGame", "ExportGame", "ReviewGame")
async def _(stage: Stage, rpc: str) -> Ask:
    game = await put(stage, a_game(Playing(a_round()), room(SABRA, spectators=Spectators.OFF)))
    return Ask(game_to_review(rpc, game.game_id) if rpc == "ReviewGame" else on_game(rpc, stage, game))


@case("GAME_FULL", "JoinGame", "AddBot")
async def _(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=4, start=False)
    request = request_of(rpc, stage)
    request.MergeFrom(new_message(rpc, game_id=game.game_id, name="a fifth"))
    return Ask(request, as_usual(rpc, game))


@case("TOO_FEW_PLAYERS", "StartGame")
async def _(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=1, start=False)
    return Ask(new_message(rpc, game_id=game.game_id), game.as_seat(1))


@case("GAME_OVER", *of_the_lobby("GAME_OVER"))
async def _aborted(stage: Stage, rpc: str) -> Ask:
    game = await put(stage, a_game(Aborted(a_round())))
    return Ask(on_game(rpc, stage, game), as_usual(rpc, game))


@case("TOO_MANY_CHANGES", *of_the_lobby("TOO_MANY_CHANGES"))
async def _(stage: Stage, rpc: str) -> Ask:
    lobby = a_game(Lobby())
    game = await put_game(stage.client, stage.store, lobby, stage.clock(), revision=LOBBY_CHANGES_MAX)
    return Ask(on_game(rpc, stage, game), as_usual(rpc, game))


@case("ROUND_IN_PROGRESS", "AddBot", "JoinGame")
async def _in_a_later_round(stage: Stage, rpc: str) -> Ask:
    started = a_game(Playing(a_round()), room(SABRA, open_seat=OpenSeat.ANYONE))
    players = (replace(started.players[0], is_host=True), started.players[1], Player(3, "Cleo", resigned=True))
    game = await put(stage, replace(started, players=players))
    return Ask(usual_request(rpc, game.game_id, "", seat=3), as_usual(rpc, game))


@case("GAME_ALREADY_STARTED", *of_the_lobby("GAME_ALREADY_STARTED"))
@case("ROUND_IN_PROGRESS", "StartNextRound")
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage), as_usual(rpc, stage.game))


@case("GAME_NOT_STARTED", "ResignGame", "StartNextRound", "RequestRedeal", "ReturnToSeat", *IN_A_TURN)
async def _(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=2, start=False)
    return Ask(on_game(rpc, stage, game), game.as_seat(1))


@case("GAME_OVER", "ResignGame", "StartNextRound", "RequestRedeal", "ReturnToSeat", *IN_A_TURN)
async def _(stage: Stage, rpc: str) -> Ask:
    game = await put(stage, a_game(Finished(a_round(), winners=(1,))))
    return Ask(on_game(rpc, stage, game), game.as_seat(1))


@case("ROUND_OVER", "RequestRedeal", *IN_A_TURN)
async def _(stage: Stage, rpc: str) -> Ask:
    game = await put(stage, a_game(RoundOver(a_round()), TWO_ROUNDS))
    return Ask(on_game(rpc, stage, game), game.as_seat(1))


@case("PLAYER_NOT_ABSENT", "ReturnToSeat")
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage), stage.game.as_seat(1))


@case("PLAYER_RESIGNED", "ResignGame", "RequestRedeal", "ReturnToSeat", "AbortGame", *IN_A_TURN)
async def _while_others_play(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game(players=3)
    await stage.client.turns.ResignGame(ts.ResignGameRequest(game_id=game.game_id), metadata=game.as_seat(2))
    await game.see()
    return Ask(on_game(rpc, stage, game), game.as_seat(2))


@case("PLAYER_RESIGNED", "ResignGame", "StartNextRound")
async def _between_rounds(stage: Stage, rpc: str) -> Ask:
    game = await put(stage, a_game(RoundOver(a_round()), TWO_ROUNDS, resigned=frozenset({2})))
    return Ask(on_game(rpc, stage, game), game.as_seat(2))


@case("STALE_STATE", "ClaimError", staging=contended)
async def _overtaken(stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, game_id=stage.game.game_id, play_revision=1), stage.game.as_seat(2))


@case("STALE_STATE", "ForgetSeat", staging=contended)
async def _always_changed(stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, game_id=stage.game.game_id), stage.game.as_seat(2))


@case("STALE_STATE", *ON_A_REVISION)
async def _too_old(stage: Stage, rpc: str) -> Ask:
    return Ask(on_game(rpc, stage, stage.game, f"3-{NO_LINEAGE}"), stage.game.as_seat(1))


@case("STALE_STATE", *ON_A_REVISION)
async def _yet_to_come(stage: Stage, rpc: str) -> Ask:
    return Ask(on_game(rpc, stage, stage.game, f"{2**32 - 1}-{NO_LINEAGE}"), stage.game.as_seat(1))


@case("STALE_STATE", *ON_A_REVISION)
async def _of_another_history(stage: Stage, rpc: str) -> Ask:
    return Ask(on_game(rpc, stage, stage.game, f"4-{NO_LINEAGE}"), stage.game.as_seat(1))


@case("HISTORY_UNAVAILABLE", "WatchGame")
async def _of_another_history_to_watch(stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, game_id=stage.game.game_id, etag=f"3-{NO_LINEAGE}"))


@case("HISTORY_UNAVAILABLE", "WatchGame")
async def _not_yet(stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, game_id=stage.game.game_id, etag=f"5-{NO_LINEAGE}"))


@case("HISTORY_UNAVAILABLE", "WatchGame", staging=forgetful)
async def _no_longer(stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, game_id=stage.game.game_id, etag=f"2-{NO_LINEAGE}"))


@case("HISTORY_UNAVAILABLE", "ListChanges", staging=forgetful)
async def _from_before(stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, game_id=stage.game.game_id, after_revision=1))


@case("HISTORY_UNAVAILABLE", "ListChanges")
async def _from_later(stage: Stage, rpc: str) -> Ask:
    return Ask(new_message(rpc, game_id=stage.game.game_id, after_revision=5))


@case("NOT_YOUR_TURN", *ON_A_REVISION)
async def _(stage: Stage, rpc: str) -> Ask:
    game = await put(stage, a_game(Playing(a_round())))
    return Ask(on_game(rpc, stage, game), game.as_seat(2))


@case("TURN_TIMED_OUT", *ON_A_REVISION)
async def _(stage: Stage, rpc: str) -> Ask:
    game = await stage.client.new_game()
    seen = await game.see()
    stage.clock.advance(seen.settings.turn_time_limit.seconds + 0.001)
    return Ask(on_game(rpc, stage, game), game.as_seat(seen.turn.seat))


@case("POOL_EMPTY", "PlayTurn")
async def _(stage: Stage, rpc: str) -> Ask:
    game = await put(stage, a_game(Playing(replace(a_round(), pool=()))))
    return Ask(on_game(rpc, stage, game), game.as_seat(1))


@case("PASS_NOT_ALLOWED_POOL_NOT_EMPTY", "PlayTurn")
async def _(stage: Stage, _rpc: str) -> Ask:
    game = await put(stage, a_game(Playing(a_round())))
    turn = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag)
    turn.pass_turn.SetInParent()
    return Ask(turn, game.as_seat(1))


MUST_PLAY = replace(
    SABRA, turn_voluntary_draw=TurnVoluntaryDraw.ONLY_IF_NO_PLAY, pool_empty_pass=PoolEmptyPass.ONLY_IF_NO_PLAY
)
A_RUN = (Tile(1), Tile(2), Tile(3))


@case("DRAW_NOT_ALLOWED_PLAY_EXISTS", "PlayTurn")
async def _(stage: Stage, rpc: str) -> Ask:
    game = await put(stage, a_game(Playing(a_round(rack=A_RUN)), MUST_PLAY))
    return Ask(on_game(rpc, stage, game), game.as_seat(1))


@case("PASS_NOT_ALLOWED_PLAY_EXISTS", "PlayTurn")
async def _(stage: Stage, _rpc: str) -> Ask:
    game = await put(stage, a_game(Playing(replace(a_round(rack=A_RUN), pool=())), MUST_PLAY))
    turn = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag)
    turn.pass_turn.SetInParent()
    return Ask(turn, game.as_seat(1))


@case("RIVER_CHOICE_PENDING", *ON_A_REVISION)
async def _(stage: Stage, rpc: str) -> Ask:
    game = await put(stage, a_game(Playing(a_choice()), RIVER))
    return Ask(on_game(rpc, stage, game), game.as_seat(1))


async def laying(stage: Stage, round_: Round, tile: int) -> Ask:
    game = await put(stage, a_game(Playing(round_), RIVER))
    laid = ts.LayOnRiver(tile=as_tiles([tile])[0])
    return Ask(ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag, lay_on_river=laid), game.as_seat(1))


@case("RIVER_DISCARD_NOT_DRAWN", "PlayTurn")
async def _(stage: Stage, _rpc: str) -> Ask:
    return await laying(stage, a_choice(), 3)


@case("TURN_PHASE_WRONG", "PlayTurn")
async def _nothing_to_choose_from(stage: Stage, _rpc: str) -> Ask:
    return await laying(stage, a_round(rules=RIVER), 1)


@case("TURN_PHASE_WRONG", "PlayTurn")
async def _drawn_before(stage: Stage, rpc: str) -> Ask:
    game = await put(stage, a_game(Playing(a_round(rack=(Tile(1),), step=Drawn(Tile(1))))))
    return Ask(on_game(rpc, stage, game), game.as_seat(1))


async def knocking(stage: Stage, limit: int) -> Ask:
    knocks = replace(SABRA, knock_limit=limit, turn_play_after_draw=TurnPlayAfterDraw.ALLOWED)
    game = await put(stage, a_game(Playing(a_round(rack=(Tile(13),), step=Drawn(Tile(13)))), knocks))
    turn = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag)
    turn.knock.SetInParent()
    return Ask(turn, game.as_seat(1))


@case("KNOCK_TOO_MANY_POINTS", "PlayTurn")
async def _(stage: Stage, _rpc: str) -> Ask:
    return await knocking(stage, 5)


@case("KNOCK_NOT_IN_GAME", "PlayTurn")
async def _(stage: Stage, _rpc: str) -> Ask:
    return await knocking(stage, 0)


async def claiming(stage: Stage, round_: Round, seat: int = 2) -> Ask:
    game = await put(stage, a_game(Playing(round_), CLAIMS))
    return Ask(ts.ClaimErrorRequest(game_id=game.game_id, play_revision=1, agrees=True), game.as_seat(seat))


@case("NOTHING_TO_CLAIM", "ClaimError")
async def _(stage: Stage, _rpc: str) -> Ask:
    return await claiming(stage, a_round())


@case("CLAIM_OWN_PLAY", "ClaimError")
async def _(stage: Stage, _rpc: str) -> Ask:
    return await claiming(stage, a_shown_play(), seat=1)


@case("CLAIM_NOT_UNANIMOUS", "ClaimError")
async def _(stage: Stage, _rpc: str) -> Ask:
    return await claiming(stage, a_shown_play(against=2))


@case("CLAIM_ALREADY_VOTED", "ClaimError")
async def _(stage: Stage, _rpc: str) -> Ask:
    return await claiming(stage, a_shown_play(claimed=(2,)))


@case("REDEAL_NOT_ALLOWED", "RequestRedeal")
async def _(stage: Stage, rpc: str) -> Ask:
    return Ask(request_of(rpc, stage), stage.game.as_seat(1))


# Games of discards


async def a_hand(stage: Stage, rack: str = "R2 K7", discarded: tuple[int, ...] = ()) -> GameAtHand:
    """A game of Okey in which seat 1 is to move; there is no discard to take."""
    position = f"K7 / 1{{}} 2{{}} / 1{{{rack}}} 2{{R1}} / {{O9}} / 1"
    return await put(stage, discards_at(position, discarded=discarded, turn=Turn(1, None)))


def acting(member: str, game: GameAtHand, **fields: object) -> ts.PlayTurnRequest:
    """Returns a turn with an action."""
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag)
    action = getattr(request, member)
    action.SetInParent()
    action.MergeFrom(type(action)(**fields))
    return request


@case("ACTION_NOT_IN_GAME", "PlayTurn", "SaveDraft", "ClaimError", "RequestRedeal")
async def _of_another_family(stage: Stage, rpc: str) -> Ask:
    game = await a_hand(stage)
    return Ask(on_game(rpc, stage, game), game.as_seat(1))


@case("ACTION_NOT_IN_GAME", "ReviewGame")
async def _a_record_of_another_family(_stage: Stage, _rpc: str) -> Ask:
    record = record_pb2.GameRecord(ruleset=ruleset_pb2.Ruleset(discard=ruleset_pb2.DiscardRuleset()))
    return Ask(rs.ReviewGameRequest(record=record))


@case("ACTION_NOT_IN_GAME", "CoachTurn")
async def _a_game_of_another_family(stage: Stage, rpc: str) -> Ask:
    game = await a_hand(stage)
    return Ask(hint(rpc, game.game_id), game.as_seat(1))


@case("NO_DISCARD_TO_TAKE", "PlayTurn")
async def _(stage: Stage, _rpc: str) -> Ask:
    game = await a_hand(stage)
    return Ask(acting("take_discard", game), game.as_seat(1))


@case("INDICATOR_NOT_SHOWABLE", "PlayTurn")
async def _(stage: Stage, _rpc: str) -> Ask:
    game = await a_hand(stage, discarded=(1,))
    return Ask(acting("show_indicator", game), game.as_seat(1))


@case("TRUMP_NOT_TAKEABLE", "PlayTurn")
async def _(stage: Stage, _rpc: str) -> Ask:
    at_trump = discards_at("J R8 / 1{} 2{} / 1{R2 K7} 2{R1} / {O9} / 1 / . / .", AMERICAN, turn=Turn(1, None))
    game = await put(stage, at_trump)
    return Ask(acting("take_trump", game), game.as_seat(1))


@case("INDICATOR_TWIN_NOT_HELD", "PlayTurn")
async def _(stage: Stage, _rpc: str) -> Ask:
    game = await a_hand(stage, "R2 K8")
    return Ask(acting("show_indicator", game), game.as_seat(1))


BAD_DISCARD_RULESETS = {
    "OPTION_UNKNOWN": (ruleset_pb2.DiscardRuleset(preset=ruleset_pb2.PRESET_SABRA), ["preset"]),
    "OPTION_VALUE_INVALID": (
        ruleset_pb2.DiscardRuleset(scoring=ruleset_pb2.DiscardScoringOptions(start=22)),
        ["scoring.start"],
    ),
    "OPTIONS_CONFLICT": (
        ruleset_pb2.DiscardRuleset(opening=ruleset_pb2.DiscardOpeningOptions(points=30)),
        ["opening.points", "melds.melds_on_table"],
    ),
}


def with_discard_ruleset(reason: str) -> Preparation:
    rules, fields = BAD_DISCARD_RULESETS[reason]

    async def prepare(stage: Stage, rpc: str) -> Ask:
        request = request_of(rpc, stage)
        request.MergeFrom(new_message(rpc, ruleset=rules))
        return Ask(request, fields=[f"ruleset.{field}" for field in fields])

    prepare.__name__ = "discard_ruleset"
    return prepare


for _reason in BAD_DISCARD_RULESETS:
    case(_reason, "ValidateHand", "ValidateDiscardTurn")(with_discard_ruleset(_reason))

BAD_HANDS: list[tuple[str, str, str, object]] = [
    ("FIELD_INVALID", "ValidateHand", "tiles", as_tiles([1])),
    ("TILE_UNKNOWN", "ValidateHand", "indicator", 80),
    ("TILE_UNKNOWN", "ValidateHand", "discard", 53),
    ("POSITION_IMPOSSIBLE", "ValidateHand", "discard", 1),
    ("TILE_UNKNOWN", "ValidateDiscardTurn", "indicator", 53),
    ("TILE_UNKNOWN", "ValidateDiscardTurn", "owed_tile", 53),
    ("POSITION_IMPOSSIBLE", "ValidateDiscardTurn", "owed_tile", 30),
    ("FIELD_INVALID", "ValidateDiscardTurn", "tiles_laid", 1_000),
]


def with_hand_field(field: str, value: object) -> Preparation:
    async def prepare(stage: Stage, rpc: str) -> Ask:
        request = request_of(rpc, stage)
        request.ClearField(field)
        request.MergeFrom(new_message(rpc, **{field: value}))
        return Ask(request, fields=[field])

    prepare.__name__ = field
    return prepare


for _reason, _rpc, _field, _value in BAD_HANDS:
    case(_reason, _rpc)(with_hand_field(_field, _value))


@cache
def hands_by_reason() -> dict[str, HandCase | DiscardTurnCase]:
    """Returns a hand, or a turn at a table, with just one violation, for each violation of games of discards."""
    suite = load()
    found: dict[str, HandCase | DiscardTurnCase] = {}
    cases: list[HandCase | DiscardTurnCase] = [*suite.hands, *suite.discard_turns]
    for judged in cases:
        reasons = [one.reason for one in judged.expect.violations]
        is_whole = isinstance(judged, DiscardTurnCase) or judged.discard is not None
        if len(reasons) == 1 and is_whole:
            found.setdefault(reasons[0], judged)
    return found


def game_of_discards(judged: HandCase | DiscardTurnCase) -> Game:
    """Returns a game in which a player can take the turn of a case."""
    preset = "OKEY" if isinstance(judged, HandCase) else "OKEY_101"
    ruleset = rulesets.discard_ruleset(discard_ruleset_of(judged.ruleset, preset))
    rack: Sequence[str] = ()
    table: DiscardTable | None = None
    step: ToDiscard | HasLaid = ToDiscard(Tile(1))
    seat = 1
    match judged:
        case HandCase(tiles=tiles):
            rack, table = tiles, DiscardTable() if ruleset.melds_on_table else None
        case DiscardTurnCase():
            rack, seat = judged.rack, judged.seat
            openings = tuple(Opening(one.seat, one.is_pairs, one.amount) for one in judged.openings)
            table = DiscardTable(tuple(tuple(map(parse_tile, part)) for part in judged.table_before), openings)
            if judged.owed_tile:
                step = ToDiscard(parse_tile(judged.owed_tile), is_seen=True)
            elif judged.tiles_laid:
                step = HasLaid(judged.tiles_laid, is_opening=False)
    seats = tuple(sorted({1, 2, seat, *(opening.seat for opening in (table.openings if table else ()))}))
    opened = {opening.seat for opening in (table.openings if table else ())}
    own = in_order(map(parse_tile, rack))
    racks = tuple(Rack(one, own if one == seat else (Tile(5),), one in opened) for one in seats)
    round_ = DiscardRound(
        number=1,
        order=seats,
        indicator=parse_tile(judged.indicator) if judged.indicator else None,
        racks=racks,
        pool=(Tile(7), Tile(8)),
        piles=tuple(Pile(one, (Tile(9),)) for one in seats),
        turn=Turn(seat, None),
        step=step,
        discarded=seats,
        table=table,
    )
    players = tuple(Player(one, f"Player {one}", ruleset.points_at_start) for one in seats)
    return Game(ruleset, DEFAULT_SETTINGS, 1, players, Playing(round_))


async def with_hand(stage: Stage, judged: HandCase | DiscardTurnCase) -> Ask:
    """Returns the turn of a case, in a game."""
    game = await put(stage, game_of_discards(judged))
    if isinstance(judged, HandCase):
        turn = acting("finish", game, tile=tile_of(judged.discard), hand=hand_of(judged.hand))
        return Ask(turn, game.as_seat(1))
    if judged.is_foot:
        turn = acting("finish", game, tile=tile_of(judged.discard), table=hand_of(judged.table_after))
        return Ask(turn, game.as_seat(judged.seat))
    if judged.table_after:
        return Ask(acting("lay", game, table=hand_of(judged.table_after)), game.as_seat(judged.seat))
    return Ask(acting("discard", game, tile=tile_of(judged.discard)), game.as_seat(judged.seat))


def with_violation(reason: str) -> Preparation:
    async def prepare(stage: Stage, _rpc: str) -> Ask:
        if reason in hands_by_reason() and reason not in turns_by_reason():
            return await with_hand(stage, hands_by_reason()[reason])
        turn = turn_breaking(reason)
        game = await before_turn(stage, turn)
        request = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag, play=played(turn))
        return Ask(request, game.as_seat(1))

    prepare.__name__ = "violation"
    return prepare


CASES.extend(
    Case("PlayTurn", "FAILED_PRECONDITION", reason, usual, with_violation(reason), "violation") for reason in VIOLATIONS
)


async def with_a_foreign_tile(stage: Stage, tiles: Sequence[int], rules: Ruleset = SABRA) -> Ask:
    game = await put(stage, a_game(Playing(a_round(rack=(Tile(1),), rules=rules)), rules))
    draft = game_pb2.Draft(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=as_tiles(tiles))]))
    return Ask(ts.SaveDraftRequest(game_id=game.game_id, etag=game.etag, draft=draft), game.as_seat(1))


async def _unknown_tile(stage: Stage, _rpc: str) -> Ask:
    return await with_a_foreign_tile(stage, [JOKER], replace(SABRA, geometry_jokers=0))


async def _duplicated_tile(stage: Stage, _rpc: str) -> Ask:
    return await with_a_foreign_tile(stage, [1, 1])


async def _foreign_tile(stage: Stage, _rpc: str) -> Ask:
    return await with_a_foreign_tile(stage, [2])


for _reason, _drafting in (
    ("TILE_UNKNOWN", _unknown_tile),
    ("TILE_DUPLICATED", _duplicated_tile),
    ("TILE_NOT_IN_RACK", _foreign_tile),
):
    CASES.append(Case("SaveDraft", "FAILED_PRECONDITION", _reason, usual, _drafting, "violation"))


# Tests


async def refusal_of(client: Client, rpc: MethodDescriptor, ask: Ask) -> grpc.aio.AioRpcError:
    """Returns the error of an RPC."""
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await answer_to(client, rpc, ask)
    return refusal.value


async def answer_to(client: Client, rpc: MethodDescriptor, ask: Ask) -> None:
    """Waits for the first response."""
    path = f"/{rpc.containing_service.full_name}/{rpc.name}"
    if ask.request is None:
        silent: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = client.channel.stream_unary(path)
        await silent(metadata=ask.metadata)
        return
    data = ask.request if isinstance(ask.request, bytes) else ask.request.SerializeToString()
    if not rpc.server_streaming:
        unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = client.channel.unary_unary(path)
        await unary(data, metadata=ask.metadata)
    elif rpc.client_streaming:
        streams: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = client.channel.stream_stream(path)
        await streams(iter([data]), metadata=ask.metadata).read()
    else:
        stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = client.channel.unary_stream(path)
        await stream(data, metadata=ask.metadata).read()


def details(refusal: grpc.aio.AioRpcError) -> list[Message]:
    """Returns the error details beside ErrorInfo."""
    kinds: list[type[Message]] = [violation_pb2.Refusal, error_details_pb2.BadRequest, error_details_pb2.RetryInfo]
    found = []
    for packed in status_details(refusal).details:
        if packed.TypeName() != "google.rpc.ErrorInfo":
            one = next(kind() for kind in kinds if packed.Is(kind.DESCRIPTOR))
            packed.Unpack(one)
            found.append(one)
    return found


PLACES = {"SaveDraft": r"draft\.table", "PlayTurn": r"(play\.table|table|hand)(\[\d+\])?|tile"}
"""The subjects of violations."""


@each_of("case", CASES, str, by=lambda case: case.rpc)
@pytest.mark.asyncio(loop_scope="module")
async def test_an_error_is_as_documented(case: Case, stages: Stages) -> None:
    stage = await stages.at(case.staging)
    ask = await case.prepare(stage, case.rpc)
    refusal = await refusal_of(stage.client, RPCS[case.rpc], ask)
    info = error_info(refusal)
    assert (refusal.code().name, info.reason, info.domain) == (case.code, case.reason, "rummikub.v1")
    documented = documented_reasons()[case.reason]
    is_violation = documented.violation and case.code == "FAILED_PRECONDITION"
    assert documented.code == case.code or is_violation
    assert set(info.metadata) == documented.metadata | ({"violations"} if is_violation else set())
    assert all(info.metadata.values())
    status = status_details(refusal)
    assert (status.code, status.message) == (refusal.code().value[0], refusal.details())
    assert dict(refusal.trailing_metadata() or ())["x-request-id"]
    assert INSIDE not in str(refusal)
    assert not ADVICE_OF_ZERO.search(status.message), "an optional field is left unset; 0 is refused"
    told = details(refusal)[0]
    assert isinstance(told, violation_pb2.Refusal)
    assert error_reason_pb2.ErrorReason.Name(told.reason) == info.reason
    assert told.metadata == info.metadata
    is_temporary = any(isinstance(detail, error_details_pb2.RetryInfo) for detail in details(refusal))
    assert retry_ms(refusal) == (1_000 if is_temporary else None)
    match details(refusal):
        case [violation_pb2.Refusal() as refused] if is_violation:
            assert info.metadata["violations"] == "1"
            [one] = refused.violations
            assert one.reason == refused.reason
            assert re.fullmatch(PLACES[case.rpc], one.subject)
            assert one.text
            assert set(one.metadata) == documented.metadata
        case [violation_pb2.Refusal() as refused]:
            assert not refused.violations
            assert case.code not in {"INVALID_ARGUMENT", "UNAVAILABLE"} or case.reason == "MALFORMED_REQUEST"
        case [violation_pb2.Refusal(), error_details_pb2.BadRequest() as bad]:
            assert documented.names_fields
            assert list(ask.fields) == field_violations(refusal)
            assert {one.reason for one in bad.field_violations} == {case.reason}
            assert all(one.description for one in bad.field_violations)
        case [violation_pb2.Refusal(), error_details_pb2.RetryInfo()]:
            assert case.code == "UNAVAILABLE" or case.reason in RETRIED_LATER
        case others:
            pytest.fail(f"details that do not go together: {others}")


def test_every_documented_error_of_an_rpc_has_a_case() -> None:
    documented = {(rpc, *error) for rpc, errors in documented_errors().items() for error in errors}
    tested = {(case.rpc, case.code, case.reason) for case in CASES if case.reason != "INTERNAL_ERROR"}
    assert len(documented) > 150
    assert documented - tested == set()
    assert tested - documented == set()


def test_every_reason_occurs() -> None:
    names = [value.name for value in error_reason_pb2.DESCRIPTOR.enum_types_by_name["ErrorReason"].values]
    contract = set(names) - {"ERROR_REASON_UNSPECIFIED"}
    assert set(documented_reasons()) == contract
    assert contract == {case.reason for case in CASES}


RANGES = {
    range(1, 100): {"INVALID_ARGUMENT"},
    range(101, 200): {"UNAUTHENTICATED", "PERMISSION_DENIED"},
    range(201, 400): {"NOT_FOUND", "ALREADY_EXISTS", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE"},
    range(401, 500): {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "INTERNAL"},
    range(501, 1000): {"Violation"},
}
"""The codes of the reasons in each range of numbers: of the request, the caller, the state, the server, the rules."""


@each_of("name, number", error_reason_pb2.ErrorReason.items()[1:])
def test_the_number_of_a_reason_tells_whose_fault_it_is(name: str, number: int) -> None:
    reason = documented_reasons()[name]
    code = "Violation" if reason.violation and reason.code == "FAILED_PRECONDITION" else reason.code
    assert [codes for numbers, codes in RANGES.items() if number in numbers and code in codes] != []


def test_every_rpc_has_documented_errors() -> None:
    assert set(documented_errors()) == set(RPCS)
    assert [rpc for rpc, errors in documented_errors().items() if not errors] == []


@each_of("reason", VIOLATIONS)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_violation_is_an_answer_of_the_validation_service(reason: str, stages: Stages) -> None:
    stage = await stages.at(usual)
    is_of_melds = reason in turns_by_reason()
    [violation] = await violations_of(stage, turn_breaking(reason) if is_of_melds else hands_by_reason()[reason])
    assert error_reason_pb2.ErrorReason.Name(violation.reason) == reason
    assert set(violation.metadata) == documented_reasons()[reason].metadata
    assert re.fullmatch(r"(table_after|table|hand)(\[\d+\])?|tile", violation.subject)
    assert violation.text


@pytest.mark.asyncio(loop_scope="module")
async def test_an_error_lists_the_first_violations_and_counts_all(stages: Stages) -> None:
    stage = await stages.at(usual)
    game = await put(stage, a_game(Playing(a_round())))
    unlike = [tile_pb2.TILE_RED_1, tile_pb2.TILE_BLUE_5, tile_pb2.TILE_ORANGE_13, tile_pb2.TILE_JOKER] * 8
    play = ts.PlayTiles(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=unlike)] * 128))
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag, play=play)
    refusal = await refusal_of(stage.client, RPCS["PlayTurn"], Ask(request, game.as_seat(1)))
    assert error_info(refusal).reason == "TILE_DUPLICATED"
    [refused] = details(refusal)
    assert isinstance(refused, violation_pb2.Refusal)
    assert len(refused.violations) == 16
    assert int(error_info(refusal).metadata["violations"]) >= 128
    assert refusal.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert size_of(refusal) < METADATA_LIMIT


@pytest.mark.asyncio(loop_scope="module")
async def test_a_truncated_message_does_not_end_with_a_space(stages: Stages) -> None:
    """HTTP/2 does not allow one at the end of a value, and Node clients lost the message."""
    stage = await stages.at(usual)
    game = await put(stage, a_game(Playing(a_round())))
    for tile in (tile_pb2.TILE_RED_1, tile_pb2.TILE_RED_10, tile_pb2.TILE_JOKER):
        play = ts.PlayTiles(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=[tile] * 32)] * 128))
        request = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag, play=play)
        refusal = await refusal_of(stage.client, RPCS["PlayTurn"], Ask(request, game.as_seat(1)))
        message = refusal.details() or ""
        assert len(message) > 190
        assert message == message.strip()


@pytest.mark.asyncio(loop_scope="module")
async def test_an_error_names_the_first_invalid_fields(stages: Stages) -> None:
    stage = await stages.at(usual)
    numbers = [row for row in OPTIONS.values() if type(row.default) is int]
    rules = game_rules(**{row.name: 2**32 - 1 for row in numbers})
    settings, lengths = room_settings_pb2.RoomSettings(), ("turn_time_limit", "round_pause", "clock_total")
    for name in lengths:
        getattr(settings, name).seconds = 10**9
    request = gs.CreateGameRequest(ruleset=rules, settings=settings)
    refusal = await refusal_of(stage.client, RPCS["CreateGame"], Ask(request))
    named = list(field_violations(refusal))
    assert set(named) <= {
        *(".".join(("ruleset.melding", *row.path)) for row in numbers),
        *(f"settings.{name}" for name in lengths),
    }
    assert len(named) == 16
    assert size_of(refusal) < METADATA_LIMIT


def size_of(refusal: grpc.aio.AioRpcError) -> int:
    """Returns the approximate size of a status on the wire; binary metadata is sent as base64."""
    trailing = sum(len(key) + len(value) * 4 // 3 for key, value in refusal.trailing_metadata() or ())
    return trailing + len(refusal.details() or "")


@pytest.mark.asyncio(loop_scope="module")
async def test_an_error_in_a_batch_names_the_turn_and_its_ruleset(stages: Stages) -> None:
    stage = await stages.at(usual)
    turns = [
        vs.ValidateTurnRequest(has_melded=True),
        vs.ValidateTurnRequest(ruleset=melding_rules(players_min=1), has_melded=True),
    ]
    request = vs.BatchValidateTurnsRequest(turns=turns)
    refusal = await refusal_of(stage.client, RPCS["BatchValidateTurns"], Ask(request))
    assert field_violations(refusal) == ["turns[1].ruleset.deal.players_min"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_store_that_hangs_is_unavailable() -> None:
    """By the store's own clock, because Redis reads what was sent meanwhile when it resumes: by then it is too old."""
    hanging = RedisServer()
    hanging.start()
    store = redis_store(hanging.url)
    async with running_server(store, settings()) as (_, client):
        stage = await staged(client, store, FakeClock())
        hanging.pause()
        asks = {rpc: Ask(request_of(rpc, stage), as_usual(rpc, stage.game)) for rpc in ON_GAMES}
        refusals = await asyncio.gather(*(refusal_of(client, RPCS[rpc], ask) for rpc, ask in asks.items()))
        reasons = dict(zip(asks, (error_info(refusal).reason for refusal in refusals), strict=True))
        hanging.resume()
        assert reasons == dict.fromkeys(ON_GAMES, "STORE_UNAVAILABLE")
        assert (await stage.game.see()).revision == 4
    await store.close()
    hanging.close()
