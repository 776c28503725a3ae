"""Foresight: whether a player does better to keep the tiles back that could be played now.

Tiles on the table help the next player, and tiles that can be played now mostly can be played later too. So a bot
compares its turn with drawing. It deals the unseen tiles to the others by chance, a few times. It lets each of them and
then itself play once, and compares the tiles that all have left. Only faces count; other rules are left out. For which
rules it does so is in skills.py.
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from engine.effort import Budget
from engine.melding.game import rules_of
from engine.melding.ruleset import Ruleset
from engine.melding.solver.initial_melds import best_initial_meld
from engine.melding.solver.problem import Problem
from engine.melding.solver.search import Meter, OutOfBudget
from engine.melding.solver.solution import solve
from engine.melding.table import Melds
from engine.seats import from_seat
from engine.skill import shuffled
from engine.tiles import Tile
from engine.views import GameView

_DEALS: Final = 6
_NODES: Final = 4_000
"""The most work: about 100 milliseconds."""
_WIN: Final = 12.0
_NOT_MELDED: Final = 8
"""How many tiles a missing initial meld counts."""


@dataclass(frozen=True, slots=True)
class _Hand:
    """A player's tiles, and whether the player may use the table."""

    tiles: Counter[Tile]
    is_free: bool

    @property
    def count(self) -> int:
        """How far the player is from going out."""
        return self.tiles.total() + (0 if self.is_free else _NOT_MELDED)


def should_wait(view: GameView, melds: Melds, tiles: tuple[Tile, ...], budget: Budget) -> bool:
    """Returns whether the seat to move does better to draw than to play some tiles, which leave it others."""
    rules, table = rules_of(view), Counter(chain(*(meld.tiles for meld in melds)))
    unseen = Counter(rules.tiles(len(view.order))) - table - Counter(view.rack)
    seats = {player.seat: player for player in view.players if not player.resigned}
    me, *others = (seats[seat] for seat in from_seat(view.order, view.seat or 0) if seat in seats)
    if sum(player.tile_count for player in others) >= unseen.total():
        return False
    played = Counter(tiles)
    mine = _Hand(Counter(view.rack), me.has_melded or not rules.initial_meld_needed)
    after = _Hand(mine.tiles - played, is_free=True)
    meter = Meter(replace(budget, nodes=min(budget.nodes, _NODES), change_nodes=0))
    gain = 0.0
    for number in range(_DEALS):
        pool = shuffled(view, tuple(unseen.elements()), number)
        hands = []
        for player in others:
            dealt = Counter(pool.pop() for _ in range(player.tile_count))
            hands.append(_Hand(dealt, player.has_melded or not rules.initial_meld_needed))
        waiting = replace(mine, tiles=mine.tiles + Counter(pool[-1:]))
        try:
            waits = _outcome(table, [*hands, waiting], pool[:-1], rules, meter)
            gain += waits - _outcome(table + played, [*hands, after], pool, rules, meter)
        except OutOfBudget:
            break
    return gain > 0


def _outcome(table: Counter[Tile], hands: list[_Hand], pool: list[Tile], rules: Ruleset, meter: Meter) -> float:
    """Returns how well the last of some players stands after all have played once."""
    left: list[_Hand] = []
    drawn = iter(reversed(pool))
    for hand in hands:
        played = _best(table, hand, rules, meter)
        if played == hand.tiles:
            return _WIN if len(left) == len(hands) - 1 else -_WIN
        table = table + played
        tiles = hand.tiles - played if played else hand.tiles + Counter(t for t in [next(drawn, None)] if t)
        left.append(_Hand(tiles, hand.is_free or bool(played)))
    *others, mine = (hand.count for hand in left)
    return _WIN * (min(others) - mine) / (min(others) + mine + 4)


def _best(table: Counter[Tile], hand: _Hand, rules: Ruleset, meter: Meter) -> Counter[Tile]:
    """Returns the most tiles that a player can play. Raises OutOfBudget."""
    if hand.is_free:
        found = solve(Problem(table, hand.tiles, rules), meter, hand.tiles.total())
    else:
        found = best_initial_meld(Problem({}, hand.tiles, rules), meter, hand.tiles.total())
    laid = Counter(chain(*(meld.tiles for meld in found.melds))) if found else Counter[Tile]()
    return laid - table if hand.is_free else laid
