"""What is hidden from a seat, or a spectator, changes nothing that they are told.

Games that look the same to them, with other tiles on the other racks and in the pool, answer the same, byte for byte.
"""

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.message import Message

from engine.game import Game, Playing, Round, round_of
from engine.presets import PRESETS
from engine.ruleset import Ruleset, asking_options
from engine.tiles import Tile
from harness import (
    Client,
    FakeClock,
    GameAtHand,
    as_tiles,
    bearer,
    memory_store,
    put_game,
    running_server,
    server_settings,
)
from invariants import with_other_hidden_tiles
from random_play import players_of, random_changes, random_ruleset
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import game_pb2, meld_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.storage.base import GameStore

RULESETS = {
    **{preset.name: ruleset for preset, ruleset in PRESETS.items()},
    **{f"random {seed}": random_ruleset(random.Random(seed)) for seed in range(5)},
}
MOST_CHANGES = 30
"""Of a random game, before it is looked at."""


@dataclass(frozen=True)
class Scene:
    """A server with a store, whose clock is moved by hand."""

    client: Client
    store: GameStore
    clock: FakeClock


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene() -> AsyncIterator[Scene]:
    """One server for all tests, which compare games that nobody else plays."""
    clock = FakeClock()
    store = memory_store(clock)
    async with running_server(store, server_settings(sweep_seconds=3600.0)) as (_, client):
        yield Scene(client, store, clock)


def state_of(ruleset: Ruleset, rng: random.Random) -> tuple[Game, int]:
    """A round in progress of a random game, and when its last change was."""
    seed = rng.randrange(1000)
    changes = islice(random_changes(seed, players_of(ruleset, seed), ruleset), MOST_CHANGES)
    states = [(change.applied.game, change.now_ms) for change in changes]
    return rng.choice([(game, now_ms) for game, now_ms in states if isinstance(game.phase, Playing)])


def looks_the_same(game: Game, seat: int | None, rng: random.Random, drawn: int) -> Game:
    """The game with other hidden tiles, but for so many of the pool, which are drawn next."""
    round_ = round_of(game)
    shuffled = with_other_hidden_tiles(with_pool(game, round_, round_.pool[drawn:]), seat, rng)
    after = round_of(shuffled)
    return with_pool(shuffled, after, round_.pool[:drawn] + after.pool)


def with_pool(game: Game, round_: Round, pool: tuple[Tile, ...]) -> Game:
    """The game with another pool."""
    return replace(game, phase=Playing(replace(round_, pool=pool)))


def questions(game: GameAtHand, seen: game_pb2.Game, rng: random.Random) -> Iterator[tuple[str, Message]]:
    """What reads, what is only judged, and what is refused; each with its method."""
    game_id, revision = game.game_id, seen.revision
    yield "GameService/GetGame", gs.GetGameRequest(game_id=game_id)
    yield "GameService/ListTurns", gs.ListTurnsRequest(game_id=game_id)
    yield "GameService/JoinGame", gs.JoinGameRequest(game_id=game_id, name="Eve")
    yield "GameService/LeaveGame", gs.LeaveGameRequest(game_id=game_id)
    yield "GameService/StartGame", gs.StartGameRequest(game_id=game_id)
    yield "GameService/StartNextRound", gs.StartNextRoundRequest(game_id=game_id)
    yield "GameService/AddBot", gs.AddBotRequest(game_id=game_id, level=game_pb2.BOT_LEVEL_HARD)
    yield "TurnService/SaveDraft", ts.SaveDraftRequest(game_id=game_id, expected_revision=revision + 1)
    yield "TurnService/ClaimError", ts.ClaimErrorRequest(game_id=game_id, play_revision=revision + 1, agrees=True)
    for turn in turns(seen, rng):
        turn.game_id, turn.expected_revision, turn.validate_only = game_id, revision, True
        yield "TurnService/PlayTurn", turn
        if seen.turn.seat != seen.seat:
            real = ts.PlayTurnRequest()
            real.CopyFrom(turn)
            real.validate_only = False
            yield "TurnService/PlayTurn", real
    hint = an.SuggestTurnRequest(game_id=game_id, tier=an.HINT_TIER_PLAY_EXISTS, time_limit_ms=10_000)
    yield "AnalysisService/SuggestTurn", hint


def turns(seen: game_pb2.Game, rng: random.Random) -> Iterator[ts.PlayTurnRequest]:
    """Turns of every kind, with tiles that the seat has and with any others."""
    yield ts.PlayTurnRequest(draw=ts.DrawTile())
    passing = ts.PlayTurnRequest()
    getattr(passing, "pass").SetInParent()
    yield passing
    own, table = list(seen.rack), [meld_pb2.Meld(tiles=meld.tiles, kind=meld.kind) for meld in seen.table]
    for tile in (1, 53, *own[:2]):
        yield ts.PlayTurnRequest(lay_on_river=ts.LayOnRiver(tile=as_tiles([tile])[0]))
    first = rng.randint(1, 50)
    for tiles in (own[:3], own[-1:], (first, first + 1, first + 2), (53, 53, 53), rng.choices(range(1, 54), k=4)):
        played = ts.PlayTiles(table=[*table, meld_pb2.Meld(tiles=as_tiles(tiles))], calls_rummikub=True)
        if rng.random() < 0.3:
            played.river_index = 0
        yield ts.PlayTurnRequest(play=played)


