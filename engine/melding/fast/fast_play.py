"""A play whose properties come from cached melds and tile counts."""

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

from engine.lazy import lazy_property
from engine.melding.fast.read_melds import PlayMelds, ReadMeld
from engine.melding.fast.tile_counts import FLAGGED, JOKER_COUNTS, count_of, split, tiles_of
from engine.melding.melds import Meld, NotAMeld, ProposedMeld
from engine.melding.play import BasePlay, Play
from engine.melding.ruleset import Ruleset
from engine.melding.table import MeldReadings, Melds, ProposedMelds
from engine.tiles import JOKER, Tile

PlayCounts: TypeAlias = tuple[int, int, int, int, int]
"""The tile counts of the table before, the table after, and the three of their exchange (melding.fast.tile_counts)."""

_meld: Final = attrgetter("meld")


class PlayerState(NamedTuple):
    """The player's part of a play. Exchange documents the attributes; `rack` is in ascending order."""

    rack: tuple[Tile, ...]
    has_melded: bool
    river: tuple[Tile, ...] = ()
    river_index: int | None = None
    drawn: Tile | None = None
    calls_rummikub: bool = False

    def plain_play(self, before: Melds, after: ProposedMelds, ruleset: Ruleset, subject: str = Play.subject) -> Play:
        """Returns a play for the plain rules."""
        return Play(before, after, ruleset=ruleset, subject=subject, **self._asdict())


class FastPlay(BasePlay):
    """A play of cached melds. Melds are looked up only when a rule needs more than tile counts.

    Properties that nearly every rule uses are computed at once, the others on demand.

    Args:
        melds: The caches in which the melds of both tables are looked up.
        tables: The table before and the table after, as those caches take them.
        counts: Their tile counts, without overflow.
        player: The player's part.
        subject: The name of the table after in violations.
    """

    def __init__(
        self,
        melds: PlayMelds[Any, Any],
        tables: tuple[Sequence[Any], Sequence[Any]],
        counts: PlayCounts,
        player: PlayerState,
        subject: str,
    ) -> None:
        self._melds, self._tables = melds, tables
        self._counts_before, self._counts_after, self._added, missing, foreign = counts
        self.ruleset, self.subject = melds.reader.ruleset, subject
        self.rack, self.has_melded, self.river, self.river_index, self.drawn, self.calls_rummikub = player
        self.missing = tiles_of(missing) if missing else ()
        if not self._counts_after & FLAGGED:
            self.not_melds = ()
        if self.river_index is None:  # else the key counts as a tile of the rack, which BasePlay considers
            self.played, self.rack_left = split(self.rack, self._added - foreign)
            self.unowned = self._of_the_game(foreign) if foreign else ()

    def _of_the_game(self, foreign: int) -> tuple[Tile, ...]:
        """Returns tiles without the jokers of a game without jokers."""
        return tuple([t for t in tiles_of(foreign) if t < JOKER or self.ruleset.copies_of(t)])

    @lazy_property
    def _before(self) -> list[ReadMeld]:
        return self._melds.before.read(self._tables[0])

    @lazy_property
    def _sent(self) -> list[ReadMeld]:
        """Returns the melds of the table after, each read by itself."""
        return self._melds.after.read(self._tables[1])

    @lazy_property
    def _after(self) -> Sequence[ReadMeld]:
        """Returns the melds of the table after, with the joker faces that they keep from the table before."""
        if not self._counts_before & JOKER_COUNTS:
            return self._sent
        return self._melds.reader.with_known_jokers(self._before, self._sent)

    @lazy_property
    def table_before(self) -> Melds:
        return tuple(map(_meld, self._before))

    @lazy_property
    def table_after(self) -> tuple[ProposedMeld, ...]:
        return tuple([meld.proposed for meld in self._sent])

    @lazy_property
    def readings(self) -> MeldReadings:
        return tuple(map(_meld, self._after))

    @lazy_property
    def not_melds(self) -> tuple[tuple[int, NotAMeld], ...]:
        """See BasePlay. With joker faces of the table before, a meld may be one that is none by itself."""
        none = [(place, meld) for place, meld in enumerate(self._sent) if meld.identity is None]
        if self._counts_before & JOKER_COUNTS and [meld for _, meld in none if meld.tiles_with_joker is not None]:
            none = [(place, meld) for place, meld in enumerate(self._after) if meld.identity is None]
        return tuple([(place, meld.meld) for place, meld in none if isinstance(meld.meld, NotAMeld)])

    def count_after(self, face: Tile) -> int:
        return count_of(self._counts_after, face)

    @lazy_property
    def added(self) -> Counter[Tile]:
        return Counter(tiles_of(self._added))

    @lazy_property
    def _new_and_changed(self) -> tuple[list[ReadMeld], list[ReadMeld]]:
        return _new_and_changed(self._before, self._after)

    @lazy_property
    def new_melds(self) -> Melds:
        return tuple([meld.meld for meld in self._new_and_changed[0] if isinstance(meld.meld, Meld)])

    @lazy_property
    def changed_melds(self) -> Melds:
        return tuple(map(_meld, self._new_and_changed[1]))


def _new_and_changed(before: Sequence[ReadMeld], after: Sequence[ReadMeld]) -> tuple[list[ReadMeld], list[ReadMeld]]:
    """Returns the entries of `after` that are not in `before`, invalid melds among them, and the reverse.

    Removes identical objects first, unless that could pair other melds than BasePlay.kept_and_new does: a table has the
    same object twice, or one of two groups with the same tiles is left.
    """
    had, has = set(before), set(after)
    if len(had) < len(before) or len(has) < len(after):
        return _unmatched(after, before), _unmatched(before, after)
    new = [meld for meld in after if meld not in had]
    changed = [meld for meld in before if meld not in has]
    identities = {meld.identity for meld in (*new, *changed)}
    if [meld for meld in after if meld.identity in identities and meld in had]:
        return _unmatched(after, before), _unmatched(before, after)
    return _unmatched(new, changed), _unmatched(changed, new)


def _unmatched(melds: Sequence[ReadMeld], others: Sequence[ReadMeld]) -> list[ReadMeld]:
    """Returns the melds without a counterpart of the same identity among the others, and all invalid melds."""
    left = [meld.identity for meld in others]
    found = []
    for meld in melds:
        if meld.identity is not None and meld.identity in left:
            left.remove(meld.identity)
        else:
            found.append(meld)
    return found
