"""A bot that plays what the service suggests, and accepts every challenge, until it is stopped (docs/bot-programs.md).

Usage: bot.py NAME
RUMMIKUB_ADDRESS is host:port, RUMMIKUB_KEY the front end's key, RUMMIKUB_TICKETS a file with join tickets, one a line.
"""

import asyncio
import os
import sys
from pathlib import Path

from rummikub import Game, PlayTurnRequest, aio
from rummikub.bot import Bot, Legal, tickets_of


class Suggested(Bot):
    """Plays the best turn that the service finds."""

    async def choose(self, view: Game, legal: Legal) -> PlayTurnRequest:  # noqa: ARG002 - others look at the game
        """Returns the next turn."""
        return await legal.suggest() or legal.draw()


async def main() -> None:
    """Plays until the program is stopped."""
    async with aio.Rummikub(os.environ["RUMMIKUB_ADDRESS"], api_key=os.environ.get("RUMMIKUB_KEY")) as client:
        await Suggested(client, tickets_of(Path(os.environ["RUMMIKUB_TICKETS"])), name=sys.argv[1]).run()


asyncio.run(main())
