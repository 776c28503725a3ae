"""Settings: errors name the variable and the expected value; passwords are never printed."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

from service import program
from service.runtime.process import write_stdout
from service.settings import Settings, SettingsError, read_settings, usable_cores
from support.certificates import self_signed
from support.harness import ROOT

pytestmark = pytest.mark.slow

PASSWORD = "hunter2"  # noqa: S105 - must not be printed
ADDRESS = "expected host:port"
STORE = "expected redis://host:port/database"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RUMMIKUB_")]:
        monkeypatch.delenv(name)


class Ended(NamedTuple):
    """The exit code of the program, and what it printed."""

    code: str | int | None
    output: str
    errors: str


def refusal(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    """Returns the error message for invalid variables."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as error:
        read_settings()
    return str(error.value)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Returns a function that runs the program here, which must exit before it serves."""

    def run(*arguments: str, **variables: str) -> Ended:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as end:
            program.serve(arguments)
        output, errors = capsys.readouterr()
        return Ended(end.value.code, output, errors)

    return run


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the program until it exits."""
    command = [sys.executable, "-m", "service", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("RUMMIKUB_LISTEN", "50051", ADDRESS),
        ("RUMMIKUB_LISTEN", ":50051", ADDRESS),
        ("RUMMIKUB_LISTEN", "localhost:grpc", ADDRESS),
        ("RUMMIKUB_LISTEN", "localhost:65536", ADDRESS),
        ("RUMMIKUB_LISTEN", "::1:50051", ADDRESS),
        ("RUMMIKUB_LISTEN", "[::1:50051", ADDRESS),
        ("RUMMIKUB_METRICS_LISTEN", "localhost", ADDRESS),
        ("RUMMIKUB_TRUSTED_PROXIES", "10.0.0.0/8,edge", "expected networks separated by commas"),
        ("RUMMIKUB_TRUSTED_PROXIES", "fd00::/8,10.0.0.1/8", "10.0.0.1/8 has host bits set"),
        ("RUMMIKUB_PROXY_HOPS", "0", "expected a whole number from 1 to 16"),
        ("RUMMIKUB_TLS_CERT", "no/such/file.pem", "there is no file no/such/file.pem"),
        ("RUMMIKUB_TLS_KEY", "tests", "there is no file tests"),
        ("RUMMIKUB_GAME_TTL_SECONDS", "a week", "expected a whole number from 60 to 3155760000"),
        ("RUMMIKUB_GAME_TTL_SECONDS", "59", "expected a whole number from 60 to 3155760000"),
        ("RUMMIKUB_GAME_TTL_SECONDS", "99999999999999999999", "expected a whole number from 60 to 3155760000"),
        ("RUMMIKUB_DATA_MEMORY_MB", "1", "expected a whole number from 16 to 100000000"),
        ("RUMMIKUB_HISTORY", "99", "expected a whole number from 100 to 100000000"),
        ("RUMMIKUB_HISTORY", "99999999999999999999", "expected a whole number from 100 to 100000000"),
        ("RUMMIKUB_HEARTBEAT_SECONDS", "0", "expected a number above 0, up to 86400"),
        ("RUMMIKUB_HEARTBEAT_SECONDS", "inf", "expected a number above 0, up to 86400"),
        ("RUMMIKUB_SWEEP_SECONDS", "-1", "expected a number above 0, up to 86400"),
        ("RUMMIKUB_SWEEP_SECONDS", "inf", "expected a number above 0, up to 86400"),
        ("RUMMIKUB_DRAIN_SECONDS", "soon", "expected a number from 0 to 86400"),
        ("RUMMIKUB_DRAIN_SECONDS", "inf", "expected a number from 0 to 86400"),
        ("RUMMIKUB_MAX_MESSAGE_BYTES", "1", "expected a whole number from 65536 to 100000000"),
        ("RUMMIKUB_MAX_MESSAGE_BYTES", "2147483648", "expected a whole number from 65536 to 100000000"),
        ("RUMMIKUB_MAX_METADATA_BYTES", "1", "expected a whole number from 1024 to 100000000"),
        ("RUMMIKUB_MAX_METADATA_BYTES", "2147483648", "expected a whole number from 1024 to 100000000"),
        ("RUMMIKUB_MAX_STREAMS", "0", "expected a whole number from 1 to 100000000"),
        ("RUMMIKUB_MAX_STREAMS", "2147483648", "expected a whole number from 1 to 100000000"),
        ("RUMMIKUB_MAX_CALLS", "1.5", "expected a whole number from 1 to 100000000"),
        ("RUMMIKUB_MAX_CALLS", "536870912", "expected a whole number from 1 to 100000000"),
        ("RUMMIKUB_VALIDATION_STREAMS", "2147483648", "expected a whole number from 1 to 100000000"),
        ("RUMMIKUB_ANALYSIS_WORKERS", "0", "expected a whole number from 1 to 1024"),
        ("RUMMIKUB_ANALYSIS_WORKERS", "100000", "expected a whole number from 1 to 1024"),
        ("RUMMIKUB_ANALYSIS_QUEUE", "-1", "expected a whole number from 0 to 100000000"),
        ("RUMMIKUB_WORKERS", "many", "expected a number, or auto"),
        ("RUMMIKUB_WORKERS", "-1", "expected a number, or auto"),
        ("RUMMIKUB_WORKERS", "1000", "expected a whole number from 1 to 256"),
        ("RUMMIKUB_LOG_LEVEL", "loud", "expected debug, info, warning or error"),
    ],
)
def test_an_error_names_the_variable_and_the_expected_value(
    name: str, value: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = refusal(monkeypatch, **{name: value})
    assert message.startswith(f"{name}={value}: ")
    assert expected in message
    assert "Input" not in message, "no text of the library that validates"
    assert "\n" not in message


def test_all_invalid_values_are_reported_together(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, RUMMIKUB_LISTEN="here", RUMMIKUB_HISTORY="1", RUMMIKUB_REDIS_URL="there")
    assert [line.partition(":")[0] for line in message.splitlines()] == [
        "RUMMIKUB_LISTEN=here",
        "RUMMIKUB_REDIS_URL",
        "RUMMIKUB_HISTORY=1",
    ]


def test_unknown_variables_are_reported_together_without_their_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    message = refusal(monkeypatch, RUMMIKUB_LISTENS="x:1", RUMMIKUB_REDIS_PASSWORD=PASSWORD, RUMMIKUB_HISTORY="200")
    assert message == "RUMMIKUB_LISTENS, RUMMIKUB_REDIS_PASSWORD: no such setting; see --help"


def test_kubernetes_variables_of_a_service_named_rummikub_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    links = {
        "RUMMIKUB_SERVICE_HOST": "10.0.0.1",
        "RUMMIKUB_SERVICE_PORT": "50051",
        "RUMMIKUB_SERVICE_PORT_GRPC": "50051",
        "RUMMIKUB_PORT": "tcp://10.0.0.1:50051",
        "RUMMIKUB_PORT_50051_TCP": "tcp://10.0.0.1:50051",
        "RUMMIKUB_PORT_50051_TCP_ADDR": "10.0.0.1",
        "RUMMIKUB_PORT_50051_TCP_PORT": "50051",
        "RUMMIKUB_PORT_50051_TCP_PROTO": "tcp",
        "RUMMIKUB_METRICS_SERVICE_HOST": "10.0.0.2",
        "RUMMIKUB_METRICS_PORT_9464_TCP_ADDR": "10.0.0.2",
    }
    for name, value in links.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RUMMIKUB_HISTORY", "200")
    assert read_settings() == Settings.model_validate({"history": 200})


@pytest.mark.parametrize("number", ["0", "auto"])
def test_auto_means_one_worker_per_core(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUMMIKUB_WORKERS", number)
    assert read_settings().workers == usable_cores()


def test_usable_cores_respect_the_affinity_and_the_container_limit(tmp_path: Path) -> None:
    cores, limit = len(os.sched_getaffinity(0)), tmp_path / "cpu.max"
    assert usable_cores(limit) == cores
    for text, expected in (("max 100000", cores), ("9900000 100000", cores), ("130000 100000", 1), ("10000 100000", 1)):
        limit.write_text(f"{text}\n")
        assert usable_cores(limit) == expected
    limit.write_text("250000 100000\n")
    assert usable_cores(limit) == min(cores, 2)


def test_the_command_line_overrides_the_environment_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUMMIKUB_WORKERS", "4")
    monkeypatch.setenv("RUMMIKUB_HISTORY", "200")
    assert read_settings("3") == Settings.model_validate({"workers": 3, "history": 200})


def test_several_workers_need_a_shared_store(monkeypatch: pytest.MonkeyPatch, refused: Callable[..., Ended]) -> None:
    message = refusal(monkeypatch, RUMMIKUB_WORKERS="2", RUMMIKUB_REDIS_URL="memory://")
    assert message.startswith(
        "RUMMIKUB_WORKERS=2: workers cannot share a store in memory (memory://): set RUMMIKUB_REDIS_URL "
    )
    assert refused("--workers", "2") == (1, "", f"rummikub-server: {message}\n")


@pytest.mark.parametrize("given", ["RUMMIKUB_TLS_CERT", "RUMMIKUB_TLS_KEY"])
def test_half_a_tls_pair_is_rejected(given: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "half.pem"
    path.touch()
    message = refusal(monkeypatch, **{given: str(path)})
    assert message == "RUMMIKUB_TLS_CERT and RUMMIKUB_TLS_KEY must be set together: set both or neither"


def test_a_tls_pair_that_is_not_pem_is_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "bad.pem"
    path.write_text("-----BEGIN CERTIFICATE-----\nthis is none\n-----END CERTIFICATE-----\n")
    message = refusal(monkeypatch, RUMMIKUB_TLS_CERT=str(path), RUMMIKUB_TLS_KEY=str(path))
    assert message == (
        "RUMMIKUB_TLS_CERT and RUMMIKUB_TLS_KEY: expected a certificate chain and the key of its first certificate, "
        "in PEM, without a password, both readable"
    )


def test_client_authorities_without_a_certificate_or_in_no_pem_are_rejected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "ca.pem"
    path.touch()
    message = refusal(monkeypatch, RUMMIKUB_TLS_CLIENT_CA=str(path))
    assert message == "RUMMIKUB_TLS_CLIENT_CA needs RUMMIKUB_TLS_CERT and RUMMIKUB_TLS_KEY: set all three"
    self_signed(tmp_path, "DNS:localhost")
    pair = {f"RUMMIKUB_TLS_{name.upper()}": str(tmp_path / f"{name}.pem") for name in ("cert", "key")}
    message = refusal(monkeypatch, RUMMIKUB_TLS_CLIENT_CA=str(path), **pair)
    assert message == "RUMMIKUB_TLS_CLIENT_CA: expected certificates in PEM, readable"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[keys.web]\ncalls = 1\n", "keys.web: expected sha256 or certificate"),
        ("", "keys: there is none; expected tables [keys.NAME]"),
    ],
)
def test_a_server_does_not_start_with_a_broken_keys_file(
    tmp_path: Path, text: str, problem: str, refused: Callable[..., Ended]
) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    ended = refused(RUMMIKUB_REDIS_URL="memory://", RUMMIKUB_KEYS_FILE=str(path))
    assert ended == (1, "", f"rummikub-server: {path}: {problem}\n")


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{PASSWORD}@host:port/0",
        f"redis://:{PASSWORD}@host:65536/0",
        f"redis://:{PASSWORD}@host/games",
        f"redis://:{PASSWORD}@host/-1",
        f"redis://:{PASSWORD}@host/0/1",
        f"redis://host/0?password={PASSWORD}&db=games",
        f"redis://host/0?pasword={PASSWORD}",
        f"redis://:12/{PASSWORD}@host:6379/0",
        f"http://:{PASSWORD}@host:6379/0",
        f"memory://{PASSWORD}",
        PASSWORD,
    ],
)
def test_an_invalid_store_url_is_rejected_and_not_printed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, RUMMIKUB_REDIS_URL=url)
    assert message.startswith(f"RUMMIKUB_REDIS_URL: {STORE}")
    assert PASSWORD not in message


