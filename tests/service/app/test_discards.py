"""Games of discards over gRPC: turns, refusals, and what only the games of another family have."""

from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio

from engine.discard.notation import parse_hand
from engine.discard.presets import OKEY_101
from engine.discard.ruleset import OKEY
from engine.game import Game
from engine.melding.ruleset import SABRA
from engine.notation import parse_tiles
from engine.room_settings import Hints
from engine.seats import Turn
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import discard_pb2, game_pb2, meld_pb2, ruleset_pb2, score_pb2, tile_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.codec.discard import encode_hand
from service.codec.rulesets import encode_ruleset
from service.storage.memory import MemoryStore
from support.harness import (
    HISTORY,
    Client,
    FakeClock,
    GameAtHand,
    as_tiles,
    error_info,
    field_violations,
    put_game,
    refusal_detail,
    running_server,
    server_settings,
)
from support.okey_games import game_at
from tools.games import game_rules

OTHERS = "R1 R3 R5 B1 B3 B5 K1 K3 K5 O1 O3 O5 O7 O9"
NEARLY = "R5 R6 R7 R8 B1 B2 B3 K10 K11 K12 O4 R4 B4 O13"
"""Three runs, a group, and a tile that is left over."""
FINISHED = "R5 R6 R7 B1 B2 B3 K10 K11 K12 O4 R4 B4 K4 K13"
LAID = "[R5 R6 R7] | [B1 B2 B3] | [K10 K11 K12 K13] | [O4 R4 B4 K4]"
PLAYER = 2
"""The seat that has the turn."""


def position(rack: str, *, indicator: str = "K7", piles: str = "1{} 2{} 3{K2 R9} 4{}", pool: str = "{O9 O10}") -> str:
    """Returns a position of four players in which seat 2 has the turn."""
    racks = " ".join(f"{seat}{{{rack if seat == PLAYER else OTHERS}}}" for seat in (1, 2, 3, 4))
    return f"{indicator} / {piles} / {racks} / {pool} / {PLAYER}"


def game_of(text: str, discarded: tuple[int, ...] = ()) -> Game:
    """Returns a game at a position, whose turn has no time limit."""
    return game_at(text, discarded=discarded, turn=Turn(PLAYER, None, 9))


@pytest_asyncio.fixture
async def store() -> MemoryStore:
    return MemoryStore(HISTORY, FakeClock())


@pytest_asyncio.fixture
async def client(store: MemoryStore) -> AsyncIterator[Client]:
    async with running_server(store, server_settings(sweep_seconds=3600.0)) as (_, client):
        yield client


def turn(member: str, **fields: object) -> ts.PlayTurnRequest:
    """Returns a turn with an action."""
    request = ts.PlayTurnRequest()
    action = getattr(request, member)
    action.SetInParent()
    action.MergeFrom(type(action)(**fields))
    return request


def tile(name: str) -> tile_pb2.Tile.ValueType:
    [found] = as_tiles(parse_tiles(name))
    return found


def parts(text: str) -> list[discard_pb2.HandPart]:
    return encode_hand(parse_hand(text))


async def reason(call: Awaitable[object]) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return str(error_info(refused.value).reason)


async def events_of(game: GameAtHand, seat: int) -> list[game_pb2.GameEvent]:
    """Returns the events of the newest change as a seat sees them; 0: a spectator."""
    request = gs.ListChangesRequest(game_id=game.game_id, after_revision=(await game.see()).revision - 1)
    [change] = (await game.client.games.ListChanges(request, metadata=game.as_seat(seat))).changes
    return list(change.events)


async def test_a_tile_of_the_pool_is_seen_by_its_player_alone(client: Client, store: MemoryStore) -> None:
    game = await put_game(client, store, game_of(position(OTHERS)))
    answer = await game.take(turn("take_from_pool"))
    assert list(answer.tiles_drawn) == list(answer.game.turn.tiles_drawn) == [tile("O9")]
    assert answer.game.turn.step == game_pb2.TURN_STEP_DISCARDING
    assert answer.game.pool_count == 1
    for seat, seen in ((0, ()), (1, ()), (PLAYER, (tile("O9"),))):
        assert tuple((await game.see(seat)).turn.tiles_drawn) == seen
        [event] = await events_of(game, seat)
        assert event.pool_tile_taken == discard_pb2.PoolTileTaken(
            seat=PLAYER, tile=seen[0] if seen else tile_pb2.TILE_UNSPECIFIED
        )


