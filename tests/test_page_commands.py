"""Every command of a page is checked: by its program here, or where a table says.

A fenced block without a language, or of `sh`, has commands; output and drawings are marked as `text`. Blocks are not
marked by indentation alone.
"""

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import takewhile
from textwrap import dedent
from typing import NamedTuple

import pytest

from support.harness import ROOT
from support.pages import PAGES as FILES

MAKEFILE = (ROOT / "Makefile").read_text()
RECIPES = dict(re.findall(r"^([a-z-]+):.*## .*\n((?:(?:\t|ifeq|else|endif).*\n)*)", MAKEFILE, re.MULTILINE))
PROGRAMS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
PAGES = [str(page.relative_to(ROOT)) for page in FILES]
URLS = json.loads((ROOT / "deploy" / "openapi.json").read_text())["paths"]

NO_PROGRAMS = {"cd", "cp", "do", "done", "kill", "mkdir", "rpc", "sleep", "until", "wait", "wc", "{", "}"}
"""The words of a shell, small programs that every machine has, and a function that a page defines."""

ELSEWHERE = {
    "clients/cpp/README.md": {
        "apt": "installs packages of the system",
        "build/rummikub-conformance cmake ctest": "clients/conformance/run.py",
    },
    "clients/dart/README.md": {"dart protoc": "needs Dart; the names: tests/clients/test_other_languages.py"},
    "clients/go/README.md": {"go": "clients/conformance/run.py"},
    "clients/godot/README.md": {
        "apt": "installs packages of the system; .ci/run",
        "godot3-server": "tests/edge/test_godot.py",
    },
    "clients/java/README.md": {"java mvn": "clients/conformance/run.py"},
    "clients/objc/README.md": {"protoc": "needs the plugin of Objective-C; tests/clients/test_other_languages.py"},
    "clients/php/README.md": {
        "composer pecl": "install packages of other registries",
        "protoc": "needs the plugin of PHP; tests/clients/test_other_languages.py",
    },
    "clients/python/README.md": {
        "pip": "the folder: tests/test_packaging.py; the address is an example until a release"
    },
    "clients/ruby/README.md": {
        "gem": "installs a package of another registry",
        "grpc_tools_ruby_protoc": "tests/clients/test_other_languages.py",
    },
    "clients/swift/README.md": {"brew protoc": "need macOS; the names: tests/clients/test_other_languages.py"},
    "clients/typescript/README.md": {"npm": "clients/conformance/run.py"},
    "docs/archive.md": {"sqlite3": "needs its shell; the column: tests/service/archive/test_killed_servers.py"},
    "docs/backup.md": {"age zstd": "programs of the operator's choice, on both sides of a pipe"},
    "docs/kubernetes.md": {"kubectl": "needs a cluster; the manifests: tests/deploy/test_manifests.py"},
    "docs/operation.md": {"pip": "installs packages of a registry; the extra: pyproject.toml"},
    "docs/releasing.md": {"git gpg cosign jq": "need a key of the person who releases"},
    "docs/settings.md": {"docker": "needs Docker; the image with these options: tools/image_check/container.py"},
    "docs/start/own-games.md": {"go": "clients/conformance/run.py"},
    "docs/tutorial/validation.md": {"go": "clients/conformance/run.py"},
    "docs/tutorial/web.md": {"npm npx": "the same program: web/test/e2e/tutorial.test.mjs"},
    "docs/web-edge.md": {
        "docker": "needs Docker; the file: tests/edge/test_configuration.py",
        "for": "the first calls: tests/edge/test_page.py; streams: tests/edge/test_events.py",
        "jq": "tests/edge/test_page.py",
    },
    "engine/README.md": {"pip": "tests/test_packaging.py"},
    "web/board/README.md": {"npm": "tools/release/__main__.py packs it; the examples: web/test/e2e/examples.test.mjs"},
    "web/tiles/README.md": {"npm": "tools/release/plays.py installs it"},
}
"""By page: the programs whose commands are not checked here, and where they are run, or why they cannot be."""


class Command(NamedTuple):
    """A command of a page."""

    page: str
    words: tuple[str, ...]

    @property
    def program(self) -> str:
        return self.words[0]

    @property
    def options(self) -> set[str]:
        return {word.partition("=")[0] for word in self.words if re.match(r"--[a-z]", word)}


