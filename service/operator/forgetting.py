"""Forgetting a player: a person's name and reference are removed from all games and their histories.

Games of the store come first, then those of the archive, into which games move from the store. An archived game that
the store still has is archived again from there, so both have the same history.

A changed history has new etags from the first changed change on, so watches and requests that know the old ones are
refused (HISTORY_UNAVAILABLE, STALE_STATE), as after any other loss of history, and clients read the game again. The
nonces of changed changes are new, so a guessed name cannot be checked against an old etag.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from engine.events import Event, GameCreated, PlayerJoined, SeatTakenOver
from engine.game import Game
from engine.seats import ReservedSeat
from service.app.changes import ATTEMPTS, NONCE_BYTES
from service.app.names import are_alike
from service.errors import Fault, GameNotFound, StaleState, StoredFormatUnknown
from service.model.change import NO_ETAG, Committed, StoredChange, lineage
from service.model.record import GameState, PlayerRef, Record
from service.operator.archive.archived_game import ArchivedGame, LineageBroken, archived, collect
from service.operator.archive.eraser import ArchiveEraser
from service.operator.archive.sink import WriteResult
from service.storage.store import ListPage, Store, read_in_pages
from service.storage.stored_events import decode_entry, encode_change

GAMES_AT_ONCE: Final = 100
"""Games that are read at a time."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The progress.

    Attributes:
        games_read: How many games were read.
        game_ids: The games that were changed since the last report.
        failed_ids: The games that could not be read or changed, since the last report.
        is_done: Whether all games were read.
    """

    games_read: int
    game_ids: tuple[str, ...]
    failed_ids: tuple[str, ...] = ()
    is_done: bool = False


async def forget_player(store: Store, archive: ArchiveEraser | None, player_ref: str) -> AsyncIterator[Forgotten]:
    """Removes a person's name and reference from all listed and archived games, and yields the progress.

    Raises StaleState at the end if other calls always changed a game first, StoredFormatUnknown if a game could not be
    read or rewritten.
    """
    forgetting = _Forgetting(store, archive, player_ref)
    reported, reported_failures = set[str](), set[str]()
    async for game_ids in forgetting.forgotten():
        found = tuple(game_id for game_id in game_ids if game_id not in reported)
        failed = tuple(game_id for game_id in forgetting.failures if game_id not in reported_failures)
        reported.update(found)
        reported_failures.update(failed)
        yield Forgotten(forgetting.games_read, found, failed)
    await store.lists.forget_player(player_ref)
    if forgetting.failures:
        raise min(forgetting.failures.values(), key=lambda error: isinstance(error, StaleState))
    yield Forgotten(forgetting.games_read, (), is_done=True)


class _Forgetting:
    """The removal of a person's name and reference from all games.

    Attributes:
        games_read: How many games were read so far.
        failures: By id of the games that could not be read or changed: why.
    """

    def __init__(self, store: Store, archive: ArchiveEraser | None, player_ref: str) -> None:
        self._store = store
        self._archive = archive
        self._player_ref = player_ref
        self.games_read = 0
        self.failures: dict[str, Fault] = {}

    async def forgotten(self) -> AsyncIterator[Sequence[str]]:
        """Yields the ids of changed games, after each page of stored games and after each archived game."""
        async for game_ids in self._in_store():
            yield game_ids
        for game_id in await self._archive.games_of(self._player_ref) if self._archive else ():
            self.games_read += 1
            yield await self._tried([game_id], self._forget_archived)

    async def _in_store(self) -> AsyncIterator[Sequence[str]]:
        """Removes the person from listed games.

        It reads the games again until none has the reference, because a finished game that still has it may get a
        rematch in a state that was read before. Only the first pass counts games.
        """
        is_first, is_found = True, True
        while is_found:
            is_found = False
            async for page in pages_of(self._store):
                self.games_read += len(page.games) if is_first else 0
                for game_id in page.unreadable:
                    self._fail(game_id, StoredFormatUnknown())
                found = [record.game_id for record in page.games if _knows(record, self._player_ref)]
                forgotten = await self._tried(found, self._forget_stored)
                is_found = is_found or bool(forgotten)
                yield forgotten
            is_first = False

    async def _forget_stored(self, game_id: str) -> bool:
        return await forget_in_game(self._store, game_id, self._player_ref)

    async def _forget_archived(self, game_id: str) -> bool:
        assert self._archive is not None, "the game was found there"  # noqa: S101 - for the type
        return await forget_in_archived(self._store, self._archive, game_id, self._player_ref)

    async def _tried(self, game_ids: Sequence[str], forget: Callable[[str], Awaitable[bool]]) -> Sequence[str]:
        """Returns the ids of the games that had the person. It does not try games again that have failed."""
        forgotten: list[str] = []
        for game_id in game_ids:
            try:
                if game_id not in self.failures and await forget(game_id):
                    forgotten.append(game_id)
            except (StaleState, StoredFormatUnknown) as error:
                self._fail(game_id, error)
        return forgotten

    def _fail(self, game_id: str, error: Fault) -> None:
        if game_id not in self.failures:
            _log.error("player cannot be forgotten in a game", game_id=game_id, error=type(error).__name__)
            self.failures[game_id] = error


async def pages_of(store: Store) -> AsyncIterator[ListPage]:
    """Yields pages of all games. A game that changes its state meanwhile keeps its place among them."""
    cursor, is_last = "", False
    while not is_last:
        page = await store.lists.page(GameState, cursor, GAMES_AT_ONCE)
        yield page
        cursor, is_last = page.cursor, not page.cursor


async def forget_in_archived(store: Store, archive: ArchiveEraser, game_id: str, player_ref: str) -> bool:
    """Removes a person's name and reference from an archived game; returns False if it does not have them.

    Raises StoredFormatUnknown, and StaleState if others always change it first.
    """
    is_found = await _forget_archived(store, archive, game_id, _Whom(player_ref))
    await archive.unlist(player_ref, game_id)
    return is_found


async def _forget_archived(store: Store, archive: ArchiveEraser, game_id: str, whom: "_Whom") -> bool:
    revision = 0
    for _ in range(ATTEMPTS):
        before = await archive.read(game_id)
        if before is None or not whom.is_in(before.record):
            return False
        revision = before.record.game.revision
        try:
            after = await _without(store, before, whom)
        except LineageBroken:
            continue  # it has changed meanwhile
        if await archive.write(after) is WriteResult.WRITTEN:
            return True
    raise StaleState(revision)


async def _without(store: Store, before: ArchivedGame, whom: "_Whom") -> ArchivedGame:
    """Returns an archived game without a person's name and reference: the store's, if it still has the game."""
    await _forget(store, before.record.game_id, whom)
    record = (await store.games.load(before.record.game_id)).record
    is_same = record is not None and record.created_ms == before.record.created_ms
    if record and is_same and record.has_record:
        return await collect(store, record)
    changes = [*before.by_revision.values()]
    return archived(*await asyncio.to_thread(_rewritten, before.record, changes, whom))


async def forget_in_game(store: Store, game_id: str, player_ref: str) -> bool:
    """Removes a person's name and reference from a game; returns False if it does not have them.

    Raises StoredFormatUnknown, also if its last change is not stored, and StaleState if others always change it first.
    """
    return await _forget(store, game_id, _Whom(player_ref))


async def forget_seat(
    store: Store, archive: ArchiveEraser | None, game_id: str, seat_of: Callable[[Record], int]
) -> str:
    """Removes the name and the reference of a seat's owner from a game; returns the name in their place.

    Raises GameNotFound, what `seat_of` raises, and what forget_in_game raises.

    Args:
        store: The store.
        archive: The archive, if there is one.
        game_id: The game.
        seat_of: Returns the caller's seat.
    """
    stored = (await store.games.load(game_id)).record
    before = await archive.read(game_id) if archive and (stored is None or stored.has_record) else None
    record = stored or (before.record if before else None)
    if record is None:
        raise GameNotFound
    whom = _Whom(seat=seat_of(record), seat_of=seat_of)
    is_changed = stored is not None and await _forget(store, game_id, whom)
    if archive and before and before.record.created_ms == record.created_ms:
        await _forget_archived(store, archive, game_id, whom)
    if archive and is_changed and record.has_record:
        await store.outbox.append(game_id)  # a server may be archiving the game as it read it before
    return _new_name(record.game, whom.seat)


@dataclass(frozen=True, slots=True)
class _Whom:
    """Who is forgotten: everyone with a reference, or the owner of a seat.

    Attributes:
        player_ref: The reference; "" for the owner of a seat.
        seat: The seat; 0 for a reference.
        seat_of: Checks again that the caller still owns the seat.
    """

    player_ref: str = ""
    seat: int = 0
    seat_of: Callable[[Record], int] | None = None

    def is_in(self, record: Record) -> bool:
        """Returns whether a game has something of the person."""
        if not self.seat:
            return _knows(record, self.player_ref)
        if self.seat_of and self.seat_of(record) != self.seat:
            return False
        is_named = _name_of(record.game, self.seat) != _new_name(record.game, self.seat)
        return is_named or bool(record.operator_data.ref_of(self.seat))

    def arrivals(self, record: Record, changes: Sequence[StoredChange]) -> list[PlayerRef]:
        """Returns the person's arrivals, those without a reference too, which have an empty one."""
        if not self.seat:
            return refs_of(record, self.player_ref)
        known = [ref for ref in record.operator_data.player_refs if ref.seat == self.seat and not ref.has_left]
        revisions = {ref.revision for ref in known}
        name, last, reserved = _name_of(record.game, self.seat), 0, 0
        for stored in changes:
            for event in decode_entry(stored.change, stored.etag).events:
                match event:
                    case PlayerJoined(seat) | SeatTakenOver(seat) if seat == self.seat:
                        last = stored.revision
                    case GameCreated(reserved=seats) if ReservedSeat(self.seat, name) in seats:
                        reserved = stored.revision
                    case _:
                        pass
        return [*known, *(PlayerRef(at, self.seat, "") for at in sorted({last, reserved} - revisions))]

    def is_kicked(self, player_ref: str) -> bool:
        """Returns whether somebody who was kicked is the person."""
        return bool(self.player_ref) and player_ref == self.player_ref


