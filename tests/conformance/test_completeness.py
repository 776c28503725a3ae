"""Every option's value, every conflict and every reason has a row that shows it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from conformance.engine_answers import reasons, ruleset_of
from engine.discard.ruleset import OPTIONS as DISCARD_OPTIONS
from engine.discard.ruleset import Preset as DiscardPreset
from engine.melding.analysis import NEEDS_ANALYSIS
from engine.melding.presets import GAME_OPTIONS
from engine.melding.ruleset import Preset, Ruleset, problems
from engine.options import Option, text_of
from engine.violations import Reason
from support.cases import each_of
from support.conformance_cases import (
    Contrast,
    Creation,
    DiscardTurnCase,
    HandCase,
    LittleGame,
    MeldCase,
    MeldText,
    Options,
    PlacementCase,
    TurnCase,
    TurnQuestion,
    load,
    option_value,
)
from support.soak import few_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SUITE = load()
PRESET = "preset"


VALUES = {
    PRESET: tuple(preset.name for preset in Preset),
    **{option: tuple(map(text_of, row.values)) for option, row in GAME_OPTIONS.items() if type(row.default) is not int},
}
"""The options that are enums or booleans, by name; the others are numbers."""

OF_THE_SERVICE = {
    "hints": (
        "tests/service/analysis/test_analysis.py::test_a_game_limits_the_hints_that_its_seats_may_request",
        "tests/service/analysis/test_analysis.py::test_by_default_only_a_person_among_bots_gets_hints",
    ),
    "bots": (
        "tests/engine/test_lobby.py::test_a_room_may_have_no_seats_for_bots",
        "tests/service/grpc_api/test_join_tickets.py::test_quick_play_seats_programs_as_such_and_not_where_bots_are_off",
    ),
    "fair_deal": (
        "tests/service/app/test_fair_deals.py::test_public_games_are_fair_by_default",
        "tests/service/app/test_fair_deals.py::test_the_record_of_two_rounds_can_be_checked",
    ),
    "open_seat": (
        "tests/engine/test_open_seats.py::test_the_setting_decides_who_may_take_over",
        "tests/service/app/test_open_seats.py::test_a_person_plays_on_with_a_token_and_the_rack_of_the_seat",
    ),
    "bot_pause_ms": ("tests/service/app/test_bots.py::test_a_game_slows_its_bots_down",),
}
"""Options that change no game and no view of one, with the tests of all their values."""

OUTCOMES = {
    **{
        option: "a choice of the room"
        for option, row in GAME_OPTIONS.items()
        if not row.stage and option in VALUES and option not in OF_THE_SERVICE
    },
    "deal_order": "decides from which tiles the start is drawn for",
    "start_draw_joker": "decides who starts",
    "start_draw_tile": "decides what is dealt",
    "start_draw_tie": "decides who starts",
    "start_draw_determines": "decides the order of turns",
    "start_player": "decides who starts",
    "start_player_next_rounds": "decides who starts",
    "turn_direction": "decides the order of turns",
    "turn_timeout_dirty": "decides what a time-out does",
    "turn_timeout_clean": "decides what a time-out does",
    "pool_empty_mode": "decides when a round ends",
    "pool_empty_stuck_test": "decides when a round ends",
    "pool_empty_last_chance_start": "decides the order of the last turns",
    "score_blocked_winner": "decides who wins",
    "score_blocked_points": "decides points",
    "score_blocked_tie": "decides who wins",
    "score_never_melded": "decides points",
    "score_winner": "decides points",
    "score_tile_values": "decides points",
    "teams": "decides points",
    "match_end": "decides when a game ends",
    "match_winner": "decides who wins",
}
"""Options that make nothing legal or illegal: each value must lead to another outcome than some other value."""

_LAYING = "tests/engine/discard/test_laying.py::test_a_step_breaks_the_rules_that_its_row_says"
OF_OTHER_TESTS = {
    Reason.TOO_MANY_CHANGES: "tests/engine/test_lobby.py::test_a_lobby_has_a_last_change",
    Reason.BOTS_NOT_ALLOWED: "tests/engine/test_lobby.py::test_a_room_may_have_no_seats_for_bots",
    Reason.NOT_OPENED: _LAYING,
    Reason.OPENING_MIXED: _LAYING,
    Reason.OPENING_BELOW_THRESHOLD: _LAYING,
    Reason.OPENING_PAIRS_TOO_FEW: _LAYING,
    Reason.OKEY_TAKEN_BEFORE_OPENING: _LAYING,
    Reason.OPENED_WITH_PAIRS: _LAYING,
    Reason.PAIRS_NOT_OPENED: _LAYING,
    Reason.TAKEN_TILE_NOT_USED: _LAYING,
    Reason.TOO_MANY_TILES_LAID: _LAYING,
    Reason.FINISH_NEEDS_DISCARD: _LAYING,
}
"""Reasons that need more changes than a row can hold, or a table of 101 Okey, with their test."""

WIDEST = "allows what any other value does"
NARROWEST = "allows nothing that any other value forbids"
NEVER_ILLEGAL_ALONE = {
    ("jokers_max_per_meld", "UNLIMITED_WITH_ONE_NATURAL"): WIDEST,
    ("jokers_declaration", "POSITIONAL"): WIDEST,
    ("jokers_may_lead", "true"): WIDEST,
    ("jokers_beyond_physical", "true"): WIDEST,
    ("initial_meld_comparison", "AT_LEAST"): WIDEST,
    ("initial_meld_count", "ONE_OR_MORE"): WIDEST,
    ("initial_meld_joker", "REPRESENTED_VALUE"): WIDEST,
    ("initial_meld_same_turn_table_play", "ALLOWED"): WIDEST,
    ("initial_meld_required_kind", "ANY"): WIDEST,
    ("initial_meld_voluntary_delay", "true"): WIDEST,
    ("initial_meld_needed", "false"): WIDEST,
    ("turn_voluntary_draw", "ALLOWED"): WIDEST,
    ("deal_three_pairs_reshuffle", "ON_REQUEST"): WIDEST,
    ("manipulation", "FREE"): WIDEST,
    ("joker_retrieval_mode", "FREE"): WIDEST,
    ("joker_retrieval_source", "RACK_OR_TABLE"): WIDEST,
    ("joker_retrieval_reuse", "ANY_MELD"): WIDEST,
    ("joker_retrieval_same_meld", "ALLOWED"): WIDEST,
    ("joker_retrieval_group_of_three", "EITHER_COLOR"): WIDEST,
    ("joker_retrieval_end_of_run_free", "true"): WIDEST,
    ("pool_empty_pass", "ALLOWED"): WIDEST,
    ("win_call", "AUTOMATIC"): WIDEST,
    ("contract", "OFF"): WIDEST,
    ("joker_kinds", "TWIST"): WIDEST,
    ("twist_color_change_at_end", "ALLOWED"): WIDEST,
}
"""Values that make nothing illegal that another value allows."""

NEVER_LEGAL_ALONE = {
    ("jokers_max_per_meld", "ONE"): NARROWEST,
    ("jokers_declaration", "ALWAYS_EXPLICIT"): NARROWEST,
    ("jokers_may_lead", "false"): NARROWEST,
    ("jokers_beyond_physical", "false"): NARROWEST,
    ("initial_meld_comparison", "GREATER_THAN"): NARROWEST,
    ("initial_meld_count", "SINGLE_MELD"): NARROWEST,
    ("initial_meld_joker", "FORBIDDEN"): NARROWEST,
    ("initial_meld_same_turn_table_play", "FORBIDDEN"): NARROWEST,
    ("initial_meld_required_kind", "RUN"): NARROWEST,
    ("initial_meld_voluntary_delay", "false"): NARROWEST,
    ("initial_meld_needed", "true"): NARROWEST,
    ("turn_voluntary_draw", "ONLY_IF_NO_PLAY"): NARROWEST,
    ("deal_three_pairs_reshuffle", "OFF"): NARROWEST,
    ("manipulation", "OFF"): NARROWEST,
    ("joker_retrieval_source", "RACK_ONLY"): NARROWEST,
    ("joker_retrieval_reuse", "NEW_MELD_ALL_RACK"): NARROWEST,
    ("joker_retrieval_same_meld", "FORBIDDEN"): NARROWEST,
    ("joker_retrieval_group_of_three", "BOTH_COLORS"): NARROWEST,
    ("joker_retrieval_end_of_run_free", "false"): NARROWEST,
    ("pool_empty_pass", "ONLY_IF_NO_PLAY"): NARROWEST,
    ("win_call", "REQUIRED"): NARROWEST,
    ("joker_kinds", "STANDARD"): NARROWEST,
    ("twist_color_change_at_end", "FORBIDDEN"): NARROWEST,
}
"""Values that make nothing legal that another value forbids."""

FAMILIES: Mapping[str, tuple[Mapping[str, Option], tuple[str, ...]]] = {
    "SABRA": (GAME_OPTIONS, VALUES[PRESET]),
    "OKEY": (DISCARD_OPTIONS, tuple(preset.name for preset in DiscardPreset)),
}
"""The options and presets of each family, by its default preset. Room settings are asked about in the first one."""

PLAYS: list[tuple[MeldText | TurnQuestion, Options]] = [
    *((case.meld, case.ruleset) for case in SUITE.melds),
    *((case, case.ruleset) for case in SUITE.turns),
    *((one.question, one.ruleset) for one in SUITE.contrasts if isinstance(one.question, MeldText | TurnQuestion)),
]
"""All melds and turns of the files, with their options."""

SAME_AS_SABRA = {"CARDS": "the same rules by the names of playing cards"}
"""Presets that differ from SABRA only by name."""


def contrasts(option: str, family: str = "SABRA", *, creations: bool = False) -> tuple[Contrast, ...]:
    """Returns the contrasts of a family's option: those about games, or those about creating them."""
    return tuple(
        one
        for one in SUITE.contrasts
        if one.option == option and family_of(one) == family and isinstance(one.question, Creation) is creations
    )


