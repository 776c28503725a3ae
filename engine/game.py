"""The complete state of a game, frozen: players, ruleset, the round in progress, and the score.

It includes hidden racks and the order of the pool. What a seat may see of it is in views.py. Seats count from 1.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from engine.melding.ruleset import Ruleset, TurnDirection
from engine.melding.table import ProposedTable, Table, tiles_on
from engine.tiles import Tile, in_order
from engine.violations import Reason

HOST: Final = 0
"""Stands for the host where an action or a token has no seat. Seats count from 1."""


class BotLevel(Enum):
    """How well a bot plays (bots.py)."""

    EASY = auto()
    MEDIUM = auto()
    HARD = auto()


@dataclass(frozen=True, slots=True)
class Player:
    """A player.

    Attributes:
        seat: The seat.
        name: The name.
        total_points: The points of all finished rounds (R64).
        resigned: Whether the player has resigned from the game.
        bot: The level of a bot; None for a person.
        timeouts_in_a_row: The number of turns that timed out since the last action in a turn.
        stand_in: The level of the bot that plays for an absent person; None if the person is not absent.
        time_left_ms: The bank of time for the round, as at the start of the player's turn while that is in progress;
            None without clocks (clock_total_seconds).
        is_ready: Whether the player is ready to start (SetReady). A bot always is.
        is_host: Whether the player is the host. At most one player is.
        wants_abort: Whether the player has voted in this round to abort the game.
    """

    seat: int
    name: str
    total_points: int = 0
    resigned: bool = False
    bot: BotLevel | None = None
    timeouts_in_a_row: int = 0
    stand_in: BotLevel | None = None
    time_left_ms: int | None = None
    is_ready: bool = False
    is_host: bool = False
    wants_abort: bool = False

    @property
    def played_by(self) -> BotLevel | None:
        """The level of the bot that plays the seat, as a player or for an absent person; None for a person."""
        return self.bot or self.stand_in


@dataclass(frozen=True, slots=True)
class Rack:
    """A player's tiles in a round, in ascending order, and whether the initial meld has been made."""

    seat: int
    tiles: tuple[Tile, ...]
    has_melded: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn.

    Attributes:
        seat: The seat that has the turn.
        deadline_ms: When it ends, in milliseconds since 1970 by the store's clock; None without a limit.
        revision: The game's revision at which it started, which names the turn; 0 if no change of a game started it.
    """

    seat: int
    deadline_ms: int | None
    revision: int = 0


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


Step = Open | Choosing | Drawn


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
class Round:
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
        return next(rack for rack in self.racks if rack.seat == seat)

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """Every tile of the round in ascending order: always the full tile set (R1)."""
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
    """A player's result of a round: value (R61) and count of the tiles left, points won or lost (R60, R63)."""

    seat: int
    rack_value: int
    tile_count: int
    points: int


@dataclass(frozen=True, slots=True)
class RoundResult:
    """A finished round.

    Attributes:
        number: From 1.
        end: How it ended.
        winners: The winners, several in a tied blocked round.
        seats: Each player's result.
        racks: All racks at the end, by seat; empty if the ruleset never shows them (racks_shown HIDDEN).
        pool: The pool at the end, in the order of drawing; empty like `racks`.
        is_open: Whether everyone may see racks and pool. Views must not show them before.
    """

    number: int
    end: RoundEnd
    winners: tuple[int, ...]
    seats: tuple[SeatResult, ...]
    racks: tuple[Rack, ...] = ()
    pool: tuple[Tile, ...] = ()
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Lobby:
    """The game has not started. Players join and leave.

    Attributes:
        starts_ms: When the first round starts by itself, in milliseconds since 1970; None if a player must start it.
    """

    starts_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Playing:
    """A round is in progress."""

    round: Round


@dataclass(frozen=True, slots=True)
class RoundOver:
    """A round has been scored, and the next one has not started.

    Attributes:
        round: The round.
        next_round_ms: When the next round starts by itself, in milliseconds since 1970; None if a player must start it.
    """

    round: Round
    next_round_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """The game is over.

    Attributes:
        round: The last round, which an abandoned game may have left unfinished.
        winners: The winners, several when their totals tie; none if the game was abandoned in its first round.
        abandoned: Whether the game ended because all people were absent.
        rematch_game_id: The id of the rematch; empty if there is none.
    """

    round: Round
    winners: tuple[int, ...]
    abandoned: bool = False
    rematch_game_id: str = ""


