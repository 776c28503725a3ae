import random
from collections import Counter
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.melding.melds import (
    Meld,
    MeldKind,
    NotAMeld,
    ProposedMeld,
    as_proposed,
    canonical_order,
    declared_faces,
    joker_points,
    read_meld,
)
from engine.melding.notation import format_meld, parse_meld
from engine.melding.ruleset import (
    SABRA,
    JokersAdjacent,
    JokersDeclaration,
    JokersMaxPerMeld,
    MeldOrder,
    Ruleset,
    RunWrap,
)
from engine.notation import parse_tiles
from engine.tiles import JOKER, NATURALS, Tile, value_of
from engine.violations import Reason
from support.cases import each_of
from support.random_play import random_ruleset
from support.soak import few_of

ONE = replace(SABRA, jokers_max_per_meld=JokersMaxPerMeld.ONE)
TWO = replace(SABRA, geometry_jokers=4, jokers_max_per_meld=JokersMaxPerMeld.TWO)
NOT_MORE = replace(SABRA, jokers_max_per_meld=JokersMaxPerMeld.NOT_MORE_THAN_NATURALS)
APART = replace(SABRA, jokers_adjacent=JokersAdjacent.FORBIDDEN)
EXPLICIT = replace(SABRA, jokers_declaration=JokersDeclaration.EXPLICIT_WHEN_AMBIGUOUS)
NO_JOKERS = replace(SABRA, geometry_jokers=0)
FOUR_JOKERS = replace(SABRA, geometry_jokers=4)
PER_PLAYER = replace(SABRA, geometry_jokers=0, geometry_jokers_per_player=1)
SIX = replace(SABRA, geometry_colors=6, geometry_jokers=4)
HIGH = replace(FOUR_JOKERS, run_wrap=RunWrap.ONE_HIGH)
CYCLIC = replace(FOUR_JOKERS, run_wrap=RunWrap.CYCLIC)
NO_LEAD = replace(FOUR_JOKERS, jokers_may_lead=False)
WHEN_TWO = replace(FOUR_JOKERS, jokers_declaration=JokersDeclaration.EXPLICIT_WHEN_TWO)
ALWAYS = replace(FOUR_JOKERS, jokers_declaration=JokersDeclaration.ALWAYS_EXPLICIT)
SORTED = replace(FOUR_JOKERS, meld_order=MeldOrder.CANONICALISE)


def all_of(ruleset: Ruleset, **options: object) -> Ruleset:
    return replace(ruleset, **options)  # type: ignore[arg-type]


NO_LEAD_SORTED = all_of(NO_LEAD, meld_order=MeldOrder.CANONICALISE)
NO_LEAD_HIGH = all_of(NO_LEAD, run_wrap=RunWrap.ONE_HIGH)
NO_LEAD_HIGH_SORTED = all_of(NO_LEAD_HIGH, meld_order=MeldOrder.CANONICALISE)
CYCLIC_SORTED = all_of(CYCLIC, meld_order=MeldOrder.CANONICALISE)
APART_SORTED = all_of(APART, meld_order=MeldOrder.CANONICALISE)
EXPLICIT_SORTED = all_of(EXPLICIT, meld_order=MeldOrder.CANONICALISE)

MELDS = [
    # text, kind, points, faces of each joker
    ("[R7 B7 K7]", "group", 21, []),
    ("[O1 K1 B1 R1]", "group", 4, []),
    ("[R13 B13 K13 O13]", "group", 52, []),
    ("[R1 R2 R3]", "run", 6, []),
    ("[O11 O12 O13]", "run", 36, []),
    ("[B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 B12 B13]", "run", 91, []),
    ("[R7 B7 J]", "group", 21, ["K7 O7"]),
    ("[J R7 B7 K7]", "group", 28, ["O7"]),
    ("[R7 J J O7]", "group", 28, ["B7 K7", "B7 K7"]),
    ("[K4 J K6]", "run", 15, ["K5"]),
    ("[J R12 R13]", "run", 36, ["R11"]),
    ("[J R2 R3 J]", "run", 10, ["R1", "R4"]),
    ("[B3 J J B6]", "run", 18, ["B4", "B5"]),
    ("[J B2 J B4 B5]", "run", 15, ["B1", "B3"]),
    ("[J J R3 R4]", "run", 10, ["R1", "R2"]),
]

SINGLE_NATURAL = [
    # tiles, as a run (None: out of range), as a group
    ("J J R5", 12, 15),
    ("J R5 J", 15, 15),
    ("R5 J J", 18, 15),
    ("J J R1", None, 3),
    ("J J R2", None, 6),
    ("J R1 J", None, 3),
    ("R13 J J", None, 39),
    ("R12 J J", None, 36),
    ("J R13 J", None, 39),
    ("J J R3", 6, 9),
    ("J J J R9", 30, 36),
    ("J J J R3", None, 12),
    ("J J R9 J J", 45, None),
]

