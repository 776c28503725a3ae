import random
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from engine.events import (
    Event,
    PlayerLeft,
    PlayerResigned,
    RoundEnded,
    TileDrawn,
    TilesPlayed,
    TurnPassed,
    TurnTimedOut,
)
from engine.game import Game, RoundEnd
from engine.melds import Meld
from engine.ruleset import SABRA
from engine.tiles import JOKER, Tile
from invariants import play_checked_game
from random_play import play_random_game, random_ruleset

GAMES = 500
CHUNKS = 10


@pytest.fixture(autouse=True)
def untraced() -> Iterator[None]:
    """Whole games take three times as long while coverage looks on, and the other tests reach every line."""
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_games_keep_every_invariant_at_every_state(chunk: int) -> None:
    for seed in range(chunk, GAMES, CHUNKS):
        play_checked_game(seed)


@pytest.mark.parametrize("seed", [1001, 1002, 1003])
def test_every_state_is_the_replay_of_the_events_so_far(seed: int) -> None:
    play_checked_game(seed, thorough=True)


def test_the_same_seed_and_ruleset_give_the_same_game() -> None:
    history = play_random_game(7, 3, SABRA)
    assert play_random_game(7, 3, SABRA) == history
    assert play_random_game(8, 3, SABRA) != history


class Recorder:
    """Counts what happens in games."""

    def __init__(self) -> None:
        self.met: Counter[object] = Counter()
        self.table: tuple[Meld, ...] = ()

    def __call__(self, game: Game, events: tuple[Event, ...]) -> None:
        for event in events:
            self.met[type(event)] += 1
            match event:
                case TilesPlayed(tiles=tiles, table=table):
                    self.record_play(tiles, [meld.tiles for meld in table])
                case TurnTimedOut(tiles=tiles):
                    self.met[f"{len(tiles)} penalty tiles"] += 1
                case RoundEnded(result):
                    self.met[result.end] += 1
                case _:
                    pass
        self.table = game.round.table if game.round else ()

    def record_play(self, tiles: tuple[Tile, ...], new: list[tuple[Tile, ...]]) -> None:
        changed = [meld.tiles for meld in self.table if meld.tiles not in new]
        self.met[f"{min(len(changed), 3)} melds changed"] += 1
        self.met["joker played"] += JOKER in tiles
        self.met["joker's meld changed"] += any(JOKER in meld for meld in changed)
        self.met["long run changed"] += any(len(meld) >= 6 for meld in changed)


MADE_OF = (
    "0 melds changed",
    "1 melds changed",
    "2 melds changed",
    "3 melds changed",
    "joker played",
    "joker's meld changed",
    "long run changed",
    "0 penalty tiles",
    "3 penalty tiles",
    PlayerLeft,
    PlayerResigned,
    TileDrawn,
    TurnPassed,
    *RoundEnd,
)


def test_random_games_meet_what_games_are_made_of() -> None:
    recorder = Recorder()
    for seed in range(40):
        play_random_game(seed, 2 + seed % 3, random_ruleset(random.Random(seed)), recorder)
    assert [part for part in MADE_OF if not recorder.met[part]] == []
