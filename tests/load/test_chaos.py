"""The checker of histories: a history by hand that is right, and for each rule a change that breaks that rule alone."""

import asyncio
import contextlib
import copy
import dataclasses
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

from load.chaos.bugs import BUGS, Bug, Edit, check_edits
from load.chaos.checker import check
from load.chaos.deployments import DEPLOYMENTS
from load.chaos.history import (
    OK,
    UNANSWERED,
    Archived,
    Call,
    Entry,
    Fault,
    Fed,
    History,
    Run,
    StoredGame,
    Watched,
    read,
    revision_of,
)
from load.chaos.players import LAST_TURN, turn_of
from load.chaos.proxy import Mischief, Proxy
from load.chaos.replay import SET, points_of
from load.chaos.violations import LOSSES, RULES
from rummikub.v1 import game_pb2
from tools.redis_servers import running_redis
from tools.store_faults import FaultyMachine, compiled_library

GAME, LOBBY = "game", "lobby"
OLD = "old token of 1"
TOKENS = {1: "token of 1", 2: "token of 2"}
RACKS = {1: [1, 2, 3, 53], 2: [4, 5, 6, 20]}
RUN = Run("redis", 1, "", lobby_seconds=60.0, clock_seconds=0.0)


def at(second: float) -> str:
    """Returns a time of the store."""
    return f"2026-01-01T00:{int(second) // 60:02}:{second % 60:06.3f}Z"


def etag_of(revision: int) -> str:
    return f"{revision}-{revision:032x}"


def turn(seat: int, second: float) -> dict[str, Any]:
    """Returns the start of a turn of twenty seconds."""
    return {"turn_started": {"turn": {"seat": seat, "deadline": at(second + 20)}}}


def stopped(seat: int, left: int) -> dict[str, Any]:
    return {"clock_stopped": {"seat": seat, "time_left": f"{left}s"}}


def drawn(seat: int, tile: int, name: str = "tiles_drawn") -> dict[str, Any]:
    return {name: {"seat": seat, "tile_count": 1, "tiles": [tile]}}


def dealt() -> dict[str, Any]:
    racks = {str(seat): rack for seat, rack in RACKS.items()}
    return {"round_started": {"racks": racks, "pool_count": 106 - sum(map(len, RACKS.values()))}}


def result(end: int, winner: int, table: Sequence[int], racks: dict[int, list[int]], loss: int) -> dict[str, Any]:
    """Returns the result of a round that one of two has won."""
    pool = SET - Counter(table) - sum(map(Counter, racks.values()), Counter[int]())
    seats = [
        {"seat": seat, "rack": rack, "points": loss if seat == winner else -loss}
        for seat, rack in sorted(racks.items())
    ]
    return {"round_end": end, "winner_seats": [winner], "seats": seats, "pool": sorted(pool.elements())}


def changes() -> list[dict[str, Any]]:
    """Returns the changes of a game of two rounds: a play, draws, a renewed token, time-outs, an absence, a pause."""
    left = [1, 2, 3, 7, 8, 10, 53]
    ended = result(1, 2, [4, 5, 6, 9, 20], {1: left, 2: []}, 61)
    resigned = result(3, 1, [], RACKS, 22)
    rows: list[tuple[float, int, int, list[dict[str, Any]]]] = [
        (0, 3, 0, [{"game_created": {"settings": {"clock_total": "60s", "absent_after_timeouts": 2}}}]),
        (1, 1, 1, [{"player_joined": {"seat": 1}}]),
        (2, 1, 2, [{"player_joined": {"seat": 2}}]),
        (2.5, 1, 1, [{"seat_token_renewed": {"seat": 1}}]),
        (3, 3, 0, [dealt(), turn(1, 3)]),
        (4, 1, 1, [drawn(1, 7), stopped(1, 59), turn(2, 4)]),
        (5, 1, 2, [play([4, 5, 6], [[4, 5, 6]]), stopped(2, 59), turn(1, 5)]),
        (26, 5, 0, [drawn(1, 8, "turn_timed_out"), stopped(1, 39), turn(2, 26)]),
        (27, 1, 2, [drawn(2, 9), stopped(2, 58), turn(1, 27)]),
        (48, 5, 0, [drawn(1, 10, "turn_timed_out"), {"player_absent": {"seat": 1}}, stopped(1, 19), turn(2, 48)]),
        (
            49,
            1,
            2,
            [
                play([9, 20], [[4, 5, 6], [9, 20]]),
                stopped(2, 57),
                {"round_ended": {"result": ended, "next_round_time": at(52)}},
            ],
        ),
        (53, 5, 0, [dealt(), turn(1, 53)]),
        (54, 1, 2, [{"player_resigned": {"seat": 2}}, {"round_ended": {"result": resigned}}, {"game_ended": {}}]),
    ]
    return [
        {"etag": etag_of(number), "time": at(second), "cause": cause, "cause_seat": seat, "events": events}
        for number, (second, cause, seat, events) in enumerate(rows, 1)
    ]


