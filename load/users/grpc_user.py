"""The base class of all users: an own connection, on which every call is timed and reported to Locust."""

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
from rummikub import Rummikub, error_info

grpc_gevent.init_gevent()

CALL_SECONDS: Final = 10.0
"""The deadline of a call."""

OPTIONS: Final = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))
"""Without the first option, the channels of all users would share one connection."""

DOCUMENTED: Final[Mapping[str, frozenset[str]]] = {
    "PlayTurn": frozenset({"NOT_YOUR_TURN", "STALE_STATE", "MELD_TOO_SHORT"}),
    "SuggestTurn": frozenset({"ANALYSIS_BUSY"}),
    "HasLegalTurn": frozenset({"ANALYSIS_BUSY"}),
    "BatchSuggestTurns": frozenset({"ANALYSIS_BUSY"}),
}
"""The refusals that a user provokes or must expect, by RPC. Every other error is a failure."""


class CallError(Exception):
    """A call failed with an error that is not documented for its request."""


class RefusedError(RescheduleTask):
    """A call was refused as documented. If the task does not catch it, Locust continues with the next task."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WrongAnswerError(Exception):
    """A call returned a wrong answer."""


class Report:
    """Reports the results of calls to Locust.

    Args:
        environment: Locust's environment.
        sort: The text in the column "Type".
    """

    def __init__(self, environment: Environment, sort: str) -> None:
        self._request = environment.events.request
        self._sort = sort

    def answered(self, name: str, started: float, length: int) -> None:
        """Reports an answered call, or one message of a stream."""
        self._fire(self._sort, name, _milliseconds_since(started), length)

    def refused(self, name: str, started: float, reason: str) -> None:
        """Reports a documented refusal."""
        self._fire("refusal", f"{name} {reason}", _milliseconds_since(started))

    def failed(self, name: str, started: float, error: grpc.RpcError) -> None:
        """Reports a failed call."""
        code: grpc.StatusCode = error.code()
        text = f"{code.name} {error_info(error).reason} {error.details()}"
        self._fire(self._sort, name, _milliseconds_since(started), exception=CallError(text))

    def wrong(self, name: str, text: str) -> None:
        """Reports a wrong answer."""
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
    """Reports every unary call; a failed or refused call ends the user's task."""

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
            raise RescheduleTask  # Locust treats it like a return
        self._report.refused(name, started, reason)
        raise RefusedError(reason)


class GrpcUser(User):
    """A user with an own connection."""

    abstract = True
    sort = SERVICE
    takes_part_by: ClassVar[tuple[str, ...]] = ()
    """RPCs of which every run with this user must call at least one; empty for a baseline."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.report = Report(environment, self.sort)
        channel = grpc.insecure_channel(self.target(), OPTIONS)
        self.service = Rummikub(channel=grpc.intercept_channel(channel, _Timing(self.report)))

    def target(self) -> str:
        """Returns the address to call, as host:port."""
        return self.host or ""

    def option(self, name: str) -> str:
        """Returns the value of an option of the run; "" if it was not given."""
        return getattr(self.environment.parsed_options, name, None) or ""

    def on_stop(self) -> None:
        """Closes the connection."""
        self.service.close()

    @contextlib.contextmanager
    def streaming(self, name: str) -> Iterator[None]:
        """Reports a failure of the stream inside the `with` block."""
        started = time.perf_counter()
        try:
            yield
        except grpc.RpcError as error:
            self.report.failed(name, started, error)
            raise RescheduleTask from error


def _milliseconds_since(started: float) -> float:
    return (time.perf_counter() - started) * 1e3
