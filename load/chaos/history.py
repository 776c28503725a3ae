"""Histories: what callers did and saw during a run, as JSON lines that can be checked again.

Times of calls are seconds of the runner's monotonic clock; times of changes are milliseconds of the store's clock.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson

OK: Final = "OK"
UNANSWERED: Final = "UNANSWERED"
"""The status of a call that may or may not have been executed."""


@dataclass(frozen=True, slots=True)
class Run:
    """The first entry: which run it is.

    Attributes:
        store: The kind of store.
        seed: The seed of its schedule.
        revision: The revision of the code.
        lobby_seconds: How long a lobby is kept after its last change.
        is_lossy: Whether the store is set up so that it may lose the last changes, as the pages say.
        clock_seconds: How far the store's clock may step, in seconds. Expiry follows that clock.
    """

    store: str
    seed: int
    revision: str
    lobby_seconds: float = 60.0
    is_lossy: bool = False
    clock_seconds: float = 8.0


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a player, one entry for each attempt.

    Attributes:
        method: The RPC.
        game: The game's id.
        token: A digest of the token that was sent; empty for none.
        seat: The seat of the token; 0 for none or the host's.
        request_id: The id of the request; empty for a read.
        content: A digest of the request without its id.
        base: The etag that the request names; empty for none.
        action: What is done: draw, play, pass, resign; or why it is sent ("abandon" for a lobby that is left alone).
        began: When it was sent.
        ended: When it was answered or given up.
        status: OK, UNANSWERED, or the reason of the refusal.
        etag: That of the game in the answer.
        answer: A digest of the answer.
        tiles: How many tiles the game in the answer has, everywhere; 0 if no round is played.
        ticket: A digest of the join ticket that was sent; empty for none.
    """

    method: str
    game: str
    token: str
    seat: int
    request_id: str
    content: str
    base: str
    action: str
    began: float
    ended: float
    status: str
    etag: str = ""
    answer: str = ""
    tiles: int = 0
    ticket: str = ""

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return not self.request_id


@dataclass(frozen=True, slots=True)
class Watched:
    """An update of a watch.

    Attributes:
        watch: The watcher's name.
        game: The game's id.
        update: resume (from this etag), snapshot, change, heartbeat (the first one, if nothing else came before it),
            or end: the watcher has waited for the last change.
        etag: The etag of the revision; empty for a resumption without one.
        at: When it came.
    """

    watch: str
    game: str
    update: str
    etag: str
    at: float


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that was made: its name, its target, and from when to when."""

    name: str
    target: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Mischief:
    """How often the proxies did something to connections."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class StoredGame:
    """A game as it was stored at the end of the run.

    Attributes:
        game: The game's id.
        state: The name of its state.
        changes: All changes, in the contract's JSON form with numbers of enums. Events have what each seat alone saw:
            the tiles that it drew; RoundStarted has `racks` by seat.
        is_whole: Whether the changes have what each seat saw: not if a seat's token is unknown.
    """

    game: str
    state: str
    changes: list[dict[str, Any]]
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Fed:
    """A change that the operator's feed has sent."""

    game: str
    etag: str


@dataclass(frozen=True, slots=True)
class Archived:
    """A game in the archive, with its last etag there."""

    game: str
    etag: str


Entry: TypeAlias = Run | Call | Watched | Fault | Mischief | StoredGame | Fed | Archived
_KINDS: Final[Mapping[str, type[Entry]]] = {
    kind.__name__: kind for kind in (Run, Call, Watched, Fault, Mischief, StoredGame, Fed, Archived)
}
_FIELDS: Final = {kind: tuple(field.name for field in fields(kind)) for kind in _KINDS.values()}


def revision_of(etag: str) -> int:
    """Returns the revision of an etag of the contract; 0 for none."""
    number = etag.partition("-")[0]
    return int(number) if number.isdecimal() else 0


def to_line(entry: Entry) -> bytes:
    """Returns an entry as a line of JSON."""
    kind = type(entry)
    values = {name: getattr(entry, name) for name in _FIELDS[kind]}
    return orjson.dumps({"kind": kind.__name__, **values}, option=orjson.OPT_APPEND_NEWLINE)


def from_line(line: bytes) -> Entry:
    """Returns the entry of a line. Raises KeyError, TypeError, ValueError."""
    values = orjson.loads(line)
    return _KINDS[values.pop("kind")](**values)


def read(path: Path) -> Iterator[Entry]:
    """Yields the entries of a file."""
    with path.open("rb") as lines:
        yield from map(from_line, lines)


class History:
    """A history that is being recorded: in memory, and in a file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.entries: list[Entry] = []
        self._file = path.open("wb")

    def add(self, *entries: Entry) -> None:
        """Appends entries."""
        self.extend(entries)

    def extend(self, entries: Iterable[Entry]) -> None:
        """Appends entries."""
        for entry in entries:
            self.entries.append(entry)
            self._file.write(to_line(entry))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
