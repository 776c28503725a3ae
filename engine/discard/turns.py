"""Decides on the actions of a round of a draw-and-discard game, and on a turn whose deadline has passed."""

from typing import Final

from engine.decisions import Context, Decision, TurnOutcome, TurnOver
from engine.discard.actions import (
    DiscardAction,
    DiscardTile,
    FinishFoot,
    FinishHand,
    LayTiles,
    PassTurn,
    ReturnDiscard,
    ShowIndicator,
    TakeDiscard,
    TakeFromPool,
    TakeTrump,
)
from engine.discard.events import (
    DiscardForced,
    DiscardReturned,
    DiscardTaken,
    EmptyPoolPassed,
    HandFinished,
    IndicatorShown,
    PenaltyScored,
    PoolTileTaken,
    RackFinished,
    ThreeTilesLeft,
    TileDiscarded,
    TilesLaid,
    TrumpTaken,
)
from engine.discard.finishing import judge_finish
from engine.discard.game import rules_of
from engine.discard.hand_matching import MatchedHand, judge_named_hand
from engine.discard.hands import FinishedHand, finished_hand
from engine.discard.laying import PenaltyCause, judge_foot, judge_turn
from engine.discard.round import DiscardRound, HasLaid, ToDiscard, ToTake
from engine.discard.ruleset import PoolEmpty, Ruleset
from engine.discard.table import Table
from engine.events import Event, TurnTimedOut
from engine.game import Game, is_expired
from engine.seats import from_seat
from engine.tiles import FALSE_JOKER, Tile, in_order, without
from engine.violations import Reason, Refused, Violation, refused

_FEW: Final = 3
"""A player who has opened says so with so many tiles left (concealed_wins)."""


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
    is_taking = isinstance(action, TakeFromPool | TakeDiscard | TakeTrump | PassTurn)
    if is_taking != isinstance(round_.step, ToTake) and not isinstance(action, ShowIndicator):
        return refused(Reason.TURN_PHASE_WRONG)
    match action:
        case TakeFromPool() | TakeDiscard() | TakeTrump() | PassTurn():
            return _take(game, round_, action)
        case ShowIndicator(seat):
            return _show_indicator(round_, seat, rules_of(game))
        case _ if round_.table is not None:
            return _act_at_table(game, round_, round_.table, action)
        case DiscardTile(seat, tile):
            return _not_held(round_, seat, tile) or TurnOver((TileDiscarded(seat, tile),))
        case FinishHand(seat, tile):
            return _not_held(round_, seat, tile) or _finish(round_, action, rules_of(game))
        case LayTiles() | ReturnDiscard() | FinishFoot():
            return refused(Reason.ACTION_NOT_IN_GAME)


def _act_at_table(
    game: Game,
    round_: DiscardRound,
    table: Table,
    action: DiscardTile | FinishHand | FinishFoot | LayTiles | ReturnDiscard,
) -> Decision:
    match action:
        case DiscardTile():
            return _discard(game, round_, table, action)
        case LayTiles():
            return _lay(game, round_, table, action)
        case ReturnDiscard(seat):
            return _return_discard(game, round_, seat)
        case FinishFoot() if rules_of(game).concealed_wins:
            return _finish_foot(round_, table, action, rules_of(game))
        case FinishHand(seat, tile) if rules_of(game).concealed_wins:
            return _not_held(round_, seat, tile) or _finish_named(round_, table, action, rules_of(game))
        case FinishHand() | FinishFoot():
            return refused(Reason.ACTION_NOT_IN_GAME)


# Taking


def _take(game: Game, round_: DiscardRound, action: TakeFromPool | TakeDiscard | TakeTrump | PassTurn) -> Decision:
    match action:
        case TakeFromPool(seat):
            return (PoolTileTaken(seat, round_.pool[0]),) if round_.pool else refused(Reason.POOL_EMPTY)
        case TakeDiscard(seat):
            return _take_discard(game, round_, seat)
        case TakeTrump(seat):
            return _take_trump(round_, seat)
        case PassTurn(seat):
            return _pass(round_, seat, rules_of(game))


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


