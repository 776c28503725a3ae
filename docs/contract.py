"""Reads the contract's files with their comments, for the pages that are generated from them."""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

PROTO: Final = Path(__file__).parent.parent / "proto"
FOLDER: Final = Path("rummikub", "v1")


@cache
def described() -> Mapping[str, FileDescriptorProto]:
    """Returns the contract's files with their comments, by stem (`game_service`), in alphabetical order."""
    names = [str(path.relative_to(PROTO)) for path in sorted((PROTO / FOLDER).glob("*.proto"))]
    includes = [f"-I{folder}" for folder in (PROTO, files("grpc_tools") / "_proto")]
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "descriptors"
        if protoc.main(["protoc", *includes, "--include_source_info", f"--descriptor_set_out={target}", *names]):
            sys.exit("protoc failed: see above")
        found = {Path(file.name).stem: file for file in FileDescriptorSet.FromString(target.read_bytes()).file}
    return dict(sorted(found.items()))


def comments(file: FileDescriptorProto) -> dict[str, str]:
    """Returns the comment of everything in a file, by name: `Game`, `Game.rack`, `GameService.JoinGame`, `TILE_JOKER`.

    A paragraph of a comment is one line; an empty line separates paragraphs.
    """
    names = dict(_names(file))
    return {
        names[path]: "\n\n".join(" ".join(part.split()) for part in location.leading_comments.split("\n\n")).strip()
        for location in file.source_code_info.location
        if (path := tuple(location.path)) in names
    }


def _names(file: FileDescriptorProto) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yields the path of everything in a file that may have a comment, with its name."""
    for place, message in enumerate(file.message_type):
        yield (4, place), message.name
        yield from (((4, place, 2, at), f"{message.name}.{member.name}") for at, member in enumerate(message.field))
    for place, kind in enumerate(file.enum_type):
        yield (5, place), kind.name
        yield from (((5, place, 2, at), value.name) for at, value in enumerate(kind.value))
    for place, service in enumerate(file.service):
        yield (6, place), service.name
        yield from (((6, place, 2, at), f"{service.name}.{rpc.name}") for at, rpc in enumerate(service.method))