def play(tiles: list[int], melds: list[list[int]]) -> dict[str, Any]:
    return {"tiles_played": {"seat": 2, "tiles": tiles, "table": {"melds": [{"tiles": meld} for meld in melds]}}}


LAST = len(changes())
SENT = {
    1: "create",
    2: "join",
    3: "join",
    4: "renew",
    5: "start",
    6: "draw",
    7: "play",
    9: "draw",
    11: "play",
    13: "resign",
}
"""The revisions that requests made, with their actions."""
METHODS = {
    "create": "CreateGame",
    "join": "JoinGame",
    "renew": "RenewSeatToken",
    "start": "StartGame",
    "resign": "ResignGame",
}


def request(revision: int, **changed: Any) -> Call:  # noqa: ANN401 - fields of an entry
    """Returns the acknowledged call that made a revision: it took half a second, from the second of its number on."""
    action = SENT[revision]
    seat = {4: 1, 6: 1, 7: 2, 9: 2, 11: 2, 13: 2}.get(revision, 0)
    is_turn = action in {"draw", "play"}
    values: dict[str, Any] = {
        "method": METHODS.get(action, "PlayTurn"),
        "game": GAME,
        "token": OLD if revision == 4 else TOKENS.get(seat, ""),
        "seat": seat,
        "request_id": f"request {revision}",
        "content": f"content {revision}",
        "base": etag_of(revision - 1) if is_turn else "",
        "action": action,
        "began": float(revision),
        "ended": revision + 0.5,
        "status": OK,
        "etag": etag_of(revision),
        "answer": f"answer {revision}",
    }
    return Call(**{**values, **changed})


def by_used_ticket(revision: int, ticket: str, **changed: Any) -> Call:  # noqa: ANN401 - as above
    """Returns a request that was refused because its ticket was used."""
    return request(revision, ticket=ticket, status="TICKET_USED", etag="", answer="", **changed)


def get(began: float, revision: int, **changed: Any) -> Call:  # noqa: ANN401 - as above
    """Returns a read of a spectator."""
    status, etag = changed.pop("status", OK), etag_of(revision) if revision else ""
    made = Call("GetGame", GAME, "", 0, "", "read", "", "", began, began + 0.1, status, etag, "answer", 0)
    return dataclasses.replace(made, **changed)


def lobby_read(began: float, status: str) -> Call:
    return get(began, 1 if status == OK else 0, game=LOBBY, status=status)


def watched(update: str, revision: int) -> Watched:
    return Watched("watcher", GAME, update, etag_of(revision) if revision else "", revision + 0.6)


