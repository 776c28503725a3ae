"""The named rulesets and their texts (listed in docs/options.md)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from engine.melding.ruleset import (
    OPTIONS,
    SABRA,
    DealOrder,
    DealThreePairsReshuffle,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSameTurnTablePlay,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSource,
    JokersAdjacent,
    JokersDeclaration,
    MatchEnd,
    PoolEmptyMode,
    PoolEmptyPass,
    Preset,
    Ruleset,
    RunWrap,
    ScoreBlockedPoints,
    ScoreBlockedWinner,
    ScoreNeverMelded,
    ScoreWinner,
    StartDrawDetermines,
    StartDrawTile,
    TableLayout,
    TurnDirection,
    TurnInvalidSubmission,
    problems,
    with_options,
)
from engine.options import Option, OptionProblem, PresetText, option_problems
from engine.room_settings import DEFAULT_SETTINGS, SETTINGS, RoomSettings


def _preset(preset: Preset, **options: object) -> Ruleset:
    return with_options(SABRA, {"preset": preset, **options})


PRESETS: Final = {
    Preset.SABRA: SABRA,
    Preset.INTL_OFFICIAL: _preset(Preset.INTL_OFFICIAL, pool_empty_pass=PoolEmptyPass.ONLY_IF_NO_PLAY),
    Preset.JUMBO_DE: _preset(Preset.JUMBO_DE, pool_empty_mode=PoolEmptyMode.ONE_LAST_CHANCE),
    Preset.WIKI_EN: _preset(
        Preset.WIKI_EN,
        joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD_IF_REPLACED,
        score_blocked_winner=ScoreBlockedWinner.FEWEST_TILES,
        score_blocked_points=ScoreBlockedPoints.NORMAL,
        score_never_melded=ScoreNeverMelded.CREDIT_EVERY_OTHER_PLAYER,
    ),
    Preset.GUIDE_A: _preset(
        Preset.GUIDE_A,
        start_draw_tile=StartDrawTile.KEEP,
        jokers_declaration=JokersDeclaration.EXPLICIT_WHEN_TWO,
        initial_meld_count=InitialMeldCount.ONE_MELD_REACHES_THRESHOLD,
        initial_meld_same_turn_table_play=InitialMeldSameTurnTablePlay.ALLOWED,
        joker_retrieval_mode=JokerRetrievalMode.LOCKED,
        joker_retrieval_source=JokerRetrievalSource.RACK_ONLY,
        joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD,
    ),
    Preset.GUIDE_B: _preset(
        Preset.GUIDE_B,
        start_draw_determines=StartDrawDetermines.FULL_ORDER,
        turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM,
        score_blocked_winner=ScoreBlockedWinner.FEWEST_TILES,
        score_blocked_points=ScoreBlockedPoints.NORMAL,
        match_end=MatchEnd.TARGET_SCORE,
    ),
    Preset.WIKI_FR: _preset(
        Preset.WIKI_FR,
        jokers_adjacent=JokersAdjacent.FORBIDDEN,
        initial_meld_joker=InitialMeldJoker.FORBIDDEN,
        joker_retrieval_mode=JokerRetrievalMode.REPLACE,
        joker_retrieval_source=JokerRetrievalSource.RACK_ONLY,
        joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD_TWO_RACK_TILES,
        score_blocked_winner=ScoreBlockedWinner.FEWEST_TILES,
        score_blocked_points=ScoreBlockedPoints.NORMAL,
    ),
    Preset.ES: _preset(
        Preset.ES,
        deal_order=DealOrder.DEAL_FIRST,
        initial_meld_count=InitialMeldCount.SINGLE_MELD,
        initial_meld_joker=InitialMeldJoker.ZERO,
        joker_retrieval_mode=JokerRetrievalMode.REPLACE,
        joker_retrieval_source=JokerRetrievalSource.RACK_ONLY,
        joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD,
        score_blocked_points=ScoreBlockedPoints.NORMAL,
    ),
    Preset.GUIDE_4: _preset(
        Preset.GUIDE_4,
        initial_meld_count=InitialMeldCount.SINGLE_MELD,
        pool_empty_mode=PoolEmptyMode.ONE_LAST_CHANCE,
        score_blocked_points=ScoreBlockedPoints.NORMAL,
    ),
    Preset.BOOK_1978: _preset(
        Preset.BOOK_1978,
        turn_direction=TurnDirection.COUNTERCLOCKWISE,
        initial_meld_threshold=50,
        initial_meld_same_turn_table_play=InitialMeldSameTurnTablePlay.ALLOWED,
        joker_retrieval_mode=JokerRetrievalMode.LOCKED,
        joker_retrieval_source=JokerRetrievalSource.RACK_ONLY,
        joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD_TWO_RACK_TILES,
    ),
    Preset.MSO_2019: _preset(
        Preset.MSO_2019,
        players_max=2,
        deal_fixed_jokers=1,
        deal_three_pairs_reshuffle=DealThreePairsReshuffle.ON_REQUEST,
        pool_empty_pass=PoolEmptyPass.ONLY_IF_NO_PLAY,
        score_joker_penalty=50,
        score_never_melded=ScoreNeverMelded.FLAT_100_OR_200,
    ),
    Preset.VATIKAN: _preset(
        Preset.VATIKAN,
        geometry_jokers=0,
        geometry_jokers_per_player=1,
        players_max=5,
        deal_hand_size=13,
        run_wrap=RunWrap.ONE_HIGH,
        initial_meld_threshold=0,
        initial_meld_required_kind=InitialMeldRequiredKind.RUN,
        initial_meld_same_turn_table_play=InitialMeldSameTurnTablePlay.ALLOWED,
        joker_retrieval_mode=JokerRetrievalMode.REPLACE,
        score_winner=ScoreWinner.ONE_WIN,
    ),
    Preset.MACHIAVELLI: _preset(
        Preset.MACHIAVELLI,
        geometry_jokers=0,
        players_max=5,
        deal_hand_size=15,
        run_wrap=RunWrap.ONE_HIGH,
        initial_meld_threshold=0,
        initial_meld_same_turn_table_play=InitialMeldSameTurnTablePlay.ALLOWED,
        score_winner=ScoreWinner.ONE_WIN,
    ),
    Preset.CROSS: _preset(Preset.CROSS, table_layout=TableLayout.GRID),
    Preset.CARDS: _preset(Preset.CARDS),
    Preset.SIX_PLAYERS: _preset(Preset.SIX_PLAYERS, geometry_copies=3, geometry_jokers=4, players_min=5, players_max=6),
}


_ONE_MINUTE: Final = RoomSettings(turn_time_limit_seconds=60)
_NO_LIMIT: Final = RoomSettings(turn_time_limit_seconds=0)
PRESET_SETTINGS: Final = dict.fromkeys(Preset, DEFAULT_SETTINGS) | {
    Preset.INTL_OFFICIAL: _ONE_MINUTE,
    Preset.JUMBO_DE: _ONE_MINUTE,
    Preset.GUIDE_B: _NO_LIMIT,
    Preset.WIKI_FR: _NO_LIMIT,
    Preset.ES: _NO_LIMIT,
    Preset.GUIDE_4: _NO_LIMIT,
    Preset.BOOK_1978: _NO_LIMIT,
    Preset.MSO_2019: RoomSettings(turn_time_limit_seconds=0, clock_total_seconds=600, clock_increment_seconds=10),
    Preset.VATIKAN: _NO_LIMIT,
    Preset.MACHIAVELLI: _NO_LIMIT,
}
"""The settings of a room that plays by a preset, unless they are chosen."""


GAME_OPTIONS: Final[Mapping[str, Option]] = {**OPTIONS, **SETTINGS}
"""The options of a game's rules and the settings of its room, by name."""


