"""The presets of card games: what sets each of them apart, played in the engine."""

from dataclasses import replace

import pytest

from engine.actions import StartGame
from engine.deal import Shuffle
from engine.effort import Budget
from engine.events import RoundEnded
from engine.game import Game, RoundEnd
from engine.melding.actions import DrawTile, Knock, Pass, PlayTiles
from engine.melding.bots import action_without_search, choose_action
from engine.melding.events import PlayerKnocked, TileDrawn, TilesDrawn, TilesPlayed, TurnEnded
from engine.melding.game import round_of
from engine.melding.melds import Meld, read_meld
from engine.melding.moves import actions, move_of
from engine.melding.notation import parse_melds
from engine.melding.presets import PRESETS
from engine.melding.record_text import MoveText
from engine.melding.review import to_review
from engine.melding.round import Drawing, Drawn
from engine.melding.ruleset import SABRA, Preset, Ruleset, TurnDraw, TurnPlayAfterDraw, tile_count, with_options
from engine.melding.solver import Objective, best_turn
from engine.moves import Move, MoveKind, Played
from engine.notation import Piece, parse_tile, parse_tiles
from engine.seats import BotLevel
from engine.sight import see
from engine.tiles import tile_set
from engine.turns import Applied
from engine.violations import Reason, Violation
from support.positions import NOW, do, game_at, lobby, only_reason, play, refusal

GUADALUPE = PRESETS[Preset.GUADALUPE]
SHANGHAI = PRESETS[Preset.SHANGHAI]
CAROUSEL = PRESETS[Preset.CAROUSEL]
MANIPULATION = PRESETS[Preset.MANIPULATION]
ONE_TO_THREE = with_options(
    SABRA, {"turn_draw": TurnDraw.ONE_TO_THREE, "turn_play_after_draw": TurnPlayAfterDraw.ALLOWED}
)


def kinds(applied: Applied) -> list[type]:
    return [type(event) for event in applied.events]


def turn_of(applied: Applied) -> int:
    return round_of(applied.game).turn.seat


@pytest.mark.parametrize("ruleset", [GUADALUPE, ONE_TO_THREE], ids=["ONE_OR_TWO", "ONE_TO_THREE"])
def test_a_turn_begins_with_a_draw(ruleset: Ruleset) -> None:
    game = game_at("[R4 R5 R6] / 1*{R7 B1} 2*{K1} / {K9 O9} / 1", ruleset)
    assert only_reason(game, play(1, "[R4 R5 R6 R7]")) is Reason.TURN_PHASE_WRONG
    assert only_reason(game, Pass(1)) is Reason.PASS_NOT_ALLOWED_POOL_NOT_EMPTY
    drawn = do(game, DrawTile(1))
    assert drawn.events == (TileDrawn(1, parse_tile("K9")),)
    assert round_of(drawn.game).step == Drawing(parse_tiles("K9"))
    assert only_reason(drawn.game, Pass(1)) is Reason.PASS_NOT_ALLOWED_POOL_NOT_EMPTY
    assert turn_of(do(drawn.game, play(1, "[R4 R5 R6 R7]"))) == 2


def test_a_third_draw_is_refused_in_guadalupe() -> None:  # G1
    once = do(game_at(". / 1*{B1 B5} 2*{K1} / {K9 O9 O8} / 1", GUADALUPE), DrawTile(1)).game
    twice = do(once, DrawTile(1)).game
    assert round_of(twice).step == Drawn(parse_tile("O9"))
    assert only_reason(twice, DrawTile(1)) is Reason.TURN_PHASE_WRONG
    ended = do(twice, Pass(1))
    assert (kinds(ended)[0], turn_of(ended)) == (TurnEnded, 2)


def test_a_play_is_made_after_the_second_draw() -> None:
    once = do(game_at("[R4 R5 R6] / 1*{B1 B5} 2*{K1} / {K9 R7 O8} / 1", GUADALUPE), DrawTile(1)).game
    played = do(do(once, DrawTile(1)).game, play(1, "[R4 R5 R6 R7]"))
    assert (kinds(played)[0], turn_of(played)) == (TilesPlayed, 2)


