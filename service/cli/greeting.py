"""The text that a server prints when it serves: its addresses, and the next commands to try."""

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from service.runtime.redis_url import parse_redis_url
from service.settings import MEMORY_URL, Settings


@dataclass(frozen=True, slots=True)
class ServedAt:
    """The addresses that a server listens on; `validation` and `admin` are "" if their settings are unset."""

    grpc: str
    validation: str
    admin: str
    metrics: str


def greeting(program: str, settings: Settings, served_at: ServedAt, *, store_is_up: bool) -> str:
    """Returns the greeting of a server."""
    tls = " (TLS)" if settings.tls_cert else ""
    validation = f"\n  gRPC     {served_at.validation}{tls}, ValidationService only" if served_at.validation else ""
    admin = f"\n  admin    {served_at.admin}{tls}" if served_at.admin else ""
    workers = f"\n  workers  {settings.workers}" if settings.workers > 1 else ""
    store = _store(settings) + ("" if store_is_up else " (does not answer yet: health is NOT_SERVING)")
    return f"""\
Rummikub rules service {version("rummikub-service")}
  gRPC     {served_at.grpc}{tls}{validation}{admin}
  metrics  http://{served_at.metrics}/metrics
  store    {store}{workers}
{_next_steps(program, settings)}
Stop with Ctrl-C.
"""


def _store(settings: Settings) -> str:
    if settings.redis_url == MEMORY_URL:
        return "in memory: games are lost when the server stops"
    return parse_redis_url(settings.redis_url).shown if settings.redis_url else f"embedded, in {settings.data_dir}"


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
  README.md                 leads to the pages for your task; docs/examples.md has calls to try"""
