"""Requests and responses of TurnService."""

from collections.abc import Callable, Sequence
from typing import Final

from engine.decisions import TurnOutcome
from engine.turns import outcome as outcome_of
from engine.unions import TurnAction
from engine.violations import Violation
from rummikub.v1 import turn_service_pb2
from service.app.commands.command import Answer, Decision
from service.app.commands.turns import TurnRequest
from service.app.drafts import DraftRequest
from service.app.views import GameSnapshotView, snapshot_view
from service.codec import raw_messages
from service.codec.families import ACTIONS, codec_of
from service.codec.fields import encode_etag, etag, game_id, invalid
from service.codec.games import changed_game_bytes
from service.codec.tiles import encode_violation, table, tile_numbers
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
    codec_of(seen.view.ruleset).set_action(message, action)
    return message


def _action(message: turn_service_pb2.PlayTurnRequest, data: bytes) -> Callable[[int], TurnAction]:
    member = message.WhichOneof("action")
    if member is None:
        raise invalid("action", f"expected one of {', '.join(ACTIONS)}")
    return ACTIONS[member](message, data)


def encode_turn(game: GameSnapshotView, outcome: TurnOutcome, violations: Sequence[Violation]) -> bytes:
    """Returns an encoded PlayTurnResponse."""
    without_game = turn_service_pb2.PlayTurnResponse(
        tiles_played=tile_numbers(outcome.tiles_played) or None,
        points=outcome.points,
        tiles_drawn=tile_numbers(outcome.tiles_drawn) or None,
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
        table=table(message.draft.table, "draft.table") if message.HasField("draft") else None,
    )


def _answer(decision: Decision, after: Record) -> bytes:
    seen, applied = snapshot_view(after, decision.viewer, after.updated_ms), decision.applied
    return encode_turn(seen, outcome_of(applied), applied.violations)


TURN_ANSWER: Final = Answer(_answer)
"""Encodes the answer to a stored turn."""
