import random
from collections import Counter
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.melding.melds import MeldKind
from engine.melding.notation import parse_play
from engine.melding.play import Play
from engine.melding.rules import judge
from engine.melding.ruleset import (
    SABRA,
    InitialMeldComparison,
    InitialMeldCount,
    InitialMeldJoker,
    JokersDeclaration,
    JokersMaxPerMeld,
    Ruleset,
)
from engine.melding.table import melds_of
from engine.notation import format_tiles, parse_tiles
from engine.tiles import JOKER, Tile, value_of
from engine.violations import Reason, Violation
from support.plays import judge_text, judged, play_of, to_tables

GREATER_THAN = replace(SABRA, initial_meld_comparison=InitialMeldComparison.GREATER_THAN)
SINGLE_MELD = replace(SABRA, initial_meld_count=InitialMeldCount.SINGLE_MELD)
ONE_MELD_REACHES = replace(SABRA, initial_meld_count=InitialMeldCount.ONE_MELD_REACHES_THRESHOLD)
ONE_MELD_EXCEEDS = replace(ONE_MELD_REACHES, initial_meld_comparison=InitialMeldComparison.GREATER_THAN)
JOKER_ZERO = replace(SABRA, initial_meld_joker=InitialMeldJoker.ZERO)
JOKER_FORBIDDEN = replace(SABRA, initial_meld_joker=InitialMeldJoker.FORBIDDEN)
THRESHOLD_0 = replace(SABRA, initial_meld_threshold=0)
THRESHOLD_50 = replace(SABRA, initial_meld_threshold=50)
NO_JOKERS = replace(SABRA, geometry_jokers=0)
ONE_JOKER_A_MELD = replace(SABRA, jokers_max_per_meld=JokersMaxPerMeld.ONE)
EXPLICIT = replace(SABRA, jokers_declaration=JokersDeclaration.EXPLICIT_WHEN_AMBIGUOUS)


LEGAL = [
    # play, points of the tiles played
    ("a group from the rack", ". + *{R7 B7 K7 O1} -> [R7 B7 K7] ; {O1}", 21),
    ("below the threshold after the initial meld", "[R9 B9 K9] + *{R1 B1 K1} -> [R9 B9 K9] | [R1 B1 K1] ; {}", 3),
    ("a run grows at its end", "[R4 R5 R6] + *{R7 B1} -> [R4 R5 R6 R7] ; {B1}", 7),
    ("a run grows at both ends", "[R4 R5 R6] + *{R3 R7} -> [R3 R4 R5 R6 R7] ; {}", 10),
    ("a group gets its fourth color", "[R7 B7 K7] + *{O7} -> [R7 B7 K7 O7] ; {}", 7),
    ("shift", "[R4 R5 R6] | [B3 K3 O3] + *{R7 O4 B4} -> [R5 R6 R7] | [B3 K3 O3] | [R4 B4 O4] ; {}", 15),
    ("split", "[B6 B7 B8 B9 B10] + *{B8} -> [B6 B7 B8] | [B8 B9 B10] ; {}", 8),
    ("split in three", "[R1 R2 R3 R4 R5 R6 R7 R8] + *{R3} -> [R1 R2 R3] | [R3 R4 R5] | [R6 R7 R8] ; {}", 3),
    ("substitute", "[R7 B7 K7] | [R4 R5 R6] + *{O7} -> [B7 K7 O7] | [R4 R5 R6 R7] ; {}", 7),
    ("remove from a group of four", "[R7 B7 K7 O7] + *{R5 R6} -> [B7 K7 O7] | [R5 R6 R7] ; {}", 11),
    ("remove from a run of four", "[R4 R5 R6 R7] + *{B7 K7} -> [R4 R5 R6] | [R7 B7 K7] ; {}", 14),
    ("joker retrieved by its tile", "[R4 J R6] + *{R5 B1 K1} -> [R4 R5 R6] | [B1 K1 J] ; {}", 7),
    ("joker retrieved by splitting its run", "[R1 R2 R3 J] + *{B9 K9} -> [R1 R2 R3] | [B9 K9 J] ; {}", 18),
    ("joker of a group of three replaced by a color", "[R7 B7 J] + *{O7 K8 K9} -> [R7 B7 O7] | [J K8 K9] ; {}", 24),
    ("joker changes its role in its meld", "[B3 B4 J] + *{B5} -> [B3 B4 B5 J] ; {}", 5),
    ("both jokers in one meld", "[R4 J R6] + *{J} -> [R4 J R6 J] ; {}", 7),
    ("table dissolved",
     "[R1 R2 R3] | [B1 B2 B3] | [K1 K2 K3] + *{O1} -> [R1 B1 K1 O1] | [R2 B2 K2] | [R3 B3 K3] ; {}", 1),
    ("a group in another order", "[R7 B7 K7] + *{R1 R2 R3} -> [K7 R7 B7] | [R1 R2 R3] ; {}", 6),
    ("melds in another order", "[R7 B7 K7] | [R1 R2 R3] + *{R4} -> [R1 R2 R3 R4] | [R7 B7 K7] ; {}", 4),
    ("initial meld of exactly the threshold", ". + {R10 B10 K10 O1} -> [R10 B10 K10] ; {O1}", 30),
    ("initial meld of several melds", ". + {R5 B5 K5 R4 B4 K4 O4} -> [R5 B5 K5] | [R4 B4 K4 O4] ; {}", 31),
    ("initial meld with a joker as its tile", ". + {R10 R11 J} -> [R10 R11 J] ; {}", 33),
    ("initial meld beside the table", "[R4 J R6] + {R10 B10 K10} -> [R4 J R6] | [R10 B10 K10] ; {}", 30),
    ("initial meld of the same faces as one on the table",
     "[R9 R10 R11] + {R9 R10 R11} -> [R9 R10 R11] | [R9 R10 R11] ; {}", 30),
    ("initial meld before a group in another order",
     "[R7 B7 K7] + {R10 B10 K10} -> [R10 B10 K10] | [K7 R7 B7] ; {}", 30),
    ("all tiles in the initial meld", ". + {R10 R11 R12 R13} -> [R10 R11 R12 R13] ; {}", 46),
]  # fmt: skip


