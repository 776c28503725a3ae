"""Tests for details of the rules that a small change of the code would break."""

import dataclasses
import importlib
import pkgutil
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain, combinations

import pytest

import engine
from engine.lazy import lazy_property
from engine.melding import retrieval
from engine.melding.melds import Meld, MeldKind, ProposedMeld, read_meld
from engine.melding.notation import parse_meld
from engine.melding.play import Play
from engine.melding.presets import PRESETS
from engine.melding.rules import has_own_tiles_only
from engine.melding.ruleset import (
    SABRA,
    Contract,
    InitialMeldComparison,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSameTurnTablePlay,
    JokerRetrievalGroupOfThree,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameMeld,
    JokerRetrievalSource,
    JokersDeclaration,
    Manipulation,
    Preset,
    Ruleset,
    RunWrap,
    TurnDraw,
    WinCall,
    with_options,
)
from engine.notation import format_tiles, parse_tiles
from engine.tiles import JOKER, Tile, value_of
from engine.violations import Reason
from support.cases import each_of
from support.plays import judge_text, judged, play_of
from support.soak import few_of
from support.work import calls_in


def rules(**options: object) -> Ruleset:
    return with_options(SABRA, options)


FOUR_JOKERS = replace(SABRA, geometry_jokers=4)
DECLARED = rules(jokers_declaration=JokersDeclaration.ALWAYS_EXPLICIT)
NEVER = rules(joker_retrieval_mode=JokerRetrievalMode.OFF)
REPLACE = rules(joker_retrieval_mode=JokerRetrievalMode.REPLACE)
SIX_COLORS_BOTH = replace(
    REPLACE, joker_retrieval_group_of_three=JokerRetrievalGroupOfThree.BOTH_COLORS, geometry_colors=6
)
END_IS_FREE = replace(REPLACE, joker_retrieval_end_of_run_free=True)
GROWING = rules(manipulation=Manipulation.OFF)
PRIMITIVE = rules(manipulation=Manipulation.PRIMITIVES_ONLY)
PHYSICAL = replace(FOUR_JOKERS, jokers_beyond_physical=False)
CYCLIC = rules(run_wrap=RunWrap.CYCLIC)
BELOW_10 = rules(contract=Contract.VALUES_BELOW_10)
RIVER = rules(turn_draw=TurnDraw.TWO_RIVER)
SAME_TURN = rules(initial_meld_same_turn_table_play=InitialMeldSameTurnTablePlay.ALLOWED)
BY_THE_RACK = replace(
    SAME_TURN, joker_retrieval_mode=JokerRetrievalMode.REPLACE, joker_retrieval_source=JokerRetrievalSource.RACK_ONLY
)

GROUP_DECLARED_KB = "group[R5 J=K5 J=B5]"
GROUP_DECLARED_BO = "group[R5 J=B5 J=O5]"

INITIAL = "B10 K10 O10"
"""The tiles of an initial meld."""


def violations_of_play(play: Play) -> list[tuple[str, str]]:
    """Returns the reasons of a play's violations, with their tiles."""
    return [(violation.reason.name, format_tiles(violation.tiles)) for violation in judged(play).violations]


ROWS_OF_TENS = "[R9 R10 R11] | [B9 B10 B11] | [K9 K10 K11]"
ONE_COLOR = rules(contract=Contract.SINGLE_COLOR)
ONE_COLOR_SAME_TURN = replace(ONE_COLOR, initial_meld_same_turn_table_play=InitialMeldSameTurnTablePlay.ALLOWED)
ONE_OF_TEN = replace(
    SAME_TURN, initial_meld_threshold=10, initial_meld_count=InitialMeldCount.ONE_MELD_REACHES_THRESHOLD
)
ONE_TO_FOUR_IN_GROUPS = (
    "[R1 R2 R3] + {R1 R2 R3 R4 B1 K1 B2 K2 B3 K3} -> [R1 R2 R3 R4] | [R1 B1 K1] | [R2 B2 K2] | [R3 B3 K3] ; {}"
)


