"""Starts a round: the start draw, the deal (R5 to R9), and the right to a new deal."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from engine.deal import ImpossibleDealError, Shuffle, by_chance
from engine.game import Game, Playing, RoundResult
from engine.melding.events import RoundStarted, StartDraw
from engine.melding.game import round_of, rules_of
from engine.melding.position import Position, position_problems
from engine.melding.round import MeldingRound
from engine.melding.ruleset import (
    DealOrder,
    DealThreePairsReshuffle,
    MatchWinner,
    Ruleset,
    StartDrawDetermines,
    StartDrawJoker,
    StartDrawTie,
    StartDrawTile,
    StartPlayer,
    StartPlayerNextRounds,
    TurnDirection,
)
from engine.melding.table import tiles_on
from engine.seats import Rack
from engine.tiles import JOKER, JOKERS, MAX_VALUE, Tile, in_order, value_of, without

PAIRS_FOR_REDEAL: Final = 3


def deal_round(game: Game, shuffle: Shuffle | RoundStarted) -> RoundStarted:
    """Returns the start draw and deal of the next round, or a new deal of the round in progress (R5 to R9).

    Args:
        game: The game.
        shuffle: The shuffles, or the deal itself if it was made before (record.py).

    Raises:
        ValueError: The shuffle is not of the tile set for the players who are dealt in.
        ImpossibleDealError: The rules cannot have made the deal.
    """
    ruleset = rules_of(game)
    tiles = ruleset.tiles(len(game.active_seats))
    if isinstance(shuffle, RoundStarted):
        if game.position_seats and not game.results:
            _check_start(game, shuffle)
        else:
            _check_deal(game, shuffle, tiles)
        return shuffle
    if in_order(shuffle.start_draw) != tiles or in_order(shuffle.deal) != tiles:
        raise ValueError("a shuffle must contain exactly the tiles of the tile set")
    lots, by_lot = reversed(shuffle.start_draw), by_chance(game.active_seats, shuffle.start_draw)
    if ruleset.deal_order is DealOrder.DEAL_FIRST:
        racks, pool = _deal(game, shuffle.deal, (), lots)
        order, draws = _start(game, by_lot, _restricted(shuffle.start_draw, pool, lots))
    else:
        order, draws = _start(game, by_lot, shuffle.start_draw)
        racks, pool = _deal(game, shuffle.deal, draws, lots)
    return RoundStarted(len(game.results) + 1, draws, order, racks, pool, seed=shuffle.seed)


def start_of(position: Position, ruleset: Ruleset, shuffled: tuple[Tile, ...]) -> RoundStarted:
    """Returns the start of a round with a position that has no problems.

    Args:
        position: The position.
        ruleset: The rules.
        shuffled: The tile set in random order, for a pool that is not given.
    """
    pool = position.pool
    if pool is None:
        laid = Counter((*tiles_on(position.table), *chain.from_iterable(rack.tiles for rack in position.racks)))
        pool = tuple(_others(shuffled, laid))
    order = turn_order(position.seats, position.turn_seat, ruleset.turn_direction)
    return RoundStarted(1, (), order, position.racks, pool, position.table)


def _others(shuffled: tuple[Tile, ...], laid: Counter[Tile]) -> Iterator[Tile]:
    """Yields the tiles that are left, in their order, when some are taken out."""
    for t in shuffled:
        if laid[t]:
            laid[t] -= 1
        else:
            yield t


def may_demand_redeal(round_: MeldingRound, seat: int, ruleset: Ruleset) -> bool:
    """Returns whether a player who was dealt three pairs may demand a new deal (deal_three_pairs_reshuffle)."""
    tiles = round_.rack(seat).tiles
    nothing_done = not tiles_on(round_.table) and seat not in round_.passed and len(tiles) == ruleset.deal_hand_size
    pairs = sum(count // 2 for count in Counter(tiles).values())
    on_request = ruleset.deal_three_pairs_reshuffle is DealThreePairsReshuffle.ON_REQUEST
    return on_request and nothing_done and pairs >= PAIRS_FOR_REDEAL


def _check_start(game: Game, start: RoundStarted) -> None:
    """Raises ImpossibleDealError if no position of the game's seats can begin like this."""
    ruleset, seats = rules_of(game), game.active_seats
    table = start.table
    if table is None or tuple(rack.seat for rack in start.racks) != seats or not start.order:
        raise ImpossibleDealError(f"expected a position of the seats {seats}")
    position = Position(table, start.racks, start.pool, start.order[0])
    for problem in position_problems(position, ruleset):
        raise ImpossibleDealError(f"{problem.part}: {problem.text}")
    if start != start_of(position, ruleset, ()):
        raise ImpossibleDealError("a position has no start draw, and the turn order of the rules")


