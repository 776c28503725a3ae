"""What a load test can be told beside what Locust knows: each an option, or a variable of the environment."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from load.stages import SHAPES


@dataclass(frozen=True, slots=True)
class Option:
    """An option of load/locustfile.py.

    Attributes:
        name: With its dashes.
        kind: Reads the value.
        default: The value if it is not given.
        text: What it means.
        choices: The values that it may have; None for any.
    """

    name: str
    kind: Callable[[str], object]
    default: object
    text: str
    choices: tuple[str, ...] | None = None

    @property
    def variable(self) -> str:
        """The variable that may have the value in its place."""
        return f"LOAD_{self.name.lstrip('-').replace('-', '_').upper()}"


_SHAPES: Final = "; ".join(
    f"{name}: {shape.about} ({shape.users} users, {shape.seconds} s)" for name, shape in SHAPES.items()
)

OPTIONS: Final = (
    Option(
        "--shape",
        str,
        "",
        f"how many users there are over time. {_SHAPES}. --users, --run-time and --spawn-rate change that",
        ("", *SHAPES),
    ),
    Option("--validation-host", str, "", "host:port of ValidationService, where it is not that of --host"),
    Option("--baseline-host", str, "", "host:port of a server that does nothing; load.run starts one"),
    Option("--p95-ratio", float, 4.0, "fail where p95 of validation calls is more times that of their baseline ..."),
    Option("--p95-slack-ms", float, 100.0, "... and so many milliseconds more"),
    Option("--least-calls", int, 1, "fail where there were fewer calls of the service"),
    Option("--knee-p95-ms", float, 250.0, "a ramp ends where p95 of validation calls is longer"),
)


def explain() -> str:
    """Every option with its variable, meaning and default, for --help."""
    return "\n".join(
        f"  {option.name}, or {option.variable}\n      {option.text} (default {option.default or 'unset'})"
        for option in OPTIONS
    )
