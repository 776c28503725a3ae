"""Garbage collector settings for a process with many long-lived objects, which take 0.1 s to traverse."""

import gc
from typing import Final

THRESHOLDS: Final = (10_000, 20, 50)
"""A call allocates about 100 objects and a search about 10,000; nearly all of them die with it."""


def tune_gc() -> None:
    """Excludes all current objects from collection and makes collections rarer. May be called repeatedly."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
