"""Failover from a lost primary to its replica: acknowledged turns, lost turns, and the errors that clients get."""

from collections.abc import AsyncIterator

import grpc.aio
import pytest

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from support.harness import GameAtHand, error_info, primary_and_replica, redis_store, running_server, until
from tools.redis_servers import RedisServer

pytestmark = pytest.mark.slow

SWITCHED_OFF, GUARDED = "0", "1"
"""Values of min-replicas-to-write."""
LOST = 3
"""The number of turns that a lagging replica lacks."""


def has_all(replica: RedisServer, primary: RedisServer) -> bool:
    """Returns whether a replica has every write that its primary has acknowledged."""
    sent, taken = (server.execute("INFO", "replication") for server in (primary, replica))
    return bool(sent["master_repl_offset"] == taken["slave_repl_offset"])


@pytest.mark.parametrize("least_replicas", [SWITCHED_OFF, GUARDED])
async def test_a_returning_primary_acknowledges_only_replicated_turns_if_guarded(
    least_replicas: str,
) -> None:
    """Until it becomes a replica, it loses the turns it acknowledges, unless min-replicas-to-write is set."""
    with primary_and_replica("--min-replicas-to-write", least_replicas) as (primary, replica):
        store = redis_store(primary.url)
        async with running_server(store) as (_, client):
            game = await client.new_game()
            await game.draw()
            replicated = await game.see()
            until(lambda: has_all(replica, primary))
            primary.kill()
            replica.execute("REPLICAOF", "NO", "ONE")
            primary.start()
            if least_replicas == GUARDED:
                with pytest.raises(grpc.aio.AioRpcError) as refusal:
                    await game.draw()
                assert error_info(refusal.value).reason == "STORE_UNAVAILABLE"
                acknowledged = replicated.revision
            else:
                acknowledged = (await game.draw()).game.revision
            primary.become_replica_of(replica)
            kept = (await game.see()).revision
        await store.close()
    assert kept == replicated.revision
    assert acknowledged - kept == (0 if least_replicas == GUARDED else 1), "turns acknowledged and lost"


@pytest.fixture
async def before_and_lost() -> AsyncIterator[tuple[GameAtHand, game_pb2.Game, game_pb2.Game]]:
    """Yields a game after a failover to a replica that lacks its last turns.

    Yields:
        The game's handle, its current state, and the last state that its players saw.
    """
    with primary_and_replica() as (primary, replica):
        store = redis_store(primary.url)
        async with running_server(store) as (_, client):
            game = await client.new_game()
            await game.draw()
            kept = await game.see()
            until(lambda: has_all(replica, primary))
            replica.execute("REPLICAOF", "NO", "ONE")  # it lags from now on
            for _ in range(LOST):
                await game.draw()
            seen = await game.see()
            primary.kill()
            replica.socket.replace(primary.socket)
            yield game, kept, seen
        await store.close()


async def refused(game: GameAtHand, seen: game_pb2.Game) -> str:
    """Returns the reason why a draw in a game as it was seen is refused; "" if it is accepted."""
    turn = ts.PlayTurnRequest(game_id=game.game_id, etag=seen.etag, draw=ts.DrawTile())
    try:
        await game.client.turns.PlayTurn(turn, metadata=game.as_seat(seen.turn.seat))
    except grpc.aio.AioRpcError as error:
        return str(error_info(error).reason)
    return ""


async def test_a_turn_for_a_history_that_a_failover_lost_is_refused(
    before_and_lost: tuple[GameAtHand, game_pb2.Game, game_pb2.Game],
) -> None:
    """Once the game reaches the same revision again, only the etag distinguishes the histories."""
    game, kept, seen = before_and_lost
    assert await refused(game, seen) == "STALE_STATE"
    assert (await game.see()).etag == kept.etag
    for _ in range(LOST):
        await game.draw()
    assert (await game.see()).revision == seen.revision
    assert await refused(game, seen) == "STALE_STATE"


async def test_a_turn_that_a_failover_lost_is_accepted_when_it_is_retried(
    before_and_lost: tuple[GameAtHand, game_pb2.Game, game_pb2.Game],
) -> None:
    """Up to that revision, the stored history is the one that the player saw."""
    game, kept, _ = before_and_lost
    assert await refused(game, kept) == ""
    assert (await game.see()).revision == kept.revision + 1


async def test_resuming_a_watch_of_a_history_that_a_failover_lost_is_refused(
    before_and_lost: tuple[GameAtHand, game_pb2.Game, game_pb2.Game],
) -> None:
    game, _, seen = before_and_lost
    for _ in range(2):  # before the game has the revision again, and when it has
        resumed = gs.WatchGameRequest(game_id=game.game_id, etag=seen.etag)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await anext(aiter(game.client.games.WatchGame(resumed)))
        assert error_info(refusal.value).reason == "HISTORY_UNAVAILABLE"
        while (await game.see()).revision < seen.revision:
            await game.draw()
