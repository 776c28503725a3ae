"""CoachTurn: the verdict on a turn and hints of each size; and the costliest turns of a review."""

from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.presets import PRESETS
from engine.melding.review import MoveToReview
from engine.melding.ruleset import SABRA, Preset
from engine.melding.solver import Objective
from engine.moves import MoveKind
from engine.notation import parse_tiles
from engine.room_settings import Hints
from rummikub.v1 import analysis_service_pb2 as pb
from rummikub.v1 import meld_pb2, ruleset_pb2, violation_pb2
from service.analysis.queries import BestTurnQuery
from service.codec.reviews import Reviewed, encode_reviews
from service.codec.rulesets import encode_ruleset
from service.storage.memory import MemoryStore
from support.harness import (
    Client,
    GameAtHand,
    as_tiles,
    error_info,
    field_violations,
    memory_store,
    put_game,
    running_server,
)
from support.positions import game_at
from support.rooms import room

pytestmark = pytest.mark.slow

LONG = Duration(seconds=10)
STAGES = (pb.COACH_STAGE_COUNT, pb.COACH_STAGE_MELDS, pb.COACH_STAGE_STEP, pb.COACH_STAGE_TURN)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served() -> AsyncIterator[tuple[Client, MemoryStore]]:
    store = memory_store()
    async with running_server(store) as (_, client):
        yield client, store


def table(*melds: str) -> meld_pb2.Table:
    return meld_pb2.Table(melds=[meld_pb2.Meld(tiles=as_tiles(parse_tiles(one))) for one in melds])


def position(rack: str, *melds: str, has_melded: bool = True) -> pb.Position:
    return pb.Position(table=table(*melds), rack=as_tiles(parse_tiles(rack)), has_melded=has_melded)


RUN = "R4 R5 R6"


async def coached(client: Client, **fields: object) -> pb.CoachTurnResponse:
    return await client.analysis.CoachTurn(pb.CoachTurnRequest(time_limit=LONG, **fields))  # type: ignore[arg-type]


def kinds(response: pb.CoachTurnResponse) -> list[str]:
    return [violation_pb2.AdviceKind.Name(one.kind).removeprefix("ADVICE_KIND_") for one in response.advice]


def shown(response: pb.CoachTurnResponse) -> set[str]:
    """Returns which fields a response has that show something of the best turn."""
    return {field.name for field, _ in response.ListFields()} & {"melds_changed", "step", "placement", "suggestion"}


@pytest.mark.asyncio(loop_scope="module")
async def test_each_stage_shows_more_than_the_one_before(served: tuple[Client, MemoryStore]) -> None:
    at = position("R7 K1 K9", "B1 B2 B3", RUN)
    count, melds, step, turn = [await coached(served[0], position=at, stage=stage) for stage in STAGES]
    assert (count.tile_count, count.is_best, kinds(count), shown(count)) == (1, True, ["PLAY_EXISTS"], set())
    assert (list(melds.melds_changed), kinds(melds)) == ([1], ["PLAY_EXISTS", "MELDS_CHANGE"])
    assert (melds.advice[1].text, dict(melds.advice[1].metadata)) == (
        "The play changes these melds of the table: 2.",
        {"melds": "2"},
    )
    assert step.step.kind == pb.STEP_KIND_EXTEND
    assert (shown(step), step.advice[-1].text) == ({"melds_changed", "step"}, "From your rack to meld 2: R7.")
    assert (list(turn.suggestion.tiles_played), kinds(turn)[-1]) == (as_tiles(parse_tiles("R7")), "WHOLE_TURN")
    assert turn.suggestion.steps[0] == turn.step
    assert await coached(served[0], position=at) == count, "the smallest hint is the default"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_play_of_own_tiles_changes_no_meld(served: tuple[Client, MemoryStore]) -> None:
    found = await coached(served[0], position=position("K1 K2 K3", RUN), stage=pb.COACH_STAGE_STEP)
    assert kinds(found) == ["WIN_EXISTS", "NO_MELD_CHANGES", "TILES_TO_NEW_MELD"]
    assert (found.tile_count, list(found.melds_changed)) == (3, [])


@pytest.mark.asyncio(loop_scope="module")
async def test_a_tile_that_frees_a_joker_is_a_step(served: tuple[Client, MemoryStore]) -> None:
    found = await coached(served[0], position=position("R5 B1 B2", "R4 J R6"), stage=pb.COACH_STAGE_STEP)
    assert found.tile_count == 3
    assert found.step.kind in {pb.STEP_KIND_SUBSTITUTE, pb.STEP_KIND_PLACE}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.asyncio(loop_scope="module")
async def test_without_a_play_every_stage_shows_the_same(
    served: tuple[Client, MemoryStore], stage: pb.CoachStage.ValueType
) -> None:
    found = await coached(served[0], position=position("K1", RUN), stage=stage)
    assert (found.play_exists, kinds(found), shown(found)) == (pb.EXISTENCE_NO, ["NO_PLAY"], set())


