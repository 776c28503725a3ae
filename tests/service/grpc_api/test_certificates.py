"""TLS at both listeners: versions, certificates that change, and client certificates as identity."""

import asyncio
import errno
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest
import structlog

from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import validation_service_pb2 as vs
from service.grpc_api.certificates import CertificateFiles
from service.health_check import Target, health_check
from service.runtime.keys import HEADER
from service.server import Server
from support.certificates import client_certificate, self_signed
from support.harness import Client, error_info, memory_store, running_server, server_settings

LISTENERS = ("port", "validation_port")


def folder_in(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


@asynccontextmanager
async def serving(folder: Path, **settings: object) -> AsyncIterator[Server]:
    pair = {"tls_cert": folder / "cert.pem", "tls_key": folder / "key.pem"}
    chosen = server_settings(validation_listen="127.0.0.1:0", **pair, **settings)
    async with running_server(memory_store(), chosen) as (server, _):
        yield server


@asynccontextmanager
async def connected(port: int, trusted: Path, own: Path | None = None) -> AsyncIterator[Client]:
    """Connects to a server with a certificate, as a client with one or none."""
    pair = ((own / "key.pem").read_bytes(), (own / "cert.pem").read_bytes()) if own else ()
    credentials = grpc.ssl_channel_credentials((trusted / "cert.pem").read_bytes(), *pair)
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials, options) as channel:
        yield Client(channel)


async def answers(port: int, trusted: Path, own: Path | None = None, **metadata: str) -> str:
    """Returns "OK", else the reason of the refusal or its code."""
    async with connected(port, trusted, own) as client:
        try:
            await client.validation.ListRulesets(
                vs.ListRulesetsRequest(), metadata=tuple((HEADER, value) for value in metadata.values()), timeout=10
            )
        except grpc.aio.AioRpcError as error:
            is_ours = error.code() is not grpc.StatusCode.UNAVAILABLE
            return str(error_info(error).reason) if is_ours else error.code().name
    return "OK"


