"""The floods: coroutine functions that attack a server until they are cancelled, and count how their calls end."""

import asyncio
import contextlib
import itertools
import random
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

import grpc.aio
from google.protobuf.duration_pb2 import Duration

from engine.melding.melds import as_proposed
from load.calls import reason_of
from load.corpus.hostile import Hostile
from load.corpus.hostile import read as read_hostile
from load.corpus.hostile_turns import HostileTurn
from load.corpus.hostile_turns import read as read_hostile_turns
from load.corpus.turns import read as read_turns
from load.floods.aftermath import Measure, changes, fields, memory, nothing
from load.floods.attack import Attack, forever, unary
from load.floods.cheap_attacks import compressed, ready, renewals, revisions, store
from load.floods.http2_attacks import (
    bombs,
    continuations,
    half_open_connections,
    huge_headers,
    pings,
    rapid_reset,
    settings_flood,
    zero_window,
)
from load.messages import melds_to_send, to_send
from load.tables import new_table, sends_once
from rummikub.v1 import analysis_service_pb2, game_pb2, meld_pb2, room_settings_pb2, tile_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import validation_service_pb2 as vs
from rummikub.v1.game_service_pb2_grpc import GameServiceStub
from service.app.identity import CODE_ALPHABET, CODE_LENGTH
from service.codec.rulesets import encode_ruleset
from support.conformance_messages import ruleset_of
from tools.games import Client, as_tiles, options

CONNECTIONS: Final = 50
"""The connections of an attacker who holds or repeats calls."""
HELD: Final = 1_000
"""The calls that such an attacker holds on each."""
RETRY_SECONDS: Final = 1.0
"""The wait before a held call that has ended is opened again."""
SLOW: Final = 0.5
"""The least calls a second of floods whose calls take long."""
BATCH_TURNS: Final = 100
SEARCH_TIME: Final = Duration(seconds=1)
LAST_TILE: Final = 53
VALIDATE: Final = "/rummikub.v1.ValidationService/ValidateTurn"
BATCH: Final = "/rummikub.v1.ValidationService/BatchValidateTurns"
SUGGEST: Final = "/rummikub.v1.AnalysisService/SuggestTurn"
STREAM: Final = "/rummikub.v1.ValidationService/StreamValidateTurns"


def unseen_batch(rng: random.Random) -> bytes:
    """Returns a batch of 230 KB, as many turns as it may have, with melds that are in no cache of the server."""
    turns = [_unseen_turn(rng, melds=128, tiles=14) for _ in range(BATCH_TURNS)]
    return vs.BatchValidateTurnsRequest(turns=turns).SerializeToString()


def _unseen_turn(rng: random.Random, melds: int, tiles: int) -> vs.ValidateTurnRequest:
    table = meld_pb2.Table(melds=[meld_pb2.Meld(tiles=_random_tiles(rng, tiles)) for _ in range(melds)])
    return vs.ValidateTurnRequest(table_after=table, rack=_random_tiles(rng, 3), has_melded=True)


def _random_tiles(rng: random.Random, count: int) -> list[tile_pb2.Tile.ValueType]:
    return [cast("tile_pb2.Tile.ValueType", rng.randint(1, LAST_TILE)) for _ in range(count)]


def _without_request(channel: grpc.aio.Channel) -> Callable[..., "grpc.aio.StreamUnaryCall[bytes, bytes]"]:
    """Returns ValidateTurn as a method whose request may never be sent."""
    method: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary(VALIDATE)
    return method


async def batches(attack: Attack) -> None:
    """50 callers send batches of 230 KB with melds that are in no cache."""
    rng = random.Random(1)
    bodies = itertools.cycle([unseen_batch(rng) for _ in range(60)])
    async with attack.channels(5) as channels:
        calls = [unary(channel, BATCH) for channel in channels]
        await forever(50, lambda number: attack.count(calls[number % 5](next(bodies))))


async def turns(attack: Attack) -> None:
    """20 callers send turns of 4.6 KB with melds that are in no cache."""
    rng = random.Random(2)
    async with attack.channels(2) as channels:
        calls = [unary(channel, VALIDATE) for channel in channels]

        async def send(number: int) -> None:
            body = _unseen_turn(rng, melds=128, tiles=32)
            await attack.count(calls[number % 2](body.SerializeToString()))

        await forever(20, send)


