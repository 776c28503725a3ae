"""Plays a Swiss tournament: each round pairs players with like points who have not met, in games with reserved seats.

Usage: swiss.py host:port ROUNDS PLAYER_REF...

API_KEY is the front end's key. The players, or their programs, find their games with ListOwnGames or WatchOwnGames and
join tickets. A player without an opponent has a point for the round, and so has one whose opponent has not come after
JOIN_SECONDS, 300 by default.
"""

import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import Sequence

import rummikub
from rummikub import aio

Pairs = list[tuple[str, str]]
JOIN_SECONDS = float(os.environ.get("JOIN_SECONDS", "300"))


def paired(players: Sequence[str], met: set[frozenset[str]]) -> Pairs | None:
    """Returns pairs of players, who are sorted by points, that have not met; None if there are none."""
    if not players:
        return []
    first, others = players[0], players[1:]
    for other in others:
        if frozenset((first, other)) not in met:
            rest = paired([one for one in others if one != other], met)
            if rest is not None:
                return [(first, other), *rest]
    return None


async def play(client: aio.Rummikub, pair: tuple[str, str]) -> list[str]:
    """Plays a game of two, and returns its winners: who has come, if not all have come in time."""
    seats = [rummikub.SeatReservation(seat=seat, player_ref=ref, name=ref) for seat, ref in enumerate(pair, 1)]
    request = rummikub.CreateGameRequest(reserved_seats=seats, request_id=rummikub.new_request_id())
    created = await client.games.CreateGame(request)
    game_id, host = created.game.game_id, client.seated(created.host_token)
    try:
        async with asyncio.timeout(JOIN_SECONDS):
            async for game in host.watch_games(game_id):
                if not game.reserved_seats:
                    break
    except TimeoutError:
        left = (await host.games.AbortGame(rummikub.AbortGameRequest(game_id=game_id))).game
        return [pair[player.seat - 1] for player in left.players]
    winners: list[str] = []
    async for game in host.watch_games(game_id):
        winners = [pair[seat - 1] for seat in game.winner_seats]
    return winners


async def tournament(client: aio.Rummikub, rounds: int, players: Sequence[str]) -> dict[str, float]:
    """Returns the points of each player."""
    points, met, free = defaultdict[str, float](float), set[frozenset[str]](), set[str]()
    for number in range(1, rounds + 1):
        ranked = sorted(players, key=lambda one: -points[one])
        if len(ranked) % 2:
            resting = next((one for one in reversed(ranked) if one not in free), ranked[-1])
            points[resting] += 1
            free.add(resting)
            ranked.remove(resting)
        pairs = paired(ranked, met) or list(zip(ranked[::2], ranked[1::2], strict=True))
        met.update(map(frozenset, pairs))
        for winners in await asyncio.gather(*(play(client, pair) for pair in pairs)):
            for winner in winners:
                points[winner] += 1 / len(winners)
        print(f"round {number}:", ", ".join(f"{one} - {other}" for one, other in pairs))
    return dict(points)


async def main() -> None:
    """Plays the tournament, and prints the standings."""
    async with aio.Rummikub(sys.argv[1], api_key=os.environ.get("API_KEY")) as client:
        points = await tournament(client, int(sys.argv[2]), sys.argv[3:])
    for player in sorted(sys.argv[3:], key=lambda one: -points.get(one, 0)):
        print(f"{points.get(player, 0):4.1f} {player}")


if __name__ == "__main__":
    asyncio.run(main())
