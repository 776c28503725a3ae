"""Writing figures into docs/performance.md."""

import json
from pathlib import Path

import pytest

from load import pages
from load.bench import analysis as bench_analysis
from load.bench import page
from load.bench.__main__ import PARTS
from load.bench.figures import goal
from load.pages import page_with, text_of

REPORT = {
    "requirements": [
        {"what": "a call: at most 2", "met": True, "measured": "1.5"},
        {"what": "a turn: at most 1", "met": False, "measured": "1.1"},
        goal("a batch: at most 3", met=False, measured="3.1"),
    ]
}


def test_what_a_command_makes_takes_the_place_of_what_it_made_before() -> None:
    before = "# Page\n<!-- made by make this: begin -->\nold\n<!-- made by make this: end -->\nmore\n"
    after = page_with(before, "make this", "new")
    assert after == before.replace("old", "new")
    with pytest.raises(ValueError, match="no marks for the output of make that"):
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
| a turn: at most 1 | 1.1 | **missed** |
| a batch: at most 3 | 3.1 | a goal, not met yet |"""
    )


def test_the_pages_have_a_place_for_each_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_page = {name: part for name, part in PARTS.items() if part.page}
    told = with_page["jokers"]._replace(
        told=lambda _: ("python 3",), tables=lambda _: {"Costs": [["", "us"], ["a", "7"]]}
    )
    for part in with_page.values():
        (tmp_path / part.page).write_text((pages.DOCS / part.page).read_text())
    (tmp_path / "jokers.json").write_text(json.dumps(REPORT))
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    monkeypatch.setattr(page, "PARTS", {**with_page, "jokers": told})
    assert page.main([], tmp_path) == 0
    assert "| a | 7 |" in (tmp_path / told.page).read_text()
    for name, part in with_page.items():
        page_with((tmp_path / part.page).read_text(), f"make bench PART={name}", "")


def test_programs_are_told_with_how_many_times_as_long_as_the_solver_they_took() -> None:
    quick, slow = ({"median": ms, "p95": ms, "p99": ms, "max": ms} for ms in (2.0, 9.0))
    compared = {
        "positions": 3,
        "milliseconds": {bench_analysis.SOLVER: quick, bench_analysis.REDUCED: slow},
        "ratios": {bench_analysis.REDUCED: dict.fromkeys(slow, 4.5)},
    }
    report = {
        "positions": {"solver": 7},
        "solver_on_all": {bench_analysis.SOLVER: quick},
        "sorts": {"all": compared, "none of a sort": {"positions": 0}},
    }
    ((head, *rows),) = bench_analysis.tables_of(report).values()
    assert {len(row) for row in rows} == {len(head)}
    assert [row[:3] for row in rows] == [
        ["7, all", "solver", "2.00"],
        ["3, all", "solver", "2.00"],
        ["", "reduced program", "9.00 (4.5)"],
    ]


def test_without_figures_it_says_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="make bench"):
        page.main([], tmp_path)
