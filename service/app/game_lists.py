"""Lists of games, with filters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from engine.unions import Preset
from service.model.record import GameState, Record
from service.storage.lists import list_member, seats_free
from service.storage.store import Store

READ_AT_ONCE: Final = 100
"""Games read from the store at a time for a filtered list."""
READS_MAX: Final = 3
"""Most reads for one page, which limits the cost of a filter that few games pass."""


class Filter(Protocol):
    """Which games of a list to list."""

    @property
    def selects(self) -> bool:
        """Whether it excludes games."""

    def matches(self, record: Record) -> bool:
        """Returns whether it admits a game."""


@dataclass(frozen=True, slots=True)
class GameFilter:
    """Which public games to list: those of some states that have every property that is set.

    Attributes:
        states: The states.
        preset: The preset of the ruleset, whose other options may differ; None for any.
        seats_free_min: Fewest free seats.
        labels: Labels that the game has.
        key: The key of the game's creator; empty for none.
    """

    states: tuple[GameState, ...] = (GameState.LOBBY,)
    preset: Preset | None = None
    seats_free_min: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    key: str = ""

    @property
    def selects(self) -> bool:
        """Whether it excludes games of its states, on a server that uses no keys."""
        return self.preset is not None or self.seats_free_min > 0 or bool(self.labels) or bool(self.key)

    def matches(self, record: Record) -> bool:
        """Returns whether a game of the states has the properties."""
        return (
            record.listing.key == self.key
            and self.preset in {None, record.game.ruleset.preset}
            and seats_free(record) >= self.seats_free_min
            and set(record.listing.labels).issuperset(self.labels)
        )


async def list_public_games(
    store: Store, wanted: GameFilter, cursor: str, limit: int
) -> tuple[tuple[Record, ...], str]:
    """Returns public games after a cursor, as list_games does."""
    found, following = await list_games(store, wanted.states, wanted, cursor, limit, is_public=True)
    return found, _hiding_others(following, found) if wanted.key else following


async def list_games(  # noqa: PLR0913 - a list, a filter, and a page
    store: Store, states: Sequence[GameState], wanted: Filter, cursor: str, limit: int, *, is_public: bool = False
) -> tuple[tuple[Record, ...], str]:
    """Returns games of some states after a cursor, newest first, and the next cursor; "" is the first and the last."""
    if not wanted.selects:
        page = await store.lists.page(states, cursor, limit, is_public=is_public)
        return tuple(filter(wanted.matches, page.games)), page.cursor
    found: list[Record] = []
    for _ in range(READS_MAX):
        page = await store.lists.page(states, cursor, READ_AT_ONCE, is_public=is_public)
        cursor = page.cursor
        for record in filter(wanted.matches, page.games):
            found.append(record)
            if len(found) == limit:
                return tuple(found), cursor if record is page.games[-1] else list_member(record)
        if not cursor:
            break
    return tuple(found), cursor


def _hiding_others(cursor: str, own: Sequence[Record]) -> str:
    """Returns a cursor without the id of a game of another key: games of its millisecond may then be listed twice."""
    is_own = not cursor or any(list_member(record) == cursor for record in own)
    return cursor if is_own else f"{cursor.partition(':')[0]}:{'f' * 32}"
