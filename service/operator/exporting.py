"""All that is stored of a player, for the operator: from the games of the store, then from those of the archive."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from service.app.history import History
from service.app.own_data import OwnData, departed_data, own_data
from service.errors import StoredFormatUnknown
from service.model.record import Record
from service.operator.archive.eraser import ArchiveEraser
from service.operator.forgetting import pages_of, refs_of
from service.storage.store import Store


@dataclass(frozen=True, slots=True)
class Exported:
    """A part of an export, or its progress.

    Attributes:
        games_read: How many games were read.
        data: What was found.
        failed_ids: Games that could not be read.
        is_done: Whether all games were read.
    """

    games_read: int
    data: OwnData | None = None
    failed_ids: tuple[str, ...] = ()
    is_done: bool = False


async def export_player(store: Store, archive: ArchiveEraser | None, player_ref: str) -> AsyncIterator[Exported]:
    """Yields all that is stored of a person, with the progress."""
    games_read, found = 0, set[str]()
    async for page in pages_of(store):
        games_read += len(page.games)
        yield Exported(games_read, failed_ids=page.unreadable)
        for record in page.games:
            if refs_of(record, player_ref):
                found.add(record.game_id)
                async for one in _exported(games_read, record, await store.now_ms(), store.streams, player_ref):
                    yield one
    for game_id in await archive.games_of(player_ref) if archive else ():
        games_read += 1
        try:
            archived = await archive.read(game_id) if archive and game_id not in found else None
        except StoredFormatUnknown:
            yield Exported(games_read, failed_ids=(game_id,))
            continue
        if archived:
            async for one in _exported(games_read, archived.record, await store.now_ms(), archived, player_ref):
                yield one
    yield Exported(games_read, is_done=True)


async def _exported(
    games_read: int, record: Record, now_ms: int, history: History, player_ref: str
) -> AsyncIterator[Exported]:
    """Yields what is stored of a person in a game."""
    try:
        for ref in refs_of(record, player_ref):
            if ref.has_left:
                yield Exported(games_read, await departed_data(record, history, ref))
                continue
            after, is_last = 0, False
            while not is_last:
                data = await own_data(record, now_ms, history, ref.seat, after)
                yield Exported(games_read, data)
                after, is_last = data.following, not data.following
    except StoredFormatUnknown:
        yield Exported(games_read, failed_ids=(record.game_id,))
