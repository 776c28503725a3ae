"""The record of a game: what its players did, complete enough to play the game again without the service.

A record is made from the events of a game (`record_of`). Playing it again (`replayed`) applies each move by the rules,
so a record that breaks one is refused at that move. record_text.py has its text.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce

from engine.actions import (
    AbortGame,
    Action,
    Resign,
    ReturnToSeat,
    StandIn,
    StartDueRound,
    StartGame,
    StartNextRound,
    TakeOverSeat,
)
from engine.events import (
    Event,
    GameAborted,
    GameCreated,
    PlayerJoined,
    PlayerReadied,
    PlayerResigned,
    PlayerReturned,
    SeatTakenOver,
)
from engine.fair_deal import DEALS_MAX, hashed, shuffle_for
from engine.family import EXACT, family_of, moves_of
from engine.game import Finished, Game, Lobby, RoundEnd, RoundResult, is_expired
from engine.moves import Move, MoveKind, Played, RecordedPlayer
from engine.replay import advance, evolve
from engine.room_settings import RoomSettings
from engine.seats import HOST
from engine.tiles import Tile
from engine.timers import is_due
from engine.turns import apply
from engine.unions import Analysis, BotAction, RoundStart, Ruleset
from engine.violation_texts import describe_violation
from engine.violations import Refused, Violation


@dataclass(frozen=True, slots=True)
class RoundScore:
    """How a round ended, and the points by seat."""

    end: RoundEnd
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class GameRecord:
    """A game from its first deal on.

    Attributes:
        ruleset: The rules.
        settings: The settings of its room.
        created_ms: When the game was created, in milliseconds since 1970.
        players: The players at the start, by seat.
        moves: All moves, in order.
        rounds: The scores of the finished rounds.
        winners: The winners of a finished game.
        deal_commitment: The commitment of the server to all deals (fair_deal); empty for none.
        deal_seed: The server's seed of the last deal that followed from one; empty for none.
    """

    ruleset: Ruleset
    settings: RoomSettings
    created_ms: int
    players: tuple[RecordedPlayer, ...]
    moves: tuple[Move, ...]
    rounds: tuple[RoundScore, ...]
    winners: tuple[int, ...]
    deal_commitment: bytes = b""
    deal_seed: bytes = b""


class RecordError(ValueError):
    """A record breaks a rule.

    Attributes:
        move: The index of the move in question, from 0; None if it is none of them.
        violations: The violations of an illegal move.
    """

    def __init__(self, message: str, move: int | None = None, violations: tuple[Violation, ...] = ()) -> None:
        super().__init__(message)
        self.move = move
        self.violations = violations


# From events


def record_of(changes: Iterable[tuple[int, int, tuple[Event, ...]]]) -> GameRecord:
    """Returns the record of a game from all its changes: revision, time in milliseconds, and events of each."""
    game, created_ms, moves, seed = None, 0, [], b""
    players: tuple[RecordedPlayer, ...] = ()
    for revision, time_ms, events in changes:
        if game is None:
            created_ms = time_ms
        else:
            move = _move(game, revision, time_ms, events)
            if move and move.dealt:
                seed = move.dealt.seed or seed
                move = replace(move, dealt=replace(move.dealt, seed=b""))
            moves += [move] if move else []
        game = advance(game, events)
        if isinstance(game.phase, Lobby):
            players = tuple(
                RecordedPlayer(one.seat, one.name, one.bot, one.is_program, one.deal_seed) for one in game.players
            )
    if game is None:
        raise ValueError("a record needs the game's creation")
    scores, winners = _scores(game), _winners(game)
    return GameRecord(
        game.ruleset,
        game.settings,
        created_ms,
        players,
        tuple(moves),
        scores,
        winners,
        game.deal_commitment,
        seed,
    )


def _scores(game: Game) -> tuple[RoundScore, ...]:
    return tuple(map(_score, game.results))


def _score(result: RoundResult) -> RoundScore:
    return RoundScore(result.end, tuple((seat.seat, seat.points) for seat in result.seats))


def _winners(game: Game) -> tuple[int, ...]:
    return game.phase.winners if isinstance(game.phase, Finished) else ()


def _move(game: Game, revision: int, time_ms: int, events: tuple[Event, ...]) -> Move | None:
    """Returns the move that led to the events of a change; None for changes that are not part of a record."""
    match events:
        case (PlayerReturned(seat), dealt, *_) if isinstance(dealt, RoundStart):
            return Move(revision, time_ms, MoveKind.DEAL, seat, dealt=dealt)
        case (PlayerReturned(seat), *rest):
            own = _own_move(game, revision, time_ms, tuple(rest)) if rest else None
            return own or Move(revision, time_ms, MoveKind.RETURN_TO_SEAT, seat)
        case _:
            move = _own_move(game, revision, time_ms, events)
            return replace(move, by_bot=True) if move and _is_by_bot(game, move) else move


def _is_by_bot(game: Game, move: Move) -> bool:
    """Returns whether a move of a player who did not return by it was a bot's."""
    return move.kind in moves_of(game).BY_BOTS and game.player(move.seat).stand_in is not None


