"""Builds, tests and checks the clients of all languages whose tools are there, and prints a table.

Usage: python -m clients.conformance.run [LANGUAGE ...] [--require python,go,...] [--quick] [--against REVISION]
       [--clients-of REVISION] [--packages DIST]

Fails if a test or a check fails, or if a language of --require was skipped. README.md in this folder describes
the checks. A REVISION is one of git, or `last`: the last release.
"""

import argparse
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import grpc
from google.protobuf.duration_pb2 import Duration
from rich.console import Console
from rich.table import Table

from rummikub import (
    BOT_LEVEL_EASY,
    GAME_STATE_FINISHED,
    JOKERS_DECLARATION_ALWAYS_EXPLICIT,
    MATCH_END_FIXED_ROUNDS,
    PRESET_AMERICAN,
    PRESET_INTERNATIONAL,
    PRESET_OKEY,
    PRESET_OKEY_101,
    PRESET_OKEY_101_PARTNERS,
    PRESET_OKEY_PARTNERS,
    TURN_DRAW_TWO_RIVER,
    TURN_PLAY_AFTER_DRAW_ALLOWED,
    TURN_PLAY_AFTER_DRAW_OTHER_TILES,
    WIN_CALL_REQUIRED,
    AddBotRequest,
    CreateGameRequest,
    DiscardGameEndOptions,
    DiscardRuleset,
    GameEndOptions,
    GetGameRequest,
    JoinGameRequest,
    MeldingRuleset,
    MeldOptions,
    Preset,
    RoomSettings,
    Ruleset,
    Rummikub,
    StartGameRequest,
    TileOptions,
    TurnOptions,
)
from rummikub.errors import error_info
from tools.release import conformance
from tools.revisions import git, installed, last_release, write_tree

ROOT = Path(__file__).parents[2]
WIRE = Path("tests") / "conformance" / "wire.json"
CHECKS = (
    "wire",
    "batch",
    "stream",
    "refusal",
    "game",
    "turns",
    "rules",
    "names",
    "unknown",
    "deadline",
    "retry",
    "watches",
)
SHELL_SECONDS = 1_800
RUN_SECONDS = 600
DISCARDS = {
    "PRESET_OKEY": PRESET_OKEY,
    "PRESET_OKEY_PARTNERS": PRESET_OKEY_PARTNERS,
    "PRESET_OKEY_101": PRESET_OKEY_101,
    "PRESET_OKEY_101_PARTNERS": PRESET_OKEY_101_PARTNERS,
    "PRESET_AMERICAN": PRESET_AMERICAN,
    "PRESET_INTERNATIONAL": PRESET_INTERNATIONAL,
}
"""The presets of games of discards, which the first games of the READMEs do not play."""
PRESETS = {name: number for name, number in Preset.items() if number and name not in DISCARDS}
TWO_ROUNDS = DiscardGameEndOptions(match_rounds=2)
RULESETS = {
    **{name: Ruleset(melding=MeldingRuleset(preset=number)) for name, number in PRESETS.items()},
    **{name: Ruleset(discard=DiscardRuleset(preset=number, game_end=TWO_ROUNDS)) for name, number in DISCARDS.items()},
    **{
        name: Ruleset(melding=MeldingRuleset(turn=turn))
        for name, turn in {
            "WIN_CALL_REQUIRED": TurnOptions(win_call=WIN_CALL_REQUIRED),
            "TURN_PLAY_AFTER_DRAW_ALLOWED": TurnOptions(play_after_draw=TURN_PLAY_AFTER_DRAW_ALLOWED),
            "TURN_PLAY_AFTER_DRAW_OTHER_TILES": TurnOptions(play_after_draw=TURN_PLAY_AFTER_DRAW_OTHER_TILES),
            "TURN_DRAW_TWO_RIVER": TurnOptions(draw=TURN_DRAW_TWO_RIVER),
        }.items()
    },
    "JOKERS_DECLARATION_ALWAYS_EXPLICIT": Ruleset(
        melding=MeldingRuleset(
            tiles=TileOptions(jokers=4), melds=MeldOptions(jokers_declaration=JOKERS_DECLARATION_ALWAYS_EXPLICIT)
        )
    ),
    "MATCH_END_FIXED_ROUNDS": Ruleset(
        melding=MeldingRuleset(game_end=GameEndOptions(match_end=MATCH_END_FIXED_ROUNDS, match_rounds=3))
    ),
}
"""The rulesets that the programs play a game of: the presets, and options that change what a turn is."""
ALIKE = {*DISCARDS, *PRESETS} - {
    "PRESET_SABRA",
    "PRESET_CROSS",
    "PRESET_CAROUSEL",
    "PRESET_SHANGHAI",
    "PRESET_TWIST",
    "PRESET_OKEY",
    "PRESET_OKEY_101",
}
"""The presets whose turns have the actions of another one's. `--quick` plays no game of them."""
Built: TypeAlias = dict[tuple[str, Path], Future[tuple[float, str]]]
"""The result of shell() by build. Languages share builds."""
MARKS = {"PASS": "green", "FAIL": "bold red", "SKIP": "yellow"}


