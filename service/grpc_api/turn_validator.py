"""Validation from bytes to bytes: what callers ask at every drag of a tile, for as little as can be.

Every method is a plain function of its request, may be called by several threads at once, and raises InvalidRequest or
MalformedRequest. There are two ways through it. Nearly all requests are regular: their melds are looked up by their
bytes (packed, fast_judge). Whatever is not, each malformed request first of all, goes through the contract's own
messages and the codec, which find and name what is wrong with it. Both come to the same answers; tests compare them.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from google.protobuf.message import DecodeError

from engine.fast.fast_judge import AtTheTable, Reading, Referees, Verdict
from engine.melds import NotAMeld, ProposedMeld, read_meld
from engine.presets import PRESET_SOURCES, PRESETS
from engine.rules import judge
from engine.ruleset import Ruleset
from engine.scoring import score_round
from engine.tiles import LAST_TILE, Tile
from engine.violations import Reason, Violation
from rummikub.v1 import meld_pb2, ruleset_pb2
from rummikub.v1 import validation_service_pb2 as pb
from service import codec
from service.codec import raw_messages as packed
from service.errors import InvalidRequest, MalformedRequest

_PRESETS_CURSOR: Final = r"\d{1,3}"
ENCODED_MAX: Final = 65_536
"""Most readings of melds that are remembered as bytes. When there is no more room, all are forgotten."""

RULESET_BYTES_MAX: Final = 1_024
"""Longer rulesets, which say the same more than once or have fields of no contract, are not remembered as sent."""

MELD_BYTES_MIN: Final = 2
"""What a meld takes at least within a message."""

MELDS_A_STEP: Final = 8
"""How many melds are read in one step. Reading one may take 0.15 ms."""

VIOLATIONS_MAX: Final = 4_096
"""Most violations that are remembered as bytes, and most places of them."""

AT_ONCE_BYTES_MAX: Final = 2_048
"""Longer requests are not answered at once: any turn of a game is shorter, its ruleset with it."""

AT_ONCE_MELDS_MAX: Final = 32
"""More melds of a ValidateMelds, which may be none, are not told of at once."""

AT_ONCE_VIOLATIONS_MAX: Final = 16
"""More violations are not encoded at once."""

T = TypeVar("T")

_Question: TypeAlias = tuple[bytes, Sequence[bytes], Sequence[bytes], AtTheTable]
"""Rules, the table before, the table after, and who plays."""


class _IrregularError(Exception):
    """A request that the quick way cannot answer."""


_IRREGULAR: Final = (_IrregularError, InvalidRequest, MalformedRequest, DecodeError)
"""What the quick way raises. The other way says what is wrong, if anything is."""


class Validation:
    """ValidateTurn and its like."""

    def __init__(self) -> None:
        self._referees = Referees[bytes, bytes](_remembered_ruleset, _proposed)
        self._encoded: dict[Reading, bytes] = {}

    def validate_turn(self, data: bytes) -> bytes:
        """ValidateTurn."""
        answer = self._answered(_decoded(packed.turn, data), b"")
        return answer or _judged_plainly(codec.decode(pb.ValidateTurnRequest, data), b"")

    def turn_in_steps(self, data: bytes) -> Generator[None, None, bytes]:
        """ValidateTurn in steps: a few melds that were not seen before are read in each."""
        yield from self._read_in_steps(_decoded(packed.turn, data), b"")
        return self.validate_turn(data)

    def turn_at_once(self, data: bytes) -> bytes | None:
        """ValidateTurn if it takes a moment only, whatever was sent: a millisecond or two at the very most.

        None if it may take longer, as rules are asked that search, or much is there that was not seen before; or if
        something is wrong with the request. Then validate_turn knows the answer. Raises nothing.
        """
        if len(data) > AT_ONCE_BYTES_MAX:
            return None
        try:
            return self._answered_at_once(packed.turn(data), b"")
        except DecodeError:
            return None

    def validate_melds(self, data: bytes) -> bytes:
        """ValidateMelds."""
        try:
            return self._read(data)
        except _IRREGULAR:
            return _read_plainly(data)

    def melds_at_once(self, data: bytes) -> bytes | None:
        """ValidateMelds if it takes a moment only: as turn_at_once."""
        if len(data) > AT_ONCE_BYTES_MAX:
            return None
        try:
            rules, sent = _table(data)
            referee = self._referees.known(rules)
            if referee is None or len(sent) > AT_ONCE_MELDS_MAX or not referee.knows_most(sent):
                return None
            return self._told_of(referee.read(sent))
        except _IRREGULAR:
            return None

    def score_round(self, data: bytes) -> bytes:
        """ScoreRound."""
        request = codec.decode(pb.ScoreRoundRequest, data)
        rules = codec.ruleset(request.ruleset)
        to_score = codec.round_to_score(request, rules)
        return codec.encode_score(score_round(1, to_score.end, to_score.standings, rules)).SerializeToString()

    def list_rulesets(self, data: bytes) -> bytes:
        """ListRulesets."""
        request = codec.decode(pb.ListRulesetsRequest, data)
        size = codec.page_size(request.page_size, default=50, most=50)
        first = int(codec.page_cursor(request.page_token, _PRESETS_CURSOR) or 0)
        rulesets = (
            pb.NamedRuleset(ruleset=codec.encode_ruleset(rules), name=preset.name, source=PRESET_SOURCES[preset])
            for preset, rules in tuple(PRESETS.items())[first : first + size]
        )
        token = codec.page_token(str(first + size) if first + size < len(PRESETS) else "")
        return pb.ListRulesetsResponse(rulesets=rulesets, next_page_token=token).SerializeToString()

    def score_at_once(self, data: bytes) -> bytes | None:
        """ScoreRound if the request is short; None otherwise."""
        return self.score_round(data) if len(data) <= AT_ONCE_BYTES_MAX else None

    def rulesets_at_once(self, data: bytes) -> bytes | None:
        """ListRulesets if the request is short; None otherwise."""
        return self.list_rulesets(data) if len(data) <= AT_ONCE_BYTES_MAX else None

    def batch(self, data: bytes) -> Generator[None, None, bytes]:
        """BatchValidateTurns, in steps of a turn each."""
        request = _decoded(packed.batch, data)
        if len(request.ruleset) > 1:
            codec.decode(pb.BatchValidateTurnsRequest, data)  # each part must be a message
        codec.check_batch(len(request.turns), melds=0)
        default = b"".join(request.ruleset[:])
        _ruleset(default)
        turns = request.turns
        if len(data) > MELD_BYTES_MIN * codec.BATCH_MELDS_MAX:  # else it cannot have too many melds
            codec.check_batch(len(turns), sum([len(turn.table_before) + len(turn.table_after) for turn in turns]))
        plain: pb.BatchValidateTurnsRequest | None = None
        answers = []
        for place, turn in enumerate(turns):
            answer = self._answered_at_once(turn, default)
            if answer is None:
                yield from self._read_in_steps(turn, default)
                answer = self._answered(turn, default)
            if answer is None:
                plain = plain or codec.decode(pb.BatchValidateTurnsRequest, data)
                answer = _judged_plainly(plain.turns[place], default, f"turns[{place}].")
            answers.append(answer)
            yield
        return packed.batch_answer(answers)

    def stream(self) -> "TurnsOfAStream":
        """What answers the turns of one StreamValidateTurns, in their order."""
        return TurnsOfAStream(self._answered, self._judged_at_once)

    def _answered(self, turn: packed.PackedTurn, default: bytes) -> bytes | None:
        """ValidateTurnResponse of a ValidateTurnRequest; None if it is to be judged plainly.

        Args:
            turn: The turn.
            default: The ruleset of a turn that states none.
        """
        try:
            return self._judged(turn, default)
        except _IRREGULAR:
            return None

    def _answered_at_once(self, turn: packed.PackedTurn, default: bytes) -> bytes | None:
        """Returns the same in a moment; None if it may take longer."""
        try:
            return self._judged_at_once(turn, default)
        except _IRREGULAR:
            return None

    def _read_in_steps(self, turn: packed.PackedTurn, default: bytes) -> Generator[None, None, None]:
        """Reads the melds of a turn, so that they are known when it is judged. Ends early where something is wrong."""
        try:
            rules, before, after, _ = _question(turn, default)
            referee = self._referees.of(rules)
            for place, meld in enumerate((*before, *after), 1):
                referee.read((meld,))
                if place % MELDS_A_STEP == 0:
                    yield
        except _IRREGULAR:
            return

    def _judged(self, turn: packed.PackedTurn, default: bytes) -> bytes:
        rules, before, after, seat = _question(turn, default)
        return _told(self._referees.of(rules).verdict(before, after, seat))

    def _judged_at_once(self, turn: packed.PackedTurn, default: bytes) -> bytes | None:
        rules, before, after, seat = _question(turn, default)
        referee = self._referees.known(rules)
        verdict = referee.verdict_at_once(before, after, seat) if referee else None
        if verdict is None:
            return None
        violations, *_ = verdict
        return _told(verdict) if len(violations) <= AT_ONCE_VIOLATIONS_MAX else None

    def _read(self, data: bytes) -> bytes:
        rules, sent = _table(data)
        return self._told_of(self._referees.of(rules).read(sent))

    def _told_of(self, readings: Iterable[Reading]) -> bytes:
        """ValidateMeldsResponse."""
        if len(self._encoded) > ENCODED_MAX:
            self._encoded = {}
        encoded, answers = self._encoded, []
        for place, reading in enumerate(readings):
            answer = encoded.get(reading)
            if answer is None:
                answer = codec.encode_reading(reading.meld, place).SerializeToString()
                if not isinstance(reading.meld, NotAMeld):  # a violation has the meld's place
                    encoded[reading] = answer
            answers.append(answer)
        return packed.melds_answer(answers)


class TurnsOfAStream:
    """Answers the turns of one StreamValidateTurns, in their order.

    Args:
        answered: The answer to a turn, and the ruleset if it states none; None if it is to be judged plainly.
        judged_at_once: The same, if it takes a moment only.
    """

    def __init__(
        self,
        answered: Callable[[packed.PackedTurn, bytes], bytes | None],
        judged_at_once: Callable[[packed.PackedTurn, bytes], bytes | None],
    ) -> None:
        self._answered = answered
        self._judged_at_once = judged_at_once
        self._rules = b""

    def __call__(self, data: bytes) -> bytes:
        """The answer to the next turn. Raises InvalidRequest, MalformedRequest."""
        request = _decoded(packed.stream_turn, data)
        turn = request.turn
        correlation_id = codec.correlation_id(request.correlation_id)
        self._rules = _shortened(b"".join(turn.ruleset[:])) if turn.ruleset else self._rules
        answer = self._answered(turn, self._rules)
        if answer is None:
            answer = _judged_plainly(codec.decode(pb.StreamValidateTurnsRequest, data).turn, self._rules, "turn.")
        return packed.stream_answer(answer, correlation_id)

    def at_once(self, data: bytes) -> bytes | None:
        """The same as Validation.turn_at_once, for the next turn. If it is None, the turn is still the next."""
        if len(data) > AT_ONCE_BYTES_MAX:
            return None
        try:
            request = packed.stream_turn(data)
            turn = request.turn
            rules = b"".join(turn.ruleset[:]) if turn.ruleset else self._rules
            correlation_id = codec.correlation_id(request.correlation_id)
            answer = self._judged_at_once(turn, rules)
        except _IRREGULAR:
            return None
        self._rules = rules
        return None if answer is None else packed.stream_answer(answer, correlation_id)


def _table(data: bytes) -> tuple[bytes, Sequence[bytes]]:
    """Rules and melds of a ValidateMeldsRequest. Raises _IrregularError if it is not read quickly, DecodeError."""
    request = packed.melds(data)
    if not packed.is_whole(request) or len(request.ruleset) > 1 or len(request.melds) > codec.MELDS_MAX:
        raise _IrregularError
    return b"".join(request.ruleset[:]), request.melds[:]


def _encoded_violation(violation: Violation) -> bytes:
    """A violation; what is about a whole table is not remembered."""
    return _of_a_meld(violation) if len(violation.tiles) <= codec.MELD_TILES_MAX else _encoded(violation, _rest)


def _encoded(violation: Violation, rest: "_Rest") -> bytes:
    reason, subject, tiles, metadata, order = violation
    return _where(reason, subject) + rest(reason, tiles, metadata, order)


@lru_cache(maxsize=VIOLATIONS_MAX)
def _of_a_meld(violation: Violation) -> bytes:
    """What is about a meld is the same in many places, and in the same place again and again."""
    return _encoded(violation, _rest_of_a_meld)


@lru_cache(maxsize=VIOLATIONS_MAX)
def _where(reason: Reason, subject: str) -> bytes:
    """The first fields of a violation."""
    return meld_pb2.Violation(reason=codec.reason_number(reason.name), subject=subject).SerializeToString()


def _rest(
    reason: Reason, tiles: tuple[Tile, ...], metadata: tuple[tuple[str, int], ...], order: tuple[Tile, ...]
) -> bytes:
    """The other fields, which are the same wherever it is."""
    message = codec.encode_violation(Violation(reason, "", tiles, metadata, order))
    message.ClearField("reason")
    return message.SerializeToString()


_Rest: TypeAlias = Callable[[Reason, tuple[Tile, ...], tuple[tuple[str, int], ...], tuple[Tile, ...]], bytes]

_rest_of_a_meld: Final = lru_cache(maxsize=VIOLATIONS_MAX)(_rest)


def _told(verdict: Verdict | None) -> bytes:
    """ValidateTurnResponse of what a referee says. Raises _IrregularError where nothing is said."""
    if verdict is None:
        raise _IrregularError
    violations, played, points, left = verdict
    return packed.turn_answer(played, points, left, [_encoded_violation(violation) for violation in violations])


def _question(turn: packed.PackedTurn, default: bytes) -> _Question:
    """What a referee is asked. Raises _IrregularError of a turn that is not read quickly, or not at all."""
    stated, before, after = turn.ruleset[:], turn.table_before[:], turn.table_after[:]
    rack: tuple[Any, ...] = tuple(sorted(b"".join(turn.rack[:])))  # numbers, that are tiles if they are in range
    drawn = turn.tile_drawn
    if (
        not packed.is_whole(turn)
        or len(stated) > 1  # each part must be a message, which the parts together do not tell
        or len(before) > codec.MELDS_MAX
        or len(after) > codec.MELDS_MAX
        or len(rack) > codec.RACK_TILES_MAX
        or (rack and not 1 <= rack[0] <= rack[-1] <= LAST_TILE)
        or (drawn and drawn not in rack)
    ):
        raise _IrregularError
    seat = AtTheTable(rack, turn.has_melded, (), None, Tile(drawn) if drawn else None, turn.calls_rummikub)
    return stated[0] if stated else default, before, after, seat


def _decoded(decode: Callable[[bytes], T], data: bytes) -> T:
    """What is in a message. Raises MalformedRequest."""
    try:
        return decode(data)
    except DecodeError:
        raise MalformedRequest from None


def _ruleset(data: bytes) -> Ruleset:
    """Rules from the bytes of their message. Raises InvalidRequest, MalformedRequest."""
    return codec.ruleset(codec.decode(ruleset_pb2.Ruleset, data))


def _remembered_ruleset(data: bytes) -> Ruleset:
    """The same for a referee, which is looked up by those bytes. Raises _IrregularError too."""
    if len(data) > RULESET_BYTES_MAX:
        raise _IrregularError
    return _ruleset(data)


def _shortened(data: bytes) -> bytes:
    """A ruleset as it is kept while a stream is open. Raises MalformedRequest."""
    return data if len(data) <= RULESET_BYTES_MAX else codec.decode(ruleset_pb2.Ruleset, data).SerializeToString()


def _proposed(data: bytes) -> ProposedMeld:
    """A meld from the bytes of its message. Raises InvalidRequest, MalformedRequest, _IrregularError."""
    if len(data) > codec.MELD_BYTES_MAX:
        raise _IrregularError
    message = codec.decode(meld_pb2.Meld, data)
    if not packed.is_whole(message):  # groups may be nested too deep for the whole request, but not for this part of it
        raise _IrregularError
    return codec.melds([message], "meld")[0]


def _judged_plainly(request: pb.ValidateTurnRequest, default: bytes, field: str = "") -> bytes:
    """ValidateTurnResponse of any ValidateTurnRequest. Raises InvalidRequest, MalformedRequest.

    Args:
        request: The turn.
        default: The ruleset of a turn that states none.
        field: What faults call the turn, with a dot at the end, if it is part of a larger message.
    """
    rules = codec.ruleset(request.ruleset, field) if request.HasField("ruleset") else _ruleset(default)
    return codec.encode_judgement(judge(codec.play(request, rules, field))).SerializeToString()


def _read_plainly(data: bytes) -> bytes:
    """The same as Validation.validate_melds for any request. Raises InvalidRequest, MalformedRequest."""
    request = codec.decode(pb.ValidateMeldsRequest, data)
    rules = codec.ruleset(request.ruleset)
    melds = [read_meld(meld, rules) for meld in codec.melds(request.melds, "melds")]
    readings = (codec.encode_reading(meld, place) for place, meld in enumerate(melds))
    return pb.ValidateMeldsResponse(melds=readings).SerializeToString()
