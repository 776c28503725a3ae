"""Few tests replace a part of the code or read a private attribute of it. Lower these bounds; do not raise them."""

import re
from pathlib import Path

import pytest

from support.harness import ROOT

TESTS = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]


@pytest.mark.parametrize(("use", "most"), [(r"\.setattr\(", 60), ("noqa: SLF001", 18)])
def test_few_tests_lean_on_insides(use: str, most: int) -> None:
    count = sum(len(re.findall(use, path.read_text(encoding="utf-8"))) for path in TESTS)
    assert count <= most, "give the code an argument or a setting instead"
