"""A store in memory: for tests, and for trying the service without persistence. Games never expire.

It stores the same bytes as the store on Redis, so every loaded game was encoded and decoded.
"""

import contextlib
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from engine.game import round_of
from engine.room_settings import DraftVisibility
from engine.unions import Draft
from service.errors import TooManyDrafts
from service.model.change import (
    MEMOS_A_SENDER,
    NO_ETAG,
    Commit,
    Committed,
    Conflict,
    Entry,
    Loaded,
    Outcome,
    StoredChange,
)
from service.model.change_log import LogEntry, LogKind, LogPage
from service.model.deadlines import CLAIM_MS, Due
from service.model.outbox import OutboxEntry
from service.model.presence import PRESENCE_MS, Seen, Sighting
from service.model.record import GameState, Record, code_name
from service.storage.lists import (
    game_of_member,
    game_of_players_member,
    list_member,
    list_name,
    lists_of,
    open_list,
    players_list,
    players_lists,
    players_member,
    players_prefix,
)
from service.storage.snapshot import (
    decode_draft,
    decode_memo,
    decode_record,
    encode_draft,
    encode_memo,
    encode_record,
    readable_record,
)
from service.storage.store import (
    DRAFT_MS,
    DRAFTS_AT_ONCE,
    PLAYER_GAMES_MAX,
    SECRET_BYTES,
    ListPage,
    Store,
    Subscription,
)
from service.storage.stored_events import decode_entry
from service.storage.stored_presence import read_presence
from service.storage.timing import Reports, timed


def _system_clock() -> int:
    return time.time_ns() // 1_000_000


def _order(place: str) -> tuple[int, int]:
    """Returns the key by which places in the change log are ordered."""
    time_ms, number = place.split("-")
    return int(time_ms), int(number)


@dataclass(slots=True)
class _Stored:
    """The stored data of one game: what the store on Redis has under the game's keys."""

    snapshot: bytes = b""
    etag: str = NO_ETAG
    memos: dict[str, bytes] = field(default_factory=dict)
    stream: list[tuple[int, bytes, str]] = field(default_factory=list)
    last_keys: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The keys of each sender's last memos."""
    draft: bytes = b""
    drafts: int = 0
    draft_due: dict[int, int] = field(default_factory=dict)
    """When each seat's next draft is due, if it saved them at an even pace."""
    presence: dict[bytes, int] = field(default_factory=dict)

    def remember(self, commit: Commit, memo: bytes) -> None:
        """Stores a memo; drops the sender's oldest one if there are more than MEMOS_A_SENDER."""
        keys = self.last_keys[commit.sender]
        self.memos[commit.request_key] = memo
        keys.append(commit.request_key)
        if len(keys) > MEMOS_A_SENDER:
            del self.memos[keys.pop(0)]


@dataclass(slots=True)
class Memory:
    """What the parts of a store share: its clock, the stored games, and who is notified."""

    clock: Callable[[], int]
    reports: Reports = field(default_factory=Reports)
    games: dict[str, _Stored] = field(default_factory=dict)
    subscriptions: defaultdict[str, set[Subscription]] = field(default_factory=lambda: defaultdict(set))

    def stored(self, game_id: str) -> _Stored:
        """Returns the data of a game; of one that is not stored, empty data that are not stored either."""
        return self.games.get(game_id, _Stored())

    def notify(self, channel: str) -> None:
        for subscription in self.subscriptions.get(channel, ()):
            subscription.notify()

    @contextlib.asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[Subscription]:
        subscription = Subscription()
        self.subscriptions[channel].add(subscription)
        try:
            yield subscription
        finally:
            self.subscriptions[channel].discard(subscription)
            if not self.subscriptions[channel]:
                del self.subscriptions[channel]


