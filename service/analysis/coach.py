"""The query of a coach, which a worker answers: the best turn, and whether a player's turn is as good."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from engine.effort import Budget
from engine.melding.analysis import Existence, GridSituation
from engine.melding.grid.cells import Grid
from engine.melding.grid.play import GridPlay
from engine.melding.grid.rules import GridJudgement, judge_grid
from engine.melding.play import Play
from engine.melding.review import gain, gain_of
from engine.melding.rules import Judgement, judge
from engine.melding.table import ProposedMelds
from engine.violations import Violation
from service.analysis.queries import BestTurnQuery, Suggestion

SUBJECT: Final = "turn.table"
"""The name of a player's table in violations."""


@dataclass(frozen=True, slots=True)
class TurnToJudge:
    """A player's turn: the table after it, and the place in the River of the tile that it pulls."""

    table: ProposedMelds | Grid
    river_index: int | None


class Verdict(Enum):
    """Whether a turn is a best one."""

    ILLEGAL = auto()
    BEST = auto()
    NOT_BEST = auto()
    UNKNOWN = auto()
    """The time ended before it was proven."""


@dataclass(frozen=True, slots=True)
class Coached:
    """The answer of a coach.

    Attributes:
        best: The best turn found.
        verdict: Whether the player's turn is as good; None without one.
        violations: Those of the player's turn.
        missed: What the best turn found gains beyond the player's.
    """

    best: Suggestion
    verdict: Verdict | None = None
    violations: tuple[Violation, ...] = ()
    missed: int = 0


@dataclass(frozen=True, slots=True)
class CoachQuery:
    """Asks for the best turn, and for the verdict on a player's turn, if there is one."""

    search: BestTurnQuery
    turn: TurnToJudge | None

    def answer(self, budget: Budget) -> Coached:
        """Returns the answer. The rules judge the turn with a budget of their own."""
        best = self.search.answer(budget)
        if self.turn is None:
            return Coached(best)
        judgement = self._judged(self.turn)
        if judgement.violations:
            return Coached(best, Verdict.ILLEGAL, judgement.violations)
        situation, objective = self.search.situation, self.search.objective
        most = gain_of(situation, best.played.turn, objective) if best.played else 0
        missed = max(0, most - gain(situation, judgement.rack_left, objective))
        if missed:
            return Coached(best, Verdict.NOT_BEST, missed=missed)
        is_proven = best.is_best or best.exists is Existence.NO
        return Coached(best, Verdict.BEST if is_proven else Verdict.UNKNOWN)

    def _judged(self, turn: TurnToJudge) -> Judgement | GridJudgement:
        at, table = self.search.situation, turn.table
        if isinstance(at, GridSituation):
            assert isinstance(table, Grid), "the codec has checked it"  # noqa: S101 - for the type
            on_grid = GridPlay(
                at.table, table, at.rack, at.has_melded, at.ruleset, calls_rummikub=True, subject=SUBJECT
            )
            return judge_grid(on_grid)
        assert not isinstance(table, Grid), "the codec has checked it"  # noqa: S101 - for the type
        return judge(
            Play(
                table_before=at.table,
                table_after=table,
                rack=at.rack,
                has_melded=at.has_melded,
                ruleset=at.ruleset,
                river=at.river,
                river_index=turn.river_index,
                calls_rummikub=True,
                subject=SUBJECT,
            )
        )
