"""Actions, and what they lead to: a new game with the events that made it, or every reason why not.

Chance and time are arguments: an action that needs a shuffle carries it, and `apply` is told the time. What the state
of the game forbids is refused with one reason; an illegal play with every violation (rules.py), unless the ruleset has
other consequences for it (turn_invalid_submission).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from engine.analysis import Analysis, Existence, Situation
from engine.deal import Shuffle, deal_round, may_demand_redeal
from engine.events import (
    DraftSaved,
    ErrorClaimed,
    Event,
    GameCreated,
    GameEnded,
    IllegalPlayShown,
    LastChanceStarted,
    PlayerJoined,
    PlayerLeft,
    PlayerResigned,
    RedealDemanded,
    RiverTileLaid,
    RoundEnded,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TilesPlayed,
    TurnEnded,
    TurnPassed,
    TurnPenalised,
    TurnStarted,
    TurnTimedOut,
    advance,
    evolve,
)
from engine.fast.fast_judge import FastJudges
from engine.fast.fast_play import PlayerState
from engine.fast.read_melds import melds_by_identity
from engine.game import (
    BotLevel,
    Choosing,
    Drawn,
    Finished,
    Game,
    Lobby,
    Playing,
    Round,
    RoundEnd,
    RoundOver,
    Turn,
    from_seat,
    is_expired,
    next_seat,
    round_of,
)
from engine.melds import Meld, ProposedMeld
from engine.play import BasePlay
from engine.rules import has_own_tiles_only
from engine.ruleset import (
    PoolEmptyLastChanceStart,
    PoolEmptyMode,
    PoolEmptyPass,
    PoolEmptyStuckTest,
    Ruleset,
    ScoreNeverMelded,
    TurnDraw,
    TurnInvalidSubmission,
    TurnPlayAfterDraw,
    TurnTimeoutClean,
    TurnTimeoutDirty,
    TurnVoluntaryDraw,
)
from engine.scoring import Standing, are_one_side, game_winners, is_last_round, score_round
from engine.solver import Budget, has_turn
from engine.table import ProposedTable
from engine.tiles import Tile, in_order, without
from engine.violations import Reason, Refused, Violation, refused


@dataclass(frozen=True, slots=True)
class Join:
    """A new player takes the lowest free seat; a bot with its level."""

    name: str
    bot: BotLevel | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """A player leaves the lobby."""

    seat: int


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
    table: ProposedTable
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
    table: ProposedTable


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
    """The game after an action, and the events that made it.

    An illegal play is not refused where turn_invalid_submission has consequences for it: then its violations are here.
    """

    game: Game
    events: tuple[Event, ...]
    violations: tuple[Violation, ...] = ()


def has_asked_all(applied: Applied) -> bool:
    """Whether it may have been asked what every player could play: at a turn's end with an empty pool."""
    game, test = applied.game, applied.game.ruleset.pool_empty_stuck_test
    if test is PoolEmptyStuckTest.CONSECUTIVE_PASSES or game.round is None or game.round.pool:
        return False
    return any(isinstance(event, TurnStarted | RoundEnded) for event in applied.events)


RULES_BUDGET: Final = Budget(nodes=20_000)
"""What the rules spend on an answer. It counts work, not time, so that a game comes out the same on any machine."""


@dataclass(frozen=True, slots=True)
class Exact:
    """The solver's answers to what could be played; UNKNOWN where they take more than the budget."""

    budget: Budget = RULES_BUDGET

    def can_play(self, situation: Situation) -> Existence:
        """Whether any legal play exists."""
        return has_turn(situation, self.budget)


