"""The family of draw-and-discard games: the functions of engine.family.Family."""

from engine.discard.deal import deal
from engine.discard.evolution import evolve
from engine.discard.game import round_of, rules_of
from engine.discard.ruleset import Ruleset
from engine.discard.settlement import settle
from engine.discard.turns import decide, outcome, time_out
from engine.discard.views import see, see_event
from engine.events import Event
from engine.game import Game

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
    """Returns whether a seat has a rack, of a size from which a hand can be finished.

    Who resigned with a tile taken, and had not opened, has one tile too many: the next turn would take another one.
    """
    if seat not in round_of(game).order:
        return False
    rack = round_of(game).rack(seat)
    return rack.has_melded or len(rack.tiles) <= rules_of(game).hand_size


def may_search(ruleset: Ruleset) -> bool:
    """Returns whether a hand may be one of many named ones (concealed_wins). Any other is judged at once."""
    return ruleset.concealed_wins


def may_have_searched_all_racks(_game: Game, _events: tuple[Event, ...]) -> bool:
    """Returns False: only a player's own hand is ever judged."""
    return False
