"""The options of a ruleset: an enum for each choice, and the frozen `Ruleset`. One subject, hence one long module.

An option is a field of `Ruleset`, named as in docs/options.md and in the contract. Ranges and conflicts of options are
in ruleset_checks.py, named rulesets in presets.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from engine.tiles import JOKER, MAX_VALUE, Tile, is_natural

PAIRS_PLAYERS: Final = 4
"""The number of players of a game in pairs."""


class Preset(Enum):
    """The name of a preset ruleset."""

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
    """How a joker counts in the start draw (R8)."""

    REDRAW = auto()
    LOWEST = auto()
    HIGHEST = auto()


class TurnDirection(Enum):
    """The direction of turns around the table (R10)."""

    CLOCKWISE = auto()
    COUNTERCLOCKWISE = auto()


class RunWrap(Enum):
    """Whether a run may continue after 13 (R15)."""

    OFF = auto()
    ONE_HIGH = auto()
    CYCLIC = auto()


class JokersMaxPerMeld(Enum):
    """How many jokers a meld may have."""

    UNLIMITED_WITH_ONE_NATURAL = auto()
    ONE = auto()
    TWO = auto()
    NOT_MORE_THAN_NATURALS = auto()


class JokersAdjacent(Enum):
    """Whether two jokers may be adjacent in a run."""

    ALLOWED = auto()
    FORBIDDEN = auto()


class JokersDeclaration(Enum):
    """When a player must declare the faces of jokers."""

    POSITIONAL = auto()
    EXPLICIT_WHEN_AMBIGUOUS = auto()
    EXPLICIT_WHEN_TWO = auto()
    ALWAYS_EXPLICIT = auto()


class InitialMeldComparison(Enum):
    """How the initial meld's total is compared with the threshold (R29)."""

    AT_LEAST = auto()
    GREATER_THAN = auto()


class InitialMeldCount(Enum):
    """How many melds the initial meld may have (R31)."""

    ONE_OR_MORE = auto()
    SINGLE_MELD = auto()
    ONE_MELD_REACHES_THRESHOLD = auto()


class InitialMeldJoker(Enum):
    """The points of a joker in the initial meld (R30)."""

    REPRESENTED_VALUE = auto()
    ZERO = auto()
    FORBIDDEN = auto()


class InitialMeldSameTurnTablePlay(Enum):
    """Whether the player may use the table in the turn of the initial meld (R34)."""

    FORBIDDEN = auto()
    ALLOWED = auto()


class TurnVoluntaryDraw(Enum):
    """Whether a player with a legal play may draw instead (R23)."""

    ALLOWED = auto()
    ONLY_IF_NO_PLAY = auto()


class TurnDraw(Enum):
    """How a player draws (R21)."""

    ONE = auto()
    TWO_RIVER = auto()
    UNTIL_PLAYABLE = auto()


class TurnTimeoutDirty(Enum):
    """The consequence of a time-out with an unfinished table (R55)."""

    REVERT_AND_DRAW_PENALTY = auto()
    REVERT_AND_DRAW_ONE = auto()
    COMMIT_IF_VALID_ELSE_REVERT = auto()


class TurnInvalidSubmission(Enum):
    """The consequence of an illegal play."""

    REJECT = auto()
    PENALISE = auto()
    PENALISE_ON_UNANIMOUS_CLAIM = auto()


class JokerRetrievalMode(Enum):
    """How a joker may leave its meld (R46, R53)."""

    FREE = auto()
    REPLACE = auto()
    LOCKED = auto()
    OFF = auto()


class JokerRetrievalSource(Enum):
    """Where the tile that replaces a joker may come from (R46)."""

    RACK_OR_TABLE = auto()
    RACK_ONLY = auto()


class JokerRetrievalReuse(Enum):
    """How a retrieved joker must be used (R50)."""

    ANY_MELD = auto()
    NEW_MELD = auto()
    NEW_MELD_TWO_RACK_TILES = auto()
    NEW_MELD_ALL_RACK = auto()
    NEW_MELD_IF_REPLACED = auto()


