"""The options of a ruleset: an enum for each choice, and the frozen `Ruleset`. One subject, hence one long module.

An option is a field of `Ruleset`, named as in docs/options.md, with its row (options.py): values, stage, conflicts.
Named rulesets are in presets.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from engine.options import Needs, OptionProblem, Stage, option, option_problems, options_of
from engine.tiles import COLOR_CHANGE, DOUBLE_JOKER, JOKER, MAX_VALUE, MIRROR, Tile, is_natural, tile_set
from engine.violations import Reason

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
    CROSS = auto()
    TAHITI = auto()
    GUADALUPE = auto()
    SHANGHAI = auto()
    MANIPULATION = auto()
    SIX_COLORS = auto()
    CAROUSEL = auto()
    TWIST = auto()


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
    ONE_OR_TWO = auto()
    ONE_TO_THREE = auto()


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


class ScoreTileValues(Enum):
    """The values of numbered tiles left on a rack (R61)."""

    NUMBERS = auto()
    COURT_10 = auto()
    COURT_10_ACE_11 = auto()
    FIVE_OR_TEN = auto()


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


class TableLayout(Enum):
    """How tiles lie on the table (C1 to C12)."""

    MELDS = auto()
    GRID = auto()


class JokerKinds(Enum):
    """The kinds of jokers of the game (W-1 to W-12)."""

    STANDARD = auto()
    TWIST = auto()


class TwistColorChangeAtEnd(Enum):
    """Whether a color change may be at an end of a run, or beside another one (W-6, W-7)."""

    FORBIDDEN = auto()
    ALLOWED = auto()


DRAWS: Final = {TurnDraw.ONE_OR_TWO: 2, TurnDraw.ONE_TO_THREE: 3}
"""The most draws of a turn that begins with a draw, and in which a player who plays nothing draws again (turn_draw)."""


TILES: Final = Stage("tiles", "geometry_")
DEAL: Final = Stage("deal", "deal_")
MELDS: Final = Stage("melds")
INITIAL_MELD: Final = Stage("initial_meld", "initial_meld_")
TURN: Final = Stage("turn", "turn_")
JOKER_RETRIEVAL: Final = Stage("joker_retrieval", "joker_retrieval_")
POOL_END: Final = Stage("pool_end", "pool_")
SCORING: Final = Stage("scoring", "score_")
GAME_END: Final = Stage("game_end")


def _players_with_jokers(rules: "Ruleset") -> Sequence[int]:
    """Returns the numbers of players up to which the tile set has the jokers that each of them gets first."""
    lacking = (n for n in range(rules.players_min, 7) if rules.deal_fixed_jokers * n > rules.jokers(n))
    return range(2, next(lacking, 7))


_REPLACES_JOKERS: Final = Needs("joker_retrieval_mode", (JokerRetrievalMode.REPLACE, JokerRetrievalMode.LOCKED))

_HAS_TWIST: Final = Needs("joker_kinds", (JokerKinds.TWIST,))
_KINDS: Final = {
    JokerKinds.STANDARD: (JOKER,),
    JokerKinds.TWIST: (JOKER, DOUBLE_JOKER, MIRROR, COLOR_CHANGE),
}


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The rules of a game. The defaults are the preset SABRA. The contract's Ruleset documents each option."""

    preset: Preset = Preset.SABRA
    geometry_colors: int = option(4, (4, 6), stage=TILES)
    geometry_copies: int = option(2, (2, 3), stage=TILES)
    geometry_jokers: int = option(2, range(9), stage=TILES)
    geometry_jokers_per_player: int = option(0, range(2), stage=TILES, needs=(Needs("geometry_jokers", (0,)),))
    geometry_reduced_players: int = option(
        0,
        range(6),
        stage=TILES,
        usual=(0, 0, 2, 3),
        needs=(
            Needs("players_min", lambda rules: range(2, rules.geometry_reduced_players + 1)),
            Needs("players_max", lambda rules: range(rules.geometry_reduced_players + 1, 7)),
            Needs("geometry_jokers_per_player", (0,)),
            Needs("jokers_beyond_physical", (True,)),
        ),
    )
    joker_kinds: JokerKinds = option(
        JokerKinds.STANDARD,
        stage=TILES,
        usual=(JokerKinds.STANDARD,),
        needs=(
            Needs("run_wrap", (RunWrap.OFF,)),
            Needs("meld_order", (MeldOrder.STRICT,)),
            Needs("jokers_max_per_meld", (JokersMaxPerMeld.UNLIMITED_WITH_ONE_NATURAL,)),
            Needs("jokers_adjacent", (JokersAdjacent.ALLOWED,)),
            Needs("jokers_declaration", (JokersDeclaration.POSITIONAL,)),
            Needs("jokers_may_lead", (True,)),
            Needs("jokers_beyond_physical", (True,)),
            Needs("contract", (Contract.OFF,)),
            Needs("table_layout", (TableLayout.MELDS,)),
            Needs("initial_meld_joker", (InitialMeldJoker.REPRESENTED_VALUE,)),
            Needs("initial_meld_same_turn_table_play", (InitialMeldSameTurnTablePlay.FORBIDDEN,)),
            Needs("turn_draw", (TurnDraw.ONE, TurnDraw.UNTIL_PLAYABLE)),
            Needs("manipulation", (Manipulation.FREE,)),
            Needs("joker_retrieval_mode", (JokerRetrievalMode.FREE,)),
            Needs("joker_retrieval_reuse", (JokerRetrievalReuse.ANY_MELD,)),
            Needs("joker_retrieval_same_meld", (JokerRetrievalSameMeld.ALLOWED,)),
        ),
    )
    players_min: int = option(
        2, range(2, 7), stage=DEAL, needs=(Needs("players_max", lambda rules: range(rules.players_min, 7)),)
    )
    players_max: int = option(4, range(2, 7), stage=DEAL)
    teams: Teams = option(
        Teams.OFF,
        stage=DEAL,
        needs=(
            Needs("players_min", (PAIRS_PLAYERS,)),
            Needs("players_max", (PAIRS_PLAYERS,)),
            Needs("score_blocked_points", (ScoreBlockedPoints.DIFFERENCE, ScoreBlockedPoints.NORMAL)),
            Needs("score_never_melded", (ScoreNeverMelded.OFF,)),
            Needs("score_winner", (ScoreWinner.SUM_OF_LOSERS,)),
        ),
    )
    deal_hand_size: int = option(14, range(5, 22), stage=DEAL, usual=(5, 9, 13, 14, 15, 21))
    deal_order: DealOrder = option(DealOrder.START_DRAW_FIRST, stage=DEAL)
    deal_fixed_jokers: int = option(0, range(2), stage=DEAL, needs=(Needs("players_max", _players_with_jokers),))
    deal_three_pairs_reshuffle: DealThreePairsReshuffle = option(DealThreePairsReshuffle.OFF, stage=DEAL)
    start_draw_joker: StartDrawJoker = option(StartDrawJoker.REDRAW, stage=DEAL)
    start_draw_tile: StartDrawTile = option(
        StartDrawTile.PUT_BACK,
        stage=DEAL,
        needs=(
            Needs("deal_order", (DealOrder.START_DRAW_FIRST,)),
            Needs("start_player", (StartPlayer.HIGHEST_DRAW,)),
            Needs("deal_fixed_jokers", (0,)),
        ),
    )
    start_draw_tie: StartDrawTie = option(StartDrawTie.REDRAW_TIED, stage=DEAL)
    start_draw_determines: StartDrawDetermines = option(
        StartDrawDetermines.STARTER_ONLY,
        stage=DEAL,
        needs=(
            Needs("start_player", (StartPlayer.HIGHEST_DRAW,)),
            Needs("start_player_next_rounds", (StartPlayerNextRounds.HIGHEST_DRAW,)),
            Needs("turn_direction", (TurnDirection.CLOCKWISE,)),
        ),
    )
    start_player: StartPlayer = option(StartPlayer.HIGHEST_DRAW, stage=DEAL)
    start_player_next_rounds: StartPlayerNextRounds = option(StartPlayerNextRounds.HIGHEST_DRAW, stage=DEAL)
    run_wrap: RunWrap = option(RunWrap.OFF, stage=MELDS)
    meld_order: MeldOrder = option(MeldOrder.STRICT, stage=MELDS)
    jokers_max_per_meld: JokersMaxPerMeld = option(JokersMaxPerMeld.UNLIMITED_WITH_ONE_NATURAL, stage=MELDS)
    jokers_adjacent: JokersAdjacent = option(JokersAdjacent.ALLOWED, stage=MELDS)
    jokers_declaration: JokersDeclaration = option(JokersDeclaration.POSITIONAL, stage=MELDS)
    jokers_may_lead: bool = option(default=True, stage=MELDS)
    jokers_beyond_physical: bool = option(default=True, stage=MELDS)
    contract: Contract = option(Contract.OFF, stage=MELDS)
    table_layout: TableLayout = option(
        TableLayout.MELDS,
        stage=MELDS,
        usual=(TableLayout.MELDS,),
        needs=(
            Needs("meld_order", (MeldOrder.STRICT,)),
            Needs("jokers_declaration", (JokersDeclaration.POSITIONAL,)),
            Needs("jokers_beyond_physical", (True,)),
            Needs("contract", (Contract.OFF,)),
            Needs("initial_meld_count", (InitialMeldCount.ONE_OR_MORE,)),
            Needs("initial_meld_required_kind", (InitialMeldRequiredKind.ANY,)),
            Needs("initial_meld_same_turn_table_play", (InitialMeldSameTurnTablePlay.FORBIDDEN,)),
            Needs("turn_draw", (TurnDraw.ONE, TurnDraw.UNTIL_PLAYABLE)),
            Needs("manipulation", (Manipulation.FREE, Manipulation.OFF)),
            Needs("joker_retrieval_mode", (JokerRetrievalMode.FREE,)),
            Needs("joker_retrieval_reuse", (JokerRetrievalReuse.ANY_MELD,)),
            Needs("joker_retrieval_same_meld", (JokerRetrievalSameMeld.ALLOWED,)),
        ),
    )
    twist_color_change_at_end: TwistColorChangeAtEnd = option(
        TwistColorChangeAtEnd.FORBIDDEN, stage=MELDS, usual=(TwistColorChangeAtEnd.FORBIDDEN,), needs=(_HAS_TWIST,)
    )
    twist_mirror_half_min: int = option(2, (1, 2), stage=MELDS, usual=(2,), needs=(_HAS_TWIST,))
    initial_meld_threshold: int = option(30, range(201), stage=INITIAL_MELD, usual=(0, 0, 20, 30, 40, 50))
    initial_meld_comparison: InitialMeldComparison = option(InitialMeldComparison.AT_LEAST, stage=INITIAL_MELD)
    initial_meld_count: InitialMeldCount = option(InitialMeldCount.ONE_OR_MORE, stage=INITIAL_MELD)
    initial_meld_joker: InitialMeldJoker = option(InitialMeldJoker.REPRESENTED_VALUE, stage=INITIAL_MELD)
    initial_meld_required_kind: InitialMeldRequiredKind = option(InitialMeldRequiredKind.ANY, stage=INITIAL_MELD)
    initial_meld_same_turn_table_play: InitialMeldSameTurnTablePlay = option(
        InitialMeldSameTurnTablePlay.FORBIDDEN, stage=INITIAL_MELD
    )
    initial_meld_voluntary_delay: bool = option(default=True, stage=INITIAL_MELD, asks=(False,))
    initial_meld_needed: bool = option(
        default=True,
        stage=INITIAL_MELD,
        needs=(
            Needs("initial_meld_threshold", (0,)),
            Needs("initial_meld_comparison", (InitialMeldComparison.AT_LEAST,)),
            Needs("initial_meld_count", (InitialMeldCount.ONE_OR_MORE,)),
            Needs("initial_meld_joker", (InitialMeldJoker.REPRESENTED_VALUE,)),
            Needs("initial_meld_required_kind", (InitialMeldRequiredKind.ANY,)),
            Needs("initial_meld_same_turn_table_play", (InitialMeldSameTurnTablePlay.FORBIDDEN,)),
            Needs("initial_meld_voluntary_delay", (True,)),
            Needs("score_never_melded", (ScoreNeverMelded.OFF,)),
        ),
    )
    turn_direction: TurnDirection = option(TurnDirection.CLOCKWISE, stage=TURN)
    turn_draw: TurnDraw = option(
        TurnDraw.ONE,
        stage=TURN,
        asks=(TurnDraw.UNTIL_PLAYABLE,),
        needs=(
            Needs("turn_play_after_draw", (TurnPlayAfterDraw.ALLOWED,), of=tuple(DRAWS)),
            Needs("turn_voluntary_draw", (TurnVoluntaryDraw.ALLOWED,), of=tuple(DRAWS)),
            Needs("initial_meld_voluntary_delay", (True,), of=tuple(DRAWS)),
            Needs(
                "score_never_melded",
                tuple(value for value in ScoreNeverMelded if value is not ScoreNeverMelded.FLAT_100_OR_200),
                of=tuple(DRAWS),
            ),
        ),
    )
    turn_voluntary_draw: TurnVoluntaryDraw = option(
        TurnVoluntaryDraw.ALLOWED, stage=TURN, asks=(TurnVoluntaryDraw.ONLY_IF_NO_PLAY,)
    )
    turn_play_after_draw: TurnPlayAfterDraw = option(
        TurnPlayAfterDraw.FORBIDDEN,
        stage=TURN,
        needs=(
            Needs("turn_draw", (TurnDraw.ONE, TurnDraw.UNTIL_PLAYABLE), of=(TurnPlayAfterDraw.OTHER_TILES,)),
            Needs("turn_draw", (TurnDraw.ONE, TurnDraw.UNTIL_PLAYABLE, *DRAWS), of=(TurnPlayAfterDraw.ALLOWED,)),
        ),
    )
    manipulation: Manipulation = option(Manipulation.FREE, stage=TURN)
    turn_invalid_submission: TurnInvalidSubmission = option(TurnInvalidSubmission.REJECT, stage=TURN)
    penalty_tiles: int = option(3, range(1, 15), stage=TURN, usual=(1, 2, 7, 14))
    turn_timeout_clean: TurnTimeoutClean = option(TurnTimeoutClean.DRAW_ONE, stage=TURN)
    turn_timeout_dirty: TurnTimeoutDirty = option(TurnTimeoutDirty.COMMIT_IF_VALID_ELSE_REVERT, stage=TURN)
    knock_limit: int = option(0, range(51), stage=TURN, usual=(0, 5, 20))
    win_call: WinCall = option(WinCall.AUTOMATIC, stage=TURN)
    joker_retrieval_mode: JokerRetrievalMode = option(JokerRetrievalMode.FREE, stage=JOKER_RETRIEVAL)
    joker_retrieval_source: JokerRetrievalSource = option(
        JokerRetrievalSource.RACK_OR_TABLE, stage=JOKER_RETRIEVAL, needs=(_REPLACES_JOKERS,)
    )
    joker_retrieval_reuse: JokerRetrievalReuse = option(
        JokerRetrievalReuse.ANY_MELD,
        stage=JOKER_RETRIEVAL,
        needs=(
            Needs(
                "joker_retrieval_mode",
                (JokerRetrievalMode.FREE,),
                of=(JokerRetrievalReuse.NEW_MELD_IF_REPLACED,),
            ),
            Needs(
                "joker_retrieval_mode",
                (JokerRetrievalMode.FREE, JokerRetrievalMode.REPLACE, JokerRetrievalMode.LOCKED),
                of=(
                    JokerRetrievalReuse.NEW_MELD,
                    JokerRetrievalReuse.NEW_MELD_TWO_RACK_TILES,
                    JokerRetrievalReuse.NEW_MELD_ALL_RACK,
                ),
            ),
        ),
    )
    joker_retrieval_same_meld: JokerRetrievalSameMeld = option(JokerRetrievalSameMeld.ALLOWED, stage=JOKER_RETRIEVAL)
    joker_retrieval_group_of_three: JokerRetrievalGroupOfThree = option(
        JokerRetrievalGroupOfThree.EITHER_COLOR, stage=JOKER_RETRIEVAL, needs=(_REPLACES_JOKERS,)
    )
    joker_retrieval_end_of_run_free: bool = option(default=False, stage=JOKER_RETRIEVAL, needs=(_REPLACES_JOKERS,))
    pool_empty_mode: PoolEmptyMode = option(PoolEmptyMode.CONTINUE_UNTIL_STUCK, stage=POOL_END)
    pool_empty_pass: PoolEmptyPass = option(
        PoolEmptyPass.ALLOWED, stage=POOL_END, asks=(PoolEmptyPass.ONLY_IF_NO_PLAY,)
    )
    pool_empty_stuck_test: PoolEmptyStuckTest = option(
        PoolEmptyStuckTest.CONSECUTIVE_PASSES, stage=POOL_END, asks=(PoolEmptyStuckTest.EXACT, PoolEmptyStuckTest.BOTH)
    )
    pool_empty_last_chance_start: PoolEmptyLastChanceStart = option(
        PoolEmptyLastChanceStart.DRAWER_FIRST,
        stage=POOL_END,
        needs=(Needs("pool_empty_mode", (PoolEmptyMode.ONE_LAST_CHANCE,)),),
    )
    score_tile_values: ScoreTileValues = option(ScoreTileValues.NUMBERS, stage=SCORING)
    score_joker_penalty: int = option(30, range(101), stage=SCORING, usual=(0, 25, 50, 100))
    score_never_melded: ScoreNeverMelded = option(
        ScoreNeverMelded.OFF, stage=SCORING, asks=(ScoreNeverMelded.FLAT_100_OR_200,)
    )
    score_winner: ScoreWinner = option(ScoreWinner.SUM_OF_LOSERS, stage=SCORING)
    score_blocked_winner: ScoreBlockedWinner = option(ScoreBlockedWinner.LOWEST_VALUE, stage=SCORING)
    score_blocked_points: ScoreBlockedPoints = option(ScoreBlockedPoints.DIFFERENCE, stage=SCORING)
    score_blocked_tie: ScoreBlockedTie = option(ScoreBlockedTie.OTHER_METRIC_THEN_SHARE, stage=SCORING)
    contract_points: int = option(
        0,
        range(1_001),
        stage=SCORING,
        usual=(0, 10, 1000),
        needs=(Needs("contract", (Contract.VALUES_BELOW_10, Contract.SINGLE_COLOR, Contract.SUM_AT_MOST_41)),),
    )
    match_end: MatchEnd = option(MatchEnd.SINGLE_ROUND, stage=GAME_END)
    match_rounds: int = option(
        1, range(1, 101), stage=GAME_END, usual=(2, 3), needs=(Needs("match_end", (MatchEnd.FIXED_ROUNDS,)),)
    )
    match_target_score: int = option(
        200, range(1, 10_001), stage=GAME_END, usual=(1, 5, 60), needs=(Needs("match_end", (MatchEnd.TARGET_SCORE,)),)
    )
    match_winner: MatchWinner = option(
        MatchWinner.HIGHEST_TOTAL,
        stage=GAME_END,
        needs=(
            Needs("score_winner", (ScoreWinner.SUM_OF_LOSERS,), of=(MatchWinner.LOWEST_TOTAL,)),
            Needs("teams", (Teams.OFF,), of=(MatchWinner.LOWEST_TOTAL,)),
        ),
    )

    def __hash__(self) -> int:
        """Hashes three fields only; hashing all 60 costs more than the lookups it saves."""
        return hash((self.preset.value, self.players_max, self.initial_meld_threshold))

    @property
    def points_at_start(self) -> int:
        """The points of each player before the first round."""
        return 0

    @property
    def begins_with_draw(self) -> bool:
        """Whether a turn begins with a draw while the pool has tiles (turn_draw)."""
        return self.turn_draw in DRAWS

    def jokers(self, players: int) -> int:
        """Returns how many jokers of each kind a number of players has.

        geometry_jokers, geometry_jokers_per_player; half of them with a reduced tile set.
        """
        jokers = self.geometry_jokers + self.geometry_jokers_per_player * players
        return jokers - jokers // 2 * self._is_reduced(players)

    def copies(self, players: int) -> int:
        """Returns how many copies of each face a number of players have (geometry_copies, geometry_reduced_players)."""
        return self.geometry_copies - self._is_reduced(players)

    def _is_reduced(self, players: int) -> bool:
        return players <= self.geometry_reduced_players

    def tiles(self, players: int) -> tuple[Tile, ...]:
        """Returns the tile set for a number of players, ascending (R1)."""
        return tile_set(self.geometry_colors, self.copies(players), self.jokers(players), _KINDS[self.joker_kinds])

    def copies_of(self, tile: Tile) -> int:
        """Returns how many copies of a tile the largest tile set of the game has; 0 for a tile that is not in it."""
        if tile in _KINDS[self.joker_kinds]:
            return self.jokers(self.players_max)
        return self.geometry_copies if is_natural(tile, self.geometry_colors) else 0


