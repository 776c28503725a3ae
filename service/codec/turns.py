"""Requests and responses of TurnService."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from engine.decisions import TurnOutcome
from engine.melding.actions import DrawTile, LayOnRiver, Pass, PlayTiles, TurnAction
from engine.melding.table import ProposedTable
from engine.turns import outcome
from engine.violations import Violation
from rummikub.v1 import turn_service_pb2
from service.app.commands.command import Answer, Decision
from service.app.commands.turns import TurnRequest
from service.app.drafts import DraftRequest
from service.app.views import GameSnapshotView, snapshot_view
from service.codec import raw_messages
from service.codec.fields import encode_etag, etag, game_id, invalid, river_index
from service.codec.games import changed_game_bytes
from service.codec.tiles import (
    MELD_BYTES_MAX,
    MELDS_MAX,
    encode_proposed_table,
    encode_violation,
    meld_of,
    melds,
    tile_number,
    tile_numbers,
    tile_of,
)
from service.errors import InvalidRequest
from service.model.record import Record


def turn_request(message: turn_service_pb2.PlayTurnRequest, data: bytes) -> TurnRequest:
    """Returns a turn to play, from a message and its bytes."""
    seen_revision, seen_etag = etag(message.etag)
    return TurnRequest(
        game_id=game_id(message.game_id),
        revision=seen_revision,
        etag=seen_etag,
        validate_only=message.validate_only,
        action=_action(message, data),
    )


def encode_turn_request(seen: GameSnapshotView, action: TurnAction) -> turn_service_pb2.PlayTurnRequest:
    """Returns a turn that takes an action in the game as it was seen."""
    message = turn_service_pb2.PlayTurnRequest(game_id=seen.game_id, etag=encode_etag(seen.view.revision, seen.etag))
    match action:
        case PlayTiles(_, table, index, calls_rummikub):
            play = turn_service_pb2.PlayTiles(river_index=index, calls_rummikub=calls_rummikub)
            play.table.CopyFrom(encode_proposed_table(table))
            message.play.CopyFrom(play)
        case DrawTile():
            message.draw.SetInParent()
        case Pass():
            message.pass_turn.SetInParent()
        case LayOnRiver(_, tile):
            message.lay_on_river.tile = tile_number(tile)
    return message


def _action(message: turn_service_pb2.PlayTurnRequest, data: bytes) -> Callable[[int], TurnAction]:
    match message.WhichOneof("action"):
        case "play":
            return _play_tiles(message.play, data)
        case "draw":
            return DrawTile
        case "pass_turn":
            return Pass
        case "lay_on_river":
            tile = tile_of(message.lay_on_river.tile, "lay_on_river.tile")
            return lambda seat: LayOnRiver(seat, tile)
        case None:
            raise invalid("action", "expected one of play, draw, pass_turn, lay_on_river")


def _played(message: turn_service_pb2.PlayTiles, data: bytes) -> ProposedTable:
    """Returns the table of a play."""
    table = raw_messages.melds_of_request(data) or raw_messages.melds_of_play(message)
    if len(table) <= MELDS_MAX and max(map(len, table), default=0) <= MELD_BYTES_MAX:
        with contextlib.suppress(InvalidRequest):
            return tuple(map(meld_of, table))
    return melds(message.table.melds, "play.table")


def _play_tiles(message: turn_service_pb2.PlayTiles, data: bytes) -> Callable[[int], PlayTiles]:
    table = _played(message, data)
    index = river_index(message, "play.river_index")
    return lambda seat: PlayTiles(seat, table, index, message.calls_rummikub)


def encode_turn(game: GameSnapshotView, told: TurnOutcome, violations: Sequence[Violation]) -> bytes:
    """Returns an encoded PlayTurnResponse."""
    without_game = turn_service_pb2.PlayTurnResponse(
        tiles_played=tile_numbers(told.tiles_played) or None,
        points=told.points,
        tiles_drawn=tile_numbers(told.tiles_drawn) or None,
        violations=map(encode_violation, violations) if violations else None,
    )
    return raw_messages.encode_play_response(changed_game_bytes(game), without_game)


def draft_request(message: turn_service_pb2.SaveDraftRequest) -> DraftRequest:
    """Returns a draft to save."""
    seen_revision, seen_etag = etag(message.etag)
    return DraftRequest(
        game_id=game_id(message.game_id),
        revision=seen_revision,
        etag=seen_etag,
        table=melds(message.draft.table.melds, "draft.table") if message.HasField("draft") else None,
    )


def _answer(decision: Decision, after: Record) -> bytes:
    seen, applied = snapshot_view(after, decision.viewer, after.updated_ms), decision.applied
    return encode_turn(seen, outcome(applied), applied.violations)


TURN_ANSWER: Final = Answer(_answer)
"""Encodes the answer to a stored turn."""
