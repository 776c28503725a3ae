"""What may be laid in 101 Okey: each rule in a row of its own, and another judge of random turns."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import pytest

from engine.discard.laying import PenaltyCause, TurnAtTable, judge_turn
from engine.discard.melds import Arrangement, okey_of
from engine.discard.notation import parse_hand
from engine.discard.presets import OKEY_101
from engine.discard.ruleset import Ruleset
from engine.discard.table import Opening, Table, fits, growths, is_legal
from engine.discard.table_bots import laying
from engine.notation import format_tiles, parse_tile, parse_tiles
from engine.tiles import FALSE_JOKER, NATURALS, Tile, in_order
from engine.violation_texts import describe_violation
from engine.violations import Reason, Violation
from oracles import okey_101
from oracles.okey_hands import melds as all_melds

OWN = (Opening(1, is_pairs=False, amount=105),)
WITH_PAIRS = (Opening(1, is_pairs=True, amount=5),)
ANOTHER_WITH_PAIRS = (*OWN, Opening(2, is_pairs=True, amount=6))
OPENS = "[R7 R8 R9] | [R10 B10 K10] | [O10 O11 O12] | [K6 B6 O6]"
FIVE = "[R1 R1] | [B2 B2] | [K3 K3] | [O4 O4] | [B5 B5]"
OKEY = parse_tile("R5")
"""The okey of most rows, which is written as it is: R5."""


def loose(melds: str) -> str:
    """Returns the tiles of melds."""
    return melds.replace("[", "").replace("]", "").replace("|", "")


class Row(NamedTuple):
    """A step, and what is wrong with it."""

    name: str
    table: str
    rack: str
    after: str
    expected: list[tuple[Reason, str, str, dict[str, int]]]
    openings: tuple[Opening, ...] = OWN
    owed: str = ""
    laid: int = 0
    okey: Tile = OKEY
    rules: dict[str, object] = {}  # noqa: RUF012 - never changed


def turn_of(row: Row) -> tuple[TurnAtTable, Ruleset]:
    table = Table(parse_hand(row.table), row.openings)
    owed = parse_tile(row.owed) if row.owed else None
    rack = in_order(parse_tiles(row.rack))
    return TurnAtTable(1, row.okey, table, rack, owed, row.laid), replace(OKEY_101, **row.rules)  # type: ignore[arg-type]


def found(violations: Sequence[Violation]) -> list[tuple[Reason, str, str, dict[str, int]]]:
    return [(one.reason, one.subject, format_tiles(one.tiles), dict(one.metadata)) for one in violations]


def no(
    reason: Reason, subject: str = "table", tiles: str = "", **metadata: int
) -> list[tuple[Reason, str, str, dict[str, int]]]:
    return [(reason, subject, tiles, metadata)]


TABLE = "[B9 R5 B11] | [K4 K5 K6]"
LEGAL = [
    Row("O1", ".", f"{loose(OPENS)} K1", OPENS, [], ()),
    Row("O4", ".", "B10 R5 B12 K11 R11 O11 R13 B13 R5 K1", "[B10 R5 B12] | [K11 R11 O11] | [R13 B13 R5]", [], ()),
    Row(
        "O5: F is R5",
        ".",
        "R4 F R6 K12 R12 O12 B13 K13 O13 R13 K1",
        "[R4 F R6] | [K12 R12 O12] | [B13 K13 O13 R13]",
        [],
        (),
    ),
    Row("O13", ".", "R1 R1 B2 B2 K3 K3 O4 O4 R5 B9 K1", "[R1 R1] | [B2 B2] | [K3 K3] | [O4 O4] | [B9 R5]", [], ()),
    Row("O15", TABLE, "B10 O1", "[B9 B10 B11] | [K4 K5 K6]", []),
    Row("the okey goes on in its meld", TABLE, "B10 O1", "[B9 B10 B11 R5] | [K4 K5 K6]", []),
    Row("the okey goes into a new meld", TABLE, "B10 O1 O2 O9", "[B9 B10 B11] | [K4 K5 K6] | [O1 O2 R5]", []),
    Row("either color of a group", "[R7 B7 R5]", "O7 O1", "[R7 B7 O7]", []),
    Row(
        "lays off in the opening turn",
        "[K4 K5 K6]",
        "R1 R1 B2 B2 K3 K3 O4 O4 B5 B5 K7 O9",
        f"[K4 K5 K6 K7] | {FIVE}",
        [],
        (),
    ),
    Row(
        "a pair-opener lays off and lays pairs", "[K4 K5 K6]", "K7 O9 O9 O1", "[K4 K5 K6 K7] | [O9 O9]", [], WITH_PAIRS
    ),
    Row("pairs beside those of another", "[R1 R1]", "O9 O9 O1", "[R1 R1] | [O9 O9]", [], ANOTHER_WITH_PAIRS),
    Row("the okey of a pair", "[O9 R5]", "O9 O1", "[O9 O9]", [], WITH_PAIRS),
    Row("the taken tile in the opening", ".", "R1 R1 B2 B2 K3 K3 O4 O4 B5 B5 K1", FIVE, [], (), "B5"),
    Row("the taken tile is laid off", TABLE, "B12 O1", "[B9 R5 B11 B12] | [K4 K5 K6]", [], owed="B12"),
    Row(
        "the taken okey is laid, and another comes to the rack",
        TABLE,
        "B10 R5 O1 O2 O9",
        "[B9 B10 B11] | [K4 K5 K6] | [O1 O2 R5]",
        [],
        owed="R5",
    ),
    Row(
        "two tiles of a pair-opener",
        "[K4 K5 K6]",
        "K7 K8 O1",
        "[K4 K5 K6 K7 K8]",
        [],
        WITH_PAIRS,
        rules={"pair_opener_tiles": 2},
    ),
    Row(
        "more tiles of another player",
        "[K4 K5 K6]",
        "K7 K8 K9 O1",
        "[K4 K5 K6 K7 K8 K9]",
        [],
        rules={"pair_opener_tiles": 2},
    ),
    Row("12 13 1 with run_one_high", "[R11 R12 R13]", "R1 O1", "[R11 R12 R13 R1]", [], rules={"run_one_high": True}),
]
ILLEGAL = [
    Row(
        "O2",
        ".",
        "R7 R8 R9 R10 B10 K10 O10 O11 O12 K1",
        "[R7 R8 R9] | [R10 B10 K10] | [O10 O11 O12]",
        no(Reason.OPENING_BELOW_THRESHOLD, total=87, threshold=101),
        (),
    ),
    Row(
        "O3",
        TABLE,
        "R12 R13 R1 O1",
        f"{TABLE} | [R12 R13 R1]",
        no(Reason.MELD_NOT_GROUP_NOR_RUN, "table[2]", "R12 R13 R1"),
    ),
    Row(
        "O14",
        TABLE,
        "R4 F R6 O1",
        f"{TABLE} | [R4 F R6]",
        no(Reason.OPENED_WITH_PAIRS, "table[2]", "R4 F R6"),
        WITH_PAIRS,
    ),
    Row(
        "four pairs",
        ".",
        "R1 R1 B2 B2 K3 K3 O4 O4 K1",
        "[R1 R1] | [B2 B2] | [K3 K3] | [O4 O4]",
        no(Reason.OPENING_PAIRS_TOO_FEW, pairs=4, needed=5),
        (),
    ),
    Row(
        "melds and pairs at once",
        ".",
        "R11 B11 K11 R12 B12 K12 R13 B13 K13 O1 O1 O2",
        "[R11 B11 K11] | [R12 B12 K12] | [R13 B13 K13] | [O1 O1]",
        no(Reason.OPENING_MIXED),
        (),
    ),
    Row(
        "a lay-off without an opening",
        TABLE,
        "B12 O1",
        "[B9 R5 B11 B12] | [K4 K5 K6]",
        no(Reason.NOT_OPENED, "table", "B12"),
        (),
    ),
    Row(
        "an okey before opening",
        "[B9 R5 B11]",
        "B10 R1 R1 B2 B2 K3 K3 O4 O4 B5 B5 O9",
        f"[B9 B10 B11] | {FIVE}",
        no(Reason.OKEY_TAKEN_BEFORE_OPENING, "table[0]"),
        (),
    ),
    Row(
        "pairs that no player opened with",
        TABLE,
        "O9 O9 O1",
        f"{TABLE} | [O9 O9]",
        no(Reason.PAIRS_NOT_OPENED, "table[2]", "O9 O9"),
    ),
    Row(
        "the taken tile is not laid",
        TABLE,
        "B12 K7 O1",
        "[B9 R5 B11] | [K4 K5 K6 K7]",
        no(Reason.TAKEN_TILE_NOT_USED, "table", "B12"),
        owed="B12",
    ),
    Row(
        "the taken tile is laid off by an opening",
        TABLE,
        "R1 R1 B2 B2 K3 K3 O4 O4 B5 B5 K7 O9",
        f"[B9 R5 B11] | [K4 K5 K6 K7] | {FIVE}",
        no(Reason.TAKEN_TILE_NOT_USED, "table", "K7"),
        (),
        "K7",
    ),
    Row(
        "the taken okey is kept, and another comes to the rack",
        TABLE,
        "B10 R5 O1",
        "[B9 B10 B11] | [K4 K5 K6]",
        no(Reason.TAKEN_TILE_NOT_USED, "table", "R5"),
        owed="R5",
    ),
    Row(
        "the third tile of a pair-opener",
        "[K4 K5 K6]",
        "K7 K8 O1",
        "[K4 K5 K6 K7 K8]",
        no(Reason.TOO_MANY_TILES_LAID, count=3, limit=2),
        WITH_PAIRS,
        laid=1,
        rules={"pair_opener_tiles": 2},
    ),
    Row(
        "three lay-offs beside an opening with pairs",
        "[K4 K5 K6]",
        "R1 R1 B2 B2 K3 K3 O4 O4 B5 B5 K7 K8 K9 O9",
        f"[K4 K5 K6 K7 K8 K9] | {FIVE}",
        no(Reason.TOO_MANY_TILES_LAID, count=3, limit=2),
        (),
        rules={"pair_opener_tiles": 2},
    ),
    Row("no tile to discard", TABLE, "K7 K8", "[B9 R5 B11] | [K4 K5 K6 K7 K8]", no(Reason.FINISH_NEEDS_DISCARD)),
    Row("nothing new", TABLE, "K7 K8", TABLE, no(Reason.NO_RACK_TILE_PLAYED)),
    Row(
        "a tile that is not held",
        TABLE,
        "K8 O1",
        "[B9 R5 B11] | [K4 K5 K6 K7]",
        no(Reason.TILE_NOT_IN_RACK, "table", "K7"),
    ),
    Row(
        "a meld that is broken up",
        "[K4 K5 K6 K7] | [B9 R5 B11]",
        "K8 K9 B12 O1",
        "[K4 K5 K6] | [B9 R5 B11 B12] | [K7 K8 K9]",
        no(Reason.TABLE_MELD_CHANGED, "table[0]", "K4 K5 K6"),
    ),
    Row(
        "a meld that is gone",
        "[K4 K5 K6] | [B9 R5 B11]",
        "K7 O1",
        "[K4 K5 K6 K7]",
        no(Reason.TABLE_MELD_CHANGED, "table[1]", "B9 R5 B11"),
    ),
    Row("an okey that only leaves", "[B9 B10 R5]", "B11 O1", "[B9 B10 B11]", []),
    Row(
        "an okey that leaves the end",
        "[B9 B10 B11 R5]",
        "K7 K8 K9 O1",
        "[B9 B10 B11] | [K7 K8 K9]",
        no(Reason.TABLE_MELD_CHANGED, "table[0]", "B9 B10 B11"),
    ),
    Row(
        "an okey that leaves a group",
        "[R7 B7 K7 R5]",
        "K8 K9 K10 O1",
        "[R7 B7 K7] | [K8 K9 K10]",
        no(Reason.TABLE_MELD_CHANGED, "table[0]", "R7 B7 K7"),
    ),
    Row(
        "another tile in an okey's place",
        TABLE,
        "B12 O1",
        "[B9 B12 B11] | [K4 K5 K6]",
        no(Reason.TABLE_MELD_CHANGED, "table[0]", "B9 B12 B11"),
    ),
    Row(
        "a tile that does not fit",
        TABLE,
        "K8 O1",
        "[B9 R5 B11] | [K4 K5 K6 K8]",
        no(Reason.MELD_NOT_GROUP_NOR_RUN, "table[1]", "K4 K5 K6 K8"),
    ),
    Row(
        "a third tile of a pair",
        "[O9 R5]",
        "O9 O1",
        "[O9 R5 O9]",
        no(Reason.MELD_NOT_GROUP_NOR_RUN, "table[0]", "O9 R5 O9"),
        WITH_PAIRS,
    ),
    Row("another pair", "[O9 R5]", "O8 O1", "[O8 R5]", no(Reason.TABLE_MELD_CHANGED, "table[0]", "O8 R5"), WITH_PAIRS),
    Row(
        "an okey of a pair of okeys",
        "[R5 R5]",
        "O8 O1",
        "[O8 R5]",
        no(Reason.TABLE_MELD_CHANGED, "table[0]", "O8 R5"),
        WITH_PAIRS,
    ),
    Row(
        "two unlike tiles",
        TABLE,
        "O8 O9 O1",
        f"{TABLE} | [O8 O9]",
        no(Reason.MELD_NOT_GROUP_NOR_RUN, "table[2]", "O8 O9"),
        WITH_PAIRS,
    ),
    Row(
        "a pair where there are none",
        TABLE,
        "O9 O9 O1",
        f"{TABLE} | [O9 O9]",
        no(Reason.MELD_NOT_GROUP_NOR_RUN, "table[2]", "O9 O9"),
        rules={"opening_pairs": 0},
    ),
    Row(
        "no more than the last opening",
        ".",
        f"{loose(OPENS)} K1",
        OPENS,
        no(Reason.OPENING_BELOW_THRESHOLD, total=105, threshold=106),
        (Opening(2, is_pairs=False, amount=105),),
        rules={"opening_rises": True},
    ),
    Row(
        "no more pairs than the last",
        ".",
        "R1 R1 B2 B2 K3 K3 O4 O4 B5 B5 K1",
        FIVE,
        no(Reason.OPENING_PAIRS_TOO_FEW, pairs=5, needed=7),
        (Opening(3, is_pairs=False, amount=200), Opening(2, is_pairs=True, amount=6)),
        rules={"opening_rises": True},
    ),
]


@pytest.mark.parametrize("row", [*LEGAL, *ILLEGAL], ids=lambda row: row.name)
def test_a_step_breaks_the_rules_that_its_row_says(row: Row) -> None:
    turn, rules = turn_of(row)
    verdict = judge_turn(turn, parse_hand(row.after), None, rules)
    assert found(verdict.violations) == row.expected
    assert all(describe_violation(one) for one in verdict.violations)
    assert (verdict.laid is None) == bool(row.expected)


@pytest.mark.parametrize(
    ("table", "legal"),
    [("[R1 R2 R3] | [R4 B4 K4] | [O9 O9]", True), ("[R1 R2 R3] | [R4 B5 K6]", False), ("[O9 O8]", False), (".", True)],
)
def test_a_table_has_melds_and_pairs_alone(table: str, legal: bool) -> None:
    assert is_legal(Table(parse_hand(table)), parse_tile("R5"), one_high=False) is legal


def test_all_that_is_wrong_is_reported_at_once() -> None:
    turn, rules = turn_of(Row("", TABLE, "K8 O1", "", [], (), "K8"))
    after = parse_hand("[B9 B10 B11] | [K4 K5] | [O1 O2]")
    assert found(judge_turn(turn, after, None, rules).violations) == [
        *no(Reason.TABLE_MELD_CHANGED, "table[1]", "K4 K5"),
        *no(Reason.MELD_NOT_GROUP_NOR_RUN, "table[2]", "O1 O2"),
        *no(Reason.TILE_NOT_IN_RACK, "table", "B10 O2"),
        *no(Reason.OPENING_PAIRS_TOO_FEW, pairs=1, needed=5),
        *no(Reason.OKEY_TAKEN_BEFORE_OPENING, "table[0]"),
        *no(Reason.TAKEN_TILE_NOT_USED, "table", "K8"),
    ]


@pytest.mark.parametrize(
    ("melds", "amount"),
    [
        (OPENS, 105),
        ("[B10 R5 B12] | [K11 R11 O11] | [R13 B13 R5]", 105),
        ("[R4 F R6] | [K12 R12 O12] | [B13 K13 O13 R13]", 103),
        ("[R12 R5 R5] | [B12 K12 O12] | [B13 K13 O13]", 111),
    ],
)
def test_an_opening_counts_the_points_of_its_melds(melds: str, amount: int) -> None:
    turn, rules = turn_of(Row("", ".", f"{loose(melds)} K1", "", [], ()))
    laid = judge_turn(turn, parse_hand(melds), None, rules).laid
    assert laid
    assert laid.opening == Opening(1, is_pairs=False, amount=amount)
    assert laid.turn.rack == parse_tiles("K1")
    assert laid.turn.table.openings == (laid.opening,)


def test_an_opening_counts_its_pairs() -> None:
    turn, rules = turn_of(Row("", ".", f"{loose(FIVE)} K1", "", [], ()))
    laid = judge_turn(turn, parse_hand(FIVE), None, rules).laid
    assert laid
    assert laid.opening == Opening(1, is_pairs=True, amount=5)


def test_an_okey_that_a_tile_replaces_goes_to_the_rack() -> None:
    turn, rules = turn_of(Row("", TABLE, "B10 O1", "", []))
    laid = judge_turn(turn, parse_hand("[B9 B10 B11] | [K4 K5 K6]"), None, rules).laid
    assert laid
    assert (laid.tiles, laid.okeys, laid.turn.rack) == (parse_tiles("B10"), 1, in_order(parse_tiles("R5 O1")))
    assert len(laid.turn.rack) == len(turn.rack)


@pytest.mark.parametrize(
    ("tile", "rack", "rules", "expected"),
    [
        ("K7", "K7 O1", {}, PenaltyCause.DISCARD_FITS_TABLE),
        ("K3", "K3 O1", {}, PenaltyCause.DISCARD_FITS_TABLE),
        ("B10", "B10 O1", {}, PenaltyCause.DISCARD_FITS_TABLE),
        ("R5", "R5 O1", {}, PenaltyCause.OKEY_DISCARDED),
        ("O1", "K7 O1", {}, None),
        ("F", "F O1", {}, None),
        ("K7", "K7 O1", {"score_discard_penalty": 0}, None),
        ("R5", "R5", {}, None),
        ("K7", "K7", {}, None),
    ],
)
def test_a_discard_that_fits_on_the_table_costs_points_unless_it_is_the_last(
    tile: str, rack: str, rules: dict[str, object], expected: PenaltyCause | None
) -> None:
    turn, ruleset = turn_of(Row("O16", TABLE, rack, "", [], rules=rules))
    verdict = judge_turn(turn, None, parse_tile(tile), ruleset)
    assert (verdict.violations, verdict.penalty, verdict.is_finish) == ((), expected, rack == tile)


def test_a_whole_turn_is_judged_with_its_discard() -> None:
    turn, rules = turn_of(Row("", TABLE, "B12 K7 O1", "", [], owed="B12"))
    after = parse_hand("[B9 R5 B11 B12] | [K4 K5 K6 K7]")
    assert judge_turn(turn, after, parse_tile("O1"), rules).is_finish
    wrong = judge_turn(turn, after, parse_tile("K7"), rules)
    assert (wrong.laid, wrong.is_finish) == (None, False)
    assert found(wrong.violations) == no(Reason.TILE_NOT_IN_RACK, "tile", "K7")
    kept = judge_turn(turn, None, parse_tile("B12"), rules)
    assert found(kept.violations) == no(Reason.TAKEN_TILE_NOT_USED, "tile", "B12")
    part = judge_turn(turn, parse_hand("[B9 R5 B11 B12] | [K4 K5 K6]"), parse_tile("K7"), rules)
    assert (part.penalty, part.is_finish) == (PenaltyCause.DISCARD_FITS_TABLE, False)


# Another judge


RULESETS = (
    OKEY_101,
    replace(OKEY_101, opening_points=40, opening_pairs=2, opening_rises=True),
    replace(OKEY_101, opening_points=30, opening_pairs=0, run_one_high=True),
    replace(OKEY_101, opening_points=30, opening_pairs=3, pair_opener_tiles=2),
)


def random_turn(rng: random.Random, ruleset: Ruleset) -> TurnAtTable:
    """Returns a turn with a few melds on the table, and with tiles on the rack that often fit."""
    okey = okey_of(rng.choice(NATURALS))
    left = Counter(dict.fromkeys((*NATURALS, FALSE_JOKER), 2))
    table = [meld for _ in range(rng.randrange(5)) if (meld := random_meld(rng, left, okey, ruleset))]
    rack = [t for _ in range(rng.randrange(4)) for t in random_meld(rng, left, okey, ruleset)]
    rest = list(left.elements())
    near = [t for t in rest if any(abs(t - other) in {0, 1, 13, 26} for meld in table for other in meld)]
    rack += rng.sample(near, min(len(near), rng.randrange(6)))
    rack += rng.sample(list((left - Counter(rack)).elements()), rng.randrange(1, 8))
    counted = Counter(rack) & left
    tiles = in_order([t for t in rack if counted[t]] or rack[:1])
    openings = tuple(
        Opening(seat, rng.random() < 0.4 and ruleset.opening_pairs > 0, rng.choice((5, 6, 40, 105)))
        for seat in rng.sample((1, 2, 3), rng.randrange(4))
    )
    owed = rng.choice(tiles) if rng.random() < 0.3 else None
    return TurnAtTable(1, okey, Table(tuple(table), openings), tiles, owed, rng.randrange(3))


MELDS = tuple(tuple(Tile(13 * color + value) for color, value in meld) for meld in all_melds(one_high=False))


def random_meld(rng: random.Random, left: Counter[Tile], okey: Tile, ruleset: Ruleset) -> tuple[Tile, ...]:
    """Returns a meld or a pair of tiles that are left, and takes them away; empty if it happens that there is none."""
    faces = rng.choice(MELDS)[: rng.choice((3, 3, 4, 5))]
    if ruleset.opening_pairs and rng.random() < 0.3:
        faces = (faces[0],) * 2
    meld = tuple(okey if rng.random() < 0.15 else FALSE_JOKER if face == okey else face for face in faces)
    if Counter(meld) - left or set(meld) == {okey}:
        return ()
    left.subtract(meld)
    return meld


def random_after(rng: random.Random, turn: TurnAtTable, ruleset: Ruleset) -> Arrangement:
    """Returns a table after a step that may be legal, or nearly so."""
    if rng.random() < 0.7 and (after := laying(turn, ruleset, keeps_okeys=False)):
        melds, rack = list(after), list(turn.rack)
    else:
        melds, rack = list(turn.table.melds), list(turn.rack)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        tile = rng.choice(rack)
        match rng.randrange(9):
            case 0 | 1 | 2 if melds:
                place = rng.randrange(len(melds))
                grown = list(growths(melds[place], tile, turn.okey, one_high=ruleset.run_one_high))
                melds[place] = rng.choice(grown or [(*melds[place], tile)])
            case 3:
                melds.append(tuple(rng.sample(rack, min(len(rack), rng.choice((2, 3))))))
            case 4:
                melds += [(t, t) for t in set(rack) if rack.count(t) > 1]
            case 5:
                melds.append((tile, turn.okey))
            case 6 if melds:
                place = rng.randrange(len(melds))
                melds[place] = melds[place][1:]
            case 7 if len(melds) > 1:
                melds.pop(rng.randrange(len(melds)))
            case 8 if melds:
                place = rng.randrange(len(melds))
                melds[place] = tuple(tile if t == turn.okey else t for t in melds[place])
            case _:
                pass
    return tuple(melds)


def check_turns(seed: int, number: int) -> Counter[str]:
    """Compares the judges on random turns, and returns how often each reason was met."""
    rng, met = random.Random(seed), Counter[str]()
    for _ in range(number):
        ruleset = rng.choice(RULESETS)
        turn = random_turn(rng, ruleset)
        after = random_after(rng, turn, ruleset)
        verdict = judge_turn(turn, after, None, ruleset)
        told = {one.reason.name for one in verdict.violations}
        assert told == okey_101.reasons(before_of(turn), after, rules_of(ruleset)), (turn, after, ruleset)
        met.update(told or {"legal"})
        if verdict.laid:
            laid, changed = verdict.laid, Counter(chain(*after)) - Counter(chain(*turn.table.melds))
            assert in_order(changed.elements()) == laid.tiles
            assert in_order((*turn.rack, *chain(*turn.table.melds))) == in_order((*laid.turn.rack, *chain(*after)))
        for tile in rng.sample(turn.rack, 1):
            fit = okey_101.fits(turn.table.melds, tile, turn.okey, one_high=ruleset.run_one_high)
            assert fits(turn.table, tile, turn.okey, one_high=ruleset.run_one_high) == fit
    return met


def before_of(turn: TurnAtTable) -> okey_101.Before:
    openings = tuple((one.seat, one.is_pairs, one.amount) for one in turn.table.openings)
    return okey_101.Before(turn.seat, turn.okey, turn.table.melds, openings, turn.rack, turn.owed, turn.laid)


def rules_of(ruleset: Ruleset) -> okey_101.Rules:
    return okey_101.Rules(
        ruleset.run_one_high,
        ruleset.opening_points,
        ruleset.opening_pairs,
        ruleset.opening_rises,
        ruleset.pair_opener_tiles,
    )


@pytest.mark.slow
@pytest.mark.unmeasured
def test_another_judge_agrees_on_random_turns() -> None:
    met = check_turns(1, 1_500)
    assert met["legal"] > 150
    assert {row.expected[0][0].name for row in ILLEGAL if row.expected} <= set(met)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 22))
def test_another_judge_agrees_on_many_random_turns(seed: int) -> None:
    check_turns(seed, 5_000)