EXACT: Final = Exact()
"""Whom the rules ask, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """When something is decided, and who knows what could be played, if the ruleset asks."""

    now_ms: int
    analysis: Analysis

    def can_play(self, round_: Round, seat: int, ruleset: Ruleset, tiles: tuple[Tile, ...] | None = None) -> Existence:
        """Returns whether a player has any legal play of some tiles, in ascending order; None: of all on the rack."""
        rack = round_.rack(seat)
        own = rack.tiles if tiles is None else tiles
        return self.analysis.can_play(Situation(round_.table, own, rack.has_melded, ruleset, round_.river))


def create(ruleset: Ruleset) -> Applied:
    """A new game in the lobby. The ruleset has no problems (ruleset.problems)."""
    events = (GameCreated(ruleset),)
    return Applied(advance(None, events), events)


def apply(game: Game, action: Action, now_ms: int, analysis: Analysis = EXACT) -> Applied | Refused:
    """What an action leads to.

    Args:
        game: The game before it; never changed.
        action: What is done. Its seat is taken.
        now_ms: The time, milliseconds since 1970.
        analysis: Who knows what could be played, where the ruleset asks (ruleset.NEEDS_ANALYSIS).

    Returns:
        The new game and its events, or the reasons for a refusal.

    Raises:
        ValueError: A caller's fault, not a player's: a shuffle of other tiles, a time-out that is not due.
    """
    decided = _decide(game, action, _Moment(now_ms, analysis))
    match decided:
        case Refused():
            return decided
        case _Illegal(events, violations):
            return Applied(advance(game, events), events, violations)
        case _Followed(_, after, consequences):
            return Applied(advance(after, consequences), decided.events)
        case events:
            return Applied(advance(game, events), events)


@dataclass(frozen=True, slots=True)
class _Illegal:
    """An illegal play with consequences."""

    events: tuple[Event, ...]
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class _Followed:
    """Events, the game after them, and what follows from that: so that no event is applied twice."""

    causes: tuple[Event, ...]
    game: Game
    consequences: tuple[Event, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """All of them."""
        return (*self.causes, *self.consequences)


Decision = tuple[Event, ...] | Refused | _Illegal | _Followed


def _decide(game: Game, action: Action, moment: _Moment) -> Decision:
    match action:
        case PlayTiles() | DrawTile() | LayOnRiver() | Pass() | SaveDraft():  # first, as most are these
            return _playing(game) or _take_turn(game, round_of(game), action, moment)
        case Join():
            return _join(game, action)
        case Leave(seat):
            return _leave(game, seat)
        case StartGame(_, shuffle):
            return _start_game(game, shuffle, moment)
        case StartNextRound(seat, shuffle):
            return _start_next_round(game, seat, shuffle, moment)
        case RequestRedeal(seat, shuffle):
            return _playing(game) or _redeal(game, round_of(game), action, moment)
        case ClaimError():
            return _playing(game) or _claim(game, round_of(game), action, moment)
        case TimeOut():
            return _time_out(game, moment)
        case Resign(seat):
            return _resign(game, seat, moment)


def _join(game: Game, action: Join) -> Decision:
    if not isinstance(game.phase, Lobby):
        return refused(Reason.GAME_ALREADY_STARTED)
    if any(player.name == action.name for player in game.players):
        return refused(Reason.PLAYER_ALREADY_JOINED)
    taken = {player.seat for player in game.players}
    free = [seat for seat in range(1, game.ruleset.players_max + 1) if seat not in taken]
    if not free:
        return refused(Reason.GAME_FULL, players_max=game.ruleset.players_max)
    return (PlayerJoined(free[0], action.name, action.bot),)


def _leave(game: Game, seat: int) -> Decision:
    if not isinstance(game.phase, Lobby):
        return refused(Reason.GAME_ALREADY_STARTED)
    return (PlayerLeft(seat),)


def _start_game(game: Game, shuffle: Shuffle, moment: _Moment) -> Decision:
    if not isinstance(game.phase, Lobby):
        return refused(Reason.GAME_ALREADY_STARTED)
    if len(game.players) < game.ruleset.players_min:
        return refused(Reason.TOO_FEW_PLAYERS, players=len(game.players), players_min=game.ruleset.players_min)
    return _start_round(game, shuffle, moment)


def _start_next_round(game: Game, seat: int, shuffle: Shuffle, moment: _Moment) -> Decision:
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
            return _start_round(game, shuffle, moment)


def _start_round(game: Game, shuffle: Shuffle, moment: _Moment) -> tuple[Event, ...]:
    """Start draw, deal, first turn (R5 to R9)."""
    dealt = deal_round(game, shuffle)
    return (dealt, TurnStarted(_turn(dealt.order[0], game.ruleset, moment)))


def _redeal(game: Game, round_: Round, action: RequestRedeal, moment: _Moment) -> Decision:
    """deal_three_pairs_reshuffle."""
    seat = action.seat
    if game.player(seat).resigned:
        return refused(Reason.PLAYER_RESIGNED)
    has_begun = seat == round_.turn.seat and (isinstance(round_.step, Choosing) or round_.shown_play is not None)
    if has_begun or not may_demand_redeal(round_, seat, game.ruleset):
        return refused(Reason.REDEAL_NOT_ALLOWED)
    return (RedealDemanded(seat), *_start_round(game, action.shuffle, moment))


def _turn(seat: int, ruleset: Ruleset, moment: _Moment) -> Turn:
    """A turn that begins now (R54, turn_time_limit_seconds)."""
    limit = ruleset.turn_time_limit_seconds
    return Turn(seat, moment.now_ms + limit * 1000 if limit else None)


def _playing(game: Game) -> Refused | None:
    """Why no round is being played, if none is."""
    match game.phase:
        case Playing():
            return None
        case Lobby():
            return refused(Reason.GAME_NOT_STARTED)
        case RoundOver():
            return refused(Reason.ROUND_OVER)
        case Finished():
            return refused(Reason.GAME_OVER)


def _take_turn(game: Game, round_: Round, action: TurnAction, moment: _Moment) -> Decision:
    return _not_their_turn(game, round_, action, moment) or _act(game, round_, action, moment)


def _not_their_turn(game: Game, round_: Round, action: TurnAction, moment: _Moment) -> Refused | None:
    """R28, R54: only the player whose turn it is may act, until the deadline, and who is to choose must."""
    if game.player(action.seat).resigned:
        return refused(Reason.PLAYER_RESIGNED)
    if is_expired(game, moment.now_ms):
        return refused(Reason.TURN_TIMED_OUT)
    if round_.turn.seat != action.seat:
        return refused(Reason.NOT_YOUR_TURN, seat=round_.turn.seat)
    if isinstance(round_.step, Choosing) and not isinstance(action, LayOnRiver):
        return refused(Reason.RIVER_CHOICE_PENDING)
    return None


def _act(game: Game, round_: Round, action: TurnAction, moment: _Moment) -> Decision:
    match action:
        case PlayTiles():
            return _play(game, round_, action, moment)
        case DrawTile(seat):
            return _draw(game, round_, seat, moment)
        case LayOnRiver():
            return _lay_on_river(game, round_, action, moment)
        case Pass(seat):
            return _pass(game, round_, seat, moment)
        case SaveDraft(seat, table):
            return (DraftSaved(seat, table),)


@dataclass(frozen=True, slots=True)
class _IllegalPlay:
    """A play that the rules do not allow."""

    play: BasePlay
    violations: tuple[Violation, ...]


def _judged(round_: Round, action: PlayTiles, ruleset: Ruleset) -> TilesPlayed | _IllegalPlay:
    """What a player's action leads to, if the rules allow it."""
    rack = round_.rack(action.seat)
    player = PlayerState(
        rack.tiles,
        rack.has_melded,
        river=round_.river,
        river_index=action.river_index,
        drawn=round_.step.tile if isinstance(round_.step, Drawn) else None,
        calls_rummikub=action.calls_rummikub,
    )
    judge = _JUDGES.of(ruleset)
    verdict = judge.judge(round_.table, action.table, player)
    if verdict is None:
        verdict = judge.judge_plainly(player.plain_play(round_.table, action.table, ruleset, _SUBJECT))
    play = verdict.play
    if play is not None and verdict.violations:
        return _IllegalPlay(play, verdict.violations)
    table = judge.new_table(round_.table, action.table)
    pulled = () if play is None else play.pulled
    return TilesPlayed(action.seat, verdict.tiles_played, table, verdict.points, pulled)


