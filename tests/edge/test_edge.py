"""The web edge before a live service: gRPC-Web, JSON, the page, limits, and what happens in trouble."""

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from google.rpc import status_pb2

from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import validation_service_pb2 as vs
from rummikub.v1.game_service_pb2_grpc import GameServiceStub
from rummikub.v1.validation_service_pb2_grpc import ValidationServiceStub
from rummikub.v1.violation_pb2 import Refusal
from support.edge import Web, decoded_details, framed, running_edge, running_web, unframed
from tools.edge_config import PAGE_FILES
from tools.server_process import from_another_address
from tools.servers import free_port

pytestmark = pytest.mark.asyncio(loop_scope="module")
UNKNOWN = "0" * 32


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    folder = tmp_path_factory.mktemp("edge")
    async with running_web(folder, stream_idle_timeout="2s") as web:
        yield web


async def started_game(web: Web) -> tuple[str, str, str]:
    """Returns the id of a game against a bot, Ann's token, and the etag; all by JSON."""
    created = (await web.edge.call("/v1/games", {})).json
    game_id = created["game"]["gameId"]
    ann = (await web.edge.call(f"/v1/games/{game_id}:join", {"name": "Ann"}, created["hostToken"])).json
    token = ann["seatToken"]
    await web.edge.call(f"/v1/games/{game_id}:addBot", {"level": "BOT_LEVEL_EASY"}, token)
    started = (await web.edge.call(f"/v1/games/{game_id}:start", {}, token)).json
    return game_id, token, started["game"]["etag"]


async def test_a_call_by_grpc_web(web: Web) -> None:
    answer, messages, trailers = await web.edge.call_grpc_web("GameService/CreateGame", gs.CreateGameRequest())
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/grpc-web+proto"
    assert trailers["grpc-status"] == "0"
    assert gs.CreateGameResponse.FromString(messages[0]).host_token


async def test_a_refusal_by_grpc_web_has_its_details(web: Web) -> None:
    answer, _, trailers = await web.edge.call_grpc_web("GameService/GetGame", gs.GetGameRequest(game_id=UNKNOWN))
    status = status_pb2.Status.FromString(decoded_details({**answer.headers, **trailers}))
    refusals = [detail for detail in status.details if detail.Is(Refusal.DESCRIPTOR)]
    assert len(refusals) == 1


async def test_a_call_by_plain_grpc(web: Web) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{web.edge.port}") as channel:
        created = await GameServiceStub(channel).CreateGame(gs.CreateGameRequest(), timeout=5)
    assert created.host_token


async def test_an_illegal_turn_by_json_is_refused_with_all_violations(web: Web) -> None:
    while True:  # until a deal in which the bot does not start
        game_id, token, etag = await started_game(web)
        turn = {"etag": etag, "play": {"table": {"melds": [{"tiles": ["TILE_RED_1", "TILE_RED_2"]}]}}}
        answer = await web.edge.call(f"/v1/games/{game_id}:playTurn", turn, token)
        if answer.refusal["reason"] not in {"NOT_YOUR_TURN", "STALE_STATE"}:
            break
    assert answer.status == 400
    assert answer.json["code"] == grpc.StatusCode.FAILED_PRECONDITION.value[0]
    assert "MELD_TOO_SHORT" in [violation["reason"] for violation in answer.refusal["violations"]]


async def test_a_suggested_turn_by_json_is_played_without_the_field_of_the_path(web: Web) -> None:
    game_id, token, _ = await started_game(web)
    turn = None
    while turn is None:  # until the bot has played, if it starts
        turn = (await web.edge.call(f"/v1/games/{game_id}:suggestTurn", {}, token)).json.get("turn")
    assert turn.pop("gameId") == game_id
    assert (await web.edge.call(f"/v1/games/{game_id}:playTurn", turn, token)).status == 200


async def test_a_puzzle_by_json_is_solved_by_its_solution(web: Web) -> None:
    today = (await web.edge.call("/v1/puzzles:ofTheDay?difficulty=PUZZLE_DIFFICULTY_EASY")).json
    assert "solution" not in today
    number = today["puzzle"]["number"]
    unchanged = {"table_after": today["puzzle"]["position"]["table"]}
    assert "isSolved" not in (await web.edge.call(f"/v1/puzzles/{number}:check", unchanged)).json
    revealed = (await web.edge.call(f"/v1/puzzles/{number}?revealSolution=true")).json
    assert revealed["puzzle"] == today["puzzle"]
    solution = {"table_after": revealed["solution"]["tableAfter"]}
    assert (await web.edge.call(f"/v1/puzzles/{number}:check", solution)).json["isSolved"] is True


