"""Recorded turns as protobuf requests, with the expected answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from engine.melding.melds import MeldKind, ProposedMeld
from engine.melding.notation import parse_melds
from engine.notation import parse_rack
from engine.tiles import Tile
from load.corpus.turns import RecordedTurn
from rummikub.v1.analysis_service_pb2 import Position
from rummikub.v1.error_reason_pb2 import ErrorReason
from rummikub.v1.meld_pb2 import MELD_KIND_GROUP, MELD_KIND_RUN, MELD_KIND_UNSPECIFIED, Meld, Table
from rummikub.v1.ruleset_pb2 import MeldingRuleset, TileOptions
from rummikub.v1.tile_pb2 import Tile as TileValue
from rummikub.v1.validation_service_pb2 import ValidateMeldsRequest, ValidateTurnRequest
from rummikub.v1.violation_pb2 import Violation

KINDS = {None: MELD_KIND_UNSPECIFIED, MeldKind.GROUP: MELD_KIND_GROUP, MeldKind.RUN: MELD_KIND_RUN}


@dataclass(frozen=True, slots=True)
class TurnToSend:
    """A turn, its melds and its position as requests, with the numbers of the expected reasons."""

    turn: ValidateTurnRequest
    melds: ValidateMeldsRequest
    position: Position
    can_play: bool
    reasons: Sequence[int]
    meld_reasons: Sequence[Sequence[int]]


def to_send(recorded: RecordedTurn) -> TurnToSend:
    """Returns a recorded turn as requests."""
    # never omitted: a stream would keep the previous one
    ruleset = MeldingRuleset(tiles=TileOptions(jokers=recorded.game_jokers))
    proposal = melds_to_send(parse_melds(recorded.proposal))
    table, table_after = Table(melds=melds_to_send(parse_melds(recorded.table))), Table(melds=proposal)
    rack, has_melded = _tiles(parse_rack(recorded.rack)), recorded.has_melded
    return TurnToSend(
        turn=ValidateTurnRequest(
            ruleset=ruleset, table_before=table, table_after=table_after, rack=rack, has_melded=has_melded
        ),
        melds=ValidateMeldsRequest(ruleset=ruleset, melds=proposal),
        position=Position(ruleset=ruleset, table=table, rack=rack, has_melded=has_melded),
        can_play=recorded.can_play,
        reasons=_numbers(recorded.reasons),
        meld_reasons=[_numbers(names) for names in recorded.meld_reasons],
    )


def reasons_of(violations: Iterable[Violation]) -> list[int]:
    """Returns the numbers of the reasons in an answer."""
    return [violation.reason for violation in violations]


def names_of(reasons: Iterable[int]) -> str:
    """Returns the names of reasons, or "legal"."""
    names = (ErrorReason.Name(cast("ErrorReason.ValueType", reason)) for reason in reasons)
    return ", ".join(names) or "legal"


def _numbers(names: Iterable[str]) -> list[int]:
    return [ErrorReason.Value(name) for name in names]


def melds_to_send(melds: Iterable[ProposedMeld]) -> list[Meld]:
    """Returns melds as protobuf messages."""
    return [
        Meld(tiles=_tiles(meld.tiles), kind=KINDS[meld.kind], declared_faces=_tiles(meld.declared)) for meld in melds
    ]


def _tiles(tiles: Sequence[Tile]) -> Sequence[TileValue.ValueType]:
    """Returns tiles as enum values of the contract, which are the same numbers."""
    return cast("Sequence[TileValue.ValueType]", tiles)
