"""GameService: decodes, calls the use case, encodes."""

import time
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, aclosing
from typing import TypeVar

from google.protobuf.duration_pb2 import Duration

from engine.record import GameRecord
from engine.record_text import format_record
from rummikub.v1 import game_service_pb2 as pb
from service.app.commands import GamePlan, JoinOrCreateGame
from service.app.game_lists import GameFilter
from service.app.games import Games
from service.app.watch import Watch
from service.app.watch_feed import SharedView
from service.app.watch_updates import (
    Change,
    Closing,
    GameAfter,
    Heartbeat,
    LiveDraft,
    PresenceChange,
    Snapshot,
    Update,
)
from service.codec import fields, rulesets
from service.codec import games as game_codec
from service.codec.records import encode_record
from service.errors import JoinCodeUnknown
from service.grpc_api.call_origin import check_labels, check_right, current_origin
from service.grpc_api.handlers import (
    HISTORY_BYTES,
    RECORD_BYTES,
    SECRET_REQUEST_ID_LEAST,
    Context,
    RequestReader,
    Service,
    SlowRunner,
    answer,
    caller,
    counted,
    mutation,
    seat_mutation,
    secret_mutation,
    secret_seat_mutation,
    unary,
    writing,
)
from service.model.record import Visibility
from service.runtime.admission import Admission
from service.runtime.origins import REISSUE_SEAT_TOKENS
from service.runtime.rate_limit import Attempts, RateLimit
from service.runtime.slow_calls import in_one_step

_LIST_CURSOR = r"\d{15}:[0-9a-f]{32}"
_CHANGES_CURSOR = r"[1-9]\d{0,17}"
_T = TypeVar("_T")


