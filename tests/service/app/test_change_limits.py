"""What a seat can make of a game without playing: bounded in number, in what is stored, and in its pace."""

import pytest
import redis

from rummikub.v1 import game_service_pb2 as gs
from support.harness import FakeClock, GameAtHand, new_id, running_server
from support.stores import running_store


async def renew(game: GameAtHand, seat: int) -> None:
    """Replaces the token of a seat."""
    request = gs.RenewSeatTokenRequest(game_id=game.game_id, request_id=new_id())
    answer = await game.client.games.RenewSeatToken(request, metadata=game.as_seat(seat))
    game.tokens[seat] = answer.seat_token


async def leave(game: GameAtHand, seat: int) -> None:
    """Leaves the lobby."""
    request = gs.LeaveGameRequest(game_id=game.game_id, request_id=new_id())
    await game.client.games.LeaveGame(request, metadata=game.as_seat(seat))


async def test_a_token_that_is_gone_leaves_nothing_in_the_store(
    request: pytest.FixtureRequest, empty_redis_url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.server.FLUSH_SECONDS", 0.01)
    sizes = []
    with redis.Redis.from_url(empty_redis_url) as stored:
        async with running_store(request, clock, kind="redis") as store, running_server(store) as (_, client):
            game = await client.new_game(start=False)
            for _ in range(3):
                for _ in range(10):
                    clock.advance(20)
                    await renew(game, 1)
                    await game.see(1)
                    await leave(game, 2)
                    await game.join("Ben", 2)
                sizes.append([stored.hlen(f"rummikub:{{{game.game_id}}}:{key}") for key in ("requests", "presence")])
    assert sizes[1] == sizes[2]