NO_MELDS = [
    # text, reason, suggested order
    ("[]", "MELD_EMPTY", ""),
    ("[R1]", "MELD_TOO_SHORT", ""),
    ("[J]", "MELD_TOO_SHORT", ""),
    ("[R1 R2]", "MELD_TOO_SHORT", ""),
    ("[R1 J]", "MELD_TOO_SHORT", ""),
    ("[J J J]", "MELD_ALL_JOKERS", ""),
    ("[J J J J]", "MELD_ALL_JOKERS", ""),
    ("[R7 B7 R7]", "GROUP_COLOR_REPEAT", ""),
    ("[R7 R7 J]", "GROUP_COLOR_REPEAT", ""),
    ("[R7 B7 K7 O7 R7]", "GROUP_COLOR_REPEAT", ""),
    ("[R7 B7 K7 O7 J]", "GROUP_TOO_LARGE", ""),
    ("[R7 B7 J J J]", "GROUP_TOO_LARGE", ""),
    ("[R7 B7 K8]", "GROUP_VALUE_MISMATCH", ""),
    ("[R7 B7 K7 O8]", "GROUP_VALUE_MISMATCH", ""),
    ("group[R7 B7 K8]", "GROUP_VALUE_MISMATCH", ""),
    ("[R4 R5 B6]", "RUN_COLOR_MIX", ""),
    ("[R4 J B6]", "RUN_COLOR_MIX", ""),
    ("run[R4 R9 B11]", "RUN_COLOR_MIX", ""),
    ("[R12 R13 R1]", "RUN_WRAP", ""),
    ("[R13 R1 R2]", "RUN_WRAP", ""),
    ("[R13 R1 J]", "RUN_WRAP", ""),
    ("[R4 R5 R5]", "RUN_DUPLICATE_VALUE", ""),
    ("[R4 R5 J R5]", "RUN_DUPLICATE_VALUE", ""),
    ("[R6 R5 R4]", "RUN_NOT_ASCENDING", "R4 R5 R6"),
    ("[R4 R6 R5]", "RUN_NOT_ASCENDING", "R4 R5 R6"),
    ("[R6 J R4]", "RUN_NOT_ASCENDING", "R4 J R6"),
    ("[R9 R4 R5]", "RUN_NOT_ASCENDING", ""),
    ("[R4 R5 R7]", "RUN_GAP", ""),
    ("[R4 R5 J R6]", "RUN_GAP", "R4 R5 R6 J"),
    ("[J R4 R6]", "RUN_GAP", "R4 J R6"),
    ("[R4 R6 R9 J]", "RUN_GAP", ""),
    ("[R4 R7 J]", "RUN_GAP", ""),
    ("[R12 R13 J]", "RUN_JOKER_OUT_OF_RANGE", "J R12 R13"),
    ("[J R1 R2]", "RUN_JOKER_OUT_OF_RANGE", "R1 R2 J"),
    ("[R11 R12 R13 J J]", "RUN_JOKER_OUT_OF_RANGE", "J J R11 R12 R13"),
    ("[R12 J J J J]", "RUN_JOKER_OUT_OF_RANGE", "J J J R12 J"),
    ("[R1 B5 K9]", "MELD_NOT_GROUP_NOR_RUN", ""),
    ("[R7 B7 R9 B11]", "MELD_NOT_GROUP_NOR_RUN", ""),
    ("group[R4 R5 R6]", "MELD_KIND_MISMATCH", ""),
    ("run[R7 B7 K7]", "MELD_KIND_MISMATCH", ""),
    ("run[J J R1]", "MELD_KIND_MISMATCH", "R1 J J"),
    ("group[J J R9 J J]", "MELD_KIND_MISMATCH", ""),
    ("group[R4 R5 R7]", "GROUP_VALUE_MISMATCH", ""),
    ("run[R7 B7 K8]", "RUN_COLOR_MIX", ""),
    ("run[R6 R5 R4]", "RUN_NOT_ASCENDING", "R4 R5 R6"),
    ("group[R6 R5 R4]", "GROUP_VALUE_MISMATCH", ""),
]

