"""A server in this process, and everything that it shows: responses, logs, metrics and spans."""

import asyncio
import io
import json
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import grpc
import grpc.aio
import structlog
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from engine.tiles import Tile
from load.hidden.wire import Relay, relaying
from rummikub.v1 import game_service_pb2 as gs
from service.composition import Tuning
from service.grpc_api.call_policy import REQUEST_ID
from service.runtime import opentelemetry_tracing
from service.runtime.keys import HEADER
from service.runtime.opentelemetry_tracing import OpenTelemetryTracing
from service.runtime.process import log_to_stderr
from service.runtime.refusal_pace import Pacing
from service.server import Intervals, Server
from support.harness import FakeClock, SeededChance, bearer, keys_file, running_server, server_settings
from support.hidden import Shelf
from support.join_tickets import ENTRY

ALL_RIGHTS: Final = f"{ENTRY}\nposition_searches = true\nreissue_seat_tokens = true"
KEYS: Final = {"web": ALL_RIGHTS, "plain": "", "partner": ALL_RIGHTS}
OPERATOR_TOKEN: Final = "the-token-of-the-operator"  # noqa: S105 - of this server
UNPACED: Final = Pacing(per_second=1e9, drafts_per_second=1e9, late_per_second=1e9, at_once=10**9)
RARE: Final = Intervals(ping=1e6, count=1e6, presence=1e6, load=1e6)
"""No task of the server changes a metric by itself."""
TIMES: Final = {"ms", "timestamp", "trace_id", "span_id"}
"""Fields of log lines that differ between equal calls."""
OF_PROCESSES: Final = ("process_", "rummikub_event_loop_")
OF_TIMES: Final = ("_seconds_bucket", "_seconds_sum", "_created")
"""Samples that differ between equal calls: what the process uses, how late its loop is, and durations."""
SETTLED_SECONDS: Final = 5.0
CALL_SECONDS: Final = 120.0

Metadata = tuple[tuple[str, str], ...]


class RestartedChance:
    """A source of randomness that starts again for each game, so that games differ in nothing but their tiles."""

    def __init__(self) -> None:
        self._seeded = SeededChance(1)

    def restart(self) -> None:
        """Starts again."""
        self._seeded = SeededChance(1)

    def token_bytes(self, count: int) -> bytes:
        """Returns random bytes."""
        return self._seeded.token_bytes(count)

    def shuffle(self, tiles: Sequence[Tile]) -> tuple[Tile, ...]:
        """Returns the tiles in random order."""
        return self._seeded.shuffle(tiles)


@dataclass(frozen=True)
class Viewer:
    """A caller.

    Attributes:
        kind: What it is, for reports.
        number: Its seat, HOST_VIEWER, or 0 for those who see no rack.
        token: Its token; empty for none.
        key: The key that it sends; empty for none.
        is_operator: Whether it calls AdminService, too.
        ticket: The ticket with which it watches; empty for none.
    """

    kind: str
    number: int
    token: str = ""
    key: str = "web"
    is_operator: bool = False
    ticket: str = ""

    @property
    def metadata(self) -> Metadata:
        """What it sends beside its request."""
        key = ((HEADER, self.key),) if self.key else ()
        return (*bearer(self.token), *key)

    def asking(self, ask: "Ask") -> "Ask":
        """Returns a request with the caller's ticket, if it is one to watch a game."""
        if not self.ticket or ask.rpc != "WatchGame":
            return ask
        request = gs.WatchGameRequest.FromString(ask.request)
        request.ticket = self.ticket
        return replace(ask, request=request.SerializeToString())


@dataclass(frozen=True)
class Ask:
    """A request.

    Attributes:
        path: The path of its RPC.
        request: Its bytes.
        updates: How many responses of a stream are read; None for a unary RPC.
        is_admin: Whether it goes to the operator's listener.
        streams: Whether the requests are a stream, too.
    """

    path: str
    request: bytes
    updates: int | None = None
    is_admin: bool = False
    streams: bool = False

    @property
    def rpc(self) -> str:
        """The name of its RPC."""
        return self.path.rpartition("/")[2]


