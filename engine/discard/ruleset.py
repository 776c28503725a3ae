"""The options of a ruleset of a draw-and-discard game, and the frozen `Ruleset`.

An option is a field of `Ruleset` with its row (options.py): values, stage, conflicts. Named rulesets are in presets.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from engine.options import Needs, OptionProblem, Stage, option, option_problems, options_of
from engine.tiles import FALSE_JOKER, NATURALS, Tile, in_order

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


class Teams(Enum):
    """Which players score together."""

    OFF = auto()
    PAIRS = auto()


class ScoreSystem(Enum):
    """How rounds are scored, and who wins a game."""

    OKEY = auto()
    OKEY_101 = auto()


DEAL: Final = Stage("deal")
MELDS: Final = Stage("melds")
OPENING: Final = Stage("opening", "opening_")
TURN: Final = Stage("turn")
SCORING: Final = Stage("scoring", "score_")
GAME_END: Final = Stage("game_end")
_ON_TABLE: Final = Needs("melds_on_table", (True,))
_COLLECTED: Final = Needs("score_system", (ScoreSystem.OKEY_101,))
_ROUNDS: Final = range(101)


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The rules of a game. The defaults are the preset OKEY.

    Attributes:
        preset: The preset.
        players_min: Fewest players.
        players_max: Most players.
        teams: Whether opposite seats share a score.
        hand_size: The tiles that each player is dealt, the starter one more.
        run_one_high: Whether a 1 may follow a 13. Nothing follows that 1.
        melds_on_table: Whether players lay melds on a table, where they only grow. Otherwise a player shows all of them
            at once to finish.
        opening_points: The fewest points of the melds with which a player opens.
        opening_pairs: The fewest pairs with which a player opens instead; 0 if pairs are never laid.
        opening_rises: Whether each player must open with more than the last one who opened in the same way.
        show_indicator: Whether a player may show the indicator's twin in the first turn.
        pair_opener_tiles: The most tiles that a player who opened with pairs lays in a turn, beside those of the
            opening; 0 for no limit.
        score_system: How rounds are scored, and who wins a game.
        score_start: The points of each player at the start; the game ends when someone has none left.
        score_discard_penalty: The points of a player who discards a tile that fits on the table, or an okey.
        score_return_penalty: The points of a player who puts a taken discard back.
        match_rounds: Most rounds of a game, void ones not counted; 0 for no limit.
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
        needs=(Needs("players_min", (PAIRS_PLAYERS,)), Needs("players_max", (PAIRS_PLAYERS,))),
    )
    hand_size: int = option(HAND_SIZE, range(HAND_SIZE, HAND_SIZE_MOST + 1), stage=DEAL, needs=(_ON_TABLE,))
    run_one_high: bool = option(default=True, stage=MELDS)
    melds_on_table: bool = option(default=False, stage=MELDS, needs=(_COLLECTED,))
    opening_points: int = option(101, range(1, 202), stage=OPENING, usual=(40, 101), needs=(_ON_TABLE,))
    opening_pairs: int = option(5, range(11), stage=OPENING, usual=(0, 3, 5), needs=(_ON_TABLE,))
    opening_rises: bool = option(default=False, stage=OPENING, needs=(_ON_TABLE,))
    show_indicator: bool = option(
        default=True, stage=TURN, needs=(Needs("score_system", (ScoreSystem.OKEY,), of=(True,)),)
    )
    pair_opener_tiles: int = option(
        0, range(HAND_SIZE_MOST + 1), stage=TURN, usual=(0, 2), needs=(_ON_TABLE, Needs("opening_pairs", range(1, 11)))
    )
    score_system: ScoreSystem = option(
        ScoreSystem.OKEY, stage=SCORING, needs=(_ON_TABLE, Needs("match_rounds", _ROUNDS[1:]))
    )
    score_start: int = option(
        20, range(5, 22), stage=SCORING, usual=(5, 10, 20), needs=(Needs("score_system", (ScoreSystem.OKEY,)),)
    )
    score_discard_penalty: int = option(101, range(203), stage=SCORING, usual=(0, 101), needs=(_COLLECTED,))
    score_return_penalty: int = option(0, range(203), stage=SCORING, usual=(0, 101), needs=(_COLLECTED,))
    match_rounds: int = option(0, _ROUNDS, stage=GAME_END, usual=(0, 1, 3))

    @property
    def points_at_start(self) -> int:
        """The points of each player before the first round."""
        return self.score_start if self.score_system is ScoreSystem.OKEY else 0

    @staticmethod
    def tiles(_players: int) -> tuple[Tile, ...]:
        """Returns the tile set, ascending: two of each of 52 tiles, and two false jokers."""
        return in_order((*NATURALS, *NATURALS, FALSE_JOKER, FALSE_JOKER))


OKEY: Final = Ruleset()
OPTIONS: Final = options_of(Ruleset)
"""The options of a ruleset, by name; the preset is none."""


def with_options(preset: Ruleset, options: Mapping[str, object]) -> Ruleset:
    """Returns a preset with some options replaced."""
    return replace(preset, **options)  # type: ignore[arg-type]


def problems(ruleset: Ruleset) -> tuple[OptionProblem, ...]:
    """Returns all problems of a ruleset."""
    return tuple(option_problems(ruleset))
