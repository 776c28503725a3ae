"""Melds and pairs with wild tiles: the okey, beside the false joker, which has the okey's face; or the joker.

The parameter `okey` is the wild tile: the okey, or JOKER in a game with jokers.
"""

from enum import Enum, auto
from typing import Final, TypeAlias

from engine.tiles import FALSE_JOKER, JOKER, MAX_VALUE, Color, Tile, color_of, tile, value_of

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


def _other_joker(okey: Tile) -> Tile:
    """Returns the joker that a game does not have."""
    return FALSE_JOKER if okey == JOKER else JOKER


def last_place(*, one_high: bool) -> int:
    """Returns the last place of a run: that of the 1 after the 13 if there may be one."""
    return MAX_VALUE + one_high


def meld_kind(tiles: tuple[Tile, ...], okey: Tile, *, one_high: bool) -> MeldKind | None:
    """Returns the kind of a meld, None if tiles are none.

    A group is three or four tiles of one value in different colors, a run three or more ascending values of one color.

    Args:
        tiles: The tiles; those of a run in order.
        okey: The wild tile.
        one_high: Whether a 1 may follow a 13.
    """
    if is_group(tiles, okey):
        return MeldKind.GROUP
    return MeldKind.RUN if run_start(tiles, okey, one_high=one_high) else None


def is_group(tiles: tuple[Tile, ...], okey: Tile) -> bool:
    """Returns whether tiles are a group. Wild tiles alone are none, nor are jokers of other games."""
    if _other_joker(okey) in tiles:
        return False
    fixed = fixed_faces(tiles, okey)
    colors, values = {color_of(face) for face in fixed}, {value_of(face) for face in fixed}
    return MELD_MIN <= len(tiles) <= GROUP_MAX and len(values) == 1 and len(colors) == len(fixed)


def run_start(tiles: tuple[Tile, ...], okey: Tile, *, one_high: bool) -> int | None:
    """Returns the place of the first tile of a run; None if tiles, in this order, are none. See `meld_kind`."""
    faces, fixed = [face_of(t, okey) for t in tiles], fixed_faces(tiles, okey)
    if len(tiles) < MELD_MIN or not fixed or _other_joker(okey) in tiles:
        return None
    color, value, last = color_of(fixed[0]), value_of(fixed[0]), last_place(one_high=one_high)
    for place in range(value, last + 1, MAX_VALUE):
        first = place - faces.index(fixed[0])
        if first >= 1 and first + len(faces) <= last + 1 and _is_run(faces, color, first):
            return first
    return None


def _is_run(faces: list[Tile | None], color: Color, first: int) -> bool:
    return all(face is None or face == tile_at(color, place) for place, face in enumerate(faces, first))


def fixed_faces(tiles: tuple[Tile, ...], okey: Tile) -> list[Tile]:
    """Returns the faces of the tiles that are not wild, in their order."""
    return [face for face in (face_of(t, okey) for t in tiles) if face is not None]


def meld_points(tiles: tuple[Tile, ...], okey: Tile, *, one_high: bool) -> int:
    """Returns the sum of a meld's values, 0 if tiles are none. A wild tile counts what it stands for.

    One numbered tile with two wild ones can be a group or a run: the one with more points counts.
    """
    start, as_group = run_start(tiles, okey, one_high=one_high), 0
    if is_group(tiles, okey):
        as_group = len(tiles) * value_of(fixed_faces(tiles, okey)[0])
    as_run = sum((place - 1) % MAX_VALUE + 1 for place in range(start, start + len(tiles))) if start else 0
    return max(as_group, as_run)


def value_on_rack(t: Tile, okey: Tile) -> int:
    """Returns the value of a tile that is left on a rack, 0 of a wild one, which counts apart."""
    face = face_of(t, okey)
    return value_of(face) if face is not None else 0


def tile_at(color: Color, place: int) -> Tile:
    """Returns the tile at a place of a run: 1 to 13, and 14 for a 1 after the 13."""
    return tile(color, (place - 1) % MAX_VALUE + 1)


def is_pair(tiles: tuple[Tile, ...], okey: Tile) -> bool:
    """Returns whether tiles are two of one face. A wild tile makes a pair with any tile."""
    return len(tiles) == 2 and len({face_of(t, okey) for t in tiles} - {None}) <= 1
