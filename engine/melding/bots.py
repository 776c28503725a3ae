"""Bots: choose an action for a seat that the service plays.

A bot gets a view, so it knows only what its seat may see. The same view gives the same action. Every level plays the
best turn that the solver finds: MASTER of all tiles, weaker levels of what they notice, or in some games the smallest
play (skills.py). MASTER also looks ahead (foresight.py). The rules judge each play before a bot chooses it. A bot that
must play looks again, closer each time, until it notices a play.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Final

from engine.effort import Budget
from engine.melding.actions import BotAction, ClaimError, DrawTile, Knock, LayOnRiver, Pass, PlayTiles
from engine.melding.analysis import GridSituation, Situation, situation_of
from engine.melding.foresight import should_wait
from engine.melding.game import must_draw_first, rules_of, seen_round
from engine.melding.grid.bots import GridPosition, play_on_grid
from engine.melding.initial_meld import suffices
from engine.melding.melds import Meld, MeldKind, NotAMeld, ProposedMeld, read_meld
from engine.melding.play import Play
from engine.melding.round import Choosing, Drawing, Drawn, Open
from engine.melding.rules import judge
from engine.melding.ruleset import (
    InitialMeldSameTurnTablePlay,
    Ruleset,
    TurnPlayAfterDraw,
    TurnVoluntaryDraw,
)
from engine.melding.run_shape import run_shape
from engine.melding.scoring import may_knock, rack_value
from engine.melding.skills import looks_ahead, skill_of
from engine.melding.solver import LegalTurn, Objective, best_turn
from engine.melding.table import Melds, ProposedMelds, count_tiles
from engine.melding.twist.bots import joined_tables, melds_with_special_jokers
from engine.melding.views import MeldingView
from engine.seats import BotLevel, Turn
from engine.skill import ALL, Skill, is_noticed, noticed_tiles
from engine.tiles import (
    COLORS,
    JOKER,
    JOKERS,
    MAX_VALUE,
    SPECIAL_JOKERS,
    Tile,
    color_of,
    in_order,
    tile,
    value_of,
    without,
)
from engine.views import GameView

BUDGET: Final = Budget(nodes=20_000)
"""The default search budget of a turn: about two seconds."""
JOKERS_MAX: Final = 2
"""Most jokers that a bot uses in one meld from its rack."""
FIRST_MELDS: Final = 80
"""How many melds of a rack a bot tries as the first one."""
CANDIDATES: Final = 60
"""How many combinations of melds the rules judge for a bot."""
_NODES: Final = 4_000
"""The most work of MASTER's search, about 100 milliseconds: it looks ahead in addition."""
_CHANGE_NODES: Final = 500
_BEST: Final = (0,)
"""The choice between plays, which a bot may overlook."""
LIKELY_POINTS: Final = 3
"""What a tile on another rack counts at least in a bot's eyes, when it decides on a knock."""


def choose_action(view: GameView, level: BotLevel, budget: Budget = BUDGET) -> BotAction:
    """Returns the action of a bot that has the turn or must vote.

    Args:
        view: The view of its seat.
        level: How well it plays.
        budget: The budget of its search. If it is exceeded, the bot plays the best turn found so far.

    Raises:
        ValueError: The seat has no action to choose (game.bots_to_act).
    """
    _, seat, sight = _seen(view)
    if _has_nothing_to_play(view):
        return action_without_play(view)
    position = _position_of(view, seat, sight)
    if isinstance(position, GridPosition):
        play = play_on_grid(position, view, skill_of(level, rules_of(view)), budget)
        return _with_knock(play, sight, view) if play else action_without_play(view)
    if level is BotLevel.MASTER and not position.must_play:
        nodes, change_nodes = min(budget.nodes, _NODES), min(budget.change_nodes, _CHANGE_NODES)
        budget = replace(budget, nodes=nodes, change_nodes=change_nodes)
    found = _found(position, view, level, budget)
    if found is None:
        return action_without_play(view)
    play = _with_knock(found.action, sight, view)
    waits = not play.knocks and looks_ahead(level, rules_of(view)) and _waits(position, view, found, budget)
    return action_without_play(view) if waits else play


def action_without_search(view: GameView) -> BotAction | None:
    """Returns an action that needs no search, such as a vote or the River choice; None if the bot must look for a play.

    Raises:
        ValueError: As `choose_action`.
    """
    return action_without_play(view) if _has_nothing_to_play(view) else None


