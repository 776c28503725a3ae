"""Requests of turns in a game as the caller has seen it, so that a turn in a game that has changed since is refused."""

from collections.abc import Iterable

from rummikub.v1.discard_pb2 import HandPart
from rummikub.v1.game_pb2 import Game
from rummikub.v1.meld_pb2 import JokerFaces, Meld, Placement, Table
from rummikub.v1.tile_pb2 import Tile
from rummikub.v1.turn_service_pb2 import (
    DiscardTile,
    DrawTile,
    FinishHand,
    LayTiles,
    Pass,
    PassEmptyPool,
    PlayTiles,
    PlayTurnRequest,
    ReturnDiscard,
    ShowIndicator,
    TakeDiscard,
    TakeFromPool,
    TakeTrump,
)


def play(game: Game, table: Iterable[Meld]) -> PlayTurnRequest:
    """Returns the request to play tiles; `table` has all melds after the turn."""
    return _turn(game, PlayTurnRequest(play=PlayTiles(table=Table(melds=table))))


def place(game: Game, placements: Iterable[Placement]) -> PlayTurnRequest:
    """Returns the request to play tiles in the cross layout; `placements` has all tiles of the table after the turn.

    Those of the game's table can be sent back as they are.
    """
    return _turn(game, PlayTurnRequest(play=PlayTiles(table=Table(placements=placements))))


def draw(game: Game) -> PlayTurnRequest:
    """Returns the request to draw a tile."""
    return _turn(game, PlayTurnRequest(draw=DrawTile()))


def pass_turn(game: Game) -> PlayTurnRequest:
    """Returns the request to pass."""
    return _turn(game, PlayTurnRequest(pass_turn=Pass()))


def take_from_pool(game: Game) -> PlayTurnRequest:
    """Returns the request to take a tile of the pool, in a game of discards."""
    return _turn(game, PlayTurnRequest(take_from_pool=TakeFromPool()))


def take_discard(game: Game) -> PlayTurnRequest:
    """Returns the request to take the newest discard of the player before."""
    return _turn(game, PlayTurnRequest(take_discard=TakeDiscard()))


def discard(game: Game, tile: Tile.ValueType) -> PlayTurnRequest:
    """Returns the request to discard a tile, which ends the turn."""
    return _turn(game, PlayTurnRequest(discard=DiscardTile(tile=tile)))


def finish(game: Game, tile: Tile.ValueType, hand: Iterable[HandPart] = ()) -> PlayTurnRequest:
    """Returns the request to discard a tile and finish; without a `hand`, the service finds its melds or pairs."""
    return _turn(game, PlayTurnRequest(finish=FinishHand(tile=tile, hand=hand)))


def foot(game: Game, tile: Tile.ValueType, table: Iterable[HandPart]) -> PlayTurnRequest:
    """Returns the request to discard a tile and finish by a Foot; `table` is as for `lay`, with all other tiles."""
    return _turn(game, PlayTurnRequest(finish=FinishHand(tile=tile, table=table)))


def lay(game: Game, table: Iterable[HandPart]) -> PlayTurnRequest:
    """Returns the request to lay tiles in a game of discards with a table.

    `table` has all its melds and pairs afterwards: those of the game's table at their places, grown or as they are, and
    then new ones.
    """
    return _turn(game, PlayTurnRequest(lay=LayTiles(table=table)))


def return_discard(game: Game) -> PlayTurnRequest:
    """Returns the request to put the discard or the trump taken in this turn back and take a tile of the pool."""
    return _turn(game, PlayTurnRequest(return_discard=ReturnDiscard()))


def take_trump(game: Game) -> PlayTurnRequest:
    """Returns the request to take the trump in place of a tile of the pool."""
    return _turn(game, PlayTurnRequest(take_trump=TakeTrump()))


def pass_empty_pool(game: Game) -> PlayTurnRequest:
    """Returns the request to take no tile from an empty pool, which ends the round."""
    return _turn(game, PlayTurnRequest(pass_empty_pool=PassEmptyPool()))


def show_indicator(game: Game) -> PlayTurnRequest:
    """Returns the request to show the indicator's twin."""
    return _turn(game, PlayTurnRequest(show_indicator=ShowIndicator()))


def melds_of(table: Iterable[Meld]) -> list[Meld]:
    """Returns the melds of a table as a player sends them back.

    They keep their kinds, and declare the faces of the jokers of a meld if each can stand for one face only.
    """
    return [Meld(tiles=meld.tiles, kind=meld.kind, declared_faces=_declared(meld.jokers)) for meld in table]


def _turn(game: Game, turn: PlayTurnRequest) -> PlayTurnRequest:
    turn.game_id, turn.etag = game.game_id, game.etag
    return turn


def _declared(jokers: Iterable[JokerFaces]) -> list[Tile.ValueType]:
    faces = [list(joker.faces) for joker in jokers]
    return [face for (face,) in faces] if all(len(one) == 1 for one in faces) else []