def _own_move(game: Game, revision: int, time_ms: int, events: tuple[Event, ...]) -> Move | None:
    """Returns the move, given the events after a player's return."""
    match events:
        case (*_, GameAborted()):
            return Move(revision, time_ms, MoveKind.ABORT)
        case (dealt, *_) if isinstance(dealt, RoundStart):
            return Move(revision, time_ms, MoveKind.DEAL, dealt=dealt)
        case (PlayerResigned(seat), *_):
            return Move(revision, time_ms, MoveKind.RESIGN, seat)
        case (SeatTakenOver(seat, name, bot, is_program), *_):
            player = RecordedPlayer(seat, name, bot, is_program)
            return Move(revision, time_ms, MoveKind.TAKE_OVER, seat, player=player)
        case _:
            return moves_of(game).move_of(game, revision, time_ms, events)


# Playing a record again


def replayed(record: GameRecord, analysis: Analysis = EXACT) -> Iterator[Played]:
    """Yields each move of a record, played by the rules, in order.

    Raises:
        RecordError: The record breaks a rule. If it names no move, the players or the scores are wrong.
    """
    game, now_ms, seeds = _start(record), record.created_ms, _deal_seeds(record)
    for index, move in enumerate(record.moves):
        if move.revision <= game.revision or move.time_ms < now_ms:
            raise RecordError("the revision or the time does not follow those of the move before", index)
        before = replace(game, revision=move.revision - 1)
        game, now_ms = _played(before, move, index, analysis), move.time_ms
        if move.dealt and not move.dealt.is_position and (seed := next(seeds, b"")):
            _check_shuffle(before, move.dealt, seed, index)
        yield Played(move, before, game)
    _check_scores(record, game)


def _start(record: GameRecord) -> Game:
    """Returns the game before the first move."""
    rules, players = record.ruleset, record.players
    seats, names = [player.seat for player in players], {player.name for player in players}
    if not rules.players_min <= len(players) <= rules.players_max:
        raise RecordError(f"expected {rules.players_min} to {rules.players_max} players")
    if seats != sorted(set(seats)) or not set(seats) <= set(range(1, rules.players_max + 1)):
        raise RecordError(f"expected seats from 1 to {rules.players_max}, each once and ascending")
    if len(names) < len(players):
        raise RecordError("two players have one name")
    events: list[Event] = [PlayerJoined(one.seat, one.name, one.bot, is_program=one.is_program) for one in players]
    events += [PlayerReadied(player.seat, is_ready=True, deal_seed=player.deal_seed) for player in players]
    position_seats = tuple(seats) if _has_position(record) else ()
    created = GameCreated(rules, record.settings, (), position_seats, record.deal_commitment)
    return reduce(evolve, events, evolve(Game(rules), created))


def _deal_seeds(record: GameRecord) -> Iterator[bytes]:
    """Returns the server's seeds of a record's deals, in order. Raises RecordError if they break its commitment."""
    if not record.deal_commitment:
        return iter(())
    dealt = sum(move.dealt is not None and not move.dealt.is_position for move in record.moves)
    seeds = [record.deal_seed]
    while len(seeds) < min(dealt, DEALS_MAX):
        seeds.append(hashed(seeds[-1], 1))
    if dealt and hashed(seeds[-1], 1) != record.deal_commitment:
        raise RecordError(f"the seed of the last of {dealt} deals does not lead to the commitment")
    return reversed(seeds)


def _check_shuffle(before: Game, dealt: RoundStart, seed: bytes, index: int) -> None:
    """Raises RecordError unless a deal follows from the seeds."""
    shuffled = family_of(before).deal(before, shuffle_for(before, seed))
    if replace(shuffled, seed=b"") != dealt:
        raise RecordError("the deal does not follow from the seeds", index)


def _has_position(record: GameRecord) -> bool:
    """Returns whether a recorded game began with a position."""
    dealt = record.moves[0].dealt if record.moves else None
    return dealt is not None and dealt.is_position


