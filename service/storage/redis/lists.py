"""The lists of games in Redis: one sorted set for each list and part, whose members sort by age."""

import asyncio
import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, TypeVar

from service.errors import StoreUnavailable
from service.model.record import GameState, Record
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
    possible_lists,
)
from service.storage.redis.keys import keys_of, list_key, part_of, players_key
from service.storage.redis.nodes import COMMAND, Nodes, StoreTime, Word
from service.storage.snapshot import readable_record
from service.storage.store import PLAYER_GAMES_MAX, PLAYER_GAMES_MS, ListPage
from service.storage.timing import timed

_T = TypeVar("_T")

LISTED_AT_ONCE: Final = 20
"""How many listed games are decoded before other tasks may run: 1 to 2 ms."""
ORPHAN_MS: Final = 3_600_000
"""How long a list may name a game that is not stored. A creation lists the game first, and may be retried."""

LISTS_BY_STATE: Final = [list_name(state, is_public=is_public) for state in GameState for is_public in (False, True)]
"""The lists that do not expire."""

_MEMBER: Final = re.compile(rb"\d{15}:[0-9a-f]{32}")
"""A game in a list. Members of another form were not written by this service."""


class _Place(NamedTuple):
    """A part of a list."""

    part: str
    name: str

    @property
    def key(self) -> str:
        """Its key."""
        return list_key(self.part, self.name)