def _take_trump(round_: DiscardRound, seat: int) -> Decision:
    """Decides on `TakeTrump` (trump)."""
    if round_.trump_to_take is None or not round_.rack(seat).has_melded:
        return refused(Reason.TRUMP_NOT_TAKEABLE)
    return (TrumpTaken(seat, round_.trump_to_take),)


def _pass(round_: DiscardRound, seat: int, ruleset: Ruleset) -> Decision:
    """Decides on `PassTurn` (pool_empty)."""
    if ruleset.pool_empty is PoolEmpty.ROUND_ENDS:
        return refused(Reason.ACTION_NOT_IN_GAME)
    if round_.pool:
        return refused(Reason.PASS_NOT_ALLOWED_POOL_NOT_EMPTY)
    return TurnOver((EmptyPoolPassed(seat),))


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
    twin = round_.indicator
    if not ruleset.show_indicator or twin is None or seat in round_.discarded or round_.shown_by is not None:
        return refused(Reason.INDICATOR_NOT_SHOWABLE)
    if twin not in round_.rack(seat).tiles:
        return Refused((Violation(Reason.INDICATOR_TWIN_NOT_HELD, tiles=(twin,)),))
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
    cost = rules_of(game).discard_penalty
    penalty = (PenaltyScored(seat, cost, verdict.penalty),) if verdict.penalty else ()
    left = _three_left(game, round_, len(round_.rack(seat).tiles) - 1)
    return TurnOver((TileDiscarded(seat, tile), *penalty, *left))


def _three_left(game: Game, round_: DiscardRound, left: int) -> tuple[ThreeTilesLeft, ...]:
    """Returns that a player who has opened has three tiles left (concealed_wins), if the turn's player has."""
    seat = round_.turn.seat
    is_said = rules_of(game).concealed_wins and left == _FEW and round_.rack(seat).has_melded
    return (ThreeTilesLeft(seat),) if is_said else ()


def _rack_finished(round_: DiscardRound, table: Table, seat: int, tile: Tile) -> RackFinished:
    """Returns the finish of a player, who must have opened to lay the other tiles."""
    opened_now = isinstance(round_.step, HasLaid) and round_.step.is_opening
    is_pairs = any(opening.is_pairs for opening in table.openings if opening.seat == seat)
    return RackFinished(seat, tile, is_pairs, is_at_once=opened_now and len(table.openings) == 1)


def _return_discard(game: Game, round_: DiscardRound, seat: int) -> Decision:
    """Decides on `ReturnDiscard` (score_return_penalty)."""
    returned = _returned(game, round_)
    if returned is None:
        return refused(Reason.TURN_PHASE_WRONG)
    cost = rules_of(game).score_return_penalty
    penalty = (PenaltyScored(seat, cost, PenaltyCause.DISCARD_RETURNED),) if cost else ()
    if not round_.pool:
        return TurnOver((returned, *penalty, EmptyPoolPassed(seat)))
    return (returned, *penalty, PoolTileTaken(seat, round_.pool[0]))


def _returned(game: Game, round_: DiscardRound) -> DiscardReturned | None:
    """Returns that the turn's player puts the tile back that must be laid; None if there is none."""
    seat, step = round_.turn.seat, round_.step
    if not isinstance(step, ToDiscard) or step.owed is None or round_.table is None:
        return None
    return DiscardReturned(seat, step.owed, None if step.is_trump else _before(game, round_, seat))


# Finishing


def _finish(round_: DiscardRound, action: FinishHand, ruleset: Ruleset) -> Decision:
    """Decides on `FinishHand`. A player pays for tiles that are no finished hand (score_false_finish)."""
    tiles = without(round_.rack(action.seat).tiles, (action.tile,))
    finish = judge_finish(tiles, action.hand, round_.okey, one_high=ruleset.run_one_high)
    if isinstance(finish, FinishedHand):
        return TurnOver((HandFinished(action.seat, action.tile, finish.tiles, finish.is_pairs),))
    cost = ruleset.score_false_finish
    is_declared = all(violation.reason is Reason.FINISH_INVALID for violation in finish)  # of tiles that are held
    if cost and is_declared and finished_hand(tiles, round_.okey, one_high=ruleset.run_one_high) is None:
        return (PenaltyScored(action.seat, cost, PenaltyCause.FALSE_FINISH),)
    return Refused(finish)


