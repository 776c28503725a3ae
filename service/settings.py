"""The service's settings, from environment variables; each validation error names its variable."""

import os
import re
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict
from redis.asyncio.connection import BlockingConnectionPool
from redis.exceptions import RedisError

PREFIX: Final = "RUMMIKUB_"

SECRET: Final = frozenset({"redis_url"})
"""Settings that may contain a password and are never printed."""

_SERVICE_LINK: Final = re.compile(r"\w+_SERVICE_(HOST|PORT(_\w+)?)|\w+_PORT(_\d+_(TCP|UDP)(_\w+)?)?")
"""Variables that Kubernetes sets for a Service named rummikub; they are not settings."""

_HOST: Final = re.compile(r"[^\[\]:]+|\[[^\[\]]+\]")
"""The host of an address. Colons must be in brackets: gRPC takes the text after any other colon for the port."""

_DATABASE: Final = re.compile(r"/?|/\d{1,9}")
"""The path of a redis_url. redis-py uses database 0 for a path that is not a number."""

_CPU_LIMIT: Final = Path("/sys/fs/cgroup/cpu.max")
"""A container's CPU limit on Linux: quota and period."""

MEMORY_URL: Final = "memory://"
"""The redis_url of a store in memory, which is lost when the server stops."""

_MOST: Final = 100_000_000
"""The upper limit of unbounded settings; gRPC and Redis accept several times this number."""

_CENTURY: Final = 3_155_760_000
"""The upper limit of game lifetimes, in seconds."""

_DAY: Final = 86_400
"""The upper limit of delays and intervals, in seconds."""


class SettingsError(Exception):
    """Invalid settings; the message names each variable and the expected value."""


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not (_HOST.fullmatch(host) and port.isdecimal() and int(port) < 65536):
        raise ValueError("expected host:port, like 127.0.0.1:50051 or [::1]:50051")
    return text


def _store_url(text: str) -> str:
    if text not in {"", MEMORY_URL} and not _is_redis_url(text):
        raise ValueError("expected redis://host:port/database, rediss://, unix://path or memory://")
    return text


def _is_redis_url(text: str) -> bool:
    try:
        pool = BlockingConnectionPool.from_url(text)
        pool.connection_class(**pool.connection_kwargs)  # raises TypeError for unknown options
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
        raise ValueError("expected a number, or auto for one per core")
    return given


Address = Annotated[str, AfterValidator(_address)]
Workers = Annotated[int, BeforeValidator(_number_of_workers)]
AddressIfAny = Annotated[str, AfterValidator(_address_if_any)]
ReadableFile = Annotated[Path | None, AfterValidator(_readable)]


