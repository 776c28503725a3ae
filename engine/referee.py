"""Judging many plays by the same rules, each for little: every meld is read once, and looked up from then on.

A referee answers what `rules.judge` answers. What makes it quick stands here alone: a table of the melds that were read
(`Reading`), tallies in place of counters, and a play whose facts are known from those (`ReadPlay`). The rules see no
difference; tests compare the two on the same plays.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

from engine.facts import fact
from engine.melds import Meld, NotAMeld, ProposedMeld, as_proposed, read_meld
from engine.play import Identity, Play, identity, sent_as
from engine.rules import Judgement, groups_of, judge, points_of, violations_of
from engine.ruleset import Ruleset
from engine.tally import JOKERS, ONE, beyond, counted, divided, is_within, tally, tiles_of
from engine.tiles import COLORS, JOKER, LAST_TILE, Tile, naturals, value_of
from engine.violations import Violation

READINGS_MAX: Final = 65_536
"""Most melds that the referees of a service remember, those that are none among them: some 50 MB. By the default rules
there are about 11,000 ordered melds with up to two jokers, each of which can be sent in a few forms."""
REFEREES_MAX: Final = 64
"""Most rulesets that have a referee at a time."""
FEW_MELDS: Final = 12
"""Most melds that are read for a verdict that takes a moment only."""

_VALUES: Final = [value_of(Tile(t)) if Tile(t) in naturals(len(COLORS)) else 0 for t in range(LAST_TILE + 1)]

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound=Hashable)

_NO_TILES: Final = Counter[Tile]()

_meld = attrgetter("meld")
_tally = attrgetter("tally")
_lies_as = attrgetter("lies_as")


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A meld as it was sent, with all that is asked of it again and again.

    Attributes:
        proposed: What was sent.
        meld: What the rules make of it.
        tally: Its tiles.
        lies_as: The same for two melds that are the same (play.identity), and no others; None if it is no meld.
        known_by: How it would be known again on the next table, if it has jokers: what they stand for, and nothing
            else, may depend on what lay there before.
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
        """The tallies of those that are melds: what most turns are judged by costs a look-up less."""
        self._names: dict[Identity, int] = {}
        self._new_name = count(1)

    def __missing__(self, key: K) -> Reading:
        proposed = self._proposed(key)
        reading = self.reading(proposed, read_meld(proposed, self._ruleset))
        if self._memory.take():
            self[key] = reading
            if reading.lies_as is not None:
                self.tallies[key] = reading.tally
        return reading

    def reading(self, proposed: ProposedMeld, meld: Meld | NotAMeld) -> Reading:
        """A reading of a meld that is known."""
        return Reading(
            proposed,
            meld,
            tally(proposed.tiles),
            self._named(identity(meld)) if isinstance(meld, Meld) else None,
            sent_as(proposed.tiles, self._ruleset) if JOKER in proposed.tiles else None,
        )

    def _named(self, same: Identity) -> Hashable:
        """A number in place of an identity, as it is quicker to compare; threads may ask at the same time."""
        return self._names.setdefault(same, next(self._new_name))


class _Lying(dict[Meld, Reading]):
    """The melds of games that were asked for."""

    def __init__(self, readings: _Readings[Any], colors: int, memory: Memory) -> None:
        super().__init__()
        self._readings = readings
        self._colors = colors
        self._memory = memory

    def __missing__(self, meld: Meld) -> Reading:
        reading = self._readings.reading(as_proposed(meld, self._colors), meld)
        if self._memory.take():
            self[meld] = reading
        return reading


class Verdict(NamedTuple):
    """What is said of a turn: as Judgement, but for the table."""

    violations: tuple[Violation, ...]
    tiles_played: tuple[Tile, ...]
    points: int
    rack_left: tuple[Tile, ...]


class _Totals(NamedTuple):
    """The tallies of the table before, of the table after, and of the rack."""

    lay: int
    lie: int
    own: int


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
        self._lying = _Lying(self._readings, ruleset.geometry_colors, room)
        self._subject = subject
        faces = (*naturals(ruleset.geometry_colors), JOKER)
        self._tile_set = sum(ONE[face] * ruleset.copies_of(face) for face in faces)

    def verdict(self, before: Sequence[K], after: Sequence[K], seat: "AtTheTable") -> Verdict | None:
        """What is said of a turn whose tables are given as they were sent; None of one that begins as none can.

        Such a turn begins with a table of more than melds, or more tiles than the game has (R1).
        """
        own = tally(seat.rack)
        accepted = self._accepted(before, after, own, seat) if self._is_plain else None
        if accepted:
            return accepted
        lay, lie = self.read(before), self.read(after)
        totals = _Totals(sum(map(_tally, lay)), sum(map(_tally, lie)), own)
        if not (all(map(_lies_as, lay)) and is_within(totals.lay + own, self._tile_set)):
            return None
        return self._told(self._play(lay, lie, totals, seat))

    def _accepted(self, before: Sequence[K], after: Sequence[K], own: int, seat: "AtTheTable") -> Verdict | None:
        """What is said of most legal turns, by rules that tell quickly that they are kept; None of others.

        No more is looked at than what is on the tables in all, so it is for players who have melded, and draw and pull
        nothing.
        """
        if not seat.has_melded or seat.drawn is not None or seat.river_index is not None:
            return None
        tally_of = self._readings.tallies.__getitem__
        try:
            lay, lie = sum(map(tally_of, before)), sum(map(tally_of, after))
        except KeyError:  # no meld, or one that was not read yet
            return None
        came = lie - lay
        if not (is_within(lay, lie) and is_within(came, own) and is_within(lay + own, self._tile_set)):
            return None
        if not came or came & JOKERS:  # what a joker counts is a longer story
            return None
        played, left = divided(seat.rack, came)
        return Verdict((), played, sum([_VALUES[t] for t in played]), left)

    def is_quick(self, before: Sequence[K], after: Sequence[K], seat: "AtTheTable") -> bool:
        """Whether the verdict on a turn takes a moment only: no rule that searches is asked, few melds are read.

        Those are melds that were not read yet, and melds with jokers, which may have to be read again.
        """
        if not self._is_plain or not seat.has_melded:
            return False
        known = self._readings
        to_read = [key for key in (*before, *after) if key not in known or known[key].known_by is not None]
        return len(to_read) <= FEW_MELDS

    def _told(self, play: "ReadPlay") -> Verdict:
        violations = tuple(violations_of(play, self._groups))
        return Verdict(violations, play.played, points_of(play), play.rack_left)

    def read(self, sent: Iterable[K]) -> list[Reading]:
        """The readings of melds that were sent."""
        return list(map(self._readings.__getitem__, sent))

    def lying(self, melds: Iterable[Meld]) -> list[Reading]:
        """The readings of melds that lie on the table of a game."""
        return list(map(self._lying.__getitem__, melds))

    def play(self, before: Sequence[Reading], after: Sequence[Reading], seat: "AtTheTable") -> "ReadPlay":
        """A play to judge: the table when the turn began, all melds, and as it shall lie."""
        totals = _Totals(sum(map(_tally, before)), sum(map(_tally, after)), tally(seat.rack))
        return self._play(before, after, totals, seat)

    def _play(
        self, before: Sequence[Reading], after: Sequence[Reading], totals: _Totals, seat: "AtTheTable"
    ) -> "ReadPlay":
        play = ReadPlay((before, self._as_known(before, after)), totals, seat, self.ruleset)
        vars(play)["subject"] = self._subject
        return play

    def _as_known(self, before: Sequence[Reading], after: Sequence[Reading]) -> Sequence[Reading]:
        """What is sent, with what is remembered of jokers whose melds lay there before but read otherwise."""
        lay = [reading for reading in before if reading.known_by is not None]
        if not lay:
            return after
        lies_as = {reading.known_by: reading.lies_as for reading in lay}
        lie = [reading for reading in after if reading.known_by in lies_as]
        if not [reading for reading in (*lay, *lie) if reading.lies_as != lies_as[reading.known_by]]:
            return after
        sent = tuple([reading.proposed for reading in lie])
        known = Play(tuple(map(_meld, lay)), sent, (), has_melded=True, ruleset=self.ruleset).readings
        remembered = iter([self._readings.reading(*both) for both in zip(sent, known, strict=True)])
        return [next(remembered) if reading.known_by in lies_as else reading for reading in after]

    def judge(self, play: "ReadPlay") -> Judgement:
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


class ReadPlay(Play):
    """A play of melds that were read, whose facts are known from that.

    What nearly every rule asks is made at once, the rest when it is asked for.

    Args:
        tables: The melds in play, and the melds as the player wants them.
        totals: Their tallies, and that of the rack.
        seat: Who plays.
        ruleset: The rules.
    """

    before: Sequence[Reading]
    after: Sequence[Reading]
    lay: int
    lie: int
    own: int

    def __init__(
        self, tables: tuple[Sequence[Reading], Sequence[Reading]], totals: _Totals, seat: AtTheTable, ruleset: Ruleset
    ) -> None:
        before, after = tables
        lay, lie, own = totals
        facts = vars(self)  # a play is frozen
        facts["before"], facts["after"] = before, after
        facts["lay"], facts["lie"], facts["own"] = lay, lie, own
        facts["rack"], facts["has_melded"] = seat.rack, seat.has_melded
        facts["river"], facts["river_index"] = seat.river, seat.river_index
        facts["drawn"], facts["calls_rummikub"] = seat.drawn, seat.calls_rummikub
        facts["ruleset"] = ruleset
        facts["readings"] = readings = tuple(map(_meld, after))
        facts["is_all_melds"] = is_all_melds = all(map(_lies_as, after))
        if is_all_melds:
            facts["melds"] = readings
        nothing_missing = is_within(lay, lie)
        if nothing_missing:
            facts["missing"] = _NO_TILES
        if seat.river_index is None:
            added = beyond(lie, lay)
            foreign = beyond(added, own)
            facts["played"], facts["rack_left"] = divided(seat.rack, added - foreign)
            facts["unowned"] = tuple([t for t in tiles_of(foreign) if ruleset.copies_of(t)]) if foreign else ()
            facts["adds_up"] = bool(added) and not foreign and nothing_missing

    @fact
    def table_before(self) -> tuple[Meld, ...]:
        """See Play."""
        return tuple(map(_meld, self.before))

    @fact
    def table_after(self) -> tuple[ProposedMeld, ...]:
        """See Play."""
        return tuple([reading.proposed for reading in self.after])

    def lying_of(self, t: Tile) -> int:
        """See Play."""
        return counted(self.lie, t)

    @fact
    def missing(self) -> Counter[Tile]:
        """See Play."""
        return Counter(tiles_of(beyond(self.lay, self.lie)))

    @fact
    def added(self) -> Counter[Tile]:
        """See Play."""
        return Counter(tiles_of(beyond(self.lie, self.lay)))

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


def _new_and_changed(before: Sequence[Reading], after: Sequence[Reading]) -> tuple[list[Reading], list[Reading]]:
    was, now = set(before), set(after)
    if len(was) < len(before) or len(now) < len(after):
        return _unpaired(after, before), _unpaired(before, after)
    new = [reading for reading in after if reading not in was]
    changed = [reading for reading in before if reading not in now]
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
