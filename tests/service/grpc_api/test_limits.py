"""Limits for each address, and the statuses that clients get from a stopping server."""

import asyncio
import contextlib
import gc
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from engine.melding.ruleset import OPTIONS, Ruleset, problems
from engine.tiles import COLORS, tile, tile_set
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import meld_pb2, record_pb2, tile_pb2
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.app import changes
from service.app.change_pace import SEAT_CHANGES
from service.codec.analysis import POSITIONS_MAX
from service.codec.rulesets import encode_ruleset
from service.codec.tiles import MELDS_MAX
from service.codec.validation import BATCH_MAX
from service.composition import Tuning
from service.errors import Fault, GameNotFound, StoreUnavailable, TooManyGames
from service.grpc_api.listener import AioListener
from service.runtime.connections import shut_down_connections
from service.runtime.origins import GAMES_PER_MINUTE, Key, Origin
from service.runtime.rate_limit import Attempts, RateLimit, TokenBuckets
from service.runtime.refusal_pace import Pacing, RefusalPace
from service.runtime.slow_calls import OVERHEAD_BYTES, Pace
from service.settings import Settings
from service.storage.redis.store import RESERVE
from service.storage.store import DRAFTS_AT_ONCE, GAME_GROWTH
from support.delegating_store import DelegatingStore
from support.harness import (
    Client,
    FakeClock,
    as_tiles,
    error_info,
    field_violations,
    from_another_address,
    keys_file,
    memory_store,
    new_id,
    redis_store,
    running_server,
    server_settings,
)
from tools.games import options
from tools.redis_servers import RedisServer

pytestmark = pytest.mark.slow

UNLIMITED = options(turn_time_limit_seconds=0)
HOURLY = Pacing(per_second=1 / 3_600, at_once=0)
"""Each refusal waits for an hour."""


async def refused_with(call: Awaitable[object]) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call
    return str(error_info(refusal.value).reason)


# New games


def test_a_minute_s_games_may_be_created_at_once_and_then_at_the_limit_s_rate() -> None:
    limit = RateLimit(6, TooManyGames, GAMES_PER_MINUTE)
    for _ in range(6):
        limit.take(Origin("a"), 100.0)
    with pytest.raises(TooManyGames):
        limit.take(Origin("a"), 109.9)
    limit.take(Origin("b"), 109.9)
    limit.take(Origin("a"), 110.1)
    with pytest.raises(TooManyGames):
        limit.take(Origin("a"), 110.2)
    for _ in range(6):
        limit.take(Origin("a"), 1_000.0)
    with pytest.raises(TooManyGames):
        limit.take(Origin("a"), 1_000.0)


def test_zero_means_no_limit() -> None:
    limit = RateLimit(0, TooManyGames, GAMES_PER_MINUTE)
    for _ in range(1_000):
        limit.take(Origin("a"), 0.0)


def test_a_key_has_its_own_rate_and_a_refusal_counts_nowhere() -> None:
    limit = RateLimit(3, TooManyGames, GAMES_PER_MINUTE)
    key = Key("web", quotas={GAMES_PER_MINUTE: 4})
    for address in "aaab":
        limit.take(Origin(address, key), 0.0)
    with pytest.raises(TooManyGames):
        limit.take(Origin("b", key), 0.0)
    for _ in range(2):
        limit.take(Origin("b"), 0.0)
    with pytest.raises(TooManyGames):
        limit.take(Origin("b"), 0.0)


def test_addresses_of_a_proxy_have_no_rate_but_the_key_has() -> None:
    limit = RateLimit(1, TooManyGames, GAMES_PER_MINUTE)
    proxy = Origin("a", Key("proxy", is_proxy=True, quotas={GAMES_PER_MINUTE: 2}))
    for _ in range(2):
        limit.take(proxy, 0.0)
    with pytest.raises(TooManyGames):
        limit.take(proxy, 0.0)
    limit.give_back(proxy)
    limit.take(proxy, 0.0)
    limit.take(Origin("a"), 0.0)


