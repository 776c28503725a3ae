"""Views of games and their events, for a seat or a spectator."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias, get_args

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from engine.game import Aborted, Finished, Lobby, Phase, Playing, RoundEnd, RoundOver, RoundResult, SeatResult
from engine.identity_cache import identity_cache
from engine.room_settings import RoomSettings
from engine.seats import BotLevel, ReservedSeat, Turn
from engine.tiles import Tile
from engine.unions import Ruleset
from engine.views import EventView, PlayerView
from rummikub.v1 import game_pb2, game_service_pb2, score_pb2
from service.app.commands.command import Answer, Decision
from service.app.identity import WatchTicket
from service.app.names import are_alike
from service.app.own_data import OwnData
from service.app.views import ChangeView, GameSnapshotView, SeatPresence, snapshot_view
from service.app.watch_updates import Content
from service.codec.families import EVENT_FIELDS, WHOLE_EVENTS, codec_of
from service.codec.fields import encode_etag, invalid, player_name, player_ref, seat_token
from service.codec.fields import game_id as game_id_of
from service.codec.rulesets import encode_difference, encode_ruleset, encode_settings
from service.codec.tiles import tile_numbers
from service.model.change import CauseKind
from service.model.record import STATE_OF_PHASE, GameState, Record, Visibility

OWN_SEATS_MAX: Final = 50
"""Most seats of a list of own games."""
_STATES: Final[dict[type[Phase], game_pb2.GameState.ValueType]] = {
    Lobby: game_pb2.GAME_STATE_LOBBY,
    Playing: game_pb2.GAME_STATE_PLAYING,
    RoundOver: game_pb2.GAME_STATE_ROUND_OVER,
    Finished: game_pb2.GAME_STATE_FINISHED,
    Aborted: game_pb2.GAME_STATE_ABORTED,
}
_LISTED_STATES: Final[dict[int, GameState]] = {number: STATE_OF_PHASE[phase] for phase, number in _STATES.items()}
_CONTENTS: Final[dict[int, Content]] = {
    game_service_pb2.WATCH_CONTENT_UNSPECIFIED: Content.CHANGES,
    game_service_pb2.WATCH_CONTENT_CHANGES: Content.CHANGES,
    game_service_pb2.WATCH_CONTENT_GAMES: Content.GAMES,
    game_service_pb2.WATCH_CONTENT_BOTH: Content.BOTH,
}
_CAUSES: Final = {kind: game_pb2.ChangeCause.Value(f"CHANGE_CAUSE_{kind.name}") for kind in CauseKind}
_ENDS: Final = {
    RoundEnd.WENT_OUT: score_pb2.ROUND_END_WENT_OUT,
    RoundEnd.BLOCKED: score_pb2.ROUND_END_BLOCKED,
    RoundEnd.RESIGNED: score_pb2.ROUND_END_RESIGNED,
    RoundEnd.KNOCKED: score_pb2.ROUND_END_KNOCKED,
    RoundEnd.VOID: score_pb2.ROUND_END_VOID,
}
_LEVELS: Final = {
    game_pb2.BOT_LEVEL_BEGINNER: BotLevel.BEGINNER,
    game_pb2.BOT_LEVEL_EASY: BotLevel.EASY,
    game_pb2.BOT_LEVEL_MEDIUM: BotLevel.MEDIUM,
    game_pb2.BOT_LEVEL_HARD: BotLevel.HARD,
    game_pb2.BOT_LEVEL_EXPERT: BotLevel.EXPERT,
    game_pb2.BOT_LEVEL_MASTER: BotLevel.MASTER,
}
_VISIBILITIES: Final[dict[int, Visibility]] = {
    game_pb2.VISIBILITY_UNSPECIFIED: Visibility.UNLISTED,
    game_pb2.VISIBILITY_PUBLIC: Visibility.PUBLIC,
    game_pb2.VISIBILITY_UNLISTED: Visibility.UNLISTED,
}
_VISIBILITY_NUMBERS: Final = {
    Visibility.PUBLIC: game_pb2.VISIBILITY_PUBLIC,
    Visibility.UNLISTED: game_pb2.VISIBILITY_UNLISTED,
}
_LEVEL_NUMBERS: Final = {level: number for number, level in _LEVELS.items()}


_WORD: Final = re.compile(r"(?<!^)(?=[A-Z])")
_Encoder: TypeAlias = Callable[[Any], Any]


def encode_state(phase: type[Phase]) -> game_pb2.GameState.ValueType:
    """Returns the state of a game in a phase."""
    return _STATES[phase]


def bot_level(number: game_pb2.BotLevel.ValueType) -> BotLevel:
    """Returns the level of a bot."""
    if number not in _LEVELS:
        raise invalid("level", f"{number} is not a level: expected 1 (beginner) to 6 (master)")
    return _LEVELS[number]


def visibility(number: int) -> Visibility:
    """Returns the visibility of a game to create; UNLISTED if unset."""
    if number not in _VISIBILITIES:
        raise invalid("visibility", f"{number} is not a visibility: expected 1 (public) or 2 (unlisted)")
    return _VISIBILITIES[number]


def _level_number(level: BotLevel | None) -> game_pb2.BotLevel.ValueType:
    return _LEVEL_NUMBERS[level] if level else game_pb2.BOT_LEVEL_UNSPECIFIED


def listed_states(numbers: Sequence[int], default: Iterable[GameState] = GameState) -> tuple[GameState, ...]:
    """Returns the states of the games to list, each once; those of the default if the request names none."""
    if len(numbers) > len(GameState):
        raise invalid("states", f"expected at most {len(GameState)}")
    for index, number in enumerate(numbers):
        if number not in _LISTED_STATES:
            raise invalid(f"states[{index}]", f"{number} is not a game state")
    wanted = {_LISTED_STATES[number] for number in numbers} or {*default}
    return tuple(state for state in GameState if state in wanted)


def watch_content(number: int) -> Content:
    """Returns what a watcher gets after each change; changes if unset."""
    if number not in _CONTENTS:
        raise invalid("content", f"{number} is not a content: expected 1 (changes), 2 (games) or 3 (both)")
    return _CONTENTS[number]


@lru_cache(maxsize=1_024)
def _time(milliseconds: int) -> Timestamp:
    """Returns a timestamp. Cached: callers must not change it."""
    seconds, rest = divmod(milliseconds, 1000)
    return Timestamp(seconds=seconds, nanos=rest * 1_000_000)


def _duration(milliseconds: int) -> Duration:
    """Returns a length of time."""
    seconds, rest = divmod(milliseconds, 1000)
    return Duration(seconds=seconds, nanos=rest * 1_000_000)


def encode_game(sight: GameSnapshotView) -> game_pb2.Game:
    """Returns a game as a seat or a spectator sees it."""
    return game_pb2.Game.FromString(_lasting_bytes(sight) + changed_game_bytes(sight))


def encode_changed_game(sight: GameSnapshotView) -> game_pb2.Game:
    """Returns a game without what never changes, for callers who have it already: its ruleset is half of a game."""
    return game_pb2.Game.FromString(changed_game_bytes(sight))


def changed_game_bytes(sight: GameSnapshotView) -> bytes:
    """Returns the same encoded. Encoded fields can be concatenated, so those that rarely change are cached."""
    view, message, round_ = sight.view, _uncached_fields(sight), b""
    if view.round:
        codec = codec_of(view.ruleset)
        codec.add_round(message, view.round)
        round_ = codec.round_bytes(view.round)
    players = map(_player_bytes, view.players) if sight.presence is None else _present_players(sight, sight.presence)
    return b"".join((message.SerializeToString(), *players, round_, *_result_bytes.map(view.results)))


def _lasting_bytes(sight: GameSnapshotView) -> bytes:
    """Returns the fields of a game that never change."""
    lasting = game_pb2.Game(
        visibility=_VISIBILITY_NUMBERS[sight.visibility],
        labels=dict(sight.labels),
        deal_commitment=sight.view.deal_commitment,
    )
    return _ruleset_bytes(sight.view.ruleset) + _settings_bytes(sight.view.settings) + lasting.SerializeToString()


@identity_cache(maxsize=1_024)
def _ruleset_bytes(rules: Ruleset) -> bytes:
    """Returns the field `ruleset` of a game."""
    return game_pb2.Game(ruleset=encode_ruleset(rules)).SerializeToString()


@identity_cache(maxsize=1_024)
def _settings_bytes(settings: RoomSettings) -> bytes:
    """Returns the field `settings` of a game."""
    return game_pb2.Game(settings=encode_settings(settings)).SerializeToString()


def game_encoder(number: int) -> Callable[[GameSnapshotView], game_pb2.Game]:
    """Returns the encoder of a game for the number of a GameView; that of all fields if unset."""
    if number not in game_service_pb2.GameView.values():
        raise invalid("view", f"{number} is not a view: expected 1 (basic) or 2 (full)")
    return encode_changed_game if number == game_service_pb2.GAME_VIEW_BASIC else encode_game


@lru_cache(maxsize=4_096)
def _player_bytes(player: PlayerView) -> bytes:
    """Returns the field `players` of a game with one player."""
    return game_pb2.Game(players=(_player(player),)).SerializeToString()


def _present_players(sight: GameSnapshotView, presence: Mapping[int, SeatPresence]) -> Iterator[bytes]:
    """Yields the field `players` of a game, with the presence of those who have one."""
    for player in sight.view.players:
        seat = presence.get(player.seat)
        if seat is None:
            yield _player_bytes(player)
        else:
            message = _player(player)
            message.is_connected = seat.is_connected
            if seat.last_seen_ms:
                message.last_seen_time.CopyFrom(_time(seat.last_seen_ms))
            yield game_pb2.Game(players=(message,)).SerializeToString()


def encode_presence(seat: SeatPresence) -> game_service_pb2.Presence:
    """Returns the presence of a seat's owner."""
    last = _time(seat.last_seen_ms) if seat.last_seen_ms else None
    return game_service_pb2.Presence(seat=seat.seat, is_connected=seat.is_connected, last_seen_time=last)


