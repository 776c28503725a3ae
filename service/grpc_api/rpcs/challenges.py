"""Challenges: made, listed, accepted, declined, canceled."""

import time
from dataclasses import replace
from typing import Any, Final

from engine.room_settings import Bots
from engine.violations import Reason, refused
from rummikub.v1 import challenge_service_pb2 as pb
from service.app.challenges import Player
from service.app.commands.command import RequestIdentity
from service.app.identity import Caller
from service.codec import challenges as challenge_codec
from service.codec import fields
from service.errors import ActionRefused
from service.grpc_api.call_origin import check_labels, current_origin, identified_by
from service.grpc_api.handlers import Context
from service.grpc_api.rpc import Backend, Rpc
from service.model.challenge import Challenge


async def challenge_player(
    backend: Backend, request: pb.ChallengePlayerRequest, identity: RequestIdentity, _context: Context
) -> bytes:
    """ChallengePlayer."""
    challenge_codec.challenged(request)
    player = await _player(backend, request.join_ticket, identity.caller.key, request.name, is_named=True)
    person = player.person
    players = challenge_codec.Players(player.key, person.player_ref, person.name, person.is_program)
    proposed, kept_ms = challenge_codec.proposed(request, players, identity.fingerprint)
    check_labels(proposed.labels)
    if person.is_program and proposed.settings.bots is Bots.OFF:
        raise ActionRefused(refused(Reason.BOTS_NOT_ALLOWED))
    made = await backend.app.challenges.make(proposed, identity.key, kept_ms)
    return pb.ChallengePlayerResponse(challenge=_seen(made, player)).SerializeToString()


async def list_challenges(
    backend: Backend, request: pb.ListChallengesRequest, sender: Caller, _context: Context
) -> bytes:
    """ListChallenges."""
    player = await _player(backend, request.join_ticket, sender.key)
    found = await backend.app.challenges.news(player.key, player.ref, {})
    return pb.ListChallengesResponse(challenges=(_seen(one, player) for one in found)).SerializeToString()


async def accept_challenge(
    backend: Backend, request: pb.AcceptChallengeRequest, sender: Caller, _context: Context
) -> bytes:
    """AcceptChallenge."""
    challenge_id = challenge_codec.challenge_id(request.challenge_id)
    player = await _player(backend, request.join_ticket, sender.key, request.name, is_named=True)
    accepted = await backend.app.challenges.accept(
        challenge_id,
        player,
        lambda: backend.limits.games.attempt(challenge_id, current_origin(), time.monotonic()),
    )
    return pb.AcceptChallengeResponse(challenge=_seen(accepted, player)).SerializeToString()


async def decline_challenge(
    backend: Backend, request: pb.DeclineChallengeRequest, sender: Caller, _context: Context
) -> bytes:
    """DeclineChallenge."""
    challenge_id, reason = challenge_codec.challenge_id(request.challenge_id), request.reason
    player = await _player(backend, request.join_ticket, sender.key)
    declined = await backend.app.challenges.decline(challenge_id, player, challenge_codec.decline_reason(reason))
    return pb.DeclineChallengeResponse(challenge=_seen(declined, player)).SerializeToString()


async def cancel_challenge(
    backend: Backend, request: pb.CancelChallengeRequest, sender: Caller, _context: Context
) -> bytes:
    """CancelChallenge."""
    challenge_id = challenge_codec.challenge_id(request.challenge_id)
    player = await _player(backend, request.join_ticket, sender.key)
    canceled = await backend.app.challenges.cancel(challenge_id, player)
    return pb.CancelChallengeResponse(challenge=_seen(canceled, player)).SerializeToString()


async def _player(backend: Backend, text: str, key: str, name: str = "", *, is_named: bool = False) -> Player:
    """Returns the player of a ticket. Raises InvalidRequest, and the faults of tickets."""
    person = identified_by(challenge_codec.ticket(text), fields.optional_name(name), "")
    if person.ticket:
        await backend.app.games.check_time(person.ticket)
    if is_named and not person.name:
        person = replace(person, name=fields.player_name(""))
    return Player(key, person)


def _seen(challenge: Challenge, player: Player) -> pb.Challenge:
    return challenge_codec.encode_challenge(challenge, player.ref)


def _row(request: type[Any], response: type[Any], call: Any) -> Rpc:  # noqa: ANN401 - as Rpc.call
    return Rpc(request, response, call, limit="changes")


RPCS: Final[tuple[Rpc, ...]] = (
    _row(pb.ChallengePlayerRequest, pb.ChallengePlayerResponse, challenge_player),
    _row(pb.ListChallengesRequest, pb.ListChallengesResponse, list_challenges),
    _row(pb.AcceptChallengeRequest, pb.AcceptChallengeResponse, accept_challenge),
    _row(pb.DeclineChallengeRequest, pb.DeclineChallengeResponse, decline_challenge),
    _row(pb.CancelChallengeRequest, pb.CancelChallengeResponse, cancel_challenge),
)
