"""Signals to commands of rummikub-admin that restore a store when they are interrupted."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator

import pytest

from service.admin_program.command import cancel_on_signals


@pytest.fixture
async def handled() -> AsyncIterator[None]:
    """Removes the handlers afterwards."""
    yield
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().remove_signal_handler(number)


@pytest.mark.usefixtures("handled")
async def test_only_the_first_signal_cancels_a_command() -> None:
    steps = []

    async def command() -> None:
        cancel_on_signals()
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(100):  # the event loop has read the signal by then
                await asyncio.sleep(0)
            steps.append("restored")

    running = asyncio.create_task(command())
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert running.cancelled()
    assert steps == ["restored"]
