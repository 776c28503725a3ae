"""Power loss: data that was not synced to disk is gone, and no acknowledged turn is in it."""

import asyncio
import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import grpc
import grpc.aio
import pytest
import redis

from rummikub.v1 import game_pb2
from service.storage.embedded import EmbeddedStore
from support.grpc_play import history
from support.harness import ROOT, Client, GameAtHand, redis_store, running_redis, running_server
from tools.redis_servers import RedisServer
from tools.store_faults import compiled_library, cut_to_durable

pytestmark = pytest.mark.slow

DURABLE = {
    "appendonly": "yes",
    "appendfsync": "always",
    "no-appendfsync-on-rewrite": "no",
    "maxmemory-policy": "noeviction",
}
"""Settings of a store that loses no acknowledged write."""
GAMES = 8
"""The number of concurrent games."""
DRAWS = 30
"""The number of turns in a game before the next one begins."""
TURNS = 400
"""The number of acknowledged turns before the power loss, if all are synced."""
UNSYNCED = 40
"""The number of acknowledged turns since the last sync at which the power loss happens."""


def compose_options() -> tuple[str, ...]:
    """Returns the options of redis-server in compose.yaml, without the password, which ends them."""
    [command] = re.findall(r"^    command: (\[.*\])$", (ROOT / "compose.yaml").read_text(), re.MULTILINE)
    program, *options = json.loads(command)
    assert program == "redis-server"
    return tuple(options[: options.index("--requirepass")])


def settings_of(url: str) -> dict[str, str]:
    """Returns the values of the DURABLE settings of a running store."""
    with closing(redis.Redis.from_url(url, decode_responses=True)) as client:
        return {str(name): str(value) for name, value in client.config_get(*DURABLE).items()}


async def test_the_embedded_store_runs_with_durable_settings(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    try:
        await store.start()
        assert settings_of(store.url) == DURABLE
    finally:
        await store.stop()


def test_the_redis_in_compose_runs_with_durable_settings() -> None:
    with running_redis(*compose_options()) as server:
        assert settings_of(server.url) == DURABLE
        assert server.execute("INFO", "memory")["maxmemory"] > 0, "STORE_FULL needs a bound"


class Embedded:
    """The embedded store, as the service starts it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = EmbeddedStore(folder)

    @property
    def url(self) -> str:
        return self._store.url

    async def start(self) -> None:
        await self._store.start()

    async def kill(self) -> None:
        assert self._store._process  # noqa: SLF001 - no public attribute has the process
        self._store._process.kill()  # noqa: SLF001 - as above
        await self._store.stop()
        self._store = EmbeddedStore(self.folder)

    async def close(self) -> None:
        await self._store.stop()


class OfCompose:
    """A Redis with the options of compose.yaml."""

    def __init__(self, _folder: Path) -> None:
        self._server = RedisServer(*compose_options())
        self.folder, self.url = self._server.folder, self._server.url

    async def start(self) -> None:
        self._server.start()

    async def kill(self) -> None:
        self._server.kill()

    async def close(self) -> None:
        self._server.close()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a library, for LD_PRELOAD, that logs synced file sizes."""
    if shutil.which("cc") is None:
        assert not os.environ.get("CI"), "these tests compile a library: put a C compiler on PATH as cc"
        pytest.skip("needs a C compiler as cc; run: apt-get install gcc libc6-dev")
    return compiled_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def log(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Returns the log of synced file sizes; all processes that start from now on write to it."""
    log = tmp_path / "durable"
    log.touch()
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("POWER_LOSS_LOG", str(log))
    yield log
    monkeypatch.undo()


class Players:
    """Players who draw until the store is gone, with the acknowledged etags.

    Args:
        log: The log of synced file sizes.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._logged = 0
        self._turns = 0
        self._unsynced = 0
        self.etags: defaultdict[str, dict[int, str]] = defaultdict(dict)
        self.have_played = asyncio.Event()

    async def play(self, client: Client) -> None:
        """Plays games one after the other."""
        try:
            while True:
                game = await client.new_game()
                for _ in range(DRAWS):
                    self._told((await game.draw()).game)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise

    def _told(self, game: game_pb2.Game) -> None:
        """Records an acknowledged turn; sets `have_played` when enough turns are acknowledged or unsynced."""
        self.etags[game.game_id][game.revision] = game.etag
        logged = self._log.stat().st_size
        self._unsynced = self._unsynced + 1 if logged == self._logged else 0
        self._logged = logged
        self._turns += 1
        if self._turns >= TURNS or self._unsynced >= UNSYNCED:
            self.have_played.set()

    async def lost(self, client: Client) -> int:
        """Returns how many acknowledged turns a server lacks."""
        return sum([await self._lost_of(client, game_id) for game_id in self.etags])

    async def _lost_of(self, client: Client, game_id: str) -> int:
        try:
            kept = {change.revision: change.etag for change in await history(client, GameAtHand(client, game_id))}
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise
            kept = {}
        return sum(kept.get(revision) != etag for revision, etag in self.etags[game_id].items())


@pytest.mark.parametrize("appendfsync", ["as configured", "everysec"])
@pytest.mark.parametrize("kind", [Embedded, OfCompose])
async def test_a_power_loss_loses_acknowledged_turns_only_if_the_store_syncs_every_second(
    kind: type[Embedded | OfCompose], appendfsync: str, log: Path, tmp_path: Path
) -> None:
    store, players = kind(tmp_path / "data"), Players(log)
    try:
        await store.start()
        if appendfsync == "everysec":
            with closing(redis.Redis.from_url(store.url)) as admin:
                admin.config_set("appendfsync", appendfsync)
        backed = redis_store(store.url)
        async with running_server(backed) as (_, client):
            playing = [asyncio.create_task(players.play(client)) for _ in range(GAMES)]
            await asyncio.wait_for(players.have_played.wait(), 60)
            await store.kill()
            await asyncio.gather(*playing)
        await backed.close()
        cut_to_durable(store.folder, log)
        await store.start()
        backed = redis_store(store.url)
        async with running_server(backed) as (_, client):
            lost = await players.lost(client)
        await backed.close()
    finally:
        await store.close()
    assert bool(lost) == (appendfsync == "everysec"), f"{lost} acknowledged turns are lost"
