"""Turns and melds from request bytes to response bytes, as fast as possible: clients ask on every drag of a tile.

Methods are synchronous and thread-safe, and raise InvalidRequest or MalformedRequest. There are two paths:

* The fast path serves nearly all requests: it looks up melds by their bytes (service.codec.raw_messages,
  engine.melding.fast).
* The plain path serves all others, first of all invalid ones: it decodes the contract's messages, which finds and names
  errors, and applies the plain rules.

Both return the same responses; tests compare them.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any, Final, TypeAlias, TypeVar

from google.protobuf.message import DecodeError, Message

from engine.melding.fast.fast_judge import FastJudges, Verdict
from engine.melding.fast.fast_play import PlayerState
from engine.melding.fast.read_melds import ReadMeld, melds_by_key
from engine.melding.melds import NotAMeld, ProposedMeld, read_meld
from engine.melding.play import Play
from engine.melding.rules import Judgement, judge
from engine.melding.ruleset import Ruleset, TableLayout
from engine.tiles import Tile
from engine.violations import Reason, Violation
from rummikub.v1 import meld_pb2, ruleset_pb2, violation_pb2
from rummikub.v1 import validation_service_pb2 as pb
from service.codec import fields, raw_messages, rulesets, tiles, validation
from service.codec.raw_messages import RawTurn
from service.errors import InvalidRequest, MalformedRequest

ENCODED_MAX: Final = 65_536
"""Most encoded meld readings to cache. A full cache is emptied."""

RULESET_BYTES_MAX: Final = 1_024
"""Most bytes of a ruleset that is cached as it was sent. Longer ones repeat options or have unknown fields."""

MELDS_A_STEP: Final = 8
"""How many melds are read in one step. A new meld takes up to 0.15 ms."""

VIOLATIONS_MAX: Final = 4_096
"""Most encoded violations to cache, and most subjects of violations."""

AT_ONCE_BYTES_MAX: Final = 2_048
"""Most bytes of a request that is answered at once. Any turn of a game is shorter, including its ruleset."""

AT_ONCE_MELDS_MAX: Final = 32
"""Most melds of a ValidateMelds request that is answered at once. Readings of invalid melds are not cached."""

AT_ONCE_VIOLATIONS_MAX: Final = 16
"""Most violations of a response that is encoded at once."""

UNCOUNTED_BYTES: Final = 16_384
"""Most bytes of a request that is parsed before its melds are counted. No turn has more, and few batches."""

STEPS_IN_PLACE: Final = 2_000
"""How many steps the rules may take in this process, a millisecond or two. Few turns take more."""

_MOST_OF_TURN: Final = tiles.bounds_of_tables("table_before", "table_after")
_MOST_OF_STREAM_TURN: Final = tiles.bounds_of_tables("turn.table_before", "turn.table_after")
_MOST_OF_MELDS: Final = (fields.Most("melds", tiles.MELDS_MAX, "MALFORMED_TABLE"),)
_MOST_OF_BATCH: Final = (validation.MOST_TURNS,)

T = TypeVar("T")

_Turn: TypeAlias = tuple[bytes, Sequence[bytes], Sequence[bytes], PlayerState]
"""The ruleset, the table before, the table after, and the player's part."""


class _NeedsPlainPath(Exception):  # noqa: N818 - not an error of the request
    """The fast path cannot serve a request."""


_InSteps: TypeAlias = Generator[Any, None, T]
"""Steps (slow_calls.Steps) that return a value of a type."""


def _judge_in_place(play: Play) -> _InSteps[Judgement]:
    yield
    return judge(play)


_FAST_PATH_ERRORS: Final = (_NeedsPlainPath, InvalidRequest, MalformedRequest, DecodeError)
"""The exceptions after which the plain path serves the request, or names its error."""