def test_the_third_draw_ends_the_turn() -> None:
    once = do(game_at("[R4 R5 R6] / 1*{B1 B5} 2*{K1} / {K9 O9 R7 O8} / 1", ONE_TO_THREE), DrawTile(1)).game
    twice = do(once, DrawTile(1)).game
    assert round_of(twice).step == Drawing(parse_tiles("K9 O9"))
    thrice = do(twice, DrawTile(1))
    assert (kinds(thrice)[0], turn_of(thrice)) == (TileDrawn, 2)
    assert only_reason(thrice.game, play(1, "[R4 R5 R6 R7]")) is Reason.NOT_YOUR_TURN


def test_with_an_empty_pool_a_turn_begins_without_a_draw() -> None:
    game = game_at("[R4 R5 R6] / 1*{R7 B1} 2*{K1} / {} / 1", GUADALUPE)
    assert turn_of(do(game, play(1, "[R4 R5 R6 R7]"))) == 2
    assert round_of(do(game, Pass(1)).game).passed == (1,)
    last = do(game_at("[R4 R5 R6] / 1*{B1} 2*{K1} / {R7} / 1", GUADALUPE), DrawTile(1)).game
    assert only_reason(last, DrawTile(1)) is Reason.POOL_EMPTY
    ended = do(last, Pass(1))
    assert (kinds(ended)[0], round_of(ended.game).passed) == (TurnEnded, ())


@pytest.mark.parametrize("ruleset", [SHANGHAI, MANIPULATION], ids=["SHANGHAI", "MANIPULATION"])
def test_a_player_who_can_play_in_shanghai_may_not_draw(ruleset: Ruleset) -> None:  # S1
    game = game_at("[R4 R5 R6] / 1*{R7 B1} 2*{K1} 3*{K3} / {K9 O9} / 1", ruleset)
    assert only_reason(game, DrawTile(1)) is Reason.DRAW_NOT_ALLOWED_PLAY_EXISTS
    assert turn_of(do(game, play(1, "[R4 R5 R6 R7]"))) == 2


def test_a_player_who_cannot_play_in_shanghai_draws_until_they_must() -> None:  # S2
    game = game_at("[R4 R5 R6] / 1*{B1 B5} 2*{K1} 3*{K3} / {K9 O9 R7 O8} / 1", SHANGHAI)
    drawn = do(game, DrawTile(1))
    assert drawn.events == (TilesDrawn(1, parse_tiles("K9 O9 R7")),)
    assert only_reason(drawn.game, Pass(1)) is Reason.PASS_NOT_ALLOWED_PLAY_EXISTS
    assert only_reason(drawn.game, DrawTile(1)) is Reason.TURN_PHASE_WRONG
    assert turn_of(do(drawn.game, play(1, "[R4 R5 R6 R7]"))) == 2


def test_a_player_who_has_drawn_the_whole_pool_without_a_play_passes() -> None:
    game = game_at("[R4 R5 R6] / 1*{B1 B5} 2*{K1} 3*{K3} / {K9 O9} / 1", SHANGHAI)
    drawn = do(game, DrawTile(1))
    assert drawn.events == (TilesDrawn(1, parse_tiles("K9 O9")),)
    assert kinds(do(drawn.game, Pass(1)))[0] is TurnEnded
    other = game_at("[R4 R5 R6] / 1*{R7 B5} 2*{K1} 3*{K3} / {} / 1", SHANGHAI)
    assert only_reason(other, Pass(1)) is Reason.PASS_NOT_ALLOWED_PLAY_EXISTS


@pytest.mark.parametrize("level", BotLevel)
def test_bots_play_the_draws_of_each_card_game(level: BotLevel) -> None:
    must = game_at("[R4 R5 R6] / 1*{R7 B5} 2*{K1} 3*{K3} / {K9 O9} / 1", SHANGHAI)
    assert isinstance(choose_action(see(must, 1), level), PlayTiles)
    drawn = do(game_at("[R4 R5 R6] / 1*{B5} 2*{K1} 3*{K3} / {R7 O9} / 1", SHANGHAI), DrawTile(1)).game
    assert isinstance(choose_action(see(drawn, 1), level), PlayTiles)
    first = game_at("[R4 R5 R6] / 1*{R7 B5} 2*{K1} / {K9 O9} / 1", GUADALUPE)
    assert choose_action(see(first, 1), level) == action_without_search(see(first, 1)) == DrawTile(1)
    nothing = do(game_at(". / 1*{R7 B5} 2*{K1} / {K9 O9} / 1", GUADALUPE), DrawTile(1)).game
    assert choose_action(see(nothing, 1), level) == DrawTile(1)
    assert choose_action(see(do(nothing, DrawTile(1)).game, 1), level) == Pass(1)


