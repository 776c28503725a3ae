"""The file that Locust loads: users, options, and the thresholds that can fail a headless run.

`python -m load.run` starts the servers and then Locust with this file; load/README.md explains the results.
"""

import os
import signal
import sys
from typing import Any

from locust import events
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from load.thresholds import OPTIONS, Limits, Row, missed
from load.users.analysis import AnalysisUser
from load.users.games import GameUser
from load.users.grpc_user import GrpcUser
from load.users.validation import BaselineUser, ValidationUser
from service.runtime.parent_death import end_with_parent

__all__ = ["AnalysisUser", "BaselineUser", "GameUser", "ValidationUser"]

PASSED, FAILED = 0, 1

_MASTER = os.getpid()
"""Locust loads this file before it forks the processes of `--processes`."""


def _add_options(parser: LocustArgumentParser) -> None:
    """Adds the options of the test, each also an environment variable."""
    for name, variable, default, text in OPTIONS:
        parser.add_argument(
            name, type=type(default), default=default, env_var=variable, include_in_web_ui=False, help=text
        )


def _end_with_master(environment: Environment, **_others: Any) -> None:  # noqa: ANN401 - Locust's own types
    """Kills a process of `--processes` when the master ends, however the master ends."""
    options = environment.parsed_options
    if options and options.processes and isinstance(environment.runner, WorkerRunner):
        end_with_parent(_MASTER, signal.SIGKILL)


def _print_browser_verdict(environment: Environment, **_others: Any) -> None:  # noqa: ANN401 - Locust's own types
    """Prints the verdict of a run that was started in the browser."""
    options = environment.parsed_options
    if options and not options.headless and not isinstance(environment.runner, WorkerRunner):
        _print_verdict(environment)


def _set_exit_code(environment: Environment, **_others: Any) -> None:  # noqa: ANN401 - Locust's own types
    """Sets the exit code of a headless run."""
    options = environment.parsed_options
    if options and options.headless and not isinstance(environment.runner, WorkerRunner):
        environment.process_exit_code = FAILED if _print_verdict(environment) else PASSED


def _print_verdict(environment: Environment) -> list[str]:
    """Prints and returns the missed thresholds."""
    found = _missed(environment)
    print(
        "\n".join(f"MISSED {missed_threshold}" for missed_threshold in found) if found else "All thresholds were met."
    )
    sys.stdout.flush()
    return found


def _missed(environment: Environment) -> list[str]:
    options, runner = environment.parsed_options, environment.runner
    if options is None or runner is None:
        return ["Locust did not start"]
    users = {user.__name__: user.takes_part_by for user in environment.user_classes if issubclass(user, GrpcUser)}
    callers = {name: rpcs for name, rpcs in users.items() if rpcs}
    limits = Limits(options.p95_ratio, options.p95_slack_ms, options.least_calls, callers)
    found = missed(_rows(environment), sum(int(one["count"]) for one in runner.exceptions.values()), limits)
    lost = len(runner.clients.missing) if isinstance(runner, MasterRunner) else 0
    return [*found, f"{lost} of Locust's workers were lost"] if lost else found


def _rows(environment: Environment) -> list[Row]:
    return [
        Row(
            sort=entry.method,
            name=entry.name,
            requests=entry.num_requests,
            failures=entry.num_failures,
            p95_ms=float(entry.get_response_time_percentile(0.95) or 0),
        )
        for entry in environment.stats.entries.values()
    ]


events.init_command_line_parser.add_listener(_add_options)
events.init.add_listener(_end_with_master)
events.test_stop.add_listener(_print_browser_verdict)
events.quitting.add_listener(_set_exit_code)
