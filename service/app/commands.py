"""Commands: one class for each use case that changes a game, with the steps that the change loop calls.

A command decides on a game (`decide`), encodes the answer to its request (`encode`), and completes a stored answer
(`complete`). The loop in changes.py loads the game before and commits the decision after.
"""

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, TypeAlias

from engine.actions import (
    Action,
    Join,
    Leave,
    Resign,
    ReturnToSeat,
    StandIn,
    StartDueRound,
    StartGame,
    StartNextRound,
    TimeOut,
)
from engine.deal import Shuffle
from engine.game import Game, Playing, round_of
from engine.melding.actions import ClaimError, RequestRedeal, TurnAction
from engine.melding.analysis import Existence, Situation
from engine.melding.drafts import Draft
from engine.melding.ruleset import Ruleset
from engine.replay import advance
from engine.seats import HOST, BotLevel
from engine.tiles import Tile
from engine.turns import EXACT, Applied, apply, create
from engine.views import see
from engine.violations import Reason, Refused, refused
from service.app.identity import (
    Caller,
    Chance,
    digest,
    invited_in,
    member_in,
    new_shuffle,
    player_seat_in,
    revoked_by,
    seat_token,
    token_in,
)
from service.app.names import are_alike
from service.app.views import GameSnapshotView, TurnResult, committed_view, turn_result
from service.errors import (
    ActionRefused,
    AlreadySeated,
    JoinCodeRequired,
    JoinCodeUnknown,
    PlayerRefTaken,
    StaleState,
    TurnTimedOut,
    WasKicked,
)
from service.model.record import Record, SeatToken, Visibility

KEY_LENGTH: Final = 32
"""Hexadecimal digits of a request key: 128 bits."""
SALT_BYTES: Final = 32
DIGEST_BYTES: Final = 32

GameEncoder: TypeAlias = Callable[[GameSnapshotView], bytes]
"""Encodes an answer that holds a game."""
SeatEncoder: TypeAlias = Callable[[GameSnapshotView, int], bytes]
"""Encodes an answer that holds a game and a new seat."""
TokenAdder: TypeAlias = Callable[[bytes, str], bytes]
"""Adds a token to an encoded answer, which is stored without it."""
TurnEncoder: TypeAlias = Callable[[TurnResult], bytes]
"""Encodes the answer to a turn."""


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
class GamePlan:
    """A game to create: its rules, which have no problems, how it is found (Listing), the operator's labels."""

    ruleset: Ruleset
    visibility: Visibility = Visibility.UNLISTED
    labels: tuple[tuple[str, str], ...] = ()
    key: str = ""
    operator_labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn to take: revision and etag that its player saw, and a function from the caller's seat to the action."""

    game_id: str
    revision: int
    etag: str
    validate_only: bool
    action: Callable[[int], TurnAction]


@dataclass(frozen=True, slots=True)
class Vote:
    """A vote on whether the play that was shown at a revision is illegal."""

    game_id: str
    play_revision: int
    agrees: bool


@dataclass(frozen=True, slots=True)
class Basis:
    """The game on which a change is decided.

    Attributes:
        record: The game.
        now_ms: The store's time.
        overdue_revision: The revision before the time-out that this request has just applied; None if it applied none.
        until_ms: When the decision expires, if the game is from the cache (Commit.until_ms).
    """

    record: Record
    now_ms: int
    overdue_revision: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A decided change.

    Attributes:
        applied: The engine's result.
        tokens: The tokens after the change.
        viewer: Whose view the answer holds (engine.views).
        actor: The seat that acts, HOST for the host token; None without a token.
        new_seat: The seat of a player or bot who has joined; 0 for none.
        salt: The salt of a new token (Memo.salt).
        player_ref: The operator's reference to the person who has joined; empty for none.
    """

    applied: Applied
    tokens: tuple[SeatToken, ...]
    viewer: int | None = None
    actor: int | None = None
    new_seat: int = 0
    salt: bytes = b""
    player_ref: str = ""


@dataclass(frozen=True, slots=True)
class Command(ABC):
    """A request that changes a game, and its answer.

    Attributes:
        request: Identifies the request.
    """

    is_limited: ClassVar[bool] = True
    """Whether limits apply to the change: its pace, and the store's room."""

    request: RequestIdentity

    @abstractmethod
    def encode(self, decision: Decision, after: Record) -> bytes:
        """Returns the answer to store in the memo, given the game after the change."""

    def complete(self, answer: bytes, _salt: bytes) -> bytes:
        """Returns the answer to send, given the stored one and the memo's salt."""
        return answer


