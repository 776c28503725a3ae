"""The results of fuzzing as a report: requirements, tables, and the part of docs/reliability.md."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from load.bench.figures import Tables, requirement
from load.fuzz.calls import MOST_GROWTH_MB, MOST_MORE_DESCRIPTORS
from load.fuzz.dearest import (
    MOST_BYTES,
    MOST_BYTES_OF_LARGE,
    MOST_CALLS,
    MOST_SEARCH_SECONDS,
    as_rows,
    in_plain_bytes,
    in_plain_turns,
)
from load.fuzz.edge import MOST_EDGE_GROWTH_MB, MOST_MORE_CONNECTIONS

Results = Mapping[str, Mapping[str, Any]]
"""The figures of each part, as its file has them: "guided", "calls", "dearest", "wire" and "edge"."""


def requirements_of(results: Results) -> list[dict[str, Any]]:
    """Returns what has to hold of the parts that ran."""
    found = []
    if "guided" in results:
        failed = results["guided"]["failed"]
        found.append(
            requirement(
                "guided: no crash, no error that is not documented, no disagreement, no slow input",
                met=not failed,
                measured=failed or f"{sum(results['guided']['counts'].values()):,} inputs",
            )
        )
    for name, ends in {"calls": "INTERNAL, UNKNOWN", "edge": "INTERNAL, UNKNOWN, HTTP 500"}.items():
        if name in results:
            calls = results[name]
            found.append(
                requirement(
                    f"{name}: no call ends with {ends} or without an answer",
                    met=bool(calls["ends"]) and not calls["bad"],
                    measured=f"{len(calls['bad'])} of {sum(calls['ends'].values()):,}",
                )
            )
    if "dearest" in results:
        found += _of_dearest(results["dearest"])
    for name in ("calls", "wire", "edge"):
        if name in results:
            found += _beside(name, results[name])
    if "edge" in results:
        found += _of_envoy(results["edge"])
    return found


def _of_dearest(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns what has to hold of the dearest requests."""
    plain = found["plain"]
    a_byte = max((in_plain_bytes(one, plain) for one in found["by_byte"]), default=0.0)
    calls = [(in_plain_turns(one, plain), in_plain_bytes(one, plain)) for one in found["by_call"]]
    searches = max((one["search_ms"] / 1e3 for one in found["by_search"]), default=0.0)
    return [
        requirement(
            f"dearest: a byte takes the server's process at most {MOST_BYTES:g} times the CPU of a plain turn's byte",
            met=a_byte <= MOST_BYTES,
            measured=f"{a_byte:.1f} times",
        ),
        requirement(
            f"dearest: a call takes at most {MOST_CALLS:g} times a plain turn, or {MOST_BYTES_OF_LARGE:g} times a byte",
            met=all(turns <= MOST_CALLS or a_byte <= MOST_BYTES_OF_LARGE for turns, a_byte in calls),
            measured=f"{max((turns for turns, _ in calls), default=0.0):.1f} times",
        ),
        requirement(
            f"dearest: searches take at most {MOST_SEARCH_SECONDS:g} s of CPU for a call with a deadline of 5 s",
            met=searches <= MOST_SEARCH_SECONDS,
            measured=f"{searches:.2f} s",
        ),
    ]


def _beside(name: str, found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns what has to hold of honest calls beside an attack, and of the server after it."""
    return [
        requirement(
            f"{name}: honest calls beside it are answered rightly",
            met=found["honest"] > 0 and not found["wrong"],
            measured=f"{len(found['wrong'])} wrong of {found['honest']:,}",
        ),
        *_of_process(f"{name}: the server", found, _descriptors(name), MOST_GROWTH_MB),
    ]


def _of_envoy(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns what has to hold of Envoy after an attack."""
    own = {name: found[f"edge_{name}"] for name in ("errors", "descriptors", "megabytes")}
    return _of_process("edge: Envoy", own, MOST_MORE_CONNECTIONS, MOST_EDGE_GROWTH_MB)


def _descriptors(name: str) -> int:
    return MOST_MORE_CONNECTIONS if name == "edge" else MOST_MORE_DESCRIPTORS


def _of_process(who: str, found: Mapping[str, Any], descriptors: int, growth: float) -> list[dict[str, Any]]:
    """Returns what has to hold of a process after an attack."""
    (fds, fds_after), (mb, mb_after) = found["descriptors"], found["megabytes"]
    return [
        requirement(f"{who} logs no error", met=not found["errors"], measured=f"{len(found['errors'])} log lines"),
        requirement(
            f"{who} has at most {descriptors} descriptors more than before",
            met=fds_after <= fds + descriptors,
            measured=f"{fds}, {fds_after}",
        ),
        requirement(
            f"{who} has at most {growth:g} MB of memory more than before",
            met=mb_after <= mb + growth,
            measured=f"{mb:.0f} MB, {mb_after:.0f} MB",
        ),
    ]


def tables_of(results: Results) -> Tables:
    """Returns the tables of a report."""
    tables: dict[str, Sequence[Sequence[str]]] = {}
    if "guided" in results:
        tables["Coverage-guided fuzzing"] = _guided_rows(results["guided"])
    if "calls" in results:
        tables["Mutated calls by listener and status"] = _call_rows(results["calls"])
    if "dearest" in results:
        found = results["dearest"]
        tables["The dearest requests by CPU of the server's process for a byte, one of each RPC"] = as_rows(
            found["by_byte"]
        )
        tables["The same by CPU of the server's process for a call"] = as_rows(found["by_call"])
        tables["The same by CPU of search processes, when it was sent first"] = as_rows(found["by_search"])
    if "wire" in results:
        tables["Abuse of HTTP/2: what was sent, and connections that the server closed"] = _wire_rows(results["wire"])
    if "edge" in results:
        tables["Mutated calls through the edge by form and status"] = _call_rows(results["edge"])
        tables["Abuse of HTTP/2 at the edge: what was sent, and connections that it closed"] = _wire_rows(
            results["edge"]
        )
    return tables


def _guided_rows(found: Mapping[str, Any]) -> list[list[str]]:
    inputs: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for outcome, count in found["counts"].items():
        name, _, error = outcome.partition(": ")
        inputs[name] += count
        refused[name] += count if error else 0
    rows = [["target", "inputs", "with a documented error", "slowest, ms of CPU"]]
    for name, count in inputs.items():
        if name:
            slowest = found["slowest"].get(name, 0.0) * 1e3
            rows.append([name, f"{count:,}", f"{refused[name]:,}", f"{slowest:.0f}"])
    return rows


def _call_rows(found: Mapping[str, Any]) -> list[list[str]]:
    listeners = sorted({key.partition(": ")[0] for key in found["ends"]})
    statuses = sorted({key.partition(": ")[2] for key in found["ends"]})
    rows = [["status", *listeners]]
    return [
        *rows,
        *([status, *(f"{found['ends'].get(f'{one}: {status}', 0):,}" for one in listeners)] for status in statuses),
    ]


def _wire_rows(found: Mapping[str, Any]) -> list[list[str]]:
    rows = [["listener: attack", "sent", "closed"]]
    for attack, ends in found["attacks"].items():
        closed = ends.get("closed by the server", 0)
        rows.append([attack, f"{sum(ends.values()) - closed:,}", f"{closed:,}"])
    return rows


def told_of(results: Results) -> list[str]:
    """Returns revision, date, seed and duration of each part."""
    return [
        f"{name}: revision {found['revision']}, {found['date']}, seed {found['seed']}, {found['seconds']:.0f} s, "
        f"{found['processors']} processors"
        for name, found in results.items()
    ]
