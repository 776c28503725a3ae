"""Bots: what a seat does that the service plays.

A bot is asked with a view, so it knows what its seat may see and nothing else; asked the same again, it does the same.
EASY lays melds of the rack. MEDIUM adds single tiles to melds besides. HARD takes the best turn there is (solver). Each
play is judged by the rules before it is chosen. Where the rules leave no choice but to play, every bot asks the solver.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from engine.analysis import Situation
from engine.game import BotLevel, Choosing, Drawn
from engine.initial_meld import suffices
from engine.melds import Meld, MeldKind, NotAMeld, ProposedMeld, read_meld
from engine.play import Play
from engine.rules import judge
from engine.ruleset import (
    InitialMeldSameTurnTablePlay,
    PoolEmptyPass,
    PoolEmptyStuckTest,
    Ruleset,
    RunWrap,
    TurnPlayAfterDraw,
    TurnVoluntaryDraw,
)
from engine.solver import Budget, LegalTurn, Objective, best_turn
from engine.tiles import COLORS, JOKER, MAX_VALUE, Tile, color_of, tile, value_of, without
from engine.turns import ClaimError, DrawTile, LayOnRiver, Pass, PlayTiles
from engine.views import GameView, TurnView

BotAction = PlayTiles | DrawTile | LayOnRiver | Pass | ClaimError

BUDGET: Final = Budget(nodes=20_000)
"""What a bot spends on a turn, if not told otherwise: about two seconds."""
JOKERS: Final = 2
"""Most jokers that a bot lays in one meld of its rack."""
FIRSTS: Final = 80
"""How many melds of a rack a bot tries to begin with."""
TRIES: Final = 60
"""How many ways of laying its rack a bot has judged."""

_HIGHEST: Final = {RunWrap.NONE: MAX_VALUE, RunWrap.ONE_HIGH: MAX_VALUE + 1, RunWrap.CYCLIC: 2 * MAX_VALUE - 1}
"""Up to where runs go, counting on after 13 (run_wrap)."""

Table = tuple[ProposedMeld, ...]


def choose(view: GameView, level: BotLevel, budget: Budget = BUDGET) -> BotAction:
    """What the seat of a view does, at whose turn it is or whose vote is asked for.

    Args:
        view: What the seat sees.
        level: How well it plays.
        budget: What it spends on asking the solver; if that is too little, it does the best that it has found.

    Raises:
        ValueError: A caller's fault: nothing is asked of the seat (game.bots_to_act).
    """
    turn, seat = _asked(view)
    found = None if _has_nothing_to_play(turn, seat) else _found(_Position.of(view, turn, seat), level, budget)
    return found.action if found else wait(view)


def at_once(view: GameView) -> BotAction | None:
    """What the seat of a view does that needs no search: its vote, or the tile that it lays on the River.

    Raises:
        ValueError: As `choose`.
    """
    return wait(view) if _has_nothing_to_play(*_asked(view)) else None


def wait(view: GameView) -> BotAction:
    """What the seat of a view does that plays nothing: it votes, lays a tile on the River, draws or passes.

    Raises:
        ValueError: As `choose`.
    """
    turn, seat = _asked(view)
    if turn.turn.seat != seat:
        return _vote(turn, seat)
    if turn.step is Choosing:
        return LayOnRiver(seat, _less_useful(turn.tiles_drawn, view.rack))
    return DrawTile(seat) if turn.step is not Drawn and view.pool_count else Pass(seat)


def _asked(view: GameView) -> tuple[TurnView, int]:
    """The turn in progress, and the seat that sees it."""
    if view.turn is None or view.seat is None:
        raise ValueError("no turn is being taken that the seat can see")
    return view.turn, view.seat


def _has_nothing_to_play(turn: TurnView, seat: int) -> bool:
    """Whether the seat is asked for its vote, or for the tile that it lays on the River."""
    return turn.turn.seat != seat or turn.step is Choosing


def _vote(turn: TurnView, seat: int) -> ClaimError:
    """What is shown is illegal, so a bot agrees that it is."""
    if turn.shown_play is None:
        raise ValueError("it is not the seat's turn, and there is nothing to vote on")
    return ClaimError(seat, turn.shown_play.revision, agrees=True)


def _less_useful(tiles: tuple[Tile, ...], rack: tuple[Tile, ...]) -> Tile:
    """Which of two tiles a player would rather lay on the River: the one with fewer neighbors, then the higher one."""
    naturals = [t for t in tiles if t != JOKER]
    return min(naturals or tiles, key=lambda t: (_neighbors(t, rack), -t))


def _neighbors(t: Tile, rack: tuple[Tile, ...]) -> int:
    """How many faces of a rack can lie next to a tile, or next but one; none if the tile is a joker or there twice."""
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
    """What a bot plays from.

    Attributes:
        seat: Its seat.
        situation: The table, the tiles that it may play now, the River and the rules.
        rack: All tiles of its rack, one drawn in this turn among them.
        drawn: That tile, if there is one.
        must_play: Whether it may do nothing else if a play exists, or nothing else would ever end the round.
    """

    seat: int
    situation: Situation
    rack: tuple[Tile, ...]
    drawn: Tile | None
    must_play: bool

    @staticmethod
    def of(view: GameView, turn: TurnView, seat: int) -> "_Position":
        """The position that a seat sees."""
        has_melded = next(player.has_melded for player in view.players if player.seat == seat)
        drawn = turn.tiles_drawn[0] if turn.step is Drawn else None
        stays = drawn is not None and view.ruleset.turn_play_after_draw is TurnPlayAfterDraw.OTHER_TILES
        tiles = without(view.rack, turn.tiles_drawn) if stays else view.rack
        situation = Situation(view.table, tiles, has_melded, view.ruleset, view.river)
        return _Position(seat, situation, view.rack, drawn, drawn is None and _must_play(view, has_melded=has_melded))

    @property
    def table(self) -> Table:
        """The table as it lies, as a player sends it."""
        return tuple(map(_as_sent, self.situation.table))

    @property
    def may_use_table(self) -> bool:
        """Whether melds of the table may be added to, if only after the initial meld of the same turn."""
        same_turn = self.situation.ruleset.initial_meld_same_turn_table_play
        return self.situation.has_melded or same_turn is InitialMeldSameTurnTablePlay.ALLOWED

    def judged(self, table: Table, river_index: int | None = None) -> "_Found | None":
        """The play that leaves a table, if it is legal."""
        situation = self.situation
        play = Play(
            situation.table,
            table,
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
        action = PlayTiles(self.seat, table, river_index, calls_rummikub=not judgement.rack_left)
        return _Found(action, without(situation.rack, judgement.tiles_played), len(judgement.tiles_played))


@dataclass(frozen=True, slots=True)
class _Found:
    """A legal play, the tiles that could be played and were not, and how many were."""

    action: PlayTiles
    left: tuple[Tile, ...]
    count: int


def _must_play(view: GameView, *, has_melded: bool) -> bool:
    """R59, turn_voluntary_draw, initial_meld_voluntary_delay, pool_empty_pass; and where passes never end a round."""
    ruleset = view.ruleset
    if view.pool_count:
        delays = ruleset.initial_meld_voluntary_delay or has_melded
        return ruleset.turn_voluntary_draw is TurnVoluntaryDraw.ONLY_IF_NO_PLAY or not delays
    ends_by_passes = ruleset.pool_empty_stuck_test is not PoolEmptyStuckTest.EXACT
    return ruleset.pool_empty_pass is PoolEmptyPass.ONLY_IF_NO_PLAY or not ends_by_passes


def _found(position: _Position, level: BotLevel, budget: Budget) -> _Found | None:
    """The play that a bot of a level finds."""
    if level is BotLevel.HARD:
        return _solved(position, budget)
    laid = _laid(position)
    found = _added(position, laid) if level is BotLevel.MEDIUM else laid
    return found or (_solved(position, budget) if position.must_play else None)


def _solved(position: _Position, budget: Budget) -> _Found | None:
    """The best turn; where the budget ended the search, or the rules refuse it, what is found without a search too."""
    best = best_turn(position.situation, Objective.MOST_TILES, budget)
    solved = _as_found(position, best.turn) if best.turn else None
    if best.is_proven and (solved or not best.turn):
        return solved
    simple = _added(position, _laid(position))
    return max((found for found in (solved, simple) if found), key=lambda found: found.count, default=None)


def _as_found(position: _Position, turn: LegalTurn) -> _Found | None:
    """The solver's turn, if it is legal: with nothing declared that need not be, or with all of it."""
    melds, untouched = turn.table, len(turn.untouched)
    declared = (*map(_as_sent, melds[:untouched]), *map(_declared, melds[untouched:]))
    tables = (tuple(map(_as_sent, melds)), declared)
    return next((found for table in tables if (found := position.judged(table, turn.river_index))), None)


