"""A Prometheus that scrapes servers of a test."""

import asyncio
import json
import shutil
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.servers import free_port

STEP_SECONDS = 1


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    port: int

    async def value(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Returns the series of an expression: labels and value."""
        answer = await asyncio.to_thread(self._get, f"api/v1/query?{urllib.parse.urlencode({'query': expression})}")
        return [(series["metric"], float(series["value"][1])) for series in answer["data"]["result"]]

    async def is_ready(self) -> bool:
        """Returns whether it answers."""
        try:
            await asyncio.to_thread(self._get, "api/v1/status/buildinfo")
        except OSError:
            return False
        return True

    def _get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=5) as answer:
            return json.load(answer)


@asynccontextmanager
async def running_prometheus(folder: Path, ports: Sequence[int]) -> AsyncIterator[Prometheus]:
    """Runs a Prometheus that scrapes ports of this machine, each as a pod of the namespace `games`."""
    configuration = {
        "global": {"scrape_interval": f"{STEP_SECONDS}s"},
        "scrape_configs": [
            {
                "job_name": "rummikub-headless",
                "static_configs": [
                    {"targets": [f"127.0.0.1:{port}"], "labels": {"namespace": "games"}} for port in ports
                ],
            }
        ],
    }
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(configuration))  # JSON is YAML
    program = shutil.which("prometheus")
    assert program
    port = free_port()
    with (folder / "log").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            program,
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            stdout=log,
            stderr=log,
        )
        prometheus = Prometheus(port)
        try:
            async with asyncio.timeout(30):
                while not await prometheus.is_ready():
                    assert process.returncode is None, (folder / "log").read_text()
                    await asyncio.sleep(0.1)
            yield prometheus
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
