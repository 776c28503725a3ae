"""Judging many plays by the same rules, each for little: every meld is read once, and looked up from then on.

A referee answers what `rules.judge` answers. What makes it quick stands here alone: a table of the melds that were read
(`Reading`), tallies in place of counters, and a play whose facts are known from those (`ReadPlay`). The rules see no
difference; tests compare the two on the same plays.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from engine.fast.identity_cache import Kept
from engine.fast.tile_counts import (
    CROWDED,
    JOKERS,
    MARK,
    MARKED,
    ONE,
    close_tally,
    counted,
    divided,
    is_within,
    moved,
    tally,
    tiles_of,
)
from engine.lazy import fact
from engine.melds import Meld, NotAMeld, ProposedMeld, as_proposed, read_meld
from engine.play import Identity, Play, identity
from engine.rules import Judgement, groups_of, judge, natural_points, points_of, violations_of
from engine.ruleset import InitialMeldSameTurnTablePlay, Ruleset
from engine.tiles import JOKER, Tile, in_order, naturals
from engine.violations import Violation

READINGS_MAX: Final = 65_536
"""Most melds that the referees of a service remember, those that are none among them: some 50 MB. By the default rules
there are about 11,000 ordered melds with up to two jokers, each of which can be sent in a few forms."""
MELDS_KEPT: Final = 4_096
"""Of how many melds a referee knows by their identity how they were read."""
REFEREES_MAX: Final = 64
"""Most rulesets that have a referee at a time."""
FEW_MELDS: Final = 8
"""Most melds that are read for the first time for an answer that takes a moment only, and most jokers in it."""
FEW_BEFORE_INITIAL_MELD: Final = 32
"""Most melds of each table for such an answer before the initial meld, when changed melds are compared with new."""

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound=Hashable)

_Totals: TypeAlias = tuple[int, int, int]
"""The tallies of the table before, of the table after, and of the rack."""

_Moved: TypeAlias = tuple[int, int, int]
"""The tallies of what came to the table, of what left it, and of what came but not from the rack; without notes."""

Verdict: TypeAlias = tuple[tuple[Violation, ...], tuple[Tile, ...], int, tuple[Tile, ...]]
"""What is said of a turn, as a Judgement does: violations, tiles played, points, and what is left of the rack. It has
no names, as to make one that has takes as long as to compare two tables."""

_IMPOSSIBLE: Final = CROWDED | MARKED
"""What tells of the tiles of a position that it cannot be, or that there are too many to tell: see Referee.verdict."""

_meld = attrgetter("meld")
_tally = attrgetter("tally")


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A meld as it was sent, with all that is asked of it again and again.

    Attributes:
        proposed: What was sent.
        meld: What the rules make of it.
        tally: Its tiles, marked if it is no meld.
        lies_as: The same for two melds that are the same (play.identity), and no others; None if it is no meld.
        known_by: The tiles by which it would be known again on the next table, if it has jokers: what they stand for,
            and nothing else, may depend on what lay there before.
    """

    proposed: ProposedMeld
    meld: Meld | NotAMeld
    tally: int
    lies_as: Hashable
    known_by: tuple[Tile, ...] | None


class Memory:
    """How many more melds can be remembered, by all who share it."""

    def __init__(self, most: int = READINGS_MAX) -> None:
        self._left = most

    @property
    def is_full(self) -> bool:
        """Whether there is no room."""
        return self._left <= 0

    def take(self) -> bool:
        """Takes room for a meld if there is any. Threads at once may take a little too much or too little."""
        self._left -= 1
        return self._left >= 0


