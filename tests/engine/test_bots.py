"""Tests for bots: the action of each level in a position, its legality, and whole games."""

import copy
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from engine.actions import Action, Join, Resign, StartGame, StartNextRound
from engine.effort import Budget
from engine.family import bots_of
from engine.game import Finished, Game, Playing, RoundEnd, RoundOver, bots_to_act
from engine.melding.actions import ClaimError, LayOnRiver, PlayTiles
from engine.melding.bots import action_without_play, action_without_search, choose_action
from engine.melding.events import ErrorClaimed, TilesPlayed, TurnPenalised
from engine.melding.game import round_of
from engine.melding.melds import ProposedMeld
from engine.melding.presets import PRESETS
from engine.melding.round import Choosing, Drawn, ShownPlay, Step
from engine.melding.ruleset import (
    SABRA,
    Contract,
    InitialMeldCount,
    InitialMeldSameTurnTablePlay,
    JokerKinds,
    JokersDeclaration,
    JokersMaxPerMeld,
    PoolEmptyStuckTest,
    Preset,
    Ruleset,
    TurnDraw,
    TurnInvalidSubmission,
    TurnPlayAfterDraw,
    TurnVoluntaryDraw,
    WinCall,
)
from engine.melding.skills import skill_of
from engine.notation import format_rack, format_tile, format_tiles, parse_tile, parse_tiles
from engine.seats import HOST, BotLevel
from engine.sight import see
from engine.skill import ALL
from engine.turns import Applied, apply, create
from engine.violations import Reason, Refused
from support.invariants import Invariants
from support.positions import NOW, do, game_at, is_a, lobby
from support.random_play import random_ruleset, random_shuffle
from support.soak import few_of

pytestmark = pytest.mark.slow

LITTLE = Budget(nodes=800, change_nodes=50)
"""A budget that is enough for most positions of a game."""
ENOUGH = Budget(nodes=100_000)
"""A budget for mandatory plays that the small one does not find."""
MOST_CHANGES = 5_000
RANDOM_SEEDS = few_of(range(12), 4)
LEVELS = tuple(BotLevel)
BEGINNER, EASY, MEDIUM, HARD, EXPERT, MASTER = LEVELS

PLAYS_FIRST = replace(SABRA, turn_voluntary_draw=TurnVoluntaryDraw.ONLY_IF_NO_PLAY)
RIVER = replace(SABRA, turn_draw=TurnDraw.TWO_RIVER)
CLAIMS = replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM)


def of_bots(game: Game, level: BotLevel) -> Game:
    """Returns a game in which all players are bots of a level."""
    return replace(game, players=tuple(replace(player, bot=level) for player in game.players))


def in_step(game: Game, step: Step) -> Game:
    """Returns a game with another step of its turn."""
    return replace(game, phase=Playing(replace(round_of(game), step=step)))


def what(game: Game, level: BotLevel, seat: int = 1) -> str:
    """Returns the tiles that a bot plays, or its other action, which the rules must accept."""
    view = see(game, seat)
    action = bots_of(view).choose_action(view, level, LITTLE)
    events = do(game, action).events
    plays = [event for event in events if isinstance(event, TilesPlayed)]
    return format_rack(plays[0].tiles) if plays else type(action).__name__


# Plays

TAKEN_APART = "[R5 R6 R7 R8] / 1*{B8 K8 O1} 2{B1} / {%s} / 1"
"""A position in which one table tile forms a group with two rack tiles."""

