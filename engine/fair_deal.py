"""Deals that their players can check afterwards (fair_deal). docs/fair-deal.md has the method for other programs.

The server commits itself to a secret when the game is created. Each deal takes the next seed of a chain of hashes that
ends in the commitment, so a seed gives away the deals before it but none after it. The shuffles follow from that seed
and the seeds of the players, which the server did not know when it committed itself.
"""

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from typing import Final

from engine.deal import Shuffle
from engine.game import Game
from engine.tiles import Tile

DEALS_MAX: Final = 1_000
"""How many deals of a game follow from a seed. Later ones are shuffled without."""
SEED_BYTES: Final = 32
"""The size of the server's secret, seeds and commitment: that of SHA-256."""
PLAYER_SEED_MAX: Final = 64
"""Most bytes of a player's seed."""
_TITLE: Final = b"rummikub deal 1"
_WORD_BYTES: Final = 4
_WORDS: Final = 2 ** (8 * _WORD_BYTES)


def commitment_to(secret: bytes) -> bytes:
    """Returns the commitment to a secret of SEED_BYTES, hashed DEALS_MAX times; empty for no secret."""
    return hashed(secret, DEALS_MAX) if secret else b""


def seed_of(secret: bytes, deal: int) -> bytes:
    """Returns the server's seed of a deal, counted from 1; empty after DEALS_MAX, and for no secret."""
    return hashed(secret, DEALS_MAX - deal) if secret and deal <= DEALS_MAX else b""


def hashed(data: bytes, times: int) -> bytes:
    """Returns the SHA-256 of the SHA-256, and so on."""
    for _ in range(times):
        data = hashlib.sha256(data).digest()
    return data


def shuffle_for(game: Game, seed: bytes) -> Shuffle:
    """Returns the shuffles of a game's next deal by the server's seed and those of its players."""
    tiles = game.ruleset.tiles(len(game.active_seats))
    words = words_of(game, seed)
    return Shuffle(shuffled(tiles, words), shuffled(tiles, words), seed)


def words_of(game: Game, seed: bytes) -> Iterator[int]:
    """Returns the random numbers of a game's next deal, from which its shuffles are made."""
    return _words(_key(seed, ((player.seat, player.deal_seed) for player in game.players)))


def _key(seed: bytes, seeds: Iterable[tuple[int, bytes]]) -> bytes:
    """Returns the key of a deal: HMAC-SHA256 of the title, and of seat, length and seed of each player who has one."""
    parts = (bytes((seat, len(own))) + own for seat, own in seeds if own)
    return hmac.digest(seed, _TITLE + b"".join(parts), "sha256")


def _words(key: bytes) -> Iterator[int]:
    """Yields random numbers of 32 bits: the words of HMAC-SHA256 of 0, 1, 2 and so on, as 4 bytes."""
    number = 0
    while True:
        block = hmac.digest(key, number.to_bytes(_WORD_BYTES), "sha256")
        yield from (int.from_bytes(block[place : place + _WORD_BYTES]) for place in range(0, len(block), _WORD_BYTES))
        number += 1


def shuffled(tiles: tuple[Tile, ...], words: Iterator[int]) -> tuple[Tile, ...]:
    """Returns tiles, given in ascending order, in random order: Fisher and Yates, from the last place to the second."""
    order = list(tiles)
    for last in range(len(order) - 1, 0, -1):
        place = _below(last + 1, words)
        order[last], order[place] = order[place], order[last]
    return tuple(order)


def _below(limit: int, words: Iterator[int]) -> int:
    """Returns a number below a limit, all of them equally likely: words of the last, incomplete cycle are skipped."""
    fair = _WORDS - _WORDS % limit
    return next(word for word in words if word < fair) % limit
