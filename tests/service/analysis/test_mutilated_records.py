"""Mutilated records: each is read and played, or refused by name, whatever is wrong with it."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice

import pytest
from google.protobuf.message import DecodeError

from engine.effort import Budget
from engine.melding.ruleset import SABRA, MatchEnd, Preset, TurnDraw, TurnInvalidSubmission, TurnTimeoutDirty
from engine.record import record_of
from engine.record_text import format_record
from rummikub.v1 import record_pb2, tile_pb2
from rummikub.v1 import record_service_pb2 as rs
from service.analysis.records import CheckedRecord, RecordQuery
from service.codec.records import encode_record, record_in_steps
from service.codec.reviews import encode_checked
from service.errors import InvalidRequest
from service.runtime.slow_calls import completed
from support.random_play import players_of, random_changes
from support.rooms import Rules, room, room_of

pytestmark = pytest.mark.slow

RULESETS: dict[str, Rules] = {
    "River and claims": replace(
        SABRA,
        turn_draw=TurnDraw.TWO_RIVER,
        turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM,
    ),
    "absences": room(
        SABRA,
        absent_after_timeouts=1,
        turn_timeout_dirty=TurnTimeoutDirty.COMMIT_IF_VALID_ELSE_REVERT,
        match_end=MatchEnd.FIXED_ROUNDS,
        match_rounds=2,
    ),
    "declared jokers": room_of(Preset.MSO_2019),
    "penalties": replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE),
}
NUMBERS = (0, 1, 2, 3, 7, 14, 53, 255, 999, 1000, 2**31, 2**32 - 1)
TIMES = (-1, 1, 61, 10**6, 10**9, 10**11)


@cache
def played(name: str, seed: int) -> bytes:
    """Returns the encoded record of a random game."""
    ruleset = RULESETS[name]
    changes = random_changes(seed, players_of(ruleset, seed), ruleset)
    record = record_of((change.applied.game.revision, change.now_ms, change.applied.events) for change in changes)
    return encode_record(record).SerializeToString()


def message_of(name: str, seed: int) -> record_pb2.GameRecord:
    return record_pb2.GameRecord.FromString(played(name, seed))


@cache
def text_of(name: str, seed: int) -> str:
    source = rs.ImportRecordRequest(record=message_of(name, seed))
    return format_record(completed(record_in_steps(source)))


def checked(request: rs.ImportRecordRequest) -> CheckedRecord | None:
    """Returns what became of a record; None if it is refused by a field."""
    try:
        record = completed(record_in_steps(request))
    except InvalidRequest:
        return None
    query = RecordQuery(record, is_review=True, is_text=request.HasField("record"))
    found = query.answer(Budget(nodes=100))
    assert encode_checked(record, found).SerializeToString()
    return found


# Mutilations


def mutilate(record: record_pb2.GameRecord, rng: random.Random) -> None:
    """Makes one fault in a move, in the order of moves, or in the players."""
    place = rng.randrange(len(record.moves))
    match rng.randrange(13):
        case 0:
            del record.moves[place]
        case 1:
            record.moves.insert(rng.randrange(len(record.moves)), record.moves[place])
        case 2:
            record.moves[place].CopyFrom(rng.choice(record.moves))
        case 3:
            del record.players[:1]
        case 4 | 5:
            mutilate_table(record.moves[place], rng)
        case 6:
            mutilate_deal(record.moves[place].deal, rng)
        case _:
            mutilate_move(record.moves[place], rng)


def mutilate_move(move: record_pb2.RecordedMove, rng: random.Random) -> None:
    match rng.randrange(7):
        case 0:
            move.kind = rng.choice(record_pb2.MoveKind.values())
        case 1:
            move.seat = rng.choice(NUMBERS)
        case 2:
            move.revision = rng.choice(NUMBERS)
        case 3:
            move.river_index = rng.choice(NUMBERS)
        case 4:
            move.by_bot = not move.by_bot
        case 5:
            move.tiles.append(random_tile(rng))
        case _:
            move.time.seconds += rng.choice(TIMES)


def mutilate_table(move: record_pb2.RecordedMove, rng: random.Random) -> None:
    meld = rng.choice(move.table.melds) if move.table.melds else move.table.melds.add()
    if meld.tiles and rng.random() < 0.5:
        meld.tiles[rng.randrange(len(meld.tiles))] = random_tile(rng)
    elif rng.random() < 0.5:
        meld.declared_faces.append(random_tile(rng))
    else:
        meld.kind = rng.choice((0, 1, 2, 9))  # type: ignore[assignment] # numbers outside of the enum too


def mutilate_deal(deal: record_pb2.RecordedDeal, rng: random.Random) -> None:
    for tiles in (deal.pool, *(rack.tiles for rack in deal.racks)):
        if tiles and rng.random() < 0.3:
            tiles[rng.randrange(len(tiles))] = random_tile(rng)
    for parts in (deal.turn_order, deal.racks, deal.draws):
        if parts and rng.random() < 0.3:
            del parts[rng.randrange(len(parts))]


def random_tile(rng: random.Random) -> tile_pb2.Tile.ValueType:
    return rng.choice(tile_pb2.Tile.values())


def mutilated(record: record_pb2.GameRecord, rng: random.Random) -> record_pb2.GameRecord:
    """Returns a record with one to three faults; often it also ends early, so that its moves are played at all."""
    if rng.random() < 0.7:
        del record.moves[rng.randint(2, len(record.moves)) :]
        del record.rounds[:], record.winner_seats[:]
    for _ in range(rng.randint(1, 3)):
        if record.moves:
            mutilate(record, rng)
    return record


def mutilated_bytes(data: bytes, rng: random.Random) -> bytes:
    """Returns bytes with one changed, cut off, left out, or repeated."""
    start, end = sorted((rng.randrange(len(data)), rng.randrange(len(data))))
    return rng.choice(
        (
            data[:start] + bytes([rng.randrange(256)]) + data[start + 1 :],
            data[:start],
            data[:start] + data[end:],
            data[:end] + data[start : start + 50] + data[end:],
        )
    )


def mutilated_requests(name: str, rng: random.Random) -> Iterator[rs.ImportRecordRequest]:
    while True:
        seed = rng.randrange(3)
        data = mutilated_bytes(played(name, seed), rng)
        yield rs.ImportRecordRequest(record=mutilated(message_of(name, seed), rng))
        yield rs.ImportRecordRequest(text=mutilated_bytes(text_of(name, seed).encode(), rng).decode(errors="ignore"))
        try:
            yield rs.ImportRecordRequest(record=record_pb2.GameRecord.FromString(data))
        except DecodeError:
            continue


@pytest.mark.parametrize("name", RULESETS)
def test_a_mutilated_record_has_a_fault_or_is_refused(name: str) -> None:
    requests = islice(mutilated_requests(name, random.Random(name)), 80)
    found = [checked(request) for request in requests]
    faults = [answer.fault for answer in found if answer and answer.fault]
    assert all(answer is None or answer.is_complete for answer in found)
    assert all(answer.fault.move in {None, answer.moves_played} for answer in found if answer and answer.fault)
    assert found.count(None) > 8
    assert len({fault.text for fault in faults}) > 3


# Faults that ended with INTERNAL


def test_faces_that_are_not_declared_for_all_jokers_are_refused() -> None:
    record = message_of("penalties", 0)
    place = next(i for i, move in enumerate(record.moves) if move.kind == record_pb2.MOVE_KIND_PLAY)
    record.moves[place].table.melds[0].declared_faces.append(tile_pb2.TILE_RED_1)
    with pytest.raises(InvalidRequest) as refused:
        completed(record_in_steps(rs.ImportRecordRequest(record=record)))
    [fault] = refused.value.fields
    assert (fault.field, fault.reason) == (f"record.moves[{place}].table[0].declared_faces", "MALFORMED_MELD")


@pytest.mark.parametrize(("field", "number"), [("river_index", 1000), ("river_index", 2**31), ("revision", 2**31)])
def test_numbers_without_room_in_the_text_are_refused(field: str, number: int) -> None:
    record = message_of("River and claims", 0)
    setattr(record.moves[3], field, number)
    with pytest.raises(InvalidRequest) as refused:
        completed(record_in_steps(rs.ImportRecordRequest(record=record)))
    assert refused.value.fields[0].field == f"record.moves[3].{field}"


def test_a_text_without_moves_is_a_game_in_the_lobby() -> None:
    text = "rummikub-record 1\npreset SABRA\ncreated 1.000\nplayer 1 person Ada\nplayer 2 person Ben\n"
    answer = checked(rs.ImportRecordRequest(text=text))
    assert answer
    assert (answer.fault, answer.moves_played, answer.is_complete) == (None, 0, True)


@pytest.mark.parametrize("name", ["Ann\u00adLee", " ", "\u200b"])
def test_a_text_has_only_names_that_a_player_may_have(name: str) -> None:
    text = f"rummikub-record 1\npreset SABRA\ncreated 1.000\nplayer 1 person {name}\nplayer 2 person Ben\n"
    assert checked(rs.ImportRecordRequest(text=text)) is None


# The time limit


def test_a_fault_that_is_found_after_the_time_does_not_count() -> None:
    """The searches of the rules may have ended early by then."""
    record = completed(record_in_steps(rs.ImportRecordRequest(record=message_of("penalties", 0))))
    broken = replace(record, moves=(*record.moves[:5], replace(record.moves[5], seat=9)))
    polls = iter([False] * 4 + [True] * 100)
    answer = RecordQuery(broken).answer(Budget(is_over=lambda: next(polls)))
    assert (answer.fault, answer.is_complete, answer.moves_played) == (None, False, 4)
    assert RecordQuery(broken).answer(Budget(is_over=lambda: False)).fault


# Both forms


@pytest.mark.parametrize("name", RULESETS)
@pytest.mark.parametrize("seed", range(3))
def test_a_text_read_and_written_again_as_message_and_text_is_the_same(name: str, seed: int) -> None:
    text = text_of(name, seed)
    message = encode_record(completed(record_in_steps(rs.ImportRecordRequest(text=text))))
    answer = checked(rs.ImportRecordRequest(record=message))
    assert answer
    assert answer.fault is None
    assert answer.text == text
