"""A whole game of Okey over gRPC, with chosen deals, as its players and a spectator see it; and random ones."""

import random
import re
from collections import deque
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest

from conformance.grpc_answers import FACE_OF, FixedChance, faces_of
from engine.replay import replay
from rummikub.v1 import game_pb2, record_service_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.composition import build_server
from service.storage.store import Store
from support.conformance_cases import parse_faces, parse_hand
from support.conformance_messages import hand_of, tile_of
from support.grpc_play import Fleet, history, lost_or_doubled, play_game
from support.harness import Client, FakeClock, GameAtHand, redis_store, refusal_detail, running_server, server_settings
from tools.games import Options, changes_of, game_rules, options

pytestmark = pytest.mark.slow

OKEY: Options = options(preset=ruleset_pb2.PRESET_OKEY, turn_time_limit_seconds=60)
ANN, BOB = 1, 2
NEARLY = "R1 R2 R3 R4 B5 B6 B7 B8 K9 K10 K11 R9 B9 O13 O3"
OTHERS = "R5 R6 R7 R8 R10 R11 R12 R13 B1 B2 B3 B4 K12 K13"
PAIRS = "R1 R1 R2 R2 R3 R3 B4 B4 B5 B5 B6 B6 K7 K7 O1"
DEALS = [f"O13 {NEARLY} {OTHERS} O9", f"O13 {PAIRS}", ""]
"""The tiles of each deal, the indicator first: of the starter, the other player, and the pool."""
EVENTS = [
    "game_created",
    "player_joined",
    "player_joined",
    "hands_dealt turn_started",
    "indicator_shown",
    "tile_discarded turn_started",
    "discard_taken",
    "tile_discarded turn_started",
    "pool_tile_taken",
    "hand_finished round_ended",
    "hands_dealt turn_started",
    "hand_finished round_ended",
    "hands_dealt turn_started",
    "turn_timed_out discard_forced turn_started",
    "pool_tile_taken",
    "player_resigned round_ended game_ended",
]
"""The events of the game's changes."""
MOVES = [
    "1 indicator",
    "1 discard O3",
    "2 take O3",
    "2 discard K13",
    "1 draw O9",
    "1 finish O13 [R1 R2 R3 R4] | [B5 B6 B7 B8] | [K9 K10 K11] | [R9 B9 O9]",
    "end WENT_OUT 1:0 2:-3",
    "2 finish O1 [R1 R1] | [R2 R2] | [R3 R3] | [B4 B4] | [B5 B5] | [B6 B6] | [K7 K7]",
    "end WENT_OUT 1:-8 2:0",
    "1 timeout",
    "2 draw B2",
    "2 resign",
    "end RESIGNED 1:0 2:0",
    "winners 1",
]
"""The game's record, without its deals."""


@pytest.fixture
async def game(store: Store) -> AsyncIterator[GameAtHand]:
    """Yields a game of Ann, who starts, and Bob, with the deals above; the indicator is always O13."""
    chance = FixedChance()
    server = build_server(server_settings(sweep_seconds=3600, games_per_minute=0), store, chance=chance)
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        chance.coming = deque(shuffle for deal in DEALS for shuffle in ((), parse_faces(deal)))
        yield await Client(channel).new_game(2, ruleset=OKEY)
    await server.stop()


def finish(tile: str, hand: str = "") -> ts.PlayTurnRequest:
    return ts.PlayTurnRequest(finish=ts.FinishHand(tile=tile_of(tile), hand=hand_of(parse_hand(hand) if hand else ())))


def discard(tile: str) -> ts.PlayTurnRequest:
    return ts.PlayTurnRequest(discard=ts.DiscardTile(tile=tile_of(tile)))


def piles(game: game_pb2.Game) -> dict[int, tuple[str, int]]:
    """Returns the newest discard of each seat, and the number of its discards."""
    return {pile.seat: (FACE_OF.get(pile.newest, ""), pile.tile_count) for pile in game.discard_board.piles}


def totals(game: game_pb2.Game) -> list[int]:
    return [player.total_points for player in game.players]


TAKE = ts.PlayTurnRequest(take_from_pool=ts.TakeFromPool())
TAKE_DISCARD = ts.PlayTurnRequest(take_discard=ts.TakeDiscard())
SHOW = ts.PlayTurnRequest(show_indicator=ts.ShowIndicator())


