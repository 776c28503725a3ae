"""Reads of games: as a caller sees them, at a revision, their changes and records, lists of public ones."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from engine.game import Aborted, Finished
from engine.record import GameRecord
from engine.room_settings import RacksShown
from engine.sight import is_open_to_spectators, sees_drafts
from service.app.changes import ChangeLoop
from service.app.game_lists import GameFilter, list_public_games
from service.app.history import Archive, History, OffLoopRunner, exported, record_at
from service.app.identity import TICKET_MS, Caller, WatchTicket, holder_of, member_in, viewer_in, watch_ticket
from service.app.own_data import OwnData, SeatOf, own_data
from service.app.presence import Presence, presence_in
from service.app.views import (
    ChangeView,
    GameSnapshotView,
    SeatPresence,
    change_view,
    snapshot_view,
)
from service.errors import (
    Fault,
    GameNotFound,
    GameNotOver,
    HistoryUnavailable,
    JoinCodeUnknown,
    RecordHidden,
    StoredFormatUnknown,
    StoreUnavailable,
    TokenVoid,
)
from service.model.change import Loaded
from service.model.record import Record, code_name
from service.runtime.join_tickets import JoinTicket
from service.storage.store import Store

OwnGame: TypeAlias = tuple[str, GameSnapshotView | Fault]
"""The id of a game of the caller, and the caller's view of it, or why there is none."""
OWN_GAMES_AT_ONCE: Final = 4
"""Games that one list of own games reads concurrently: half of the archive's reads, which anyone can cause."""


