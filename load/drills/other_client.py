"""Players with the client library of another version, in a process of its own: Python imports one version of a package.

`python -m load.drills.other_client ADDRESS FOLDER GAMES PAUSE` plays with the package in a folder until its input ends,
and prints the report.
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import rummikub
from load.drills.players import Players, Report, retrying_client
from tools.servers import ROOT, ServerError

STOP_SECONDS = 10


@contextlib.asynccontextmanager
async def other_players(
    target: str, folder: Path, games: int, pause: float
) -> AsyncIterator[Callable[[], Awaitable[Report]]]:
    """Plays within the context; yields a function that ends the games and returns the report.

    Args:
        target: The address of the server.
        folder: Where the package rummikub of the other version is installed.
        games: How many games are played at once.
        pause: The longest pause before a turn, in seconds.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, target, str(folder), str(games), str(pause)),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )

    async def stop() -> Report:
        try:
            output, _ = await asyncio.wait_for(process.communicate(b""), STOP_SECONDS)  # the end of its input
        except TimeoutError:  # the end of the context kills the process
            raise RuntimeError(f"the players with the client in {folder} did not stop in {STOP_SECONDS} s") from None
        if process.returncode:
            raise RuntimeError(f"the players with the client in {folder} failed; see their message above")
        return Report(**json.loads(output))

    try:
        if process.stdout is None or not await process.stdout.readline():
            raise ServerError(f"the players with the client in {folder} did not start; see their message above")
        yield stop
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _play(target: str, folder: str, games: str, pause: str) -> None:
    if not Path(rummikub.__file__).is_relative_to(folder):
        sys.exit(f"{folder} has no package rummikub")
    async with Players([target], int(games), float(pause), retrying_client) as players:
        await players.has_taken(1)
        print("playing", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        print(json.dumps((await players.stop()).as_json()))


if __name__ == "__main__":
    asyncio.run(_play(*sys.argv[1:]))
