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


class Open(NamedTuple):
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
GUARDS = sum(1 << FIELD * place + FIELD - 1 for place in range(FIELDS * MAX_COLORS + 3))
"""The clear bits above the fields of all colors, and of three fields more."""


def pack(runs: Open) -> int:
    """What open runs need, packed: less is better in every field."""
    owed = runs.young + runs.half
    fields = (runs.young, owed, HIGHEST - owed - runs.closable, runs.blank, runs.held, HIGHEST - runs.held)
    number = 0
    for field in fields:
        number = number << FIELD | field
    return number


@lru_cache(maxsize=1 << 12)
def unpack(number: int) -> Open:
    """The open runs that a number stands for."""
    young, owed, fewer, blank, held, _ = ((number >> FIELD * place) & HIGHEST for place in reversed(range(FIELDS)))
    return Open(young, owed - young, HIGHEST - fewer - owed, blank, held)


def need_no_more(one: int, other: int) -> bool:
    """Whether something needs no more than something else, in no field."""
    return ((other | GUARDS) - one) & GUARDS == GUARDS


class Step(NamedTuple):
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
    wanting: int


Tiles = tuple[int, int, int, int, int]
"""The tiles of a color at a value that must be laid, and those of the rack; all of the next value, of the one after;
how many may be set aside for after the 13."""


class Place(NamedTuple):
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


class Spot:
    """The tiles of a color at a place. There is one of each in memory, so that it is quickly looked up."""

    __slots__ = ("place", "tiles")

    def __init__(self, tiles: Tiles, place: Place) -> None:
        self.tiles = tiles
        self.place = place


spot = lru_cache(maxsize=1 << 13)(Spot)


class Choice:
    """All steps worth trying at a spot. There is one of each in memory too: spots are many, what they offer is not."""

    __slots__ = ("steps",)

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.steps = steps


_choice_of = lru_cache(maxsize=1 << 12)(Choice)


@lru_cache(maxsize=1 << 15)
def choice(number: int, where: Spot, jokers: int) -> Choice:
    """All steps worth trying, those that leave fewest tiles on the rack first.

    Args:
        number: The open runs before, packed.
        where: The tiles.
        jokers: How many jokers may be spent at most.
    """
    return _choice_of(_undominated(list(_steps(unpack(number), where.tiles, where.place, jokers))))


def _steps(runs: Open, tiles: Tiles, place: Place, jokers: int) -> Iterator[Step]:
    """The steps at a place, but those after which a run could not go on."""
    must, may = (runs.held, 0) if place.is_held else tiles[:2]
    runs = runs._replace(held=0) if place.is_held else runs
    most = (must if place.groups_of_must else must + may) if place.groups else 0
    for left in range(may + 1):
        used = must + may - left
        for held in range(min(used, tiles[4]) + 1):
            for grouped in range(min(used - held, most) + 1):
                before = runs._replace(held=held) if place.holds else runs
                for spent, after in _extended(before, used - held - grouped, jokers, place.after):
                    wanting = _wanting(after, tiles)
                    if spent + wanting <= jokers and _can_go_on(after, tiles, place.after):
                        capped = _capped(after, tiles, place.after, jokers - spent)
                        yield Step(left, grouped, spent, pack(capped), wanting)


def _extended(runs: Open, naturals: int, jokers: int, after: int) -> list[tuple[int, Open]]:
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
            open_runs = Open(free - longer + starts, young + bridges, half + longer, without_naturals + starts, held)
            found.append((needed + bridges + starts, open_runs))
    return found


def _wanting(runs: Open, tiles: Tiles) -> int:
    """How many tiles are wanting for what open runs need: jokers must lie there."""
    following, later = tiles[2:4]
    return max(0, runs.young + runs.half - following) + max(0, runs.young - later)


def _can_go_on(runs: Open, tiles: Tiles, after: int) -> bool:
    """Whether there are places for what the open runs need, and numbered tiles where they need one."""
    if after == 0:
        return not (runs.young or runs.half or runs.blank)
    return not (after == 1 and runs.young) and runs.blank <= tiles[2] + tiles[3]


def _capped(runs: Open, tiles: Tiles, after: int, jokers: int) -> Open:
    """The same, without complete runs for which there is nothing to go on with."""
    useful = tiles[2] + jokers if after else 0
    return runs._replace(closable=min(runs.closable, useful)) if runs.closable > useful else runs


def _undominated(found: list[Step]) -> tuple[Step, ...]:
    """Steps of which no other one leaves as few tiles, spends as few jokers and keeps runs as flexible."""
    kept: list[Step] = []
    for step in sorted(set(found)):
        if not any(_is_as_good(other, step) for other in kept):
            kept.append(step)
    return tuple(step for step in kept if not any(other is not step and _is_as_good(other, step) for other in kept))


def _is_as_good(one: Step, other: Step) -> bool:
    return (
        one.grouped == other.grouped
        and one.left <= other.left
        and one.jokers <= other.jokers
        and need_no_more(one.runs, other.runs)
    )