class GameServicer:
    """The RPCs of GameService.

    Args:
        games: The use cases.
        reader: Runs slow reads of histories.
        watch: The streams of changes.
        watches: Bounds the watches.
        new_games: Limits new games.
        guesses: Limits unknown join codes.
        changes: Limits changes that are no turns.
        on_sent: Receives how long after its notification a change is passed to gRPC for a watcher, in seconds.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        games: Games,
        reader: RequestReader,
        watch: Watch,
        watches: Admission,
        new_games: RateLimit,
        guesses: RateLimit,
        changes: RateLimit,
        on_sent: Callable[[float], None],
    ) -> None:
        self._games = games
        self._reader = reader
        self._watch = watch
        self._watches = watches
        self._new_games = Attempts(new_games)
        self._guesses = guesses
        self._changes = changes
        self._on_sent = on_sent

    def service(self) -> Service:
        """Returns the service with its handlers."""
        limit = self._changes
        handlers = {
            "CreateGame": unary(pb.CreateGameRequest, self.create_game),
            "JoinGame": unary(pb.JoinGameRequest, counted(limit, self.join_game)),
            "JoinOrCreateGame": unary(pb.JoinOrCreateGameRequest, counted(limit, self.join_or_create_game)),
            "AddBot": unary(pb.AddBotRequest, counted(limit, self.add_bot)),
            "LeaveGame": unary(pb.LeaveGameRequest, counted(limit, self.leave_game)),
            "KickPlayer": unary(pb.KickPlayerRequest, counted(limit, self.kick_player)),
            "SetReady": unary(pb.SetReadyRequest, counted(limit, self.set_ready)),
            "RenewSeatToken": unary(pb.RenewSeatTokenRequest, counted(limit, self.renew_seat_token)),
            "ReissueSeatToken": unary(pb.ReissueSeatTokenRequest, counted(limit, self.reissue_seat_token)),
            "StartGame": unary(pb.StartGameRequest, self.start_game),
            "AbortGame": unary(pb.AbortGameRequest, counted(limit, self.abort_game)),
            "CreateRematch": unary(pb.CreateRematchRequest, self.create_rematch),
            "GetGame": unary(pb.GetGameRequest, self.get_game),
            "ListGames": unary(pb.ListGamesRequest, self.list_games),
            "WatchGame": writing(pb.WatchGameRequest, self.watch_game),
            "ListChanges": unary(pb.ListChangesRequest, self.list_changes),
            "ResignGame": unary(pb.ResignGameRequest, self.resign_game),
            "StartNextRound": unary(pb.StartNextRoundRequest, self.start_next_round),
            "ExportGame": unary(pb.ExportGameRequest, self.export_game),
            "RequestRedeal": unary(pb.RequestRedealRequest, counted(limit, self.request_redeal)),
            "ReturnToSeat": unary(pb.ReturnToSeatRequest, counted(limit, self.return_to_seat)),
        }
        return Service("rummikub.v1.GameService", handlers)

    async def create_game(self, request: pb.CreateGameRequest, context: Context) -> bytes:
        """CreateGame."""
        visibility, labels = game_codec.visibility(request.visibility), fields.labels(request.labels)
        ruleset, operator_labels = rulesets.ruleset(request.ruleset), fields.operator_labels(request.operator_labels)
        check_labels((*labels, *operator_labels))
        identity = mutation(request, context)
        plan = GamePlan(ruleset, visibility, labels, identity.caller.key, operator_labels)
        with self._creating(object()):
            return await self._games.create_game(plan, identity, game_codec.encode_created, game_codec.with_host_token)

    def _creating(self, game: Hashable) -> AbstractContextManager[None]:
        """Counts a new game, unless it is not created after all. Raises TooManyGames."""
        return self._new_games.attempt(game, current_origin(), time.monotonic())

    async def join_game(self, request: pb.JoinGameRequest, context: Context) -> bytes:
        """JoinGame."""
        stated = request.WhichOneof("game")
        if stated is None:
            raise fields.invalid("game", "expected one of game_id, join_code")
        by_code = stated == "join_code"
        target = fields.join_code(request.join_code) if by_code else fields.game_id(request.game_id)
        name, ref = fields.player_name(request.name), fields.player_ref(request.player_ref)
        fields.request_id(request.request_id, SECRET_REQUEST_ID_LEAST)
        identity = mutation(request, context)
        game_id = await self._game_of_code(target, identity.caller.key) if by_code else target
        code = target if by_code else ""
        try:
            return await self._games.join_game(
                game_id, name, ref, code, request.seat, identity, game_codec.encode_join, game_codec.with_token
            )
        except JoinCodeUnknown:  # a former code of the game
            self._guesses.take(current_origin(), time.monotonic())
            raise

    async def _game_of_code(self, join_code: str, key: str) -> str:
        """Returns the id of a key's game with a join code. Counts a code first, so that concurrent guesses count."""
        origin, is_unknown = current_origin(), False
        self._guesses.take(origin, time.monotonic())
        try:
            return await self._games.game_of_code(join_code, key)
        except JoinCodeUnknown:
            is_unknown = True
            raise
        finally:
            if not is_unknown:  # if the store fails, the caller has learned nothing
                self._guesses.give_back(origin)

    async def join_or_create_game(self, request: pb.JoinOrCreateGameRequest, context: Context) -> bytes:
        """JoinOrCreateGame."""
        labels, name = fields.labels(request.labels), fields.player_name(request.name)
        ruleset = rulesets.quick_play_ruleset(request.ruleset)
        operator_labels = fields.operator_labels(request.operator_labels)
        check_labels((*labels, *operator_labels))
        identity = mutation(request, context)
        plan = GamePlan(ruleset, Visibility.PUBLIC, labels, identity.caller.key, operator_labels)
        command = JoinOrCreateGame(
            identity,
            plan,
            name,
            fields.player_ref(request.player_ref),
            encode_seat=game_codec.encode_quick_join,
            add_token=game_codec.with_quick_token,
            creating=self._creating,
        )
        return await self._games.join_or_create_game(command)

    async def add_bot(self, request: pb.AddBotRequest, context: Context) -> bytes:
        """AddBot."""
        game_id = fields.game_id(request.game_id)
        level, name = game_codec.bot_level(request.level), fields.bot_name(request.name)
        identity = seat_mutation(request, context)
        return await self._games.add_bot(game_id, level, name, request.seat, identity, game_codec.encode_bot)

    async def leave_game(self, request: pb.LeaveGameRequest, context: Context) -> bytes:
        """LeaveGame."""
        game_id = fields.game_id(request.game_id)
        return await self._games.leave_game(game_id, seat_mutation(request, context), answer(pb.LeaveGameResponse))

    async def kick_player(self, request: pb.KickPlayerRequest, context: Context) -> bytes:
        """KickPlayer."""
        game_id, seat = fields.game_id(request.game_id), fields.seat(request.seat)
        identity = seat_mutation(request, context)
        return await self._games.kick_player(game_id, seat, identity, answer(pb.KickPlayerResponse))

    async def set_ready(self, request: pb.SetReadyRequest, context: Context) -> bytes:
        """SetReady."""
        game_id, identity = fields.game_id(request.game_id), seat_mutation(request, context)
        return await self._games.set_ready(game_id, request.is_ready, identity, answer(pb.SetReadyResponse))

    async def renew_seat_token(self, request: pb.RenewSeatTokenRequest, context: Context) -> bytes:
        """RenewSeatToken."""
        game_id, identity = fields.game_id(request.game_id), secret_seat_mutation(request, context)
        return await self._games.renew_seat_token(
            game_id, identity, answer(pb.RenewSeatTokenResponse), game_codec.with_new_token
        )

    async def reissue_seat_token(self, request: pb.ReissueSeatTokenRequest, context: Context) -> bytes:
        """ReissueSeatToken."""
        game_id, seat = fields.game_id(request.game_id), fields.seat(request.seat)
        identity = secret_mutation(request, context)
        check_right(REISSUE_SEAT_TOKENS)
        return await self._games.reissue_seat_token(
            game_id, seat, identity, answer(pb.ReissueSeatTokenResponse), game_codec.with_reissued_token
        )

    async def abort_game(self, request: pb.AbortGameRequest, context: Context) -> bytes:
        """AbortGame."""
        game_id = fields.game_id(request.game_id)
        return await self._games.abort_game(game_id, seat_mutation(request, context), answer(pb.AbortGameResponse))

    async def create_rematch(self, request: pb.CreateRematchRequest, context: Context) -> bytes:
        """CreateRematch."""
        game_id, identity = fields.game_id(request.game_id), seat_mutation(request, context)
        return await self._games.create_rematch(game_id, identity, answer(pb.CreateRematchResponse), self._creating)

    async def start_game(self, request: pb.StartGameRequest, context: Context) -> bytes:
        """StartGame."""
        game_id = fields.game_id(request.game_id)
        return await self._games.start_game(game_id, seat_mutation(request, context), answer(pb.StartGameResponse))

    async def get_game(self, request: pb.GetGameRequest, context: Context) -> bytes:
        """GetGame."""
        game_id, sender, revision = fields.game_id(request.game_id), caller(context), request.revision
        if revision:
            runner = SlowRunner(self._reader, HISTORY_BYTES, context, "GetGame")
            sight = await self._games.game_at(game_id, sender, revision, runner)
        else:
            sight = await self._games.get_game(game_id, sender)
        return pb.GetGameResponse(game=game_codec.encode_game(sight)).SerializeToString()

    async def list_games(self, request: pb.ListGamesRequest, context: Context) -> bytes:
        """ListGames. The answer depends on the key only, but a malformed token is an error as in all RPCs."""
        key = caller(context).key
        wanted = GameFilter(
            game_codec.listed_state(request.state),
            rulesets.preset_filter(request.preset),
            request.seats_free_min,
            fields.labels(request.labels),
            key,
        )
        check_labels(wanted.labels)
        size = fields.page_size(request.page_size, default=20, most=100)
        cursor = fields.filtered_page_cursor(request.page_token, _LIST_CURSOR, wanted)
        sights, following = await self._games.list_games(wanted, cursor, size)
        return pb.ListGamesResponse(
            games=map(game_codec.encode_summary, sights),
            next_page_token=fields.filtered_page_token(following, wanted),
        ).SerializeToString()

    async def watch_game(self, request: pb.WatchGameRequest, context: Context) -> None:
        """WatchGame."""
        game_id = fields.game_id(request.game_id)
        revision, etag = fields.optional_etag(request.etag)
        content = game_codec.watch_content(request.content)
        watching = self._watch.watch(
            game_id, caller(context), revision, etag, content, until_rematch=request.until_rematch
        )
        with self._watches.holding(current_origin()):
            async with aclosing(watching) as updates:
                async for update in updates:
                    encoded = _update(update)
                    if isinstance(update, Change | GameAfter) and update.notified_at is not None:
                        self._on_sent(time.perf_counter() - update.notified_at)
                    await context.write(encoded)

    async def list_changes(self, request: pb.ListChangesRequest, context: Context) -> bytes:
        """ListChanges."""
        size = fields.page_size(request.page_size, default=50, most=200)
        after = int(fields.page_cursor(request.page_token, _CHANGES_CURSOR) or request.after_revision)
        game_id = fields.game_id(request.game_id)
        changes, following = await self._games.list_changes(game_id, caller(context), after, size)
        return pb.ListChangesResponse(
            changes=map(game_codec.encode_change, changes),
            next_page_token=fields.page_token(str(following) if following else ""),
        ).SerializeToString()

    async def resign_game(self, request: pb.ResignGameRequest, context: Context) -> bytes:
        """ResignGame."""
        game_id = fields.game_id(request.game_id)
        return await self._games.resign_game(game_id, seat_mutation(request, context), answer(pb.ResignGameResponse))

    async def start_next_round(self, request: pb.StartNextRoundRequest, context: Context) -> bytes:
        """StartNextRound."""
        game_id = fields.game_id(request.game_id)
        identity = seat_mutation(request, context)
        return await self._games.start_next_round(game_id, identity, answer(pb.StartNextRoundResponse))

    async def request_redeal(self, request: pb.RequestRedealRequest, context: Context) -> bytes:
        """RequestRedeal."""
        game_id = fields.game_id(request.game_id)
        identity = seat_mutation(request, context)
        return await self._games.request_redeal(game_id, identity, answer(pb.RequestRedealResponse))

    async def return_to_seat(self, request: pb.ReturnToSeatRequest, context: Context) -> bytes:
        """ReturnToSeat."""
        game_id = fields.game_id(request.game_id)
        identity = seat_mutation(request, context)
        return await self._games.return_to_seat(game_id, identity, answer(pb.ReturnToSeatResponse))

    async def export_game(self, request: pb.ExportGameRequest, context: Context) -> bytes:
        """ExportGame."""
        if request.form not in pb.RecordForm.values():
            raise fields.invalid("form", f"{request.form} is not a form of a record")
        runner = SlowRunner(self._reader, RECORD_BYTES, context, "ExportGame")
        record = await self._games.export_game(fields.game_id(request.game_id), caller(context), runner)
        exported: bytes = await runner.run(in_one_step(lambda _: _exported(record, request.form), b""))
        return exported


