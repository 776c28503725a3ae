import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from engine.deal import ImpossibleDealError, Shuffle
from engine.discard.deal import deal
from engine.discard.events import HandsDealt
from engine.discard.game import round_of
from engine.discard.presets import AMERICAN
from engine.discard.ruleset import OKEY, Ruleset
from engine.game import Game, RoundEnd, RoundOver, RoundResult
from engine.seats import Player, Rack
from engine.tiles import FALSE_JOKER, NATURALS, Tile, in_order
from engine.turns import create
from support.okey_games import TILES, shuffle, started


def lobby(players: int, ruleset: Ruleset = OKEY) -> Game:
    game = create(ruleset).game
    return replace(game, players=tuple(Player(seat, f"player {seat}", 20) for seat in range(1, players + 1)))


def indicator_of(dealt: HandsDealt) -> Tile:
    assert dealt.indicator is not None
    return dealt.indicator


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_starter_is_dealt_15_tiles_the_others_14_and_the_rest_is_the_pool(players: int) -> None:
    for seed in range(20):
        dealt = deal(lobby(players), shuffle(seed))
        assert dealt.number == 1
        assert [rack.seat for rack in dealt.racks] == list(range(1, players + 1))
        assert [len(rack.tiles) for rack in dealt.racks] == [14 + (rack.seat == dealt.order[0]) for rack in dealt.racks]
        assert len(dealt.pool) == {2: 76, 3: 62, 4: 48}[players]
        tiles = (indicator_of(dealt), *(t for rack in dealt.racks for t in rack.tiles), *dealt.pool)
        assert in_order(tiles) == in_order(TILES)
        assert dealt.indicator != FALSE_JOKER


def test_turns_pass_to_the_right() -> None:
    orders = {deal(lobby(4), shuffle(seed)).order for seed in range(60)}
    assert orders == {(4, 3, 2, 1), (3, 2, 1, 4), (2, 1, 4, 3), (1, 4, 3, 2)}


@pytest.mark.slow
@pytest.mark.unmeasured
def test_every_tile_and_seat_is_as_often_the_indicator_the_next_tile_and_the_starter() -> None:
    """The next tile of the pool shows whether false jokers, which are never the indicator, lie where others do."""
    rng, number = random.Random(7), 5_000
    indicators, firsts, lasts, starters = (Counter[int]() for _ in range(4))
    for _ in range(number):
        dealt = deal(lobby(4), Shuffle(tuple(rng.sample(TILES, 106)), tuple(rng.sample(TILES, 106))))
        indicators[indicator_of(dealt)] += 1
        firsts[dealt.pool[0]] += 1
        lasts[dealt.pool[-1]] += 1
        starters[dealt.order[0]] += 1
    assert chi_square(indicators, dict.fromkeys(NATURALS, number / 52)) < 90  # 51 degrees of freedom: p < 0.001
    often: dict[int, float] = dict.fromkeys(NATURALS, number * 103 / 104 * 2 / 105)
    often |= {FALSE_JOKER: number * 2 / 105}
    assert chi_square(firsts, often) < 92
    assert chi_square(lasts, often) < 92
    assert chi_square(starters, dict.fromkeys((1, 2, 3, 4), number / 4)) < 16.3


def chi_square(found: Counter[int], expected: Mapping[int, float]) -> float:
    return sum((found[one] - times) ** 2 / times for one, times in expected.items())


def test_shuffles_are_of_the_tile_set() -> None:
    whole = shuffle(1)
    for wrong in (replace(whole, deal=whole.deal[1:]), replace(whole, start_draw=whole.start_draw[:-1])):
        with pytest.raises(ValueError, match="exactly the tiles"):
            deal(lobby(2), wrong)


def test_a_deal_that_was_made_before_is_taken_as_it_is() -> None:
    game = lobby(3)
    dealt = deal(game, shuffle(5))
    assert deal(game, dealt) is dealt


def _with_first_rack(dealt: HandsDealt, rack: Rack) -> HandsDealt:
    return replace(dealt, racks=(rack, *dealt.racks[1:]))


def _with_false_indicator(dealt: HandsDealt) -> HandsDealt:
    place = dealt.pool.index(FALSE_JOKER)
    return replace(
        dealt, indicator=FALSE_JOKER, pool=(*dealt.pool[:place], indicator_of(dealt), *dealt.pool[place + 1 :])
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda dealt: replace(dealt, number=2), "round 2 does not follow round 0"),
        (lambda dealt: replace(dealt, racks=dealt.racks[:2]), "expected racks of the seats"),
        (lambda dealt: replace(dealt, order=dealt.order[:2]), "not of the seats"),
        (lambda dealt: replace(dealt, pool=dealt.pool[1:]), "not the tile set"),
        (_with_false_indicator, "a false joker"),
        (lambda dealt: replace(dealt, order=(*dealt.order[1:], dealt.order[0])), "another size"),
        (lambda dealt: _with_first_rack(dealt, replace(dealt.racks[0], has_melded=True)), "has melded"),
        (lambda dealt: replace(dealt, order=(dealt.order[0], dealt.order[2], dealt.order[1])), "counterclockwise"),
    ],
)
def test_a_deal_that_the_rules_cannot_have_made_is_refused(
    change: Callable[[HandsDealt], HandsDealt], problem: str
) -> None:
    game = lobby(3)
    seed = next(seed for seed in range(50) if FALSE_JOKER in deal(game, shuffle(seed)).pool)
    with pytest.raises(ImpossibleDealError, match=problem):
        deal(game, change(deal(game, shuffle(seed))))


def test_another_starter_of_a_later_round_is_refused() -> None:
    game = started(1)
    last = round_of(game)
    over = replace(game, phase=RoundOver(last), results=(RoundResult(1, RoundEnd.BLOCKED, (), ()),))
    dealt = deal(over, shuffle(2))
    assert dealt.order == (*last.order[1:], last.order[0])
    turned = replace(last, order=(*last.order[1:], last.order[0]))
    with pytest.raises(ImpossibleDealError, match=f"seat {turned.order[1]} was to start"):
        deal(replace(over, phase=RoundOver(turned)), dealt)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda dealt: replace(dealt, trump=None), "have a trump"),
        (lambda dealt: replace(dealt, indicator=dealt.trump), "have an indicator"),
        (lambda dealt: replace(dealt, trump=FALSE_JOKER), "not the tile set"),
    ],
)
def test_a_deal_with_another_indicator_or_trump_than_the_rules_have_is_refused(
    change: Callable[[HandsDealt], HandsDealt], problem: str
) -> None:
    game = lobby(3, AMERICAN)
    dealt = deal(game, shuffle(5, AMERICAN))
    assert deal(game, dealt) is dealt
    with pytest.raises(ImpossibleDealError, match=problem):
        deal(game, change(dealt))


def test_any_tile_may_be_the_trump() -> None:
    game = lobby(3, AMERICAN)
    assert len({deal(game, shuffle(seed, AMERICAN)).trump for seed in range(300)}) > 45
