"""Melding games on the wire: views of rounds and events, actions in a turn, the deals and tables of records.

The functions are those of families.FamilyCodec.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from google.protobuf.message import Message

from engine.identity_cache import identity_cache
from engine.melding.actions import DrawTile, Knock, LayOnRiver, Pass, PlayTiles, TurnAction
from engine.melding.drafts import Draft
from engine.melding.events import RoundStarted, StartDraw
from engine.melding.grid.cells import Grid
from engine.melding.melds import Meld, ProposedMeld
from engine.melding.position import legal_table
from engine.melding.round import Choosing, Drawing, Drawn, Open, ShownPlay, Step
from engine.melding.ruleset import Ruleset
from engine.melding.table import ProposedTable, Table
from engine.melding.views import MeldingView, RoundStartedView
from engine.moves import MoveKind
from engine.tiles import PLACES_OF
from rummikub.v1 import game_pb2, meld_pb2, record_pb2, turn_service_pb2
from service.codec import raw_messages
from service.codec.deals import encode_racks, pool_of, racks_of
from service.codec.fields import invalid, river_index, seat_of, seats_of
from service.codec.tiles import (
    MELD_BYTES_MAX,
    MELDING_TILES,
    MELDS_MAX,
    POOL_MAX,
    encode_meld,
    encode_proposed,
    encode_proposed_table,
    encode_table,
    meld_of,
    reason_number,
    tile_number,
    tile_numbers,
    tile_of,
)
from service.codec.tiles import table as table_of
from service.errors import InvalidRequest

TILES: Final = MELDING_TILES

_STEPS: Final[dict[type[Step], game_pb2.TurnStep.ValueType]] = {
    Open: game_pb2.TURN_STEP_OPEN,
    Choosing: game_pb2.TURN_STEP_CHOOSING,
    Drawn: game_pb2.TURN_STEP_DRAWN,
    Drawing: game_pb2.TURN_STEP_DRAWING,
}


def round_bytes(view: MeldingView) -> bytes:
    """Returns the field `table` of a game."""
    return _table_bytes(view.table)


@identity_cache(maxsize=4_096)
def _table_bytes(table: Table) -> bytes:
    if isinstance(table, Grid):
        return game_pb2.Game(table=encode_table(table)).SerializeToString()
    message = game_pb2.Game()
    message.table.MergeFromString(b"".join(_meld_bytes.map(table)))
    return message.SerializeToString()


@identity_cache(maxsize=16_384)
def _meld_bytes(meld: Meld) -> bytes:
    """Returns the field `melds` of a table with one meld."""
    return encode_table((meld,)).SerializeToString()


def add_round(message: game_pb2.Game, view: MeldingView) -> None:
    """Adds what a viewer sees of a round, and of its turn, without its table."""
    for seats, seen in ((message.passed_seats, view.passed), (message.last_chance_seats, view.last_chance)):
        if seen:
            seats.extend(seen)
    if view.river:
        message.river.extend(tile_numbers(view.river))
    if message.HasField("turn"):
        _add_turn(message.turn, view)


def _add_turn(message: game_pb2.Turn, view: MeldingView) -> None:
    message.step = _STEPS[view.step]
    if view.tiles_drawn:
        message.tiles_drawn.extend(tile_numbers(view.tiles_drawn))
    if view.draft is not None:
        message.draft.CopyFrom(encode_draft(view.draft))
    if view.shown_play is not None:
        message.shown_play.CopyFrom(_shown_play(view.shown_play))


def encode_draft(draft: Draft) -> game_pb2.SavedDraft:
    """Returns a draft."""
    return game_pb2.SavedDraft(
        seat=draft.seat, table=encode_proposed_table(draft.table), number=draft.number, is_legal=draft.is_legal
    )


def _shown_play(shown: ShownPlay) -> game_pb2.ShownPlay:
    return game_pb2.ShownPlay(
        revision=shown.revision,
        table=encode_proposed_table(shown.table),
        claim_seats=shown.claimed,
        against_seat=shown.against,
    )


def _round_started(view: RoundStartedView) -> game_pb2.GameEvent:
    started = game_pb2.RoundStarted(
        round=view.number,
        draws=(game_pb2.StartDraw(seat=draw.seat, tile=tile_number(draw.tile)) for draw in view.draws),
        starter_seat=view.order[0],
        rack=tile_numbers(view.rack),
        pool_count=view.pool_count,
        turn_order=view.order,
        table=None if view.table is None else encode_table(view.table),
        start_racks=(
            game_pb2.StartRack(seat=seat, tile_count=count, has_melded=melded) for seat, count, melded in view.held
        ),
    )
    return game_pb2.GameEvent(round_started=started)


def _any_table(table: Grid | Sequence[Meld | ProposedMeld]) -> Message:
    if isinstance(table, Grid):
        return encode_table(table)
    melds = (encode_meld(meld) if isinstance(meld, Meld) else encode_proposed(meld) for meld in table)
    return meld_pb2.Table(melds=melds)


EVENT_FIELDS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "tile": ("tile", tile_number),
    "pulled": ("pulled", tile_numbers),
    "table": ("table", _any_table),
    "reasons": ("reasons", lambda reasons: [reason_number(reason.name) for reason in reasons]),
}
"""Fields of events that have another form in the contract."""

WHOLE_EVENTS: Final[dict[type, Callable[[Any], game_pb2.GameEvent]]] = {RoundStartedView: _round_started}
"""Views of events whose message has other fields."""


# Turns


def _played(message: turn_service_pb2.PlayTiles, data: bytes) -> ProposedTable:
    """Returns the table of a play."""
    table = raw_messages.melds_of_request(data) or raw_messages.melds_of_play(message)
    if not message.table.placements and len(table) <= MELDS_MAX and max(map(len, table), default=0) <= MELD_BYTES_MAX:
        with contextlib.suppress(InvalidRequest):
            return tuple(map(meld_of, table))
    return table_of(message.table, "play.table")


def _play_tiles(message: turn_service_pb2.PlayTiles, data: bytes) -> Callable[[int], PlayTiles]:
    table = _played(message, data)
    index = river_index(message, "play.river_index")
    return lambda seat: PlayTiles(seat, table, index, message.calls_rummikub, message.knocks)


ACTIONS: Final[dict[str, Callable[[turn_service_pb2.PlayTurnRequest, bytes], Callable[[int], TurnAction]]]] = {
    "play": lambda message, data: _play_tiles(message.play, data),
    "draw": lambda _message, _data: DrawTile,
    "pass_turn": lambda _message, _data: Pass,
    "knock": lambda _message, _data: Knock,
    "lay_on_river": lambda message, _data: _lay_on_river(message.lay_on_river),
}
"""Decoders of a turn's action, by the member's name. Each takes the request and its bytes."""


def _lay_on_river(message: turn_service_pb2.LayOnRiver) -> Callable[[int], LayOnRiver]:
    tile = tile_of(message.tile, "lay_on_river.tile")
    return lambda seat: LayOnRiver(seat, tile)


def set_action(message: turn_service_pb2.PlayTurnRequest, action: TurnAction) -> None:
    """Sets the action of a request to play a turn."""
    match action:
        case PlayTiles(_, table, index, calls_rummikub, knocks):
            play = turn_service_pb2.PlayTiles(river_index=index, calls_rummikub=calls_rummikub, knocks=knocks)
            play.table.CopyFrom(encode_proposed_table(table))
            message.play.CopyFrom(play)
        case DrawTile():
            message.draw.SetInParent()
        case Pass():
            message.pass_turn.SetInParent()
        case Knock():
            message.knock.SetInParent()
        case LayOnRiver(_, tile):
            message.lay_on_river.tile = tile_number(tile)


# Records


def deal(message: record_pb2.RecordedDeal, field: str, number: int, rules: Ruleset) -> RoundStarted:
    """Returns the deal of a round. Raises InvalidRequest."""
    if message.indicator:
        raise invalid(f"{field}.indicator", "melding games have no indicator")
    if len(message.draws) > POOL_MAX:
        raise invalid(f"{field}.draws", f"expected at most {POOL_MAX} draws")
    return RoundStarted(
        number=number,
        draws=tuple(
            StartDraw(
                seat_of(draw.seat, f"{field}.draws[{place}].seat"), tile_of(draw.tile, f"{field}.draws[{place}].tile")
            )
            for place, draw in enumerate(message.draws)
        ),
        order=seats_of(message.turn_order, f"{field}.turn_order"),
        racks=racks_of(message, field, TILES),
        pool=pool_of(message, field, TILES),
        table=_table_of_position(message.table, rules, f"{field}.table") if message.HasField("table") else None,
    )


def _table_of_position(message: meld_pb2.Table, rules: Ruleset, field: str) -> Table:
    read = legal_table(table_of(message, field), rules)
    if read is None:
        raise invalid(field, "the table is not legal", "MALFORMED_TABLE")
    return read


def encode_deal(dealt: RoundStarted) -> record_pb2.RecordedDeal:
    """Returns a deal as a message."""
    return record_pb2.RecordedDeal(
        draws=(game_pb2.StartDraw(seat=draw.seat, tile=tile_number(draw.tile)) for draw in dealt.draws),
        turn_order=dealt.order,
        racks=encode_racks(dealt.racks),
        pool=tile_numbers(dealt.pool),
        table=None if dealt.table is None else encode_table(dealt.table),
    )


def table_of_move(message: record_pb2.RecordedMove, kind: MoveKind, field: str) -> ProposedTable | None:
    """Returns the table of a move, if any; each meld declares the faces of all its jokers or of none."""
    if kind not in {MoveKind.PLAY, MoveKind.SHOW} and not message.HasField("table"):
        return None
    table = table_of(message.table, f"{field}.table")
    for place, meld in enumerate(() if isinstance(table, Grid) else table):
        if meld.declared and len(meld.declared) != sum(PLACES_OF.get(t, 0) for t in meld.tiles):
            at = f"{field}.table[{place}].declared_faces"
            raise invalid(at, "expected a face for each joker, or none", "MALFORMED_MELD")
    return table
