"""Mutated calls and abuse of HTTP/2 through the web edge, an Envoy before a server, beside honest callers.

The calls are those of load/fuzz/calls.py as gRPC, as gRPC-Web and as JSON; some have hostile headers, paths and texts.
The attacks are those of load/fuzz/wire.py.
"""

import asyncio
import base64
import itertools
import json
import random
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from google.api import annotations_pb2, http_pb2
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from load.corpus.turns import read as read_turns
from load.floods.http2 import Header, call_headers
from load.fuzz.calls import (
    ATTACKER,
    CLOSE_SECONDS,
    HONEST,
    WARM_UP,
    Attacker,
    Findings,
    Honest,
    Sent,
    Way,
    attacked_server,
    client_with,
    errors_in,
    held,
    settled,
    stopped,
)
from load.fuzz.mutations import MOST_BYTES
from load.fuzz.seeds import Served, served_rpcs
from load.fuzz.wire import attacked
from load.messages import reasons_of, to_send
from rummikub.v1 import validation_service_pb2 as vs
from rummikub.v1.error_reason_pb2 import ErrorReason
from support.edge import EdgeProcess, running_edge
from support.malformed_protobuf import spoiled
from tools.servers import free_port
from tools.web import wait_until_ready

SHARES: Final[Mapping[str, float]] = {"JSON": 0.45, "gRPC-Web": 0.35, "gRPC": 0.2}
"""The share of each form in all calls."""
HOSTILE: Final = 0.05
"""The share of calls with a hostile header, and of those of JSON with a hostile path."""
SPOILED: Final = 0.35
"""The share of bodies of JSON that are edited as text."""
MOST_EDGE_GROWTH_MB: Final = 900.0
"""How much memory Envoy may have taken more at the end, up to its limit: its allocator keeps what floods took."""
MOST_MORE_CONNECTIONS: Final = 16
"""How many connections between Envoy and the server may be there more at the end: Envoy keeps idle ones for an hour."""
HEADERS: Final[tuple[Header, ...]] = (
    *(("x-request-id", "x" * 9_000), ("x-request-id", b"\xff\xfe"), ("cookie", "a=b; " * 900), ("x-a", "")),
    *(("grpc-timeout", "99999999H"), ("grpc-timeout", "-1S"), ("grpc-encoding", "gzip"), ("grpc-encoding", "x")),
    *(("content-length", "1"), ("content-length", "9" * 30), ("content-encoding", "gzip"), ("te", "gzip")),
    *(("x-forwarded-for", "1.2.3.4, \u00e4"), ("x-forwarded-proto", "x"), ("x-envoy-original-path", "/v1/games")),
    *(("x-envoy-upstream-rq-timeout-ms", "1"), ("x-envoy-max-retries", "99"), ("x-envoy-retry-on", "5xx")),
    *(("x-envoy-expected-rq-timeout-ms", "1"), ("rummikub-retry-elsewhere", "1"), ("x-http-method-override", "PUT")),
    *(("origin", "null"), ("origin", "http://localhost:1"), ("origin", "%" * 500), ("expect", "100-continue")),
    *(("last-event-id", "1-" + "0" * 32), ("last-event-id", "%s\t"), ("accept", "text/event-stream")),
    *(("traceparent", "00-" + "0" * 32), ("range", "x")),
    *(("grpc-status", "13"), (":status", "200"), ("connection", "close"), ("upgrade", "h2c"), ("x b", "c"), ("X", "y")),
    *(("grpc-status-details-bin", "*"), ("authorization", "Basic Og=="), ("x-api-key", b"\x80"), ("via", "1.1 x")),
)
PARTS: Final = (
    *(b"null", b'"\\ud800"', b'"\\u0000"', b"1e999", b"-1e-999", b"NaN", b"0x10", b"01", b"[" * 900, b'{"a":' * 400),
    *(b"{", b"}", b"]", b",", b":", b'"', b"'", b"\\", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"/**/", b"a:", b"true"),
    *(b'"@type":"x",', b'"gameId":"",', b'{"__proto__":1}', b'"TILE_RED_99"', b"9" * 400, b'"1970-01-01T00:00:00Z"'),
)
"""Texts that are put into JSON."""
PATHS: Final = (
    "%00",
    "%2F",
    "..",
    "/",
    "//",
    ":",
    "%ff",
    "%",
    "?",
    "?a=b",
    "#",
    "*",
    "\u00e4",
    ";",
    "x" * 3_000,
    "{a}",
)
"""Texts that are put into URLs."""
_FIELD: Final = re.compile(r"{(\w+)}")


@dataclass
class EdgeFindings(Findings):
    """The result of a run.

    Attributes:
        attacks: What each attack of HTTP/2 did.
        edge_descriptors: Envoy's before and after.
        edge_megabytes: Envoy's memory before and after.
        edge_errors: Lines of Envoy's log at level error, and whether it has ended.
    """

    attacks: dict[str, dict[str, int]] = field(default_factory=dict)
    edge_descriptors: tuple[int, int] = (0, 0)
    edge_megabytes: tuple[float, float] = (0.0, 0.0)
    edge_errors: list[str] = field(default_factory=list)


