"""Commands of the lobby and around a game's end: kick, ready, abort, a new token, a rematch (see commands.py)."""

from dataclasses import dataclass, replace

from engine.actions import AbortGame, Action, AnnounceRematch, KickPlayer, RenewSeatToken, SetReady
from engine.game import Aborted, Finished, Game
from engine.turns import apply
from service.app.commands import (
    Basis,
    Decision,
    GameCommand,
    GameEncoder,
    RequestIdentity,
    SeatCommand,
    TokenAdder,
    applied_or_refused,
    new_token,
    valid_tokens,
)
from service.app.identity import Chance, member_in, seat_token, token_in
from service.app.views import committed_view
from service.model.record import Record


class RematchMissing(Exception):  # noqa: N818 - a signal between two methods
    """A rematch that may be announced must be created first. `record` is the game that is over."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self.record = record


class RematchExists(Exception):  # noqa: N818 - as above
    """The rematch has been announced."""


@dataclass(frozen=True, slots=True)
class MemberCommand(SeatCommand):
    """An action of a seated player, or of the host with the host token."""

    def actor(self, record: Record) -> int:
        """See SeatCommand."""
        return member_in(record, self.request.caller)


@dataclass(frozen=True, slots=True)
class KickFromLobby(MemberCommand):
    """Removes a player from the lobby and revokes the token."""

    kicked: int

    def action(self, seat: int, _game: Game) -> Action:
        """See SeatCommand."""
        return KickPlayer(seat, self.kicked)


@dataclass(frozen=True, slots=True)
class SetReadiness(SeatCommand):
    """Stores whether a player is ready to start."""

    is_ready: bool

    def action(self, seat: int, _game: Game) -> Action:
        """See SeatCommand."""
        return SetReady(seat, self.is_ready)


@dataclass(frozen=True, slots=True)
class AbortTheGame(MemberCommand):
    """Aborts a game, or votes for that."""

    def action(self, seat: int, _game: Game) -> Action:
        """See SeatCommand."""
        return AbortGame(seat)


@dataclass(frozen=True, slots=True)
class RenewToken(MemberCommand):
    """Replaces the caller's token. `complete` adds the new one to the stored answer.

    A repeated request finds its memo by the old token, before anything asks whether that token is valid.
    """

    chance: Chance
    add_token: TokenAdder

    def action(self, seat: int, _game: Game) -> Action:
        """See SeatCommand."""
        return RenewSeatToken(seat)

    def decide(self, basis: Basis) -> Decision:
        """See GameCommand."""
        seat = self.actor(basis.record)
        return with_token(SeatCommand.decide(self, basis), self.chance, self.request, seat)

    def complete(self, answer: bytes, salt: bytes) -> bytes:
        """See Command."""
        return self.add_token(answer, seat_token(salt, self.request.request_id))


@dataclass(frozen=True, slots=True)
class ReissueToken(GameCommand):
    """Replaces the token of a player who has lost it, for a caller with that right. `complete` adds the new one."""

    encode_game: GameEncoder
    seat: int
    chance: Chance
    add_token: TokenAdder

    def decide(self, basis: Basis) -> Decision:
        """See GameCommand."""
        record = basis.record
        actor = token_in(record, self.request.caller)
        reissue = RenewSeatToken(self.seat, is_reissued=True)
        applied = applied_or_refused(apply(record.game, reissue, basis.now_ms))
        is_seated = any(player.seat == self.seat for player in applied.game.players)
        viewer = self.seat if is_seated else None
        decision = Decision(applied, valid_tokens(record, applied), viewer=viewer, actor=actor)
        return with_token(decision, self.chance, self.request, self.seat)

    def encode(self, decision: Decision, after: Record) -> bytes:
        """See Command."""
        return self.encode_game(committed_view(after, decision.viewer))

    def complete(self, answer: bytes, salt: bytes) -> bytes:
        """See Command."""
        return self.add_token(answer, seat_token(salt, self.request.request_id))


def with_token(decision: Decision, chance: Chance, request: RequestIdentity, seat: int) -> Decision:
    """Returns a decision with a new token of a seat."""
    salt, token = new_token(chance, request, seat)
    return replace(decision, tokens=(*decision.tokens, token), salt=salt)


@dataclass(frozen=True, slots=True)
class OpenRematch(MemberCommand):
    """Announces the rematch of a game that is over.

    Attributes:
        new_game_id: The id of the rematch.
        is_created: Whether the rematch is stored. Otherwise `decide` refuses or raises RematchMissing.
    """

    new_game_id: str
    is_created: bool = False

    def decide(self, basis: Basis) -> Decision:
        """See GameCommand. Raises RematchMissing or RematchExists if there is nothing to refuse or to decide."""
        self.actor(basis.record)
        game = basis.record.game
        is_possible = isinstance(game.phase, Finished | Aborted)
        if is_possible and not self.is_created:
            raise RematchMissing(basis.record)
        if game.rematch_game_id:
            raise RematchExists
        return SeatCommand.decide(self, basis)

    def action(self, _seat: int, _game: Game) -> Action:
        """See SeatCommand."""
        return AnnounceRematch(self.new_game_id)