def _played(before: Game, move: Move, index: int, analysis: Analysis) -> Game:
    """Returns the game after a move. Raises RecordError."""
    problem = _problem(before, move)
    if problem:
        raise RecordError(problem, index)
    refusal, other = None, None
    for action in _candidates(before, move):
        try:
            outcome = apply(before, _as_taken(action, move), move.time_ms, analysis)
        except ValueError as error:  # an impossible deal
            raise RecordError(str(error), index) from None
        if isinstance(outcome, Refused):
            refusal = refusal or outcome
            continue
        other = _move(before, move.revision, move.time_ms, outcome.events)
        if other and _outcome(other) == _outcome(move):
            return outcome.game
        refusal = refusal or (Refused(outcome.violations) if outcome.violations else None)
    if refusal:
        raise RecordError(describe_violation(refusal.violations[0]), index, refusal.violations)
    raise RecordError(_difference(move, other), index)


def _problem(before: Game, move: Move) -> str:
    """Returns why a move cannot be applied at all; empty if it can."""
    if not _is_complete(before, move):
        return "the move is incomplete, or has parts that do not belong to it"
    if move.seat and move.seat not in {player.seat for player in before.players}:
        return f"there is no player in seat {move.seat}"
    if move.kind is MoveKind.DEAL and move.seat and before.player(move.seat).stand_in is None:
        return "a deal has the seat of an absent player who returned by it, else 0"
    if move.kind is MoveKind.TIME_OUT and not is_expired(before, move.time_ms):
        return "no turn has passed its deadline"
    return ""


def _is_complete(game: Game, move: Move) -> bool:
    """Returns whether a move has the parts that its kind needs, and no other."""
    kind, moves = move.kind, moves_of(game)
    return (
        (kind is MoveKind.DEAL or (move.seat > 0) == (kind is not MoveKind.ABORT))
        and (kind in moves.BY_BOTS or not move.by_bot)
        and (move.player is not None) == (kind is MoveKind.TAKE_OVER)
        and (move.player is None or (move.player.seat, move.player.deal_seed) == (move.seat, b""))
        and moves.is_complete(move)
    )


def _outcome(move: Move) -> tuple[MoveKind, int, tuple[Tile, ...]]:
    """Returns the parts of a move that follow from the game, unlike what the player chose."""
    return move.kind, move.seat, move.tiles


def _difference(move: Move, other: Move | None) -> str:
    """Returns why a move is not the one that the rules make of its action."""
    if other and (other.kind, other.seat) != (move.kind, move.seat):
        return f"by the rules this move is {other.kind.name} of seat {other.seat}"
    return "the tiles are not the next ones of the pool"


def _candidates(game: Game, move: Move) -> Iterator[Action]:
    """Yields actions that may have been the move; an event does not say everything that led to it."""
    match move:
        case Move(kind=MoveKind.DEAL, dealt=dealt) if dealt is not None:
            yield _deal(game, move, dealt)
        case Move(kind=MoveKind.RESIGN):
            yield Resign(move.seat)
        case Move(kind=MoveKind.TAKE_OVER, player=player) if player is not None:
            yield TakeOverSeat(HOST, player.seat, player.name, player.bot, player.is_program)
        case Move(kind=MoveKind.RETURN_TO_SEAT):
            yield ReturnToSeat(move.seat)
        case Move(kind=MoveKind.ABORT):
            yield AbortGame(HOST, is_forced=True)
        case _:
            yield from moves_of(game).actions(game, move)


def _deal(game: Game, move: Move, dealt: RoundStart) -> Action:
    """Returns the action that led to a deal."""
    if isinstance(game.phase, Lobby):
        return StartGame(HOST, dealt)
    if not move.seat and is_due(game, move.time_ms):
        return StartDueRound(dealt)
    return StartNextRound(move.seat or _any_starter(game), dealt)


def _any_starter(game: Game) -> int:
    """Returns a player who may start the next round; of all who are absent or have resigned, the first."""
    present = (player.seat for player in game.players if not player.resigned and player.stand_in is None)
    return next(present, game.players[0].seat)


def _as_taken(action: Action, move: Move) -> Action:
    """Returns the action, as a bot takes it for an absent player if it did."""
    return StandIn(action) if move.by_bot and isinstance(action, BotAction) else action


def _check_scores(record: GameRecord, game: Game) -> None:
    """Raises RecordError unless rounds and game ended as the record says."""
    for number, (stated, scored) in enumerate(zip(record.rounds, _scores(game), strict=False), 1):
        if stated != scored:
            raise RecordError(f"round {number} ended {scored.end.name} with the points {dict(scored.points)}")
    if len(record.rounds) != len(game.results):
        raise RecordError(f"the moves end {len(game.results)} rounds; the record has {len(record.rounds)} scores")
    if record.winners != _winners(game):
        raise RecordError(f"the winners are {_winners(game)}")
