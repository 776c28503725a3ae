"""What one viewer sees of a game and of its events: a seat, HOST for the host without one, None for a spectator (R4).

The host without a seat sees what a spectator sees, and the rematch, which is for those who had a part in the game.
"""

from dataclasses import replace
from functools import lru_cache

from engine.events import Event, PlayerKicked, RematchCreated, RoundEnded, TurnTimedOut
from engine.family import family_of, family_of_event
from engine.game import Finished, Game, Playing, RoundResult
from engine.room_settings import DraftVisibility, Spectators
from engine.seats import Player, Rack
from engine.timers import due_ms
from engine.unions import Draft, FamilyEvent, Round, RoundView
from engine.views import EventView, GameView, PlayerView, TurnTimedOutView


def sees_drafts(game: Game, seat: int | None) -> bool:
    """Returns whether a seat or a spectator may see a draft of the turn in progress (draft_visibility)."""
    if not isinstance(game.phase, Playing):
        return False
    return game.settings.draft_visibility is DraftVisibility.EVERYONE or game.phase.round.turn.seat == seat


def is_open_to_spectators(game: Game) -> bool:
    """Returns whether a game shows anything to spectators (spectators). Everyone sees the lobby."""
    return game.settings.spectators is Spectators.ALLOWED or game.round is None


def see(game: Game, seat: int | None, draft: Draft | None = None) -> GameView:
    """Returns the view of a game.

    Args:
        game: The game.
        seat: The viewer.
        draft: The last draft of the game, if known.
    """
    round_ = game.round
    racks = {rack.seat: rack for rack in round_.racks} if round_ else {}
    return GameView(
        revision=game.revision,
        phase=type(game.phase),
        ruleset=game.ruleset,
        settings=game.settings,
        players=tuple([_player(player, racks.get(player.seat)) for player in game.players]),
        round_number=round_.number if round_ else 0,
        pool_count=len(round_.pool) if round_ else 0,
        turn=game.phase.round.turn if isinstance(game.phase, Playing) else None,
        seat=seat or None,
        rack=racks[seat].tiles if seat in racks else (),
        order=round_.order if round_ else (),
        round=_round(game, round_, seat, draft) if round_ else None,
        results=tuple([_open_result(result) for result in game.results]),
        winners=game.phase.winners if isinstance(game.phase, Finished) else (),
        next_round_ms=None if isinstance(game.phase, Playing) else due_ms(game),
        abandoned=isinstance(game.phase, Finished) and game.phase.abandoned,
        rematch_game_id="" if seat is None else game.rematch_game_id,
        reserved=game.reserved,
        position_seats=game.position_seats,
        deal_commitment=game.deal_commitment,
    )


def _open_result(result: RoundResult) -> RoundResult:
    """Returns a result, without racks and pool unless they are open."""
    return result if result.is_open or not result.racks else _without_racks(result)


@lru_cache(maxsize=256)
def _without_racks(result: RoundResult) -> RoundResult:
    """Returns a result without racks and pool. Cached, so that caches by identity know the result."""
    return replace(result, racks=(), pool=())


def _player(player: Player, rack: Rack | None) -> PlayerView:
    count, has_melded = (len(rack.tiles), rack.has_melded) if rack else (0, False)
    return PlayerView(
        player.seat,
        player.name,
        count,
        has_melded,
        player.total_points,
        player.resigned,
        player.bot or player.stand_in,
        player.timeouts_in_a_row,
        player.stand_in is not None,
        player.time_left_ms,
        player.is_ready,
        player.is_host,
        player.wants_abort,
        player.is_program,
        player.deal_seed,
    )


def _round(game: Game, round_: Round, seat: int | None, draft: Draft | None) -> RoundView:
    active = game.active_seats if isinstance(game.phase, Playing) else ()
    return family_of(game).see(round_, active, seat, draft if sees_drafts(game, seat) else None)


def see_event(event: Event, seat: int | None) -> EventView:
    """Returns the view of an event."""
    if isinstance(event, FamilyEvent):
        return family_of_event(event).see_event(event, seat)
    match event:
        case TurnTimedOut(drawer, tiles):
            return TurnTimedOutView(drawer, len(tiles), tiles if drawer == seat else ())
        case RoundEnded(result, next_round_ms):
            return RoundEnded(_open_result(result), next_round_ms)
        case PlayerKicked() | RematchCreated():
            return _see_address(event, seat)
        case _:
            return event


def _see_address(event: PlayerKicked | RematchCreated, seat: int | None) -> PlayerKicked | RematchCreated:
    """Returns an event that says where a game is found, without that for those who have no part in the game."""
    match event:
        case PlayerKicked(kicked, new_host):
            return PlayerKicked(kicked, new_host) if seat in {None, kicked} else event
        case RematchCreated():
            return RematchCreated("") if seat is None else event