async def play_three_rounds(game: GameAtHand, clock: FakeClock) -> None:
    """Plays the game to its end, and checks what the players see of it."""
    start = await game.see(ANN)
    board = start.discard_board
    assert (FACE_OF[board.indicator], FACE_OF[board.okey], start.pool_count) == ("O13", "O1", 76)
    assert (start.turn.seat, start.turn.step) == (ANN, game_pb2.TURN_STEP_DISCARDING)
    assert sorted(faces_of(start.rack)) == sorted(NEARLY.split())
    assert not (await game.see()).rack

    assert (await game.take(SHOW)).game.discard_board.shown_by_seat == ANN
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await game.take(finish("O3"))
    [violation] = refusal_detail(refusal.value).violations
    assert faces_of(violation.tiles) == ("O13",)
    assert piles((await game.take(discard("O3"))).game) == {ANN: ("O3", 1), BOB: ("", 0)}

    taken = (await game.take(TAKE_DISCARD)).game
    assert piles(taken) == {ANN: ("", 0), BOB: ("", 0)}
    assert faces_of((await game.see()).turn.tiles_drawn) == ("O3",)
    await game.take(discard("K13"))

    drawn = await game.take(TAKE)
    assert faces_of(drawn.tiles_drawn) == ("O9",)
    assert not (await game.see(BOB)).turn.tiles_drawn
    melds = "[R1 R2 R3 R4] | [B5 B6 B7 B8] | [K9 K10 K11] | [R9 B9 O9]"
    won = (await game.take(finish("O13", melds))).game
    assert won.state == game_pb2.GAME_STATE_ROUND_OVER
    assert list(won.discard_board.finish.hand) == hand_of(parse_hand(melds))
    assert (totals(won), list(won.rounds[0].winner_seats)) == ([20, 17], [ANN])

    await next_round(game)
    over = (await game.take(finish("O1"))).game
    assert (over.discard_board.finish.is_pairs, totals(over)) == (True, [12, 17])

    await next_round(game)
    assert (await game.see()).turn.seat == ANN
    clock.advance(60.001)
    late = await game.see(ANN)
    assert (late.turn.seat, [player.timeouts_in_a_row for player in late.players]) == (BOB, [1, 0])
    assert piles(late)[ANN][1] == 1
    await game.take(TAKE)
    resign = ts.ResignGameRequest(game_id=game.game_id)
    ended = (await game.client.turns.ResignGame(resign, metadata=game.as_seat(BOB))).game
    assert (ended.state, list(ended.winner_seats)) == (game_pb2.GAME_STATE_FINISHED, [ANN])
    assert (totals(ended), len(ended.rounds)) == ([12, 17], 3)


async def next_round(game: GameAtHand) -> None:
    request = ts.StartNextRoundRequest(game_id=game.game_id)
    await game.client.turns.StartNextRound(request, metadata=game.as_seat(ANN))


async def test_a_game_of_three_rounds(game: GameAtHand, clock: FakeClock) -> None:
    await play_three_rounds(game, clock)
    changes = await changes_of(game.client, game.game_id)
    assert [" ".join(str(event.WhichOneof("event")) for event in change.events) for change in changes] == EVENTS
    export = record_service_pb2.ExportGameRequest(game_id=game.game_id, form=record_service_pb2.RECORD_FORM_TEXT)
    text = (await game.client.records.ExportGame(export, metadata=game.as_seat(BOB))).text
    moves = [line for line in text.splitlines()[6:] if " deal " not in line]
    assert [re.sub(r"^[0-9]+ [0-9.]+ ", "", line) for line in moves] == MOVES
    checked = await game.client.records.ImportRecord(record_service_pb2.ImportRecordRequest(text=text))
    assert (checked.is_complete, checked.HasField("fault"), checked.moves_played) == (True, False, 13)


@pytest.mark.parametrize(
    "preset",
    [
        ruleset_pb2.PRESET_OKEY,
        ruleset_pb2.PRESET_OKEY_PARTNERS,
        ruleset_pb2.PRESET_AMERICAN,
        ruleset_pb2.PRESET_INTERNATIONAL,
    ],
)
async def test_random_games_end_and_show_players_only_their_own_tiles(
    redis_url: str, preset: ruleset_pb2.Preset.ValueType
) -> None:
    rng = random.Random(preset)
    store = redis_store(redis_url, FakeClock())
    rules = game_rules(preset=preset, match_rounds=1)
    async with running_server(store) as (_, client):
        players = 4 if preset == ruleset_pb2.PRESET_OKEY_PARTNERS else 3
        game = await client.new_game(players=players, ruleset=rules)
        played = await play_game(Fleet([client], rng), game, rng)
        assert played.final.state == game_pb2.GAME_STATE_FINISHED
        assert not lost_or_doubled(played, await history(client, game))
        entries = await store.streams.entries(game.game_id, 1, 10_000)
        record = (await store.games.load(game.game_id)).record
        assert record
        assert replay(entry.events for entry in entries) == record.game
        for viewer in game.tokens:
            request = gs.WatchGameRequest(game_id=game.game_id, etag=await game.etag_at(1))
            watch = client.games.WatchGame(request, metadata=game.as_seat(viewer))
            events = [event async for update in watch for event in update.change.events]
            assert {event.WhichOneof("event") for event in events} >= {"hands_dealt", "pool_tile_taken", "game_ended"}
            assert all(own_tiles_alone(event, viewer) for event in events)
    await store.close()


def own_tiles_alone(event: game_pb2.GameEvent, viewer: int) -> bool:
    """Returns whether an event shows exactly the tiles that the viewer may see."""
    match event.WhichOneof("event"):
        case "hands_dealt":
            return len(event.hands_dealt.rack) in ({14, 15} if viewer else {0})
        case "pool_tile_taken":
            return bool(event.pool_tile_taken.tile) == (event.pool_tile_taken.seat == viewer)
        case "turn_started":
            return not event.turn_started.turn.tiles_drawn
        case _:
            return True