async def cancelled_batches(attack: Attack) -> None:
    """60 batches a second, each cancelled 4 ms after it was sent."""
    rng = random.Random(3)
    bodies = itertools.cycle([unseen_batch(rng) for _ in range(60)])
    async with attack.channels(5) as channels:
        calls = [unary(channel, BATCH) for channel in channels]
        while True:
            sent = [calls[number % 5](next(bodies)) for number in range(60)]
            await asyncio.sleep(0.004)
            for call in sent:
                call.cancel()
            attack.ends["CANCELLED by its caller"] += len(sent)
            await asyncio.sleep(1)


async def overdue_batches(attack: Attack) -> None:
    """20 callers send batches with a deadline of 1 ms."""
    rng = random.Random(4)
    bodies = itertools.cycle([unseen_batch(rng) for _ in range(60)])
    async with attack.channels(5) as channels:
        calls = [unary(channel, BATCH) for channel in channels]

        async def send(number: int) -> None:
            await attack.count(calls[number % 5](next(bodies), timeout=0.001))
            await asyncio.sleep(0.02)

        await forever(20, send)


async def half_open(attack: Attack) -> None:
    """50 connections with 1,000 calls each whose message is never sent; calls that end are opened again."""
    async with attack.channels(CONNECTIONS) as channels:

        async def hold(number: int) -> None:
            call = _without_request(channels[number % CONNECTIONS])()
            try:
                await attack.count(call)
            finally:
                call.cancel()
            await asyncio.sleep(RETRY_SECONDS)

        await forever(CONNECTIONS * HELD, hold)


async def no_message(attack: Attack) -> None:
    """10 callers end their calls without a message, each within a second."""
    async with attack.channels(1) as channels:

        async def send(_number: int) -> None:
            call = _without_request(channels[0])(timeout=1)
            with contextlib.suppress(asyncio.InvalidStateError):
                await call.done_writing()
            await attack.count(call)

        await forever(10, send)


async def crowd(attack: Attack, size: int = 30_000) -> None:
    """30,000 valid calls at once over 30 connections, once."""
    body = next(to_send(turn).turn for turn in read_turns()).SerializeToString()
    async with attack.channels(30) as channels:
        for channel in channels:
            await channel.channel_ready()
        calls = [unary(channel, VALIDATE) for channel in channels]
        await asyncio.gather(*(attack.count(calls[place % 30](body, timeout=30)) for place in range(size)))
        await asyncio.Event().wait()


async def idle_streams(attack: Attack) -> None:
    """50 connections with 1,000 idle streams of StreamValidateTurns each; streams that end are opened again."""

    async def hold(channel: grpc.aio.Channel) -> None:
        stream: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(STREAM)
        call = stream()
        try:
            async for _ in call:
                pass
            attack.ends["OK"] += 1
        except grpc.aio.AioRpcError as error:
            attack.ends[f"{error.code().name} {reason_of(error)}"[:60]] += 1

    async with attack.channels(CONNECTIONS) as channels:

        async def again(number: int) -> None:
            await hold(channels[number % CONNECTIONS])
            await asyncio.sleep(RETRY_SECONDS)

        await forever(CONNECTIONS * HELD, again)


async def creations(attack: Attack) -> None:
    """50 connections with 4 callers each create games, as fast as they are answered."""
    async with attack.channels(CONNECTIONS) as channels:
        stubs = [GameServiceStub(channel) for channel in channels]

        async def create(number: int) -> None:
            request = gs.CreateGameRequest(request_id=str(uuid.uuid4()))
            await attack.count(stubs[number % CONNECTIONS].CreateGame(request))

        await forever(4 * CONNECTIONS, create)