def _exported(record: GameRecord, form: pb.RecordForm.ValueType) -> bytes:
    if form == pb.RECORD_FORM_TEXT:
        return pb.ExportGameResponse(text=format_record(record)).SerializeToString()
    return pb.ExportGameResponse(record=encode_record(record)).SerializeToString()


def _update(update: Update) -> bytes:
    """Encodes an update. An update for several watchers is encoded once."""
    match update:
        case Snapshot(shared):
            return _encoded_once(
                shared, "snapshot", lambda view: pb.WatchGameResponse(snapshot=game_codec.encode_game(view))
            )
        case Change(shared, _):
            return _encoded_once(
                shared, "change", lambda view: pb.WatchGameResponse(change=game_codec.encode_change(view))
            )
        case GameAfter(shared, _, is_first=True):
            return _encoded_once(
                shared, "first game", lambda view: pb.WatchGameResponse(game=game_codec.encode_game(view))
            )
        case GameAfter(shared):
            return _encoded_once(
                shared, "game", lambda view: pb.WatchGameResponse(game=game_codec.encode_changed_game(view))
            )
        case LiveDraft(shared):
            return _encoded_once(
                shared, "draft", lambda view: pb.WatchGameResponse(draft=game_codec.encode_draft(view))
            )
        case PresenceChange(seat):
            return pb.WatchGameResponse(presence=game_codec.encode_presence(seat)).SerializeToString()
        case Heartbeat(revision):
            return pb.WatchGameResponse(heartbeat=pb.Heartbeat(revision=revision)).SerializeToString()
        case Closing(revision, etag, delay_ms):
            delay = Duration()
            delay.FromMilliseconds(delay_ms)
            closing = pb.Closing(etag=fields.encode_etag(revision, etag), retry_delay=delay)
            return pb.WatchGameResponse(closing=closing).SerializeToString()


def _encoded_once(shared: SharedView[_T], form: str, encode: Callable[[_T], pb.WatchGameResponse]) -> bytes:
    """Returns the bytes of a shared update of a form, which its first watcher encodes."""
    if form not in shared.encoded:
        shared.encoded[form] = encode(shared.view).SerializeToString()
    return shared.encoded[form]
