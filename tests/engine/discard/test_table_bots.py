from collections import Counter
from dataclasses import replace
from itertools import chain

import pytest

from engine.actions import Resign
from engine.discard.actions import BotAction, DiscardTile, LayTiles, ReturnDiscard, TakeDiscard, TakeFromPool
from engine.discard.bots import action_without_play, choose_action
from engine.discard.events import RackFinished
from engine.discard.game import round_of
from engine.discard.notation import format_hand, parse_hand
from engine.discard.presets import OKEY_101
from engine.discard.round import HasLaid, ToDiscard, ToTake
from engine.discard.ruleset import Ruleset
from engine.effort import Budget
from engine.family import bots_of
from engine.game import Game, Playing, bots_to_act
from engine.notation import parse_tile, parse_tiles
from engine.seats import BotLevel
from engine.sight import see
from support.okey_games import game_at, started
from support.positions import do

MASTER = BotLevel.MASTER
OPENS = "R7 R8 R9 R10 B10 K10 O10 O11 O12 K6 B6 O6"
"""105 points. The indicator is R4, the okey R5."""
PAIRS = "R1 R1 B3 B3 K7 K7 O9 O9 B12 B12"
TAKEN = ToDiscard(parse_tile("O1"))
POOL = "O1 O1 O2 O2 O3 O3"


def at(
    rack: str,
    step: ToTake | ToDiscard | HasLaid = TAKEN,
    *,
    table: str = ".",
    openings: str = ".",
    discard: str = "",
    ruleset: Ruleset = OKEY_101,
    others: str = "R2 R4 B1 B9",
    pool: str = POOL,
) -> Game:
    """Returns a game in which seat 2 has a rack and the turn, and seat 3 before it has a discard."""
    star = "*" if "2:" in openings else ""
    racks = f"1{{{others}}} 2{star}{{{rack}}} 3{{{others}}}"
    position = f"R4 / 1{{}} 2{{}} 3{{{discard}}} / {racks} / {{{pool}}} / 2 / {table} / {openings}"
    return game_at(position, ruleset, discarded=(1, 2, 3), step=step)


def chosen(game: Game) -> BotAction:
    """Returns the action of a bot that overlooks nothing, which must be legal."""
    action = choose_action(see(game, 2), MASTER)
    do(game, action)
    return action


def laid(game: Game) -> str:
    action = chosen(game)
    assert isinstance(action, LayTiles), action
    return format_hand(action.table)


# Opening


def test_bots_open_as_soon_as_they_can() -> None:
    game = at(f"{OPENS} R1 K1")
    after = do(game, choose_action(see(game, 2), MASTER)).game
    table = round_of(after).table
    assert table
    assert table.openings[0].amount == 105
    assert round_of(after).rack(2).tiles == parse_tiles("R1 K1")
    pairs = at(f"{PAIRS} K1")
    assert sorted(laid(pairs)) == sorted("[R1 R1] | [B3 B3] | [K7 K7] | [O9 O9] | [B12 B12]")


def test_bots_do_not_open_in_the_first_turn_of_the_starter_nor_with_too_little() -> None:
    assert isinstance(chosen(at(f"{OPENS} R1 K1", ToDiscard())), DiscardTile)
    assert isinstance(chosen(at(f"{OPENS} R1 K1", ruleset=replace(OKEY_101, opening_points=106))), DiscardTile)
    no_pairs = replace(OKEY_101, opening_pairs=0)
    assert isinstance(chosen(at(f"{PAIRS} K1", ruleset=no_pairs)), DiscardTile)
    risen = replace(OKEY_101, opening_rises=True)
    assert isinstance(chosen(at(f"{OPENS} R1 K1", openings="1:105", ruleset=risen)), DiscardTile)


def test_an_opening_leaves_a_tile_to_discard_which_finishes() -> None:
    game = do(at(f"{OPENS} O13"), choose_action(see(at(f"{OPENS} O13"), 2), MASTER)).game
    assert len(round_of(game).rack(2).tiles) == 1
    done = do(game, choose_action(see(game, 2), MASTER))
    finish = done.events[0]
    assert isinstance(finish, RackFinished)
    assert finish.is_at_once


# Taking


