"""The decision on a new deal (deal_three_pairs_reshuffle)."""

from engine.clocks import start_turn, with_full_banks
from engine.decisions import Context, Decision
from engine.game import Game
from engine.melding.actions import RequestRedeal
from engine.melding.deal import deal_round, may_demand_redeal
from engine.melding.events import RedealDemanded
from engine.melding.game import rules_of
from engine.melding.round import Choosing, MeldingRound
from engine.violations import Reason, refused


def request_redeal(game: Game, round_: MeldingRound, action: RequestRedeal, context: Context) -> Decision:
    """Decides on `RequestRedeal`."""
    seat = action.seat
    if game.player(seat).resigned:
        return refused(Reason.PLAYER_RESIGNED)
    has_begun = seat == round_.turn.seat and (isinstance(round_.step, Choosing) or round_.shown_play is not None)
    if has_begun or not may_demand_redeal(round_, seat, rules_of(game)):
        return refused(Reason.REDEAL_NOT_ALLOWED)
    dealt = deal_round(game, action.shuffle)
    return (RedealDemanded(seat), dealt, start_turn(with_full_banks(game), dealt.order[0], context.now_ms))