async def test_a_discard_that_is_taken_uncovers_the_one_under_it(client: Client, store: MemoryStore) -> None:
    game = await put_game(client, store, game_of(position(OTHERS)))
    await game.take(turn("take_discard"))
    seen = await game.see()
    assert list(seen.turn.tiles_drawn) == [tile("R9")]
    assert [pile.newest for pile in seen.discard_board.piles] == [0, 0, tile("K2"), 0]
    assert [pile.tile_count for pile in seen.discard_board.piles] == [0, 0, 1, 0]
    [event] = await events_of(game, 0)
    taken = discard_pb2.DiscardTaken(seat=PLAYER, tile=tile("R9"), from_seat=3, uncovered=tile("K2"))
    assert event.discard_taken == taken
    await game.take(turn("discard", tile=tile("R1")))
    board = (await game.see()).discard_board
    assert (board.piles[1].newest, list(board.discarded_seats)) == (tile("R1"), [PLAYER])
    assert not (await game.see()).HasField("table")


async def test_a_finished_hand_wins_the_round_and_its_owner_need_not_lay_it(client: Client, store: MemoryStore) -> None:
    for sent in ([], parts(LAID)):
        game = await put_game(client, store, game_of(position(f"{FINISHED} O8"), discarded=(1, 2, 3, 4)))
        await game.take(turn("finish", tile=tile("O8"), hand=sent))
        seen = await game.see()
        assert seen.state == game_pb2.GAME_STATE_ROUND_OVER
        assert [player.total_points for player in seen.players] == [18, 20, 18, 18]
        [result] = seen.rounds
        assert (result.round_end, list(result.winner_seats)) == (score_pb2.ROUND_END_WENT_OUT, [PLAYER])
        assert sorted(len(part.tiles) for part in seen.discard_board.finish.hand) == [3, 3, 4, 4]


async def test_a_false_declaration_is_refused_with_what_is_left_over(client: Client, store: MemoryStore) -> None:
    game = await put_game(client, store, game_of(position(f"{NEARLY} O8"), discarded=(2,)))
    before = await game.see()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await game.take(turn("finish", tile=tile("O8")))
    [violation] = refusal_detail(refused.value).violations
    assert error_info(refused.value).reason == "FINISH_INVALID"
    assert list(violation.tiles) == as_tiles(parse_tiles("O13"))
    assert (await game.see()).revision == before.revision


async def test_a_false_finish_that_costs_points_shows_no_tile_of_the_hand(client: Client, store: MemoryStore) -> None:
    rules = replace(OKEY, score_false_finish=4)
    game = await put_game(
        client, store, game_at(position(f"{NEARLY} O8"), rules, discarded=(2,), turn=Turn(PLAYER, None, 9))
    )
    answer = await game.take(turn("finish", tile=tile("O8")))
    assert answer.game.turn.step == game_pb2.TURN_STEP_DISCARDING
    expected = discard_pb2.PenaltyScored(seat=PLAYER, points=4, cause=discard_pb2.PENALTY_CAUSE_FALSE_FINISH)
    for seat in (0, 1, PLAYER):
        assert [event.penalty_scored for event in await events_of(game, seat)] == [expected]
        assert list((await game.see(seat)).discard_board.penalties) == [expected]


async def test_the_twin_of_the_indicator_is_shown_once_in_the_first_turn(client: Client, store: MemoryStore) -> None:
    game = await put_game(client, store, game_of(position(f"K7 {OTHERS}")))
    answer = await game.take(turn("show_indicator"))
    assert answer.game.discard_board.shown_by_seat == PLAYER
    assert await reason(game.take(turn("show_indicator"))) == "INDICATOR_NOT_SHOWABLE"
    without = await put_game(client, store, game_of(position(f"K6 {OTHERS}")))
    assert await reason(without.take(turn("show_indicator"))) == "INDICATOR_TWIN_NOT_HELD"


