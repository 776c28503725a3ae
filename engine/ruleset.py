"""Rule options as frozen values, and the named presets.

An option is a field of `Ruleset`, named as in docs/options.md and in the contract. `problems` names what makes a
ruleset meaningless, so that nothing is ignored.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from engine.fast.identity_cache import identity_cache
from engine.tiles import JOKER, MAX_VALUE, Tile, is_natural
from engine.violations import Reason

PAIRS_PLAYERS: Final = 4
"""Players of a game in pairs."""


class Preset(Enum):
    """A named set of option values."""

    SABRA = auto()
    INTL_OFFICIAL = auto()
    JUMBO_DE = auto()
    WIKI_EN = auto()
    GUIDE_A = auto()
    GUIDE_B = auto()
    WIKI_FR = auto()
    ES = auto()
    GUIDE_4 = auto()
    BOOK_1978 = auto()
    MSO_2019 = auto()
    VATIKAN = auto()
    MACHIAVELLI = auto()
    CARDS = auto()
    SIX_PLAYERS = auto()


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
    NEW_SET_IF_REPLACED = auto()


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


class DealOrder(Enum):
    """Whether the start is drawn for before or after the deal (R7)."""

    START_DRAW_FIRST = auto()
    DEAL_FIRST = auto()


class DealThreePairsReshuffle(Enum):
    """Whether three pairs of identical tiles give a right to a new deal."""

    OFF = auto()
    ON_REQUEST = auto()


class StartDrawTile(Enum):
    """Where the tiles drawn for the start go (R9)."""

    RETURN = auto()
    KEEP = auto()


class StartDrawTie(Enum):
    """What a tie for the highest tile means (R7)."""

    REDRAW_TIED = auto()
    REDRAW_ALL = auto()
    SEAT_ORDER = auto()


class StartDrawDetermines(Enum):
    """What the start draw decides (R7)."""

    STARTER_ONLY = auto()
    FULL_ORDER = auto()


class StartPlayer(Enum):
    """Who starts the first round (R7)."""

    HIGHEST_DRAW = auto()
    RANDOM = auto()
    FIXED_SEAT = auto()


class StartPlayerNextRounds(Enum):
    """Who starts the later rounds."""

    HIGHEST_DRAW = auto()
    ROTATE = auto()
    PREVIOUS_WINNER = auto()
    PREVIOUS_LOSER = auto()


class Teams(Enum):
    """Who scores together."""

    NONE = auto()
    PAIRS = auto()


class SetOrder(Enum):
    """Whether the order of a run's tiles is what the player claims."""

    STRICT = auto()
    CANONICALISE = auto()


class InitialMeldRequiredKind(Enum):
    """What the initial meld must have."""

    ANY = auto()
    RUN = auto()


class TurnPlayAfterDraw(Enum):
    """Whether a player may play after drawing (R22, R25)."""

    FORBIDDEN = auto()
    OTHER_TILES = auto()
    ALLOWED = auto()


class TurnTimeoutClean(Enum):
    """What happens to a turn whose time runs out with the table untouched, as SaveDraft told."""

    DRAW_ONE = auto()
    DRAW_PENALTY = auto()
    PASS = auto()


class Manipulation(Enum):
    """How the melds of the table may be changed (R40 to R44)."""

    FREE = auto()
    PRIMITIVES_ONLY = auto()
    NONE = auto()


class PoolEmptyLastChanceStart(Enum):
    """Who has the first of the last turns."""

    DRAWER_FIRST = auto()
    NEXT_PLAYER_FIRST = auto()


class ScoreBlockedTie(Enum):
    """Who wins a blocked round that is tied."""

    OTHER_METRIC_THEN_SHARE = auto()
    SHARE = auto()
    TURN_ORDER = auto()


class WinCall(Enum):
    """Whether the winner must call out (R58)."""

    AUTOMATIC = auto()
    REQUIRED = auto()


class ScoreWinner(Enum):
    """What the winner of a round wins (R60)."""

    SUM_OF_LOSERS = auto()
    SUM_OF_LOSERS_LOSERS_ZERO = auto()
    ONE_WIN = auto()


class MatchWinner(Enum):
    """Who wins a game of several rounds."""

    HIGHEST_TOTAL = auto()
    MOST_ROUND_WINS_THEN_TOTAL = auto()
    LOWEST_TOTAL = auto()