LEGAL = [
    # The initial meld consists of rack tiles, for every rule
    ("a group laid beside runs may be of their tiles, and theirs of the rack",
     f"{ROWS_OF_TENS} + *{{R10 B10 K10}} -> {ROWS_OF_TENS} | [R10 B10 K10] ; {{}}", ONE_COLOR),
    ("so it may in the turn of the initial meld, if that is another meld",
     f"{ROWS_OF_TENS} + {{R10 B10 K10 O9 O10 O11}} -> {ROWS_OF_TENS} | [R10 B10 K10] | [O9 O10 O11] ; {{}}",
     ONE_COLOR_SAME_TURN),
    ("or of faces that lie there, too",
     f"{ROWS_OF_TENS} | [O9 O10 O11] + {{R10 B10 K10 O9 O10 O11}} -> {ROWS_OF_TENS} | [O9 O10 O11] | [R10 B10 K10]"
     " | [O9 O10 O11] ; {}", ONE_COLOR_SAME_TURN),
    ("a run grows beside an initial meld of a group",
     ONE_TO_FOUR_IN_GROUPS, replace(
         ONE_OF_TEN, initial_meld_threshold=9, manipulation=Manipulation.OFF)),
    ("so it does whichever of them lies last",
     "[R1 R2 R3] + {R1 R2 R3 R4 B1 K1 B2 K2 B3 K3} -> [R3 B3 K3] | [R1 B1 K1] | [R2 B2 K2] | [R1 R2 R3 R4] ; {}",
     replace(ONE_OF_TEN, initial_meld_threshold=9, manipulation=Manipulation.OFF)),
    ("a run is dissolved beside an initial meld of its tiles", ONE_TO_FOUR_IN_GROUPS, ONE_OF_TEN),
    ("a meld of the table is left as it is, whatever the contract",
     "[R10 B10 K10] + {O9 O10 O11} -> [R10 B10 K10] | [O9 O10 O11] ; {}", ONE_COLOR),
    # The replacement of a joker is not in the initial meld of the same turn, if there is another tile
    ("either of two melds is the initial one", "[B5 K5 J] | [R5 R6 R7 R8] | [K9 K10 K11] + {R5 R6 R7 R8 R9 K9 K10 K11"
     " O1 B1} -> [B5 K5 R5] | [R5 R6 R7 R8 R9] | [R6 R7 R8] | [K9 K10 K11] | [K9 K10 K11] | [J O1 B1] ; {}",
     BY_THE_RACK),
    ("what replaces it leaves for a third meld", "[R12 R13 J] | [R3 R4 R5 R6 R7] + {R1 B1 O1 R8 R9 R10 R11 R11 R12 K5}"
     " -> [R8 R9 R10 R11 R12] | [R11 R12 R13] | run[J R3 R4 R5 R6 R7] | [O1 B1 R1] ; {K5}", PRESETS[Preset.VATIKAN]),
    ("what replaces it is in a meld that is not needed for the initial one", "[R5 R6 J] | [K9 K10 K11 J] + {R7 B7 O7 B1"
     " B2 B3 O10 O11 O12 R4} -> [J R4 R5 R6] | [K9 K10 K11 J] | [R7 B7 O7] | [B1 B2 B3] | [O10 O11 O12] ; {}",
     replace(BY_THE_RACK, initial_meld_threshold=33)),
    # Melds that only grow stay unchanged
    ("a run grows at its low end", "[R4 R5 R6] + *{R3} -> [R3 R4 R5 R6] ; {}", GROWING),
    ("a group with a joker is left alone", "[R7 B7 J] + *{R1 R2 R3} -> [R7 B7 J] | [R1 R2 R3] ; {}", GROWING),
    ("a group of declared jokers grows",
     "group[R7 J=B7 J=K7] + *{O7} -> group[R7 J=B7 J=K7 O7] ; {}", GROWING),
    ("a joker takes the face of one that is gone",
     "[R5 R6 R7] | [R5 B5 K5] | [R3 R4 J] + *{R2} -> [R5 R6 R7] | [R5 B5 K5] | [R2 R3 R4 J] ; {}", PHYSICAL),
    # Melds of the old table are recognized
    ("what states its kind is known before what does not",
     f"run[J J R5] | group[J J R5] + {{{INITIAL}}} -> [J J R5] | run[J J R5] | [{INITIAL}] ; {{}}", FOUR_JOKERS),
    ("what declares its faces is known before what does not: the first of two",
     f"{GROUP_DECLARED_KB} | {GROUP_DECLARED_BO} + {{{INITIAL}}} -> group[R5 J J] | {GROUP_DECLARED_KB} | [{INITIAL}]"
     " ; {}", FOUR_JOKERS),
    ("what declares its faces is known before what does not: the second of two",
     f"{GROUP_DECLARED_KB} | {GROUP_DECLARED_BO} + {{{INITIAL}}} -> group[R5 J J] | {GROUP_DECLARED_BO} | [{INITIAL}]"
     " ; {}", FOUR_JOKERS),
    ("what has to be declared and is not is known before one like it that is",
     "group[R7 B7 J=K7] + *{R7 B7 J} -> [R7 B7 J] | group[R7 B7 J=K7] ; {}", DECLARED),
    ("but what is declared is known first where there is one for each",
     f"group[R7 B7 J=K7] | group[R7 B7 J=O7] + {{{INITIAL}}} -> [R7 B7 J] | group[R7 B7 J=K7] | [{INITIAL}] ; {{}}",
     DECLARED),
    ("what declares its faces in another order is known",
     f"{GROUP_DECLARED_KB} + {{{INITIAL}}} -> group[R5 J=B5 J=K5] | [{INITIAL}] ; {{}}", FOUR_JOKERS),
    ("what states its kind alone has the faces that were declared",
     f"{GROUP_DECLARED_KB} + {{{INITIAL}}} -> group[R5 J J] | [{INITIAL}] ; {{}}", FOUR_JOKERS),
    # Retrieval
    ("one of three colors frees the joker of a group of four, where there are six",
     "[R7 B7 K7 J] + *{O7 R1 R2} -> [R7 B7 K7 O7] | [R1 R2 J] ; {}",
     SIX_COLORS_BOTH),
    ("all four missing colors free the joker of a group of three, where there are six",
     "[R7 B7 J] + *{K7 O7 G7 P7 R1 R2} -> [R7 B7 K7 O7 G7 P7] | [R1 R2 J] ; {}", SIX_COLORS_BOTH),
    ("one color frees a joker that was declared to be it",
     "group[R7 B7 J=K7] + *{K7 R1 R2} -> [R7 B7 K7] | [R1 R2 J] ; {}", SIX_COLORS_BOTH),
    # The initial meld
    ("a group and a run of all that is played, beside others that count as much or leave less",
     "[R12 B12 K12 O12] | [B12 K12 O12] + {B12 K12 O12 J R10 R11 R12} -> [R12 B12 K12 O12] | [B12 K12 O12 J]"
     " | [B12 K12 O12] | [R10 R11 R12] ; {}", replace(
         SAME_TURN, geometry_copies=3, initial_meld_threshold=40,
         initial_meld_count=InitialMeldCount.ONE_MELD_REACHES_THRESHOLD,
         initial_meld_required_kind=InitialMeldRequiredKind.RUN)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "ruleset"), [row[1:] for row in LEGAL], ids=[row[0] for row in LEGAL])
def test_a_play_is_legal(text: str, ruleset: Ruleset) -> None:
    assert violations_of_play(play_of(text, ruleset)) == []


