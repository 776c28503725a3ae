"""The service's settings, from environment variables; each validation error names its variable."""

import ipaddress
import os
import re
import ssl
import sys
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Final, Literal, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from service.runtime.origins import Network
from service.runtime.redis_url import parse_redis_url

PREFIX: Final = "RUMMIKUB_"

SECRET: Final = frozenset({"redis_url", "archive_url"})
"""Settings that may contain a password and are never printed."""

_SERVICE_LINK: Final = re.compile(r"\w+_SERVICE_(HOST|PORT(_\w+)?)|\w+_PORT(_\d+_(TCP|UDP)(_\w+)?)?")
"""Variables that Kubernetes sets for a Service named rummikub; they are not settings."""

_HOST: Final = re.compile(r"[^\[\]:]+|\[[^\[\]]+\]")
"""The host of an address. Colons must be in brackets: gRPC takes the text after any other colon for the port."""

CPU_LIMIT: Final = Path("/sys/fs/cgroup/cpu.max")
"""A container's CPU limit on Linux: quota and period."""

MEMORY_URL: Final = "memory://"
"""The redis_url of a store in memory, which is lost when the server stops."""

_MOST: Final = 100_000_000
"""The upper limit of unbounded settings; gRPC and Redis accept several times this number."""

_CENTURY: Final = 3_155_760_000
"""The upper limit of game lifetimes, in seconds."""

_DAY: Final = 86_400
"""The upper limit of delays and intervals, in seconds."""


UNIX: Final = "unix:"
"""The beginning of the address of a unix socket."""

ADMIN_TOKEN_LEAST: Final = 22
"""Minimum length of the operator's token: 128 bits in base64."""


class SettingsError(Exception):
    """Invalid settings; the message names each variable and the expected value."""


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not (_HOST.fullmatch(host) and port.isdecimal() and int(port) < 65536):
        raise ValueError("expected host:port, like 127.0.0.1:50051 or [::1]:50051")
    return text


def _store_url(text: str) -> str:
    if text not in {"", MEMORY_URL}:
        parse_redis_url(text)
    return text


def _address_if_any(text: str) -> str:
    return _address(text) if text else text


def _archive_url(text: str) -> str:
    if text and not _is_archive_url(text):
        raise ValueError("expected sqlite:///path, s3://bucket/prefix?endpoint=URL&region=NAME or postgresql://")
    return text


def _is_archive_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    if parts.scheme == "sqlite":
        return not parts.netloc and not parts.path.endswith("/") and parts.path.startswith("/")
    return parts.scheme == "postgresql" or (parts.scheme == "s3" and bool(parts.netloc))


def _admin_address(text: str) -> str:
    if text.startswith(UNIX):
        if not text.removeprefix(UNIX):
            raise ValueError("expected unix:path, like unix:/run/rummikub/admin.sock")
        return text
    return _address_if_any(text)


def is_private(address: str) -> bool:
    """Returns whether only processes of this machine can reach an address."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return address.startswith(UNIX) or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _readable(path: Path | None) -> Path | None:
    if path is not None and not path.is_file():
        raise ValueError(f"there is no file {path}")
    return path


def _networks(given: object) -> object:
    if not isinstance(given, str):
        return given
    try:
        return tuple(_network(text.strip()) for text in given.split(",") if text.strip())
    except ValueError as error:
        raise ValueError(f"expected networks separated by commas, like 10.0.0.0/8,fd00::/8; {error}") from None


def _network(text: str) -> Network:
    """Returns a network; for one of IPv4 within IPv6 that of IPv4, as callers' addresses are compared so."""
    network = ipaddress.ip_network(text)
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    return IPv4Network((mapped, network.prefixlen - 96)) if mapped and network.prefixlen >= 96 else network


def _number_of_workers(given: object) -> object:
    if given in {"auto", "0", 0}:
        return usable_cores()
    if isinstance(given, str) and not given.isdecimal():
        raise ValueError("expected a number, or auto for one per core")
    return given


Address = Annotated[str, AfterValidator(_address)]
Workers = Annotated[int, BeforeValidator(_number_of_workers)]
AddressIfAny = Annotated[str, AfterValidator(_address_if_any)]
AdminAddress = Annotated[str, AfterValidator(_admin_address)]
ReadableFile = Annotated[Path | None, AfterValidator(_readable)]


