"""An RPC as a row: its messages, who may call it, its limits, and what it does.

The tables of rows are in service/grpc_api/rpcs, and services.py says which service has which.
"""

import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from google.protobuf.message import Message

from engine.actions import Action
from service.analysis.pool import AnalysisPool
from service.app.commands.command import Basis, GameCommand, RequestIdentity, SeatAction
from service.app.identity import SPECTATOR, Caller
from service.app.own_data import SeatOf
from service.app.use_cases import UseCases
from service.app.watch import Watch
from service.codec import fields
from service.codec.games import answer_of
from service.grpc_api.call_origin import check_right, current_origin
from service.grpc_api.callers import caller, mutation, player
from service.grpc_api.handlers import Context, Handler, RequestReader, Service, unary, writing
from service.grpc_api.limits import Limits, RateName
from service.metrics.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Backend:
    """What RPCs use.

    Attributes:
        app: The use cases.
        watch: The streams of changes.
        pool: The processes that search.
        limits: The limits of callers.
        reader: Decodes long requests, and runs slow work.
        metrics: Counts what RPCs do.
        forget_seat: Removes the name and the reference of a seat's owner from a game (operator.forgetting).
    """

    app: UseCases
    watch: Watch
    pool: AnalysisPool
    limits: Limits
    reader: RequestReader
    metrics: Metrics
    forget_seat: Callable[[str, SeatOf], Awaitable[str]]

    @staticmethod
    def sender(token: "Token") -> "Callable[[Context], Caller]":
        """Returns what finds the caller, who may or must send a token. It raises AuthorizationMalformed, NotAPlayer."""
        return _SENDERS[token]


class Read(NamedTuple):
    """A request that was decoded in steps: the message, what was read from it, and its size in bytes."""

    message: Any
    value: Any
    size: int


class Token(Enum):
    """Whether callers of an RPC send the token of a seat or host."""

    IGNORED = "ignored"
    OPTIONAL = "optional"
    REQUIRED = "required"


_SENDERS: Final[Mapping[Token, Callable[[Context], Caller]]] = {
    Token.IGNORED: lambda _: SPECTATOR,
    Token.OPTIONAL: caller,
    Token.REQUIRED: player,
}


@dataclass(frozen=True, slots=True)
class Rpc:
    """An RPC.

    Attributes:
        request: Its request. The RPC has its name, without "Request".
        response: Its response.
        call: Returns the encoded response; None if it writes responses to the context. It gets the request, or what
            `read` returned, and who calls: a RequestIdentity if it mutates, otherwise a Caller.
        token: Whether callers send the token of a seat or host.
        is_secret: Whether its request id yields a token, so that it must be unguessable.
        limit: Which of the Limits counts its calls; None for none.
        right: The right that the caller's key must have; empty for none.
        read: Decodes a request that may be long, in steps, into a Read; None: it is short.
        is_stream: Whether it writes several responses.
    """

    request: type[Message]
    response: type[Message]
    call: Callable[[Any, Any, Any, Context], Awaitable[bytes | None]]
    token: Token = Token.OPTIONAL
    is_secret: bool = False
    limit: RateName | None = None
    right: str = ""
    read: Callable[[bytes], Generator[None, None, Read]] | None = None
    is_stream: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.request.DESCRIPTOR.name.removesuffix("Request")

    @property
    def mutates(self) -> bool:
        """Whether it changes a game once, however often the same request is sent."""
        return "request_id" in self.request.DESCRIPTOR.fields_by_name

    def handler(self, backend: Any) -> Handler:  # noqa: ANN401 - what `call` gets
        """Returns its handler."""
        call, right, mutates, is_secret = self.call, self.right, self.mutates, self.is_secret
        identify = backend.sender(self.token)
        limit = getattr(backend.limits, self.limit) if self.limit is not None else None
        is_read = self.read is not None

        async def answer(request: Any, context: Context) -> Any:  # noqa: ANN401 - as the row says
            if limit is not None:
                limit.take(current_origin(), time.monotonic())
            sender: Any = identify(context)
            if mutates:
                sender = mutation(request.message if is_read else request, sender, is_secret=is_secret)
            if right:
                check_right(right)
            return await call(backend, request, sender, context)

        if self.read is not None:
            reader: RequestReader = backend.reader
            return reader.unary(self.name, self.read, answer)
        return (writing if self.is_stream else unary)(self.request, answer)


B = TypeVar("B")
B_contra = TypeVar("B_contra", contravariant=True)


class Row(Protocol[B_contra]):
    """A row of any table."""

    @property
    def name(self) -> str:
        """The RPC's name."""

    def handler(self, backend: B_contra) -> Handler:
        """Returns its handler."""


def change(  # noqa: PLR0913 - the columns of a row
    request: type[Message],
    response: type[Message],
    command: Callable[[Any, str, RequestIdentity], GameCommand],
    *,
    limit: RateName | None = "changes",
    right: str = "",
    token: Token = Token.REQUIRED,
    is_secret: bool = False,
) -> Rpc:
    """Returns the row of an RPC that changes a game by a command, made of the request, the game and the identity."""
    answer = answer_of(response)

    async def call(backend: Backend, message: Any, identity: RequestIdentity, _context: Context) -> bytes:  # noqa: ANN401 - the row's request
        return await backend.app.changes.run(command(message, fields.game_id(message.game_id), identity), answer)

    return Rpc(
        request,
        response,
        call,
        token=token,
        is_secret=is_secret,
        limit=limit,
        right=right,
    )


def seat_action(  # noqa: PLR0913 - the columns of a row
    request: type[Message],
    response: type[Message],
    action: Callable[[Any], Callable[[int, Basis], Action]],
    *,
    limit: RateName | None = "changes",
    is_open_to_host: bool = False,
    may_deal: bool = False,
) -> Rpc:
    """Returns the row of an RPC that changes a game by the action of a seat, which is made of the request."""

    def command(message: Any, game_id: str, identity: RequestIdentity) -> SeatAction:  # noqa: ANN401 - as above
        return SeatAction(identity, game_id, action(message), is_open_to_host, may_deal)

    return change(request, response, command, limit=limit)


def served(name: str, rpcs: Iterable[Row[B]], backend: B) -> Service:
    """Returns a service with the handlers of its RPCs."""
    return Service(name, {rpc.name: rpc.handler(backend) for rpc in rpcs})
