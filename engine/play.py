"""A play to judge, and what the rules ask of it: what was played, which melds are new, which were changed."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from engine.effort import Effort, TooComplexError
from engine.initial_meld import best_for_the_player, from_left_to_right, suffices, ways_to_meld
from engine.lazy import fact
from engine.melds import Meld, MeldKind, NotAMeld, ProposedMeld, as_proposed, read_meld
from engine.ruleset import InitialMeldSameTurnTablePlay, JokerRetrievalMode, Ruleset, SetOrder
from engine.tiles import JOKER, Tile, in_order

R = TypeVar("R")

INITIAL_STEPS: Final = 40_000
"""Steps that the search of the initial meld may take."""

STEPS: Final = 50_000
"""Steps that all rules together may take beside it. Most take under half a microsecond: a play takes some 50 ms."""


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

    @fact
    def pulled(self) -> tuple[Tile, ...]:
        """The tiles pulled from the River, oldest first: the key, which must be played, then the plunder."""
        return () if self.river_index is None else self.river[self.river_index :]

    @property
    def plunder(self) -> Counter[Tile]:
        """The tiles pulled from the River that go to the rack and may not be played in this turn."""
        return Counter(self.pulled[1:])

    @fact
    def playable(self) -> Counter[Tile]:
        """The tiles that the player may play: those of the rack, and the key."""
        return Counter(self.rack + self.pulled[:1])

    @fact
    def tiles_before(self) -> Counter[Tile]:
        """The tiles on the table when the turn began."""
        return Counter(t for meld in self.table_before for t in meld.tiles)

    @fact
    def tiles_after(self) -> Counter[Tile]:
        """The tiles on the table as it shall lie."""
        return Counter(t for meld in self.table_after for t in meld.tiles)

    def lying_of(self, t: Tile) -> int:
        """How often a face is on the table as it shall lie."""
        return self.tiles_after[t]

    @fact
    def missing(self) -> tuple[Tile, ...]:
        """Tiles that left the table, in ascending order."""
        return in_order((self.tiles_before - self.tiles_after).elements())

    @fact
    def added(self) -> Counter[Tile]:
        """Tiles that came to the table, wherever from."""
        return self.tiles_after - self.tiles_before

    @fact
    def tiles_played(self) -> Counter[Tile]:
        """Tiles that came from the rack."""
        return self.added & self.playable

    @fact
    def plunder_played(self) -> Counter[Tile]:
        """Tiles of the plunder that came to the table all the same."""
        return (self.added - self.playable) & self.plunder

    @fact
    def unowned(self) -> tuple[Tile, ...]:
        """Tiles that came to the table but not from the rack; a joker of a game without jokers is no tile at all."""
        foreign = self.added - self.playable - self.plunder
        return tuple(t for t in in_order(foreign.elements()) if self.ruleset.copies_of(t))

    @fact
    def duplicated(self) -> tuple[Tile, ...]:
        """Those of them that the player has too, but not so often, or of which more lie than there are (R1, R17)."""
        copies_of = self.ruleset.copies_of
        return tuple([t for t in self.unowned if t in self.rack or self.lying_of(t) > copies_of(t)])

    @fact
    def played(self) -> tuple[Tile, ...]:
        """The tiles that came from the rack, in ascending order."""
        return in_order(self.tiles_played.elements())

    @fact
    def is_all_melds(self) -> bool:
        """Whether all that lies is melds."""
        return len(self.melds) == len(self.readings)

    @fact
    def rack_left(self) -> tuple[Tile, ...]:
        """The rack after the play, in ascending order; the plunder is on it then."""
        return in_order((Counter(self.rack + self.pulled) - self.tiles_played).elements())

    @fact
    def readings(self) -> tuple[Meld | NotAMeld, ...]:
        """table_after as the rules read it. A meld of the old table sent without kind and faces keeps what it has.

        Of two melds alike that is the one that has to be known to be read, whatever the other says.
        """
        known, spare = defaultdict(list), defaultdict(list)
        for meld in self.table_before:
            known[in_order(meld.tiles)].append(meld)
        read: dict[int, Meld | NotAMeld] = {}
        for place in sorted(range(len(self.table_after)), key=lambda place: _says_little(self.table_after[place])):
            sent = self.table_after[place]
            tiles = in_order(sent.tiles)
            same = _known_as(sent, known[tiles], self.ruleset)
            read[place] = read_meld(_with_all_of(sent, same), self.ruleset)
            if same and JOKER in tiles and read[place] == read_meld(sent, self.ruleset):
                spare[tiles].append(same)
            elif isinstance(read[place], NotAMeld):
                like = _known_as(sent, spare[tiles], self.ruleset)
                if like or same:  # else it would be read as it was
                    read[place] = read_meld(_with_all_of(sent, like), self.ruleset)
        return tuple(read[place] for place in range(len(read)))

    @fact
    def melds(self) -> tuple[Meld, ...]:
        """The proposed melds that are melds."""
        return tuple([reading for reading in self.readings if isinstance(reading, Meld)])

    @fact
    def not_melds(self) -> tuple[tuple[int, NotAMeld], ...]:
        """The proposed melds that are none, with their places."""
        return tuple([(place, meld) for place, meld in enumerate(self.readings) if isinstance(meld, NotAMeld)])

    @fact
    def kept_and_new(self) -> tuple[tuple[Meld, ...], tuple[Meld, ...]]:
        """The melds of table_after: those of table_before, and the others."""
        before = Counter(identity(meld) for meld in self.table_before)
        kept, new = [], []
        for meld in self.melds:
            lies_as = identity(meld)
            if before[lies_as]:
                before[lies_as] -= 1
                kept.append(meld)
            else:
                new.append(meld)
        return tuple(kept), tuple(new)

    @fact
    def new_melds(self) -> tuple[Meld, ...]:
        """The melds of table_after that were not on the table."""
        return self.kept_and_new[1]

    @fact
    def changed_melds(self) -> tuple[Meld, ...]:
        """The melds of table_before that are not on table_after."""
        kept = Counter(identity(meld) for meld in self.kept_and_new[0])
        changed = []
        for meld in self.table_before:
            lies_as = identity(meld)
            if kept[lies_as]:
                kept[lies_as] -= 1
            else:
                changed.append(meld)
        return tuple(changed)

    @property
    def initial_meld(self) -> tuple[Meld, ...]:
        """The new melds of own tiles that count as the initial meld. Raises TooComplexError."""
        if self._initial_meld is None:
            raise TooComplexError
        return self._initial_meld

    @fact
    def _initial_meld(self) -> tuple[Meld, ...] | None:
        """The same; None where finding it takes more steps than there are, so that nobody tries twice."""
        same_turn = self.ruleset.initial_meld_same_turn_table_play is InitialMeldSameTurnTablePlay.ALLOWED
        if not same_turn or self.unowned:
            return from_left_to_right(self.new_melds, self.playable)
        with suppress(TooComplexError):
            return best_for_the_player(self.melds, self.tiles_played, self.ruleset, Effort(INITIAL_STEPS))
        return None

    @fact
    def may_use_table(self) -> bool:
        """Whether the player has melded, or does so in this turn and may go on with the table (R33, R34).

        Raises TooComplexError.
        """
        if self.has_melded:
            return True
        same_turn = self.ruleset.initial_meld_same_turn_table_play is InitialMeldSameTurnTablePlay.ALLOWED
        return same_turn and not self.unowned and suffices(self.initial_meld, self.ruleset)

    @fact
    def effort(self) -> Effort:
        """The steps that all rules together may take."""
        return Effort(STEPS)

    def begin(self) -> None:
        """Gives the rules all steps, for a play that may have been judged before."""
        vars(self)["effort"] = Effort(STEPS)

    def ways_to_meld(self) -> Iterator[tuple[Meld, ...]]:
        """Yields the ways to make the initial meld in a turn in which the table is used too.

        Raises TooComplexError.
        """
        if self.has_melded or not self.may_use_table:
            return
        contested = {*self.tiles_before}
        if self.ruleset.joker_retrieval_mode is not JokerRetrievalMode.FREE:
            contested.update(face for meld in self.table_before for faces in meld.joker_faces for face in faces)
        yield from ways_to_meld(self.melds, self.tiles_played, contested, self.ruleset, self.effort)

    def least_wrong(self, ask: "Callable[[Play], tuple[R, ...]]") -> tuple[R, ...]:
        """What is wrong with the play, or with what lies beside the initial meld, which is of the rack.

        If nothing is in one of the ways to make that, the answer is nothing. Raises TooComplexError.
        """
        found = ask(self)
        if not found:
            for melds in self.ways_to_meld():
                self.effort.take(16 * len(self.melds))
                found = ask(self.beside(melds))
                if not found:
                    break
        return found

    def beside(self, initial_meld: tuple[Meld, ...]) -> "Play":
        """What is left of the play, by a player who has melded, without some melds of the tiles played."""
        melds, tiles = list(self.melds), +self.playable
        for meld in initial_meld:
            melds.remove(meld)
            tiles -= Counter(meld.tiles)
        after = tuple([as_proposed(meld, self.ruleset) for meld in melds])
        rack = in_order(tiles.elements())
        rest = Play(self.table_before, after, rack, has_melded=True, ruleset=self.ruleset, subject=self.subject)
        facts = vars(rest)
        facts["effort"] = self.effort
        facts["readings"] = tuple(melds)  # they are read already, and mean what they meant
        return rest

    @fact
    def is_settled(self) -> bool:
        """Whether all that lies is melds, nothing is missing, and what is new is the player's own."""
        return not self.missing and not self.unowned and self.is_all_melds and not self.plunder_played


