"""Each overlay keeps what docs/kubernetes.md promises."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from load.capacity.machines import Assumptions
from load.capacity.manifests import costs_of, sizes_of
from rummikub.v1 import (
    analysis_service_pb2,
    challenge_service_pb2,
    game_service_pb2,
    puzzle_service_pb2,
    record_service_pb2,
    turn_service_pb2,
    validation_service_pb2,
)
from service.program import KILL_SECONDS
from service.runtime.redis_url import Address, Sentinel, parse_redis_url
from service.server import STATELESS
from service.settings import PREFIX, Settings
from support.deployment import (
    DEPLOY,
    OPERATED,
    OVERLAYS,
    PASSWORD,
    PLAIN_RULES,
    Document,
    alerts,
    built,
    container,
    environment,
    of_kind,
    promtool,
    values_of,
)
from support.harness import ROOT
from tools import names
from tools.deploy_tools import KUSTOMIZE

SERVICES = [
    module.DESCRIPTOR.services_by_name[name].full_name
    for name, module in (
        ("AnalysisService", analysis_service_pb2),
        ("ChallengeService", challenge_service_pb2),
        ("GameService", game_service_pb2),
        ("PuzzleService", puzzle_service_pb2),
        ("RecordService", record_service_pb2),
        ("TurnService", turn_service_pb2),
        ("ValidationService", validation_service_pb2),
    )
]
NAMES = ("rummikub", "rummikub-validation")
SCALED = tuple(overlay for overlay in OVERLAYS if overlay != "local")

both = pytest.mark.parametrize("name", NAMES)
each_overlay = pytest.mark.parametrize("overlay", OVERLAYS)
each_scaled_overlay = pytest.mark.parametrize("overlay", SCALED)
operated = pytest.mark.parametrize("overlay", OPERATED)


def deployment(overlay: str, name: str) -> Document:
    return of_kind(overlay, "Deployment")[name]


def pod(overlay: str, name: str) -> dict[str, Any]:
    return dict(deployment(overlay, name)["spec"]["template"]["spec"])


def settings(overlay: str, name: str) -> Settings:
    """Returns the settings of a Deployment, as the server reads them."""
    variables = environment(overlay, deployment(overlay, name))
    return Settings.model_validate(
        {variable.removeprefix(PREFIX).lower(): value for variable, value in variables.items()}
    )


def port(address: str) -> int:
    return int(address.rpartition(":")[2])


def is_open(address: str) -> bool:
    return address.startswith("0.0.0.0:")


def game_address(overlay: str, name: str) -> str:
    """Returns the address that a Deployment's Services lead to."""
    own = settings(overlay, name)
    return own.validation_listen if name == "rummikub-validation" else own.listen


@each_overlay
@both
def test_every_variable_is_a_setting(overlay: str, name: str) -> None:
    variables = environment(overlay, deployment(overlay, name))
    known = {f"{PREFIX}{field.upper()}" for field in Settings.model_fields}
    assert set(variables) <= known


@each_overlay
def test_only_the_game_servers_have_a_store_that_lasts(overlay: str) -> None:
    assert settings(overlay, "rummikub-validation").redis_url == "memory://"
    store = settings(overlay, "rummikub").redis_url
    if overlay == "local":
        assert not store
        [mounted] = [
            mount["mountPath"]
            for mount in container(deployment(overlay, "rummikub"))["volumeMounts"]
            if mount["name"] == "data"
        ]
        assert mounted == f"/app/{settings(overlay, 'rummikub').data_dir}"
        assert f"WORKDIR {mounted.rpartition('/')[0]}\n" in (ROOT / "Dockerfile").read_text()
    else:
        scheme = {"redis-cluster": "redis+cluster", "redis-sentinel": "redis+sentinel"}.get(overlay, "redis")
        assert store.startswith(f"{scheme}://")


@each_overlay
@both
def test_the_ports_are_those_of_the_settings(overlay: str, name: str) -> None:
    own = settings(overlay, name)
    served = {"grpc": game_address(overlay, name), "metrics": own.metrics_listen}
    assert all(map(is_open, served.values()))
    ports = {port["name"]: port["containerPort"] for port in container(deployment(overlay, name))["ports"]}
    assert ports == {name: port(address) for name, address in served.items()}
    services = of_kind(overlay, "Service")
    for service in (services[name], services[f"{name}-headless"]):
        assert {entry["targetPort"]: entry["port"] for entry in service["spec"]["ports"]}.items() <= ports.items()
    exposed = (ROOT / "Dockerfile").read_text().partition("EXPOSE ")[2].partition("\n")[0].split()
    assert set(map(str, ports.values())) <= set(exposed)


