"""The family of draw-and-discard games: the functions of engine.family.Family."""

from engine.discard.deal import deal
from engine.discard.evolution import evolve
from engine.discard.ruleset import Ruleset
from engine.discard.settlement import settle
from engine.discard.turns import decide, outcome, time_out
from engine.discard.views import see, see_event
from engine.events import Event
from engine.game import Game

__all__ = [
    "deal",
    "decide",
    "evolve",
    "may_have_searched_all_racks",
    "may_search",
    "outcome",
    "see",
    "see_event",
    "settle",
    "time_out",
]


def may_search(ruleset: Ruleset) -> bool:
    """Returns whether a hand may be one of many named ones (concealed_wins). Any other is judged at once."""
    return ruleset.concealed_wins


def may_have_searched_all_racks(_game: Game, _events: tuple[Event, ...]) -> bool:
    """Returns False: only a player's own hand is ever judged."""
    return False
