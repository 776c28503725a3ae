"""The parts of a game that are the family's: here a melding game's rules and rounds are told from those of others."""

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from engine.game import Game
from engine.game import round_of as any_round_of
from engine.melding.round import MeldingRound
from engine.melding.ruleset import Ruleset
from engine.melding.views import MeldingView
from engine.views import GameView

rules_of: Final[Callable[[Game | GameView], Ruleset]] = attrgetter("ruleset")
"""Returns the rules of a melding game, or of a view of one."""
round_of: Final[Callable[[Game], MeldingRound]] = any_round_of
"""Returns its round in progress, or the last one. Raises ValueError if none has started."""
seen_round: Final[Callable[[GameView], MeldingView | None]] = attrgetter("round")
"""Returns what a viewer sees of its round; None if none has started."""
