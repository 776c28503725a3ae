"""Judges what a player lays on the table, and the discard of a turn (melds_on_table).

A step of a turn is the whole table as it shall lie afterwards: the melds of the table at their places, grown or as they
were, then the new melds and pairs. A client arranges tiles and sends what it shows, as with a play of a melding game;
it names no index, no lay-off and no replacement of an okey, which follow from the two tables because melds only grow.
So no step is ambiguous, and none is only half legal.

`judge_turn` judges a step, a discard, or a step and then a discard. Each rule is a function of RULES. `judge_foot`
judges a step with which a player who has not opened lays all tiles but the discard, by FOOT_RULES (concealed_wins).
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import chain
from typing import Final

from engine.discard.melds import (
    GROUP_MAX,
    Arrangement,
    fixed_faces,
    is_group,
    is_pair,
    meld_kind,
    meld_points,
)
from engine.discard.ruleset import Ruleset, WildRetrieval
from engine.discard.table import PAIR_SIZE, Opening, Table, fits, wild_taken
from engine.tiles import Tile, in_order, without
from engine.violations import Reason, Violation

_FROM_RACK: Final = 2
"""The tiles of the rack that a new meld has beside a wild tile taken from the table (wild_retrieval)."""


@dataclass(frozen=True, slots=True)
class TurnAtTable:
    """A turn after a tile was taken, before a step or the discard.

    Attributes:
        seat: The player's seat.
        okey: The wild tile: the okey, or the joker.
        table: The table.
        rack: The player's tiles, ascending, the taken one among them.
        owed: The discard or the trump that was taken and must be laid in the next step; None if there is none.
        laid: The tiles laid in earlier steps of the turn, beside those of an opening.
    """

    seat: int
    okey: Tile
    table: Table
    rack: tuple[Tile, ...]
    owed: Tile | None = None
    laid: int = 0


@dataclass(frozen=True, slots=True)
class Laid:
    """What a legal step does.

    Attributes:
        tiles: The tiles that leave the rack, ascending.
        okeys: The number of okeys that the player takes from the table.
        opening: The player's opening, if the step is one.
        turn: The turn after the step.
    """

    tiles: tuple[Tile, ...]
    okeys: int
    opening: Opening | None
    turn: TurnAtTable


class PenaltyCause(Enum):
    """What a player scores penalty points for."""

    OKEY_DISCARDED = auto()
    DISCARD_FITS_TABLE = auto()
    DISCARD_RETURNED = auto()
    FALSE_FINISH = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgment of a turn.

    Attributes:
        violations: What is wrong with it; empty if it is legal.
        laid: What a legal step does; None without a step.
        penalty: Why the discard of a legal turn costs score_discard_penalty; None if it does not.
        is_finish: Whether the discard is the last tile, which ends the round.
    """

    violations: tuple[Violation, ...]
    laid: Laid | None = None
    penalty: PenaltyCause | None = None
    is_finish: bool = False


def judge_turn(turn: TurnAtTable, after: Arrangement | None, discard: Tile | None, ruleset: Ruleset) -> Verdict:
    """Judges a step of a turn, its discard, or both.

    Args:
        turn: The turn.
        after: The table after the step, each old meld at its place; None if nothing is laid.
        discard: The discard; None if the turn goes on.
        ruleset: The rules.
    """
    laid = None
    if after is not None:
        step = _Step(turn, after, ruleset)
        violations = tuple(chain.from_iterable(rule(step) for rule in RULES))
        if violations:
            return Verdict(violations)
        laid = step.laid()
        turn = laid.turn
    if discard is None:
        return Verdict((), laid)
    violations = tuple(_violations_of_discard(turn, discard))
    is_finish = turn.rack == (discard,)
    penalty = None if is_finish or violations else penalty_of(turn, discard, ruleset)
    return Verdict(violations, None if violations else laid, penalty, is_finish and not violations)


