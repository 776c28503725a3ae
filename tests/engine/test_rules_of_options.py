from collections import Counter
from dataclasses import dataclass, replace

import pytest

from engine.melding.melds import Meld, ProposedMeld, as_proposed, read_meld
from engine.melding.notation import parse_meld
from engine.melding.play import Play
from engine.melding.ruleset import (
    SABRA,
    Contract,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSameTurnTablePlay,
    JokerRetrievalGroupOfThree,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameMeld,
    JokerRetrievalSource,
    Manipulation,
    MeldOrder,
    Ruleset,
    TurnDraw,
    TurnPlayAfterDraw,
    WinCall,
    with_options,
)
from engine.notation import parse_tile, parse_tiles
from engine.violations import Reason
from support.plays import judge_text, judged, play_of


def rules(**options: object) -> Ruleset:
    return with_options(SABRA, options)


FREE = SABRA
REPLACE = rules(joker_retrieval_mode=JokerRetrievalMode.REPLACE)
LOCKED = rules(joker_retrieval_mode=JokerRetrievalMode.LOCKED)
NEVER = rules(joker_retrieval_mode=JokerRetrievalMode.OFF)
SAME_MELD = JokerRetrievalSameMeld.ALLOWED
REPLACE_AND_BACK = replace(REPLACE, joker_retrieval_same_meld=SAME_MELD)
LOCKED_AND_BACK = replace(LOCKED, joker_retrieval_same_meld=SAME_MELD)
NOT_BACK = replace(SABRA, joker_retrieval_same_meld=JokerRetrievalSameMeld.FORBIDDEN)
FROM_RACK = replace(REPLACE, joker_retrieval_source=JokerRetrievalSource.RACK_ONLY)
LOCKED_FROM_RACK = replace(LOCKED, joker_retrieval_source=JokerRetrievalSource.RACK_ONLY)
BOTH_COLORS = replace(REPLACE, joker_retrieval_group_of_three=JokerRetrievalGroupOfThree.BOTH_COLORS)
END_IS_FREE = replace(REPLACE, joker_retrieval_end_of_run_free=True)
LOCKED_END_IS_FREE = replace(LOCKED, joker_retrieval_end_of_run_free=True)
NEW_MELD = rules(joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD)
TWO_RACK = rules(joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD_TWO_RACK_TILES)
ALL_RACK = rules(joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD_ALL_RACK)
FOUR_LOCKED = replace(LOCKED, geometry_jokers=4)
FOUR_REPLACE = replace(REPLACE, geometry_jokers=4)
GROWING = rules(manipulation=Manipulation.OFF)
PRIMITIVE = rules(manipulation=Manipulation.PRIMITIVES_ONLY)
SAME_TURN = rules(initial_meld_same_turn_table_play=InitialMeldSameTurnTablePlay.ALLOWED)
SAME_TURN_ONE = replace(SAME_TURN, initial_meld_count=InitialMeldCount.ONE_MELD_REACHES_THRESHOLD)
SAME_TURN_SINGLE = replace(SAME_TURN, initial_meld_count=InitialMeldCount.SINGLE_MELD)
SAME_TURN_NO_JOKER = replace(SAME_TURN, initial_meld_joker=InitialMeldJoker.FORBIDDEN)
SAME_TURN_RUN = replace(SAME_TURN, initial_meld_required_kind=InitialMeldRequiredKind.RUN)
RUN = InitialMeldRequiredKind.RUN
SAME_TURN_0 = replace(SAME_TURN, initial_meld_threshold=0)
SAME_TURN_0_NO_JOKER = replace(SAME_TURN_NO_JOKER, initial_meld_threshold=0)
RUN_FIRST = rules(initial_meld_required_kind=InitialMeldRequiredKind.RUN)
PHYSICAL = rules(jokers_beyond_physical=False)
BELOW_10 = rules(contract=Contract.VALUES_BELOW_10)
ONE_COLOR = rules(contract=Contract.SINGLE_COLOR)
AT_MOST_41 = rules(contract=Contract.SUM_AT_MOST_41)
CALL = rules(win_call=WinCall.REQUIRED)
FIVES = "[K5 K6 K7] | [K5 K6 K7] | [O5 O6 O7] | [O5 O6 O7 O8]"
SORTED = rules(meld_order=MeldOrder.CANONICALISE)


