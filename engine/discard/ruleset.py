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
"""The tiles of a hand between two turns. A player who must discard has one more."""
PAIRS_PLAYERS: Final = 4
"""The number of players of a game in pairs."""
PLAYERS_MOST: Final = 4


class Preset(Enum):
    """The name of a preset ruleset."""

    OKEY = auto()
    OKEY_PARTNERS = auto()


class Teams(Enum):
    """Which players score together."""

    OFF = auto()
    PAIRS = auto()


DEAL: Final = Stage("deal")
MELDS: Final = Stage("melds")
TURN: Final = Stage("turn")
SCORING: Final = Stage("scoring", "score_")
GAME_END: Final = Stage("game_end")


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The rules of a game. The defaults are the preset OKEY.

    Attributes:
        preset: The preset.
        players_min: Fewest players.
        players_max: Most players.
        teams: Whether opposite seats share a score.
        run_one_high: Whether a 1 may follow a 13. Nothing follows that 1.
        show_indicator: Whether a player may show the indicator's twin in the first turn.
        score_start: The points of each player at the start; the game ends when someone has none left.
        match_rounds: Most rounds of a game; 0 for no limit.
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
    run_one_high: bool = option(default=True, stage=MELDS)
    show_indicator: bool = option(default=True, stage=TURN)
    score_start: int = option(20, range(5, 22), stage=SCORING, usual=(5, 10, 20))
    match_rounds: int = option(0, range(101), stage=GAME_END, usual=(0, 1, 3))

    @property
    def points_at_start(self) -> int:
        """The points of each player before the first round."""
        return self.score_start

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
