"""Reading games: one, lists, changes, watches."""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypeVar

from google.protobuf.duration_pb2 import Duration

from rummikub.v1 import challenge_service_pb2 as pb_challenges
from rummikub.v1 import game_service_pb2 as pb
from rummikub.v1.game_pb2 import Game
from service.app.game_lists import GameFilter
from service.app.games import OwnGame, seat_of_player
from service.app.identity import Caller, digest, inbox_of, player_seat_in
from service.app.own_data import SeatOf
from service.app.own_games import Find, Read
from service.app.views import GameSnapshotView
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
from service.codec import melding as melding_codec
from service.codec.challenges import encode_challenge
from service.codec.tiles import reason_number
from service.errors import Fault, GameNotFound, GameNotOver, NotAPlayer, StoredFormatUnknown, TokenVoid
from service.grpc_api.call_origin import check_labels, current_origin, ticket_of
from service.grpc_api.deadlines import left_until, until_deadline
from service.grpc_api.handlers import HISTORY_BYTES, Context, SlowRunner
from service.grpc_api.rpc import Backend, Rpc, Token
from service.grpc_api.status import status_of
from service.model.challenge import ChallengeState
from service.model.record import GameState

POLL_SECONDS_MAX: Final = 25
"""How long ListChanges waits for a change at most: less than the timeouts of usual proxies, from 30 s on."""
_CHANGES_CURSOR = r"[1-9]\d{0,17}"
_EXPORT_CURSOR = r"[0-9a-f]{32}:\d{1,18}"
_T = TypeVar("_T")


async def get_game(backend: Backend, request: pb.GetGameRequest, sender: Caller, context: Context) -> bytes:
    """GetGame."""
    game_id, encode = fields.game_id(request.game_id), game_codec.game_encoder(request.view)
    if request.HasField("revision"):
        revision = fields.revision("revision", request.revision)
        runner = SlowRunner(backend.reader, HISTORY_BYTES, context, "GetGame")
        sight = await backend.app.games.game_at(game_id, sender, revision, runner)
    else:
        sight = await backend.app.games.get_game(game_id, sender)
    return pb.GetGameResponse(game=encode(sight)).SerializeToString()


async def list_games(backend: Backend, request: pb.ListGamesRequest, sender: Caller, _context: Context) -> bytes:
    """ListGames. The answer depends on the key only, but a malformed token is an error as in all RPCs."""
    wanted = GameFilter(
        game_codec.listed_states(request.states, (GameState.LOBBY,)),
        rulesets.preset_filter(request.preset),
        request.seats_free_min,
        fields.labels(request.labels),
        sender.key,
    )
    check_labels(wanted.labels)
    size = fields.page_size(request.page_size, default=20, most=100)
    cursor = fields.filtered_page_cursor(request.page_token, fields.LIST_CURSOR, wanted)
    sights, following = await backend.app.games.list_games(wanted, cursor, size)
    return pb.ListGamesResponse(
        games=map(game_codec.encode_summary, sights),
        next_page_token=fields.filtered_page_token(following, wanted),
    ).SerializeToString()


async def list_own_games(backend: Backend, request: pb.ListOwnGamesRequest, sender: Caller, _context: Context) -> bytes:
    """ListOwnGames."""
    own = await _own_games(backend, request, sender)
    found = await own.read([game_id for game_id in await own.find() if game_id != own.inbox])
    games = [_own_game(one) for one in found if not isinstance(one, pb_challenges.Challenge)]
    return pb.ListOwnGamesResponse(games=games).SerializeToString()