async def join_codes(attack: Attack) -> None:
    """50 connections with 4 callers each try random join codes, as fast as they are answered."""
    rng = random.Random(5)
    async with attack.channels(CONNECTIONS) as channels:
        stubs = [GameServiceStub(channel) for channel in channels]

        async def guess(number: int) -> None:
            code = "".join(rng.choices(CODE_ALPHABET, k=CODE_LENGTH))
            request = gs.JoinGameRequest(join_code=code, name="Eve", request_id=str(uuid.uuid4()))
            await attack.count(stubs[number % CONNECTIONS].JoinGame(request))

        await forever(4 * CONNECTIONS, guess)


async def retrievals(attack: Attack) -> None:
    """50 connections with 4 callers each validate turns whose joker retrievals are slow to judge."""
    bodies = itertools.cycle([slow_turn(hostile).SerializeToString() for hostile in read_hostile_turns()])
    async with attack.channels(CONNECTIONS) as channels:
        calls = [unary(channel, VALIDATE) for channel in channels]
        await forever(4 * CONNECTIONS, lambda number: attack.count(calls[number % CONNECTIONS](next(bodies))))


def slow_turn(hostile: HostileTurn) -> vs.ValidateTurnRequest:
    """Returns the request to validate a hostile turn."""
    play = hostile.to_judge
    return vs.ValidateTurnRequest(
        ruleset=encode_ruleset(play.ruleset).melding,
        table_before=meld_pb2.Table(melds=melds_to_send(as_proposed(meld, play.ruleset) for meld in play.table_before)),
        table_after=meld_pb2.Table(melds=melds_to_send(play.table_after)),
        rack=cast("list[tile_pb2.Tile.ValueType]", play.rack),
        has_melded=play.has_melded,
    )


async def lists(attack: Attack) -> None:
    """20 callers list 100 of 200 existing games."""
    async with attack.channels(2) as channels:
        stubs = [GameServiceStub(channel) for channel in channels]
        for _ in range(200):
            await attack.count(stubs[0].CreateGame(gs.CreateGameRequest(visibility=game_pb2.VISIBILITY_PUBLIC)))
        request = gs.ListGamesRequest(page_size=100, states=[game_pb2.GAME_STATE_LOBBY])
        await forever(20, lambda number: attack.count(stubs[number % 2].ListGames(request)))


def question(hostile: Hostile) -> analysis_service_pb2.SuggestTurnRequest:
    """Returns the request for the best turn of a hostile position."""
    situation = hostile.situation
    return analysis_service_pb2.SuggestTurnRequest(
        position=analysis_service_pb2.Position(
            ruleset=ruleset_of(hostile.options),
            table=meld_pb2.Table(melds=melds_to_send(as_proposed(meld, situation.ruleset) for meld in situation.table)),
            rack=as_tiles(situation.rack),
            has_melded=situation.has_melded,
            river=as_tiles(situation.river),
        ),
        time_limit=SEARCH_TIME,
    )


async def searches(attack: Attack) -> None:
    """50 connections with 4 callers each request the best turn of hostile positions."""
    requests = itertools.cycle([question(hostile).SerializeToString() for hostile in read_hostile()])
    async with attack.channels(CONNECTIONS) as channels:
        calls = [unary(channel, SUGGEST) for channel in channels]

        async def send(number: int) -> None:
            await attack.count(calls[number % CONNECTIONS](next(requests)))
            await asyncio.sleep(0.1)

        await forever(4 * CONNECTIONS, send)


async def drafts(attack: Attack) -> None:
    """50 connections with a game each save drafts of its turn that everyone may see, by 4 callers each."""
    rules = options(turn_time_limit_seconds=0, draft_visibility=room_settings_pb2.DRAFT_VISIBILITY_EVERYONE)
    async with attack.channels(CONNECTIONS) as channels:
        clients = [Client(channel) for channel in channels]
        tables = [await new_table(sends_once(client), rules) for client in clients]
        drafts = [table.draft(await table.rack(client)) for table, client in zip(tables, clients, strict=True)]

        async def save(number: int) -> None:
            place = number % CONNECTIONS
            await attack.count(clients[place].turns.SaveDraft(drafts[place], metadata=tables[place].to_move))

        await forever(4 * CONNECTIONS, save)


