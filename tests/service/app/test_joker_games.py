"""Whole games of American and International Rummikub over gRPC, with chosen deals, as their players see them."""

import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from conformance.grpc_answers import FACE_OF, FixedChance, faces_of
from rummikub.v1 import game_pb2, record_service_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.composition import build_server
from service.storage.store import Store
from support.conformance_cases import parse_faces, parse_hand
from support.conformance_messages import hand_of, tile_of, tiles_of
from support.harness import Client, GameAtHand, error_info, field_violations, server_settings
from tools.games import Options, changes_of, options

pytestmark = pytest.mark.slow

ANN, BOB = 1, 2
AMERICAN: Options = options(preset=ruleset_pb2.PRESET_AMERICAN, match_rounds=1)
INTERNATIONAL: Options = options(preset=ruleset_pb2.PRESET_INTERNATIONAL, match_rounds=2)
HIGH_RUNS = "R1 R10 R11 R12 R13 B1 B10 B11 B12 B13 K10 K11 K12 K13"
AMERICAN_DEAL = (
    "R7 K9 K10 K11 R4 R5 R6 O8 O9 J B1 B2 B3 O3 O5 R8 R9 R10 B5 B6 B8 B10 B12 O1 O2 O13 K1 K3 K5 O4 K2 K4 K8"
)
"""The trump, the racks of Ann and Bob, and the pool."""
INTERNATIONAL_DEALS = [
    "K10 K11 K12 R6 R7 R8 B2 B4 O1 O3 O5 B8 K2 K4 B9 B10 B11 O11 O12 O13 R1 R2 R3 R9 K5 K6 K7 K8 B13",
    f"{HIGH_RUNS} R2 R3 R4 R5 B2 B3 B5 B6 O1 O2 O4 O5 O8 K1 O3",
]
AMERICAN_EVENTS = [
    "game_created",
    "player_joined",
    "player_joined",
    "hands_dealt turn_started",
    "pool_tile_taken",
    "tiles_laid",
    "tile_discarded turn_started",
    "discard_taken",
    "discard_returned pool_tile_taken",
    "tile_discarded turn_started",
    "trump_taken",
    "tiles_laid",
    "tile_discarded turn_started",
    "pool_tile_taken",
    "tiles_laid",
    "tile_discarded turn_started",
    "pool_tile_taken",
    "tiles_laid",
    "rack_finished round_ended game_ended",
]
AMERICAN_MOVES = [
    "1 draw O4",
    "1 meld [K9 K10 K11] | [R4 R5 R6]",
    "1 discard O3",
    "2 take O3",
    "2 putback K2",
    "2 discard O13",
    "1 trump R7",
    "1 meld [K9 K10 K11] | [R4 R5 R6 R7] | [O8 O9 J] | [B1 B2 B3]",
    "1 discard O5",
    "2 draw K4",
    "2 meld [K9 K10 K11] | [R4 R5 R6 R7] | [O8 O9 J] | [B1 B2 B3] | [R8 R9 R10] | [K1 K2 K3 K4 K5]",
    "2 discard O2",
    "1 draw K8",
    "1 meld [K8 K9 K10 K11] | [R4 R5 R6 R7] | [O8 O9 J] | [B1 B2 B3] | [R8 R9 R10] | [K1 K2 K3 K4 K5]",
    "1 discard O4",
    "end WENT_OUT 1:42 2:-42",
    "winners 1",
]
INTERNATIONAL_EVENTS = [
    "game_created",
    "player_joined",
    "player_joined",
    "hands_dealt turn_started",
    "pool_tile_taken",
    "tiles_laid",
    "tile_discarded turn_started",
    "discard_taken",
    "tiles_laid rack_finished round_ended",
    "hands_dealt turn_started",
    "pool_tile_taken",
    "hand_finished round_ended game_ended",
]
FOOT = "[K10 K11 K12] | [R6 R7 R8 R9] | [B9 B10 B11] | [O11 O12 O13] | [R1 R2 R3] | [K5 K6 K7 K8]"
INTERNATIONAL_MOVES = [
    "1 draw B13",
    "1 meld [K10 K11 K12] | [R6 R7 R8]",
    "1 discard B13",
    "2 take B13",
    f"2 foot B13 {FOOT}",
    "end WENT_OUT 1:38 2:-200",
    "2 draw O3",
    "2 finish O3 [R10 R11 R12 R13 R1] | [B10 B11 B12 B13 B1] | [K10 K11 K12 K13]",
    "end WENT_OUT 1:300 2:-300",
    "winners 2",
]

NewGame = Callable[[Options, Sequence[str]], AbstractAsyncContextManager[GameAtHand]]


@pytest.fixture
def new_game(store: Store) -> NewGame:
    """Returns what creates a game of Ann, who starts, and Bob, with some deals."""

    @asynccontextmanager
    async def create(rules: Options, deals: Sequence[str]) -> AsyncIterator[GameAtHand]:
        chance = FixedChance()
        server = build_server(server_settings(sweep_seconds=3600, games_per_minute=0), store, chance=chance)
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            chance.coming = deque(shuffle for deal in deals for shuffle in ((), parse_faces(deal)))
            yield await Client(channel).new_game(2, ruleset=rules)
        await server.stop()

    return create


