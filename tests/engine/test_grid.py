"""The rules of the cross layout: details, and the engine's judgements beside those of the oracle."""

import random
from dataclasses import replace
from itertools import islice

import pytest

from engine.actions import TimeOut
from engine.effort import Budget
from engine.events import TurnTimedOut
from engine.family import bots_of
from engine.game import Game, Playing
from engine.melding.actions import DrawTile, PlayTiles
from engine.melding.deal import may_demand_redeal
from engine.melding.drafts import Draft
from engine.melding.events import IllegalPlayShown, TilesPlayed
from engine.melding.grid.cells import Cell, Grid, Placement
from engine.melding.grid.picture import draw_grid
from engine.melding.grid.rules import judge_grid, read_grid
from engine.melding.moves import move_of
from engine.melding.notation import format_table, parse_melds, parse_table
from engine.melding.round import MeldingRound
from engine.melding.ruleset import DealThreePairsReshuffle, InitialMeldJoker, TurnInvalidSubmission, TurnVoluntaryDraw
from engine.melding.table import melds_of
from engine.melding.turns import arrange
from engine.notation import Naming, NotationError, format_tiles, parse_tile, parse_tiles
from engine.seats import BotLevel, Player, Rack, Turn
from engine.sight import see
from engine.tiles import JOKER, in_order
from engine.violations import Reason, Refused
from oracles import cross_judge, cross_plays
from support.grids import CROSS, grid, play, play_of, table
from support.positions import NOW, do, game_at, only_reason, refusal
from support.rooms import room
from support.soak import few_of

SECONDARY = {
    "TILE_UNKNOWN": "the oracle says LINE_INVALID only",
    "TABLE_TILE_MOVED": "of a replaced joker whose new tile fits no line: the oracle says it beside LINE_INVALID",
    "CROSSING_JOKER_CONFLICT": "the oracle looks at jokers only if all lines are melds",
    "INITIAL_MELD_TABLE_MODIFIED": "the oracle also says it of missing tiles",
    "JOKER_RETRIEVAL_BEFORE_INITIAL_MELD": "the oracle also says it of missing and moved jokers",
    "INITIAL_MELD_HAS_JOKER": "the oracle also says it of moved jokers",
}
"""Reasons that the two may say or not beside another one, and when they differ."""


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("seed", few_of(range(50), 1))
def test_turns_are_judged_as_the_oracle_does(seed: int) -> None:
    """`make soak` judges more turns."""
    assert check_turns(seed, 2_000) > 500


def test_some_turns_are_judged_as_the_oracle_does() -> None:
    """A change of the rules fails at once (`make mutants`)."""
    check_turns(1, 200)


def check_turns(seed: int, count: int) -> int:
    """Compares judgements with the oracle's. Returns how many turns were legal."""
    legal = 0
    for turn in islice(cross_plays.turns(random.Random(seed)), count):
        judgement = judge_grid(play_of(turn))
        seen = {violation.reason.name for violation in judgement.violations}
        expected = {reason for reason, _ in turn.violations()}
        assert bool(seen) == bool(expected), turn
        assert seen - SECONDARY.keys() == expected - SECONDARY.keys(), turn
        assert seen == expected or seen & expected, turn
        if not seen:
            legal += 1
            if turn.options.manipulation == "OFF":
                points = cross_judge.points(turn.before, turn.after, turn.rack, turn.options)
                assert judgement.points == points, turn
            assert read_grid(judgement.table, play_of(turn).ruleset) == judgement.table
    return legal


def reasons(before: str, after: str, rack: str) -> list[str]:
    return [violation.reason.name for violation in judge_grid(play(before, after, rack)).violations]


def test_the_first_tile_of_a_cell_counts_and_every_other_one_is_named() -> None:
    stacked = Grid((*grid("0,0[R3 R4 R5 R6]").placements, *grid("3,0[B6]").placements, *grid("3,0[K6]").placements))
    judged = judge_grid(
        play("0,0[R3 R4 R5]", format_table(stacked), "R6 B6 K6"),
    )
    assert [(one.reason.name, one.subject) for one in judged.violations] == [
        ("CELL_OCCUPIED", "table_after[4]"),
        ("CELL_OCCUPIED", "table_after[5]"),
    ]


