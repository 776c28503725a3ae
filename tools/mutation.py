"""Mutation test of the rules: changes one place at a time and checks that a test fails.

`mutation.py` tries every mutant of every module of the rules and prints those that no test notices, the survivors. It
fails if tests notice less than 95 % of the mutants of a module. A survivor calls for a test, mostly a row in
tests/engine/test_rule_details.py, unless it changes no answer of the rules. `mutation.py melding/solver/search` tries
other modules or packages of engine/, without a limit for survivors.

A mutant of a function is tried in a fork of this process, in which the function gets the mutant's code, so that tests
are collected once. A mutant of code that runs at import is tried in a fork that imports everything again.
"""

import argparse
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import resource
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from tools.mutants import ENGINE, Mutant, mutants_of, unchanged  # noqa: E402 - a script makes its path first

RULES = tuple(
    f"melding/{name}" for name in ("melds", "rules", "play", "initial_meld", "manipulation", "retrieval", "variants")
)
"""The modules and packages that are tried by default."""
TESTS: Mapping[str, Sequence[str]] = {
    "melding/fast/": ("test_tile_counts.py", "test_fast_judge.py"),
    "melding/solver/steps": ("test_steps.py",),
    "melding/solver/explanation": ("test_steps.py",),
    "melding/solver/tile_assignment": ("test_steps.py",),
    "melding/solver/": ("test_solver*.py",),
    "": (
        "test_rule_details.py",
        "test_rules_of_options.py",
        "test_initial_meld.py",
        "test_melds.py",
        "../conformance/test_engine.py",
        "test_rules.py",
    ),
}
"""Patterns of test files in tests/engine/, by the beginning of a module's name; the first entry that fits counts."""
MELD_ORACLE, RULES_ORACLE = "test_meld_oracle.py", "test_retrieval_oracle.py"

LONG_TESTS = {"test_a_search_polls_its_deadline_often"}
"""Tests without a marker that try many examples."""
EXCLUDED_TEST = "test_answers_do_not_depend_on_earlier_questions"
"""A test that starts processes, which do not run the mutant."""

LEAST_NOTICED = 0.95
"""The share of the mutants of each module of the rules that tests must notice."""

PROCESSES = 2
TEST_SECONDS = 60
"""A test that takes longer counts as failed."""
MEMORY_BYTES = 4 << 30
PROGRESS_STEP = 50


# Trials


def install(mutant: Mutant) -> None:
    """Gives the functions of an imported module the mutant's code."""
    module = importlib.import_module(mutant.import_name)
    codes = {code.co_qualname: code for code in codes_in(compile(mutant.tree, str(module.__file__), "exec"))}
    for function in functions_in(vars(module), module.__name__):
        if function.__qualname__ in codes:  # else a decorator made it
            function.__code__ = codes[function.__qualname__]


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yields the code of all functions and methods of a module."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from codes_in(constant)


def functions_in(names: Mapping[str, object], module: str) -> Iterator[types.FunctionType]:
    """Yields the functions and methods that a module defines."""
    for value in names.values():
        match value:
            case type() if value.__module__ == module:
                yield from functions_in(vars(value), module)
            case types.FunctionType() if value.__module__ == module:
                yield value
            case CACHED_FUNCTION() if value.__module__ == module:
                value.cache_clear()
                yield from functions_in({"": value.__wrapped__}, module)
            case (
                property(fget=types.FunctionType() as function) | cached_property(func=types.FunctionType() as function)
            ):
                yield function
            case _ if type(value).__module__ == "engine.lazy":
                yield from functions_in(vars(value), module)
            case _:
                pass


CACHED_FUNCTION = type(lru_cache(lambda: None))


class MutantImporter(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """An importer that loads a mutant in place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns a spec with this loader for the mutant's module, None for others."""
        del path, target
        if fullname != self.mutant.import_name:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=self.is_package(fullname))

    def is_package(self, fullname: str) -> bool:
        """Whether the mutant's module is a package."""
        del fullname
        return self.mutant.is_package

    def get_source(self, fullname: str) -> str:
        """Returns the mutant's source."""
        del fullname
        return self.mutant.source


