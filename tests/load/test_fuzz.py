"""Fuzzing: every RPC has a seed, seeds and mutations raise documented errors only, and findings miss requirements."""

import contextlib
import dataclasses
import json
import os
import random
import subprocess
import sys
import time
from typing import Any

import pytest
from google.protobuf import message_factory
from google.protobuf.message import DecodeError

from load.floods.http2 import DATA, HEADERS, call, header_block, message
from load.fuzz import dearest, report, targets
from load.fuzz.calls import Bad, Findings
from load.fuzz.mutations import MOST_BYTES, Mutator
from load.fuzz.seeds import ADMIN, HEALTH, path_of, served_rpcs
from service.errors import Fault
from service.grpc_api import reflection
from support.harness import CONTRACT

SERVED = [path_of(rpc) for service in (*CONTRACT, HEALTH, *reflection.SERVICES) for rpc in service.methods]
OF_VALIDATION = [path for path in SERVED if "ValidationService" in path or path.endswith("Health/Check")]


def test_every_rpc_of_every_listener_has_a_seed() -> None:
    served = {listener: [rpc.path for rpc in rpcs] for listener, rpcs in served_rpcs().items()}
    assert sorted(served["main"]) == sorted(SERVED)
    assert sorted(served["validation"]) == sorted(OF_VALIDATION)
    assert sorted(served["admin"]) == sorted(path_of(rpc) for rpc in ADMIN.methods)
    assert all(rpc.seeds for rpcs in served_rpcs().values() for rpc in rpcs)


def test_mutations_are_repeatable_and_bounded() -> None:
    rpcs = [rpc for some in served_rpcs().values() for rpc in some]

    def mutated(seed: int) -> list[bytes]:
        rng = random.Random(seed)
        mutator = Mutator(rng, [rpc.seeds[0] for rpc in rpcs])
        return [mutator.mutated(rng.choice(rpc.seeds)) for rpc in rpcs for _ in range(3)]

    assert mutated(1) == mutated(1) != mutated(2)
    assert max(map(len, mutated(1))) <= MOST_BYTES


def test_most_mutated_requests_are_messages_that_differ_from_their_seed() -> None:
    rng, rpcs = random.Random(3), served_rpcs()["main"]
    mutator = Mutator(rng, [rpc.seeds[0] for rpc in rpcs])
    read = changed = 0
    for rpc in rpcs:
        for _ in range(5):
            data = mutator.mutated(rpc.seeds[0])
            changed += data != rpc.seeds[0].SerializeToString()
            with contextlib.suppress(DecodeError):
                message_factory.GetMessageClass(rpc.method.input_type).FromString(data)
                read += 1
    assert read > len(rpcs) * 5 / 2
    assert changed > len(rpcs) * 5 / 2


@pytest.mark.parametrize("name", targets.TARGETS)
def test_seeds_raise_documented_errors_only(name: str) -> None:
    outcomes = [targets.run(seed) for seed in targets.seeds(iter([name]))]
    assert outcomes
    assert {outcome.partition(":")[0] for outcome in outcomes} == {name}
    assert name in outcomes, "no seed is accepted"


def test_a_mutated_input_keeps_a_target() -> None:
    rng = random.Random(4)
    for seed in list(targets.seeds(iter(["tokens", "tickets", "validation"])))[:40]:
        name, _ = targets.split(targets.mutated(seed, rng, lambda data: data + b"x"))
        assert name


def test_an_error_that_is_not_documented_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_data: bytes) -> None:
        raise ZeroDivisionError

    broken = {"broken": targets.Target(fail, (Fault,), lambda: iter([b""]))}
    monkeypatch.setattr(targets, "TARGETS", broken)
    with pytest.raises(ZeroDivisionError):
        targets.run(b"broken\n")


def test_values_that_disagree_end_a_run() -> None:
    targets.agree("a value", 1, 1)
    with pytest.raises(targets.DisagreementError, match="a value: 1 is not 2"):
        targets.agree("a value", 1, 2)


