"""Checks of a Redis deployment: settings that the service cannot work with, or that lose acknowledged turns.

A managed Redis, a proxy or an ACL may refuse INFO and CONFIG. Then the checks find nothing.
"""

from collections.abc import Awaitable, Mapping
from typing import Any, Final, TypeAlias

import redis.asyncio as redis
from redis import exceptions

Facts: TypeAlias = Mapping[Any, Any]
"""The fields of an INFO or CONFIG reply; empty if Redis refuses the command."""

CLUSTER: Final = (
    "this Redis is a Cluster node, which holds only some of the keys: "
    "use a Redis or Valkey with cluster-enabled no, with or without replicas"
)
UNGUARDED: Final = (
    "the primary has replicas but min-replicas-to-write is 0: after a failover it can acknowledge turns "
    "that are lost when it becomes a replica; set min-replicas-to-write to 1 or more"
)


async def find_obstacle(client: "redis.Redis") -> str:
    """Returns why the service cannot work with a Redis, and the remedy; "" if it can."""
    cluster = await _facts(client.info("cluster"))
    return CLUSTER if cluster.get("cluster_enabled") == 1 else ""


async def find_risk(client: "redis.Redis") -> str:
    """Returns how a Redis may lose acknowledged turns, and the remedy; "" if no risk is known."""
    replication = await _facts(client.info("replication"))
    if replication.get("role") != "master" or not replication.get("connected_slaves"):
        return ""
    name = "min-replicas-to-write"
    config = await _facts(client.config_get(name))
    return UNGUARDED if config.get(name) == "0" else ""


async def _facts(reply: Awaitable[Facts]) -> Facts:
    """Returns a reply, or no facts if Redis refuses the command."""
    try:
        return await reply
    except exceptions.ResponseError:
        return {}