def history() -> list[Entry]:
    """Returns the whole history."""
    return [
        RUN,
        *map(request, SENT),
        request(6),  # repeated
        request(9, status=UNANSWERED, etag="", answer="", ended=9.1),
        get(6.7, 6, tiles=106),
        get(14.0, LAST),
        request(7, request_id="late", began=7.7, ended=7.8, status="STALE_STATE", etag="", base=etag_of(6)),
        watched("resume", 0),
        watched("snapshot", 1),
        *(watched("change", revision) for revision in range(2, LAST + 1)),
        watched("end", LAST),
        request(1, game=LOBBY, action="abandon", began=0.0, ended=0.5, request_id="lobby"),
        lobby_read(30.0, OK),
        lobby_read(90.0, "GAME_NOT_FOUND"),
        StoredGame(GAME, "GAME_STATE_FINISHED", changes()),
        *(Fed(GAME, etag_of(revision)) for revision in range(1, LAST + 1)),
        Archived(GAME, etag_of(LAST)),
    ]


Break = Callable[[list[Entry]], list[Entry]]


def more(*entries: Entry) -> Break:
    return lambda whole: [*whole, *entries]


def without(gone: Callable[[Entry], bool]) -> Break:
    return lambda whole: [entry for entry in whole if not gone(entry)]


def stored(change: Callable[[list[dict[str, Any]]], None]) -> Break:
    """Breaks the stored changes."""

    def broken(whole: list[Entry]) -> list[Entry]:
        made = copy.deepcopy(whole)
        for entry in made:
            if isinstance(entry, StoredGame):
                change(entry.changes)
        return made

    return broken


def set_event(revision: int, name: str, **fields: Any) -> Break:  # noqa: ANN401 - fields of an event
    """Sets fields of an event."""

    def change(all_changes: list[dict[str, Any]]) -> None:
        for event in all_changes[revision - 1]["events"]:
            event.get(name, {}).update(fields)

    return stored(change)


def set_change(revision: int, **fields: Any) -> Break:  # noqa: ANN401 - as above
    return stored(lambda all_changes: all_changes[revision - 1].update(fields))


def is_sent(revision: int) -> Callable[[Entry], bool]:
    return lambda entry: isinstance(entry, Call) and entry.request_id == f"request {revision}"


def is_of(revision: int) -> Callable[[Entry], bool]:
    """Returns whether an entry is a watcher's, or the feed's of a revision."""
    return lambda entry: isinstance(entry, Watched) or entry == Fed(GAME, etag_of(revision))


def resumed(after: int, *answer: Watched) -> Break:
    """Lets the watcher resume from a revision, with an answer up to revision 10 in place of changes."""

    def is_replaced(entry: Entry) -> bool:
        revision = revision_of(entry.etag) if isinstance(entry, Watched) and entry.update == "change" else 0
        return after < revision <= 10

    def broken(whole: list[Entry]) -> list[Entry]:
        place = next(number for number, entry in enumerate(whole) if is_replaced(entry))
        kept = [entry for entry in whole[place:] if not is_replaced(entry)]
        return [*whole[:place], watched("resume", after), *answer, *kept]

    return broken


def delayed(revision: int, seconds: float) -> Break:
    """Lets callers see a revision and all after it later."""

    def broken(entry: Entry) -> Entry:
        match entry:
            case Call(game=game, began=began, ended=ended) if game == GAME and began >= revision:
                return dataclasses.replace(entry, began=began + seconds, ended=ended + seconds)
            case Watched(at=at) if at >= revision:
                return dataclasses.replace(entry, at=at + seconds)
        return entry

    return lambda whole: list(map(broken, whole))


def both(first: Break, second: Break) -> Break:
    return lambda whole: second(first(whole))


@stored
def no_bank(all_changes: list[dict[str, Any]]) -> None:
    """Takes the banks of time from the game."""
    for change in all_changes:
        change["events"] = [event for event in change["events"] if "clock_stopped" not in event]
    all_changes[0]["events"][0]["game_created"]["settings"].pop("clock_total")


late_time_out = both(both(no_bank, delayed(8, 35)), set_change(8, time=at(45)))
"""Breaks the time-out of revision 8: it comes 20 seconds late by the store's clock, and callers see it 16 late."""


def drawing(whole: list[Entry]) -> list[Entry]:
    """Claims that the play was a draw."""
    return [
        dataclasses.replace(one, action="draw") if isinstance(one, Call) and is_sent(7)(one) else one for one in whole
    ]


