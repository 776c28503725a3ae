"""Decides on the actions of a round of a draw-and-discard game, and on a turn whose deadline has passed."""

from engine.decisions import Context, Decision, TurnOutcome, TurnOver
from engine.discard.actions import (
    DiscardAction,
    DiscardTile,
    FinishHand,
    LayTiles,
    ReturnDiscard,
    ShowIndicator,
    TakeDiscard,
    TakeFromPool,
)
from engine.discard.events import (
    DiscardForced,
    DiscardReturned,
    DiscardTaken,
    HandFinished,
    IndicatorShown,
    PenaltyScored,
    PoolTileTaken,
    RackFinished,
    TileDiscarded,
    TilesLaid,
)
from engine.discard.finishing import judge_finish
from engine.discard.game import rules_of
from engine.discard.hands import FinishedHand
from engine.discard.laying import PenaltyCause, judge_turn
from engine.discard.round import DiscardRound, HasLaid, ToDiscard, ToTake
from engine.discard.ruleset import Ruleset
from engine.discard.table import Table
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
        case ShowIndicator(seat):
            return _show_indicator(round_, seat, rules_of(game))
        case _ if round_.table is not None:
            return _act_at_table(game, round_, round_.table, action)
        case DiscardTile(seat, tile):
            return _not_held(round_, seat, tile) or TurnOver((TileDiscarded(seat, tile),))
        case FinishHand(seat, tile):
            return _not_held(round_, seat, tile) or _finish(round_, action, rules_of(game))
        case LayTiles() | ReturnDiscard():
            return refused(Reason.ACTION_NOT_IN_GAME)


def _act_at_table(
    game: Game, round_: DiscardRound, table: Table, action: DiscardTile | FinishHand | LayTiles | ReturnDiscard
) -> Decision:
    match action:
        case DiscardTile():
            return _discard(game, round_, table, action)
        case LayTiles():
            return _lay(game, round_, table, action)
        case ReturnDiscard(seat):
            return _return_discard(game, round_, seat)
        case FinishHand():
            return refused(Reason.ACTION_NOT_IN_GAME)


def _take_discard(game: Game, round_: DiscardRound, seat: int) -> Decision:
    """Decides on `TakeDiscard`: the newest discard of the player before."""
    before = _before(game, round_, seat)
    match round_.pile(before).tiles:
        case (*_, uncovered, taken):
            return (DiscardTaken(seat, taken, before, uncovered),)
        case (taken,):
            return (DiscardTaken(seat, taken, before, None),)
        case _:
            return refused(Reason.NO_DISCARD_TO_TAKE, seat=before)


def _before(game: Game, round_: DiscardRound, seat: int) -> int:
    """Returns the seat of the player whose turn comes before, of those still playing."""
    return next(one for one in reversed(from_seat(round_.order, seat)) if one in game.active_seats)


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


# Laying


def _lay(game: Game, round_: DiscardRound, table: Table, action: LayTiles) -> Decision:
    """Decides on `LayTiles`. The turn goes on, but for the opening after which all players have opened with pairs."""
    if round_.step == ToDiscard():
        return refused(Reason.TURN_PHASE_WRONG)
    verdict = judge_turn(round_.turn_at(table), action.table, None, rules_of(game))
    laid = verdict.laid
    if laid is None:
        return Refused(verdict.violations)
    more = laid.turn.laid - round_.turn_at(table).laid
    event = TilesLaid(action.seat, laid.tiles, action.table, laid.okeys, more, laid.opening)
    return TurnOver((event,)) if _have_all_opened_with_pairs(game, laid.turn.table) else (event,)


def _have_all_opened_with_pairs(game: Game, table: Table) -> bool:
    with_pairs = {opening.seat for opening in table.openings if opening.is_pairs}
    return with_pairs.issuperset(game.active_seats)


def _discard(game: Game, round_: DiscardRound, table: Table, action: DiscardTile) -> Decision:
    """Decides on `DiscardTile` beside a table: the last tile finishes the round, any other may cost a penalty."""
    seat, tile = action.seat, action.tile
    verdict = judge_turn(round_.turn_at(table), None, tile, rules_of(game))
    if verdict.violations:
        return Refused(verdict.violations)
    if verdict.is_finish:
        return TurnOver((_rack_finished(round_, table, seat, tile),))
    cost = rules_of(game).score_discard_penalty
    penalty = (PenaltyScored(seat, cost, verdict.penalty),) if verdict.penalty else ()
    return TurnOver((TileDiscarded(seat, tile), *penalty))


