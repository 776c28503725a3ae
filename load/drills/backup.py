"""A store that is lost under load, and what a backup brings back.

Games fill a store, a player is forgotten, and others play while `rummikub-admin backup` streams all of it. They play on
for a while; then the server and the store are killed, and the store's data is deleted. `rummikub-admin restore` writes
the backup into an empty store, the server starts on it, and the same players go on with the tokens that they have.

At the end every acknowledged turn is looked for in the stored history. Only those may be lost that were acknowledged
after the backup began, and the next call of their players must be refused. The games that filled the store must have
come back byte for byte, the forgotten player must not, and another restore into the store must be refused.
`make drill ARGS=backup`, or ARGS="backup --quick" with few games.
"""

import argparse
import asyncio
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from load.bench.figures import Tables, requirement
from load.drills.players import SETTINGS, Players, Report, plain_client
from load.drills.reports import finish
from load.parts import run_parts
from load.tables import NO_TIME_LIMIT, new_table, sends_once
from rummikub.v1 import game_service_pb2 as gs
from service.operator.content import Content, Keyspace, for_each
from service.storage.embedded import EmbeddedStore
from service.storage.lists import list_member, lists_of
from service.storage.redis.keys import ONE_PART, deadlines_key, draft_key, list_key, presence_key
from service.storage.snapshot import decode_record, encode_record
from tools.games import Stubs, creation, new_id
from tools.redis_servers import running_redis
from tools.server_process import ServerProcess, server_process
from tools.servers import ROOT

TURNS: Final = 300
"""Acknowledged turns before the backup, after it, and after the restore."""
PLAYED: Final = 16
"""Games that are played at once."""
PAUSE_SECONDS: Final = 0.05
FILLED_TURNS: Final = 40
"""Turns of each game that fills the store: half of its round."""
DUE_MS: Final = 86_400_000
"""When the games that fill the store are due."""
OUTAGE_SECONDS: Final = 1_800.0
"""How long players repeat a call; the restore takes most of it."""
NAME: Final = "Annabella"
PLAYER_REF: Final = "reference-of-annabella"
ADMIN: Final = ("-c", "from service.admin_program.program import main; main()")
PART: Final = ONE_PART[0]


@dataclass(frozen=True, slots=True)
class Store:
    """A store that can be lost.

    Attributes:
        given: Its name in a command of rummikub-admin: a URL or a folder.
        settings: Those of its server.
        url: Returns its URL while it runs.
        lose: Ends it and deletes its data, after its server has ended.
        begin: Makes an empty one in its place.
    """

    given: str
    settings: Mapping[str, str]
    url: Callable[[], str]
    lose: Callable[[], object]
    begin: Callable[[], object]


@contextlib.contextmanager
def _redis() -> Iterator[Store]:
    """Runs a Redis that writes each change to disk before it replies."""
    with running_redis("--appendfsync", "always") as server:

        def lose() -> None:
            server.kill()
            shutil.rmtree(server.folder / "appendonlydir")

        yield Store(server.url, {"RUMMIKUB_REDIS_URL": server.url}, lambda: server.url, lose, server.start)


@contextlib.contextmanager
def _embedded() -> Iterator[Store]:
    """Makes a folder, in which the server runs the store."""
    with tempfile.TemporaryDirectory(prefix="rummikub-drill-", ignore_cleanup_errors=True) as folder:
        data = Path(folder) / "data"
        data.mkdir(mode=0o700)
        yield Store(
            str(data),
            {"RUMMIKUB_DATA_DIR": str(data)},
            lambda: EmbeddedStore.running_url(data),
            lambda: data.rename(data.with_name("lost")),
            lambda: data.mkdir(mode=0o700),
        )


