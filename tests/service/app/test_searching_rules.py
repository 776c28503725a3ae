"""Searches of the rules do not block other calls, no matter how many run at once."""

import asyncio
import threading

import pytest

from engine.actions import Action
from engine.game import Game
from engine.melding.analysis import Analysis
from engine.melding.solver import EXACT
from engine.turns import Applied, apply
from engine.violations import Refused
from rummikub.v1 import ruleset_pb2
from rummikub.v1 import turn_service_pb2 as ts
from service.app.commands import turns as commands
from support.harness import memory_store, running_server
from tools.games import game_rules

ASKING = game_rules(turn_voluntary_draw=ruleset_pb2.TURN_VOLUNTARY_DRAW_ONLY_IF_NO_PLAY)
CALLS = 40
"""More turns than the event loop's executor has threads."""
SOON_SECONDS = 5.0


async def test_searches_do_not_exhaust_the_event_loops_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    ends, searching = threading.Event(), threading.Semaphore(0)

    def search(game: Game, action: Action, now_ms: int, analysis: Analysis = EXACT) -> Applied | Refused:
        searching.release()
        ends.wait()
        return apply(game, action, now_ms, analysis)

    async with running_server(memory_store()) as (_, client):
        game = await client.new_game(ruleset=ASKING)
        seen = await game.see()
        draw = ts.PlayTurnRequest(game_id=game.game_id, etag=seen.etag, draw=ts.DrawTile(), validate_only=True)
        monkeypatch.setattr(commands, "apply", search)
        calls = [client.turns.PlayTurn(draw, metadata=game.as_seat(seen.turn.seat)) for _ in range(CALLS)]
        outcomes = asyncio.gather(*calls, return_exceptions=True)
        try:
            async with asyncio.timeout(SOON_SECONDS):
                while not searching.acquire(blocking=False):
                    await game.see()
                assert await asyncio.to_thread(lambda: True)
                assert (await game.see()).revision == seen.revision
        finally:
            ends.set()
        assert len(await outcomes) == CALLS