@pytest.mark.parametrize(("text", "points"), [row[1:] for row in LEGAL], ids=[row[0] for row in LEGAL])
def test_a_legal_play_has_no_violation_and_the_stated_rack(text: str, points: int) -> None:
    play, parsed = play_of(text), parse_play(text.replace("+ *", "+ "))
    judgement = judged(play)
    assert judgement.violations == ()
    assert judgement.rack_left == parsed.rack_after
    assert Counter(judgement.tiles_played) == Counter(parsed.rack_before) - Counter(parsed.rack_after)
    assert [meld.tiles for meld in judgement.table] == [meld.tiles for meld in melds_of(parsed.table_after)]
    assert judgement.points == points


@dataclass(frozen=True)
class Row:
    """A play that breaks one rule, its violation, and the ruleset."""

    text: str
    reason: Reason
    subject: str = "table_after"
    tiles: str = ""
    metadata: tuple[tuple[str, int], ...] = ()
    ruleset: Ruleset = SABRA


def below(total: int, threshold: int = 30) -> tuple[tuple[str, int], ...]:
    return (("total", total), ("threshold", threshold))


def best_of(best: int) -> tuple[tuple[str, int], ...]:
    return (("best", best), ("threshold", 30))


ILLEGAL = [
    # Conservation
    Row("[R4 R5 R6 J] + *{R7} -> [R4 R5 R6 R7] ; {}", Reason.JOKER_TO_RACK, tiles="J"),
    Row("[R4 J R6 J] + *{R5 R7} -> [R4 R5 R6 R7] ; {}", Reason.JOKER_TO_RACK, tiles="J J"),
    Row("[R4 R5 R6 R7] + *{R8 R9 R10} -> [R4 R5 R6] | [R8 R9 R10] ; {}", Reason.TABLE_TILE_MISSING, tiles="R7"),
    Row("[R4 R5 R6] + *{B1 B2 B3} -> [B1 B2 B3] ; {}", Reason.TABLE_TILE_MISSING, tiles="R4 R5 R6"),
    Row(". + *{R7 B7 K7} -> [R7 B7 K7] | [R7 B7 K7] ; {}", Reason.TILE_DUPLICATED, tiles="R7 B7 K7"),
    Row("[R7 B7 K7] | [R6 R7 R8] + *{R6 R8 R9} -> [R7 B7 K7] | [R6 R7 R8 R9] | [R6 R7 R8] ; {}",
        Reason.TILE_DUPLICATED, tiles="R7"),
    Row("[R7 B7 J] | [R1 R2 J] + *{B1 B2 B3} -> [R7 B7 J] | [R1 R2 J J] | [B1 B2 B3] ; {}",
        Reason.TILE_DUPLICATED, tiles="J"),
    Row(". + *{R7 B7 K1} -> [R7 B7 K7] ; {K1}", Reason.TILE_NOT_IN_RACK, tiles="K7"),
    Row(". + *{R7 B7 K1} -> [R7 B7 J] ; {K1}", Reason.TILE_NOT_IN_RACK, tiles="J"),
    Row("[R4 R5 R6 R7] + *{B1} -> [R4 R5 R6 R7] ; {B1}", Reason.NO_RACK_TILE_PLAYED),
    Row("[R4 R5 R6 R7 R8 R9] + *{B1} -> [R4 R5 R6] | [R7 R8 R9] ; {B1}", Reason.NO_RACK_TILE_PLAYED),
    Row(". + *{B1} -> . ; {B1}", Reason.NO_RACK_TILE_PLAYED),
    # Melds
    Row(". + *{R1 R2 R3} -> [R1 R2 R3] | [] ; {}", Reason.MELD_EMPTY, "table_after[1]"),
    Row(". + *{R1 R2 B9} -> [R1 R2] ; {B9}", Reason.MELD_TOO_SHORT, "table_after[0]", "R1 R2"),
    Row("[R1 R2 R3 R4] + *{R5} -> [R1 R2] | [R3 R4 R5] ; {}", Reason.MELD_TOO_SHORT, "table_after[0]", "R1 R2"),
    Row(". + *{J J J} -> [J J J] ; {}", Reason.MELD_ALL_JOKERS, "table_after[0]", "J J J",
        ruleset=replace(SABRA, geometry_jokers=4)),
    Row(". + *{R4 R5 J J} -> [R4 R5 J J] ; {}", Reason.JOKERS_TOO_MANY, "table_after[0]", "R4 R5 J J",
        ruleset=ONE_JOKER_A_MELD),
    Row(". + *{R4 J J} -> [R4 J J] ; {}", Reason.MELD_KIND_AMBIGUOUS, "table_after[0]", "R4 J J", ruleset=EXPLICIT),
    Row(". + *{R4 R5 R6} -> group[R4 R5 R6] ; {}", Reason.MELD_KIND_MISMATCH, "table_after[0]", "R4 R5 R6"),
    Row("[R4 R5 R6] + *{R8} -> [R4 R5 R6 R8] ; {}", Reason.RUN_GAP, "table_after[0]", "R4 R5 R6 R8"),
    Row("[R7 B7 K7] + *{R7} -> [R7 B7 K7 R7] ; {}", Reason.GROUP_COLOR_REPEAT, "table_after[0]", "R7 B7 K7 R7"),
    # The initial meld
    Row("[R4 J R6] + {R5 B10 K10 O10 B9 K9} -> [R4 R5 R6] | [B10 K10 O10] | [B9 K9 J] ; {}",
        Reason.JOKER_RETRIEVAL_BEFORE_INITIAL_MELD, tiles="R4 J R6"),
    Row("[R4 R5 R6] + {R7 B10 K10 O10} -> [R4 R5 R6 R7] | [B10 K10 O10] ; {}",
        Reason.INITIAL_MELD_TABLE_MODIFIED, tiles="R4 R5 R6"),
    Row("[R4 R5 R6 R7 R8 R9] + {B10 K10 O10} -> [R4 R5 R6] | [R7 R8 R9] | [B10 K10 O10] ; {}",
        Reason.INITIAL_MELD_TABLE_MODIFIED, tiles="R4 R5 R6 R7 R8 R9"),
    Row("[R4 R5 J] + {R7 B10 K10 O10} -> [R4 R5 J R7] | [B10 K10 O10] ; {}",
        Reason.INITIAL_MELD_TABLE_MODIFIED, tiles="R4 R5 J"),
    Row("[R4 B4 J] + {K4 B10 K10 O10} -> [R4 B4 J K4] | [B10 K10 O10] ; {}",
        Reason.INITIAL_MELD_TABLE_MODIFIED, tiles="R4 B4 J"),
    Row("[B3 B4 J B6 B7 B8] + {B10 K10 O10} -> [B3 B4 J] | [B6 B7 B8] | [B10 K10 O10] ; {}",
        Reason.INITIAL_MELD_TABLE_MODIFIED, tiles="B3 B4 J B6 B7 B8"),
    Row("[R3 R4 J R6] + {K3 O3 B10 K10 O10} -> [R4 J R6] | [R3 K3 O3] | [B10 K10 O10] ; {}",
        Reason.INITIAL_MELD_TABLE_MODIFIED, tiles="R3 R4 J R6"),
    Row("[R7 B7 J J] + {K12 O12 B10 K10 O10} -> [R7 B7 J] | [K12 O12 J] | [B10 K10 O10] ; {}",
        Reason.JOKER_RETRIEVAL_BEFORE_INITIAL_MELD, tiles="R7 B7 J J"),
    Row("[B3 B4 J] + {B5 B10 K10 O10} -> [B3 B4 B5 J] | [B10 K10 O10] ; {}",
        Reason.JOKER_RETRIEVAL_BEFORE_INITIAL_MELD, tiles="B3 B4 J"),
    Row(". + {R10 R11 J} -> [R10 R11 J] ; {}",
        Reason.INITIAL_MELD_HAS_JOKER, tiles="R10 R11 J", ruleset=JOKER_FORBIDDEN),
    Row(". + {R10 B10 K10 R1 R2 R3} -> [R10 B10 K10] | [R1 R2 R3] ; {}",
        Reason.INITIAL_MELD_SINGLE_MELD_REQUIRED, ruleset=SINGLE_MELD),
    Row(". + {R9 B9 K9 R5 B5 K5} -> [R9 B9 K9] | [R5 B5 K5] ; {}",
        Reason.INITIAL_MELD_NO_MELD_REACHES_THRESHOLD, metadata=best_of(27), ruleset=ONE_MELD_REACHES),
    Row(". + {R10 B10 K10 R5 B5 K5} -> [R10 B10 K10] | [R5 B5 K5] ; {}",
        Reason.INITIAL_MELD_NO_MELD_REACHES_THRESHOLD, metadata=best_of(30), ruleset=ONE_MELD_EXCEEDS),
    Row(". + {R9 B9 K9} -> [R9 B9 K9] ; {}", Reason.INITIAL_MELD_BELOW_THRESHOLD, metadata=below(27)),
    Row("[R10 B10 K10] + {R9 B9 K9} -> [R10 B10 K10] | [R9 B9 K9] ; {}",
        Reason.INITIAL_MELD_BELOW_THRESHOLD, metadata=below(27)),
    Row(". + {R10 B10 K10} -> [R10 B10 K10] ; {}",
        Reason.INITIAL_MELD_BELOW_THRESHOLD, metadata=below(30), ruleset=GREATER_THAN),
    Row(". + {R10 R11 J} -> [R10 R11 J] ; {}",
        Reason.INITIAL_MELD_BELOW_THRESHOLD, metadata=below(21), ruleset=JOKER_ZERO),
    Row(". + {R12 B12 K12 O12} -> [R12 B12 K12 O12] ; {}",
        Reason.INITIAL_MELD_BELOW_THRESHOLD, metadata=below(48, 50), ruleset=THRESHOLD_50),
]  # fmt: skip


