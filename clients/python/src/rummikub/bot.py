"""A program that plays: subclass `Bot`, and write `choose`.

```python
class Simple(Bot):
    async def choose(self, view: Game, legal: Legal) -> PlayTurnRequest:
        return await legal.suggest()


asyncio.run(Simple(aio.Rummikub("127.0.0.1:50051", api_key=KEY), new_ticket, name="Simple").run())
```

A bot has one stream for all its games and challenges. After a lost connection it connects again, and continues with
what the server has. It joins the games in which a seat is reserved for it.
"""

import asyncio
import contextlib
import json
import logging
import random
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from rummikub import turns
from rummikub.aio import Rummikub
from rummikub.calls import new_request_id
from rummikub.errors import explain, refusal
from rummikub.v1 import challenge_service_pb2 as challenges
from rummikub.v1 import error_reason_pb2 as reasons
from rummikub.v1.analysis_service_pb2 import Position, SuggestTurnRequest
from rummikub.v1.game_pb2 import (
    GAME_STATE_LOBBY,
    GAME_STATE_PLAYING,
    GAME_STATE_ROUND_OVER,
    TURN_STEP_CHOOSING,
    TURN_STEP_DISCARDING,
    TURN_STEP_DRAWN,
    Game,
    GameSummary,
)
from rummikub.v1.game_service_pb2 import (
    GetGameRequest,
    JoinGameRequest,
    ListOwnGamesRequest,
    OwnGame,
    OwnSeat,
    WatchOwnGamesRequest,
    WatchOwnGamesResponse,
)
from rummikub.v1.meld_pb2 import Meld
from rummikub.v1.tile_pb2 import TILE_ORANGE_13, Tile
from rummikub.v1.turn_service_pb2 import LayOnRiver, PlayTurnRequest, ReturnToSeatRequest, StartNextRoundRequest
from rummikub.watching import SILENCE_SECONDS

FIRST_DELAY_SECONDS: Final = 0.2
LONGEST_DELAY_SECONDS: Final = 5.0
TICKETS_TRIED: Final = 10
"""How many tickets a bot tries to join with: those that it has used are refused."""
REFUSALS_OF_TURN: Final = 3
"""After so many refusals a turn is left to its time."""
_PASSING: Final = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.CANCELLED,
}
"""Codes after which the same request may succeed."""
_OPEN_STATES: Final = {GAME_STATE_LOBBY, GAME_STATE_PLAYING, GAME_STATE_ROUND_OVER}
_NEW_TICKET: Final = {reasons.TICKET_USED, reasons.TICKET_EXPIRED}

_log = logging.getLogger("rummikub.bot")


class Legal:
    """The actions that a bot may take in its turn, as requests for `PlayTurn`.

    Args:
        client: The bot's connection as the seat.
        view: The game as the seat sees it.
    """

    def __init__(self, client: Rummikub, view: Game) -> None:
        self._client = client
        self._view = view

    def play(self, table: list[Meld]) -> PlayTurnRequest:
        """Returns the turn after which the table has these melds."""
        return turns.play(self._view, table)

    def draw(self) -> PlayTurnRequest:
        """Returns the turn that draws, or passes if the pool is empty."""
        return turns.draw(self._view) if self._view.pool_count else self.pass_turn()

    def fallback(self) -> PlayTurnRequest:
        """Returns the next action of a turn that plays no tile, in any game.

        It draws or passes. In a game of discards it takes a tile of the pool, then discards the highest one.
        """
        view = self._view
        if view.HasField("discard_board"):
            return self._exchange()
        if view.turn.step == TURN_STEP_CHOOSING:
            request = PlayTurnRequest(lay_on_river=LayOnRiver(tile=max(view.turn.tiles_drawn, key=_value)))
            request.game_id, request.etag = view.game_id, view.etag
            return request
        return self.pass_turn() if view.turn.step == TURN_STEP_DRAWN else self.draw()

    def _exchange(self) -> PlayTurnRequest:
        """Returns the next action of an exchange of a tile, in a game of discards."""
        view, board = self._view, self._view.discard_board
        if view.turn.step != TURN_STEP_DISCARDING:
            return turns.take_from_pool(view) if view.pool_count else turns.pass_empty_pool(view)
        if board.owed_tile:
            return turns.return_discard(view)
        return turns.discard(view, max(view.rack, key=lambda tile: _value(tile) if tile != board.okey else 0))

    def pass_turn(self) -> PlayTurnRequest:
        """Returns the turn that passes."""
        return turns.pass_turn(self._view)

    async def suggest(self) -> PlayTurnRequest:
        """Returns the best turn that the service finds, and `fallback` if none plays a tile.

        Where the game gives no hints, the service gets the position, which has only what the seat sees. It takes no
        positions of games of discards: there it is `fallback`.
        """
        try:
            answer = await self._client.analysis.SuggestTurn(SuggestTurnRequest(game_id=self._view.game_id))
        except grpc.aio.AioRpcError as error:
            if refusal(error).reason != reasons.HINT_NOT_ALLOWED:
                raise
        else:
            return answer.turn
        view = self._view
        if not view.ruleset.HasField("melding"):
            return self.fallback()
        has_melded = next(player.has_melded for player in view.players if player.seat == view.seat)
        position = Position(
            ruleset=view.ruleset.melding, table=view.table, rack=view.rack, has_melded=has_melded, river=view.river
        )
        found = (await self._client.analysis.SuggestTurn(SuggestTurnRequest(position=position))).suggestion
        if not found.tiles_played:
            return self.fallback()
        if found.table.placements:
            return turns.place(view, found.table.placements)
        request = turns.play(view, turns.melds_of(found.table.melds))
        if found.HasField("river_index"):
            request.play.river_index = found.river_index
        return request

    async def is_legal(self, turn: PlayTurnRequest) -> bool:
        """Returns whether the rules allow a turn, without playing it."""
        asked = PlayTurnRequest()
        asked.CopyFrom(turn)
        asked.validate_only = True
        with contextlib.suppress(grpc.aio.AioRpcError):
            return not (await self._client.turns.PlayTurn(asked)).violations
        return False


