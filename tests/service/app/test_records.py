"""Records over gRPC: games at earlier revisions, export, import and review of games."""

import contextlib
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from functools import partial
from typing import cast

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2

from engine.melding.ruleset import SABRA, MatchEnd
from engine.record import GameRecord, record_of
from engine.record_text import format_record
from engine.room_settings import RacksShown
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import game_pb2, meld_pb2, record_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.app.identity import digest
from service.codec.records import encode_record, record_in_steps
from service.model.change import NO_ETAG, Commit, lineage
from service.model.record import Record, SeatToken
from service.storage.memory import MemoryStore
from service.storage.stored_events import encode_change
from support.grpc_play import Fleet, play_game
from support.harness import (
    HISTORY,
    START_MS,
    Client,
    FakeClock,
    GameAtHand,
    as_tiles,
    error_info,
    memory_store,
    new_id,
    running_server,
    server_settings,
    status_details,
    without_presence,
)
from support.okey_games import random_101_ruleset, random_joker_ruleset, random_ruleset
from support.okey_games import random_changes as discard_changes
from support.random_play import Change, players_of, random_changes, random_room
from support.records import recorded
from support.rooms import Rules, room
from support.soak import few_of
from tools.games import game_rules

pytestmark = pytest.mark.slow

TWO_ROUNDS = room(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2, turn_time_limit_seconds=0)
SEED, OKEY_SEED = 40, 10
"""Random games of people who are present to their ends, which have no rematch."""
DISCARDS = {"Okey": random_ruleset, "101 Okey": random_101_ruleset, "jokers": random_joker_ruleset}
COURSES: dict[str, Callable[[], Iterator[Change]]] = {
    "Sabra": lambda: random_changes(SEED, 3, TWO_ROUNDS),
    **{
        name: partial(discard_changes, OKEY_SEED if name == "Okey" else SEED, choose, racks_shown=RacksShown.AFTER_GAME)
        for name, choose in DISCARDS.items()
    },
}
"""A whole game of each family."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def store() -> MemoryStore:
    return MemoryStore(HISTORY, FakeClock())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(store: MemoryStore) -> AsyncIterator[Client]:
    async with running_server(store, server_settings(sweep_seconds=3600.0)) as (_, client):
        yield client


async def put_history(
    store: MemoryStore, client: Client, ruleset: Rules = TWO_ROUNDS, seed: int = SEED, until: int | None = None
) -> GameAtHand:
    """Stores a random game, or its changes up to one, and returns it."""
    return await put_changes(store, client, list(random_changes(seed, 3, ruleset))[:until])


async def put_changes(store: MemoryStore, client: Client, changes: Sequence[Change]) -> GameAtHand:
    """Stores a game and returns it."""
    game, etag = GameAtHand(client, uuid.uuid4().hex), NO_ETAG
    for number, change in enumerate(changes):
        state = change.applied.game
        game.tokens |= {player.seat: f"{player.seat}" * 43 for player in state.players}
        tokens = tuple(SeatToken(player.seat, digest(game.tokens[player.seat])) for player in state.players)
        data = encode_change(state.revision, START_MS + number * 1000, bytes(16), change.applied.events)
        after = lineage(etag, data)
        record = Record(game.game_id, state, after, tokens, START_MS, START_MS + number * 1000)
        await store.games.commit(Commit(etag, record, data))
        etag = after
    return game


def bad_fields(error: grpc.aio.AioRpcError) -> list[tuple[str, str]]:
    """Returns the fields at fault with their descriptions."""
    bad_request = error_details_pb2.BadRequest()
    assert any(detail.Unpack(bad_request) for detail in status_details(error).details)
    return [(violation.field, violation.description) for violation in bad_request.field_violations]


async def refusal(call: Awaitable[object]) -> tuple[str, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code().name, error_info(refused.value).reason


async def history_unavailable(call: Awaitable[object]) -> str:
    """Returns the message of a call that is refused with HISTORY_UNAVAILABLE."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    assert (refused.value.code().name, error_info(refused.value).reason) == ("OUT_OF_RANGE", "HISTORY_UNAVAILABLE")
    return refused.value.details() or ""