_SUBJECT: Final = "play.table"
_JUDGES: Final = FastJudges[Ruleset, Meld, ProposedMeld](lambda ruleset: ruleset, melds_by_identity, _SUBJECT)


def _play(game: Game, round_: Round, action: PlayTiles, moment: _Moment) -> Decision:
    match _judged(round_, action, game.ruleset):
        case TilesPlayed() as played:
            return _and_so(game, (played,), moment)
        case _IllegalPlay(play, violations):
            return _illegal(game, play, violations, moment)


def _illegal(game: Game, play: BasePlay, violations: tuple[Violation, ...], moment: _Moment) -> Decision:
    """What an illegal play leads to (turn_invalid_submission). A play that is only too complex is never penalised."""
    if all(violation.reason is Reason.TURN_TOO_COMPLEX for violation in violations):
        return Refused(violations)
    match game.ruleset.turn_invalid_submission:
        case TurnInvalidSubmission.REJECT:
            return Refused(violations)
        case TurnInvalidSubmission.PENALISE:
            return _Illegal(_penalise(game, round_of(game), moment), violations)
        case TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM:
            if not has_own_tiles_only(play):  # nobody can lay what they do not have, so there is nothing to show
                return Refused(violations)
            reasons = tuple(dict.fromkeys(violation.reason for violation in violations))
            return _Illegal((IllegalPlayShown(round_of(game).turn.seat, play.table_after, reasons),), violations)