def family_of(contrast: Contrast) -> str:
    """Returns the default preset of a contrast's family."""
    preset = next(iter(contrast.answers)) if contrast.option == PRESET else contrast.ruleset.get(PRESET)
    return "OKEY" if preset in FAMILIES["OKEY"][1] else "SABRA"


def is_legal_alone(contrast: Contrast, value: str) -> bool:
    """Whether the subject is legal with this value and illegal with another."""
    return contrast.is_legal(value) and not all(map(contrast.is_legal, contrast.answers))


def is_illegal_alone(contrast: Contrast, value: str) -> bool:
    return not contrast.is_legal(value) and any(map(contrast.is_legal, contrast.answers))


def comes_out_differently(contrast: Contrast, value: str) -> bool:
    return any(answer != contrast.answers[value] for answer in contrast.answers.values())


def is_shown(option: str, value: str, shows: Callable[[Contrast, str], bool], family: str = "SABRA") -> bool:
    return any(shows(contrast, value) for contrast in contrasts(option, family) if value in contrast.answers)


LEGALITY = [
    (option, value)
    for option in VALUES
    if option not in {*OUTCOMES, *OF_THE_SERVICE, PRESET}
    for value in VALUES[option]
]


@each_of("option, value", LEGALITY)
def test_something_is_legal_under_a_value_and_illegal_under_another(option: str, value: str) -> None:
    assert is_shown(option, value, is_legal_alone) != ((option, value) in NEVER_LEGAL_ALONE)


