"""Rule options as frozen values, and the named presets.

An option is a field of `Ruleset`, named as in docs/rules.md and in the contract. The values that this engine implements
are in `IMPLEMENTED` and `RANGES`; `problems` names every other one, so that none is ignored.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum, auto
from typing import Final

from engine.violations import Reason


class Preset(Enum):
    """A named set of option values."""

    SABRA = auto()


class StartDrawJoker(Enum):
    """What a joker drawn for the start means (R8)."""

    REDRAW = auto()
    LOWEST = auto()
    HIGHEST = auto()


class TurnDirection(Enum):
    """The order of turns around the table (R10)."""

    CLOCKWISE = auto()
    COUNTERCLOCKWISE = auto()


class RunWrap(Enum):
    """Whether a run may go on after 13 (R15)."""

    NONE = auto()
    ONE_HIGH = auto()
    CYCLIC = auto()


class JokersMaxPerSet(Enum):
    """How many jokers one meld may hold."""

    UNLIMITED_WITH_ONE_NATURAL = auto()
    ONE = auto()
    TWO = auto()
    NOT_MORE_THAN_NATURALS = auto()


class JokersAdjacent(Enum):
    """Whether two jokers may lie side by side in a run."""

    ALLOWED = auto()
    FORBIDDEN = auto()


class JokersDeclaration(Enum):
    """When a player must say what jokers stand for."""

    POSITIONAL = auto()
    EXPLICIT_WHEN_AMBIGUOUS = auto()
    EXPLICIT_WHEN_TWO = auto()
    ALWAYS_EXPLICIT = auto()


class InitialMeldComparison(Enum):
    """How the initial meld's total is compared with the threshold (R29)."""

    AT_LEAST = auto()
    GREATER_THAN = auto()


class InitialMeldSets(Enum):
    """How many melds the initial meld may have (R31)."""

    ONE_OR_MORE = auto()
    SINGLE_SET = auto()
    ONE_SET_REACHES_THRESHOLD = auto()


class InitialMeldJoker(Enum):
    """What a joker counts in the initial meld (R30)."""

    REPRESENTED_VALUE = auto()
    ZERO = auto()
    FORBIDDEN = auto()


class InitialMeldSameTurnTablePlay(Enum):
    """Whether the table may be played on in the turn of the initial meld (R34)."""

    FORBIDDEN = auto()
    ALLOWED = auto()


class TurnVoluntaryDraw(Enum):
    """Whether a player who could play may draw instead (R23)."""

    ALLOWED = auto()
    ONLY_IF_NO_PLAY = auto()


class TurnDraw(Enum):
    """What drawing is (R21)."""

    ONE = auto()
    TWO_RIVER = auto()
    UNTIL_PLAYABLE = auto()


class TurnTimeoutDirty(Enum):
    """What happens to a turn whose time runs out with an unfinished table (R55)."""

    REVERT_AND_DRAW_PENALTY = auto()
    REVERT_AND_DRAW_ONE = auto()
    COMMIT_IF_VALID_ELSE_REVERT = auto()


class TurnInvalidSubmission(Enum):
    """What happens when an illegal table is submitted."""

    REJECT = auto()
    PENALISE = auto()
    PENALISE_ON_UNANIMOUS_CLAIM = auto()


class JokerRetrievalMode(Enum):
    """How a joker leaves its meld (R46, R53)."""

    FREE = auto()
    REPLACE = auto()
    LOCKED = auto()
    NONE = auto()


class JokerRetrievalSource(Enum):
    """Where the tile that replaces a joker comes from (R46)."""

    RACK_OR_TABLE = auto()
    RACK_ONLY = auto()


class JokerRetrievalReuse(Enum):
    """What a retrieved joker must be used for (R50)."""

    ANY_SET = auto()
    NEW_SET = auto()
    NEW_SET_TWO_RACK_TILES = auto()
    NEW_SET_ALL_RACK = auto()


class JokerRetrievalSameSet(Enum):
    """Whether a retrieved joker may go back into its old meld."""

    ALLOWED = auto()
    FORBIDDEN = auto()


class JokerRetrievalGroupOfThree(Enum):
    """What replaces the joker of a group of three (R47)."""

    EITHER_COLOR = auto()
    BOTH_COLORS = auto()


class PoolEmptyMode(Enum):
    """What an empty pool means (R59)."""

    CONTINUE_UNTIL_STUCK = auto()
    ONE_LAST_CHANCE = auto()
    END_IMMEDIATELY = auto()


class PoolEmptyPass(Enum):
    """Whether a player may pass with an empty pool."""

    ALLOWED = auto()
    ONLY_IF_NO_PLAY = auto()


