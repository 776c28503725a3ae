"""Ends child processes when their parent dies."""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def end_with_parent(parent: int, number: signal.Signals = signal.SIGTERM) -> None:
    """Makes Linux signal this process when its parent dies, even if the parent is killed.

    The child calls this right after the fork.

    Args:
        parent: The parent's process id. If the parent has died already, this process kills itself.
        number: The signal.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # no work has started, so there is nothing to clean up
            os.kill(os.getpid(), signal.SIGKILL)
