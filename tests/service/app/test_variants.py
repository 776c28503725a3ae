"""Variants over gRPC, as a front end uses them: the River, drafts, penalties, claims, redeals, other tile sets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import astuple, replace

import grpc
import grpc.aio
import pytest

from engine.family import named_rulesets
from engine.game import Game, Playing
from engine.melding.melds import Meld, ProposedMeld, read_meld
from engine.melding.round import Choosing, Step
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import (
    SABRA,
    PoolEmptyMode,
    Ruleset,
    TurnDraw,
)
from engine.notation import parse_tiles
from engine.room_settings import DEFAULT_SETTINGS
from engine.seats import Player, Rack, Turn
from engine.tiles import in_order, without
from rummikub.v1 import error_reason_pb2, game_pb2, meld_pb2, ruleset_pb2, tile_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.codec import rulesets
from service.storage.store import Store
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    as_tiles,
    error_info,
    field_violations,
    put_game,
    redis_store,
    running_server,
    server_settings,
    without_lasting,
)
from tools.games import game_rules, melding_rules, options

LIMIT = 30
RIVER = options(turn_draw=ruleset_pb2.TURN_DRAW_TWO_RIVER, turn_time_limit_seconds=LIMIT)
DRAW_AND_PLAY = options(
    turn_play_after_draw=ruleset_pb2.TURN_PLAY_AFTER_DRAW_OTHER_TILES, turn_time_limit_seconds=LIMIT
)
PENALISE = game_rules(turn_invalid_submission=ruleset_pb2.TURN_INVALID_SUBMISSION_PENALISE)
CLAIMS = options(
    turn_invalid_submission=ruleset_pb2.TURN_INVALID_SUBMISSION_PENALISE_ON_UNANIMOUS_CLAIM,
    turn_time_limit_seconds=LIMIT,
)
PLAYERS = 3
VIEWERS = range(PLAYERS + 1)


@pytest.fixture
async def client(store: Store) -> AsyncIterator[Client]:
    """Returns a client of a server on each store in turn; its sweeper does not run by itself."""
    async with running_server(store, server_settings(sweep_seconds=3600)) as (_, client):
        yield client


async def history(game: GameAtHand, seat: int = 0) -> Sequence[game_pb2.GameChange]:
    """Returns all changes as a seat sees them."""
    request = gs.ListChangesRequest(game_id=game.game_id, page_size=200)
    return (await game.client.games.ListChanges(request, metadata=game.as_seat(seat))).changes


async def last_events(game: GameAtHand, seat: int = 0) -> list[game_pb2.GameEvent]:
    """Returns the events of the last change, as a seat sees them."""
    return list((await history(game, seat))[-1].events)


def kinds(events: Sequence[game_pb2.GameEvent]) -> list[str | None]:
    """Returns the kinds of events."""
    return [event.WhichOneof("event") for event in events]


async def refused(call: Awaitable[object]) -> grpc.aio.AioRpcError:
    """Returns the error of a refused call."""
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call
    return refusal.value


def tiles_of(text: str) -> list[tile_pb2.Tile.ValueType]:
    """Parses tile notation."""
    return as_tiles(parse_tiles(text))


def a_game(
    rules: Ruleset,
    rack: str,
    *,
    table: Sequence[str] = (),
    river: str = "",
    pool: int | None = None,
    step: Step | None = None,
) -> Game:
    """Returns a game of three in which seat 1 has the turn, has melded and holds the given rack."""
    own, lying = parse_tiles(rack), parse_tiles(river)
    readings = (read_meld(ProposedMeld(parse_tiles(meld)), rules) for meld in table)
    melds = tuple(reading for reading in readings if isinstance(reading, Meld))
    offered = step.tiles if isinstance(step, Choosing) else ()
    tiles = rules.tiles(PLAYERS)
    rest = without(tiles, [*own, *(t for meld in melds for t in meld.tiles), *lying, *offered])
    count = len(rest) - 28 if pool is None else pool
    others = rest[: len(rest) - count]
    racks = (Rack(1, in_order(own), True), Rack(2, others[::2], True), Rack(3, others[1::2], True))  # noqa: FBT003
    round_ = Round(1, (1, 2, 3), melds, racks, rest[len(rest) - count :], Turn(1, None))
    round_ = replace(round_, river=lying, step=step or round_.step)
    return Game(
        rules, DEFAULT_SETTINGS, 1, tuple(Player(seat, f"player {seat}") for seat in (1, 2, 3)), Playing(round_)
    )


# The River


async def test_two_tiles_are_drawn_and_only_their_player_sees_them(client: Client) -> None:
    game = await client.new_game(PLAYERS, ruleset=RIVER)
    before = await game.see()
    seat = before.turn.seat
    rack = list((await game.see(seat)).rack)
    drawn = await game.draw()
    assert len(drawn.tiles_drawn) == 2
    assert drawn.game.turn.step == game_pb2.TURN_STEP_CHOOSING
    assert list(drawn.game.turn.tiles_drawn) == list(drawn.tiles_drawn)
    assert list(drawn.game.rack) == rack
    assert (drawn.game.pool_count, drawn.game.turn.seat) == (before.pool_count - 2, seat)
    assert drawn.game.turn.deadline == before.turn.deadline
    for viewer in VIEWERS:
        seen = await game.see(viewer)
        assert seen.turn.step == game_pb2.TURN_STEP_CHOOSING
        assert seen.players[seat - 1].tile_count == 14
        [event] = await last_events(game, viewer)
        own = list(drawn.tiles_drawn) if viewer == seat else []
        assert list(seen.turn.tiles_drawn) == own
        assert (event.tiles_drawn.seat, event.tiles_drawn.tile_count) == (seat, 2)
        assert list(event.tiles_drawn.tiles) == own


@pytest.mark.parametrize("place", [0, 1])
async def test_one_of_two_drawn_tiles_goes_to_the_public_river_and_the_other_stays_hidden(
    client: Client, place: int
) -> None:
    game = await client.new_game(PLAYERS, ruleset=RIVER)
    seat = (await game.see()).turn.seat
    rack = list((await game.see(seat)).rack)
    drawn = list((await game.draw()).tiles_drawn)
    laid, kept = drawn[place], drawn[1 - place]
    answer = await game.lay_on_river(laid)
    assert list(answer.tiles_drawn) == list(answer.violations) == []
    assert list(answer.game.rack) == sorted([*rack, kept])
    for viewer in VIEWERS:
        seen = await game.see(viewer)
        assert list(seen.river) == [laid]
        assert (seen.turn.step, list(seen.turn.tiles_drawn)) == (game_pb2.TURN_STEP_OPEN, [])
        assert seen.players[seat - 1].tile_count == 15
        events = await last_events(game, viewer)
        assert kinds(events) == ["river_tile_laid", "turn_started"]
        assert (events[0].river_tile_laid.seat, events[0].river_tile_laid.tile) == (seat, laid)


async def test_a_validate_only_draw_reveals_neither_of_the_two_tiles(client: Client) -> None:
    game = await client.new_game(PLAYERS, ruleset=RIVER)
    seat = (await game.see()).turn.seat
    before = await game.see(seat)
    answer = await game.take(ts.PlayTurnRequest(draw=ts.DrawTile(), validate_only=True))
    assert list(answer.tiles_drawn) == list(answer.game.turn.tiles_drawn) == []
    assert answer.game == without_lasting(before)


async def test_a_pull_from_the_river_plays_the_oldest_pulled_tile_and_adds_the_newer_ones_to_the_rack(
    client: Client, store: Store
) -> None:
    rules = replace(SABRA, turn_draw=TurnDraw.TWO_RIVER)
    game = await put_game(client, store, a_game(rules, rack="R4 R5 K9", river="B1 R6 O2 J"))
    run = [meld_pb2.Meld(tiles=tiles_of("R4 R5 R6"))]
    plain = await refused(game.take(ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=run)))))
    assert error_info(plain).reason == "TILE_NOT_IN_RACK"
    answer = await game.take(ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=run), river_index=1)))
    assert list(answer.game.rack) == as_tiles(in_order(parse_tiles("K9 O2 J")))
    assert list(answer.game.river) == tiles_of("B1")
    assert (answer.points, list(answer.tiles_drawn)) == (15, [])
    for viewer in VIEWERS:
        played = (await last_events(game, viewer))[0].tiles_played
        assert list(played.pulled) == tiles_of("R6 O2 J")


async def test_river_index_zero_is_sent_and_read(client: Client, store: Store) -> None:
    rules = replace(SABRA, turn_draw=TurnDraw.TWO_RIVER)
    game = await put_game(client, store, a_game(rules, rack="R4 R5 K9", river="R6"))
    run = [meld_pb2.Meld(tiles=tiles_of("R4 R5 R6"))]
    answer = await game.take(ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=run), river_index=0)))
    assert list(answer.game.river) == []


async def test_a_pending_choice_between_two_tiles_survives_a_server_restart(empty_redis_url: str) -> None:
    clock = FakeClock()
    first, second = redis_store(empty_redis_url, clock), redis_store(empty_redis_url, clock)
    async with running_server(first) as (_, client):
        game = await client.new_game(PLAYERS, ruleset=RIVER)
        seat = (await game.see()).turn.seat
        drawn = await game.draw()
    async with running_server(second, seed=2) as (_, client):
        again = replace(game, client=client)
        assert without_lasting(await again.see(seat)) == drawn.game
        assert list((await again.see(seat)).turn.tiles_drawn) == list(drawn.tiles_drawn)
        assert list((await again.see(seat % 3 + 1)).turn.tiles_drawn) == []
        laid = await again.lay_on_river(drawn.tiles_drawn[0])
        assert list(laid.game.river) == list(drawn.tiles_drawn[:1])
    await first.close()
    await second.close()


async def test_a_player_who_is_choosing_times_out(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(PLAYERS, ruleset=RIVER)
    seat = (await game.see()).turn.seat
    drawn = list((await game.draw()).tiles_drawn)
    pool_count = (await game.see()).pool_count
    clock.advance(LIMIT + 1)
    for viewer in VIEWERS:
        seen = await game.see(viewer)
        assert (seen.turn.seat != seat, seen.turn.step) == (True, game_pb2.TURN_STEP_OPEN)
        assert (len(seen.river), seen.pool_count) == (1, pool_count)
        assert seen.players[seat - 1].tile_count == 15
        events = await last_events(game, viewer)
        assert kinds(events) == ["turn_timed_out", "river_tile_laid", "turn_started"]
    [laid] = (await game.see()).river
    drawn.remove(laid)
    assert drawn[0] in (await game.see(seat)).rack


async def test_resigning_while_choosing_reveals_no_drawn_tile(client: Client) -> None:
    game = await client.new_game(PLAYERS, ruleset=RIVER)
    seat = (await game.see()).turn.seat
    await game.draw()
    await client.turns.ResignGame(ts.ResignGameRequest(game_id=game.game_id), metadata=game.as_seat(seat))
    for viewer in set(VIEWERS) - {seat}:
        seen = await game.see(viewer)
        assert (list(seen.river), list(seen.turn.tiles_drawn)) == ([], [])
        assert seen.players[seat - 1].tile_count == 16


# Playing after a draw


async def test_a_turn_continues_after_a_draw_and_ends_with_a_pass(client: Client) -> None:
    game = await client.new_game(PLAYERS, ruleset=DRAW_AND_PLAY)
    seat = (await game.see()).turn.seat
    drawn = await game.draw()
    [tile] = drawn.tiles_drawn
    assert tile in drawn.game.rack
    for viewer in VIEWERS:
        turn = (await game.see(viewer)).turn
        assert (turn.seat, turn.step) == (seat, game_pb2.TURN_STEP_DRAWN)
        assert list(turn.tiles_drawn) == ([tile] if viewer == seat else [])
    await game.pass_on()
    assert (await game.see()).turn.seat != seat
    assert (await game.see()).passed_seats == []
    assert kinds(await last_events(game)) == ["turn_ended", "turn_started"]


async def test_a_turn_times_out_after_a_draw(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(PLAYERS, ruleset=DRAW_AND_PLAY)
    seat = (await game.see()).turn.seat
    await game.draw()
    await game.save_draft(
        game_pb2.Draft(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=(await game.see(seat)).rack[:1])]))
    )
    clock.advance(LIMIT + 1)
    assert (await game.see()).players[seat - 1].tile_count == 14 + 1 + 3
    for is_saved in (False, True):
        await game.draw()
        if is_saved:
            await game.save_draft()
        seat = (await game.see()).turn.seat
        clock.advance(LIMIT + 1)
        assert (await game.see()).players[seat - 1].tile_count == 14 + 1
    assert (await last_events(game))[0].turn_timed_out.tile_count == 0


# Illegal plays


async def test_the_response_to_an_illegal_play_has_its_violations_and_penalty(client: Client) -> None:
    game = await client.new_game(PLAYERS, ruleset=PENALISE)
    before = await game.see()
    seat = before.turn.seat
    answer = await game.play_illegally()
    reasons = [error_reason_pb2.ErrorReason.Name(violation.reason) for violation in answer.violations]
    assert reasons == ["MELD_TOO_SHORT"]
    assert answer.violations[0].subject == "play.table[0]"
    assert answer.violations[0].text
    assert len(answer.tiles_drawn) == 3
    assert set(answer.tiles_drawn) <= set(answer.game.rack)
    assert (list(answer.tiles_played), answer.points, list(answer.game.table.melds)) == ([], 0, [])
    assert (answer.game.revision, answer.game.pool_count) == (before.revision + 1, before.pool_count - 3)
    assert answer.game.turn.seat != seat
    for viewer in VIEWERS:
        events = await last_events(game, viewer)
        assert kinds(events) == ["turn_penalised", "turn_started"]
        penalised = events[0].turn_penalised
        assert (penalised.seat, penalised.tile_count) == (seat, 3)
        assert list(penalised.tiles) == (list(answer.tiles_drawn) if viewer == seat else [])


REJECTS, PENALISES, SHOWS = ruleset_pb2.TurnInvalidSubmission.values()[1:]
ANSWERED = {
    (PENALISES, "no tile"),
    (PENALISES, "own tiles"),
    (PENALISES, "strange tiles"),
    (SHOWS, "no tile"),
    (SHOWS, "own tiles"),
}
"""The consequence of an illegal play and what it lays, where the play changes the game."""


@pytest.mark.parametrize("validate_only", [False, True], ids=["played", "validated"])
@pytest.mark.parametrize("laid", ["no tile", "own tiles", "strange tiles"])
@pytest.mark.parametrize("consequence", [REJECTS, PENALISES, SHOWS], ids=["reject", "penalise", "claims"])
async def test_an_illegal_play_is_an_error_unless_it_changes_the_game(
    client: Client, consequence: ruleset_pb2.TurnInvalidSubmission.ValueType, laid: str, *, validate_only: bool
) -> None:
    game = await client.new_game(PLAYERS, ruleset=game_rules(turn_invalid_submission=consequence))
    before = await game.see()
    rack = list((await game.see(before.turn.seat)).rack)
    melds = {
        "no tile": [],
        "own tiles": [meld_pb2.Meld(tiles=rack[:1])],
        "strange tiles": [meld_pb2.Meld(tiles=[rack[0]] * 3)],
    }[laid]
    turn = ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=melds)), validate_only=validate_only)
    if (consequence, laid) in ANSWERED and not validate_only:
        answer = await game.take(turn)
        assert answer.violations
        assert answer.game.revision == before.revision + 1
    else:
        refusal = await refused(game.take(turn))
        assert refusal.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert int(error_info(refusal).metadata["violations"]) > 0
        assert await game.see() == before


async def test_an_illegal_play_is_shown_to_all_and_the_turn_continues(client: Client) -> None:
    game = await client.new_game(PLAYERS, ruleset=CLAIMS)
    before = await game.see()
    seat = before.turn.seat
    rack = list((await game.see(seat)).rack)
    answer = await game.play_illegally()
    assert len(answer.violations) == 1
    assert list(answer.tiles_drawn) == []
    for viewer in VIEWERS:
        seen = await game.see(viewer)
        shown = seen.turn.shown_play
        assert (seen.turn.seat, list(seen.table.melds)) == (seat, [])
        assert (shown.revision, [list(meld.tiles) for meld in shown.table.melds]) == (before.revision + 1, [rack[:2]])
        assert (list(shown.claim_seats), shown.HasField("against_seat")) == ([], False)
        [event] = await last_events(game, viewer)
        assert event.illegal_play_shown.seat == seat
        assert event.illegal_play_shown.table == shown.table
        assert list(event.illegal_play_shown.reasons) == [error_reason_pb2.MELD_TOO_SHORT]
    await game.draw()
    assert not (await game.see()).turn.HasField("shown_play")


async def test_a_claim_needs_the_votes_of_all_other_players(client: Client) -> None:
    game = await client.new_game(PLAYERS, ruleset=CLAIMS)
    seat = (await game.see()).turn.seat
    first, second = seat % 3 + 1, (seat + 1) % 3 + 1
    await game.play_illegally()
    after_one = await game.claim(first)
    assert (after_one.turn.seat, list(after_one.turn.shown_play.claim_seats)) == (seat, [first])
    assert after_one.seat == first
    after_both = await game.claim(second)
    assert after_both.turn.seat != seat
    assert after_both.players[seat - 1].tile_count == 14 + 3
    for viewer in VIEWERS:
        events = await last_events(game, viewer)
        assert kinds(events) == ["error_claimed", "turn_penalised", "turn_started"]
        assert events[0].error_claimed == game_pb2.ErrorClaimed(seat=second, agrees=True)
        assert len(events[1].turn_penalised.tiles) == (3 if viewer == seat else 0)


async def test_one_vote_against_ends_a_claim_and_the_next_illegal_play_starts_another(client: Client) -> None:
    game = await client.new_game(PLAYERS, ruleset=CLAIMS)
    seat = (await game.see()).turn.seat
    first, second = seat % 3 + 1, (seat + 1) % 3 + 1
    shown = (await game.play_illegally()).game.turn.shown_play.revision
    assert (await game.claim(first, agrees=False)).turn.shown_play.against_seat == first
    assert error_info(await refused(game.claim(second))).reason == "CLAIM_NOT_UNANIMOUS"
    await game.play_illegally()
    assert error_info(await refused(game.claim(second, play_revision=shown))).reason == "NOTHING_TO_CLAIM"
    await game.claim(second)
    assert (await game.claim(first)).turn.seat != seat


async def test_a_claim_ends_with_the_turn(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(PLAYERS, ruleset=CLAIMS)
    seat = (await game.see()).turn.seat
    shown = (await game.play_illegally()).game.turn.shown_play.revision
    clock.advance(LIMIT + 1)
    assert error_info(await refused(game.claim(seat % 3 + 1, play_revision=shown))).reason == "NOTHING_TO_CLAIM"
    assert (await last_events(game))[0].turn_timed_out.tile_count == 3


async def test_concurrent_claims_are_all_counted(client: Client) -> None:
    game = await client.new_game(4, ruleset=CLAIMS)
    seat = (await game.see()).turn.seat
    await game.play_illegally()
    await asyncio.gather(*(game.claim(other) for other in (1, 2, 3, 4) if other != seat))
    seen = await game.see()
    assert seen.turn.seat != seat
    assert seen.players[seat - 1].tile_count == 14 + 3


# Redeals


async def test_a_player_with_three_pairs_gets_a_redeal(client: Client) -> None:
    game, seat = await client.new_game_to_redeal()
    racks = {viewer: list((await game.see(viewer)).rack) for viewer in VIEWERS}
    before = await game.see()
    answer = await game.redeal(seat)
    assert (answer.seat, answer.round, answer.revision) == (seat, 1, before.revision + 1)
    for viewer in VIEWERS:
        events = await last_events(game, viewer)
        assert kinds(events) == ["redeal_demanded", "round_started", "turn_started"]
        assert events[0].redeal_demanded.seat == seat
        dealt = list((await game.see(viewer)).rack)
        assert list(events[1].round_started.rack) == dealt
        assert len(dealt) == (21 if viewer else 0)
        assert dealt != racks[viewer] or not viewer


# Last turns


async def test_every_player_has_one_more_turn_when_the_pool_is_empty(client: Client, store: Store) -> None:
    rules = replace(SABRA, pool_empty_mode=PoolEmptyMode.ONE_LAST_CHANCE)
    game = await put_game(client, store, a_game(rules, "R1 R3", pool=1))
    assert list((await game.see()).last_chance_seats) == []
    await game.draw()
    events = await last_events(game)
    assert kinds(events) == ["tiles_drawn", "last_chance_started", "turn_started"]
    assert list(events[1].last_chance_started.seats) == [1, 2, 3]
    for left in ([1, 2, 3], [2, 3], [3]):
        seen = await game.see()
        assert (list(seen.last_chance_seats), seen.turn.seat) == (left, left[0])
        await game.pass_on()
    seen = await game.see()
    assert (seen.state, list(seen.last_chance_seats)) == (game_pb2.GAME_STATE_FINISHED, [])


# Tile sets


async def test_six_players_use_three_copies_and_four_jokers(client: Client) -> None:
    game = await client.new_game(6, ruleset=game_rules(preset=ruleset_pb2.PRESET_SIX_PLAYERS))
    seen = await game.see(6)
    assert (len(seen.rack), seen.pool_count) == (14, 160 - 6 * 14)
    assert sorted(seen.turn_order) == [1, 2, 3, 4, 5, 6]
    assert seen.turn_order[0] == seen.starter_seat == seen.turn.seat


async def test_a_game_has_one_joker_for_each_player_at_the_deal(client: Client) -> None:
    rules = game_rules(geometry_jokers=0, geometry_jokers_per_player=1, deal_fixed_jokers=1)
    game = await client.new_game(PLAYERS, ruleset=rules)
    for seat in (1, 2, 3):
        seen = await game.see(seat)
        assert list(seen.rack).count(tile_pb2.TILE_JOKER) == 1
        assert seen.pool_count == 104 + 3 - 3 * 14


async def test_games_with_six_colors_include_green_and_purple(client: Client, store: Store) -> None:
    rules = replace(SABRA, geometry_colors=6)
    game = await put_game(client, store, a_game(rules, "G1 G2 G3 P5"))
    play = ts.PlayTiles(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=tiles_of("G1 G2 G3"))]))
    answer = await game.take(ts.PlayTurnRequest(play=play))
    assert list(answer.game.rack) == [tile_pb2.TILE_PURPLE_5]
    assert list(answer.tiles_played) == [tile_pb2.TILE_GREEN_1, tile_pb2.TILE_GREEN_2, tile_pb2.TILE_GREEN_3]


async def test_playing_a_tile_outside_the_games_tile_set_is_a_violation(client: Client) -> None:
    melds = [meld_pb2.Meld(tiles=tiles_of("G1 G2 G3"))]
    answer = await client.validation.ValidateTurn(
        vs.ValidateTurnRequest(table_after=meld_pb2.Table(melds=melds), has_melded=False)
    )
    assert error_reason_pb2.TILE_UNKNOWN in [violation.reason for violation in answer.violations]


# Declared jokers


async def test_a_declared_joker_face_stays_on_the_table_and_is_visible(client: Client, store: Store) -> None:
    game = await put_game(client, store, a_game(SABRA, "R7 B7 J K1"))
    declared = meld_pb2.Meld(
        tiles=tiles_of("R7 B7 J"),
        kind=meld_pb2.MELD_KIND_GROUP,
        declared_faces=tiles_of("O7"),
    )
    answer = await game.take(ts.PlayTurnRequest(play=ts.PlayTiles(table=meld_pb2.Table(melds=[declared]))))
    [meld] = answer.game.table.melds
    assert [(joker.index, list(joker.faces)) for joker in meld.jokers] == [(2, tiles_of("O7"))]
    assert (await game.see()).table == answer.game.table


async def test_a_meld_is_returned_in_its_canonical_order(client: Client) -> None:
    rules = game_rules(meld_order=ruleset_pb2.MELD_ORDER_CANONICALISE)
    sent = [meld_pb2.Meld(tiles=tiles_of("R12 R13 J"))]
    answer = await client.validation.ValidateMelds(vs.ValidateMeldsRequest(ruleset=rules.melding, melds=sent))
    assert list(answer.melds[0].tiles) == tiles_of("J R12 R13")
    assert not answer.melds[0].violations


# Rulesets


async def test_every_preset_is_listed_and_its_games_are_created(client: Client) -> None:
    listed = (await client.validation.ListRulesets(vs.ListRulesetsRequest())).rulesets
    for named, known in zip(listed, named_rulesets(), strict=True):
        assert named.name == known.ruleset.preset.name
        assert rulesets.game_options(named.ruleset, named.settings) == (known.ruleset, known.settings)
        assert (named.title, named.summary, named.source) == astuple(known.text)
        family = named.ruleset.WhichOneof("game") or "none"
        only_preset = ruleset_pb2.Ruleset()
        getattr(only_preset, family).preset = getattr(named.ruleset, family).preset
        for sent in (named.ruleset, only_preset):
            created = await client.games.CreateGame(gs.CreateGameRequest(ruleset=sent))
            assert (created.game.ruleset, created.game.settings) == (named.ruleset, named.settings)


async def test_validation_runs_no_search_for_rulesets_that_search_in_games(client: Client) -> None:
    rules = melding_rules(preset=ruleset_pb2.PRESET_MSO_2019)
    rack = tiles_of("R11 R12 R13")
    turn = vs.ValidateTurnRequest(
        ruleset=rules, rack=rack, table_after=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=rack)]), has_melded=False
    )
    assert (await client.validation.ValidateTurn(turn)).goes_out
    racks = [vs.RackToScore(seat=1), vs.RackToScore(seat=2, rack=rack, never_melded=True, declined_to_meld=True)]
    declined = await client.validation.ScoreRound(vs.ScoreRoundRequest(ruleset=rules, racks=racks))
    racks[1].declined_to_meld = False
    unable = await client.validation.ScoreRound(vs.ScoreRoundRequest(ruleset=rules, racks=racks))
    assert [answer.seats[1].points for answer in (declined, unable)] == [-200, -100]


async def test_joker_retrieval_same_meld_defaults_by_retrieval_mode(client: Client) -> None:
    locked = game_rules(joker_retrieval_mode=ruleset_pb2.JOKER_RETRIEVAL_MODE_LOCKED)
    created = await client.games.CreateGame(gs.CreateGameRequest(ruleset=locked))
    assert created.game.ruleset.melding.joker_retrieval.same_meld == ruleset_pb2.JOKER_RETRIEVAL_SAME_MELD_FORBIDDEN
    locked.melding.joker_retrieval.same_meld = ruleset_pb2.JOKER_RETRIEVAL_SAME_MELD_ALLOWED
    created = await client.games.CreateGame(gs.CreateGameRequest(ruleset=locked))
    assert created.game.ruleset.melding.joker_retrieval.same_meld == ruleset_pb2.JOKER_RETRIEVAL_SAME_MELD_ALLOWED


async def test_boolean_options_are_used_as_sent(client: Client) -> None:
    rules = game_rules(jokers_may_lead=False, jokers_beyond_physical=False)
    created = (await client.games.CreateGame(gs.CreateGameRequest(ruleset=rules))).game.ruleset.melding
    assert (created.melds.jokers_may_lead, created.melds.jokers_beyond_physical) == (False, False)
    assert created.melds.HasField("jokers_may_lead")
    assert created.initial_meld.voluntary_delay


async def test_every_problem_of_a_ruleset_is_reported(client: Client) -> None:
    rules = game_rules(
        penalty_tiles=15,
        joker_retrieval_end_of_run_free=True,
        teams=ruleset_pb2.TEAMS_PAIRS,
        players_max=6,
        deal_hand_size=21,
    )
    refusal = await refused(client.games.CreateGame(gs.CreateGameRequest(ruleset=rules)))
    assert set(field_violations(refusal)) == {
        f"ruleset.melding.{option}"
        for option in (
            "turn.penalty_tiles",
            "joker_retrieval.end_of_run_free",
            "joker_retrieval.mode",
            "deal.teams",
            "deal.players_min",
            "deal.players_max",
            "deal.hand_size",
        )
    }


# Causes


async def test_a_change_says_who_or_what_caused_it(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(PLAYERS, ruleset=RIVER)
    seat = (await game.see()).turn.seat
    await game.draw()
    clock.advance(LIMIT + 1)
    await game.see()
    changes = await history(game)
    by_player = game_pb2.CHANGE_CAUSE_PLAYER
    assert (changes[0].cause, changes[0].HasField("cause_seat")) == (game_pb2.CHANGE_CAUSE_HOST, False)
    assert [(change.cause, change.cause_seat) for change in changes[2 : PLAYERS + 1]] == [
        (by_player, other) for other in range(2, PLAYERS + 1)
    ]
    assert (changes[-2].cause, changes[-2].cause_seat) == (by_player, seat)
    assert (changes[-1].cause, changes[-1].HasField("cause_seat")) == (game_pb2.CHANGE_CAUSE_TIME, False)
