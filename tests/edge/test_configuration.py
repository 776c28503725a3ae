"""Every form of the edge's configuration is valid, and agrees with what it is made from."""

import json
import re
import socket
import ssl
import subprocess
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
import yaml
from google.api import annotations_pb2

import openapi
from service.grpc_api.services import SERVICES
from service.settings import PREFIX, Settings
from support.certificates import self_signed
from support.harness import CONTRACT, ROOT, until
from tools import edge_config, web
from tools.edge_config import DEPLOY, PAGE_FILES, PLAIN, TLS
from tools.servers import free_port

WITHOUT_URL = {"StreamValidateTurns": "HTTP has no stream of requests"}


def local_paths(text: str, folder: Path) -> str:
    """Returns a configuration for production with paths of this machine and free ports."""
    inline = json.dumps(edge_config.script(edge_config.OPENAPI))
    text = text.replace("{filename: /etc/envoy/json.lua}", f"{{inline_string: {inline}}}")
    text = text.replace("/srv/page/", f"{DEPLOY}/page/").replace("/etc/envoy/tls/tls.crt", f"{folder}/cert.pem")
    text = text.replace("/etc/envoy/tls/tls.key", f"{folder}/key.pem").replace("/etc/envoy/", f"{DEPLOY}/")
    return text.replace("address: 0.0.0.0, port_value: 8080", "address: 127.0.0.1, port_value: 0")