def action_without_play(view: GameView) -> BotAction:
    """Returns an action that plays no tiles: a vote, the River choice, a draw, or a pass.

    Raises:
        ValueError: As `choose_action`.
    """
    turn, seat, sight = _seen(view)
    return _vote(seat, sight) if turn.seat != seat else turn_without_play(seat, sight, view)


def turn_without_play(seat: int, sight: MeldingView, view: GameView) -> DrawTile | LayOnRiver | Pass | Knock:
    """Returns an action that plays no tiles, of the seat to move: the River choice, a knock, a draw, or a pass."""
    if sight.step is Choosing:
        return LayOnRiver(seat, _less_useful(sight.tiles_drawn, view.rack))
    may_knock_now = sight.step is not Open or not view.pool_count
    if may_knock_now and _should_knock(view.rack, seat, view):
        return Knock(seat)
    return DrawTile(seat) if sight.step in {Open, Drawing} and view.pool_count else Pass(seat)


def _with_knock(play: PlayTiles, sight: MeldingView, view: GameView) -> PlayTiles:
    """Returns a play, with a knock after it if the tiles that are left are likely to win by it."""
    if not rules_of(view).knock_limit or play.river_index is not None:
        return play
    left = in_order((Counter(view.rack) + count_tiles(sight.table) - count_tiles(play.table)).elements())
    return replace(play, knocks=_should_knock(left, play.seat, view))


def _should_knock(tiles: tuple[Tile, ...], seat: int, view: GameView) -> bool:
    """Returns whether the seat may knock with tiles, and is likely to win by it: others hold some points a tile."""
    ruleset = rules_of(view)
    if not may_knock(tiles, ruleset):
        return False
    others = [player.tile_count for player in view.players if player.seat != seat and not player.resigned]
    return rack_value(tiles, ruleset) < LIKELY_POINTS * min(others)


def _seen(view: GameView) -> tuple[Turn, int, MeldingView]:
    """Returns the turn in progress, the viewer's seat, and the round."""
    sight = seen_round(view)
    if view.turn is None or view.seat is None or sight is None:
        raise ValueError("the view has no turn in progress, or no seat")
    return view.turn, view.seat, sight


def _has_nothing_to_play(view: GameView) -> bool:
    """Returns whether the seat must vote or choose the tile for the River, or must draw before a play."""
    turn, seat, sight = _seen(view)
    draws = must_draw_first(rules_of(view), sight.step, view.pool_count)
    return turn.seat != seat or sight.step is Choosing or draws


def _vote(seat: int, sight: MeldingView) -> ClaimError:
    """Returns a vote for the claim, because the shown play is always illegal."""
    if sight.shown_play is None:
        raise ValueError("it is not the seat's turn, and no play is shown to vote on")
    return ClaimError(seat, sight.shown_play.revision, agrees=True)


def _less_useful(tiles: tuple[Tile, ...], rack: tuple[Tile, ...]) -> Tile:
    """Returns the tile to lay on the River: the one with fewer neighbors, then the higher one."""
    naturals = [t for t in tiles if t not in JOKERS]
    return min(naturals or tiles, key=lambda t: (_neighbors(t, rack), -t))


def _neighbors(t: Tile, rack: tuple[Tile, ...]) -> int:
    """Returns how many faces of a rack are near a tile; 0 for a joker or a tile that the rack already has."""
    if t == JOKER or t in rack:
        return 0
    return sum(_is_near(t, other) for other in set(rack) if other != JOKER)


def _is_near(t: Tile, other: Tile) -> bool:
    if color_of(t) is color_of(other):
        return abs(value_of(t) - value_of(other)) <= 2
    return value_of(t) == value_of(other)


# A position, and plays in it


