"""A play to judge, and what the rules ask of it: what was played, which melds are new, which were changed."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

from engine.melds import Meld, MeldKind, NotAMeld, ProposedMeld, read_meld
from engine.ruleset import Ruleset
from engine.tiles import Tile, in_order


@dataclass(frozen=True)
class Play:
    """A play to judge: table and rack when the turn began, and the table as it shall lie.

    Attributes:
        table_before: The melds in play.
        table_after: The melds as the player wants them.
        rack: The player's tiles.
        has_melded: Whether the player made the initial meld in an earlier turn.
        ruleset: The rules.
        subject: What violations call table_after.
        river: The River, oldest tile first (turn_draw TWO_RIVER).
        river_index: Where the player pulls from it, if they do.
        drawn: The tile of the rack that was drawn in this very turn, if any (turn_play_after_draw).
        calls_rummikub: Whether the player calls out the win (win_call).
    """

    table_before: tuple[Meld, ...]
    table_after: tuple[ProposedMeld, ...]
    rack: tuple[Tile, ...]
    has_melded: bool
    ruleset: Ruleset
    subject: str = "table_after"
    river: tuple[Tile, ...] = ()
    river_index: int | None = None
    drawn: Tile | None = None
    calls_rummikub: bool = False

    @cached_property
    def pulled(self) -> tuple[Tile, ...]:
        """The tiles pulled from the River, oldest first: the key, which must be played, then the plunder."""
        return () if self.river_index is None else self.river[self.river_index :]

    @cached_property
    def playable(self) -> Counter[Tile]:
        """The tiles that the player may play: those of the rack, and the key."""
        return Counter(self.rack + self.pulled[:1])

    @cached_property
    def tiles_before(self) -> Counter[Tile]:
        """The tiles on the table when the turn began."""
        return Counter(t for meld in self.table_before for t in meld.tiles)

    @cached_property
    def tiles_after(self) -> Counter[Tile]:
        """The tiles on the table as it shall lie."""
        return Counter(t for meld in self.table_after for t in meld.tiles)

    @cached_property
    def missing(self) -> Counter[Tile]:
        """Tiles that left the table."""
        return self.tiles_before - self.tiles_after

    @cached_property
    def added(self) -> Counter[Tile]:
        """Tiles that came to the table, wherever from."""
        return self.tiles_after - self.tiles_before

    @cached_property
    def tiles_played(self) -> Counter[Tile]:
        """Tiles that came from the rack."""
        return self.added & self.playable

    @cached_property
    def unowned(self) -> tuple[Tile, ...]:
        """Tiles that came to the table but not from the rack; a joker of a game without jokers is no tile at all."""
        return tuple(t for t in in_order((self.added - self.playable).elements()) if self.ruleset.copies_of(t))

    @cached_property
    def readings(self) -> tuple[Meld | NotAMeld, ...]:
        """table_after as the rules read it. A meld of the old table sent without a kind keeps its kind."""
        kinds = defaultdict(list)
        for meld in self.table_before:
            kinds[meld.tiles].append(meld.kind)
        return tuple(read_meld(_with_kind(meld, kinds[meld.tiles]), self.ruleset) for meld in self.table_after)

    @cached_property
    def melds(self) -> tuple[Meld, ...]:
        """The proposed melds that are melds."""
        return tuple(reading for reading in self.readings if isinstance(reading, Meld))

    @cached_property
    def kept_and_new(self) -> tuple[tuple[Meld, ...], tuple[Meld, ...]]:
        """The melds of table_after: those of table_before, and the others."""
        before = Counter(_identity(meld) for meld in self.table_before)
        kept, new = [], []
        for meld in self.melds:
            identity = _identity(meld)
            if before[identity]:
                before[identity] -= 1
                kept.append(meld)
            else:
                new.append(meld)
        return tuple(kept), tuple(new)

    @cached_property
    def new_melds(self) -> tuple[Meld, ...]:
        """The melds of table_after that were not on the table."""
        return self.kept_and_new[1]

    @cached_property
    def changed_melds(self) -> tuple[Meld, ...]:
        """The melds of table_before that are not on table_after."""
        kept = Counter(_identity(meld) for meld in self.kept_and_new[0])
        changed = []
        for meld in self.table_before:
            identity = _identity(meld)
            if kept[identity]:
                kept[identity] -= 1
            else:
                changed.append(meld)
        return tuple(changed)

    @cached_property
    def melds_from_rack(self) -> tuple[Meld, ...]:
        """The new melds whose tiles the rack has, taken from left to right: the initial meld (R32)."""
        rack = +self.playable
        found = []
        for meld in self.new_melds:
            if Counter(meld.tiles) <= rack:
                rack -= Counter(meld.tiles)
                found.append(meld)
        return tuple(found)


def _with_kind(meld: ProposedMeld, kinds: list[MeldKind]) -> ProposedMeld:
    """A meld with the kind that it states, else with the first that is left of those its tiles had on the table."""
    if meld.kind is None:
        return ProposedMeld(meld.tiles, kinds.pop(0)) if kinds else meld
    if meld.kind in kinds:
        kinds.remove(meld.kind)
    return meld


def _identity(meld: Meld) -> tuple[MeldKind, tuple[Tile, ...]]:
    """What makes two melds the same: the order of a group has no meaning, that of a run has."""
    return meld.kind, in_order(meld.tiles) if meld.kind is MeldKind.GROUP else meld.tiles