@pytest.mark.parametrize("row", ILLEGAL, ids=[f"{row.reason.name}-{place}" for place, row in enumerate(ILLEGAL)])
def test_a_play_that_breaks_one_rule_has_that_violation_alone(row: Row) -> None:
    violation = Violation(row.reason, row.subject, parse_tiles(row.tiles), row.metadata)
    assert judge_text(row.text, row.ruleset).violations == (violation,)


def test_a_joker_of_a_game_without_jokers_is_unknown_and_nothing_else() -> None:
    judgement = judge_text(". + *{R1 R2 R3} -> [R1 R2 R3] | [B4 J B6] ; {}", NO_JOKERS)
    assert [v.reason for v in judgement.violations] == [Reason.TILE_NOT_IN_RACK, Reason.TILE_UNKNOWN]
    assert [v.tiles for v in judgement.violations] == [parse_tiles("B4 B6"), parse_tiles("B4 J B6")]


UNDER_OPTIONS = [
    ("exceeds the threshold", ". + {R11 B11 K11} -> [R11 B11 K11] ; {}", GREATER_THAN),
    ("a single meld", ". + {R10 B10 K10} -> [R10 B10 K10] ; {}", SINGLE_MELD),
    ("several melds later", ". + *{R1 B1 K1 R2 B2 K2} -> [R1 B1 K1] | [R2 B2 K2] ; {}", SINGLE_MELD),
    ("a single meld beside the table", "[R1 B1 K1] + {R10 B10 K10} -> [R1 B1 K1] | [R10 B10 K10] ; {}", SINGLE_MELD),
    ("one of two reaches", ". + {R10 B10 K10 R1 R2 R3} -> [R1 R2 R3] | [R10 B10 K10] ; {}", ONE_MELD_REACHES),
    ("enough without the joker", ". + {R10 R11 R12 J} -> [R10 R11 R12 J] ; {}", JOKER_ZERO),
    ("a joker on the table is no joker of the meld", "[R1 R2 J] + {R10 B10 K10} -> [R1 R2 J] | [R10 B10 K10] ; {}",
     JOKER_FORBIDDEN),
    ("a joker later", ". + *{R10 R11 J} -> [R10 R11 J] ; {}", JOKER_FORBIDDEN),
    ("no threshold", ". + {R1 B1 K1} -> [R1 B1 K1] ; {}", THRESHOLD_0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "ruleset"), [row[1:] for row in UNDER_OPTIONS], ids=[row[0] for row in UNDER_OPTIONS])