class JokerRetrievalSameMeld(Enum):
    """Whether a retrieved joker may return to its old meld."""

    ALLOWED = auto()
    FORBIDDEN = auto()


class JokerRetrievalGroupOfThree(Enum):
    """The tiles that replace the joker of a group of three (R47)."""

    EITHER_COLOR = auto()
    BOTH_COLORS = auto()


class PoolEmptyMode(Enum):
    """How a round continues with an empty pool (R59)."""

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
    """The points of a blocked round (R63)."""

    DIFFERENCE = auto()
    NORMAL = auto()
    OWN_PLUS_DIFFERENCE = auto()


class ScoreNeverMelded(Enum):
    """The points of a loser who never made the initial meld."""

    OFF = auto()
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
    """Whether the start draw comes before or after the deal (R7)."""

    START_DRAW_FIRST = auto()
    DEAL_FIRST = auto()


class DealThreePairsReshuffle(Enum):
    """Whether a player with three pairs of identical tiles may demand a new deal."""

    OFF = auto()
    ON_REQUEST = auto()


class StartDrawTile(Enum):
    """Where the tiles of the start draw go (R9)."""

    PUT_BACK = auto()
    KEEP = auto()


class StartDrawTie(Enum):
    """How a tie in the start draw is resolved (R7)."""

    REDRAW_TIED = auto()
    REDRAW_ALL = auto()
    SEAT_ORDER = auto()


class StartDrawDetermines(Enum):
    """Whether the start draw determines only the starter, or the full order (R7)."""

    STARTER_ONLY = auto()
    FULL_ORDER = auto()


class StartPlayer(Enum):
    """Who starts the first round (R7)."""

    HIGHEST_DRAW = auto()
    RANDOM = auto()
    FIXED_SEAT = auto()


class StartPlayerNextRounds(Enum):
    """Who starts each later round."""

    HIGHEST_DRAW = auto()
    ROTATE = auto()
    PREVIOUS_WINNER = auto()
    PREVIOUS_LOSER = auto()


class Teams(Enum):
    """Which players score together."""

    OFF = auto()
    PAIRS = auto()


class MeldOrder(Enum):
    """Whether the order of tiles in a meld matters."""

    STRICT = auto()
    CANONICALISE = auto()


class InitialMeldRequiredKind(Enum):
    """The kind of meld that the initial meld must include."""

    ANY = auto()
    RUN = auto()


class TurnPlayAfterDraw(Enum):
    """Whether a player may play after drawing (R22, R25)."""

    FORBIDDEN = auto()
    OTHER_TILES = auto()
    ALLOWED = auto()


class TurnTimeoutClean(Enum):
    """The consequence of a time-out with an unchanged table: the player saved no draft that differs from it."""

    DRAW_ONE = auto()
    DRAW_PENALTY = auto()
    PASS = auto()


class Manipulation(Enum):
    """How a player may change the melds on the table (R40 to R44)."""

    FREE = auto()
    PRIMITIVES_ONLY = auto()
    OFF = auto()


class PoolEmptyLastChanceStart(Enum):
    """Who takes the first of the last turns."""

    DRAWER_FIRST = auto()
    NEXT_PLAYER_FIRST = auto()


class ScoreBlockedTie(Enum):
    """How a tie in a blocked round is resolved."""

    OTHER_METRIC_THEN_SHARE = auto()
    SHARE = auto()
    TURN_ORDER = auto()


class WinCall(Enum):
    """Whether the winner must call out the win (R58)."""

    AUTOMATIC = auto()
    REQUIRED = auto()


class ScoreWinner(Enum):
    """How the points of a round are distributed (R60)."""

    SUM_OF_LOSERS = auto()
    SUM_OF_LOSERS_LOSERS_ZERO = auto()
    ONE_WIN = auto()