def _rack_finished(round_: DiscardRound, table: Table, seat: int, tile: Tile) -> RackFinished:
    """Returns the finish of a player, who must have opened to lay the other tiles."""
    opened_now = isinstance(round_.step, HasLaid) and round_.step.is_opening
    is_pairs = any(opening.is_pairs for opening in table.openings if opening.seat == seat)
    return RackFinished(seat, tile, is_pairs, is_at_once=opened_now and len(table.openings) == 1)


def _return_discard(game: Game, round_: DiscardRound, seat: int) -> Decision:
    """Decides on `ReturnDiscard` (score_return_penalty)."""
    match round_.step:
        case ToDiscard(taken, is_seen=True) if taken is not None:
            cost = rules_of(game).score_return_penalty
            penalty = (PenaltyScored(seat, cost, PenaltyCause.DISCARD_RETURNED),) if cost else ()
            returned = DiscardReturned(seat, taken, _before(game, round_, seat))
            return (returned, *penalty, PoolTileTaken(seat, round_.pool[0]))
        case _:
            return refused(Reason.TURN_PHASE_WRONG)


# Finishing


def _finish(round_: DiscardRound, action: FinishHand, ruleset: Ruleset) -> Decision:
    """Decides on `FinishHand`."""
    tiles = without(round_.rack(action.seat).tiles, (action.tile,))
    finish = judge_finish(tiles, action.hand, round_.okey, one_high=ruleset.run_one_high)
    if isinstance(finish, FinishedHand):
        return TurnOver((HandFinished(action.seat, action.tile, finish.tiles, finish.is_pairs),))
    return Refused(finish)


# Time-outs


def time_out(game: Game, round_: DiscardRound, _draft: object) -> TurnOver:
    """Returns the end of a turn whose deadline has passed: the player takes from the pool if need be, and discards.

    A discard that was taken and must be laid is put back. The discard costs no penalty, and the last tile finishes.
    """
    seat, tiles, drawn = round_.turn.seat, round_.rack(round_.turn.seat).tiles, round_.pool[:1]
    match round_.step:
        case ToTake():
            goes = discard_for(in_order((*tiles, *drawn)), drawn[0], round_.okey)
            return TurnOver((TurnTimedOut(seat, drawn), DiscardForced(seat, goes)))
        case ToDiscard(taken, is_seen=True) if taken is not None and round_.table is not None:
            returned = DiscardReturned(seat, taken, _before(game, round_, seat))
            goes = discard_for(in_order((*without(tiles, (taken,)), *drawn)), drawn[0], round_.okey)
            return TurnOver((TurnTimedOut(seat, drawn), returned, DiscardForced(seat, goes)))
        case HasLaid() if round_.table is not None and len(tiles) == 1:
            return TurnOver((TurnTimedOut(seat, ()), _rack_finished(round_, round_.table, seat, tiles[0])))
        case _:
            taken = round_.step.taken if isinstance(round_.step, ToDiscard) else None
            return TurnOver((TurnTimedOut(seat, ()), DiscardForced(seat, discard_for(tiles, taken, round_.okey))))


def discard_for(tiles: tuple[Tile, ...], taken: Tile | None, okey: Tile) -> Tile:
    """Returns the discard of a player who does not choose one: the tile taken.

    If that is an okey, or there is none as in the starter's first turn, it is the highest tile; a false joker or an
    okey only if nothing else is left.
    """
    if taken is not None and taken != okey:
        return taken
    return max(tiles, key=lambda t: (t != okey, t != FALSE_JOKER, t))


def outcome(events: tuple[Event, ...]) -> TurnOutcome:
    """Returns the tiles laid and taken in a player's own turn, and the points of an opening with melds."""
    taken = tuple(event.tile for event in events if isinstance(event, PoolTileTaken | DiscardTaken))
    laid = next((event for event in events if isinstance(event, TilesLaid)), None)
    if laid is None:
        return TurnOutcome(tiles_drawn=taken)
    points = laid.opening.amount if laid.opening and not laid.opening.is_pairs else 0
    return TurnOutcome(laid.tiles, points, taken)