def turn(member: str, **fields: str) -> ts.PlayTurnRequest:
    """Returns a turn with an action; tiles and tables are texts."""
    request = ts.PlayTurnRequest()
    action = getattr(request, member)
    action.SetInParent()
    parsed = {name: tile_of(text) if name == "tile" else hand_of(parse_hand(text)) for name, text in fields.items()}
    action.MergeFrom(type(action)(**parsed))
    return request


async def reason(game: GameAtHand, action: ts.PlayTurnRequest) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await game.take(action)
    return str(error_info(refused.value).reason)


async def take_all(game: GameAtHand, *actions: ts.PlayTurnRequest) -> game_pb2.Game:
    """Takes actions, each as the player whose turn it is; returns the game after the last one."""
    answers = [await game.take(action) for action in actions]
    return answers[-1].game


def faces(tiles: Iterable[int]) -> list[str]:
    return sorted(faces_of(tiles))


async def check_history(game: GameAtHand, events: list[str], moves: list[str]) -> None:
    """Checks the events of each change, and the record, which plays the same game again."""
    changes = await changes_of(game.client, game.game_id)
    assert [" ".join(str(event.WhichOneof("event")) for event in change.events) for change in changes] == events
    export = record_service_pb2.ExportGameRequest(game_id=game.game_id, form=record_service_pb2.RECORD_FORM_TEXT)
    text = (await game.client.records.ExportGame(export, metadata=game.as_seat(BOB))).text
    lines = [re.sub(r"^[0-9]+ [0-9.]+ ", "", line) for line in text.splitlines()]
    assert [line for line in lines if re.match("([12] (?!deal)|end|winners)", line)] == moves
    export.form = record_service_pb2.RECORD_FORM_MESSAGE
    record = (await game.client.records.ExportGame(export, metadata=game.as_seat(BOB))).record
    for source in ({"text": text}, {"record": record}):
        checked = await game.client.records.ImportRecord(record_service_pb2.ImportRecordRequest(**source))
        assert (checked.is_complete, checked.HasField("fault")) == (True, False)


async def test_a_round_of_american_rummikub(new_game: NewGame) -> None:
    async with new_game(AMERICAN, [AMERICAN_DEAL]) as game:
        start = await game.see(ANN)
        board = start.discard_board
        assert (FACE_OF[board.trump], board.indicator, board.okey, start.pool_count) == ("R7", 0, 0, 77)
        assert (start.turn.seat, start.turn.step) == (ANN, game_pb2.TURN_STEP_OPEN)
        assert await reason(game, turn("take_trump")) == "TRUMP_NOT_TAKEABLE"
        assert await reason(game, turn("pass_empty_pool")) == "PASS_NOT_ALLOWED_POOL_NOT_EMPTY"
        opened = await take_all(game, turn("take_from_pool"), turn("lay", table="[K9 K10 K11] | [R4 R5 R6]"))
        [opening] = opened.discard_board.openings
        assert (opening.seat, opening.amount) == (ANN, 45)
        await game.take(turn("discard", tile="O3"))
        await take_all(game, turn("take_discard"), turn("return_discard"), turn("discard", tile="O13"))
        taken = await take_all(game, turn("take_trump"))
        assert (taken.discard_board.trump, FACE_OF[taken.discard_board.owed_tile]) == (0, "R7")
        assert await reason(game, turn("discard", tile="O5")) == "TAKEN_TILE_NOT_USED"
        assert await reason(game, turn("finish", tile="O5")) == "ACTION_NOT_IN_GAME"
        table = "[K9 K10 K11] | [R4 R5 R6 R7] | [O8 O9 J] | [B1 B2 B3]"
        await take_all(game, turn("lay", table=table), turn("discard", tile="O5"))
        table += " | [R8 R9 R10] | [K1 K2 K3 K4 K5]"
        await take_all(game, turn("take_from_pool"), turn("lay", table=table), turn("discard", tile="O2"))
        table = table.replace("[K9", "[K8 K9")
        over = await take_all(game, turn("take_from_pool"), turn("lay", table=table), turn("discard", tile="O4"))
        assert (over.state, list(over.winner_seats)) == (game_pb2.GAME_STATE_FINISHED, [ANN])
        assert [player.total_points for player in over.players] == [42, -42]
        assert over.discard_board.rack_finish.seat == ANN
        assert not over.discard_board.rack_finish.is_foot
        await check_history(game, AMERICAN_EVENTS, AMERICAN_MOVES)


