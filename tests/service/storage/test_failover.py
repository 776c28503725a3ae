"""A primary that is lost and a replica that takes its place: what is acknowledged and lost, and what clients notice."""

from collections.abc import AsyncIterator

import grpc.aio
import pytest

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from support.harness import GameAtHand, RedisServer, error_info, primary_and_replica, redis_store, running_server, until

SWITCHED_OFF, GUARDED = "0", "1"
"""Values of min-replicas-to-write."""
LOST = 3
"""Turns that a lagging replica lacks."""


def has_all(replica: RedisServer, primary: RedisServer) -> bool:
    """Returns whether a replica has all that its primary has acknowledged."""
    sent, taken = (server.tell("INFO", "replication") for server in (primary, replica))
    return bool(sent["master_repl_offset"] == taken["slave_repl_offset"])


@pytest.mark.parametrize("least_replicas", [SWITCHED_OFF, GUARDED])
async def test_a_primary_that_comes_back_after_a_failover_acknowledges_only_what_a_replica_has(
    least_replicas: str,
) -> None:
    """Until somebody makes it a replica. Without min-replicas-to-write, what it acknowledges so long is lost."""
    with primary_and_replica("--min-replicas-to-write", least_replicas) as (primary, replica):
        store = redis_store(primary.url)
        async with running_server(store) as (_, client):
            game = await client.new_game()
            await game.draw()
            replicated = await game.see()
            until(lambda: has_all(replica, primary))
            primary.kill()
            replica.tell("REPLICAOF", "NO", "ONE")
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
    """A game whose primary has been lost and whose replica, now the primary, lacks its last turns.

    Yields:
        The game, as it is now, and as its players saw it last.
    """
    with primary_and_replica() as (primary, replica):
        store = redis_store(primary.url)
        async with running_server(store) as (_, client):
            game = await client.new_game()
            await game.draw()
            kept = await game.see()
            until(lambda: has_all(replica, primary))
            replica.tell("REPLICAOF", "NO", "ONE")  # from now on it lags
            for _ in range(LOST):
                await game.draw()
            seen = await game.see()
            primary.kill()
            replica.socket.replace(primary.socket)
            yield game, kept, seen
        await store.close()


async def refused(game: GameAtHand, seen: game_pb2.Game, etag: str) -> str:
    """The reason why a draw for a game as it was seen is refused; "" if it is not."""
    turn = ts.PlayTurnRequest(game_id=game.game_id, expected_revision=seen.revision, etag=etag, draw=ts.DrawTile())
    try:
        await game.client.turns.PlayTurn(turn, metadata=game.as_seat(seen.turn.seat))
    except grpc.aio.AioRpcError as error:
        return str(error_info(error).reason)
    return ""


async def test_a_turn_for_a_history_that_a_failover_lost_is_refused_by_its_etag_alone(
    before_and_lost: tuple[GameAtHand, game_pb2.Game, game_pb2.Game],
) -> None:
    """As soon as the game has got as far again, nothing but the etag tells the histories apart."""
    game, kept, seen = before_and_lost
    assert await refused(game, seen, seen.etag) == "STALE_STATE"
    assert await refused(game, seen, "") == "STALE_STATE"
    assert (await game.see()).etag == kept.etag
    for _ in range(LOST):
        await game.draw()
    assert (await game.see()).revision == seen.revision
    assert await refused(game, seen, seen.etag) == "ETAG_MISMATCH"
    assert await refused(game, seen, "") == "", "what the contract warns of: it is taken for the game as it is"


async def test_a_turn_that_a_failover_lost_is_taken_when_it_is_sent_again(
    before_and_lost: tuple[GameAtHand, game_pb2.Game, game_pb2.Game],
) -> None:
    """Up to there the history is the one that its player saw."""
    game, kept, _ = before_and_lost
    assert await refused(game, kept, kept.etag) == ""
    assert (await game.see()).revision == kept.revision + 1


async def test_who_watches_a_history_that_a_failover_lost_is_told_so(
    before_and_lost: tuple[GameAtHand, game_pb2.Game, game_pb2.Game],
) -> None:
    game, _, seen = before_and_lost
    for reason in ("HISTORY_UNAVAILABLE", "ETAG_MISMATCH"):
        resumed = gs.WatchGameRequest(game_id=game.game_id, from_revision=seen.revision, etag=seen.etag)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await anext(aiter(game.client.games.WatchGame(resumed)))
        assert error_info(refusal.value).reason == reason
        while (await game.see()).revision < seen.revision:
            await game.draw()