async def watch_own_games(backend: Backend, request: pb.WatchOwnGamesRequest, sender: Caller, context: Context) -> None:
    """WatchOwnGames. An entry that is as the last one of its seat is not sent again."""
    own, sent = await _own_games(backend, request, sender), dict[tuple[str, int], pb.OwnGame]()
    with backend.limits.watches.holding(current_origin()):
        async with aclosing(backend.watch.watch_own(own.person, own.find, own.read, own.inbox)) as updates:
            async for found in updates:
                for one in found:
                    if isinstance(one, pb_challenges.Challenge):
                        await context.write(pb.WatchOwnGamesResponse(challenge=one).SerializeToString())
                        continue
                    entry = _own_game(one)
                    if sent.get((entry.game_id, entry.seat)) != entry:
                        sent[entry.game_id, entry.seat] = entry
                        await context.write(pb.WatchOwnGamesResponse(game=entry).SerializeToString())
                if not found:
                    await context.write(pb.WatchOwnGamesResponse(heartbeat=pb.Heartbeat()).SerializeToString())
        if backend.watch.is_stopping:
            closing = pb.Closing(retry_delay=_milliseconds(backend.watch.next_delay_ms()))
            await context.write(pb.WatchOwnGamesResponse(closing=closing).SerializeToString())


class _OwnGames(NamedTuple):
    """Whose games a request is about: a name for the person, and how the games and challenges are found and read.

    Challenges are found and read under the name of the person's inbox.
    """

    person: str
    find: Find
    read: Read["OwnGame | pb_challenges.Challenge"]
    inbox: str = ""


async def _own_games(
    backend: Backend,
    request: pb.ListOwnGamesRequest | pb.WatchOwnGamesRequest | pb.ExportOwnGamesRequest,
    sender: Caller,
) -> _OwnGames:
    """Returns whose games a request is about. Raises InvalidRequest, and the faults of tickets."""
    games, key, text = backend.app.games, sender.key, fields.join_ticket(request.join_ticket)
    if text:
        if request.seats:
            raise fields.invalid("seats", "expected seats or a join_ticket, not both")
        ticket = ticket_of(text)
        await games.check_time(ticket)
        return _of_player(backend, key, ticket.player_ref)
    seats = [(game_id, replace(sender, digest=digest(token))) for game_id, token in game_codec.own_seats(request.seats)]

    async def find() -> Sequence[str]:
        return [game_id for game_id, _ in seats]

    async def read(game_ids: Sequence[str]) -> Sequence[OwnGame]:
        return await games.own_games([seat for seat in seats if seat[0] in game_ids])

    digests = sorted({caller.digest.hex() for _, caller in seats if caller.digest})
    return _OwnGames(":".join(digests), find, read)


def _of_player(backend: Backend, key: str, player_ref: str) -> _OwnGames:
    inbox, known = inbox_of(key, player_ref), dict[str, ChallengeState]()

    async def find() -> Sequence[str]:
        return [inbox, *await backend.app.games.games_of(key, player_ref)]

    async def read(ids: Sequence[str]) -> Sequence[OwnGame | pb_challenges.Challenge]:
        found = await backend.app.games.player_games(key, player_ref, [one for one in ids if one != inbox])
        news = await backend.app.challenges.news(key, player_ref, known) if inbox in ids else ()
        return [*found, *(encode_challenge(one, player_ref) for one in news)]

    return _OwnGames(f"player:{key}:{player_ref}", find, read, inbox)


async def export_own_games(
    backend: Backend, request: pb.ExportOwnGamesRequest, sender: Caller, _context: Context
) -> bytes:
    """ExportOwnGames. A page token names the game, and the revision after which its changes go on."""
    game_ids, seats = await _games_to_export(backend, request, sender)
    game_id, _, after = fields.page_cursor(request.page_token, _EXPORT_CURSOR).partition(":")
    if game_id and game_id not in game_ids:
        raise fields.invalid("page_token", "its game is not among the games any more; begin again")
    if not game_ids:
        return b""
    game_id = game_id or game_ids[0]
    following = 0
    try:
        data = await backend.app.games.own_data(game_id, seats[game_id], int(after or 0))
        found, following = game_codec.encode_own_data(data, has_ref=bool(request.join_ticket)), data.following
    except (GameNotFound, TokenVoid, NotAPlayer, GameNotOver, StoredFormatUnknown) as fault:
        found = pb.OwnData(game_id=game_id, refusal=reason_number(fault.reason))
    rest = game_ids[game_ids.index(game_id) + 1 :]
    cursor = f"{game_id}:{following}" if following else f"{rest[0]}:0" if rest else ""
    return pb.ExportOwnGamesResponse(game=found, next_page_token=fields.page_token(cursor)).SerializeToString()