UNDER_OPTIONS = [
    # ruleset, text, reasons (none: a meld)
    (ONE, "[R4 J R6]", []),
    (ONE, "[R4 J J R7]", ["JOKERS_TOO_MANY"]),
    (ONE, "group[R4 J J]", ["JOKERS_TOO_MANY"]),
    (ONE, "[R4 J J R9]", ["JOKERS_TOO_MANY", "RUN_GAP"]),
    (TWO, "[R4 J J R7]", []),
    (TWO, "[R4 J J J R8]", ["JOKERS_TOO_MANY"]),
    (NOT_MORE, "[R4 J J R7]", []),
    (NOT_MORE, "[R4 J J]", ["JOKERS_TOO_MANY"]),
    (NOT_MORE, "[R4 J R6]", []),
    (SABRA, "[R4 J J]", []),
    (FOUR_JOKERS, "[J J R3 J J]", []),
    (APART, "[R4 J J R7]", ["JOKERS_ADJACENT"]),
    (APART, "[J R5 J]", []),
    (APART, "run[J J R5]", ["JOKERS_ADJACENT"]),
    (APART, "[J J R5]", []),
    (APART, "[R4 J J B4]", []),
    (APART, "[R4 J R6 J]", []),
    (EXPLICIT, "[J R5 J]", ["MELD_KIND_AMBIGUOUS"]),
    (EXPLICIT, "run[J R5 J]", []),
    (EXPLICIT, "group[J R5 J]", []),
    (EXPLICIT, "[J J R1]", []),
    (EXPLICIT, "[J R4 R5]", []),
    (EXPLICIT, "[J R4 B4]", []),
    (NO_JOKERS, "[R4 J R6]", ["TILE_UNKNOWN"]),
    (NO_JOKERS, "[J]", ["TILE_UNKNOWN"]),
    (NO_JOKERS, "[R4 R5 R6]", []),
    (PER_PLAYER, "[R4 J R6]", []),
    # geometry_colors
    (SABRA, "[G4 G5 G6]", ["TILE_UNKNOWN"]),
    (SABRA, "[R4 B4 P4]", ["TILE_UNKNOWN"]),
    (SIX, "[G4 G5 G6]", []),
    (SIX, "[R4 B4 P4]", []),
    (SIX, "[R4 B4 K4 O4 G4]", []),
    (SIX, "[R4 B4 K4 O4 J J]", []),
    (FOUR_JOKERS, "[R4 B4 K4 O4 J J]", ["GROUP_TOO_LARGE"]),
    (SIX, "[R4 B4 K4 O4 G4 P4 J]", ["GROUP_TOO_LARGE"]),
    # run_wrap
    (SABRA, "[R12 R13 R1]", ["RUN_WRAP"]),
    (HIGH, "[R12 R13 R1]", []),
    (CYCLIC, "[R12 R13 R1]", []),
    (SABRA, "[R13 R1 R2]", ["RUN_WRAP"]),
    (HIGH, "[R13 R1 R2]", ["RUN_WRAP"]),
    (HIGH, "[R12 R13 R1 J R3]", ["RUN_WRAP"]),
    (HIGH, "[J R13 R1 J R4]", ["RUN_WRAP"]),
    (HIGH, "[R13 R1 J]", ["RUN_JOKER_OUT_OF_RANGE"]),
    (HIGH, "[R12 R13 R1 J]", ["RUN_JOKER_OUT_OF_RANGE"]),
    (HIGH, "[R12 R13 B1]", ["RUN_COLOR_MIX"]),
    (SABRA, "[R12 R13 B1]", ["MELD_NOT_GROUP_NOR_RUN"]),
    (CYCLIC, "[R13 R1 R2]", []),
    (CYCLIC, "[R13 B1 B2]", ["RUN_COLOR_MIX"]),
    (HIGH, "[R13 B1 B2]", ["MELD_NOT_GROUP_NOR_RUN"]),
    (CYCLIC, "[R12 R13 R1 R1]", ["RUN_DUPLICATE_VALUE"]),
    (HIGH, "[R12 R13 J]", []),
    (HIGH, "[R13 J J]", []),
    (HIGH, "run[R13 J J]", ["MELD_KIND_MISMATCH"]),
    (HIGH, "run[J R13 J]", []),
    (CYCLIC, "run[R13 J J]", []),
    (SABRA, "run[J J R1]", ["MELD_KIND_MISMATCH"]),
    (HIGH, "run[J J R1]", []),
    (HIGH, "[R11 J R13 R1]", []),
    (HIGH, "[R12 J R1]", []),
    (HIGH, "[R11 R12 R1]", ["RUN_GAP"]),
    (HIGH, "[R7 R12 R1]", ["RUN_GAP"]),
    (HIGH, "[R7 R8 R1]", ["RUN_GAP"]),
    (HIGH, "[R6 R7 R1]", ["RUN_NOT_ASCENDING"]),
    (SABRA, "[R11 R12 R1]", ["RUN_NOT_ASCENDING"]),
    (CYCLIC, "[R11 R12 R1]", ["RUN_GAP"]),
    (HIGH, "[R13 J R2]", ["RUN_NOT_ASCENDING"]),
    (CYCLIC, "[R13 J R2]", []),
    (HIGH, "[R3 R2 R1]", ["RUN_NOT_ASCENDING"]),
    (CYCLIC, "[R3 R2 R1]", ["RUN_NOT_ASCENDING"]),
    (CYCLIC, "[R4 R6 R5]", ["RUN_NOT_ASCENDING"]),
    (CYCLIC, "[R8 R1 R2]", ["RUN_GAP"]),
    (CYCLIC, "[R7 R1 R2]", ["RUN_NOT_ASCENDING"]),
    (CYCLIC, "[R1 R12 R13]", ["RUN_GAP"]),
    (HIGH, "[J R1 R2]", ["RUN_JOKER_OUT_OF_RANGE"]),
    (HIGH, "[J J R12 R13 R1 J]", ["RUN_JOKER_OUT_OF_RANGE"]),
    (CYCLIC, "[J R1 R2]", []),
    (CYCLIC, "[R4 R5 R7]", ["RUN_GAP"]),
    (HIGH, "[R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13]", []),
    (CYCLIC, "[R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R1 R2]", []),
    (HIGH, "[R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 J]", []),
    (HIGH, "[J R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R1]", ["RUN_TOO_LONG"]),
    (CYCLIC, "[J R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R1]", ["RUN_TOO_LONG"]),
    (CYCLIC, "[R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 J]", ["RUN_TOO_LONG"]),
    (CYCLIC, "[R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R1]", ["RUN_DUPLICATE_VALUE"]),
    (HIGH, "[R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R1]", ["RUN_DUPLICATE_VALUE"]),
    (FOUR_JOKERS, "[R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 J]", ["RUN_JOKER_OUT_OF_RANGE"]),
    (HIGH, "[J J R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12]", ["RUN_JOKER_OUT_OF_RANGE"]),
    (CYCLIC, "[R13 R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12]", []),
    (SABRA, "[R13 R2 R3]", ["RUN_NOT_ASCENDING"]),
    (APART, "[R4 J J R9]", ["RUN_GAP"]),
    # jokers_may_lead
    (FOUR_JOKERS, "[J R4 R5]", []),
    (NO_LEAD, "[J R4 R5]", ["JOKER_LEADS_MELD"]),
    (NO_LEAD, "[J R4 B4]", ["JOKER_LEADS_MELD"]),
    (NO_LEAD, "[R4 J R6]", []),
    (NO_LEAD, "[J R4 R6]", ["JOKER_LEADS_MELD", "RUN_GAP"]),
    (replace(ONE, jokers_may_lead=False), "[J J R6 R7]", ["JOKERS_TOO_MANY", "JOKER_LEADS_MELD"]),
    (replace(ONE, jokers_may_lead=False), "[J J R6 R8]", ["JOKERS_TOO_MANY", "JOKER_LEADS_MELD", "RUN_GAP"]),
    (NO_LEAD, "[J R1]", ["MELD_TOO_SHORT"]),
    # jokers_declaration
    (WHEN_TWO, "[R4 J R6]", []),
    (WHEN_TWO, "[R4 J J R7]", ["JOKER_DECLARATION_REQUIRED"]),
    (WHEN_TWO, "run[R4 J J R7]", []),
    (WHEN_TWO, "[R4 J B4]", []),
    (WHEN_TWO, "group[R4 J J B4]", ["JOKER_DECLARATION_REQUIRED"]),
    (WHEN_TWO, "[R4 J=K4 J=O4 B4]", ["JOKER_DECLARATION_REQUIRED"]),
    (WHEN_TWO, "group[R4 J=K4 J=O4 B4]", []),
    (WHEN_TWO, "[R4 J J]", ["JOKER_DECLARATION_REQUIRED"]),
    (WHEN_TWO, "[R4 J J R9]", ["RUN_GAP"]),
    (ALWAYS, "[R4 R5 R6]", []),
    (ALWAYS, "[R4 J R6]", ["JOKER_DECLARATION_REQUIRED"]),
    (ALWAYS, "run[R4 J R6]", []),
    (ALWAYS, "run[R4 J=R5 R6]", []),
    (ALWAYS, "[R4 J=R5 R6]", ["JOKER_DECLARATION_REQUIRED"]),
    (ALWAYS, "[R4 J=R7 R6]", ["JOKER_DECLARATION_REQUIRED", "JOKER_DECLARATION_MISMATCH"]),
    (ALWAYS, "group[R4 J B4]", ["JOKER_DECLARATION_REQUIRED"]),
    (ALWAYS, "group[R4 J=K4 B4]", []),
    (
        replace(ALWAYS, jokers_max_per_meld=JokersMaxPerMeld.ONE),
        "[R4 J J R7]",
        ["JOKERS_TOO_MANY", "JOKER_DECLARATION_REQUIRED"],
    ),
    (SABRA, "[R4 J=R5 R6]", []),
    (SABRA, "[R4 J=R6 R6]", ["JOKER_DECLARATION_MISMATCH"]),
    (SABRA, "[R4 J=B5 R6]", ["JOKER_DECLARATION_MISMATCH"]),
    (SABRA, "[R4 J=J R6]", ["JOKER_DECLARATION_MISMATCH"]),
    (SABRA, "[R4 J=R6 J=R5 R7]", ["JOKER_DECLARATION_MISMATCH"]),
    (SABRA, "[R4 J=K4 B4]", []),
    (SABRA, "[R4 J=R4 B4]", ["JOKER_DECLARATION_MISMATCH"]),
    (SABRA, "[R4 J=K5 B4]", ["JOKER_DECLARATION_MISMATCH"]),
    (SABRA, "[R4 J=G4 B4]", ["JOKER_DECLARATION_MISMATCH"]),
    (SIX, "[R4 J=G4 B4]", []),
    (SABRA, "[R4 J=K4 J=K4 B4]", ["JOKER_DECLARATION_MISMATCH"]),
    (SABRA, "[R4 J=K4 J=O4 B4]", []),
    (SABRA, "[R4 J=B4 J=K4]", []),
    (SABRA, "run[R4 J=B4 J=K4]", ["JOKER_DECLARATION_MISMATCH"]),
    (SABRA, "[R4 J=R5 J=R6]", []),
    (SABRA, "group[R4 J=R5 J=R6]", ["JOKER_DECLARATION_MISMATCH"]),
    (SABRA, "[R4 J=R5 J=B4]", ["JOKER_DECLARATION_MISMATCH"]),
    (EXPLICIT, "[R4 J=B4 J=K4]", []),
    (EXPLICIT, "[R4 J=R5 J=R6]", []),
    (EXPLICIT, "[R4 J=R5 J=B4]", ["MELD_KIND_AMBIGUOUS"]),
    # meld_order
    (FOUR_JOKERS, "[R6 R4 R5]", ["RUN_NOT_ASCENDING"]),
    (SORTED, "[R6 R4 R5]", []),
    (SORTED, "[R12 R13 J]", []),
    (SORTED, "[R4 R5 R7]", ["RUN_GAP"]),
    (SORTED, "[R13 R12 R1]", ["RUN_GAP"]),
    (SORTED, "[R4 J R5 R5]", ["RUN_DUPLICATE_VALUE"]),
    (SORTED, "[J R4 B6]", ["RUN_COLOR_MIX"]),
    (SORTED, "group[R6 J R4]", ["MELD_KIND_MISMATCH"]),
    (SORTED, "run[R6 J B6]", ["MELD_KIND_MISMATCH"]),
    (SORTED, "[J]", ["MELD_TOO_SHORT"]),
    (SORTED, "[J J J]", ["MELD_ALL_JOKERS"]),
    (EXPLICIT_SORTED, "[R12 J J]", ["MELD_KIND_AMBIGUOUS"]),
    (EXPLICIT, "[R12 J J]", []),
]


