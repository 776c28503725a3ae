from collections import Counter
from dataclasses import replace

import pytest

from engine.actions import Resign
from engine.discard.actions import BotAction, DiscardTile, FinishHand, ShowIndicator, TakeDiscard, TakeFromPool
from engine.discard.bots import action_without_play, choose_action
from engine.discard.game import round_of
from engine.discard.hands import standing
from engine.discard.ruleset import OKEY, Ruleset
from engine.effort import Budget
from engine.family import bots_of
from engine.game import Game, Playing, bots_to_act
from engine.notation import parse_tile
from engine.seats import BotLevel
from engine.sight import see
from engine.tiles import NATURALS, without
from support.okey_games import game_at, started
from support.positions import do

BEGINNER, MASTER = BotLevel.BEGINNER, BotLevel.MASTER
ELEVEN = "K3 K4 K5 K6 O7 B7 R7 B9 B10 B11 B12"


def at(rack: str, discard: str = "", ruleset: Ruleset = OKEY, others: str = "R2 R4") -> Game:
    """Returns a game in which seat 2 has a rack and the turn, and seat 3 before it has a discard."""
    racks = f"1{{{others}}} 2{{{rack}}} 3{{{others}}}"
    return game_at(f"K7 / 1{{}} 2{{}} 3{{{discard}}} / {racks} / {{O9 O10}} / 2", ruleset)


@pytest.mark.parametrize("level", BotLevel)
def test_bots_finish_as_soon_as_they_can_as_dearly_as_they_can(level: BotLevel) -> None:
    def finish(rack: str) -> tuple[str, bool]:
        game = at(rack)
        action = choose_action(see(game, 2), level)
        assert isinstance(action, FinishHand)
        do(game, action)
        return str(action.tile), len(action.hand) == 7

    assert finish(f"{ELEVEN} R12 R13 R1 O9") == (str(parse_tile("O9")), False)
    assert finish(f"{ELEVEN} R12 R13 R1 K8") == (str(parse_tile("K8")), False)
    assert finish("R2 R2 R3 R3 R4 R4 B5 B5 B6 B6 B7 B7 B8 B8 O1") == (str(parse_tile("O1")), True)


@pytest.mark.parametrize("level", BotLevel)
@pytest.mark.parametrize(("discard", "takes"), [("R1", True), ("R11", True), ("O1", False), ("", False)])
def test_bots_take_a_discard_that_finishes_their_hand(level: BotLevel, discard: str, takes: bool) -> None:
    game = at(f"{ELEVEN} R12 R13 O1", discard)
    assert choose_action(see(game, 2), level) == (TakeDiscard(2) if takes else TakeFromPool(2))


def in_turns(game: Game, level: BotLevel, count: int = 100) -> list[BotAction]:
    """Returns a bot's actions in a position in many turns, each with oversights of its own."""
    round_ = replace(round_of(game), pool=NATURALS)
    turns = (replace(round_, turn=replace(round_.turn, revision=revision)) for revision in range(count))
    return [choose_action(see(replace(game, phase=Playing(turn)), 2), level) for turn in turns]


def test_weaker_levels_overlook_discards_that_help_more_often() -> None:
    game = at("K3 K4 K5 K6 O7 B7 R7 B9 B10 R12 R13 O1 O3 K12", "B11")
    found = [in_turns(game, level).count(TakeDiscard(2)) for level in BotLevel]
    assert found == sorted(found)
    assert 0 < found[0] < found[-1] == 100


def test_weaker_levels_discard_without_care_more_often() -> None:
    game = at(f"{ELEVEN} R12 R13 R3 R4")
    best = choose_action(see(game, 2), MASTER)
    found = [in_turns(game, level, 40).count(best) for level in (BEGINNER, BotLevel.HARD)]
    assert 0 < found[0] < found[1] < 40


def test_the_discard_of_a_player_who_has_resigned_is_not_there_to_take() -> None:
    game = do(at(f"{ELEVEN} R12 R13 O1", "R1"), Resign(3)).game
    assert choose_action(see(game, 2), MASTER) == TakeFromPool(2)