@pytest.mark.parametrize(
    "url",
    [
        "",
        "memory://",
        "redis://host",
        "redis://host/",
        "redis://user:secret@[::1]:6380/15?socket_timeout=2",
        "redis://host?db=3&password=secret&max_connections=8",
        "rediss://host:6379/0?ssl_cert_reqs=none",
        "unix:///run/redis.sock?db=2",
    ],
)
def test_the_documented_store_urls_are_accepted(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUMMIKUB_REDIS_URL", url)
    assert read_settings().redis_url == url


@pytest.mark.parametrize(
    "url",
    [
        f"postgres://user:{PASSWORD}@host/games",
        f"postgresql://[user:{PASSWORD}@host/games",
        f"https://user:{PASSWORD}@host/games",
        f"sqlite://{PASSWORD}/games",
        f"sqlite:{PASSWORD}",
        f"sqlite:///{PASSWORD}/",
        f"s3:///{PASSWORD}",
        PASSWORD,
    ],
)
def test_an_invalid_archive_url_is_rejected_and_not_printed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, RUMMIKUB_ARCHIVE_URL=url)
    assert message.startswith("RUMMIKUB_ARCHIVE_URL: expected sqlite:///path, s3://")
    assert PASSWORD not in message


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sqlite:///var/lib/rummikub/archive.sqlite3",
        "s3://bucket",
        "s3://bucket/some/prefix?endpoint=https://storage.example:9000&region=eu-1",
        "postgresql://user:secret@host:5432/games?sslmode=require",
        "postgresql:///games?host=/run/postgresql",
    ],
)
def test_the_documented_archive_urls_are_accepted(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUMMIKUB_ARCHIVE_URL", url)
    assert read_settings().archive_url == url


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_archive_that_cannot_be_opened_stops_the_start(workers: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = run(
        RUMMIKUB_ARCHIVE_URL=f"sqlite://{tmp_path}/file/archive/games.sqlite3",
        RUMMIKUB_WORKERS=workers,
        RUMMIKUB_DATA_DIR=str(tmp_path / "data"),
        RUMMIKUB_LISTEN="127.0.0.1:0",
        RUMMIKUB_METRICS_LISTEN="127.0.0.1:0",
    )
    assert refused.returncode == 1
    assert refused.stderr == ("rummikub-server: RUMMIKUB_ARCHIVE_URL: the folder cannot be used (Not a directory)\n")


@pytest.mark.parametrize(
    "url",
    [f"redis://user:{PASSWORD}@127.0.0.1:1/3", f"redis://127.0.0.1:1/3?password={PASSWORD}"],
)
async def test_a_server_prints_its_store_without_the_password(url: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "service",
        cwd=ROOT,
        env={
            **os.environ,
            "RUMMIKUB_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_REDIS_URL": url,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    async with asyncio.timeout(30):
        greeting = (await process.stdout.readuntil(b"Stop with")).decode()
        process.terminate()
        rest, log = (text.decode() for text in await process.communicate())
    assert "store    redis://127.0.0.1:1/3 (does not answer yet" in greeting
    assert not re.findall(r":0\b", greeting), "the addresses have the assigned ports"
    assert "ConnectionError" in log, "the unreachable store is logged"
    assert PASSWORD not in greeting + rest + log
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("variable", "address"),
    [
        ("RUMMIKUB_LISTEN", "no.such.host.invalid:50051"),
        ("RUMMIKUB_VALIDATION_LISTEN", "192.0.2.1:50051"),
        ("RUMMIKUB_METRICS_LISTEN", "..:9464"),
    ],
)
def test_an_unusable_address_is_reported_with_reason_and_remedy(variable: str, address: str) -> None:
    addresses = {"RUMMIKUB_LISTEN": "127.0.0.1:0", "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0", variable: address}
    ended = run(RUMMIKUB_REDIS_URL="memory://", **addresses)
    assert (ended.returncode, ended.stdout) == (1, "")
    problem = ended.stderr.splitlines()[-1]  # gRPC prints a line before
    assert problem.startswith(f"rummikub-server: {variable}={address}: cannot listen there (")
    assert problem.endswith("): set it to a free address of this machine, or stop the server that uses it")


@pytest.mark.parametrize("where", ["full", "gone"])
def test_a_write_error_on_standard_output_is_ignored(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone, Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", gone if where == "gone" else full)
        write_stdout("Stop with Ctrl-C.\n")


def test_the_greeting_names_any_folder(tmp_path: Path) -> None:
    addresses = {"RUMMIKUB_LISTEN": "127.0.0.1:0", "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0"}
    folder = tmp_path / "d\N{LATIN SMALL LETTER A WITH DIAERESIS}"
    process = subprocess.Popen(
        [sys.executable, "-m", "service"],
        cwd=ROOT,
        env={**os.environ, **addresses, "RUMMIKUB_DATA_DIR": str(folder), "PYTHONIOENCODING": "ascii"},
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout
        greeting = b"".join(takewhile(lambda line: line != b"Stop with Ctrl-C.\n", process.stdout))
        process.terminate()
    assert b"embedded, in " + os.fsencode(folder) in greeting


def test_invalid_settings_end_the_program_with_a_message() -> None:
    ended = run(RUMMIKUB_LISTEN="here")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("rummikub-server: RUMMIKUB_LISTEN=here: expected host:port")
    assert len(ended.stderr.splitlines()) == 1


def test_help_lists_every_setting_with_its_default(refused: Callable[..., Ended]) -> None:
    code, output, _ = refused("--help")
    assert code == 0
    listed = dict(re.findall(r"^  (RUMMIKUB_\w+)\n .*\(default (.+)\)$", output, re.MULTILINE))
    defaults = {name: str(value) for name, value in Settings().model_dump().items()}
    unset = {"None": "unset", "": "unset", "()": "unset"}
    assert listed == {f"RUMMIKUB_{name.upper()}": unset.get(value, value) for name, value in defaults.items()}


def test_help_works_with_invalid_settings(refused: Callable[..., Ended]) -> None:
    code, output, errors = refused("--help", RUMMIKUB_LISTEN="here", RUMMIKUB_NONSENSE="1")
    assert (code, errors) == (0, "")
    assert "RUMMIKUB_LISTEN\n" in output


def test_version(refused: Callable[..., Ended]) -> None:
    declared = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared
    assert refused("--version") == (0, f"rummikub-server {declared[1]}\n", "")
