"""Changes the rules a little, in one place at a time, and sees whether their tests notice.

`mutation.py` tries every change below in every module of the rules. What survives must be listed in docs/mutation.md,
which says why nobody could notice it. `mutation.py melds` tries one module, `mutation.py --only _steps` what is in one
function, `--quick` leaves out the tests that try many examples, `--sample 60` tries so many changes of a module, always
the same ones, `--list` tries nothing. Modules that are no rules, as `referee` and `solver/run_assembly`, are tried if
named, and nothing is asked of how many survive there.

A mutant of a function is tried in a fork of this process in which the function gets the mutant's code: tests are
collected once. A mutant of what is made once, a table or a constant, is tried in a fork that imports everything anew.
"""

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import re
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
PAGE = ROOT / "docs" / "mutation.md"

from engine.lazy import fact  # noqa: E402 - a script makes its path first

RULES = ("melds", "rules", "play", "initial_meld", "manipulation", "retrieval", "variants")
"""The modules that are tried if none is named."""
QUICK_JUDGES = ("tally", "referee")
STEPS = {"solver/steps", "solver/explanation", "solver/tile_assignment"}
SOLVER = tuple(
    f"solver/{path.stem}" for path in sorted((ROOT / "engine" / "solver").glob("*.py")) if path.stem != "__init__"
)
MODULES = (*RULES, *QUICK_JUDGES, *SOLVER)

TESTS_OF_RULES = (
    "tests/engine/test_rule_details.py",
    "tests/engine/test_rules_of_options.py",
    "tests/engine/test_initial_meld.py",
    "tests/engine/test_melds.py",
    "tests/conformance/test_engine.py",
    "tests/engine/test_rules.py",
)
TESTS_OF_QUICK_JUDGES = ("tests/engine/test_tile_counts.py", "tests/engine/test_fast_judge.py")
TESTS_OF_STEPS = ("tests/engine/test_steps.py",)
TESTS_OF_SOLVER = (
    "tests/engine/test_solver_melds.py",
    "tests/engine/test_solver_restricted.py",
    "tests/engine/test_solver_few_tiles.py",
    "tests/engine/test_solver.py",
)
MELD_ORACLE = "tests/engine/test_meld_oracle.py"
PLAY_ORACLE = "tests/engine/test_retrieval_oracle.py"
SOLVER_ORACLE = "tests/engine/test_solver_oracle.py"
ORACLES = {MELD_ORACLE, PLAY_ORACLE, SOLVER_ORACLE}

LONG = {"test_a_search_polls_its_deadline_often"}
"""Tests that try many examples, each by itself."""
UNFIT = "test_answers_do_not_depend_on_earlier_questions"
"""A test that starts processes, which know of no mutant."""

ENOUGH = 0.95
"""Share of the mutants of a module of the rules that tests must notice."""

PROCESSES = 2
SECONDS = 60
"""Longest time of one test: a mutant that takes longer has been noticed."""

MEMORY = 4 << 30
SHOWN = 60
"""How many characters of what is changed are shown."""


# Mutants


Way = tuple[tuple[str, int | None], ...]
"""The way to a node: fields, and places in those that are lists."""


@dataclass(frozen=True, eq=False)
class Mutant:
    """One change: in which module, in what function or class (the module itself outside of them), in which line."""

    module: str
    where: str
    line: int
    change: str
    in_function: bool
    way: Way
    after: ast.AST

    @property
    def name(self) -> str:
        """What the page calls it."""
        return f"`{self.where}`: {self.change}"

    @property
    def tree(self) -> ast.Module:
        """The changed module."""
        return put(tree_of(self.module), self.way, self.after)


def tree_of(module: str) -> ast.Module:
    """A module of the engine."""
    return ast.parse((ROOT / "engine" / f"{module}.py").read_text())


COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: Mapping[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add,),
    ast.Mod: (ast.FloorDiv,),
    ast.FloorDiv: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
FUNCTIONS = {
    "any": "all",
    "all": "any",
    "min": "max",
    "max": "min",
    "in_order": "tuple",
    "sorted": "list",
}


def enums() -> dict[str, tuple[str, ...]]:
    """The names of each enum's values."""
    found = {}
    for path in (ROOT / "engine").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Enum" for base in node.bases):
                assigned = (line.targets[0] for line in node.body if isinstance(line, ast.Assign))
                found[node.name] = tuple(target.id for target in assigned if isinstance(target, ast.Name))
    return found


ENUMS = enums()


