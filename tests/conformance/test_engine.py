"""The engine answers every conformance case and every contrast as stated."""

from collections import Counter
from dataclasses import replace

from conformance.engine_answers import (
    GameSeen,
    answer,
    creation_problems,
    faces_of,
    game_options,
    judged_hand,
    opening_text,
    placement_of,
    play,
    play_of,
    proposed,
    room_of,
    ruleset_of,
    table_of,
    tiles_of,
    verdict_on,
)
from engine.actions import TimeOut
from engine.discard.finishing import JudgedHand
from engine.discard.named_finish import JudgedNamedHand
from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.events import RoundEnded, TurnStarted, TurnTimedOut
from engine.family import presets_of
from engine.game import Game, Playing, RoundEnd
from engine.melding import game as melding
from engine.melding.deal import draw_for_start, turn_order
from engine.melding.grid.rules import judge_grid
from engine.melding.melds import Meld, read_meld
from engine.melding.round import MeldingRound as Round
from engine.melding.rules import meld_violations
from engine.melding.scoring import Standing, score_round
from engine.melding.table import Table, melds_of
from engine.notation import format_tile
from engine.seats import Player, Rack, Turn
from engine.tiles import in_order, without
from engine.turns import Applied, apply
from engine.violations import Violation
from support.cases import each_of
from support.conformance_cases import (
    Breach,
    Case,
    Contrast,
    CreateCase,
    DiscardTurnCase,
    DiscardTurnExpected,
    Faces,
    GameCase,
    HandCase,
    HandExpected,
    MeldCase,
    MeldReadingExpected,
    MeldText,
    PlacementCase,
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
    seen_as_stated,
)
from support.plays import judged

SUITE = load()
DEADLINE_MS = 1_000


