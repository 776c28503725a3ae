"""A view of a game to which a change is applied equals the view that the server makes after the change."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from engine.actions import Action, AnnounceRematch, Join, Leave, Resign, SetReady, StartGame, StartNextRound, TimeOut
from engine.discard.ruleset import PLAYERS_MOST
from engine.events import PlayerKicked, PlayerLeft
from engine.game import Aborted, Finished, Game, Playing
from engine.melding.actions import ClaimError, DrawTile, LayOnRiver, Pass, PlayTiles, RequestRedeal
from engine.melding.game import round_of, rules_of
from engine.melding.melds import ProposedMeld
from engine.melding.presets import PRESETS
from engine.melding.round import Choosing
from engine.melding.ruleset import (
    SABRA,
    DealThreePairsReshuffle,
    JokersDeclaration,
    MatchEnd,
    PoolEmptyMode,
    Preset,
    TurnDraw,
    TurnInvalidSubmission,
    TurnPlayAfterDraw,
)
from engine.seats import HOST
from engine.turns import Applied, apply, create
from rummikub.v1 import game_pb2
from service.app.views import change_view, snapshot_view
from service.codec.games import encode_change, encode_game
from service.model.change import Entry
from service.model.record import Listing, Record, Visibility
from support.fold import FOLDS, fold
from support.okey_games import random_101_ruleset, random_joker_ruleset
from support.okey_games import random_changes as discard_changes
from support.okey_games import random_ruleset as random_okey_ruleset
from support.random_play import ANALYSIS, players_of, random_changes, random_room, random_shuffle, time_of
from support.rooms import Rules, parts, room

pytestmark = pytest.mark.slow

GAME_ID = "a" * 32
LISTING = Listing(Visibility.PUBLIC, "ABC234", (("club", "north"),))
LARGE_HANDS = replace(SABRA, deal_hand_size=21, deal_three_pairs_reshuffle=DealThreePairsReshuffle.ON_REQUEST)
LAST_TURNS = replace(SABRA, deal_hand_size=21, players_min=4, pool_empty_mode=PoolEmptyMode.ONE_LAST_CHANCE)
VARIANTS = (
    SABRA,
    LARGE_HANDS,
    replace(SABRA, turn_draw=TurnDraw.TWO_RIVER),
    replace(SABRA, turn_draw=TurnDraw.TWO_RIVER, turn_invalid_submission=TurnInvalidSubmission.PENALISE),
    replace(SABRA, turn_draw=TurnDraw.UNTIL_PLAYABLE, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES),
    replace(SABRA, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES),
    replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM),
    replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE, penalty_tiles=3),
    replace(SABRA, pool_empty_mode=PoolEmptyMode.ONE_LAST_CHANCE, jokers_declaration=JokersDeclaration.ALWAYS_EXPLICIT),
)
"""Rules under which rare events happen."""
OF_OWN_FORM = (Preset.SABRA, Preset.CROSS, Preset.TWIST, Preset.SHANGHAI)
"""The presets whose tables, jokers or results have a form of their own."""


class Views:
    """The views of a game, which follow its changes by `fold`."""

    def __init__(self, players: int) -> None:
        self.views = {seat: self._uncreated(seat) for seat in range(players + 1)}
        self.met = Counter[str]()
        self.created_ms = 0

    def _uncreated(self, seat: int) -> game_pb2.Game:
        game = game_pb2.Game(
            game_id=GAME_ID, seat=seat or None, visibility=game_pb2.VISIBILITY_PUBLIC, labels={"club": "north"}
        )
        if seat:
            game.join_code = LISTING.join_code
        return game

    def follow(self, applied: Applied, now_ms: int) -> None:
        """Folds a change into each view and compares it with the server's."""
        self.created_ms = self.created_ms or now_ms
        game, events = applied.game, applied.events
        etag = f"{game.revision:032x}"
        record = Record(GAME_ID, game, etag, (), self.created_ms, now_ms, LISTING)
        entry = Entry(game.revision, etag, now_ms, bytes(16), events)
        left = {event.seat for event in events if isinstance(event, PlayerLeft | PlayerKicked)}
        for viewer, view in self.views.items():
            change = encode_change(change_view(entry, view.seat or None))
            expected = encode_game(
                snapshot_view(record, None if view.seat in left else view.seat or None, record.updated_ms)
            )
            assert fold(view, change) == expected, f"viewer {viewer} after {change}"
            self.views[viewer] = expected
            self.met.update(event.WhichOneof("event") or "" for event in change.events)