def test_the_number_of_buckets_is_bounded() -> None:
    limit = RateLimit(1, TooManyGames, GAMES_PER_MINUTE, holders_max=2)
    for peer in ("a", "b", "c", "a"):
        limit.take(Origin(peer), 0.0)
    with pytest.raises(TooManyGames):
        limit.take(Origin("a"), 0.0)


@pytest.mark.parametrize(
    ("error", "counts"),
    [(None, True), (StoreUnavailable, True), (asyncio.CancelledError, True), (GameNotFound, False)],
)
def test_what_may_have_happened_counts(error: type[BaseException] | None, counts: bool) -> None:
    """After a cancellation or a lost store, the game may be stored all the same."""
    attempts = Attempts(RateLimit(1, TooManyGames, GAMES_PER_MINUTE))
    with contextlib.suppress(BaseException), attempts.attempt("a", Origin("1"), 0.0):
        if error:
            raise error()
    second = attempts.attempt("b", Origin("1"), 0.0)
    with pytest.raises(TooManyGames) if counts else contextlib.nullcontext(), second:
        pass


def test_a_clock_that_goes_back_takes_no_tokens() -> None:
    buckets = TokenBuckets(1.0)
    assert not buckets.take([("a", 2)], 100.0)
    assert not buckets.take([("a", 2)], 40.0)


async def test_an_address_over_its_limit_does_not_affect_other_addresses() -> None:
    settings = server_settings(games_per_minute=3)
    async with running_server(memory_store(), settings) as (server, client), from_another_address(server.port) as port:
        for _ in range(3):
            await client.games.CreateGame(gs.CreateGameRequest())
        assert await refused_with(client.games.CreateGame(gs.CreateGameRequest())) == "TOO_MANY_GAMES"
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            game = await Client(channel).new_game()
            assert (await game.see()).revision == 4, "a running game continues"


@pytest.mark.parametrize("listener", ["port", "validation_port"])
async def test_clients_behind_a_trusted_proxy_have_limits_of_their_own(listener: str) -> None:
    settings = server_settings(
        trusted_proxies="127.0.0.0/8", peer_share=0.5, validation_streams=3, validation_listen="127.0.0.1:0"
    )
    async with (
        running_server(memory_store(), settings) as (server, _),
        grpc.aio.insecure_channel(f"127.0.0.1:{getattr(server, listener)}") as channel,
    ):
        stub = Client(channel).validation

        def stream_from(client: str) -> "grpc.aio.StreamStreamCall[Any, Any]":
            return stub.StreamValidateTurns(metadata=(("x-forwarded-for", f"198.51.100.1, {client}"),))

        async def is_answered(stream: "grpc.aio.StreamStreamCall[Any, Any]") -> None:
            await stream.write(vs.StreamValidateTurnsRequest(turn=vs.ValidateTurnRequest(has_melded=True)))
            await stream.read()

        first, second = stream_from("192.0.2.1"), stream_from("192.0.2.2")
        await is_answered(first)
        assert await refused_with(stream_from("192.0.2.1").read()) == "OVERLOADED"
        await is_answered(second)
        for stream in (first, second):
            stream.cancel()


class ForgetfulStore(DelegatingStore):
    """A store that fails to find names while `is_down`."""

    is_down = False

    async def find_name(self, name: str) -> str:
        if self.is_down:
            raise StoreUnavailable("down")
        return await self._store.names.find(name)


async def test_a_join_code_that_the_store_could_not_find_is_no_guess() -> None:
    store = ForgetfulStore(memory_store())
    async with running_server(store, server_settings(join_guesses_per_minute=1)) as (_, client):
        code = (await client.games.CreateGame(gs.CreateGameRequest())).game.join_code

        def join(code: str) -> "grpc.aio.UnaryUnaryCall[gs.JoinGameRequest, gs.JoinGameResponse]":
            return client.games.JoinGame(gs.JoinGameRequest(join_code=code, name="Ada", request_id=new_id()))

        store.is_down = True
        for _ in range(3):
            assert await refused_with(join(code)) == "STORE_UNAVAILABLE"
        store.is_down = False
        await join(code)
        assert await refused_with(join("222222")) == "JOIN_CODE_UNKNOWN"
        assert await refused_with(join(code)) == "TOO_MANY_GUESSES"