def happenings(game: GameAtHand, seen: game_pb2.Game, viewer: int) -> Iterator[tuple[str, Message]]:
    """What the seat whose turn it is does: an illegal play, if that seat looks on, and a draw."""
    if seen.seat == viewer:
        illegal = ts.PlayTurnRequest(game_id=game.game_id, expected_revision=seen.revision)
        illegal.play.table.add(tiles=seen.rack[:2])
        yield "TurnService/PlayTurn", illegal
    draw = ts.DrawTile()
    yield "TurnService/PlayTurn", ts.PlayTurnRequest(game_id=game.game_id, expected_revision=seen.revision, draw=draw)


async def answer(game: GameAtHand, method: str, request: Message, token: str) -> bytes:
    """What a call brings: its code and message, and the answer or the details of the status."""
    rpc: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = game.client.channel.unary_unary(f"/rummikub.v1.{method}")
    try:
        return b"OK " + await rpc(request.SerializeToString(), metadata=bearer(token))
    except grpc.aio.AioRpcError as error:
        details = dict(error.trailing_metadata() or ())["grpc-status-details-bin"]
        return f"{error.code().name} {error.details()} ".encode() + bytes(details)


async def watched(game: GameAtHand, seen: game_pb2.Game, from_revision: int, token: str) -> list[bytes]:
    """What a watcher is told from a revision on; 0: the snapshot."""
    updates = game.client.games.WatchGame(
        gs.WatchGameRequest(game_id=game.game_id, from_revision=from_revision), metadata=bearer(token)
    )
    count = seen.revision - from_revision if from_revision else 1
    told = [(await anext(aiter(updates))).SerializeToString() for _ in range(count)]
    updates.cancel()
    return told


async def all_told(scene: Scene, start: Game, viewer: int, *, goes_on: bool) -> list[tuple[bytes, bytes]]:
    """All that a seat, or a spectator for 0, is told of a game, with what was asked; and again if the game goes on.

    What names the game and its history is left out.
    """
    game = await put_game(scene.client, scene.store, start, scene.clock.now_ms)
    rng, token, told = random.Random(viewer), game.tokens[viewer], []
    for is_later in range(1 + goes_on):
        seen = await game.see(viewer)
        for method, request in questions(game, seen, rng):
            told.append((f"{method} {request}", await answer(game, method, request, token)))
        for from_revision in (0, 1):
            told += [("WatchGame", update) for update in await watched(game, seen, from_revision, token)]
        at_turn = await game.see(seen.turn.seat)
        for method, request in happenings(game, at_turn, viewer) if goes_on and not is_later else ():
            happened = await answer(game, method, request, game.tokens[at_turn.seat])
            told += [(f"{method} {request}", happened)] if at_turn.seat == viewer else []
    names = [game.game_id, *(entry.etag for entry in await scene.store.events(game.game_id, 1, 100))]
    return [(unnamed(asked.encode(), names), unnamed(answered, names)) for asked, answered in told]


def unnamed(told: bytes, names: Sequence[str]) -> bytes:
    """What was told, with the places of names instead of them."""
    for place, name in enumerate(names):
        told = told.replace(name.encode(), b"%032d" % place)
    return told


@pytest.mark.parametrize("name", RULESETS)
@pytest.mark.asyncio(loop_scope="module")
async def test_what_a_seat_or_a_spectator_is_told_does_not_depend_on_hidden_tiles(scene: Scene, name: str) -> None:
    ruleset, rng = RULESETS[name], random.Random(name)
    start, scene.clock.now_ms = state_of(ruleset, rng)
    round_ = round_of(start)
    goes_on = len(round_.pool) > 2 * ruleset.penalty_tiles and not asking_options(ruleset)
    others = [0, *(player.seat for player in start.players if player.seat != round_.turn.seat)]
    for viewer in (round_.turn.seat, rng.choice(others)):
        told = await all_told(scene, start, viewer, goes_on=goes_on)
        draws = ruleset.penalty_tiles + 1 if goes_on and viewer == round_.turn.seat else 0
        same = looks_the_same(start, viewer or None, rng, draws)
        assert await all_told(scene, same, viewer, goes_on=goes_on) == told
        if draws:
            so_far = await all_told(scene, looks_the_same(start, viewer, rng, 0), viewer, goes_on=False)
            assert so_far == told[: len(so_far)]