def _penalise(game: Game, round_: Round, moment: _Moment) -> tuple[Event, ...]:
    """R56, penalty_tiles: the player whose turn it is draws, and the turn ends. A pending choice is made for them.

    The choice is made last: while it is pending one can tell that the player has drawn, and an empty pool is no pass.
    """
    seat = round_.turn.seat
    penalised = TurnPenalised(seat, round_.pool[: game.ruleset.penalty_tiles])
    return _and_so(game, (penalised, *_chosen_for(seat, round_)), moment).events


def _chosen_for(seat: int, round_: Round) -> tuple[Event, ...]:
    """The choice of a player who does not make it: the first tile is kept, the second goes to the River."""
    return (RiverTileLaid(seat, round_.step.tiles[1]),) if isinstance(round_.step, Choosing) else ()


def _claim(game: Game, round_: Round, action: ClaimError, moment: _Moment) -> Decision:
    """The error rule: all other players together may claim an error."""
    shown = round_.shown_play
    if game.player(action.seat).resigned:
        return refused(Reason.PLAYER_RESIGNED)
    if shown is None or shown.revision != action.play_revision or is_expired(game, moment.now_ms):
        return refused(Reason.NOTHING_TO_CLAIM)
    if action.seat == round_.turn.seat:
        return refused(Reason.CLAIM_OWN_PLAY)
    if shown.against is not None:
        return refused(Reason.CLAIM_NOT_UNANIMOUS)
    if action.seat in shown.claimed:
        return refused(Reason.CLAIM_ALREADY_VOTED)
    event = ErrorClaimed(action.seat, action.agrees)
    return (event, *_if_unanimous(evolve(game, event), moment))


def _if_unanimous(game: Game, moment: _Moment) -> tuple[Event, ...]:
    """The penalty, if all other players who have not resigned have claimed the error."""
    round_ = round_of(game)
    shown = round_.shown_play
    others = {seat for seat in game.active_seats if seat != round_.turn.seat}
    if shown is None or shown.against is not None or not others <= set(shown.claimed):
        return ()
    return _penalise(game, round_, moment)


