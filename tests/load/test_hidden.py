"""The comparison of pairs of games that differ in hidden tiles finds every seeded leak, and leaves no RPC out."""

import json
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from engine.game import Playing
from engine.melding.ruleset import SABRA
from engine.room_settings import RacksShown
from load.bench.figures import are_met, run_facts, verdict
from load.hidden.asks import ADMIN, SHOWS_RACKS, all_asks, changes_by, viewers
from load.hidden.leaks import LEAKS
from load.hidden.pairs import Comparison, Tally
from load.hidden.report import COMMAND, PAGE, made_of, report
from load.hidden.stage import LOST, OPERATOR_TOKEN, Ask, Viewer, answer, staged
from load.hidden.times import GET_GAME, Samples, Timing
from load.hidden.two_samples import distance, probability
from load.hidden.wire import bytes_of_streams
from load.pages import DOCS, page_with
from rummikub.v1 import game_service_pb2 as gs
from support.hidden import GAME, course_of
from support.random_play import random_changes
from support.rpcs import METHODS
from support.soak import few_of

pytestmark = pytest.mark.slow

MOST_GAMES = 8
"""By how many games a seeded leak is found."""


@pytest.mark.parametrize("name", few_of(LEAKS, 4))
async def test_every_seeded_leak_is_found(name: str) -> None:
    leak = LEAKS[name]
    tally = Tally()
    with leak.installed() as secret:
        async with staged() as stage:
            secret.stage = stage
            comparison = Comparison(stage, tally, most=100_000, searches=0.5)
            for number in range(MOST_GAMES):
                await comparison.of_game(leak.families[number % len(leak.families)], f"{number}", states=4)
                if any(leak.shows in found.place for found in tally.leaks):
                    return
    pytest.fail(f"not found in {tally.pairs} pairs: {name}")


async def test_without_a_leak_nothing_differs() -> None:
    tally = Tally()
    async with staged() as stage:
        comparison = Comparison(stage, tally, most=150, wire=0.5)
        for family in ("SABRA", "fair OKEY", "CROSS"):
            await comparison.of_game(family, "0", states=3)
    assert not tally.leaks
    assert tally.pairs >= 100
    assert tally.on_the_wire
    assert tally.with_draft
    assert tally.wire_bytes > 100 * tally.on_the_wire


async def test_what_differs_on_the_wire_is_found() -> None:
    leak, tally = LEAKS["the size of a response"], Tally()
    with leak.installed() as secret:
        async with staged() as stage:
            secret.stage = stage
            await Comparison(stage, tally, most=100, wire=1.0).of_game("SABRA", "0", states=2)
    assert any(found.place == "wire" for found in tally.leaks)


@pytest.mark.parametrize(("details", "is_lost"), [("Internal error from Core", True), ("send a key", False)])
async def test_an_error_of_the_callers_own_library_is_no_answer(details: str, is_lost: bool) -> None:
    """grpcio reports one if the server refuses a stream to which it still sends."""
    call = Mock()
    call.read = AsyncMock(side_effect=AioRpcError(grpc.StatusCode.INTERNAL, Metadata(), Metadata(), details))
    channel = Mock(stream_stream=Mock(return_value=Mock(return_value=call)))
    assert (await answer(channel, Ask("/path", b"", updates=1, streams=True), ()) == LOST) == is_lost


def test_bytes_of_a_stream_are_joined() -> None:
    def frame(kind: int, stream: int, payload: bytes) -> bytes:
        return len(payload).to_bytes(3, "big") + bytes((kind, 0)) + stream.to_bytes(4, "big") + payload

    sent = frame(4, 0, b"settings") + frame(1, 1, b"h") + frame(0, 1, b"a") + frame(8, 0, b"w") + frame(0, 1, b"b")
    assert bytes_of_streams(sent + b"cut") == {(1, 1): b"h", (1, 0): b"ab"}


def test_trailers_of_a_canceled_stream_are_of_no_account() -> None:
    initial, update, trailers = (
        bytes([0, 0, 1, kind, 0, 0, 0, 0, 9]) + payload for kind, payload in ((1, b"i"), (0, b"u"), (1, b"t"))
    )
    assert bytes_of_streams(initial + update + trailers) == {(9, 1): b"it", (9, 0): b"u"}
    for sent in (initial + update, initial + update + trailers):
        assert bytes_of_streams(sent, [9]) == {(9, 1): b"i", (9, 0): b"u"}


