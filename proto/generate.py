"""Generates the Python code of the contract into clients/python/src, its one home.

Usage: python proto/generate.py [--check]

`make proto` and `make check` start it; they make the environment in build/oldest that it needs.

--check writes nothing and fails if the committed code is not what the contract generates.
"""

import argparse
import filecmp
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROTO = Path(__file__).parent
# Generated code refuses a runtime older than its generator, so that of the oldest supported versions writes it.
OLDEST_PYTHON = PROTO.parent / "build" / "oldest" / "bin" / "python"
TARGET = PROTO.parent / "clients" / "python" / "src"
PACKAGE = Path("rummikub", "v1")


def generate(out: Path) -> None:
    """Writes messages, stubs and their types below a folder."""
    sources = [str(path.relative_to(PROTO)) for path in sorted((PROTO / PACKAGE).glob("*.proto"))]
    scripts = Path(sys.executable).parent
    plugins = [f"--plugin=protoc-gen-{kind}={scripts / f'protoc-gen-{kind}'}" for kind in ("mypy", "mypy_grpc")]
    outs = [f"--{kind}_out={out}" for kind in ("python", "grpc_python")]
    outs += [f"--{kind}_out=quiet:{out}" for kind in ("mypy", "mypy_grpc")]
    command = [OLDEST_PYTHON, "-m", "grpc_tools.protoc", f"-I{PROTO}", *plugins, *outs, *sources]
    if subprocess.run(command, check=False).returncode:
        sys.exit("protoc failed: see above")
    (out / PACKAGE / "__init__.py").write_text('"""Generated from proto/rummikub/v1 by `make proto`. Do not edit."""\n')


def differences(left: Path, right: Path) -> list[str]:
    """The names of files that differ or are on one side only."""
    comparison = filecmp.dircmp(left, right, ignore=["__pycache__"])
    _, unequal, broken = filecmp.cmpfiles(left, right, comparison.common_files, shallow=False)
    return sorted([*comparison.left_only, *comparison.right_only, *unequal, *broken])


def main() -> None:
    """Generates, or checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        fresh = Path(scratch) / PACKAGE
        if check:
            changed = differences(fresh, TARGET / PACKAGE)
            if changed:
                sys.exit(f"generated code is not that of the contract: run `make proto` ({', '.join(changed)})")
            return
        shutil.rmtree(TARGET / PACKAGE, ignore_errors=True)
        shutil.copytree(fresh, TARGET / PACKAGE)


if __name__ == "__main__":
    main()
