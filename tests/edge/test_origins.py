"""Pages of other origins: which may call the service, which may show the page in a frame; none without a setting."""

import contextlib
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.edge import Answer, EdgeProcess, running_edge
from tools.edge_config import LocalEdge, local
from tools.servers import free_port
from tools.web import ENVOY, collect_page

pytestmark = pytest.mark.asyncio(loop_scope="module")
ORIGINS = "capacitor://localhost, ionic://localhost https://*.example.com http://192.168.1.20:5173 http://10.0.0.5:*"
FRAMES = "https://portal.example.com capacitor://localhost"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def edge(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EdgeProcess]:
    """Runs an edge with the settings above, without a service."""
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EDGE_ORIGINS", ORIGINS)
            patch.setenv("EDGE_FRAMES", FRAMES)
            ports = (free_port(), free_port(), free_port())
            edge = stack.enter_context(running_edge(tmp_path_factory.mktemp("edge"), *ports))
        await edge.listens()
        yield edge


async def preflight(edge: EdgeProcess, origin: str, path: str = "/v1/games") -> Answer:
    return await edge.send("OPTIONS", path, origin=origin, access_control_request_method="POST")


@pytest.mark.parametrize(
    "origin",
    [
        "capacitor://localhost",
        "ionic://localhost",
        "https://play.example.com",
        "https://a.b.example.com",
        "http://192.168.1.20:5173",
        "http://10.0.0.5",
        "http://10.0.0.5:3000",
        "http://localhost:5173",
        "http://[::1]:8080",
    ],
)
async def test_pages_of_allowed_origins_may_call(edge: EdgeProcess, origin: str) -> None:
    for path in ("/v1/games", "/rummikub.v1.GameService/CreateGame"):
        answer = await preflight(edge, origin, path)
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == origin
        allowed = answer.headers["access-control-allow-headers"].split(", ")
        assert {"authorization", "traceparent", "tracestate", "last-event-id"} <= {*allowed}
    answer = await edge.call("/v1/games", origin=origin)
    assert answer.status == 503, "no service runs, and the page must be able to read that"
    assert answer.headers["access-control-allow-origin"] == origin
    assert "grpc-status" in answer.headers["access-control-expose-headers"]
    assert "origin" in answer.headers["vary"]


@pytest.mark.parametrize(
    "origin",
    [
        "https://elsewhere.example",
        "https://example.com",
        "http://play.example.com",
        "https://play.example.com:8443",
        "https://play.example.com.evil.example",
        "https://evilexample.com",
        "http://192.168.1.20",
        "http://10.0.0.50",
        "capacitor://evil",
        "http://localhost.evil.example",
        "http://localhost:80@evil.example",
        "null",
        "*",
        "",
    ],
)
async def test_pages_of_other_origins_may_not(edge: EdgeProcess, origin: str) -> None:
    assert "access-control-allow-origin" not in (await preflight(edge, origin)).headers
    assert "access-control-allow-origin" not in (await edge.call("/v1/games", origin=origin)).headers


async def test_pages_of_chosen_origins_may_show_the_page_in_a_frame(edge: EdgeProcess) -> None:
    policy = (await edge.send("GET", "/")).headers["content-security-policy"]
    assert policy.endswith(f"; frame-ancestors {FRAMES}")


async def test_without_settings_only_a_developers_machine_is_allowed(tmp_path: Path) -> None:
    with running_edge(tmp_path, free_port(), free_port(), free_port()) as edge:
        await edge.listens()
        for origin in ("capacitor://localhost", "https://play.example.com", "http://192.168.1.20:5173"):
            assert "access-control-allow-origin" not in (await preflight(edge, origin)).headers
        assert (await preflight(edge, "http://127.0.0.1:3000")).headers["access-control-allow-origin"]
        policy = (await edge.send("GET", "/")).headers["content-security-policy"]
        assert policy.endswith("; frame-ancestors 'none'")


async def test_a_star_allows_every_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_ORIGINS", "*")
    with running_edge(tmp_path, free_port(), free_port(), free_port()) as edge:
        await edge.listens()
        assert (await preflight(edge, "null")).headers["access-control-allow-origin"] == "null"


@pytest.mark.parametrize("name", ["EDGE_ORIGINS", "EDGE_FRAMES"])
@pytest.mark.parametrize("entry", ["example.com", "https://a.example/", "https://a.*.example", "https://a;script-src"])
async def test_an_entry_that_is_no_origin_keeps_the_edge_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, entry: str
) -> None:
    monkeypatch.setenv(name, entry)
    file = tmp_path / "envoy.yaml"
    here = [("127.0.0.1", 1)]
    file.write_text(local(LocalEdge(("127.0.0.1", 0), here, here, collect_page(tmp_path))))
    checked = subprocess.run(  # noqa: ASYNC221 - no test runs beside
        [ENVOY, "--mode", "validate", "--config-path", file, "--log-level", "error"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode != 0
    assert f"{name}: {entry} is none of scheme://host" in checked.stderr