async def _games_to_export(
    backend: Backend, request: pb.ExportOwnGamesRequest, sender: Caller
) -> tuple[Sequence[str], Mapping[str, SeatOf]]:
    """Returns the ids of the games, and what finds the person's seat in each. Raises as _own_games."""
    if request.join_ticket:
        own = await _own_games(backend, request, sender)
        player_ref = ticket_of(request.join_ticket).player_ref
        game_ids = [game_id for game_id in await own.find() if game_id != own.inbox]
        return game_ids, dict.fromkeys(game_ids, partial(seat_of_player, key=sender.key, player_ref=player_ref))
    seats: dict[str, SeatOf] = {}
    for place, (game_id, token) in enumerate(game_codec.own_seats(request.seats)):
        if game_id in seats:
            raise fields.invalid(f"seats[{place}].game_id", "expected one seat of each game")
        seats[game_id] = partial(player_seat_in, caller=replace(sender, digest=digest(token)))
    return [*seats], seats


async def forget_seat(backend: Backend, request: pb.ForgetSeatRequest, sender: Caller, _context: Context) -> bytes:
    """ForgetSeat."""
    game_id, seat_of = fields.game_id(request.game_id), partial(player_seat_in, caller=sender)
    name = await backend.forget_seat(game_id, seat_of)
    return pb.ForgetSeatResponse(name=name).SerializeToString()


def _own_game(found: OwnGame) -> pb.OwnGame:
    game_id, one = found
    if isinstance(one, Fault):
        return pb.OwnGame(game_id=game_id, refusal=reason_number(status_of(one).reason))
    return game_codec.encode_own_game(one)


async def watch_game(backend: Backend, request: pb.WatchGameRequest, sender: Caller, context: Context) -> None:
    """WatchGame."""
    game_id = fields.game_id(request.game_id)
    revision, etag = fields.optional_etag(request.etag)
    if request.ticket:
        sender = await _holder(backend, game_id, request.ticket, sender)
    content, encode = game_codec.watch_content(request.content), game_codec.game_encoder(request.view)
    watching = backend.watch.watch(game_id, sender, revision, etag, content, until_rematch=request.until_rematch)
    with backend.limits.watches.holding(current_origin()):
        async with aclosing(watching) as updates:
            async for update in updates:
                encoded = _update(update, encode)
                if isinstance(update, Change | GameAfter) and update.notified_at is not None:
                    backend.metrics.watch_delay(time.perf_counter() - update.notified_at)
                await context.write(encoded)


async def _holder(backend: Backend, game_id: str, text: str, sender: Caller) -> Caller:
    """Returns the caller for whom a ticket stands. Raises InvalidRequest, GameNotFound."""
    if not sender.is_spectator:
        raise fields.invalid("ticket", "expected a token or a ticket, not both")
    holder = await backend.app.games.holder(game_id, fields.watch_ticket(text), sender)
    if holder is None:
        raise fields.invalid_ticket()
    return holder


async def create_watch_ticket(
    backend: Backend, request: pb.CreateWatchTicketRequest, sender: Caller, _context: Context
) -> bytes:
    """CreateWatchTicket."""
    ticket = await backend.app.games.watch_ticket(fields.game_id(request.game_id), sender)
    return game_codec.encode_watch_ticket(ticket).SerializeToString()


