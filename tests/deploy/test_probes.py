"""The probes of the manifests, asked of real servers with the settings of the manifests."""

from collections.abc import Mapping

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from support.deployment import Document, container, environment, of_kind
from support.harness import server_process

OVERLAY = "local"
ON_FREE_PORTS = {
    "RUMMIKUB_LISTEN": "127.0.0.1:0",
    "RUMMIKUB_VALIDATION_LISTEN": "127.0.0.1:0",
    "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
}
AWAY = "redis://127.0.0.1:1/0"


def deployment(name: str) -> Document:
    return of_kind(OVERLAY, "Deployment")[name]


def settings(name: str, **others: str) -> dict[str, str]:
    """Returns the variables of a Deployment, on free ports of this machine."""
    variables = environment(OVERLAY, deployment(name))
    return variables | {key: value for key, value in ON_FREE_PORTS.items() if key in variables} | others


async def answers(target: str, name: str) -> Mapping[str, bool]:
    """Returns for each probe of a Deployment whether a server passes it."""
    async with grpc.aio.insecure_channel(target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        found = {}
        for kind in ("startup", "liveness", "readiness"):
            service = container(deployment(name))[f"{kind}Probe"]["grpc"]["service"]
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
            found[kind] = answer.status == health_pb2.HealthCheckResponse.SERVING
        return found


@pytest.mark.parametrize(("store", "has_started"), [("memory://", True), (AWAY, False)])
async def test_a_store_that_is_away_stops_only_servers_that_start(store: str, has_started: bool) -> None:
    async with server_process(settings("rummikub", RUMMIKUB_REDIS_URL=store)) as server:
        found = await answers(server.target, "rummikub")
    assert found == {"startup": has_started, "liveness": True, "readiness": True}


async def test_a_validation_server_is_alive_and_ready() -> None:
    async with server_process(settings("rummikub-validation")) as server:
        assert server.validation_port != server.port
        found = await answers(server.validation_target, "rummikub-validation")
    assert all(found.values())
