"""Writes the figures that the last runs of `make bench` left in build/bench into the pages of docs/."""

import argparse
import json
import sys

from load.bench.__main__ import PARTS, RESULTS
from load.pages import text_of, write


def main() -> int:
    """Writes the figures of all benchmarks that have run."""
    parser = argparse.ArgumentParser(description="Write the results of the last benchmarks into the pages of docs/.")
    parser.parse_args()
    made = {name: part for name, part in PARTS.items() if part.page and (RESULTS / f"{name}.json").exists()}
    if not made:
        sys.exit(f"{RESULTS} has no figures; run make bench")
    for name, part in made.items():
        report = json.loads((RESULTS / f"{name}.json").read_text())
        write(part.page, f"make bench PART={name}", text_of(report, part.told(report), part.tables(report)))
        print(f"{part.page} has the figures of {name} now.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
