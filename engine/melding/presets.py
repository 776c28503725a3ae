"""The named rulesets and their texts (listed in docs/options.md)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from engine.melding.ruleset import (
    OPTIONS,
    SABRA,
    DealOrder,
    DealThreePairsReshuffle,
    InitialMeldComparison,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSameTurnTablePlay,
    JokerKinds,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSource,
    JokersAdjacent,
    JokersDeclaration,
    JokersMaxPerMeld,
    MatchEnd,
    PoolEmptyMode,
    PoolEmptyPass,
    Preset,
    Ruleset,
    RunWrap,
    ScoreBlockedPoints,
    ScoreBlockedWinner,
    ScoreNeverMelded,
    ScoreTileValues,
    ScoreWinner,
    StartDrawDetermines,
    StartDrawTile,
    TableLayout,
    TurnDirection,
    TurnDraw,
    TurnInvalidSubmission,
    TurnPlayAfterDraw,
    TurnVoluntaryDraw,
    problems,
    with_options,
)
from engine.options import Option, OptionProblem, PresetText, TextForm, option_problems
from engine.room_settings import DEFAULT_SETTINGS, SETTINGS, RoomSettings


def _preset(preset: Preset, **options: object) -> Ruleset:
    return with_options(SABRA, {"preset": preset, **options})


_SHANGHAI: Final = {
    "geometry_jokers": 0,
    "players_min": 3,
    "players_max": 5,
    "deal_hand_size": 10,
    "initial_meld_needed": False,
    "initial_meld_threshold": 0,
    "turn_draw": TurnDraw.UNTIL_PLAYABLE,
    "turn_voluntary_draw": TurnVoluntaryDraw.ONLY_IF_NO_PLAY,
    "turn_play_after_draw": TurnPlayAfterDraw.ALLOWED,
    "pool_empty_pass": PoolEmptyPass.ONLY_IF_NO_PLAY,
}
"""What Shanghai and Manipulation have in common."""

PRESETS: Final = {
    Preset.SABRA: SABRA,
    Preset.INTL_OFFICIAL: _preset(Preset.INTL_OFFICIAL, pool_empty_pass=PoolEmptyPass.ONLY_IF_NO_PLAY),
    Preset.JUMBO_DE: _preset(Preset.JUMBO_DE, pool_empty_mode=PoolEmptyMode.ONE_LAST_CHANCE),
    Preset.WIKI_EN: _preset(
        Preset.WIKI_EN,
        joker_retrieval_reuse=JokerRetrievalReuse.NEW_MELD_IF_REPLACED,
        pool_empty_pass=PoolEmptyPass.ONLY_IF_NO_PLAY,
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
        initial_meld_comparison=InitialMeldComparison.GREATER_THAN,
        turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM,
        pool_empty_pass=PoolEmptyPass.ONLY_IF_NO_PLAY,
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
        pool_empty_pass=PoolEmptyPass.ONLY_IF_NO_PLAY,
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
        pool_empty_pass=PoolEmptyPass.ONLY_IF_NO_PLAY,
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
    Preset.CAROUSEL: _preset(
        Preset.CAROUSEL,
        geometry_reduced_players=2,
        players_max=5,
        deal_hand_size=10,
        run_wrap=RunWrap.ONE_HIGH,
        initial_meld_needed=False,
        initial_meld_threshold=0,
        turn_draw=TurnDraw.ONE_TO_THREE,
        turn_play_after_draw=TurnPlayAfterDraw.ALLOWED,
        knock_limit=5,
        score_tile_values=ScoreTileValues.COURT_10,
        score_joker_penalty=25,
    ),
    Preset.TAHITI: _preset(
        Preset.TAHITI,
        geometry_jokers=4,
        players_max=5,
        deal_hand_size=5,
        run_wrap=RunWrap.ONE_HIGH,
        jokers_max_per_meld=JokersMaxPerMeld.ONE,
        initial_meld_needed=False,
        initial_meld_threshold=0,
        joker_retrieval_mode=JokerRetrievalMode.LOCKED,
        joker_retrieval_source=JokerRetrievalSource.RACK_ONLY,
        score_tile_values=ScoreTileValues.COURT_10_ACE_11,
    ),
    Preset.GUADALUPE: _preset(
        Preset.GUADALUPE,
        geometry_jokers=0,
        players_max=5,
        deal_hand_size=10,
        run_wrap=RunWrap.ONE_HIGH,
        initial_meld_needed=False,
        initial_meld_threshold=0,
        turn_draw=TurnDraw.ONE_OR_TWO,
        turn_play_after_draw=TurnPlayAfterDraw.ALLOWED,
        score_winner=ScoreWinner.ONE_WIN,
    ),
    Preset.SHANGHAI: _preset(Preset.SHANGHAI, **_SHANGHAI, score_winner=ScoreWinner.ONE_WIN),
    Preset.MANIPULATION: _preset(Preset.MANIPULATION, **_SHANGHAI, score_tile_values=ScoreTileValues.FIVE_OR_TEN),
    Preset.SIX_COLORS: _preset(Preset.SIX_COLORS, geometry_colors=6),
    Preset.CROSS: _preset(Preset.CROSS, table_layout=TableLayout.GRID),
    Preset.TWIST: _preset(Preset.TWIST, joker_kinds=JokerKinds.TWIST),
    Preset.CARDS: _preset(Preset.CARDS),
    Preset.SIX_PLAYERS: _preset(
        Preset.SIX_PLAYERS, geometry_copies=3, geometry_jokers=4, geometry_reduced_players=4, players_max=6
    ),
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
    Preset.CAROUSEL: _NO_LIMIT,
    Preset.TAHITI: _NO_LIMIT,
    Preset.GUADALUPE: _NO_LIMIT,
    Preset.SHANGHAI: _NO_LIMIT,
    Preset.MANIPULATION: _NO_LIMIT,
    Preset.TWIST: _ONE_MINUTE,
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
        "No clock; a first meld above 30; rounds up to 200 points; the others may claim an error together.",
        "the second of the general guides, with its error rule; it plays to an unspecified total, here 200; its "
        "summary lets 30 points do for the first meld",
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
    Preset.CAROUSEL: PresetText(
        "Carousel",
        "A card game: ten cards; a turn begins with one to three; knock with five points or less.",
        "Carousel, a manipulation rummy with cards, as a rules site and rule books for cards have it; one round",
    ),
    Preset.TAHITI: PresetText(
        "Tahiti",
        "A card game: five cards, four jokers, one joker a meld, no initial meld.",
        "Tahiti, a manipulation rummy with cards, as a rule book of rummy games and an Italian page have it, without "
        "the four loose cards on the table",
    ),
    Preset.GUADALUPE: PresetText(
        "Guadalupe",
        "A card game: ten cards, no jokers; a turn begins with one card or two, no initial meld.",
        "Guadalupe, a manipulation rummy with cards; the number of cards and that the ace is high or low are decided "
        "here, and a win counts one point",
    ),
    Preset.SHANGHAI: PresetText(
        "Shanghai",
        "A card game: ten cards, no jokers; who can play must, and who cannot draws until it is possible.",
        "Shanghai, a manipulation rummy with cards; a win counts one point",
    ),
    Preset.MANIPULATION: PresetText(
        "Manipulation",
        "A card game: Shanghai with points: cards below ten cost 5, all others 10.",
        "Manipulation, also known as Finagle, a manipulation rummy with cards, with the cards and the ace of Shanghai",
    ),
    Preset.SIX_COLORS: PresetText(
        "Sabra in six colors",
        "The standard game with 158 tiles: green and purple too, groups of up to six tiles.",
        "a set with six colors that older encyclopedia articles name, sold in Germany",
    ),
    Preset.CROSS: PresetText(
        "Cross layout",
        "Tiles lie in a grid as in a crossword: rows are runs, columns are groups, and no tile moves.",
        "the English encyclopedia's paragraph on French rules, with its example; what it leaves open is decided here",
    ),
    Preset.TWIST: PresetText(
        "Twist",
        "Four kinds of jokers, two of each: regular, double, mirror and color change; one minute a turn.",
        "the publisher's English manual of Rummikub Twist; the Polish rules for the color change; what they leave open "
        "is decided here",
    ),
    Preset.CARDS: PresetText(
        "Sabra with cards",
        "The standard game with two packs of cards: suits are colors, ace to king are 1 to 13.",
        "the encyclopedia articles' game with two packs of cards: Sabra under other names",
    ),
    Preset.SIX_PLAYERS: PresetText(
        "Sabra for up to six",
        "The standard game; five or six play with 160 tiles: three copies of each and four jokers.",
        "the publishers' edition for five and six players, 160 tiles, of which up to four players leave out 54",
    ),
}


def chosen_options(ruleset: Ruleset) -> tuple[str, ...]:
    """Returns the options that must be stated beside the preset to get the ruleset (with_options)."""
    preset = PRESETS[ruleset.preset]
    values = {option: getattr(ruleset, option) for option in OPTIONS}
    differing = {option: value for option, value in values.items() if value != getattr(preset, option)}
    followed = with_options(preset, differing)
    return tuple(option for option in values if option in differing or values[option] != getattr(followed, option))


OTHER_OPTIONS: Final[Mapping[str, TextForm]] = {}
"""The parts of a ruleset that are no options with a row."""


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
