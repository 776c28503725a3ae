"""Ids, tokens, callers and shuffles. All randomness of the service is made here, by the operating system."""

import base64
import hashlib
import hmac
import itertools
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from engine.deal import Shuffle
from engine.events import Event, PlayerKicked, PlayerLeft, SeatTakenOver, SeatTokenRenewed
from engine.seats import HOST
from engine.sight import is_open_to_spectators
from engine.tiles import Tile
from engine.unions import Ruleset
from service.errors import GameNotFound, NotAPlayer, SpectatorsNotAllowed, TokenVoid
from service.model.record import Record

CODE_ALPHABET: Final = "23456789CDFGHJKMNPQRTVWXY"
"""The characters of join codes: none is mistaken for another, and without vowels they make no words."""
CODE_LENGTH: Final = 6
TICKET_MS: Final = 600_000
"""How long a ticket opens watches: it is part of a URL, which proxies may log, but has to outlast lost connections."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request.

    Attributes:
        digest: The digest of the token that was sent; None for a spectator.
        stands_in: Whether the sender is the service's bot that plays for the seat's absent owner.
        key: The name of the key that was sent (origins.Key); empty for none. Games of other keys do not exist for it.
    """

    digest: bytes | None = None
    stands_in: bool = False
    key: str = ""

    @property
    def is_spectator(self) -> bool:
        """Whether the sender has no token."""
        return self.digest is None


SPECTATOR: Final = Caller()


class Chance(Protocol):
    """A source of randomness; tests pass a seeded one."""

    def token_bytes(self, count: int, /) -> bytes:
        """Returns random bytes."""

    def shuffle(self, tiles: Sequence[Tile]) -> tuple[Tile, ...]:
        """Returns the tiles in random order."""


class SystemChance:
    """The operating system's randomness."""

    token_bytes = staticmethod(secrets.token_bytes)

    def shuffle(self, tiles: Sequence[Tile]) -> tuple[Tile, ...]:
        shuffled = list(tiles)
        secrets.SystemRandom().shuffle(shuffled)
        return tuple(shuffled)


def new_game_id(chance: Chance) -> str:
    """Returns 128 random bits as 32 hexadecimal digits."""
    return chance.token_bytes(16).hex()


def new_server_id() -> str:
    """Returns 64 random bits as 16 hexadecimal digits."""
    return secrets.token_hex(8)


def requested_game_id(secret: bytes, request_key: str) -> str:
    """Returns the id of the game that a creation request makes: 128 bits derived from the store's secret.

    A repeated request yields the same id, so it finds its game and its answer for as long as the game is stored.
    """
    return hmac.digest(secret, request_key.encode(), "sha256")[:16].hex()