def read(text: str, ruleset: Ruleset = FOUR_JOKERS) -> Meld | NotAMeld:
    return read_meld(parse_meld(text), ruleset)


@pytest.mark.parametrize(("text", "kind", "points", "faces"), MELDS)
def test_a_meld_has_its_kind_points_and_joker_faces(text: str, kind: str, points: int, faces: list[str]) -> None:
    expected = Meld(parse_meld(text).tiles, MeldKind[kind.upper()], points, tuple(map(parse_tiles, faces)))
    assert read(text) == expected
    assert read(kind + text) == expected


@pytest.mark.parametrize(("text", "run", "group"), SINGLE_NATURAL)
def test_one_natural_and_jokers_are_a_run_unless_the_kind_is_stated(
    text: str, run: int | None, group: int | None
) -> None:
    tiles = parse_tiles(text)
    points = {MeldKind.RUN: run, MeldKind.GROUP: group}
    for kind, expected in points.items():
        reading = read_meld(ProposedMeld(tiles, kind), FOUR_JOKERS)
        assert (reading.points if isinstance(reading, Meld) else None) == expected
    unstated = read_meld(ProposedMeld(tiles), FOUR_JOKERS)
    assert isinstance(unstated, Meld)
    assert unstated.points == (run or group)


@pytest.mark.parametrize(("text", "reason", "order"), NO_MELDS)
def test_invalid_tiles_have_a_reason_and_a_suggested_order(text: str, reason: str, order: str) -> None:
    assert read(text) == NotAMeld(parse_meld(text).tiles, (Reason[reason],), parse_tiles(order))