class _Readings(dict[K, Reading]):
    """The melds that were read, by what was sent."""

    def __init__(self, ruleset: Ruleset, proposed: Callable[[K], ProposedMeld], memory: Memory) -> None:
        super().__init__()
        self._ruleset = ruleset
        self._proposed = proposed
        self._memory = memory
        self.tallies: dict[K, int] = {}
        """Their tallies: what most turns are judged by costs a look-up less."""
        self._names: dict[Identity, int] = {}
        self._new_name = count(1)

    def __missing__(self, key: K) -> Reading:
        proposed = self._proposed(key)
        reading = self.reading(proposed, read_meld(proposed, self._ruleset))
        if self._memory.take():
            self[key] = reading
            self.tallies[key] = reading.tally
        return reading

    def reading(self, proposed: ProposedMeld, meld: Meld | NotAMeld) -> Reading:
        """A reading of a meld that is known."""
        return Reading(
            proposed,
            meld,
            close_tally(proposed.tiles) + (MARK if isinstance(meld, NotAMeld) else 0),
            self._named(identity(meld)) if isinstance(meld, Meld) else None,
            in_order(proposed.tiles) if JOKER in proposed.tiles else None,
        )

    def _named(self, same: Identity) -> Hashable:
        """A number in place of an identity, as it is quicker to compare; threads may ask at the same time."""
        return self._names.setdefault(same, next(self._new_name))


class _Lying(dict[Meld, Reading]):
    """The melds of games that were asked for."""

    def __init__(self, readings: _Readings[Any], ruleset: Ruleset, memory: Memory) -> None:
        super().__init__()
        self._readings = readings
        self._ruleset = ruleset
        self._memory = memory

    def __missing__(self, meld: Meld) -> Reading:
        reading = self._readings.reading(as_proposed(meld, self._ruleset), meld)
        if self._memory.take():
            self[meld] = reading
        return reading


