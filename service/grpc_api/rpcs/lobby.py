"""The lobby: creating games, joining, leaving and starting them, bots, tokens, rematches."""

import time
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Final

from engine.actions import AbortGame, KickPlayer, SetReady, StartGame
from engine.room_settings import Bots
from engine.violations import Reason, refused
from rummikub.v1 import game_service_pb2 as pb
from service.app.commands.command import Basis, RequestIdentity
from service.app.commands.lobby import AddBot, CreateGame, GamePlan, JoinGame, JoinOrCreateGame, LeaveGame
from service.app.commands.rematch import RematchExists
from service.app.commands.tokens import ReissueToken, RenewToken
from service.codec import fields, positions, rulesets
from service.codec import games as game_codec
from service.errors import ActionRefused, JoinCodeUnknown
from service.grpc_api.call_origin import check_labels, check_right, current_origin, identified_by
from service.grpc_api.handlers import Context
from service.grpc_api.rpc import Backend, Rpc, Token, change, seat_action
from service.model.record import PlayerRef, Visibility
from service.runtime.join_tickets import Person
from service.runtime.origins import POSITION_SEARCHES, REISSUE_SEAT_TOKENS


async def create_game(
    backend: Backend, request: pb.CreateGameRequest, identity: RequestIdentity, _context: Context
) -> bytes:
    """CreateGame."""
    visibility, labels = game_codec.visibility(request.visibility), fields.labels(request.labels)
    options = rulesets.public_options if visibility is Visibility.PUBLIC else rulesets.game_options
    ruleset, settings = options(request.ruleset, request.settings)
    operator_labels = fields.operator_labels(request.operator_labels)
    check_labels((*labels, *operator_labels))
    if request.HasField("position"):
        check_right(POSITION_SEARCHES)  # the creator's game with a bot gives every hint on it
    position = positions.start_position(request.position, ruleset) if request.HasField("position") else None
    if position and visibility is Visibility.PUBLIC:
        raise fields.invalid("visibility", "a game that begins with a position is never public")
    seats = position.seats if position else tuple(range(1, ruleset.players_max + 1))
    reserved = game_codec.reserved_seats(request.reserved_seats, seats)
    plan = GamePlan(
        ruleset,
        settings,
        visibility,
        labels,
        identity.caller.key,
        operator_labels,
        position,
        tuple(seat for seat, _ in reserved),
        tuple(PlayerRef(1, seat.seat, ref) for seat, ref in reserved),
    )
    with _creating(backend, object()):
        return await backend.app.creation.create(CreateGame(identity, plan), _CREATED)


def _creating(backend: Backend, game: Hashable) -> AbstractContextManager[None]:
    """Counts a new game, unless it is not created after all. Raises TooManyGames."""
    return backend.limits.games.attempt(game, current_origin(), time.monotonic())


async def join_game(
    backend: Backend, request: pb.JoinGameRequest, identity: RequestIdentity, _context: Context
) -> bytes:
    """JoinGame."""
    stated = request.WhichOneof("game")
    if stated is None:
        raise fields.invalid("game", "expected one of game_id, join_code")
    code = fields.join_code(request.join_code) if stated == "join_code" else ""
    game_id = "" if code else fields.game_id(request.game_id)
    person, seat, seed = _person(request), _seat_to_take(request), fields.deal_seed(request.deal_seed)
    if code:
        game_id = await _game_of_code(backend, code, identity.caller.key)
    try:
        return await backend.app.changes.run(JoinGame(identity, game_id, person, code, seat, seed), _JOINED)
    except JoinCodeUnknown:  # a former code of the game
        backend.limits.guesses.take(current_origin(), time.monotonic())
        raise


async def _game_of_code(backend: Backend, join_code: str, key: str) -> str:
    """Returns the id of a key's game with a join code. Counts a code first, so that concurrent guesses count."""
    origin, is_unknown = current_origin(), False
    backend.limits.guesses.take(origin, time.monotonic())
    try:
        return await backend.app.games.game_of_code(join_code, key)
    except JoinCodeUnknown:
        is_unknown = True
        raise
    finally:
        if not is_unknown:  # if the store fails, the caller has learned nothing
            backend.limits.guesses.give_back(origin)


async def join_or_create_game(
    backend: Backend, request: pb.JoinOrCreateGameRequest, identity: RequestIdentity, _context: Context
) -> bytes:
    """JoinOrCreateGame."""
    labels, person, seed = fields.labels(request.labels), _person(request), fields.deal_seed(request.deal_seed)
    ruleset, settings = rulesets.quick_play_options(request.ruleset, request.settings)
    operator_labels = fields.operator_labels(request.operator_labels)
    check_labels((*labels, *operator_labels))
    plan = GamePlan(ruleset, settings, Visibility.PUBLIC, labels, identity.caller.key, operator_labels)
    if person.is_program and settings.bots is Bots.OFF:
        raise ActionRefused(refused(Reason.BOTS_NOT_ALLOWED))
    command = JoinOrCreateGame(identity, plan, person, seed, creating=partial(_creating, backend))
    return await backend.app.quick_play.join_or_create(command, _JOINED_OR_CREATED)


