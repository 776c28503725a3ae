"""A primary that Sentinels watch: which one the store uses, failovers, and settings that are refused."""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator

import grpc.aio
import pytest
from hiredis import Reader
from redis import exceptions
from redis.asyncio.connection import SSLConnection
from redis.asyncio.sentinel import MasterNotFoundError, SentinelManagedConnection
from structlog.testing import capture_logs

from load.drills.players import Players, game_servers
from service.admin_program import failover
from service.admin_program.command import AdminError
from service.errors import StoreUnavailable
from service.runtime.redis_url import Address, Sentinel, parse_redis_url
from service.storage.redis.deployment import GUARD, LAGGING, MAX_LAG, REFUSE_ALL, UNCHECKED_SENTINEL, UNGUARDED_SENTINEL
from service.storage.redis.sentinel import Primary, PrimaryPool
from service.storage.redis.store import client_of
from service.storage.timing import FAILOVERS
from support.harness import ROOT, error_info, redis_store, run_service, running_server
from tools.redis_servers import RedisServer, WatchedServers, wait_until, watched_servers

pytestmark = pytest.mark.slow

OLD, NEW = Address("127.0.0.1", 1), Address("127.0.0.1", 2)
NAME = "games"


# Sentinels that say what a test wants


class FakeSentinel:
    """A Sentinel that names an address and publishes what it is told to."""

    def __init__(self) -> None:
        self.named, self.epoch, self.flags = OLD, 0, "master"
        self.is_silent = False
        self.switch_when_asked: Callable[[], object] = lambda: None
        self._writers: list[asyncio.StreamWriter] = []
        self._subscribers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None
        self.address = OLD

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = Address(*self._server.sockets[0].getsockname()[:2])

    async def close(self) -> None:
        assert self._server
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    @property
    def is_heard(self) -> bool:
        return self.times_heard > 0

    @property
    def times_heard(self) -> int:
        return len(self._subscribers)

    def publish(self, channel: str, text: str) -> None:
        for writer in self._subscribers:
            writer.write(b">4\r\n" + b"".join(map(_bulk, ("pmessage", channel, channel, text))))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        commands = Reader()
        while data := await reader.read(65_536):
            commands.feed(data)
            while (command := commands.gets()) is not False:
                if not self.is_silent:
                    self._reply([word.decode() for word in command], writer)

    def _reply(self, command: list[str], writer: asyncio.StreamWriter) -> None:
        match command:
            case ["HELLO", *_]:
                writer.write(b"%1\r\n$5\r\nproto\r\n:3\r\n")
            case ["SENTINEL", "MASTER", _]:
                host, port = map(str, OLD)
                fields = ("ip", host, "port", port, "flags", self.flags, "config-epoch", str(self.epoch))
                writer.write(f"%{len(fields) // 2}\r\n".encode() + b"".join(map(_bulk, fields)))
            case ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", _]:
                self.switch_when_asked()
                writer.write(b"*2\r\n" + _bulk(self.named.host) + _bulk(str(self.named.port)))
            case ["PSUBSCRIBE", *channels]:
                for number, channel in enumerate(channels, 1):
                    writer.write(b">3\r\n" + _bulk("psubscribe") + _bulk(channel) + f":{number}\r\n".encode())
                self._subscribers.append(writer)
            case _:
                writer.write(b"+OK\r\n")


def _bulk(text: str) -> bytes:
    return f"${len(text)}\r\n{text}\r\n".encode()


class Watched:
    """A Primary with Sentinels, and how often it was left and counted."""

    def __init__(self, sentinels: list[FakeSentinel]) -> None:
        self.sentinels = sentinels
        addresses = tuple(sentinel.address for sentinel in sentinels)
        self.primary = Primary(Sentinel("", addresses, NAME, {}, {}), {"socket_timeout": 1.0})
        self.left = self.counted = 0
        self.primary.leave, self.primary.count = self._leave, self._count

    def _leave(self) -> None:
        self.left += 1

    def _count(self) -> None:
        self.counted += 1

    async def named(self) -> Address:
        return await self.primary.discover_master(NAME)

    async def started(self) -> None:
        assert await self.named() == OLD
        await eventually(lambda: all(sentinel.is_heard for sentinel in self.sentinels))


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    sentinels = [FakeSentinel() for _ in range(3)]
    for sentinel in sentinels:
        await sentinel.start()
    one = Watched(sentinels)
    yield one
    await one.primary.close()
    for sentinel in sentinels:
        await sentinel.close()


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a Sentinel's message has no other sign
            await asyncio.sleep(0.005)