POSITIONS: Mapping[str, tuple[str, str]] = {
    "melds of the rack": (". / 1*{R9 B9 K9 O1} 2{B1} / {R1} / 1", "{R9 B9 K9}"),
    "a tile at an end": ("[R3 R4 R5] / 1*{R6 R9 B9 K9 O1} 2{B1} / {R1} / 1", "{R6 R9 B9 K9}"),
    "tiles one after the other": ("[R3 R4 R5] | [B7 K7 O7] / 1*{R1 R2 R6 R7 O1} 2{B1} / {R1} / 1", "{R1 R2 R6 R7}"),
    "the missing color": ("[R9 B9 K9] / 1*{O9 O1} 2{B1} / {R1} / 1", "{O9}"),
    "a meld taken apart": (TAKEN_APART % "R1", "{B8 K8}"),
    "a joker": ("[R3 R4 R5] / 1*{O9 J} 2{B1} / {R1} / 1", "{J}"),
    "a joker in a meld": (". / 1*{R9 B9 O1 J} 2{B1} / {R1} / 1", "{R9 B9 J}"),
    "no play": (". / 1*{R9 B8 O1} 2{B1} / {R1} / 1", "DrawTile"),
    "no play and no pool": (". / 1*{R9 B8 O1} 2{B1} / {} / 1", "Pass"),
    "too little for the initial meld": (". / 1{R9 B9 K9 O1} 2{B1} / {R1} / 1", "DrawTile"),
    "two melds for the initial meld": (". / 1{R2 R3 R4 R9 B9 K9 O1} 2{B1} / {R1} / 1", "{R2 R3 R4 R9 B9 K9}"),
    "a table not to be touched yet": ("[R3 R4 R5] / 1{R6 R10 B10 K10} 2{B1} / {R1} / 1", "{R10 B10 K10}"),
}
"""A position of a bot with the turn, and the play of the level that overlooks nothing."""


@pytest.mark.parametrize("name", POSITIONS)
def test_an_expert_finds_the_best_play(name: str) -> None:
    position, expected = POSITIONS[name]
    assert what(game_at(position), EXPERT) == expected


def turns_of(position: str, count: int = 120) -> list[Game]:
    """Returns a position in many turns, each with oversights of its own."""
    game = game_at(position)
    round_ = round_of(game)
    turns = (replace(round_, turn=replace(round_.turn, revision=revision)) for revision in range(count))
    return [replace(game, phase=Playing(turn)) for turn in turns]


@pytest.mark.parametrize(
    ("position", "play"),
    [
        (TAKEN_APART % "R1", "{B8 K8}"),
        ("[R9 B9 K9] / 1*{O9 O1} 2{B1} / {R1} / 1", "{O9}"),
        (". / 1*{R9 B9 K9 O1} 2{B1} / {R1} / 1", "{R9 B9 K9}"),
    ],
)
def test_weaker_levels_overlook_more(position: str, play: str) -> None:
    """A play that two tiles and a meld need is found about as often as all three are noticed."""
    found = [
        sum(what(game, level) == play for game in turns_of(position))
        for level in (BEGINNER, EASY, MEDIUM, HARD, EXPERT)
    ]
    assert found == sorted(found)
    assert 0 < found[0] < found[-1] == len(turns_of(position))


@pytest.mark.parametrize("preset", Preset)
def test_each_level_notices_more_than_the_one_below(preset: Preset) -> None:
    noticed = [skill_of(level, PRESETS[preset]) or ALL for level in LEVELS]
    rates = [(skill.rack, skill.table, skill.best) for skill in noticed]
    assert rates == sorted(rates)
    assert len({*rates[:-1]}) == len(LEVELS) - 1
    assert noticed[-1] == ALL


@pytest.mark.parametrize(
    ("table", "smallest", "best"),
    [(".", "{R1 R2 R3}", "{R1 R2 R3 B5 B6 B7}"), ("[B8 B9 B10]", "{B7}", "{R1 R2 R3 B5 B6 B7}")],
)
def test_a_weak_bot_that_must_play_lays_the_smallest_play(table: str, smallest: str, best: str) -> None:
    position = f"{table} / 1*{{R1 R2 R3 B5 B6 B7 O13}} 2{{B1}} / {{R1}} / 1"
    games = [replace(game, ruleset=PRESETS[Preset.SHANGHAI]) for game in turns_of(position, 12)]
    assert {what(game, BEGINNER) for game in games} == {smallest}
    assert {what(game, MEDIUM) for game in games} == {smallest, best}
    assert {what(game, MASTER) for game in games} == {best}


def test_of_equal_tiles_and_melds_some_are_overlooked() -> None:
    position = "[R3 R4 R5] | [R3 R4 R5] / 1*{R6 R6 B9} 2{B1} / {R1} / 1"
    assert {what(game, BEGINNER) for game in turns_of(position)} == {"DrawTile", "{R6}", "{R6 R6}"}


