import random
from collections import Counter
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.deal import Shuffle
from engine.game import (
    Game,
    Lobby,
    Phase,
    Playing,
    RoundEnd,
    RoundOver,
    RoundResult,
    SeatResult,
)
from engine.melding.deal import deal_round, draw_for_start, may_demand_redeal
from engine.melding.events import RoundStarted, StartDraw
from engine.melding.melds import Meld, MeldKind
from engine.melding.presets import PRESETS
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import (
    SABRA,
    DealOrder,
    DealThreePairsReshuffle,
    MatchWinner,
    Preset,
    Ruleset,
    StartDrawDetermines,
    StartDrawJoker,
    StartDrawTie,
    StartDrawTile,
    StartPlayer,
    StartPlayerNextRounds,
    TurnDirection,
    problems,
)
from engine.notation import format_tile, parse_rack, parse_tile, parse_tiles
from engine.room_settings import DEFAULT_SETTINGS
from engine.seats import Player, Rack, Turn
from engine.tiles import JOKER, Tile, naturals, tile_set, without

REDRAW_ALL = replace(SABRA, start_draw_tie=StartDrawTie.REDRAW_ALL)
SEAT_ORDER = replace(SABRA, start_draw_tie=StartDrawTie.SEAT_ORDER)
LOWEST = replace(SABRA, start_draw_joker=StartDrawJoker.LOWEST)
HIGHEST = replace(SABRA, start_draw_joker=StartDrawJoker.HIGHEST)
FULL = replace(SABRA, start_draw_determines=StartDrawDetermines.FULL_ORDER)
COUNTERCLOCKWISE = replace(SABRA, turn_direction=TurnDirection.COUNTERCLOCKWISE)
DEAL_FIRST = replace(SABRA, deal_order=DealOrder.DEAL_FIRST)
KEEP = replace(SABRA, start_draw_tile=StartDrawTile.KEEP)
RANDOM = replace(SABRA, start_player=StartPlayer.RANDOM)
FIXED_SEAT = replace(SABRA, start_player=StartPlayer.FIXED_SEAT)
SIX = PRESETS[Preset.SIX_PLAYERS]
ON_REQUEST = replace(SABRA, deal_three_pairs_reshuffle=DealThreePairsReshuffle.ON_REQUEST)


def full_set(ruleset: Ruleset, players: int) -> tuple[Tile, ...]:
    return ruleset.tiles(players)


def shuffled(ruleset: Ruleset, players: int, seed: int, first: str = "", last: str = "") -> tuple[Tile, ...]:
    """Returns a shuffle that starts and ends with some tiles."""
    front, back = parse_tiles(first), parse_tiles(last)
    rest = list(without(full_set(ruleset, players), (*front, *back)))
    random.Random(seed).shuffle(rest)
    return (*front, *rest, *back)


def some_shuffle(ruleset: Ruleset, players: int, seed: int = 1, first: str = "", last: str = "") -> Shuffle:
    """Returns a shuffle whose start draw starts and ends with some tiles."""
    return Shuffle(shuffled(ruleset, players, seed, first, last), shuffled(ruleset, players, seed + 1000))


def a_game(ruleset: Ruleset, *seats: int, resigned: tuple[int, ...] = (), phase: Phase | None = None) -> Game:
    players = tuple(Player(seat, f"p{seat}", resigned=seat in resigned) for seat in seats)
    return Game(ruleset, DEFAULT_SETTINGS, 1, players, phase or Lobby())


# The start draw