@dataclass(frozen=True)
class Row:
    """A play that is legal under one ruleset and breaks at most one rule of another."""

    text: str
    legal: Ruleset
    illegal: Ruleset | None = None
    reason: Reason | None = None


ROWS = [
    # Retrieval: keeping a joker
    Row("[B3 B4 J] + *{B6} -> [B3 B4 J B6] ; {}", LOCKED),
    Row("[R7 B7 J] + *{K7} -> [R7 B7 J K7] ; {}", LOCKED),
    Row("[B3 B4 J B6 B7 B8] + *{K1 K2 K3} -> [B3 B4 J] | [B6 B7 B8] | [K1 K2 K3] ; {}", REPLACE,
        LOCKED, Reason.JOKER_MELD_LOCKED),
    Row("[R5 J R7 R8] + *{B8 K8} -> [R5 J R7] | [R8 B8 K8] ; {}", NEVER, LOCKED, Reason.JOKER_MELD_LOCKED),
    Row("[B3 B4 J B6 B7 B8] + *{K1 K2 K3} -> [B3 B4 J] | [B6 B7 B8] | [K1 K2 K3] ; {}", NEW_MELD),
    Row("[R1 R2 R3] | [R4 J R6] + *{K1 K2 K3} -> [R1 R2 R3 R4 J R6] | [K1 K2 K3] ; {}", LOCKED),
    # Retrieval: replacement
    Row("[B3 B4 J] + *{B5 R7 O7} -> [B3 B4 B5] | [R7 O7 J] ; {}", LOCKED_FROM_RACK,
        NEVER, Reason.JOKER_RETRIEVAL_FORBIDDEN),
    Row("[K1 K2 J] | [R1 B1 O1] | [R2 B2 O2] + *{R7 R8} -> [R1 B1 O1 K1] | [R2 B2 O2 K2] | [R7 R8 J] ; {}", FREE,
        REPLACE, Reason.JOKER_NOT_REPLACED),
    Row("[K1 K2 J] | [R1 B1 O1] | [R2 B2 O2] + *{R7 R8} -> [R1 B1 O1 K1] | [R2 B2 O2 K2] | [R7 R8 J] ; {}", FREE,
        LOCKED, Reason.JOKER_MELD_LOCKED),
    Row("[B3 B4 J] | [R5 K5 O5 B5] + *{R7 O7} -> [B3 B4 B5] | [R5 K5 O5] | [R7 O7 J] ; {}", REPLACE,
        FROM_RACK, Reason.JOKER_REPLACEMENT_NOT_FROM_RACK),
    Row("[B3 B4 J] | [R5 K5 O5 B5] + *{R7 O7} -> [B3 B4 B5] | [R5 K5 O5] | [R7 O7 J] ; {}", LOCKED,
        LOCKED_FROM_RACK, Reason.JOKER_REPLACEMENT_NOT_FROM_RACK),
    Row("[R7 B7 J] + *{K7 O1 O2} -> [R7 B7 K7] | [O1 O2 J] ; {}", REPLACE,
        BOTH_COLORS, Reason.JOKER_GROUP_NEEDS_BOTH_COLORS),
    Row("[R7 B7 J] + *{K7 O7 O1 O2} -> [R7 B7 K7 O7] | [O1 O2 J] ; {}", BOTH_COLORS),
    Row("[R7 B7 K7 J] + *{O7 O1 O2} -> [R7 B7 K7 O7] | [O1 O2 J] ; {}", BOTH_COLORS),
    Row("[R3 R4 R5 J] + *{O1 O2} -> [R3 R4 R5] | [O1 O2 J] ; {}", END_IS_FREE, REPLACE, Reason.JOKER_NOT_REPLACED),
    Row("[J R4 R5 R6] + *{O1 O2} -> [R4 R5 R6] | [O1 O2 J] ; {}", LOCKED_END_IS_FREE, LOCKED, Reason.JOKER_MELD_LOCKED),
    Row("[R7 J B7 K7] + *{R1 R2 R3} -> [R7 J B7 K7] | [R1 R2 R3] ; {}", LOCKED),
    # Retrieval: reuse
    Row("[B3 B4 J] + *{B5} -> [B3 B4 B5 J] ; {}", REPLACE_AND_BACK, REPLACE, Reason.JOKER_RETURNED_TO_SAME_MELD),
    Row("[B3 B4 J] + *{B5} -> [B3 B4 B5 J] ; {}", LOCKED_AND_BACK, LOCKED, Reason.JOKER_RETURNED_TO_SAME_MELD),
    Row("[B3 B4 J] + *{B5} -> [B3 B4 B5 J] ; {}", FREE, NOT_BACK, Reason.JOKER_RETURNED_TO_SAME_MELD),
    Row("[B3 B4 J] | [K7 K8 K9] + *{B5} -> [B3 B4 B5] | [K7 K8 K9 J] ; {}", FREE,
        NEW_MELD, Reason.JOKER_NOT_IN_NEW_MELD),
    Row("[B3 B4 J] | [K7 K8 K9 K10] + *{B5 R10} -> [B3 B4 B5] | [K7 K8 K9] | [R10 K10 J] ; {}", NEW_MELD,
        TWO_RACK, Reason.JOKER_REUSE_NEEDS_TWO_RACK_TILES),
    Row("[B3 B4 J] | [K7 K8 K9 K10] + *{B5 R10 O10} -> [B3 B4 B5] | [K7 K8 K9] | [R10 O10 K10 J] ; {}", TWO_RACK,
        ALL_RACK, Reason.JOKER_REUSE_NEEDS_RACK_ONLY),
    Row("[B3 B4 J] + *{B5 R10 O10} -> [B3 B4 B5] | [R10 O10 J] ; {}", ALL_RACK),
    Row("[B3 B4 J] + *{B5 R10 J} -> [B3 B4 B5] | [R10 J J] ; {}", ALL_RACK),
    # Retrieval: copies and jokers are interchangeable
    Row("[B3 B4 J] | [B5 B6 B7] + *{B5 R7 O7} -> [B3 B4 B5] | [B5 B6 B7] | [R7 O7 J] ; {}", FROM_RACK),
    Row("[B3 B4 J] | [R7 R8 J] + *{B5 K1 O1} -> [B3 B4 B5] | [R7 R8 J] | [K1 O1 J] ; {}", LOCKED_FROM_RACK),
    Row("[B3 B4 J] + *{B6 J} -> [B3 B4 J B6 J] ; {}", LOCKED),
    Row("[R4 J R6] | [B4 J B6] + *{R5 K1 O1} -> [R4 R5 R6] | [B4 J B6] | [J K1 O1] ; {}", LOCKED),
    # Retrieval: two jokers of one meld
    Row("[R4 J J R7] + *{R5 R6 K1 O1 K2 O2} -> [R4 R5 R6 R7] | [J K1 O1] | [J K2 O2] ; {}", LOCKED_FROM_RACK),
    Row("[R4 J J R7] + *{R5 K1 O1} -> [R4 R5 J R7] | [J K1 O1] ; {}", LOCKED,
        replace(FOUR_LOCKED, joker_retrieval_mode=JokerRetrievalMode.OFF), Reason.JOKER_RETRIEVAL_FORBIDDEN),
    Row("[R4 J J R7] + *{R5 K1 O1} -> [R4 R5 J R7] | [J K1 O1] ; {}", FOUR_REPLACE),
    # Retrieval: two locked melds cannot unlock each other
    Row("[R4 J R6] | [B5 K5 J] + *{R1 R2 R3} -> [R4 J R6] | [B5 K5 J] | [R1 R2 R3] ; {}", LOCKED),
    # Manipulation
    Row("[R4 R5 R6] + *{R7} -> [R4 R5 R6 R7] ; {}", GROWING),
    Row("[R7 B7 J] + *{K7} -> [K7 B7 J R7] ; {}", GROWING),
    Row("[R4 R5 R6 R7] + *{B7 K7} -> [R4 R5 R6] | [R7 B7 K7] ; {}", PRIMITIVE, GROWING, Reason.TABLE_MELD_CHANGED),
    Row("[R4 R5 R6] | [R7 R8 R9] + *{R10} -> [R4 R5 R6 R7 R8 R9 R10] ; {}", FREE, PRIMITIVE,
        Reason.TABLE_MELD_DISSOLVED),
    Row("[R1 R2 R3] | [B1 B2 B3] | [K1 K2 K3] + *{O1} -> [R1 B1 K1 O1] | [R2 B2 K2] | [R3 B3 K3] ; {}", FREE),
    Row("[B3 B4 J] + *{B5} -> [B3 B4 B5 J] ; {}", PRIMITIVE, GROWING, Reason.TABLE_MELD_CHANGED),
    Row("[R1 R2 R3] | [R1 R2 R3] + *{R4} -> [R1 R2 R3 R4] | [R1 R2 R3] ; {}", GROWING),
    Row("[R1 R2 R3] | [R1 R2 R3 R4] + *{R5 R4} -> [R1 R2 R3 R4 R5] | [R1 R2 R3 R4] ; {}", GROWING),
    # The initial meld and table play in one turn
    Row("[R4 R5 R6] + {R7 B10 K10 O10} -> [R4 R5 R6 R7] | [B10 K10 O10] ; {}", SAME_TURN,
        SABRA, Reason.INITIAL_MELD_TABLE_MODIFIED),
    Row("[R4 J R6] + {R5 B10 K10 O10 B9 K9} -> [R4 R5 R6] | [B10 K10 O10] | [B9 K9 J] ; {}", SAME_TURN,
        SABRA, Reason.JOKER_RETRIEVAL_BEFORE_INITIAL_MELD),
    Row("[R4 R5 R6] + {R7 B10 K10 O10 B5 K5 O5} -> [R4 R5 R6 R7] | [B10 K10 O10] | [B5 K5 O5] ; {}", SAME_TURN_ONE),
    Row("[R4 R5 R6 R7] + {B7 K7 B10 K10 O10} -> [R4 R5 R6] | [R7 B7 K7] | [B10 K10 O10] ; {}", SAME_TURN_SINGLE),
    Row("[R4 R5 R6] + {R7 B10 K10 O10 B5 K5 J} -> [R4 R5 R6 R7] | [B10 K10 O10] | [B5 K5 J] ; {}", SAME_TURN_NO_JOKER),
    Row("[R4 R5 R6] + {R7 B10 K10 O10 B1 B2 B3} -> [R4 R5 R6 R7] | [B10 K10 O10] | [B1 B2 B3] ; {}", SAME_TURN_RUN),
    Row("[R7 B7 K7 O7] + {R8 R9 B1 B2 B3} -> [B7 K7 O7] | [R7 R8 R9] | [B1 B2 B3] ; {}", SAME_TURN_0),
    Row("[R10 R11 R12 R13] + {R10 R11 R12 B1 B2 B3} -> [R10 R11 R12] | [R10 R11 R12 R13] | [B1 B2 B3] ; {}", SABRA),
    # Two melds compete for the played R10: the better one counts
    Row("[R10 B10 K10 O10] + {R10 R11 R12 B1 B2 B3 R9 R8} -> [R10 R11 R12] | [B10 K10 O10] | [R8 R9 R10] | [B1 B2 B3]"
        " ; {}", SAME_TURN),
    # One meld reaches the threshold alone; two others that compete with it have more points together
    Row("[R6 B6 K6 O6] | [R9 B9 K9 O9] + {R6 R7 R8 R9 B6 K6 B9 K9 B1} -> [B6 K6 O6] | [B9 K9 O9] | [R6 R7 R8 R9]"
        " | [R6 B6 K6] | [R9 B9 K9] ; {B1}", SAME_TURN_ONE),
    Row("[R6 B6 K6 O6] | [R9 B9 K9 O9] + {R6 R7 R8 R9 B6 K6 B9 K9 B1} -> [B6 K6 O6] | [B9 K9 O9] | [R6 R7 R8 R9]"
        " | [R6 B6 K6] | [R9 B9 K9] ; {B1}", replace(SAME_TURN_ONE, initial_meld_required_kind=RUN)),
    Row("[R6 B6 K6 O6] + {B6 K6 O6 O7 O8 R10 B10 K10 B1} -> [R6 B6 K6] | [B6 K6 O6] | [O6 O7 O8] | [R10 B10 K10]"
        " ; {B1}",
        replace(SAME_TURN_ONE, initial_meld_required_kind=RUN)),
    # A meld equal to an old one, whose tiles were used elsewhere
    Row("[K7 K8 K9] + {K7 K8 K9 R7 O7 R8 O8 R9 O9} -> [K7 K8 K9] | [R7 K7 O7] | [R8 K8 O8] | [R9 K9 O9] ; {}",
        replace(SAME_TURN_RUN, initial_meld_threshold=0)),
    # Two groups of the same tiles, one declared, proposed in another order
    Row("[R4 B4 J] | group[R4 B4 J=K4] + *{R1 R2 R3} -> group[R4 B4 J=K4] | [R4 B4 J] | [R1 R2 R3] ; {}", GROWING),
    Row("[R4 B4 J] | group[R4 B4 J=K4] + {B10 K10 O10} -> [R4 B4 J] | [R4 B4 J] | [B10 K10 O10] ; {}", SABRA),
    Row(". + {R10 R11 R12} -> [R10 R11 R12] ; {}", RUN_FIRST),
    Row(". + {R10 B10 K10} -> [R10 B10 K10] ; {}", SABRA, RUN_FIRST, Reason.INITIAL_MELD_KIND_REQUIRED),
    Row(". + *{R10 B10 K10} -> [R10 B10 K10] ; {}", RUN_FIRST),
    # Jokers beyond the tile set
    Row("[R5 B5 K5] | [R5 R6 R7] + *{R4 R3 J} -> [R5 B5 K5] | [R5 R6 R7] | [R3 R4 J] ; {}", SABRA,
        PHYSICAL, Reason.JOKER_FACE_EXHAUSTED),
    Row("[R5 B5 K5] + *{R3 R4 J} -> [R5 B5 K5] | [R3 R4 J] ; {}", PHYSICAL),
    Row("[R5 R6 R7] | [R3 R4 J] + *{R5 B5 K5} -> [R5 R6 R7] | [R3 R4 J] | [R5 B5 K5] ; {}", PHYSICAL),
    Row("[R5 R6 R7] | [R5 B5 K5] | [R3 R4 J] + *{R2} -> [R5 R6 R7] | [R5 B5 K5] | [R2 R3 R4 J] ; {}", PHYSICAL),
    Row("[R5 R6 R7] | [R5 R6 R7] + *{B5 K5 J} -> [R5 R6 R7] | [R5 R6 R7] | [B5 K5 J] ; {}", PHYSICAL),
    Row("[R5 R6 R7] | [R5 R6 R7] | [O5 O6 O7] | [O5 O6 O7] + *{B5 K5 J} -> [R5 R6 R7] | [R5 R6 R7] | [O5 O6 O7]"
        " | [O5 O6 O7] | [B5 K5 J] ; {}", SABRA, PHYSICAL, Reason.JOKER_FACE_EXHAUSTED),
    # A joker may keep its face, whichever joker is checked first
    Row(f"[R5 B5 J J] | [K3 K4 J] | {FIVES} + *{{K2 O3 O4}} -> [K2 K3 K4 J] | [R5 B5 J] | [O3 O4 J] | {FIVES} ; {{}}",
        replace(PHYSICAL, geometry_jokers=4)),
    Row(f"[K3 K4 J] | [R5 B5 J J] | {FIVES} + *{{K2 O3 O4}} -> [K2 K3 K4 J] | [R5 B5 J] | [O3 O4 J] | {FIVES} ; {{}}",
        replace(PHYSICAL, geometry_jokers=4)),
    # Either group may be the old one, whose joker keeps B5
    Row("[R5 K5 J] | [B4 B5 B6] | [B5 B6 B7] + *{R5 K5 O5 J} -> [R5 K5 J] | [B4 B5 B6] | [B5 B6 B7] | [R5 K5 O5 J]"
        " ; {}", PHYSICAL),
    Row("[R5 K5 J] | [B4 B5 B6] | [B5 B6 B7] + *{R5 K5 J} -> [R5 K5 J] | [B4 B5 B6] | [B5 B6 B7] | [R5 K5 J=B5] ; {}",
        PHYSICAL),
    # Contracts
    Row(". + *{R7 R8 R9} -> [R7 R8 R9] ; {}", BELOW_10),
    Row(". + *{R8 R9 R10} -> [R8 R9 R10] ; {}", SABRA, BELOW_10, Reason.CONTRACT_VIOLATED),
    Row(". + *{R8 R9 J} -> [R8 R9 J] ; {}", SABRA, BELOW_10, Reason.CONTRACT_VIOLATED),
    Row(". + *{R3 B3 K3} -> [R3 B3 K3] ; {}", AT_MOST_41, ONE_COLOR, Reason.CONTRACT_VIOLATED),
    Row(". + *{R11 R12 R13} -> [R11 R12 R13] ; {}", AT_MOST_41),
    Row(". + *{R9 R10 R11 R12} -> [R9 R10 R11 R12] ; {}", ONE_COLOR, AT_MOST_41, Reason.CONTRACT_VIOLATED),
    Row("[R11 R12 R13] + *{R1 R2 R3} -> [R11 R12 R13] | [R1 R2 R3] ; {}", BELOW_10),
    Row("[R8 R9 R10] | [R5 R6 R7] + *{R11 R4} -> [R8 R9 R10 R11] | [R4 R5 R6 R7] ; {}", ONE_COLOR,
        BELOW_10, Reason.CONTRACT_VIOLATED),
    # Tiles are interchangeable: the played R10 may be the one in the run of five
    Row("[R8 R9 R10] + *{R10 R11 R12} -> [R8 R9 R10] | [R10 R11 R12] ; {}", ONE_COLOR, BELOW_10,
        Reason.CONTRACT_VIOLATED),
    # Order
    Row("[R5 R3 R4] + *{R6} -> [R6 R4 R3 R5] ; {}", SORTED),
    Row("group[J R5 J] + *{R1 R2 R3} -> [R5 J J] | [R3 R1 R2] ; {}", SORTED),
]  # fmt: skip


