"""Turns to send: rounds played in advance by random players or bots in the engine, to be replayed over gRPC.

A game's pool is stored with it, so the same actions have the same effects. So a round can be replayed turn by turn
without reading the answers.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from engine.actions import Join, StartGame, StartNextRound
from engine.deal import Shuffle
from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.effort import Budget
from engine.events import Event
from engine.family import bots_of
from engine.game import Finished, Game, Playing
from engine.melding.actions import ClaimError, DrawTile, PlayTiles
from engine.melding.game import round_of, rules_of
from engine.melding.ruleset import Preset
from engine.melding.table import melds_of
from engine.room_settings import RoomSettings
from engine.seats import HOST, BotLevel
from engine.sight import see
from engine.turns import Applied, apply, create
from engine.unions import Ruleset, TurnAction
from rummikub.v1 import turn_service_pb2
from service.codec.families import codec_of
from support.random_play import random_shuffle, random_table

NAMES: Final = ("Ada", "Ben", "Cleo", "Dan")


@dataclass(frozen=True, slots=True)
class ReplayTurn:
    """A seat and its action."""

    seat: int
    action: TurnAction

    @property
    def is_play(self) -> bool:
        """Returns whether tiles are played."""
        return isinstance(self.action, PlayTiles)

    def request(self, ruleset: Ruleset, game_id: str, request_id: str) -> turn_service_pb2.PlayTurnRequest:
        """Returns the turn as a client sends it, without the etag."""
        request = turn_service_pb2.PlayTurnRequest(game_id=game_id, request_id=request_id)
        codec_of(ruleset).set_action(request, self.action)
        return request


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """A round played in advance.

    Attributes:
        before: All changes of the game before its first turn, creation first, each with the resulting game.
        games: The game before each turn.
        turns: The turns until the end of the round.
    """

    before: tuple[tuple[Game, tuple[Event, ...]], ...]
    games: tuple[Game, ...]
    turns: tuple[ReplayTurn, ...]


LASTING: Final = RoomSettings(turn_time_limit_seconds=86_400)
"""With a clock, as in most games; it never expires during a measurement."""


def rounds(seed: int, ruleset: Ruleset, now_ms: int, players: int = 4) -> Iterator[RecordedRound]:
    """Yields the rounds of a game."""
    rng = random.Random(seed)
    created = create(ruleset, LASTING)
    before = [(created.game, created.events)]

    def change(action: TurnAction | Join | StartGame | StartNextRound) -> None:
        outcome = apply(before[-1][0], action, now_ms)
        if not isinstance(outcome, Applied) or outcome.violations:
            raise AssertionError(f"{action} is refused: {outcome}")
        before.append((outcome.game, outcome.events))

    for name in NAMES[:players]:
        change(Join(name))
    change(StartGame(HOST, _shuffle(ruleset, rng, players)))
    while True:
        history, games, turns = tuple(before), [], []
        while isinstance(before[-1][0].phase, Playing):
            games.append(before[-1][0])
            turns.append(_turn(games[-1], rng))
            change(turns[-1].action)
        yield RecordedRound(history, tuple(games), tuple(turns))
        if isinstance(before[-1][0].phase, Finished):
            return
        change(StartNextRound(1, _shuffle(ruleset, rng, players)))


def _shuffle(ruleset: Ruleset, rng: random.Random, players: int) -> Shuffle:
    if isinstance(ruleset, DiscardRuleset):
        tiles = ruleset.tiles(players)
        return Shuffle(tuple(rng.sample(tiles, len(tiles))), tuple(rng.sample(tiles, len(tiles))))
    return random_shuffle(ruleset, rng, players)


def _turn(game: Game, rng: random.Random) -> ReplayTurn:
    """Returns a legal turn: a play if one is found by chance; what a bot does in other games, and without a draw."""
    if isinstance(game.phase, Playing) and _is_for_bots(game.ruleset):
        return _bot_turn(game, game.phase.round.turn.seat)
    round_ = round_of(game)
    seat = round_.turn.seat
    rack = round_.rack(seat)
    table = random_table(melds_of(round_.table), rack.tiles, rack.has_melded, rules_of(game), rng)
    if table is not None:
        return ReplayTurn(seat, PlayTiles(seat, tuple(table)))
    if round_.pool:
        return ReplayTurn(seat, DrawTile(seat))
    # pool_empty_pass: a player who has a play that chance has not found may not pass.
    return _bot_turn(game, seat)


def _is_for_bots(ruleset: Ruleset) -> bool:
    """Returns whether a game has no table of melds, or has draws and jokers of its own."""
    return isinstance(ruleset, DiscardRuleset) or ruleset.preset in {Preset.CAROUSEL, Preset.CROSS, Preset.TWIST}


def _bot_turn(game: Game, seat: int) -> ReplayTurn:
    view = see(game, seat)
    action = bots_of(view).choose_action(view, BotLevel.EASY, Budget(nodes=50_000))
    if isinstance(action, ClaimError):
        raise TypeError("no error is claimed where illegal plays are refused")
    return ReplayTurn(seat, action)