async def test_an_address_that_is_refused_again_and_again_waits_for_its_refusals() -> None:
    settings = server_settings(games_per_minute=1, peer_share=0.5)
    async with (
        running_server(memory_store(), settings, tuning=Tuning(HOURLY)) as (server, client),
        from_another_address(server.port) as port,
    ):
        await client.games.CreateGame(gs.CreateGameRequest())
        waiting = client.games.CreateGame(gs.CreateGameRequest())
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            other = Client(channel)
            await other.games.CreateGame(gs.CreateGameRequest())
        await client.games.ListGames(gs.ListGamesRequest())
        assert not waiting.done(), "its other calls are served meanwhile"
        assert server.listeners[0].calls_in_progress == 0, "it holds no call"
        stopping = asyncio.create_task(server.stop())
        assert await refused_with(waiting) == "TOO_MANY_GAMES"
        await stopping


@asynccontextmanager
async def listener_with_keys(folder: Path, listener: str, pacing: Pacing, **settings: object) -> AsyncIterator[Client]:
    """Yields a client of a server that requires keys."""
    requires_keys = server_settings(
        keys_file=keys_file(folder, web=""), validation_listen="127.0.0.1:0", peer_share=0.5, **settings
    )
    async with (
        running_server(memory_store(), requires_keys, tuning=Tuning(pacing)) as (server, _),
        grpc.aio.insecure_channel(f"127.0.0.1:{getattr(server, listener)}") as channel,
    ):
        yield Client(channel)


@pytest.mark.parametrize("listener", ["port", "validation_port"])
async def test_a_refusal_that_waits_is_sent_before_the_deadline(tmp_path: Path, listener: str) -> None:
    async with listener_with_keys(tmp_path, listener, replace(HOURLY, early_seconds=9.5)) as client:
        call = client.validation.ListRulesets(vs.ListRulesetsRequest(), timeout=10)
        assert await refused_with(call) == "API_KEY_INVALID"


@pytest.mark.parametrize("listener", ["port", "validation_port"])
async def test_refusals_of_a_client_behind_a_proxy_delay_no_other_client(tmp_path: Path, listener: str) -> None:
    pacing = replace(HOURLY, at_once=1)
    async with listener_with_keys(tmp_path, listener, pacing, trusted_proxies="127.0.0.0/8") as client:

        def call_from(address: str) -> "grpc.aio.UnaryUnaryCall[vs.ListRulesetsRequest, vs.ListRulesetsResponse]":
            return client.validation.ListRulesets(vs.ListRulesetsRequest(), metadata=(("x-forwarded-for", address),))

        assert await refused_with(call_from("192.0.2.1")) == "API_KEY_INVALID"
        waiting = call_from("192.0.2.1")
        assert await refused_with(call_from("192.0.2.2")) == "API_KEY_INVALID"
        assert not waiting.done()
        waiting.cancel()


def test_a_second_s_refusals_are_sent_at_once_and_then_at_a_steady_rate() -> None:
    pace = RefusalPace(lambda origin: origin.address != "proxy", 2, Pacing(at_once=2))
    attacker, other, proxy = Origin("a"), Origin("b"), Origin("proxy")
    assert [pace.delay(attacker, 1_000.0) for _ in range(5)] == [0, 0, 0.5, 1, 1.5]
    assert [pace.delay(other, 1_000.0) for _ in range(3)] == [0, 0, 0.5]
    assert [pace.delay(proxy, 1_000.0) for _ in range(5)] == [0] * 5
    assert [pace.delay(attacker, 1_002.5) for _ in range(3)] == [0, 0, 0.5]
    assert [pace.delay(Origin("new"), 0.1) for _ in range(3)] == [0, 0, 0.5], "a machine that has just started"


