import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import get_args

import pytest

from engine.actions import Action, StandIn, StartDueRound, TimeOut
from engine.events import (
    ClockStopped,
    CommonEvent,
    Event,
    GameAborted,
    GameEnded,
    PlayerReadied,
    RoundEnded,
    TurnTimedOut,
)
from engine.game import Game, RoundEnd
from engine.melding.events import (
    ErrorClaimed,
    MeldingEvent,
    TilesPlayed,
    TurnPenalised,
)
from engine.melding.game import round_of
from engine.melding.grid.cells import Cell, Cells, Grid, cells_of, neighbors
from engine.melding.melds import Meld, MeldKind
from engine.melding.presets import PRESETS
from engine.melding.ruleset import (
    OPTIONS,
    SABRA,
    DealThreePairsReshuffle,
    JokersDeclaration,
    Manipulation,
    MatchEnd,
    PoolEmptyMode,
    Preset,
    TurnDraw,
    TurnInvalidSubmission,
    TurnPlayAfterDraw,
    TurnTimeoutDirty,
    TwistColorChangeAtEnd,
    WinCall,
    problems,
)
from engine.melding.table import melds_of
from engine.options import option_problems
from engine.room_settings import SETTINGS, ClockFlag
from engine.tiles import JOKER, SPECIAL_JOKERS, Tile
from support.invariants import RECORD_EVERY, play_checked_game
from support.random_play import RANDOM_SETTINGS, play_random_game, players_of, random_changes, random_room
from support.rooms import parts, room, room_of
from support.soak import few_of

pytestmark = [pytest.mark.unmeasured, pytest.mark.slow]

GAMES_BY_RANDOM_RULES = 12
GAMES_OF_A_PRESET = 1
CHUNKS = 4


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_games_by_random_rules_keep_every_invariant_at_every_state(chunk: int) -> None:
    """`make soak` plays more games."""
    for seed in range(chunk, GAMES_BY_RANDOM_RULES, CHUNKS):
        play_checked_game(seed)


@pytest.mark.parametrize("preset", Preset)
def test_games_by_every_preset_keep_every_invariant_at_every_state(preset: Preset) -> None:
    """`make soak GAMES=1000 PRESET=all` plays more games."""
    for seed in range(GAMES_OF_A_PRESET):
        play_checked_game(seed, room_of(preset))


@pytest.mark.parametrize("seed", few_of(range(0, 400, RECORD_EVERY), 2))
def test_games_of_the_cross_layout_keep_every_invariant_and_their_records_play_again(seed: int) -> None:
    play_checked_game(seed, room_of(Preset.CROSS))


@pytest.mark.parametrize("seed", few_of([1001, 1002, 1004], 1))
def test_every_state_is_the_replay_of_the_events_so_far(seed: int) -> None:
    play_checked_game(seed, thorough=True)


def test_the_same_seed_and_ruleset_give_the_same_game() -> None:
    history = play_random_game(7, 3, SABRA)
    assert play_random_game(7, 3, SABRA) == history
    assert play_random_game(8, 3, SABRA) != history


def test_random_rules_have_every_value_of_every_option() -> None:
    met: set[tuple[str, object]] = set()
    for seed in range(1500):
        ruleset, settings = parts(random_room(random.Random(seed), with_analysis=True))
        assert (problems(ruleset), *option_problems(settings)) == ((),)
        met.update((option, getattr(ruleset, option)) for option in OPTIONS)
        met.update((name, getattr(settings, name)) for name in SETTINGS)
    rows = {**OPTIONS, **{name: SETTINGS[name] for name in RANDOM_SETTINGS}}
    assert [(name, value) for name, row in rows.items() for value in row.usual if (name, value) not in met] == []


