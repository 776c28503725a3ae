"""Games of discards on the wire: views of rounds and events, actions in a turn, the deals of records, and hands.

The functions are those of families.FamilyCodec, and what ValidateHand needs.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from engine.discard.actions import (
    DiscardTile,
    FinishFoot,
    FinishHand,
    LayTiles,
    PassTurn,
    ReturnDiscard,
    ShowIndicator,
    TakeDiscard,
    TakeFromPool,
    TakeTrump,
    TurnAction,
)
from engine.discard.events import HandFinished, HandsDealt, PenaltyScored, RackFinished, TilesLaid
from engine.discard.finishing import HandToJudge, JudgedHand, judge_hand
from engine.discard.laying import PenaltyCause, TurnAtTable, Verdict, judge_foot, judge_turn
from engine.discard.melds import Arrangement, okey_of
from engine.discard.named_finish import JudgedNamedHand, judge_named_finish
from engine.discard.round import HasLaid, Step, ToDiscard, ToTake
from engine.discard.ruleset import HAND_SIZE, HAND_SIZE_MOST, Ruleset
from engine.discard.table import Opening, Table, is_legal
from engine.discard.views import DiscardView, HandsDealtView, PoolTileTakenView
from engine.moves import MoveKind
from engine.tiles import JOKER, NATURALS, Tile, in_order, without
from rummikub.v1 import discard_pb2, game_pb2, record_pb2, turn_service_pb2, validation_service_pb2
from service.codec.deals import encode_racks, pool_of, racks_of
from service.codec.fields import invalid, seat_of, seats_of
from service.codec.tiles import (
    DISCARD_TILES,
    POOL_MAX,
    encode_violation,
    tile_number,
    tile_numbers,
    tile_of,
    tiles_of,
)

TILES: Final = DISCARD_TILES
_PARTS_MAX: Final = HAND_SIZE // 2
TABLE_MAX: Final = 53
"""Most melds and pairs of a table in a request: as many pairs as the tile set has."""
_POINTS_MAX: Final = 1_000
"""Most points, or pairs, of an opening in a request: more than the tiles of any rack make."""
_STEPS: Final[dict[type[Step], game_pb2.TurnStep.ValueType]] = {
    ToTake: game_pb2.TURN_STEP_OPEN,
    ToDiscard: game_pb2.TURN_STEP_DISCARDING,
    HasLaid: game_pb2.TURN_STEP_DISCARDING,
}


def round_bytes(view: DiscardView) -> bytes:
    """Returns the field `discard_board` of a game."""
    return game_pb2.Game(discard_board=_board(view)).SerializeToString()


def _board(view: DiscardView) -> discard_pb2.DiscardBoard:
    return discard_pb2.DiscardBoard(
        indicator=_tile_if_any(view.indicator),
        okey=_tile_if_any(view.indicator and view.okey),
        piles=(
            discard_pb2.DiscardPile(seat=pile.seat, newest=_tile_if_any(pile.newest), tile_count=pile.count)
            for pile in view.piles
        ),
        discarded_seats=view.discarded,
        shown_by_seat=view.shown_by,
        finish=_finish(view.finish) if isinstance(view.finish, HandFinished) else None,
        table=encode_hand(view.table.melds) if view.table else (),
        openings=map(_opening, view.table.openings) if view.table else (),
        penalties=map(_penalty, view.penalties),
        rack_finish=_rack_finish(view.finish) if isinstance(view.finish, RackFinished) else None,
        owed_tile=_tile_if_any(view.owed),
        tiles_laid=view.laid,
        trump=_tile_if_any(view.trump),
    )


def _opening(opening: Opening) -> discard_pb2.DiscardOpening:
    return discard_pb2.DiscardOpening(seat=opening.seat, is_pairs=opening.is_pairs, amount=opening.amount)


def _cause(cause: PenaltyCause) -> discard_pb2.PenaltyCause.ValueType:
    return discard_pb2.PenaltyCause.Value(f"PENALTY_CAUSE_{cause.name}")


def _penalty(penalty: PenaltyScored) -> discard_pb2.PenaltyScored:
    return discard_pb2.PenaltyScored(seat=penalty.seat, points=penalty.points, cause=_cause(penalty.cause))


def _rack_finish(finish: RackFinished) -> discard_pb2.RackFinished:
    return discard_pb2.RackFinished(
        seat=finish.seat,
        tile=tile_number(finish.tile),
        is_pairs=finish.is_pairs,
        is_at_once=finish.is_at_once,
        is_foot=finish.is_foot,
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
        seat=finish.seat,
        tile=tile_number(finish.tile),
        hand=encode_hand(finish.hand),
        is_pairs=finish.is_pairs,
        name=finish.name,
    )


def _hands_dealt(view: HandsDealtView) -> game_pb2.GameEvent:
    dealt = discard_pb2.HandsDealt(
        round=view.number,
        turn_order=view.order,
        indicator=_tile_if_any(view.indicator),
        okey=_tile_if_any(view.indicator and okey_of(view.indicator)),
        rack=tile_numbers(view.rack),
        pool_count=view.pool_count,
        trump=_tile_if_any(view.trump),
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
    "cause": ("cause", _cause),
}
"""Fields of events that have another form in the contract."""


def _tiles_laid(laid: TilesLaid) -> game_pb2.GameEvent:
    event = discard_pb2.TilesLaid(
        seat=laid.seat,
        tiles=tile_numbers(laid.tiles),
        table=encode_hand(laid.table),
        okeys=laid.okeys,
        more=laid.more,
        opening=_opening(laid.opening) if laid.opening else None,
    )
    return game_pb2.GameEvent(tiles_laid=event)


WHOLE_EVENTS: Final[dict[type, Callable[[Any], game_pb2.GameEvent]]] = {
    TilesLaid: _tiles_laid,
    HandsDealtView: _hands_dealt,
    PoolTileTakenView: _pool_tile_taken,
}
"""Views of events whose message has other fields, or may lack one."""


# Turns


def _discard(message: turn_service_pb2.DiscardTile) -> Callable[[int], DiscardTile]:
    tile = tile_of(message.tile, "discard.tile", TILES)
    return lambda seat: DiscardTile(seat, tile)


def _finish_hand(message: turn_service_pb2.FinishHand) -> Callable[[int], FinishHand | FinishFoot]:
    tile, hand = tile_of(message.tile, "finish.tile", TILES), hand_of(message.hand, "finish.hand")
    table = hand_of(message.table, "finish.table", TABLE_MAX)
    if hand and table:
        raise invalid("finish.table", "expected a hand or a table")
    return (lambda seat: FinishFoot(seat, tile, table)) if table else (lambda seat: FinishHand(seat, tile, hand))


def _lay_tiles(message: turn_service_pb2.LayTiles) -> Callable[[int], LayTiles]:
    table = hand_of(message.table, "lay.table", TABLE_MAX)
    return lambda seat: LayTiles(seat, table)


_Decoder = Callable[[turn_service_pb2.PlayTurnRequest, bytes], Callable[[int], TurnAction]]
_WithoutFields = TakeFromPool | TakeDiscard | TakeTrump | PassTurn | ShowIndicator | ReturnDiscard
_WITHOUT_FIELDS: Final[dict[type[_WithoutFields], str]] = {
    TakeFromPool: "take_from_pool",
    TakeDiscard: "take_discard",
    TakeTrump: "take_trump",
    PassTurn: "pass_empty_pool",
    ShowIndicator: "show_indicator",
    ReturnDiscard: "return_discard",
}
"""The members of actions that have no fields."""


def _without_fields(action: type[_WithoutFields]) -> _Decoder:
    return lambda _message, _data: action


ACTIONS: Final[dict[str, _Decoder]] = {
    **{member: _without_fields(action) for action, member in _WITHOUT_FIELDS.items()},
    "discard": lambda message, _data: _discard(message.discard),
    "finish": lambda message, _data: _finish_hand(message.finish),
    "lay": lambda message, _data: _lay_tiles(message.lay),
}
"""Decoders of a turn's action, by the member's name. Each takes the request and its bytes."""


def set_action(message: turn_service_pb2.PlayTurnRequest, action: TurnAction) -> None:
    """Sets the action of a request to play a turn."""
    match action:
        case DiscardTile(_, tile):
            message.discard.tile = tile_number(tile)
        case FinishHand(_, tile, hand):
            message.finish.CopyFrom(turn_service_pb2.FinishHand(tile=tile_number(tile), hand=encode_hand(hand)))
        case FinishFoot(_, tile, table):
            message.finish.CopyFrom(turn_service_pb2.FinishHand(tile=tile_number(tile), table=encode_hand(table)))
        case LayTiles(_, table):
            message.lay.CopyFrom(turn_service_pb2.LayTiles(table=encode_hand(table)))
        case TakeFromPool() | TakeDiscard() | TakeTrump() | PassTurn() | ShowIndicator() | ReturnDiscard():
            getattr(message, _WITHOUT_FIELDS[type(action)]).SetInParent()


def hand_of(parts: Sequence[discard_pb2.HandPart], field: str, most: int = _PARTS_MAX) -> Arrangement:
    """Returns melds or pairs as the client sent them. Raises InvalidRequest."""
    if len(parts) > most:
        raise invalid(field, f"expected at most {most} melds or pairs")
    empty = next((place for place, part in enumerate(parts) if not part.tiles), None)
    if empty is not None:
        raise invalid(f"{field}[{empty}].tiles", "expected the tiles of a meld or a pair")
    return tuple(
        tiles_of(part.tiles, f"{field}[{place}].tiles", HAND_SIZE, "FIELD_INVALID", TILES)
        for place, part in enumerate(parts)
    )


# Records


def deal(message: record_pb2.RecordedDeal, field: str, number: int, _rules: Ruleset) -> HandsDealt:
    """Returns the deal of a round. Raises InvalidRequest."""
    if message.draws:
        raise invalid(f"{field}.draws", "games of discards have no start draw that is shown")
    return HandsDealt(
        number=number,
        order=seats_of(message.turn_order, f"{field}.turn_order"),
        indicator=_indicator(message.indicator, f"{field}.indicator") if message.indicator else None,
        racks=racks_of(message, field, TILES),
        pool=pool_of(message, field, TILES),
        trump=tile_of(message.trump, f"{field}.trump", TILES) if message.trump else None,
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
        indicator=_tile_if_any(dealt.indicator),
        trump=_tile_if_any(dealt.trump),
    )


def table_of_move(message: record_pb2.RecordedMove, _kind: MoveKind, field: str) -> None:
    """Raises InvalidRequest if a move has a table: there is none."""
    if message.HasField("table"):
        raise invalid(f"{field}.table", "games of discards have no table")


# Hands to judge


@dataclass(frozen=True, slots=True)
class _ShownHand:
    """A hand of a request: its tiles, the discard among them if it is given, and the parts as the player lays them."""

    tiles: tuple[Tile, ...]
    discard: Tile | None
    parts: Arrangement


def judge_hand_of(message: validation_service_pb2.ValidateHandRequest, rules: Ruleset) -> bytes:
    """Returns the encoded judgement of a hand. Raises InvalidRequest."""
    if rules.melds_on_table and not rules.concealed_wins:
        raise invalid("ruleset", "expected no melds_on_table, or concealed_wins: ValidateDiscardTurn judges the others")
    indicator = _indicator_of(message.indicator, rules)
    hand = _shown_hand(message, rules)
    _check_possible((*hand.tiles, *((indicator,) if indicator else ())), rules, "tiles")
    if indicator is None:
        return _encode_judged_named_hand(judge_named_finish(hand.tiles, hand.discard, hand.parts, rules.hands))
    given = HandToJudge(hand.tiles, indicator, hand.discard, hand.parts, one_high=rules.run_one_high)
    return _encode_judged_hand(judge_hand(given))


def _indicator_of(number: int, rules: Ruleset) -> Tile | None:
    """Returns the indicator of a position; None under rules without one. Raises InvalidRequest."""
    if rules.has_indicator:
        return _indicator(number, "indicator")
    if number:
        raise invalid("indicator", "expected none: the jokers are wild")
    return None


def _tiles_under(rules: Ruleset) -> frozenset[Tile]:
    return frozenset(rules.tiles(rules.players_max))


def _shown_hand(message: validation_service_pb2.ValidateHandRequest, rules: Ruleset) -> _ShownHand:
    known = _tiles_under(rules)
    tiles = tiles_of(message.tiles, "tiles", HAND_SIZE + 1, "FIELD_INVALID", known)
    discard = tile_of(message.discard, "discard", known) if message.discard else None
    parts = hand_of(message.hand, "hand")
    if len(tiles) < HAND_SIZE:
        raise invalid("tiles", f"expected {HAND_SIZE} or {HAND_SIZE + 1} tiles")
    if discard is None and parts and len(tiles) > HAND_SIZE:
        raise invalid("discard", f"expected the discard beside a hand of {len(tiles)} tiles")
    if discard is not None and (discard not in tiles or len(tiles) == HAND_SIZE):
        raise invalid("discard", f"expected one of {HAND_SIZE + 1} tiles", "POSITION_IMPOSSIBLE")
    return _ShownHand(tiles, discard, parts)


def _encode_judged_hand(judged: JudgedHand) -> bytes:
    return validation_service_pb2.ValidateHandResponse(
        violations=map(encode_violation, judged.violations),
        hand=encode_hand(judged.finish.tiles) if judged.finish else (),
        is_pairs=judged.finish is not None and judged.finish.is_pairs,
        discard=_tile_if_any(judged.discard),
        cost=judged.cost,
        missing=judged.lacks.missing,
        spare=tile_numbers(judged.lacks.spare),
    ).SerializeToString()


def _encode_judged_named_hand(judged: JudgedNamedHand) -> bytes:
    return validation_service_pb2.ValidateHandResponse(
        violations=map(encode_violation, judged.violations),
        hand=encode_hand(judged.hand.tiles) if judged.hand else (),
        discard=_tile_if_any(judged.discard),
        cost=judged.points,
        hand_name=judged.hand.name if judged.hand else "",
    ).SerializeToString()


def _check_possible(tiles: tuple[Tile, ...], rules: Ruleset, field: str) -> None:
    """Raises InvalidRequest if a position has a face more often than the tile set."""
    if Counter(tiles) - Counter(rules.tiles(rules.players_max)):
        raise invalid(field, "there are two tiles of each face, the indicator among them", "POSITION_IMPOSSIBLE")


# Turns to judge


@dataclass(frozen=True, slots=True)
class _TurnToJudge:
    """A turn at a table outside of a game: the step and the discard. One may be missing, unless it is a Foot."""

    turn: TurnAtTable
    after: Arrangement | None
    discard: Tile | None
    is_foot: bool

    def verdict(self, rules: Ruleset) -> Verdict:
        """Returns the judgement."""
        if self.is_foot and self.after is not None and self.discard is not None:
            return judge_foot(self.turn, self.after, self.discard, rules)
        return judge_turn(self.turn, self.after, self.discard, rules)


def judge_turn_of(message: validation_service_pb2.ValidateDiscardTurnRequest, rules: Ruleset) -> bytes:
    """Returns the encoded judgement of a turn at a table. Raises InvalidRequest."""
    to_judge = _turn_to_judge(message, rules)
    return _encode_verdict(to_judge, to_judge.verdict(rules))


def _turn_to_judge(message: validation_service_pb2.ValidateDiscardTurnRequest, rules: Ruleset) -> _TurnToJudge:
    if not rules.melds_on_table:
        raise invalid("ruleset", "expected melds_on_table: ValidateHand judges the others")
    indicator, known = _indicator_of(message.indicator, rules), _tiles_under(rules)
    rack = in_order(tiles_of(message.rack, "rack", HAND_SIZE_MOST + 1, "FIELD_INVALID", known))
    if not rack:
        raise invalid("rack", "expected the player's tiles")
    table = Table(
        hand_of(message.table_before, "table_before", TABLE_MAX),
        tuple(_opening_of(one, f"openings[{place}]") for place, one in enumerate(message.openings)),
    )
    seat, wild = seat_of(message.seat, "seat"), okey_of(indicator) if indicator else JOKER
    face_up = (indicator,) if indicator else ()
    _check_possible((*face_up, *rack, *chain.from_iterable(table.melds)), rules, "rack")
    if not is_legal(table, wild, one_high=rules.run_one_high):
        raise invalid("table_before", "expected melds and pairs", "POSITION_IMPOSSIBLE")
    owed = tile_of(message.owed_tile, "owed_tile", known) if message.owed_tile else None
    if owed is not None and owed not in rack:
        raise invalid("owed_tile", "expected one of the rack", "POSITION_IMPOSSIBLE")
    if message.tiles_laid > POOL_MAX:
        raise invalid("tiles_laid", f"expected at most {POOL_MAX}")
    discard = tile_of(message.discard, "discard", known) if message.discard else None
    sent = hand_of(message.table_after, "table_after", TABLE_MAX)
    after = None if discard is not None and not sent else sent
    if message.is_foot and not (rules.concealed_wins and sent and discard is not None):
        raise invalid("is_foot", "expected a table and a discard under rules with concealed_wins")
    turn = TurnAtTable(seat, wild, table, rack, owed, message.tiles_laid)
    return _TurnToJudge(turn, after, discard, message.is_foot)


def _opening_of(message: discard_pb2.DiscardOpening, field: str) -> Opening:
    if message.amount > _POINTS_MAX:
        raise invalid(f"{field}.amount", f"expected at most {_POINTS_MAX}")
    return Opening(seat_of(message.seat, f"{field}.seat"), message.is_pairs, message.amount)


def _encode_verdict(to_judge: _TurnToJudge, verdict: Verdict) -> bytes:
    laid, is_legal_turn = verdict.laid, not verdict.violations
    rack = laid.turn.rack if laid else to_judge.turn.rack
    left = rack if to_judge.discard is None else without(rack, (to_judge.discard,))
    return validation_service_pb2.ValidateDiscardTurnResponse(
        violations=map(encode_violation, verdict.violations),
        tiles_laid=tile_numbers(laid.tiles) if laid else (),
        okeys=laid.okeys if laid else 0,
        opening=_opening(laid.opening) if laid and laid.opening else None,
        rack_left=tile_numbers(left) if is_legal_turn else (),
        penalty=_cause(verdict.penalty) if verdict.penalty else discard_pb2.PENALTY_CAUSE_UNSPECIFIED,
        is_finish=verdict.is_finish,
    ).SerializeToString()