def _check_deal(game: Game, dealt: RoundStarted, tiles: tuple[Tile, ...]) -> None:
    """Raises ImpossibleDealError if the rules cannot have dealt a round of these tiles like this."""
    ruleset, seats = rules_of(game), game.active_seats
    held = tuple(chain.from_iterable(rack.tiles for rack in dealt.racks))
    kept = {draw.seat: draw.tile for draw in dealt.draws} if ruleset.start_draw_tile is StartDrawTile.KEEP else {}
    to_draw = dealt.pool if ruleset.deal_order is DealOrder.DEAL_FIRST else tiles
    drawn = Counter(draw.tile for draw in dealt.draws)
    for holds, problem in (
        (dealt.number == len(game.results) + 1, f"round {dealt.number} does not follow round {len(game.results)}"),
        (dealt.table is None, "only the first round of a game begins with a position"),
        (tuple(rack.seat for rack in dealt.racks) == seats, f"expected racks of the seats {seats}"),
        (in_order((*held, *dealt.pool)) == tiles, "racks and pool are not the tile set"),
        (all(len(rack.tiles) == ruleset.deal_hand_size for rack in dealt.racks), "a rack has another size"),
        (not any(rack.has_melded for rack in dealt.racks), "a player has melded before the first turn"),
        (all(rack.tiles.count(JOKER) >= ruleset.deal_fixed_jokers for rack in dealt.racks), "a fixed joker is missing"),
        (all(kept.get(rack.seat, rack.tiles[0]) in rack.tiles for rack in dealt.racks), "a start tile was not kept"),
        (tuple(sorted(dealt.order)) == seats, f"the turn order is not of the seats {seats}"),
        (not drawn - Counter(to_draw), "the start draw has a tile that was not there to draw"),
    ):
        if not holds:
            raise ImpossibleDealError(problem)
    if _start(game, dealt.order, _recorded_draws(dealt, len(to_draw))) != (dealt.order, dealt.draws):
        raise ImpossibleDealError("the start draw, or the rules on who starts, lead to another turn order")


def _recorded_draws(dealt: RoundStarted, tiles: int) -> Iterator[Tile]:
    """Yields the tiles of a start draw that was made before. Raises ImpossibleDealError where one is missing."""
    yield from (draw.tile for draw in dealt.draws)
    if len(dealt.draws) < tiles:
        raise ImpossibleDealError("the start draw is incomplete")


# The starter


def _start(
    game: Game, by_lot: tuple[int, ...], to_draw: Iterable[Tile]
) -> tuple[tuple[int, ...], tuple[StartDraw, ...]]:
    """Returns the turn order, and the draws that determined it; `by_lot` are the seats in random order."""
    starter = _starter(game, by_lot)
    if starter is None:
        return draw_for_start(game.active_seats, to_draw, rules_of(game), by_lot)
    return turn_order(game.active_seats, starter, rules_of(game).turn_direction), ()


def _starter(game: Game, by_lot: tuple[int, ...]) -> int | None:
    """Returns the starter, or None if the start draw determines it.

    If that seat has resigned, the next one starts.
    """
    ruleset = rules_of(game)
    if game.results and ruleset.start_player_next_rounds is not StartPlayerNextRounds.HIGHEST_DRAW:
        return _starter_after(game, round_of(game), game.results[-1])
    match ruleset.start_player:
        case StartPlayer.HIGHEST_DRAW:
            return None
        case StartPlayer.RANDOM:
            return by_lot[0]
        case StartPlayer.FIXED_SEAT:
            return game.active_seats[0]


def _starter_after(game: Game, last: MeldingRound, result: RoundResult) -> int:
    """Returns the starter of a later round (start_player_next_rounds). A redeal does not change the starter."""
    if isinstance(game.phase, Playing):
        return last.starter
    match rules_of(game).start_player_next_rounds:
        case StartPlayerNextRounds.PREVIOUS_WINNER:
            return _earliest(game, last, result.winners)
        case StartPlayerNextRounds.PREVIOUS_LOSER:
            return _earliest(game, last, _losers_of_most(result, rules_of(game)))
        case _:
            return last.order[1]


def _earliest(game: Game, last: MeldingRound, seats: tuple[int, ...]) -> int:
    """Returns the first of some seats in the last turn order, among those who have not resigned if there are any."""
    in_turn = [seat for seat in last.order if seat in seats]
    return next((seat for seat in in_turn if seat in game.active_seats), in_turn[0])


def _losers_of_most(result: RoundResult, ruleset: Ruleset) -> tuple[int, ...]:
    """Returns the seats that lost the most points. If all players have won, all are candidates."""
    penalties = ruleset.match_winner is MatchWinner.LOWEST_TOTAL
    losers = [seat for seat in result.seats if seat.seat not in result.winners] or result.seats
    lost = {seat.seat: seat.points if penalties else -seat.points for seat in losers}
    return tuple(seat for seat in lost if lost[seat] == max(lost.values()))


def turn_order(seats: tuple[int, ...], first: int, direction: TurnDirection) -> tuple[int, ...]:
    """Returns seats in turn order, starting with `first` or, if it is not among them, the next one after it (R10)."""
    if direction is TurnDirection.CLOCKWISE:
        return tuple(sorted(seats, key=lambda seat: (seat < first, seat)))
    return tuple(sorted(seats, key=lambda seat: (seat > first, -seat)))


