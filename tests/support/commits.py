"""Commits of a game in the lobby, for tests of stores."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from engine.actions import Join
from engine.melding.ruleset import Ruleset
from engine.turns import Applied, apply, create
from service.model.change import NO_ETAG, Commit, Memo, lineage
from service.model.record import Record, SeatToken
from service.storage.snapshot import FINGERPRINT_BYTES
from service.storage.store import Store
from service.storage.stored_events import encode_change
from support.harness import START_MS

GAME: Final = "0123456789abcdef0123456789abcdef"
MEMO: Final = Memo(fingerprint=bytes(range(FINGERPRINT_BYTES)), answer=b"the first answer")


def creation(game_id: str = GAME) -> Commit:
    """Returns a commit that creates a game, under the request key `created`."""
    created = create(Ruleset())
    change = encode_change(created.game.revision, START_MS, bytes(16), created.events)
    record = Record(game_id, created.game, lineage(NO_ETAG, change), (), START_MS, START_MS)
    return Commit(NO_ETAG, record, change, "created", MEMO)


def joining(record: Record, name: str) -> Commit:
    """Returns a commit in which the next player joins, under the player's name as request key."""
    applied = apply(record.game, Join(name), START_MS)
    assert isinstance(applied, Applied)
    change = encode_change(applied.game.revision, START_MS, bytes(16), applied.events)
    tokens = tuple(SeatToken(player.seat, bytes([player.seat]) * 32) for player in applied.game.players)
    after = replace(record, game=applied.game, etag=lineage(record.etag, change), tokens=tokens)
    return Commit(record.etag, after, change, name, MEMO)


async def put_everywhere(store: Store, ids: Iterable[str]) -> None:
    """Creates games, each with its entries in a list, the deadlines, the names and the outbox."""
    for game_id in ids:
        commit = creation(game_id)
        await store.games.commit(commit)
        await store.lists.index(commit.record)
        await store.deadlines.arm(game_id, 1)
        await store.names.point(f"code:{game_id}", game_id)
        await store.outbox.append(game_id)
