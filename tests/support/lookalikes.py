"""Histories that look the same to a viewer, but differ in every tile that the viewer has not seen."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from engine.discard.events import (
    DiscardForced,
    DiscardReturned,
    DiscardTaken,
    HandFinished,
    HandsDealt,
    IndicatorShown,
    PoolTileTaken,
    RackFinished,
    TileDiscarded,
    TilesLaid,
    TrumpTaken,
)
from engine.discard.melds import okey_of, value_on_rack
from engine.events import Event, GameEnded, PlayerResigned, RoundEnded, TurnTimedOut
from engine.melding.events import (
    IllegalPlayShown,
    RiverTileLaid,
    RoundStarted,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TilesPlayed,
    TurnPenalised,
)
from engine.melding.table import count_tiles
from engine.tiles import JOKER, JOKERS, Tile, in_order
from oracles.scores import number_of

History = Sequence[tuple[Event, ...]]
"""The events of each change of a game."""


def lookalike(history: History, viewer: int | None, rng: random.Random, kept: int = 0) -> History:
    """Returns another history that looks the same to a viewer.

    Args:
        history: The events so far.
        viewer: A seat; None for a spectator.
        rng: The source of randomness.
        kept: The number of the pool's next tiles that stay the same, because they are drawn next.
    """
    deals: list[_Deal] = []
    written: list[list[Callable[[], Event]]] = []
    for events in history:
        rewritten: list[Callable[[], Event]] = []
        for event in events:
            if isinstance(event, RoundStarted | HandsDealt):
                deals.append(_Deal(event, viewer))
            if isinstance(event, GameEnded) and event.opened:
                for deal in deals:
                    deal.open()
            rewritten.append(deals[-1].follow(event) if deals else partial(_same, event))
        written.append(rewritten)
    for deal in deals:
        deal.shuffle(rng, kept if deal is deals[-1] else 0)
    return [tuple(write() for write in rewritten) for rewritten in written]


class _Deal:
    """The tiles of a deal, each with an identity, and the set of tiles that the viewer has seen."""

    def __init__(self, event: RoundStarted | HandsDealt, viewer: int | None) -> None:
        self._viewer = viewer
        self._seed = event.seed
        self._indicator = event.indicator if isinstance(event, HandsDealt) else None
        self._piles: dict[int, list[int]] = defaultdict(list)
        self._on_table: list[int] = []
        self._faces: list[Tile] = []
        trump = event.trump if isinstance(event, HandsDealt) else None
        self._trump = self._new(() if trump is None else (trump,))
        self._racks = {rack.seat: self._new(rack.tiles) for rack in event.racks}
        self._pool = self._new(event.pool)
        self._river: list[int] = []
        self._choice: list[int] = []
        self._chooser = 0
        table = event.table if isinstance(event, RoundStarted) else None
        self._table: Counter[Tile] = count_tiles(table or ())
        self._seen = {*self._racks.get(viewer or 0, ()), *self._trump}
        self._trump_face = trump
        self._has_ended = False
        self._ended_racks: list[list[int]] = []
        self._is_open = False

    def open(self) -> None:
        """Shows everyone the racks at the end of the round, and the order of the pool."""
        self._is_open = True

    def _new(self, tiles: Iterable[Tile]) -> list[int]:
        first = len(self._faces)
        self._faces.extend(tiles)
        return list(range(first, len(self._faces)))

    def follow(self, event: Event) -> Callable[[], Event]:
        """Moves the tiles as an event does; returns a function that rebuilds the event after a shuffle."""
        match event:
            case RoundStarted() | HandsDealt():
                return self._started(event)
            case TileDrawn(seat) | PoolTileTaken(seat):
                [tile] = self._drawn(seat, 1)
                return lambda: replace(event, tile=self._faces[tile])
            case TilesDrawn(seat, tiles) | TurnTimedOut(seat, tiles) | TurnPenalised(seat, tiles):
                drawn = self._drawn(seat, len(tiles))
                return lambda: replace(event, tiles=self._shown(drawn))
            case TilesOffered(seat):
                first, second = self._choice = self._of_pool(seat, 2)
                self._chooser = seat
                return lambda: replace(event, tiles=(self._faces[first], self._faces[second]))
            case RiverTileLaid(seat, tile):
                self._river += self._revealed([tile], self._choice)
                self._racks[seat] += self._choice
                self._choice = []
            case PlayerResigned(seat) if seat == self._chooser:
                self._racks[seat] += self._choice
                self._choice = []
            case TilesPlayed(seat, tiles, table, _, pulled):
                self._racks[seat] += self._river[len(self._river) - len(pulled) :]
                del self._river[len(self._river) - len(pulled) :]
                self._revealed(tiles, self._racks[seat])
                self._table = count_tiles(table)
            case IllegalPlayShown(seat, shown):
                self._racks[seat] += self._revealed((count_tiles(shown) - self._table).elements(), self._racks[seat])
            case RoundEnded():
                return self._ended(event)
            case _:
                self._follow_discards(event)
        return partial(_same, event)

    def _follow_discards(self, event: Event) -> None:
        """Moves the tiles as an event of a game of discards does, in which all see them."""
        match event:
            case TileDiscarded(seat, tile) | DiscardForced(seat, tile):
                self._piles[seat] += self._revealed([tile], self._racks[seat])
            case DiscardTaken(seat, _, from_seat):
                self._racks[seat].append(self._piles[from_seat].pop())
            case DiscardReturned(seat, tile, to_seat):
                pile = self._trump if to_seat is None else self._piles[to_seat]
                pile += self._revealed([tile], self._racks[seat])
            case TrumpTaken(seat, tile):
                self._racks[seat] += self._revealed([tile], self._trump)
            case TilesLaid(seat, tiles, _, okeys):
                self._on_table += self._revealed(tiles, self._racks[seat])
                wild = okey_of(self._indicator) if self._indicator else JOKER
                self._racks[seat] += self._revealed([wild] * okeys, self._on_table)
            case RackFinished(seat, tile):
                self._revealed([tile], self._racks[seat])
            case IndicatorShown(seat):
                self._racks[seat] += self._revealed([self._indicator or JOKER], self._racks[seat])
            case HandFinished(seat, tile, hand):
                self._revealed([tile], self._racks[seat])
                self._racks[seat] += self._revealed(chain.from_iterable(hand), self._racks[seat])
            case _:
                pass

    def _started(self, event: RoundStarted | HandsDealt) -> Callable[[], Event]:
        dealt, pool = {seat: tuple(tiles) for seat, tiles in self._racks.items()}, tuple(self._pool)

        def write() -> Event:
            racks = tuple(replace(rack, tiles=in_order(self._shown(dealt[rack.seat]))) for rack in event.racks)
            return replace(event, racks=racks, pool=self._shown(pool), seed=self._seed)

        return write

    def _ended(self, event: RoundEnded) -> Callable[[], Event]:
        self._has_ended, self._is_open = True, event.result.is_open
        self._ended_racks = [list(tiles) for tiles in self._racks.values()]
        if not event.result.racks:
            return partial(_same, event)
        held, pool = dict(zip(self._racks, self._ended_racks, strict=True)), tuple(self._pool)

        def write() -> Event:
            racks = tuple(replace(rack, tiles=in_order(self._shown(held[rack.seat]))) for rack in event.result.racks)
            return replace(event, result=replace(event.result, racks=racks, pool=self._shown(pool)))

        return write

    def _shown(self, tiles: Iterable[int]) -> tuple[Tile, ...]:
        return tuple(self._faces[tile] for tile in tiles)

    def _of_pool(self, seat: int, count: int) -> list[int]:
        tiles, self._pool = self._pool[:count], self._pool[count:]
        if seat == self._viewer:
            self._seen.update(tiles)
        return tiles

    def _drawn(self, seat: int, count: int) -> list[int]:
        tiles = self._of_pool(seat, count)
        self._racks[seat] += tiles
        return tiles

    def _revealed(self, tiles: Iterable[Tile], place: list[int]) -> list[int]:
        """Takes tiles with these faces from a place; prefers tiles that the viewer has seen."""
        taken = []
        for face in tiles:
            held = [tile for tile in place if self._faces[tile] == face]
            if held:  # an illegal play may show a tile of the River
                taken.append(min(held, key=lambda tile: tile not in self._seen))
                place.remove(taken[-1])
        self._seen.update(taken)
        return taken

    def shuffle(self, rng: random.Random, kept: int) -> None:
        """Permutes the faces of unseen tiles; keeps racks that are open, or the values of racks at the round's end.

        The server's seed of the deal is another one, too, unless the game's end has shown it.
        """
        if self._seed and not self._is_open:
            self._seed = rng.randbytes(len(self._seed))
        hidden = [tile for tile in range(len(self._faces)) if tile not in {*self._seen, *self._pool[:kept]}]
        if not self._has_ended:
            self._exchange(hidden, rng)
            return
        if self._is_open:  # it stays unknown which tiles of a rack were dealt, and when the others were drawn
            for place in (*self._ended_racks, self._choice):
                self._exchange([tile for tile in place if tile in hidden], rng)
            return
        by_value = defaultdict(list)
        for tile in hidden:
            by_value[self._value(self._faces[tile])].append(tile)
        for alike in by_value.values():
            self._exchange(alike, rng)
        self._exchange([tile for tile in hidden if tile in self._pool], rng)

    def _value(self, face: Tile) -> int:
        if self._indicator is not None:
            return value_on_rack(face, okey_of(self._indicator))
        if face == self._trump_face:
            return -1  # its twin may score for its owner
        return 0 if face in JOKERS else number_of(face)

    def _exchange(self, tiles: Sequence[int], rng: random.Random) -> None:
        shown = list(self._shown(tiles))
        rng.shuffle(shown)
        for tile, face in zip(tiles, shown, strict=True):
            self._faces[tile] = face


def _same(event: Event) -> Event:
    return event
