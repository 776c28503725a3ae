"""Games that begin with a position, over gRPC: who may see what of it, its record, and every refusal."""

import grpc
import grpc.aio
import pytest

from rummikub.v1 import game_pb2, meld_pb2, record_pb2, ruleset_pb2, tile_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from support.fold import fold
from support.harness import (
    Client,
    GameAtHand,
    error_info,
    field_violations,
    new_id,
)
from tools.games import as_tiles, game_rules

RUN = meld_pb2.Table(melds=[meld_pb2.Meld(tiles=as_tiles([1, 2, 3]), kind=meld_pb2.MELD_KIND_RUN, points=6)])
RACKS = {1: [4, 20], 3: [30, 31, 32]}


def position(**fields: object) -> gs.StartPosition:
    """Returns a position of seats 1 and 3, in which seat 3 moves."""
    seats = [gs.StartSeat(seat=seat, rack=as_tiles(rack), has_melded=seat == 1) for seat, rack in RACKS.items()]
    return gs.StartPosition(**{"table": RUN, "seats": seats, "turn_seat": 3, **fields})  # type: ignore[arg-type]


async def created(client: Client, **fields: object) -> GameAtHand:
    """Creates a game with a position."""
    request = gs.CreateGameRequest(**{"position": position(), "request_id": new_id(), **fields})  # type: ignore[arg-type]
    answer = await client.games.CreateGame(request)
    game = GameAtHand(client, answer.game.game_id, host_token=answer.host_token)
    game.note(answer.game)
    return game


async def begun(client: Client, **fields: object) -> GameAtHand:
    """Creates a game with a position, and starts it."""
    game = await created(client, **fields)
    for name in ("Ada", "Cleo"):
        await game.join(name)
    await game.start()
    return game


async def refused(client: Client, **fields: object) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await created(client, **fields)
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    return error.value


async def test_a_game_begins_with_its_position(client: Client) -> None:
    game = await begun(client)
    seen = await game.see(3)
    assert (seen.table, list(seen.rack)) == (RUN, as_tiles([30, 31, 32]))
    assert (seen.turn.seat, list(seen.turn_order), seen.pool_count) == (3, [3, 1], 106 - 8)
    assert [(one.seat, one.tile_count, one.has_melded) for one in seen.players] == [(1, 2, True), (3, 3, False)]
    assert list(seen.position_seats) == [1, 3]
    dealt = await client.new_game()
    assert list((await dealt.see(1)).position_seats) == []


async def test_nobody_sees_the_position_before_the_start_and_only_own_tiles_after_it(client: Client) -> None:
    secret = await created(client)
    other = await created(client, position=position(seats=position_of_other_racks()))
    seen = [(await game.see(0)) for game in (secret, other)]
    for one in seen:
        for field in ("game_id", "etag", "create_time", "update_time", "server_time"):
            one.ClearField(field)
    assert seen[0] == seen[1]
    assert (seen[0].HasField("table"), list(seen[0].rack), list(seen[0].position_seats)) == (False, [], [1, 3])
    game = await begun(client)
    for viewer in (0, 1, 3):
        assert list((await game.see(viewer)).rack) == as_tiles(RACKS.get(viewer, []))


def position_of_other_racks() -> list[gs.StartSeat]:
    return [
        gs.StartSeat(seat=1, rack=as_tiles([5, 21]), has_melded=True),
        gs.StartSeat(seat=3, rack=as_tiles([40, 41, 42])),
    ]


async def test_a_watch_follows_into_the_position(client: Client) -> None:
    game = await created(client)
    await game.join("Ada")
    await game.join("Cleo")
    before = await game.see(1)
    await game.start()
    request = gs.ListChangesRequest(game_id=game.game_id, after_revision=before.revision)
    [change] = (await client.games.ListChanges(request, metadata=game.as_seat(1))).changes
    folded = fold(before, change)
    expected = await game.see(1)
    assert (folded.table, folded.players, folded.turn) == (expected.table, expected.players, expected.turn)
    [started] = [event.round_started for event in change.events if event.HasField("round_started")]
    assert [(one.seat, one.tile_count, one.has_melded) for one in started.start_racks] == [(1, 2, True), (3, 3, False)]