def test_options_of_the_initial_meld_are_applied(text: str, ruleset: Ruleset) -> None:
    assert judge_text(text, ruleset).violations == ()


def test_all_violations_are_reported_in_a_fixed_order() -> None:
    judgement = judge_text("[R4 R5 J] | [K1 K2 K3] + {B9 O1} -> [R4 R5] | [B9 B9 K9] | [J J J] | [K1 K2] ; {O1}")
    assert [(v.reason.name, v.subject, format_tiles(v.tiles)) for v in judgement.violations] == [
        ("TILE_DUPLICATED", "table_after", "B9 J J"),
        ("TILE_NOT_IN_RACK", "table_after", "K9"),
        ("TABLE_TILE_MISSING", "table_after", "K3"),
        ("MELD_TOO_SHORT", "table_after[0]", "R4 R5"),
        ("GROUP_COLOR_REPEAT", "table_after[1]", "B9 B9 K9"),
        ("MELD_ALL_JOKERS", "table_after[2]", "J J J"),
        ("MELD_TOO_SHORT", "table_after[3]", "K1 K2"),
        ("JOKER_RETRIEVAL_BEFORE_INITIAL_MELD", "table_after", "R4 R5 J"),
        ("INITIAL_MELD_TABLE_MODIFIED", "table_after", "K1 K2 K3"),
    ]


