"""The package: one import is enough, and its copies are those of the shared files."""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rummikub
from support.contract_files import FILES
from support.harness import CONTRACT, ROOT


def test_every_message_enum_and_value_is_a_name_of_the_package() -> None:
    names = 0
    for file in FILES:
        module = importlib.import_module(file.name.removesuffix(".proto").replace("/", ".") + "_pb2")
        values = [value.name for enum in file.enum_types_by_name.values() for value in enum.values]
        for name in (*file.message_types_by_name, *file.enum_types_by_name, *values):
            assert getattr(rummikub, name) is getattr(module, name) or name in values, name
            assert getattr(rummikub, name) == getattr(module, name), name
            names += 1
    assert names > 600


def test_the_service_config_is_the_shared_one() -> None:
    shared = (ROOT / "clients" / "service_config.json").read_text(encoding="utf-8")
    assert shared == rummikub.SERVICE_CONFIG, "copy clients/service_config.json to clients/python/src/rummikub"


def test_every_rpc_but_the_streams_has_a_deadline() -> None:
    services = {service.full_name: {rpc.name: rpc for rpc in service.methods} for service in CONTRACT}
    without = {
        (name["service"], name["method"])
        for method in json.loads(rummikub.SERVICE_CONFIG)["methodConfig"]
        for name in method["name"]
        if "timeout" not in method
    }
    streams = {
        (service, rpc)
        for service, rpcs in services.items()
        for rpc, descriptor in rpcs.items()
        if descriptor.server_streaming
    }
    assert without == streams


@pytest.mark.slow
def test_every_file_is_installed(tmp_path: Path) -> None:
    source, installed = tmp_path / "source", tmp_path / "installed"
    shutil.copytree(ROOT / "clients" / "python", source, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    how = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--no-compile", "--target", installed)
    subprocess.run([sys.executable, "-m", "pip", "install", *how, source], check=True, timeout=100)
    files, expected = (
        {path.relative_to(folder) for path in (folder / "rummikub").rglob("*") if path.is_file()}
        for folder in (installed, source / "src")
    )
    assert files == expected
    assert Path("rummikub/service_config.json") in files
