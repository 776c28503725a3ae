"""Errors are explained: what is wrong, and what to do."""

import asyncio
from collections.abc import Callable

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.rpc.status_pb2 import Status

import rummikub
import rummikub.aio
from service.storage.memory import MemoryStore
from support.harness import FakeClock, memory_store, running_server


class FailedCall(grpc.RpcError):
    """An error as a server could send it."""

    def __init__(self, code: grpc.StatusCode, text: str = "the text", reason: int = 0) -> None:
        self._code = code
        self._text = text
        self._reason = reason

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._text

    def trailing_metadata(self) -> tuple[tuple[str, bytes], ...]:  # type: ignore[override]  # as grpc.aio has it
        if not self._reason:
            return ()
        detail = Any()
        detail.Pack(rummikub.Refusal(reason=rummikub.ErrorReason.ValueType(self._reason)))
        return (("grpc-status-details-bin", Status(details=[detail]).SerializeToString()),)


@pytest.mark.parametrize(
    ("error", "parts"),
    [
        (FailedCall(grpc.StatusCode.UNAVAILABLE), ("no service answers at h:1", "`make run`", "(the text)")),
        (FailedCall(grpc.StatusCode.DEADLINE_EXCEEDED), ("no answer in time", "at h:1", "`make run`")),
        (FailedCall(grpc.StatusCode.UNIMPLEMENTED), ("older than this client", "update the service")),
        (FailedCall(grpc.StatusCode.INTERNAL), ("INTERNAL: the text",)),
        (
            FailedCall(grpc.StatusCode.ABORTED, reason=rummikub.STALE_STATE),
            ("STALE_STATE: the text", "read the game again"),
        ),
        (FailedCall(grpc.StatusCode.ABORTED, reason=rummikub.NOT_YOUR_TURN), ("NOT_YOUR_TURN: the text",)),
        (FailedCall(grpc.StatusCode.ABORTED, reason=9999), ("9999", "update the client", "the text")),
    ],
    ids=lambda value: str(value) if isinstance(value, tuple) else value.code().name,
)
def test_an_error_is_explained(error: grpc.RpcError, parts: tuple[str, ...]) -> None:
    text = rummikub.explain(error, "h:1")
    assert [part for part in parts if part not in text] == [], text


def test_the_number_of_an_unknown_reason_is_kept() -> None:
    assert rummikub.refusal(FailedCall(grpc.StatusCode.ABORTED, reason=9999)).reason == 9999


@pytest.mark.parametrize("service_config", [rummikub.SERVICE_CONFIG, "{}"])
async def test_a_server_that_is_not_there(service_config: str) -> None:
    with rummikub.Rummikub("127.0.0.1:1", options={"grpc.service_config": service_config}) as service:
        with pytest.raises(grpc.RpcError) as refused:
            await asyncio.to_thread(service.games.ListGames, rummikub.ListGamesRequest(), timeout=0.5)
        assert "no service answers at 127.0.0.1:1" in rummikub.explain(refused.value, service.target)


async def test_a_server_without_the_call() -> None:
    store: MemoryStore = memory_store(FakeClock())
    async with running_server(store) as (server, _):
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{server.port}")
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/rummikub.v1.GameService/NewCall")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(b"")
        await channel.close()
    assert "older than this client" in rummikub.explain(refused.value)


@pytest.mark.parametrize("kind", [rummikub.Rummikub, rummikub.aio.Rummikub])
def test_a_url_is_no_target(kind: Callable[[str], object]) -> None:
    with pytest.raises(ValueError, match="pass host:port"):
        kind("http://127.0.0.1:50051")
