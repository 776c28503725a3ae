"""Fair deals over gRPC: what is published before, what the record has after, and that nothing gives a deal away."""

from typing import Any

import grpc
import grpc.aio
import pytest

from engine.fair_deal import hashed
from engine.record import replayed
from engine.record_text import parse_record
from rummikub.v1 import game_pb2, record_pb2, room_settings_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from service.app.identity import deal_secret
from service.storage.store import Store
from support.fold import fold
from support.harness import Client, FakeClock, GameAtHand, field_violations, new_id
from tools.games import Options, changes_of, creation, options

pytestmark = pytest.mark.slow

COMMITTED = room_settings_pb2.RoomSettings(fair_deal=room_settings_pb2.FAIR_DEAL_COMMITTED)
TWO_ROUNDS = options(
    match_end=ruleset_pb2.MATCH_END_FIXED_ROUNDS,
    match_rounds=2,
    turn_time_limit_seconds=0,
    fair_deal=room_settings_pb2.FAIR_DEAL_COMMITTED,
)
ADA, BEN = b"the seed of Ada", bytes(range(64))


async def fair_game(client: Client, chosen: Options = TWO_ROUNDS) -> GameAtHand:
    """Starts a game whose two players have seeds."""
    created = await client.games.CreateGame(gs.CreateGameRequest(**creation(chosen), request_id=new_id()))
    game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
    for name, seed in (("Ada", ADA), ("Ben", BEN)):
        join = gs.JoinGameRequest(game_id=game.game_id, name=name, deal_seed=seed, request_id=new_id())
        answer = await client.games.JoinGame(join, metadata=game.as_host() if name == "Ada" else ())
        game.tokens[answer.seat] = answer.seat_token
        game.note(answer.game)
    await game.start()
    return game


async def finish(game: GameAtHand) -> None:
    """Ends the round in progress: both only draw, then pass."""
    while (seen := await game.see()).state == game_pb2.GAME_STATE_PLAYING:
        await (game.draw() if seen.pool_count else game.pass_on())


async def record_of(game: GameAtHand) -> record_pb2.GameRecord:
    request = rs.ExportGameRequest(game_id=game.game_id)
    return (await game.client.records.ExportGame(request, metadata=game.as_seat(1))).record


async def fault_of(client: Client, record: record_pb2.GameRecord) -> str:
    """Returns what is wrong with a record that was played to its end; "" for nothing."""
    answer = await client.records.ImportRecord(rs.ImportRecordRequest(record=record))
    assert answer.is_complete
    return answer.fault.text


@pytest.mark.parametrize(
    ("visibility", "expected"),
    [
        (game_pb2.VISIBILITY_PUBLIC, room_settings_pb2.FAIR_DEAL_COMMITTED),
        (game_pb2.VISIBILITY_UNLISTED, room_settings_pb2.FAIR_DEAL_OFF),
    ],
)
async def test_public_games_are_fair_by_default(client: Client, visibility: Any, expected: int) -> None:  # noqa: ANN401 - an enum
    created = await client.games.CreateGame(gs.CreateGameRequest(visibility=visibility, request_id=new_id()))
    assert created.game.settings.fair_deal == expected
    is_fair = expected == room_settings_pb2.FAIR_DEAL_COMMITTED
    assert len(created.game.deal_commitment) == (32 if is_fair else 0)


async def test_quick_play_is_fair_and_has_the_seeds_of_its_players(client: Client) -> None:
    request = gs.JoinOrCreateGameRequest(name="Ada", deal_seed=ADA, request_id=new_id())
    first = await client.games.JoinOrCreateGame(request)
    other = gs.JoinOrCreateGameRequest(name="Ben", deal_seed=BEN, request_id=new_id())
    second = await client.games.JoinOrCreateGame(other)
    assert first.game.deal_commitment == second.game.deal_commitment != b""
    assert [player.deal_seed for player in second.game.players] == [ADA, BEN]