@each_of("option, value", LEGALITY)
def test_something_is_illegal_under_a_value_and_legal_under_another(option: str, value: str) -> None:
    assert is_shown(option, value, is_illegal_alone) != ((option, value) in NEVER_ILLEGAL_ALONE)


def can_be_asked(question: MeldText | TurnQuestion, ruleset: Ruleset) -> bool:
    """Whether the ruleset has no problems and allows the table at the beginning of the turn."""
    table = question.table_before if isinstance(question, TurnQuestion) else ()
    return not problems(ruleset) and not any(reasons(meld, ruleset) for meld in table)


@pytest.mark.parametrize("option", few_of(sorted({each for each, _ in (*NEVER_LEGAL_ALONE, *NEVER_ILLEGAL_ALONE)}), 2))
def test_the_exceptions_hold_for_every_meld_and_turn(option: str) -> None:
    for question, others in PLAYS:
        rulesets = {value: ruleset_of({**others, option: option_value(value)}) for value in VALUES[option]}
        asked = {value: rules for value, rules in rulesets.items() if can_be_asked(question, rules)}
        legal = {value: not reasons(question, rules) for value, rules in asked.items()}
        legal_alone = {(option, value) for value in legal if legal[value] and not all(legal.values())}
        illegal_alone = {(option, value) for value in legal if not legal[value] and any(legal.values())}
        assert not legal_alone & NEVER_LEGAL_ALONE.keys(), question
        assert not illegal_alone & NEVER_ILLEGAL_ALONE.keys(), question


BOUND = {
    "melds_on_table": "requires a value of score_system",
    "score_system": "requires a value of melds_on_table",
}
"""Options that only change together, which is from the preset OKEY to OKEY_101."""

DISCARD_VALUES = [
    ("OKEY", option, text_of(value))
    for option, row in DISCARD_OPTIONS.items()
    if type(row.default) is not int and option not in BOUND
    for value in row.values
]


@each_of(
    "family, option, value",
    [*(("SABRA", option, value) for option in OUTCOMES for value in VALUES[option]), *DISCARD_VALUES],
)
def test_something_comes_out_differently_under_a_value(family: str, option: str, value: str) -> None:
    assert is_shown(option, value, comes_out_differently, family)


@pytest.mark.parametrize(
    "exceptions", [OUTCOMES, OF_THE_SERVICE, NEVER_LEGAL_ALONE, NEVER_ILLEGAL_ALONE, SAME_AS_SABRA]
)
def test_exceptions_are_of_values_that_exist(exceptions: Mapping[str | tuple[str, str], object]) -> None:
    known = {*GAME_OPTIONS, *LEGALITY, *VALUES[PRESET]}
    assert set(exceptions) <= known
    assert all(exceptions.values())


