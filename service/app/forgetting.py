"""Forgetting a player: a person's name and reference are removed from all games and their histories.

Games of the store come first, then those of the archive, into which games move from the store. An archived game that
the store still has is archived again from there, so both have the same history.

A changed history has new etags from the first changed change on, so watches and requests that know the old ones are
refused with ETAG_MISMATCH, as after any other loss of history, and clients read the game again. The nonces of changed
changes are new, so nothing tells whether a guessed name was the old one.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from engine.events import Event, PlayerJoined
from engine.game import Game
from service.app.changes import ATTEMPTS, NONCE_BYTES
from service.app.names import are_alike
from service.archive.archived_game import ArchivedGame, LineageBroken, archived, collect
from service.archive.eraser import ArchiveEraser
from service.archive.sink import WriteResult
from service.errors import StaleState, StoredFormatUnknown
from service.storage.base import (
    NO_ETAG,
    Committed,
    GameState,
    GameStore,
    PlayerRef,
    Record,
    StoredChange,
    lineage,
    read_in_pages,
)
from service.storage.stored_events import decode_entry, encode_change

ORDER: Final = (
    GameState.LOBBY,
    GameState.PLAYING,
    GameState.ROUND_OVER,
    GameState.PLAYING,  # again: a game may go back to it after a round
    GameState.FINISHED,
    GameState.ABORTED,
)
"""The order in which a pass reads games: the one in which games move, so that none is missed."""
GAMES_AT_ONCE: Final = 100
"""Games that are read at a time."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The progress: how many games were read, and those that were changed since the last report."""

    games_read: int
    game_ids: tuple[str, ...]
    is_done: bool = False


async def forget_player(store: GameStore, archive: ArchiveEraser | None, player_ref: str) -> AsyncIterator[Forgotten]:
    """Removes a person's name and reference from all listed and archived games, and yields the progress.

    Raises StoredFormatUnknown at the end if it could not rewrite some games, whose ids it logs.
    """
    games_read, reported, failed = 0, set[str](), set[str]()
    async for progress in _forget_in_store(store, player_ref, failed):
        games_read = progress.games_read
        reported.update(progress.game_ids)
        yield progress
    if archive:
        async for progress in _forget_in_archive(store, archive, player_ref, games_read, failed):
            games_read = progress.games_read
            new_ids = tuple(game_id for game_id in progress.game_ids if game_id not in reported)
            yield replace(progress, game_ids=new_ids)
    if failed:
        raise StoredFormatUnknown
    yield Forgotten(games_read, (), is_done=True)


async def _forget_in_store(store: GameStore, player_ref: str, failed: set[str]) -> AsyncIterator[Forgotten]:
    """Removes a person's name and reference from all listed games, and yields the progress after each page.

    It adds the ids of games that it could not rewrite to `failed`, and does not try these again.

    It reads the games again until none has the reference, because a finished game that still has it may get a rematch
    in a state that was read before. Only the first pass counts games.
    """
    games_read, is_first, is_found = 0, True, True
    while is_found:
        is_found = False
        async for records in _pages(store):
            games_read += len(records) if is_first else 0
            found = [record.game_id for record in records if _refs(record, player_ref)]
            tried = [game_id for game_id in found if game_id not in failed]
            forgotten = [id_ for id_ in tried if await _tried(forget_in_game(store, id_, player_ref), id_, failed)]
            is_found = is_found or bool(forgotten)
            yield Forgotten(games_read, tuple(forgotten))
        is_first = False


async def _pages(store: GameStore) -> AsyncIterator[Sequence[Record]]:
    """Yields the pages of all lists of games."""
    for state in ORDER:
        cursor = ""
        while True:
            records, cursor = await store.page(state, cursor, GAMES_AT_ONCE)
            yield records
            if not cursor:
                break


async def _forget_in_archive(
    store: GameStore, archive: ArchiveEraser, player_ref: str, games_read: int, failed: set[str]
) -> AsyncIterator[Forgotten]:
    """Removes a person's name and reference from all archived games, and yields the progress after each game.

    It adds the ids of games that it could not rewrite to `failed`.
    """
    for game_id in await archive.games_of(player_ref):
        games_read += 1
        is_found = await _tried(forget_in_archived(store, archive, game_id, player_ref), game_id, failed)
        yield Forgotten(games_read, (game_id,) if is_found else ())


async def _tried(forgetting: Awaitable[bool], game_id: str, failed: set[str]) -> bool:
    """Returns whether a person was removed from a game. Logs a failure and adds the game's id to `failed`."""
    try:
        return await forgetting
    except (StaleState, StoredFormatUnknown) as error:
        _log.error("player cannot be forgotten in a game", game_id=game_id, error=type(error).__name__)
        failed.add(game_id)
        return False


