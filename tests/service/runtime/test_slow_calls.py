"""The scheduling of slow calls."""

import math
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from service.errors import Overloaded, RequestTimedOut, ShuttingDown, TooManyElements
from service.runtime.origins import Key, Origin
from service.runtime.slow_calls import OVERHEAD_BYTES, Dropped, Pace, SlowCall, SlowCalls, completed, in_one_step

SOON = 10.0
ONE_STEP_A_SLICE = Pace(slice_seconds=0.0)
RESTFUL = replace(ONE_STEP_A_SLICE, long_step_seconds=0.5, rest=1_000, rest_max_seconds=1_000)


class Scene:
    """A scheduler whose calls record the order of their steps and their results."""

    def __init__(self, peer_share: float = 1, pace: Pace = ONE_STEP_A_SLICE) -> None:
        self.calls = SlowCalls(peer_share, pace)
        self.steps: list[str] = []
        self.ends: dict[str, Any] = {}
        self._ended = threading.Condition()
        self.may_start = threading.Event()

    def steps_of(self, name: str, count: int) -> Generator[None, None, str]:
        for _ in range(count):
            self.steps.append(name)
            yield
        return f"answer to {name}"

    def first(self) -> Generator[None, None, None]:
        assert self.may_start.wait(SOON)
        yield

    def submit(
        self,
        name: str,
        flow: tuple[str, str],
        count: int = 3,
        deadline: float = math.inf,
        key: Key | None = None,
    ) -> SlowCall:
        steps = self.steps_of(name, count)
        return self.calls.submit(Origin(flow[0], key), flow[1], 0, deadline, steps, lambda end: self.end(name, end))

    def hold(self) -> None:
        """Blocks the thread until `go`, so that calls can be queued first."""
        self.calls.submit(Origin("first"), "", 0, math.inf, self.first(), lambda _: None)

    def go(self) -> None:
        self.may_start.set()

    def end(self, name: str, end: object) -> None:
        with self._ended:
            self.ends[name] = end
            self._ended.notify_all()

    def wait_for(self, count: int) -> None:
        """Returns when a number of calls has ended."""
        with self._ended:
            assert self._ended.wait_for(lambda: len(self.ends) == count, SOON)


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.go()
    scene.calls.close()
    assert scene.calls.under_way == 0


def test_flows_take_turns_and_calls_of_a_flow_run_in_order(scene: Scene) -> None:
    scene.hold()
    for name in ("a1", "a2", "a3"):
        scene.submit(name, ("a", "batch"))
    scene.submit("b1", ("b", "batch"))
    scene.submit("a-turn", ("a", "turn"))
    scene.go()
    scene.wait_for(5)
    assert scene.steps[:6] == ["a1", "b1", "a-turn", "a1", "b1", "a-turn"]
    assert [name for name in scene.steps if name.startswith("a") and name != "a-turn"] == ["a1"] * 3 + ["a2"] * 3 + [
        "a3"
    ] * 3
    assert set(scene.ends.values()) == {f"answer to {name}" for name in scene.ends}


def test_front_ends_behind_one_gateway_take_turns(scene: Scene) -> None:
    scene.hold()
    scene.submit("web", ("gateway", "batch"), key=Key("web", is_proxy=True))
    scene.submit("partner", ("gateway", "batch"), key=Key("partner", is_proxy=True))
    scene.submit("a1", ("a", "batch"), key=Key("web"))
    scene.submit("a2", ("a", "batch"), key=Key("partner"))
    scene.go()
    scene.wait_for(4)
    assert scene.steps[:6] == ["web", "partner", "a1"] * 2, "keys of other callers share the turns of their address"


def test_a_flow_with_a_long_step_rests_and_others_continue(scene: Scene) -> None:
    scene.calls.close()
    scene.calls = SlowCalls(0.5, RESTFUL)

    def long() -> Generator[None, None, None]:
        time.sleep(1)
        yield
        scene.steps.append("long")

    scene.calls.submit(Origin("a"), "turn", 0, math.inf, long(), lambda _: None)
    scene.submit("a-turn", ("a", "turn"))
    scene.submit("a-batch", ("a", "batch"))
    scene.submit("b-turn", ("b", "turn"))
    scene.wait_for(2)
    assert scene.ends.keys() == {"a-batch", "b-turn"}
    scene.calls.close()
    assert isinstance(scene.ends["a-turn"], ShuttingDown)