async def test_a_pool_is_drawn_in_the_order_that_was_given(client: Client) -> None:
    rest = [*range(1, 53), *range(1, 53), 53, 53]
    for tile in (1, 2, 3, *RACKS[1], *RACKS[3]):
        rest.remove(tile)
    game = await begun(client, position=position(pool=as_tiles(rest)))
    assert list((await game.draw()).tiles_drawn) == as_tiles(rest[:1])


async def test_the_record_has_the_position_and_is_imported(client: Client) -> None:
    game = await begun(client)
    await client.games.AbortGame(gs.AbortGameRequest(game_id=game.game_id), metadata=game.as_host())
    exporting = rs.ExportGameRequest(game_id=game.game_id)
    record = (await client.records.ExportGame(exporting, metadata=game.as_seat(1))).record
    deal = record.moves[0].deal
    assert deal.table == RUN
    assert [(rack.seat, list(rack.tiles), rack.has_melded) for rack in deal.racks] == [
        (1, as_tiles(RACKS[1]), True),
        (3, as_tiles(RACKS[3]), False),
    ]
    await client.records.ImportRecord(rs.ImportRecordRequest(record=record))
    broken = record_pb2.GameRecord()
    broken.CopyFrom(record)
    broken.moves[0].deal.table.melds[0].tiles.pop()
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await client.records.ImportRecord(rs.ImportRecordRequest(record=broken))
    assert field_violations(error.value) == ["record.moves[0].deal.table"]


async def test_a_rematch_is_dealt(client: Client) -> None:
    game = await begun(client)
    await client.games.AbortGame(gs.AbortGameRequest(game_id=game.game_id), metadata=game.as_host())
    request = gs.CreateRematchRequest(game_id=game.game_id, request_id=new_id())
    rematch = await client.games.CreateRematch(request, metadata=game.as_seat(1))
    seen = await client.games.GetGame(gs.GetGameRequest(game_id=rematch.game.rematch_game_id))
    assert list(seen.game.position_seats) == []


async def test_all_problems_are_named_at_once(client: Client) -> None:
    wrong = meld_pb2.Table(melds=[*RUN.melds, meld_pb2.Meld(tiles=as_tiles([1, 2])), *RUN.melds])
    seats = [gs.StartSeat(seat=one, rack=as_tiles([1])) for one in (1, 2)]
    error = await refused(client, position=gs.StartPosition(table=wrong, seats=seats, turn_seat=3))
    parts = ["table[1]", "turn_seat", "seats", "table", "seats[0].rack", "seats[1].rack"]
    assert field_violations(error) == [f"position.{part}" for part in parts]
    seats = [gs.StartSeat(seat=1), gs.StartSeat(seat=2, rack=as_tiles([1, 1, 1]))]
    error = await refused(client, position=gs.StartPosition(table=RUN, seats=seats, turn_seat=4))
    parts = ["seats[0].rack", "turn_seat", "seats", "seats[1].rack"]
    assert field_violations(error) == [f"position.{part}" for part in parts]


async def test_all_malformed_fields_are_named_at_once(client: Client) -> None:
    seats = [gs.StartSeat(seat=77, rack=as_tiles([200])), gs.StartSeat(seat=2, rack=as_tiles([1, 201]))]
    error = await refused(client, position=gs.StartPosition(seats=seats, pool=as_tiles([202]), turn_seat=0))
    parts = ["seats[0].seat", "seats[0].rack[0]", "seats[1].rack[1]", "pool[0]", "turn_seat"]
    assert field_violations(error) == [f"position.{part}" for part in parts]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"visibility": game_pb2.VISIBILITY_PUBLIC}, "visibility"),
        ({"ruleset": game_rules(preset=ruleset_pb2.PRESET_OKEY)}, "position"),
        ({"position": position(seats=[gs.StartSeat(seat=1)] * 10)}, "position.seats"),
        ({"position": position(seats=[])}, "position.seats"),
        ({"position": position(seats=[gs.StartSeat(rack=as_tiles([1]))])}, "position.seats[0].seat"),
        ({"position": position(turn_seat=0)}, "position.turn_seat"),
        (
            {"position": position(table=meld_pb2.Table(placements=[meld_pb2.Placement(tile=tile_pb2.TILE_RED_1)]))},
            "position.table",
        ),
    ],
)
async def test_what_cannot_begin_with_a_position_is_refused(
    client: Client, fields: dict[str, object], field: str
) -> None:
    error = await refused(client, **fields)
    assert field_violations(error) == [field]
    assert error_info(error).reason in {"FIELD_INVALID", "MALFORMED_TABLE"}
