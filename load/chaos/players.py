"""Players of a run: many games of two at once, played by simple legal turns, with callers that misbehave on purpose.

Each call is recorded with its outcome and repeated until it is answered. In between, players send a request twice at
once, two requests on one state, a used id with another content, a wrong etag, a turn of another seat, and a call with a
replaced token. Watchers resume whenever their stream breaks.
"""

import asyncio
import contextlib
import hashlib
import itertools
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import grpc
import grpc.aio
import jwt
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from engine.tiles import Color, Tile, tile
from load.calls import reason_of
from load.chaos.deployments import API_KEY, TICKET_SECRET
from load.chaos.history import OK, UNANSWERED, Call, History, StoredGame, Watched, revision_of
from load.corpus.simple_play import melds_to_lay
from load.drills.players import PLAIN, RETRY_SECONDS, is_unanswered
from rummikub.v1 import game_pb2, meld_pb2, room_settings_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from tools.games import Client, Options, as_tiles, bearer, creation, new_id, options

CALL_SECONDS: Final = 6.0
ANSWER_SECONDS: Final = 60.0
"""How long a call is repeated; then its outcome stays unknown, and its game is given up."""
CATCH_UP_SECONDS: Final = 30.0
CONNECTIONS: Final = 4
"""Connections to each server."""
NAMES: Final = ("Ann", "Bob")
MOST_TURNS: Final = 1_000
"""How many turns a game with pauses may take, which is played to the end of its rounds."""
ASLEEP: Final = 0.08
"""How often a player misses a turn with a deadline."""
ASLEEP_SECONDS: Final = 2.5
AWAY: Final = 0.03
"""How often nothing is sent in a game until time has changed it, which only the servers by themselves can do then."""
AWAY_SECONDS: Final = 50.0
"""How long at most: so long that faults do not explain it (checker.MOST_LATE)."""
PAGE: Final = 200
REFUSED_FOR_NOW: Final = frozenset({"STORE_FULL", "OVERLOADED", "TOO_MANY_GAMES", "SHUTTING_DOWN", "STORE_UNAVAILABLE"})
"""Refusals after which the same request is sent again, and may have been executed before."""

PAUSES: Final = "pauses"
"""The kind of games with a pause between two rounds."""
LAST_TURN: Final = gs.StartPosition(
    seats=[
        gs.StartSeat(seat=1, rack=as_tiles(tile(Color.RED, value) for value in (11, 12, 13))),
        gs.StartSeat(seat=2, rack=as_tiles(tile(Color.BLUE, value) for value in (1, 5, 9))),
    ],
    turn_seat=1,
)
"""The start of their first round: seat 1 goes out with its first play. A round from a deal takes 80 turns."""
TICKETS: Final = "tickets"
"""The kind of games that are joined with tickets."""
TICKET_SECONDS: Final = 36_000
USED_TICKETS: Final = 50
"""How many used tickets are tried again."""
PLAIN_GAME: Final = options(turn_time_limit_seconds=0)
KINDS: Final[dict[str, tuple[int, Options]]] = {
    "plain": (5, PLAIN_GAME),
    "timed": (
        3,
        options(
            turn_time_limit_seconds=2,
            absent_after_timeouts=2,
            absent_action=room_settings_pb2.ABSENT_ACTION_RESIGN,
        ),
    ),
    "bank": (2, options(turn_time_limit_seconds=0, clock_total_seconds=20, clock_increment_seconds=1)),
    PAUSES: (
        2,
        options(
            turn_time_limit_seconds=0,
            deal_hand_size=21,
            match_end=ruleset_pb2.MATCH_END_FIXED_ROUNDS,
            match_rounds=2,
            round_pause_seconds=1,
        ),
    ),
    TICKETS: (2, PLAIN_GAME),
}
"""The kinds of games, with how often each is played, of fourteen."""


class GivenUp(Exception):  # noqa: N818 - how a game of the load ends
    """A game cannot be played on: a call got no answer for too long, or an unexpected refusal."""


@dataclass(slots=True)
class Seat:
    """A seat at a game, with its token, and the one that it has replaced."""

    number: int
    token: str
    replaced: str = ""


@dataclass(slots=True)
class Watcher:
    """A watcher's place in a game."""

    name: str
    game_id: str
    etag: str = ""


