"""Compiles the solver's search with mypyc, which is optional.

    python -m load.bench.compile_solver      rebuilds build/compiled; needs a C compiler and some minutes

It compiles an unchanged copy of the engine's source. No import finds the copy unless `environment` puts it on the path.
The copy is current while its sources equal the engine's.
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
"""The modules of the solver that a search runs through. Compiling the rest takes longer than it saves."""

OPTIONS: Final = {"MYPYC_OPT_LEVEL": "2", "MYPYC_DEBUG_LEVEL": "0"}
"""Higher levels double the compile time and make searches no faster."""


def environment(first: Path) -> dict[str, str]:
    """Returns the environment of a process that imports the engine from a folder, the rest from here."""
    return {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join((str(first), str(ROOT)))}


def copy_engine(target: Path) -> None:
    """Copies the engine's sources into a folder."""
    shutil.copytree(ENGINE, target / ENGINE.name, ignore=shutil.ignore_patterns("__pycache__"))


def is_current(target: Path = COMPILED) -> bool:
    """Whether a folder has a compiled copy of the engine with the current sources."""
    copy = target / ENGINE.name
    sources = {path.relative_to(ENGINE) for path in ENGINE.rglob("*.py")}
    copied = {path.relative_to(copy) for path in copy.rglob("*.py")}
    return (
        sources == copied
        and all(filecmp.cmp(ENGINE / path, copy / path, shallow=False) for path in sources)
        and all((copy / "melding" / "solver" / f"{module}{EXTENSION_SUFFIXES[0]}").exists() for module in MODULES)
    )


def compile_into(target: Path) -> None:
    """Creates a folder with the engine and its compiled search; removes it if that fails.

    Raises:
        subprocess.CalledProcessError: The compilation failed; the compiler printed the cause.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        copy_engine(Path(folder))
        sources = [f"{ENGINE.name}/melding/solver/{module}.py" for module in MODULES]
        command = (sys.executable, "-m", "mypyc", "--config-file=", *sources)
        subprocess.run(command, cwd=folder, env=os.environ | OPTIONS, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for made in (ENGINE.name, *(path.name for path in Path(folder).glob(f"*{EXTENSION_SUFFIXES[0]}"))):
            (Path(folder) / made).rename(target / made)


def main() -> int:
    """Compiles unless the copy is current; returns 1 on failure."""
    if is_current():
        print(f"{COMPILED.relative_to(ROOT)} is current")
        return 0
    try:
        compile_into(COMPILED)
    except subprocess.CalledProcessError as error:
        print(f"Compiling the solver failed (is a C compiler installed?): {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