class Settings(BaseSettings):
    """The settings. Each field is read from the variable RUMMIKUB_<FIELD>."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    listen: Address = Field("127.0.0.1:50051", description="address of the gRPC server")
    validation_listen: AddressIfAny = Field(
        "", description="second address for ValidationService, at half the CPU per call; unset: none"
    )
    admin_listen: AdminAddress = Field(
        "", description="address of AdminService, the operator's, as host:port or unix:path; unset: none"
    )
    admin_token_file: ReadableFile = Field(
        None,
        description="file with the token of AdminService; required unless RUMMIKUB_ADMIN_LISTEN is a loopback address "
        "or a unix socket",
    )
    metrics_listen: Address = Field("127.0.0.1:9464", description="address of the Prometheus metrics, at /metrics")
    redis_url: Annotated[str, AfterValidator(_store_url)] = Field(
        "",
        description="URL of the store, like redis://host:6379/0 or redis+cluster://host:6379,host:6379; "
        "unset: an embedded store in RUMMIKUB_DATA_DIR",
    )
    redis_replicas: int = Field(
        0, ge=0, le=16, description="number of Redis replicas that must have a change before it is acknowledged"
    )
    workers: Workers = Field(
        1,
        ge=1,
        le=256,
        description="number of worker processes, which share the addresses; 0 or auto: one per core",
    )
    data_dir: Path = Field(Path("data"), description="directory of the embedded store")
    require_volume: bool = Field(
        False,  # noqa: FBT003 - a default
        description="whether a server refuses to run the embedded store in the default directory if no volume is "
        "mounted there; the image sets it",
    )
    data_memory_mb: int | None = Field(
        None,
        ge=16,
        le=_MOST,
        description="memory of the embedded store; unset: half of the machine's or the container's",
    )
    tls_cert: ReadableFile = Field(None, description="file with the certificate chain (PEM); unset: no TLS")
    tls_key: ReadableFile = Field(None, description="file with the certificate's private key (PEM)")
    tls_client_ca: ReadableFile = Field(
        None, description="file with the authorities (PEM) of client certificates; if set, clients need one"
    )
    keys_file: ReadableFile = Field(
        None, description="file with the keys that callers need (TOML, docs/keys.md); unset: callers need none"
    )
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
    archive_url: Annotated[str, AfterValidator(_archive_url)] = Field(
        "", description="where finished games are archived: sqlite:///path, s3:// or postgresql://; unset: nowhere"
    )
    archived_ttl_seconds: int = Field(
        3_600,
        ge=60,
        le=_CENTURY,
        description="lifetime of a finished game in the store after it was archived",
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
    drafts_per_second: int = Field(
        100, ge=0, le=_MOST, description="drafts per second from one client address, at each server; 0: no limit"
    )
    changes_per_second: int = Field(
        100,
        ge=0,
        le=_MOST,
        description="joins, renewed tokens, votes and other changes that are no turns, per second from one client "
        "address, at each server; 0: no limit",
    )
    stored_format: int | None = Field(
        None,
        ge=1,
        le=_MOST,
        description="number of the stored format that is written, the newest or the one before, the same on all "
        "servers; unset: the newest that servers of the minor version before read too",
    )
    history: int = Field(
        10_000, ge=100, le=_MOST, description="changes of a game that are stored for WatchGame and ListChanges"
    )
    change_log_seconds: int = Field(
        0,
        ge=0,
        le=_CENTURY,
        description="how long changes are kept for WatchGames of AdminService, the same on all servers; 0: not at all",
    )
    heartbeat_seconds: float = Field(
        15.0, gt=0, le=_DAY, description="interval of heartbeats on an idle WatchGame stream"
    )
    sweep_seconds: float = Field(1.0, gt=0, le=_DAY, description="interval of checks for overdue turns")
    drain_seconds: float = Field(
        10.0, ge=0, le=_DAY, description="how long a stopping server waits for calls in progress"
    )
    lame_duck_seconds: float = Field(
        0.0,
        ge=0,
        le=_DAY,
        description="how long a server serves after SIGTERM while its health is NOT_SERVING, before it drains",
    )
    max_message_bytes: int = Field(262_144, ge=65_536, le=_MOST, description="maximum size of a request")
    max_metadata_bytes: int = Field(8_192, ge=1_024, le=_MOST, description="maximum size of a request's metadata")
    max_streams: int = Field(
        100,
        ge=1,
        le=_MOST,
        description="maximum concurrent calls on one connection; clients use 50 of them for streams",
    )
    max_connection_age_seconds: float = Field(
        0.0,
        ge=0,
        le=_DAY,
        description="age at which a connection is replaced, for clients that balance by DNS; its calls go on; 0: none",
    )
    max_calls: int = Field(16_000, ge=1, le=_MOST, description="maximum concurrent calls, including watchers")
    max_watches: int = Field(11_000, ge=1, le=_MOST, description="maximum WatchGame streams and waiting ListChanges")
    peer_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="share of calls, watches, streams and searches that one client address may hold alone; several "
        "share what is free",
    )
    trusted_proxies: Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_networks)] = Field(
        (),
        description="networks of proxies, separated by commas: a call from them counts for the client address in its "
        "x-forwarded-for; unset: for the address of the connection",
    )
    proxy_hops: int = Field(
        1, ge=1, le=16, description="how many proxies append to x-forwarded-for before a call reaches the server"
    )
    request_seconds: float = Field(10.0, gt=0, le=_DAY, description="timeout for the arrival of a call's request")
    validation_streams: int = Field(
        1_000, ge=1, le=_MOST, description="maximum concurrent StreamValidateTurns, at each listener"
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
    def _replicas_need_a_redis(self) -> "Settings":
        if self.redis_replicas and self.redis_url in {"", MEMORY_URL}:
            raise ValueError(
                f"{PREFIX}REDIS_REPLICAS={self.redis_replicas}: only a Redis has replicas: set {PREFIX}REDIS_URL"
            )
        return self

    @model_validator(mode="after")
    def _admin_is_protected(self) -> "Settings":
        address, file = f"{PREFIX}ADMIN_LISTEN={self.admin_listen}", f"{PREFIX}ADMIN_TOKEN_FILE"
        if self.workers > 1 and self.admin_listen.startswith(UNIX):
            raise ValueError(f"{address}: workers cannot share a unix socket: set it to host:port, or use one worker")
        if self.admin_listen and self.admin_token_file is None and not is_private(self.admin_listen):
            raise ValueError(
                f"{address}: other machines could read every rack: set {file} to a file with a token of at least "
                f"{ADMIN_TOKEN_LEAST} characters, or listen on 127.0.0.1 or unix:path"
            )
        if self.admin_token_file is not None:
            self.admin_token()
        return self

    def admin_token(self) -> str:
        """Returns the operator's token, as the file has it now; "" if none is required. Raises ValueError."""
        if self.admin_token_file is None:
            return ""
        problem = f"{PREFIX}ADMIN_TOKEN_FILE={self.admin_token_file}: expected"
        try:
            token = self.admin_token_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            raise ValueError(f"{problem} a readable file with one line of ASCII text") from None
        if len(token) < ADMIN_TOKEN_LEAST or not re.fullmatch(r"[!-~]+", token):
            raise ValueError(f"{problem} a token of at least {ADMIN_TOKEN_LEAST} characters without spaces")
        return token

    @model_validator(mode="after")
    def _tls_is_whole(self) -> "Settings":
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("RUMMIKUB_TLS_CERT and RUMMIKUB_TLS_KEY must be set together: set both or neither")
        if self.tls_client_ca and self.tls_cert is None:
            raise ValueError("RUMMIKUB_TLS_CLIENT_CA needs RUMMIKUB_TLS_CERT and RUMMIKUB_TLS_KEY: set all three")
        if self.tls_client_ca:
            try:
                check_authorities(self.tls_client_ca)
            except OSError:
                raise ValueError("RUMMIKUB_TLS_CLIENT_CA: expected certificates in PEM, readable") from None
        if self.tls_cert and self.tls_key:
            try:
                check_pair(self.tls_cert, self.tls_key)
            except OSError:
                problem = (
                    "RUMMIKUB_TLS_CERT and RUMMIKUB_TLS_KEY: expected a certificate chain and the key of its first "
                    "certificate, in PEM, without a password, both readable"
                )
                raise ValueError(problem) from None
        return self


