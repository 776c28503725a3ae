"""AnalysisService on a real server: suggestions, permissions, and the bounds of searches; one subject."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration

from engine.discard.ruleset import HAND_SIZE, OKEY
from engine.effort import Budget
from engine.game import Game, Playing
from engine.melding.analysis import Situation
from engine.melding.melds import Meld, MeldKind
from engine.melding.presets import PRESETS
from engine.melding.round import Choosing, Drawn
from engine.melding.rules import Judgement
from engine.melding.ruleset import (
    SABRA,
    JokersDeclaration,
    Preset,
    Ruleset,
    TurnDraw,
    TurnPlayAfterDraw,
    WinCall,
)
from engine.melding.solver import (
    RULES_BUDGET,
    Existence,
    Objective,
    has_turn,
)
from engine.notation import format_tiles, parse_tiles
from engine.room_settings import Hints, RoomSettings
from engine.seats import BotLevel
from engine.tiles import Tile
from engine.violations import Reason, Violation
from load.corpus.joker_positions import positions_of_games
from load.corpus.positions import read
from rummikub.v1 import analysis_service_pb2 as pb
from rummikub.v1 import game_pb2, meld_pb2, ruleset_pb2, tile_pb2
from rummikub.v1 import validation_service_pb2 as vs
from service.analysis.pool import AnalysisPool, Holder, PriorityAnalysis
from service.analysis.queries import BestTurnQuery, HintTier, TurnExistsQuery, turn_query
from service.codec import rulesets
from service.errors import AnalysisBusy
from service.metrics.metrics import Metrics
from service.runtime.origins import SEARCHES, Key, Origin
from service.server import Server
from service.settings import Settings
from service.storage.memory import MemoryStore
from support.harness import (
    ROOT,
    Client,
    GameAtHand,
    as_tiles,
    bearer,
    error_info,
    field_violations,
    memory_store,
    put_game,
    running_server,
    server_process,
    server_settings,
    status_details,
)
from support.positions import game_at
from support.rooms import room
from support.scripted_worker import Script
from support.soak import few_of
from tools.games import melding_rules

pytestmark = pytest.mark.slow

SCRIPTED = (sys.executable, str(ROOT / "tests" / "support" / "scripted_worker.py"))
LONG = Duration(seconds=10)
SOON_SECONDS = 8.0
"""Less than LONG."""
NO_LIMIT = room(SABRA, turn_time_limit_seconds=0, hints=Hints.TURN)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served() -> AsyncIterator[tuple[Client, MemoryStore]]:
    store = memory_store()
    async with running_server(store) as (_, client):
        yield client, store


def meld(text: str) -> meld_pb2.Meld:
    return meld_pb2.Meld(tiles=as_tiles(parse_tiles(text)))


def position(rack: str, *table: str, has_melded: bool = True, **others: object) -> pb.Position:
    return pb.Position(
        table=meld_pb2.Table(melds=map(meld, table)),
        rack=as_tiles(parse_tiles(rack)),
        has_melded=has_melded,
        **others,  # type: ignore[arg-type]
    )


async def suggested(client: Client, asked: pb.Position, **others: object) -> pb.Suggestion:
    request = pb.SuggestTurnRequest(position=asked, **others)  # type: ignore[arg-type]
    return (await client.analysis.SuggestTurn(request)).suggestion


def text(numbers: object) -> str:
    return format_tiles(tuple(map(Tile, numbers)))  # type: ignore[call-overload]


def sent_back(melds: Iterable[meld_pb2.Meld]) -> list[meld_pb2.Meld]:
    """Returns a suggested table as PlayTurn takes it."""
    return [meld_pb2.Meld(tiles=one.tiles, kind=one.kind, declared_faces=single_faces(one)) for one in melds]


def single_faces(one: meld_pb2.Meld) -> list[tile_pb2.Tile.ValueType]:
    """Returns the joker faces of jokers with exactly one."""
    return [] if any(len(joker.faces) > 1 for joker in one.jokers) else [joker.faces[0] for joker in one.jokers]


# Positions


@pytest.mark.asyncio(loop_scope="module")
async def test_the_time_of_a_search_is_used_to_change_the_fewest_melds(served: tuple[Client, MemoryStore]) -> None:
    client, _ = served
    table = (
        "R13 K13 O13, B12 K12 O12, R11 B11 K11, R10 B10 O10, R3 B3 O3, R7 B7 O7, R2 J R4, R5 B5 K5, B2 B3 B4, R6 B6 K6,"
        "R9 K9 O9, R8 R9 J, B7 B8 B9, R1 K1 O1, B1 K1 O1, O4 O5 O6 O7 O8 O9, O11 J O13, R8 K8 J, R2 R3 R4,"
        "K2 K3 K4 K5 K6, O2 O3 O4"
    )
    rack = "R5 R7 R10 R12 B1 B4 B8 B10 B13 K4 K7 K11 K13 O2 O5"
    asked = position(rack, *table.split(","), ruleset=melding_rules(geometry_jokers=4))
    found = await suggested(client, asked, time_limit=LONG)
    assert (len(found.untouched), found.is_least_change) == (15, True)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_whole_turn_is_suggested(served: tuple[Client, MemoryStore]) -> None:
    client, _ = served
    found = await suggested(client, position("R7 K1 O1 O9", "R4 R5 R6", "B1 K1 O1"))
    assert found.play_exists == pb.EXISTENCE_YES
    assert (text(found.tiles_played), found.value, found.points) == ("R7", 7, 7)
    assert (found.is_best, found.is_least_change, found.goes_out) == (True, True, False)
    assert [text(one.tiles) for one in found.table.melds] == ["B1 K1 O1", "R4 R5 R6 R7"]
    assert list(found.untouched) == [1]
    assert [one.kind for one in found.table.melds] == [meld_pb2.MELD_KIND_GROUP, meld_pb2.MELD_KIND_RUN]
    [step] = found.steps
    assert step.kind == pb.STEP_KIND_EXTEND
    assert (text(step.tiles), step.meld.WhichOneof("place"), step.meld.table_before) == ("R7", "table_before", 0)
    assert text(step.laid.tiles) == "R4 R5 R6 R7"
    assert "R7" in step.text


@pytest.mark.asyncio(loop_scope="module")
async def test_a_new_meld_is_named_by_its_place_on_the_table(served: tuple[Client, MemoryStore]) -> None:
    client, _ = served
    found = await suggested(client, position("R9 B9 K9", "R4 R5 R6"))
    [step] = found.steps
    assert step.kind == pb.STEP_KIND_PLACE
    assert (step.meld.WhichOneof("place"), step.meld.table_after) == ("table_after", 1)
    assert found.goes_out


@pytest.mark.asyncio(loop_scope="module")
async def test_a_rearrangement_is_legal_and_explained_step_by_step(served: tuple[Client, MemoryStore]) -> None:
    client, _ = served
    asked = position("R5 B4", "R3 R4 R5 R6 R7", "K4 O4 B4")
    found = await suggested(client, asked)
    assert text(found.tiles_played) == "R5" or len(found.tiles_played) == 2
    judged = await client.validation.ValidateTurn(
        vs.ValidateTurnRequest(
            table_before=meld_pb2.Table(melds=asked.table.melds),
            table_after=meld_pb2.Table(melds=sent_back(found.table.melds)),
            rack=asked.rack,
            has_melded=True,
        )
    )
    assert list(judged.violations) == []
    assert (list(judged.tiles_played), judged.points) == (list(found.tiles_played), found.points)
    assert all(step.kind and step.text for step in found.steps)


@pytest.mark.asyncio(loop_scope="module")
async def test_steps_keep_the_untouched_one_of_two_equal_melds(
    served: tuple[Client, MemoryStore],
) -> None:
    client, _ = served
    found = await suggested(client, position("R7", "R4 R5 R6", "R4 R5 R6"))
    [step] = found.steps
    assert {step.meld.table_before, *found.untouched} == {0, 1}


@pytest.mark.asyncio(loop_scope="module")
async def test_joker_faces_are_declared_if_the_order_of_a_run_does_not_show_them(
    served: tuple[Client, MemoryStore],
) -> None:
    client, _ = served
    rules = melding_rules(
        meld_order=ruleset_pb2.MELD_ORDER_CANONICALISE, joker_retrieval_mode=ruleset_pb2.JOKER_RETRIEVAL_MODE_OFF
    )
    asked = position("K6", "B3 K3 O3", "B2 B3 B4 B5 B6", ruleset=rules)
    low = as_tiles(parse_tiles("O3 O4"))
    asked.table.melds.append(meld_pb2.Meld(tiles=as_tiles(parse_tiles("J J O5 O6")), declared_faces=low))
    found = await suggested(client, asked)
    assert text(found.tiles_played) == "K6"
    judged = await client.validation.ValidateTurn(
        vs.ValidateTurnRequest(
            table_before=asked.table,
            table_after=meld_pb2.Table(melds=sent_back(found.table.melds)),
            rack=asked.rack,
            has_melded=True,
            ruleset=rules,
        )
    )
    assert list(judged.violations) == []
    left = meld_pb2.Meld(tiles=as_tiles(parse_tiles("J J O5")), kind=meld_pb2.MELD_KIND_RUN, declared_faces=low)
    assert left in [step.left for step in found.steps]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_tier_shows_no_more_than_requested(served: tuple[Client, MemoryStore]) -> None:
    client, _ = served
    asked = position("R7", "R4 R5 R6")
    whether = await suggested(client, asked, tier=pb.HINT_TIER_PLAY_EXISTS)
    assert whether == pb.Suggestion(play_exists=pb.EXISTENCE_YES)
    which = await suggested(client, asked, tier=pb.HINT_TIER_TILES)
    assert which == pb.Suggestion(
        play_exists=pb.EXISTENCE_YES, tiles_played=as_tiles(parse_tiles("R7")), value=7, is_best=True
    )
    whole = await suggested(client, asked, tier=pb.HINT_TIER_TURN)
    assert whole == await suggested(client, asked)
    assert whole.table.melds


@pytest.mark.asyncio(loop_scope="module")
async def test_the_objective_decides_which_turn_is_best(served: tuple[Client, MemoryStore]) -> None:
    client, _ = served
    asked = position("R1 R2 R4 R5 R13 B13 J")
    most = await suggested(client, asked)
    assert (text(most.tiles_played), most.value, most.points) == ("R1 R2 R4 R5 J", 42, 15)
    assert most == await suggested(client, asked, objective=pb.OBJECTIVE_MOST_TILES)
    highest = await suggested(client, asked, objective=pb.OBJECTIVE_HIGHEST_VALUE)
    assert (text(highest.tiles_played), highest.value, highest.points) == ("R13 B13 J", 56, 39)


@pytest.mark.parametrize(
    ("asked", "exists"),
    [
        (position("R7", "R4 R5 R6"), pb.EXISTENCE_YES),
        (position("R8", "R4 R5 R6"), pb.EXISTENCE_NO),
        (position("", "R4 R5 R6"), pb.EXISTENCE_NO),
        (position("R9 R10 R11", has_melded=False), pb.EXISTENCE_YES),
        (position("R9 R10 K10", has_melded=False), pb.EXISTENCE_NO),
        (position("R1 R2 R3", has_melded=False), pb.EXISTENCE_NO),
        (
            position("R1 R2 R3", has_melded=False, ruleset=melding_rules(initial_meld_threshold=6)),
            pb.EXISTENCE_YES,
        ),
    ],
    ids=str,
)
@pytest.mark.asyncio(loop_scope="module")
async def test_whether_a_turn_exists(
    served: tuple[Client, MemoryStore], asked: pb.Position, exists: pb.Existence.ValueType
) -> None:
    client, _ = served
    answer = await client.analysis.HasLegalTurn(pb.HasLegalTurnRequest(position=asked))
    assert answer.exists == exists
    found = await suggested(client, asked)
    assert found.play_exists == exists
    assert bool(found.tiles_played) is found.HasField("table") is (exists == pb.EXISTENCE_YES)


@pytest.mark.parametrize(
    ("tiles", "melds"),
    [
        ("R1 R2 R3 R4 B4 K4", ["R1 R2 R3", "R4 B4 K4"]),
        ("R1 R2 R3 R5", None),
        ("J R1", None),
        ("", []),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_tiles_are_arranged(served: tuple[Client, MemoryStore], tiles: str, melds: list[str] | None) -> None:
    client, _ = served
    request = pb.ArrangeTilesRequest(tiles=as_tiles(reversed(parse_tiles(tiles))))
    answer = await client.analysis.ArrangeTiles(request)
    assert answer.exists == (pb.EXISTENCE_NO if melds is None else pb.EXISTENCE_YES)
    assert sorted(text(one.tiles) for one in answer.melds) == sorted(melds or [])


@pytest.mark.asyncio(loop_scope="module")
async def test_a_batch_is_answered_in_order_with_each_positions_rules(served: tuple[Client, MemoryStore]) -> None:
    client, _ = served
    loose, strict = (melding_rules(initial_meld_threshold=threshold) for threshold in (6, 30))
    positions = [
        position("R7", "R4 R5 R6"),
        position("R1 R2 R3", has_melded=False),
        position("R1 R2 R3", has_melded=False, ruleset=strict),
        position("R9 R10 R11", has_melded=False),
    ]
    request = pb.BatchSuggestTurnsRequest(ruleset=loose, positions=positions, tier=pb.HINT_TIER_TILES)
    answer = await client.analysis.BatchSuggestTurns(request)
    played = ["R7", "R1 R2 R3", "", "R9 R10 R11"]
    assert [text(found.tiles_played) for found in answer.suggestions] == played
    assert not any(found.HasField("table") for found in answer.suggestions)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_pull_from_the_river_is_suggested(served: tuple[Client, MemoryStore]) -> None:
    client, _ = served
    rules = melding_rules(turn_draw=ruleset_pb2.TURN_DRAW_TWO_RIVER)
    river = as_tiles(parse_tiles("K13 O1 R7"))
    found = await suggested(client, position("R8 R9", ruleset=rules, river=river))
    assert (text(found.tiles_played), found.HasField("river_index"), found.river_index) == ("R8 R9", True, 2)
    assert found.steps[0].kind == pb.STEP_KIND_PULL
    assert text(found.steps[0].tiles) == "R7"


# Malformed requests


BAD_POSITIONS = {
    "position.table[0].tiles[1]": (
        pb.Position(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=as_tiles([1, 80]))]), has_melded=True),
        "TILE_UNKNOWN",
    ),
    "position.table[0]": (position("R1", "R1 R2 R4"), "MALFORMED_TABLE"),
    "position.table": (
        pb.Position(table=meld_pb2.Table(melds=[meld_pb2.Meld()] * 129), has_melded=True),
        "MALFORMED_TABLE",
    ),
    "position.table[0].tiles": (
        pb.Position(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=as_tiles([1] * 33))]), has_melded=True),
        "MALFORMED_MELD",
    ),
    "position.rack[2]": (pb.Position(rack=as_tiles([1, 2, 0]), has_melded=True), "TILE_UNKNOWN"),
    "position.rack": (position("R1 R1", "R1 R2 R3"), "POSITION_IMPOSSIBLE"),
    "position.river": (pb.Position(river=as_tiles([1]), has_melded=True), "POSITION_IMPOSSIBLE"),
    "position.ruleset.deal.players_min": (
        pb.Position(ruleset=melding_rules(players_min=1), has_melded=True),
        "OPTION_VALUE_INVALID",
    ),
}


@pytest.mark.parametrize("field", BAD_POSITIONS)
@pytest.mark.asyncio(loop_scope="module")
async def test_an_impossible_position_is_refused_with_its_field(served: tuple[Client, MemoryStore], field: str) -> None:
    client, _ = served
    asked, reason = BAD_POSITIONS[field]
    in_batch = pb.BatchSuggestTurnsRequest(positions=[pb.Position(has_melded=True), asked])
    for call, name in (
        (client.analysis.SuggestTurn(pb.SuggestTurnRequest(position=asked)), field),
        (client.analysis.HasLegalTurn(pb.HasLegalTurnRequest(position=asked)), field),
        (client.analysis.BatchSuggestTurns(in_batch), field.replace("position.", "positions[1].", 1)),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call
        assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert error_info(refusal.value).reason == reason
        assert field_violations(refusal.value)[0] == name


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.SuggestTurnRequest(), "subject"),
        (pb.SuggestTurnRequest(position=pb.Position(has_melded=True), tier=4), "tier"),  # type: ignore[arg-type]
        (pb.SuggestTurnRequest(position=pb.Position(has_melded=True), objective=-1), "objective"),  # type: ignore[arg-type]
        (
            pb.SuggestTurnRequest(position=pb.Position(has_melded=True), time_limit=Duration(seconds=10, nanos=1)),
            "time_limit",
        ),
        (pb.SuggestTurnRequest(game_id=""), "game_id"),
        (pb.SuggestTurnRequest(game_id="0" * 31), "game_id"),
        (pb.HasLegalTurnRequest(position=pb.Position(has_melded=True), time_limit=Duration(seconds=-1)), "time_limit"),
        (pb.HasLegalTurnRequest(position=pb.Position(has_melded=True), time_limit=Duration()), "time_limit"),
        (pb.HasLegalTurnRequest(position=pb.Position(has_melded=True), time_limit=Duration(nanos=10**9)), "time_limit"),
        (
            pb.HasLegalTurnRequest(position=pb.Position(has_melded=True), time_limit=Duration(seconds=1, nanos=-1)),
            "time_limit",
        ),
        (pb.ArrangeTilesRequest(tiles=as_tiles([1] * 129)), "tiles"),
        (pb.ArrangeTilesRequest(tiles=as_tiles([1] * 3)), "tiles"),
        (pb.ArrangeTilesRequest(time_limit=Duration(seconds=10, nanos=1)), "time_limit"),
        (pb.BatchSuggestTurnsRequest(positions=[pb.Position(has_melded=True)] * 101), "positions"),
        (pb.BatchSuggestTurnsRequest(time_limit=Duration(seconds=61)), "time_limit"),
        (pb.BatchSuggestTurnsRequest(tier=4), "tier"),  # type: ignore[arg-type]
    ],
    ids=str,
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_malformed_request_is_refused_with_its_field(
    served: tuple[Client, MemoryStore], request_: object, field: str
) -> None:
    client, _ = served
    calls = {
        pb.SuggestTurnRequest: client.analysis.SuggestTurn,
        pb.HasLegalTurnRequest: client.analysis.HasLegalTurn,
        pb.ArrangeTilesRequest: client.analysis.ArrangeTiles,
        pb.BatchSuggestTurnsRequest: client.analysis.BatchSuggestTurns,
    }
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await calls[type(request_)](request_)  # type: ignore[operator]
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert field_violations(refusal.value) == [field]


# A seat's own position


async def hint(game: GameAtHand, seat: int, tier: pb.HintTier.ValueType = pb.HINT_TIER_TURN) -> pb.SuggestTurnResponse:
    request = pb.SuggestTurnRequest(game_id=game.game_id, tier=tier, time_limit=LONG)
    return await game.client.analysis.SuggestTurn(request, metadata=game.as_seat(seat))


async def put(served: tuple[Client, MemoryStore], game: Game) -> GameAtHand:
    client, store = served
    return await put_game(client, store, game)


TWO_SEATS = "[R4 R5 R6] / 1*{R7 K1} 2*{R3 O9} / {O1 O2} / 1"


@pytest.mark.asyncio(loop_scope="module")
async def test_each_seat_gets_hints_for_its_own_rack_at_any_time_of_the_round(
    served: tuple[Client, MemoryStore],
) -> None:
    game = await put(served, game_at(TWO_SEATS, NO_LIMIT))
    first, second = await hint(game, 1), await hint(game, 2)
    assert (await game.see()).turn.seat == 1
    assert (text(first.suggestion.tiles_played), text(second.suggestion.tiles_played)) == ("R7", "R3")
    assert first.revision == second.revision == (await game.see()).revision


PLAYED = {
    "Sabra": SABRA,
    "no pass if a play exists": PRESETS[Preset.INTL_OFFICIAL],
    "declared jokers": replace(SABRA, geometry_jokers=4, jokers_declaration=JokersDeclaration.ALWAYS_EXPLICIT),
    "the River, and a call": replace(SABRA, turn_draw=TurnDraw.TWO_RIVER, win_call=WinCall.REQUIRED),
    "play after a draw": replace(SABRA, turn_play_after_draw=TurnPlayAfterDraw.ALLOWED),
    "play other tiles after a draw": replace(
        SABRA, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES, win_call=WinCall.REQUIRED
    ),
    "draw until a play is possible": replace(
        SABRA, turn_draw=TurnDraw.UNTIL_PLAYABLE, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES
    ),
}


@pytest.mark.parametrize("rules", PLAYED.values(), ids=PLAYED)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_suggested_turn_can_be_played_as_received(served: tuple[Client, MemoryStore], rules: Ruleset) -> None:
    """The conformance programs of the clients do the same with every preset."""
    client, _ = served
    settings = rulesets.encode_settings(RoomSettings(hints=Hints.TURN, turn_time_limit_seconds=0))
    game = await client.new_game(ruleset=rulesets.encode_ruleset(rules), settings=settings)
    plays = 0
    while (seen := await game.see()).state == game_pb2.GAME_STATE_PLAYING:
        seat = seen.turn.seat
        answer = await hint(game, seat)
        assert answer.turn.etag == seen.etag
        played = await client.turns.PlayTurn(answer.turn, metadata=game.as_seat(seat))
        found = answer.suggestion
        assert answer.turn.HasField("play") is (found.play_exists == pb.EXISTENCE_YES)
        assert played.points == found.points
        assert set(found.tiles_played) <= set(played.tiles_played)
        plays += answer.turn.HasField("play")
    assert (seen.state, plays > 5) == (game_pb2.GAME_STATE_FINISHED, True)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_round_of_okey_is_played_by_suggested_turns(served: tuple[Client, MemoryStore]) -> None:
    client, _ = served
    settings = rulesets.encode_settings(RoomSettings(hints=Hints.TURN, turn_time_limit_seconds=0))
    game = await client.new_game(ruleset=rulesets.encode_ruleset(OKEY), settings=settings)
    while (seen := await game.see()).state == game_pb2.GAME_STATE_PLAYING:
        seat = seen.turn.seat
        rack = (await game.see(seat)).rack
        answer = await hint(game, seat)
        assert answer.turn.etag == seen.etag
        assert len(answer.hand.spare) == answer.hand.missing + len(rack) - HAND_SIZE
        assert answer.turn.HasField("finish") is (answer.hand.missing == 0 and len(rack) > HAND_SIZE)
        assert not answer.HasField("suggestion")
        assert not (await hint(game, seat % len(seen.players) + 1)).HasField("turn")
        await client.turns.PlayTurn(answer.turn, metadata=game.as_seat(seat))
    assert seen.state == game_pb2.GAME_STATE_ROUND_OVER


@pytest.mark.asyncio(loop_scope="module")
async def test_a_tier_shows_no_more_of_a_hand_than_asked(served: tuple[Client, MemoryStore]) -> None:
    client, _ = served
    settings = rulesets.encode_settings(RoomSettings(hints=Hints.TILES, turn_time_limit_seconds=0))
    game = await client.new_game(ruleset=rulesets.encode_ruleset(OKEY), settings=settings)
    seat = (await game.see()).turn.seat
    first, second = await hint(game, seat, pb.HINT_TIER_PLAY_EXISTS), await hint(game, seat, pb.HINT_TIER_TILES)
    assert first.hand.missing == second.hand.missing == len(second.hand.spare) - 1
    assert not first.hand.spare
    assert not second.HasField("turn")
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await hint(game, seat, pb.HINT_TIER_TURN)
    assert error_info(refusal.value).reason == "HINT_NOT_ALLOWED"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_turn_is_returned_only_for_the_whole_turn_of_the_seat_to_play(
    served: tuple[Client, MemoryStore],
) -> None:
    client, _ = served
    game = await put(served, game_at(TWO_SEATS, NO_LIMIT))
    assert (await hint(game, 1)).turn.play.table.melds
    for tier in (pb.HINT_TIER_PLAY_EXISTS, pb.HINT_TIER_TILES):
        assert not (await hint(game, 1, tier)).HasField("turn")
    assert not (await hint(game, 2)).HasField("turn")
    of_position = await client.analysis.SuggestTurn(pb.SuggestTurnRequest(position=position("R7", "R4 R5 R6")))
    assert not of_position.HasField("turn")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_seat_that_chooses_for_the_river_can_play_nothing(served: tuple[Client, MemoryStore]) -> None:
    river = room(NO_LIMIT, turn_draw=TurnDraw.TWO_RIVER)
    start = game_at("[R4 R5 R6] / 1*{R7 K1 K9 O12} 2*{R3 O9} / {O1 O2} / 1", river)
    game = await put(served, with_round(start, step=Choosing((parse_tiles("K9")[0], parse_tiles("R7")[0]))))
    for tier in (pb.HINT_TIER_PLAY_EXISTS, pb.HINT_TIER_TILES, pb.HINT_TIER_TURN):
        assert (await hint(game, 1, tier)).suggestion == pb.Suggestion(play_exists=pb.EXISTENCE_NO)
    laid = (await hint(game, 1)).turn
    assert laid.lay_on_river.tile in as_tiles(parse_tiles("K9 R7"))
    assert text((await hint(game, 2)).suggestion.tiles_played) == "R3"
    await game.client.turns.PlayTurn(laid, metadata=game.as_seat(1))
    assert (await game.see()).river == [laid.lay_on_river.tile]


def with_round(game: Game, **changes: object) -> Game:
    assert isinstance(game.phase, Playing)
    return replace(game, phase=Playing(replace(game.phase.round, **changes)))  # type: ignore[arg-type]


@pytest.mark.parametrize("tier", [pb.HINT_TIER_PLAY_EXISTS, pb.HINT_TIER_TILES, pb.HINT_TIER_TURN])
@pytest.mark.asyncio(loop_scope="module")
async def test_games_that_look_the_same_to_a_seat_get_the_same_suggestion(
    served: tuple[Client, MemoryStore], tier: pb.HintTier.ValueType
) -> None:
    one = await put(served, game_at("[R4 R5 R6] / 1*{R7 K1} 2*{R3 O9} / {R8 R9} / 1", NO_LIMIT))
    other = await put(served, game_at("[R4 R5 R6] / 1*{R7 K1} 2*{K9 K2} / {J R3} / 1", NO_LIMIT))
    answers = [await hint(game, 1, tier) for game in (one, other)]
    for answer in answers:
        answer.turn.ClearField("game_id")
        answer.turn.ClearField("etag")
    assert answers[0].SerializeToString(deterministic=True) == answers[1].SerializeToString(deterministic=True)
    assert (await hint(one, 2)).suggestion != (await hint(other, 2)).suggestion


@pytest.mark.asyncio(loop_scope="module")
async def test_only_a_player_of_the_game_gets_a_hint(served: tuple[Client, MemoryStore]) -> None:
    game = await put(served, game_at(TWO_SEATS, NO_LIMIT))
    client, _ = served
    unknown = pb.SuggestTurnRequest(game_id="0" * 32)
    known = pb.SuggestTurnRequest(game_id=game.game_id)
    refusals = []
    for request, token, reason in (
        (known, "", "NOT_A_PLAYER"),
        (unknown, "", "NOT_A_PLAYER"),
        (known, game.host_token, "NOT_A_PLAYER"),
        (known, "w" * 43, "TOKEN_VOID"),
        (unknown, "1" * 43, "GAME_NOT_FOUND"),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await client.analysis.SuggestTurn(request, metadata=bearer(token))
        refusals.append(status_details(refusal.value))
        assert error_info(refusal.value).reason == reason
    assert refusals[0] == refusals[1] == refusals[2]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_hint_changes_nothing(served: tuple[Client, MemoryStore]) -> None:
    _, store = served
    game = await put(served, game_at(TWO_SEATS, NO_LIMIT))
    before = (await store.games.load(game.game_id)).record
    await hint(game, 1)
    assert (await store.games.load(game.game_id)).record == before


@pytest.mark.parametrize("allowed", Hints, ids=lambda allowed: allowed.name)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_game_limits_the_hints_that_its_seats_may_request(
    served: tuple[Client, MemoryStore], allowed: Hints
) -> None:
    game = await put(served, game_at(TWO_SEATS, room(NO_LIMIT, hints=allowed)))
    tiers = (pb.HINT_TIER_PLAY_EXISTS, pb.HINT_TIER_TILES, pb.HINT_TIER_TURN)
    may = {Hints.OFF: 0, Hints.PLAY_EXISTS: 1, Hints.TILES: 2, Hints.TURN: 3, Hints.AGAINST_BOTS: 0}[allowed]
    for tier in tiers[:may]:
        assert (await hint(game, 1, tier)).suggestion.play_exists == pb.EXISTENCE_YES
    for tier in (*tiers[may:], *((pb.HINT_TIER_UNSPECIFIED,) if may < 3 else ())):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await hint(game, 1, tier)
        assert refusal.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        info = error_info(refusal.value)
        assert (info.reason, dict(info.metadata)) == ("HINT_NOT_ALLOWED", {"hints": allowed.name})
    asked = position("R7 K1", "R4 R5 R6", ruleset=rulesets.encode_ruleset(SABRA).melding)
    assert (await suggested(game.client, asked)).table.melds, (
        "a position without a game is not limited by the game's hints"
    )


@pytest.mark.parametrize(
    ("bots", "third", "is_allowed"),
    [
        ({}, {}, False),
        ({2}, {}, False),
        ({2, 3}, {}, True),
        ({2}, {"resigned": True}, False),
        ({2}, {"stand_in": BotLevel.EASY}, False),
    ],
    ids=["people", "a bot and a person", "bots", "a bot and a person who resigned", "a bot and an absent person"],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_by_default_only_a_person_among_bots_gets_hints(
    served: tuple[Client, MemoryStore], bots: Collection[int], third: dict[str, Any], *, is_allowed: bool
) -> None:
    start = game_at("[R4 R5 R6] / 1*{R7 K1} 2*{R3 O9} 3*{B1 B9} / {O1 O2} / 1", room(SABRA, turn_time_limit_seconds=0))
    players = tuple(
        replace(player, bot=BotLevel.EASY if player.seat in bots else None, **(third if player.seat == 3 else {}))
        for player in start.players
    )
    game = await put(served, replace(start, players=players))
    if is_allowed:
        assert text((await hint(game, 1)).suggestion.tiles_played) == "R7"
    else:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await hint(game, 1, pb.HINT_TIER_PLAY_EXISTS)
        info = error_info(refusal.value)
        assert (info.reason, dict(info.metadata)) == ("HINT_NOT_ALLOWED", {"hints": "AGAINST_BOTS"})


@pytest.mark.parametrize(
    ("may_play", "played"),
    [(TurnPlayAfterDraw.OTHER_TILES, "R3"), (TurnPlayAfterDraw.ALLOWED, "R3 R7")],
    ids=lambda value: getattr(value, "name", value),
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_drawn_tile_is_suggested_if_the_rules_allow_playing_it(
    served: tuple[Client, MemoryStore], may_play: TurnPlayAfterDraw, played: str
) -> None:
    rules = room(NO_LIMIT, turn_play_after_draw=may_play)
    drawn = Drawn(*parse_tiles("R7"))
    game = with_round(game_at("[R4 R5 R6] / 1*{R3 R7 K1} 2*{O9} / {O1 O2} / 1", rules), step=drawn)
    at_hand = await put(served, game)
    assert text((await hint(at_hand, 1)).suggestion.tiles_played) == played


@pytest.mark.parametrize("may_play", [TurnPlayAfterDraw.OTHER_TILES, TurnPlayAfterDraw.ALLOWED], ids=lambda v: v.name)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_player_who_keeps_the_drawn_tile_does_not_go_out(
    served: tuple[Client, MemoryStore], may_play: TurnPlayAfterDraw
) -> None:
    rules = room(NO_LIMIT, turn_play_after_draw=may_play)
    game = game_at("[R4 R5 R6] / 1*{R3 R7} 2*{O9} / {O1 O2} / 1", rules)
    at_hand = await put(served, with_round(game, step=Drawn(*parse_tiles("R7"))))
    found = await hint(at_hand, 1)
    played = await at_hand.take(found.turn)
    assert found.suggestion.goes_out is (not played.game.rack)


# Bounds


def settings(workers: int = 1, queue: int = 64) -> Settings:
    return server_settings(analysis_workers=workers, analysis_queue=queue)


@asynccontextmanager
async def scripted(workers: int = 1, queue: int = 64) -> AsyncIterator[tuple[Server, Client]]:
    """Runs a server whose workers follow scripts (scripted_worker.py)."""
    store = memory_store()
    async with running_server(store, settings(workers, queue), analysis_command=SCRIPTED) as (server, client):
        yield server, client


Answering = grpc.aio.UnaryUnaryCall[pb.HasLegalTurnRequest, pb.HasLegalTurnResponse]


def ask(client: Client, script: Script, time_limit: Duration = LONG, timeout: float | None = None) -> Answering:
    request = pb.HasLegalTurnRequest(
        position=pb.Position(rack=as_tiles([script]), has_melded=True), time_limit=time_limit
    )
    return client.analysis.HasLegalTurn(request, timeout=timeout)


async def reason(call: Answering) -> str:
    """Returns the reason of an error, or nothing for an answer."""
    try:
        await call
    except grpc.aio.AioRpcError as refusal:
        return str(error_info(refusal).reason)
    return ""


@asynccontextmanager
async def soon() -> AsyncIterator[None]:
    """Asserts that the block takes less time than a search may."""
    started = time.monotonic()
    async with asyncio.timeout(2 * LONG.seconds):
        yield
    assert time.monotonic() - started < SOON_SECONDS


async def test_a_workers_caches_are_not_garbage_collected_during_a_search() -> None:
    async with scripted() as (_, client):
        await ask(client, Script.REMEMBERS_MUCH)
        answer = await ask(client, Script.TELLS_WHETHER_GARBAGE_IS_FOUND_SOON)
        assert answer.exists == pb.EXISTENCE_YES


async def test_a_search_ends_at_its_time_limit_without_a_claim() -> None:
    async with scripted() as (_, client), soon():
        assert (
            await ask(client, Script.SEARCHES_TO_THE_END, Duration(nanos=20_000_000))
        ).exists == pb.EXISTENCE_UNKNOWN
        request = pb.SuggestTurnRequest(
            position=pb.Position(rack=as_tiles([2]), has_melded=True), time_limit=Duration(nanos=20_000_000)
        )
        assert (await client.analysis.SuggestTurn(request)).suggestion == pb.Suggestion(
            play_exists=pb.EXISTENCE_UNKNOWN
        )


async def test_a_search_ends_early_enough_to_answer_before_the_calls_deadline() -> None:
    ten_seconds = Duration(seconds=10)
    async with scripted() as (_, client):
        for timeout, exists in ((None, pb.EXISTENCE_YES), (60, pb.EXISTENCE_YES), (10, pb.EXISTENCE_NO)):
            answer = await ask(client, Script.TELLS_WHETHER_IT_HAS_TEN_SECONDS, ten_seconds, timeout)
            assert answer.exists == exists


async def test_a_batch_shares_its_time_limit() -> None:
    async with scripted() as (_, client), soon():
        positions = [pb.Position(rack=as_tiles([number]), has_melded=True) for number in (2, 1, 2, 1)]
        request = pb.BatchSuggestTurnsRequest(positions=positions, time_limit=Duration(nanos=100_000_000))
        answer = await client.analysis.BatchSuggestTurns(request)
        unknown, no = pb.EXISTENCE_UNKNOWN, pb.EXISTENCE_NO
        assert [found.play_exists for found in answer.suggestions] == [unknown, no, unknown, no]


async def test_a_batch_shares_the_time_until_the_deadline() -> None:
    async with scripted() as (_, client), soon():
        assert (await ask(client, Script.ANSWERS)).exists == pb.EXISTENCE_NO  # the worker has started
        scripts = (Script.SEARCHES_TO_THE_END, Script.TELLS_WHETHER_IT_HAS_TIME)
        positions = [pb.Position(rack=as_tiles([script]), has_melded=True) for script in scripts]
        request = pb.BatchSuggestTurnsRequest(
            positions=positions, tier=pb.HINT_TIER_PLAY_EXISTS, time_limit=Duration(seconds=60)
        )
        answer = await client.analysis.BatchSuggestTurns(request, timeout=4.0)
        assert [found.play_exists for found in answer.suggestions] == [pb.EXISTENCE_UNKNOWN, pb.EXISTENCE_YES]


async def test_waiting_for_a_worker_does_not_reduce_a_batchs_time_limit() -> None:
    async with scripted() as (server, client), soon():
        searching = ask(client, Script.SEARCHES_TO_THE_END, Duration(seconds=2, nanos=500_000_000))
        while not calls_with_a_place(server):
            await client.validation.ValidateTurn(vs.ValidateTurnRequest(has_melded=True))
        positions = [pb.Position(rack=as_tiles([Script.TELLS_WHETHER_IT_HAS_TIME]), has_melded=True)] * 2
        request = pb.BatchSuggestTurnsRequest(
            positions=positions, tier=pb.HINT_TIER_PLAY_EXISTS, time_limit=Duration(seconds=2)
        )
        answer = await client.analysis.BatchSuggestTurns(request)
        assert searching.done()
        assert [found.play_exists for found in answer.suggestions] == [pb.EXISTENCE_YES, pb.EXISTENCE_YES]


async def test_a_call_beyond_the_queue_is_refused_at_once_with_a_retry_delay() -> None:
    async with scripted(workers=1, queue=1) as (_, client), soon():
        calls = [ask(client, Script.SEARCHES_TO_THE_END) for _ in range(3)]
        done, waiting = await asyncio.wait(
            [asyncio.create_task(reason(call)) for call in calls], return_when="FIRST_COMPLETED"
        )
        assert [task.result() for task in done] == ["ANALYSIS_BUSY"]
        for call in calls:
            call.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        while await reason(call := ask(client, Script.ANSWERS)) == "ANALYSIS_BUSY":
            assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_validation_is_answered_while_all_workers_search() -> None:
    async with scripted() as (_, client):
        searching = ask(client, Script.SEARCHES_TO_THE_END)
        async with soon():
            for _ in range(20):
                await client.validation.ValidateTurn(vs.ValidateTurnRequest(has_melded=True))
        assert not searching.done()
        searching.cancel()


async def test_a_cancelled_call_frees_its_worker() -> None:
    async with scripted() as (server, client), soon():
        assert await reason(ask(client, Script.ANSWERS)) == ""
        [process] = server.analysis.processes
        searching = ask(client, Script.SEARCHES_TO_THE_END)
        while (code := await ask(client, Script.ANSWERS, timeout=0.2).code()) is grpc.StatusCode.OK:
            pass  # the search occupies the worker
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED
        searching.cancel()
        assert (await ask(client, Script.ANSWERS)).exists == pb.EXISTENCE_NO
        assert server.analysis.processes == (process,)


A, B = (Holder(name, is_bounded=True) for name in "ab")


@asynccontextmanager
async def one_worker(workers: int = 1, peer_share: float = 1.0) -> AsyncIterator[AnalysisPool]:
    """Yields a pool of scripted workers, without a server."""
    pool = AnalysisPool(workers, 64, Metrics(), peer_share, SCRIPTED)
    yield pool
    await pool.close()


def asked(script: Script) -> TurnExistsQuery:
    return TurnExistsQuery(Situation((), (Tile(int(script)),), has_melded=True, ruleset=SABRA))


async def test_a_bot_is_served_before_waiting_calls_then_one_call_is() -> None:
    async with one_worker() as pool, soon():
        searching = asyncio.create_task(pool.ask(asked(Script.SEARCHES_TO_THE_END), 0.1, holder=A))
        waiting = asyncio.create_task(pool.ask(asked(Script.SEARCHES_TO_THE_END), LONG.seconds, holder=A))
        await asyncio.sleep(0)
        assert (await PriorityAnalysis(pool).ask(asked(Script.ANSWERS), LONG.seconds)).exists is Existence.NO
        assert searching.done()
        bots_next = asyncio.create_task(PriorityAnalysis(pool).ask(asked(Script.ANSWERS), LONG.seconds))
        done, _ = await asyncio.wait([waiting, bots_next], timeout=0.2)
        assert not done
        waiting.cancel()
        assert (await bots_next).exists is Existence.NO


async def test_addresses_take_turns_in_the_queue() -> None:
    order: list[str] = []

    async def search(pool: AnalysisPool, address: str) -> None:
        await pool.ask(asked(Script.ANSWERS), LONG.seconds, holder=Holder(address, is_bounded=True))
        order.append(address)

    async with one_worker() as pool, soon(), asyncio.TaskGroup() as searching:
        for address in "aaaaabbc":
            searching.create_task(search(pool, address))
            await asyncio.sleep(0)
    assert "".join(order) == "aabcabaa"


async def test_one_address_has_its_share_of_the_workers_however_much_it_asks() -> None:
    async with one_worker(workers=2, peer_share=0.5) as pool, soon():
        attack = [
            asyncio.create_task(pool.ask(asked(Script.SEARCHES_TO_THE_END), LONG.seconds, holder=A)) for _ in range(10)
        ]
        await asyncio.sleep(0)
        for _ in range(3):
            assert (await pool.ask(asked(Script.ANSWERS), LONG.seconds, holder=B)).exists is Existence.NO
        assert len(pool.processes) == 2
        for search in attack:
            search.cancel()
        await asyncio.wait(attack)
        both = [
            pool.ask(asked(Script.ANSWERS), LONG.seconds, holder=Holder(address, is_bounded=True)) for address in "ab"
        ]
        assert {answer.exists for answer in await asyncio.gather(*both)} == {Existence.NO}


async def test_a_key_has_its_quota_of_searches_at_all_addresses_together() -> None:
    key, other = Key("web", quotas={SEARCHES: 2}), Key("partner")
    async with one_worker(workers=2) as pool:
        with pool.admit(Origin("a", key)), pool.admit(Origin("b", key)):
            with pytest.raises(AnalysisBusy), pool.admit(Origin("c", key)):
                pass
            with pool.admit(Origin("a", other)), pool.admit(Origin("a")):
                pass
        with pool.admit(Origin("c", key)):
            pass


async def test_a_proxy_may_have_all_workers() -> None:
    proxy = Origin("a", Key("web", is_proxy=True))
    async with one_worker(workers=2, peer_share=0.5) as pool, soon():
        with pool.admit(proxy) as admitted:
            search = asyncio.create_task(admitted.ask(asked(Script.SEARCHES_TO_THE_END), LONG.seconds))
            await asyncio.sleep(0)
            assert (await admitted.ask(asked(Script.ANSWERS), LONG.seconds)).exists is Existence.NO
            search.cancel()
            await asyncio.wait([search])


async def test_a_call_that_is_cancelled_while_waiting_occupies_no_worker() -> None:
    async with one_worker() as pool, soon():
        searching = asyncio.create_task(pool.ask(asked(Script.SEARCHES_TO_THE_END), 0.1, holder=A))
        waiting = [asyncio.create_task(pool.ask(asked(Script.ANSWERS), LONG.seconds, holder=A)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await searching
        waiting[1].cancel()  # a worker is assigned to this call in the same iteration
        assert (await waiting[2]).exists is Existence.NO
        assert (await pool.ask(asked(Script.ANSWERS), LONG.seconds, holder=A)).exists is Existence.NO


async def test_a_call_that_is_cancelled_before_its_search_starts_none() -> None:
    async with one_worker() as pool, soon():
        cancelled = asyncio.create_task(pool.ask(asked(Script.SEARCHES_TO_THE_END), LONG.seconds, holder=A))
        await asyncio.sleep(0)
        cancelled.cancel()  # while the process starts
        assert (await pool.ask(asked(Script.ANSWERS), LONG.seconds, holder=A)).exists is Existence.NO


async def test_a_worker_that_dies_fails_one_call_and_is_replaced() -> None:
    async with scripted(workers=2) as (server, client):
        searching = ask(client, Script.SEARCHES_TO_THE_END, Duration(seconds=1))
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await ask(client, Script.DIES)
        assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
        assert error_info(refusal.value).reason == "ANALYSIS_UNAVAILABLE"
        assert (await ask(client, Script.ANSWERS)).exists == pb.EXISTENCE_NO
        assert (await searching).exists == pb.EXISTENCE_UNKNOWN
        assert len(server.analysis.processes) == 2


async def test_a_worker_that_hangs_is_replaced() -> None:
    async with scripted() as (server, client), soon():
        assert await reason(ask(client, Script.ANSWERS)) == ""
        [process] = server.analysis.processes
        grace_seconds, server.analysis.grace_seconds = server.analysis.grace_seconds, 0.1
        assert await reason(ask(client, Script.GETS_STUCK, Duration(nanos=10_000_000))) == "ANALYSIS_UNAVAILABLE"
        server.analysis.grace_seconds = grace_seconds
        assert await reason(ask(client, Script.ANSWERS)) == ""
        assert process not in server.analysis.processes
        assert server.metrics.registry.get_sample_value("rummikub_analysis_workers_lost_total") == 1


async def test_metrics_count_the_admitted_calls() -> None:
    async with scripted() as (server, client):
        searching = ask(client, Script.SEARCHES_TO_THE_END)
        while (places := calls_with_a_place(server)) == 0:
            await client.validation.ValidateTurn(vs.ValidateTurnRequest(has_melded=True))
        assert places == 1
        searching.cancel()
        while calls_with_a_place(server):
            await client.validation.ValidateTurn(vs.ValidateTurnRequest(has_melded=True))


def calls_with_a_place(server: Server) -> float | None:
    return server.metrics.registry.get_sample_value("rummikub_analysis_calls")


async def test_a_server_that_stops_ends_its_searches() -> None:
    async with soon():
        async with scripted() as (server, client):
            searching = ask(client, Script.SEARCHES_TO_THE_END)
            while not calls_with_a_place(server):
                await client.validation.ValidateTurn(vs.ValidateTurnRequest(has_melded=True))
        assert await searching.code() is not grpc.StatusCode.OK
    assert not server.analysis.processes


async def test_a_worker_that_is_killed_is_replaced() -> None:
    async with scripted() as (server, client):
        assert await reason(ask(client, Script.ANSWERS)) == ""
        [process] = server.analysis.processes
        os.kill(process, signal.SIGKILL)
        assert await reason(ask(client, Script.ANSWERS)) in {"", "ANALYSIS_UNAVAILABLE"}
        assert await reason(ask(client, Script.ANSWERS)) == ""
        assert server.analysis.processes != (process,)


async def test_a_failed_search_reveals_no_internals_and_keeps_the_worker() -> None:
    async with scripted() as (server, client):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await ask(client, Script.FAILS)
        assert error_info(refusal.value).reason == "INTERNAL_ERROR"
        assert "inside" not in str(refusal.value)
        processes = server.analysis.processes
        assert await reason(ask(client, Script.ANSWERS)) == ""
        assert server.analysis.processes == processes


async def test_workers_start_on_demand_with_low_priority() -> None:
    async with scripted(workers=2) as (server, client):
        assert not server.analysis.processes
        assert (await ask(client, Script.TELLS_ITS_PROCESS)).exists == pb.EXISTENCE_YES
        assert (await ask(client, Script.ANSWERS)).exists == pb.EXISTENCE_NO
        assert len(server.analysis.processes) == 1
    assert len(server.analysis.processes) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("is_searching", [False, True], ids=["idle", "searching"])
async def test_a_worker_ends_with_a_server_that_is_killed(*, is_searching: bool) -> None:
    async with (
        server_process({"RUMMIKUB_REDIS_URL": "memory://"}) as process,
        grpc.aio.insecure_channel(process.target) as channel,
    ):
        client = Client(channel)
        await suggested(client, position("R7", "R4 R5 R6"))
        [worker] = children(process.pid)
        hard = position(" ".join(f"{color}{value}" for color in "RBKO" for value in range(1, 14) if value % 3))
        searching = (
            client.analysis.SuggestTurn(pb.SuggestTurnRequest(position=hard, time_limit=LONG)) if is_searching else None
        )
        await process.kill()
        async with soon():
            await ended(worker)
        if searching:
            with pytest.raises(grpc.aio.AioRpcError):
                await searching


def children(process: int) -> list[int]:
    """Returns the child processes of a process."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


