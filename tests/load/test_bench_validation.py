"""The benchmark of validation: its requests, and its figures."""

from collections import Counter

import pytest

from load.bench.noop_server import AIO, STOCK
from load.bench.validation import batch_load, melds_load, stream_load, turn_load
from load.bench.validation_client import unframed
from load.bench.validation_loads import Load, framed
from load.bench.validation_report import (
    AIO_SERVICE,
    BATCH,
    ILLEGAL,
    LEGAL,
    LONG_STREAM,
    SERVERS,
    SERVICE,
    SHORT_STREAM,
    Measured,
    Slice,
    ratio,
    report_of,
    spread,
    tables_of,
)
from load.bench.validation_turns import RACK_TILES, TABLE_TILES, TURNS, Turns, read
from service.codec.turn_validator import Validator
from service.runtime.slow_calls import completed


@pytest.fixture(scope="module")
def turns() -> Turns:
    return read()


# Requests


def test_a_body_is_each_message_behind_its_length() -> None:
    assert framed([b"abc", b""]) == b"\0\0\0\0\3abc\0\0\0\0\0"
    assert unframed(framed([b"abc", b"", bytes(300)])) == [b"abc", b"", bytes(300)]


def test_of_an_answer_the_bytes_are_known() -> None:
    load = Load("StreamValidateTurns", messages=(b"1", b"2"), answers=(b"one", b"two!"), turns=2)
    assert load.answered(nothing=False) == 5 + 3 + 5 + 4
    assert load.answered(nothing=True) == 2 * 5


def test_turns_are_of_the_size_that_is_required_and_of_all_sorts(turns: Turns) -> None:
    for turn in (*turns.legal, *turns.illegal):
        assert sum(len(meld.tiles) for meld in turn.play.table_before) in TABLE_TILES
        assert turn.sort == "not on the rack" or len(turn.play.rack) in RACK_TILES
    assert len(turns.legal) == len(turns.illegal) == len(turns.mixed) == TURNS
    assert len({turn.request.SerializeToString() for turn in turns.legal}) > 0.9 * TURNS
    assert not any(turn.answer.violations for turn in turns.legal)
    assert all(turn.answer.violations for turn in turns.illegal)
    assert set(Counter(turn.sort for turn in turns.illegal)) == {
        "not on the rack",
        "tile missing",
        "broken meld",
        "nothing played",
    }


def test_the_service_answers_what_is_expected_of_it(turns: Turns) -> None:
    validation = Validator()
    for turn in (*turns.legal, *turns.illegal):
        asked = turn_load(turn), melds_load(turn)
        answers = (
            completed(validation.turn_in_steps(asked[0].messages[0])),
            validation.validate_melds(asked[1].messages[0]),
        )
        assert answers == (asked[0].answers[0], asked[1].answers[0])
    batch, stream = batch_load(turns.mixed), stream_load(turns.mixed)
    assert completed(validation.batch(batch.messages[0])) == batch.answers[0]
    opened = validation.stream()
    assert tuple(completed(opened.in_steps(message)) for message in stream.messages) == stream.answers


# Figures


def test_a_spread_has_quartiles_and_extremes() -> None:
    assert spread([5, 1, 2, 3, 4]) == {"median": 3, "low": 2, "high": 4, "least": 1, "most": 5}
    assert spread([7])["high"] == 7


def of(*microseconds: float) -> list[Slice]:
    """Returns slices of a thousand turns with these costs per turn."""
    return [Slice(1_000, us / 1e3, 0.01, 0.5, (1.0, 2.0)) for us in microseconds]


def test_slices_are_compared_with_those_of_the_same_time() -> None:
    figures = ratio(of(100, 300), of(100, 200))
    assert figures["median"] == pytest.approx(1.25)
    assert figures["of_least"] == pytest.approx(1)
    assert ratio(of(30, 90), of(100, 100, 300, 300))["median"] == pytest.approx(0.3)


def measured(turn: float, of_many: float) -> Measured:
    """Returns measurements in which a stock no-op call costs 200 us."""
    no_ops = {STOCK: 200, AIO: 120, AIO_SERVICE: 250}
    slices = {}
    for case in (LEGAL, ILLEGAL, BATCH, SHORT_STREAM, LONG_STREAM):
        own = turn if case in {LEGAL, ILLEGAL} else of_many
        slices.update({(case, server): of(no_ops.get(server, own)) for server in SERVERS})
    return Measured(slices, rounds=1)


@pytest.mark.parametrize(
    ("turn", "of_many", "missed"),
    [
        pytest.param(129, 19, 0, id="all met"),
        pytest.param(140, 19, 1, id="more than 0.65 for a legal turn"),
        pytest.param(160, 19, 2, id="more than 0.75 for an illegal turn"),
        pytest.param(129, 30, 1, id="more than 0.10 for a turn of a batch; one of a stream may cost more"),
        pytest.param(129, 60, 3, id="more than 0.25 for a turn of a stream"),
    ],
)
def test_requirements_compare_with_the_stock_no_op(turn: float, of_many: float, missed: int) -> None:
    requirements = report_of(measured(turn, of_many))["requirements"]
    assert sum(not one["met"] for one in requirements) == missed


def test_every_listener_has_its_figures_in_the_tables() -> None:
    for rows in tables_of(report_of(measured(110, 10))).values():
        assert {len(row) for row in rows} == {len(rows[0])}
    assert SERVICE in next(iter(tables_of(report_of(measured(110, 10))).values()))[0]