def blocks(page: str) -> list[str]:
    found = re.findall(r"^ *```([^\n`]*)\n(.*?)^ *```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [dedent(text) for language, text in found if language in ("", "sh")]


def split(page: str, block: str) -> Iterator[Command]:
    """Yields the commands of a block; those inside of `$(...)` too."""
    text = re.sub(r"(?<!\S)#.*", "", block).replace("\\\n", " ")
    tokens = shlex.shlex(text, posix=True, punctuation_chars=";|&\n()")
    tokens.commenters, tokens.whitespace, tokens.whitespace_split = "", " \t", True
    words: list[str] = []
    for token in [*tokens, "\n"]:
        if not set(token) <= set(";|&\n()"):
            if words or not re.match(r"[A-Z_]+=|(?:do|until)$", token):
                words.append(token)
        elif words:
            yield Command(page, tuple(words))
            words = []


def in_text(page: str) -> Iterator[Command]:
    """Yields the commands with make that a page has in its text, or in a table."""
    for code in re.findall(r"`(make [a-z][^`\n]*)`", (ROOT / page).read_text()):
        yield from split(page, code)


COMMANDS = [command for page in PAGES for block in blocks(page) for command in split(page, block)]


@cache
def sources(module: str) -> str:
    """Returns the source of a module, or of all modules of a package."""
    path = ROOT / module.replace(".", "/")
    files = [path.with_suffix(".py")] if path.with_suffix(".py").exists() else sorted(path.rglob("*.py"))
    return "\n".join(file.read_text() for file in files)


def unknown(options: set[str], text: str) -> set[str]:
    return {option for option in options if f'"{option}"' not in text}


def make_problem(command: Command) -> str:
    """Returns what is wrong with a command of make: its target, its variables, or options in ARGS."""
    targets = list(takewhile(lambda word: "=" not in word, command.words[1:]))
    if missing := [target for target in targets if target not in RECIPES]:
        return f"no target {missing}"
    recipe = "".join(RECIPES[target] for target in targets)
    for name, _, value in (word.partition("=") for word in command.words[1 + len(targets) :] if "=" in word):
        if f"$({name})" not in MAKEFILE:
            return f"no variable {name}"
        if name != "ARGS":
            continue
        if "$(ARGS)" not in recipe:
            return "the target takes no ARGS"
        arguments = Command(command.page, tuple(shlex.split(value)))
        modules = re.findall(r"-m ([\w.]+)|python (\S+)\.py", recipe)
        known = "".join(sources(dotted or path) for dotted, path in modules if not dotted.startswith("pytest"))
        if known and (strange := unknown(arguments.options, known)):
            return f"no options {strange}"
        if missing := [path for path in arguments.words if path.startswith("tests/") and not (ROOT / path).exists()]:
            return f"no tests {missing}"
    return ""


def npm_problem(command: Command) -> str:
    """Returns what is wrong with a script of npm."""
    scripts = json.loads((ROOT / command.page).with_name("package.json").read_text())["scripts"]
    name = {"run": command.words[2:3], "ci": ()}.get(command.words[1], command.words[1:2])
    return "" if set(name) <= set(scripts) else f"no script {name}"


def module_problem(command: Command) -> str:
    """Returns what is wrong with a program of Python: its file, or its module and the options of that."""
    first, *others = command.words[1:]
    if first != "-m":
        return "" if (ROOT / first).exists() else f"no file {first}"
    if not find_spec(others[0]):
        return f"no module {others[0]}"
    strange = unknown(command.options, sources(others[0]))
    return f"{others[0]} does not know {strange}" if strange else ""


def curl_problem(command: Command) -> str:
    """Returns what is wrong with a URL: no RPC has it."""
    [url] = [re.sub(r"^(?:http://[^/]*|\$URL)", "", word) for word in command.words if re.match(r"http:|\$URL", word)]
    path = url.partition("?")[0]
    patterns = [re.sub(r"\{[^}]*\}", "[^/:]+", known) for known in URLS]
    return "" if path == "/metrics" or any(re.fullmatch(known, path) for known in patterns) else f"no URL {url}"


def problem(command: Command) -> str:
    """Returns what is wrong with a command, or an empty text."""
    program = command.program.removeprefix(".venv/bin/")
    if program in NO_PROGRAMS:
        return ""
    if any(program in programs.split() for programs in ELSEWHERE.get(command.page, ())):
        return ""
    if program in PROGRAMS:
        known = sources(PROGRAMS[program].partition(":")[0].rpartition(".")[0])
        parts = {word for word in command.words[1:2] if re.fullmatch(r"[a-z-]+", word)}
        strange = unknown(command.options | parts, known)
        return f"{program} does not know {strange}" if strange else ""
    match program, command.words[1:]:
        case "make", _:
            return make_problem(command)
        case "npm", _:
            return npm_problem(command)
        case "curl", _:
            return curl_problem(command)
        case "buf", ("curl", *_):
            return ""  # tests/service/grpc_api/test_pages.py runs it
        case "python", _:
            return module_problem(command)
        case "node", words:
            return "" if any(((ROOT / command.page).parent / word).exists() for word in words) else "no file"
        case _:
            return "no test runs it: add one, or a reason to ELSEWHERE"


def problems(commands: list[Command]) -> list[str]:
    return [f"{one.page}: {' '.join(one.words)}: {wrong}" for one in commands if (wrong := problem(one))]


def test_every_command_in_a_block_is_known_or_tested_elsewhere() -> None:
    assert problems(COMMANDS) == []


def test_commands_with_make_in_texts_are_known() -> None:
    assert problems([command for page in PAGES for command in in_text(page)]) == []


def test_a_command_that_is_wrong_or_new_is_found() -> None:
    wrong = """
        make nothing
        make chaos ARGS="--no-such-option"
        make run ARGS=--help
        make test ARGS=tests/nowhere
        make web PORTS=1
        .venv/bin/rummikub-admin remove 1
        rummikub-verify --nothing game.txt
        cd web && npm run nothing
        curl 'http://127.0.0.1:8080/v1/nothing?x=1'
        .venv/bin/python nothing.py
        .venv/bin/python -m nothing
        .venv/bin/python -m load.capacity.manifests --nothing
        A=1 frobnicate | sort
    """
    found = problems(list(split("web/README.md", dedent(wrong))))
    assert len(found) == len(wrong.split("\n")) - 2 + 1, found  # the last line has two


def test_every_exception_is_used_and_names_files_that_exist() -> None:
    used = {(command.page, command.program) for command in COMMANDS}
    for page, rows in ELSEWHERE.items():
        for programs, why in rows.items():
            assert {(page, program) for program in programs.split()} <= used, page
            assert all((ROOT / file).exists() for file in re.findall(r"[\w./]+/[\w./]+\w", why)), why


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fences_its_blocks(page: str) -> None:
    text = re.sub(r"^ *```.*?^ *```", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"\n\n    .*", text)


def test_a_shell_can_read_every_block() -> None:
    script = "".join(f": {page}\n{block}\n" for page in PAGES for block in blocks(page))
    command = ["bash", "-n"]
    read = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")
