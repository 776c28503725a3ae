"""Actions, and what they lead to: a new game with the events that made it, or every reason why not.

Chance and time are arguments: an action that needs a shuffle carries it, and `apply` is told the time. What the state
of the game forbids is refused with one reason; an illegal play with every violation (rules.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.events import (
    Event,
    GameCreated,
    GameEnded,
    PlayerJoined,
    PlayerLeft,
    PlayerResigned,
    RoundEnded,
    RoundStarted,
    StartDraw,
    TileDrawn,
    TilesPlayed,
    TurnPassed,
    TurnStarted,
    TurnTimedOut,
    advance,
    evolve,
)
from engine.game import (
    Finished,
    Game,
    Lobby,
    Playing,
    Rack,
    Round,
    RoundEnd,
    RoundOver,
    Turn,
    is_expired,
    next_seat,
    turn_order,
)
from engine.melds import ProposedMeld
from engine.rules import Play, judge
from engine.ruleset import HAND_SIZE, PENALTY_TILES, Ruleset
from engine.scoring import Standing, game_winners, is_last_round, score_round
from engine.tiles import JOKER, Tile, in_order, tile_set, value_of
from engine.violations import Reason, Refused, refused


@dataclass(frozen=True, slots=True)
class Join:
    """A new player takes the lowest free seat."""

    name: str


@dataclass(frozen=True, slots=True)
class Leave:
    """A player leaves the lobby."""

    seat: int


@dataclass(frozen=True, slots=True)
class Shuffle:
    """The chance in a round: two shuffles of the full tile set, for the start draw (R7) and for the deal (R5, R6)."""

    start_draw: tuple[Tile, ...]
    deal: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class StartGame:
    """A player starts the first round."""

    seat: int
    shuffle: Shuffle


@dataclass(frozen=True, slots=True)
class StartNextRound:
    """A player starts the next round."""

    seat: int
    shuffle: Shuffle


@dataclass(frozen=True, slots=True)
class PlayTiles:
    """A player plays tiles so that the table lies as given (R21, R44).

    With `river_index` they pull that tile of the River and all newer ones first (turn_draw TWO_RIVER); `calls_rummikub`
    says that they call out the win (win_call).
    """

    seat: int
    table: tuple[ProposedMeld, ...]
    river_index: int | None = None
    calls_rummikub: bool = False


@dataclass(frozen=True, slots=True)
class DrawTile:
    """A player draws one tile (R22)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Pass:
    """A player passes, the pool being empty; or ends a turn in which they have drawn (turn_play_after_draw)."""

    seat: int


