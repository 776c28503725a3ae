"""A compiled solver is used only if it was compiled from the current sources."""

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from rich.console import Console

from load.bench.compile_solver import ENGINE, MODULES, copy_engine, is_current
from load.bench.compiled import compared
from load.corpus.positions import read


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Returns a copy like that of a compilation; the compiled modules are empty files."""
    target = tmp_path / "compiled"
    copy_engine(target)
    for module in MODULES:
        (target / "engine" / "melding" / "solver" / f"{module}{EXTENSION_SUFFIXES[0]}").touch()
    return target


def test_a_copy_of_the_same_sources_is_current(made: Path) -> None:
    assert is_current(made)


def test_a_copy_is_not_current_once_a_source_has_changed(made: Path) -> None:
    (made / "engine" / "tiles.py").write_text("# as it was before\n")
    assert not is_current(made)


def test_a_copy_is_not_current_once_a_source_has_come_or_gone(made: Path) -> None:
    (made / "engine" / "melding" / "solver" / "gone.py").touch()
    assert not is_current(made)


def test_a_copy_is_not_current_without_all_that_is_compiled(made: Path) -> None:
    (made / "engine" / "melding" / "solver" / f"{MODULES[-1]}{EXTENSION_SUFFIXES[0]}").unlink()
    assert not is_current(made)


def test_nothing_is_not_current(tmp_path: Path) -> None:
    assert not is_current(tmp_path / "nothing")


def test_what_is_compiled_are_modules_of_the_solver() -> None:
    assert {path.stem for path in (ENGINE / "melding" / "solver").glob("*.py")} > set(MODULES)


def test_two_solvers_are_measured_on_the_same_positions_and_their_answers_compared(tmp_path: Path) -> None:
    copy_engine(tmp_path)
    answers = tmp_path / "engine" / "melding" / "solver" / "__init__.py"
    corpus = read()[:3]
    console = Console(quiet=True)
    same = compared(corpus, console, tmp_path)
    assert same["agree"] == same["positions"] == 3
    assert all(one["milliseconds"]["compiled"]["max"] > 0 for one in same["questions"].values())

    without_turn = "BestTurn(None, is_proven=True, is_least_change=True)"
    answers.write_text(f"{answers.read_text()}\n\ndef best_turn(*_, **__):\n    return {without_turn}\n")
    assert compared(corpus, console, tmp_path)["agree"] < 3
