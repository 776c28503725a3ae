"""Applies an action to a game: `apply` returns the new game with its events, or every reason for a refusal.

Chance and time are arguments: an action that needs a shuffle contains it, and `apply` takes the time. An action that
the state of the game forbids is refused with one reason, an illegal play with all its violations (rules.py), unless
the ruleset has other consequences for it (turn_invalid_submission).

`lobby`, `absence`, `open_seats` and `endings` decide on the actions of all games, the game's family on those of a round
(`family`). `turn_end` adds what follows.
"""

from dataclasses import dataclass
from functools import reduce

from engine.actions import (
    AbortGame,
    Action,
    AnnounceRematch,
    LobbyAction,
    RenewSeatToken,
    Resign,
    ReturnToSeat,
    StandIn,
    StartDueRound,
    StartNextRound,
    TakeOverSeat,
    TimeOut,
)
from engine.clocks import resigns_by_clock
from engine.decisions import Context, Decision, IllegalPlay, TurnOutcome, TurnOver, not_playing
from engine.events import Event, GameCreated, PlayerJoined, PlayerResigned, TurnTimedOut
from engine.family import EXACT, family_of, has_action
from engine.game import Aborted, Finished, Game, Lobby, Playing, RoundOver, is_expired, round_of
from engine.replay import advance, evolve
from engine.room_settings import DEFAULT_SETTINGS, RoomSettings
from engine.seats import ReservedSeat
from engine.turns.absence import return_to_seat, returning
from engine.turns.endings import decide_ending
from engine.turns.lobby import decide_in_lobby, start_due_round, start_next_round
from engine.turns.open_seats import take_over_seat
from engine.turns.turn_end import end_turn
from engine.unions import Analysis, ProposedTable, Ruleset
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
    return family_of(applied.game).may_have_searched_all_racks(applied.game, applied.events)


def outcome(applied: Applied) -> TurnOutcome:
    """Returns the tiles played, their points and the tiles drawn in a turn."""
    return family_of(applied.game).outcome(applied.events)


def may_search(game: Game) -> bool:
    """Returns whether a decision in a game may search for plays, which can take seconds."""
    return family_of(game).may_search(game.ruleset)


def create(
    ruleset: Ruleset,
    settings: RoomSettings = DEFAULT_SETTINGS,
    reserved: tuple[ReservedSeat, ...] = (),
    position_seats: tuple[int, ...] = (),
    deal_commitment: bytes = b"",
) -> Applied:
    """Returns a new game in the lobby.

    Args:
        ruleset: The rules, without problems (ruleset.problems).
        settings: The settings of the room, without problems (option_problems).
        reserved: The reserved seats of the ruleset, or of the position, ascending.
        position_seats: The seats of the position that the game shall begin with, whose start is then the deal of its
            first round.
        deal_commitment: The commitment of the server to all deals (fair_deal); empty for none.
    """
    return _created(GameCreated(ruleset, settings, reserved, position_seats, deal_commitment))


def create_rematch(game: Game, deal_commitment: bytes = b"") -> Applied:
    """Returns a new game like a game: its rules, settings and bots, with the seats of its people reserved for them.

    `deal_commitment` is as in `create`.
    """
    bots = (PlayerJoined(player.seat, player.name, player.bot) for player in game.players if player.bot)
    people = (player for player in game.players if not player.bot)
    reserved = tuple(ReservedSeat(player.seat, player.name, player.is_program) for player in people)
    return _created(GameCreated(game.ruleset, game.settings, reserved, deal_commitment=deal_commitment), *bots)


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
    returned, context = returning(game, action), Context(now_ms, analysis)
    game = reduce(evolve, returned, game)
    decided = _decide(game, action, context)
    match decided:
        case Refused():
            return decided
        case IllegalPlay(events, violations):
            return Applied(advance(game, events), returned + events, violations)
        case TurnOver(_, violations):
            ending = end_turn(game, decided, context)
            return Applied(advance(ending.game, ending.consequences), returned + ending.events, violations)
        case () if not returned:
            return Applied(game, ())
        case events:
            return Applied(advance(game, events), returned + events)


def _decide(game: Game, action: Action, context: Context) -> Decision:
    match action:
        case _ if isinstance(action, LobbyAction):
            return decide_in_lobby(game, action, context)
        case StartNextRound(seat, shuffle):
            return start_next_round(game, seat, shuffle, context)
        case StartDueRound(shuffle):
            return start_due_round(game, shuffle, context)
        case TimeOut(draft):
            return _time_out(game, draft, context)
        case Resign() | ReturnToSeat() | TakeOverSeat():
            return _decide_on_seat(game, action)
        case StandIn(for_absent):
            is_absent = game.player(action.seat).stand_in is not None
            return _decide(game, for_absent, context) if is_absent else refused(Reason.PLAYER_NOT_ABSENT)
        case AbortGame() | RenewSeatToken() | AnnounceRematch():
            return decide_ending(game, action)
        case _ if not has_action(game, action):
            return refused(Reason.ACTION_NOT_IN_GAME)
        case _:
            return not_playing(game) or family_of(game).decide(game, round_of(game), action, context)


def _decide_on_seat(game: Game, action: Resign | ReturnToSeat | TakeOverSeat) -> Decision:
    """Decides who plays a seat from now on."""
    match action:
        case Resign(seat):
            return _resign(game, seat)
        case ReturnToSeat(seat):
            return return_to_seat(game, seat)
        case TakeOverSeat():
            return take_over_seat(game, action)


def _time_out(game: Game, draft: ProposedTable | None, context: Context) -> Decision:
    """Decides on `TimeOut` (R55, R56, clock_flag).

    Raises:
        ValueError: No deadline has passed.
    """
    if not is_expired(game, context.now_ms):
        raise ValueError("no turn has passed its deadline: apply TimeOut only when is_expired")
    round_ = round_of(game)
    if resigns_by_clock(game, round_):
        return TurnOver((TurnTimedOut(round_.turn.seat, ()), PlayerResigned(round_.turn.seat)))
    return family_of(game).time_out(game, round_, draft)


def _resign(game: Game, seat: int) -> Decision:
    match game.phase:
        case Lobby():
            return refused(Reason.GAME_NOT_STARTED)
        case Finished() | Aborted():
            return refused(Reason.GAME_OVER)
        case Playing() | RoundOver():
            if game.player(seat).resigned:
                return refused(Reason.PLAYER_RESIGNED)
            return TurnOver((PlayerResigned(seat),))