PRESET_TEXTS: Final = {
    Preset.SABRA: PresetText(
        "Sabra",
        "The standard game: an initial meld of 30 points, free rearranging, two minutes a turn.",
        "Sabra as in the publishers' manuals and all five source articles; where they differ, the value that "
        "most of them state",
    ),
    Preset.INTL_OFFICIAL: PresetText(
        "Sabra, international",
        "One minute a turn; once the pool is empty, whoever can play must play.",
        "the international publisher's manual of 2014",
    ),
    Preset.JUMBO_DE: PresetText(
        "Sabra, German",
        "One minute a turn; once the pool is empty, each player has one last turn.",
        "the German publisher's manuals",
    ),
    Preset.WIKI_EN: PresetText(
        "Encyclopedia, English",
        "A replaced joker goes to a new meld; a loser who never melded pays every other player.",
        "the English encyclopedia article, after a 1998 edition; the payment for never melding is our interpretation",
    ),
    Preset.GUIDE_A: PresetText(
        "Locked jokers",
        "Melds with a joker are locked; the initial meld may use the table.",
        "the first of the general guides, without its sentences on drawing until a play is possible",
    ),
    Preset.GUIDE_B: PresetText(
        "Claimed errors",
        "No clock; rounds up to a total of 200; the other players may claim an error together.",
        "the second of the general guides, with its error rule; it plays to an unspecified total, here 200",
    ),
    Preset.WIKI_FR: PresetText(
        "Encyclopedia, French",
        "A joker leaves only by replacement, into a new meld with two tiles of the rack.",
        "the French encyclopedia article; 'one cannot begin with jokers' is applied to the initial meld",
    ),
    Preset.ES: PresetText(
        "Spanish rules",
        "The initial meld is one meld, in which jokers count nothing; jokers leave by replacement.",
        "the Spanish article, with its singular 'combination' taken literally; it does not cover blocked rounds",
    ),
    Preset.GUIDE_4: PresetText(
        "Last turns",
        "The initial meld is one meld; once the pool is empty, each player has one last turn.",
        "the last of the guides, with its singular taken literally; it does not cover blocked rounds",
    ),
    Preset.BOOK_1978: PresetText(
        "Classic of 1978",
        "An initial meld of 50 points, locked jokers, counterclockwise turns.",
        "Sabra of the 1978 book as third parties describe it; the book itself was not available",
    ),
    Preset.MSO_2019: PresetText(
        "Olympiad duel",
        "Two players with one joker each and ten minutes; 100 or 200 penalty points for never melding.",
        "the Mind Sports Olympiad of 2019; its clocks of ten minutes add ten seconds a move, but no more than "
        "it took; here they add ten",
    ),
    Preset.VATIKAN: PresetText(
        "Vatikan",
        "A card game: one joker per player, a run first, the ace is high or low, no points.",
        "Vatikan, a manipulation rummy with cards; a win counts one point",
    ),
    Preset.MACHIAVELLI: PresetText(
        "Machiavelli",
        "A card game: fifteen cards, no jokers, any first meld, the ace is high or low.",
        "Machiavelli, a manipulation rummy with cards, in the version that requires a meld from the rack "
        "first; a win counts one point",
    ),
    Preset.CROSS: PresetText(
        "Cross layout",
        "Tiles lie in a grid as in a crossword: rows are runs, columns are groups, and no tile moves.",
        "the English encyclopedia's paragraph on French rules, with its example; what it leaves open is decided here",
    ),
    Preset.CARDS: PresetText(
        "Sabra with cards",
        "The standard game with two packs of cards: suits are colors, ace to king are 1 to 13.",
        "the encyclopedia articles' game with two packs of cards: Sabra under other names",
    ),
    Preset.SIX_PLAYERS: PresetText(
        "Sabra for five or six",
        "The standard game with 160 tiles: three copies of each tile and four jokers.",
        "the publishers' edition for five and six players, 160 tiles",
    ),
}