def test_an_initial_meld_may_break_several_of_its_rules() -> None:
    ruleset = replace(SINGLE_MELD, initial_meld_joker=InitialMeldJoker.FORBIDDEN)
    judgement = judge_text(". + {R1 R2 J B1 B2 B3} -> [R1 R2 J] | [B1 B2 B3] ; {}", ruleset)
    assert [v.reason.name for v in judgement.violations] == [
        "INITIAL_MELD_HAS_JOKER",
        "INITIAL_MELD_SINGLE_MELD_REQUIRED",
        "INITIAL_MELD_BELOW_THRESHOLD",
    ]


def test_a_missing_joker_comes_before_other_missing_tiles() -> None:
    judgement = judge_text("[R4 R5 R6 R7 J] + *{R1 R2 R3} -> [R1 R2 R3 R4 R5 R6] ; {}")
    assert [v.reason for v in judgement.violations] == [Reason.JOKER_TO_RACK, Reason.TABLE_TILE_MISSING]


def test_a_run_that_the_order_spoils_is_suggested() -> None:
    (violation,) = judge_text(". + *{R12 R13 J} -> [R12 R13 J] ; {}").violations
    assert violation.suggested_order == parse_tiles("J R12 R13")


def test_the_subject_of_a_play_is_the_callers_name_for_it() -> None:
    play = replace(play_of(". + *{R1 R2 B9} -> [R1 R2] ; {B9}"), subject="play.table")
    assert [v.subject for v in judge(play).violations] == ["play.table[0]"]