class Games:
    """The games in a store, and in the archive, for readers.

    Args:
        store: The store.
        changes: Applies what is due before a read.
        presence: Has the callers with a seat marked as seen.
        archive: Has finished games that the store no longer has; None: finished games are not archived.
    """

    def __init__(self, store: Store, changes: ChangeLoop, presence: Presence, archive: Archive | None = None) -> None:
        self._store = store
        self._changes = changes
        self.presence = presence
        self._archive = archive

    async def game_of_code(self, join_code: str, key: str) -> str:
        """Returns the id of the game of a key that has or had a join code. Raises JoinCodeUnknown.

        Joining refuses a code that the game no longer has, unless it repeats a request from before.
        """
        game_id = await self._store.names.find(code_name(join_code))
        record = (await self._store.games.load(game_id)).record if game_id else None
        if record is None or record.listing.key != key:
            raise JoinCodeUnknown
        return game_id

    async def get_game(self, game_id: str, caller: Caller) -> GameSnapshotView:
        """Returns the caller's view of a game, with draft and presence."""
        loaded, presence = await self.load_with_presence(game_id, caller)
        if loaded.record is None:
            return await self._archived_game(game_id, caller)
        record, viewer = self._record_for(loaded, caller)
        draft = await self._store.drafts.latest(game_id) if sees_drafts(record.game, viewer) else None
        return snapshot_view(record, viewer, loaded.now_ms, draft, presence)

    async def _archived_game(self, game_id: str, caller: Caller) -> GameSnapshotView:
        loaded, _ = await self._load_with_history(game_id, caller)
        record, viewer = self._record_for(loaded, caller)
        return snapshot_view(record, viewer, loaded.now_ms)

    async def own_games(self, seats: Sequence[tuple[str, Caller]]) -> list[OwnGame]:
        """Returns each caller's view of a game as it is stored, without what is due, draft and presence.

        A fault says why there is none: GameNotFound, TokenVoid, StoredFormatUnknown, or StoreUnavailable if the archive
        does not answer. Once it has not answered, it is not asked for the other games. Each game is read once.
        Nobody counts as seen by this call.

        Args:
            seats: The game of each seat, and the caller with its token.
        """
        found = await self._own_games([game_id for game_id, _ in seats])
        return [(game_id, _listed(found[game_id], caller)) for game_id, caller in seats]

    async def games_of(self, key: str, player_ref: str) -> Sequence[str]:
        """Returns the ids of the last games of a key in which a player may have a seat, newest first."""
        return await self._store.lists.games_of(key, player_ref)

    async def player_games(self, key: str, player_ref: str, game_ids: Sequence[str]) -> list[OwnGame]:
        """Returns those games of a key in which a player has a seat, or a reserved one, as the player sees them.

        They are as of `own_games`; games that cannot be read are left out.
        """
        found = await self._own_games(game_ids)
        views = ((game_id, _of_player(one, key, player_ref)) for game_id, one in found.items())
        return [(game_id, view) for game_id, view in views if view]

    async def check_time(self, ticket: JoinTicket) -> None:
        """Raises TicketExpired, and TicketMalformed for an expiry too far in the future."""
        ticket.check_time(await self._store.now_ms())

    async def _own_games(self, game_ids: Sequence[str]) -> dict[str, Loaded | Fault]:
        """Returns games of a list of own games, each read once."""
        found: dict[str, Loaded | Fault] = {}
        game_ids = list(dict.fromkeys(game_ids))
        for first in range(0, len(game_ids), OWN_GAMES_AT_ONCE):
            some = game_ids[first : first + OWN_GAMES_AT_ONCE]
            is_archive_down = any(isinstance(one, StoreUnavailable) for one in found.values())
            read = (self._own_game(game_id, is_archive_down=is_archive_down) for game_id in some)
            found.update(zip(some, await asyncio.gather(*read), strict=True))
        return found

    async def _own_game(self, game_id: str, *, is_archive_down: bool) -> Loaded | Fault:
        """Returns a game from the store or the archive. Raises StoreUnavailable of the store only."""
        try:
            loaded = await self._store.games.load(game_id)
        except StoredFormatUnknown as fault:
            return fault
        if loaded.record is None and is_archive_down:
            return StoreUnavailable()
        try:
            return (await self._or_archived(game_id, loaded))[0]
        except (StoredFormatUnknown, StoreUnavailable) as fault:
            return fault

    async def own_data(self, game_id: str, seat_of: SeatOf, after: int) -> OwnData:
        """Returns a page of what is stored of a person in a game.

        Raises what `seat_of` raises, GameNotFound, StoredFormatUnknown, StoreUnavailable.
        """
        loaded, history = await self._or_archived(game_id, await self._store.games.load(game_id))
        if loaded.record is None:
            raise GameNotFound
        return await own_data(loaded.record, loaded.now_ms, history, seat_of(loaded.record), after)

    async def game_at(self, game_id: str, caller: Caller, revision: int, runner: OffLoopRunner) -> GameSnapshotView:
        """Returns the caller's view of a game at a revision, without draft and presence. Raises HistoryUnavailable."""
        loaded, history = await self._load_with_history(game_id, caller)
        record, viewer = self._record_for(loaded, caller)
        return snapshot_view(await record_at(history, record, revision, runner), viewer, loaded.now_ms)

    async def _load_with_history(self, game_id: str, caller: Caller) -> tuple[Loaded, History]:
        """Returns a game for readers of its history, and the history: from the store, else from the archive."""
        return await self._or_archived(game_id, await self._changes.load(game_id, caller))

    async def _or_archived(self, game_id: str, loaded: Loaded) -> tuple[Loaded, History]:
        if loaded.record is None and self._archive:
            archived = await self._archive.read(game_id)
            if archived:
                return replace(loaded, record=archived.record), archived
        return loaded, self._store.streams

    async def export_game(self, game_id: str, caller: Caller, runner: OffLoopRunner) -> GameRecord:
        """Returns the record of a game that has ended. Raises GameNotOver, RecordHidden, HistoryUnavailable."""
        loaded, history = await self._load_with_history(game_id, caller)
        record, _ = self._record_for(loaded, caller)
        if not record.has_record:
            raise GameNotOver
        if record.game.settings.racks_shown is RacksShown.HIDDEN:
            raise RecordHidden
        return await exported(history, record, runner)

    async def load_with_presence(
        self, game_id: str, caller: Caller | None = None
    ) -> tuple[Loaded, Mapping[int, SeatPresence] | None]:
        """Returns a game for readers (ChangeLoop.load), and the presence of its players, read together."""
        loaded, seen = await asyncio.gather(self._changes.load(game_id, caller), self.presence.read(game_id))
        return loaded, presence_in(loaded, seen)

    def _record_for(self, loaded: Loaded, caller: Caller) -> tuple[Record, int | None]:
        """Returns a loaded game, and whose view the caller gets. Raises GameNotFound."""
        if loaded.record is None:
            raise GameNotFound
        viewer = viewer_in(loaded.record, caller)
        self.presence.seen(loaded.record.game_id, viewer)
        return loaded.record, viewer

    async def watch_ticket(self, game_id: str, caller: Caller) -> WatchTicket:
        """Returns a ticket that stands for the caller's token. Raises GameNotFound, TokenVoid, NotAPlayer."""
        loaded = await self._changes.load(game_id, caller)
        if loaded.record is None:
            raise GameNotFound
        self.presence.seen(game_id, member_in(loaded.record, caller))
        return watch_ticket(game_id, caller.digest or b"", loaded.now_ms + TICKET_MS)

    async def holder(self, game_id: str, ticket: WatchTicket, caller: Caller) -> Caller | None:
        """Returns the caller for whom a ticket stands; None if it is void. Raises GameNotFound."""
        loaded = await self._changes.load(game_id, caller)
        if loaded.record is None:
            raise GameNotFound
        found = holder_of(ticket, loaded.record)
        is_valid = found is not None and loaded.now_ms < ticket.until_ms
        return replace(caller, digest=found) if is_valid else None

    async def list_games(self, wanted: GameFilter, cursor: str, limit: int) -> tuple[tuple[GameSnapshotView, ...], str]:
        """Returns a spectator's views of public games, newest first, and the next cursor.

        A page omits games that show nothing to spectators.
        """
        records, following = await list_public_games(self._store, wanted, cursor, limit)
        return tuple(
            snapshot_view(record, None, record.updated_ms) for record in records if is_open_to_spectators(record.game)
        ), following

    async def list_changes(
        self, game_id: str, caller: Caller, after_revision: int, limit: int
    ) -> tuple[tuple[ChangeView, ...], int]:
        """Returns a game's changes after a revision (0: the oldest kept), and the revision to go on after; 0: the end.

        Raises HistoryUnavailable if the game has not had the revision, or the changes after it are no longer kept.
        """
        loaded, history = await self._load_with_history(game_id, caller)
        _, viewer = self._record_for(loaded, caller)
        entries = await history.entries(game_id, after_revision + 1, limit + 1)
        if after_revision and (not entries or entries[0].revision != after_revision + 1):
            oldest, newest = await history.bounds(game_id)
            if entries or not oldest - 1 <= after_revision <= newest:
                raise HistoryUnavailable(oldest, newest)
        following = entries[limit - 1].revision if len(entries) > limit else 0
        return tuple(change_view(entry, viewer) for entry in entries[:limit]), following


