"""A part that fails costs no results of the others."""

from collections.abc import Callable
from pathlib import Path

import pytest

from load.bench import __main__ as bench
from load.bench.figures import requirement
from load.capacity import __main__ as capacity
from load.parts import run_parts
from tools.servers import ServerError


def part(*outcomes: BaseException | int) -> Callable[[], int]:
    """Returns a part that ends with the outcomes, one at each run."""
    ahead = iter(outcomes)

    def run() -> int:
        outcome = next(ahead)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return run


@pytest.mark.parametrize(
    ("second", "results", "errors"),
    [
        (part(2), {"first": 1, "second": 2, "third": 3}, {}),
        (part(ValueError("no turn")), {"first": 1, "third": 3}, {"second": "ValueError: no turn"}),
        (part(ServerError("it is slow"), 2), {"first": 1, "second": 2, "third": 3}, {}),
        (
            part(ServerError("it is slow"), ServerError("it is broken")),
            {"first": 1, "third": 3},
            {"second": "ServerError: it is broken"},
        ),
        (part(KeyboardInterrupt()), {"first": 1}, {"second": "stopped"}),
        (part(SystemExit("too few bytes are free")), {"first": 1}, {"second": "stopped: too few bytes are free"}),
    ],
)
def test_the_results_of_other_parts_remain(
    second: Callable[[], int], results: dict[str, int], errors: dict[str, str]
) -> None:
    parts = {"first": part(1), "second": second, "third": part(3)}
    assert run_parts(lambda one: one(), parts) == (results, errors)


def test_benchmarks_run_on_after_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = {"analysis": part(1), "hostile": part(ValueError("no turn")), "play": part(0), "tracing": part(1)}

    def measured(name: str) -> bench.Part:
        def measure(*_: object) -> dict[str, object]:
            return {"requirements": [requirement("a call", met=bool(outcomes[name]()), measured="1")]}

        return bench.Part(measure, lambda _: ("python 3",), lambda _: {})

    monkeypatch.setattr(bench, "PARTS", {name: measured(name) for name in outcomes})
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    assert bench.main([]) == 1
    printed = [line.split(":")[0].rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in printed if "the requirements of" in line or "every part" in line] == [
        "met    the requirements of analysis",
        "MISSED the requirements of play",
        "met    the requirements of tracing",
        "MISSED every part runs to its end",
    ]


def test_measurements_of_capacity_run_on_after_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = {
        "date": "now",
        "revision": "r",
        "machine": "m",
        "processors": 1,
        "versions": {},
        "seconds": {},
        "store": "s",
    }

    def run(name: str, *_arguments: object, **_options: object) -> dict[str, object]:
        if name == "games":
            raise ValueError("no turn")
        return {**report, "parts": {}, "requirements": []}

    monkeypatch.setattr(capacity, "run", run)
    assert capacity.main(["games", "commits", "--quick"], tmp_path / "quick.json") == 1
    assert "MISSED every part runs to its end: games: ValueError: no turn" in capsys.readouterr().out