class Validator:
    """Judges turns and reads melds, from bytes to bytes: the RPCs of ValidationService that need to be fast.

    Methods named `..._at_once` return None if the request may take more than a millisecond or two or is invalid; the
    caller then uses the other method. They raise nothing.

    Args:
        judge_complex: Judges a play whose rules take more than STEPS_IN_PLACE, in steps (slow_calls.Steps).
    """

    def __init__(self, judge_complex: Callable[[Play], "_InSteps[Judgement]"] = _judge_in_place) -> None:
        self._judge_complex = judge_complex
        self._judges = FastJudges[bytes, bytes, bytes](_cacheable_ruleset, melds_by_key(_proposed))
        self._encoded: dict[ReadMeld, bytes] = {}

    def turn_in_steps(self, data: bytes) -> "_InSteps[bytes]":
        """Serves ValidateTurn in steps, in each of which it reads a few melds."""
        _check_counts(pb.ValidateTurnRequest, data, _MOST_OF_TURN)
        turn = _parse(raw_messages.parse_turn, data)
        yield from self._read_in_steps(turn, b"")
        return (yield from self._respond(turn, b"", partial(fields.decode, pb.ValidateTurnRequest, data)))

    def turn_at_once(self, data: bytes) -> bytes | None:
        """Serves ValidateTurn at once, or returns None."""
        if len(data) > AT_ONCE_BYTES_MAX:
            return None
        try:
            return self._validate_at_once(raw_messages.parse_turn(data), b"")
        except _FAST_PATH_ERRORS:
            return None

    def validate_melds(self, data: bytes) -> bytes:
        """Serves ValidateMelds."""
        _check_counts(pb.ValidateMeldsRequest, data, _MOST_OF_MELDS)
        try:
            ruleset, melds = _melds_request(data)
            return self._encode_readings(self._judges.of(ruleset).read(melds))
        except _FAST_PATH_ERRORS:
            return _validate_melds_plainly(data)

    def melds_at_once(self, data: bytes) -> bytes | None:
        """Serves ValidateMelds at once, or returns None."""
        if len(data) > AT_ONCE_BYTES_MAX:
            return None
        try:
            ruleset, melds = _melds_request(data)
            judge = self._judges.existing(ruleset)
            if judge is None or len(melds) > AT_ONCE_MELDS_MAX or not judge.has_read_most(melds):
                return None
            return self._encode_readings(judge.read(melds))
        except _FAST_PATH_ERRORS:
            return None

    def batch(self, data: bytes) -> "_InSteps[bytes]":
        """Serves BatchValidateTurns in steps of at most one turn each."""
        _check_counts(pb.BatchValidateTurnsRequest, data, _MOST_OF_BATCH)
        request = _parse(raw_messages.parse_batch, data)
        if len(request.ruleset) > 1:
            fields.decode(pb.BatchValidateTurnsRequest, data)  # each part must be a valid message
        default, turns = b"".join(request.ruleset[:]), request.turns
        validation.check_batch(len(turns))
        _decode_ruleset(default)
        plain = cache(lambda: fields.decode(pb.BatchValidateTurnsRequest, data))
        responses = []
        for place, turn in enumerate(turns):
            response = self._validate_at_once(turn, default)
            if response is None:
                tiles.check_count(len(turn.table_before.melds), f"turns[{place}].table_before")
                tiles.check_count(len(turn.table_after.melds), f"turns[{place}].table_after")
                yield from self._read_in_steps(turn, default)
                plain_turn = partial(_turn_of, plain, place)
                response = yield from self._respond(turn, default, plain_turn, f"turns[{place}].")
            responses.append(response)
            yield
        return raw_messages.encode_batch_response(responses)

    def stream(self) -> "StreamValidator":
        """Returns a validator for the turns of one StreamValidateTurns call."""
        return StreamValidator(self._respond, self._judge_at_once)

    def _respond(
        self, turn: RawTurn, default: bytes, plain: Callable[[], pb.ValidateTurnRequest], field: str = ""
    ) -> "_InSteps[bytes]":
        """Returns a ValidateTurnResponse, in steps. Raises InvalidRequest, MalformedRequest.

        Args:
            turn: The turn.
            default: The ruleset for a turn without one.
            plain: Returns the turn as the contract's message, if the plain path has to serve it.
            field: The path of the turn within a larger message, with a dot at the end, for field violations.
        """
        is_complex = False
        try:
            ruleset, before, after, player = _decode_turn(turn, default)
            verdict = self._judges.of(ruleset).judge(before, after, player, steps=STEPS_IN_PLACE)
            is_complex = verdict is not None and _is_complex(verdict.violations)
            if not is_complex:
                return _encode_verdict(verdict)
        except _FAST_PATH_ERRORS:
            pass
        return (yield from self._respond_plainly(plain(), default, field, is_complex=is_complex))

    def _respond_plainly(
        self, request: pb.ValidateTurnRequest, default: bytes, field: str, *, is_complex: bool
    ) -> "_InSteps[bytes]":
        """Returns the same by the plain path, which judges in place unless the turn is known to be complex."""
        ruleset = rulesets.ruleset(request.ruleset, field) if request.HasField("ruleset") else _decode_ruleset(default)
        play = validation.play(request, ruleset, field)
        judgement = None if is_complex else judge(play, steps=STEPS_IN_PLACE)
        if judgement is None or _is_complex(judgement.violations):
            judgement = yield from self._judge_complex(
                replace(play)
            )  # a judged play keeps what it found, and its steps
        return validation.encode_judgement(judgement).SerializeToString()

    def _validate_at_once(self, turn: RawTurn, default: bytes) -> bytes | None:
        """Returns the same; None also if the turn may take longer."""
        try:
            return self._judge_at_once(turn, default)
        except _FAST_PATH_ERRORS:
            return None

    def _judge_at_once(self, turn: RawTurn, default: bytes) -> bytes | None:
        """Returns the same, but raises what is in _FAST_PATH_ERRORS."""
        ruleset, before, after, player = _decode_turn(turn, default)
        judge = self._judges.existing(ruleset)
        verdict = judge.judge(before, after, player, quick_only=True) if judge else None
        if verdict is None or len(verdict.violations) > AT_ONCE_VIOLATIONS_MAX:
            return None
        return _encode_verdict(verdict)

    def _read_in_steps(self, turn: RawTurn, default: bytes) -> Generator[None, None, None]:
        """Reads the melds of a turn into the cache. Ends at the first that the fast path cannot read."""
        try:
            ruleset, before, after, _ = _decode_turn(turn, default)
            judge = self._judges.of(ruleset)
            for place, meld in enumerate((*before, *after), 1):
                judge.read((meld,))
                if place % MELDS_A_STEP == 0:
                    yield
        except _FAST_PATH_ERRORS:
            return

    def _encode_readings(self, melds: Iterable[ReadMeld]) -> bytes:
        """Returns a ValidateMeldsResponse."""
        if len(self._encoded) > ENCODED_MAX:
            self._encoded = {}
        encoded, responses = self._encoded, []
        for place, read in enumerate(melds):
            response = encoded.get(read)
            if response is None:
                response = tiles.encode_reading(read.meld, place).SerializeToString()
                if not isinstance(read.meld, NotAMeld):  # violations contain the place
                    encoded[read] = response
            responses.append(response)
        return raw_messages.encode_melds_response(responses)


