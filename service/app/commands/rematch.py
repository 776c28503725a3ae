"""The announcement of a rematch in the game that is over."""

from dataclasses import dataclass

from engine.actions import AnnounceRematch
from engine.game import Aborted, Finished
from engine.turns import apply
from service.app.commands.command import Basis, Decision, GameCommand, applied_or_refused
from service.app.identity import member_in
from service.model.record import Record


class RematchMissing(Exception):  # noqa: N818 - a signal between two methods
    """A rematch that may be announced must be created first. `record` is the game that is over."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self.record = record


class RematchExists(Exception):  # noqa: N818 - as above
    """The rematch has been announced."""


@dataclass(frozen=True, slots=True)
class OpenRematch(GameCommand):
    """Announces the rematch of a game that is over.

    Attributes:
        new_game_id: The id of the rematch.
        is_created: Whether the rematch is stored. Otherwise `decide` refuses or raises RematchMissing.
    """

    new_game_id: str
    is_created: bool = False

    def decide(self, basis: Basis) -> Decision:
        """See GameCommand. Raises RematchMissing or RematchExists if there is nothing to refuse or to decide."""
        record = basis.record
        seat = member_in(record, self.request.caller)
        is_possible = isinstance(record.game.phase, Finished | Aborted)
        if is_possible and not self.is_created:
            raise RematchMissing(record)
        if record.game.rematch_game_id:
            raise RematchExists
        applied = applied_or_refused(apply(record.game, AnnounceRematch(self.new_game_id), basis.now_ms))
        return Decision(applied, record.tokens, viewer=seat, actor=seat)