def test_no_refusal_waits_longer_than_a_minute() -> None:
    pace = RefusalPace(lambda _origin: True, 10, Pacing(at_once=0))
    delays = [pace.delay(Origin("a"), 1_000.0) for _ in range(5_000)]
    assert delays[:600] == pytest.approx([place / 10 for place in range(1, 601)])
    by_second = Counter(int(delay) for delay in delays[600:])
    assert by_second.keys() == set(range(30, 60))
    assert max(by_second.values()) < 2 * min(by_second.values()), "they are not sent together"
    assert pace.delay(Origin("a"), 1_060.0) < 1, "the pace recovers"


def test_a_refusal_waits_no_longer_than_until_shortly_before_the_deadline() -> None:
    pace = RefusalPace(lambda _origin: True, 0.1, Pacing(at_once=0))
    assert [pace.delay(Origin("a"), 1_000.0, left) for left in (5.0, 0.1, -1.0, 100.0)] == [4.8, 0, 0, 40]


def test_the_number_of_paced_addresses_is_bounded() -> None:
    pace = RefusalPace(lambda _origin: True, 1, Pacing(at_once=1, addresses_max=2))
    delays = [pace.delay(Origin(address), 1_000.0) for address in "abbcab"]
    assert delays == [0, 0, 1, 0, 0, 0], "the one refused longest ago is forgotten"


async def test_few_refusals_wait_at_a_time() -> None:
    settings, tuning = server_settings(games_per_minute=1, peer_share=0.5), Tuning(replace(HOURLY, waiting_max=6))
    async with running_server(memory_store(), settings, tuning=tuning) as (server, client):
        await client.games.CreateGame(gs.CreateGameRequest())
        calls = [client.games.CreateGame(gs.CreateGameRequest()) for _ in range(4)]
        async with asyncio.timeout(60):
            while not any(call.done() for call in calls):  # noqa: ASYNC110 - gRPC has no event for this
                await asyncio.sleep(0.01)
        (listener,) = server.listeners
        assert isinstance(listener, AioListener)
        assert listener.interceptor.policy.refusals.total == 3, "half, as the address is alone"
        stopping = asyncio.create_task(server.stop())
        assert [await refused_with(call) for call in calls] == ["TOO_MANY_GAMES"] * 4
        await stopping


async def test_a_nearly_full_store_accepts_changes_but_no_new_games() -> None:
    full = RedisServer()
    full.start()
    store = redis_store(full.url)
    try:
        async with running_server(store) as (_, client):
            game = await client.new_game(ruleset=UNLIMITED)
            with full.client() as keys:
                used = keys.info("memory")["used_memory"]
                keys.config_set("maxmemory", round(used / (1 - RESERVE) - 10_000))
                assert await refused_with(client.games.CreateGame(gs.CreateGameRequest())) == "STORE_FULL"
                lists = keys.zcard("rummikub:games:lobby")
                for _ in range(10):
                    await game.draw()
                assert keys.zcard("rummikub:games:lobby") == lists, "a rejected creation stores nothing"
                keys.config_set("maxmemory", used * 3)
            await client.games.CreateGame(gs.CreateGameRequest())
    finally:
        await store.close()
        full.close()


async def test_the_growth_of_unfinished_games_is_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "ROOM_SECONDS", 0.0)
    monkeypatch.setattr(changes, "SMALL_REVISIONS", 20)
    small = RedisServer()
    small.start()
    store = redis_store(small.url)
    try:
        async with running_server(store) as (_, client):
            game, lobby = await client.new_game(ruleset=UNLIMITED), await client.new_game(start=False)
            with small.client() as keys:
                used = keys.info("memory")["used_memory"]
                keys.config_set("maxmemory", round((used + GAME_GROWTH) / (1 - RESERVE)))
            assert await refused_with(client.games.CreateGame(gs.CreateGameRequest())) == "STORE_FULL"
            assert await refused_with(lobby.ready(1)) == "STORE_FULL"
            assert await refused_with(lobby.join("Cleo")) == "STORE_FULL"
            await lobby.start()
            while (await game.draw()).game.revision <= 20:
                pass
            assert await refused_with(game.draw()) == "STORE_FULL"
            assert (await game.see()).revision == 21
    finally:
        await store.close()
        small.close()