@dataclass(frozen=True, slots=True)
class CreateGame(Command):
    """Creates a game. `complete` adds the host token to the stored answer."""

    plan: GamePlan
    chance: Chance
    encode_game: GameEncoder
    add_token: TokenAdder

    def decide(self) -> Decision:
        """Returns the new game."""
        salt, token = new_token(self.chance, self.request, HOST)
        return Decision(create(self.plan.ruleset), (token,), viewer=HOST, salt=salt)

    def complete(self, answer: bytes, salt: bytes) -> bytes:
        """See Command."""
        return self.add_token(answer, seat_token(salt, self.request.request_id))

    def encode(self, decision: Decision, after: Record) -> bytes:
        """See Command."""
        return self.encode_game(committed_view(after, decision.viewer))


@dataclass(frozen=True, slots=True)
class JoinOrCreateGame(Command):
    """Seats a player in an open public game like the plan, or creates one.

    Attributes:
        plan: The game.
        name: The player's name.
        player_ref: The operator's reference to the player.
        encode_seat: Encodes the answer without the seat token; `complete` adds it.
        add_token: Adds the token.
        creating: Returns a context for the creation of a game with an id. Raises a Fault to refuse that.
    """

    plan: GamePlan
    name: str
    player_ref: str
    encode_seat: SeatEncoder
    add_token: Callable[[bytes, str], bytes]
    creating: Callable[[str], AbstractContextManager[None]]

    def join(self, basis: Basis, chance: Chance) -> Decision:
        """Returns the decision to join a game. Raises ActionRefused, NotAdmitted."""
        check_admitted(basis.record, self.name, self.player_ref)
        join = Join(self.name, is_host=not _has_host(basis.record) and not basis.record.game.reserved)
        return _seated(basis.record, _joined(basis, join), self, chance)

    def create(self, basis: Basis, chance: Chance) -> Decision:
        """Returns the decision to create a game with the player in it, in one change."""
        created = create(self.plan.ruleset)
        joined = applied_or_refused(apply(created.game, Join(self.name, is_host=True), basis.now_ms))
        events = (*created.events, *joined.events)
        return _seated(basis.record, Applied(advance(None, events), events), self, chance)

    def encode(self, decision: Decision, after: Record) -> bytes:
        """See Command."""
        return self.encode_seat(committed_view(after, decision.viewer), decision.new_seat)

    def complete(self, answer: bytes, salt: bytes) -> bytes:
        """See Command."""
        return self.add_token(answer, seat_token(salt, self.request.request_id))


