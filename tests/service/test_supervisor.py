"""Several workers under one command: shared addresses, merged metrics, joint shutdown."""

import asyncio
import fcntl
import json
import os
import random
import signal
import socket
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from engine.notation import parse_tiles
from rummikub.v1 import analysis_service_pb2, game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import validation_service_pb2 as vs
from service.metrics.metrics import MergedMetrics, Metrics, metrics_registry
from service.metrics.shared_counters import ROWS, SharedCounters, counter_file
from service.program import grace_seconds
from service.runtime.addresses import AddressInUseError, reserve_address
from service.runtime.keys import HEADER
from service.supervisor import Supervisor, SupervisorError, share
from support.grpc_play import Fleet, history, lost_or_doubled, play_game
from support.harness import ROOT, Client, as_tiles, keys_file, server_settings

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="workers need Linux"),
    pytest.mark.slow,
]

T = TypeVar("T")

VALIDATE = "/rummikub.v1.ValidationService/ValidateTurn"
LIST_RULESETS = "/rummikub.v1.ValidationService/ListRulesets"
CONNECTIONS = 8
"""The number of connections to open at once; the system assigns each to a random worker."""


class Command:
    """A running `rummikub-server --workers 2`, with its output."""

    def __init__(self, folder: Path, **variables: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("RUMMIKUB_")}
        self._environment = {
            **clean,
            "RUMMIKUB_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_DATA_DIR": str(folder / "data"),
            "RUMMIKUB_LOG_LEVEL": "debug",  # successful validation calls are logged at debug, with the worker
            **variables,
        }
        self._log = folder / "log"
        self.greeting = ""

    async def start(self) -> None:
        """Starts the command and reads its greeting, if there is one."""
        with self._log.open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "service", "--workers", "2"),
                cwd=ROOT,
                env=self._environment,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # its own process group, so that a test can send SIGINT as Ctrl-C does
            )
        assert self.process.stdout
        async with asyncio.timeout(60):
            async for line in self.process.stdout:
                self.greeting += line.decode()
                if line.startswith(b"Stop with"):
                    return

    def greeted(self, name: str) -> str:
        """Returns a value in the greeting."""
        return next(rest for line in self.greeting.splitlines() if (rest := line.strip()).startswith(name)).split()[-1]

    def log(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]

    def files(self) -> list[str]:
        """Returns the names of the files in its folder."""
        return [file.name for file in self._log.parent.iterdir()]

    def errors(self) -> str:
        return "\n".join(line for line in self._log.read_text().splitlines() if line.startswith("rummikub-server"))

    def descendants(self) -> set[int]:
        """Returns the process ids of the command and all its descendants."""
        found = {self.process.pid}
        while more := {pid for pid, parent in parents().items() if parent in found} - found:
            found |= more
        return found

    def workers(self) -> set[int]:
        """Returns the process ids of the workers."""
        return {pid for pid in self.descendants() if b"\0--as-worker\0" in command_line(pid)}

    async def metric(self, name: str, **labels: str) -> float:
        """Returns the sum of the matching samples; 0 without any."""
        text = await asyncio.to_thread(self._metrics)
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return sum(
            sample.value for sample in samples if sample.name == name and labels.items() <= sample.labels.items()
        )

    def _metrics(self) -> str:
        with urllib.request.urlopen(self.greeted("metrics"), timeout=10) as answer:  # noqa: S310 - http, our own
            text: str = answer.read().decode()
            return text

    async def client(self, stack: AsyncExitStack) -> Client:
        """Returns a client with its own connection."""
        options = [("grpc.use_local_subchannel_pool", 1)]
        return Client(await stack.enter_async_context(grpc.aio.insecure_channel(self.greeted("gRPC"), options)))

    async def clients(self, stack: AsyncExitStack) -> list[Client]:
        """Returns clients with their own connections, at least one to each worker."""
        clients: list[Client] = []
        before = self.calls_by_worker(VALIDATE)
        while set(self.calls_by_worker(VALIDATE) - before) != {1, 2}:
            new = [await self.client(stack) for _ in range(CONNECTIONS)]
            await asyncio.gather(
                *(client.validation.ValidateTurn(vs.ValidateTurnRequest(has_melded=False)) for client in new)
            )
            clients += new
        return clients

    def calls_by_worker(self, method: str) -> Counter[object]:
        """Returns the number of logged calls by worker."""
        return Counter(entry["worker"] for entry in self.log() if entry.get("method") == method)

    async def validations(self) -> float:
        """Returns the number of ValidateTurn calls in the metrics."""
        return await self.metric("rummikub_calls_total", method=VALIDATE, code="OK")

    async def ended(self) -> int:
        """Waits for the command to exit; returns its exit code."""
        return await asyncio.wait_for(self.process.wait(), 60)


