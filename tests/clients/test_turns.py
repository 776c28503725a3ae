"""The turns of the Python client are those of the game that the caller has seen."""

import pytest

import rummikub

GAME = rummikub.Game(game_id="g", revision=7, etag="e7")
OKEY, HAND = rummikub.TILE_BLUE_1, [rummikub.HandPart(tiles=rummikub.tiles("R7 R7"))]
PLACED = [rummikub.Placement(tile=rummikub.TILE_RED_7, x=-1)]


@pytest.mark.parametrize(
    ("turn", "action"),
    [
        (
            rummikub.play(GAME, rummikub.melds("[R7 R8 J]")),
            {"play": rummikub.PlayTiles(table=rummikub.Table(melds=rummikub.melds("[R7 R8 J]")))},
        ),
        (
            rummikub.place(GAME, PLACED),
            {"play": rummikub.PlayTiles(table=rummikub.Table(placements=PLACED))},
        ),
        (rummikub.draw(GAME), {"draw": rummikub.DrawTile()}),
        (rummikub.pass_turn(GAME), {"pass_turn": rummikub.Pass()}),
        (rummikub.take_from_pool(GAME), {"take_from_pool": rummikub.TakeFromPool()}),
        (rummikub.take_discard(GAME), {"take_discard": rummikub.TakeDiscard()}),
        (rummikub.discard(GAME, OKEY), {"discard": rummikub.DiscardTile(tile=OKEY)}),
        (rummikub.finish(GAME, OKEY), {"finish": rummikub.FinishHand(tile=OKEY)}),
        (rummikub.finish(GAME, OKEY, HAND), {"finish": rummikub.FinishHand(tile=OKEY, hand=HAND)}),
        (rummikub.lay(GAME, HAND), {"lay": rummikub.LayTiles(table=HAND)}),
        (rummikub.return_discard(GAME), {"return_discard": rummikub.ReturnDiscard()}),
        (rummikub.foot(GAME, OKEY, HAND), {"finish": rummikub.FinishHand(tile=OKEY, table=HAND)}),
        (rummikub.take_trump(GAME), {"take_trump": rummikub.TakeTrump()}),
        (rummikub.pass_empty_pool(GAME), {"pass_empty_pool": rummikub.PassEmptyPool()}),
        (rummikub.show_indicator(GAME), {"show_indicator": rummikub.ShowIndicator()}),
    ],
    ids=[
        "play",
        "place",
        "draw",
        "pass",
        "take from the pool",
        "take a discard",
        "discard",
        "finish",
        "finish with the hand laid",
        "lay tiles",
        "put a discard back",
        "finish by a Foot",
        "take the trump",
        "pass with an empty pool",
        "show the indicator",
    ],
)
def test_a_turn_has_the_state_that_its_player_has_seen(
    turn: rummikub.PlayTurnRequest, action: dict[str, object]
) -> None:
    seen = rummikub.PlayTurnRequest(game_id="g", etag="e7")
    seen.MergeFrom(rummikub.PlayTurnRequest(**action))  # type: ignore[arg-type]
    assert turn == seen


def test_melds_of_a_table_declare_the_faces_of_jokers_that_can_stand_for_one_only() -> None:
    tiles, run = rummikub.tiles("R7 R8 J"), rummikub.MELD_KIND_RUN
    nine, other = rummikub.tiles("R9 R6")
    one, two = rummikub.JokerFaces(index=2, faces=[nine]), rummikub.JokerFaces(index=2, faces=[nine, other])
    table = [rummikub.Meld(tiles=tiles, kind=run, points=24, jokers=[faces]) for faces in (one, two)]
    assert rummikub.melds_of(table) == [
        rummikub.Meld(tiles=tiles, kind=run, declared_faces=[nine]),
        rummikub.Meld(tiles=tiles, kind=run),
    ]
