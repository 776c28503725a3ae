"""Fuzzing: every RPC has a seed, seeds and mutations raise documented errors only, and findings miss requirements."""

import asyncio
import contextlib
import dataclasses
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from google.protobuf import message_factory
from google.protobuf.message import DecodeError

from load.corpus.hostile import read as read_hostile
from load.corpus.hostile_turns import read as read_hostile_turns
from load.floods.attacks import question, slow_turn
from load.floods.http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    Calls,
    call,
    frame,
    header_block,
    http_status,
    message,
)
from load.fuzz import dearest, edge, report, targets
from load.fuzz.__main__ import PAGE, PARTS, merged_inputs, write_page
from load.fuzz.calls import Bad, Findings
from load.fuzz.mutations import MOST_BYTES, Mutator
from load.fuzz.seeds import ADMIN, HEALTH, hostile_requests, path_of, served_rpcs
from load.pages import DOCS
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


def test_the_slowest_known_turns_and_positions_are_seeds() -> None:
    rpcs = {rpc.method.name: rpc.seeds for rpc in served_rpcs()["main"]}
    turns = [slow_turn(turn) for turn in read_hostile_turns()]
    assert len(turns) > 30
    assert all(turn in rpcs["ValidateTurn"] for turn in turns)
    [batch] = hostile_requests()["/rummikub.v1.ValidationService/BatchValidateTurns"]
    assert len(batch.turns) == 100  # type: ignore[attr-defined]
    positions = [question(position).position for position in read_hostile()]
    assert sum(seed.position in positions for seed in rpcs["SuggestTurn"]) > 10  # type: ignore[attr-defined]


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


def test_inputs_that_a_run_found_are_added_to_the_corpus_once(tmp_path: Path) -> None:
    merged = tmp_path / "seeds"
    merged.mkdir()
    for name, data in {"seed-0000": b"tokens\n9", "a1": b"tokens\n\0", "b2": b"stored\nz", "c3": b"no target"}.items():
        (merged / name).write_bytes(data)
    stored = tmp_path / "corpus.txt"
    stored.write_bytes(targets.CORPUS.read_bytes())
    known = targets.corpus(stored)
    assert targets.add_to_corpus(known, stored) == 0
    assert stored.read_bytes() == targets.CORPUS.read_bytes()
    assert targets.add_to_corpus(merged_inputs(merged), stored) == 2
    assert targets.add_to_corpus(merged_inputs(merged), stored) == 0
    assert set(targets.corpus(stored)) == {*known, b"tokens\n\0", b"stored\nz"}
    assert targets.corpus(stored) == sorted(targets.corpus(stored), key=len)


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
    assert len(missed(ends={})) == 1
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


# As Envoy writes them: names of headers in Huffman's code.
ENVOY_STATUS = b"\0\x88\x9a\xca\xc8\xb2\x124\xda\x8f"


@pytest.mark.parametrize(
    ("block", "status"),
    [
        (b"\x20\x88\0\x01ab", "200"),
        (b"\x8e", "500"),
        (b"\x08\x03503", "503"),
        (b"\x08\x82\x68\x01", "401"),
        (ENVOY_STATUS + b"\x010", ""),
    ],
)
def test_the_http_status_of_an_answer_is_read(block: bytes, status: str) -> None:
    assert http_status(block) == status


WEB_TRAILERS = b"\x80\0\0\0\x10grpc-status:13\r\n"


