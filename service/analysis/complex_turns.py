"""Turns whose rules search for long are judged in a process of their own.

In this process, a thread that judges holds the GIL, for which every other call would then wait a dozen times. The
process has a low priority, and starts with the first such turn.
"""

import asyncio
from collections.abc import Generator, Sequence
from concurrent.futures import CancelledError, Future
from typing import Final

from engine.melding.play import Play
from engine.melding.rules import Judgement, judge
from service.analysis.pool import COMMAND, AnalysisPool, SearchFailedError
from service.analysis.queries import JudgePlay
from service.errors import AnalysisUnavailable
from service.metrics.metrics import Metrics

JUDGING_SECONDS: Final = 1.0
"""How long the process may take to judge, apart from pool.GRACE_SECONDS. It takes a tenth of it."""


class ComplexTurns:
    """The process.

    Args:
        metrics: Counts lost processes.
        command: Starts the process.

    Attributes:
        pool: Has the process.
        judging_seconds: How long it may take to judge, apart from the pool's grace.
    """

    def __init__(self, metrics: Metrics, command: Sequence[str] = COMMAND) -> None:
        self.pool = AnalysisPool(1, 0, metrics, command=command)
        self.judging_seconds = JUDGING_SECONDS
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Lets `judge` use the process, from other threads than the event loop's. Before, it judges in place."""
        self._loop = asyncio.get_running_loop()

    @property
    def processes(self) -> tuple[int, ...]:
        """The id of the process, if it runs."""
        return self.pool.processes

    def judge(self, play: Play) -> Generator[Future[Judgement], None, Judgement]:
        """Returns the judgement of a play in steps (slow_calls.Steps); judges in place if the process fails.

        The plays of all calls are judged in the order in which they come. A flow of slow calls has one at a time, so
        flows take turns here too.
        """
        if self._loop is None:
            return judge(play)
        judged = asyncio.run_coroutine_threadsafe(self.pool.ask(JudgePlay(play), self.judging_seconds), self._loop)
        try:
            yield judged
            return judged.result()
        except (AnalysisUnavailable, SearchFailedError, CancelledError):
            return judge(play)
        finally:
            judged.cancel()  # the call may be over

    async def close(self) -> None:
        """Ends the process, once no call waits for it."""
        await self.pool.close()
