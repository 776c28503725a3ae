"""The options that load tests add to Locust's, each also an environment variable."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from load.stages import SHAPES


@dataclass(frozen=True, slots=True)
class Option:
    """An option of load/locustfile.py.

    Attributes:
        name: The name with its dashes.
        kind: Parses the value.
        default: The default value.
        text: The help text.
        choices: The allowed values; None allows any.
    """

    name: str
    kind: Callable[[str], object]
    default: object
    text: str
    choices: tuple[str, ...] | None = None

    @property
    def variable(self) -> str:
        """The name of the environment variable."""
        return f"LOAD_{self.name.lstrip('-').replace('-', '_').upper()}"


_SHAPES: Final = "; ".join(
    f"{name}: {shape.about} ({shape.users} users, {shape.seconds} s)" for name, shape in SHAPES.items()
)

OPTIONS: Final = (
    Option(
        "--shape",
        str,
        "",
        f"the number of users over time. {_SHAPES}. --users, --run-time and --spawn-rate override these",
        ("", *SHAPES),
    ),
    Option("--validation-host", str, "", "host:port of ValidationService, if it differs from --host"),
    Option("--baseline-host", str, "", "host:port of the no-op server; load.run starts one"),
    Option(
        "--p95-ratio", float, 4.0, "fail if the p95 of a validation call exceeds this multiple of its baseline's ..."
    ),
    Option("--p95-slack-ms", float, 100.0, "... plus this many milliseconds"),
    Option("--least-calls", int, 1, "fail if the service got fewer calls"),
    Option("--knee-p95-ms", float, 250.0, "end a ramp when the p95 of validation calls exceeds this"),
)


def explain() -> str:
    """Returns every option with its variable, help text and default, for --help."""
    return "\n".join(
        f"  {option.name}, or {option.variable}\n      {option.text} (default {option.default or 'unset'})"
        for option in OPTIONS
    )
