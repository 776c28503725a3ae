"""Which tiles a play takes from where, whatever the layout of the table."""

from collections import Counter

from engine.lazy import lazy_property
from engine.melding.ruleset import Ruleset
from engine.melding.table import ProposedTable, Table, count_tiles
from engine.tiles import Tile, in_order


class Exchange:
    """The tiles of a play: table and rack when the turn began, and the proposed table.

    Attributes:
        table_before: The table when the turn began.
        table_after: The table as the player wants it.
        rack: The player's tiles.
        has_melded: Whether the player made the initial meld in an earlier turn.
        ruleset: The rules.
        subject: The name of table_after in violations.
        river: The River, oldest tile first (turn_draw TWO_RIVER).
        river_index: The place in the River from which the player pulls, if any.
        drawn: The tile of the rack that was drawn in this turn, if any (turn_play_after_draw).
        calls_rummikub: Whether the player calls out the win (win_call).
    """

    table_before: Table
    table_after: ProposedTable
    rack: tuple[Tile, ...]
    has_melded: bool
    ruleset: Ruleset
    subject: str
    river: tuple[Tile, ...]
    river_index: int | None
    drawn: Tile | None
    calls_rummikub: bool

    @lazy_property
    def pulled(self) -> tuple[Tile, ...]:
        """Returns the tiles pulled from the River, oldest first: the key, which must be played, then the plunder."""
        return () if self.river_index is None else self.river[self.river_index :]

    @property
    def plunder(self) -> Counter[Tile]:
        """Returns the pulled tiles that go to the rack and may not be played in this turn."""
        return Counter(self.pulled[1:])

    @lazy_property
    def playable(self) -> Counter[Tile]:
        """Returns the tiles that the player may play: those of the rack, and the key."""
        return Counter(self.rack + self.pulled[:1])

    @lazy_property
    def tiles_before(self) -> Counter[Tile]:
        """Returns the tiles on the table when the turn began."""
        return count_tiles(self.table_before)

    @lazy_property
    def tiles_after(self) -> Counter[Tile]:
        """Returns the tiles on the proposed table."""
        return count_tiles(self.table_after)

    def count_after(self, face: Tile) -> int:
        """Returns how often a face is on the proposed table."""
        return self.tiles_after[face]

    @lazy_property
    def missing(self) -> tuple[Tile, ...]:
        """Returns the tiles that left the table, in ascending order."""
        return in_order((self.tiles_before - self.tiles_after).elements())

    @lazy_property
    def added(self) -> Counter[Tile]:
        """Returns the tiles that were added to the table, from any source."""
        return self.tiles_after - self.tiles_before

    @lazy_property
    def tiles_played(self) -> Counter[Tile]:
        """Returns the added tiles that the player may play."""
        return self.added & self.playable

    @lazy_property
    def plunder_played(self) -> Counter[Tile]:
        """Returns the added tiles that are plunder and must stay on the rack."""
        return (self.added - self.playable) & self.plunder

    @lazy_property
    def unowned(self) -> tuple[Tile, ...]:
        """Returns the added tiles that the player does not have, in ascending order.

        Without the jokers of a game without jokers: those are no tiles at all.
        """
        foreign = self.added - self.playable - self.plunder
        return tuple(t for t in in_order(foreign.elements()) if self.ruleset.copies_of(t))

    @lazy_property
    def duplicated(self) -> tuple[Tile, ...]:
        """Returns the unowned tiles of which the player has fewer than added, or the tile set fewer (R1, R17)."""
        copies_of = self.ruleset.copies_of
        return tuple([t for t in self.unowned if t in self.rack or self.count_after(t) > copies_of(t)])

    @lazy_property
    def played(self) -> tuple[Tile, ...]:
        """Returns the tiles_played, in ascending order."""
        return in_order(self.tiles_played.elements())

    @lazy_property
    def rack_left(self) -> tuple[Tile, ...]:
        """Returns the rack after the play, with the plunder, in ascending order."""
        return in_order((Counter(self.rack + self.pulled) - self.tiles_played).elements())
