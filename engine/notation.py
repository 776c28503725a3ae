"""The text form of tiles, melds, racks, tables, plays and whole positions, both ways; and of violations.

```
tile      R7 B13 K1 O4 G2 P9 J     red, blue, blacK, orange (Y too on input), green, purple; joker
meld      [R3 R4 R5]  run[J J R5]  the kind where it is stated or needed
          group[R5 J=B5 J=K5]      with what the jokers stand for, where it is declared: of all or of none
rack      {R2 B5 J}
table     [R3 R4 R5] | [B6 K6 O6]  or . for an empty one
play      table + rack -> table ; rack
position  table / 1*{R2 B5} 2{K1 J} / {R7 O8} / 1    table, racks by seat (* has melded), pool in order, whose turn
```

The game with playing cards is the same game with other names (`Naming.CARDS`): a card is a rank A, 2 to 10, J, Q or K
and a suit, H (hearts) for red, D (diamonds) for orange, C (clubs) for blue, S (spades) for black; the joker is `*`, as
J is the jack. There are no cards for green and purple. `[R10 J=R11 R12]` is `[10H *=JH QH]`.

A letter a to h behind a tile or card, which tells physical copies apart elsewhere (`R7a`), is read and dropped.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from engine.game import Rack, Round
from engine.melds import Meld, MeldKind, ProposedMeld, as_proposed
from engine.ruleset import SABRA, Ruleset
from engine.tiles import COLORS, JOKER, MAX_VALUE, Color, Tile, in_order, tile
from engine.violations import Reason, Violation

EMPTY_TABLE: Final = "."

_MELD: Final = re.compile(r"(run|group)?\[([^\[\]]*)\]")
_RACK: Final = re.compile(r"\{([^{}]*)\}")
_SEAT_RACK: Final = re.compile(r"([1-9])(\*?)(\{[^{}]*\})")


class Naming(Enum):
    """What the pieces are called."""

    TILES = auto()
    CARDS = auto()


_SUITS: Final = {"H": Color.RED, "C": Color.BLUE, "S": Color.BLACK, "D": Color.ORANGE}
_RANKS: Final = ("A", *map(str, range(2, 11)), "J", "Q", "K")
_VALUES: Final = range(1, MAX_VALUE + 1)
_NAMES: Final = {
    Naming.TILES: {f"{color.value}{value}": tile(color, value) for color in COLORS for value in _VALUES} | {"J": JOKER},
    Naming.CARDS: {
        f"{rank}{suit}": tile(color, value)
        for suit, color in _SUITS.items()
        for value, rank in zip(_VALUES, _RANKS, strict=True)
    }
    | {"*": JOKER},
}
_NAME_OF: Final = {naming: {t: name for name, t in names.items()} for naming, names in _NAMES.items()}
_YELLOW: Final = {f"Y{value}": tile(Color.ORANGE, value) for value in _VALUES}
_READ: Final = {Naming.TILES: _NAMES[Naming.TILES] | _YELLOW, Naming.CARDS: _NAMES[Naming.CARDS]}
_EXPECTED: Final = {
    Naming.TILES: "a tile: expected a color R, B, K, O, G or P with a value 1 to 13, or J",
    Naming.CARDS: "a card: expected a rank A, 2 to 10, J, Q or K with a suit H, D, C or S, or *",
}


class NotationError(ValueError):
    """Text that is not of the notation; the message quotes the part and says what was expected."""


@dataclass(frozen=True, slots=True)
class Position:
    """A round at one moment: what FEN is to a chess game."""

    table: tuple[ProposedMeld, ...]
    racks: tuple[Rack, ...]
    pool: tuple[Tile, ...]
    turn_seat: int


def position_of(round_: Round, ruleset: Ruleset = SABRA) -> Position:
    """The position of a round that is played by a ruleset."""
    table = tuple(as_proposed(meld, ruleset) for meld in round_.table)
    return Position(table, round_.racks, round_.pool, round_.turn.seat)


def format_tile(t: Tile, naming: Naming = Naming.TILES) -> str:
    """`R7`, `J`; as cards `7H`, `*`. Raises NotationError where there is no such card."""
    name = _NAME_OF[naming].get(t)
    if name is None:
        raise NotationError(f"{format_tile(t)!r} has no card: there are none for green and purple")
    return name


def parse_tile(text: str, naming: Naming = Naming.TILES) -> Tile:
    """The tile of `R7`, `R7a`, `Y7` or `J`; as cards of `7H` or `*`. Raises NotationError."""
    found = _READ[naming].get(re.sub("[a-h]$", "", text))
    if found is None:
        raise NotationError(f"{text!r} is not {_EXPECTED[naming]}")
    return found


def format_card(t: Tile) -> str:
    """`7H`, `*`. Raises NotationError where there is no such card."""
    return format_tile(t, Naming.CARDS)


def parse_card(text: str) -> Tile:
    """The tile of `7H`, `AS` or `*`. Raises NotationError."""
    return parse_tile(text, Naming.CARDS)


def format_tiles(tiles: Iterable[Tile], naming: Naming = Naming.TILES) -> str:
    """`R7 B7 K7`."""
    return " ".join(format_tile(t, naming) for t in tiles)


def parse_tiles(text: str, naming: Naming = Naming.TILES) -> tuple[Tile, ...]:
    """The tiles of `R7 B7 K7`, in order. Raises NotationError."""
    return tuple(parse_tile(token, naming) for token in text.split())


def format_meld(meld: ProposedMeld | Meld, naming: Naming = Naming.TILES, ruleset: Ruleset = SABRA) -> str:
    """`[R3 R4 R5]`; with what jokers are declared to be, and with the kind in front where it is needed.

    The kind is needed where one numbered tile and jokers leave it open, or faces are declared. A Meld is written
    so that it is read again as the same by the ruleset that it was read by.

    Raises:
        NotationError: There is no such card, or the declared faces are not as many as the jokers.
    """
    proposed = as_proposed(meld, ruleset) if isinstance(meld, Meld) else meld
    naturals = sum(t != JOKER for t in proposed.tiles)
    kind = proposed.kind.name.lower() if proposed.kind and (naturals <= 1 or proposed.declared) else ""
    return f"{kind}[{_format_declared(proposed, naming) if proposed.declared else format_tiles(meld.tiles, naming)}]"


def _format_declared(meld: ProposedMeld, naming: Naming) -> str:
    if len(meld.declared) != meld.tiles.count(JOKER):
        raise NotationError(f"{format_tiles(meld.declared)!r} cannot be written: not as many faces as jokers")
    faces = iter(meld.declared)
    joker = format_tile(JOKER, naming)
    tokens = (
        f"{joker}={format_tile(next(faces), naming)}" if t == JOKER else format_tile(t, naming) for t in meld.tiles
    )
    return " ".join(tokens)


def parse_meld(text: str, naming: Naming = Naming.TILES) -> ProposedMeld:
    """The meld of `[R3 R4 R5]`, `run[J J R5]` or `group[R5 J=B5 J=K5]`. Raises NotationError."""
    match = _MELD.fullmatch(text.strip())
    if not match:
        raise NotationError(f"{text.strip()!r} is not a meld: expected [tiles], run[tiles] or group[tiles]")
    kind, inner = match.groups()
    tokens = [_parse_token(token, naming) for token in inner.split()]
    tiles = tuple(t for t, _ in tokens)
    declared = tuple(face for _, face in tokens if face is not None)
    if declared and len(declared) < tiles.count(JOKER):
        raise NotationError(f"{text.strip()!r} declares some jokers: expected a face for each, or none")
    return ProposedMeld(tiles, MeldKind[kind.upper()] if kind else None, declared)


def _parse_token(token: str, naming: Naming) -> tuple[Tile, Tile | None]:
    """A tile, and the face that it is declared to be: `R7`, `J`, `J=R5`."""
    name, declares, face = token.partition("=")
    t = parse_tile(name, naming)
    if declares and t != JOKER:
        raise NotationError(f"{token!r} is not a joker with a face: only a joker stands for another tile")
    return t, parse_tile(face, naming) if declares else None


def format_table(table: Iterable[ProposedMeld | Meld], naming: Naming = Naming.TILES, ruleset: Ruleset = SABRA) -> str:
    """`[R3 R4 R5] | [B6 K6 O6]`, or `.` when empty. Raises NotationError like format_meld."""
    return " | ".join(format_meld(meld, naming, ruleset) for meld in table) or EMPTY_TABLE


def parse_table(text: str, naming: Naming = Naming.TILES) -> tuple[ProposedMeld, ...]:
    """The melds of a table. Raises NotationError."""
    text = text.strip()
    return () if text in {"", EMPTY_TABLE} else tuple(parse_meld(meld, naming) for meld in text.split("|"))


def format_rack(tiles: Iterable[Tile], naming: Naming = Naming.TILES) -> str:
    """`{R2 B5 J}`."""
    return f"{{{format_tiles(tiles, naming)}}}"


def parse_rack(text: str, naming: Naming = Naming.TILES) -> tuple[Tile, ...]:
    """The tiles of a rack in ascending order. Raises NotationError."""
    match = _RACK.fullmatch(text.strip())
    if not match:
        raise NotationError(f"{text.strip()!r} is not a rack: expected {{tiles}}")
    return in_order(parse_tiles(match.group(1), naming))


@dataclass(frozen=True, slots=True)
class PlayText:
    """A play as its text has it: table and rack before and after."""

    table_before: tuple[ProposedMeld, ...]
    rack_before: tuple[Tile, ...]
    table_after: tuple[ProposedMeld, ...]
    rack_after: tuple[Tile, ...]


def format_play(play: PlayText, naming: Naming = Naming.TILES) -> str:
    """`table + rack -> table ; rack`."""
    before = f"{format_table(play.table_before, naming)} + {format_rack(play.rack_before, naming)}"
    return f"{before} -> {format_table(play.table_after, naming)} ; {format_rack(play.rack_after, naming)}"


def parse_play(text: str, naming: Naming = Naming.TILES) -> PlayText:
    """The play of `table + rack -> table ; rack`. Raises NotationError."""
    match = re.fullmatch(r"([^+]*)\+([^>]*)->([^;]*);(.*)", text)
    if not match:
        raise NotationError(f"{text!r} is not a play: expected table + rack -> table ; rack")
    table_before, rack_before, table_after, rack_after = match.groups()
    return PlayText(
        parse_table(table_before, naming),
        parse_rack(rack_before, naming),
        parse_table(table_after, naming),
        parse_rack(rack_after, naming),
    )


def format_position(position: Position, naming: Naming = Naming.TILES) -> str:
    """`table / racks / pool / seat`."""
    racks = " ".join(f"{rack.seat}{'*' * rack.has_melded}{format_rack(rack.tiles, naming)}" for rack in position.racks)
    pool = format_rack(position.pool, naming)
    return f"{format_table(position.table, naming)} / {racks} / {pool} / {position.turn_seat}"


def parse_position(text: str, naming: Naming = Naming.TILES) -> Position:
    """The position of `table / racks / pool / seat`. Raises NotationError."""
    parts = text.split("/")
    if len(parts) != 4:
        raise NotationError(f"{text!r} is not a position: expected table / racks / pool / seat")
    table, racks, pool, seat = parts
    pool_match = _RACK.fullmatch(pool.strip())
    if not pool_match:
        raise NotationError(f"{pool.strip()!r} is not a pool: expected {{tiles}}")
    pool_tiles = parse_tiles(pool_match.group(1), naming)
    return Position(parse_table(table, naming), _parse_racks(racks, naming), pool_tiles, _parse_seat(seat))


def _parse_racks(text: str, naming: Naming) -> tuple[Rack, ...]:
    left = _SEAT_RACK.sub("", text).strip()
    if left:
        raise NotationError(f"{left!r} is not a rack with its seat: expected 1{{tiles}} or 1*{{tiles}}")
    racks = _SEAT_RACK.findall(text)
    return tuple(Rack(int(seat), parse_rack(rack, naming), bool(melded)) for seat, melded, rack in racks)


def _parse_seat(text: str) -> int:
    if not re.fullmatch(r"[1-9]", text.strip()):
        raise NotationError(f"{text.strip()!r} is not a seat: expected 1 to 9")
    return int(text)


DESCRIPTIONS: Final = {
    Reason.OPTION_VALUE_INVALID: "the option's number is out of its range",
    Reason.OPTIONS_CONFLICT: "the options contradict each other",
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
    Reason.RUN_WRAP: "a run does not go on like this after 13",
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
    Reason.TURN_TOO_COMPLEX: "the turn is too complex to be judged: change less of the table at once",
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
    order = f"; as a meld: {format_tiles(violation.suggested_order)}" if violation.suggested_order else ""
    return text + tiles + order