class Recorder:
    """Counts events of games."""

    def __init__(self) -> None:
        self.met: Counter[object] = Counter()
        self.table: tuple[Meld, ...] = ()

    def __call__(self, game: Game, events: tuple[Event, ...], action: Action | None) -> None:
        for event in events:
            self.met[type(event)] += 1
            self.record_around(event)
            match event:
                case TilesPlayed():
                    self.record_play(event)
                case TurnTimedOut(tiles=tiles):
                    self.met[f"{len(tiles)} penalty tiles"] += 1
                case ErrorClaimed(_, agrees):
                    self.met["a vote for a claim" if agrees else "a vote against a claim"] += 1
                case RoundEnded(result):
                    self.met[result.end] += 1
                case ClockStopped(_, time_left_ms):
                    self.met["an empty bank"] += time_left_ms == 0
                case _:
                    pass
        if isinstance(action, TimeOut):
            self.met["a time-out with a draft" if action.draft else "a time-out without a draft"] += 1
        self.met["a round that starts by itself"] += isinstance(action, StartDueRound)
        self.met["an action for an absent player"] += isinstance(action, StandIn)
        self.met["a game with bots"] += any(player.bot for player in game.players)
        self.met["a draft played"] += [type(event) for event in events[:2]] == [TurnTimedOut, TilesPlayed]
        self.table = melds_of(round_of(game).table) if game.round else ()

    def record_around(self, event: Event) -> None:
        """Counts events of the lobby and of ends of games."""
        match event:
            case PlayerReadied(_, is_ready):
                self.met["a player who is ready" if is_ready else "a player who is no longer ready"] += 1
            case GameAborted(by_host):
                self.met["an abort by votes"] += not by_host
            case GameEnded(abandoned=True):
                self.met["an abandoned game"] += 1
            case _:
                pass

    def record_play(self, event: TilesPlayed) -> None:
        table = melds_of(event.table)
        new = [meld.tiles for meld in table]
        changed = [meld.tiles for meld in self.table if meld.tiles not in new]
        self.met[f"{min(len(changed), 3)} melds changed"] += 1
        self.met["joker played"] += JOKER in event.tiles
        self.met["joker's meld changed"] += any(JOKER in meld for meld in changed)
        self.met["long run changed"] += any(len(meld) >= 6 for meld in changed)
        self.met["River pulled"] += bool(event.pulled)
        self.met["joker declared"] += any(is_declared(meld) for meld in table)


def is_declared(meld: Meld) -> bool:
    """Returns whether a group has a joker with a declared face among several possible ones."""
    return meld.kind is MeldKind.GROUP and len(meld.tiles) == 3 and [len(faces) for faces in meld.joker_faces] == [1]


MADE_OF = (
    "0 melds changed",
    "1 melds changed",
    "2 melds changed",
    "3 melds changed",
    "joker played",
    "joker's meld changed",
    "joker declared",
    "long run changed",
    "0 penalty tiles",
    "3 penalty tiles",
    "River pulled",
    "a draft played",
    "a time-out with a draft",
    "a time-out without a draft",
    "a vote for a claim",
    "a vote against a claim",
    "a game with bots",
    "a player who is no longer ready",
    "a player who is ready",
    "a round that starts by itself",
    "an abandoned game",
    "an abort by votes",
    "an action for an absent player",
    "an empty bank",
    *get_args(CommonEvent | MeldingEvent),
    *({*RoundEnd} - {RoundEnd.VOID}),
)


DRAFTS = replace(SABRA, turn_timeout_dirty=TurnTimeoutDirty.COMMIT_IF_VALID_ELSE_REVERT)
LARGE_HANDS = replace(DRAFTS, deal_hand_size=21, pool_empty_mode=PoolEmptyMode.ONE_LAST_CHANCE)
RARE = (
    replace(DRAFTS, turn_draw=TurnDraw.TWO_RIVER, jokers_declaration=JokersDeclaration.ALWAYS_EXPLICIT),
    replace(LARGE_HANDS, deal_three_pairs_reshuffle=DealThreePairsReshuffle.ON_REQUEST),
    replace(DRAFTS, turn_draw=TurnDraw.UNTIL_PLAYABLE),
    replace(DRAFTS, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES, win_call=WinCall.REQUIRED),
    replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM),
    room_of(Preset.GUIDE_B),
    room_of(Preset.CAROUSEL),
    room(DRAFTS, absent_after_timeouts=1, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2),
    room(DRAFTS, clock_total_seconds=5, clock_flag=ClockFlag.TIME_OUT_EACH_TURN),
)
"""Rules under which rare events happen."""


