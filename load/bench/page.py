"""Writes the figures that the last runs of `make bench` left in build/bench into the pages of docs/."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from load.bench.__main__ import PARTS, RESULTS
from load.pages import text_of, write


def main(arguments: Sequence[str] | None = None, results: Path = RESULTS) -> int:
    """Writes the figures of all benchmarks that have run."""
    parser = argparse.ArgumentParser(description="Write the results of the last benchmarks into the pages of docs/.")
    parser.parse_args(arguments)
    made = {name: part for name, part in PARTS.items() if part.page and (results / f"{name}.json").exists()}
    if not made:
        sys.exit(f"{results} has no figures; run make bench")
    for name, part in made.items():
        report = json.loads((results / f"{name}.json").read_text())
        write(part.page, f"make bench PART={name}", text_of(report, part.told(report), part.tables(report)))
        print(f"{part.page} has the figures of {name} now.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
