"""Floods and crowds: what one hostile caller, or many honest ones, cost all others.

`python -m load.floods --help` lists the floods, `python -m load.floods.crowds --help` the crowds.
"""

import os

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
"""These programs start servers while gRPC runs in them, and gRPC's handlers for forks now and then end such a child.
gRPC reads this when it is imported."""
