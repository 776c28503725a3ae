"""The service's settings: read once from the environment, frozen, validated with errors that name the variable."""

import os
import re
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from redis.asyncio.connection import BlockingConnectionPool
from redis.exceptions import RedisError

PREFIX: Final = "RUMMIKUB_"

SECRET: Final = frozenset({"redis_url"})
"""Settings that may hold a password and are never printed."""

_SERVICE_LINK: Final = re.compile(r"\w+_SERVICE_(HOST|PORT(_\w+)?)|\w+_PORT(_\d+_(TCP|UDP)(_\w+)?)?")
"""Variables that Kubernetes sets for a Service by the name of rummikub; they are not settings of ours."""

_HOST: Final = re.compile(r"[^\[\]:]+|\[[^\[\]]+\]")
"""The host of an address: colons in brackets only, as gRPC would look for the port behind any other."""

_DATABASE: Final = re.compile(r"/?|/\d{1,9}")
"""The path of a redis_url; redis-py takes what is no number for database 0."""

_CPU_LIMIT: Final = Path("/sys/fs/cgroup/cpu.max")
"""Where Linux tells a container how much of the processors it may use."""

MEMORY_URL: Final = "memory://"
"""The redis_url of a store in memory, which keeps nothing."""

_MOST: Final = 100_000_000
"""The largest number of a setting where nothing else limits it: what gRPC and Redis take, even a few times over."""

_CENTURY: Final = 3_155_760_000
"""The longest that a game is kept, in seconds."""

_DAY: Final = 86_400
"""The longest that a setting has the server wait, in seconds."""


class SettingsError(Exception):
    """Settings that cannot be used; the message names each variable and says what was expected."""


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not (_HOST.fullmatch(host) and port.isdecimal() and int(port) < 65536):
        raise ValueError("expected host:port, like 127.0.0.1:50051 or [::1]:50051")
    return text


def _store_url(text: str) -> str:
    if text not in {"", MEMORY_URL} and not _is_redis_url(text):
        raise ValueError("expected redis://host:port/database, rediss:// or unix://path, or memory:// to keep nothing")
    return text


def _is_redis_url(text: str) -> bool:
    try:
        pool = BlockingConnectionPool.from_url(text)
        pool.connection_class(**pool.connection_kwargs)  # refuses options that it does not know
    except (ValueError, TypeError, RedisError):
        return False
    parts = urlsplit(text)
    return parts.scheme == "unix" or bool(_DATABASE.fullmatch(parts.path))


def _address_if_any(text: str) -> str:
    return _address(text) if text else text


def _readable(path: Path | None) -> Path | None:
    if path is not None and not path.is_file():
        raise ValueError(f"there is no file {path}")
    return path


def _number_of_workers(given: object) -> object:
    if given in {"auto", "0", 0}:
        return usable_cores()
    if isinstance(given, str) and not given.isdecimal():
        raise ValueError("expected how many, or auto for as many as there are cores")
    return given


Address = Annotated[str, AfterValidator(_address)]
Workers = Annotated[int, BeforeValidator(_number_of_workers)]
AddressIfAny = Annotated[str, AfterValidator(_address_if_any)]
ReadableFile = Annotated[Path | None, AfterValidator(_readable)]


