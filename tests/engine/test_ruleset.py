import re
from dataclasses import fields, replace
from enum import Enum

import pytest

from engine.melding.analysis import NEEDS_ANALYSIS, options_needing_analysis
from engine.melding.presets import PRESET_SETTINGS, PRESET_TEXTS, PRESETS, chosen_options, chosen_settings
from engine.melding.presets import chosen as chosen_beside
from engine.melding.ruleset import (
    OPTIONS,
    SABRA,
    Contract,
    JokerKinds,
    JokerRetrievalGroupOfThree,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameMeld,
    JokerRetrievalSource,
    MatchEnd,
    MatchWinner,
    PoolEmptyLastChanceStart,
    PoolEmptyMode,
    PoolEmptyStuckTest,
    Preset,
    Ruleset,
    ScoreBlockedPoints,
    StartDrawDetermines,
    StartDrawTile,
    Teams,
    TurnDraw,
    TurnPlayAfterDraw,
    TwistColorChangeAtEnd,
    problems,
    tile_count,
    with_options,
)
from engine.options import OptionProblem
from engine.room_settings import DEFAULT_SETTINGS
from engine.tiles import JOKER, NATURALS, Color, tile
from engine.violations import Reason
from support.cases import each_of

NUMBERS = sorted(name for name, row in OPTIONS.items() if not isinstance(row.default, Enum))
BOOLS = {name for name in NUMBERS if isinstance(OPTIONS[name].default, bool)}
CHOICES = [(option, value) for option, row in OPTIONS.items() if isinstance(row.default, Enum) for value in row.values]
BY_RETRIEVAL: dict[str, object] = {"joker_retrieval_mode": JokerRetrievalMode.REPLACE}
COMPANIONS: dict[object, dict[str, object]] = {
    Teams.PAIRS: {"players_min": 4},
    JokerRetrievalSource.RACK_ONLY: BY_RETRIEVAL,
    JokerRetrievalGroupOfThree.BOTH_COLORS: BY_RETRIEVAL,
    TurnDraw.ONE_OR_TWO: {"turn_play_after_draw": TurnPlayAfterDraw.ALLOWED},
    TurnDraw.ONE_TO_THREE: {"turn_play_after_draw": TurnPlayAfterDraw.ALLOWED},
    TwistColorChangeAtEnd.ALLOWED: {"joker_kinds": JokerKinds.TWIST},
    PoolEmptyLastChanceStart.NEXT_PLAYER_FIRST: {"pool_empty_mode": PoolEmptyMode.ONE_LAST_CHANCE},
}
"""Other options that a value requires."""


def chosen(**options: object) -> Ruleset:
    return with_options(SABRA, options)


NEEDED_BY_NUMBERS: dict[str, dict[str, object]] = {
    "deal_hand_size": {"players_max": 2},
    "geometry_copies": {"players_max": 2},
    "deal_fixed_jokers": {"players_max": 2},
    "geometry_reduced_players": {"players_max": 6, "geometry_copies": 3},
    "geometry_jokers_per_player": {"geometry_jokers": 0},
    "joker_retrieval_end_of_run_free": BY_RETRIEVAL,
    "initial_meld_needed": {"initial_meld_threshold": 0},
    "twist_mirror_half_min": {"joker_kinds": JokerKinds.TWIST},
    "match_rounds": {"match_end": MatchEnd.FIXED_ROUNDS},
    "match_target_score": {"match_end": MatchEnd.TARGET_SCORE},
    "contract_points": {"contract": Contract.SINGLE_COLOR},
}


def number_companions(option: str, value: int) -> dict[str, object]:
    """Returns the options that a number requires, so that only the number itself is invalid."""
    if option == "players_min":
        return {"players_max": 6} if value <= 6 else {}
    return NEEDED_BY_NUMBERS.get(option, {})


# Options and their values


def test_every_option_has_its_default_among_its_values() -> None:
    assert {field.name for field in fields(Ruleset)} - {"preset"} == set(OPTIONS)
    assert all(OPTIONS[option].values == (False, True) for option in BOOLS)
    assert all(row.default in row.values and set(row.usual) <= set(row.values) for row in OPTIONS.values())


@each_of("option, value", CHOICES)
def test_every_value_can_be_played(option: str, value: Enum) -> None:
    assert problems(chosen(**{option: value, **COMPANIONS.get(value, {})})) == ()


@each_of("option", NUMBERS)
def test_the_ends_of_every_range_can_be_played(option: str) -> None:
    for value in (min(OPTIONS[option].values), max(OPTIONS[option].values)):
        assert problems(chosen(**{**number_companions(option, value), option: value})) == ()


OUT_OF_RANGE = [
    (option, value)
    for option in NUMBERS
    if option not in BOOLS
    for number in {min(OPTIONS[option].values), max(OPTIONS[option].values)}
    for value in (number - 1, number + 1)
    if value not in OPTIONS[option].values
]