def name(row: Row) -> str:
    return row.text.split(" ;")[0]


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_a_play_is_legal_under_one_ruleset(row: Row) -> None:
    assert judge_text(row.text, row.legal).violations == ()


@pytest.mark.parametrize("row", [row for row in ROWS if row.illegal], ids=name)
def test_a_play_breaks_one_rule_of_another(row: Row) -> None:
    assert row.illegal is not None
    assert [violation.reason for violation in judge_text(row.text, row.illegal).violations] == [row.reason]


# Several rules at once


def reasons(text: str, ruleset: Ruleset) -> list[str]:
    return [violation.reason.name for violation in judge_text(text, ruleset).violations]


def test_without_the_points_of_an_initial_meld_the_table_stays_in_any_case() -> None:
    text = "[R4 R5 R6] + {R7 B9 K9 O9} -> [R4 R5 R6 R7] | [B9 K9 O9] ; {}"
    assert reasons(text, SAME_TURN) == ["INITIAL_MELD_TABLE_MODIFIED", "INITIAL_MELD_BELOW_THRESHOLD"]


def test_a_run_that_was_declared_lies_so_when_it_is_sent_again_in_any_order() -> None:
    before = read_meld(ProposedMeld(parse_tiles("R5 J R4"), declared=parse_tiles("R3")), SORTED)
    assert isinstance(before, Meld)
    after = (ProposedMeld(parse_tiles("R4 R5 J")), ProposedMeld(parse_tiles("B10 K10 O10")))
    play = Play((before,), after, parse_tiles("B10 K10 O10"), has_melded=False, ruleset=SORTED)
    assert judged(play).violations == ()
    assert judged(play).table[0] == before