@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize(("version", "works"), [("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)])
async def test_tls_1_2_is_the_oldest_version(tmp_path: Path, listener: str, version: str, *, works: bool) -> None:
    self_signed(tmp_path, "DNS:localhost")
    program = shutil.which("openssl")
    assert program
    async with serving(tmp_path) as server:
        command = [program, "s_client", "-connect", f"127.0.0.1:{getattr(server, listener)}", version]
        command += ["-alpn", "h2", "-cipher", "DEFAULT:@SECLEVEL=0"]
        done = await asyncio.to_thread(subprocess.run, command, input=b"", capture_output=True, timeout=30, check=False)
        assert (b"Verify return code" in done.stdout and b"Cipher is (NONE)" not in done.stdout) == works


@pytest.mark.parametrize("listener", LISTENERS)
async def test_a_changed_certificate_serves_new_connections_and_open_ones_go_on(tmp_path: Path, listener: str) -> None:
    used, old, new = folder_in(tmp_path, "used"), folder_in(tmp_path, "old"), folder_in(tmp_path, "new")
    for folder in (old, new):
        self_signed(folder, "DNS:localhost")
    for name in ("cert.pem", "key.pem"):
        shutil.copy(old / name, used / name)
    async with serving(used) as server, connected(getattr(server, listener), old) as open_client:
        port = getattr(server, listener)
        await open_client.validation.ListRulesets(vs.ListRulesetsRequest())
        shutil.copy(new / "cert.pem", used / "cert.pem")
        assert await answers(port, old) == "OK", "a certificate without its key is not used"
        shutil.copy(new / "key.pem", used / "key.pem")
        assert await answers(port, new) == "OK"
        assert await answers(port, old) == "UNAVAILABLE"
        await open_client.validation.ListRulesets(vs.ListRulesetsRequest())


@pytest.mark.parametrize("listener", LISTENERS)
async def test_a_client_certificate_is_required_and_identifies_the_caller(tmp_path: Path, listener: str) -> None:
    authority, stranger = folder_in(tmp_path, "authority"), folder_in(tmp_path, "stranger")
    self_signed(tmp_path, "DNS:localhost")
    self_signed(authority, "", "/CN=An authority")
    self_signed(stranger, "", "/CN=web.example")
    clients = {name: folder_in(tmp_path, name) for name in ("web", "app", "unknown", "other")}
    client_certificate(authority, clients["web"], "/CN=web.example")
    client_certificate(authority, clients["app"], "/CN=ignored", "DNS:app.example,URI:spiffe://example/app")
    client_certificate(authority, clients["unknown"], "/CN=unknown.example")
    client_certificate(authority, clients["other"], "/CN=web.example", "DNS:other.example")
    keys = tmp_path / "keys.toml"
    keys.write_text(
        '[keys.web]\ncertificate = "web.example"\n[keys.app]\ncertificate = "spiffe://example/app"\nservices = []\n'
    )
    async with serving(tmp_path, tls_client_ca=authority / "cert.pem", keys_file=keys) as server:
        port = getattr(server, listener)
        assert await answers(port, tmp_path, clients["web"]) == "OK"
        assert await answers(port, tmp_path, clients["app"]) == "API_KEY_NOT_ALLOWED"
        assert await answers(port, tmp_path, clients["unknown"]) == "API_KEY_INVALID"
        assert await answers(port, tmp_path, clients["other"]) == "API_KEY_INVALID", "its common name does not count"
        assert await answers(port, tmp_path, clients["web"], key="wrong") == "API_KEY_INVALID"
        assert await answers(port, tmp_path) == "UNAVAILABLE"
        assert await answers(port, tmp_path, stranger) == "UNAVAILABLE"


async def test_the_health_check_sends_the_server_s_certificate(tmp_path: Path) -> None:
    authority = folder_in(tmp_path, "authority")
    self_signed(authority, "", "/CN=An authority")
    client_certificate(authority, tmp_path, "/CN=server", "DNS:rummikub.example")
    authorities = authority / "cert.pem"
    async with serving(tmp_path, tls_client_ca=authorities) as server:
        target = Target(f"127.0.0.1:{server.port}", has_tls=True, own=(tmp_path / "cert.pem", tmp_path / "key.pem"))
        assert await asyncio.to_thread(health_check, target) == 0
        assert await asyncio.to_thread(health_check, target._replace(own=None)) == 1


async def test_games_of_certificates_are_apart(tmp_path: Path) -> None:
    authority = folder_in(tmp_path, "authority")
    self_signed(tmp_path, "DNS:localhost")
    self_signed(authority, "", "/CN=An authority")
    folders = [folder_in(tmp_path, name) for name in ("web", "app")]
    for folder in folders:
        client_certificate(authority, folder, f"/CN={folder.name}.example")
    keys = tmp_path / "keys.toml"
    keys.write_text('[keys.web]\ncertificate = "web.example"\n[keys.app]\ncertificate = "app.example"\n')
    async with serving(tmp_path, tls_client_ca=authority / "cert.pem", keys_file=keys) as server:
        async with connected(server.port, tmp_path, folders[0]) as web:
            created = await web.games.CreateGame(gs.CreateGameRequest())
        async with connected(server.port, tmp_path, folders[1]) as app:
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await app.games.GetGame(gs.GetGameRequest(game_id=created.game.game_id))
            assert error_info(refusal.value).reason == "GAME_NOT_FOUND"


def test_unchanged_and_broken_files_change_nothing(tmp_path: Path) -> None:
    self_signed(tmp_path, "DNS:localhost")
    files = CertificateFiles(tmp_path / "cert.pem", tmp_path / "key.pem", None)
    assert files.changed() is None
    os.utime(tmp_path / "cert.pem", ns=(1, 1))
    assert files.changed() is not None
    assert files.changed() is None
    (tmp_path / "key.pem").write_text("broken")
    assert files.changed() is None
    (tmp_path / "key.pem").unlink()
    assert files.changed() is None


def test_changed_files_that_cannot_be_read_for_a_while_are_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    self_signed(tmp_path, "DNS:localhost")
    files = CertificateFiles(tmp_path / "cert.pem", tmp_path / "key.pem", None)
    self_signed(tmp_path, "DNS:localhost")

    def fail(_path: Path) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with structlog.testing.capture_logs() as logs, monkeypatch.context() as without_descriptors:
        without_descriptors.setattr(Path, "read_bytes", fail)
        for _ in range(3):
            assert files.changed() is None
    assert [log["event"] for log in logs] == ["certificates not used; those read before stay in use"]
    assert files.changed() is not None
    assert files.changed() is None
