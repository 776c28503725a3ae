"""The server, in a process that kills itself: `python mortal_server.py MOMENT`, before the operation that MOMENT names.

Moments: `commit`, of the change that ends a game; `archive`, of a game in the outbox; `acknowledge`, of its entry;
`never`. The entries of a dead server are taken over after a second, not ten.
"""

import os
import signal
import sys
from collections.abc import Sequence

from service import program
from service.model.change import Commit, Outcome
from service.model.outbox import OutboxEntry
from service.model.record import Record
from service.operator.archive import archived_game, worker
from service.operator.archive.archived_game import ArchivedGame
from service.storage.redis import store as redis_store
from service.storage.redis.games import RedisGames
from service.storage.redis.outbox import RedisOutbox
from service.storage.store import Store


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class MortalGames(RedisGames):
    """Games whose server dies before the end of one is stored."""

    async def commit(self, commit: Commit) -> Outcome:
        if MOMENT == "commit" and commit.record.state.is_over:
            die()
        return await super().commit(commit)


class MortalOutbox(RedisOutbox):
    """An outbox whose server dies before an archived game is acknowledged."""

    async def claim(self, limit: int, claim_ms: int) -> Sequence[OutboxEntry]:
        return () if MOMENT == "commit" else await super().claim(limit, claim_ms)

    async def acknowledge(self, entry: OutboxEntry) -> None:
        if MOMENT == "acknowledge":
            die()
        await super().acknowledge(entry)


async def collect(store: Store, record: Record) -> ArchivedGame:
    if MOMENT == "archive":
        die()
    return await whole_collect(store, record)


if __name__ == "__main__":
    MOMENT = sys.argv.pop()
    whole_collect = archived_game.collect
    vars(worker).update(collect=collect, CLAIM_MS=1_000)
    vars(redis_store).update(RedisGames=MortalGames, RedisOutbox=MortalOutbox)
    program.serve()