@dataclass(frozen=True, slots=True)
class LayOnRiver:
    """A player lays one of the two tiles drawn on the River and keeps the other (turn_draw TWO_RIVER)."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class SaveDraft:
    """A player tells how the table lies under their hands; nothing of it is checked."""

    seat: int
    table: tuple[ProposedMeld, ...]


@dataclass(frozen=True, slots=True)
class ClaimError:
    """A player votes on the illegal play that the change of that revision showed (turn_invalid_submission)."""

    seat: int
    play_revision: int
    agrees: bool


@dataclass(frozen=True, slots=True)
class RequestRedeal:
    """A player with three pairs of identical tiles demands a new deal (deal_three_pairs_reshuffle)."""

    seat: int
    shuffle: Shuffle


@dataclass(frozen=True, slots=True)
class TimeOut:
    """The time of the turn in progress has run out (R55)."""


@dataclass(frozen=True, slots=True)
class Resign:
    """A player gives up the game."""

    seat: int


TurnAction = PlayTiles | DrawTile | LayOnRiver | Pass | SaveDraft
Action = Join | Leave | StartGame | StartNextRound | RequestRedeal | TurnAction | ClaimError | TimeOut | Resign


@dataclass(frozen=True, slots=True)
class Applied:
    """The game after an action, and the events that made it."""

    game: Game
    events: tuple[Event, ...]


def create(ruleset: Ruleset) -> Applied:
    """A new game in the lobby. The ruleset has no problems (ruleset.problems)."""
    events = (GameCreated(ruleset),)
    return Applied(advance(None, events), events)


def apply(game: Game, action: Action, now_ms: int) -> Applied | Refused:
    """What an action leads to.

    Args:
        game: The game before it; never changed.
        action: What is done. Its seat is taken.
        now_ms: The time, milliseconds since 1970.

    Returns:
        The new game and its events, or the reasons for a refusal.

    Raises:
        ValueError: A caller's fault, not a player's: a shuffle of other tiles, or a time-out that is not due.
    """
    decided = _decide(game, action, now_ms)
    return decided if isinstance(decided, Refused) else Applied(advance(game, decided), decided)


Decision = tuple[Event, ...] | Refused


def _decide(game: Game, action: Action, now_ms: int) -> Decision:
    match action:
        case Join(name):
            return _join(game, name)
        case Leave(seat):
            return _leave(game, seat)
        case StartGame(_, shuffle):
            return _start_game(game, shuffle, now_ms)
        case StartNextRound(seat, shuffle):
            return _start_next_round(game, seat, shuffle, now_ms)
        case PlayTiles() | DrawTile() | Pass():
            return _take_turn(game, action, now_ms)
        case TimeOut():
            return _time_out(game, now_ms)
        case Resign(seat):
            return _resign(game, seat, now_ms)


def _join(game: Game, name: str) -> Decision:
    if not isinstance(game.phase, Lobby):
        return refused(Reason.GAME_ALREADY_STARTED)
    if any(player.name == name for player in game.players):
        return refused(Reason.PLAYER_ALREADY_JOINED)
    taken = {player.seat for player in game.players}
    free = [seat for seat in range(1, game.ruleset.players_max + 1) if seat not in taken]
    if not free:
        return refused(Reason.GAME_FULL, players_max=game.ruleset.players_max)
    return (PlayerJoined(free[0], name),)


def _leave(game: Game, seat: int) -> Decision:
    if not isinstance(game.phase, Lobby):
        return refused(Reason.GAME_ALREADY_STARTED)
    return (PlayerLeft(seat),)


def _start_game(game: Game, shuffle: Shuffle, now_ms: int) -> Decision:
    if not isinstance(game.phase, Lobby):
        return refused(Reason.GAME_ALREADY_STARTED)
    if len(game.players) < game.ruleset.players_min:
        return refused(Reason.TOO_FEW_PLAYERS, players=len(game.players), players_min=game.ruleset.players_min)
    return _start_round(game, shuffle, now_ms)


def _start_next_round(game: Game, seat: int, shuffle: Shuffle, now_ms: int) -> Decision:
    match game.phase:
        case Lobby():
            return refused(Reason.GAME_NOT_STARTED)
        case Playing():
            return refused(Reason.ROUND_IN_PROGRESS)
        case Finished():
            return refused(Reason.GAME_OVER)
        case RoundOver():
            if game.player(seat).resigned:
                return refused(Reason.PLAYER_RESIGNED)
            return _start_round(game, shuffle, now_ms)


def _start_round(game: Game, shuffle: Shuffle, now_ms: int) -> tuple[Event, ...]:
    """Start draw, deal, first turn (R5 to R9)."""
    tiles = tile_set(game.ruleset.geometry_jokers)
    if in_order(shuffle.start_draw) != tiles or in_order(shuffle.deal) != tiles:
        raise ValueError("a shuffle must hold the tiles of the tile set")
    seats = game.active_seats
    starter, draws = draw_for_start(seats, shuffle.start_draw)
    racks = tuple(
        Rack(seat, in_order(shuffle.deal[place * HAND_SIZE : (place + 1) * HAND_SIZE]))
        for place, seat in enumerate(seats)
    )
    dealt = RoundStarted(len(game.results) + 1, draws, starter, racks, shuffle.deal[len(seats) * HAND_SIZE :])
    return (dealt, TurnStarted(_turn(starter, game.ruleset, now_ms)))


def draw_for_start(seats: tuple[int, ...], tiles: tuple[Tile, ...]) -> tuple[int, tuple[StartDraw, ...]]:
    """Who plays first: the highest tile (R7). Jokers are drawn again (R8), ties for it too, by the tied.

    Args:
        seats: The players.
        tiles: The tiles in the order in which they are drawn.

    Returns:
        The starter and all draws in order. Should the tiles run out, the lowest of the seats still tied starts.
    """
    rest = iter(tiles)
    draws: list[StartDraw] = []
    tied = seats
    while len(tied) > 1:
        drawn = tuple(_draw_natural(seat, rest, draws) for seat in tied)
        if None in drawn:
            break
        highest = max(value for value in drawn if value)
        tied = tuple(seat for seat, value in zip(tied, drawn, strict=True) if value == highest)
    return tied[0], tuple(draws)


def _draw_natural(seat: int, rest: Iterator[Tile], draws: list[StartDraw]) -> int | None:
    """The value of the first numbered tile that a seat draws; None if the tiles run out."""
    for drawn in rest:
        draws.append(StartDraw(seat, drawn))
        if drawn != JOKER:
            return value_of(drawn)
    return None


def _turn(seat: int, ruleset: Ruleset, now_ms: int) -> Turn:
    """A turn that begins now (R54, turn_time_limit_seconds)."""
    limit = ruleset.turn_time_limit_seconds
    return Turn(seat, now_ms + limit * 1000 if limit else None)


def _take_turn(game: Game, action: TurnAction, now_ms: int) -> Decision:
    match game.phase:
        case Lobby():
            return refused(Reason.GAME_NOT_STARTED)
        case RoundOver():
            return refused(Reason.ROUND_OVER)
        case Finished():
            return refused(Reason.GAME_OVER)
        case Playing(round_):
            return _not_their_turn(game, round_, action.seat, now_ms) or _act(game, round_, action, now_ms)


def _not_their_turn(game: Game, round_: Round, seat: int, now_ms: int) -> Refused | None:
    """R28, R54: only the player whose turn it is may act, and only until the deadline."""
    if game.player(seat).resigned:
        return refused(Reason.PLAYER_RESIGNED)
    if is_expired(game, now_ms):
        return refused(Reason.TURN_TIMED_OUT)
    if round_.turn.seat != seat:
        return refused(Reason.NOT_YOUR_TURN, seat=round_.turn.seat)
    return None


def _act(game: Game, round_: Round, action: TurnAction, now_ms: int) -> Decision:
    match action:
        case PlayTiles():
            return _play(game, round_, action, now_ms)
        case DrawTile(seat):
            if not round_.pool:
                return refused(Reason.POOL_EMPTY)
            return _and_so(game, TileDrawn(seat, round_.pool[0]), now_ms)
        case Pass(seat):
            if round_.pool:
                return refused(Reason.PASS_NOT_ALLOWED_POOL_NOT_EMPTY)
            return _and_so(game, TurnPassed(seat), now_ms)


def play_of(round_: Round, action: PlayTiles, ruleset: Ruleset) -> Play:
    """The play that a player's action amounts to, for the rules to judge."""
    rack = round_.rack(action.seat)
    return Play(round_.table, action.table, rack.tiles, rack.has_melded, ruleset, subject="play.table")


