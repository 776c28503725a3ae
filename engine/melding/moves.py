"""The moves of a melding game in a record: made from events, and turned into actions again."""

from collections.abc import Iterator
from typing import Final

from engine.actions import TimeOut
from engine.events import Event, TurnTimedOut
from engine.game import Game
from engine.melding.actions import (
    ClaimError,
    DrawTile,
    Knock,
    LayOnRiver,
    MeldingAction,
    Pass,
    PlayTiles,
    RequestRedeal,
    TurnAction,
)
from engine.melding.events import (
    ErrorClaimed,
    IllegalPlayShown,
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
from engine.melding.grid.cells import Grid, in_rows
from engine.melding.melds import ProposedMeld
from engine.melding.table import ProposedTable, as_proposed_table
from engine.moves import OF_ALL_GAMES, Move, MoveKind
from engine.tiles import JOKER

_NOTHING: Final = ProposedMeld(())
"""A meld without tiles, which makes every table illegal."""
_UNFINISHED: Final = (ProposedMeld((JOKER,)),)
"""A draft that differs from every table."""
BY_BOTS: Final = frozenset(
    {
        MoveKind.PLAY,
        MoveKind.DRAW,
        MoveKind.LAY_ON_RIVER,
        MoveKind.PASS_TURN,
        MoveKind.SHOW,
        MoveKind.CLAIM,
        MoveKind.OBJECT,
        MoveKind.PENALTY,
        MoveKind.KNOCK,
    }
)
"""The moves that a bot may make for an absent player."""


def move_of(game: Game, revision: int, time_ms: int, events: tuple[Event, ...]) -> Move | None:
    """Returns the move that led to the events of a change; None for changes that are not part of a record."""
    match events:
        case (RedealDemanded(seat), RoundStarted() as dealt, *_):
            return Move(revision, time_ms, MoveKind.REDEAL, seat, dealt=dealt)
        case (TilesPlayed(seat, _, melds, _, pulled), *others):
            kind = MoveKind.KNOCK if PlayerKnocked(seat) in others else MoveKind.PLAY
            index = len(round_of(game).river) - len(pulled) if pulled else None
            table = as_proposed_table(melds, rules_of(game))
            return Move(revision, time_ms, kind, seat, table=table, river_index=index)
        case (TurnTimedOut(seat), TilesPlayed(table=melds), *_):
            return Move(revision, time_ms, MoveKind.TIME_OUT, seat, table=as_proposed_table(melds, rules_of(game)))
        case (IllegalPlayShown(seat, shown), *_):
            return Move(revision, time_ms, MoveKind.SHOW, seat, table=_expressible(shown))
        case _:
            return _move_without_table(revision, time_ms, events[0])


def _expressible(shown: ProposedTable) -> ProposedTable:
    """Returns the table of an illegal play as the notation can express it.

    A grid is in the order of rows. Melds that declare more or fewer faces than they have jokers lose them; an
    empty meld keeps the table illegal.
    """
    if isinstance(shown, Grid):
        return in_rows(shown) if shown.placements else ()
    if all(len(meld.declared) in {0, meld.tiles.count(JOKER)} for meld in shown):
        return shown
    return (*(ProposedMeld(meld.tiles, meld.kind) for meld in shown), _NOTHING)


def _move_without_table(revision: int, time_ms: int, event: Event) -> Move | None:
    match event:
        case TileDrawn(seat, tile):
            return Move(revision, time_ms, MoveKind.DRAW, seat, (tile,))
        case TilesDrawn(seat, tiles) | TilesOffered(seat, tiles):
            return Move(revision, time_ms, MoveKind.DRAW, seat, tiles)
        case RiverTileLaid(seat, tile):
            return Move(revision, time_ms, MoveKind.LAY_ON_RIVER, seat, (tile,))
        case TurnPassed(seat) | TurnEnded(seat):
            return Move(revision, time_ms, MoveKind.PASS_TURN, seat)
        case PlayerKnocked(seat):
            return Move(revision, time_ms, MoveKind.KNOCK, seat)
        case ErrorClaimed(seat, agrees):
            return Move(revision, time_ms, MoveKind.CLAIM if agrees else MoveKind.OBJECT, seat)
        case TurnPenalised(seat, tiles):
            return Move(revision, time_ms, MoveKind.PENALTY, seat, tiles)
        case TurnTimedOut(seat, tiles):
            return Move(revision, time_ms, MoveKind.TIME_OUT, seat, tiles)
        case _:
            return None


def is_complete(move: Move) -> bool:
    """Returns whether a move has the parts that its kind needs, and no other, but its seat and its player."""
    kind = move.kind
    deals, plays = kind in {MoveKind.DEAL, MoveKind.REDEAL}, kind in {MoveKind.PLAY, MoveKind.SHOW}
    return (
        kind in BY_BOTS | OF_ALL_GAMES | {MoveKind.REDEAL}
        and not move.hand
        and (isinstance(move.dealt, RoundStarted) if deals else move.dealt is None)
        and (plays == (move.table is not None) or kind in {MoveKind.TIME_OUT, MoveKind.KNOCK})
        and (move.river_index is None or (kind in {MoveKind.PLAY, MoveKind.KNOCK} and move.table is not None))
        and (len(move.tiles) == 1 or kind is not MoveKind.LAY_ON_RIVER)
    )


def actions(game: Game, move: Move) -> Iterator[MeldingAction | TimeOut]:
    """Yields actions that may have been the move; an event does not say everything that led to it."""
    table, seat = move.table or (), move.seat
    match move:
        case Move(kind=MoveKind.REDEAL, dealt=RoundStarted() as dealt):
            yield RequestRedeal(seat, dealt)
        case Move(kind=MoveKind.TIME_OUT):  # without a draft, with an unfinished one, or with the played one
            yield from map(TimeOut, (None, _UNFINISHED) if move.table is None else (move.table,))
        case Move(
            kind=MoveKind.SHOW
        ):  # which River tile an illegal play pulled is not shown; the last one is not there
            river = round_of(game).river if game.round else ()
            yield from (PlayTiles(seat, table, index) for index in (None, *range(len(river) + 1)))
        case Move(kind=MoveKind.PENALTY):  # an illegal play with a penalty is not shown; none leaves the rack as it is
            yield PlayTiles(seat, ())
        case Move(kind=MoveKind.CLAIM | MoveKind.OBJECT):
            shown = round_of(game).shown_play if game.round else None
            yield ClaimError(seat, shown.revision if shown else game.revision, move.kind is MoveKind.CLAIM)
        case _:
            yield _plain_action(move)


def _plain_action(move: Move) -> TurnAction:
    seat = move.seat
    match move.kind:
        case MoveKind.PLAY:  # a call without the last tiles means nothing
            return PlayTiles(seat, move.table or (), move.river_index, calls_rummikub=True)
        case MoveKind.DRAW:
            return DrawTile(seat)
        case MoveKind.LAY_ON_RIVER:
            return LayOnRiver(seat, move.tiles[0])
        case MoveKind.KNOCK if move.table is not None:
            return PlayTiles(seat, move.table, move.river_index, knocks=True)
        case MoveKind.KNOCK:
            return Knock(seat)
        case _:
            return Pass(seat)