@identity_cache(maxsize=4_096)
def _result_bytes(result: RoundResult) -> bytes:
    """Returns the field `rounds` of a game with one round."""
    return game_pb2.Game(rounds=(encode_result(result),)).SerializeToString()


def _uncached_fields(sight: GameSnapshotView) -> game_pb2.Game:
    """Returns a game without ruleset, players, the family's part of a round, and finished rounds."""
    view = sight.view
    return game_pb2.Game(
        game_id=sight.game_id,
        revision=view.revision,
        etag=encode_etag(view.revision, sight.etag),
        state=_STATES[view.phase],
        round=view.round_number,
        pool_count=view.pool_count,
        turn=_turn(view.turn) if view.turn else None,
        seat=view.seat,
        rack=tile_numbers(view.rack),
        winner_seats=view.winners or None,  # setting an empty list takes as long as any other
        create_time=_time(sight.created_ms),
        update_time=_time(sight.updated_ms),
        server_time=_time(sight.now_ms),
        starter_seat=view.order[0] if view.order else None,
        turn_order=view.order,
        rematch_game_id=view.rematch_game_id,
        join_code=sight.join_code,
        next_round_time=None if view.next_round_ms is None else _time(view.next_round_ms),
        reserved_seats=map(_reserved, view.reserved),
        position_seats=view.position_seats or None,
        abandoned=view.abandoned,
    )