class StreamValidator:
    """Validates the turns of one StreamValidateTurns call, in order.

    Args:
        respond: Returns the response to a turn, in steps (Validator).
        judge_at_once: Returns the same; None if the turn may take longer. Raises what is in _FAST_PATH_ERRORS.
    """

    def __init__(
        self,
        respond: Callable[[RawTurn, bytes, Callable[[], pb.ValidateTurnRequest], str], "_InSteps[bytes]"],
        judge_at_once: Callable[[RawTurn, bytes], bytes | None],
    ) -> None:
        self._respond = respond
        self._judge_at_once = judge_at_once
        self._ruleset = b""

    def in_steps(self, data: bytes) -> "_InSteps[bytes]":
        """Returns the response to the next turn. Raises InvalidRequest, MalformedRequest."""
        _check_counts(pb.StreamValidateTurnsRequest, data, _MOST_OF_STREAM_TURN)
        request = _parse(raw_messages.parse_stream_turn, data)
        turn = request.turn
        correlation_id = fields.correlation_id(request.correlation_id)
        self._ruleset = _normalized(b"".join(turn.ruleset[:])) if turn.ruleset else self._ruleset
        plain = partial(_turn_of_stream, data)
        response = yield from self._respond(turn, self._ruleset, plain, "turn.")
        return raw_messages.encode_stream_response(response, correlation_id)

    def at_once(self, data: bytes) -> bytes | None:
        """Returns the response to the next turn, or None as Validator.turn_at_once does: it is then still the next."""
        if len(data) > AT_ONCE_BYTES_MAX:
            return None
        try:
            request = raw_messages.parse_stream_turn(data)
            turn = request.turn
            ruleset = b"".join(turn.ruleset[:]) if turn.ruleset else self._ruleset
            correlation_id = fields.correlation_id(request.correlation_id)
            response = self._judge_at_once(turn, ruleset)
        except _FAST_PATH_ERRORS:
            return None
        self._ruleset = ruleset
        return None if response is None else raw_messages.encode_stream_response(response, correlation_id)


