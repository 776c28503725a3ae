"""Turns whose rules search for long."""

import asyncio
import os
import signal
import sys

import grpc.aio
import pytest

from load.corpus.hostile_turns import read
from load.floods.attacks import slow_turn
from rummikub.v1 import validation_service_pb2 as vs
from service.analysis.pool import COMMAND
from service.codec.turn_validator import Validator
from service.runtime.slow_calls import completed
from service.server import Server
from support.harness import Client, from_another_address, memory_store, running_server, server_settings

pytestmark = pytest.mark.slow

REQUESTS = [slow_turn(hostile) for hostile in read()[:5]]
PLAIN_BATCH = vs.BatchValidateTurnsRequest(turns=[vs.ValidateTurnRequest(has_melded=True)])
SOON_SECONDS = 8.0
"""Less than the process may take (pool.GRACE_SECONDS)."""


@pytest.mark.parametrize(
    ("command", "count"),
    [
        pytest.param(COMMAND, 1, id="process"),
        pytest.param(("false",), 0, id="no process"),
        pytest.param((sys.executable, "-c", "import time; time.sleep(600)"), 0, id="no answer"),
    ],
)
async def test_complex_turns_are_answered_with_and_without_their_process(command: tuple[str, ...], count: int) -> None:
    async with running_server(memory_store(), analysis_command=command) as (server, client):
        if command != COMMAND:
            server.complex_turns.judging_seconds = server.complex_turns.pool.grace_seconds = 0.1
        answers = await asyncio.gather(*(client.validation.ValidateTurn(request) for request in REQUESTS))
        assert len(server.complex_turns.processes) == count
        assert not server.analysis.processes, "searches have processes of their own"
    assert not server.complex_turns.processes
    expected = [completed(Validator().turn_in_steps(request.SerializeToString())) for request in REQUESTS]
    assert answers == [vs.ValidateTurnResponse.FromString(answer) for answer in expected]


@pytest.mark.parametrize("listener", ["port", "validation_port"])
async def test_other_slow_calls_do_not_wait_for_a_process_that_hangs(listener: str) -> None:
    settings = server_settings(validation_listen="127.0.0.1:0", peer_share=0.5)
    async with (
        running_server(memory_store(), settings) as (server, _),
        from_another_address(getattr(server, listener)) as port,
        grpc.aio.insecure_channel(f"127.0.0.1:{getattr(server, listener)}") as own,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as others,
    ):
        client, other = Client(own), Client(others)
        expected = await client.validation.ValidateTurn(REQUESTS[0])
        [process] = server.complex_turns.processes
        os.kill(process, signal.SIGSTOP)
        try:
            stream = client.validation.StreamValidateTurns()
            await stream.write(vs.StreamValidateTurnsRequest(turn=REQUESTS[0]))
            batch = vs.BatchValidateTurnsRequest(turns=[REQUESTS[0]])
            turn, turns = client.validation.ValidateTurn(REQUESTS[0]), client.validation.BatchValidateTurns(batch)
            given_up = other.validation.ValidateTurn(REQUESTS[0])
            await under_way(server, 4)
            for _ in range(5):
                await other.validation.BatchValidateTurns(PLAIN_BATCH, timeout=SOON_SECONDS)
            assert not turn.done()
            given_up.cancel()
            await under_way(server, 3)
        finally:
            os.kill(process, signal.SIGCONT)
        async with asyncio.timeout(SOON_SECONDS):
            assert await turn == expected
            assert await turns == vs.BatchValidateTurnsResponse(turns=[expected])
            assert await stream.read() == vs.StreamValidateTurnsResponse(turn=expected)
        assert server.complex_turns.processes == (process,)


async def under_way(server: Server, calls: int) -> None:
    """Returns when so many slow calls are under way."""
    async with asyncio.timeout(SOON_SECONDS):
        while server.slow_calls.under_way != calls:  # noqa: ASYNC110 - a thread changes it
            await asyncio.sleep(0.01)
