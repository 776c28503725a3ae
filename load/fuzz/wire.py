"""Abuse of HTTP/2 at each listener, beside honest calls whose answers are checked (load/floods/http2_attacks.py).

`make drill ARGS="flood reset pings"` measures how much later honest calls are answered beside the same attacks; this
part looks for wrong answers, and for memory and descriptors that do not come back.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from load.floods import http2_attacks
from load.floods.attack import Attack
from load.fuzz.calls import (
    HONEST,
    Findings,
    Honest,
    attacked_server,
    client_with,
    errors_in,
    held,
    settled,
    stopped,
)

ATTACKS: Final[Mapping[str, Callable[[Attack], Awaitable[None]]]] = {
    "rapid reset": http2_attacks.rapid_reset,
    "pings": http2_attacks.pings,
    "settings": http2_attacks.settings_flood,
    "zero window": http2_attacks.zero_window,
    "huge headers": http2_attacks.huge_headers,
    "continuations": http2_attacks.continuations,
    "compressed bombs": http2_attacks.bombs,
    "half-open connections": http2_attacks.half_open_connections,
}
HONEST_FIRST: Final = 10
"""Honest calls before the first attack: then the honest callers are connected."""


@dataclass
class Abuse:
    """The result of all attacks.

    Attributes:
        seconds: How long all took.
        attacks: What each attack did by listener and attack.
        honest: Honest calls.
        wrong: Honest calls that were answered wrongly, as text.
        descriptors: The server's before and after.
        megabytes: Its memory before and after.
        errors: Lines of its log at level error.
    """

    seconds: float = 0.0
    attacks: dict[str, dict[str, int]] = field(default_factory=dict)
    honest: int = 0
    wrong: list[str] = field(default_factory=list)
    descriptors: tuple[int, int] = (0, 0)
    megabytes: tuple[float, float] = (0.0, 0.0)
    errors: list[str] = field(default_factory=list)


async def abuse(seconds: float) -> Abuse:
    """Runs each attack for a time at each listener; returns what was found."""
    found, started = Abuse(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rummikub-fuzz-") as name:
        log_path = Path(name) / "server.log"
        with log_path.open("wb") as log:
            async with (
                attacked_server(Path(name), log.fileno()) as server,
                client_with(server.target, HONEST) as main,
                client_with(server.validation_target, HONEST) as validation,
            ):
                honest = Findings(0)
                calling = asyncio.create_task(Honest(main, validation, honest).run())
                while honest.honest < HONEST_FIRST:  # noqa: ASYNC110 - it counts, and sends no notification
                    await asyncio.sleep(0.1)
                before = held(server.pid)
                for listener, target in {"main": server.target, "validation": server.validation_target}.items():
                    found.attacks |= await attacked(listener, target, seconds)
                after = await settled(server.pid, before)
                await stopped(calling)
                found.honest, found.wrong = honest.honest, honest.wrong
                found.descriptors, found.megabytes = (before[0], after[0]), (before[1], after[1])
        found.errors = errors_in(log_path)
    found.seconds = time.monotonic() - started
    return found


async def attacked(name: str, target: str, seconds: float) -> dict[str, dict[str, int]]:
    """Runs each attack for a time; returns what each did, by the name of the target and of the attack."""
    found: dict[str, dict[str, int]] = {}
    for title, run in ATTACKS.items():
        attack = Attack(target)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await run(attack)
        found[f"{name}: {title}"] = dict(attack.ends)
    return found
