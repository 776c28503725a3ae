"""What the check reads from files and programs: the Dockerfile, requirements, and the image's configuration."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

PACKAGES: Final[Mapping[str, str]] = {
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}
"""The programs that the check runs, and Debian's packages with them."""
HEALTH_SHELL: Final = ("/bin/sh", "-c")


class ImageError(Exception):
    """The image cannot be built or checked, or a check fails. The message names the remedy."""


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What an image declares.

    Attributes:
        user: The ids of its user and group.
        command: Its entrypoint and command.
        health: The command of its health check.
        environment: Its variables.
        folder: Its working directory.
        ports: The TCP ports that it exposes.
        stop_signal: The name of the signal that stops it.
    """

    user: tuple[int, int]
    command: tuple[str, ...]
    health: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    ports: tuple[int, ...]
    stop_signal: str


def missing_programs(find: Callable[[str], object | None]) -> str:
    """Returns what to install, if `find` (as shutil.which) does not find a program that is needed; else ""."""
    missing = [program for program in PACKAGES if not find(program)]
    if not missing:
        return ""
    packages = " ".join(sorted({PACKAGES[program] for program in missing}))
    return (
        f"not installed: {', '.join(missing)}; install on Debian or Ubuntu, as root: "
        f"apt-get install --no-install-recommends {packages}"
    )


def read_config(inspected: str) -> ImageConfig:
    """Returns the configuration in the output of `buildah inspect --type image`. Raises ImageError."""
    config: dict[str, Any] = json.loads(inspected)["Docker"]["config"]
    user = re.fullmatch(r"(\d+):(\d+)", config.get("User") or "")
    if not user:
        raise ImageError(
            f"the user is {config.get('User')!r}: give the Dockerfile a line USER with two numbers, uid:gid"
        )
    command = (*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ()))
    if not command:
        raise ImageError("no command: give the Dockerfile a line CMD")
    kind, *health = (config.get("Healthcheck") or {}).get("Test") or ("NONE",)
    if kind == "CMD-SHELL":
        health = [*HEALTH_SHELL, *health]
    elif kind != "CMD":
        raise ImageError("no health check: give the Dockerfile a line HEALTHCHECK")
    return ImageConfig(
        user=(int(user[1]), int(user[2])),
        command=command,
        health=tuple(health),
        environment=dict(line.split("=", 1) for line in config.get("Env") or ()),
        folder=config.get("WorkingDir") or "/",
        ports=tuple(sorted(int(port.removesuffix("/tcp")) for port in config.get("ExposedPorts") or {})),
        stop_signal=config.get("StopSignal") or "SIGTERM",
    )


def base_of(dockerfile: str) -> str:
    """Returns the image that all stages of a Dockerfile begin from. Raises ImageError if there is not just one."""
    lines = re.findall(r"^FROM +(\S+)(?: +AS +(\S+))?", dockerfile, re.MULTILINE | re.IGNORECASE)
    stages: set[str] = {stage for _, stage in lines}
    names: set[str] = {name for name, _ in lines} - stages
    if len(names) != 1:
        raise ImageError(f"the Dockerfile has the bases {sorted(names)}: the check makes one for all stages")
    return names.pop()


def python_of(base: str) -> str:
    """Returns the version of Python in a base's name, as in python:3.12-slim. Raises ImageError."""
    _, is_python, version = base.rpartition("python:")
    found = re.match(r"3\.\d+", version)
    if not is_python or not found:
        raise ImageError(f"the base {base} is not one of Python's images: tools/image_check makes no other one")
    return found.group()


def for_any_python(requirements: str, names: tuple[str, ...] = ()) -> str:
    """Returns pinned requirements, of some names or all, without their conditions: pip would apply this Python's."""
    entries = re.findall(r"^([\w.-]+)(==\S+)[^\n]*\n((?: +--hash=\S+(?: \\)?\n)+)", requirements, re.MULTILINE)
    pinned = ((name, version, hashes.replace("\\\n", " ").split()) for name, version, hashes in entries)
    return "".join(
        f"{name}{version} {' '.join(each)}\n" for name, version, each in pinned if not names or name in names
    )


def shell_line(command: tuple[str, ...]) -> str:
    """Returns a command as one types it."""
    return shlex.join(command)