# Names of limits


async def open_watch(client: Client) -> "grpc.aio.UnaryStreamCall[gs.WatchGameRequest, gs.WatchGameResponse]":
    """Returns a watch of a new game, whose first answer has come."""
    game = await client.games.CreateGame(gs.CreateGameRequest())
    watch = client.games.WatchGame(gs.WatchGameRequest(game_id=game.game.game_id))
    await watch.read()
    return watch


async def exceed_calls(client: Client) -> None:
    watch = await open_watch(client)
    await client.validation.ListRulesets(vs.ListRulesetsRequest())
    watch.cancel()


async def exceed_watches(client: Client) -> None:
    watches = [await open_watch(client) for _ in range(2)]
    watches[0].cancel()


async def exceed_streams(client: Client) -> None:
    opened = client.validation.StreamValidateTurns()
    await opened.write(vs.StreamValidateTurnsRequest(turn=vs.ValidateTurnRequest(has_melded=True)))
    await opened.read()
    await client.validation.StreamValidateTurns().read()
    opened.cancel()


async def exceed_request_bytes(client: Client) -> None:
    await client.validation.BatchValidateTurns(largest_batch(1))


async def exceed_by_history(client: Client) -> None:
    game = await client.new_game()
    await client.games.GetGame(gs.GetGameRequest(game_id=game.game_id, revision=1))


async def exceed_drafts(client: Client) -> None:
    game = await client.new_game(ruleset=UNLIMITED)
    for _ in range(DRAFTS_AT_ONCE + 1):
        await game.save_draft()


async def exceed_changes(client: Client) -> None:
    game = await client.new_game(start=False)
    for number in range(SEAT_CHANGES + 1):
        await game.ready(1, is_ready=number % 2 == 0)


@pytest.mark.parametrize(
    ("limit", "settings", "exceed"),
    [
        ("calls", {"max_calls": 1}, exceed_calls),
        ("watches", {"max_watches": 1}, exceed_watches),
        ("streams", {"validation_streams": 1}, exceed_streams),
        ("request_bytes", {}, exceed_request_bytes),
        ("request_bytes", {}, exceed_by_history),
        ("drafts", {"drafts_per_second": 1}, exceed_drafts),
        ("seat_drafts", {}, exceed_drafts),
        ("changes", {"changes_per_second": 3}, exceed_changes),
        ("seat_changes", {}, exceed_changes),
    ],
)
async def test_a_refusal_and_the_metrics_name_the_limit(
    limit: str,
    settings: dict[str, object],
    exceed: Callable[[Client], Awaitable[None]],
) -> None:
    tuning = Tuning(slow_calls=Pace(bytes_max=OVERHEAD_BYTES + (0 if limit == "request_bytes" else 1_000)))
    running = running_server(memory_store(FakeClock()), server_settings(**settings), tuning=tuning)
    async with running as (server, client):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await exceed(client)
        assert (error_info(refusal.value).reason, error_info(refusal.value).metadata["limit"]) == ("OVERLOADED", limit)
        labels = {"reason": "OVERLOADED", "limit": limit}
        assert server.metrics.registry.get_sample_value("rummikub_refused_calls_total", labels) == 1


async def test_refused_drafts_have_a_pace_of_their_own() -> None:
    settings = server_settings(drafts_per_second=1, peer_share=0.5)
    tuning = Tuning(replace(HOURLY, drafts_per_second=1))
    async with running_server(memory_store(), settings, tuning=tuning) as (_, client):
        began = time.monotonic()
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await asyncio.wait_for(exceed_drafts(client), 30)
        assert time.monotonic() - began > 1
        assert (
            refusal.value.details()
            == "your address has reached its limit of drafts per second; save the newest one again later"
        )