# A game at an earlier revision

TO_READ = "an earlier revision needs all changes up to it; leave revision unset for the game as it is now"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_game_at_a_revision_is_as_its_callers_saw_it_then(store: MemoryStore, client: Client) -> None:
    last = len(list(random_changes(SEED, 3, TWO_ROUNDS)))
    whole = await put_history(store, client)
    for revision in (1, 3, 5, 6, last // 2, last - 1, last):
        then = await put_history(store, client, until=revision)
        for seat in [seat for seat in (0, 1, 2) if seat in then.tokens]:
            request = gs.GetGameRequest(game_id=whole.game_id, revision=revision)
            answer = await client.games.GetGame(request, metadata=whole.as_seat(seat))
            expected = without_presence(await then.see(seat))
            expected.game_id = whole.game_id
            assert without_presence(answer.game) == expected


@pytest.mark.asyncio(loop_scope="module")
async def test_a_game_at_a_revision_has_its_visibility_and_labels_and_no_join_code(client: Client) -> None:
    creating = gs.CreateGameRequest(visibility=game_pb2.VISIBILITY_PUBLIC, labels={"region": "eu"})
    created = (await client.games.CreateGame(creating)).game
    game = GameAtHand(client, created.game_id)
    await game.join("Ada")
    request = gs.GetGameRequest(game_id=created.game_id, revision=created.revision)
    then = (await client.games.GetGame(request, metadata=game.as_seat(1))).game
    assert (then.visibility, dict(then.labels), then.join_code) == (game_pb2.VISIBILITY_PUBLIC, {"region": "eu"}, "")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_revision_that_does_not_exist_yet_is_refused(store: MemoryStore, client: Client) -> None:
    game = await put_history(store, client, until=20)
    for revision in (21, 2**32 - 1):
        request = gs.GetGameRequest(game_id=game.game_id, revision=revision)
        assert await history_unavailable(client.games.GetGame(request)) == (
            f"only the changes 1 to 20 are stored; {TO_READ}"
        )


async def test_a_revision_and_a_record_are_refused_when_the_history_has_lost_its_start() -> None:
    async with running_server(memory_store(FakeClock(), history=3)) as (_, client):
        game = await client.new_game()
        await game.draw()
        request = gs.GetGameRequest(game_id=game.game_id, revision=4)
        assert await history_unavailable(client.games.GetGame(request)) == (
            f"only the changes 3 to 5 are stored; {TO_READ}"
        )
        assert (await client.games.GetGame(gs.GetGameRequest(game_id=game.game_id, revision=5))).game.revision == 5
        as_advised = gs.GetGameRequest(game_id=game.game_id)
        assert (await client.games.GetGame(as_advised)).game.revision == 5
        await client.turns.ResignGame(
            ts.ResignGameRequest(game_id=game.game_id, request_id=new_id()), metadata=game.as_seat(1)
        )
        for call in (
            client.records.ExportGame(rs.ExportGameRequest(game_id=game.game_id)),
            client.records.ReviewGame(rs.ReviewGameRequest(game_id=game.game_id)),
        ):
            assert await history_unavailable(call) == (
                "only the changes 4 to 6 are stored; a record needs all of them, so the game has no record any more"
            )


async def test_a_game_at_a_revision_has_its_visibility_and_labels_and_nothing_of_now() -> None:
    async with running_server(memory_store()) as (_, client):
        request = gs.CreateGameRequest(
            request_id="c" * 22, visibility=game_pb2.VISIBILITY_PUBLIC, labels={"mode": "blitz"}
        )
        created = await client.games.CreateGame(request)
        game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
        await game.join("Ada")
        for revision in (1, 2):
            answer = await client.games.GetGame(
                gs.GetGameRequest(game_id=game.game_id, revision=revision), metadata=game.as_seat(1)
            )
            assert answer.game.revision == revision
            assert answer.game.visibility == game_pb2.VISIBILITY_PUBLIC
            assert dict(answer.game.labels) == {"mode": "blitz"}
            assert not answer.game.join_code
            assert not any(player.HasField("is_connected") for player in answer.game.players)


# Export


@pytest.mark.parametrize("family", COURSES)
@pytest.mark.asyncio(loop_scope="module")
async def test_an_exported_game_is_the_game_in_both_forms(store: MemoryStore, client: Client, family: str) -> None:
    changes = list(COURSES[family]())
    game = await put_changes(store, client, changes)
    expected = record_of(
        (change.applied.game.revision, START_MS + number * 1000, change.applied.events)
        for number, change in enumerate(changes)
    )
    text = await client.records.ExportGame(rs.ExportGameRequest(game_id=game.game_id, form=rs.RECORD_FORM_TEXT))
    assert text.text == format_record(expected)
    message = (await client.records.ExportGame(rs.ExportGameRequest(game_id=game.game_id))).record
    assert [move.revision for move in message.moves] == [move.revision for move in expected.moves]
    for source in (rs.ImportRecordRequest(record=message), rs.ImportRecordRequest(text=text.text)):
        checked = await client.records.ImportRecord(source)
        assert not checked.HasField("fault")
        assert checked.is_complete
        assert checked.moves_played == len(expected.moves)
        assert checked.state == game_pb2.GAME_STATE_FINISHED
        totals = {player.seat: player.total_points for player in (await game.see()).players}
        assert {points.seat: points.points for points in checked.totals} == totals
        if source.HasField("record"):
            assert checked.text == text.text
        else:
            assert checked.record == message


def random_course(seed: int, family: str) -> list[Change]:
    """Returns the changes of a random game of a family."""
    if family in DISCARDS:
        return list(discard_changes(seed, choose=DISCARDS[family]))
    ruleset = random_room(random.Random(seed))
    return list(random_changes(seed, players_of(ruleset, seed), ruleset))


@pytest.mark.parametrize("family", COURSES)
@pytest.mark.parametrize("seed", few_of(range(20), 6))
def test_the_text_and_the_message_of_a_random_game_are_read_as_the_same_record(seed: int, family: str) -> None:
    record = recorded(random_course(seed, family))
    message = encode_record(record)
    data = message.SerializeToString(deterministic=True)
    for request in (rs.ImportRecordRequest(record=message), rs.ImportRecordRequest(text=format_record(record))):
        read = result_of(record_in_steps(request))
        assert read == record
        assert encode_record(read).SerializeToString(deterministic=True) == data


def result_of(steps: Generator[None, None, GameRecord]) -> GameRecord:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("GameRecord", end.value)


@pytest.mark.parametrize("shown", RacksShown)
@pytest.mark.asyncio(loop_scope="module")
async def test_only_games_that_have_ended_and_show_their_racks_are_exported(
    store: MemoryStore, client: Client, shown: RacksShown
) -> None:
    rules = room(TWO_ROUNDS, racks_shown=shown)
    whole, running = await put_history(store, client, rules), await put_history(store, client, rules, until=30)
    request = rs.ExportGameRequest(game_id=running.game_id)
    assert await refusal(client.records.ExportGame(request)) == ("FAILED_PRECONDITION", "GAME_NOT_OVER")
    review = rs.ReviewGameRequest(game_id=running.game_id)
    assert await refusal(client.records.ReviewGame(review)) == ("FAILED_PRECONDITION", "GAME_NOT_OVER")
    if shown is RacksShown.HIDDEN:
        request = rs.ExportGameRequest(game_id=whole.game_id)
        assert await refusal(client.records.ExportGame(request)) == ("FAILED_PRECONDITION", "RECORD_HIDDEN")
        review = rs.ReviewGameRequest(game_id=whole.game_id)
        assert await refusal(client.records.ReviewGame(review)) == ("FAILED_PRECONDITION", "RECORD_HIDDEN")
    else:
        for seat in (0, 1):
            request = rs.ExportGameRequest(game_id=whole.game_id)
            assert (await client.records.ExportGame(request, metadata=whole.as_seat(seat))).record.moves


@pytest.mark.parametrize("shown", RacksShown)
@pytest.mark.asyncio(loop_scope="module")
async def test_racks_are_seen_when_the_option_says(store: MemoryStore, client: Client, shown: RacksShown) -> None:
    rules = room(TWO_ROUNDS, racks_shown=shown)
    changes = list(random_changes(SEED, 3, rules))
    over = next(i for i, change in enumerate(changes, 1) if len(change.applied.game.results) == 1)
    between, whole = await put_history(store, client, rules, until=over), await put_history(store, client, rules)
    for game, is_over in ((between, False), (whole, True)):
        seen = await game.see()
        is_shown = shown is RacksShown.AFTER_ROUND or (is_over and shown is RacksShown.AFTER_GAME)
        assert {bool(seat.rack) == bool(seat.tile_count and is_shown) for r in seen.rounds for seat in r.seats} == {
            True
        }
        results = changes[len(changes) - 1 if is_over else over - 1].applied.game.results
        if is_shown:
            racks = [{rack.seat: as_tiles(rack.tiles) for rack in result.racks} for result in results]
            assert [{seat.seat: list(seat.rack) for seat in r.seats} for r in seen.rounds] == racks
            assert [list(r.pool) for r in seen.rounds] == [as_tiles(result.pool) for result in results]
        else:
            assert not any(r.pool for r in seen.rounds)


async def abort(client: Client, game: GameAtHand) -> game_pb2.Game:
    request = gs.AbortGameRequest(game_id=game.game_id, request_id=new_id())
    return (await client.games.AbortGame(request, metadata=game.as_seat(1))).game


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("player", "field"),
    [
        (record_pb2.RecordedPlayer(seat=1, name="Ada", bot_level=99), "bot_level"),  # type: ignore[arg-type] # no level
        (
            record_pb2.RecordedPlayer(seat=1, name="Ada", bot_level=game_pb2.BOT_LEVEL_EASY, is_program=True),
            "is_program",
        ),
    ],
)
async def test_a_recorded_player_is_a_person_a_bot_or_a_program(
    client: Client, player: record_pb2.RecordedPlayer, field: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await client.records.ImportRecord(rs.ImportRecordRequest(record=record_pb2.GameRecord(players=[player])))
    assert [name for name, _ in bad_fields(error.value)] == [f"record.players[0].{field}"]


async def test_a_game_that_is_aborted_before_its_deal_has_no_record() -> None:
    async with running_server(memory_store()) as (_, client):
        game = await client.new_game(start=False)
        assert (await abort(client, game)).state == game_pb2.GAME_STATE_ABORTED
        for call in (
            client.records.ExportGame(rs.ExportGameRequest(game_id=game.game_id), metadata=game.as_seat(1)),
            client.records.ReviewGame(rs.ReviewGameRequest(game_id=game.game_id), metadata=game.as_seat(1)),
        ):
            assert await refusal(call) == ("FAILED_PRECONDITION", "GAME_NOT_OVER")


async def test_an_aborted_round_has_a_record_of_what_was_played() -> None:
    async with running_server(memory_store()) as (_, client):
        game = await client.new_game()
        running = rs.ExportGameRequest(game_id=game.game_id)
        assert await refusal(client.records.ExportGame(running)) == ("FAILED_PRECONDITION", "GAME_NOT_OVER")
        await game.draw()
        await abort(client, game)
        exported = await client.records.ExportGame(running)
        kinds = [move.kind for move in exported.record.moves]
        assert kinds.count(record_pb2.MOVE_KIND_DRAW) == 1
        checked = await client.records.ImportRecord(rs.ImportRecordRequest(record=exported.record))
        assert not checked.HasField("fault")
        assert checked.state == game_pb2.GAME_STATE_ABORTED


async def test_games_played_by_calls_and_bots_are_exported_and_reviewed() -> None:
    async with running_server(memory_store()) as (_, client):
        rng = random.Random(5)
        game = await client.new_game(players=2)
        await play_game(Fleet([client], rng), game, rng)
        exported = await client.records.ExportGame(rs.ExportGameRequest(game_id=game.game_id))
        checked = await client.records.ImportRecord(rs.ImportRecordRequest(record=exported.record))
        assert checked.is_complete
        assert not checked.HasField("fault")


# Import


async def exported(store: MemoryStore, client: Client) -> record_pb2.GameRecord:
    game = await put_history(store, client)
    return (await client.records.ExportGame(rs.ExportGameRequest(game_id=game.game_id))).record


@pytest.mark.asyncio(loop_scope="module")
async def test_a_record_that_breaks_a_rule_names_move_revision_and_round(store: MemoryStore, client: Client) -> None:
    record = await exported(store, client)
    second = [i for i, move in enumerate(record.moves) if move.kind == record_pb2.MOVE_KIND_DEAL][1]
    place = next(i for i, m in enumerate(record.moves) if m.kind == record_pb2.MOVE_KIND_PLAY and i > second)
    move = record.moves[place]
    del move.table.melds[0].tiles[0]
    checked = await client.records.ImportRecord(rs.ImportRecordRequest(record=record))
    assert (checked.fault.move_index, checked.fault.revision, checked.fault.round) == (place, move.revision, 2)
    assert checked.fault.violations
    assert checked.fault.text
    assert checked.moves_played == place
    assert checked.is_complete
    review = rs.ReviewGameRequest(record=record)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.records.ReviewGame(review)
    assert error_info(refused.value).reason == "RECORD_INVALID"
    assert [field for field, _ in bad_fields(refused.value)] == [f"record.moves[{place}]"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_record_with_other_scores_is_refused_without_a_move(store: MemoryStore, client: Client) -> None:
    record = await exported(store, client)
    record.rounds[0].points[0].points += 1
    checked = await client.records.ImportRecord(rs.ImportRecordRequest(record=record))
    assert checked.HasField("fault")
    assert not checked.fault.HasField("move_index")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_text_that_is_no_record_names_line_and_column(client: Client) -> None:
    text = "rummikub-record 1\npreset SABRA\ncreated 1.000\nplayer 1 person Ada\n2 1.000 1 play [R3 X4]\n"
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.records.ImportRecord(rs.ImportRecordRequest(text=text))
    assert error_info(refused.value).reason == "RECORD_INVALID"
    [(field, description)] = bad_fields(refused.value)
    assert field == "text"
    assert description.startswith("line 5, column 20: 'X4' is not a tile")


@pytest.mark.asyncio(loop_scope="module")
async def test_no_mutilated_record_is_an_internal_error(store: MemoryStore, client: Client) -> None:
    record = await exported(store, client)
    text = (await client.records.ImportRecord(rs.ImportRecordRequest(record=record))).text
    data, rng, answers = record.SerializeToString(), random.Random(1), set()
    for number in range(20):
        source = text.encode() if number % 2 else data
        place, end = sorted((rng.randrange(len(source)), rng.randrange(len(source))))
        changed = rng.choice(
            [
                source[:place] + bytes([rng.randrange(256)]) + source[place + 1 :],
                source[:place],
                source[:place] + source[end:],
            ]
        )
        request = (
            {"text": changed.decode(errors="ignore")} if number % 2 else {"record": without_unreadable_end(changed)}
        )
        for call in (
            client.records.ImportRecord(rs.ImportRecordRequest(**request)),
            client.records.ReviewGame(rs.ReviewGameRequest(**request, time_limit=Duration(nanos=50_000_000))),
        ):
            answers.add(await answer_of(call))
    assert answers <= {
        "fault",
        "legal",
        "FIELD_INVALID",
        "RECORD_INVALID",
        "MALFORMED_MELD",
        "OPTION_UNKNOWN",
        "TILE_UNKNOWN",
    }
    assert {"fault", "RECORD_INVALID"} <= answers


def without_unreadable_end(data: bytes) -> record_pb2.GameRecord:
    """Returns the longest beginning of some bytes that is a message."""
    for end in range(len(data), 0, -1):
        with contextlib.suppress(DecodeError):
            return record_pb2.GameRecord.FromString(data[:end])
    return record_pb2.GameRecord()


async def answer_of(call: Awaitable[rs.ImportRecordResponse] | Awaitable[rs.ReviewGameResponse]) -> str:
    """Returns the reason of a refusal, "fault" or "legal"."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return str(error_info(error).reason)
    return "fault" if isinstance(answer, rs.ImportRecordResponse) and answer.HasField("fault") else "legal"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_place_on_the_river_beyond_the_limit_is_refused_by_its_field(
    store: MemoryStore, client: Client
) -> None:
    far, river = 2**31, game_rules(turn_draw=ruleset_pb2.TURN_DRAW_TWO_RIVER)
    game = await put_history(store, client, until=30)
    record = await exported(store, client)
    record.moves[3].river_index = far
    turn = ts.PlayTurnRequest(
        game_id=game.game_id, etag=(await game.see()).etag, request_id=new_id(), play=ts.PlayTiles(river_index=far)
    )
    judged = vs.ValidateTurnRequest(ruleset=river.melding, river=as_tiles([1, 2]), river_index=far, has_melded=True)
    for call, field in (
        (client.records.ImportRecord(rs.ImportRecordRequest(record=record)), "record.moves[3].river_index"),
        (client.validation.ValidateTurn(judged), "river_index"),
        (client.turns.PlayTurn(turn, metadata=game.as_seat(1)), "play.river_index"),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call
        assert bad_fields(refused.value) == [(field, "expected at most 999")]


# Review


@pytest.mark.asyncio(loop_scope="module")
async def test_a_review_compares_every_move_with_the_best_turn(store: MemoryStore, client: Client) -> None:
    game = await put_history(store, client)
    minute = Duration(seconds=60)  # a busy machine needs more than the default
    review = await client.records.ReviewGame(rs.ReviewGameRequest(game_id=game.game_id, time_limit=minute))
    record = await exported(store, client)
    assert review.is_complete
    reviewed = {
        record_pb2.MOVE_KIND_PLAY,
        record_pb2.MOVE_KIND_DRAW,
        record_pb2.MOVE_KIND_PASS_TURN,
        record_pb2.MOVE_KIND_TIME_OUT,
        record_pb2.MOVE_KIND_PENALTY,
    }
    assert [one.revision for one in review.moves] == [move.revision for move in record.moves if move.kind in reviewed]
    for one in review.moves:
        assert record.moves[one.move_index].revision == one.revision
        is_play = one.kind == record_pb2.MOVE_KIND_PLAY
        assert (one.played > 0) == is_play
        if one.best.is_best:
            assert one.missed == len(one.best.tiles_played) - one.played
        if is_play:
            assert one.best.play_exists == an.EXISTENCE_YES
    assert {seat.seat: seat.missed for seat in review.seats} == {
        seat: sum(one.missed for one in review.moves if one.seat == seat) for seat in (1, 2, 3)
    }
    for seat_review in review.seats:
        own = {one.move_index: one for one in review.moves if one.seat == seat_review.seat}
        ranked = sorted(own.values(), key=lambda one: (one.missed > 0 and one.best.goes_out, one.missed), reverse=True)
        costliest = [(one.move_index, one.missed) for one in seat_review.costliest_turns]
        assert costliest == [(one.move_index, one.missed) for one in ranked[:3] if one.missed]
        assert all(own[one.move_index].best.steps and one.advice.text for one in seat_review.costliest_turns)
    again = await client.records.ReviewGame(
        rs.ReviewGameRequest(record=record, objective=an.OBJECTIVE_HIGHEST_VALUE, time_limit=minute)
    )
    assert [one.revision for one in again.moves] == [one.revision for one in review.moves]


# Turns and positions


@pytest.mark.asyncio(loop_scope="module")
async def test_a_turn_is_explained_by_steps(client: Client) -> None:
    before = [meld_pb2.Meld(tiles=as_tiles([3, 4, 5, 6]))]
    after = [meld_pb2.Meld(tiles=as_tiles([3, 4, 5])), meld_pb2.Meld(tiles=as_tiles([6, 19, 32]))]
    request = an.ExplainTurnRequest(table_before=meld_pb2.Table(melds=before), table_after=meld_pb2.Table(melds=after))
    explained = await client.analysis.ExplainTurn(request)
    assert list(explained.tiles_played) == [19, 32]
    assert {step.kind for step in explained.steps} >= {an.STEP_KIND_TAKE}
    assert all(step.text for step in explained.steps)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_turn_that_loses_a_tile_is_not_explained(client: Client) -> None:
    before = [meld_pb2.Meld(tiles=as_tiles([3, 4, 5, 6]))]
    after = [meld_pb2.Meld(tiles=as_tiles([3, 4, 5]))]
    request = an.ExplainTurnRequest(table_before=meld_pb2.Table(melds=before), table_after=meld_pb2.Table(melds=after))
    assert await refusal(client.analysis.ExplainTurn(request)) == ("INVALID_ARGUMENT", "POSITION_IMPOSSIBLE")


@pytest.mark.parametrize(
    "text",
    [
        "[R3 R4 R5] | group[R8 J=B8 K8] + *{R2 R9}",
        ". + {}",
        "[R3 R4 R5] / 1*{R2 B5} 2{K1 J} / {R7 O8} / 1",
        ". / 1{} 9*{P13} / {} / 9",
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_position_is_parsed_and_formatted_again(client: Client, text: str) -> None:
    parsed = await client.records.ParsePosition(rs.ParsePositionRequest(text=text))
    request = rs.FormatPositionRequest(position=parsed.position, racks=parsed.racks, pool=parsed.pool)
    if parsed.HasField("turn_seat"):
        request.turn_seat = parsed.turn_seat
    assert (await client.records.FormatPosition(request)).text == text


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("[R3 R4 X5] + {R2}", 8),
        ("[R3 R4 R5] + {R2 Q}", 18),
        ("[R3 R4 R5] + R2", 14),
        ("[R3 R4 R5]", 10),
        ("[R3 X5] + {Q}", 5),
        ("[R3 R4 R5] / 1{X} / {Y} / 0", 16),
        (". / 1{R1} 2{R2} 1{R3} / {} / 1", 17),
        (". / 1{R1} / {} / 2", 18),
        ("", 1),
        ("[R3] " * 4_000, 16_385),
        (". / 1{R1} x / {} / 1", 11),
        (". / 1{R1} / {Z} / 1", 14),
        (". / 1{R1} / {} / 0", 18),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_an_error_in_a_position_names_the_column(client: Client, text: str, column: int) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.records.ParsePosition(rs.ParsePositionRequest(text=text))
    [(field, description)] = bad_fields(refused.value)
    assert field == "text"
    assert description.startswith(f"column {column}: ")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_position_is_parsed_as_people_type_it_and_formatted_as_ever(client: Client) -> None:
    typed = "RUN[J* 10b 11b] | Group [7r, 7B, k7a] / 1*{2r b5} / . / 1"
    parsed = await client.records.ParsePosition(rs.ParsePositionRequest(text=typed))
    request = rs.FormatPositionRequest(position=parsed.position, racks=parsed.racks, turn_seat=1)
    written = "[J B10 B11] | [R7 B7 K7] / 1*{R2 B5} / {} / 1"
    assert (await client.records.FormatPosition(request)).text == written


@pytest.mark.asyncio(loop_scope="module")
async def test_a_position_with_two_racks_of_a_seat_is_not_formatted(client: Client) -> None:
    racks = [rs.PositionRack(seat=1), rs.PositionRack(seat=1)]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.records.FormatPosition(rs.FormatPositionRequest(position=an.Position(), racks=racks, turn_seat=1))
    assert bad_fields(refused.value) == [("racks[1].seat", "expected one rack of each seat")]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_position_can_have_the_names_of_cards(client: Client) -> None:
    parsed = await client.records.ParsePosition(rs.ParsePositionRequest(text="[7H 8H *] + {AS}", cards=True))
    assert list(parsed.position.table.melds[0].tiles) == [7, 8, 53]
    request = rs.FormatPositionRequest(position=parsed.position, cards=True)
    assert (await client.records.FormatPosition(request)).text == "[7H 8H *] + {AS}"
