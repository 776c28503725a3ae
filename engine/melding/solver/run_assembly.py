"""Runs under construction, and complete runs made of them, also across the seam where runs go around."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from engine.melding.melds import Meld, MeldKind, ProposedMeld, read_meld
from engine.melding.ruleset import Ruleset
from engine.tiles import JOKER, MAX_VALUE, Tile

RawMelds = tuple[tuple[MeldKind, tuple[Tile, ...]], ...]
"""Kind and tiles of melds."""


def melds_in_order(runs: Iterable[tuple[Tile, ...]], groups: Iterable[tuple[Tile, ...]]) -> RawMelds:
    """Returns melds in a fixed order: groups first, then by tiles."""
    found = [(False, tiles, MeldKind.GROUP) for tiles in groups] + [(True, tiles, MeldKind.RUN) for tiles in runs]
    return tuple((kind, tiles) for _, tiles, kind in sorted(found, key=lambda meld: meld[:2]))


class Run(NamedTuple):
    """A run: its first value (that of a leading joker, if it has one) and its tiles."""

    first: int
    tiles: tuple[Tile, ...]


class RunPart:
    """A run under construction. It may continue another part, which ended at the seam."""

    __slots__ = ("first", "previous", "tiles")

    def __init__(self, first: int, *tiles: Tile) -> None:
        self.first = first
        self.tiles = list(tiles)
        self.previous: RunPart | None = None

    @property
    def is_blank(self) -> bool:
        """Returns whether it has no numbered tile so far."""
        return all(t == JOKER for t in self.tiles)


def whole_runs(ended: Iterable[RunPart], crossing: Sequence[RunPart], ruleset: Ruleset) -> Iterator[Run]:
    """Yields the complete runs, cut where they are too long.

    Args:
        ended: The parts that no other part continues.
        crossing: The parts that continue another one.
        ruleset: Defines the runs.
    """
    used: set[RunPart] = set()
    for line in ended:
        yield from _cut(_joined(line, used), ruleset)
    for line in crossing:
        if line not in used and line.previous:  # a full circle is cut at the seam
            last, line.previous = line.previous, None
            yield from _cut(_joined(last, used), ruleset)


def _joined(line: RunPart, used: set[RunPart]) -> Run:
    """Returns a run from its first part on, and marks its parts as used."""
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
    """Returns a run in pieces of at most 13 tiles."""
    if len(run.tiles) <= MAX_VALUE:
        return [run]
    first, rest = split_run(run, ruleset)
    return [first, *_cut(rest, ruleset)]


def split_run(run: Run, ruleset: Ruleset) -> tuple[Run, Run]:
    """Returns two pieces of a run of six tiles or more, the first as short as possible; both are runs if possible."""
    places = range(3, len(run.tiles) - 2)
    pieces = [_split_at(run, place) for place in places]
    return next((two for two in pieces if all(_is_run(piece, ruleset) for piece in two)), pieces[0])


def _split_at(run: Run, place: int) -> tuple[Run, Run]:
    first = (run.first + place - 1) % MAX_VALUE + 1
    return Run(run.first, run.tiles[:place]), Run(first, run.tiles[place:])


def _is_run(run: Run, ruleset: Ruleset) -> bool:
    shortened = run.tiles[:MAX_VALUE]
    return isinstance(read_meld(ProposedMeld(shortened), ruleset), Meld)
