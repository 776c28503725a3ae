"""Turns: PlayTurn, votes on a play that is shown, and what happens when a game is due."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engine.actions import StartDueRound, TimeOut
from engine.game import Game, Playing, round_of
from engine.melding.actions import ClaimError
from engine.melding.analysis import AnySituation, Existence
from engine.melding.solver import EXACT
from engine.sight import see
from engine.tiles import Tile
from engine.turns import apply
from engine.unions import Draft, TurnAction
from service.app.commands.command import (
    Basis,
    Decision,
    GameCommand,
    RequestIdentity,
    SeatAction,
    applied_or_refused,
    of_caller,
)
from service.app.identity import player_seat_in
from service.errors import StaleState, TurnTimedOut


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn to take: revision and etag that its player saw, and a function from the caller's seat to the action."""

    game_id: str
    revision: int
    etag: str
    validate_only: bool
    action: Callable[[int], TurnAction]


@dataclass(frozen=True, slots=True)
class PlayTurn(GameCommand):
    """Takes a turn at the revision that its player saw."""

    turn: TurnRequest

    def decide(self, basis: Basis) -> Decision:
        record = basis.record
        seat = player_seat_in(record, self.request.caller)
        check_state(self.turn, basis)
        analysis = _RackOnlyAnalysis(see(record.game, seat).rack) if self.turn.validate_only else EXACT
        action = of_caller(self.turn.action(seat), self.request.caller)
        applied = applied_or_refused(apply(record.game, action, basis.now_ms, analysis))
        return Decision(applied, record.tokens, viewer=seat, actor=seat)


def claim_error(request: RequestIdentity, game_id: str, play_revision: int, *, agrees: bool) -> SeatAction:
    """Returns the vote on whether the play that was shown at a revision is illegal."""
    return SeatAction(
        request, game_id, lambda seat, _: of_caller(ClaimError(seat, play_revision, agrees), request.caller)
    )


def decide_due(basis: Basis, draft: Draft | None) -> Decision:
    """Returns the change of a game that is due (timers.is_due): a time-out, or the start of a round.

    Args:
        basis: The game.
        draft: The game's last draft, which may be of an earlier turn.
    """
    game = basis.record.game
    action = _time_out(game, draft) if isinstance(game.phase, Playing) else StartDueRound(basis.deal())
    return Decision(applied_or_refused(apply(game, action, basis.now_ms)), basis.record.tokens)


def _time_out(game: Game, draft: Draft | None) -> TimeOut:
    is_of_turn = draft is not None and draft.turn_revision == round_of(game).turn.revision
    return TimeOut(draft.table if draft and is_of_turn else None)


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

    def can_play(self, situation: AnySituation) -> Existence:
        """See Analysis. Returns UNKNOWN for any other rack."""
        return EXACT.can_play(situation) if situation.rack == self.rack else Existence.UNKNOWN
