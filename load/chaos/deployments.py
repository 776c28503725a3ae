"""Servers on a store, and the faults that can be made to them: one Redis, a Redis Cluster, or the embedded store.

Each fault is a method that makes it, ends it, and waits until the deployment is whole again. It returns its target.
"""

import asyncio
import base64
import contextlib
import hashlib
import os
import random
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from load.drills.players import SETTINGS
from tools.redis_cluster import ClusterNode, RedisCluster, redis_cluster
from tools.redis_servers import RedisServer, wait_until
from tools.server_process import ServerProcess
from tools.servers import ROOT, ServerError
from tools.store_faults import FaultyMachine

DURABLE: Final = ("--appendfsync", "always", "--maxmemory-policy", "noeviction", "--enable-debug-command", "yes")
ADMIN_TOKEN: Final = "chaos-" + "0" * 32
API_KEY: Final = "chaos"
"""The key of all calls."""
TICKET_SECRET: Final = b"chaos" + b"0" * 32
"""The secret that signs join tickets."""
LOBBY_SECONDS: Final = 60
START_ATTEMPTS: Final = 5
MEMORY_MARGIN: Final = 65_536
"""How much a store with full memory may still take, in bytes."""
MOST_WRONG_MS: Final = 4_000
"""By how much the clock of a store is wrong at most."""

KEYS: Final = f"""
[keys.chaos]
sha256 = ["{hashlib.sha256(API_KEY.encode()).hexdigest()}"]
proxy = true
position_searches = true
ticket_keys = ["HS256:{base64.urlsafe_b64encode(TICKET_SECRET).rstrip(b"=").decode()}"]
"""
"""The keys file of the servers."""

FaultMethod = Callable[[random.Random], Awaitable[str]]
"""Makes a fault, ends it, and returns its target. The generator chooses target and duration."""
Lanes = Sequence[Mapping[str, FaultMethod]]
"""Faults by name: those of one lane are made one after the other, beside those of the other lanes."""


