"""`rummikub-admin failover`: makes a replica the primary without losing an acknowledged turn.

SENTINEL FAILOVER alone promotes a replica while the primary goes on to accept writes, which are lost. Here the primary
first refuses all writes: `min-replicas-to-write` higher than any number of replicas does that at once, in scripts too.
When all replicas have what was acknowledged, the failover is ordered. The setting is restored when the old primary is a
replica, or at once if anything fails before the failover.

The new primary accepts writes only with a replica. The old one goes on to publish, which the others replicate and the
new one does not: a replica that follows the old primary for that long must copy the new one from the start. So the
other replicas follow the next primary before it becomes one. For that, the Sentinel must prefer one replica, which is
given a low `replica-priority` first. The old primary is made a replica at once, not after the ten seconds that a
Sentinel waits. A user without the rights for this gets a longer pause.
"""

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias, cast

import redis.asyncio as redis
from redis import exceptions
from redis.asyncio.connection import BlockingConnectionPool

from service.admin_program.command import AdminError, cancel_on_signals, report
from service.runtime.redis_url import Address, Options, RedisUrlError, Sentinel, parse_redis_url
from service.storage.redis.deployment import GUARD, MAX_LAG, REFUSE_ALL, replicas_in

NAME: Final = "failover"
HELP: Final = "make a replica the primary of a redis+sentinel:// store, without losing a turn"

POLL_SECONDS: Final = 0.05
REPLY_SECONDS: Final = 2.0
RESTORE_SECONDS: Final = 5.0
FOLLOW_SECONDS: Final = 2.0
"""How long the other replicas may take to follow the next primary; then they do it after the failover."""
PRIORITY: Final = "replica-priority"
PREFERRED: Final = 1
"""The value of PRIORITY that a Sentinel prefers; 0 is never promoted."""
SYNC_DELAY: Final = "repl-diskless-sync-delay"
"""How many seconds a primary lets a replica wait that must copy it from the start."""

_Servers: TypeAlias = Mapping[Address, "redis.Redis"]

_FAILURES: Final = (exceptions.RedisError, OSError, TimeoutError)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("url", help="the store's URL, redis+sentinel://host:port,host:port/name")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of the whole failover (60)")
    parser.add_argument("--dry-run", action="store_true", help="check everything and change nothing")


async def run(arguments: argparse.Namespace) -> int:
    """Fails over. Raises AdminError, which names the primary."""
    try:
        url = parse_redis_url(arguments.url)
    except RedisUrlError as error:
        raise AdminError(f"the URL is not valid: {error}") from None
    if not isinstance(url, Sentinel):
        raise AdminError("the URL is not of Sentinels: expected redis+sentinel://host:port,host:port/name")
    cancel_on_signals()
    async with contextlib.AsyncExitStack() as stack:
        await Failover(url, stack, report).run(arguments.seconds, is_dry=arguments.dry_run)
    return 0