async def test_a_foot_and_a_named_hand(new_game: NewGame) -> None:
    async with new_game(INTERNATIONAL, INTERNATIONAL_DEALS) as game:
        start = await game.see()
        assert (start.discard_board.trump, start.pool_count) == (0, 78)
        assert [hand.name for hand in start.ruleset.discard.hands] == ["HIGH_RUNS", "LOW_RUNS"]
        await take_all(game, turn("take_from_pool"), turn("lay", table="[K10 K11 K12] | [R6 R7 R8]"))
        assert await reason(game, turn("finish", tile="B13")) == "CONCEALED_AFTER_OPENING"
        await game.take(turn("discard", tile="B13"))
        kept = await take_all(game, turn("take_discard"))
        assert not kept.discard_board.owed_tile
        assert await reason(game, turn("finish", tile="B13")) == "HAND_NOT_MATCHED"
        both = turn("finish", tile="B13", hand="[R1 R2 R3]", table="[R1 R2 R3]")
        assert await reason(game, both) == "FIELD_INVALID"
        over = await take_all(game, turn("finish", tile="B13", table=FOOT))
        assert over.discard_board.rack_finish.is_foot
        assert [player.total_points for player in over.players] == [38, -200]
        assert [player.has_melded for player in over.players] == [True, False]
        await game.client.turns.StartNextRound(
            ts.StartNextRoundRequest(game_id=game.game_id), metadata=game.as_seat(ANN)
        )
        won = await take_all(game, turn("take_from_pool"), turn("finish", tile="O3"))
        assert won.discard_board.finish.name == "HIGH_RUNS"
        assert [player.total_points for player in won.players] == [338, -500]
        assert (won.state, list(won.winner_seats)) == (game_pb2.GAME_STATE_FINISHED, [BOB])
        await check_history(game, INTERNATIONAL_EVENTS, INTERNATIONAL_MOVES)


# Named hands of a ruleset


def with_hands(*hands: ruleset_pb2.NamedHand, **stages: Any) -> ruleset_pb2.DiscardRuleset:  # noqa: ANN401 - any stage
    return ruleset_pb2.DiscardRuleset(preset=ruleset_pb2.PRESET_INTERNATIONAL, hands=hands, **stages)


def a_hand(**fields: Any) -> ruleset_pb2.NamedHand:  # noqa: ANN401 - any condition
    return ruleset_pb2.NamedHand(**{"name": "RED", "scores": [90, 60, 30], "colors_max": 1, **fields})


async def test_a_ruleset_has_named_hands_of_its_own(client: Client) -> None:
    rules = with_hands(a_hand(), a_hand(name="ODD", all_odd=True))
    created = await client.games.CreateGame(gs.CreateGameRequest(ruleset=ruleset_pb2.Ruleset(discard=rules)))
    red, odd = created.game.ruleset.discard.hands
    assert (red.name, red.runs_min, red.runs_max, red.colors_max, red.highest) == ("RED", 0, 4, 1, 14)
    assert (odd.name, odd.all_odd, list(odd.scores)) == ("ODD", True, [90, 60, 30])
    tiles = tiles_of(parse_faces("R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 J R1 R2 R3 K1"))
    judged = await client.validation.ValidateHand(vs.ValidateHandRequest(ruleset=rules, tiles=tiles))
    assert (judged.hand_name, judged.cost, judged.missing) == ("RED", 60, 0)
    assert faces([*(tile for part in judged.hand for tile in part.tiles), judged.discard]) == faces(tiles)


BAD_HANDS = {
    "hands": ([a_hand(name=f"N{number}") for number in range(65)], "OPTION_VALUE_INVALID"),
    "hands[0]": ([a_hand(runs_min=3, runs_max=2)], "OPTION_VALUE_INVALID"),
    "hands[1]": ([a_hand(name="A"), a_hand(lowest=15)], "OPTION_VALUE_INVALID"),
    "hands[1].name": ([a_hand(), a_hand()], "OPTION_VALUE_INVALID"),
    "hands[0].scores": ([a_hand(scores=[1, 2])], "OPTION_VALUE_INVALID"),
}


@pytest.mark.parametrize("field", BAD_HANDS)
async def test_bad_named_hands_are_refused_by_their_field(client: Client, field: str) -> None:
    hands, expected = BAD_HANDS[field]
    request = gs.CreateGameRequest(ruleset=ruleset_pb2.Ruleset(discard=with_hands(*hands)))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.games.CreateGame(request)
    assert (error_info(refused.value).reason, field_violations(refused.value)) == (
        expected,
        [f"ruleset.discard.{field}"],
    )


@pytest.mark.parametrize("name", ["", "high runs", "a", "A" * 41])
async def test_the_name_of_a_hand_has_no_spaces(client: Client, name: str) -> None:
    request = gs.CreateGameRequest(ruleset=ruleset_pb2.Ruleset(discard=with_hands(a_hand(name=name))))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.games.CreateGame(request)
    assert field_violations(refused.value) == ["ruleset.discard.hands[0]"]


async def test_named_hands_need_concealed_wins(client: Client) -> None:
    rules = with_hands(a_hand(), turn=ruleset_pb2.DiscardTurnOptions(concealed_wins=False))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.games.CreateGame(gs.CreateGameRequest(ruleset=ruleset_pb2.Ruleset(discard=rules)))
    assert error_info(refused.value).reason == "OPTIONS_CONFLICT"
    assert field_violations(refused.value) == ["ruleset.discard.hands", "ruleset.discard.turn.concealed_wins"]
