"""The parts of a game that are the family's: here a melding game's rules and rounds are told from those of others."""

from engine.game import Game
from engine.game import round_of as any_round_of
from engine.melding.round import MeldingRound
from engine.melding.ruleset import Ruleset
from engine.melding.views import MeldingView
from engine.views import GameView


def rules_of(game: Game | GameView) -> Ruleset:
    """Returns the rules of a melding game, or of a view of one."""
    return game.ruleset


def round_of(game: Game) -> MeldingRound:
    """Returns its round in progress, or the last one. Raises ValueError if none has started."""
    return any_round_of(game)


def seen_round(view: GameView) -> MeldingView | None:
    """Returns what a viewer sees of its round; None if none has started."""
    return view.round