def test_a_run_that_is_laid_in_another_way_is_read_so_though_its_tiles_lie_on_the_table() -> None:
    low, high = (read_meld(parse_meld(text), SORTED) for text in ("run[J=R3 J=R4 R5]", "run[R5 J=R6 J=R7]"))
    assert isinstance(low, Meld)
    assert isinstance(high, Meld)
    for before, after in ((low, high), (high, low)):
        play = Play((before,), (as_proposed(after, SORTED),), parse_tiles("B1"), has_melded=True, ruleset=SORTED)
        assert play.melds == (after,)
        assert play.changed_melds == (before,)


def test_without_a_meld_of_own_tiles_there_is_no_initial_meld_even_at_no_threshold() -> None:
    assert reasons("[R4 R5 R6] + {R7} -> [R4 R5 R6 R7] ; {}", SAME_TURN_0) == ["INITIAL_MELD_TABLE_MODIFIED"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (". + {R3 O3 J} -> [R3 O3 J] ; {}", ["INITIAL_MELD_HAS_JOKER"]),
        ("[R4 J R6] + {B3 K3 J} -> [R4 J R6] | [B3 K3 J] ; {}", ["INITIAL_MELD_HAS_JOKER"]),
        (
            "[R4 R5 R6] + {R7 B3 K3 J} -> [R4 R5 R6 R7] | [B3 K3 J] ; {}",
            ["INITIAL_MELD_TABLE_MODIFIED", "INITIAL_MELD_HAS_JOKER"],
        ),
        ("[R4 R5 R6] + {R7 J} -> [R4 R5 R6 R7 J] ; {}", ["INITIAL_MELD_TABLE_MODIFIED"]),
        (". + {R3 O3 J B5} -> [R3 O3 J] | [B5] ; {}", ["MELD_TOO_SHORT"]),
        (". + {R3 O3 J B5 B6 B7} -> [R3 O3 J] | [B5 B6 B7] ; {}", []),
    ],
)
def test_melds_with_jokers_are_no_initial_meld_without_jokers_even_at_no_threshold(text: str, told: list[str]) -> None:
    assert reasons(text, SAME_TURN_0_NO_JOKER) == told


