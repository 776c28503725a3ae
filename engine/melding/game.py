"""The rules and the round of a melding game. Mypy refuses these lines once a game may be of another family."""

from collections.abc import Callable
from typing import Final

from engine.game import Game
from engine.game import round_of as any_round_of
from engine.melding.round import MeldingRound
from engine.melding.ruleset import Ruleset
from engine.melding.views import MeldingView
from engine.views import GameView


def rules_of(game: Game | GameView) -> Ruleset:
    """Returns the rules of a melding game, or of a view of one."""
    return game.ruleset


round_of: Final[Callable[[Game], MeldingRound]] = any_round_of
"""Returns its round in progress, or the last one. Raises ValueError if none has started."""


def seen_round(view: GameView) -> MeldingView | None:
    """Returns what a viewer sees of its round; None if none has started."""
    return view.round
