"""Tests that the invariants reject illegal changes, each a corruption of a change by random players."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.events import (
    AbortRequested,
    ClockStopped,
    Event,
    GameAborted,
    GameEnded,
    PlayerAbsent,
    PlayerJoined,
    PlayerKicked,
    PlayerReturned,
    RoundEnded,
    TurnTimedOut,
)
from engine.game import Game, RoundResult
from engine.melding.events import (
    ErrorClaimed,
    IllegalPlayShown,
    RiverTileLaid,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TilesPlayed,
    TurnEnded,
    TurnPassed,
    TurnPenalised,
)
from engine.melding.game import round_of, rules_of
from engine.melding.grid.cells import Cell, Grid, Placement
from engine.melding.presets import PRESETS
from engine.melding.ruleset import (
    SABRA,
    MatchEnd,
    PoolEmptyMode,
    Preset,
    TurnDraw,
    TurnInvalidSubmission,
    TurnPlayAfterDraw,
)
from engine.melding.table import tiles_on
from engine.replay import advance
from engine.room_settings import RacksShown
from engine.seats import BotLevel
from engine.tiles import JOKER
from support.invariants import Invariants
from support.random_play import players_of, random_changes
from support.rooms import Rules, room

pytestmark = pytest.mark.slow

Corruption = Callable[[Game, tuple[Event, ...]], tuple[Event, ...]]
"""Returns a corrupted change, or the same change if the corruption does not apply."""

SEVERAL = 2
"""The number of changes to corrupt in each way."""
MOST_GAMES = 60
"""The number of games to search for them."""

TIMED = room(SABRA, turn_time_limit_seconds=30)
MANY_JOKERS = replace(
    SABRA, geometry_jokers=8, initial_meld_threshold=50, pool_empty_mode=PoolEmptyMode.END_IMMEDIATELY
)
ROUNDS = room(TIMED, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)
RIVER = room(TIMED, turn_draw=TurnDraw.TWO_RIVER)
UNTIL_PLAYABLE = room(TIMED, turn_draw=TurnDraw.UNTIL_PLAYABLE)
PLAYS_ON = room(TIMED, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES)
PENALISED = PRESETS[Preset.GUIDE_B]
CROSS = replace(PRESETS[Preset.CROSS], geometry_jokers=8)
ABSENT = room(ROUNDS, absent_after_timeouts=1)
CLOCKED = room(ROUNDS, clock_total_seconds=60, clock_increment_seconds=5)
CLAIMED = room(TIMED, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM)


def each(kind: type, corrupt: Callable[[Game, Any], Event]) -> Corruption:
    """Returns a corruption of every event of a type."""
    return lambda game, events: tuple(corrupt(game, event) if isinstance(event, kind) else event for event in events)


def by_another(kind: type) -> Corruption:
    """Moves an event to another player's seat."""

    def corrupt(game: Game, event: Any) -> Event:  # noqa: ANN401 - any event with a seat
        changed: Event = replace(event, seat=next(seat for seat in game.active_seats if seat != event.seat))
        return changed

    return each(kind, corrupt)


def twice_as_many(kind: type) -> Corruption:
    """Doubles the number of tiles that a player draws."""

    def corrupt(game: Game, event: Any) -> Event:  # noqa: ANN401 - any event with tiles
        changed: Event = replace(event, tiles=round_of(game).pool[: 2 * len(event.tiles)])
        return changed

    return each(kind, corrupt)


def scored(change: Callable[[Game, RoundResult], RoundResult]) -> Corruption:
    """Returns a corruption of the result of a round."""
    return each(RoundEnded, lambda game, event: RoundEnded(change(game, event.result)))


def with_doubled_jokers(game: Game, result: RoundResult) -> RoundResult:
    """Doubles the penalty of every joker."""
    jokers = {rack.seat: rack.tiles.count(JOKER) * rules_of(game).score_joker_penalty for rack in round_of(game).racks}
    seats = tuple(replace(seat, rack_value=seat.rack_value + jokers[seat.seat]) for seat in result.seats)
    return replace(result, seats=seats)