@asynccontextmanager
async def command(folder: Path, **variables: str) -> AsyncIterator[Command]:
    """Runs a command within the context."""
    started = Command(folder, **variables)
    await started.start()
    try:
        yield started
    finally:
        if started.process.returncode is None:
            started.process.terminate()
        await started.ended()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Command]:
    """A command that several tests share."""
    async with command(tmp_path_factory.mktemp("served")) as started:
        yield started


def parents() -> dict[int, int]:
    """Returns the parent process id of each process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # the process has ended
            continue
    return found


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # the process has ended
        return b""


def alive(processes: set[int]) -> set[int]:
    """Returns the running processes; zombies have an empty command line."""
    return {pid for pid in processes if command_line(pid)}


async def until(condition: Callable[[], T]) -> T:
    """Waits for a condition; returns its first true value."""
    async with asyncio.timeout(40):
        while not (value := condition()):  # noqa: ASYNC110 - other processes change it
            await asyncio.sleep(0.02)
        return value


# Serving


@pytest.mark.asyncio(loop_scope="module")
async def test_workers_share_an_address_and_their_metrics_are_merged(served: Command) -> None:
    assert served.greeted("workers") == "2"
    assert len(served.workers()) == 2
    before = await served.validations()
    async with AsyncExitStack() as stack:
        calls = len(await served.clients(stack))
    assert await served.validations() - before == calls
    assert await served.metric("rummikub_call_seconds_count", method=VALIDATE) == before + calls
    assert await served.metric("rummikub_store_up") == 1


@pytest.mark.asyncio(loop_scope="module")
async def test_a_killed_worker_is_restarted_and_its_counts_remain(served: Command) -> None:
    async with AsyncExitStack() as stack:
        await served.clients(stack)
    before = await served.validations()
    killed = min(served.workers())
    os.kill(killed, signal.SIGKILL)
    await until(lambda: killed not in served.workers() and len(served.workers()) == 2)
    [entry] = [entry for entry in served.log() if entry["event"] == "worker has ended by itself"]
    assert entry["ending"] == "exit code -9"
    assert await served.validations() == before
    async with AsyncExitStack() as stack:
        calls = len(await served.clients(stack))
    async with asyncio.timeout(40):
        while await served.validations() != before + calls:  # noqa: ASYNC110 - a worker may reply before the supervisor has registered it
            await asyncio.sleep(0.02)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_game_is_played_through_all_workers(served: Command) -> None:
    async with AsyncExitStack() as stack:
        clients = await served.clients(stack)
        game = await clients[0].new_game()
        fleet = Fleet(clients, random.Random(1))
        played = await play_game(fleet, game, random.Random(1))
        assert played.final.state == game_pb2.GAME_STATE_FINISHED
        assert not lost_or_doubled(played, await history(clients[0], game))
        assert fleet.resent == 0
    assert set(served.calls_by_worker("/rummikub.v1.TurnService/PlayTurn")) == {1, 2}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_second_command_at_the_address_fails_without_side_effects(served: Command, tmp_path: Path) -> None:
    other = Command(tmp_path, RUMMIKUB_LISTEN=served.greeted("gRPC"))
    await other.start()
    assert await other.ended() == 1
    problem = f"RUMMIKUB_LISTEN={served.greeted('gRPC')}: cannot listen there (Address already in use): "
    assert other.errors().startswith(f"rummikub-server: {problem}set it to a free address")
    assert other.greeting == ""
    assert other.files() == ["log"]


# Addresses


@pytest.mark.parametrize("shares", [False, True], ids=["alone", "with those who share"])
def test_an_address_in_use_cannot_be_reserved(*, shares: bool) -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=shares) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(AddressInUseError, match=f"^THE_VARIABLE={address}: cannot listen there"):
            reserve(address)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:0", "0.0.0.0:0"])
def test_a_reserved_address_accepts_only_listeners_with_reuse_port(address: str) -> None:
    with reserve_address("THE_VARIABLE", address) as found:
        host, _, port = found.rpartition(":")
        assert host == address.rpartition(":")[0]
        with pytest.raises(AddressInUseError):
            reserve(found)
        with pytest.raises(OSError, match="in use"):
            socket.create_server((host, int(port)))
        for _ in range(2):
            with socket.create_server((host, int(port)), reuse_port=True), pytest.raises(AddressInUseError):
                reserve(found)
    reserve(found)


def reserve(address: str) -> None:
    """Reserves an address and releases it."""
    with reserve_address("THE_VARIABLE", address):
        pass


def test_the_address_of_another_host_cannot_be_reserved() -> None:
    for address in ("192.0.2.1:0", "192.0.2.1:50051", "no.such.host.invalid:50051", "..:50051"):
        with pytest.raises(AddressInUseError):
            reserve(address)


# Shutdown

HARD = (
    "R1 R2 R3 R4 R4 R5 R5 R6 R6 R7 R7 R8 R9 R11 R12 R12 R13 R13 B1 B2 B3 B3 B4 B5 B5 B6 B6 B7 B7 B8 B8 B10 B10 B11 B13 "
    "B13 K1 K2 K2 K3 K4 K5 K6 K6 K7 K7 K8 K9 K9 O1 O2 O3 O4 O5 O6 O7 O9 O10 O10 O12 O13 O13 J J"
)
"""A rack whose best initial meld takes longer to find than the time limit."""


def is_free(data: Path) -> bool:
    """Returns whether no store has locked a folder."""
    with (data / "lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


async def last_update(watch: AsyncIterator[gs.WatchGameResponse]) -> str:
    """Reads a stream to its end; returns the kind of its last update."""
    updates = [update async for update in watch]
    return str(updates[-1].WhichOneof("update"))


async def test_stopping_workers_end_streams_finish_calls_and_leave_no_process(
    tmp_path: Path,
) -> None:
    async with command(tmp_path) as served, AsyncExitStack() as stack:
        clients = await served.clients(stack)
        game = await clients[0].new_game()
        watches = [aiter(client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id))) for client in clients]
        for watch in watches:
            assert (await anext(watch)).HasField("snapshot")
        position = analysis_service_pb2.Position(rack=as_tiles(parse_tiles(HARD)), has_melded=False)
        request = analysis_service_pb2.SuggestTurnRequest(
            position=position, time_limit=Duration(seconds=1, nanos=500_000_000)
        )
        searching = asyncio.ensure_future(clients[0].analysis.SuggestTurn(request))
        async with asyncio.timeout(10):
            while not await served.metric("rummikub_analysis_calls"):
                assert not searching.done()
        processes = served.descendants()
        assert len(processes) >= 4

        os.killpg(served.process.pid, signal.SIGINT)  # like Ctrl-C
        served.process.terminate()
        assert {await last_update(watch) for watch in watches} == {"closing"}
        assert (await searching).HasField("suggestion")
        assert await served.ended() == 0
        assert not alive(processes)
        assert is_free(tmp_path / "data")
        assert {entry["event"] for entry in served.log()} == {"call", "stopping"}


async def test_workers_serve_as_lame_ducks_until_a_second_signal(tmp_path: Path) -> None:
    async with command(tmp_path, RUMMIKUB_LAME_DUCK_SECONDS="600") as served, AsyncExitStack() as stack:
        clients = await served.clients(stack)
        served.process.terminate()
        for client in clients:
            watch = health_pb2_grpc.HealthStub(client.channel).Watch(health_pb2.HealthCheckRequest())
            async with asyncio.timeout(20):
                async for update in watch:
                    if update.status == health_pb2.HealthCheckResponse.NOT_SERVING:
                        break
            watch.cancel()
        await asyncio.gather(*(client.new_game() for client in clients))
        await served.clients(stack)  # new connections
        served.process.terminate()
        assert await served.ended() == 0


async def test_workers_and_store_end_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    async with command(tmp_path) as served:
        processes = served.descendants()
        assert len(processes) == 4
        served.process.kill()
        await until(lambda: not alive(processes))
        assert is_free(tmp_path / "data")


async def test_workers_end_with_an_error_when_the_store_dies(tmp_path: Path) -> None:
    async with command(tmp_path) as served:
        processes = served.descendants()
        [store] = processes - served.workers() - {served.process.pid}
        os.kill(store, signal.SIGKILL)
        assert await served.ended() == 1
        assert "the embedded store has ended by itself" in served.errors()
        assert not alive(processes)


# Supervision


def scripted(script: str) -> tuple[str, ...]:
    """Returns a worker command that runs a script; `channel` is its socket to the supervisor."""
    prelude = "import signal, socket, sys, time; channel = socket.socket(fileno=int(sys.argv[3])); "
    return (sys.executable, "-c", prelude + script)


async def test_the_supervisor_gives_up_after_repeated_failed_starts() -> None:
    supervisor = Supervisor([{}], 10, scripted("sys.exit(3)"))
    supervisor.first_pause_seconds = 0.001
    supervisor.start()
    assert isinstance(await asyncio.wait_for(supervisor.failed(), 20), SupervisorError)
    await supervisor.stop()


async def test_the_supervisor_does_not_give_up_on_settings_that_were_usable(
    tmp_path: Path,
) -> None:
    log = str(tmp_path / "starts")
    script = f"log = open({log!r}, 'a'); log.write('.'); log.close(); "
    script += f"len(open({log!r}).read()) < 8 and sys.exit(78); channel.send(b'1'); time.sleep(60)"
    supervisor = Supervisor([{}], 10, scripted(script))
    supervisor.first_pause_seconds = 0.001
    supervisor.start()
    await asyncio.wait_for(supervisor.serving(), 40)
    await supervisor.stop()
    assert (tmp_path / "starts").read_text() == "." * 8


async def test_a_keys_file_with_an_error_keeps_the_other_workers(tmp_path: Path) -> None:
    keys = keys_file(tmp_path, web="")
    async with command(tmp_path, RUMMIKUB_KEYS_FILE=str(keys)) as served:
        keys.write_text("typo =")
        os.kill(min(served.workers()), signal.SIGKILL)
        await until(lambda: any(line.get("ending") == "exit code 78" for line in served.log()))

        async def call() -> None:
            async with AsyncExitStack() as stack:
                client = await served.client(stack)
                await client.validation.ListRulesets(vs.ListRulesetsRequest(), metadata=((HEADER, "web"),))

        await call()
        keys_file(tmp_path, web="")
        before = served.calls_by_worker(LIST_RULESETS)
        async with asyncio.timeout(60):
            while len(served.calls_by_worker(LIST_RULESETS) - before) < 2:
                await call()
        failed_starts = [line["failed_starts"] for line in served.log() if "failed_starts" in line]
        assert max(map(int, map(str, failed_starts))) <= 1, "only the killed worker's"


async def test_the_supervisor_gives_up_on_a_missing_command() -> None:
    supervisor = Supervisor([{}], 10, ("/no/such/command",))
    supervisor.first_pause_seconds = 0.001
    supervisor.start()
    assert isinstance(await asyncio.wait_for(supervisor.failed(), 20), SupervisorError)
    await supervisor.stop()


async def test_a_worker_that_does_not_stop_is_killed() -> None:
    script = "signal.signal(signal.SIGTERM, signal.SIG_IGN); channel.send(b'1'); time.sleep(60)"
    supervisor = Supervisor([{}, {}], 0.05, scripted(script))
    supervisor.start()
    await asyncio.wait_for(supervisor.serving(), 20)
    await asyncio.wait_for(supervisor.stop(), 20)


def test_workers_are_not_killed_before_lame_duck_and_drain_are_over() -> None:
    assert grace_seconds(server_settings(lame_duck_seconds=600, drain_seconds=20)) > 620


async def test_stop_does_not_wait_for_workers_to_serve() -> None:
    supervisor = Supervisor([{}, {}], 20, scripted("time.sleep(60)"))
    supervisor.start()
    await asyncio.wait_for(supervisor.stop(), 10)


async def test_a_worker_s_settings_override_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("rummikub_listen", "there")
    monkeypatch.setenv("RUMMIKUB_HISTORY", "200")
    found = "sorted(pair for pair in os.environ.items() if pair[0].upper().startswith('RUMMIKUB'))"
    expected = [("RUMMIKUB_HISTORY", "200"), ("RUMMIKUB_LISTEN", "here")]
    supervisor = Supervisor(
        [{"listen": "here"}], 20, scripted(f"import os; {found} == {expected} and channel.send(b'1')")
    )
    supervisor.start()
    await asyncio.wait_for(supervisor.serving(), 20)
    await supervisor.stop()


@pytest.mark.parametrize(
    ("total", "workers", "shares"), [(2, 2, [1, 1]), (3, 2, [2, 1]), (2, 4, [1, 1, 1, 1]), (7, 3, [3, 2, 2])]
)
def test_each_worker_gets_a_share_of_at_least_one(total: int, workers: int, shares: list[int]) -> None:
    assert [share(total, workers, number) for number in range(1, workers + 1)] == shares


# Metrics


def test_concurrent_threads_lose_no_counts() -> None:
    metrics = Metrics()
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=count, args=(metrics, f"code {number % 2}")) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switching)
    for code in ("code 0", "code 1"):
        counted = metrics.registry.get_sample_value("rummikub_calls_total", {"method": "method", "code": code})
        assert counted == 10_000
    assert metrics.registry.get_sample_value("rummikub_call_seconds_sum", {"method": "method"}) == 20_000


def count(metrics: Metrics, code: str) -> None:
    for _ in range(5_000):
        metrics.call("method", code, 1.0)


def sample(merged: MergedMetrics, name: str, **labels: str) -> float | None:
    return metrics_registry(merged.read).get_sample_value(name, labels)


def test_the_metrics_of_several_processes_are_merged() -> None:
    merged = MergedMetrics()
    with counter_file() as file:
        counters = [SharedCounters(file.fileno()), SharedCounters()]
        one, other = Metrics(counters[0]), Metrics(counters[1], counts_store_events=False)
        merged.add(SharedCounters(file.fileno()))
    merged.add(counters[1])
    for metrics, seconds in ((one, 0.001), (other, 0.7), (other, 60.0)):
        metrics.call("method", "OK", seconds)
        metrics.store("load", "ok", seconds)
        metrics.analysis_worker_lost()
        metrics.refused("OVERLOADED", "calls")
        metrics.refused("STALE_STATE")
    other.games({"playing": 7})
    one.games({"playing": 5})
    one.store_up(is_up=True)
    one.analysis_calls(2)
    other.analysis_calls(3)
    one.load(4, 1, 2.5, 0.01)
    other.load(8, 2, 0.5, 0.25)
    for metrics in (one, other):
        metrics.store_event("failovers", 1)
        metrics.watch_delay(0.002)
        metrics.game_cache_lookup(is_hit=True)
    other.game_cache_lookup(is_hit=False)
    assert sample(merged, "rummikub_calls_total", method="method", code="OK") == 3
    assert sample(merged, "rummikub_call_seconds_sum", method="method") == pytest.approx(60.701)
    buckets = [
        sample(merged, "rummikub_call_seconds_bucket", method="method", le=bound)
        for bound in ("0.0005", "0.001", "0.5", "1.0", "2.5", "+Inf")
    ]
    assert buckets == [0, 1, 1, 2, 2, 3]
    assert sample(merged, "rummikub_store_seconds_count", operation="load", result="ok") == 3
    assert sample(merged, "rummikub_analysis_workers_lost_total") == 3
    assert sample(merged, "rummikub_refused_calls_total", reason="OVERLOADED", limit="calls") == 3
    assert sample(merged, "rummikub_refused_calls_total", reason="STALE_STATE", limit="") is None, "no limit refuses it"
    assert sample(merged, "rummikub_games", state="playing") == 5, "the newest count"
    assert sample(merged, "rummikub_analysis_calls") == 5
    assert sample(merged, "rummikub_event_loop_lag_seconds") == 0.25, "the longest"
    assert sample(merged, "rummikub_store_up") == 0, "only one worker reaches its store"
    assert sample(merged, "rummikub_calls_in_progress") == 12
    assert sample(merged, "rummikub_watchers") == 3
    assert sample(merged, "rummikub_sweep_lag_seconds") == 2.5, "the longest"
    assert sample(merged, "rummikub_store_failovers_total") == 1, "all workers see the same"
    other.store_up(is_up=True)
    assert sample(merged, "rummikub_store_up") == 1

    merged.retire(counters[1])
    assert sample(merged, "rummikub_calls_total", method="method", code="OK") == 3
    assert sample(merged, "rummikub_analysis_workers_lost_total") == 3
    assert sample(merged, "rummikub_refused_calls_total", reason="OVERLOADED", limit="calls") == 3
    assert sample(merged, "rummikub_analysis_calls") == 2, "ended processes have no open calls"
    assert sample(merged, "rummikub_calls_in_progress") == 4
    assert sample(merged, "rummikub_watch_delay_seconds_count") == 2, "counters of ended processes remain"
    assert sample(merged, "rummikub_game_cache_lookups_total", result="hit") == 2
    assert sample(merged, "rummikub_game_cache_lookups_total", result="miss") == 1


def test_full_counters_fail_no_call() -> None:
    counters = SharedCounters()
    for number in range(ROWS + 1):
        counters.observe(("call", str(number), "OK"), 1.0)
    counters.add(("call", "x" * 1000, "OK"), 1.0)
    assert len(counters.read()) == ROWS
