"""Bytes of Redis that a game takes, by phase: real turns of whole rounds, sent over gRPC, so answers are remembered."""

import statistics
from collections import defaultdict
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from engine.discard.presets import PRESETS as DISCARD_PRESETS
from engine.discard.ruleset import Preset as DiscardPreset
from engine.melding.presets import PRESETS
from engine.melding.ruleset import Preset
from engine.unions import Ruleset
from load.bench.play import PLAY_TURN, Call, Server
from load.calls import opened
from load.capacity.measuring import Step, first_round, running_servers, shelf_on
from service.storage.redis.keys import keys_of
from tools.redis_servers import RedisServer

TYPICAL: Final = (Preset.SABRA, Preset.WIKI_EN, Preset.VATIKAN)
"""The games by which machines are computed. Others have turns of several calls, or are played by bots."""
_OTHERS: Final = (Preset.TWIST, Preset.CROSS, Preset.CAROUSEL)
_DISCARDS: Final = (DiscardPreset.OKEY, DiscardPreset.OKEY_101, DiscardPreset.AMERICAN, DiscardPreset.INTERNATIONAL)
RULESETS: Final[dict[str, Ruleset]] = {
    **{preset.name: PRESETS[preset] for preset in (*TYPICAL, *_OTHERS)},
    **{preset.name: replace(DISCARD_PRESETS[preset], match_rounds=1) for preset in _DISCARDS},
}
"""Games of one round. In games of discards each step of a turn is a call: a tile is taken, some are laid, one goes."""
GAMES: Final = 40
QUICK_GAMES: Final = 4
TEMPLATES: Final = 4
"""Different games of a preset."""
PHASES: Final = {"start": 0.0, "half": 0.5, "end": 1.0}
"""Shares of the round's turns that were played. At the end the game is finished."""


async def measure(step: Step, *, quick: bool) -> dict[str, Any]:
    """Returns the bytes of a game by preset and phase, and the number of its turns."""
    found: dict[str, Any] = {}
    for name, ruleset in islice(RULESETS.items(), 1 if quick else None):
        step(f"games of {name}")
        found[name] = await _measure_ruleset(ruleset, QUICK_GAMES if quick else GAMES)
    return found


async def _measure_ruleset(ruleset: Ruleset, games: int) -> dict[str, Any]:
    async with (
        running_servers() as (redis, [server]),
        shelf_on(redis) as shelf,
        opened(server.main, 1) as [channel],
    ):
        empty = int(redis.execute("INFO", "memory")["used_memory"])
        templates = [await first_round(shelf, ruleset, seed) for seed in range(min(TEMPLATES, games))]
        calls = await shelf.copies(templates, games)
        for template in templates:
            redis.execute("DEL", *keys_of(template.game_id))
        return {
            "games": games,
            "turns": statistics.mean(len(template.turns) for template in templates),
            **await _play(redis, Server(server.processes[0], channel), calls, empty),
        }


async def _play(redis: RedisServer, server: Server, calls: list[list[Call]], empty: int) -> dict[str, Any]:
    """Plays all games; returns the bytes of a game at each phase, and the server's CPU for a call."""
    phases: dict[str, Any] = {}
    played, before = 0.0, server.cpu_seconds
    for phase, share in PHASES.items():
        await server.send(PLAY_TURN, [game[round(played * len(game)) : round(share * len(game))] for game in calls])
        played = share
        phases[phase] = _bytes(redis, len(calls), empty)
    return {"phases": phases, "turn_us": (server.cpu_seconds - before) / sum(map(len, calls)) * 1e6}


def _bytes(redis: RedisServer, games: int, empty: int) -> dict[str, Any]:
    by_key: dict[str, int] = defaultdict(int)
    with redis.client() as client:
        for key in client.scan_iter("rummikub:{*"):
            by_key[key.decode().rpartition(":")[2]] += client.memory_usage(key, samples=0) or 0
        used = client.info("memory")["used_memory"]
    return {
        "by_key": {name: size / games for name, size in sorted(by_key.items())},
        "sum": sum(by_key.values()) / games,
        "used_memory": (used - empty) / games,
    }
