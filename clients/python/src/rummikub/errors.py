"""Reads the reason of a refusal from an error, and explains an error in a sentence."""

from typing import Final

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from rummikub.v1 import error_reason_pb2 as reasons
from rummikub.v1.error_reason_pb2 import ErrorReason
from rummikub.v1.violation_pb2 import Refusal, Violation

_ADVICE: Final = {
    reasons.AUTHORIZATION_MALFORMED: "pass a token as JoinGame or CreateGame returned it to seated()",
    reasons.GAME_NOT_FOUND: "check the game's id; games expire",
    reasons.HISTORY_UNAVAILABLE: "start again without an etag; Rummikub.watch() does so by itself",
    reasons.INTERNAL_ERROR: "report it with the x-request-id of the trailing metadata",
    reasons.NOT_A_PLAYER: "call with a seat's token: client.seated(seat_token)",
    reasons.NOT_THE_HOST: "call with the host token: client.seated(host_token)",
    reasons.STALE_STATE: "read the game again with GetGame, and let the player decide again",
    reasons.TOKEN_VOID: "use the token that replaced it, or join again",
}
"""The advice after a refusal, for reasons whose text from the server has none."""


def refusal(error: grpc.RpcError) -> Refusal:
    """Returns why a call was refused: reason, metadata, violations of a turn; empty if the server did not say."""
    refused = Refusal()
    _read_details(error, refused)
    return refused


def error_info(error: grpc.RpcError) -> error_details_pb2.ErrorInfo:
    """Returns the same for generic tools: `reason` is a name of ErrorReason."""
    info = error_details_pb2.ErrorInfo()
    _read_details(error, info)
    return info


def violations(error: grpc.RpcError) -> list[Violation]:
    """Returns the violations of a refused turn, 16 at most; empty if the call was refused for another reason."""
    return list(refusal(error).violations)


def explain(error: grpc.RpcError, target: str = "the address") -> str:
    """Returns a sentence for a developer: what is wrong, and what to do.

    Args:
        error: The error of a call.
        target: The address that was called, as Rummikub.target has it.
    """
    reason, text = refusal(error).reason, error.details()
    if reason in ErrorReason.values() and reason:
        advice = _ADVICE.get(reason, "")
        name = ErrorReason.Name(reason)
        return f"{name}: {text}" + (f"; {advice}" if advice else "")
    if reason:
        return (
            f"the service refused for the reason {reason}, which this client does not know: {text}; update the client"
        )
    match error.code():
        case grpc.StatusCode.UNAVAILABLE:
            return f"no service answers at {target}; start one with `make run`, or correct the address and TLS ({text})"
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return (
                f"no answer in time: no service answers at {target}, it is slow, or 100 calls are in progress on this"
                " connection; start one with `make run`, wait longer, or use another client"
            )
        case grpc.StatusCode.UNIMPLEMENTED:
            return (
                f"the service at {target} does not have this call: update the service, which is older than this client,"
                " or call its main address: the validation address has only ValidationService"
            )
        case code:
            return f"{code.name}: {text}"


def _read_details(error: grpc.RpcError, message: Message) -> None:
    """Fills a message with the detail of its kind of an error's status."""
    trailing: tuple[tuple[str, str | bytes], ...] = getattr(error, "trailing_metadata", tuple)() or ()
    for key, value in trailing:
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            for detail in status_pb2.Status.FromString(value).details:
                detail.Unpack(message)