@dataclass(frozen=True, slots=True)
class GameCommand(Command):
    """A command on an existing game.

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
class JoinGame(GameCommand):
    """Seats a player; seat 0 stands for the lowest free one. `complete` adds the seat token to the stored answer.

    Attributes:
        join_code: The code with which the caller found the game; empty if by its id.
    """

    name: str
    player_ref: str
    join_code: str
    seat: int
    chance: Chance
    encode_seat: SeatEncoder
    add_token: TokenAdder

    def decide(self, basis: Basis) -> Decision:
        """See GameCommand."""
        record = basis.record
        reserved = invited_in(record, self.request.caller)
        actor = None if reserved else token_in(record, self.request.caller)
        is_host = actor == HOST
        if actor is not None and (not is_host or record.game.host_seat):
            raise AlreadySeated
        if actor is None and not reserved:
            check_code(record, self.join_code)
        check_admitted(record, self.name, self.player_ref, reserved or 0)
        may_be_host = reserved is not None or not record.game.reserved
        join = Join(
            self.name,
            seat=reserved or self.seat,
            is_host=is_host or (may_be_host and not _has_host(record)),
            takes_reserved=reserved is not None,
        )
        return _seated(record, _joined(basis, join), self, self.chance, actor)

    def encode(self, decision: Decision, after: Record) -> bytes:
        """See Command."""
        return self.encode_seat(committed_view(after, decision.viewer), decision.new_seat)

    def complete(self, answer: bytes, salt: bytes) -> bytes:
        """See Command."""
        return self.add_token(answer, seat_token(salt, self.request.request_id))


@dataclass(frozen=True, slots=True)
class AddBot(GameCommand):
    """Seats a bot on behalf of the host or a player in the lobby.

    An empty name stands for an unused one, seat 0 for the lowest free one. The bot's token digest is random, so no
    token matches it and only the service acts for the bot.
    """

    level: BotLevel
    name: str
    seat: int
    chance: Chance
    encode_seat: SeatEncoder

    def decide(self, basis: Basis) -> Decision:
        """See GameCommand."""
        record = basis.record
        seat = member_in(record, self.request.caller)
        join = Join(self.name or _unused_name(record.game), self.level, self.seat)
        applied = _joined(basis, join)
        bot = _new_seat(record.game, applied.game)
        token = SeatToken(bot, self.chance.token_bytes(DIGEST_BYTES))
        return Decision(applied, (*record.tokens, token), viewer=seat, actor=seat, new_seat=bot)

    def encode(self, decision: Decision, after: Record) -> bytes:
        """See Command."""
        return self.encode_seat(committed_view(after, decision.viewer), decision.new_seat)


@dataclass(frozen=True, slots=True)
class LeaveGame(GameCommand):
    """Frees the caller's seat in the lobby, also a reserved one, and revokes its token.

    The answer holds a spectator's view.
    """

    encode_game: GameEncoder

    def decide(self, basis: Basis) -> Decision:
        """See GameCommand."""
        record, caller = basis.record, self.request.caller
        seat = invited_in(record, caller) or player_seat_in(record, caller)
        applied = applied_or_refused(apply(record.game, Leave(seat), basis.now_ms))
        return Decision(applied, valid_tokens(record, applied), actor=seat)

    def encode(self, decision: Decision, after: Record) -> bytes:
        """See Command."""
        return self.encode_game(committed_view(after, decision.viewer))


@dataclass(frozen=True, slots=True)
class SeatCommand(GameCommand):
    """An action of a seated player, or of the host, on the game at its current revision."""

    encode_game: GameEncoder

    def actor(self, record: Record) -> int:
        """Returns the seat that acts. Raises NotAPlayer, GameNotFound."""
        return player_seat_in(record, self.request.caller)

    @abstractmethod
    def action(self, seat: int, game: Game) -> Action:
        """Returns the action of the seat."""

    def decide(self, basis: Basis) -> Decision:
        """See GameCommand."""
        record = basis.record
        seat = self.actor(record)
        applied = applied_or_refused(apply(record.game, self.action(seat, record.game), basis.now_ms))
        return Decision(applied, valid_tokens(record, applied), viewer=seat, actor=seat)

    def encode(self, decision: Decision, after: Record) -> bytes:
        """See Command."""
        return self.encode_game(committed_view(after, decision.viewer))


@dataclass(frozen=True, slots=True)
class DealingCommand(SeatCommand):
    """A seated player's action that deals tiles."""

    chance: Chance

    def shuffle(self, game: Game) -> Shuffle:
        """Returns a new random order of the tiles."""
        return _new_shuffle(self.chance, game)


@dataclass(frozen=True, slots=True)
class StartFirstRound(DealingCommand):
    """Starts the game."""

    def actor(self, record: Record) -> int:
        """See SeatCommand. The host may have no seat."""
        return member_in(record, self.request.caller)

    def action(self, seat: int, game: Game) -> Action:
        """See SeatCommand."""
        return StartGame(seat, self.shuffle(game))