@each_overlay
def test_validation_servers_open_nothing_but_validation(overlay: str) -> None:
    assert settings(overlay, "rummikub-validation").listen.startswith("127.0.0.1:")


@each_overlay
@both
def test_the_probes_ask_the_right_services(overlay: str, name: str) -> None:
    own = container(deployment(overlay, name))
    probes = {kind: own[f"{kind}Probe"]["grpc"] for kind in ("startup", "liveness", "readiness")}
    assert {probe["port"] for probe in probes.values()} == {port(game_address(overlay, name))}
    for kind in ("liveness", "readiness"):  # a store that is away must not restart servers, nor all be unready
        assert probes[kind]["service"] in STATELESS
    started = "rummikub.v1.GameService" if name == "rummikub" else "rummikub.v1.ValidationService"
    assert probes["startup"]["service"] == started
    assert settings(overlay, name).tls_cert is None, "the kubelet's gRPC probes know no TLS"


@each_overlay
@both
def test_the_grace_period_is_longer_than_a_stop(overlay: str, name: str) -> None:
    own = settings(overlay, name)
    assert own.lame_duck_seconds >= 5
    stop = own.lame_duck_seconds + own.drain_seconds + KILL_SECONDS
    assert pod(overlay, name)["terminationGracePeriodSeconds"] >= stop + 5


@each_overlay
@both
def test_process_1_is_an_init(overlay: str, name: str) -> None:
    """The image has none; docs/settings.md says why one is needed."""
    assert pod(overlay, name)["shareProcessNamespace"] is True
    assert "init: true" in (ROOT / "compose.yaml").read_text()


