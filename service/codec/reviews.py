"""Requests and responses of RecordService."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.melding.notation import Position, format_position, format_turn, parse_position, parse_turn
from engine.melding.review import MoveToReview
from engine.melding.solver import Objective
from engine.moves import MoveKind
from engine.notation import Naming, NotationError
from engine.record import GameRecord
from engine.seats import Rack
from rummikub.v1 import analysis_service_pb2, violation_pb2
from rummikub.v1 import record_service_pb2 as pb
from service.analysis.queries import HintTier, Suggestion
from service.analysis.records import CheckedRecord, Fault
from service.codec.analysis import encode_suggestion
from service.codec.fields import invalid
from service.codec.games import encode_state
from service.codec.messages import advice
from service.codec.records import encode_kind, encode_points, encode_record
from service.codec.tiles import POOL_MAX, encode_proposed_table, encode_violation, rack, tile_numbers, tiles_of
from service.codec.tiles import table as table_of
from service.codec.validation import has_melded
from service.errors import InvalidRequest

TEXT_MAX: Final = 16_384
"""Most characters of a position's text."""
RACKS_MAX: Final = 9
"""Most racks of a position."""
COSTLIEST_MAX: Final = 3
"""Most costly turns of a player in a review."""


# Records


def encode_checked(record: GameRecord, checked: CheckedRecord) -> pb.ImportRecordResponse:
    """Returns an ImportRecordResponse with the record in the form that the checked one has not."""
    response = pb.ImportRecordResponse(
        fault=_fault(checked.fault) if checked.fault else None,
        moves_played=checked.moves_played,
        is_complete=checked.is_complete,
        state=encode_state(checked.phase),
        totals=encode_points(checked.totals),
    )
    if checked.text:
        response.text = checked.text
    else:
        response.record.CopyFrom(encode_record(record))
    return response


def _fault(fault: Fault) -> pb.RecordFault:
    return pb.RecordFault(
        move_index=fault.move,
        revision=fault.revision or None,
        round=fault.round or None,
        text=fault.text,
        violations=map(encode_violation, fault.violations),
    )