START_DRAWS = {
    "the highest": (SABRA, "R5 B9 K7", "231", "1R5 2B9 3K7"),
    "of three, those who tie": (SABRA, "R9 B5 K9 R1 K2", "312", "1R9 2B5 3K9 1R1 3K2"),
    "of three, all": (REDRAW_ALL, "R9 B5 K9 R1 K2 K1", "231", "1R9 2B5 3K9 1R1 2K2 3K1"),
    "of three, nobody": (SEAT_ORDER, "R9 B5 K9 R1 K2", "123", "1R9 2B5 3K9"),
    "a tie that does not matter": (REDRAW_ALL, "R5 B5 K9", "312", "1R5 2B5 3K9"),
    "a joker is drawn again": (SABRA, "J R5 B9 K7", "231", "1J 1R5 2B9 3K7"),
    "a joker is the lowest": (LOWEST, "J R1 B1 K5 K4", "231", "1J 2R1 3B1 2K5 3K4"),
    "a joker is the highest": (HIGHEST, "R13 J B13", "231", "1R13 2J 3B13"),
    "two jokers tie": (HIGHEST, "J J B13 R1 R2", "231", "1J 2J 3B13 1R1 2R2"),
    "counter-clockwise": (COUNTERCLOCKWISE, "R5 B9 K7", "213", "1R5 2B9 3K7"),
    "the order of all": (FULL, "R5 B9 K7", "231", "1R5 2B9 3K7"),
    "the order of all, not around the table": (FULL, "R7 B9 K5", "213", "1R7 2B9 3K5"),
    "around the table": (SABRA, "R7 B9 K5", "231", "1R7 2B9 3K5"),
    "the order of all, a tie behind": (FULL, "R5 B5 K9 R1 R2", "321", "1R5 2B5 3K9 1R1 2R2"),
    "the order of all, a tie in front": (FULL, "R5 B9 K9 R1 R2", "321", "1R5 2B9 3K9 2R1 3R2"),
    "the order of all, seats": (
        replace(SEAT_ORDER, start_draw_determines=StartDrawDetermines.FULL_ORDER),
        "R5 B5 K9",
        "312",
        "1R5 2B5 3K9",
    ),
    "the order of all, all again": (
        replace(REDRAW_ALL, start_draw_determines=StartDrawDetermines.FULL_ORDER),
        "R5 B5 K9 R1 R2 R3",
        "321",
        "1R5 2B5 3K9 1R1 2R2 3R3",
    ),
    "two pairs tie": (FULL, "R5 B9 K9 O5 R1 R2 R4 R3", "3214", "1R5 2B9 3K9 4O5 2R1 3R2 1R4 4R3"),
    "the tiles run out": (SABRA, "R9 B9", "123", "1R9 2B9"),
    "the tiles run out on two": (SABRA, "R1 B9 K9 R5", "231", "1R1 2B9 3K9 2R5"),
    "the tiles run out on all": (REDRAW_ALL, "R1 B9 K9 R5", "123", "1R1 2B9 3K9 1R5"),
    "the tiles run out behind": (FULL, "R5 B5 K9 R1", "312", "1R5 2B5 3K9 1R1"),
    "nothing but jokers": (SABRA, "J J", "123", "1J 1J"),
}


@pytest.mark.parametrize("name", START_DRAWS)
def test_the_start_draw(name: str) -> None:
    ruleset, tiles, order, draws = START_DRAWS[name]
    seen, drawn = draw_for_start(tuple(range(1, len(order) + 1)), parse_tiles(tiles), ruleset)
    assert "".join(map(str, seen)) == order
    assert " ".join(f"{draw.seat}{format_tile(draw.tile)}" for draw in drawn) == draws


def drawn_by_hand(seats: tuple[int, ...], tiles: tuple[Tile, ...]) -> tuple[int, list[tuple[int, int]]]:
    """Returns the result of R7 and R8 by hand: a pile, and players who drop out."""
    pile: list[int] = list(tiles)
    shown: list[tuple[int, int]] = []
    left = list(seats)
    while len(left) > 1:
        best, leaders = 0, list[int]()
        for seat in left:
            while pile:
                shown.append((seat, pile.pop(0)))
                if shown[-1][1] != 53:
                    break
            if not shown or shown[-1][0] != seat or shown[-1][1] == 53:
                return left[0], shown
            value = (shown[-1][1] - 1) % 13 + 1
            if value > best:
                best, leaders = value, []
            if value == best:
                leaders.append(seat)
        left = leaders
    return left[0], shown


SMALL_PILES = st.lists(st.sampled_from((*naturals(1)[:3], JOKER)), min_size=0, max_size=30).map(tuple)
SEATS = st.sets(st.integers(1, 6), min_size=2).map(lambda seats: tuple(sorted(seats)))


@given(SEATS, SMALL_PILES)
def test_the_start_draw_is_that_by_hand(seats: tuple[int, ...], tiles: tuple[Tile, ...]) -> None:
    order, draws = draw_for_start(seats, tiles, SABRA)
    assert (order[0], [(draw.seat, draw.tile) for draw in draws]) == drawn_by_hand(seats, tiles)


DRAWS = st.builds(
    Ruleset,
    start_draw_joker=st.sampled_from(StartDrawJoker),
    start_draw_tie=st.sampled_from(StartDrawTie),
    start_draw_determines=st.sampled_from(StartDrawDetermines),
)


