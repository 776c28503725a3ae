"""Lists of games: which of them a game is in, and its place in them."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from engine.events import Event, PlayerKicked
from engine.room_settings import RoomSettings
from engine.turns.lobby import LOBBY_CHANGES_MAX
from engine.unions import Ruleset
from service.model.record import GameState, Listing, Record, Visibility
from service.storage.stored_values import dump, write_options

_KINDS: Final = ("games", "public")


def list_name(state: GameState, *, is_public: bool) -> str:
    """Returns the name of a list by state: of all games, or of public ones."""
    return f"{_KINDS[is_public]}:{state.value}"


def open_list(match: str) -> str:
    """Returns the name of the list of public games with a free seat and a match key."""
    return f"open:{match}"


def lists_of(record: Record) -> frozenset[str]:
    """Returns the names of a game's lists."""
    if record.is_emptied:
        return frozenset()
    names = {list_name(record.state, is_public=False)}
    if record.listing.visibility is Visibility.PUBLIC:
        names.add(list_name(record.state, is_public=True))
        if record.state is GameState.LOBBY and _is_open(record):
            names.add(open_list(match_of(record)))
    return frozenset(names)


def _is_open(record: Record) -> bool:
    """Returns whether quick play may join a lobby: not if it waits for its own players, or has had its last change."""
    return bool(seats_free(record)) and not record.game.reserved and record.game.revision < LOBBY_CHANGES_MAX


def possible_lists(record: Record) -> frozenset[str]:
    """Returns the names of all lists that a game may have been in before."""
    if record.listing.visibility is Visibility.UNLISTED:
        return frozenset(list_name(state, is_public=False) for state in GameState)
    by_state = (list_name(state, is_public=is_public) for state in GameState for is_public in (False, True))
    return frozenset((*by_state, open_list(match_of(record))))


def listing_after(listing: Listing, events: Iterable[Event]) -> Listing:
    """Returns how a game is found after a change, which may give its lobby a new join code."""
    codes = (event.join_code for event in events if isinstance(event, PlayerKicked) and event.join_code)
    return next((replace(listing, join_code=code) for code in codes), listing)


def seats_free(record: Record) -> int:
    """Returns the number of seats that nobody has, and that are not reserved."""
    return len(record.game.seats) - len(record.game.players) - len(record.game.reserved)


def list_member(record: Record) -> str:
    """Returns a game's place in every list: lists are sorted by time of creation, then by id."""
    return f"{record.created_ms:015d}:{record.game_id}"


def game_of_member(member: str) -> str:
    """Returns the id of the game of a list's member."""
    return member.partition(":")[2]


def players_lists(record: Record) -> frozenset[str]:
    """Returns the names of the lists of games of a game's people, those with a reserved seat included."""
    return frozenset(players_list(ref.text) for ref in record.operator_data.player_refs if not ref.has_left)


def players_list(player_ref: str) -> str:
    """Returns the name of the list of games that a reference finds. It does not show the reference."""
    return f"player:{_digest(player_ref, 32)}"


def players_member(record: Record) -> str:
    """Returns a game's place in the lists of its players: those of a key are together, and sorted as all lists are."""
    return f"{players_prefix(record.listing.key)}{list_member(record)}"


def players_prefix(key: str) -> str:
    """Returns what the places of all games of a key begin with in the list of a player."""
    return f"{_digest(key, 16)}:"


def game_of_players_member(member: str) -> str:
    """Returns the id of the game of a place in the list of a player."""
    return member.rpartition(":")[2]


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def match_of(record: Record) -> str:
    """Returns a game's match key."""
    return match_key(record.game.ruleset, record.game.settings, record.listing.labels, record.listing.key)


@lru_cache(maxsize=256)
def match_key(ruleset: Ruleset, settings: RoomSettings, labels: tuple[tuple[str, str], ...], key: str = "") -> str:
    """Returns what games have in common if players of quick play may meet in them; `key` is that of their creators."""
    return hashlib.sha256(
        dump([write_options(ruleset), write_options(settings), labels, *([key] if key else ())])
    ).hexdigest()[:32]
