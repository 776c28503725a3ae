"""The components of docs/kubernetes.md, all of them together on each overlay."""

import argparse
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import utils

from service.admin_program.client import add_connection
from service.settings import PREFIX, Settings
from support.certificates import self_signed
from support.deployment import DEPLOY, OVERLAYS, Document, container
from support.harness import ROOT
from tools.deploy_tools import KUSTOMIZE

COMPONENTS = sorted(folder.name for folder in (DEPLOY / "kubernetes" / "components").iterdir())
GAME, VALIDATION = "rummikub", "rummikub-validation"
ADMIN_PORT = 50053

Built: TypeAlias = Mapping[tuple[str, str], Document]
"""Resources by kind and name."""

each_overlay = pytest.mark.parametrize("overlay", OVERLAYS)
each_deployment = pytest.mark.parametrize("name", [GAME, VALIDATION])


def built_with_components(overlay: str, folder: Path) -> Built:
    """Returns the resources of an overlay with all components that it has not."""
    shutil.copytree(DEPLOY, folder / "deploy")
    overlays = folder / "deploy" / "kubernetes" / "overlays"
    own = yaml.safe_load((overlays / overlay / "kustomization.yaml").read_text()).get("components", ())
    added = [f"../../components/{name}" for name in COMPONENTS if f"../../components/{name}" not in own]
    (overlays / "own").mkdir()
    (overlays / "own" / "kustomization.yaml").write_text(
        yaml.safe_dump({"resources": [f"../{overlay}"], "components": added})
    )
    done = subprocess.run([KUSTOMIZE, "build", overlays / "own"], capture_output=True, text=True, check=True)
    assert not done.stderr
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(done.stdout)}


def secret_files(folder: Path) -> dict[str, Path]:
    """Returns folders with the files of each Secret that a user makes, as docs/kubernetes.md names them."""
    secrets = {name: folder / name for name in ("rummikub-keys", "rummikub-admin", "rummikub-tls")}
    for own in secrets.values():
        own.mkdir()
    (secrets["rummikub-keys"] / "keys.toml").write_text(f'[keys.web]\nsha256 = ["{"0" * 64}"]\n')
    (secrets["rummikub-admin"] / "token").write_text("a-token-of-some-length-and-more\n")
    self_signed(folder, "")
    (folder / "cert.pem").rename(secrets["rummikub-tls"] / "tls.crt")
    (folder / "key.pem").rename(secrets["rummikub-tls"] / "tls.key")
    return secrets


def settings(deployment: Document, folder: Path) -> Settings:
    """Returns what the server reads from a Deployment's own variables, with its Secrets mounted in a folder."""
    secrets, pod = secret_files(folder), deployment["spec"]["template"]["spec"]
    own = container(deployment)
    places = {mount["name"]: mount["mountPath"] for mount in own["volumeMounts"]}
    mounted = {
        places[volume["name"]]: secrets[volume["secret"]["secretName"]]
        for volume in pod["volumes"]
        if "secret" in volume
    }
    values: dict[str, Any] = {}
    for variable in own["env"]:
        path = Path(variable.get("value", ""))
        name = variable["name"].removeprefix(PREFIX).lower()
        if variable["name"].startswith(PREFIX) and "value" in variable:
            values[name] = mounted[str(path.parent)] / path.name if path.is_absolute() else variable["value"]
    assert set(values) <= set(Settings.model_fields)
    return Settings.model_validate(values)


@pytest.fixture
def with_all(overlay: str, tmp_path: Path) -> Built:
    """Returns the resources of an overlay with all components."""
    return built_with_components(overlay, tmp_path)


@each_overlay
def test_the_resources_are_valid(with_all: Built) -> None:
    for document in with_all.values():
        if document["apiVersion"] in {"v1", "apps/v1", "networking.k8s.io/v1"}:
            for version in ("1.31", utils.latest_version()):
                kubernetes_validate.validate(dict(document), version, strict=True)


@each_overlay
@each_deployment
def test_the_servers_find_keys_token_and_certificate(with_all: Built, name: str, tmp_path: Path) -> None:
    own = settings(with_all["Deployment", name], tmp_path)
    assert own.keys_file
    assert own.tls_cert
    assert own.tls_key
    assert bool(own.admin_listen) is bool(own.admin_token_file) is (name == GAME)