@dataclass(frozen=True, slots=True)
class StartAnotherRound(DealingCommand):
    """Starts the next round."""

    def action(self, seat: int, game: Game) -> Action:
        """See SeatCommand."""
        return StartNextRound(seat, self.shuffle(game))


@dataclass(frozen=True, slots=True)
class Redeal(DealingCommand):
    """Deals the round again."""

    def action(self, seat: int, game: Game) -> Action:
        """See SeatCommand."""
        return RequestRedeal(seat, self.shuffle(game))


@dataclass(frozen=True, slots=True)
class ResignGame(SeatCommand):
    """Gives up the game."""

    def action(self, seat: int, _game: Game) -> Action:
        """See SeatCommand."""
        return Resign(seat)


@dataclass(frozen=True, slots=True)
class Return(SeatCommand):
    """Ends the absence of a player."""

    def action(self, seat: int, _game: Game) -> Action:
        """See SeatCommand."""
        return ReturnToSeat(seat)


@dataclass(frozen=True, slots=True)
class VoteOnPlay(SeatCommand):
    """Votes on a play that is shown."""

    vote: Vote

    def action(self, seat: int, _game: Game) -> Action:
        """See SeatCommand."""
        return _of_caller(ClaimError(seat, self.vote.play_revision, self.vote.agrees), self.request.caller)


@dataclass(frozen=True, slots=True)
class PlayTurn(GameCommand):
    """Takes a turn at the revision that its player saw."""

    turn: TurnRequest
    encode_turn: TurnEncoder

    def decide(self, basis: Basis) -> Decision:
        """See GameCommand."""
        record = basis.record
        seat = player_seat_in(record, self.request.caller)
        check_state(self.turn, basis)
        analysis = _RackOnlyAnalysis(see(record.game, seat).rack) if self.turn.validate_only else EXACT
        action = _of_caller(self.turn.action(seat), self.request.caller)
        applied = applied_or_refused(apply(record.game, action, basis.now_ms, analysis))
        return Decision(applied, record.tokens, viewer=seat, actor=seat)

    def encode(self, decision: Decision, after: Record) -> bytes:
        """See Command."""
        return self.encode_turn(turn_result(committed_view(after, decision.viewer), decision.applied))


def new_token(chance: Chance, request: RequestIdentity, seat: int) -> tuple[bytes, SeatToken]:
    """Returns a new salt, and the digest of the token that it yields with the request's id."""
    salt = chance.token_bytes(SALT_BYTES)
    return salt, SeatToken(seat, digest(seat_token(salt, request.request_id)))


def valid_tokens(record: Record, applied: Applied) -> tuple[SeatToken, ...]:
    """Returns the tokens of a game that a change has not made void."""
    revoked = revoked_by(applied.events)
    return tuple([token for token in record.tokens if token.seat not in revoked]) if revoked else record.tokens


def decide_due(basis: Basis, draft: Draft | None, chance: Chance) -> Decision:
    """Returns the change of a game that is due (timers.is_due): a time-out, or the start of a round.

    Args:
        basis: The game.
        draft: The game's last draft, which may be of an earlier turn.
        chance: The source of randomness.
    """
    game = basis.record.game
    action = _time_out(game, draft) if isinstance(game.phase, Playing) else StartDueRound(_new_shuffle(chance, game))
    return Decision(applied_or_refused(apply(game, action, basis.now_ms)), basis.record.tokens)


def _time_out(game: Game, draft: Draft | None) -> TimeOut:
    is_of_turn = draft is not None and draft.turn_revision == round_of(game).turn.revision
    return TimeOut(draft.table if draft and is_of_turn else None)


def _new_shuffle(chance: Chance, game: Game) -> Shuffle:
    """Returns a new random order of the tiles for a game's next deal."""
    return new_shuffle(chance, game.ruleset, len(game.active_seats))


def _of_caller(action: TurnAction | ClaimError, caller: Caller) -> Action:
    """Returns an action of the seat's owner, or of the bot that stands in."""
    return StandIn(action) if caller.stands_in else action


