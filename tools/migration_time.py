"""Measures how long `rummikub-admin migrate` makes a store refuse writes: `python -m tools.migration_time 100000`.

All games are copies of one in the lobby, each with a draft and presence, listed and with a deadline. None changes
meanwhile, so this is what comparing the games takes, and copying the keys that span games. On a busy machine, the CPU
that migrate takes of it is the better figure.
"""

import argparse
import asyncio
import time
from contextlib import ExitStack, closing
from typing import Final

import redis

from engine.melding.ruleset import Ruleset
from engine.turns import create
from service.model.change import NO_ETAG, Commit, lineage
from service.model.presence import Sighting
from service.model.record import Lifetimes, Record
from service.storage.lists import list_member, lists_of
from service.storage.redis.keys import MARK, ONE_PART, deadlines_key, keys_of, list_key
from service.storage.redis.migration import migrate
from service.storage.redis.store import RedisStore, connect
from service.storage.stored_events import encode_change
from tools.redis_cluster import redis_cluster
from tools.redis_servers import RedisServer

TEMPLATE: Final = "f" * 32
BATCH: Final = 1_000
DAY_MS: Final = 86_400_000


def main() -> None:
    """Migrates games to one Redis and to a cluster."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", type=int, nargs="?", default=100_000)
    games = parser.parse_args().games
    with ExitStack() as stack:
        source, one = (stack.enter_context(closing(RedisServer())) for _ in range(2))
        for server in (source, one):
            server.start()
        cluster = stack.enter_context(redis_cluster())
        asyncio.run(fill(source, games))
        for name, target in (("one Redis", one.url), ("a cluster of three primaries", cluster.url)):
            stopwatch = CpuStopwatch()
            moved = asyncio.run(migrate(source.url, target, stopwatch.progress))
            seconds = f"{moved.seconds:.1f} s, CPU {stopwatch.seconds:.1f} s"
            print(f"{moved.games:,} games to {name}: no writes for {seconds}", flush=True)
            source.execute("CONFIG", "SET", "min-replicas-to-write", 0)
            source.execute("DEL", MARK)


class CpuStopwatch:
    """Measures the CPU of this process from the moment at which the source refuses writes."""

    def __init__(self) -> None:
        self._started = 0.0

    def progress(self, line: str) -> None:
        """Prints a line of a migration; starts at the one about refused writes."""
        print(line, flush=True)
        if "refuses writes" in line:
            self._started = time.process_time()

    @property
    def seconds(self) -> float:
        """The CPU since then."""
        return time.process_time() - self._started


async def fill(server: RedisServer, games: int) -> None:
    """Stores games."""
    store = RedisStore(connect(server.url), Lifetimes(lobby=86_400, started=86_400, finished=86_400), 10_000)
    now_ms = (await store.load(TEMPLATE)).now_ms
    game, change = create(Ruleset()).game, encode_change(1, now_ms, bytes(16), ())
    record = Record(TEMPLATE, game, lineage(NO_ETAG, change), (), now_ms, now_ms)
    await store.commit(Commit(NO_ETAG, record, change))
    await store.report_presence(TEMPLATE, "server", {1: Sighting.OPEN})
    await store.close()
    with closing(server.client()) as client:
        client.hset(keys_of(TEMPLATE)[3], mapping={"draft": bytes(200), "number": 1})
        stored = {key: client.dump(key) for key in keys_of(TEMPLATE)}
        dumps = {key.replace(TEMPLATE, "{}"): dump for key, dump in stored.items() if dump}
        for first in range(0, games, BATCH):
            write(client, dumps, record, [f"{number:032x}" for number in range(first, min(games, first + BATCH))])
        client.delete(*keys_of(TEMPLATE))


def write(client: redis.Redis, dumps: dict[str, bytes], record: Record, ids: list[str]) -> None:
    """Stores copies of a game, each in its list and with a deadline."""
    pipeline = client.pipeline(transaction=False)
    for game_id in ids:
        for key, dump in dumps.items():
            pipeline.restore(key.replace("{}", game_id), DAY_MS, dump)
    member = list_member(record)
    for name in lists_of(record):
        pipeline.zadd(list_key(ONE_PART[0], name), dict.fromkeys((member.replace(TEMPLATE, one) for one in ids), 0))
    pipeline.zadd(deadlines_key(ONE_PART[0]), dict.fromkeys(ids, record.created_ms + DAY_MS))
    pipeline.execute()


if __name__ == "__main__":
    main()