@dataclass
class Stage:
    """A server, the store whose one game is replaced, and what the server writes."""

    server: Server
    shelf: Shelf
    clock: FakeClock
    chance: RestartedChance
    channel: grpc.aio.Channel
    admin: grpc.aio.Channel
    log: io.BytesIO
    spans: InMemorySpanExporter
    relay: Relay
    admin_relay: Relay

    async def observe(self, asks: Sequence[Ask], viewer: Viewer, *, with_metrics: bool = True) -> list[bytes]:
        """Returns the answer to each request, then OUTPUTS, as bytes: changes of metrics, perhaps."""
        self.spans.clear()
        self.log.seek(0)
        self.log.truncate()
        before = self._samples() if with_metrics else {}
        seen = []
        for number, ask in enumerate(asks):
            at = self.admin if ask.is_admin else self.channel
            seen.append(await answer(at, viewer.asking(ask), (*viewer.metadata, (REQUEST_ID, f"ask-{number}"))))
        await self._settled(len(asks))
        await self.server.presence.flush()
        after = self._samples() if with_metrics else {}
        changed = {
            name: value - before.get(name, 0.0) for name, value in after.items() if value != before.get(name, 0.0)
        }
        outputs = (self._lines(), self._spans(), self.shelf.presence_kept(), sorted(changed.items()))
        return [*seen, *map(_as_bytes, outputs)]

    async def sent(self, asks: Sequence[Ask], viewer: Viewer) -> bytes:
        """Returns the bytes that new connections receive, one to each listener that the requests go to."""
        found = b""
        for relay, is_admin in ((self.relay, False), (self.admin_relay, True)):
            some = [viewer.asking(ask) for ask in asks if ask.is_admin is is_admin]
            if some:
                found += await self._sent_through(relay, some, viewer)
        return found

    async def _sent_through(self, relay: Relay, asks: Sequence[Ask], viewer: Viewer) -> bytes:
        relay.begin()
        options = [("grpc.use_local_subchannel_pool", 1)]
        self.spans.clear()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{relay.port}", options=options) as channel:
            for number, ask in enumerate(asks):
                await answer(channel, ask, (*viewer.metadata, (REQUEST_ID, f"wire-{number}")))
            taken = relay.taken([2 * number + 1 for number, ask in enumerate(asks) if ask.updates is not None])
        await self._settled(len(asks))
        return taken

    def _samples(self) -> dict[str, float]:
        samples: defaultdict[str, float] = defaultdict(float)
        for metric in self.server.metrics.registry.collect():
            for sample in metric.samples:
                if not (sample.name.startswith(OF_PROCESSES) or sample.name.endswith(OF_TIMES)):
                    samples[_with_one_end(f"{sample.name}{sorted(sample.labels.items())}")] += sample.value
        return dict(samples)

    def _lines(self) -> list[str]:
        lines = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return sorted(
            _with_one_end(json.dumps({name: one for name, one in line.items() if name not in TIMES}, sort_keys=True))
            for line in lines
            if line.get("code") != "CANCELLED" or not line["method"].startswith(LOGGED_IF_CANCELED)
        )

    def _spans(self) -> list[str]:
        return sorted(
            _with_one_end(
                f"{span.name} {span.status.status_code} {len(span.events)} "
                f"{sorted((name, value) for name, value in (span.attributes or {}).items() if 'seconds' not in name)}"
            )
            for span in self.spans.get_finished_spans()
        )

    async def _settled(self, calls: int) -> None:
        """Waits until the server has noticed the end of every stream that was canceled. It logs it before."""
        async with asyncio.timeout(SETTLED_SECONDS):
            while (  # noqa: ASYNC110 - the server sends no notification
                sum(span.name.startswith("rummikub") for span in self.spans.get_finished_spans()) < calls
            ):
                await asyncio.sleep(0.0005)


def _with_one_end(text: str) -> str:
    """Returns a text without whether a stream had sent its last update when its caller canceled it: that is a race."""
    return text.replace("CANCELLED", "OK")


def _as_bytes(value: object) -> bytes:
    return repr(value).encode()


