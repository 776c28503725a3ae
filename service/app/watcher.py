"""One watcher of a game: its position in the history, and the updates that come next."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from engine.room_settings import Spectators
from service.app.identity import Caller, part_in
from service.app.watch_feed import LAG, Feed, Presences, SharedChange, SharedGame, changed_presence
from service.app.watch_updates import (
    Change,
    Closing,
    Content,
    GameAfter,
    Heartbeat,
    LiveDraft,
    PresenceChange,
    Snapshot,
    Update,
)
from service.errors import GameNotFound, HistoryUnavailable, SpectatorsNotAllowed, TokenVoid
from service.model.record import Record

OTHER_HISTORY: Final = "the etag is of another game, or of changes that are lost; watch without one to start anew"
"""The advice to a caller whose etag is not that of its revision."""


@dataclass(slots=True)
class Position:
    """A watcher's position in the history, and what it may see.

    Attributes:
        revision: The last revision that the watcher got.
        etag: That revision's etag.
        caller: The watcher.
        viewer: Whose view the watcher gets (engine.sight): the seat of the caller's token, HOST, or None.
        content: What the watcher gets after each change.
        loaded: A loaded game in which the token was valid. Tokens that the seat lost before were of another player.
        spectators: The game's option.
        has_started: Whether a round of the game has started.
        turn_revision: The revision of the turn in progress; 0 if there is none.
        draft_number: The number of the last draft that the watcher got of this turn.
        record: The game at this position, for a watcher of games; None before a resuming watcher reaches `loaded`.
        presence: The presence of the players as the watcher knows it; None if it knows none.
        has_game: Whether the watcher has got a game, with what never changes.
    """

    revision: int
    etag: str
    caller: Caller
    viewer: int | None
    content: Content
    loaded: SharedGame
    spectators: Spectators
    has_started: bool
    turn_revision: int
    draft_number: int
    record: Record | None
    presence: Presences | None
    has_game: bool = False

    @classmethod
    def at(cls, loaded: SharedGame, caller: Caller, content: Content) -> "Position":
        """Returns the position of a loaded game.

        Raises GameNotFound, TokenVoid, SpectatorsNotAllowed.
        """
        record = loaded.record
        position = cls(
            revision=record.game.revision,
            etag=record.etag,
            caller=caller,
            viewer=part_in(record, caller),
            content=content,
            loaded=loaded,
            spectators=record.game.settings.spectators,
            has_started=record.game.round is not None,
            turn_revision=loaded.turn_revision,
            draft_number=loaded.draft_number,
            record=record,
            presence=loaded.presence,
        )
        position._check_allowed()
        return position

    def _check_allowed(self) -> None:
        """Raises SpectatorsNotAllowed if the watcher may not see the game."""
        if self.viewer is None and self.has_started and self.spectators is Spectators.OFF:
            raise SpectatorsNotAllowed

    def skip_to(self, loaded: SharedGame) -> None:
        """Moves to a loaded game. Raises TokenVoid, SpectatorsNotAllowed."""
        self.loaded, self.record = loaded, loaded.record
        self.revision, self.etag = loaded.record.game.revision, loaded.record.etag
        self.turn_revision, self.draft_number = loaded.turn_revision, loaded.draft_number
        self.presence = loaded.presence
        self.has_started = loaded.record.game.round is not None
        self.viewer = part_in(loaded.record, self.caller)
        self._check_allowed()

    def go_back(self, revision: int, etag: str) -> None:
        """Moves to the revision from which a watcher resumes."""
        if revision != self.revision:
            self.record = None
        self.revision, self.etag = revision, etag
        self.draft_number, self.presence = 0, None

    def advance(self, change: SharedChange, presence: Presences | None) -> Iterator[Update]:
        """Moves past a change and yields its updates.

        Raises TokenVoid after a change that has made the watcher's token void, SpectatorsNotAllowed.

        Args:
            change: The next change.
            presence: The presence of the players, for the game after the change.
        """
        view = change.view_for(self.viewer)
        self.revision, self.etag = change.revision, change.etag
        if change.turn_revision is not None:
            self.turn_revision, self.draft_number = change.turn_revision, 0
        self.has_started = self.has_started or change.starts_a_round
        self._check_allowed()
        if Content.CHANGES in self.content:
            yield Change(view, change.notified_at)
        if self.viewer in change.revoked and change.revision > self.loaded.record.game.revision:
            raise TokenVoid
        if Content.GAMES in self.content:
            after = self._after(change, presence)
            if after is not None:
                self.record, self.presence, self.draft_number = after.record, after.presence, after.draft_number
                notified_at = None if Content.CHANGES in self.content else change.notified_at
                is_first, self.has_game = not self.has_game, True
                yield GameAfter(after.view_for(self.viewer), notified_at, is_first)

    def see_presence(self, presence: Presences | None) -> list[PresenceChange]:
        """Returns what is new to the watcher in the presence of the players."""
        before, self.presence = self.presence, presence
        return [PresenceChange(seat) for seat in changed_presence(before, presence)]

    def _after(self, change: SharedChange, presence: Presences | None) -> SharedGame | None:
        """Returns the game after the next change; None if it is unknown because it is older than the loaded one."""
        if self.record is not None:
            return change.after(self.record, presence)
        loaded = self.loaded.record
        if change.revision < loaded.game.revision:
            return None
        if change.etag != loaded.etag:
            raise HistoryUnavailable(0, 0, OTHER_HISTORY)
        return self.loaded


class Watcher:
    """Finds the next updates of one watcher: `begin` once, then `step` until `is_done`.

    Each step looks for changes first, so a change while the watcher takes updates is not missed.

    Args:
        feed: The game's feed.
        position: Where the watcher is: at the current game.
        stopping: Set when the server stops.
        closing_delay_ms: Returns how long a watcher of a stopping server waits before it reconnects.
        until_rematch: Whether the watch ends with the announcement of the rematch instead of the game.

    Attributes:
        is_done: Whether the watch ends.
    """

    def __init__(
        self,
        feed: Feed,
        position: Position,
        stopping: asyncio.Event,
        closing_delay_ms: Callable[[], int],
        until_rematch: bool,
    ) -> None:
        self._feed = feed
        self._position = position
        self._stopping = stopping
        self._closing_delay_ms = closing_delay_ms
        self._until_rematch = until_rematch
        self._known_revision = position.revision
        """A revision that the game has had."""
        self._is_live = True
        """Whether the watcher has had every change, so it may skip some if it falls behind later."""
        self._is_over = False
        """Whether the last change has been sent."""
        self.is_done = False

    async def begin(self, after_revision: int, etag: str) -> Iterable[Update]:
        """Returns the snapshot, or moves to the revision from which the watcher resumes."""
        self._is_live = self._begins_with_snapshot(after_revision, etag)
        if not self._is_live:
            await self._resume(after_revision, etag)
        self._is_over = self._is_last()
        return [self._snapshot()] if self._is_live else []

    async def step(self) -> Iterable[Update]:
        """Returns the next updates, to be read before the next step. Waits if there are none, and may return none."""
        changes = await self._changes()
        if changes is None:
            return [await self._skip_ahead()]
        if changes:
            return self._advance(changes)
        if self._is_over:
            self.is_done = True
            return []
        if not self._is_live:
            self._is_live = True
            return [Heartbeat(self._position.revision)]  # confirms to a resuming watcher that the stream works
        return self._see_presence() or self._close() or self._draft() or await self._wait()

    def _begins_with_snapshot(self, after_revision: int, etag: str) -> bool:
        """Returns whether the stream begins with a snapshot: for a new watcher, or one of games at another revision."""
        position = self._position
        is_current = (after_revision, etag) == (position.revision, position.etag)
        return not after_revision or (position.content is Content.GAMES and not is_current)

    def _snapshot(self) -> Snapshot:
        self._position.has_game = True
        return Snapshot(self._position.loaded.view_for(self._position.viewer))

    def _is_last(self) -> bool:
        """Returns whether the position is at the last change to send, as far as the loaded game shows."""
        game, state = self._position.loaded.record.game, self._position.loaded.record.state
        is_over = bool(game.rematch_game_id) if self._until_rematch else state.is_over
        return is_over and game.revision == self._position.revision

    async def _resume(self, revision: int, etag: str) -> None:
        """Moves to the revision that the caller resumes from. Raises HistoryUnavailable."""
        newest = self._position.revision
        found = self._position.etag if revision == newest else self._feed.etag_at(revision)
        if found is None:
            page = await self._feed.read(revision)
            if page.revision != revision:
                raise HistoryUnavailable(*await self._feed.bounds())
            found = page.etag
        if etag != found:
            raise HistoryUnavailable(*await self._feed.bounds(), OTHER_HISTORY)
        self._position.go_back(revision, found)

    async def _changes(self) -> list[SharedChange] | None:
        """Returns the changes after the position, at most LAG + 1; None if a live watcher is too far behind.

        A resuming watcher gets every change. Raises HistoryUnavailable if the stream no longer has them.
        """
        position = self._position
        recent = self._feed.recent_after(position.revision, position.etag)
        is_up_to_date = recent is not None and position.revision >= self._known_revision
        if recent or (is_up_to_date and not self._stopping.is_set()):
            return recent
        page = await self._feed.read(position.revision)
        if page.revision != position.revision:
            await self._check_may_skip()
            return None
        if page.etag != position.etag:
            raise HistoryUnavailable(*await self._feed.bounds(), OTHER_HISTORY)
        return None if self._is_live and len(page.changes) > LAG else page.changes

    async def _check_may_skip(self) -> None:
        """Raises GameNotFound, or HistoryUnavailable unless a live watcher skips changes that the stream has lost."""
        oldest, newest = await self._feed.bounds()
        if not newest:
            raise GameNotFound
        if not self._is_live or self._position.revision >= oldest:
            raise HistoryUnavailable(oldest, newest)

    async def _skip_ahead(self) -> Snapshot:
        """Moves a watcher who fell behind to the current game."""
        snapshot = await self._feed.snapshot()
        self._position.skip_to(snapshot)
        await self._feed.turn()
        self._feed.start_at(snapshot.record)
        self._is_over = self._is_last()
        return self._snapshot()

    def _advance(self, changes: list[SharedChange]) -> Iterator[Update]:
        """Moves past changes, each when its updates are taken, and yields the updates."""
        for change in changes[:LAG]:
            yield from self._position.advance(change, self._feed.presence)
            is_end = change.announces_rematch or (change.ends_the_game and not self._until_rematch)
            self._is_over = self._is_over or is_end
        if len(changes) <= LAG:
            self._is_live = True
            self.is_done = self._is_over

    def _see_presence(self) -> list[PresenceChange]:
        return self._position.see_presence(self._feed.presence)

    def _close(self) -> list[Closing]:
        """Returns the last update of a stopping server."""
        if not self._stopping.is_set():
            return []
        self.is_done = True
        return [Closing(self._position.revision, self._position.etag, self._closing_delay_ms())]

    def _draft(self) -> list[LiveDraft]:
        """Returns the draft of the turn in progress if the watcher has not got it yet."""
        draft, position = self._feed.draft, self._position
        if draft is None or draft.view.turn_revision != position.turn_revision:
            return []
        if draft.view.number <= position.draft_number:
            return []
        position.draft_number = draft.view.number
        return [LiveDraft(draft)]

    async def _wait(self) -> list[Heartbeat]:
        """Waits until there may be news, or returns the heartbeat that is due."""
        return [] if await self._feed.wait() else [Heartbeat(self._position.revision)]
