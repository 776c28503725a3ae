"""The operator's messages: games with everything visible, the stream of all changes, statistics."""

from collections.abc import Iterator
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from engine.game import Game, Playing
from engine.melding.round import Choosing, MeldingRound
from engine.seats import HOST
from engine.tiles import Tile, in_order
from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.v1 import game_pb2
from service.app.views import snapshot_view
from service.codec import fields
from service.codec.games import encode_change, encode_game, encode_result, encode_state, encode_summary
from service.codec.melding import encode_draft
from service.codec.tiles import tile_numbers
from service.model.record import STATE_OF_PHASE, Record, Visibility
from service.operator.admin import FullView, OperatorFilter, Statistics
from service.operator.change_feed import Changed, Deleted, Expired, Position, Rewritten, Update

_PLACE: Final = r"\d{1,15}-\d{1,20}"
_CURSOR: Final = rf"{_PLACE}(,{_PLACE})*"
_NUMBER_MAX: Final = 2**64 - 1
"""The largest number after the time of a place; Redis refuses larger ones."""
_STATE_NUMBERS: Final = {state: encode_state(phase) for phase, state in STATE_OF_PHASE.items()}
_VISIBILITIES: Final = {
    Visibility.PUBLIC: game_pb2.VISIBILITY_PUBLIC,
    Visibility.UNLISTED: game_pb2.VISIBILITY_UNLISTED,
}


def operator_filter(message: pb.GameFilter) -> OperatorFilter:
    """Returns which games the operator wants."""
    return OperatorFilter(
        fields.labels(message.labels, "filter.labels"),
        fields.operator_labels(message.operator_labels, "filter.operator_labels"),
        fields.player_ref(message.player_ref, "filter.player_ref"),
        fields.key_name(message.key_name, "filter.key_name"),
    )


def position(cursor: str) -> Position | None:
    """Returns the position of a cursor of WatchGames; None for an empty one."""
    expected = "the cursor of a response of WatchGames"
    found = fields.page_cursor(cursor, _CURSOR, "cursor", expected)
    places = tuple(found.split(",")) if found else ()
    if any(int(place.partition("-")[2]) > _NUMBER_MAX for place in places):
        raise fields.invalid("cursor", f"expected {expected}")
    return places or None


def cursor_of(position: Position) -> str:
    """Returns the opaque cursor of a position."""
    return fields.page_token(",".join(position))


def encode_update(update: Update) -> pb.WatchGamesResponse:
    """Returns an update of WatchGames."""
    response = pb.WatchGamesResponse(cursor=cursor_of(update.position))
    match update:
        case Deleted():
            response.deleted.game_id = update.game_id
        case Rewritten():
            response.rewritten.game_id = update.game_id
        case Expired(revision=revision):
            response.expired.CopyFrom(pb.ChangesExpired(game_id=update.game_id, revision=revision))
        case Changed(change=change, record=record):
            changed = response.changed
            changed.game_id = update.game_id
            changed.change.CopyFrom(encode_change(change))
            if record is not None:
                changed.state = encode_state(type(record.game.phase))
                changed.players.extend(_players(record))
                changed.labels.update(record.listing.labels)
                changed.operator_labels.update(record.operator_data.labels)
                changed.key_name = record.listing.key
                changed.from_position = bool(record.game.position_seats)
    return response


def _players(record: Record) -> Iterator[pb.GamePlayer]:
    for player in record.game.players:
        ref, is_bot = record.operator_data.ref_of(player.seat), player.bot is not None
        yield pb.GamePlayer(seat=player.seat, name=player.name, player_ref=ref, is_bot=is_bot)


def encode_full(view: FullView) -> pb.FullGame:
    """Returns a game with everything visible."""
    record = view.record
    seen = snapshot_view(record, HOST, view.now_ms, None, view.presence)
    message = encode_game(seen)
    del message.rounds[:]
    message.rounds.extend(map(encode_result, record.game.results))
    round_ = record.game.round
    return pb.FullGame(
        game=message,
        seats=(_seat(player, record.game) for player in _players(record)),
        pool=tile_numbers(round_.pool) if round_ else (),
        operator_labels=dict(record.operator_data.labels),
        draft=None if view.draft is None else encode_draft(view.draft),
        declined_seats=round_.declined if isinstance(round_, MeldingRound) else (),
        key_name=record.listing.key,
    )


def encode_reissued(view: FullView) -> bytes:
    """Returns an encoded ReissueSeatTokenResponse without the token."""
    return pb.ReissueSeatTokenResponse(game=encode_full(view)).SerializeToString()


def with_new_token(answer: bytes, token: str) -> bytes:
    """Appends the token to an encoded ReissueSeatTokenResponse."""
    return answer + pb.ReissueSeatTokenResponse(seat_token=token).SerializeToString()


def _seat(player: pb.GamePlayer, game: Game) -> pb.FullSeat:
    racks = {rack.seat: rack.tiles for rack in game.round.racks} if game.round else {}
    rack = in_order(racks.get(player.seat, ()))
    return pb.FullSeat(player=player, rack=tile_numbers(rack), offered=tile_numbers(_offered(game, player.seat)))


def _offered(game: Game, seat: int) -> tuple[Tile, ...]:
    if not isinstance(game.phase, Playing):
        return ()
    step, turn = game.phase.round.step, game.phase.round.turn
    return step.tiles if isinstance(step, Choosing) and turn.seat == seat else ()


def encode_listed(record: Record) -> pb.ListedGame:
    """Returns a game as an entry of the operator's list."""
    return pb.ListedGame(
        game=encode_summary(snapshot_view(record, None, record.updated_ms)),
        players=_players(record),
        visibility=_VISIBILITIES[record.listing.visibility],
        operator_labels=dict(record.operator_data.labels),
        update_time=_time(record.updated_ms),
        key_name=record.listing.key,
    )


def encode_statistics(statistics: Statistics, version: str) -> pb.GetStatisticsResponse:
    """Returns the numbers of games and of kept changes."""
    return pb.GetStatisticsResponse(
        games=(pb.StateCount(state=_STATE_NUMBERS[state], count=count) for state, count in statistics.games.items()),
        change_log_entries=statistics.log_entries,
        change_log_seconds=statistics.log_seconds,
        store_time=_time(statistics.now_ms),
        server_version=version,
    )


def _time(milliseconds: int) -> Timestamp:
    time = Timestamp()
    time.FromMilliseconds(milliseconds)
    return time