@pytest.mark.parametrize(
    ("preset", "melds", "is_meld"),
    [
        (Preset.CAROUSEL, "[R12 R13 R1]", True),
        (Preset.CAROUSEL, "[R1 R2 R3]", True),
        (Preset.CAROUSEL, "[R13 R1 R2]", False),
        (Preset.GUADALUPE, "[R12 R13 R1]", True),
        (Preset.GUADALUPE, "[R1 R2 R3]", True),
        (Preset.GUADALUPE, "[R13 R1 R2]", False),
        (Preset.SHANGHAI, "[R12 R13 R1]", False),
        (Preset.SHANGHAI, "[R1 R2 R3]", True),
    ],
)
def test_the_ace_is_low_or_high(preset: Preset, melds: str, is_meld: bool) -> None:
    (proposed,) = parse_melds(melds)
    assert isinstance(read_meld(proposed, PRESETS[preset]), Meld) is is_meld


def test_groups_of_six_colors_have_up_to_six_tiles() -> None:
    (proposed,) = parse_melds("[R7 B7 K7 O7 G7 P7]")
    assert isinstance(read_meld(proposed, PRESETS[Preset.SIX_COLORS]), Meld)
    assert tile_count(PRESETS[Preset.SIX_COLORS], 4) == 158


def drawn(position: str, ruleset: Ruleset = CAROUSEL) -> Game:
    """Returns a game in which seat 1 has drawn once."""
    return do(game_at(position, ruleset), DrawTile(1)).game


def test_a_play_after_a_draw_ends_the_turn_in_carousel() -> None:  # C1
    game = drawn(". / 1*{R7 B7 K7 R13} 2*{K1} / {K9 O9} / 1")
    played = do(game, play(1, "[R7 B7 K7]"))
    assert (kinds(played)[0], turn_of(played)) == (TilesPlayed, 2)


def test_a_third_draw_ends_the_turn_in_carousel() -> None:  # C2
    game = do(drawn(". / 1*{B7 K7 R13} 2*{K1} / {K9 O9 R7 O1} / 1"), DrawTile(1)).game
    thrice = do(game, DrawTile(1))
    assert turn_of(thrice) == 2
    assert only_reason(thrice.game, play(1, "[R7 B7 K7]")) is Reason.NOT_YOUR_TURN


def test_a_knock_with_five_points_ends_the_round() -> None:  # C3
    game = drawn(". / 1*{R1 R2} 2*{K9 K12} 3*{J B9} / {B2 O9} / 1")
    knocked = do(game, Knock(1))
    assert kinds(knocked)[:2] == [PlayerKnocked, RoundEnded]
    (result,) = knocked.game.results
    assert (result.end, result.winners) == (RoundEnd.KNOCKED, (1,))
    assert [seat.rack_value for seat in result.seats] == [5, 19, 34]


def test_a_knock_is_a_move_of_a_record() -> None:
    game = drawn(". / 1*{R1 R2} 2*{K9 K12} / {B2 O9} / 1")
    knocked = do(game, Knock(1))
    move = move_of(game, 11, NOW, knocked.events)
    assert move is not None
    assert (move.kind, move.seat, move.tiles) == (MoveKind.KNOCK, 1, ())
    assert list(actions(game, move)) == [Knock(1)]