@each_of("ruleset, text, reasons", UNDER_OPTIONS, lambda row: row[1:])
def test_options_on_jokers(ruleset: Ruleset, text: str, reasons: list[str]) -> None:
    reading = read(text, ruleset)
    assert (reading.reasons if isinstance(reading, NotAMeld) else ()) == tuple(Reason[reason] for reason in reasons)


def test_the_tables_trigger_every_reason_of_melds_alone() -> None:
    names = [reason.name for reason in Reason]
    of_melds = set(names[names.index("MELD_EMPTY") : names.index("JOKER_DECLARATION_MISMATCH") + 1]) | {"TILE_UNKNOWN"}
    alone = {reason for _, reason, _ in NO_MELDS} | {reasons[0] for _, _, reasons in UNDER_OPTIONS if len(reasons) == 1}
    assert alone == of_melds


def test_an_order_is_suggested_only_if_the_rules_take_it() -> None:
    crowded = read("[R7 R4 J J]", APART)
    assert isinstance(crowded, NotAMeld)
    assert crowded.suggested_order == ()
    too_many = read("[R7 R4 J J]", ONE)
    assert isinstance(too_many, NotAMeld)
    assert too_many.suggested_order == ()


CANONICAL = [
    # run_wrap, text, canonical order
    (RunWrap.OFF, "[R6 R4 R5]", "R4 R5 R6"),
    (RunWrap.OFF, "[R7 J R4 J]", "R4 J J R7"),
    (RunWrap.OFF, "[J J R4 R5]", "R4 R5 J J"),
    (RunWrap.OFF, "[J J R12 R11]", "J R11 R12 J"),
    (RunWrap.OFF, "[J R13 J]", "J J R13"),
    (RunWrap.OFF, "[R1 J R2]", "R1 R2 J"),
    (RunWrap.OFF, "[R1 R13 J]", "R1 J R13"),
    (RunWrap.OFF, "[R9 R4 J]", "R4 J R9"),
    (RunWrap.OFF, "[J R5 R4 R4]", "R4 R4 R5 J"),
    (RunWrap.OFF, "[R9 J J R3 R4]", "R3 R4 J J R9"),
    (RunWrap.OFF, "[R9 R6 J J R3]", "R3 J J R6 R9"),
    (RunWrap.OFF, "[R10 R4 R7 J J J J J]", "R4 J J R7 J J R10 J"),
    (RunWrap.OFF, "[B6 J R4]", "R4 J B6"),
    (RunWrap.OFF, "[B6 R5 R4]", "R4 R5 B6"),
    (RunWrap.OFF, "[J K7 R7]", "R7 K7 J"),
    (RunWrap.OFF, "[R7 J B7 J R8]", "R7 B7 R8 J J"),
    (RunWrap.OFF, "[B7 R8 R7]", "R7 B7 R8"),
    (RunWrap.OFF, "[B7 R8 K7]", "R8 B7 K7"),
    (RunWrap.OFF, "[B7 J R7 K8]", "R7 B7 K8 J"),
    (RunWrap.OFF, "group[J R5 J]", "R5 J J"),
    (RunWrap.OFF, "group[J R6 R4]", "R4 J R6"),
    (RunWrap.OFF, "run[J B7 R7]", "R7 B7 J"),
    (RunWrap.OFF, "group[R9 K7 R8]", "R8 R9 K7"),
    (RunWrap.OFF, "run[K7 R8 B7]", "B7 K7 R8"),
    (RunWrap.ONE_HIGH, "[R1 J J]", "J J R1"),
    (RunWrap.ONE_HIGH, "[R1 R13 J]", "J R13 R1"),
    (RunWrap.ONE_HIGH, "[R13 J R12]", "J R12 R13"),
    (RunWrap.ONE_HIGH, "[J R2 R1]", "R1 R2 J"),
    (RunWrap.ONE_HIGH, "[R2 R1 R13]", "R1 R2 R13"),
    (RunWrap.ONE_HIGH, "[R2 R13 R12 R11 R10 R9 R8 R7 R6 R5 R4 R3 J]", "J R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13"),
    (RunWrap.CYCLIC, "[R1 R2 R13]", "R13 R1 R2"),
    (RunWrap.CYCLIC, "[R2 J R13]", "R13 J R2"),
    (RunWrap.CYCLIC, "[R2 R1 J]", "J R1 R2"),
    (RunWrap.CYCLIC, "[J R1 R2 J]", "J J R1 R2"),
    (RunWrap.CYCLIC, "[R2 J J J R11]", "R11 J J J R2"),
]


