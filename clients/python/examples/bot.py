"""A bot that plays what the service suggests, and accepts challenges, until it is stopped (docs/bot-programs.md).

Usage: bot.py NAME
BOT_ADDRESS is host:port, BOT_KEY the front end's key, BOT_TICKETS a file with join tickets, one a line.
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
        return await legal.suggest()


async def main() -> None:
    """Plays until the program is stopped."""
    async with aio.Rummikub(os.environ["BOT_ADDRESS"], api_key=os.environ.get("BOT_KEY")) as client:
        await Suggested(client, tickets_of(Path(os.environ["BOT_TICKETS"])), name=sys.argv[1]).run()


asyncio.run(main())
