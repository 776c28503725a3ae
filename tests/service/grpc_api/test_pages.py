"""The code in the documentation runs unchanged."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from support.harness import ROOT, ServerProcess, server_process

PAGES = [ROOT / "README.md", ROOT / "clients" / "python" / "README.md"]


def snippets(page: Path, target: str) -> list[str]:
    """Returns a page's Python code, with the address of a test server."""
    code = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert code
    return [text.replace("127.0.0.1:50051", target).replace("Rummikub()", f'Rummikub("{target}")') for text in code]


async def run(code: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", "-c", code, cwd=ROOT / "tests", stdout=asyncio.subprocess.PIPE
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
async def test_what_a_page_shows_can_be_run(page: Path) -> None:
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://"}) as server:
        for code in snippets(page, server.target):
            if "WatchGame" in code:
                await see_it_watch(code, server)
                continue
            process = await run(code)
            printed, _ = await asyncio.wait_for(process.communicate(), 20)
            assert process.returncode == 0
            for comment in re.findall(r"print\([^\n]*\)  # (?:\.\.\. )?(.*)", code):
                assert comment in printed.decode()


async def see_it_watch(code: str, server: ServerProcess) -> None:
    """A snippet with a watch prints the snapshot and ends when the server stops."""
    process = await run(code.replace("print(update)", "print(update, flush=True)"))
    assert process.stdout
    first = await asyncio.wait_for(process.stdout.readline(), 20)
    assert first == b"snapshot {\n"
    await server.terminate()
    assert await asyncio.wait_for(process.wait(), 20) == 0
