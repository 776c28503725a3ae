"""Runs a drill: `python -m load.drills cluster --seconds 60`. `python -m load.drills NAME --help` explains one."""

import argparse
import importlib
import sys
from typing import Final

from tools.servers import end_in_order

DRILLS: Final[dict[str, str]] = {
    "backup": "load.drills.backup",
    "cluster": "load.drills.cluster",
    "flood": "load.drills.flood",
    "rolling": "load.drills.rolling",
    "sentinel": "load.drills.sentinel",
    "upgrade": "load.drills.upgrade",
}
"""The module of each drill, by name. It has `main`, which takes the arguments and returns the exit code."""


def main() -> int:
    """Runs the named drill; returns 1 if it failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drill", choices=sorted(DRILLS), help="the drill to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    chosen = parser.parse_args()
    end_in_order()
    code: int = importlib.import_module(DRILLS[chosen.drill]).main(chosen.arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
