import re
import string
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.melding.melds import Meld, MeldKind, ProposedMeld, read_meld
from engine.melding.notation import (
    PlayText,
    Position,
    format_meld,
    format_play,
    format_position,
    format_table,
    format_turn,
    parse_meld,
    parse_melds,
    parse_play,
    parse_position,
    parse_turn,
    position_of,
)
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import SABRA, MeldOrder
from engine.notation import (
    Naming,
    NotationError,
    format_rack,
    format_tile,
    format_tiles,
    parse_rack,
    parse_tile,
    parse_tiles,
)
from engine.seats import Rack, Turn
from engine.tiles import JOKER, Tile, naturals, tile_set
from engine.violation_texts import DESCRIPTIONS, describe_violation
from engine.violations import Reason, Violation, refused
from support.cases import each_of

TILES = st.sampled_from((*naturals(6), JOKER))
LISTS = st.lists(TILES, max_size=14).map(tuple)
RACKS = LISTS.map(lambda tiles: tuple(sorted(tiles)))


def parse_card(text: str) -> Tile:
    return parse_tile(text, Naming.CARDS)


def as_written(tiles: tuple[Tile, ...], kind: MeldKind | None, faces: tuple[Tile, ...]) -> ProposedMeld:
    """Returns a meld without its kind where the notation omits it: several numbered tiles, no declared faces."""
    declared = faces[: tiles.count(JOKER)] if len(faces) >= tiles.count(JOKER) else ()
    return ProposedMeld(tiles, kind if declared or sum(t != JOKER for t in tiles) <= 1 else None, declared)


MELDS = st.builds(as_written, LISTS, st.sampled_from((None, *MeldKind)), LISTS)
TABLES = st.lists(MELDS, max_size=5).map(tuple)
SEAT_RACKS = st.dictionaries(st.integers(1, 9), st.tuples(RACKS, st.booleans()), min_size=1, max_size=4).map(
    lambda racks: tuple(Rack(seat, tiles, melded) for seat, (tiles, melded) in sorted(racks.items()))
)
POSITIONS = SEAT_RACKS.flatmap(
    lambda racks: st.builds(Position, TABLES, st.just(racks), LISTS, st.sampled_from([rack.seat for rack in racks]))
)


def test_tiles_are_written_by_the_letter_of_their_color_and_their_value() -> None:
    written = [f"{letter}{value}" for letter in "RBKOGP" for value in range(1, 14)]
    assert [format_tile(t) for t in naturals(6)] == written
    assert [parse_tile(text) for text in written] == list(naturals(6))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("J", "J"),
        ("Ja", "J"),
        ("R7a", "R7"),
        ("K13b", "K13"),
        ("Y4", "O4"),
        ("Y13h", "O13"),
        ("O10", "O10"),
        ("r7", "R7"),
        ("b13a", "B13"),
        ("j", "J"),
        ("10b", "B10"),
        ("7R", "R7"),
        ("1ka", "K1"),
        ("7bb", "B7"),
        ("13y", "O13"),
        ("J*", "J"),
        ("j*a", "J"),
    ],
)
def test_other_names_of_tiles_are_read_and_not_written(text: str, written: str) -> None:
    assert format_tile(parse_tile(text)) == written


@given(LISTS)
def test_tiles_and_racks_read_back_as_they_were_written(tiles: tuple[Tile, ...]) -> None:
    assert parse_tiles(format_tiles(tiles)) == tiles
    assert parse_tiles(format_tiles(tiles).lower().replace(" ", ",")) == tiles
    assert parse_rack(format_rack(tiles)) == tuple(sorted(tiles))


@given(MELDS)
def test_a_meld_reads_back_as_it_was_written(meld: ProposedMeld) -> None:
    assert parse_meld(format_meld(meld)) == meld


@pytest.mark.unmeasured
@given(TABLES)
def test_a_table_reads_back_as_it_was_written(table: tuple[ProposedMeld, ...]) -> None:
    assert parse_melds(format_table(table)) == table


