"""Games and servers for tests of the archive: random games in a store, SeaweedFS for S3, and PostgreSQL."""

import asyncio
import contextlib
import json
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import obstore
import psycopg
import pytest
from obstore.exceptions import BaseError, PermissionDeniedError
from obstore.store import S3Store

from engine.game import Finished
from engine.melding.ruleset import SABRA, MatchEnd
from service.app.identity import digest
from service.codec.fields import encode_etag
from service.model.change import NO_ETAG, Commit, Committed, lineage
from service.model.record import Record, SeatToken
from service.operator.archive.archived_game import ArchivedGame
from service.operator.archive.sink import SinkUnavailable, WriteResult
from service.storage.store import Store
from service.storage.stored_events import encode_change
from support.harness import Client, GameAtHand
from support.random_play import random_changes
from support.rooms import Rules, room
from tools.redis_servers import short_folder
from tools.servers import free_port

TWO_ROUNDS = room(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2, turn_time_limit_seconds=0)
FINISHED = 40
"""The seed of a random game that is finished and has no rematch."""
START_SECONDS = 40.0


@dataclass(frozen=True)
class StoredGame:
    """A random game in a store, at each revision."""

    records: tuple[Record, ...]
    changes: tuple[bytes, ...]
    tokens: dict[int, str]

    @property
    def record(self) -> Record:
        return self.records[-1]

    @property
    def game_id(self) -> str:
        return self.record.game_id

    def at(self, client: Client) -> GameAtHand:
        """Returns the game for calls of a client."""
        return GameAtHand(client, self.game_id, {0: "", **self.tokens})


async def store_game(
    store: Store, seed: int = FINISHED, ruleset: Rules = TWO_ROUNDS, until: int | None = None
) -> StoredGame:
    """Stores a random game of three players, or its changes up to one."""
    game_id = random.Random(f"{seed} {ruleset} {until}").randbytes(16).hex()
    records, changes, tokens = list[Record](), list[bytes](), dict[int, str]()
    for number, change in enumerate(list(random_changes(seed, 3, ruleset))[:until]):
        game, now_ms = change.applied.game, change.now_ms
        tokens |= {player.seat: f"{player.seat}" * 43 for player in game.players}
        digests = tuple(SeatToken(player.seat, digest(tokens[player.seat])) for player in game.players)
        nonce = random.Random(f"{seed} {number}").randbytes(16)
        changes.append(encode_change(game.revision, now_ms, nonce, change.applied.events))
        previous = records[-1].etag if records else NO_ETAG
        created_ms = records[0].created_ms if records else now_ms
        records.append(Record(game_id, game, lineage(previous, changes[-1]), digests, created_ms, now_ms))
        assert await store.games.commit(Commit(previous, records[-1], changes[-1])) == Committed()
    assert until or isinstance(records[-1].game.phase, Finished)
    return StoredGame(tuple(records), tuple(changes), tokens)


def etag_of(record: Record) -> str:
    """Returns the etag of a game in the contract."""
    return encode_etag(record.game.revision, record.etag)


class MemorySink:
    """A sink in memory that fails while it is told to. `written` has all versions of games that are not deleted."""

    def __init__(self) -> None:
        self.written: list[ArchivedGame] = []
        self.deleted: set[str] = set()
        self.is_down = False
        self.is_closed = False

    async def _answer(self) -> None:
        await asyncio.sleep(0)
        if self.is_down:
            raise SinkUnavailable("the sink is down")

    def _latest(self, game_id: str) -> ArchivedGame | None:
        return next((game for game in reversed(self.written) if game.record.game_id == game_id), None)

    async def write(self, game: ArchivedGame) -> WriteResult:
        await self._answer()
        before = self._latest(game.record.game_id)
        if game.record.game_id in self.deleted:
            return WriteResult.DELETED
        if before and before.record.created_ms != game.record.created_ms:
            return WriteResult.ANOTHER
        if before and before.record.game.revision > game.record.game.revision:
            return WriteResult.LATER
        if before and not set(game.players) <= set(before.players):
            return WriteResult.FORGOTTEN
        self.written.append(game)
        return WriteResult.WRITTEN

    async def read(self, game_id: str) -> ArchivedGame | None:
        await self._answer()
        return self._latest(game_id)

    async def delete(self, game_id: str) -> bool:
        await self._answer()
        had = self._latest(game_id) is not None
        self.deleted.add(game_id)
        self.written = [game for game in self.written if game.record.game_id != game_id]
        return had

    async def games_of(self, player: str) -> Sequence[str]:
        await self._answer()
        games = {game.record.game_id: game for game in self.written}
        return [game_id for game_id, game in games.items() if player in game.players]

    async def unlist(self, _player: str, _game_id: str) -> None:
        await self._answer()

    async def prune(self, before_ms: int) -> int:
        await self._answer()
        old = {game.record.game_id for game in self.written if game.record.updated_ms < before_ms}
        self.written = [game for game in self.written if game.record.game_id not in old]
        return len(old)

    async def close(self) -> None:
        self.is_closed = True


