"""Each package as its users get it: installed by its own tool into an empty folder, it plays its README's game."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.release.packages import BIN, CACHES, Release, maven_options, run
from tools.servers import ROOT

PRESET: Final = "PRESET_SABRA"
NPM_CHECKS: Final[tuple[tuple[str, ...], ...]] = (
    ("publint@0.3.25", "--strict"),
    ("@arethetypeswrong/cli@0.18.5", "--profile", "esm-only", "--exclude-entrypoints", "tiles.css"),
)
"""The programs that check an npm package, with their options. A style sheet has no types, so it is left out."""
CARGO_TARGET: Final = CACHES / "cargo"
"""Where programs are built with the crate, so that what it depends on is compiled once."""


@contextmanager
def server(release: Release, folder: Path) -> Iterator[str]:
    """Installs the service from its wheels, and runs it; yields its address."""
    python = _environment(folder, release, "service")
    own = {
        "RUMMIKUB_LISTEN": "127.0.0.1:0",
        "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
        "RUMMIKUB_REDIS_URL": "memory://",
        "RUMMIKUB_LOG_LEVEL": "warning",
    }
    with subprocess.Popen(
        [python, "-m", "service"], cwd=folder, env={**os.environ, **own}, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            for line in process.stdout or ():
                label, _, address = line.strip().partition(" ")
                if label == "gRPC":
                    yield address.split(",")[0].strip()
                    return
            sys.exit("the service of the wheel did not start; see its message above")
        finally:
            process.terminate()


def _environment(folder: Path, release: Release, name: str) -> Path:
    """Returns the Python of a new environment with a distribution from dist/ and what it needs."""
    run(BIN / "uv", "venv", "--quiet", "--clear", "--python", BIN / "python", folder, folder=ROOT)
    options = ("--quiet", "--find-links", release.folder("python"), "--python", folder / "bin" / "python")
    run(BIN / "uv", "pip", "install", *options, f"rummikub-{name}=={release.version}", folder=ROOT)
    return folder / "bin" / "python"


def program(page: Path, fence: str) -> str:
    """Returns the first program of a page in a language. Raises ValueError."""
    found = re.search(rf"^```{fence}[^\n]*\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    if not found:
        raise ValueError(f"{page} has no program in {fence}")
    return found[1]


def python(release: Release, folder: Path, target: str) -> None:
    """Plays with the client's wheel, runs the engine's example, and installs the client's source distribution."""
    for name, page in (("client", "clients/python"), ("engine", "engine")):
        interpreter = _environment(folder / name, release, name)
        (folder / f"{name}.py").write_text(program(release.tree / page / "README.md", "python"))
        run(interpreter, "-I", folder / f"{name}.py", *([target, PRESET] if name == "client" else []), folder=folder)
    [source] = release.folder("python").glob("rummikub_client-*.tar.gz")
    options = ("--quiet", "--target", folder / "source", "--no-deps")
    run(BIN / "uv", "pip", "install", *options, source, folder=folder)


def npm(release: Release, folder: Path, target: str) -> None:
    """Checks the npm packages and that their types need no others, plays with the client, and loads tiles and board."""
    packages = [*release.folder("npm").glob("*.tgz")]
    for tool, *options in NPM_CHECKS:
        for package in packages:
            run("npx", "--yes", tool, package, *options, folder=folder)
    page = release.tree / "clients" / "typescript" / "README.md"
    scope = release.values["npm_scope"]
    text = (
        program(page, "js").replace("127.0.0.1:50051", target).replace('"rummikub-client', f'"{scope}rummikub-client')
    )
    (folder / "package.json").write_text('{"name": "game", "type": "module", "private": true}')
    (folder / "game.mjs").write_text(text)
    (folder / "loads.mjs").write_text(
        f'await import("{scope}rummikub-tiles"); await import("{scope}rummikub-board/model");\n'
    )
    entries = (
        "client",
        "client/node",
        "client/web",
        "client/fair-deal",
        "tiles",
        "board",
        "board/input",
        "board/model",
    )
    (folder / "types.ts").write_text("".join(f'import "{scope}rummikub-{entry}";\n' for entry in entries))
    run("npm", "install", "--loglevel", "error", "--ignore-scripts", *packages, folder=folder)
    run("node", "game.mjs", folder=folder)
    run("node", "loads.mjs", folder=folder)
    compiled = {
        "noEmit": True,
        "strict": True,
        "module": "nodenext",
        "lib": ["es2023", "dom", "dom.iterable"],
        "types": [],
    }
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": compiled, "files": ["types.ts"]}))
    run(release.tree / "clients" / "typescript" / "node_modules" / ".bin" / "tsc", folder=folder)


