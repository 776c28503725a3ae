"""Child processes end when their parent dies."""

import os
import signal
import subprocess
import sys
from functools import partial

import pytest

from service.runtime.parent_death import end_with_parent

SECONDS = 30
WAITS = "import sys; sys.stdin.read()"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's PR_SET_PDEATHSIG")


def start(parent: int) -> subprocess.Popen[bytes]:
    """Starts a child that is given a parent's process id and waits for its input to end."""
    preexec = partial(end_with_parent, parent)
    return subprocess.Popen([sys.executable, "-c", WAITS], stdin=subprocess.PIPE, preexec_fn=preexec)  # noqa: PLW1509 - as in the service


def test_a_child_lives_as_long_as_its_parent() -> None:
    with start(os.getpid()) as child:
        child.communicate(timeout=SECONDS)
    assert child.returncode == 0


def test_a_child_whose_parent_is_dead_kills_itself() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait(SECONDS)
    with start(gone.pid) as child:
        assert child.wait(SECONDS) == -signal.SIGKILL