def invalid_record(field: str, fault: Fault) -> InvalidRequest:
    """Returns the exception for a record that breaks a rule, which names the move; `field` is the record's path."""
    at = field if fault.move is None else f"{field}.moves[{fault.move}]"
    revision = f"revision {fault.revision}: " if fault.revision else ""
    return invalid(at, f"{revision}{fault.text}", "RECORD_INVALID")


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A move, and the best turn found for its player."""

    move: MoveToReview
    best: Suggestion

    def missed(self, objective: Objective) -> int:
        """Returns what the best turn gains beyond the move."""
        return self.move.missed(self.best.played.turn, objective) if self.best.played else 0


def encode_reviews(reviewed: Sequence[Reviewed], objective: Objective, *, is_complete: bool) -> pb.ReviewGameResponse:
    """Returns a ReviewGameResponse with the sums and the costliest turns by seat."""
    seats = sorted({one.move.seat for one in reviewed})
    return pb.ReviewGameResponse(
        moves=(_review(one, objective) for one in reviewed),
        seats=(_seat([one for one in reviewed if one.move.seat == seat], objective) for seat in seats),
        is_complete=is_complete,
    )


def _review(reviewed: Reviewed, objective: Objective) -> pb.MoveReview:
    move = reviewed.move
    return pb.MoveReview(
        move_index=move.move,
        revision=move.revision,
        round=move.round,
        seat=move.seat,
        kind=encode_kind(move.kind),
        played=move.gained(objective),
        best=encode_suggestion(reviewed.best, HintTier.TURN),
        missed=reviewed.missed(objective),
    )


def _seat(reviewed: Sequence[Reviewed], objective: Objective) -> pb.SeatReview:
    costly = [(one.missed(objective), one) for one in reviewed if one.missed(objective)]
    costly.sort(key=lambda cost: (_misses_win(cost[1]), cost[0]), reverse=True)
    return pb.SeatReview(
        seat=reviewed[0].move.seat,
        played=sum(one.move.gained(objective) for one in reviewed),
        missed=sum(missed for missed, _ in costly),
        costliest_turns=(
            pb.CostlyTurn(move_index=one.move.move, missed=missed, advice=_lesson(one, missed, objective))
            for missed, one in costly[:COSTLIEST_MAX]
        ),
    )


def _misses_win(reviewed: Reviewed) -> bool:
    """Returns whether a move that missed something missed a win."""
    return reviewed.best.played is not None and reviewed.best.played.goes_out


def _lesson(reviewed: Reviewed, missed: int, objective: Objective) -> violation_pb2.Advice:
    """Returns what a player missed in a move, in a sentence."""
    move, best = reviewed.move, reviewed.best.played
    count = len(best.turn.tiles) if best else 0
    if _misses_win(reviewed):
        return advice("WIN_MISSED", count=count)
    if move.kind is not MoveKind.PLAY:
        return advice("PLAY_MISSED" if move.situation.has_melded else "INITIAL_MELD_MISSED", count=count)
    kind = "TILES_MISSED" if objective is Objective.MOST_TILES else "POINTS_MISSED"
    return advice(kind, played=move.gained(objective), best=move.gained(objective) + missed)


# Positions


def parse_text(message: pb.ParsePositionRequest) -> pb.ParsePositionResponse:
    """Returns the position of a text."""
    text, naming = message.text, _naming(cards=message.cards)
    if len(text) > TEXT_MAX:
        raise invalid("text", f"column {TEXT_MAX + 1}: expected at most {TEXT_MAX} characters")
    try:
        if "/" in text:
            return _position_of_round(parse_position(text, naming))
        table, own = parse_turn(text, naming)
        return pb.ParsePositionResponse(
            position=analysis_service_pb2.Position(
                table=encode_proposed_table(table), rack=tile_numbers(own.tiles), has_melded=own.has_melded
            )
        )
    except NotationError as error:
        raise invalid("text", f"column {error.column}: {error}") from None


def _naming(*, cards: bool) -> Naming:
    return Naming.CARDS if cards else Naming.TILES


def _position_of_round(position: Position) -> pb.ParsePositionResponse:
    own = position.rack
    return pb.ParsePositionResponse(
        position=analysis_service_pb2.Position(
            table=encode_proposed_table(position.table), rack=tile_numbers(own.tiles), has_melded=own.has_melded
        ),
        racks=(
            pb.PositionRack(seat=one.seat, tiles=tile_numbers(one.tiles), has_melded=one.has_melded)
            for one in position.racks
        ),
        pool=tile_numbers(position.pool),
        turn_seat=position.turn_seat,
    )


def format_message(message: pb.FormatPositionRequest) -> str:
    """Returns the text of a position."""
    naming, table = _naming(cards=message.cards), table_of(message.position.table, "position.table")
    try:
        if not message.racks:
            if message.pool or message.HasField("turn_seat"):
                raise invalid("pool" if message.pool else "turn_seat", "expected no value without racks")
            tiles = rack(message.position.rack, "position.rack")
            return format_turn(table, Rack(1, tiles, has_melded(message.position, "position.")), naming)
        pool = tiles_of(message.pool, "pool", POOL_MAX, "FIELD_INVALID")
        return format_position(Position(table, _racks(message), pool, message.turn_seat), naming)
    except NotationError as error:
        raise invalid("position", str(error)) from None


def _racks(message: pb.FormatPositionRequest) -> tuple[Rack, ...]:
    if len(message.racks) > RACKS_MAX:
        raise invalid("racks", f"expected at most {RACKS_MAX} racks")
    for place, one in enumerate(message.racks):
        if not 1 <= one.seat <= RACKS_MAX:
            raise invalid(f"racks[{place}].seat", f"expected a seat from 1 to {RACKS_MAX}")
    seats = [one.seat for one in message.racks]
    for place, seat in enumerate(seats):
        if seat in seats[:place]:
            raise invalid(f"racks[{place}].seat", "expected one rack of each seat")
    if message.turn_seat not in seats:
        raise invalid("turn_seat", "expected the seat of a rack")
    return tuple(
        Rack(one.seat, rack(one.tiles, f"racks[{place}].tiles"), one.has_melded)
        for place, one in enumerate(message.racks)
    )