async def test_the_newest_answer_counts_and_older_ones_do_not_bring_the_old_primary_back(watched: Watched) -> None:
    await watched.started()
    newer = watched.sentinels[2]
    newer.named, newer.epoch = NEW, 1
    newer.publish("+switch-master", f"{NAME} 127.0.0.1 1 127.0.0.1 2")
    await eventually(lambda: watched.left == 1)
    assert watched.counted == 1
    newer.is_silent = True
    assert await watched.named() == NEW, "two older answers, and none of the newer Sentinel"
    assert (watched.left, watched.counted) == (1, 1)


async def test_all_sentinels_together_may_go_back(watched: Watched) -> None:
    """All of them were set up anew."""
    for sentinel in watched.sentinels:
        sentinel.epoch = 5
    await watched.started()
    for sentinel in watched.sentinels:
        sentinel.named, sentinel.epoch = NEW, 0
    assert await watched.named() == NEW
    assert watched.left == 1


async def test_one_address_of_several_sentinels_does_not_bring_the_old_primary_back() -> None:
    """Each connection to a name in DNS may lead to another Sentinel."""
    sentinel = FakeSentinel()
    await sentinel.start()
    one = Watched([sentinel])
    sentinel.named, sentinel.epoch = NEW, 1
    assert await one.named() == NEW
    sentinel.named, sentinel.epoch = OLD, 0
    assert await one.named() == NEW
    assert one.left == 0
    await one.primary.close()
    await sentinel.close()


async def test_a_primary_is_left_when_a_failover_begins_and_used_again_if_it_is_given_up(watched: Watched) -> None:
    await watched.started()
    one = watched.sentinels[1]
    one.publish("+try-failover", f"master {NAME} 127.0.0.1 1")
    await eventually(lambda: watched.left == 1)
    with pytest.raises(MasterNotFoundError, match="a failover is in progress"):
        await watched.named()
    assert not watched.primary.is_current(OLD)
    one.publish("-failover-abort-no-good-slave", f"master {NAME} 127.0.0.1 1")
    await eventually(lambda: watched.primary.is_current(OLD))
    assert await watched.named() == OLD
    assert (watched.left, watched.counted) == (1, 0)


async def test_a_primary_is_used_again_if_nothing_is_heard_of_a_failover(watched: Watched) -> None:
    watched.primary.hold_seconds = 0.1
    await watched.started()
    watched.sentinels[0].publish("+try-failover", f"master {NAME} 127.0.0.1 1")
    await eventually(lambda: watched.left == 1)
    await eventually(lambda: watched.primary.is_current(OLD))


async def test_a_new_primary_is_used_as_soon_as_one_sentinel_names_it(watched: Watched) -> None:
    await watched.started()
    leader = watched.sentinels[2]
    leader.publish("+try-failover", f"master {NAME} 127.0.0.1 1")
    await eventually(lambda: watched.left == 1)
    leader.named, leader.epoch, leader.flags = NEW, 1, "master,s_down,failover_in_progress"
    assert await watched.named() == NEW
    assert watched.primary.is_current(NEW)


async def test_an_address_has_the_epoch_of_its_own_failover(watched: Watched) -> None:
    """A Sentinel that switches between two questions does not give the new address the old epoch."""
    await watched.started()
    switching = watched.sentinels[1]

    def switch() -> None:
        switching.named, switching.epoch = NEW, 1

    switching.switch_when_asked = switch
    switching.publish("+switch-master", f"{NAME} 127.0.0.1 1 127.0.0.1 2")
    await eventually(lambda: watched.counted == 1)
    switching.is_silent = True
    assert await watched.named() == NEW