SABRA: Final = Ruleset()
OPTIONS: Final = options_of(Ruleset)
"""The options of a ruleset, by name; the preset is none."""


def with_options(preset: Ruleset, options: Mapping[str, object]) -> Ruleset:
    """Returns a preset with some options replaced.

    Where joker_retrieval_mode changes and joker_retrieval_same_meld is not given, the latter follows the new mode; so
    does manipulation follow table_layout: tiles of a grid stay where they are, unless it says otherwise.
    """
    chosen = dict(options)
    if chosen.get("table_layout", preset.table_layout) is not preset.table_layout and "manipulation" not in chosen:
        is_grid = chosen["table_layout"] is TableLayout.GRID
        chosen["manipulation"] = Manipulation.OFF if is_grid else Manipulation.FREE
    mode = chosen.get("joker_retrieval_mode", preset.joker_retrieval_mode)
    if mode is not preset.joker_retrieval_mode and "joker_retrieval_same_meld" not in chosen:
        free = mode is JokerRetrievalMode.FREE
        chosen["joker_retrieval_same_meld"] = (
            JokerRetrievalSameMeld.ALLOWED if free else JokerRetrievalSameMeld.FORBIDDEN
        )
    return replace(preset, **chosen)  # type: ignore[arg-type]


def tile_count(ruleset: Ruleset, players: int) -> int:
    """Returns the size of the tile set for a number of players (R1)."""
    jokers = ruleset.jokers(players) * len(_KINDS[ruleset.joker_kinds])
    return ruleset.geometry_colors * MAX_VALUE * ruleset.copies(players) + jokers


def problems(ruleset: Ruleset) -> tuple[OptionProblem, ...]:
    """Returns all problems of a ruleset: those of its options, then the size of the tile set."""
    found = [*option_problems(ruleset)]
    for option_name in ("players_max", "geometry_reduced_players"):
        players = getattr(ruleset, option_name)
        if players and ruleset.deal_hand_size * players >= tile_count(ruleset, players):
            options = ("deal_hand_size", option_name)
            found.append(OptionProblem(Reason.INSUFFICIENT_TILES, options, str(ruleset.deal_hand_size)))
    return tuple(found)
