"""The chance of a round, as an argument."""

from dataclasses import dataclass

from engine.tiles import Tile


@dataclass(frozen=True, slots=True)
class Shuffle:
    """The randomness of a round: two shuffles of the full tile set, for start draw (R7) and deal (R5, R6)."""

    start_draw: tuple[Tile, ...]
    deal: tuple[Tile, ...]


class ImpossibleDealError(ValueError):
    """A deal that was made before, and that the rules cannot have made."""