@pytest.mark.unmeasured
@given(st.builds(PlayText, TABLES, RACKS, TABLES, RACKS))
def test_a_play_reads_back_as_it_was_written(play: PlayText) -> None:
    assert parse_play(format_play(play)) == play


@pytest.mark.unmeasured
@given(POSITIONS)
def test_a_position_reads_back_as_it_was_written(position: Position) -> None:
    assert parse_position(format_position(position)) == position


@pytest.mark.unmeasured
@given(TABLES, RACKS, st.booleans())
def test_the_position_of_a_player_reads_back_as_it_was_written(
    table: tuple[ProposedMeld, ...], rack: tuple[Tile, ...], has_melded: bool
) -> None:
    own = Rack(1, rack, has_melded)
    assert parse_turn(format_turn(table, own)) == (table, own)


def test_the_position_of_a_player_has_a_star_after_the_initial_meld() -> None:
    assert format_turn(parse_melds("[R3 R4 R5]"), Rack(3, parse_tiles("R2 B5"), has_melded=True)) == (
        "[R3 R4 R5] + *{R2 B5}"
    )
    assert parse_turn(" . + {B5 R2} ") == ((), Rack(1, parse_tiles("R2 B5")))
    assert parse_turn("[7H *=8H 9H] + *{*}", Naming.CARDS) == parse_turn("[R7 J=R8 R9] + *{J}")


def test_a_position_is_one_readable_line() -> None:
    text = "[R3 R4 R5] | run[J J R5] / 1*{R2 B5} 2{} / {O8 R7} / 2"
    position = parse_position(text)
    assert position.table == (parse_meld("[R3 R4 R5]"), ProposedMeld(parse_tiles("J J R5"), MeldKind.RUN))
    assert position.racks == (Rack(1, parse_tiles("R2 B5"), has_melded=True), Rack(2, ()))
    assert position.pool == parse_tiles("O8 R7")
    assert position.turn_seat == 2
    assert position.rack == position.racks[1]
    assert format_position(position) == text


def test_a_stated_kind_is_read_wherever_it_stands_and_written_where_it_is_needed() -> None:
    assert parse_meld(" group[R7 B7 K7] ") == ProposedMeld(parse_tiles("R7 B7 K7"), MeldKind.GROUP)
    assert format_meld(parse_meld("group[R7 B7 K7]")) == "[R7 B7 K7]"
    assert format_meld(parse_meld("group[J R7 J]")) == "group[J R7 J]"


@pytest.mark.parametrize("text", ["RUN[J J R5]", "Run [j J* 5r]", "run[J, J, R5]"])
def test_the_kind_is_read_in_any_case(text: str) -> None:
    assert parse_meld(text) == parse_meld("run[J J R5]")
    assert parse_meld(text.replace("R", "r")) == parse_meld("run[J J R5]")


def test_an_empty_table_is_a_dot_and_an_empty_pool_is_read_as_one() -> None:
    assert parse_melds("") == parse_melds(" . ") == ()
    assert format_table(()) == "."
    position = parse_position(". / 1{} / . / 1")
    assert position.pool == ()
    assert format_position(position) == ". / 1{} / {} / 1"


NOT_A_TILE = " is not a tile: expected a color R, B, K, O, G or P with a value 1 to 13, J, D, M, C or F"
NOT_A_MELD = " is not a meld: expected [tiles], run[tiles] or group[tiles]"
ALL_OR_NONE = " of another form: expected a face for each joker of a meld, or none"
NOT_A_CARD = " is not a card: expected a rank A, 2 to 10, J, Q or K with a suit H, D, C or S, or *"

