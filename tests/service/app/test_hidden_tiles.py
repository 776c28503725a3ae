"""Hidden tiles, and what only the operator sees, change no response to a seat, a spectator or a host without a seat.

Two games look the same to a viewer if they differ only in the tiles on other racks and in the pool, now and earlier.
Such games give byte-identical responses.
"""

import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.message import Message

from engine.actions import AbortGame, Action, Resign, TimeOut
from engine.game import Aborted, Finished, Game, Playing, round_of
from engine.melding.analysis import options_needing_analysis
from engine.melding.game import round_of as melding_round_of
from engine.melding.ruleset import (
    SABRA,
    MatchEnd,
    Preset,
    Ruleset,
    TurnDraw,
    TurnPlayAfterDraw,
)
from engine.melding.table import melds_of
from engine.room_settings import Hints, RacksShown, Spectators
from engine.timers import due_ms
from engine.turns import Applied, apply
from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from support.harness import Client, FakeClock, bearer, running_server, server_settings
from support.hidden import (
    GAME,
    HOST_VIEWER,
    Course,
    Shelf,
    course_of,
    course_under,
    happenings,
    questions,
    token_of,
    unnamed,
)
from support.okey_games import random_101_ruleset, random_joker_ruleset, random_ruleset
from support.okey_games import random_changes as discard_changes
from support.random_play import random_room
from support.rooms import Rules, room, room_of
from support.soak import few_of

pytestmark = pytest.mark.slow

SEVERAL_ROUNDS = replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=3, players_min=3, deal_hand_size=7)
COMMON: dict[str, Rules] = {
    **{preset.name: room(room_of(preset), hints=Hints.TURN) for preset in Preset},
    **{f"random {seed}": room(random_room(random.Random(seed)), spectators=Spectators.ALLOWED) for seed in range(5)},
}
RARE: dict[str, Rules] = {
    "River": replace(SABRA, turn_draw=TurnDraw.TWO_RIVER),
    "racks hidden": room(SEVERAL_ROUNDS, racks_shown=RacksShown.HIDDEN),
    "racks shown after a round": room(SEVERAL_ROUNDS, racks_shown=RacksShown.AFTER_ROUND),
    "racks shown after the game": room(SEVERAL_ROUNDS, racks_shown=RacksShown.AFTER_GAME),
    "play after a draw": replace(SABRA, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES),
}
RULESETS = COMMON | RARE
DISCARDS = {"OKEY": random_ruleset, "OKEY_101": random_101_ruleset, "jokers": random_joker_ruleset}
FEW = [*few_of(COMMON, 3), *DISCARDS]
NAMES = [*FEW, *RARE]
NAMES_IN_ROUNDS = [*FEW, *(name for name in RARE if not name.startswith("racks shown"))]
"""Without the games whose racks are shown later than in a round."""
MOST_CHANGES = 30
"""The maximum number of changes of a random game before its responses are compared."""
PAGE = 200
"""The maximum number of changes in a page of a history."""
LATEST = 5
"""How many of a game's last changes are read, unless all are."""
WHOLE = 0.15
"""The probability that all changes are read."""
STATES = 6
"""How many states of a game are compared; `make soak` compares all."""


@dataclass(frozen=True)
class Scene:
    """A server and the store whose one game the test replaces."""

    client: Client
    store: Shelf


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene() -> AsyncIterator[Scene]:
    """Runs one server for all tests."""
    store = Shelf(FakeClock())
    async with running_server(store, server_settings(sweep_seconds=3600.0)) as (_, client):
        yield Scene(client, store)


def random_course(name: str, seed: int) -> tuple[Course, list[Game]]:
    """Returns a whole random game of some rules, and the game after each change."""
    if name in DISCARDS:
        return course_of(discard_changes(seed, DISCARDS[name], hints=Hints.TURN))
    return course_under(RULESETS[name], seed)


async def answer(scene: Scene, method: str, request: Message, viewer: int) -> bytes:
    """Returns a call's code and message, with its response or the details of its status, which is never INTERNAL."""
    rpc: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = scene.client.channel.unary_unary(f"/rummikub.v1.{method}")
    try:
        return b"OK " + await rpc(request.SerializeToString(), metadata=bearer(token_of(viewer)))
    except grpc.aio.AioRpcError as error:
        refusal = error
    assert refusal.code() is not grpc.StatusCode.INTERNAL
    details = dict(refusal.trailing_metadata() or ())["grpc-status-details-bin"]
    return f"{refusal.code().name} {refusal.details()} ".encode() + bytes(details)


