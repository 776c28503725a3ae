"""Applies an action to a game: `apply` returns the new game with its events, or every reason for a refusal.

Chance and time are arguments: an action that needs a shuffle contains it, and `apply` takes the time. An action that
the state of the game forbids is refused with one reason, an illegal play with all its violations (rules.py), unless
the ruleset has other consequences for it (turn_invalid_submission).

`lobby`, `plays`, `draws`, `timeouts`, `absence` and `endings` decide on the actions, `turn_end` on what follows.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Final

from engine.actions import (
    AbortGame,
    Action,
    AnnounceRematch,
    ClaimError,
    DrawTile,
    Join,
    KickPlayer,
    LayOnRiver,
    Leave,
    LobbyAction,
    Pass,
    PlayTiles,
    RenewSeatToken,
    RequestRedeal,
    Resign,
    ReturnToSeat,
    SetReady,
    StandIn,
    StartDueRound,
    StartGame,
    StartNextRound,
    TimeOut,
    TurnAction,
)
from engine.events import Event, GameCreated, PlayerJoined, PlayerResigned, RoundEnded, TurnStarted
from engine.game import (
    Aborted,
    Choosing,
    Finished,
    Game,
    Lobby,
    Playing,
    ReservedSeat,
    Round,
    RoundOver,
    is_expired,
    round_of,
)
from engine.melding.analysis import Analysis, Existence, Situation
from engine.melding.drafts import Draft
from engine.melding.ruleset import PoolEmptyStuckTest, Ruleset
from engine.melding.solver import RULES_BUDGET, Budget, has_turn
from engine.melding.table import ProposedTable
from engine.replay import advance, evolve
from engine.turns.absence import return_to_seat, returning
from engine.turns.decisions import Context, Decision, IllegalPlay, TurnEnding
from engine.turns.drafts import check_draft
from engine.turns.draws import draw, lay_on_river, pass_turn
from engine.turns.endings import decide_ending
from engine.turns.lobby import (
    join,
    kick,
    leave,
    not_in_the_lobby,
    request_redeal,
    set_ready,
    start_due_round,
    start_game,
    start_next_round,
    worn_out,
)
from engine.turns.plays import claim_error, play_tiles
from engine.turns.timeouts import time_out
from engine.turns.turn_end import end_turn
from engine.violations import Reason, Refused, Violation, refused


@dataclass(frozen=True, slots=True)
class Applied:
    """The game after an action, and the events that led to it: none if the action changes nothing.

    `violations` is not empty where an illegal play was not refused but had consequences (turn_invalid_submission).
    """

    game: Game
    events: tuple[Event, ...]
    violations: tuple[Violation, ...] = ()


def may_have_searched_all_racks(applied: Applied) -> bool:
    """Returns whether an analysis may have searched every player's rack: at the end of a turn with an empty pool.

    A caller must hide how long such an action takes, which depends on hidden tiles.
    """
    game, test = applied.game, applied.game.ruleset.pool_empty_stuck_test
    if test is PoolEmptyStuckTest.CONSECUTIVE_PASSES or game.round is None or game.round.pool:
        return False
    return any(isinstance(event, TurnStarted | RoundEnded) for event in applied.events)


@dataclass(frozen=True, slots=True)
class Exact:
    """An `Analysis` by the solver. Its answer is UNKNOWN where the search exceeds the budget."""

    budget: Budget = RULES_BUDGET

    def can_play(self, situation: Situation) -> Existence:
        """Returns whether any legal play exists."""
        return has_turn(situation, self.budget)


EXACT: Final = Exact()
"""The default analysis of `apply`."""


def create(ruleset: Ruleset) -> Applied:
    """Returns a new game in the lobby. The ruleset must have no problems (ruleset_checks.problems)."""
    return _created(GameCreated(ruleset))


def create_rematch(game: Game) -> Applied:
    """Returns a new game with the ruleset of a game, its bots, and the seats of its people reserved for them."""
    bots = (PlayerJoined(player.seat, player.name, player.bot) for player in game.players if player.bot)
    reserved = tuple(ReservedSeat(player.seat, player.name) for player in game.players if not player.bot)
    return _created(GameCreated(game.ruleset, reserved), *bots)


def _created(*events: Event) -> Applied:
    return Applied(advance(None, events), events)


def apply(game: Game, action: Action, now_ms: int, analysis: Analysis = EXACT) -> Applied | Refused:
    """Applies an action.

    Args:
        game: The game before the action. It is never changed.
        action: The action. Its seat must be taken, except HOST where the action allows it.
        now_ms: The time, milliseconds since 1970.
        analysis: Answers whether a play exists, where the ruleset needs that (analysis.NEEDS_ANALYSIS).

    Returns:
        The new game and its events, or the reasons for a refusal.

    Raises:
        ValueError: The caller's error, not a player's: a shuffle of the wrong tiles, a time-out that is not due.
    """
    returned = returning(game, action)
    game = reduce(evolve, returned, game)
    decided = _decide(game, action, Context(now_ms, analysis))
    match decided:
        case Refused():
            return decided
        case IllegalPlay(events, violations):
            return Applied(advance(game, events), returned + events, violations)
        case TurnEnding(_, after, consequences):
            return Applied(advance(after, consequences), returned + decided.events)
        case () if not returned:
            return Applied(game, ())
        case events:
            return Applied(advance(game, events), returned + events)


def arrange(game: Game, seat: int, table: ProposedTable, now_ms: int) -> Draft | Refused:
    """Returns a draft of the turn in progress, or the reasons for a refusal. It changes no game.

    Args:
        game: The game.
        seat: The seat of the player who arranges the table. It must be taken.
        table: The table as the player has arranged it.
        now_ms: The time, milliseconds since 1970.
    """
    refusal = _not_playing(game)
    if refusal:
        return refusal
    round_ = round_of(game)
    refusal = _not_their_turn(game, round_, seat, now_ms) or _choice_pending(round_)
    return refusal or check_draft(round_, seat, table, game.ruleset)


def _decide(game: Game, action: Action, context: Context) -> Decision:  # noqa: C901 - one case an action
    match action:
        case PlayTiles() | DrawTile() | LayOnRiver() | Pass():  # first, because most actions are these
            return _not_playing(game) or _take_turn(game, round_of(game), action, context)
        case Join() | Leave() | KickPlayer() | SetReady() | StartGame():
            return not_in_the_lobby(game) or _in_the_lobby(game, action, context)
        case StartNextRound(seat, shuffle):
            return start_next_round(game, seat, shuffle, context)
        case StartDueRound(shuffle):
            return start_due_round(game, shuffle, context)
        case RequestRedeal():
            return _not_playing(game) or request_redeal(game, round_of(game), action, context)
        case ClaimError():
            return _not_playing(game) or claim_error(game, round_of(game), action, context)
        case TimeOut(draft):
            return time_out(game, draft, context)
        case Resign(seat):
            return _resign(game, seat, context)
        case ReturnToSeat(seat):
            return return_to_seat(game, seat)
        case StandIn(for_absent):
            is_absent = game.player(action.seat).stand_in is not None
            return _decide(game, for_absent, context) if is_absent else refused(Reason.PLAYER_NOT_ABSENT)
        case AbortGame() | RenewSeatToken() | AnnounceRematch():
            return decide_ending(game, action)


def _in_the_lobby(game: Game, action: LobbyAction, context: Context) -> Decision:
    match action:
        case Join():
            return worn_out(game) or join(game, action, context)
        case Leave(seat):
            return leave(game, seat)
        case KickPlayer():
            return kick(game, action)
        case SetReady(is_ready=is_ready):
            return (None if is_ready else worn_out(game)) or set_ready(game, action)
        case StartGame():
            return start_game(game, action, context)


def _not_playing(game: Game) -> Refused | None:
    """Returns a refusal if no round is in progress."""
    match game.phase:
        case Playing():
            return None
        case Lobby():
            return refused(Reason.GAME_NOT_STARTED)
        case RoundOver():
            return refused(Reason.ROUND_OVER)
        case Finished() | Aborted():
            return refused(Reason.GAME_OVER)


def _take_turn(game: Game, round_: Round, action: TurnAction, context: Context) -> Decision:
    refusal = _not_their_turn(game, round_, action.seat, context.now_ms)
    if refusal is None and not isinstance(action, LayOnRiver):
        refusal = _choice_pending(round_)
    return refusal or _act(game, round_, action, context)


def _not_their_turn(game: Game, round_: Round, seat: int, now_ms: int) -> Refused | None:
    """Returns a refusal unless a player has the turn and its deadline has not passed (R28, R54)."""
    if game.player(seat).resigned:
        return refused(Reason.PLAYER_RESIGNED)
    if is_expired(game, now_ms):
        return refused(Reason.TURN_TIMED_OUT)
    if round_.turn.seat != seat:
        return refused(Reason.NOT_YOUR_TURN, seat=round_.turn.seat)
    return None


def _choice_pending(round_: Round) -> Refused | None:
    """Returns a refusal if the player must first lay a drawn tile on the River."""
    return refused(Reason.RIVER_CHOICE_PENDING) if isinstance(round_.step, Choosing) else None


def _act(game: Game, round_: Round, action: TurnAction, context: Context) -> Decision:
    match action:
        case PlayTiles():
            return play_tiles(game, round_, action, context)
        case DrawTile(seat):
            return draw(game, round_, seat, context)
        case LayOnRiver():
            return lay_on_river(game, round_, action, context)
        case Pass(seat):
            return pass_turn(game, round_, seat, context)


def _resign(game: Game, seat: int, context: Context) -> Decision:
    match game.phase:
        case Lobby():
            return refused(Reason.GAME_NOT_STARTED)
        case Finished() | Aborted():
            return refused(Reason.GAME_OVER)
        case Playing() | RoundOver():
            if game.player(seat).resigned:
                return refused(Reason.PLAYER_RESIGNED)
            return end_turn(game, (PlayerResigned(seat),), context)
