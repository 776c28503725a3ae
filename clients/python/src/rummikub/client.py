"""A thin client: a channel with the services' stubs, a seat token as call credentials, and a refusal's reason.

```python
with Rummikub("127.0.0.1:50051") as lobby:
    created = lobby.games.CreateGame(CreateGameRequest(request_id=new_request_id()))
    game_id, host = created.game.game_id, lobby.seated(created.host_token)
    seat = host.games.JoinGame(JoinGameRequest(game_id=game_id, name="Ann", request_id=new_request_id()))
    ann = lobby.seated(seat.seat_token)
    ann.games.StartGame(StartGameRequest(game_id=game_id))
```
"""

import json
import uuid
from types import TracebackType
from typing import Any, Final, Self

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from rummikub.v1.analysis_service_pb2_grpc import AnalysisServiceStub
from rummikub.v1.game_service_pb2_grpc import GameServiceStub
from rummikub.v1.turn_service_pb2_grpc import TurnServiceStub
from rummikub.v1.validation_service_pb2_grpc import ValidationServiceStub
from rummikub.v1.violation_pb2 import Refusal, Violation

Metadata = tuple[tuple[str, str | bytes], ...]

SERVICE_CONFIG: Final = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{}],
                "retryPolicy": {
                    "maxAttempts": 5,
                    "initialBackoff": "0.2s",
                    "maxBackoff": "2s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            }
        ],
        "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
    }
)
"""The recommended service config of a channel that retries (channel option `grpc.service_config`).

A server's `grpc-retry-pushback-ms` replaces the backoff. Throttling stops retries while more than half of the last
calls fail.
"""


class _Seat(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):
    """Sends a seat token with every call."""

    def __init__(self, token: str) -> None:
        self._metadata = ("authorization", f"Bearer {token}")

    def _signed(self, details: Any) -> grpc.ClientCallDetails:  # noqa: ANN401 - grpcio's call details have no type
        metadata = (*(details.metadata or ()), self._metadata)
        return _Details(details.method, details.timeout, metadata, details.credentials, details.wait_for_ready)

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:  # noqa: ANN401
        return continuation(self._signed(client_call_details), request)

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:  # noqa: ANN401
        return continuation(self._signed(client_call_details), request)


class _Details(grpc.ClientCallDetails):
    """The details of a call, as interceptors pass them on."""

    def __init__(
        self,
        method: str,
        timeout: float | None,
        metadata: Metadata,
        credentials: grpc.CallCredentials | None,
        wait_for_ready: bool | None,
    ) -> None:
        self.method = method
        self.timeout = timeout
        self.metadata = metadata
        self.credentials = credentials
        self.wait_for_ready = wait_for_ready
        self.compression = None


class Rummikub:
    """The service at an address, as a spectator or, with a token, as a seat of a game.

    Args:
        target: `host:port`.
        credentials: TLS credentials; None for a plain connection.
        channel: A channel to use instead of a new one to the target.
        retries: Whether the new channel repeats calls that end as UNAVAILABLE (SERVICE_CONFIG). Then send a request_id
            with every change: without one, a repeated change may be applied twice.
    """

    def __init__(
        self,
        target: str = "127.0.0.1:50051",
        credentials: grpc.ChannelCredentials | None = None,
        channel: grpc.Channel | None = None,
        *,
        retries: bool = False,
    ) -> None:
        if channel is None:
            options = (("grpc.service_config", SERVICE_CONFIG),) if retries else ()
            channel = (
                grpc.secure_channel(target, credentials, options)
                if credentials
                else grpc.insecure_channel(target, options)
            )
        self.channel = channel
        self.games = GameServiceStub(channel)
        self.turns = TurnServiceStub(channel)
        self.validation = ValidationServiceStub(channel)
        self.analysis = AnalysisServiceStub(channel)

    def seated(self, token: str) -> "Rummikub":
        """Returns the same connection with a seat's token, or the host token, on every call."""
        return Rummikub(channel=grpc.intercept_channel(self.channel, _Seat(token)))

    def close(self) -> None:
        """Closes the connection."""
        self.channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()


def new_request_id() -> str:
    """A request id: send it again with the same request when an answer was lost."""
    return str(uuid.uuid4())


def refusal(error: grpc.RpcError) -> Refusal:
    """Why a call was refused: reason, metadata and the violations of a turn; empty if the server did not say."""
    refused = Refusal()
    _read_details(error, refused)
    return refused


def error_info(error: grpc.RpcError) -> error_details_pb2.ErrorInfo:
    """The same for generic tools: `reason` is a name of ErrorReason without its prefix."""
    info = error_details_pb2.ErrorInfo()
    _read_details(error, info)
    return info


def violations(error: grpc.RpcError) -> list[Violation]:
    """Returns the violations of a refused turn, 16 at most; empty if the call was refused for another reason."""
    return list(refusal(error).violations)


def _read_details(error: grpc.RpcError, *messages: Message) -> None:
    """Fills messages with those details of an error's status that are of their kind."""
    trailing: Metadata = getattr(error, "trailing_metadata", tuple)() or ()
    for key, value in trailing:
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            for detail in status_pb2.Status.FromString(value).details:
                for message in messages:
                    detail.Unpack(message)