async def ended(process: int) -> None:
    """Waits for the end of a process that is not our own child."""
    event = asyncio.Event()
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    asyncio.get_running_loop().add_reader(handle, event.set)
    await event.wait()
    asyncio.get_running_loop().remove_reader(handle)
    os.close(handle)


def test_a_turn_that_is_too_complex_to_judge_is_not_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    table = (Meld(parse_tiles("R4 R5 R6"), MeldKind.RUN, 15),)
    query = BestTurnQuery(Situation(table, parse_tiles("R7"), has_melded=True, ruleset=SABRA), Objective.MOST_TILES)
    assert query.answer(Budget(1_000)).exists is Existence.YES
    too_complex = Judgement((Violation(Reason.TURN_TOO_COMPLEX, "table_after"),), (), (), (), 0)
    monkeypatch.setattr("service.analysis.queries.judge", lambda _: too_complex)
    assert query.answer(Budget(1_000)) == TurnExistsQuery(query.situation).answer(Budget(1_000))


@pytest.mark.parametrize("nodes", few_of((0, 20, 200), 1))
def test_every_tier_proves_alike_whether_a_play_exists_however_short_the_search(nodes: int) -> None:
    of_games = [recorded.situation for recorded in read()[::300]]
    for situation in (*of_games, *positions_of_games(PRESETS[Preset.WIKI_FR], 4)):
        proven = has_turn(situation, RULES_BUDGET)
        queries = [turn_query(situation, tier, objective) for tier in HintTier for objective in Objective]
        for budget in (Budget(nodes), Budget(is_over=lambda: True)):
            assert {query.answer(budget).exists for query in queries} == {proven}
