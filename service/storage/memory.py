"""GameStore in memory: for tests, and for trying the service without persistence.

It stores the same bytes as the store on Redis, so every loaded game was encoded and decoded.
"""

import contextlib
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from engine.game import round_of
from engine.melding.drafts import Draft
from engine.melding.ruleset import DraftVisibility
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
from service.storage.base import DRAFT_MS, DRAFTS_AT_ONCE, SECRET_BYTES, Subscription, WholePage
from service.storage.lists import game_of_member, list_member, list_name, lists_of, open_list
from service.storage.snapshot import (
    decode_draft,
    decode_memo,
    decode_record,
    encode_draft,
    encode_memo,
    encode_record,
    readable_record,
)
from service.storage.stored_events import decode_entry
from service.storage.stored_presence import read_presence
from service.storage.timing import Observer, Reporter, timed, unobserved, unreported


def _system_clock() -> int:
    return time.time_ns() // 1_000_000


def _drafts_channel(game_id: str) -> str:
    return f"{game_id}:drafts"


def _order(place: str) -> tuple[int, int]:
    """Returns the key by which places in the change log are ordered."""
    time_ms, number = place.split("-")
    return int(time_ms), int(number)


@dataclass(slots=True)
class _Stored:
    """The stored data of one game: what RedisStore has under the game's keys."""

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

    def remember(self, commit: Commit, memo: bytes) -> None:
        """Stores a memo; drops the sender's oldest one if there are more than MEMOS_A_SENDER."""
        keys = self.last_keys[commit.sender]
        self.memos[commit.request_key] = memo
        keys.append(commit.request_key)
        if len(keys) > MEMOS_A_SENDER:
            del self.memos[keys.pop(0)]


