"""Views of the rounds of melding games and of their events, for a seat or a spectator."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from google.protobuf.message import Message

from engine.identity_cache import identity_cache
from engine.melding.drafts import Draft
from engine.melding.melds import Meld, ProposedMeld
from engine.melding.round import Choosing, Drawn, Open, ShownPlay, Step
from engine.melding.table import Table
from engine.melding.views import MeldingView, RoundStartedView
from rummikub.v1 import game_pb2, meld_pb2
from service.codec.tiles import (
    encode_meld,
    encode_proposed,
    encode_proposed_table,
    encode_table,
    reason_number,
    tile_number,
    tile_numbers,
)

_STEPS: Final[dict[type[Step], game_pb2.TurnStep.ValueType]] = {
    Open: game_pb2.TURN_STEP_OPEN,
    Choosing: game_pb2.TURN_STEP_CHOOSING,
    Drawn: game_pb2.TURN_STEP_DRAWN,
}


@identity_cache(maxsize=4_096)
def table_bytes(table: Table) -> bytes:
    """Returns the field `table` of a game."""
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


def encode_round_started(view: RoundStartedView) -> game_pb2.RoundStarted:
    """Returns the start of a round."""
    return game_pb2.RoundStarted(
        round=view.number,
        draws=(game_pb2.StartDraw(seat=draw.seat, tile=tile_number(draw.tile)) for draw in view.draws),
        starter_seat=view.order[0],
        rack=tile_numbers(view.rack),
        pool_count=view.pool_count,
        turn_order=view.order,
    )


def _any_table(table: Sequence[Meld | ProposedMeld]) -> Message:
    melds = (encode_meld(meld) if isinstance(meld, Meld) else encode_proposed(meld) for meld in table)
    return meld_pb2.Table(melds=melds)


EVENT_FIELDS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "tile": ("tile", tile_number),
    "pulled": ("pulled", tile_numbers),
    "table": ("table", _any_table),
    "reasons": ("reasons", lambda reasons: [reason_number(reason.name) for reason in reasons]),
}
"""Fields of events that have another form in the contract."""