@each_overlay
@each_deployment
def test_the_probes_support_tls(with_all: Built, name: str) -> None:
    own = container(with_all["Deployment", name])
    for kind in ("liveness", "readiness"):  # a command would start a process every few seconds
        assert own[f"{kind}Probe"]["tcpSocket"] == {"port": "grpc"}
    started = own["startupProbe"]
    assert started["exec"]["command"] == ["python", "-m", "service", "--health"]
    assert started["timeoutSeconds"] == started["periodSeconds"] == 10
    assert started["periodSeconds"] * started["failureThreshold"] == 3600
    services = [with_all["Service", f"{name}{suffix}"] for suffix in ("", "-headless")]
    assert not any("appProtocol" in port for service in services for port in service["spec"]["ports"])


@each_overlay
def test_admin_service_has_an_address(with_all: Built) -> None:
    service = with_all["Service", "rummikub-admin"]
    game = with_all["Deployment", GAME]
    assert service["spec"]["selector"] == game["spec"]["template"]["metadata"]["labels"]
    assert service["metadata"]["namespace"] == game["metadata"]["namespace"]
    assert [port["port"] for port in service["spec"]["ports"]] == [ADMIN_PORT]
    assert {"name": "admin", "containerPort": ADMIN_PORT} in container(game)["ports"]
    listen = {variable["name"]: variable.get("value") for variable in container(game)["env"]}["RUMMIKUB_ADMIN_LISTEN"]
    assert listen == f"0.0.0.0:{ADMIN_PORT}"


@each_overlay
def test_admin_service_watches_changes_as_long_as_finished_games_are_stored(with_all: Built) -> None:
    [source] = [
        one["configMapRef"]["name"]
        for one in container(with_all["Deployment", GAME])["envFrom"]
        if "configMapRef" in one
    ]
    kept = int(with_all["ConfigMap", source]["data"]["RUMMIKUB_CHANGE_LOG_SECONDS"])
    assert kept == Settings.model_fields["finished_ttl_seconds"].default


def test_the_commands_find_admin_service_where_the_manifests_have_it() -> None:
    parser = argparse.ArgumentParser()
    add_connection(parser)
    assert parser.parse_args([]).address == f"127.0.0.1:{ADMIN_PORT}"
    assert f"`127.0.0.1:{ADMIN_PORT}`" in (ROOT / "docs" / "admin.md").read_text()


@each_overlay
def test_archive_and_traces_have_their_variables(with_all: Built) -> None:
    game = container(with_all["Deployment", GAME])
    assert {"secretRef": {"name": "rummikub-archive"}} in game["envFrom"]
    for name in (GAME, VALIDATION):
        names = {variable["name"] for variable in container(with_all["Deployment", name])["env"]}
        assert "OTEL_EXPORTER_OTLP_ENDPOINT" in names


@pytest.mark.parametrize("overlay", [overlay for overlay in OVERLAYS if overlay != "local"])
def test_the_network_lets_just_that_through(with_all: Built) -> None:
    game, validation = (with_all["NetworkPolicy", name]["spec"] for name in (GAME, VALIDATION))
    operators = {"rummikub-operator": "true"}
    [rule] = [rule for rule in game["ingress"] if rule["ports"] == [{"port": "admin"}]]
    assert rule["from"] == [
        {"podSelector": {"matchLabels": operators}},
        {"namespaceSelector": {"matchLabels": operators}},
    ]
    outside = [{port["port"] for port in rule["ports"]} for rule in game["egress"]]
    assert {443, 5432} in outside
    assert {4317} in outside
    assert [{port["port"] for port in rule["ports"]} for rule in validation["egress"]] == [{4317}, {53}]
    assert [rule["ports"] for rule in validation["ingress"]] == [[{"port": "grpc"}], [{"port": "metrics"}]]


def test_the_page_names_every_component() -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text().partition("## Components")[2].partition("\n## ")[0]
    assert sorted(line.split("`")[1] for line in page.splitlines() if line.startswith("| `")) == COMPONENTS
