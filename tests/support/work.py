"""Deterministic measures of the work of a search, equal on every machine."""

import sys
from collections.abc import Callable
from types import FrameType, ModuleType


def calls_in(module: ModuleType, search: Callable[[], object]) -> int:
    """Returns the number of calls of a module's functions during a search."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        written = not frame.f_code.co_name.startswith(("<", "__"))
        count += event == "call" and written and frame.f_globals is vars(module)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        search()
    finally:
        sys.setprofile(before)
    return count