def worth(tile: Tile, ruleset: Ruleset) -> int | None:
    counts = {StartDrawJoker.REDRAW: None, StartDrawJoker.LOWEST: 0, StartDrawJoker.HIGHEST: 14}
    return counts[ruleset.start_draw_joker] if tile == JOKER else (tile - 1) % 13 + 1


@given(SEATS, SMALL_PILES, DRAWS)
def test_the_draws_explain_the_turn_order(seats: tuple[int, ...], tiles: tuple[Tile, ...], ruleset: Ruleset) -> None:
    order, draws = draw_for_start(seats, tiles, ruleset)
    assert sorted(order) == sorted(seats)
    assert tuple(draw.tile for draw in draws) == tiles[: len(draws)]
    if len(draws) == len(tiles):
        return  # the tiles may have run out
    values: dict[int, list[int]] = {seat: [] for seat in seats}
    for draw in draws:
        value = worth(draw.tile, ruleset)
        values[draw.seat] += [] if value is None else [value]
    if ruleset.start_draw_tie is StartDrawTie.REDRAW_ALL:
        assert len({len(drawn) for drawn in values.values()}) == 1
        values = {seat: drawn[-1:] for seat, drawn in values.items()}
    ranked = tuple(sorted(seats, key=lambda seat: values[seat], reverse=True))
    if ruleset.start_draw_determines is StartDrawDetermines.FULL_ORDER:
        assert order == ranked
    else:
        assert order[0] == ranked[0]
        assert order == seats[seats.index(order[0]) :] + seats[: seats.index(order[0])]
    if ruleset.start_draw_tie is StartDrawTie.SEAT_ORDER:
        assert all(len(drawn) == 1 for drawn in values.values())
    else:
        alike = [seat for seat in seats if values[seat] == values[order[0]]]
        assert alike == [order[0]]


# The starter


def test_the_start_is_drawn_for_from_its_own_shuffle() -> None:
    dealt = deal_round(a_game(SABRA, 1, 2), some_shuffle(SABRA, 2, first="R1 R3"))
    assert dealt.draws == (StartDraw(1, parse_tile("R1")), StartDraw(2, parse_tile("R3")))
    assert dealt.order == (2, 1)


def test_a_fixed_seat_is_the_lowest_and_draws_nothing() -> None:
    dealt = deal_round(a_game(FIXED_SEAT, 2, 3, 5, resigned=(2,)), some_shuffle(FIXED_SEAT, 2, first="R1 R3"))
    assert (dealt.order, dealt.draws) == ((3, 5), ())


def swapped(tiles: tuple[Tile, ...], first: Tile, second: Tile) -> tuple[Tile, ...]:
    other = {first: second, second: first}
    return tuple(other.get(tile, tile) for tile in tiles)


@pytest.mark.unmeasured
@given(SEATS, st.integers(0, 10_000))
def test_a_starter_by_chance_is_each_seat_as_often_as_any_other(seats: tuple[int, ...], seed: int) -> None:
    """Exchanging two faces in a shuffle exchanges two seats, so each seat starts equally often."""
    ruleset = replace(RANDOM, players_max=6, geometry_copies=3)
    shuffle = some_shuffle(ruleset, len(seats), seed)
    dealt = deal_round(a_game(ruleset, *seats), shuffle)
    place = seats.index(dealt.order[0])
    assert dealt.draws == ()
    for other, seat in enumerate(seats):
        exchanged = swapped(shuffle.start_draw, naturals(1)[place], naturals(1)[other])
        assert deal_round(a_game(ruleset, *seats), replace(shuffle, start_draw=exchanged)).order[0] == seat


def test_a_starter_by_chance_is_every_seat_as_often_in_all_orders_of_the_faces_that_count() -> None:
    rest = without(full_set(RANDOM, 3), parse_tiles("R1 R1 R2 R2 R3 R3"))
    starters = Counter(
        deal_round(a_game(RANDOM, 1, 2, 3), Shuffle((*rest, *order), full_set(RANDOM, 3))).order[0]
        for order in permutations(parse_tiles("R1 R1 R2 R2 R3 R3"))
    )
    assert starters == {1: 240, 2: 240, 3: 240}


def next_rounds(rule: StartPlayerNextRounds) -> Ruleset:
    return replace(SABRA, start_player_next_rounds=rule)