def findings(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of any type
    found = Findings(seed=1, seconds=2.0, honest=10, descriptors=(20, 20), megabytes=(100.0, 110.0))
    found.ends.update({"main: OK": 5, "admin: NOT_FOUND": 2})
    return {
        **json.loads(json.dumps(found.as_json())),
        "revision": "abc",
        "date": "2026-11-29",
        "processors": 2,
        **changes,
    }


def test_findings_are_written_as_they_were_counted() -> None:
    assert findings()["ends"] == {"main: OK": 5, "admin: NOT_FOUND": 2}


def missed(**changes: Any) -> list[str]:  # noqa: ANN401 - as above
    return [one["what"] for one in report.requirements_of({"calls": findings(**changes)}) if not one["met"]]


def test_calls_meet_the_requirements_unless_something_was_found() -> None:
    assert missed() == []
    assert len(missed(bad=[str(Bad("/x", "INTERNAL", b"", ()))])) == 1
    assert len(missed(wrong=["another verdict"])) == 1
    assert len(missed(honest=0)) == 1
    assert len(missed(errors=["a traceback"])) == 1
    assert len(missed(descriptors=(20, 25))) == 1
    assert len(missed(megabytes=(100.0, 400.0))) == 1


def test_a_failed_guided_run_misses_its_requirement() -> None:
    found = {"counts": {"tokens": 3, "tokens: InvalidRequest": 2}, "slowest": {"tokens": 0.5}, "failed": ""}
    assert [one["met"] for one in report.requirements_of({"guided": found})] == [True]
    assert [one["met"] for one in report.requirements_of({"guided": {**found, "failed": "a trace"}})] == [False]
    [rows] = report.tables_of({"guided": found}).values()
    assert list(rows[1]) == ["tokens", "5", "2", "500"]


def test_a_call_is_a_block_of_headers_and_frames_of_data() -> None:
    assert header_block([("te", "trailers")]) == b"\0\x02te\x08trailers"
    assert header_block([("x", "y" * 200)])[:5] == b"\0\x01x\x7f\x49"  # RFC 7541, 5.1: 127 and 73
    sent = call(1, "/a", message(bytes(20_000)))
    kinds = []
    while sent:
        size, kind, flags = int.from_bytes(sent[:3], "big"), sent[3], sent[4]
        kinds.append((kind, flags))
        sent = sent[9 + size :]
    assert kinds == [(HEADERS, 4), (DATA, 0), (DATA, 1)]


def dearest_of(size: int, server_ms: float, search_ms: float) -> dict[str, Any]:
    cost = dataclasses.asdict(dearest.Cost("main", "/x.Y/Z", True, size, "OK", server_ms, search_ms))  # noqa: FBT003
    return {"by_byte": [cost], "by_call": [cost], "by_search": [cost]}


def test_the_dearest_requests_are_a_table_and_have_bounds() -> None:
    found = {"dearest": dearest_of(200, 2.5, 1_000)}
    assert [one["met"] for one in report.requirements_of(found)] == [True] * 3
    rows = next(iter(report.tables_of(found).values()))
    assert rows[1] == ["main: Y/Z, mutated", "OK", "200", "2.50", "1,000", "12.5"]
    most = 1.01 * dearest.MOST_MS
    dear = (
        dearest_of(1, 1.0, 0),
        dearest_of(10**6, most, 0),
        dearest_of(10**6, 1.0, 1.01e3 * dearest.MOST_SEARCH_SECONDS),
    )
    for place, costs in enumerate(dear):
        assert [one["met"] for one in report.requirements_of({"dearest": costs})] == [place != one for one in range(3)]


@pytest.mark.skipif(sys.platform != "linux", reason="it reads the CPU of threads from /proc")
def test_the_cpu_of_a_process_and_of_its_children_is_counted() -> None:
    clock = dearest.Clock(os.getpid())
    before = clock.read()
    ended = time.process_time() + 0.05
    while time.process_time() < ended:
        pass
    assert clock.read()[0] - before[0] >= 40
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        deadline = time.monotonic() + 30
        while clock.read()[1] - before[1] < 50 and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        child.kill()
        child.wait()
    assert clock.read()[1] - before[1] >= 50, "a process that has ended still counts"
