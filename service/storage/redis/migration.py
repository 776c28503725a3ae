"""Moves all games from one Redis to a Redis Cluster or to a primary behind Sentinels, or back, while servers run.

All games are copied while they are played. Then the source refuses every write (min-replicas-to-write), so servers
answer STORE_UNAVAILABLE and clients retry. What has changed since is copied again, then the keys that span
games, in the target's parts. At last everything is compared. If a step fails, the source accepts writes
again; if that fails at a node, the error names it, and `undo` tries again. The change log is copied like the games:
most of it before, the rest after the source refuses writes.

A mark on the source remembers its former setting. No server uses a store with a mark, also after a restart, in which
Redis forgets to refuse writes. `undo` returns to the setting, and marks the target instead, which refuses
writes from then on. A store with a mark has been moved away from, so its games are outdated, and a migration to it
replaces them.

Behind Sentinels, it uses the primary that they name at the beginning. The primary's replicas refuse writes too, because
one of them may be promoted. A failover meanwhile makes the migration fail.

It uses redis-py's clients, whose cluster client is slower than the store's but scans all nodes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import redis.asyncio as redis
from redis import exceptions
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import SSLConnection

from service.storage.lists import game_of_member
from service.storage.redis.deployment import GUARD, MAX_LAG, REFUSE_ALL, replicas_in
from service.storage.redis.keys import (
    CLUSTER_PARTS,
    MARK,
    ONE_PART,
    PROBE,
    SECRET,
    UNFINISHED,
    change_log_key,
    deadlines_key,
    keys_of,
    outbox_key,
    part_of,
)
from service.storage.redis.log_copy import ChangeLogCopy
from service.storage.redis.sentinel import find_primary
from service.storage.redis.url import Address, Cluster, One, Options, Sentinel, parse_redis_url

AT_ONCE: Final = 32
"""Keys that are copied at the same time, each with up to two connections."""
SCANNED: Final = 1_000
"""Keys that a node looks at in one step of a scan."""
ID_LENGTH: Final = 32
"""The length of a game's id."""
SECONDS: Final = 10.0
"""Timeout of each command: a large value may take longer than a call of a game."""
_TIMEOUTS: Final = {"socket_timeout": SECONDS, "socket_connect_timeout": SECONDS}
_FAILURES: Final = (exceptions.RedisError, exceptions.RedisClusterException, OSError, TimeoutError)

_GAME_PREFIX: Final = "rummikub:{"
_NAME_PREFIX: Final = "rummikub:name:"

Progress = Callable[[str], None]
"""Receives a line about what is being done."""


class MigrationError(Exception):
    """The games cannot be moved; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What a migration has moved, and how long the source had refused writes at its end, in seconds."""

    games: int
    names: int
    seconds: float