@each_of("option, value", OUT_OF_RANGE)
def test_a_number_next_to_its_range_is_named(option: str, value: int) -> None:
    found = problems(chosen(**{**number_companions(option, value), option: value}))
    assert found[0] == OptionProblem(Reason.OPTION_VALUE_INVALID, (option,), str(value))
    beside = {("players_min", "players_max"), ("deal_fixed_jokers", "players_max")}
    beside |= {("geometry_reduced_players", "players_max"), ("geometry_reduced_players", "players_min")}
    assert {problem.options for problem in found[1:]} <= beside, "of players and jokers there may be too few besides"


def test_an_option_has_its_place_in_the_contract() -> None:
    paths = {name: (OPTIONS[name].path, OPTIONS[name].per_second) for name in ("run_wrap", "initial_meld_threshold")}
    assert paths == {
        "run_wrap": (("melds", "run_wrap"), None),
        "initial_meld_threshold": (("initial_meld", "threshold"), None),
    }


def test_a_number_between_those_allowed_is_named() -> None:
    named = OptionProblem(Reason.OPTION_VALUE_INVALID, ("geometry_colors",), "5")
    assert problems(chosen(geometry_colors=5)) == (named,)


@pytest.mark.parametrize("jokers", range(9))
def test_a_game_has_any_number_of_jokers_up_to_eight(jokers: int) -> None:
    assert problems(chosen(geometry_jokers=jokers)) == ()


# Conflicts

PAIRS: dict[str, object] = {"teams": Teams.PAIRS, "players_min": 4}
KEEP: dict[str, object] = {"start_draw_tile": StartDrawTile.KEEP}
FULL_ORDER: dict[str, object] = {"start_draw_determines": StartDrawDetermines.FULL_ORDER}
PENALTIES: dict[str, object] = {"match_winner": MatchWinner.LOWEST_TOTAL, "match_end": MatchEnd.TARGET_SCORE}
IF_REPLACED: dict[str, object] = {"joker_retrieval_reuse": JokerRetrievalReuse.NEW_MELD_IF_REPLACED}


def test_options_that_contradict_each_other_are_both_named() -> None:
    expected = OptionProblem(
        Reason.OPTIONS_CONFLICT, ("joker_retrieval_end_of_run_free", "joker_retrieval_mode"), "true"
    )
    assert problems(chosen(joker_retrieval_end_of_run_free=True)) == (expected,)


@pytest.mark.parametrize(("jokers", "players", "enough"), [(2, 2, True), (2, 3, False), (4, 4, True), (4, 5, False)])
def test_each_player_can_get_a_fixed_joker_only_if_there_are_enough(jokers: int, players: int, enough: bool) -> None:
    found = problems(chosen(deal_fixed_jokers=1, geometry_jokers=jokers, players_max=players))
    expected = OptionProblem(Reason.OPTIONS_CONFLICT, ("deal_fixed_jokers", "players_max"), "1")
    assert found == (() if enough else (expected,))


HARMLESS: list[dict[str, object]] = [
    {"match_rounds": 2, "match_end": MatchEnd.FIXED_ROUNDS},
    {"match_target_score": 100, "match_end": MatchEnd.TARGET_SCORE},
    {"geometry_jokers_per_player": 1, "geometry_jokers": 0},
    {"deal_fixed_jokers": 1, "players_max": 2},
    {"deal_fixed_jokers": 1, "geometry_jokers": 0, "geometry_jokers_per_player": 1},
    KEEP,
    FULL_ORDER,
    PAIRS,
    {**PAIRS, "score_blocked_points": ScoreBlockedPoints.NORMAL},
    {**PENALTIES},
    {"joker_retrieval_source": JokerRetrievalSource.RACK_ONLY, "joker_retrieval_mode": JokerRetrievalMode.LOCKED},
    {"joker_retrieval_end_of_run_free": True, "joker_retrieval_mode": JokerRetrievalMode.LOCKED},
    {"joker_retrieval_reuse": JokerRetrievalReuse.NEW_MELD},
    IF_REPLACED,
    {"turn_play_after_draw": TurnPlayAfterDraw.OTHER_TILES},
    {"turn_play_after_draw": TurnPlayAfterDraw.OTHER_TILES, "turn_draw": TurnDraw.UNTIL_PLAYABLE},
    {"contract_points": 1, "contract": Contract.SUM_AT_MOST_41},
]


@pytest.mark.parametrize("options", HARMLESS)
def test_options_that_go_together_are_no_problem(options: dict[str, object]) -> None:
    assert problems(chosen(**options)) == ()