@dataclass(frozen=True, slots=True)
class _Position:
    """The position of a bot.

    Attributes:
        seat: Its seat.
        situation: Its situation, with the tiles that it may play now.
        rack: All tiles of its rack, including one drawn in this turn.
        drawn: The tile drawn in this turn, if any.
        must_play: Whether it must play if a play exists, by the rules or because only passes are left.
        overlooked: The melds of the table that are not part of the situation, because it overlooks them.
    """

    seat: int
    situation: Situation
    rack: tuple[Tile, ...]
    drawn: Tile | None
    must_play: bool
    overlooked: Melds = ()

    @property
    def table(self) -> ProposedMelds:
        """The table as proposed melds."""
        return tuple(map(_as_proposal, self.situation.table))

    @property
    def may_use_table(self) -> bool:
        """Whether the bot may add to melds on the table, at least after the initial meld of the same turn."""
        same_turn = self.situation.ruleset.initial_meld_same_turn_table_play
        return self.situation.has_melded or same_turn is InitialMeldSameTurnTablePlay.ALLOWED

    def judged(self, table: ProposedMelds, river_index: int | None = None) -> "_Found | None":
        """Returns the play that results in a table, if it is legal."""
        situation = self.situation
        after = (*map(_as_proposal, self.overlooked), *table)
        play = Play(
            (*self.overlooked, *situation.table),
            after,
            self.rack,
            situation.has_melded,
            situation.ruleset,
            river=situation.river,
            river_index=river_index,
            drawn=self.drawn,
            calls_rummikub=True,
        )
        judgement = judge(play)
        if judgement.violations:
            return None
        action = PlayTiles(self.seat, after, river_index, calls_rummikub=not judgement.rack_left)
        return _Found(action, table, without(situation.rack, judgement.tiles_played), len(judgement.tiles_played))


@dataclass(frozen=True, slots=True)
class _Found:
    """A legal play, its table, the playable tiles left, and the number of tiles played."""

    action: PlayTiles
    table: ProposedMelds
    left: tuple[Tile, ...]
    count: int


def _position_of(view: GameView, seat: int, sight: MeldingView) -> "_Position | GridPosition":
    """Returns the position of a seat."""
    has_melded = next(player.has_melded for player in view.players if player.seat == seat)
    drawn = sight.tiles_drawn[0] if sight.step is Drawn else None
    stays = drawn is not None and rules_of(view).turn_play_after_draw is TurnPlayAfterDraw.OTHER_TILES
    tiles = without(view.rack, sight.tiles_drawn) if stays else view.rack
    must_play = _must_play(view, after_draw=drawn is not None, has_melded=has_melded)
    situation = situation_of(sight.table, tiles, has_melded, rules_of(view), sight.river)
    if isinstance(situation, GridSituation):
        return GridPosition(seat, situation, view.rack, must_play)
    return _Position(seat, situation, view.rack, drawn, must_play)


def _must_play(view: GameView, *, after_draw: bool, has_melded: bool) -> bool:
    """Returns whether a bot must play if it can: by the rules, or as only passes are left, which block a round (R59).

    turn_voluntary_draw, initial_meld_voluntary_delay.
    """
    if not view.pool_count and not after_draw:
        return True
    ruleset = rules_of(view)
    delays = ruleset.initial_meld_voluntary_delay or has_melded
    return ruleset.turn_voluntary_draw is TurnVoluntaryDraw.ONLY_IF_NO_PLAY or not delays


def _found(position: _Position, view: GameView, level: BotLevel, budget: Budget) -> _Found | None:
    """Returns the play that a bot of a level finds. One that must play looks until it notices a play."""
    skill = skill_of(level, position.situation.ruleset)
    if skill is None:
        return _solved(position, budget)
    choose = _solved if is_noticed(view, _BEST, skill.best) else _smallest
    found = choose(_as_noticed(position, view, skill), budget)
    while found is None and position.must_play and skill != ALL:
        skill = skill.sharper()
        found = _solved(_as_noticed(position, view, skill), budget)
    return found


def _waits(position: _Position, view: GameView, found: _Found, budget: Budget) -> bool:
    """Returns whether a bot with foresight draws instead of playing what it has found."""
    if position.must_play or not view.pool_count or found.action.calls_rummikub:
        return False
    return should_wait(view, position.situation.table, without(position.situation.rack, found.left), budget)


def _as_noticed(position: _Position, view: GameView, skill: Skill) -> _Position:
    """Returns a position without what a bot overlooks."""
    situation = position.situation
    seen, overlooked = list[Meld](), list[Meld]()
    for meld in situation.table:
        (seen if is_noticed(view, in_order(meld.tiles), skill.table) else overlooked).append(meld)
    noticed = replace(situation, table=tuple(seen), rack=noticed_tiles(view, situation.rack, skill))
    return replace(position, situation=noticed, overlooked=tuple(overlooked))


