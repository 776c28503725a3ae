"""The rules and the round of a draw-and-discard game."""

from engine.discard.round import DiscardRound
from engine.discard.ruleset import Ruleset
from engine.discard.views import DiscardView
from engine.game import Game
from engine.game import round_of as any_round_of
from engine.views import GameView


def rules_of(game: Game | GameView) -> Ruleset:
    """Returns the rules of a draw-and-discard game, or of a view of one. Raises TypeError for another one."""
    if not isinstance(game.ruleset, Ruleset):
        raise TypeError("the game is of another family")
    return game.ruleset


def round_of(game: Game) -> DiscardRound:
    """Returns its round in progress, or the last one. Raises ValueError if none has started."""
    round_ = any_round_of(game)
    if not isinstance(round_, DiscardRound):
        raise TypeError("the game is of another family")
    return round_


def seen_round(view: GameView) -> DiscardView | None:
    """Returns what a viewer sees of its round; None if none has started."""
    if view.round is None or isinstance(view.round, DiscardView):
        return view.round
    raise TypeError("the game is of another family")
