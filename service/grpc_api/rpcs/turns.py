"""Turns: playing, drafts, votes on a play that is shown."""

from collections.abc import Generator
from dataclasses import replace
from typing import Final

from engine.turns import outcome
from engine.violations import Refused
from rummikub.v1 import turn_service_pb2 as pb
from service.app.commands.command import RequestIdentity, SeatAction
from service.app.commands.turns import PlayTurn, TurnRequest, claim_error
from service.app.drafts import DraftRequest
from service.app.history import OffLoopRunner
from service.app.identity import Caller
from service.app.views import snapshot_view
from service.codec import fields, turns
from service.codec.tiles import bounds_of_tables
from service.errors import ActionRefused
from service.grpc_api.handlers import SHORT_BYTES, Context, SlowRunner
from service.grpc_api.rpc import Backend, Read, Rpc, Token, change

_MOST_OF_TURN: Final = bounds_of_tables("play.table")


async def play_turn(backend: Backend, read: Read, identity: RequestIdentity, context: Context) -> bytes:
    """PlayTurn."""
    turn: TurnRequest = read.value
    command = PlayTurn(identity, turn.game_id, turn)
    if read.size <= SHORT_BYTES and not turn.validate_only:
        return await backend.app.changes.run_cached(command, turns.TURN_ANSWER)
    runner = _runner(backend, read, context, "PlayTurn")
    if turn.validate_only:
        return await _validate(backend, command, runner)
    return await backend.app.changes.run(command, turns.TURN_ANSWER, runner)


async def _validate(backend: Backend, command: PlayTurn, runner: OffLoopRunner | None) -> bytes:
    """Returns the answer to a turn that is not stored. Raises ActionRefused for any violation."""
    basis, decision = await backend.app.changes.validate(command, runner)
    if decision.applied.violations:
        raise ActionRefused(Refused(decision.applied.violations))
    seen = snapshot_view(basis.record, decision.viewer, basis.now_ms)
    return turns.encode_turn(seen, replace(outcome(decision.applied), tiles_drawn=()), decision.applied.violations)


async def save_draft(backend: Backend, read: Read, sender: Caller, context: Context) -> bytes:
    """SaveDraft."""
    draft: DraftRequest = read.value
    saved = await backend.app.drafts.save(draft, sender, _runner(backend, read, context, "SaveDraft"))
    backend.app.presence.seen(draft.game_id, saved.seat)
    return pb.SaveDraftResponse(draft_number=saved.number, is_legal=saved.is_legal).SerializeToString()


def _runner(backend: Backend, read: Read, context: Context, rpc: str) -> SlowRunner | None:
    """Returns what judges a long request off the event loop; None for a short one."""
    return SlowRunner(backend.reader, read.size, context, rpc) if read.size > SHORT_BYTES else None


def _claim(request: pb.ClaimErrorRequest, game_id: str, identity: RequestIdentity) -> SeatAction:
    revision = fields.revision("play_revision", request.play_revision)
    return claim_error(identity, game_id, revision, agrees=request.agrees)


def _read_turn(data: bytes) -> Generator[None, None, Read]:
    request = fields.decode(pb.PlayTurnRequest, data, *_MOST_OF_TURN)
    yield
    return Read(request, turns.turn_request(request, data), len(data))


def _read_draft(data: bytes) -> Generator[None, None, Read]:
    request = fields.decode(pb.SaveDraftRequest, data, *bounds_of_tables("draft.table"))
    yield
    return Read(request, turns.draft_request(request), len(data))


RPCS: Final[tuple[Rpc, ...]] = (
    Rpc(pb.PlayTurnRequest, pb.PlayTurnResponse, play_turn, token=Token.REQUIRED, read=_read_turn),
    Rpc(
        pb.SaveDraftRequest,
        pb.SaveDraftResponse,
        save_draft,
        token=Token.REQUIRED,
        limit="drafts",
        read=_read_draft,
    ),
    change(pb.ClaimErrorRequest, pb.ClaimErrorResponse, _claim),
)
