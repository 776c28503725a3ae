"""Reasons of refusals and violations, under the names of the contract's enum ErrorReason."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from engine.tiles import Tile


class Reason(Enum):
    """The reason of a refusal or a violation. The comments of ErrorReason define each."""

    # Rulesets
    OPTION_VALUE_INVALID = auto()
    OPTIONS_CONFLICT = auto()
    INSUFFICIENT_TILES = auto()
    # Games
    PLAYER_ALREADY_JOINED = auto()
    GAME_FULL = auto()
    TOO_FEW_PLAYERS = auto()
    GAME_ALREADY_STARTED = auto()
    GAME_NOT_STARTED = auto()
    ROUND_IN_PROGRESS = auto()
    ROUND_OVER = auto()
    GAME_OVER = auto()
    PLAYER_RESIGNED = auto()
    PLAYER_NOT_ABSENT = auto()
    REDEAL_NOT_ALLOWED = auto()
    NOT_THE_HOST = auto()
    PLAYERS_NOT_READY = auto()
    SEAT_TAKEN = auto()
    PLAYER_NOT_IN_GAME = auto()
    GAME_NOT_ABORTABLE = auto()
    GAME_NOT_OVER = auto()
    TOO_MANY_CHANGES = auto()
    BOTS_NOT_ALLOWED = auto()
    # Turns
    NOT_YOUR_TURN = auto()
    TURN_TIMED_OUT = auto()
    ACTION_NOT_IN_GAME = auto()
    POOL_EMPTY = auto()
    PASS_NOT_ALLOWED_POOL_NOT_EMPTY = auto()
    TURN_PHASE_WRONG = auto()
    RIVER_CHOICE_PENDING = auto()
    RIVER_DISCARD_NOT_DRAWN = auto()
    DRAW_NOT_ALLOWED_PLAY_EXISTS = auto()
    PASS_NOT_ALLOWED_PLAY_EXISTS = auto()
    NOTHING_TO_CLAIM = auto()
    CLAIM_NOT_UNANIMOUS = auto()
    CLAIM_OWN_PLAY = auto()
    CLAIM_ALREADY_VOTED = auto()
    TABLE_LAYOUT_MISMATCH = auto()
    KNOCK_TOO_MANY_POINTS = auto()
    KNOCK_NOT_IN_GAME = auto()
    # Violations: conservation of tiles
    TILE_UNKNOWN = auto()
    JOKER_TO_RACK = auto()
    TABLE_TILE_MISSING = auto()
    TILE_DUPLICATED = auto()
    TILE_NOT_IN_RACK = auto()
    NO_RACK_TILE_PLAYED = auto()
    # Violations: melds
    MELD_EMPTY = auto()
    MELD_TOO_SHORT = auto()
    MELD_ALL_JOKERS = auto()
    JOKERS_TOO_MANY = auto()
    JOKERS_ADJACENT = auto()
    MELD_KIND_AMBIGUOUS = auto()
    MELD_KIND_MISMATCH = auto()
    GROUP_VALUE_MISMATCH = auto()
    GROUP_COLOR_REPEAT = auto()
    GROUP_TOO_LARGE = auto()
    RUN_COLOR_MIX = auto()
    RUN_WRAP = auto()
    RUN_DUPLICATE_VALUE = auto()
    RUN_NOT_ASCENDING = auto()
    RUN_GAP = auto()
    RUN_JOKER_OUT_OF_RANGE = auto()
    MELD_NOT_GROUP_NOR_RUN = auto()
    RUN_TOO_LONG = auto()
    JOKER_LEADS_MELD = auto()
    JOKER_DECLARATION_REQUIRED = auto()
    JOKER_DECLARATION_MISMATCH = auto()
    COLOR_CHANGE_INVALID = auto()
    MIRROR_HALF_TOO_SHORT = auto()
    MIRROR_NOT_SYMMETRIC = auto()
    # Violations: the initial meld
    JOKER_RETRIEVAL_BEFORE_INITIAL_MELD = auto()
    INITIAL_MELD_TABLE_MODIFIED = auto()
    INITIAL_MELD_HAS_JOKER = auto()
    INITIAL_MELD_SINGLE_MELD_REQUIRED = auto()
    INITIAL_MELD_KIND_REQUIRED = auto()
    INITIAL_MELD_NO_MELD_REACHES_THRESHOLD = auto()
    INITIAL_MELD_BELOW_THRESHOLD = auto()
    # Violations: melds and jokers of the table
    TURN_TOO_COMPLEX = auto()
    TABLE_MELD_CHANGED = auto()
    TABLE_MELD_DISSOLVED = auto()
    JOKER_FACE_EXHAUSTED = auto()
    JOKER_RETRIEVAL_FORBIDDEN = auto()
    JOKER_NOT_REPLACED = auto()
    JOKER_MELD_LOCKED = auto()
    JOKER_REPLACEMENT_NOT_FROM_RACK = auto()
    JOKER_GROUP_NEEDS_BOTH_COLORS = auto()
    JOKER_RETURNED_TO_SAME_MELD = auto()
    JOKER_NOT_IN_NEW_MELD = auto()
    JOKER_REUSE_NEEDS_TWO_RACK_TILES = auto()
    JOKER_REUSE_NEEDS_RACK_ONLY = auto()
    # Violations: the cross layout
    COORDINATE_OUT_OF_RANGE = auto()
    CELL_OCCUPIED = auto()
    TABLE_TILE_MOVED = auto()
    CELL_ISOLATED = auto()
    LINE_INVALID = auto()
    CROSSING_JOKER_CONFLICT = auto()
    INITIAL_MELD_TOUCHES_TABLE = auto()
    # Violations: variants
    PLAY_AFTER_DRAW = auto()
    RIVER_EMPTY = auto()
    RIVER_INDEX_OUT_OF_RANGE = auto()
    RIVER_KEY_NOT_PLAYED = auto()
    RIVER_PLUNDER_PLAYED = auto()
    CONTRACT_VIOLATED = auto()
    RUMMIKUB_NOT_CALLED = auto()
    # Draw-and-discard games
    NO_DISCARD_TO_TAKE = auto()
    INDICATOR_NOT_SHOWABLE = auto()
    INDICATOR_TWIN_NOT_HELD = auto()
    TRUMP_NOT_TAKEABLE = auto()
    FINISH_INVALID = auto()
    NOT_OPENED = auto()
    OPENING_MIXED = auto()
    OPENING_BELOW_THRESHOLD = auto()
    OPENING_PAIRS_TOO_FEW = auto()
    OKEY_TAKEN_BEFORE_OPENING = auto()
    OPENED_WITH_PAIRS = auto()
    PAIRS_NOT_OPENED = auto()
    TAKEN_TILE_NOT_USED = auto()
    TOO_MANY_TILES_LAID = auto()
    FINISH_NEEDS_DISCARD = auto()
    FOOT_NEEDS_OPEN_PLAYER = auto()
    FOOT_NEEDS_LAY_OFF = auto()
    HAND_NOT_MATCHED = auto()
    WILD_NOT_LAID = auto()
    CONCEALED_AFTER_OPENING = auto()


class Violation(NamedTuple):
    """One breach of the rules.

    Attributes:
        reason: The reason.
        subject: The path of the invalid part: `table_after[3]`, `rack`, or `` for the game as a whole.
        tiles: The tiles concerned, if any.
        metadata: Numbers of the reason, by the keys that the contract documents.
        suggested_order: An order in which the same tiles form a meld, if only their order is wrong.
    """

    reason: Reason
    subject: str = ""
    tiles: tuple[Tile, ...] = ()
    metadata: tuple[tuple[str, int], ...] = ()
    suggested_order: tuple[Tile, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """The refusal of an action, with one or more violations in a fixed order."""

    violations: tuple[Violation, ...]

    @property
    def reason(self) -> Reason:
        """The reason of the first violation."""
        return self.violations[0].reason


def refused(reason: Reason, **metadata: int) -> Refused:
    """Returns a refusal for one reason that concerns the game as a whole."""
    return Refused((Violation(reason, metadata=tuple(metadata.items())),))
