"""A seeded random player for whole games.

It finds plays by its own search and shares no rule with the engine, so that an engine which refuses one of its tables
is as much at fault as one which lets a broken table pass.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

from engine.events import Event
from engine.game import Finished, Game, Lobby, Playing, Round, RoundOver
from engine.melds import Meld, MeldKind, ProposedMeld
from engine.ruleset import (
    InitialMeldComparison,
    InitialMeldJoker,
    InitialMeldSets,
    JokersAdjacent,
    JokersDeclaration,
    JokersMaxPerSet,
    MatchEnd,
    Ruleset,
    ScoreBlockedPoints,
    ScoreBlockedWinner,
    TurnDirection,
)
from engine.tiles import JOKER, NATURALS, Tile
from engine.turns import (
    Action,
    Applied,
    DrawTile,
    Join,
    Leave,
    Pass,
    PlayTiles,
    Resign,
    Shuffle,
    StartGame,
    StartNextRound,
    TimeOut,
    apply,
    create,
)
from engine.violations import Refused

Tiles: TypeAlias = tuple[Tile, ...]
Table: TypeAlias = tuple[ProposedMeld, ...]
Check: TypeAlias = Callable[[Game, tuple[Event, ...]], None]

NODES = 25
"""How many melds one search may try before it gives up."""

MAX_CHANGES = 20_000
"""More changes than a random game has: one that reaches it does not end."""


def _is_near(played: Tile, other: Tile) -> bool:
    if JOKER in (played, other):
        return True
    color, value = divmod(played - 1, 13)
    other_color, other_value = divmod(other - 1, 13)
    return value == other_value or (color == other_color and abs(value - other_value) <= 2)


NEAR = {t: frozenset(other for other in (*NATURALS, JOKER) if _is_near(t, other)) for t in (*NATURALS, JOKER)}
"""The tiles that may end up in one meld with a tile, when a little is moved."""


def random_table(
    table: Sequence[Meld], rack: Tiles, has_melded: bool, ruleset: Ruleset, rng: random.Random
) -> Table | None:
    """A legal play of at least one rack tile, as the table that it leaves, or None if none was found."""
    before = tuple(ProposedMeld(meld.tiles, meld.kind) for meld in table)
    if not has_melded:
        melds = _initial_melds(rack, ruleset, rng)
        return _with_kinds(before + melds, rng) if melds else None
    after, left = before, rack
    while left:
        found = _one_play(after, left, ruleset, rng)
        if not found:
            break
        after, left = found
        if rng.random() < 0.2:
            break
    return _with_kinds(after, rng) if len(left) < len(rack) else None


def _with_kinds(table: Table, rng: random.Random) -> Table:
    """The table with some kinds left out, where nothing hangs on them, and in another order now and then."""
    melds = [meld if _needs_kind(meld) or rng.random() < 0.2 else ProposedMeld(meld.tiles) for meld in table]
    if rng.random() < 0.1:
        rng.shuffle(melds)
    return tuple(melds)


def _needs_kind(meld: ProposedMeld) -> bool:
    return len(meld.tiles) - meld.tiles.count(JOKER) <= 1


def _one_play(table: Table, rack: Tiles, ruleset: Ruleset, rng: random.Random) -> tuple[Table, Tiles] | None:
    """A play found by taking up a few melds and a rack tile, and laying them all out anew."""
    for played in rng.sample(rack, min(4, len(rack))):
        taken = _taken_up(table, played, rng)
        search = _Search(ruleset, rng)
        for place in taken:
            search.need(table[place].tiles)
        search.offer(rack)
        search.play(played)
        stay = tuple(meld for place, meld in enumerate(table) if place not in taken)
        if search.solve(played, stay):
            return tuple(search.melds), search.left(rack)
    return None


def _taken_up(table: Table, played: Tile, rng: random.Random) -> set[int]:
    """Places of up to three melds, mostly such as have something to do with a tile."""
    near = [place for place, meld in enumerate(table) if not NEAR[played].isdisjoint(meld.tiles)]
    rng.shuffle(near)
    count = rng.choice((0, 1, 1, 2, 2, 3))
    taken = set(near[:count])
    if table and rng.random() < 0.15:
        taken.add(rng.randrange(len(table)))
    return taken


@dataclass
class _Search:
    """Tiles to be laid out as melds: those needed all, those of the rack as wanted."""

    ruleset: Ruleset
    rng: random.Random
    needed: list[int] = field(default_factory=lambda: [0] * (JOKER + 1))
    spare: list[int] = field(default_factory=lambda: [0] * (JOKER + 1))
    melds: list[ProposedMeld] = field(default_factory=list)
    nodes: int = NODES

    def need(self, tiles: Iterable[Tile]) -> None:
        for t in tiles:
            self.needed[t] += 1

    def offer(self, tiles: Iterable[Tile]) -> None:
        for t in tiles:
            self.spare[t] += 1

    def play(self, t: Tile) -> None:
        """Makes a spare tile a needed one."""
        self.spare[t] -= 1
        self.needed[t] += 1

    def left(self, rack: Tiles) -> Tiles:
        """What is left of the rack after the search."""
        return tuple(t for t in sorted(set(rack)) for _ in range(self.spare[t]))

    def solve(self, first: Tile, stay: Table) -> bool:
        """Lays all out, beginning with a tile; jokers that are left over are added to whatever takes them."""
        if not self._cover(first):
            return False
        self.melds = [*stay, *self.melds]
        return all(self._lay_joker() for _ in range(self.needed[JOKER]))

    def _cover(self, first: Tile) -> bool:
        t = first if first != JOKER and self.needed[first] else self._next_needed()
        if t is None:
            return True
        choices = list(melds_with(t, self._available, self._jokers(), self.ruleset))
        self.rng.shuffle(choices)
        for meld in choices[:6]:
            self.nodes -= 1
            if self.nodes < 0:
                return False
            taken = self._take(meld.tiles)
            self.melds.append(meld)
            if self._cover(first):
                return True
            self.melds.pop()
            self._give_back(taken)
        return False

    def _next_needed(self) -> Tile | None:
        return next((t for t in NATURALS if self.needed[t]), None)

    def _available(self, t: int) -> bool:
        return self.needed[t] + self.spare[t] > 0

    def _jokers(self) -> int:
        """Jokers that a meld may use: a joker of the rack is not always given away."""
        return self.needed[JOKER] + (self.spare[JOKER] if self.rng.random() < 0.3 else 0)

    def _take(self, tiles: Tiles) -> list[tuple[list[int], Tile]]:
        taken = []
        for t in tiles:
            source = self.needed if self.needed[t] else self.spare
            source[t] -= 1
            taken.append((source, t))
        return taken

    def _give_back(self, taken: list[tuple[list[int], Tile]]) -> None:
        for source, t in taken:
            source[t] += 1

    def _lay_joker(self) -> bool:
        """Adds a joker to some meld."""
        places = list(range(len(self.melds)))
        self.rng.shuffle(places)
        for place in places:
            extended = _with_joker(self.melds[place], self.ruleset)
            if extended:
                self.melds[place] = extended
                self.needed[JOKER] -= 1
                return True
        return False


def _with_joker(meld: ProposedMeld, ruleset: Ruleset) -> ProposedMeld | None:
    if meld.kind is MeldKind.GROUP:
        grown = [(*meld.tiles, JOKER)] if len(meld.tiles) < 4 else []
    else:
        first = _first_value(meld.tiles)
        high = [(*meld.tiles, JOKER)] if first + len(meld.tiles) <= 13 else []
        grown = high + ([(JOKER, *meld.tiles)] if first > 1 else [])
    return next((replace(meld, tiles=tiles) for tiles in grown if _jokers_fit(tiles, meld.kind, ruleset)), None)


def _first_value(tiles: Tiles) -> int:
    """What the first place of a run stands for."""
    return next((t - 1) % 13 + 1 - place for place, t in enumerate(tiles) if t != JOKER)


def _jokers_fit(tiles: Tiles, kind: MeldKind | None, ruleset: Ruleset) -> bool:
    """Whether a meld has no more jokers than the ruleset wants, and none side by side where it minds."""
    jokers = tiles.count(JOKER)
    if jokers < 2:
        return True
    minds = kind is MeldKind.RUN and ruleset.jokers_adjacent is JokersAdjacent.FORBIDDEN
    if minds and (JOKER, JOKER) in pairwise(tiles):
        return False
    most = {
        JokersMaxPerSet.UNLIMITED_WITH_ONE_NATURAL: len(tiles) - 1,
        JokersMaxPerSet.ONE: 1,
        JokersMaxPerSet.TWO: 2,
        JokersMaxPerSet.NOT_MORE_THAN_NATURALS: len(tiles) // 2,
    }
    return jokers <= most[ruleset.jokers_max_per_set]


def melds_with(t: Tile, available: Callable[[int], bool], jokers: int, ruleset: Ruleset) -> Iterable[ProposedMeld]:
    """Melds that a natural tile can be part of, from available tiles and so many jokers."""
    for kind, melds in (
        (MeldKind.RUN, _runs_with(t, available, jokers)),
        (MeldKind.GROUP, _groups(t, available, jokers)),
    ):
        for tiles in melds:
            if not jokers or _jokers_fit(tiles, kind, ruleset):
                yield ProposedMeld(tiles, kind)


def _runs_with(t: Tile, available: Callable[[int], bool], jokers: int) -> Iterable[Tiles]:
    below = _neighbors(range(t - 1, t - (t - 1) % 13 - 1, -1), available, jokers)
    above = _neighbors(range(t + 1, t + 13 - (t - 1) % 13), available, jokers)
    for low, low_jokers in _prefixes(below):
        for high, high_jokers in _prefixes(above):
            if len(low) + len(high) >= 2 and low_jokers + high_jokers <= jokers:
                yield (*reversed(low), t, *high)


def _neighbors(faces: range, available: Callable[[int], bool], jokers: int) -> Tiles:
    """Available tiles for faces in order, jokers where there are none, as far as the jokers last."""
    found: list[Tile] = []
    for face in faces:
        if available(face):
            found.append(Tile(face))
        elif jokers:
            found.append(JOKER)
            jokers -= 1
        else:
            break
    return tuple(found)


def _prefixes(tiles: Tiles) -> list[tuple[Tiles, int]]:
    return [(tiles[:length], tiles[:length].count(JOKER)) for length in range(len(tiles) + 1)]


def _groups(t: Tile, available: Callable[[int], bool], jokers: int) -> Iterable[Tiles]:
    others = [Tile(face) for face in range((t - 1) % 13 + 1, JOKER, 13) if face != t and available(face)]
    for chosen in range(1 << len(others)):
        tiles = (t, *(other for bit, other in enumerate(others) if chosen >> bit & 1))
        for added in range(max(0, 3 - len(tiles)), min(jokers, 4 - len(tiles)) + 1):
            yield tiles + (JOKER,) * added


def _initial_melds(rack: Tiles, ruleset: Ruleset, rng: random.Random) -> Table:
    """Melds of rack tiles that make an initial meld; none if none was found."""
    for _ in range(2):
        melds = _random_melds(rack, ruleset, rng)
        if _is_initial_meld(melds, ruleset):
            return melds
    return ()


def _random_melds(rack: Tiles, ruleset: Ruleset, rng: random.Random) -> Table:
    search = _Search(ruleset, rng)
    search.offer(rack)
    jokers = 0 if ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN else rack.count(JOKER)
    most = 1 if ruleset.initial_meld_sets is InitialMeldSets.SINGLE_SET else 5
    melds: list[ProposedMeld] = []
    tiles = [t for t in rack if t != JOKER]
    rng.shuffle(tiles)
    for t in tiles:
        if len(melds) == most:
            break
        if not search.spare[t]:
            continue
        choices = list(melds_with(t, lambda face: search.spare[face] > 0, jokers, ruleset))
        if choices:
            meld = rng.choice(choices)
            for played in meld.tiles:
                search.spare[played] -= 1
            jokers -= meld.tiles.count(JOKER)
            melds.append(meld)
    return tuple(melds)


def _is_initial_meld(melds: Table, ruleset: Ruleset) -> bool:
    if not melds:
        return False
    points = [_points(meld, ruleset) for meld in melds]
    each = ruleset.initial_meld_sets is InitialMeldSets.ONE_SET_REACHES_THRESHOLD
    more = ruleset.initial_meld_comparison is InitialMeldComparison.GREATER_THAN
    return (max(points) if each else sum(points)) >= ruleset.initial_meld_threshold + more


def _points(meld: ProposedMeld, ruleset: Ruleset) -> int:
    naturals = [t for t in meld.tiles if t != JOKER]
    if ruleset.initial_meld_joker is InitialMeldJoker.ZERO:
        return sum((t - 1) % 13 + 1 for t in naturals)
    if meld.kind is MeldKind.GROUP:
        return ((naturals[0] - 1) % 13 + 1) * len(meld.tiles)
    first = _first_value(meld.tiles)
    return sum(range(first, first + len(meld.tiles)))


def random_shuffle(ruleset: Ruleset, rng: random.Random) -> Shuffle:
    """The chance in a round."""
    tiles = [*NATURALS, *NATURALS, *[JOKER] * ruleset.geometry_jokers]
    return Shuffle(tuple(rng.sample(tiles, len(tiles))), tuple(rng.sample(tiles, len(tiles))))


def random_action(game: Game, rng: random.Random) -> Action:
    """What someone may do in a running game: mostly the player to move plays or draws.

    A TimeOut is due only after the deadline: `time_of` says when.
    """
    match game.phase:
        case Playing(round_):
            if rng.random() < 0.0015:
                return Resign(rng.choice(game.active_seats))
            return random_turn(game, round_, rng)
        case RoundOver():
            seat = rng.choice(game.active_seats)
            if rng.random() < 0.03:
                return Resign(seat)
            return StartNextRound(seat, random_shuffle(game.ruleset, rng))
        case Lobby() | Finished():
            raise ValueError("nobody can act before the start or after the end of a game")


def random_turn(game: Game, round_: Round, rng: random.Random) -> Action:
    """What the player to move may do: play, draw, pass, or let the time run out."""
    seat = round_.turn.seat
    if round_.turn.deadline_ms is not None and rng.random() < 0.02:
        return TimeOut()
    rack = round_.rack(seat)
    if rng.random() < 0.95:
        table = random_table(round_.table, rack.tiles, rack.has_melded, game.ruleset, rng)
        if table:
            return PlayTiles(seat, table)
    return DrawTile(seat) if round_.pool else Pass(seat)


def time_of(game: Game, action: Action, now_ms: int) -> int:
    """When an action happens: a time-out right after the deadline, everything else a second later than before."""
    if isinstance(action, TimeOut) and isinstance(game.phase, Playing):
        return (game.phase.round.turn.deadline_ms or 0) + 1
    return now_ms + 1000


def random_ruleset(rng: random.Random) -> Ruleset:
    """A ruleset that the engine can play, the default one half of the time in all but the end of the game."""
    end = rng.choice((*[MatchEnd.SINGLE_ROUND] * 5, *MatchEnd))
    ruleset = Ruleset(
        match_end=end,
        match_rounds=rng.randint(2, 3) if end is MatchEnd.FIXED_ROUNDS else 1,
        match_target_score=rng.randint(1, 60) if end is MatchEnd.TARGET_SCORE else 200,
    )
    if rng.random() < 0.5:
        return ruleset
    return replace(
        ruleset,
        geometry_jokers=rng.choice((0, 2, 4, 4)),
        turn_direction=rng.choice(tuple(TurnDirection)),
        jokers_max_per_set=rng.choice(tuple(JokersMaxPerSet)),
        jokers_adjacent=rng.choice(tuple(JokersAdjacent)),
        jokers_declaration=rng.choice((JokersDeclaration.POSITIONAL, JokersDeclaration.EXPLICIT_WHEN_AMBIGUOUS)),
        initial_meld_threshold=rng.choice((0, 20, 30, 30, 50)),
        initial_meld_comparison=rng.choice(tuple(InitialMeldComparison)),
        initial_meld_sets=rng.choice(tuple(InitialMeldSets)),
        initial_meld_joker=rng.choice(tuple(InitialMeldJoker)),
        turn_time_limit_seconds=rng.choice((0, 30, 120)),
        score_blocked_winner=rng.choice(tuple(ScoreBlockedWinner)),
        score_blocked_points=rng.choice((ScoreBlockedPoints.DIFFERENCE, ScoreBlockedPoints.NORMAL)),
        score_joker_penalty=rng.choice((0, 25, 30)),
    )


@dataclass(frozen=True)
class Change:
    """One change of a random game: what was done (None: its creation) and when, and what came of it."""

    action: Action | None
    now_ms: int
    applied: Applied


def random_changes(seed: int, players: int, ruleset: Ruleset) -> Iterator[Change]:
    """A whole game by chance, change by change."""
    rng = random.Random(seed)
    applied, now_ms = create(ruleset), 1_000_000
    yield Change(None, now_ms, applied)
    lobby = iter(_lobby(players, ruleset, rng))
    while not isinstance(applied.game.phase, Finished):
        action = next(lobby, None) or random_action(applied.game, rng)
        now_ms = time_of(applied.game, action, now_ms)
        applied = _apply(applied.game, action, now_ms)
        yield Change(action, now_ms, applied)


def play_random_game(
    seed: int, players: int, ruleset: Ruleset, check: Check = lambda _game, _events: None
) -> tuple[tuple[Event, ...], ...]:
    """A whole game by chance: every change's events, each told to `check` with the game after it."""
    history = []
    for change in random_changes(seed, players, ruleset):
        check(change.applied.game, change.applied.events)
        history.append(change.applied.events)
        if len(history) > MAX_CHANGES:
            raise AssertionError(f"the game has not ended after {MAX_CHANGES} changes")
    return tuple(history)


def _lobby(players: int, ruleset: Ruleset, rng: random.Random) -> tuple[Action, ...]:
    """Players join, one thinks better of it now and then, and the game starts."""
    names = ("Ada", "Ben", "Cleo", "Dan")[:players]
    joins: tuple[Action, ...] = tuple(Join(name) for name in names)
    if rng.random() < 0.1:
        seat = rng.randint(1, players)
        joins += (Leave(seat), Join("Eve"))
    return (*joins, StartGame(rng.randint(1, players), random_shuffle(ruleset, rng)))


def _apply(game: Game, action: Action, now_ms: int) -> Applied:
    applied = apply(game, action, now_ms)
    if isinstance(applied, Refused):
        raise AssertionError(f"{action} was refused: {applied.violations}")  # noqa: TRY004 - a broken rule, not a type
    return applied