def _play(game: Game, round_: Round, action: PlayTiles, now_ms: int) -> Decision:
    judgement = judge(play_of(round_, action, game.ruleset))
    if judgement.violations:
        return Refused(judgement.violations)
    played = TilesPlayed(action.seat, judgement.tiles_played, judgement.table, judgement.points)
    return _and_so(game, played, now_ms)


def _time_out(game: Game, now_ms: int) -> Decision:
    """R55, R56: table and rack are as they were, penalty tiles are drawn, the turn ends. An empty pool: as a pass."""
    if not (isinstance(game.phase, Playing) and is_expired(game, now_ms)):
        raise ValueError("no turn has run out of time")
    round_ = game.phase.round
    return _and_so(game, TurnTimedOut(round_.turn.seat, round_.pool[:PENALTY_TILES]), now_ms)


def _resign(game: Game, seat: int, now_ms: int) -> Decision:
    match game.phase:
        case Lobby():
            return refused(Reason.GAME_NOT_STARTED)
        case Finished():
            return refused(Reason.GAME_OVER)
        case Playing() | RoundOver():
            if game.player(seat).resigned:
                return refused(Reason.PLAYER_RESIGNED)
            return _and_so(game, PlayerResigned(seat), now_ms)


def _and_so(game: Game, event: Event, now_ms: int) -> tuple[Event, ...]:
    """An event with what follows from it: the round's end, the game's end, the next turn."""
    after = evolve(game, event)
    if isinstance(after.phase, Playing):
        return (event, *_consequences(after, after.phase.round, event, now_ms))
    if len(after.active_seats) == 1:
        return (event, GameEnded(after.active_seats))
    return (event,)


def _consequences(game: Game, round_: Round, event: Event, now_ms: int) -> tuple[Event, ...]:
    end = _round_end(game, round_)
    if end:
        return _end_round(game, round_, end)
    if isinstance(event, PlayerResigned) and event.seat != round_.turn.seat:
        return ()
    return (TurnStarted(_turn(next_seat(game, round_.turn.seat), game.ruleset, now_ms)),)


def _round_end(game: Game, round_: Round) -> RoundEnd | None:
    """Whether a round is over: a rack is empty (R57), one player is left, or all have passed in a row (R59)."""
    if any(not rack.tiles for rack in round_.racks):
        return RoundEnd.WENT_OUT
    if len(game.active_seats) == 1:
        return RoundEnd.RESIGNED
    return RoundEnd.BLOCKED if set(game.active_seats) <= set(round_.passed) else None


def _end_round(game: Game, round_: Round, end: RoundEnd) -> tuple[Event, ...]:
    seats = tuple(rack.seat for rack in round_.racks)
    order = turn_order(seats, round_.starter, game.ruleset.turn_direction)
    standings = tuple(Standing(seat, round_.rack(seat).tiles, game.player(seat).resigned) for seat in order)
    result = score_round(round_.number, end, standings, game.ruleset)
    ended = RoundEnded(replace(result, seats=tuple(sorted(result.seats, key=lambda seat: seat.seat))))
    players = evolve(game, ended).players
    if end is RoundEnd.RESIGNED or is_last_round(round_.number, players, game.ruleset):
        return (ended, GameEnded(game_winners(players)))
    return (ended,)
