"""Two other ways to look at hands of Okey. They share no rule with the engine but the numbers of tiles.

By force: the first tile is in some meld; every meld that it can be in is tried, with every place that a wild tile may
take. By an integer program: whole melds of 14 tiles together, of which the hand supplies as many as possible.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import combinations

import highspy
import numpy as np

from oracles.integer_program import EXACTLY, solved

Face = tuple[int, int]
"""A color, 0 to 3, and a value, 1 to 13."""
FALSE_JOKER = 80


def faces_of(tiles: tuple[int, ...], okey: int) -> tuple[tuple[Face, ...], int]:
    """Returns the faces of a hand, ascending, and the number of its wild tiles."""
    numbers = [okey if t == FALSE_JOKER else t for t in tiles if t != okey]
    return tuple(sorted(((n - 1) // 13, (n - 1) % 13 + 1) for n in numbers)), tiles.count(okey)


def melds(*, one_high: bool) -> Iterator[tuple[Face, ...]]:
    """Yields all melds of numbered tiles."""
    for value in range(1, 14):
        for size in (3, 4):
            yield from combinations([(color, value) for color in range(4)], size)
    for color in range(4):
        line = [(color, value) for value in (*range(1, 14), *([1] if one_high else []))]
        for first in range(len(line)):
            for end in range(first + 3, len(line) + 1):
                yield tuple(line[first:end])


# By force


@cache
def _melds_with(face: Face, one_high: bool) -> tuple[Counter[Face], ...]:
    return tuple(Counter(meld) for meld in melds(one_high=one_high) if face in meld)


def is_finished(tiles: tuple[int, ...], okey: int, *, one_high: bool) -> bool:
    """Returns whether 14 tiles are all in melds or in seven pairs."""
    faces, wild = faces_of(tiles, okey)
    odd = sum(count % 2 for count in Counter(faces).values())
    return odd <= wild or _are_melds(faces, wild, one_high)


@cache
def _are_melds(faces: tuple[Face, ...], wild: int, one_high: bool) -> bool:
    if not faces:
        return not wild
    held = Counter(faces)
    for meld in _melds_with(faces[0], one_high):
        if (meld - held).total() > wild:
            continue
        places = list((meld - Counter([faces[0]])).elements())
        for spent in range(wild + 1):
            for kept in set(combinations(places, len(places) - spent)) if spent <= len(places) else ():
                used = Counter([faces[0], *kept])
                if used <= held and _are_melds(tuple(sorted((held - used).elements())), wild - spent, one_high):
                    return True
    return False


# By an integer program


class Program:
    """Answers how many tiles of hands must be exchanged for any others."""

    def __init__(self, *, one_high: bool) -> None:
        self.highs = highspy.Highs()  # type: ignore[no-untyped-call] # its stubs lack the constructor
        for option, value in EXACTLY:
            self.highs.setOptionValue(option, value)
        self.melds = list(melds(one_high=one_high))
        faces = [(color, value) for color in range(4) for value in range(1, 14)]
        uses = np.array([[meld.count(face) for meld in self.melds] for face in faces])
        sizes = np.array([len(meld) for meld in self.melds])
        self.faces = faces
        self.rows = np.block([[uses, -np.eye(52, dtype=int)], [sizes, np.zeros(52, dtype=int)]])

    def missing(self, tiles: tuple[int, ...], okey: int) -> int:
        """Returns the least number of tiles of a hand to exchange; of 15 tiles, after the best discard."""
        held, wild = faces_of(tiles, okey)
        counts = Counter(held)
        width = len(self.melds)
        low, high = np.array([0] * 52 + [14]), np.array([99] * 52 + [14])
        most = np.array([4] * width + [counts[face] for face in self.faces])
        gain = np.array([0] * width + [1] * 52)
        answer = solved(self.highs, self.rows, (low, high), gain, most)
        assert answer is not None
        in_melds = int(answer[width:].sum())
        pairs = sum(count // 2 for count in counts.values())
        in_pairs = 2 * pairs + min(sum(count % 2 for count in counts.values()), 7 - pairs)
        return 14 - min(14, max(in_melds, in_pairs) + wild)