@dataclass(slots=True)
class Players:
    """All players of a run.

    Args:
        targets: The addresses of the servers, through the proxies.
        history: Where calls are recorded.
        seed: Chooses games, turns and mischief.
        games: How many games are played at once.
        stunts: The share of turns with mischief.
        kinds: The kinds of games (KINDS); none for all.
        pause: The longest pause before a turn, in seconds.
    """

    targets: Sequence[str]
    history: History
    seed: int
    games: int = 10
    stunts: float = 0.2
    kinds: Collection[str] = ()
    pause: float = 0.02
    calls: int = 0
    finished: list["Game"] = field(default_factory=list)
    given_up: Counter[str] = field(default_factory=Counter)
    is_stopping: bool = False
    chance: random.Random = field(init=False)
    clients: list[Client] = field(default_factory=list)
    used_tickets: deque[str] = field(default_factory=lambda: deque(maxlen=USED_TICKETS))
    """Tickets that have taken a seat."""
    _exits: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _next_kinds: Iterator[str] = field(init=False)
    """The kinds of the next games: each once, then at random."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        names = [name for name in self.kinds or KINDS for _ in range(KINDS[name][0])]
        self._next_kinds = itertools.chain(dict.fromkeys(names), iter(lambda: self.chance.choice(names), ""))

    async def __aenter__(self) -> "Players":
        """Begins to play."""
        for target in self.targets:
            for _ in range(CONNECTIONS):
                channel = grpc.aio.insecure_channel(target, PLAIN)
                self.clients.append(Client(await self._exits.enter_async_context(channel)))
        self._tasks = [asyncio.create_task(self._play()) for _ in range(self.games)]
        self._tasks.append(asyncio.create_task(self._leave_lobbies()))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Ends all games at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._exits.aclose()

    async def stop(self) -> None:
        """Ends the games in progress in order: somebody resigns, and the watchers get the last change."""
        self.is_stopping = True
        await asyncio.gather(*self._tasks)

    def client(self) -> Client:
        """Returns a random connection."""
        return self.chance.choice(self.clients)

    def next_number(self) -> int:
        """Returns a number that no other one has."""
        return next(self._numbers)

    async def _play(self) -> None:
        while not self.is_stopping:
            name = next(self._next_kinds)
            start = LAST_TURN if name == PAUSES else None
            game = Game(self, KINDS[name][1], start, is_by_ticket=name == TICKETS)
            try:
                await game.play()
            except GivenUp as reason:
                self.given_up[str(reason)] += 1
                await asyncio.sleep(RETRY_SECONDS)
            if game.game_id:
                self.finished.append(game)

    async def _leave_lobbies(self) -> None:
        """Creates lobbies that no player joins, and reads them until they have expired."""
        lobbies: list[Game] = []
        while not self.is_stopping:
            if len(lobbies) < 5:
                game = Game(self, PLAIN_GAME)
                with contextlib.suppress(GivenUp):
                    await game.create("abandon")
                    lobbies.append(game)
            for game in lobbies:
                with contextlib.suppress(GivenUp):
                    await game.read(0, attempts=1)
            await asyncio.sleep(2)


class Game:
    """A game of two, from its creation to its end."""

    def __init__(
        self,
        players: Players,
        chosen: Options,
        start: gs.StartPosition | None = None,
        *,
        is_by_ticket: bool = False,
    ) -> None:
        self._players = players
        self._chance = players.chance
        self._options = chosen
        self._start = start
        self._is_by_ticket = is_by_ticket
        self._host = ""
        self._seats: dict[int, Seat] = {}
        self._watchers: list[Watcher] = []
        self.game_id = ""

    async def create(self, action: str = "create") -> None:
        """Creates the lobby."""
        request = gs.CreateGameRequest(**creation(self._options), position=self._start, request_id=new_id())
        created = await self._send("CreateGame", lambda client: client.games.CreateGame, request, action=action)
        self.game_id, self._host = created.game.game_id, created.host_token

    async def play(self) -> None:
        """Plays the game. Raises GivenUp."""
        await self.create()
        for name in NAMES:
            joined = await (self._join_by_ticket(name) if self._is_by_ticket else self._join(name))
            self._seats[joined.seat] = Seat(joined.seat, joined.seat_token)
        watching = [asyncio.create_task(self._watch(number)) for number in range(self._chance.randint(1, 2))]
        try:
            start = gs.StartGameRequest(game_id=self.game_id, request_id=new_id())
            await self._send(
                "StartGame", lambda client: client.games.StartGame, start, token=self._host, action="start"
            )
            last = await self._play_rounds()
            await self._caught_up(last)
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def _join(self, name: str, ticket: str = "") -> gs.JoinGameResponse:
        request = gs.JoinGameRequest(game_id=self.game_id, name=name, join_ticket=ticket, request_id=new_id())
        joined: gs.JoinGameResponse = await self._send(
            "JoinGame", lambda client: client.games.JoinGame, request, action="join"
        )
        return joined

    async def _join_by_ticket(self, name: str) -> gs.JoinGameResponse:
        """Joins with a new ticket, by two requests at once of which one is refused, and tries one used elsewhere."""
        if self._players.used_tickets:
            with contextlib.suppress(Refused):
                await self._join(name, self._chance.choice(self._players.used_tickets))
                raise GivenUp("a used ticket was accepted")
        ticket = _new_ticket(f"{name} {new_id()}")
        tries = await asyncio.gather(*(self._join(name, ticket) for _ in range(2)), return_exceptions=True)
        joined = [one for one in tries if not isinstance(one, BaseException)]
        if not joined:
            raise GivenUp(f"no request could join with a ticket: {tries}")
        self._players.used_tickets.append(ticket)
        return joined[0]

    async def _play_rounds(self) -> str:
        """Plays until the game is over; returns its last etag."""
        is_whole = "match_rounds" in self._options
        left = MOST_TURNS if is_whole else self._chance.randint(10, 120)
        game = await self.read(0)
        while game.state in {game_pb2.GAME_STATE_PLAYING, game_pb2.GAME_STATE_ROUND_OVER}:
            left -= 1
            if left < 0 or self._players.is_stopping:
                game = await self._resign()
                continue
            await asyncio.sleep(self._chance.uniform(0, self._players.pause))
            if game.state == game_pb2.GAME_STATE_ROUND_OVER:
                await self._between_rounds(game.etag)
            else:
                await self._turn(game.turn.seat)
            game = await self.read(self._chance.choice((0, 0, 1, 2)))
        return game.etag

    async def _between_rounds(self, etag: str) -> None:
        """Waits until the next round starts by itself, or starts it."""
        if self._chance.random() < 0.2:
            await self._away(etag)
        if self._chance.random() < 0.7:
            await asyncio.sleep(0.4)
            return
        seat = self._seats[self._chance.choice((1, 2))]
        request = ts.StartNextRoundRequest(game_id=self.game_id, request_id=new_id())
        await self._try("StartNextRound", lambda client: client.turns.StartNextRound, request, seat, "start")

    async def _away(self, etag: str) -> None:
        """Sends nothing until a watcher gets a change after this etag, or for AWAY_SECONDS."""
        until = time.monotonic() + AWAY_SECONDS
        while time.monotonic() < until:
            if any(revision_of(watcher.etag) > revision_of(etag) for watcher in self._watchers):
                break
            await asyncio.sleep(RETRY_SECONDS)

    async def _resign(self) -> game_pb2.Game:
        seat = self._seats[self._chance.choice((1, 2))]
        request = ts.ResignGameRequest(game_id=self.game_id, request_id=new_id())
        await self._try("ResignGame", lambda client: client.turns.ResignGame, request, seat, "resign")
        return await self.read(0)

    async def _turn(self, number: int) -> None:
        """Takes a turn for a seat, with some mischief."""
        seat = self._seats[number]
        own = await self.read(number)
        if own.state != game_pb2.GAME_STATE_PLAYING or own.turn.seat != number:
            return
        if own.turn.HasField("deadline") and await self._misses(own):
            return
        request, action = turn_of(own)
        is_stunt = self._chance.random() < self._players.stunts
        match self._chance.randrange(7) if is_stunt else None:
            case 0:
                await self._twice(request, seat, action)
            case 1:
                await self._at_once(own, request, seat, action)
            case 2:
                await self._reused(request, seat, action)
            case 3:
                await self._forged(request, seat, action)
            case 4:
                await self._by_the_other(request, number, action)
            case 5:
                await self._renewed(seat)
            case 6 if seat.replaced:
                await self._with_replaced(request, seat, action)
            case _:
                await self._play_turn(request, seat, action)

    async def _misses(self, own: game_pb2.Game) -> bool:
        """Rarely lets a turn with a deadline time out; returns whether it did."""
        if self._chance.random() < ASLEEP:
            await asyncio.sleep(ASLEEP_SECONDS)
            return True
        if self._options.get("turn_time_limit_seconds") and self._chance.random() < AWAY:
            await self._away(own.etag)
            return True
        return False

    async def _play_turn(self, request: ts.PlayTurnRequest, seat: Seat, action: str) -> str:
        return await self._try("PlayTurn", _play_turn, request, seat, action)

    async def _twice(self, request: ts.PlayTurnRequest, seat: Seat, action: str) -> None:
        """Sends a request twice at once, and once more."""
        await asyncio.gather(*(self._play_turn(request, seat, action) for _ in range(2)))
        await self._play_turn(request, seat, action)

    async def _at_once(self, own: game_pb2.Game, request: ts.PlayTurnRequest, seat: Seat, action: str) -> None:
        """Sends two requests on one state at once: at most one of them is accepted."""
        other = _drawing(own) if own.pool_count else _copy(request, request_id=new_id())
        other_action = "draw" if own.pool_count else action
        await asyncio.gather(self._play_turn(request, seat, action), self._play_turn(other, seat, other_action))

    async def _reused(self, request: ts.PlayTurnRequest, seat: Seat, action: str) -> None:
        """Sends a request, and another one with its id."""
        if await self._play_turn(request, seat, action) == OK:
            other = _copy(request)
            if request.HasField("draw"):
                other.pass_turn.SetInParent()
            else:
                other.draw.SetInParent()
            await self._play_turn(other, seat, "reuse")

    async def _forged(self, request: ts.PlayTurnRequest, seat: Seat, action: str) -> None:
        """Sends a turn with the etag of another history."""
        revision, _, lineage = request.etag.partition("-")
        forged = _copy(request, etag=f"{revision}-{lineage[::-1]}", request_id=new_id())
        await self._play_turn(forged, seat, action)
        await self._play_turn(request, seat, action)

    async def _by_the_other(self, request: ts.PlayTurnRequest, number: int, action: str) -> None:
        """Sends a turn with the token of the other seat first."""
        other = ts.PlayTurnRequest(game_id=self.game_id, etag=request.etag, request_id=new_id(), draw=ts.DrawTile())
        if action != "pass":
            await self._play_turn(other, self._seats[3 - number], "draw")
        await self._play_turn(request, self._seats[number], action)

    async def _renewed(self, seat: Seat) -> None:
        """Renews a token, twice, and tries the old one."""
        old = Seat(seat.number, seat.token)
        request = gs.RenewSeatTokenRequest(game_id=self.game_id, request_id=new_id())

        async def renew() -> Any:  # noqa: ANN401 - an answer
            return await self._send(
                "RenewSeatToken", lambda client: client.games.RenewSeatToken, request, seat=old, action="renew"
            )

        answers = await asyncio.gather(renew(), renew())
        seat.token, seat.replaced = answers[0].seat_token, old.token
        await self._try(
            "GetGame", lambda client: client.games.GetGame, gs.GetGameRequest(game_id=self.game_id), old, ""
        )

    async def _with_replaced(self, request: ts.PlayTurnRequest, seat: Seat, action: str) -> None:
        """Sends a turn with a replaced token, then with the new one."""
        await self._play_turn(_copy(request, request_id=new_id()), Seat(seat.number, seat.replaced), action)
        await self._play_turn(request, seat, action)

    async def read(self, number: int, attempts: int = 0) -> game_pb2.Game:
        """Returns the game as a seat sees it, 0 for a spectator."""
        request = gs.GetGameRequest(game_id=self.game_id)
        seat = self._seats.get(number)
        answer = await self._send("GetGame", lambda client: client.games.GetGame, request, seat=seat, attempts=attempts)
        game: game_pb2.Game = answer.game
        return game

    async def _try(self, method: str, rpc: "Rpc", request: Message, seat: Seat, action: str) -> str:
        """Sends a request that may be refused; returns OK or the reason."""
        try:
            await self._send(method, rpc, request, seat=seat, action=action)
        except Refused as refused:
            return str(refused)
        return OK

    async def _send(  # noqa: PLR0913 - the parts of a call
        self,
        method: str,
        rpc: "Rpc",
        request: Any,  # noqa: ANN401 - a request of any RPC
        *,
        seat: Seat | None = None,
        token: str = "",
        action: str = "",
        attempts: int = 0,
    ) -> Any:  # noqa: ANN401 - an answer of any RPC
        """Returns the answer to a call, repeated until it has one. Raises Refused, GivenUp."""
        token = seat.token if seat else token
        until, attempt = time.monotonic() + ANSWER_SECONDS, 0
        while True:
            attempt += 1
            answer, status = await self._attempt(method, rpc, request, token, seat.number if seat else 0, action)
            if answer is not None:
                return answer
            if status != UNANSWERED:
                raise Refused(status)
            if attempt == attempts or time.monotonic() > until:
                raise GivenUp(f"no answer to {method}")
            await asyncio.sleep(RETRY_SECONDS)

    async def _attempt(  # noqa: PLR0913, PLR0917 - as above
        self,
        method: str,
        rpc: "Rpc",
        request: Any,  # noqa: ANN401 - as above
        token: str,
        number: int,
        action: str,
    ) -> tuple[Any, str]:
        """Makes one attempt and records it; returns the answer, or None, and its status."""
        players, began = self._players, time.monotonic()
        answer, etag, status, tiles = None, "", OK, 0
        try:
            answer = await rpc(players.client())(request, metadata=_metadata(token), timeout=CALL_SECONDS)
            etag, tiles = answer.game.etag, _tiles_of(answer.game)
        except grpc.aio.AioRpcError as error:
            reason = reason_of(error)
            status = UNANSWERED if is_unanswered(error) or reason in REFUSED_FOR_NOW else reason
        content = _copy(request, **({"request_id": ""} if hasattr(request, "request_id") else {}))
        players.calls += 1
        players.history.add(
            Call(
                method=method,
                game=self.game_id or (answer.game.game_id if answer is not None else ""),
                token=_digest(token.encode()) if token else "",
                seat=number,
                request_id=getattr(request, "request_id", ""),
                content=_digest(content.SerializeToString(deterministic=True)),
                base=getattr(request, "etag", ""),
                action=action,
                began=began,
                ended=time.monotonic(),
                status=status,
                etag=etag,
                answer=_digest(answer.SerializeToString(deterministic=True)) if answer is not None else "",
                tiles=tiles,
                ticket=_digest(ticket.encode()) if (ticket := getattr(request, "join_ticket", "")) else "",
            )
        )
        return answer, status

    async def _watch(self, number: int) -> None:
        """Watches the game, as a spectator or as a seat; resumes after each failure."""
        players = self._players
        watcher = Watcher(f"watcher {players.next_number()}", self.game_id)
        self._watchers.append(watcher)
        while True:
            request = gs.WatchGameRequest(game_id=self.game_id, etag=watcher.etag)
            seat = self._seats.get(number)
            self._note(watcher, "resume", watcher.etag)
            is_new = True
            try:
                async for update in players.client().games.WatchGame(
                    request, metadata=_metadata(seat.token if seat else "")
                ):
                    kind = update.WhichOneof("update")
                    if kind in {"snapshot", "change"}:
                        watcher.etag = getattr(update, kind).etag
                        self._note(watcher, kind, watcher.etag)
                    elif kind == "heartbeat" and is_new:
                        self._note(watcher, kind, watcher.etag)
                    is_new = False
            except grpc.aio.AioRpcError as error:
                if not is_unanswered(error) and reason_of(error) == "HISTORY_UNAVAILABLE":
                    watcher.etag = ""
            await asyncio.sleep(RETRY_SECONDS)

    def _note(self, watcher: Watcher, update: str, etag: str) -> None:
        self._players.history.add(Watched(watcher.name, self.game_id, update, etag, time.monotonic()))

    async def _caught_up(self, etag: str) -> None:
        """Waits until all watchers have the last change; notes what they have then."""
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while any(watcher.etag != etag for watcher in self._watchers) and time.monotonic() < deadline:  # noqa: ASYNC110 - many streams
            await asyncio.sleep(RETRY_SECONDS)  # rarely: the watchers are as fast as the players
        for watcher in self._watchers:
            self._note(watcher, "end", watcher.etag)

    async def stored(self, client: Client) -> StoredGame:
        """Returns the game as it is stored: the changes as spectators see them, with what only seats see of tiles."""
        changes = await self._changes(client, "") or []
        is_whole = True
        for number, seat in self._seats.items():
            of_seat = await self._changes(client, seat.token)
            if of_seat is None or len(of_seat) != len(changes):
                is_whole = False
                continue
            for change, own in zip(changes, of_seat, strict=True):
                for event, seen in zip(change.get("events", ()), own.get("events", ()), strict=True):
                    _merge(number, event, seen)
        request = gs.GetGameRequest(game_id=self.game_id)
        state = game_pb2.GAME_STATE_UNSPECIFIED
        if changes:
            state = (await client.games.GetGame(request, metadata=_metadata(""))).game.state
        return StoredGame(self.game_id, game_pb2.GameState.Name(state), changes, is_whole=is_whole)

    async def _changes(self, client: Client, token: str) -> list[dict[str, Any]] | None:
        """Returns all changes as the owner of a token sees them; None if the game is lost, or the token is void."""
        changes: list[dict[str, Any]] = []
        page = ""
        while True:
            request = gs.ListChangesRequest(game_id=self.game_id, page_size=PAGE, page_token=page)
            try:
                answer = await client.games.ListChanges(request, metadata=_metadata(token))
            except grpc.aio.AioRpcError as error:
                if error.code() in {grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAUTHENTICATED}:
                    return None
                raise
            changes += (
                MessageToDict(change, preserving_proto_field_name=True, use_integers_for_enums=True)
                for change in answer.changes
            )
            page = answer.next_page_token
            if not page:
                return changes


class Refused(GivenUp):
    """A call was refused, for the reason that is the text."""


Rpc = Callable[[Client], Callable[..., Awaitable[Any]]]
"""Returns the method of a client's stub."""


