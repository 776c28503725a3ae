"""AdminService: the operator's RPCs, at RUMMIKUB_ADMIN_LISTEN."""

import asyncio
import contextlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

from google.protobuf.duration_pb2 import Duration

from rummikub.admin.v1 import admin_service_pb2 as pb
from service.codec import admin as codec
from service.codec import fields
from service.codec.games import encode_own_data, listed_states
from service.errors import AdminTokenWrong
from service.grpc_api.handlers import Context
from service.grpc_api.rpc import Rpc, Token
from service.model.record import Record
from service.operator.admin import Admin, FullView, OperatorFilter
from service.operator.change_feed import Changed, ChangeFeed, Update

NAME: Final = "rummikub.admin.v1.AdminService"
POLL_SECONDS: Final = 0.1
"""The interval at which an idle stream of changes looks for new ones."""
RETRY_MS: Final = 1_000
"""How long a watcher of a stopping server waits before it reconnects."""


@dataclass(frozen=True, slots=True)
class AdminBackend:
    """What the RPCs use.

    Attributes:
        admin: The use cases.
        token: Returns the token that callers must send; "" for none. It may raise ValueError; then all are refused.
        heartbeat_seconds: The longest time without an update of WatchGames.
        stopping: Set when the server stops.
    """

    admin: Admin
    token: Callable[[], str]
    heartbeat_seconds: float
    stopping: asyncio.Event

    def sender(self, _token: Token) -> Callable[[Context], None]:
        """Returns what checks the operator's token."""
        return self.check_token

    def check_token(self, context: Context) -> None:
        """Raises AdminTokenWrong. Each check reads the file, so a new token needs no restart."""
        try:
            token = self.token()
        except ValueError:
            raise AdminTokenWrong from None
        sent = [value for key, value in context.invocation_metadata() or () if key == "authorization"]
        expected = f"Bearer {token}".encode()
        if token and not (len(sent) == 1 and hmac.compare_digest(_bytes(sent[0]), expected)):
            raise AdminTokenWrong


async def watch_games(backend: AdminBackend, request: pb.WatchGamesRequest, _sender: None, context: Context) -> None:
    """WatchGames."""
    wanted = codec.operator_filter(request.filter)
    feed = backend.admin.feed(codec.position(request.cursor), from_oldest=request.from_oldest)
    await feed.start()
    loop = asyncio.get_running_loop()
    checked = loop.time()
    last = checked - backend.heartbeat_seconds  # the first heartbeat shows that the stream works
    while not backend.stopping.is_set():
        if loop.time() - checked >= backend.heartbeat_seconds:
            backend.check_token(context)
            checked = loop.time()
        updates = await feed.read()
        for update in updates:
            if _is_wanted(update, wanted):
                await context.write(codec.encode_update(update).SerializeToString())
                last = loop.time()
        if loop.time() - last >= backend.heartbeat_seconds:
            await _write(feed, pb.WatchGamesResponse(heartbeat=pb.Heartbeat()), context)
            last = loop.time()
        if updates:
            continue
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(backend.stopping.wait(), POLL_SECONDS)
    delay = Duration()
    delay.FromMilliseconds(RETRY_MS)
    await _write(feed, pb.WatchGamesResponse(closing=pb.Closing(retry_delay=delay)), context)


async def _write(feed: ChangeFeed, response: pb.WatchGamesResponse, context: Context) -> None:
    response.cursor = codec.cursor_of(feed.position)
    await context.write(response.SerializeToString())


async def get_game(backend: AdminBackend, request: pb.GetGameRequest, _sender: None, _context: Context) -> bytes:
    """GetGame."""
    view = await backend.admin.get_game(fields.game_id(request.game_id))
    return pb.GetGameResponse(game=codec.encode_full(view)).SerializeToString()


async def list_games(backend: AdminBackend, request: pb.ListGamesRequest, _sender: None, _context: Context) -> bytes:
    """ListGames."""
    wanted, states = codec.operator_filter(request.filter), listed_states(request.states)
    size = fields.page_size(request.page_size, default=20, most=100)
    cursor = fields.filtered_page_cursor(request.page_token, fields.LIST_CURSOR, (wanted, states))
    records, following = await backend.admin.list_games(wanted, states, cursor, size)
    token = fields.filtered_page_token(following, (wanted, states))
    games = map(codec.encode_listed, records)
    return pb.ListGamesResponse(games=games, next_page_token=token).SerializeToString()


