"""The report of a run: tables of what was done, what held, and which seeded bugs were found."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from load.bench.figures import Tables, are_met, goal, print_report, printer, requirement, run_facts, told_of_run
from load.chaos.bugs import BUGS, MOST_SECONDS, Found
from load.chaos.checker import Verdict
from load.chaos.deployments import DEPLOYMENTS, faults_of
from load.chaos.proxy import KINDS
from load.chaos.run import RESULTS
from load.pages import text_of, write
from load.parts import every_part_ends
from tools.redis_servers import redis_version

PAGE: Final = "reliability.md"
COMMAND: Final = "make chaos"
BUGS_FOUND: Final = RESULTS / "bugs.json"
CALLS, FAULTS = 500_000, 300
"""The goals of a complete run."""
EACH_FAULT: Final = "each kind of fault on each store that can have it"
EACH_BUG: Final = "every seeded bug is found"

Results = Mapping[str, Verdict]
"""The results of the histories, by store."""


@dataclass(frozen=True, slots=True)
class Sought:
    """The results of a search for bugs, with the run's date, revision and seed."""

    date: str
    revision: str
    seed: int
    found: Sequence[Found]


def total_of(results: Results) -> Verdict:
    """Returns what all histories together have shown."""
    total = Verdict()
    for verdict in results.values():
        total.add(verdict)
    return total


def requirements_of(results: Results, sought: Sought | None, *, is_complete: bool) -> list[dict[str, Any]]:
    """Returns what has to hold of a run, and the goals of a complete one."""
    total = total_of(results)
    rules = Counter(violation.rule for violation in total.violations)
    required = [
        requirement(
            "nothing lost, doubled, reordered or otherwise wrong",
            met=not rules,
            measured=", ".join(f"{rule} {count}" for rule, count in sorted(rules.items())) or f"{total.games:,} games",
        ),
        requirement("something was measured", met=bool(total.acknowledged), measured=f"{total.acknowledged:,} changes"),
        requirement("faults happened", met=bool(total.faults), measured=f"{total.faults.total():,} faults"),
    ]
    if is_complete:
        found = sought.found if sought else ()
        count, in_time = (
            len({one.bug for one in found if one.seconds is not None}),
            sum(one.is_in_time for one in found),
        )
        measured = f"{count} of {len(BUGS)}" if found else "not sought: `make chaos ARGS=bugs`"
        required.append(requirement(EACH_BUG, met=count == len(BUGS), measured=measured))
        what = f"each within {MOST_SECONDS:g} s, with the start of its servers"
        required.append(goal(what, met=in_time == len(found), measured=f"{in_time} of {len(found)}"))
        lacking = list(_lacking(results))
        measured = f"none of: {', '.join(lacking)}" if lacking else "at least one of each"
        required.append(requirement(EACH_FAULT, met=not lacking, measured=measured))
        required.append(goal(f"{CALLS:,} calls", met=total.calls >= CALLS, measured=f"{total.calls:,}"))
        faults = total.faults.total()
        required.append(goal(f"{FAULTS:,} faults", met=faults >= FAULTS, measured=f"{faults:,}"))
    return required


def _lacking(results: Results) -> Iterator[str]:
    """Yields the faults that did not happen, by store."""
    for store, kind in DEPLOYMENTS.items():
        verdict = results.get(store, Verdict())
        for name in sorted(faults_of(store)):
            if not verdict.faults[name]:
                yield f"{name} ({kind.name})"
        for name in KINDS:
            if not verdict.mischief[name]:
                yield f"{name} (proxy, {kind.name})"


def tables_of(results: Results, sought: Sought | None) -> Tables:
    """Returns the tables of a report."""
    head = [
        "store",
        "calls",
        "unanswered",
        "games",
        "changes",
        "watched",
        "time-outs",
        "latest, s",
        "faults",
        "violations",
        "losses",
    ]
    stores = [head]
    for store, one in results.items():
        counts = (one.calls, one.unanswered, one.games, one.changes, one.watched, one.time_outs)
        after = (one.faults.total(), len(one.violations), len(one.losses))
        texts = [f"{number:,}" for number in counts], [f"{number:,}" for number in after]
        stores.append([DEPLOYMENTS[store].name, *texts[0], f"{one.latest_seconds:.1f}", *texts[1]])
    faults = [["fault", *(DEPLOYMENTS[store].name for store in results)]]
    faults += [
        [name, *(f"{one.faults[name]:,}" for one in results.values())] for name in sorted(total_of(results).faults)
    ]
    faults += [
        [f"{name} (proxy)", *(f"{one.mischief[name]:,}" for one in results.values())]
        for name in sorted(total_of(results).mischief)
    ]
    tables = {"Histories of players under faults": stores, "Faults that were made": faults}
    if sought:
        rows = [
            [one.bug, "not found" if one.seconds is None else f"{one.seconds:.0f}", ", ".join(one.by)]
            for one in sought.found
        ]
        of_run = f"run of {sought.date}, revision {sought.revision}, seed {sought.seed}"
        title = f"Seeded bugs, and after how many seconds which rules found them ({of_run})"
        tables[title] = [["bug", "seconds", "rules"], *rows]
    return tables


def keep(sought: Sought, path: Path = BUGS_FOUND) -> None:
    """Writes the results of a search for bugs, for the next complete run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(sought), indent=2) + "\n")


def sought_before(path: Path = BUGS_FOUND) -> Sought | None:
    """Returns the results of the last search for all bugs; None without one, or if they do not tell their run."""
    kept = json.loads(path.read_text()) if path.exists() else None
    if not isinstance(kept, dict):
        return None
    return Sought(
        **{**kept, "found": tuple(Found(one["bug"], one["seconds"], tuple(one["by"])) for one in kept["found"])}
    )


def finish(results: Results, errors: Mapping[str, str], *, is_complete: bool) -> int:
    """Prints and writes the report, that of a complete run also into the page; returns 1 if a requirement is missed."""
    total = total_of(results)
    sought = sought_before() if is_complete else None
    report: dict[str, Any] = {
        **run_facts("grpcio"),
        "store": redis_version(),
        "revision": ", ".join(sorted({one.run.revision for one in results.values() if one.run})),
        "seed": ", ".join(sorted({str(one.run.seed) for one in results.values() if one.run})),
        "seconds": total.seconds,
        "violations": [str(violation) for violation in total.violations],
        "requirements": requirements_of(results, sought, is_complete=is_complete),
    }
    if errors:
        report["requirements"].append(every_part_ends(errors))
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    told = (*told_of_run(report), report["store"], f"seed {report['seed']}")
    tables = tables_of(results, sought)
    violations = [str(violation) for violation in total.violations[:20]]
    print_report(report, tables, [*told, *violations, f"All figures: {RESULTS / 'report.json'}"], printer(160))
    if is_complete and not errors:
        write(PAGE, COMMAND, text_of(report, told, tables))
        print(f"docs/{PAGE} has the figures of this run now.")
    return 0 if are_met(report) else 1
