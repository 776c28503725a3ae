"""Drafts in Redis: the last one of each game, which expires with it."""

from contextlib import AbstractAsyncContextManager

from engine.game import round_of
from engine.room_settings import DraftVisibility
from engine.unions import Draft
from service.errors import StoredFormatUnknown, TooManyDrafts
from service.model.record import Record
from service.storage.game_cache import GameCache
from service.storage.redis.keys import draft_key, drafts_channel, keys_of
from service.storage.redis.nodes import Nodes, Script, StoreTime
from service.storage.redis.streams import read_stored
from service.storage.snapshot import decode_draft, encode_draft
from service.storage.store import DRAFT_MS, DRAFTS_AT_ONCE, Subscription
from service.storage.timing import timed


class RedisDrafts:
    """StoredDrafts in Redis.

    Args:
        nodes: The Redis servers.
        time: The clock of the store.
        cache: The games that this process has seen. One that a draft shows to be outdated is dropped.
    """

    def __init__(self, nodes: Nodes, time: StoreTime, cache: GameCache) -> None:
        self.reports = nodes.reports
        self._nodes = nodes
        self._time = time
        self._cache = cache
        self._save = Script.read("save_draft.lua", nodes.publish)

    @timed("save_draft")
    async def save(self, record: Record, draft: Draft) -> int | None:
        game_id, deadline_ms = record.game_id, round_of(record.game).turn.deadline_ms
        is_public = record.game.settings.draft_visibility is DraftVisibility.EVERYONE
        arguments = (
            record.etag,
            encode_draft(draft),
            draft.seat,
            "" if deadline_ms is None else deadline_ms,
            DRAFT_MS,
            DRAFTS_AT_ONCE * DRAFT_MS,
            drafts_channel(game_id) if is_public else "",
            self._time.argument,
        )
        number: int = await self._nodes.run(self._save, (keys_of(game_id)[0], draft_key(game_id)), arguments)
        if number < 0:
            raise TooManyDrafts("seat_drafts")
        if not number:
            self._cache.evict(game_id)
        return number or None

    @timed("draft")
    async def latest(self, game_id: str) -> Draft | None:
        key = draft_key(game_id)
        draft, number = await self._nodes.execute(key, "HMGET", key, "draft", "number")
        if not draft:
            return None
        try:
            return read_stored(game_id, decode_draft, draft, number or 0)
        except StoredFormatUnknown:
            return None

    def subscribe(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        return self._nodes.subscribe(drafts_channel(game_id))
