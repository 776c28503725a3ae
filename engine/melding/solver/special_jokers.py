"""Searches situations with special jokers (joker_kinds TWIST).

With double jokers alone, the answers are exact (double_search.py). With a mirror or a color change, the search is among
the turns that leave the special jokers where they are. Each of these is legal, but a turn that moves or plays a special
joker may be better. So the answers claim nothing else: a turn is not proven to be the best, and where none is found,
one may exist.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from engine.melding.analysis import Situation
from engine.melding.ruleset import InitialMeldCount
from engine.melding.solver.answers import BestTurn, Existence, LegalTurn, Objective
from engine.melding.solver.problem import weight
from engine.melding.solver.search import Meter, OutOfBudget
from engine.melding.solver.turn_search import find_best, turn_exists
from engine.melding.table import tiles_on
from engine.tiles import COLOR_CHANGE, DOUBLE_JOKER, JOKERS, MIRROR, SPECIAL_JOKERS, Tile

NOT_SEARCHED: Final = frozenset({MIRROR, COLOR_CHANGE})
"""The special jokers that no search can lay."""

MOST_JOKERS: Final = 6
"""The most jokers with double jokers among them. With more, one step of the search could take seconds."""


def has_special_jokers(situation: Situation) -> bool:
    """Returns whether the rack or the table has a special joker."""
    return not SPECIAL_JOKERS.isdisjoint((*situation.rack, *tiles_on(situation.table)))


def is_searched_exactly(situation: Situation) -> bool:
    """Returns whether a situation with special jokers has an exact answer.

    Where one initial meld must reach the threshold, melds are enumerated, and that knows no double jokers.
    """
    count = situation.ruleset.initial_meld_count
    return can_all_be_searched((*situation.rack, *tiles_on(situation.table))) and (
        situation.has_melded or count is not InitialMeldCount.ONE_MELD_REACHES_THRESHOLD
    )


def can_all_be_searched(tiles: Sequence[Tile]) -> bool:
    """Returns whether the search can lay all special jokers of some tiles."""
    return NOT_SEARCHED.isdisjoint(tiles) and (
        DOUBLE_JOKER not in tiles or sum(t in JOKERS for t in tiles) <= MOST_JOKERS
    )


def find_turn_with_special_jokers(situation: Situation, objective: Objective, meter: Meter) -> BestTurn:
    """Returns the best turn; one without special jokers if there is no exact answer within the budget."""
    beside = _find_turn_beside(situation, objective, meter)
    exact = find_best(situation, objective, meter) if is_searched_exactly(situation) else beside
    if exact.is_proven or _worth(exact, situation, objective) >= _worth(beside, situation, objective):
        return exact
    return beside


def _worth(found: BestTurn, situation: Situation, objective: Objective) -> int:
    """Returns the worth of a turn by the objective."""
    return sum(weight(t, objective, situation.ruleset) for t in found.turn.tiles) if found.turn else 0


def turn_with_special_jokers_exists(situation: Situation, meter: Meter) -> Existence:
    """Returns whether a turn exists; UNKNOWN if no turn without special jokers does, and there is no exact answer."""
    try:
        if turn_exists(_beside(situation)[0], meter):
            return Existence.YES
        if is_searched_exactly(situation):
            return Existence.YES if turn_exists(situation, meter) else Existence.NO
    except OutOfBudget:
        pass
    return Existence.UNKNOWN


def _find_turn_beside(situation: Situation, objective: Objective, meter: Meter) -> BestTurn:
    """Returns the best turn without special jokers; it is not proven to be the best one."""
    beside, places = _beside(situation)
    turn = find_best(beside, objective, meter).turn
    return BestTurn(_on_table(turn, situation, places) if turn else None, is_proven=False, is_least_change=False)


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
