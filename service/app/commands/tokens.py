"""Tokens of seats: an owner's new one, and one for who has lost it. The answers have the new token."""

from dataclasses import dataclass

from engine.actions import RenewSeatToken
from engine.turns import apply
from service.app.commands.command import Basis, Decision, GameCommand, applied_or_refused, valid_tokens
from service.app.identity import member_in, token_in


@dataclass(frozen=True, slots=True)
class RenewToken(GameCommand):
    """Replaces the caller's token.

    A repeated request finds its memo by the old token, before anything asks whether that token is valid.
    """

    def decide(self, basis: Basis) -> Decision:
        seat = member_in(basis.record, self.request.caller)
        return self.with_new_token(_replaced(basis, RenewSeatToken(seat), viewer=seat, actor=seat), seat, basis.chance)


@dataclass(frozen=True, slots=True)
class ReissueToken(GameCommand):
    """Replaces the token of a player who has lost it, for a caller with that right."""

    seat: int

    def decide(self, basis: Basis) -> Decision:
        is_seated = any(player.seat == self.seat for player in basis.record.game.players)
        decision = _replaced(
            basis,
            RenewSeatToken(self.seat, is_reissued=True),
            viewer=self.seat if is_seated else None,
            actor=token_in(basis.record, self.request.caller),
        )
        return self.with_new_token(decision, self.seat, basis.chance)


def _replaced(basis: Basis, action: RenewSeatToken, *, viewer: int | None, actor: int | None) -> Decision:
    applied = applied_or_refused(apply(basis.record.game, action, basis.now_ms))
    return Decision(applied, valid_tokens(basis.record, applied), viewer, actor)