def played(*melds: str) -> pb.CoachedTurn:
    return pb.CoachedTurn(table=table(*melds))


@pytest.mark.parametrize(
    ("turn", "verdict", "missed"),
    [
        (played(f"{RUN} R7 R8"), pb.TURN_VERDICT_BEST, 0),
        (played(f"{RUN} R7"), pb.TURN_VERDICT_NOT_BEST, 1),
        (played(RUN, "R7 R8"), pb.TURN_VERDICT_ILLEGAL, 0),
        (played(), pb.TURN_VERDICT_ILLEGAL, 0),
    ],
    ids=["the best", "a smaller one", "no meld", "an empty table"],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_turn_is_compared_with_the_best_one(
    served: tuple[Client, MemoryStore], turn: pb.CoachedTurn, verdict: pb.TurnVerdict.ValueType, missed: int
) -> None:
    found = await coached(served[0], position=position("R7 R8 K1", RUN), turn=turn)
    assert (found.verdict, found.missed) == (verdict, missed)
    is_illegal = verdict == pb.TURN_VERDICT_ILLEGAL
    assert bool(found.violations) is is_illegal
    assert all(one.subject.startswith("turn.table") or not one.subject for one in found.violations)
    verdicts = {pb.TURN_VERDICT_BEST: ["TURN_IS_BEST"], pb.TURN_VERDICT_NOT_BEST: ["TURN_NOT_BEST"]}
    assert kinds(found) == [*verdicts.get(verdict, []), "PLAY_EXISTS"]


@pytest.mark.asyncio(loop_scope="module")
async def test_by_value_another_turn_is_the_best(served: tuple[Client, MemoryStore]) -> None:
    at = position("R7 K1 K2 K3 K13 O13 B13", RUN)
    small, large = played(f"{RUN} R7", "K1 K2 K3"), played(f"{RUN} R7", "K13 O13 B13")
    by_value = {"position": at, "objective": pb.OBJECTIVE_HIGHEST_VALUE}
    best = (await coached(served[0], stage=pb.COACH_STAGE_TURN, **by_value)).suggestion
    assert (await coached(served[0], turn=small, **by_value)).missed == best.value - (7 + 1 + 2 + 3)
    assert (await coached(served[0], turn=large, **by_value)).missed == best.value - (7 + 3 * 13)


GRID = ruleset_pb2.MeldingRuleset()
GRID.CopyFrom(encode_ruleset(PRESETS[Preset.CROSS]).melding)


def cells(*placed: tuple[str, int, int]) -> meld_pb2.Table:
    return meld_pb2.Table(
        placements=[meld_pb2.Placement(tile=as_tiles(parse_tiles(tile))[0], x=x, y=y) for tile, x, y in placed]
    )


ROW = (("R4", 0, 0), ("R5", 1, 0), ("R6", 2, 0))


@pytest.mark.asyncio(loop_scope="module")
async def test_the_cross_layout_shows_a_cell(served: tuple[Client, MemoryStore]) -> None:
    at = pb.Position(ruleset=GRID, table=cells(*ROW), rack=as_tiles(parse_tiles("R7 K1")), has_melded=True)
    turn = pb.CoachedTurn(table=cells(*ROW, ("R7", 3, 0)))
    found = await coached(served[0], position=at, turn=turn, stage=pb.COACH_STAGE_TURN)
    assert (found.verdict, found.placement) == (pb.TURN_VERDICT_BEST, cells(("R7", 3, 0)).placements[0])
    assert kinds(found) == ["TURN_IS_BEST", "PLAY_EXISTS", "TILE_TO_CELL", "WHOLE_TURN"]
    wrong = await coached(served[0], position=at, turn=pb.CoachedTurn(table=cells(*ROW, ("K1", 3, 0))))
    assert wrong.verdict == pb.TURN_VERDICT_ILLEGAL
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await coached(served[0], position=at, turn=played(RUN))
    assert field_violations(refused.value) == ["turn.table"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"stage": 5}, "stage"),
        ({"objective": 9}, "objective"),
        ({"turn": pb.CoachedTurn(table=cells(*ROW))}, "turn.table"),
        ({"turn": pb.CoachedTurn(table=table(RUN), river_index=1 << 31)}, "turn.river_index"),
        ({"turn": pb.CoachedTurn(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=[99])]))}, "turn.table[0].tiles[0]"),  # type: ignore[list-item]
    ],
    ids=["a stage", "an objective", "a grid", "a place in the River", "a tile"],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_malformed_requests_name_the_field(
    served: tuple[Client, MemoryStore], fields: dict[str, object], field: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await coached(served[0], position=position("R7", RUN), **fields)
    assert (refused.value.code(), field_violations(refused.value)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


# In a game


async def in_game(served: tuple[Client, MemoryStore], hints: Hints, text: str = "") -> GameAtHand:
    rules = room(SABRA, hints=hints, turn_time_limit_seconds=0)
    return await put_game(*served, game_at(text or "[R4 R5 R6] / 1*{R7 K1} 2*{R3 O9} / {O1 O2} / 1", rules))


async def ask(game: GameAtHand, seat: int, **fields: object) -> pb.CoachTurnResponse:
    request = pb.CoachTurnRequest(game_id=game.game_id, time_limit=LONG, **fields)  # type: ignore[arg-type]
    return await game.client.analysis.CoachTurn(request, metadata=game.as_seat(seat))


@pytest.mark.parametrize(
    ("hints", "allowed"),
    [(Hints.OFF, 0), (Hints.PLAY_EXISTS, 0), (Hints.TILES, 1), (Hints.TURN, 4)],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_game_allows_as_much_as_its_option_hints(
    served: tuple[Client, MemoryStore], hints: Hints, allowed: int
) -> None:
    game = await in_game(served, hints)
    for stage in STAGES:
        if stage <= allowed:
            found = await ask(game, 1, turn=played(f"{RUN} R7"), stage=stage)
            assert (found.verdict, found.tile_count) == (pb.TURN_VERDICT_BEST, 1)
            assert found.revision == (await game.see()).revision
            continue
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await ask(game, 1, stage=stage)
        assert error_info(refused.value).reason == "HINT_NOT_ALLOWED"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_coach_knows_the_callers_rack_only(served: tuple[Client, MemoryStore]) -> None:
    """Two games that differ only in the other rack and in the pool get the same answers."""
    first = await in_game(served, Hints.TURN)
    second = await in_game(served, Hints.TURN, "[R4 R5 R6] / 1*{R7 K1} 2*{B3 B9} / {K1 J} / 1")
    for stage in STAGES:
        assert await ask(first, 1, stage=stage) == await ask(second, 1, stage=stage)
        turn = played("R3 R4 R5 R6")
        mine, other = [await ask(game, 1, turn=turn, stage=stage) for game in (first, second)]
        assert (mine, mine.verdict) == (other, pb.TURN_VERDICT_ILLEGAL), "the tile is on no rack of the caller"


# Reviews


def reviewed(move: int, kind: MoveKind, rack: str, gained: tuple[int, int], objective: Objective) -> Reviewed:
    """Returns the review of a move of a seat that has melded, at an empty table."""
    situation = Situation((), parse_tiles(rack), has_melded=not rack.startswith("R13"), ruleset=SABRA)
    best = BestTurnQuery(situation, objective).answer(Budget(nodes=10_000))
    return Reviewed(MoveToReview(move, move + 4, 1, 1, kind, gained, situation, ()), best)


@pytest.mark.parametrize(("objective", "unit"), [(Objective.MOST_TILES, "TILES"), (Objective.HIGHEST_VALUE, "POINTS")])
def test_the_costliest_turns_are_missed_wins_then_those_that_missed_most(objective: Objective, unit: str) -> None:
    def review(*moves: tuple[MoveKind, str, tuple[int, int]]) -> list[tuple[int, str, dict[str, str]]]:
        found = [reviewed(place, *move, objective) for place, move in enumerate(moves)]
        [seat] = encode_reviews(found, objective, is_complete=True).seats
        assert seat.missed == sum(one.missed(objective) for one in found)
        return [
            (one.move_index, violation_pb2.AdviceKind.Name(one.advice.kind)[12:], dict(one.advice.metadata))
            for one in seat.costliest_turns
        ]

    draw, play = MoveKind.DRAW, MoveKind.PLAY
    two_melds = "K1 K2 K3 O4 O5 O6 R9"
    played = {Objective.MOST_TILES: ("3", "6"), Objective.HIGHEST_VALUE: ("6", "21")}[objective]
    assert review(
        (draw, "K1 R9 B9", (0, 0)),
        (draw, "K1 K2 K3", (0, 0)),
        (play, "K1 K2 K3 R9", (3, 6)),
        (draw, "K1 K2 K3 R9", (0, 0)),
        (play, two_melds, (3, 6)),
        (draw, "R13 B13 K13 R9", (0, 0)),
    ) == [
        (1, "WIN_MISSED", {"count": "3"}),
        *(
            [(3, "PLAY_MISSED", {"count": "3"}), (4, "TILES_MISSED", {"played": "3", "best": "6"})]
            if unit == "TILES"
            else [
                (5, "INITIAL_MELD_MISSED", {"count": "3"}),
                (4, "POINTS_MISSED", dict(zip(("played", "best"), played, strict=True))),
            ]
        ),
    ]
    assert review((draw, "K1 R9 B9", (0, 0)), (play, "K1 K2 K3 R9", (3, 6))) == []