def test_the_table_is_used_in_the_turn_of_the_initial_meld_where_that_is_allowed() -> None:
    rules = replace(SABRA, initial_meld_same_turn_table_play=InitialMeldSameTurnTablePlay.ALLOWED)
    game = game_at("[R3 R4 R5] / 1{R6 R10 B10 K10 O1} 2{B1} / {R1} / 1", rules)
    assert what(game, EXPERT) == "{R6 R10 B10 K10}"


@pytest.mark.parametrize("declaration", JokersDeclaration)
def test_a_joker_is_declared_where_it_has_to_be(declaration: JokersDeclaration) -> None:
    rules = replace(SABRA, jokers_declaration=declaration)
    assert what(game_at(". / 1*{R9 B9 O1 J} 2{B1} / {R1} / 1", rules), EXPERT) == "{R9 B9 J}"
    assert what(game_at(". / 1*{R9 J J} 2{B1} / {R1} / 1", rules), EXPERT) == "{R9 J J}"


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_view_gets_the_same_action_for_any_hidden_tiles(level: BotLevel) -> None:
    game = game_at("[R5 R6 R7 R8] / 1*{B8 K8 R9 J O1} 2{B1 B2} / {R1 R2} / 1")
    other = game_at("[R5 R6 R7 R8] / 1*{B8 K8 R9 J O1} 2{R2 B2} / {B1 R1} / 1")
    first = choose_action(see(game, 1), level, LITTLE)
    assert choose_action(see(copy.deepcopy(game), 1), level, LITTLE) == first
    assert choose_action(see(other, 1), level, LITTLE) == first


def test_a_tile_is_added_only_where_the_rules_allow_it() -> None:
    rules = replace(SABRA, contract=Contract.VALUES_BELOW_10)
    game = game_at("[R7 R8 R9] / 1*{R6 R10 O1} 2{B1} / {R1} / 1", rules)
    assert what(game, EXPERT) == "{R6}"


def test_the_melds_that_may_be_laid_are_laid() -> None:
    rules = replace(SABRA, contract=Contract.VALUES_BELOW_10)
    game = game_at(". / 1*{R9 B9 K9 R11 B11 K11} 2{B1} / {R1} / 1", rules)
    assert what(game, EXPERT) == "{R9 B9 K9}"


# Looking ahead


LONG_RUN = "[R3 R4 R5] / 1*{R6 R7 R8 R9 R10 R11 R12 B1} 2*{B2} / {%s} / 1"
"""A position in which each tile that is played helps the other player to go out."""
LITTLE_LEFT = "[R3 R4 R5] / 1*{R6 B1} 2*{B1 B2} / {R1 R2 R9} / 1"


def test_a_master_keeps_tiles_back_that_help_the_next_player_more() -> None:
    game = game_at(LONG_RUN % "R1 R2 R9")
    assert (what(game, EXPERT), what(game, MASTER)) == ("{R6 R7 R8 R9 R10 R11 R12}", "DrawTile")
    assert what(game_at(LITTLE_LEFT), MASTER) == "{R6}"


def test_a_master_waits_with_its_initial_meld_while_others_have_many_tiles() -> None:
    others = "B1 K5 K6 K7 K8 O2 O3 O5 O8 O11 O12 R1 R2 K11"
    assert what(game_at(f". / 1{{R10 B10 K10 O1 O3}} 2{{{others}}} / {{R1}} / 1"), MASTER) == "DrawTile"


def test_a_master_goes_out() -> None:
    assert what(game_at("[R3 R4 R5] / 1*{R6 R7 R8} 2*{B2} / {R1} / 1"), MASTER) == "{R6 R7 R8}"


def test_a_master_does_not_wait_where_it_may_not() -> None:
    played = "{R6 R7 R8 R9 R10 R11 R12}"
    assert what(game_at(LONG_RUN % ""), MASTER) == played
    assert what(game_at(LONG_RUN % "R1", PLAYS_FIRST), MASTER) == played


