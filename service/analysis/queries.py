"""Queries for exact analysis and their answers: plain values that are pickled to a worker process and back.

A query about a seat's own position is made from the seat's view only. So neither its answer nor its timing can depend
on hidden tiles.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final, Protocol, TypeVar

from engine.effort import Budget
from engine.game import Aborted, Finished, RoundOver
from engine.melding.actions import PlayTiles, TurnAction
from engine.melding.analysis import AnySituation, GridSituation, Situation, situation_of
from engine.melding.bots import turn_without_play
from engine.melding.game import must_draw_first, rules_of, seen_round
from engine.melding.grid.cells import without_faces
from engine.melding.grid.play import GridPlay
from engine.melding.grid.rules import GridJudgement, judge_grid
from engine.melding.play import Play
from engine.melding.puzzles import Checked, Puzzle, check
from engine.melding.round import Choosing, Drawn
from engine.melding.rules import Judgement, judge
from engine.melding.ruleset import Ruleset, TurnPlayAfterDraw
from engine.melding.scoring import rack_value
from engine.melding.solver import (
    RULES_BUDGET,
    Arrangement,
    Existence,
    LegalTurn,
    Objective,
    arrange,
    best_turn,
    has_turn,
)
from engine.melding.solver.explanation import explain
from engine.melding.solver.grid_search import GridTurn
from engine.melding.solver.steps import Step
from engine.melding.table import ProposedTable, as_proposed_melds
from engine.melding.views import MeldingView
from engine.room_settings import Hints
from engine.tiles import Tile, in_order, without
from engine.views import GameView
from engine.violations import Reason, refused
from service.errors import ActionRefused, HintNotAllowed

_A_co = TypeVar("_A_co", covariant=True)


class HintTier(IntEnum):
    """How much of a best turn a hint shows; each tier shows more than the one before."""

    PLAY_EXISTS = 1
    TILES = 2
    TURN = 3


HIGHEST_TIERS: Final = {
    Hints.OFF: 0,
    Hints.PLAY_EXISTS: HintTier.PLAY_EXISTS,
    Hints.TILES: HintTier.TILES,
    Hints.TURN: HintTier.TURN,
}
"""The highest tier that a seat may request, by the game's option without AGAINST_BOTS."""


class Query(Protocol[_A_co]):
    """A query that a worker answers."""

    def answer(self, budget: Budget) -> _A_co:
        """Returns the answer, or as much of it as the budget allows."""


@dataclass(frozen=True, slots=True)
class JudgePlay:
    """Asks for the judgement of a play whose rules take long."""

    play: Play

    def answer(self, _budget: Budget) -> Judgement:
        """Returns the judgement. The rules have a budget of their own."""
        return judge(self.play)


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """Asks for the judgement of an answer to a puzzle, the table after the turn."""

    puzzle: Puzzle
    table: ProposedTable

    def answer(self, _budget: Budget) -> Checked:
        """Returns the judgement. The rules have a budget of their own."""
        return check(self.puzzle, self.table)


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """A legal turn with its evaluation by the rules.

    Attributes:
        turn: The turn.
        table: The table after it, as it is proposed.
        points: The points of its tiles; a joker counts the tile it stands for (R20).
        value: The rack value of its tiles (R61).
        goes_out: Whether it empties the rack (R57).
        steps: How to play it; none on a grid, where the table says it all.
    """

    turn: LegalTurn | GridTurn
    table: ProposedTable
    points: int
    value: int
    goes_out: bool
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The best turn found, as far as it was requested.

    Attributes:
        exists: Whether any turn exists.
        played: The turn, unless none was found or only its existence was requested.
        is_best: Whether no turn is better by the objective.
        is_least_change: Whether also no equally good turn leaves more melds of the table untouched.
    """

    exists: Existence
    played: PlayedTurn | None = None
    is_best: bool = False
    is_least_change: bool = False


@dataclass(frozen=True, slots=True)
class BestTurnQuery:
    """Asks for the best turn.

    Attributes:
        situation: The position.
        objective: The measure of turns.
        kept: Further tiles of the rack, which may not be played.
    """

    situation: AnySituation
    objective: Objective
    kept: tuple[Tile, ...] = ()

    def answer(self, budget: Budget) -> Suggestion:
        """Returns the best turn. Raises RuntimeError if the rules forbid the solver's turn."""
        found = best_turn(self.situation, self.objective, budget)
        if found.turn is None and found.is_proven:
            return Suggestion(Existence.NO)
        played = _judged(self.situation, found.turn, self.kept)
        if played is None:
            return Suggestion(turn_exists(self.situation, budget))
        return Suggestion(Existence.YES, played, found.is_proven, found.is_least_change)