async def test_the_record_of_two_rounds_can_be_checked(client: Client) -> None:
    game = await fair_game(client)
    seen = await game.see(2)
    for _ in range(2):
        await finish(game)
        if (await game.see()).state == game_pb2.GAME_STATE_ROUND_OVER:
            request = ts.StartNextRoundRequest(game_id=game.game_id, request_id=new_id())
            await client.turns.StartNextRound(request, metadata=game.as_seat(1))
    record = await record_of(game)
    assert record.deal_commitment == seen.deal_commitment
    assert hashed(record.deal_seed, 2) == record.deal_commitment
    assert [player.deal_seed for player in record.players] == [ADA, BEN]
    assert await fault_of(client, record) == ""
    text = (await client.records.ExportGame(rs.ExportGameRequest(game_id=game.game_id, form=rs.RECORD_FORM_TEXT))).text
    assert len(list(replayed(parse_record(text)))) == len(record.moves)
    record.deal_seed = bytes(32)
    assert "does not lead to the commitment" in await fault_of(client, record)


async def test_a_round_that_starts_by_itself_and_a_rematch_are_fair(client: Client, clock: FakeClock) -> None:
    game = await fair_game(client)
    await finish(game)
    clock.advance(60)
    assert (await game.see()).round == 2
    await finish(game)
    record = await record_of(game)
    assert await fault_of(client, record) == ""
    rematch = await game.rematch(1)
    commitment = (await rematch.see()).deal_commitment
    assert commitment not in {b"", record.deal_commitment}


async def test_a_new_deal_on_demand_is_fair(client: Client) -> None:
    chosen = {"fair_deal": room_settings_pb2.FAIR_DEAL_COMMITTED, "turn_time_limit_seconds": 0}
    game, seat = await client.new_game_to_redeal(chosen)
    await game.redeal(seat)
    await client.games.AbortGame(gs.AbortGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
    record = await record_of(game)
    assert hashed(record.deal_seed, 2) == record.deal_commitment
    assert await fault_of(client, record) == ""


async def test_a_player_changes_the_seed_until_the_start(client: Client) -> None:
    created = await client.games.CreateGame(gs.CreateGameRequest(settings=COMMITTED, request_id=new_id()))
    game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
    await game.join("Ada")
    request = gs.SetReadyRequest(game_id=game.game_id, is_ready=True, deal_seed=ADA)
    before = await game.see(1)
    answer = await client.games.SetReady(request, metadata=game.as_seat(1))
    assert answer.game.players[0].deal_seed == ADA
    [*_, change] = await changes_of(client, game.game_id)
    assert fold(before, change).players == (await game.see(1)).players
    assert (await game.ready(1)).players[0].deal_seed == ADA


async def test_no_answer_has_what_gives_a_deal_away(client: Client, store: Store) -> None:
    game = await fair_game(client)
    record = (await store.games.load(game.game_id)).record
    assert record
    secret = deal_secret(await store.secret(), record.deal_nonce)
    hidden = {record.deal_nonce, *(hashed(secret, times) for times in range(1_000))}
    for seat in (0, 1, 2):
        seen = await game.see(seat)
        changes = await client.games.ListChanges(
            gs.ListChangesRequest(game_id=game.game_id), metadata=game.as_seat(seat)
        )
        data = seen.SerializeToString() + changes.SerializeToString()
        assert not [one for one in hidden if one in data]
        assert seen.deal_commitment == hashed(secret, 1_000)


@pytest.mark.parametrize("rpc", ["JoinGame", "JoinOrCreateGame", "SetReady"])
async def test_a_seed_is_not_too_long(client: Client, rpc: str) -> None:
    game = await client.new_game(start=False)
    fields: dict[str, Any] = {
        "SetReady": {"game_id": game.game_id},
        "JoinGame": {"game_id": game.game_id, "name": "Eve"},
    }
    request = getattr(gs, f"{rpc}Request")(**fields.get(rpc, {"name": "Eve"}), deal_seed=bytes(65), request_id=new_id())
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await getattr(client.games, rpc)(request, metadata=game.as_seat(1) if rpc == "SetReady" else ())
    assert field_violations(error.value) == ["deal_seed"]


@pytest.mark.parametrize("field", ["deal_seed", "deal_commitment", "players[0].deal_seed"])
async def test_a_record_has_seeds_of_their_size(client: Client, field: str) -> None:
    record = record_pb2.GameRecord(players=[record_pb2.RecordedPlayer(seat=1, name="Ada")])
    holder: Any = record.players[0] if field.startswith("players") else record
    setattr(holder, field.rpartition(".")[2], bytes(65))
    with pytest.raises(grpc.aio.AioRpcError) as error:
        assert await fault_of(client, record) == ""
    assert field_violations(error.value) == [f"record.{field}"]