async def watched(scene: Scene, after_revision: int, last_revision: int, viewer: int) -> list[bytes]:
    """Returns the updates of a watch from a revision on, with the newest game; 0: the snapshot."""
    rpc: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = scene.client.channel.unary_stream(
        "/rummikub.v1.GameService/WatchGame"
    )
    seen = gs.GetGameRequest(game_id=GAME, revision=after_revision)
    etag = (await scene.client.games.GetGame(seen)).game.etag if after_revision else ""
    request = gs.WatchGameRequest(game_id=GAME, etag=etag, content=gs.WATCH_CONTENT_BOTH)
    call = rpc(request.SerializeToString(), metadata=bearer(token_of(viewer)))
    updates = aiter(call)
    is_behind = after_revision < last_revision
    count = last_revision - after_revision + is_behind if after_revision else 1
    told = [await anext(updates) for _ in range(count)]
    call.cancel()
    return told


async def read(scene: Scene, revision: int, viewer: int, first: int, watches: Sequence[int]) -> list[bytes]:
    """Returns all that a seat, or a spectator for 0, reads of a game: the game, its history, and watch updates.

    Args:
        scene: The server.
        revision: The game's revision.
        viewer: The seat that reads; 0: a spectator.
        first: The first revision of the history.
        watches: The revisions from which watches resume; 0: begin with a snapshot.
    """
    told = [await answer(scene, "GameService/GetGame", gs.GetGameRequest(game_id=GAME), viewer)]
    for page in range(first, revision + 1, PAGE):
        turns = gs.ListChangesRequest(game_id=GAME, page_size=PAGE, after_revision=page - 1)
        told.append(await answer(scene, "GameService/ListChanges", turns, viewer))
    for after_revision in watches:
        told += await watched(scene, after_revision, revision, viewer)
    return told


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("states", [STATES, pytest.param(None, marks=pytest.mark.soak)])
@pytest.mark.asyncio(loop_scope="module")
async def test_no_state_of_a_game_and_no_history_reveals_hidden_tiles(
    scene: Scene, name: str, states: int | None
) -> None:
    """Compares states of a whole game, for seats and spectators, with a game that always had other hidden tiles."""
    rng = random.Random(name)
    course, games = random_course(name, rng.randrange(1000))
    revisions = [revision for revision, game in enumerate(games, 1) if game.round]
    if states is not None:
        revisions = [*rng.sample(revisions[:-1], min(states, len(revisions)) - 1), revisions[-1]]
    for revision in revisions:
        game = games[revision - 1]
        so_far = course.until(revision)
        first = 1 if rng.random() < WHOLE else max(1, revision - LATEST)
        watches = [rng.choice((0, first))]
        for viewer in {
            rng.choice([player.seat for player in game.players]),
            rng.choice((0, HOST_VIEWER, *game.active_seats)),
        }:
            await scene.store.put(so_far)
            told = await read(scene, revision, viewer, first, watches)
            await scene.store.put(so_far.lookalike(viewer, rng))
            assert await read(scene, revision, viewer, first, watches) == told


async def all_told(scene: Scene, course: Course, viewer: int, *, goes_on: bool) -> list[tuple[bytes, bytes]]:
    """Returns all (request, response) pairs of a seat, or of a spectator for 0; again after a move if the game goes on.

    The etags after that move are left out.
    """
    await scene.store.put(course)
    rng, told = random.Random(viewer), []
    for is_later in range(1 + goes_on):
        seen = await see(scene, viewer)
        told += [(b"read", brought) for brought in await read(scene, seen.revision, viewer, 1, (0, 1))]
        for method, request in questions(seen, rng):
            told.append((f"{method} {request}".encode(), await answer(scene, method, request, viewer)))
        at_turn = await see(scene, seen.turn.seat)
        for method, request in happenings(at_turn, viewer) if goes_on and not is_later else ():
            happened = await answer(scene, method, request, at_turn.seat)
            told += [(f"{method} {request}".encode(), happened)] if at_turn.seat == viewer else []
    etags = [entry.etag for entry in await scene.store.streams.entries(GAME, len(course.history) + 1, PAGE)]
    return [(unnamed(asked, etags), unnamed(answered, etags)) for asked, answered in told]


async def see(scene: Scene, viewer: int) -> game_pb2.Game:
    """Returns the game as a seat, or a spectator for 0, sees it."""
    answer = await scene.client.games.GetGame(gs.GetGameRequest(game_id=GAME), metadata=bearer(token_of(viewer)))
    return answer.game


def game_in_play(name: str, rng: random.Random) -> tuple[Course, Game]:
    """Returns a random game of some rules, and the game at one of its first turns."""
    while True:  # some games are aborted in the lobby
        course, games = random_course(name, rng.randrange(1000))
        in_play = [game for game in games[:MOST_CHANGES] if isinstance(game.phase, Playing)]
        if in_play:
            return course, rng.choice(in_play)