def test_a_tile_under_another_one_has_not_moved() -> None:
    assert reasons("0,0[R3 R4 R5]", "2,0[B5] | 0,0[R3 R4 R5]", "B5") == ["CELL_OCCUPIED"]


def test_a_tile_that_the_game_does_not_have_is_named_even_where_nothing_else_is_wrong_with_it() -> None:
    assert "TILE_UNKNOWN" in reasons("0,0[R3 R4 R5]", "0,0[R3 R4 R5] | 1,1[B4] | 1,2[G4]", "B4 G4")


def test_a_joker_that_was_retrieved_counts_only_if_it_is_worth_more() -> None:
    judged = judge_grid(play("0,0[R3 J R5]", "0,0[R3 R4 R5 J] | 0,3[K1 K2 J]", "R4 K1 K2 J"))
    assert not judged.violations
    assert judged.points == 4 + 1 + 2 + 6


def test_the_jokers_of_a_column_stand_for_what_is_left() -> None:
    read = read_grid(grid("0,0[R3 J R5] | 1,1[B4] | 1,2[J]"), CROSS)
    assert read is not None
    faces = {placement.cell: placement.faces for placement in read.placements if placement.faces}
    assert faces == {
        Cell(1, 0): (parse_tile("R4"),),
        Cell(1, 2): (parse_tile("K4"), parse_tile("O4")),
    }


@pytest.mark.parametrize("text", ["0,0[R3]", "0,0[R3 R5 R6]", "0,0[R3 J R5] | 1,1[B9] | 1,2[K9]", "128,0[R3 R4 R5]"])
def test_what_is_no_table_is_not_read(text: str) -> None:
    assert read_grid(grid(text), CROSS) is None


def test_a_table_is_in_the_order_of_rows() -> None:
    judged = judge_grid(play(".", "1,1[B9] | 0,0[K8 K9 K10] | 1,2[R9]", "K8 K9 K10 B9 R9", has_melded=False))
    assert format_table(judged.table) == "0,0[K8 K9 K10] | 1,1[B9] | 1,2[R9]"


def test_a_grid_has_no_melds() -> None:
    with pytest.raises(TypeError):
        melds_of(grid("0,0[R3 R4 R5]"))


# Texts


@pytest.mark.parametrize("text", [".", "0,0[R3 R4 R5] | 1,1[B4] | 1,2[K4]", "-3,-127[J] | 5,2[O13 G1]"])
def test_a_grid_as_text_is_read_as_the_same_grid(text: str) -> None:
    assert format_table(grid(text)) == text


def test_a_grid_of_cards_has_their_names() -> None:
    assert format_table(grid("0,0[R10 R11 J]"), Naming.CARDS) == "0,0[10H JH *]"


@pytest.mark.parametrize(
    ("text", "column"), [("0,0[R3 R4] R5", 12), ("0,0[R3 R4] | [R5]", 14), ("0,0[R3 X4]", 8), ("0,0[R3", 1)]
)
def test_an_error_in_the_text_of_a_grid_names_the_column(text: str, column: int) -> None:
    with pytest.raises(NotationError) as error:
        parse_table(text)
    assert error.value.column == column


def test_a_grid_is_drawn_row_by_row() -> None:
    drawn = draw_grid(table("0,0[R3 J R5] | 1,1[B4] | 1,2[K4] | 4,2[O10 O11 O12]"))
    assert drawn.splitlines() == [
        "R3  J   R5  .   .   .   .",
        ".   B4  .   .   .   .   .",
        ".   K4  .   .   O10 O11 O12",
    ]
    assert draw_grid(Grid()) == ""


def test_placements_in_one_cell_are_formatted_one_after_the_other() -> None:
    twice = Grid((Placement(parse_tile("R3"), Cell(0, 0)), Placement(parse_tile("R4"), Cell(0, 0))))
    assert format_table(twice) == "0,0[R3] | 0,0[R4]"


# Plays in a game


