"""Games whose rules search for possible plays, over gRPC: what clients learn, and that searches block no other call."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.message import Message

from engine.effort import Budget
from engine.game import Game, Playing
from engine.melding import solver
from engine.melding.analysis import Existence, Situation
from engine.melding.events import TileDrawn, TilesDrawn, TilesOffered, TurnEnded, TurnPassed
from engine.melding.game import round_of
from engine.melding.ruleset import (
    SABRA,
    PoolEmptyPass,
    PoolEmptyStuckTest,
    ScoreNeverMelded,
    TurnDraw,
    TurnVoluntaryDraw,
)
from engine.notation import parse_tiles
from engine.tiles import Tile
from rummikub.v1 import game_pb2, meld_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.app import changes
from service.app.views import change_view, snapshot_view
from service.codec import games as codec
from service.model.change import Entry
from service.model.record import Record
from service.storage.store import Store
from support.harness import Client, FakeClock, GameAtHand, as_tiles, error_info, memory_store, put_game, running_server
from support.positions import game_at
from support.rooms import room

UNTIMED = room(SABRA, turn_time_limit_seconds=0)
FLAT = ScoreNeverMelded.FLAT_100_OR_200
OLYMPIAD = room(UNTIMED, score_never_melded=FLAT)
MUST_PLAY = room(UNTIMED, turn_voluntary_draw=TurnVoluntaryDraw.ONLY_IF_NO_PLAY)
MUST_NOT_PASS = room(UNTIMED, pool_empty_pass=PoolEmptyPass.ONLY_IF_NO_PLAY)
STUCK = room(UNTIMED, pool_empty_stuck_test=PoolEmptyStuckTest.EXACT)
UNTIL_PLAYABLE = room(UNTIMED, turn_draw=TurnDraw.UNTIL_PLAYABLE)
SEATS = (None, 1, 2, 3)
PATIENCE_SECONDS = 30.0
"""Timeout in seconds of a wait in these tests."""


@pytest.fixture
def store() -> Store:
    return memory_store(FakeClock())


@pytest_asyncio.fixture
async def client(store: Store) -> AsyncIterator[Client]:
    async with running_server(store) as (_, client):
        yield client


# Hidden information about the initial meld

DECLINED = (
    TileDrawn(1, Tile(4), declined=True),
    TilesDrawn(1, (Tile(4), Tile(5)), declined=True),
    TilesOffered(1, (Tile(4), Tile(5)), declined=True),
    TurnEnded(1, declined=True),
    TurnPassed(1, declined=True),
)


@pytest.mark.parametrize("seat", SEATS)
@pytest.mark.parametrize("event", DECLINED, ids=lambda event: type(event).__name__)
def test_events_do_not_reveal_whether_a_player_declined_the_initial_meld(
    event: TileDrawn | TilesDrawn | TilesOffered | TurnEnded | TurnPassed, seat: int | None
) -> None:
    plain = replace(event, declined=False)
    sent = [
        codec.encode_change(change_view(Entry(3, "e7a9", 5, b"", (one,)), seat)).SerializeToString()
        for one in (event, plain)
    ]
    assert event != plain
    assert sent[0] == sent[1]


@pytest.mark.parametrize("seat", SEATS)
def test_encoded_games_do_not_reveal_who_declined_the_initial_meld(seat: int | None) -> None:
    game = game_at("[R4 R5 R6] / 1{R10 R11 R12} 2*{K1} 3{K2} / {O9} / 2", OLYMPIAD)
    assert isinstance(game.phase, Playing)
    declined = replace(game, phase=Playing(replace(round_of(game), declined=(1, 3))))
    sent = [
        codec.encode_game(snapshot_view(Record("0" * 32, one, "e7a9", (), 1, 2), seat, 3)).SerializeToString()
        for one in (game, declined)
    ]
    assert sent[0] == sent[1]


async def told(game: GameAtHand, seat: int) -> list[bytes]:
    """Returns all responses about a game to a seat, or to a spectator for 0, without ids and etags."""
    state = await game.see(seat)
    state.ClearField("server_time")
    history = await game.client.games.ListChanges(
        gs.ListChangesRequest(game_id=game.game_id), metadata=game.as_seat(seat)
    )
    for message in (state, *history.changes):
        message.ClearField("etag")
    state.ClearField("game_id")
    messages: tuple[Message, ...] = (state, *history.changes)
    return [message.SerializeToString(deterministic=True) for message in messages]


async def test_only_the_points_of_the_round_reveal_who_could_have_melded(client: Client, store: Store) -> None:
    position = "[R4 R5 R6] / 1{%s} 2*{R7} 3*{K9 K1} / {O9 O8 O7} / 1"
    games = [
        await put_game(client, store, game_at(position % rack, OLYMPIAD)) for rack in ("B10 B11 B12", "B10 B11 B13")
    ]
    answers = [(await game.draw()).tiles_drawn for game in games]
    assert answers[0] == answers[1] == as_tiles(parse_tiles("O9"))
    for seat in (0, 2, 3):
        could, could_not = [await told(game, seat) for game in games]
        assert could == could_not
    table = [meld_pb2.Meld(tiles=as_tiles(parse_tiles("R4 R5 R6 R7")))]
    points = []
    for game in games:
        ended = (await game.take(ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=table))))).game
        points.append([seat.points for seat in ended.rounds[0].seats])
    assert points == [[-200, 210, -10], [-100, 110, -10]]


# Refusals, and the information in them


async def trial(game: GameAtHand, turn: ts.PlayTurnRequest) -> str:
    """Returns the reason for which a validate_only turn and the same real turn are refused."""
    reasons = []
    for validate_only in (True, False):
        turn.validate_only = validate_only
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await game.take(turn)
        reasons.append(str(error_info(refusal.value).reason))
    assert reasons[0] == reasons[1]
    return reasons[0]


async def test_a_player_who_can_play_may_neither_draw_nor_pass_and_validate_only_agrees(
    client: Client, store: Store
) -> None:
    drawing = await put_game(client, store, game_at("[R4 R5 R6] / 1*{R7 K1} 2*{K9} / {O9 O8} / 1", MUST_PLAY))
    draw = ts.PlayTurnRequest(draw=ts.DrawTile())
    assert await trial(drawing, draw) == "DRAW_NOT_ALLOWED_PLAY_EXISTS"
    passing = await put_game(client, store, game_at("[R4 R5 R6] / 1*{R7 K1} 2*{K9} / {} / 1", MUST_NOT_PASS))
    turn = ts.PlayTurnRequest()
    turn.pass_turn.SetInParent()
    assert await trial(passing, turn) == "PASS_NOT_ALLOWED_PLAY_EXISTS"
    assert (await passing.see()).revision == 1


async def test_validate_only_does_not_reveal_whether_the_round_would_be_blocked(client: Client, store: Store) -> None:
    turn = ts.PlayTurnRequest(validate_only=True)
    turn.pass_turn.SetInParent()
    ended, answers = [], []
    for other in ("K1 K2 K4", "K1 K2 K3"):
        game = await put_game(client, store, game_at(f"[R4 R5 R6] / 1*{{B9}} 2*{{{other}}} / {{}} / 1", STUCK))
        tried = await game.take(turn)
        for field in ("game_id", "etag"):
            tried.game.ClearField(field)
        answers.append(tried)
        ended.append((await game.pass_on()).game.state)
    assert answers[0] == answers[1]
    assert ended == [game_pb2.GAME_STATE_FINISHED, game_pb2.GAME_STATE_PLAYING]


@pytest.mark.parametrize(
    ("start", "action", "waits"),
    [
        (game_at("[R4 R5 R6] / 1*{B9} 2*{K1} / {} / 1", STUCK), "pass_on", True),
        (game_at("[R4 R5 R6] / 1*{B9} 2*{R7 K1} / {} / 1", STUCK), "pass_on", True),
        (game_at("[R4 R5 R6] / 1*{B9} 2*{R7 K1} / {K2} / 1", STUCK), "draw", True),
        (game_at("[R4 R5 R6] / 1*{B9} 2*{R7 K1} / {} / 1", room(STUCK, turn_time_limit_seconds=60)), "see", True),
        (game_at("[R4 R5 R6] / 1*{B9} 2*{R7 K1} / {K2 K3} / 1", STUCK), "draw", False),
        (game_at("[R4 R5 R6] / 1*{B9} 2*{R7 K1} / {} / 1", STUCK), "save_draft", False),
        (game_at("[R4 R5 R6] / 1*{B9} 2*{R7 K1} / {} / 1", UNTIMED), "pass_on", False),
    ],
    ids=["the round ends", "it goes on", "the last tile", "a time-out", "tiles are left", "a draft", "passes decide"],
)
async def test_the_duration_of_a_search_of_all_racks_is_rounded_up(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch, start: Game, action: str, *, waits: bool
) -> None:
    step = 0.5 if waits else 2 * PATIENCE_SECONDS
    monkeypatch.setattr(changes, "SEARCH_STEP_SECONDS", step)
    game = await put_game(client, store, start)
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await getattr(game, action)()
    assert (asyncio.get_running_loop().time() - began >= step) == waits


@pytest.mark.parametrize(
    ("start", "action"),
    [
        (game_at("[R4 R5 R6] / 1*{B9} 2*{K1} / {K2 K4 K6 R7} / 1", UNTIL_PLAYABLE), "draw"),
        (game_at(". / 1{B9} 2{K1} / {K2 K4} / 1", room(UNTIL_PLAYABLE, score_never_melded=FLAT)), "draw"),
        (game_at("[R4 R5 R6] / 1*{B9} 2*{K1 K2 K4} / {} / 1", STUCK), "pass_turn"),
        (game_at("[R4 R5 R6] / 1*{B9 R7} 2*{K1 K2 K4} / {} / 1", STUCK), "play"),
    ],
    ids=["draw", "draw that may decline a meld", "pass", "play"],
)
async def test_validate_only_searches_only_the_players_own_rack(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch, start: Game, action: str
) -> None:
    racks = []

    def search(situation: Situation, _budget: Budget) -> Existence:
        racks.append(as_tiles(situation.rack))
        return Existence.NO

    search_with(monkeypatch, search)
    game = await put_game(client, store, start)
    own = list((await game.see(1)).rack)
    turn = ts.PlayTurnRequest(validate_only=True)
    getattr(turn, action).SetInParent()
    if action == "play":
        turn.play.table.melds.add(tiles=as_tiles(parse_tiles("R4 R5 R6 R7")))
    await game.take(turn)
    assert all(rack == own for rack in racks)
    turn.validate_only = False
    await game.take(turn)
    assert any(rack != own for rack in racks)


def search_with(monkeypatch: pytest.MonkeyPatch, search: Callable[[Situation, Budget], Existence]) -> None:
    """Replaces every search."""
    monkeypatch.setattr(solver, "has_turn", search)


# Long searches


class Search:
    """A search that runs until its event is set."""

    def __init__(self) -> None:
        self.begun, self.ends = threading.Event(), threading.Event()

    def __call__(self, _situation: Situation, _budget: Budget) -> Existence:
        self.begun.set()
        assert self.ends.wait(PATIENCE_SECONDS)
        return Existence.NO


@contextmanager
def searching(monkeypatch: pytest.MonkeyPatch) -> Iterator[Search]:
    """Makes every search run until the test ends it."""
    search = Search()
    search_with(monkeypatch, search)
    try:
        yield search
    finally:
        search.ends.set()


async def test_other_calls_are_served_during_a_search(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = await put_game(client, store, game_at(". / 1*{R7} 2*{K9} / {O9 O8} / 1", MUST_PLAY))
    with searching(monkeypatch) as search:
        drawing = asyncio.create_task(game.draw(1))
        assert await asyncio.to_thread(search.begun.wait, PATIENCE_SECONDS)
        assert (await game.see()).revision == 1
        assert not drawing.done()
        search.ends.set()
        assert (await drawing).game.revision == 2


async def test_other_calls_are_served_during_the_search_of_a_time_out(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    overdue = game_at(". / 1*{R7} 2*{K9} / {} / 1", room(STUCK, turn_time_limit_seconds=60))
    other = await put_game(client, store, game_at(". / 1*{R7} 2*{K9} / {O9 O8} / 1", UNTIMED))
    game = await put_game(client, store, overdue)
    with searching(monkeypatch) as search:
        looking = asyncio.create_task(game.see())
        assert await asyncio.to_thread(search.begun.wait, PATIENCE_SECONDS)
        assert (await other.draw()).game.revision == 2
        search.ends.set()
        assert (await looking).state == game_pb2.GAME_STATE_FINISHED
