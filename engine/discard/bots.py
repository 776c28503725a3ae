"""Bots: choose an action for a seat that the service plays.

A bot gets a view, so it knows only what its seat may see. The same view gives the same action. Every level finishes as
soon as it can. MASTER takes any discard that brings its hand nearer to its end, and discards so that as many unseen
tiles as possible help it. The levels below it do so in the turns in which they notice it (skill.py). How bots play
beside a table is in table_bots.py. There they open or win concealed as soon as they notice that they can.
"""

from collections import Counter
from collections.abc import Mapping
from operator import itemgetter
from typing import Final

from engine.discard.actions import (
    BotAction,
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
from engine.discard.finishing import best_finish
from engine.discard.game import rules_of, seen_round
from engine.discard.hands import is_nearer, standing
from engine.discard.laying import TurnAtTable
from engine.discard.melds import face_of
from engine.discard.named_finish import judge_named_finish
from engine.discard.round import HasLaid, ToTake
from engine.discard.ruleset import Ruleset, ScoreSystem, TakenDiscard
from engine.discard.table import Table
from engine.discard.table_bots import (
    can_lay,
    discard_at_table,
    foot,
    free_discards,
    laying,
    may_end_soon,
    wants_to_keep,
)
from engine.discard.turns import discard_for
from engine.discard.views import DiscardView
from engine.effort import Budget
from engine.seats import BotLevel, from_seat
from engine.skill import ALL, Skill, Skills, any_of, is_noticed, skills
from engine.tiles import FALSE_JOKER, NATURALS, Tile, color_of, in_order, value_of, without
from engine.views import GameView

BUDGET: Final = Budget()
"""The default search budget. Discards are compared until it is over."""
_OKEY: Final = skills((14, 14), (31, 31), (48, 48), (65, 65), (83, 83))
SKILLS: Final[Mapping[ScoreSystem, Skills]] = {
    ScoreSystem.OKEY: _OKEY,
    ScoreSystem.OKEY_101: skills((22, 22), (37, 37), (53, 53), (69, 69), (85, 85)),
    ScoreSystem.AMERICAN: skills((4, 4), (23, 23), (42, 42), (61, 61), (80, 80)),
    ScoreSystem.INTERNATIONAL: _OKEY,
}
"""The levels that overlook something: in how many turns they see the best discard, and what they can take or lay.

The rates follow from 75 to 156 duels of bots with random rates in each game. The odds to win grow evenly with them,
from nothing to everything by a factor of about 65 in Okey and International Rummikub, of 17 in American Rummikub and of
15 in 101 Okey, where luck decides more. There, bots that overlook more would block many rounds.
"""
_LAST: Final = 4
"""No bot overlooks anything in the last part of the pool, one in so many, or rounds would end without a winner."""
_TAKING, _LAYING, _DISCARDING = (0,), (1,), (2,)
"""The options of a turn that a bot may overlook."""
_COPIES: Final = 2
_NEAR: Final = 2
"""How far apart two values of one color are that are still of use together."""
_COMPARED: Final = 8
"""How many discards a bot compares: those with the fewest neighbors."""


def choose_action(view: GameView, level: BotLevel, budget: Budget = BUDGET) -> BotAction:
    """Returns the action of a bot that has the turn.

    Args:
        view: The view of its seat.
        level: How well it plays.
        budget: The budget of its search.

    Raises:
        ValueError: The seat has no action to choose (game.bots_to_act).
    """
    seat, sight = _seen(view)
    skill = ALL if _is_late(view) else SKILLS[rules_of(view).score_system].get(level, ALL)
    if sight.table is not None:
        return _at_table(view, seat, sight, sight.table, skill, budget)
    if _may_show(view, seat, sight):
        return ShowIndicator(seat)
    if sight.step is ToTake:
        return TakeDiscard(seat) if _wants_discard(view, seat, sight, skill) else TakeFromPool(seat)
    finish = _finish(view, seat, sight)
    if finish:
        return finish
    if is_noticed(view, _DISCARDING, skill.rack):
        return DiscardTile(seat, _with_most_outs(view, sight, budget))
    return DiscardTile(seat, any_of(view, without(view.rack, (sight.okey,) * view.rack.count(sight.okey))))


def action_without_search(_view: GameView) -> None:
    """Returns None: each action may need a search."""


def action_without_play(view: GameView) -> BotAction:
    """Returns an action that needs no search: a tile of the pool, or a discard.

    Raises:
        ValueError: As `choose_action`.
    """
    seat, sight = _seen(view)
    if sight.step is ToTake:
        return TakeFromPool(seat) if view.pool_count else PassTurn(seat)
    if sight.owed is not None:
        return ReturnDiscard(seat)
    return DiscardTile(seat, discard_for(view.rack, sight.taken, sight.okey))


def _seen(view: GameView) -> tuple[int, DiscardView]:
    """Returns the viewer's seat and the round."""
    sight = seen_round(view)
    if view.turn is None or view.seat != view.turn.seat or sight is None:
        raise ValueError("it is not the turn of the view's seat")
    return view.turn.seat, sight


def _is_late(view: GameView) -> bool:
    """Returns whether little of the pool is left."""
    rules, players = rules_of(view), len(view.order)
    return view.pool_count * _LAST <= len(rules.tiles(players)) - players * rules.hand_size


def _at_table(  # noqa: PLR0913, PLR0917 - the parts of a position
    view: GameView, seat: int, sight: DiscardView, table: Table, skill: Skill, budget: Budget
) -> BotAction:
    turn, ruleset = TurnAtTable(seat, sight.okey, table, view.rack, sight.owed, sight.laid), rules_of(view)
    if sight.step is ToTake:
        return _take_at_table(view, turn, sight, ruleset, notices=is_noticed(view, _TAKING, skill.table))
    notices = turn.owed is not None or is_noticed(view, _LAYING, skill.table)
    concealed = win_concealed(turn, ruleset) if ruleset.concealed_wins and notices else None
    if concealed:
        return concealed
    is_first = sight.step is not HasLaid and sight.taken is None
    after = laying(turn, ruleset, keeps_okeys=not may_end_soon(view)) if notices and not is_first else None
    if after:
        return LayTiles(seat, after)
    if turn.owed is not None:
        return ReturnDiscard(seat)
    free = free_discards(turn, ruleset)
    is_careful = is_noticed(view, _DISCARDING, skill.rack)
    return DiscardTile(seat, discard_at_table(turn, free, sight, ruleset, budget) if is_careful else any_of(view, free))


def _take_at_table(
    view: GameView, turn: TurnAtTable, sight: DiscardView, ruleset: Ruleset, *, notices: bool
) -> BotAction:
    """Returns the taking of a discard, of the trump or of a tile of the pool, or a pass if the pool is empty."""
    newest = _newest_before(view, turn.seat, sight)
    if newest is not None and _wants_newest(view, turn, newest, ruleset, notices=notices):
        return TakeDiscard(turn.seat)
    if sight.trump is not None and turn.table.opening(turn.seat) and can_lay(turn, sight.trump, ruleset):
        return TakeTrump(turn.seat)
    return TakeFromPool(turn.seat) if view.pool_count else PassTurn(turn.seat)


def _wants_newest(view: GameView, turn: TurnAtTable, newest: Tile, ruleset: Ruleset, *, notices: bool) -> bool:
    """Returns whether a bot takes a discard. With an empty pool it overlooks none that it can lay."""
    if not notices and view.pool_count:
        return False
    if can_lay(turn, newest, ruleset):
        return True
    may_keep = ruleset.taken_discard is TakenDiscard.KEPT_BEFORE_OPENING and not turn.table.opening(turn.seat)
    return may_keep and wants_to_keep(turn, newest, ruleset)


def win_concealed(turn: TurnAtTable, ruleset: Ruleset) -> FinishHand | FinishFoot | None:
    """Returns a named hand or a Foot, if a player who has not opened holds one (concealed_wins)."""
    if turn.table.opening(turn.seat):
        return None
    named = judge_named_finish(turn.rack, None, (), ruleset.hands)
    if named.hand and named.discard not in {None, turn.owed}:
        return FinishHand(turn.seat, named.discard, named.hand.tiles)
    made = foot(turn, ruleset)
    return made and FinishFoot(turn.seat, made[1], made[0])


def _may_show(view: GameView, seat: int, sight: DiscardView) -> bool:
    is_first_turn = rules_of(view).show_indicator and seat not in sight.discarded and sight.shown_by is None
    return is_first_turn and sight.indicator in view.rack


def _one_high(view: GameView) -> bool:
    return rules_of(view).run_one_high


# Taking


def _wants_discard(view: GameView, seat: int, sight: DiscardView, skill: Skill) -> bool:
    """Returns whether a bot takes the newest discard of the player before it: if it finishes, or it notices its use."""
    newest = _newest_before(view, seat, sight)
    if newest is None:
        return False
    tiles = in_order((*view.rack, newest))
    missing = standing(tiles, sight.okey, one_high=_one_high(view)).missing
    if missing == 0 or not is_noticed(view, _TAKING, skill.table):
        return missing == 0
    return not is_nearer(view.rack, sight.okey, missing + 1, one_high=_one_high(view))


def _newest_before(view: GameView, seat: int, sight: DiscardView) -> Tile | None:
    resigned = {player.seat for player in view.players if player.resigned}
    before = next(one for one in reversed(from_seat(view.order, seat)) if one not in resigned)
    return next(pile.newest for pile in sight.piles if pile.seat == before)


# Discarding


def _finish(view: GameView, seat: int, sight: DiscardView) -> FinishHand | None:
    """Returns the finish of a hand, if it is finished."""
    best = best_finish(view.rack, sight.okey, one_high=_one_high(view))
    return best and FinishHand(seat, best[0], best[1].tiles)


def _neighbors(t: Tile, rack: tuple[Tile, ...], okey: Tile) -> int:
    """Returns how many other tiles of a rack are of use together with a tile."""
    faces = [face for other in without(rack, (t,)) if (face := face_of(other, okey)) is not None]
    face = face_of(t, okey)
    return sum(_is_near(face, other) for other in faces) if face else len(rack)


def _is_near(face: Tile, other: Tile) -> bool:
    if color_of(face) is color_of(other):
        return abs(value_of(face) - value_of(other)) <= _NEAR
    return value_of(face) == value_of(other)


def _with_most_outs(view: GameView, sight: DiscardView, budget: Budget) -> Tile:
    """Returns the discard after which the most unseen tiles bring the hand nearer to its end.

    It is never an okey: a hand that can do without it is finished.
    """
    best = standing(view.rack, sight.okey, one_high=_one_high(view))
    unseen, one_high = _unseen(view, sight), _one_high(view)
    loose = sorted(set(view.rack) - {sight.okey}, key=lambda t: (_neighbors(t, view.rack, sight.okey), -t))
    found = (-1, best.spare[0])
    for t in loose[:_COMPARED]:
        left = without(view.rack, (t,))
        if is_nearer(left, sight.okey, best.missing + 1, one_high=one_high):
            outs = _outs(left, sight.okey, best.missing, unseen, one_high=one_high)
            found = max(found, (outs, t), key=itemgetter(0))
        if budget.is_over and budget.is_over():
            break
    return found[-1]


def _outs(tiles: tuple[Tile, ...], okey: Tile, missing: int, unseen: Counter[Tile], *, one_high: bool) -> int:
    """Returns how many unseen tiles bring a hand nearer to its end."""
    return sum(
        count for t, count in unseen.items() if is_nearer(in_order((*tiles, t)), okey, missing, one_high=one_high)
    )


def _unseen(view: GameView, sight: DiscardView) -> Counter[Tile]:
    """Returns the tiles that a bot does not see now: neither on its rack nor face up."""
    return Counter(dict.fromkeys((*NATURALS, FALSE_JOKER), _COPIES)) - Counter([*view.rack, *sight.face_up])