def _declared(meld: Meld) -> ProposedMeld:
    """A meld with a face declared for each joker; the jokers of a group may have several to share."""
    faces = tuple(faces[min(place, len(faces) - 1)] for place, faces in enumerate(meld.joker_faces))
    return ProposedMeld(meld.tiles, meld.kind, faces)


def _as_sent(meld: Meld) -> ProposedMeld:
    """A meld as a player sends it: with its kind, and with what its jokers stand for where that is one face each."""
    is_clear = all(len(faces) == 1 for faces in meld.joker_faces)
    return ProposedMeld(meld.tiles, meld.kind, tuple(faces[0] for faces in meld.joker_faces) if is_clear else ())


# Melds of the rack


def _laid(position: _Position) -> _Found | None:
    """A play of melds of the rack alone, of most tiles."""
    situation = position.situation
    for laying in _layings(_melds_of(situation.rack, situation.ruleset), situation)[:TRIES]:
        found = position.judged((*position.table, *map(_as_sent, laying)))
        if found:
            return found
    return None


def _layings(melds: tuple[Meld, ...], situation: Situation) -> list[tuple[Meld, ...]]:
    """Melds that a rack has at once, most tiles first, then fewest jokers; before the initial meld such as suffice.

    Each of the best melds is a beginning, alone and with what fits beside it.
    """
    ranked = sorted(melds, key=_rank)
    firsts = sorted(melds, key=lambda meld: (-meld.points, _rank(meld)))[:FIRSTS]
    greedy = {_beside(first, ranked, situation.rack): None for first in firsts}
    found = [*greedy, *((meld,) for meld in firsts)]
    if not situation.has_melded:
        found = [laying for laying in found if suffices(laying, situation.ruleset)]
    return sorted(found, key=_laying_rank)