@dataclass(frozen=True, slots=True)
class Aborted:
    """The game was aborted, in the lobby (then it has no round) or later. It has no winner."""

    round: Round | None
    rematch_game_id: str = ""


Phase = Lobby | Playing | RoundOver | Finished | Aborted


@dataclass(frozen=True, slots=True)
class ReservedSeat:
    """A seat of a lobby that only its owner of the game before can take, and the name there (create_rematch)."""

    seat: int
    name: str


@dataclass(frozen=True, slots=True)
class Game:
    """A game.

    Attributes:
        ruleset: The rules.
        revision: The number of changes; 1 after the creation.
        players: The players, by seat.
        phase: The phase, with the round in progress or the last one.
        results: The results of the finished rounds.
        reserved: The reserved seats of the lobby, ascending. The game cannot start before they are taken or given up.
    """

    ruleset: Ruleset
    revision: int = 0
    players: tuple[Player, ...] = ()
    phase: Phase = Lobby()
    results: tuple[RoundResult, ...] = ()
    reserved: tuple[ReservedSeat, ...] = ()

    @property
    def round(self) -> Round | None:
        """The round in progress, or the last one; None if none has started."""
        return None if isinstance(self.phase, Lobby) else self.phase.round

    def player(self, seat: int) -> Player:
        """Returns the player at a taken seat."""
        return next(player for player in self.players if player.seat == seat)

    @property
    def active_seats(self) -> tuple[int, ...]:
        """The seats of the players who have not resigned, ascending."""
        return tuple([player.seat for player in self.players if not player.resigned])

    @property
    def host_seat(self) -> int | None:
        """The seat of the host; None if the host has none."""
        return next((player.seat for player in self.players if player.is_host), None)

    @property
    def rematch_game_id(self) -> str:
        """The id of the rematch; empty if there is none."""
        return self.phase.rematch_game_id if isinstance(self.phase, (Finished, Aborted)) else ""

    @property
    def is_left_to_bots(self) -> bool:
        """Whether all players who have not resigned are bots, which never start a round."""
        return all(player.bot or player.resigned for player in self.players)

    @property
    def is_abandoned(self) -> bool:
        """Whether people remain who have not resigned, and all of them are absent."""
        people = [player for player in self.players if not (player.bot or player.resigned)]
        return bool(people) and all(player.stand_in for player in people)


def turn_order(seats: tuple[int, ...], first: int, direction: TurnDirection) -> tuple[int, ...]:
    """Returns seats in turn order, starting with `first` or, if it is not among them, the next one after it (R10)."""
    if direction is TurnDirection.CLOCKWISE:
        return tuple(sorted(seats, key=lambda seat: (seat < first, seat)))
    return tuple(sorted(seats, key=lambda seat: (seat > first, -seat)))


def from_seat(order: tuple[int, ...], first: int) -> tuple[int, ...]:
    """Returns a turn order that starts with another of its seats."""
    place = order.index(first)
    return order[place:] + order[:place]


def next_seat(game: Game, round_: Round) -> int:
    """Returns the seat of the next turn: the next player who has not resigned."""
    following = from_seat(round_.order, round_.turn.seat)[1:]
    return next(seat for seat in following if not game.player(seat).resigned)


def bots_to_act(game: Game) -> tuple[int, ...]:
    """Returns the seats that bots play and that must act: first those that vote on the shown play, then the turn's."""
    if not isinstance(game.phase, Playing):
        return ()
    turn, shown = game.phase.round.turn, game.phase.round.shown_play
    bots = tuple([player.seat for player in game.players if player.played_by and not player.resigned])
    if not bots:
        return ()
    voted = bots if shown is None or shown.against is not None else shown.claimed
    voters = tuple(seat for seat in bots if seat not in (turn.seat, *voted))
    return voters + tuple(seat for seat in bots if seat == turn.seat)


def is_expired(game: Game, now_ms: int) -> bool:
    """Returns whether the turn in progress is past its deadline (R54)."""
    if not isinstance(game.phase, Playing):
        return False
    deadline = game.phase.round.turn.deadline_ms
    return deadline is not None and now_ms > deadline


def round_of(game: Game) -> Round:
    """Returns the round in progress, or the last one. Raises ValueError if none has started."""
    if game.round is None:
        raise ValueError("no round of the game has started")
    return game.round