class ObjectStorage:
    """SeaweedFS, an S3-compatible server that checks signatures, with one bucket."""

    KEY, SECRET = "archive-key", "archive-secret"

    def __init__(self) -> None:
        self._scratch = short_folder("rummikub-s3-")
        self._folder = Path(self._scratch.name)
        identity = {
            "name": "archive",
            "credentials": [{"accessKey": self.KEY, "secretKey": self.SECRET}],
            "actions": ["Admin", "Read", "Write", "List"],
        }
        (self._folder / "identities.json").write_text(json.dumps({"identities": [identity]}))
        parts = ("master", "volume", "filer", "s3")
        self._ports = {f"{part}.{port}": free_port() for part in parts for port in ("port", "port.grpc")}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    @property
    def url(self) -> str:
        """The URL of an archive."""
        return f"s3://archive/some/games?endpoint={self.endpoint}&region=us-east-1"

    @property
    def environment(self) -> dict[str, str]:
        """The variables with the credentials."""
        return {"AWS_ACCESS_KEY_ID": self.KEY, "AWS_SECRET_ACCESS_KEY": self.SECRET}

    def start(self) -> None:
        """Starts it, and waits until it stores objects."""
        program = Path(sys.executable).parent / "weed"
        options = {"dir": self._folder, "ip": "127.0.0.1", "ip.bind": "127.0.0.1", "volume.max": 4, **self._ports}
        options |= {"s3.config": self._folder / "identities.json", "master.volumeSizeLimitMB": 64}
        options |= {"s3.port.iceberg": 0, "s3.port.lance": 0, "master.telemetry": "false"}
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [program, "server", "-s3", *(f"-{name}={value}" for name, value in options.items())],
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < deadline, "SeaweedFS does not start"
            time.sleep(0.1)

    def _answers(self) -> bool:
        """Whether it stores an object, and checks credentials, which it does not have at first.

        The object has a content: the first one makes SeaweedFS allocate space, which may take seconds.
        """
        try:
            obstore.put(self.bucket(self.SECRET), "started", b"content")
            obstore.put(self.bucket("wrong"), "started", b"content")
        except PermissionDeniedError as error:
            return "SignatureDoesNotMatch" in str(error)
        except BaseError:
            return False
        return False

    def bucket(self, secret: str) -> S3Store:
        """Returns a client of the bucket."""
        return S3Store(
            "archive",
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id=self.KEY,
            secret_access_key=secret,
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )

    def clear(self) -> None:
        """Deletes all objects."""
        bucket = self.bucket(self.SECRET)
        obstore.delete(bucket, [item["path"] for chunk in obstore.list(bucket) for item in chunk])

    def stop(self) -> None:
        """Kills it."""
        assert self._process
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        if self._process and self._process.poll() is None:
            self.stop()
        self._scratch.cleanup()


class Database:
    """A PostgreSQL server on a unix socket, with a user who may create tables, and whose password it checks."""

    PASSWORD = "rummikub-password"  # noqa: S105 - of a test

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._scratch = short_folder("rummikub-pg-")
        self._folder = Path(self._scratch.name)
        self._process: subprocess.Popen[bytes] | None = None
        self._user: dict[str, object] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    @property
    def url(self) -> str:
        """The URL of an archive."""
        return f"postgresql://owner:{self.PASSWORD}@/postgres?host={self._folder}"

    def create(self) -> None:
        """Creates its data folder."""
        password = self._folder / "password"
        password.write_text(self.PASSWORD)
        password.chmod(0o644)
        options = ("--no-sync", "-U", "owner", "-A", "scram-sha-256", "--pwfile", password, "-E", "UTF8")
        subprocess.run(
            [self._programs / "initdb", "-D", self._folder / "data", *options],
            check=True,
            capture_output=True,
            cwd=self._folder,
            **self._user,  # type: ignore[call-overload]
        )

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        options = ["-D", self._folder / "data", "-k", self._folder, "-c", "listen_addresses="]
        self._process = subprocess.Popen(
            [self._programs / "postgres", *options],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._user,  # type: ignore[call-overload]
        )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "PostgreSQL does not start"
                time.sleep(0.05)
            else:
                return

    def execute(self, command: str) -> list[tuple[object, ...]]:
        """Returns the rows of a command."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(command.encode())
            return cursor.fetchall() if cursor.description else []

    def stop(self) -> None:
        """Stops it at once, which ends its connections."""
        assert self._process
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def close(self) -> None:
        if self._process and self._process.poll() is None:
            self.stop()
        self._scratch.cleanup()


def postgresql_programs() -> Path | None:
    """Returns the folder of PostgreSQL's programs, the newest that is installed."""
    on_path = shutil.which("postgres")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return Path(on_path).parent if on_path else installed[-1].parent if installed else None


@contextlib.contextmanager
def running_database() -> Iterator[Database]:
    """Runs PostgreSQL. Skips the test where it is not installed, except in CI."""
    programs = postgresql_programs()
    if programs is None:
        assert not os.environ.get("CI"), "PostgreSQL is not installed"
        pytest.skip("PostgreSQL is not installed; run: apt-get install postgresql")
    with contextlib.closing(Database(programs)) as database:
        database.create()
        database.start()
        yield database


@contextlib.contextmanager
def running_object_storage() -> Iterator[ObjectStorage]:
    """Runs SeaweedFS."""
    with contextlib.closing(ObjectStorage()) as storage:
        storage.start()
        yield storage