def changed_comparison(node: ast.Compare) -> Iterator[ast.expr]:
    """Another comparison."""
    for place, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            yield ast.Compare(node.left, [*node.ops[:place], other(), *node.ops[place + 1 :]], node.comparators)


def changed_operator(node: ast.BinOp) -> Iterator[ast.expr]:
    """Another operator."""
    for other in OPERATORS.get(type(node.op), ()):
        yield ast.BinOp(node.left, other(), node.right)


def changed_condition(node: ast.BoolOp) -> Iterator[ast.expr]:
    """The other operator, and each part left out."""
    yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    for place in range(len(node.values)):
        left = node.values[:place] + node.values[place + 1 :]
        yield ast.BoolOp(node.op, left) if len(left) > 1 else left[0]


def changed_sign(node: ast.UnaryOp) -> Iterator[ast.expr]:
    """No sign."""
    yield node.operand


def changed_choice(node: ast.IfExp) -> Iterator[ast.expr]:
    """Always the one, always the other."""
    yield node.body
    yield node.orelse


def changed_constant(node: ast.Constant) -> Iterator[ast.expr]:
    """The other truth, the next number, the one before, another text."""
    match node.value:
        case bool():
            yield ast.Constant(not node.value)
        case int():
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
        case str():
            yield ast.Constant(f"{node.value}?")
        case _:
            pass


def changed_value(node: ast.Attribute) -> Iterator[ast.expr]:
    """The next value of an enum."""
    values = ENUMS.get(node.value.id, ()) if isinstance(node.value, ast.Name) else ()
    if node.attr in values:
        following = values[(values.index(node.attr) + 1) % len(values)]
        yield ast.Attribute(node.value, following, ast.Load())


def changed_slice(node: ast.Subscript) -> Iterator[ast.expr]:
    """Without its start, without its end."""
    if isinstance(node.slice, ast.Slice):
        if node.slice.lower:
            yield ast.Subscript(node.value, ast.Slice(None, node.slice.upper), ast.Load())
        if node.slice.upper:
            yield ast.Subscript(node.value, ast.Slice(node.slice.lower, None), ast.Load())


def changed_call(node: ast.Call) -> Iterator[ast.expr]:
    """A like function; without an argument that has a name."""
    if isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        yield ast.Call(ast.Name(FUNCTIONS[node.func.id], ast.Load()), node.args, node.keywords)
    for keyword in node.keywords:
        if not isinstance(keyword.value, ast.Constant):
            yield ast.Call(node.func, node.args, [other for other in node.keywords if other is not keyword])


def changed_elements(node: ast.comprehension) -> Iterator[ast.comprehension]:
    """Each condition left out."""
    for condition in node.ifs:
        ifs = [other for other in node.ifs if other is not condition]
        yield ast.comprehension(node.target, node.iter, ifs, node.is_async)


def changed_branch(node: ast.If) -> Iterator[ast.stmt]:
    """Always, and never."""
    for value in (True, False):
        yield ast.If(ast.Constant(value), node.body, node.orelse)


def changed_answer(node: ast.Return) -> Iterator[ast.stmt]:
    """No answer."""
    if node.value and not isinstance(node.value, ast.Constant):
        yield ast.Return(ast.Constant(None))


def changed_step(node: ast.Expr | ast.AugAssign) -> Iterator[ast.stmt]:
    """Left out; what yields, yields nothing."""
    is_generator = isinstance(node.value, ast.Yield | ast.YieldFrom)
    yield ast.Expr(ast.YieldFrom(ast.Tuple([], ast.Load()))) if is_generator else ast.Pass()


def changed_way(node: ast.Continue | ast.Break) -> Iterator[ast.stmt]:
    """On instead of out, out instead of on."""
    yield ast.Break() if isinstance(node, ast.Continue) else ast.Continue()


CHANGES: Mapping[type[ast.AST], Callable[..., Iterator[ast.AST]]] = {
    ast.Compare: changed_comparison,
    ast.BinOp: changed_operator,
    ast.BoolOp: changed_condition,
    ast.UnaryOp: changed_sign,
    ast.IfExp: changed_choice,
    ast.Constant: changed_constant,
    ast.Attribute: changed_value,
    ast.Subscript: changed_slice,
    ast.Call: changed_call,
    ast.comprehension: changed_elements,
    ast.If: changed_branch,
    ast.Return: changed_answer,
    ast.Expr: changed_step,
    ast.AugAssign: changed_step,
    ast.Continue: changed_way,
    ast.Break: changed_way,
}

UNCHANGED = {
    ast.arg: {"annotation"},
    ast.FunctionDef: {"returns", "decorator_list"},
    ast.AnnAssign: {"annotation"},
}
"""What is not changed: types."""


