"""Moves all games from one Redis to a Redis Cluster or to a primary behind Sentinels, or back, while servers run.

All games are copied while they are played, and those that have changed again, until few have. Then the source refuses
every write (min-replicas-to-write), so servers answer STORE_UNAVAILABLE and clients retry. All games are compared, and
the last changes copied, then the keys that span games, in the target's parts. If a step fails, the source accepts
writes again; if that fails at a node, the error names it, and `undo` tries again. The change log is copied like the
games: most of it before, the rest after the source refuses writes. Presence is copied with its game only: servers soon
report it again.

A mark on the source remembers its former setting. No server uses a store with a mark, also after a restart, in which
Redis forgets to refuse writes. `undo` returns to the setting, and marks the target instead, which refuses writes from
then on. A store with a mark has been moved away from, so its games are outdated, and a migration to it replaces them.
So it does with what a failed migration has left, which has a mark of its own.

Behind Sentinels, it uses the primary that they name at the beginning. The primary's replicas refuse writes too, because
one of them may be promoted. A failover meanwhile makes the migration fail.

It uses redis-py's clients, whose cluster client is slower than the store's but scans all nodes.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import redis.asyncio as redis
from redis import exceptions

from service.operator.content import SCANNED, Keys, Keyspace, for_each
from service.operator.log_copy import ChangeLogCopy
from service.storage.lists import game_of_member
from service.storage.redis.deployment import GUARD, MAX_LAG, REFUSE_ALL
from service.storage.redis.keys import (
    MARK,
    PROBE,
    SECRET,
    UNFINISHED,
    change_log_key,
    deadlines_key,
    keys_of,
    outbox_key,
    part_of,
)

FEW: Final = 1_000
"""Changed games that are left to the time in which the source refuses writes."""
FAILURES: Final = (exceptions.RedisError, exceptions.RedisClusterException, OSError, TimeoutError)

_STATE: Final = """\
local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
return {
  redis.call('HGET', KEYS[1], 'etag') or '', newest and newest[1] or '', redis.call('HGET', KEYS[3], 'number') or ''
}
"""
"""A script that returns the etag of a game, the id of its newest change, and the number of its draft.