def judge_foot(turn: TurnAtTable, after: Arrangement, discard: Tile, ruleset: Ruleset) -> Verdict:
    """Judges a Foot: the whole rack but the discard is laid at once. See `judge_turn`."""
    step = _Step(turn, after, ruleset, is_foot=True)
    violations = tuple(chain.from_iterable(rule(step) for rule in FOOT_RULES))
    if not violations:
        violations = (*_violations_of_discard(step.laid().turn, discard), *_violations_of_tiles_left(step, discard))
    return Verdict(violations) if violations else Verdict((), step.laid(), is_finish=True)


def _violations_of_tiles_left(step: "_Step", discard: Tile) -> Iterator[Violation]:
    left = without(step.rack, (discard,))
    if left:
        yield Violation(Reason.FINISH_INVALID, "table", left)


def _violations_of_discard(turn: TurnAtTable, discard: Tile) -> Iterator[Violation]:
    if discard not in turn.rack:
        yield Violation(Reason.TILE_NOT_IN_RACK, "tile", (discard,))
    if turn.owed is not None:
        yield Violation(Reason.TAKEN_TILE_NOT_USED, "tile", (turn.owed,))


def penalty_of(turn: TurnAtTable, discard: Tile, ruleset: Ruleset) -> PenaltyCause | None:
    """Returns why a discard that is not the last tile costs points; None if it does not (score_discard_penalty)."""
    if ruleset.discard_penalty == 0:
        return None
    if discard == turn.okey:
        return PenaltyCause.OKEY_DISCARDED
    fit = fits(turn.table, discard, turn.okey, one_high=ruleset.run_one_high)
    return PenaltyCause.DISCARD_FITS_TABLE if fit else None


def needed_to_open(table: Table, ruleset: Ruleset, *, is_pairs: bool) -> int:
    """Returns the fewest points, or the fewest pairs, with which a player opens (opening_rises)."""
    least, last = ruleset.opening_pairs if is_pairs else ruleset.opening_points, table.last_opening(is_pairs=is_pairs)
    return max(least, last.amount + 1) if ruleset.opening_rises and last else least


def may_lay_pairs(table: Table, seat: int) -> bool:
    """Returns whether a player who has opened may lay pairs: once any player has opened with pairs."""
    return table.opening(seat) is not None and table.last_opening(is_pairs=True) is not None


class _Step:
    """A step with what the rules ask of it."""

    def __init__(self, turn: TurnAtTable, after: Arrangement, ruleset: Ruleset, *, is_foot: bool = False) -> None:
        self.turn, self.after, self.ruleset, self.is_foot = turn, after, ruleset, is_foot
        old = turn.table.melds
        self.one_high = ruleset.run_one_high
        self.pairs_of_old = tuple((meld, after[i] if i < len(after) else ()) for i, meld in enumerate(old))
        self.taken = [wild_taken(*pair, turn.okey, one_high=self.one_high) for pair in self.pairs_of_old]
        self.added = tuple(enumerate(after))[len(old) :]
        before, now = Counter(chain.from_iterable(old)), Counter(chain.from_iterable(after))
        self.tiles = in_order((now - before).elements())
        self.okeys = max(0, before[turn.okey] - now[turn.okey])
        to_rack = sum(taken or 0 for taken in self.taken) if ruleset.wild_retrieval is WildRetrieval.TO_RACK else 0
        self.okeys_laid = now[turn.okey] - before[turn.okey] + to_rack
        self.own = turn.table.opening(turn.seat)

    def is_added_pair(self, part: tuple[Tile, ...]) -> bool:
        """Returns whether a new part is meant as a pair."""
        return len(part) == PAIR_SIZE and self.ruleset.opening_pairs > 0

    @property
    def is_opening(self) -> bool:
        """Whether the step is an opening, legal or not."""
        return self.own is None and bool(self.added) and not self.is_foot

    @property
    def opens_with_pairs(self) -> bool:
        """Whether an opening is one with pairs."""
        return self.is_opening and all(self.is_added_pair(part) for _, part in self.added)

    @property
    def amount(self) -> int:
        """The number of pairs or the points of an opening."""
        if self.opens_with_pairs:
            return len(self.added)
        return sum(meld_points(part, self.turn.okey, one_high=self.one_high) for _, part in self.added)

    @property
    def more(self) -> int:
        """The number of tiles laid, beside those of an opening."""
        return len(self.tiles) - (sum(len(part) for _, part in self.added) if self.is_opening else 0)

    @property
    def rack(self) -> tuple[Tile, ...]:
        """The rack afterwards."""
        return in_order((*without(self.turn.rack, self.tiles), *(self.turn.okey,) * self.okeys))

    def laid(self) -> Laid:
        """Returns what the step does, which must be legal."""
        turn = self.turn
        opening = Opening(turn.seat, self.opens_with_pairs, self.amount) if self.is_opening else None
        table = Table(self.after, turn.table.openings + ((opening,) if opening else ()))
        after = replace(turn, table=table, rack=self.rack, owed=None, laid=turn.laid + self.more)
        return Laid(self.tiles, self.okeys, opening, after)


