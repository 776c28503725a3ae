"""Deterministic measures of the work of a search, equal on every machine."""

import sys
from collections.abc import Callable
from types import FrameType, ModuleType


def calls_in(module: ModuleType, search: Callable[[], object]) -> int:
    """Returns how many calls of functions of a module, or of a package's modules, a search makes."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        written = not frame.f_code.co_name.startswith(("<", "__"))
        count += event == "call" and written and frame.f_globals["__name__"].startswith(module.__name__)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        search()
    finally:
        sys.setprofile(before)
    return count