def _person(request: pb.JoinGameRequest | pb.JoinOrCreateGameRequest) -> Person:
    """Returns who wants to join. Raises InvalidRequest, and the faults of tickets."""
    text, ref = fields.join_ticket(request.join_ticket), fields.player_ref(request.player_ref)
    name = fields.player_name(request.name) if request.name or not text else ""
    person = identified_by(text, name, ref)
    person = replace(person, is_program=person.is_program or request.is_program)
    return person if person.name else replace(person, name=fields.player_name(""))


async def create_rematch(
    backend: Backend, request: pb.CreateRematchRequest, identity: RequestIdentity, _context: Context
) -> bytes:
    """CreateRematch."""
    game_id = fields.game_id(request.game_id)
    try:
        return await backend.app.creation.open_rematch(game_id, identity, _REMATCH, partial(_creating, backend))
    except RematchExists:
        game = await backend.app.games.get_game(game_id, identity.caller)
        return pb.CreateRematchResponse(game=game_codec.encode_changed_game(game)).SerializeToString()


def _add_bot(request: pb.AddBotRequest, game_id: str, identity: RequestIdentity) -> AddBot:
    level, name = game_codec.bot_level(request.level), fields.optional_name(request.name)
    return AddBot(identity, game_id, level, name, _seat_to_take(request))


def _seat_to_take(request: pb.JoinGameRequest | pb.AddBotRequest) -> int:
    """Returns the seat that a request names; 0 for the lowest free one."""
    return fields.seat(request.seat) if request.HasField("seat") else 0


def _leave(_request: pb.LeaveGameRequest, game_id: str, identity: RequestIdentity) -> LeaveGame:
    return LeaveGame(identity, game_id)


def _kick(request: pb.KickPlayerRequest) -> Callable[[int, Basis], KickPlayer]:
    kicked = fields.seat(request.seat)
    return lambda seat, _: KickPlayer(seat, kicked)


def _set_ready(request: pb.SetReadyRequest) -> Callable[[int, Basis], SetReady]:
    seed = fields.deal_seed(request.deal_seed)
    return lambda seat, _: SetReady(seat, request.is_ready, seed)


def _renew(_request: pb.RenewSeatTokenRequest, game_id: str, identity: RequestIdentity) -> RenewToken:
    return RenewToken(identity, game_id)


def _reissue(request: pb.ReissueSeatTokenRequest, game_id: str, identity: RequestIdentity) -> ReissueToken:
    return ReissueToken(identity, game_id, fields.seat(request.seat))


_CREATED: Final = game_codec.answer_of(pb.CreateGameResponse, with_ruleset=True)
_JOINED: Final = game_codec.answer_of(pb.JoinGameResponse, with_ruleset=True)
_JOINED_OR_CREATED: Final = game_codec.answer_of(pb.JoinOrCreateGameResponse, with_ruleset=True)
_REMATCH: Final = game_codec.answer_of(pb.CreateRematchResponse)

RPCS: Final[tuple[Rpc, ...]] = (
    Rpc(pb.CreateGameRequest, pb.CreateGameResponse, create_game),
    Rpc(pb.JoinGameRequest, pb.JoinGameResponse, join_game, is_secret=True, limit="changes"),
    Rpc(
        pb.JoinOrCreateGameRequest,
        pb.JoinOrCreateGameResponse,
        join_or_create_game,
        limit="changes",
    ),
    Rpc(pb.CreateRematchRequest, pb.CreateRematchResponse, create_rematch, token=Token.REQUIRED),
    change(pb.AddBotRequest, pb.AddBotResponse, _add_bot),
    change(pb.LeaveGameRequest, pb.LeaveGameResponse, _leave),
    seat_action(pb.KickPlayerRequest, pb.KickPlayerResponse, _kick, is_open_to_host=True),
    seat_action(pb.SetReadyRequest, pb.SetReadyResponse, _set_ready),
    seat_action(
        pb.StartGameRequest,
        pb.StartGameResponse,
        lambda _: lambda seat, basis: StartGame(seat, basis.deal()),
        is_open_to_host=True,
        may_deal=True,
        limit=None,
    ),
    seat_action(
        pb.AbortGameRequest, pb.AbortGameResponse, lambda _: lambda seat, _: AbortGame(seat), is_open_to_host=True
    ),
    change(pb.RenewSeatTokenRequest, pb.RenewSeatTokenResponse, _renew, is_secret=True),
    change(
        pb.ReissueSeatTokenRequest,
        pb.ReissueSeatTokenResponse,
        _reissue,
        token=Token.OPTIONAL,
        is_secret=True,
        right=REISSUE_SEAT_TOKENS,
    ),
)