def encode_summary(sight: GameSnapshotView) -> game_pb2.GameSummary:
    """Returns a game as an entry of a list."""
    view, rules = sight.view, sight.view.ruleset
    seats = len(view.position_seats) or rules.players_max
    limit, (ruleset, settings) = view.settings.turn_time_limit_seconds, encode_difference(rules, view.settings)
    return game_pb2.GameSummary(
        game_id=sight.game_id,
        state=_STATES[view.phase],
        player_names=(player.name for player in view.players),
        players_max=seats,
        create_time=_time(sight.created_ms),
        revision=view.revision,
        ruleset=ruleset,
        settings=settings,
        seats_taken=len(view.players),
        seats_free=seats - len(view.players) if view.phase is Lobby else 0,
        bots=sum(player.bot is not None for player in view.players),
        turn_time_limit=Duration(seconds=limit) if limit else None,
        round=view.round_number,
        labels=dict(sight.labels),
        turn_seat=view.turn.seat if view.turn else None,
    )


def own_seats(sent: Sequence[game_service_pb2.OwnSeat]) -> Iterator[tuple[str, str]]:
    """Yields the id of the game and the token of each seat."""
    if not 0 < len(sent) <= OWN_SEATS_MAX:
        raise invalid("seats", f"expected 1 to {OWN_SEATS_MAX}")
    for index, seat in enumerate(sent):
        game_id = game_id_of(seat.game_id, f"seats[{index}].game_id")
        yield game_id, seat_token(seat.seat_token, f"seats[{index}].seat_token")