@pytest.mark.parametrize(
    ("rack", "discard", "table", "openings", "takes"),
    [
        (OPENS.replace("O6", "R1"), "O6", ".", ".", True),
        (OPENS.replace("O6", "R1"), "R2", ".", ".", False),
        (OPENS.replace("O6", "R1"), "", ".", ".", False),
        (PAIRS.replace("R1 R1", "R1 K2"), "R1", ".", ".", True),
        (PAIRS, "K2", ".", ".", False),
        ("R1 K2 B9", "K7", "[K4 K5 K6]", "2:105", True),
        ("R1 K2 B9", "O7", "[K4 K5 K6]", "2:105", False),
        ("R1 R2 B9", "R3", "[K4 K5 K6]", "2:105", True),
        ("R1 R2 B9", "R3", "[K4 K4]", "2:5p", False),
        ("R1 R2 B9", "R1", "[K4 K4]", "2:5p", True),
        ("R1 K2", "R5", "[K4 K5 K6]", "2:105", True),
    ],
)
def test_bots_take_a_discard_that_they_can_lay(rack: str, discard: str, table: str, openings: str, takes: bool) -> None:
    game = at(rack, ToTake(), table=table, openings=openings, discard=discard)
    assert chosen(game) == (TakeDiscard(2) if takes else TakeFromPool(2))
    if takes:
        taken = do(game, TakeDiscard(2)).game
        step = chosen(taken)
        assert isinstance(step, LayTiles)
        assert parse_tile(discard) in set(chain(*step.table))


def test_a_bot_puts_back_a_discard_that_it_cannot_lay() -> None:
    game = do(at("R1 K2 B9", ToTake(), discard="O7"), TakeDiscard(2)).game
    assert chosen(game) == ReturnDiscard(2)
    assert action_without_play(see(game, 2)) == ReturnDiscard(2)
    assert action_without_play(see(at("R1 K2 B9", ToTake()), 2)) == TakeFromPool(2)
    assert action_without_play(see(at("R1 O1 B9"), 2)) == DiscardTile(2, parse_tile("O1"))


def test_the_discard_of_a_player_who_has_resigned_is_not_there_to_take() -> None:
    game = at("R1 K2 B9", ToTake(), table="[K4 K5 K6]", openings="2:105", discard="K7")
    assert chosen(do(game, Resign(3)).game) == TakeFromPool(2)


def test_the_tile_that_is_kept_is_not_the_one_taken() -> None:
    opening = at(f"{OPENS} O13", ToDiscard(parse_tile("O6"), is_seen=True))
    assert parse_tile("O6") in set(chain(*parse_hand(laid(opening))))
    more = at("K7 K8", ToDiscard(parse_tile("K7"), is_seen=True), table="[K4 K5 K6]", openings="2:105")
    assert laid(more) == "[K4 K5 K6 K7]"


# Laying more


@pytest.mark.parametrize(
    ("name", "rack", "table", "openings", "after"),
    [
        ("lay-offs", "K7 K3 K8 R1 B9", "[K4 K5 K6]", "2:105", "[K3 K4 K5 K6 K7 K8]"),
        ("a new meld", "R1 R2 R3 B9 B9", "[K4 K5 K6]", "2:105", "[K4 K5 K6] | [R1 R2 R3]"),
        ("no new meld beside pairs", "R1 R2 R3 K7 B9", "[K4 K5 K6]", "2:5p", "[K4 K5 K6 K7]"),
        ("pairs", "R1 R1 K7 B9", "[K4 K5 K6]", "2:5p", "[K4 K5 K6 K7] | [R1 R1]"),
        ("pairs beside another's", "R1 R1 K9 B9", "[K4 K4]", "1:5p 2:105", "[K4 K4] | [R1 R1]"),
        ("no pairs", "R1 R1 K7 B9", "[K4 K5 K6]", "2:105", "[K4 K5 K6 K7]"),
        (
            "an okey for its tile, and a meld with it",
            "B10 O1 O2 K9 R2",
            "[B9 R5 B11]",
            "2:105",
            "[B9 B10 B11] | [O1 O2 R5]",
        ),
        ("one tile is kept to finish", "K7 K8", "[K4 K5 K6]", "2:105", "[K4 K5 K6 K7]"),
        ("an okey that lets the last tile go", "R5 R1", "[K4 K5 K6]", "2:105", "[K4 K5 K6 R5]"),
        ("one of two okeys", "R5 R5", "[K4 K5 K6]", "2:105", "[K4 K5 K6 R5]"),
    ],
)
def test_bots_lay_all_they_can(name: str, rack: str, table: str, openings: str, after: str) -> None:
    assert laid(at(rack, table=table, openings=openings)) == after, name


