"""The transitions of one color at one value if there are double jokers, and the groups of a value.

A double joker in a run covers its value and the next one. So a run may be covered at a value, and takes no tile there.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import le
from typing import Final, NamedTuple

from engine.tiles import DOUBLE_JOKER, JOKER, PLACES_OF, Tile

NATURAL, WILD, DOUBLE, COVERED, END = "natural", "joker", "double", "covered", "end"
"""What a run takes at a value: a tile, a joker, the first place of a double joker, its second place, or nothing."""

TILE_OF: Final = {WILD: JOKER, DOUBLE: DOUBLE_JOKER}

LEAST: Final = 3
"""The fewest tiles of a meld, however many places they cover."""


class OpenRun(NamedTuple):
    """A run that may continue.

    Attributes:
        needs: How many more tiles it needs.
        is_blank: Whether it has no numbered tile. Then it needs one, so a run of three jokers is like one of two.
        is_covered: Whether a double joker covers the next value.
    """

    needs: int
    is_blank: bool
    is_covered: bool

    def after(self, taken: str) -> "OpenRun":
        """Returns the run after one more value."""
        if taken == COVERED:
            return self._replace(is_covered=False)
        is_blank = self.is_blank and taken != NATURAL
        return OpenRun(max(self.needs - 1, int(is_blank)), is_blank, taken == DOUBLE)


NEW: Final = OpenRun(LEAST, is_blank=True, is_covered=False)
COMPLETE: Final = OpenRun(0, is_blank=False, is_covered=False)

Runs = tuple[OpenRun, ...]
"""The open runs of a color, ascending."""


class ColorLevel(NamedTuple):
    """The tiles of a color at a value, and what is possible there.

    Attributes:
        must: How many tiles must be laid.
        may: How many more tiles may be laid.
        following: How many tiles there are of the next value.
        after: How many values follow.
        groups: Whether a group of this value is possible.
        leads: Whether a run may start with a joker: only near the 13. Elsewhere the joker fits at the end of the run.
    """

    must: int
    may: int
    following: int
    after: int
    groups: bool
    leads: bool


class DoubleTransition(NamedTuple):
    """The use of the tiles of one color at one value.

    Attributes:
        left: Tiles left on the rack.
        grouped: Tiles that go to groups.
        naturals: Tiles that go to runs.
        jokers: Regular jokers that go to runs.
        doubles: Double jokers that go to runs.
        places: The places of runs at this value.
        begun: The number of new runs.
        runs: The open runs afterwards.
        taken: What each run takes: those that were open, then the new ones.
    """

    left: int
    grouped: int
    naturals: int
    jokers: int
    doubles: int
    places: int
    begun: int
    runs: Runs
    taken: tuple[str, ...]


@lru_cache(maxsize=1 << 15)
def double_transitions(runs: Runs, level: ColorLevel, jokers: int, doubles: int) -> tuple[DoubleTransition, ...]:
    """Returns all useful transitions of a color.

    Args:
        runs: The open runs.
        level: The tiles.
        jokers: The most regular jokers that may be spent.
        doubles: The most double jokers that may be spent.
    """
    found: dict[tuple[int, int, int, int, Runs], DoubleTransition] = {}
    for left in range(level.may + 1):
        used = level.must + level.may - left
        for grouped in range(used + 1 if level.groups else 1):
            supply = (used - grouped, jokers, doubles if level.after else 0)
            for taken, spent in _choices(runs, supply):
                for transition in _with_new_runs(runs, level, taken, supply, spent):
                    whole = transition._replace(left=left, grouped=grouped)
                    found.setdefault((left, grouped, whole.jokers, whole.doubles, whole.runs), whole)
    return _undominated(list(found.values()))


Supply = tuple[int, int, int]
"""Tiles, regular jokers and double jokers."""

_KINDS: Final = ((NATURAL, (1, 0, 0)), (WILD, (0, 1, 0)), (DOUBLE, (0, 0, 1)))


def _choices(runs: Runs, supply: Supply) -> Iterator[tuple[tuple[str, ...], Supply]]:
    """Yields what open runs may take, and what is left of a supply."""
    if not runs:
        yield (), supply
        return
    run, rest = runs[0], runs[1:]
    if run.is_covered or run == COMPLETE:
        kind = COVERED if run.is_covered else END
        for taken, left in _choices(rest, supply):
            yield (kind, *taken), left
    if not run.is_covered:
        tiles, jokers, doubles = supply
        for kind, (tile, joker, double) in _KINDS:
            less = (tiles - tile, jokers - joker, doubles - double)
            if min(less) >= 0:
                for taken, left in _choices(rest, less):
                    yield (kind, *taken), left


def _with_new_runs(
    runs: Runs, level: ColorLevel, taken: tuple[str, ...], supply: Supply, spare: Supply
) -> Iterator[DoubleTransition]:
    """Yields transitions in which all tiles of the supply are spent, those that no open run takes on new runs."""
    tiles, jokers, doubles = spare
    longer = [run.after(kind) for run, kind in zip(runs, taken, strict=True) if kind != END]
    for wild in range(jokers + 1 if level.leads else 1):
        for double in range(doubles + 1 if level.leads else 1):
            new = (NATURAL,) * tiles + (WILD,) * wild + (DOUBLE,) * double
            after = tuple(sorted([*longer, *map(NEW.after, new)]))
            left = (jokers - wild, doubles - double)
            kept = _continuing(after, level, sum(left))
            if kept is not None:
                whole = (*taken, *new)
                yield DoubleTransition(
                    0, 0, supply[0], supply[1] - left[0], supply[2] - left[1], len(after), len(new), kept, whole
                )


def _continuing(runs: Runs, level: ColorLevel, jokers: int) -> Runs | None:
    """Returns the open runs that may continue; None if a run must continue and cannot."""
    owed = [run for run in runs if run != COMPLETE]
    if any(run.needs + run.is_covered > level.after for run in owed):
        return None
    room = level.following + jokers - sum(not run.is_covered for run in owed)
    return (COMPLETE,) * min(len(runs) - len(owed), room) + tuple(owed) if room >= 0 else None


def _undominated(found: list[DoubleTransition]) -> tuple[DoubleTransition, ...]:
    """Returns the transitions that no other one makes useless: with fewer tiles left, and runs that need no more."""
    kept: list[DoubleTransition] = []
    for transition in sorted(found, key=lambda each: (each.left, _needs(each.runs), each.begun)):
        if not any(_is_as_good(other, transition) for other in kept):
            kept.append(transition)
    return tuple(kept)


def _is_as_good(one: DoubleTransition, other: DoubleTransition) -> bool:
    return (
        (one.grouped, one.jokers, one.doubles) == (other.grouped, other.jokers, other.doubles)
        and one.left <= other.left
        and one.begun <= other.begun
        and special_runs(one.runs) == special_runs(other.runs)
        and all(map(le, _needs(one.runs), _needs(other.runs)))
    )


@lru_cache(maxsize=1 << 12)
def special_runs(runs: Runs) -> Runs:
    """Returns the runs that are blank or covered."""
    return tuple([run for run in runs if run.is_blank or run.is_covered])


@lru_cache(maxsize=1 << 12)
def plain_counts(runs: Runs) -> tuple[int, int, int]:
    """Returns how many of the other runs need two tiles, one, and none."""
    young, half = (OpenRun(needs, is_blank=False, is_covered=False) for needs in (2, 1))
    return runs.count(young), runs.count(half), runs.count(COMPLETE)


def _needs(runs: Runs) -> tuple[int, int, int]:
    """Returns how many plain runs need two tiles, how many need any, and minus the number of all; less is better."""
    young, half, complete = plain_counts(runs)
    return young, young + half, -young - half - complete


# Groups


class GroupShape(NamedTuple):
    """How many tiles, regular jokers and double jokers a group has."""

    tiles: int
    jokers: int
    doubles: int

    @property
    def size(self) -> int:
        """Returns the number of tiles, jokers included."""
        return self.tiles + self.jokers + self.doubles

    @property
    def places(self) -> int:
        """Returns the number of places that they cover."""
        return self.size + self.doubles


@lru_cache(maxsize=1 << 14)
def groups_for(grouped: tuple[int, ...], jokers: int, doubles: int) -> tuple[GroupShape, ...] | None:
    """Returns groups that use all tiles and jokers, the largest first; None if there are none.

    Args:
        grouped: The number of tiles of each color, also of those without tiles.
        jokers: The number of regular jokers.
        doubles: The number of double jokers.
    """
    left = GroupShape(sum(grouped), jokers, doubles)
    for number in range(max(grouped), left.size // LEAST + 1):
        room = tuple([sum(min(count, groups) for count in grouped) for groups in range(number + 1)])
        largest = GroupShape(len(grouped), len(grouped), len(grouped))
        found = _groups(number, left, largest, room, len(grouped))
        if found is not None:
            return found
    return None


def _groups(
    number: int, left: GroupShape, largest: GroupShape, room: Sequence[int], colors: int
) -> tuple[GroupShape, ...] | None:
    """Returns a number of groups that use all that is left, the most equal ones; None if there are none.

    Each color has at most one tile in a group. So the largest groups together have room for so many tiles only, and if
    all have, the tiles can be dealt to them (Gale and Ryser).

    Args:
        number: The number of groups.
        left: The tiles and jokers.
        largest: The largest group.
        room: The room in the largest groups together, by their number.
        colors: The number of colors.
    """
    if not number:
        return ()
    place = len(room) - number
    most = min(largest.tiles, left.tiles - number + 1, room[place] - (room[-1] - left.tiles))
    for size in range(-(-left.tiles // number), most + 1):
        for wild in range(min(left.jokers, colors - size) + 1):
            for double in range(min(left.doubles, (colors - size - wild) // PLACES_OF[DOUBLE_JOKER]) + 1):
                group = GroupShape(size, wild, double)
                rest = GroupShape(left.tiles - size, left.jokers - wild, left.doubles - double)
                fits = rest.size >= LEAST * (number - 1) and rest.places <= colors * (number - 1)
                if group.size >= LEAST and group <= largest and fits:
                    others = _groups(number - 1, rest, group, room, colors)
                    if others is not None:
                        return (group, *others)
    return None


def deal(faces: Sequence[Tile], grouped: Sequence[int], sizes: Sequence[int]) -> list[list[Tile]]:
    """Returns the tiles of each group: each color goes to the groups that still lack the most tiles."""
    groups: list[list[Tile]] = [[] for _ in sizes]
    for face, count in sorted(zip(faces, grouped, strict=False), key=lambda color: -color[1]):
        lacking = sorted(range(len(sizes)), key=lambda place: len(groups[place]) - sizes[place])
        for place in lacking[:count]:
            groups[place].append(face)
    return groups