@each_of("test", [*(test for tests in OF_THE_SERVICE.values() for test in tests), *OF_OTHER_TESTS.values()])
def test_the_tests_of_exceptions_exist(test: str) -> None:
    file, name = test.split("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


@each_of("family, preset", [(family, preset) for family, (_, presets) in FAMILIES.items() for preset in presets])
def test_a_case_tells_every_preset_from_the_default(family: str, preset: str) -> None:
    told = is_shown(PRESET, preset, comes_out_differently, family)
    assert told != (preset in SAME_AS_SABRA)
    assert all(family in contrast.answers for contrast in contrasts(PRESET, family))


RANGES: list[tuple[str, str, Sequence[int]]] = [
    (family, option, row.values)
    for family, (options, _) in FAMILIES.items()
    for option, row in options.items()
    if type(row.default) is int
]
"""The options that are numbers, with their values."""


@each_of("family, option, values", [row for row in RANGES if row[1] not in OF_THE_SERVICE])
def test_two_numbers_lead_to_different_answers(family: str, option: str, values: Sequence[int]) -> None:
    asked = contrasts(option, family)
    different = [one for one in asked if any(comes_out_differently(one, value) for value in one.answers)]
    numbers = {int(value) for contrast in different for value in contrast.answers}
    assert len(numbers) >= 2
    assert numbers <= set(values)


@each_of("family, option, values", RANGES)
def test_numbers_next_to_the_range_are_refused(family: str, option: str, values: Sequence[int]) -> None:
    asked = contrasts(option, family, creations=True)
    answers = [(int(value), one.answers[value]) for one in asked for value in one.answers]
    refused = {number for number, answer in answers if f"OPTION_VALUE_INVALID {option}" in answer}
    allowed = {number for number, answer in answers if not answer}
    numbers = set(values)
    neighbors = {other for number in numbers for other in (number - 1, number + 1) if other >= 0} - numbers
    assert {min(numbers), max(numbers)} <= allowed <= numbers
    assert neighbors <= refused
    assert not refused & numbers


@each_of("option, value", [(option, text_of(value)) for option, values in NEEDS_ANALYSIS.items() for value in values])
def test_a_game_shows_what_the_solver_is_asked_for(option: str, value: str) -> None:
    games = [one for one in contrasts(option) if isinstance(one.question, LittleGame) and value in one.answers]
    assert any(comes_out_differently(contrast, value) for contrast in games)


def test_contrasts_are_of_options_and_values_that_exist() -> None:
    for contrast in SUITE.contrasts:
        options, presets = FAMILIES[family_of(contrast)]
        assert contrast.id.split("/")[0] == contrast.option
        assert contrast.option in {PRESET, *options}
        assert len(contrast.answers) >= 2, contrast.id
        row = options.get(contrast.option)
        if row is None or type(row.default) is not int:
            assert set(contrast.answers) <= {*(map(text_of, row.values) if row else presets)}, contrast.id


CONFLICTS = {
    (family, row.name, need.option)
    for family, (options, _) in FAMILIES.items()
    for row in options.values()
    for need in row.needs
} - {("OKEY", "teams", "players_max")}
"""The conflicts. That of partners with fewer players at most never occurs alone: there are four players at least."""


@each_of("family, first, second", sorted(CONFLICTS))
def test_every_conflict_occurs_alone(family: str, first: str, second: str) -> None:
    presets = FAMILIES["OKEY"][1]
    creations = [case for case in SUITE.creations if (case.ruleset.get(PRESET) in presets) is (family == "OKEY")]
    assert (f"OPTIONS_CONFLICT {first} {second}",) in [case.expect for case in creations]


def occurring_alone() -> set[str]:
    """Returns the reasons that are the only reason in some answer."""
    judged: list[MeldCase | TurnCase | PlacementCase | HandCase | DiscardTurnCase] = [
        *SUITE.melds,
        *SUITE.turns,
        *SUITE.placements,
        *SUITE.hands,
        *SUITE.discard_turns,
    ]
    answers = [tuple(breach.reason for breach in case.expect.violations) for case in judged]
    answers += [tuple(problem.split()[0] for problem in case.expect) for case in SUITE.creations]
    answers += [tuple(case.expect.get("refused", ())) for case in SUITE.games]
    for contrast in SUITE.contrasts:
        for given in contrast.answers.values():
            told = given.get("refused", ()) if isinstance(given, Mapping) else given
            answers.append(tuple(problem.split()[0] for problem in told))
    return {answer[0] for answer in answers if len(answer) == 1}


@each_of("reason", [one for one in Reason if one not in OF_OTHER_TESTS])
def test_every_reason_occurs_alone(reason: Reason) -> None:
    assert reason.name in occurring_alone()