@dataclass(frozen=True)
class Flood:
    """A flood.

    Attributes:
        run: Its attack.
        at_own_listener: Whether it attacks the validation listener.
        least_a_second: How many of its calls must end in a second, else it is no flood. The server ends far more.
        holds: Whether its calls end only when the server ends them after ten seconds. A quick flood is over before.
        prepares: Whether it sets `Attack.begun` when it begins.
        is_cheap: Whether its calls cost their sender nothing, so that what they leave behind grows with its time.
        must_end: An outcome that some of its calls must have.
        without: Kinds of honest calls that it may stop.
        store_options: Options of the store.
        measure: Measures what it leaves behind.
    """

    run: Callable[[Attack], Awaitable[None]]
    at_own_listener: bool = False
    least_a_second: float = 5.0
    holds: bool = False
    prepares: bool = False
    is_cheap: bool = False
    must_end: str = ""
    without: Sequence[str] = ()
    store_options: Sequence[str] = ()
    measure: Measure = nothing


def _at_both_listeners(name: str, run: Callable[[Attack], Awaitable[None]]) -> Mapping[str, Flood]:
    """Returns a flood of HTTP/2 itself at the main listener, and at the validation listener."""
    flood = Flood(run, is_cheap=True, measure=memory)
    return {name: flood, f"{name}-own": replace(flood, at_own_listener=True)}


FLOODS: Final[Mapping[str, Flood]] = {
    "batches": Flood(batches, least_a_second=SLOW),
    "batches-own": Flood(batches, at_own_listener=True, least_a_second=SLOW),
    "turns": Flood(turns, least_a_second=SLOW),
    "turns-own": Flood(turns, at_own_listener=True, least_a_second=SLOW),
    "cancelled": Flood(cancelled_batches, least_a_second=SLOW),
    "cancelled-own": Flood(cancelled_batches, at_own_listener=True, least_a_second=SLOW),
    "overdue": Flood(overdue_batches, least_a_second=SLOW),
    "overdue-own": Flood(overdue_batches, at_own_listener=True, least_a_second=SLOW),
    "half-open": Flood(half_open, holds=True),
    "half-open-own": Flood(half_open, at_own_listener=True, holds=True),
    "no-message": Flood(no_message),
    "no-message-own": Flood(no_message, at_own_listener=True),
    "crowd": Flood(crowd),
    "crowd-own": Flood(crowd, at_own_listener=True),
    "streams": Flood(idle_streams),
    "streams-own": Flood(idle_streams, at_own_listener=True),
    "creations": Flood(creations),
    "join-codes": Flood(join_codes),
    "drafts": Flood(drafts),
    "lists": Flood(lists),
    "retrievals": Flood(retrievals, least_a_second=SLOW),
    "retrievals-own": Flood(retrievals, at_own_listener=True, least_a_second=SLOW),
    "searches": Flood(searches),
    "ready": Flood(ready, is_cheap=True, measure=changes),
    "renewals": Flood(renewals, is_cheap=True, measure=fields),
    "store": Flood(
        store,
        is_cheap=True,
        must_end="RESOURCE_EXHAUSTED STORE_FULL",
        without=("CreateGame", "JoinGame by code"),
        store_options=("--maxmemory", "24mb"),
    ),
    "revisions": Flood(revisions, is_cheap=True, prepares=True, least_a_second=SLOW),
    "compressed": Flood(compressed, is_cheap=True, least_a_second=SLOW, measure=memory),
    **_at_both_listeners("reset", rapid_reset),
    **_at_both_listeners("pings", pings),
    **_at_both_listeners("settings", settings_flood),
    **_at_both_listeners("zero-window", zero_window),
    **_at_both_listeners("headers", huge_headers),
    **_at_both_listeners("continuations", continuations),
    **_at_both_listeners("bombs", bombs),
    **_at_both_listeners("half-connected", half_open_connections),
}

DEFAULT: Final = (
    "streams",
    "streams-own",
    "searches",
    "retrievals",
    "retrievals-own",
    "creations",
    "join-codes",
    "drafts",
    "half-open",
    "half-open-own",
    "ready",
    "renewals",
    "store",
    "revisions",
    "compressed",
)
"""The floods that run by default. Their attacker holds or repeats one kind of call from many connections, or makes
calls that cost nothing."""
