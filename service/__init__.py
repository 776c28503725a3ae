"""The Rummikub rules service."""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC's core logs plain text; it reads this when grpc is imported
