"""Judges plays by one ruleset with cached melds and tile counts.

A FastJudge returns what `melding.rules.judge` returns; tests compare the two on the same plays. Plays that are clearly
legal by their tile counts alone need no rule. For all others the rules run unchanged on a FastPlay.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from engine.melding.fast.fast_play import FastPlay, PlayerState
from engine.melding.fast.read_melds import CACHED_MELDS_MAX, CacheBudget, PlayMelds, counts
from engine.melding.fast.tile_counts import (
    FLAGGED,
    JOKER_COUNTS,
    ONE,
    OVERFLOW,
    count_of,
    counts_of,
    exchange,
    is_within,
    split,
    tiles_of,
)
from engine.melding.melds import Meld
from engine.melding.play import STEPS, BasePlay, Play
from engine.melding.rules import RuleGroup, groups_of, natural_points, points_of, violations_of
from engine.melding.ruleset import InitialMeldSameTurnTablePlay, JokerKinds, Ruleset
from engine.melding.table import Melds
from engine.tiles import JOKER, JOKERS, Tile, naturals
from engine.violations import Violation

RULESETS_MAX: Final = 64
"""Most rulesets that have a FastJudge at a time."""
QUICK_MELDS_MAX: Final = 8
"""Most new melds, and most jokers, in a play that is judged quickly."""
QUICK_INITIAL_TABLE_MAX: Final = 32
"""Most melds of each table in a play that is judged quickly before the initial meld. All pairs may be compared."""

B = TypeVar("B")
A = TypeVar("A")
R = TypeVar("R", bound=Hashable)

_UNUSABLE: Final = OVERFLOW | FLAGGED
"""The bits of a position's tile counts that rule out a fast judgement."""


@dataclass(slots=True, eq=False)  # not frozen: that takes three times as long to create
class Verdict:
    """The result of judging a play. melding.rules.Judgement documents the first four attributes.

    Attributes:
        play: The play that the rules have seen; None if it was clearly legal.
    """

    violations: tuple[Violation, ...]
    tiles_played: tuple[Tile, ...]
    points: int
    rack_left: tuple[Tile, ...]
    play: BasePlay | None = None


def verdict_of(play: BasePlay, groups: Sequence[RuleGroup], steps: int = STEPS) -> Verdict:
    """Returns the verdict of the rules on a play. They may take some steps (melding.rules.violations_of)."""
    return Verdict(violations_of(play, groups, steps), play.played, points_of(play), play.rack_left, play)


