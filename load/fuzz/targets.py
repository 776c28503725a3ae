"""What is fuzzed: functions of bytes that may raise documented errors only, each with checks of what it returns.

    requests     a unary RPC on games in memory: decoding, rules and all, up to the encoded answer
    validation   judging by three paths, at once, in steps and plainly, which must agree
    notation     melds, tables, turns, positions and hands as text, which come back from the text that is made of them
    records      records of games as text, likewise
    tickets      join tickets, with a signature that is right and without
    tokens       page tokens, etags, ids, codes and names
    stored       stored games, drafts, memos, challenges and changes, which come back from their stored form

An input begins with the name of its target and a line feed; that of `requests` goes on with the name of the RPC, a line
feed, and a byte that chooses the token.
"""

import asyncio
import base64
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import DecodeError, Message

from engine.discard.notation import format_hand, parse_hand
from engine.discard.notation import format_position as format_discard_position
from engine.discard.notation import parse_position as parse_discard_position
from engine.melding import notation
from engine.notation import Naming, NotationError
from engine.record_text import RecordTextError, format_record, parse_record
from load.fuzz.in_process import UNARY, World
from load.fuzz.mutations import Mutator
from load.fuzz.seeds import served_rpcs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import validation_service_pb2 as vs
from service.codec import fields
from service.codec.records import encode_record
from service.codec.turn_validator import Validator
from service.errors import Fault, StoredFormatUnknown
from service.grpc_api.rpcs.validation import RPCS as VALIDATION
from service.runtime.join_tickets import TicketPolicy, read_key, verified
from service.runtime.slow_calls import completed
from service.storage import snapshot, stored_events
from support.join_tickets import EDDSA_KEY, HS256_KEY, SECRET, signed
from tools.servers import ROOT

GOLDEN_STORED: Final = ROOT / "tests" / "service" / "storage" / "golden" / "format_7.jsonl"
GOLDEN_GAMES: Final = ROOT / "tests" / "engine" / "golden"
VALIDATOR_CALLS: Final = 300
"""Uses after which the validator is replaced."""
CORPUS: Final = ROOT / "load" / "fuzz" / "corpus.txt"
"""Inputs that a guided run has kept, one a line in base64."""
WORLD_CALLS: Final = 500
"""Calls after which the games are made anew, because some have changed."""


class DisagreementError(Exception):
    """A check of what a target returned has failed."""


@dataclass(frozen=True, slots=True)
class Target:
    """A function of bytes under test.

    Attributes:
        run: Raises documented errors, or DisagreementError.
        documented: These errors.
        seeds: Yields inputs of its corpus, without the name of the target.
        mutate: Returns an input after a mutation; None: bytes are mutated by libFuzzer alone.
    """

    run: Callable[[bytes], None]
    documented: tuple[type[Exception], ...]
    seeds: Callable[[], Iterator[bytes]]
    mutate: Callable[[bytes, random.Random], bytes] | None = None


def agree(what: str, one: object, other: object) -> None:
    """Raises DisagreementError unless two values are equal."""
    if one != other:
        raise DisagreementError(f"{what}: {one!r} is not {other!r}"[:2_000])


# Requests