def _turn_of(batch: Callable[[], pb.BatchValidateTurnsRequest], place: int) -> pb.ValidateTurnRequest:
    return batch().turns[place]


def _turn_of_stream(data: bytes) -> pb.ValidateTurnRequest:
    return fields.decode(pb.StreamValidateTurnsRequest, data).turn


def _melds_request(data: bytes) -> tuple[bytes, Sequence[bytes]]:
    """Returns the ruleset and the melds of a ValidateMeldsRequest. Raises _NeedsPlainPath, DecodeError."""
    request = raw_messages.parse_melds(data)
    if not raw_messages.is_complete(request) or len(request.ruleset) > 1 or len(request.melds) > tiles.MELDS_MAX:
        raise _NeedsPlainPath
    return b"".join(request.ruleset[:]), request.melds[:]


def _encode_violation(violation: Violation) -> bytes:
    """Encodes a violation. Caches it unless it can have the tiles of a whole table."""
    is_of_a_meld = len(violation.tiles) <= tiles.MELD_TILES_MAX
    return _encode_cached(violation) if is_of_a_meld else _encode_parts(violation, _encode_rest)


def _encode_parts(violation: Violation, encode_rest: "_EncodeRest") -> bytes:
    reason, subject, tiles_, metadata, order = violation
    return _encode_reason(reason, subject) + encode_rest(reason, tiles_, metadata, order)


@lru_cache(maxsize=VIOLATIONS_MAX)
def _encode_cached(violation: Violation) -> bytes:
    """Encodes a violation of a meld; the fields beside the subject are also cached alone."""
    return _encode_parts(violation, _encode_rest_cached)


@lru_cache(maxsize=VIOLATIONS_MAX)
def _encode_reason(reason: Reason, subject: str) -> bytes:
    """Encodes the fields `reason` and `subject`."""
    return violation_pb2.Violation(reason=tiles.reason_number(reason.name), subject=subject).SerializeToString()


def _encode_rest(
    reason: Reason, tiles_: tuple[Tile, ...], metadata: tuple[tuple[str, int], ...], order: tuple[Tile, ...]
) -> bytes:
    """Encodes the fields that do not depend on the subject, except the reason."""
    message = tiles.encode_violation(Violation(reason, "", tiles_, metadata, order))
    message.ClearField("reason")
    return message.SerializeToString()


_EncodeRest: TypeAlias = Callable[[Reason, tuple[Tile, ...], tuple[tuple[str, int], ...], tuple[Tile, ...]], bytes]

_encode_rest_cached: Final = lru_cache(maxsize=VIOLATIONS_MAX)(_encode_rest)


def _is_complex(violations: Iterable[Violation]) -> bool:
    """Returns whether the rules ran out of steps."""
    return any(violation.reason is Reason.TURN_TOO_COMPLEX for violation in violations)


def _encode_verdict(verdict: Verdict | None) -> bytes:
    """Returns a ValidateTurnResponse. Raises _NeedsPlainPath if there is no verdict."""
    if verdict is None:
        raise _NeedsPlainPath
    violations = [_encode_violation(violation) for violation in verdict.violations]
    return raw_messages.encode_turn_response(verdict.tiles_played, verdict.points, verdict.rack_left, violations)


