"""Turns whose rules search for long."""

import asyncio
import sys

import pytest

from load.corpus.hostile_turns import read
from load.floods.attacks import slow_turn
from rummikub.v1 import validation_service_pb2 as vs
from service.analysis.pool import COMMAND
from service.grpc_api.turn_validator import Validator
from support.harness import memory_store, running_server

REQUESTS = [slow_turn(hostile) for hostile in read()[:5]]


@pytest.mark.parametrize(
    ("command", "count"),
    [
        pytest.param(COMMAND, 1, id="process"),
        pytest.param(("false",), 0, id="no process"),
        pytest.param((sys.executable, "-c", "import time; time.sleep(600)"), 1, id="no answer"),
    ],
)
async def test_complex_turns_are_answered_with_and_without_their_process(command: tuple[str, ...], count: int) -> None:
    async with running_server(memory_store(), analysis_command=command) as (server, client):
        answers = await asyncio.gather(*(client.validation.ValidateTurn(request) for request in REQUESTS))
        assert len(server.complex_turns.processes) == count
        assert not server.analysis.processes, "searches have processes of their own"
    assert not server.complex_turns.processes
    expected = [Validator().validate_turn(request.SerializeToString()) for request in REQUESTS]
    assert answers == [vs.ValidateTurnResponse.FromString(answer) for answer in expected]
