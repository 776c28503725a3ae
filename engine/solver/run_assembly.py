"""Runs as they grow, and whole runs of them, also where they go round (run_wrap CYCLIC)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from engine.melds import Meld, MeldKind, ProposedMeld, read_meld
from engine.ruleset import Ruleset
from engine.tiles import JOKER, MAX_VALUE, Tile

RawMelds = tuple[tuple[MeldKind, tuple[Tile, ...]], ...]
"""Kind and tiles of melds."""


def melds_in_order(runs: Iterable[tuple[Tile, ...]], groups: Iterable[tuple[Tile, ...]]) -> RawMelds:
    """Melds in a fixed order: by their tiles, groups first."""
    found = [(False, tiles, MeldKind.GROUP) for tiles in groups] + [(True, tiles, MeldKind.RUN) for tiles in runs]
    return tuple((kind, tiles) for _, tiles, kind in sorted(found, key=lambda meld: meld[:2]))


class Run(NamedTuple):
    """A run: its first value (that of a joker, if it begins with one), its tiles."""

    first: int
    tiles: tuple[Tile, ...]


class RunPart:
    """A run as it grows. It may go on from another line, which ended at the seam."""

    __slots__ = ("first", "previous", "tiles")

    def __init__(self, first: int, *tiles: Tile) -> None:
        self.first = first
        self.tiles = list(tiles)
        self.previous: RunPart | None = None

    @property
    def is_blank(self) -> bool:
        """Whether it has no numbered tile yet."""
        return all(t == JOKER for t in self.tiles)


def whole_runs(ended: Iterable[RunPart], crossing: Sequence[RunPart], ruleset: Ruleset) -> Iterator[Run]:
    """The runs, each from its beginning, and none too long.

    Args:
        ended: The lines that no other goes on from.
        crossing: The lines that go on from another.
        ruleset: What is a run.
    """
    used: set[RunPart] = set()
    for line in ended:
        yield from _cut(_joined(line, used), ruleset)
    for line in crossing:
        if line not in used and line.previous:  # it goes round: it is cut at the seam
            last, line.previous = line.previous, None
            yield from _cut(_joined(last, used), ruleset)


def _joined(line: RunPart, used: set[RunPart]) -> Run:
    """A run from its beginning; the lines that it is made of are used then."""
    if not line.previous:
        used.add(line)
        return Run(line.first, tuple(line.tiles))
    parts = [line]
    while parts[-1].previous:
        parts.append(parts[-1].previous)
    used.update(parts)
    parts.reverse()
    return Run(parts[0].first, tuple(t for part in parts for t in part.tiles))


def _cut(run: Run, ruleset: Ruleset) -> list[Run]:
    """A run in pieces that are not too long."""
    if len(run.tiles) <= MAX_VALUE:
        return [run]
    first, rest = split_run(run, ruleset)
    return [first, *_cut(rest, ruleset)]


def split_run(run: Run, ruleset: Ruleset) -> tuple[Run, Run]:
    """Two pieces of a run of six tiles or more, the first as short as it can be; both runs, where that can be."""
    places = range(3, len(run.tiles) - 2)
    pieces = [_split_at(run, place) for place in places]
    return next((two for two in pieces if all(_is_run(piece, ruleset) for piece in two)), pieces[0])


def _split_at(run: Run, place: int) -> tuple[Run, Run]:
    first = (run.first + place - 1) % MAX_VALUE + 1
    return Run(run.first, run.tiles[:place]), Run(first, run.tiles[place:])


def _is_run(run: Run, ruleset: Ruleset) -> bool:
    shortened = run.tiles[:MAX_VALUE]
    return isinstance(read_meld(ProposedMeld(shortened), ruleset), Meld)
