"""StreamValidateTurns: a conversation about turns."""

import asyncio

import grpc.aio
import pytest

from rummikub.v1 import error_reason_pb2, meld_pb2, tile_pb2
from rummikub.v1 import validation_service_pb2 as vs
from support.harness import error_info, field_violations, memory_store, running_server, server_settings
from tools.games import melding_rules

RUN = meld_pb2.Meld(tiles=[tile_pb2.TILE_RED_3, tile_pb2.TILE_RED_4, tile_pb2.TILE_RED_5])


def asked(correlation_id: str, threshold: int | None = None) -> vs.StreamValidateTurnsRequest:
    """An initial meld of 12 points, with the threshold stated or not."""
    turn = vs.ValidateTurnRequest(table_after=meld_pb2.Table(melds=[RUN]), rack=RUN.tiles, has_melded=False)
    if threshold is not None:
        turn.ruleset.CopyFrom(melding_rules(initial_meld_threshold=threshold))
    return vs.StreamValidateTurnsRequest(turn=turn, correlation_id=correlation_id)


async def test_turns_are_judged_in_order_under_the_ruleset_stated_last() -> None:
    async with running_server(memory_store()) as (_, client):
        stream = client.validation.StreamValidateTurns(
            iter([asked("default"), asked("stated", 12), asked("kept"), asked("back", 30)])
        )
        answers = [answer async for answer in stream]
    assert [answer.correlation_id for answer in answers] == ["default", "stated", "kept", "back"]
    below = error_reason_pb2.INITIAL_MELD_BELOW_THRESHOLD
    assert [[v.reason for v in answer.turn.violations] for answer in answers] == [[below], [], [], [below]]


async def test_a_malformed_turn_ends_the_stream_after_the_answers_before_it() -> None:
    async with running_server(memory_store()) as (_, client):
        malformed = asked("malformed")
        malformed.turn.rack.append(tile_pb2.TILE_UNSPECIFIED)
        stream = client.validation.StreamValidateTurns(iter([asked("first"), malformed, asked("never")]))
        answer = await stream.read()
        assert isinstance(answer, vs.StreamValidateTurnsResponse)
        assert answer.correlation_id == "first"
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await stream.read()
        assert error_info(refusal.value).reason == "TILE_UNKNOWN"
        assert field_violations(refusal.value) == ["turn.rack[3]"]


async def test_a_stopping_server_ends_streams_that_wait_for_their_client() -> None:
    async with running_server(memory_store(), server_settings(drain_seconds=60)) as (server, client):
        stream = client.validation.StreamValidateTurns()
        await stream.write(asked("first"))
        answer = await stream.read()
        assert isinstance(answer, vs.StreamValidateTurnsResponse)
        waiting = asyncio.ensure_future(stream.read())
        await asyncio.wait_for(server.stop(), 20)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await waiting
        assert error_info(refusal.value).reason == "SHUTTING_DOWN"