def test_melds_with_jokers_are_reported_once_below_the_threshold() -> None:
    assert reasons(". + {R10 O10 J} -> [R10 O10 J] ; {}", SAME_TURN_NO_JOKER) == ["INITIAL_MELD_BELOW_THRESHOLD"]


@pytest.mark.parametrize("ruleset", [SAME_TURN_SINGLE, SAME_TURN_ONE])
def test_one_of_the_new_melds_must_do_where_one_meld_must(ruleset: Ruleset) -> None:
    text = "[R4 R5 R6] + {R7 B9 K9 O9 B5 K5 O5} -> [R4 R5 R6 R7] | [B9 K9 O9] | [B5 K5 O5] ; {}"
    assert reasons(text, ruleset)[0] == "INITIAL_MELD_TABLE_MODIFIED"


def test_a_joker_does_not_count_where_the_initial_meld_has_none() -> None:
    text = "[R4 R5 R6] + {R7 B10 K10 J} -> [R4 R5 R6 R7] | [B10 K10 J] ; {}"
    assert reasons(text, SAME_TURN_NO_JOKER) == ["INITIAL_MELD_TABLE_MODIFIED", "INITIAL_MELD_BELOW_THRESHOLD"]


def test_the_run_that_is_wanted_counts_before_a_better_group() -> None:
    # K10 and O10 were played once each; B10 is in a run and in a group
    table = "[B10 R10 K10 O10] + {B10 B11 B12 K10 O10 B1}"
    assert reasons(f"{table} -> [B10 B11 B12] | [B10 K10 O10] | [R10 K10 O10] ; {{B1}}", SAME_TURN_RUN) == []


