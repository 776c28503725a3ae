"""The text form of tiles, melds, racks, tables, plays and whole positions, both ways; and of violations.

```
tile      R7 B13 K1 O4 J           red, blue, blacK, orange (Y too on input), joker; the copy letter of R7a is dropped
meld      [R3 R4 R5]  run[J J R5]  the kind where it is stated or needed
rack      {R2 B5 J}
table     [R3 R4 R5] | [B6 K6 O6]  or . for an empty one
play      table + rack -> table ; rack
position  table / 1*{R2 B5} 2{K1 J} / {R7 O8} / 1    table, racks by seat (* has melded), pool in order, whose turn
```
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from engine.game import Rack, Round
from engine.melds import Meld, MeldKind, ProposedMeld
from engine.tiles import JOKER, Color, Tile, color_of, in_order, tile, value_of
from engine.violations import Reason, Violation

EMPTY_TABLE: Final = "."

_TILE: Final = re.compile(r"(?:([RBKOY])(1[0-3]|[1-9])|J)[a-h]?")
_MELD: Final = re.compile(r"(run|group)?\[([^\[\]]*)\]")
_RACK: Final = re.compile(r"\{([^{}]*)\}")
_SEAT_RACK: Final = re.compile(r"([1-9])(\*?)(\{[^{}]*\})")


class NotationError(ValueError):
    """Text that is not of the notation; the message quotes the part and says what was expected."""


@dataclass(frozen=True, slots=True)
class Position:
    """A round at one moment: what FEN is to a chess game."""

    table: tuple[ProposedMeld, ...]
    racks: tuple[Rack, ...]
    pool: tuple[Tile, ...]
    turn_seat: int


def position_of(round_: Round) -> Position:
    """The position of a round."""
    table = tuple(ProposedMeld(meld.tiles, meld.kind) for meld in round_.table)
    return Position(table, round_.racks, round_.pool, round_.turn.seat)


def format_tile(t: Tile) -> str:
    """`R7`, `J`."""
    return "J" if t == JOKER else f"{color_of(t).value}{value_of(t)}"


def parse_tile(text: str) -> Tile:
    """The tile of `R7`, `R7a`, `Y7` or `J`. Raises NotationError."""
    match = _TILE.fullmatch(text)
    if not match:
        raise NotationError(f"{text!r} is not a tile: expected a color R, B, K or O with a value 1 to 13, or J")
    letter, value = match.groups()
    return tile(Color("O" if letter == "Y" else letter), int(value)) if letter else JOKER


def format_tiles(tiles: Iterable[Tile]) -> str:
    """`R7 B7 K7`."""
    return " ".join(map(format_tile, tiles))


def parse_tiles(text: str) -> tuple[Tile, ...]:
    """The tiles of `R7 B7 K7`, in order. Raises NotationError."""
    return tuple(map(parse_tile, text.split()))


def format_meld(meld: ProposedMeld | Meld) -> str:
    """`[R3 R4 R5]`; with the kind in front where one numbered tile and jokers leave it open."""
    naturals = sum(t != JOKER for t in meld.tiles)
    kind = meld.kind.name.lower() if meld.kind and naturals <= 1 else ""
    return f"{kind}[{format_tiles(meld.tiles)}]"


def parse_meld(text: str) -> ProposedMeld:
    """The meld of `[R3 R4 R5]` or `run[J J R5]`. Raises NotationError."""
    match = _MELD.fullmatch(text.strip())
    if not match:
        raise NotationError(f"{text.strip()!r} is not a meld: expected [tiles], run[tiles] or group[tiles]")
    kind, tiles = match.groups()
    return ProposedMeld(parse_tiles(tiles), MeldKind[kind.upper()] if kind else None)


def format_table(table: Iterable[ProposedMeld | Meld]) -> str:
    """`[R3 R4 R5] | [B6 K6 O6]`, or `.` when empty."""
    return " | ".join(map(format_meld, table)) or EMPTY_TABLE


def parse_table(text: str) -> tuple[ProposedMeld, ...]:
    """The melds of a table. Raises NotationError."""
    text = text.strip()
    return () if text in {"", EMPTY_TABLE} else tuple(map(parse_meld, text.split("|")))


def format_rack(tiles: Iterable[Tile]) -> str:
    """`{R2 B5 J}`."""
    return f"{{{format_tiles(tiles)}}}"


def parse_rack(text: str) -> tuple[Tile, ...]:
    """The tiles of a rack in ascending order. Raises NotationError."""
    match = _RACK.fullmatch(text.strip())
    if not match:
        raise NotationError(f"{text.strip()!r} is not a rack: expected {{tiles}}")
    return in_order(parse_tiles(match.group(1)))


@dataclass(frozen=True, slots=True)
class PlayText:
    """A play as its text has it: table and rack before and after."""

    table_before: tuple[ProposedMeld, ...]
    rack_before: tuple[Tile, ...]
    table_after: tuple[ProposedMeld, ...]
    rack_after: tuple[Tile, ...]


def format_play(play: PlayText) -> str:
    """`table + rack -> table ; rack`."""
    before = f"{format_table(play.table_before)} + {format_rack(play.rack_before)}"
    return f"{before} -> {format_table(play.table_after)} ; {format_rack(play.rack_after)}"


def parse_play(text: str) -> PlayText:
    """The play of `table + rack -> table ; rack`. Raises NotationError."""
    match = re.fullmatch(r"([^+]*)\+([^>]*)->([^;]*);(.*)", text)
    if not match:
        raise NotationError(f"{text!r} is not a play: expected table + rack -> table ; rack")
    table_before, rack_before, table_after, rack_after = match.groups()
    return PlayText(
        parse_table(table_before), parse_rack(rack_before), parse_table(table_after), parse_rack(rack_after)
    )


def format_position(position: Position) -> str:
    """`table / racks / pool / seat`."""
    racks = " ".join(f"{rack.seat}{'*' * rack.has_melded}{format_rack(rack.tiles)}" for rack in position.racks)
    return f"{format_table(position.table)} / {racks} / {format_rack(position.pool)} / {position.turn_seat}"


def parse_position(text: str) -> Position:
    """The position of `table / racks / pool / seat`. Raises NotationError."""
    parts = text.split("/")
    if len(parts) != 4:
        raise NotationError(f"{text!r} is not a position: expected table / racks / pool / seat")
    table, racks, pool, seat = parts
    pool_match = _RACK.fullmatch(pool.strip())
    if not pool_match:
        raise NotationError(f"{pool.strip()!r} is not a pool: expected {{tiles}}")
    return Position(parse_table(table), _parse_racks(racks), parse_tiles(pool_match.group(1)), _parse_seat(seat))


def _parse_racks(text: str) -> tuple[Rack, ...]:
    left = _SEAT_RACK.sub("", text).strip()
    if left:
        raise NotationError(f"{left!r} is not a rack with its seat: expected 1{{tiles}} or 1*{{tiles}}")
    return tuple(Rack(int(seat), parse_rack(rack), bool(melded)) for seat, melded, rack in _SEAT_RACK.findall(text))


def _parse_seat(text: str) -> int:
    if not re.fullmatch(r"[1-9]", text.strip()):
        raise NotationError(f"{text.strip()!r} is not a seat: expected 1 to 9")
    return int(text)


DESCRIPTIONS: Final = {
    Reason.OPTION_VALUE_INVALID: "the option's number is out of its range",
    Reason.OPTIONS_CONFLICT: "the options contradict each other",
    Reason.VARIANT_NOT_SUPPORTED: "this server does not implement the option's value yet",
    Reason.PLAYER_ALREADY_JOINED: "a player of this name has a seat in the game",
    Reason.GAME_FULL: "all {players_max} seats are taken",
    Reason.TOO_FEW_PLAYERS: "{players} of at least {players_min} players have joined",
    Reason.GAME_ALREADY_STARTED: "the game has left the lobby",
    Reason.GAME_NOT_STARTED: "the game is in the lobby: start it with StartGame",
    Reason.ROUND_IN_PROGRESS: "a round is being played",
    Reason.ROUND_OVER: "the round is over: start the next one with StartNextRound",
    Reason.GAME_OVER: "the game has ended",
    Reason.PLAYER_RESIGNED: "the player has resigned from the game",
    Reason.NOT_YOUR_TURN: "seat {seat} has the turn",
    Reason.TURN_TIMED_OUT: "the turn's deadline has passed",
    Reason.POOL_EMPTY: "the pool is empty: play or pass",
    Reason.PASS_NOT_ALLOWED_POOL_NOT_EMPTY: "the pool has tiles: play or draw",
    Reason.TILE_UNKNOWN: "the game has no such tile",
    Reason.JOKER_TO_RACK: "a joker of the table is missing",
    Reason.TABLE_TILE_MISSING: "tiles of the table are missing",
    Reason.TILE_DUPLICATED: "tiles are used more often than the player or the tile set has them",
    Reason.TILE_NOT_IN_RACK: "tiles are neither on the table nor on the player's rack",
    Reason.NO_RACK_TILE_PLAYED: "no tile of the rack is played",
    Reason.SET_EMPTY: "the meld has no tiles",
    Reason.SET_TOO_SHORT: "a meld has at least three tiles",
    Reason.SET_ALL_JOKERS: "a meld needs a numbered tile",
    Reason.JOKERS_TOO_MANY: "the meld has more jokers than the ruleset allows",
    Reason.JOKERS_ADJACENT: "two jokers lie side by side in a run",
    Reason.SET_KIND_AMBIGUOUS: "the tiles form a run and a group: state the kind",
    Reason.SET_KIND_MISMATCH: "the tiles form a meld, but not of the stated kind",
    Reason.GROUP_VALUE_MISMATCH: "the tiles of a group have one value",
    Reason.GROUP_COLOR_REPEAT: "the tiles of a group have different colors",
    Reason.GROUP_TOO_LARGE: "a group has at most one tile of each color",
    Reason.RUN_COLOR_MIX: "the tiles of a run have one color",
    Reason.RUN_WRAP: "1 does not follow 13",
    Reason.RUN_DUPLICATE_VALUE: "a value occurs twice in a run",
    Reason.RUN_NOT_ASCENDING: "the values of a run rise from left to right",
    Reason.RUN_GAP: "the values of a run rise by exactly one",
    Reason.RUN_JOKER_OUT_OF_RANGE: "a joker would stand for a value below 1 or above 13",
    Reason.SET_NOT_GROUP_NOR_RUN: "the tiles form neither a group nor a run",
    Reason.JOKER_RETRIEVAL_BEFORE_INITIAL_MELD: "a joker left its meld before the player's initial meld",
    Reason.INITIAL_MELD_TABLE_MODIFIED: "a meld of the table was changed in the turn of the initial meld",
    Reason.INITIAL_MELD_JOKER_FORBIDDEN: "the initial meld may not have a joker",
    Reason.INITIAL_MELD_SINGLE_SET_REQUIRED: "the initial meld is one meld",
    Reason.INITIAL_MELD_NO_SET_REACHES_THRESHOLD: "one meld must reach {threshold} points alone; the best has {best}",
    Reason.INITIAL_MELD_BELOW_THRESHOLD: "the initial meld has {total} points, {threshold} are the threshold",
    Reason.INSUFFICIENT_TILES: "the tile set is too small for the hands",
    Reason.REDEAL_NOT_ALLOWED: "there is no right to a new deal",
    Reason.TURN_PHASE_WRONG: "the action does not fit what was done in this turn",
    Reason.RIVER_CHOICE_PENDING: "two tiles were drawn: first lay one of them on the River",
    Reason.RIVER_DISCARD_NOT_DRAWN: "the tile for the River is not one of the two just drawn",
    Reason.DRAW_NOT_ALLOWED_PLAY_EXISTS: "a play exists, and drawing is only for who has none",
    Reason.PASS_NOT_ALLOWED_PLAY_EXISTS: "a play exists, and passing is only for who has none",
    Reason.NOTHING_TO_CLAIM: "no illegal play of that revision is shown",
    Reason.CLAIM_NOT_UNANIMOUS: "a player has voted against the claim",
    Reason.CLAIM_OWN_PLAY: "the error is for the other players to claim",
    Reason.CLAIM_ALREADY_VOTED: "the player has voted on this claim",
    Reason.RUN_TOO_LONG: "a run has at most 13 tiles",
    Reason.JOKER_LEADS_SET: "the meld begins with a joker",
    Reason.JOKER_DECLARATION_REQUIRED: "what the jokers stand for must be declared",
    Reason.JOKER_DECLARATION_MISMATCH: "a joker cannot stand for what is declared",
    Reason.INITIAL_MELD_KIND_REQUIRED: "the initial meld needs a run",
    Reason.TABLE_MELD_CHANGED: "a meld of the table may only grow",
    Reason.TABLE_MELD_DISSOLVED: "a meld of the table may not be dissolved",
    Reason.JOKER_FACE_EXHAUSTED: "all copies of what the joker would stand for lie on the table",
    Reason.JOKER_RETRIEVAL_FORBIDDEN: "a joker may not leave its meld",
    Reason.JOKER_NOT_REPLACED: "a joker left its meld and no tile replaces it",
    Reason.JOKER_SET_LOCKED: "a meld with a joker may only grow until the joker is replaced",
    Reason.JOKER_REPLACEMENT_NOT_FROM_RACK: "only a tile of the rack may replace the joker",
    Reason.JOKER_GROUP_NEEDS_BOTH_COLORS: "tiles of both missing colors must replace the joker",
    Reason.JOKER_RETURNED_TO_SAME_SET: "a retrieved joker may not return to its meld",
    Reason.JOKER_NOT_IN_NEW_SET: "a retrieved joker must be used for a new meld",
    Reason.JOKER_REUSE_NEEDS_TWO_RACK_TILES: "the new meld of a retrieved joker needs two tiles of the rack",
    Reason.JOKER_REUSE_NEEDS_RACK_ONLY: "the new meld of a retrieved joker takes tiles of the rack alone",
    Reason.PLAY_AFTER_DRAW: "the tile just drawn may not be played in this turn",
    Reason.RIVER_EMPTY: "the River is empty",
    Reason.RIVER_INDEX_OUT_OF_RANGE: "the River has {count} tiles, none at index {index}",
    Reason.RIVER_KEY_NOT_PLAYED: "the oldest tile pulled from the River must be played",
    Reason.RIVER_PLUNDER_PLAYED: "the other tiles pulled from the River may not be played in this turn",
    Reason.CONTRACT_VIOLATED: "a meld with a tile played is not what the contract demands",
    Reason.RUMMIKUB_NOT_CALLED: "the last tiles are played without the call",
}
"""One sentence for each reason, with the violation's metadata in it."""


def describe(violation: Violation) -> str:
    """A violation as one sentence in English, with its tiles."""
    text = DESCRIPTIONS[violation.reason].format(**dict(violation.metadata))
    tiles = f": {format_tiles(violation.tiles)}" if violation.tiles else ""
    order = f"; as a run: {format_tiles(violation.suggested_order)}" if violation.suggested_order else ""
    return text + tiles + order
