"""Each family of games has a codec module; this is their table.

A new family is a module with the functions of FamilyCodec, ACTIONS, EVENT_FIELDS and WHOLE_EVENTS, and its rows here.
Its ruleset is in rulesets.py. Drafts are an exception: turns.draft_request reads and melding.encode_draft writes them,
and only melding games have any.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.melding.ruleset import Ruleset as MeldingRuleset
from engine.moves import MoveKind
from engine.tiles import Tile
from engine.unions import ProposedTable, RoundStart, RoundView, Ruleset, TurnAction
from rummikub.v1 import game_pb2, record_pb2, turn_service_pb2
from service.codec import discard, melding


class FamilyCodec(Protocol):
    """The functions of a family's module, and its tiles."""

    @property
    def TILES(self) -> frozenset[Tile]:  # noqa: N802 - a constant of the module
        """The tiles that its games may have."""

    def round_bytes(self, view: RoundView) -> bytes:
        """Returns the encoded fields of a game that show its round and seldom change in a turn."""

    def add_round(self, message: game_pb2.Game, view: RoundView) -> None:
        """Adds what else a viewer sees of a round, and of its turn."""

    def set_action(self, message: turn_service_pb2.PlayTurnRequest, action: TurnAction) -> None:
        """Sets the action of a request to play a turn."""

    def deal(self, message: record_pb2.RecordedDeal, field: str, number: int, rules: Ruleset) -> RoundStart:
        """Returns the deal of a round. Raises InvalidRequest."""

    def encode_deal(self, dealt: RoundStart) -> record_pb2.RecordedDeal:
        """Returns a deal as a message."""

    def table_of_move(self, message: record_pb2.RecordedMove, kind: MoveKind, field: str) -> ProposedTable | None:
        """Returns the table of a move, if it has one. Raises InvalidRequest."""


_FAMILIES: Final[Mapping[type[Ruleset], Any]] = {MeldingRuleset: melding, DiscardRuleset: discard}
ACTIONS: Final = {**melding.ACTIONS, **discard.ACTIONS}
"""Decoders of a turn's action, by the member's name. Each takes the request and its bytes."""
EVENT_FIELDS: Final = {**melding.EVENT_FIELDS, **discard.EVENT_FIELDS}
"""Fields of events that have another name or form in the contract."""
WHOLE_EVENTS: Final = {**melding.WHOLE_EVENTS, **discard.WHOLE_EVENTS}
"""Views of events whose message has other fields, and what encodes them."""


def codec_of(ruleset: Ruleset) -> FamilyCodec:
    """Returns the codec of the games under a ruleset. It takes only their views, actions and deals."""
    codec: FamilyCodec = _FAMILIES[type(ruleset)]
    return codec
