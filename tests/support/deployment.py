"""The built manifests, and what they are checked with."""

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from service.metrics.metrics import Metrics
from service.settings import PREFIX
from support.harness import ROOT
from tools.deploy_tools import DEFINITIONS, KUSTOMIZE

DEPLOY = ROOT / "deploy"
OVERLAYS = tuple(sorted(folder.name for folder in (DEPLOY / "kubernetes" / "overlays").iterdir()))
OPERATED = ("redis-cluster", "redis-sentinel")
"""The overlays whose Redis an operator runs. Its password is in a Secret that users make."""
PASSWORD = "0123456789abcdef"  # noqa: S105 - of a test
RULES = DEPLOY / "prometheus" / "rules.yaml"
PLAIN_RULES = ROOT / "build" / "deploy" / "rules.yaml"
DASHBOARD = DEPLOY / "grafana" / "rummikub.json"

Document: TypeAlias = Mapping[str, Any]
"""A manifest of one resource, or a part of one."""


def missing_tools() -> str:
    """Returns what is not installed, and how to install it; "" if all is there."""
    if not (KUSTOMIZE.is_file() and DEFINITIONS.is_dir()):
        return "kustomize is not installed; run: make deploy-tools"
    if not (shutil.which("promtool") and shutil.which("prometheus")):
        return "promtool is not installed; run: apt-get install prometheus"
    return ""


@cache
def built(overlay: str) -> tuple[Document, ...]:
    """Returns the resources of an overlay."""
    folder = DEPLOY / "kubernetes" / "overlays" / overlay
    text = subprocess.run([KUSTOMIZE, "build", folder], capture_output=True, text=True, check=True)
    assert not text.stderr
    return tuple(yaml.safe_load_all(text.stdout))


def of_kind(overlay: str, kind: str) -> dict[str, Document]:
    """Returns the resources of a kind, by name."""
    return {document["metadata"]["name"]: document for document in built(overlay) if document["kind"] == kind}


def container(deployment: Document) -> Document:
    """Returns the only container of a Deployment."""
    [only] = deployment["spec"]["template"]["spec"]["containers"]
    return dict(only)


def environment(overlay: str, deployment: Document) -> dict[str, str]:
    """Returns the settings of a Deployment's container, from its ConfigMaps, Secrets and own values."""
    own = container(deployment)
    found: dict[str, str] = {}
    for source in own["envFrom"]:
        found |= of_kind(overlay, "ConfigMap")[source["configMapRef"]["name"]]["data"]
    for variable in own.get("env", ()):
        if "value" in variable:
            found[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda name: found[name[1]], variable["value"])
        else:
            key = variable["valueFrom"]["secretKeyRef"]
            found[variable["name"]] = secret(overlay, key["name"])[key["key"]]
    return {name: value for name, value in found.items() if name.startswith(PREFIX)}


def secret(overlay: str, name: str) -> dict[str, str]:
    """Returns the decoded values of a Secret, of one that users make too."""
    if overlay in OPERATED and name == "rummikub-redis":
        return {"password": PASSWORD}
    values = of_kind(overlay, "Secret")[name]["data"]
    return {key: base64.b64decode(value).decode() for key, value in values.items()}


def write_plain_rules() -> None:
    """Writes the alerts as a plain file of rules, which promtool and a Prometheus without the operator read."""
    PLAIN_RULES.parent.mkdir(parents=True, exist_ok=True)
    written = PLAIN_RULES.with_suffix(f".{os.getpid()}")
    written.write_text(yaml.safe_dump(yaml.safe_load(RULES.read_text())["spec"], sort_keys=False))
    written.replace(PLAIN_RULES)


def alerts() -> list[Document]:
    """Returns all alerts."""
    return [rule for rule in rules() if "alert" in rule]


def recordings() -> list[Document]:
    """Returns all recording rules."""
    return [rule for rule in rules() if "record" in rule]


def rules() -> list[Document]:
    """Returns all rules."""
    return [rule for group in yaml.safe_load(RULES.read_text())["spec"]["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    """Returns the dashboard."""
    return dict(json.loads(DASHBOARD.read_text()))


def panels() -> list[Document]:
    """Returns the panels of the dashboard, without its rows."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def metrics_in(expressions: Iterable[str]) -> set[str]:
    """Returns the metrics of the service, and what rules record of them, that PromQL expressions name."""
    names = re.compile(r"\b(?:rummikub_\w+|process_\w+|rummikub:\w+:\w+)")
    return {name for expression in expressions for name in names.findall(expression)}


def served_metrics() -> set[str]:
    """Returns the names of all series that the service can serve."""
    suffixes = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
    return {f"{metric.name}{suffix}" for metric in Metrics().registry.collect() for suffix in suffixes[metric.type]}


def promtool(*arguments: str | Path, stdin: str = "") -> str:
    """Runs promtool; returns what it wrote. Raises AssertionError if it failed."""
    program = shutil.which("promtool")
    assert program
    done = subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def values_of(document: object, key: str) -> Iterator[Any]:
    """Yields all values of a key, at any depth."""
    if isinstance(document, Mapping):
        for name, value in document.items():
            if name == key:
                yield value
            yield from values_of(value, key)
    elif isinstance(document, list):
        for value in document:
            yield from values_of(value, key)
