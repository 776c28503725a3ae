"""The named hands of International Rummikub, as data: what a hand must look like, and what it scores (concealed_wins).

Of the 40 hands of the game's table only two are known, and the points of none: source incomplete, see docs/variants.md.
So a ruleset may have its own list.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from engine.tiles import MAX_VALUE

HANDS_MAX: Final = 64
"""Most named hands of a ruleset."""
_NAME: Final = re.compile("[A-Z0-9_]{1,40}")
PARTS_MAX: Final = 4
"""Most melds of 14 tiles."""
COLORS_MAX: Final = 4
HAND_SCORE_MAX: Final = 1000
_TWO: Final = 2
ONE_HIGH: Final = MAX_VALUE + 1
"""The value of a 1 that counts high."""


@dataclass(frozen=True, slots=True)
class NamedHand:
    """The conditions for the melds of a hand of 14 tiles, and its points.

    A joker has the color and the value of the tile that it stands for.

    Attributes:
        name: The name, of capital letters, digits and underscores.
        scores: The points with no joker, with one and with two.
        runs_min: The fewest runs.
        runs_max: The most runs.
        groups_min: The fewest groups.
        groups_max: The most groups.
        colors_min: The fewest colors of the tiles.
        colors_max: The most colors of the tiles.
        lowest: The lowest value of a tile.
        highest: The highest value of a tile; 14 for no limit.
        one_high: Whether a 1 counts 14: it may follow a 13, and no 2 follows it.
        all_even: Whether all values are even.
        all_odd: Whether all values are odd.
        run_colors_differ: Whether no two runs have the same color.
    """

    name: str
    scores: tuple[int, int, int]
    runs_min: int = 0
    runs_max: int = PARTS_MAX
    groups_min: int = 0
    groups_max: int = PARTS_MAX
    colors_min: int = 1
    colors_max: int = COLORS_MAX
    lowest: int = 1
    highest: int = ONE_HIGH
    one_high: bool = False
    all_even: bool = False
    all_odd: bool = False
    run_colors_differ: bool = False

    @property
    def is_possible(self) -> bool:
        """Whether the numbers are in range and do not contradict each other."""
        return (
            _NAME.fullmatch(self.name) is not None
            and all(0 <= score <= HAND_SCORE_MAX for score in self.scores)
            and 0 <= self.runs_min <= self.runs_max <= PARTS_MAX
            and 0 <= self.groups_min <= self.groups_max <= PARTS_MAX
            and 1 <= self.colors_min <= self.colors_max <= COLORS_MAX
            and 1 <= self.lowest <= self.highest <= ONE_HIGH
            and not (self.all_even and self.all_odd)
        )

    @property
    def values(self) -> frozenset[int]:
        """The values that its tiles may have."""
        highest = self.highest if self.one_high else min(self.highest, MAX_VALUE)
        values = range(max(self.lowest, _TWO if self.one_high else 1), highest + 1)
        return frozenset(value for value in values if self._has_parity(1 if value == ONE_HIGH else value))

    def _has_parity(self, value: int) -> bool:
        return not (self.all_even and value % 2) and not (self.all_odd and not value % 2)


KNOWN_HANDS: Final = (
    NamedHand(
        "HIGH_RUNS",
        (300, 250, 200),
        runs_min=3,
        runs_max=3,
        groups_max=0,
        lowest=10,
        one_high=True,
        run_colors_differ=True,
    ),
    NamedHand("LOW_RUNS", (300, 250, 200), runs_min=2, groups_max=0, colors_min=2, colors_max=2, highest=9),
)
"""Three runs of different colors without a tile below 10, where a 1 counts high; two to four runs in two colors without
a tile above 9. The points are a decision."""


def hand_problems(hands: tuple[NamedHand, ...]) -> Iterator[str]:
    """Yields the names of hands that no tiles can match as they are, and those that occur twice."""
    counts = Counter(hand.name for hand in hands)
    for hand in hands:
        if not hand.is_possible or counts[hand.name] > 1:
            yield hand.name
