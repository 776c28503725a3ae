"""What all users have: a connection of their own, every call of which is timed and reported to Locust."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

import grpc
from grpc.experimental import gevent as grpc_gevent
from locust import User
from locust.env import Environment
from locust.exception import RescheduleTask

from load.thresholds import SERVICE
from rummikub.client import Rummikub, error_info

grpc_gevent.init_gevent()

CALL_SECONDS: Final = 10.0
"""How long a call may take at most; what takes longer has failed."""

OPTIONS: Final = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))
"""Without the first, the channels of all users would share one connection."""

DOCUMENTED: Final[Mapping[str, frozenset[str]]] = {
    "PlayTurn": frozenset({"NOT_YOUR_TURN", "STALE_STATE", "SET_TOO_SHORT"}),
    "SuggestTurn": frozenset({"ANALYSIS_BUSY"}),
    "HasLegalTurn": frozenset({"ANALYSIS_BUSY"}),
    "BatchSuggestTurns": frozenset({"ANALYSIS_BUSY"}),
}
"""The refusals that a user asks for or has to live with, by RPC. Every other error is a failure."""


class CallError(Exception):
    """A call failed in a way that is not documented for what was asked."""


class RefusedError(RescheduleTask):
    """A call met with a documented refusal. Where nobody waits for it, Locust goes on with the next task."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WrongAnswerError(Exception):
    """A call was answered, and the answer is wrong."""


class Report:
    """Tells Locust how calls went.

    Args:
        environment: Locust's.
        sort: What its rows are called in the column "Type".
    """

    def __init__(self, environment: Environment, sort: str) -> None:
        self._request = environment.events.request
        self._sort = sort

    def answered(self, name: str, started: float, length: int) -> None:
        """A call, or one message of a stream, was answered."""
        self._fire(self._sort, name, _milliseconds_since(started), length)

    def refused(self, name: str, started: float, reason: str) -> None:
        """A call met with a documented refusal."""
        self._fire("refusal", f"{name} {reason}", _milliseconds_since(started))

    def failed(self, name: str, started: float, error: grpc.RpcError) -> None:
        """A call failed."""
        code: grpc.StatusCode = error.code()
        text = f"{code.name} {error_info(error).reason} {error.details()}"
        self._fire(self._sort, name, _milliseconds_since(started), exception=CallError(text))

    def wrong(self, name: str, text: str) -> None:
        """A call got a wrong answer."""
        self._fire("answer", name, exception=WrongAnswerError(text))

    def _fire(
        self,
        sort: str,
        name: str,
        milliseconds: float | None = None,
        length: int = 0,
        exception: Exception | None = None,
    ) -> None:
        self._request.fire(
            request_type=sort,
            name=name,
            response_time=milliseconds,
            response_length=length,
            exception=exception,
            context={},
        )


class _Timing(grpc.UnaryUnaryClientInterceptor):
    """Reports every call that is one question and one answer; one that fails or is refused ends the user's task."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:  # noqa: ANN401 - grpcio's types
        name = client_call_details.method.rpartition("/")[2]
        started = time.perf_counter()
        call = continuation(client_call_details, request)
        error = call.exception()
        if error is None:
            self._report.answered(name, started, call.result().ByteSize())
            return call
        reason = error_info(error).reason
        if reason not in DOCUMENTED.get(name, ()):
            self._report.failed(name, started, error)
            raise RescheduleTask  # for Locust like a return
        self._report.refused(name, started, reason)
        raise RefusedError(reason)


class GrpcUser(User):
    """A user with a connection of its own."""

    abstract = True
    sort = SERVICE
    takes_part_by: ClassVar[tuple[str, ...]] = ()
    """The RPCs of the service of which one at least is called in every run with this user; none for a baseline."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.report = Report(environment, self.sort)
        channel = grpc.insecure_channel(self.target(), OPTIONS)
        self.service = Rummikub(channel=grpc.intercept_channel(channel, _Timing(self.report)))

    def target(self) -> str:
        """Where the user's calls go, as host:port."""
        return self.host or ""

    def option(self, name: str) -> str:
        """An option of the run; empty if it was not given."""
        return getattr(self.environment.parsed_options, name, None) or ""

    def on_stop(self) -> None:
        """Closes the connection."""
        self.service.close()

    @contextlib.contextmanager
    def streaming(self, name: str) -> Iterator[None]:
        """Reports a stream that breaks."""
        started = time.perf_counter()
        try:
            yield
        except grpc.RpcError as error:
            self.report.failed(name, started, error)
            raise RescheduleTask from error


def _milliseconds_since(started: float) -> float:
    return (time.perf_counter() - started) * 1e3