def test_random_games_have_every_kind_of_event() -> None:
    recorder = Recorder()
    for seed in takewhile(lambda _: not all(recorder.met[part] for part in MADE_OF), range(300)):
        ruleset = RARE[seed % 10] if seed % 10 < len(RARE) else random_room(random.Random(seed), with_analysis=True)
        play_random_game(seed, players_of(ruleset, seed), ruleset, recorder)
    assert [part for part in MADE_OF if not recorder.met[part]] == []


@pytest.mark.parametrize("seed", few_of(range(0, 400, RECORD_EVERY), 2))
def test_games_of_twist_keep_every_invariant_and_their_records_play_again(seed: int) -> None:
    play_checked_game(seed, room_of(Preset.TWIST))


TWIST = PRESETS[Preset.TWIST]
MANY_SPECIAL = replace(
    TWIST,
    geometry_jokers=4,
    twist_mirror_half_min=1,
    twist_color_change_at_end=TwistColorChangeAtEnd.ALLOWED,
    turn_invalid_submission=TurnInvalidSubmission.PENALISE,
)


def test_random_games_of_twist_have_every_kind_of_play() -> None:
    kinds = {*SPECIAL_JOKERS, "joined", "an illegal play"}
    met: set[object] = set()
    for seed in takewhile(lambda _: not kinds <= met, range(60)):
        before: tuple[Meld, ...] = ()
        for change in random_changes(seed, 2, (TWIST, MANY_SPECIAL)[seed % 2]):
            for event in change.applied.events:
                match event:
                    case TilesPlayed():
                        table = melds_of(event.table)
                        met.update(SPECIAL_JOKERS.intersection(event.tiles))
                        met.update(["joined"] if len(table) < len(before) else [])
                        before = table
                    case TurnPenalised():
                        met.add("an illegal play")
                    case _:
                        pass
    assert kinds <= met


CROSS = PRESETS[Preset.CROSS]
GRIDS = (
    CROSS,
    replace(CROSS, geometry_jokers=4, manipulation=Manipulation.FREE),
    replace(CROSS, geometry_jokers=4, turn_invalid_submission=TurnInvalidSubmission.PENALISE),
)


def test_random_games_of_the_cross_layout_have_every_kind_of_play() -> None:
    kinds = {"free", "joined", "crossing", "joker replaced", "table moved", "an illegal play"}
    met: set[str] = set()
    for seed in takewhile(lambda _: met != kinds, range(60)):
        cells: dict[Cell, Tile] = {}
        for change in random_changes(seed, 2, GRIDS[seed % len(GRIDS)]):
            for event in change.applied.events:
                match event:
                    case TilesPlayed(table=Grid() as table):
                        before, cells = cells, cells_of(table)
                        met.update(kinds_of_play(before, cells))
                    case TurnPenalised():
                        met.add("an illegal play")
                    case _:
                        pass
    assert met == kinds


def kinds_of_play(before: Cells, after: Cells) -> Iterator[str]:
    """Yields what a play on a grid does."""
    if any(t != JOKER and after.get(cell) != t for cell, t in before.items()):
        yield "table moved"
        return
    new = [cell for cell in after if cell not in before]
    yield "joined" if any(near in before for cell in new for near in neighbors(cell)) else "free"
    for cell in new:
        left, right, above, below = (near in after for near in neighbors(cell))
        if (left or right) and (above or below):
            yield "crossing"
    if any(t == JOKER and after[cell] != JOKER for cell, t in before.items()):
        yield "joker replaced"