@pytest.mark.parametrize(("wrap", "text", "order"), CANONICAL)
def test_the_canonical_order_has_most_points_or_else_least_wrong(wrap: RunWrap, text: str, order: str) -> None:
    ruleset = replace(FOUR_JOKERS, run_wrap=wrap, meld_order=MeldOrder.CANONICALISE)
    meld = parse_meld(text)
    assert canonical_order(meld, ruleset) == replace(meld, tiles=parse_tiles(order))
    assert read_meld(meld, ruleset) == read_meld(canonical_order(meld, ruleset), replace(FOUR_JOKERS, run_wrap=wrap))


SUGGESTIONS = [
    # ruleset, text, suggested order
    (NO_LEAD, "[J R4 R5]", "R4 R5 J"),
    (NO_LEAD, "[J R4 B4]", "R4 B4 J"),
    (NO_LEAD, "group[J B4 R4]", "R4 B4 J"),
    (NO_LEAD, "run[J J R4]", "R4 J J"),
    (NO_LEAD, "[J R13 J]", "R13 J J"),
    (NO_LEAD, "run[J R13 J]", ""),
    (NO_LEAD, "[J R12 R13]", ""),
    (NO_LEAD_HIGH, "[J R12 R13]", "R12 R13 J"),
    (NO_LEAD, "[R13 R12 J]", ""),
    (APART, "[R6 R5 J J]", "J R5 R6 J"),
    (APART, "[R5 R6 J J]", "J R5 R6 J"),
    (HIGH, "[R1 R13 R12]", "R12 R13 R1"),
    (HIGH, "[R13 R1 J]", "J R13 R1"),
    (HIGH, "[R13 R1 R12]", "R12 R13 R1"),
    (HIGH, "[R13 R1 R2]", ""),
    (CYCLIC, "[R1 R13 R2]", "R13 R1 R2"),
    (FOUR_JOKERS, "[R6 J=R4 R5]", "J R5 R6"),
    (FOUR_JOKERS, "[R6 J=R9 R5]", ""),
    (FOUR_JOKERS, "[R4 J=R6 R6]", ""),
    (FOUR_JOKERS, "run[R4 J=K4 B4]", ""),
    (EXPLICIT, "[J R5 J]", ""),
    (ALWAYS, "[J R6 R4]", "R4 J R6"),
    (ONE, "[J J R6 R4]", ""),
]


@pytest.mark.parametrize(("ruleset", "text", "order"), SUGGESTIONS)
def test_the_suggested_order_is_one_that_the_options_allow(ruleset: Ruleset, text: str, order: str) -> None:
    reading = read(text, ruleset)
    assert isinstance(reading, NotAMeld)
    assert reading.suggested_order == parse_tiles(order)


IN_ANY_ORDER = [
    # ruleset (with meld_order CANONICALISE), text, the meld read, faces of its jokers
    (SORTED, "[R12 R13 J]", "run[J R12 R13]", ["R11"]),
    (SORTED, "[J R5 J]", "run[R5 J J]", ["R6", "R7"]),
    (SORTED, "group[J R5 J]", "group[R5 J J]", ["B5 K5 O5", "B5 K5 O5"]),
    (SORTED, "[O5 J R5]", "group[R5 O5 J]", ["B5 K5"]),
    (SORTED, "[R6 J=R4 R5]", "run[J R5 R6]", ["R4"]),
    (SORTED, "[R6 J=R7 R5]", "run[R5 R6 J]", ["R7"]),
    (SORTED, "[J=R8 R6 J=R5]", "", []),
    (SORTED, "[J=R7 R6 J=R5]", "run[J R6 J]", ["R5", "R7"]),
    (SORTED, "[J=K6 R6 J=B6]", "group[R6 J J]", ["B6", "K6"]),
    (SORTED, "[J=K6 J=B6 R6 O6]", "group[R6 O6 J J]", ["B6", "K6"]),
    (SORTED, "group[J=R7 R6 J=R5]", "", []),
    (CYCLIC_SORTED, "[J=R1 R12 J=R13]", "run[R12 J J]", ["R13", "R1"]),
    (NO_LEAD_SORTED, "[J R5 R6]", "run[R5 R6 J]", ["R7"]),
    (NO_LEAD_SORTED, "[J R13 J]", "group[R13 J J]", ["B13 K13 O13", "B13 K13 O13"]),
    (NO_LEAD_HIGH_SORTED, "[J R13 R12]", "run[R12 R13 J]", ["R1"]),
    (APART_SORTED, "[J J R5 R6]", "run[J R5 R6 J]", ["R4", "R7"]),
]


