"""The tables, requirements and page of the measured parts."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from load.bench.figures import Tables, requirement, told_of_run
from load.capacity import lists
from load.capacity.machines import Assumptions, assumption_rows, fleets_of, unit_of

Parts = Mapping[str, Any]

MOST_GROWTH: Final = 3.0
"""Lists are sorted sets, so their operations may grow with the logarithm of the number of games."""
MOST_BACK_A_SECOND: Final = 750
"""Watchers of a stopped server return 500 a second (service/app/watch.py)."""
MOST_TOLD_SECONDS: Final = 2.0
LEAST_WATCHERS: Final = 300
"""With fewer, the growth of a process is no measure of a watcher's memory."""


def requirements_of(parts: Parts) -> list[dict[str, Any]]:
    """Returns the requirements of the parts that were measured."""
    found = []
    if "lists" in parts:
        growth, (least, most) = lists.growth(parts["lists"]), lists.compared_sizes(parts["lists"])
        worst = max(growth, key=lambda name: growth[name])
        found.append(
            requirement(
                f"each operation on lists with {most:,} games: at most {MOST_GROWTH:.0f} times the CPU with {least:,}",
                met=growth[worst] <= MOST_GROWTH,
                measured=f"{growth[worst]:.1f} ({worst})",
            )
        )
    if "watchers" in parts:
        crowds = parts["watchers"]["crowds"]
        most = max(map(int, crowds))
        seconds = crowds[str(most)]["told_ms"]["max"] / 1e3
        found.append(
            requirement(
                f"the last of {most:,} watchers of a game is notified within {MOST_TOLD_SECONDS:.0f} s",
                met=seconds <= MOST_TOLD_SECONDS,
                measured=f"{seconds:.2f} s",
            )
        )
    if "restart" in parts:
        restart = parts["restart"]
        back = max(restart["called_by_second"])
        told = restart["ends"].get("closing", 0)
        found += [
            requirement(
                "every watcher of a stopped server is told when to come back",
                met=told == restart["watchers"],
                measured=f"{told:,} of {restart['watchers']:,}",
            ),
            requirement(
                f"at most {MOST_BACK_A_SECOND} of them call another server in a second",
                met=back <= MOST_BACK_A_SECOND,
                measured=f"{back:,}",
            ),
        ]
    return found


def tables_of(parts: Parts, assumed: Assumptions) -> Tables:
    """Returns the tables of the parts that were measured; the machines if all of their costs were."""
    found: dict[str, Sequence[Sequence[str]]] = {}
    if {"games", "commits", "watchers"} <= set(parts):
        found |= _machines(parts, assumed)
    for name, tables in (
        ("games", _games),
        ("commits", _commits),
        ("watchers", _watchers),
        ("lists", _lists),
        ("restart", _restart),
    ):
        if name in parts:
            found |= tables(parts[name])
    return found


def _machines(parts: Parts, assumed: Assumptions) -> Tables:
    unit = unit_of(parts, assumed)
    fleets = fleets_of(parts, assumed)
    rows = [
        ["live games at the peak", *(f"{fleet.live_games:,.0f}" for fleet in fleets.values())],
        ["turns a second", *(f"{fleet.turns_a_second:,.0f}" for fleet in fleets.values())],
        ["cores for servers", *(f"{fleet.cores:,}" for fleet in fleets.values())],
        ["machines for servers", *(f"{fleet.machines:,}" for fleet in fleets.values())],
        ["memory of the server processes, GiB", *(f"{fleet.process_gib:,.0f}" for fleet in fleets.values())],
        ["memory of their watchers besides, GiB", *(f"{fleet.watcher_gib:,.0f}" for fleet in fleets.values())],
        ["memory of all games in Redis, GiB", *(f"{fleet.redis_gib:,.0f}" for fleet in fleets.values())],
        ["Redis primaries", *(f"{fleet.redis_nodes:,}" for fleet in fleets.values())],
        ["replicas of them", *(f"{fleet.redis_replicas:,}" for fleet in fleets.values())],
        ["limited by", *(fleet.limit for fleet in fleets.values())],
    ]
    carried = [
        ["live games of a core for servers", f"{unit.games_a_core:,.0f}"],
        ["live games of a Redis primary, by its CPU", f"{unit.games_by_cpu:,.0f}"],
        ["live games of a Redis primary, by its commits with appendfsync always", f"{unit.games_by_commits:,.0f}"],
        ["live games of a Redis primary, by its memory, without finished games", f"{unit.games_by_memory:,.0f}"],
        ["CPU of servers for a minute of a live game, ms", f"{unit.core_us * 60 / 1e3:.1f}"],
        ["CPU of Redis for the same, ms", f"{unit.redis_us * 60 / 1e3:.2f}"],
        ["minutes that a game lasts", f"{unit.game_seconds / 60:.0f}"],
    ]
    return {
        "Machines": [["", *fleets], *rows],
        "What one core and one Redis primary carry": [["", "measured and computed"], *carried],
        "Assumptions": [["assumption", "value"], *assumption_rows(assumed)],
    }


