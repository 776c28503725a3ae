"""The pages for languages without a client: Ruby's game is played, the others' names exist in generated code."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FileDescriptor

from support.harness import CONTRACT, ROOT, server_process

pytestmark = pytest.mark.slow

PROTOC = Path(sys.executable).with_name("protoc")
WORD = re.compile(r"(?<!\w)[A-Za-z_]\w*")
COMMENTS_AND_STRINGS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
WITH_PROTOC = ("csharp", "objc", "php")
BY_RULES = ("dart", "swift")

# The other words of the pages' code: of the language, of gRPC and other libraries, and the names that the code defines.
OTHER_WORDS = {
    "csharp": """
        Act analysis ann async await CancelAfter cancellationToken CancellationTokenSource Cancelled catch
        channel Client continue Core created Delay delay end error for ForAddress foreach FromSeconds game games
        Grpc GrpcChannel Guid id in is isOver joined Net NewGuid NewId or position ReadAllAsync ResponseStream
        RpcException rules silence StatusCode Task Tasks Threading TimeSpan Token token ToTimeSpan try turn
        turns Unavailable update var watch when
    """,
    "dart": """
        act analysis ann async await CallOptions catch channel ChannelCredentials ChannelOptions ClientChannel
        code const continue credentials delay delayed Duration else end error false final for Future GrpcError id if
        import in insecure isOver joined main newId on options port rethrow rules shutdown StatusCode String
        timeout TimeoutException toInt token true try unavailable Uuid v4 var void
    """,
    "objc": """
        alloc ann break callOptions code core_insecure didCloseWithTrailingMetadata didReceiveProtoMessage
        dispatch_after dispatch_get_main_queue dispatch_queue_t dispatch_time DISPATCH_TIME_NOW dispatchQueue
        found GRPCCallOptions GRPCClient GRPCDefaultTransportImplList GRPCErrorCodeUnavailable
        GRPCMutableCallOptions GRPCProtoResponseHandler GRPCUnaryResponseHandler handler host init
        initialMetadata initWithResponseHandler isClosing joined joinGame kHost mutableCopy NSDictionary NSEC_PER_SEC
        NSError NSObject NSUUID playTurn request response responseDispatchQueue responseHandler self start
        started startNextRound stringByAppendingString suggestTurn Table trailingMetadata transport UUID
        UUIDString watch
    """,
    "php": """
        analysis ann answer as bot call ChannelCredentials code continue createInsecure details do elseif end
        file_get_contents foreach getStatus Grpc id isClosing join joined newId next options Ramsey require
        response responses RuntimeException sleep status STATUS_OK STATUS_UNAVAILABLE target token toString Uuid
        uuid4 wait watch while
    """,
    "swift": """
        _ act analysis ann as async await CallOptions callOptions case catch channel close code continue
        customMetadata default do else error eventLoopGroup false for Foundation func get GRPC GRPCChannelPool
        GRPCStatus id if import in Int64 isOver joined let MultiThreadedEventLoopGroup nanoseconds newID next
        NIOCore NIOPosix numberOfThreads plaintext port response shutdownGracefully sleep String switch target
        Task throws token transportSecurity true try UInt64 unavailable UUID uuidString var where while with
    """,
}


def files() -> list[FileDescriptor]:
    """Returns the files of the contract, without those of google/."""
    found: dict[str, FileDescriptor] = {}
    waiting = [service.file for service in CONTRACT]
    while waiting:
        file = waiting.pop()
        if file.package == "rummikub.v1" and file.name not in found:
            found[file.name] = file
            waiting += file.dependencies
    return list(found.values())


def messages() -> Iterator[Descriptor]:
    """Yields the messages of the contract, with nested ones."""
    waiting = [message for file in files() for message in file.message_types_by_name.values()]
    while waiting:
        message = waiting.pop()
        yield message
        waiting += message.nested_types


def enums() -> Iterator[EnumDescriptor]:
    for file in files():
        yield from file.enum_types_by_name.values()


def rpcs() -> list[str]:
    return [rpc.name for service in CONTRACT for rpc in service.methods]


def services() -> list[str]:
    return [service.name for service in CONTRACT]


def upper(name: str) -> str:
    return name[0].upper() + name[1:]


def lower(name: str) -> str:
    return name[0].lower() + name[1:]


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def fields() -> set[str]:
    """Returns the fields of messages, and of the duration and the timestamp that they contain."""
    names = {field.name for message in messages() for field in message.fields}
    return names | {oneof.name for message in messages() for oneof in message.oneofs} | {"seconds", "nanos"}


def stubs(language: str) -> set[str]:
    """Returns the names in the code of gRPC's plugins, by their rules."""
    match language:
        case "csharp":
            return {
                *services(),
                *(f"{name}Client" for name in services()),
                *rpcs(),
                *(f"{name}Async" for name in rpcs()),
            }
        case "objc":
            return {
                "serviceWithHost",
                *(f"RMK{name}" for name in services()),
                *(f"{lower(name)}WithMessage" for name in rpcs()),
            }
        case "php":
            return {*(f"{name}Client" for name in services()), *rpcs()}
        case "dart":
            return {*(f"{name}Client" for name in services()), *map(lower, rpcs())}
        case _:
            return {*(f"Rummikub{name}AsyncClient" for name in services()), *map(lower, rpcs())}


