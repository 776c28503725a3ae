"""Checks of a Redis deployment: what the service cannot work with, and settings that lose acknowledged turns.

A managed Redis, a proxy or an ACL may refuse INFO and CONFIG. Then the checks find nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import redis.asyncio as redis
from redis import exceptions

from service.runtime.redis_url import Address
from service.storage.redis.keys import MARK, UNFINISHED
from service.storage.redis.sentinel import has_sentinels

Facts: TypeAlias = Mapping[Any, Any]
"""The fields of an INFO or CONFIG reply; empty if Redis refuses the command."""

CLUSTER: Final = (
    "this Redis is a node of a Redis Cluster, which has only some of the keys: "
    "write redis+cluster://host:port,host:port with some nodes of the cluster"
)
MOVED_AWAY: Final = (
    "the games of this store were moved to another one: set RUMMIKUB_REDIS_URL, or RUMMIKUB_DATA_DIR, to the new store"
)
HALF_MOVED: Final = (
    "a migration or a restore to this store has not finished: run rummikub-admin migrate or restore again, or empty it"
)
NO_CLUSTER: Final = "this Redis is no node of a Redis Cluster: write redis://host:port/database"
GUARD: Final = "min-replicas-to-write"
MAX_LAG: Final = "min-replicas-max-lag"
"""If it is 0, Redis ignores GUARD."""
REFUSE_ALL: Final = 1_000_000
"""A value of GUARD with which a Redis refuses every write, in scripts too: no Redis has as many replicas."""
_LOSES_TURNS: Final = "after a failover it can acknowledge turns that are lost when it becomes a replica"
_REMEDY: Final = f"set {GUARD} to 1 or more, and {MAX_LAG} to 10 or less"
MOST_LAG: Final = 10
"""The most seconds of MAX_LAG that causes no warning; Redis's default."""
UNGUARDED: Final = f"the primary has replicas but {GUARD} or {MAX_LAG} is 0: {_LOSES_TURNS}; {_REMEDY}"
UNGUARDED_SENTINEL: Final = (
    f"Sentinels watch this primary but its {GUARD} or {MAX_LAG} is 0: {_LOSES_TURNS}; "
    f"{_REMEDY}, on the primary and on all replicas"
)
UNCHECKED_SENTINEL: Final = (
    f"Sentinels watch this primary but it refuses CONFIG GET, so {GUARD} could not be checked: "
    "make sure that it is 1 or more on the primary and on all replicas"
)
LAGGING: Final = (
    f"{MAX_LAG} is more than {MOST_LAG}: a primary without its replicas acknowledges turns for as many seconds, which "
    f"are lost after a failover; set it to {MOST_LAG} or less"
)
NOT_ON_DISK: Final = (
    "appendonly is no: if this Redis restarts, turns since its last snapshot are lost, on its replicas too; "
    "set appendonly to yes"
)
EVICTING: Final = "maxmemory-policy is not noeviction: games are lost when the memory is full; set it to noeviction"


async def find_obstacle(client: "redis.Redis", *, is_cluster: bool = False) -> str:
    """Returns why the service cannot work with a Redis, and the remedy; "" if it can.

    Args:
        client: Its client.
        is_cluster: Whether it should be a node of a Redis Cluster.
    """
    cluster = await _facts(client.info("cluster"))
    if cluster.get("cluster_enabled") == (0 if is_cluster else 1):
        return NO_CLUSTER if is_cluster else CLUSTER
    return UNGUARDED_SENTINEL if has_sentinels(client) and await _is_unguarded(client) else ""


async def find_move(get: Callable[[str], Awaitable[Any]]) -> str:
    """Returns why a store's games are not to be used, as a migration has left it; "" if they are.

    Args:
        get: Returns the value of a key.
    """
    for key, move in ((MARK, MOVED_AWAY), (UNFINISHED, HALF_MOVED)):
        if await _or_none(get(key)) is not None:
            return move
    return ""


async def find_risk(client: "redis.Redis", *, is_cluster: bool = False) -> str:
    """Returns how a Redis may lose acknowledged turns, and the remedies; "" if no risk is known.

    A node of a cluster needs no min-replicas-to-write: it stops by itself when it cannot reach most primaries.
    """
    risks = (
        "" if is_cluster else await _replication_risk(client),
        NOT_ON_DISK if await _setting(client, "appendonly") == "no" else "",
        "" if await _setting(client, "maxmemory-policy") in {"noeviction", None} else EVICTING,
    )
    return "; ".join(filter(None, risks))


def replicas_in(replication: Facts) -> dict[Address, Facts]:
    """Returns the replicas in INFO replication of a primary, by address."""
    found = [replication[f"slave{number}"] for number in range(replication["connected_slaves"])]
    return {Address(replica["ip"], replica["port"]): replica for replica in found}


async def _replication_risk(client: "redis.Redis") -> str:
    if has_sentinels(client):
        if await _setting(client, GUARD) is None:
            return UNCHECKED_SENTINEL
    else:
        replication = await _facts(client.info("replication"))
        if replication.get("role") != "master" or not replication.get("connected_slaves"):
            return ""
        if await _is_unguarded(client):
            return UNGUARDED
    return LAGGING if int(await _setting(client, MAX_LAG) or 0) > MOST_LAG else ""


async def _is_unguarded(client: "redis.Redis") -> bool:
    """Returns whether a primary accepts writes without replicas. If MAX_LAG is 0, Redis ignores GUARD."""
    return "0" in {await _setting(client, GUARD), await _setting(client, MAX_LAG)}


async def _setting(client: "redis.Redis", name: str) -> str | None:
    """Returns a setting, or None if the Redis does not show it."""
    value: str | None = (await _facts(client.config_get(name))).get(name)
    return value


async def _facts(reply: Awaitable[Facts]) -> Facts:
    """Returns a reply, or no facts if Redis refuses the command."""
    return await _or_none(reply) or {}


async def _or_none(reply: Awaitable[Any]) -> Any:  # noqa: ANN401 - any reply
    """Returns a reply, or None if Redis refuses the command."""
    try:
        return await reply
    except exceptions.ResponseError:
        return None
