"""Runs the parts of a drill or a measurement one after the other: one that fails costs no results of the others."""

import sys
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from load.bench.figures import requirement
from tools.servers import ServerError

P = TypeVar("P")
T = TypeVar("T")


def run_parts(run: Callable[[P], T], parts: Mapping[str, P]) -> tuple[dict[str, T], dict[str, str]]:
    """Passes each part to a function; returns the results of those that ended, and the errors of the others, by name.

    A part runs once more if one of its servers did not start, which happens on a busy machine. After a part that failed
    the next one runs, but none after Ctrl-C or SIGTERM.
    """
    results: dict[str, T] = {}
    errors: dict[str, str] = {}
    for name, part in parts.items():
        try:
            results[name] = _with_second_try(name, partial(run, part))
        except (KeyboardInterrupt, SystemExit) as end:
            errors[name] = f"stopped: {end}" if str(end) else "stopped"
            print(f"{name}: {errors[name]}", file=sys.stderr)
            break
        except Exception as error:  # noqa: BLE001 - whatever it is, the other parts have results
            traceback.print_exc()
            errors[name] = f"{type(error).__name__}: {error}"
    return results, errors


def _with_second_try(name: str, run: Callable[[], T]) -> T:
    try:
        return run()
    except ServerError as error:
        print(f"{name}: {error}; trying once more", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return run()


def every_part_ends(errors: Mapping[str, str]) -> dict[str, Any]:
    """Returns the requirement that every part runs to its end, as missed by those with an error."""
    failed = "; ".join(f"{name}: {error}" for name, error in errors.items())
    return requirement("every part runs to its end", met=False, measured=failed)