class Referee(Generic[K]):
    """Judges plays by one ruleset.

    Args:
        ruleset: The rules.
        proposed: What a meld is that was sent, by a key that says all of it, like its bytes. What it raises, `read`
            raises.
        memory: Room for what it remembers.
        subject: As in Play.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        proposed: Callable[[K], ProposedMeld],
        memory: Memory | None = None,
        subject: str = Play.subject,
    ) -> None:
        room = memory or Memory()
        self.ruleset = ruleset
        self._groups = groups_of(ruleset)
        self._is_plain = all(group.is_kept for group in self._groups)
        self._readings = _Readings(ruleset, proposed, room)
        self._tally_of = self._readings.tallies.__getitem__
        lying = _Lying(self._readings, ruleset, room)
        self._same_sent = Kept(self._readings.__getitem__, MELDS_KEPT)
        self._same_lying = Kept(lying.__getitem__, MELDS_KEPT)
        self.subject = subject
        faces = (*naturals(ruleset.geometry_colors), JOKER)
        self._tile_set = sum(ONE[face] * ruleset.copies_of(face) for face in faces)

    def verdict(self, before: Sequence[K], after: Sequence[K], seat: "AtTheTable") -> Verdict | None:
        """What is said of a turn whose tables are given as they were sent; None of one that begins as none can.

        Such a turn begins with a table of more than melds, or more tiles than the game has (R1). Nor is anything said
        where tables have far more tiles than any game, of which the rules have to be asked plainly.
        """
        totals = self._totals_of_known(before, after, seat) or self._totals_of_read(before, after, seat)
        return self._said(before, after, totals, seat)

    def verdict_at_once(self, before: Sequence[K], after: Sequence[K], seat: "AtTheTable") -> Verdict | None:
        """The same if it takes a moment only: no rule that searches is asked, few melds are read anew. Else None."""
        if not self._is_plain:
            return None
        if not seat.has_melded and not self._melds_in_a_moment(before, after):
            return None
        totals = self._totals_of_known(before, after, seat)
        if totals is None:
            if not self.knows_most((*before, *after)):
                return None
            totals = self._totals_of_read(before, after, seat)
        if counted(totals[0] + totals[1], JOKER) > FEW_MELDS:  # melds with jokers may have to be read again
            return None
        return self._said(before, after, totals, seat)

    def _melds_in_a_moment(self, before: Sequence[K], after: Sequence[K]) -> bool:
        """Whether the rules of the initial meld take a moment only for tables of that size."""
        if self.ruleset.initial_meld_same_turn_table_play is not InitialMeldSameTurnTablePlay.FORBIDDEN:
            return False  # then they search for the melds that serve the player best
        return max(len(before), len(after)) <= FEW_BEFORE_INITIAL_MELD

    def knows_most(self, sent: Sequence[K]) -> bool:
        """Whether all melds that were sent were read before, but for a few."""
        return len([key for key in sent if key not in self._readings]) <= FEW_MELDS

    def _totals_of_known(self, before: Sequence[K], after: Sequence[K], seat: "AtTheTable") -> _Totals | None:
        """The totals, if all melds were read before."""
        try:
            return sum(map(self._tally_of, before)), sum(map(self._tally_of, after)), tally(seat.rack)
        except KeyError:
            return None

    def _totals_of_read(self, before: Sequence[K], after: Sequence[K], seat: "AtTheTable") -> _Totals:
        return _totals(self.read(before), self.read(after), seat)

    def _said(self, before: Sequence[K], after: Sequence[K], totals: _Totals, seat: "AtTheTable") -> Verdict | None:
        lay, lie, own = totals
        position = lay + own
        if position & _IMPOSSIBLE or lie & CROWDED or not is_within(position, self._tile_set):
            return None
        exchange = moved(lie, lay, own)
        if self._is_plainly_legal(lie, exchange, seat):
            played, left = divided(seat.rack, exchange[0])
            return (), played, natural_points(played), left
        play = SentPlay((before, after), totals, exchange, seat, self)
        return violations_of(play, self._groups), play.played, points_of(play), play.rack_left

    def read(self, sent: Iterable[K]) -> list[Reading]:
        """The readings of melds that were sent."""
        return list(map(self._readings.__getitem__, sent))

    def read_same(self, sent: Collection[K]) -> list[Reading]:
        """The same, for a caller who takes care that melds which are sent again are the very same objects."""
        return self._same_sent.each(sent)

    def lying(self, melds: Collection[Meld]) -> list[Reading]:
        """The readings of melds that lie on the table of a game."""
        return self._same_lying.each(melds)

    def play(self, before: Sequence[Reading], after: Sequence[Reading], seat: "AtTheTable") -> Play:
        """A play to judge: the table when the turn began, all melds, and as it shall lie."""
        totals = lay, lie, own = _totals(before, after, seat)
        if (lay + own | lie) & CROWDED:
            return self._plain_play(before, after, seat)
        return ReadPlay((before, after), totals, moved(lie, lay, own), seat, self)

    def plainly_legal(
        self, before: Sequence[Reading], after: Sequence[Reading], seat: "AtTheTable"
    ) -> Judgement | None:
        """What the rules say of a play that is plainly legal; None of others, of which they have to be asked."""
        lay, lie, own = _totals(before, after, seat)
        exchange = moved(lie, lay, own)
        if (lay + own | lie) & CROWDED or not self._is_plainly_legal(lie, exchange, seat):
            return None
        played, left = divided(seat.rack, exchange[0])
        lying = self.as_known(before, after) if lay & JOKERS else after
        return Judgement((), tuple(map(_meld, lying)), played, left, natural_points(played))

    def _is_plainly_legal(self, lie: int, exchange: _Moved, seat: "AtTheTable") -> bool:
        """Whether a turn is legal by rules that tell cheaply that they are kept; `lie` is the tally of the table after.

        No more is looked at than what is on the tables in all, so it is for players who have melded, and draw and pull
        nothing. What a joker counts is a longer story.
        """
        if not self._is_plain or lie & MARKED:
            return False
        came, missing, foreign = exchange
        if missing or foreign or not came or came & JOKERS:
            return False
        return seat.has_melded and seat.drawn is None and seat.river_index is None

    def _plain_play(self, before: Sequence[Reading], after: Sequence[Reading], seat: "AtTheTable") -> Play:
        melds, proposed = tuple(map(_meld, before)), tuple([reading.proposed for reading in after])
        return Play(melds, proposed, ruleset=self.ruleset, subject=self.subject, **seat._asdict())

    def as_known(self, before: Sequence[Reading], after: Sequence[Reading]) -> Sequence[Reading]:
        """The table after, with what is remembered of jokers whose melds lay there before but are sent otherwise."""
        lay = [reading for reading in before if reading.known_by is not None]
        lies_as = {reading.known_by: reading.lies_as for reading in lay}
        lie = [reading for reading in after if reading.known_by in lies_as]
        if not [reading for reading in (*lay, *lie) if reading.lies_as != lies_as[reading.known_by]]:
            return after
        sent = tuple([reading.proposed for reading in lie])
        known = Play(tuple(map(_meld, lay)), sent, (), has_melded=True, ruleset=self.ruleset).readings
        remembered = iter([self._readings.reading(*both) for both in zip(sent, known, strict=True)])
        return [next(remembered) if reading.known_by in lies_as else reading for reading in after]

    def judge(self, play: Play) -> Judgement:
        """What the rules say of a play."""
        return judge(play, self._groups)


class Referees(Generic[R, K]):
    """The referees of the rulesets that are asked for. Threads may ask at the same time.

    Args:
        ruleset: The rules by what they are asked for by. What it raises, `of` raises.
        proposed: As of Referee.
        subject: As of Referee.
        most: Most melds that they remember together. When there is no more room, all are replaced.
    """

    def __init__(
        self,
        ruleset: Callable[[R], Ruleset],
        proposed: Callable[[K], ProposedMeld],
        subject: str = Play.subject,
        most: int = READINGS_MAX,
    ) -> None:
        self._ruleset = ruleset
        self._proposed = proposed
        self._subject = subject
        self._most = most
        self._memory = Memory(most)
        self._referees: dict[R, Referee[K]] = {}

    def of(self, key: R) -> Referee[K]:
        """The referee of a ruleset."""
        referee = self._referees.get(key)
        if referee is None or self._memory.is_full:
            referee = self._appoint(key, self._ruleset(key))
        return referee

    def known(self, key: R) -> Referee[K] | None:
        """The referee of a ruleset if `of` would not have to appoint one. Takes no time, and raises nothing."""
        return None if self._memory.is_full else self._referees.get(key)

    def _appoint(self, key: R, ruleset: Ruleset) -> Referee[K]:
        if self._memory.is_full or len(self._referees) >= REFEREES_MAX:
            self._memory, self._referees = Memory(self._most), {}
        memory, referees = self._memory, self._referees  # that belong together, if another thread replaces them
        referees[key] = referee = Referee(ruleset, self._proposed, memory, self._subject)
        return referee


class AtTheTable(NamedTuple):
    """Who plays.

    Attributes:
        rack: Their tiles, in ascending order.
        has_melded: As in Play.
        river: As in Play.
        river_index: As in Play.
        drawn: As in Play.
        calls_rummikub: As in Play.
    """

    rack: tuple[Tile, ...]
    has_melded: bool
    river: tuple[Tile, ...] = ()
    river_index: int | None = None
    drawn: Tile | None = None
    calls_rummikub: bool = False


def _totals(before: Sequence[Reading], after: Sequence[Reading], seat: AtTheTable) -> _Totals:
    return sum(map(_tally, before)), sum(map(_tally, after)), tally(seat.rack)


class ReadPlay(Play):
    """A play of melds that were read, whose facts are known from that.

    What nearly every rule asks is made at once, the rest when it is asked for.

    Args:
        tables: The readings of the table before, and of the table after.
        totals: Their tallies, and that of the rack. They are not crowded.
        exchange: What came to the table and left it.
        seat: Who plays.
        referee: Whose rules are asked.
    """

    referee: Referee[Any]
    tables: tuple[Sequence[Any], Sequence[Any]]
    lay: int
    lie: int
    came: int

    def __init__(
        self,
        tables: tuple[Sequence[Any], Sequence[Any]],
        totals: _Totals,
        exchange: _Moved,
        seat: AtTheTable,
        referee: Referee[Any],
    ) -> None:
        came, missing, foreign = exchange
        lay, lie, _ = totals
        ruleset = referee.ruleset
        facts = vars(self)  # a play is frozen
        facts["referee"], facts["ruleset"], facts["subject"] = referee, ruleset, referee.subject
        facts["tables"], facts["came"] = tables, came
        facts["lay"], facts["lie"] = lay, lie
        rack, facts["has_melded"], facts["river"], river_index, facts["drawn"], facts["calls_rummikub"] = seat
        facts["rack"], facts["river_index"] = rack, river_index
        facts["missing"] = tiles_of(missing) if missing else ()
        if not lie & MARKED:
            facts["not_melds"] = ()
        if river_index is None:
            facts["played"], facts["rack_left"] = divided(rack, came - foreign)
            facts["unowned"] = (
                tuple([t for t in tiles_of(foreign) if t < JOKER or ruleset.copies_of(t)]) if foreign else ()
            )

    @fact
    def before(self) -> Sequence[Reading]:
        """The readings of the melds in play."""
        return self.tables[0]

    @fact
    def sent(self) -> Sequence[Reading]:
        """The readings of the melds as the player wants them, without what is remembered of jokers."""
        return self.tables[1]

    @fact
    def after(self) -> Sequence[Reading]:
        """The readings of the melds as the player wants them."""
        return self.referee.as_known(self.before, self.sent) if self.lay & JOKERS else self.sent

    @fact
    def table_before(self) -> tuple[Meld, ...]:
        """See Play."""
        return tuple(map(_meld, self.before))

    @fact
    def table_after(self) -> tuple[ProposedMeld, ...]:
        """See Play."""
        return tuple([reading.proposed for reading in self.after])

    @fact
    def readings(self) -> tuple[Meld | NotAMeld, ...]:
        """See Play."""
        return tuple(map(_meld, self.after))

    @fact
    def not_melds(self) -> tuple[tuple[int, NotAMeld], ...]:
        """See Play. What is remembered of jokers may make a meld of what is none by itself."""
        none = [(place, reading) for place, reading in enumerate(self.sent) if reading.lies_as is None]
        if self.lay & JOKERS and [reading for _, reading in none if reading.known_by is not None]:
            none = [(place, reading) for place, reading in enumerate(self.after) if reading.lies_as is None]
        return tuple([(place, reading.meld) for place, reading in none if isinstance(reading.meld, NotAMeld)])

    @fact
    def is_all_melds(self) -> bool:
        """See Play."""
        return not self.not_melds

    def lying_of(self, t: Tile) -> int:
        """See Play."""
        return counted(self.lie, t)

    @fact
    def added(self) -> Counter[Tile]:
        """See Play."""
        return Counter(tiles_of(self.came))

    @fact
    def new_and_changed(self) -> tuple[list[Reading], list[Reading]]:
        """What lies now and did not before, no melds among it, and what lay before and does not now."""
        return _new_and_changed(self.before, self.after)

    @fact
    def new_melds(self) -> tuple[Meld, ...]:
        """See Play."""
        return tuple([reading.meld for reading in self.new_and_changed[0] if isinstance(reading.meld, Meld)])

    @fact
    def changed_melds(self) -> tuple[Meld, ...]:
        """See Play."""
        return tuple(map(_meld, self.new_and_changed[1]))


class SentPlay(ReadPlay):
    """The same of melds as they were sent (`tables`), which are read when they are asked for."""

    @fact
    def before(self) -> Sequence[Reading]:
        """See ReadPlay."""
        return self.referee.read(self.tables[0])

    @fact
    def sent(self) -> Sequence[Reading]:
        """See ReadPlay."""
        return self.referee.read(self.tables[1])


def _new_and_changed(before: Sequence[Reading], after: Sequence[Reading]) -> tuple[list[Reading], list[Reading]]:
    was, now = set(before), set(after)
    if len(was) < len(before) or len(now) < len(after):
        return _unpaired(after, before), _unpaired(before, after)
    new = [reading for reading in after if reading not in was]
    changed = [reading for reading in before if reading not in now]
    moved_as = {reading.lies_as for reading in (*new, *changed)}
    if [reading for reading in after if reading.lies_as in moved_as and reading in was]:  # a like group lies as it did
        return _unpaired(after, before), _unpaired(before, after)
    return _unpaired(new, changed), _unpaired(changed, new)


def _unpaired(ones: Sequence[Reading], others: Sequence[Reading]) -> list[Reading]:
    """The readings that lie as none of the others does, one for one, no melds among them."""
    left = [reading.lies_as for reading in others]
    found = []
    for reading in ones:
        if reading.lies_as is not None and reading.lies_as in left:
            left.remove(reading.lies_as)
        else:
            found.append(reading)
    return found
