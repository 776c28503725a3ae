"""Melds read once and cached: by a key such as their bytes, or by the identity of their objects."""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from typing import Final, Generic, Protocol, TypeVar

from engine.identity_cache import IdentityCache
from engine.melding.fast.tile_counts import FLAG, tight_counts_of
from engine.melding.melds import Meld, NotAMeld, ProposedMeld, as_proposed, read_meld
from engine.melding.ruleset import Ruleset
from engine.melding.table import Identity, identity, read_melds
from engine.tiles import JOKERS, Tile, in_order

CACHED_MELDS_MAX: Final = 65_536
"""Most melds, valid or not, that are cached for all rulesets together: about 50 MB. The default rules have about 11,000
ordered melds with up to two jokers, each of which can be sent in several forms."""
IDENTITIES_MAX: Final = 4_096
"""Most melds of a ruleset that are cached by identity."""

B = TypeVar("B")
A = TypeVar("A")
K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound=Hashable)
M_contra = TypeVar("M_contra", contravariant=True)

counts = attrgetter("counts")


@dataclass(frozen=True, slots=True, eq=False)
class ReadMeld:
    """A proposed meld with everything that judging a play needs to know about it.

    Attributes:
        proposed: The meld as it was sent.
        meld: The meld as the rules read it.
        counts: Its tile counts, flagged if it is not a meld.
        identity: Equal for two melds that are the same meld (melding.table.identity); None if it is not a meld.
        tiles_with_joker: Its tiles in ascending order, or None if it has no joker. What its jokers stand for can depend
            on a meld of the table before with the same tiles.
    """

    proposed: ProposedMeld
    meld: Meld | NotAMeld
    counts: int
    identity: Hashable
    tiles_with_joker: tuple[Tile, ...] | None


class CacheBudget:
    """The number of melds that several caches may still add."""

    def __init__(self, maxsize: int = CACHED_MELDS_MAX) -> None:
        self._left = maxsize

    @property
    def is_spent(self) -> bool:
        """Returns whether no more melds may be cached."""
        return self._left <= 0

    def take(self) -> bool:
        """Returns whether one more meld may be cached, and counts it. Threads may exceed the budget a little."""
        self._left -= 1
        return self._left >= 0


class MeldReader:
    """Reads melds by one ruleset, without a cache."""

    def __init__(self, ruleset: Ruleset) -> None:
        self.ruleset = ruleset
        self._identities: dict[Identity, int] = {}
        self._new_identity = count(1)

    def read(self, proposed: ProposedMeld) -> ReadMeld:
        """Reads a meld by itself."""
        return self._as(proposed, read_meld(proposed, self.ruleset))

    def read_from_table(self, meld: Meld) -> ReadMeld:
        """Returns the ReadMeld for a meld of a game's table."""
        return self._as(as_proposed(meld, self.ruleset), meld)

    def with_known_jokers(self, before: Sequence[ReadMeld], after: Sequence[ReadMeld]) -> Sequence[ReadMeld]:
        """Returns `after` with the joker faces that its melds keep from melds of `before` (table.read_melds)."""
        had = [meld for meld in before if meld.tiles_with_joker is not None]
        identities = {meld.tiles_with_joker: meld.identity for meld in had}
        has = [meld for meld in after if meld.tiles_with_joker in identities]
        if not [meld for meld in (*had, *has) if meld.identity != identities[meld.tiles_with_joker]]:
            return after
        sent = tuple([meld.proposed for meld in has])
        lying = [meld.meld for meld in had if isinstance(meld.meld, Meld)]
        known = read_melds(sent, lying, self.ruleset)
        reread = iter([self._as(*both) for both in zip(sent, known, strict=True)])
        return [next(reread) if meld.tiles_with_joker in identities else meld for meld in after]

    def _as(self, proposed: ProposedMeld, meld: Meld | NotAMeld) -> ReadMeld:
        return ReadMeld(
            proposed,
            meld,
            tight_counts_of(proposed.tiles) + (FLAG if isinstance(meld, NotAMeld) else 0),
            self._number(identity(meld)) if isinstance(meld, Meld) else None,
            None if JOKERS.isdisjoint(proposed.tiles) else in_order(proposed.tiles),
        )

    def _number(self, same: Identity) -> int:
        """Returns a number for an identity, which is faster to compare. Thread-safe."""
        return self._identities.setdefault(same, next(self._new_identity))