class Contract(Enum):
    """What every meld with a tile played must be."""

    NONE = auto()
    VALUES_BELOW_10 = auto()
    SINGLE_COLOR = auto()
    SUM_AT_MOST_41 = auto()


class Hints(Enum):
    """What a seat of a running game may ask AnalysisService about its own position, each value more than the last."""

    NONE = auto()
    PLAY_EXISTS = auto()
    TILES = auto()
    TURN = auto()


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
    geometry_colors: int = 4
    geometry_copies: int = 2
    geometry_jokers_per_player: int = 0
    deal_hand_size: int = 14
    deal_order: DealOrder = DealOrder.START_DRAW_FIRST
    deal_three_pairs_reshuffle: DealThreePairsReshuffle = DealThreePairsReshuffle.OFF
    deal_fixed_jokers: int = 0
    start_draw_tile: StartDrawTile = StartDrawTile.RETURN
    start_draw_tie: StartDrawTie = StartDrawTie.REDRAW_TIED
    start_draw_determines: StartDrawDetermines = StartDrawDetermines.STARTER_ONLY
    start_player: StartPlayer = StartPlayer.HIGHEST_DRAW
    start_player_next_rounds: StartPlayerNextRounds = StartPlayerNextRounds.HIGHEST_DRAW
    teams: Teams = Teams.NONE
    set_order: SetOrder = SetOrder.STRICT
    jokers_may_lead: bool = True
    jokers_beyond_physical: bool = True
    initial_meld_required_kind: InitialMeldRequiredKind = InitialMeldRequiredKind.ANY
    initial_meld_voluntary_delay: bool = True
    turn_play_after_draw: TurnPlayAfterDraw = TurnPlayAfterDraw.FORBIDDEN
    turn_timeout_clean: TurnTimeoutClean = TurnTimeoutClean.DRAW_ONE
    penalty_tiles: int = 3
    manipulation: Manipulation = Manipulation.FREE
    joker_retrieval_end_of_run_free: bool = False
    pool_empty_last_chance_start: PoolEmptyLastChanceStart = PoolEmptyLastChanceStart.DRAWER_FIRST
    score_blocked_tie: ScoreBlockedTie = ScoreBlockedTie.OTHER_METRIC_THEN_SHARE
    win_call: WinCall = WinCall.AUTOMATIC
    score_winner: ScoreWinner = ScoreWinner.SUM_OF_LOSERS
    match_winner: MatchWinner = MatchWinner.HIGHEST_TOTAL
    contract: Contract = Contract.NONE
    contract_points: int = 0
    hints: Hints = Hints.TURN

    def __hash__(self) -> int:
        """Of a few options: of all it would take longer than to make what is looked up by it."""
        return hash((self.preset.value, self.players_max, self.initial_meld_threshold, self.turn_time_limit_seconds))

    def jokers(self, players: int) -> int:
        """Jokers in the tile set of so many players (geometry_jokers, geometry_jokers_per_player)."""
        return self.geometry_jokers + self.geometry_jokers_per_player * players

    def copies_of(self, tile: Tile) -> int:
        """How often the tile set has a tile, of whatever number of players; 0 of a tile that is not of the game."""
        if tile == JOKER:
            return self.jokers(self.players_max)
        return self.geometry_copies if is_natural(tile, self.geometry_colors) else 0


SABRA: Final = Ruleset()


def choose(preset: Ruleset, options: Mapping[str, object]) -> Ruleset:
    """A preset with some options chosen. joker_retrieval_same_set, if it is not, goes with a mode not its own."""
    chosen = dict(options)
    mode = chosen.get("joker_retrieval_mode", preset.joker_retrieval_mode)
    if mode is not preset.joker_retrieval_mode and "joker_retrieval_same_set" not in chosen:
        free = mode is JokerRetrievalMode.FREE
        chosen["joker_retrieval_same_set"] = JokerRetrievalSameSet.ALLOWED if free else JokerRetrievalSameSet.FORBIDDEN
    return replace(preset, **chosen)  # type: ignore[arg-type]


