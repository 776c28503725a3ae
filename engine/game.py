"""The whole truth about a game, frozen: players, ruleset, the round in progress, the score.

Everything is here, hidden racks and the pool's order too; what a seat may see of it is in views.py. Seats count from 1.
"""

from dataclasses import dataclass
from enum import Enum, auto

from engine.ruleset import Ruleset, TurnDirection
from engine.table import ProposedTable, Table, tiles_on
from engine.tiles import Tile, in_order
from engine.violations import Reason


class BotLevel(Enum):
    """How well a seat is played that the service plays (bots.py)."""

    EASY = auto()
    MEDIUM = auto()
    HARD = auto()


@dataclass(frozen=True, slots=True)
class Player:
    """Who sits at a seat, with the points of all finished rounds (R64); of a bot how well it plays."""

    seat: int
    name: str
    total_points: int = 0
    resigned: bool = False
    bot: BotLevel | None = None


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
class Open:
    """Nothing has been done in the turn yet."""


@dataclass(frozen=True, slots=True)
class Choosing:
    """Two tiles were drawn, and one of them is to be laid on the River (turn_draw TWO_RIVER)."""

    tiles: tuple[Tile, Tile]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Tiles were drawn, are on the rack, and the turn goes on (turn_play_after_draw): the one drawn last."""

    tile: Tile


Step = Open | Choosing | Drawn


@dataclass(frozen=True, slots=True)
class ShownPlay:
    """An illegal play that the other players may claim (turn_invalid_submission PENALISE_ON_UNANIMOUS_CLAIM).

    Attributes:
        revision: That of the change which showed it.
        table: The table as it was submitted.
        reasons: What is wrong with it.
        claimed: The seats that have claimed the error, in ascending order.
        against: The seat that has voted against the claim, which has failed; None while nobody has.
    """

    revision: int
    table: ProposedTable
    reasons: tuple[Reason, ...]
    claimed: tuple[int, ...] = ()
    against: int | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One deal until someone is out or none can play.

    Attributes:
        number: From 1.
        order: The seats dealt in, in turn order, the starter first.
        table: The melds in play.
        racks: One for each player dealt in, by seat.
        pool: The undealt tiles; the next one drawn is the first.
        turn: The turn in progress; of a finished round, the last one.
        passed: The seats that have passed in a row, in ascending order.
        river: The River, oldest tile first.
        step: What has been done in the turn.
        draft: The table as the player has it under their hands, if they told.
        shown_play: The illegal play shown last in the turn.
        last_chance: Whose last turns are still to come, the turn in progress first; None before the pool is empty
            (pool_empty_mode ONE_LAST_CHANCE).
        declined: The seats that could have made the initial meld and drew or passed instead, ascending
            (score_never_melded FLAT_100_OR_200). Nobody may see it before the score.
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
    draft: ProposedTable | None = None
    shown_play: ShownPlay | None = None
    last_chance: tuple[int, ...] | None = None
    declined: tuple[int, ...] = ()

    @property
    def starter(self) -> int:
        """The seat that played first."""
        return self.order[0]

    def rack(self, seat: int) -> Rack:
        """The rack of a seat that was dealt in."""
        return next(rack for rack in self.racks if rack.seat == seat)

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """Every tile of the round, wherever it is, in ascending order: always the full tile set (R1)."""
        on_racks = (t for rack in self.racks for t in rack.tiles)
        pending = self.step.tiles if isinstance(self.step, Choosing) else ()
        return in_order((*on_racks, *tiles_on(self.table), *self.pool, *self.river, *pending))


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
        return tuple([player.seat for player in self.players if not player.resigned])

    @property
    def is_left_to_bots(self) -> bool:
        """Whether all who have not resigned are bots, which start no round."""
        return all(player.bot or player.resigned for player in self.players)


def turn_order(seats: tuple[int, ...], first: int, direction: TurnDirection) -> tuple[int, ...]:
    """Seats in turn order, beginning with `first` or, if that is not among them, the next after it (R10)."""
    if direction is TurnDirection.CLOCKWISE:
        return tuple(sorted(seats, key=lambda seat: (seat < first, seat)))
    return tuple(sorted(seats, key=lambda seat: (seat > first, -seat)))


def from_seat(order: tuple[int, ...], first: int) -> tuple[int, ...]:
    """A turn order, beginning with another of its seats."""
    place = order.index(first)
    return order[place:] + order[:place]


def next_seat(game: Game, round_: Round) -> int:
    """Whose turn comes after the one in progress: the next player who has not resigned."""
    following = from_seat(round_.order, round_.turn.seat)[1:]
    return next(seat for seat in following if not game.player(seat).resigned)


def bots_to_act(game: Game) -> tuple[int, ...]:
    """The seats of bots that have something to do: first those with a vote on the play that is shown, then the turn."""
    if not isinstance(game.phase, Playing):
        return ()
    turn, shown = game.phase.round.turn, game.phase.round.shown_play
    bots = tuple([player.seat for player in game.players if player.bot and not player.resigned])
    if not bots:
        return ()
    voted = bots if shown is None or shown.against is not None else shown.claimed
    voters = tuple(seat for seat in bots if seat not in (turn.seat, *voted))
    return voters + tuple(seat for seat in bots if seat == turn.seat)


def is_expired(game: Game, now_ms: int) -> bool:
    """Whether the turn in progress is past its deadline (R54)."""
    if not isinstance(game.phase, Playing):
        return False
    deadline = game.phase.round.turn.deadline_ms
    return deadline is not None and now_ms > deadline


def round_of(game: Game) -> Round:
    """The round in progress, or the last one. Raises ValueError in the lobby, where no event of a round belongs."""
    if isinstance(game.phase, Lobby):
        raise ValueError("the game is in the lobby and has no round")  # noqa: TRY004 - a wrong history
    return game.phase.round