def reserved_seats(
    sent: Sequence[game_service_pb2.SeatReservation], seats: tuple[int, ...]
) -> tuple[tuple[ReservedSeat, str], ...]:
    """Returns the reserved seats of a new game with some seats, ascending, each with the reference of its player."""
    found: list[tuple[ReservedSeat, str]] = []
    for index, one in enumerate(sent):
        path = f"reserved_seats[{index}]"
        name, ref = player_name(one.name, f"{path}.name"), player_ref(one.player_ref, f"{path}.player_ref")
        if one.seat not in seats or any(one.seat == other.seat for other, _ in found):
            raise invalid(f"{path}.seat", f"expected one of the seats {', '.join(map(str, seats))}, each once")
        if not ref or any(ref == other for _, other in found):
            raise invalid(f"{path}.player_ref", "expected a reference to a player, each once")
        if any(are_alike(name, other.name) for other, _ in found):
            raise invalid(f"{path}.name", "expected a name that is unlike the others")
        found.append((ReservedSeat(one.seat, name), ref))
    return tuple(sorted(found, key=lambda one: one[0].seat))


def encode_own_game(sight: GameSnapshotView) -> game_service_pb2.OwnGame:
    """Returns a game of the caller. It has no tile."""
    turn = sight.view.turn
    return game_service_pb2.OwnGame(
        game_id=sight.game_id,
        game=encode_summary(sight),
        seat=sight.view.seat or None,
        turn_deadline=_time(turn.deadline_ms) if turn and turn.deadline_ms is not None else None,
        winner_seats=sight.view.winners,
    )


def encode_own_data(data: OwnData, *, has_ref: bool) -> game_service_pb2.OwnData:
    """Returns what is stored of a person in a game; `has_ref` is whether the receiver may know the reference."""
    return game_service_pb2.OwnData(
        game_id=data.game_id,
        seat=data.seat,
        player_ref=data.player_ref if has_ref else "",
        game=encode_game(data.sight) if data.sight else None,
        changes=map(encode_change, data.changes),
    )


def encode_watch_ticket(ticket: WatchTicket) -> game_service_pb2.CreateWatchTicketResponse:
    """Returns a ticket to watch a game."""
    return game_service_pb2.CreateWatchTicketResponse(
        ticket=f"{ticket.until_ms}-{ticket.code}", expire_time=_time(ticket.until_ms)
    )


def _player(player: PlayerView) -> game_pb2.Player:
    return game_pb2.Player(
        seat=player.seat,
        name=player.name,
        tile_count=player.tile_count,
        has_melded=player.has_melded,
        total_points=player.total_points,
        resigned=player.resigned,
        bot_level=_level_number(player.bot),
        timeouts_in_a_row=player.timeouts_in_a_row,
        is_absent=player.is_absent,
        time_left=None if player.time_left_ms is None else _duration(player.time_left_ms),
        is_ready=player.is_ready,
        is_host=player.is_host,
        wants_abort=player.wants_abort,
        is_program=player.is_program,
        deal_seed=player.deal_seed,
    )


def _turn(turn: Turn) -> game_pb2.Turn:
    """Returns a turn at its first step."""
    deadline = None if turn.deadline_ms is None else _time(turn.deadline_ms)
    return game_pb2.Turn(seat=turn.seat, deadline=deadline, step=game_pb2.TURN_STEP_OPEN, revision=turn.revision)


def encode_result(result: RoundResult) -> game_pb2.RoundResult:
    """Returns the result of a round."""
    racks = {rack.seat: rack.tiles for rack in result.racks}
    return game_pb2.RoundResult(
        round=result.number,
        round_end=_ENDS[result.end],
        winner_seats=result.winners,
        seats=(_seat_result(seat, racks.get(seat.seat, ())) for seat in result.seats),
        pool=tile_numbers(result.pool),
    )


def _seat_result(result: SeatResult, rack: tuple[Tile, ...]) -> score_pb2.SeatResult:
    return score_pb2.SeatResult(
        seat=result.seat,
        rack_value=result.rack_value,
        tile_count=result.tile_count,
        points=result.points,
        rack=tile_numbers(rack),
    )