def _finish_foot(round_: DiscardRound, table: Table, action: FinishFoot, ruleset: Ruleset) -> Decision:
    """Decides on `FinishFoot` (concealed_wins)."""
    verdict = judge_foot(round_.turn_at(table), action.table, action.tile, ruleset)
    laid = verdict.laid
    if laid is None:
        return Refused(verdict.violations)
    finish = RackFinished(action.seat, action.tile, is_pairs=False, is_at_once=False, is_foot=True)
    return TurnOver((TilesLaid(action.seat, laid.tiles, action.table, 0, len(laid.tiles), None), finish))


def _finish_named(round_: DiscardRound, table: Table, action: FinishHand, ruleset: Ruleset) -> Decision:
    """Decides on `FinishHand` where hands have names (concealed_wins)."""
    turn = round_.turn_at(table)
    if table.opening(action.seat):
        return Refused((Violation(Reason.CONCEALED_AFTER_OPENING, "hand"),))
    tiles = without(turn.rack, (action.tile,))
    if turn.owed is not None and turn.owed not in tiles:
        return Refused((Violation(Reason.TAKEN_TILE_NOT_USED, "tile", (turn.owed,)),))
    hand = judge_named_hand(tiles, action.hand, ruleset.hands)
    if isinstance(hand, MatchedHand):
        return TurnOver((HandFinished(action.seat, action.tile, hand.tiles, is_pairs=False, name=hand.name),))
    return Refused(hand)


# Time-outs


def time_out(game: Game, round_: DiscardRound, _draft: object) -> TurnOver:
    """Returns the end of a turn whose deadline has passed: the player takes from the pool if need be, and discards.

    A taken tile that must be laid is put back. The discard costs no penalty, and the last tile finishes. Where a tile
    would be taken from an empty pool, the round ends (pool_empty).
    """
    seat, tiles = round_.turn.seat, round_.rack(round_.turn.seat).tiles
    returned = _returned(game, round_)
    if returned or isinstance(round_.step, ToTake):
        back = (returned,) if returned else ()
        left, drawn = without(tiles, (one.tile for one in back)), round_.pool[:1]
        if not drawn:
            return TurnOver((TurnTimedOut(seat, ()), *back))
        forced = _forced(game, round_, in_order((*left, *drawn)), drawn[0])
        return TurnOver((TurnTimedOut(seat, drawn), *back, *forced))
    if isinstance(round_.step, HasLaid) and round_.table is not None and len(tiles) == 1:
        return TurnOver((TurnTimedOut(seat, ()), _rack_finished(round_, round_.table, seat, tiles[0])))
    taken = round_.step.taken if isinstance(round_.step, ToDiscard) else None
    return TurnOver((TurnTimedOut(seat, ()), *_forced(game, round_, tiles, taken)))


def _forced(game: Game, round_: DiscardRound, tiles: tuple[Tile, ...], taken: Tile | None) -> tuple[Event, ...]:
    """Returns the discard of a turn that timed out, from these tiles."""
    forced = DiscardForced(round_.turn.seat, discard_for(tiles, taken, round_.okey))
    return (forced, *_three_left(game, round_, len(tiles) - 1))


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
    taken = tuple(event.tile for event in events if isinstance(event, PoolTileTaken | DiscardTaken | TrumpTaken))
    laid = next((event for event in events if isinstance(event, TilesLaid)), None)
    if laid is None:
        return TurnOutcome(tiles_drawn=taken)
    points = laid.opening.amount if laid.opening and not laid.opening.is_pairs else 0
    return TurnOutcome(laid.tiles, points, taken)
