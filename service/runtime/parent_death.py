"""Processes that end with the one that started them, however that ends."""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def end_with(parent: int, number: signal.Signals = signal.SIGTERM) -> None:
    """Has Linux send this process a signal when its parent dies, even if that is killed.

    For a child to run as soon as it is one, with the process id of who started it: a parent may be gone by then.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # nothing was begun that could be ended in order
            os.kill(os.getpid(), signal.SIGKILL)
