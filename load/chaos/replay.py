"""A replay of the stored changes of a game of Sabra, written from the rules alone, without the engine.

It follows tiles, turns, deadlines, banks, absence, pauses and points. It does not judge melds.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from load.chaos.violations import Violation

COPIES: Final = 2
NATURALS: Final = range(1, 53)
JOKER: Final = 53
SET: Final = Counter(dict.fromkeys((*NATURALS, JOKER), COPIES))
"""The 106 tiles of Sabra: two of each face, numbered (color - 1) * 13 + value, and two jokers."""
TILES: Final = SET.total()
JOKER_POINTS: Final = 30

PLAYER, TIME = 1, 5
"""Causes of changes: numbers of the contract's ChangeCause."""
WENT_OUT, BLOCKED, RESIGNED = 1, 2, 3
"""Numbers of the contract's RoundEnd."""
ACTIONS: Final = ("tiles_played", "tiles_drawn", "turn_passed")
"""The events of a player's action in a turn."""

Fields = Mapping[str, Any]


def milliseconds(text: str) -> int:
    """Returns a Timestamp in JSON as milliseconds since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1_000)


def duration_ms(text: str) -> int:
    """Returns a Duration in JSON as milliseconds."""
    return round(float(text.removesuffix("s")) * 1_000)


def value_of(tile: int) -> int:
    """Returns the points of a tile on a rack (R61)."""
    return JOKER_POINTS if tile == JOKER else (tile - 1) % 13 + 1


def on_table(table: Fields) -> Counter[int]:
    """Returns the tiles of a table."""
    return Counter(tile for meld in table.get("melds", ()) for tile in meld.get("tiles", ()))


@dataclass(frozen=True, slots=True)
class Timed:
    """A change that time made, after its time: a time-out or the start of a round, by the store's clock.

    Attributes:
        what: What it is.
        since: The etag of the change that set its time.
        etag: Its etag.
        after_ms: How long after that change it was due.
        late_ms: How long after its time it came.
    """

    what: str
    since: str
    etag: str
    after_ms: int
    late_ms: int


class Replay:
    """The state of a game after the changes so far."""

    def __init__(self, game: str) -> None:
        self._game = game
        self._racks: dict[int, Counter[int]] = {}
        self._table: Counter[int] = Counter()
        self._pool = 0
        self._turn: Fields | None = None
        self._turn_began, self._turn_since = 0, ""
        self._banks: dict[int, int] = {}
        self._bank_ms = self._increment_ms = 0
        self._absent_after = 0
        self._timeouts: Counter[int] = Counter()
        self._next_round_ms: int | None = None
        self._round_ended_at, self._round_ended_since = 0, ""
        self._time, self._etag = 0, ""
        self._cause: tuple[int, int] = (0, 0)
        self.time_outs = 0
        self.timed: list[Timed] = []
        """The changes that a server made because their time had come."""

    def apply(self, change: Fields) -> Iterator[Violation]:
        """Moves past a change; yields what is wrong with it."""
        self._time, self._cause = milliseconds(change["time"]), (change.get("cause", 0), change.get("cause_seat", 0))
        self._etag = change["etag"]
        events = [next(iter(event.items())) for event in change.get("events", ())]
        yield from self._absences(events)
        for name, fields in events:
            handle = _HANDLERS.get(name)
            if handle:
                yield from handle(self, fields)

    def _wrong(self, rule: str, text: str) -> Violation:
        return Violation(rule, self._game, text)

    def _created(self, fields: Fields) -> Iterator[Violation]:
        settings = fields.get("settings", {})
        self._bank_ms = duration_ms(settings.get("clock_total", "0s"))
        self._increment_ms = duration_ms(settings.get("clock_increment", "0s"))
        self._absent_after = settings.get("absent_after_timeouts", 0)
        yield from ()

    def _round_started(self, fields: Fields) -> Iterator[Violation]:
        if self._racks:
            yield self._wrong("pause", "a round starts before the last one has ended")
        if self._cause[0] == TIME and (self._next_round_ms is None or self._time <= self._next_round_ms):
            yield self._wrong("pause", f"a round starts at {self._time}, due after {self._next_round_ms}")
        elif self._cause[0] == TIME and self._next_round_ms is not None:
            self._came("a round", self._round_ended_since, self._round_ended_at, self._next_round_ms)
        self._racks = {int(seat): Counter(tiles) for seat, tiles in fields["racks"].items()}
        self._table, self._pool, self._next_round_ms = Counter(), fields.get("pool_count", 0), None
        self._banks = dict.fromkeys(self._racks, self._bank_ms)
        yield from self._conserved("at the start of a round")

    def _came(self, what: str, since: str, since_ms: int, due_ms: int) -> None:
        self.timed.append(Timed(what, since, self._etag, due_ms - since_ms, self._time - due_ms))

    def _conserved(self, when: str) -> Iterator[Violation]:
        seen = sum(self._racks.values(), Counter(self._table))
        if seen - SET:
            yield self._wrong("tiles", f"too many of {sorted((seen - SET).elements())} {when}")
        if seen.total() + self._pool != TILES:
            yield self._wrong("tiles", f"{seen.total() + self._pool} tiles {when}")

    def _turn_started(self, fields: Fields) -> Iterator[Violation]:
        self._turn, self._turn_began, self._turn_since = fields["turn"], self._time, self._etag
        left, deadline = self._banks.get(self._turn["seat"], 0), self._deadline
        if self._bank_ms and deadline is not None and deadline - self._time > left:
            yield self._wrong("bank", f"a turn of {deadline - self._time} ms with a bank of {left} ms")

    @property
    def _deadline(self) -> int | None:
        deadline = (self._turn or {}).get("deadline")
        return None if deadline is None else milliseconds(deadline)

    def _acted(self, fields: Fields) -> Iterator[Violation]:
        seat = fields["seat"]
        if self._turn is None or self._turn["seat"] != seat:
            yield self._wrong("turn", f"seat {seat} acts in the turn {self._turn}")
        elif self._deadline is not None and self._time > self._deadline:
            yield self._wrong("turn", f"seat {seat} acts {self._time - self._deadline} ms after the deadline")
        self._timeouts[seat] = 0
        self._turn = (
            None if self._turn is None else {"seat": seat, "deadline": self._turn.get("deadline"), "over": True}
        )

    def _played(self, fields: Fields) -> Iterator[Violation]:
        yield from self._acted(fields)
        rack, table = self._racks[fields["seat"]], on_table(fields["table"])
        played: Counter[int] = Counter(fields.get("tiles", ()))
        if played - rack:
            yield self._wrong("tiles", f"seat {fields['seat']} plays {sorted((played - rack).elements())}, not its own")
        if table != self._table + played:
            yield self._wrong("tiles", "a table is not the one before with the tiles played")
        rack.subtract(played)
        self._racks[fields["seat"]], self._table = +rack, table
        yield from self._conserved("after a play")

    def _drawn(self, fields: Fields) -> Iterator[Violation]:
        yield from self._acted(fields)
        yield from self._taken(fields)

    def _taken(self, fields: Fields) -> Iterator[Violation]:
        tiles, count = fields.get("tiles", []), fields.get("tile_count", 0)
        if len(tiles) != count:
            yield self._wrong("tiles", f"a seat draws {count} tiles and sees {len(tiles)}")
        self._racks[fields["seat"]].update(tiles)
        self._pool -= count
        yield from self._conserved("after a draw")

    def _timed_out(self, fields: Fields) -> Iterator[Violation]:
        seat, deadline = fields["seat"], self._deadline
        if self._turn is None or self._turn["seat"] != seat or self._turn.get("over"):
            yield self._wrong("time-out", f"seat {seat} times out in the turn {self._turn}")
        elif deadline is None or self._time <= deadline:
            yield self._wrong("time-out", f"seat {seat} times out at {self._time}, due after {deadline}")
        else:
            self.time_outs += 1
            self._came("a time-out", self._turn_since, self._turn_began, deadline)
        self._turn = None if self._turn is None else {**self._turn, "over": True}
        self._timeouts[seat] += 1
        yield from self._taken(fields)

    def _absences(self, events: Iterable[tuple[str, Fields]]) -> Iterator[Violation]:
        """Yields absences of a change that the time-outs do not explain, and time-outs that lack one."""
        names = dict(events)
        late = names.get("turn_timed_out", {}).get("seat")
        before = 0 if late is None else self._timeouts[late]
        is_due = late is not None and 0 < self._absent_after <= before + 1
        absent = names.get("player_absent", {}).get("seat")
        if absent != (late if is_due else None):
            yield self._wrong("absence", f"seat {absent} is absent, seat {late} has timed out {before} times before")

    def _stopped(self, fields: Fields) -> Iterator[Violation]:
        seat, left = fields["seat"], duration_ms(fields.get("time_left", "0s"))
        bank, deadline = self._banks.get(seat, 0), self._deadline
        length = (deadline or 0) - self._turn_began
        used = min(max(0, self._time - self._turn_began), length)
        if left != bank - used + self._increment_ms:
            yield self._wrong("bank", f"seat {seat} has {left} ms left, {bank} less {used} before")
        self._banks[seat] = left

    def _round_ended(self, fields: Fields) -> Iterator[Violation]:
        result = fields["result"]
        seats = {one["seat"]: one for one in result["seats"]}
        for seat, rack in self._racks.items():
            shown = Counter(seats.get(seat, {}).get("rack", ()))
            if shown != +rack:
                yield self._wrong(
                    "tiles", f"seat {seat} ends with {sorted(shown.elements())}, not {sorted(rack.elements())}"
                )
        pool = result.get("pool", [])
        if len(pool) != self._pool or sum(self._racks.values(), self._table + Counter(pool)) != SET:
            yield self._wrong("tiles", "racks, table and pool are not the tiles of the game at the end of a round")
        points = {seat: one.get("points", 0) for seat, one in seats.items()}
        expected = points_of(self._racks, result["round_end"], result.get("winner_seats", []))
        if points != expected:
            yield self._wrong("score", f"the points are {points}, not {expected}")
        self._racks, self._turn = {}, None
        self._round_ended_at, self._round_ended_since = self._time, self._etag
        self._next_round_ms = milliseconds(fields["next_round_time"]) if "next_round_time" in fields else None


def points_of(racks: Mapping[int, Counter[int]], end: int, winners: Iterable[int]) -> dict[int, int] | None:
    """Returns the points of a round by seat (R60 to R63); None if others must have won it.

    Args:
        racks: What is left on the racks.
        end: How it ended.
        winners: The winners as stated. After a resignation only who resigned tells who has won.
    """
    values = {seat: sum(map(value_of, rack.elements())) for seat, rack in racks.items()}
    won = set(winners)
    if end == WENT_OUT:
        best = {seat for seat, rack in racks.items() if not rack.total()}
        lost = values
    elif end == BLOCKED:
        lowest = min((values[seat], rack.total()) for seat, rack in racks.items())
        best = {seat for seat, rack in racks.items() if (values[seat], rack.total()) == lowest}
        lost = {seat: value - lowest[0] for seat, value in values.items()}
    else:
        best, lost = won, values
    if best != won or not best:
        return None
    losses = {seat: loss for seat, loss in lost.items() if seat not in best}
    share, rest = divmod(sum(losses.values()), len(best))
    if rest:
        return None  # two players cannot share a remainder
    return {seat: share if seat in best else -losses[seat] for seat in racks}


_HANDLERS: Final[Mapping[str, Callable[[Replay, Fields], Iterator[Violation]]]] = {
    "game_created": Replay._created,  # noqa: SLF001 - the table of this class
    "round_started": Replay._round_started,  # noqa: SLF001 - as above
    "turn_started": Replay._turn_started,  # noqa: SLF001 - as above
    "tiles_played": Replay._played,  # noqa: SLF001 - as above
    "tiles_drawn": Replay._drawn,  # noqa: SLF001 - as above
    "turn_passed": Replay._acted,  # noqa: SLF001 - as above
    "turn_timed_out": Replay._timed_out,  # noqa: SLF001 - as above
    "clock_stopped": Replay._stopped,  # noqa: SLF001 - as above
    "round_ended": Replay._round_ended,  # noqa: SLF001 - as above
}