def _draw(game: Game, round_: Round, seat: int, moment: _Moment) -> Decision:
    """R21 to R24, turn_draw, turn_voluntary_draw, initial_meld_voluntary_delay, score_never_melded."""
    ruleset = game.ruleset
    if isinstance(round_.step, Drawn):
        return refused(Reason.TURN_PHASE_WRONG)
    if not round_.pool:
        return refused(Reason.POOL_EMPTY)
    must_play = _must_play(round_, seat, ruleset)
    if must_play and moment.can_play(round_, seat, ruleset) is Existence.YES:
        return refused(Reason.DRAW_NOT_ALLOWED_PLAY_EXISTS)
    declined = not must_play and _declines(round_, seat, ruleset, moment)
    match ruleset.turn_draw:
        case TurnDraw.TWO_RIVER if len(round_.pool) > 1:
            return (TilesOffered(seat, (round_.pool[0], round_.pool[1]), declined),)
        case TurnDraw.UNTIL_PLAYABLE:
            tiles = _until_playable(round_, seat, ruleset, moment)
            return _after_draw(game, TilesDrawn(seat, tiles, declined), moment)
        case _:
            return _after_draw(game, TileDrawn(seat, round_.pool[0], declined), moment)


def _after_draw(game: Game, drawn: TileDrawn | TilesDrawn, moment: _Moment) -> Decision:
    """The end of the turn, unless the player may play after drawing (turn_play_after_draw)."""
    goes_on = game.ruleset.turn_play_after_draw is not TurnPlayAfterDraw.FORBIDDEN
    return (drawn,) if goes_on else _and_so(game, (drawn,), moment)


def _must_play(round_: Round, seat: int, ruleset: Ruleset) -> bool:
    """Whether a player who could play may not draw."""
    if ruleset.turn_voluntary_draw is TurnVoluntaryDraw.ONLY_IF_NO_PLAY:
        return True
    return not (ruleset.initial_meld_voluntary_delay or round_.rack(seat).has_melded)


def _declines(
    round_: Round, seat: int, ruleset: Ruleset, moment: _Moment, tiles: tuple[Tile, ...] | None = None
) -> bool:
    """Whether a player who plays nothing could make the initial meld (score_never_melded FLAT_100_OR_200)."""
    asks = ruleset.score_never_melded is ScoreNeverMelded.FLAT_100_OR_200 and not round_.rack(seat).has_melded
    return asks and moment.can_play(round_, seat, ruleset, tiles) is Existence.YES


def _declines_after_draw(round_: Round, seat: int, drawn: Tile, ruleset: Ruleset, moment: _Moment) -> bool:
    """Returns whether a player who ends a turn after a draw could make the initial meld of what may be played.

    If only the tile drawn may not be played, drawing it was the same decision already.
    """
    if ruleset.turn_play_after_draw is TurnPlayAfterDraw.ALLOWED:
        return _declines(round_, seat, ruleset, moment)
    if ruleset.turn_draw is TurnDraw.ONE:
        return False
    return _declines(round_, seat, ruleset, moment, without(round_.rack(seat).tiles, (drawn,)))


def _until_playable(round_: Round, seat: int, ruleset: Ruleset, moment: _Moment) -> tuple[Tile, ...]:
    """Returns the pool's next tiles, up to the first with which it is not certain that no legal play exists.

    Where the tile drawn last may not be played (turn_play_after_draw OTHER_TILES), a play without it must exist.
    """
    unplayable = ruleset.turn_play_after_draw is TurnPlayAfterDraw.OTHER_TILES
    for count in range(1, len(round_.pool)):
        tiles = in_order(round_.rack(seat).tiles + round_.pool[: count - unplayable])
        if moment.can_play(round_, seat, ruleset, tiles) is not Existence.NO:
            return round_.pool[:count]
    return round_.pool


def _lay_on_river(game: Game, round_: Round, action: LayOnRiver, moment: _Moment) -> Decision:
    if not isinstance(round_.step, Choosing):
        return refused(Reason.TURN_PHASE_WRONG)
    if action.tile not in round_.step.tiles:
        return refused(Reason.RIVER_DISCARD_NOT_DRAWN)
    return _and_so(game, (RiverTileLaid(action.seat, action.tile),), moment)


