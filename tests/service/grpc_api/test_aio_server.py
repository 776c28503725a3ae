"""The accept-loop server: its hook into grpcio is called on tested releases; others get a plain grpc.aio server."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import pytest

from service.composition import Tuning
from service.grpc_api import grpcio_version
from service.grpc_api.aio_server import AcceptLoopServer, aio_server
from support.harness import ROOT, memory_store, running_server, server_settings

METHODS = ("First", "Second", "Third")


async def echo(data: bytes, _context: object) -> bytes:
    return data


@asynccontextmanager
async def serving(grpcio: str) -> AsyncIterator[tuple[grpc.aio.Server, grpc.aio.Channel]]:
    server = aio_server((), (), grpcio)
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        name: grpc.unary_unary_rpc_method_handler(echo) for name in METHODS
    }
    server.add_registered_method_handlers("test.Echo", handlers)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            yield server, channel
        finally:
            await server.stop(0)


async def call(channel: grpc.aio.Channel, path: str) -> bytes:
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
    return await method(b"data", timeout=10)


def test_the_installed_release_is_tested() -> None:
    assert grpcio_version.INSTALLED in grpcio_version.TESTED, (
        "grpcio is not a tested release, so the service uses plain grpc.aio servers: run `make canary`, then add the "
        "release to grpcio_version.TESTED"
    )


@pytest.mark.parametrize("grpcio", [grpcio_version.TESTED[0], "0"], ids=["accept loops", "plain"])
async def test_calls_are_answered_by_either_server(grpcio: str) -> None:
    async with serving(grpcio) as (_, channel):
        assert [await call(channel, f"/test.Echo/{name}") for name in METHODS] == [b"data"] * len(METHODS)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call(channel, "/test.Echo/Unknown")
        assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_grpcio_calls_the_hook_of_the_accept_loops() -> None:
    """Otherwise grpcio has replaced the hook, and a path that is not UTF-8 ends the server again."""
    async with serving(grpcio_version.TESTED[0]) as (server, channel):
        await call(channel, "/test.Echo/First")
        assert isinstance(server, AcceptLoopServer)
        assert server.accept_loops == len(METHODS) + 1


async def test_another_release_gets_a_plain_server_and_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    async with serving("0") as (server, _):
        assert type(server) is type(grpc.aio.server())
    assert "grpcio release not tested" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("address", "is_imported"), [("", False), ("127.0.0.1:0", True)])
def test_fast_listener_is_imported_only_for_its_address(address: str, *, is_imported: bool) -> None:
    script = f"""
import asyncio, sys
from service.composition import build_server
from service.settings import Settings
from service.storage.memory import MemoryStore

async def build():
    build_server(Settings(validation_listen={address!r}), MemoryStore(100))

asyncio.run(build())
print(any(name.startswith("service.fast_listener") for name in sys.modules))
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == f"{is_imported}\n"


async def test_another_release_serves_the_validation_address_and_logs_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = server_settings(validation_listen="127.0.0.1:0")
    async with running_server(memory_store(), settings, tuning=Tuning(grpcio="0")) as (server, _):
        target = f"127.0.0.1:{server.validation_port}"
        async with grpc.aio.insecure_channel(target) as channel:
            list_rulesets: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                "/rummikub.v1.ValidationService/ListRulesets"
            )
            assert await asyncio.wait_for(list_rulesets(b""), 10)
    assert "RUMMIKUB_VALIDATION_LISTEN is served by grpc.aio" in capsys.readouterr().out


async def test_the_end_of_the_plain_validation_listener_is_reported() -> None:
    """A path that is not UTF-8 ends a plain grpc.aio server of this release."""
    settings = server_settings(validation_listen="127.0.0.1:0")
    async with running_server(memory_store(), settings, tuning=Tuning(grpcio="0")) as (server, _):
        ended = asyncio.ensure_future(server.ended())
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.validation_port}") as channel:
            unknown: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(b"/\xff")  # type: ignore[arg-type]
            with pytest.raises(grpc.aio.AioRpcError):
                await unknown(b"", timeout=2)
        assert str(await asyncio.wait_for(ended, 10)).startswith("RUMMIKUB_VALIDATION_LISTEN has ended by itself")
