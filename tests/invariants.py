"""What holds in every state of every game, as functions that raise AssertionError where it does not.

`Invariants` is told every change of one game and asks them all. Nothing here uses the engine's own reading of melds or
of turn order: what it checks, it works out anew.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from engine.events import (
    Event,
    GameEnded,
    RoundEnded,
    RoundStarted,
    TileDrawn,
    TilesPlayed,
    TurnPassed,
    TurnStarted,
    TurnTimedOut,
    replay,
)
from engine.game import Finished, Game, Playing, Rack, Round, RoundEnd, RoundResult
from engine.melds import Meld, MeldKind, ProposedMeld
from engine.ruleset import Ruleset, TurnDirection
from engine.tiles import JOKER, NATURALS, Tile
from engine.turns import Action, DrawTile, Join, Leave, Pass, PlayTiles, StartGame, StartNextRound, apply
from engine.views import see, see_event
from engine.violations import Refused
from random_play import play_random_game, random_ruleset, random_shuffle

HIDDEN_EVERY = 9
"""Every so many changes the views are compared with those of a game whose hidden tiles lie otherwise."""

REFUSALS_EVERY = 7
"""Every so many changes what must be refused is tried."""


class Invariants:
    """Checks one game, change by change: call it with the game after each and with the change's events."""

    def __init__(self, *, thorough: bool = False) -> None:
        self.thorough = thorough
        self.before: Game | None = None
        self.history: list[tuple[Event, ...]] = []

    def __call__(self, game: Game, events: tuple[Event, ...]) -> None:
        before, self.before = self.before, game
        self.history.append(events)
        assert events, "a change has events"
        assert game.revision == len(self.history), f"revision {game.revision} after {len(self.history)} changes"
        if self.thorough or isinstance(game.phase, Finished):
            assert replay(self.history) == game, "the history replayed is not the game"
        check_results(game, events)
        round_ = game.round
        if round_ is None:
            return
        check_tiles(round_, game.ruleset)
        check_table(round_.table)
        if before is not None and before.round is not None and not isinstance(events[0], RoundStarted):
            check_change(before.round, round_, events)
        check_turn(before, game, events)
        if self.thorough or game.revision % HIDDEN_EVERY == 0:
            check_views(game, events)
        if self.thorough or game.revision % REFUSALS_EVERY == 0:
            check_refusals(game)


def play_checked_game(seed: int, *, thorough: bool = False) -> tuple[tuple[Event, ...], ...]:
    """A random game of 2 to 4 players with all invariants checked; the seed decides the ruleset too."""
    try:
        return play_random_game(seed, 2 + seed % 3, random_ruleset(random.Random(seed)), Invariants(thorough=thorough))
    except Exception as error:
        error.add_note(f"in the random game of seed {seed}")
        raise


def check_tiles(round_: Round, ruleset: Ruleset) -> None:
    """Racks, table and pool are the tile set: every face twice, and the jokers (R1)."""
    tiles = Counter(round_.pool)
    for rack in round_.racks:
        tiles.update(rack.tiles)
        assert list(rack.tiles) == sorted(rack.tiles), f"the rack of seat {rack.seat} is out of order"
    for meld in round_.table:
        tiles.update(meld.tiles)
    expected = Counter(dict.fromkeys(NATURALS, 2))
    expected[JOKER] = ruleset.geometry_jokers
    assert tiles == expected, f"tiles lost: {expected - tiles}, tiles gained: {tiles - expected}"


def check_table(table: Sequence[Meld]) -> None:
    """Every meld is one, of its kind and with its points (R18)."""
    for meld in table:
        points = kinds(meld.tiles).get(meld.kind)
        assert points is not None, f"{meld} is no {meld.kind.name}"
        assert points == meld.points, f"{meld} has {points} points"
        assert len(meld.joker_faces) == meld.tiles.count(JOKER), f"{meld} has jokers without faces"


@cache
def kinds(tiles: tuple[int, ...]) -> Mapping[MeldKind, int]:
    """What tiles form, and its points, found by trying every run and every group of their number (R11 to R20)."""
    found: dict[MeldKind, int] = {}
    count = len(tiles)
    if count < 3 or all(t == JOKER for t in tiles):
        return found
    for color in range(4):
        for first in range(1, 15 - count):
            if all(t in (JOKER, color * 13 + first + place) for place, t in enumerate(tiles)):
                found[MeldKind.RUN] = sum(range(first, first + count))
    naturals = {t for t in tiles if t != JOKER}
    for value in range(1, 14):
        group = {value, value + 13, value + 26, value + 39}
        if count <= 4 and naturals <= group and len(naturals) == sum(t != JOKER for t in tiles):
            found[MeldKind.GROUP] = value * count
    return found


