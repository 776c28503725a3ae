"""The service answers every conformance case and contrast as stated: over ValidationService, and in running games."""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Iterable
from dataclasses import replace

import grpc
import grpc.aio
import pytest
import pytest_asyncio

from conformance.grpc_answers import (
    FACE_OF,
    FixedChance,
    GameSeen,
    Service,
    answer,
    bad_request,
    creation_problems,
    discard_turn_request,
    end_of,
    faces_of,
    hand_request,
    opening_text,
    option_by_option,
    placement_request,
    play,
    put,
    reason_name,
    turn_request,
)
from engine.melding.deal import turn_order
from engine.melding.round import Drawn, Open
from engine.melding.round import MeldingRound as Round
from engine.notation import parse_tile
from engine.seats import Rack, Turn
from engine.tiles import in_order, tile_set, without
from rummikub.v1 import discard_pb2, game_pb2, meld_pb2, violation_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.codec import validation as validation_codec
from service.codec.validation import BATCH_MAX
from service.composition import build_server
from support.cases import each_of
from support.conformance_cases import (
    Breach,
    Case,
    Contrast,
    CreateCase,
    Creation,
    DiscardTurnCase,
    DiscardTurnExpected,
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
    agree,
    load,
    seen_as_stated,
)
from support.conformance_messages import KINDS, melding_rules_of, ruleset_of, table_of, tiles_of
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    error_info,
    memory_store,
    refusal_detail,
    server_settings,
)

pytestmark = pytest.mark.slow

SUITE = load()
TURN_MS = 1_000
FOREVER_SECONDS = 3600.0
KIND_TEXTS = {kind: text for text, kind in KINDS.items()}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service() -> AsyncIterator[Service]:
    clock, chance = FakeClock(), FixedChance()
    store = memory_store(clock)
    server = build_server(server_settings(sweep_seconds=FOREVER_SECONDS, games_per_minute=0), store, chance=chance)
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield Service(Client(channel), store, clock, chance)
    await server.stop()


def name(case: Case) -> str:
    return case.id


def melds_of(table: Iterable[meld_pb2.Meld], stated: Iterable[MeldText]) -> tuple[MeldText, ...]:
    """Returns a table as the case writes it, with kinds only where the case states them."""
    return tuple(
        MeldText(faces_of(meld.tiles), KIND_TEXTS[meld.kind] if text.kind else None)
        for meld, text in zip(table, stated, strict=True)
    )


def breach(violation: violation_pb2.Violation) -> Breach:
    return Breach(
        reason_name(violation.reason),
        violation.subject,
        faces_of(violation.tiles),
        {key: int(value) for key, value in violation.metadata.items()},
        faces_of(violation.suggested_order),
    )


# ValidationService


@each_of("case", SUITE.melds, name)
@pytest.mark.asyncio(loop_scope="module")
async def test_meld(case: MeldCase, service: Service) -> None:
    request = vs.ValidateMeldsRequest(ruleset=ruleset_of(case.ruleset), melds=table_of([case.meld]))
    [reading] = (await service.client.validation.ValidateMelds(request)).melds
    assert faces_of(reading.tiles) == case.meld.tiles
    expected, seen = agree(case.expect.violations, tuple(map(breach, reading.violations)))
    assert seen == expected
    covers = {"J": 1, "D": 2, "C": 1}
    places = tuple(place for place, face in enumerate(case.meld.tiles) for _ in range(covers.get(face, 0)))
    assert tuple(joker.index for joker in reading.jokers) == (() if seen else places)
    faces = tuple(faces_of(joker.faces) for joker in reading.jokers)
    kind, points = KIND_TEXTS[reading.kind], reading.points
    assert MeldReadingExpected(case.expect.violations, kind, points, faces) == case.expect


@each_of("case", SUITE.turns, name)
@pytest.mark.asyncio(loop_scope="module")
async def test_turn(case: TurnCase, service: Service) -> None:
    judged = await service.client.validation.ValidateTurn(turn_request(case, case.ruleset))
    expected, seen = agree(case.expect.violations, tuple(map(breach, judged.violations)))
    assert seen == expected
    if not seen:
        played, left = faces_of(judged.tiles_played), faces_of(judged.rack_left)
        assert TurnExpected((), played, judged.points, left, judged.goes_out) == case.expect
    else:
        assert not judged.goes_out