@dataclass(frozen=True, slots=True)
class TurnExistsQuery:
    """Asks whether any turn exists."""

    situation: AnySituation

    def answer(self, budget: Budget) -> Suggestion:
        """Returns a suggestion without a turn."""
        return Suggestion(turn_exists(self.situation, budget))


def turn_exists(situation: AnySituation, budget: Budget) -> Existence:
    """Returns whether any turn exists.

    The search takes the fixed steps of the rules at least, whatever its time. So every tier knows what the rules know,
    however busy the machine is.
    """
    known = has_turn(situation, RULES_BUDGET)
    return has_turn(situation, budget) if known is Existence.UNKNOWN else known


@dataclass(frozen=True, slots=True)
class ArrangementQuery:
    """Asks whether and how tiles can all be arranged into melds."""

    tiles: tuple[Tile, ...]
    ruleset: Ruleset

    def answer(self, budget: Budget) -> Arrangement:
        """Returns the arrangement."""
        return arrange(self.tiles, self.ruleset, budget)


@dataclass(frozen=True, slots=True)
class Job:
    """A query, and the most seconds to search."""

    query: Query[Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class Failed:
    """A search raised an exception: its traceback for the log."""

    trace: str


def turn_query(
    situation: AnySituation, tier: HintTier, objective: Objective, kept: tuple[Tile, ...] = ()
) -> BestTurnQuery | TurnExistsQuery:
    """Returns the query for a tier; whether a turn exists is often known long before the best one."""
    return TurnExistsQuery(situation) if tier is HintTier.PLAY_EXISTS else BestTurnQuery(situation, objective, kept)


def own_turn_query(view: GameView, tier: HintTier, objective: Objective) -> BestTurnQuery | TurnExistsQuery | None:
    """Returns the query for a view's seat, on its turn or as if it were.

    None while the seat can play nothing: it must lay a tile on the River or draw first, or has played. Raises
    HintNotAllowed, and ActionRefused if no round is running or the player resigned.
    """
    round_ = seen_round(view)
    if round_ is None:
        raise ActionRefused(refused(Reason.GAME_NOT_STARTED))
    check_hint(view, tier)
    turn = _own_turn(view)
    if turn and (turn.step is Choosing or must_draw_first(rules_of(view), turn.step, view.pool_count)):
        return None
    kept = _unplayable_tiles(turn, rules_of(view))
    player = next(player for player in view.players if player.seat == view.seat)
    situation = situation_of(round_.table, without(view.rack, kept), player.has_melded, rules_of(view), round_.river)
    return turn_query(situation, tier, objective, kept)


def turn_action(view: GameView, suggestion: Suggestion) -> TurnAction | None:
    """Returns the action that takes a suggested turn, or plays nothing if none was found; None on another's turn."""
    turn, played = _own_turn(view), suggestion.played
    if turn is None or view.seat is None:
        return None
    if played is None:
        return turn_without_play(view.seat, turn, view)
    return PlayTiles(view.seat, played.table, played.turn.river_index, calls_rummikub=played.goes_out)


def check_hint(view: GameView, tier: HintTier) -> None:
    """Raises ActionRefused if the seat of a view can play nothing, HintNotAllowed if it may not ask a tier (hints)."""
    reason = _refusal(view)
    if reason:
        raise ActionRefused(refused(reason))
    option = view.settings.hints
    allowed = option
    if option is Hints.AGAINST_BOTS:
        others = [player for player in view.players if player.seat != view.seat]
        are_bots = all(player.bot and not player.is_absent for player in others)
        allowed = Hints.TURN if are_bots else Hints.OFF
    if tier > HIGHEST_TIERS[allowed]:
        raise HintNotAllowed(option)


def _refusal(view: GameView) -> Reason | None:
    """Returns why the seat of a view can play nothing, if so; in a running round it may ask at any time."""
    by_phase = {
        RoundOver: Reason.ROUND_OVER,
        Finished: Reason.GAME_OVER,
        Aborted: Reason.GAME_OVER,
    }
    if view.phase in by_phase:
        return by_phase[view.phase]
    resigned = any(player.resigned for player in view.players if player.seat == view.seat)
    return Reason.PLAYER_RESIGNED if resigned else None


def _own_turn(view: GameView) -> MeldingView | None:
    """Returns the round if the view's seat has the turn."""
    return seen_round(view) if view.turn and view.turn.seat == view.seat else None


def _unplayable_tiles(turn: MeldingView | None, ruleset: Ruleset) -> tuple[Tile, ...]:
    """Returns the tile of the seat's rack that was drawn in its turn, if it may not be played (R25)."""
    if turn is None or turn.step is not Drawn or ruleset.turn_play_after_draw is not TurnPlayAfterDraw.OTHER_TILES:
        return ()
    return turn.tiles_drawn


def _judged(situation: AnySituation, turn: LegalTurn | GridTurn | None, kept: tuple[Tile, ...]) -> PlayedTurn | None:
    """Returns a turn as the rules judge it; None if there is none or it is too complex for them (TURN_TOO_COMPLEX).

    Raises RuntimeError if the rules forbid the turn.
    """
    match situation, turn:
        case Situation(), LegalTurn():
            play = Play(
                table_before=situation.table,
                table_after=as_proposed_melds(turn.table, situation.ruleset),
                rack=situation.rack,
                has_melded=situation.has_melded,
                ruleset=situation.ruleset,
                river=situation.river,
                river_index=turn.river_index,
                calls_rummikub=True,
            )
            judgement = judge(play)
            if any(violation.reason is Reason.TURN_TOO_COMPLEX for violation in judgement.violations):
                return None
            played = _played(situation, turn, judgement, play.table_after, kept, play.pulled[:1])
            steps = explain(situation.table, turn.table, situation.ruleset, play.pulled, turn.untouched)
            return replace(played, steps=steps)
        case GridSituation(), GridTurn():
            after, rules = without_faces(turn.table), situation.ruleset
            on_grid = GridPlay(situation.table, after, situation.rack, situation.has_melded, rules, calls_rummikub=True)
            return _played(situation, turn, judge_grid(on_grid), after, kept)
        case _:
            return None


def _played(  # noqa: PLR0913, PLR0917 - the parts of an answer
    situation: AnySituation,
    turn: LegalTurn | GridTurn,
    judgement: Judgement | GridJudgement,
    table: ProposedTable,
    kept: tuple[Tile, ...],
    key: tuple[Tile, ...] = (),
) -> PlayedTurn:
    """Returns a judged turn, without its steps. `key` is the tile of the River that it plays, if any."""
    if judgement.violations or judgement.tiles_played != in_order(turn.tiles + key):
        reasons = ", ".join(violation.reason.name for violation in judgement.violations)  # logs must not show racks
        raise RuntimeError(f"the solver's turn is not legal: {reasons or 'other tiles are played'}")
    return PlayedTurn(
        turn=turn,
        table=table,
        points=judgement.points,
        value=rack_value(turn.tiles, situation.ruleset),
        goes_out=not judgement.rack_left and not kept,
    )