def with_doubled_points(_game: Game, result: RoundResult) -> RoundResult:
    """Doubles all points, so that they still sum to zero."""
    return replace(result, seats=tuple(replace(seat, points=2 * seat.points) for seat in result.seats))


def with_another_winner(game: Game, result: RoundResult) -> RoundResult:
    """Exchanges the winner and another player."""
    winner, other = result.winners[0], next(seat for seat in game.active_seats if seat not in result.winners)
    points = {seat.seat: seat.points for seat in result.seats}
    points[winner], points[other] = points[other], points[winner]
    return replace(
        result, winners=(other,), seats=tuple(replace(seat, points=points[seat.seat]) for seat in result.seats)
    )


def with_exchanged_racks(_game: Game, result: RoundResult) -> RoundResult:
    """Shows each rack as another seat's."""
    tiles = [rack.tiles for rack in result.racks]
    return replace(
        result,
        racks=tuple(
            replace(rack, tiles=other) for rack, other in zip(result.racks, (*tiles[1:], *tiles[:1]), strict=True)
        ),
    )


def opened(_game: Game, result: RoundResult) -> RoundResult:
    """Shows racks and pool at once."""
    return replace(result, is_open=True)


def with_a_moved_grid(game: Game, event: TilesPlayed) -> TilesPlayed:
    """Moves all tiles one cell to the right, unless the table was empty."""
    if not tiles_on(round_of(game).table):
        return event
    return changed_grid(event, lambda one: replace(one, cell=Cell(one.cell.x + 1, one.cell.y)))


def with_jokers_without_faces(_game: Game, event: TilesPlayed) -> TilesPlayed:
    """Removes the faces of jokers."""
    return changed_grid(event, lambda one: replace(one, faces=()))


def changed_grid(event: TilesPlayed, change: Callable[[Placement], Placement]) -> TilesPlayed:
    """Changes all tiles of a grid."""
    assert isinstance(event.table, Grid)
    return replace(event, table=Grid(tuple(map(change, event.table.placements))))