@pytest.mark.parametrize(("ruleset", "text", "read_as", "faces"), IN_ANY_ORDER)
def test_canonical_order_follows_options_and_declared_faces(
    ruleset: Ruleset, text: str, read_as: str, faces: list[str]
) -> None:
    reading = read(text, ruleset)
    if not read_as:
        assert isinstance(reading, NotAMeld)
        return
    expected = parse_meld(read_as)
    assert isinstance(reading, Meld)
    assert (reading.tiles, reading.kind) == (expected.tiles, expected.kind)
    assert reading.joker_faces == tuple(map(parse_tiles, faces))


WRONG_IN_ANY_ORDER = [
    # ruleset, text, the order in which it is read, reasons
    (NO_LEAD_SORTED, "[R13 J R12]", "J R12 R13", ["JOKER_LEADS_MELD"]),
    (NO_LEAD_SORTED, "[R12 J=R11 J=R10 R13]", "J J R12 R13", ["JOKER_LEADS_MELD"]),
    (NO_LEAD_SORTED, "[R6 J=R4 R5]", "J R5 R6", ["JOKER_LEADS_MELD"]),
    (NO_LEAD_SORTED, "[R6 J=R9 R5]", "R5 R6 J", ["JOKER_DECLARATION_MISMATCH"]),
    (APART_SORTED, "[J=R8 J=R7 R6 R5]", "R5 R6 J J", ["JOKERS_ADJACENT"]),
    (SORTED, "[J=R8 R7 R5]", "R5 J R7", ["JOKER_DECLARATION_MISMATCH"]),
    (SORTED, "[B7 J=R9 R7]", "R7 B7 J", ["JOKER_DECLARATION_MISMATCH"]),
    (SORTED, "group[R6 J=R7 R5]", "R5 R6 J", ["MELD_KIND_MISMATCH"]),
    (SORTED, "run[B7 J=K7 R7]", "R7 B7 J", ["MELD_KIND_MISMATCH"]),
    (SORTED, "group[R6 J=R9 R5]", "R5 R6 J", ["MELD_KIND_MISMATCH"]),
]


@pytest.mark.parametrize(("ruleset", "text", "order", "reasons"), WRONG_IN_ANY_ORDER)
def test_tiles_that_form_no_meld_are_read_in_the_likeliest_order(
    ruleset: Ruleset, text: str, order: str, reasons: list[str]
) -> None:
    assert read(text, ruleset) == NotAMeld(parse_tiles(order), tuple(Reason[reason] for reason in reasons))


def test_as_many_faces_are_declared_as_there_are_jokers() -> None:
    tiles = parse_tiles("R4 R5 R6")
    assert read_meld(ProposedMeld(tiles, None, tiles[:1]), SABRA) == NotAMeld(
        tiles, (Reason.JOKER_DECLARATION_MISMATCH,)
    )
    jokers = parse_tiles("R4 J J R7")
    reading = read_meld(ProposedMeld(jokers, None, parse_tiles("R5")), SABRA)
    assert reading == NotAMeld(jokers, (Reason.JOKER_DECLARATION_MISMATCH,))


@pytest.mark.parametrize(
    ("ruleset", "text", "faces", "declared"),
    [
        (SABRA, "[R4 J=R5 R6]", ["R5"], ""),
        (SABRA, "[R4 J B4]", ["K4 O4"], ""),
        (SABRA, "[R4 J=K4 B4]", ["K4"], "K4"),
        (SABRA, "[R4 J K4 B4]", ["O4"], ""),
        (SABRA, "[R4 J=O4 K4 B4]", ["O4"], ""),
        (SABRA, "[R4 J=O4 J=K4 B4]", ["O4", "K4"], "O4 K4"),
        (SIX, "[R4 J=O4 K4 B4]", ["O4"], "O4"),
        (SIX, "[R4 J K4 B4]", ["O4 G4 P4"], ""),
        (SORTED, "[J=R5 R6 J=R4]", ["R4", "R5"], "R4 R5"),
        (SORTED, "[R6 J J]", ["R7", "R8"], "R7 R8"),
        (WHEN_TWO, "run[J R6 J]", ["R5", "R7"], "R5 R7"),
        (WHEN_TWO, "[J R6 R7]", ["R5"], ""),
        (ALWAYS, "group[R4 J=O4 K4 B4]", ["O4"], "O4"),
    ],
)
def test_declared_faces_are_kept_and_declared_again(
    ruleset: Ruleset, text: str, faces: list[str], declared: str
) -> None:
    meld = read(text, ruleset)
    assert isinstance(meld, Meld)
    assert meld.joker_faces == tuple(map(parse_tiles, faces))
    assert declared_faces(meld, ruleset) == parse_tiles(declared)