ROTATE = next_rounds(StartPlayerNextRounds.ROTATE)
ROTATE_BACK = replace(ROTATE, turn_direction=TurnDirection.COUNTERCLOCKWISE)
WINNER = next_rounds(StartPlayerNextRounds.PREVIOUS_WINNER)
LOSER = next_rounds(StartPlayerNextRounds.PREVIOUS_LOSER)
AGAIN = next_rounds(StartPlayerNextRounds.HIGHEST_DRAW)

NEXT_ROUNDS = {
    # ruleset, last round's order, winners and points by seat, resigned seats, next round's order
    "drawn again": (AGAIN, "234 1", (3,), (-5, 9, -2, -2), (), "1234"),
    "fixed again": (replace(FIXED_SEAT, turn_direction=TurnDirection.COUNTERCLOCKWISE), "2143", (3,), (), (), "1432"),
    "the next": (ROTATE, "2341", (3,), (), (), "3412"),
    "the next, counter-clockwise": (ROTATE_BACK, "2143", (3,), (), (), "1432"),
    "the next who is there": (ROTATE, "2341", (3,), (), (3,), "412"),
    "the next who is there, though the starter is not": (ROTATE, "2341", (3,), (), (2,), "341"),
    "the next who is there, counter-clockwise": (
        ROTATE_BACK, "2143", (3,), (), (1,), "432"),
    "the winner": (WINNER, "2341", (4,), (), (), "4123"),
    "the first of the winners": (WINNER, "3412", (1, 4), (), (), "4123"),
    "the first of the winners who is there": (WINNER, "3412", (1, 4), (), (4,), "123"),
    "after the winner": (WINNER, "3412", (3,), (), (3,), "412"),
    "after the first of the winners": (WINNER, "3412", (3, 1), (), (1, 3), "42"),
    "the loser": (LOSER, "2341", (4,), (-2, -7, -3, 12), (), "2341"),
    "the first of the losers": (LOSER, "3412", (4,), (-7, -7, -3, 17), (), "1234"),
    "the first of the losers who is there": (LOSER, "3412", (4,), (-7, -7, -3, 17), (1,), "234"),
    "after the loser": (LOSER, "3412", (4,), (-2, -7, -3, 17), (2,), "341"),
    "the loser of a round that brought nobody anything": (LOSER, "3412", (3, 4), (0, 0, 0, 0), (), "1234"),
    "the first of all where all have won": (LOSER, "3412", (1, 2, 3, 4), (0, 0, 0, 0), (), "3412"),
    "the loser of penalties": (
        replace(LOSER, match_winner=MatchWinner.LOWEST_TOTAL), "2341", (4,), (2, 3, 7, -12), (), "3412"),
}  # fmt: skip


def after_a_round(
    ruleset: Ruleset, order: str, winners: tuple[int, ...], points: tuple[int, ...], resigned: tuple[int, ...]
) -> Game:
    seats = tuple(int(seat) for seat in order.replace(" ", ""))
    last = Round(1, seats, (), (), (), Turn(seats[0], None))
    results = tuple(SeatResult(seat, 0, 0, won) for seat, won in zip(sorted(seats), points or (0,) * 4, strict=True))
    game = a_game(ruleset, *sorted(seats), resigned=resigned, phase=RoundOver(last))
    return replace(game, results=(RoundResult(1, RoundEnd.WENT_OUT, winners, results),))


@pytest.mark.parametrize("name", NEXT_ROUNDS)
def test_the_starter_of_the_next_round(name: str) -> None:
    ruleset, *last, order = NEXT_ROUNDS[name]
    game = after_a_round(ruleset, *last)  # type: ignore[arg-type] # a row of the table
    dealt = deal_round(game, some_shuffle(ruleset, len(game.active_seats), first="R9 R3 R2 R1"))
    assert "".join(map(str, dealt.order)) == order
    assert dealt.number == 2
    assert bool(dealt.draws) == (ruleset is AGAIN)
    assert tuple(rack.seat for rack in dealt.racks) == game.active_seats


@pytest.mark.parametrize("ruleset", [AGAIN, ROTATE, WINNER, LOSER])
def test_the_first_round_has_a_start_draw_under_every_rule_for_later_rounds(ruleset: Ruleset) -> None:
    dealt = deal_round(a_game(ruleset, 1, 2), some_shuffle(ruleset, 2, first="R1 R3"))
    assert (dealt.number, dealt.order, len(dealt.draws)) == (1, (2, 1), 2)


def dealt_anew(ruleset: Ruleset, *resigned: int) -> Game:
    """Returns a second round in progress, started by seat 3, after a first one started by seat 2 and won by seat 1."""
    game = after_a_round(ruleset, "2341", (1,), (), resigned)
    return replace(game, phase=Playing(Round(2, (3, 4, 1, 2), (), (), (), Turn(3, None))))