ERRORS = [
    # parser, text, column, message
    (parse_tile, "R14", 1, "'R14'" + NOT_A_TILE),
    (parse_tile, "R0", 1, "'R0'" + NOT_A_TILE),
    (parse_tile, "R07", 1, "'R07'" + NOT_A_TILE),
    (parse_tile, "R7A", 1, "'R7A'" + NOT_A_TILE),
    (parse_tile, "R7z", 1, "'R7z'" + NOT_A_TILE),
    (parse_tile, "14R", 1, "'14R'" + NOT_A_TILE),
    (parse_tile, "7H", 1, "'7H'" + NOT_A_TILE),
    (parse_tile, "", 1, "''" + NOT_A_TILE),
    (parse_tile, "J5", 1, "'J5'" + NOT_A_TILE),
    (parse_tiles, "R7 X1", 4, "'X1'" + NOT_A_TILE),
    (parse_tile, "*", 1, "'*'" + NOT_A_TILE),
    (parse_tile, "a", 1, "'a'" + NOT_A_TILE),
    (parse_card, "R7", 1, "'R7'" + NOT_A_CARD),
    (parse_card, "J", 1, "'J'" + NOT_A_CARD),
    (parse_card, "J*", 1, "'J*'" + NOT_A_CARD),
    (parse_card, "1H", 1, "'1H'" + NOT_A_CARD),
    (parse_card, "11H", 1, "'11H'" + NOT_A_CARD),
    (parse_card, "Y7", 1, "'Y7'" + NOT_A_CARD),
    (
        parse_meld,
        "[R7=J R8 R9]",
        2,
        "'R7=J' declares a face of a tile that is not a joker: only jokers have declared faces",
    ),
    (parse_meld, "[J= R8 R9]", 3, "''" + NOT_A_TILE),
    (parse_meld, " [J=R7 J X9] ", 8, "'J' follows a joker" + ALL_OR_NONE),
    (parse_meld, "[J J=R7 X9] ", 4, "'J=R7' follows a joker" + ALL_OR_NONE),
    (parse_meld, "[J=R7 X9 J] ", 7, "'X9'" + NOT_A_TILE),
    (parse_meld, "R7 B7", 1, "'R7 B7'" + NOT_A_MELD),
    (parse_meld, "set[R7]", 1, "'set[R7]'" + NOT_A_MELD),
    (parse_meld, "[[R7]]", 1, "'[[R7]]'" + NOT_A_MELD),
    (parse_meld, " [R7", 2, "'[R7'" + NOT_A_MELD),
    (parse_melds, "[R7] |", 6, "''" + NOT_A_MELD),
    (parse_melds, "[X] | [Y]", 2, "'X'" + NOT_A_TILE),
    (parse_melds, "[R7] [Y]", 6, "'[Y]' follows a meld: expected | between melds"),
    (parse_melds, ". [Y]", 3, "'[Y]' follows '.': expected nothing"),
    (parse_rack, "R7 B7", 1, "'R7 B7' is not a rack: expected {tiles}"),
    (parse_rack, "{R7} {B7}", 6, "'{B7}' follows the rack: expected nothing"),
    (parse_rack, "{R7 X} {B7}", 5, "'X'" + NOT_A_TILE),
    (parse_play, ". + {R7}", 8, "a part is missing: expected table + rack -> table ; rack"),
    (parse_play, ". + {R7} -> .", 13, "a part is missing: expected table + rack -> table ; rack"),
    (parse_play, ". + R7 -> . ; {}", 5, "'R7' is not a rack: expected {tiles}"),
    (parse_play, ". + {R7} -> [X] ; Y", 14, "'X'" + NOT_A_TILE),
    (parse_turn, "", 1, "a part is missing: expected table + *{rack}, or table / racks / pool / seat"),
    (parse_turn, "[R7]", 4, "a part is missing: expected table + *{rack}, or table / racks / pool / seat"),
    (parse_turn, ". {R7}", 3, "'{R7}' follows '.': expected nothing"),
    (parse_turn, ". + **{R7}", 6, "'*{R7}' is not a rack: expected {tiles}"),
    (parse_turn, ". + ", 4, "'' is not a rack: expected {tiles}"),
    (parse_turn, ". + {X}", 6, "'X'" + NOT_A_TILE),
    (parse_turn, "[X] + {Y}", 2, "'X'" + NOT_A_TILE),
    (parse_turn, "[R7] + {R8} + {Y}", 13, "'+ {Y}' follows the rack: expected nothing"),
    (parse_position, ". / 1{} / {}", 12, "a part is missing: expected table / racks / pool / seat"),
    (parse_position, ". / 1{} / {} / 1 / 2", 16, "'1 / 2' is not a seat: expected 1 to 9"),
    (parse_position, ". / {R1} / {} / 1", 5, "'{R1}' is not a rack with its seat: expected 1{tiles} or 1*{tiles}"),
    (parse_position, ". / 1{R1} x / {} / 1", 11, "'x' is not a rack with its seat: expected 1{tiles} or 1*{tiles}"),
    (parse_position, ". / 1{} / R1 / 1", 11, "'R1' is not a pool: expected {tiles}"),
    (parse_position, ". / 1{} / . R1 / 1", 13, "'R1' follows '.': expected nothing"),
    (parse_position, ". / 1{} / {} / 0", 16, "'0' is not a seat: expected 1 to 9"),
    (parse_position, ". / 1{} / {} / 10", 16, "'10' is not a seat: expected 1 to 9"),
    (parse_position, ". / 1{} / {} / 2", 16, "'2' is the seat to move, but has no rack"),
    (parse_position, ". / 1{} 2{} 1*{X} / {} / 1", 13, "'1' has two racks: expected one of each seat"),
    (parse_position, ". / 1{X} / {} / 1", 7, "'X'" + NOT_A_TILE),
    (parse_position, "[X] / 1{Y} / {Z} / 0", 2, "'X'" + NOT_A_TILE),
    (parse_position, "[R7] / 1{Y} / {Z}", 10, "'Y'" + NOT_A_TILE),
]