class FastJudge(Generic[B, A]):
    """Judges plays by one ruleset.

    Args:
        ruleset: The rules.
        melds: The caches of melds.
        subject: The name of the table after in violations.
    """

    def __init__(self, ruleset: Ruleset, melds: PlayMelds[B, A], subject: str = Play.subject) -> None:
        self.ruleset = ruleset
        self._melds = melds
        self._subject = subject
        self._count_before, self._count_after = melds.before.total, melds.after.total
        self.read: Final = melds.after.read
        self._groups = groups_of(ruleset)
        self._has_quick_rules = all(group.is_clearly_kept for group in self._groups)
        self._is_standard = ruleset.joker_kinds is JokerKinds.STANDARD
        faces = (*naturals(ruleset.geometry_colors), *JOKERS)
        self._tile_set = sum(ONE[face] * ruleset.copies_of(face) for face in faces)

    def judge(
        self,
        before: Sequence[B],
        after: Sequence[A],
        player: PlayerState,
        *,
        quick_only: bool = False,
        steps: int = STEPS,
    ) -> Verdict | None:
        """Judges a play.

        Args:
            before: The table when the turn began.
            after: The proposed table.
            player: The player's part.
            quick_only: Whether to judge only plays that take a millisecond or two at most: their rules do not search,
                and few melds are new to the caches.
            steps: How many steps the rules may take (melding.rules.violations_of).

        Returns:
            The verdict, or None if the plain rules have to judge: the table before has an entry that is not a meld,
            table and rack have more tiles than the game (R1), the tile counts overflow, or the play is not quick.
        """
        if quick_only and not self._may_be_quick(before, after, player):
            return None
        try:
            totals = self._count_before(before), self._count_after(after)
        except KeyError:
            if quick_only and self._count_new(before, after) > QUICK_MELDS_MAX:
                return None
            totals = self._read_totals(before, after)
        if quick_only:
            both = totals[0] + totals[1]
            jokers = count_of(both, JOKER) if self._is_standard else len(tiles_of(both & JOKER_COUNTS))
            if jokers > QUICK_MELDS_MAX:  # their melds may have to be read again
                return None
        return self._judge(before, after, totals, player, steps)

    def new_table(self, before: Sequence[B], after: Sequence[A]) -> Melds:
        """Returns the table after a legal play."""
        read = self._melds.reader.with_known_jokers(self._melds.before.read(before), self._melds.after.read(after))
        return tuple([meld.meld for meld in read if isinstance(meld.meld, Meld)])

    def judge_plainly(self, play: Play) -> Verdict:
        """Judges a play for which `judge` has returned None."""
        return verdict_of(play, self._groups)

    def has_read_most(self, melds: Sequence[A]) -> bool:
        """Returns whether so few melds of a table are new that it is read quickly."""
        return self._melds.after.count_new(melds) <= QUICK_MELDS_MAX

    def _may_be_quick(self, before: Sequence[B], after: Sequence[A], player: PlayerState) -> bool:
        """Returns whether no rule searches, as far as the ruleset and the size of the tables show."""
        if player.has_melded or not self._has_quick_rules:
            return self._has_quick_rules
        if self.ruleset.initial_meld_same_turn_table_play is not InitialMeldSameTurnTablePlay.FORBIDDEN:
            return False  # the best initial meld is searched for
        return max(len(before), len(after)) <= QUICK_INITIAL_TABLE_MAX

    def _count_new(self, before: Sequence[B], after: Sequence[A]) -> int:
        return self._melds.before.count_new(before) + self._melds.after.count_new(after)

    def _read_totals(self, before: Sequence[B], after: Sequence[A]) -> tuple[int, int]:
        tables = self._melds.before.read(before), self._melds.after.read(after)
        return sum(map(counts, tables[0])), sum(map(counts, tables[1]))

    def _judge(
        self, before: Sequence[B], after: Sequence[A], totals: tuple[int, int], player: PlayerState, steps: int
    ) -> Verdict | None:
        total_before, total_after = totals
        rack = counts_of(player.rack)
        position = total_before + rack
        if position & _UNUSABLE or total_after & OVERFLOW or not is_within(position, self._tile_set):
            return None
        exchanged = added, missing, foreign = exchange(total_before, total_after, rack)
        is_in_doubt = missing or foreign or not added or total_after & FLAGGED
        has_joker = added & JOKER_COUNTS  # its points depend on its meld
        if is_in_doubt or has_joker or not self._is_simple(player):
            play = FastPlay(self._melds, (before, after), (*totals, *exchanged), player, self._subject)
            return verdict_of(play, self._groups, steps)
        played, left = split(player.rack, added)
        return Verdict((), played, natural_points(played), left)

    def _is_simple(self, player: PlayerState) -> bool:
        """Returns whether a play of valid melds from the rack alone is legal, whatever the melds are."""
        is_rack_alone = player.drawn is None and player.river_index is None
        return self._has_quick_rules and player.has_melded and is_rack_alone


class FastJudges(Generic[R, B, A]):
    """The FastJudges of the rulesets in use. Thread-safe.

    Args:
        ruleset_of: Returns the ruleset of a key. Its exceptions are raised by `of`.
        melds_for: Returns the caches for a ruleset that share a budget, like `melding.fast.read_melds.melds_by_key`.
        subject: The name of the table after in violations.
        maxsize: Most melds that all judges together cache. When the budget is spent, all judges are replaced.
    """

    def __init__(
        self,
        ruleset_of: Callable[[R], Ruleset],
        melds_for: Callable[[Ruleset, CacheBudget], PlayMelds[B, A]],
        subject: str = Play.subject,
        maxsize: int = CACHED_MELDS_MAX,
    ) -> None:
        self._ruleset_of = ruleset_of
        self._melds_for = melds_for
        self._subject = subject
        self._maxsize = maxsize
        self._budget = CacheBudget(maxsize)
        self._judges: dict[R, FastJudge[B, A]] = {}

    def of(self, key: R) -> FastJudge[B, A]:
        """Returns the judge of a ruleset, which it creates if necessary."""
        judge = self._judges.get(key)
        if judge is None or self._budget.is_spent:
            judge = self._create(key, self._ruleset_of(key))
        return judge

    def existing(self, key: R) -> FastJudge[B, A] | None:
        """Returns the judge of a ruleset, or None if `of` would create one. Raises nothing."""
        return None if self._budget.is_spent else self._judges.get(key)

    def _create(self, key: R, ruleset: Ruleset) -> FastJudge[B, A]:
        if self._budget.is_spent or len(self._judges) >= RULESETS_MAX:
            self._budget, self._judges = CacheBudget(self._maxsize), {}
        budget, judges = self._budget, self._judges  # one read each: another thread may replace them
        judges[key] = judge = FastJudge(ruleset, self._melds_for(ruleset, budget), self._subject)
        return judge