@pytest.mark.parametrize("ruleset", [ROTATE, WINNER, LOSER])
def test_a_round_dealt_anew_keeps_its_number_and_its_starter(ruleset: Ruleset) -> None:
    dealt = deal_round(dealt_anew(ruleset), some_shuffle(ruleset, 4))
    assert (dealt.number, dealt.order) == (2, (3, 4, 1, 2))
    resigned = deal_round(dealt_anew(ruleset, 3), some_shuffle(ruleset, 3))
    assert (resigned.number, resigned.order) == (2, (4, 1, 2))


def test_a_round_dealt_anew_is_drawn_for_again() -> None:
    dealt = deal_round(dealt_anew(AGAIN), some_shuffle(AGAIN, 4, first="R1 R3 R2 K1"))
    assert (dealt.number, dealt.order) == (2, (2, 3, 4, 1))


def test_the_first_round_dealt_anew_is_drawn_for_again() -> None:
    playing = a_game(ROTATE, 1, 2, phase=Playing(Round(1, (1, 2), (), (), (), Turn(1, None))))
    dealt = deal_round(playing, some_shuffle(ROTATE, 2, first="R1 R3"))
    assert (dealt.number, dealt.order, len(dealt.draws)) == (1, (2, 1), 2)


# The deal


@pytest.mark.parametrize("wrong", [(), full_set(SABRA, 2)[1:], (*full_set(SABRA, 2)[1:], JOKER), tile_set(4, 3, 2)])
def test_a_shuffle_of_other_tiles_is_the_callers_fault(wrong: tuple[Tile, ...]) -> None:
    right = some_shuffle(SABRA, 2)
    for shuffle in (replace(right, start_draw=wrong), replace(right, deal=wrong)):
        with pytest.raises(ValueError, match="a shuffle must contain exactly the tiles of the tile set"):
            deal_round(a_game(SABRA, 1, 2), shuffle)


def test_the_number_of_jokers_follows_the_players_dealt_in() -> None:
    ruleset = replace(SABRA, geometry_jokers=0, geometry_jokers_per_player=1)
    game = a_game(ruleset, 1, 2, 3, resigned=(2,))
    dealt = deal_round(game, some_shuffle(ruleset, 2))
    assert all_tiles(dealt).count(JOKER) == 2
    with pytest.raises(ValueError, match="tile set"):
        deal_round(game, some_shuffle(ruleset, 3))


def all_tiles(dealt: RoundStarted) -> tuple[Tile, ...]:
    return tuple(sorted((*dealt.pool, *(tile for rack in dealt.racks for tile in rack.tiles))))


@pytest.mark.parametrize("seats", [(1, 2), (1, 2, 3, 4), (2, 4)])
def test_everyone_is_dealt_fourteen_tiles_in_a_row_and_the_rest_is_the_pool(seats: tuple[int, ...]) -> None:
    shuffle = some_shuffle(SABRA, len(seats))
    dealt = deal_round(a_game(SABRA, *seats), shuffle)
    hands = [tuple(sorted(shuffle.deal[start : start + 14])) for start in range(0, 14 * len(seats), 14)]
    assert dealt.racks == tuple(Rack(seat, hand) for seat, hand in zip(seats, hands, strict=True))
    assert dealt.pool == shuffle.deal[14 * len(seats) :]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("seed", range(3))
def test_every_preset_deals(preset: Preset, seed: int) -> None:
    ruleset = PRESETS[preset]
    for players in range(ruleset.players_min, ruleset.players_max + 1):
        seats = tuple(range(1, players + 1))
        dealt = deal_round(a_game(ruleset, *seats), some_shuffle(ruleset, players, seed))
        assert [len(rack.tiles) for rack in dealt.racks] == [ruleset.deal_hand_size] * players
        assert all_tiles(dealt) == full_set(ruleset, players)
        assert all(rack.tiles.count(JOKER) >= ruleset.deal_fixed_jokers for rack in dealt.racks)


