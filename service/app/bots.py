"""Bots: the seats that the service plays, through the use cases that every player goes through.

Whichever server makes a change after which a bot is to act plays the bot; no request waits for that. If the server dies
then, another one finds the game: by its sweeper, since the game is armed before the change (games.py), or when someone
looks at it. Two servers that play the same bot do no harm: the request id is made of the game and its revision, and so
only one change is stored. A bot sees the view of its seat.
"""

import asyncio
import contextlib
import hashlib
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import structlog

from engine.actions import ClaimError
from engine.bots import BotAction, action_without_play, action_without_search, choose_action
from engine.game import BotLevel, bots_to_act
from engine.solver import Budget
from engine.views import GameView, see
from service.analysis.queries import Query
from service.app.commands import Claim, Request, TurnRequest
from service.app.games import Games
from service.app.identity import Caller
from service.errors import ActionRefused, Fault, StaleState, TurnTimedOut
from service.storage.base import Loaded, Record

SEARCH_SECONDS: Final = 2.0
"""How long a bot searches for a turn at most."""
LONG_SECONDS: Final = 20.0
"""How long at most when what it did was refused, as where a play must be made that it has not found."""
SHARE: Final = 0.5
"""How much of what is left of its time a bot spends on one thing."""
PATIENCE: Final = 0.9
"""The share of what is left of its time after which a bot acts, whether it has got an answer or not."""
FINGERPRINT: Final = hashlib.sha256(b"bot").digest()
"""Of what bots ask for. It says nothing of the content: of two servers that play the same bot, the first decides."""

_log = structlog.get_logger()
_A = TypeVar("_A")


class Thinker(Protocol):
    """Who answers questions off the event loop (analysis_pool)."""

    async def ask(self, question: Query[_A], seconds: float) -> _A:
        """The answer, as soon as there is room for the search."""


@dataclass(frozen=True, slots=True)
class WhatToDo:
    """What does a bot do that sees this?"""

    view: GameView
    level: BotLevel

    def answer(self, budget: Budget) -> BotAction:
        """See Question."""
        return choose_action(self.view, self.level, budget)


class Bots:
    """Plays bots.

    Args:
        games: To act through, and to be told by.
        thinker: To search for turns.
        thoughts: Most searches at once, so that other callers of the thinker have room too.
        delay_seconds: How long a bot waits before each action, if its time allows.
        stopping: Set when the server stops.
    """

    def __init__(
        self, games: Games, thinker: Thinker, thoughts: int, delay_seconds: float, stopping: asyncio.Event
    ) -> None:
        self._games = games
        self._thinker = thinker
        self._room = asyncio.Semaphore(thoughts)
        self._delay_seconds = delay_seconds
        self._stopping = stopping
        self._playing: dict[str, asyncio.Task[None]] = {}
        self._told: set[str] = set()
        games.tell_of_bots(self.heed)

    def heed(self, record: Record) -> None:
        """Has the bots of a game act, unless they do already; then they look again afterwards."""
        game_id = record.game_id
        self._told.add(game_id)
        if game_id not in self._playing and not self._stopping.is_set():
            self._playing[game_id] = asyncio.create_task(self._play(game_id), name=f"bots-{game_id}")

    async def close(self) -> None:
        """Leaves the bots to the other servers. What is being stored is stored or not, as if this server had died."""
        tasks = tuple(self._playing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _play(self, game_id: str) -> None:
        """Acts for bots until none is to act. Whatever fails is tried again when the bot seems forgotten."""
        try:
            while game_id in self._told and not self._stopping.is_set():
                self._told.discard(game_id)
                with contextlib.suppress(StaleState, TurnTimedOut):  # whoever changed the game tells of it
                    await self._act_once(game_id)
        except Fault as fault:
            _log.debug("bot", game_id=game_id, result=type(fault).__name__)
        except Exception:  # noqa: BLE001 - whatever one game meets, the others' bots play on
            _log.exception("bot", game_id=game_id)
        finally:
            self._told.discard(game_id)
            del self._playing[game_id]

    async def _act_once(self, game_id: str) -> None:
        """Acts for the first bot that is to act. What it leads to, or what came in between, is told by `games`."""
        loaded = await self._games.settle(game_id)
        record = loaded.record
        if record is None or not bots_to_act(record.game):
            return
        by = self._by(loaded)
        await self._pause(loaded)
        if self._stopping.is_set():
            return
        seat = bots_to_act(record.game)[0]
        view, level = see(record.game, seat), record.game.player(seat).bot
        if level is None:
            raise RuntimeError("a seat that is no bot's is not asked")
        action = action_without_search(view) or await self._decide(loaded, WhatToDo(view, level), SEARCH_SECONDS, by)
        try:
            await self._do(record, seat, action)
        except ActionRefused as fault:
            if isinstance(action, ClaimError):
                return  # the claim is over, and whoever ended it has told of the game
            _log.warning("bot", game_id=game_id, result=fault.refused.violations[0].reason.name)
            await self._do(record, seat, await self._decide(loaded, WhatToDo(view, level), LONG_SECONDS, by))

    async def _pause(self, loaded: Loaded) -> None:
        seconds = min(self._delay_seconds, self._left(loaded) * SHARE)
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)

    def _left(self, loaded: Loaded) -> float:
        """How many seconds are left of the turn in progress."""
        round_ = loaded.record and loaded.record.game.round
        if not round_ or round_.turn.deadline_ms is None:
            return float("inf")
        return max(0.0, (round_.turn.deadline_ms - loaded.now_ms) / 1000)

    def _by(self, loaded: Loaded) -> float | None:
        """When a bot is to act at the latest, by the event loop's clock, if its turn has a deadline."""
        left = self._left(loaded)
        return None if left == float("inf") else asyncio.get_running_loop().time() + left * PATIENCE

    async def _decide(self, loaded: Loaded, question: WhatToDo, most_seconds: float, by: float | None) -> BotAction:
        seconds = min(most_seconds, self._left(loaded) * SHARE * SHARE)  # the other share may be spent on waiting
        try:
            async with asyncio.timeout_at(by), self._room:  # there may be no room in time
                return await self._thinker.ask(question, seconds)
        except Exception as error:  # noqa: BLE001 - a bot must not keep the others waiting, whatever befell its search
            _log.warning("bot", result="no answer from the search", error=type(error).__name__)
            return action_without_play(question.view)

    async def _do(self, record: Record, seat: int, action: BotAction) -> None:
        """Does it as the bot's seat, on the very revision that was decided on."""
        game_id, revision = record.game_id, record.game.revision
        token = next(token for token in record.tokens if token.seat == seat)
        match action:
            case ClaimError(_, play_revision, agrees):
                request = Request(Caller(token.digest), f"bot-{game_id}-vote-{play_revision}", FINGERPRINT)
                await self._games.claim_error(Claim(game_id, play_revision, agrees), request, lambda _: b"")
            case _:
                request = Request(Caller(token.digest), f"bot-{game_id}-{revision}", FINGERPRINT)
                turn = TurnRequest(game_id, revision, record.etag, validate_only=False, action=lambda _: action)
                await self._games.play_turn(turn, request, lambda _: b"")