class Deployment:
    """Servers on a store.

    Args:
        folder: An empty folder for all files of the run.
        library: The library of FaultyMachine.
        checkout: The code that the servers run.
    """

    name = ""
    count = 2
    """The number of servers."""

    def __init__(self, folder: Path, library: Path, checkout: Path = ROOT) -> None:
        self.folder = folder
        self.library = library
        self.checkout = checkout
        self.servers: list[ServerProcess] = []
        token = folder / "token"
        token.write_text(ADMIN_TOKEN)
        keys = folder / "keys.toml"
        keys.write_text(KEYS)
        self._settings = {
            **SETTINGS,
            "RUMMIKUB_CHANGES_PER_SECOND": "0",
            "RUMMIKUB_CHANGE_LOG_SECONDS": "36000",
            "RUMMIKUB_ADMIN_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_ADMIN_TOKEN_FILE": str(token),
            "RUMMIKUB_KEYS_FILE": str(keys),
            "RUMMIKUB_ARCHIVE_URL": f"sqlite://{self.archive}",
            "RUMMIKUB_ARCHIVED_TTL_SECONDS": "36000",
            "RUMMIKUB_LOBBY_TTL_SECONDS": str(LOBBY_SECONDS),
            "RUMMIKUB_SWEEP_SECONDS": "0.3",
            "RUMMIKUB_ANALYSIS_WORKERS": "1",
        }

    @property
    def archive(self) -> Path:
        """The file of the archive."""
        return self.folder / "archive.sqlite"

    @property
    def lanes(self) -> Lanes:
        """The faults that it can have."""
        return [{"kill a server": self.kill_server, "stop a server": self.stop_server}]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Deployment"]:
        """Runs the store and the servers."""
        async with self.store() as settings:
            environment = {**self._settings, **settings}
            with (self.folder / "servers.log").open("ab") as log:
                self.servers = [
                    ServerProcess(environment, stderr=log.fileno(), checkout=self.checkout) for _ in range(self.count)
                ]
                try:
                    await asyncio.gather(*(server.start() for server in self.servers))
                    yield self
                finally:
                    for server in self.servers:
                        if server.is_running:
                            await server.kill()

    def store(self) -> contextlib.AbstractAsyncContextManager[Mapping[str, str]]:
        """Runs the store; yields the settings and variables of its servers."""
        raise NotImplementedError

    def machine(self, name: str) -> FaultyMachine:
        """Returns a new machine."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        return FaultyMachine(self.library, folder)

    async def revive(self) -> None:
        """Starts all servers that have ended."""
        for server in self.servers:
            for attempt in range(START_ATTEMPTS):
                if server.is_running:
                    break
                try:
                    await server.start_again()
                except ServerError:
                    if attempt == START_ATTEMPTS - 1:
                        raise
                    await asyncio.sleep(1)

    async def lasts(self, chance: random.Random, least: float = 0.3, most: float = 2.0) -> None:
        """Waits for as long as a fault lasts."""
        await asyncio.sleep(chance.uniform(least, most))

    async def kill_server(self, chance: random.Random) -> str:
        """Kills a server with SIGKILL, and starts it again."""
        server = chance.choice(self.servers)
        await server.kill()
        await self.lasts(chance, 0.0, 1.0)
        await self.revive()
        return server.target

    async def stop_server(self, chance: random.Random) -> str:
        """Suspends a server."""
        server = chance.choice(self.servers)
        os.kill(server.pid, signal.SIGSTOP)
        await self.lasts(chance)
        os.kill(server.pid, signal.SIGCONT)
        return server.target


class OneRedis(Deployment):
    """Two servers on one Redis that writes each change to disk before it replies."""

    name = "Redis"
    options: tuple[str, ...] = DURABLE

    @contextlib.asynccontextmanager
    async def store(self) -> AsyncIterator[Mapping[str, str]]:
        """Runs the Redis."""
        self._machine = self.machine("redis")
        with contextlib.closing(RedisServer(*self.options, environment=self._machine.environment)) as self._redis:
            await asyncio.to_thread(self._redis.start)
            yield {"RUMMIKUB_REDIS_URL": self._redis.url}

    @property
    def lanes(self) -> Lanes:
        """See Deployment."""
        store: Mapping[str, FaultMethod] = {
            "kill the store": self.kill_store,
            "stop the store": self.stop_store,
            "lose power": self.lose_power,
            "rewrite the file": self.rewrite,
            "fill the disk": self.fill_disk,
            "fill the memory": self.fill_memory,
            "demote": self.demote,
            "step the clock": self.step_clock,
        }
        return [*super().lanes, store]

    async def kill_store(self, chance: random.Random) -> str:
        """Kills the Redis with SIGKILL."""
        self._redis.kill()
        await self.lasts(chance, 0.0, 1.0)
        await asyncio.to_thread(self._redis.start)
        return "Redis"

    async def stop_store(self, chance: random.Random) -> str:
        """Suspends the Redis."""
        self._redis.pause()
        await self.lasts(chance)
        self._redis.resume()
        return "Redis"

    async def lose_power(self, _chance: random.Random) -> str:
        """Kills the Redis, and drops everything that it had not synced."""
        self._redis.kill()
        self._machine.lose_power(self._redis.folder)
        await asyncio.to_thread(self._redis.start)
        return "Redis"

    async def rewrite(self, chance: random.Random) -> str:
        """Rewrites the append-only file, and half of the time loses power meanwhile."""
        with contextlib.suppress(redis.RedisError):
            self._redis.execute("BGREWRITEAOF")
        await self.lasts(chance, 0.0, 0.3)
        if chance.random() < 0.5:
            await self.lose_power(chance)
        return "Redis"

    async def fill_disk(self, chance: random.Random) -> str:
        """Refuses writes to files; the Redis ends if it cannot sync, and is started when there is room."""
        self._machine.disk_is_full = True
        await self.lasts(chance, 0.5, 1.5)
        self._machine.disk_is_full = False
        if self._redis.has_ended:
            self._redis.kill()
            await asyncio.to_thread(self._redis.start)
        return "Redis"

    async def fill_memory(self, chance: random.Random) -> str:
        """Bounds the memory to little more than it takes."""
        await _bounded(self._redis.execute, self, chance)
        return "Redis"

    async def demote(self, chance: random.Random) -> str:
        """Makes the Redis a replica of a primary that is not there, and a primary again."""
        self._redis.execute("REPLICAOF", "127.0.0.1", 1)
        await self.lasts(chance)
        self._redis.execute("REPLICAOF", "NO", "ONE")
        return "Redis"

    async def step_clock(self, chance: random.Random) -> str:
        """Sets the clock of the Redis forward or back."""
        self._machine.clock_ms = chance.randint(-MOST_WRONG_MS, MOST_WRONG_MS)
        await self.lasts(chance)
        return f"Redis, {self._machine.clock_ms} ms"


class ForgetfulRedis(OneRedis):
    """Two servers on a Redis that syncs once a second: a loss of power may cost the last second, as the pages say."""

    name = "Redis, everysec"
    options = (*DURABLE, "--appendfsync", "everysec")


async def _bounded(execute: Callable[..., object], deployment: Deployment, chance: random.Random) -> None:
    """Bounds the memory of a store for a while."""
    info = execute("INFO", "memory")
    lines = info.decode().splitlines() if isinstance(info, bytes) else ()
    fields = info if isinstance(info, dict) else dict(line.split(":", 1) for line in lines if ":" in line)
    before = fields["maxmemory"]
    execute("CONFIG", "SET", "maxmemory", int(fields["used_memory"]) + MEMORY_MARGIN)
    await deployment.lasts(chance)
    execute("CONFIG", "SET", "maxmemory", int(before))


class Cluster(Deployment):
    """Two servers on a Redis Cluster of three primaries with a replica each, which must have each change (WAIT)."""

    name = "Redis Cluster"

    @contextlib.asynccontextmanager
    async def store(self) -> AsyncIterator[Mapping[str, str]]:
        """Runs the cluster."""
        self._machines: dict[ClusterNode, FaultyMachine] = {}

        def environment(node: ClusterNode) -> Mapping[str, str]:
            self._machines[node] = self.machine(f"node-{len(self._machines)}")
            return self._machines[node].environment

        options = (*DURABLE, "--cluster-require-full-coverage", "no")
        running = redis_cluster(*options, replicas=1, environment=environment)
        self._cluster: RedisCluster = await asyncio.to_thread(running.__enter__)
        try:
            yield {"RUMMIKUB_REDIS_URL": self._cluster.url, "RUMMIKUB_REDIS_REPLICAS": "1"}
        finally:
            running.__exit__(None, None, None)

    @property
    def lanes(self) -> Lanes:
        """See Deployment."""
        store: Mapping[str, FaultMethod] = {
            "kill the store": self.kill_store,
            "stop the store": self.stop_store,
            "lose power": self.lose_power,
            "rewrite the file": self.rewrite,
            "fill the disk": self.fill_disk,
            "fill the memory": self.fill_memory,
            "demote": self.demote,
            "step the clock": self.step_clock,
        }
        return [*super().lanes, store]

    def _primary(self, chance: random.Random) -> ClusterNode:
        return self._cluster.primary_of(chance.randrange(self._cluster.size))

    async def _whole(self) -> None:
        for attempt in range(START_ATTEMPTS):
            for node in self._cluster.nodes:
                if node.has_ended or not node.is_running:
                    node.kill()
                    await asyncio.to_thread(node.start)
            try:
                await asyncio.to_thread(self._cluster.wait_until_whole)
                break
            except ServerError:  # a busy machine, or a node that has ended meanwhile
                if attempt == START_ATTEMPTS - 1:
                    raise

    async def _taken_over(self, node: ClusterNode) -> None:
        """Waits until a replica of a killed node is a primary."""
        shard = list(self._cluster.nodes).index(node) % self._cluster.size
        others = [other for other in self._cluster.nodes[shard :: self._cluster.size] if other is not node]
        await asyncio.to_thread(wait_until, lambda: any(other.is_primary for other in others), "a replica takes over")

    async def kill_store(self, chance: random.Random) -> str:
        """Kills a primary, and starts it again before or after its replica has taken over."""
        node = self._primary(chance)
        node.kill()
        if chance.random() < 0.7:
            await self._taken_over(node)
        await self._whole()
        return str(node.port)

    async def stop_store(self, chance: random.Random) -> str:
        """Suspends a primary, for so long that its replica may take over."""
        node = self._primary(chance)
        node.pause()
        await self.lasts(chance, 0.5, 5.0)
        node.resume()
        await self._whole()
        return str(node.port)

    async def lose_power(self, chance: random.Random) -> str:
        """Kills a primary, and drops everything that it had not synced."""
        node = self._primary(chance)
        node.kill()
        # Only its data: Redis does not always sync nodes.conf, and a node without one is another node.
        self._machines[node].lose_power(node.folder / "appendonlydir")
        await self._whole()
        return str(node.port)

    async def rewrite(self, chance: random.Random) -> str:
        """Rewrites the append-only file of a primary."""
        node = self._primary(chance)
        with contextlib.suppress(redis.RedisError):
            node.execute("BGREWRITEAOF")
        return str(node.port)

    async def fill_disk(self, chance: random.Random) -> str:
        """Refuses writes to files of a node."""
        node = chance.choice(self._cluster.nodes)
        self._machines[node].disk_is_full = True
        await self.lasts(chance, 0.5, 1.5)
        self._machines[node].disk_is_full = False
        await self._whole()
        return str(node.port)

    async def fill_memory(self, chance: random.Random) -> str:
        """Bounds the memory of a primary to little more than it takes."""
        node = self._primary(chance)
        await _bounded(node.execute, self, chance)
        return str(node.port)

    async def demote(self, chance: random.Random) -> str:
        """Orders a replica to take over."""
        node = self._primary(chance)
        for replica in self._cluster.replicas_of(node):
            replica.execute("CLUSTER", "FAILOVER")
        await asyncio.sleep(1)
        await self._whole()
        return str(node.port)

    async def step_clock(self, chance: random.Random) -> str:
        """Sets the clock of a node forward or back."""
        node = chance.choice(self._cluster.nodes)
        machine = self._machines[node]
        machine.clock_ms = chance.randint(-MOST_WRONG_MS // 8, MOST_WRONG_MS // 8)
        await self.lasts(chance)
        return f"{node.port}, {machine.clock_ms} ms"


class Embedded(Deployment):
    """A server with its embedded store."""

    name = "embedded store"
    count = 1

    @contextlib.asynccontextmanager
    async def store(self) -> AsyncIterator[Mapping[str, str]]:
        """Prepares the folder: the server runs the store."""
        self._machine = self.machine("embedded")
        self._data = self.folder / "data"
        yield {**self._machine.environment, "RUMMIKUB_DATA_DIR": str(self._data), "TMPDIR": str(_short(self.folder))}

    @property
    def lanes(self) -> Lanes:
        """See Deployment."""
        store: Mapping[str, FaultMethod] = {
            "kill the store": self.kill_store,
            "stop the store": self.stop_store,
            "lose power": self.lose_power,
            "rewrite the file": self.rewrite,
            "fill the disk": self.fill_disk,
            "fill the memory": self.fill_memory,
            "step the clock": self.step_clock,
        }
        return [{**super().lanes[0], **store}]  # the server runs the store

    def _store_pid(self) -> int:
        """Returns the process id of the store. Raises ServerError."""
        pid = self.servers[0].pid
        for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            if b"valkey" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0]:
                return child
        raise ServerError("the server has no embedded store")

    def _execute(self, *command: str | int) -> object:
        """Returns the store's reply to a command."""
        socket = Path(os.fsdecode((self._data / "lock").read_bytes())) / "store.sock"
        with contextlib.closing(redis.Redis(unix_socket_path=str(socket), retry=Retry(NoBackoff(), 0))) as client:
            reply: object = client.execute_command(*command)  # type: ignore[no-untyped-call]
            return reply

    async def _ended(self) -> None:
        """Waits for a server whose store has ended, and starts it again."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.servers[0].ended(), 10)
        if self.servers[0].is_running:
            await self.servers[0].kill()
        await self.revive()

    async def kill_store(self, _chance: random.Random) -> str:
        """Kills the store with SIGKILL; its server ends by itself."""
        os.kill(self._store_pid(), signal.SIGKILL)
        await self._ended()
        return "embedded store"

    async def stop_store(self, chance: random.Random) -> str:
        """Suspends the store."""
        pid = self._store_pid()
        os.kill(pid, signal.SIGSTOP)
        await self.lasts(chance)
        os.kill(pid, signal.SIGCONT)
        return "embedded store"

    async def lose_power(self, _chance: random.Random) -> str:
        """Kills store and server, and drops everything that was not synced."""
        os.kill(self._store_pid(), signal.SIGKILL)
        await self.servers[0].kill()
        self._machine.lose_power(self._data)
        await self.revive()
        return "embedded store"

    async def rewrite(self, chance: random.Random) -> str:
        """Rewrites the append-only file, and half of the time loses power meanwhile."""
        with contextlib.suppress(redis.RedisError):
            self._execute("BGREWRITEAOF")
        await self.lasts(chance, 0.0, 0.3)
        if chance.random() < 0.5:
            await self.lose_power(chance)
        return "embedded store"

    async def fill_disk(self, chance: random.Random) -> str:
        """Refuses writes to files; the store ends if it cannot sync."""
        self._machine.disk_is_full = True
        await self.lasts(chance, 0.5, 1.5)
        self._machine.disk_is_full = False
        await asyncio.sleep(1)  # its server has noticed by then
        await self.revive()
        return "embedded store"

    async def fill_memory(self, chance: random.Random) -> str:
        """Bounds the memory to little more than it takes."""
        await _bounded(self._execute, self, chance)
        return "embedded store"

    async def step_clock(self, chance: random.Random) -> str:
        """Sets the clock of the machine forward or back."""
        self._machine.clock_ms = chance.randint(-MOST_WRONG_MS, MOST_WRONG_MS)
        await self.lasts(chance)
        return f"machine, {self._machine.clock_ms} ms"


def _short(folder: Path) -> Path:
    """Returns a folder for temporary files with a path that is short enough for a socket."""
    made = folder / "tmp"
    made.mkdir(exist_ok=True)
    return made


DEPLOYMENTS: Final[Mapping[str, type[Deployment]]] = {
    "redis": OneRedis,
    "cluster": Cluster,
    "embedded": Embedded,
    "everysec": ForgetfulRedis,
}
"""The kinds of stores, by the name in the command."""


def faults_of(store: str) -> frozenset[str]:
    """Returns the names of the faults that a kind of store can have."""
    with tempfile.TemporaryDirectory() as folder:
        lanes = DEPLOYMENTS[store](Path(folder), Path(folder)).lanes
    return frozenset(name for lane in lanes for name in lane)