def _melds_only_grow(step: _Step) -> Iterator[Violation]:
    """Each meld of the table stays at its place, and is still one."""
    for place, ((old, new), taken) in enumerate(zip(step.pairs_of_old, step.taken, strict=True)):
        if taken is None:
            okey = step.turn.okey
            is_all_there = not Counter(fixed_faces(old, okey)) - Counter(fixed_faces(new, okey)) and len(new) > len(old)
            reason = Reason.MELD_NOT_GROUP_NOR_RUN if is_all_there else Reason.TABLE_MELD_CHANGED
            yield Violation(reason, f"table[{place}]", new or old)


def _new_ones_are_melds(step: _Step) -> Iterator[Violation]:
    for place, part in step.added:
        is_whole = is_pair(part, step.turn.okey) if step.is_added_pair(part) else _is_meld(step, part)
        if not is_whole:
            yield Violation(Reason.MELD_NOT_GROUP_NOR_RUN, f"table[{place}]", part)


def _is_meld(step: _Step, part: tuple[Tile, ...]) -> bool:
    return meld_kind(part, step.turn.okey, one_high=step.one_high) is not None


def _tiles_come_from_the_rack(step: _Step) -> Iterator[Violation]:
    foreign = in_order((Counter(step.tiles) - Counter(step.turn.rack)).elements())
    if foreign:
        yield Violation(Reason.TILE_NOT_IN_RACK, "table", foreign)


def _something_is_laid(step: _Step) -> Iterator[Violation]:
    if not step.tiles:
        yield Violation(Reason.NO_RACK_TILE_PLAYED, "table")


def _an_opening_is_large_enough(step: _Step) -> Iterator[Violation]:
    """opening_points, opening_pairs, opening_rises: in one way, and before anything else is laid."""
    if step.own or not step.tiles:
        return
    if not step.added:
        yield Violation(Reason.NOT_OPENED, "table", step.tiles)
        return
    is_mixed = not step.opens_with_pairs and any(step.is_added_pair(part) for _, part in step.added)
    if is_mixed:
        yield Violation(Reason.OPENING_MIXED, "table")
    needed = needed_to_open(step.turn.table, step.ruleset, is_pairs=step.opens_with_pairs)
    if is_mixed or step.amount >= needed:
        return
    if step.opens_with_pairs:
        yield Violation(Reason.OPENING_PAIRS_TOO_FEW, "table", (), (("pairs", step.amount), ("needed", needed)))
    else:
        yield Violation(Reason.OPENING_BELOW_THRESHOLD, "table", (), (("total", step.amount), ("threshold", needed)))


def _okeys_are_taken_after_the_opening(step: _Step) -> Iterator[Violation]:
    for place, taken in enumerate(step.taken):
        if taken and not step.own:
            yield Violation(Reason.OKEY_TAKEN_BEFORE_OPENING, f"table[{place}]")


def _melds_and_pairs_exclude_each_other(step: _Step) -> Iterator[Violation]:
    """Who opened with pairs lays no new melds; others lay pairs only beside those of a player who opened with them."""
    if not step.own:
        return
    for place, part in step.added:
        if not step.is_added_pair(part) and step.own.is_pairs:
            yield Violation(Reason.OPENED_WITH_PAIRS, f"table[{place}]", part)
        if step.is_added_pair(part) and not may_lay_pairs(step.turn.table, step.turn.seat):
            yield Violation(Reason.PAIRS_NOT_OPENED, f"table[{place}]", part)


