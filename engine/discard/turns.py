"""Decides on the actions of a round of a draw-and-discard game, and on a turn whose deadline has passed."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain

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
from engine.discard.game import rules_of
from engine.discard.hands import finished_hand, standing
from engine.discard.melds import Arrangement, is_pair, meld_kind
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
    tiles = round_.pile(before).tiles
    return (DiscardTaken(seat, tiles[-1], before),) if tiles else refused(Reason.NO_DISCARD_TO_TAKE, seat=before)


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


# Finishing


def _finish(round_: DiscardRound, action: FinishHand, ruleset: Ruleset) -> Decision:
    """Decides on `FinishHand`: as the player lays the hand, otherwise as the search finds it."""
    tiles = without(round_.rack(action.seat).tiles, (action.tile,))
    one_high = ruleset.run_one_high
    if action.hand:
        violations = tuple(_violations(tiles, action.hand, round_.okey, one_high=one_high))
        if violations:
            return Refused(violations)
        return _finished(action, action.hand, is_pairs=_is_meant_as_pairs(action.hand))
    found = finished_hand(tiles, round_.okey, one_high=one_high)
    if found is None:
        lacks = standing(tiles, round_.okey, one_high=one_high)
        return Refused((Violation(Reason.FINISH_INVALID, tiles=lacks.spare),))
    return _finished(action, found.tiles, is_pairs=found.is_pairs)


def _finished(action: FinishHand, hand: Arrangement, *, is_pairs: bool) -> TurnOver:
    return TurnOver((HandFinished(action.seat, action.tile, hand, is_pairs),))


def _is_meant_as_pairs(hand: Arrangement) -> bool:
    return all(len(part) == 2 for part in hand)


def _violations(tiles: tuple[Tile, ...], hand: Arrangement, okey: Tile, *, one_high: bool) -> Iterator[Violation]:
    """Yields what is wrong with a hand as a player lays it: other tiles, tiles left over, parts that are no melds."""
    laid, held = Counter(chain.from_iterable(hand)), Counter(tiles)
    foreign, left = in_order((laid - held).elements()), in_order((held - laid).elements())
    if foreign:
        yield Violation(Reason.TILE_NOT_IN_RACK, "hand", foreign)
    if left:
        yield Violation(Reason.FINISH_INVALID, "hand", left)
    as_pairs = _is_meant_as_pairs(hand)
    for place, part in enumerate(hand):
        if not (is_pair(part, okey) if as_pairs else meld_kind(part, okey, one_high=one_high)):
            yield Violation(Reason.FINISH_INVALID, f"hand[{place}]", part)


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