@pytest.mark.parametrize(
    ("parse", "text", "column", "message"), ERRORS, ids=[f"{row[0].__name__}-{row[1]}" for row in ERRORS]
)
def test_the_first_fault_is_quoted_with_its_column_and_the_expected_form(
    parse: Callable[[str], object], text: str, column: int, message: str
) -> None:
    with pytest.raises(NotationError) as caught:
        parse(text)
    assert (caught.value.column, str(caught.value)) == (column, message)


@pytest.mark.unmeasured
@pytest.mark.slow
@given(POSITIONS, st.data())
def test_of_several_invalid_tiles_the_first_is_named(position: Position, data: st.DataObject) -> None:
    text = format_position(position)
    tiles = list(re.finditer(r"[A-Z][0-9]+", text))
    assume(tiles)
    wrong = data.draw(st.sets(st.sampled_from(tiles), min_size=1))
    for tile in wrong:
        text = f"{text[: tile.start()]}X{text[tile.start() + 1 :]}"
    with pytest.raises(NotationError) as caught:
        parse_position(text)
    assert caught.value.column == 1 + min(tile.start() for tile in wrong)


PARSERS: Sequence[Callable[[str], object]] = [
    parse_meld,
    parse_melds,
    parse_rack,
    parse_play,
    parse_turn,
    parse_position,
]
TYPED = st.text(st.sampled_from("RBKOGPYJrj*=0179aHQ.,|/+->;[]{}rungop \n\u2003é"), max_size=60)
PIECES = st.lists(
    st.sampled_from(
        ["[R3 R4 R5]", "run[J R5]", "[J=R3", "{R2 J}", "{}", "1*{R7}", "2{", " . ", "|", "/", "+", "1", "->"]
    )
).map(" ".join)