ILLEGAL = [
    ("of two like melds that are not declared as they have to be one alone is known",
     "group[R7 B7 J=K7] + *{R7 B7 J} -> [R7 B7 J] | [R7 B7 J] ; {}", DECLARED,
     [("JOKER_DECLARATION_REQUIRED", "R7 B7 J")]),
    # The initial meld consists of rack tiles, for every rule
    ("an initial meld against the contract, of which the table has the tiles too",
     f"{ROWS_OF_TENS} + {{R10 B10 K10}} -> {ROWS_OF_TENS} | [R10 B10 K10] ; {{}}", ONE_COLOR,
     [("CONTRACT_VIOLATED", "R10 B10 K10")]),
    ("and where the table may be used in the same turn",
     f"{ROWS_OF_TENS} + {{R10 B10 K10}} -> {ROWS_OF_TENS} | [R10 B10 K10] ; {{}}", ONE_COLOR_SAME_TURN,
     [("CONTRACT_VIOLATED", "R10 B10 K10")]),
    ("an initial meld as another of the table",
     "[R10 B10 K10] + {R10 B10 K10} -> [R10 B10 K10] | [R10 B10 K10] ; {}", ONE_COLOR,
     [("CONTRACT_VIOLATED", "R10 B10 K10")]),
    ("an initial meld as another of the table, which may be used in the same turn",
     "[R10 B10 K10] + {R10 B10 K10} -> [R10 B10 K10] | [R10 B10 K10] ; {}", ONE_COLOR_SAME_TURN,
     [("CONTRACT_VIOLATED", "R10 B10 K10")]),
    ("a meld of the table could lie in the initial meld alone, where melds only grow",
     ONE_TO_FOUR_IN_GROUPS, replace(ONE_OF_TEN, manipulation=Manipulation.OFF), [("TABLE_MELD_CHANGED", "R1 R2 R3")]),
    ("what is changed whatever the initial meld is of is told alone", "[R1 R2 R3] | [R7 B7 K7 O7] + {R1 R2 R3 R4 B1 K1"
     " B2 K2 B3 K3 R8 R9} -> [R1 B1 K1] | [R2 B2 K2] | [R3 B3 K3] | [B7 K7 O7] | [R7 R8 R9] | [R1 R2 R3 R4] ; {}",
     replace(ONE_OF_TEN, manipulation=Manipulation.OFF), [("TABLE_MELD_CHANGED", "R7 B7 K7 O7")]),
    ("and where none is dissolved", ONE_TO_FOUR_IN_GROUPS,
     replace(ONE_OF_TEN, manipulation=Manipulation.PRIMITIVES_ONLY), [("TABLE_MELD_DISSOLVED", "R1 R2 R3")]),
    # The results of a play have tiles in ascending order
    ("tiles of several melds are missing", "[K1 K2 K3] | [R4 R5 R6] + *{B1 B2 B3} -> [B1 B2 B3] ; {}", SABRA,
     [("TABLE_TILE_MISSING", "R4 R5 R6 K1 K2 K3")]),
    ("foreign tiles", ". + *{R1 R2 R3} -> [R1 R2 R3] | [K7 B7 R7] ; {}", SABRA, [("TILE_NOT_IN_RACK", "R7 B7 K7")]),
    # Whether a joker of the table remains in its meld before the initial meld
    ("the joker stands for its face in a run of its neighbor", f"[R4 J R6] + {{R7 B4 K4 {INITIAL}}} -> [J R6 R7]"
     f" | [R4 B4 K4] | [{INITIAL}] ; {{}}", SABRA, [("INITIAL_MELD_TABLE_MODIFIED", "R4 J R6")]),
    ("the joker's face is in a run of none of its neighbors", f"[R4 J R6] + {{R5 R3 J {INITIAL}}} -> [R4 R5 R6]"
     f" | [R3 J J] | [{INITIAL}] ; {{}}", SABRA, [("JOKER_RETRIEVAL_BEFORE_INITIAL_MELD", "R4 J R6")]),
    ("the jokers' faces are in groups, with both jokers in each", f"run[R5 J J] + {{J J B5 K5 B6 B7 {INITIAL}}}"
     f" -> [R5 B5 K5] | group[B6 J=R6 J=K6] | group[B7 J=R7 J=K7] | [{INITIAL}] ; {{}}", FOUR_JOKERS,
     [("JOKER_RETRIEVAL_BEFORE_INITIAL_MELD", "R5 J J")]),
    ("a run in place of a group", f"run[J R5 J] + {{{INITIAL}}} -> group[J R5 J] | [{INITIAL}] ; {{}}", SABRA,
     [("JOKER_RETRIEVAL_BEFORE_INITIAL_MELD", "J R5 J")]),
    ("a run goes round by one", "[R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13] + {B10 K10 O10} -> [R2 R3 R4 R5 R6 R7 R8"
     " R9 R10 R11 R12 R13 R1] | [B10 K10 O10] ; {}", CYCLIC,
     [("INITIAL_MELD_TABLE_MODIFIED", "R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13")]),
    # Melds that only grow stay unchanged
    ("a run becomes a group", "run[R5 J J] + *{B1 B2 B3} -> group[R5 J J] | [B1 B2 B3] ; {}", GROWING,
     [("TABLE_MELD_CHANGED", "R5 J J")]),
    ("a run goes on from another start", "[R12 R13 R1] + *{R2 R3 R4 R5 R6 R7 R8 R9 R10 R11} -> [R1 R2 R3 R4 R5 R6 R7 R8"
     " R9 R10 R11 R12 R13] ; {}", replace(GROWING, run_wrap=RunWrap.CYCLIC), [("TABLE_MELD_CHANGED", "R12 R13 R1")]),
    ("a group loses a color", "[R7 B7 K7 O7] + *{R8 R9} -> [B7 K7 O7] | [R7 R8 R9] ; {}", GROWING,
     [("TABLE_MELD_CHANGED", "R7 B7 K7 O7")]),
    ("a joker of a group gets another face", "group[R7 B7 J=K7] + *{K7} -> group[R7 B7 K7 J=O7] ; {}", GROWING,
     [("TABLE_MELD_CHANGED", "R7 B7 J")]),
    ("a meld must not change yet", "[R7 B7 K7 O7] + {R8 R9 B10 K10 O10} -> [B7 K7 O7] | [R7 R8 R9] | [B10 K10 O10]"
     " ; {}", GROWING, [("INITIAL_MELD_TABLE_MODIFIED", "R7 B7 K7 O7")]),
    # Melds that are not dissolved
    ("a run keeps one tile in a run", "[R1 R2 R3] + *{B1 K1 B2 K2 R4 R5} -> [R1 B1 K1] | [R2 B2 K2] | [R3 R4 R5] ; {}",
     PRIMITIVE, [("TABLE_MELD_DISSOLVED", "R1 R2 R3")]),
    ("a run is dissolved, another is new", "[R1 R2 R3] + *{B1 K1 B2 K2 B3 K3 O7 O8 O9} -> [R1 B1 K1] | [R2 B2 K2]"
     " | [R3 B3 K3] | [O7 O8 O9] ; {}", PRIMITIVE, [("TABLE_MELD_DISSOLVED", "R1 R2 R3")]),
    ("both jokers of a run in a group", "run[R5 J J] + *{B5 K5 B6} -> [R5 B5 K5] | group[B6 J J] ; {}", PRIMITIVE,
     [("TABLE_MELD_DISSOLVED", "R5 J J")]),
    ("a meld must not be dissolved yet", "[R1 R2 R3] + {B1 K1 B2 K2 B3 K3 B10 K10 O10} -> [R1 B1 K1] | [R2 B2 K2]"
     " | [R3 B3 K3] | [B10 K10 O10] ; {}", PRIMITIVE, [("INITIAL_MELD_TABLE_MODIFIED", "R1 R2 R3")]),
    # Jokers beyond the tile set
    ("a joker stood for another face", "[K3 K4 J] | [R5 R6 R7] | [R5 B5 O5] + *{K5 R3 R4} -> [K3 K4 K5] | [R5 R6 R7]"
     " | [R5 B5 O5] | [R3 R4 J] ; {}", PHYSICAL, [("JOKER_FACE_EXHAUSTED", "R3 R4 J")]),
    ("one joker stood for the face, two do now", "[R5 B5 K5] | [R5 O5 K5] | [R3 R4 J] + *{R2 R4 J R6} -> [R5 B5 K5]"
     " | [R5 O5 K5] | [R2 R3 R4 J] | [R4 J R6] ; {}", PHYSICAL, [("JOKER_FACE_EXHAUSTED", "R4 J R6")]),
    ("two jokers of a group for which one color is left", "[R5 R6 R7] | [R5 R6 R7] | [K5 K6 K7] | [K5 K6 K7]"
     " + *{B5 J J} -> [R5 R6 R7] | [R5 R6 R7] | [K5 K6 K7] | [K5 K6 K7] | group[B5 J J] ; {}", PHYSICAL,
     [("JOKER_FACE_EXHAUSTED", "B5 J J")]),
    ("a run is laid beside an equal one, whose joker stood for the face", "[R5 B5 K5] | [R5 O5 K5] | [R3 R4 J]"
     " + *{R3 R4 J} -> [R5 B5 K5] | [R5 O5 K5] | [R3 R4 J] | [R3 R4 J] ; {}", PHYSICAL,
     [("JOKER_FACE_EXHAUSTED", "R3 R4 J")]),
    ("a group of the table may not grow yet", "[R9 K9 J] | [B8 B9 B10] | [B9 B10 B11] + {R9 K9 O9 J} -> [R9 K9 J]"
     " | [B8 B9 B10] | [B9 B10 B11] | [R9 K9 O9 J] ; {}", PHYSICAL, [("JOKER_FACE_EXHAUSTED", "R9 K9 O9 J")]),
    # Retrieval is checked where the rest of the table is valid. Its violations name the melds that had the jokers
    ("a joker leaves, another meld grows", "[R4 J R6] | [B1 B2 B3] + *{R5 K1 O1 B4} -> [R4 R5 R6] | [J K1 O1]"
     " | [B1 B2 B3 B4] ; {}", NEVER, [("JOKER_RETRIEVAL_FORBIDDEN", "R4 J R6")]),
    ("a joker leaves, a tile is missing", "[R4 J R6] | [B1 B2 B3 B4] + *{R5 K1 O1} -> [R4 R5 R6] | [J K1 O1]"
     " | [B1 B2 B3] ; {}", NEVER, [("TABLE_TILE_MISSING", "B4")]),
    ("a joker leaves, a tile is foreign", "[R4 J R6] + *{R5 K1} -> [R4 R5 R6] | [J K1 O1] ; {}", NEVER,
     [("TILE_NOT_IN_RACK", "O1")]),
    ("a joker leaves, a meld is too short", "[R4 J R6] + *{R5 K1 O1 R9 B9} -> [R4 R5 R6] | [J K1 O1] | [R9 B9] ; {}",
     NEVER, [("MELD_TOO_SHORT", "R9 B9")]),
    ("a joker leaves before the initial meld", f"[R4 J R6] + {{R5 K1 O1 {INITIAL}}} -> [R4 R5 R6] | [J K1 O1]"
     f" | [{INITIAL}] ; {{}}", NEVER, [("JOKER_RETRIEVAL_BEFORE_INITIAL_MELD", "R4 J R6")]),
    ("three of four missing colors for the joker of a group of three, where there are six",
     "[R7 B7 J] + *{K7 O7 G7 R1 R2} -> [R7 B7 K7 O7 G7] | [R1 R2 J] ; {}", SIX_COLORS_BOTH,
     [("JOKER_GROUP_NEEDS_BOTH_COLORS", "R7 B7 J")]),
    ("what replaces a joker is in the initial meld", "[B5 K5 J] | [R5 R6 R7 R8] + {R5 R6 R7 R8 R9 O1 B1} -> [B5 K5 R5]"
     " | [R5 R6 R7 R8 R9] | [R6 R7 R8] | [J O1 B1] ; {}", BY_THE_RACK,
     [("JOKER_REPLACEMENT_NOT_FROM_RACK", "B5 K5 J")]),
    ("a joker stays, as the run beside it is of the rack", "[B8 J B10] + {R6 R7 R8 R9 B8 B9 B9 B10} -> [R6 R7 R8 R9]"
     " | [B8 B9 B10 J] | [B8 B9 B10] ; {}", PRESETS[Preset.BOOK_1978],
     [("JOKER_RETURNED_TO_SAME_MELD", "B8 J B10"), ("JOKER_NOT_IN_NEW_MELD", "B8 J B10")]),
    ("the end of a run of three is not free", "[J R4 R5] | [R6 R7 R8] + *{B1 B2} -> [R4 R5 R6 R7 R8] | [B1 B2 J] ; {}",
     END_IS_FREE, [("JOKER_NOT_REPLACED", "J R4 R5")]),
    # Contracts: old melds keep their tiles, invalid melds are not checked
    ("a new meld before one of the table", "[R8 R9 R10 R11] + *{R8 R9 R10} -> [R8 R9 R10] | [R8 R9 R10 R11] ; {}",
     BELOW_10, [("CONTRACT_VIOLATED", "R8 R9 R10")]),
    ("a new meld like one of the table", "[R8 R9 R10] + *{R8 R9 R10} -> [R8 R9 R10] | [R8 R9 R10] ; {}",
     BELOW_10, [("CONTRACT_VIOLATED", "R8 R9 R10")]),
    ("a new meld that is none", ". + *{R1 R2 R3 B9 K9} -> [R1 R2 R3] | [B9 K9] ; {}", BELOW_10,
     [("MELD_TOO_SHORT", "B9 K9")]),
    # The call
    ("who plays nothing does not win", "[R1 R2 R3] + *{} -> [R1 R2 R3] ; {}", rules(win_call=WinCall.REQUIRED),
     [("NO_RACK_TILE_PLAYED", "")]),
    # The initial meld
    ("no meld of own tiles, where one meld must reach no threshold", "[R4 R5 R6] + {R7} -> [R4 R5 R6 R7] ; {}",
     rules(initial_meld_threshold=0, initial_meld_count=InitialMeldCount.ONE_MELD_REACHES_THRESHOLD),
     [("INITIAL_MELD_TABLE_MODIFIED", "R4 R5 R6")]),
    ("no meld of own tiles, where one is asked for", "[R4 R5 R6] + {R7} -> [R4 R5 R6 R7] ; {}",
     replace(SAME_TURN, initial_meld_count=InitialMeldCount.SINGLE_MELD),
     [("INITIAL_MELD_TABLE_MODIFIED", "R4 R5 R6"), ("INITIAL_MELD_BELOW_THRESHOLD", "")]),
    ("a joker and a foreign tile, where the table may be played on in the turn of the initial meld",
     ". + {R1 R2 J R5 R6} -> [R1 R2 J] | [R5 R6 R7] ; {}",
     replace(SAME_TURN, initial_meld_joker=InitialMeldJoker.FORBIDDEN),
     [("TILE_NOT_IN_RACK", "R7"), ("INITIAL_MELD_HAS_JOKER", "R1 R2 J")]),
    ("a foreign tile, where the table may be played on in the turn of the initial meld",
     f"[R4 R5 R6 R7] + {{B7 {INITIAL}}} -> [R4 R5 R6] | [R7 B7 K7] | [{INITIAL}] ; {{}}", SAME_TURN,
     [("TILE_NOT_IN_RACK", "K7"), ("INITIAL_MELD_TABLE_MODIFIED", "R4 R5 R6 R7")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "ruleset", "expected"), [row[1:] for row in ILLEGAL], ids=[row[0] for row in ILLEGAL])
def test_a_play_breaks_a_rule(text: str, ruleset: Ruleset, expected: list[tuple[str, str]]) -> None:
    assert violations_of_play(play_of(text, ruleset)) == expected


def test_a_meld_may_reach_the_limit_of_the_contract() -> None:
    ruleset = replace(CYCLIC, contract=Contract.SUM_AT_MOST_41)
    assert (
        violations_of_play(play_of(". + *{R13 R1 R2 R3 R4 R5 R6 R7} -> [R13 R1 R2 R3 R4 R5 R6 R7] ; {}", ruleset)) == []
    )


@pytest.mark.parametrize(
    ("text", "ruleset", "has"),
    [
        (". + *{R1 R2} -> [R1 R2] ; {}", SABRA, True),
        ("[R3 R4 R5] + *{R1 R2} -> [R1 R2] ; {}", SABRA, True),
        (". + *{R1 R2} -> [R1 R2 R1] ; {}", SABRA, False),
        (". + *{R1 R2} -> [R1 R2 R3] ; {}", SABRA, False),
        (". + *{R1 R2} -> [R1 R2 J] ; {}", replace(SABRA, geometry_jokers=0), False),
        (". + *{R1 R2} -> [R1 R2 G3] ; {}", SABRA, False),
    ],
)
def test_whether_a_player_has_all_added_tiles(text: str, ruleset: Ruleset, has: bool) -> None:
    assert has_own_tiles_only(play_of(text, ruleset)) is has


def test_judging_a_play_twice_gives_the_same_violations() -> None:
    play = play_of("[R8 R9 R10] + *{R1 R2 R3} -> [R8 R9 R10] | [R1 R2 R3] ; {}", BELOW_10)
    assert judged(play) == judged(play)


def test_a_group_in_another_order_is_read_by_its_tiles() -> None:
    judgement = judge_text("group[J R5 J] + *{R1 R2 R3} -> [R5 J J] | [R1 R2 R3] ; {}")
    assert judgement.table[0].kind is MeldKind.RUN


def test_the_faces_of_a_group_lie_as_they_are_declared_again() -> None:
    judgement = judge_text(f"{GROUP_DECLARED_KB} + *{{R1 R2 R3}} -> group[R5 J=B5 J=K5] | [R1 R2 R3] ; {{}}")
    assert judgement.table[0].joker_faces == ((parse_tiles("B5")), parse_tiles("K5"))


def test_a_new_meld_keeps_its_faces_open_beside_one_like_it_that_was_declared() -> None:
    judgement = judge_text("group[R7 B7 J=K7] + *{R7 B7 J} -> group[R7 B7 J=K7] | [R7 B7 J] ; {}")
    assert [meld.joker_faces for meld in judgement.table] == [(parse_tiles("K7"),), (parse_tiles("K7 O7"),)]


# The River


def pull(text: str, river: str, index: int = 0) -> Play:
    return replace(play_of(text, RIVER), river=parse_tiles(river), river_index=index)


def test_the_key_is_there_once() -> None:
    assert violations_of_play(pull(". + *{R7 B7 K8 K9} -> [R7 B7 K7] | [K7 K8 K9] ; {}", "K7")) == [
        ("TILE_NOT_IN_RACK", "K7")
    ]


def test_a_tile_like_one_of_the_plunder_is_played_from_the_rack() -> None:
    assert violations_of_play(pull(". + {R10 B10} -> [R10 B10 K10] ; {}", "K10 R10")) == []


def test_the_plunder_is_named_in_ascending_order() -> None:
    play = pull(". + *{R7 B7 R9} -> [R7 B7 K7] | [R9 O9 B9] ; {}", "K7 O9 B9")
    assert violations_of_play(play) == [("RIVER_PLUNDER_PLAYED", "B9 O9")]


@pytest.mark.parametrize("reuse", JokerRetrievalReuse)
@pytest.mark.parametrize("mode", [mode for mode in JokerRetrievalMode if mode is not JokerRetrievalMode.OFF])
def test_joker_rules_are_skipped_if_plunder_is_played(mode: JokerRetrievalMode, reuse: JokerRetrievalReuse) -> None:
    text = "[B10 B11 J] | [R10 R11 R12] + *{B12 R9} -> [B10 B11 B12] | [R10 R11 R12] | [R8 R9 R10 J] ; {}"
    ruleset = replace(RIVER, joker_retrieval_mode=mode, joker_retrieval_reuse=reuse)
    play = replace(play_of(text, ruleset), river=parse_tiles("R8 R10"), river_index=0)
    assert violations_of_play(play) == [("RIVER_PLUNDER_PLAYED", "R10")]


def test_a_pull_outside_the_river_reports_its_length() -> None:
    (violation,) = judged(pull(". + *{R7 B7 K7} -> [R7 B7 K7] ; {}", "O1 O2", 5)).violations
    assert violation.metadata == (("index", 5), ("count", 2))


# Retrieval


RETRIEVALS = [
    # A play, the options of retrieval, the reasons
    ("[B5 B6 J] + *{B7} -> [B5 B6 B7 J] ; {}", "OFF FORBIDDEN", "JOKER_RETRIEVAL_FORBIDDEN"),
    (
        "[J O4 O5] + *{O3} -> [O3 O4 O5 J] ; {}",
        "NEW_MELD FORBIDDEN",
        "JOKER_RETURNED_TO_SAME_MELD JOKER_NOT_IN_NEW_MELD",
    ),
    ("run[J J K6] + *{K5} -> [J K5 K6 J] ; {}", "NEW_MELD_ALL_RACK", "JOKER_NOT_IN_NEW_MELD"),
    ("group[B9 J J] + *{K9} -> [B9 J J K9] ; {}", "OFF", ""),
    ("[R6 R7 J J] + *{R8} -> [R6 R7 R8 J J] ; {}", "REPLACE RACK_ONLY FORBIDDEN", "JOKER_RETURNED_TO_SAME_MELD"),
    ("[J R4 R5 J] + *{K3 K5} -> [R4 R5 J] | [K3 J K5] ; {}", "LOCKED NEW_MELD_TWO_RACK_TILES END_OF_RUN_FREE", ""),
    ("[B8 B9 J J] + *{B7 O9} -> run[J J O9] | [B7 B8 B9] ; {}",
     "NEW_MELD_TWO_RACK_TILES FORBIDDEN", "JOKER_NOT_IN_NEW_MELD"),
    ("[R10 R11 J J] + *{R9 R9} -> [R9 R10 R11] | run[R9 J J] ; {}",
     "REPLACE FORBIDDEN END_OF_RUN_FREE", "JOKER_NOT_REPLACED"),
    ("[R4 R5 J] | [R4 R5 J] + *{R6} -> [R4 R5 R6 J] | [R4 R5 J] ; {}",
     "LOCKED RACK_ONLY NEW_MELD FORBIDDEN BOTH_COLORS", "JOKER_RETURNED_TO_SAME_MELD"),
    ("[K5 K6 J] | [R1 J O1] + *{K4} -> [R1 J O1] | [J K4 K5 K6] ; {}",
     "REPLACE RACK_ONLY NEW_MELD_TWO_RACK_TILES FORBIDDEN", "JOKER_NOT_REPLACED JOKER_REUSE_NEEDS_TWO_RACK_TILES"),
    ("[K5 B5 J] | [K5 B5 J] + *{O5} -> [J K5 B5 J] | [K5 B5 O5] ; {}",
     "LOCKED NEW_MELD_TWO_RACK_TILES", "JOKER_NOT_IN_NEW_MELD"),
    ("run[K6 J J] + *{B10 K7 K9 J} -> [J K6 K7] | run[J J K9] ; {B10}",
     "REPLACE RACK_ONLY NEW_MELD FORBIDDEN END_OF_RUN_FREE", ""),
    ("[J O7 R7] | [J O8 O9] + *{B9 O7} -> [J O7 R7] | [O7 O8 O9 J] ; {B9}",
     "LOCKED RACK_ONLY NEW_MELD BOTH_COLORS END_OF_RUN_FREE", "JOKER_NOT_IN_NEW_MELD"),
    ("[J O7 R7] | [J O8 O9] + *{B9 O7} -> [J O7 R7] | [O7 O8 O9 J] ; {B9}",
     "REPLACE NEW_MELD_ALL_RACK BOTH_COLORS", "JOKER_REUSE_NEEDS_RACK_ONLY"),
    ("[K9 J B9] | group[J R9 J] + *{R7} -> [K9 R9 B9 J] | run[J R7 J] ; {}",
     "LOCKED RACK_ONLY NEW_MELD_ALL_RACK END_OF_RUN_FREE", "JOKER_MELD_LOCKED JOKER_REUSE_NEEDS_RACK_ONLY"),
    ("[J K6 B6 R6] | run[J O6 J] + *{O5} -> [K6 B6 R6] | [J O5 O6 J J] ; {}",
     "REPLACE FORBIDDEN END_OF_RUN_FREE", "JOKER_RETURNED_TO_SAME_MELD"),
    ("[J K6 B6 R6] | run[J O6 J] + *{O5} -> [K6 B6 R6] | [J O5 O6 J J] ; {}",
     "LOCKED RACK_ONLY NEW_MELD_TWO_RACK_TILES END_OF_RUN_FREE", "JOKER_MELD_LOCKED JOKER_NOT_IN_NEW_MELD"),
    ("[J O10 B10 J] + *{R9 R10 O10} -> group[J O10 J] | [B10 O10 R10] ; {R9}",
     "REPLACE BOTH_COLORS", "JOKER_NOT_REPLACED"),
    ("[J O10 B10 J] + *{R9 R10 O10} -> group[J O10 J] | [B10 O10 R10] ; {R9}",
     "LOCKED FORBIDDEN BOTH_COLORS", "JOKER_MELD_LOCKED"),
    ("group[J O5 J] | [R5 R6 R7] + *{R5 K6} -> [R5 O5 J] | [R5 R6 R7 J] ; {K6}",
     "LOCKED RACK_ONLY NEW_MELD_TWO_RACK_TILES BOTH_COLORS", "JOKER_REUSE_NEEDS_TWO_RACK_TILES"),
    ("[J R4 R5] | [R3 B3 J] + *{R3 R5 K3} -> [R3 B3 J] | [R3 R4 R5 J] ; {R5 K3}",
     "LOCKED RACK_ONLY FORBIDDEN END_OF_RUN_FREE", "JOKER_RETURNED_TO_SAME_MELD"),
    ("group[J J O4] | [K4 B4 R4] + *{R5 B4} -> [K4 B4 R4 O4] | group[J J B4] ; {R5}",
     "LOCKED RACK_ONLY NEW_MELD END_OF_RUN_FREE", "JOKER_REPLACEMENT_NOT_FROM_RACK JOKER_NOT_IN_NEW_MELD"),
    ("group[J J K5] | [B6 B7 B8] + *{B4 K3 K4} -> [J K3 K4 K5] | [B6 B7 B8 J] ; {B4}",
     "REPLACE RACK_ONLY NEW_MELD_TWO_RACK_TILES FORBIDDEN BOTH_COLORS", "JOKER_NOT_REPLACED JOKER_NOT_IN_NEW_MELD"),
    ("[B2 J K2 O2] | [B2 J K2 O2] + *{R2 R5} -> [B2 O2 R2] | [O2 B2 K2] | run[K2 J J] ; {R5}",
     "LOCKED RACK_ONLY END_OF_RUN_FREE", "JOKER_MELD_LOCKED"),
    ("[J B7 B8] | group[J J K7] + *{R7 B6 B6 O7} -> run[J J B6] | [O7 B7 K7] | [B6 J B8] ; {R7}",
     "REPLACE RACK_ONLY BOTH_COLORS", "JOKER_REPLACEMENT_NOT_FROM_RACK"),
    ("[J B7 B8] | group[J J K7] + *{R7 B6 B6 O7} -> run[J J B6] | [O7 B7 K7] | [B6 J B8] ; {R7}",
     "LOCKED RACK_ONLY FORBIDDEN BOTH_COLORS END_OF_RUN_FREE", "JOKER_REPLACEMENT_NOT_FROM_RACK"),
    ("group[J B5 J] | [J O5 K5] + *{R5 R5 R5 B4 O5} -> [B5 O5 K5 R5] | [O5 J R5] | run[B4 J J] ; {R5}",
     "LOCKED RACK_ONLY BOTH_COLORS", "JOKER_REPLACEMENT_NOT_FROM_RACK"),
    ("group[J J R11 J] + *{R10 B11 B12 K11 K12 O11} -> [J R11 O11] | [B11 B12 J] | [K11 K12 J] ; {R10}",
     "LOCKED FORBIDDEN BOTH_COLORS", ""),
    ("[R11 J J B11] + *{R6 R11 B6 B11 K9 K11 O11} -> [R11 O11 K11 B11] | [R11 B11 J] | [J R6 B6] ; {K9}",
     "LOCKED BOTH_COLORS END_OF_RUN_FREE", ""),
    ("[R5 O5 B5] | [J R3 J R5] | run[J J R4] + *{R4 R6 O3} -> [J J R3 R4 R5 R6] | run[J R4 J] | [R5 O5 B5] ; {O3}",
     "LOCKED RACK_ONLY BOTH_COLORS END_OF_RUN_FREE", "JOKER_REPLACEMENT_NOT_FROM_RACK"),
    ("[B10 R10 J] | [B10 R10 J] | [K10 J O10] + *{B11 K9 K10 O10} -> [J B10 R10 O10] | [K10 J O10 J] | [B10 R10 K10]"
     " ; {B11 K9}",
     "REPLACE RACK_ONLY NEW_MELD_TWO_RACK_TILES BOTH_COLORS END_OF_RUN_FREE", "JOKER_REUSE_NEEDS_TWO_RACK_TILES"),
    ("[B11 O11 J R11] | [K10 J O10] + *{R10 R11 B10 K11 K11 K12 J} -> [B11 O11 K11 R11] | [O10 B10 R10 J] | group[J"
     " R11 J] | [K10 K11 K12] ; {}",
     "REPLACE NEW_MELD_TWO_RACK_TILES BOTH_COLORS", ""),

    ("group[B5 J J] + *{B6 B7 K5 K6 K7 R4} -> [B5 B6 B7] | [K5 K6 K7] | [R4 J J] ; {}", "REPLACE",
     "JOKER_NOT_REPLACED"),
    ("[R3 R4 J] | [R5 B5 K5 O5] + *{R2 J J} -> [R2 R3 R4] | [B5 K5 O5] | run[R5 J J J] ; {}",
     "REPLACE NEW_MELD_TWO_RACK_TILES", ""),
    ("[J R4 R5 J] + *{R6 R7 R8 K1 K2} -> [J R4 R5] | [R6 R7 R8] | [K1 K2 J] ; {}", "LOCKED", "JOKER_MELD_LOCKED"),
    ("[J R4 R5 J] + *{R6 K1 K2} -> [J R4 R5 R6] | [K1 K2 J] ; {}", "LOCKED", ""),
    ("group[R5 J J J] + *{B5 B5 B6 B7 K1 K2 O1 O2} -> group[R5 B5 J] | [B5 B6 B7] | [K1 K2 J] | [O1 O2 J] ; {}",
     "LOCKED", "JOKER_MELD_LOCKED"),
    ("[J R4 R5 J] | [R6 B6 K6 O6] + *{R6 R7} -> [J R4 R5 R6] | [B6 K6 O6] | [R6 R7 J] ; {}",
     "LOCKED RACK_ONLY NEW_MELD_ALL_RACK", "JOKER_REUSE_NEEDS_RACK_ONLY"),
    ("group[R5 J J] | group[K9 J J] + *{R6 R7 K10 K11 B1 B2 O1 O2 B8 O8} -> [R5 R6 R7] | [K9 K10 K11] | [B1 B2 J]"
     " | [O1 O2 J] | group[B8 O8 J J] ; {}", "REPLACE", "JOKER_NOT_REPLACED"),
    ("[R4 J R6] | [R4 J R6] | [B4 J B6] | [K4 J K6] + *{R5 B5 K5 R2 R3 R7 R8 O1 O2 O11 O12 B9 O9} -> [R4 R5 R6]"
     " | [B4 B5 B6] | [K4 K5 K6] | [R2 R3 R4] | [R6 R7 R8] | [O1 O2 J] | [O11 O12 J] | group[B9 O9 J J] ; {}",
     "LOCKED", "JOKER_MELD_LOCKED"),
    ("run[B9 J J] | [O9 B9 K9] + *{R9 B11} -> [R9 O9 B9 K9] | [B9 J B11 J] ; {}",
     "LOCKED FORBIDDEN BOTH_COLORS END_OF_RUN_FREE", "JOKER_RETURNED_TO_SAME_MELD"),
    ("[R4 J R6] | group[K5 J J] + *{B1 B2 B3} -> group[K5 J J] | [R4 J R6] | [B1 B2 B3] ; {}", "LOCKED", ""),
    ("[R4 J R6] | group[K5 J J] + *{B1 B2 R5} -> group[K5 J J] | [R4 R5 R6] | [B1 B2 J] ; {}", "", ""),
    ("run[J J K6] | [K3 K4 J K6 K7] | [K3 B3 O3] + *{R3 K5 K5} -> [K3 B3 O3 R3] | run[K3 J J] | [K4 K5 K6 J]"
     " | [K5 K6 K7] ; {}",
     "REPLACE RACK_ONLY NEW_MELD_TWO_RACK_TILES BOTH_COLORS END_OF_RUN_FREE", "JOKER_REUSE_NEEDS_TWO_RACK_TILES"),
    ("[R4 J R6] | [R4 J R6] | [B1 B2 J] + *{B3} -> [R4 J R6] | [R4 J R6] | [B1 B2 B3 J] ; {}", "LOCKED FORBIDDEN",
     "JOKER_RETURNED_TO_SAME_MELD"),
    # Under LOCKED a tile, but no joker, is taken from a meld with jokers: they were not used
    ("[R5 J R7 R8] + *{B8 K8} -> [R5 J R7] | [R8 B8 K8] ; {}", "LOCKED NEW_MELD FORBIDDEN", "JOKER_MELD_LOCKED"),
    (
        "[R5 J R7 R8] + *{B8 K8} -> [R5 J R7] | [R8 B8 K8] ; {}",
        "LOCKED RACK_ONLY NEW_MELD_ALL_RACK",
        "JOKER_MELD_LOCKED",
    ),
    ("[R5 B5 K5 J] + *{R6 R7} -> [B5 K5 J] | [R5 R6 R7] ; {}", "LOCKED NEW_MELD_TWO_RACK_TILES", "JOKER_MELD_LOCKED"),
    ("[R5 J R7] | [R1 R2 R3] + *{B5 K5 B7 K7} -> [R1 R2 R3 J] | [R5 B5 K5] | [R7 B7 K7] ; {}", "LOCKED NEW_MELD",
     "JOKER_MELD_LOCKED JOKER_NOT_IN_NEW_MELD"),
]  # fmt: skip
"""Random plays. Each detects another mutation of the search for an assignment."""


VALUES_OF_RETRIEVAL: dict[str, tuple[str, object]] = {
    value.name: (f"joker_retrieval_{option}", value)
    for option in ("mode", "source", "reuse", "same_meld", "group_of_three")
    for value in type(getattr(SABRA, f"joker_retrieval_{option}"))
} | {"END_OF_RUN_FREE": ("joker_retrieval_end_of_run_free", True)}


def retrieval_rules(values: str) -> Ruleset:
    """Returns a ruleset with four jokers and some values of the retrieval options."""
    options = dict(VALUES_OF_RETRIEVAL[value] for value in values.split())
    return replace(FOUR_JOKERS, **options)  # type: ignore[arg-type] # each has its option's type


@pytest.mark.parametrize(("text", "values", "reasons"), RETRIEVALS)
def test_jokers_are_moved_by_the_rules(text: str, values: str, reasons: str) -> None:
    assert [reason for reason, _ in violations_of_play(play_of(text, retrieval_rules(values)))] == reasons.split()


@pytest.mark.parametrize(
    ("text", "values", "reasons"),
    [
        ("[O5 K5 J] + *{B5} -> [J O5 B5 K5] ; {}", "FORBIDDEN", ""),
        ("run[J J R3] + *{R2} -> [J R2 R3 J] ; {}", "ALLOWED", "JOKER_NOT_IN_NEW_MELD"),
    ],
)
def test_a_replaced_joker_goes_to_a_new_set(text: str, values: str, reasons: str) -> None:
    rules = replace(
        FOUR_JOKERS,
        joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD_IF_REPLACED,
        joker_retrieval_same_meld=JokerRetrievalSameMeld[values],
    )
    assert [reason for reason, _ in violations_of_play(play_of(text, rules))] == reasons.split()


def work(play: Play) -> int:
    """Returns the number of function calls of a retrieval search."""
    return calls_in(retrieval, lambda: retrieval.retrieval_reasons(play))


def test_a_search_of_retrieval_takes_no_more_work_than_it_did() -> None:
    assert sum(work(play_of(text, retrieval_rules(values))) for text, values, _ in RETRIEVALS) <= 8724


MANY_JOKERS: list[tuple[str, str, str]] = [
    ("[J O5 R5 K5] | [J O5 R5 K5] | group[B5 J J] | group[B5 J J] | [R6 R7 R8] | [O8 K8 B8] + *{R8 B8 K8 O6 O7} ->"
     " [R8 J K8 B8] | [O8 J B8 K8] | [R6 R7 R8] | [B5 O5 R5 K5] | [J O5 R5 K5] | group[B5 J J] | [J O6 O7] ; {}",
     "LOCKED NEW_MELD_TWO_RACK_TILES BOTH_COLORS END_OF_RUN_FREE",
     "JOKER_MELD_LOCKED JOKER_REUSE_NEEDS_TWO_RACK_TILES"),
    ("group[K13 J J] | group[K13 J J] | [J K10 K11 J] + *{R13 K9 K11 K12 K12 O12} -> [K12 O12 J] | [J K10 K11 J]"
     " | [K9 J K11 K12 K13] | [R13 K13 J J] ; {}",
     "REPLACE RACK_ONLY FORBIDDEN END_OF_RUN_FREE", "JOKER_NOT_REPLACED"),
    ("[R10 R11 J] | [B10 B11 J] | [K10 K11 J] | [O10 O11 J] | [R7 R8 J] | [B7 B8 J]"
     " + *{R1 R2 R9 R12 B1 B2 B9 B12 K1 K2 K12 O1 O2 O12 R4 R5 B4 B5} -> [R10 R11 R12] | [B10 B11 B12] | [K10 K11 K12]"
     " | [O10 O11 O12] | [R7 R8 R9] | [B7 B8 B9] | [R1 R2 J] | [B1 B2 J] | [K1 K2 J] | [O1 O2 J] | [R4 R5 J]"
     " | [B4 B5 J] ; {}",
     "LOCKED RACK_ONLY NEW_MELD_TWO_RACK_TILES BOTH_COLORS", ""),
]  # fmt: skip
"""Six jokers with thousands of possible positions."""


@pytest.mark.parametrize(("text", "values", "reasons"), MANY_JOKERS)
def test_many_jokers_are_soon_judged(text: str, values: str, reasons: str) -> None:
    rules = replace(retrieval_rules(values), geometry_jokers=0, geometry_jokers_per_player=1, players_max=6)
    play = play_of(text, rules)
    assert [reason for reason, _ in violations_of_play(play)] == reasons.split()
    assert work(play) <= 2895


# The initial meld, where the table may be used in the same turn, compared with every choice of melds


MELDS = [
    meld
    for text in ("[{0}4 {0}5 {0}6]", "[{0}5 {0}6 {0}7]", "[{0}6 {0}7 {0}8]", "[{0}4 {0}5 {0}6 {0}7]", "[J {0}5 {0}6]")
    for meld in (parse_meld(text.format(color)) for color in "RBK")
] + [parse_meld(f"[{text}]") for value in (4, 5, 6, 7, 8) for text in (
    f"R{value} B{value} K{value}", f"R{value} B{value} O{value}", f"R{value} K{value} O{value}", f"R{value} B{value} J",
)]  # fmt: skip


def random_initial_play(rng: random.Random) -> Play:
    """Returns a play of rack tiles in which new melds and old ones compete for tiles."""
    ruleset = replace(
        SABRA,
        initial_meld_same_turn_table_play=InitialMeldSameTurnTablePlay.ALLOWED,
        initial_meld_threshold=rng.choice((15, 18, 21, 30, 33, 40)),
        initial_meld_comparison=rng.choice(list(InitialMeldComparison)),
        initial_meld_count=rng.choice(list(InitialMeldCount)),
        initial_meld_joker=rng.choice(list(InitialMeldJoker)),
        initial_meld_required_kind=rng.choice(list(InitialMeldRequiredKind)),
    )
    lie: Counter[Tile] = Counter()
    after: list[ProposedMeld] = []
    for meld in rng.sample(MELDS, len(MELDS)):
        if len(after) < rng.choice((3, 5, 6)) and all(lie[t] < 2 for t in meld.tiles):
            lie.update(meld.tiles)
            after.append(meld)
    left = +lie
    before: list[Meld] = []
    for meld in rng.sample(MELDS, len(MELDS)):
        if len(before) < 2 and Counter(meld.tiles) <= left:
            left -= Counter(meld.tiles)
            reading = read_meld(meld, ruleset)
            assert isinstance(reading, Meld)
            before.append(reading)
    return Play(tuple(before), tuple(after), tuple(sorted(left.elements())), has_melded=False, ruleset=ruleset)


def worth(meld: Meld, ruleset: Ruleset) -> int:
    """Returns the points of a meld in the initial meld."""
    if ruleset.initial_meld_joker is not InitialMeldJoker.ZERO:
        return meld.points
    return meld.points - sum(value_of(faces[0]) for faces in meld.joker_faces)


def choices(play: Play, melds: tuple[Meld, ...]) -> Iterator[tuple[bool, int]]:
    """Yields, for every choice of melds of played tiles, whether its kind is right, and its points."""
    ruleset, played = play.ruleset, Counter(play.rack)
    for chosen in chain.from_iterable(combinations(melds, count) for count in range(len(melds) + 1)):
        tiles = Counter(t for meld in chosen for t in meld.tiles)
        if ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN and tiles[JOKER]:
            continue
        if ruleset.initial_meld_count is InitialMeldCount.SINGLE_MELD and len(chosen) > 1:
            continue
        if tiles <= played:
            any_kind = ruleset.initial_meld_required_kind is InitialMeldRequiredKind.ANY
            points = [worth(meld, ruleset) for meld in chosen]
            best = ruleset.initial_meld_count is InitialMeldCount.ONE_MELD_REACHES_THRESHOLD
            kind = any_kind or any(meld.kind is MeldKind.RUN for meld in chosen)
            yield kind, max(points, default=0) if best else sum(points)


TOUCHED = {Reason.INITIAL_MELD_TABLE_MODIFIED, Reason.JOKER_RETRIEVAL_BEFORE_INITIAL_MELD}
TOO_FEW = {Reason.INITIAL_MELD_BELOW_THRESHOLD, Reason.INITIAL_MELD_NO_MELD_REACHES_THRESHOLD}


@pytest.mark.parametrize("seed", few_of(range(60), 15))
def test_the_melds_that_serve_the_player_best_are_the_initial_meld(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        play = random_initial_play(rng)
        judgement = judged(play)
        reasons = {violation.reason for violation in judgement.violations}
        if not judgement.tiles_played:
            continue
        kind, points = max(choices(play, judgement.table))
        greater = play.ruleset.initial_meld_comparison is InitialMeldComparison.GREATER_THAN
        enough = points > play.ruleset.initial_meld_threshold or (
            points == play.ruleset.initial_meld_threshold and not greater
        )
        assert (Reason.INITIAL_MELD_KIND_REQUIRED in reasons) == (not kind)
        assert bool(reasons & TOO_FEW) == (not enough)
        assert bool(reasons & TOUCHED) == (bool(play.changed_melds) and not (kind and enough))
        if play.ruleset.initial_meld_count is not InitialMeldCount.ONE_MELD_REACHES_THRESHOLD and not enough:
            (violation,) = (violation for violation in judgement.violations if violation.reason in TOO_FEW)
            assert dict(violation.metadata)["total"] == points


# Values


MODULES = [
    importlib.import_module(f"{package.__name__}.{module.name}")
    for package in (engine, engine.melding, engine.melding.retrieval, engine.turns)
    for module in pkgutil.iter_modules(package.__path__)
]
VALUES = [
    value
    for module in MODULES
    for value in vars(module).values()
    if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == module.__name__
]


@each_of("value", VALUES)
def test_values_are_frozen(value: type) -> None:
    assert value.__dataclass_params__.frozen  # type: ignore[attr-defined] # missing in typeshed


@each_of("value", VALUES)
def test_values_have_slots_unless_they_cache_facts(value: type) -> None:
    remembers = any(isinstance(part, cached_property | lazy_property) for part in vars(value).values())
    assert remembers or "__slots__" in vars(value)