class MatchWinner(Enum):
    """Who wins a game of several rounds."""

    HIGHEST_TOTAL = auto()
    MOST_ROUND_WINS_THEN_TOTAL = auto()
    LOWEST_TOTAL = auto()


class Contract(Enum):
    """The restriction on every meld with a played tile."""

    OFF = auto()
    VALUES_BELOW_10 = auto()
    SINGLE_COLOR = auto()
    SUM_AT_MOST_41 = auto()


class AbsentAction(Enum):
    """The action on the seat of an absent player (absent_after_timeouts)."""

    OFF = auto()
    RESIGN = auto()
    BOT_EASY = auto()
    BOT_MEDIUM = auto()
    BOT_HARD = auto()


class ClockFlag(Enum):
    """The penalty for an empty bank of time (clock_total_seconds)."""

    RESIGN = auto()
    TIME_OUT_EACH_TURN = auto()


class Hints(Enum):
    """The hints that a seat may get from AnalysisService in a running game."""

    OFF = auto()
    PLAY_EXISTS = auto()
    TILES = auto()
    TURN = auto()
    AGAINST_BOTS = auto()


class StartBy(Enum):
    """Who may start the first round."""

    HOST = auto()
    ANYONE = auto()
    ALL_READY = auto()
    FULL_OR_READY = auto()


class AbortBy(Enum):
    """Who may abort a game in its first round."""

    HOST = auto()
    ALL = auto()


class Spectators(Enum):
    """Whether callers without a seat may see a game that has started."""

    ALLOWED = auto()
    OFF = auto()


class RacksShown(Enum):
    """When everyone may see the racks of a round and the order of its pool."""

    HIDDEN = auto()
    AFTER_ROUND = auto()
    AFTER_GAME = auto()


