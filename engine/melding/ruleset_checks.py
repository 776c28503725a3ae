"""Which rulesets can be played: the range of each number, and the options that conflict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from engine.melding.ruleset import (
    PAIRS_PLAYERS,
    SABRA,
    ClockFlag,
    Contract,
    DealOrder,
    JokerRetrievalGroupOfThree,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSource,
    MatchEnd,
    MatchWinner,
    PoolEmptyLastChanceStart,
    PoolEmptyMode,
    Ruleset,
    ScoreBlockedPoints,
    ScoreNeverMelded,
    ScoreWinner,
    StartDrawDetermines,
    StartDrawTile,
    StartPlayer,
    StartPlayerNextRounds,
    Teams,
    TurnDirection,
    TurnDraw,
    TurnPlayAfterDraw,
    tile_count,
)
from engine.violations import Reason

RANGES: Final[dict[str, Sequence[int]]] = {
    "geometry_colors": (4, 6),
    "geometry_copies": (2, 3),
    "geometry_jokers": range(9),
    "geometry_jokers_per_player": range(2),
    "players_min": range(2, 7),
    "players_max": range(2, 7),
    "deal_hand_size": range(5, 22),
    "deal_fixed_jokers": range(2),
    "jokers_may_lead": (False, True),
    "jokers_beyond_physical": (False, True),
    "initial_meld_threshold": range(201),
    "initial_meld_voluntary_delay": (False, True),
    "turn_time_limit_seconds": range(1_209_601),
    "penalty_tiles": range(1, 15),
    "joker_retrieval_end_of_run_free": (False, True),
    "score_joker_penalty": range(101),
    "match_rounds": range(1, 101),
    "match_target_score": range(1, 10_001),
    "contract_points": range(1001),
    "absent_after_timeouts": range(101),
    "round_pause_seconds": range(86_401),
    "clock_total_seconds": range(1_209_601),
    "clock_increment_seconds": range(86_401),
}
"""The allowed values of each number and flag."""


@dataclass(frozen=True, slots=True)
class OptionProblem:
    """A reason why a ruleset cannot be played.

    Attributes:
        reason: OPTION_VALUE_INVALID, OPTIONS_CONFLICT or INSUFFICIENT_TILES.
        options: The options concerned: one, or the two that conflict.
        value: The value of the first option, as text.
    """

    reason: Reason
    options: tuple[str, ...]
    value: str


def _replaces_jokers(ruleset: Ruleset) -> bool:
    return ruleset.joker_retrieval_mode in {JokerRetrievalMode.REPLACE, JokerRetrievalMode.LOCKED}


def _reuse_has_no_effect(ruleset: Ruleset) -> bool:
    """Returns whether no joker is retrieved; for NEW_MELD_IF_REPLACED, whether every retrieved joker is replaced."""
    match ruleset.joker_retrieval_reuse:
        case JokerRetrievalReuse.ANY_MELD:
            return False
        case JokerRetrievalReuse.NEW_MELD_IF_REPLACED:
            return ruleset.joker_retrieval_mode is not JokerRetrievalMode.FREE
        case _:
            return ruleset.joker_retrieval_mode is JokerRetrievalMode.OFF


def _in_pairs(ruleset: Ruleset) -> bool:
    return ruleset.teams is Teams.PAIRS


def _full_order(ruleset: Ruleset) -> bool:
    return ruleset.start_draw_determines is StartDrawDetermines.FULL_ORDER


def _keeps_start_tile(ruleset: Ruleset) -> bool:
    return ruleset.start_draw_tile is StartDrawTile.KEEP


def _counts_penalties(ruleset: Ruleset) -> bool:
    """Returns whether the lowest total wins, so that losing must cost points."""
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
    ("teams", "score_never_melded", lambda r: _in_pairs(r) and r.score_never_melded is not ScoreNeverMelded.OFF),
    ("teams", "score_winner", lambda r: _in_pairs(r) and r.score_winner is not ScoreWinner.SUM_OF_LOSERS),
    (
        "joker_retrieval_source",
        "joker_retrieval_mode",
        lambda r: r.joker_retrieval_source is JokerRetrievalSource.RACK_ONLY and not _replaces_jokers(r),
    ),
    (
        "joker_retrieval_group_of_three",
        "joker_retrieval_mode",
        lambda r: (
            r.joker_retrieval_group_of_three is JokerRetrievalGroupOfThree.BOTH_COLORS and not _replaces_jokers(r)
        ),
    ),
    (
        "joker_retrieval_end_of_run_free",
        "joker_retrieval_mode",
        lambda r: r.joker_retrieval_end_of_run_free and not _replaces_jokers(r),
    ),
    ("joker_retrieval_reuse", "joker_retrieval_mode", _reuse_has_no_effect),
    (
        "turn_play_after_draw",
        "turn_draw",
        lambda r: r.turn_play_after_draw is not TurnPlayAfterDraw.FORBIDDEN and r.turn_draw is TurnDraw.TWO_RIVER,
    ),
    (
        "clock_increment_seconds",
        "clock_total_seconds",
        lambda r: r.clock_increment_seconds > 0 and r.clock_total_seconds == 0,
    ),
    (
        "clock_flag",
        "clock_total_seconds",
        lambda r: r.clock_flag is not ClockFlag.RESIGN and r.clock_total_seconds == 0,
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
    ("contract_points", "contract", lambda r: r.contract_points > 0 and r.contract is Contract.OFF),
)
"""(first option, second option, whether a ruleset has them in conflict, or the first without effect)."""


def problems(ruleset: Ruleset) -> tuple[OptionProblem, ...]:
    """Returns all problems of a ruleset: numbers in the order of RANGES, then conflicts, then the size of the set."""
    found = [
        OptionProblem(Reason.OPTION_VALUE_INVALID, (option,), str(getattr(ruleset, option)))
        for option, numbers in RANGES.items()
        if getattr(ruleset, option) not in numbers
    ]
    for first, second, conflicts in CONFLICTS:
        if conflicts(ruleset):
            found.append(OptionProblem(Reason.OPTIONS_CONFLICT, (first, second), _text(getattr(ruleset, first))))
    if ruleset.deal_hand_size * ruleset.players_max >= tile_count(ruleset, ruleset.players_max):
        options = ("deal_hand_size", "players_max")
        found.append(OptionProblem(Reason.INSUFFICIENT_TILES, options, str(ruleset.deal_hand_size)))
    return tuple(found)


def _text(value: object) -> str:
    return value.name if isinstance(value, Enum) else str(value).lower()
