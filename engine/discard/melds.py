"""Melds and pairs with wild tiles: the okey, which is wild, and the false joker, which has the okey's face."""

from enum import Enum, auto
from typing import Final, TypeAlias

from engine.tiles import FALSE_JOKER, MAX_VALUE, Color, Tile, color_of, tile, value_of

Arrangement: TypeAlias = tuple[tuple[Tile, ...], ...]
"""Tiles laid in melds or pairs. In a run each tile is at its place, a wild one at that of the tile it stands for."""

MELD_MIN: Final = 3
GROUP_MAX: Final = 4


class MeldKind(Enum):
    """The kinds of melds."""

    GROUP = auto()
    RUN = auto()


def okey_of(indicator: Tile) -> Tile:
    """Returns the okey: the tile of the indicator's color with the next value, 1 after 13. Its copies are wild."""
    return tile(color_of(indicator), value_of(indicator) % MAX_VALUE + 1)


def face_of(t: Tile, okey: Tile) -> Tile | None:
    """Returns the face that a tile plays as; None for a wild tile."""
    if t == okey:
        return None
    return okey if t == FALSE_JOKER else t


def last_place(*, one_high: bool) -> int:
    """Returns the last place of a run: that of the 1 after the 13 if there may be one."""
    return MAX_VALUE + one_high


def meld_kind(tiles: tuple[Tile, ...], okey: Tile, *, one_high: bool) -> MeldKind | None:
    """Returns the kind of a meld, None if tiles are none.

    A group is three or four tiles of one value in different colors, a run three or more ascending values of one color.

    Args:
        tiles: The tiles; those of a run in order.
        okey: The okey.
        one_high: Whether a 1 may follow a 13.
    """
    faces = [face_of(t, okey) for t in tiles]
    fixed = [face for face in faces if face is not None]
    if len(tiles) < MELD_MIN or not fixed:
        return None
    if _is_group(len(tiles), fixed):
        return MeldKind.GROUP
    return MeldKind.RUN if _is_run(faces, fixed[0], last_place(one_high=one_high)) else None


def _is_group(size: int, fixed: list[Tile]) -> bool:
    colors = {color_of(face) for face in fixed}
    return size <= GROUP_MAX and len({value_of(face) for face in fixed}) == 1 and len(colors) == len(fixed)


def _is_run(faces: list[Tile | None], fixed: Tile, last: int) -> bool:
    color = color_of(fixed)
    return any(
        all(face in {None, tile_at(color, place)} for place, face in enumerate(faces, first))
        for first in range(1, last - len(faces) + 2)
    )


def tile_at(color: Color, place: int) -> Tile:
    """Returns the tile at a place of a run: 1 to 13, and 14 for a 1 after the 13."""
    return tile(color, (place - 1) % MAX_VALUE + 1)


def is_pair(tiles: tuple[Tile, ...], okey: Tile) -> bool:
    """Returns whether tiles are two of one face. A wild tile makes a pair with any tile."""
    return len(tiles) == 2 and len({face_of(t, okey) for t in tiles} - {None}) <= 1
