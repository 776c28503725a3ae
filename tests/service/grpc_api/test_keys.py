"""Keys at both listeners: who may call, and that the games of different keys are apart."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import generate_latest

from rummikub import Rummikub, aio
from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import error_reason_pb2, game_pb2, meld_pb2, record_pb2, room_settings_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.app.change_pace import SEAT_CHANGES
from service.runtime.keys import HEADER
from service.runtime.origins import QUOTAS
from service.server import Server
from service.storage.snapshot import decode_record, encode_record
from service.storage.store import Store
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    as_tiles,
    bearer,
    client_with_key,
    error_info,
    keys_file,
    memory_store,
    new_id,
    next_change,
    running_server,
    server_settings,
)
from support.operator import admin_at
from support.rpcs import METHODS, ROWS, as_usual, names_a_game, send_raw, usual_request
from tools.games import options

pytestmark = pytest.mark.slow

UNLIMITED = options(turn_time_limit_seconds=0)
PUBLIC = game_pb2.VISIBILITY_PUBLIC
A_RECORD = record_pb2.GameRecord(players=[record_pb2.RecordedPlayer(seat=seat, name=f"{seat}") for seat in (1, 2)])
OVERDUE_SECONDS = 3_600
"""Longer than a turn may take."""


@dataclass(frozen=True)
class Scene:
    """A server with keys: clients of two of them, and one without a key."""

    server: Server
    web: Client
    partner: Client
    nobody: Client
    store: Store


@pytest.fixture
async def scene(tmp_path: Path, store: Store) -> AsyncIterator[Scene]:
    async with serving(tmp_path, store, web="", partner="") as found:
        yield found


@asynccontextmanager
async def serving(
    folder: Path, store: Store, key_of: Callable[[str], str] = str, /, **entries: str
) -> AsyncIterator[Scene]:
    settings = server_settings(
        keys_file=keys_file(folder, key_of, **entries), validation_listen="127.0.0.1:0", sweep_seconds=3_600
    )
    async with (
        running_server(store, settings) as (server, nobody),
        client_with_key(server.port, "web") as web,
        client_with_key(server.port, "partner") as partner,
    ):
        yield Scene(server, web, partner, nobody, store)


async def reason(call: Any) -> str:  # noqa: ANN401 - a call of any kind
    """Returns the reason of a refused call; "" for an answer."""
    try:
        if isinstance(call, grpc.aio.UnaryStreamCall):
            await call.read()
            call.cancel()
        else:
            await call
    except grpc.aio.AioRpcError as error:
        return str(error_info(error).reason)
    return ""


def seen_by(client: Client, game: GameAtHand) -> GameAtHand:
    """Returns the game as callers of another client know it: its id and tokens are the same."""
    return GameAtHand(client, game.game_id, dict(game.tokens), game.host_token, dict(game.etags))


async def test_the_operator_changes_and_deletes_games_of_every_key(tmp_path: Path, store: Store) -> None:
    settings = server_settings(keys_file=keys_file(tmp_path, web=""), admin_listen="127.0.0.1:0")
    async with (
        running_server(store, settings) as (server, _),
        client_with_key(server.port, "web") as web,
        admin_at(server.admin_port) as admin,
    ):
        game = await web.new_game(players=3)
        await admin.KickPlayer(pb.KickPlayerRequest(game_id=game.game_id, seat=1))
        await admin.AbortGame(pb.AbortGameRequest(game_id=game.game_id))
        assert (await game.see()).state == game_pb2.GAME_STATE_ABORTED
        await admin.DeleteGame(pb.DeleteGameRequest(game_id=game.game_id))
        assert await reason(web.games.GetGame(gs.GetGameRequest(game_id=game.game_id))) == "GAME_NOT_FOUND"


async def test_a_call_needs_a_key_at_both_listeners_but_health_none(scene: Scene) -> None:
    assert await reason(scene.nobody.games.ListGames(gs.ListGamesRequest())) == "API_KEY_INVALID"
    async with grpc.aio.insecure_channel(f"127.0.0.1:{scene.server.validation_port}") as channel:
        own = Client(channel)
        request = vs.ListRulesetsRequest()
        assert await reason(own.validation.ListRulesets(request)) == "API_KEY_INVALID"
        assert await reason(own.validation.ListRulesets(request, metadata=((HEADER, "wrong"),))) == "API_KEY_INVALID"
        assert await reason(own.validation.ListRulesets(request, metadata=((HEADER, "web"),))) == ""
        for stub in (health_pb2_grpc.HealthStub(channel), health_pb2_grpc.HealthStub(scene.nobody.channel)):
            answer = await stub.Check(health_pb2.HealthCheckRequest())
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("listener", ["port", "validation_port"])
async def test_hostile_metadata_is_refused_and_no_key_is_logged_or_counted(
    tmp_path: Path, listener: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = "a-secret-that-nobody-logs"
    async with serving(tmp_path, memory_store(), lambda _: sent, web="") as scene:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{getattr(scene.server, listener)}") as channel:
            stub = Client(channel).validation
            right = (HEADER, sent)
            hostile: list[tuple[tuple[str, str | bytes], ...]] = [
                ((HEADER, ""),),
                ((HEADER, "x" * 4_000),),
                ((HEADER, f"{sent}, {sent}"),),
                (right, right),
                (right, (HEADER, "wrong")),
                ((f"{HEADER}-bin", sent.encode()),),
                (("authorization", sent),),
            ]
            for metadata in hostile:
                assert await reason(stub.ListRulesets(vs.ListRulesetsRequest(), metadata=metadata)) == "API_KEY_INVALID"
            assert await reason(stub.ListRulesets(vs.ListRulesetsRequest(), metadata=(right,))) == ""
        metrics = generate_latest(scene.server.metrics.registry).decode()
    out, err = capsys.readouterr()
    for shown in (out + err, metrics):
        assert "API_KEY_INVALID" in shown
        assert sent not in shown


async def test_a_key_calls_its_services_only(tmp_path: Path) -> None:
    async with serving(
        tmp_path, memory_store(), web='services = ["GameService"]', partner='services = ["ValidationService"]'
    ) as scene:
        assert await reason(scene.web.games.CreateGame(gs.CreateGameRequest())) == ""
        assert await reason(scene.partner.games.CreateGame(gs.CreateGameRequest())) == "API_KEY_NOT_ALLOWED"
        async with grpc.aio.insecure_channel(f"127.0.0.1:{scene.server.validation_port}") as channel:
            stub = Client(channel).validation
            request = vs.ListRulesetsRequest()
            assert await reason(stub.ListRulesets(request, metadata=((HEADER, "partner"),))) == ""
            assert await reason(stub.ListRulesets(request, metadata=((HEADER, "web"),))) == "API_KEY_NOT_ALLOWED"


async def test_a_key_sets_and_searches_its_labels_only(tmp_path: Path) -> None:
    async with serving(tmp_path, memory_store(), web='labels = ["league"]', partner="") as scene:
        for client, label, expected in (
            (scene.web, "league", ""),
            (scene.web, "region", "API_KEY_NOT_ALLOWED"),
            (scene.partner, "region", ""),
        ):
            labels = {label: "a"}
            public = gs.JoinOrCreateGameRequest(labels=labels, name="Ada", request_id=new_id())
            hidden = gs.JoinOrCreateGameRequest(operator_labels=labels, name="Ada", request_id=new_id())
            calls = [
                client.games.CreateGame(gs.CreateGameRequest(labels=labels)),
                client.games.CreateGame(gs.CreateGameRequest(operator_labels=labels)),
                client.games.JoinOrCreateGame(public),
                client.games.JoinOrCreateGame(hidden),
                client.games.ListGames(gs.ListGamesRequest(labels=labels)),
            ]
            assert [await reason(call) for call in calls] == [expected] * 5


# Rights

MAY_REISSUE = "reissue_seat_tokens = true"
MAY_SEARCH = "position_searches = true"
POSITION = an.Position(rack=as_tiles([1, 2, 3]), has_melded=True)
START = gs.StartPosition(
    seats=[gs.StartSeat(seat=1, rack=as_tiles([1, 2, 3])), gs.StartSeat(seat=2, rack=as_tiles([4]))], turn_seat=1
)


def record_text(preset: str, *moves: str, option: str = "") -> str:
    """Returns a record as text, with an option of its rules."""
    rules = [f"preset {preset}", f"option {option}" if option else "", "created 1800000000.000"]
    return "\n".join(["rummikub-record 1", *rules, "player 1 person Ada", "player 2 person Ben", *moves])


SEARCHES: dict[str, Callable[[Client], Any]] = {
    "SuggestTurn": lambda client: client.analysis.SuggestTurn(an.SuggestTurnRequest(position=POSITION)),
    "CoachTurn": lambda client: client.analysis.CoachTurn(an.CoachTurnRequest(position=POSITION)),
    "HasLegalTurn": lambda client: client.analysis.HasLegalTurn(an.HasLegalTurnRequest(position=POSITION)),
    "ArrangeTiles": lambda client: client.analysis.ArrangeTiles(an.ArrangeTilesRequest(tiles=POSITION.rack)),
    "BatchSuggestTurns": lambda client: client.analysis.BatchSuggestTurns(
        an.BatchSuggestTurnsRequest(positions=[POSITION])
    ),
    "ReviewGame": lambda client: client.records.ReviewGame(rs.ReviewGameRequest(record=A_RECORD)),
    "ImportRecord, rules that search": lambda client: client.records.ImportRecord(
        rs.ImportRecordRequest(text=record_text("SABRA", option="turn_voluntary_draw ONLY_IF_NO_PLAY"))
    ),
    "ImportRecord, a false finish": lambda client: client.records.ImportRecord(
        rs.ImportRecordRequest(text=record_text("OKEY", "4 3.000 1 misfinish"))
    ),
    "ValidateHand": lambda client: client.validation.ValidateHand(
        vs.ValidateHandRequest(indicator=as_tiles([1])[0], tiles=as_tiles(range(1, 15)))
    ),
    "CreateGame": lambda client: client.games.CreateGame(gs.CreateGameRequest(position=START, request_id=new_id())),
}
"""The RPCs that search what their caller sends; in a game that begins with a position, a bot and SuggestTurn do."""


@pytest.mark.parametrize("rpc", SEARCHES)
async def test_a_key_without_the_right_searches_no_position(tmp_path: Path, rpc: str) -> None:
    async with serving(tmp_path, memory_store(), web="", partner=MAY_SEARCH) as scene:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await SEARCHES[rpc](scene.web)
        info = error_info(refusal.value)
        assert (info.reason, dict(info.metadata)) == (
            "API_KEY_NOT_ALLOWED",
            {"kind": "right", "name": "position_searches"},
        )
        assert await reason(SEARCHES[rpc](scene.partner)) == ""


async def test_the_validation_listener_searches_no_hand_for_a_key_without_the_right(tmp_path: Path) -> None:
    async with serving(tmp_path, memory_store(), web="", partner=MAY_SEARCH) as scene:
        for key, expected in (("web", "API_KEY_NOT_ALLOWED"), ("partner", "")):
            async with client_with_key(scene.server.validation_port, key) as client:
                assert await reason(SEARCHES["ValidateHand"](client)) == expected
                assert await reason(client.validation.ValidateTurn(vs.ValidateTurnRequest(has_melded=True))) == ""


async def test_a_key_without_the_right_asks_about_its_own_games_and_plain_rules(tmp_path: Path) -> None:
    hints = options(hints=room_settings_pb2.HINTS_TURN)
    async with serving(tmp_path, memory_store(), web="", partner="") as scene:
        game = await scene.web.new_game(ruleset=hints)
        own = an.SuggestTurnRequest(game_id=game.game_id)
        abort = gs.AbortGameRequest(game_id=game.game_id)
        review = rs.ReviewGameRequest(game_id=game.game_id)
        explain = an.ExplainTurnRequest(table_after=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=POSITION.rack)]))
        assert await reason(scene.web.analysis.SuggestTurn(own, metadata=game.as_seat(1))) == ""
        assert await reason(scene.web.analysis.ExplainTurn(explain)) == ""
        assert await reason(scene.web.records.ImportRecord(rs.ImportRecordRequest(record=A_RECORD))) == ""
        assert await reason(scene.web.validation.ValidateTurn(vs.ValidateTurnRequest(has_melded=True))) == ""
        assert await reason(scene.web.games.AbortGame(abort, metadata=game.as_host())) == ""
        assert await reason(scene.web.records.ReviewGame(review)) == ""


def reissue(client: Client, game: GameAtHand, seat: int, request_id: str = "") -> Any:  # noqa: ANN401 - a call
    request = gs.ReissueSeatTokenRequest(game_id=game.game_id, seat=seat, request_id=request_id)
    return client.games.ReissueSeatToken(request)


@pytest.mark.parametrize("is_started", [False, True])
async def test_a_key_with_the_right_replaces_a_lost_token(
    tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str], *, is_started: bool
) -> None:
    async with serving(tmp_path, store, web=MAY_REISSUE, partner="") as scene:
        game = await scene.web.new_game(start=is_started)
        old, request_id = game.as_seat(2), new_id()
        seeing = gs.GetGameRequest(game_id=game.game_id)
        watch = scene.web.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id), metadata=old)
        await watch.read()
        reissued = await reissue(scene.web, game, 2, request_id)
        assert await reissue(scene.web, game, 2, request_id) == reissued
        assert (await next_change(watch)).events[0].seat_token_renewed.seat == 2
        assert await reason(watch) == "TOKEN_VOID"
        assert await reason(scene.web.games.GetGame(seeing, metadata=old)) == "TOKEN_VOID"
        seen = (await scene.web.games.GetGame(seeing, metadata=bearer(reissued.seat_token))).game
        assert (seen.seat, seen.revision, list(seen.rack)) == (2, reissued.game.revision, list(reissued.game.rack))
        assert (await game.see(1)).seat == 1
    out, err = capsys.readouterr()
    assert "ReissueSeatToken" in out + err
    assert not any(token in out + err for token in (reissued.seat_token, game.tokens[2]))


async def test_a_reissued_token_takes_a_reserved_seat(tmp_path: Path, store: Store) -> None:
    async with serving(tmp_path, store, web=MAY_REISSUE, partner="") as scene:
        game = await scene.web.new_game()
        await scene.web.games.AbortGame(gs.AbortGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
        again = await game.rematch(1)
        reissued = await reissue(scene.web, again, 2)
        assert (reissued.game.seat, len(reissued.game.reserved_seats)) == (0, 2)
        join = gs.JoinGameRequest(game_id=again.game_id, name="Ben", request_id=new_id())
        assert await reason(scene.web.games.JoinGame(join, metadata=game.as_seat(2))) == "TOKEN_VOID"
        joined = await scene.web.games.JoinGame(join, metadata=bearer(reissued.seat_token))
        assert (joined.seat, len(joined.game.reserved_seats)) == (2, 1)


async def test_only_the_games_key_with_the_right_replaces_tokens(tmp_path: Path, store: Store) -> None:
    refusal = ("API_KEY_NOT_ALLOWED", {"kind": "right", "name": "reissue_seat_tokens"})
    async with serving(tmp_path, store, web="", partner=MAY_REISSUE) as scene:
        game = await scene.web.new_game()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await reissue(scene.web, game, 2)
        assert (error_info(refused.value).reason, dict(error_info(refused.value).metadata)) == refusal
        assert await reason(reissue(scene.partner, game, 2)) == "GAME_NOT_FOUND"
        assert (await game.see(2)).seat == 2
    async with running_server(store) as (_, anyone):
        own = await anyone.new_game()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await reissue(anyone, own, 2)
        assert (error_info(refused.value).reason, dict(error_info(refused.value).metadata)) == refusal
        assert (await own.see(2)).seat == 2


async def test_tokens_are_reissued_at_a_pace(tmp_path: Path, clock: FakeClock) -> None:
    async with serving(tmp_path, memory_store(clock), web=MAY_REISSUE, partner="") as scene:
        game = await scene.web.new_game()
        clock.advance(60)
        assert [await reason(reissue(scene.web, game, 2)) for _ in range(SEAT_CHANGES)] == [""] * SEAT_CHANGES
        assert await refused(reissue(scene.web, game, 2)) == ("OVERLOADED", "seat_changes")


# Games

Ask = Callable[[GameAtHand], Any]


def usually(rpc: str) -> Ask:
    """Returns how a usual request of an RPC is sent."""

    def ask(game: GameAtHand) -> Awaitable[bytes]:
        request = usual_request(rpc, game.game_id, game.etag)
        return send_raw(game.client, METHODS[rpc], request.SerializeToString(), as_usual(rpc, game))

    return ask


QUESTIONS: dict[str, Ask] = {
    **{rpc: usually(rpc) for rpc, row in ROWS.items() if names_a_game(rpc) and not row.right},
    "GetGame as a seat": lambda game: game.see(1),
    "GetGame of a revision": lambda game: game.etag_at(1),
    "WatchGame as a seat": lambda game: game.client.games.WatchGame(
        gs.WatchGameRequest(game_id=game.game_id, etag=game.etag), metadata=game.as_seat(1)
    ),
    "PlayTurn, validated": lambda game: game.client.turns.PlayTurn(
        ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag, validate_only=True, draw=ts.DrawTile()),
        metadata=game.as_seat(1),
    ),
    "SuggestTurn": lambda game: game.client.analysis.SuggestTurn(
        an.SuggestTurnRequest(game_id=game.game_id), metadata=game.as_seat(1)
    ),
    "CoachTurn": lambda game: game.client.analysis.CoachTurn(
        an.CoachTurnRequest(game_id=game.game_id), metadata=game.as_seat(1)
    ),
    "ReviewGame": lambda game: game.client.records.ReviewGame(
        rs.ReviewGameRequest(game_id=game.game_id), metadata=game.as_seat(1)
    ),
}


async def test_a_game_does_not_exist_for_other_keys(scene: Scene) -> None:
    game = await scene.web.new_game(ruleset=UNLIMITED)
    theirs = seen_by(scene.partner, game)
    assert {name: await reason(ask(theirs)) for name, ask in QUESTIONS.items()} == dict.fromkeys(
        QUESTIONS, "GAME_NOT_FOUND"
    )
    assert (await game.see()).revision == 4
    await game.draw()


async def test_the_own_games_are_those_of_the_key(scene: Scene) -> None:
    game = await scene.web.new_game()
    request = gs.ListOwnGamesRequest(seats=[gs.OwnSeat(game_id=game.game_id, seat_token=game.tokens[2])])
    [own] = (await scene.web.games.ListOwnGames(request)).games
    [foreign] = (await scene.partner.games.ListOwnGames(request)).games
    assert (own.seat, own.game.game_id) == (2, game.game_id)
    refused = error_reason_pb2.GAME_NOT_FOUND
    assert foreign == gs.OwnGame(game_id=game.game_id, refusal=refused)


@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_caller_with_another_key_changes_nothing(
    tmp_path: Path, store: Store, clock: FakeClock, question: str
) -> None:
    async with serving(tmp_path, store, web="", partner="") as scene:
        game = await scene.web.new_game()
        clock.advance(OVERDUE_SECONDS)
        assert await reason(QUESTIONS[question](seen_by(scene.partner, game))) == "GAME_NOT_FOUND"
        record = (await store.games.load(game.game_id)).record
        assert record
        assert record.game.revision == 4, "the overdue turn was settled"
        assert await store.drafts.latest(game.game_id) is None
        assert (await game.see()).revision == 5


async def test_a_foreign_game_is_refused_as_a_missing_one(scene: Scene) -> None:
    game = seen_by(scene.partner, await scene.web.new_game())
    missing = seen_by(scene.partner, game)
    missing.game_id = "0" * 32
    details = []
    for asked in (game, missing):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await QUESTIONS["GetGame as a seat"](asked)
        details.append((refusal.value.code(), refusal.value.details(), error_info(refusal.value)))
    assert details[0] == details[1]


async def test_lists_join_codes_and_quick_play_find_the_own_games(scene: Scene) -> None:
    created = {}
    for name, client in (("web", scene.web), ("partner", scene.partner)):
        request = gs.JoinOrCreateGameRequest(name="Ada", request_id=new_id())
        created[name] = (await client.games.JoinOrCreateGame(request)).game
    assert created["web"].game_id != created["partner"].game_id
    for name, client in (("web", scene.web), ("partner", scene.partner)):
        listed = await client.games.ListGames(gs.ListGamesRequest())
        assert [game.game_id for game in listed.games] == [created[name].game_id]
        again = await client.games.JoinOrCreateGame(gs.JoinOrCreateGameRequest(name="Ben", request_id=new_id()))
        assert again.game.game_id == created[name].game_id
    code = gs.JoinGameRequest(join_code=created["web"].join_code, name="Eve", request_id=new_id())
    assert await reason(scene.partner.games.JoinGame(code)) == "JOIN_CODE_UNKNOWN"
    assert (await scene.web.games.JoinGame(code)).game.game_id == created["web"].game_id


async def test_a_list_pages_past_the_games_of_others_without_naming_them(scene: Scene) -> None:
    own = [(await scene.web.new_game(start=False)).game_id]
    others = [(await scene.partner.new_game(start=False)).game_id for _ in range(3)]
    own += [(await scene.web.new_game(start=False)).game_id]
    found: list[str] = []
    token = ""
    for _ in range(10):
        page = await scene.web.games.ListGames(gs.ListGamesRequest(page_size=1, page_token=token))
        found += [game.game_id for game in page.games]
        token = page.next_page_token
        if not token:
            break
    assert set(found) == set(own)
    assert not set(found) & set(others)


async def test_the_same_request_id_of_two_keys_is_two_requests(scene: Scene) -> None:
    request = gs.CreateGameRequest(request_id=new_id())
    first, second = [await client.games.CreateGame(request) for client in (scene.web, scene.partner)]
    assert first.game.game_id != second.game.game_id
    assert (await scene.web.games.CreateGame(request)) == first
    join = gs.JoinGameRequest(game_id=first.game.game_id, name="Ada", request_id=new_id())
    await scene.web.games.JoinGame(join)
    assert await reason(scene.partner.games.JoinGame(join)) == "GAME_NOT_FOUND", "nor the answer to the same request"


async def test_a_rematch_and_its_bots_belong_to_the_key(scene: Scene) -> None:
    game = await scene.web.new_game(players=1, start=False, ruleset=UNLIMITED)
    await scene.web.games.AddBot(
        gs.AddBotRequest(game_id=game.game_id, level=game_pb2.BOT_LEVEL_EASY, request_id=new_id()),
        metadata=bearer(game.host_token),
    )
    await game.start()
    if (await game.see()).turn.seat == 1:
        await game.draw()
    while (await game.see()).turn.seat != 1:
        pass  # the bot acts
    await scene.web.games.AbortGame(
        gs.AbortGameRequest(game_id=game.game_id, request_id=new_id()), metadata=bearer(game.host_token)
    )
    rematch = gs.GetGameRequest(game_id=(await game.rematch(1)).game_id)
    assert await reason(scene.web.games.GetGame(rematch)) == ""
    assert await reason(scene.partner.games.GetGame(rematch)) == "GAME_NOT_FOUND"


async def test_games_without_a_key_and_with_one_are_apart_when_keys_are_turned_off(tmp_path: Path) -> None:
    store = memory_store()
    async with serving(tmp_path, store, web="") as scene:
        game = await scene.web.new_game()
    async with running_server(store) as (_, anyone):
        assert await reason(QUESTIONS["GetGame"](seen_by(anyone, game))) == "GAME_NOT_FOUND"
        assert (
            list((await anyone.games.ListGames(gs.ListGamesRequest(states=[game_pb2.GAME_STATE_PLAYING]))).games) == []
        )
        own = await anyone.new_game()
    async with serving(tmp_path, store, web="") as scene:
        assert await reason(QUESTIONS["GetGame"](seen_by(scene.web, own))) == "GAME_NOT_FOUND"
        assert (await seen_by(scene.web, game).see()).revision == 4


async def test_a_game_keeps_its_key_in_the_store_and_players_do_not_see_it(scene: Scene) -> None:
    game = await scene.web.new_game()
    record = (await scene.store.games.load(game.game_id)).record
    assert record is not None
    assert record.listing.key == "web"
    assert decode_record(encode_record(record)) == record
    assert b"web" not in (await game.see()).SerializeToString()


Refused = tuple[str, str]
"""The reason and the limit of a refused call; empty for an answer."""


async def refused(call: Any) -> Refused:  # noqa: ANN401 - a call of any kind
    try:
        await (call.read() if isinstance(call, grpc.aio.UnaryStreamCall | grpc.aio.StreamStreamCall) else call)
    except grpc.aio.AioRpcError as error:
        info = error_info(error)
        return info.reason, info.metadata["limit"]
    return "", ""


async def open_stream(client: Client, key: str) -> "grpc.aio.StreamStreamCall[Any, Any]":
    """Returns a stream that has answered a turn."""
    stream = client.validation.StreamValidateTurns(metadata=((HEADER, key),))
    await stream.write(vs.StreamValidateTurnsRequest(turn=vs.ValidateTurnRequest(has_melded=True)))
    await stream.read()
    return stream


async def call_beside_a_stream(client: Client, key: str) -> Refused:
    stream = await open_stream(client, key)
    end = await refused(client.validation.ListRulesets(vs.ListRulesetsRequest()))
    stream.cancel()
    return end


async def second_stream(client: Client, key: str) -> Refused:
    stream = await open_stream(client, key)
    second = client.validation.StreamValidateTurns(metadata=((HEADER, key),))
    await second.done_writing()
    end = await refused(second)
    stream.cancel()
    return end


async def second_watch(client: Client, _key: str) -> Refused:
    request = gs.WatchGameRequest(game_id=(await client.new_game()).game_id)
    watch = client.games.WatchGame(request)
    await watch.read()
    end = await refused(client.games.WatchGame(request))
    watch.cancel()
    return end


async def search(client: Client, _key: str) -> Refused:
    position = an.Position(rack=as_tiles([1]), has_melded=True)
    return await refused(client.analysis.HasLegalTurn(an.HasLegalTurnRequest(position=position)))


async def second_game(client: Client, _key: str) -> Refused:
    await client.games.CreateGame(gs.CreateGameRequest())
    return await refused(client.games.CreateGame(gs.CreateGameRequest()))


async def second_guess(client: Client, _key: str) -> Refused:
    guess = gs.JoinGameRequest(join_code="222222", name="Ada", request_id=new_id())
    assert await reason(client.games.JoinGame(guess)) == "JOIN_CODE_UNKNOWN"
    return await refused(client.games.JoinGame(guess))


async def draft(client: Client, _key: str) -> Refused:
    return await refused((await client.new_game(ruleset=UNLIMITED)).save_draft())


async def change(client: Client, _key: str) -> Refused:
    created = await client.games.CreateGame(gs.CreateGameRequest())
    return await refused(client.games.JoinGame(gs.JoinGameRequest(game_id=created.game.game_id, name="Ada")))


QUOTA_TESTS: dict[str, tuple[int, Callable[[Client, str], Awaitable[Refused]], Refused]] = {
    "calls": (1, call_beside_a_stream, ("OVERLOADED", "key_calls")),
    "streams": (1, second_stream, ("OVERLOADED", "key_streams")),
    "watches": (1, second_watch, ("OVERLOADED", "key_watches")),
    "searches": (0, search, ("ANALYSIS_BUSY", "")),
    "games_per_minute": (1, second_game, ("TOO_MANY_GAMES", "")),
    "join_guesses_per_minute": (1, second_guess, ("TOO_MANY_GUESSES", "")),
    "drafts_per_second": (0, draft, ("OVERLOADED", "key_drafts")),
    "changes_per_second": (0, change, ("OVERLOADED", "key_changes")),
}
"""For each quota: a value, calls of which the last exceeds it, and how that is refused."""


@pytest.mark.parametrize(
    ("quota", "listener"),
    [*((quota, "port") for quota in QUOTAS), ("calls", "validation_port"), ("streams", "validation_port")],
)
async def test_a_quota_of_a_key_holds_for_its_callers_only(tmp_path: Path, quota: str, listener: str) -> None:
    value, exceed, expected = QUOTA_TESTS[quota]
    async with serving(tmp_path, memory_store(), web=f"{MAY_SEARCH}\n{quota} = {value}", partner=MAY_SEARCH) as scene:
        port = getattr(scene.server, listener)
        async with client_with_key(port, "web") as web, client_with_key(port, "partner") as partner:
            assert await exceed(web, "web") == expected
            own = ("JOIN_CODE_UNKNOWN", "") if quota == "join_guesses_per_minute" else ("", "")
            assert await exceed(partner, "partner") == own
        labels = dict(zip(("reason", "limit"), expected, strict=True))
        assert scene.server.metrics.registry.get_sample_value("rummikub_refused_calls_total", labels) == 1


async def test_a_server_reads_a_changed_file(tmp_path: Path) -> None:
    async with serving(tmp_path, memory_store(), web="") as scene:
        assert await reason(scene.partner.games.ListGames(gs.ListGamesRequest())) == "API_KEY_INVALID"
        keys_file(tmp_path, partner="")
        while await reason(scene.partner.games.ListGames(gs.ListGamesRequest())):
            pass
        assert await reason(scene.web.games.ListGames(gs.ListGamesRequest())) == "API_KEY_INVALID"


async def test_the_clients_of_python_send_a_key(tmp_path: Path) -> None:
    async with serving(tmp_path, memory_store(), web="") as scene:
        for port in (scene.server.port, scene.server.validation_port):
            turn = vs.StreamValidateTurnsRequest(turn=vs.ValidateTurnRequest(has_melded=True), correlation_id="1")
            async with aio.Rummikub(f"127.0.0.1:{port}", api_key="web") as client:
                assert (await client.validation.ListRulesets(vs.ListRulesetsRequest())).rulesets
                answers = client.validation.StreamValidateTurns(iter([turn]))
                assert [answer.correlation_id async for answer in answers] == ["1"]
            assert await asyncio.to_thread(answered_in_a_thread, port, turn) == ["1"]
        async with aio.Rummikub(f"127.0.0.1:{scene.server.port}", api_key="web") as client:
            created = await client.games.CreateGame(gs.CreateGameRequest())
            seated = client.seated(created.host_token)
            game_id = created.game.game_id
            assert (await seated.games.GetGame(gs.GetGameRequest(game_id=game_id))).game.game_id == game_id
            async with seated.watch(game_id) as watch:
                assert (await anext(watch)).HasField("snapshot")
            assert await reason(scene.nobody.games.GetGame(gs.GetGameRequest(game_id=game_id))) == "API_KEY_INVALID"


def answered_in_a_thread(port: int, turn: vs.StreamValidateTurnsRequest) -> list[str]:
    """Returns the answers to a stream of one turn by the client for threads, which sends the key too."""
    with Rummikub(f"127.0.0.1:{port}", api_key="web") as client:
        assert client.validation.ListRulesets(vs.ListRulesetsRequest()).rulesets
        return [answer.correlation_id for answer in client.validation.StreamValidateTurns(iter([turn]))]