KEYS: snapshot, stream, draft.
"""

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


class _Store(Keyspace):
    """A store that can refuse writes."""

    async def states(self, games: Iterable[str]) -> list[tuple[bytes, ...]]:
        """Returns values of each game that a change or a draft changes. The first is empty if there is no game."""
        pipeline = self.client.pipeline(transaction=False)
        for game in games:
            snapshot, _, stream, draft, _ = keys_of(game)
            pipeline.eval(_STATE, 3, snapshot, stream, draft)
        return [tuple(state) for state in await pipeline.execute()]

    async def guard(self) -> str:
        """Returns the setting that refuses writes. Raises MigrationError if it cannot be used."""
        try:
            guard = await self._setting(GUARD)
            await self.set_guard(guard)
            if await self._setting(MAX_LAG) == "0":
                raise MigrationError(f"{self.shown}: {MAX_LAG} is 0, so writes cannot be stopped: set it to 10")
        except exceptions.ResponseError as error:
            raise MigrationError(
                f"{self.shown}: CONFIG is refused ({error}), so writes cannot be stopped: stop all servers and use "
                f"--stopped, or give a user with the right to CONFIG"
            ) from None
        return guard

    async def _setting(self, name: str) -> str:
        """Returns a setting, which all nodes must share. Raises MigrationError."""
        values = {
            node: str((await client.execute_command("CONFIG GET", name))[name])
            for node, client in self._servers().items()
        }
        if len(set(values.values())) > 1:
            differing = ", ".join(f"{value} at {node}" for node, value in values.items())
            raise MigrationError(f"{name} is {differing}: set the same value everywhere")
        return next(iter(values.values()))

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
        """Sets GUARD on all servers; returns the errors by server."""
        errors: dict[str, Exception] = {}
        for name, server in self._servers().items():
            try:
                await server.execute_command("CONFIG SET", GUARD, value)
            except FAILURES as error:
                errors[name] = error
        return errors

    def _servers(self) -> dict[str, Any]:
        """Returns all nodes, and replicas that may be promoted, by name."""
        if isinstance(self.client, redis.RedisCluster):
            return {node.name: node for node in self.client.get_nodes()}
        return {self.shown: self.client, **self.replicas}

    async def copy_games_to(self, target: Keyspace, games: Sequence[str]) -> None:
        """Copies games, each as it is at one moment."""
        await target.write(await self.games(games))

    async def copy_to(self, target: Keyspace, keys: Sequence[str]) -> None:
        """Copies keys with their lifetimes. One that has expired is deleted at the target."""
        await target.write(await self.content(keys))


def _text(error: BaseException) -> str:
    """Returns an error as a part of a message."""
    if isinstance(error, asyncio.CancelledError):
        return "interrupted"
    if isinstance(error, FAILURES):
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
        except FAILURES as error:
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
        games = (await source.keys()).games
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
    except (MigrationError, *FAILURES) as failure:
        raise MigrationError(
            f"{_text(error)}; then {_text(failure)}: writes are refused there until you run: {command}"
        ) from error
    progress(f"{store.shown} accepts writes again")


async def _check_unchanged(source: _Store, target: _Store, games: set[str]) -> None:
    """Raises MigrationError if games have changed on the target of a migration since."""
    changed, new = await _differing(target, source, games), (await target.keys()).games - games
    if changed or new:
        raise MigrationError(
            f"{len(changed)} games have changed and {len(new)} were created on {target.shown} since: "
            f"move them back with --from {target.shown} --to {source.shown}"
        )


async def _differing(store: _Store, other: _Store, games: Iterable[str]) -> set[str]:
    """Returns which games of a store are different or missing in another one."""
    differing: set[str] = set()

    async def compare(some: Sequence[str]) -> None:
        here, there = await asyncio.gather(store.states(some), other.states(some))
        states = zip(some, here, there, strict=True)
        differing.update(game for game, state, other_state in states if state[0] and state != other_state)

    await for_each(games, compare)
    return differing


class _Migration:
    """One run of a migration."""

    def __init__(self, source: _Store, target: _Store, progress: Progress, is_stopped: bool) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._is_stopped = is_stopped
        self._copied: set[str] = set()
        """The games that were copied."""
        self._log = ChangeLogCopy(source.client, source.parts, target.client, target.parts)

    async def run(self) -> Moved:
        """Moves all games."""
        await self._check()
        await self._target.client.set(UNFINISHED, "")
        await self._copy_most()
        await self._log.clear()
        await self._log.append()
        guard = "" if self._is_stopped else await self._source.guard()
        began = asyncio.get_running_loop().time()
        try:
            if not self._is_stopped:
                self._progress(f"{self._source.shown} refuses writes from now on")
                await self._source.refuse_writes(guard)
            keys = await self._copy_rest()
            await self._log.append()
            await self._log.expire()
            await self._verify(keys.games)
            await self._target.client.delete(UNFINISHED)
        except BaseException as error:
            if not self._is_stopped:
                command = _undo_command(self._source, self._target)
                await _restore(self._source, guard, error, self._progress, command)
            raise
        seconds = asyncio.get_running_loop().time() - began
        return Moved(len(keys.games), len(keys.names), seconds)

    async def _check(self) -> None:
        """Raises MigrationError if the games cannot be moved. Empties a target whose games are outdated."""
        if self._source.shown == self._target.shown:
            raise MigrationError("source and target are the same")
        if await self._source.client.get(MARK) is not None:
            raise MigrationError(f"{self._source.shown} was moved away from before: its games are outdated; see --undo")
        if await self._source.client.get(UNFINISHED) is not None:
            raise MigrationError(f"a migration to {self._source.shown} has not finished: it lacks games")
        if not self._is_stopped:
            await self._source.guard()
        mark = await self._target.client.get(MARK)
        if mark is not None:
            await self._target.set_guard(mark.decode())
        if mark is not None or await self._target.client.get(UNFINISHED) is not None:
            self._progress(f"deleting the outdated games at {self._target.shown}")
            await self._target.client.set(UNFINISHED, "")  # if this is interrupted, the next migration goes on with it
            await self._target.erase()
        if (await self._target.keys()).games:
            raise MigrationError(f"{self._target.shown} has games already: move to an empty store")

    async def _copy_most(self) -> None:
        """Copies all games, then those that have changed, until few have or copying them does not help."""
        self._copied = (await self._source.keys()).games
        self._progress(f"copying {len(self._copied)} games")
        await for_each(self._copied, self._copy_games)
        before = len(self._copied)
        while FEW < (changed := len((await self._copy_changes("{}"))[1])) <= before / 2:
            before = changed

    async def _copy_changes(self, which: str) -> tuple[Keys, set[str]]:
        """Copies games that have changed since; returns the keys of the source and the games that were copied.

        Args:
            which: How many games these are, for the progress.
        """
        keys = await self._source.keys()
        await self._target.delete_games(self._copied - keys.games)
        self._copied = keys.games
        changed = await _differing(self._source, self._target, keys.games)
        self._progress(f"copying {which.format(len(changed))} games that have changed")
        await for_each(changed, self._copy_games)
        return keys, changed

    async def _copy_games(self, games: Sequence[str]) -> None:
        """Copies games. The etag is read first, so a game that changes meanwhile differs and is copied again."""
        await self._source.copy_games_to(self._target, games)

    async def _copy_keys(self, keys: Sequence[str]) -> None:
        await self._source.copy_to(self._target, keys)

    async def _copy_rest(self) -> Keys:
        """Copies the last changes and everything that is no game. Raises MigrationError if games differ then."""
        keys, changed = await self._copy_changes("the last {}")
        differing = await _differing(self._source, self._target, changed)  # all others were equal
        if differing:
            raise MigrationError(f"{len(differing)} of {len(keys.games)} games differ after the copy")
        await for_each([SECRET, *keys.names], self._copy_keys)
        await self._copy_shared(keys.shared)
        return keys

    async def _copy_shared(self, keys: Iterable[str]) -> None:
        """Copies keys that span games, each member to the part of its game. Raises MigrationError for unknown keys."""
        known = {SECRET, PROBE, MARK}
        for key in sorted(set(keys) - known):
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
        left_ms = await self._source.client.pttl(key)
        written: set[str] = set()
        for start in itertools.count(step=SCANNED):
            try:
                members = await self._source.client.zrange(key, start, start + SCANNED - 1, withscores=True)
            except exceptions.ResponseError:
                raise MigrationError(f"{key}: unknown key; this version cannot move it") from None
            if not members:
                break
            by_part: dict[str, dict[bytes, float]] = {}
            for member, score in members:
                game_id = member.decode(errors="replace")
                game_id = game_id if name == "deadlines" else game_of_member(game_id)
                by_part.setdefault(part_of(self._target.parts, game_id), {})[member] = score
            for part, scores in by_part.items():
                await self._target.client.zadd(f"{part}{name}", scores)
            written |= by_part.keys()
        if left_ms > 0:
            for part in written:
                await self._target.client.pexpire(f"{part}{name}", left_ms)

    async def _verify(self, games: set[str]) -> None:
        """Compares what is not in one game. Raises MigrationError if something was not moved."""
        deleted = len((await self._target.keys()).games - games)
        if deleted:
            raise MigrationError(f"the target has {deleted} games that the source lacks")
        if await self._source.client.get(SECRET) != await self._target.client.get(SECRET):
            raise MigrationError("the secret differs after the copy")
        due = [
            sum(await asyncio.gather(*(store.client.zcard(deadlines_key(part)) for part in store.parts)))
            for store in (self._source, self._target)
        ]
        if due[0] != due[1]:
            raise MigrationError(f"{due[0] - due[1]} deadlines are missing after the copy")
        self._progress(f"all {len(games)} games are equal")


async def _unmark(store: _Store) -> None:
    """Makes a store that was moved away from accept writes."""
    guard = await store.client.get(MARK)
    await store.accept_writes(guard.decode())