def check_pair(cert: Path, key: Path) -> None:
    """Raises OSError unless the key is that of the certificate; it is an SSLError unless a file cannot be read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key, password="")  # without a password OpenSSL would prompt for one


def check_authorities(authorities: Path) -> None:
    """Raises OSError unless the file has certificates; it is an SSLError unless the file cannot be read."""
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(authorities)


def usable_cores(limit: Path = CPU_LIMIT) -> int:
    """Returns the number of cores for this process, by its affinity and the limit of its container in a file."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        quota, period = limit.read_text().split()
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
    if get_origin(field.annotation) is Literal:
        choices = [str(choice) for choice in get_args(field.annotation)]
        return f"expected {', '.join(choices[:-1])} or {choices[-1]}"
    kind = "a whole number" if field.annotation in {int, int | None} else "a number"
    limits = {
        name: getattr(limit, name) for limit in field.metadata for name in ("gt", "ge", "le") if hasattr(limit, name)
    }
    span = f"above {limits['gt']}, up to {limits['le']}" if "gt" in limits else f"from {limits['ge']} to {limits['le']}"
    return f"expected {kind} {span}"


def explain() -> str:
    """Returns the list of all variables with meaning and default, for --help."""
    lines = []
    for name, field in Settings.model_fields.items():
        default = "unset" if field.default in {None, "", ()} else field.default
        lines.append(f"  {PREFIX}{name.upper()}\n      {field.description} (default {default})")
    return "\n".join(lines)
