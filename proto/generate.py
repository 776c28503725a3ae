"""Generates the Python code of the contract, in clients/python/src, and its descriptors, in deploy/contract.binpb.

Usage: python proto/generate.py [--check]

The web edge translates JSON by the descriptors. --check writes nothing and fails if a committed file is not what the
contract generates.
"""

import argparse
import filecmp
import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

PROTO = Path(__file__).parent
TARGET = PROTO.parent / "clients" / "python" / "src"
PACKAGE = Path("rummikub", "v1")
DESCRIPTORS = PROTO.parent / "deploy" / "contract.binpb"
ERRORS = ("google/rpc/status.proto", "google/rpc/error_details.proto")
"""The contract's errors, which are messages of googleapis-common-protos."""


def generate(out: Path) -> None:
    """Writes messages, stubs and their types below a folder."""
    sources = [str(path.relative_to(PROTO)) for path in sorted((PROTO / PACKAGE).glob("*.proto"))]
    well_known = files("grpc_tools") / "_proto"
    scripts = Path(sys.executable).parent
    plugins = [f"--plugin=protoc-gen-{kind}={scripts / f'protoc-gen-{kind}'}" for kind in ("mypy", "mypy_grpc")]
    outs = [f"--{kind}_out={out}" for kind in ("python", "grpc_python")]
    outs += [f"--{kind}_out=quiet:{out}" for kind in ("mypy", "mypy_grpc")]
    arguments = ["protoc", f"-I{PROTO}", f"-I{well_known}", *plugins, *outs, *sources]
    if protoc.main(arguments):
        sys.exit("protoc failed: see above")
    (out / PACKAGE / "__init__.py").write_text('"""Generated from proto/rummikub/v1 by `make proto`. Do not edit."""\n')


def generate_descriptors(out: Path) -> None:
    """Writes the contract with all its imports and errors as a FileDescriptorSet, without comments."""
    sources = [str(path.relative_to(PROTO)) for path in sorted((PROTO / PACKAGE).glob("*.proto"))]
    well_known = files("grpc_tools") / "_proto"
    common = files("google.rpc") / ".." / ".."
    arguments = ["protoc", f"-I{PROTO}", f"-I{well_known}", f"-I{common}", "--include_imports"]
    if protoc.main([*arguments, f"--descriptor_set_out={out}", *sources, *ERRORS]):
        sys.exit("protoc failed: see above")


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
        descriptors = Path(scratch) / DESCRIPTORS.name
        generate_descriptors(descriptors)
        if check:
            changed = differences(fresh, TARGET / PACKAGE)
            if not DESCRIPTORS.exists() or descriptors.read_bytes() != DESCRIPTORS.read_bytes():
                changed.append(DESCRIPTORS.name)
            if changed:
                sys.exit(f"generated files are not those of the contract: run `make proto` ({', '.join(changed)})")
            return
        shutil.copy(descriptors, DESCRIPTORS)
        shutil.rmtree(TARGET / PACKAGE, ignore_errors=True)
        shutil.copytree(fresh, TARGET / PACKAGE)


if __name__ == "__main__":
    main()
