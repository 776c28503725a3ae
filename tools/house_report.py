"""Measures the structure of a checkout, so that two checkouts can be compared.

It measures this checkout, or those that are named, side by side.
A room is a package or module directly in `service/`; an arrow is an import from one room by another; the floors are
the rooms of the longest import chain. Sizes count source lines: a function's are those of its body without the
docstring. Lines of folders leave generated code out. It fails if modules of `engine/` or `service/` import each other.
"""

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from shutil import which

from tools.columns import columns

Function = ast.FunctionDef | ast.AsyncFunctionDef

ROOT = Path(__file__).resolve().parents[1]
GIT = which("git") or "git"
SIZED = ("engine", "service")
"""The packages whose modules and functions are measured."""
FOLDERS = ("engine", "service", "load", "tools", "tests", "clients", "web")
SOURCES = (".cpp", ".cs", ".css", ".go", ".html", ".java", ".kt", ".lua", ".py", ".rs", ".ts")
LONGEST_SHOWN = 5


@dataclass(frozen=True)
class Module:
    """A parsed Python file.

    Attributes:
        path: Relative to the checkout.
    """

    path: Path
    source: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """The number of lines."""
        return self.source.count("\n")

    @property
    def package(self) -> tuple[str, ...]:
        """The names of the package that holds this module, or of the module itself if it is a package."""
        return self.path.parent.parts

    @property
    def name(self) -> str:
        """The dotted name by which it is imported."""
        stem = () if self.path.stem == "__init__" else (self.path.stem,)
        return ".".join((*self.package, *stem))

    def functions(self) -> Iterator[Function]:
        """Yields the functions and methods, nested ones too."""
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def imports(self) -> Iterator[str]:
        """Yields the dotted names of everything imported, with the name behind each `from x import`."""
        for node in ast.walk(self.tree):
            match node:
                case ast.Import(names=names):
                    yield from (alias.name for alias in names)
                case ast.ImportFrom(names=names):
                    source = self.source_of(node)
                    yield from (f"{source}.{alias.name}" for alias in names)
                case _:
                    pass

    def source_of(self, node: ast.ImportFrom) -> str:
        """Returns the absolute name of the module that a `from` statement imports from."""
        above = self.package[: len(self.package) - node.level + 1] if node.level else ()
        return ".".join((*above, *([node.module] if node.module else [])))


def read_modules(checkout: Path, folders: Iterable[str]) -> list[Module]:
    """Parses every Python file in some folders of a checkout, in order of path."""
    paths = sorted(path for folder in folders for path in (checkout / folder).rglob("*.py"))
    return [read_module(checkout, path) for path in paths]


def read_module(checkout: Path, path: Path) -> Module:
    """Parses one file."""
    source = path.read_text()
    return Module(path.relative_to(checkout), source, ast.parse(source))


# The architecture of service/


@dataclass(frozen=True)
class Rooms:
    """The rooms of a package, each with the rooms that it imports."""

    imports: Mapping[str, Set[str]]

    @property
    def arrows(self) -> int:
        """The number of pairs of rooms of which one imports the other."""
        return sum(map(len, self.imports.values()))

    @property
    def floors(self) -> int | None:
        """The number of rooms in the longest import chain; None if imports form a cycle."""
        try:
            order = tuple(TopologicalSorter(self.imports).static_order())
        except CycleError:
            return None
        height: dict[str, int] = {}
        for room in order:
            height[room] = 1 + max((height[below] for below in self.imports[room]), default=0)
        return max(height.values(), default=0)


def rooms_of(modules: Iterable[Module], package: str) -> Rooms:
    """Returns the rooms of a package; its own `__init__` is none."""
    imports: dict[str, set[str]] = {}
    for module in modules:
        if room := room_of(module.name, package):
            imports.setdefault(room, set()).update(
                other for name in module.imports() if (other := room_of(name, package)) and other != room
            )
    return Rooms({room: others & imports.keys() for room, others in imports.items()})


def room_of(name: str, package: str) -> str | None:
    """Returns the room of a dotted name; None if it is not below the package."""
    top, _, rest = name.partition(".")
    return rest.partition(".")[0] or None if top == package else None


def circle(modules: Iterable[Module]) -> Sequence[str]:
    """Returns the names of modules of which each imports the next, and the last the first; empty if there are none."""
    known = {module.name: module for module in modules}
    imported = {
        name: {found for text in module.imports() if (found := nearest(text, known))} for name, module in known.items()
    }
    try:
        TopologicalSorter({name: others - {name} for name, others in imported.items()}).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