class Settings(BaseSettings):
    """The settings; each field is the variable RUMMIKUB_<FIELD>."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    listen: Address = Field("127.0.0.1:50051", description="where gRPC is served")
    validation_listen: AddressIfAny = Field(
        "", description="where ValidationService is served a second time, at half the CPU a call; unset: nowhere"
    )
    metrics_listen: Address = Field("127.0.0.1:9464", description="where Prometheus metrics are served, at /metrics")
    redis_url: Annotated[str, AfterValidator(_store_url)] = Field(
        "", description="the store, like redis://host:6379/0; unset: an embedded one in RUMMIKUB_DATA_DIR"
    )
    workers: Workers = Field(
        1,
        ge=1,
        le=256,
        description="processes that serve, all at the same address; 0 or auto: as many as there are cores",
    )
    data_dir: Path = Field(Path("data"), description="where the embedded store keeps its data")
    tls_cert: ReadableFile = Field(None, description="a file with the certificate chain (PEM); unset: no TLS")
    tls_key: ReadableFile = Field(None, description="a file with the certificate's key (PEM)")
    lobby_ttl_seconds: int = Field(
        3_600, ge=60, le=_CENTURY, description="how long a game that has not started is kept after its last change"
    )
    game_ttl_seconds: int = Field(
        604_800, ge=60, le=_CENTURY, description="how long a started game is kept after its last change"
    )
    finished_ttl_seconds: int = Field(
        86_400, ge=60, le=_CENTURY, description="how long a game that has ended is kept, with its history"
    )
    games_per_minute: int = Field(
        300,
        ge=0,
        le=_MOST,
        description="new games that one address may create in a minute at each server; 0: any number",
    )
    history: int = Field(
        10_000, ge=100, le=_MOST, description="changes of a game that are kept for watchers and ListTurns"
    )
    heartbeat_seconds: float = Field(15.0, gt=0, le=_DAY, description="the longest silence of a WatchGame stream")
    sweep_seconds: float = Field(1.0, gt=0, le=_DAY, description="how often overdue turns are looked for")
    drain_seconds: float = Field(
        10.0, ge=0, le=_DAY, description="how long a stopping server waits for calls under way"
    )
    max_message_bytes: int = Field(262_144, ge=65_536, le=_MOST, description="the largest request")
    max_metadata_bytes: int = Field(8_192, ge=1_024, le=_MOST, description="the largest metadata of a request")
    max_streams: int = Field(1_000, ge=1, le=_MOST, description="most calls at once on one connection")
    max_calls: int = Field(10_000, ge=1, le=_MOST, description="most calls under way at once, watchers included")
    peer_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="the part of calls, streams and searches that one address may hold; 1 where all come from a proxy",
    )
    request_seconds: float = Field(
        10.0, gt=0, le=_DAY, description="how long the request of a call that has begun may take to arrive"
    )
    validation_streams: int = Field(
        1_000, ge=1, le=_MOST, description="most streams at once at RUMMIKUB_VALIDATION_LISTEN"
    )
    analysis_workers: int = Field(
        2, ge=1, le=1_024, description="most processes that search for exact analysis at once"
    )
    analysis_queue: int = Field(64, ge=0, le=_MOST, description="most calls that wait for one of them")
    bot_delay_ms: int = Field(0, ge=0, le=60_000, description="how long a bot waits before each action")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="debug, info, warning or error")

    @model_validator(mode="after")
    def _workers_share_a_store(self) -> "Settings":
        if self.workers > 1 and self.redis_url == MEMORY_URL:
            raise ValueError(
                f"{PREFIX}WORKERS={self.workers}: they need a store that they share, which {MEMORY_URL} is not: set "
                f"{PREFIX}REDIS_URL to a Redis, leave it unset for the embedded store, or serve with one worker"
            )
        return self

    @model_validator(mode="after")
    def _tls_is_whole(self) -> "Settings":
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("RUMMIKUB_TLS_CERT and RUMMIKUB_TLS_KEY belong together: set both or neither")
        if self.tls_cert and self.tls_key:
            try:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self.tls_cert, self.tls_key, password="")  # without one, a terminal is asked
            except (ssl.SSLError, OSError):
                problem = (
                    "RUMMIKUB_TLS_CERT and RUMMIKUB_TLS_KEY: expected a certificate chain and the key of its first "
                    "certificate, in PEM, without a password, both readable"
                )
                raise ValueError(problem) from None
        return self


def usable_cores() -> int:
    """How many processors this process may use: those of the machine, or fewer where it or its container is limited."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        quota, period = _CPU_LIMIT.read_text().split()
        return max(1, min(cores, round(int(quota) / int(period))))
    except (OSError, ValueError):  # there is no limit, which is written as "max"
        return cores


def read_settings(workers: str | None = None) -> Settings:
    """The settings of the environment, and the number of workers if it was given otherwise. Raises SettingsError."""
    unknown = sorted(
        name
        for name in os.environ
        if name.startswith(PREFIX) and _field(name) not in Settings.model_fields and not _SERVICE_LINK.fullmatch(name)
    )
    if unknown:
        raise SettingsError(f"{', '.join(unknown)}: no such setting; see --help")
    try:
        return Settings() if workers is None else Settings.model_validate({"workers": workers})
    except ValidationError as error:
        raise SettingsError("\n".join(_problem(problem) for problem in error.errors())) from None


def _field(name: str) -> str:
    return name.removeprefix(PREFIX).lower()


def _problem(problem: Mapping[str, object]) -> str:
    location = problem["loc"]
    message = str(problem["msg"]).removeprefix("Value error, ")
    if not isinstance(location, tuple) or not location:
        return message
    name = str(location[0])
    given = "" if name in SECRET else f"={problem['input']}"
    return f"{PREFIX}{name.upper()}{given}: {message}"


def explain() -> str:
    """Every variable with its meaning and default, for --help."""
    lines = []
    for name, field in Settings.model_fields.items():
        default = "unset" if field.default in {None, ""} else field.default
        lines.append(f"  {PREFIX}{name.upper()}\n      {field.description} (default {default})")
    return "\n".join(lines)