@pytest.mark.parametrize("file", [PLAIN, TLS], ids=lambda file: file.name)
def test_envoy_accepts_the_configuration_without_warnings(file: Path, tmp_path: Path) -> None:
    self_signed(tmp_path, "DNS:localhost")
    configuration = tmp_path / "envoy.yaml"
    configuration.write_text(local_paths(file.read_text(), tmp_path))
    checked = subprocess.run(
        [web.ENVOY, "--mode", "validate", "--config-path", configuration, "--log-level", "warn"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    assert not checked.stderr


def test_the_configuration_with_tls_is_made_from_the_one_without() -> None:
    assert TLS.read_text() == edge_config.with_tls(), "run `make edge-config`"


def test_the_description_of_the_json_api_is_that_of_the_contract() -> None:
    for path, text in openapi.generated().items():
        assert path.read_text() == text, "run `make openapi`"


def test_every_rpc_has_a_url_or_a_reason_why_not() -> None:
    methods = [method for service in CONTRACT for method in service.methods]
    without = {method.name for method in methods if not method.GetOptions().HasExtension(annotations_pb2.http)}
    assert without == set(WITHOUT_URL)


def test_every_service_is_transcoded() -> None:
    listed = re.findall(r"^ +- (rummikub\.v1\.\w+Service)$", PLAIN.read_text(), re.MULTILINE)
    assert listed == sorted(service.full_name for service in CONTRACT)


def test_the_edge_may_repeat_every_call_of_games_that_only_reads() -> None:
    listed = re.findall(r"GameService/\(([\w|]+)\)", PLAIN.read_text())
    reads = {rpc.name for rpc in SERVICES["rummikub.v1.GameService"] if not rpc.mutates and not rpc.is_stream}
    reads -= {"ForgetSeat"}  # it writes; again it changes nothing, and needs no request id
    assert reads in [set(names.split("|")) for names in listed]


def test_the_image_has_every_file_of_the_configuration() -> None:
    text = TLS.read_text() + PLAIN.read_text() + edge_config.SCRIPT.read_text()
    read = set(re.findall(r"/etc/envoy/([\w.]+\.\w+)", text))
    copied = re.findall(r"deploy/(\S+)", (DEPLOY / "Dockerfile").read_text().partition("FROM envoyproxy")[2])
    assert read <= set(copied)
    assert {"contract.binpb", "json.lua", "openapi.json", "origins.lua"} <= read


def test_the_edge_serves_the_files_of_the_page() -> None:
    served = re.findall(r"/srv/page/([\w.-]+)", PLAIN.read_text())
    assert sorted(served) == sorted(PAGE_FILES)
    assert {file.name for file in (DEPLOY / "page").iterdir()} == set(PAGE_FILES)
    if web.DIST.is_dir():
        assert {file.name for file in web.DIST.iterdir()} == set(PAGE_FILES)


def test_a_client_with_tls_gets_http2(tmp_path: Path) -> None:
    self_signed(tmp_path, "DNS:localhost")
    port = free_port()
    text = local_paths(TLS.read_text(), tmp_path).replace("0.0.0.0, port_value: 8443", f"127.0.0.1, port_value: {port}")
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    context.set_alpn_protocols(["h2", "http/1.1"])
    with web.running_envoy(text, tmp_path):
        until(lambda: accepts(port))
        plain = socket.create_connection(("127.0.0.1", port))
        with context.wrap_socket(plain, server_hostname="localhost") as connection:
            assert connection.selected_alpn_protocol() == "h2"


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def limits_of_addresses() -> dict[str, str]:
    """Returns the settings that limit one client address, with the values that turn them off."""
    fields = [name for name, field in Settings.model_fields.items() if "one client address" in str(field.description)]
    assert len(fields) > 1
    return {f"{PREFIX}{name.upper()}": "1" if name == "peer_share" else "0" for name in fields}


def test_the_service_behind_the_edge_does_not_limit_the_address_of_the_edge() -> None:
    off = limits_of_addresses()
    assert {name: value for name, value in web.DEFAULTS.items() if name in off} == off
    page = (ROOT / "docs" / "web-edge.md").read_text().partition("**Settings of the service**")[2].partition("\n*")[0]
    assert re.findall(rf"`({PREFIX}\w+)`", page) == ["RUMMIKUB_TRUSTED_PROXIES"]
    limits = (ROOT / "docs" / "operation.md").read_text().partition("A proxy that appends none")[2].partition(". ")[0]
    assert set(re.findall(rf"`({PREFIX}\w+)`", limits)) == set(off)


def test_the_service_in_compose_trusts_its_edge_alone() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    service, edge = compose["services"]["service"], compose["services"]["edge"]
    [(network, place)] = edge["networks"].items()
    assert network in service["networks"], "the edge reaches the service"
    trusted = Settings(trusted_proxies=service["environment"]["RUMMIKUB_TRUSTED_PROXIES"]).trusted_proxies
    assert trusted == (ip_network(place["ipv4_address"]),)
    [pool] = compose["networks"][network]["ipam"]["config"]
    first, second, *_ = ip_network(pool["subnet"]).hosts()  # of the host, through which published ports are called, and
    assert ip_address(place["ipv4_address"]) in ip_network(pool["subnet"])  # of the first container
    assert ip_address(place["ipv4_address"]) not in {first, second}


def test_the_profile_web_of_compose_serves_the_page_on_this_machine() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    added = {name for name, service in services.items() if service.get("profiles") == ["web"]}
    assert added == {"edge"}
    assert services["edge"]["ports"] == ["127.0.0.1:8080:8080"]
    image = (ROOT / services["edge"]["build"]["dockerfile"]).read_text()
    assert "npm run build" in image
    assert "COPY --from=page /src/web/dist /srv/page" in image


def test_a_lame_duck_lasts_until_the_edge_has_noticed_it() -> None:
    clusters = yaml.safe_load(PLAIN.read_text())["static_resources"]["clusters"]
    [check] = {json.dumps(cluster["health_checks"]): cluster["health_checks"][0] for cluster in clusters}.values()
    interval, timeout = (int(check[name].removesuffix("s")) for name in ("interval", "timeout"))
    notices = check["unhealthy_threshold"] * interval + timeout
    assert f"{notices} s for [the web edge]" in (ROOT / "docs" / "operation.md").read_text()
    manifests = (DEPLOY / "kubernetes" / "base" / "common.env").read_text()
    [lame_duck] = re.findall(r"^RUMMIKUB_LAME_DUCK_SECONDS=(\d+)$", manifests, re.MULTILINE)
    assert int(lame_duck) > notices