def bindings(method: MethodDescriptor) -> tuple[tuple[str, str], ...]:
    """Returns the URLs of an RPC, each with its verb ("get" or "post")."""
    rule: http_pb2.HttpRule = method.GetOptions().Extensions[annotations_pb2.http]
    verbs = ((one, one.WhichOneof("pattern")) for one in (rule, *rule.additional_bindings))
    return tuple((verb, getattr(one, verb)) for one, verb in verbs if verb)


def ways_through(port: int) -> dict[str, Way]:
    """Returns the ways of calls through an edge: "JSON", "gRPC-Web" and "gRPC"."""
    rpcs = served_rpcs()["main"]
    forms = {
        "JSON": ([rpc for rpc in rpcs if bindings(rpc.method)], as_json),
        "gRPC-Web": (rpcs, as_grpc_web),
        "gRPC": (rpcs, as_grpc),
    }
    return {name: Way(f"127.0.0.1:{port}", some, SHARES[name], form) for name, (some, form) in forms.items()}


def as_grpc(rpc: Served, body: bytes, metadata: Sequence[Header], rng: random.Random) -> Sent:
    """Returns a call of gRPC, some with a hostile header."""
    return [*call_headers(rpc.path, metadata), *_hostile(rng)], body[:MOST_BYTES]


