"""The conformance cases and contrasts as typed values, in one long module of records and their parsers.

conformance/README.md specifies the format. This module does not depend on the engine or protobuf: faces, option values
and reasons stay text, and a runner converts them. Unknown keys raise an error, so that no expectation is overlooked.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

FORMAT: Final = "rummikub-conformance/1"
DIRECTORY: Final = Path(__file__).parents[1] / "conformance"

Faces = tuple[str, ...]
Options = Mapping[str, str | int]

COLOR_NAMES: Final = {"R": "RED", "B": "BLUE", "K": "BLACK", "O": "ORANGE", "G": "GREEN", "P": "PURPLE"}
JOKER_NAMES: Final = {
    "J": "TILE_JOKER",
    "D": "TILE_DOUBLE_JOKER",
    "M": "TILE_MIRROR",
    "C": "TILE_COLOR_CHANGE",
    "F": "TILE_FALSE_JOKER",
}
FACES: Final = (*(f"{color}{value}" for color in COLOR_NAMES for value in range(1, 14)), *JOKER_NAMES)


@dataclass(frozen=True)
class MeldText:
    """A meld as a player lays it, with its kind ("group", "run") and its jokers' faces if they are stated."""

    tiles: Faces
    kind: str | None = None
    declared: Faces = ()


@dataclass(frozen=True)
class GridText:
    """The tiles of a grid, each with its cell (x, y)."""

    placements: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Breach:
    """A violation. An expectation always has the reason; None matches anything."""

    reason: str
    subject: str | None = None
    tiles: Faces | None = None
    metadata: Mapping[str, int] | None = None
    suggested_order: Faces | None = None


def agree(expected: tuple[Breach, ...], seen: tuple[Breach, ...]) -> tuple[tuple[Breach, ...], tuple[Breach, ...]]:
    """Returns both lists for `assert ==`, without the details of `seen` that the expectation does not state."""
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
    """The reading of a meld: either violations, or everything else."""

    violations: tuple[Breach, ...]
    kind: str | None = None
    points: int = 0
    joker_faces: tuple[Faces, ...] = ()


@dataclass(frozen=True)
class TurnExpected:
    """The verdict on a turn. Only legal turns have points and tiles."""

    violations: tuple[Breach, ...]
    tiles_played: Faces = ()
    points: int = 0
    rack_left: Faces = ()
    goes_out: bool = False


@dataclass(frozen=True)
class HandExpected:
    """The verdict on a hand of a game of discards. Only finished ones have a cost, and may be pairs."""

    violations: tuple[Breach, ...] = ()
    is_pairs: bool = False
    cost: int = 0
    missing: int = 0
    discard: str | None = None
    hand_name: str = ""
    malformed: str | None = None


@dataclass(frozen=True)
class OpeningText:
    """How a seat opened: with melds of so many points, or with so many pairs."""

    seat: int
    amount: int
    is_pairs: bool


@dataclass(frozen=True)
class DiscardTurnExpected:
    """The verdict on a turn of a game of discards with a table. Only legal turns have more than violations."""

    violations: tuple[Breach, ...] = ()
    tiles_laid: Faces = ()
    okeys: int = 0
    opening: OpeningText | None = None
    rack_left: Faces = ()
    penalty: str | None = None
    is_finish: bool = False
    malformed: str | None = None


@dataclass(frozen=True)
class SeatRack:
    """A rack during or at the end of a round."""

    seat: int
    rack: Faces
    has_melded: bool = False


@dataclass(frozen=True)
class SeatScore:
    """The result of a round for a seat."""

    seat: int
    rack_value: int
    tile_count: int
    points: int


@dataclass(frozen=True)
class RoundScoreExpected:
    """The result of a round; the seats are in the order of the racks."""

    end: str
    winner_seats: tuple[int, ...]
    seats: tuple[SeatScore, ...]


@dataclass(frozen=True)
class TimeOutExpected:
    """The result of a time-out: the turn passes to next_seat, or the round ends."""

    tiles_drawn: Faces
    rack: Faces
    table: tuple[MeldText, ...]
    pool_left: Faces
    next_seat: int | None
    end: str | None


