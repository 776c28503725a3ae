"""The packages of a release, built from a copy of the committed files in which every README is complete by itself."""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from tools import names
from tools.revisions import write_tree
from tools.servers import ROOT

BIN: Final = ROOT / ".venv" / "bin"
CACHES: Final = ROOT / "build" / "caches"
"""What the tools of other ecosystems download and compile for programs that use the packages."""
PYTHON: Final = (".", "engine", "clients/python")
NPM: Final = ("clients/typescript", "web/tiles", "web/board")
PAGES: Final = (*PYTHON, *NPM, "clients/go", "clients/rust", "clients/java", "clients/cpp")
"""The folders of the packages. Each has a README."""
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file in an archive, so that the same commit gives the same bytes."""
SECONDS: Final = "315532800"
"""EPOCH in seconds since 1970, as SOURCE_DATE_EPOCH."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release that is being built.

    Attributes:
        tree: The copy of the committed files.
        dist: The folder of the packages.
        version: Its version.
        values: The values of release.toml.
    """

    tree: Path
    dist: Path
    version: str
    values: Mapping[str, str]

    def folder(self, name: str) -> Path:
        """Returns the folder of an ecosystem's packages."""
        folder = self.dist / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    """Runs a command; returns its output. Raises CalledProcessError with the end of its output as note."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        error = subprocess.CalledProcessError(done.returncode, command)
        error.add_note(done.stdout[-4000:])
        raise error
    return done.stdout


def stage(root: Path, build: Path, dist: Path) -> Release:
    """Copies the committed files, with licenses and complete READMEs; returns the release to build from them."""
    shutil.rmtree(build, ignore_errors=True)
    shutil.rmtree(dist, ignore_errors=True)
    build.mkdir(parents=True)
    write_tree("HEAD", build, root)
    values = names.values(build)
    for package in PAGES:
        folder = build / package
        if not (folder / "LICENSE").exists():
            shutil.copy(build / "LICENSE", folder / "LICENSE")
        page = folder / "README.md"
        page.write_text(with_whole_links(page.read_text(), package, values))
    return Release(build, dist, values["version"], values)


def with_whole_links(page: str, folder: str, values: Mapping[str, str]) -> str:
    """Returns a page whose links to other files of the repository work from anywhere.

    Args:
        page: Markdown.
        folder: The folder of the page in the repository.
        values: The values of release.toml.
    """

    def whole(link: re.Match[str]) -> str:
        target = PurePosixPath(os.path.normpath(PurePosixPath(folder) / link["path"]))
        kind = "raw" if target.suffix in {".gif", ".png", ".svg"} else "blob"
        return f"]({values['repository']}/{kind}/v{values['version']}/{target}{link['anchor'] or ''})"

    return re.sub(r"\]\((?!https?:|#|mailto:)(?P<path>[^)#\s]+)(?P<anchor>#[^)]*)?\)", whole, page)


def python(release: Release) -> None:
    """Builds wheels and source distributions of the engine, the client, and the service, which needs both."""
    require(release.tree / "pyproject.toml", ["rummikub-engine", "rummikub-client"], release.version)
    options = ("--quiet", "--no-build-isolation", "--no-create-gitignore", "--python", BIN / "python")
    to = ("--out-dir", release.folder("python"))
    for folder in PYTHON:
        run(BIN / "uv", "build", *options, *to, release.tree / folder, folder=release.tree, SOURCE_DATE_EPOCH=SECONDS)
    for archive in release.folder("python").glob("*.tar.gz"):  # setuptools writes the time of the build into these
        name = archive.name.removesuffix(".tar.gz")
        with tarfile.open(archive) as built:
            built.extractall(release.tree / "build", filter="data")
        write_archive(archive, release.tree / "build" / name, name)


def require(manifest: Path, distributions: Sequence[str], version: str) -> None:
    """Adds distributions of the same version to what a pyproject.toml depends on. In a checkout they are folders."""
    own = "".join(f'  "{name}=={version}",\n' for name in distributions)
    text, begin = manifest.read_text(), "\ndependencies = [\n"
    if text.count(begin) != 1:
        raise ValueError(f"{manifest} has no list of dependencies, one a line")
    manifest.write_text(text.replace(begin, begin + own))


def npm(release: Release) -> None:
    """Builds packages for Node.js and browsers."""
    for folder in ("clients/typescript", "web"):
        run("npm", "ci", "--silent", "--ignore-scripts", folder=release.tree / folder)
    for folder in NPM:
        manifest = release.tree / folder / "package.json"
        manifest.write_text(manifest.read_text().replace('"name": "', f'"name": "{release.values["npm_scope"]}', 1))
        run("npm", "pack", "--silent", "--pack-destination", release.folder("npm"), folder=manifest.parent)


def go(release: Release) -> None:
    """Builds the Go module as a proxy serves it: GOPROXY=file://dist/go finds it."""
    module, version = release.values["go_module"], f"v{release.version}"
    source = release.tree / "clients" / "go"
    versions = release.folder("go") / module / "@v"
    versions.mkdir(parents=True)
    (versions / "list").write_text(f"{version}\n")
    (versions / f"{version}.info").write_text(json.dumps({"Version": version, "Time": "2000-01-01T00:00:00Z"}))
    shutil.copy(source / "go.mod", versions / f"{version}.mod")
    with zipfile.ZipFile(versions / f"{version}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files_of(source):
            entry = zipfile.ZipInfo(f"{module}@{version}/{path.relative_to(source)}", EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())


def rust(release: Release) -> None:
    """Builds the crate."""
    folder = release.tree / "clients" / "rust"
    command = ("cargo", "package", "--quiet", "--no-verify", "--allow-dirty", "--package", "rummikub-client")
    run(*command, folder=folder, CARGO_TARGET_DIR=str(release.tree / "target"))
    for crate in (release.tree / "target" / "package").glob("*.crate"):
        shutil.copy(crate, release.folder("rust"))


def maven(release: Release) -> None:
    """Builds the artefacts of Java and Kotlin as a Maven repository, with sources and documentation."""
    repository = f"-DaltDeploymentRepository=release::file://{release.folder('maven')}"
    options = (*maven_options(release.values), "-Prelease", "-DskipTests", "-Dmaven.install.skip=true", repository)
    bill = ("org.cyclonedx:cyclonedx-maven-plugin:2.9.1:makeBom", "-DoutputFormat=json", "-DincludeTestScope=false")
    run("mvn", *options, "-pl", "client,kotlin", "-am", "deploy", *bill, folder=release.tree / "clients" / "java")


def maven_options(values: Mapping[str, str]) -> tuple[str, ...]:
    """Returns options of Maven with a local repository of their own, after removing the client's artefacts from it."""
    local = CACHES / "maven"
    shutil.rmtree(local / values["maven_group"].replace(".", "/"), ignore_errors=True)
    return ("-q", "-B", "-ntp", "-Dkotlin.compiler.daemon=false", f"-Dmaven.repo.local={local}")


def cpp(release: Release) -> None:
    """Builds the archive of the C++ sources with the contract, for CMake, Conan and vcpkg."""
    source, name = release.tree / "clients" / "cpp", f"rummikub-client-cpp-{release.version}"
    shutil.copytree(release.tree / "proto", source / "contract", dirs_exist_ok=True)
    shutil.copy(release.tree / "clients" / "service_config.json", source)
    write_archive(release.folder("cpp") / f"{name}.tar.gz", source, name)


def write_archive(archive: Path, source: Path, folder: str) -> None:
    """Writes the files of a folder as .tar.gz without times and owners; in the archive, the folder has a name."""
    with (
        gzip.GzipFile(archive, "wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as written,
    ):
        for path in files_of(source):
            entry = written.gettarinfo(path, f"{folder}/{path.relative_to(source)}")
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
            with path.open("rb") as file:
                written.addfile(entry, file)


BUILDERS: Final[Mapping[str, tuple[Callable[[Release], None], str]]] = {
    "python": (python, "python3"),
    "npm": (npm, "npm"),
    "go": (go, "go"),
    "rust": (rust, "cargo"),
    "maven": (maven, "mvn"),
    "cpp": (cpp, "grpc_cpp_plugin"),
}
"""What builds the packages of each ecosystem, and the program that has to be there to use them."""


def files_of(folder: Path) -> Iterable[Path]:
    """Returns the files of a folder in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def sums(dist: Path) -> str:
    """Returns the SHA-256 of every file, in the form that `sha256sum --check` reads."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(dist)}\n" for path in files_of(dist)
    )