def nearest(name: str, known: Mapping[str, Module]) -> str | None:
    """Returns the module of a dotted name of a module or of something in it; None if it is not a known one."""
    above = name.rpartition(".")[0]
    return name if name in known else above if above in known else None


# Sizes


def size(function: Function) -> int:
    """Returns the lines of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


# The report


@dataclass(frozen=True)
class House:
    """A checkout to measure."""

    checkout: Path

    @cached_property
    def modules(self) -> list[Module]:
        """The modules of engine/ and service/."""
        return read_modules(self.checkout, SIZED)

    @cached_property
    def circle(self) -> Sequence[str]:
        """A circle of imports in engine/ or service/; empty if there is none."""
        return circle(self.modules)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yields every measure with its name."""
        yield from self.architecture()
        yield from self.sizes()

    def architecture(self) -> Iterator[tuple[str, str]]:
        """Yields the measures of service/ as a graph."""
        rooms = rooms_of(self.modules, "service")
        yield "service: modules", str(sum(module.package[0] == "service" for module in self.modules))
        yield "service: rooms", str(len(rooms.imports))
        yield "service: floors", str(rooms.floors or "cycle")
        yield "service: arrows between rooms", str(rooms.arrows)
        yield "a circle of imports", str(len(self.circle) - 1) + " modules" if self.circle else "none"

    def sizes(self) -> Iterator[tuple[str, str]]:
        """Yields percentiles of the lines of modules and functions."""
        functions = [size(function) for module in self.modules for function in module.functions()]
        for folder in FOLDERS:
            yield f"lines of {folder}/", f"{lines_of(self.checkout, folder):,}"
        yield "modules: lines p50 / p90 / max", percentiles([module.lines for module in self.modules], 50, 90)
        yield "functions", f"{len(functions):,}"
        yield "functions: lines p50 / p90 / p99 / max", percentiles(functions, 50, 90, 99)


def percentiles(values: Sequence[int], *parts: int) -> str:
    """Returns percentiles (nearest rank) and the maximum as text."""
    ordered = sorted(values)
    found = [ordered[max(0, -(-len(ordered) * part // 100) - 1)] for part in parts]
    return " / ".join(map(str, [*found, ordered[-1]]))


def longest(modules: Iterable[Module]) -> Iterator[str]:
    """Yields the longest functions, each with its place and its lines."""
    found = [(size(function), module.path, function) for module in modules for function in module.functions()]
    for lines, path, function in sorted(found, key=lambda entry: -entry[0])[:LONGEST_SHOWN]:
        yield f"{lines:4} lines  {path}:{function.lineno} {function.name}"


def lines_of(checkout: Path, folder: str) -> int:
    """Returns the lines of the sources in a folder, generated ones left out."""
    attributes = f"core.attributesFile={ROOT / '.gitattributes'}"  # the other checkout may be older than this file
    listing = [
        GIT,
        "-C",
        str(checkout),
        "-c",
        attributes,
        "ls-files",
        "--",
        folder,
        ":(exclude,attr:linguist-generated)",
    ]
    files = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.splitlines()
    return sum((checkout / file).read_bytes().count(b"\n") for file in files if file.endswith(SOURCES))


def main() -> int:
    """Prints the report."""
    parser = argparse.ArgumentParser(description="Measure the structure of checkouts, side by side.")
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT], help="folders of checkouts (this one)")
    parser.add_argument("--longest", action="store_true", help="also list the longest functions of each checkout")
    chosen = parser.parse_args()
    houses = [House(checkout.resolve()) for checkout in chosen.checkouts]
    measures = [list(house.rows()) for house in houses]
    names = ("", *(house.checkout.name for house in houses))
    print(columns([names, *((row[0][0], *(value for _, value in row)) for row in zip(*measures, strict=True))]))
    for house in houses if chosen.longest else ():
        print(f"\nThe longest functions of {house.checkout.name}:", *longest(house.modules), sep="\n")
    circles = [house for house in houses if house.circle]
    for house in circles:
        print(f"\nModules of {house.checkout.name} import each other: {' -> '.join(house.circle)}", file=sys.stderr)
    return 1 if circles else 0


if __name__ == "__main__":
    sys.exit(main())