STORES: Final = {"embedded": _embedded, "redis": _redis}
Part: TypeAlias = tuple[str, int]
"""The kind of a store, and how many games fill it."""
WHOLE: Final[Sequence[Part]] = (("embedded", 1_000), ("redis", 1_000), ("redis", 100_000))
QUICK: Final[Sequence[Part]] = (("embedded", 200), ("redis", 200))


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a part: which games and turns came back, and how long it took.

    Attributes:
        store: The kind of the store.
        games: The games that filled it.
        unchanged: Those of them that came back byte for byte.
        backup_bytes: The size of the backup.
        backup_seconds: How long the backup took.
        restore_seconds: How long the restore took.
        outage_seconds: The time from the loss to the first acknowledged turn after the restore.
        at_risk_seconds: The time from the beginning of the backup to the loss.
        is_forgotten: Whether the forgotten player stayed forgotten.
        is_refused: Whether another restore into the store was refused.
        report: What the players noticed.
    """

    store: str
    games: int
    unchanged: int
    backup_bytes: int
    backup_seconds: float
    restore_seconds: float
    outage_seconds: float
    at_risk_seconds: float
    is_forgotten: bool
    is_refused: bool
    report: Report

    @property
    def name(self) -> str:
        """Its name in the report."""
        return name_of((self.store, self.games))

    def faults(self) -> list[str]:
        """Returns why the drill has failed; nothing if it has passed."""
        found = self.report.faults(may_lose=True)
        if self.report.lost_marked:
            found.append(f"{self.report.lost_marked} lost that were acknowledged before the backup began")
        if not self.report.lost:
            found.append("no turn was lost, so the loss had no effect")
        if self.unchanged != self.games:
            found.append(f"{self.games - self.unchanged:,} games did not come back as they were")
        if not self.is_forgotten:
            found.append("a forgotten player came back")
        if not self.is_refused:
            found.append("another restore was not refused")
        return found

    def requirement(self) -> dict[str, Any]:
        """Returns what has to hold."""
        faults = self.faults()
        return requirement(
            f"{self.name}: no turn lost from before the backup, no lost one untold, none doubled; all games are back",
            met=not faults,
            measured=", ".join(faults) or f"{self.report.acknowledged:,} turns, {self.games:,} games",
        )

    def as_json(self) -> dict[str, Any]:
        """Returns the values for a file."""
        own = {name: getattr(self, name) for name in self.__slots__ if name != "report"}
        return {**own, **self.report.as_json()}


def name_of(part: Part) -> str:
    """Returns the name of a part."""
    store, games = part
    return f"{store}, {games:,} games"


def tables_of(results: Sequence[Result]) -> Tables:
    """Returns the tables of a report."""
    times = [["store", "games", "backup, s", "MB", "restore, s", "no turn for, s"]]
    turns = [["store", "games", "turns", "lost", "of these before the backup", "told", "from backup to loss, s"]]
    for result in results:
        report, who = result.report, [result.store, f"{result.games:,}"]
        seconds = (result.restore_seconds, result.outage_seconds)
        size = f"{result.backup_bytes / 1e6:,.1f}"
        times.append([*who, f"{result.backup_seconds:.1f}", size, *(f"{one:.1f}" for one in seconds)])
        counts = (report.acknowledged, report.lost, report.lost_marked, sum(report.lost_told.values()))
        turns.append([*who, *(f"{count:,}" for count in counts), f"{result.at_risk_seconds:.1f}"])
    return {"How long a backup and a restore take": times, "What was lost with the store": turns}


def main(arguments: Sequence[str]) -> int:
    """Runs the drill; returns 1 if a part has failed."""
    parser = argparse.ArgumentParser(
        prog="backup", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few games; nothing is written into a page")
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    parts = QUICK if chosen.quick else WHOLE
    finished, errors = run_parts(lambda part: asyncio.run(lose(*part)), {name_of(part): part for part in parts})
    results = list(finished.values())
    report = {
        "seconds": time.monotonic() - began,
        "parts": [result.as_json() for result in results],
        "requirements": [result.requirement() for result in results],
    }
    return finish("backup", report, tables_of(results), errors=errors, is_complete=not chosen.quick)


async def lose(store: str, games: int) -> Result:
    """Loses a store under load and restores it; returns what came back."""
    async with contextlib.AsyncExitStack() as stack:
        lost = stack.enter_context(STORES[store]())
        file = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rummikub-drill-"))) / "games.backup"
        environment = {**SETTINGS, **lost.settings, "RUMMIKUB_ADMIN_LISTEN": "127.0.0.1:0"}
        server = await stack.enter_async_context(server_process(environment))
        client = await stack.enter_async_context(plain_client(server.target))
        print(f"{name_of((store, games))} ...", flush=True)
        filled = await _fill(lost.url(), await _half_a_round(client), games)
        forgotten = await _forgotten(client, server)
        playing = Players([server.target], PLAYED, PAUSE_SECONDS, answer_seconds=OUTAGE_SECONDS)
        players = await stack.enter_async_context(playing)
        await players.has_taken(TURNS)

        players.mark()
        began = time.monotonic()
        with file.open("wb") as output:
            await _admin("backup", "--from", lost.given, stdout=output)
        backed_up = time.monotonic()
        await players.has_taken(TURNS)

        gone = time.monotonic()
        await server.kill()
        lost.lose()
        lost.begin()
        restoring = time.monotonic()
        with file.open("rb") as lines:
            await _admin("restore", "--to", lost.given, stdin=lines)
        restored = time.monotonic()
        await server.start_again()
        await players.has_taken(1, OUTAGE_SECONDS)
        back = time.monotonic()
        print(f"  backup {backed_up - began:.1f} s, restore {restored - restoring:.1f} s", flush=True)

        await players.has_taken(TURNS)
        return Result(
            store,
            games,
            await _unchanged(lost.url(), filled),
            file.stat().st_size,
            backed_up - began,
            restored - restoring,
            back - gone,
            gone - began,
            await _is_forgotten(client, server, forgotten),
            await _is_refused(lost.given, file),
            await players.stop(),
        )


async def _admin(*arguments: str, stdin: IO[bytes] | None = None, stdout: IO[bytes] | None = None) -> bytes:
    """Runs rummikub-admin; returns what it prints, unless that goes to a file. Raises AdminFailure if it fails."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *ADMIN,
        *arguments,
        cwd=ROOT,
        stdin=stdin or asyncio.subprocess.DEVNULL,
        stdout=stdout or asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, errors = await process.communicate()
    if process.returncode:
        raise AdminFailure(f"rummikub-admin {arguments[0]}: {errors.decode()}")
    return printed or b""