RULESETS = st.builds(
    Ruleset,
    players_max=st.just(6),
    geometry_colors=st.sampled_from((4, 6)),
    geometry_copies=st.sampled_from((2, 3)),
    geometry_jokers=st.integers(0, 8),
    geometry_jokers_per_player=st.integers(0, 1),
    deal_hand_size=st.integers(5, 21),
    deal_order=st.sampled_from(DealOrder),
    deal_fixed_jokers=st.integers(0, 1),
    turn_direction=st.sampled_from(TurnDirection),
    start_draw_joker=st.sampled_from(StartDrawJoker),
    start_draw_tile=st.sampled_from(StartDrawTile),
    start_draw_tie=st.sampled_from(StartDrawTie),
    start_draw_determines=st.sampled_from(StartDrawDetermines),
    start_player=st.sampled_from(StartPlayer),
).filter(lambda ruleset: not problems(ruleset))


@pytest.mark.unmeasured
@given(RULESETS, SEATS, st.integers(0, 10_000))
def test_a_deal_has_every_tile_once(ruleset: Ruleset, seats: tuple[int, ...], seed: int) -> None:
    shuffle = some_shuffle(ruleset, len(seats), seed)
    dealt = deal_round(a_game(ruleset, *seats), shuffle)
    assert all_tiles(dealt) == full_set(ruleset, len(seats))
    assert sorted(dealt.order) == list(seats)
    assert tuple(rack.seat for rack in dealt.racks) == seats
    for rack in dealt.racks:
        assert len(rack.tiles) == ruleset.deal_hand_size
        assert list(rack.tiles) == sorted(rack.tiles)
        assert rack.tiles.count(JOKER) >= ruleset.deal_fixed_jokers
        assert not rack.has_melded
    places = iter(shuffle.deal)
    assert all(tile in places for tile in dealt.pool)  # in the order of the deal
    last = {draw.seat: draw.tile for draw in dealt.draws}
    if ruleset.start_draw_tile is StartDrawTile.KEEP:
        assert all(last[rack.seat] in rack.tiles for rack in dealt.racks)
    if ruleset.deal_order is DealOrder.DEAL_FIRST:
        assert Counter(draw.tile for draw in dealt.draws) <= Counter(dealt.pool)
    assert bool(dealt.draws) == (ruleset.start_player is StartPlayer.HIGHEST_DRAW)


@pytest.mark.unmeasured
@given(RULESETS, SEATS, SEATS, st.integers(0, 10_000))
def test_only_the_order_of_the_seats_matters(
    ruleset: Ruleset, seats: tuple[int, ...], others: tuple[int, ...], seed: int
) -> None:
    count = min(len(seats), len(others))
    to = dict(zip(seats[:count], others[:count], strict=True))
    shuffle = some_shuffle(ruleset, count, seed)
    dealt = deal_round(a_game(ruleset, *to), shuffle)
    renamed = deal_round(a_game(ruleset, *to.values()), shuffle)
    assert renamed == RoundStarted(
        dealt.number,
        tuple(replace(draw, seat=to[draw.seat]) for draw in dealt.draws),
        tuple(to[seat] for seat in dealt.order),
        tuple(replace(rack, seat=to[rack.seat]) for rack in dealt.racks),
        dealt.pool,
    )


# Kept start tiles, fixed jokers, and the start draw from the pool


def dealt_tiles(dealt: RoundStarted, seat: int) -> Counter[Tile]:
    return Counter(next(rack.tiles for rack in dealt.racks if rack.seat == seat))


def test_the_tile_drawn_is_the_first_of_fourteen() -> None:
    shuffle = Shuffle(shuffled(KEEP, 2, 1, first="R9 K9 R1 B2"), shuffled(KEEP, 2, 2, first=HANDS))
    dealt = deal_round(a_game(KEEP, 1, 2), shuffle)
    assert [(draw.seat, format_tile(draw.tile)) for draw in dealt.draws] == [(1, "R9"), (2, "K9"), (1, "R1"), (2, "B2")]
    assert dealt_tiles(dealt, 1) == Counter(parse_tiles("R1 O1 O2 O3 O4 O5 O6 O7 O8 O9 O10 O11 O12 O13"))
    assert dealt_tiles(dealt, 2) == Counter(parse_tiles("B2 K1 K2 K3 K4 K5 K6 K7 K8 K9 K10 K11 K12 K13"))


HANDS = " ".join([*(f"O{value}" for value in range(1, 14)), *(f"K{value}" for value in range(1, 14))])
"""Two sets of thirteen tiles."""


def test_a_tile_is_returned_unless_it_is_kept() -> None:
    shuffle = Shuffle(shuffled(SABRA, 2, 1, first="R1 B2"), shuffled(SABRA, 2, 2, first=HANDS + " R13 R13"))
    dealt = deal_round(a_game(SABRA, 1, 2), shuffle)
    assert dealt_tiles(dealt, 1) == Counter(parse_tiles("O1 O2 O3 O4 O5 O6 O7 O8 O9 O10 O11 O12 O13 K1"))