@dataclass(frozen=True)
class Spot:
    """A node of a module: how to reach it, and where it is."""

    node: ast.AST
    way: Way
    where: str
    line: int
    in_function: bool


def spots(spot: Spot) -> Iterator[Spot]:
    """A node and all below it that may be changed."""
    if isinstance(spot.node, ast.Expr) and isinstance(spot.node.value, ast.Constant):
        return  # a docstring
    yield spot
    node, where, in_function = spot.node, spot.where, spot.in_function
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        where = node.name if len(spot.way) == 1 else f"{where}.{node.name}"
    for field, value in ast.iter_fields(node):
        if field in UNCHANGED.get(type(node), ()):
            continue
        inside = in_function or (isinstance(node, ast.FunctionDef) and field == "body")
        for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                line = getattr(child, "lineno", spot.line)
                yield from spots(Spot(child, (*spot.way, (field, place)), where, line, inside))


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every mutant of a module of the engine."""
    tree = tree_of(module)
    at_once = called_at_once(tree)
    seen: Counter[str] = Counter()
    for spot in spots(Spot(tree, (), module, 0, in_function=False)):
        for after in CHANGES.get(type(spot.node), no_change)(spot.node):
            change = f"`{shown(spot.node)}` → `{shown(after)}`"
            key = f"{spot.where} {change}"
            seen[key] += 1
            in_function = spot.in_function and spot.where not in at_once
            number = f" ({seen[key]})" if seen[key] > 1 else ""
            yield Mutant(module, spot.where, spot.line, change + number, in_function, spot.way, after)


def called_at_once(tree: ast.Module) -> set[str]:
    """The functions that are called when a module is imported, to make a table."""
    outside = (line for line in tree.body if not isinstance(line, ast.FunctionDef | ast.ClassDef))
    calls = (node for line in outside for node in ast.walk(line) if isinstance(node, ast.Call))
    return {ast.unparse(call.func) for call in calls}


def unchanged(module: str, *, in_function: bool) -> Mutant:
    """No mutant at all, to see that nothing fails without one."""
    return Mutant(module, "", 0, "", in_function, (), ast.Pass())


def no_change(_: ast.AST) -> Iterator[ast.AST]:
    """What is not changed."""
    yield from ()


def shown(node: ast.AST) -> str:
    """A node on one line, shortened."""
    match node:
        case ast.If():
            text = f"if {ast.unparse(node.test)}"
        case ast.comprehension():
            text = ast.unparse(node).strip()
        case _:
            text = ast.unparse(node)
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def put(tree: ast.Module, way: Way, after: ast.AST) -> ast.Module:
    """A tree with another node in a place."""
    if not way:
        return tree
    node: ast.AST = tree
    for field, place in way[:-1]:
        node = getattr(node, field) if place is None else getattr(node, field)[place]
    field, place = way[-1]
    if place is None:
        setattr(node, field, after)
    else:
        getattr(node, field)[place] = after
    return ast.fix_missing_locations(tree)


# Trials


def put_in_place(mutant: Mutant) -> None:
    """Gives the functions of an imported module the mutant's code."""
    module = importlib.import_module(imported_as(mutant))
    codes = {code.co_qualname: code for code in codes_in(compile(mutant.tree, str(module.__file__), "exec"))}
    for function in functions_in(vars(module), module.__name__):
        if function.__qualname__ in codes:  # else a decorator made it
            function.__code__ = codes[function.__qualname__]


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of all functions and methods of a module."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from codes_in(constant)


def functions_in(names: Mapping[str, object], module: str) -> Iterator[types.FunctionType]:
    """The functions and methods that a module defines."""
    for value in names.values():
        match value:
            case type() if value.__module__ == module:
                yield from functions_in(vars(value), module)
            case types.FunctionType() if value.__module__ == module:
                yield value
            case REMEMBERING() if value.__module__ == module:
                value.cache_clear()
                yield from functions_in({"": value.__wrapped__}, module)
            case (
                property(fget=types.FunctionType() as function)
                | cached_property(func=types.FunctionType() as function)
                | fact(_find=types.FunctionType() as function)
            ):
                yield function
            case _:
                pass


def imported_as(mutant: Mutant) -> str:
    """The name by which a mutant's module is imported."""
    return f"engine.{mutant.module.replace('/', '.')}"


