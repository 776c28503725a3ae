"""Requests and responses of AnalysisService."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, Protocol

from google.protobuf.duration_pb2 import Duration

from engine.discard.best_melds import Missing
from engine.discard.hands import Standing
from engine.melding.analysis import AnySituation, situation_of
from engine.melding.melds import ProposedMeld
from engine.melding.ruleset import Ruleset
from engine.melding.solver import Arrangement, Existence, Objective
from engine.melding.solver import steps as st
from engine.melding.table import tiles_on
from engine.tiles import JOKER, Tile, in_order, without
from rummikub.v1 import analysis_service_pb2
from service.analysis.hands import HandHint
from service.analysis.queries import HintTier, PlayedTurn, Suggestion
from service.analysis.records import ExplanationQuery
from service.codec.fields import duration, invalid
from service.codec.rulesets import ruleset
from service.codec.tiles import encode_meld, encode_proposed, encode_table, rack, tile_numbers
from service.codec.validation import check_possible, has_melded, melds_before, river_of, table_before

POSITIONS_MAX: Final = 100
"""Most positions of a batch."""
TIME_LIMIT_SECONDS: Final = (1, 10)
"""The default and the maximum time limit of exact analysis."""
BATCH_TIME_LIMIT_SECONDS: Final = (10, 60)
"""The default and the maximum time limit of a batch."""
_TIERS: Final[dict[int, HintTier]] = {
    analysis_service_pb2.HINT_TIER_UNSPECIFIED: HintTier.TURN,
    analysis_service_pb2.HINT_TIER_PLAY_EXISTS: HintTier.PLAY_EXISTS,
    analysis_service_pb2.HINT_TIER_TILES: HintTier.TILES,
    analysis_service_pb2.HINT_TIER_TURN: HintTier.TURN,
}
_OBJECTIVES: Final[dict[int, Objective]] = {
    analysis_service_pb2.OBJECTIVE_UNSPECIFIED: Objective.MOST_TILES,
    analysis_service_pb2.OBJECTIVE_MOST_TILES: Objective.MOST_TILES,
    analysis_service_pb2.OBJECTIVE_HIGHEST_VALUE: Objective.HIGHEST_VALUE,
}
_EXISTENCES: Final = {
    Existence.YES: analysis_service_pb2.EXISTENCE_YES,
    Existence.NO: analysis_service_pb2.EXISTENCE_NO,
    Existence.UNKNOWN: analysis_service_pb2.EXISTENCE_UNKNOWN,
}


def tier(number: int) -> HintTier:
    """Returns the tier of a hint; the whole turn if unset."""
    if number not in _TIERS:
        raise invalid("tier", f"{number} is not a hint tier")
    return _TIERS[number]


def objective(number: int) -> Objective:
    """Returns the objective; MOST_TILES if unset."""
    if number not in _OBJECTIVES:
        raise invalid("objective", f"{number} is not an objective")
    return _OBJECTIVES[number]


class _TimedRequest(Protocol):
    @property
    def time_limit(self) -> Duration: ...
    def HasField(self, field_name: Literal["time_limit"]) -> bool: ...  # noqa: N802 - protobuf's name


def time_limit(request: _TimedRequest, limits: tuple[int, int] = TIME_LIMIT_SECONDS) -> float:
    """Returns the time limit in seconds; the default, which is the first of the limits, if unset."""
    default, most = limits
    if not request.HasField("time_limit"):
        return default
    return duration("time_limit", request.time_limit, most)


def situation(message: analysis_service_pb2.Position, default: Ruleset, field: str = "position.") -> AnySituation:
    """Returns a position to analyze.

    Args:
        message: The position.
        default: The ruleset for a position without one.
        field: The path of the position in the request, with a dot at the end.
    """
    rules = ruleset(message.ruleset, field) if message.HasField("ruleset") else default
    table = table_before(message.table, rules, f"{field}table")
    tiles = rack(message.rack, f"{field}rack")
    river = river_of(message.river, rules, f"{field}river")
    check_possible((*tiles, *tiles_on(table), *river), rules, f"{field}rack")
    return situation_of(table, tiles, has_melded(message, field), rules, river)


def positions(
    message: analysis_service_pb2.BatchSuggestTurnsRequest,
) -> Sequence[analysis_service_pb2.Position]:
    """Returns the positions of a batch, and checks their number."""
    if len(message.positions) > POSITIONS_MAX:
        raise invalid("positions", f"expected at most {POSITIONS_MAX} positions")
    return message.positions


def tiles_to_arrange(message: analysis_service_pb2.ArrangeTilesRequest, rules: Ruleset) -> tuple[Tile, ...]:
    """Returns the tiles to arrange, in ascending order."""
    tiles = rack(message.tiles, "tiles")
    check_possible(tiles, rules, "tiles")
    return tiles


def turn_to_explain(message: analysis_service_pb2.ExplainTurnRequest) -> ExplanationQuery:
    """Returns the tables of a turn to explain."""
    rules = ruleset(message.ruleset)
    before = melds_before(message.table_before, rules, "table_before")
    after = melds_before(message.table_after, rules, "table_after")
    pulled = river_of(message.pulled, rules, "pulled")
    check_possible(tiles_on(after), rules, "table_after")
    check_possible((*tiles_on(before), *pulled), rules, "pulled")
    missing = Counter(tiles_on(before)) - Counter(tiles_on(after))
    if missing:
        raise invalid("table_after", "a tile of table_before is missing", "POSITION_IMPOSSIBLE")
    return ExplanationQuery(before, after, rules, pulled)


def encode_explanation(query: ExplanationQuery, steps: Sequence[st.Step]) -> analysis_service_pb2.ExplainTurnResponse:
    """Returns an ExplainTurnResponse."""
    played = in_order(without(tiles_on(query.after), tiles_on(query.before)))
    return analysis_service_pb2.ExplainTurnResponse(steps=map(encode_step, steps), tiles_played=tile_numbers(played))


def encode_existence(existence: Existence) -> analysis_service_pb2.Existence.ValueType:
    """Returns the enum value."""
    return _EXISTENCES[existence]


def encode_arrangement(arrangement: Arrangement) -> analysis_service_pb2.ArrangeTilesResponse:
    """Returns an ArrangeTilesResponse."""
    return analysis_service_pb2.ArrangeTilesResponse(
        exists=encode_existence(arrangement.exists), melds=map(encode_meld, arrangement.melds)
    )


def encode_hand_hint(hint: HandHint, tier: HintTier) -> analysis_service_pb2.SuggestTurnResponse:
    """Returns a hint in a game of discards, as far as the tier shows it, without the turn."""
    response = analysis_service_pb2.SuggestTurnResponse()
    match hint.lacks:
        case Standing(missing, spare):
            response.hand.missing = missing
            response.hand.spare.extend(tile_numbers(spare) if tier >= HintTier.TILES else ())
        case Missing(points, pairs):
            response.opening.points_missing = points
            if pairs is not None:
                response.opening.pairs_missing = pairs
        case None:
            pass
    return response


def encode_suggestion(suggestion: Suggestion, shown: HintTier) -> analysis_service_pb2.Suggestion:
    """Returns as much of a suggestion as the tier shows."""
    message = analysis_service_pb2.Suggestion(play_exists=encode_existence(suggestion.exists))
    played = suggestion.played
    if played is None or shown is HintTier.PLAY_EXISTS:
        return message
    message.tiles_played.extend(tile_numbers(played.turn.tiles))
    message.value = played.value
    message.is_best = suggestion.is_best
    if shown is HintTier.TURN:
        message.is_least_change = suggestion.is_least_change
        message.MergeFrom(_whole_turn(played))
    return message


def _whole_turn(played: PlayedTurn) -> analysis_service_pb2.Suggestion:
    return analysis_service_pb2.Suggestion(
        points=played.points,
        table=encode_table(played.turn.table),
        untouched=played.turn.untouched,
        river_index=played.turn.river_index,
        steps=map(encode_step, played.steps),
        goes_out=played.goes_out,
    )


def encode_step(step: st.Step) -> analysis_service_pb2.SuggestedStep:
    """Returns a step of a turn."""
    message = _step_without_description(step)
    message.text = st.describe_step(step)
    return message


def _step_without_description(step: st.Step) -> analysis_service_pb2.SuggestedStep:
    match step:
        case st.Pull(tiles):
            return analysis_service_pb2.SuggestedStep(
                kind=analysis_service_pb2.STEP_KIND_PULL, tiles=tile_numbers(tiles)
            )
        case st.Split(meld, parts):
            return analysis_service_pb2.SuggestedStep(
                kind=analysis_service_pb2.STEP_KIND_SPLIT, meld=_step_meld(meld), parts=map(_step_part, parts)
            )
        case st.Substitute(meld, replacing, source, laid):
            message = _laid(analysis_service_pb2.STEP_KIND_SUBSTITUTE, meld, laid, (replacing,))
            return _from_meld(message, source) if isinstance(source, st.FromMeld) else message
        case st.Arrange(meld, laid):
            return _laid(analysis_service_pb2.STEP_KIND_ARRANGE, meld, laid)
        case st.Take(source, tiles, meld, laid):
            return _from_meld(_laid(analysis_service_pb2.STEP_KIND_TAKE, meld, laid, tiles), source)
        case st.Join(source, tiles, meld, laid):
            message = _laid(analysis_service_pb2.STEP_KIND_JOIN, meld, laid, tiles)
            message.source.CopyFrom(_step_meld(source))
            return message
        case st.Place(tiles, meld, laid):
            return _laid(analysis_service_pb2.STEP_KIND_PLACE, meld, laid, tiles)
        case st.Extend(tiles, meld, laid):
            return _laid(analysis_service_pb2.STEP_KIND_EXTEND, meld, laid, tiles)
        case st.LayJokers(jokers, meld, laid):
            return _laid(analysis_service_pb2.STEP_KIND_LAY_JOKERS, meld, laid, (JOKER,) * jokers)


def _laid(
    kind: analysis_service_pb2.StepKind.ValueType, meld: st.Label, laid: ProposedMeld, tiles: tuple[Tile, ...] = ()
) -> analysis_service_pb2.SuggestedStep:
    return analysis_service_pb2.SuggestedStep(
        kind=kind, meld=_step_meld(meld), laid=encode_proposed(laid), tiles=tile_numbers(tiles)
    )


def _from_meld(message: analysis_service_pb2.SuggestedStep, source: st.FromMeld) -> analysis_service_pb2.SuggestedStep:
    """Adds the meld that a step takes its tiles from, and what is left of it."""
    message.source.CopyFrom(_step_meld(source.meld))
    if source.left.tiles:
        message.left.CopyFrom(encode_proposed(source.left))
    return message


def _step_meld(label: st.Label) -> analysis_service_pb2.StepMeld:
    """Returns a meld's index. The engine counts from 1, the contract from 0."""
    match label:
        case st.TableMeld(place):
            return analysis_service_pb2.StepMeld(table_before=place - 1)
        case st.NewMeld(place, _):
            return analysis_service_pb2.StepMeld(table_after=place - 1)


def _step_part(part: st.Part) -> analysis_service_pb2.StepPart:
    return analysis_service_pb2.StepPart(meld=_step_meld(part.meld), laid=encode_proposed(part.laid))