@pytest.mark.parametrize(
    ("position", "missed"),
    [
        ("[R4 R5 R6] / 1*{R1 R3} 2*{K9} / {B2 O9} / 1", 1),
        (". / 1*{R1 R2} 2*{K9} / {B2 O9} / 1", 0),
    ],
)
def test_a_knock_is_reviewed_as_a_pass_is(position: str, missed: int) -> None:
    game = drawn(position, replace(CAROUSEL, knock_limit=6))
    after = do(game, Knock(1))
    move = move_of(game, 11, NOW, after.events)
    assert move is not None
    reviewed = to_review(4, Played(move, game, after.game))
    assert reviewed is not None
    assert (reviewed.kind, reviewed.seat, reviewed.gained(Objective.MOST_TILES)) == (MoveKind.KNOCK, 1, 0)
    best = best_turn(reviewed.situation, Objective.MOST_TILES, Budget(nodes=10_000)).turn
    assert (reviewed.missed(best, Objective.MOST_TILES) if best else 0) == missed


def test_a_knock_after_a_play_is_one_move_which_is_reviewed_as_the_play() -> None:
    game = drawn(". / 1*{R7 B7 R2 R3} 2*{K1 K12} / {K7 O9} / 1")
    after = do(game, play(1, "[R7 B7 K7]", knocks=True))
    move = move_of(game, 12, NOW, after.events)
    assert move is not None
    assert (move.kind, [*actions(game, move)]) == (MoveKind.KNOCK, [play(1, "group[R7 B7 K7]", knocks=True)])
    reviewed = to_review(5, Played(move, game, after.game))
    assert reviewed is not None
    assert reviewed.played == (3, 21)


def test_a_knock_after_a_play_has_its_table_in_the_text_of_a_record() -> None:
    knocked = Move(12, NOW, MoveKind.KNOCK, 1, table=play(1, "group[R7 B7 K7]").table)
    text = MoveText(CAROUSEL)
    assert text.format(knocked) == "[R7 B7 K7]"
    for move in (knocked, replace(knocked, table=None)):
        assert text.parse(replace(move, table=None), Piece(text.format(move)), 1) == move


def test_a_knock_with_more_points_is_refused() -> None:  # C4
    game = drawn(". / 1*{R1 R2} 2*{K9} / {B3 O9} / 1")
    assert refusal(game, Knock(1)).violations == (
        Violation(Reason.KNOCK_TOO_MANY_POINTS, metadata=(("points", 6), ("limit", 5))),
    )


def test_a_knock_before_the_draw_is_refused() -> None:  # C5
    game = game_at(". / 1*{R1 R2} 2*{K9} / {B3 O9} / 1", CAROUSEL)
    assert only_reason(game, Knock(1)) is Reason.TURN_PHASE_WRONG
    assert only_reason(game, Knock(2)) is Reason.NOT_YOUR_TURN
    empty = game_at(". / 1*{R1 R2} 2*{K9} / {} / 1", CAROUSEL)
    assert kinds(do(empty, Knock(1)))[0] is PlayerKnocked
    assert only_reason(drawn(". / 1*{R1} 2*{K9} / {B3 O9} / 1", GUADALUPE), Knock(1)) is Reason.KNOCK_NOT_IN_GAME


def test_the_lowest_rack_wins_the_differences() -> None:  # C6
    game = drawn(". / 1*{R1 R2} 2*{B12 B2} 3*{K10 K12 K13} / {B2 O9} / 1")
    (result,) = do(game, Knock(1)).game.results
    assert [seat.points for seat in result.seats] == [32, -7, -25]
    other = drawn(". / 1*{R1 R2} 2*{B1} 3*{K10} / {B2 O9} / 1")
    (result,) = do(other, Knock(1)).game.results
    assert (result.winners, [seat.points for seat in result.seats]) == ((2,), [-4, 13, -9])


@pytest.mark.parametrize("card", ["R3", "R13"])
def test_a_play_ends_the_turn_however_few_points_are_left(card: str) -> None:
    game = drawn(f". / 1*{{R7 B7 R2 {card}}} 2*{{K1 K12}} / {{K7 O9}} / 1")
    played = do(game, play(1, "[R7 B7 K7]"))
    assert (kinds(played)[0], turn_of(played)) == (TilesPlayed, 2), "a turn that went on would tell what is left"


