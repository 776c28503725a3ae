"""The turns of the Python client are those of the game that the caller has seen."""

import pytest

import rummikub

GAME = rummikub.Game(game_id="g", revision=7, etag="e7")


@pytest.mark.parametrize(
    ("turn", "action"),
    [
        (
            rummikub.play(GAME, rummikub.melds("[R7 R8 J]")),
            {"play": rummikub.PlayTiles(table=rummikub.melds("[R7 R8 J]"))},
        ),
        (rummikub.draw(GAME), {"draw": rummikub.DrawTile()}),
        (rummikub.pass_turn(GAME), {"pass_turn": rummikub.Pass()}),
    ],
    ids=["play", "draw", "pass"],
)
def test_a_turn_has_the_state_that_its_player_has_seen(
    turn: rummikub.PlayTurnRequest, action: dict[str, object]
) -> None:
    seen = rummikub.PlayTurnRequest(game_id="g", etag="e7")
    seen.MergeFrom(rummikub.PlayTurnRequest(**action))  # type: ignore[arg-type]
    assert turn == seen
