"""The Rummikub rules service."""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
"""gRPC's core writes lines to the log that are no JSON. It reads this when grpc is imported."""