class _Store:
    """A Redis or a Redis Cluster, with all its keys."""

    def __init__(self, url: One | Cluster, replicas: Sequence[Address] = ()) -> None:
        self.shown = url.shown
        options = {**url.options, **_TIMEOUTS}
        self.client: Any
        if isinstance(url, Cluster):
            self.parts = CLUSTER_PARTS
            is_tls = options.pop("connection_class", None) is SSLConnection
            nodes = [ClusterNode(node.host, node.port) for node in url.nodes]
            self.client = redis.RedisCluster(startup_nodes=nodes, ssl=is_tls, **options)
        else:
            self.parts = ONE_PART
            self.client = _client(options)
        self._replicas = {
            str(replica): _client({**options, "host": replica.host, "port": replica.port}) for replica in replicas
        }
        """The servers that Sentinels may promote, by address."""

    @classmethod
    async def open(cls, url: str) -> "_Store":
        """Returns the store at a URL; behind Sentinels, on the primary that they name now, until it is closed."""
        parsed = parse_redis_url(url)
        if not isinstance(parsed, Sentinel):
            return cls(parsed)
        address = await find_primary(parsed, _TIMEOUTS)
        primary = One(parsed.shown, {**parsed.options, "host": address.host, "port": address.port})
        async with _client({**primary.options, **_TIMEOUTS}) as client:
            replication = await client.info("replication")
        return cls(primary, list(replicas_in(replication)))

    async def keys(self, pattern: str) -> AsyncIterator[str]:
        """Yields the keys of a pattern, maybe some twice."""
        async for key in self.client.scan_iter(match=pattern, count=SCANNED):
            yield key.decode()

    async def games(self) -> list[str]:
        """Returns the ids of all games."""
        keys = [key async for key in self.keys("rummikub:{*}:game")]
        return sorted({key.removeprefix(_GAME_PREFIX).partition("}")[0] for key in keys})

    async def guard(self) -> str:
        """Returns the setting that refuses writes. Raises MigrationError if it cannot be used."""
        try:
            guard = str((await self.client.config_get(GUARD))[GUARD])
            await self.set_guard(guard)
            if str((await self.client.config_get(MAX_LAG))[MAX_LAG]) == "0":
                raise MigrationError(f"{self.shown}: {MAX_LAG} is 0, so writes cannot be stopped: set it to 10")
        except exceptions.ResponseError as error:
            raise MigrationError(
                f"{self.shown}: CONFIG is refused ({error}), so writes cannot be stopped: stop all servers and use "
                f"--stopped, or give a user with the right to CONFIG"
            ) from None
        return guard

    async def refuse_writes(self, guard: str) -> None:
        """Makes the store refuse writes from now on.

        Args:
            guard: The setting before, for the mark.
        """
        if await self.client.get(MARK) is None:
            await self.client.set(MARK, guard)
        await self.set_guard(REFUSE_ALL)

    async def set_guard(self, value: str | int) -> None:
        """Sets on all nodes, and on replicas that may be promoted, how many replicas a write needs."""
        for error in (await self._try_guard(value)).values():
            raise error

    async def accept_writes(self, guard: str) -> None:
        """Restores the setting that refuses writes, then deletes the mark.

        Raises MigrationError, which names the nodes where it could not be restored. The mark stays then, for undo.
        """
        errors = await self._try_guard(guard)
        if errors:
            failed = ", ".join(f"{name} ({type(error).__name__}: {error})" for name, error in errors.items())
            raise MigrationError(f"{GUARD} could not be set to {guard} at {failed}")
        await self.client.delete(MARK)

    async def _try_guard(self, value: str | int) -> dict[str, Exception]:
        """Sets GUARD on each node, and on replicas that may be promoted; returns the errors by node."""
        nodes: dict[str, Any] = dict(self._replicas)
        if isinstance(self.client, redis.RedisCluster):
            nodes.update((node.name, node) for node in self.client.get_nodes())
        else:
            nodes[self.shown] = self.client
        errors: dict[str, Exception] = {}
        for name, node in nodes.items():
            try:
                await node.execute_command("CONFIG SET", GUARD, value)
            except _FAILURES as error:
                errors[name] = error
        return errors

    async def copy_key(self, key: str, target: "_Store") -> None:
        """Copies a key with its lifetime. One that has expired is deleted at the target."""
        dump, left_ms = await asyncio.gather(self.client.dump(key), self.client.pttl(key))
        if dump is None or left_ms == -2:
            await target.client.delete(key)
            return
        try:
            await target.client.restore(key, max(0, left_ms), dump, replace=True)
        except exceptions.ResponseError as error:
            raise MigrationError(
                f"{target.shown} does not take the data of {self.shown} ({error}): it must not be of an older version"
            ) from None

    async def close(self) -> None:
        """Closes the connections."""
        for client in (self.client, *self._replicas.values()):
            await client.aclose()


def _client(options: Options) -> "redis.Redis":
    """Returns a client of one server."""
    return redis.Redis.from_pool(redis.ConnectionPool(**options))


def _text(error: BaseException) -> str:
    """Returns an error as a part of a message."""
    if isinstance(error, asyncio.CancelledError):
        return "interrupted"
    if isinstance(error, _FAILURES):
        return f"a store does not reply: {type(error).__name__}: {error}"
    return str(error)


@asynccontextmanager
async def _opened(source_url: str, target_url: str) -> AsyncIterator[tuple[_Store, _Store]]:
    """Yields the stores at two URLs. Turns failures of Redis into MigrationError."""
    async with AsyncExitStack() as stack:
        try:
            source = await _Store.open(source_url)
            stack.push_async_callback(source.close)
            target = await _Store.open(target_url)
            stack.push_async_callback(target.close)
            yield source, target
        except _FAILURES as error:
            raise MigrationError(_text(error)) from error


async def migrate(source_url: str, target_url: str, progress: Progress, *, is_stopped: bool = False) -> Moved:
    """Moves all games; returns what was moved. Raises MigrationError, after which the source is as before.

    Args:
        source_url: The store to move from; it refuses writes afterwards.
        target_url: The store to move to: without games, or moved away from before.
        progress: Receives what is being done.
        is_stopped: Whether no server runs on the source. Then it need not refuse writes.
    """
    async with _opened(source_url, target_url) as (source, target):
        return await _Migration(source, target, progress, is_stopped).run()


