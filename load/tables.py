"""A game of two who only draw tiles: what drills, floods and measurements play."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from rummikub.v1 import game_pb2, meld_pb2, ruleset_pb2, tile_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from tools.games import Options, Stubs, bearer, creation, new_id, options

T = TypeVar("T")

NO_TIME_LIMIT: Final = options(turn_time_limit_seconds=0)
LONG_ROUNDS: Final = options(
    turn_time_limit_seconds=0,
    geometry_colors=6,
    geometry_copies=3,
    geometry_jokers=4,
    deal_hand_size=5,
    match_end=ruleset_pb2.MATCH_END_FIXED_ROUNDS,
    match_rounds=100,
    round_pause_seconds=0,
)
"""Two who only draw take 228 turns in each round."""
NAMES: Final = ("Ann", "Bob")


class Send(Protocol):
    """Sends a call: it passes stubs to a function, and may repeat that. The method's name is for its records."""

    async def __call__(self, method: str, rpc: Callable[[Stubs], Awaitable[T]], /) -> T:
        """Returns the answer."""
        ...


def sends_once(stubs: Stubs) -> Send:
    """Returns a sender that repeats nothing."""

    async def send(_method: str, rpc: Callable[[Stubs], Awaitable[T]]) -> T:
        return await rpc(stubs)

    return send


@dataclass(slots=True)
class Table:
    """A started game, as its players saw it last."""

    game_id: str
    tokens: Mapping[int, str]
    game: game_pb2.Game

    def as_seat(self, seat: int) -> tuple[tuple[str, str], ...]:
        """Returns the metadata of a seat's owner; of a spectator for 0."""
        return bearer(self.tokens.get(seat, ""))

    @property
    def to_move(self) -> tuple[tuple[str, str], ...]:
        """The metadata of the player whose turn it is."""
        return self.as_seat(self.game.turn.seat)

    def drawing(self) -> ts.PlayTurnRequest:
        """Returns a request to draw a tile in the state that the players saw last."""
        return ts.PlayTurnRequest(
            game_id=self.game_id,
            etag=self.game.etag,
            request_id=new_id(),
            draw=ts.DrawTile(),
        )

    async def draw(self, stubs: Stubs, timeout: float | None = None) -> int:  # noqa: ASYNC109 - a call's deadline
        """Draws a tile for the player whose turn it is; returns the new revision."""
        self.game = (await stubs.turns.PlayTurn(self.drawing(), metadata=self.to_move, timeout=timeout)).game
        return self.game.revision

    async def rack(self, stubs: Stubs, timeout: float | None = None) -> Sequence[tile_pb2.Tile.ValueType]:  # noqa: ASYNC109 - a call's deadline
        """Returns the tiles of the player whose turn it is."""
        request = gs.GetGameRequest(game_id=self.game_id)
        return (await stubs.games.GetGame(request, metadata=self.to_move, timeout=timeout)).game.rack

    def draft(self, rack: Sequence[tile_pb2.Tile.ValueType]) -> ts.SaveDraftRequest:
        """Returns a request to save a draft of the turn: three tiles of a rack on the table."""
        return ts.SaveDraftRequest(
            game_id=self.game_id,
            etag=self.game.etag,
            draft=game_pb2.Draft(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=rack[:3])])),
        )


async def new_table(
    send: Send,
    ruleset: Options = NO_TIME_LIMIT,
    timeout: float | None = None,  # noqa: ASYNC109 - a call's deadline
) -> Table:
    """Starts a game."""
    creating = gs.CreateGameRequest(**creation(ruleset), request_id=new_id())
    created = await send("CreateGame", lambda stubs: stubs.games.CreateGame(creating, timeout=timeout))
    game_id, tokens = created.game.game_id, {}
    for name in NAMES:
        joining = gs.JoinGameRequest(game_id=game_id, name=name, request_id=new_id())
        joined = await send("JoinGame", partial(_join, joining, timeout))
        tokens[joined.seat] = joined.seat_token
    start, host = gs.StartGameRequest(game_id=game_id, request_id=new_id()), bearer(created.host_token)
    started = await send("StartGame", lambda stubs: stubs.games.StartGame(start, metadata=host, timeout=timeout))
    return Table(game_id, tokens, started.game)


def _join(request: gs.JoinGameRequest, timeout: float | None, stubs: Stubs) -> Awaitable[gs.JoinGameResponse]:
    return stubs.games.JoinGame(request, timeout=timeout)