class PoolEmptyStuckTest(Enum):
    """When a round with an empty pool is blocked."""

    CONSECUTIVE_PASSES = auto()
    EXACT = auto()
    BOTH = auto()


class ScoreBlockedWinner(Enum):
    """Who wins a blocked round (R62)."""

    LOWEST_VALUE = auto()
    FEWEST_TILES = auto()


class ScoreBlockedPoints(Enum):
    """How a blocked round is scored (R63)."""

    DIFFERENCE = auto()
    NORMAL = auto()
    OWN_PLUS_DIFFERENCE = auto()


class ScoreNeverMelded(Enum):
    """What a loser pays who never melded."""

    NONE = auto()
    CREDIT_EVERY_OTHER_PLAYER = auto()
    FLAT_100 = auto()
    FLAT_100_OR_200 = auto()
    DOUBLE = auto()


class MatchEnd(Enum):
    """When a game ends (R64)."""

    SINGLE_ROUND = auto()
    FIXED_ROUNDS = auto()
    TARGET_SCORE = auto()
    ROUNDS_PER_PLAYER = auto()


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The rules of a game. The defaults are the preset SABRA; units and evidence are in the contract's Ruleset."""

    preset: Preset = Preset.SABRA
    geometry_jokers: int = 2
    players_min: int = 2
    players_max: int = 4
    start_draw_joker: StartDrawJoker = StartDrawJoker.REDRAW
    turn_direction: TurnDirection = TurnDirection.CLOCKWISE
    run_wrap: RunWrap = RunWrap.NONE
    jokers_max_per_set: JokersMaxPerSet = JokersMaxPerSet.UNLIMITED_WITH_ONE_NATURAL
    jokers_adjacent: JokersAdjacent = JokersAdjacent.ALLOWED
    jokers_declaration: JokersDeclaration = JokersDeclaration.POSITIONAL
    initial_meld_threshold: int = 30
    initial_meld_comparison: InitialMeldComparison = InitialMeldComparison.AT_LEAST
    initial_meld_sets: InitialMeldSets = InitialMeldSets.ONE_OR_MORE
    initial_meld_joker: InitialMeldJoker = InitialMeldJoker.REPRESENTED_VALUE
    initial_meld_same_turn_table_play: InitialMeldSameTurnTablePlay = InitialMeldSameTurnTablePlay.FORBIDDEN
    turn_voluntary_draw: TurnVoluntaryDraw = TurnVoluntaryDraw.ALLOWED
    turn_draw: TurnDraw = TurnDraw.ONE
    turn_time_limit_seconds: int = 120
    turn_timeout_dirty: TurnTimeoutDirty = TurnTimeoutDirty.REVERT_AND_DRAW_PENALTY
    turn_invalid_submission: TurnInvalidSubmission = TurnInvalidSubmission.REJECT
    joker_retrieval_mode: JokerRetrievalMode = JokerRetrievalMode.FREE
    joker_retrieval_source: JokerRetrievalSource = JokerRetrievalSource.RACK_OR_TABLE
    joker_retrieval_reuse: JokerRetrievalReuse = JokerRetrievalReuse.ANY_SET
    joker_retrieval_same_set: JokerRetrievalSameSet = JokerRetrievalSameSet.ALLOWED
    joker_retrieval_group_of_three: JokerRetrievalGroupOfThree = JokerRetrievalGroupOfThree.EITHER_COLOR
    pool_empty_mode: PoolEmptyMode = PoolEmptyMode.CONTINUE_UNTIL_STUCK
    pool_empty_pass: PoolEmptyPass = PoolEmptyPass.ALLOWED
    pool_empty_stuck_test: PoolEmptyStuckTest = PoolEmptyStuckTest.CONSECUTIVE_PASSES
    score_blocked_winner: ScoreBlockedWinner = ScoreBlockedWinner.LOWEST_VALUE
    score_blocked_points: ScoreBlockedPoints = ScoreBlockedPoints.DIFFERENCE
    score_joker_penalty: int = 30
    score_never_melded: ScoreNeverMelded = ScoreNeverMelded.NONE
    match_end: MatchEnd = MatchEnd.SINGLE_ROUND
    match_rounds: int = 1
    match_target_score: int = 200


HAND_SIZE: Final = 14
"""Tiles dealt to each player (R5)."""

PENALTY_TILES: Final = 3
"""Tiles drawn by a player whose time ran out (R55)."""

SABRA: Final = Ruleset()

PRESETS: Final = {Preset.SABRA: SABRA}

PRESET_SOURCES: Final = {
    Preset.SABRA: "Sabra as in the publishers' manuals and all five source articles; where they differ, the value that "
    "most of them give",
}

