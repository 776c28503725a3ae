from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import get_args

import pytest

from engine.events import Event, RoundStarted, StartDraw, TileDrawn, TilesPlayed, TurnTimedOut
from engine.game import Finished, Game, Lobby, Playing, Rack, RoundOver
from engine.melds import Meld
from engine.notation import parse_tile, parse_tiles
from engine.ruleset import SABRA, MatchEnd
from engine.tiles import Tile
from engine.views import (
    GameView,
    PlayerView,
    RoundStartedView,
    TileDrawnView,
    TurnTimedOutView,
    see,
    see_event,
)
from random_play import Change, random_changes

TWO_ROUNDS = replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)
SEATS = (None, 1, 2, 3)
TILE_FIELDS = {"tile", "tiles", "rack", "pool", "racks", "joker_faces", "start_draw", "deal"}
"""Names of fields that hold tiles, in any dataclass of the engine."""


CHANGES: tuple[Change, ...] = tuple(random_changes(49, 3, TWO_ROUNDS))
"""A game in which everything happens that can."""


def tiles_in(value: object, name: str = "") -> Iterator[Tile]:
    """Every tile anywhere in a value: what lies in a field of tiles, or in anything within it."""
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from tiles_in(getattr(value, field.name), field.name)
    elif isinstance(value, tuple | list | set | frozenset):
        for part in value:
            yield from tiles_in(part, name)
    elif isinstance(value, dict):
        raise AssertionError(f"a dict is not looked into: {name}")
    elif isinstance(value, int) and name in TILE_FIELDS:
        yield Tile(value)


def on_table(table: tuple[Meld, ...]) -> Counter[Tile]:
    return Counter(t for meld in table for t in tiles_in(meld))


def test_the_walk_finds_tiles_wherever_they_are() -> None:
    game = CHANGES[10].applied.game
    assert game.round is not None
    held = Counter(tiles_in(game)) - on_table(game.round.table)
    assert sum(held.values()) == sum(len(rack.tiles) for rack in game.round.racks) + len(game.round.pool)
    deal = next(event for change in CHANGES for event in change.applied.events if isinstance(event, RoundStarted))
    assert len(list(tiles_in(deal))) == 106 + len(deal.draws)


@pytest.mark.parametrize("seat", SEATS)
def test_a_seat_sees_the_table_and_its_own_rack_and_no_other_tile(seat: int | None) -> None:
    for change in CHANGES:
        game = change.applied.game
        seen = Counter(tiles_in(see(game, seat)))
        open_tiles: Counter[Tile] = Counter()
        if game.round is not None:
            own = (t for rack in game.round.racks if rack.seat == seat for t in rack.tiles)
            open_tiles = on_table(game.round.table) + Counter(own)
        assert seen == open_tiles


def open_tiles_of(event: Event, seat: int | None) -> Counter[Tile]:
    """What a seat may see of an event's tiles."""
    match event:
        case RoundStarted(draws=draws, racks=racks):
            own = [t for rack in racks if rack.seat == seat for t in rack.tiles]
            return Counter([*own, *(draw.tile for draw in draws)])
        case TileDrawn(drawer, tile):
            return Counter([tile] if drawer == seat else [])
        case TurnTimedOut(drawer, tiles):
            return Counter(tiles if drawer == seat else ())
        case TilesPlayed(tiles=tiles, table=table):
            return Counter(tiles) + on_table(table)
        case _:
            return Counter()


@pytest.mark.parametrize("seat", SEATS)
def test_a_seat_sees_of_events_what_is_open_or_its_own(seat: int | None) -> None:
    for change in CHANGES:
        for event in change.applied.events:
            assert Counter(tiles_in(see_event(event, seat))) == open_tiles_of(event, seat)


def rack(seat: int, tiles: str) -> Rack:
    return Rack(seat, parse_tiles(tiles))


def test_what_is_hidden_in_an_event_is_told_as_a_number_at_most() -> None:
    deal = RoundStarted(
        1, (StartDraw(1, parse_tile("R4")),), 1, (rack(1, "R1 R2"), rack(2, "B1 B2")), parse_tiles("K1 K2 K3")
    )
    draws = (StartDraw(1, parse_tile("R4")),)
    assert see_event(deal, 2) == RoundStartedView(1, draws, 1, parse_tiles("B1 B2"), pool_count=3)
    assert see_event(deal, None) == RoundStartedView(1, draws, 1, (), pool_count=3)
    drawn = TileDrawn(1, parse_tile("R4"))
    assert see_event(drawn, 1) == TileDrawnView(1, parse_tile("R4"))
    assert see_event(drawn, 2) == see_event(drawn, None) == TileDrawnView(1, None)
    timed_out = TurnTimedOut(1, parse_tiles("R4 R5 R6"))
    assert see_event(timed_out, 1) == TurnTimedOutView(1, 3, parse_tiles("R4 R5 R6"))
    assert see_event(timed_out, 2) == see_event(timed_out, None) == TurnTimedOutView(1, 3, ())


def test_everyone_sees_the_open_part_of_a_game() -> None:
    for change in CHANGES:
        game = change.applied.game
        views = [replace(see(game, seat), seat=None, rack=()) for seat in SEATS]
        assert len({repr(view) for view in views}) == 1
        check_open_part(views[0], game)


def check_open_part(view: GameView, game: Game) -> None:
    round_ = game.round
    assert (view.revision, view.ruleset, view.results) == (game.revision, game.ruleset, game.results)
    assert view.phase is type(game.phase)
    assert view.winners == (game.phase.winners if isinstance(game.phase, Finished) else ())
    assert view.turn == (game.phase.round.turn if isinstance(game.phase, Playing) else None)
    if round_ is None:
        assert (view.round_number, view.table, view.pool_count) == (0, (), 0)
        return
    assert (view.round_number, view.table, view.pool_count) == (round_.number, round_.table, len(round_.pool))
    racks = {rack.seat: rack for rack in round_.racks}
    for player, seen in zip(game.players, view.players, strict=True):
        own = racks.get(player.seat, Rack(player.seat, ()))
        expected = (player.seat, player.name, len(own.tiles), own.has_melded, player.total_points, player.resigned)
        assert seen == PlayerView(*expected)


def test_the_game_looked_at_has_every_phase_and_every_event() -> None:
    assert {type(event) for change in CHANGES for event in change.applied.events} == set(get_args(Event))
    assert {type(change.applied.game.phase) for change in CHANGES} == {Lobby, Playing, RoundOver, Finished}


def test_a_player_who_was_not_dealt_in_has_no_tiles() -> None:
    before = next(change.applied.game for change in CHANGES if isinstance(change.applied.game.phase, Playing))
    assert isinstance(before.phase, Playing)
    round_ = before.phase.round
    view = see(replace(before, phase=Playing(replace(round_, racks=round_.racks[:2]))), 3)
    assert view.rack == ()
    assert view.players[2] == PlayerView(3, "Cleo", 0, has_melded=False, total_points=0, resigned=False)