def join_codes(secret: bytes, game_id: str, revision: int = 0) -> Iterator[str]:
    """Yields the join codes of a game: its code is the first that no other game has.

    They follow from the store's secret, the id, and the revision of the change that has made the last code void, so a
    change that is repeated reserves the same code, and nobody can compute one from the id.
    """
    for number in itertools.count():
        digested = hmac.digest(secret, f"join code {number} of {game_id} at {revision}".encode(), "sha256")
        seed = int.from_bytes(digested)
        yield "".join(
            CODE_ALPHABET[seed // len(CODE_ALPHABET) ** place % len(CODE_ALPHABET)] for place in range(CODE_LENGTH)
        )


def deal_secret(secret: bytes, nonce: bytes) -> bytes:
    """Returns the secret of a game's deals (engine.fair_deal).

    It follows from the store's secret and the game's nonce, which are in two places of the store: who reads one of them
    cannot deal ahead.
    """
    return hmac.digest(secret, b"deals " + nonce, "sha256")


def new_shuffle(chance: Chance, ruleset: Ruleset, players: int) -> Shuffle:
    """Returns the random order of tiles for a round of so many players."""
    tiles = ruleset.tiles(players)
    return Shuffle(chance.shuffle(tiles), chance.shuffle(tiles))


def inbox_of(key: str, player_ref: str) -> str:
    """Returns the name under which a player of a key is notified. It has the form of a game's id, and no reference."""
    return hashlib.sha256(f"inbox {key} {player_ref}".encode()).hexdigest()[:32]


def rematch_game_id(secret: bytes, game_id: str) -> str:
    """Returns the id of a game's rematch, the same for each call. No request key has its form."""
    return requested_game_id(secret, f"rematch of {game_id}")


def seat_token(salt: bytes, request_id: str) -> str:
    """Returns a seat's token or a host token: 43 characters, derived from a random salt and the request's id.

    A repeated request gets the same token, although the store has only the salt (in the memo) and the token's digest.
    """
    token = hmac.digest(salt, request_id.encode(), "sha256")
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


def digest(token: str) -> bytes:
    """Returns the stored digest of a token."""
    return hashlib.sha256(token.encode()).digest()


@dataclass(frozen=True, slots=True)
class WatchTicket:
    """A ticket, which stands for a token in a watch.

    The store has nothing of it: its code is an HMAC with the digest of the token, so it is void when the token is.

    Attributes:
        until_ms: When it expires, in the store's time.
        code: Its code: 43 characters.
    """

    until_ms: int
    code: str


def watch_ticket(game_id: str, token_digest: bytes, until_ms: int) -> WatchTicket:
    """Returns the ticket to a game for the owner of a token."""
    code = hmac.digest(token_digest, f"watch ticket of {game_id} until {until_ms}".encode(), "sha256")
    return WatchTicket(until_ms, base64.urlsafe_b64encode(code).decode().rstrip("="))


def holder_of(ticket: WatchTicket, record: Record) -> bytes | None:
    """Returns the digest of the token that a ticket stands for; None if that token is not, or no longer, valid.

    It compares the tickets of all tokens, each in constant time.
    """
    found = None
    for token in record.tokens:
        expected = watch_ticket(record.game_id, token.digest, ticket.until_ms)
        if hmac.compare_digest(expected.code, ticket.code):
            found = token.digest
    return found


def revoked_by(events: Iterable[Event]) -> set[int]:
    """Returns the seats whose tokens a change makes void, HOST for the host token."""
    revoked: set[int] = set()
    for event in events:
        match event:
            case PlayerLeft(seat, None) | PlayerKicked(seat, None) | SeatTokenRenewed(seat):
                revoked.add(seat)
            case SeatTakenOver(seat, new_host=None):
                revoked.add(seat)
            case PlayerLeft(seat, _) | PlayerKicked(seat, _) | SeatTakenOver(seat):
                revoked.update((seat, HOST))
            case _:
                pass
    return revoked


def token_in(record: Record, caller: Caller) -> int | None:
    """Returns the seat of the caller's token, HOST for the host token, or None without one.

    It compares all tokens, each in constant time. Raises TokenVoid for any other token, GameNotFound for a game of
    another key.
    """
    check_key(record, caller)
    if caller.digest is None:
        return None
    seat = None
    for token in record.tokens:
        if hmac.compare_digest(token.digest, caller.digest):
            seat = token.seat
    if seat is None:
        raise TokenVoid
    return seat


def invited_in(record: Record, caller: Caller) -> int | None:
    """Returns the seat that is reserved for the owner of the caller's token of the game before; None for none."""
    check_key(record, caller)
    own = caller.digest or b""
    return next((token.seat for token in record.invited if hmac.compare_digest(token.digest, own)), None)


def check_key(record: Record, caller: Caller) -> None:
    """Raises GameNotFound for a game of another key."""
    if record.listing.key != caller.key:
        raise GameNotFound


def part_in(record: Record, caller: Caller) -> int | None:
    """Returns the seat of the caller's token, HOST for the host token, or None without one or with a reserved seat.

    Raises GameNotFound, TokenVoid.
    """
    return None if invited_in(record, caller) else token_in(record, caller)


def viewer_in(record: Record, caller: Caller) -> int | None:
    """Returns whose view a caller gets (engine.sight); who has a reserved seat is still a spectator.

    Raises GameNotFound, TokenVoid, SpectatorsNotAllowed.
    """
    viewer = part_in(record, caller)
    if viewer is None and not is_open_to_spectators(record.game):
        raise SpectatorsNotAllowed
    return viewer


def player_seat_in(record: Record, caller: Caller) -> int:
    """Returns the caller's seat in a game. Raises GameNotFound, TokenVoid, NotAPlayer without a seat's token."""
    seat = token_in(record, caller)
    if not seat:
        raise NotAPlayer
    return seat


def member_in(record: Record, caller: Caller) -> int:
    """Returns the caller's seat, or HOST for the host token. Raises GameNotFound, TokenVoid, NotAPlayer without one."""
    token = token_in(record, caller)
    if token is None:
        raise NotAPlayer
    return token