def _metadata(token: str) -> tuple[tuple[str, str], ...]:
    """Returns the metadata of a call with a token, empty for none."""
    return (*bearer(token), ("x-api-key", API_KEY))


def _new_ticket(ref: str) -> str:
    """Returns a join ticket for a player."""
    return jwt.encode({"aud": "chaos", "sub": ref, "exp": int(time.time()) + TICKET_SECONDS}, TICKET_SECRET, "HS256")


def _play_turn(client: Client) -> Callable[..., Awaitable[Any]]:
    return client.turns.PlayTurn


def turn_of(own: game_pb2.Game) -> tuple[ts.PlayTurnRequest, str]:
    """Returns the next turn of the seat that sees this game, and its action: it lays melds, else draws, else passes."""
    has_melded = next(player.has_melded for player in own.players if player.seat == own.seat)
    melds = melds_to_lay(cast("Sequence[Tile]", own.rack), has_melded=has_melded)
    if melds:
        request = ts.PlayTurnRequest(game_id=own.game_id, etag=own.etag, request_id=new_id())
        old = (meld_pb2.Meld(tiles=meld.tiles, kind=meld.kind) for meld in own.table.melds)
        laid = (meld_pb2.Meld(tiles=as_tiles(meld)) for meld in melds)
        request.play.table.melds.extend((*old, *laid))
        return request, "play"
    if own.pool_count:
        return _drawing(own), "draw"
    request = ts.PlayTurnRequest(game_id=own.game_id, etag=own.etag, request_id=new_id())
    request.pass_turn.SetInParent()
    return request, "pass"


