"""What Locust reads: users, options, shapes, and the thresholds that make a headless run fail.

`python -m load.run` starts the servers and then Locust with this file; load/README.md says how to read the results.
Locust makes one of every class of shapes that it finds here by name, so theirs are not imported by name.
"""

import os
import signal
import sys
from typing import Any

from locust import events
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from load.corpus import shapes
from load.options import OPTIONS
from load.stages import SHAPES, report
from load.thresholds import Limits, Row, missed
from load.users.analysis import AnalysisUser
from load.users.games import GameUser
from load.users.grpc_user import GrpcUser
from load.users.validation import BaselineUser, ValidationUser
from service.runtime.parent_death import end_with_parent

__all__ = ["AnalysisUser", "BaselineUser", "GameUser", "ValidationUser"]

PASSED, FAILED = 0, 1

_MASTER = os.getpid()
"""Locust reads this file before it starts the processes of `--processes`."""


def _add_options(parser: LocustArgumentParser) -> None:
    for option in OPTIONS:
        parser.add_argument(
            option.name,
            type=option.kind,
            default=option.default,
            choices=option.choices,
            env_var=option.variable,
            include_in_web_ui=False,
            help=option.text,
        )


def _shape(environment: Environment, **_others: Any) -> None:  # noqa: ANN401 - whatever Locust tells
    """Has the run follow the shape that was asked for."""
    options = environment.parsed_options
    if options is None or not options.shape or isinstance(environment.runner, WorkerRunner):
        return
    default = SHAPES[options.shape]
    options.num_users = options.num_users or default.users
    options.run_time = options.run_time or default.seconds
    options.spawn_rate = options.spawn_rate or default.spawn_rate
    environment.shape_class = shapes.shape_of(options.shape, options)
    environment.shape_class.runner = environment.runner


def _end_with_master(environment: Environment, **_others: Any) -> None:  # noqa: ANN401 - whatever Locust tells
    """Has a process of `--processes` end with the one that started it, however that ends."""
    options = environment.parsed_options
    if options and options.processes and isinstance(environment.runner, WorkerRunner):
        end_with_parent(_MASTER, signal.SIGKILL)


def _tell(environment: Environment, **_others: Any) -> None:  # noqa: ANN401 - whatever Locust tells
    """Tells a person at the web interface how the run went."""
    options = environment.parsed_options
    if options and not options.headless and not isinstance(environment.runner, WorkerRunner):
        _print_verdict(environment)


def _fail_or_pass(environment: Environment, **_others: Any) -> None:  # noqa: ANN401 - whatever Locust tells
    """Has a headless run fail where it missed a threshold."""
    options = environment.parsed_options
    if options and options.headless and not isinstance(environment.runner, WorkerRunner):
        environment.process_exit_code = FAILED if _print_verdict(environment) else PASSED


def _print_verdict(environment: Environment) -> list[str]:
    """Prints what was missed and where the knee was; what was missed."""
    options, shape = environment.parsed_options, environment.shape_class
    if isinstance(shape, shapes.RampShape) and options:
        print(report(shape.steps, options.knee_p95_ms))
    found = _missed(environment)
    print("\n".join(f"MISSED {what}" for what in found) if found else "All thresholds were kept.")
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
events.init.add_listener(_shape)
events.init.add_listener(_end_with_master)
events.test_stop.add_listener(_tell)
events.quitting.add_listener(_fail_or_pass)
