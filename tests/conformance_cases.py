"""The conformance cases as typed values. Their format is specified in conformance/README.md.

Nothing here knows the engine or the wire: faces, option values and reasons stay the texts of the file, and a runner
turns them into its own terms. Unknown keys are refused, so that no expectation is overlooked.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

FORMAT: Final = "rummikub-conformance/1"
DIRECTORY: Final = Path(__file__).parent / "conformance"

Faces = tuple[str, ...]
Options = Mapping[str, str | int]

COLOR_NAMES: Final = {"R": "RED", "B": "BLUE", "K": "BLACK", "O": "ORANGE"}


@dataclass(frozen=True)
class MeldText:
    """A meld as a player lays it, with the kind ("group", "run") where it is stated."""

    tiles: Faces
    kind: str | None = None


@dataclass(frozen=True)
class Breach:
    """A violation. In an expectation only the reason is certain to be stated; None is not compared."""

    reason: str
    subject: str | None = None
    tiles: Faces | None = None
    metadata: Mapping[str, int] | None = None
    suggested_order: Faces | None = None


def agree(expected: tuple[Breach, ...], seen: tuple[Breach, ...]) -> tuple[tuple[Breach, ...], tuple[Breach, ...]]:
    """Both lists for `assert ==` to compare: what an expectation does not state is dropped from what was seen."""
    stated = tuple(_as_stated(one, other) for one, other in zip(expected, seen, strict=False))
    return expected, stated + seen[len(expected) :]


def _as_stated(expected: Breach, seen: Breach) -> Breach:
    return Breach(
        reason=seen.reason,
        subject=None if expected.subject is None else seen.subject,
        tiles=None if expected.tiles is None else seen.tiles,
        metadata=None if expected.metadata is None else seen.metadata,
        suggested_order=None if expected.suggested_order is None else seen.suggested_order,
    )


@dataclass(frozen=True)
class MeldReadingExpected:
    """What a meld is, or why it is none: violations are empty or everything else is."""

    violations: tuple[Breach, ...]
    kind: str | None = None
    points: int = 0
    joker_faces: tuple[Faces, ...] = ()


@dataclass(frozen=True)
class TurnExpected:
    """What the rules say of a turn. What it brings is stated for legal turns alone."""

    violations: tuple[Breach, ...]
    tiles_played: Faces = ()
    points: int = 0
    rack_left: Faces = ()
    goes_out: bool = False


@dataclass(frozen=True)
class SeatRack:
    """A rack at a round's end, or during one."""

    seat: int
    rack: Faces
    has_melded: bool = False


@dataclass(frozen=True)
class SeatScore:
    """What a round brings a seat."""

    seat: int
    rack_value: int
    tile_count: int
    points: int


@dataclass(frozen=True)
class RoundScoreExpected:
    """A round's result; the seats in the order of the racks."""

    end: str
    winner_seats: tuple[int, ...]
    seats: tuple[SeatScore, ...]


@dataclass(frozen=True)
class TimeOutExpected:
    """What a time-out leads to: the turn passes to next_seat, or the round ends."""

    tiles_drawn: Faces
    rack: Faces
    table: tuple[MeldText, ...]
    pool_left: Faces
    next_seat: int | None
    end: str | None


@dataclass(frozen=True)
class StartDraw:
    """A tile drawn by a seat for the start."""

    seat: int
    tile: str


@dataclass(frozen=True)
class StartDrawExpected:
    """The draws in order, and who starts."""

    draws: tuple[StartDraw, ...]
    starter_seat: int


@dataclass(frozen=True, kw_only=True)
class Case:
    """What all cases have. `ruleset` holds the options that differ from the default."""

    id: str
    source_id: str | None
    note: str
    ruleset: Options = field(default_factory=dict)
    completed: bool | None = None


@dataclass(frozen=True, kw_only=True)
class MeldCase(Case):
    """Read a meld."""

    meld: MeldText
    expect: MeldReadingExpected


@dataclass(frozen=True, kw_only=True)
class TurnCase(Case):
    """Judge a turn."""

    has_melded: bool
    table_before: tuple[MeldText, ...]
    rack: Faces
    table_after: tuple[MeldText, ...]
    expect: TurnExpected


@dataclass(frozen=True, kw_only=True)
class RoundScoreCase(Case):
    """Score a finished round; the racks in turn order from the starter."""

    racks: tuple[SeatRack, ...]
    expect: RoundScoreExpected


@dataclass(frozen=True, kw_only=True)
class TimeOutCase(Case):
    """Let the time of a turn run out; the pool in the order of drawing."""

    table: tuple[MeldText, ...]
    racks: tuple[SeatRack, ...]
    pool: Faces
    passed_seats: tuple[int, ...]
    turn_seat: int
    expect: TimeOutExpected


@dataclass(frozen=True, kw_only=True)
class StartDrawCase(Case):
    """Draw for the start; the tiles in the order in which they are drawn."""

    seats: tuple[int, ...]
    tiles: Faces
    expect: StartDrawExpected


@dataclass(frozen=True)
class Waiting:
    """An example that no case expresses yet: it waits for an option's value, or for a feature in words."""

    source_id: str
    note: str
    option: str | None = None
    value: str | None = None
    feature: str | None = None