class Trials:
    """A pytest plugin that runs the collected tests once for each mutant, in a fork."""

    def __init__(self, mutants: Sequence[Mutant], results: "Results", *, quick: bool) -> None:
        self.mutants = mutants
        self.quick = quick
        self.results = results

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Stops Hypothesis from shrinking the examples that fail, which takes long."""
        hypothesis = importlib.import_module("hypothesis")  # its pytest plugin must be imported first
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutation", phases=phases)
        hypothesis.settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Tries the mutants."""
        try_all(self.mutants, lambda mutant: self.survives(session, mutant), self.results)
        return True

    def survives(self, session: pytest.Session, mutant: Mutant) -> bool:
        """Whether all tests of the module pass, quick ones first."""
        install(mutant)
        tests = tests_of([mutant.module], quick=False)
        items = sorted((item for item in session.items if str(item.path) in tests), key=is_long)
        if self.quick:
            items = [item for item in items if not is_long(item)]
        for item, following in zip(items, (*items[1:], None), strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return False
        return True


def is_long(item: pytest.Item) -> bool:
    """Whether a test tries many examples."""
    name, _, _ = item.name.partition("[")
    return is_oracle(item.path) or name in LONG_TESTS or item.get_closest_marker("hypothesis") is not None


def is_oracle(tests: Path) -> bool:
    """Whether a file of tests compares with an oracle, which takes long."""
    return tests.stem.endswith("_oracle")


@dataclass(frozen=True)
class Results:
    """The mutants that were tried, and whether they survived.

    Attributes:
        console: Prints each survivor when it is found.
        count: How many mutants there are to try.
        survived: Whether no test failed, by mutant.
    """

    console: Console
    count: int
    survived: dict[Mutant, bool]

    def add(self, mutant: Mutant, *, survived: bool) -> None:
        """Records and prints a result. Ends the process if tests fail without any change."""
        if not mutant.change:
            if not survived:
                self.console.print("Tests fail without any change.", style="bold red")
                os._exit(2)
            return
        self.survived[mutant] = survived
        if survived:
            print_line(self.console, mutant.name)
        if len(self.survived) % PROGRESS_STEP == 0:
            self.console.print(f"{len(self.survived)} of {self.count}", style="dim", highlight=False)


def tests_pass(tests: Sequence[str], plugins: Sequence[object]) -> bool:
    """Runs tests up to the first failure; returns whether there was none."""
    options = (
        "-x",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:cov",
        "-p",
        "no:xdist",
        f"--timeout={TEST_SECONDS}",
    )
    chosen = ("-k", f"not {EXCLUDED_TEST}", "--rootdir", str(ROOT), *tests)
    return pytest.main([*options, *chosen], plugins=plugins) == pytest.ExitCode.OK


def survives_import(mutant: Mutant, tests: Sequence[str]) -> bool:
    """Imports everything with a mutant in place of its module; returns whether all tests pass."""
    sys.meta_path.insert(0, MutantImporter(mutant))
    return tests_pass(tests, [])


def try_all(mutants: Sequence[Mutant], survives: Callable[[Mutant], bool], results: Results) -> None:
    """Tries mutants, each in a fork of this process, some at a time."""
    running: dict[int, Mutant] = {}

    def wait_for_one() -> None:
        child, status = os.wait()
        results.add(running.pop(child), survived=status == 0)

    for mutant in mutants:
        if len(running) == PROCESSES:
            wait_for_one()
        running[fork(mutant, survives)] = mutant
    while running:
        wait_for_one()


def fork(mutant: Mutant, survives: Callable[[Mutant], bool]) -> int:
    """Tries a mutant in a fork, which exits with 0 if it survives; returns the process id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        status = 0 if survives(mutant) else 1
    finally:
        os._exit(status)


# The command


def main() -> int:
    """Tries mutants and reports; returns 1 if too many of a module of the rules survive."""
    arguments = parse_arguments()
    os.chdir(ROOT)
    console = Console()
    modules = [module for name in arguments.modules or RULES for module in modules_of(name)]
    mutants = [m for module in modules for m in sampled(module, arguments.sample) if arguments.only in (None, m.scope)]
    if arguments.list:
        for mutant in mutants:
            print_line(console, mutant.name)
        return 0
    results = Results(console, len(mutants), {})
    at_import = [unchanged(modules[0], in_function=False), *(m for m in mutants if not m.in_function)]
    try_all(
        at_import, lambda mutant: survives_import(mutant, tests_of([mutant.module], quick=arguments.quick)), results
    )
    in_functions = [unchanged(module, in_function=True) for module in modules]
    in_functions += [m for m in mutants if m.in_function]
    tests_pass(tests_of(modules, quick=arguments.quick), [Trials(in_functions, results, quick=arguments.quick)])
    return report(results)


def parse_arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        description="Change the rules one place at a time, and print what no test notices."
    )
    parser.add_argument("modules", nargs="*", metavar="module", help="modules or packages of engine/ (the rules)")
    parser.add_argument("--only", metavar="function", help="the function to change (all)")
    parser.add_argument("--quick", action="store_true", help="leave out the tests that try many examples")
    parser.add_argument("--sample", type=int, metavar="n", help="try n mutants of a module, always the same ones (all)")
    parser.add_argument("--list", action="store_true", help="list the mutants instead of trying them")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.modules if not list(modules_of(name))]
    if unknown:
        parser.error(f"engine/ has no module {', '.join(unknown)}")
    return arguments


def modules_of(name: str) -> list[str]:
    """Returns the module of a name; for a package, all of its modules."""
    files = sorted((ENGINE / name).rglob("*.py")) if (ENGINE / name).is_dir() else [ENGINE / f"{name}.py"]
    return [str(file.relative_to(ENGINE).with_suffix("")) for file in files if file.exists()]


def sampled(module: str, size: int | None) -> list[Mutant]:
    """Returns at most `size` mutants of a module, chosen by a fixed seed, in the order of the module."""
    mutants = list(mutants_of(module))
    if size is None or len(mutants) <= size:
        return mutants
    chosen = random.Random(module).sample(range(len(mutants)), size)
    return [mutants[index] for index in sorted(chosen)]


def tests_of(modules: Sequence[str], *, quick: bool) -> list[str]:
    """Returns the files of the tests of some modules, each once; `quick` leaves out oracles."""
    tests = dict.fromkeys(test for module in modules for test in tests_of_one(module))
    return [str(test) for test in tests if not (quick and is_oracle(test))]


def tests_of_one(module: str) -> list[Path]:
    """Returns the files of the tests of a module, its oracle last."""
    prefix, patterns = next(entry for entry in TESTS.items() if module.startswith(entry[0]))
    if not prefix:
        patterns = (*patterns, MELD_ORACLE if module == "melding/melds" else RULES_ORACLE)
    folder = ROOT / "tests" / "engine"
    files = (file.resolve() for pattern in patterns for file in sorted(folder.glob(pattern)))
    return sorted(files, key=is_oracle)


def print_line(console: Console, line: str) -> None:
    """Prints a line without wrapping or markup."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def report(results: Results) -> int:
    """Prints the figures of each module; returns 1 if too many of a module of the rules survive."""
    table = Table("module", "mutants", "noticed", "survived", "share")
    rules = {module for name in RULES for module in modules_of(name)}
    by_module: dict[str, Counter[bool]] = {}
    for mutant, survived in results.survived.items():
        by_module.setdefault(mutant.module, Counter())[survived] += 1
    shares = {module: count[False] / count.total() for module, count in by_module.items()}
    for module, count in by_module.items():
        table.add_row(module, str(count.total()), str(count[False]), str(count[True]), f"{shares[module]:.1%}")
    results.console.print(table)
    return int(any(share < LEAST_NOTICED for module, share in shares.items() if module in rules))


if __name__ == "__main__":
    sys.exit(main())