def go(release: Release, folder: Path, target: str) -> None:
    """Plays with the Go module, which dist/ serves as a proxy does."""
    (folder / "main.go").write_text(program(release.tree / "clients" / "go" / "README.md", "go"))
    own = go_settings(release)
    run("go", "mod", "init", "game", folder=folder, **own)
    run("go", "get", f"{release.values['go_module']}@v{release.version}", folder=folder, **own)
    run("go", "run", ".", target, PRESET, folder=folder, **own)


def go_settings(release: Release) -> dict[str, str]:
    """Returns settings of Go with which dist/ serves the module, after removing older ones from their module cache."""
    module, cache = release.values["go_module"], CACHES / "go"
    for older in (*cache.glob(f"{module}@*"), cache / "cache" / "download" / module):
        shutil.rmtree(older, ignore_errors=True)
    proxies = run("go", "env", "GOPROXY", folder=release.tree).strip()
    return {
        "GOPROXY": f"file://{release.folder('go')},{proxies}",
        "GONOSUMDB": module,
        "GOFLAGS": "-mod=mod -modcacherw",
        "GOMODCACHE": str(cache),
    }


def rust(release: Release, folder: Path, target: str) -> None:
    """Plays with the crate's sources, because the page's manifest names a version of the registry."""
    [crate] = release.folder("rust").glob("*.crate")
    run("tar", "--touch", "-xf", crate, folder=folder)  # by the times of the archive, cargo takes new files for built
    game = folder / "game"
    (game / "src").mkdir(parents=True)
    manifest = program(release.tree / "clients" / "rust" / "README.md", "toml")
    manifest = manifest.replace(f'"{release.version}"', f'{{ path = "../{crate.stem}" }}', 1)
    package = '[package]\nname = "game"\nversion = "0.0.0"\nedition = "2021"\n\n'
    (game / "Cargo.toml").write_text(package + manifest)
    (game / "src" / "main.rs").write_text(program(release.tree / "clients" / "rust" / "README.md", "rust"))
    run("cargo", "run", "--quiet", "--", target, PRESET, folder=game, CARGO_TARGET_DIR=str(CARGO_TARGET))


def maven(release: Release, folder: Path, target: str) -> None:
    """Plays with the artefacts of Java and Kotlin from the Maven repository in dist/."""
    page = release.tree / "clients" / "java" / "README.md"
    poms = re.findall(r"^```xml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    for language, pom, suffix, main in (
        ("java", poms[0], "java", "example.FirstGame"),
        ("kotlin", poms[1], "kt", "example.FirstGameKt"),
    ):
        sources = folder / language / "src" / "main" / language / "example"
        sources.mkdir(parents=True)
        (sources / f"FirstGame.{suffix}").write_text(program(page, language))
        (folder / language / "pom.xml").write_text(with_repository(pom, release))
        game = (f"-Dexec.mainClass={main}", f"-Dexec.args={target} {PRESET}")
        run("mvn", *maven_options(release.values), "compile", "exec:java", *game, folder=folder / language)


def with_repository(pom: str, release: Release) -> str:
    """Returns a `pom.xml` that finds the artefacts in dist/."""
    repository = f"<repository><id>release</id><url>file://{release.folder('maven')}</url></repository>"
    return pom.replace("</project>", f"<repositories>{repository}</repositories></project>")


def cpp(release: Release, folder: Path, target: str) -> None:
    """Installs the C++ sources by CMake, and plays with what is installed."""
    [archive] = release.folder("cpp").glob("*.tar.gz")
    run("tar", "-xf", archive, "--strip-components=1", folder=folder)
    prefix = folder / "installed"
    (folder / "game").mkdir()
    (folder / "game" / "main.cpp").write_text(program(release.tree / "clients" / "cpp" / "README.md", "cpp"))
    (folder / "game" / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(game CXX)\nfind_package(rummikub-client REQUIRED)\n"
        "add_executable(game main.cpp)\ntarget_link_libraries(game PRIVATE rummikub::client)\n"
    )
    run(
        "cmake",
        "-S",
        ".",
        "-B",
        "build",
        "-DRUMMIKUB_BUILD_TESTS=OFF",
        f"-DCMAKE_INSTALL_PREFIX={prefix}",
        folder=folder,
    )
    run("cmake", "--build", "build", "--target", "install", "--parallel", "2", folder=folder)
    run("cmake", "-S", "game", "-B", "game/build", f"-DCMAKE_PREFIX_PATH={prefix}", folder=folder)
    run("cmake", "--build", "game/build", folder=folder)
    run(folder / "game" / "build" / "game", target, PRESET, folder=folder)


PLAYS: Final[Mapping[str, Callable[[Release, Path, str], None]]] = {
    "python": python,
    "npm": npm,
    "go": go,
    "rust": rust,
    "maven": maven,
    "cpp": cpp,
}
"""What installs the packages of each ecosystem and plays a game; the address is that of a server."""
