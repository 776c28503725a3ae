"""The entry point: serves, or checks the health of a running server, for which the rest is not imported."""

import gc
import sys


def main() -> None:
    """Serves until SIGTERM or SIGINT, or exits after a check of a running server's health."""
    if "--health" in sys.argv[1:]:
        from service.health_check import health_check, read_target  # noqa: PLC0415 - the other branch is heavy

        sys.exit(health_check(read_target()))
    gc.disable()  # what is imported stays, so that collections would only take time
    from service.program import serve  # noqa: PLC0415 - as above

    gc.freeze()
    gc.enable()
    serve()


if __name__ == "__main__":
    main()