def check_change(before: Round, after: Round, events: tuple[Event, ...]) -> None:
    """Each action does to racks, pool and table what it may, and nothing else."""
    racks = {rack.seat: rack for rack in before.racks}
    pool, table = before.pool, before.table
    match events[0]:
        case TilesPlayed(seat, tiles, table):
            check_play(before, racks[seat], tiles, table)
            left = tuple(sorted((Counter(racks[seat].tiles) - Counter(tiles)).elements()))
            racks[seat] = Rack(seat, left, has_melded=True)
        case TileDrawn(seat, tile):
            assert tile == pool[0], "another tile than the next was drawn"
            racks[seat] = _drawn(racks[seat], (tile,))
            pool = pool[1:]
        case TurnTimedOut(seat, tiles):
            assert tiles == pool[:3], "the penalty is not the next three tiles"
            racks[seat] = _drawn(racks[seat], tiles)
            pool = pool[3:]
        case TurnPassed():
            assert not pool, "someone passed though the pool has tiles"
        case _:
            pass
    assert after.table == table, "the table changed otherwise than played"
    assert after.pool == pool, "the pool changed otherwise than drawn"
    assert after.racks == tuple(racks.values()), "a rack changed otherwise than by the action"


def _drawn(rack: Rack, tiles: tuple[Tile, ...]) -> Rack:
    return replace(rack, tiles=tuple(sorted(rack.tiles + tiles)))


def check_play(before: Round, rack: Rack, tiles: tuple[Tile, ...], table: tuple[Meld, ...]) -> None:
    """A play takes one or more tiles off the rack and none off the table (R38, R45); the first leaves the table be."""
    old = Counter(t for meld in before.table for t in meld.tiles)
    new = Counter(t for meld in table for t in meld.tiles)
    assert tiles, "a play has no tile"
    assert not old - new, f"tiles left the table: {old - new}"
    assert new - old == Counter(tiles), "the tiles played are not those that are new on the table"
    assert Counter(tiles) <= Counter(rack.tiles), "tiles were played that the rack has not"
    if not rack.has_melded:
        gone = Counter(m.tiles for m in before.table) - Counter(m.tiles for m in table)
        assert not gone, f"the initial meld changed the table: {gone}"


def check_turn(before: Game | None, game: Game, events: tuple[Event, ...]) -> None:
    """The turn goes to the next player who has not resigned (R10), and ends when its time is up (R54)."""
    if not isinstance(game.phase, Playing):
        return
    turn = game.phase.round.turn
    assert turn.seat in game.active_seats, f"seat {turn.seat} has the turn and has resigned"
    started = [event for event in events if isinstance(event, TurnStarted)]
    assert len(started) <= 1, "several turns began at once"
    assert (turn.deadline_ms is None) == (game.ruleset.turn_time_limit_seconds == 0), "deadline without limit, or none"
    if before is not None and isinstance(before.phase, Playing) and started:
        step = 1 if game.ruleset.turn_direction is TurnDirection.CLOCKWISE else -1
        seats = range(1, len(game.players) + 1)
        seat = before.phase.round.turn.seat
        while True:
            seat = (seat - 1 + step) % len(seats) + 1
            if seat in game.active_seats:
                break
        assert turn.seat == seat, f"seat {turn.seat} has the turn instead of seat {seat}"


def check_results(game: Game, events: tuple[Event, ...]) -> None:
    """Points of a round sum to zero (R60, R63), totals are sums of points (R64), and winners have won."""
    for event in events:
        if isinstance(event, RoundEnded):
            check_result(event.result)
        if isinstance(event, GameEnded):
            assert event.winners, "a game ended without a winner"
            assert set(event.winners) <= set(game.active_seats), "someone won who had resigned"
    totals: Counter[int] = Counter()
    for result in game.results:
        for seat in result.seats:
            totals[seat.seat] += seat.points
    for player in game.players:
        assert player.total_points == totals[player.seat], f"seat {player.seat} has not the sum of its points"


def check_result(result: RoundResult) -> None:
    assert sum(seat.points for seat in result.seats) == 0, f"the points do not sum to zero: {result}"
    assert result.winners, "a round ended without a winner"
    empty = {seat.seat for seat in result.seats if seat.tile_count == 0}
    if result.end is RoundEnd.WENT_OUT:
        assert empty == set(result.winners), "the winner is not the one who went out"
    else:
        assert not empty, "someone went out and the round ended otherwise"
    for seat in result.seats:
        assert seat.points >= 0 or seat.seat not in result.winners, "a winner lost points"
        assert seat.points <= 0 or seat.seat in result.winners, "a loser won points"


