"""Requests and responses of ChallengeService."""

from dataclasses import dataclass
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from rummikub.v1 import challenge_service_pb2 as pb
from service.codec import fields
from service.codec.rulesets import encode_difference, game_options
from service.errors import TicketRequired
from service.model.challenge import EXPIRE_SECONDS_MAX, Challenge, ChallengeState, DeclineReason

EXPIRE_SECONDS: Final = 300
"""How long a challenge waits for an answer, unless its request says so."""
EXPIRE_SECONDS_MIN: Final = 10
"""The shortest time that a challenge waits for an answer."""
PLAYERS: Final = 2
"""The players of a challenge."""


def ticket(text: str) -> str:
    """Returns a ticket to verify. Raises TicketRequired without one."""
    if not text:
        raise TicketRequired
    return fields.join_ticket(text)


def challenge_id(text: str) -> str:
    """Returns the id of a challenge, which has the form of a game's."""
    return fields.game_id(text, "challenge_id")


def challenged(request: pb.ChallengePlayerRequest) -> str:
    """Returns the reference of the challenged player."""
    if not request.player_ref:
        raise fields.invalid("player_ref", "expected a reference to a player")
    return fields.player_ref(request.player_ref)


@dataclass(frozen=True, slots=True)
class Players:
    """The players of a challenge that a request proposes, as far as they are known."""

    key: str
    challenger_ref: str
    challenger_name: str
    is_program: bool


def proposed(request: pb.ChallengePlayerRequest, players: Players, fingerprint: bytes) -> tuple[Challenge, int]:
    """Returns the challenge that a request proposes, without id and times, and its milliseconds until it expires."""
    ref = challenged(request)
    if ref == players.challenger_ref:
        raise fields.invalid("player_ref", "expected a reference to another player")
    ruleset, settings = game_options(request.ruleset, request.settings)
    if ruleset.players_min > PLAYERS:
        raise fields.invalid("ruleset", f"a challenge is for {PLAYERS} players: this game needs {ruleset.players_min}")
    challenge = Challenge(
        "",
        fingerprint,
        players.key,
        players.challenger_ref,
        players.challenger_name,
        players.is_program,
        ref,
        ruleset,
        settings,
        fields.labels(request.labels),
        0,
        0,
    )
    return challenge, _expire_ms(request)


def _expire_ms(request: pb.ChallengePlayerRequest) -> int:
    if not request.HasField("expire_after"):
        return EXPIRE_SECONDS * 1000
    seconds = fields.duration("expire_after", request.expire_after, EXPIRE_SECONDS_MAX)
    if seconds < EXPIRE_SECONDS_MIN:
        raise fields.invalid("expire_after", f"expected at least {EXPIRE_SECONDS_MIN} seconds")
    return round(seconds * 1000)


def decline_reason(number: pb.DeclineReason.ValueType) -> DeclineReason:
    """Returns why a challenge is declined."""
    if number not in pb.DeclineReason.values():
        raise fields.invalid("reason", f"{number} is not a reason: expected 1 to {len(DeclineReason) - 1}, or none")
    return DeclineReason[pb.DeclineReason.Name(number).removeprefix("DECLINE_REASON_")]


def encode_challenge(challenge: Challenge, player_ref: str) -> pb.Challenge:
    """Returns a challenge as one of its players sees it. It has no reference of the other one."""
    ruleset, settings = encode_difference(challenge.ruleset, challenge.settings)
    is_accepted = challenge.state is ChallengeState.ACCEPTED
    return pb.Challenge(
        challenge_id=challenge.challenge_id,
        state=pb.ChallengeState.Value(f"CHALLENGE_STATE_{challenge.state.name}"),
        is_incoming=player_ref == challenge.challenged_ref,
        challenger_name=challenge.challenger_name,
        challenger_is_program=challenge.is_program,
        ruleset=ruleset,
        settings=settings,
        labels=dict(challenge.labels),
        create_time=_time(challenge.created_ms),
        expire_time=_time(challenge.expires_ms),
        game_id=challenge.game_id if is_accepted else "",
        decline_reason=pb.DeclineReason.Value(f"DECLINE_REASON_{challenge.decline_reason.name}"),
    )


def _time(milliseconds: int) -> Timestamp:
    time = Timestamp()
    time.FromMilliseconds(milliseconds)
    return time