def _smallest(position: _Position, budget: Budget) -> _Found | None:
    """Returns the smallest play that needs no rearrangement: a tile added, or a meld of the rack; else the solver's."""
    situation = position.situation
    added = _with_one_more(position, position.table, situation.rack) if situation.has_melded else None
    return added or _laid(position, fewest=True) or _solved(position, budget)


def _solved(position: _Position, budget: Budget) -> _Found | None:
    """Returns the solver's best turn.

    If the search exceeded its budget or the rules reject the turn, a play found without a search may replace it.
    """
    best = best_turn(position.situation, Objective.MOST_TILES, budget)
    solved = _as_found(position, best.turn) if best.turn else None
    if best.is_proven and (solved or not best.turn):
        return solved
    simple = _added(position, _laid(position))
    return max((found for found in (solved, simple) if found), key=lambda found: found.count, default=None)


def _as_found(position: _Position, turn: LegalTurn) -> _Found | None:
    """Returns the solver's turn if it is legal, first with as few declared faces as possible, then with all."""
    melds, untouched = turn.table, len(turn.untouched)
    declared = (*map(_as_proposal, melds[:untouched]), *map(_declared, melds[untouched:]))
    tables = (tuple(map(_as_proposal, melds)), declared)
    return next((found for table in tables if (found := position.judged(table, turn.river_index))), None)


def _declared(meld: Meld) -> ProposedMeld:
    """Returns a meld with a declared face for each joker. The jokers of a group get different faces."""
    faces = tuple(faces[min(place, len(faces) - 1)] for place, faces in enumerate(meld.joker_faces))
    return ProposedMeld(meld.tiles, meld.kind, faces)


def _as_proposal(meld: Meld) -> ProposedMeld:
    """Returns a meld with its kind, and with declared faces where each joker can have only one.

    Special jokers have no declared faces: the order of the tiles determines what they stand for.
    """
    is_clear = SPECIAL_JOKERS.isdisjoint(meld.tiles) and all(len(faces) == 1 for faces in meld.joker_faces)
    return ProposedMeld(meld.tiles, meld.kind, tuple(faces[0] for faces in meld.joker_faces) if is_clear else ())


# Melds of the rack


def _laid(position: _Position, *, fewest: bool = False) -> _Found | None:
    """Returns the play of melds from the rack with the most tiles, or with the fewest."""
    situation = position.situation
    layings = _layings(_melds_of(situation.rack, situation.ruleset), situation)
    for laying in (layings[::-1] if fewest else layings)[:CANDIDATES]:
        found = position.judged((*position.table, *map(_as_proposal, laying)))
        if found:
            return found
    return None


def _layings(melds: tuple[Meld, ...], situation: Situation) -> list[tuple[Meld, ...]]:
    """Returns combinations of melds that a rack supplies together, the most tiles first, then the fewest jokers.

    Each of the best melds is tried first, alone and with the melds that fit beside it. Before the initial meld, only
    combinations that are one are returned.
    """
    ranked = sorted(melds, key=_rank)
    firsts = sorted(melds, key=lambda meld: (-meld.points, _rank(meld)))[:FIRST_MELDS]
    greedy = {_beside(first, ranked, situation.rack): None for first in firsts}
    found = [*greedy, *((meld,) for meld in firsts)]
    if not situation.has_melded:
        found = [laying for laying in found if suffices(laying, situation.ruleset)]
    return sorted(found, key=_laying_rank)


def _rank(meld: Meld) -> tuple[int, int, int]:
    """Returns the sort key of melds: fewest jokers, then most tiles, then most points."""
    return _jokers(meld), -len(meld.tiles), -meld.points


def _laying_rank(laying: tuple[Meld, ...]) -> tuple[int, int, int]:
    jokers = sum(map(_jokers, laying))
    return -sum(len(meld.tiles) for meld in laying), jokers, -sum(meld.points for meld in laying)


def _jokers(meld: Meld) -> int:
    return sum(t in JOKERS for t in meld.tiles)


def _beside(first: Meld, melds: list[Meld], rack: tuple[Tile, ...]) -> tuple[Meld, ...]:
    """Returns a meld with others that the rack supplies in addition, chosen greedily in their order."""
    left = Counter(rack) - Counter(first.tiles)
    laying = [first]
    for meld in melds:
        needed = Counter(meld.tiles)
        while needed <= left:
            left -= needed
            laying.append(meld)
    return tuple(laying)


