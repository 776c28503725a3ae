"""The comparison of pairs of games that differ in hidden tiles finds every seeded leak, and leaves no RPC out."""

import random
from dataclasses import replace
from typing import Any

import pytest

from engine.game import Playing
from engine.room_settings import RacksShown
from load.hidden.asks import ADMIN, SHOWS_RACKS, all_asks, changes_by, viewers
from load.hidden.leaks import LEAKS
from load.hidden.pairs import FAMILIES, Comparison, Tally
from load.hidden.stage import OPERATOR_TOKEN, staged
from rummikub.v1 import game_service_pb2 as gs
from support.hidden import GAME, course_of
from support.rpcs import METHODS

pytestmark = pytest.mark.slow

MOST_GAMES = 8
"""By how many games a seeded leak is found."""


@pytest.mark.parametrize("name", LEAKS)
async def test_every_seeded_leak_is_found(name: str) -> None:
    leak = LEAKS[name]
    tally = Tally()
    with leak.installed() as secret:
        async with staged() as stage:
            secret.stage = stage
            comparison = Comparison(stage, tally, most=100_000, searches=0.5)
            for number in range(MOST_GAMES):
                await comparison.of_game(leak.families[number % len(leak.families)], f"{number}", states=4)
                if any(leak.shows in found.place for found in tally.leaks):
                    return
    pytest.fail(f"not found in {tally.pairs} pairs: {name}")


async def test_without_a_leak_nothing_differs() -> None:
    tally = Tally()
    async with staged() as stage:
        comparison = Comparison(stage, tally, most=150)
        for family in ("SABRA", "fair OKEY", "CROSS"):
            await comparison.of_game(family, "0", states=3)
    assert not tally.leaks
    assert tally.pairs >= 100


async def test_every_rpc_is_in_a_pair() -> None:
    """No RPC is left out but those of operators that show racks; they are asked with a wrong token, too."""
    rng = random.Random(0)
    course, games = course_of(FAMILIES["SABRA"](0))
    playing = [game for game in games if isinstance(game.phase, Playing)]
    asked: set[str] = set()
    async with staged() as stage:
        await stage.shelf.put(course.until(playing[3].revision), key="web")
        for viewer in viewers(playing[3], rng, "web"):
            own = viewer if viewer.key == "web" and viewer.token not in {"s" * 43, "o" * 43, OPERATOR_TOKEN} else None
            request = gs.GetGameRequest(game_id=GAME).SerializeToString()
            see: Any = stage.channel.unary_unary(
                "/rummikub.v1.GameService/GetGame", response_deserializer=gs.GetGameResponse.FromString
            )
            seen = (await see(request, metadata=(own or viewers(playing[3], rng, "web")[2]).metadata)).game
            asked |= {ask.path for ask in all_asks(seen, playing[3], viewer, stage.clock, rng)}
            hidden = replace(playing[3], settings=replace(playing[3].settings, racks_shown=RacksShown.HIDDEN))
            asked |= {ask.path for _ in range(20) for ask in changes_by(hidden, viewer, seen, rng)}
    of_players = {f"/{rpc.containing_service.full_name}/{name}" for name, rpc in METHODS.items()}
    of_operators = {f"/{ADMIN.full_name}/{rpc.name}" for rpc in ADMIN.methods}
    assert of_players - asked == set()
    assert of_operators - asked == set()
    assert {rpc.name for rpc in ADMIN.methods} >= SHOWS_RACKS