def test_a_joker_that_was_neither_replaced_nor_used_well_breaks_both_rules() -> None:
    ruleset = replace(REPLACE, joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD)
    melds = "[{0}3 {0}4 J] | [R5 R6 R7 R8] | [B3 {1}3 O3] | [B4 {1}4 O4]"
    after = "[{0}3 B3 {1}3 O3] | [{0}4 B4 {1}4 O4] | [J R5 R6 R7 R8 R9]"
    text = f"{melds} + *{{{{R9}}}} -> {after} ; {{{{}}}}"
    assert reasons(text.format("R", "K"), ruleset) == ["JOKER_NOT_IN_NEW_MELD"]
    assert reasons(text.format("K", "R"), ruleset) == ["JOKER_NOT_REPLACED", "JOKER_NOT_IN_NEW_MELD"]


def test_a_group_without_both_colors_from_the_rack_breaks_both_rules() -> None:
    ruleset = replace(BOTH_COLORS, joker_retrieval_source=JokerRetrievalSource.RACK_ONLY)
    text = "[R7 B7 J] | [K7 K8 K9 K10] + *{O1 O2} -> [R7 B7 K7] | [K8 K9 K10] | [O1 O2 J] ; {}"
    assert reasons(text, ruleset) == ["JOKER_REPLACEMENT_NOT_FROM_RACK", "JOKER_GROUP_NEEDS_BOTH_COLORS"]


