"""Queries about records of games and about single turns, which workers answer."""

from dataclasses import dataclass
from typing import Final

from engine.analysis import Situation
from engine.game import Choosing, Drawn, Game, Lobby, Phase, Playing
from engine.melds import Meld
from engine.record import GameRecord, MoveKind, Played, RecordError, replayed
from engine.record_text import format_record
from engine.ruleset import Ruleset, TurnPlayAfterDraw
from engine.scoring import rack_value
from engine.solver import Budget, Objective
from engine.solver.explanation import explain
from engine.solver.steps import Step
from engine.tiles import Tile, without
from engine.violations import Violation
from service.analysis.queries import BestTurnQuery, Suggestion

REVIEWED: Final = frozenset(
    {MoveKind.PLAY, MoveKind.DRAW, MoveKind.PASS_TURN, MoveKind.PENALTY, MoveKind.TIME_OUT},
)
"""The moves in which a player could have played."""


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
class MoveToReview:
    """A move in which a player could have played, and the player's position before it.

    Attributes:
        move: Its index in the record.
        revision: Its revision.
        round: Its round.
        seat: The player.
        kind: What the player did.
        played: The tiles, and their value, that left the rack.
        situation: The position before the move.
        kept: Further tiles of the rack, which the player could not play.
    """

    move: int
    revision: int
    round: int
    seat: int
    kind: MoveKind
    played: tuple[int, int]
    situation: Situation
    kept: tuple[Tile, ...]

    def query(self, objective: Objective) -> BestTurnQuery:
        """Returns the query for the best turn."""
        return BestTurnQuery(self.situation, objective, self.kept)

    def gained(self, objective: Objective) -> int:
        """Returns what the player's play gained."""
        tiles, value = self.played
        return tiles if objective is Objective.MOST_TILES else value

    def missed(self, best: Suggestion, objective: Objective) -> int:
        """Returns what a best turn would have gained beyond that."""
        if best.played is None:
            return 0
        turn, river = best.played.turn, self.situation.river
        pulled = () if turn.river_index is None else river[turn.river_index + 1 :]
        left = (*without(self.situation.rack, turn.tiles), *pulled)
        tiles, value = _difference(self.situation.rack, left, self.situation.ruleset)
        return max(0, (tiles if objective is Objective.MOST_TILES else value) - self.gained(objective))


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
        """Returns what became of the record."""
        played, fault, is_complete = 0, None, False
        game: Game | None = None
        to_review: list[MoveToReview] = []
        try:
            for step in replayed(self.record):
                game = step.after
                if self.is_review:
                    to_review += _to_review(played, step)
                played += 1
                if budget.is_over and budget.is_over():
                    break
            else:
                is_complete = True
        except RecordError as error:
            fault, is_complete = self._fault(error), True
        return CheckedRecord(
            fault=fault,
            moves_played=played,
            is_complete=is_complete or played == len(self.record.moves),
            phase=type(game.phase) if game else Lobby,
            totals=tuple((player.seat, player.total_points) for player in game.players) if game else (),
            to_review=tuple(to_review),
            text=format_record(self.record) if self.is_text else "",
        )

    def _fault(self, error: RecordError) -> Fault:
        if error.move is None:
            return Fault(str(error), None, 0, 0, error.violations)
        moves = self.record.moves[: error.move + 1]
        number = sum(move.kind is MoveKind.DEAL for move in moves)
        return Fault(str(error), error.move, moves[-1].revision, number, error.violations)


def _to_review(index: int, step: Played) -> tuple[MoveToReview, ...]:
    """Returns a move to review, or nothing if its player could not play."""
    move, phase = step.move, step.before.phase
    if move.kind not in REVIEWED or not isinstance(phase, Playing) or isinstance(phase.round.step, Choosing):
        return ()
    round_, ruleset = phase.round, step.before.ruleset
    rack = round_.rack(move.seat)
    others_only = ruleset.turn_play_after_draw is TurnPlayAfterDraw.OTHER_TILES
    kept = (round_.step.tile,) if isinstance(round_.step, Drawn) and others_only else ()
    situation = Situation(round_.table, without(rack.tiles, kept), rack.has_melded, ruleset, round_.river)
    after = step.after.round.rack(move.seat).tiles if step.after.round else ()
    played = (0, 0) if move.table is None else _difference(rack.tiles, after, ruleset)
    return (MoveToReview(index, move.revision, round_.number, move.seat, move.kind, played, situation, kept),)


def _difference(before: tuple[Tile, ...], after: tuple[Tile, ...], ruleset: Ruleset) -> tuple[int, int]:
    """Returns how many tiles fewer a rack has, and how much less they are worth."""
    return len(before) - len(after), rack_value(before, ruleset) - rack_value(after, ruleset)