def folded_game(seed: int, ruleset: Rules) -> Counter[str]:
    """Plays a random game, compares all views after each change, and returns how often each event happened."""
    players = players_of(ruleset, seed)
    views = Views(players)
    changes = tuple(random_changes(seed, players, ruleset))
    for change in changes:
        views.follow(change.applied, change.now_ms)
    last = changes[-1]
    if last.applied.game.rematch_game_id:
        return views.met
    rematch = apply(last.applied.game, AnnounceRematch("b" * 32), last.now_ms + 1)
    assert isinstance(rematch, Applied)
    views.follow(rematch, last.now_ms + 1)
    return views.met


def careless_action(game: Game, rng: random.Random) -> Action:
    """Returns a random action, which may be refused, of players who often resign and never play a legal meld."""
    join = Join(rng.choice(("Xia", "Yan", "Zoe")))
    if not game.players:
        return join
    anyone = rng.choice([player.seat for player in game.players])
    if not isinstance(game.phase, Playing):
        shuffle = random_shuffle(rules_of(game), rng, len(game.active_seats))
        starts = (StartGame(HOST, shuffle), StartNextRound(anyone, shuffle))
        return rng.choice((Leave(anyone), join, SetReady(anyone, rng.random() < 0.5), *starts))
    round_ = round_of(game)
    seat = round_.turn.seat
    if round_.last_chance and rng.random() < 0.2:
        return Resign(anyone)
    if isinstance(round_.step, Choosing) and rng.random() < 0.03:
        return Resign(seat)
    match rng.randrange(60):
        case 0 if rng.random() < 0.3:
            return Resign(anyone)
        case 2:
            return RequestRedeal(anyone, random_shuffle(rules_of(game), rng, len(game.active_seats)))
        case number if number < 12:
            return PlayTiles(seat, tuple(ProposedMeld((tile,)) for tile in round_.rack(seat).tiles[:1]))
        case number if number < 22 and round_.shown_play:
            return ClaimError(anyone, round_.shown_play.revision, rng.random() < 0.8)
        case number if number < 30 and round_.turn.deadline_ms:
            return TimeOut()
        case _:
            tile = rng.choice(round_.step.tiles if isinstance(round_.step, Choosing) else round_.rack(seat).tiles)
            return rng.choice((DrawTile(seat), LayOnRiver(seat, tile), Pass(seat)))


def careless_game(seed: int, ruleset: Rules) -> None:
    """Plays a game of careless players and compares all views after each change."""
    rng, views, now_ms = random.Random(seed), Views(4), 1_000
    applied = create(*parts(ruleset))
    views.follow(applied, now_ms)
    joins: list[Action] = [Join(name) for name in ("Ada", "Ben", "Cleo", "Dan")]
    while not isinstance(applied.game.phase, Finished | Aborted):
        action = joins.pop() if joins else careless_action(applied.game, rng)
        now_ms = time_of(applied.game, action, now_ms)
        outcome = apply(applied.game, action, now_ms, ANALYSIS)
        if isinstance(outcome, Applied):
            applied = outcome
            views.follow(applied, now_ms)


def games() -> Iterator[tuple[int, Rules]]:
    """Yields seeds and rules of games in which every event happens."""
    for seed in (3, *range(18, 26)):
        yield seed, random_room(random.Random(seed), with_analysis=True)
    rare = (*VARIANTS, *VARIANTS, *(LARGE_HANDS,) * 16, *(room(LAST_TURNS, clock_total_seconds=60),) * 3)
    yield from enumerate(rare, 26)


def folded_game_of_discards(seed: int) -> Counter[str]:
    """Plays a random game of discards, as folded_game does."""
    views = Views(PLAYERS_MOST)
    choose = (random_okey_ruleset, random_101_ruleset, random_joker_ruleset)[seed % 3]
    for change in discard_changes(seed, choose=choose):
        views.follow(change.applied, change.now_ms)
    return views.met


@pytest.mark.parametrize(
    "preset", [*OF_OWN_FORM, *(pytest.param(one, marks=pytest.mark.soak) for one in Preset if one not in OF_OWN_FORM)]
)
def test_every_change_of_a_preset_folds_into_the_view(preset: Preset) -> None:
    folded_game(1, PRESETS[preset])


def test_every_event_folds_into_the_view() -> None:
    met = Counter[str]()
    for seed, ruleset in games():
        met += folded_game(seed, ruleset)
    for seed in (*range(13), 18, 26):
        met += folded_game_of_discards(seed)
    events = {field.name for field in game_pb2.GameEvent.DESCRIPTOR.fields}
    assert set(FOLDS) == events
    assert events - set(met) == set(), "events that did not happen"


@pytest.mark.parametrize("variant", range(len(VARIANTS)))
def test_changes_in_rare_states_fold_into_the_view(variant: int) -> None:
    """Of resignations, time-outs and penalties with pending choices, last turns and an empty pool."""
    rules = replace(VARIANTS[variant], match_end=MatchEnd.FIXED_ROUNDS, match_rounds=3)
    for seed in range(3):
        careless_game(seed, rules)