# Sizes

LARGEST_GAME = Ruleset(geometry_colors=6, geometry_copies=3, geometry_jokers=8)
"""The rules with most tiles."""


def tables_of_the_largest_game() -> tuple[list[meld_pb2.Meld], list[meld_pb2.Meld]]:
    """Returns all tiles of the largest game as groups of three, four with a joker, before and after a turn."""
    values = [[tile(color, value) for color in COLORS] for value in range(1, 14) for _ in range(3)]
    groups = [as_tiles(faces[first : first + 3]) for faces in values for first in (0, 3)]
    melds = [meld_pb2.Meld(tiles=group, kind=meld_pb2.MELD_KIND_GROUP) for group in groups]
    for first, second in zip(melds[:16:2], melds[1:16:2], strict=True):  # of one value
        first.tiles.append(tile_pb2.TILE_JOKER)
        first.declared_faces.append(second.tiles[0])
    return melds[:-2], melds


def test_the_largest_game_is_the_largest() -> None:
    assert problems(LARGEST_GAME) == ()
    _, table = tables_of_the_largest_game()
    tiles = [one for meld in table for one in meld.tiles]
    assert Counter(tiles) == Counter(as_tiles(tile_set(6, 3, 8)))
    for option in ("geometry_colors", "geometry_copies", "geometry_jokers"):
        assert getattr(LARGEST_GAME, option) == max(OPTIONS[option].values)


def largest_batch(turns: int) -> vs.BatchValidateTurnsRequest:
    before, after = tables_of_the_largest_game()
    turn = vs.ValidateTurnRequest(
        ruleset=encode_ruleset(LARGEST_GAME).melding,
        table_before=meld_pb2.Table(melds=before),
        table_after=meld_pb2.Table(melds=after),
        rack=[one for meld in after[-2:] for one in meld.tiles],
        has_melded=True,
        calls_rummikub=True,
    )
    return vs.BatchValidateTurnsRequest(turns=[turn] * turns)


@pytest.mark.parametrize("listener", ["port", "validation_port"])
async def test_as_many_turns_as_documented_can_be_sent(listener: str) -> None:
    settings = server_settings(validation_listen="127.0.0.1:0")
    async with (
        running_server(memory_store(), settings) as (server, _),
        grpc.aio.insecure_channel(f"127.0.0.1:{getattr(server, listener)}") as channel,
    ):
        client = Client(channel)
        answers = (await client.validation.BatchValidateTurns(largest_batch(BATCH_MAX))).turns
        assert [one.goes_out for one in answers] == [True] * BATCH_MAX
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await client.validation.BatchValidateTurns(largest_batch(BATCH_MAX + 1))
        assert field_violations(refusal.value) == ["turns"]


async def test_as_many_positions_as_documented_can_be_sent(client: Client) -> None:
    table, _ = tables_of_the_largest_game()
    position = an.Position(
        ruleset=encode_ruleset(LARGEST_GAME).melding, table=meld_pb2.Table(melds=table), has_melded=True
    )
    request = an.BatchSuggestTurnsRequest(positions=[position] * POSITIONS_MAX, time_limit=Duration(nanos=1_000_000))
    assert len((await client.analysis.BatchSuggestTurns(request)).suggestions) == POSITIONS_MAX


async def test_clients_accept_the_answer_to_the_largest_batch_of_invalid_melds(client: Client) -> None:
    """The limit of a client is 4 MiB by default."""
    meld = meld_pb2.Meld(tiles=as_tiles([53, 1, 14, 27, 40, 13, 26, 5] * 2))
    turn = vs.ValidateTurnRequest(table_after=meld_pb2.Table(melds=[meld] * MELDS_MAX), has_melded=True)
    request = vs.BatchValidateTurnsRequest(turns=[turn] * BATCH_MAX)
    assert request.ByteSize() > 0.9 * Settings().max_message_bytes
    assert len((await client.validation.BatchValidateTurns(request)).turns) == BATCH_MAX


# Shutdown