def seat_of_player(record: Record, key: str, player_ref: str) -> int:
    """Returns the seat of a player in a game of a key that is over. Raises GameNotFound, GameNotOver."""
    seat = next((one.seat for one in record.game.players if record.operator_data.ref_of(one.seat) == player_ref), 0)
    if record.listing.key != key or not seat:
        raise GameNotFound
    if not isinstance(record.game.phase, Finished | Aborted):
        raise GameNotOver
    return seat


def _of_player(found: Loaded | Fault, key: str, player_ref: str) -> GameSnapshotView | None:
    """Returns a player's view of a game; None for one that has no seat for the player, or cannot be read."""
    record = None if isinstance(found, Fault) else found.record
    if isinstance(found, Fault) or record is None or record.listing.key != key:
        return None
    seats = [*(player.seat for player in record.game.players), *(one.seat for one in record.game.reserved)]
    seat = next((seat for seat in seats if record.operator_data.ref_of(seat) == player_ref), 0)
    reserved = {one.seat for one in record.game.reserved}
    return snapshot_view(record, None if seat in reserved else seat, found.now_ms) if seat else None


def _listed(found: Loaded | Fault, caller: Caller) -> GameSnapshotView | Fault:
    """Returns the caller's view of a game that was found, or why there is none."""
    if isinstance(found, Fault):
        return found
    if found.record is None:
        return GameNotFound()
    try:
        return snapshot_view(found.record, viewer_in(found.record, caller), found.now_ms)
    except (GameNotFound, TokenVoid) as fault:
        return fault