async def abort_game(backend: AdminBackend, request: pb.AbortGameRequest, _sender: None, _context: Context) -> bytes:
    """AbortGame."""
    answer = await backend.admin.abort_game(fields.game_id(request.game_id), _full)
    return pb.AbortGameResponse(game=pb.FullGame.FromString(answer)).SerializeToString()


async def kick_player(backend: AdminBackend, request: pb.KickPlayerRequest, _sender: None, _context: Context) -> bytes:
    """KickPlayer."""
    game_id, seat = fields.game_id(request.game_id), fields.seat(request.seat)
    answer = await backend.admin.kick_player(game_id, seat, _full)
    return pb.KickPlayerResponse(game=pb.FullGame.FromString(answer)).SerializeToString()


async def reissue_seat_token(
    backend: AdminBackend, request: pb.ReissueSeatTokenRequest, _sender: None, _context: Context
) -> bytes:
    """ReissueSeatToken."""
    game_id, seat = fields.game_id(request.game_id), fields.seat(request.seat)
    return await backend.admin.reissue_seat_token(game_id, seat, codec.encode_reissued, codec.with_new_token)


async def delete_game(backend: AdminBackend, request: pb.DeleteGameRequest, _sender: None, _context: Context) -> bytes:
    """DeleteGame."""
    await backend.admin.delete_game(fields.game_id(request.game_id))
    return b""


async def forget_player(
    backend: AdminBackend, request: pb.ForgetPlayerRequest, _sender: None, context: Context
) -> None:
    """ForgetPlayer."""
    if not request.player_ref:
        raise fields.invalid("player_ref", f"expected 1 to {fields.PLAYER_REF_MAX} bytes")
    async for done in backend.admin.forget_player(fields.player_ref(request.player_ref)):
        response = pb.ForgetPlayerResponse(
            games_read=done.games_read,
            forgotten_game_ids=done.game_ids,
            failed_game_ids=done.failed_ids,
            is_done=done.is_done,
        )
        await context.write(response.SerializeToString())


async def export_player(
    backend: AdminBackend, request: pb.ExportPlayerRequest, _sender: None, context: Context
) -> None:
    """ExportPlayer."""
    if not request.player_ref:
        raise fields.invalid("player_ref", f"expected 1 to {fields.PLAYER_REF_MAX} bytes")
    async for part in backend.admin.export_player(fields.player_ref(request.player_ref)):
        response = pb.ExportPlayerResponse(
            game=encode_own_data(part.data, has_ref=True) if part.data else None,
            games_read=part.games_read,
            failed_game_ids=part.failed_ids,
            is_done=part.is_done,
        )
        await context.write(response.SerializeToString())


async def get_statistics(backend: AdminBackend, _request: object, _sender: None, _context: Context) -> bytes:
    """GetStatistics."""
    statistics = await backend.admin.statistics()
    return codec.encode_statistics(statistics, version("rummikub-service")).SerializeToString()


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _full(view: FullView) -> bytes:
    return codec.encode_full(view).SerializeToString()


def _is_wanted(update: Update, wanted: OperatorFilter) -> bool:
    """Returns whether a watcher gets an update: not if it is a change of a game that the filter excludes."""
    match update:
        case Changed(record=Record() as record):
            return wanted.matches(record, with_departed=True)
        case _:
            return True


RPCS: Final[tuple[Rpc, ...]] = (
    Rpc(pb.WatchGamesRequest, pb.WatchGamesResponse, watch_games, is_stream=True),
    Rpc(pb.GetGameRequest, pb.GetGameResponse, get_game),
    Rpc(pb.ListGamesRequest, pb.ListGamesResponse, list_games),
    Rpc(pb.AbortGameRequest, pb.AbortGameResponse, abort_game),
    Rpc(pb.KickPlayerRequest, pb.KickPlayerResponse, kick_player),
    Rpc(pb.ReissueSeatTokenRequest, pb.ReissueSeatTokenResponse, reissue_seat_token),
    Rpc(pb.DeleteGameRequest, pb.DeleteGameResponse, delete_game),
    Rpc(pb.ForgetPlayerRequest, pb.ForgetPlayerResponse, forget_player, is_stream=True),
    Rpc(pb.ExportPlayerRequest, pb.ExportPlayerResponse, export_player, is_stream=True),
    Rpc(pb.GetStatisticsRequest, pb.GetStatisticsResponse, get_statistics),
)
