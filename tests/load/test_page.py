"""How figures come into docs/performance.md."""

import json
from pathlib import Path

import pytest

from load import page
from load.page import page_with, text_of

REPORT = {
    "requirements": [
        {"what": "a call: at most 2", "met": True, "measured": "1.5"},
        {"what": "a turn: at most 1", "met": False, "measured": "1.1"},
    ]
}


def test_what_a_command_makes_takes_the_place_of_what_it_made_before() -> None:
    before = "# Page\n<!-- made by make this: begin -->\nold\n<!-- made by make this: end -->\nmore\n"
    after = page_with(before, "make this", "new")
    assert after == before.replace("old", "new")
    with pytest.raises(ValueError, match="no place for what make that makes"):
        page_with(before, "make that", "new")


def test_a_report_is_shown_with_its_tables_and_what_was_missed() -> None:
    text = text_of(REPORT, ("python 3", "a machine"), {"Costs": [["", "us"], ["a call", "7"]]})
    assert (
        text
        == """\
python 3;
a machine.

Costs.

|  | us |
| --- | ---: |
| a call | 7 |

| required | measured |  |
| --- | --- | --- |
| a call: at most 2 | 1.5 | met |
| a turn: at most 1 | 1.1 | **missed** |"""
    )


def test_the_page_has_a_place_for_each_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "performance.md"
    copy.write_text(page.PAGE.read_text())
    figures = {"median": 1.0, "low": 1.0, "high": 1.0, "least": 1.0, "most": 1.0}
    engine = {
        **REPORT,
        "versions": {"python": "3"},
        "machine": "a machine",
        "microseconds": {"a turn": figures},
        "stock_noop_us": figures,
    }
    (tmp_path / "engine.json").write_text(json.dumps(engine))
    monkeypatch.setattr(page, "PAGE", copy)
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["load.page"])
    assert page.main() == 0
    assert "| a turn | 1.00 | 1.00-1.00 | 1.00 |" in copy.read_text()
    for part in page.PARTS:
        page_with(copy.read_text(), f"make bench PART={part}", "")


def test_without_figures_it_says_how_to_make_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["load.page"])
    with pytest.raises(SystemExit, match="make bench"):
        page.main()
