"""Queries about records of games and about single turns, which workers answer."""

from dataclasses import dataclass, replace

from engine.effort import Budget
from engine.game import Game, Lobby, Phase
from engine.melding.melds import Meld
from engine.melding.review import MoveToReview, to_review
from engine.melding.ruleset import Ruleset
from engine.melding.solver import RULES_BUDGET, Exact
from engine.melding.solver.explanation import explain
from engine.melding.solver.steps import Step
from engine.moves import MoveKind
from engine.record import GameRecord, RecordError, replayed
from engine.record_text import format_record
from engine.tiles import Tile
from engine.violations import Violation


@dataclass(frozen=True, slots=True)
class ExplanationQuery:
    """Asks for the steps from one table to another, which has all its tiles."""

    before: tuple[Meld, ...]
    after: tuple[Meld, ...]
    ruleset: Ruleset
    pulled: tuple[Tile, ...]

    def answer(self, _budget: Budget) -> tuple[Step, ...]:
        """Returns the steps."""
        return explain(self.before, self.after, self.ruleset, self.pulled)


@dataclass(frozen=True, slots=True)
class Fault:
    """The rule that a record breaks, and the move: its index, revision and round; None, 0 and 0 without one."""

    text: str
    move: int | None
    revision: int
    round: int
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class CheckedRecord:
    """A record as far as it was played again.

    Attributes:
        fault: The rule that it breaks, if any.
        moves_played: How many of its moves were played.
        is_complete: Whether all were played, or a fault was found.
        phase: The phase of the game then.
        totals: The points by seat then.
        to_review: The moves to review.
        text: The record as text, if it was asked for.
    """

    fault: Fault | None
    moves_played: int
    is_complete: bool
    phase: type[Phase]
    totals: tuple[tuple[int, int], ...]
    to_review: tuple[MoveToReview, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """Asks to play a record again. `is_review` asks for the moves to review, `is_text` for the record as text."""

    record: GameRecord
    is_review: bool = False
    is_text: bool = False

    def answer(self, budget: Budget) -> CheckedRecord:
        """Returns what became of the record.

        The end of the budget's time also ends the searches of the rules, so whatever they found last does not count.
        """
        is_over = budget.is_over or _never
        played, fault, is_complete = 0, None, False
        game: Game | None = None
        reviewed: list[MoveToReview] = []
        try:
            for step in replayed(self.record, Exact(replace(RULES_BUDGET, is_over=is_over))):
                if is_over():
                    break
                game = step.after
                move = to_review(played, step) if self.is_review else None
                reviewed += [move] if move else []
                played += 1
            else:
                is_complete = True
        except RecordError as error:
            if not is_over():
                fault, is_complete = self._fault(error), True
        return CheckedRecord(
            fault=fault,
            moves_played=played,
            is_complete=is_complete,
            phase=type(game.phase) if game else Lobby,
            totals=tuple((player.seat, player.total_points) for player in game.players) if game else (),
            to_review=tuple(reviewed),
            text=format_record(self.record) if self.is_text else "",
        )

    def _fault(self, error: RecordError) -> Fault:
        if error.move is None:
            return Fault(str(error), None, 0, 0, error.violations)
        moves = self.record.moves[: error.move + 1]
        number = sum(move.kind is MoveKind.DEAL for move in moves)
        return Fault(str(error), error.move, moves[-1].revision, number, error.violations)


def _never() -> bool:
    return False
