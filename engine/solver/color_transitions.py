"""What the tiles of one color and value can do for the runs of that color: the steps of the search, a color at a time.

The open runs of a color are told apart only by what they still need. So many must go on at the next value (`owed`), so
many of these also at the one after (`young`), and so many are complete and may go on (`closable`). For a given number
of tiles laid to runs the best successor is unique: owed runs first, then closable ones, then new runs, since a complete
run that goes on can be cut into what a new run would have been.

Jokers are spent only where they are needed: never at the end of a run of four or more, never at the start of a run
that could have the joker at its end instead. What is left of them is laid to finished melds afterwards (layout.py).
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple


class OpenRuns(NamedTuple):
    """The open runs of a color.

    Attributes:
        young: Runs of one tile: they need the next two values.
        half: Runs of two tiles, or with a joker at their end that must not stay there: they need the next value.
        closable: Complete runs that reach to this value.
        blank: Those of the owed runs that have no numbered tile yet.
        held: Ones that were set aside for after the 13 (run_wrap ONE_HIGH).
    """

    young: int = 0
    half: int = 0
    closable: int = 0
    blank: int = 0
    held: int = 0


# Open runs as a number
#
# Open runs are as flexible as others if each of those has one that needs no more: no more are young, no more are owed,
# no fewer there are in all, no more are blank, and as many ones are set aside. Each of these numbers has a field with a
# bit above it that stays clear. So runs are compared in all fields, and in all colors, by one subtraction; and what
# open runs need tells what they are.

FIELD = 5
FIELDS = 6
WIDTH = FIELD * FIELDS
HIGHEST = (1 << FIELD - 1) - 1
MAX_COLORS = 6
GUARD_BITS = sum(1 << FIELD * place + FIELD - 1 for place in range(FIELDS * MAX_COLORS + 3))
"""The clear bits above the fields of all colors, and of three fields more."""


def pack(runs: OpenRuns) -> int:
    """What open runs need, packed: less is better in every field."""
    owed = runs.young + runs.half
    fields = (runs.young, owed, HIGHEST - owed - runs.closable, runs.blank, runs.held, HIGHEST - runs.held)
    number = 0
    for field in fields:
        number = number << FIELD | field
    return number


@lru_cache(maxsize=1 << 12)
def unpack(number: int) -> OpenRuns:
    """The open runs that a number stands for."""
    young, owed, fewer, blank, held, _ = ((number >> FIELD * place) & HIGHEST for place in reversed(range(FIELDS)))
    return OpenRuns(young, owed - young, HIGHEST - fewer - owed, blank, held)


def dominates(first: int, second: int) -> bool:
    """Whether something needs no more than something else, in no field."""
    return ((second | GUARD_BITS) - first) & GUARD_BITS == GUARD_BITS


class Transition(NamedTuple):
    """What is done with the tiles of a color and a value.

    Attributes:
        left: Tiles of the rack that stay there.
        grouped: Tiles that go to groups.
        jokers: Jokers that go to runs.
        runs: The open runs afterwards, packed.
        wanting: Jokers that these will need at the next two values, at least.
    """

    left: int
    grouped: int
    jokers: int
    runs: int
    missing: int


Supply = tuple[int, int, int, int, int]
"""The tiles of a color at a value that must be laid, and those of the rack; all of the next value, of the one after;
how many may be set aside for after the 13."""


class LevelTraits(NamedTuple):
    """Where in the order of values a step is.

    Attributes:
        after: How many values come after this one, 3 for more than two.
        groups: Whether there can be a group of this value.
        holds: Whether tiles of this value may be set aside (the 1 with run_wrap ONE_HIGH).
        is_held: Whether the tiles of this place are those set aside.
        groups_of_must: Whether groups may have no more tiles than must be laid.
    """

    after: int
    groups: bool
    holds: bool = False
    is_held: bool = False
    groups_of_must: bool = False


class ColorLevel:
    """The tiles of a color at a place. There is one of each in memory, so that it is quickly looked up."""

    __slots__ = ("tiles", "traits")

    def __init__(self, tiles: Supply, traits: LevelTraits) -> None:
        self.tiles = tiles
        self.traits = traits


color_level = lru_cache(maxsize=1 << 13)(ColorLevel)


class TransitionSet:
    """All steps worth trying at a spot. There is one of each in memory too: spots are many, what they offer is not."""

    __slots__ = ("transitions",)

    def __init__(self, transitions: tuple[Transition, ...]) -> None:
        self.transitions = transitions


_interned_set = lru_cache(maxsize=1 << 12)(TransitionSet)


@lru_cache(maxsize=1 << 15)
def transition_set(number: int, where: ColorLevel, jokers: int) -> TransitionSet:
    """All steps worth trying, those that leave fewest tiles on the rack first.

    Args:
        number: The open runs before, packed.
        where: The tiles.
        jokers: How many jokers may be spent at most.
    """
    return _interned_set(_undominated(list(_transitions(unpack(number), where.tiles, where.traits, jokers))))


def _transitions(runs: OpenRuns, tiles: Supply, traits: LevelTraits, jokers: int) -> Iterator[Transition]:
    """The steps at a place, but those after which a run could not go on."""
    must, may = (runs.held, 0) if traits.is_held else tiles[:2]
    runs = runs._replace(held=0) if traits.is_held else runs
    most = (must if traits.groups_of_must else must + may) if traits.groups else 0
    for left in range(may + 1):
        used = must + may - left
        for held in range(min(used, tiles[4]) + 1):
            for grouped in range(min(used - held, most) + 1):
                before = runs._replace(held=held) if traits.holds else runs
                for spent, after in _extended(before, used - held - grouped, jokers, traits.after):
                    missing = _missing(after, tiles)
                    if spent + missing <= jokers and _can_go_on(after, tiles, traits.after):
                        capped = _capped(after, tiles, traits.after, jokers - spent)
                        yield Transition(left, grouped, spent, pack(capped), missing)


def _extended(runs: OpenRuns, naturals: int, jokers: int, after: int) -> list[tuple[int, OpenRuns]]:
    """The open runs when so many numbered tiles are laid to them, and the jokers that it takes.

    A joker goes to an owed run only where a numbered tile is wanting: if the tile began a run instead, that run could
    begin later and have the joker at its end.
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
    """How many tiles are wanting for what open runs need: jokers must lie there."""
    following, later = tiles[2:4]
    return max(0, runs.young + runs.half - following) + max(0, runs.young - later)


def _can_go_on(runs: OpenRuns, tiles: Supply, after: int) -> bool:
    """Whether there are places for what the open runs need, and numbered tiles where they need one."""
    if after == 0:
        return not (runs.young or runs.half or runs.blank)
    return not (after == 1 and runs.young) and runs.blank <= tiles[2] + tiles[3]


def _capped(runs: OpenRuns, tiles: Supply, after: int, jokers: int) -> OpenRuns:
    """The same, without complete runs for which there is nothing to go on with."""
    useful = tiles[2] + jokers if after else 0
    return runs._replace(closable=min(runs.closable, useful)) if runs.closable > useful else runs


def _undominated(found: list[Transition]) -> tuple[Transition, ...]:
    """Steps of which no other one leaves as few tiles, spends as few jokers and keeps runs as flexible."""
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