@pytest.mark.parametrize("value", [ProposedMeld(()), Meld((), MeldKind.RUN, 0), NotAMeld((), ())], ids=repr)
def test_proposals_and_readings_are_values(value: ProposedMeld | Meld | NotAMeld) -> None:
    with pytest.raises(FrozenInstanceError):
        value.tiles = ()  # type: ignore[misc]
    assert not hasattr(value, "__dict__")


def test_no_declaration_is_wanted_where_there_is_no_joker() -> None:
    tiles = parse_tiles("R4 R5 R6")
    reading = read_meld(ProposedMeld(tiles, declared=parse_tiles("R5")), ALWAYS)
    assert reading == NotAMeld(tiles, (Reason.JOKER_DECLARATION_MISMATCH,))


def test_a_joker_counts_as_its_face() -> None:
    meld = read("[J R2 R3 J]")
    assert isinstance(meld, Meld)
    assert joker_points(meld) == (1, 4)


def random_tiles(rng: random.Random) -> tuple[Tile, ...]:
    """Returns tiles that often form a meld, or nearly one."""
    size = rng.choice((2, 3, 3, 3, 4, 4, 5, 6))
    color, value = rng.randrange(4), rng.randint(1, 13)
    near = [t for t in NATURALS if value_of(t) == value or ((t - 1) // 13 == color and abs(value_of(t) - value) < 4)]
    tiles = rng.choices(near, k=size)
    if rng.random() < 0.6:
        tiles.sort()
    for place in rng.sample(range(size), rng.choice((0, 0, 1, 2))):
        tiles[place] = JOKER
    return tuple(tiles)


def random_meld(rng: random.Random, ruleset: Ruleset) -> Meld | None:
    """Returns a meld with or without declared faces; None if the tiles form no meld."""
    tiles, kind = random_tiles(rng), rng.choice((None, *MeldKind))
    declared: tuple[Tile, ...] = ()
    strict = read_meld(ProposedMeld(tiles, kind), replace(FOUR_JOKERS, run_wrap=ruleset.run_wrap))
    if isinstance(strict, Meld) and rng.random() < 0.6:
        declared = tuple(rng.choice(faces) for faces in strict.joker_faces)
    meld = read_meld(ProposedMeld(tiles, kind, declared), ruleset)
    return meld if isinstance(meld, Meld) else None


@pytest.mark.unmeasured
@pytest.mark.slow
@pytest.mark.parametrize("seed", few_of(range(4), 1))
def test_a_meld_that_is_proposed_or_written_again_is_the_same_by_every_ruleset(seed: int) -> None:
    rng, sorts = random.Random(seed), Counter[tuple[MeldKind, bool]]()
    for _ in range(3000):
        ruleset = replace(random_ruleset(rng), meld_order=rng.choice(list(MeldOrder)))
        meld = random_meld(rng, ruleset)
        if meld:
            proposed = as_proposed(meld, ruleset)
            assert read_meld(proposed, ruleset) == meld, ruleset
            assert read_meld(parse_meld(format_meld(meld, ruleset=ruleset)), ruleset) == meld, ruleset
            sorts[meld.kind, bool(proposed.declared)] += 1
    assert min(sorts[kind, declares] for kind in MeldKind for declares in (False, True)) > 20


def test_a_meld_without_jokers_ignores_the_joker_options() -> None:
    rng = random.Random(21)
    for _ in range(300):
        proposed = ProposedMeld(tuple(t for t in random_tiles(rng) if t != JOKER))
        readings = [read_meld(proposed, ruleset) for ruleset in (SABRA, ONE, NOT_MORE, APART, EXPLICIT, NO_JOKERS)]
        assert len(set(readings)) == 1


NEAR_TILES = st.builds(random_tiles, st.randoms(use_true_random=False))
KINDS = st.sampled_from((None, *MeldKind))


@given(NEAR_TILES, st.randoms(use_true_random=False))
def test_the_order_of_a_group_has_no_meaning(tiles: tuple[Tile, ...], rng: random.Random) -> None:
    here = read_meld(ProposedMeld(tiles, MeldKind.GROUP), SABRA)
    there = read_meld(ProposedMeld(tuple(rng.sample(tiles, len(tiles))), MeldKind.GROUP), SABRA)
    assert type(here) is type(there)
    if isinstance(here, Meld) and isinstance(there, Meld):
        assert (here.points, here.joker_faces) == (there.points, there.joker_faces)


@given(NEAR_TILES, KINDS)
def test_a_suggested_order_is_a_run_of_the_same_tiles(tiles: tuple[Tile, ...], kind: MeldKind | None) -> None:
    reading = read_meld(ProposedMeld(tiles, kind), SABRA)
    if isinstance(reading, NotAMeld) and reading.suggested_order:
        assert sorted(reading.suggested_order) == sorted(tiles)
        better = read_meld(ProposedMeld(reading.suggested_order, MeldKind.RUN), SABRA)
        assert isinstance(better, Meld), format_meld(ProposedMeld(tiles))
