"""The policy of calls, the same for each transport.

It finds who calls, whether there is room, and when a refusal is sent; and it counts, logs and traces. It waits for
nothing: the interceptors of the transports adapt to it.
"""

import itertools
import logging
import math
import re
import secrets
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic, perf_counter
from typing import Any, Final

import structlog

from service.errors import Fault, RequestTooLarge, ShuttingDown, TooManyDrafts, TooManyElements
from service.grpc_api.call_origin import AuthContext, Origins
from service.grpc_api.status import Status, status_of
from service.metrics.metrics import LIMITS, Metrics
from service.runtime.admission import SERVER_METHODS, Admission
from service.runtime.origins import CALLS, Metadata, Origin
from service.runtime.refusal_pace import Pacing, RefusalPace
from service.runtime.tracing import CallTrace, Tracing
from service.settings import Settings

REQUEST_ID: Final = "x-request-id"
OK: Final = "OK"

_REQUEST_ID_FORM: Final = re.compile(r"[!-~]{1,64}")
_PROCESS: Final = secrets.token_hex(8)
_CALLS: Final = itertools.count()
"""Request ids are made of these two; a random one for each call would cost more than the rest of this module."""

_FREQUENT: Final = ("/rummikub.v1.ValidationService/", "/grpc.health.v1.Health/")
"""Methods whose successful calls have the level debug in the log."""
_PACED: Final = LIMITS - {"REQUEST_TIMED_OUT"}
"""The reasons of refusals that are paced. Calls with late requests have a pace of their own."""
_PACED_FAULTS: Final = (TooManyElements, RequestTooLarge)
"""Faults whose refusals are paced too: a request of 300 bytes that unpacks to 260 KB costs a millisecond to refuse."""

_log = structlog.get_logger()


class CallPolicy:
    """The policy of one listener.

    Args:
        metrics: Counts calls.
        origins: Finds where calls come from, and rejects those without a valid key.
        settings: The bounds of calls and requests.
        is_stopping: Returns whether the server stops; new calls are then rejected, and those in progress continue.
        peer_share: The share of the calls that one address may have.
        tracing: Makes a span of each call, apart from health and reflection; None if tracing is off.
        pacing: How refusals are paced.

    Attributes:
        calls: Bounds the calls in progress, apart from health and reflection.
        server_calls: Bounds those of health and reflection, so that health answers under load.
        refusals: Bounds the refusals that wait. Their calls are no longer in progress.
        refused_early_seconds: How long before the deadline of its call a refusal is sent at the latest.
        max_bytes: The largest size of a request.
    """

    def __init__(  # noqa: PLR0913 - made in few places
        self,
        metrics: Metrics,
        origins: Origins,
        settings: Settings,
        is_stopping: Callable[[], bool],
        peer_share: float,
        *,
        tracing: Tracing | None = None,
        pacing: Pacing = Pacing(),
    ) -> None:
        self.metrics = metrics
        self.origins = origins
        self.is_stopping = is_stopping
        self.tracing = tracing
        self.max_bytes = settings.max_message_bytes
        self.calls = Admission(settings.max_calls, peer_share, "calls", CALLS)
        self.server_calls = Admission(settings.max_calls, peer_share, "calls")
        self.refusals = Admission(pacing.waiting_max, peer_share, "calls")
        self.refused_early_seconds = pacing.early_seconds
        self._pace = RefusalPace(self.calls.is_bounded, pacing.per_second, pacing)
        self._draft_pace = RefusalPace(self.calls.is_bounded, pacing.drafts_per_second, pacing)
        self._late_pace = RefusalPace(self.calls.is_bounded, pacing.late_per_second, pacing)

    def origin_without_key(self, peer: str, metadata: Metadata | None) -> Origin:
        """Returns where a call comes from, whatever its key."""
        return Origin(self.origins.address_of(peer, metadata))

    def refusal_delay(self, error: Exception, reason: str, origin: Origin, left: float = math.inf) -> float:
        """Returns how many seconds a refusal waits: not at all unless it protects the server and is one of many.

        Args:
            error: The refusal.
            reason: Its ErrorReason.
            origin: Who is refused.
            left: Seconds until the deadline of the call.
        """
        if reason not in _PACED and not isinstance(error, _PACED_FAULTS):
            return 0.0
        pace = self._draft_pace if isinstance(error, TooManyDrafts) else self._pace
        return pace.delay(origin, monotonic(), left)

    def late_delay(self, origin: Origin, left: float = math.inf) -> float:
        """Returns how many seconds later than at its timeout a call ends whose request is late."""
        return self._late_pace.delay(origin, monotonic(), left)