@dataclass
class Failover:
    """An ordered failover.

    Args:
        url: The Sentinels and the primary's name.
        stack: Closes the connections.
        report: Receives each step.
    """

    url: Sentinel
    stack: contextlib.AsyncExitStack
    report: Callable[[str], None]
    sentinels: Mapping[Address, "redis.Redis"] = field(default_factory=dict)
    is_ordered: bool = False

    async def run(self, seconds: float, *, is_dry: bool) -> None:
        """Fails over. Raises AdminError."""
        self.sentinels = {
            address: await self._client(address, self.url.sentinel_options) for address in self.url.addresses
        }
        old = await self._primary()
        primary = await self._client(old, self.url.options)
        try:
            least = await self._check(old, primary)
            if is_dry:
                self.report("dry run: everything is ready, nothing was changed")
                return
            async with asyncio.timeout(seconds):
                async with self._preferred(primary) as (preferred, others), self._refused_writes(old, primary, least):
                    await self._wait_for_replicas(primary)
                    async with self._following(preferred, others, old):
                        await self._order()
                        new = await self._switched(old)
                    self.report(f"{new} is the primary; waiting until {old} is its replica")
                    await self._replicate({old: primary}, new)
                    await _until(lambda: _is_replica(primary))
        except TimeoutError:
            raise AdminError(f"not done within {seconds:g} s: {await self._outcome(old)}") from None
        except asyncio.CancelledError:
            raise AdminError(f"interrupted: {await self._outcome(old)}") from None
        except _FAILURES as error:
            raise AdminError(f"{error}: {await self._outcome(old)}") from error
        self.report(f"done: {new} is the primary, {old} is a replica")

    async def _client(self, address: Address, options: Options) -> "redis.Redis":
        defaults = {"socket_timeout": REPLY_SECONDS, "socket_connect_timeout": REPLY_SECONDS}
        pool = BlockingConnectionPool(**{**defaults, **options, "host": address.host, "port": address.port})
        return await self.stack.enter_async_context(redis.Redis.from_pool(pool))

    async def _primary(self) -> Address:
        """Returns the primary that all Sentinels in reach name. Raises AdminError."""
        named: set[Address] = set()
        for address, sentinel in self.sentinels.items():
            try:
                state = cast("dict[str, Any]", await sentinel.sentinel_master(self.url.name))
                await sentinel.sentinel_ckquorum(self.url.name)
            except _FAILURES as error:
                raise AdminError(f"Sentinel {address} cannot take part: {error}") from None
            if "failover_in_progress" in str(state["flags"]):
                raise AdminError(f"Sentinel {address} already makes a failover: try again when it is done")
            named.add(Address(str(state["ip"]), int(state["port"])))
        if len(named) > 1:
            raise AdminError(f"the Sentinels name different primaries: {', '.join(map(str, sorted(named)))}")
        return named.pop()

    async def _check(self, old: Address, primary: "redis.Redis") -> str:
        """Returns the primary's min-replicas-to-write. Raises AdminError if the failover cannot succeed."""
        replication = await primary.info("replication")
        replicas = replicas_in(replication)
        if replication["role"] != "master" or not replicas:
            raise AdminError(f"{old} is not a primary with a replica")
        behind = [str(address) for address, replica in replicas.items() if replica["state"] != "online"]
        if behind:
            raise AdminError(f"replicas are not in step: {', '.join(behind)}: try again when they are")
        least = (await primary.config_get(GUARD)).get(GUARD)
        if least is None or int(least) >= REFUSE_ALL:
            raise AdminError(
                f"{GUARD} of {old} is {least}: this user must be allowed to read it, and it must be smaller"
            )
        if (await primary.config_get(MAX_LAG)).get(MAX_LAG) == "0":
            raise AdminError(f"{MAX_LAG} of {old} is 0, so it would ignore {GUARD}: set it to 10")
        self.report(f"{old} is the primary; replicas {', '.join(map(str, replicas))}; {GUARD} {least}")
        if len(replicas) <= int(least):
            self.report(f"the new primary refuses turns until {old} is its replica, as {GUARD} is {least}")
        return str(least)

    @contextlib.asynccontextmanager
    async def _preferred(self, primary: "redis.Redis") -> AsyncIterator[tuple[Address | None, _Servers]]:
        """Makes the Sentinel prefer one replica within the context. Yields it, and the others.

        Yields no replica if that is not possible, or not needed because there is one only.
        """
        replicas = {
            address: await self._client(address, self.url.options)
            for address in replicas_in(await primary.info("replication"))
        }
        async with contextlib.AsyncExitStack() as stack:
            preferred: Address | None = None
            try:
                priorities = {address: int(await _get(server, PRIORITY)) for address, server in replicas.items()}
                eligible = [address for address, priority in priorities.items() if priority > 0]
                first = min(eligible, key=priorities.__getitem__)
                await stack.enter_async_context(self._changed(first, replicas[first], SYNC_DELAY, "0"))
                if any(priorities[address] == priorities[first] for address in eligible if address != first):
                    if priorities[first] == PREFERRED:
                        raise ValueError(f"several have {PRIORITY} {PREFERRED}")  # noqa: TRY301 - as what Redis refuses
                    await stack.enter_async_context(self._changed(first, replicas[first], PRIORITY, str(PREFERRED)))
                    await self._wait_for_sentinel(first)
                preferred = first if len(replicas) > 1 else None
            except (exceptions.ResponseError, KeyError, ValueError) as error:
                self.report(f"writes may be refused for longer, as no replica can be preferred: {error}")
            yield preferred, {address: server for address, server in replicas.items() if address != preferred}

    @contextlib.asynccontextmanager
    async def _changed(self, address: Address, server: "redis.Redis", name: str, value: str) -> AsyncIterator[None]:
        """Changes a setting of a server within the context."""
        before = await _get(server, name)
        if before == value:
            yield
            return
        self.report(f"{address}: {name} is {value} for now; to undo it by hand: redis-cli CONFIG SET {name} {before}")
        try:
            await server.config_set(name, value)
            yield
        finally:
            async with asyncio.timeout(RESTORE_SECONDS):
                await _set(server, name, before)

    async def _wait_for_sentinel(self, preferred: Address) -> None:
        """Waits until the Sentinel that makes the failover knows which replica to prefer."""
        self.report(f"waiting until Sentinel {next(iter(self.sentinels))} knows it (some 10 s)")
        sentinel = next(iter(self.sentinels.values()))

        async def knows() -> bool:
            found = await sentinel.sentinel_slaves(self.url.name)
            known = {Address(str(one["ip"]), int(one["port"])): int(one["slave-priority"]) for one in found}
            return known.get(preferred) == PREFERRED

        await _until(knows)

    @contextlib.asynccontextmanager
    async def _following(self, preferred: Address | None, others: _Servers, old: Address) -> AsyncIterator[None]:
        """Lets the other replicas follow the next primary; if there is no failover, the old one again."""
        if preferred is None or not await self._replicate(others, preferred):
            yield
            return
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FOLLOW_SECONDS):
                    for server in others.values():
                        await _until(partial(_is_replica, server))
            yield
        finally:
            if not self.is_ordered or not await self._may_have_switched(old):
                await self._replicate(others, old)

    async def _replicate(self, servers: _Servers, primary: Address) -> bool:
        """Makes servers replicas of another one. Returns False if a right is missing; Sentinels do it later."""
        for address, server in servers.items():
            try:
                await server.replicaof(primary.host, primary.port)
            except exceptions.ResponseError as error:
                self.report(f"{address} follows {primary} later, by its Sentinels: {error}")
                return False
        return True

    @contextlib.asynccontextmanager
    async def _refused_writes(self, old: Address, primary: "redis.Redis", least: str) -> AsyncIterator[None]:
        """Makes a primary refuse all writes within the context. Restores its setting unless it may lose writes then."""
        self.report(f"{old} refuses writes from now on; to undo it by hand: redis-cli CONFIG SET {GUARD} {least}")
        try:
            await primary.config_set(GUARD, REFUSE_ALL)
            yield
        finally:
            async with asyncio.timeout(RESTORE_SECONDS):
                await self._restore(old, primary, least)

    async def _restore(self, old: Address, primary: "redis.Redis", least: str) -> None:
        if self.is_ordered and not await _is_replica(primary) and await self._may_have_switched(old):
            self.report(
                f"{old} still refuses writes, because another one may be the primary: when it is a replica, "
                f"CONFIG SET {GUARD} {least} there"
            )
            return
        await _set(primary, GUARD, least)
        self.report(f"{old}: {GUARD} is {least} again")

    async def _wait_for_replicas(self, primary: "redis.Redis") -> None:
        """Waits until all replicas have all acknowledged writes."""
        offset = (await primary.info("replication"))["master_repl_offset"]

        async def have_all() -> bool:
            replicas = replicas_in(await primary.info("replication"))
            return bool(replicas) and all(int(replica["offset"]) >= offset for replica in replicas.values())

        await _until(have_all)
        self.report(f"all replicas have offset {offset}")

    async def _order(self) -> None:
        address, sentinel = next(iter(self.sentinels.items()))
        self.is_ordered = True
        await sentinel.sentinel_failover(self.url.name)
        self.report(f"failover ordered at Sentinel {address}")

    async def _switched(self, old: Address) -> Address:
        """Returns the new primary when all Sentinels name it and it accepts its role."""
        named: set[Address] = set()

        async def have_switched() -> bool:
            named.clear()
            named.update([await self._named_by(sentinel) for sentinel in self.sentinels.values()])
            return len(named) == 1 and old not in named

        await _until(have_switched)
        new = named.pop()
        client = await self._client(new, self.url.options)

        async def is_primary() -> bool:
            return bool((await client.info("replication"))["role"] == "master")

        await _until(is_primary)
        return new

    async def _named_by(self, sentinel: "redis.Redis") -> Address:
        host, port = cast("tuple[bytes, int]", await sentinel.sentinel_get_master_addr_by_name(self.url.name))
        return Address(host.decode(), port)

    async def _may_have_switched(self, old: Address) -> bool:
        """Returns whether some Sentinel does not answer, makes a failover, or names another primary."""
        for sentinel in self.sentinels.values():
            try:
                state = cast("dict[str, Any]", await sentinel.sentinel_master(self.url.name))
                if "failover_in_progress" in str(state["flags"]) or await self._named_by(sentinel) != old:
                    return True
            except _FAILURES:
                return True
        return False

    async def _outcome(self, old: Address) -> str:
        """Returns which server is the primary now, as a part of a message."""
        if self.is_ordered and await self._may_have_switched(old):
            return f"ask the Sentinels for the primary; {old} may not be it any more"
        return f"{old} is still the primary"


async def _get(server: "redis.Redis", name: str) -> str:
    """Returns a setting of a server. Raises KeyError if it does not have it."""
    return str((await server.config_get(name))[name])


async def _set(server: "redis.Redis", name: str, value: str) -> None:
    """Sets a setting of a server, and in its file: Sentinel may have written the temporary value there."""

    async def is_set() -> bool:
        await server.config_set(name, value)
        with contextlib.suppress(exceptions.ResponseError):  # it has no configuration file
            await server.config_rewrite()
        return True

    await _until(is_set)


async def _is_replica(server: "redis.Redis") -> bool:
    """Returns whether a server is a replica that follows its primary."""
    replication = await server.info("replication")
    return bool(replication["role"] == "slave" and replication["master_link_status"] == "up")


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Polls a condition. A server may close its connections meanwhile, when its role changes."""
    while True:
        with contextlib.suppress(exceptions.ConnectionError):
            if await condition():
                return
        await asyncio.sleep(POLL_SECONDS)
