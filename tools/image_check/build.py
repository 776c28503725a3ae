"""Builds the image of the Dockerfile with buildah, on a base from Debian's packages, because it needs no registry.

All is kept in build/image. The base has the name that the Dockerfile begins from, in a storage of its own. The build
gets wheels from a folder, so it needs no network and no settings of this machine.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.image_check.config import ImageConfig, ImageError, base_of, for_any_python, python_of, read_config
from tools.servers import ROOT

FOLDER: Final = ROOT / "build" / "image"
IMAGE: Final = "localhost/rummikub-service-check"
REQUIREMENTS: Final = ROOT / "requirements"
SUITE: Final = "bookworm"
SUITE_PYTHON: Final = "3.11"
"""The Python of that suite. Debian has no other one."""
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""What the kernel and wheels, and what images call the architectures that are published."""
NEWEST_GLIBC: Final = 36
"""Debian 12 has glibc 2.36; Python's images have this or a newer one."""
OPTIONAL: Final = ("run", "all")
"""The requirements that the Dockerfile's argument REQUIREMENTS can name."""
WITHOUT_PERL: Final = "/usr/share/mmdebstrap/hooks/maybe-merged-usr"
"""A hook of mmdebstrap's that replaces the package usrmerge, which needs all of Perl."""
UNUSED_FILES: Final = ("doc", "info", "locale", "man")
BASE_OPTIONS: Final = (
    "--variant=essential",
    "--include=python3-venv,passwd,libstdc++6",
    f"--hook-dir={WITHOUT_PERL}",
    "--dpkgopt=force-unsafe-io",
    *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in UNUSED_FILES),
    '--customize-hook=chroot "$1" python3 -m venv /usr/local',
)
"""The options of mmdebstrap: Python and pip are in /usr/local of the base, as in Python's images."""
_QUIET: Final = ("--quiet", "--disable-pip-version-check")


def wheels_for_all_architectures(python: str) -> dict[str, int]:
    """Returns how many packages each file of requirements has. Raises ImageError if one of them has no wheel."""
    found = {}
    for name in OPTIONAL:
        for machine, architecture in ARCHITECTURES.items():
            target = ("--python-version", python, "--python-platform", f"{machine}-manylinux_2_{NEWEST_GLIBC}")
            how = ("--dry-run", "--only-binary", ":all:", "--no-deps", "--require-hashes", "--target", FOLDER / "none")
            done = _run(
                Path(sys.executable).parent / "uv",
                *("pip", "install", *how, *target, "-r", REQUIREMENTS / f"{name}.txt"),
                failure=f"requirements/{name}.txt has a package without a wheel for {architecture} and Python {python}",
            )
            found[name] = len(re.findall(r"^ \+ ", done.stderr, re.MULTILINE))
    return found


def build() -> None:
    """Builds the image; makes its base and gets its wheels if they are not there. Raises ImageError."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    base = base_of((ROOT / "Dockerfile").read_text())
    python_of(base)  # what the base below has
    _get_wheels()
    _tag_base(base)
    print("Building the image ...", flush=True)
    mounts = {FOLDER / "wheels": "/wheels", **_offline_settings()}
    volumes = [f"--volume={path}:{inside}:ro" for path, inside in mounts.items()]
    options = ("--isolation=chroot", "--layers", "--format=docker", "--pull=never", "--network=host")
    _buildah("build", *options, *volumes, f"--tag={IMAGE}", ROOT, failure="the image cannot be built")


def _get_wheels() -> None:
    """Downloads the wheels of the image's requirements, and of what installs them, for the base's Python."""
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    names = tuple(re.match(r"[\w.-]+", requirement)[0] for requirement in backend)  # type: ignore[index]  # it has a name
    wanted = "".join(for_any_python((REQUIREMENTS / f"{name}.txt").read_text()) for name in ("uv", "run"))
    wanted += for_any_python((REQUIREMENTS / "dev.txt").read_text(), names)
    wheels, stamp = FOLDER / "wheels", FOLDER / "wheels" / ".digest"
    digest = hashlib.sha256(wanted.encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == digest:
        return
    print("Downloading wheels (once for the same requirements) ...", flush=True)
    shutil.rmtree(wheels, ignore_errors=True)
    (FOLDER / "requirements.txt").write_text(wanted)
    machine = platform.machine()
    target = ["--implementation", "cp", "--python-version", SUITE_PYTHON, "--platform", f"manylinux2014_{machine}"]
    for glibc in range(17, NEWEST_GLIBC + 1):
        target += ["--platform", f"manylinux_2_{glibc}_{machine}"]
    how = (
        "--no-deps",
        "--require-hashes",
        "--only-binary",
        ":all:",
        "--dest",
        wheels,
        "-r",
        FOLDER / "requirements.txt",
    )
    _run(sys.executable, "-m", "pip", "download", *_QUIET, *target, *how, failure="wheels cannot be downloaded")
    stamp.write_text(digest)


def _offline_settings() -> dict[Path, str]:
    """Writes the settings with which pip and uv use the folder of wheels alone; returns where they belong."""
    pip, uv = FOLDER / "pip.conf", FOLDER / "uv.toml"
    pip.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    uv.write_text('no-index = true\nfind-links = ["/wheels"]\n')
    return {pip: "/etc/pip.conf", uv: "/etc/uv/uv.toml"}


def made_base(suite: str, options: Sequence[str]) -> str:
    """Returns the name of the base that mmdebstrap makes of a suite with some options."""
    return f"localhost/base:{hashlib.sha256(repr((suite, *options)).encode()).hexdigest()}"


def _tag_base(name: str) -> None:
    """Names the base of these options as the Dockerfile does; makes it if it is not there."""
    made = made_base(SUITE, BASE_OPTIONS)
    if not _buildah("images", "--quiet", "--filter", f"reference={made}").stdout.strip():
        print(f"Making the base {name} from Debian's packages (once for the same options) ...", flush=True)
        _make_base(made)
    _buildah("tag", made, name)


def _make_base(name: str) -> None:
    container = _buildah("from", "scratch").stdout.strip()
    try:
        root = _buildah("mount", container).stdout.strip()
        how = ("--quiet", "--mode=root", *BASE_OPTIONS, SUITE, root)
        _run("mmdebstrap", *how, failure="the base cannot be made")
        _buildah("commit", "--quiet", container, name)
    finally:
        _buildah("rm", container)


def config() -> ImageConfig:
    """Returns what the built image declares. Raises ImageError."""
    return read_config(_buildah("inspect", "--type=image", IMAGE).stdout)


@contextmanager
def mounted() -> Iterator[Path]:
    """Mounts the built image; yields its root. Raises ImageError."""
    container = _buildah("from", "--pull=never", IMAGE).stdout.strip()
    try:
        yield Path(_buildah("mount", container).stdout.strip())
    finally:
        _buildah("rm", container)


def megabytes(folder: Path) -> float:
    """Returns the size of all files in a folder."""
    sizes = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            status = (Path(parent) / name).lstat()
            sizes[status.st_ino] = status.st_size
    return sum(sizes.values()) / 1e6


def _buildah(*arguments: str | Path, failure: str = "buildah failed") -> subprocess.CompletedProcess[str]:
    storage = ("--root", FOLDER / "storage", "--runroot", FOLDER / "run")
    return _run("buildah", *storage, *arguments, failure=failure)


def _run(*command: str | Path, failure: str) -> subprocess.CompletedProcess[str]:
    """Runs a program; returns what it printed. Raises ImageError with the end of that if it fails."""
    done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise ImageError(f"{failure}: {Path(command[0]).name} ended with status {done.returncode}:\n{output}")
    return done
