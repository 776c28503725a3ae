"""The invariants object to changes that no rule allows. Each is made of one that random players made."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.events import (
    DraftSaved,
    ErrorClaimed,
    Event,
    GameEnded,
    IllegalPlayShown,
    RiverTileLaid,
    RoundEnded,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TilesPlayed,
    TurnEnded,
    TurnPassed,
    TurnPenalised,
    TurnTimedOut,
)
from engine.game import Game, RoundResult, round_of
from engine.presets import PRESETS
from engine.replay import advance
from engine.ruleset import (
    SABRA,
    MatchEnd,
    PoolEmptyMode,
    Preset,
    Ruleset,
    TurnDraw,
    TurnInvalidSubmission,
    TurnPlayAfterDraw,
)
from engine.tiles import JOKER
from support.invariants import Invariants
from support.random_play import players_of, random_changes

Corruption = Callable[[Game, tuple[Event, ...]], tuple[Event, ...]]
"""Makes another change of one on a game; the same where it cannot."""

SEVERAL = 3
"""Changes that are corrupted in each way."""
MOST_GAMES = 20
"""Games that are played to find them."""

TIMED = replace(SABRA, turn_time_limit_seconds=30)
MANY_JOKERS = replace(
    SABRA, geometry_jokers=8, initial_meld_threshold=50, pool_empty_mode=PoolEmptyMode.END_IMMEDIATELY
)
ROUNDS = replace(TIMED, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)
RIVER = replace(TIMED, turn_draw=TurnDraw.TWO_RIVER)
UNTIL_PLAYABLE = replace(TIMED, turn_draw=TurnDraw.UNTIL_PLAYABLE)
PLAYS_ON = replace(TIMED, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES)
PENALISED = PRESETS[Preset.GUIDE_B]
CLAIMED = replace(TIMED, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM)


def each(kind: type, corrupt: Callable[[Game, Any], Event]) -> Corruption:
    """Corrupts every event of a kind."""
    return lambda game, events: tuple(corrupt(game, event) if isinstance(event, kind) else event for event in events)


def by_another(kind: type) -> Corruption:
    """Has another player do what a player did."""

    def corrupt(game: Game, event: Any) -> Event:  # noqa: ANN401 - of any kind that has a seat
        changed: Event = replace(event, seat=next(seat for seat in game.active_seats if seat != event.seat))
        return changed

    return each(kind, corrupt)


def twice_as_many(kind: type) -> Corruption:
    """Has a player draw twice as many tiles of the pool."""

    def corrupt(game: Game, event: Any) -> Event:  # noqa: ANN401 - of any kind that has tiles
        changed: Event = replace(event, tiles=round_of(game).pool[: 2 * len(event.tiles)])
        return changed

    return each(kind, corrupt)


def scored(change: Callable[[Game, RoundResult], RoundResult]) -> Corruption:
    """Has a round bring something else."""
    return each(RoundEnded, lambda game, event: RoundEnded(change(game, event.result)))


def with_doubled_jokers(game: Game, result: RoundResult) -> RoundResult:
    """Every joker costs twice its penalty."""
    jokers = {rack.seat: rack.tiles.count(JOKER) * game.ruleset.score_joker_penalty for rack in round_of(game).racks}
    seats = tuple(replace(seat, rack_value=seat.rack_value + jokers[seat.seat]) for seat in result.seats)
    return replace(result, seats=seats)


def with_doubled_points(_game: Game, result: RoundResult) -> RoundResult:
    """Everyone wins and loses twice as much, so that the points still sum to zero."""
    return replace(result, seats=tuple(replace(seat, points=2 * seat.points) for seat in result.seats))


def with_another_winner(game: Game, result: RoundResult) -> RoundResult:
    """Somebody else has won, with the points of the winner."""
    winner, other = result.winners[0], next(seat for seat in game.active_seats if seat not in result.winners)
    points = {seat.seat: seat.points for seat in result.seats}
    points[winner], points[other] = points[other], points[winner]
    return replace(
        result, winners=(other,), seats=tuple(replace(seat, points=points[seat.seat]) for seat in result.seats)
    )


def drawn_twice(_game: Game, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """A player draws two tiles in place of one."""
    return tuple(copy for event in events for copy in ((event, event) if isinstance(event, TileDrawn) else (event,)))


def ended_late(_game: Game, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """The game goes on after its last round."""
    return tuple(event for event in events if not isinstance(event, GameEnded))


def ended_early(game: Game, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """The game ends with its first round."""
    is_over = isinstance(events[-1], RoundEnded)
    return (*events, GameEnded(game.active_seats[:1])) if is_over else events


CORRUPTIONS: dict[str, tuple[Ruleset, Corruption]] = {
    **{
        f"{kind.__name__} by another seat": (ruleset, by_another(kind))
        for kind, ruleset in {
            TileDrawn: SABRA,
            TilesDrawn: UNTIL_PLAYABLE,
            TilesOffered: RIVER,
            RiverTileLaid: RIVER,
            TurnEnded: PLAYS_ON,
            TurnPassed: SABRA,
            TurnTimedOut: TIMED,
            TurnPenalised: PENALISED,
            DraftSaved: TIMED,
            IllegalPlayShown: CLAIMED,
        }.items()
    },
    "a vote on an own play": (
        CLAIMED,
        each(ErrorClaimed, lambda game, event: replace(event, seat=round_of(game).turn.seat)),
    ),
    "a second draw": (PLAYS_ON, drawn_twice),
    "a doubled penalty of a time-out": (TIMED, twice_as_many(TurnTimedOut)),
    "a doubled penalty of an illegal play": (PENALISED, twice_as_many(TurnPenalised)),
    "doubled points of a play": (SABRA, each(TilesPlayed, lambda _, event: replace(event, points=2 * event.points))),
    "an initial meld declined where nobody asks": (
        SABRA,
        each(TileDrawn, lambda _, event: replace(event, declined=True)),
    ),
    "a doubled penalty of jokers": (MANY_JOKERS, scored(with_doubled_jokers)),
    "doubled points of a round": (SABRA, scored(with_doubled_points)),
    "another winner of a round": (SABRA, scored(with_another_winner)),
    "another winner of a game": (
        SABRA,
        each(GameEnded, lambda game, event: GameEnded(tuple({*game.active_seats} - {*event.winners}))),
    ),
    "no end after the last round": (SABRA, ended_late),
    "an end before the last round": (ROUNDS, ended_early),
}
"""Each with rules by which it can be made."""


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
                    probe(advance(before, corrupted), corrupted)
                objections += 1
                if objections == SEVERAL:
                    return
            invariants(change.applied.game, events)
            before = change.applied.game
    raise AssertionError(f"random players have given occasion to it {objections} times only")
