"""The code in the documentation runs unchanged."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from support.harness import ROOT, server_process

pytestmark = pytest.mark.slow

PAGES = [ROOT / page for page in ("README.md", "docs/examples.md", "docs/puzzles.md", "clients/python/README.md")]


def snippets(page: Path, target: str) -> list[str]:
    """Returns a page's Python code, with the address of a test server."""
    code = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert code
    return [text.replace("127.0.0.1:50051", target) for text in code]


async def run(code: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", "-c", code, cwd=ROOT / "tests", stdout=asyncio.subprocess.PIPE
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
async def test_what_a_page_shows_can_be_run(page: Path) -> None:
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://"}) as server:
        for code in snippets(page, server.target):
            process = await run(code)
            printed, _ = await asyncio.wait_for(process.communicate(), 60)
            assert process.returncode == 0
            for comment in re.findall(r"print\([^\n]*\)  # (?:\.\.\. )?(.*)", code):
                assert comment in printed.decode()


async def test_the_calls_with_buf_judge_a_turn() -> None:
    own_games = (ROOT / "docs" / "start" / "own-games.md").read_text()
    [validate] = re.findall(r"^ *(\.venv/bin/buf curl .*?\}')$", own_games, re.DOTALL | re.MULTILINE)
    examples = (ROOT / "docs" / "examples.md").read_text()
    [define] = re.findall(r"^rpc\(\) .*$", examples, re.MULTILINE)
    [again] = re.findall(r"^rpc ValidationService/.*?\}'$", examples, re.DOTALL | re.MULTILINE)
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://"}) as server:
        script = re.sub(r"127\.0\.0\.1:\d+", server.target, f"set -e\n{validate}\n{define}\n{again}")
        process = await asyncio.create_subprocess_exec("bash", "-c", script, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
        printed, _ = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, printed.count(b'"goesOut": true')) == (0, 2)
