"""The family of melding games: the functions of engine.family.Family."""

from engine.game import Game
from engine.melding.analysis import may_search
from engine.melding.deal import deal_round as deal
from engine.melding.evolution import evolve
from engine.melding.game import round_of
from engine.melding.turns import decide
from engine.melding.turns.outcome import outcome
from engine.melding.turns.settlement import may_have_searched_all_racks, settle
from engine.melding.turns.timeouts import time_out
from engine.melding.views import see, see_event

__all__ = [
    "can_play_on",
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


def can_play_on(game: Game, seat: int) -> bool:
    """Returns whether a seat has a rack."""
    return seat in round_of(game).order
