"""Quick play: a player gets a seat in an open public game like the one they want, or a new game is created for them.

Callers who find no open game at the same time agree in the store on the id of the new one: the first to commit creates
it, the others join it. Nobody waits for anybody, so a server that dies holds up no one, and a game is created together
with its first player, so none is left empty.
"""

from collections.abc import AsyncIterator
from typing import Final

from service.app.changes import ATTEMPTS, ChangeLoop
from service.app.commands.command import Answer
from service.app.commands.lobby import JoinOrCreateGame
from service.app.creation import GameCreation
from service.app.identity import Chance, new_game_id
from service.errors import ActionRefused, NotAdmitted, StaleState
from service.storage.lists import match_key
from service.storage.store import BRIEF_MS, Store

OPEN_GAMES: Final = 20
"""Most open games that a call tries before it creates one."""


class QuickPlay:
    """Seats players in open games.

    Args:
        store: The store.
        chance: The source of randomness.
        changes: Retries commands.
        creation: Creates and joins games.
    """

    def __init__(self, store: Store, chance: Chance, changes: ChangeLoop, creation: GameCreation) -> None:
        self._store = store
        self._chance = chance
        self._changes = changes
        self._creation = creation

    async def join_or_create(self, command: JoinOrCreateGame, answer: Answer) -> bytes:
        """Seats a player in the oldest open game like the plan, or creates one, and returns the answer."""
        return await self._changes.retrying(self._try, command, answer)

    async def _try(self, command: JoinOrCreateGame, answer: Answer) -> bytes:
        refused = ""
        async for candidate in self._candidates(command):
            game_id = await self._assign(command, candidate, refused)
            try:
                return await self._creation.join_or_create(command, game_id, answer)
            except (ActionRefused, NotAdmitted):  # full or started meanwhile, or not for a person of this name
                refused = game_id
        raise StaleState(0)

    async def _candidates(self, command: JoinOrCreateGame) -> AsyncIterator[str]:
        """Yields the ids of games to try: the one that this request had before, the open ones, new ones."""
        if command.request.key and (assigned := await self._store.names.find(_request_name(command))):
            yield assigned
        match = match_key(command.plan.ruleset, command.plan.settings, command.plan.labels, command.plan.key)
        for record in await self._store.lists.oldest_open(match, OPEN_GAMES):
            yield record.game_id
        meeting = ""
        for _ in range(ATTEMPTS):
            new = new_game_id(self._chance)
            meeting = await self._store.names.point(f"meeting:{match}", new, meeting, kept_ms=BRIEF_MS)
            yield meeting

    async def _assign(self, command: JoinOrCreateGame, game_id: str, refused: str) -> str:
        """Returns the game that a request is to try, after its last one refused; all its repetitions get the same."""
        if not command.request.key:
            return game_id
        return await self._store.names.point(_request_name(command), game_id, refused)


def _request_name(command: JoinOrCreateGame) -> str:
    return f"request:{command.request.key}"
