"""The rules and the round of a melding game."""

from engine.game import Game
from engine.game import round_of as any_round_of
from engine.melding.round import MeldingRound, Open, Step
from engine.melding.ruleset import Ruleset
from engine.melding.views import MeldingView
from engine.views import GameView


def rules_of(game: Game | GameView) -> Ruleset:
    """Returns the rules of a melding game, or of a view of one. Raises TypeError for a game of another family."""
    if not isinstance(game.ruleset, Ruleset):
        raise TypeError("the game is of another family")
    return game.ruleset


def round_of(game: Game) -> MeldingRound:
    """Returns its round in progress, or the last one. Raises ValueError if none has started, TypeError as above."""
    round_ = any_round_of(game)
    if not isinstance(round_, MeldingRound):
        raise TypeError("the game is of another family")
    return round_


def must_draw_first(ruleset: Ruleset, step: type[Step], pool_count: int) -> bool:
    """Returns whether a player may not play before drawing (turn_draw ONE_OR_TWO, ONE_TO_THREE)."""
    return ruleset.begins_with_draw and step is Open and pool_count > 0


def seen_round(view: GameView) -> MeldingView | None:
    """Returns what a viewer sees of its round; None if none has started. Raises TypeError as above."""
    if view.round is None or isinstance(view.round, MeldingView):
        return view.round
    raise TypeError("the game is of another family")