def drawn_twice(_game: Game, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Draws two tiles instead of one."""
    return tuple(copy for event in events for copy in ((event, event) if isinstance(event, TileDrawn) else (event,)))


def ended_late(_game: Game, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Continues the game after its last round."""
    return tuple(event for event in events if not isinstance(event, GameEnded))


def ended_early(game: Game, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Ends the game with its first round."""
    is_over = isinstance(events[-1], RoundEnded)
    return (*events, GameEnded(game.active_seats[:1])) if is_over else events


def without(kind: type) -> Corruption:
    """Leaves out every event of a type."""
    return lambda _, events: tuple(event for event in events if not isinstance(event, kind))


ACTORS: dict[type, Rules] = {
    TileDrawn: SABRA,
    TilesDrawn: UNTIL_PLAYABLE,
    TilesOffered: RIVER,
    RiverTileLaid: RIVER,
    TurnEnded: PLAYS_ON,
    TurnPassed: SABRA,
    TurnTimedOut: TIMED,
    TurnPenalised: PENALISED,
    IllegalPlayShown: CLAIMED,
    PlayerAbsent: ABSENT,
    PlayerReturned: ABSENT,
    ClockStopped: CLOCKED,
}
CORRUPTIONS: dict[str, tuple[Rules, Corruption]] = {
    **{f"{kind.__name__} by another seat": (ruleset, by_another(kind)) for kind, ruleset in ACTORS.items()},
    "a vote on an own play": (
        CLAIMED,
        each(ErrorClaimed, lambda game, event: replace(event, seat=round_of(game).turn.seat)),
    ),
    "a second draw": (PLAYS_ON, drawn_twice),
    "a doubled penalty of a time-out": (TIMED, twice_as_many(TurnTimedOut)),
    "a doubled penalty of an illegal play": (PENALISED, twice_as_many(TurnPenalised)),
    "doubled points of a play": (SABRA, each(TilesPlayed, lambda _, event: replace(event, points=2 * event.points))),
    "doubled points of a play on a grid": (
        CROSS,
        each(TilesPlayed, lambda _, event: replace(event, points=2 * event.points)),
    ),
    "a grid that moves with a play": (CROSS, each(TilesPlayed, with_a_moved_grid)),
    "a joker of a grid without a face": (CROSS, each(TilesPlayed, with_jokers_without_faces)),
    "an initial meld declined where nobody asks": (
        SABRA,
        each(TileDrawn, lambda _, event: replace(event, declined=True)),
    ),
    "a doubled penalty of jokers": (MANY_JOKERS, scored(with_doubled_jokers)),
    "doubled points of a round": (SABRA, scored(with_doubled_points)),
    "another winner of a round": (SABRA, scored(with_another_winner)),
    "the racks of other seats": (SABRA, scored(with_exchanged_racks)),
    "racks shown too early": (room(ROUNDS, racks_shown=RacksShown.AFTER_GAME), scored(opened)),
    "another winner of a game": (
        SABRA,
        each(GameEnded, lambda game, event: GameEnded(tuple({*game.active_seats} - {*event.winners}))),
    ),
    "a second host": (
        SABRA,
        each(PlayerJoined, lambda game, event: replace(event, is_host=event.is_host or game.host_seat is not None)),
    ),
    "a host who goes without a successor": (
        SABRA,
        each(PlayerKicked, lambda _, event: replace(event, new_host=None)),
    ),
    "an abort without votes": (SABRA, each(AbortRequested, lambda _, __: GameAborted(by_host=False))),
    "a player who is not absent after the last time-out": (ABSENT, without(PlayerAbsent)),
    "a player who is absent too early": (
        room(ABSENT, absent_after_timeouts=2),
        lambda _, events: (
            *events,
            *(PlayerAbsent(event.seat, BotLevel.EASY) for event in events if isinstance(event, TurnTimedOut)),
        ),
    ),
    "another bot for an absent player": (
        ABSENT,
        each(PlayerAbsent, lambda _, event: replace(event, stand_in=BotLevel.HARD)),
    ),
    "a return that is left out": (ABSENT, without(PlayerReturned)),
    "an abandoned game that has a winner": (
        ABSENT,
        each(GameEnded, lambda _, event: replace(event, abandoned=False) if event.abandoned else event),
    ),
    "an end of a game that is not abandoned": (
        ABSENT,
        each(GameEnded, lambda _, event: replace(event, abandoned=not event.abandoned)),
    ),
    "a bank that grows": (
        CLOCKED,
        each(ClockStopped, lambda _, event: replace(event, time_left_ms=event.time_left_ms + 60_000)),
    ),
    "a clock that is not stopped": (CLOCKED, without(ClockStopped)),
    "no end after the last round": (SABRA, ended_late),
    "an end before the last round": (ROUNDS, ended_early),
}
"""Corruptions, with rules under which they can occur."""


@pytest.mark.unmeasured
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_invariants_object_to(name: str) -> None:
    ruleset, corrupt = CORRUPTIONS[name]
    objections = 0
    for seed in range(MOST_GAMES):
        invariants, before = Invariants(), None
        for change in random_changes(seed, players_of(ruleset, seed), ruleset):
            events = change.applied.events
            corrupted = corrupt(before, events) if before else events
            if before and corrupted != events:
                probe = copy.copy(invariants)
                probe.history = [*invariants.history]
                with pytest.raises(AssertionError):
                    probe(advance(before, corrupted), corrupted, change.action)
                objections += 1
                if objections == SEVERAL:
                    return
            invariants(change.applied.game, events, change.action)
            before = change.applied.game
    raise AssertionError(f"random players have given occasion to it {objections} times only")