@each_of("case", SUITE.placements, name)
@pytest.mark.asyncio(loop_scope="module")
async def test_placement(case: PlacementCase, service: Service) -> None:
    judged = await service.client.validation.ValidatePlacement(placement_request(case, case.ruleset))
    expected, seen = agree(case.expect.violations, tuple(map(breach, judged.violations)))
    assert seen == expected
    if seen:
        assert not judged.goes_out
        assert not judged.HasField("table")
    else:
        played, left = faces_of(judged.tiles_played), faces_of(judged.rack_left)
        assert TurnExpected((), played, judged.points, left, judged.goes_out) == case.expect
        assert {(FACE_OF[one.tile], one.x, one.y) for one in judged.table.placements} == {*case.table_after.placements}


@each_of("case", SUITE.hands, name)
@pytest.mark.asyncio(loop_scope="module")
async def test_hand(case: HandCase, service: Service) -> None:
    asking = service.client.validation.ValidateHand(hand_request(case, case.ruleset))
    if case.expect.malformed:
        assert await malformed(asking) == case.expect.malformed
        return
    judged = await asking
    expected, seen = agree(case.expect.violations, tuple(map(breach, judged.violations)))
    assert seen == expected
    told = HandExpected(
        violations=case.expect.violations,
        is_pairs=judged.is_pairs,
        cost=judged.cost,
        missing=judged.missing,
        discard=FACE_OF[judged.discard] if judged.discard else None,
        hand_name=judged.hand_name,
    )
    assert told == case.expect
    laid = [face for part in judged.hand for face in faces_of(part.tiles)]
    discarded = [case.expect.discard] if case.expect.discard else []
    assert sorted([*laid, *discarded]) == sorted(case.tiles) if not seen else not laid


@each_of("case", SUITE.discard_turns, name)
@pytest.mark.asyncio(loop_scope="module")
async def test_discard_turn(case: DiscardTurnCase, service: Service) -> None:
    asking = service.client.validation.ValidateDiscardTurn(discard_turn_request(case, case.ruleset))
    if case.expect.malformed:
        assert await malformed(asking) == case.expect.malformed
        return
    judged = await asking
    expected, seen = agree(case.expect.violations, tuple(map(breach, judged.violations)))
    assert seen == expected
    cause = discard_pb2.PenaltyCause.Name(judged.penalty).removeprefix("PENALTY_CAUSE_")
    told = DiscardTurnExpected(
        violations=case.expect.violations,
        tiles_laid=faces_of(judged.tiles_laid),
        okeys=judged.okeys,
        opening=opening_text(judged.opening) if judged.HasField("opening") else None,
        rack_left=faces_of(judged.rack_left),
        penalty=cause if judged.penalty else None,
        is_finish=judged.is_finish,
    )
    assert told == case.expect