def test_without_a_draw_everyone_is_dealt_all_their_tiles() -> None:
    ruleset = replace(KEEP, start_player_next_rounds=StartPlayerNextRounds.ROTATE)
    game = after_a_round(ruleset, "2341", (1,), (), ())
    shuffle = some_shuffle(ruleset, 4)
    dealt = deal_round(game, shuffle)
    assert dealt.draws == ()
    assert dealt.pool == shuffle.deal[56:]


def copies_left(ruleset: Ruleset, lots: str) -> tuple[int, ...]:
    """Returns which copies of K13 stay in the pool when one is kept. They are at its end, each before a marker tile.

    The others keep all copies of B1, for which no random number is needed.
    """
    copies = ruleset.geometry_copies
    marks = [f"R{value}" for value in range(1, copies + 1)]
    start = shuffled(ruleset, copies + 1, 1, "K13" + " B1" * copies, lots)
    deal = shuffled(ruleset, copies + 1, 2, last=" ".join(f"K13 {mark}" for mark in marks))
    dealt = deal_round(a_game(ruleset, *range(1, copies + 2)), Shuffle(start, deal))
    pool = [format_tile(tile) for tile in dealt.pool[-2 * copies :]]
    return tuple(place for place, mark in enumerate(marks) if pool[pool.index(mark) - 1] == "K13")