def test_a_player_knocks_with_the_cards_that_a_play_leaves() -> None:
    game = drawn(". / 1*{R7 B7 R2 R3} 2*{K1 K12} / {K7 O9} / 1")
    knocked = do(game, play(1, "[R7 B7 K7]", knocks=True))
    assert kinds(knocked)[:2] == [TilesPlayed, PlayerKnocked]
    (result,) = knocked.game.results
    assert (result.end, result.winners, result.seats[0].points) == (RoundEnd.KNOCKED, (1,), 6)
    last = drawn(". / 1*{R7 B7} 2*{K1 K12} / {K7 O9} / 1")
    (result,) = do(last, play(1, "[R7 B7 K7]", knocks=True)).game.results
    assert result.end is RoundEnd.WENT_OUT, "with the last cards a knock means nothing"


def test_a_play_with_a_knock_that_is_not_allowed_changes_nothing() -> None:
    many = drawn(". / 1*{R7 B7 R2 R13} 2*{K1 K12} / {K7 O9} / 1")
    assert only_reason(many, play(1, "[R7 B7 K7]", knocks=True)) is Reason.KNOCK_TOO_MANY_POINTS
    assert only_reason(many, play(1, "[R7 B7 R2]", knocks=True)) is not Reason.KNOCK_TOO_MANY_POINTS
    for rack in ("R7 B7", "R7 B7 R2"):
        other = drawn(f". / 1*{{{rack}}} 2*{{K9}} / {{K7 O9}} / 1", GUADALUPE)
        assert only_reason(other, play(1, "[R7 B7 K7]", knocks=True)) is Reason.KNOCK_NOT_IN_GAME


def test_who_plays_the_last_card_goes_out_and_need_not_knock() -> None:
    (result,) = do(drawn(". / 1*{R7 B7} 2*{K1 K12} / {K7 O9} / 1"), play(1, "[R7 B7 K7]")).game.results
    assert (result.end, result.winners) == (RoundEnd.WENT_OUT, (1,))


@pytest.mark.parametrize("level", BotLevel)
def test_a_bot_knocks_when_it_is_likely_to_win_by_it(level: BotLevel) -> None:
    few = drawn(". / 1*{R1 R2} 2*{K9 K12} / {B2 O9} / 1")
    assert choose_action(see(few, 1), level) == Knock(1)
    assert choose_action(see(drawn(". / 1*{R1 R2} 2*{K9} / {B2 O9} / 1"), 1), level) == DrawTile(1)


@pytest.mark.parametrize(
    ("level", "left", "others", "knocks"),
    [
        (BotLevel.EXPERT, "R2 R3", "K1 K12", True),
        (BotLevel.MASTER, "R2 R3", "K1 K12", True),
        (BotLevel.EXPERT, "R2 R3", "K1", False),
        (BotLevel.EXPERT, "R2 R13", "K1 K12", False),
    ],
)
def test_a_bot_knocks_after_a_play(level: BotLevel, left: str, others: str, *, knocks: bool) -> None:
    game = drawn(f". / 1*{{R7 B7 {left}}} 2*{{{others}}} / {{K7 O9}} / 1")
    assert choose_action(see(game, 1), level) == play(1, "group[R7 B7 K7]", knocks=knocks)


@pytest.mark.parametrize(("players", "tiles"), [(2, 53), (3, 106), (5, 106)])
def test_two_players_of_carousel_have_one_pack(players: int, tiles: int) -> None:
    assert tile_count(CAROUSEL, players) == len(CAROUSEL.tiles(players)) == tiles


@pytest.mark.parametrize(("players", "tiles"), [(2, 106), (4, 106), (5, 160), (6, 160)])
def test_up_to_four_players_leave_out_tiles_of_the_set_for_six(players: int, tiles: int) -> None:
    six = PRESETS[Preset.SIX_PLAYERS]
    shuffled = six.tiles(players)
    game = lobby(*("Ada", "Ben", "Cleo", "Dan", "Eli", "Fay")[:players], ruleset=six)
    dealt = do(game, StartGame(1, Shuffle(shuffled, shuffled))).game
    assert len(round_of(dealt).tiles) == tiles


def test_players_without_an_initial_meld_have_melded_from_the_deal_on() -> None:
    game = lobby("Ada", "Ben", ruleset=GUADALUPE)
    tiles = tile_set(4, 2, 0)
    dealt = do(game, StartGame(1, Shuffle(tiles, tiles))).game
    assert all(rack.has_melded and len(rack.tiles) == 10 for rack in round_of(dealt).racks)