class _Part:
    """A part of a store."""

    channel = ""
    """What follows a game's id in the name of the channel of the part's changes."""

    def __init__(self, memory: Memory) -> None:
        self.reports = memory.reports
        self._memory = memory

    def subscribe(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        return self._memory.subscribe(f"{game_id}{self.channel}")

    def _notify(self, game_id: str) -> None:
        self._memory.notify(f"{game_id}{self.channel}")


class MemoryGames(_Part):
    """StoredGames in memory.

    Args:
        memory: What all parts share.
        history: How many changes of a game are kept for watchers and history.
        beside: The parts that have something of each game.
    """

    def __init__(
        self,
        memory: Memory,
        history: int,
        beside: "tuple[MemoryLists, MemoryNames, MemoryDeadlines, MemoryLog]",
    ) -> None:
        super().__init__(memory)
        self._history = history
        self._lists, self._names, self._deadlines, self._log = beside

    @timed("load")
    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        stored = self._memory.games.get(game_id)
        memo = stored.memos.get(request_key) if stored else None
        return Loaded(
            now_ms=self._memory.clock(),
            record=decode_record(stored.snapshot) if stored else None,
            memo=decode_memo(memo) if memo else None,
        )

    def cached(self, _game_id: str) -> Loaded | None:
        """There is no cache."""
        return None

    @timed("commit")
    async def commit(self, commit: Commit) -> Outcome:
        record, now_ms = commit.record, self._memory.clock()
        if commit.change:
            self._log.announce(record.game_id, LogKind.CHANGED, record)
        stored = self._memory.stored(record.game_id)
        if commit.request_key in stored.memos:
            return decode_memo(stored.memos[commit.request_key])
        is_out_of_time = commit.until_ms is not None and not record.updated_ms <= now_ms <= commit.until_ms
        if stored.etag != commit.previous_etag or is_out_of_time:
            return Conflict()
        if commit.memo:
            stored.remember(commit, encode_memo(commit.memo))
        if not commit.change:
            return Committed()
        stored.stream = [*stored.stream, (record.game.revision, commit.change, record.etag)][-self._history :]
        stored.snapshot = encode_record(record)
        stored.etag = record.etag
        if commit.vacated:
            seat = f"{commit.vacated}".encode()
            stored.presence = {at: ms for at, ms in stored.presence.items() if at.partition(b":")[0] != seat}
        self._memory.games[record.game_id] = stored
        self._notify(record.game_id)
        return Committed()

    @timed("delete")
    async def delete(self, game_id: str, record: Record | None = None) -> None:
        self._log.announce(game_id, LogKind.DELETED)
        self._memory.games.pop(game_id, None)
        self._deadlines.disarm(game_id)
        self._lists.remove(game_id)
        if record:
            self._names.release(code_name(record.listing.join_code), game_id)
        self._notify(game_id)

    @timed("rewrite")
    async def rewrite(self, previous_etag: str, record: Record, stream: Sequence[tuple[bytes, str]]) -> Outcome:
        self._log.announce(record.game_id, LogKind.REWRITTEN, record)
        stored = self._memory.stored(record.game_id)
        if stored.etag != previous_etag:
            return Conflict()
        first_revision = record.game.revision - len(stream) + 1
        stored.stream = [(first_revision + place, *change) for place, change in enumerate(stream)]
        stored.snapshot, stored.etag = encode_record(record), record.etag
        stored.memos.clear()
        stored.last_keys.clear()
        self._notify(record.game_id)
        return Committed()

    @timed("shorten")
    async def shorten(self, record: Record, kept_ms: int) -> bool:  # noqa: ARG002 - nothing expires
        stored = self._memory.games.get(record.game_id)
        return stored is None or stored.etag == record.etag


class MemoryStreams(_Part):
    """Streams in memory."""

    @timed("events")
    async def entries(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        return tuple(decode_entry(stored.change, stored.etag) for stored in self._read(game_id, first_revision, limit))

    @timed("stored_changes")
    async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
        return self._read(game_id, first_revision, limit)

    def _read(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
        stream = self._memory.stored(game_id).stream
        found = [
            StoredChange(revision, etag, change) for revision, change, etag in stream if revision >= first_revision
        ]
        return tuple(found[:limit])

    @timed("bounds")
    async def bounds(self, game_id: str) -> tuple[int, int]:
        stream = self._memory.stored(game_id).stream
        return (stream[0][0], stream[-1][0]) if stream else (0, 0)

    @timed("notify")
    async def notify(self, game_id: str) -> None:
        self._notify(game_id)


class MemoryDrafts(_Part):
    """StoredDrafts in memory."""

    channel = ":drafts"

    @timed("save_draft")
    async def save(self, record: Record, draft: Draft) -> int | None:
        now_ms, deadline_ms = self._memory.clock(), round_of(record.game).turn.deadline_ms
        stored = self._memory.stored(record.game_id)
        if stored.etag != record.etag or (deadline_ms is not None and now_ms > deadline_ms):
            return None
        due_ms = max(stored.draft_due.get(draft.seat, 0), now_ms) + DRAFT_MS
        if due_ms > now_ms + DRAFTS_AT_ONCE * DRAFT_MS:
            raise TooManyDrafts("seat_drafts")
        stored.draft_due[draft.seat] = due_ms
        stored.draft = encode_draft(draft)
        stored.drafts += 1
        if record.game.settings.draft_visibility is DraftVisibility.EVERYONE:
            self._notify(record.game_id)
        return stored.drafts

    @timed("draft")
    async def latest(self, game_id: str) -> Draft | None:
        stored = self._memory.stored(game_id)
        return decode_draft(stored.draft, stored.drafts) if stored.draft else None


class MemoryLists(_Part):
    """Lists in memory."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._lists: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """By name of the list: the members by game."""
        self._of_players: defaultdict[str, set[str]] = defaultdict(set)

    def remove(self, game_id: str) -> None:
        """Removes a game from all lists."""
        for members in self._lists.values():
            members.pop(game_id, None)

    @timed("index")
    async def index(self, record: Record) -> None:
        self.remove(record.game_id)
        for name in lists_of(record):
            self._lists[name][record.game_id] = list_member(record)

    @timed("page")
    async def page(self, states: Iterable[GameState], cursor: str, limit: int, *, is_public: bool = False) -> ListPage:
        names, stored = {list_name(state, is_public=is_public) for state in states}, self._memory.games
        listed = {member for name in names for member in self._members(name)}
        members = sorted((member for member in listed if not cursor or member < cursor), reverse=True)[:limit]
        ids = (game_of_member(member) for member in members)
        unreadable = (id_ for id_ in ids if id_ in stored and not readable_record(stored[id_].snapshot))
        following = members[-1] if len(members) == limit else ""
        return ListPage(await self._games_in(names, members), tuple(unreadable), following)

    @timed("oldest_open")
    async def oldest_open(self, match: str, limit: int) -> tuple[Record, ...]:
        name = open_list(match)
        return await self._games_in({name}, sorted(self._members(name))[:limit])

    def _members(self, name: str) -> Collection[str]:
        return self._lists[name].values() if name in self._lists else ()

    async def _games_in(self, names: Set[str], members: Sequence[str]) -> tuple[Record, ...]:
        """Returns the games of members of some lists, and repairs the lists where they were wrong."""
        stored = [self._memory.games.get(game_of_member(member)) for member in members]
        readable = (readable_record(game.snapshot) for game in stored if game)
        records = [record for record in readable if record]
        moved = [record for record in records if names.isdisjoint(lists_of(record))]
        for record in moved:
            await self.index(record)
        return tuple(record for record in records if record not in moved)

    @timed("count")
    async def count(self) -> dict[GameState, int]:
        return {state: len(self._members(list_name(state, is_public=False))) for state in GameState}

    @timed("note_players")
    async def note_players(self, record: Record) -> None:
        for name in players_lists(record):
            self._of_players[name].add(players_member(record))

    @timed("games_of")
    async def games_of(self, key: str, player_ref: str) -> Sequence[str]:
        found = self._of_players.get(players_list(player_ref), ())
        newest = sorted((member for member in found if member.startswith(players_prefix(key))), reverse=True)
        return [game_of_players_member(member) for member in newest[:PLAYER_GAMES_MAX]]

    @timed("forget_player")
    async def forget_player(self, player_ref: str) -> None:
        self._of_players.pop(players_list(player_ref), None)


class MemoryNames(_Part):
    """Names in memory."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._names: dict[str, str] = {}

    def release(self, name: str, game_id: str) -> None:
        """Removes a name that points at a game."""
        if self._names.get(name) == game_id:
            del self._names[name]

    @timed("point_name")
    async def point(self, name: str, game_id: str, instead_of: str = "", *, kept_ms: int | None = None) -> str:  # noqa: ARG002 - nothing expires
        if self._names.get(name, instead_of) == instead_of:
            self._names[name] = game_id
        return self._names[name]

    @timed("find_name")
    async def find(self, name: str) -> str:
        return self._names.get(name, "")


class MemoryDeadlines(_Part):
    """Deadlines in memory."""

    servers = 1

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._deadlines: dict[str, int] = {}

    def disarm(self, game_id: str) -> None:
        """Makes a game never due."""
        self._deadlines.pop(game_id, None)

    @timed("arm")
    async def arm(self, game_id: str, at_ms: int) -> None:
        self._deadlines[game_id] = at_ms

    @timed("rearm")
    async def rearm(self, due: Due, at_ms: int | None) -> None:
        if self._deadlines.get(due.game_id) != due.claimed_ms:
            return
        if at_ms is None:
            del self._deadlines[due.game_id]
        else:
            self._deadlines[due.game_id] = at_ms

    @timed("claim")
    async def claim(self, limit: int, skip: Collection[str] = ()) -> Sequence[Due]:
        now_ms = self._memory.clock()
        past = {game_id: at_ms for game_id, at_ms in self._deadlines.items() if at_ms < now_ms and game_id not in skip}
        earliest = sorted(past, key=past.__getitem__)[:limit]
        found = [Due(game_id, past[game_id], now_ms + CLAIM_MS) for game_id in earliest]
        self._deadlines |= {due.game_id: due.claimed_ms for due in found}
        return found


class MemoryPresence(_Part):
    """StoredPresence in memory."""

    channel = ":seen"

    @timed("report_presence")
    async def report(self, game_id: str, server: str, sightings: Mapping[int, Sighting]) -> None:
        now_ms, kept = self._memory.clock(), self._memory.stored(game_id).presence
        for seat, sighting in sightings.items():
            watch = f"{seat}:{server}".encode()
            was_open = kept.get(watch, 0) >= now_ms
            if sighting is not Sighting.CLOSED or f"{seat}".encode() in kept:  # else the seat was vacated
                kept[f"{seat}".encode()] = now_ms
            if sighting is Sighting.OPEN:
                kept[watch] = now_ms + PRESENCE_MS
            elif sighting is Sighting.CLOSED:
                kept.pop(watch, None)
            if (kept.get(watch, 0) >= now_ms) != was_open:
                self._notify(game_id)

    @timed("read_presence")
    async def read(self, game_id: str) -> Mapping[int, Seen]:
        return read_presence(self._memory.stored(game_id).presence)


class MemoryOutbox(_Part):
    """Outbox in memory."""

    servers = 1

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._entries: dict[OutboxEntry, int] = {}
        """By entry: when it was claimed; 0 if it was not."""
        self._appended = 0

    @timed("append_to_outbox")
    async def append(self, game_id: str) -> int:
        self._appended += 1
        entry = OutboxEntry(game_id, str(self._appended), self._memory.clock())
        self._entries[entry] = 0
        return entry.at_ms

    @timed("claim_from_outbox")
    async def claim(self, limit: int, claim_ms: int) -> Sequence[OutboxEntry]:
        now_ms = self._memory.clock()
        free = [entry for entry, claimed_ms in self._entries.items() if claimed_ms + claim_ms <= now_ms]
        found = sorted(free, key=self._entries.__getitem__)[:limit]
        self._entries |= dict.fromkeys(found, now_ms)
        return found

    @timed("acknowledge")
    async def acknowledge(self, entry: OutboxEntry) -> None:
        self._entries.pop(entry, None)

    @timed("outbox_size")
    async def size(self) -> int:
        return len(self._entries)


class MemoryLog(_Part):
    """ChangeLog in memory.

    Args:
        memory: What all parts share.
        kept_ms: How long entries are kept; 0: there is no log.
    """

    parts = 1

    def __init__(self, memory: Memory, kept_ms: int) -> None:
        super().__init__(memory)
        self.kept_ms = kept_ms
        self._entries: list[LogEntry] = []
        self._announced = 0

    def announce(self, game_id: str, kind: LogKind, record: Record | None = None) -> None:
        """Adds an entry, if there is a log, and removes old ones."""
        if not self.kept_ms:
            return
        self._announced += 1
        now_ms = self._memory.clock()
        after = (record.game.revision, record.etag) if record else ()
        self._entries.append(LogEntry(f"{now_ms}-{self._announced}", game_id, kind, *after))
        while self._entries[0].time_ms < now_ms - self.kept_ms:
            self._entries.pop(0)

    @timed("read_log")
    async def read(self, part: int, after: str, limit: int) -> LogPage:  # noqa: ARG002 - there is one part
        found = [entry for entry in self._entries if _order(entry.place) > _order(after)]
        return LogPage(self._memory.clock(), tuple(found[:limit]))

    @timed("log_length")
    async def length(self) -> int:
        return len(self._entries)


class MemoryStore(Store):
    """Store in memory.

    Args:
        history: How many changes of a game are kept for watchers and history.
        clock: Returns milliseconds since 1970.
        log_ms: How long the change log has its entries; 0: there is no log.

    Attributes:
        memory: What it stores of games, for tests that damage it.
    """

    def __init__(self, history: int, clock: Callable[[], int] = _system_clock, log_ms: int = 0) -> None:
        memory = self.memory = Memory(clock)
        self.reports = memory.reports
        self._clock = clock
        self._secret = secrets.token_bytes(SECRET_BYTES)
        beside = MemoryLists(memory), MemoryNames(memory), MemoryDeadlines(memory), MemoryLog(memory, log_ms)
        self.lists, self.names, self.deadlines, self.log = beside
        self.games = MemoryGames(memory, history, beside)
        self.streams = MemoryStreams(memory)
        self.drafts = MemoryDrafts(memory)
        self.presence = MemoryPresence(memory)
        self.outbox = MemoryOutbox(memory)

    @timed("now_ms")
    async def now_ms(self) -> int:
        return self._clock()

    @timed("secret")
    async def secret(self) -> bytes:
        return self._secret

    @timed("check_room")
    async def check_room(self, most_age: float = 0.0) -> None:
        """There is always room."""

    @timed("ping")
    async def ping(self) -> None:
        """It always answers."""

    async def close(self) -> None:
        """There is nothing to close."""