def cross_game(rack: str, invalid: TurnInvalidSubmission = TurnInvalidSubmission.REJECT) -> Game:
    """Returns a game of the cross layout in which seat 1, who has melded, has a rack; the table is a run."""
    ruleset = replace(CROSS, turn_invalid_submission=invalid)
    racks = (Rack(1, in_order(parse_tiles(rack)), has_melded=True), Rack(2, parse_tiles("K13"), has_melded=True))
    round_ = MeldingRound(1, (1, 2), table("0,0[R3 R4 R5]"), racks, parse_tiles("B9 O9"), Turn(1, None))
    players = (Player(1, "Ada"), Player(2, "Ben"))
    return Game(ruleset, room(ruleset).settings, 1, players, Playing(round_))


@pytest.mark.parametrize("sent", ["[R3 R4 R5]", "[R3 R4 R5 R6]"])
def test_melds_are_refused_where_the_table_is_a_grid(sent: str) -> None:
    game = cross_game("R6 O1")
    assert only_reason(game, PlayTiles(1, parse_melds(sent))) is Reason.TABLE_LAYOUT_MISMATCH
    refused = arrange(game, 1, parse_melds(sent), NOW)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.TABLE_LAYOUT_MISMATCH


def test_a_grid_is_refused_where_the_table_has_melds() -> None:
    game = game_at("[R3 R4 R5] / 1*{R6 O1} 2*{K13} / {B9 O9} / 1")
    assert only_reason(game, PlayTiles(1, grid("0,0[R3 R4 R5 R6]"))) is Reason.TABLE_LAYOUT_MISMATCH


def test_a_player_who_can_play_on_a_grid_may_have_to() -> None:
    game = cross_game("R6 O1")
    must = replace(game, ruleset=replace(CROSS, turn_voluntary_draw=TurnVoluntaryDraw.ONLY_IF_NO_PLAY))
    assert only_reason(must, DrawTile(1)) is Reason.DRAW_NOT_ALLOWED_PLAY_EXISTS


@pytest.mark.parametrize(("rack", "expected"), [("R6 O1", "R6"), ("O1 K13", None)])
def test_a_bot_plays_on_a_grid_from_the_view_of_its_seat(rack: str, expected: str | None) -> None:
    game = cross_game(rack)
    view = see(game, 1)
    action = bots_of(view).choose_action(view, BotLevel.MASTER, Budget(nodes=5_000))
    played = [one for one in do(game, action).events if isinstance(one, TilesPlayed)]
    assert [format_tiles(one.tiles) for one in played] == ([expected] if expected else [])


def test_an_empty_table_has_any_layout() -> None:
    game = cross_game("R6 O1")
    assert Reason.TABLE_TILE_MISSING in {one.reason for one in refusal(game, PlayTiles(1, ())).violations}


def test_a_draft_on_a_grid_may_be_unfinished_and_may_not_have_foreign_tiles() -> None:
    game = cross_game("R6 B4 O1")
    unfinished = arrange(game, 1, grid("0,0[R3 R4 R5] | 1,1[B4]"), NOW)
    assert isinstance(unfinished, Draft)
    assert not unfinished.is_legal
    finished = arrange(game, 1, grid("0,0[R3 R4 R5 R6]"), NOW)
    assert isinstance(finished, Draft)
    assert finished.is_legal
    foreign = arrange(game, 1, grid("0,0[R3 R4 R5 J]"), NOW)
    assert isinstance(foreign, Refused)
    assert foreign.reason is Reason.TILE_NOT_IN_RACK


def test_a_legal_draft_is_played_when_the_time_is_up() -> None:
    game = cross_game("R6 O1")
    assert isinstance(game.phase, Playing)
    round_ = replace(game.phase.round, turn=Turn(1, NOW - 1))
    late = replace(game, phase=Playing(round_))
    [played] = [one for one in do(late, TimeOut(grid("0,0[R3 R4 R5 R6]"))).events if isinstance(one, TilesPlayed)]
    assert format_table(played.table) == "0,0[R3 R4 R5 R6]"
    untouched = do(late, TimeOut(grid("2,0[R5] | 0,0[R3 R4]"))).events
    assert not [one for one in untouched if isinstance(one, TilesPlayed)]
    assert [len(one.tiles) for one in untouched if isinstance(one, TurnTimedOut)] == [1]