def test_a_pair_opener_keeps_to_the_limit() -> None:
    rules = replace(OKEY_101, pair_opener_tiles=2)
    game = at("K7 K8 K9 B9", table="[K4 K5 K6]", openings="2:5p", ruleset=rules)
    assert laid(game) == "[K4 K5 K6 K7 K8]"
    full = at("K7 K9 B9", HasLaid(2, is_opening=False), table="[K4 K5 K6]", openings="2:5p", ruleset=rules)
    assert isinstance(chosen(full), DiscardTile)


def test_bots_keep_an_okey_until_the_round_may_end() -> None:
    def is_laid(pool: str = POOL, others: str = "R2 R4 B1 B9") -> bool:
        game = at("R5 R1 B9 O12", table="[K4 K5 K6]", openings="2:105", pool=pool, others=others)
        return isinstance(chosen(game), LayTiles)

    assert not is_laid()
    assert is_laid(pool="O1 O2 O3 O4")
    assert is_laid(others="R2 R4 B1")


# Discarding


def test_bots_discard_nothing_that_costs_points() -> None:
    def discard(rack: str, table: str = "[K4 K5 K6]", ruleset: Ruleset = OKEY_101) -> str:
        action = chosen(at(rack, table=table, ruleset=ruleset))
        assert isinstance(action, DiscardTile)
        return next(name for name in rack.split() if parse_tile(name) == action.tile)

    assert discard("K7 K3 B9 R5") == "B9"
    assert discard("K7 R5") == "K7"
    assert discard("R5 R5") == "R5"
    assert discard("F R5", ".") == "F"
    assert discard("K7 O1 O2 O3", ruleset=replace(OKEY_101, score_discard_penalty=0)) == "K7"


def test_bots_keep_what_they_need_to_open() -> None:
    action = chosen(at("R10 R11 R12 B10 K10 O10 K1"))
    assert action == DiscardTile(2, parse_tile("K1"))


def test_bots_that_lack_one_pair_keep_their_pairs() -> None:
    rack = "R1 R1 B3 B3 K7 K7 O9 O9 B12 O2"
    assert chosen(at(rack)) in {DiscardTile(2, parse_tile("B12")), DiscardTile(2, parse_tile("O2"))}


def test_a_bot_keeps_a_meld_that_would_leave_it_without_a_discard() -> None:
    game = at("K7 K8 K9", table="[O4 O5 O6]", openings="2:105")
    assert isinstance(chosen(game), DiscardTile)


def test_those_who_have_opened_get_rid_of_high_tiles() -> None:
    game = at("R13 B1 K7", table="[O4 O5 O6]", openings="2:105")
    assert chosen(game) == DiscardTile(2, parse_tile("R13"))


def test_bots_keep_no_tile_whose_neighbors_cannot_come() -> None:
    table = "[R6 B6 K6] | [R6 B6 O6] | [R8 B8 K8] | [R8 K8 O8] | [R9 B9 K9] | [R9 B9 O9]"
    game = at("R7 O2 O11", table=table)
    assert isinstance(chosen(game), DiscardTile)


def test_a_search_that_is_over_leaves_the_first_of_the_discards() -> None:
    asked = Counter[str]()

    def is_over() -> bool:
        asked["times"] += 1
        return True

    game = at("R10 R11 B10 K9 K1 O3 O7")
    action = choose_action(see(game, 2), MASTER, Budget(is_over=is_over))
    assert isinstance(action, DiscardTile)
    assert asked["times"] == 1


# Whole rounds


def play(seed: int, levels: tuple[BotLevel, ...], ruleset: Ruleset = OKEY_101) -> Game:
    """Plays a round of bots, in which nobody pays a penalty but for want of another discard."""
    game = started(seed, ruleset, bots=levels)
    while isinstance(game.phase, Playing):
        (seat,) = bots_to_act(game)
        view, level = see(game, seat), game.player(seat).bot
        assert level
        game = do(game, bots_of(view).choose_action(view, level, Budget())).game
    return game


@pytest.mark.slow
@pytest.mark.unmeasured
def test_rounds_of_bots_end_without_penalties_and_most_of_them_open() -> None:
    opened = 0
    for seed in range(8):
        game = play(7000 + seed, tuple(BotLevel)[seed % 2 : seed % 2 + 4])
        table = round_of(game).table
        assert table
        opened += len(table.openings)
        assert round_of(game).penalties == ()
    assert opened >= 8 * 2  # of four players


@pytest.mark.unmeasured
def test_the_same_view_gives_the_same_action() -> None:
    game = started(4, OKEY_101)
    view = see(game, round_of(game).turn.seat)
    for level in BotLevel:
        assert choose_action(view, level) == choose_action(view, level)