def _drawing(own: game_pb2.Game) -> ts.PlayTurnRequest:
    return ts.PlayTurnRequest(game_id=own.game_id, etag=own.etag, request_id=new_id(), draw=ts.DrawTile())


def _copy(request: Any, **changed: str) -> Any:  # noqa: ANN401 - a message of any type
    """Returns a copy of a message with other fields."""
    other = type(request)()
    other.CopyFrom(request)
    for name, value in changed.items():
        setattr(other, name, value)
    return other


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _tiles_of(game: game_pb2.Game) -> int:
    """Returns how many tiles a game has on racks, on the table and in the pool; 0 if no round is played."""
    if game.state != game_pb2.GAME_STATE_PLAYING:
        return 0
    on_table = sum(len(meld.tiles) for meld in game.table.melds)
    return game.pool_count + on_table + sum(player.tile_count for player in game.players)


def _merge(number: int, event: dict[str, Any], seen: dict[str, Any]) -> None:
    """Adds what a seat alone sees of an event: its rack at the start of a round, and the tiles that it draws."""
    for name, fields in event.items():
        own = seen[name]
        if name == "round_started":
            fields.setdefault("racks", {})[str(number)] = own.get("rack", [])
        elif "tiles" in own:
            fields.setdefault("tiles", own["tiles"])
