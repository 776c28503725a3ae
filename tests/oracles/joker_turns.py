"""Another judge of turns of American and International Rummikub. It shares no rule with the engine.

It gives each joker a face in every way, and follows each tile from the old table and the rack to the new table. A turn
is legal if some such account of it breaks no rule (`is_legal`). `reasons` names what is wrong with a turn, rule by rule
and without such accounts, so that the two also check each other.

Where a freed joker goes to the rack, a joker of a group that can have stayed has stayed: a player who means otherwise
lays in two steps. Reasons beside the first follow the engine's conventions, which the rules of the game leave open:
what is laid is what the table has more of than before; a discard is judged only after a legal step; a meld of the table
that lost no numbered tile and is longer but no meld is MELD_NOT_GROUP_NOR_RUN, else TABLE_MELD_CHANGED; a Foot is not
asked where taken jokers go, as it may take none, nor of whoever has opened whether another player has.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product

from oracles.okey_101 import is_meld, numbered, points, readings

JOKER = 53
Tiles = tuple[int, ...]
Melds = tuple[Tiles, ...]


@dataclass(frozen=True)
class Rules:
    """The options that the judge knows."""

    one_high: bool
    points: int
    rises: bool
    laid_at_once: bool


@dataclass(frozen=True)
class Turn:
    """A turn: what was there before it, and what the player shows.

    Attributes:
        seat: The player.
        table: The melds before the turn.
        openings: Who has opened with how many points, oldest first.
        rack: The player's tiles.
        owed: The tile that must be laid; None if there is none.
        after: The table after the step; None without a step.
        discard: The discard; None without one.
        is_foot: Whether the step and the discard are a Foot.
    """

    seat: int
    table: Melds
    openings: tuple[tuple[int, int], ...]
    rack: Tiles
    owed: int | None
    after: Melds | None
    discard: int | None
    is_foot: bool

    @property
    def has_opened(self) -> bool:
        """Whether the player has."""
        return any(seat == self.seat for seat, _ in self.openings)

    @property
    def added(self) -> Melds:
        """The melds after those of the old table."""
        return (self.after or ())[len(self.table) :]

    @property
    def old_and_new(self) -> tuple[tuple[Tiles, Tiles], ...]:
        """Each meld of the old table with what lies in its place."""
        after = self.after or ()
        return tuple((meld, after[i] if i < len(after) else ()) for i, meld in enumerate(self.table))

    def total(self, rules: Rules) -> int:
        """Returns the points of the new melds."""
        return sum(points(part, JOKER, one_high=rules.one_high) for part in self.added)

    def threshold(self, rules: Rules) -> int:
        """Returns the fewest points to open with."""
        return max(rules.points, self.openings[-1][1] + 1) if rules.rises and self.openings else rules.points


@dataclass(frozen=True)
class Growth:
    """One account of how a meld grew.

    Attributes:
        freed: The jokers that left it.
        arrived: The tiles that were laid on it.
        covers_all: Whether the new meld has every face that the old jokers can stand for.
    """

    freed: int
    arrived: Tiles
    covers_all: bool


@lru_cache(maxsize=4_096)
def growths(old: Tiles, new: Tiles, *, one_high: bool) -> frozenset[Growth]:
    """Returns all accounts of how one meld grew to another; none if it did not just grow."""
    if not numbered(old, JOKER) or not numbered(new, JOKER):
        return frozenset()
    before, after = (readings(tiles, JOKER, one_high=one_high) for tiles in (old, new))
    found = set()
    for (kind, places), (new_kind, filled) in product(before, after):
        if kind == new_kind and all(t in {filled.get(p), JOKER} and p in filled for p, t in places.items()):
            freed = [t == JOKER and filled[p] != JOKER for p, t in places.items()].count(True)
            arrived = tuple(sorted(t for p, t in filled.items() if places.get(p) != t))
            same_kind = (other.keys() for their_kind, other in before if their_kind == kind)
            covers_all = all(any(faces <= full.keys() for k, full in after if k == kind) for faces in same_kind)
            found.add(Growth(freed, arrived, covers_all))
    return frozenset(found)


# Accounts of a turn


@dataclass(frozen=True)
class Account:
    """Where all tiles of a step came from.

    Attributes:
        laid_off: The tiles of the rack on old melds.
        in_new: The tiles of the rack in new melds.
        freed: The jokers that left old melds.
        left: The rack afterwards.
        covers_all: Whether each meld that lost a joker covers all faces that it could stand for.
    """

    laid_off: Counter[int]
    in_new: Counter[int]
    freed: int
    left: Counter[int]
    covers_all: bool


def accounts(turn: Turn, rules: Rules) -> Iterator[Account]:
    """Yields all accounts of a step in which every tile comes from the rack or was freed as the rules say."""
    rack, added = Counter(turn.rack), turn.added
    if not all(is_meld(part, JOKER, one_high=rules.one_high) for part in added):
        return
    for grown in product(*(growths(old, new, one_high=rules.one_high) for old, new in turn.old_and_new)):
        arrived = Counter(t for growth in grown for t in growth.arrived)
        freed = sum(growth.freed for growth in grown)
        covers_all = all(growth.covers_all for growth in grown if growth.freed)
        everything = Counter(t for part in added for t in part)
        if not rules.laid_at_once and freed > jokers_freed(turn, rules):
            continue
        if not rules.laid_at_once:
            supply = rack + Counter({JOKER: freed})
            if arrived + everything <= supply:
                yield Account(arrived, everything, freed, supply - arrived - everything, covers_all)
            continue
        for placed in placings(added, freed):
            in_new = everything - Counter({JOKER: sum(placed)})
            if arrived + in_new <= rack:
                yield Account(arrived, in_new, freed, rack - arrived - in_new, covers_all)


def placings(added: Melds, freed: int) -> Iterator[Tiles]:
    """Yields how many freed jokers each new meld may have: beside them it has two tiles of the rack."""
    slots = [place for place, part in enumerate(added) for t in part if t == JOKER]
    for chosen in set(combinations(slots, freed)):
        placed = tuple(chosen.count(place) for place in range(len(added)))
        if all(not count or len(part) - count >= 2 for part, count in zip(added, placed, strict=True)):
            yield placed


def is_legal(turn: Turn, rules: Rules) -> bool:
    """Returns whether a turn is legal: whether some account of it breaks no rule."""
    if turn.after is None:
        return turn.owed is None and turn.discard in turn.rack
    return any(is_allowed(account, turn, rules) for account in accounts(turn, rules))


def is_allowed(account: Account, turn: Turn, rules: Rules) -> bool:
    """Returns whether the rules allow a step, whose tiles came from there, and the discard after it."""
    laid = account.laid_off + account.in_new
    if not laid or not account.left or (rules.laid_at_once and not account.covers_all):
        return False
    if turn.discard is not None and turn.discard not in account.left:
        return False
    if turn.is_foot:
        others = {seat for seat, _ in turn.openings} - {turn.seat}
        is_whole = account.left.total() == 1 and bool(account.laid_off)
        return bool(others) and not turn.has_opened and is_whole and not account.freed and turn.owed in {None, *laid}
    if turn.has_opened:
        return turn.owed in {None, *laid}
    is_enough = bool(turn.added) and turn.total(rules) >= turn.threshold(rules)
    return is_enough and not account.freed and turn.owed in {None, *account.in_new}


# Reasons


def reasons(turn: Turn, rules: Rules) -> set[str]:
    """Returns the names of all reasons against a turn; empty if it is legal."""
    if turn.after is None:
        return reasons_of_discard(Counter(turn.rack), turn.discard, turn.owed)
    found = reasons_of_melds(turn, rules) | reasons_of_tiles(turn, rules)
    found |= reasons_of_foot(turn) if turn.is_foot else reasons_of_opening(turn, rules)
    freed = jokers_freed(turn, rules)
    if freed and not turn.has_opened:
        found.add("OKEY_TAKEN_BEFORE_OPENING")
    if freed and rules.laid_at_once and not turn.is_foot and not any(placings(turn.added, freed)):
        found.add("WILD_NOT_LAID")
    if found or turn.discard is None:
        return found
    left = rack_after(turn)
    if turn.is_foot and left - Counter([turn.discard]):
        found.add("FINISH_INVALID")
    return found | reasons_of_discard(left, turn.discard, None)


def reasons_of_discard(rack: Counter[int], discard: int | None, owed: int | None) -> set[str]:
    """Returns the reasons against a discard."""
    missing = set() if discard is None or rack[discard] else {"TILE_NOT_IN_RACK"}
    return missing if owed is None else missing | {"TAKEN_TILE_NOT_USED"}


def reasons_of_melds(turn: Turn, rules: Rules) -> set[str]:
    """Returns the reasons against the melds of the new table."""
    found = set()
    for old, new in turn.old_and_new:
        ways = growths(old, new, one_high=rules.one_high)
        if not ways:
            kept = Counter(t for t in old if t != JOKER) <= Counter(new)
            found.add("MELD_NOT_GROUP_NOR_RUN" if kept and len(new) > len(old) else "TABLE_MELD_CHANGED")
        elif rules.laid_at_once and not turn.is_foot and not any(w.covers_all or not w.freed for w in ways):
            found.add("JOKER_GROUP_NEEDS_BOTH_COLORS")
    if not all(is_meld(part, JOKER, one_high=rules.one_high) for part in turn.added):
        found.add("MELD_NOT_GROUP_NOR_RUN")
    return found


def jokers_freed(turn: Turn, rules: Rules) -> int:
    """Returns how many jokers left old melds, at least."""
    ways = (growths(old, new, one_high=rules.one_high) for old, new in turn.old_and_new)
    return sum(min((growth.freed for growth in found), default=0) for found in ways)


def tiles_laid(turn: Turn) -> Counter[int]:
    """Returns what the new table has more of."""
    now = Counter(t for part in turn.after or () for t in part)
    return now - Counter(t for part in turn.table for t in part)


def rack_after(turn: Turn) -> Counter[int]:
    """Returns the rack after a step: a joker that is no longer on the table is there."""
    jokers = sum(part.count(JOKER) for part in turn.table) - sum(part.count(JOKER) for part in turn.after or ())
    return Counter(turn.rack) - tiles_laid(turn) + Counter({JOKER: max(0, jokers)})


def jokers_laid(turn: Turn, rules: Rules) -> int:
    """Returns how many jokers come from the rack, where freed ones go; else how many more the table has."""
    before, now = (sum(part.count(JOKER) for part in table) for table in (turn.table, turn.after or ()))
    return now - before + (0 if rules.laid_at_once else jokers_freed(turn, rules))


def reasons_of_tiles(turn: Turn, rules: Rules) -> set[str]:
    """Returns the reasons that depend on the tiles laid."""
    found, laid = set(), tiles_laid(turn)
    if laid - Counter(turn.rack):
        found.add("TILE_NOT_IN_RACK")
    if not laid and not turn.is_foot:
        found.add("NO_RACK_TILE_PLAYED")
    if not rack_after(turn):
        found.add("FINISH_NEEDS_DISCARD")
    is_anywhere = turn.has_opened or turn.is_foot
    used = {*laid, *([JOKER] if jokers_laid(turn, rules) > 0 else [])}
    if turn.owed not in {None, *(used if is_anywhere else (t for part in turn.added for t in part))}:
        found.add("TAKEN_TILE_NOT_USED")
    return found


def reasons_of_opening(turn: Turn, rules: Rules) -> set[str]:
    """Returns the reasons against the step of a player who may have to open with it."""
    if turn.has_opened or not tiles_laid(turn):
        return set()
    if not turn.added:
        return {"NOT_OPENED"}
    return {"OPENING_BELOW_THRESHOLD"} if turn.total(rules) < turn.threshold(rules) else set()


def reasons_of_foot(turn: Turn) -> set[str]:
    """Returns the reasons against a Foot as such."""
    found = set()
    if turn.has_opened:
        found.add("CONCEALED_AFTER_OPENING")
    elif not turn.openings:
        found.add("FOOT_NEEDS_OPEN_PLAYER")
    if all(Counter(new) <= Counter(old) for old, new in turn.old_and_new):
        found.add("FOOT_NEEDS_LAY_OFF")
    return found
