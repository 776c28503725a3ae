"""Decides on the actions of a round of a draw-and-discard game, and on a turn whose deadline has passed."""

from engine.decisions import Context, Decision, TurnOutcome, TurnOver
from engine.discard.actions import DiscardAction, DiscardTile, FinishHand, ShowIndicator, TakeDiscard, TakeFromPool
from engine.discard.events import (
    DiscardForced,
    DiscardTaken,
    HandFinished,
    IndicatorShown,
    PoolTileTaken,
    TileDiscarded,
)
from engine.discard.finishing import judge_finish
from engine.discard.game import rules_of
from engine.discard.hands import FinishedHand
from engine.discard.round import DiscardRound, ToDiscard, ToTake
from engine.discard.ruleset import Ruleset
from engine.events import Event, TurnTimedOut
from engine.game import Game, is_expired
from engine.seats import from_seat
from engine.tiles import FALSE_JOKER, Tile, in_order, without
from engine.violations import Reason, Refused, Violation, refused


def decide(game: Game, round_: DiscardRound, action: DiscardAction, context: Context) -> Decision:
    """Decides on an action in the round."""
    return _not_their_turn(game, round_, action.seat, context.now_ms) or _act(game, round_, action)


def _not_their_turn(game: Game, round_: DiscardRound, seat: int, now_ms: int) -> Refused | None:
    """Returns a refusal unless a player has the turn and its deadline has not passed."""
    if game.player(seat).resigned:
        return refused(Reason.PLAYER_RESIGNED)
    if is_expired(game, now_ms):
        return refused(Reason.TURN_TIMED_OUT)
    if round_.turn.seat != seat:
        return refused(Reason.NOT_YOUR_TURN, seat=round_.turn.seat)
    return None


def _act(game: Game, round_: DiscardRound, action: DiscardAction) -> Decision:
    is_taking = isinstance(action, TakeFromPool | TakeDiscard)
    if is_taking != isinstance(round_.step, ToTake) and not isinstance(action, ShowIndicator):
        return refused(Reason.TURN_PHASE_WRONG)
    match action:
        case TakeFromPool(seat):
            return (PoolTileTaken(seat, round_.pool[0]),)
        case TakeDiscard(seat):
            return _take_discard(game, round_, seat)
        case DiscardTile(seat, tile):
            return _not_held(round_, seat, tile) or TurnOver((TileDiscarded(seat, tile),))
        case FinishHand(seat, tile):
            return _not_held(round_, seat, tile) or _finish(round_, action, rules_of(game))
        case ShowIndicator(seat):
            return _show_indicator(round_, seat, rules_of(game))


def _take_discard(game: Game, round_: DiscardRound, seat: int) -> Decision:
    """Decides on `TakeDiscard`: the newest discard of the player whose turn comes before, of those still playing."""
    before = next(one for one in reversed(from_seat(round_.order, seat)) if one in game.active_seats)
    match round_.pile(before).tiles:
        case (*_, uncovered, taken):
            return (DiscardTaken(seat, taken, before, uncovered),)
        case (taken,):
            return (DiscardTaken(seat, taken, before, None),)
        case _:
            return refused(Reason.NO_DISCARD_TO_TAKE, seat=before)


def _not_held(round_: DiscardRound, seat: int, tile: Tile) -> Refused | None:
    """Returns a refusal if a player does not have a tile."""
    if tile in round_.rack(seat).tiles:
        return None
    return Refused((Violation(Reason.TILE_NOT_IN_RACK, "tile", (tile,)),))


def _show_indicator(round_: DiscardRound, seat: int, ruleset: Ruleset) -> Decision:
    """Decides on `ShowIndicator` (show_indicator)."""
    if not ruleset.show_indicator or seat in round_.discarded or round_.shown_by is not None:
        return refused(Reason.INDICATOR_NOT_SHOWABLE)
    if round_.indicator not in round_.rack(seat).tiles:
        return Refused((Violation(Reason.INDICATOR_TWIN_NOT_HELD, tiles=(round_.indicator,)),))
    return (IndicatorShown(seat),)


def _finish(round_: DiscardRound, action: FinishHand, ruleset: Ruleset) -> Decision:
    """Decides on `FinishHand`."""
    tiles = without(round_.rack(action.seat).tiles, (action.tile,))
    finish = judge_finish(tiles, action.hand, round_.okey, one_high=ruleset.run_one_high)
    if isinstance(finish, FinishedHand):
        return TurnOver((HandFinished(action.seat, action.tile, finish.tiles, finish.is_pairs),))
    return Refused(finish)


# Time-outs


def time_out(_game: Game, round_: DiscardRound, _draft: object) -> TurnOver:
    """Returns the end of a turn whose deadline has passed: the player takes from the pool if need be, and discards."""
    seat = round_.turn.seat
    match round_.step:
        case ToTake():
            drawn, taken = round_.pool[:1], round_.pool[0]
            tiles = in_order((*round_.rack(seat).tiles, taken))
            return TurnOver((TurnTimedOut(seat, drawn), DiscardForced(seat, discard_for(tiles, taken, round_.okey))))
        case ToDiscard(taken):
            goes = discard_for(round_.rack(seat).tiles, taken, round_.okey)
            return TurnOver((TurnTimedOut(seat, ()), DiscardForced(seat, goes)))


def discard_for(tiles: tuple[Tile, ...], taken: Tile | None, okey: Tile) -> Tile:
    """Returns the discard of a player who does not choose one: the tile taken.

    If that is an okey, or there is none as in the starter's first turn, it is the highest tile that is neither an okey
    nor a false joker.
    """
    if taken is not None and taken != okey:
        return taken
    return max(t for t in tiles if t not in {okey, FALSE_JOKER})


def outcome(events: tuple[Event, ...]) -> TurnOutcome:
    """Returns the tiles taken in a player's own turn."""
    taken = (event.tile for event in events if isinstance(event, PoolTileTaken | DiscardTaken))
    return TurnOutcome(tiles_drawn=tuple(taken))