@dataclass(frozen=True)
class Language:
    """How to build and run the program of a language.

    Args:
        folder: The folder of the client, below clients/, in which the commands run.
        run: The command, without its arguments.
        build: A command that builds it; "" if it needs none. Languages that share a build run it once.
        test: A command that lints the client and runs its own tests; "" if others do.
        game: A command that plays the first game of the README; {target} is the server, {preset} the name of a preset.
            "" if that of another language is the same.
        tools: The programs that must be on PATH.
    """

    folder: str
    run: str
    build: str = ""
    test: str = ""
    game: str = ""
    tools: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The path of the folder."""
        return ROOT / "clients" / self.folder


PYTHON = shlex.quote(sys.executable)
MAVEN = "mvn -q -B -ntp -Dkotlin.compiler.daemon=false package"  # runs the tests too
NPM = "npm ci --silent --ignore-scripts && npm run --silent build"

LANGUAGES = {
    "python": Language(
        folder="conformance",
        run=f"{PYTHON} python.py",
        game=f"{PYTHON} ../python/examples/first_game.py {{target}} {{preset}}",
    ),
    "python (aio)": Language("conformance", f"{PYTHON} python.py --aio"),
    "python (oldest packages)": Language("conformance", f"{ROOT}/build/oldest/bin/python python.py"),
    "go": Language(
        folder="go",
        run="build/conformance",
        build="go build -o build/ ./cmd/conformance ./examples/game",
        test='test -z "$(gofmt -l .)" && go vet ./... && go test ./...',
        game="build/game {target} {preset}",
        tools=("go",),
    ),
    "typescript": Language(
        folder="typescript",
        run="node dist/conformance/main.js",
        build=NPM,
        test="npm test --silent",
        game="node test/readme.mjs {target} {preset}",
        tools=("node", "npm"),
    ),
    "typescript (grpc-js)": Language(
        folder="typescript",
        run="node dist/conformance/main.js --transport grpc-js",
        build=NPM,
        tools=("node", "npm"),
    ),
    "rust": Language(
        folder="rust",
        run="target/debug/rummikub-conformance",
        build="cargo build --quiet -p rummikub-conformance && cargo build --quiet --no-default-features --example game",
        test="cargo fmt --all --check"
        " && cargo clippy --quiet --workspace --all-targets --no-default-features -- -D warnings"
        " && cargo test --quiet --no-default-features",
        game="target/debug/examples/game {target} {preset}",
        tools=("cargo",),
    ),
    "cpp": Language(
        folder="cpp",
        run="build/rummikub-conformance",
        build="cmake --preset test >/dev/null && cmake --build --preset test",
        test="ctest --preset test",
        game="build/rummikub-game {target} {preset}",
        tools=("cmake", "protoc", "grpc_cpp_plugin", "c++"),
    ),
    "java": Language(
        folder="java",
        run="java -jar conformance/target/conformance.jar",
        build=MAVEN,
        game="java -cp conformance/target/conformance.jar example.FirstGame {target} {preset}",
        tools=("java", "mvn"),
    ),
    "kotlin": Language(
        folder="java",
        run="java -cp conformance/target/conformance.jar rummikub.conformance.KotlinConformanceKt",
        build=MAVEN,
        game="java -cp conformance/target/conformance.jar example.FirstGameKt {target} {preset}",
        tools=("java", "mvn"),
    ),
}


@dataclass
class Result:
    """The result of a language: its checks with verdict and seconds, or the reason why it did not run."""

    checks: dict[str, tuple[str, str]] = field(default_factory=dict)
    build_seconds: float = 0.0
    test_seconds: float = 0.0
    game_seconds: float = 0.0
    problem: str = ""
    is_skipped: bool = False

    @property
    def is_good(self) -> bool:
        """Whether no check has failed, and every check has a line."""
        return not self.problem and all(self.checks.get(check, ("FAIL",))[0] != "FAIL" for check in CHECKS)


@contextmanager
def server(packages: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Yields the addresses of a server and of its validation listener; its packages are in a folder."""
    with tempfile.TemporaryDirectory(prefix="rummikub-conformance-") as folder:
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("RUMMIKUB_") and name != "PYTHONPATH"
        }
        environment = {
            **clean,
            "RUMMIKUB_DATA_DIR": folder,
            "RUMMIKUB_REDIS_URL": "memory://",
            "RUMMIKUB_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_VALIDATION_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_LOG_LEVEL": "warning",
        }
        command = [sys.executable, "-m", "service"]
        with subprocess.Popen(command, cwd=packages, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                targets = []
                for line in process.stdout or ():
                    label, _, address = line.strip().partition(" ")
                    if label == "gRPC":
                        targets.append(address.split(",")[0].strip())
                    if label == "metrics":
                        break
                if not targets:
                    sys.exit("run.py: the server did not start; see its message above")
                yield targets[0], targets[-1]
            finally:
                process.terminate()


def started_game(lobby: Rummikub, ruleset: Ruleset) -> tuple[str, str]:
    """Starts a game of Ann against bots, without a time limit and pauses; returns its id and her token."""
    unhurried = RoomSettings(turn_time_limit=Duration(), round_pause=Duration())
    created = lobby.games.CreateGame(CreateGameRequest(ruleset=ruleset, settings=unhurried))
    game_id, host = created.game.game_id, lobby.seated(created.host_token)
    token = host.games.JoinGame(JoinGameRequest(game_id=game_id, name="Ann")).seat_token
    rules = created.game.ruleset
    deal = rules.discard.deal if rules.HasField("discard") else rules.melding.deal
    for _ in range(1, deal.players_min):
        host.games.AddBot(AddBotRequest(game_id=game_id, level=BOT_LEVEL_EASY))
    host.games.StartGame(StartGameRequest(game_id=game_id))
    return game_id, token


def known(target: str, rulesets: Mapping[str, Ruleset]) -> dict[str, Ruleset]:
    """Returns those of some rulesets that a server knows; one of another version may lack options or presets."""
    found = {}
    with Rummikub(target) as lobby:
        for name, ruleset in rulesets.items():
            try:
                lobby.games.CreateGame(CreateGameRequest(ruleset=ruleset))
            except grpc.RpcError as error:
                if error_info(error).reason not in {"OPTION_UNKNOWN", "OPTION_VALUE_INVALID"}:
                    raise
                print(f"the server does not know {name}", file=sys.stderr)
            else:
                found[name] = ruleset
    return found


def unfinished_games(target: str, games: dict[str, tuple[str, str]]) -> str:
    """Returns the names of the games that are not over."""
    with Rummikub(target) as lobby:
        states = {
            name: lobby.games.GetGame(GetGameRequest(game_id=game_id)).game.state
            for name, (game_id, _) in games.items()
        }
    return ", ".join(name for name, state in states.items() if state != GAME_STATE_FINISHED)


def missing(language: Language) -> str:
    """Returns why a language cannot run here; "" if it can."""
    tools = [tool for tool in language.tools if not shutil.which(tool)]
    return f"not on PATH: {', '.join(tools)}" if tools else ""


def shell(command: str, folder: Path) -> tuple[float, str]:
    """Runs a command; returns its seconds, and its output if it failed."""
    if not command:
        return 0.0, ""
    began = time.monotonic()
    try:
        ran = subprocess.run(
            ["bash", "-c", command],  # noqa: S607 - the commands above
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SHELL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return SHELL_SECONDS, f"{command} took more than {SHELL_SECONDS} s"
    output = f"{command}\n{ran.stdout}exit code {ran.returncode}" if ran.returncode else ""
    return time.monotonic() - began, output


def first_games(language: Language, target: str, presets: Iterable[str]) -> tuple[float, str]:
    """Plays the first game of the README under presets; returns its seconds, and the output of one that failed."""
    commands = [language.game.format(target=target, preset=preset) for preset in presets if language.game]
    began = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        outputs = [output for _, output in threads.map(lambda command: shell(command, language.path), commands)]
    return time.monotonic() - began, next(filter(None, outputs), "")


@dataclass(frozen=True)
class Service:
    """The server that programs are checked against.

    Args:
        target: Its address.
        validation: The address of its validation listener.
        wire: The file with the calls of its version.
        rulesets: The rulesets that it knows.
    """

    target: str
    validation: str
    wire: Path
    rulesets: Mapping[str, Ruleset]


def run(language: Language, built: Built, service: Service, *, is_quick: bool) -> Result:
    """Waits for the build of a language, tests its client, and runs its program."""
    if why := missing(language):
        return Result(problem=why, is_skipped=True)
    build_seconds, output = built[language.build, language.path].result()
    if output:
        return Result(problem=f"the build failed: {output}")
    test_seconds, output = shell(language.test, language.path)
    if output:
        return Result(problem=f"the client's tests failed: {output}")
    presets = [name for name in PRESETS if name in service.rulesets]
    game_seconds, output = first_games(language, service.target, presets[: 1 if is_quick else None])
    if output:
        return Result(problem=f"the first game of the README failed: {output}")
    result = checked(language, service, {name for name in service.rulesets if not is_quick or name not in ALIKE})
    result.build_seconds, result.test_seconds, result.game_seconds = build_seconds, test_seconds, game_seconds
    return result


def checked(language: Language, service: Service, names: Collection[str]) -> Result:
    """Runs the program of a language, with games of the named rulesets."""
    result, target = Result(), service.target
    with Rummikub(target) as lobby:
        games = {name: started_game(lobby, rules) for name, rules in service.rulesets.items() if name in names}
    command = [*shlex.split(language.run), "--target", target, "--validation", service.validation]
    command += ["--wire", str(service.wire)]
    command += ["--games", ",".join(f"{game_id}:{token}" for game_id, token in games.values())]
    try:
        ran = subprocess.run(
            command, cwd=language.path, stdout=subprocess.PIPE, text=True, timeout=RUN_SECONDS, check=False
        )
        printed, code = ran.stdout, ran.returncode
    except subprocess.TimeoutExpired as error:
        printed, code = (error.stdout or b"").decode(), 0
        result.problem = f"the program took more than {RUN_SECONDS} s"
    except OSError as error:
        return Result(problem=f"the program did not start: {error}")
    for line in printed.splitlines():
        verdict, _, rest = line.partition(" ")
        check, _, seconds_and_text = rest.partition(" ")
        if verdict in MARKS and check in CHECKS:
            result.checks[check] = (verdict, seconds_and_text)
    unfinished = unfinished_games(target, games)
    if unfinished and result.checks.get("turns", ("",))[0] == "PASS":
        result.checks["turns"] = ("FAIL", f"0 games that are not over: {unfinished}")
    if code and result.is_good:
        result.problem = f"no check failed, but the exit code is {code}"
    return result


def table_of(results: dict[str, Result]) -> Table:
    """Returns the table of languages and checks."""
    table = Table(title="Conformance of the clients (seconds)")
    table.add_column("language")
    table.add_column("build", justify="right")
    table.add_column("tests", justify="right")
    table.add_column("README", justify="right")
    for check in CHECKS:
        table.add_column(check, justify="right")
    for name, result in results.items():
        cells = []
        for check in CHECKS:
            verdict, text = result.checks.get(check, ("-", ""))
            style, seconds = MARKS.get(verdict, "dim"), text.split(" ")[0]
            cells.append(f"[{style}]{seconds if verdict == 'PASS' else verdict}[/]")
        own = (result.build_seconds, result.test_seconds, result.game_seconds)
        table.add_row(name, *(f"{seconds:.1f}" if seconds else "" for seconds in own), *cells)
    return table


def report(results: dict[str, Result], required: set[str]) -> bool:
    """Prints the table and what went wrong; returns whether nothing did."""
    Console(width=150).print(table_of(results))  # else narrow terminals break the names of checks
    for name, result in results.items():
        for check in CHECKS:
            verdict, text = result.checks.get(check, ("FAIL", "0 the program printed no line for it"))
            if verdict != "PASS" and not result.problem:
                print(f"{verdict} {name}: {check}: {text.partition(' ')[2]}")
        if result.problem:
            print(f"{'SKIP' if result.is_skipped else 'FAIL'} {name}: {result.problem}")
    absent = {name for name in required if name not in results or results[name].is_skipped}
    if absent:
        print(f"required, but skipped: {', '.join(sorted(absent))}")
    return not absent and all(result.is_good or result.is_skipped for result in results.values())


def program_of(tree: Path) -> ModuleType:
    """Returns this program of another version, with its clients, checks and games, but with the present server."""
    spec = importlib.util.spec_from_file_location("conformance_of_another_version", tree / "clients/conformance/run.py")
    if spec is None or spec.loader is None:
        sys.exit("run.py: that revision has no conformance programs")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    vars(module)["server"] = lambda *_: server()
    os.environ["PYTHONPATH"] = str(tree / "clients" / "python" / "src")  # the programs in Python import it
    return module


def main() -> None:
    """Runs the programs."""
    present = [name for name, language in LANGUAGES.items() if (ROOT / "clients" / language.folder).is_dir()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", help=f"one of {', '.join(present)}; default: all")
    parser.add_argument("--require", default="", help="languages that may not be skipped, separated by commas")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="play first games under one preset, and no games of presets whose turns are like those of another one",
    )
    others = parser.add_mutually_exclusive_group()
    others.add_argument("--against", metavar="REVISION", help="check these clients against a server of a revision")
    others.add_argument("--clients-of", metavar="REVISION", help="check the clients of a revision against this server")
    others.add_argument("--packages", metavar="DIST", type=Path, help="check the packages in a folder, such as dist")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rummikub-conformance-") as folder:
        tree, packages = ROOT, ROOT
        if revision := arguments.against or arguments.clients_of:
            tree = write_tree(last_release() if revision == "last" else revision, Path(folder) / "tree")
        if arguments.clients_of:
            quick = ["--quick"] * arguments.quick
            sys.argv[1:] = [*arguments.languages, *quick, "--require", arguments.require]
            program_of(tree).main()
            return
        if unknown := {*arguments.languages} - {*present}:
            parser.error(f"no client in {', '.join(sorted(unknown))}; there are {', '.join(present)}")
        chosen = {name: LANGUAGES[name] for name in arguments.languages or present}
        if arguments.against:
            packages = installed(tree, Path(folder) / "installed")
        if arguments.packages:
            chosen = with_packages(parser, arguments, chosen)
        sys.exit(not checks(arguments, chosen, packages, tree / WIRE))


def with_packages(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, chosen: Mapping[str, Language]
) -> dict[str, Language]:
    """Returns the languages that have a package in the folder of --packages, with the commands that use it."""
    release = conformance.release_in(arguments.packages)
    required = {*arguments.languages, *filter(None, arguments.require.split(","))}
    if lacking := conformance.absent(release, required):
        parser.error(lacking)
    programs = conformance.programs(release)
    if not programs:
        parser.error(conformance.absent(release, {*chosen}))
    if lacking := conformance.absent(release, {*chosen}):
        print(f"skipped: {lacking}", file=sys.stderr)
    built_from, present = conformance.built_from(release.dist), git(ROOT, "rev-parse", "HEAD").strip()
    if built_from not in ("", present):
        print(f"the packages are of {built_from:.8}, the programs of {present:.8}", file=sys.stderr)
    return {
        name: replace(language, folder=str(one.folder), build=one.build, test="", run=one.run, game=one.game)
        for name, language in chosen.items()
        if (one := programs.get(name))
    }


def checks(arguments: argparse.Namespace, chosen: Mapping[str, Language], packages: Path, wire: Path) -> bool:
    """Checks languages against a server of some packages; returns whether nothing went wrong."""
    needed = dict.fromkeys((one.build, one.path) for one in chosen.values() if not missing(one))
    with server(packages) as (target, validation), ThreadPoolExecutor(1) as builder:
        built = {build: builder.submit(shell, *build) for build in needed}  # beside the checks of what is built
        service = Service(target, validation, wire, RULESETS if packages == ROOT else known(target, RULESETS))
        results = {}
        for name, language in chosen.items():
            print(f"{name} ...", file=sys.stderr, flush=True)
            results[name] = run(language, built, service, is_quick=arguments.quick)
    return report(results, {*filter(None, arguments.require.split(","))})


if __name__ == "__main__":
    main()
