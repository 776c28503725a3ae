"""The text that a server prints when it serves: its addresses, and the next commands to try."""

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from service.settings import MEMORY_URL, Settings


@dataclass(frozen=True, slots=True)
class ServedAt:
    """The addresses that a server listens on; `validation` is "" without RUMMIKUB_VALIDATION_LISTEN."""

    grpc: str
    validation: str
    metrics: str


def greeting(program: str, settings: Settings, served_at: ServedAt, *, store_is_up: bool) -> str:
    """Returns the greeting of a server."""
    tls = " (TLS)" if settings.tls_cert else ""
    validation = f"\n  gRPC     {served_at.validation}{tls}, ValidationService only" if served_at.validation else ""
    workers = f"\n  workers  {settings.workers}" if settings.workers > 1 else ""
    store = _store(settings) + ("" if store_is_up else " (does not answer yet: health is NOT_SERVING)")
    return f"""\
Rummikub rules service {version("rummikub-service")}
  gRPC     {served_at.grpc}{tls}{validation}
  metrics  http://{served_at.metrics}/metrics
  store    {store}{workers}
{_next_steps(program, settings)}
Stop with Ctrl-C.
"""


def _store(settings: Settings) -> str:
    if settings.redis_url == MEMORY_URL:
        return "in memory: games are lost when the server stops"
    return _without_secrets(settings.redis_url) if settings.redis_url else f"embedded, in {settings.data_dir}"


def _without_secrets(url: str) -> str:
    """Returns a store's URL without user, password and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _next_steps(program: str, settings: Settings) -> str:
    """Returns the commands to try next; only a clone of the repository has a Makefile."""
    if not (Path(__file__).parents[2] / "Makefile").is_file():
        return f"{program} --help explains the settings."
    demo = (
        "plays a four-player round against its own server, because this one uses TLS"
        if settings.tls_cert
        else "plays a four-player round against this server"
    )
    return f"""\
Next, in another terminal:
  make demo                 {demo}
  .venv/bin/{program} --help
                            explains the settings
  README.md                 shows a game from Python; docs/examples.md with a generic gRPC client"""