@pytest.mark.parametrize(
    ("copies", "lots"),
    [
        (2, [f"{one} {two}" for one, two in permutations(("O1", "O2"))]),
        (2, [f"{one} {two} O5 O5" for one, two in permutations(("O1", "O2"))]),
        (
            3,
            [
                " ".join((*pair, *three))
                for pair in permutations(("O1", "O2"))
                for three in permutations(("O3", "O4", "O5"))
            ],
        ),
    ],
    ids=["two", "two tie", "three"],
)
def test_which_copy_is_kept_is_left_to_chance(copies: int, lots: list[str]) -> None:
    """Equally likely ends of the start draw's shuffle keep each copy equally often."""
    ruleset = replace(KEEP, start_draw_tie=StartDrawTie.SEAT_ORDER, geometry_copies=copies)
    left = Counter(copies_left(ruleset, end) for end in lots)
    kept = {tuple(place for place in range(copies) if place != gone): len(lots) // copies for gone in range(copies)}
    assert left == kept


def test_shuffles_that_settle_nothing_still_deal() -> None:
    """With sorted tiles, every draw is a tie until the tiles run out."""
    for ruleset in (KEEP, DEAL_FIRST, FULL, REDRAW_ALL, replace(KEEP, geometry_jokers=4)):
        tiles = full_set(ruleset, 2)
        dealt = deal_round(a_game(ruleset, 1, 2), Shuffle(tiles, tiles))
        assert dealt.order == (1, 2)
        assert all_tiles(dealt) == tiles
        assert deal_round(a_game(ruleset, 1, 2), dealt) == dealt


def test_the_start_is_drawn_for_from_the_pool() -> None:
    """Both R13 and both K13 are dealt, so the start draw skips them."""
    front = "R13 R13 K13 K13 " + HANDS.replace(" K1 ", " ").replace(" K13", "")
    shuffle = Shuffle(shuffled(DEAL_FIRST, 2, 1, "R13 K13 B5 R13 K13 B9"), shuffled(DEAL_FIRST, 2, 2, front))
    dealt = deal_round(a_game(DEAL_FIRST, 1, 2), shuffle)
    assert [(draw.seat, format_tile(draw.tile)) for draw in dealt.draws] == [(1, "B5"), (2, "B9")]
    assert dealt.order == (2, 1)
    assert dealt.pool == shuffle.deal[28:]
    before = deal_round(a_game(SABRA, 1, 2), shuffle)
    assert [format_tile(draw.tile) for draw in before.draws] == ["R13", "K13", "B5", "R13"]
    assert (before.racks, before.pool) == (dealt.racks, dealt.pool)


def test_which_copy_is_in_the_pool_is_left_to_chance() -> None:
    """One R13 is dealt and one is in the pool. The end of the shuffle decides which one the first is."""
    deal = shuffled(DEAL_FIRST, 2, 2, first="R13", last="R13")
    drawn = {
        lots: deal_round(
            a_game(DEAL_FIRST, 1, 2), Shuffle(shuffled(DEAL_FIRST, 2, 1, "R13 B12 B12", lots), deal)
        ).draws[0]
        for lots in ("O1 O2", "O2 O1")
    }
    assert {format_tile(draw.tile) for draw in drawn.values()} == {"R13", "B12"}


@pytest.mark.parametrize("determines", StartDrawDetermines)
@pytest.mark.parametrize("tie", StartDrawTie)
def test_a_pool_of_one_tile_leaves_it_to_the_lot(determines: StartDrawDetermines, tie: StartDrawTie) -> None:
    ruleset = replace(
        DEAL_FIRST, players_max=5, deal_hand_size=21, start_draw_determines=determines, start_draw_tie=tie
    )
    game = a_game(ruleset, 1, 2, 3, 4, 5)
    dealt = [deal_round(game, some_shuffle(ruleset, 5, seed)) for seed in range(40)]
    assert all([draw.tile for draw in one.draws] == list(one.pool) for one in dealt)
    assert {one.order[0] for one in dealt} == {1, 2, 3, 4, 5}
    assert all(sorted(one.order) == [1, 2, 3, 4, 5] for one in dealt)


def test_each_player_is_given_a_joker_first() -> None:
    ruleset = replace(SABRA, deal_fixed_jokers=1, players_max=2)
    shuffle = Shuffle(shuffled(ruleset, 2, 1), shuffled(ruleset, 2, 2, first=HANDS, last="J J"))
    dealt = deal_round(a_game(ruleset, 1, 2), shuffle)
    assert dealt_tiles(dealt, 1) == Counter(parse_tiles("J O1 O2 O3 O4 O5 O6 O7 O8 O9 O10 O11 O12 O13"))
    assert dealt_tiles(dealt, 2) == Counter(parse_tiles("J K1 K2 K3 K4 K5 K6 K7 K8 K9 K10 K11 K12 K13"))
    assert dealt.pool == shuffle.deal[26:-2]


def test_jokers_that_are_not_given_are_dealt() -> None:
    ruleset = replace(SABRA, deal_fixed_jokers=1, players_max=2, geometry_jokers=4)
    jokers = [
        sum(rack.tiles.count(JOKER) for rack in deal_round(a_game(ruleset, 1, 2), some_shuffle(ruleset, 2, seed)).racks)
        for seed in range(40)
    ]
    assert {2, 3} <= set(jokers) <= {2, 3, 4}


# The right to a new deal

THREE_PAIRS = "R1 R1 R2 R2 R3 R3 B1 B2 B3 B4 B5 B6 B7 B8"
MELD = Meld(parse_tiles("O1 O2 O3"), MeldKind.RUN, 6)


def in_hand(rack: str, table: tuple[Meld, ...] = ()) -> Round:
    racks = (Rack(1, parse_rack(f"{{{rack}}}")), Rack(2, parse_rack("{R5}")))
    return Round(1, (2, 1), table, racks, (), Turn(2, None))


@pytest.mark.parametrize(
    ("rack", "table", "ruleset", "may"),
    [
        (THREE_PAIRS, (), ON_REQUEST, True),
        (THREE_PAIRS, (), SABRA, False),
        (THREE_PAIRS, (MELD,), ON_REQUEST, False),
        (THREE_PAIRS + " B9", (), ON_REQUEST, False),
        ("R1 R1 R2 R2 R3 B13 B1 B2 B3 B4 B5 B6 B7 B8", (), ON_REQUEST, False),
        ("R1 R1 R2 R2 J J B1 B2 B3 B4 B5 B6 B7 B8", (), ON_REQUEST, True),
        ("J J J J R2 R2 B1 B2 B3 B4 B5 B6 B7 B8", (), ON_REQUEST, True),
        ("R1 R1 R1 R2 R2 R2 B1 B2 B3 B4 B5 B6 B7 B8", (), ON_REQUEST, False),
        ("R1 R1 R2 R2 R3 R3", (), replace(ON_REQUEST, deal_hand_size=6), True),
        ("R1 R1 R2 R2 R3 R3 B1", (), replace(ON_REQUEST, deal_hand_size=6), False),
    ],
)
def test_the_right_to_a_new_deal(rack: str, table: tuple[Meld, ...], ruleset: Ruleset, may: bool) -> None:
    round_ = in_hand(rack, table)
    assert may_demand_redeal(round_, 1, ruleset) == may
    assert not may_demand_redeal(round_, 2, ruleset)
