from dataclasses import replace

import pytest

from engine.discard.named_hands import NamedHand
from engine.discard.presets import GAME_OPTIONS, PRESET_TEXTS, PRESETS, chosen, preset_named, problems_of, stated
from engine.discard.ruleset import (
    OKEY,
    OPTIONS,
    PoolEmpty,
    Preset,
    Ruleset,
    ScoreSystem,
    TakenDiscard,
    Teams,
    WildRetrieval,
    WildTiles,
    problems,
    with_options,
)
from engine.family import DEFAULT_RULESET, presets_of, presets_with
from engine.melding import presets as melding_presets
from engine.melding.ruleset import Preset as MeldingPreset
from engine.options import OptionProblem
from engine.room_settings import DEFAULT_SETTINGS, SETTINGS, RoomSettings
from engine.tiles import FALSE_JOKER, JOKER
from engine.violations import Reason


@pytest.mark.parametrize("preset", Preset)
def test_a_preset_is_valid_and_has_its_texts(preset: Preset) -> None:
    assert PRESETS[preset].preset is preset
    assert problems_of(PRESETS[preset], DEFAULT_SETTINGS) == ()
    text = PRESET_TEXTS[preset]
    assert all((text.title, text.summary, text.source))
    assert preset_named(preset.name) is preset
    assert presets_with(preset.name) is presets_of(PRESETS[preset])


def test_no_two_families_have_a_preset_of_one_name() -> None:
    assert not set(Preset.__members__) & set(MeldingPreset.__members__)
    assert preset_named("SABRA") is None
    assert presets_with("SABRA") is melding_presets
    assert DEFAULT_RULESET.preset is MeldingPreset.SABRA


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"match_rounds": 101}, [(Reason.OPTION_VALUE_INVALID, ("match_rounds",), "101")]),
        ({"score_start": 4}, [(Reason.OPTION_VALUE_INVALID, ("score_start",), "4")]),
        ({"score_start": 22}, [(Reason.OPTION_VALUE_INVALID, ("score_start",), "22")]),
        ({"players_min": 4, "players_max": 3}, [(Reason.OPTIONS_CONFLICT, ("players_min", "players_max"), "4")]),
        (
            {"teams": Teams.PAIRS},
            [(Reason.OPTIONS_CONFLICT, ("teams", "players_min"), "PAIRS")],
        ),
        ({"hand_size": 21}, [(Reason.OPTIONS_CONFLICT, ("hand_size", "melds_on_table"), "21")]),
        ({"opening_points": 51}, [(Reason.OPTIONS_CONFLICT, ("opening_points", "melds_on_table"), "51")]),
        ({"opening_pairs": 4}, [(Reason.OPTIONS_CONFLICT, ("opening_pairs", "melds_on_table"), "4")]),
        ({"opening_rises": True}, [(Reason.OPTIONS_CONFLICT, ("opening_rises", "melds_on_table"), "true")]),
        ({"pair_opener_tiles": 2}, [(Reason.OPTIONS_CONFLICT, ("pair_opener_tiles", "melds_on_table"), "2")]),
        (
            {"score_discard_penalty": 0},
            [(Reason.OPTIONS_CONFLICT, ("score_discard_penalty", "score_system"), "0")],
        ),
        ({"score_false_finish": 21}, [(Reason.OPTION_VALUE_INVALID, ("score_false_finish",), "21")]),
        ({"score_return_penalty": 9}, [(Reason.OPTIONS_CONFLICT, ("score_return_penalty", "score_system"), "9")]),
        (
            {"melds_on_table": True},
            [(Reason.OPTIONS_CONFLICT, ("melds_on_table", "score_system"), "true")],
        ),
        (
            {"score_system": ScoreSystem.OKEY_101, "score_start": 9, "score_false_finish": 2},
            [
                (Reason.OPTIONS_CONFLICT, ("show_indicator", "score_system"), "true"),
                (Reason.OPTIONS_CONFLICT, ("score_system", "melds_on_table"), "OKEY_101"),
                (Reason.OPTIONS_CONFLICT, ("score_system", "match_rounds"), "OKEY_101"),
                (Reason.OPTIONS_CONFLICT, ("score_start", "score_system"), "9"),
                (Reason.OPTIONS_CONFLICT, ("score_false_finish", "score_system"), "2"),
            ],
        ),
    ],
)
def test_options_out_of_range_or_in_conflict(options: dict[str, object], expected: list[tuple[object, ...]]) -> None:
    assert list(problems(with_options(OKEY, options))) == [OptionProblem(*problem) for problem in expected]  # type: ignore[arg-type]


def test_no_pairs_leave_no_limit_for_those_who_open_with_them() -> None:
    rules = replace(PRESETS[Preset.OKEY_101], opening_pairs=0, pair_opener_tiles=2)
    conflict = OptionProblem(Reason.OPTIONS_CONFLICT, ("pair_opener_tiles", "opening_pairs"), "2")
    assert problems(rules) == (conflict,)


