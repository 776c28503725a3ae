"""A user that plays whole games: its players create, join, start, play and watch until the round ends."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, TypeVar, cast

import gevent
import grpc
from google.protobuf.message import Message
from locust import constant, task
from locust.env import Environment

from engine.tiles import Tile
from load.corpus.simple_play import melds_to_lay
from load.users.grpc_user import CALL_SECONDS, GrpcUser, RefusedError, Report
from rummikub import Rummikub, new_request_id
from rummikub.v1.game_pb2 import GAME_STATE_PLAYING, Game
from rummikub.v1.game_service_pb2 import (
    CreateGameRequest,
    GetGameRequest,
    JoinGameRequest,
    ListChangesRequest,
    StartGameRequest,
    WatchGameRequest,
)
from rummikub.v1.meld_pb2 import Meld, Table
from rummikub.v1.tile_pb2 import Tile as TileValue
from rummikub.v1.turn_service_pb2 import DrawTile, PlayTiles, PlayTurnRequest, ResignGameRequest

_Request = TypeVar("_Request", CreateGameRequest, JoinGameRequest, StartGameRequest, ResignGameRequest, PlayTurnRequest)

THINKING_SECONDS: Final = 0.05
MOST_TURNS: Final = 150
"""The players resign after this many turns if the round has not ended."""

WRONG_MOVES: Final = 0.1
"""The probability that an illegal request precedes a turn."""

WATCH_SECONDS: Final = 10.0
"""The time after the end of a game in which its watchers must receive the last change."""

NAMES: Final = ("Ada", "Ben", "Cleo", "Dan")


class Watcher:
    """Watches a game from its lobby on, and reports the latency of its changes.

    Args:
        service: The client of the player or spectator who watches.
        game_id: The game.
        changed: The time of the request that led to each revision.
        report: Receives the results.
    """

    def __init__(self, service: Rummikub, game_id: str, changed: dict[int, float], report: Report) -> None:
        self._changed = changed
        self._report = report
        self._seen = 0
        self._stream = service.games.WatchGame(WatchGameRequest(game_id=game_id))
        self._greenlet = gevent.spawn(self._watch)

    def _watch(self) -> None:
        try:
            for update in self._stream:
                if update.HasField("change"):
                    self._see(update.change.revision, update.ByteSize())
                elif update.HasField("snapshot"):
                    self._seen = update.snapshot.revision
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.CANCELLED:  # our own cancellation
                self._report.failed("WatchGame", time.perf_counter(), error)

    def _see(self, revision: int, length: int) -> None:
        if revision != self._seen + 1:
            self._report.wrong("WatchGame", f"revision {revision}after {self._seen}")
        self._seen = revision
        asked = self._changed.get(revision)
        if asked is not None:
            self._report.answered("WatchGame", asked, length)

    def has_seen(self, revision: int) -> bool:
        """Waits for the end of the stream; returns whether it came in time, with this revision as the last."""
        self._greenlet.join(WATCH_SECONDS)
        return self._greenlet.ready() and self._seen == revision

    def stop(self) -> None:
        """Ends the stream, if it is still open."""
        self._stream.cancel()


class GameUser(GrpcUser):
    """A table of two to four players, watched by one of them and a spectator."""

    wait_time = constant(1)
    weight = 2
    takes_part_by: ClassVar[tuple[str, ...]] = ("PlayTurn",)

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._changed: dict[int, float] = {}

    @task
    def play_game(self) -> None:
        """Plays a game from its creation to its end."""
        self._changed = {}
        created = self.service.games.CreateGame(_with_id(CreateGameRequest()), timeout=CALL_SECONDS)
        game, host = created.game, self.service.seated(created.host_token)
        watchers = [self._watcher(self.service, game)]
        try:
            seats: dict[int, Rummikub] = {}
            for name in NAMES[: random.randint(2, len(NAMES))]:
                game = self._join(host if not seats else self.service, seats, game, name)
            watchers.append(self._watcher(seats[1], game))
            request = _with_id(StartGameRequest(game_id=game.game_id))
            game = self._change(game, seats[1].games.StartGame, request)
            game = self._play(seats, game)
            self._check_end(game, watchers)
        finally:
            for watcher in watchers:
                watcher.stop()

    def _watcher(self, service: Rummikub, game: Game) -> Watcher:
        return Watcher(service, game.game_id, self._changed, self.report)

    def _join(self, service: Rummikub, seats: dict[int, Rummikub], game: Game, name: str) -> Game:
        """Joins a player; returns the game."""
        request = _with_id(JoinGameRequest(game_id=game.game_id, name=name))
        self._changed[game.revision + 1] = time.perf_counter()
        joined = service.games.JoinGame(request, timeout=CALL_SECONDS)
        seats[joined.seat] = self.service.seated(joined.seat_token)
        return joined.game

    def _play(self, seats: dict[int, Rummikub], game: Game) -> Game:
        """Plays until the game ends; returns it."""
        turns = 0
        while game.state == GAME_STATE_PLAYING and turns < MOST_TURNS:
            gevent.sleep(random.uniform(0, 2 * THINKING_SECONDS))
            mover = seats[game.turn.seat]
            own = mover.games.GetGame(GetGameRequest(game_id=game.game_id), timeout=CALL_SECONDS).game
            if random.random() < WRONG_MOVES:
                self._try_wrong_move(seats, own)
            game = self._change(own, mover.turns.PlayTurn, _turn(own))
            turns += 1
        for seat in sorted(seats)[1:]:
            if game.state == GAME_STATE_PLAYING:  # the last player left has won
                request = _with_id(ResignGameRequest(game_id=game.game_id))
                game = self._change(game, seats[seat].turns.ResignGame, request)
        return game

    def _try_wrong_move(self, seats: dict[int, Rummikub], own: Game) -> None:
        """Sends a request that the service must refuse, and checks the reason."""
        other = next(number for number in seats if number != own.seat)
        unfinished = [*_current_table(own), Meld(tiles=own.rack[:2])]
        wrong_moves = (
            ("NOT_YOUR_TURN", other, _request(own, draw=DrawTile())),
            ("STALE_STATE", own.seat, _request(own, etag=f"1-{'0' * 32}", draw=DrawTile())),
            ("MELD_TOO_SHORT", own.seat, _request(own, play=PlayTiles(table=Table(melds=unfinished)))),
        )
        reason, mover, request = random.choice(wrong_moves)
        try:
            seats[mover].turns.PlayTurn(request, timeout=CALL_SECONDS)
        except RefusedError as refused:
            if refused.reason != reason:
                self.report.wrong("PlayTurn", f"{refused.reason} instead of {reason}")
        else:
            self.report.wrong("PlayTurn", f"accepted instead of {reason}")

    def _check_end(self, game: Game, watchers: Sequence[Watcher]) -> None:
        """Reports watchers that missed a change, and a history with gaps."""
        for watcher in watchers:
            if not watcher.has_seen(game.revision):
                self.report.wrong("WatchGame", "a watcher missed the end of its game")
        request = ListChangesRequest(game_id=game.game_id, page_size=10)
        changes = self.service.games.ListChanges(request, timeout=CALL_SECONDS).changes
        if [change.revision for change in changes] != list(range(1, len(changes) + 1)):
            self.report.wrong("ListChanges", "a change is missing")

    def _change(self, game: Game, rpc: Callable[..., Any], request: Message) -> Game:
        """Calls an RPC that changes the game, and returns the game; records the time of the request."""
        self._changed[game.revision + 1] = time.perf_counter()
        changed: Game = rpc(request, timeout=CALL_SECONDS).game
        return changed


def _turn(own: Game) -> PlayTurnRequest:
    """Returns the next turn of the seat that sees this game: lays melds if it can, else draws, else passes."""
    has_melded = next(player.has_melded for player in own.players if player.seat == own.seat)
    melds = melds_to_lay(cast("Sequence[Tile]", own.rack), has_melded=has_melded)
    if melds:
        laid = (Meld(tiles=cast("Sequence[TileValue.ValueType]", meld)) for meld in melds)
        return _request(own, play=PlayTiles(table=Table(melds=[*_current_table(own), *laid])))
    if own.pool_count:
        return _request(own, draw=DrawTile())
    request = _request(own)
    request.pass_turn.SetInParent()
    return request


def _request(
    own: Game, *, etag: str = "", play: PlayTiles | None = None, draw: DrawTile | None = None
) -> PlayTurnRequest:
    """Returns a turn for the current state, or for the state of an etag."""
    return _with_id(PlayTurnRequest(game_id=own.game_id, etag=etag or own.etag, play=play, draw=draw))


def _current_table(game: Game) -> list[Meld]:
    return [Meld(tiles=meld.tiles, kind=meld.kind) for meld in game.table.melds]


def _with_id(request: _Request) -> _Request:
    request.request_id = new_request_id()
    return request
