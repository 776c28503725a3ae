"""Installs what tests/deploy needs into build/tools: kustomize, and the definitions of the custom resources.

Both come as Go modules, so they need Go and nothing else. Debian's package prometheus has the third tool, promtool.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TOOLS: Final = ROOT / "build" / "tools"
KUSTOMIZE: Final = TOOLS / "kustomize"
DEFINITIONS: Final = TOOLS / "definitions"
KUSTOMIZE_MODULE: Final = "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1"


@dataclass(frozen=True)
class Definitions:
    """A Go module with definitions of custom resources.

    Attributes:
        module: Its path and version.
        checksum: Its hash, as in a go.sum.
        files: The files of definitions in it.
    """

    module: str
    checksum: str
    files: tuple[str, ...]


MODULES: Final = (
    Definitions(
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        (
            "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
            "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
        ),
    ),
    Definitions(
        "sigs.k8s.io/gateway-api@v1.4.0",
        "h1:ZwlNM6zOHq0h3WUX2gfByPs2yAEsy/EenYJB78jpQfQ=",
        ("config/crd/standard/gateway.networking.k8s.io_grpcroutes.yaml",),
    ),
)


class DeployToolsError(Exception):
    """A tool cannot be installed; the message says why."""


def main() -> None:
    """Installs all of it."""
    if not shutil.which("go"):
        sys.exit("make deploy-tools: Go is not installed; it builds kustomize")
    try:
        DEFINITIONS.mkdir(parents=True, exist_ok=True)
        _go("install", KUSTOMIZE_MODULE)
        for definitions in MODULES:
            _copy(definitions)
    except DeployToolsError as error:
        sys.exit(f"make deploy-tools: {error}")


def _copy(definitions: Definitions) -> None:
    module = json.loads(_go("mod", "download", "-json", definitions.module))
    if module["Sum"] != definitions.checksum:
        raise DeployToolsError(f"{definitions.module} has the checksum {module['Sum']}, not {definitions.checksum}")
    for file in definitions.files:
        shutil.copyfile(Path(module["Dir"]) / file, DEFINITIONS / Path(file).name)


def _go(*arguments: str) -> str:
    """Returns the output of a command of Go, run outside of any module. Raises DeployToolsError."""
    environment = {**os.environ, "GOBIN": str(TOOLS), "GOFLAGS": ""}
    done = subprocess.run(["go", *arguments], cwd="/", env=environment, capture_output=True, text=True, check=False)  # noqa: S607 - Go is where PATH says
    if done.returncode:
        raise DeployToolsError(f"go {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


if __name__ == "__main__":
    main()