def applied_or_refused(outcome: Applied | Refused) -> Applied:
    """Returns the engine's result. Raises ActionRefused."""
    if isinstance(outcome, Refused):
        raise ActionRefused(outcome)
    return outcome


class StateRequest(Protocol):
    """A request that is meant for the game that its player saw."""

    @property
    def revision(self) -> int:
        """The revision of that game."""

    @property
    def etag(self) -> str:
        """Its etag."""


def check_state(request: StateRequest, basis: Basis) -> None:
    """Raises StaleState or TurnTimedOut if a request was meant for another revision or history."""
    record = basis.record
    if basis.overdue_revision is not None and request.revision == basis.overdue_revision:
        raise TurnTimedOut(record.game.revision)
    if (request.revision, request.etag) != (record.game.revision, record.etag):
        raise StaleState(record.game.revision)


@dataclass(frozen=True, slots=True)
class _RackOnlyAnalysis:
    """Analysis for validate_only turns. It searches only the player's own rack, so its timing leaks nothing.

    No refusal needs more. Other racks and the pool affect only what follows a turn, which is not reported.

    Attributes:
        rack: The player's tiles.
    """

    rack: tuple[Tile, ...]

    def can_play(self, situation: Situation) -> Existence:
        """See Analysis. Returns UNKNOWN for any other rack."""
        return EXACT.can_play(situation) if situation.rack == self.rack else Existence.UNKNOWN


def check_code(record: Record, join_code: str) -> None:
    """Raises JoinCodeUnknown for a code that a game no longer has, JoinCodeRequired if it does not admit by its id."""
    if join_code and join_code != record.listing.join_code:
        raise JoinCodeUnknown
    if record.kicked and not join_code and record.listing.visibility is Visibility.UNLISTED:
        raise JoinCodeRequired


def check_admitted(record: Record, name: str, ref: str, reserved: int = 0) -> None:
    """Raises WasKicked, PlayerRefTaken for a person whom a lobby does not admit; `reserved` is the person's seat."""
    if any((ref and ref == one.player_ref) or are_alike(name, one.name) for one in record.kicked):
        raise WasKicked
    if ref and record.operator_data.has(ref, besides=reserved):
        raise PlayerRefTaken


def _has_host(record: Record) -> bool:
    """Returns whether a game has a host. It has none after a host without a host token has left last."""
    return record.game.host_seat is not None or any(token.seat == HOST for token in record.tokens)


def _joined(basis: Basis, join: Join) -> Applied:
    """Returns the engine's result of joining. Raises ActionRefused, also for a name that is like another player's."""
    game = basis.record.game
    applied = applied_or_refused(apply(game, join, basis.now_ms))
    others = [player.name for player in game.players]
    others += [one.name for one in game.reserved if one.seat != join.seat or not join.takes_reserved]
    if any(are_alike(join.name, other) for other in others):
        raise ActionRefused(refused(Reason.PLAYER_ALREADY_JOINED))
    return applied


def _seated(
    before: Record, applied: Applied, command: JoinGame | JoinOrCreateGame, chance: Chance, actor: int | None = None
) -> Decision:
    """Returns the decision that seats a person, with a new token."""
    seat = _new_seat(before.game, applied.game)
    salt, token = new_token(chance, command.request, seat)
    return Decision(
        applied,
        (*before.tokens, token),
        viewer=seat,
        actor=actor,
        new_seat=seat,
        salt=salt,
        player_ref=command.player_ref or before.operator_data.ref_of(seat),
    )


def _new_seat(before: Game, after: Game) -> int:
    """Returns the seat of the player who has joined."""
    taken = {player.seat for player in before.players}
    return next(player.seat for player in after.players if player.seat not in taken)


def _unused_name(game: Game) -> str:
    """Returns a name for a bot."""
    names = (f"Bot {number}" for number in itertools.count(1))
    return next(name for name in names if not any(are_alike(name, player.name) for player in game.players))
