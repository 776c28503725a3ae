"""The grpcio releases whose private parts this service was tested with.

`aio_server` and `fast_listener` use private parts of grpcio. On any other release plain grpc.aio servers take their
place. To add a release: run `make canary`, and if the tests pass, add it here and in pyproject.toml.
"""

from typing import Final

import grpc

TESTED: Final = ("1.85.1",)
INSTALLED: Final = str(grpc.__version__)


def is_tested(version: str) -> bool:
    """Returns whether private parts of a grpcio release may be used."""
    return version in TESTED