def check_views(game: Game, events: tuple[Event, ...]) -> None:
    """What a seat sees does not depend on what it must not see: other racks and the pool (R4)."""
    rng = random.Random(game.revision)
    for seat in (None, *(player.seat for player in game.players)):
        other = with_other_hidden_tiles(game, seat, rng)
        assert see(other, seat) == see(game, seat), f"seat {seat} sees hidden tiles"
        for event in events:
            disguised = with_other_tiles(event, seat, rng)
            assert see_event(disguised, seat) == see_event(event, seat), f"seat {seat} sees hidden tiles of {event}"


def with_other_hidden_tiles(game: Game, seat: int | None, rng: random.Random) -> Game:
    """A game that looks the same to a seat: the tiles of the pool and of the other racks change places."""
    if not isinstance(game.phase, Playing):
        return game
    round_ = game.phase.round
    racks, pool = shuffle_hidden(round_.racks, round_.pool, seat, rng)
    return replace(game, phase=Playing(replace(round_, racks=racks, pool=pool)))


def shuffle_hidden(
    racks: tuple[Rack, ...], pool: tuple[Tile, ...], seat: int | None, rng: random.Random
) -> tuple[tuple[Rack, ...], tuple[Tile, ...]]:
    hidden = [*pool, *(t for rack in racks if rack.seat != seat for t in rack.tiles)]
    rng.shuffle(hidden)
    shuffled = []
    for rack in racks:
        if rack.seat == seat:
            shuffled.append(rack)
            continue
        shuffled.append(replace(rack, tiles=tuple(sorted(hidden[: len(rack.tiles)]))))
        del hidden[: len(rack.tiles)]
    return tuple(shuffled), tuple(hidden)


def with_other_tiles(event: Event, seat: int | None, rng: random.Random) -> Event:
    """An event that looks the same to a seat."""
    match event:
        case RoundStarted(racks=racks, pool=pool):
            racks, pool = shuffle_hidden(racks, pool, seat, rng)
            return replace(event, racks=racks, pool=pool)
        case TileDrawn(drawer, tile) if drawer != seat:
            return replace(event, tile=Tile(tile % JOKER + 1))
        case TurnTimedOut(drawer, tiles) if drawer != seat:
            return replace(event, tiles=tuple(Tile(tile % JOKER + 1) for tile in tiles))
        case _:
            return event


def check_refusals(game: Game) -> None:
    """What must not be done is refused, with reasons, and changes nothing."""
    was = hash(game)
    for action in illegal_actions(game):
        answer = apply(game, action, 0)
        assert isinstance(answer, Refused), f"{action} was accepted"
        assert answer.violations, f"{action} was refused without a reason"
    assert hash(game) == was, "a refused action changed the game"


def illegal_actions(game: Game) -> Iterator[Action]:
    """Actions that are illegal in a running game or after its end, whatever the position."""
    round_ = game.round
    assert round_ is not None, "the game is in the lobby"
    shuffle = random_shuffle(game.ruleset, random.Random(0))
    table = tuple(ProposedMeld(meld.tiles, meld.kind) for meld in round_.table)
    yield Join("Zoe")
    yield Leave(1)
    yield StartGame(1, shuffle)
    if not isinstance(game.phase, Playing):
        yield from (DrawTile(1), Pass(1), PlayTiles(1, table))
        return
    yield StartNextRound(round_.turn.seat, shuffle)
    for player in game.players:
        if player.seat != round_.turn.seat:
            yield from (DrawTile(player.seat), Pass(player.seat), PlayTiles(player.seat, table))
    seat = round_.turn.seat
    yield Pass(seat) if round_.pool else DrawTile(seat)
    plays = tuple(illegal_plays(round_.rack(seat), round_.pool, table))
    yield plays[game.revision % len(plays)]


def illegal_plays(rack: Rack, pool: tuple[Tile, ...], table: tuple[ProposedMeld, ...]) -> Iterator[PlayTiles]:
    """Plays that no player can make: nothing played, tiles missing, loose, doubled, or of the pool."""
    seat = rack.seat
    yield PlayTiles(seat, table)
    yield PlayTiles(seat, (*table, ProposedMeld(rack.tiles[:1])))
    yield PlayTiles(seat, (*table, ProposedMeld(rack.tiles[:1] * 3)))
    if table:
        yield PlayTiles(seat, (*table[1:], ProposedMeld(table[0].tiles[1:] + rack.tiles[:1])))
        yield PlayTiles(seat, (*table, table[0], ProposedMeld(rack.tiles[:1])))
    foreign = [t for t in pool if t not in rack.tiles and t != JOKER]
    if foreign:
        color = (foreign[0] - 1) // 13 * 13
        first = min((foreign[0] - 1) % 13 + 1, 11)
        yield PlayTiles(seat, (*table, ProposedMeld(tuple(Tile(color + first + place) for place in range(3)))))