def encode_change(sight: ChangeView) -> game_pb2.GameChange:
    """Returns a change as a seat or a spectator sees it."""
    return game_pb2.GameChange(
        revision=sight.revision,
        etag=encode_etag(sight.revision, sight.etag),
        time=_time(sight.time_ms),
        events=map(_event, sight.events),
        cause=_CAUSES[sight.cause.kind] if sight.cause else game_pb2.CHANGE_CAUSE_UNSPECIFIED,
        cause_seat=sight.cause.seat if sight.cause else None,
    )


def _event(event: EventView) -> game_pb2.GameEvent:
    kind: type = type(event)
    if kind in WHOLE_EVENTS:
        return WHOLE_EVENTS[kind](event)
    message, member, parts = _event_parts(kind)
    encoded: Any = message(**{wire: encode(getattr(event, name)) for name, wire, encode in parts})
    return game_pb2.GameEvent(**{member: encoded})


@cache
def _event_parts(kind: type) -> tuple[type[Message], str, Sequence[tuple[str, str, _Encoder]]]:
    """Returns how an event is encoded: its message, its member of GameEvent, its fields with their names there.

    Its message has its name, and its fields have the same names, but those of _EVENT_FIELDS.
    """
    if kind not in _EVENT_VIEWS:
        raise TypeError(f"{kind.__name__} is no view of an event: it may have hidden tiles")
    name = kind.__name__.removesuffix("View")
    parts = [(part.name, *_EVENT_FIELDS.get(part.name, (part.name, _as_it_is))) for part in fields(kind)]
    member = _WORD.sub("_", name).lower()
    return _MESSAGES[member], member, parts


def _as_it_is(value: object) -> object:
    return value


def _time_if_any(milliseconds: int | None) -> Timestamp | None:
    return None if milliseconds is None else _time(milliseconds)


def _reserved(reserved: ReservedSeat) -> game_pb2.ReservedSeat:
    return game_pb2.ReservedSeat(seat=reserved.seat, name=reserved.name, is_program=reserved.is_program)


_MESSAGES: Final = {
    field.name: GetMessageClass(field.message_type)
    for field in game_pb2.GameEvent.DESCRIPTOR.fields
    if field.message_type
}
"""The messages of events by member of GameEvent; a family's may be in a file of its own."""
_EVENT_VIEWS: Final = frozenset(get_args(EventView))
_EVENT_FIELDS: Final[dict[str, tuple[str, _Encoder]]] = {
    "ruleset": ("ruleset", encode_ruleset),
    "settings": ("settings", encode_settings),
    "reserved": ("reserved_seats", lambda seats: [*map(_reserved, seats)]),
    "bot": ("bot_level", _level_number),
    "stand_in": ("bot_level", _level_number),
    "seat": ("seat", lambda seat: seat or None),  # the host token has none
    "new_host": ("host_seat", _as_it_is),
    "starts_ms": ("start_time", _time_if_any),
    "next_round_ms": ("next_round_time", _time_if_any),
    "time_left_ms": ("time_left", _duration),
    "turn": ("turn", _turn),
    "tiles": ("tiles", tile_numbers),
    "result": ("result", encode_result),
    "winners": ("winner_seats", _as_it_is),
    "opened": ("rounds", lambda results: map(encode_result, results)),
    **EVENT_FIELDS,
}
"""Fields of events that have another name or form in the contract."""


def answer_of(response: type[Any], *, with_ruleset: bool = False) -> Answer:
    """Returns the encoder of a response to a change: its fields `game`, `seat`, `created`, and the one of a new token.

    Args:
        response: The message.
        with_ruleset: Whether the game has what never changes too, for callers who see it for the first time.
    """
    fields = response.DESCRIPTOR.fields_by_name
    game_of = encode_game if with_ruleset else encode_changed_game
    token_field = next((name for name in ("host_token", "seat_token") if name in fields), "")

    def encode(decision: Decision, after: Record) -> bytes:
        message = response(game=game_of(snapshot_view(after, decision.viewer, after.updated_ms)))
        if "seat" in fields:
            message.seat = decision.new_seat
        if "created" in fields:
            message.created = after.game.revision == 1
        encoded: bytes = message.SerializeToString()
        return encoded

    def add_token(answer: bytes, token: str) -> bytes:
        added: bytes = answer + response(**{token_field: token}).SerializeToString()
        return added

    return Answer(encode, add_token)
