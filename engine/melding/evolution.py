"""Applies events to a round of a melding game. Nothing here refuses an event."""

from dataclasses import replace

from engine.events import PlayerResigned, SeatTakenOver, TurnEvent, TurnStarted, TurnTimedOut
from engine.game import Game
from engine.melding.events import (
    ErrorClaimed,
    IllegalPlayShown,
    LastChanceStarted,
    MeldingEvent,
    PlayerKnocked,
    RedealDemanded,
    RiverTileLaid,
    RoundStarted,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TilesPlayed,
    TurnEnded,
    TurnPassed,
    TurnPenalised,
)
from engine.melding.game import round_of, rules_of
from engine.melding.round import Choosing, Drawing, Drawn, MeldingRound, Open, ShownPlay, Step
from engine.melding.ruleset import DRAWS, Ruleset, TurnPlayAfterDraw
from engine.melding.table import Table, empty_table
from engine.seats import Rack, Turn
from engine.tiles import Tile, in_order, without


def evolve(game: Game, event: TurnEvent | MeldingEvent) -> MeldingRound:
    """Returns the round after an event."""
    if isinstance(event, RoundStarted):
        return _round_started(rules_of(game), event)
    return _evolved(game, _declined(round_of(game), event), event)


def _evolved(game: Game, round_: MeldingRound, event: TurnEvent | MeldingEvent) -> MeldingRound:  # noqa: C901 - one case an event, each a line
    match event:
        case RoundStarted() | RedealDemanded() | PlayerKnocked():
            return round_
        case PlayerResigned() | SeatTakenOver():
            return _with_or_without_player(round_, event)
        case TurnStarted(turn):
            return _turn_started(round_, turn)
        case TilesPlayed():
            return _tiles_played(round_, event)
        case TileDrawn(seat, tile):
            return _drawn_in_turn(rules_of(game), round_, seat, (tile,))
        case TilesDrawn(seat, tiles):
            return _drawn_in_turn(rules_of(game), round_, seat, tiles)
        case TilesOffered(_, tiles):
            return replace(round_, step=Choosing(tiles), pool=round_.pool[2:], passed=())
        case RiverTileLaid(seat, tile):
            return _river_tile_laid(round_, seat, tile)
        case TurnEnded():
            return replace(round_, step=Open())
        case TurnPassed(seat):
            return _passed(round_, seat)
        case TurnTimedOut(seat, ()) | TurnPenalised(seat, ()):
            return round_ if round_.pool or not isinstance(round_.step, Open) else _passed(round_, seat)
        case TurnTimedOut(seat, tiles) | TurnPenalised(seat, tiles):
            return _tiles_drawn(round_, seat, tiles)
        case IllegalPlayShown(_, table, reasons):
            return replace(round_, shown_play=ShownPlay(game.revision + 1, table, reasons))
        case ErrorClaimed(seat, agrees):
            return _claimed(round_, seat, agrees)
        case LastChanceStarted(seats):
            return replace(round_, last_chance=seats)


def _round_started(ruleset: Ruleset, event: RoundStarted) -> MeldingRound:
    """Returns a round as it begins. Without an initial meld, all players count as those who have made it."""
    racks = event.racks
    if not ruleset.initial_meld_needed:
        racks = tuple(replace(rack, has_melded=True) for rack in racks)
    table = empty_table(ruleset) if event.table is None else event.table
    turn = Turn(event.order[0], None)
    return MeldingRound(event.number, event.order, table, racks, event.pool, turn)


def _declined(round_: MeldingRound, event: TurnEvent | MeldingEvent) -> MeldingRound:
    """Returns the round with the seat added that has just declined the initial meld."""
    match event:
        case (
            TileDrawn(seat, declined=True)
            | TilesDrawn(seat, declined=True)
            | TilesOffered(seat, declined=True)
            | TurnEnded(seat, declined=True)
            | TurnPassed(seat, declined=True)
        ):
            return replace(round_, declined=_with_seat(round_.declined, seat))
        case _:
            return round_


# Values that every turn creates are built by their constructors: `replace` takes three times as long.


def _turn_started(round_: MeldingRound, turn: Turn) -> MeldingRound:
    """Returns the round with a new turn. If last turns are in progress, those before it are dropped."""
    if isinstance(round_.step, Choosing):
        raise ValueError("a turn starts only after the River choice of the turn before it")  # noqa: TRY004 - an impossible history
    left = round_.last_chance
    if left is not None:
        left = left[left.index(turn.seat) :]
    return MeldingRound(
        round_.number,
        round_.order,
        round_.table,
        round_.racks,
        round_.pool,
        turn,
        round_.passed,
        round_.river,
        last_chance=left,
        declined=round_.declined,
    )