class DraftVisibility(Enum):
    """Who sees the table that a player is arranging."""

    OWNER = auto()
    EVERYONE = auto()


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The rules of a game. The defaults are the preset SABRA. The contract's Ruleset documents each option."""

    preset: Preset = Preset.SABRA
    geometry_jokers: int = 2
    players_min: int = 2
    players_max: int = 4
    start_draw_joker: StartDrawJoker = StartDrawJoker.REDRAW
    turn_direction: TurnDirection = TurnDirection.CLOCKWISE
    run_wrap: RunWrap = RunWrap.OFF
    jokers_max_per_meld: JokersMaxPerMeld = JokersMaxPerMeld.UNLIMITED_WITH_ONE_NATURAL
    jokers_adjacent: JokersAdjacent = JokersAdjacent.ALLOWED
    jokers_declaration: JokersDeclaration = JokersDeclaration.POSITIONAL
    initial_meld_threshold: int = 30
    initial_meld_comparison: InitialMeldComparison = InitialMeldComparison.AT_LEAST
    initial_meld_count: InitialMeldCount = InitialMeldCount.ONE_OR_MORE
    initial_meld_joker: InitialMeldJoker = InitialMeldJoker.REPRESENTED_VALUE
    initial_meld_same_turn_table_play: InitialMeldSameTurnTablePlay = InitialMeldSameTurnTablePlay.FORBIDDEN
    turn_voluntary_draw: TurnVoluntaryDraw = TurnVoluntaryDraw.ALLOWED
    turn_draw: TurnDraw = TurnDraw.ONE
    turn_time_limit_seconds: int = 120
    turn_timeout_dirty: TurnTimeoutDirty = TurnTimeoutDirty.COMMIT_IF_VALID_ELSE_REVERT
    turn_invalid_submission: TurnInvalidSubmission = TurnInvalidSubmission.REJECT
    joker_retrieval_mode: JokerRetrievalMode = JokerRetrievalMode.FREE
    joker_retrieval_source: JokerRetrievalSource = JokerRetrievalSource.RACK_OR_TABLE
    joker_retrieval_reuse: JokerRetrievalReuse = JokerRetrievalReuse.ANY_MELD
    joker_retrieval_same_meld: JokerRetrievalSameMeld = JokerRetrievalSameMeld.ALLOWED
    joker_retrieval_group_of_three: JokerRetrievalGroupOfThree = JokerRetrievalGroupOfThree.EITHER_COLOR
    pool_empty_mode: PoolEmptyMode = PoolEmptyMode.CONTINUE_UNTIL_STUCK
    pool_empty_pass: PoolEmptyPass = PoolEmptyPass.ALLOWED
    pool_empty_stuck_test: PoolEmptyStuckTest = PoolEmptyStuckTest.CONSECUTIVE_PASSES
    score_blocked_winner: ScoreBlockedWinner = ScoreBlockedWinner.LOWEST_VALUE
    score_blocked_points: ScoreBlockedPoints = ScoreBlockedPoints.DIFFERENCE
    score_joker_penalty: int = 30
    score_never_melded: ScoreNeverMelded = ScoreNeverMelded.OFF
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
    start_draw_tile: StartDrawTile = StartDrawTile.PUT_BACK
    start_draw_tie: StartDrawTie = StartDrawTie.REDRAW_TIED
    start_draw_determines: StartDrawDetermines = StartDrawDetermines.STARTER_ONLY
    start_player: StartPlayer = StartPlayer.HIGHEST_DRAW
    start_player_next_rounds: StartPlayerNextRounds = StartPlayerNextRounds.HIGHEST_DRAW
    teams: Teams = Teams.OFF
    meld_order: MeldOrder = MeldOrder.STRICT
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
    contract: Contract = Contract.OFF
    contract_points: int = 0
    hints: Hints = Hints.AGAINST_BOTS
    start_by: StartBy = StartBy.HOST
    abort_by: AbortBy = AbortBy.HOST
    spectators: Spectators = Spectators.ALLOWED
    racks_shown: RacksShown = RacksShown.AFTER_ROUND
    draft_visibility: DraftVisibility = DraftVisibility.OWNER
    absent_after_timeouts: int = 3
    absent_action: AbsentAction = AbsentAction.BOT_EASY
    round_pause_seconds: int = 30
    clock_total_seconds: int = 0
    clock_increment_seconds: int = 0
    clock_flag: ClockFlag = ClockFlag.RESIGN

    def __hash__(self) -> int:
        """Hashes four fields only; hashing all 60 costs more than the lookups it saves."""
        return hash((self.preset.value, self.players_max, self.initial_meld_threshold, self.turn_time_limit_seconds))

    def jokers(self, players: int) -> int:
        """Returns the number of jokers for a number of players (geometry_jokers, geometry_jokers_per_player)."""
        return self.geometry_jokers + self.geometry_jokers_per_player * players

    def copies_of(self, tile: Tile) -> int:
        """Returns how many copies of a tile the largest tile set of the game has; 0 for a tile that is not in it."""
        if tile == JOKER:
            return self.jokers(self.players_max)
        return self.geometry_copies if is_natural(tile, self.geometry_colors) else 0


SABRA: Final = Ruleset()


def with_options(preset: Ruleset, options: Mapping[str, object]) -> Ruleset:
    """Returns a preset with some options replaced.

    Where joker_retrieval_mode changes and joker_retrieval_same_meld is not given, the latter follows the new mode.
    """
    chosen = dict(options)
    mode = chosen.get("joker_retrieval_mode", preset.joker_retrieval_mode)
    if mode is not preset.joker_retrieval_mode and "joker_retrieval_same_meld" not in chosen:
        free = mode is JokerRetrievalMode.FREE
        chosen["joker_retrieval_same_meld"] = (
            JokerRetrievalSameMeld.ALLOWED if free else JokerRetrievalSameMeld.FORBIDDEN
        )
    return replace(preset, **chosen)  # type: ignore[arg-type]


def tile_count(ruleset: Ruleset, players: int) -> int:
    """Returns the size of the tile set for a number of players (R1)."""
    return ruleset.geometry_colors * MAX_VALUE * ruleset.geometry_copies + ruleset.jokers(players)