async def test_every_rpc_is_in_a_pair() -> None:
    """No RPC is left out but those of operators that show racks; they are asked with a wrong token, too."""
    rng, asked = random.Random(0), set()
    course, games = course_of(random_changes(0, 3, SABRA))
    game = next(game for game in games if isinstance(game.phase, Playing) and len(game.active_seats) == 3)
    hidden = replace(game, settings=replace(game.settings, racks_shown=RacksShown.HIDDEN))
    async with staged() as stage:
        await stage.shelf.put(course.until(game.revision), key="web")
        for viewer in viewers(game, rng, "web", stage.clock.now_ms):
            see: Any = stage.channel.unary_unary(GET_GAME, response_deserializer=gs.GetGameResponse.FromString)
            may_see = viewer.key == "web" and viewer.token not in {"s" * 43, "o" * 43, OPERATOR_TOKEN}
            metadata = (viewer if may_see else Viewer("spectator", 0)).metadata
            seen = (await see(gs.GetGameRequest(game_id=GAME).SerializeToString(), metadata=metadata)).game
            asked |= {ask.path for ask in all_asks(seen, game, viewer, stage.clock, rng)}
            asked |= {ask.path for _ in range(20) for ask in changes_by(hidden, viewer, seen, rng)}
    of_players = {f"/{rpc.containing_service.full_name}/{name}" for name, rpc in METHODS.items()}
    of_operators = {f"/{ADMIN.full_name}/{rpc.name}" for rpc in ADMIN.methods}
    assert of_players - asked == set()
    assert of_operators - asked == set()
    assert {rpc.name for rpc in ADMIN.methods} >= SHOWS_RACKS


def test_the_test_of_two_samples_tells_distributions_apart() -> None:
    rng = random.Random(0)
    one, alike, slower = ([rng.gauss(mean, 1) for _ in range(1_000)] for mean in (10, 10, 10.3))
    assert distance([1, 2, 3, 4], [3, 4, 5, 6]) == 0.5
    assert distance([1, 1, 1], [1, 1]) == 0
    assert probability(one, alike) > 0.05
    assert probability(one, slower) < 0.001
    values = range(100)
    assert probability(values, [value + 16 for value in values]) == pytest.approx(0.138, abs=0.01)


def test_rows_with_few_calls_prove_nothing() -> None:
    assert Samples([([1.0] * 3, [2.0] * 3)]).least_probable == 1.0
    assert Samples([([1.0] * 50, [2.0] * 50), ([1.0] * 50, [1.0] * 50)]).least_probable < 0.001


async def test_times_are_measured_until_the_time_is_over() -> None:
    async with staged() as stage:
        timing = Timing(stage, 0)
        made = [
            calls
            async for calls in timing.measure(100, time.monotonic() + 60, names=["GetGame, which does not search"])
        ]
        assert made == [50, 100]
        assert set(timing.answers["GetGame"]) == {"OK"}
        assert [calls async for calls in timing.measure(100, time.monotonic(), names=["SaveDraft"])] == []


PAIRS: dict[str, Any] = {
    **run_facts(),
    "pairs": 200,
    "games": 4,
    "seconds": 9.0,
    "seeds": [0, 1],
    "moved": 3,
    "with_metrics": 30,
    "on_the_wire": 10,
    "wire_bytes": 10_000,
    "by_family": {"SABRA": 200},
    "by_viewer": {"seat": 200},
    "by_rpc": {"v1.GameService/GetGame": 400},
    "leaks": [],
}
ROW: dict[str, Any] = {"calls": 500, "median_ms": 1.0, "largest_gap_ms": 0.1, "probability": 0.4}
TIMES: dict[str, Any] = {**run_facts(), "seconds": 9.0, "seed": 0, "load": 1.0, "rows": {"GetGame": ROW}}


@pytest.mark.parametrize(
    ("pairs", "times", "expected"),
    [
        (PAIRS, TIMES, 0),
        (PAIRS, None, 0),
        ({**PAIRS, "leaks": [["SABRA", "0 9", "seat", "0 GetGame", "b'1'", "b'2'"]]}, TIMES, 1),
        (PAIRS, {**TIMES, "rows": {"GetGame": {**ROW, "probability": 1e-5}}}, 1),
        (None, None, 1),
    ],
)
def test_a_report_fails_if_anything_hidden_shows(
    tmp_path: Path, pairs: dict[str, Any] | None, times: dict[str, Any] | None, expected: int
) -> None:
    for name, figures in (("pairs", pairs), ("times", times)):
        if figures:
            (tmp_path / f"{name}.json").write_text(json.dumps(figures))
    assert report(tmp_path, is_for_page=False) == expected


@pytest.mark.parametrize(("pairs", "calls", "open_goals"), [(200, 500, 2), (100_000, 9_999, 1), (100_000, 10_000, 0)])
def test_goals_are_open_until_a_run_is_complete(pairs: int, calls: int, open_goals: int) -> None:
    made = made_of({**PAIRS, "pairs": pairs}, {**TIMES, "rows": {"GetGame": {**ROW, "calls": calls}}})
    assert [verdict(one) for one in made["requirements"]].count("open") == open_goals
    assert are_met(made)


def test_the_page_has_a_place_for_the_report() -> None:
    page_with((DOCS / PAGE).read_text(), COMMAND, "")
