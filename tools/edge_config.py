"""Makes the other forms of deploy/envoy.yaml: the configuration of `make web`, and deploy/envoy-tls.yaml.

Usage: python -m tools.edge_config [--check]

It writes envoy-tls.yaml. --check writes nothing and fails if the committed file is not what envoy.yaml makes.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

ROOT: Final = Path(__file__).resolve().parents[1]
DEPLOY: Final = ROOT / "deploy"
PLAIN: Final = DEPLOY / "envoy.yaml"
TLS: Final = DEPLOY / "envoy-tls.yaml"
CONTRACT: Final = DEPLOY / "contract.binpb"
OPENAPI: Final = DEPLOY / "openapi.json"
SCRIPT: Final = DEPLOY / "json.lua"
ORIGINS_SCRIPT: Final = DEPLOY / "origins.lua"
Address: TypeAlias = tuple[str, int]
"""A host and a port."""
PAGE_FILES: Final = (
    "index.html",
    "app.css",
    "app.js",
    "chunk.js",
    "de.js",
    "puzzle-page.js",
    "replay-page.js",
    "rules.js",
    "settings.js",
    "grid-table.js",
    "discard-table.js",
    "es.js",
    "fr.js",
    "he.js",
    "ja.js",
    "nl.js",
    "pl.js",
    "pt.js",
    "tr.js",
    "how-to-play.js",
    "lobby.js",
    "qr-code.js",
    "result.js",
    "sw.js",
    "manifest.webmanifest",
    "icon.svg",
    "icon-192.png",
    "icon-512.png",
    "preview.png",
)
"""The files of the page that the edge serves."""

_COMMENT: Final = PLAIN.read_text().partition("\n\n")[0] + "\n"
_TLS_COMMENT: Final = """\
# The web edge with TLS and HTTP/2, for production: made from envoy.yaml by `make edge-config`. Do not edit.
#
# It reads the certificate chain and its key from /etc/envoy/tls/tls.crt and tls.key, serves at 8443, and redirects
# plain HTTP at 8080 to https. docs/web-edge.md explains it.
"""
_LISTENER: Final = "socket_address: {address: 0.0.0.0, port_value: 8080}"
_TLS_LISTENER: Final = "socket_address: {address: 0.0.0.0, port_value: 8443}"
_CHAIN: Final = "        - filters:\n"
_TLS_CHAIN: Final = """\
        - transport_socket:
            name: tls
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
              common_tls_context:
                # HTTP/1.1 gives a browser six connections, and each watch holds one.
                alpn_protocols: [h2, http/1.1]
                tls_params: {tls_minimum_protocol_version: TLSv1_2}
                tls_certificates:
                  - certificate_chain: {filename: /etc/envoy/tls/tls.crt}
                    private_key: {filename: /etc/envoy/tls/tls.key}
          transport_socket_connect_timeout: 10s
          filters:
"""
_LAST_HEADER: Final = "                        - header: {key: x-content-type-options, value: nosniff}\n"
_TLS_HEADER: Final = "                        - header: {key: strict-transport-security, value: max-age=31536000}\n"
_CLUSTERS: Final = "\n  clusters:\n"
_REDIRECT: Final = """
    - name: redirect
      address: {socket_address: {address: 0.0.0.0, port_value: 8080}}
      enable_reuse_port: false
      filter_chains:
        - filters:
            - name: http
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager\
.v3.HttpConnectionManager
                stat_prefix: redirect
                use_remote_address: true
                request_headers_timeout: 10s
                common_http_protocol_options: {idle_timeout: 10s, max_headers_count: 64}
                route_config:
                  name: redirect
                  virtual_hosts:
                    - name: redirect
                      domains: ["*"]
                      routes:
                        - match: {prefix: /}
                          redirect: {https_redirect: true, port_redirect: 443}
                http_filters:
                  - name: router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
"""
_TCP_USER_TIMEOUT: Final = "      socket_options: [{level: 6, name: 18, int_value: 40000, state: STATE_PREBIND}]\n"
_ENFORCED: Final = "filter_enforced: *always"


class EdgeConfigError(Exception):
    """A file of the configuration does not have a text that is to be replaced."""


@dataclass(frozen=True, slots=True)
class LocalEdge:
    """An edge on this machine.

    Attributes:
        listen: The address of the edge, as host and port.
        service: The addresses of the service.
        validation: The addresses of ValidationService.
        page: The folder with PAGE_FILES.
        limited: Whether the limits of one client address apply.
    """

    listen: Address
    service: Sequence[Address]
    validation: Sequence[Address]
    page: Path
    limited: bool = False


def local(edge: LocalEdge) -> str:
    """Returns the configuration of an edge on this machine."""
    replacements = {
        _LISTENER: _socket(edge.listen),
        _TCP_USER_TIMEOUT: "",  # an option of Linux
        _endpoint("address: service, port_value: 50051"): _endpoints(edge.service),
        _endpoint("address: service, port_value: 50052"): _endpoints(edge.validation),
        "proto_descriptor: /etc/envoy/contract.binpb": f"proto_descriptor: '{CONTRACT}'",
        "{filename: /etc/envoy/openapi.json}": f"{{filename: '{OPENAPI}'}}",
        "{filename: /etc/envoy/origins.lua}": f"{{filename: '{ORIGINS_SCRIPT}'}}",
        "{filename: /etc/envoy/json.lua}": f"{{inline_string: {json.dumps(script(OPENAPI))}}}",
    }
    for name in PAGE_FILES:
        replacements[f"{{filename: /srv/page/{name}}}"] = f"{{filename: '{edge.page / name}'}}"
    if not edge.limited:
        replacements[_ENFORCED] = "filter_enforced: {default_value: {numerator: 0}}"
    return _replaced(PLAIN.read_text(), replacements)


def with_tls() -> str:
    """Returns the configuration for production, with TLS."""
    replacements = {
        _COMMENT: _TLS_COMMENT,
        _LISTENER: _TLS_LISTENER,
        _CHAIN: _TLS_CHAIN,
        _LAST_HEADER: _TLS_HEADER + _LAST_HEADER,
        _CLUSTERS: _REDIRECT + _CLUSTERS,
    }
    return _replaced(PLAIN.read_text(), replacements)


def script(openapi: Path) -> str:
    """Returns the script of the edge with another path of the description of the JSON API."""
    return _replaced(SCRIPT.read_text(), {"/etc/envoy/openapi.json": str(openapi)})


def _socket(address: Address) -> str:
    return f"socket_address: {{{_fields(address)}}}"


def _fields(address: Address) -> str:
    return f"address: '{address[0]}', port_value: {address[1]}"


def _endpoint(fields: str) -> str:
    return f"              - endpoint: {{address: {{socket_address: {{{fields}}}}}}}\n"


def _endpoints(addresses: Sequence[Address]) -> str:
    return "".join(_endpoint(_fields(address)) for address in addresses)


def _replaced(text: str, replacements: dict[str, str]) -> str:
    """Returns a text with each of some parts replaced. Raises EdgeConfigError unless each is there once."""
    for old, new in replacements.items():
        if text.count(old) != 1:
            raise EdgeConfigError(f"this text must be there once, but is there {text.count(old)} times:\n{old}")
        text = text.replace(old, new)
    return text


def main() -> None:
    """Writes envoy-tls.yaml, or checks it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    if not parser.parse_args().check:
        TLS.write_text(with_tls())
    elif TLS.read_text() != with_tls():
        sys.exit("deploy/envoy-tls.yaml is out of date; run `make edge-config`")


if __name__ == "__main__":
    main()