def chosen_options(ruleset: Ruleset) -> tuple[str, ...]:
    """Returns the options that must be stated beside the preset to get the ruleset (with_options)."""
    preset = PRESETS[ruleset.preset]
    values = {option: getattr(ruleset, option) for option in OPTIONS}
    differing = {option: value for option, value in values.items() if value != getattr(preset, option)}
    followed = with_options(preset, differing)
    return tuple(option for option in values if option in differing or values[option] != getattr(followed, option))


def chosen(preset: Preset, options: Mapping[str, Any]) -> tuple[Ruleset, RoomSettings]:
    """Returns the ruleset and the settings of a preset with some options and settings replaced."""
    rules = {name: value for name, value in options.items() if name in OPTIONS}
    settings = {name: value for name, value in options.items() if name in SETTINGS}
    return with_options(PRESETS[preset], {"preset": preset, **rules}), replace(PRESET_SETTINGS[preset], **settings)


def chosen_settings(preset: Preset, settings: RoomSettings) -> tuple[str, ...]:
    """Returns the settings that must be stated beside a preset."""
    usual = PRESET_SETTINGS[preset]
    return tuple(name for name in SETTINGS if getattr(settings, name) != getattr(usual, name))


def stated(ruleset: Ruleset, settings: RoomSettings) -> Mapping[str, object]:
    """Returns the options and settings that `chosen` needs beside the preset, with their values."""
    rules = {name: getattr(ruleset, name) for name in chosen_options(ruleset)}
    return rules | {name: getattr(settings, name) for name in chosen_settings(ruleset.preset, settings)}


def problems_of(ruleset: Ruleset, settings: RoomSettings) -> tuple[OptionProblem, ...]:
    """Returns the problems of a ruleset, then those of settings."""
    return (*problems(ruleset), *option_problems(settings))


def preset_named(name: str) -> Preset | None:
    """Returns the preset of a name; None if there is none."""
    return Preset.__members__.get(name)
