"""Names of the keys and channels in Redis.

The keys of a game share a hash tag, the game's id, so they are in one slot of a cluster. Keys that span games (lists,
deadlines) are kept in parts, each with the games of a range of slots; decision 34 has the reasons. One Redis has one
part, a cluster CLUSTER_PARTS.
"""

from binascii import crc_hqx
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Final

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

SECRET: Final = "rummikub:secret"  # noqa: S105 - a key
PROBE: Final = "rummikub:probe"
MARK: Final = "rummikub:migrated"
"""The key on a store that was moved away from. Its value is the former one of min-replicas-to-write."""
UNFINISHED: Final = "rummikub:unfinished-migration"
"""The key on the target of a migration until all games have been moved to it. No server uses such a store."""

PLAYER_PREFIX: Final = "rummikub:player:"
"""The beginning of the keys of players' lists."""

ONE_PART: Final = ("rummikub:",)
"""The prefix of the only part of one Redis."""

_TAGS: Final = (
    *("s00uy", "s01ty", "s02wy", "s03vy", "s04qy", "s05py", "s06sy", "s07ry"),
    *("s08rx", "s09sx", "s10ps", "s11qs", "s12cq", "s13bq", "s14ts", "s15us"),
)
"""The hash tags of a cluster's parts. The slot of each is in the middle of its sixteenth of all slots."""

CLUSTER_PARTS: Final = tuple(f"rummikub:{{{tag}}}:" for tag in _TAGS)
"""The prefixes of the parts of a cluster. A store keeps them for life; only a migration can change them."""


def slot_of(key: str) -> int:
    """Returns the slot of a key in a cluster."""
    return key_slot(key.encode())


def probe_key(slot: int) -> str:
    """Returns a key in a slot of a cluster that no game has, for writes that test a primary."""
    return f"rummikub:{{{_probe_tags()[slot]}}}:probe"


@cache
def _probe_tags() -> Sequence[str]:
    """Returns a hash tag for each slot. Takes 0.1 s, once a process."""
    tags: dict[int, str] = {}
    for number in count():
        tag = f"p{number}"
        tags.setdefault(crc_hqx(tag.encode(), 0) % REDIS_CLUSTER_HASH_SLOTS, tag)
        if len(tags) == REDIS_CLUSTER_HASH_SLOTS:
            break
    return [tags[slot] for slot in range(REDIS_CLUSTER_HASH_SLOTS)]


def part_of(parts: Sequence[str], game_id: str) -> str:
    """Returns the prefix of the part that a game belongs to."""
    return parts[slot_of(game_id) * len(parts) // REDIS_CLUSTER_HASH_SLOTS]


def keys_of(game_id: str) -> list[str]:
    """Returns a game's keys: snapshot, requests, event stream, draft, presence."""
    start = f"rummikub:{{{game_id}}}:"
    return [f"{start}game", f"{start}requests", f"{start}events", f"{start}draft", f"{start}presence"]


def draft_key(game_id: str) -> str:
    """Returns the key of a game's draft."""
    return keys_of(game_id)[3]


def presence_key(game_id: str) -> str:
    """Returns the key of the presence of a game's players."""
    return keys_of(game_id)[4]


def changes_channel(game_id: str) -> str:
    """Returns the channel of a game's changes."""
    return f"rummikub:{{{game_id}}}:changed"


def drafts_channel(game_id: str) -> str:
    """Returns the channel of the drafts of a game that everyone may see."""
    return f"rummikub:{{{game_id}}}:drafted"


def presence_channel(game_id: str) -> str:
    """Returns the channel of watches of a game that open or close."""
    return f"rummikub:{{{game_id}}}:seen"


def list_key(part: str, name: str) -> str:
    """Returns the key of a part of a list."""
    return f"{part}{name}"


def deadlines_key(part: str) -> str:
    """Returns the key of a part of the deadlines."""
    return f"{part}deadlines"


def change_log_key(part: str) -> str:
    """Returns the key of a part of the change log."""
    return f"{part}changes"


def outbox_key(part: str) -> str:
    """Returns the key of a part of the outbox."""
    return f"{part}outbox"


def players_key(name: str) -> str:
    """Returns the key of the list of a player's games. A player's games are few, so it has no parts."""
    return f"{PLAYER_PREFIX}{name.removeprefix('player:')}"


def pointer_key(name: str) -> str:
    """Returns the key of a name of a game."""
    return f"rummikub:name:{name}"