def swapped_feed(whole: list[Entry]) -> list[Entry]:
    fed = [entry for entry in whole if isinstance(entry, Fed)]
    return [*(entry for entry in whole if not isinstance(entry, Fed)), *reversed(fed)]


BROKEN: list[tuple[str, Break]] = [
    ("lost", more(request(7, request_id="lost", etag="8-ff", base=etag_of(7), answer="lost"))),
    ("doubled", without(is_sent(7))),
    ("doubled", more(request(7, request_id="other", content="other", answer="other"))),
    ("order", both(without(is_of(12)), set_change(12, etag=etag_of(10)))),
    ("base", more(request(7, base="6-ff"))),
    ("action", drawing),
    ("read", more(get(14.0, 0, status="GAME_NOT_FOUND"))),
    ("read", more(get(14.0, LAST, etag=f"{LAST}-ff"))),
    ("stale", more(get(14.0, LAST - 1))),
    ("repeat", more(request(6, answer="another answer"))),
    ("repeat", more(request(6, status="STALE_STATE", etag="", answer=""))),
    ("reuse", more(request(6, content="other", began=6.9))),
    ("refusal", more(request(6, request_id="early", began=5.6, ended=5.9, status="STALE_STATE", etag="", answer=""))),
    ("watch", without(lambda entry: entry == watched("change", 5))),
    ("watch", more(watched("change", LAST))),
    ("watch", resumed(5, watched("snapshot", 10))),
    ("watch", resumed(5, watched("heartbeat", 5), watched("snapshot", 10))),
    ("watch", resumed(5, watched("resume", 0), watched("snapshot", 10))),
    ("token", more(get(14.0, LAST, token=OLD))),
    ("ticket", more(request(2, ticket="used"), request(3, ticket="used"))),
    ("ticket", more(request(2, ticket="own"), by_used_ticket(2, "own"))),
    ("ticket", more(by_used_ticket(2, "own"))),
    ("turn", both(no_bank, set_change(7, time=at(24.5)))),
    ("turn", set_event(6, "turn_started", turn={"seat": 1, "deadline": at(24)})),
    ("time-out", both(no_bank, set_change(8, time=at(24.9)))),
    ("time-out", set_event(7, "turn_started", turn={"seat": 2, "deadline": at(25)})),
    ("late", late_time_out),
    ("late", both(delayed(12, 20), set_change(12, time=at(75)))),
    ("absence", stored(lambda all_changes: all_changes[9]["events"].pop(1))),
    ("absence", stored(lambda all_changes: all_changes[7]["events"].append({"player_absent": {"seat": 1}}))),
    ("bank", set_event(10, "clock_stopped", time_left="20s")),
    ("pause", set_change(12, time=at(51.9))),
    ("expiry", more(lobby_read(30.0, "GAME_NOT_FOUND"))),
    ("expiry", more(lobby_read(90.0, OK))),
    ("feed", without(lambda entry: entry == Fed(GAME, etag_of(6)))),
    ("feed", more(Fed(GAME, "14-ff"))),
    ("feed", swapped_feed),
    ("archive", without(lambda entry: isinstance(entry, Archived))),
    ("archive", lambda whole: [Archived(GAME, etag_of(6)) if isinstance(one, Archived) else one for one in whole]),
    ("tiles", set_event(9, "tiles_drawn", tiles=[])),
    ("tiles", more(get(14.0, LAST, tiles=105))),
    ("score", stored(lambda all_changes: _set_points(all_changes, 60))),
]
"""Rules, and changes of the history that break them alone."""


def _set_points(all_changes: list[dict[str, Any]], points: int) -> None:
    seats = all_changes[10]["events"][2]["round_ended"]["result"]["seats"]
    seats[0]["points"], seats[1]["points"] = -points, points


def rules_of(entries: Sequence[Entry]) -> set[str]:
    return {violation.rule for violation in check(entries).violations}


