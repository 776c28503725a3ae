"""The examples of docs/web-edge.md run as they are."""

import asyncio
import os
import re
import shutil
from pathlib import Path

import pytest

from support.edge import running_web
from support.harness import ROOT

EXAMPLE = re.search(r"```\n(URL=.*?)```", (ROOT / "docs" / "web-edge.md").read_text(), re.DOTALL)


@pytest.mark.skipif(
    not ((shutil.which("curl") and shutil.which("jq")) or os.environ.get("CI")),
    reason="needs curl and jq; run: apt-get install curl jq",
)
async def test_the_examples_with_curl_run(tmp_path: Path) -> None:
    assert EXAMPLE
    async with running_web(tmp_path) as web:
        script = "set -euo pipefail\n" + EXAMPLE[1].replace("http://127.0.0.1:8080", web.edge.url)
        process = await asyncio.create_subprocess_exec("bash", "-c", script, stdout=asyncio.subprocess.PIPE)
        printed, _ = await asyncio.wait_for(process.communicate(), 30)
    seat, state, rack, spectator, turn, goes_out = printed.decode().splitlines()
    assert (process.returncode, seat, state, turn, goes_out) == (0, "2", "GAME_STATE_PLAYING", "2", "true")
    assert rack.startswith('["TILE_')
    assert '"poolCount"' in spectator