OUTPUTS: Final = ("log", "traces", "presence", "metrics")
"""The outputs of a server besides its answers. Presence stands for what the server stores of it."""
LOGGED_IF_CANCELED: Final = "/rummikub.v1.ValidationService/"
"""Frequent calls are logged at info only if they fail, and whether a stream ends before it is canceled is a race."""
LOST: Final = b"lost"
"""The answer of a stream that the server refused while the caller still sent: grpcio may report an error of its own."""
OF_GRPCIO: Final = "Internal error from Core"


async def answer(channel: Any, ask: Ask, metadata: Metadata) -> bytes:  # noqa: ANN401 - a channel of bytes
    """Returns initial metadata, responses, status and trailing metadata of a call; LOST if it has none."""
    responses: list[bytes] = []
    call: Any
    try:
        if ask.updates is None:
            call = channel.unary_unary(ask.path)(ask.request, metadata=metadata, timeout=CALL_SECONDS)
            responses.append(await call)
        else:
            if ask.streams:
                call = channel.stream_stream(ask.path)(iter([ask.request]), metadata=metadata, timeout=CALL_SECONDS)
            else:
                call = channel.unary_stream(ask.path)(ask.request, metadata=metadata, timeout=CALL_SECONDS)
            while len(responses) < ask.updates and (update := await call.read()) is not grpc.aio.EOF:
                responses.append(update)
            initial = await call.initial_metadata()
            call.cancel()
            return _as_bytes((list(initial), responses))
    except grpc.aio.AioRpcError as error:
        if ask.streams and error.details() == OF_GRPCIO:
            return LOST
        status = (error.code().name, error.details(), list(error.trailing_metadata() or ()))
        return _as_bytes((list(error.initial_metadata() or ()), responses, status))
    return _as_bytes((list(await call.initial_metadata()), responses, "OK", list(await call.trailing_metadata())))


@contextmanager
def logging_to(log: io.BytesIO) -> Iterator[None]:
    """Writes the log as a server does, at info, into memory."""
    before = structlog.get_config()
    log_to_stderr("info", None)
    structlog.configure(
        **{
            **structlog.get_config(),
            "logger_factory": structlog.BytesLoggerFactory(log),
            "cache_logger_on_first_use": False,
        }
    )
    try:
        yield
    finally:
        structlog.configure(**before)


def tracing_to(spans: InMemorySpanExporter) -> OpenTelemetryTracing:
    """Returns tracing that keeps its spans in memory."""
    with (
        patch.object(opentelemetry_tracing, "OTLPSpanExporter", lambda: spans),
        patch.object(opentelemetry_tracing, "BatchSpanProcessor", SimpleSpanProcessor),
    ):
        return OpenTelemetryTracing(None, "memory")


@asynccontextmanager
async def staged(**changes: object) -> AsyncIterator[Stage]:
    """Runs a server whose callers have keys, with a log at info, metrics, and traces."""
    log, spans, chance, clock = io.BytesIO(), InMemorySpanExporter(), RestartedChance(), FakeClock()
    shelf = Shelf(clock, has_presence=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(logging_to(log))
        # all games have one id, and the clock stands still: a seat of one would use up the limit of the others
        stack.enter_context(patch("service.app.change_pace.SEAT_CHANGES", 10**9))
        token = folder / "token"
        token.write_text(OPERATOR_TOKEN)
        settings = server_settings(
            keys_file=keys_file(folder, **KEYS),
            admin_listen="127.0.0.1:0",
            admin_token_file=token,
            sweep_seconds=86_400.0,
            heartbeat_seconds=600.0,
            games_per_minute=0,
            join_guesses_per_minute=0,
            **changes,
        )
        tracing = tracing_to(spans)
        async with (
            running_server(
                shelf, settings, tracing=tracing, tuning=Tuning(refusals=UNPACED, intervals=RARE), chance=chance
            ) as (server, client),
            grpc.aio.insecure_channel(f"127.0.0.1:{server.admin_port}") as admin,
            relaying(server.port) as relay,
            relaying(server.admin_port) as admin_relay,
        ):
            server.presence.report_seconds = 0.0  # each call and each watch is reported, not one in some seconds
            yield Stage(server, shelf, clock, chance, client.channel, admin, log, spans, relay, admin_relay)
