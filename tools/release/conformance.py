"""The conformance programs of the clients, built with the packages in dist/ in place of the checkout's sources.

Each program is copied into an empty folder, with a manifest that gets the client from its package alone.
`make conformance ARGS="--packages dist"` builds and runs them.
"""

import json
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools import names
from tools.release.packages import BIN, Release, maven_options
from tools.release.plays import CARGO_TARGET, go_settings, with_repository
from tools.release.provenance import FILE
from tools.servers import ROOT

BUILD: Final = ROOT / "build" / "conformance"
"""The folder of the programs. It is emptied first."""


@dataclass(frozen=True, slots=True)
class Program:
    """The commands of a program.

    Attributes:
        folder: The folder in which they run.
        build: Installs the package, and builds the program with it.
        run: Starts it; without its arguments.
        game: Plays the first game of the README; {target} is the server, {preset} the name of a preset.
    """

    folder: Path
    build: str
    run: str
    game: str = ""


@dataclass(frozen=True, slots=True)
class Ecosystem:
    """How the programs of an ecosystem use its packages.

    Attributes:
        package: The path of the client's package below dist/, with names of release.toml in braces.
        languages: The names of its programs.
        prepare: Writes them into a folder, to be built with a package, and returns them in the order of the names.
    """

    package: str
    languages: tuple[str, ...]
    prepare: Callable[[Release, Path, Path], tuple[Program, ...]]

    def path(self, release: Release) -> Path:
        """Returns the path of the package, which may not exist."""
        group = release.values["maven_group"].replace(".", "/")
        scope = release.values["npm_scope"].removeprefix("@").replace("/", "-")
        return release.dist / self.package.format(**release.values, group=group, scope=scope)


def release_in(dist: Path, root: Path = ROOT) -> Release:
    """Returns the release whose packages are in a folder, for the programs of a checkout."""
    values = names.values(root)
    return Release(root, dist.resolve(), values["version"], values)


def programs(release: Release, folder: Path = BUILD) -> dict[str, Program]:
    """Writes the programs of the languages whose packages are there; returns them by language."""
    shutil.rmtree(folder, ignore_errors=True)
    found: dict[str, Program] = {}
    for name, ecosystem in ECOSYSTEMS.items():
        package = ecosystem.path(release)
        if package.exists():
            (folder / name).mkdir(parents=True)
            found |= zip(ecosystem.languages, ecosystem.prepare(release, folder / name, package), strict=True)
    return found


def absent(release: Release, languages: set[str]) -> str:
    """Returns which packages of some languages are absent, and the command that builds them; "" if none is."""
    there = {name for name, ecosystem in ECOSYSTEMS.items() if ecosystem.path(release).exists()}
    lacking = {name: one for name, one in ECOSYSTEMS.items() if name not in there and languages & {*one.languages}}
    if not lacking:
        return ""
    paths = ", ".join(str(one.path(release)) for one in lacking.values())
    only = ",".join(name for name in ECOSYSTEMS if name in there or name in lacking)  # a release empties dist/ first
    return f'no package {paths}; build it: make release ARGS="--dry-run --only {only}"'


def built_from(dist: Path) -> str:
    """Returns the commit that the packages in a folder were built from; "" if the folder has no provenance."""
    try:
        statement = json.loads((dist / FILE).read_text())
    except FileNotFoundError:
        return ""
    source = statement["predicate"]["buildDefinition"]["resolvedDependencies"][0]
    return str(source["digest"]["gitCommit"])


def _python(release: Release, folder: Path, package: Path) -> tuple[Program, ...]:
    """Installs the wheel into environments with the newest and with the oldest packages that it accepts."""
    for name in ("conformance/python.py", "conformance/proxy.py", "python/examples/first_game.py"):
        shutil.copy(release.tree / "clients" / name, folder)
    uv, python, wheel = (shlex.quote(str(path)) for path in (BIN / "uv", BIN / "python", package))
    oldest = shlex.quote(str(release.tree / "requirements" / "oldest.txt"))
    newest = (
        f"{uv} venv --quiet --python {python} newest && {uv} pip install --quiet --python newest/bin/python {wheel}"
    )
    older = (
        f"{uv} venv --quiet --python {python} oldest"
        f" && {uv} pip sync --quiet --python oldest/bin/python --require-hashes --only-binary :all: {oldest}"
        f" && {uv} pip install --quiet --python oldest/bin/python {wheel}"
    )
    return (
        Program(folder, newest, "newest/bin/python python.py", "newest/bin/python first_game.py {target} {preset}"),
        Program(folder, newest, "newest/bin/python python.py --aio"),
        Program(folder, older, "oldest/bin/python python.py"),
    )