class AdminFailure(Exception):  # noqa: N818 - it is no error of this program
    """A command of rummikub-admin has failed; the message is its own."""


async def _half_a_round(client: Stubs) -> str:
    """Plays a game for half a round; returns its id."""
    table = await new_table(sends_once(client))
    for _ in range(FILLED_TURNS):
        await table.draw(client)
    return table.game_id


async def _fill(url: str, template: str, games: int) -> dict[str, int]:
    """Copies a game, with its entries in the lists and the deadlines; returns a hash of each copy's keys by its id."""
    store = await Keyspace.open(url)
    hashes: dict[str, int] = {}
    try:
        passing = (draft_key(template), presence_key(template))  # no backup has them
        contents = [content for content in await store.games([template]) if content.key not in passing]
        fields = contents[0].items
        record = decode_record(dict(zip(fields[::2], fields[1::2], strict=True))[b"snapshot"])
        due_ms = time.time() * 1000 + DUE_MS

        async def copy(game_ids: Sequence[str]) -> None:
            copies = []
            for game_id in game_ids:
                own = replace(record, game_id=game_id)
                own_contents = [_renamed(content, template, game_id, encode_record(own)) for content in contents]
                hashes[game_id] = _hash(own_contents)
                copies += own_contents
                for name in lists_of(own):
                    await store.client.zadd(list_key(PART, name), {list_member(own): 0})
            await store.write(copies)
            await store.client.zadd(deadlines_key(PART), dict.fromkeys(game_ids, due_ms))

        await for_each((f"{number:032x}" for number in range(1, games + 1)), copy)
    finally:
        await store.close()
    return hashes


def _renamed(content: Content, template: str, game_id: str, snapshot: bytes) -> Content:
    """Returns a key of a game as that of a copy, which has a snapshot of its own."""
    items = list(content.items)
    if content.kind == "hash" and b"snapshot" in items[::2]:
        items[items.index(b"snapshot") + 1] = snapshot
    return replace(content, key=content.key.replace(template, game_id), items=items)


def _hash(contents: Sequence[Content]) -> int:
    """Returns a hash of the contents of keys without their lifetimes; the fields of a hash have no order."""
    return hash(
        tuple(
            (one.key, tuple(sorted(zip(one.items[::2], one.items[1::2], strict=True))))
            if one.kind == "hash"
            else (one.key, tuple(one.items))
            for one in contents
            if one.kind != "none"
        )
    )


async def _unchanged(url: str, filled: Mapping[str, int]) -> int:
    """Returns how many copies are in a store as they were made."""
    store = await Keyspace.open(url)
    found: list[bool] = []
    try:

        async def compare(game_ids: Sequence[str]) -> None:
            contents = await store.games(game_ids)
            for number, game_id in enumerate(game_ids):
                each = len(contents) // len(game_ids)
                found.append(_hash(contents[number * each : (number + 1) * each]) == filled[game_id])

        await for_each(filled, compare)
    finally:
        await store.close()
    return sum(found)


async def _forgotten(client: Stubs, server: ServerProcess) -> str:
    """Forgets a player of a new game; returns its id."""
    creating = gs.CreateGameRequest(**creation(NO_TIME_LIMIT), request_id=new_id())
    game_id = (await client.games.CreateGame(creating)).game.game_id
    joining = gs.JoinGameRequest(game_id=game_id, name=NAME, player_ref=PLAYER_REF, request_id=new_id())
    await client.games.JoinGame(joining)
    await _admin("forget", PLAYER_REF, *_address(server))
    return game_id


async def _is_forgotten(client: Stubs, server: ServerProcess, game_id: str) -> bool:
    """Returns whether a forgotten player's game is there, without the player's name and reference."""
    game = (await client.games.GetGame(gs.GetGameRequest(game_id=game_id), wait_for_ready=True)).game
    found = await _admin("games", "--player-ref", PLAYER_REF, *_address(server))
    return bool(game.players) and not found and all(player.name != NAME for player in game.players)


def _address(server: ServerProcess) -> tuple[str, str]:
    return "--address", f"127.0.0.1:{server.admin_port}"


async def _is_refused(given: str, file: Path) -> bool:
    """Returns whether a restore into a store that has games is refused."""
    try:
        with file.open("rb") as lines:
            await _admin("restore", "--to", given, stdin=lines)
    except AdminFailure as refusal:
        return "has games already" in str(refusal)
    return False