async def undo(source_url: str, target_url: str, progress: Progress, *, is_stopped: bool = False) -> int:
    """Makes the source of a migration accept writes again, and the target refuse them; returns the number of games.

    Raises MigrationError if games have changed on the target since, because they would be lost.

    Args:
        source_url: The store that the migration moved from.
        target_url: The store that it moved to.
        progress: Receives what is being done.
        is_stopped: Whether no server runs on the target. Then it need not refuse writes.
    """
    async with _opened(source_url, target_url) as (source, target):
        if await source.client.get(MARK) is None:
            raise MigrationError(f"{source.shown} was not moved away from: there is nothing to undo")
        games = await source.games()
        mark = await target.client.get(MARK)  # from an undo that was killed
        guard = "" if is_stopped else mark.decode() if mark else await target.guard()
        try:
            if not is_stopped:
                progress(f"{target.shown} refuses writes from now on")
                await target.refuse_writes(guard)
            if await target.client.get(UNFINISHED) is None:  # else no server has used it
                await _check_unchanged(source, target, games)
        except BaseException as error:
            if not is_stopped:
                await _restore(target, guard, error, progress, _undo_command(source, target))
            raise
        await _unmark(source)
        progress(f"{source.shown} accepts writes again")
        return len(games)


def _undo_command(source: _Store, target: _Store) -> str:
    return f"rummikub-admin migrate --from {source.shown} --to {target.shown} --undo"


async def _restore(store: _Store, guard: str, error: BaseException, progress: Progress, command: str) -> None:
    """Makes a store accept writes again after an error. Raises MigrationError with both errors if it cannot.

    Args:
        store: The store that refuses writes.
        guard: Its former setting.
        error: What went wrong before.
        progress: Receives what is being done.
        command: The command that tries again.
    """
    try:
        await store.accept_writes(guard)
    except (MigrationError, *_FAILURES) as failure:
        raise MigrationError(
            f"{_text(error)}; then {_text(failure)}: writes are refused there until you run: {command}"
        ) from error
    progress(f"{store.shown} accepts writes again")


async def _check_unchanged(source: _Store, target: _Store, games: Sequence[str]) -> None:
    """Raises MigrationError if games have changed on the target of a migration since."""
    here, there = await _etags(source, games), await _etags(target, games)
    changed = sum(there[game] is not None and here[game] != there[game] for game in games)
    new = len(set(await target.games()) - set(games))
    if changed or new:
        raise MigrationError(
            f"{changed} games have changed and {new} were created on {target.shown} since: "
            f"move them back with --from {target.shown} --to {source.shown}"
        )


