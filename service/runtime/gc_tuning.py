"""The garbage collector, kept from what lives as long as the process: looking through it takes a tenth of a second."""

import gc
from typing import Final

COLLECT_AFTER: Final = (10_000, 20, 50)
"""Its thresholds: a call makes some hundred objects, a search some ten thousand, and nearly all of them end with it."""


def tune_collector() -> None:
    """Spares it all that there is by now, and has it look less often for what comes. May be called again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
