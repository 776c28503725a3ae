"""A drill fails if its fault did not happen, if nothing was measured, and if callers were hurt."""

import json
from pathlib import Path

import pytest

from load.drills import reports


def test_only_a_complete_run_is_written_into_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(reports, "RESULTS", tmp_path)
    monkeypatch.setattr(reports, "write", lambda *parts: written.extend(parts))
    report = {"seconds": 61.0, "requirements": [{"what": "it holds", "met": False, "measured": "no"}]}
    assert reports.finish("cluster", report, {}, is_complete=False) == 1
    assert not written
    report["requirements"] = [{"what": "it holds", "met": True, "measured": "yes"}]
    assert reports.finish("cluster", report, {"Scenes": [["scene"], ["killed"]]}, is_complete=True) == 0
    page, command, text = written
    assert (page, command) == ("operation.md", "make drill ARGS=cluster")
    facts = json.loads((tmp_path / "cluster.json").read_text())
    assert text.startswith(f"run of {facts['date']}, 61 seconds;\n")
    assert "| it holds | yes | met |" in text
