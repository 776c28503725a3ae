"""The whole truth about a game, frozen: players, ruleset, the round in progress, the score.

Everything is here, hidden racks and the pool's order too; what a seat may see of it is in views.py. Seats count from 1.
"""

from dataclasses import dataclass
from enum import Enum, auto

from engine.melds import Meld
from engine.ruleset import Ruleset, TurnDirection
from engine.tiles import Tile, in_order


@dataclass(frozen=True, slots=True)
class Player:
    """Who sits at a seat, with the points of all finished rounds (R64)."""

    seat: int
    name: str
    total_points: int = 0
    resigned: bool = False


@dataclass(frozen=True, slots=True)
class Rack:
    """A player's tiles in a round, in ascending order, and whether the initial meld has been made."""

    seat: int
    tiles: tuple[Tile, ...]
    has_melded: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is, and when it ends: milliseconds since 1970 by the store's clock, None without a limit."""

    seat: int
    deadline_ms: int | None


@dataclass(frozen=True, slots=True)
class Round:
    """One deal until someone is out or none can play.

    Attributes:
        number: From 1.
        starter: The seat that played first.
        table: The melds in play.
        racks: One for each player dealt in, by seat.
        pool: The undealt tiles; the next one drawn is the first.
        turn: The turn in progress; of a finished round, the last one.
        passed: The seats that have passed in a row, in ascending order.
    """

    number: int
    starter: int
    table: tuple[Meld, ...]
    racks: tuple[Rack, ...]
    pool: tuple[Tile, ...]
    turn: Turn
    passed: tuple[int, ...] = ()

    def rack(self, seat: int) -> Rack:
        """The rack of a seat that was dealt in."""
        return next(rack for rack in self.racks if rack.seat == seat)

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """Every tile of the round, wherever it is, in ascending order: always the full tile set (R1)."""
        on_racks = (t for rack in self.racks for t in rack.tiles)
        on_table = (t for meld in self.table for t in meld.tiles)
        return in_order((*on_racks, *on_table, *self.pool))


class RoundEnd(Enum):
    """How a round ended."""

    WENT_OUT = auto()
    BLOCKED = auto()
    RESIGNED = auto()


@dataclass(frozen=True, slots=True)
class SeatResult:
    """What a round brought a player: value (R61) and count of the tiles left, points won or lost (R60, R63)."""

    seat: int
    rack_value: int
    tile_count: int
    points: int


@dataclass(frozen=True, slots=True)
class RoundResult:
    """A finished round: how it ended, its winners (several in a tied blocked round), a result for each player."""

    number: int
    end: RoundEnd
    winners: tuple[int, ...]
    seats: tuple[SeatResult, ...]


@dataclass(frozen=True, slots=True)
class Lobby:
    """Players take their seats."""


@dataclass(frozen=True, slots=True)
class Playing:
    """A round is being played."""

    round: Round


@dataclass(frozen=True, slots=True)
class RoundOver:
    """A round has been scored and the next one has not begun."""

    round: Round


@dataclass(frozen=True, slots=True)
class Finished:
    """The game has ended: its last round, and the winners (several when their totals tie)."""

    round: Round
    winners: tuple[int, ...]


Phase = Lobby | Playing | RoundOver | Finished


@dataclass(frozen=True, slots=True)
class Game:
    """A game.

    Attributes:
        ruleset: Its rules.
        revision: How often it has changed, from 1 for its creation.
        players: By seat.
        phase: Where it stands.
        results: The finished rounds.
    """

    ruleset: Ruleset
    revision: int = 0
    players: tuple[Player, ...] = ()
    phase: Phase = Lobby()
    results: tuple[RoundResult, ...] = ()

    @property
    def round(self) -> Round | None:
        """The round in progress, or the last one; None in the lobby."""
        return None if isinstance(self.phase, Lobby) else self.phase.round

    def player(self, seat: int) -> Player:
        """The player at a taken seat."""
        return next(player for player in self.players if player.seat == seat)

    @property
    def active_seats(self) -> tuple[int, ...]:
        """The seats of the players who have not resigned, ascending."""
        return tuple(player.seat for player in self.players if not player.resigned)


def turn_order(seats: tuple[int, ...], first: int, direction: TurnDirection) -> tuple[int, ...]:
    """Seats in turn order, beginning with `first` or, if that is not among them, the next after it (R10)."""
    if direction is TurnDirection.CLOCKWISE:
        return tuple(sorted(seats, key=lambda seat: (seat < first, seat)))
    return tuple(sorted(seats, key=lambda seat: (seat > first, -seat)))


def next_seat(game: Game, after: int) -> int:
    """Whose turn comes after a seat's: the next player who has not resigned."""
    others = tuple(seat for seat in game.active_seats if seat != after)
    return turn_order(others, after, game.ruleset.turn_direction)[0]


def is_expired(game: Game, now_ms: int) -> bool:
    """Whether the turn in progress is past its deadline (R54)."""
    if not isinstance(game.phase, Playing):
        return False
    deadline = game.phase.round.turn.deadline_ms
    return deadline is not None and now_ms > deadline