RANGES: Final[dict[str, Sequence[int]]] = {
    "geometry_colors": (4, 6),
    "geometry_copies": (2, 3),
    "geometry_jokers": (0, 2, 4),
    "geometry_jokers_per_player": range(2),
    "players_min": range(2, 7),
    "players_max": range(2, 7),
    "deal_hand_size": range(5, 22),
    "deal_fixed_jokers": range(2),
    "jokers_may_lead": (False, True),
    "jokers_beyond_physical": (False, True),
    "initial_meld_threshold": range(201),
    "initial_meld_voluntary_delay": (False, True),
    "turn_time_limit_seconds": range(86_401),
    "penalty_tiles": range(1, 15),
    "joker_retrieval_end_of_run_free": (False, True),
    "score_joker_penalty": range(101),
    "match_rounds": range(1, 101),
    "match_target_score": range(1, 10_001),
    "contract_points": range(1001),
}
"""The numbers that an option may have."""

NEEDS_ANALYSIS: Final[dict[str, tuple[object, ...]]] = {
    "initial_meld_voluntary_delay": (False,),
    "turn_voluntary_draw": (TurnVoluntaryDraw.ONLY_IF_NO_PLAY,),
    "turn_draw": (TurnDraw.UNTIL_PLAYABLE,),
    "pool_empty_pass": (PoolEmptyPass.ONLY_IF_NO_PLAY,),
    "pool_empty_stuck_test": (PoolEmptyStuckTest.EXACT, PoolEmptyStuckTest.BOTH),
    "score_never_melded": (ScoreNeverMelded.FLAT_100_OR_200,),
}
"""The values whose games ask the solver what could be played (analysis.py). They have no part in judging a turn."""


@dataclass(frozen=True, slots=True)
class OptionProblem:
    """Why a ruleset cannot be played.

    Attributes:
        reason: OPTION_VALUE_INVALID, OPTIONS_CONFLICT or INSUFFICIENT_TILES.
        options: The fields concerned: one, or the two that conflict.
        value: The first field's value as text.
    """

    reason: Reason
    options: tuple[str, ...]
    value: str


def _by_retrieval(ruleset: Ruleset) -> bool:
    return ruleset.joker_retrieval_mode in {JokerRetrievalMode.REPLACE, JokerRetrievalMode.LOCKED}


def _reuse_means_nothing(ruleset: Ruleset) -> bool:
    """Returns whether no joker is retrieved; for NEW_SET_IF_REPLACED, whether every retrieved joker was replaced."""
    match ruleset.joker_retrieval_reuse:
        case JokerRetrievalReuse.ANY_SET:
            return False
        case JokerRetrievalReuse.NEW_SET_IF_REPLACED:
            return ruleset.joker_retrieval_mode is not JokerRetrievalMode.FREE
        case _:
            return ruleset.joker_retrieval_mode is JokerRetrievalMode.NONE


def _in_pairs(ruleset: Ruleset) -> bool:
    return ruleset.teams is Teams.PAIRS


def _full_order(ruleset: Ruleset) -> bool:
    return ruleset.start_draw_determines is StartDrawDetermines.FULL_ORDER


def _keeps_start_tile(ruleset: Ruleset) -> bool:
    return ruleset.start_draw_tile is StartDrawTile.KEEP