async def test_there_may_be_no_discard_to_take(client: Client, store: MemoryStore) -> None:
    game = await put_game(client, store, game_of(position(OTHERS, piles="1{K2} 2{} 3{} 4{}")))
    assert await reason(game.take(turn("take_discard"))) == "NO_DISCARD_TO_TAKE"
    assert await reason(game.take(turn("discard", tile=tile("R1")))) == "TURN_PHASE_WRONG"


# What another family has


MELDING_TURNS = [
    ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=as_tiles([1, 2, 3]))]))),
    turn("draw"),
    turn("pass_turn"),
    turn("lay_on_river", tile=tile("R1")),
    turn("knock"),
]
DISCARD_TURNS = [
    turn("take_from_pool"),
    turn("take_discard"),
    turn("discard", tile=tile("R1")),
    turn("finish", tile=tile("R1")),
    turn("show_indicator"),
    turn("lay"),
    turn("return_discard"),
    turn("take_trump"),
    turn("pass_empty_pool"),
]


async def test_no_action_of_another_family_is_taken(client: Client) -> None:
    assert len(MELDING_TURNS) + len(DISCARD_TURNS) == len(ts.PlayTurnRequest.DESCRIPTOR.oneofs_by_name["action"].fields)
    for rules, turns in ((OKEY, MELDING_TURNS), (SABRA, DISCARD_TURNS)):
        game = await client.new_game(ruleset=encode_ruleset(rules))
        before = await game.see()
        for action in turns:
            assert await reason(game.take(action)) == "ACTION_NOT_IN_GAME"
        assert await game.see() == before


async def test_what_only_melding_games_have_is_refused(client: Client, store: MemoryStore) -> None:
    game = await put_game(client, store, game_of(position(OTHERS)))
    seen, metadata = await game.see(), game.as_seat(PLAYER)
    for draft in (None, game_pb2.Draft()):
        saved = ts.SaveDraftRequest(game_id=game.game_id, etag=seen.etag, draft=draft)
        assert await reason(client.turns.SaveDraft(saved, metadata=metadata)) == "ACTION_NOT_IN_GAME"
    claim = ts.ClaimErrorRequest(game_id=game.game_id, play_revision=1)
    assert await reason(client.turns.ClaimError(claim, metadata=metadata)) == "ACTION_NOT_IN_GAME"
    redeal = ts.RequestRedealRequest(game_id=game.game_id)
    assert await reason(client.turns.RequestRedeal(redeal, metadata=metadata)) == "ACTION_NOT_IN_GAME"


async def test_a_record_of_another_family_is_not_reviewed(client: Client) -> None:
    game = await client.new_game(ruleset=encode_ruleset(OKEY))
    resign = ts.ResignGameRequest(game_id=game.game_id)
    await client.turns.ResignGame(resign, metadata=game.as_seat(1))
    review = rs.ReviewGameRequest(game_id=game.game_id)
    assert await reason(client.records.ReviewGame(review, metadata=game.as_seat(1))) == "ACTION_NOT_IN_GAME"


async def test_games_are_listed_by_the_presets_of_any_family(client: Client) -> None:
    for rules in (encode_ruleset(OKEY), game_rules()):
        request = gs.CreateGameRequest(ruleset=rules, visibility=game_pb2.VISIBILITY_PUBLIC)
        await client.games.CreateGame(request)
    for preset, member in ((ruleset_pb2.PRESET_OKEY, "discard"), (ruleset_pb2.PRESET_SABRA, "melding")):
        [listed] = (await client.games.ListGames(gs.ListGamesRequest(preset=preset))).games
        assert listed.ruleset.WhichOneof("game") == member


