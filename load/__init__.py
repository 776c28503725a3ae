"""Load tests, benchmarks, drills, and the positions that they use."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
"""Benchmarks compare with the oracles of the tests, and record turns of their random players."""