def test_a_flow_rests_after_a_long_step_that_fails_and_a_proxy_s_does_not(scene: Scene) -> None:
    scene.calls.close()
    scene.calls = SlowCalls(0.5, RESTFUL)

    def failing(_data: bytes) -> bytes:
        time.sleep(1)
        raise ValueError("wrong")

    proxy = Key("proxy", is_proxy=True)
    for origin in (Origin("a"), Origin("b", proxy)):
        scene.calls.submit(origin, "turn", 0, math.inf, in_one_step(failing, b""), lambda _: None)
    scene.submit("a-turn", ("a", "turn"))
    scene.submit("b-turn", ("b", "turn"), key=proxy)
    scene.wait_for(1)
    assert scene.ends.keys() == {"b-turn"}


def test_a_flow_rests_after_a_request_with_too_many_elements(scene: Scene) -> None:
    def refused(_: bytes) -> None:
        raise TooManyElements

    scene.calls.close()
    scene.calls = SlowCalls(0.5, replace(ONE_STEP_A_SLICE, refused_seconds=1_000))
    steps = in_one_step(refused, b"")
    scene.calls.submit(Origin("a"), "batch", 0, math.inf, steps, lambda end: scene.end("a1", end))
    scene.wait_for(1)
    assert isinstance(scene.ends["a1"], TooManyElements)
    scene.submit("a2", ("a", "batch"))
    scene.submit("b", ("b", "batch"))
    scene.wait_for(2)
    assert scene.ends.keys() == {"a1", "b"}


def test_a_flow_continues_after_its_rest(scene: Scene) -> None:
    scene.calls.close()
    scene.calls = SlowCalls(0.5, replace(ONE_STEP_A_SLICE, long_step_seconds=0.0, rest=3))
    scene.submit("a1", ("a", "turn"))
    scene.submit("a2", ("a", "turn"))
    scene.wait_for(2)
    assert scene.steps == ["a1"] * 3 + ["a2"] * 3


def test_a_cancelled_call_is_dropped_before_and_after_its_start(scene: Scene) -> None:
    scene.hold()
    calls = [scene.submit(name, ("a", "batch")) for name in ("a1", "a2", "a3")]
    scene.calls.cancel(calls[1])
    scene.calls.cancel(calls[1])
    assert isinstance(scene.ends["a2"], Dropped)
    scene.go()
    scene.wait_for(3)
    assert "a2" not in scene.steps
    scene.calls.cancel(calls[0])  # it is over
    assert scene.ends["a1"] == "answer to a1"


def test_a_call_past_its_deadline_is_not_started(scene: Scene) -> None:
    scene.submit("late", ("a", "batch"), deadline=time.monotonic() - 1)
    scene.wait_for(1)
    assert isinstance(scene.ends["late"], RequestTimedOut)
    assert scene.steps == []


def test_a_failing_call_ends_with_its_exception_and_others_continue(scene: Scene) -> None:
    def failing(_data: bytes) -> bytes:
        raise ValueError("wrong")

    ends: list[object] = []
    scene.calls.submit(Origin("a"), "", 0, math.inf, in_one_step(failing, b""), ends.append)
    scene.submit("b", ("b", ""))
    scene.wait_for(1)
    assert [type(end) for end in ends] == [ValueError]


def test_memory_is_bounded_in_total_and_by_peer() -> None:
    scene = Scene(0.5, replace(ONE_STEP_A_SLICE, bytes_max=10 * OVERHEAD_BYTES))
    scene.hold()
    calls = [scene.submit(f"a{number}", ("a", "")) for number in range(4)]  # beside the call that holds the thread
    with pytest.raises(Overloaded):
        scene.submit("a5", ("a", "other"))
    scene.submit("b", ("b", ""))
    scene.calls.cancel(calls[2])
    scene.calls.cancel(calls[3])
    scene.submit("a6", ("a", ""))
    with pytest.raises(Overloaded):
        scene.calls.submit(Origin("c"), "", 10 * OVERHEAD_BYTES, math.inf, scene.steps_of("c", 1), lambda _: None)
    scene.go()
    scene.wait_for(6)
    scene.calls.close()


def test_the_bytes_of_started_calls_are_bounded(scene: Scene) -> None:
    scene.calls.close()
    scene.calls = SlowCalls(1, replace(ONE_STEP_A_SLICE, started_bytes_max=3 * OVERHEAD_BYTES))
    scene.hold()
    for number in range(6):
        scene.submit(str(number), (str(number), ""), count=5)
    scene.go()
    scene.wait_for(6)
    under_way = [len({*scene.steps[: at + 1]} & {*scene.steps[at:]}) for at in range(len(scene.steps))]
    assert max(under_way) == 3
    assert set(scene.ends.values()) == {f"answer to {number}" for number in range(6)}


