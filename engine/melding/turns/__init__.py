"""Decides on the actions of a round of a melding game: plays, draws, passes, claims, and the time-out of a turn."""

from engine.decisions import Context, Decision, not_playing
from engine.game import Game, is_expired
from engine.melding.actions import (
    ClaimError,
    DrawTile,
    Knock,
    LayOnRiver,
    MeldingAction,
    Pass,
    PlayTiles,
    RequestRedeal,
    TurnAction,
)
from engine.melding.drafts import Draft
from engine.melding.game import round_of, rules_of
from engine.melding.round import Choosing, MeldingRound
from engine.melding.ruleset import Ruleset
from engine.melding.table import ProposedTable
from engine.melding.turns.drafts import check_draft
from engine.melding.turns.draws import draw, knock, lay_on_river, pass_turn
from engine.melding.turns.plays import claim_error, play_tiles
from engine.melding.turns.redeal import request_redeal
from engine.violations import Reason, Refused, refused


def decide(game: Game, round_: MeldingRound, action: MeldingAction, context: Context) -> Decision:
    """Decides on an action in the round."""
    match action:
        case PlayTiles() | DrawTile() | LayOnRiver() | Pass() | Knock():
            return _take_turn(game, round_, action, context)
        case ClaimError():
            return claim_error(game, round_, action, context)
        case RequestRedeal():
            return request_redeal(game, round_, action, context)


def arrange(game: Game, seat: int, table: ProposedTable, now_ms: int) -> Draft | Refused:
    """Returns a draft of the turn in progress, or the reasons for a refusal. It changes no game.

    Args:
        game: The game.
        seat: The seat of the player who arranges the table. It must be taken.
        table: The table as the player has arranged it.
        now_ms: The time, milliseconds since 1970.
    """
    if not isinstance(game.ruleset, Ruleset):
        return refused(Reason.ACTION_NOT_IN_GAME)
    refusal = not_playing(game)
    if refusal:
        return refusal
    round_ = round_of(game)
    refusal = _not_their_turn(game, round_, seat, now_ms) or _choice_pending(round_)
    return refusal or check_draft(round_, seat, table, rules_of(game))


def _take_turn(game: Game, round_: MeldingRound, action: TurnAction, context: Context) -> Decision:
    refusal = _not_their_turn(game, round_, action.seat, context.now_ms)
    if refusal is None and not isinstance(action, LayOnRiver):
        refusal = _choice_pending(round_)
    return refusal or _act(game, round_, action, context)


def _not_their_turn(game: Game, round_: MeldingRound, seat: int, now_ms: int) -> Refused | None:
    """Returns a refusal unless a player has the turn and its deadline has not passed (R28, R54)."""
    if game.player(seat).resigned:
        return refused(Reason.PLAYER_RESIGNED)
    if is_expired(game, now_ms):
        return refused(Reason.TURN_TIMED_OUT)
    if round_.turn.seat != seat:
        return refused(Reason.NOT_YOUR_TURN, seat=round_.turn.seat)
    return None


def _choice_pending(round_: MeldingRound) -> Refused | None:
    """Returns a refusal if the player must first lay a drawn tile on the River."""
    return refused(Reason.RIVER_CHOICE_PENDING) if isinstance(round_.step, Choosing) else None


def _act(game: Game, round_: MeldingRound, action: TurnAction, context: Context) -> Decision:
    match action:
        case PlayTiles():
            return play_tiles(game, round_, action)
        case DrawTile(seat):
            return draw(rules_of(game), round_, seat, context)
        case LayOnRiver():
            return lay_on_river(round_, action)
        case Pass(seat):
            return pass_turn(rules_of(game), round_, seat, context)
        case Knock(seat):
            return knock(rules_of(game), round_, seat)