class Settings(BaseSettings):
    """The settings. Each field is read from the variable RUMMIKUB_<FIELD>."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    listen: Address = Field("127.0.0.1:50051", description="address of the gRPC server")
    validation_listen: AddressIfAny = Field(
        "", description="second address for ValidationService, at half the CPU per call; unset: none"
    )
    metrics_listen: Address = Field("127.0.0.1:9464", description="address of the Prometheus metrics, at /metrics")
    redis_url: Annotated[str, AfterValidator(_store_url)] = Field(
        "", description="URL of the store, like redis://host:6379/0; unset: an embedded store in RUMMIKUB_DATA_DIR"
    )
    workers: Workers = Field(
        1,
        ge=1,
        le=256,
        description="number of worker processes, which share the addresses; 0 or auto: one per core",
    )
    data_dir: Path = Field(Path("data"), description="directory of the embedded store")
    tls_cert: ReadableFile = Field(None, description="file with the certificate chain (PEM); unset: no TLS")
    tls_key: ReadableFile = Field(None, description="file with the certificate's private key (PEM)")
    lobby_ttl_seconds: int = Field(
        3_600, ge=60, le=_CENTURY, description="lifetime of a game that has not started, after its last change"
    )
    game_ttl_seconds: int = Field(
        604_800,
        ge=60,
        le=_CENTURY,
        description="lifetime of a started game, after its last change or the deadline of its turn",
    )
    finished_ttl_seconds: int = Field(
        86_400, ge=60, le=_CENTURY, description="lifetime of a finished game and its history"
    )
    games_per_minute: int = Field(
        300,
        ge=0,
        le=_MOST,
        description="new games per minute from one client address, at each server; 0: no limit",
    )
    join_guesses_per_minute: int = Field(
        20,
        ge=0,
        le=_MOST,
        description="unknown join codes per minute from one client address, at each server; 0: no limit",
    )
    history: int = Field(
        10_000, ge=100, le=_MOST, description="changes of a game that are stored for WatchGame and ListChanges"
    )
    heartbeat_seconds: float = Field(
        15.0, gt=0, le=_DAY, description="interval of heartbeats on an idle WatchGame stream"
    )
    sweep_seconds: float = Field(1.0, gt=0, le=_DAY, description="interval of checks for overdue turns")
    drain_seconds: float = Field(
        10.0, ge=0, le=_DAY, description="how long a stopping server waits for calls in progress"
    )
    max_message_bytes: int = Field(262_144, ge=65_536, le=_MOST, description="maximum size of a request")
    max_metadata_bytes: int = Field(8_192, ge=1_024, le=_MOST, description="maximum size of a request's metadata")
    max_streams: int = Field(1_000, ge=1, le=_MOST, description="maximum concurrent calls on one connection")
    max_calls: int = Field(10_000, ge=1, le=_MOST, description="maximum concurrent calls, including watchers")
    peer_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="share of calls, streams and searches that one client address may hold; use 1 behind a proxy",
    )
    request_seconds: float = Field(10.0, gt=0, le=_DAY, description="timeout for the arrival of a call's request")
    validation_streams: int = Field(
        1_000, ge=1, le=_MOST, description="maximum concurrent streams at RUMMIKUB_VALIDATION_LISTEN"
    )
    analysis_workers: int = Field(2, ge=1, le=1_024, description="maximum processes for exact analysis")
    analysis_queue: int = Field(64, ge=0, le=_MOST, description="maximum calls that wait for an analysis process")
    bot_delay_ms: int = Field(0, ge=0, le=60_000, description="delay before each action of a bot")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="lowest level to log: debug, info, warning or error"
    )

    @model_validator(mode="after")
    def _workers_share_a_store(self) -> "Settings":
        if self.workers > 1 and self.redis_url == MEMORY_URL:
            raise ValueError(
                f"{PREFIX}WORKERS={self.workers}: workers cannot share a store in memory ({MEMORY_URL}): set "
                f"{PREFIX}REDIS_URL to a Redis, leave it unset for the embedded store, or use one worker"
            )
        return self

    @model_validator(mode="after")
    def _tls_is_whole(self) -> "Settings":
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("RUMMIKUB_TLS_CERT and RUMMIKUB_TLS_KEY must be set together: set both or neither")
        if self.tls_cert and self.tls_key:
            try:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(
                    self.tls_cert, self.tls_key, password=""
                )  # without a password OpenSSL would prompt for one
            except (ssl.SSLError, OSError):
                problem = (
                    "RUMMIKUB_TLS_CERT and RUMMIKUB_TLS_KEY: expected a certificate chain and the key of its first "
                    "certificate, in PEM, without a password, both readable"
                )
                raise ValueError(problem) from None
        return self


def usable_cores() -> int:
    """Returns the number of cores for this process, by its affinity and its container's limit."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        quota, period = _CPU_LIMIT.read_text().split()
        return max(1, min(cores, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no limit (written as "max")
        return cores


def read_settings(workers: str | None = None) -> Settings:
    """Returns the settings. `workers` overrides RUMMIKUB_WORKERS. Raises SettingsError."""
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
    """Returns the text of a validation error. Only errors that this module raises have a text of their own."""
    location = problem["loc"]
    own = str(problem["msg"]).removeprefix("Value error, ") if problem["type"] == "value_error" else ""
    if not isinstance(location, tuple) or not location:
        return own
    name = str(location[0])
    given = "" if name in SECRET else f"={problem['input']}"
    return f"{PREFIX}{name.upper()}{given}: {own or _expected(Settings.model_fields[name])}"


def _expected(field: FieldInfo) -> str:
    """Returns the values that a number or a choice accepts, as text."""
    choices = [str(choice) for choice in get_args(field.annotation)]
    if choices:
        return f"expected {', '.join(choices[:-1])} or {choices[-1]}"
    kind = "a whole number" if field.annotation is int else "a number"
    limits = {
        name: getattr(limit, name) for limit in field.metadata for name in ("gt", "ge", "le") if hasattr(limit, name)
    }
    span = f"above {limits['gt']}, up to {limits['le']}" if "gt" in limits else f"from {limits['ge']} to {limits['le']}"
    return f"expected {kind} {span}"


def explain() -> str:
    """Returns the list of all variables with meaning and default, for --help."""
    lines = []
    for name, field in Settings.model_fields.items():
        default = "unset" if field.default in {None, ""} else field.default
        lines.append(f"  {PREFIX}{name.upper()}\n      {field.description} (default {default})")
    return "\n".join(lines)