def test_the_threshold_is_skipped_while_other_tiles_are_invalid() -> None:
    assert [v.reason for v in judge_text(". + {R9 B9} -> [R9 B9 K9] ; {}").violations] == [Reason.TILE_NOT_IN_RACK]
    assert [v.reason for v in judge_text(". + {R9 B9} -> [R9 B9] ; {}").violations] == [Reason.MELD_TOO_SHORT]


def test_the_rack_alone_does_not_make_an_initial_meld_of_table_tiles() -> None:
    judgement = judge_text("[R10 B10 K10 O10] + {R11 R12} -> [B10 K10 O10] | [R10 R11 R12] ; {}")
    assert [v.reason.name for v in judgement.violations] == [
        "INITIAL_MELD_TABLE_MODIFIED",
        "INITIAL_MELD_BELOW_THRESHOLD",
    ]


def test_a_rack_makes_a_meld_once_of_each_of_its_tiles() -> None:
    text = "[R10 R11 R12 R13] | [B13 K13 O13] + {R10 R11 R12} -> [R10 R11 R12] | [R10 R11 R12] | [R13 B13 K13 O13] ; {}"
    violations = judge_text(text, THRESHOLD_50).violations
    assert [v.reason.name for v in violations] == [
        "INITIAL_MELD_TABLE_MODIFIED",
        "INITIAL_MELD_TABLE_MODIFIED",
        "INITIAL_MELD_BELOW_THRESHOLD",
    ]
    assert violations[-1].metadata == below(33, 50)


def test_a_meld_sent_again_without_its_kind_keeps_it() -> None:
    judgement = judge_text("group[J R5 J] + *{R1 R2 R3} -> [J R5 J] | [R1 R2 R3] ; {}", EXPLICIT)
    assert judgement.violations == ()
    assert judgement.table[0].kind is MeldKind.GROUP


def test_another_kind_of_the_same_tiles_is_another_meld() -> None:
    text = "group[J R5 J] + {B10 K10 O10} -> run[J R5 J] | [B10 K10 O10] ; {}"
    assert [v.reason for v in judge_text(text).violations] == [Reason.JOKER_RETRIEVAL_BEFORE_INITIAL_MELD]


def test_one_of_two_like_melds_changed_counts_as_one() -> None:
    text = "[R1 R2 R3] | [R1 R2 R3] + {R4 B10 K10 O10} -> [R1 R2 R3] | [R1 R2 R3 R4] | [B10 K10 O10] ; {}"
    assert [v.tiles for v in judge_text(text).violations] == [parse_tiles("R1 R2 R3")]


