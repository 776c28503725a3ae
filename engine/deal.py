"""The chance of a round, as an argument."""

from dataclasses import dataclass

from engine.tiles import Tile, naturals


@dataclass(frozen=True, slots=True)
class Shuffle:
    """The randomness of a round: two shuffles of the full tile set, for start draw (R7) and deal (R5, R6).

    `seed` is the server's seed from which they follow (fair_deal); empty if they follow from none.
    """

    start_draw: tuple[Tile, ...]
    deal: tuple[Tile, ...]
    seed: bytes = b""


class ImpossibleDealError(ValueError):
    """A deal that was made before, and that the rules cannot have made."""


def by_chance(seats: tuple[int, ...], tiles: tuple[Tile, ...]) -> tuple[int, ...]:
    """Returns seats in random order, all orders equally likely.

    Each seat is assigned a face; the seats come in the order of their faces in the shuffle.
    """
    seat_of = dict(zip(naturals(1), seats, strict=False))
    return tuple(dict.fromkeys(seat_of[tile] for tile in tiles if tile in seat_of))
