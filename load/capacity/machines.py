"""How many machines a load takes: computed from measured costs and stated assumptions, without measuring anything."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from load.capacity.games import TYPICAL
from service.settings import Settings

Parts = Mapping[str, Any]
"""The measured parts, by name."""

DAY: Final = 86_400
HOUR: Final = 3_600
GIB: Final = 1 << 30
LIVE_GAMES: Final = 1_000_000
PLAYERS_A_DAY: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What is assumed about players and machines; ASSUMPTION_TEXTS explains each."""

    turn_seconds: float = 20.0
    watchers: int = 4
    watches: int = Settings.model_fields["max_watches"].default
    watches_share: float = 0.8
    validations: float = 5.0
    heartbeat_seconds: float = 15.0
    utilization: float = 0.6
    cores: int = 16
    node_gib: float = 64.0
    memory_share: float = 0.6
    replicas: int = 2
    players: int = 4
    games_a_player: float = 3.0
    peak: float = 3.0
    finished_seconds: float = float(DAY)


ASSUMPTION_TEXTS: Final = {
    "turn_seconds": "seconds between two turns of a game",
    "watchers": "watchers of a game, each at another server: its players",
    "watches": "watchers that a worker accepts (`RUMMIKUB_MAX_WATCHES`)",
    "watches_share": "share of these that is planned at the peak; above it `RummikubManyWatchers` fires",
    "validations": "ValidateTurn calls before each turn, at the validation listener",
    "heartbeat_seconds": "seconds between two heartbeats of a watcher",
    "utilization": "share of a core, of a Redis and of its commits a second that is used at the peak",
    "cores": "cores of a machine for servers, with a worker on each",
    "node_gib": "memory of a Redis node in GiB",
    "memory_share": "share of that memory for games; the rest is for rewriting the log, buffers and fragmentation",
    "replicas": "replicas of a Redis primary, each with its memory",
    "players": "players of a game",
    "games_a_player": "games that a player plays on a day",
    "peak": "live games at the peak, as a multiple of their mean over the day",
    "finished_seconds": "seconds that Redis keeps a finished game (`RUMMIKUB_FINISHED_TTL_SECONDS`)",
}


@dataclass(frozen=True, slots=True)
class Unit:
    """What one core, one Redis node and one game take.

    Attributes:
        core_us: CPU of servers for a second of a live game, in microseconds.
        redis_us: CPU of Redis for the same.
        games_a_core: Live games of a core: as far as its CPU reaches, and as a worker accepts watchers.
        games_by_cpu: Live games of a Redis node, as far as its CPU reaches.
        games_by_commits: Live games of a Redis node with appendfsync always, as far as its log reaches.
        games_by_memory: Live games of a Redis node, as far as its memory reaches, without finished games.
        live_bytes: Redis's memory for a live game, in the middle of its round.
        finished_bytes: Redis's memory for a finished game, once its answers to requests have expired.
        answers_bytes: Redis's memory for these answers at the end of a game, which are kept for an hour.
        game_seconds: How long a game lasts.
        watcher_bytes: Memory of servers for the watchers of a live game.
        process_bytes: Memory of a server on one core, without watchers.
    """

    core_us: float
    redis_us: float
    games_a_core: float
    games_by_cpu: float
    games_by_commits: float
    games_by_memory: float
    live_bytes: float
    finished_bytes: float
    answers_bytes: float
    game_seconds: float
    watcher_bytes: float
    process_bytes: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """The machines for a load.

    Attributes:
        live_games: Live games at the peak.
        turns_a_second: Their turns.
        cores: Cores for servers.
        machines: Machines for servers.
        process_gib: Memory of the server processes.
        watcher_gib: Memory of the servers for watchers, besides.
        redis_gib: Memory of games in all Redis primaries, live and finished ones.
        redis_nodes: Primaries.
        redis_replicas: Their replicas.
        limit: What limits the number of primaries: CPU, commits or memory.
    """

    live_games: float
    turns_a_second: float
    cores: int
    machines: int
    process_gib: float
    watcher_gib: float
    redis_gib: float
    redis_nodes: int
    redis_replicas: int
    limit: str