class MemoryStore:
    """GameStore in memory. Games never expire.

    Args:
        history: How many changes of a game are kept for watchers and history.
        clock: Returns milliseconds since 1970.
        log_ms: How long the change log has its entries; 0: there is no log.
    """

    def __init__(self, history: int, clock: Callable[[], int] = _system_clock, log_ms: int = 0) -> None:
        self.observe: Observer = unobserved
        self.report: Reporter = unreported
        self.log_ms, self.log_parts = log_ms, 1
        self._log: list[LogEntry] = []
        self._logged = 0
        """How many entries the change log has had."""
        self._history = history
        self._clock = clock
        self._games: dict[str, _Stored] = {}
        self._secret = secrets.token_bytes(SECRET_BYTES)
        self._lists: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """By name of the list: the members by game."""
        self._names: dict[str, str] = {}
        self._deadlines: dict[str, int] = {}
        self._outbox: dict[OutboxEntry, int] = {}
        """By entry: when it was claimed; 0 if it was not."""
        self._entries_appended = 0
        self._presence: defaultdict[str, dict[bytes, int]] = defaultdict(dict)
        self._subscriptions: defaultdict[str, set[Subscription]] = defaultdict(set)

    @timed
    async def now_ms(self) -> int:
        """See GameStore."""
        return self._clock()

    @timed
    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        """See GameStore."""
        stored = self._games.get(game_id)
        memo = stored.memos.get(request_key) if stored else None
        return Loaded(
            now_ms=self._clock(),
            record=decode_record(stored.snapshot) if stored else None,
            memo=decode_memo(memo) if memo else None,
        )

    def cached(self, _game_id: str) -> Loaded | None:
        """See GameStore. There is no cache."""
        return None

    @timed
    async def commit(self, commit: Commit) -> Outcome:
        """See GameStore."""
        if commit.change:
            self._announce(commit.record.game_id, LogKind.CHANGED, commit.record)
        stored = self._games.get(commit.record.game_id, _Stored())
        if commit.request_key in stored.memos:
            return decode_memo(stored.memos[commit.request_key])
        record = commit.record
        is_out_of_time = commit.until_ms is not None and not record.updated_ms <= self._clock() <= commit.until_ms
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
            kept, vacated = self._presence[record.game_id], f"{commit.vacated}".encode()
            self._presence[record.game_id] = {
                name: time_ms for name, time_ms in kept.items() if name.partition(b":")[0] != vacated
            }
        self._games[record.game_id] = stored
        self._notify(record.game_id)
        return Committed()

    def _announce(self, game_id: str, kind: LogKind, record: Record | None = None) -> None:
        """Adds an entry to the change log, if there is one, and removes old ones."""
        if not self.log_ms:
            return
        self._logged += 1
        now_ms = self._clock()
        place = f"{now_ms}-{self._logged}"
        after = (record.game.revision, record.etag) if record else ()
        self._log.append(LogEntry(place, game_id, kind, *after))
        while self._log[0].time_ms < now_ms - self.log_ms:
            self._log.pop(0)

    @timed
    async def delete(self, game_id: str, record: Record | None = None) -> None:
        """See GameStore."""
        self._announce(game_id, LogKind.DELETED)
        self._games.pop(game_id, None)
        self._deadlines.pop(game_id, None)
        self._presence.pop(game_id, None)
        for members in self._lists.values():
            members.pop(game_id, None)
        code = code_name(record.listing.join_code) if record else ""
        if self._names.get(code) == game_id:
            del self._names[code]
        self._notify(game_id)

    @timed
    async def rewrite(self, previous_etag: str, record: Record, stream: Sequence[tuple[bytes, str]]) -> Outcome:
        """See GameStore."""
        self._announce(record.game_id, LogKind.REWRITTEN, record)
        stored = self._games.get(record.game_id, _Stored())
        if stored.etag != previous_etag:
            return Conflict()
        first_revision = record.game.revision - len(stream) + 1
        stored.stream = [(first_revision + place, *change) for place, change in enumerate(stream)]
        stored.snapshot, stored.etag = encode_record(record), record.etag
        stored.memos.clear()
        stored.last_keys.clear()
        self._notify(record.game_id)
        return Committed()

    @timed
    async def read_log(self, part: int, after: str, limit: int) -> LogPage:  # noqa: ARG002 - there is one part
        """See GameStore."""
        found = [entry for entry in self._log if _order(entry.place) > _order(after)]
        return LogPage(self._clock(), tuple(found[:limit]))

    @timed
    async def log_length(self) -> int:
        """See GameStore."""
        return len(self._log)

    def _notify(self, channel: str) -> None:
        for subscription in self._subscriptions.get(channel, ()):
            subscription.notify()

    @timed
    async def save_draft(self, record: Record, draft: Draft) -> int | None:
        """See GameStore."""
        now_ms, deadline_ms = self._clock(), round_of(record.game).turn.deadline_ms
        stored = self._games.get(record.game_id, _Stored())
        if stored.etag != record.etag or (deadline_ms is not None and now_ms > deadline_ms):
            return None
        due_ms = max(stored.draft_due.get(draft.seat, 0), now_ms) + DRAFT_MS
        if due_ms > now_ms + DRAFTS_AT_ONCE * DRAFT_MS:
            raise TooManyDrafts("seat_drafts")
        stored.draft_due[draft.seat] = due_ms
        stored.draft = encode_draft(draft)
        stored.drafts += 1
        if record.game.ruleset.draft_visibility is DraftVisibility.EVERYONE:
            self._notify(_drafts_channel(record.game_id))
        return stored.drafts

    @timed
    async def draft(self, game_id: str) -> Draft | None:
        """See GameStore."""
        stored = self._games.get(game_id, _Stored())
        return decode_draft(stored.draft, stored.drafts) if stored.draft else None

    @timed
    async def events(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        """See GameStore."""
        stream = self._games.get(game_id, _Stored()).stream
        found = [(change, etag) for revision, change, etag in stream if revision >= first_revision]
        return tuple(decode_entry(change, etag) for change, etag in found[:limit])

    @timed
    async def bounds(self, game_id: str) -> tuple[int, int]:
        """See GameStore."""
        stream = self._games.get(game_id, _Stored()).stream
        return (stream[0][0], stream[-1][0]) if stream else (0, 0)

    def changes(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """See GameStore."""
        return self._subscribe(game_id)

    def drafts(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """See GameStore."""
        return self._subscribe(_drafts_channel(game_id))

    @contextlib.asynccontextmanager
    async def _subscribe(self, channel: str) -> AsyncIterator[Subscription]:
        subscription = Subscription()
        self._subscriptions[channel].add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions[channel].discard(subscription)
            if not self._subscriptions[channel]:
                del self._subscriptions[channel]

    @timed
    async def secret(self) -> bytes:
        """See GameStore."""
        return self._secret

    @timed
    async def check_room(self, most_age: float = 0.0) -> None:
        """See GameStore."""

    @timed
    async def index(self, record: Record) -> None:
        """See GameStore."""
        for members in self._lists.values():
            members.pop(record.game_id, None)
        for name in lists_of(record):
            self._lists[name][record.game_id] = list_member(record)

    @timed
    async def page(
        self, state: GameState, cursor: str, limit: int, *, is_public: bool = False
    ) -> tuple[tuple[Record, ...], str]:
        """See GameStore."""
        page = await self._page(list_name(state, is_public=is_public), cursor, limit)
        return page.games, page.cursor

    @timed
    async def whole_page(self, state: GameState, cursor: str, limit: int) -> WholePage:
        """See GameStore."""
        return await self._page(list_name(state, is_public=False), cursor, limit)

    async def _page(self, name: str, cursor: str, limit: int) -> WholePage:
        members = sorted((m for m in self._members(name) if not cursor or m < cursor), reverse=True)[:limit]
        ids = (game_of_member(member) for member in members)
        unreadable = (id_ for id_ in ids if id_ in self._games and not readable_record(self._games[id_].snapshot))
        following = members[-1] if len(members) == limit else ""
        return WholePage(await self._games_in(name, members), tuple(unreadable), following)

    @timed
    async def oldest_open(self, match: str, limit: int) -> tuple[Record, ...]:
        """See GameStore."""
        name = open_list(match)
        return await self._games_in(name, sorted(self._members(name))[:limit])

    def _members(self, name: str) -> Collection[str]:
        return self._lists[name].values() if name in self._lists else ()

    async def _games_in(self, name: str, members: Sequence[str]) -> tuple[Record, ...]:
        """Returns the games of members of a list, and repairs the list where it was wrong."""
        stored = [self._games.get(game_of_member(member)) for member in members]
        readable = (readable_record(game.snapshot) for game in stored if game)
        records = [record for record in readable if record]
        moved = [record for record in records if name not in lists_of(record)]
        for record in moved:
            await self.index(record)
        return tuple(record for record in records if record not in moved)

    @timed
    async def count(self) -> dict[GameState, int]:
        """See GameStore."""
        return {state: len(self._members(list_name(state, is_public=False))) for state in GameState}

    @timed
    async def point(self, name: str, game_id: str, instead_of: str = "", *, is_brief: bool = False) -> str:  # noqa: ARG002 - nothing expires
        """See GameStore."""
        if self._names.get(name, instead_of) == instead_of:
            self._names[name] = game_id
        return self._names[name]

    @timed
    async def pointed(self, name: str) -> str:
        """See GameStore."""
        return self._names.get(name, "")

    @timed
    async def arm(self, game_id: str, at_ms: int) -> None:
        """See GameStore."""
        self._deadlines[game_id] = at_ms

    @timed
    async def rearm(self, due: Due, at_ms: int | None) -> None:
        """See GameStore."""
        if self._deadlines.get(due.game_id) != due.claimed_ms:
            return
        if at_ms is None:
            del self._deadlines[due.game_id]
        else:
            self._deadlines[due.game_id] = at_ms

    @timed
    async def claim(self, limit: int, skip: Collection[str] = ()) -> Sequence[Due]:
        """See GameStore."""
        now_ms = self._clock()
        past = {game_id: at_ms for game_id, at_ms in self._deadlines.items() if at_ms < now_ms and game_id not in skip}
        earliest = sorted(past, key=past.__getitem__)[:limit]
        found = [Due(game_id, past[game_id], now_ms + CLAIM_MS) for game_id in earliest]
        self._deadlines |= {due.game_id: due.claimed_ms for due in found}
        return found

    @timed
    async def report_presence(self, game_id: str, server: str, sightings: Mapping[int, Sighting]) -> None:
        """See GameStore."""
        if game_id not in self._games:
            return
        now_ms, kept = self._clock(), self._presence[game_id]
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
                self._notify(f"{game_id}:seen")

    @timed
    async def presence(self, game_id: str) -> Mapping[int, Seen]:
        """See GameStore."""
        return read_presence(self._presence.get(game_id, {}))

    def presence_changes(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """See GameStore."""
        return self._subscribe(f"{game_id}:seen")

    @timed
    async def append_to_outbox(self, game_id: str) -> int:
        """See GameStore."""
        self._entries_appended += 1
        entry = OutboxEntry(game_id, str(self._entries_appended), self._clock())
        self._outbox[entry] = 0
        return entry.at_ms

    @timed
    async def claim_from_outbox(self, limit: int, claim_ms: int) -> Sequence[OutboxEntry]:
        """See GameStore."""
        now_ms = self._clock()
        free = [entry for entry, claimed_ms in self._outbox.items() if claimed_ms + claim_ms <= now_ms]
        found = sorted(free, key=self._outbox.__getitem__)[:limit]
        self._outbox |= dict.fromkeys(found, now_ms)
        return found

    @timed
    async def acknowledge(self, entry: OutboxEntry) -> None:
        """See GameStore."""
        self._outbox.pop(entry, None)

    @timed
    async def outbox_size(self) -> int:
        """See GameStore."""
        return len(self._outbox)

    @timed
    async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
        """See GameStore."""
        stream = self._games.get(game_id, _Stored()).stream
        found = [
            StoredChange(revision, etag, change) for revision, change, etag in stream if revision >= first_revision
        ]
        return tuple(found[:limit])

    @timed
    async def shorten(self, record: Record, kept_ms: int) -> bool:  # noqa: ARG002 - nothing expires
        """See GameStore."""
        stored = self._games.get(record.game_id)
        return stored is None or stored.etag == record.etag

    @timed
    async def ping(self) -> None:
        """See GameStore."""

    async def close(self) -> None:
        """See GameStore."""