async def malformed(asking: Awaitable[object]) -> str:
    """Returns the reason and the field for which a request is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await asking
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    [fault] = bad_request(refusal.value).field_violations
    return f"{fault.reason} {fault.field}"


@pytest.mark.asyncio(loop_scope="module")
async def test_all_turns_in_a_batch_and_in_a_stream_are_judged_as_one_by_one(service: Service) -> None:
    validation = service.client.validation
    turns = [turn_request(case, case.ruleset) for case in SUITE.turns]
    alone = [await validation.ValidateTurn(turn) for turn in turns]
    judged: list[vs.ValidateTurnResponse] = []
    for first in range(0, len(turns), BATCH_MAX):
        batch = vs.BatchValidateTurnsRequest(turns=turns[first : first + BATCH_MAX])
        judged += (await validation.BatchValidateTurns(batch)).turns
    assert judged == alone
    requests = [vs.StreamValidateTurnsRequest(turn=turn, correlation_id=str(n)) for n, turn in enumerate(turns)]
    answers = [answer async for answer in validation.StreamValidateTurns(iter(requests))]
    assert [answer.turn for answer in answers] == alone
    assert [answer.correlation_id for answer in answers] == [request.correlation_id for request in requests]


@each_of("case", SUITE.round_scores, name)
@pytest.mark.asyncio(loop_scope="module")
async def test_round_score(case: RoundScoreCase, service: Service) -> None:
    racks = [vs.RackToScore(seat=rack.seat, rack=tiles_of(rack.rack)) for rack in case.racks]
    request = vs.ScoreRoundRequest(ruleset=ruleset_of(case.ruleset), racks=racks)
    scored = await service.client.validation.ScoreRound(request)
    seats = tuple(SeatScore(seat.seat, seat.rack_value, seat.tile_count, seat.points) for seat in scored.seats)
    assert RoundScoreExpected(end_of(scored.round_end), tuple(scored.winner_seats), seats) == case.expect


# Running games


async def before_turn(service: Service, case: TurnCase) -> GameAtHand:
    """Returns a running game in which seat 1 can take the turn of a case; seat 2 and the pool hold the other tiles."""
    play = validation_codec.play(turn_request(case, case.ruleset), melding_rules_of(case.ruleset))
    on_table = [tile for meld in play.table_before for tile in meld.tiles]
    rules = play.ruleset
    tiles = tile_set(rules.geometry_colors, rules.geometry_copies, rules.geometry_jokers)
    rest = without(tiles, [*play.rack, *on_table, *play.river])
    racks = (Rack(1, play.rack, play.has_melded), Rack(2, rest[:14], has_melded=True))
    round_ = Round(1, (1, 2), play.table_before, racks, rest[14:], Turn(1, None), river=play.river)
    step = Open() if play.drawn is None else Drawn(play.drawn)
    return await put(service, case.ruleset, replace(round_, step=step))


def play_tiles(case: TurnCase) -> ts.PlayTiles:
    return ts.PlayTiles(
        table=meld_pb2.Table(melds=table_of(case.table_after)),
        river_index=case.river_index,
        calls_rummikub=case.calls_rummikub,
    )


@each_of("case", [case for case in SUITE.turns if not case.expect.violations], name)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_legal_turn_in_a_game(case: TurnCase, service: Service) -> None:
    game = await before_turn(service, case)
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag, play=play_tiles(case))
    answer = await service.client.turns.PlayTurn(request, metadata=game.as_seat(1))
    goes_out = [(end_of(r.round_end), list(r.winner_seats)) for r in answer.game.rounds] == [("WENT_OUT", [1])]
    played, left = faces_of(answer.tiles_played), faces_of(answer.game.rack)
    assert TurnExpected((), played, answer.points, left, goes_out) == case.expect
    assert melds_of(answer.game.table.melds, case.table_after) == case.table_after
    assert answer.game.players[0].has_melded
    assert answer.game.turn.seat == (0 if goes_out else 2)


@each_of("case", [case for case in SUITE.turns if case.expect.violations], name)
@pytest.mark.asyncio(loop_scope="module")
async def test_an_illegal_turn_in_a_game(case: TurnCase, service: Service) -> None:
    game = await before_turn(service, case)
    seen = await game.see(1)
    judged = await service.client.validation.ValidateTurn(turn_request(case, case.ruleset))
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag, play=play_tiles(case))
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await service.client.turns.PlayTurn(request, metadata=game.as_seat(1))
    assert refusal.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    refused = refusal_detail(refusal.value)
    breaches = [breach(violation) for violation in judged.violations]
    subjects = [(one.subject or "").replace("table_after", "play.table") for one in breaches]
    assert [one.subject for one in refused.violations] == subjects
    facts = {key: str(value) for key, value in (breaches[0].metadata or {}).items()}
    assert dict(error_info(refusal.value).metadata) == facts | {"violations": str(len(breaches))}
    told = [
        replace(breach(one), subject=one.subject.replace("play.table", "table_after")) for one in refused.violations
    ]
    assert told == breaches
    now = await game.see(1)
    now.server_time.CopyFrom(seen.server_time)
    assert now == seen


@each_of("case", SUITE.time_outs, name)
@pytest.mark.asyncio(loop_scope="module")
async def test_time_out(case: TimeOutCase, service: Service) -> None:
    rules = melding_rules_of(case.ruleset)
    table = validation_codec.play(
        vs.ValidateTurnRequest(table_before=meld_pb2.Table(melds=table_of(case.table)), has_melded=True), rules
    ).table_before
    racks = tuple(Rack(rack.seat, in_order(map(parse_tile, rack.rack)), rack.has_melded) for rack in case.racks)
    pool = tuple(map(parse_tile, case.pool))
    turn = Turn(case.turn_seat, service.clock() + TURN_MS)
    order = turn_order(tuple(rack.seat for rack in racks), 1, rules.turn_direction)
    game = await put(service, case.ruleset, Round(1, order, table, racks, pool, turn, case.passed_seats))
    if case.draft is not None:
        draft = game_pb2.Draft(table=meld_pb2.Table(melds=table_of(case.draft)))
        save = ts.SaveDraftRequest(game_id=game.game_id, etag=game.etag, draft=draft)
        await service.client.turns.SaveDraft(save, metadata=game.as_seat(case.turn_seat))
    service.clock.advance(TURN_MS / 1000 + 0.001)
    late = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag, play=ts.PlayTiles())
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await service.client.turns.PlayTurn(late, metadata=game.as_seat(case.turn_seat))
    assert error_info(refusal.value).reason == "TURN_TIMED_OUT"
    after = await game.see(case.turn_seat)
    assert after.revision == 2
    request = gs.ListChangesRequest(game_id=game.game_id)
    history = await service.client.games.ListChanges(request, metadata=game.as_seat(case.turn_seat))
    [timed_out] = [event.turn_timed_out for event in history.changes[-1].events if event.HasField("turn_timed_out")]
    assert timed_out.seat == case.turn_seat
    seen = TimeOutExpected(
        tiles_drawn=faces_of(timed_out.tiles),
        rack=faces_of(after.rack),
        table=melds_of(after.table.melds, case.table),
        pool_left=case.pool[-after.pool_count :] if after.pool_count else (),
        next_seat=after.turn.seat or None,
        end=end_of(after.rounds[0].round_end) if after.rounds else None,
    )
    assert seen == case.expect


@each_of("case", SUITE.start_draws, name)
@pytest.mark.asyncio(loop_scope="module")
async def test_start_draw(case: StartDrawCase, service: Service) -> None:
    game = await service.client.new_game(players=max(case.seats), start=False)
    for seat in set(range(1, max(case.seats))) - set(case.seats):
        await service.client.games.LeaveGame(gs.LeaveGameRequest(game_id=game.game_id), metadata=game.as_seat(seat))
    service.chance.coming = deque([case.tiles])
    start = gs.StartGameRequest(game_id=game.game_id)
    started = (await service.client.games.StartGame(start, metadata=game.as_seat(case.seats[0]))).game
    history = await service.client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id))
    [dealt] = [event.round_started for event in history.changes[-1].events if event.HasField("round_started")]
    draws = tuple(StartDraw(draw.seat, FACE_OF[draw.tile]) for draw in dealt.draws)
    assert StartDrawExpected(draws, dealt.starter_seat) == case.expect
    assert started.turn.seat == case.expect.starter_seat


@each_of("case", SUITE.creations, name)
@pytest.mark.asyncio(loop_scope="module")
async def test_create(case: CreateCase, service: Service) -> None:
    assert await creation_problems(service, case.ruleset) == option_by_option(case.expect)


@each_of("case", SUITE.games, name)
@pytest.mark.asyncio(loop_scope="module")
async def test_game(case: GameCase, service: Service) -> None:
    seen = await play(service, case.game, case.ruleset)
    assert seen_as_stated(case.expect, seen.see) == {"refused": [], **case.expect}


# Contrasts

ANSWERS = [(contrast, value) for contrast in SUITE.contrasts for value in contrast.answers]


@each_of("contrast, value", ANSWERS, lambda answer: f"{answer[0].id}={answer[1]}", by=lambda answer: answer[0].option)
@pytest.mark.asyncio(loop_scope="module")
async def test_contrast(contrast: Contrast, value: str, service: Service) -> None:
    expected = contrast.answers[value]
    seen = await answer(service, contrast.question, contrast.options(value))
    if isinstance(seen, GameSeen):
        assert isinstance(expected, dict)
        assert seen_as_stated(expected, seen.see) == {"refused": [], **expected}
    elif isinstance(contrast.question, Creation):
        assert isinstance(expected, tuple)
        assert seen == option_by_option(expected)
    else:
        assert seen == expected


def test_every_kind_of_case_is_asked() -> None:
    played = (SUITE.time_outs, SUITE.start_draws, SUITE.games)
    judged = (SUITE.melds, SUITE.turns, SUITE.placements, SUITE.hands, SUITE.discard_turns)
    asked = (*judged, SUITE.round_scores, SUITE.creations, *played)
    assert sum(map(len, asked)) == len(SUITE.cases)
    assert all(asked)