async def test_a_preset_of_another_family_is_unknown(client: Client) -> None:
    for rules, field in (
        (ruleset_pb2.Ruleset(discard=ruleset_pb2.DiscardRuleset(preset=ruleset_pb2.PRESET_SABRA)), "discard"),
        (ruleset_pb2.Ruleset(melding=ruleset_pb2.MeldingRuleset(preset=ruleset_pb2.PRESET_OKEY)), "melding"),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.games.CreateGame(gs.CreateGameRequest(ruleset=rules))
        assert error_info(refused.value).reason == "OPTION_UNKNOWN"
        assert field_violations(refused.value) == [f"ruleset.{field}.preset"]


async def test_options_of_games_of_discards_are_checked(client: Client) -> None:
    chosen = ruleset_pb2.DiscardRuleset(
        deal=ruleset_pb2.DiscardDealOptions(teams=ruleset_pb2.TEAMS_PAIRS),
        scoring=ruleset_pb2.DiscardScoringOptions(start=22),
    )
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.games.CreateGame(gs.CreateGameRequest(ruleset=ruleset_pb2.Ruleset(discard=chosen)))
    assert "ruleset.discard.scoring.start" in field_violations(refused.value)
    assert "ruleset.discard.deal.teams" in field_violations(refused.value)
    chosen.deal.ClearField("teams")
    chosen.scoring.start = 5
    created = await client.games.CreateGame(gs.CreateGameRequest(ruleset=ruleset_pb2.Ruleset(discard=chosen)))
    assert created.game.ruleset.discard.scoring.start == 5
    assert created.game.ruleset.discard.melds.run_one_high


# Hands


async def test_a_hand_is_judged_with_what_it_costs_and_lacks(client: Client) -> None:
    tiles, indicator = as_tiles(parse_tiles(f"{FINISHED} O8")), tile("K7")
    judged = await client.validation.ValidateHand(vs.ValidateHandRequest(indicator=indicator, tiles=tiles))
    assert not judged.violations
    assert (judged.cost, judged.missing, judged.discard, judged.is_pairs) == (2, 0, tile("O8"), False)
    wild = as_tiles(parse_tiles(f"{FINISHED} K8"))
    doubled = vs.ValidateHandRequest(indicator=indicator, tiles=wild, discard=tile("K8"), hand=parts(LAID))
    assert (await client.validation.ValidateHand(doubled)).cost == 4
    lacking = vs.ValidateHandRequest(indicator=indicator, tiles=as_tiles(parse_tiles(NEARLY)))
    answer = await client.validation.ValidateHand(lacking)
    assert [(one.reason, list(one.tiles)) for one in answer.violations] == [(958, list(answer.spare))]
    assert (answer.cost, answer.missing) == (0, len(answer.spare))


R1 = tile("R1")
MALFORMED = {
    "indicator": vs.ValidateHandRequest(indicator=tile("F"), tiles=as_tiles(range(1, 15))),
    "tiles": vs.ValidateHandRequest(indicator=R1, tiles=as_tiles(range(1, 14))),
    "tiles[0]": vs.ValidateHandRequest(indicator=R1, tiles=as_tiles([53, *range(1, 14)])),
    "discard": vs.ValidateHandRequest(indicator=R1, tiles=as_tiles(range(1, 16)), discard=tile("O7")),
    "hand": vs.ValidateHandRequest(
        indicator=R1, tiles=as_tiles(range(1, 15)), hand=[discard_pb2.HandPart(tiles=[R1])] * 8
    ),
    "hand[0].tiles": vs.ValidateHandRequest(indicator=R1, tiles=as_tiles(range(1, 15)), hand=[discard_pb2.HandPart()]),
}


@pytest.mark.parametrize("field", MALFORMED)
async def test_a_malformed_hand_is_refused_by_its_field(client: Client, field: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.validation.ValidateHand(MALFORMED[field])
    assert field_violations(refused.value) == [field]


async def test_a_hand_has_no_more_tiles_of_a_face_than_the_tile_set(client: Client) -> None:
    thrice = vs.ValidateHandRequest(indicator=R1, tiles=as_tiles([1, 1, *range(2, 14)]))
    assert await reason(client.validation.ValidateHand(thrice)) == "POSITION_IMPOSSIBLE"


# 101 Okey


def at_table(rack: str, openings: str, piles: str = "1{} 2{} 3{K7} 4{}") -> Game:
    """Returns a game of 101 Okey in which seat 2 must take a tile. The okey is R5; seat 4 has opened, if any has."""
    opened = {int(part[0]) for part in openings.split() if part != "."}
    racks = " ".join(f"{seat}{'*' * (seat in opened)}{{{rack if seat == PLAYER else OTHERS}}}" for seat in (1, 2, 3, 4))
    table = "[B9 R5 B11] | [K4 K5 K6]" if opened else "."
    position = f"R4 / {piles} / {racks} / {{O9 O10}} / {PLAYER} / {table} / {openings}"
    return game_at(position, OKEY_101, discarded=(1, 2, 3, 4), turn=Turn(PLAYER, None, 9))


async def test_an_opening_and_what_it_lacks(client: Client, store: MemoryStore) -> None:
    game = await put_game(client, store, at_table("K10 K11 K12 O10 O11 O12 R13 B13 K13 R1 R2", "."))
    await game.take(turn("take_from_pool"))
    small = parts("[K10 K11 K12]")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await game.take(turn("lay", table=small))
    assert dict(error_info(refused.value).metadata) == {"total": "33", "threshold": "101", "violations": "1"}
    whole = parts("[K10 K11 K12] | [O10 O11 O12] | [R13 B13 K13]")
    answer = await game.take(turn("lay", table=whole))
    assert list(answer.game.discard_board.table) == whole
    [opening] = answer.game.discard_board.openings
    assert (opening.seat, opening.is_pairs, opening.amount) == (PLAYER, False, 105)
    assert [player.has_melded for player in answer.game.players] == [False, True, False, False]
    assert sorted(answer.game.rack) == sorted(as_tiles(parse_tiles("O9 R1 R2")))
    assert answer.game.turn.step == game_pb2.TURN_STEP_DISCARDING


async def test_an_okey_is_taken_from_the_table_and_a_useful_discard_costs_points(
    client: Client, store: MemoryStore
) -> None:
    game = await put_game(client, store, at_table("B10 K7 O1 O3", "2:105"))
    await game.take(turn("take_from_pool"))
    answer = await game.take(turn("lay", table=parts("[B9 B10 B11] | [K4 K5 K6]")))
    assert sorted(answer.game.rack) == sorted(as_tiles(parse_tiles("K7 O1 O3 O9 R5")))
    assert list(answer.tiles_played) == as_tiles(parse_tiles("B10"))
    await game.take(turn("discard", tile=tile("K7")))
    [penalty] = (await game.see()).discard_board.penalties
    expected = discard_pb2.PenaltyScored(seat=PLAYER, points=101, cause=discard_pb2.PENALTY_CAUSE_DISCARD_FITS_TABLE)
    assert penalty == expected


async def test_a_discard_that_was_taken_is_laid_or_put_back(client: Client, store: MemoryStore) -> None:
    game = await put_game(client, store, at_table("B10 O1 O3", "2:105"))
    answer = await game.take(turn("take_discard"))
    assert answer.game.discard_board.owed_tile == tile("K7")
    assert await reason(game.take(turn("discard", tile=tile("O1")))) == "TAKEN_TILE_NOT_USED"
    answer = await game.take(turn("return_discard"))
    assert answer.game.discard_board.owed_tile == tile_pb2.TILE_UNSPECIFIED
    assert list(answer.tiles_drawn) == [tile("O9")]
    assert answer.game.discard_board.piles[2].newest == tile("K7")


async def test_the_last_tile_is_discarded_and_ends_the_round(client: Client, store: MemoryStore) -> None:
    game = await put_game(client, store, at_table("K7", "2:105 4:101"))
    await game.take(turn("take_from_pool"))
    await game.take(turn("lay", table=parts("[B9 R5 B11] | [K4 K5 K6 K7]")))
    await game.take(turn("discard", tile=tile("O9")))
    seen = await game.see()
    assert seen.state == game_pb2.GAME_STATE_ROUND_OVER
    assert seen.discard_board.rack_finish.seat == PLAYER
    value = sum(int(name[1:]) for name in OTHERS.split() if name != "R5")
    assert [player.total_points for player in seen.players][:3] == [202 + 101, -101, 202 + 101]
    assert seen.players[3].total_points == value + 101


async def test_a_hint_says_what_an_opening_lacks(client: Client, store: MemoryStore) -> None:
    start = at_table("K10 K11 K12 O1 O1 R2 R2", ".")
    game = await put_game(client, store, replace(start, settings=replace(start.settings, hints=Hints.TURN)))
    answer = await client.analysis.SuggestTurn(
        an.SuggestTurnRequest(game_id=game.game_id), metadata=game.as_seat(PLAYER)
    )
    assert (answer.opening.points_missing, answer.opening.pairs_missing) == (68, 3)
    assert answer.turn.WhichOneof("action") == "take_from_pool"
    assert not answer.HasField("hand")


async def test_a_turn_at_a_table_is_judged_without_a_game(client: Client) -> None:
    request = vs.ValidateDiscardTurnRequest(
        indicator=tile("R4"),
        rack=as_tiles(parse_tiles("B10 K7 O1")),
        table_before=parts("[B9 R5 B11] | [K4 K5 K6]"),
        openings=[discard_pb2.DiscardOpening(seat=2, amount=105)],
        seat=2,
        table_after=parts("[B9 B10 B11] | [K4 K5 K6 K7]"),
        discard=tile("R5"),
    )
    judged = await client.validation.ValidateDiscardTurn(request)
    assert not judged.violations
    assert (judged.okeys, list(judged.tiles_laid)) == (1, as_tiles(parse_tiles("B10 K7")))
    assert judged.penalty == discard_pb2.PENALTY_CAUSE_OKEY_DISCARDED
    assert list(judged.rack_left) == as_tiles(parse_tiles("O1"))
    request.seat = 3
    judged = await client.validation.ValidateDiscardTurn(request)
    assert {one.reason for one in judged.violations} == {959, 963}
    assert not judged.tiles_laid


MALFORMED_TURNS: dict[str, dict[str, Any]] = {
    "indicator": {"indicator": tile("F")},
    "rack": {"rack": []},
    "rack[0]": {"rack": as_tiles([53])},
    "seat": {"seat": 0},
    "table_before": {"table_before": parts("[R1 R3 R5]")},
    "owed_tile": {"owed_tile": tile("K13")},
    "tiles_laid": {"tiles_laid": 1_000},
    "openings[0].amount": {"openings": [discard_pb2.DiscardOpening(seat=1, amount=5_000)]},
    "openings[0].seat": {"openings": [discard_pb2.DiscardOpening(amount=5)]},
    "table_after": {"table_after": parts("[R1 R1]") * 54},
    "ruleset": {"ruleset": ruleset_pb2.DiscardRuleset()},
}


@pytest.mark.parametrize("field", MALFORMED_TURNS)
async def test_a_malformed_turn_at_a_table_is_refused_by_its_field(client: Client, field: str) -> None:
    usual: dict[str, Any] = {"indicator": tile("R4"), "rack": as_tiles(parse_tiles("B10 K7")), "seat": 2}
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.validation.ValidateDiscardTurn(vs.ValidateDiscardTurnRequest(**(usual | MALFORMED_TURNS[field])))
    assert field_violations(refused.value) == [field]


async def test_each_call_judges_the_games_of_its_kind(client: Client) -> None:
    table = ruleset_pb2.DiscardRuleset(preset=ruleset_pb2.PRESET_OKEY_101)
    request = vs.ValidateHandRequest(ruleset=table, indicator=tile("R4"), tiles=as_tiles(range(1, 15)))
    assert await reason(client.validation.ValidateHand(request)) == "FIELD_INVALID"
