"""Games of discards on the wire: views of rounds and events, actions in a turn, the deals of records, and hands.

The functions are those of families.FamilyCodec, and what ValidateHand needs.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.discard.actions import DiscardTile, FinishHand, ShowIndicator, TakeDiscard, TakeFromPool, TurnAction
from engine.discard.events import HandFinished, HandsDealt
from engine.discard.finishing import HandToJudge, JudgedHand
from engine.discard.melds import Arrangement, okey_of
from engine.discard.round import Step, ToDiscard, ToTake
from engine.discard.ruleset import HAND_SIZE, Ruleset
from engine.discard.views import DiscardView, HandsDealtView, PoolTileTakenView
from engine.moves import MoveKind
from engine.tiles import NATURALS, Tile
from engine.unions import ProposedTable
from rummikub.v1 import discard_pb2, game_pb2, record_pb2, turn_service_pb2, validation_service_pb2
from service.codec.deals import encode_racks, pool_of, racks_of
from service.codec.fields import invalid, seats_of
from service.codec.tiles import DISCARD_TILES, encode_violation, tile_number, tile_numbers, tile_of, tiles_of

TILES: Final = DISCARD_TILES
_PARTS_MAX: Final = HAND_SIZE // 2
_STEPS: Final[dict[type[Step], game_pb2.TurnStep.ValueType]] = {
    ToTake: game_pb2.TURN_STEP_OPEN,
    ToDiscard: game_pb2.TURN_STEP_DISCARDING,
}


def round_bytes(view: DiscardView) -> bytes:
    """Returns the field `discard_board` of a game."""
    return game_pb2.Game(discard_board=_board(view)).SerializeToString()


def _board(view: DiscardView) -> discard_pb2.DiscardBoard:
    return discard_pb2.DiscardBoard(
        indicator=tile_number(view.indicator),
        okey=tile_number(view.okey),
        piles=(
            discard_pb2.DiscardPile(seat=pile.seat, newest=_tile_if_any(pile.newest), tile_count=pile.count)
            for pile in view.piles
        ),
        discarded_seats=view.discarded,
        shown_by_seat=view.shown_by,
        finish=None if view.finish is None else _finish(view.finish),
    )


def _tile_if_any(tile: Tile | None) -> Any:  # noqa: ANN401 - a tile's number, or None for an unset field
    return None if tile is None else tile_number(tile)


def add_round(message: game_pb2.Game, view: DiscardView) -> None:
    """Adds what a viewer sees of the turn."""
    if message.HasField("turn"):
        message.turn.step = _STEPS[view.step]
        if view.taken is not None:
            message.turn.tiles_drawn.append(tile_number(view.taken))


def _finish(finish: HandFinished) -> discard_pb2.HandFinished:
    return discard_pb2.HandFinished(
        seat=finish.seat, tile=tile_number(finish.tile), hand=encode_hand(finish.hand), is_pairs=finish.is_pairs
    )


def _hands_dealt(view: HandsDealtView) -> game_pb2.GameEvent:
    dealt = discard_pb2.HandsDealt(
        round=view.number,
        turn_order=view.order,
        indicator=tile_number(view.indicator),
        okey=tile_number(okey_of(view.indicator)),
        rack=tile_numbers(view.rack),
        pool_count=view.pool_count,
    )
    return game_pb2.GameEvent(hands_dealt=dealt)


def _pool_tile_taken(view: PoolTileTakenView) -> game_pb2.GameEvent:
    taken = discard_pb2.PoolTileTaken(seat=view.seat, tile=_tile_if_any(view.tile))
    return game_pb2.GameEvent(pool_tile_taken=taken)


def encode_hand(hand: Arrangement) -> list[discard_pb2.HandPart]:
    """Returns melds or pairs."""
    return [discard_pb2.HandPart(tiles=tile_numbers(part)) for part in hand]


EVENT_FIELDS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "hand": ("hand", encode_hand),
    "uncovered": ("uncovered", _tile_if_any),
}
"""Fields of events that have another form in the contract."""

WHOLE_EVENTS: Final[dict[type, Callable[[Any], game_pb2.GameEvent]]] = {
    HandsDealtView: _hands_dealt,
    PoolTileTakenView: _pool_tile_taken,
}
"""Views of events whose message has other fields, or may lack one."""


# Turns


def _discard(message: turn_service_pb2.DiscardTile) -> Callable[[int], DiscardTile]:
    tile = tile_of(message.tile, "discard.tile", TILES)
    return lambda seat: DiscardTile(seat, tile)


def _finish_hand(message: turn_service_pb2.FinishHand) -> Callable[[int], FinishHand]:
    tile, hand = tile_of(message.tile, "finish.tile", TILES), hand_of(message.hand, "finish.hand")
    return lambda seat: FinishHand(seat, tile, hand)


ACTIONS: Final[dict[str, Callable[[turn_service_pb2.PlayTurnRequest, bytes], Callable[[int], TurnAction]]]] = {
    "take_from_pool": lambda _message, _data: TakeFromPool,
    "take_discard": lambda _message, _data: TakeDiscard,
    "discard": lambda message, _data: _discard(message.discard),
    "finish": lambda message, _data: _finish_hand(message.finish),
    "show_indicator": lambda _message, _data: ShowIndicator,
}
"""Decoders of a turn's action, by the member's name. Each takes the request and its bytes."""


def set_action(message: turn_service_pb2.PlayTurnRequest, action: TurnAction) -> None:
    """Sets the action of a request to play a turn."""
    match action:
        case TakeFromPool():
            message.take_from_pool.SetInParent()
        case TakeDiscard():
            message.take_discard.SetInParent()
        case DiscardTile(_, tile):
            message.discard.tile = tile_number(tile)
        case FinishHand(_, tile, hand):
            message.finish.CopyFrom(turn_service_pb2.FinishHand(tile=tile_number(tile), hand=encode_hand(hand)))
        case ShowIndicator():
            message.show_indicator.SetInParent()


def hand_of(parts: Sequence[discard_pb2.HandPart], field: str) -> Arrangement:
    """Returns melds or pairs as the client sent them. Raises InvalidRequest."""
    if len(parts) > _PARTS_MAX:
        raise invalid(field, f"expected at most {_PARTS_MAX} melds or pairs")
    empty = next((place for place, part in enumerate(parts) if not part.tiles), None)
    if empty is not None:
        raise invalid(f"{field}[{empty}].tiles", "expected the tiles of a meld or a pair")
    return tuple(
        tiles_of(part.tiles, f"{field}[{place}].tiles", HAND_SIZE, "FIELD_INVALID", TILES)
        for place, part in enumerate(parts)
    )


# Records


def deal(message: record_pb2.RecordedDeal, field: str, number: int) -> HandsDealt:
    """Returns the deal of a round. Raises InvalidRequest."""
    if message.draws:
        raise invalid(f"{field}.draws", "games of discards have no start draw that is shown")
    return HandsDealt(
        number=number,
        order=seats_of(message.turn_order, f"{field}.turn_order"),
        indicator=_indicator(message.indicator, f"{field}.indicator"),
        racks=racks_of(message, field, TILES),
        pool=pool_of(message, field, TILES),
    )


def _indicator(number: int, field: str) -> Tile:
    if number not in NATURALS:
        raise invalid(field, "expected a numbered tile of the four colors", "TILE_UNKNOWN")
    return Tile(number)


def encode_deal(dealt: HandsDealt) -> record_pb2.RecordedDeal:
    """Returns a deal as a message."""
    return record_pb2.RecordedDeal(
        turn_order=dealt.order,
        racks=encode_racks(dealt.racks),
        pool=tile_numbers(dealt.pool),
        indicator=tile_number(dealt.indicator),
    )


def table_of_move(message: record_pb2.RecordedMove, _kind: MoveKind, field: str) -> None:
    """Raises InvalidRequest if a move has a table: there is none."""
    if message.HasField("table"):
        raise invalid(f"{field}.table", "games of discards have no table")


def set_table_of_move(_message: record_pb2.RecordedMove, _table: ProposedTable) -> None:
    """Never called: no move has a table."""
    raise AssertionError


# Hands to judge


def hand_to_judge(message: validation_service_pb2.ValidateHandRequest, rules: Ruleset) -> HandToJudge:
    """Returns a hand to judge. Raises InvalidRequest."""
    indicator = _indicator(message.indicator, "indicator")
    tiles = tiles_of(message.tiles, "tiles", HAND_SIZE + 1, "FIELD_INVALID", TILES)
    discard = tile_of(message.discard, "discard", TILES) if message.discard else None
    hand = hand_of(message.hand, "hand")
    if len(tiles) < HAND_SIZE:
        raise invalid("tiles", f"expected {HAND_SIZE} or {HAND_SIZE + 1} tiles")
    if discard is None and hand and len(tiles) > HAND_SIZE:
        raise invalid("discard", f"expected the discard beside a hand of {len(tiles)} tiles")
    if discard is not None and (discard not in tiles or len(tiles) == HAND_SIZE):
        raise invalid("discard", f"expected one of {HAND_SIZE + 1} tiles", "POSITION_IMPOSSIBLE")
    if Counter((indicator, *tiles)) - Counter(rules.tiles(rules.players_max)):
        raise invalid("tiles", "there are two tiles of each face, the indicator among them", "POSITION_IMPOSSIBLE")
    return HandToJudge(tiles, indicator, discard, hand, one_high=rules.run_one_high)


def encode_judged_hand(judged: JudgedHand) -> validation_service_pb2.ValidateHandResponse:
    """Returns a ValidateHandResponse."""
    return validation_service_pb2.ValidateHandResponse(
        violations=map(encode_violation, judged.violations),
        hand=encode_hand(judged.finish.tiles) if judged.finish else (),
        is_pairs=judged.finish is not None and judged.finish.is_pairs,
        discard=_tile_if_any(judged.discard),
        cost=judged.cost,
        missing=judged.lacks.missing,
        spare=tile_numbers(judged.lacks.spare),
    )