@pytest.mark.unmeasured
def test_bots_discard_what_their_hand_can_do_without() -> None:
    for seed in range(12):
        game = started(seed)
        round_ = round_of(game)
        seat = round_.turn.seat
        tiles = round_.rack(seat).tiles
        action = choose_action(replace(see(game, seat), ruleset=replace(OKEY, show_indicator=False)), MASTER)
        assert isinstance(action, DiscardTile)
        left = standing(without(tiles, (action.tile,)), round_.okey, one_high=True)
        assert left.missing == standing(tiles, round_.okey, one_high=True).missing
        assert action.tile != round_.okey


def test_bots_keep_what_more_unseen_tiles_help() -> None:
    rack = f"{ELEVEN} R12 R13 R3 R4"
    assert choose_action(see(at(rack), 2), MASTER) in {
        DiscardTile(2, parse_tile("R12")),
        DiscardTile(2, parse_tile("R13")),
    }
    without_high = replace(OKEY, run_one_high=False)
    assert choose_action(see(at(rack, ruleset=without_high), 2), MASTER).seat == 2


def test_a_search_that_is_over_leaves_the_first_of_the_spare_tiles() -> None:
    asked = Counter[str]()

    def is_over() -> bool:
        asked["times"] += 1
        return True

    game = started(3)
    seat = round_of(game).turn.seat
    view = replace(see(game, seat), ruleset=replace(OKEY, show_indicator=False))
    action = choose_action(view, MASTER, Budget(is_over=is_over))
    assert isinstance(action, DiscardTile)
    assert asked["times"] == 1
    do(game, action)


@pytest.mark.parametrize("level", BotLevel)
def test_bots_show_the_twin_of_the_indicator_where_they_may(level: BotLevel) -> None:
    rack = f"{ELEVEN} R12 O1 K7"
    assert choose_action(see(at(rack), 2), level) == ShowIndicator(2)
    shown = do(at(rack), ShowIndicator(2)).game
    assert choose_action(see(shown, 2), level) == TakeFromPool(2)
    assert choose_action(see(at(rack, ruleset=replace(OKEY, show_indicator=False)), 2), level) == TakeFromPool(2)


def test_without_a_search_a_bot_takes_of_the_pool_and_discards_what_it_took() -> None:
    game = at(f"{ELEVEN} R12 R13 O1")
    view = see(game, 2)
    assert bots_of(view).action_without_search(view) is None
    assert action_without_play(view) == TakeFromPool(2)
    taken = do(game, TakeFromPool(2)).game
    assert action_without_play(see(taken, 2)) == DiscardTile(2, parse_tile("O9"))
    first = at(f"{ELEVEN} R12 R13 O1 F")
    assert action_without_play(see(first, 2)) == DiscardTile(2, parse_tile("O7"))


def test_only_the_seat_with_the_turn_has_an_action() -> None:
    game = at(f"{ELEVEN} R12 R13 O1")
    for seat in (1, None):
        with pytest.raises(ValueError, match="not the turn"):
            choose_action(see(game, seat), BEGINNER)
        with pytest.raises(ValueError, match="not the turn"):
            action_without_play(see(game, seat))


def play(seed: int, levels: tuple[BotLevel, ...]) -> Game:
    """Plays a round of bots."""
    game = started(seed, bots=levels)
    while isinstance(game.phase, Playing):
        (seat,) = bots_to_act(game)
        view, level = see(game, seat), game.player(seat).bot
        assert level
        game = do(game, bots_of(view).choose_action(view, level, Budget())).game
    return game


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize(("worse", "better", "rounds"), [(BEGINNER, MASTER, 8)])
def test_rounds_of_bots_end_and_better_ones_win_more_of_them(worse: BotLevel, better: BotLevel, rounds: int) -> None:
    wins = Counter[BotLevel]()
    for seed in range(rounds):
        levels = (worse, better, worse, better) if seed % 2 else (better, worse, better, worse)
        game = play(5000 + seed, levels)
        wins.update(levels[seat - 1] for seat in game.results[0].winners)
    assert sum(wins.values()) > rounds * 0.7
    assert wins[better] > 4 * wins[worse]


def test_the_same_view_gives_the_same_action() -> None:
    game = started(4)
    view = see(game, round_of(game).turn.seat)
    for level in BotLevel:
        assert choose_action(view, level) == choose_action(view, level)
