"""The transitions of one color at one value: how its tiles continue the open runs, start new ones, and go to groups.

Open runs of a color differ only in what they still need: so many must continue at the next value (`owed`), some of
these also at the value after it (`young`), and so many are complete but may continue (`closable`). For a given number
of tiles the best successor is unique: owed runs first, then closable ones, then new runs. A complete run that continues
can be cut to what a new run would have been.

Jokers are spent only where they are needed: never at the end of a run of four or more, and never at the start of a run
that could have the joker at its end. Unused jokers are added to finished melds afterwards (reconstruction.py).
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple


class OpenRuns(NamedTuple):
    """The open runs of a color.

    Attributes:
        young: Runs of one tile: they need the next two values.
        half: Runs of two tiles, or with a joker at their end that must not stay there: they need the next value.
        closable: Complete runs that reach this value.
        blank: Owed runs without a numbered tile so far.
        held: Ones set aside for after the 13.
    """

    young: int = 0
    half: int = 0
    closable: int = 0
    blank: int = 0
    held: int = 0


# Open runs packed into a number
#
# One set of open runs dominates another if it has no more young, owed or blank runs, no fewer runs in all, and as many
# ones set aside. Each of these counts is a field of the number, with a clear guard bit above it. So one subtraction
# compares all fields of all colors. The fields also identify the open runs.

FIELD = 5
FIELDS = 6
WIDTH = FIELD * FIELDS
HIGHEST = (1 << FIELD - 1) - 1
MAX_COLORS = 6
GUARD_BITS = sum(1 << FIELD * place + FIELD - 1 for place in range(FIELDS * MAX_COLORS + 3))
"""The guard bits above the fields of all colors, and of three more fields."""


def pack(runs: OpenRuns) -> int:
    """Returns open runs as a number; smaller is better in every field."""
    owed = runs.young + runs.half
    fields = (runs.young, owed, HIGHEST - owed - runs.closable, runs.blank, runs.held, HIGHEST - runs.held)
    number = 0
    for field in fields:
        number = number << FIELD | field
    return number


@lru_cache(maxsize=1 << 12)
def unpack(number: int) -> OpenRuns:
    """Returns the open runs that a number encodes."""
    young, owed, fewer, blank, held, _ = ((number >> FIELD * place) & HIGHEST for place in reversed(range(FIELDS)))
    return OpenRuns(young, owed - young, HIGHEST - fewer - owed, blank, held)


def dominates(first: int, second: int) -> bool:
    """Returns whether the first number is at most the second in every field."""
    return ((second | GUARD_BITS) - first) & GUARD_BITS == GUARD_BITS


class Transition(NamedTuple):
    """The use of the tiles of one color at one value.

    Attributes:
        left: Tiles left on the rack.
        grouped: Tiles that go to groups.
        jokers: Jokers that go to runs.
        runs: The open runs afterwards, packed.
        missing: A lower bound on the jokers that these need at the next two values.
    """

    left: int
    grouped: int
    jokers: int
    runs: int
    missing: int


Supply = tuple[int, int, int, int, int]
"""The tiles of a color at a value: how many must be laid, how many are on the rack, how many there are of the next
value and of the one after it, and how many may be set aside for after the 13.
"""


class LevelTraits(NamedTuple):
    """The possibilities at a level.

    Attributes:
        after: How many values come after this one; 3 means three or more.
        groups: Whether a group of this value is possible.
        holds: Whether tiles may be set aside (the 1, if it may follow the 13).
        is_held: Whether the tiles of this level are those set aside.
        groups_of_must: Whether groups may contain only as many tiles as must be laid.
    """

    after: int
    groups: bool
    holds: bool = False
    is_held: bool = False
    groups_of_must: bool = False


class ColorLevel:
    """The tiles of a color at a level. Interned, so that it is compared and hashed by identity."""

    __slots__ = ("tiles", "traits")

    def __init__(self, tiles: Supply, traits: LevelTraits) -> None:
        self.tiles = tiles
        self.traits = traits


color_level = lru_cache(maxsize=1 << 13)(ColorLevel)


class TransitionSet:
    """All useful transitions of a color at a level. Interned, since many levels have the same ones."""

    __slots__ = ("transitions",)

    def __init__(self, transitions: tuple[Transition, ...]) -> None:
        self.transitions = transitions


_interned_set = lru_cache(maxsize=1 << 12)(TransitionSet)


@lru_cache(maxsize=1 << 15)
def transition_set(number: int, where: ColorLevel, jokers: int) -> TransitionSet:
    """Returns all useful transitions, those that leave the fewest tiles on the rack first.

    Args:
        number: The open runs before, packed.
        where: The tiles.
        jokers: The most jokers that may be spent.
    """
    return _interned_set(_undominated(list(_transitions(unpack(number), where.tiles, where.traits, jokers))))


def _transitions(runs: OpenRuns, tiles: Supply, traits: LevelTraits, jokers: int) -> Iterator[Transition]:
    """Yields the transitions after which every run can still be completed."""
    for left, grouped, naturals, before in _distributions(runs, tiles, traits):
        for spent, after in _extended(before, naturals, jokers, traits.after):
            missing = _missing(after, tiles)
            if spent + missing <= jokers and _can_go_on(after, tiles, traits.after):
                capped = _capped(after, tiles, traits.after, jokers - spent)
                yield Transition(left, grouped, spent, pack(capped), missing)


def _distributions(runs: OpenRuns, tiles: Supply, traits: LevelTraits) -> Iterator[tuple[int, int, int, OpenRuns]]:
    """Yields how many tiles stay on the rack, go to groups, and go to runs, with the open runs that these extend."""
    must, may = (runs.held, 0) if traits.is_held else tiles[:2]
    runs = runs._replace(held=0) if traits.is_held else runs
    most = _most_grouped(must, may, traits)
    for left in range(may + 1):
        used = must + may - left
        for held in range(min(used, tiles[4]) + 1):
            before = runs._replace(held=held) if traits.holds else runs
            for grouped in range(min(used - held, most) + 1):
                yield left, grouped, used - held - grouped, before


def _most_grouped(must: int, may: int, traits: LevelTraits) -> int:
    if not traits.groups:
        return 0
    return must if traits.groups_of_must else must + may


def _extended(runs: OpenRuns, naturals: int, jokers: int, after: int) -> list[tuple[int, OpenRuns]]:
    """Returns the open runs after a number of tiles is added, each with the jokers spent.

    A joker goes to an owed run only if a numbered tile is missing. If the tile started a new run instead, that run
    could start later and have the joker at its end.
    """
    young, half, closable, blank, held = runs
    owed = young + half
    needed = max(0, owed - naturals)
    free = max(0, naturals - owed)
    longer = min(free, closable)
    without_naturals = max(0, blank - naturals)
    found = []
    for bridges in range(min(closable - longer, jokers - needed) + 1):
        for starts in range(jokers - needed - bridges + 1 if after == 2 else 1):
            open_runs = OpenRuns(
                free - longer + starts, young + bridges, half + longer, without_naturals + starts, held
            )
            found.append((needed + bridges + starts, open_runs))
    return found


def _missing(runs: OpenRuns, tiles: Supply) -> int:
    """Returns how many tiles the open runs lack at the next two values: jokers must take their places."""
    following, later = tiles[2:4]
    return max(0, runs.young + runs.half - following) + max(0, runs.young - later)


def _can_go_on(runs: OpenRuns, tiles: Supply, after: int) -> bool:
    """Returns whether enough values follow for the open runs, and numbered tiles for those that have none."""
    if after == 0:
        return not (runs.young or runs.half or runs.blank)
    return not (after == 1 and runs.young) and runs.blank <= tiles[2] + tiles[3]


def _capped(runs: OpenRuns, tiles: Supply, after: int, jokers: int) -> OpenRuns:
    """Returns the open runs without complete ones that have no tile to continue with."""
    useful = tiles[2] + jokers if after else 0
    return runs._replace(closable=min(runs.closable, useful)) if runs.closable > useful else runs


def _undominated(found: list[Transition]) -> tuple[Transition, ...]:
    """Returns the transitions that no other transition dominates."""
    kept: list[Transition] = []
    for transition in sorted(set(found)):
        if not any(_is_as_good(second, transition) for second in kept):
            kept.append(transition)
    return tuple(
        transition
        for transition in kept
        if not any(second is not transition and _is_as_good(second, transition) for second in kept)
    )


def _is_as_good(first: Transition, second: Transition) -> bool:
    return (
        first.grouped == second.grouped
        and first.left <= second.left
        and first.jokers <= second.jokers
        and dominates(first.runs, second.runs)
    )