def as_grpc_web(rpc: Served, body: bytes, metadata: Sequence[Header], rng: random.Random) -> Sent:
    """Returns a call of gRPC-Web, a fifth of them as text, some with spoiled framing or a hostile header.

    The base64 of texts is well-formed, and no message claims to be compressed: Envoy itself answers INTERNAL to the
    one, and grpc to the other.
    """
    is_text = rng.random() < 0.2
    body = body[:1] + spoiled(body[1:9], rng) + body[9:] if rng.random() < HOSTILE else body
    body = base64.b64encode(body[: MOST_BYTES // 2]) if is_text else body[:MOST_BYTES]
    kind = f"application/grpc-web{'-text' * is_text}+proto"
    return [*_http("POST", rpc.path, kind), ("accept", "application/grpc-web+proto"), *metadata, *_hostile(rng)], body


def as_json(rpc: Served, body: bytes, metadata: Sequence[Header], rng: random.Random) -> Sent:
    """Returns a request with JSON: some with an edited text or URL, or with a hostile header."""
    verb, template = rng.choice(bindings(rpc.method))
    document = _document(rpc.method, body)
    url = _FIELD.sub(lambda found: quote(str(_taken(document, rpc.method, found[1])), safe=""), template)
    text = b""
    if verb == "get":
        url += f"?{urlencode(list(_flat(document)))}" if document else ""
    else:
        text = json.dumps(document, ensure_ascii=rng.random() < 0.5).encode("utf-8", "replace")
        text = _edited(text, rng) if rng.random() < SPOILED else text
    if rng.random() < HOSTILE:
        place = rng.randint(0, len(url))
        url = url[:place] + rng.choice(PATHS) + url[place + rng.randint(0, 3) :]
    headers = [*_http(verb.upper(), url[:7_000], "application/json"), *metadata, *_hostile(rng)]
    return headers, text[:MOST_BYTES]


def _http(verb: str, path: str, kind: str) -> list[Header]:
    names = {":method": verb, ":scheme": "http", ":path": path, ":authority": "localhost", "content-type": kind}
    return list(names.items())


def _hostile(rng: random.Random) -> list[Header]:
    return [rng.choice(HEADERS)] if rng.random() < HOSTILE else []


def _document(method: MethodDescriptor, body: bytes) -> dict[str, Any]:
    """Returns the first message of a body as a JSON object; an empty one if it is none."""
    made = GetMessageClass(method.input_type)()
    try:
        made.MergeFromString(body[5 : 5 + int.from_bytes(body[1:5], "big")])
        found: dict[str, Any] = json_format.MessageToDict(made)
    except (DecodeError, ValueError, json_format.Error):  # of a time that JSON cannot have
        return {}
    return found


def _taken(document: dict[str, Any], method: MethodDescriptor, name: str) -> object:
    """Removes a field of the path from a document; returns its value."""
    return document.pop(method.input_type.fields_by_name[name].json_name, "") or "0"


def _flat(document: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yields the parameters of a query."""
    for name, value in document.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            for one in value if isinstance(value, list) else (value,):
                yield f"{before}{name}", json.dumps(one) if isinstance(one, bool | dict) else str(one)


def _edited(text: bytes, rng: random.Random) -> bytes:
    """Returns a text of JSON after an edit that need not keep it well-formed."""
    if rng.random() < 0.4:
        return spoiled(text, rng)
    places = [found.start() for found in re.finditer(rb"[{}\[\],:]", text)] or [0]
    place = rng.choice(places) + rng.randint(0, 1)
    end = rng.choice([place, place, *(one for one in places if one >= place)][:8])
    return text[:place] + rng.choice(PARTS) + text[end:]


class _HonestPages:
    """Honest callers of gRPC-Web and JSON over HTTP/1.1: recorded turns whose verdicts are known."""

    def __init__(self, edge: EdgeProcess, findings: Findings) -> None:
        self._edge, self._findings = edge, findings

    async def run(self) -> None:
        """Calls until it is cancelled."""
        for number, turn in enumerate(itertools.cycle([to_send(turn) for turn in read_turns()])):
            call = self._by_grpc_web if number % 2 else self._by_json
            self._findings.honest += 1
            try:
                reasons = await call(turn.turn)
            except (OSError, ValueError, KeyError, IndexError) as error:
                self._findings.wrong.append(f"{call.__name__}: {error!r}")
            else:
                if reasons != list(turn.reasons):
                    self._findings.wrong.append(f"{call.__name__}: {reasons}, not {turn.reasons}")
            await asyncio.sleep(0.05)

    async def _by_grpc_web(self, turn: vs.ValidateTurnRequest) -> list[int]:
        _, messages, trailers = await self._edge.call_grpc_web("ValidationService/ValidateTurn", turn, x_api_key=HONEST)
        if trailers["grpc-status"].strip() != "0":
            raise ValueError(trailers)
        return reasons_of(vs.ValidateTurnResponse.FromString(messages[0]).violations)

    async def _by_json(self, turn: vs.ValidateTurnRequest) -> list[int]:
        answer = await self._edge.call("/v1/turns:validate", json_format.MessageToDict(turn), x_api_key=HONEST)
        if answer.status != 200:
            raise ValueError(answer)
        return [ErrorReason.Value(one["reason"]) for one in answer.json.get("violations", [])]


async def attack(seed: int, calls: int, seconds: float, attack_seconds: float) -> EdgeFindings:
    """Sends mutated calls through a new edge to a new server, then runs attacks of HTTP/2; returns what it found.

    Args:
        seed: The seed of the mutations.
        calls: The most mutated calls.
        seconds: The most seconds that they take.
        attack_seconds: The time of each attack.
    """
    findings = EdgeFindings(seed)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rummikub-fuzz-") as name:
        folder = Path(name)
        logs = folder / "server.log", folder / "envoy.log"
        with logs[0].open("wb") as log, logs[1].open("wb") as edge_log:
            async with attacked_server(folder, log.fileno()) as server:
                ports = free_port(), server.port, server.validation_port
                with running_edge(folder, *ports, stderr=edge_log.fileno()) as edge:
                    await asyncio.to_thread(wait_until_ready, edge.process, "127.0.0.1", edge.port)
                    await _attack(server.pid, edge, findings, (calls, seconds), attack_seconds)
        findings.errors = errors_in(logs[0])
        findings.edge_errors += [line[:600] for line in logs[1].read_text(errors="replace").splitlines()]
    findings.seconds = time.monotonic() - started
    return findings


async def _attack(
    server: int, edge: EdgeProcess, findings: EdgeFindings, limits: tuple[int, float], attack_seconds: float
) -> None:
    """Attacks; `limits` are the most calls, and the most seconds of them."""
    calls, seconds = limits
    target, started = f"127.0.0.1:{edge.port}", time.monotonic()
    async with client_with(target, ATTACKER) as hostile, client_with(target, HONEST) as client:
        attacker = Attacker(ways_through(edge.port), hostile, findings)
        honest = [
            asyncio.create_task(Honest(client, client, findings).run()),
            asyncio.create_task(_HonestPages(edge, findings).run()),
        ]
        await attacker.run(round(calls * WARM_UP), started + seconds * WARM_UP)
        attacker.close()
        await asyncio.sleep(CLOSE_SECONDS)
        before = held(server), held(edge.process.pid)
        await attacker.run(calls - findings.calls, started + seconds)
        attacker.close()
        findings.attacks = await attacked("edge", target, attack_seconds)
        if edge.process.poll() is not None:
            findings.edge_errors.append(f"Envoy has ended with status {edge.process.returncode}")
            return
        after = (
            await settled(server, before[0], descriptors=MOST_MORE_CONNECTIONS),
            await settled(edge.process.pid, before[1], MOST_EDGE_GROWTH_MB, MOST_MORE_CONNECTIONS),
        )
        for task in honest:
            await stopped(task)
    (server_before, edge_before), (server_after, edge_after) = before, after
    findings.descriptors = server_before[0], server_after[0]
    findings.megabytes = server_before[1], server_after[1]
    findings.edge_descriptors = edge_before[0], edge_after[0]
    findings.edge_megabytes = edge_before[1], edge_after[1]
