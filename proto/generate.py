"""Generates the Python code of the contract, in clients/python/src, and its descriptors, in deploy/contract.binpb.

Usage: python proto/generate.py [--check]

`make proto` and `make check` start it; they make the environment in build/oldest that it needs. The web edge translates
JSON by the descriptors.

--check writes nothing and fails if a committed file is not what the contract generates.
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
"""The contract of players' clients. The web edge has no other one."""
ADMIN = Path("rummikub", "admin")
"""The operator's contract, in folders by version."""
DESCRIPTORS = PROTO.parent / "deploy" / "contract.binpb"
ERRORS = ("google/rpc/status.proto", "google/rpc/error_details.proto")
"""The messages of a failed call's details, beside the contract's own."""


def protoc(*arguments: str, folders: tuple[Path, ...] = (PACKAGE,)) -> None:
    """Runs protoc on the files of some folders of the contract, or ends the program."""
    paths = (path for folder in folders for path in sorted((PROTO / folder).glob("*.proto")))
    sources = [str(path.relative_to(PROTO)) for path in paths]
    command = [OLDEST_PYTHON, "-m", "grpc_tools.protoc", f"-I{PROTO}", *arguments, *sources]
    if subprocess.run(command, check=False).returncode:
        sys.exit("protoc failed: see above")


def generate(out: Path) -> None:
    """Writes messages, stubs and their types below a folder."""
    scripts = Path(sys.executable).parent
    plugins = [f"--plugin=protoc-gen-{kind}={scripts / f'protoc-gen-{kind}'}" for kind in ("mypy", "mypy_grpc")]
    outs = [f"--{kind}_out={out}" for kind in ("python", "grpc_python")]
    typed = (f"--{kind}_out=quiet:{out}" for kind in ("mypy", "mypy_grpc"))
    protoc(*plugins, *outs, *typed, folders=(PACKAGE, ADMIN / "v1"))
    for folder in (PACKAGE, ADMIN, ADMIN / "v1"):
        text = f'"""Generated from proto/{folder} by `make proto`. Do not edit."""\n'
        (out / folder / "__init__.py").write_text(text)


def generate_descriptors(out: Path) -> None:
    """Writes the contract with all its imports and errors as a FileDescriptorSet, without comments."""
    protoc("--include_imports", f"--descriptor_set_out={out}", *ERRORS)


def differences(left: Path, right: Path) -> list[str]:
    """Returns the names of files that differ or are on one side only."""
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
        descriptors = Path(scratch) / DESCRIPTORS.name
        generate_descriptors(descriptors)
        if check:
            folders = (PACKAGE, ADMIN, ADMIN / "v1")
            changed = [name for path in folders for name in differences(Path(scratch) / path, TARGET / path)]
            if not DESCRIPTORS.exists() or descriptors.read_bytes() != DESCRIPTORS.read_bytes():
                changed.append(DESCRIPTORS.name)
            if changed:
                sys.exit(f"generated files are not those of the contract: run `make proto` ({', '.join(changed)})")
            return
        shutil.copy(descriptors, DESCRIPTORS)
        for folder in (PACKAGE, ADMIN):
            shutil.rmtree(TARGET / folder, ignore_errors=True)
            shutil.copytree(Path(scratch) / folder, TARGET / folder)


if __name__ == "__main__":
    main()
