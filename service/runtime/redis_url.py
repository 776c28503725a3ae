"""Parses RUMMIKUB_REDIS_URL: one Redis, Sentinels, or the nodes of a Cluster.

    redis://user:password@host:port/database?options                      One; also rediss:// and unix://path
    redis+sentinel://user:password@host:port,host:port/name/database?options  Sentinel; also rediss+sentinel://
    redis+cluster://user:password@host:port,host:port/?options            Cluster; also rediss+cluster://

User, password and options are those of the Redis servers; Sentinels have `sentinel_username` and `sentinel_password` as
options. `rediss` means TLS, to Sentinels too. It imports nothing of the service and does no I/O, so that the settings
can use it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

SENTINEL_PORT: Final = 26_379
REDIS_PORT: Final = 6_379

ONE_FORM: Final = "redis://host:port/database, rediss://, unix://path"
SENTINEL_FORM: Final = "redis+sentinel://host:port,host:port/name/database"
CLUSTER_FORM: Final = "redis+cluster://host:port,host:port"
ANY_FORM: Final = f"{ONE_FORM}, {SENTINEL_FORM}, {CLUSTER_FORM}"

_DATABASE: Final = re.compile(r"/?|/\d{1,9}")
"""The path of a URL of one Redis. redis-py uses database 0 for a path that is not a number."""

_PRIMARY: Final = re.compile(r"/(?P<name>[A-Za-z0-9._-]+)(?P<database>/\d{1,9})?/?")
"""The path of a URL of Sentinels: the name that they give to the primary, and the database."""

_HOST: Final = re.compile(r"(?P<host>[^\[\]:@/\s]+|\[[^\[\]]+\])(?::(?P<port>\d{1,5}))?")

_SENTINEL_OPTIONS: Final = {"sentinel_username": "username", "sentinel_password": "password"}
"""The options of a URL that only Sentinels get, each with redis-py's name."""


class RedisUrlError(ValueError):
    """A URL of another form; the message names the expected one and contains nothing of the URL."""


class Address(NamedTuple):
    """The address of a server; the host of an IPv6 address has no brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        """Returns host:port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


Options: TypeAlias = Mapping[str, Any]
"""Keyword arguments of redis-py's connection pools: credentials, database, TLS, time-outs."""


@dataclass(frozen=True, slots=True)
class One:
    """One Redis, alone or with replicas. The options contain its address."""

    shown: str
    """The URL without user, password and options."""
    options: Options = field(repr=False, hash=False)


@dataclass(frozen=True, slots=True)
class Sentinel:
    """A primary that Sentinels watch under a name."""

    shown: str
    addresses: tuple[Address, ...]
    name: str
    options: Options = field(repr=False, hash=False)
    """Options of connections to the primary, without its address."""
    sentinel_options: Options = field(repr=False, hash=False)
    """Options of connections to the Sentinels, without their addresses."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Redis Cluster, known by some of its nodes."""

    shown: str
    nodes: tuple[Address, ...]
    options: Options = field(repr=False, hash=False)
    """Options of connections to its nodes, without their addresses."""


RedisUrl: TypeAlias = One | Sentinel | Cluster


def parse_redis_url(text: str) -> RedisUrl:
    """Returns the store that a URL names. Raises RedisUrlError."""
    parts = _split(text)
    match parts.scheme:
        case "redis" | "rediss" | "unix":
            return _one(text, parts)
        case "redis+sentinel" | "rediss+sentinel":
            return _sentinel(parts)
        case "redis+cluster" | "rediss+cluster":
            return _cluster(parts)
        case _:
            raise RedisUrlError(_expected(ANY_FORM))


def _split(text: str) -> SplitResult:
    """Returns the parts of a URL. A fragment is none of them: it is the rest of a password with an unescaped #."""
    try:
        parts = urlsplit(text)
    except ValueError:
        raise RedisUrlError(_expected(ANY_FORM)) from None
    if parts.fragment:
        raise RedisUrlError(_expected(ANY_FORM, ", and # in a password as %23"))
    return parts


def _one(text: str, parts: SplitResult) -> One:
    options = _options(text, ONE_FORM)
    if parts.scheme != "unix" and not _DATABASE.fullmatch(parts.path):
        raise RedisUrlError(_expected(ONE_FORM))
    return One(_shown(parts), options)


def _sentinel(parts: SplitResult) -> Sentinel:
    path = _PRIMARY.fullmatch(parts.path)
    if not path:
        raise RedisUrlError(_expected(SENTINEL_FORM, "; name is what the Sentinels call the primary"))
    addresses = _addresses(parts, SENTINEL_PORT, SENTINEL_FORM)
    options = dict(_options(_plain_url(parts, path["database"] or ""), SENTINEL_FORM))
    own = {name: options.pop(given) for given, name in _SENTINEL_OPTIONS.items() if given in options}
    shared = {
        name: value
        for name, value in options.items()
        if name in {"connection_class", "protocol"} or name.startswith(("ssl_", "socket_"))
    }
    return Sentinel(_shown(parts), addresses, path["name"], options=options, sentinel_options=shared | own)


def _cluster(parts: SplitResult) -> Cluster:
    options = _options(_plain_url(parts, ""), CLUSTER_FORM)
    if parts.path not in {"", "/", "/0"} or options.get("db", 0) != 0:
        raise RedisUrlError(_expected(CLUSTER_FORM, "; a Cluster has database 0 only"))
    nodes = _addresses(parts, REDIS_PORT, CLUSTER_FORM)
    return Cluster(_shown(parts), nodes, options={key: options[key] for key in options if key != "db"})


def _options(text: str, form: str) -> Options:
    """Returns the options in the URL of one Redis. Raises RedisUrlError, which names the expected form."""
    from redis.asyncio.connection import BlockingConnectionPool, parse_url  # noqa: PLC0415 - no URL, no redis-py
    from redis.exceptions import RedisError  # noqa: PLC0415 - as above

    try:
        options: dict[str, Any] = {**parse_url(text)}
        known = {name: options[name] for name in options if form != SENTINEL_FORM or name not in _SENTINEL_OPTIONS}
        pool = BlockingConnectionPool(**known)
        pool.connection_class(**pool.connection_kwargs)  # raises TypeError for unknown options
    except (ValueError, TypeError, RedisError):
        raise RedisUrlError(_expected(form)) from None
    return options


def _plain_url(parts: SplitResult, path: str) -> str:
    """Returns the URL of one Redis without a host, with the user, password and options of a URL of several hosts."""
    user, at, _ = parts.netloc.rpartition("@")
    return f"{parts.scheme.partition('+')[0]}://{user}{at}{path}?{parts.query}"


def _addresses(parts: SplitResult, port: int, form: str) -> tuple[Address, ...]:
    found = [_HOST.fullmatch(host) for host in _hosts(parts).split(",")]
    addresses = tuple(
        Address(unquote(host["host"].strip("[]")), int(host["port"] or port)) for host in found if host is not None
    )
    if len(addresses) < len(found) or not all(0 < address.port < 65_536 for address in addresses):
        raise RedisUrlError(_expected(form))
    return addresses


def _hosts(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _shown(parts: SplitResult) -> str:
    return f"{parts.scheme}://{_hosts(parts)}{parts.path}"


def _expected(form: str, more: str = "") -> str:
    """Returns the message about a wrong URL."""
    return f"expected {form} or memory://, with options of redis-py{more}"