def test_a_new_deal_may_be_demanded_while_the_grid_is_empty() -> None:
    rules = replace(CROSS, deal_three_pairs_reshuffle=DealThreePairsReshuffle.ON_REQUEST, deal_hand_size=6)
    racks = tuple(Rack(seat, in_order(parse_tiles("R3 R3 B5 B5 K9 K9"))) for seat in (1, 2))
    round_ = MeldingRound(1, (1, 2), Grid(), racks, parse_tiles("B9 O9"), Turn(1, None))
    assert may_demand_redeal(round_, 1, rules)
    assert not may_demand_redeal(replace(round_, table=table("0,0[R3 R4 R5]")), 1, rules)


def test_an_illegal_play_is_shown_as_it_was_laid() -> None:
    game = cross_game("R6 O1", TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM)
    for sent, text in (("5,0[O1] | 0,0[R3 R4 R5]", "0,0[R3 R4 R5] | 5,0[O1]"), (".", ".")):
        applied = do(game, PlayTiles(1, grid(sent)))
        [shown] = [one for one in applied.events if isinstance(one, IllegalPlayShown)]
        assert format_table(shown.table) == sent
        move = move_of(game, 2, NOW, applied.events)
        assert move is not None
        assert move.table is not None
        assert move.table == parse_table(text)


# Which tile of a play is at fault


@pytest.mark.parametrize("after", ["0,0[R3 R4]", "0,0[B7] | 0,1[K7]"])
def test_two_neighbors_are_a_line_and_not_isolated(after: str) -> None:
    rack = "R3 R4 B7 K7"
    assert [one.reason.name for one in judge_grid(play(".", after, rack)).violations] == ["LINE_INVALID"]


@pytest.mark.parametrize("after", ["0,0[R3] | 2,0[R4]", "0,0[B7] | 0,2[K7]"])
def test_tiles_with_a_cell_between_them_are_isolated(after: str) -> None:
    violations = judge_grid(play(".", after, "R3 R4 B7 K7")).violations
    assert [one.reason.name for one in violations] == ["CELL_ISOLATED"] * 2


def test_a_legal_play_leaves_a_table_with_the_faces_of_its_jokers_only() -> None:
    judged = judge_grid(play(".", "0,0[R3 J R5]", "R3 J R5"))
    assert [placement.faces for placement in judged.table.placements] == [(), (parse_tile("R4"),), ()]


def test_a_joker_that_a_row_fixes_leaves_the_other_face_to_the_joker_of_its_column() -> None:
    read = read_grid(grid("0,0[R4 J R6] | 1,1[B5] | 1,2[J] | 1,3[K5]"), CROSS)
    assert read is not None
    assert {placement.cell.y: placement.faces for placement in read.placements if placement.cell.x == 1} == {
        0: (parse_tile("R5"),),
        1: (),
        2: (parse_tile("O5"),),
        3: (),
    }


@pytest.mark.parametrize(
    ("after", "rack", "expected"),
    [
        ("0,0[K4 K5 K6]", "K4 K5", ["TILE_NOT_IN_RACK"]),
        ("0,0[K4 K5]", "K4 K5", ["LINE_INVALID"]),
        (".", "K4 K5", ["NO_RACK_TILE_PLAYED"]),
        ("0,0[K4 K5 K6]", "K4 K5 K6", ["INITIAL_MELD_BELOW_THRESHOLD"]),
    ],
)
def test_the_points_of_an_initial_meld_are_named_only_if_all_else_is_right(
    after: str, rack: str, expected: list[str]
) -> None:
    violations = judge_grid(play(".", after, rack, has_melded=False)).violations
    assert [one.reason.name for one in violations] == expected


def test_a_forbidden_joker_of_the_initial_meld_is_named_with_the_table() -> None:
    rules = replace(CROSS, initial_meld_joker=InitialMeldJoker.FORBIDDEN)
    judged = judge_grid(play(".", "0,0[K10 J K12]", "K10 K12 J", has_melded=False, ruleset=rules))
    assert [(one.reason.name, one.subject, one.tiles) for one in judged.violations] == [
        ("INITIAL_MELD_HAS_JOKER", "table_after", (JOKER,))
    ]
