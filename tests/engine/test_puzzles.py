"""Puzzles: which positions are puzzles, how they are graded, how answers are judged; one subject."""

from dataclasses import replace

import pytest

from engine.effort import Budget
from engine.melding.analysis import AnySituation, Situation, situation_of
from engine.melding.notation import parse_melds, parse_table, parse_turn
from engine.melding.position import legal_table
from engine.melding.presets import PRESETS
from engine.melding.puzzles import (
    Difficulty,
    Grade,
    Puzzle,
    check,
    difficulty_in,
    format_puzzle,
    parse_puzzle,
    puzzle_of,
)
from engine.melding.ruleset import SABRA, Preset, Ruleset, TurnDraw, with_options
from engine.notation import format_tiles, parse_tiles
from engine.violations import Reason

CROSS, TWIST = PRESETS[Preset.CROSS], PRESETS[Preset.TWIST]
GROWS = "0,0[R3 R4 R5] + *{R6}"


def situation(text: str, ruleset: Ruleset = SABRA) -> AnySituation:
    proposed, rack = parse_turn(text)
    table = legal_table(proposed, ruleset)
    assert table is not None
    return situation_of(table, rack.tiles, rack.has_melded, ruleset)


def puzzle(text: str, ruleset: Ruleset = SABRA) -> Puzzle:
    made = puzzle_of(situation(text, ruleset), Budget())
    assert made
    return made


def test_a_puzzle_has_the_tiles_of_its_best_turn_and_a_grade() -> None:
    made = puzzle("[R3 R4 R5 R6] | [B6 K6 O6] + *{R7 R8 B3}")
    assert format_tiles(made.tiles) == "R7 R8"
    assert made.grade == Grade(steps=1, melds=1, jokers=0)


def test_the_grade_counts_what_changes() -> None:
    freed = puzzle("[O1 O2 O3] | [B1 J B3] + *{R4 R5 B2}")
    assert freed.grade == Grade(steps=3, melds=1, jokers=1), "B2 frees the joker, which R4 and R5 need"
    assert puzzle("[B6 K6 O6 R6] | [B7 K7 O7 R7] + *{R5}").grade == Grade(steps=3, melds=2, jokers=0)


def test_on_a_grid_the_grade_counts_tiles_and_lines() -> None:
    assert puzzle(GROWS, CROSS).grade == Grade(steps=1, melds=1, jokers=0)
    assert puzzle("0,0[R3 J R5] + *{R6}", CROSS).grade == Grade(steps=1, melds=1, jokers=1)


@pytest.mark.parametrize(
    ("text", "ruleset"),
    [
        ("[R3 R4 R5] + {R6}", SABRA),  # its player has not melded
        ("[R3 R4 R5] + *{R7}", SABRA),  # no turn
        ("[B6 K6 O6 R6] + *{R4 R5 B4 B5}", SABRA),  # two outcomes: R6 or B6 is taken
        ("[R3 R4 R5] + *{B1 B2 B3}", SABRA),  # the table does not change
        ("0,0[R3 R4 R5] + *{R6 B1}", CROSS),  # not all turns of a grid are searched, and this one leaves a tile
    ],
)
def test_not_every_position_is_a_puzzle(text: str, ruleset: Ruleset) -> None:
    assert puzzle_of(situation(text, ruleset), Budget()) is None


def test_a_position_whose_best_turn_pulls_from_the_river_is_none() -> None:
    rules = with_options(SABRA, {"turn_draw": TurnDraw.TWO_RIVER})
    found = situation("[R3 R4 R5] + *{B1}", rules)
    assert isinstance(found, Situation)
    assert puzzle_of(replace(found, rack=parse_tiles("R7"), river=parse_tiles("R6")), Budget()) is None


def test_a_position_beyond_the_budget_is_none() -> None:
    many = "[B6 K6 O6 R6] | [R1 R2 R3] | [K1 K2 K3] | [O8 O9 O10] + *{R4 R5 K4 O11 B1 B2 B9 R12 K13 K10}"
    assert puzzle_of(situation(many), Budget()) is not None
    assert puzzle_of(situation(many), Budget(nodes=30)) is None


@pytest.mark.parametrize(
    ("text", "ruleset"), [("[B6 K6 O6 R6] | [K1 J K3] + *{R4 R5}", SABRA), (GROWS, CROSS), ("[R3 D R6] + *{R7}", TWIST)]
)
def test_a_puzzle_survives_its_text(text: str, ruleset: Ruleset) -> None:
    made = puzzle(text, ruleset)
    assert parse_puzzle(format_puzzle(made), ruleset) == made
    assert difficulty_in(format_puzzle(made)) is made.grade.difficulty


def test_text_with_an_illegal_table_is_refused() -> None:
    with pytest.raises(ValueError, match="not legal"):
        parse_puzzle("1 1 0 [R3 R5 R6] + {R7} -> [R3 R5 R6 R7] ; {}", SABRA)


def test_any_turn_as_good_as_the_best_solves_a_puzzle() -> None:
    made = puzzle("[B6 K6 O6 R6] | [R1 R2 R3] + *{R4 R5}")
    for answer in ("[B6 K6 O6] | [R1 R2 R3] | [R4 R5 R6]", "[B6 K6 O6] | [R1 R2 R3 R4 R5 R6]"):
        checked = check(made, parse_melds(answer))
        assert checked.is_solved
        assert checked.missing == ()


def test_a_legal_answer_that_is_not_the_best_leaves_tiles() -> None:
    made = puzzle("[R3 R4 R5] | [B6 K6 O6] + *{R6 R7}")
    checked = check(made, parse_melds("[R3 R4 R5 R6] | [B6 K6 O6]"))
    assert not checked.is_solved
    assert not checked.judgement.violations
    assert format_tiles(checked.missing) == "R7"


def test_an_illegal_answer_has_all_its_violations() -> None:
    made = puzzle("[R3 R4 R5] | [B6 K6 O6] + *{R6 R7}")
    checked = check(made, parse_melds("[R3 R4] | [R5 R6 R7] | [B6 O6]"))
    assert not checked.is_solved
    assert [violation.reason for violation in checked.judgement.violations] == [
        Reason.TABLE_TILE_MISSING,
        Reason.MELD_TOO_SHORT,
        Reason.MELD_TOO_SHORT,
    ]
    assert checked.missing == ()


def test_answers_on_a_grid_are_judged_as_grids() -> None:
    made = puzzle(GROWS, CROSS)
    assert check(made, parse_table("0,0[R3 R4 R5 R6]")).is_solved
    assert check(made, ()).judgement.violations
    with pytest.raises(TypeError, match="cells"):
        check(made, parse_melds("[R3 R4 R5 R6]"))


@pytest.mark.parametrize("part", ["steps", "melds", "jokers"])
def test_difficulty_is_monotone_in_its_parts(part: str) -> None:
    for steps in range(0, 40, 3):
        for melds in range(10):
            for jokers in range(4):
                grade = Grade(steps, melds, jokers)
                harder = replace(grade, **{part: getattr(grade, part) + 1})
                assert harder.difficulty >= grade.difficulty
    assert {Grade(steps, 1, 0).difficulty for steps in range(40)} == set(Difficulty)