def as_stated(table: Table, stated: tuple[MeldText, ...]) -> tuple[MeldText, ...]:
    """Returns a table as the case writes it, with kinds only where the case states them."""
    return tuple(
        MeldText(faces_of(meld.tiles), meld.kind.name.lower() if text.kind else None)
        for meld, text in zip(melds_of(table), stated, strict=True)
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


@each_of("case", SUITE.melds, name)
def test_meld(case: MeldCase) -> None:
    reading = read_meld(proposed(case.meld), ruleset_of(case.ruleset))
    if not isinstance(reading, Meld):
        expected, seen = agree(case.expect.violations, tuple(map(breach, meld_violations(reading, "melds[0]"))))
        assert seen == expected
        return
    faces = tuple(map(faces_of, reading.joker_faces))
    assert MeldReadingExpected((), reading.kind.name.lower(), reading.points, faces) == case.expect


@each_of("case", SUITE.turns, name)
def test_turn(case: TurnCase) -> None:
    judgement = judged(play_of(case, ruleset_of(case.ruleset)))
    expected, seen = agree(case.expect.violations, tuple(map(breach, judgement.violations)))
    assert seen == expected
    if not seen:
        played, left = faces_of(judgement.tiles_played), faces_of(judgement.rack_left)
        assert TurnExpected((), played, judgement.points, left, goes_out=not left) == case.expect


@each_of("case", SUITE.placements, name)
def test_placement(case: PlacementCase) -> None:
    judgement = judge_grid(placement_of(case, room_of({"preset": "CROSS", **case.ruleset}).ruleset))
    expected, seen = agree(case.expect.violations, tuple(map(breach, judgement.violations)))
    assert seen == expected
    if not seen:
        played, left = faces_of(judgement.tiles_played), faces_of(judgement.rack_left)
        assert TurnExpected((), played, judgement.points, left, goes_out=not left) == case.expect


@each_of("case", [case for case in SUITE.hands if not case.expect.malformed], name)
def test_hand(case: HandCase) -> None:
    ruleset, _ = game_options({"preset": "OKEY", **case.ruleset})
    assert isinstance(ruleset, DiscardRuleset)
    verdict = judged_hand(case, ruleset)
    expected, seen = agree(case.expect.violations, tuple(map(breach, verdict.violations)))
    assert seen == expected
    told = HandExpected(
        violations=case.expect.violations, discard=format_tile(verdict.discard) if verdict.discard else None
    )
    match verdict:
        case JudgedHand(_, finish, _, cost, lacks):
            is_pairs = finish is not None and finish.is_pairs
            assert replace(told, is_pairs=is_pairs, cost=cost, missing=lacks.missing) == case.expect
        case JudgedNamedHand(_, hand, _, points):
            assert replace(told, cost=points, hand_name=hand.name if hand else "") == case.expect


@each_of("case", [case for case in SUITE.discard_turns if not case.expect.malformed], name)
def test_discard_turn(case: DiscardTurnCase) -> None:
    ruleset, _ = game_options({"preset": "OKEY_101", **case.ruleset})
    assert isinstance(ruleset, DiscardRuleset)
    verdict = verdict_on(case, ruleset)
    expected, seen = agree(case.expect.violations, tuple(map(breach, verdict.violations)))
    assert seen == expected
    if seen:
        return
    laid = verdict.laid
    rack = laid.turn.rack if laid else in_order(tiles_of(case.rack))
    told = DiscardTurnExpected(
        tiles_laid=faces_of(laid.tiles) if laid else (),
        okeys=laid.okeys if laid else 0,
        opening=opening_text(laid.opening) if laid and laid.opening else None,
        rack_left=faces_of(without(rack, tiles_of((case.discard,)) if case.discard else ())),
        penalty=verdict.penalty.name if verdict.penalty else None,
        is_finish=verdict.is_finish,
    )
    assert told == case.expect


@each_of("case", SUITE.round_scores, name)
def test_round_score(case: RoundScoreCase) -> None:
    standings = tuple(Standing(rack.seat, tiles_of(rack.rack)) for rack in case.racks)
    end = RoundEnd.WENT_OUT if any(not rack.rack for rack in case.racks) else RoundEnd.BLOCKED
    result = score_round(1, end, standings, ruleset_of(case.ruleset))
    seats = tuple(SeatScore(seat.seat, seat.rack_value, seat.tile_count, seat.points) for seat in result.seats)
    assert RoundScoreExpected(result.end.name, result.winners, seats) == case.expect
    assert sum(seat.points for seat in result.seats) == 0


@each_of("case", SUITE.time_outs, name)
def test_time_out(case: TimeOutCase) -> None:
    before = round_of(case)
    game = Game(
        ruleset=ruleset_of(case.ruleset),
        players=tuple(Player(rack.seat, f"player {rack.seat}") for rack in case.racks),
        phase=Playing(before),
    )
    draft = None if case.draft is None else tuple(map(proposed, case.draft))
    applied = apply(game, TimeOut(draft), DEADLINE_MS + 1)
    assert isinstance(applied, Applied)
    after = melding.round_of(applied.game)
    turns = tuple(event.turn.seat for event in applied.events if isinstance(event, TurnStarted))
    ends = tuple(event.result.end.name for event in applied.events if isinstance(event, RoundEnded))
    drawn = tuple(tile for event in applied.events if isinstance(event, TurnTimedOut) for tile in event.tiles)
    seen = TimeOutExpected(
        tiles_drawn=faces_of(drawn),
        rack=faces_of(after.rack(case.turn_seat).tiles),
        table=as_stated(after.table, case.table),
        pool_left=faces_of(after.pool),
        next_seat=turns[0] if turns else None,
        end=ends[0] if ends else None,
    )
    assert seen == case.expect


def round_of(case: TimeOutCase) -> Round:
    ruleset = ruleset_of(case.ruleset)
    return Round(
        number=1,
        order=turn_order(tuple(rack.seat for rack in case.racks), 1, ruleset.turn_direction),
        table=table_of(case.table, ruleset),
        racks=tuple(Rack(rack.seat, in_order(tiles_of(rack.rack)), rack.has_melded) for rack in case.racks),
        pool=tiles_of(case.pool),
        turn=Turn(case.turn_seat, DEADLINE_MS),
        passed=case.passed_seats,
    )


@each_of("case", SUITE.start_draws, name)
def test_start_draw(case: StartDrawCase) -> None:
    order, draws = draw_for_start(case.seats, tiles_of(case.tiles), ruleset_of(case.ruleset))
    seen = tuple(StartDraw(draw.seat, format_tile(draw.tile)) for draw in draws)
    assert StartDrawExpected(seen, order[0]) == case.expect


@each_of("case", SUITE.creations, name)
def test_create(case: CreateCase) -> None:
    assert creation_problems(case.ruleset) == case.expect


@each_of("case", SUITE.games, name)
def test_game(case: GameCase) -> None:
    seen = play(case.game, *game_options(case.ruleset))
    assert seen_as_stated(case.expect, seen.see) == {"refused": [], **case.expect}


ANSWERS = [(contrast, value) for contrast in SUITE.contrasts for value in contrast.answers]


@each_of("contrast, value", ANSWERS, lambda answer: f"{answer[0].id}={answer[1]}", by=lambda answer: answer[0].option)
def test_contrast(contrast: Contrast, value: str) -> None:
    expected = contrast.answers[value]
    seen = answer(contrast.question, contrast.options(value))
    if isinstance(seen, GameSeen):
        assert isinstance(expected, dict)
        assert seen_as_stated(expected, seen.see) == {"refused": [], **expected}
    else:
        assert seen == expected


def test_the_ids_are_unique() -> None:
    ids = Counter([case.id for case in SUITE.cases] + [contrast.id for contrast in SUITE.contrasts])
    assert [one for one, count in ids.items() if count > 1] == []


def test_cases_and_waiting_ones_cover_every_example() -> None:
    expressed = {case.source_id for case in SUITE.cases if case.source_id}
    waiting = {example.source_id for example in SUITE.waiting}
    assert len(set(SUITE.source_ids)) == len(SUITE.source_ids) == 120
    assert expressed | waiting == set(SUITE.source_ids)
    assert expressed & waiting == set()


def test_every_case_says_what_it_shows() -> None:
    assert [case.id for case in SUITE.cases if not case.note] == []
    assert [contrast.id for contrast in SUITE.contrasts if not contrast.note] == []
    assert [example.source_id for example in SUITE.waiting if not example.note] == []


@each_of("case", [case for case in SUITE.cases if case not in SUITE.creations], name)
def test_the_ruleset_can_be_played(case: Case) -> None:
    presets = {HandCase: "OKEY", DiscardTurnCase: "OKEY_101"}
    chosen = game_options({"preset": presets.get(type(case), "SABRA"), **case.ruleset})
    assert presets_of(chosen[0]).problems_of(*chosen) == ()


@each_of("case", [*SUITE.turns, *SUITE.round_scores, *SUITE.time_outs], name)
def test_the_position_is_possible(case: TurnCase | RoundScoreCase | TimeOutCase) -> None:
    ruleset = ruleset_of(case.ruleset)
    tiles = ruleset.tiles(ruleset.players_max)
    assert Counter(tiles_of(_position(case))) <= Counter(tiles)


def _position(case: TurnCase | RoundScoreCase | TimeOutCase) -> Faces:
    match case:
        case TurnCase():
            return case.rack + case.river + tuple(face for meld in case.table_before for face in meld.tiles)
        case RoundScoreCase():
            return tuple(face for rack in case.racks for face in rack.rack)
        case TimeOutCase():
            on_table = tuple(face for meld in case.table for face in meld.tiles)
            return case.pool + on_table + tuple(face for rack in case.racks for face in rack.rack)


def test_only_what_the_contract_has_no_option_for_waits() -> None:
    assert [(example.source_id, bool(example.feature), example.option) for example in SUITE.waiting] == [
        ("EN-14", True, None)
    ]
