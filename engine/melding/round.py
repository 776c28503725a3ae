"""A round of a melding game: the table, the racks, the pool, and the turn in progress."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from engine.melding.table import ProposedTable, Table, tiles_on
from engine.seats import Rack, Turn
from engine.tiles import Tile, in_order
from engine.violations import Reason

_SEAT: Final = attrgetter("seat")


@dataclass(frozen=True, slots=True)
class Open:
    """The player has done nothing in the turn yet."""


@dataclass(frozen=True, slots=True)
class Choosing:
    """The player drew two tiles and must lay one of them on the River (turn_draw TWO_RIVER)."""

    tiles: tuple[Tile, Tile]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The player drew, and the turn continues (turn_play_after_draw). `tile` is the last one drawn."""

    tile: Tile


@dataclass(frozen=True, slots=True)
class Drawing:
    """The player drew and may play or draw again, but not pass while the pool has tiles (turn_draw ONE_OR_TWO)."""

    tiles: tuple[Tile, ...]


Step = Open | Choosing | Drawn | Drawing


@dataclass(frozen=True, slots=True)
class ShownPlay:
    """An illegal play that the other players may claim (turn_invalid_submission PENALISE_ON_UNANIMOUS_CLAIM).

    Attributes:
        revision: The revision at which it was shown.
        table: The submitted table.
        reasons: The reasons of its violations.
        claimed: The seats that have claimed the error, in ascending order.
        against: The seat that voted against the claim, which has then failed; None if no seat has.
    """

    revision: int
    table: ProposedTable
    reasons: tuple[Reason, ...]
    claimed: tuple[int, ...] = ()
    against: int | None = None


@dataclass(frozen=True, slots=True)
class MeldingRound:
    """One deal, until a player goes out or no player can play.

    Attributes:
        number: From 1.
        order: The seats dealt in, in turn order, the starter first.
        table: The melds in play.
        racks: The racks of the players dealt in, by seat.
        pool: The undealt tiles, in the order of drawing.
        turn: The turn in progress, or the last one of a finished round.
        passed: The seats that have passed in a row, in ascending order.
        river: The River, oldest tile first.
        step: What the player has done in the turn.
        shown_play: The last illegal play shown in the turn.
        last_chance: The seats with a last turn left, the turn in progress first; None before the pool is empty
            (pool_empty_mode ONE_LAST_CHANCE).
        declined: The seats that could have made the initial meld and drew or passed instead, ascending
            (score_never_melded FLAT_100_OR_200). Views must not show it before the score.
    """

    number: int
    order: tuple[int, ...]
    table: Table
    racks: tuple[Rack, ...]
    pool: tuple[Tile, ...]
    turn: Turn
    passed: tuple[int, ...] = ()
    river: tuple[Tile, ...] = ()
    step: Step = Open()
    shown_play: ShownPlay | None = None
    last_chance: tuple[int, ...] | None = None
    declined: tuple[int, ...] = ()

    @property
    def starter(self) -> int:
        """The seat that played first."""
        return self.order[0]

    def rack(self, seat: int) -> Rack:
        """Returns the rack of a seat that was dealt in."""
        return self.racks[list(map(_SEAT, self.racks)).index(seat)]

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """Every tile of the round in ascending order: always the full tile set (R1)."""
        on_racks = (t for rack in self.racks for t in rack.tiles)
        pending = self.step.tiles if isinstance(self.step, Choosing) else ()
        return in_order((*on_racks, *tiles_on(self.table), *self.pool, *self.river, *pending))

    @property
    def names_its_seats(self) -> bool:
        """Whether passes, votes and last turns are of seats dealt in, and last turns begin with the current turn."""
        named = {*self.passed, *self.declined, *(self.last_chance or ())}
        if shown := self.shown_play:
            named.update(shown.claimed, () if shown.against is None else (shown.against,))
        is_last_turn = self.last_chance is None or self.last_chance[:1] == (self.turn.seat,)
        return is_last_turn and named.issubset(self.order)

    @property
    def voters(self) -> tuple[int, ...]:
        """The seats that may still vote on the shown play, in turn order."""
        shown = self.shown_play
        if shown is None or shown.against is not None:
            return ()
        return tuple(seat for seat in self.order if seat != self.turn.seat and seat not in shown.claimed)

    @property
    def to_act(self) -> tuple[int, ...]:
        """The seats that may act: first those that may vote, ascending, then the turn's."""
        return (*sorted(self.voters), self.turn.seat)