def _melds_of(rack: tuple[Tile, ...], ruleset: Ruleset) -> tuple[Meld, ...]:
    """Returns the melds that a rack supplies."""
    faces = frozenset(rack) - JOKERS
    jokers = min(JOKERS_MAX, rack.count(JOKER))
    special = melds_with_special_jokers(rack, JOKERS_MAX, ruleset)
    proposed = (*_groups(faces, jokers, ruleset), *_runs(faces, jokers, ruleset), *special)
    return tuple(meld for meld in (_read(meld, ruleset) for meld in proposed) if isinstance(meld, Meld))


def _groups(faces: frozenset[Tile], jokers: int, ruleset: Ruleset) -> Iterator[ProposedMeld]:
    for value in range(1, MAX_VALUE + 1):
        same = sorted(t for t in faces if value_of(t) == value)
        for count in range(1, len(same) + 1):
            for tiles in combinations(same, count):
                for spent in range(min(jokers, ruleset.geometry_colors - count) + 1):
                    yield ProposedMeld((*tiles, *(JOKER,) * spent), MeldKind.GROUP)


def _runs(faces: frozenset[Tile], jokers: int, ruleset: Ruleset) -> Iterator[ProposedMeld]:
    for color in COLORS[: ruleset.geometry_colors]:
        for first in range(1, MAX_VALUE + 1):
            last = min(run_shape(ruleset).last, first + MAX_VALUE - 1)
            run = [tile(color, (value - 1) % MAX_VALUE + 1) for value in range(first, last + 1)]
            tiles = tuple(t if t in faces else JOKER for t in run)
            for length in range(3, len(tiles) + 1):
                if tiles[:length].count(JOKER) > jokers:
                    break
                yield ProposedMeld(tiles[:length], MeldKind.RUN)


def _read(meld: ProposedMeld, ruleset: Ruleset) -> Meld | NotAMeld:
    """Returns a meld as the rules read it. Declares the jokers of a group where the rules require it."""
    reading = read_meld(meld, ruleset)
    if isinstance(reading, Meld) or meld.kind is MeldKind.RUN or JOKER not in meld.tiles:
        return reading
    naturals = [t for t in meld.tiles if t != JOKER]
    colors = {color_of(t) for t in naturals}
    missing = [tile(color, value_of(naturals[0])) for color in COLORS[: ruleset.geometry_colors] if color not in colors]
    return read_meld(ProposedMeld(meld.tiles, meld.kind, tuple(missing[: meld.tiles.count(JOKER)])), ruleset)


# Single tiles


def _added(position: _Position, laid: _Found | None) -> _Found | None:
    """Returns a play with single tiles added to melds, one after the other. Jokers are added only to go out."""
    if not position.may_use_table or not (laid or position.situation.has_melded):
        return laid
    found = laid
    table, left = (found.table, found.left) if found else (position.table, position.situation.rack)
    while more := _with_one_more(position, table, left):
        found, table, left = more, more.table, more.left
    return found


def _with_one_more(position: _Position, table: ProposedMelds, left: tuple[Tile, ...]) -> _Found | None:
    """Returns a play with one more tile, if there is one. A mirror or a color change may join two melds."""
    naturals = tuple(dict.fromkeys(t for t in reversed(left) if t not in JOKERS))
    grown = (
        (*table[:place], meld, *table[place + 1 :])
        for t in naturals or dict.fromkeys(left)
        for place, old in enumerate(table)
        for meld in _grown(old, t, position.situation.ruleset)
    )
    tables = chain(grown, joined_tables(table, left))
    return next((found for after in tables if (found := position.judged(after))), None)


def _grown(meld: ProposedMeld, t: Tile, ruleset: Ruleset) -> Iterator[ProposedMeld]:
    """Yields the melds that result from adding a tile to a meld, for a run at either end."""
    is_run = meld.kind is MeldKind.RUN
    ends = ((*meld.tiles, t), (t, *meld.tiles)) if is_run else ((*meld.tiles, t),)
    for tiles in ends:
        grown = ProposedMeld(tiles, meld.kind, () if is_run else meld.declared)
        if isinstance(read_meld(grown, ruleset), Meld):
            yield grown
