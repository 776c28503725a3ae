"""Another scorer of American and International Rummikub. It shares nothing with the engine."""

from dataclasses import dataclass

JOKER = 53
Tiles = tuple[int, ...]


@dataclass(frozen=True)
class Ended:
    """The end of a round: racks by seat, who had opened, and who finished how with which tile.

    Attributes:
        racks: The racks, without the last discard.
        opened: The seats that had opened.
        finisher: Who finished; None for nobody.
        last: The last discard.
        hand: The points of a named hand; 0 for none.
        is_foot: Whether it was a Foot.
        trump: The face of the trump; None without one.
        twin: What the trump's twin is worth.
        rounds_up: Whether racks are rounded up to tens.
    """

    racks: dict[int, Tiles]
    opened: frozenset[int]
    finisher: int | None
    last: int | None
    hand: int
    is_foot: bool
    trump: int | None
    twin: int
    rounds_up: bool


def american(ended: Ended) -> dict[int, int]:
    """Returns the points of a round of American Rummikub."""
    times = 2 if ended.last == JOKER else 1
    paid = {}
    for seat, rack in ended.racks.items():
        worth = sum(30 if t == JOKER else (t - 1) % 13 + 1 for t in rack)
        paid[seat] = 0 if seat == ended.finisher else times * (worth if seat in ended.opened else max(worth, 100))
    got = {seat: sum(paid.values()) if seat == ended.finisher else -paid[seat] for seat in paid}
    return {seat: got[seat] + ended.twin * (ended.trump in ended.racks[seat]) for seat in got}


def international(ended: Ended) -> dict[int, int]:
    """Returns the points of a round of International Rummikub."""
    times = 2 if ended.last == JOKER else 1
    alone = not ended.opened - {ended.finisher}
    win = ended.hand or (200 if ended.is_foot or alone else 100)
    scored = {}
    for seat, rack in ended.racks.items():
        worth = sum(30 if t == JOKER else (10, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10)[(t - 1) % 13] for t in rack)
        if ended.rounds_up and worth % 10:
            worth += 10 - worth % 10
        if seat == ended.finisher:
            scored[seat] = -win * times
        elif seat in ended.opened:
            scored[seat] = worth * times
        else:
            scored[seat] = win * times if ended.finisher is not None else 100
        scored[seat] -= ended.twin * (ended.trump in rack)
    return scored