@pytest.mark.parametrize(
    ("text", "points"),
    [
        # Jokers are interchangeable: the most valuable ones of the new melds count as the player's.
        ("[R1 R2 J] + *{J K13 O13} -> [R1 R2 J] | [K13 O13 J] ; {}", 39),
        ("[R1 R2 J] + *{J R3 K13 O13} -> [R1 R2 R3 J] | [K13 O13 J] ; {}", 42),
        ("[R4 J R6] + *{R5 B13 K13 J} -> [R4 R5 R6 J] | [B13 K13 J] ; {}", 44),
    ],
)
def test_points_are_those_of_the_tiles_played(text: str, points: int) -> None:
    assert judge_text(text).points == points


# Properties of random positions, with the play of a random player or a corrupted one


EMPTY = Play((), (), (), has_melded=True, ruleset=SABRA)


def some_play(seed: int) -> Play:
    """Returns a random play."""
    rng = random.Random(seed)
    return rng.choice([*to_tables(rng, THRESHOLD_0)] or [EMPTY])


PLAYS = st.integers(min_value=0, max_value=2**32).map(some_play)


CONSERVATION = (Reason.JOKER_TO_RACK, Reason.TABLE_TILE_MISSING, Reason.TILE_DUPLICATED, Reason.TILE_NOT_IN_RACK)


@pytest.mark.unmeasured
@given(PLAYS)
def test_conservation_is_judged_as_counting_tiles_has_it(play: Play) -> None:
    """Counts tile by tile, without multiset differences."""
    before = [t for meld in play.table_before for t in meld.tiles]
    after = [t for meld in play.table_after for t in meld.tiles]
    expected = set()
    for t in {*before, *after}:
        came, held = after.count(t) - before.count(t), play.rack.count(t)
        if came < 0:
            expected.add((Reason.JOKER_TO_RACK if t == JOKER else Reason.TABLE_TILE_MISSING, t))
        if came > held:
            twice = held > 0 or after.count(t) > 2
            expected.add((Reason.TILE_DUPLICATED if twice else Reason.TILE_NOT_IN_RACK, t))
    judgement = judged(play)
    found = {(v.reason, t) for v in judgement.violations if v.reason in CONSERVATION for t in v.tiles}
    assert found == expected
    played = any(after.count(t) - before.count(t) > 0 and t in play.rack for t in after)
    assert (Reason.NO_RACK_TILE_PLAYED in {v.reason for v in judgement.violations}) == (not played)
    assert sorted(judgement.rack_left + judgement.tiles_played) == sorted(play.rack)


def recolor(tiles: tuple[Tile, ...], coloring: list[int]) -> tuple[Tile, ...]:
    return tuple(t if t == JOKER else Tile(coloring[(t - 1) // 13] * 13 + value_of(t)) for t in tiles)


@pytest.mark.unmeasured
@given(PLAYS, st.permutations(range(4)))
def test_colors_are_interchangeable_in_plays(play: Play, coloring: list[int]) -> None:
    before = tuple(
        replace(
            meld,
            tiles=recolor(meld.tiles, coloring),
            joker_faces=tuple(tuple(sorted(recolor(faces, coloring))) for faces in meld.joker_faces),
        )
        for meld in play.table_before
    )
    there = judged(
        replace(
            play,
            table_before=before,
            table_after=tuple(
                replace(meld, tiles=recolor(meld.tiles, coloring), declared=recolor(meld.declared, coloring))
                for meld in play.table_after
            ),
            rack=tuple(sorted(recolor(play.rack, coloring))),
        )
    )
    here = judged(play)
    assert [(v.reason, v.subject, v.metadata, sorted(recolor(v.tiles, coloring))) for v in here.violations] == [
        (v.reason, v.subject, v.metadata, sorted(v.tiles)) for v in there.violations
    ]
    assert here.points == there.points
    assert sorted(recolor(here.rack_left, coloring)) == list(there.rack_left)


def test_melds_of_the_same_tiles_sent_without_kinds_keep_one_kind_each() -> None:
    text = "run[J J R5] | group[J J R5] + *{B9 K9 O9} -> [J J R5] | [J J R5] | [B9 K9 O9] ; {}"
    judgement = judge_text(text, replace(SABRA, geometry_jokers=4))
    assert judgement.violations == ()
    assert [meld.kind for meld in judgement.table[:2]] == [MeldKind.RUN, MeldKind.GROUP]