async def _forget(store: Store, game_id: str, whom: _Whom) -> bool:
    revision, broken_etag = 0, ""
    for _ in range(ATTEMPTS):
        record = (await store.games.load(game_id)).record
        if record is None or not whom.is_in(record):
            return False
        revision = record.game.revision
        changes = await read_in_pages(store.streams.stored_changes, game_id, revision)
        if changes and changes[-1].etag != record.etag:
            if record.etag == broken_etag:
                raise StoredFormatUnknown
            broken_etag = record.etag  # it may have changed between the two reads
            continue
        after, rewritten = await asyncio.to_thread(_rewritten, record, changes, whom)
        stream = [(change.change, change.etag) for change in rewritten]
        if isinstance(await store.games.rewrite(record.etag, after, stream), Committed):
            return True
    raise StaleState(revision)


def _knows(record: Record, player_ref: str) -> bool:
    """Returns whether a game has a person's reference, also as that of one who was kicked."""
    return bool(refs_of(record, player_ref)) or any(one.player_ref == player_ref for one in record.kicked)


def refs_of(record: Record, player_ref: str) -> list[PlayerRef]:
    """Returns the references of a person in a game, also as that of one who has left it."""
    return [ref for ref in record.operator_data.player_refs if ref.text == player_ref]


def _rewritten(record: Record, changes: Sequence[StoredChange], whom: _Whom) -> tuple[Record, list[StoredChange]]:
    """Returns a game and its changes without a person's name and reference.

    The game has another etag even if the person's arrival is no longer stored: requests that were decided on the old
    name must not be stored. The last change gets a new nonce then.
    """
    refs = whom.arrivals(record, changes)
    joined = {(ref.revision, ref.seat): _new_name(record.game, ref.seat) for ref in refs}
    rewritten: list[StoredChange] = []
    is_changed = False
    for stored in changes:
        entry = decode_entry(stored.change, stored.etag)
        events = tuple(_renamed(event, entry.revision, joined) for event in entry.events)
        is_last = entry.revision == record.game.revision
        change = stored.change
        if events != entry.events or (is_last and not is_changed):
            is_changed = True
            change = encode_change(entry.revision, entry.time_ms, secrets.token_bytes(NONCE_BYTES), events, entry.cause)
        etag = lineage(rewritten[-1].etag if rewritten else NO_ETAG, change) if is_changed else stored.etag
        rewritten.append(StoredChange(entry.revision, etag, change))
    names = {ref.seat: joined[ref.revision, ref.seat] for ref in refs if not ref.has_left}
    players = tuple(replace(player, name=names.get(player.seat, player.name)) for player in record.game.players)
    operator = replace(
        record.operator_data, player_refs=tuple(ref for ref in record.operator_data.player_refs if ref not in refs)
    )
    etag = rewritten[-1].etag if rewritten else lineage(record.etag, secrets.token_bytes(NONCE_BYTES))
    kicked = tuple(one for one in record.kicked if not whom.is_kicked(one.player_ref))
    game = replace(record.game, players=players, reserved=_reserved(record.game.reserved, names))
    return replace(record, game=game, etag=etag, operator_data=operator, kicked=kicked), rewritten


def _renamed(event: Event, revision: int, names: Mapping[tuple[int, int], str]) -> Event:
    """Returns an event with new names, by revision and seat of the arrival or the reservation."""
    match event:
        case PlayerJoined(seat, name) | SeatTakenOver(seat, name):
            return replace(event, name=names.get((revision, seat), name))
        case GameCreated(reserved=reserved):
            own = {seat: name for (at, seat), name in names.items() if at == revision}
            return replace(event, reserved=_reserved(reserved, own))
        case _:
            return event


def _reserved(reserved: tuple[ReservedSeat, ...], names: Mapping[int, str]) -> tuple[ReservedSeat, ...]:
    return tuple(replace(one, name=names.get(one.seat, one.name)) for one in reserved)


def _name_of(game: Game, seat: int) -> str:
    return next((player.name for player in game.players if player.seat == seat), "")


def _new_name(game: Game, seat: int) -> str:
    """Returns a name that is unlike those of the other players."""
    others = [player.name for player in game.players if player.seat != seat]
    name = f"Player {seat}"
    while any(are_alike(name, other) for other in others):
        name += "*"
    return name
