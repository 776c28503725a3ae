"""The entry point: serves, or checks the health of a running server, for which the rest is not imported."""

import sys


def main() -> None:
    """Serves until SIGTERM or SIGINT, or exits after a check of a running server's health."""
    if "--health" in sys.argv[1:]:
        from service.health_check import health_check, read_target  # noqa: PLC0415 - the other branch is heavy

        sys.exit(health_check(read_target()))
    from service.program import serve  # noqa: PLC0415 - as above

    serve()


if __name__ == "__main__":
    main()