async def test_events_of_another_primary_are_ignored(watched: Watched) -> None:
    await watched.started()
    one = watched.sentinels[0]
    one.publish("+try-failover", "master other 127.0.0.1 1")
    one.publish("+switch-master", "other 127.0.0.1 1 127.0.0.1 2")
    one.publish("+try-failover", f"master {NAME} 127.0.0.1 1")
    await eventually(lambda: watched.left > 0)
    assert watched.left == 1


async def test_a_switch_that_was_published_while_a_sentinel_was_not_heard_is_followed(watched: Watched) -> None:
    watched.primary.ping_seconds = 0.05
    watched.primary.retry_seconds = 0.05
    await watched.started()
    one = watched.sentinels[0]
    one.is_silent = True
    with capture_logs() as logs:
        await eventually(lambda: any(log.get("result") == "Sentinel not heard" for log in logs))
    one.named, one.epoch, one.is_silent = NEW, 1, False
    await eventually(lambda: watched.left == 1)


async def test_a_sentinel_is_heard_again_after_a_message_that_cannot_be_read(watched: Watched) -> None:
    watched.primary.retry_seconds = 0.05
    await watched.started()
    one = watched.sentinels[0]
    with capture_logs() as logs:
        one.publish("+try-failover", "")
        await eventually(lambda: one.times_heard == 2)
    assert [log["error"] for log in logs] == ["IndexError: list index out of range"]
    one.publish("+try-failover", f"master {NAME} 127.0.0.1 1")
    await eventually(lambda: watched.left == 1)


async def test_sentinels_that_are_away_do_not_matter_while_one_answers(watched: Watched) -> None:
    await watched.sentinels[0].close()
    watched.sentinels[1].is_silent = True
    assert await watched.named() == OLD


async def test_a_primary_that_is_down_for_its_sentinels_is_not_named(watched: Watched) -> None:
    for sentinel in watched.sentinels:
        sentinel.flags = "master,s_down"
    with pytest.raises(exceptions.ConnectionError, match="the primary does not answer the Sentinel"):
        await watched.named()


async def test_a_connection_that_was_opened_to_the_old_primary_meanwhile_is_not_used(watched: Watched) -> None:
    await watched.started()
    pool = PrimaryPool(watched.primary, Sentinel("", (), NAME, {}, {}), {})
    redis = watched.sentinels[0]  # it accepts connections too
    connection = pool.make_connection()  # type: ignore[no-untyped-call]
    with pytest.raises(exceptions.ConnectionError, match="the primary has changed"):
        await connection.connect_to(redis.address)
    assert not connection.is_connected
    watched.sentinels[2].named, watched.sentinels[2].epoch = redis.address, 1
    watched.sentinels[2].publish("+switch-master", f"{NAME} 127.0.0.1 1 127.0.0.1 2")
    await eventually(lambda: watched.primary.is_current(redis.address))
    await connection.connect()
    assert connection.is_connected
    await connection.disconnect()


def test_a_secure_url_makes_secure_connections() -> None:
    url = parse_redis_url("rediss+sentinel://one/games?ssl_cert_reqs=none")
    assert isinstance(url, Sentinel)
    connection = client_of(url).connection_pool.make_connection()  # type: ignore[no-untyped-call]
    assert isinstance(connection, SSLConnection)
    assert isinstance(connection, SentinelManagedConnection)


# Real servers


@pytest.fixture(scope="module")
def group() -> Iterator[WatchedServers]:
    with watched_servers("--min-replicas-to-write", "1") as servers:
        yield servers


def guards(group: WatchedServers, *servers: RedisServer) -> list[object]:
    return [server.execute("CONFIG", "GET", GUARD)[GUARD.encode()] for server in servers or group.servers]


@contextlib.contextmanager
def setting(server: RedisServer, name: str, value: int, after: int) -> Iterator[None]:
    """Sets an option of a server within the context."""
    server.execute("CONFIG", "SET", name, value)
    yield
    server.execute("CONFIG", "SET", name, after)


@pytest.mark.parametrize(("name", "after"), [(GUARD, 1), (MAX_LAG, 10)])
def test_a_server_does_not_start_if_a_failover_could_lose_turns(group: WatchedServers, name: str, after: int) -> None:
    with setting(group.primary, name, 0, after):
        refused = run_service(RUMMIKUB_REDIS_URL=group.url)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"rummikub-server: RUMMIKUB_REDIS_URL: {UNGUARDED_SENTINEL}\n"


