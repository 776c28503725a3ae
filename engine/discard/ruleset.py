"""The options of a ruleset of a draw-and-discard game, and the frozen `Ruleset`.

An option is a field of `Ruleset` with its row (options.py): values, stage, conflicts. Named rulesets are in presets.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from engine.discard.named_hands import HANDS_MAX, KNOWN_HANDS, NamedHand, hand_problems
from engine.options import Needs, OptionProblem, Stage, option, option_problems, options_of
from engine.tiles import FALSE_JOKER, JOKER, NATURALS, Tile, in_order
from engine.violations import Reason

HAND_SIZE: Final = 14
"""The tiles of a hand that is shown at once (melds_on_table). A player who must discard has one more."""
HAND_SIZE_MOST: Final = 21
PAIRS_PLAYERS: Final = 4
"""The number of players of a game in pairs."""
PLAYERS_MOST: Final = 4


class Preset(Enum):
    """The name of a preset ruleset."""

    OKEY = auto()
    OKEY_PARTNERS = auto()
    OKEY_101 = auto()
    OKEY_101_PARTNERS = auto()
    AMERICAN = auto()
    INTERNATIONAL = auto()


class Teams(Enum):
    """Which players score together."""

    OFF = auto()
    PAIRS = auto()


class WildTiles(Enum):
    """Which tiles are wild."""

    OKEY = auto()
    JOKERS = auto()


class TakenDiscard(Enum):
    """Whether a taken discard must be laid."""

    LAID = auto()
    KEPT_BEFORE_OPENING = auto()


class WildRetrieval(Enum):
    """Where a wild tile goes that a player takes from the table."""

    TO_RACK = auto()
    LAID_AT_ONCE = auto()


class PoolEmpty(Enum):
    """Whether a round goes on with an empty pool."""

    ROUND_ENDS = auto()
    DISCARD_TAKEN_OR_ENDS = auto()


class ScoreSystem(Enum):
    """How rounds are scored, and who wins a game."""

    OKEY = auto()
    OKEY_101 = auto()
    AMERICAN = auto()
    INTERNATIONAL = auto()


DEAL: Final = Stage("deal")
MELDS: Final = Stage("melds")
OPENING: Final = Stage("opening", "opening_")
TURN: Final = Stage("turn")
SCORING: Final = Stage("scoring", "score_")
GAME_END: Final = Stage("game_end")
_ON_TABLE: Final = Needs("melds_on_table", (True,))
_JOKERS: Final = Needs("wild_tiles", (WildTiles.JOKERS,))
_COLLECTED: Final = Needs("score_system", (ScoreSystem.OKEY_101,))
_OF_TABLES: Final = Needs("score_system", (ScoreSystem.OKEY_101, ScoreSystem.AMERICAN, ScoreSystem.INTERNATIONAL))
_OF_JOKERS: Final = (ScoreSystem.AMERICAN, ScoreSystem.INTERNATIONAL)
_NO_PAIRS: Final = Needs("opening_pairs", (0,))
_ROUNDS: Final = range(101)


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The rules of a game. The defaults are the preset OKEY.

    Attributes:
        preset: The preset.
        players_min: Fewest players.
        players_max: Most players.
        teams: Whether opposite seats share a score.
        hand_size: The tiles that each player is dealt.
        wild_tiles: Which tiles are wild: those of the okey, which the indicator gives, where the starter is dealt one
            more tile and begins with a discard; or two jokers.
        trump: Whether a tile is laid face up at the deal, which a player who has opened may take in place of a draw.
        run_one_high: Whether a 1 may follow a 13. Nothing follows that 1.
        melds_on_table: Whether players lay melds on a table, where they only grow. Otherwise a player shows all of them
            at once to finish.
        opening_points: The fewest points of the melds with which a player opens.
        opening_pairs: The fewest pairs with which a player opens instead; 0 if pairs are never laid.
        opening_rises: Whether each player must open with more than the last one who opened in the same way.
        show_indicator: Whether a player may show the indicator's twin in the first turn.
        pair_opener_tiles: The most tiles that a player who opened with pairs lays in a turn, beside those of the
            opening; 0 for no limit.
        taken_discard: Whether a taken discard must be laid in the next step: always, or only by players who have
            opened and where the pool is empty.
        wild_retrieval: Where a wild tile goes that a player takes from the table: to the rack, or in the same step into
            a new meld.
        concealed_wins: Whether a player who has not opened may finish by a Foot or by one of `hands`.
        pool_empty: What happens when the pool is empty: the round ends with the turn, or with the next player who takes
            no discard and no trump.
        score_system: How rounds are scored, and who wins a game.
        score_start: The points of each player at the start; the game ends when someone has none left.
        score_discard_penalty: The points of a player who discards a tile that fits on the table, or an okey.
        score_return_penalty: The points of a player who puts a taken discard back.
        score_false_finish: The points that a player loses who finishes with a hand that is not finished; 0 if that is
            refused.
        score_trump_twin: The points that the owner of the trump's twin gains at the end of a round.
        score_round_up: Whether the racks of those who have not won are rounded up to tens.
        match_rounds: Most rounds of a game, void ones not counted; 0 for no limit.
        hands: The named hands of concealed_wins.
    """

    preset: Preset = Preset.OKEY
    players_min: int = option(
        2,
        range(2, PLAYERS_MOST + 1),
        stage=DEAL,
        needs=(Needs("players_max", lambda rules: range(rules.players_min, PLAYERS_MOST + 1)),),
    )
    players_max: int = option(4, range(2, PLAYERS_MOST + 1), stage=DEAL)
    teams: Teams = option(
        Teams.OFF,
        stage=DEAL,
        needs=(
            Needs("players_min", (PAIRS_PLAYERS,)),
            Needs("players_max", (PAIRS_PLAYERS,)),
            Needs("score_system", (ScoreSystem.OKEY, ScoreSystem.OKEY_101)),
        ),
    )
    hand_size: int = option(HAND_SIZE, range(HAND_SIZE, HAND_SIZE_MOST + 1), stage=DEAL, needs=(_ON_TABLE,))
    wild_tiles: WildTiles = option(WildTiles.OKEY, stage=DEAL, needs=(_ON_TABLE,))
    trump: bool = option(default=False, stage=DEAL, needs=(_JOKERS,))
    run_one_high: bool = option(default=True, stage=MELDS)
    melds_on_table: bool = option(default=False, stage=MELDS, needs=(_OF_TABLES,))
    opening_points: int = option(101, range(1, 202), stage=OPENING, usual=(40, 101), needs=(_ON_TABLE,))
    opening_pairs: int = option(5, range(11), stage=OPENING, usual=(0, 3, 5), needs=(_ON_TABLE,))
    opening_rises: bool = option(default=False, stage=OPENING, needs=(_ON_TABLE,))
    show_indicator: bool = option(
        default=True, stage=TURN, needs=(Needs("score_system", (ScoreSystem.OKEY,), of=(True,)),)
    )
    pair_opener_tiles: int = option(
        0, range(HAND_SIZE_MOST + 1), stage=TURN, usual=(0, 2), needs=(_ON_TABLE, Needs("opening_pairs", range(1, 11)))
    )
    taken_discard: TakenDiscard = option(TakenDiscard.LAID, stage=TURN, needs=(_ON_TABLE,))
    wild_retrieval: WildRetrieval = option(WildRetrieval.TO_RACK, stage=TURN, needs=(_NO_PAIRS,))
    concealed_wins: bool = option(
        default=False,
        stage=TURN,
        needs=(Needs("score_system", (ScoreSystem.INTERNATIONAL,)), Needs("hand_size", (HAND_SIZE,))),
    )
    pool_empty: PoolEmpty = option(PoolEmpty.ROUND_ENDS, stage=TURN, needs=(_ON_TABLE,))
    score_system: ScoreSystem = option(
        ScoreSystem.OKEY,
        stage=SCORING,
        needs=(
            _ON_TABLE,
            Needs("match_rounds", _ROUNDS[1:]),
            Needs("wild_tiles", (WildTiles.JOKERS,), of=_OF_JOKERS),
            Needs("opening_pairs", (0,), of=_OF_JOKERS),
        ),
    )
    score_start: int = option(
        20, range(5, 22), stage=SCORING, usual=(5, 10, 20), needs=(Needs("score_system", (ScoreSystem.OKEY,)),)
    )
    score_discard_penalty: int = option(101, range(203), stage=SCORING, usual=(0, 101), needs=(_COLLECTED,))
    score_return_penalty: int = option(0, range(203), stage=SCORING, usual=(0, 101), needs=(_COLLECTED,))
    score_false_finish: int = option(
        0, range(21), stage=SCORING, usual=(0, 2), needs=(Needs("score_system", (ScoreSystem.OKEY,)),)
    )
    score_trump_twin: int = option(0, range(101), stage=SCORING, usual=(0, 25), needs=(Needs("trump", (True,)),))
    score_round_up: bool = option(
        default=False, stage=SCORING, needs=(Needs("score_system", (ScoreSystem.INTERNATIONAL,)),)
    )
    match_rounds: int = option(0, _ROUNDS, stage=GAME_END, usual=(0, 1, 3))
    hands: tuple[NamedHand, ...] = KNOWN_HANDS

    @property
    def points_at_start(self) -> int:
        """The points of each player before the first round."""
        return self.score_start if self.score_system is ScoreSystem.OKEY else 0

    @property
    def discard_penalty(self) -> int:
        """The points of a player who discards a wild tile or one that fits on the table, where that costs points."""
        return self.score_discard_penalty if self.score_system is ScoreSystem.OKEY_101 else 0

    @property
    def has_indicator(self) -> bool:
        """Whether a tile is turned face up that gives the okey."""
        return self.wild_tiles is WildTiles.OKEY

    def tiles(self, _players: int) -> tuple[Tile, ...]:
        """Returns the tile set, ascending: two of each of 52 tiles, and two false jokers or jokers."""
        joker = FALSE_JOKER if self.has_indicator else JOKER
        return in_order((*NATURALS, *NATURALS, joker, joker))


OKEY: Final = Ruleset()
OPTIONS: Final = options_of(Ruleset)
"""The options of a ruleset, by name; the preset is none."""


def with_options(preset: Ruleset, options: Mapping[str, object]) -> Ruleset:
    """Returns a preset with some options replaced."""
    return replace(preset, **options)  # type: ignore[arg-type]


def problems(ruleset: Ruleset) -> tuple[OptionProblem, ...]:
    """Returns all problems of a ruleset."""
    return (*option_problems(ruleset), *_problems_of_hands(ruleset))


def _problems_of_hands(ruleset: Ruleset) -> Iterator[OptionProblem]:
    if ruleset.hands != KNOWN_HANDS and not ruleset.concealed_wins:
        yield OptionProblem(Reason.OPTIONS_CONFLICT, ("hands", "concealed_wins"), str(len(ruleset.hands)))
    if len(ruleset.hands) > HANDS_MAX:
        yield OptionProblem(Reason.OPTION_VALUE_INVALID, ("hands",), str(len(ruleset.hands)))
    for value in hand_problems(ruleset.hands):
        yield OptionProblem(Reason.OPTION_VALUE_INVALID, ("hands",), value)
