"""Bots of games whose melds lie on a table: choose what to lay, whether to take a discard, and what to discard.

A bot opens as soon as it can, lays what it can, and discards nothing that costs a penalty if it can. It takes any
discard that it can lay. It keeps an okey until the round may end, high tiles for the opening, and its pairs if they are
nearer to one than its melds. It looks at which tiles can still come, and at how many of them would open its hand. A
wild tile is called an okey here, also where it is a joker.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from engine.discard.best_melds import Memo, best_melds, best_pairs, missing_to_open
from engine.discard.laying import TurnAtTable, judge_foot, judge_turn, may_lay_pairs, needed_to_open, penalty_of
from engine.discard.melds import GROUP_MAX, Arrangement, face_of, is_group, value_on_rack
from engine.discard.ruleset import HAND_SIZE_MOST, Ruleset, WildRetrieval
from engine.discard.table import PAIR_SIZE, Opening, growths
from engine.discard.views import DiscardView
from engine.effort import Budget
from engine.tiles import FALSE_JOKER, JOKER, NATURALS, Tile, color_of, in_order, value_of, without
from engine.views import GameView

_COPIES: Final = 2
_NEAR: Final = 2
"""How far apart two values of one color are that are still of use together."""
_FAR: Final = 30
"""Hands that lack more points than this are nearer to an opening with pairs if they lack at most one."""
_COMPARED: Final = 6
"""How many discards a bot compares: those of the least use."""
_STATES: Final = 30_000
"""After so many states of searches, about 200 milliseconds, a bot compares no further discards."""
_POOL_LOW: Final = 4
_RACK_LOW: Final = 3
"""With so few tiles in the pool or on another rack the round may end soon: no bot keeps an okey."""


def can_lay(turn: TurnAtTable, tile: Tile, ruleset: Ruleset) -> bool:
    """Returns whether a player who takes a tile can lay it. The turn is one before a tile is taken."""
    taken = replace(turn, rack=in_order((*turn.rack, tile)), owed=tile)
    return laying(taken, ruleset, keeps_okeys=False) is not None


def wants_to_keep(turn: TurnAtTable, newest: Tile, ruleset: Ruleset) -> bool:
    """Returns whether a discard brings a hand nearer to its opening (taken_discard)."""
    before, after = (
        best_melds(rack, turn.okey, one_high=ruleset.run_one_high).points
        for rack in (turn.rack, in_order((*turn.rack, newest)))
    )
    return after > before


def laying(turn: TurnAtTable, ruleset: Ruleset, *, keeps_okeys: bool) -> Arrangement | None:
    """Returns the table after what a bot lays in a step of its turn; None if it lays nothing."""
    after = _more(turn, ruleset, keeps_okeys=keeps_okeys) if turn.table.opening(turn.seat) else _opened(turn, ruleset)
    return after if after and not judge_turn(turn, after, None, ruleset).violations else None


def foot(turn: TurnAtTable, ruleset: Ruleset) -> tuple[Arrangement, Tile] | None:
    """Returns the table and the discard of a Foot, a wild tile if possible; None if there is none."""
    if turn.table.opening(turn.seat) or not turn.table.openings:
        return None
    as_opened = replace(turn.table, openings=(*turn.table.openings, Opening(turn.seat, is_pairs=False, amount=0)))
    planner = _Planner(replace(turn, table=as_opened, owed=None), ruleset, takes_wild=False)
    if all(len(plan.rack) > _NEAR for plan in planner.plans(turn.rack, keeps_okeys=False)):
        return None
    for discard in sorted(set(turn.rack), key=lambda t: t != turn.okey):
        for plan in planner.plans(without(turn.rack, (discard,)), keeps_okeys=False):
            if not plan.rack and judge_foot(turn, plan.melds, discard, ruleset).is_finish:
                return plan.melds, discard
    return None


def may_end_soon(view: GameView) -> bool:
    """Returns whether the pool or another rack has few tiles left."""
    others = (p.tile_count for p in view.players if p.seat != view.seat and not p.resigned)
    return view.pool_count <= _POOL_LOW or min(others, default=0) <= _RACK_LOW


# Opening


def _opened(turn: TurnAtTable, ruleset: Ruleset) -> Arrangement | None:
    """Returns the table after an opening, which leaves a tile to discard."""
    parts = _opening(turn, turn.rack, ruleset)
    if len(list(chain(*parts))) == len(turn.rack):
        shorter = (_opening(turn, without(turn.rack, (t,)), ruleset) for t in dict.fromkeys(turn.rack))
        parts = max(shorter, key=lambda opening: len(list(chain(*opening))))
    return (*turn.table.melds, *parts) if parts else None


def _opening(turn: TurnAtTable, rack: tuple[Tile, ...], ruleset: Ruleset) -> Arrangement:
    """Returns the melds with the most points that open, else the most pairs that do, else nothing."""
    if turn.owed is not None and turn.owed not in rack:
        return ()
    melds = best_melds(rack, turn.okey, one_high=ruleset.run_one_high, with_tile=turn.owed)
    if melds.points >= needed_to_open(turn.table, ruleset, is_pairs=False):
        return melds.melds
    pairs = best_pairs(rack, turn.okey) if ruleset.opening_pairs else ()
    has_owed = turn.owed is None or turn.owed in chain(*pairs)
    return pairs if has_owed and len(pairs) >= max(1, needed_to_open(turn.table, ruleset, is_pairs=True)) else ()


# Laying more


@dataclass(frozen=True, slots=True)
class _Plan:
    """A table, the tiles that stay on the rack, and the number of tiles that may still be laid."""

    melds: Arrangement
    rack: tuple[Tile, ...]
    room: int


class _Planner:
    """Plans what a player who has opened lays."""

    def __init__(self, turn: TurnAtTable, ruleset: Ruleset, *, takes_wild: bool = True) -> None:
        self.turn, self.okey, self.one_high = turn, turn.okey, ruleset.run_one_high
        self.takes_to_rack = takes_wild and ruleset.wild_retrieval is WildRetrieval.TO_RACK
        self.lays_taken = takes_wild and not self.takes_to_rack
        opening = turn.table.opening(turn.seat)
        self.has_pairs = opening is not None and opening.is_pairs
        self.lays_pairs = may_lay_pairs(turn.table, turn.seat)
        is_limited = self.has_pairs and ruleset.pair_opener_tiles
        self.room = ruleset.pair_opener_tiles - turn.laid if is_limited else HAND_SIZE_MOST + 1

    def plans(self, rack: tuple[Tile, ...], *, keeps_okeys: bool) -> Iterator[_Plan]:
        """Yields plans: melds before lay-offs, and the other way round. The taken discard, if any, is laid first."""
        for start in self._starts(_Plan(self.turn.table.melds, rack, self.room)):
            for plan in (self._with_melds(start), self._with_melds(self._with_lay_offs(start))):
                yield self._with_okeys(self._with_lay_offs(plan), keeps_okeys=keeps_okeys)

    def _starts(self, plan: _Plan) -> Iterator[_Plan]:
        owed = self.turn.owed
        if owed is None:
            yield plan
            if self.lays_taken:
                yield from self._retrievals(plan)
            return
        if owed not in plan.rack:
            return
        laid = next(self._lay_offs(plan, owed), None)
        if laid:
            yield laid
        if not self.has_pairs:
            melds = best_melds(plan.rack, self.okey, one_high=self.one_high, with_tile=owed).melds
            if melds:
                yield self._with_parts(plan, melds)
        elif plan.rack.count(owed) == PAIR_SIZE <= plan.room:
            yield self._with_parts(plan, ((owed, owed),))

    def _retrievals(self, plan: _Plan) -> Iterator[_Plan]:
        """Yields plans with a wild tile of the table in a new meld (wild_retrieval)."""
        for place, meld in enumerate(plan.melds):
            for grown, tiles in self._without_wild(meld, plan.rack) if self.okey in meld else ():
                left = in_order((*without(plan.rack, tiles), self.okey))
                parts = best_melds(left, self.okey, one_high=self.one_high, with_tile=self.okey).melds
                if parts:
                    melds = (*plan.melds[:place], grown, *plan.melds[place + 1 :])
                    yield self._with_parts(_Plan(melds, left, plan.room), parts)

    def _without_wild(
        self, meld: tuple[Tile, ...], rack: tuple[Tile, ...]
    ) -> Iterator[tuple[tuple[Tile, ...], tuple[Tile, ...]]]:
        """Yields what a meld becomes when a wild tile is taken from it, with the tiles that are laid for that."""
        for t in dict.fromkeys(rack):
            for grown in growths(meld, t, self.okey, one_high=self.one_high):
                if len(grown) > len(meld):
                    continue
                if not is_group(grown, self.okey) or len(grown) == GROUP_MAX:
                    yield grown, (t,)
                yield from (
                    ((*grown, other), (t, other))
                    for other in dict.fromkeys(rack)
                    if is_group((*grown, other), self.okey)
                )

    def _with_parts(self, plan: _Plan, parts: Arrangement) -> _Plan:
        tiles = tuple(chain(*parts))
        return _Plan((*plan.melds, *parts), without(plan.rack, tiles), plan.room - len(tiles))

    def _with_melds(self, plan: _Plan) -> _Plan:
        """Returns a plan with new melds, or with pairs of equal tiles."""
        if not self.has_pairs:
            plan = self._with_parts(plan, best_melds(plan.rack, self.okey, one_high=self.one_high).melds)
        if not self.lays_pairs:
            return plan
        equal = [(t, t) for t, count in Counter(plan.rack).items() if count == PAIR_SIZE and t != self.okey]
        return self._with_parts(plan, tuple(equal[: plan.room // PAIR_SIZE]))

    def _with_lay_offs(self, plan: _Plan) -> _Plan:
        """Returns a plan with all lay-offs of tiles that are not wild, one after the other."""
        tiles = (t for t in plan.rack if t != self.okey)
        laid = next((after for t in tiles for after in self._lay_offs(plan, t)), None)
        return self._with_lay_offs(laid) if laid else plan

    def _with_okeys(self, plan: _Plan, *, keeps_okeys: bool) -> _Plan:
        """Returns a plan with okeys laid off, if they are not kept or if the player can then finish."""
        okeys = plan.rack.count(self.okey)
        if not okeys or len(plan.rack) == 1 or (keeps_okeys and len(plan.rack) - okeys > 1):
            return plan
        laid = next(self._lay_offs(plan, self.okey), None)
        return self._with_okeys(laid, keeps_okeys=keeps_okeys) if laid else plan

    def _lay_offs(self, plan: _Plan, t: Tile) -> Iterator[_Plan]:
        """Yields plans with a tile laid on a meld; in the place of a wild tile first."""
        if not plan.room:
            return
        for place, meld in enumerate(plan.melds):
            for grown in growths(meld, t, self.okey, one_high=self.one_high):
                if len(grown) == len(meld) and not self.takes_to_rack:
                    continue
                okeys = (self.okey,) * (len(meld) + 1 - len(grown))
                melds = (*plan.melds[:place], grown, *plan.melds[place + 1 :])
                yield _Plan(melds, in_order((*without(plan.rack, (t,)), *okeys)), plan.room - 1)


def _more(turn: TurnAtTable, ruleset: Ruleset, *, keeps_okeys: bool) -> Arrangement | None:
    """Returns the table after as much as possible is laid, with a tile left to discard; None if nothing can be laid."""
    planner = _Planner(turn, ruleset)

    def best(rack: tuple[Tile, ...]) -> _Plan | None:
        plans = planner.plans(rack, keeps_okeys=keeps_okeys)
        return min(plans, key=lambda plan: _left_over(plan, turn.okey), default=None)

    plan = best(turn.rack)
    if plan and not plan.rack:
        plan = _shortest(best(without(turn.rack, (t,))) for t in sorted(set(turn.rack), key=lambda t: t != turn.okey))
    return plan.melds if plan and plan.melds != turn.table.melds else None


def _shortest(plans: Iterable[_Plan | None]) -> _Plan | None:
    """Returns the first plan that leaves no tile, else the one that leaves the fewest."""
    found = None
    for plan in plans:
        if plan and (found is None or len(plan.rack) < len(found.rack)):
            found = plan
        if found and not found.rack:
            break
    return found


def _left_over(plan: _Plan, okey: Tile) -> tuple[int, int]:
    """Returns what is left on a rack: values, and tiles."""
    return sum(value_on_rack(t, okey) for t in plan.rack), len(plan.rack)


# Discarding


def free_discards(turn: TurnAtTable, ruleset: Ruleset) -> list[Tile]:
    """Returns the tiles whose discard costs the least, whatever the hand."""
    costs = {t: _cost(turn, t, ruleset) for t in turn.rack}
    return [t for t in costs if costs[t] == min(costs.values())]


def discard_at_table(turn: TurnAtTable, free: list[Tile], sight: DiscardView, ruleset: Ruleset, budget: Budget) -> Tile:
    """Returns the one of some discards that is of the least use."""
    if len(free) == 1:
        return free[0]
    unseen = _unseen(turn, sight)
    parts = Counter(chain(*_parts_to_keep(turn, ruleset)))
    is_opened = turn.table.opening(turn.seat) is not None

    def use(t: Tile) -> tuple[bool, int, int, int]:
        value = value_on_rack(t, turn.okey) * (-1 if is_opened else 1)
        return turn.rack.count(t) == parts[t], _neighbors(t, turn, unseen) + value, value, t

    ranked = sorted(free, key=use)
    return ranked[0] if is_opened else _with_most_outs(turn, ranked[:_COMPARED], unseen, ruleset, budget)


def _parts_to_keep(turn: TurnAtTable, ruleset: Ruleset) -> Arrangement:
    """Returns the melds with which a bot means to open, or the pairs."""
    if not turn.table.opening(turn.seat):
        missing = missing_to_open(turn.rack, turn.okey, turn.table, ruleset)
        if missing.points > _FAR and missing.pairs in {0, 1}:
            return best_pairs(turn.rack, turn.okey)
    return best_melds(turn.rack, turn.okey, one_high=ruleset.run_one_high).melds


def _cost(turn: TurnAtTable, t: Tile, ruleset: Ruleset) -> int:
    """Returns how bad a discard is whatever the hand: nothing, a penalty, or the gift of an okey."""
    if t == turn.okey:
        return 2
    return penalty_of(turn, t, ruleset) is not None


def _unseen(turn: TurnAtTable, sight: DiscardView) -> Counter[Tile]:
    """Returns the tiles that may still come: neither on the rack nor face up."""
    joker = JOKER if sight.indicator is None else FALSE_JOKER
    return Counter(dict.fromkeys((*NATURALS, joker), _COPIES)) - Counter([*turn.rack, *sight.face_up])


def _neighbors(t: Tile, turn: TurnAtTable, unseen: Counter[Tile]) -> int:
    """Returns how many tiles of the rack, and that may still come, are of use together with a tile; those held more."""
    face = face_of(t, turn.okey) or t
    held = Counter(f for f in (face_of(other, turn.okey) for other in without(turn.rack, (t,))) if f is not None)
    near = [other for other in NATURALS if other == face or _is_near(face, other)]
    return sum(3 * (other in held) + (unseen[other] > 0) for other in near)


def _is_near(face: Tile, other: Tile) -> bool:
    if color_of(face) is color_of(other):
        return abs(value_of(face) - value_of(other)) <= _NEAR
    return value_of(face) == value_of(other)


def _with_most_outs(
    turn: TurnAtTable, ranked: list[Tile], unseen: Counter[Tile], ruleset: Ruleset, budget: Budget
) -> Tile:
    """Returns the discard after which the most unseen tiles open the hand.

    Of equal ones it is that after which the melds are worth the most, as they are and with one more wild tile.
    """
    found, needed = ((-1, -1), ranked[0]), needed_to_open(turn.table, ruleset, is_pairs=False)
    is_quick = turn.rack.count(turn.okey) <= 1  # with two okeys each search takes several times as long
    memo: Memo = {}

    def worth(rack: tuple[Tile, ...]) -> int:
        return best_melds(rack, turn.okey, one_high=ruleset.run_one_high, memo=memo).points

    for t in ranked:
        left = without(turn.rack, (t,))
        points, promise = worth(left), worth(in_order((*left, turn.okey)))
        may_open = is_quick and promise >= needed
        racks = ((in_order((*left, other)), count) for other, count in unseen.items())
        outs = sum(
            count
            for rack, count in racks
            if _opens_with_pairs(turn, rack, ruleset) or (may_open and worth(rack) >= needed)
        )
        found = max(found, ((outs, points + promise), t), key=lambda one: one[0])
        if len(memo) > _STATES or (budget.is_over and budget.is_over()):
            break
    return found[1]


def _opens_with_pairs(turn: TurnAtTable, rack: tuple[Tile, ...], ruleset: Ruleset) -> bool:
    """Returns whether the pairs of a rack open a hand."""
    if not ruleset.opening_pairs:
        return False
    return len(best_pairs(rack, turn.okey)) >= needed_to_open(turn.table, ruleset, is_pairs=True)