# The River, the drawn tile, the call


RIVER = rules(turn_draw=TurnDraw.TWO_RIVER)


def pull(text: str, river: str, index: int, ruleset: Ruleset = RIVER) -> Play:
    return replace(play_of(text, ruleset), river=parse_tiles(river), river_index=index)


def test_a_pull_plays_its_oldest_tile_and_keeps_the_others() -> None:
    judgement = judged(pull(". + *{R7 B7 O1} -> [R7 B7 K7] ; {O1}", "B1 K7 O9 R2", 1))
    assert judgement.violations == ()
    assert judgement.tiles_played == parse_tiles("R7 B7 K7")
    assert judgement.rack_left == parse_tiles("R2 O1 O9")


def test_the_key_counts_for_the_initial_meld() -> None:
    assert judged(pull(". + {R10 B10} -> [R10 B10 K10] ; {}", "K10", 0)).violations == ()


def test_a_key_like_a_tile_of_the_rack_is_played_with_either() -> None:
    judgement = judged(pull(". + *{R7 B7 K7} -> [R7 B7 K7] ; {K7}", "K7", 0))
    assert judgement.violations == ()
    assert judgement.rack_left == parse_tiles("K7")


@pytest.mark.parametrize(
    ("text", "river", "index", "reason"),
    [
        (". + *{R7 B7 K7} -> [R7 B7 K7] ; {}", "", 0, Reason.RIVER_EMPTY),
        (". + *{R7 B7 K7} -> [R7 B7 K7] ; {}", "O1 O2", 2, Reason.RIVER_INDEX_OUT_OF_RANGE),
        (". + *{R7 B7 K7} -> [R7 B7 K7] ; {}", "O1 O2", 0, Reason.RIVER_KEY_NOT_PLAYED),
        (". + *{R7 B7} -> [R7 B7 K7 O7] ; {}", "K7 O7", 0, Reason.RIVER_PLUNDER_PLAYED),
    ],
)
def test_a_pull_that_breaks_one_rule(text: str, river: str, index: int, reason: Reason) -> None:
    assert [violation.reason for violation in judged(pull(text, river, index)).violations] == [reason]