@pytest.mark.parametrize("name", NAMES_IN_ROUNDS)
@pytest.mark.asyncio(loop_scope="module")
async def test_no_refusal_or_validation_depends_on_hidden_tiles(scene: Scene, name: str) -> None:
    rng = random.Random(name)
    course, game = game_in_play(name, rng)
    so_far, round_, ruleset = course.until(game.revision), round_of(game), game.ruleset
    penalty, asks = 0, False
    if isinstance(ruleset, Ruleset):
        penalty, asks = ruleset.penalty_tiles, bool(options_needing_analysis(ruleset))
    is_among_people = not any(player.played_by for player in game.players)  # a bot's move depends on its own rack
    is_deep = len(round_.pool) > 2 * penalty
    goes_on = is_deep and is_among_people and not asks
    others = [0, *(player.seat for player in game.players if player.seat != round_.turn.seat)]
    for viewer in (round_.turn.seat, rng.choice(others), HOST_VIEWER):
        told = await all_told(scene, so_far, viewer, goes_on=goes_on)
        draws = penalty + 1 if goes_on and viewer == round_.turn.seat else 0
        same = so_far.lookalike(viewer, rng, draws)
        assert await all_told(scene, same, viewer, goes_on=goes_on) == told
        if draws:
            until_then = await all_told(scene, so_far.lookalike(viewer, rng), viewer, goes_on=False)
            assert until_then == told[: len(until_then)]


# Games that end before their rounds do

ENDS_EARLY = room(
    SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=3, players_min=3, deal_hand_size=7, absent_after_timeouts=1
)


def aborted(game: Game) -> Action:
    return AbortGame(next(player.seat for player in game.players if not player.resigned and not player.wants_abort))


def abandoned(_: Game) -> Action:
    return TimeOut()


def resigned(game: Game) -> Action:
    return Resign(game.active_seats[0])


@cache
def in_a_round(ruleset: Rules, rounds: int) -> tuple[Course, Game]:
    """Returns a game with all its players in the middle of a round, after some rounds were played."""
    for seed in range(100):
        course, games = course_under(ruleset, seed)
        for game in games:
            is_there = (
                isinstance(game.phase, Playing)
                and len(game.results) == rounds
                and len(melds_of(melding_round_of(game).table)) > 2
            )
            if is_there and not any(player.resigned or player.stand_in for player in game.players):
                return course.until(game.revision), game
    raise AssertionError("no game has all its players in the middle of a round")


def cut_short(ruleset: Rules, rounds: int, ending: Callable[[Game], Action]) -> Course:
    """Returns the course of a game that ends in the middle of a round, after some rounds were played."""
    course, game = in_a_round(ruleset, rounds)
    history, times = list(course.history), list(course.times)
    while not isinstance(game.phase, Finished | Aborted):
        action, due = ending(game), due_ms(game)
        times.append(due + 1 if isinstance(action, TimeOut) and due else times[-1])
        applied = apply(game, action, times[-1])
        assert isinstance(applied, Applied)
        game = applied.game
        history.append(applied.events)
    return Course(history, times)


@pytest.mark.parametrize("shown", RacksShown)
@pytest.mark.parametrize("ending", [aborted, abandoned, resigned])
@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_game_that_ends_in_a_round_reveals_no_more_than_the_option_says(
    scene: Scene, shown: RacksShown, ending: Callable[[Game], Action], rounds: int
) -> None:
    course = cut_short(room(ENDS_EARLY, racks_shown=shown), rounds, ending)
    rng = random.Random(f"{shown} {ending.__name__}")
    for viewer in (0, 1):
        game = await scene.store.put(course)
        told = await told_at_the_end(scene, game, viewer)
        await scene.store.put(course.lookalike(viewer, rng))
        assert await told_at_the_end(scene, game, viewer) == told
        is_exported = shown is not RacksShown.HIDDEN
        exported = await answer(scene, "RecordService/ExportGame", rs.ExportGameRequest(game_id=GAME), viewer)
        assert exported.startswith(b"OK " if is_exported else b"FAILED_PRECONDITION ")
    results = (await see(scene, 0)).rounds
    is_open = shown is RacksShown.AFTER_ROUND or (shown is RacksShown.AFTER_GAME and ending is not aborted)
    assert [any(seat.rack for seat in result.seats) for result in results] == [is_open] * len(results)
    assert len(results) == rounds + (ending is resigned)


async def told_at_the_end(scene: Scene, game: Game, viewer: int) -> list[bytes]:
    """Returns all that a seat, or a spectator for 0, reads of a game that is over, without its record if it has one."""
    told = await read(scene, game.revision, viewer, 1, ())
    for after in (1, game.revision - 3):
        told += await watched(scene, after, game.revision - 1, viewer)
    for revision in range(game.revision - 3, game.revision + 1):
        told.append(
            await answer(scene, "GameService/GetGame", gs.GetGameRequest(game_id=GAME, revision=revision), viewer)
        )
    if game.settings.racks_shown is RacksShown.HIDDEN:
        told.append(await answer(scene, "RecordService/ExportGame", rs.ExportGameRequest(game_id=GAME), viewer))
        told.append(await answer(scene, "RecordService/ReviewGame", rs.ReviewGameRequest(game_id=GAME), viewer))
    return told
