"""Calls of AdminService, for the commands that need it."""

import argparse
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio
from google.protobuf.json_format import MessageToDict, MessageToJson
from google.protobuf.message import Message

from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.admin.v1.admin_service_pb2_grpc import AdminServiceStub
from rummikub.errors import error_info
from service.admin_program.command import AdminError
from service.runtime.process import write_stdout

if TYPE_CHECKING:
    from rummikub.admin.v1.admin_service_pb2_grpc import AdminServiceAsyncStub

Metadata = tuple[tuple[str, str], ...]

OPTIONS: Final = (("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 16_777_216))
SECONDS: Final = 30.0
"""Timeout of a call that is no stream."""

_NO_ANSWER: Final = {
    grpc.StatusCode.UNAVAILABLE: "check --address, that of RUMMIKUB_ADMIN_LISTEN, and with TLS --ca-file; "
    "with RUMMIKUB_TLS_CLIENT_CA also --cert-file and --key-file",
    grpc.StatusCode.UNIMPLEMENTED: "the address is not RUMMIKUB_ADMIN_LISTEN, or the server is older than this program",
}
"""Advice for errors without a reason, which are not of AdminService."""
_REFUSED: Final = {
    "AUTHORIZATION_MALFORMED": "give --token-file, the file that the server has in RUMMIKUB_ADMIN_TOKEN_FILE",
}
"""Advice by reason, where the server's text does not name the option."""


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments by which AdminService is reached."""
    parser.add_argument(
        "--address", default="127.0.0.1:50053", help="RUMMIKUB_ADMIN_LISTEN of a server (default %(default)s)"
    )
    parser.add_argument("--token-file", type=Path, help="file with the operator's token, if the server requires one")
    parser.add_argument("--ca-file", type=Path, help="file with the CA of the server's certificate (PEM), for TLS")
    parser.add_argument(
        "--cert-file", type=Path, help="file with a client certificate (PEM), if the server requires one"
    )
    parser.add_argument("--key-file", type=Path, help="file with the private key of --cert-file (PEM)")


def add_filter(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that choose games."""
    parser.add_argument("--label", action="append", default=[], metavar="KEY=VALUE", help="games with this label")
    parser.add_argument(
        "--operator-label", action="append", default=[], metavar="KEY=VALUE", help="games with this operator label"
    )
    parser.add_argument("--player-ref", default="", help="games with this player")
    parser.add_argument("--key-name", default="", help="games created with the key of this name")


def game_filter(arguments: argparse.Namespace) -> pb.GameFilter:
    """Returns which games the arguments choose. Raises AdminError."""
    return pb.GameFilter(
        labels=_pairs("--label", arguments.label),
        operator_labels=_pairs("--operator-label", arguments.operator_label),
        player_ref=arguments.player_ref,
        key_name=arguments.key_name,
    )


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    for text in given:
        if "=" not in text:
            raise AdminError(f"{option} {text}: expected KEY=VALUE")
    return dict(text.split("=", 1) for text in given)


@contextlib.asynccontextmanager
async def operator(arguments: argparse.Namespace) -> "AsyncIterator[tuple[AdminServiceAsyncStub, Metadata]]":
    """Yields the stub of AdminService and the metadata of each call. Raises AdminError for errors of calls."""
    metadata = _metadata(arguments.token_file)
    credentials = _credentials(arguments.ca_file, arguments.cert_file, arguments.key_file)
    if credentials:
        channel = grpc.aio.secure_channel(arguments.address, credentials, OPTIONS)
    else:
        channel = grpc.aio.insecure_channel(arguments.address, OPTIONS)
    async with channel:
        try:
            yield AdminServiceStub(channel), metadata
        except grpc.aio.AioRpcError as error:
            reason = error_info(error).reason
            do = _REFUSED.get(reason) if reason else _NO_ANSWER.get(error.code())
            advice = f"; {do}" if do else ""
            raise AdminError(f"{arguments.address}: {error.code().name}: {error.details()}{advice}") from None


def _credentials(ca: Path | None, cert: Path | None, key: Path | None) -> grpc.ChannelCredentials | None:
    """Returns the credentials for TLS; None without TLS. Raises AdminError."""
    if (cert is None) != (key is None):
        given, missing = ("--cert-file", "--key-file") if cert else ("--key-file", "--cert-file")
        raise AdminError(f"{given} is given without {missing}: give both, or neither")
    if ca is None:
        if cert:
            raise AdminError("--cert-file and --key-file are given without --ca-file: give it too, for TLS")
        return None
    pair = (_read(key, "--key-file"), _read(cert, "--cert-file")) if cert and key else (None, None)
    return grpc.ssl_channel_credentials(_read(ca, "--ca-file"), *pair)


def _metadata(token_file: Path | None) -> Metadata:
    if token_file is None:
        return ()
    return (("authorization", f"Bearer {_read(token_file, '--token-file').decode('latin-1').strip()}"),)


def _read(path: Path, option: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AdminError(f"{option} {path}: {error.strerror}") from None


def print_json(message: Message) -> None:
    """Prints a message as JSON, indented."""
    write_stdout(f"{MessageToJson(message)}\n")


def as_dict(message: Message) -> dict[str, object]:
    """Returns a message in its JSON form."""
    found: dict[str, object] = MessageToDict(message)
    return found