def _pass(game: Game, round_: Round, seat: int, moment: _Moment) -> Decision:
    """R24, R59, pool_empty_pass; or the end of a turn in which a tile was drawn."""
    ruleset = game.ruleset
    if isinstance(round_.step, Drawn):
        declined = _declines_after_draw(round_, seat, round_.step.tile, ruleset, moment)
        return _and_so(game, (TurnEnded(seat, declined),), moment)
    if round_.pool:
        return refused(Reason.PASS_NOT_ALLOWED_POOL_NOT_EMPTY)
    must_play = ruleset.pool_empty_pass is PoolEmptyPass.ONLY_IF_NO_PLAY
    if must_play and moment.can_play(round_, seat, ruleset) is Existence.YES:
        return refused(Reason.PASS_NOT_ALLOWED_PLAY_EXISTS)
    declined = not must_play and _declines(round_, seat, ruleset, moment)
    return _and_so(game, (TurnPassed(seat, declined),), moment)


def _time_out(game: Game, moment: _Moment) -> Decision:
    """R55, R56, turn_timeout_dirty, turn_timeout_clean: table and rack are as they were, and the turn ends."""
    if not is_expired(game, moment.now_ms):
        raise ValueError("no turn has run out of time")
    round_ = round_of(game)
    seat = round_.turn.seat
    match round_.step:
        case Choosing():
            return _and_so(game, (TurnTimedOut(seat, ()), *_chosen_for(seat, round_)), moment)
        case Drawn() if _is_clean(round_):
            return _and_so(game, (TurnTimedOut(seat, ()),), moment)
        case _:
            tiles = round_.pool[: _timeout_tiles(round_, game.ruleset)]
            committed = _committed(round_, game.ruleset)
            events = (TurnTimedOut(seat, ()), committed) if committed else (TurnTimedOut(seat, tiles),)
            return _and_so(game, events, moment)


def _is_clean(round_: Round) -> bool:
    """Whether the front end told last that the table lies as when the turn began, and nothing illegal was submitted."""
    if round_.draft is None or round_.shown_play is not None:
        return False
    return _laid(round_.draft) == _laid(round_.table)


def _laid(table: Iterable[Meld | ProposedMeld]) -> Counter[tuple[Tile, ...]]:
    return Counter(in_order(meld.tiles) for meld in table)


def _timeout_tiles(round_: Round, ruleset: Ruleset) -> int:
    """How many tiles a time-out costs."""
    if not _is_clean(round_):
        one = ruleset.turn_timeout_dirty is TurnTimeoutDirty.REVERT_AND_DRAW_ONE
        return 1 if one else ruleset.penalty_tiles
    match ruleset.turn_timeout_clean:
        case TurnTimeoutClean.DRAW_ONE:
            return 1
        case TurnTimeoutClean.DRAW_PENALTY:
            return ruleset.penalty_tiles
        case TurnTimeoutClean.PASS:
            return 0


def _committed(round_: Round, ruleset: Ruleset) -> TilesPlayed | None:
    """The draft as a play, if the ruleset plays legal drafts when the time runs out and it is one."""
    commits = ruleset.turn_timeout_dirty is TurnTimeoutDirty.COMMIT_IF_VALID_ELSE_REVERT
    if round_.draft is None or not commits:
        return None
    outcome = _judged(round_, PlayTiles(round_.turn.seat, round_.draft), ruleset)
    return outcome if isinstance(outcome, TilesPlayed) else None


def _resign(game: Game, seat: int, moment: _Moment) -> Decision:
    match game.phase:
        case Lobby():
            return refused(Reason.GAME_NOT_STARTED)
        case Finished():
            return refused(Reason.GAME_OVER)
        case Playing() | RoundOver():
            if game.player(seat).resigned:
                return refused(Reason.PLAYER_RESIGNED)
            return _and_so(game, (PlayerResigned(seat),), moment)


def _and_so(game: Game, events: tuple[Event, ...], moment: _Moment) -> _Followed:
    """Events that end a turn, or a player's part, with what follows: the round's end, the game's end, the next turn."""
    after = reduce(evolve, events, game)
    if isinstance(after.phase, Playing):
        return _Followed(events, after, _consequences(after, after.phase.round, events[-1], moment))
    if are_one_side(after.active_seats, game.ruleset):
        return _Followed(events, after, (GameEnded(after.active_seats),))
    return _Followed(events, after, (_game_ended(after),) if after.is_left_to_bots else ())