def _games(found: Parts) -> Tables:
    head = ["", "turns", "at the start", "half-way", "finished", "of it answers", "an hour later", "us of CPU a call"]
    rows = []
    for preset, game in found.items():
        phases = game["phases"]
        answers = phases["end"]["by_key"].get("requests", 0.0)
        sums = [phases[name]["sum"] for name in ("start", "half", "end")]
        sizes = [*sums, answers, sums[-1] - answers]
        figures = (*sizes, game["turn_us"])
        rows.append([preset, f"{game['turns']:.0f}", *(f"{figure:,.0f}" for figure in figures)])
    return {"Bytes of Redis of a game of four by MEMORY USAGE of its keys, and a server's CPU": [head, *rows]}


def _commits(found: Parts) -> Tables:
    rows = [
        [f"appendfsync {policy}", f"{one['a_second']:,.0f}", f"{one['redis_us']:.0f}", f"{one['log_bytes']:,.0f}"]
        for policy, one in found.items()
    ]
    return {"Commits of one Redis": [["", "a second", "us of Redis's CPU", "bytes of its log"], *rows]}


def _watchers(found: Parts) -> Tables:
    rows = []
    for count, crowd in found["crowds"].items():
        told = crowd["told_ms"] or {"median": 0.0, "max": 0.0}
        memory = crowd["watcher_bytes"]
        rows.append(
            [
                f"{int(count):,} watchers",
                f"{crowd['turn_us'] / 1e3:.2f}",
                f"{crowd['redis_turn_us'] / 1e3:.2f}",
                *(f"{told[quantile]:.0f}" for quantile in ("median", "max")),
                f"{memory / 1024:.0f}" if memory and int(count) >= LEAST_WATCHERS else "",
            ]
        )
    tables, own_games = found["tables"], found["own_games"]
    costs = [
        ["a PlayTurn in a game that the server remembers", found["warm_turn_us"], found["redis_warm_turn_us"]],
        ["a PlayTurn in another game", found["cold_turn_us"], found["redis_cold_turn_us"]],
        ["a turn of many games with a watcher each", tables["turn_us"], tables["redis_turn_us"]],
        ["a heartbeat of a watcher that is alone with its game", tables["heartbeat_us"], tables["redis_heartbeat_us"]],
        [
            "a turn of many games with a WatchOwnGames of a player each",
            own_games["turn_us"],
            own_games["redis_turn_us"],
        ],
        ["a heartbeat of a WatchOwnGames", own_games["heartbeat_us"], own_games["redis_heartbeat_us"]],
        ["a ValidateTurn at the validation listener", found["validation_us"], 0.0],
    ]
    memory = [
        ["a watcher that is alone with its game", f"{tables['watcher_bytes'] / 1024:.0f}"],
        ["a WatchOwnGames of one game", f"{own_games['watcher_bytes'] / 1024:.0f}"],
        ["its own connection, besides", f"{found['connection_bytes'] / 1024:.0f}"],
        ["a server with its processes, without watchers", f"{found['process_bytes'] / 1024:,.0f}"],
    ]
    return {
        "A turn of a game with many watchers on one server": [
            [
                "",
                "ms of CPU",
                "ms of Redis's CPU",
                "latency to a watcher, p50, ms",
                "slowest watcher, ms",
                "KiB a watcher",
            ],
            *rows,
        ],
        "Microseconds of CPU": [["", "server", "Redis"], *([name, f"{a:.0f}", f"{b:.0f}"] for name, a, b in costs)],
        "Memory of a server, KiB": [["", ""], *memory],
    }


def _lists(found: Parts) -> Tables:
    sizes = list(found)
    names = list(found[sizes[0]])
    tables = {}
    for title, key, scale in (
        ("Microseconds of Redis's CPU, by the number of games", "redis_us", 1.0),
        ("Milliseconds until the answer (median), by the number of games", "ms", 1.0),
        ("Microseconds of a server's CPU, by the number of games", "server_us", 1.0),
    ):
        rows = [
            [name, *(_figure(found[size][name][key] * scale) for size in sizes)]
            for name in names
            if key in found[sizes[0]][name]
        ]
        tables[title] = [["", *(f"{int(size):,}" for size in sizes)], *rows]
    return tables


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def _restart(found: Parts) -> Tables:
    seconds = found["called_by_second"]
    rows = [
        ["watchers", f"{found['watchers']:,}"],
        ["seconds until the last was notified", f"{found['told_seconds']['max']:.1f}"],
        ["retry delay that they received, median and longest, s", _two(found["delay_seconds"])],
        ["seconds until the last was back", f"{found['all_back_seconds']:.1f}"],
        ["attempts that failed", f"{found['retries']:,}"],
        ["most that called in a second", f"{max(seconds):,}"],
        ["milliseconds until a returning watcher has its first answer, median and longest", _two(found["answer_ms"])],
        ["microseconds of the other server's CPU for each", f"{found['server_us']:.0f}"],
        ["open files of a server with them, 100 on a connection", f"{found['open_files']:,}"],
        ["most open files here", f"{found['file_limit']:,}"],
    ]
    history: Sequence[Sequence[str]] = [[str(second), f"{count:,}"] for second, count in enumerate(seconds)]
    return {
        "A restart": [["", ""], *rows],
        "Watchers that called the other server, by second after the stop": [
            ["second", "watchers"],
            *map(list, history),
        ],
    }


def _two(values: Mapping[str, float]) -> str:
    return f"{values['median']:.1f}, {values['max']:.1f}"


def told_of(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns sentences on the conditions of the measurement."""
    return (*told_of_run({**report, "seconds": sum(report["seconds"].values())}), report["store"])
