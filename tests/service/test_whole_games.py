"""Whole games at random over gRPC on Redis, and what their event streams are worth."""

import random

import pytest

from engine.events import replay
from grpc_play import Fleet, history, lost_or_doubled, play_game
from harness import FakeClock, redis_store, running_server
from rummikub.v1 import game_pb2
from service.storage.base import NO_ETAG, lineage
from service.storage.snapshot import encode_change

GAMES = 200
CHUNKS = 20


@pytest.mark.parametrize("chunk", range(CHUNKS))
async def test_random_games_are_replayed_from_their_event_streams_to_the_same_snapshot(
    redis_url: str, chunk: int
) -> None:
    store = redis_store(redis_url, FakeClock())
    async with running_server(store, seed=chunk) as (_, client):
        for number in range(GAMES // CHUNKS):
            rng = random.Random(f"{chunk} {number}")
            game = await client.new_game(players=rng.randint(2, 4))
            played = await play_game(Fleet([client], rng), game, rng)
            assert played.final.state == game_pb2.GAME_STATE_FINISHED
            assert not lost_or_doubled(played, await history(client, game))

            record = (await store.load(game.game_id)).record
            entries = await store.events(game.game_id, 1, 10_000)
            assert record
            assert replay(entry.events for entry in entries) == record.game
            etag = NO_ETAG
            for entry in entries:
                etag = lineage(etag, encode_change(entry.revision, entry.time_ms, entry.nonce, entry.events))
                assert entry.etag == etag
            assert record.etag == etag
    await store.close()