def _with_rack(round_: MeldingRound, rack: Rack) -> tuple[Rack, ...]:
    return tuple([rack if old.seat == rack.seat else old for old in round_.racks])


def _moved(
    round_: MeldingRound, rack: Rack, table: Table, pool: tuple[Tile, ...], river: tuple[Tile, ...]
) -> MeldingRound:
    """Returns the round after a player has moved tiles, which clears the passes."""
    return MeldingRound(
        round_.number,
        round_.order,
        table,
        _with_rack(round_, rack),
        pool,
        round_.turn,
        (),
        river,
        round_.step,
        round_.shown_play,
        round_.last_chance,
        round_.declined,
    )


def _tiles_played(round_: MeldingRound, event: TilesPlayed) -> MeldingRound:
    held = round_.rack(event.seat).tiles + event.pulled
    rack = Rack(event.seat, without(held, event.tiles), has_melded=True)
    river = round_.river[: len(round_.river) - len(event.pulled)]
    return _moved(round_, rack, event.table, round_.pool, river)


def _drawn_in_turn(ruleset: Ruleset, round_: MeldingRound, seat: int, tiles: tuple[Tile, ...]) -> MeldingRound:
    drawn = _tiles_drawn(round_, seat, tiles)
    if ruleset.turn_play_after_draw is TurnPlayAfterDraw.FORBIDDEN:
        return drawn
    return replace(drawn, step=_step_after_draw(ruleset, round_.step, tiles[-1]))


def _step_after_draw(ruleset: Ruleset, step: Step, tile: Tile) -> Step:
    """Returns the step after a draw in a turn that goes on."""
    drawn = (*step.tiles, tile) if isinstance(step, Drawing) else (tile,)
    return Drawing(drawn) if len(drawn) < DRAWS.get(ruleset.turn_draw, 0) else Drawn(tile)


def _river_tile_laid(round_: MeldingRound, seat: int, tile: Tile) -> MeldingRound:
    if not isinstance(round_.step, Choosing):
        raise ValueError("a tile is laid on the River only while a choice is pending")  # noqa: TRY004 - as above
    other = without(round_.step.tiles, (tile,))
    racks = _with_rack(round_, _with_tiles(round_.rack(seat), other))
    return replace(round_, racks=racks, river=(*round_.river, tile), step=Open())


def _tiles_drawn(round_: MeldingRound, seat: int, tiles: tuple[Tile, ...]) -> MeldingRound:
    """Returns the round with the first tiles of the pool on a rack."""
    rack = _with_tiles(round_.rack(seat), tiles)
    return _moved(round_, rack, round_.table, round_.pool[len(tiles) :], round_.river)


def _with_tiles(rack: Rack, tiles: tuple[Tile, ...]) -> Rack:
    return Rack(rack.seat, in_order(rack.tiles + tiles), rack.has_melded)


def _claimed(round_: MeldingRound, seat: int, agrees: bool) -> MeldingRound:
    shown = round_.shown_play
    if shown is None:
        raise ValueError("a claim needs a shown play")
    voted = replace(shown, claimed=_with_seat(shown.claimed, seat)) if agrees else replace(shown, against=seat)
    return replace(round_, shown_play=voted)


def _with_or_without_player(round_: MeldingRound, event: PlayerResigned | SeatTakenOver) -> MeldingRound:
    match event:
        case PlayerResigned(seat):
            return _resigned(round_, seat)
        case SeatTakenOver(seat):
            return _taken_over(round_, seat)


def _resigned(round_: MeldingRound, seat: int) -> MeldingRound:
    """Returns the round after a resignation. Tiles of a pending River choice go to the player's rack, out of play."""
    if round_.turn.seat != seat or not isinstance(round_.step, Choosing):
        return round_
    racks = _with_rack(round_, _with_tiles(round_.rack(seat), round_.step.tiles))
    return replace(round_, racks=racks, step=Open())


def _taken_over(round_: MeldingRound, seat: int) -> MeldingRound:
    """Returns the round after a seat was taken over, which gets back no last turn that its resignation has cost it."""
    if round_.last_chance is None:
        return round_
    return replace(round_, last_chance=tuple(one for one in round_.last_chance if one != seat))


def _passed(round_: MeldingRound, seat: int) -> MeldingRound:
    return replace(round_, passed=_with_seat(round_.passed, seat))


def _with_seat(seats: tuple[int, ...], seat: int) -> tuple[int, ...]:
    """Returns seats with one added, in ascending order."""
    return tuple(sorted({*seats, seat}))
