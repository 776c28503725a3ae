"""Whole random games over gRPC on Redis; replaying their event streams gives their snapshots."""

import random
from collections.abc import AsyncIterator

import pytest

from engine.replay import replay
from rummikub.v1 import game_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.codec.rulesets import ruleset
from service.model.change import NO_ETAG, lineage
from service.storage.store import Store
from service.storage.stored_events import encode_change
from support.grpc_play import Fleet, history, lost_or_doubled, play_game
from support.harness import FakeClock, GameAtHand, redis_store, running_server
from support.soak import few_of
from tools.games import game_rules

pytestmark = pytest.mark.slow

GAMES = 3
"""How many games a server plays, one after the other."""
CHUNKS = 1
MANY_CHUNKS = 40
"""As many are played by `make soak`."""
VARIANTS = {
    "River": game_rules(turn_draw=ruleset_pb2.TURN_DRAW_TWO_RIVER),
    "play after draw": game_rules(turn_play_after_draw=ruleset_pb2.TURN_PLAY_AFTER_DRAW_OTHER_TILES),
    "penalties": game_rules(
        turn_invalid_submission=ruleset_pb2.TURN_INVALID_SUBMISSION_PENALISE,
        win_call=ruleset_pb2.WIN_CALL_REQUIRED,
    ),
    "claims": game_rules(turn_invalid_submission=ruleset_pb2.TURN_INVALID_SUBMISSION_PENALISE_ON_UNANIMOUS_CLAIM),
    "last chance": game_rules(preset=ruleset_pb2.PRESET_JUMBO_DE),
    "locked jokers": game_rules(preset=ruleset_pb2.PRESET_GUIDE_A),
    "six colors": game_rules(geometry_colors=6, geometry_jokers_per_player=1, geometry_jokers=0),
    "INTL_OFFICIAL": game_rules(preset=ruleset_pb2.PRESET_INTL_OFFICIAL),
    "MSO_2019": game_rules(preset=ruleset_pb2.PRESET_MSO_2019),
    "must play": game_rules(
        turn_voluntary_draw=ruleset_pb2.TURN_VOLUNTARY_DRAW_ONLY_IF_NO_PLAY,
        pool_empty_stuck_test=ruleset_pb2.POOL_EMPTY_STUCK_TEST_EXACT,
        deal_hand_size=20,
    ),
    "until playable": game_rules(
        turn_draw=ruleset_pb2.TURN_DRAW_UNTIL_PLAYABLE, pool_empty_stuck_test=ruleset_pb2.POOL_EMPTY_STUCK_TEST_BOTH
    ),
    "empty pool": game_rules(pool_empty_mode=ruleset_pb2.POOL_EMPTY_MODE_END_IMMEDIATELY),
}
SEEN = {
    "River": {"river_tile_laid"},
    "play after draw": {"turn_ended"},
    "penalties": {"turn_penalised"},
    "claims": {"illegal_play_shown", "error_claimed"},
    "last chance": {"last_chance_started"},
}
"""Events that the games of each variant must have."""
GAMES_LEAST, GAMES_MOST = 1, 16
"""How many games of a variant are played: the least, and the most if an event has not occurred yet."""


@pytest.mark.parametrize(
    "chunk", [*range(CHUNKS), *(pytest.param(chunk, marks=pytest.mark.soak) for chunk in range(CHUNKS, MANY_CHUNKS))]
)
async def test_replaying_random_games_gives_their_snapshots(redis_url: str, chunk: int) -> None:
    store = redis_store(redis_url, FakeClock())
    async with running_server(store, seed=chunk) as (_, client):
        for number in range(GAMES):
            rng = random.Random(f"{chunk} {number}")
            game = await client.new_game(players=rng.randint(2, 4))
            played = await play_game(Fleet([client], rng), game, rng)
            assert played.final.state == game_pb2.GAME_STATE_FINISHED
            assert not lost_or_doubled(played, await history(client, game))

            await check_stream(store, game.game_id)
    await store.close()


async def check_stream(store: Store, game_id: str) -> None:
    """Asserts that replaying a game's events gives its snapshot, and that its etags are its lineage."""
    record = (await store.games.load(game_id)).record
    entries = await store.streams.entries(game_id, 1, 10_000)
    assert record
    assert replay(entry.events for entry in entries) == record.game
    etag = NO_ETAG
    for entry in entries:
        etag = lineage(etag, encode_change(entry.revision, entry.time_ms, entry.nonce, entry.events, entry.cause))
        assert entry.etag == etag
    assert record.etag == etag


@pytest.mark.parametrize("variant", few_of(VARIANTS, 3))
async def test_games_of_each_variant_end_and_show_players_only_their_own_tiles(redis_url: str, variant: str) -> None:
    store = redis_store(redis_url, FakeClock())
    kinds: set[str | None] = set()
    async with running_server(store) as (_, client):
        for number in range(GAMES_MOST):
            if number >= GAMES_LEAST and SEEN.get(variant, set()) <= kinds:
                break
            rng = random.Random(f"{variant} {number}")
            players = min(2 + number % 3, ruleset(VARIANTS[variant].melding).players_max)
            game = await client.new_game(players=players, ruleset=VARIANTS[variant])
            played = await play_game(Fleet([client], rng), game, rng)
            assert played.final.state == game_pb2.GAME_STATE_FINISHED
            assert not lost_or_doubled(played, await history(client, game))
            await check_stream(store, game.game_id)
            for viewer in game.tokens:
                events = [event async for event in watched(game, viewer)]
                assert all(own_tiles_alone(event, viewer) for event in events)
                kinds |= {event.WhichOneof("event") for event in events}
    assert SEEN.get(variant, set()) <= kinds
    await store.close()


async def watched(game: GameAtHand, viewer: int) -> AsyncIterator[game_pb2.GameEvent]:
    """Yields every event of a finished game from a watch."""
    request = gs.WatchGameRequest(game_id=game.game_id, etag=await game.etag_at(1))
    async for update in game.client.games.WatchGame(request, metadata=game.as_seat(viewer)):
        for event in update.change.events:
            yield event


def own_tiles_alone(event: game_pb2.GameEvent, viewer: int) -> bool:
    """Returns whether an event shows exactly the tiles that the viewer may see."""
    match event.WhichOneof("event"):
        case "round_started":
            return bool(event.round_started.rack) == bool(viewer)
        case "tiles_drawn":
            drawn = event.tiles_drawn
            return len(drawn.tiles) == (drawn.tile_count if drawn.seat == viewer else 0)
        case "turn_timed_out":
            late = event.turn_timed_out
            return len(late.tiles) == (late.tile_count if late.seat == viewer else 0)
        case "turn_penalised":
            penalised = event.turn_penalised
            return len(penalised.tiles) == (penalised.tile_count if penalised.seat == viewer else 0)
        case "turn_started":
            turn = event.turn_started.turn
            return not turn.tiles_drawn and not turn.HasField("draft")
        case _:
            return True
