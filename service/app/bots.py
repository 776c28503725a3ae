"""Bots: seats that the service plays, as players or for absent ones, through the same use cases as other players.

The server that stores a change plays the bot that acts next; no request waits for it. If that server dies, another one
finds the game: its sweeper, because the game is armed before the change (changes.py), or a request that reads it. Two
servers may play the same bot: the request id is derived from the game and its revision, so only one change is stored. A
bot sees only the view of its seat.
"""

import asyncio
import contextlib
import hashlib
from contextvars import Context
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import structlog

from engine.effort import Budget
from engine.family import bots_of
from engine.game import bots_to_act
from engine.melding.actions import ClaimError
from engine.seats import BotLevel
from engine.sight import see
from engine.unions import BotAction
from engine.views import GameView
from service.analysis.queries import Query
from service.app.changes import ChangeLoop
from service.app.commands.command import RequestIdentity
from service.app.commands.turns import PlayTurn, TurnRequest, claim_error
from service.app.identity import Caller
from service.errors import ActionRefused, Fault, StaleState, TurnTimedOut
from service.model.change import Loaded
from service.model.record import Record

SEARCH_SECONDS: Final = 2.0
"""The longest search for a turn."""
LONG_SECONDS: Final = 20.0
"""The longest search after a refused action, for example if the rules require a play that the bot has not found."""
SHARE: Final = 0.5
"""The share of the remaining time that a bot spends on one step."""
PATIENCE: Final = 0.9
"""The share of the remaining time after which a bot acts, even without an answer from its search."""
FINGERPRINT: Final = hashlib.sha256(b"bot").digest()
"""The fingerprint of bots' requests. It ignores the content: if two servers play the same bot, the first decides."""

_log = structlog.get_logger()
_A = TypeVar("_A")


class Thinker(Protocol):
    """Answers questions off the event loop (analysis.pool)."""

    async def ask(self, question: Query[_A], seconds: float) -> _A:
        """Returns the answer; waits until a worker is free."""


@dataclass(frozen=True, slots=True)
class ChooseAction:
    """The question which action a bot takes, given its view."""

    view: GameView
    level: BotLevel

    def answer(self, budget: Budget) -> BotAction:
        return bots_of(self.view).choose_action(self.view, self.level, budget)


