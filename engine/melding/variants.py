"""The rules of variants: plays after a draw, the River, contracts, the winner's call.

Each rule yields nothing unless the ruleset has the variant.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from engine.melding.exchange import Exchange
from engine.melding.melds import Meld, MeldKind, joker_points
from engine.melding.play import BasePlay
from engine.melding.ruleset import Contract, TurnPlayAfterDraw, WinCall
from engine.melding.table import count_tiles
from engine.tiles import JOKER, in_order, value_of
from engine.violations import Reason, Violation


def the_drawn_tile_stays(play: Exchange) -> Iterator[Violation]:
    """R25, turn_play_after_draw: a tile drawn in this turn is not played; under FORBIDDEN, no tile is."""
    if play.drawn is None or play.ruleset.turn_play_after_draw is TurnPlayAfterDraw.ALLOWED:
        return
    forbidden = play.ruleset.turn_play_after_draw is TurnPlayAfterDraw.FORBIDDEN
    if forbidden or play.tiles_played[play.drawn] == play.rack.count(play.drawn):
        yield Violation(Reason.PLAY_AFTER_DRAW, play.subject, (play.drawn,))


def the_river_has_the_tile(play: Exchange) -> Iterator[Violation]:
    """turn_draw TWO_RIVER: the index of a pull is that of a River tile."""
    if play.river_index is None or play.pulled:
        return
    if not play.river:
        yield Violation(Reason.RIVER_EMPTY, play.subject)
    else:
        metadata = (("index", play.river_index), ("count", len(play.river)))
        yield Violation(Reason.RIVER_INDEX_OUT_OF_RANGE, play.subject, metadata=metadata)


def the_key_is_played(play: Exchange) -> Iterator[Violation]:
    """turn_draw TWO_RIVER: the oldest pulled tile is played."""
    for key in play.pulled[:1]:
        if not play.tiles_played[key]:
            yield Violation(Reason.RIVER_KEY_NOT_PLAYED, play.subject, (key,))


def the_plunder_stays(play: Exchange) -> Iterator[Violation]:
    """turn_draw TWO_RIVER: the newer pulled tiles go to the rack and are not played in this turn."""
    if play.plunder_played:
        yield Violation(Reason.RIVER_PLUNDER_PLAYED, play.subject, in_order(play.plunder_played.elements()))


def the_contract_is_kept(play: BasePlay) -> Iterator[Violation]:
    """contract: every meld with a played tile satisfies the contract.

    Equal tiles are interchangeable: a meld that table tiles can supply counts as one without played tiles. But the
    initial meld consists of rack tiles, and melds that the player may not use yet supply no tiles.
    """
    keeps = CONTRACTS.get(play.ruleset.contract)
    if keeps is None:
        return
    against = [
        (place, reading)
        for place, reading in enumerate(play.readings)
        if isinstance(reading, Meld) and not keeps(reading)
    ]
    against.sort(key=lambda found: found[1] not in play.table_before)
    table = +play.tiles_before
    if not play.may_use_table:
        table -= count_tiles(meld for meld in play.kept_and_new[0] if keeps(meld))
    of_rack = Counter(_least_against(play, keeps))
    for number, (place, meld) in enumerate(against):
        alike = [other for _, other in against[number + 1 :]].count(meld)
        if Counter(meld.tiles) <= table and alike >= of_rack[meld]:
            table -= Counter(meld.tiles)
        else:
            yield Violation(Reason.CONTRACT_VIOLATED, f"{play.subject}[{place}]", meld.tiles)


def _least_against(play: BasePlay, keeps: Callable[[Meld], bool]) -> tuple[Meld, ...]:
    """Returns the melds that break a contract in the initial meld with the fewest, where the table is used too."""
    ways = (tuple(meld for meld in melds if not keeps(meld)) for melds in play.ways_to_meld())
    return min(ways, key=len, default=())


def _highest(meld: Meld) -> int:
    """Returns the highest value in a meld. A joker counts as the face it stands for."""
    return max([*(value_of(t) for t in meld.tiles if t != JOKER), *joker_points(meld)])


CONTRACTS: Final[dict[Contract, Callable[[Meld], bool]]] = {
    Contract.VALUES_BELOW_10: lambda meld: _highest(meld) < 10,
    Contract.SINGLE_COLOR: lambda meld: meld.kind is MeldKind.RUN,
    Contract.SUM_AT_MOST_41: lambda meld: meld.points <= 41,
}
"""The predicate that a meld must satisfy under each contract."""


def the_winner_calls(play: Exchange) -> Iterator[Violation]:
    """R58, win_call REQUIRED: a player who plays their last tiles calls out."""
    silent = play.ruleset.win_call is WinCall.REQUIRED and not play.calls_rummikub
    if silent and play.tiles_played and not play.rack_left:
        yield Violation(Reason.RUMMIKUB_NOT_CALLED, play.subject)