def _says_little(meld: ProposedMeld) -> tuple[bool, bool]:
    """The order in which melds are known again: what says most finds its own first."""
    return not meld.declared, meld.kind is None


def _known_as(meld: ProposedMeld, known: list[Meld], ruleset: Ruleset) -> Meld | None:
    """Which of the melds that its tiles were on the table and that are left a meld is; it is left no more.

    That is the first in the order in which they are sent, else the first in another order that means nothing.
    """
    candidates = sorted(known, key=lambda old: old.tiles != meld.tiles)
    same = next((old for old in candidates if _may_be(meld, old) and _lies_as(meld, old, ruleset)), None)
    if same is not None:
        known.remove(same)
    return same


def _with_all_of(meld: ProposedMeld, same: Meld | None) -> ProposedMeld:
    """A meld with what it states, else with what it was on the table."""
    if same is None:
        return meld
    if meld.declared or not _stands_for_one_face_each(same):
        return ProposedMeld(meld.tiles, same.kind, meld.declared)
    return ProposedMeld(meld.tiles, same.kind, tuple(faces[0] for faces in same.joker_faces))


def _may_be(meld: ProposedMeld, old: Meld) -> bool:
    """Whether a meld of the old table's tiles says nothing else than that it is the old one."""
    faces = in_order(face for faces in old.joker_faces for face in faces)
    return meld.kind in {None, old.kind} and (not meld.declared or in_order(meld.declared) == faces)


def _lies_as(meld: ProposedMeld, old: Meld, ruleset: Ruleset) -> bool:
    """Whether the order in which a meld is sent says nothing else than that it is an old one of the same tiles.

    The order of a group has no meaning; that of one numbered tile and jokers has, unless their kind is stated.
    """
    if meld.tiles == old.tiles or ruleset.set_order is SetOrder.CANONICALISE:
        return True
    is_a_group = meld.kind is MeldKind.GROUP or len(meld.tiles) - meld.tiles.count(JOKER) > 1
    return old.kind is MeldKind.GROUP and is_a_group


def _stands_for_one_face_each(meld: Meld) -> bool:
    """Whether it is known, or declared, what each joker of a meld stands for."""
    return all(len(faces) == 1 for faces in meld.joker_faces)


Identity = tuple[MeldKind, tuple[Tile, ...], tuple[tuple[Tile, ...], ...]]
"""What makes two melds the same."""


def identity(meld: Meld) -> Identity:
    """What makes two melds the same: the order of a group has no meaning, that of a run has."""
    if meld.kind is MeldKind.RUN:
        return meld.kind, meld.tiles, ()
    return meld.kind, in_order(meld.tiles), tuple(sorted(meld.joker_faces))