class _Migration:
    """One run of a migration."""

    def __init__(self, source: _Store, target: _Store, progress: Progress, is_stopped: bool) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._is_stopped = is_stopped
        self._log = ChangeLogCopy(source.client, source.parts, target.client, target.parts)

    async def run(self) -> Moved:
        """Moves all games."""
        await self._check()
        await self._target.client.set(UNFINISHED, "")
        games = await self._source.games()
        self._progress(f"copying {len(games)} games")
        await self._copy_games(games)
        await self._log.clear()
        await self._log.append()
        guard = "" if self._is_stopped else await self._source.guard()
        began = asyncio.get_running_loop().time()
        try:
            if not self._is_stopped:
                self._progress(f"{self._source.shown} refuses writes from now on")
                await self._source.refuse_writes(guard)
            await self._copy_changes(games)
            names = await self._copy_names()
            await self._copy_shared()
            await self._log.append()
            await self._log.expire()
            count = await self._verify()
            await self._target.client.delete(UNFINISHED)
        except BaseException as error:
            if not self._is_stopped:
                command = _undo_command(self._source, self._target)
                await _restore(self._source, guard, error, self._progress, command)
            raise
        seconds = asyncio.get_running_loop().time() - began
        return Moved(count, names, seconds)

    async def _check(self) -> None:
        """Raises MigrationError if the games cannot be moved. Empties a target that was moved away from."""
        if self._source.shown == self._target.shown:
            raise MigrationError("source and target are the same")
        if await self._source.client.get(MARK) is not None:
            raise MigrationError(f"{self._source.shown} was moved away from before: its games are outdated; see --undo")
        if not self._is_stopped:
            await self._source.guard()
        if await self._target.client.get(MARK) is not None:
            self._progress(f"deleting the outdated games at {self._target.shown}")
            await _unmark(self._target)
            keys = [key async for key in self._target.keys("rummikub:*")]
            await _for_each(keys, self._target.client.delete)
        if await self._target.games():
            raise MigrationError(f"{self._target.shown} has games already: move to an empty store")

    async def _copy_games(self, games: Iterable[str]) -> None:
        await _for_each((key for game in games for key in keys_of(game)), self._copy_key)

    async def _delete_copy(self, game_id: str) -> None:
        await self._target.client.delete(*keys_of(game_id))

    async def _copy_key(self, key: str) -> None:
        await self._source.copy_key(key, self._target)

    async def _copy_changes(self, copied: Iterable[str]) -> None:
        """Copies games that have changed since, and all drafts and presence, which change no etag.

        Args:
            copied: The games that were copied before; those that the source no longer has are deleted at the target.
        """
        games = await self._source.games()
        await _for_each(set(copied) - set(games), self._delete_copy)
        here, there = await _etags(self._source, games), await _etags(self._target, games)
        changed = {game for game in games if here[game] != there[game]}
        self._progress(f"copying {len(changed)} games that have changed")
        await self._copy_games(changed)
        await _for_each((key for game in games if game not in changed for key in keys_of(game)[3:]), self._copy_key)

    async def _copy_names(self) -> int:
        """Copies the secret and the names of games; returns how many names."""
        names = {key async for key in self._source.keys(f"{_NAME_PREFIX}*")}
        await _for_each([SECRET, *names], self._copy_key)
        return len(names)

    async def _copy_shared(self) -> None:
        """Copies keys that span games, each member to the part of its game. Raises MigrationError for unknown keys."""
        known = {SECRET, PROBE, MARK}
        own = {key async for key in self._source.keys("rummikub:*")} - known
        for key in sorted(own):
            if key.startswith(_NAME_PREFIX) or _is_key_of_game(key):
                continue
            part = next((part for part in self._source.parts if key.startswith(part)), None)
            if part is None:
                if not key.endswith(":probe"):
                    raise MigrationError(f"{key}: unknown key; this version cannot move it")
                continue
            if key == outbox_key(part):
                await self._copy_outbox(key)
            elif key != change_log_key(part):
                await self._copy_sorted_set(key, key.removeprefix(part))

    async def _copy_outbox(self, key: str) -> None:
        """Appends the entries of a part of the outbox anew: their games are archived once more if they were already."""
        for _, fields in await self._source.client.xrange(key):
            part = part_of(self._target.parts, fields[b"game"].decode())
            await self._target.client.xadd(outbox_key(part), fields)

    async def _copy_sorted_set(self, key: str, name: str) -> None:
        try:
            members = await self._source.client.zrange(key, 0, -1, withscores=True)
        except exceptions.ResponseError:
            raise MigrationError(f"{key}: unknown key; this version cannot move it") from None
        left_ms = await self._source.client.pttl(key)
        by_part: dict[str, dict[bytes, float]] = {}
        for member, score in members:
            game_id = member.decode(errors="replace")
            game_id = game_id if name == "deadlines" else game_of_member(game_id)
            by_part.setdefault(part_of(self._target.parts, game_id), {})[member] = score
        for part, scores in by_part.items():
            await self._target.client.zadd(f"{part}{name}", scores)
            if left_ms > 0:
                await self._target.client.pexpire(f"{part}{name}", left_ms)

    async def _verify(self) -> int:
        """Compares the stores; returns the number of games. Raises MigrationError if something was not moved."""
        games = await self._source.games()
        here, there = await _etags(self._source, games), await _etags(self._target, games)
        differing = sum(here[game] is not None and here[game] != there[game] for game in games)
        if differing:
            raise MigrationError(f"{differing} of {len(games)} games differ after the copy; the source is as before")
        deleted = len(set(await self._target.games()) - set(games))
        if deleted:
            raise MigrationError(f"the target has {deleted} games that the source lacks; the source is as before")
        if await self._source.client.get(SECRET) != await self._target.client.get(SECRET):
            raise MigrationError("the secret differs after the copy; the source is as before")
        due = [
            sum(await asyncio.gather(*(store.client.zcard(deadlines_key(part)) for part in store.parts)))
            for store in (self._source, self._target)
        ]
        if due[0] != due[1]:
            raise MigrationError(f"{due[0] - due[1]} deadlines are missing after the copy; the source is as before")
        self._progress(f"all {len(games)} games are equal")
        return len(games)


def _is_key_of_game(key: str) -> bool:
    """Returns whether a key belongs to one game; the hash tags of parts and probes are shorter than a game's id."""
    return key.startswith(_GAME_PREFIX) and len(key.removeprefix(_GAME_PREFIX).partition("}")[0]) == ID_LENGTH


async def _etags(store: _Store, games: Iterable[str]) -> dict[str, bytes | None]:
    """Returns the etag of each game; None for one that does not exist."""
    etags: dict[str, bytes | None] = {}

    async def read(game: str) -> None:
        etags[game] = await store.client.hget(keys_of(game)[0], "etag")

    await _for_each(games, read)
    return etags


async def _unmark(store: _Store) -> None:
    """Makes a store that was moved away from accept writes."""
    guard = await store.client.get(MARK)
    await store.accept_writes(guard.decode())


async def _for_each(keys: Iterable[str], work: Callable[[str], Awaitable[object]]) -> None:
    """Does work on keys, AT_ONCE at the same time."""
    remaining = iter(keys)

    async def worker() -> None:
        for key in remaining:
            await work(key)

    workers = [asyncio.create_task(worker()) for _ in range(AT_ONCE)]
    try:
        await asyncio.gather(*workers)
    finally:  # after a failure the others must not use connections that are being closed
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
