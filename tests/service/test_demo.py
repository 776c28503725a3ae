"""The examples of the Python client: a whole round, and all that a front end does."""

import asyncio
import itertools
import os
import re
import sys
from pathlib import Path

import pytest

from support.certificates import self_signed
from support.harness import ROOT, server_process

pytestmark = pytest.mark.slow

LONG_SECONDS = 180


async def printed_by(example: str, *arguments: str, typed: str = "", **environment: str) -> str:
    """Runs an example, types what it reads, and returns its output."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RUMMIKUB_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        f"clients/python/examples/{example}.py",
        *arguments,
        cwd=ROOT,
        env={**clean, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await asyncio.wait_for(process.communicate(typed.encode()), LONG_SECONDS)
    assert process.returncode == 0
    return printed.decode()


@pytest.mark.timeout(2 * LONG_SECONDS)
@pytest.mark.parametrize(
    ("preset", "table"),
    [
        ("SABRA", r" points\)\n      \[\w+( \w+)+\]"),
        ("CROSS", r" points\)\n(      (\.|\w+)(  *(\.|\w+))*\n)+ +[0-9]+  "),
        ("OKEY_101", r" opens with \w+( \w+)+ \([0-9]+ (points|pairs)\)\n      \[\w+( \w+)+\]"),
        ("AMERICAN", r" trump \w+; \w+ starts, [0-9]+ tiles in the pool\n(.*\n)*.* opens with \w+"),
        ("INTERNATIONAL", r" \w+ starts, [0-9]+ tiles in the pool\n(.*\n)*.* opens with \w+"),
        ("OKEY", r" indicator \w+, okey \w+; \w+ starts, [0-9]+ tiles in the pool\n(.*\n)*.* discards \w+\n"),
    ],
)
async def test_the_demo_plays_against_a_running_server(preset: str, table: str) -> None:
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://"}) as process:
        printed = await printed_by("demo", "--preset", preset, RUMMIKUB_LISTEN=process.target)
    assert printed.startswith(f"Playing against the service at {process.target}\n")
    assert re.search(table, printed)
    assert "\nFinal score\n" in printed


@pytest.mark.timeout(2 * LONG_SECONDS)
async def test_the_demo_starts_its_own_server_if_the_running_one_uses_tls(tmp_path: Path) -> None:
    self_signed(tmp_path, "DNS:localhost")
    settings = {
        "RUMMIKUB_TLS_CERT": str(tmp_path / "cert.pem"),
        "RUMMIKUB_TLS_KEY": str(tmp_path / "key.pem"),
        "RUMMIKUB_DATA_DIR": str(tmp_path / "data"),
    }
    async with server_process(settings) as process:
        printed = await printed_by("demo", **settings, RUMMIKUB_LISTEN=process.target)
    assert printed.startswith(f"No service answers at {process.target} without TLS; starting one for this demo\n")
    assert "\nFinal score\n" in printed


@pytest.mark.timeout(2 * LONG_SECONDS)
@pytest.mark.parametrize(
    ("preset", "shown"),
    [
        ("SABRA", "Bob sees Ann try"),
        pytest.param("OKEY", "The indicator is", marks=pytest.mark.soak),
        ("AMERICAN", "The trump is"),
    ],
)
async def test_the_walkthrough_does_all_that_a_front_end_does(preset: str, shown: str) -> None:
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://"}) as process:
        printed = await printed_by("walkthrough", "--preset", preset, RUMMIKUB_LISTEN=process.target)
    told = (
        "Ann kicks Mallory",
        "chooses seat 2; ready: Bob",
        shown,
        "touches nothing until his time is up, and draws 1 tile",
        "BOT_LEVEL_EASY plays for him",
        "Bob returns to his seat",
        "round 2 starts by itself",
        "Bob takes the reserved seat 2",
        "The rematch starts by itself",
        "moves is by the rules",
        "seated at 1 table",
        "The table is full, so the game starts by itself",
        "is used up",
        "play on with their tiles: Ann, Bot Rosa, Dora",
        "Bob sees the seat no more",
        "Mallory cannot take the seat that Ann reserved for Bob",
        "finds the game among his own: seat 2",
        "the solution is right: True",
        "The coach: From your rack to meld 1",
        "The coach: There is a better turn.",
        "the stream of her games begins with seat 1",
        "has the end of the game: GAME_STATE_ABORTED",
        "stored of account of Dora: seat 1",
        "is Player 1 there",
        "The program Deep has ",
        "The program Blue has ",
    )
    assert [text for text in told if text not in printed] == []


async def test_the_first_game_of_the_tutorial_plays_two_rounds() -> None:
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://"}) as process:
        printed = await printed_by("first_game", process.target)
    has_melds = [line.startswith("[") for line in printed.splitlines()]
    assert [is_table for is_table, _ in itertools.groupby(has_melds)] == [False, True, False, True]


async def test_the_front_end_of_the_tutorial_explains_refusals_and_takes_turns() -> None:
    typed = "dance\nnew Z1\npass\ndraw\nquit\n"
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://"}) as process:
        printed = await printed_by("terminal", process.target, typed=typed)
    assert printed.count("new R7 R8 R9 ") == 2  # at the start, and for a command that is none
    assert "Z1" in printed
    assert "You cannot pass while there are tiles to draw. Play or draw.\n" in printed
    assert "You drew " in printed
    assert printed.count("\nRack: ") == 2  # the person has the turn again after the bot
