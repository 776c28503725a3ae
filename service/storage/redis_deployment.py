"""Checks of how a Redis is deployed: what the service cannot work on, and what loses acknowledged turns.

A managed Redis, a proxy or an ACL may refuse INFO and CONFIG. Then there is nothing to say.
"""

from collections.abc import Awaitable, Mapping
from typing import Any, Final, TypeAlias

import redis.asyncio as redis
from redis import exceptions

Facts: TypeAlias = Mapping[Any, Any]
"""What a Redis tells of itself, by name; empty where it refuses to."""

CLUSTER: Final = (
    "this is a node of a Redis Cluster, which has only a part of the keys: "
    "use a Redis or Valkey with cluster-enabled no, alone or with replicas"
)
UNGUARDED: Final = (
    "the primary has replicas and min-replicas-to-write 0: when it comes back after a failover, it acknowledges turns "
    "that are lost when it becomes a replica; set min-replicas-to-write to 1 or more"
)


async def find_obstacle(client: "redis.Redis") -> str:
    """Returns why the service cannot work on a Redis, and what to do; "" if it can."""
    cluster = await _told(client.info("cluster"))
    return CLUSTER if cluster.get("cluster_enabled") == 1 else ""


async def find_risk(client: "redis.Redis") -> str:
    """Returns how a Redis may lose acknowledged turns, and what to do; "" if nothing is known."""
    replication = await _told(client.info("replication"))
    if replication.get("role") != "master" or not replication.get("connected_slaves"):
        return ""
    name = "min-replicas-to-write"
    config = await _told(client.config_get(name))
    return UNGUARDED if config.get(name) == "0" else ""


async def _told(answer: Awaitable[Facts]) -> Facts:
    """Returns an answer, or nothing if the Redis refuses to answer."""
    try:
        return await answer
    except exceptions.ResponseError:
        return {}