async def test_a_setting_that_cannot_be_checked_causes_a_warning(group: WatchedServers) -> None:
    primary = group.primary
    primary.execute("ACL", "SETUSER", "default", "-config")
    with capture_logs() as logs:
        store = redis_store(group.url)
        await store.ping()
        await store.close()
    primary.execute("ACL", "SETUSER", "default", "+config")
    assert [log["problem"] for log in logs if "problem" in log] == [UNCHECKED_SENTINEL]


async def test_a_primary_that_takes_its_replicas_for_present_too_long_causes_a_warning(group: WatchedServers) -> None:
    store = redis_store(group.url)
    with setting(group.primary, MAX_LAG, 11, 10), capture_logs() as logs:
        await store.ping()
    await store.close()
    assert [log["problem"] for log in logs if "problem" in log] == [LAGGING]


async def test_a_name_that_no_sentinel_knows_is_reported(group: WatchedServers) -> None:
    store = redis_store(group.url.replace(NAME, "unknown"))
    with pytest.raises(StoreUnavailable, match="No such master with that name"):
        await store.ping()
    await store.close()


async def fail_over(url: str, *arguments: str) -> None:
    """Runs rummikub-admin failover in this process."""
    parser = argparse.ArgumentParser()
    failover.add_arguments(parser)
    assert await failover.run(parser.parse_args([url, *arguments])) == 0


async def test_a_dry_run_of_a_failover_changes_nothing(
    group: WatchedServers, capfd: pytest.CaptureFixture[str]
) -> None:
    primary = group.primary
    await fail_over(group.url, "--dry-run")
    assert "nothing was changed" in capfd.readouterr().out
    assert group.primary is primary
    assert set(guards(group)) == {b"1"}


async def test_a_primary_that_cannot_refuse_writes_is_not_failed_over(group: WatchedServers) -> None:
    with setting(group.primary, MAX_LAG, 0, 10), pytest.raises(AdminError, match=f"{MAX_LAG} of .* is 0"):
        await fail_over(group.url)


def temporary_settings(group: WatchedServers) -> list[object]:
    """Returns the settings of each server that a failover changes for a while."""
    names = (GUARD, failover.PRIORITY, failover.SYNC_DELAY)
    return [{name: server.execute("CONFIG", "GET", name) for name in names} for server in group.servers]


def primaries(group: WatchedServers) -> list[object]:
    """Returns the port of each server's primary; None for the primary itself."""
    return [server.replication().get("master_port") for server in group.servers]


@pytest.mark.parametrize("step", ["_wait_for_replicas", "_wait_for_sentinel", "_order"])
async def test_an_ordered_failover_is_undone_if_a_step_takes_too_long(
    group: WatchedServers, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    before, primary = (temporary_settings(group), primaries(group)), group.primary
    monkeypatch.setattr(failover.Failover, "_wait_for_sentinel", lambda *_: asyncio.sleep(0))
    monkeypatch.setattr(failover.Failover, step, lambda *_: asyncio.sleep(60))
    with pytest.raises(AdminError, match="is still the primary"):
        await fail_over(group.url, "--seconds", "1")
    assert (temporary_settings(group), primaries(group)) == before
    assert group.primary is primary
    group.wait_until_whole()


async def test_a_failover_without_an_answer_of_the_replicas_changes_nothing(group: WatchedServers) -> None:
    before, replicas = (temporary_settings(group), primaries(group)), group.replicas
    for replica in replicas:
        replica.pause()
    try:
        with pytest.raises(AdminError, match="is still the primary"):
            await fail_over(group.url, "--seconds", "0.2")
    finally:
        for replica in replicas:
            replica.resume()
    assert (temporary_settings(group), primaries(group)) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_an_interrupted_failover_is_undone(group: WatchedServers, number: signal.Signals) -> None:
    before, primary = (temporary_settings(group), primaries(group)), group.primary
    program = (
        "import asyncio, signal; from service.admin_program import failover\n"
        "from service.admin_program.program import main\n"
        f"is_ignored = signal.getsignal({number:d}) is signal.SIG_IGN  # as nohup sets it\n"
        f"is_ignored and signal.signal({number:d}, signal.SIG_DFL)\n"
        "failover.Failover._wait_for_sentinel = lambda *_: asyncio.sleep(0)\n"
        "failover.Failover._wait_for_replicas = lambda *_: asyncio.sleep(60)\n"
        "main()"
    )
    command = (sys.executable, "-c", program, "failover", group.url)
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stderr=asyncio.subprocess.PIPE)
    wait_until(lambda: str(REFUSE_ALL).encode() in guards(group, primary), "the primary refuses writes")
    process.send_signal(number)
    _, problem = await process.communicate()
    assert b"interrupted" in problem
    assert b"is still the primary" in problem
    assert (temporary_settings(group), primaries(group)) == before
    group.wait_until_whole()


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("redis+sentinel://127.0.0.1", "the URL is not valid: expected redis[+]sentinel://"),
        ("redis://127.0.0.1", "the URL is not of Sentinels"),
        ("redis+sentinel://127.0.0.1:1/games", "Sentinel 127.0.0.1:1 cannot take part"),
    ],
)
async def test_a_failover_names_what_is_wrong_with_its_url(url: str, problem: str) -> None:
    with pytest.raises(AdminError, match=problem):
        await fail_over(url)