class MeldCache(Protocol[M_contra]):
    """Looks up the ReadMelds of a table, and reads those that are new."""

    def read(self, melds: Collection[M_contra], /) -> list[ReadMeld]:
        """Returns the ReadMeld of each meld."""

    def total(self, melds: Collection[M_contra], /) -> int:
        """Returns the tile counts of all melds together. Raises KeyError if one is not cached and would be read."""

    def count_new(self, melds: Collection[M_contra], /) -> int:
        """Returns how many of the melds are not cached."""


class KeyedMelds(dict[K, ReadMeld]):
    """A MeldCache by keys that are hashed and compared."""

    def __init__(self, read: Callable[[K], ReadMeld], budget: CacheBudget) -> None:
        super().__init__()
        self._read = read
        self._budget = budget
        self._counts: dict[K, int] = {}
        """The counts alone: most turns need nothing else, and a second dict saves an attribute lookup per meld."""
        self._get_counts = self._counts.__getitem__  # that of `self` would be a reference cycle

    def __missing__(self, key: K) -> ReadMeld:
        meld = self._read(key)
        if self._budget.take():
            self[key] = meld
            self._counts[key] = meld.counts
        return meld

    def read(self, melds: Collection[K]) -> list[ReadMeld]:
        return list(map(self.__getitem__, melds))

    def total(self, melds: Collection[K]) -> int:
        return sum(map(self._get_counts, melds))

    def count_new(self, melds: Collection[K]) -> int:
        return len([key for key in melds if key not in self])


class IdenticalMelds(Generic[M]):
    """A MeldCache by identity, for callers that pass the same objects again, in front of one by value."""

    def __init__(self, melds: KeyedMelds[M]) -> None:
        self._melds = melds
        self.read: Final = IdentityCache(melds.__getitem__, IDENTITIES_MAX).map

    def total(self, melds: Collection[M]) -> int:
        """See MeldCache. Reads melds that are not cached."""
        return sum(map(counts, self.read(melds)))

    def count_new(self, melds: Collection[M]) -> int:
        """See MeldCache. Counts melds that the cache by value lacks."""
        return self._melds.count_new(melds)


@dataclass(frozen=True, slots=True)
class PlayMelds(Generic[B, A]):
    """The caches for the two tables of a play by one ruleset.

    Attributes:
        reader: Reads melds that are not cached.
        before: The cache for melds of the table before.
        after: The cache for melds of the table after.
    """

    reader: MeldReader
    before: MeldCache[B]
    after: MeldCache[A]


def melds_by_key(parse: Callable[[K], ProposedMeld]) -> Callable[[Ruleset, CacheBudget], PlayMelds[K, K]]:
    """Returns a factory of caches for two tables whose melds are sent as keys.

    Args:
        parse: Returns the meld of a key such as its bytes. Its exceptions are raised by the caches.
    """

    def make(ruleset: Ruleset, budget: CacheBudget) -> PlayMelds[K, K]:
        reader = MeldReader(ruleset)
        melds = KeyedMelds[K](lambda key: reader.read(parse(key)), budget)
        return PlayMelds(reader, melds, melds)

    return make


def melds_by_identity(ruleset: Ruleset, budget: CacheBudget) -> PlayMelds[Meld, ProposedMeld]:
    """Returns caches for the table of a game and for a proposed table, whose meld objects are usually sent again."""
    reader = MeldReader(ruleset)
    before, after = KeyedMelds(reader.read_from_table, budget), KeyedMelds(reader.read, budget)
    return PlayMelds(reader, IdenticalMelds(before), IdenticalMelds(after))
