"""Compiles the solver's search with mypyc, as an optional extra that nothing needs.

    python -m load.bench.compile_solver      makes build/compiled anew; it takes a C compiler and some minutes

What is compiled is the very source, in a copy of the engine: nothing lies beside the sources, and no import finds the
copy unless it is asked for (`environment`). It is current only while it has the same sources as the engine.
"""

import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
ENGINE: Final = ROOT / "engine"
COMPILED: Final = ROOT / "build" / "compiled"

MODULES: Final = (
    "answers",
    "change_reduction",
    "color_transitions",
    "combined_transitions",
    "fewest_changes",
    "hitting_set",
    "joker_reconstruction",
    "joker_rules",
    "joker_search",
    "joker_transitions",
    "levels",
    "problem",
    "reconstruction",
    "run_assembly",
    "search",
    "solution",
    "turn_problem",
    "turn_search",
)
"""What of engine/solver is compiled: all that a search goes through. The rest would take longer to compile than it
saves."""

OPTIONS: Final = {"MYPYC_OPT_LEVEL": "2", "MYPYC_DEBUG_LEVEL": "0"}
"""More takes twice as long to compile, and searches are no quicker."""


def environment(first: Path) -> dict[str, str]:
    """The environment of a process that imports the engine from a folder, and all else from here."""
    return {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join((str(first), str(ROOT)))}


def copy_engine(target: Path) -> None:
    """Copies the engine's sources into a folder."""
    shutil.copytree(ENGINE, target / ENGINE.name, ignore=shutil.ignore_patterns("__pycache__"))


def is_current(target: Path = COMPILED) -> bool:
    """Whether a folder has a copy of the engine, with all that is compiled, and the sources are still the same."""
    copy = target / ENGINE.name
    sources = {path.relative_to(ENGINE) for path in ENGINE.rglob("*.py")}
    copied = {path.relative_to(copy) for path in copy.rglob("*.py")}
    return (
        sources == copied
        and all(filecmp.cmp(ENGINE / path, copy / path, shallow=False) for path in sources)
        and all((copy / "solver" / f"{module}{EXTENSION_SUFFIXES[0]}").exists() for module in MODULES)
    )


def compile_into(target: Path) -> None:
    """Makes a folder that has the engine with its search compiled, and nothing of it if that fails.

    Raises:
        subprocess.CalledProcessError: It could not be compiled; why was printed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        copy_engine(Path(folder))
        sources = [f"{ENGINE.name}/solver/{module}.py" for module in MODULES]
        command = (sys.executable, "-m", "mypyc", "--config-file=", *sources)
        subprocess.run(command, cwd=folder, env=os.environ | OPTIONS, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for made in (ENGINE.name, *(path.name for path in Path(folder).glob(f"*{EXTENSION_SUFFIXES[0]}"))):
            (Path(folder) / made).rename(target / made)


def main() -> int:
    """Compiles, unless that has been done; 1 when it cannot be."""
    if is_current():
        print(f"{COMPILED.relative_to(ROOT)} is current")
        return 0
    try:
        compile_into(COMPILED)
    except subprocess.CalledProcessError as error:
        print(f"The solver could not be compiled (is there a C compiler?): {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
