"""Every conformance case, asked of the engine."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

import pytest

from conformance_cases import (
    Breach,
    Case,
    Faces,
    MeldCase,
    MeldReadingExpected,
    MeldText,
    Options,
    RoundScoreCase,
    RoundScoreExpected,
    SeatScore,
    StartDraw,
    StartDrawCase,
    StartDrawExpected,
    TimeOutCase,
    TimeOutExpected,
    TurnCase,
    TurnExpected,
    Waiting,
    agree,
    load,
)
from engine.events import RoundEnded, TurnStarted, TurnTimedOut
from engine.game import Game, Player, Playing, Rack, Round, RoundEnd, Turn
from engine.melds import Meld, MeldKind, ProposedMeld, read_meld
from engine.notation import format_tile, parse_tile
from engine.rules import Play, judge, meld_violations
from engine.ruleset import IMPLEMENTED, SABRA, Ruleset, problems
from engine.scoring import Standing, score_round
from engine.tiles import Tile, in_order, tile_set
from engine.turns import Applied, TimeOut, apply, draw_for_start
from engine.violations import Reason, Violation

SUITE = load()
DEADLINE_MS = 1_000


def ruleset_of(options: Options) -> Ruleset:
    values = {option: _value_of(option, value) for option, value in options.items()}
    return replace(SABRA, **values)  # type: ignore[arg-type]  # the option's name decides the type of its value


def _value_of(option: str, value: str | int) -> Enum | int:
    return value if isinstance(value, int) else type(IMPLEMENTED[option][0])[value]


def tiles_of(faces: Faces) -> tuple[Tile, ...]:
    return tuple(map(parse_tile, faces))


def faces_of(tiles: Iterable[Tile]) -> Faces:
    return tuple(map(format_tile, tiles))


def proposed(meld: MeldText) -> ProposedMeld:
    return ProposedMeld(tiles_of(meld.tiles), MeldKind[meld.kind.upper()] if meld.kind else None)


def table_of(melds: Iterable[MeldText], ruleset: Ruleset) -> tuple[Meld, ...]:
    readings = tuple(read_meld(proposed(meld), ruleset) for meld in melds)
    assert all(isinstance(reading, Meld) for reading in readings), "the case's table holds what is no meld"
    return tuple(reading for reading in readings if isinstance(reading, Meld))


def melds_of(table: Iterable[Meld], stated: Iterable[MeldText]) -> tuple[MeldText, ...]:
    """A table as the case writes it: kinds only where the case states them."""
    return tuple(
        MeldText(faces_of(meld.tiles), meld.kind.name.lower() if text.kind else None)
        for meld, text in zip(table, stated, strict=True)
    )


def breach(violation: Violation) -> Breach:
    return Breach(
        violation.reason.name,
        violation.subject,
        faces_of(violation.tiles),
        dict(violation.metadata),
        faces_of(violation.suggested_order),
    )


def name(case: Case | Waiting) -> str:
    return case.id if isinstance(case, Case) else case.source_id


@pytest.mark.parametrize("case", SUITE.melds, ids=name)
def test_meld(case: MeldCase) -> None:
    reading = read_meld(proposed(case.meld), ruleset_of(case.ruleset))
    if not isinstance(reading, Meld):
        expected, seen = agree(case.expect.violations, tuple(map(breach, meld_violations(reading, "melds[0]"))))
        assert seen == expected
        return
    faces = tuple(map(faces_of, reading.joker_faces))
    assert MeldReadingExpected((), reading.kind.name.lower(), reading.points, faces) == case.expect


@pytest.mark.parametrize("case", SUITE.turns, ids=name)
def test_turn(case: TurnCase) -> None:
    ruleset = ruleset_of(case.ruleset)
    table_after = tuple(map(proposed, case.table_after))
    before = table_of(case.table_before, ruleset)
    judgement = judge(Play(before, table_after, in_order(tiles_of(case.rack)), case.has_melded, ruleset))
    expected, seen = agree(case.expect.violations, tuple(map(breach, judgement.violations)))
    assert seen == expected
    if not seen:
        played, left = faces_of(judgement.tiles_played), faces_of(judgement.rack_left)
        assert TurnExpected((), played, judgement.points, left, goes_out=not left) == case.expect


@pytest.mark.parametrize("case", SUITE.round_scores, ids=name)
def test_round_score(case: RoundScoreCase) -> None:
    standings = tuple(Standing(rack.seat, tiles_of(rack.rack)) for rack in case.racks)
    end = RoundEnd.WENT_OUT if any(not rack.rack for rack in case.racks) else RoundEnd.BLOCKED
    result = score_round(1, end, standings, ruleset_of(case.ruleset))
    seats = tuple(SeatScore(seat.seat, seat.rack_value, seat.tile_count, seat.points) for seat in result.seats)
    assert RoundScoreExpected(result.end.name, result.winners, seats) == case.expect
    assert sum(seat.points for seat in result.seats) == 0


@pytest.mark.parametrize("case", SUITE.time_outs, ids=name)
def test_time_out(case: TimeOutCase) -> None:
    before = round_of(case)
    game = Game(
        ruleset=ruleset_of(case.ruleset),
        players=tuple(Player(rack.seat, f"player {rack.seat}") for rack in case.racks),
        phase=Playing(before),
    )
    applied = apply(game, TimeOut(), DEADLINE_MS + 1)
    assert isinstance(applied, Applied)
    after = applied.game.round
    assert after
    turns = tuple(event.turn.seat for event in applied.events if isinstance(event, TurnStarted))
    ends = tuple(event.result.end.name for event in applied.events if isinstance(event, RoundEnded))
    drawn = tuple(tile for event in applied.events if isinstance(event, TurnTimedOut) for tile in event.tiles)
    seen = TimeOutExpected(
        tiles_drawn=faces_of(drawn),
        rack=faces_of(after.rack(case.turn_seat).tiles),
        table=melds_of(after.table, case.table),
        pool_left=faces_of(after.pool),
        next_seat=turns[0] if turns else None,
        end=ends[0] if ends else None,
    )
    assert seen == case.expect


def round_of(case: TimeOutCase) -> Round:
    return Round(
        number=1,
        starter=1,
        table=table_of(case.table, ruleset_of(case.ruleset)),
        racks=tuple(Rack(rack.seat, in_order(tiles_of(rack.rack)), rack.has_melded) for rack in case.racks),
        pool=tiles_of(case.pool),
        turn=Turn(case.turn_seat, DEADLINE_MS),
        passed=case.passed_seats,
    )


@pytest.mark.parametrize("case", SUITE.start_draws, ids=name)
def test_start_draw(case: StartDrawCase) -> None:
    starter, draws = draw_for_start(case.seats, tiles_of(case.tiles))
    seen = tuple(StartDraw(draw.seat, format_tile(draw.tile)) for draw in draws)
    assert StartDrawExpected(seen, starter) == case.expect


def test_the_ids_are_unique() -> None:
    ids = Counter(case.id for case in SUITE.cases)
    assert [one for one, count in ids.items() if count > 1] == []


def test_cases_and_waiting_ones_cover_every_example() -> None:
    expressed = {case.source_id for case in SUITE.cases if case.source_id}
    waiting = {example.source_id for example in SUITE.waiting}
    assert len(set(SUITE.source_ids)) == len(SUITE.source_ids) == 120
    assert expressed | waiting == set(SUITE.source_ids)
    assert expressed & waiting == set()


def test_every_case_says_what_it_shows() -> None:
    assert [case.id for case in SUITE.cases if not case.note] == []
    assert [example.source_id for example in SUITE.waiting if not example.note] == []


@pytest.mark.parametrize("case", SUITE.cases, ids=name)
def test_the_ruleset_can_be_played(case: Case) -> None:
    assert problems(ruleset_of(case.ruleset)) == ()


@pytest.mark.parametrize("case", [*SUITE.turns, *SUITE.round_scores, *SUITE.time_outs], ids=name)
def test_the_position_is_possible(case: TurnCase | RoundScoreCase | TimeOutCase) -> None:
    held = Counter(tiles_of(_position(case)))
    assert held <= Counter(tile_set(ruleset_of(case.ruleset).geometry_jokers))


def _position(case: TurnCase | RoundScoreCase | TimeOutCase) -> Faces:
    match case:
        case TurnCase():
            return case.rack + tuple(face for meld in case.table_before for face in meld.tiles)
        case RoundScoreCase():
            return tuple(face for rack in case.racks for face in rack.rack)
        case TimeOutCase():
            on_table = tuple(face for meld in case.table for face in meld.tiles)
            return case.pool + on_table + tuple(face for rack in case.racks for face in rack.rack)


@pytest.mark.parametrize("example", [one for one in SUITE.waiting if one.option], ids=name)
def test_what_an_example_waits_for_is_not_there_yet(example: Waiting) -> None:
    assert example.option
    assert example.value
    assert _value_of(example.option, example.value) not in IMPLEMENTED[example.option], "write its case"


@pytest.mark.parametrize("example", [one for one in SUITE.waiting if not one.option], ids=name)
def test_an_example_that_waits_for_no_option_names_a_feature(example: Waiting) -> None:
    assert example.feature


MELD_REASONS = [reason for reason in Reason if reason.name.startswith(("SET_", "GROUP_", "RUN_", "JOKERS_"))]
TURN_REASONS = list(Reason)[list(Reason).index(Reason.TILE_UNKNOWN) :]


@pytest.mark.parametrize("reason", MELD_REASONS, ids=lambda reason: reason.name)
def test_every_reason_of_melds_occurs_alone(reason: Reason) -> None:
    assert any([one.reason for one in case.expect.violations] == [reason.name] for case in SUITE.melds)


@pytest.mark.parametrize("reason", TURN_REASONS, ids=lambda reason: reason.name)
def test_every_reason_of_turns_occurs_alone(reason: Reason) -> None:
    assert any([one.reason for one in case.expect.violations] == [reason.name] for case in SUITE.turns)
