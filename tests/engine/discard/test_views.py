from dataclasses import replace

from engine.actions import TimeOut
from engine.discard.actions import DiscardTile, FinishHand, LayTiles, ShowIndicator, TakeDiscard, TakeFromPool
from engine.discard.events import DiscardTaken, HandsDealt, PenaltyScored, PoolTileTaken
from engine.discard.game import round_of, seen_round
from engine.discard.laying import PenaltyCause
from engine.discard.notation import parse_hand
from engine.discard.presets import AMERICAN, OKEY_101
from engine.discard.round import HasLaid, ToDiscard, ToTake
from engine.discard.ruleset import OKEY
from engine.discard.table import Opening, Table
from engine.discard.views import DiscardView, HandsDealtView, PileView, PoolTileTakenView
from engine.game import Game
from engine.notation import parse_tile, parse_tiles
from engine.seats import HOST
from engine.sight import see, see_event
from engine.turns import create
from support.okey_games import game_at, started
from support.positions import NOW, do

RACK = "K7 R4 R6 R8 R10 B1 B3 B5 K1 K9 K11 O1 O3 O5"
GAME = game_at(f"K7 / 1{{}} 2{{}} 3{{K2 K3}} / 1{{{RACK}}} 2{{{RACK}}} 3{{{RACK}}} / {{O9 O10}} / 2")


def seen(game: Game, seat: int | None) -> DiscardView:
    view = seen_round(see(game, seat))
    assert view
    return view


def test_all_see_the_indicator_the_okey_and_the_newest_discards() -> None:
    for seat in (None, HOST, 1, 2, 3):
        view = seen(GAME, seat)
        assert (view.indicator, view.okey) == (parse_tile("K7"), parse_tile("K8"))
        assert view.piles == (PileView(1, None, 0), PileView(2, None, 0), PileView(3, parse_tile("K3"), 2))
        assert (view.step, view.taken, view.discarded, view.shown_by, view.finish) == (ToTake, None, (), None, None)
        assert see(GAME, seat).pool_count == 2
    assert see(GAME, 1).rack == parse_tiles("R4 R6 R8 R10 B1 B3 B5 K1 K7 K9 K11 O1 O3 O5")
    assert seen_round(see(create(OKEY).game, None)) is None


def test_only_the_player_sees_a_tile_taken_from_the_pool() -> None:
    done = do(GAME, TakeFromPool(2))
    tile = parse_tile("O9")
    assert [seen(done.game, seat).taken for seat in (None, HOST, 1, 2)] == [None, None, None, tile]
    assert {seen(done.game, seat).step for seat in (None, 1, 2)} == {ToDiscard}
    views = [see_event(PoolTileTaken(2, tile), seat) for seat in (None, 1, 2)]
    assert views == [PoolTileTakenView(2, None), PoolTileTakenView(2, None), PoolTileTakenView(2, tile)]


def test_all_see_a_tile_taken_from_the_discards() -> None:
    done = do(GAME, TakeDiscard(2))
    assert {seen(done.game, seat).taken for seat in (None, 1, 2)} == {parse_tile("K3")}
    assert seen(done.game, None).piles[2] == PileView(3, parse_tile("K2"), 1)
    assert see_event(done.events[0], None) == DiscardTaken(2, parse_tile("K3"), 3, parse_tile("K2"))


def test_all_see_who_has_shown_the_indicator_and_a_finished_hand() -> None:
    shown = do(GAME, ShowIndicator(2)).game
    assert seen(shown, None).shown_by == 2
    hand = "K3 K4 K5 K6 O7 B7 R7 B9 B10 B11 B12 R12 R13 R1 O9"
    game = game_at(f"K7 / 1{{}} 2{{}} / 1{{{RACK}}} 2{{{hand}}} / {{O9}} / 2")
    done = do(game, FinishHand(2, parse_tile("O9")))
    assert seen(done.game, None).finish == done.events[0]
    assert see_event(done.events[0], 1) == done.events[0]


def test_a_deal_shows_a_seat_its_own_rack() -> None:
    dealt = round_of(started(1))
    event = HandsDealt(1, dealt.order, dealt.indicator, dealt.racks, dealt.pool)
    for rack in dealt.racks:
        view = HandsDealtView(1, dealt.order, dealt.indicator, rack.tiles, 48)
        assert see_event(event, rack.seat) == view
    assert see_event(event, None) == HandsDealtView(1, dealt.order, dealt.indicator, (), 48)


def test_a_deal_with_jokers_shows_the_trump_and_no_indicator() -> None:
    dealt = round_of(started(1, AMERICAN))
    event = HandsDealt(1, dealt.order, None, dealt.racks, dealt.pool, dealt.trump)
    assert see_event(event, None) == HandsDealtView(1, dealt.order, None, (), 49, dealt.trump)


def test_a_first_turn_is_over_with_its_discard() -> None:
    game = do(GAME, TakeFromPool(2)).game
    after = do(game, DiscardTile(2, parse_tile("O9"))).game
    assert seen(after, 1).discarded == (2,)
    timed_out = do(replace(GAME), TimeOut(), NOW + 120_001).game
    assert seen(timed_out, 1).discarded == (2,)


def test_all_see_the_table_the_openings_the_penalties_and_a_discard_that_must_be_laid() -> None:
    paid = (PenaltyScored(1, 101, PenaltyCause.OKEY_DISCARDED),)
    position = "R4 / 1{} 2{} 3{K7} / 1{R1} 2*{B10 O1} 3{R1} / {O9} / 2 / [B9 R5 B11] | [K4 K5 K6] / 2:105"
    game = game_at(position, OKEY_101, penalties=paid)
    view = seen(game, None)
    assert view.table == Table(parse_hand("[B9 R5 B11] | [K4 K5 K6]"), (Opening(2, is_pairs=False, amount=105),))
    assert (view.penalties, view.owed, view.laid) == (paid, None, 0)
    taken = do(game, TakeDiscard(2)).game
    assert {seen(taken, seat).owed for seat in (None, 1, 2)} == {parse_tile("K7")}
    laid = do(taken, LayTiles(2, parse_hand("[B9 B10 B11] | [K4 K5 K6 K7]")))
    for seat in (None, 1, 2):
        view = seen(laid.game, seat)
        assert (view.step, view.owed, view.laid, view.taken) == (HasLaid, None, 2, None)
        assert see_event(laid.events[0], seat) == laid.events[0]
    assert [player.has_melded for player in see(laid.game, None).players] == [False, True, False]
    drawn = do(game, TakeFromPool(2)).game
    assert {seen(drawn, seat).owed for seat in (None, 1, 2)} == {None}