async def forget_in_archived(store: GameStore, archive: ArchiveEraser, game_id: str, player_ref: str) -> bool:
    """Removes a person's name and reference from an archived game; returns False if it does not have them.

    Raises StoredFormatUnknown, and StaleState if others always change it first.
    """
    revision = 0
    for _ in range(ATTEMPTS):
        before = await archive.read(game_id)
        if before is None or not _refs(before.record, player_ref):
            await archive.unlist(player_ref, game_id)
            return False
        revision = before.record.game.revision
        try:
            after = await _without(store, before, player_ref)
        except LineageBroken:
            continue  # it has changed meanwhile
        if await archive.write(after) is WriteResult.WRITTEN:
            await archive.unlist(player_ref, game_id)
            return True
    raise StaleState(revision)


async def _without(store: GameStore, before: ArchivedGame, player_ref: str) -> ArchivedGame:
    """Returns an archived game without a person's name and reference: the store's, if it still has the game."""
    await forget_in_game(store, before.record.game_id, player_ref)
    record = (await store.load(before.record.game_id)).record
    is_same = record is not None and record.created_ms == before.record.created_ms
    if record and is_same and record.state is GameState.FINISHED:
        return await collect(store, record)
    changes = [*before.stored_changes.values()]
    return archived(*await asyncio.to_thread(_rewritten, before.record, changes, player_ref))


async def forget_in_game(store: GameStore, game_id: str, player_ref: str) -> bool:
    """Removes a person's name and reference from a game; returns False if it does not have them.

    Raises StoredFormatUnknown, and StaleState if others always change it first, or its last change is not stored.
    """
    revision = 0
    for _ in range(ATTEMPTS):
        record = (await store.load(game_id)).record
        if record is None or not _refs(record, player_ref):
            return False
        revision = record.game.revision
        changes = await read_in_pages(store.stored_changes, game_id, revision)
        if changes and changes[-1].etag != record.etag:
            continue  # it has changed meanwhile
        after, rewritten = await asyncio.to_thread(_rewritten, record, changes, player_ref)
        stream = [(change.change, change.etag) for change in rewritten]
        if isinstance(await store.rewrite(record.etag, after, stream), Committed):
            return True
    raise StaleState(revision)


def _refs(record: Record, player_ref: str) -> list[PlayerRef]:
    return [ref for ref in record.operator.player_refs if ref.text == player_ref]


def _rewritten(record: Record, changes: Sequence[StoredChange], player_ref: str) -> tuple[Record, list[StoredChange]]:
    """Returns a game and its changes without a person's name and reference.

    The game has another etag even if the person's arrival is no longer stored: requests that were decided on the old
    name must not be stored. The last change gets a new nonce then.
    """
    refs = _refs(record, player_ref)
    joined = {(ref.revision, ref.seat): _new_name(record.game, ref.seat) for ref in refs}
    rewritten: list[StoredChange] = []
    is_changed = False
    for stored in changes:
        entry = decode_entry(stored.change, stored.etag)
        events = tuple(_renamed(event, joined.get((entry.revision, _seat(event)))) for event in entry.events)
        is_last = entry.revision == record.game.revision
        change = stored.change
        if events != entry.events or (is_last and not is_changed):
            is_changed = True
            change = encode_change(entry.revision, entry.time_ms, secrets.token_bytes(NONCE_BYTES), events)
        etag = lineage(rewritten[-1].etag if rewritten else NO_ETAG, change) if is_changed else stored.etag
        rewritten.append(StoredChange(entry.revision, etag, change))
    names = {ref.seat: joined[ref.revision, ref.seat] for ref in refs if not ref.has_left}
    players = tuple(replace(player, name=names.get(player.seat, player.name)) for player in record.game.players)
    operator = replace(
        record.operator, player_refs=tuple(ref for ref in record.operator.player_refs if ref not in refs)
    )
    etag = rewritten[-1].etag if rewritten else lineage(record.etag, secrets.token_bytes(NONCE_BYTES))
    return replace(record, game=replace(record.game, players=players), etag=etag, operator=operator), rewritten


def _seat(event: Event) -> int:
    return event.seat if isinstance(event, PlayerJoined) else 0


def _renamed(event: Event, name: str | None) -> Event:
    return replace(event, name=name) if isinstance(event, PlayerJoined) and name is not None else event


def _new_name(game: Game, seat: int) -> str:
    """Returns a name that is unlike those of the other players."""
    others = [player.name for player in game.players if player.seat != seat]
    name = f"Player {seat}"
    while any(are_alike(name, other) for other in others):
        name += "*"
    return name
