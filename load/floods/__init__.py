"""Floods and crowds: the cost that one hostile caller, or many honest ones, impose on all others.

`python -m load.drills flood --help` lists the floods, `python -m load.floods.crowds --help` the crowds.
"""

import os

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
"""These programs start servers while gRPC runs in them; gRPC's fork handlers sometimes end such a child. gRPC reads
this variable when it is imported."""
