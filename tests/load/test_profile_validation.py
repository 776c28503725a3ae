"""Classification of the samples of a profile."""

from collections import Counter

import pytest

from load.bench.profile_validation import (
    BOUNDARY,
    COLLECTOR,
    CORE,
    DECODING,
    ENCODING,
    ENGINE,
    LOCKS,
    NETWORK,
    PYTHON,
    ROWS,
    SERVER,
    Frame,
    part_of_cpu,
    part_of_python,
    perf_samples,
    py_spy_samples,
    shares,
    table_of,
)

PERF = """\
python 7
\tffffffff82010783 tcp_sendmsg_locked ([kernel.kallsyms])
\tffffffff81e31e7b __sys_sendmsg ([kernel.kallsyms])
\t          10ac4d __libc_sendmsg (/usr/lib/libc.so.6)

event_engine 8
\t          33b818 [unknown] (/lib/grpc/_cython/cygrpc.so)
"""
KERNEL = "[kernel.kallsyms]"


@pytest.mark.parametrize(
    ("frames", "part"),
    [
        ([("tcp_sendmsg_locked", KERNEL), ("__sys_sendmsg", KERNEL)], NETWORK),
        ([("try_to_wake_up", KERNEL), ("futex_wake", KERNEL), ("sock_of_nothing", "libc.so.6")], LOCKS),
        ([("take_gil", "libpython3.11.so"), ("PyEval_RestoreThread", "libpython3.11.so")], LOCKS),
        ([("[unknown]", "grpc/_cython/cygrpc.so")], CORE),
        ([("visit_decref", "libpython3.11.so")], COLLECTOR),
        ([("_PyEval_EvalFrameDefault", "libpython3.11.so")], PYTHON),
    ],
)
def test_cpu_is_of_the_kernel_of_grpc_or_of_python(frames: list[Frame], part: str) -> None:
    assert part_of_cpu(frames) == part


@pytest.mark.parametrize(
    ("stack", "part"),
    [
        (
            "handle (service/fast_listener/interceptor.py:65);_judged (service/grpc_api/turn_validator.py:9);verdict (engine/melding/fast/fast_judge.py)",  # noqa: E501 - a stack as py-spy writes it
            ENGINE,
        ),
        ("handle (service/fast_listener/interceptor.py:65);observe (service/metrics/shared_counters.py:9)", BOUNDARY),
        (
            "_judged (service/grpc_api/turn_validator.py:9);turn (service/codec/raw_messages.py:2);0x7f (_message.abi3.so)",  # noqa: E501 - a stack as py-spy writes it
            DECODING,
        ),
        (
            "_judged (service/grpc_api/turn_validator.py:9);turn_answer (service/codec/raw_messages.py:2);0x7f (_message.abi3.so)",  # noqa: E501 - a stack as py-spy writes it
            ENCODING,
        ),
        ("_poll (service/fast_listener/completion_queue_server.py:13);Condition.__enter__ (threading.py:272)", SERVER),
        ("SlowCalls._run (service/runtime/slow_calls.py:6);get (_queuemodule.c.h:177)", SERVER),
        (
            "_poll (service/fast_listener/completion_queue_server.py:13);0x7f (grpc/_cython/cygrpc.cpython-311-x86_64-linux-gnu.so)",  # noqa: E501 - a stack as py-spy writes it
            None,
        ),
        ("main (service/__main__.py:66);BaseEventLoop._run_once (asyncio/base_events.py:1884)", None),
        (
            "_judged (service/grpc_api/turn_validator.py:9);gc_collect_main (libpython.so);visit_decref (libpython.so)",
            None,
        ),
    ],
)
def test_python_is_of_the_innermost_module_that_is_known(stack: str, part: str | None) -> None:
    [(frames, count)] = py_spy_samples(f"thread (7): call-1;{stack} 3\n")
    assert (part_of_python(frames), count) == (part, 3)


def test_samples_of_perf_are_read() -> None:
    assert [part_of_cpu(frames) for frames in perf_samples(PERF)] == [NETWORK, CORE]


def test_what_perf_calls_python_is_divided_as_py_spy_says() -> None:
    found = shares(Counter({CORE: 40, PYTHON: 60}), Counter({ENGINE: 1, SERVER: 2}))
    assert found[CORE] == pytest.approx(0.4)
    assert found[ENGINE] == pytest.approx(0.2)
    assert sum(found.values()) == pytest.approx(1)


def test_without_perf_there_is_what_is_done_while_the_gil_is_held() -> None:
    found = shares(Counter(), Counter({ENGINE: 1, SERVER: 3}))
    assert (found[ENGINE], found[SERVER], found[CORE]) == (0.25, 0.75, 0)


def test_the_table_has_a_row_for_each_part_and_one_for_all() -> None:
    figures = dict.fromkeys(ROWS, 10.0)
    rows = table_of(figures, figures).splitlines()
    assert len(rows) == 2 + len(ROWS) + 1
    assert rows[-1] == "| together | 100 | | 100 | |"
