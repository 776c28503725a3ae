"""Ids, seat tokens and shuffles: all chance of the service, from the operating system's randomness."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from engine.deal import Shuffle
from engine.ruleset import Ruleset
from engine.tiles import Tile, tile_set
from service.storage.base import SeatToken


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the digest of the seat token that was sent; None for a spectator."""

    digest: bytes | None = None


SPECTATOR: Final = Caller()


class Chance(Protocol):
    """Where randomness comes from; tests bring their own."""

    def token_bytes(self, count: int) -> bytes:
        """Random bytes."""

    def shuffle(self, tiles: Sequence[Tile]) -> tuple[Tile, ...]:
        """The tiles in random order."""


class SystemChance:
    """Chance from the operating system."""

    def token_bytes(self, count: int) -> bytes:
        """See Chance."""
        return secrets.token_bytes(count)

    def shuffle(self, tiles: Sequence[Tile]) -> tuple[Tile, ...]:
        """See Chance."""
        shuffled = list(tiles)
        secrets.SystemRandom().shuffle(shuffled)
        return tuple(shuffled)


def new_game_id(chance: Chance) -> str:
    """128 random bits as 32 hexadecimal digits."""
    return chance.token_bytes(16).hex()


def requested_game_id(secret: bytes, request_key: str) -> str:
    """The id of the game that a creation request makes: 128 bits that only who knows the store's secret can tell.

    A repeated request makes the same id, so that it finds its game and its answer as long as the game lives.
    """
    return hmac.digest(secret, request_key.encode(), "sha256")[:16].hex()


def new_shuffle(chance: Chance, ruleset: Ruleset, players: int) -> Shuffle:
    """The chance in a round of so many players."""
    tiles = tile_set(ruleset.geometry_colors, ruleset.geometry_copies, ruleset.jokers(players))
    return Shuffle(chance.shuffle(tiles), chance.shuffle(tiles))


def seat_token(salt: bytes, request_id: str) -> str:
    """A seat's token: 43 characters.

    It is made of a random salt and the join's request id, so that a repeated request gets the same token although the
    store keeps only the salt, for the request's memo, and the token's digest.
    """
    token = hmac.digest(salt, request_id.encode(), "sha256")
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


def digest(token: str) -> bytes:
    """What is stored of a seat token."""
    return hashlib.sha256(token.encode()).digest()


def seat_of(caller: Caller, tokens: Sequence[SeatToken]) -> int | None:
    """The seat whose token the caller sent. Compares all, each in constant time."""
    if caller.digest is None:
        return None
    matches = [token.seat for token in tokens if hmac.compare_digest(token.digest, caller.digest)]
    return matches[0] if matches else None