async def list_changes(backend: Backend, request: pb.ListChangesRequest, sender: Caller, context: Context) -> bytes:
    """ListChanges."""
    size = fields.page_size(request.page_size, default=50, most=200)
    after = int(fields.page_cursor(request.page_token, _CHANGES_CURSOR) or request.after_revision)
    game_id = fields.game_id(request.game_id)
    changes, following = await backend.app.games.list_changes(game_id, sender, after, size)
    if request.wait_seconds and not changes:
        seconds = left_until(min(request.wait_seconds, POLL_SECONDS_MAX), until_deadline(context))
        with backend.limits.watches.holding(current_origin()):
            await backend.watch.wait(game_id, sender, after, seconds)
        changes, following = await backend.app.games.list_changes(game_id, sender, after, size)
    return pb.ListChangesResponse(
        changes=map(game_codec.encode_change, changes),
        next_page_token=fields.page_token(str(following) if following else ""),
    ).SerializeToString()


def _update(update: Update, encode: Callable[[GameSnapshotView], Game]) -> bytes:
    """Encodes an update. An update for several watchers is encoded once; `encode` encodes whole games."""
    match update:
        case Snapshot(shared):
            return _encoded_once(shared, ("snapshot", encode), lambda view: pb.WatchGameResponse(snapshot=encode(view)))
        case Change(shared, _):
            return _encoded_once(
                shared, "change", lambda view: pb.WatchGameResponse(change=game_codec.encode_change(view))
            )
        case GameAfter(shared, _, is_first):
            encode_after = encode if is_first else game_codec.encode_changed_game
            return _encoded_once(
                shared, ("game", encode_after), lambda view: pb.WatchGameResponse(game=encode_after(view))
            )
        case LiveDraft(shared):
            return _encoded_once(
                shared, "draft", lambda view: pb.WatchGameResponse(draft=melding_codec.encode_draft(view))
            )
        case PresenceChange(seat):
            return pb.WatchGameResponse(presence=game_codec.encode_presence(seat)).SerializeToString()
        case Heartbeat(revision):
            return pb.WatchGameResponse(heartbeat=pb.Heartbeat(revision=revision)).SerializeToString()
        case Closing(revision, etag, delay_ms):
            closing = pb.Closing(etag=fields.encode_etag(revision, etag), retry_delay=_milliseconds(delay_ms))
            return pb.WatchGameResponse(closing=closing).SerializeToString()


def _milliseconds(count: int) -> Duration:
    duration = Duration()
    duration.FromMilliseconds(count)
    return duration


def _encoded_once(shared: SharedView[_T], form: Hashable, encode: Callable[[_T], pb.WatchGameResponse]) -> bytes:
    """Returns the bytes of a shared update of a form, which its first watcher encodes."""
    if form not in shared.encoded:
        shared.encoded[form] = encode(shared.view).SerializeToString()
    return shared.encoded[form]


RPCS: Final[tuple[Rpc, ...]] = (
    Rpc(pb.GetGameRequest, pb.GetGameResponse, get_game),
    Rpc(pb.ListGamesRequest, pb.ListGamesResponse, list_games),
    Rpc(pb.ListOwnGamesRequest, pb.ListOwnGamesResponse, list_own_games),
    Rpc(pb.WatchOwnGamesRequest, pb.WatchOwnGamesResponse, watch_own_games, is_stream=True),
    Rpc(pb.ExportOwnGamesRequest, pb.ExportOwnGamesResponse, export_own_games),
    Rpc(pb.ForgetSeatRequest, pb.ForgetSeatResponse, forget_seat, token=Token.REQUIRED, limit="changes"),
    Rpc(pb.ListChangesRequest, pb.ListChangesResponse, list_changes),
    Rpc(pb.CreateWatchTicketRequest, pb.CreateWatchTicketResponse, create_watch_ticket, token=Token.REQUIRED),
    Rpc(pb.WatchGameRequest, pb.WatchGameResponse, watch_game, is_stream=True),
)
