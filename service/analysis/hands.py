"""The query for a hint in a game of discards, which a worker answers: what a hand lacks, or what an opening lacks."""

from dataclasses import dataclass

from engine.discard.actions import TurnAction
from engine.discard.best_melds import Missing, missing_to_open
from engine.discard.bots import choose_action
from engine.discard.game import rules_of, seen_round
from engine.discard.hands import Standing, standing
from engine.effort import Budget
from engine.seats import BotLevel
from engine.views import GameView
from engine.violations import Reason, refused
from service.analysis.queries import HintTier, check_hint
from service.errors import ActionRefused


@dataclass(frozen=True, slots=True)
class HandHint:
    """A hint for a seat.

    Attributes:
        lacks: What its hand lacks, or what it lacks to open; None if it has opened.
        action: The action that a bot of level MASTER would take; None on another's turn.
    """

    lacks: Standing | Missing | None
    action: TurnAction | None


@dataclass(frozen=True, slots=True)
class HandQuery:
    """Asks for a hint for the seat of a view."""

    view: GameView
    tier: HintTier

    def answer(self, budget: Budget) -> HandHint:
        """Returns the hint. If the time of the budget ends, the discard is the best one compared so far."""
        view = self.view
        lacks = _lacks(view)
        has_turn = view.turn is not None and view.turn.seat == view.seat
        asks = self.tier is HintTier.TURN
        return HandHint(lacks, choose_action(view, BotLevel.MASTER, budget) if asks and has_turn else None)


def own_hand_query(view: GameView, tier: HintTier) -> HandQuery:
    """Returns the query for a view's seat.

    Raises HintNotAllowed, and ActionRefused if no round is running or the player resigned.
    """
    if seen_round(view) is None:
        raise ActionRefused(refused(Reason.GAME_NOT_STARTED))
    check_hint(view, tier)
    return HandQuery(view, tier)


def _lacks(view: GameView) -> Standing | Missing | None:
    round_, ruleset = seen_round(view), rules_of(view)
    assert round_ is not None, "own_hand_query has checked it"  # noqa: S101 - for the type
    if round_.table is None:
        return standing(view.rack, round_.okey, one_high=ruleset.run_one_high)
    if view.seat is None or round_.table.opening(view.seat):
        return None
    return missing_to_open(view.rack, round_.okey, round_.table, ruleset)