def _rank(meld: Meld) -> tuple[int, int, int]:
    """The order in which melds are laid: without jokers first, then by tiles, then by points."""
    return meld.tiles.count(JOKER), -len(meld.tiles), -meld.points


def _laying_rank(laying: tuple[Meld, ...]) -> tuple[int, int, int]:
    jokers = sum(meld.tiles.count(JOKER) for meld in laying)
    return -sum(len(meld.tiles) for meld in laying), jokers, -sum(meld.points for meld in laying)


def _beside(first: Meld, melds: list[Meld], rack: tuple[Tile, ...]) -> tuple[Meld, ...]:
    """A meld with those that fit beside it, the first of them first."""
    left = Counter(rack) - Counter(first.tiles)
    laying = [first]
    for meld in melds:
        needed = Counter(meld.tiles)
        while needed <= left:
            left -= needed
            laying.append(meld)
    return tuple(laying)


def _melds_of(rack: tuple[Tile, ...], ruleset: Ruleset) -> tuple[Meld, ...]:
    """The melds that a rack has."""
    faces = frozenset(rack) - {JOKER}
    jokers = min(JOKERS, rack.count(JOKER))
    proposed = (*_groups(faces, jokers, ruleset), *_runs(faces, jokers, ruleset))
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
            last = min(_HIGHEST[ruleset.run_wrap], first + MAX_VALUE - 1)
            run = [tile(color, (value - 1) % MAX_VALUE + 1) for value in range(first, last + 1)]
            tiles = tuple(t if t in faces else JOKER for t in run)
            for length in range(3, len(tiles) + 1):
                if tiles[:length].count(JOKER) > jokers:
                    break
                yield ProposedMeld(tiles[:length], MeldKind.RUN)


def _read(meld: ProposedMeld, ruleset: Ruleset) -> Meld | NotAMeld:
    """A meld of the rack as the rules read it; a group's jokers are declared where they have to be."""
    reading = read_meld(meld, ruleset)
    if isinstance(reading, Meld) or meld.kind is MeldKind.RUN or JOKER not in meld.tiles:
        return reading
    naturals = [t for t in meld.tiles if t != JOKER]
    colors = {color_of(t) for t in naturals}
    missing = [tile(color, value_of(naturals[0])) for color in COLORS[: ruleset.geometry_colors] if color not in colors]
    return read_meld(ProposedMeld(meld.tiles, meld.kind, tuple(missing[: meld.tiles.count(JOKER)])), ruleset)


# Single tiles


def _added(position: _Position, laid: _Found | None) -> _Found | None:
    """A play with single tiles added to melds, as many as fit one after the other; jokers only to go out."""
    if not position.may_use_table or not (laid or position.situation.has_melded):
        return laid
    found = laid
    table, left = (found.action.table, found.left) if found else (position.table, position.situation.rack)
    while more := _with_one_more(position, table, left):
        found, table, left = more, more.action.table, more.left
    return found


def _with_one_more(position: _Position, table: Table, left: tuple[Tile, ...]) -> _Found | None:
    """A play with one more tile."""
    naturals = tuple(dict.fromkeys(t for t in reversed(left) if t != JOKER))
    for t in naturals or left[:1]:
        for place, meld in enumerate(table):
            for grown in _grown(meld, t, position.situation.ruleset):
                found = position.judged((*table[:place], grown, *table[place + 1 :]))
                if found:
                    return found
    return None


def _grown(meld: ProposedMeld, t: Tile, ruleset: Ruleset) -> Iterator[ProposedMeld]:
    """A meld with a tile more, where that is a meld: a run at either end. Its kind says all that its jokers are."""
    is_run = meld.kind is MeldKind.RUN
    ends = ((*meld.tiles, t), (t, *meld.tiles)) if is_run else ((*meld.tiles, t),)
    for tiles in ends:
        grown = ProposedMeld(tiles, meld.kind, () if is_run else meld.declared)
        if isinstance(read_meld(grown, ruleset), Meld):
            yield grown