class MethodPolicy:
    """The policy for the calls of one method. Thread-safe.

    Args:
        policy: The policy of its listener.
        path: The method's path.

    Attributes:
        enter: Admits a call for an origin. Raises Overloaded.
        leave: Releases a call that was admitted for an origin.
        start_trace: Starts the span of a call with some metadata; None if its calls have none.
    """

    def __init__(self, policy: CallPolicy, path: str) -> None:
        is_of_server, is_frequent = path.startswith(SERVER_METHODS), path.startswith(_FREQUENT)
        admission, tracing = policy.server_calls if is_of_server else policy.calls, policy.tracing
        self._path = path
        self._is_stopping = _never if is_of_server else policy.is_stopping
        self._origin_of = policy.origins.origin_of
        self.enter, self.leave = admission.enter, admission.leave
        self.start_trace = None if is_of_server or tracing is None else lambda metadata: tracing.call(path, metadata)
        self._metrics = policy.metrics
        self._count_ok = policy.metrics.calls(path, OK)
        self._log = _log.bind()  # an unbound one reads the configuration for each line
        self._log_ok = self._log.debug if is_frequent else self._log.info
        self._logs_ok = self._log.is_enabled_for(logging.DEBUG if is_frequent else logging.INFO)

    def identify(self, peer: str, metadata: Metadata | None, auth_context: AuthContext) -> Origin:
        """Returns the origin of a new call. Raises ShuttingDown, ApiKeyInvalid, ApiKeyNotAllowed."""
        if self._is_stopping():
            raise ShuttingDown
        return self._origin_of(self._path, peer, metadata, auth_context)

    def succeeded(self, request_id: str, started: float, trace: CallTrace | None = None) -> None:
        """Records a successful call, which started at a time by perf_counter."""
        if trace is not None:
            trace.run(self.succeeded, request_id, started)
            trace.end(OK, "", request_id)
            return
        seconds = perf_counter() - started
        self._count_ok(seconds)
        if self._logs_ok:
            self._log_ok("call", ms=round(seconds * 1000, 3), method=self._path, code=OK, request_id=request_id)

    def failed(self, request_id: str, started: float, error: Exception, trace: CallTrace | None = None) -> Status:
        """Records a failed call and returns its status. Logs an exception that is no Fault."""
        status = self.status(request_id, error, trace)
        self.ended(request_id, started, status.code.name, status.reason, status.limit, trace=trace)
        return status

    def status(self, request_id: str, error: Exception, trace: CallTrace | None = None) -> Status:
        """Returns the status for an exception without recording the call. Logs an exception that is no Fault."""
        if not isinstance(error, Fault):
            log = partial(self._log.exception, "fault", method=self._path, request_id=request_id, exc_info=error)
            log() if trace is None else trace.run(log)
        return status_of(error)

    def ended(  # noqa: PLR0913 - what a call is
        self,
        request_id: str,
        started: float,
        code: str,
        reason: str = "",
        limit: str = "",
        *,
        trace: CallTrace | None = None,
    ) -> None:
        """Records a call that has ended with a code. Nothing of a request's content is logged."""
        if trace is not None:
            trace.run(self.ended, request_id, started, code, reason, limit)
            trace.end(code, reason, request_id)
            return
        seconds = perf_counter() - started
        self._metrics.call(self._path, code, seconds)
        self._metrics.refused(reason, limit)
        fields: dict[str, Any] = {"method": self._path, "code": code, "request_id": request_id}
        fields |= {name: value for name, value in (("reason", reason), ("limit", limit)) if value}
        self._log.info("call", ms=round(seconds * 1000, 3), **fields)


def check_size(data: bytes, most: int) -> None:
    """Raises RequestTooLarge if a request has more bytes than `most`."""
    if len(data) > most:
        raise RequestTooLarge


def _never() -> bool:
    return False


def request_id_of(metadata: Iterable[tuple[str, str | bytes]] | None) -> str:
    """Returns the x-request-id of a call if it is valid, else a new one."""
    for key, value in metadata or ():
        if key == REQUEST_ID and isinstance(value, str) and _REQUEST_ID_FORM.fullmatch(value):
            return value
    return f"{_PROCESS}{next(_CALLS):08x}"