def _counts_penalties(ruleset: Ruleset) -> bool:
    """Whether the lowest total wins: then losing must cost points."""
    return ruleset.match_winner is MatchWinner.LOWEST_TOTAL


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
    (
        "geometry_jokers_per_player",
        "geometry_jokers",
        lambda r: r.geometry_jokers_per_player > 0 and r.geometry_jokers > 0,
    ),
    ("deal_fixed_jokers", "players_max", lambda r: r.deal_fixed_jokers * r.players_max > r.jokers(r.players_max)),
    ("start_draw_tile", "deal_order", lambda r: _keeps_start_tile(r) and r.deal_order is DealOrder.DEAL_FIRST),
    (
        "start_draw_tile",
        "start_player",
        lambda r: _keeps_start_tile(r) and r.start_player is not StartPlayer.HIGHEST_DRAW,
    ),
    ("start_draw_tile", "deal_fixed_jokers", lambda r: _keeps_start_tile(r) and r.deal_fixed_jokers > 0),
    (
        "start_draw_determines",
        "start_player",
        lambda r: _full_order(r) and r.start_player is not StartPlayer.HIGHEST_DRAW,
    ),
    (
        "start_draw_determines",
        "start_player_next_rounds",
        lambda r: _full_order(r) and r.start_player_next_rounds is not StartPlayerNextRounds.HIGHEST_DRAW,
    ),
    (
        "start_draw_determines",
        "turn_direction",
        lambda r: _full_order(r) and r.turn_direction is not TurnDirection.CLOCKWISE,
    ),
    ("teams", "players_min", lambda r: _in_pairs(r) and r.players_min != PAIRS_PLAYERS),
    ("teams", "players_max", lambda r: _in_pairs(r) and r.players_max != PAIRS_PLAYERS),
    (
        "teams",
        "score_blocked_points",
        lambda r: _in_pairs(r) and r.score_blocked_points is ScoreBlockedPoints.OWN_PLUS_DIFFERENCE,
    ),
    ("teams", "score_never_melded", lambda r: _in_pairs(r) and r.score_never_melded is not ScoreNeverMelded.NONE),
    ("teams", "score_winner", lambda r: _in_pairs(r) and r.score_winner is not ScoreWinner.SUM_OF_LOSERS),
    (
        "joker_retrieval_source",
        "joker_retrieval_mode",
        lambda r: r.joker_retrieval_source is JokerRetrievalSource.RACK_ONLY and not _by_retrieval(r),
    ),
    (
        "joker_retrieval_group_of_three",
        "joker_retrieval_mode",
        lambda r: r.joker_retrieval_group_of_three is JokerRetrievalGroupOfThree.BOTH_COLORS and not _by_retrieval(r),
    ),
    (
        "joker_retrieval_end_of_run_free",
        "joker_retrieval_mode",
        lambda r: r.joker_retrieval_end_of_run_free and not _by_retrieval(r),
    ),
    ("joker_retrieval_reuse", "joker_retrieval_mode", _reuse_means_nothing),
    (
        "turn_play_after_draw",
        "turn_draw",
        lambda r: r.turn_play_after_draw is not TurnPlayAfterDraw.FORBIDDEN and r.turn_draw is TurnDraw.TWO_RIVER,
    ),
    (
        "pool_empty_last_chance_start",
        "pool_empty_mode",
        lambda r: (
            r.pool_empty_last_chance_start is not PoolEmptyLastChanceStart.DRAWER_FIRST
            and r.pool_empty_mode is not PoolEmptyMode.ONE_LAST_CHANCE
        ),
    ),
    (
        "match_winner",
        "score_winner",
        lambda r: _counts_penalties(r) and r.score_winner is not ScoreWinner.SUM_OF_LOSERS,
    ),
    ("match_winner", "teams", lambda r: _counts_penalties(r) and _in_pairs(r)),
    ("contract_points", "contract", lambda r: r.contract_points > 0 and r.contract is Contract.NONE),
)
"""Pairs of options, and when they contradict each other, or the first means nothing beside the second."""


def problems(ruleset: Ruleset) -> tuple[OptionProblem, ...]:
    """Everything that makes a ruleset meaningless: numbers in the order of its fields, then conflicts."""
    found = [
        OptionProblem(Reason.OPTION_VALUE_INVALID, (option,), str(getattr(ruleset, option)))
        for option, numbers in RANGES.items()
        if getattr(ruleset, option) not in numbers
    ]
    for first, second, contradict in CONFLICTS:
        if contradict(ruleset):
            found.append(OptionProblem(Reason.OPTIONS_CONFLICT, (first, second), _text(getattr(ruleset, first))))
    if ruleset.deal_hand_size * ruleset.players_max >= tile_count(ruleset, ruleset.players_max):
        options = ("deal_hand_size", "players_max")
        found.append(OptionProblem(Reason.INSUFFICIENT_TILES, options, str(ruleset.deal_hand_size)))
    return tuple(found)


@identity_cache(maxsize=256)
def asking_options(ruleset: Ruleset) -> tuple[str, ...]:
    """The options with values whose games ask what could be played (NEEDS_ANALYSIS)."""
    return tuple(option for option, values in NEEDS_ANALYSIS.items() if getattr(ruleset, option) in values)


def tile_count(ruleset: Ruleset, players: int) -> int:
    """Tiles in the tile set of so many players (R1)."""
    return ruleset.geometry_colors * MAX_VALUE * ruleset.geometry_copies + ruleset.jokers(players)


def _text(value: object) -> str:
    return value.name if isinstance(value, Enum) else str(value).lower()