def _consequences(game: Game, round_: Round, event: Event, moment: _Moment) -> tuple[Event, ...]:
    if any(not rack.tiles for rack in round_.racks):
        return _end_round(game, round_, RoundEnd.WENT_OUT)
    if are_one_side(game.active_seats, game.ruleset):
        return _end_round(game, round_, RoundEnd.RESIGNED)
    if isinstance(event, PlayerResigned) and event.seat != round_.turn.seat:
        return _if_unanimous(game, moment)
    if _is_blocked(game, round_, moment):
        return _end_round(game, round_, RoundEnd.BLOCKED)
    return _next_turn(game, round_, moment)


def _is_blocked(game: Game, round_: Round, moment: _Moment) -> bool:
    """R59, pool_empty_mode: whether the round is over although every player has tiles."""
    if round_.pool:
        return False
    match game.ruleset.pool_empty_mode:
        case PoolEmptyMode.END_IMMEDIATELY:
            return True
        case PoolEmptyMode.ONE_LAST_CHANCE:
            return round_.last_chance is not None and not _last_turns(game, round_.last_chance[1:])
        case PoolEmptyMode.CONTINUE_UNTIL_STUCK:
            return _is_stuck(game, round_, moment)


def _is_stuck(game: Game, round_: Round, moment: _Moment) -> bool:
    """pool_empty_stuck_test: all have passed in a row, or nobody could play. Passes decide where nobody can tell."""
    test = game.ruleset.pool_empty_stuck_test
    all_passed = set(game.active_seats) <= set(round_.passed)
    if test is PoolEmptyStuckTest.CONSECUTIVE_PASSES or (test is PoolEmptyStuckTest.BOTH and all_passed):
        return all_passed
    answers = set()
    for seat in game.active_seats:
        answers.add(moment.can_play(round_, seat, game.ruleset))
        if Existence.YES in answers:
            return False
    return all_passed or Existence.UNKNOWN not in answers


def _last_turns(game: Game, seats: tuple[int, ...]) -> tuple[int, ...]:
    """Those of the last turns whose players have not resigned."""
    return tuple(seat for seat in seats if not game.player(seat).resigned)


def _next_turn(game: Game, round_: Round, moment: _Moment) -> tuple[Event, ...]:
    """The next player's turn, or the first of the last turns when the pool has become empty."""
    one_more = game.ruleset.pool_empty_mode is PoolEmptyMode.ONE_LAST_CHANCE and not round_.pool
    if not one_more:
        return (TurnStarted(_turn(next_seat(game, round_), game.ruleset, moment)),)
    if round_.last_chance is not None:
        return (TurnStarted(_turn(_last_turns(game, round_.last_chance[1:])[0], game.ruleset, moment)),)
    drawer = round_.turn.seat
    order = from_seat(round_.order, drawer)
    if game.ruleset.pool_empty_last_chance_start is PoolEmptyLastChanceStart.NEXT_PLAYER_FIRST:
        order = (*order[1:], drawer)
    seats = _last_turns(game, order)
    return (LastChanceStarted(seats), TurnStarted(_turn(seats[0], game.ruleset, moment)))


def _end_round(game: Game, round_: Round, end: RoundEnd) -> tuple[Event, ...]:
    standings = tuple(
        Standing(seat, rack.tiles, game.player(seat).resigned, rack.has_melded, seat in round_.declined)
        for seat, rack in ((seat, round_.rack(seat)) for seat in round_.order)
    )
    result = score_round(round_.number, end, standings, game.ruleset)
    ended = RoundEnded(replace(result, seats=tuple(sorted(result.seats, key=lambda seat: seat.seat))))
    after = evolve(game, ended)
    is_last = is_last_round(round_.number, after.players, game.ruleset)
    return (ended, _game_ended(after)) if end is RoundEnd.RESIGNED or is_last or after.is_left_to_bots else (ended,)


def _game_ended(game: Game) -> GameEnded:
    """The end of a game between two rounds (match_winner)."""
    return GameEnded(game_winners(game.players, game.results, game.ruleset))