@pytest.mark.parametrize(
    ("kind", "answer", "outcome"),
    [
        ("application/grpc", [(HEADERS, b"\x88"), (DATA, message(b"")), (HEADERS, ENVOY_STATUS + b"\x0213")], "13"),
        ("application/grpc", [(HEADERS, b"\x88" + header_block([("grpc-status", "3")]))], "3"),
        ("application/grpc", [(HEADERS, b"\x88"), (HEADERS, b"")], "no status: b''"),
        ("application/grpc-web+proto", [(HEADERS, b"\x88"), (DATA, message(b"")), (DATA, WEB_TRAILERS)], "13"),
        ("application/grpc-web+proto", [(HEADERS, b"\x88"), (DATA, message(b"") + WEB_TRAILERS), (DATA, b"")], "13"),
        ("application/grpc-web+proto", [(HEADERS, b"\x8c"), (DATA, b"not base64")], "HTTP 400"),
        ("application/json", [(HEADERS, b"\x88" + ENVOY_STATUS + b"\x010"), (DATA, b"{}")], "HTTP 200"),
        ("application/json", [(HEADERS, b"\x8e"), (DATA, b"{}")], "HTTP 500"),
    ],
)
async def test_the_outcome_of_a_request_is_its_status(kind: str, answer: list[tuple[int, bytes]], outcome: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        last = len(answer) - 1
        for place, (number, payload) in enumerate(answer):
            flags = (END_HEADERS if number == HEADERS else 0) | (END_STREAM if place == last else 0)
            writer.write(frame(number, flags, 1, payload))
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        ended.set()

    ended = asyncio.Event()
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        calls = Calls(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        assert await calls.send([(":path", "/"), ("content-type", kind)], b"") == outcome
        calls.close()
        await ended.wait()


class NoChance(random.Random):
    """A source of randomness that leaves requests as they are."""

    def random(self) -> float:
        return 0.99


def test_a_call_through_the_edge_has_the_url_and_the_fields_of_its_rpc() -> None:
    rpcs = {rpc.method.name: rpc for rpc in served_rpcs("a" * 32)["main"]}
    sent = {}
    for name in ("ListChanges", "PlayTurn"):
        rpc = rpcs[name]
        headers, body = edge.as_json(rpc, message(rpc.seeds[0].SerializeToString()), (), NoChance(1))
        sent[name] = dict(headers), body
    url = urlsplit(str(sent["ListChanges"][0][":path"]))
    assert (sent["ListChanges"][0][":method"], url.path) == ("GET", f"/v1/games/{'a' * 32}/changes")
    assert set(parse_qs(url.query)) <= {field.json_name for field in rpcs["ListChanges"].method.input_type.fields}
    assert sent["PlayTurn"][0][":path"] == f"/v1/games/{'a' * 32}:playTurn"
    assert "gameId" not in json.loads(sent["PlayTurn"][1])


def test_calls_through_the_edge_are_repeatable_and_take_all_forms() -> None:
    ways = edge.ways_through(8080)
    assert {rpc.path for rpc in ways["gRPC-Web"].rpcs} == {rpc.path for rpc in served_rpcs()["main"]}
    assert len(ways["JSON"].rpcs) > 50

    def sent(seed: int) -> list[Any]:
        rng = random.Random(seed)
        return [
            way.form(rpc, message(rpc.seeds[0].SerializeToString()), (), rng)
            for way in ways.values()
            for rpc in way.rpcs
        ]

    assert sent(1) == sent(1) != sent(2)
    assert max(len(body) for _, body in sent(1)) <= MOST_BYTES


def test_each_process_behind_the_edge_has_to_meet_the_requirements() -> None:
    found = edge.EdgeFindings(1, 2.0, honest=10, descriptors=(20, 20), megabytes=(100.0, 110.0))
    found.ends["JSON: HTTP 200"] = 1
    found.attacks["edge: pings"] = {"ping": 50, "closed by the server": 2}

    def missed_of(**changes: Any) -> list[str]:  # noqa: ANN401 - fields of any type
        required = report.requirements_of({"edge": {**found.as_json(), **changes}})
        return [one["what"] for one in required if not one["met"]]

    assert missed_of() == []
    assert missed_of(edge_errors=["Envoy has ended"]) == ["edge: Envoy logs no error"]
    assert missed_of(errors=["a traceback"]) == ["edge: the server logs no error"]
    assert len(missed_of(edge_descriptors=(20, 99), edge_megabytes=(80.0, 1_000.0), bad=["HTTP 500"])) == 3
    assert ["edge: pings", "50", "2"] in [
        row for rows in report.tables_of({"edge": found.as_json()}).values() for row in rows
    ]


def test_the_page_keeps_the_figures_of_parts_without_a_run(tmp_path: Path) -> None:
    page = (DOCS / PAGE).read_text()
    (tmp_path / PAGE).write_text(page)
    write_page({"calls": findings()}, tmp_path)
    written = (tmp_path / PAGE).read_text()
    mark = "<!-- made by make fuzz ARGS={}: {} -->"
    assert "calls: revision abc" in written
    for name in PARTS:
        [before, after] = (
            text.partition(mark.format(name, "begin"))[2].partition(mark.format(name, "end"))[0]
            for text in (page, written)
        )
        assert (before == after) == (name != "calls")


def dearest_of(size: int, server_ms: float, search_ms: float, speed: float = 1.0) -> dict[str, Any]:
    """Returns what a run finds beside a plain turn of 100 bytes and one millisecond, on a machine of some speed."""
    cost, plain = (
        dataclasses.asdict(dearest.Cost("main", "/x.Y/Z", True, bytes_of, "OK", server / speed, search))  # noqa: FBT003
        for bytes_of, server, search in ((size, server_ms, search_ms), (100, 1.0, 0.0))
    )
    return {"plain": plain, "by_byte": [cost], "by_call": [cost], "by_search": [cost]}


def test_the_dearest_requests_are_a_table() -> None:
    rows = next(iter(report.tables_of({"dearest": dearest_of(200, 2.5, 1_000)}).values()))
    assert rows[1] == ["main: Y/Z, mutated", "OK", "200", "2.50", "1,000", "12.5"]


@pytest.mark.parametrize("speed", [0.1, 1.0, 10.0])
def test_the_dearest_requests_have_bounds_that_hold_on_machines_of_any_speed(speed: float) -> None:
    most = 1.01 * dearest.MOST_CALLS
    cheap = (dearest_of(200, 2.5, 1_000, speed), dearest_of(100_000, 7 * most, 0, speed))
    assert all(one["met"] for costs in cheap for one in report.requirements_of({"dearest": costs}))
    dear = (
        dearest_of(1, 1.01e-2 * dearest.MOST_BYTES, 0, speed),
        dearest_of(500, most, 0, speed),
        dearest_of(10**6, 1.0, 1.01e3 * dearest.MOST_SEARCH_SECONDS, speed),
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