REMEMBERING = type(lru_cache(lambda: None))
"""The type of functions that remember what they answered."""


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds a mutant where its module is imported."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """This loader, for the mutant's module."""
        del path, target
        return importlib.util.spec_from_loader(fullname, self) if fullname == imported_as(self.mutant) else None

    def get_source(self, fullname: str) -> str:
        """The mutant's text."""
        del fullname
        return ast.unparse(self.mutant.tree)


class Trials:
    """A plugin of pytest: instead of running what was collected, it does so once for each mutant, in a fork."""

    def __init__(self, mutants: Sequence[Mutant], seen: "Seen", *, quick: bool) -> None:
        self.mutants = mutants
        self.quick = quick
        self.seen = seen

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """No time is spent on finding a smaller example."""
        hypothesis = importlib.import_module("hypothesis")  # its plugin of pytest must come first
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutation", phases=phases)
        hypothesis.settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Tries the mutants."""
        try_all(self.mutants, lambda mutant: self.survives(session, mutant), self.seen)
        return True

    def survives(self, session: pytest.Session, mutant: Mutant) -> bool:
        """Whether all tests pass."""
        put_in_place(mutant)
        tests = tests_of([mutant.module], quick=False)
        items = sorted((item for item in session.items if str(item.path) in tests), key=takes_long)
        if self.quick:
            items = [item for item in items if not takes_long(item)]
        for item, following in zip(items, (*items[1:], None), strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return False
        return True


def takes_long(item: pytest.Item) -> bool:
    """Whether a test tries many examples."""
    is_oracle = str(item.path.relative_to(ROOT)) in ORACLES
    return is_oracle or name_of(item) in LONG or item.get_closest_marker("hypothesis") is not None


def name_of(item: pytest.Item) -> str:
    """The name of a test without its parameters."""
    return item.name.partition("[")[0]


@dataclass(frozen=True)
class Seen:
    """Which mutants survived, and which did not, with every one shown as it is tried."""

    console: Console
    count: int
    survived: dict[Mutant, bool]

    def add(self, mutant: Mutant, *, survived: bool) -> None:
        """One more."""
        if not mutant.change:
            if not survived:
                self.console.print("Tests fail without any change.", style="bold red")
                os._exit(2)
            return
        self.survived[mutant] = survived
        if survived:
            self.console.print(f"{mutant.module}.py:{mutant.line} {mutant.name}", markup=False, highlight=False)
        if len(self.survived) % 50 == 0:
            self.console.print(f"{len(self.survived)} of {self.count}", style="dim", highlight=False)


def tests_are_passed(tests: Sequence[str], plugins: Sequence[object]) -> bool:
    """What pytest says, which stops at the first failure."""
    options = ("-x", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:cov", "-p", "no:xdist", f"--timeout={SECONDS}")
    chosen = ("-k", f"not {UNFIT}", "--rootdir", str(ROOT), *tests)
    return pytest.main([*options, *chosen], plugins=plugins) == pytest.ExitCode.OK


def survives_afresh(mutant: Mutant, tests: Sequence[str]) -> bool:
    """Whether all tests pass, everything being imported anew."""
    sys.meta_path.insert(0, Mutated(mutant))
    return tests_are_passed(tests, [])


def try_all(mutants: Sequence[Mutant], survives: Callable[[Mutant], bool], seen: Seen) -> None:
    """Tries mutants in forks of this process, some at a time."""
    running: dict[int, Mutant] = {}

    def wait_for_one() -> None:
        child, status = os.wait()
        seen.add(running.pop(child), survived=status == 0)

    for mutant in mutants:
        if len(running) == PROCESSES:
            wait_for_one()
        running[fork(mutant, survives)] = mutant
    while running:
        wait_for_one()


def fork(mutant: Mutant, survives: Callable[[Mutant], bool]) -> int:
    """A process that ends with 0 if a mutant survives, with anything else if not."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        status = 0 if survives(mutant) else 1
    finally:
        os._exit(status)


# What is found


def main() -> int:
    """Tries and reports; 1 where too much survives, or what the page does not list."""
    arguments = parse_arguments()
    os.chdir(ROOT)
    console = Console()
    modules = arguments.modules or RULES
    mutants = [m for module in modules for m in sampled(module, arguments.sample) if arguments.only in (None, m.where)]
    listed = listed_on_page()
    if arguments.list:
        for mutant in mutants:
            say(console, f"{mutant.module}.py:{mutant.line} {mutant.name}")
        return int(are_gone(listed, console))
    if arguments.survivors:
        mutants = [m for m in mutants if m.name in listed[m.module]]
    seen = Seen(console, len(mutants), {})
    made_once = [unchanged("melds", in_function=False), *(m for m in mutants if not m.in_function)]
    try_all(made_once, lambda mutant: survives_afresh(mutant, tests_of([mutant.module], quick=arguments.quick)), seen)
    of_functions = [unchanged(module, in_function=True) for module in modules]
    of_functions += [m for m in mutants if m.in_function]
    tests_are_passed(tests_of(modules, quick=arguments.quick), [Trials(of_functions, seen, quick=arguments.quick)])
    return report(seen, listed)


