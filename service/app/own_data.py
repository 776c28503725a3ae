"""The stored data of a person in a game: the game and its changes as the person sees them, a page at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from service.app.history import History
from service.app.views import ChangeView, GameSnapshotView, change_view, snapshot_view
from service.model.record import PlayerRef, Record

CHANGES_A_PAGE: Final = 200
"""Most changes of a page: as many as ListChanges returns."""

SeatOf: TypeAlias = Callable[[Record], int]
"""Returns a person's seat in a game, or raises the reason why nothing is shown."""


@dataclass(frozen=True, slots=True)
class OwnData:
    """A page of what is stored of a person in a game.

    Attributes:
        game_id: The game.
        seat: The seat; None for a person who has left it.
        player_ref: The operator's reference to the person.
        sight: The game, on the first page.
        changes: The changes.
        following: The revision after which the next page begins; 0: there is none.
    """

    game_id: str
    seat: int | None
    player_ref: str
    sight: GameSnapshotView | None
    changes: tuple[ChangeView, ...]
    following: int = 0


async def own_data(record: Record, now_ms: int, history: History, seat: int, after: int) -> OwnData:
    """Returns what is stored of the person in a seat, from the changes after a revision on; 0: the first page."""
    entries = await history.entries(record.game_id, after + 1, CHANGES_A_PAGE + 1)
    shown = entries[:CHANGES_A_PAGE]
    return OwnData(
        record.game_id,
        seat,
        record.operator_data.ref_of(seat),
        None if after else snapshot_view(record, seat, now_ms),
        tuple(change_view(entry, seat) for entry in shown),
        shown[-1].revision if len(entries) > len(shown) else 0,
    )


async def departed_data(record: Record, history: History, ref: PlayerRef) -> OwnData:
    """Returns what is stored of a person who has left a seat, whose tiles are not theirs: the arrival."""
    entries = await history.entries(record.game_id, ref.revision, 1)
    arrival = [entry for entry in entries if entry.revision == ref.revision]
    return OwnData(record.game_id, None, ref.text, None, tuple(change_view(entry, None) for entry in arrival))