class _Requests:
    """Calls on a world that is made anew from time to time."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._left = 0
        self._world: World | None = None

    @property
    def world(self) -> World:
        """The games."""
        if self._world is None or not self._left:
            self._world, self._left = World(), WORLD_CALLS
            self._loop.run_until_complete(self._world.prepare())
        return self._world

    def run(self, data: bytes) -> None:
        """Makes the call that an input describes."""
        name, _, rest = data.partition(b"\n")
        rpc = name.decode("latin-1")
        if rpc not in UNARY or not rest:
            return
        world = self.world
        self._left -= 1
        token = world.tokens[rest[0] % len(world.tokens)]
        self._loop.run_until_complete(world.call(rpc, token, rest[1:]))


_requests: Final = _Requests()


@cache
def _mutator() -> Mutator:
    seeds = [seed for rpc in served_rpcs()["main"] for seed in rpc.seeds]
    return Mutator(random.Random(0), seeds)


def _request_seeds() -> Iterator[bytes]:
    world = World()
    asyncio.run(world.prepare())
    first, last = world.games[0], world.games[-1]
    for game in (first, last):
        for rpc in served_rpcs(game.game_id, game.etag)["main"]:
            if rpc.method.name in UNARY:
                for seed in rpc.seeds[:2]:
                    yield b"%s\n%c%s" % (rpc.method.name.encode(), game.sender, seed.SerializeToString())
    for game in world.games:
        for name in ("PlayTurn", "GetGame"):
            request: Any = UNARY[name].request(game_id=game.game_id)
            if name == "PlayTurn":
                request.etag = game.etag
                request.draw.SetInParent()
            yield b"%s\n%c%s" % (name.encode(), game.sender, request.SerializeToString())
    for text in _record_seeds():
        record = encode_record(parse_record(text.decode()))
        yield b"ImportRecord\n\0" + rs.ImportRecordRequest(text=text.decode()).SerializeToString()
        yield b"ImportRecord\n\0" + rs.ImportRecordRequest(record=record).SerializeToString()
        yield b"ReviewGame\n\0" + rs.ReviewGameRequest(record=record).SerializeToString()


def _mutate_request(data: bytes, rng: random.Random) -> bytes:
    name, _, rest = data.partition(b"\n")
    rpc = UNARY.get(name.decode("latin-1"))
    if rpc is None or not rest or rng.random() < 0.02:
        name = rng.choice(list(UNARY)).encode()
        return name + b"\n" + (rest or b"\0")
    sender = rest[:1] if rng.random() < 0.8 else bytes([rng.randrange(256)])
    game = rng.choice(_requests.world.games)
    if rng.random() < 0.5:
        sender = bytes([game.sender])
    return name + b"\n" + sender + _mutated(rpc.request, rest[1:], rng, {"game_id": game.game_id, "etag": game.etag})


def _mutated(request: type[Message], data: bytes, rng: random.Random, hints: Mapping[str, str]) -> bytes:
    """Returns the bytes of a request after edits of its fields, or of its bytes if they are no message."""
    mutator = _mutator()
    mutator.rng, mutator.hints = rng, hints
    try:
        return mutator.mutated(request.FromString(data), most_edits=2)
    except DecodeError:
        return mutator.edited_bytes(data)


# Validation

_VALIDATION: Final = {rpc.name: rpc for rpc in VALIDATION}


class _Validators:
    """A validator that is replaced from time to time, so that its caches are empty, filling and full."""

    def __init__(self) -> None:
        self._validator = Validator()
        self._left = VALIDATOR_CALLS

    @property
    def one(self) -> Validator:
        """The validator."""
        self._left -= 1
        if not self._left:
            self._validator, self._left = Validator(), VALIDATOR_CALLS
        return self._validator


_validators: Final = _Validators()


def _outcome(answer: Callable[[], bytes | None]) -> object:
    """Returns what a path answers, or its documented error as text."""
    try:
        return answer()
    except Fault as fault:
        return type(fault).__name__, [str(field) for field in getattr(fault, "fields", ())]


def _validate(data: bytes) -> None:
    name, _, rest = data.partition(b"\n")
    rpc = _VALIDATION.get(name.decode("latin-1"))
    if rpc is None:
        return
    validator = _validators.one
    stream = rpc.stream
    if stream is not None:
        at_once = stream(validator).at_once(rest)
        in_steps = _outcome(lambda: completed(stream(validator).in_steps(rest)))
        if at_once is not None:
            agree("a stream at once and in steps", at_once, in_steps)
        return
    in_steps = _outcome(lambda: completed(rpc.steps(validator)(rest)))
    for _ in range(2):  # the second time, the caches of the first are full
        at_once_answer = rpc.at_once(validator)(rest) if in_steps.__class__ is bytes else None
        if at_once_answer is not None:
            agree(f"{rpc.name} at once and in steps", at_once_answer, in_steps)
    if rpc.name == "ValidateTurn":
        agree("ValidateTurn fast and plainly", _normal(in_steps), _normal(_outcome(partial(_plainly, rest))))
    elif not isinstance(in_steps, bytes):
        completed(rpc.steps(validator)(rest))


def _plainly(data: bytes) -> bytes:
    plain: Any = _validators.one._respond_plainly  # noqa: SLF001 - the path without caches, to compare with
    answer: bytes = completed(plain(fields.decode(vs.ValidateTurnRequest, data), b"", "", is_complex=False))
    return answer


def _normal(outcome: object) -> object:
    """Returns an answer as a message, whose fields may be in another order."""
    return vs.ValidateTurnResponse.FromString(outcome) if isinstance(outcome, bytes) else outcome


def _validation_seeds() -> Iterator[bytes]:
    for rpc in served_rpcs()["validation"]:
        if rpc.method.name in _VALIDATION:
            for seed in rpc.seeds[:: max(1, len(rpc.seeds) // 12)]:
                yield rpc.method.name.encode() + b"\n" + seed.SerializeToString()


def _mutate_validation(data: bytes, rng: random.Random) -> bytes:
    name, _, rest = data.partition(b"\n")
    rpc = _VALIDATION.get(name.decode("latin-1"))
    if rpc is None:
        return rng.choice(list(_VALIDATION)).encode() + b"\n" + rest
    return name + b"\n" + _mutated(rpc.request, rest, rng, {})


# Texts


def _read_notation(data: bytes) -> None:
    text = data[1:].decode("utf-8", "replace")
    naming = (Naming.TILES, Naming.CARDS)[data[:1] == b"c"]
    forms: list[tuple[Callable[[str], Any], Callable[[Any], str]]] = [
        (partial(notation.parse_meld, naming=naming), partial(notation.format_meld, naming=naming)),
        (partial(notation.parse_table, naming=naming), partial(notation.format_table, naming=naming)),
        (partial(notation.parse_turn, naming=naming), lambda turn: notation.format_turn(turn[0], turn[1], naming)),
        (partial(notation.parse_position, naming=naming), partial(notation.format_position, naming=naming)),
        (partial(notation.parse_play, naming=naming), partial(notation.format_play, naming=naming)),
        (parse_hand, format_hand),
        (parse_discard_position, format_discard_position),
    ]
    refused = 0
    for parse, make in forms:
        try:
            value = parse(text)
        except NotationError as error:
            refused += 1
            if not 1 <= error.column <= len(text) + 1:
                raise DisagreementError(f"column {error.column} of a text of {len(text)} characters") from None
            continue
        made = make(value)
        agree("a text of a text", make(parse(made)), made)
    if refused == len(forms):
        raise NotationError("no form")


def _notation_seeds() -> Iterator[bytes]:
    yield from (
        b"t[R3 R4 R5] + *{R6}",
        b"t. + {}",
        b"c[AH 2H 3H] + {KD}",
        b"t[R3 J=R4 R5] (B1 B2 B3) / 1*{R1} 2{B2} / {K5} / 1",
    )
    for path in sorted(GOLDEN_GAMES.rglob("*.txt"))[:12]:
        for line in path.read_text().splitlines()[5:400:60]:
            yield b"t" + line.encode()


def _read_record(data: bytes) -> None:
    record = parse_record(data.decode("utf-8", "replace"))
    made = format_record(record)
    agree("a record of a record", format_record(parse_record(made)), made)


def _record_seeds() -> Iterator[bytes]:
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = path.read_text()
        for part in text.split("```")[1::2]:
            start = part.find("rummikub-record 1\n")
            if start >= 0:
                yield part[start:].encode()


# Tickets and tokens

_POLICIES: Final = tuple(
    TicketPolicy((key,), "web") for text in (EDDSA_KEY, HS256_KEY) if (key := read_key(text)) is not None
)


def _read_ticket(data: bytes) -> None:
    text = data.decode("latin-1")
    if text.startswith("{"):  # the claims of a ticket that is signed here, so that they get past the signature
        try:
            claims = json.loads(text)
        except (ValueError, RecursionError):
            return
        import jwt  # noqa: PLC0415 - as the service does

        try:
            text = jwt.encode(claims, SECRET, "HS256") if isinstance(claims, dict) else text
        except (TypeError, ValueError, jwt.PyJWTError):
            return
    text = fields.join_ticket(text)
    faults = []
    for policy in _POLICIES:
        try:
            fields.well_formed(verified(policy, text)).check_time(1_800_000_000_000)
        except Fault as fault:
            faults.append(fault)
    if len(faults) == len(_POLICIES):
        raise faults[-1]


def _ticket_seeds() -> Iterator[bytes]:
    yield signed("ada", name="Ada").encode()
    yield signed("ada", SECRET, "HS256", name="Ada", labels={"a": "b"}, game_id="0" * 32, seat=2, bot=True).encode()
    claims = {"sub": "ada", "aud": "web", "exp": 1_800_000_300, "name": "Ada", "labels": {"a": "b"}, "seat": 1}
    yield json.dumps(claims).encode()
    yield json.dumps({**claims, "aud": ["web"], "game_id": "0" * 32, "bot": False, "nbf": 1, "iat": 2}).encode()


_FORMS: Final[tuple[Callable[[str], object], ...]] = (
    partial(fields.filtered_page_cursor, form=fields.LIST_CURSOR, filters=("x",)),
    partial(fields.page_cursor, form=r"\d{1,3}"),
    fields.etag,
    fields.game_id,
    fields.watch_ticket,
    fields.join_code,
    fields.player_name,
    partial(fields.request_id, least=8),
    partial(fields.seat_token, field="seat_token"),
    fields.correlation_id,
)


def _read_token(data: bytes) -> None:
    if data:
        _FORMS[data[0] % len(_FORMS)](data[1:].decode("utf-8", "replace"))


def _token_seeds() -> Iterator[bytes]:
    texts = (
        fields.filtered_page_token("123456789012345:" + "0" * 32, ("x",)),
        fields.page_token("12"),
        "1-" + "0" * 32,
        "0" * 32,
        "123-" + "A" * 43,
        "23456C",
        "Ada L\u00e9 \u200d x",
        "x" * 8,
        "A" * 43,
        "c",
    )
    for place, text in enumerate(texts):
        yield bytes([place]) + text.encode()


# Stored values


def _read_stored(data: bytes) -> None:
    kind, rest = data[:1], data[1:]
    match kind:
        case b"r":
            record = snapshot.decode_record(rest)
            agree("a stored game", snapshot.decode_record(snapshot.encode_record(record)), record)
        case b"d":
            draft = snapshot.decode_draft(rest, 1)
            agree("a stored draft", snapshot.decode_draft(snapshot.encode_draft(draft), 1), draft)
        case b"c":
            challenge = snapshot.decode_challenge(rest.decode("latin-1"))
            agree("a challenge", snapshot.decode_challenge(snapshot.encode_challenge(challenge)), challenge)
        case b"m":
            memo = snapshot.decode_memo(rest)
            agree("a memo", snapshot.decode_memo(snapshot.encode_memo(memo)), memo)
        case b"z":
            stored_events.decode_entry(stored_events.decompress(rest), "0" * 32)
        case _:
            entry = stored_events.decode_entry(rest, "0" * 32)
            made = stored_events.encode_change(entry.revision, entry.time_ms, entry.nonce, entry.events, entry.cause)
            agree("a stored change", stored_events.decode_entry(made, "0" * 32), entry)


def _stored_seeds() -> Iterator[bytes]:
    for line in GOLDEN_STORED.read_text().splitlines()[::6]:
        golden = json.loads(line)
        yield b"e" + golden["change"].encode()
        yield b"z" + bytes.fromhex(golden["compressed"])
        yield b"r" + golden["snapshot"].encode()
    yield b"m" + bytes(32) + b"\2ab" + b"answer"


TARGETS: Final[Mapping[str, Target]] = {
    "requests": Target(_requests.run, (Fault,), _request_seeds, _mutate_request),
    "validation": Target(_validate, (Fault,), _validation_seeds, _mutate_validation),
    "notation": Target(_read_notation, (NotationError,), _notation_seeds),
    "records": Target(_read_record, (RecordTextError,), _record_seeds),
    "tickets": Target(_read_ticket, (Fault,), _ticket_seeds),
    "tokens": Target(_read_token, (Fault,), _token_seeds),
    "stored": Target(_read_stored, (StoredFormatUnknown,), _stored_seeds),
}
"""The targets by name."""


def split(data: bytes) -> tuple[str, bytes]:
    """Returns the name of an input's target and the rest; "" if it has none."""
    name, _, rest = data.partition(b"\n")
    known = name.decode("latin-1")
    return (known, rest) if known in TARGETS else ("", data)


