"""The front end in a terminal (`make play`): what its commands make of a table, and how it begins and ends."""

import asyncio
import importlib.util
import os
import pty
import re
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from types import ModuleType

import pytest

import rummikub
from support.harness import ROOT, server_process

PROGRAM = ROOT / "clients" / "python" / "examples" / "terminal.py"
TABLE = "[R4 R5 R6 R7] | [B1 K1 O1] | [J K9 K10]"


@pytest.fixture(scope="module")
def terminal() -> ModuleType:
    spec = importlib.util.spec_from_file_location("terminal", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def game() -> rummikub.Game:
    table = rummikub.Table(melds=rummikub.melds(TABLE))
    return rummikub.Game(table=table, rack=rummikub.tiles("R3 R8 R8 R9 K7 J"))


@pytest.mark.parametrize(
    ("commands", "table", "rack"),
    [
        (["new R8 R9 J"], f"{TABLE} | [R8 R9 J]", "R3 R8 K7"),
        (["add r8 R9 1"], "[R4 R5 R6 R7 R8 R9] | [B1 K1 O1] | [J K9 K10]", "R3 R8 K7 J"),
        (["add R3 1"], "[R3 R4 R5 R6 R7] | [B1 K1 O1] | [J K9 K10]", "R8 R8 R9 K7 J"),
        (["add K7 3"], "[R4 R5 R6 R7] | [B1 K1 O1] | [K7 J K9 K10]", "R3 R8 R8 R9 J"),
        (["move R7 1 new", "add R8 R9 4"], "[R4 R5 R6] | [B1 K1 O1] | [J K9 K10] | [R7 R8 R9]", "R3 R8 K7 J"),
        (["move B1 K1 O1 2 1"], "[B1 K1 O1 R4 R5 R6 R7] | [J K9 K10]", "R3 R8 R8 R9 K7 J"),
    ],
)
def test_commands_arrange_the_table(terminal: ModuleType, commands: list[str], table: str, rack: str) -> None:
    draft = terminal.Draft(game())
    for command in commands:
        verb, *words = command.split()
        draft.edit(verb, words)
    assert rummikub.melds_text(draft.melds) == table
    assert rummikub.tiles_text(draft.rack) == rack
    draft.reset()
    assert rummikub.melds_text(draft.melds) == TABLE


@pytest.mark.parametrize(
    "command", ["new", "new B1", "new R8 R8 R8", "new X1", "add R8", "add R8 4", "add R8 0", "move R7 1", "move R9 1 2"]
)
def test_another_command_changes_nothing(terminal: ModuleType, command: str) -> None:
    draft = terminal.Draft(game())
    verb, *words = command.split()
    with pytest.raises(ValueError, match=r"."):
        draft.edit(verb, words)
    assert rummikub.melds_text(draft.melds) == TABLE
    assert rummikub.tiles_text(draft.rack) == "R3 R8 R8 R9 K7 J"


async def started(target: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), target, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )


async def test_without_a_service_it_says_so_at_once() -> None:
    begun = time.monotonic()
    _, errors = await asyncio.wait_for((await started("127.0.0.1:1")).communicate(), 30)
    assert b"no service answers at 127.0.0.1:1" in errors
    assert b"make run" in errors
    assert b"Traceback" not in errors
    assert time.monotonic() - begun < 10  # less than a second on a machine that is not busy


async def test_a_game_is_played_and_ctrl_c_ends_it() -> None:
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://"}) as server:
        process = await started(server.target)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"help\nnew B1 B1 B1\n" + 6 * b"hint\ndone\ndraw\n")
        printed = b""
        async with asyncio.timeout(60):
            while printed.count(b"Rack: ") < 4 or b"You drew" not in printed:
                printed += await process.stdout.read(4096)
        assert b"This is legal: done plays it." in printed or b"no play is possible" in printed
        process.send_signal(signal.SIGINT)
        _, errors = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, errors) == (0, b"")


async def test_on_a_terminal_tiles_have_colors_and_the_arrow_keys_recall_a_command() -> None:
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://"}) as server:
        near, far = pty.openpty()
        command = [sys.executable, str(PROGRAM), server.target]
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
        process = await asyncio.create_subprocess_exec(*command, stdin=far, stdout=far, stderr=far, env=environment)
        os.close(far)

        def shown_until(*texts: bytes) -> bytes:
            shown = b""
            while not all(text in shown for text in texts):
                shown += os.read(near, 4096)
            return shown

        async with asyncio.timeout(60):
            assert re.search(
                rb"\x1b\[9[1345]m[RBOJ]\d*\x1b\[0m", await asyncio.to_thread(shown_until, b"Rack: ", b"> ")
            )
            os.write(near, b"sing\n")
            await asyncio.to_thread(shown_until, b"help, quit", b"> ")
            os.write(near, b"\x1b[A")
            await asyncio.to_thread(shown_until, b"sing")
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 0
        assert b"Traceback" not in os.read(near, 4096)
        os.close(near)
