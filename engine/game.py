"""The complete state of a game, frozen: players, ruleset, the round in progress, and the score.

It includes hidden racks and the order of the pool. What a seat may see of it is in views.py. Seats count from 1.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto
from operator import attrgetter
from typing import Final

from engine.room_settings import DEFAULT_SETTINGS, RoomSettings
from engine.seats import Player, Rack, ReservedSeat, from_seat
from engine.tiles import Tile
from engine.unions import Round, Ruleset


class RoundEnd(Enum):
    """How a round ended."""

    WENT_OUT = auto()
    BLOCKED = auto()
    RESIGNED = auto()
    KNOCKED = auto()
    VOID = auto()


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
        racks: All racks at the end, by seat; empty if they are never shown.
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


_SEAT: Final = attrgetter("seat")


@dataclass(frozen=True, slots=True)
class Game:
    """A game.

    Attributes:
        ruleset: The rules.
        settings: The settings of its room.
        revision: The number of changes; 1 after the creation.
        players: The players, by seat.
        phase: The phase, with the round in progress or the last one.
        results: The results of the finished rounds.
        reserved: The reserved seats of the lobby, ascending. The game cannot start before they are taken or given up.
        position_seats: The seats of the position that the game begins with, ascending; none if it begins with a deal.
        deal_commitment: The commitment of the server to all deals (fair_deal); empty for none.
        deals: The number of deals that followed from a seed.
    """

    ruleset: Ruleset
    settings: RoomSettings = DEFAULT_SETTINGS
    revision: int = 0
    players: tuple[Player, ...] = ()
    phase: Phase = Lobby()
    results: tuple[RoundResult, ...] = ()
    reserved: tuple[ReservedSeat, ...] = ()
    position_seats: tuple[int, ...] = ()
    deal_commitment: bytes = b""
    deals: int = 0

    @property
    def seats(self) -> tuple[int, ...]:
        """All seats that players may take, ascending."""
        return self.position_seats or tuple(range(1, self.ruleset.players_max + 1))

    @property
    def players_needed(self) -> int:
        """The fewest players with whom the game starts."""
        return len(self.position_seats) or self.ruleset.players_min

    @property
    def round(self) -> Round | None:
        """The round in progress, or the last one; None if none has started."""
        return None if isinstance(self.phase, Lobby) else self.phase.round

    def player(self, seat: int) -> Player:
        """Returns the player at a taken seat."""
        return self.players[list(map(_SEAT, self.players)).index(seat)]

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


def next_seat(game: Game, round_: Round) -> int:
    """Returns the seat of the next turn: the next player who has not resigned."""
    following = from_seat(round_.order, round_.turn.seat)[1:]
    return next(seat for seat in following if not game.player(seat).resigned)


def bots_to_act(game: Game) -> tuple[int, ...]:
    """Returns the seats that bots play and that must act, in the order of Round.to_act."""
    if not isinstance(game.phase, Playing):
        return ()
    bots = {player.seat for player in game.players if (player.bot or player.stand_in) and not player.resigned}
    return tuple([seat for seat in game.phase.round.to_act if seat in bots]) if bots else ()


def is_expired(game: Game, now_ms: int) -> bool:
    """Returns whether the turn in progress is past its deadline (R54)."""
    if not isinstance(game.phase, Playing):
        return False
    deadline = game.phase.round.turn.deadline_ms
    return deadline is not None and now_ms > deadline


def round_of(game: Game) -> Round:
    """Returns the round in progress, or the last one. Raises ValueError if none has started."""
    round_ = None if isinstance(game.phase, Lobby) else game.phase.round
    if round_ is None:
        raise ValueError("no round of the game has started")
    return round_


def with_result(game: Game, result: RoundResult) -> Game:
    """Returns the game with a finished round added to its results and totals. The phase is unchanged."""
    points = {seat.seat: seat.points for seat in result.seats}
    players = tuple(
        replace(p, total_points=p.total_points + points.get(p.seat, 0), wants_abort=False) for p in game.players
    )
    return replace(game, players=players, results=(*game.results, result))
