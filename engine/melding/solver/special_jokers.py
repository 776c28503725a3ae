"""Searches situations with special jokers (joker_kinds TWIST) among the turns that leave those jokers where they are.

Each of these turns is legal, but a turn that moves or plays a special joker may be better. So the answers claim
nothing else: a turn is not proven to be the best, and where none is found, one may exist.
"""

from dataclasses import replace

from engine.melding.analysis import Situation
from engine.melding.solver.answers import BestTurn, Existence, LegalTurn, Objective
from engine.melding.solver.search import Meter, OutOfBudget
from engine.melding.solver.turn_search import find_best, turn_exists
from engine.melding.table import tiles_on
from engine.tiles import SPECIAL_JOKERS


def has_special_jokers(situation: Situation) -> bool:
    """Returns whether the rack or the table has a special joker."""
    return not SPECIAL_JOKERS.isdisjoint((*situation.rack, *tiles_on(situation.table)))


def find_turn_beside(situation: Situation, objective: Objective, meter: Meter) -> BestTurn:
    """Returns the best turn without special jokers; it is not proven to be the best one."""
    beside, places = _beside(situation)
    turn = find_best(beside, objective, meter).turn
    return BestTurn(_on_table(turn, situation, places) if turn else None, is_proven=False, is_least_change=False)


def turn_exists_beside(situation: Situation, meter: Meter) -> Existence:
    """Returns YES if a turn without special jokers exists, else UNKNOWN."""
    try:
        return Existence.YES if turn_exists(_beside(situation)[0], meter) else Existence.UNKNOWN
    except OutOfBudget:
        return Existence.UNKNOWN


def _beside(situation: Situation) -> tuple[Situation, tuple[int, ...]]:
    """Returns a situation without special jokers and their melds, and the places of the melds left."""
    places = tuple([at for at, meld in enumerate(situation.table) if SPECIAL_JOKERS.isdisjoint(meld.tiles)])
    rack = tuple([t for t in situation.rack if t not in SPECIAL_JOKERS])
    return replace(situation, table=tuple([situation.table[place] for place in places]), rack=rack), places


def _on_table(turn: LegalTurn, situation: Situation, places: tuple[int, ...]) -> LegalTurn:
    """Returns a turn beside special jokers as a turn on the whole table."""
    changed = set(places) - {places[place] for place in turn.untouched}
    untouched = tuple([place for place in range(len(situation.table)) if place not in changed])
    table = (*[situation.table[place] for place in untouched], *turn.table[len(turn.untouched) :])
    return replace(turn, table=table, untouched=untouched)
