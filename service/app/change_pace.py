"""Changes that cost their sender nothing, and their pace: without it, one seat could fill a game and the store."""

from typing import Final

from engine.events import (
    AbortRequested,
    PlayerJoined,
    PlayerKicked,
    PlayerLeft,
    PlayerReadied,
    PlayerReturned,
    RoundEnded,
    SeatTakenOver,
    SeatTokenRenewed,
    TurnStarted,
)
from engine.turns import Applied
from engine.unions import FreeEvent, RoundStart
from service.errors import Overloaded
from service.runtime.rate_limit import TokenBuckets

SEAT_CHANGES: Final = 20
"""How many such changes a seat, or the host without one, may make at once after a pause.

Joining has no limit in a lobby: nobody joins more often than others leave. In a started game, a seat may change hands
as often, because a person who takes it over may resign at once.
"""
REISSUES: Final = -1
"""Stands for all who reissue tokens of a game. They have a pace of their own, so a thief cannot use it up."""
SEAT_SECONDS: Final = 20.0
"""The time in which a seat that makes them all the time may make SEAT_CHANGES."""

_FREE: Final = (
    PlayerJoined
    | PlayerLeft
    | PlayerKicked
    | PlayerReadied
    | SeatTakenOver
    | SeatTokenRenewed
    | AbortRequested
    | PlayerReturned
    | FreeEvent
)
"""The events of such changes. All others end a turn, or happen once in one."""


def costs_nothing(applied: Applied) -> bool:
    """Returns whether a change costs its sender nothing: it ends no turn, and may be made again and again."""
    events = applied.events
    if not any(isinstance(event, _FREE) for event in events):
        return False
    if any(isinstance(event, TurnStarted | RoundEnded) for event in events):  # a redeal ends a turn, and costs nothing
        return all(any(isinstance(event, kind) for event in events) for kind in (FreeEvent, RoundStart))
    return True


class ChangePace:
    """Limits the changes of each seat at this server."""

    def __init__(self) -> None:
        self._buckets = TokenBuckets(SEAT_SECONDS)

    def check(self, game_id: str, actor: int, now_ms: int) -> None:
        """Counts a change that costs its sender nothing. Raises Overloaded.

        Args:
            game_id: The game.
            actor: The seat that acts, HOST for the host token, or REISSUES.
            now_ms: The store's time.
        """
        if self._buckets.take([(f"{game_id} {actor}", SEAT_CHANGES)], now_ms / 1000):
            raise Overloaded("seat_changes")

    def give_back(self, game_id: str, actor: int) -> None:
        """Takes back the last change of a seat, which did not happen."""
        self._buckets.give_back([(f"{game_id} {actor}", SEAT_CHANGES)])
