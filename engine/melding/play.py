"""A play to judge, and the properties of it that the rules use."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from engine.effort import Effort, TooComplexError
from engine.lazy import lazy_property, preset
from engine.melding.exchange import Exchange
from engine.melding.initial_meld import best_for_the_player, from_left_to_right, suffices, ways_to_meld
from engine.melding.melds import Meld, NotAMeld
from engine.melding.ruleset import InitialMeldSameTurnTablePlay, JokerRetrievalMode, Ruleset
from engine.melding.table import (
    MeldReadings,
    Melds,
    ProposedMelds,
    as_proposed_melds,
    joker_roles,
    kept_and_new,
    read_melds,
)
from engine.tiles import Tile, in_order

R = TypeVar("R")

INITIAL_STEPS: Final = 40_000
"""Steps that the search for the initial meld may take."""

STEPS: Final = 50_000
"""Steps that all other rules together may take: about 50 ms, as most steps take under half a microsecond."""


class BasePlay(Exchange, ABC):
    """A play as the rules of melds see it.

    Rules depend on this class only. Subclasses supply `readings` and the tables, and may override any property with a
    faster one that has the same value: `Play` overrides none, `melding.fast.fast_play.FastPlay` most.
    """

    table_before: Melds
    table_after: ProposedMelds

    @property
    @abstractmethod
    def readings(self) -> MeldReadings:
        """Returns table_after as the rules read it (melding.table.read_melds)."""

    @lazy_property
    def melds(self) -> Melds:
        """Returns the proposed melds that are melds."""
        return tuple([reading for reading in self.readings if isinstance(reading, Meld)])

    @lazy_property
    def not_melds(self) -> tuple[tuple[int, NotAMeld], ...]:
        """Returns the proposed melds that are none, with their places."""
        return tuple([(place, meld) for place, meld in enumerate(self.readings) if isinstance(meld, NotAMeld)])

    @property
    def is_all_melds(self) -> bool:
        """Returns whether every proposed meld is one."""
        return not self.not_melds

    @lazy_property
    def kept_and_new(self) -> tuple[Melds, Melds]:
        """Returns the melds of table_after: those that are on table_before, and the others."""
        return kept_and_new(self.table_before, self.melds)

    @lazy_property
    def new_melds(self) -> Melds:
        """Returns the melds of table_after that are not on table_before."""
        return self.kept_and_new[1]

    @lazy_property
    def changed_melds(self) -> Melds:
        """Returns the melds of table_before that are not on table_after."""
        kept, _ = self.kept_and_new
        return kept_and_new(kept, self.table_before)[1]

    @property
    def initial_meld(self) -> Melds:
        """Returns the new melds, of the player's own tiles, that count as the initial meld. Raises TooComplexError."""
        if self._initial_meld is None:
            raise TooComplexError
        return self._initial_meld

    @lazy_property
    def _initial_meld(self) -> Melds | None:
        """Returns the initial meld, or None if the search runs out of steps; stored so that no rule repeats it."""
        if not self._allows_table_play_with_initial_meld or self.unowned:
            return from_left_to_right(self.new_melds, self.playable)
        with suppress(TooComplexError):
            effort = Effort(min(INITIAL_STEPS, self.steps))
            return best_for_the_player(self.melds, self.tiles_played, self.ruleset, effort)
        return None

    @property
    def _allows_table_play_with_initial_meld(self) -> bool:
        return self.ruleset.initial_meld_same_turn_table_play is InitialMeldSameTurnTablePlay.ALLOWED

    @lazy_property
    def may_use_table(self) -> bool:
        """Returns whether the player has melded, or melds in this turn and may use the table too (R33, R34).

        Raises TooComplexError.
        """
        if self.has_melded:
            return True
        may_meld = self._allows_table_play_with_initial_meld and not self.unowned
        return may_meld and suffices(self.initial_meld, self.ruleset)

    @lazy_property
    def steps(self) -> int:
        """Returns how many steps the rules may take."""
        return STEPS

    @lazy_property
    def effort(self) -> Effort:
        """Returns the steps that all rules together have left."""
        return Effort(self.steps)

    def reset_effort(self, steps: int = STEPS) -> None:
        """Gives the rules all steps again, or some: the play may have been judged before."""
        preset(self, steps=steps, effort=Effort(steps))

    def ways_to_meld(self) -> Iterator[Melds]:
        """Yields the ways to make the initial meld in a turn that also uses the table. Raises TooComplexError."""
        if self.has_melded or not self.may_use_table:
            return
        contested = {*self.tiles_before}
        if self.ruleset.joker_retrieval_mode is not JokerRetrievalMode.FREE:
            contested.update(*joker_roles(self.table_before))
        yield from ways_to_meld(self.melds, self.tiles_played, contested, self.ruleset, self.effort)

    def least_wrong(self, breaches: "Callable[[BasePlay], tuple[R, ...]]") -> tuple[R, ...]:
        """Returns the breaches of the play or, if it has none, of its rest without the initial meld.

        The initial meld comes from the rack. If it can be chosen so that the rest has no breach, returns none. Raises
        TooComplexError.
        """
        found = breaches(self)
        if found:
            return found
        for melds in self.ways_to_meld():
            self.effort.take(16 * len(self.melds))
            found = breaches(self.without_initial_meld(melds))
            if not found:
                break
        return found

    def without_initial_meld(self, initial_meld: Melds) -> "Play":
        """Returns the rest of the play, by a player who has melded, without these melds and their tiles."""
        melds, tiles = list(self.melds), +self.playable
        for meld in initial_meld:
            melds.remove(meld)
            tiles -= Counter(meld.tiles)
        after = as_proposed_melds(melds, self.ruleset)
        rack = in_order(tiles.elements())
        rest = Play(self.table_before, after, rack, has_melded=True, ruleset=self.ruleset, subject=self.subject)
        preset(rest, steps=self.steps, effort=self.effort, readings=tuple(melds))
        return rest

    @lazy_property
    def is_settled(self) -> bool:
        """Returns whether all proposed melds are melds, no tile is missing, and all added tiles may be played."""
        return not self.missing and not self.unowned and self.is_all_melds and not self.plunder_played


@dataclass(frozen=True)
class Play(BasePlay):
    """A play judged by the plain rules. Exchange documents the attributes."""

    table_before: Melds
    table_after: ProposedMelds
    rack: tuple[Tile, ...]
    has_melded: bool
    ruleset: Ruleset
    subject: str = "table_after"
    river: tuple[Tile, ...] = ()
    river_index: int | None = None
    drawn: Tile | None = None
    calls_rummikub: bool = False

    @lazy_property
    def readings(self) -> MeldReadings:
        """Returns table_after as the rules read it (melding.table.read_melds)."""
        return read_melds(self.table_after, self.table_before, self.ruleset)
