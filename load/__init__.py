"""Load tests, benchmarks, drills, and the positions that they use."""

import os
import sys
from pathlib import Path

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
"""These programs start servers while gRPC runs in them; gRPC's fork handlers sometimes end such a child. gRPC reads
this variable when it is imported."""

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
"""Benchmarks compare with the oracles of the tests, and record turns of their random players."""