# The start draw


def draw_for_start(
    seats: tuple[int, ...], tiles: Iterable[Tile], ruleset: Ruleset, by_lot: tuple[int, ...] = ()
) -> tuple[tuple[int, ...], tuple[StartDraw, ...]]:
    """Returns the turn order by the start draw: the highest tile plays first (R7, R8, options start_draw).

    Args:
        seats: The players, in ascending order.
        tiles: The tiles in the order of drawing.
        ruleset: The rules.
        by_lot: The order of players that are still tied when the tiles run out; by default that of their seats.

    Returns:
        The turn order, and all draws in order.
    """
    draws: list[StartDraw] = []
    ranked = _ranked(seats, _Draw(iter(tiles), draws, ruleset, by_lot or seats))
    if ruleset.start_draw_determines is StartDrawDetermines.STARTER_ONLY:
        ranked = turn_order(seats, ranked[0], ruleset.turn_direction)
    return ranked, tuple(draws)


@dataclass(frozen=True, slots=True)
class _Draw:
    """A start draw in progress: tiles left, draws so far, rules, and the order if the tiles run out."""

    tiles: Iterator[Tile]
    draws: list[StartDraw]
    ruleset: Ruleset
    by_lot: tuple[int, ...]


def _ranked(seats: tuple[int, ...], draw: _Draw) -> tuple[int, ...]:
    """Returns seats by their draws, the highest first; if only the starter matters, at least the first one."""
    if len(seats) == 1:
        return seats
    drawn = {seat: _drawn(seat, draw) for seat in seats}
    values = sorted({value for value in drawn.values() if value is not None}, reverse=True)
    if None in drawn.values():
        return tuple(seat for seat in draw.by_lot if seat in seats)
    groups = [tuple(seat for seat in seats if drawn[seat] == value) for value in values]
    if draw.ruleset.start_draw_determines is StartDrawDetermines.STARTER_ONLY:
        groups = groups[:1]
    match draw.ruleset.start_draw_tie:
        case StartDrawTie.REDRAW_TIED:
            return tuple(chain.from_iterable(_ranked(group, draw) for group in groups))
        case StartDrawTie.REDRAW_ALL if any(len(group) > 1 for group in groups):
            return _ranked(seats, draw)
        case StartDrawTie.REDRAW_ALL | StartDrawTie.SEAT_ORDER:
            return tuple(chain.from_iterable(groups))


def _drawn(seat: int, draw: _Draw) -> int | None:
    """Returns the value of the first tile that counts for a seat (R8), or None if the tiles run out."""
    for tile in draw.tiles:
        draw.draws.append(StartDraw(seat, tile))
        if tile not in JOKERS:
            return value_of(tile)
        if draw.ruleset.start_draw_joker is not StartDrawJoker.REDRAW:
            return 0 if draw.ruleset.start_draw_joker is StartDrawJoker.LOWEST else MAX_VALUE + 1
    return None


# The deal


def _deal(
    game: Game, shuffled: tuple[Tile, ...], draws: tuple[StartDraw, ...], lots: Iterator[Tile]
) -> tuple[tuple[Rack, ...], tuple[Tile, ...]]:
    """Returns racks and pool (R5, R6). Kept start tiles and fixed jokers are part of the hand."""
    ruleset = rules_of(game)
    held = dict.fromkeys(game.active_seats, (JOKER,) * ruleset.deal_fixed_jokers)
    if ruleset.start_draw_tile is StartDrawTile.KEEP:
        held |= {draw.seat: (draw.tile,) for draw in draws}
    rest = _restricted(shuffled, without(shuffled, chain.from_iterable(held.values())), lots)
    racks = tuple(
        Rack(seat, in_order((*tiles, *islice(rest, ruleset.deal_hand_size - len(tiles)))))
        for seat, tiles in held.items()
    )
    return racks, tuple(rest)


def _restricted(shuffled: tuple[Tile, ...], tiles: tuple[Tile, ...], lots: Iterator[Tile]) -> Iterator[Tile]:
    """Yields some tiles of a shuffle in its order, choosing copies of a face at random.

    Always taking the first copies, or the last, would bias these tiles toward the front, or the back.
    """
    wanted, left = Counter(tiles), Counter(shuffled)
    for tile in shuffled:
        if wanted[tile] == left[tile] or (wanted[tile] and _lot(left[tile], lots) < wanted[tile]):
            wanted[tile] -= 1
            yield tile
        left[tile] -= 1


def _lot(count: int, lots: Iterator[Tile]) -> int:
    """Returns a uniformly random number below `count`: the index of the highest of `count` tiles, redrawn on a tie.

    The tiles come from the end of the start draw's shuffle, which the start draw does not reach. Returns 0 if they run
    out.
    """
    while True:
        drawn = tuple(islice(lots, count))
        if len(drawn) < count:
            return 0
        if drawn.count(max(drawn)) == 1:
            return drawn.index(max(drawn))
