"""The part of a watch without I/O: which updates are passed on, where it resumes, when it connects again."""

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

import rummikub
from clients.test_errors import FailedCall
from rummikub.watching import WatchPosition

UNAVAILABLE = FailedCall(grpc.StatusCode.UNAVAILABLE)
LONGEST_SECONDS = 5.0


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def snapshot(revision: int) -> rummikub.WatchGameResponse:
    return rummikub.WatchGameResponse(snapshot=rummikub.Game(revision=revision, etag=f"e{revision}"))


def game(revision: int) -> rummikub.WatchGameResponse:
    return rummikub.WatchGameResponse(game=rummikub.Game(revision=revision, etag=f"e{revision}"))


def change(revision: int) -> rummikub.WatchGameResponse:
    return rummikub.WatchGameResponse(change=rummikub.GameChange(revision=revision, etag=f"e{revision}"))


HEARTBEAT = rummikub.WatchGameResponse(heartbeat=rummikub.Heartbeat(revision=3))
CLOSING = rummikub.WatchGameResponse(closing=rummikub.Closing(retry_delay=Duration(seconds=2)))
UNKNOWN = rummikub.WatchGameResponse.FromString(b"\xfa\x01\x00")  # field 31, of a newer server
DRAFT = rummikub.WatchGameResponse(draft=rummikub.SavedDraft())
CHANGES, GAMES, BOTH = (
    rummikub.WATCH_CONTENT_CHANGES,
    rummikub.WATCH_CONTENT_GAMES,
    rummikub.WATCH_CONTENT_BOTH,
)


def position(
    content: rummikub.WatchContent.ValueType = CHANGES, etag: str = "", patience: float = 60, clock: Clock | None = None
) -> WatchPosition:
    request = rummikub.WatchGameRequest(game_id="g", content=content, etag=etag)
    return WatchPosition(request, patience, clock or Clock())


@pytest.mark.parametrize(
    ("content", "updates", "passed_on", "resumes_after"),
    [
        (CHANGES, [snapshot(3)], [True], 3),
        (CHANGES, [snapshot(3), change(4), change(5)], [True, True, True], 5),
        (CHANGES, [snapshot(3), HEARTBEAT, CLOSING, UNKNOWN, DRAFT], [True, False, False, False, True], 3),
        (CHANGES, [snapshot(3), change(3), change(4)], [True, False, True], 4),
        (CHANGES, [snapshot(9), snapshot(4), change(5)], [True, True, True], 5),
        (GAMES, [snapshot(3), game(4), game(5)], [True, True, True], 5),
        (BOTH, [snapshot(3), change(4), game(4)], [True, True, True], 4),
        (BOTH, [snapshot(3), change(4), game(4), change(5)], [True, True, True, True], 4),
        (BOTH, [snapshot(3), change(4), change(4), change(5), game(5)], [True, True, False, True, True], 5),
    ],
)
def test_updates(
    content: rummikub.WatchContent.ValueType,
    updates: list[rummikub.WatchGameResponse],
    passed_on: list[bool],
    resumes_after: int,
) -> None:
    watch = position(content)
    assert [watch.receive(update) for update in updates] == passed_on
    request = watch.next_request()
    assert request == rummikub.WatchGameRequest(game_id="g", content=content, etag=f"e{resumes_after}")


RULES = rummikub.MeldingRuleset(game_end=rummikub.GameEndOptions(match_rounds=2))
WHOLE = rummikub.Game(
    ruleset=rummikub.Ruleset(melding=RULES), visibility=rummikub.VISIBILITY_PUBLIC, labels={"region": "eu"}
)


@pytest.mark.parametrize(
    "first", [rummikub.WatchGameResponse(snapshot=WHOLE), rummikub.WatchGameResponse(game=WHOLE)], ids=repr
)
def test_every_game_has_what_only_the_first_one_of_a_stream_has(first: rummikub.WatchGameResponse) -> None:
    watch = position(GAMES)
    watch.receive(first)
    for revision in (4, 5):
        update = game(revision)
        watch.receive(update)
        found = update.game
        assert (found.revision, found.ruleset, found.visibility) == (revision, WHOLE.ruleset, WHOLE.visibility)
        assert found.labels == WHOLE.labels


def test_another_history_begins_with_a_snapshot_once() -> None:
    error = FailedCall(grpc.StatusCode.OUT_OF_RANGE, reason=rummikub.HISTORY_UNAVAILABLE)
    watch = position(etag="e7")
    assert watch.delay_after(error) == 0
    assert not watch.next_request().etag
    assert watch.delay_after(error) is None
    assert watch.receive(snapshot(2))
    assert watch.receive(change(3)), "a change of the other history is new"


@pytest.mark.parametrize(
    ("code", "reason", "is_lost"),
    [
        (grpc.StatusCode.UNAVAILABLE, 0, True),
        (grpc.StatusCode.UNAVAILABLE, rummikub.SHUTTING_DOWN, True),
        (grpc.StatusCode.CANCELLED, 0, True),
        (grpc.StatusCode.INTERNAL, 0, True),
        (grpc.StatusCode.INTERNAL, rummikub.INTERNAL_ERROR, False),
        (grpc.StatusCode.UNKNOWN, 0, True),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, 0, False),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, rummikub.OVERLOADED, True),
        (grpc.StatusCode.DEADLINE_EXCEEDED, rummikub.REQUEST_TIMED_OUT, True),
        (grpc.StatusCode.NOT_FOUND, rummikub.GAME_NOT_FOUND, False),
        (grpc.StatusCode.PERMISSION_DENIED, rummikub.SPECTATORS_NOT_ALLOWED, False),
        (grpc.StatusCode.UNIMPLEMENTED, 0, False),
    ],
)
def test_which_errors_mean_a_lost_connection(code: grpc.StatusCode, reason: int, *, is_lost: bool) -> None:
    assert (position().delay_after(FailedCall(code, reason=reason)) is not None) == is_lost


def test_the_delay_doubles_up_to_five_seconds_and_begins_again_after_an_update() -> None:
    watch = position()
    for longest in (0.2, 0.4, 0.8, 1.6, 3.2, LONGEST_SECONDS, LONGEST_SECONDS):
        delay = watch.delay_after(UNAVAILABLE)
        assert delay is not None
        assert longest / 2 <= delay <= longest
    watch.receive(HEARTBEAT)
    again = watch.delay_after(UNAVAILABLE)
    assert again is not None
    assert again <= 0.2


def test_patience_ends_without_an_update() -> None:
    clock = Clock()
    watch = position(patience=60, clock=clock)
    clock.seconds += 1000  # how long the caller took for the last update does not count
    assert watch.delay_after(UNAVAILABLE) is not None
    clock.seconds += 59
    assert watch.delay_after(UNAVAILABLE) is not None
    clock.seconds += 1
    assert watch.delay_after(UNAVAILABLE) is None
    watch.receive(HEARTBEAT)
    assert watch.delay_after(UNAVAILABLE) is not None


def test_a_stream_that_ends_well_is_the_end_unless_the_server_closes() -> None:
    watch = position()
    assert watch.delay_after_end() is None
    watch.receive(CLOSING)
    assert watch.delay_after_end() == 2
    assert watch.delay_after_end() is None