def test_the_history_is_right() -> None:
    verdict = check(history())
    assert not verdict.violations, verdict.violations
    assert (verdict.games, verdict.changes, verdict.acknowledged, verdict.time_outs) == (1, LAST, len(SENT), 2)


@pytest.mark.parametrize("number", range(len(BROKEN)), ids=[rule for rule, _ in BROKEN])
def test_each_rule_finds_what_breaks_it_alone(number: int) -> None:
    rule, broken = BROKEN[number]
    assert rules_of(broken(history())) == {rule}


def test_a_watcher_that_falls_far_behind_may_get_a_snapshot() -> None:
    many = 70
    updates = [watched("resume", 0), watched("snapshot", 1), watched("resume", 1), watched("heartbeat", 1)]
    updates += [watched("snapshot", many), watched("end", many)]
    all_changes = [{"etag": etag_of(number), "time": at(1)} for number in range(1, many + 1)]
    fed = [Fed(GAME, etag_of(number)) for number in range(1, many + 1)]
    whole: list[Entry] = [RUN, *updates, *fed, StoredGame(GAME, "GAME_STATE_PLAYING", all_changes, is_whole=False)]
    assert not rules_of(whole)
    assert rules_of([entry for entry in whole if entry != watched("heartbeat", 1)]) == {"watch"}


@pytest.mark.parametrize(
    "excused",
    [
        both(no_bank, set_change(8, time=at(45))),  # the clock of the store has stepped
        delayed(8, 35),  # callers did not notice it before
        both(late_time_out, more(Fault("stop a server", "", 20.0, 35.0))),
        both(late_time_out, more(Fault("stop a server", "", 20.0, 29.0), Fault("demote", "", 26.0, 35.0))),
    ],
)
def test_a_clock_that_steps_slow_callers_and_faults_explain_a_late_time_out(excused: Break) -> None:
    assert not rules_of(excused(history()))


def test_times_of_faults_do_not_count() -> None:
    whole = both(late_time_out, more(Fault("stop a server", "", 20.0, 30.0), Fault("demote", "", 26.0, 27.0)))
    assert check(whole(history())).latest_seconds == pytest.approx(6.1)


def test_every_rule_can_be_broken() -> None:
    assert {rule for rule, _ in BROKEN} == set(RULES)


def test_a_used_ticket_is_refused() -> None:
    refused = by_used_ticket(2, "used", request_id="another one")
    assert not rules_of([*history(), request(2, ticket="used"), refused])


def test_losses_of_a_store_that_may_lose_are_told_apart() -> None:
    lossy = dataclasses.replace(RUN, is_lossy=True)
    lost = more(request(7, request_id="lost", etag="8-ff", base=etag_of(7), answer="lost"))(history())
    verdict = check([lossy, *lost[1:]])
    assert (rules_of([lossy, *lost[1:]]), [loss.rule for loss in verdict.losses]) == (set(), ["lost"])
    assert set(RULES) >= LOSSES


def test_a_lobby_expires_by_a_clock_that_may_step() -> None:
    stepping = dataclasses.replace(RUN, clock_seconds=8.0)
    assert rules_of([RUN, *history()[1:], lobby_read(56.0, "GAME_NOT_FOUND")]) == {"expiry"}
    assert not rules_of([stepping, *history()[1:], lobby_read(56.0, "GAME_NOT_FOUND")])


@pytest.mark.parametrize(
    ("racks", "end", "winners", "points"),
    [
        ({1: [], 2: [1, 53]}, 1, [1], {1: 31, 2: -31}),
        ({1: [5], 2: [13, 26]}, 2, [1], {1: 21, 2: -21}),
        ({1: [5], 2: [18]}, 2, [1, 2], {1: 0, 2: 0}),
        ({1: [5], 2: [2, 3]}, 2, [1], {1: 0, 2: 0}),
        ({1: [5], 2: [6]}, 3, [2], {1: -5, 2: 5}),
        ({1: [5], 2: []}, 1, [1], None),
    ],
)
def test_points_follow_from_the_racks(
    racks: dict[int, list[int]], end: int, winners: list[int], points: dict[int, int] | None
) -> None:
    assert points_of({seat: Counter(rack) for seat, rack in racks.items()}, end, winners) == points