RANGES: Final = {
    "geometry_jokers": (0, 2, 4),
    "players_min": range(2, 5),
    "players_max": range(2, 5),
    "initial_meld_threshold": range(201),
    "turn_time_limit_seconds": range(86_401),
    "score_joker_penalty": range(101),
    "match_rounds": range(1, 101),
    "match_target_score": range(1, 10_001),
}
"""The numbers that an option may have."""

IMPLEMENTED: Final[dict[str, tuple[Enum, ...]]] = {
    "preset": tuple(Preset),
    "start_draw_joker": (StartDrawJoker.REDRAW,),
    "turn_direction": tuple(TurnDirection),
    "run_wrap": (RunWrap.NONE,),
    "jokers_max_per_set": tuple(JokersMaxPerSet),
    "jokers_adjacent": tuple(JokersAdjacent),
    "jokers_declaration": (JokersDeclaration.POSITIONAL, JokersDeclaration.EXPLICIT_WHEN_AMBIGUOUS),
    "initial_meld_comparison": tuple(InitialMeldComparison),
    "initial_meld_sets": tuple(InitialMeldSets),
    "initial_meld_joker": tuple(InitialMeldJoker),
    "initial_meld_same_turn_table_play": (InitialMeldSameTurnTablePlay.FORBIDDEN,),
    "turn_voluntary_draw": (TurnVoluntaryDraw.ALLOWED,),
    "turn_draw": (TurnDraw.ONE,),
    "turn_timeout_dirty": (TurnTimeoutDirty.REVERT_AND_DRAW_PENALTY,),
    "turn_invalid_submission": (TurnInvalidSubmission.REJECT,),
    "joker_retrieval_mode": (JokerRetrievalMode.FREE,),
    "joker_retrieval_source": (JokerRetrievalSource.RACK_OR_TABLE,),
    "joker_retrieval_reuse": (JokerRetrievalReuse.ANY_SET,),
    "joker_retrieval_same_set": (JokerRetrievalSameSet.ALLOWED,),
    "joker_retrieval_group_of_three": (JokerRetrievalGroupOfThree.EITHER_COLOR,),
    "pool_empty_mode": (PoolEmptyMode.CONTINUE_UNTIL_STUCK,),
    "pool_empty_pass": (PoolEmptyPass.ALLOWED,),
    "pool_empty_stuck_test": (PoolEmptyStuckTest.CONSECUTIVE_PASSES,),
    "score_blocked_winner": tuple(ScoreBlockedWinner),
    "score_blocked_points": (ScoreBlockedPoints.DIFFERENCE, ScoreBlockedPoints.NORMAL),
    "score_never_melded": (ScoreNeverMelded.NONE,),
    "match_end": tuple(MatchEnd),
}
"""The values of each option that this engine knows how to play."""


@dataclass(frozen=True, slots=True)
class OptionProblem:
    """Why a ruleset cannot be played: OPTION_VALUE_INVALID, OPTIONS_CONFLICT or VARIANT_NOT_SUPPORTED.

    Attributes:
        reason: Which of the three.
        options: The fields concerned: one, or the two that conflict.
        value: The first field's value as text.
    """

    reason: Reason
    options: tuple[str, ...]
    value: str


CONFLICTS: Final[tuple[tuple[str, str, Callable[[Ruleset], bool]], ...]] = (
    ("players_min", "players_max", lambda r: r.players_min > r.players_max),
    (
        "match_rounds",
        "match_end",
        lambda r: r.match_rounds != SABRA.match_rounds and r.match_end is not MatchEnd.FIXED_ROUNDS,
    ),
    (
        "match_target_score",
        "match_end",
        lambda r: r.match_target_score != SABRA.match_target_score and r.match_end is not MatchEnd.TARGET_SCORE,
    ),
)
"""Pairs of options, and when they contradict each other."""


def problems(ruleset: Ruleset) -> tuple[OptionProblem, ...]:
    """Everything that keeps a ruleset from being played, in the order of its fields; conflicts last."""
    found = []
    for option in (field.name for field in fields(Ruleset)):
        value = getattr(ruleset, option)
        if isinstance(value, Enum):
            if value not in IMPLEMENTED[option]:
                found.append(OptionProblem(Reason.VARIANT_NOT_SUPPORTED, (option,), value.name))
        elif value not in RANGES[option]:
            found.append(OptionProblem(Reason.OPTION_VALUE_INVALID, (option,), str(value)))
    for first, second, contradict in CONFLICTS:
        if contradict(ruleset):
            found.append(OptionProblem(Reason.OPTIONS_CONFLICT, (first, second), str(getattr(ruleset, first))))
    return tuple(found)