class Bots:
    """Plays bots.

    Args:
        changes: Changes games; it reports when a bot is to act.
        thinker: Searches for turns.
        thoughts: Most searches at once, which leaves workers to other callers.
        delay_seconds: How long a bot of any game waits before each action, if its time allows. A game may ask for
            more (bot_pause_ms).
        stopping: Set when the server stops.
    """

    def __init__(
        self, changes: ChangeLoop, thinker: Thinker, thoughts: int, delay_seconds: float, stopping: asyncio.Event
    ) -> None:
        self._changes = changes
        self._thinker = thinker
        self._room = asyncio.Semaphore(thoughts)
        self._delay_seconds = delay_seconds
        self._stopping = stopping
        self._playing: dict[str, asyncio.Task[None]] = {}
        self._pending: set[str] = set()
        changes.on_bot_turn(self.on_bot_turn)

    def on_bot_turn(self, record: Record) -> None:
        """Starts a task for a game's bots. If one is running, it checks the game once more."""
        game_id = record.game_id
        self._pending.add(game_id)
        if game_id not in self._playing and not self._stopping.is_set():
            self._playing[game_id] = asyncio.create_task(
                self._play(game_id),
                name=f"bots-{game_id}",
                context=Context(),  # not part of the call
            )

    async def close(self) -> None:
        """Stops playing; other servers take over. A commit under way may or may not be stored."""
        tasks = tuple(self._playing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _play(self, game_id: str) -> None:
        """Acts for bots until none is to act. A failed action is repeated when the bot counts as forgotten."""
        try:
            while game_id in self._pending and not self._stopping.is_set():
                self._pending.discard(game_id)
                with contextlib.suppress(StaleState, TurnTimedOut):  # that change reports the next bot turn itself
                    await self._act_once(game_id)
        except Fault as fault:
            _log.debug("bot", game_id=game_id, result=type(fault).__name__)
        except Exception:  # noqa: BLE001 - a failure in one game must not stop other bots
            _log.exception("bot", game_id=game_id)
        finally:
            self._pending.discard(game_id)
            del self._playing[game_id]

    async def _act_once(self, game_id: str) -> None:
        """Acts for the first bot that is to act. The change loop reports any bot turn that follows."""
        loaded = await self._changes.settle(game_id)
        record = loaded.record
        if record is None or not bots_to_act(record.game):
            return
        act_by = self._act_by(loaded)
        await self._pause(loaded)
        if self._stopping.is_set():
            return
        seat = bots_to_act(record.game)[0]
        view, level = see(record.game, seat), record.game.player(seat).played_by
        if level is None:
            raise RuntimeError(f"no bot plays seat {seat}")
        action = bots_of(view).action_without_search(view) or await self._decide(
            loaded, ChooseAction(view, level), SEARCH_SECONDS, act_by
        )
        try:
            await self._do(record, seat, action)
        except ActionRefused as fault:
            if isinstance(action, ClaimError):
                return  # the vote is over; the change that ended it reported the game
            _log.warning("bot", game_id=game_id, result=fault.refused.violations[0].reason.name)
            await self._do(record, seat, await self._decide(loaded, ChooseAction(view, level), LONG_SECONDS, act_by))

    async def _pause(self, loaded: Loaded) -> None:
        asked = loaded.record.game.settings.bot_pause_ms / 1000 if loaded.record else 0.0
        seconds = min(max(self._delay_seconds, asked), self._left(loaded) * SHARE)
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)

    def _left(self, loaded: Loaded) -> float:
        """Returns the seconds left of the turn in progress; infinity without a deadline."""
        round_ = loaded.record and loaded.record.game.round
        if not round_ or round_.turn.deadline_ms is None:
            return float("inf")
        return max(0.0, (round_.turn.deadline_ms - loaded.now_ms) / 1000)

    def _act_by(self, loaded: Loaded) -> float | None:
        """Returns the latest time for a bot to act, by the event loop's clock; None without a deadline."""
        left = self._left(loaded)
        return None if left == float("inf") else asyncio.get_running_loop().time() + left * PATIENCE

    async def _decide(
        self, loaded: Loaded, question: ChooseAction, most_seconds: float, act_by: float | None
    ) -> BotAction:
        # the wait for a worker may take as long as the search
        seconds = min(most_seconds, self._left(loaded) * SHARE * SHARE)
        try:
            async with asyncio.timeout_at(act_by), self._room:
                return await self._thinker.ask(question, seconds)
        except Exception as error:  # noqa: BLE001 - a failed search must not hold up the game
            _log.warning("bot", result="no answer from the search", error=type(error).__name__)
            return bots_of(question.view).action_without_play(question.view)

    async def _do(self, record: Record, seat: int, action: BotAction) -> None:
        """Takes an action as the bot's seat, at the revision that it was decided on.

        The request id has spaces, so it is no id that the owner of a seat could send.
        """
        game_id, revision = record.game_id, record.game.revision
        token = next(token for token in record.tokens if token.seat == seat)
        caller = Caller(token.digest, stands_in=record.game.player(seat).stand_in is not None, key=record.listing.key)
        match action:
            case ClaimError(_, play_revision, agrees):
                request = RequestIdentity(caller, f"bot {game_id} vote {play_revision}", FINGERPRINT)
                await self._changes.run(claim_error(request, game_id, play_revision, agrees=agrees))
            case _:
                request = RequestIdentity(caller, f"bot {game_id} {revision}", FINGERPRINT)
                turn = TurnRequest(game_id, revision, record.etag, validate_only=False, action=lambda _: action)
                await self._changes.run_cached(PlayTurn(request, game_id, turn))