class RedisLists:
    """Lists in Redis. They may lag behind the games, and are repaired by reading.

    Args:
        nodes: The Redis servers.
        time: The clock of the store.
        name_ms: How long a list of open games is kept after it was written.
    """

    def __init__(self, nodes: Nodes, time: StoreTime, name_ms: int) -> None:
        self.reports = nodes.reports
        self._nodes = nodes
        self._time = time
        self._name_ms = name_ms
        self._listing = asyncio.Lock()

    @timed("index")
    async def index(self, record: Record) -> None:
        part, member, own = part_of(self._nodes.parts, record.game_id), list_member(record), lists_of(record)
        for name in sorted(own):  # first: a game is never unlisted
            key = list_key(part, name)
            needs_replicas = self._nodes.needs_replicas(key, record.game_id)
            await self._nodes.execute(key, "ZADD", key, 0, member, needs_replicas=needs_replicas)
            if name not in LISTS_BY_STATE:
                await self._nodes.execute(key, "PEXPIRE", key, self._name_ms)
        others = [list_key(part, name) for name in sorted(possible_lists(record) - own)]
        await asyncio.gather(*(self._nodes.execute(key, "ZREM", key, member) for key in others))

    async def remove(self, record: Record) -> None:
        """Removes a game from all lists."""
        part = part_of(self._nodes.parts, record.game_id)
        keys = [list_key(part, name) for name in sorted(possible_lists(record))]
        await asyncio.gather(*(self._nodes.execute(key, "ZREM", key, list_member(record)) for key in keys))

    @timed("page")
    async def page(self, states: Iterable[GameState], cursor: str, limit: int, *, is_public: bool = False) -> ListPage:
        names = {list_name(state, is_public=is_public) for state in states}
        start = f"({cursor}" if cursor else "+"
        found = await self._read(names, limit, "ZREVRANGEBYLEX", start, "-")
        found = dict(sorted(found.items(), reverse=True)[:limit])
        members = [member for member in found if _MEMBER.fullmatch(member)]
        following = members[-1].decode() if members and len(found) == limit else ""
        return ListPage(*await self._games_in(names, found), following)

    @timed("oldest_open")
    async def oldest_open(self, match: str, limit: int) -> tuple[Record, ...]:
        names = {open_list(match)}
        found = await self._read(names, limit, "ZRANGEBYLEX", "-", "+")
        games, _ = await self._games_in(names, dict(sorted(found.items())[:limit]))
        return games

    async def _read(self, names: Set[str], limit: int, command: str, *span: str) -> dict[bytes, _Place]:
        """Returns members of lists, at most `limit` of each part of each list, each with its place.

        A game that is just moving from list to list is in both, and has one of them as its place.
        """
        places = [_Place(part, name) for part in self._nodes.parts for name in names]
        arguments: Sequence[Word] = (command, *span, "LIMIT", 0, limit)
        replies = await self._run_each({place.key: arguments for place in places})
        return {member: place for place, members in zip(places, replies, strict=True) for member in members}

    async def _run_each(self, commands: Mapping[str, Sequence[Word]]) -> Sequence[Any]:
        """Returns the replies to a command for each key. Raises StoreUnavailable if one fails."""
        replies = await self._nodes.run_each(COMMAND, commands)
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        return replies

    async def _games_in(
        self, names: Set[str], found: Mapping[bytes, _Place]
    ) -> tuple[tuple[Record, ...], tuple[str, ...]]:
        """Returns the games of members of lists, and the ids of those that cannot be read.

        It repairs the lists where they were wrong.
        """
        if not found:
            return (), ()
        now_ms = await self._time.now_ms(list_key(self._nodes.parts[0], min(names)))
        places = {member.decode(): place for member, place in found.items() if _MEMBER.fullmatch(member)}
        records: list[Record] = []
        unreadable: list[str] = []
        moved: list[Record] = []
        gone: list[tuple[_Place, str | bytes]] = [
            (place, member) for member, place in found.items() if not _MEMBER.fullmatch(member)
        ]
        for some in _in_batches([*places], LISTED_AT_ONCE):
            for member, snapshot, record in await self._listed(some):
                if record and record.is_emptied:
                    continue  # it expires soon; a repair could remove it from its lists after somebody has joined
                own_member = list_member(record) if record else member
                if member != own_member:
                    gone.append((places[member], member))  # from a creation that failed
                if record and (places[member].name not in lists_of(record) or member != own_member):
                    moved.append(record)
                if record and member == own_member and not names.isdisjoint(lists_of(record)):
                    records.append(record)
                elif snapshot and not record:
                    unreadable.append(game_of_member(member))
                elif not snapshot and now_ms - int(member.partition(":")[0]) > ORPHAN_MS:
                    gone.append((places[member], member))
        with contextlib.suppress(StoreUnavailable):  # a store that refuses writes is still readable
            await self._repair(moved, gone)
        return tuple(records), tuple(unreadable)

    async def _repair(self, moved: Sequence[Record], gone: Sequence[tuple[_Place, str | bytes]]) -> None:
        """Puts games into their own lists, and removes members that are gone from their places."""
        for record in moved:
            await self.index(record)
        for key in sorted({place.key for place, _ in gone}):
            members = [member for place, member in gone if place.key == key]
            await self._nodes.execute(key, "ZREM", key, *members)

    async def _listed(self, members: Sequence[str]) -> list[tuple[str, bytes | None, Record | None]]:
        """Returns members of a list, each with its stored bytes and its game if that can be read.

        Decoding a hundred games takes some 10 ms, so calls decode a few at a time and take turns.
        """
        keys = [keys_of(game_of_member(member))[0] for member in members]
        snapshots = await asyncio.gather(*(self._nodes.execute(key, "HGET", key, "snapshot") for key in keys))
        async with self._listing:
            await asyncio.sleep(0)
            return [
                (member, snapshot, readable_record(snapshot))
                for member, snapshot in zip(members, snapshots, strict=True)
            ]

    @timed("count")
    async def count(self) -> dict[GameState, int]:
        parts = self._nodes.parts
        keys = [list_key(part, list_name(state, is_public=False)) for state in GameState for part in parts]
        counts = await self._run_each(dict.fromkeys(keys, ("ZCARD",)))
        sums = [sum(some) for some in _in_batches(counts, len(parts))]
        return dict(zip(GameState, sums, strict=True))

    @timed("note_players")
    async def note_players(self, record: Record) -> None:
        first, last = _of_key(record.listing.key)
        for key in sorted(map(players_key, players_lists(record))):
            await self._nodes.execute(key, "ZADD", key, 0, players_member(record))
            surplus: Sequence[bytes] = await self._nodes.execute(
                key, "ZREVRANGEBYLEX", key, last, first, "LIMIT", PLAYER_GAMES_MAX, 1
            )
            for newest in surplus:
                await self._nodes.execute(key, "ZREMRANGEBYLEX", key, first, b"[" + newest)
            await self._nodes.execute(key, "PEXPIRE", key, PLAYER_GAMES_MS)

    @timed("games_of")
    async def games_of(self, key: str, player_ref: str) -> Sequence[str]:
        place, (first, last) = players_key(players_list(player_ref)), _of_key(key)
        members: Sequence[bytes] = await self._nodes.execute(place, "ZREVRANGEBYLEX", place, last, first)
        return [game_of_players_member(member.decode()) for member in members]

    @timed("forget_player")
    async def forget_player(self, player_ref: str) -> None:
        place = players_key(players_list(player_ref))
        await self._nodes.execute(place, "DEL", place)


def _of_key(key: str) -> tuple[str, str]:
    """Returns the bounds of the games of a key in the list of a player."""
    prefix = players_prefix(key)
    return f"[{prefix}", f"({prefix[:-1]};"  # the character after the colon


def _in_batches(items: Sequence[_T], most: int) -> Iterator[Sequence[_T]]:
    """Yields the items in batches of at most `most`."""
    for start in range(0, len(items), most):
        yield items[start : start + most]
