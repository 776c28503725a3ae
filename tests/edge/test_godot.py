"""The bot of the page for Godot plays a game over JSON, by long polls."""

import asyncio
import os
import re
import shutil
from pathlib import Path

import pytest

from support.edge import running_web
from support.harness import ROOT

GODOT = shutil.which("godot3-server")


@pytest.mark.skipif(
    not GODOT and not os.environ.get("CI"), reason="needs godot3-server; run: apt-get install godot3-server"
)
async def test_the_bot_of_the_page_plays_a_game(tmp_path: Path) -> None:
    assert GODOT, "Debian's godot3-server is not installed"
    async with running_web(tmp_path) as web:
        bot = await asyncio.create_subprocess_exec(
            GODOT,
            "-s",
            str(ROOT / "clients" / "godot" / "bot.gd"),
            cwd=tmp_path,  # it writes its log there
            env={**os.environ, "HOME": str(tmp_path), "EDGE_URL": web.edge.url},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, errors = await asyncio.wait_for(bot.communicate(), 100)
    assert bot.returncode == 0, errors
    assert re.search(
        r"^winner: seat [12]\nGodot: -?\d+ points\nBot Rosa: -?\d+ points\n", printed.decode(), re.MULTILINE
    )
    assert b"/v1/" not in errors, "no call was refused"