def _typescript(release: Release, folder: Path, package: Path) -> tuple[Program, ...]:
    """Installs the archive of npm, and what its programs need besides."""
    client = release.tree / "clients" / "typescript"
    shutil.copytree(client / "conformance", folder / "conformance")
    (folder / "test").mkdir()
    shutil.copy(client / "test" / "readme.mjs", folder / "test")
    for name in ("README.md", "tsconfig.json"):
        shutil.copy(client / name, folder)
    manifest = json.loads((client / "package.json").read_text())
    needed = {**manifest["dependencies"], **manifest["devDependencies"], "rummikub-client": f"file:{package}"}
    (folder / "package.json").write_text(json.dumps({"type": "module", "private": True, "dependencies": needed}))
    build = "npm install --loglevel error --ignore-scripts && node_modules/.bin/tsc"
    program = "node dist/conformance/main.js"
    return (
        Program(folder, build, program, "node test/readme.mjs {target} {preset}"),
        Program(folder, build, f"{program} --transport grpc-js"),
    )


def _go(release: Release, folder: Path, _: Path) -> tuple[Program, ...]:
    """Gets the module from dist/, which serves it as a proxy does."""
    client, packages = release.tree / "clients" / "go", ("cmd/conformance", "examples/game")
    for name in packages:
        shutil.copytree(client / name, folder / name)
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in go_settings(release).items())
    build = (
        f"export {settings} && go mod init programs && go get {release.values['go_module']}@v{release.version}"
        f" && go build -o build/ {' '.join(f'./{name}' for name in packages)}"
    )
    return (Program(folder, build, "build/conformance", "build/game {target} {preset}"),)


def _rust(release: Release, folder: Path, package: Path) -> tuple[Program, ...]:
    """Unpacks the crate, and depends on its folder."""
    client = release.tree / "clients" / "rust"
    shutil.copytree(client / "conformance" / "src", folder / "src")
    (folder / "examples").mkdir()
    shutil.copy(client / "examples" / "game.rs", folder / "examples")
    manifest = (client / "conformance" / "Cargo.toml").read_text()
    manifest = manifest.replace('path = ".."', f'path = "{package.stem}"').replace("[lints]\nworkspace = true\n", "")
    (folder / "Cargo.toml").write_text(manifest)
    target = shlex.quote(str(CARGO_TARGET))
    unpack = f"tar --touch -xf {shlex.quote(str(package))}"  # by the archive's times, cargo takes new files for built
    build = f"{unpack} && CARGO_TARGET_DIR={target} cargo build --quiet --bins --examples"
    program, game = f"{target}/debug/rummikub-conformance", f"{target}/debug/examples/game {{target}} {{preset}}"
    return (Program(folder, build, program, game),)


def _maven(release: Release, folder: Path, _: Path) -> tuple[Program, ...]:
    """Gets the artefacts of Java and Kotlin, and their parent, from the Maven repository in dist/."""
    source = release.tree / "clients" / "java" / "conformance"
    shutil.copytree(source / "src", folder / "src")
    pom = (source / "pom.xml").read_text().replace("</parent>", "<relativePath/></parent>")
    (folder / "pom.xml").write_text(with_repository(pom, release))
    build = shlex.join(["mvn", *maven_options(release.values), "package"])
    return tuple(
        Program(folder, build, command, f"java -cp target/conformance.jar {game} {{target}} {{preset}}")
        for command, game in (
            ("java -jar target/conformance.jar", "example.FirstGame"),
            ("java -cp target/conformance.jar rummikub.conformance.KotlinConformanceKt", "example.FirstGameKt"),
        )
    )


def _cpp(_: Release, folder: Path, package: Path) -> tuple[Program, ...]:
    """Installs the archive's library by CMake. The programs are in the archive."""
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(programs CXX)\nfind_package(rummikub-client REQUIRED)\n"
        "link_libraries(rummikub::client)\n"
        "add_executable(conformance source/conformance/main.cpp)\nadd_executable(game source/examples/game.cpp)\n"
    )
    fast = "-DCMAKE_CXX_FLAGS=-O0 -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0"
    installed = shlex.quote(str(folder / "installed"))
    build = (
        f"mkdir source && tar -xf {shlex.quote(str(package))} --strip-components=1 -C source"
        f" && cmake -S source -B source/build {fast} -DRUMMIKUB_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX={installed}"
        " && cmake --build source/build --target install --parallel 2"
        f" && cmake -S . -B build -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_PREFIX_PATH={installed}"
        " && cmake --build build --parallel 2"
    )
    return (Program(folder, build, "build/conformance", "build/game {target} {preset}"),)


ECOSYSTEMS: Final[Mapping[str, Ecosystem]] = {
    "python": Ecosystem(
        "python/rummikub_client-{version}-py3-none-any.whl",
        ("python", "python (aio)", "python (oldest packages)"),
        _python,
    ),
    "npm": Ecosystem("npm/{scope}rummikub-client-{version}.tgz", ("typescript", "typescript (grpc-js)"), _typescript),
    "go": Ecosystem("go/{go_module}/@v/v{version}.zip", ("go",), _go),
    "rust": Ecosystem("rust/rummikub-client-{version}.crate", ("rust",), _rust),
    "maven": Ecosystem(
        "maven/{group}/rummikub-client-kotlin/{version}/rummikub-client-kotlin-{version}.jar",
        ("java", "kotlin"),
        _maven,
    ),
    "cpp": Ecosystem("cpp/rummikub-client-cpp-{version}.tar.gz", ("cpp",), _cpp),
}
"""The ecosystems of tools.release whose packages are clients."""
