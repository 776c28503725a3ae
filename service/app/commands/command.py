"""The request of a change, what it is decided on, the decision, and commands that are one action of a seat."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from engine.actions import Action, StandIn
from engine.deal import Shuffle
from engine.fair_deal import seed_of, shuffle_for
from engine.turns import Applied, apply
from engine.unions import BotAction, RoundStart
from engine.violations import Refused
from service.app.identity import (
    Caller,
    Chance,
    digest,
    member_in,
    new_shuffle,
    player_seat_in,
    revoked_by,
    seat_token,
)
from service.errors import ActionRefused
from service.model.record import Record, SeatToken
from service.runtime.join_tickets import JoinTicket

KEY_LENGTH: Final = 32
"""Hexadecimal digits of a request key: 128 bits."""
SALT_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """Identifies a mutating request, so that a client may safely repeat it.

    Attributes:
        caller: The sender. Equal request ids of two players are different requests.
        request_id: As sent; empty for none.
        fingerprint: A digest of the RPC and its content.
    """

    caller: Caller
    request_id: str
    fingerprint: bytes

    @property
    def key(self) -> str:
        """The key of the memo in the store; empty without a request id.

        It is a digest, because a join's request id yields a seat token and must not be stored.
        """
        if not self.request_id:
            return ""
        sender = (self.caller.digest or b"") + b"\0" + self.request_id.encode()
        if self.caller.key:
            sender += b"\0" + self.caller.key.encode()  # no request id has this character
        return hashlib.sha256(sender).hexdigest()[:KEY_LENGTH]


@dataclass(frozen=True, slots=True)
class Basis:
    """The game on which a change is decided.

    Attributes:
        record: The game.
        now_ms: The store's time.
        chance: The source of randomness.
        overdue_revision: The revision before the time-out that this request has just applied; None if it applied none.
        until_ms: When the decision expires, if the game is from the cache (Commit.until_ms).
        deal_secret: The secret of the game's deals, if the change may deal (fair_deal); else empty.
    """

    record: Record
    now_ms: int
    chance: Chance
    overdue_revision: int | None = None
    until_ms: int | None = None
    deal_secret: bytes = b""

    def deal(self) -> Shuffle | RoundStart:
        """Returns the position that the game begins with, or a new random order of the tiles for its next deal."""
        return self.record.position or self.shuffle()

    def shuffle(self) -> Shuffle:
        """Returns a new random order of the tiles for the game's next deal."""
        game = self.record.game
        seed = seed_of(self.deal_secret, game.deals + 1)
        if seed:
            return shuffle_for(game, seed)
        return new_shuffle(self.chance, game.ruleset, len(game.active_seats))


@dataclass(frozen=True, slots=True)
class Decision:
    """A decided change.

    Attributes:
        applied: The engine's result.
        tokens: The tokens after the change.
        viewer: Whose view the answer holds (engine.sight).
        actor: The seat that acts, HOST for the host token; None without a token.
        new_seat: The seat of a player or bot who has joined; 0 for none.
        salt: The salt of a new token (Memo.salt); empty if there is none.
        player_ref: The operator's reference to the person who has joined; empty for none.
        ticket: The ticket with which the person has joined, which is used up.
    """

    applied: Applied
    tokens: tuple[SeatToken, ...]
    viewer: int | None = None
    actor: int | None = None
    new_seat: int = 0
    salt: bytes = b""
    player_ref: str = ""
    ticket: JoinTicket | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Encodes the answer to a change.

    Attributes:
        encode: Returns the answer to store, without a new token, given the decision and the game after it.
        add_token: Returns a stored answer with a new token.
    """

    encode: Callable[[Decision, Record], bytes]
    add_token: Callable[[bytes, str], bytes] = lambda answer, _: answer


NO_ANSWER: Final = Answer(lambda _decision, _after: b"")


@dataclass(frozen=True, slots=True)
class Command:
    """A request for a change.

    Attributes:
        request: Identifies the request.
    """

    is_limited: ClassVar[bool] = True
    """Whether limits apply to the change: its pace, and the store's room."""

    request: RequestIdentity

    def with_new_token(self, decision: Decision, seat: int, chance: Chance) -> Decision:
        """Returns a decision with a new token of a seat, which a new salt yields with the request's id."""
        salt = chance.token_bytes(SALT_BYTES)
        token = SeatToken(seat, digest(seat_token(salt, self.request.request_id)))
        return replace(decision, tokens=(*decision.tokens, token), salt=salt)


@dataclass(frozen=True, slots=True)
class GameCommand(Command, ABC):
    """A request to change an existing game.

    Attributes:
        game_id: The game.
    """

    game_id: str

    @property
    def key_holder(self) -> Caller | None:
        """Who must have the game's key; None for the operator."""
        return self.request.caller

    @abstractmethod
    def decide(self, basis: Basis) -> Decision:
        """Returns the change. Raises a Fault if the request is refused."""


@dataclass(frozen=True, slots=True)
class SeatAction(GameCommand):
    """An action of a seated player on the game at its current revision.

    Attributes:
        action: Returns the action of a seat.
        is_open_to_host: Whether the host may act without a seat too.
        may_deal: Whether the action may deal a round.
    """

    action: Callable[[int, Basis], Action]
    is_open_to_host: bool = False
    may_deal: bool = False

    def decide(self, basis: Basis) -> Decision:
        """See GameCommand. Raises NotAPlayer, GameNotFound, TokenVoid, ActionRefused."""
        record = basis.record
        seat = (member_in if self.is_open_to_host else player_seat_in)(record, self.request.caller)
        applied = applied_or_refused(apply(record.game, self.action(seat, basis), basis.now_ms))
        return Decision(applied, valid_tokens(record, applied), viewer=seat, actor=seat)


def valid_tokens(record: Record, applied: Applied) -> tuple[SeatToken, ...]:
    """Returns the tokens of a game that a change has not made void."""
    revoked = revoked_by(applied.events)
    return tuple([token for token in record.tokens if token.seat not in revoked]) if revoked else record.tokens


def of_caller(action: BotAction, caller: Caller) -> Action:
    """Returns an action of the seat's owner, or of the bot that stands in."""
    return StandIn(action) if caller.stands_in else action


def applied_or_refused(outcome: Applied | Refused) -> Applied:
    """Returns the engine's result. Raises ActionRefused."""
    if isinstance(outcome, Refused):
        raise ActionRefused(outcome)
    return outcome