def test_a_master_plays_on_where_it_cannot_look_ahead() -> None:
    played = "{R6 R7 R8 R9 R10 R11 R12}"
    action = choose_action(see(game_at(LONG_RUN % "R1"), 1), MASTER, Budget(nodes=0))
    assert isinstance(action, PlayTiles)
    assert what(game_at(LONG_RUN % "R1", replace(SABRA, joker_kinds=JokerKinds.TWIST)), MASTER) == played
    limited = replace(SABRA, jokers_max_per_meld=JokersMaxPerMeld.ONE)
    assert what(game_at(LONG_RUN % "R1", limited), MASTER) == played
    assert what(game_at((LONG_RUN % "R1").replace("B1", "B1 M M C C"), PRESETS[Preset.TWIST]), MASTER) == played
    rest = " ".join(format_tile(t) for t in SABRA.tiles(2))
    assert what(game_at((LONG_RUN % "R1").replace("{B2}", f"{{{rest}}}")), MASTER) == played


# Mandatory plays


MUST_PLAY = {
    "no draw while a play exists": ("R1", {"turn_voluntary_draw": TurnVoluntaryDraw.ONLY_IF_NO_PLAY}),
    "only passes are left": ("", {}),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", MUST_PLAY)
def test_every_level_finds_the_play_that_must_be_made(name: str, level: BotLevel) -> None:
    pool, options = MUST_PLAY[name]
    rules = replace(SABRA, **options)  # type: ignore[arg-type]  # options by their names
    assert what(game_at(TAKEN_APART % pool, rules), level) == "{B8 K8}"


@pytest.mark.parametrize("level", LEVELS)
def test_the_initial_meld_is_made_where_it_may_not_be_delayed(level: BotLevel) -> None:
    rules = replace(SABRA, initial_meld_voluntary_delay=False)
    assert what(game_at(". / 1{R10 B10 K10 O1} 2{B1} / {R1} / 1", rules), level) == "{R10 B10 K10}"
    assert what(game_at(". / 1{R9 B9 K9 O1} 2{B1} / {R1} / 1", rules), level) == "DrawTile"


@pytest.mark.parametrize("level", LEVELS)
def test_a_player_need_not_play_after_drawing(level: BotLevel) -> None:
    rules = replace(PLAYS_FIRST, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES)
    game = in_step(game_at("[R3 R4 R5] / 1*{R6 O1} 2{B1} / {R1} / 1", rules), Drawn(parse_tile("R6")))
    assert what(game, level) == "Pass"


def test_a_search_without_budget_falls_back_to_a_simple_play() -> None:
    nothing = Budget(nodes=0)
    game = game_at("[R3 R4 R5] / 1*{R6 R9 B9 K9 O1} 2{B1} / {R1} / 1")
    action = is_a(choose_action(see(game, 1), EXPERT, nothing), PlayTiles)
    assert is_a(do(game, action).events[0], TilesPlayed).tiles == parse_tiles("R6 R9 B9 K9")


# Turns of several steps, calls, votes


@pytest.mark.parametrize(
    ("rack", "count", "played"),
    [
        ("R10 R11 R12 B3 K5 O7", InitialMeldCount.ONE_OR_MORE, ["R10 R11 R12"]),
        ("R10 R11 R12 K11 K12 K13 B3", InitialMeldCount.ONE_OR_MORE, ["R10 R11 R12 K11 K12 K13"]),
        ("R10 R11 R12 K11 K12 K13 B3", InitialMeldCount.SINGLE_MELD, ["R10 R11 R12"]),
        ("R1 R2 R3 B5 B6 B7 K9", InitialMeldCount.ONE_OR_MORE, []),
    ],
)
def test_an_initial_meld_without_budget_is_one_that_counts(
    rack: str, count: InitialMeldCount, played: list[str]
) -> None:
    rules = replace(SABRA, initial_meld_count=count)
    game = game_at(f"[R3 R4 R5] / 1{{{rack}}} 2*{{K13}} / {{B9}} / 1", rules)
    events = do(game, choose_action(see(game, 1), BotLevel.EXPERT, Budget(nodes=0))).events
    assert [format_tiles(one.tiles) for one in events if isinstance(one, TilesPlayed)] == played


def test_a_tile_just_drawn_is_played_only_where_it_may_be() -> None:
    position = "[R3 R4 R5] / 1*{R6 O1} 2{B1} / {R1} / 1"
    for option, expected in ((TurnPlayAfterDraw.OTHER_TILES, "Pass"), (TurnPlayAfterDraw.ALLOWED, "{R6}")):
        game = game_at(position, replace(SABRA, turn_play_after_draw=option))
        assert what(in_step(game, Drawn(parse_tile("R6"))), EXPERT) == expected


def test_another_copy_of_a_tile_just_drawn_is_played() -> None:
    rules = replace(SABRA, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES)
    game = game_at(". / 1*{R9 R9 B9 K9 O1} 2{B1} / {R1} / 1", rules)
    assert what(in_step(game, Drawn(parse_tile("R9"))), EXPERT) == "{R9 B9 K9}"


@pytest.mark.parametrize(
    ("offered", "laid"),
    [("R7 O2", "O2"), ("O2 R7", "O2"), ("J R7", "R7"), ("R6 R7", "R6"), ("O2 O11", "O11"), ("J J", "J")],
)
def test_of_two_tiles_that_which_fits_less_goes_to_the_river(offered: str, laid: str) -> None:
    first, second = parse_tiles(offered)
    game = in_step(game_at(". / 1{R6 B7 K13} 2{B1} / {R1} / 1", RIVER), Choosing((first, second)))
    action = is_a(choose_action(see(game, 1), EASY, LITTLE), LayOnRiver)
    assert format_tile(action.tile) == laid
    assert action_without_search(see(game, 1)) == action
    assert what(game, HARD) == "LayOnRiver"


def test_an_expert_pulls_from_the_river() -> None:
    game = game_at(". / 1*{R9 B9 O1} 2{B1} / {R1} / 1", RIVER, river="K2 K9 K5")
    assert what(game, EXPERT) == "{R9 B9 K9}"
    assert is_a(choose_action(see(game, 1), EXPERT, LITTLE), PlayTiles).river_index == 1


def test_the_win_is_called_and_nothing_else() -> None:
    rules = replace(SABRA, win_call=WinCall.REQUIRED)
    last = game_at(". / 1*{R9 B9 K9} 2{B1} / {R1} / 1", rules)
    assert what(last, EXPERT) == "{R9 B9 K9}"
    assert is_a(choose_action(see(last, 1), EXPERT, LITTLE), PlayTiles).calls_rummikub
    not_last = game_at(". / 1*{R9 B9 K9 O1} 2{B1} / {R1} / 1", rules)
    assert not is_a(choose_action(see(not_last, 1), EXPERT, LITTLE), PlayTiles).calls_rummikub


def test_bots_agree_that_an_illegal_play_is_one() -> None:
    game = of_bots(game_at(". / 1{R9 B9} 2{B1} 3{K1} / {R1 R2 R3} / 1", CLAIMS), MEDIUM)
    person, *bots = game.players
    game = replace(game, players=(replace(person, bot=None), *bots))
    shown = do(game, PlayTiles(1, (ProposedMeld(parse_tiles("R9 B9")),))).game
    assert bots_to_act(shown) == (2, 3)
    vote = choose_action(see(shown, 2), MEDIUM, LITTLE)
    assert vote == action_without_search(see(shown, 2)) == ClaimError(2, shown.revision, agrees=True)
    voted = do(shown, vote)
    assert voted.events == (ErrorClaimed(2, agrees=True),)
    assert bots_to_act(voted.game) == (3,)
    penalised = do(voted.game, choose_action(see(voted.game, 3), MEDIUM, LITTLE))
    assert is_a(penalised.events[1], TurnPenalised).seat == 1
    assert bots_to_act(penalised.game) == (2,)
    assert action_without_search(see(penalised.game, 2)) is None  # the bot has a turn


def test_a_claim_that_has_failed_asks_no_bot() -> None:
    game = of_bots(game_at(". / 1{R9 B9} 2{B1} 3{K1} / {R1} / 1", CLAIMS), EASY)
    round_ = round_of(game)
    shown = ShownPlay(7, (), (Reason.MELD_EMPTY,), against=2)
    assert bots_to_act(replace(game, phase=Playing(replace(round_, shown_play=shown)))) == (1,)


def test_no_other_bot_acts() -> None:
    assert bots_to_act(of_bots(lobby("Ada", "Ben"), EASY)) == ()
    game = game_at(". / 1{R9 B9} 2{B1} 3{K1} / {R1} / 1")
    assert bots_to_act(game) == ()
    assert bots_to_act(of_bots(game, EASY)) == (1,)
    assert bots_to_act(of_bots(do(game, Resign(1)).game, EASY)) == (2,)
    for seat in (2, None):
        with pytest.raises(ValueError, match="seat"):
            choose_action(see(game, seat), EASY, LITTLE)
    with pytest.raises(ValueError, match="no turn"):
        choose_action(see(lobby("Ada"), 1), EASY, LITTLE)


# Whole games


def bot_game(
    ruleset: Ruleset, players: int, seed: int, persons: int = 0, levels: tuple[BotLevel, ...] = LEVELS
) -> Game:
    """Plays a game of bots and checks all invariants. Persons resign in the first round."""
    rng, check = random.Random(seed), Invariants()
    applied = create(ruleset)
    check(applied.game, applied.events)

    def done(action: Action) -> Game:
        nonlocal applied
        outcome = apply(applied.game, action, NOW)
        assert isinstance(outcome, Applied), (action, outcome)
        assert not outcome.violations
        applied = outcome
        check(outcome.game, outcome.events)
        return outcome.game

    for number in range(players):
        done(Join(f"player {number}", None if number < persons else levels[(number + seed) % len(levels)]))
    game = done(StartGame(HOST, random_shuffle(ruleset, rng, players)))
    for seat in range(1, persons + 1):
        game = done(Resign(seat))
    for _ in range(MOST_CHANGES):
        match game.phase:
            case Finished():
                return game
            case RoundOver():
                starter = game.active_seats[0]
                game = done(StartNextRound(starter, random_shuffle(ruleset, rng, len(game.active_seats))))
            case _:
                game = done(bots_answer(game))
    raise AssertionError("the game does not end")


def bots_answer(game: Game) -> Action:
    """Returns the action of a bot, with a longer search if the rules know a play that it has not found."""
    seat = bots_to_act(game)[0]
    view, level = see(game, seat), game.player(seat).bot
    assert level is not None
    action = choose_action(view, level, LITTLE)
    if isinstance(apply(game, action, NOW), Refused):
        assert action == action_without_play(view), "a play of a bot is illegal"
        return choose_action(view, level, ENOUGH)
    return action


@pytest.mark.unmeasured
@pytest.mark.parametrize("preset", few_of(Preset, 6))
def test_bots_play_every_preset_to_its_end(preset: Preset) -> None:
    rules = PRESETS[preset]
    game = bot_game(rules, max(rules.players_min, min(3, rules.players_max)), seed=preset.value)
    assert is_a(game.phase, Finished).winners


@pytest.mark.unmeasured
@pytest.mark.parametrize("seed", RANDOM_SEEDS)
def test_bots_play_random_rulesets_to_their_ends(seed: int) -> None:
    rules = random_ruleset(random.Random(seed), with_analysis=True)
    game = bot_game(rules, rules.players_min, seed)
    assert is_a(game.phase, Finished).winners


@pytest.mark.unmeasured
@pytest.mark.parametrize(("threshold", "end"), [(60, RoundEnd.WENT_OUT), (200, RoundEnd.BLOCKED)])
def test_games_of_experts_end_when_no_player_can_play(threshold: int, end: RoundEnd) -> None:
    stuck = replace(SABRA, pool_empty_stuck_test=PoolEmptyStuckTest.EXACT, initial_meld_threshold=threshold)
    ends = {bot_game(stuck, 4, seed, levels=(EXPERT,)).results[0].end for seed in range(3)}
    assert ends == {end}


@pytest.mark.unmeasured
def test_bots_play_on_when_the_person_among_them_resigns() -> None:
    game = bot_game(SABRA, 4, seed=5, persons=1)
    assert game.player(1).resigned
    assert 1 not in is_a(game.phase, Finished).winners


@pytest.mark.unmeasured
def test_a_better_level_wins_more_often() -> None:
    wins = dict.fromkeys(LEVELS, 0)
    for seed in range(12):
        game = bot_game(SABRA, 2, seed, levels=(BEGINNER, EXPERT))
        for seat in is_a(game.phase, Finished).winners:
            level = game.player(seat).bot
            assert level is not None
            wins[level] += 1
    assert wins[EXPERT] > wins[BEGINNER]