def endless() -> Generator[None, None, None]:
    """A call that works until it is cancelled."""
    while True:
        time.sleep(0.001)
        yield


@pytest.mark.parametrize(("flows", "size"), [(16, 0), (16, 4_000), (100, 1_000_000)])
def test_endless_calls_of_many_addresses_keep_no_newcomer_waiting(scene: Scene, flows: int, size: int) -> None:
    scene.calls.close()
    scene.calls = SlowCalls(0.5, ONE_STEP_A_SLICE)
    attack = [
        scene.calls.submit(Origin(f"attacker {number}"), "batch", size, math.inf, endless(), lambda _: None)
        for number in range(flows)
    ]
    scene.submit("newcomer", ("honest", "turn"))
    scene.wait_for(1)
    for call in attack:
        scene.calls.cancel(call)


def waiting_for(future: Future[str], closed: threading.Event) -> Generator[Future[str], None, str]:
    try:
        yield future
        return future.result(0)
    finally:
        closed.set()


def test_a_call_that_waits_for_a_future_keeps_no_other_waiting(scene: Scene) -> None:
    future: Future[str] = Future()
    closed = threading.Event()
    scene.calls.submit(Origin("a"), "turn", 0, math.inf, waiting_for(future, closed), lambda end: scene.end("a1", end))
    scene.submit("a2", ("a", "turn"))
    scene.submit("b", ("b", "turn"))
    scene.wait_for(1)
    assert scene.ends.keys() == {"b"}
    future.set_result("judged")
    scene.wait_for(3)
    assert scene.ends["a1"] == "judged"
    assert closed.wait(SOON)


def test_a_call_that_waits_for_a_future_can_be_cancelled(scene: Scene) -> None:
    futures: list[Future[str]] = [Future(), Future()]
    for number, future in enumerate(futures):
        closed, name = threading.Event(), f"a{number}"
        steps = waiting_for(future, closed)
        call = scene.calls.submit(Origin("a"), "turn", 0, math.inf, steps, partial(scene.end, name))
        scene.submit(f"b{number}", ("b", "turn"))
        scene.wait_for(2 * number + 1)  # it waits
        scene.calls.cancel(call)
        assert closed.wait(SOON)
        scene.wait_for(2 * number + 2)
        assert isinstance(scene.ends[name], Dropped)
    for future in futures:
        future.set_result("too late")
    scene.submit("a2", ("a", "turn"))
    scene.wait_for(5)


def test_a_flow_rests_after_a_long_wait_for_a_future(scene: Scene) -> None:
    scene.calls.close()
    scene.calls = SlowCalls(0.5, replace(RESTFUL, long_step_seconds=0.0, rest=1_000_000))
    future: Future[str] = Future()
    scene.calls.submit(Origin("a"), "turn", 0, math.inf, waiting_for(future, threading.Event()), lambda _: None)
    future.set_result("judged")
    scene.submit("b", ("b", "batch"), count=0)
    scene.wait_for(1)
    assert scene.calls.under_way == 1


def test_close_ends_calls_that_wait_for_a_future() -> None:
    scene = Scene()
    closed = threading.Event()
    scene.calls.submit(Origin("a"), "", 0, math.inf, waiting_for(Future(), closed), partial(scene.end, "a"))
    scene.submit("b", ("b", ""))
    scene.wait_for(1)
    scene.calls.close()
    assert isinstance(scene.ends["a"], ShuttingDown)
    assert closed.is_set()


def test_close_ends_all_calls() -> None:
    scene = Scene()
    scene.hold()
    scene.submit("waiting", ("a", ""))
    closing = threading.Thread(target=scene.calls.close)
    closing.start()
    scene.wait_for(1)
    scene.go()
    closing.join(SOON)
    assert not closing.is_alive()
    assert isinstance(scene.ends["waiting"], ShuttingDown)
    with pytest.raises(ShuttingDown):
        scene.submit("too late", ("a", ""))


def test_completed_runs_all_steps() -> None:
    assert completed(Scene().steps_of("a", 5)) == "answer to a"


def test_completed_waits_for_futures() -> None:
    future: Future[str] = Future()
    threading.Timer(0.05, future.set_result, ("judged",)).start()
    assert completed(waiting_for(future, threading.Event())) == "judged"