class Bot:
    """A program that plays all its games on one stream.

    Args:
        client: A connection without a token.
        ticket: Returns a join ticket that is not used yet, whenever one is needed. Without it the bot has the games of
            `tokens_file`, and those that it is given by `add`.
        name: The name, if the tickets have none.
        tokens_file: Keeps the tokens of seats, so that the program may be started again in the middle of a game.
        games_max: Most games at once, those in the lobby included: with so many, it declines challenges.
    """

    def __init__(
        self,
        client: Rummikub,
        ticket: Callable[[], str] | None = None,
        *,
        name: str = "",
        tokens_file: Path | None = None,
        games_max: int = 10,
    ) -> None:
        self.client = client
        self._ticket = ticket
        self._name = name
        self._tokens_file = tokens_file
        self._games_max = games_max
        self.tokens: dict[str, str] = (
            json.loads(tokens_file.read_text()) if tokens_file and tokens_file.exists() else {}
        )
        self._latest: dict[str, OwnGame] = {}
        self._open: set[str] = set()
        """The games that are not over."""
        self._accepting: set[str] = set()
        """The challenges that are being accepted."""
        self._present: set[str] = set()
        """The games in which no other program stands in for the bot, since it connected."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._answers: set[asyncio.Task[None]] = set()
        self._stopped = asyncio.Event()

    async def choose(self, view: Game, legal: Legal) -> PlayTurnRequest:
        """Returns the next turn, or the next step of one, in a game in which the bot has the turn.

        If it raises an exception, or its turn is refused, the bot takes `Legal.fallback`.
        """
        raise NotImplementedError

    async def answer(self, challenge: challenges.Challenge) -> "challenges.DeclineReason.ValueType | None":  # noqa: ARG002 - for subclasses
        """Returns why the bot declines a challenge; None to accept it. By default it accepts while it has few games."""
        if self._is_full():
            await self._recount()
        return challenges.DECLINE_REASON_LATER if self._is_full() else None

    async def over(self, game_id: str, game: GameSummary, *, won: bool) -> None:
        """Is called once after each game."""

    def add(self, game_id: str, token: str) -> None:
        """Adds the token of a seat of the bot."""
        self.tokens[game_id] = token
        if self._tokens_file:
            new = self._tokens_file.with_suffix(".new")  # replaced in one step, so that the file is always whole
            new.write_text(json.dumps(self.tokens))
            new.replace(self._tokens_file)

    def stop(self) -> None:
        """Ends `run`, also in the middle of games."""
        self._stopped.set()

    async def run(self) -> None:
        """Plays until `stop`, or, without tickets, until all games are over. Raises what no new attempt can mend."""
        delay, stopping = FIRST_DELAY_SECONDS, asyncio.create_task(self._stopped.wait())
        following: asyncio.Task[tuple[float, bool]] | None = None
        try:
            while not self._stopped.is_set() and (self._ticket or self.tokens):
                following = asyncio.create_task(self._follow())
                await asyncio.wait({following, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    break
                pause, has_heard = following.result()
                delay = FIRST_DELAY_SECONDS if has_heard else min(2 * delay, LONGEST_DELAY_SECONDS)
                pause = max(pause, delay * random.uniform(0.5, 1))  # noqa: S311 - spreads the clients of a server that is back
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(stopping), pause)
        finally:
            self._stopped.set()
            for task in (stopping, *([following] if following else []), *self._tasks.values(), *self._answers):
                task.cancel()

    async def _follow(self) -> tuple[float, bool]:
        """Follows one stream to its end; returns the pause before the next one, and whether it had an update."""
        request = WatchOwnGamesRequest(join_ticket=self._ticket()) if self._ticket else self._seats()
        stream: Any = self.client.games.WatchOwnGames(request, wait_for_ready=False)
        has_heard, pause = False, 0.0
        self._present.clear()
        self._open.clear()
        try:
            while (self._ticket or self.tokens) and not self._stopped.is_set():  # wait_for may swallow a cancellation
                update = await asyncio.wait_for(stream.read(), SILENCE_SECONDS)
                if update is grpc.aio.EOF:
                    break
                has_heard = True
                pause = update.closing.retry_delay.ToTimedelta().total_seconds()
                self._receive(update)
        except TimeoutError:
            _log.warning("the stream is silent: connecting again")
        except grpc.aio.AioRpcError as error:
            is_broken = error.code() in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}
            is_late = refusal(error).reason in _NEW_TICKET
            if not (error.code() in _PASSING or is_late or (is_broken and not refusal(error).reason)):
                raise
            _log.warning("%s: connecting again", explain(error, self.client.target))
        finally:
            stream.cancel()
        return pause, has_heard

    def _seats(self) -> WatchOwnGamesRequest:
        seats = [OwnSeat(game_id=game_id, seat_token=token) for game_id, token in self.tokens.items()]
        return WatchOwnGamesRequest(seats=seats)

    def _receive(self, update: WatchOwnGamesResponse) -> None:
        match update.WhichOneof("update"):
            case "game":
                self._latest[update.game.game_id] = update.game
                is_open = update.game.game.state in _OPEN_STATES
                (self._open.add if is_open else self._open.discard)(update.game.game_id)
                self._wake(update.game.game_id)
            case "challenge" if (
                update.challenge.is_incoming and update.challenge.state == challenges.CHALLENGE_STATE_OPEN
            ):
                answering = asyncio.create_task(self._answer(update.challenge))
                self._answers.add(answering)
                answering.add_done_callback(self._answers.discard)
            case _:
                pass

    def _wake(self, game_id: str) -> None:
        """Handles the latest state of a game, after what is under way in it."""
        if game_id not in self._tasks:
            self._tasks[game_id] = asyncio.create_task(self._handle(game_id))

    async def _handle(self, game_id: str) -> None:
        while game_id in self._latest:
            entry = self._latest.pop(game_id)
            try:
                await self._act(game_id, entry)
            except grpc.aio.AioRpcError as error:
                _log.warning("game %s: %s", game_id, explain(error, self.client.target))
                if error.code() in _PASSING and not self._stopped.is_set():
                    self._latest.setdefault(game_id, entry)
                    await asyncio.sleep(LONGEST_DELAY_SECONDS / 5)
            except Exception:  # noqa: BLE001 - of the subclass, whose other games go on
                _log.exception("game %s", game_id)
        del self._tasks[game_id]  # at once, and not when the task is done: an update between would wake no task

    async def _act(self, game_id: str, entry: OwnGame) -> None:
        game = entry.game
        if entry.refusal in {reasons.GAME_NOT_FOUND, reasons.TOKEN_VOID}:
            self._forget(game_id)
        elif game_id not in self.tokens:
            if game.state == GAME_STATE_LOBBY and self._ticket and not entry.HasField("seat"):
                await self._join(game_id)
        elif game.state in {GAME_STATE_PLAYING, GAME_STATE_ROUND_OVER} and game_id not in self._present:
            self._present.add(game_id)
            request = ReturnToSeatRequest(game_id=game_id, request_id=new_request_id())
            await self._quietly(self._dependably(partial(self._seat(game_id).turns.ReturnToSeat, request)))
            await self._act(game_id, entry)
        elif game.state == GAME_STATE_PLAYING and game.turn_seat == entry.seat:
            if not await self._take_turn(game_id):
                self._present.discard(game_id)
        elif game.state == GAME_STATE_ROUND_OVER:
            await self._quietly(self._seat(game_id).turns.StartNextRound(StartNextRoundRequest(game_id=game_id)))
        elif game.state not in {GAME_STATE_LOBBY, GAME_STATE_PLAYING, 0}:
            try:
                await self.over(game_id, game, won=entry.seat in entry.winner_seats)
            finally:  # after `over`: without tickets, `run` returns after the last game
                self._forget(game_id)

    def _seat(self, game_id: str) -> Rummikub:
        return self.client.seated(self.tokens[game_id])

    def _forget(self, game_id: str) -> None:
        if token := self.tokens.pop(game_id, ""):
            self.add(game_id, token)  # writes the file without a game that is over
            del self.tokens[game_id]

    async def _join(self, game_id: str) -> None:
        """Takes the seat that is reserved for the bot, with a ticket that is not used."""
        for _ in range(TICKETS_TRIED):
            request = JoinGameRequest(game_id=game_id, name=self._name, is_program=True, request_id=new_request_id())
            request.join_ticket = self._ticket() if self._ticket else ""
            try:
                joined = await self._dependably(partial(self.client.games.JoinGame, request))
            except grpc.aio.AioRpcError as error:
                if refusal(error).reason not in _NEW_TICKET:
                    raise
            else:
                self.add(game_id, joined.seat_token)
                return

    async def _take_turn(self, game_id: str) -> bool:
        """Plays until the turn has ended; returns whether the bot has ended it.

        After an error of `choose` and a refused turn it falls back, then passes.
        """
        seat, refused, has_played = self._seat(game_id), 0, False
        while refused < REFUSALS_OF_TURN:
            view = (await self._dependably(partial(seat.games.GetGame, GetGameRequest(game_id=game_id)))).game
            if view.state != GAME_STATE_PLAYING or view.turn.seat != view.seat:
                return has_played
            legal, turn = Legal(seat, view), PlayTurnRequest()
            fallback = legal.fallback() if refused == 1 else legal.pass_turn()
            try:
                turn.CopyFrom(fallback if refused else await self.choose(view, legal))
                turn.request_id = new_request_id()
                has_played = False
                await self._dependably(partial(seat.turns.PlayTurn, turn))
                refused, has_played = 0, True
            except grpc.aio.AioRpcError as error:
                if refusal(error).reason == reasons.STALE_STATE:
                    continue
                _log.warning("game %s: %s", game_id, explain(error, self.client.target))
                refused += 1
            except Exception:  # noqa: BLE001 - of `choose`: the turn must not be lost with it
                _log.exception("game %s: choose failed", game_id)
                refused += 1
        return False

    async def _answer(self, challenge: challenges.Challenge) -> None:
        try:
            reason, calls = await self.answer(challenge), self.client.challenges
        except Exception:  # noqa: BLE001 - of the subclass: the challenge stays open
            _log.exception("challenge %s: answer failed", challenge.challenge_id)
            return
        ticket = self._ticket() if self._ticket else ""
        named = {"challenge_id": challenge.challenge_id, "join_ticket": ticket}
        if reason is None:
            await self._quietly(self._accept(challenges.AcceptChallengeRequest(**named, name=self._name)))
        else:
            decline = challenges.DeclineChallengeRequest(**named, reason=reason)
            await self._quietly(self._dependably(partial(calls.DeclineChallenge, decline)))

    async def _accept(self, request: challenges.AcceptChallengeRequest) -> None:
        """Accepts a challenge, which counts as a game from now on."""
        self._accepting.add(request.challenge_id)
        try:
            accepted = await self._dependably(partial(self.client.challenges.AcceptChallenge, request))
            self._open.add(accepted.challenge.game_id)
        finally:
            self._accepting.discard(request.challenge_id)

    def _is_full(self) -> bool:
        return len(self._open) + len(self._accepting) >= self._games_max

    async def _recount(self) -> None:
        """Drops games that are not open any more: no update comes of one that is gone, or has lost the seat."""
        known, ticket = set(self._open), self._ticket() if self._ticket else ""
        request = ListOwnGamesRequest(join_ticket=ticket)
        own = await self._dependably(partial(self.client.games.ListOwnGames, request))
        self._open -= known - {entry.game_id for entry in own.games if entry.game.state in _OPEN_STATES}

    async def _dependably(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - the call's answer
        """Returns the answer to a request with an id, sent again until the server answers."""
        delay = FIRST_DELAY_SECONDS
        while True:
            try:
                return await call()
            except grpc.aio.AioRpcError as error:
                if error.code() not in _PASSING or self._stopped.is_set():
                    raise
            await asyncio.sleep(delay)
            delay = min(2 * delay, LONGEST_DELAY_SECONDS)

    async def _quietly(self, call: Coroutine[Any, Any, Any] | Any) -> None:  # noqa: ANN401 - a call of grpc.aio
        """Awaits a call whose refusal does not matter: somebody else was first, or it is too late."""
        try:
            await call
        except grpc.aio.AioRpcError as error:
            _log.info("%s", explain(error, self.client.target))


def tickets_of(path: Path) -> Callable[[], str]:
    """Returns what returns the tickets of a file in turn, one a line; after the last one it begins again."""
    lines, place = path.read_text().split(), -1

    def following() -> str:
        nonlocal place
        place += 1
        return lines[place % len(lines)]

    return following


def _value(tile: Tile.ValueType) -> int:
    """Returns the number on a tile; 0 for one that is worth keeping."""
    return (tile - 1) % 13 + 1 if tile <= TILE_ORANGE_13 else 0
