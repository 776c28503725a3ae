"""Builds the container image and runs it without a container engine (`make image-check`).

Needs Linux and root: buildah builds the Dockerfile as it is, on a base from Debian's packages; unshare runs the image's
command as its user, with a read-only root and a network of its own.
"""

import argparse
import contextlib
import fcntl
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grpc

import rummikub
from rummikub.v1.game_service_pb2_grpc import GameServiceStub
from tools.image_check import build
from tools.image_check.config import ImageConfig, ImageError, base_of, missing_programs, python_of, shell_line
from tools.image_check.container import DATA, Container
from tools.servers import ROOT, end_in_order

USER: Final = (10001, 10001)
GRACE_SECONDS: Final = 10.0
"""How long engines wait before they kill a container, unless they are given another time."""
CALL_SECONDS: Final = 60.0
PRIVATE_FOLDER: Final = 0o700
OTHERS: Final = 0o077
"""The rights of all other users to a file."""
METRICS_PORT: Final = 9464
GRPC_PORT: Final = 50051
_SET_FLAGS: Final = 0x8914
_UP: Final = 0x1


def main() -> None:
    """Runs all checks; ends with status 1 and what to do at the first that fails."""
    end_in_order()
    arguments = _arguments()
    try:
        if arguments.run:
            _run_checks()
        else:
            _build_and_run(arguments)
    except ImageError as error:
        sys.exit(f"make image-check: {error}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make image-check",
        description="Builds the container image without a container engine, and runs it. Needs Linux and root.",
    )
    parser.add_argument("--fresh", action="store_true", help="make the base and all layers anew")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _build_and_run(arguments: argparse.Namespace) -> None:
    if missing := missing_programs(shutil.which):
        raise ImageError(missing)
    if os.geteuid():
        raise ImageError("mounts and users of a container need root: run it as root, as in sudo make image-check")
    began = time.monotonic()
    if arguments.fresh:
        shutil.rmtree(build.FOLDER, ignore_errors=True)
    _check_wheels()
    build.build()
    _report("builds", f"the Dockerfile as it is, on Debian's Python {build.SUITE_PYTHON}, in {_since(began)}")
    # Mounts and processes of the run end with it, and its loopback is nobody else's.
    apart = ("unshare", "--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
    done = subprocess.run([*apart, sys.executable, "-m", "tools.image_check", "--run"], cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    print(f"The image is all right; {_since(began)}.")


def _check_wheels() -> None:
    python = python_of(base_of((ROOT / "Dockerfile").read_text()))
    counts = build.wheels_for_all_architectures(python)
    packages = ", ".join(f"{count} packages of {name}.txt" for name, count in counts.items())
    architectures = " and ".join(build.ARCHITECTURES.values())
    _report("wheels", f"{packages} have one for Python {python} on {architectures}")


def _run_checks() -> None:
    """Runs the built image in the namespaces that this process has for itself."""
    _loopback_up()
    config = build.config()
    with build.mounted() as root, tempfile.TemporaryDirectory(prefix="rummikub-image-") as scratch:
        whole, own = build.megabytes(root), build.megabytes(root / "opt") + build.megabytes(root / "app")
        _report(
            "size", f"{whole:.0f} MB, of which {own:.0f} MB are the service and its packages, and the rest is the base"
        )
        _check(
            config.user == USER, "user", f"the image declares {config.user[0]}:{config.user[1]}", "USER of Dockerfile"
        )
        folder = root / DATA.lstrip("/")
        _check(_is_private(folder), "data folder", f"{DATA} of the image has mode 0700", "`install` of Dockerfile")
        volume = Path(scratch) / "volume"
        _make_volume(volume, folder)
        log = Path(scratch) / "log"
        with Container(config, root, log, volume) as container:
            _check_running(container, config, volume)
            game = _play()
            _check_files(volume)
            with _watched(game.game_id):
                status, seconds = container.stop(GRACE_SECONDS)
            done = f"{config.stop_signal} ends it with status {status} in {seconds:.1f} s, with a watcher"
            _check(status == 0, "stops", f"{done}; engines give it {GRACE_SECONDS:g} s", "its log", container.output())
        _check_refusals(config, root, Path(scratch))
        with Container(config, root, log, volume) as container:
            container.wait_until_healthy()
            kept = _game(game.game_id)
            _check(kept == game, "restarts", "with its volume, the game is as it was", "its log", container.output())
            container.stop(GRACE_SECONDS)


def _check_running(container: Container, config: ImageConfig, volume: Path) -> None:
    """Checks the running process, its root, and what it serves."""
    seconds = container.wait_until_healthy()
    _report("healthy", f"{shell_line(config.health)!r} passes after {seconds:.1f} s")
    lines = Path(f"/proc/{container.pid}/status").read_text().splitlines()
    status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    user, group = (str(number) for number in USER)
    expected = {"Uid": [user] * 4, "Gid": [group] * 4, "Groups": [], "CapEff": ["0" * 16], "NoNewPrivs": ["1"]}
    actual = {name: status.get(name) for name in expected}
    _check(actual == expected, "process", f"runs as uid {user} and gid {group}, without capabilities", f"{actual}")
    inside = Path(f"/proc/{container.pid}/root")
    read_only = (
        os.statvfs(inside).f_flag & os.ST_RDONLY and not os.statvfs(inside / DATA.lstrip("/")).f_flag & os.ST_RDONLY
    )
    _check(bool(read_only), "root", f"is read-only; {DATA} and /tmp are not", "container.py")
    _check(
        volume.is_dir() and {GRPC_PORT, METRICS_PORT} <= set(config.ports), "ports", f"exposes {config.ports}", "EXPOSE"
    )
    with urllib.request.urlopen(f"http://127.0.0.1:{METRICS_PORT}/metrics", timeout=CALL_SECONDS) as answer:
        names = [line for line in answer.read().decode().splitlines() if line.startswith("# TYPE rummikub_")]
    _check(bool(names), "metrics", f"has {len(names)} on port {METRICS_PORT}", "RUMMIKUB_METRICS_LISTEN of Dockerfile")


def _play() -> rummikub.Game:
    """Checks that a validation and a new game are answered; returns the game."""
    with rummikub.Rummikub(f"127.0.0.1:{GRPC_PORT}") as client:
        melds = rummikub.melds("[R1 R2 R3] | [B7 K7]")
        answer = client.validation.ValidateMelds(rummikub.ValidateMeldsRequest(melds=melds), timeout=CALL_SECONDS)
        results = [not reading.violations for reading in answer.melds]
        _check(results == [True, False], "validates", "a run is valid, a group of two is not", "its log")
        created = client.games.CreateGame(rummikub.CreateGameRequest(), timeout=CALL_SECONDS)
        game_id = created.game.game_id
        host = client.seated(created.host_token)
        host.games.JoinGame(rummikub.JoinGameRequest(game_id=game_id, name="Ann"), timeout=CALL_SECONDS)
        _report("plays", f"game {game_id} has a player")
    return _game(game_id)


def _game(game_id: str) -> rummikub.Game:
    """Returns a game as a spectator sees it, without the time of the call."""
    with rummikub.Rummikub(f"127.0.0.1:{GRPC_PORT}") as client:
        game = client.games.GetGame(rummikub.GetGameRequest(game_id=game_id), timeout=CALL_SECONDS).game
    game.ClearField("server_time")
    return game


@contextlib.contextmanager
def _watched(game_id: str) -> Iterator[None]:
    """Watches a game meanwhile: a stream that the service has to end before it can stop."""
    with grpc.insecure_channel(f"127.0.0.1:{GRPC_PORT}") as channel:
        stream = GameServiceStub(channel).WatchGame(rummikub.WatchGameRequest(game_id=game_id), timeout=CALL_SECONDS)
        next(stream)
        yield


def _check_files(volume: Path) -> None:
    """Checks that no other user can read what the service has written."""
    paths = [volume, *volume.rglob("*")]
    open_ones = [str(path.relative_to(volume)) for path in paths if path.stat().st_mode & OTHERS]
    what = f"{DATA} and its {len(paths) - 1} files and folders are for uid {USER[0]} alone"
    owned = all((path.stat().st_uid, path.stat().st_gid) == USER for path in paths)
    _check(owned and not open_ones and _is_private(volume), "data", what, f"others have rights to {open_ones}")


def _check_refusals(config: ImageConfig, root: Path, scratch: Path) -> None:
    """Checks that the image refuses to start where it can write no games, and prints what to do."""
    foreign = scratch / "foreign"
    foreign.mkdir(mode=0o700)
    for name, volume, temporary, expected in (
        ("without volume", None, True, f"no volume is mounted at {DATA}"),
        ("volume of root", foreign, True, f"{DATA} cannot be used (Permission denied)"),
        ("without /tmp", scratch / "volume", False, "no folder for temporary files can be used"),
    ):
        with Container(config, root, scratch / "refused", volume, temporary=temporary) as container:
            status = container.ended()
            message = (container.output().strip().splitlines() or [""])[-1]
        done = f"refuses with status {status}: {message}"
        _check(status == 1 and expected in message, name, done, f"expected: {expected}")


def _is_private(folder: Path) -> bool:
    status = folder.stat()
    return stat.S_IMODE(status.st_mode) == PRIVATE_FOLDER and (status.st_uid, status.st_gid) == USER


def _make_volume(volume: Path, folder: Path) -> None:
    """Makes an empty volume as engines do: with the owner and mode of the image's folder."""
    status = folder.stat()
    volume.mkdir()
    os.chown(volume, status.st_uid, status.st_gid)
    volume.chmod(stat.S_IMODE(status.st_mode))


def _loopback_up() -> None:
    """Brings up the loopback of this network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


def _check(passes: bool, name: str, what: str, remedy: str, output: str = "") -> None:
    """Reports what holds. Raises ImageError with where to look if it does not."""
    if not passes:
        raise ImageError(f"{name}: not true: {what}; look at: {remedy}\n{output}".rstrip())
    _report(name, what)


def _report(name: str, what: str) -> None:
    print(f"ok  {name:<14} {what}", flush=True)


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.0f} s"


if __name__ == "__main__":
    main()
