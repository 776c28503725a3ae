"""The report of a run under faults: which run found the seeded bugs, and which faults a complete run lacks."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from load.bench.figures import verdict as mark
from load.chaos import report
from load.chaos.bugs import BUGS, Found
from load.chaos.checker import Verdict
from load.chaos.deployments import DEPLOYMENTS, faults_of
from load.chaos.proxy import KINDS
from load.chaos.report import Sought, keep, requirements_of, sought_before, tables_of

FOUND = tuple(Found(bug.name, 30.0, ("lost",)) for bug in BUGS)
SOUGHT = Sought("2026-01-02", "abc1234", 7, FOUND)


def complete() -> dict[str, Verdict]:
    """Returns the results of a run with each fault on each store."""
    mischief = Counter(dict.fromkeys(KINDS, 200))
    return {
        store: Verdict(
            calls=200_000, acknowledged=1, faults=Counter(dict.fromkeys(faults_of(store), 20)), mischief=mischief
        )
        for store in DEPLOYMENTS
    }


def missed(results: Mapping[str, Verdict], sought: Sought | None) -> list[str]:
    """Returns the requirements of a complete run that are not met."""
    return [one["what"] for one in requirements_of(results, sought, is_complete=True) if mark(one) != "met"]


def test_a_complete_run_meets_all_requirements() -> None:
    assert not missed(complete(), SOUGHT)


@pytest.mark.parametrize("store", DEPLOYMENTS)
def test_a_complete_run_has_each_kind_of_fault_on_each_store(store: str) -> None:
    for name in faults_of(store):
        results = complete()
        del results[store].faults[name]
        (one,) = [one for one in requirements_of(results, SOUGHT, is_complete=True) if mark(one) != "met"]
        assert (mark(one), one["measured"]) == ("missed", f"none of: {name} ({DEPLOYMENTS[store].name})")


def test_a_complete_run_needs_the_mischief_of_proxies_and_all_stores() -> None:
    results = complete()
    results["redis"].mischief = Counter({"delay": 1})
    assert missed(results, SOUGHT) == [report.EACH_FAULT]
    results = complete()
    del results["cluster"]
    assert missed(results, SOUGHT) == [report.EACH_FAULT]


def test_a_complete_run_needs_all_bugs() -> None:
    some = Sought(SOUGHT.date, SOUGHT.revision, SOUGHT.seed, FOUND[:-1])
    assert missed(complete(), some) == missed(complete(), None) == [report.EACH_BUG]


def test_the_run_that_sought_the_bugs_is_kept_and_told(tmp_path: Path) -> None:
    path = tmp_path / "results" / "bugs.json"
    assert sought_before(path) is None
    keep(SOUGHT, path)
    assert sought_before(path) == SOUGHT
    (title,) = [title for title in tables_of(complete(), SOUGHT) if "Seeded bugs" in title]
    assert all(part in title for part in ("2026-01-02", "abc1234", "seed 7"))


def test_results_without_their_run_are_not_told(tmp_path: Path) -> None:
    path = tmp_path / "bugs.json"
    path.write_text(json.dumps([{"bug": "no fence", "seconds": 1.0, "by": ["lost"]}]))
    assert sought_before(path) is None