@each_overlay
@both
def test_servers_have_no_privileges(overlay: str, name: str) -> None:
    own = container(deployment(overlay, name))
    assert own["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    security = pod(overlay, name)["securityContext"]
    assert security["runAsNonRoot"]
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    user = f"USER {security['runAsUser']}:{security['runAsGroup']}\n"
    assert user in (ROOT / "Dockerfile").read_text()
    assert not pod(overlay, name)["automountServiceAccountToken"]
    assert {"cpu", "memory"} <= set(own["resources"]["requests"])
    assert "memory" in own["resources"]["limits"]


@each_overlay
def test_the_namespace_enforces_it(overlay: str) -> None:
    [namespace] = of_kind(overlay, "Namespace").values()
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    spaces = {document["metadata"].get("namespace") for document in built(overlay) if document["kind"] != "Namespace"}
    assert spaces == {namespace["metadata"]["name"]}


@each_scaled_overlay
@both
def test_servers_are_replaced_one_by_one_and_spread(overlay: str, name: str) -> None:
    spec = deployment(overlay, name)["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert spec["minReadySeconds"] >= 10
    assert "replicas" not in spec  # the autoscaler's
    spread = {constraint["topologyKey"] for constraint in pod(overlay, name)["topologySpreadConstraints"]}
    assert spread == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
    assert of_kind(overlay, "PodDisruptionBudget")[name]["spec"]["maxUnavailable"] == 1


@each_scaled_overlay
@both
def test_servers_scale_with_calls_in_progress_and_cpu(overlay: str, name: str) -> None:
    spec = of_kind(overlay, "HorizontalPodAutoscaler")[name]["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    assert spec["minReplicas"] >= 2
    calls, cpu = spec["metrics"]
    assert calls["pods"]["metric"]["name"] == "rummikub_calls_in_progress"
    assert int(calls["pods"]["target"]["averageValue"]) < settings(overlay, name).max_calls / 2
    assert cpu["resource"]["name"] == "cpu"


@each_overlay
def test_selectors_select_the_pods_of_their_deployment(overlay: str) -> None:
    for document in built(overlay):
        if document["kind"] not in {"Deployment", "Service", "PodDisruptionBudget"}:
            continue
        name = document["metadata"]["name"].removesuffix("-headless")
        selector = document["spec"]["selector"]
        labels = deployment(overlay, name)["spec"]["template"]["metadata"]["labels"]
        assert selector.get("matchLabels", selector) == labels
        for constraint in values_of(document, "topologySpreadConstraints"):
            assert all(entry["labelSelector"]["matchLabels"] == labels for entry in constraint)


@each_scaled_overlay
def test_only_callers_and_prometheus_reach_the_servers(overlay: str) -> None:
    policies = of_kind(overlay, "NetworkPolicy")
    for name in NAMES:
        spec = policies[name]["spec"]
        labels = deployment(overlay, name)["spec"]["template"]["metadata"]["labels"]
        assert spec["podSelector"]["matchLabels"] == labels
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        assert [rule["ports"] for rule in spec["ingress"]] == [[{"port": "grpc"}], [{"port": "metrics"}]]
    assert not policies["rummikub-validation"]["spec"]["egress"]


@pytest.mark.parametrize(
    ("overlay", "ports"), [("redis-address", {6379}), ("redis-sentinel", {6379, 26379}), ("redis-cluster", {6379})]
)
def test_the_game_servers_reach_the_store_and_names(overlay: str, ports: set[int]) -> None:
    egress = of_kind(overlay, "NetworkPolicy")["rummikub"]["spec"]["egress"]
    assert {entry["port"] for rule in egress for entry in rule["ports"]} == {53, *ports}


def test_the_url_names_every_sentinel() -> None:
    """The newest of all answers counts, so one name for all Sentinels is not enough."""
    url = parse_redis_url(settings("redis-sentinel", "rummikub").redis_url)
    assert isinstance(url, Sentinel)
    operated = of_kind("redis-sentinel", "RedisSentinel")["rummikub-redis"]
    name = f"{operated['metadata']['name']}-sentinel"
    assert url.addresses == tuple(
        Address(f"{name}-{number}.{name}-headless", 26_379) for number in range(operated["spec"]["clusterSize"])
    )
    assert url.name == operated["spec"]["redisSentinelConfig"]["masterGroupName"]


@each_scaled_overlay
def test_the_gateway_routes_every_service(overlay: str) -> None:
    [route] = of_kind(overlay, "GRPCRoute").values()
    backends: dict[str, tuple[str, int]] = {}
    for rule in route["spec"]["rules"]:
        [backend] = rule["backendRefs"]
        for match in rule["matches"]:
            backends[match["method"]["service"]] = backend["name"], backend["port"]
    services = of_kind(overlay, "Service")
    assert sorted(backends) == SERVICES
    for service, (name, number) in backends.items():
        assert name == ("rummikub-validation" if "Validation" in service else "rummikub")
        assert number in {entry["port"] for entry in services[name]["spec"]["ports"]}


@each_scaled_overlay
@both
def test_no_pod_can_evade_the_limits_by_address(overlay: str, name: str) -> None:
    own = settings(overlay, name)
    assert own.trusted_proxies == (), "only who deploys knows the pods of the gateway"
    limits = {
        field for field, info in Settings.model_fields.items() if "one client address" in (info.description or "")
    }
    assert {"peer_share", "games_per_minute", "join_guesses_per_minute"} <= limits
    assert {field: getattr(own, field) for field in limits} == {
        field: Settings.model_fields[field].default for field in limits
    }


@each_overlay
@both
def test_clients_that_balance_by_dns_find_new_servers(overlay: str, name: str) -> None:
    assert settings(overlay, name).max_connection_age_seconds == 300
    configs = [
        json.loads(text)
        for page in ("kubernetes.md", "concepts/deployment.md")
        for text in re.findall(r"```json\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    ]
    assert len(configs) == 2
    assert configs[0] == configs[1]
    assert {"loadBalancingConfig", "healthCheckConfig"} == set(configs[0])


def redis_configuration(overlay: str) -> dict[str, str]:
    """Returns the configuration of an operated Redis, by directive."""
    text = of_kind(overlay, "ConfigMap")["rummikub-redis"]["data"]["redis-additional.conf"]
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return dict(line.split(" ", 1) for line in lines)


@operated
def test_an_operated_redis_keeps_what_it_acknowledged(overlay: str) -> None:
    expected = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}
    if overlay == "redis-sentinel":
        expected |= {"min-replicas-to-write": "1", "min-replicas-max-lag": "10"}
    else:
        expected |= {"cluster-node-timeout": "5000", "cluster-require-full-coverage": "no"}
    assert expected.items() <= redis_configuration(overlay).items()
    named = {
        value
        for document in built(overlay)
        if document["apiVersion"].startswith("redis.redis.")
        for value in values_of(document, "additionalRedisConfig")
    }
    assert named == {"rummikub-redis"}


@pytest.mark.parametrize("overlay", [overlay for overlay in OVERLAYS if overlay != "local"])
def test_every_overlay_with_a_redis_connects_with_a_password(overlay: str) -> None:
    assert parse_redis_url(settings(overlay, "rummikub").redis_url).options["password"]


def test_the_redis_in_compose_has_the_password_that_the_service_uses() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    redis = services["redis"]
    assert "ports" not in redis
    password = redis["command"][redis["command"].index("--requirepass") + 1]
    assert password.startswith("${REDIS_PASSWORD:-")
    assert redis["environment"]["REDISCLI_AUTH"] == password
    assert services["service"]["environment"]["RUMMIKUB_REDIS_URL"] == f"redis://:{password}@redis:6379/0"


@operated
def test_an_operated_redis_and_its_sentinels_have_the_password_that_the_servers_use(overlay: str) -> None:
    passwords = [
        password
        for document in built(overlay)
        if document["apiVersion"].startswith("redis.redis.")
        for name in ("redisSecret", "redisReplicationPassword")
        for password in values_of(document, name)
    ]
    own = {"name": "rummikub-redis", "key": "password"}
    assert passwords == ([own, own, {"secretKeyRef": own}] if overlay == "redis-sentinel" else [own])
    url = parse_redis_url(settings(overlay, "rummikub").redis_url)
    assert url.options["password"] == PASSWORD
    if isinstance(url, Sentinel):
        assert url.sentinel_options["password"] == PASSWORD


@operated
def test_a_turn_is_acknowledged_when_one_of_two_replicas_has_it(overlay: str) -> None:
    assert settings(overlay, "rummikub").redis_replicas == 1
    if overlay == "redis-sentinel":
        assert of_kind(overlay, "RedisReplication")["rummikub-redis"]["spec"]["clusterSize"] == 1 + 2
    else:
        spec = of_kind(overlay, "RedisCluster")["rummikub-redis"]["spec"]
        assert spec["redisFollower"]["replicas"] == 2 * spec["clusterSize"]


@operated
def test_an_operated_redis_refuses_writes_before_its_container_is_killed(overlay: str) -> None:
    [limit] = {
        container["resources"]["limits"]["memory"]
        for document in built(overlay)
        if document["kind"] in {"RedisCluster", "RedisReplication"}
        for container in values_of(document, "kubernetesConfig")
    }
    megabytes = int(redis_configuration(overlay)["maxmemory"].removesuffix("mb"))
    assert 0.5 < megabytes / (int(limit.removesuffix("Gi")) * 1024) < 0.65


@pytest.mark.parametrize("overlay", ["redis-address", *OPERATED])
def test_the_sizes_are_those_of_the_model_for_the_games_that_are_stated(overlay: str) -> None:
    stated = "base/game.yaml" if overlay == "redis-address" else f"overlays/{overlay}/kustomization.yaml"
    command = r"load\.capacity\.manifests --games (\d+)(?: --primaries (\d+))?$"
    [(games, primaries)] = re.findall(command, (DEPLOY / "kubernetes" / stated).read_text(), re.MULTILINE)
    page = (ROOT / "docs" / "capacity.md").read_text()
    sizes = sizes_of(costs_of(page), Assumptions(), int(games), int(primaries or 1))
    pods = container(deployment(overlay, "rummikub"))["resources"]
    assert (pods["requests"]["memory"], pods["limits"]["memory"]) == (sizes.pod_request, sizes.pod_limit)
    scaling = of_kind(overlay, "HorizontalPodAutoscaler")["rummikub"]["spec"]
    assert scaling["maxReplicas"] == sizes.max_replicas
    assert scaling["metrics"][0]["pods"]["target"]["averageValue"] == sizes.calls_a_pod
    row = f"| `{overlay}` | {int(games):,} | {sizes.max_replicas} |"
    memory = f"{int(sizes.maxmemory.removesuffix('mb')):,} MiB"
    [found] = [line for line in (ROOT / "docs" / "kubernetes.md").read_text().splitlines() if line.startswith(row)]
    assert memory in found
    assert f"{sizes.redis_limit.removesuffix('Gi')} GiB" in found
    if overlay in OPERATED:
        kind = "RedisCluster" if overlay == "redis-cluster" else "RedisReplication"
        spec = of_kind(overlay, kind)["rummikub-redis"]["spec"]
        assert spec["clusterSize"] == int(primaries or 3)
        memory = spec["kubernetesConfig"]["resources"]
        assert (memory["requests"]["memory"], memory["limits"]["memory"]) == (sizes.redis_request, sizes.redis_limit)
        assert redis_configuration(overlay)["maxmemory"] == sizes.maxmemory
        volume = spec["storage"]["volumeClaimTemplate"]["spec"]
        assert volume["resources"]["requests"]["storage"] == sizes.redis_storage


@operated
def test_an_operated_redis_spreads_over_nodes_and_zones(overlay: str) -> None:
    rules = {
        (*constraint["labelSelector"]["matchLabels"].values(), constraint["topologyKey"]): constraint[
            "whenUnsatisfiable"
        ]
        for document in built(overlay)
        if document["kind"].startswith("Redis")
        for constraints in values_of(document, "topologySpreadConstraints")
        for constraint in constraints
    }
    apps = {app for app, _ in rules}
    assert {rules[app, "topology.kubernetes.io/zone"] for app in apps} == {"ScheduleAnyway"}
    hard = {app for app in apps if rules[app, "kubernetes.io/hostname"] == "DoNotSchedule"}
    assert hard == apps - {"rummikub-redis-follower"}


def test_no_node_has_a_primary_and_all_its_replicas() -> None:
    cluster = of_kind("redis-cluster", "RedisCluster")["rummikub-redis"]
    separated = cluster["metadata"]["annotations"]["redisclusters.redis.redis.opstreelabs.in/role-anti-affinity"]
    assert separated == "true"


def test_the_image_is_that_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for overlay in OVERLAYS:
        wanted = "latest" if overlay == "local" else version
        for name in NAMES:
            assert container(deployment(overlay, name))["image"] == f"{names.values()['image']}:{wanted}"


@pytest.mark.parametrize(("overlay", "tag"), [("local", "latest"), ("redis-cluster", names.values()["version"])])
def test_the_overlays_follow_another_name_of_the_image(overlay: str, tag: str, tmp_path: Path) -> None:
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    image = "images.example:5000/tiles/rules"
    for path, text in list(names.renamed(tmp_path, "image", image)):
        path.write_text(text)
    folder = tmp_path / "deploy" / "kubernetes" / "overlays" / overlay
    done = subprocess.run([KUSTOMIZE, "build", folder], capture_output=True, text=True, check=True)
    deployments = [one for one in yaml.safe_load_all(done.stdout) if one["kind"] == "Deployment"]
    assert {container(one)["image"] for one in deployments} == {f"{image}:{tag}"}


def examples() -> list[str]:
    """Returns the YAML of docs/kubernetes.md."""
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    return [dedent(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]


def test_the_jobs_of_the_page_are_those_of_the_service_monitor(tmp_path: Path) -> None:
    [example] = [text for text in examples() if "scrape_configs:" in text]
    (tmp_path / "rules.yaml").write_text(PLAIN_RULES.read_text())
    (tmp_path / "prometheus.yml").write_text(example)
    promtool("check", "config", "--lint-fatal", tmp_path / "prometheus.yml")
    jobs = {job["job_name"]: job["dns_sd_configs"][0] for job in yaml.safe_load(example)["scrape_configs"]}
    services = of_kind("redis-cluster", "Service")
    for name, target in jobs.items():
        service = services[name]
        assert target["names"] == [f"{name}.{service['metadata']['namespace']}"]
        [number] = [port["port"] for port in service["spec"]["ports"] if port["name"] == "metrics"]
        assert target["port"] == number
    named = {job for alert in alerts() for job in re.findall(r'job="([^"]+)"', alert["expr"])}
    assert set(jobs) == named


def test_the_overlay_of_the_page_can_be_built(tmp_path: Path) -> None:
    [example] = [text for text in examples() if "kind: Kustomization" in text]
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    own = tmp_path / "deploy" / "kubernetes" / "overlays" / "own"
    own.mkdir()
    (own / "kustomization.yaml").write_text(example)
    done = subprocess.run([KUSTOMIZE, "build", own], capture_output=True, text=True, check=True)
    documents = list(yaml.safe_load_all(done.stdout))
    [route] = [document for document in documents if document["kind"] == "GRPCRoute"]
    assert route["spec"]["parentRefs"] == [{"name": "public", "namespace": "gateways"}]
    labels = [one["metadata"]["labels"] for one in documents if one["kind"] in {"PrometheusRule", "ServiceMonitor"}]
    assert labels == [{"release": "kube-prometheus-stack"}] * 2
    images = {container(document)["image"] for document in documents if document["kind"] == "Deployment"}
    assert all(image.startswith("registry.example.com/rummikub:") for image in images)
    maps = [document["data"] for document in documents if document["kind"] == "ConfigMap"]
    assert [data["RUMMIKUB_TRUSTED_PROXIES"] for data in maps if "RUMMIKUB_LISTEN" in data] == ["10.20.30.0/28"] * 2