@dataclass(frozen=True)
class Suite:
    """All cases, by kind, and the ids of the examples that cases and waiting ones cover."""

    source_ids: tuple[str, ...]
    melds: tuple[MeldCase, ...]
    turns: tuple[TurnCase, ...]
    round_scores: tuple[RoundScoreCase, ...]
    time_outs: tuple[TimeOutCase, ...]
    start_draws: tuple[StartDrawCase, ...]
    waiting: tuple[Waiting, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        return (*self.melds, *self.turns, *self.round_scores, *self.time_outs, *self.start_draws)


@cache
def load() -> Suite:
    """The suite of the files. Raises KeyError, TypeError or ValueError where they are not of the format."""
    document = _read("cases.json")
    rows: list[dict[str, Any]] = document["cases"]
    kinds = {row["kind"] for row in rows} - {"meld", "turn", "round_score", "time_out", "start_draw"}
    if kinds:
        raise ValueError(f"unknown kinds: {kinds}")
    return Suite(
        source_ids=tuple(document["source_ids"]),
        melds=tuple(_meld_case(row) for row in rows if row["kind"] == "meld"),
        turns=tuple(_turn_case(row) for row in rows if row["kind"] == "turn"),
        round_scores=tuple(_round_score_case(row) for row in rows if row["kind"] == "round_score"),
        time_outs=tuple(_time_out_case(row) for row in rows if row["kind"] == "time_out"),
        start_draws=tuple(_start_draw_case(row) for row in rows if row["kind"] == "start_draw"),
        waiting=tuple(Waiting(**row) for row in _read("waiting.json")["waiting"]),
    )


def tile_name(face: str) -> str:
    """The contract's name of a face: `R7` is `TILE_RED_7`, `J` is `TILE_JOKER`."""
    return "TILE_JOKER" if face == "J" else f"TILE_{COLOR_NAMES[face[0]]}_{face[1:]}"


def option_value_name(option: str, value: str) -> str:
    """The contract's name of an option's value: `run_wrap` and `NONE` are `RUN_WRAP_NONE`."""
    return f"{option.upper()}_{value}"


def _read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((DIRECTORY / name).read_text(encoding="utf-8"))
    if document["format"] != FORMAT:
        raise ValueError(f"{name} has the format {document['format']!r}, expected {FORMAT!r}")
    return document


def _common(row: Mapping[str, Any], *own: str) -> dict[str, Any]:
    """A row without its kind and the keys that its kind parses."""
    return {key: value for key, value in row.items() if key not in {"kind", *own}}


def _meld_case(row: Mapping[str, Any]) -> MeldCase:
    expect = dict(row["expect"])
    faces = tuple(map(tuple, expect.pop("joker_faces", ())))
    expected = MeldReadingExpected(violations=_breaches(expect.pop("violations")), joker_faces=faces, **expect)
    return MeldCase(**_common(row, "meld", "expect"), meld=_meld(row["meld"]), expect=expected)


def _turn_case(row: Mapping[str, Any]) -> TurnCase:
    expect = dict(row["expect"])
    expected = TurnExpected(
        violations=_breaches(expect.pop("violations")),
        tiles_played=tuple(expect.pop("tiles_played", ())),
        rack_left=tuple(expect.pop("rack_left", ())),
        **expect,
    )
    return TurnCase(
        **_common(row, "table_before", "rack", "table_after", "expect"),
        table_before=_table(row["table_before"]),
        rack=tuple(row["rack"]),
        table_after=_table(row["table_after"]),
        expect=expected,
    )


def _round_score_case(row: Mapping[str, Any]) -> RoundScoreCase:
    expect = dict(row["expect"])
    expected = RoundScoreExpected(
        winner_seats=tuple(expect.pop("winner_seats")),
        seats=tuple(SeatScore(**seat) for seat in expect.pop("seats")),
        **expect,
    )
    return RoundScoreCase(**_common(row, "racks", "expect"), racks=_racks(row["racks"]), expect=expected)


def _time_out_case(row: Mapping[str, Any]) -> TimeOutCase:
    expect = dict(row["expect"])
    expected = TimeOutExpected(
        tiles_drawn=tuple(expect.pop("tiles_drawn")),
        rack=tuple(expect.pop("rack")),
        table=_table(expect.pop("table")),
        pool_left=tuple(expect.pop("pool_left")),
        **expect,
    )
    return TimeOutCase(
        **_common(row, "table", "racks", "pool", "passed_seats", "expect"),
        table=_table(row["table"]),
        racks=_racks(row["racks"]),
        pool=tuple(row["pool"]),
        passed_seats=tuple(row["passed_seats"]),
        expect=expected,
    )


def _start_draw_case(row: Mapping[str, Any]) -> StartDrawCase:
    expect = dict(row["expect"])
    draws = tuple(StartDraw(**draw) for draw in expect.pop("draws"))
    return StartDrawCase(
        **_common(row, "seats", "tiles", "expect"),
        seats=tuple(row["seats"]),
        tiles=tuple(row["tiles"]),
        expect=StartDrawExpected(draws=draws, **expect),
    )


def _meld(meld: Mapping[str, Any]) -> MeldText:
    return MeldText(**{**meld, "tiles": tuple(meld["tiles"])})


def _table(melds: list[Mapping[str, Any]]) -> tuple[MeldText, ...]:
    return tuple(map(_meld, melds))


def _racks(racks: list[Mapping[str, Any]]) -> tuple[SeatRack, ...]:
    return tuple(SeatRack(**{**rack, "rack": tuple(rack["rack"])}) for rack in racks)


def _breaches(violations: list[Mapping[str, Any]]) -> tuple[Breach, ...]:
    return tuple(map(_breach, violations))


def _breach(violation: Mapping[str, Any]) -> Breach:
    lists = {"tiles", "suggested_order"}
    stated: dict[str, Any] = {key: tuple(value) if key in lists else value for key, value in violation.items()}
    return Breach(**stated)