@pytest.mark.parametrize(
    ("options", "enough"),
    [
        ({"players_max": 5, "deal_hand_size": 21}, True),  # 105 of 106
        ({"players_max": 6, "deal_hand_size": 17}, True),  # 102
        ({"players_max": 6, "deal_hand_size": 18}, False),  # 108
        ({"players_max": 4, "deal_hand_size": 21, "geometry_jokers": 0}, True),  # 84 of 104
        ({"players_max": 6, "deal_hand_size": 21}, False),  # 126
        ({"players_max": 6, "deal_hand_size": 21, "geometry_copies": 3}, True),  # 126 of 158
        ({"players_max": 6, "deal_hand_size": 21, "geometry_colors": 6}, True),  # 126 of 158
    ],
)
def test_one_tile_at_least_must_be_left_for_the_pool(options: dict[str, object], enough: bool) -> None:
    expected = OptionProblem(
        Reason.INSUFFICIENT_TILES, ("deal_hand_size", "players_max"), str(options["deal_hand_size"])
    )
    assert problems(chosen(**options)) == (() if enough else (expected,))


def test_all_problems_are_found_numbers_first_conflicts_then_and_tiles_last() -> None:
    ruleset = chosen(match_rounds=0, players_min=5, players_max=3, penalty_tiles=0, deal_hand_size=36)
    assert [(problem.reason, problem.options) for problem in problems(ruleset)] == [
        (Reason.OPTION_VALUE_INVALID, ("deal_hand_size",)),
        (Reason.OPTION_VALUE_INVALID, ("penalty_tiles",)),
        (Reason.OPTION_VALUE_INVALID, ("match_rounds",)),
        (Reason.OPTIONS_CONFLICT, ("players_min", "players_max")),
        (Reason.OPTIONS_CONFLICT, ("match_rounds", "match_end")),
        (Reason.INSUFFICIENT_TILES, ("deal_hand_size", "players_max")),
    ]


# Options that need an analysis


@pytest.mark.parametrize(
    ("option", "value"), [(option, value) for option, values in NEEDS_ANALYSIS.items() for value in values]
)
def test_options_needing_analysis_are_named_and_no_problem(option: str, value: object) -> None:
    ruleset = chosen(**{option: value})
    assert options_needing_analysis(ruleset) == (option,)
    assert problems(ruleset) == ()


@each_of("option, value", CHOICES)
def test_a_value_needs_an_analysis_only_if_listed(option: str, value: Enum) -> None:
    asks = value in NEEDS_ANALYSIS.get(option, ())
    assert bool(options_needing_analysis(chosen(**{option: value}))) == asks


def test_all_options_needing_an_analysis_are_named() -> None:
    ruleset = chosen(pool_empty_stuck_test=PoolEmptyStuckTest.BOTH, initial_meld_voluntary_delay=False)
    assert options_needing_analysis(ruleset) == ("initial_meld_voluntary_delay", "pool_empty_stuck_test")


# Presets


def test_every_preset_is_valid() -> None:
    assert set(PRESETS) == set(Preset)
    for preset, ruleset in PRESETS.items():
        assert ruleset.preset is preset
        assert problems(ruleset) == ()


def test_every_preset_has_texts_that_fit_a_menu() -> None:
    assert set(PRESET_TEXTS) == set(Preset)
    assert len({text.title for text in PRESET_TEXTS.values()}) == len(Preset)
    for text in PRESET_TEXTS.values():
        assert 3 <= len(text.title) <= 24
        assert not text.title.endswith(".")
        assert 20 <= len(text.summary) <= 100
        assert re.fullmatch(r"[A-Z][^\n]*\.", text.summary)
        assert text.source


def test_presets_that_need_an_analysis() -> None:
    asking = {preset: options_needing_analysis(rules) for preset, rules in PRESETS.items()}
    assert {preset: options for preset, options in asking.items() if options} == {
        Preset.INTL_OFFICIAL: ("pool_empty_pass",),
        Preset.WIKI_EN: ("pool_empty_pass",),
        Preset.GUIDE_B: ("pool_empty_pass",),
        Preset.WIKI_FR: ("pool_empty_pass",),
        Preset.ES: ("pool_empty_pass",),
        Preset.SHANGHAI: ("turn_draw", "turn_voluntary_draw", "pool_empty_pass"),
        Preset.MANIPULATION: ("turn_draw", "turn_voluntary_draw", "pool_empty_pass"),
        Preset.MSO_2019: ("pool_empty_pass", "score_never_melded"),
    }


def test_presets_differ_but_for_cards() -> None:
    rules = {
        preset: (replace(ruleset, preset=Preset.SABRA), PRESET_SETTINGS[preset]) for preset, ruleset in PRESETS.items()
    }
    assert rules[Preset.CARDS] == (SABRA, DEFAULT_SETTINGS)
    others = [one for preset, one in rules.items() if preset is not Preset.CARDS]
    assert len(set(others)) == len(others)


# with_options