@pytest.mark.parametrize(
    ("preset", "options", "conflict"),
    [
        (Preset.OKEY, {"wild_tiles": WildTiles.JOKERS}, ("wild_tiles", "melds_on_table")),
        (Preset.OKEY, {"taken_discard": TakenDiscard.KEPT_BEFORE_OPENING}, ("taken_discard", "melds_on_table")),
        (Preset.OKEY, {"pool_empty": PoolEmpty.DISCARD_TAKEN_OR_ENDS}, ("pool_empty", "melds_on_table")),
        (Preset.OKEY_101, {"trump": True}, ("trump", "wild_tiles")),
        (Preset.OKEY_101, {"wild_retrieval": WildRetrieval.LAID_AT_ONCE}, ("wild_retrieval", "opening_pairs")),
        (Preset.AMERICAN, {"concealed_wins": True}, ("concealed_wins", "score_system")),
        (Preset.OKEY_101, {"score_trump_twin": 25}, ("score_trump_twin", "trump")),
        (Preset.OKEY_101, {"score_round_up": True}, ("score_round_up", "score_system")),
        (Preset.AMERICAN, {"wild_tiles": WildTiles.OKEY, "trump": False}, ("score_system", "wild_tiles")),
        (Preset.AMERICAN, {"score_discard_penalty": 9}, ("score_discard_penalty", "score_system")),
        (Preset.AMERICAN, {"match_rounds": 0}, ("score_system", "match_rounds")),
        (Preset.AMERICAN, {"teams": Teams.PAIRS, "players_min": 4}, ("teams", "score_system")),
        (Preset.INTERNATIONAL, {"hand_size": 15}, ("concealed_wins", "hand_size")),
    ],
)
def test_options_of_games_with_jokers_in_conflict(
    preset: Preset, options: dict[str, object], conflict: tuple[str, str]
) -> None:
    found = problems(with_options(PRESETS[preset], options))
    assert [(problem.reason, problem.options) for problem in found] == [(Reason.OPTIONS_CONFLICT, conflict)]


def test_games_with_jokers_lay_no_pairs() -> None:
    found = problems(replace(PRESETS[Preset.AMERICAN], opening_pairs=3))
    assert [problem.options for problem in found] == [
        ("wild_retrieval", "opening_pairs"),
        ("score_system", "opening_pairs"),
    ]


def test_own_hands_are_stated_beside_the_preset() -> None:
    hands = (NamedHand("TWO_COLORS", (90, 80, 70), colors_max=2),)
    ruleset, settings = chosen(Preset.INTERNATIONAL, {"hands": hands, "opening_points": 30})
    assert stated(ruleset, settings) == {"hands": hands, "opening_points": 30}


def test_every_option_has_a_place_in_the_contract() -> None:
    assert [row.path for row in OPTIONS.values()] == [
        ("deal", "players_min"),
        ("deal", "players_max"),
        ("deal", "teams"),
        ("deal", "hand_size"),
        ("deal", "wild_tiles"),
        ("deal", "trump"),
        ("melds", "run_one_high"),
        ("melds", "melds_on_table"),
        ("opening", "points"),
        ("opening", "pairs"),
        ("opening", "rises"),
        ("turn", "show_indicator"),
        ("turn", "pair_opener_tiles"),
        ("turn", "taken_discard"),
        ("turn", "wild_retrieval"),
        ("turn", "concealed_wins"),
        ("turn", "pool_empty"),
        ("scoring", "system"),
        ("scoring", "start"),
        ("scoring", "discard_penalty"),
        ("scoring", "return_penalty"),
        ("scoring", "false_finish"),
        ("scoring", "trump_twin"),
        ("scoring", "round_up"),
        ("game_end", "match_rounds"),
    ]
    assert set(GAME_OPTIONS) == set(OPTIONS) | set(SETTINGS)


def test_a_game_is_stated_by_what_differs_from_its_preset() -> None:
    ruleset, settings = chosen(Preset.OKEY_PARTNERS, {"score_start": 9, "turn_time_limit_seconds": 20})
    assert ruleset == replace(PRESETS[Preset.OKEY_PARTNERS], score_start=9)
    assert settings == RoomSettings(turn_time_limit_seconds=20)
    assert stated(ruleset, settings) == {"score_start": 9, "turn_time_limit_seconds": 20}
    assert chosen(ruleset.preset, stated(ruleset, settings)) == (ruleset, settings)


def test_the_tile_set_has_two_of_each_tile_and_two_false_jokers() -> None:
    assert len(Ruleset().tiles(2)) == len(Ruleset().tiles(4)) == 106
    assert Ruleset().points_at_start == 20
    assert Ruleset(score_start=7).points_at_start == 7
    assert PRESETS[Preset.OKEY_101].points_at_start == 0


def test_games_with_jokers_have_two_of_them_and_no_false_ones() -> None:
    tiles = PRESETS[Preset.AMERICAN].tiles(3)
    assert (len(tiles), tiles.count(JOKER), tiles.count(FALSE_JOKER)) == (106, 2, 0)