def by_rules(language: str) -> set[str]:
    """Returns the names in the messages' code of Dart or Swift, by the rules of their plugins."""
    if language == "dart":
        names = {camel(name) for name in fields()}
        constants = {value.name for enum in enums() for value in enum.values}
        types = {message.name for message in messages()} | {enum.name for enum in enums()}
    else:
        names = {re.sub(r"Id(?=[A-Z]|$)", "ID", camel(name)) for name in fields()}
        prefixes = ((enum, snake(enum.name).upper() + "_") for enum in enums())
        constants = {
            camel(value.name.removeprefix(prefix).lower()) for enum, prefix in prefixes for value in enum.values
        }
        types = {f"Rummikub{kind.name}" for kind in (*messages(), *enums())}
    return names | constants | types | {f"has{upper(name)}" for name in names}


def generated(language: str, folder: Path) -> set[str]:
    """Returns the words of the messages' code that protoc generates."""
    sources = map(str, (ROOT / "proto").rglob("*.proto"))
    command = [str(PROTOC), "-I", str(ROOT / "proto"), f"--{language}_out={folder}", *sources]
    subprocess.run(command, check=True, timeout=100)
    code = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file())
    return set(WORD.findall(COMMENTS_AND_STRINGS.sub(" ", code)))


def program(language: str) -> str:
    """Returns the program in a language's page."""
    page = (ROOT / "clients" / language / "README.md").read_text(encoding="utf-8")
    [code] = re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(code)


@pytest.mark.parametrize("language", [*WITH_PROTOC, *BY_RULES])
def test_the_names_of_a_page_exist(language: str, tmp_path: Path) -> None:
    known = by_rules(language) if language in BY_RULES else generated(language, tmp_path)
    known |= stubs(language)
    used = set(WORD.findall(COMMENTS_AND_STRINGS.sub(" ", program(language))))
    other = set(OTHER_WORDS[language].split())
    assert used - known - other == set(), "names that do not exist in the generated code"
    assert other - used == set(), "words that the page does not use any more"
    assert len(used & known) > 20


@pytest.fixture
def ruby_project(tmp_path: Path) -> Path:
    """Returns a folder with the generated code and the service config that the program of the page needs."""
    if not shutil.which("grpc_tools_ruby_protoc"):
        assert not os.environ.get("CI"), "Debian's ruby-grpc-tools is not installed"
        pytest.skip("ruby-grpc-tools is not installed; run: apt-get install ruby-grpc-tools libprotobuf-dev")
    (tmp_path / "lib").mkdir()
    sources = [*(ROOT / "proto/rummikub/v1").glob("*.proto"), *(ROOT / "proto/google/api").glob("*.proto")]
    command = ["grpc_tools_ruby_protoc", f"-I{ROOT}/proto", "--ruby_out=lib", "--grpc_out=lib", *map(str, sources)]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=100)
    shutil.copy(ROOT / "clients" / "service_config.json", tmp_path)
    return tmp_path


async def test_the_game_of_the_ruby_page_is_played(ruby_project: Path) -> None:
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://"}) as server:
        code = program("ruby").replace("127.0.0.1:50051", server.target)
        ruby = await asyncio.create_subprocess_exec(
            "ruby", "-Ilib", "-e", code, cwd=ruby_project, stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await asyncio.wait_for(ruby.communicate(), 100)
    assert ruby.returncode == 0
    assert b"round 2: " in printed
