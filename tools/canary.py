"""Runs the tests of the edge with the newest grpcio, protobuf and redis: `make canary`.

It makes a virtual environment of the pinned requirements in build/canary, upgrades these packages there, and runs the
tests against it. Exit code 1 if a test fails; the report names the failed tests.
"""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
CANARY: Final = ROOT / "build" / "canary"
PYTHON: Final = CANARY / "bin" / "python"
UV: Final = Path(sys.executable).parent / "uv"
UPGRADED: Final = ("grpcio", "grpcio-health-checking", "grpcio-reflection", "hiredis", "protobuf", "redis")
TESTS: Final = (
    "tests/service/grpc_api",
    "tests/service/fast_listener",
    "tests/service/storage/test_stores.py",
    "tests/service/test_private_attributes.py",
)
RELEASE_CHECK: Final = "test_the_installed_release_is_tested"
"""This test fails on every new release of grpcio; the report says what to do instead."""


def make_environment() -> None:
    """Makes the environment, or brings an existing one up to date."""
    if not PYTHON.exists():
        _run(sys.executable, "-m", "venv", "--without-pip", str(CANARY))
    pip = (str(UV), "pip")
    _run(
        *pip,
        "sync",
        "--quiet",
        "--python",
        str(PYTHON),
        "--require-hashes",
        "requirements/uv.txt",
        "requirements/dev.txt",
    )
    own = ("-e", ".", "-e", "engine", "-e", "clients/python")
    _run(*pip, "install", "--quiet", "--python", str(PYTHON), "--no-deps", "--no-build-isolation", *own)
    _run(*pip, "install", "--quiet", "--python", str(PYTHON), "--no-deps", "--upgrade", *UPGRADED)


def _run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


def newest_versions() -> dict[str, str]:
    """Returns the versions in the environment by package."""
    script = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    printed = subprocess.run([str(PYTHON), "-c", script, *UPGRADED], check=True, capture_output=True, text=True).stdout
    return dict(zip(UPGRADED, printed.split(), strict=True))


def failed_tests() -> list[str]:
    """Runs the tests, showing their output; returns the failed ones. Raises SystemExit if pytest could not run."""
    options = ("-n", "2", "--dist", "worksteal", "--no-cov", "-q", "--tb=short", "--deselect")
    deselected = f"tests/service/grpc_api/test_aio_server.py::{RELEASE_CHECK}"
    command = [str(PYTHON), "-m", "pytest", *options, deselected, *TESTS]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout  # noqa: S101 - for the type
        lines = []
        for line in process.stdout:
            sys.stdout.write(line)
            lines.append(line)
    if process.returncode not in {0, 1}:
        sys.exit(f"pytest ended with exit code {process.returncode}")
    return [found[1] for line in lines if (found := re.match(r"(?:FAILED|ERROR) (\S+)", line))]


def main() -> int:
    """Makes the environment, runs the tests and prints the report."""
    make_environment()
    newest = newest_versions()
    failed = failed_tests()
    print("\nWith the newest packages (pinned here):")
    for package, found in newest.items():
        pinned = version(package)
        print(f"  {package:24}{found}" + ("" if found == pinned else f"  ({pinned})"))
    if failed:
        print(f"{len(failed)} tests would fail:", *sorted(failed), sep="\n  ")
        return 1
    print(
        "All tests pass. A new release of grpcio can be added to service/grpc_api/grpcio_version.py and pyproject.toml."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