def corpus(path: Path = CORPUS) -> list[bytes]:
    """Returns the inputs of the stored corpus."""
    return [base64.b64decode(line) for line in path.read_text().splitlines()]


def add_to_corpus(inputs: Iterable[bytes], path: Path = CORPUS) -> int:
    """Adds inputs to the stored corpus, the shortest first; returns how many it lacked. Those of no target are none."""
    before = set(corpus(path))
    new = {data for data in inputs if split(data)[0]} - before
    lines = [base64.b64encode(data).decode() for data in sorted(before | new, key=lambda data: (len(data), data))]
    path.write_text("".join(f"{line}\n" for line in lines))
    return len(new)


def run(data: bytes) -> str:
    """Runs an input; returns the name of its target, with the name of the documented error if it was one.

    Raises whatever is not documented.
    """
    name, rest = split(data)
    if not name:
        return ""
    target = TARGETS[name]
    try:
        target.run(rest)
    except target.documented as error:
        return f"{name}: {type(error).__name__}"
    return name


def mutated(data: bytes, rng: random.Random, by_bytes: Callable[[bytes], bytes]) -> bytes:
    """Returns an input after a mutation; `by_bytes` mutates bytes without knowledge of their form."""
    name, rest = split(data)
    if not name:
        name = rng.choice(list(TARGETS))
    mutate = TARGETS[name].mutate
    if mutate is None or rng.random() < 0.15:
        return name.encode() + b"\n" + by_bytes(rest)
    return name.encode() + b"\n" + mutate(rest, rng)


def seeds(names: Iterator[str] | None = None) -> Iterator[bytes]:
    """Yields the seeds of some targets, or of all, and what fuzzing has found to reach more lines."""
    chosen = list(names or TARGETS)
    for name in chosen:
        for seed in TARGETS[name].seeds():
            yield name.encode() + b"\n" + seed
    yield from (found for found in corpus() if split(found)[0] in chosen)