TOO_LARGE_TABLE = [meld_pb2.Meld()] * (MELDS_MAX + 1)
REFUSED: dict[str, Message] = {
    "ValidationService/BatchValidateTurns": vs.BatchValidateTurnsRequest(
        turns=[vs.ValidateTurnRequest()] * (BATCH_MAX + 1)
    ),
    "ValidationService/ValidateMelds": vs.ValidateMeldsRequest(melds=TOO_LARGE_TABLE),
    "ValidationService/ValidateTurn": vs.ValidateTurnRequest(table_after=meld_pb2.Table(melds=TOO_LARGE_TABLE)),
    "TurnService/PlayTurn": ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=TOO_LARGE_TABLE))),
    "RecordService/ImportRecord": rs.ImportRecordRequest(
        record=record_pb2.GameRecord(moves=[record_pb2.RecordedMove()] * 100)
    ),
    "GameService/CreateGame": gs.CreateGameRequest(request_id="short"),
    "GameService/WatchGame": gs.WatchGameRequest(game_id="short"),
}


def refused_calls_in_memory() -> list[BaseException]:
    """Returns the refusals that refer to their requests, by frames of their traceback, and ends of refused calls."""
    return [
        found
        for found in gc.get_objects()
        if (isinstance(found, Fault) and (found.__traceback__ or found.__context__))
        or isinstance(found, grpc.aio.AbortError)
    ]


@pytest.mark.parametrize("listener", ["port", "validation_port"])
async def test_nothing_of_a_refused_call_outlives_its_answer(listener: str) -> None:
    """Also if the garbage collector, which is rare in a server, does not run."""
    settings = server_settings(validation_listen="127.0.0.1:0")
    async with (
        running_server(memory_store(), settings) as (server, _),
        grpc.aio.insecure_channel(f"127.0.0.1:{getattr(server, listener)}") as channel,
    ):
        gc.collect()
        gc.disable()
        try:
            for rpc, request in REFUSED.items():
                if listener == "port" or rpc.startswith("ValidationService"):
                    path = f"/rummikub.v1.{rpc}"
                    call: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(path)
                    assert await call(request.SerializeToString()).code() is grpc.StatusCode.INVALID_ARGUMENT
            async with asyncio.timeout(10):
                while refused_calls_in_memory():  # noqa: ASYNC110 - a thread may still be at its last line
                    await asyncio.sleep(0.01)
        finally:
            gc.enable()


def test_only_connections_at_the_ports_are_shut_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [one.getsockname()[1] for one in (listening, other)]
        clients = [socket.create_connection(("127.0.0.1", port), 5) for port in ports]
        servers = [one.accept()[0] for one in (listening, other)]
        servers[0].sendall(b"the last answer")
        assert shut_down_connections({ports[0]}) == 1
        assert clients[0].recv(100) == b"the last answer"
        assert clients[0].recv(100) == b""
        servers[1].sendall(b"goes on")
        assert clients[1].recv(100) == b"goes on"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", ports[0]), 5)
        for one in (*clients, *servers):
            one.close()


async def test_a_stopping_server_cancels_no_call() -> None:
    """Clients retry UNAVAILABLE, but not CANCELLED."""
    ends = Counter[grpc.StatusCode]()

    async def call_on(port: int) -> None:
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                "/rummikub.v1.ValidationService/ListRulesets"
            )
            while True:
                try:
                    await call(b"", timeout=5)
                except grpc.aio.AioRpcError as error:
                    ends[error.code()] += 1
                    if "connect" in (error.details() or ""):
                        return

    for _ in range(5):
        settings = server_settings(validation_listen="127.0.0.1:0")
        async with running_server(memory_store(), settings) as (server, _), asyncio.TaskGroup() as calling:
            for port in (server.port, server.validation_port):
                for _ in range(10):
                    calling.create_task(call_on(port))
            await asyncio.sleep(0.2)  # for calls to start
            await server.stop()
    assert set(ends) == {grpc.StatusCode.UNAVAILABLE}