@pytest.mark.parametrize("mode", JokerRetrievalMode)
def test_whether_a_joker_may_go_back_follows_a_chosen_mode(mode: JokerRetrievalMode) -> None:
    free = mode is JokerRetrievalMode.FREE
    expected = JokerRetrievalSameMeld.ALLOWED if free else JokerRetrievalSameMeld.FORBIDDEN
    for preset in (SABRA, PRESETS[Preset.WIKI_EN], PRESETS[Preset.ES]):
        own = preset.joker_retrieval_same_meld if mode is preset.joker_retrieval_mode else expected
        assert with_options(preset, {"joker_retrieval_mode": mode}).joker_retrieval_same_meld is own


@pytest.mark.parametrize("mode", JokerRetrievalMode)
@pytest.mark.parametrize("same_meld", JokerRetrievalSameMeld)
def test_whether_a_joker_may_go_back_can_be_chosen(mode: JokerRetrievalMode, same_meld: JokerRetrievalSameMeld) -> None:
    assert chosen(joker_retrieval_mode=mode, joker_retrieval_same_meld=same_meld).joker_retrieval_same_meld is same_meld


def test_without_a_chosen_mode_the_presets_value_stays() -> None:
    wiki = with_options(PRESETS[Preset.WIKI_EN], {"players_max": 3})
    assert wiki == replace(PRESETS[Preset.WIKI_EN], players_max=3)
    assert wiki.joker_retrieval_reuse is JokerRetrievalReuse.NEW_MELD_IF_REPLACED
    assert with_options(SABRA, {}) == SABRA


def test_with_options_keeps_given_options() -> None:
    options = {"joker_retrieval_mode": JokerRetrievalMode.LOCKED}
    with_options(SABRA, options)
    assert options == {"joker_retrieval_mode": JokerRetrievalMode.LOCKED}
    assert Ruleset() == SABRA


# Tiles


def test_how_many_tiles_a_game_has() -> None:
    assert tile_count(SABRA, 4) == 106
    assert tile_count(chosen(geometry_colors=6), 2) == 158
    assert [tile_count(PRESETS[Preset.SIX_PLAYERS], players) for players in (2, 4, 5, 6)] == [106, 106, 160, 160]
    assert PRESETS[Preset.SIX_PLAYERS].copies_of(JOKER) == 4
    assert tile_count(PRESETS[Preset.MACHIAVELLI], 5) == 104
    assert [tile_count(PRESETS[Preset.VATIKAN], players) for players in (2, 3, 5)] == [106, 107, 109]
    by_players = chosen(geometry_jokers=0, geometry_jokers_per_player=1)
    assert [tile_count(by_players, players) for players in (2, 4)] == [106, 108]


def test_how_often_a_game_has_a_tile() -> None:
    green = tile(Color.GREEN, 1)
    assert (SABRA.copies_of(NATURALS[0]), SABRA.copies_of(JOKER), SABRA.copies_of(green)) == (2, 2, 0)
    assert chosen(geometry_colors=6, geometry_copies=3).copies_of(green) == 3
    by_players = chosen(geometry_jokers=0, geometry_jokers_per_player=1, players_max=3)
    assert by_players.copies_of(JOKER) == 3
    assert chosen(geometry_jokers=0).copies_of(JOKER) == 0


@pytest.mark.parametrize("preset", Preset)
@pytest.mark.parametrize("mode", JokerRetrievalMode)
@pytest.mark.parametrize("same_meld", JokerRetrievalSameMeld)
def test_the_chosen_options_of_a_ruleset_give_the_ruleset(
    preset: Preset, mode: JokerRetrievalMode, same_meld: JokerRetrievalSameMeld
) -> None:
    ruleset = replace(PRESETS[preset], joker_retrieval_mode=mode, joker_retrieval_same_meld=same_meld)
    chosen = {option: getattr(ruleset, option) for option in chosen_options(ruleset)}
    assert with_options(PRESETS[preset], chosen) == ruleset


@pytest.mark.parametrize("preset", Preset)
def test_what_is_chosen_beside_a_preset_replaces_its_options_and_settings(preset: Preset) -> None:
    options = {"penalty_tiles": 5, "round_pause_seconds": 7}
    ruleset, settings = chosen_beside(preset, options)
    assert ruleset == replace(PRESETS[preset], penalty_tiles=5)
    assert settings == replace(PRESET_SETTINGS[preset], round_pause_seconds=7)
    assert (chosen_options(ruleset), chosen_settings(preset, settings)) == (
        ("penalty_tiles",),
        ("round_pause_seconds",),
    )


def test_a_preset_has_no_chosen_options() -> None:
    assert [preset for preset, ruleset in PRESETS.items() if chosen_options(ruleset)] == []
    assert [preset for preset, settings in PRESET_SETTINGS.items() if chosen_settings(preset, settings)] == []