def test_a_river_tile_that_was_not_pulled_is_foreign() -> None:
    play = replace(play_of(". + *{R7 B7} -> [R7 B7 K7] ; {}", RIVER), river=parse_tiles("K7"))
    assert [violation.reason for violation in judged(play).violations] == [Reason.TILE_NOT_IN_RACK]


@pytest.mark.parametrize(
    ("rack", "rule", "legal"),
    [
        ("R7 B7 K7", TurnPlayAfterDraw.ALLOWED, True),
        ("R7 B7 K7", TurnPlayAfterDraw.OTHER_TILES, False),
        ("R7 B7 K7 K7", TurnPlayAfterDraw.OTHER_TILES, True),
        ("R7 B7 K7 K7", TurnPlayAfterDraw.FORBIDDEN, False),
    ],
)
def test_the_drawn_tile_stays_if_the_ruleset_requires_it(rack: str, rule: TurnPlayAfterDraw, legal: bool) -> None:
    play = play_of(f". + *{{{rack}}} -> [R7 B7 K7] ; {{}}", rules(turn_play_after_draw=rule))
    violations = judged(replace(play, drawn=parse_tile("K7"))).violations
    assert [violation.reason for violation in violations] == ([] if legal else [Reason.PLAY_AFTER_DRAW])


def test_playing_the_last_tiles_requires_the_call() -> None:
    play = play_of(". + *{R7 B7 K7} -> [R7 B7 K7] ; {}", CALL)
    assert [violation.reason for violation in judged(play).violations] == [Reason.RUMMIKUB_NOT_CALLED]
    assert judged(replace(play, calls_rummikub=True)).violations == ()
    assert judge_text(". + *{R7 B7 K7 K8} -> [R7 B7 K7] ; {K8}", CALL).violations == ()
    plundering = replace(
        pull(". + *{R7 B7} -> [R7 B7 K7] ; {}", "K7 O9", 0, replace(CALL, turn_draw=TurnDraw.TWO_RIVER))
    )
    assert judged(plundering).violations == ()
    assert Counter(judged(plundering).rack_left) == Counter(parse_tiles("O9"))