def sampled(module: str, size: int | None) -> list[Mutant]:
    """The mutants of a module; so many at most, always the same ones, in the order of the module."""
    mutants = list(mutants_of(module))
    if size is None or len(mutants) <= size:
        return mutants
    chosen = random.Random(module).sample(range(len(mutants)), size)
    return [mutants[place] for place in sorted(chosen)]


def tests_of(modules: Sequence[str], *, quick: bool) -> list[str]:
    """The files of the tests of some modules, each once."""
    tests = dict.fromkeys(test for module in modules for test in tests_of_one(module))
    return [str(ROOT / test) for test in tests if not (quick and test in ORACLES)]


def tests_of_one(module: str) -> tuple[str, ...]:
    """The files of the tests of a module, its oracle last."""
    if module in QUICK_JUDGES:
        return TESTS_OF_QUICK_JUDGES
    if module in STEPS:
        return TESTS_OF_STEPS
    if module in SOLVER:
        return (*TESTS_OF_SOLVER, SOLVER_ORACLE)
    return (*TESTS_OF_RULES, MELD_ORACLE if module == "melds" else PLAY_ORACLE)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Change the rules in one place at a time; see whether tests notice.")
    parser.add_argument("modules", nargs="*", metavar="module", help=f"of {', '.join(MODULES)} (those of the rules)")
    parser.add_argument("--only", metavar="function", help="the function to change (all)")
    parser.add_argument("--quick", action="store_true", help="without the tests that try many examples")
    parser.add_argument("--sample", type=int, metavar="number", help="most changes to try of a module (all)")
    parser.add_argument("--survivors", action="store_true", help="only those that docs/mutation.md lists")
    parser.add_argument("--list", action="store_true", help="only list the changes")
    return parser.parse_args()


def listed_on_page() -> dict[str, set[str]]:
    """The survivors that docs/mutation.md explains, by module."""
    listed: dict[str, set[str]] = {module: set() for module in MODULES}
    module = ""
    for line in PAGE.read_text().splitlines() if PAGE.exists() else ():
        if heading := re.match(r"## `engine/([\w/]+)\.py`", line):
            module = heading[1]
        elif entry := re.match(r"- (`[^`]+`: `[^`]+` → `[^`]+`(?: \(\d+\))?)", line):
            listed[module].add(entry[1])
    return listed


def say(console: Console, line: str) -> None:
    """Prints a line as it is, however long."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def are_gone(listed: Mapping[str, set[str]], console: Console) -> bool:
    """Whether the page lists changes of what the code does not have any more; names them."""
    gone = [(module, name) for module in MODULES for name in listed[module] - {m.name for m in mutants_of(module)}]
    for module, name in gone:
        say(console, f"On the page, but not in the code: {module}.py - {name}")
    return bool(gone)


def report(seen: Seen, listed: Mapping[str, set[str]]) -> int:
    """Figures by module, and where the page is wrong; 1 if it is wrong of the rules, or too much of them survives."""
    table = Table("module", "mutants", "noticed", "survived", "share")
    counts = {module: Counter(s for m, s in seen.survived.items() if m.module == module) for module in MODULES}
    shares = []
    for module, count in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        if count:
            share = count[False] / count.total()
            shares += [share] if module in RULES else []
            figures = (count.total(), count[False], count[True], f"{share:.1%}")
            table.add_row(module, *map(str, figures))
    seen.console.print(table)
    unlisted = [m for m, survived in seen.survived.items() if survived and m.name not in listed[m.module]]
    gone = [m for m, survived in seen.survived.items() if not survived and m.name in listed[m.module]]
    for title, mutants in (("Survived, not on the page:", unlisted), ("On the page, but noticed:", gone)):
        if mutants:
            seen.console.print(title, style="bold")
        for m in mutants:
            say(seen.console, f"{m.module}.py:{m.line} - {m.name}")
    wrong = [m for m in (*unlisted, *gone) if m.module in RULES]
    return int(bool(wrong) or are_gone(listed, seen.console) or min(shares, default=1.0) < ENOUGH)


if __name__ == "__main__":
    sys.exit(main())