def _decode_turn(turn: RawTurn, default: bytes) -> _Turn:
    """Returns what the fast path needs. Raises _NeedsPlainPath if it cannot serve the turn."""
    table_before, table_after = turn.table_before, turn.table_after
    melds_before, melds_after = table_before.melds, table_after.melds
    if table_before.placements or table_after.placements:
        raise _NeedsPlainPath
    if len(melds_before) > tiles.MELDS_MAX or len(melds_after) > tiles.MELDS_MAX:
        raise _NeedsPlainPath
    stated, before, after = turn.ruleset[:], melds_before[:], melds_after[:]
    rack: tuple[Any, ...] = tuple(sorted(b"".join(turn.rack[:])))  # numbers, which are tiles if they are in range
    drawn = turn.tile_drawn
    if (
        not raw_messages.is_complete(turn)
        or not turn.HasField("has_melded")
        or len(stated) > 1  # each part must be a valid message, which the joined parts do not show
        or len(rack) > tiles.RACK_TILES_MAX
        or (rack and not 1 <= rack[0] <= rack[-1] <= tiles.LAST_TILE)
        or (drawn and drawn not in rack)
    ):
        raise _NeedsPlainPath
    player = PlayerState(rack, turn.has_melded, (), None, Tile(drawn) if drawn else None, turn.calls_rummikub)
    return stated[0] if stated else default, before, after, player


def _check_counts(message_type: type[Message], data: bytes, bounds: Sequence[fields.Most]) -> None:
    """Raises InvalidRequest if a long request has too many melds or turns: parsing it would hold up other calls."""
    if len(data) > UNCOUNTED_BYTES:
        fields.check_counts(message_type, data, bounds)


def _parse(parse: Callable[[bytes], T], data: bytes) -> T:
    """Returns a parsed message. Raises MalformedRequest."""
    try:
        return parse(data)
    except DecodeError:
        raise MalformedRequest from None


def _decode_ruleset(data: bytes) -> Ruleset:
    """Returns the ruleset of an encoded message. Raises InvalidRequest, MalformedRequest."""
    return rulesets.ruleset(fields.decode(ruleset_pb2.MeldingRuleset, data))


def _cacheable_ruleset(data: bytes) -> Ruleset:
    """Returns the same. Raises _NeedsPlainPath if the bytes are too long to be a cache key."""
    if len(data) > RULESET_BYTES_MAX:
        raise _NeedsPlainPath
    ruleset = _decode_ruleset(data)
    if ruleset.table_layout is not TableLayout.MELDS:
        raise _NeedsPlainPath
    return ruleset


def _normalized(data: bytes) -> bytes:
    """Returns an encoded ruleset in its shortest form if it is long: a stream holds it. Raises MalformedRequest."""
    return (
        data if len(data) <= RULESET_BYTES_MAX else fields.decode(ruleset_pb2.MeldingRuleset, data).SerializeToString()
    )


def _proposed(data: bytes) -> ProposedMeld:
    """Returns the meld of an encoded message. Raises InvalidRequest, MalformedRequest, _NeedsPlainPath."""
    if len(data) > tiles.MELD_BYTES_MAX:
        raise _NeedsPlainPath
    message = fields.decode(meld_pb2.Meld, data)
    if not raw_messages.is_complete(message):  # groups may be nested too deep for the request, but not for this part
        raise _NeedsPlainPath
    return tiles.melds([message], "meld")[0]


def _validate_melds_plainly(data: bytes) -> bytes:
    """Returns a ValidateMeldsResponse by the plain path. Raises InvalidRequest, MalformedRequest."""
    request = fields.decode(pb.ValidateMeldsRequest, data, *_MOST_OF_MELDS)
    ruleset = rulesets.ruleset(request.ruleset)
    melds = [read_meld(meld, ruleset) for meld in tiles.melds(request.melds, "melds")]
    readings = (tiles.encode_reading(meld, place) for place, meld in enumerate(melds))
    return pb.ValidateMeldsResponse(melds=readings).SerializeToString()
