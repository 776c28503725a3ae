"""The table: its types, the tiles on it, how proposed melds are read, and how two tables differ.

A table has a layout (table_layout): a tuple of melds, or a grid. What takes a `Table` takes both; what takes `Melds`
is of the first layout only, as `melding.grid` is of the second.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import TypeAlias, TypeVar

from engine.melding.grid.cells import Grid, without_faces
from engine.melding.melds import Meld, MeldKind, NotAMeld, ProposedMeld, as_proposed, read_meld
from engine.melding.ruleset import MeldOrder, Ruleset, TableLayout
from engine.tiles import JOKER, JOKERS, Tile, in_order

_M = TypeVar("_M", Meld, ProposedMeld)

Melds: TypeAlias = tuple[Meld, ...]
"""The melds in play."""

ProposedMelds: TypeAlias = tuple[ProposedMeld, ...]
"""The melds that a player wants on the table."""

Table: TypeAlias = Melds | Grid
"""The tiles in play, in melds or in cells."""

ProposedTable: TypeAlias = ProposedMelds | Grid
"""The tiles that a player wants on the table, in melds or in cells."""

MeldReadings: TypeAlias = tuple[Meld | NotAMeld, ...]
"""Proposed melds as the rules read them, in the same order."""

Identity: TypeAlias = tuple[MeldKind, tuple[Tile, ...], tuple[tuple[Tile, ...], ...]]
"""Equal for two melds that the rules treat as the same meld."""


def empty_table(ruleset: Ruleset) -> Table:
    """Returns the table of a new round."""
    return Grid() if ruleset.table_layout is TableLayout.GRID else ()


def melds_of(table: tuple[_M, ...] | Grid) -> tuple[_M, ...]:
    """Returns the melds of a table that is known to have melds. Raises TypeError for a grid."""
    if isinstance(table, Grid):
        raise TypeError("a grid has no melds")
    return table


def as_grid(proposed: ProposedTable) -> Grid | None:
    """Returns a proposed table as a grid; None if it has melds. A table without tiles has any layout."""
    if isinstance(proposed, Grid):
        return proposed
    return None if proposed else Grid()


def tiles_on(table: Iterable[Meld | ProposedMeld] | Grid) -> tuple[Tile, ...]:
    """Returns the tiles of a table, meld by meld or cell by cell."""
    if isinstance(table, Grid):
        return tuple([placement.tile for placement in table.placements])
    return tuple(chain.from_iterable([meld.tiles for meld in table]))


def count_tiles(table: Iterable[Meld | ProposedMeld] | Grid) -> Counter[Tile]:
    """Returns how often each face is on a table."""
    return Counter(tiles_on(table))


def as_proposed_table(table: Table, ruleset: Ruleset) -> ProposedTable:
    """Returns a proposal that the same ruleset reads as the same table."""
    return without_faces(table) if isinstance(table, Grid) else as_proposed_melds(table, ruleset)


def as_proposed_melds(melds: Iterable[Meld], ruleset: Ruleset) -> ProposedMelds:
    """Returns a proposal that the same ruleset reads as the same melds."""
    return tuple([as_proposed(meld, ruleset) for meld in melds])


def have_joker(melds: Iterable[Meld]) -> bool:
    """Returns whether melds have a joker."""
    return any(JOKER in meld.tiles for meld in melds)


def joker_roles(melds: Iterable[Meld]) -> set[tuple[Tile, ...]]:
    """Returns the faces that each joker of melds may stand for, without repetition."""
    return {faces for meld in melds for faces in meld.joker_faces}


def is_same_table(one: Table | ProposedTable, other: Table | ProposedTable) -> bool:
    """Returns whether two tables have melds of the same tiles, whatever their order, or tiles in the same cells.

    Empty melds do not count.
    """
    return _parts(one) == _parts(other)


def _parts(table: Table | ProposedTable) -> Counter[tuple[int, ...]]:
    if isinstance(table, Grid):
        return Counter((placement.tile, *placement.cell) for placement in table.placements)
    return Counter(in_order(meld.tiles) for meld in table if meld.tiles)


def identity(meld: Meld) -> Identity:
    """Returns the identity of a meld. The order of a run matters; that of a group does not."""
    if meld.kind is MeldKind.RUN:
        return meld.kind, meld.tiles, ()
    return meld.kind, in_order(meld.tiles), tuple(sorted(meld.joker_faces))


def kept_and_new(before: Iterable[Meld], after: Iterable[Meld]) -> tuple[Melds, Melds]:
    """Splits `after` into the melds that are also in `before`, one for one, and the others."""
    left = Counter(identity(meld) for meld in before)
    kept, new = [], []
    for meld in after:
        same = identity(meld)
        if left[same]:
            left[same] -= 1
            kept.append(meld)
        else:
            new.append(meld)
    return tuple(kept), tuple(new)


def read_melds(proposed: ProposedMelds, before: Iterable[Meld], ruleset: Ruleset) -> MeldReadings:
    """Returns proposed melds as the rules read them.

    A meld of `before` that is sent without kind or joker faces keeps those that it has. If a proposed meld can be read
    only with the faces of such a meld, they go to it, even if an identical proposed meld comes first.
    """
    known, spare = defaultdict(list), defaultdict(list)
    for meld in before:
        known[in_order(meld.tiles)].append(meld)
    read: dict[int, Meld | NotAMeld] = {}
    for place in sorted(range(len(proposed)), key=lambda place: _most_explicit_first(proposed[place])):
        sent = proposed[place]
        tiles = in_order(sent.tiles)
        same = _take_same(sent, known[tiles], ruleset)
        read[place] = read_meld(_completed(sent, same), ruleset)
        if same and not JOKERS.isdisjoint(tiles) and read[place] == read_meld(sent, ruleset):
            spare[tiles].append(same)
        elif isinstance(read[place], NotAMeld):
            like = _take_same(sent, spare[tiles], ruleset)
            if like or same:  # otherwise the reading would not change
                read[place] = read_meld(_completed(sent, like), ruleset)
    return tuple(read[place] for place in range(len(read)))


def _most_explicit_first(meld: ProposedMeld) -> tuple[bool, bool]:
    """Returns a sort key: melds that declare the most claim their old meld first."""
    return not meld.declared, meld.kind is None


def _take_same(meld: ProposedMeld, candidates: list[Meld], ruleset: Ruleset) -> Meld | None:
    """Removes and returns the old meld that a proposed meld restates, or None.

    Candidates have the same tiles. One in the same order is preferred.
    """
    in_preference = sorted(candidates, key=lambda old: old.tiles != meld.tiles)
    same = next((old for old in in_preference if _agrees(meld, old) and _has_same_order(meld, old, ruleset)), None)
    if same is not None:
        candidates.remove(same)
    return same


def _completed(meld: ProposedMeld, same: Meld | None) -> ProposedMeld:
    """Returns a meld with the kind and joker faces of the old meld where it declares none."""
    if same is None:
        return meld
    if meld.declared or not _has_one_face_per_joker(same):
        return ProposedMeld(meld.tiles, same.kind, meld.declared)
    return ProposedMeld(meld.tiles, same.kind, tuple(faces[0] for faces in same.joker_faces))


def _agrees(meld: ProposedMeld, old: Meld) -> bool:
    """Returns whether the declared kind and faces, if any, are those of the old meld."""
    faces = in_order(face for faces in old.joker_faces for face in faces)
    return meld.kind in {None, old.kind} and (not meld.declared or in_order(meld.declared) == faces)


def _has_same_order(meld: ProposedMeld, old: Meld, ruleset: Ruleset) -> bool:
    """Returns whether the order of the tiles allows that the meld is the old one.

    The order of a group is free. The order of one numbered tile with jokers counts, unless the kind is declared.
    """
    if meld.tiles == old.tiles or ruleset.meld_order is MeldOrder.CANONICALISE:
        return True
    is_a_group = meld.kind is MeldKind.GROUP or sum(t not in JOKERS for t in meld.tiles) > 1
    return old.kind is MeldKind.GROUP and is_a_group


def _has_one_face_per_joker(meld: Meld) -> bool:
    return all(len(faces) == 1 for faces in meld.joker_faces)