@pytest.mark.unmeasured
@given(TYPED | PIECES | POSITIONS.map(format_position), st.data())
def test_every_text_is_parsed_or_has_a_fault_within_it(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    changed = (
        text[:place] + data.draw(TYPED.map(lambda typed: typed[:3])) + text[place + data.draw(st.integers(0, 2)) :]
    )
    for parse in PARSERS:
        assert 1 <= fault(parse, changed) <= max(1, len(changed))


def fault(parse: Callable[[str], object], text: str) -> int:
    """Returns the column of a text's fault; 1 if it is parsed."""
    try:
        parse(text)
    except NotationError as error:
        return error.column
    return 1


CARDS = [
    # as tiles, as cards, parsed, formatted
    ("R1 R2 R9 R10 R11 R12 R13", "AH 2H 9H 10H JH QH KH", parse_tiles, format_tiles),
    ("B11 K12 O13 O1 J", "JC QS KD AD *", parse_tiles, format_tiles),
    ("[R10 R11 J]", "[10H JH *]", parse_meld, format_meld),
    ("group[R5 J=B5 J=K5]", "group[5H *=5C *=5S]", parse_meld, format_meld),
    ("{R2 B5 J}", "{2H 5C *}", parse_rack, format_rack),
    ("[R3 R4 R5] | run[J J R5]", "[3H 4H 5H] | run[* * 5H]", parse_melds, format_table),
    (
        "[R3 R4 R5] + {R2 J} -> [R2 R3 R4 R5 J] ; {}",
        "[3H 4H 5H] + {2H *} -> [2H 3H 4H 5H *] ; {}",
        parse_play,
        format_play,
    ),
    (
        "[R3 R4 J=R5] / 1*{R2 B5} 2{J} / {O8 R7} / 2",
        "[3H 4H *=5H] / 1*{2H 5C} 2{*} / {8D 7H} / 2",
        parse_position,
        format_position,
    ),
]


@pytest.mark.parametrize(("tiles", "cards", "parse", "form"), CARDS)
def test_cards_are_another_name_for_everything(
    tiles: str, cards: str, parse: Callable[..., object], form: Callable[..., str]
) -> None:
    meant = parse(tiles)
    assert parse(tiles, Naming.TILES) == parse(cards, Naming.CARDS) == meant
    assert form(meant) == form(meant, Naming.TILES) == tiles
    assert form(meant, Naming.CARDS) == cards


def test_each_tile_of_four_colors_has_a_card_of_its_own_and_copies_are_dropped() -> None:
    tiles = sorted(set(tile_set(4, 2, 2)))
    cards = [format_tile(t, Naming.CARDS) for t in tiles]
    assert len(set(cards)) == 53
    assert [parse_card(card) for card in cards] == tiles
    assert [parse_card(f"{card}h") for card in cards] == tiles


def test_green_and_purple_have_no_cards() -> None:
    with pytest.raises(NotationError) as caught:
        format_tile(parse_tile("P7"), Naming.CARDS)
    assert str(caught.value) == "'P7' has no card: green, purple, the false joker and special jokers have none"


def test_declared_faces_are_formatted_with_joker_and_kind() -> None:
    text = "group[R5 J=B5 J=K5 O5]"
    assert parse_meld(text) == ProposedMeld(parse_tiles("R5 J J O5"), MeldKind.GROUP, parse_tiles("B5 K5"))
    assert format_meld(parse_meld(text)) == text
    assert format_meld(parse_meld("[R4 J=R5 R6]")) == "[R4 J=R5 R6]"
    with pytest.raises(NotationError) as caught:
        format_meld(ProposedMeld(parse_tiles("R5 J J O5"), None, parse_tiles("B5")))
    assert str(caught.value) == "'B5' cannot be formatted: declare one face for each joker"
    assert format_meld(ProposedMeld(parse_tiles("R2 D R5"), MeldKind.RUN, parse_tiles("R3 R4"))) == "[R2 D R5]"


@pytest.mark.parametrize(
    ("text", "colors", "written"),
    [
        ("[R4 J R6]", 4, "[R4 J R6]"),
        ("[R4 J=R5 R6]", 4, "[R4 J R6]"),
        ("[R5 J B5]", 4, "[R5 J B5]"),
        ("[R5 J=K5 B5]", 4, "group[R5 J=K5 B5]"),
        ("[R5 J=K5 B5 O5]", 4, "[R5 J B5 O5]"),
        ("[R5 J=K5 B5 O5]", 6, "group[R5 J=K5 B5 O5]"),
        ("[R5 J=K5 J=B5]", 4, "group[R5 J=K5 J=B5]"),
    ],
)
def test_a_formatted_meld_has_its_declared_faces(text: str, colors: int, written: str) -> None:
    ruleset = replace(SABRA, geometry_colors=colors)
    meld = read_meld(parse_meld(text), ruleset)
    assert isinstance(meld, Meld)
    assert format_meld(meld, ruleset=ruleset) == written
    assert format_table((meld, meld), ruleset=ruleset) == f"{written} | {written}"
    assert format_meld(meld) == (written if colors == 4 else "[R5 J B5 O5]")
    round_ = Round(1, (1,), (meld,), (Rack(1, (JOKER,)),), (), Turn(1, None))
    assert format_position(position_of(round_, ruleset)) == f"{written} / 1{{J}} / {{}} / 1"


def test_faces_of_jokers_in_a_run_are_formatted_under_canonical_order() -> None:
    ruleset = replace(SABRA, meld_order=MeldOrder.CANONICALISE)
    for text in ("run[J=O3 J=O4 O5]", "run[O5 J=O6 J=O7]"):
        meld = read_meld(parse_meld(text), ruleset)
        assert isinstance(meld, Meld)
        assert format_meld(meld, ruleset=ruleset) == text


METADATA = {
    Reason.GAME_FULL: {"players_max"},
    Reason.TOO_MANY_CHANGES: {"changes"},
    Reason.TOO_FEW_PLAYERS: {"players", "players_min"},
    Reason.PLAYERS_NOT_READY: {"players", "ready"},
    Reason.SEAT_TAKEN: {"seat"},
    Reason.PLAYER_NOT_IN_GAME: {"seat"},
    Reason.NOT_YOUR_TURN: {"seat"},
    Reason.INITIAL_MELD_NO_MELD_REACHES_THRESHOLD: {"best", "threshold"},
    Reason.INITIAL_MELD_BELOW_THRESHOLD: {"total", "threshold"},
    Reason.KNOCK_TOO_MANY_POINTS: {"points", "limit"},
    Reason.OPENING_BELOW_THRESHOLD: {"total", "threshold"},
    Reason.OPENING_PAIRS_TOO_FEW: {"pairs", "needed"},
    Reason.TOO_MANY_TILES_LAID: {"count", "limit"},
    Reason.COORDINATE_OUT_OF_RANGE: {"x", "y"},
    Reason.CELL_OCCUPIED: {"x", "y"},
    Reason.TABLE_TILE_MOVED: {"x", "y"},
    Reason.CELL_ISOLATED: {"x", "y"},
    Reason.LINE_INVALID: {"x", "y", "last_x", "last_y"},
    Reason.CROSSING_JOKER_CONFLICT: {"x", "y"},
    Reason.INITIAL_MELD_TOUCHES_TABLE: {"x", "y"},
    Reason.RIVER_INDEX_OUT_OF_RANGE: {"count", "index"},
    Reason.NO_DISCARD_TO_TAKE: {"seat"},
}
"""The metadata keys of each reason. The tables of plays and of turns check that violations have them."""


@each_of("reason", Reason)
def test_every_reason_is_described_with_its_metadata_and_nothing_else(reason: Reason) -> None:
    named = {name for _, name, _, _ in string.Formatter().parse(DESCRIPTIONS[reason]) if name}
    assert named == METADATA.get(reason, set())


def test_a_description_has_numbers_tiles_and_a_better_order_in_it() -> None:
    below = Violation(Reason.INITIAL_MELD_BELOW_THRESHOLD, metadata=(("total", 27), ("threshold", 30)))
    assert describe_violation(below) == "the initial meld has 27 points, 30 are needed"
    assert describe_violation(refused(Reason.NOT_YOUR_TURN, seat=3).violations[0]) == "it is seat 3's turn"
    foreign = Violation(Reason.TILE_NOT_IN_RACK, "table_after", parse_tiles("R7 J"))
    assert describe_violation(foreign) == "tiles are neither on the table nor on the player's rack: R7 J"
    gap = Violation(Reason.RUN_GAP, tiles=parse_tiles("J R4 R6"), suggested_order=parse_tiles("R4 J R6"))
    assert describe_violation(gap) == "the values of a run must ascend by exactly one: J R4 R6; valid order: R4 J R6"
