"""A request with more submessages than it may have is refused before it is decoded."""

import asyncio
from collections.abc import Callable

import grpc
import grpc.aio
import pytest
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from hypothesis import given
from hypothesis import strategies as st

from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import meld_pb2, record_pb2
from rummikub.v1 import puzzle_service_pb2 as pz
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.codec.fields import Most, decode
from service.codec.submessages import first_excess, numbers_of
from service.composition import Tuning
from service.errors import InvalidRequest
from service.runtime.refusal_pace import Pacing
from support.harness import Client, error_info, memory_store, running_server, server_settings, status_details

MANY = 130_000
"""Empty submessages, of two bytes each."""


def melds() -> list[meld_pb2.Meld]:
    return [meld_pb2.Meld()] * MANY


def record() -> record_pb2.GameRecord:
    return record_pb2.GameRecord(moves=[record_pb2.RecordedMove()] * MANY)


REQUESTS: dict[str, tuple[str, Callable[[], Message]]] = {
    "AnalysisService/SuggestTurn": (
        "position.table",
        lambda: an.SuggestTurnRequest(position=an.Position(table=meld_pb2.Table(melds=melds()))),
    ),
    "AnalysisService/CoachTurn": (
        "turn.table",
        lambda: an.CoachTurnRequest(turn=an.CoachedTurn(table=meld_pb2.Table(melds=melds()))),
    ),
    "AnalysisService/HasLegalTurn": (
        "position.table",
        lambda: an.HasLegalTurnRequest(position=an.Position(table=meld_pb2.Table(melds=melds()))),
    ),
    "AnalysisService/BatchSuggestTurns": (
        "positions",
        lambda: an.BatchSuggestTurnsRequest(positions=[an.Position()] * MANY),
    ),
    "AnalysisService/ExplainTurn": (
        "table_after",
        lambda: an.ExplainTurnRequest(table_after=meld_pb2.Table(melds=melds())),
    ),
    "PuzzleService/CheckPuzzle": (
        "table_after",
        lambda: pz.CheckPuzzleRequest(number=1, table_after=meld_pb2.Table(melds=melds())),
    ),
    "RecordService/ImportRecord": ("record.moves", lambda: rs.ImportRecordRequest(record=record())),
    "RecordService/ReviewGame": ("record.moves", lambda: rs.ReviewGameRequest(record=record())),
    "TurnService/PlayTurn": (
        "play.table",
        lambda: ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=melds()))),
    ),
    "ValidationService/ValidateTurn": (
        "table_after",
        lambda: vs.ValidateTurnRequest(table_after=meld_pb2.Table(melds=melds())),
    ),
    "ValidationService/ValidateMelds": ("melds", lambda: vs.ValidateMeldsRequest(melds=melds())),
    "ValidationService/BatchValidateTurns": (
        "turns",
        lambda: vs.BatchValidateTurnsRequest(turns=[vs.ValidateTurnRequest()] * MANY),
    ),
    "ValidationService/BatchValidateTurns, a turn": (
        "turns[0].table_before",
        lambda: vs.BatchValidateTurnsRequest(
            turns=[vs.ValidateTurnRequest(table_before=meld_pb2.Table(melds=melds()))]
        ),
    ),
}


UNKNOWN_FIELD = b"\xf8\x3f\x01"


@pytest.mark.parametrize(
    ("rpc", "data"),
    [
        ("GameService/CreateGame", gs.CreateGameRequest(labels=dict.fromkeys(map(str, range(5_000)), ""))),
        (
            "RecordService/FormatPosition",
            rs.FormatPositionRequest(position=an.Position(table=meld_pb2.Table(melds=melds()))),
        ),
        ("GameService/SetReady", UNKNOWN_FIELD * 80_000),
    ],
    ids=["a map's entries", "melds", "unknown fields"],
)
async def test_small_requests_with_many_fields_are_refused(client: Client, rpc: str, data: Message | bytes) -> None:
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = client.channel.unary_unary(f"/rummikub.v1.{rpc}")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(data if isinstance(data, bytes) else data.SerializeToString())
    assert error_info(refused.value).reason == "MALFORMED_REQUEST"


@pytest.mark.parametrize("rpc", REQUESTS)
async def test_too_many_submessages_are_refused_with_their_field(client: Client, rpc: str) -> None:
    field, make = REQUESTS[rpc]
    method = f"/rummikub.v1.{rpc.partition(',')[0]}"
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = client.channel.unary_unary(method)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(make().SerializeToString(), metadata=(("authorization", f"Bearer {'0' * 43}"),))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    bad = error_details_pb2.BadRequest()
    assert any(detail.Unpack(bad) for detail in status_details(refused.value).details)
    assert [violation.field for violation in bad.field_violations] == [field]


@pytest.mark.parametrize(
    ("rpc", "data"),
    [
        (
            "TurnService/PlayTurn",
            ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=melds()))).SerializeToString(),
        ),
        ("GameService/SetReady", UNKNOWN_FIELD * 80_000),
    ],
    ids=["melds", "unknown fields"],
)
async def test_refusals_of_such_requests_are_paced(rpc: str, data: bytes) -> None:
    hourly = Tuning(Pacing(per_second=1 / 3_600, at_once=0))
    labels = {"method": f"/rummikub.v1.{rpc}", "code": "INVALID_ARGUMENT"}
    settings = server_settings(peer_share=0.5)
    async with running_server(memory_store(), settings, tuning=hourly) as (server, client):
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = client.channel.unary_unary(f"/rummikub.v1.{rpc}")
        waiting = call(data, metadata=(("authorization", f"Bearer {'0' * 43}"),))
        async with asyncio.timeout(20):
            while not server.metrics.registry.get_sample_value("rummikub_calls_total", labels):
                await client.games.ListGames(gs.ListGamesRequest())
        await client.games.ListGames(gs.ListGamesRequest())
        assert not waiting.done()
        waiting.cancel()


def test_a_request_with_too_many_submessages_is_not_decoded() -> None:
    decoded: list[bytes] = []

    class Request:
        DESCRIPTOR = ts.PlayTurnRequest.DESCRIPTOR
        FromString = staticmethod(decoded.append)

    data = REQUESTS["TurnService/PlayTurn"][1]().SerializeToString()
    with pytest.raises(InvalidRequest):
        decode(Request, data, Most("play.table.melds", 128))  # type: ignore[type-var]  # it stands for a message's type
    assert not decoded


UNKNOWN = st.sampled_from(
    [b"\xf8\x3f\x01", b"\xf9\x3f" + bytes(8), b"\xfa\x3f\x03abc", b"\xfb\x3f\xfc\x3f", b"\xfd\x3f" + bytes(4)]
)


@given(
    parts=st.lists(st.one_of(UNKNOWN, st.integers(0, 4)), max_size=12),
    most=st.integers(0, 12),
    cut=st.integers(0, 3),
)
def test_the_count_is_that_of_the_decoded_message(parts: list[bytes | int], most: int, cut: int) -> None:
    """Parts of a singular message are merged, and unknown fields of every wire type may be between them."""
    data = b""
    for part in parts:
        table = [meld_pb2.Meld()] * part if isinstance(part, int) else []
        data += (
            part
            if isinstance(part, bytes)
            else ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=table))).SerializeToString()
        )
    numbers = numbers_of(ts.PlayTurnRequest, "play.table.melds")
    count = len(ts.PlayTurnRequest.FromString(data).play.table.melds)
    assert first_excess(data, {numbers: most}) == (numbers if count > most else None)
    first_excess(data[: len(data) - cut], {numbers: most})  # malformed bytes are no error
