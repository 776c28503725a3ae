"""AdminService: checks the operator's token, decodes, calls the use case, encodes."""

import asyncio
import contextlib
import hmac
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Final, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from rummikub.admin.v1 import admin_service_pb2 as pb
from service.codec import admin as codec
from service.codec import fields
from service.errors import AdminTokenWrong
from service.grpc_api.handlers import Context, Handler, Service, unary, writing
from service.model.record import Record
from service.operator.admin import Admin, FullView, OperatorFilter
from service.operator.change_feed import Changed, ChangeFeed, Update

NAME: Final = "rummikub.admin.v1.AdminService"
POLL_SECONDS: Final = 0.1
"""The interval at which an idle stream of changes looks for new ones."""
RETRY_MS: Final = 1_000
"""How long a watcher of a stopping server waits before it reconnects."""

_M = TypeVar("_M", bound=Message)


class AdminServicer:
    """The RPCs of AdminService.

    Args:
        admin: The use cases.
        token: Returns the token that callers must send; "" for none. It may raise ValueError; then all are refused.
        heartbeat_seconds: The longest time without an update of WatchGames.
        stopping: Set when the server stops.
    """

    def __init__(
        self, admin: Admin, token: Callable[[], str], heartbeat_seconds: float, stopping: asyncio.Event
    ) -> None:
        self._admin = admin
        self._token = token
        self._heartbeat_seconds = heartbeat_seconds
        self._stopping = stopping

    def service(self) -> Service:
        """Returns the service with its handlers."""
        handlers = {
            "WatchGames": self._writing(pb.WatchGamesRequest, self.watch_games),
            "GetGame": self._unary(pb.GetGameRequest, self.get_game),
            "ListGames": self._unary(pb.ListGamesRequest, self.list_games),
            "AbortGame": self._unary(pb.AbortGameRequest, self.abort_game),
            "KickPlayer": self._unary(pb.KickPlayerRequest, self.kick_player),
            "ReissueSeatToken": self._unary(pb.ReissueSeatTokenRequest, self.reissue_seat_token),
            "DeleteGame": self._unary(pb.DeleteGameRequest, self.delete_game),
            "ForgetPlayer": self._writing(pb.ForgetPlayerRequest, self.forget_player),
            "GetStatistics": self._unary(pb.GetStatisticsRequest, self.get_statistics),
        }
        return Service(NAME, handlers)

    def _unary(self, message_type: type[_M], call: Callable[[_M], Awaitable[Message]]) -> Handler:
        async def handle(request: _M, context: Context) -> bytes:
            self._check_token(context)
            return (await call(request)).SerializeToString()

        return unary(message_type, handle)

    def _writing(self, message_type: type[_M], call: Callable[[_M, Context], Awaitable[None]]) -> Handler:
        async def handle(request: _M, context: Context) -> None:
            self._check_token(context)
            await call(request, context)

        return writing(message_type, handle)

    def _check_token(self, context: Context) -> None:
        """Raises AdminTokenWrong. Each check reads the file, so a new token needs no restart."""
        try:
            token = self._token()
        except ValueError:
            raise AdminTokenWrong from None
        sent = [value for key, value in context.invocation_metadata() or () if key == "authorization"]
        expected = f"Bearer {token}".encode()
        if token and not (len(sent) == 1 and hmac.compare_digest(_bytes(sent[0]), expected)):
            raise AdminTokenWrong

    async def watch_games(self, request: pb.WatchGamesRequest, context: Context) -> None:
        """WatchGames."""
        wanted = codec.operator_filter(request.filter)
        feed = self._admin.feed(codec.position(request.cursor), from_oldest=request.from_oldest)
        await feed.start()
        loop = asyncio.get_running_loop()
        checked = loop.time()
        last = checked - self._heartbeat_seconds  # the first heartbeat shows that the stream works
        while not self._stopping.is_set():
            if loop.time() - checked >= self._heartbeat_seconds:
                self._check_token(context)
                checked = loop.time()
            updates = await feed.read()
            for update in updates:
                if _is_wanted(update, wanted):
                    await context.write(codec.encode_update(update).SerializeToString())
                    last = loop.time()
            if loop.time() - last >= self._heartbeat_seconds:
                await self._write(feed, pb.WatchGamesResponse(heartbeat=pb.Heartbeat()), context)
                last = loop.time()
            if updates:
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), POLL_SECONDS)
        delay = Duration()
        delay.FromMilliseconds(RETRY_MS)
        await self._write(feed, pb.WatchGamesResponse(closing=pb.Closing(retry_delay=delay)), context)

    @staticmethod
    async def _write(feed: ChangeFeed, response: pb.WatchGamesResponse, context: Context) -> None:
        response.cursor = codec.cursor_of(feed.position)
        await context.write(response.SerializeToString())

    async def get_game(self, request: pb.GetGameRequest) -> pb.GetGameResponse:
        """GetGame."""
        view = await self._admin.get_game(fields.game_id(request.game_id))
        return pb.GetGameResponse(game=codec.encode_full(view))

    async def list_games(self, request: pb.ListGamesRequest) -> pb.ListGamesResponse:
        """ListGames."""
        wanted, state = codec.operator_filter(request.filter), codec.wanted_state(request.state)
        size = fields.page_size(request.page_size, default=20, most=100)
        cursor = codec.list_cursor(request.page_token, wanted, state)
        records, following = await self._admin.list_games(wanted, state, cursor, size)
        token = fields.filtered_page_token(following, (wanted, state))
        return pb.ListGamesResponse(games=map(codec.encode_listed, records), next_page_token=token)

    async def abort_game(self, request: pb.AbortGameRequest) -> pb.AbortGameResponse:
        """AbortGame."""
        answer = await self._admin.abort_game(fields.game_id(request.game_id), _full)
        return pb.AbortGameResponse(game=pb.FullGame.FromString(answer))

    async def kick_player(self, request: pb.KickPlayerRequest) -> pb.KickPlayerResponse:
        """KickPlayer."""
        game_id, seat = fields.game_id(request.game_id), fields.seat(request.seat)
        answer = await self._admin.kick_player(game_id, seat, _full)
        return pb.KickPlayerResponse(game=pb.FullGame.FromString(answer))

    async def reissue_seat_token(self, request: pb.ReissueSeatTokenRequest) -> pb.ReissueSeatTokenResponse:
        """ReissueSeatToken."""
        game_id, seat = fields.game_id(request.game_id), fields.seat(request.seat)
        answer = await self._admin.reissue_seat_token(game_id, seat, codec.encode_reissued, codec.with_new_token)
        return pb.ReissueSeatTokenResponse.FromString(answer)

    async def delete_game(self, request: pb.DeleteGameRequest) -> pb.DeleteGameResponse:
        """DeleteGame."""
        await self._admin.delete_game(fields.game_id(request.game_id))
        return pb.DeleteGameResponse()

    async def forget_player(self, request: pb.ForgetPlayerRequest, context: Context) -> None:
        """ForgetPlayer."""
        if not request.player_ref:
            raise fields.invalid("player_ref", f"expected 1 to {fields.PLAYER_REF_MAX} bytes")
        async for done in self._admin.forget_player(fields.player_ref(request.player_ref)):
            response = pb.ForgetPlayerResponse(
                games_read=done.games_read,
                forgotten_game_ids=done.game_ids,
                failed_game_ids=done.failed_ids,
                is_done=done.is_done,
            )
            await context.write(response.SerializeToString())

    async def get_statistics(self, _request: pb.GetStatisticsRequest) -> pb.GetStatisticsResponse:
        """GetStatistics."""
        return codec.encode_statistics(await self._admin.statistics(), version("rummikub-service"))


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