@dataclass(frozen=True)
class StartDraw:
    """A tile that a seat draws to determine the starter."""

    seat: int
    tile: str


@dataclass(frozen=True)
class StartDrawExpected:
    """The draws in order, and the starter."""

    draws: tuple[StartDraw, ...]
    starter_seat: int


@dataclass(frozen=True, kw_only=True)
class TurnQuestion:
    """A turn to validate."""

    has_melded: bool
    table_before: tuple[MeldText, ...]
    rack: Faces
    table_after: tuple[MeldText, ...]
    river: Faces = ()
    river_index: int | None = None
    tile_drawn: str | None = None
    calls_rummikub: bool = False


@dataclass(frozen=True, kw_only=True)
class PlacementQuestion:
    """A turn of the cross layout to validate."""

    has_melded: bool
    table_before: GridText
    rack: Faces
    table_after: GridText
    tile_drawn: str | None = None
    calls_rummikub: bool = False


@dataclass(frozen=True, kw_only=True)
class HandQuestion:
    """A hand of a game of discards to judge."""

    tiles: Faces
    indicator: str | None = None
    discard: str | None = None
    hand: tuple[Faces, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DiscardTurnQuestion:
    """A turn of a game of discards with a table to judge: what is laid, the discard, or both."""

    rack: Faces
    indicator: str | None = None
    seat: int = 1
    table_before: tuple[Faces, ...] = ()
    openings: tuple[OpeningText, ...] = ()
    owed_tile: str | None = None
    tiles_laid: int = 0
    table_after: tuple[Faces, ...] = ()
    discard: str | None = None
    is_foot: bool = False


@dataclass(frozen=True, kw_only=True)
class Case:
    """The common part of all cases. `ruleset` holds the options that differ from the default."""

    id: str
    source_id: str | None
    note: str
    ruleset: Options = field(default_factory=dict)
    completed: bool | None = None


@dataclass(frozen=True, kw_only=True)
class MeldCase(Case):
    """A meld to read."""

    meld: MeldText
    expect: MeldReadingExpected


@dataclass(frozen=True, kw_only=True)
class TurnCase(Case, TurnQuestion):
    """A turn to validate."""

    expect: TurnExpected


@dataclass(frozen=True, kw_only=True)
class PlacementCase(Case, PlacementQuestion):
    """A turn of the cross layout to validate."""

    expect: TurnExpected


@dataclass(frozen=True, kw_only=True)
class HandCase(Case, HandQuestion):
    """A hand of a game of discards to judge."""

    expect: HandExpected


@dataclass(frozen=True, kw_only=True)
class DiscardTurnCase(Case, DiscardTurnQuestion):
    """A turn of a game of discards with a table to judge."""

    expect: DiscardTurnExpected


@dataclass(frozen=True, kw_only=True)
class RoundScoreCase(Case):
    """A finished round to score; the racks are in turn order from the starter."""

    racks: tuple[SeatRack, ...]
    expect: RoundScoreExpected


@dataclass(frozen=True, kw_only=True)
class TimeOutCase(Case):
    """A turn that times out; the pool is in drawing order."""

    table: tuple[MeldText, ...]
    racks: tuple[SeatRack, ...]
    pool: Faces
    passed_seats: tuple[int, ...]
    turn_seat: int
    draft: tuple[MeldText, ...] | None = None
    expect: TimeOutExpected


@dataclass(frozen=True, kw_only=True)
class StartDrawCase(Case):
    """A draw for the start; the tiles are in drawing order."""

    seats: tuple[int, ...]
    tiles: Faces
    expect: StartDrawExpected


Outcome = Mapping[str, Any]
"""Observations of a game, by the keys of the README; only stated keys are compared."""


def seen_as_stated(expected: Outcome, see: Callable[[str], object]) -> dict[str, object]:
    """Returns the observations for the keys that an outcome states, and `refused`; of racks, only the stated seats."""
    seen = {key: see(key) for key in {"refused": [], **expected}}
    racks = seen.get("racks")
    if isinstance(racks, dict):
        seen["racks"] = {seat: rack for seat, rack in racks.items() if seat in expected["racks"]}
    return seen


@dataclass(frozen=True)
class PositionText:
    """The state of a round: table, racks by seat, pool in drawing order, seat to move; seat 1 started."""

    table: tuple[MeldText, ...]
    racks: tuple[SeatRack, ...]
    pool: Faces
    turn_seat: int


@dataclass(frozen=True)
class DiscardPositionText:
    """The state of a round of a game of discards; the newest discard of a seat is the last one.

    Without a table, `table` is None. In a game with jokers, `indicator` is None.
    """

    indicator: str | None
    discards: tuple[SeatRack, ...]
    racks: tuple[SeatRack, ...]
    pool: Faces
    turn_seat: int
    table: tuple[Faces, ...] | None = None
    openings: tuple[OpeningText, ...] = ()
    trump: str | None = None


@dataclass(frozen=True)
class Act:
    """An action in a game. With `attempt` it may be refused, and the game goes on."""

    do: str
    seat: int = 0
    attempt: bool = False
    name: str = ""
    table: tuple[MeldText, ...] | GridText = ()
    river_index: int | None = None
    calls_rummikub: bool = False
    knocks: bool = False
    tile: str = ""
    hand: tuple[Faces, ...] = ()
    agrees: bool = True
    is_ready: bool = True
    kicked: int = 0
    seconds: int = 0


@dataclass(frozen=True, kw_only=True)
class LittleGame:
    """A short game from a position, or from the lobby with a number of players, with the actions in order.

    Each entry of `shuffles` is the beginning of a shuffle; the other tiles follow in ascending order. Each deal takes
    two shuffles: for the start draw and for the deal. `discarded` are the seats that have discarded before.
    """

    actions: tuple[Act, ...]
    players: int = 2
    position: PositionText | DiscardPositionText | None = None
    river: Faces = ()
    discarded: tuple[int, ...] = ()
    shuffles: tuple[Faces, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CreateCase(Case):
    """A game creation. Expected problems are texts such as `OPTIONS_CONFLICT match_rounds match_end`."""

    expect: Faces


@dataclass(frozen=True, kw_only=True)
class GameCase(Case):
    """A short game to play."""

    game: LittleGame
    expect: Outcome


@dataclass(frozen=True)
class Waiting:
    """An example without a case: it waits for an option's value, or for a feature described in words."""

    source_id: str
    note: str
    option: str | None = None
    value: str | None = None
    feature: str | None = None


@dataclass(frozen=True, kw_only=True)
class RoundQuestion:
    """A finished round to score: the racks of seats 1, 2 and so on, in turn order from the starter."""

    racks: tuple[Faces, ...]
    never_melded: tuple[int, ...] = ()
    declined_to_meld: tuple[int, ...] = ()


@dataclass(frozen=True)
class Creation:
    """A game creation."""


Question = (
    MeldText
    | TurnQuestion
    | PlacementQuestion
    | HandQuestion
    | DiscardTurnQuestion
    | RoundQuestion
    | Creation
    | LittleGame
)
Answer = Faces | Outcome
"""The reasons of a meld, a turn, a hand or a creation (none if legal); the outcome of a round or a game."""


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """One question with several values of an option. `ruleset` holds the other options."""

    id: str
    option: str
    note: str
    question: Question
    answers: Mapping[str, Answer]
    ruleset: Options = field(default_factory=dict)

    def options(self, value: str) -> Options:
        """Returns the ruleset with a value of the option."""
        return {**self.ruleset, self.option: option_value(value)}

    def is_legal(self, value: str) -> bool:
        """Whether the subject is legal with a value of the option."""
        answer = self.answers[value]
        refused = answer.get("refused") or answer.get("violations") if isinstance(answer, Mapping) else answer
        return not refused


@dataclass(frozen=True)
class Suite:
    """All cases by kind, the ids of the examples that cases and waiting entries cover, and the contrasts."""

    source_ids: tuple[str, ...]
    melds: tuple[MeldCase, ...]
    turns: tuple[TurnCase, ...]
    placements: tuple[PlacementCase, ...]
    hands: tuple[HandCase, ...]
    discard_turns: tuple[DiscardTurnCase, ...]
    round_scores: tuple[RoundScoreCase, ...]
    time_outs: tuple[TimeOutCase, ...]
    start_draws: tuple[StartDrawCase, ...]
    creations: tuple[CreateCase, ...]
    games: tuple[GameCase, ...]
    waiting: tuple[Waiting, ...]
    contrasts: tuple[Contrast, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        judged: tuple[Case, ...] = (
            *self.melds,
            *self.turns,
            *self.placements,
            *self.hands,
            *self.discard_turns,
            *self.round_scores,
            *self.creations,
        )
        return (*judged, *self.time_outs, *self.start_draws, *self.games)


CASE_KINDS: Final = {
    "meld",
    "turn",
    "placement",
    "hand",
    "discard_turn",
    "round_score",
    "time_out",
    "start_draw",
    "create",
    "game",
}


@cache
def load() -> Suite:
    """Reads the files. Raises KeyError, TypeError or ValueError if their format is wrong."""
    document = _read("cases.json")
    rows: list[dict[str, Any]] = document["cases"]
    kinds = {row["kind"] for row in rows}
    if kinds - CASE_KINDS:
        raise ValueError(f"unknown kinds: {kinds - CASE_KINDS}")
    return Suite(
        source_ids=tuple(document["source_ids"]),
        melds=tuple(_meld_case(row) for row in rows if row["kind"] == "meld"),
        turns=tuple(_turn_case(row) for row in rows if row["kind"] == "turn"),
        placements=tuple(_placement_case(row) for row in rows if row["kind"] == "placement"),
        hands=tuple(_hand_case(row) for row in rows if row["kind"] == "hand"),
        discard_turns=tuple(_discard_turn_case(row) for row in rows if row["kind"] == "discard_turn"),
        round_scores=tuple(_round_score_case(row) for row in rows if row["kind"] == "round_score"),
        time_outs=tuple(_time_out_case(row) for row in rows if row["kind"] == "time_out"),
        start_draws=tuple(_start_draw_case(row) for row in rows if row["kind"] == "start_draw"),
        creations=tuple(_create_case(row) for row in rows if row["kind"] == "create"),
        games=tuple(_game_case(row) for row in rows if row["kind"] == "game"),
        waiting=tuple(Waiting(**row) for row in _read("waiting.json")["waiting"]),
        contrasts=tuple(map(_contrast, _read("contrasts.json")["contrasts"])),
    )


def tile_name(face: str) -> str:
    """Returns the contract's name of a face: `R7` is `TILE_RED_7`, `J` is `TILE_JOKER`, `F` is `TILE_FALSE_JOKER`."""
    return JOKER_NAMES.get(face) or f"TILE_{COLOR_NAMES[face[0]]}_{face[1:]}"


def option_value_name(option: str, value: str) -> str:
    """Returns the contract's name of an option's value: `run_wrap` and `OFF` give `RUN_WRAP_OFF`."""
    return f"{option.upper()}_{value}"


def option_value(text: str) -> str | int:
    """Parses an option's value from a key of a contrast's answers: a number, a boolean or a name."""
    truths = {"false": False, "true": True}
    return truths[text] if text in truths else int(text) if text.isdecimal() else text


def meld_text(meld: MeldText) -> str:
    """Formats a meld: `[R3 R4 R5]`, `run[J J R5]`, `[R7 B7 J=K7]`."""
    declared = iter(meld.declared)
    tiles = (f"J={next(declared)}" if face == "J" and meld.declared else face for face in meld.tiles)
    return f"{meld.kind or ''}[{' '.join(tiles)}]"


def table_text(table: tuple[MeldText, ...]) -> str:
    """Formats a table: `[R3 R4 R5] | [B6 K6 O6]`, or `.` for an empty table."""
    return " | ".join(map(meld_text, table)) or "."


def grid_text(grid: GridText) -> str:
    """Formats a grid: `0,0[R3 R4 R5] | 1,1[B4]`, or `.` for an empty one."""
    rows: list[str] = []
    after = None
    for face, x, y in grid.placements:
        if (x, y) == after:
            rows[-1] = f"{rows[-1][:-1]} {face}]"
        else:
            rows.append(f"{x},{y}[{face}]")
        after = (x + 1, y)
    return " | ".join(rows) or "."


def parse_faces(text: str) -> Faces:
    """Parses faces: `R7 B7 J`. Raises ValueError."""
    faces = tuple(text.split())
    if not set(faces) <= set(FACES):
        raise ValueError(f"{text!r} are not faces")
    return faces


def parse_meld(text: str) -> MeldText:
    """Parses a meld. Raises ValueError."""
    match = re.fullmatch(r"(run|group)?\[([^\[\]]*)\]", text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a meld")
    tiles = [tile.partition("=") for tile in match[2].split()]
    faces, declared = (parse_faces(" ".join(tile[part] for tile in tiles)) for part in (0, 2))
    return MeldText(faces, match[1], declared)


def parse_melds(text: str) -> tuple[MeldText, ...]:
    """Parses a table. Raises ValueError."""
    return () if text == "." else tuple(map(parse_meld, text.split("|")))


def parse_grid(text: str) -> GridText:
    """Parses a grid: `0,0[R3 R4 R5] | 1,1[B4]`. Raises ValueError."""
    placements: list[tuple[str, int, int]] = []
    for row in () if text == "." else text.split("|"):
        match = re.fullmatch(r"(-?\d+),(-?\d+)\[([^\[\]]*)\]", row.strip())
        if not match:
            raise ValueError(f"{row!r} is not a row of a grid")
        x, y = int(match[1]), int(match[2])
        placements += [(face, x + place, y) for place, face in enumerate(parse_faces(match[3]))]
    return GridText(tuple(placements))


def parse_table(text: str) -> tuple[MeldText, ...] | GridText:
    """Parses a table of either layout. Raises ValueError."""
    return parse_grid(text) if re.match(r"-?\d", text) else parse_melds(text)


def parse_hand(text: str) -> tuple[Faces, ...]:
    """Parses melds or pairs of a hand: `[R3 R4 R5] | [F R7 R8]`. Raises ValueError."""
    return tuple(part.tiles for part in parse_melds(text))


def parse_openings(text: str) -> tuple[OpeningText, ...]:
    """Parses openings: `2:105 3:5p`, with p for pairs, or `.` for none. Raises ValueError."""
    return () if text == "." else tuple(map(parse_opening, text.split()))


def parse_opening(text: str) -> OpeningText:
    """Parses an opening. Raises ValueError."""
    match = re.fullmatch(r"([1-9]):([0-9]+)(p?)", text)
    if not match:
        raise ValueError(f"{text!r} is not an opening")
    return OpeningText(int(match[1]), int(match[2]), bool(match[3]))


def openings_text(openings: Iterable[OpeningText]) -> str:
    """Formats openings: `2:105 3:5p`, or `.` for none."""
    return " ".join(f"{one.seat}:{one.amount}{'p' * one.is_pairs}" for one in openings) or "."


def parse_position(text: str) -> PositionText | DiscardPositionText:
    """Parses a position: `table / 1*{rack} 2{rack} / {pool} / seat`, or that of a game of discards. Raises ValueError.

    That has the indicator and the discards instead of the table: `O4 / 1{} 2{R7} / 1{rack} 2{rack} / {pool} / seat`. A
    table and the openings may follow: `/ [R7 R8 R9] / 1:105 2:5p`. In a game with jokers, `J` stands in place of the
    indicator, and after it the trump if one lies face up: `J R8`.
    """
    parts = [part.strip() for part in text.split("/")]
    if len(parts) == len(("table", "racks", "pool", "seat")):
        table, racks, pool, seat = parts
        return PositionText(parse_melds(table), _seat_racks(racks), parse_faces(pool[1:-1]), int(seat))
    first, discards, racks, pool, seat, *laid = parts
    shown, *trump = parse_faces(first)
    position = DiscardPositionText(
        None if shown == "J" else shown,
        _seat_racks(discards),
        _seat_racks(racks),
        parse_faces(pool[1:-1]),
        int(seat),
        trump=next(iter(trump), None),
    )
    if not laid:
        return position
    melds, openings = laid
    return replace(position, table=parse_hand(melds), openings=parse_openings(openings))


def _seat_racks(text: str) -> tuple[SeatRack, ...]:
    held = re.findall(r"([1-9])(\*?)\{([^{}]*)\}", text)
    return tuple(SeatRack(int(number), parse_faces(rack), bool(melded)) for number, melded, rack in held)


def _read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((DIRECTORY / name).read_text(encoding="utf-8"))
    if document["format"] != FORMAT:
        raise ValueError(f"{name} has the format {document['format']!r}, expected {FORMAT!r}")
    return document


def _common(row: Mapping[str, Any], *own: str) -> dict[str, Any]:
    """Returns the fields of a row that all cases share, without `kind` and the given keys."""
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
        **_common(row, "table_before", "rack", "table_after", "river", "expect"),
        table_before=_table(row["table_before"]),
        rack=tuple(row["rack"]),
        table_after=_table(row["table_after"]),
        river=tuple(row.get("river", ())),
        expect=expected,
    )


def _placement_case(row: Mapping[str, Any]) -> PlacementCase:
    expect = dict(row["expect"])
    expected = TurnExpected(
        violations=_breaches(expect.pop("violations")),
        tiles_played=parse_faces(expect.pop("tiles_played", "")),
        rack_left=parse_faces(expect.pop("rack_left", "")),
        **expect,
    )
    return PlacementCase(
        **_common(row, "table_before", "rack", "table_after", "expect"),
        table_before=parse_grid(row["table_before"]),
        rack=parse_faces(row["rack"]),
        table_after=parse_grid(row["table_after"]),
        expect=expected,
    )


def _hand_case(row: Mapping[str, Any]) -> HandCase:
    own = {key: row[key] for key in HAND_KEYS & row.keys()}
    expect = dict(row["expect"])
    expected = HandExpected(violations=_breaches(expect.pop("violations", ())), **expect)
    return HandCase(**_common(row, "expect", *own), **_hand_texts(own), expect=expected)


HAND_KEYS: Final = {"indicator", "tiles", "discard", "hand"}


def _hand_texts(row: Mapping[str, Any]) -> dict[str, Any]:
    texts = {**row, "tiles": parse_faces(row["tiles"])}
    return {**texts, "hand": parse_hand(row["hand"])} if "hand" in row else texts


def _discard_turn_case(row: Mapping[str, Any]) -> DiscardTurnCase:
    own = {key: row[key] for key in DISCARD_TURN_KEYS & row.keys()}
    expect = dict(row["expect"])
    expected = DiscardTurnExpected(
        violations=_breaches(expect.pop("violations", ())),
        tiles_laid=parse_faces(expect.pop("tiles_laid", "")),
        opening=parse_opening(expect.pop("opening")) if "opening" in expect else None,
        rack_left=parse_faces(expect.pop("rack_left", "")),
        **expect,
    )
    return DiscardTurnCase(**_common(row, "expect", *own), **_discard_turn_texts(own), expect=expected)


DISCARD_TURN_KEYS: Final = {field.name for field in fields(DiscardTurnQuestion)}


def _discard_turn_texts(row: Mapping[str, Any]) -> dict[str, Any]:
    parsers: dict[str, Callable[[str], Any]] = {
        "rack": parse_faces,
        "table_before": parse_hand,
        "openings": parse_openings,
        "table_after": parse_hand,
    }
    return {key: parsers[key](value) if key in parsers else value for key, value in row.items()}


def _create_case(row: Mapping[str, Any]) -> CreateCase:
    return CreateCase(**_common(row, "expect"), expect=tuple(row["expect"]))


def _game_case(row: Mapping[str, Any]) -> GameCase:
    own = {key for key in row if key in GAME_KEYS}
    return GameCase(
        **_common(row, "expect", *own), game=_little_game({key: row[key] for key in own}), expect=row["expect"]
    )


GAME_KEYS: Final = {"players", "position", "river", "discarded", "shuffles", "actions"}


def _little_game(row: Mapping[str, Any]) -> LittleGame:
    texts: dict[str, Any] = dict(row)
    if "river" in texts:
        texts["river"] = parse_faces(texts["river"])
    if "position" in texts:
        texts["position"] = parse_position(texts["position"])
    texts["discarded"] = tuple(texts.get("discarded", ()))
    texts["shuffles"] = tuple(map(parse_faces, texts.get("shuffles", ())))
    texts["actions"] = tuple(map(_act, texts["actions"]))
    return LittleGame(**texts)


def _act(row: Mapping[str, Any]) -> Act:
    parsers: dict[str, Callable[[str], Any]] = {"table": parse_table, "hand": parse_hand}
    texts: dict[str, Any] = {key: parsers[key](value) if key in parsers else value for key, value in row.items()}
    return Act(**texts)


def _contrast(row: Mapping[str, Any]) -> Contrast:
    common = ("id", "option", "note", "ruleset", "kind", "expect")
    own = {key: value for key, value in row.items() if key not in common}
    answers = {value: answer if isinstance(answer, dict) else tuple(answer) for value, answer in row["expect"].items()}
    return Contrast(
        id=row["id"],
        option=row["option"],
        note=row["note"],
        ruleset=row.get("ruleset", {}),
        question=_question(row["kind"], own),
        answers=answers,
    )


def _turn_question(row: Mapping[str, Any]) -> TurnQuestion:
    texts: dict[str, Any] = dict(row)
    for key in ("table_before", "table_after"):
        texts[key] = parse_melds(row[key])
    for key in {"rack", "river"} & row.keys():
        texts[key] = parse_faces(row[key])
    return TurnQuestion(**texts)


def _question(kind: str, row: Mapping[str, Any]) -> Question:
    match kind:
        case "meld":
            [text] = row.values()
            return parse_meld(text)
        case "turn":
            return _turn_question(row)
        case "hand":
            return HandQuestion(**_hand_texts(row))
        case "discard_turn":
            return DiscardTurnQuestion(**_discard_turn_texts(row))
        case "round_score":
            racks = tuple(map(parse_faces, row["racks"]))
            return RoundQuestion(racks=racks, **{key: tuple(value) for key, value in row.items() if key != "racks"})
        case "create":
            return Creation(**row)
        case "game":
            return _little_game(row)
        case _:
            raise ValueError(f"unknown kind: {kind}")


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
        **_common(row, "table", "racks", "pool", "passed_seats", "draft", "expect"),
        table=_table(row["table"]),
        racks=_racks(row["racks"]),
        pool=tuple(row["pool"]),
        passed_seats=tuple(row["passed_seats"]),
        draft=_table(row["draft"]) if "draft" in row else None,
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
    lists = {"tiles", "declared"}
    stated: dict[str, Any] = {key: tuple(value) if key in lists else value for key, value in meld.items()}
    return MeldText(**stated)


def _table(melds: list[Mapping[str, Any]]) -> tuple[MeldText, ...]:
    return tuple(map(_meld, melds))


def _racks(racks: list[Mapping[str, Any]]) -> tuple[SeatRack, ...]:
    return tuple(SeatRack(**{**rack, "rack": tuple(rack["rack"])}) for rack in racks)


def _breaches(violations: Iterable[Mapping[str, Any]]) -> tuple[Breach, ...]:
    return tuple(map(_breach, violations))


def _breach(violation: Mapping[str, Any]) -> Breach:
    lists = {"tiles", "suggested_order"}
    stated: dict[str, Any] = {key: tuple(value) if key in lists else value for key, value in violation.items()}
    return Breach(**stated)