def test_a_history_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = History(tmp_path / "history.jsonl")
    written.extend(history())
    written.close()
    assert list(read(written.path)) == written.entries == history()
    assert revision_of("") == 0


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_every_seeded_bug_applies(bug: Bug) -> None:
    check_edits(bug)
    assert bug.rules <= set(RULES)


def test_the_first_round_before_a_pause_ends_with_its_first_play() -> None:
    first = LAST_TURN.seats[0]
    game = game_pb2.Game(seat=first.seat, rack=first.rack, players=[game_pb2.Player(seat=first.seat)])
    request, action = turn_of(game)
    assert first.seat == LAST_TURN.turn_seat
    assert action == "play"
    assert [tile for meld in request.play.table.melds for tile in meld.tiles] == first.rack


def test_an_edit_that_does_not_apply_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 times in a_file"):
        Edit("a_file", "old", "new").applied("text")


@pytest.mark.parametrize("store", DEPLOYMENTS)
def test_each_store_has_each_fault(store: str, tmp_path: Path) -> None:
    lanes = DEPLOYMENTS[store](tmp_path, tmp_path).lanes
    of_servers = {"kill a server", "stop a server"}
    of_stores = {
        "kill the store",
        "stop the store",
        "lose power",
        "rewrite the file",
        "fill the disk",
        "step the clock",
    }
    demotion = set() if store == "embedded" else {"demote"}
    assert {name for lane in lanes for name in lane} == of_servers | of_stores | {"fill the memory"} | demotion


@pytest.mark.skipif(shutil.which("cc") is None and not os.environ.get("CI"), reason="needs a C compiler as cc")
def test_the_machine_of_a_store_steps_its_clock_fills_its_disk_and_loses_power(tmp_path: Path) -> None:
    machine = FaultyMachine(compiled_library(tmp_path), tmp_path)
    with running_redis(environment=machine.environment) as server:
        machine.clock_ms = -60_000
        assert 55 < time.time() - server.execute("TIME")[0] < 65
        server.execute("CONFIG", "SET", "appendfsync", "always")
        server.execute("SET", "synced", 1)
        server.execute("CONFIG", "SET", "appendfsync", "no")
        server.execute("SET", "not synced", 1)
        machine.disk_is_full = True
        with contextlib.suppress(redis.RedisError):
            server.execute("SET", "refused", 1)
        server.kill()
        machine.disk_is_full = False
        machine.lose_power(server.folder)
        server.start()
        assert server.execute("KEYS", "*") == [b"synced"]


def test_the_proxy_counts_only_repetitions_that_it_makes() -> None:
    proxy = Proxy(lambda: 0, random.Random(1), Mischief(0, 0, 0, 1))
    assert [proxy.chosen(may_repeat=False), proxy.chosen(may_repeat=True)] == ["", "repeat"]
    assert proxy.done == {"repeat": 1}


@pytest.mark.parametrize(
    ("mischief", "got_through", "is_answered"),
    [
        (Mischief(0, 0, 0, 0), 1, True),
        (Mischief(1, 0, 0, 0), 1, True),
        (Mischief(0, 1, 0, 0), 0, False),
        (Mischief(0, 0, 1, 0), 1, False),
        (Mischief(0, 0, 0, 1), 2, True),
    ],
)
async def test_the_proxy_delays_cuts_and_repeats(mischief: Mischief, got_through: int, is_answered: bool) -> None:
    got: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        if line:
            got.append(line)
        writer.write(b"answer\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Proxy(lambda: port, random.Random(1), mischief).listening() as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(b"request\n")
            answered = await reader.readline()
            writer.close()
            for _ in range(100):
                if len(got) == got_through:
                    break
                await asyncio.sleep(0.01)
    assert (got, answered) == ([b"request\n"] * got_through, b"answer\n" if is_answered else b"")