async def test_an_ordered_failover_loses_and_doubles_no_turn(group: WatchedServers) -> None:
    old = group.primary
    async with game_servers(group.url) as servers, Players([servers[0].target], 4) as players:
        await players.has_taken(50)
        await fail_over(group.url)
        await players.has_taken(50)
        report = await players.stop()
    assert report.is_clean
    assert group.primary is not old
    assert set(guards(group)) == {b"1"}
    group.wait_until_whole()


async def test_the_new_primary_has_a_replica_that_need_not_copy_it_from_the_start(group: WatchedServers) -> None:
    """A primary that refuses writes goes on to publish. A replica that has got more of it than the new one is ahead."""
    old, settings = group.primary, temporary_settings(group)
    copied = {server.port: server.execute("INFO", "stats")["sync_full"] for server in group.servers}
    is_done = asyncio.Event()

    async def publish() -> None:
        with old.client() as client:
            while not is_done.is_set():
                client.publish("anything", "")
                await asyncio.sleep(0.005)

    publishing = asyncio.create_task(publish())
    await fail_over(group.url)
    is_done.set()
    await publishing
    group.wait_until_whole()
    new = group.primary
    assert new is not old
    assert new.execute("INFO", "stats")["sync_full"] - copied[new.port] <= 1, "the old primary alone copies all"
    assert temporary_settings(group) == settings


async def test_a_failover_by_a_user_who_may_not_prepare_it_is_done_without_it(
    group: WatchedServers, capfd: pytest.CaptureFixture[str]
) -> None:
    old = group.primary
    for server in group.servers:
        server.execute("ACL", "SETUSER", "default", "-replicaof")
    try:
        await fail_over(group.url)
    finally:
        for server in group.servers:
            server.execute("ACL", "SETUSER", "default", "+replicaof")
    assert group.primary is not old
    assert "later, by its Sentinels" in capfd.readouterr().out
    group.wait_until_whole()


def has_all(replica: RedisServer, primary: RedisServer) -> bool:
    sent, taken = primary.replication()["master_repl_offset"], replica.replication()["slave_repl_offset"]
    return bool(sent == taken)


async def test_a_crash_of_the_primary_loses_no_turn_and_is_counted(group: WatchedServers) -> None:
    store = redis_store(group.url)
    reports: list[tuple[str, int]] = []
    async with running_server(store) as (_, client):
        store.reports.event = lambda event, count: reports.append((event, count))
        game = await client.new_game()
        await game.draw()
        seen = await game.see()
        old = group.primary
        wait_until(lambda: all(has_all(replica, old) for replica in group.replicas), "the replicas have the turn")
        old.kill()
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await game.draw()
        assert error_info(refusal.value).reason == "STORE_UNAVAILABLE"
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    assert (await game.see()).etag == seen.etag
                    await game.draw()
                    break
        assert (await game.see()).revision == seen.revision + 1
    assert reports == [(FAILOVERS, 1)]
    await store.close()