def unit_of(parts: Parts, assumed: Assumptions) -> Unit:
    """Returns the costs of one live game, and what a core and a Redis node can carry."""
    watched, alone, seconds = parts["watchers"]["tables"], parts["watchers"]["crowds"]["0"], assumed.turn_seconds
    core_us = _a_second(
        parts["watchers"]["cold_turn_us"] + assumed.validations * parts["watchers"]["validation_us"],
        max(0.0, watched["turn_us"] - alone["turn_us"]),
        watched["heartbeat_us"],
        assumed,
    )
    redis_us = _a_second(
        parts["watchers"]["redis_cold_turn_us"],
        max(0.0, watched["redis_turn_us"] - alone["redis_turn_us"]),
        watched["redis_heartbeat_us"],
        assumed,
    )
    games = [game for name, game in parts["games"].items() if name in {preset.name for preset in TYPICAL}]
    live = statistics.mean(game["phases"]["half"]["sum"] for game in games)
    answers = statistics.mean(game["phases"]["end"]["by_key"].get("requests", 0.0) for game in games)
    return Unit(
        core_us=core_us,
        redis_us=redis_us,
        games_a_core=min(
            assumed.utilization * 1e6 / core_us, assumed.watches_share * assumed.watches / assumed.watchers
        ),
        games_by_cpu=assumed.utilization * 1e6 / redis_us,
        games_by_commits=assumed.utilization * parts["commits"]["always"]["a_second"] * seconds,
        games_by_memory=_node_bytes(assumed) / live,
        live_bytes=live,
        finished_bytes=statistics.mean(game["phases"]["end"]["sum"] for game in games) - answers,
        answers_bytes=answers,
        game_seconds=statistics.mean(game["turns"] for game in games) * seconds,
        watcher_bytes=watched["watcher_bytes"] * assumed.watchers,
        process_bytes=parts["watchers"]["process_bytes"],
    )


def _a_second(turn_us: float, watcher_us: float, heartbeat_us: float, assumed: Assumptions) -> float:
    """Returns the cost of a second of a live game: its turns, the updates of its watchers, and their heartbeats."""
    turn = turn_us + assumed.watchers * watcher_us
    return turn / assumed.turn_seconds + assumed.watchers * heartbeat_us / assumed.heartbeat_seconds


def _node_bytes(assumed: Assumptions) -> float:
    return assumed.node_gib * GIB * assumed.memory_share


def fleet_of(unit: Unit, assumed: Assumptions, live_games: float, finished_a_second: float = 0.0) -> Fleet:
    """Returns the machines for a number of live games.

    Args:
        unit: The costs of one game.
        assumed: The assumptions.
        live_games: Live games at the peak.
        finished_a_second: Games that end in a second, on average over the day.
    """
    kept = finished_a_second * assumed.finished_seconds * unit.finished_bytes
    answers = finished_a_second * assumed.peak * min(HOUR, assumed.finished_seconds) * unit.answers_bytes
    memory = live_games * unit.live_bytes + kept + answers
    nodes = {
        "CPU": live_games / unit.games_by_cpu,
        "commits": live_games / unit.games_by_commits,
        "memory": memory / _node_bytes(assumed),
    }
    limit = max(nodes, key=lambda name: nodes[name])
    cores, primaries = math.ceil(live_games / unit.games_a_core), math.ceil(nodes[limit])
    return Fleet(
        live_games=live_games,
        turns_a_second=live_games / assumed.turn_seconds,
        cores=cores,
        machines=math.ceil(cores / assumed.cores),
        process_gib=cores * unit.process_bytes / GIB,
        watcher_gib=live_games * unit.watcher_bytes / GIB,
        redis_gib=memory / GIB,
        redis_nodes=primaries,
        redis_replicas=primaries * assumed.replicas,
        limit=limit,
    )


def fleets_of(parts: Parts, assumed: Assumptions) -> dict[str, Fleet]:
    """Returns the machines for the two loads of the page."""
    unit = unit_of(parts, assumed)
    games_a_day = PLAYERS_A_DAY * assumed.games_a_player / assumed.players
    mean_live = games_a_day * unit.game_seconds / DAY
    return {
        f"{LIVE_GAMES:,} live games": fleet_of(
            unit, assumed, LIVE_GAMES, LIVE_GAMES / assumed.peak / unit.game_seconds
        ),
        f"{PLAYERS_A_DAY:,} players a day": fleet_of(unit, assumed, mean_live * assumed.peak, games_a_day / DAY),
    }


def assumption_rows(assumed: Assumptions) -> list[list[str]]:
    """Returns the assumptions as rows of a table."""
    return [[ASSUMPTION_TEXTS[field.name], f"{getattr(assumed, field.name):,g}"] for field in fields(assumed)]