def _the_taken_discard_is_laid(step: _Step) -> Iterator[Violation]:
    """In the step after it was taken, so that no player is left with it; by an opening, in a new meld or pair.

    A taken okey may be laid while another comes from the table to the rack: the table then has no more of them.
    """
    owed, is_anywhere = step.turn.owed, step.own or step.is_foot
    laid = step.tiles if is_anywhere else tuple(chain(*(part for _, part in step.added)))
    is_exchanged = is_anywhere and owed == step.turn.okey and step.okeys_laid > 0
    if owed is not None and owed not in laid and not is_exchanged:
        yield Violation(Reason.TAKEN_TILE_NOT_USED, "table", (owed,))


def _taken_wild_tiles_are_laid(step: _Step) -> Iterator[Violation]:
    """wild_retrieval: each in a new meld with two tiles of the rack; of a group, all missing colors are laid."""
    if step.ruleset.wild_retrieval is WildRetrieval.TO_RACK:
        return
    for place, ((_, new), taken) in enumerate(zip(step.pairs_of_old, step.taken, strict=True)):
        if taken and is_group(new, step.turn.okey) and len(new) < GROUP_MAX:
            yield Violation(Reason.JOKER_GROUP_NEEDS_BOTH_COLORS, f"table[{place}]", new)
    room = (min(part.count(step.turn.okey), max(0, len(part) - _FROM_RACK)) for _, part in step.added)
    if sum(room) < sum(taken or 0 for taken in step.taken):
        yield Violation(Reason.WILD_NOT_LAID, "table")


def _a_pair_opener_lays_few_tiles(step: _Step) -> Iterator[Violation]:
    """pair_opener_tiles."""
    limit, laid = step.ruleset.pair_opener_tiles, step.turn.laid + step.more
    has_pairs = step.own.is_pairs if step.own else step.opens_with_pairs
    if has_pairs and 0 < limit < laid:
        yield Violation(Reason.TOO_MANY_TILES_LAID, "table", (), (("count", laid), ("limit", limit)))


def _a_discard_is_left(step: _Step) -> Iterator[Violation]:
    if not step.rack:
        yield Violation(Reason.FINISH_NEEDS_DISCARD, "table")


# A Foot


def _a_foot_is_concealed(step: _Step) -> Iterator[Violation]:
    if step.own:
        yield Violation(Reason.CONCEALED_AFTER_OPENING, "table")


def _another_player_has_opened(step: _Step) -> Iterator[Violation]:
    if not step.turn.table.openings:
        yield Violation(Reason.FOOT_NEEDS_OPEN_PLAYER, "table")


def _a_foot_lays_off(step: _Step) -> Iterator[Violation]:
    if not any(Counter(new) - Counter(old) for old, new in step.pairs_of_old):
        yield Violation(Reason.FOOT_NEEDS_LAY_OFF, "table")


_Rule = Callable[[_Step], Iterator[Violation]]

RULES: Final[tuple[_Rule, ...]] = (
    _melds_only_grow,
    _new_ones_are_melds,
    _tiles_come_from_the_rack,
    _something_is_laid,
    _an_opening_is_large_enough,
    _okeys_are_taken_after_the_opening,
    _melds_and_pairs_exclude_each_other,
    _the_taken_discard_is_laid,
    _taken_wild_tiles_are_laid,
    _a_pair_opener_lays_few_tiles,
    _a_discard_is_left,
)
"""The rules of a step, in the order of reporting."""

FOOT_RULES: Final[tuple[_Rule, ...]] = (
    _melds_only_grow,
    _new_ones_are_melds,
    _tiles_come_from_the_rack,
    _a_foot_is_concealed,
    _another_player_has_opened,
    _a_foot_lays_off,
    _okeys_are_taken_after_the_opening,
    _the_taken_discard_is_laid,
    _a_discard_is_left,
)
"""The rules of a Foot, in the order of reporting."""
