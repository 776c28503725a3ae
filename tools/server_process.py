"""A server in a process of its own, started as by `make run`, and a relay that gives callers another address."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from tools.servers import ROOT, START_SECONDS, ServerError, ended, late

PROCESS_SECONDS: Final = 90
"""How long a server in another process may take to end; a busy machine needs some of it."""


@asynccontextmanager
async def from_another_address(port: int, address: str = "127.0.0.2") -> AsyncIterator[int]:
    """Forwards a port of 127.0.0.1 to a server's port from another source address; yields the port."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        await asyncio.gather(carry(reader, back), carry(there, writer))

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


class ServerProcess:
    """A server in another process, started as by `make run`, of this checkout or another one."""

    def __init__(
        self,
        environment: Mapping[str, str],
        port: int = 0,
        stderr: int | None = None,
        program: Sequence[str] = ("-m", "service"),
        checkout: Path = ROOT,
    ) -> None:
        self._stderr = stderr
        self.checkout = checkout
        """The folder to run it in, which can change before it starts again."""
        self.settings: Mapping[str, str] = {}
        """More variables, which can change too."""
        self._program = program
        clean = {name: value for name, value in os.environ.items() if not name.startswith("RUMMIKUB_")}
        self._environment = {
            **clean,
            "RUMMIKUB_LISTEN": f"127.0.0.1:{port}",
            "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_LOG_LEVEL": "warning",
            **environment,
        }
        self._process: asyncio.subprocess.Process | None = None
        self.port = port
        self.validation_port = 0
        self.metrics_port = 0
        self.admin_port = 0

    @property
    def target(self) -> str:
        """Its address."""
        return f"127.0.0.1:{self.port}"

    @property
    def validation_target(self) -> str:
        """The address of ValidationService, which is the main one unless the environment sets another."""
        return f"127.0.0.1:{self.validation_port}"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._started.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    @property
    def _started(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise ServerError("the server was not started")
        return self._process

    async def start(self) -> None:
        """Starts it and waits until it prints where it serves. Raises ServerError."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *self._program,
            cwd=self.checkout,
            env={**self._environment, **self.settings},
            stdout=asyncio.subprocess.PIPE,
            stderr=self._stderr,
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                if await self._has_printed_its_ports():
                    return
                raise ended(await self._process.wait())
        except TimeoutError:
            raise late() from None

    async def _has_printed_its_ports(self) -> bool:
        """Reads the ports that it prints; returns false if it ends before."""
        ports: list[int] = []
        output = self._started.stdout
        while output and (line := await output.readline()):
            words = line.decode().split()
            if words[:1] == ["gRPC"]:
                ports.append(int(words[1].removesuffix(",").rpartition(":")[2]))
            if words[:1] == ["admin"]:
                self.admin_port = int(words[1].removesuffix(",").rpartition(":")[2])
            if words[:1] == ["metrics"]:
                self.port, self.validation_port = ports[0], ports[-1]
                self.metrics_port = int(words[1].removesuffix("/metrics").rpartition(":")[2])
                return True
        return False

    async def start_again(self) -> None:
        """Restarts it on the same addresses."""
        self._environment["RUMMIKUB_LISTEN"] = self.target
        await self.start()

    async def kill(self) -> None:
        """Kills it, as in a power failure."""
        self._started.kill()
        await self._started.wait()

    async def ended(self) -> int:
        """Waits until it ends by itself; returns its exit code."""
        return await asyncio.wait_for(self._started.wait(), PROCESS_SECONDS)

    async def terminate(self) -> int:
        """Terminates it; returns its exit code."""
        self._started.terminate()
        return await self.ended()


@asynccontextmanager
async def server_process(
    environment: Mapping[str, str], stderr: int | None = None, module: str = "service", checkout: Path = ROOT
) -> AsyncIterator[ServerProcess]:
    """Runs a server, or another module that serves, in another process. It logs to the file descriptor `stderr`."""
    process = ServerProcess(environment, stderr=stderr, program=("-m", module), checkout=checkout)
    try:
        await process.start()
        yield process
    finally:
        if process.is_running:
            await process.kill()