async def test_a_token_by_json_shows_the_rack_of_its_seat_only(web: Web) -> None:
    game_id, token, _ = await started_game(web)
    own = (await web.edge.call(f"/v1/games/{game_id}", token=token)).json["game"]
    spectator = (await web.edge.call(f"/v1/games/{game_id}")).json["game"]
    assert len(own["rack"]) >= 14
    assert "rack" not in spectator


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/v1/nothing", None, 404, 5),
        ("/nothing", None, 404, 5),
        (f"/v1/games/{UNKNOWN}", None, 404, 5),
        (f"/v1/games/{UNKNOWN}:fly", {}, 404, 5),
        ("/v1/games?color=1", None, 400, 3),
        ("/v1/games?page_size=x", None, 400, 3),
        ("/v1/games", {"ruleset": {"melding": {"preset": "NONE"}}}, 400, 3),
        ("/v1/games", [], 400, 3),
        ("/v1/games/x:watch", None, 400, 3),
    ],
)
async def test_errors_are_json(web: Web, path: str, body: object, status: int, code: int) -> None:
    answer = await web.edge.call(path, body)
    assert (answer.status, answer.json["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["message"]


async def test_validation_goes_to_its_listener(web: Web, tmp_path: Path) -> None:
    nowhere = free_port()
    with running_edge(tmp_path, free_port(), nowhere, web.service.validation_port) as edge:
        await edge.listens()
        answer = await edge.call(
            "/v1/turns:validate", {"hasMelded": True, "tableAfter": {"melds": [{"tiles": [1, 2]}]}, "rack": [1, 2]}
        )
        assert [violation["reason"] for violation in answer.json["violations"]] == ["MELD_TOO_SHORT"]
        _, messages, _ = await edge.call_grpc_web("ValidationService/ListRulesets", vs.ListRulesetsRequest())
        assert vs.ListRulesetsResponse.FromString(messages[0]).rulesets
        assert (await edge.call("/v1/games")).status == 503


async def test_a_stream_of_requests_by_grpc(web: Web) -> None:
    turn = vs.ValidateTurnRequest(has_melded=True)
    requests = [vs.StreamValidateTurnsRequest(turn=turn, correlation_id=str(number)) for number in range(3)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{web.edge.port}") as channel:
        answers = [
            answer.correlation_id async for answer in ValidationServiceStub(channel).StreamValidateTurns(iter(requests))
        ]
    assert answers == ["0", "1", "2"]


async def test_a_watch_by_grpc_web_outlives_the_idle_timeout_by_its_heartbeats(web: Web) -> None:
    game_id, _, _ = await started_game(web)
    body = framed(gs.WatchGameRequest(game_id=game_id))
    opened = time.monotonic()
    async with web.edge.watch(
        "POST", "/rummikub.v1.GameService/WatchGame", body, content_type="application/grpc-web+proto"
    ) as reader:
        beats = 0
        while beats < 6:
            assert await reader.readline()  # the size of a chunk
            messages, _ = unframed(await framed_chunk(reader))
            updates = [gs.WatchGameResponse.FromString(message) for message in messages]
            beats += sum(update.WhichOneof("update") == "heartbeat" for update in updates)
    assert time.monotonic() - opened > 2.4  # more than the idle timeout of 2 s


async def framed_chunk(reader: asyncio.StreamReader) -> bytes:
    """Reads one message of a gRPC-Web stream, and the end of its chunk."""
    head = await reader.readexactly(5)
    data = head + await reader.readexactly(int.from_bytes(head[1:]))
    await reader.readline()
    return data


async def test_a_watch_by_json_is_a_stream_of_events(web: Web) -> None:
    game_id, _, _ = await started_game(web)
    kinds = []
    async with web.edge.watch("GET", f"/v1/games/{game_id}:watch?content=WATCH_CONTENT_GAMES") as reader:
        while "heartbeat" not in kinds:
            line = await reader.readline()
            if line.startswith(b"data: "):
                kinds += json.loads(line.removeprefix(b"data: "))
    assert kinds[0] == "snapshot"


async def test_a_silent_stream_is_ended(tmp_path: Path) -> None:
    async with running_web(tmp_path, stream_idle_timeout="0.3s") as short:
        game_id, _, _ = await started_game(short)
        async with short.edge.watch("GET", f"/v1/games/{game_id}:watch") as reader:
            await asyncio.wait_for(reader.read(), 10)  # to its end: the heartbeat comes every 0.5 s


async def test_a_deadline_of_the_client_goes_to_the_service(web: Web) -> None:
    game_id, _, _ = await started_game(web)
    watch = gs.WatchGameRequest(game_id=game_id)
    answer, _, trailers = await web.edge.call_grpc_web("GameService/WatchGame", watch, grpc_timeout="700m")
    assert answer.status == 200
    assert trailers["grpc-status"] == str(grpc.StatusCode.DEADLINE_EXCEEDED.value[0])


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("grpc_previous_rpc_attempts", "many", "1"),
        ("grpc_trace_bin", "*", "AAAA"),
        ("grpc_encoding", "zip", "identity"),
        ("grpc_timeout", "-1S", "30S"),
        ("grpc_timeout", "30", "30S"),
        ("grpc_timeout", "999999999S", "30S"),
    ],
)
async def test_a_header_that_grpc_cannot_parse_harms_no_call(web: Web, name: str, wrong: str, right: str) -> None:
    """All clients share the edge's connections. The library refused later calls of others that sent the same header."""
    for value in (wrong, right, right):
        answer, _, trailers = await web.edge.call_grpc_web(
            "GameService/CreateGame", gs.CreateGameRequest(), **{name: value}
        )
        assert {**answer.headers, **trailers}["grpc-status"].strip() == "0", value


async def test_a_preflight_of_a_local_page_is_allowed(web: Web) -> None:
    origin = "http://localhost:5173"
    for path in ("/rummikub.v1.GameService/CreateGame", "/v1/games"):
        answer = await web.edge.send("OPTIONS", path, origin=origin, access_control_request_method="POST")
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == origin
        assert "authorization" in answer.headers["access-control-allow-headers"]
        elsewhere = await web.edge.send(
            "OPTIONS", path, origin="https://elsewhere.example", access_control_request_method="POST"
        )
        assert "access-control-allow-origin" not in elsewhere.headers
    answer = await web.edge.call("/v1/games", origin=origin)
    assert answer.headers["access-control-allow-origin"] == origin
    assert "grpc-status-details-bin" in answer.headers["access-control-expose-headers"]


async def test_a_large_body_is_refused(web: Web) -> None:
    answer = await web.edge.call("/v1/positions:parse", {"text": "a" * 1_100_000})
    assert (answer.status, answer.json["code"]) == (413, 8)
    for size, status, code in ((300_000, 400, 3), (600_000, 429, 8)):
        answer = await web.edge.call("/v1/positions:parse", {"text": "a" * size})
        assert (answer.status, answer.json["code"]) == (status, code)
    many = vs.ListMessagesRequest(language="a" * 300_000)
    refused, _, trailers = await web.edge.call_grpc_web("ValidationService/ListMessages", many)
    assert {**refused.headers, **trailers}["grpc-status"].strip() == "3"


async def test_the_page_is_served_with_its_headers(web: Web) -> None:
    scripts = [f"/{name}" for name in PAGE_FILES if name.endswith(".js")]
    for path, kind in (
        ("/", "text/html"),
        ("/app.css", "text/css"),
        *((file, "application/javascript") for file in scripts),
    ):
        answer = await web.edge.send("GET", path)
        assert answer.status == 200
        assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-cache"
    assert b"<title>" in (await web.edge.send("GET", "/")).body


async def test_large_answers_are_compressed(web: Web) -> None:
    for path in ("/openapi.json", "/v1/rulesets"):
        answer = await web.edge.send("GET", path, accept_encoding="gzip")
        assert answer.headers["content-encoding"] == "gzip"
        assert json.loads(gzip.decompress(answer.body))


async def test_a_request_id_of_the_client_is_returned(web: Web) -> None:
    assert (await web.edge.call("/v1/games", x_request_id="my-request-1")).headers["x-request-id"] == "my-request-1"


async def test_a_restart_of_the_service_is_survived(tmp_path: Path) -> None:
    async with running_web(tmp_path) as web:
        assert (await web.edge.call("/v1/rulesets")).status == 200
        await web.service.terminate()
        away = await web.edge.call("/v1/games")
        assert (away.status, away.json["code"]) == (503, 14)
        await web.service.start_again()
        assert (await web.edge.call("/v1/games")).status == 200
        await web.edge.ready()


async def test_the_service_limits_each_client_of_the_edge_by_itself(tmp_path: Path) -> None:
    settings = {"RUMMIKUB_GAMES_PER_MINUTE": "1", "RUMMIKUB_TRUSTED_PROXIES": "127.0.0.1"}
    async with running_web(tmp_path, settings=settings) as web, from_another_address(web.edge.port) as port:
        other = replace(web.edge, port=port)
        assert [(await web.edge.call("/v1/games", {})).status for _ in range(2)] == [200, 429]
        assert [(await other.call("/v1/games", {})).status for _ in range(2)] == [200, 429]
        assert (await other.call("/v1/games", {}, x_forwarded_for="192.0.2.1")).status == 429, "it cannot pretend"


async def test_calls_of_one_address_are_limited(tmp_path: Path) -> None:
    async with running_web(tmp_path, limited=True) as web:
        began, passed, join = time.monotonic(), 0, {"joinCode": "ABCDEF", "name": "Ann"}
        while (answer := await web.edge.call("/v1/games:join", join)).status == 400:
            passed += 1
        assert 60 <= passed <= 61 + time.monotonic() - began  # one more each second
        assert answer.status == 429
        assert answer.json == {"code": 8, "message": "too many requests from this address; retry later"}
        assert (await web.edge.call("/v1/games", {})).status == 200
        for _ in range(passed):  # as above
            refused, _, _ = await web.edge.call_grpc_web("GameService/JoinGame", gs.JoinGameRequest(join_code="ABCDEF"))
            if refused.headers.get("grpc-status") == "14":  # clients retry later
                return
    raise AssertionError("no call of gRPC-Web is refused")
